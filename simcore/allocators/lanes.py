"""The lanes of memory snapshots: one for each device, below it one for each of its segments."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Mapping
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

from simcore.allocators.span_words import AllocatorSpanWords
from simcore.ranks import RankSet
from simcore.snapshots.call_sites import site_text
from simcore.snapshots.history import BEFORE, NEVER, NO_STACK
from simcore.trace.accounts import Ranges
from simcore.trace.lane_spans import KINDS, TIME, Content, Figure, make_spans
from simcore.trace.lanes import NATURAL, LaneFacts, Lanes, LaneTrack, OpSearchColumns, Sums, Wait
from simcore.trace.spans import NONE
from simcore.units import plural

if TYPE_CHECKING:
    from simcore.allocators.run import SnapshotAnalysis

ALLOCATED, RELEASED, RESERVED, IDLE = map(KINDS.index, ("allocated", "released", "reserved", "idle"))
# The lane of a device is drawn where so much of its peak is allocated.
NEAR_PEAK = 0.9
_WORDS = {"allocated": f"within {100 - 100 * NEAR_PEAK:.0f} % of its peak", "idle": "below"}
_FIGURES = tuple(Figure(_WORDS.get(name, name), name, "" if name == "idle" else name, 0) for name in KINDS)
_TITLE = ("  memory, near the peak", " near peak")


class AllocatorLanes(Lanes):
    """The lanes of snapshots. The `op` of a span is its allocation; NONE of the lane of a device."""

    results: SnapshotAnalysis

    def __init__(self, results: SnapshotAnalysis) -> None:
        super().__init__(results)
        self.histories = results.histories
        self._index_of = {device.id: index for index, device in enumerate(results.record.devices)}
        self._rows: dict[int, dict[int, list[int]]] = {}

    @cached_property
    def facts(self) -> LaneFacts:
        count = len(self.histories)
        return LaneFacts(
            self.results.length, range(count), plural(count, "device"), (NATURAL,),
            axis=TIME._replace(title=_TITLE), timed=False, layered=True, filled=True,
        )  # fmt: skip

    @cached_property
    def words(self) -> AllocatorSpanWords:
        return AllocatorSpanWords(self.results, self)

    # -- devices -------------------------------------------------------------------------

    def _find_track(self, track_id: int) -> LaneTrack:
        device = self.results.record.devices[track_id]
        note = "!" if self.histories[track_id].failures else ""
        return LaneTrack(track_id, RankSet.of((device.id,)), device.name, title_note=note)

    def own_track_id(self, rank: int) -> int | None:
        return self._index_of.get(rank)

    def missing_text(self, rank: int | None, stage: int | None, microbatch: int | None) -> str:
        if rank is not None and rank not in self._index_of:
            return f"there is no device {rank}"
        if stage is not None:
            return "snapshots do not tell stages"
        return "snapshots do not tell micro-batches" if microbatch is not None else ""

    def rank_words(self, rank: int) -> str:
        track_id = self._index_of.get(rank)
        return f"device {rank}" if track_id is None else self.results.record.devices[track_id].name

    # -- spans ---------------------------------------------------------------------------

    def _rows_of(self, track_id: int) -> dict[int, list[int]]:
        """Returns the allocations of each segment."""
        if track_id not in self._rows:
            rows: dict[int, list[int]] = {}
            for row, arena in enumerate(self.histories[track_id].arena_of):
                rows.setdefault(arena, []).append(row)
            self._rows[track_id] = rows
        return self._rows[track_id]

    def _find_streams(self, track_id: int) -> Mapping[str, str]:
        """Returns the segments, the largest first."""
        arenas = self.histories[track_id].arenas
        order = sorted(range(len(arenas)), key=lambda index: (-arenas[index].size, arenas[index].address))
        return {str(index): _segment_title(arenas[index].size, arenas[index].address) for index in order}

    def stream_of(self, track_id: int, span: int) -> str:
        arena = self.histories[track_id].arena_of[span]
        return str(arena) if arena >= 0 else ""

    def _find_content(self, track_id: int, stream: str | None) -> Content:
        if stream is None:
            spans = make_spans(self._near_peak(track_id))
            return Content(spans, spans, covers_all=True)
        history, length = self.histories[track_id], self.results.length
        arena = history.arenas[int(stream)]
        rows, times_held = list[tuple[int, int, int, int]](), list[tuple[int, int]]()
        for row in self._rows_of(track_id).get(int(stream), ()):
            start, over, free = self.results.times_held(track_id, row)
            rows.append((start, max(over, start + 1), row, ALLOCATED))
            times_held.append((start, max(over, start + 1)))
            if free > over:
                rows.append((over, free, row, RELEASED))
        first = self.results.time_of(track_id, arena.begin)
        last = length if arena.end == NEVER else self.results.time_of(track_id, arena.end)
        return Content(make_spans(sorted(rows)), make_spans(_fill(times_held, first, max(last, first + 1))))

    def _near_peak(self, track_id: int) -> list[tuple[int, int, int, int]]:
        """Returns (start, end, NONE, kind) of the stretches in which a device is near its peak, or not."""
        history, times = self.histories[track_id], self.results.times(track_id)
        limit = NEAR_PEAK * history.allocated_at(history.peak)
        edges = [0, *times, self.results.length]
        levels = [history.base_allocated, *history.allocated]
        stretches: list[tuple[int, int, int, int]] = []
        for (start, end), level in zip(pairwise(edges), levels, strict=True):
            kind = ALLOCATED if level >= limit and level else IDLE
            if end <= start:
                continue
            if stretches and stretches[-1][3] == kind:
                stretches[-1] = stretches[-1][0], end, NONE, kind
            else:
                stretches.append((start, end, NONE, kind))
        return stretches or [(0, self.results.length, NONE, IDLE)]

    def _other_kinds(self) -> Collection[str]:
        has_released = any(
            completed > released != NEVER
            for history in self.histories
            for completed, released in zip(
                history.allocations.completed, history.allocations.released, strict=True
            )
        )
        return {"allocated", "reserved", *(("released",) if has_released else ())}

    def span_name(self, track_id: int, op: int) -> tuple[str, str]:
        return ("", "") if op == NONE else (self.words.site(track_id, op), "")

    def names(self) -> Collection[str]:
        devices = self.results.record.devices
        return {text for device in devices for text in map(site_text, device.stacks) if text}

    def _find_search_columns(self, track_id: int) -> OpSearchColumns:
        history = self.histories[track_id]
        stacks, of = history.device.stacks, history.allocations
        names: list[tuple[str, ...]] = [(site_text(text), text.replace("\t", " ")) for text in stacks]
        names.append(("before the events",))
        unknown = len(stacks)
        name = array("i", [unknown if stack == NO_STACK else stack for stack in of.stack])
        # What is no allocation counts from the end.
        name.append(len(names))
        names.append(())
        words = [frozenset({"allocated"}), frozenset({"allocated", "before"}), frozenset[str]()]
        index = array("i", [1 if begin == BEFORE else 0 for begin in of.begin])
        index.append(2)
        return OpSearchColumns(names, name, words, index, bytes(len(name)))

    # -- figures -------------------------------------------------------------------------

    @cached_property
    def _longest_sums(self) -> Sums:
        def stretches(track_id: int) -> tuple[array[int], bytearray]:
            spans = self.spans(track_id, None)
            return array("q", [*spans.start, self.results.length]), spans.category

        return Sums(Ranges(stretches, [1] * len(self.histories), len(KINDS)), _FIGURES)

    def measure_ns(self, measure: str, track_id: int) -> int:
        return 0

    def _end_ns(self, track_id: int) -> int:
        return self.results.time_of(track_id, len(self.histories[track_id].events) - 1)

    def _find_waits(self, track_id: int) -> list[Wait]:
        return []


def _segment_title(size: int, address: int) -> str:
    unit = next((one for one in ((10**9, "G"), (10**6, "M"), (10**3, "k")) if size >= one[0]), (1, "B"))
    return f"{size / unit[0]:.3g}{unit[1]} {address & 0xFFFFFFF:07x}"


def _fill(times_held: list[tuple[int, int]], first: int, last: int) -> list[tuple[int, int, int, int]]:
    """Returns (start, end, NONE, kind): where anything is allocated, and where a segment is reserved
    alone.
    """
    rows: list[tuple[int, int, int, int]] = []
    at = first
    for start, end in sorted(times_held):
        if start > at:
            rows.append((at, start, NONE, RESERVED))
        if end > max(at, start):
            rows.append((max(at, start), end, NONE, ALLOCATED))
        at = max(at, end)
    if at < last:
        rows.append((at, last, NONE, RESERVED))
    return rows
