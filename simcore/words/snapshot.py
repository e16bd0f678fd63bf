"""The figures of memory snapshots, in the form that all runs have: see `simcore/trace/figures.py`."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from simcore.allocators.run import SnapshotAnalysis
from simcore.diagnostics import printable
from simcore.snapshots.call_sites import site_text
from simcore.snapshots.history import NO_STACK, Holder, OutOfMemory
from simcore.snapshots.record import ALLOCATED
from simcore.trace.figures import DeviceMemory, FailedRequest, HeldMemory, Insight, Origin, SnapshotTables
from simcore.trace.findings import Finding
from simcore.trace.without_step import FiguresWithoutStep
from simcore.units import byte_size, plural
from simcore.unpickling.stacks import frames_of

if TYPE_CHECKING:
    from simcore.trace.streams import TrackStreams

# Frames of a stack that JSON has.
_MOST_FRAMES = 40


class SnapshotFigures(FiguresWithoutStep[SnapshotAnalysis]):
    """The figures of snapshots: peaks, what is held then, what failed; nothing is timed."""

    kind = "snapshot"

    @property
    def title(self) -> str:
        return self.snapshot.headline

    @property
    def facts(self) -> list[tuple[str, str]]:
        record = self.run.record
        facts = [
            ("file", printable(record.path)),
            ("format", "memory snapshot of PyTorch" + ("s" if record.files > 1 else "")),
            ("read", self._counts()),
        ]
        settings = [value for name, value in record.settings if value and name in _SETTINGS]
        return [*facts, ("allocator", printable(settings[0], 90))] if settings else facts

    def _counts(self) -> str:
        record = self.run.record
        segments = sum(len(device.segments) for device in record.devices)
        return (
            f"{plural(len(record.devices), 'device')}, {plural(segments, 'segment')}, "
            f"{plural(record.event_count, 'event')}"
        )

    def headline(self, wide: bool) -> list[str]:
        """Returns the highest peak, then how much was read."""
        return [self.snapshot.headline, *([self._counts()] if wide else [])]

    @cached_property
    def insights(self) -> list[Insight]:
        from simcore.words.snapshot_sentences import find_sentences

        return [Insight(sentence.rule, sentence.text) for sentence in find_sentences(self.run, self.snapshot)]

    @property
    def worst_findings(self) -> list[Finding]:
        return []

    @cached_property
    def origin(self) -> Origin:
        count = self.run.record.event_count
        degrees = dict.fromkeys(("tp", "ep", "dp", "pp", "world"))
        return Origin("memory-snapshot", "", count, None, 0, degrees, "none", "none", {}, [], count, 0)

    @property
    def streams(self) -> Sequence[TrackStreams]:
        return ()

    # -- the tables ----------------------------------------------------------------------

    @cached_property
    def snapshot(self) -> SnapshotTables:
        devices = tuple(map(self._device, range(len(self.run.histories))))
        highest = max(devices, key=lambda one: one.peak_allocated)
        headline = f"peak {byte_size(highest.peak_allocated)} of {byte_size(highest.peak_reserved)} reserved"
        if len(devices) > 1:
            headline += f" on {highest.name}"
        failures = sum(len(device.failures) for device in devices)
        if failures:
            times = f" {failures} times" if failures > 1 else ""
            headline = f"out of memory{times}, {headline}"
        return SnapshotTables(headline, devices, self._find_levels, self._values(devices))

    def _device(self, track_id: int) -> DeviceMemory:
        history, run = self.run.histories[track_id], self.run
        device, peak, blocks = history.device, history.peak, history.device.blocks
        rounding = sum(
            size - requested
            for size, requested, state in zip(blocks.size, blocks.requested, blocks.state, strict=True)
            if state == ALLOCATED
        )
        last = len(device.events) - 1
        return DeviceMemory(
            track_id, device.name, device.rank, device.device, len(device.segments), len(device.events),
            run.time_of(track_id, peak), history.allocated_at(peak), history.reserved_at(peak),
            history.most_reserved, history.allocated_at(last), history.reserved_at(last), rounding,
            history.largest_free, run.annotation_at(track_id, peak),
            [self._make_holder(track_id, holder) for holder in history.holders_at(peak)],
            [self._failure(track_id, failure) for failure in history.failures],
        )  # fmt: skip

    def _make_holder(self, track_id: int, holder: Holder) -> HeldMemory:
        history, run = self.run.histories[track_id], self.run
        text = "" if holder.stack == NO_STACK else history.device.stacks[holder.stack]
        arena, begin = history.arena_of[holder.largest], history.allocations.begin[holder.largest]
        stream = str(arena) if arena >= 0 else None
        return HeldMemory(
            holder.bytes, holder.allocations, site_text(text), frames_of(text), stream,
            run.time_of(track_id, begin), holder.stack == NO_STACK,
        )  # fmt: skip

    def _failure(self, track_id: int, failure: OutOfMemory) -> FailedRequest:
        text = self.run.record.devices[track_id].stacks[failure.stack]
        return FailedRequest(
            self.run.time_of(track_id, failure.event), failure.size, failure.free, failure.allocated,
            failure.reserved, site_text(text), frames_of(text),
        )  # fmt: skip

    def _find_levels(self, track_id: int, edges: Sequence[int]) -> tuple[list[int], list[int]]:
        history, times = self.run.histories[track_id], self.run.times(track_id)
        levels: tuple[list[int], list[int]] = [], []
        columns = (history.allocated, history.base_allocated), (history.reserved, history.base_reserved)
        for first, last in pairwise(edges):
            low, high = bisect_left(times, first), bisect_left(times, max(last, first + 1))
            for level, (column, base) in zip(levels, columns, strict=True):
                level.append(max([column[low - 1] if low else base, *column[low:high]]))
        return levels

    # -- as JSON -------------------------------------------------------------------------

    def _values(self, devices: Sequence[DeviceMemory]) -> dict[str, Any]:
        record = self.run.record
        return {
            "files": record.files,
            "begin_us": self.run.begin_us,
            "settings": dict(record.settings),
            "devices": [self._device_values(device) for device in devices],
        }

    def _device_values(self, device: DeviceMemory) -> dict[str, Any]:
        return {
            "id": self.run.record.devices[device.track_id].id, "rank": device.rank, "device": device.device,
            "segments": device.segments, "events": device.events,
            "peak": {
                "time_ns": device.peak_ns, "allocated_bytes": device.peak_allocated,
                "reserved_bytes": device.peak_reserved, "unused_bytes": device.unused,
                "annotation": device.annotation,
            },
            "most_reserved_bytes": device.most_reserved,
            "end": {
                "allocated_bytes": device.end_allocated, "reserved_bytes": device.end_reserved,
                "rounding_bytes": device.rounding, "largest_free_bytes": device.largest_free,
            },
            "held_by": [
                {"bytes": one.bytes, "allocations": one.allocations, "site": one.site or None,
                 "before_events": one.is_before, "frames": _frames(one.frames)}
                for one in device.holders
            ],
            "out_of_memory": [
                {"time_ns": one.time_ns, "requested_bytes": one.size, "device_free_bytes": one.free,
                 "allocated_bytes": one.allocated, "reserved_bytes": one.reserved,
                 "site": one.site or None, "frames": _frames(one.frames)}
                for one in device.failures
            ],
        }  # fmt: skip


# What the user set: the same variable, older and newer.
_SETTINGS = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")


def _frames(frames: Sequence[tuple[str, str, int]]) -> list[dict[str, Any]]:
    return [{"name": name, "file": file, "line": line} for name, file, line in frames[:_MOST_FRAMES]]
