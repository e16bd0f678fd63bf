"""The times of each step of several ranks on one axis, as `device_clocks` aligns those of one that is shown.

Each step is aligned by what the ranks did together in it: in a long run clocks of hosts drift apart by more
than a step lasts.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from operator import add, gt

from simcore.measured.device_clocks import align_by_ends, find_axis
from simcore.measured.device_matching import LOOSE
from simcore.measured.step_columns import RankSteps
from simcore.measured.step_meetings import AlignedSteps, StepMeeting, find_step_meetings, shift_steps
from simcore.records import NamedTuple


def align_plain_steps(rank_steps: Sequence[RankSteps], meetings: Sequence[StepMeeting]) -> AlignedSteps:
    """Returns the steps of ranks on clocks of their own whose collectives are these meetings."""
    rows_of = [{step_number: row for row, step_number in enumerate(one.columns.step)} for one in rank_steps]
    shifts = [array("q", bytes(8 * len(one.columns))) for one in rank_steps]
    apart: set[int] = set()
    for equal_steps in _group_equal(rank_steps, meetings):
        aligned = _align(rank_steps, rows_of, equal_steps)
        apart.update(aligned.apart)
        for index, column in zip(equal_steps.ranks, aligned.shifts, strict=True):
            if any(column):
                for step_number, shift in zip(equal_steps.steps, column, strict=True):
                    shifts[index][rows_of[index][step_number]] = shift
    if not any(map(any, shifts)):
        return AlignedSteps(rank_steps, meetings, frozenset(apart))
    shifted = shift_steps(rank_steps, shifts)
    return AlignedSteps(shifted, find_step_meetings(shifted), frozenset(apart))


class _Call(NamedTuple):
    """The calls that belong together in each of equal steps."""

    meeting: StepMeeting
    at: Sequence[int]
    """By step their index in the columns of the members."""


class _EqualSteps(NamedTuple):
    """Steps of the same ranks with equally many calls of each group."""

    ranks: list[int]
    """Their indices."""
    steps: list[int]
    """Their numbers."""
    calls: list[_Call]


def _group_equal(rank_steps: Sequence[RankSteps], meetings: Sequence[StepMeeting]) -> list[_EqualSteps]:
    """Returns all steps, those of equal shape together: they are aligned at once, as columns."""
    call_indices: list[dict[int, list[int]]] = []
    for meeting in meetings:
        call_indices.append({})
        for index, step_number in enumerate(meeting.steps):
            call_indices[-1].setdefault(step_number, []).append(index)
    step_numbers = [frozenset(one.columns.step) for one in rank_steps]
    everywhere, anywhere = frozenset.intersection(*step_numbers), frozenset.union(*step_numbers)
    all_ranks = tuple(range(len(rank_steps)))
    equal_steps: dict[tuple[tuple[int, ...], tuple[int, ...]], list[int]] = {}
    for step_number in sorted(anywhere):
        ranks = all_ranks
        if step_number not in everywhere:
            ranks = tuple(index for index, own in enumerate(step_numbers) if step_number in own)
        counts = tuple(len(of_step.get(step_number, ())) for of_step in call_indices)
        equal_steps.setdefault((ranks, counts), []).append(step_number)
    return [
        _EqualSteps([*ranks], steps, [
            _Call(meeting, [of_step[step_number][position] for step_number in steps])
            for meeting, of_step, count in zip(meetings, call_indices, counts, strict=True)
            for position in range(count)
        ])
        for (ranks, counts), steps in equal_steps.items()
    ]  # fmt: skip


class _AlignedColumns(NamedTuple):
    """By rank of steps that have as many of each group its shifts, and which steps have no common time."""

    shifts: list[list[int]]
    apart: list[int]


def _align(
    rank_steps: Sequence[RankSteps], rows_of: Sequence[dict[int, int]], equal_steps: _EqualSteps
) -> _AlignedColumns:
    local = {index: position for position, index in enumerate(equal_steps.ranks)}
    shifts, root = _align_by_collectives(local, equal_steps.calls, len(equal_steps.steps))

    starts: list[Sequence[int]] = []
    ends: list[Sequence[int]] = []
    for index, shift in zip(equal_steps.ranks, shifts, strict=True):
        own = rank_steps[index].columns
        times: Iterable[array[int]] = (own.start, own.end)
        if [*own.step] != equal_steps.steps:
            rows = [*map(rows_of[index].__getitem__, equal_steps.steps)]
            times = (array("q", map(column.__getitem__, rows)) for column in times)
        if any(shift):
            times = (array("q", map(add, column, shift)) for column in times)
        start, end = times
        starts.append(start)
        ends.append(end)
    ahead = frozenset[int]().union(*(rank_steps[index].ahead for index in equal_steps.ranks[1:]))
    gaps = (
        map(gt, map(max, *starts), map(min, *ends)) if len(starts) > 1 else [False] * len(equal_steps.steps)
    )
    apart = []
    for at, (step_number, has_gap) in enumerate(zip(equal_steps.steps, gaps, strict=True)):
        # Nearly always all ranks are at a step at one time.
        if not has_gap and step_number not in ahead:
            continue
        spans = [(start[at], end[at]) for start, end in zip(starts, ends, strict=True)]
        axis = find_axis(spans, root, step_number in ahead)
        for position, further in enumerate(axis.further):
            shifts[position][at] += further if axis.is_shared else -starts[position][at]
        if not axis.is_shared:
            apart.append(step_number)
    return _AlignedColumns(shifts, apart)


def _align_by_collectives(
    local: dict[int, int], calls: Sequence[_Call], step_count: int
) -> tuple[list[list[int]], Sequence[int]]:
    """Returns (shifts by rank and step, the first rank that collectives tie each with)."""
    firm = [call for call in calls if call.meeting.operation not in LOOSE]
    tied = {index for call in firm for index, _ in call.meeting.members}
    firm += [call for call in calls if any(index not in tied for index, _ in call.meeting.members)]
    ends = [
        {local[index]: [*map(columns.end.__getitem__, call.at)] for index, columns in call.meeting.members}
        for call in firm
    ]
    if not ends:
        return [[0] * step_count for _ in local], range(len(local))
    shifts, _, root = align_by_ends(len(local), ends)
    return [[*column] for column in shifts], root
