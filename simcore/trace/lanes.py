"""The lanes of a run of any source: which there are, what is on them, their order, waits and figures.

What a source alone can say (names, titles, words) is taken from it as it is; all else is asked of accounts
and of the spans of the lanes themselves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import compress, count
from typing import TYPE_CHECKING, Protocol

from simcore.records import NamedTuple
from simcore.trace.accounts import AccountNames, Accounts, Ranges
from simcore.trace.lane_spans import (
    KINDS,
    TIME,
    Dependency,
    Figure,
    LaneOrder,
    Searched,
    Spans,
    SpanSaid,
    Step,
    StretchFigures,
    TimeAxis,
    TimeStretch,
)
from simcore.trace.track import Track
from simcore.units import duration

if TYPE_CHECKING:
    from simcore.ranks import RankSet
    from simcore.trace.critical_path import CriticalPath, PathSource

# What an account or operation is drawn as, where its kind has another name. Input and weight gradient
# alternate faster than a cell.
_DRAWN = {
    "forward": "fwd", "backward": "bwd", "ig": "bwd", "wg": "bwd", "optimizer": "opt", "expert": "ep",
    "expert dp": "dp_ep", "gap": "idle", "outside": "idle",
}  # fmt: skip
PHASE_WORDS = {
    "fwd": "forward", "ig": "input grad", "wg": "weight grad", "opt": "optimizer", "recompute": "recompute",
}  # fmt: skip
SHORT = {
    "forward": "fwd", "backward": "bwd", "optimizer": "opt", "embedding": "emb", "position": "pos",
    "input grad": "ig", "weight grad": "wg",
}  # fmt: skip
# What a span is drawn as -> the words of a search that stand for it.
SEARCHED = {
    "fwd": ("fwd", "compute"), "bwd": ("ig", "wg", "compute"), "opt": ("opt", "compute"),
    "recompute": ("recompute", "compute"), "tp": ("tp",), "dp": ("dp",), "pp": ("pp",), "ep": ("ep",),
    "kernel": ("compute",), "copy": ("copy",),
    "dp_ep": ("dp_ep",), "all": ("all",), "host": ("host",), "idle": ("idle",),
    "wait": ("wait",), "bubble": ("bubble",),
}  # fmt: skip
# What a rank stands still in.
_STANDS = ("wait", "bubble", "idle")
NATURAL = LaneOrder("", "lane", "busy")
LEAST_BUSY = LaneOrder("busy", "least busy", "busy", least_first=True)
MOST_BUBBLE, MOST_WAIT = (LaneOrder(name, f"most {name}", name) for name in ("bubble", "wait"))
MOST_EXPOSED = LaneOrder("exposed", "most exposed", "exposed")
# Of lanes that are one where they are alike: no account of any two differs by more of the step, %.
_ALIKE_PERCENT = 2
ALIKE_WORDS = f"alike within {_ALIKE_PERCENT} %"


def drawn_as(category: str) -> int:
    """Index into KINDS of an account's kind, or of what a trace says of an operation or group."""
    return KINDS.index(_DRAWN.get(category, category))


def kind_of(category: str) -> str:
    """That of its cells; none for what is idle."""
    kind = KINDS[drawn_as(category)]
    return "" if kind == "idle" else kind


def kinds_of_accounts(names: AccountNames) -> bytes:
    """Account -> index into KINDS, as `bytearray.translate` takes it."""
    kinds = bytes(drawn_as(account.split(" ", 1)[-1]) for account in names.all)
    return kinds + bytes(256 - len(kinds))


def figures_of_accounts(names: AccountNames) -> tuple[Figure, ...]:
    """The accounts as figures of a stretch, without their times."""
    return tuple(map(_figure, names.all))


def _figure(account: str) -> Figure:
    kind, _, of = account.partition(" ")
    if kind == "compute":
        words = PHASE_WORDS.get(of, of)
        return Figure(words, SHORT.get(words, words), kind_of(of), 0)
    if kind == "exposed":
        return Figure(account, f"exp {SHORT.get(of, of)}", kind_of(of), 0)
    return Figure(account, account, kind_of(account), 0)


