"""Ranks named by their figure, and who waits for whom.

Classes that have the same figure are named together. A class is split wherever an override comes near it,
also where that changes nothing of the figure that is named; counted and named are the ranks. Members of a
collective that are early wait for the one that is late.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from simcore.engine.timeline import Timeline
from simcore.folding import RankClass
from simcore.program.ops import COMPUTE, KIND_OF_STREAM, TO_NEXT
from simcore.ranks import RankSet
from simcore.records import Struct
from simcore.sources.simulated import WAIT
from simcore.trace.accounts import Accounts
from simcore.trace.waits import waits_by_sums
from simcore.units import largest_keys
from simcore.workload.model import GroupKind


class ClassWaiting(Struct, frozen=True):
    """Class `early` waits `ns` in a step, on each of its ranks, for class `late`.

    In collectives of their groups of kind `kind`; late is the member class that waits least, the first
    of those that wait equally little, which are `all_late`.
    """

    early: int
    late: int
    kind: GroupKind
    ns: int
    all_late: tuple[int, ...]


def find_waits(timeline: Timeline, accounts: list[Accounts]) -> list[ClassWaiting]:
    """Who waits for whom, the longest wait first; ties in the order of the classes."""
    groups = timeline.folding.group_classes

    def group_of(class_id: int, op: int) -> int:
        stream = timeline.stage_program(class_id).ops.stream[op]
        return timeline.groups_of(class_id)[KIND_OF_STREAM[stream]]

    waits = waits_by_sums(accounts, group_of, lambda group: groups[group].members)
    return [
        ClassWaiting(wait.early, wait.late, groups[wait.group].kind, wait.ns, wait.all_late) for wait in waits
    ]


def find_equal(figures: Sequence[int], figure: int) -> list[int]:
    """The numbers of the classes that have this figure."""
    return [class_id for class_id, other in enumerate(figures) if other == figure]


def ranks_of(classes: Sequence[RankClass], class_ids: Collection[int]) -> RankSet:
    """The ranks of the classes with these numbers."""
    return RankSet.merge_blocks(block for class_id in class_ids for block in classes[class_id].ranks.blocks)


class LongestWait(Struct, frozen=True):
    """The ranks `early` wait `ns` each for the ranks `late` in collectives of groups of kind `kind`."""

    early: RankSet
    late: RankSet
    kind: GroupKind
    ns: int


def find_longest_wait(classes: Sequence[RankClass], waits: Sequence[ClassWaiting]) -> LongestWait:
    """The longest of `waits` (at least one), with all ranks that wait as long alike. Where kinds of
    collectives are as good as equal the one whose late ranks are fewest: who waits for one rank in tp makes
    others wait in dp as long as that.
    """
    longest = find_longest_by_kind(classes, waits)
    longest_kinds = largest_keys({kind: wait.ns for kind, wait in longest.items()}) or list(longest)
    return min((longest[kind] for kind in longest_kinds), key=lambda wait: (len(wait.late), -wait.ns))


def find_longest_by_kind(
    classes: Sequence[RankClass], waits: Sequence[ClassWaiting]
) -> dict[GroupKind, LongestWait]:
    """The longest of each kind of collective of `waits`, the longest first."""
    most: dict[GroupKind, int] = {}
    for wait in waits:
        most.setdefault(wait.kind, wait.ns)
    longest_waits = {}
    for kind, ns in most.items():
        same = [wait for wait in waits if (wait.ns, wait.kind) == (ns, kind)]
        early = ranks_of(classes, {wait.early for wait in same})
        late = ranks_of(classes, {class_id for wait in same for class_id in wait.all_late})
        longest_waits[kind] = LongestWait(early, late, kind, ns)
    return longest_waits


def find_late_classes(timeline: Timeline, accounts: list[Accounts], class_id: int, segment: int) -> list[int]:
    """The classes that a `wait` of class `number` is for: the members of its collective that come last.

    Those are the member classes that do not wait for the same collective themselves just before it
    starts. Empty where all of them do (an earlier collective holds the stream), and for other accounts.
    """
    own = accounts[class_id]
    op = own.op[segment]
    ops, start, _ = timeline.columns(class_id)
    if own.account[segment] != WAIT or not COMPUTE < ops.stream[op] < TO_NEXT:
        return []
    group_class = timeline.groups_of(class_id)[KIND_OF_STREAM[ops.stream[op]]]
    late = []
    stage = timeline.stage_of(class_id)
    for member in timeline.folding.group_classes[group_class].members:
        member_accounts = accounts[member]
        if member == class_id or timeline.stage_of(member) != stage:
            # Ops of another stage have other numbers.
            continue
        before = member_accounts.at(start[op] - 1)
        if member_accounts.account[before] != WAIT or member_accounts.op[before] != op:
            late.append(member)
    return late
