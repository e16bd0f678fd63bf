"""The words of an allocation: where it was made, how large it is, when it was given back."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import TYPE_CHECKING

from simcore.diagnostics import printable_within
from simcore.ranks import RankSet
from simcore.snapshots.call_sites import site_text
from simcore.snapshots.history import BEFORE, NEVER, NO_STACK
from simcore.trace.findings import Dependency
from simcore.trace.lane_spans import SpanSummary
from simcore.trace.lanes import Lanes, SpanWords
from simcore.trace.spans import NONE
from simcore.units import byte_size, duration, percent
from simcore.unpickling.stacks import frames_of

if TYPE_CHECKING:
    from simcore.allocators.run import SnapshotAnalysis

_MOST_FRAMES = 16
_UNKNOWN = "before the events"


class AllocatorSpanWords(SpanWords):
    """The words of allocations."""

    def __init__(self, results: SnapshotAnalysis, lanes: Lanes) -> None:
        super().__init__(lanes)
        self._results = results

    def site(self, track_id: int, row: int) -> str:
        """Returns where an allocation was made, raw text of the file."""
        history = self._results.histories[track_id]
        unknown = _UNKNOWN if history.allocations.begin[row] == BEFORE else "no stack recorded"
        return site_text(self._stack(track_id, row)) or unknown

    def _stack(self, track_id: int, row: int) -> str:
        history = self._results.histories[track_id]
        stack = history.allocations.stack[row]
        return "" if stack == NO_STACK else history.device.stacks[stack]

    def summarize(self, track_id: int, stream: str | None, index: int | None, ranks: RankSet) -> SpanSummary:
        whose = (self._results.record.devices[track_id].name,)
        row = NONE if index is None else self.op(track_id, stream, index)
        if row == NONE:
            is_of_device = index is not None and stream is None
            return SpanSummary(self._level(track_id, index or 0) if is_of_device else "", whose)
        of = self._results.histories[track_id].allocations
        start, end, _ = self._results.times_held(track_id, row)
        text = f"{byte_size(of.size[row])} of {self.span_name(track_id, row)}"
        is_held = of.released[row] == NEVER
        length = "held to the end" if is_held else duration(end - start)
        times = f"since {self._axis.clock(start)}" if is_held else self.format_times(start, end)
        return SpanSummary(text, whose, times, length, details=f"at {of.address[row]:#x}")

    def _level(self, track_id: int, index: int) -> str:
        """Returns how much is allocated and reserved in a stretch of the lane of a device."""
        spans, history = self._lanes.spans(track_id, None), self._results.histories[track_id]
        times = self._results.times(track_id)
        low, high = (bisect_left(times, edge) for edge in (spans.start[index], spans.end[index]))
        before = low - 1 if low else BEFORE
        allocated, reserved = (
            max([at(before), *column[low:high]])
            for at, column in (
                (history.allocated_at, history.allocated), (history.reserved_at, history.reserved)
            )
        )  # fmt: skip
        return f"up to {byte_size(allocated)} allocated, {byte_size(reserved)} reserved"

    def side_note(self, track_id: int, stream: str | None, index: int, wide: bool, rank: int | None) -> str:
        row = self.op(track_id, stream, index)
        if row == NONE:
            return ""
        history = self._results.histories[track_id]
        of, peak = history.allocations, history.peak
        at_peak = of.begin[row] <= peak and (of.released[row] == NEVER or of.released[row] > peak)
        whole = history.allocated_at(peak)
        if not at_peak or not whole:
            return "not held at the peak"
        return f"{percent(of.size[row], whole)} % of the peak"

    def detail_rows(
        self, track_id: int, stream: str | None, index: int, rank: int | None
    ) -> list[tuple[str, str]]:
        row = self.op(track_id, stream, index)
        if row == NONE:
            return [("memory", "screens 1 and 3 have what is held at the peak")]
        history = self._results.histories[track_id]
        of = history.allocations
        start, over, completed = self._results.times_held(track_id, row)
        rows = [
            ("allocated in", self.span_name(track_id, row)),
            ("size", f"{byte_size(of.size[row])} ({of.size[row]} B), as it was asked for"),
            ("address", f"{of.address[row]:#x}"),
            ("allocated", _UNKNOWN if of.begin[row] == BEFORE else self._axis.clock(start)),
            ("given back", "not before the end" if of.released[row] == NEVER else self._axis.clock(over)),
        ]
        if of.released[row] != NEVER and completed > over:
            rows.append(("free again", f"{self._axis.clock(completed)}, when streams had ended with it"))
        rows.append(("peak", self.side_note(track_id, stream, index, True, rank)))
        arena = history.arena_of[row]
        if arena >= 0:
            segment = history.arenas[arena]
            noun = "expandable segment" if segment.is_expandable else "segment"
            rows.append(("in", f"{noun} of {byte_size(segment.size)} at {segment.address:#x}"))
        frames = frames_of(self._stack(track_id, row))
        rows += [
            ("frame", printable_within(f"{name}  {file}:{line}", 100))
            for name, file, line in frames[:_MOST_FRAMES]
        ]
        return rows

    def dependencies(
        self, track_id: int, stream: str | None, index: int, rank: int | None, direction: int
    ) -> Sequence[Dependency]:
        return []

    def span_name(self, track_id: int, span: int) -> str:
        return "nothing" if span == NONE else printable_within(self.site(track_id, span), 50)

    def stream_showing(self, stream: str | None, of: Dependency) -> str | None:
        return None if stream is None else self._lanes.stream_of(of.track_id, of.span)
