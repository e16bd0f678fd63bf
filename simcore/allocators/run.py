"""Memory snapshots with the interface of every run: the history of each device, on one axis."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar

from simcore.diagnostics import Diagnostic
from simcore.parameters import Input, RunInput
from simcore.snapshots.call_sites import site_text
from simcore.snapshots.history import BEFORE, NEVER, NO_STACK, History
from simcore.snapshots.record import Annotation, SnapshotRecord
from simcore.trace.accounts import account_names
from simcore.trace.contexts import FileMemory, MemoryLane, MemoryPeak
from simcore.trace.spans import NONE, Column, Spans, Trace, Waits
from simcore.trace.without_step import RunWithoutStep
from simcore.workload.model import LARGEST

# No account: nothing of a step is known.
NAMES = account_names((), (), ("wait", "bubble", "idle"), {})
# Behind the last event, so that what is held can be seen to go on; all of an axis without events.
_MARGIN_PERCENT, _LEAST_MARGIN_NS = 2, 1_000


class SnapshotInput(RunInput, frozen=True, dict=True):
    """Memory snapshots; they take no parameters."""

    opened: SnapshotRecord

    of: ClassVar[Input] = "snapshot"
    activity: ClassVar[str] = "reading"


class HeldModel:
    """What snapshots tell of memory, which stands in place of a model: see `ModelUse`."""

    model_figures = imbalance = product_use = None
    file_memory: tuple[FileMemory, ...] = ()
    memory_unknown = other_model = rescaled = ""

    def __init__(self, run: SnapshotAnalysis) -> None:
        self._run = run

    @cached_property
    def memory_peaks(self) -> tuple[MemoryPeak, ...]:
        return tuple(map(self._peak, range(len(self._run.histories))))

    def _peak(self, track_id: int) -> MemoryPeak:
        history = self._run.histories[track_id]
        device, peak = history.device, history.peak
        holders = []
        for holder in history.holders_at(peak):
            is_before = holder.stack == NO_STACK
            text = "before the events" if is_before else site_text(device.stacks[holder.stack])
            holders.append((text or "no stack recorded", holder.bytes))
        return MemoryPeak(
            device.id, history.allocated_at(peak), history.reserved_at(peak), history.most_reserved,
            self._run.time_of(track_id, peak), self._run.annotation_at(track_id, peak), tuple(holders),
        )  # fmt: skip

    def memory_lane(self, track_id: int) -> MemoryLane:
        history = self._run.histories[track_id]
        times = array("q", [0, *self._run.times(track_id)])
        resident = array("q", [history.base_allocated, *history.allocated])
        name = f"memory, {history.device.name}"
        return MemoryLane(-1, times, resident, max(history.most_reserved, 1), name)


class SnapshotAnalysis(RunWithoutStep):
    """The snapshots of a job, and all that is found in them, each figure once."""

    def __init__(self, setup: SnapshotInput) -> None:
        self._setup = setup
        self.record: SnapshotRecord = setup.opened
        self._times: dict[int, array[int]] = {}

    @property
    def setup(self) -> SnapshotInput:
        return self._setup

    @cached_property
    def model(self) -> HeldModel:
        return HeldModel(self)

    @cached_property
    def histories(self) -> tuple[History, ...]:
        """The history of each device."""
        return tuple(map(History, self.record.devices))

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        return self.record.diagnostics

    # -- the axis ------------------------------------------------------------------------

    @cached_property
    def begin_us(self) -> int:
        """The begin of the axis, us since 1970; 0 where no event states its time."""
        times = [
            min(history.events.time_us)
            for history in self.histories
            if history.has_times and len(history.events)
        ]
        return min(times, default=0)

    def times(self, track_id: int) -> array[int]:
        """Returns when each event of a device was, ns from the begin of the axis."""
        if track_id not in self._times:
            self._times[track_id] = self.histories[track_id].times(self.begin_us)
        return self._times[track_id]

    def time_of(self, track_id: int, event: int) -> int:
        """Returns when an event of a device was, ns; 0 for BEFORE."""
        return 0 if event == BEFORE else self.times(track_id)[event]

    def times_held(self, track_id: int, row: int) -> tuple[int, int, int]:
        """Returns when an allocation of a device began, was given back and was free again, ns; the ends of
        the axis where that is not among the events.
        """
        of = self.histories[track_id].allocations
        begin, released, completed = of.begin[row], of.released[row], of.completed[row]
        over = self.length if released == NEVER else self.time_of(track_id, released)
        free = over if completed == NEVER else self.time_of(track_id, completed)
        return self.time_of(track_id, begin), over, free

    @cached_property
    def length(self) -> int:
        """The end of the axis, ns."""
        last = max((times[-1] for track in self.tracks if (times := self.times(track.track_id))), default=0)
        return min(last + max(last * _MARGIN_PERCENT // 100, _LEAST_MARGIN_NS), LARGEST)

    def annotation_at(self, track_id: int, event: int) -> str | None:
        """Returns the mark of the program that an event lies in, the last one set; None outside of all."""
        if event == BEFORE:
            return None
        times, names = self._marks[track_id]
        at = bisect_right(times, self.record.devices[track_id].events.time_us[event]) - 1
        return names[at] if at >= 0 else None

    @cached_property
    def _marks(self) -> list[tuple[list[int], list[str | None]]]:
        """By device (us from which on it is so, the last mark that is set)."""
        return [_last_marks(device.annotations) for device in self.record.devices]

    # -- what every run has --------------------------------------------------------------

    @cached_property
    def trace(self) -> Trace:
        """No spans: what is held is in the histories."""
        nothing = [Spans(array("q"), array("q"), array("q"), bytearray(), bytearray()) for _ in self.tracks]
        empty = [array("I") for _ in nothing]
        columns = {name: lambda: Column([], empty) for name in ("name", "stream")}
        waits = [Waits() for _ in nothing]
        return Trace(nothing, waits, self.length, NAMES, [1] * len(nothing), NONE, True, columns)

    @cached_property
    def ids(self) -> list[int]:
        return [device.id for device in self.record.devices]


def _last_marks(annotations: Sequence[Annotation]) -> tuple[list[int], list[str | None]]:
    # An event of the same microsecond is still inside.
    changes = [(mark.time_us + (mark.stage.upper() == "END"), mark) for mark in annotations]
    times, names, inside = list[int](), list[str | None](), list[str]()
    for time_us, mark in sorted(changes, key=lambda change: change[0]):
        if mark.stage.upper() != "END":
            inside.append(mark.name)
        elif mark.name in inside:
            inside.remove(mark.name)
        times.append(time_us)
        names.append(inside[-1] if inside else None)
    return times, names
