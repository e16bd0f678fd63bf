"""The devices of memory snapshots, for formats that write what is held: allocations and levels."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, cast

from simcore.diagnostics import printable, printable_within
from simcore.records import NamedTuple
from simcore.render.export.format import Request, select_indices
from simcore.snapshots.call_sites import site_text
from simcore.snapshots.history import BEFORE, NEVER, NO_STACK, OutOfMemory
from simcore.snapshots.record import DeviceRecord
from simcore.units import plural
from simcore.unpickling.stacks import frames_of

if TYPE_CHECKING:
    from simcore.allocators.run import SnapshotAnalysis

_SITE_CELLS, _FRAME_CELLS = 80, 120
# A line of 300,000 allocations with all frames, of which PyTorch has up to 100, would be 10 kB.
_MOST_FRAMES = 16


class Allocation(NamedTuple):
    """An allocation. Times are ns, None for what was before the first event or never is."""

    address: int
    bytes: int
    """Bytes that were asked for."""
    start: int | None
    end: int | None
    """When it was given back."""
    free: int | None
    """When it could be used again."""
    segment: int | None
    """The address of its segment, None where it is in none."""
    mark: str
    """The mark of the program that it was made in, "" for none."""
    site: str
    """The innermost frame of the program itself, "" where it is not known."""
    frames: str
    """The innermost frames."""


class Level(NamedTuple):
    """What a device holds from a time on, bytes."""

    time: int
    """ns."""
    allocated: int
    reserved: int


class HeldMemory:
    """The chosen devices of a run."""

    def __init__(self, run: SnapshotAnalysis, track_ids: list[int]) -> None:
        self._run = run
        self.path = run.record.path
        self.track_ids = track_ids

    @property
    def devices(self) -> str:
        """How many there are, in words."""
        return plural(len(self.track_ids), "device")

    def device(self, track_id: int) -> DeviceRecord:
        """Returns the record of a device."""
        return self._run.record.devices[track_id]

    def count(self) -> int:
        """Returns the number of allocations of all devices."""
        return sum(len(self._run.histories[track_id].allocations) for track_id in self.track_ids)

    def event_count(self) -> int:
        """Returns the number of events of all devices."""
        return sum(len(self.device(track_id).events) for track_id in self.track_ids)

    def allocations(self, track_id: int) -> Iterator[Allocation]:
        """Yields the allocations of a device, those from before its first event first."""
        run, history, stacks = self._run, self._run.histories[track_id], self.device(track_id).stacks
        of, times, arenas = history.allocations, run.times(track_id), history.arenas

        @cache
        def texts(stack: int) -> tuple[str, str]:
            text = "" if stack == NO_STACK else stacks[stack]
            frames = (
                printable_within(f"{name} {file}:{line}", _FRAME_CELLS)
                for name, file, line in frames_of(text)[:_MOST_FRAMES]
            )
            return printable_within(site_text(text), _SITE_CELLS), "; ".join(frames)

        for row in sorted(range(len(of)), key=of.begin.__getitem__):
            begin, end, free = of.begin[row], of.released[row], of.completed[row]
            arena = history.arena_of[row]
            yield Allocation(
                of.address[row], of.size[row], None if begin == BEFORE else times[begin],
                None if end == NEVER else times[end], None if free == NEVER else times[free],
                None if arena < 0 else arenas[arena].address,
                printable(run.annotation_at(track_id, begin) or "", _SITE_CELLS), *texts(of.stack[row]),
            )  # fmt: skip

    def levels(self, track_id: int) -> Iterator[Level]:
        """Yields what a device holds at first, after each event that changes it, and at the end."""
        history = self._run.histories[track_id]
        level = Level(0, history.base_allocated, history.base_reserved)
        yield level
        for later in map(Level, self._run.times(track_id), history.allocated, history.reserved):
            if later[1:] != level[1:]:
                yield later
            level = later
        yield level._replace(time=self._run.length)

    def failures(self, track_id: int) -> Iterator[tuple[int, OutOfMemory, str]]:
        """Yields (ns, request that could not be met, where it was made)."""
        times, stacks = self._run.times(track_id), self.device(track_id).stacks
        for one in self._run.histories[track_id].failures:
            yield times[one.event], one, printable_within(site_text(stacks[one.stack]), _SITE_CELLS)


def select_held_memory(request: Request) -> HeldMemory:
    """Returns the requested devices, by default all. Raises `UsageError` for others than there are."""
    run = cast("SnapshotAnalysis", request.results)
    record = run.record
    devices = [device.id for device in record.devices]
    return HeldMemory(run, select_indices(request, record.path, record.noun, devices, ("", "snapshot")))
