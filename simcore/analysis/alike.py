"""Ranks named by their figure, and who waits for whom.

Classes that have the same figure are named together. A class is split wherever an override comes near it,
also where that changes nothing of the figure that is named; counted and named are the ranks. Members of a
collective that are early wait for the one that is late.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from simcore.analysis.accounts import WAIT, Accounts
from simcore.folding import RankClass
from simcore.program.ops import KIND_OF_STREAM
from simcore.ranks import RankSet
from simcore.records import Struct
from simcore.timeline import Timeline
from simcore.workload.model import GroupKind


class Waiting(Struct, frozen=True):
    """Class `early` waits `ns` in a step, on each of its ranks, for class `late`.

    In collectives of their groups of kind `kind`; late is the member class that waits least, the first
    of those that wait equally little, which are `all_late`.
    """

    early: int
    late: int
    kind: GroupKind
    ns: int
    all_late: tuple[int, ...]


def who_waits(timeline: Timeline, accounts: list[Accounts]) -> list[Waiting]:
    """Who waits for whom, the longest wait first; ties in the order of the classes."""
    waited: dict[tuple[int, int], int] = {}
    for number, one in enumerate(accounts):
        if not one.wait_ns:
            continue
        ops, _, _ = timeline.columns(number)
        groups = timeline.classes[number].groups
        for segment, account in enumerate(one.account):
            if account == WAIT:
                group = groups[KIND_OF_STREAM[ops.stream[one.op[segment]]]]
                key = (group, number)
                waited[key] = waited.get(key, 0) + one.edge[segment + 1] - one.edge[segment]
    found = []
    for (group, number), ns in waited.items():
        group_class = timeline.folding.group_classes[group]
        least = min(waited.get((group, member), 0) for member in group_class.members)
        late = tuple(one for one in group_class.members if waited.get((group, one), 0) == least)
        if number not in late:
            found.append(Waiting(number, late[0], group_class.kind, ns, late))
    return sorted(found, key=lambda one: (-one.ns, one.early))


def alike(figures: Sequence[int], figure: int) -> list[int]:
    """The numbers of the classes that have this figure."""
    return [number for number, one in enumerate(figures) if one == figure]


def ranks_of(classes: Sequence[RankClass], numbers: Collection[int]) -> RankSet:
    """The ranks of the classes with these numbers."""
    return RankSet.joined(block for number in numbers for block in classes[number].ranks.blocks)


def whole_stages(classes: Sequence[RankClass], numbers: Collection[int]) -> RankSet | None:
    """The stages that the classes with these numbers are, all ranks of each; None where some are missing."""
    stages = {classes[number].stage for number in numbers}
    missing = any(one.stage in stages and number not in numbers for number, one in enumerate(classes))
    return None if missing else RankSet.of(stages)


class LongestWait(Struct, frozen=True):
    """The ranks `early` wait `ns` each for the ranks `late` in collectives of groups of kind `kind`."""

    early: RankSet
    late: RankSet
    kind: GroupKind
    ns: int


def longest_wait(classes: Sequence[RankClass], waits: Sequence[Waiting]) -> LongestWait:
    """The longest of `waits` (the longest first, at least one), with all ranks that wait as long alike."""
    first = waits[0]
    same = [one for one in waits if (one.ns, one.kind) == (first.ns, first.kind)]

    def ranks(of: Callable[[Waiting], Collection[int]]) -> RankSet:
        return ranks_of(classes, {number for one in same for number in of(one)})

    return LongestWait(ranks(lambda one: (one.early,)), ranks(lambda one: one.all_late), first.kind, first.ns)
