"""The sentences on memory snapshots: what failed, the peak, and what is reserved for nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from simcore.diagnostics import printable
from simcore.trace.figures import DeviceMemory, FailedRequest, SnapshotTables
from simcore.units import byte_size, duration, percent, plural
from simcore.words.rules import Sentence

if TYPE_CHECKING:
    from simcore.allocators.run import SnapshotAnalysis

_MOST_FAILURES = 3
# Less of what is reserved is what any allocator keeps.
_LEAST_UNUSED = 0.1


class CouldNotGet(Sentence, frozen=True, kw_only=True):
    """A request that could not be met."""

    rule: ClassVar[str] = "out-of-memory"
    device: str
    request: FailedRequest
    is_expandable: bool
    """Whether the allocator's segments can grow."""

    @property
    def text(self) -> str:
        one = self.request
        words = f"{_capital(self.device)} could not get {byte_size(one.size)} at {duration(one.time_ns)}"
        words += f" in {printable(one.site, 60)}" if one.site else ""
        words += (
            f": {byte_size(one.free)} were free on the device, {byte_size(one.allocated)} of "
            f"{byte_size(one.reserved)} reserved were allocated"
        )
        if one.unused >= one.size:
            words += f", so that {byte_size(one.unused)} lay free in pieces that were too small"
            if not self.is_expandable:
                words += "; expandable_segments:True in PYTORCH_CUDA_ALLOC_CONF joins them"
        return f"{words}."


class MostHeld(Sentence, frozen=True, kw_only=True):
    """The peak of a device, and who holds most of it."""

    rule: ClassVar[str] = "memory-peak"
    device: DeviceMemory
    of: int
    """How many devices there are."""

    @property
    def text(self) -> str:
        one = self.device
        where = f" in {printable(one.annotation, 40)}" if one.annotation else ""
        words = (
            f"{_capital(one.name)} has most allocated{' of all' if self.of > 1 else ''} at "
            f"{duration(one.peak_ns)}{where}: {byte_size(one.peak_allocated)}"
        )
        with_site = [holder for holder in one.holders if holder.site]
        if not with_site:
            return f"{words}; no stack says where it was allocated."
        first = with_site[0]
        return (
            f"{words}. {percent(first.bytes, one.peak_allocated)} % of that, {byte_size(first.bytes)}, "
            f"{'is' if first.allocations == 1 else 'are'} {plural(first.allocations, 'allocation')} of "
            f"{printable(first.site, 60)}."
        )


class ReservedUnused(Sentence, frozen=True, kw_only=True):
    """Memory that is reserved and not allocated at the peak."""

    rule: ClassVar[str] = "memory-unused"
    device: DeviceMemory

    @property
    def text(self) -> str:
        one = self.device
        return (
            f"{byte_size(one.unused)}, {percent(one.unused, one.peak_reserved)} % of what {one.name} has "
            "reserved at its peak, is not allocated: fragments, and what was freed and is kept."
        )


def find_sentences(run: SnapshotAnalysis, tables: SnapshotTables) -> list[Sentence]:
    """Returns what is to be said of the snapshots, what failed first."""
    return [*_failures(run, tables), *_peak(tables), *_unused(tables)]


def _failures(run: SnapshotAnalysis, tables: SnapshotTables) -> Iterator[Sentence]:
    rows = [(device, failure) for device in tables.devices for failure in device.failures]
    for device, failure in rows[:_MOST_FAILURES]:
        segments = run.record.devices[device.track_id].segments
        is_expandable = any(segment.is_expandable for segment in segments)
        yield CouldNotGet(device=device.name, request=failure, is_expandable=is_expandable)


def _peak(tables: SnapshotTables) -> Iterator[Sentence]:
    highest = tables.highest
    if highest.peak_allocated:
        yield MostHeld(device=highest, of=len(tables.devices))


def _unused(tables: SnapshotTables) -> Iterator[Sentence]:
    worst = max(tables.devices, key=lambda device: device.unused)
    if worst.unused > _LEAST_UNUSED * worst.peak_reserved:
        yield ReservedUnused(device=worst)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
