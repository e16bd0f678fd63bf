"""How the streams of a track are used, and how long it communicates in a step.

Spans that hold compute back do not overlap it, so that only the other spans are intersected with compute.
Repeats are computed once.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, compress
from operator import gt, le

from simcore.records import NamedTuple
from simcore.trace.accounts import Accounts
from simcore.trace.figures import StreamUse
from simcore.trace.spans import COMMUNICATES, LAUNCHED, NONE, Column, Repeat, Spans, Trace
from simcore.trace.tables import SpentByLabel
from simcore.units import add_to_column

# A table for `translate`: 1 for spans that compute may overlap.
_MAY_OVERLAP = bytes(level != COMMUNICATES for level in range(256))
_ComputedUntil = Callable[[int], int]


class Times(NamedTuple):
    """Times in columns, ns."""

    start: Sequence[int]
    end: Sequence[int]

    @property
    def ns(self) -> int:
        """Their total length, ns."""
        return sum(self.end) - sum(self.start)

    def computed_ns(self, computed: _ComputedUntil) -> int:
        """Returns how much of them a track computes, ns. computed: of `Accounts.computed_until`."""
        return sum(map(computed, self.end)) - sum(map(computed, self.start))


def merge_times(times: Iterable[Times]) -> Times:
    """Returns the union of times as disjoint times, ascending."""
    start: list[int] = []
    end: list[int] = []
    for part in times:
        start += part.start
        end += part.end
    if not all(map(le, start, start[1:])):
        order = sorted(range(len(start)), key=start.__getitem__)
        start, end = [*map(start.__getitem__, order)], [*map(end.__getitem__, order)]
    if all(map(le, end, start[1:])):
        # One after another, as on all streams but queues: it saves 4 of 16 ms of seed 002.
        return Times(start, end)
    reached = [*accumulate(end, max, initial=NONE)]
    begins = [*map(gt, start, reached)]
    return Times([*compress(start, begins)], [*compress(reached, begins)][1:] + reached[-1:])


class _Lane(NamedTuple):
    """The spans of one stream. all: times of all; overlapping: times of those that compute may overlap."""

    all: list[Times]
    overlapping: list[Times]

    def measure_use(self, computed: _ComputedUntil) -> tuple[int, int]:
        """Returns (ns in which at least one runs, how much of it the track computes)."""
        every = merge_times(self.all)
        return every.ns, (
            every if self.overlapping == self.all else merge_times(self.overlapping)
        ).computed_ns(computed)


def _merge_lanes(lanes: Iterable[_Lane]) -> _Lane:
    together = _Lane([], [])
    for lane in lanes:
        together.all.extend(lane.all)
        together.overlapping.extend(lane.overlapping)
    return together


class TrackStreams(NamedTuple):
    """The use of the streams of one rank of a track."""

    streams: Sequence[StreamUse]
    """The use of each stream that it has."""
    comm_ns: int
    """How long anything is sent, ns."""
    overlapped_ns: int | None
    """How much of that the rank computes, ns; None where a trace does not give it."""


def track_streams(trace: Trace, track: int, accounts: Accounts, silent: Collection[str] = ()) -> TrackStreams:
    """Returns how the streams of a track are used, by the trace's column `stream`; a span without a label
    there computes. silent: streams that send nothing. While a span in a repeat runs, nothing outside of the
    repeat runs on its stream.
    """
    column = trace.column("stream")
    silent_labels = [label for label, stream in enumerate(column.labels) if stream in silent]
    walk = _Walk(trace, track, accounts, column, silent_labels)
    exposed = SpentByLabel(trace, track, accounts, column).exposed
    used, comm_ns, overlapped_ns = walk.measure_streams()
    streams = [StreamUse(column.labels[label], *ns, exposed.get(label, 0)) for label, ns in used.items()]
    return TrackStreams(streams, comm_ns, overlapped_ns)


def compute_stream(accounts: Accounts) -> StreamUse:
    """Returns the use of the stream on which a track computes, where nothing else runs."""
    return StreamUse("compute", accounts.busy_ns, 0, 0)


class _RepeatUse(NamedTuple):
    """What a repeat does, with times relative to its begin."""

    streams: Mapping[int, tuple[int, int]]
    """By label (ns in which at least one span runs, how much of it the track computes)."""
    times: Times
    """The times of all that sends, disjoint."""
    comm_ns: int
    """How long anything is sent, ns."""
    overlapped_ns: int
    """How much of that the track computes, ns."""


class _Walk:
    """The walk over one track. repeat_starts, uses: when each closed repeat begins, and what it does."""

    def __init__(
        self, trace: Trace, track: int, accounts: Accounts, column: Column, silent: Collection[int]
    ) -> None:
        self.trace, self.track, self.accounts = trace, track, accounts
        self.column, self.silent = column, silent
        self.spans: Spans = trace.spans[track]
        self.begins = _stream_starts(self.spans)
        self.labels = column.of[track]
        self.repeat_starts: list[int] = []
        self.uses: list[_RepeatUse] = []
        self.cache: dict[object, _RepeatUse] = {}

    @cached_property
    def computed(self) -> _ComputedUntil:
        """How much the track computes until a moment: of `Accounts.computed_until`."""
        return self.accounts.computed_until()

    def measure_streams(self) -> tuple[Mapping[int, tuple[int, int]], int, int]:
        """Returns (by label (ns in which at least one span runs, how much of it the track computes), both
        figures of all that sends, whatever its label).
        """
        lanes: dict[int, _Lane] = {}
        first = 0
        for repeat in self.spans.repeats:
            if repeat.is_closed:
                self._gather(lanes, first, repeat.first)
                self._add_repeat(repeat)
                first = repeat.last
        self._gather(lanes, first, len(self.spans))
        self._receive(lanes)
        sums = {label: lane.measure_use(self.computed) for label, lane in lanes.items()}
        for use in self.uses:
            for label, (busy, overlapped) in use.streams.items():
                before = sums.get(label, (0, 0))
                sums[label] = before[0] + busy, before[1] + overlapped
        return sums, *self._measure_communication(self._sending(lanes))

    def _gather(self, lanes: dict[int, _Lane], first: int, last: int) -> None:
        """Adds spans first..last - 1 to their streams."""
        span_ids: dict[int, list[int]] = {}
        labels = self.labels
        for span in compress(range(first, last), map(NONE.__ne__, labels[first:last])):
            span_ids.setdefault(labels[span], []).append(span)
        spans = self.spans
        for label, label_spans in span_ids.items():
            lane = lanes.setdefault(label, _Lane([], []))
            times = Times(*([*map(of.__getitem__, label_spans)] for of in (self.begins, spans.end)))
            lane.all.append(times)
            if not self.trace.overlaps:
                may_overlap = [*map(_MAY_OVERLAP.__getitem__, map(spans.level.__getitem__, label_spans))]
                times = Times([*compress(times.start, may_overlap)], [*compress(times.end, may_overlap)])
            lane.overlapping.append(times)

    def _receive(self, lanes: dict[int, _Lane]) -> None:
        """Adds spans that arrive from other tracks."""
        by_code = self.column.labels_by_code(self.trace, self.track)
        for code, of, span in self.trace.arrivals(self.track):
            sender_spans = self.trace.spans[of]
            times = Times((sender_spans.ready[span],), (sender_spans.end[span],))
            lane = lanes.setdefault(by_code[code], _Lane([], []))
            lane.all.append(times)
            lane.overlapping.append(times)

    def _sending(self, lanes: Mapping[int, _Lane]) -> _Lane:
        return _merge_lanes(lane for label, lane in lanes.items() if label not in self.silent)

    def _add_repeat(self, repeat: Repeat) -> None:
        own, spans = slice(repeat.first, repeat.last), self.spans
        start = min(spans.ready[own])
        times = (add_to_column(column[own], -start).tobytes() for column in (spans.ready, spans.end))
        key = repeat.pattern, *times
        use = self.cache.get(key)
        if use is None:
            lanes: dict[int, _Lane] = {}
            self._gather(lanes, repeat.first, repeat.last)
            sending = self._sending(lanes)
            disjoint = merge_times(sending.all)
            use = self.cache[key] = _RepeatUse(
                {label: lane.measure_use(self.computed) for label, lane in lanes.items()},
                Times(*(add_to_column(array("q", column), -start) for column in disjoint)),
                *sending.measure_use(self.computed),
            )
        self.repeat_starts.append(start)
        self.uses.append(use)

    def _measure_communication(self, outside: _Lane) -> tuple[int, int]:
        """Returns (ns in which at least one span that sends runs, how much of it the track computes).

        outside: what sends in no repeat.
        """
        comm = merge_times(outside.all).ns + sum(use.comm_ns for use in self.uses)
        overlapping = merge_times(outside.overlapping)
        overlapped = sum(use.overlapped_ns for use in self.uses)
        if overlapping.end:
            overlapped += overlapping.computed_ns(self.computed)
        # Time that lies in a repeat too was counted twice.
        for begin, over in zip(*overlapping, strict=True):
            for first, last in self._find_inside(begin, over):
                comm -= last - first
                overlapped -= self.computed(last) - self.computed(first)
        return comm, overlapped

    def _find_inside(self, begin: int, over: int) -> Iterator[tuple[int, int]]:
        """Yields the times in which repeats send between two times, disjoint."""
        for index in range(max(bisect_right(self.repeat_starts, begin) - 1, 0), len(self.repeat_starts)):
            repeat_start, (start, end) = self.repeat_starts[index], self.uses[index].times
            if repeat_start >= over:
                return
            for at in range(bisect_right(end, begin - repeat_start), len(end)):
                if start[at] + repeat_start >= over:
                    break
                yield max(start[at] + repeat_start, begin), min(end[at] + repeat_start, over)


def _stream_starts(spans: Spans) -> array[int]:
    """Returns from when on each span occupies its stream; a launched one does so while it waits, too."""
    if LAUNCHED not in spans.level:
        return spans.ready
    columns = zip(spans.level, spans.start, spans.ready, strict=True)
    return array("q", [start if level == LAUNCHED else ready for level, start, ready in columns])


def mean_use(uses: Iterable[tuple[Sequence[StreamUse], int]]) -> list[tuple[StreamUse, int]]:
    """Returns (the mean of all ranks, busy ns of the rank that is busy longest) of each stream, in the order
    of their first appearance. uses: the streams of a rank, and how many ranks have these.
    """
    by_name: dict[str, list[tuple[StreamUse, int]]] = {}
    world = 0
    for streams, ranks in uses:
        world += ranks
        for use in streams:
            by_name.setdefault(use.stream, []).append((use, ranks))
    return [
        (_mean_stream(name, several, world), max(use.busy_ns for use, _ in several))
        for name, several in by_name.items()
    ]


def _mean_stream(name: str, uses: Sequence[tuple[StreamUse, int]], world: int) -> StreamUse:
    """Returns the mean of one stream; its overlap is None where that of any rank is not known."""
    busy = sum(ranks * use.busy_ns for use, ranks in uses)
    exposed = sum(ranks * use.exposed_ns for use, ranks in uses)
    overlapped_ns = [ranks * use.overlapped_ns for use, ranks in uses if use.overlapped_ns is not None]
    overlapped = round(sum(overlapped_ns) / world) if len(overlapped_ns) == len(uses) else None
    return StreamUse(name, round(busy / world), overlapped, round(exposed / world))
