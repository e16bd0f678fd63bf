"""Which calls of several ranks meet in each step."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from operator import add

from simcore.measured.device_order import ANY_SIZE, elements_of
from simcore.measured.step_columns import CallColumns, CallKey, CallKind, RankSteps
from simcore.records import NamedTuple, replace

_SENDS, _RECEIVES = ("send", "isend"), ("recv", "irecv")
# Names of several sends and receives launched as one; `coalesced` leaves an empty name.
_EXCHANGES = ("sendrecv", "", "batchisendirecv")


class StepMeeting(NamedTuple):
    """Calls of a group; those at one index of the columns of its members are one collective or transfer."""

    operation: str
    members: list[tuple[int, CallColumns]]
    """(index of a rank, its calls)."""
    steps: Sequence[int]
    """The number of the step of each."""
    has_others: bool = False
    """Whether there are steps in which members call more often than others."""
    sender: int = -1
    """The rank that sends and waits for nobody, -1 where all members wait."""


class AlignedSteps(NamedTuple):
    """The steps of ranks on one axis."""

    rank_steps: Sequence[RankSteps]
    meetings: Sequence[StepMeeting]
    apart: frozenset[int] = frozenset()
    """The numbers of the steps in which ranks have no common time: there each begins at 0, and waits for
    nobody.
    """


def find_step_meetings(rank_steps: Sequence[RankSteps]) -> list[StepMeeting]:
    """Returns the meetings of calls whose members are stated: the n-th of a step with each other, in the
    steps in which all have as many.
    """
    members: dict[object, list[tuple[int, CallColumns]]] = {}
    operation_of: dict[object, str] = {}
    for index, one in enumerate(rank_steps):
        for key, calls in one.columns.calls.items():
            meeting_key = _meeting_key(key, one.rank)
            if meeting_key is not None:
                members.setdefault(meeting_key, []).append((index, calls))
                operation_of[meeting_key] = key[0]
    return [
        _align(rank_steps, some, operation_of[key])
        for key, some in members.items()
        if len({index for index, _ in some}) >= max(len(some), 2)
    ]


def _meeting_key(key: CallKey, rank: int) -> object | None:
    """Returns what all members of a call share; None for a transfer whose other end is not known."""
    operation, group, ranks, peer = key
    if operation not in (*_SENDS, *_RECEIVES):
        return operation, group, ranks
    others = [other for other in ranks or () if other != rank]
    other = others[0] if len(others) == 1 else peer if peer >= 0 else None
    if other is None:
        return None
    return (rank, other) if operation in _SENDS else (other, rank)


def _align(
    rank_steps: Sequence[RankSteps], some: list[tuple[int, CallColumns]], operation: str
) -> StepMeeting:
    of_members = [_steps_of(rank_steps[index], calls) for index, calls in some]
    if all(own == of_members[0] for own in of_members):
        return StepMeeting(operation, some, of_members[0])
    counts = [Counter(own) for own in of_members]
    equal = {
        step_number
        for step_number, count in counts[0].items()
        if all(own[step_number] == count for own in counts)
    }
    aligned_calls = []
    for (index, calls), own in zip(some, of_members, strict=True):
        there = [step_number in equal for step_number in own]
        columns = (
            array("q", [value for value, is_there in zip(column, there, strict=True) if is_there])
            for column in calls.columns
        )
        aligned_calls.append((index, CallColumns(*columns)))
    return StepMeeting(
        operation, aligned_calls, _steps_of(rank_steps[some[0][0]], aligned_calls[0][1]), has_others=True
    )


def _steps_of(rank: RankSteps, calls: CallColumns) -> array[int]:
    return array("q", map(rank.columns.step.__getitem__, calls.row))


def is_plain(rank_steps: Sequence[RankSteps], meetings: Sequence[StepMeeting], one_clock: bool) -> bool:
    """Returns whether the order of calls alone matches them: all state their members, which call equally
    often and alike. On clocks that are not one their numbers must be stated, too, and transfers need more.
    """
    kinds = [one.columns.kinds for one in rank_steps]
    infos = [kind.info for some in kinds for kind in some]
    if any(info.ranks is None or len(info.ranks) > info.size for info in infos):
        return False
    if not one_clock and any(
        info.communicator is None or info.operation in (*_SENDS, *_RECEIVES, *_EXCHANGES) for info in infos
    ):
        return False
    signatures = [[_signature(kind) for kind in some] for some in kinds]
    for meeting in meetings:
        if meeting.has_others:
            return False
        (first_index, first), *others = meeting.members
        for index, calls in others:
            if calls.sequence != first.sequence:
                return False
            if calls.kind == first.kind and signatures[index] == signatures[first_index]:
                continue
            pairs = zip(calls.kind, first.kind, strict=True)
            if any(signatures[index][own] != signatures[first_index][other] for own, other in pairs):
                return False
    return True


def _signature(kind: CallKind) -> tuple[str | None, str | None, int]:
    info = kind.info
    return info.communicator, info.dtype, -1 if info.operation.startswith(ANY_SIZE) else elements_of(info)


def start_each(rank_steps: Sequence[RankSteps]) -> AlignedSteps:
    """Returns the steps of ranks that have no common time in any."""
    shifts = [array("q", [-start for start in one.columns.start]) for one in rank_steps]
    shifted = shift_steps(rank_steps, shifts)
    apart = frozenset(step_number for one in rank_steps for step_number in one.columns.step)
    return AlignedSteps(shifted, (), apart)


def shift_steps(rank_steps: Sequence[RankSteps], shifts: Sequence[Sequence[int]]) -> list[RankSteps]:
    """Returns ranks with other times. shifts: by rank the ns to add to those of each step."""
    shifted = []
    for one, shift in zip(rank_steps, shifts, strict=True):
        if any(shift):
            steps = one.columns
            start, end = (array("q", map(add, times, shift)) for times in (steps.start, steps.end))
            calls = {key: _shift_calls(columns, shift) for key, columns in steps.calls.items()}
            one = replace(one, columns=replace(steps, start=start, end=end, calls=calls))
        shifted.append(one)
    return shifted


def _shift_calls(calls: CallColumns, shift: Sequence[int]) -> CallColumns:
    by_call = [*map(shift.__getitem__, calls.row)]
    start, end = (array("q", map(add, times, by_call)) for times in (calls.start, calls.end))
    return replace(calls, start=start, end=end)
