"""One trace for runs of every source: the columns that analyses read.

A span is something that ran on a track (a rank, or a class of equal ranks). From `start` to `ready` it waits
for what comes from elsewhere, from `ready` to `end` it does its own work. A wait is time in which a track
stands still for a span that does not hold it: the join of a collective beside compute, the receipt of
another track's transfer.

Columns are track by track: tracks that run the same program share what is the same, and an engine's times
are taken as they are. Of 1.3 M spans of 512 ranks the times alone are each rank's own: 16 MB where one table
of all takes 104.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

from simcore.records import NamedTuple, Struct, field
from simcore.trace.accounts import AccountNames

NONE = -1

# Which of several spans that run at once on a track counts: the least. COMPUTES and COMMUNICATES hold the
# track; NEVER: beside compute, where a wait says when the track stood still for it. Of LAUNCHED the first
# counts, of all others what began last. UNDER: gives way to what was launched.
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
    """Spans first..last - 1 of a track, issued one after another, and the waits among them: others of the
    same `pattern` run the same and wait alike. lanes: of each lane in it the first span on it. closed:
    whether all of them are over before the track goes on behind it.
    """

    first: int
    last: int
    first_wait: int
    last_wait: int
    pattern: object
    lanes: Sequence[tuple[int, int]]
    is_closed: bool


class Spans(Struct):
    """Of one track, columns of equal length in the order of issue; ns from the start of the step.

    lane: what a span runs on; empty where nothing is known of it. category: index into `Trace.categories`, of
    its own work. level: see above. repeats: what repeats in it, ascending.
    """

    start: array[int] = field(default_factory=_longs)
    ready: array[int] = field(default_factory=_longs)
    end: array[int] = field(default_factory=_longs)
    category: bytearray = field(default_factory=bytearray)
    level: bytearray = field(default_factory=bytearray)
    lane: bytearray = field(default_factory=bytearray)
    repeats: Sequence[Repeat] = ()

    def __len__(self) -> int:
        return len(self.end)


class Waits(Struct):
    """Of one track, in the order of time: it stands still from `start` to `end`, what it waits for is under
    way from `ready` on. of, span: whose span that is and which one, NONE where time passes by itself.
    category: of the time from `ready` on. before: the span of the track before which it waits.
    """

    start: array[int] = field(default_factory=_longs)
    ready: array[int] = field(default_factory=_longs)
    end: array[int] = field(default_factory=_longs)
    of: array[int] = field(default_factory=_ints)
    span: array[int] = field(default_factory=_ints)
    category: bytearray = field(default_factory=bytearray)
    before: array[int] = field(default_factory=_ints)

    def __len__(self) -> int:
        return len(self.end)

    def add(self, times: tuple[int, int, int], of: int, span: int, category: int, before: int) -> None:
        """Adds a wait behind the last. times: (start, ready, end)."""
        self.start.append(times[0])
        self.ready.append(times[1])
        self.end.append(times[2])
        self.of.append(of)
        self.span.append(span)
        self.category.append(category)
        self.before.append(before)


def wait_code(wait: int) -> int:
    """How segments of a track name its wait `number` for another track: 0 is -2. It is its own inverse."""
    return -2 - wait


class Column(NamedTuple):
    """What spans are counted under, in tables: a name, a row of a workload, a group.

    labels: what there is. of: by track, of each span an index into `labels`, NONE of one that is not counted;
    tracks of one program share theirs. received: of each label that of what another track sends, () where it
    is the same.
    least_ns: what takes less time is no call. within: of each label the one that it lies in, or NONE; ()
    where none lies in another.
    """

    labels: Sequence[Any]
    of: Sequence[Sequence[int]]
    received_labels: Sequence[int] = ()
    least_ns: int = 0
    within: Sequence[int] = ()

    def labels_by_code(self, trace: Trace, track: int) -> list[int]:
        """The index into `labels` of what segments of a track name by a code, at that code; NONE of idle."""
        # Codes of waits are negative: those count from behind.
        arrived = [NONE] * (len(trace.waits[track]) + 1)
        for code, of, span in trace.arrivals(track):
            label = self.of[of][span]
            arrived[code] = self.received_labels[label] if self.received_labels else label
        return [*self.of[track], *arrived]


class Trace(Struct, dict=True):
    """Tracks with their spans and waits. categories: the accounts there are. ranks: how many each track
    stands for. bubbles: the category that a track waits for in a bubble, NONE where there is none. overlaps:
    whether several spans of a track may hold it at once. columns: what spans can be counted under, by what
    that is, each made when it is first asked for. track_of: of each track of the run the one here, where
    ranks that ran alike share one; () where they are the same.
    """

    spans: Sequence[Spans]
    waits: Sequence[Waits]
    step_ns: int
    categories: AccountNames
    ranks: Sequence[int]
    bubbles: int
    overlaps: bool = False
    columns: Mapping[str, Callable[[], Column]] = {}
    track_of: Sequence[int] = ()

    def __len__(self) -> int:
        """How many tracks it has."""
        return len(self.spans)

    def column(self, name: str) -> Column:
        """One of `columns`."""
        if name not in self._cached_columns:
            self._cached_columns[name] = self.columns[name]()
        return self._cached_columns[name]

    @cached_property
    def _cached_columns(self) -> dict[str, Column]:
        return {}

    def span_of(self, track: int, code: int) -> tuple[int, int]:
        """(track, span) that segments of a track name by a code: its own, or by `wait_code` another's."""
        if code >= NONE:
            return track, code
        waits, wait = self.waits[track], wait_code(code)
        return waits.of[wait], waits.span[wait]

    def arrivals(self, track: int) -> Iterator[tuple[int, int, int]]:
        """(`wait_code`, track, span) of each span of another track that a track waits for, in its order."""
        waits = self.waits[track]
        for wait, (of, span) in enumerate(zip(waits.of, waits.span, strict=True)):
            if of not in (track, NONE):
                yield wait_code(wait), of, span

    @cached_property
    def equal_tracks(self) -> list[int]:
        """Of each track the first one with the same times of the same program: itself, if none.

        Where ranks are not folded most are like another one: what is asked of one holds for all.
        """
        first: dict[object, int] = {}
        return [
            first.setdefault(_times(spans, waits), track)
            for track, (spans, waits) in enumerate(zip(self.spans, self.waits, strict=True))
        ]

    def map_tracks(self, figure: Callable[[int], Figure]) -> list[Figure]:
        """A figure of each track, asked once of tracks that are alike."""
        figures: list[Figure] = []
        for track, first in enumerate(self.equal_tracks):
            figures.append(figure(track) if first == track else figures[first])
        return figures


def _times(spans: Spans, waits: Waits) -> object:
    columns = (spans.ready, spans.end, waits.start, waits.ready, waits.end)
    return id(spans.category), *(column.tobytes() for column in columns)
