"""One trace for runs of every source: the columns that analyses read.

A span is something that ran on a track (a rank, or a class of equal ranks). From `start` to `ready` it waits
for what comes from elsewhere, from `ready` to `end` it does its own work. A wait is time in which a track
stands still for a span that does not hold it: the join of a collective that overlaps compute, the receipt of
another track's transfer.

Columns are kept by track: tracks that run the same program share what is equal, and an engine's times are
taken as they are. Of 1.3 M spans of 512 ranks only the times are each rank's own: 16 MB where one table of
all takes 104.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

from simcore.records import NamedTuple, Struct, field
from simcore.trace.accounts import AccountNames

NONE = -1

# The levels: of several spans that run at once on a track the one with the lowest level counts. COMPUTES and
# COMMUNICATES hold the track. NEVER: the span overlaps compute, and a wait says when the track stood still
# for it. Of LAUNCHED the first to begin counts, at all other levels the last to begin. UNDER gives way to
# LAUNCHED.
COMPUTES, COMMUNICATES, HOSTS, WAITS, BUBBLES = range(5)
OVERLAPS, OVERLAP_WAITS, SENDS, SEND_WAITS, LAUNCHED, UNDER = range(5, 11)
COPIES = BUBBLES
LEVELS, NEVER = 11, 255

Figure = TypeVar("Figure")


def _ints() -> array[int]:
    return array("i")


def _longs() -> array[int]:
    return array("q")


class Repeat(NamedTuple):
    """Spans first..last - 1 of a track, issued one after another, and the waits among them."""

    first: int
    """The first span."""
    last: int
    """The span behind the last one."""
    first_wait: int
    """The first wait."""
    last_wait: int
    """The wait behind the last one."""
    pattern: object
    """Its key: others with an equal pattern run the same and wait the same."""
    lanes: Sequence[tuple[int, int]]
    """(lane, first span on it) of each lane in it."""
    is_closed: bool
    """Whether all of its spans are over before the track goes on behind it."""


class Spans(Struct):
    """Columns of equal length over the spans of one track, in the order of issue."""

    start: array[int] = field(default_factory=_longs)
    """When each begins to wait for what comes from elsewhere, ns from the start of the step."""
    ready: array[int] = field(default_factory=_longs)
    """When its own work begins, ns."""
    end: array[int] = field(default_factory=_longs)
    """When it ends, ns."""
    category: bytearray = field(default_factory=bytearray)
    """The index into `Trace.categories` of its own work."""
    level: bytearray = field(default_factory=bytearray)
    """Its level: see above."""
    lane: bytearray = field(default_factory=bytearray)
    """What it runs on; empty where that is not known."""
    repeats: Sequence[Repeat] = ()
    """The repeats in the track, ascending."""

    def __len__(self) -> int:
        return len(self.end)


class Waits(Struct):
    """Columns over the waits of one track, in the order of time: it stands still from `start` to `end`."""

    start: array[int] = field(default_factory=_longs)
    """When the track begins to wait, ns."""
    ready: array[int] = field(default_factory=_longs)
    """From when on the awaited span runs, ns."""
    end: array[int] = field(default_factory=_longs)
    """When the wait is over, ns."""
    of: array[int] = field(default_factory=_ints)
    """The track of the awaited span, NONE where time passes by itself."""
    span: array[int] = field(default_factory=_ints)
    """The awaited span, NONE where time passes by itself."""
    category: bytearray = field(default_factory=bytearray)
    """The category of the time from `ready` on."""
    before: array[int] = field(default_factory=_ints)
    """The span of the track before which it waits."""

    def __len__(self) -> int:
        return len(self.end)

    def add(self, times: tuple[int, int, int], of: int, span: int, category: int, before: int) -> None:
        """Adds a wait behind the last one. times: (start, ready, end)."""
        self.start.append(times[0])
        self.ready.append(times[1])
        self.end.append(times[2])
        self.of.append(of)
        self.span.append(span)
        self.category.append(category)
        self.before.append(before)


def wait_code(wait: int) -> int:
    """Returns the code that segments have for a wait for another track, -2 for 0: its own inverse."""
    return -2 - wait


class Column(NamedTuple):
    """The labels of spans in one table: names, rows of a workload, groups."""

    labels: Sequence[Any]
    """All labels."""
    of: Sequence[Sequence[int]]
    """By track the index into `labels` of each span, NONE of one that is not counted; tracks of one program
    share it.
    """
    received_labels: Sequence[int] = ()
    """By label the label on the track that receives the span; () where it is the same."""
    least_ns: int = 0
    """A span that takes less time is not counted as a call."""
    within: Sequence[int] = ()
    """By label the label that contains it, or NONE; () where none contains another."""

    def labels_by_code(self, trace: Trace, track: int) -> Sequence[int]:
        """Returns a table from the codes in segments of a track to indices of `labels`; NONE for idle."""
        # Codes of waits are negative: they index from the end.
        arrived = [NONE] * (len(trace.waits[track]) + 1)
        for code, of, span in trace.arrivals(track):
            label = self.of[of][span]
            arrived[code] = self.received_labels[label] if self.received_labels else label
        labels = self.of[track]
        if isinstance(labels, array) and len(labels) > len(arrived):
            # Of a million spans a list takes 8 MB more.
            codes = labels[:]
            codes.extend(arrived)
            return codes
        return [*labels, *arrived]


class Trace(Struct, dict=True):
    """Tracks with their spans and waits."""

    spans: Sequence[Spans]
    """The spans of each track."""
    waits: Sequence[Waits]
    """The waits of each track."""
    step_ns: int
    """The step time, ns."""
    categories: AccountNames
    """The accounts that exist."""
    ranks: Sequence[int]
    """How many ranks each track stands for."""
    bubbles: int
    """The category that a track waits for in a bubble, NONE without one."""
    overlaps: bool = False
    """Whether several spans of a track may hold it at once."""
    columns: Mapping[str, Callable[[], Column]] = {}
    """By name, functions that make the columns of labels; each is called once."""
    track_of: Sequence[int] = ()
    """The track of this trace of each track of the run, where equal ranks share one; () where they are the
    same.
    """
    idle_before_input: bool = False
    """Whether a track that waits at the start for its first input is idle: of an inference step."""

    def __len__(self) -> int:
        """The number of its tracks."""
        return len(self.spans)

    def column(self, name: str) -> Column:
        """Returns one of `columns`."""
        if name not in self._cached_columns:
            self._cached_columns[name] = self.columns[name]()
        return self._cached_columns[name]

    @cached_property
    def _cached_columns(self) -> dict[str, Column]:
        return {}

    def span_of(self, track: int, code: int) -> tuple[int, int]:
        """Returns (track, span) of a code in segments of a track: its own, or by `wait_code` another's."""
        if code >= NONE:
            return track, code
        waits, wait = self.waits[track], wait_code(code)
        return waits.of[wait], waits.span[wait]

    def arrivals(self, track: int) -> Iterator[tuple[int, int, int]]:
        """Yields (code, track, span) of each span of another track that a track waits for, in its order."""
        waits = self.waits[track]
        for wait, (of, span) in enumerate(zip(waits.of, waits.span, strict=True)):
            if of not in (track, NONE):
                yield wait_code(wait), of, span

    @cached_property
    def equal_tracks(self) -> list[int]:
        """By track the first one with the same times of the same program: itself, if there is none.

        Where ranks are not folded most tracks equal another one, and figures of one hold for all of them.
        """
        first: dict[object, int] = {}
        return [
            first.setdefault(_times(spans, waits), track)
            for track, (spans, waits) in enumerate(zip(self.spans, self.waits, strict=True))
        ]

    def map_tracks(self, figure: Callable[[int], Figure]) -> list[Figure]:
        """Returns a figure of each track, computed once for equal tracks."""
        figures: list[Figure] = []
        for track, first in enumerate(self.equal_tracks):
            figures.append(figure(track) if first == track else figures[first])
        return figures


def _times(spans: Spans, waits: Waits) -> object:
    columns = (spans.ready, spans.end, waits.start, waits.ready, waits.end)
    return id(spans.category), *(column.tobytes() for column in columns)