def account_spans(accounts: Accounts, kinds: bytes) -> Spans:
    """The segments of a rank as spans of its lane. kinds: of `kinds_of_accounts`."""
    return Spans(accounts.edge[:-1], accounts.edge[1:], accounts.op, accounts.account.translate(kinds))


class Wait(NamedTuple):
    """A time in which a track stands still, in the order in which one walks along them: the longest first,
    those in which it has nothing to do behind all others. minus_ns: how long, less than 0. span: of its lane.
    """

    is_idle: bool
    minus_ns: int
    span: int


def waits_of_accounts(accounts: Accounts) -> list[Wait]:
    """The segments that are `wait`, `bubble` or `idle`; idle is who has done all its work."""
    names, edge, account = accounts.of.all, accounts.edge, accounts.account
    idle = names.index("idle")
    stands = bytes(name in _STANDS for name in names).ljust(256, b"\0")
    return sorted(
        Wait(account[index] == idle, edge[index] - edge[index + 1], index)
        for index in compress(count(), account.translate(stands))
    )


class LaneTrack(NamedTuple):
    """A track as it is shown. number: of the track whose lane stands for it, its own or that of an equal one.

    ranks: of that lane, ascending. title: its name. headings: what it belongs to, from the outermost: its
    stage, its parallel group. stage: the pipeline stage. beside: what stands beside its title. seams: when a
    step of it ends and the next one begins, ns: none of one step alone.
    """

    number: int
    ranks: RankSet
    title: str
    headings: tuple[str, ...] = ()
    stage: int | None = None
    beside: str = ""
    seams: Sequence[int] = ()


class Content(NamedTuple):
    """A lane. spans: none of them empty. drawn: what its cells are drawn from: its spans, or the parts of
    them that are of other kinds.
    """

    spans: Spans
    drawn: Spans


class Sums(NamedTuple):
    """What stretches are made of. ranges: ns by category; figures: a category in words, without its ns."""

    ranges: Ranges
    figures: Sequence[Figure]


class LaneFacts(NamedTuple):
    """What holds for all lanes of a run.

    length: the end of the axis, ns: the step time. numbers: the tracks with a lane of their own when all is
    folded, in their order. counted: how many ranks there are, and in how many lanes. figures: the accounts
    in words; drawn: of `kinds_of_accounts`. orders: the ways to order lanes, the natural one first. spread:
    (words, measure) that are told of several lanes together, the compute first. communication: what its
    kinds are together: `exposed` where they hold compute back. beside: the heading of `LaneTrack.beside`,
    wide and narrow; ("x", "") for how many ranks a track has. axis: how places of it are written. timed:
    whether it is time, else an order. concurrent: whether the ranks have a common time. covers_all: whether
    lanes of tracks are known to have a span at every time. ends: of a track, what the order by `end` goes
    by. alike: what lanes are that may be one, "" where equals are one anyway. other_kinds: the names of
    KINDS that cells are of besides those of accounts. operations: what the longest span of a stretch is
    looked for in, where that is not the accounts.
    """

    length: int
    numbers: Sequence[int]
    counted: str
    figures: Sequence[Figure]
    drawn: bytes
    orders: Sequence[LaneOrder]
    spread: Sequence[tuple[str, str]]
    communication: str = "communication"
    beside: tuple[str, str] = ("", "")
    axis: TimeAxis = TIME
    timed: bool = True
    concurrent: bool = True
    covers_all: bool = False
    ends: Callable[[int], int] | None = None
    alike: str = ""
    other_kinds: Callable[[], Collection[str]] = tuple
    operations: Callable[[], Sums] | None = None


class Accounted(Protocol):
    """A run as far as lanes ask for it. accounts: of each track, by its number."""

    @property
    def tracks(self) -> Sequence[Track]: ...

    @property
    def accounts(self) -> Sequence[Accounts]: ...

    @property
    def critical_path(self) -> CriticalPath: ...

    @property
    def path_source(self) -> PathSource: ...


