"""A profiler's recording of one device, or of a host without one: columns, and the steps of the host."""

from __future__ import annotations

from array import array
from itertools import compress
from typing import Literal

from simcore.diagnostics import Diagnostic, InputError
from simcore.measured.columns import DeviceColumns, OpColumns, RankTrace, SubColumns
from simcore.measured.selecting import select_columns, select_ints, select_ops
from simcore.measured.step_columns import StepColumns, summarize_steps
from simcore.records import Struct, field, replace

# The step of an operation outside of all annotations.
NO_STEP = -1
# Devices of a file: more than any host has, and as many ranks as one file of all could have.
_MOST_DEVICES = 4096


def refuse_devices(path: str, count: int) -> None:
    """Raises InputError for more devices in a file than there can be: each is a recording of its own."""
    if count > _MOST_DEVICES:
        message = f"found events of {count} devices, expected at most {_MOST_DEVICES}"
        raise InputError(Diagnostic("error", "bad-trace", message, path))


class ProfilerStep(Struct, frozen=True):
    """A step of a device or of a host, ns."""

    step_number: int
    start: int
    end: int
    ops: int
    """The number of its operations on the device."""
    annotated: int
    """When the host's annotation begins; a device that is still at the step before begins later."""

    @property
    def ahead_ns(self) -> int:
        """How long before the device the host began the step."""
        return self.start - self.annotated


class Recording(Struct):
    """Operations of one device in order of start, ns of an absolute clock."""

    path: str
    rank: int | None
    """None where the file does not state it."""
    world: int | None
    """The number of ranks, None if not stated."""
    device: int | None
    """None for a host without one."""
    ops: OpColumns
    columns: DeviceColumns
    step: array[int]
    """By operation the number of its step, NO_STEP outside of all."""
    steps: tuple[ProfilerStep, ...]
    groups: dict[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    """The process groups by name, with description and members."""
    is_truncated: bool = False
    """Whether the file ends in the middle."""
    job: str = ""
    """What distinguishes the job from others in the same directory."""
    process: int | None = None
    """The id of the process that launched, None if not stated."""
    first_ns: int = 0
    """When the first operation starts."""
    last_ns: int = 0
    """When the last operation ends."""
    count: int = 0
    """The number of operations."""
    only_step: int | None = None
    """The only step whose operations are here, None for all."""
    rank_from: Literal["file", "name", "place"] = "file"
    """Where `rank` is from: the file, its name, or `place` (the next free id)."""
    form: str = "kineto"
    """The key of its `Format`."""
    stage: int | None = None
    """The pipeline stage, where its file states it."""
    position: tuple[int, int, int] | None = None
    """(tp, dp, stage), where its file states it."""
    figures: dict[str, dict[int, float]] = field(default_factory=dict)
    """What its file states of steps beside their operations, by name and step."""
    on_one_clock: bool = False
    """Whether the times of its file are on the clock of all other ranks; then none is shifted."""
    step_columns: StepColumns | None = None
    """What all of its steps took, of a recording of several; also where the operations of one are here."""

    def __post_init__(self) -> None:
        if not self.count:
            self.count = len(self.ops)
            self.first_ns = self.ops.start[0] if self.count else 0
            self.last_ns = max(self.ops.end, default=0)

    def summarize_steps(self) -> None:
        """Sets the columns of its steps, while all of its operations are here."""
        # The last step of a truncated file is not whole.
        whole = self.steps[: len(self.steps) - self.is_truncated]
        if len(self.steps) > 1 and self.only_step is None:
            windows = [(step.step_number, step.start, step.end) for step in whole]
            columns = self.columns
            self.step_columns = summarize_steps(
                self.ops, self.step, windows, columns.collectives, columns.stream
            )

    def has_step(self, step: int | None) -> bool:
        """Returns whether the operations of a step are here, None for all that was recorded."""
        return self.only_step is None or self.only_step == step

    def with_step(self, step_number: int | None) -> Recording:
        """Returns the recording with the operations of one step alone, a small part of all; None for the last
        whole step. It has all operations where there is no such step.
        """
        whole = self.steps[: len(self.steps) - self.is_truncated]
        if step_number is None:
            step_number = next((step.step_number for step in reversed(whole) if step.ops), None)
        if step_number is None:
            return self
        kept_ops = [op for op, step in enumerate(self.step) if step == step_number]
        windowed = self.find_step(step_number)
        window = (0, 0) if windowed is None else (windowed.start, windowed.end)
        return replace(
            self,
            ops=select_ops(self.ops, kept_ops),
            columns=select_columns(self.columns, kept_ops, window),
            step=select_ints(self.step, kept_ops),
            only_step=step_number,
        )

    def find_step(self, step_number: int | None) -> ProfilerStep | None:
        """Returns the step of a number; None where the recording has none."""
        # The last step is shown most often: 64 ranks of 10,000 steps are not searched from the first on.
        return next((step for step in reversed(self.steps) if step.step_number == step_number), None)

    def step_of(self, step_number: int) -> ProfilerStep:
        """Returns the step of a number that the recording has."""
        step = self.find_step(step_number)
        assert step is not None
        return step

    def count_outside(self, step_number: int) -> tuple[int, int]:
        """Returns (how many operations of a step run before it begins or after it ends, their ns): a device
        may be at two steps at once.
        """
        profiled = self.step_of(step_number)
        outside = [
            end - start - max(0, min(end, profiled.end) - max(start, profiled.start))
            for step, start, end in zip(self.step, self.ops.start, self.ops.end, strict=True)
            if step == step_number and (start < profiled.start or end > profiled.end)
        ]
        return len(outside), sum(outside)

    def trace(self, rank_id: int, step_number: int | None) -> RankTrace:
        """Returns the step `step_number`, None for all that was recorded, as the trace of rank `rank_id`.

        Operations that the step did not launch are left out, and what lies outside of its window.
        """
        if step_number is None:
            part = self._part(rank_id, range(len(self.ops)), (self.first_ns, self.last_ns))
            if len(self.steps) < 2:
                return part
            windows = tuple((one.step_number, one.start, one.end) for one in self.steps)
            return replace(part, step=self.step, step_windows=windows)
        profiled, ops = self.step_of(step_number), self.ops
        first, last = profiled.start, profiled.end
        inside: range | list[int] = range(len(ops))
        is_other = self.step.count(step_number) < len(ops)
        if is_other or (len(ops) and not (ops.start[-1] < last and min(ops.end) > first)):
            inside = [
                op for op in compress(range(len(ops)), map(step_number.__eq__, self.step))
                if (ops.start[op] < last and ops.end[op] > first)
                or (ops.start[op] == ops.end[op] and first <= ops.start[op] <= last)
            ]  # fmt: skip
        part = replace(self._part(rank_id, inside, (first, last)), ahead_ns=profiled.ahead_ns)
        begins, ends = part.ops.start, part.ops.end
        if begins and (begins[0] < first or max(ends) > last):
            begins = array("q", [max(start, first) for start in begins])
            ends = array("q", [min(end, last) for end in ends])
            part = replace(part, ops=replace(part.ops, start=begins, end=ends))
        return part

    def _part(self, rank_id: int, rows: range | list[int], window: tuple[int, int]) -> RankTrace:
        return RankTrace(
            rank_id,
            self.stage,
            self.path,
            True,
            select_ops(self.ops, rows),
            SubColumns(),
            select_columns(self.columns, rows, window),
            window,
            self.position,
        )
