"""The spans of a run, for formats that write them down: of each track in columns, with what each span is.

Spans that overlap get rows: in a thread of a trace they lie beside or inside each other, never across.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from itertools import islice
from typing import TypeVar

from simcore.diagnostics import Diagnostic
from simcore.ranks import RankSet
from simcore.records import NamedTuple
from simcore.units import plural


def disjoint_rows(spans: Iterable[tuple[int, int]]) -> list[int]:
    """The lowest free row for each of the spans (start, end), so that no row has two at a time.

    spans: ascending by start.
    """
    rows: list[int] = []
    free: list[int] = []
    open_spans: list[tuple[int, int]] = []
    for start, end in spans:
        while open_spans and open_spans[0][0] <= start:
            heappush(free, heappop(open_spans)[1])
        row = heappop(free) if free else len(open_spans)
        heappush(open_spans, (end, row))
        rows.append(row)
    return rows


def nested_rows(spans: Iterable[tuple[int, int]]) -> list[int]:
    """The first row for each of the spans (start, end) in which it lies beside or wholly inside others.

    spans: ascending by start, of equal starts the longest first.
    """
    rows: list[int] = []
    # Per row the ends of the spans that are open, the innermost last.
    open_ends: list[list[int]] = []
    for start, end in spans:
        row = 0
        for ends in open_ends:
            while ends and ends[-1] <= start:
                ends.pop()
            if not ends or end <= ends[-1]:
                break
            row += 1
        else:
            open_ends.append([])
        open_ends[row].append(end)
        rows.append(row)
    return rows


_TEXTS_PER_CHUNK = 1024
_MAX_CACHED = 10_000
Built = TypeVar("Built")


def encode_in_chunks(texts: Iterable[str]) -> Iterator[tuple[bytes, int]]:
    """Texts as bytes, many at a time, with how many they are."""
    remaining = iter(texts)
    while batch := list(islice(remaining, _TEXTS_PER_CHUNK)):
        yield "".join(batch).encode(), len(batch)


def build_cached(keys: Iterable[Hashable], make: Callable[[int], Built]) -> Iterator[Built]:
    """What `make` gives for each place; asked once of places with equal keys, as long as these are few."""
    cached: dict[Hashable, Built] = {}
    for index, key in enumerate(keys):
        built = cached.get(key)
        if built is None:
            if len(cached) >= _MAX_CACHED:
                cached.clear()
            built = cached[key] = make(index)
        yield built


# What `known` of a fact says where nobody knows when a span began, or when it was over.
NO_START = ("placed",)
NO_END = ("launch", *NO_START)


class Fact(NamedTuple):
    """What is equal for all runs of a row's op, or is known of an operation that was recorded.

    kind: `compute`, a collective's name, `send` or `receive`; `operation` or `sub-operation`. stream: that it
    runs on. layer: the name of the row or operation, made safe and cut; "" for a pipeline transfer. phase: in
    which part of a pass, of what was recorded its category. row: of the file from 0, of what was recorded its
    number on its rank, line: from 1; -1 for a pipeline transfer. bytes: of the whole buffer, -1 if it has
    none or they are not known. group: kind of the collective's group, members: its size; "" and 0 where there
    is none. blocking: 1 or 0, -1 of what is no collective. other_stage: where a transfer goes or comes from,
    -1 of what is none. state: that a recorded operation states. known: how its times are: `measured`;
    `launch`, where only its start is known; `placed` at the end of the one before, for want of a time;
    `fused`, the times of the other line of the same operation; "" of what was not recorded.
    """

    kind: str
    stream: str
    layer: str
    phase: str
    row: int
    line: int
    bytes: int
    collective: str = ""
    group: str = ""
    members: int = 0
    blocking: int = -1
    other_stage: int = -1
    state: str = ""
    time_source: str = ""


class ArrivedTransfer(NamedTuple):
    """A transfer that arrives, times in ns. message: its number, as wide as all are. sent_on: the number of
    the thread of its sender. source: the stage it comes from. consumer: the first compute behind it that
    takes time, an index into the spans of this track; -1 if there is none before the rank waits again.
    """

    message: str
    fact: Fact
    sent_on: int
    start: int
    end: int
    microbatch: int
    source: int
    consumer: int


class Waiting(NamedTuple):
    """A time in which a rank does not compute. name: its account. fact: of what it waits for, if of any."""

    name: str
    start: int
    end: int
    fact: Fact | None


class Threads(NamedTuple):
    """What spans are drawn on. named: (number, name) in their order. of: of each span its number."""

    names: Sequence[tuple[int, str]]
    span_threads: Sequence[int]


class TrackSpans(ABC):
    """The spans of ranks that do the same, as columns. ranks: those that are written. stage: None where it is
    not known. start, end: ns. microbatch: from 0, -1 outside of them.
    """

    ranks: Sequence[int]
    stage: int | None
    start: Sequence[int]
    end: Sequence[int]
    microbatch: Sequence[int]

    def __len__(self) -> int:
        return len(self.start)

    @abstractmethod
    def kinds(self) -> Iterable[Hashable]:
        """What the facts of each span hang on, and of one that has bytes how long it takes."""

    @abstractmethod
    def fact(self, span: int) -> Fact:
        """The facts of a span. Made anew each time: a track may have millions."""

    @abstractmethod
    def title(self, rank: int) -> tuple[str, str]:
        """(the name of a rank, more words on it)."""

    @abstractmethod
    def assign_threads(self, received: Sequence[ArrivedTransfer]) -> tuple[TrackSpans, Threads]:
        """The spans in the order in which they are drawn, and on what they and all that is received are."""

    def received(self) -> Iterable[ArrivedTransfer]:
        """What the ranks receive, in the order in which they wait for it, if it is no span of theirs."""
        return ()

    def waiting(self, received: Sequence[ArrivedTransfer]) -> Iterable[Waiting]:
        """Where they stand still, in the order of time, if it is no span; also for what is received."""
        return ()

    def groups(self, rank: int) -> Mapping[str, str]:
        """The ranks of the groups of a rank, in words, by kind."""
        return {}

    def sender(self, rank: int, source: int) -> int | None:
        """The rank of stage `source` that sends to a rank; None if it is not written."""
        return None


# Between two spans, each end as (rank, number of the thread, ns).
Arrow = tuple[tuple[int, int, int], tuple[int, int, int]]


class ExportedSpans(NamedTuple):
    """The spans that were asked for. facts: of the run, by name. who: does them, in a few words; how: they
    are told, in a few more; in_one_line: what a line has of several ranks. said: what is to be said of them.
    arrows: between tracks, known once they are drawn.
    """

    path: str
    facts: Mapping[str, str]
    tracks: Sequence[TrackSpans]
    ranks_text: str
    diagnostics: tuple[Diagnostic, ...]
    suffix: str = ""
    in_one_line: str = ""
    arrows: Callable[[], Iterable[Arrow]] = tuple

    @property
    def total(self) -> int:
        """Spans of all ranks that are written."""
        return sum(len(track) * len(track.ranks) for track in self.tracks)

    @property
    def what(self) -> str:
        """What is written, in a few words."""
        return f"{self.ranks_text}, {plural(self.total, 'span')}{self.suffix}"


def ranks_in_words(ranks: Iterable[int]) -> str:
    """Ranks as reports print them: `0-63`, `0-7+64*16`."""
    return RankSet.of(ranks).text()