class LaneSource(Protocol):
    """What the source of a run alone knows of its lanes. number: a track; stream: one of its streams, None
    for all that its ranks do. See `Lanes`, which takes over what is not asked for anew.
    """

    @property
    def facts(self) -> LaneFacts: ...

    def track(self, number: int) -> LaneTrack:
        """A track as it is shown."""

    def own_number(self, rank: int) -> int | None:
        """The track that has the words for a rank's figures: its own; None for no rank of this run."""

    def rank_words(self, rank: int) -> str:
        """Where a rank is: `rank 37 = stage 0, dp 4, tp 5`."""

    def missing(self, rank: int | None, stage: int | None, microbatch: int | None) -> str:
        """Which of them this run does not have, in words; "" if it has all."""

    def streams(self, number: int) -> Mapping[str, str]:
        """The streams of a track with the names of their lanes, compute first."""

    def content(self, number: int, stream: str | None) -> Content:
        """What is on a lane."""

    def name(self, number: int, op: int) -> tuple[str, str]:
        """(name, ending) of a span: the name may be cut for the ending; raw text."""

    def names(self) -> Collection[str]:
        """The names of rows or operations, each once, raw text."""

    def searched(self, number: int, stream: str | None, spans: Spans) -> Searched:
        """What a search looks at of a lane."""

    def passes(self, number: int) -> Sequence[TimeStretch]:
        """The passes of micro-batches, in the order of time."""

    def waits(self, number: int, spans: Callable[[], Spans]) -> list[Wait]:
        """The spans of a track's lane in which it waits, sorted."""

    def words(self, lanes: Lanes) -> SpanWords:
        """What is said of single spans."""


