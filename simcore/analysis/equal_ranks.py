"""Ranks named by their figure, and who waits for whom.

Classes with the same figure are named together. An override splits a class even where it does not change the
figure that is named; counted and named are the ranks. Members of a collective that are early wait for the one
that is late.
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
    """A rank class that waits for another one in collectives."""

    early: int
    """The class that waits."""
    late: int
    """The first of the member classes that wait least, for which it waits."""
    kind: GroupKind
    """The kind of group of the collectives."""
    ns: int
    """How long each of its ranks waits in a step, ns."""
    all_late: tuple[int, ...]
    """All member classes that wait least."""


def find_waits(timeline: Timeline, accounts: list[Accounts]) -> list[ClassWaiting]:
    """Returns who waits for whom, the longest wait first; equal ones in the order of the classes."""
    groups = timeline.folding.group_classes

    def group_of(class_id: int, op: int) -> int:
        stream = timeline.stage_program(class_id).ops.stream[op]
        return timeline.groups_of(class_id)[KIND_OF_STREAM[stream]]

    waits = waits_by_sums(accounts, group_of, lambda group: groups[group].members)
    return [
        ClassWaiting(wait.early, wait.late, groups[wait.group].kind, wait.ns, wait.all_late) for wait in waits
    ]


def find_equal(figures: Sequence[int], figure: int) -> list[int]:
    """Returns the classes with this figure."""
    return [class_id for class_id, other in enumerate(figures) if other == figure]


def ranks_of(classes: Sequence[RankClass], class_ids: Collection[int]) -> RankSet:
    """Returns the ranks of some classes."""
    return RankSet.merge_blocks(block for class_id in class_ids for block in classes[class_id].ranks.blocks)


class LongestWait(Struct, frozen=True):
    """Ranks that wait longest for others in collectives of one kind."""

    early: RankSet
    """The ranks that wait."""
    late: RankSet
    """The ranks that they wait for."""
    kind: GroupKind
    """The kind of group of the collectives."""
    ns: int
    """How long each of them waits, ns."""


def find_longest_wait(classes: Sequence[RankClass], waits: Sequence[ClassWaiting]) -> LongestWait:
    """Returns the longest of `waits` (at least one), with all ranks that wait equally long.

    Of kinds of collectives with practically equal waits it is the one whose late ranks are fewest: a wait for
    one rank in tp makes others wait in dp equally long.
    """
    longest = find_longest_by_kind(classes, waits)
    longest_kinds = largest_keys({kind: wait.ns for kind, wait in longest.items()}) or list(longest)
    return min((longest[kind] for kind in longest_kinds), key=lambda wait: (len(wait.late), -wait.ns))


def find_longest_by_kind(
    classes: Sequence[RankClass], waits: Sequence[ClassWaiting]
) -> dict[GroupKind, LongestWait]:
    """Returns the longest wait of each kind of collective, the longest first."""
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
    """Returns the classes that a class waits for in a segment: the last members of its collective.

    Those are the member classes that do not wait for the same collective themselves just before it starts.
    Empty where all of them do (an earlier collective holds the stream), and for other accounts.
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
            # Ops of another stage have other indices.
            continue
        before = member_accounts.at(start[op] - 1)
        if member_accounts.account[before] != WAIT or member_accounts.op[before] != op:
            late.append(member)
    return late
