"""The spans of a run, for formats that write spans: each track in columns, with the facts of each span.

Spans that overlap get rows: in a thread of a trace they follow each other or are nested, never cross.
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
    """Returns the lowest free row for each of the spans (start, end), so that no row has two at a time.

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
    """Returns the first row for each of the spans (start, end) in which it is disjoint from or nested in the
    others.

    spans: ascending by start, of equal starts the longest first.
    """
    rows: list[int] = []
    # The ends of the open spans of each row, the innermost last.
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
    """Yields texts as bytes, many at a time, with their number."""
    remaining = iter(texts)
    while batch := list(islice(remaining, _TEXTS_PER_CHUNK)):
        yield "".join(batch).encode(), len(batch)


def build_cached(keys: Iterable[Hashable], make: Callable[[int], Built]) -> Iterator[Built]:
    """Yields what `make` returns for each index; it is called once for equal keys, while these are few."""
    cached: dict[Hashable, Built] = {}
    for index, key in enumerate(keys):
        built = cached.get(key)
        if built is None:
            if len(cached) >= _MAX_CACHED:
                cached.clear()
            built = cached[key] = make(index)
        yield built


# The values of `Fact.time_source` for which the start, or the end, of a span is not known.
NO_START = ("placed",)
# Of an entry of a flight recorder dump that has not ended.
OPEN = "open"
NO_END = ("launch", OPEN, *NO_START)
# The thread of the steps.
STEPS = "steps"


class Fact(NamedTuple):
    """What is equal for all runs of a row's op, or known of a recorded operation."""

    kind: str
    """`compute`, a collective's name, `send` or `receive`; `operation` or `sub-operation`."""
    stream: str
    """The stream that it runs on."""
    layer: str
    """The name of the row or operation, made safe and truncated; "" for a pipeline transfer."""
    phase: str
    """The part of a pass; of a recorded operation its category."""
    row: int
    """The row of the file from 0, or the number of a recorded operation on its rank; -1 for a pipeline
    transfer.
    """
    line: int
    """The line of the file from 1; -1 for a pipeline transfer."""
    bytes: int
    """Bytes of the whole buffer; -1 where there is none or they are not known."""
    collective: str = ""
    group: str = ""
    """The kind of the collective's group; "" for none."""
    members: int = 0
    """The size of the group; 0 for none."""
    blocking: int = -1
    """1 or 0; -1 for what is no collective."""
    other_stage: int = -1
    """The stage at the other end of a transfer; -1 for what is none."""
    state: str = ""
    """The state of a recorded operation."""
    time_source: str = ""
    """How its times are known: `measured`; `launch`: only its start is known; `open`: it has not ended;
    `placed`: at the end of the one before, without a time; `fused`: the times of the other line of the same
    operation; "" for what was not recorded.
    """
    ranks: str = ""
    """Of a recorded call the members of its group, where they are known."""
    step: int = -1
    """Of an operation of a recording of several steps its number; -1 outside of all, and of others."""


class ArrivedTransfer(NamedTuple):
    """A transfer that arrives, times in ns."""

    message: str
    """Its number, padded to the width of all."""
    fact: Fact
    sent_on: int
    """The number of the thread of its sender."""
    start: int
    end: int
    microbatch: int
    source: int
    """The stage that it comes from."""
    consumer: int
    """The first compute after it that takes time, an index into the spans of this track; -1 if there is none
    before the rank waits again.
    """


class Waiting(NamedTuple):
    """A time in which a rank does not compute."""

    name: str
    """Its account."""
    start: int
    end: int
    fact: Fact | None
    """What the rank waits for; None if for nothing."""


class Threads(NamedTuple):
    """The threads that spans are drawn on."""

    names: Sequence[tuple[int, str]]
    """(number, name) of each, in their order."""
    span_threads: Sequence[int]
    """The number of the thread of each span."""


class TrackSpans(ABC):
    """The spans of equal ranks, as columns."""

    ranks: Sequence[int]
    """The ranks that are written."""
    stage: int | None
    """Their stage; None where it is not known."""
    start: Sequence[int]
    """The start of each span, ns."""
    end: Sequence[int]
    """The end of each span, ns."""
    microbatch: Sequence[int]
    """The micro-batch of each span, from 0; -1 for none."""

    def __len__(self) -> int:
        return len(self.start)

    @abstractmethod
    def kinds(self) -> Iterable[Hashable]:
        """Returns a key for the facts of each span, with its duration where it has bytes."""

    @abstractmethod
    def fact(self, span: int) -> Fact:
        """Returns the facts of a span, made again each time: a track may have millions."""

    @abstractmethod
    def title(self, rank: int) -> tuple[str, str]:
        """Returns (the name of a rank, more words on it)."""

    @abstractmethod
    def assign_threads(self, received: Sequence[ArrivedTransfer]) -> tuple[TrackSpans, Threads]:
        """Returns the spans in the order in which they are drawn, and the threads of them and of all that is
        received.
        """

    def received(self) -> Iterable[ArrivedTransfer]:
        """Returns the transfers that the ranks receive, in the order in which they wait for them, unless
        these are spans.
        """
        return ()

    def waiting(self, received: Sequence[ArrivedTransfer]) -> Iterable[Waiting]:
        """Returns the times in which they stand still, ascending, unless these are spans.

        It includes waiting for what is received.
        """
        return ()

    def steps(self) -> Iterable[tuple[int, int, int]]:
        """Returns (number, start, end) of steps that begin before their spans or end after them, ns."""
        return ()

    def groups(self, rank: int) -> Mapping[str, str]:
        """Returns the ranks of the groups of a rank, in words, by kind."""
        return {}

    def sender(self, rank: int, source: int) -> int | None:
        """Returns the rank of stage `source` that sends to a rank; None if it is not written."""
        return None


# An arrow between two spans, each end as (rank, number of the thread, ns).
Arrow = tuple[tuple[int, int, int], tuple[int, int, int]]


class ExportedSpans(NamedTuple):
    """The spans that are exported."""

    path: str
    facts: Mapping[str, str]
    """Facts of the run, by name."""
    tracks: Sequence[TrackSpans]
    ranks_text: str
    """Their ranks, in a few words."""
    diagnostics: tuple[Diagnostic, ...]
    """Diagnostics on the export."""
    suffix: str = ""
    """How they are written, in a few words."""
    in_one_line: str = ""
    """What a line has of several ranks."""
    arrows: Callable[[], Iterable[Arrow]] = tuple
    """Returns the arrows between tracks, known once threads are assigned."""

    @property
    def total(self) -> int:
        """The spans of all ranks that are written."""
        return sum(len(track) * len(track.ranks) for track in self.tracks)

    @property
    def what(self) -> str:
        """What is written, in a few words."""
        return f"{self.ranks_text}, {plural(self.total, 'span')}{self.suffix}"


def ranks_in_words(ranks: Iterable[int]) -> str:
    """Returns ranks as reports print them: `0-63`, `0-7+64*16`."""
    return RankSet.of(ranks).text()