class Lanes:
    """The lanes of a run. number: a track. stream: one of its streams, None for all that its ranks do.

    A lane is that of a track (stream None: what its ranks do all the time, as far as it is known) or of one
    of its streams. Spans are given as the same object each time.
    """

    def __init__(self, results: Accounted, source: LaneSource) -> None:
        self.results, self.facts = results, source.facts
        self.own_number, self.rank_words, self.missing = (
            source.own_number, source.rank_words, source.missing
        )  # fmt: skip
        self.name, self.names, self.passes = source.name, source.names, source.passes
        self._source = source
        self._tracks: dict[int, LaneTrack] = {}
        self._streams: dict[int, Mapping[str, str]] = {}
        self._content: dict[tuple[int, str | None], Content] = {}
        self._waits: dict[int, list[Wait]] = {}

    @cached_property
    def words(self) -> SpanWords:
        """What is said of single spans."""
        return self._source.words(self)

    @cached_property
    def kinds(self) -> Collection[str]:
        """The names of KINDS that cells can be of."""
        accounts = self.results.accounts if self.facts.timed else ()
        there = {index for of in accounts for index, ns in enumerate(of.total_ns) if ns}
        return {KINDS[self.facts.drawn[index]] for index in there} | set(self.facts.other_kinds())

    # -- tracks ------------------------------------------------------------------------

    def track(self, number: int) -> LaneTrack:
        """A track as it is shown."""
        if number not in self._tracks:
            self._tracks[number] = self._source.track(number)
        return self._tracks[number]

    def number_of(self, rank: int) -> int | None:
        """The track whose lane a rank is in, None for no rank of this run."""
        own = self.own_number(rank)
        return None if own is None else self.track(own).number

    def alike(self, number: int) -> Sequence[int]:
        """The tracks that may be one lane with a track, itself among them, ascending: their ranks do alike,
        if not the same. Itself alone where equals are one lane anyway.
        """
        return self._alike[number] if self.facts.alike else (number,)

    @cached_property
    def _alike(self) -> dict[int, Sequence[int]]:
        """Each track with those that are alike: with the first that it fits to, under the same headings."""
        most = self.facts.length * _ALIKE_PERCENT // 100
        groups: list[tuple[tuple[str, ...], list[int], list[int], list[int]]] = []
        for number in self.facts.numbers:
            headings, totals = self.track(number).headings, self.results.accounts[number].total_ns
            for group, least, greatest, members in groups:
                if group == headings and all(
                    max(high, ns) - min(low, ns) <= most
                    for low, high, ns in zip(least, greatest, totals, strict=True)
                ):
                    least[:], greatest[:] = map(min, least, totals), map(max, greatest, totals)
                    members.append(number)
                    break
            else:
                groups.append((headings, list(totals), list(totals), [number]))
        return {number: members for *_, members in groups for number in members}

    def measure_ns(self, measure: str, number: int) -> int:
        """ns of the step that an order goes by, of a rank of a track; `busy`: that it computes."""
        if measure == "end" and self.facts.ends is not None:
            return self.facts.ends(number)
        accounts = self.results.accounts[number]
        if measure == "busy":
            return accounts.busy_ns
        return accounts.all_exposed_ns if measure == "exposed" else accounts.ns(measure)

    def spread(self, numbers: Sequence[int]) -> dict[str, list[int]]:
        """Figure -> ns of each of some tracks, the compute first; {} where there are no times."""
        return {
            words: [self.measure_ns(measure, number) for number in numbers]
            for words, measure in self.facts.spread
        }

    # -- spans -------------------------------------------------------------------------

    def streams(self, number: int) -> Mapping[str, str]:
        """The streams of a track with the names of their lanes, compute first."""
        if number not in self._streams:
            self._streams[number] = self._source.streams(number)
        return self._streams[number]

    def content(self, number: int, stream: str | None) -> Content:
        """What is on a lane, and what its cells are drawn from."""
        key = number, stream
        if key not in self._content:
            self._content[key] = self._source.content(number, stream)
        return self._content[key]

    def spans(self, number: int, stream: str | None) -> Spans:
        """The spans of a lane."""
        return self.content(number, stream).spans

    def searched(self, number: int, stream: str | None) -> Searched:
        """What a search looks at of a lane."""
        return self._source.searched(number, stream, self.spans(number, stream))

    # -- what one moves by ---------------------------------------------------------------

    def waits(self, number: int) -> list[Wait]:
        """The spans of a track's lane in which it waits, the longest wait first, then the idle ones."""
        if number not in self._waits:
            self._waits[number] = self._source.waits(number, lambda: self.spans(number, None))
        return self._waits[number]

    def all_waits(self) -> list[tuple[int, Wait]]:
        """The waits of all lanes with the number of each, in that order; of equal ones the first track's."""
        waits = [(number, wait) for number in self.facts.numbers for wait in self.waits(number)]
        # Those of each track are in order: equal ones keep that of the tracks.
        return sorted(waits, key=lambda of: (of[1].is_idle, of[1].minus_ns))

    def path(self) -> Iterator[tuple[int, int, int, int, str]]:
        """(start, end, number, rank, stream) of the critical path's segments in the order of time; stream ""
        where only the lane of the track shows one.
        """
        path, source = self.results.critical_path, self.results.path_source
        columns = zip(path.edge, path.edge[1:], path.track, path.span, path.rank, strict=False)
        for start, end, track, span, rank in columns:
            number = self.track(source.number(track, rank)).number
            yield start, end, number, rank, source.stream(track, span, rank)

    # -- a stretch ---------------------------------------------------------------------

    @cached_property
    def _sizes(self) -> list[int]:
        """Of each track, by its number, how many ranks it is."""
        by_number = {track.number: len(track.ranks) for track in self.results.tracks}
        return [by_number[number] for number in range(len(by_number))]

    @cached_property
    def accounted(self) -> Sums:
        """What stretches of the step are made of, by account."""
        accounts = self.results.accounts
        ranges = Ranges(
            lambda number: (accounts[number].edge, accounts[number].account), self._sizes,
            len(self.facts.figures),
        )  # fmt: skip
        return Sums(ranges, self.facts.figures)

    @cached_property
    def _lasting(self) -> Sums:
        return self.accounted if self.facts.operations is None else self.facts.operations()

    def figures(self, number: int | None, first_ns: int, last_ns: int) -> StretchFigures:
        """What a rank of a track does from `first_ns` to `last_ns`; of None all ranks, added up."""
        ranges, kinds = self.accounted if self.facts.timed else self._lasting
        ranks = sum(self._sizes) if number is None else 1
        if number is None:
            sums = ranges.of_all(first_ns, last_ns)
        else:
            sums = ranges.of_class(number, first_ns, last_ns)
        there = (figure._replace(ns=ns) for figure, ns in zip(kinds, sums, strict=True) if ns)
        return StretchFigures(tuple(there), (last_ns - first_ns) * ranks, ranks)

    def longest(self, number: int, first_ns: int, last_ns: int) -> tuple[int, Figure | None]:
        """(spans of a track's lane in a stretch, the longest of them as it is cut there)."""
        ranges, kinds = self._lasting
        longest, category = ranges.longest(number, first_ns, last_ns)
        return longest.count, kinds[category]._replace(ns=longest.ns) if longest.index >= 0 else None


