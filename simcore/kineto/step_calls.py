"""The calls of all steps of a set, each step as one that is shown has it: groups, clocks, and who meets whom.

Where calls state their members and sizes, their order tells who meets, and all steps are aligned as columns:
10,000 steps of 64 ranks in half a second. Else each step goes through what a step that is shown goes through.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import islice
from operator import le

from simcore.kineto.groups import name_groups
from simcore.kineto.partitions import part_groups
from simcore.measured.columns import DeviceColumns, OpColumns, RankTrace, SubColumns
from simcore.measured.device_clocks import find_axis, find_device_clocks, one_clock
from simcore.measured.device_matching import match_devices
from simcore.measured.matching import CollectiveMatch
from simcore.measured.rank_positions import Degrees
from simcore.measured.step_clocks import align_plain_steps
from simcore.measured.step_columns import CallColumns, RankSteps
from simcore.measured.step_meetings import (
    AlignedSteps,
    StepMeeting,
    find_step_meetings,
    is_plain,
    shift_steps,
)
from simcore.records import NamedTuple, replace


def align_steps(
    rank_steps: Sequence[RankSteps], unit: str, world: int | None, on_one_clock: bool
) -> AlignedSteps:
    """Returns the steps of ranks on one axis. unit: `rank`, or `device` of one file. world: the number of
    ranks, None if not stated. on_one_clock: whether all times are on one.
    """
    if len(rank_steps) < 2:
        return AlignedSteps(rank_steps, ())
    meetings = find_step_meetings(rank_steps)
    if not is_plain(rank_steps, meetings, on_one_clock):
        return _Steps(rank_steps, unit, world, on_one_clock).align()
    if on_one_clock:
        return AlignedSteps(rank_steps, meetings)
    return align_plain_steps(rank_steps, meetings)


class _CallPosition(NamedTuple):
    """A call of a rank in a step."""

    start: int
    columns: CallColumns
    row: int
    """In them."""


class _Steps:
    """The steps of ranks, aligned one after another."""

    def __init__(
        self, rank_steps: Sequence[RankSteps], unit: str, world: int | None, on_one_clock: bool
    ) -> None:
        self.rank_steps, self.unit, self.world, self.on_one_clock = rank_steps, unit, world, on_one_clock
        self.rows_of = [
            {step_number: row for row, step_number in enumerate(one.columns.step)} for one in rank_steps
        ]
        # Columns whose rank is at several steps at one time; nearly always there are none.
        self.mixed = {
            id(columns)
            for one in rank_steps
            for columns in one.columns.calls.values()
            if not all(map(le, columns.row, islice(columns.row, 1, None)))
        }
        # By rank the calls of the step that is aligned now.
        self.positions: list[list[_CallPosition]] = [[] for _ in rank_steps]
        self.shifts = [array("q", bytes(8 * len(one.columns))) for one in rank_steps]
        # By members and sender the calls, by step and index the number of the step.
        self.members: dict[tuple[tuple[int, ...], int], list[CallColumns]] = {}
        self.steps: dict[tuple[tuple[int, ...], int], list[int]] = {}
        self.apart: set[int] = set()

    def align(self) -> AlignedSteps:
        for step_number in sorted({step_number for rows in self.rows_of for step_number in rows}):
            self._align_step(step_number)
        meetings = [
            StepMeeting("", [*zip(ranks, columns, strict=True)], self.steps[ranks, sender], sender=sender)
            for (ranks, sender), columns in self.members.items()
        ]
        return AlignedSteps(shift_steps(self.rank_steps, self.shifts), meetings, frozenset(self.apart))

    def _align_step(self, step_number: int) -> None:
        there = [index for index, rows in enumerate(self.rows_of) if step_number in rows]
        traces = [self._trace(index, self.rows_of[index][step_number]) for index in there]
        if self.unit == "rank":
            name_groups("", traces, [self.rank_steps[index].groups for index in there])
            part_groups("", traces, self.world)
        degrees = Degrees(self.world)
        clocks = one_clock(len(traces)) if self.on_one_clock else find_device_clocks(traces, degrees)
        shifts, is_shared = list(clocks.shifts), True
        if not self.on_one_clock:
            spans = [
                (trace.first_ns + shift, trace.last_ns + shift)
                for trace, shift in zip(traces, shifts, strict=True)
            ]
            axis = find_axis(spans, clocks.message_root, any(trace.ahead_ns for trace in traces[1:]))
            is_shared = axis.is_shared
            further = axis.further if is_shared else [-start for start, _ in spans]
            shifts = [*map(sum, zip(shifts, further, strict=True))]
        for index, shift in zip(there, shifts, strict=True):
            self.shifts[index][self.rows_of[index][step_number]] = shift
        if not is_shared:
            self.apart.add(step_number)
            return
        aligned = [trace.shift(shift) for trace, shift in zip(traces, shifts, strict=True)]
        for meeting in match_devices(aligned, degrees, True).meetings:
            self._add(meeting, step_number, there, aligned)

    def _trace(self, index: int, row: int) -> RankTrace:
        """Returns the calls of a rank in a step."""
        one = self.rank_steps[index]
        positions = self.positions[index] = self._find_positions(one, row)
        kinds = [one.columns.kinds[columns.kind[at]] for _, columns, at in positions]
        sequences = [columns.sequence[at] for _, columns, at in positions]
        count = len(positions)
        ops = OpColumns(
            name=[kind.name for kind in kinds],
            group=[None] * count,
            batch=array("q", (-1,)) * count,
            start=array("q", [columns.start[at] for _, columns, at in positions]),
            end=array("q", [columns.end[at] for _, columns, at in positions]),
            stated_category=bytearray(count),
        )
        collectives = {
            op: kind.info if sequence < 0 else replace(kind.info, sequence=sequence)
            for op, (kind, sequence) in enumerate(zip(kinds, sequences, strict=True))
        }
        device = DeviceColumns(
            stream=array("q", [columns.stream[at] for _, columns, at in positions]),
            collectives=collectives,
            on_device=one.on_device,
        )
        window = one.columns.start[row], one.columns.end[row]
        ahead_ns = int(one.columns.step[row] in one.ahead)
        return RankTrace(one.rank, one.stage, "", True, ops, SubColumns(), device, window, ahead_ns=ahead_ns)

    def _add(
        self, meeting: CollectiveMatch, step_number: int, there: Sequence[int], traces: Sequence[RankTrace]
    ) -> None:
        """Adds the calls that meet in a step, which are on one clock now."""
        calls = [*meeting.calls]
        if meeting.sender is not None:
            calls.insert(0, meeting.sender)
        if len(calls) < 2:
            return
        ranks = tuple(there[call.rank] for call in calls)
        key = ranks, -1 if meeting.sender is None else ranks[0]
        columns = self.members.setdefault(key, [CallColumns() for _ in calls])
        self.steps.setdefault(key, []).append(step_number)
        for call, own in zip(calls, columns, strict=True):
            index = there[call.rank]
            row = self.rows_of[index][step_number]
            _, source, at = self.positions[index][call.op]
            ops = traces[call.rank].ops
            own.row.append(row)
            own.start.append(ops.start[call.op])
            own.end.append(ops.end[call.op])
            own.idle.append(source.idle[at])

    def _find_positions(self, one: RankSteps, row: int) -> list[_CallPosition]:
        """Returns the calls of a rank in a step, in order of start."""
        positions = []
        for columns in one.columns.calls.values():
            indices: Iterable[int] = range(bisect_left(columns.row, row), bisect_right(columns.row, row))
            if id(columns) in self.mixed:
                indices = [at for at, own in enumerate(columns.row) if own == row]
            positions += [_CallPosition(columns.start[at], columns, at) for at in indices]
        return sorted(positions, key=lambda position: position.start)