class SpanWords(ABC):
    """What a run says of its spans: `index` of the lane of a track, or of one of its streams. What runs of
    all kinds say alike is said here.

    rank: the one of the track's ranks that is spoken of, None for the first. most: how many causes, and how
    many effects, are told among all that is known of a span.
    """

    most: int | None = None

    def __init__(self, lanes: Lanes) -> None:
        self._lanes, self._axis = lanes, lanes.facts.axis

    # -- what a kind of run gives --------------------------------------------------------

    @abstractmethod
    def said(self, number: int, stream: str | None, index: int | None, ranks: RankSet) -> SpanSaid:
        """The span, or (None) that nothing runs. ranks: those that the lane stands for."""

    @abstractmethod
    def aside(self, number: int, stream: str | None, index: int, wide: bool, rank: int | None) -> str:
        """What there is to say besides: its pass, for whom it waits. wide: whether there is a line for it."""

    @abstractmethod
    def all_of(self, number: int, stream: str | None, index: int, rank: int | None) -> list[tuple[str, str]]:
        """(label, words): all that is known of a span."""

    @abstractmethod
    def dependencies(
        self, number: int, stream: str | None, index: int, rank: int | None, direction: int
    ) -> Sequence[Dependency]:
        """What a span waited for (-1), or holds back (1); the first one binds."""

    @abstractmethod
    def name(self, number: int, span: int) -> str:
        """What a span of a track is called, in few cells that are safe to print."""

    @abstractmethod
    def shown_in(self, stream: str | None, of: Dependency) -> str | None:
        """The stream of the lane that shows it to who comes from a lane of `stream`."""

    # -- what follows --------------------------------------------------------------------

    def op(self, number: int, stream: str | None, index: int) -> int:
        """What the run knows a span by."""
        return self._lanes.spans(number, stream).op[index]

    def volume(self, number: int, stream: str | None, index: int) -> str:
        """How many bytes a span moves, and how fast; "" for compute, and where its time has waiting in it: as
        a bandwidth it would mislead.
        """
        return ""

    def walk(
        self, number: int, stream: str | None, index: int, rank: int | None, direction: int
    ) -> list[Step]:
        """The ways to what a span waited for (-1), or holds back (1); the first one binds."""
        found = self.dependencies(number, stream, index, rank, direction)
        return [self.step(number, stream, of) for of in found]

    def step(self, number: int, stream: str | None, of: Dependency) -> Step:
        """The way from a lane to a cause or effect."""
        words = f"{self.whose(number, of)}, {duration(of.end_ns - of.start_ns)}: {of.reason}"
        return Step(of.number, self.shown_in(stream, of), of.start_ns, of.rank, words)

    def whose(self, number: int, of: Dependency) -> str:
        """`recv_forward, rank 1 of stage 1`: what it is, and where, as far as that is not on a track."""
        name = self.name(of.number, of.span)
        if of.number == number:
            return name
        stage = self._lanes.track(of.number).stage
        is_other = stage is not None and stage != self._lanes.track(number).stage
        return f"{name}, rank {of.rank}{f' of stage {stage}' if is_other else ''}"

    def dependency_rows(
        self, number: int, stream: str | None, index: int, rank: int | None
    ) -> list[tuple[str, str]]:
        """The lines of causes and effects among all that is known of a span."""
        return [
            (label, words)
            for label, direction in (("[ waited for", -1), ("] holds back", 1))
            for words in self.dependency_words(number, stream, index, rank, direction)
        ]

    def dependency_words(
        self, number: int, stream: str | None, index: int, rank: int | None, direction: int
    ) -> list[str]:
        """What `walk` finds in words."""
        return [step.words for step in self.walk(number, stream, index, rank, direction)[: self.most]]

    def times(self, start_ns: int, end_ns: int) -> str:
        """From when to when."""
        return f"{self._axis.clock(start_ns)} .. {self._axis.clock(end_ns)}"

    def times_and_length(self, start_ns: int, end_ns: int) -> str:
        """The same with how long that is."""
        ns = end_ns - start_ns
        return f"{self.times(start_ns, end_ns)}, {duration(ns)} ({ns} ns)"
