"""The lanes of a run of any source: which there are, what is on them, their order, waits and figures.

A kind of run says which lanes it has, what they and their spans are called, and by which words a search finds
them; everything else follows from accounts, from the trace and from the spans of the lanes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import compress, count
from operator import add
from typing import TYPE_CHECKING, Protocol

from simcore.records import NamedTuple
from simcore.trace.accounts import Accounts, Ranges
from simcore.trace.findings import Dependency, Step
from simcore.trace.lane_spans import (
    KINDS,
    TIME,
    Content,
    Figure,
    LaneOrder,
    SearchColumns,
    Spans,
    SpanSummary,
    StretchFigures,
    TimeAxis,
    TimeStretch,
    encode_indices,
    make_spans,
)
from simcore.trace.spans import NONE, Trace
from simcore.trace.track import Track
from simcore.units import duration

if TYPE_CHECKING:
    from simcore.ranks import RankSet
    from simcore.trace.critical_path import CriticalPath

# What an account or operation is drawn as, where its kind has another name. Input and weight gradient
# alternate within a cell, so that both are backward.
_CELL_KINDS = {
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
# Kind of a span -> the words of a search that stand for it.
SEARCH_WORDS = {
    "fwd": ("fwd", "compute"), "bwd": ("ig", "wg", "compute"), "opt": ("opt", "compute"),
    "recompute": ("recompute", "compute"), "tp": ("tp",), "dp": ("dp",), "pp": ("pp",), "ep": ("ep",),
    "kernel": ("compute",), "copy": ("copy",),
    "dp_ep": ("dp_ep",), "all": ("all",), "host": ("host",), "idle": ("idle",),
    "wait": ("wait",), "bubble": ("bubble",),
}  # fmt: skip
# The accounts in which a rank stands still.
_STANDS = ("wait", "bubble", "idle")
WAIT, BUBBLE = KINDS.index("wait"), KINDS.index("bubble")
NATURAL = LaneOrder("", "lane", "busy")
LEAST_BUSY = LaneOrder("busy", "least busy", "busy", least_first=True, group_name="compute")
MOST_BUBBLE, MOST_WAIT = (LaneOrder(name, f"most {name}", name) for name in ("bubble", "wait"))
MOST_EXPOSED = LaneOrder("exposed", "most exposed", "exposed")
ORDERS = (NATURAL, LEAST_BUSY, MOST_BUBBLE, MOST_WAIT, MOST_EXPOSED)
# More than there are KINDS.
_APART = 256
# Lanes may be merged as similar where no account of any two differs by more of the step, %.
_SIMILAR_PERCENT = 2
SIMILAR_WORDS = f"similar within {_SIMILAR_PERCENT} %"


def cell_kind(category: str) -> int:
    """Returns the index into KINDS of an account's kind, or of an operation or group as a trace states it."""
    return KINDS.index(_CELL_KINDS.get(category, category))


def kind_of(category: str) -> str:
    """Returns the kind of KINDS of its cells; "" for what is idle."""
    kind = KINDS[cell_kind(category)]
    return "" if kind == "idle" else kind


def _figure(account: str) -> Figure:
    """Returns an account as a figure of a stretch, without its time."""
    kind, _, of = account.partition(" ")
    if kind == "compute":
        words = PHASE_WORDS.get(of, of)
        return Figure(words, SHORT.get(words, words), kind_of(of), 0)
    if kind == "exposed":
        return Figure(account, f"exp {SHORT.get(of, of)}", kind_of(of), 0)
    return Figure(account, account, kind_of(account), 0)


class Wait(NamedTuple):
    """A time in which a track stands still.

    Waits are ordered as one walks along them: the longest first, idle times behind all others.
    """

    is_idle: bool
    """Whether the track has nothing to do."""
    minus_ns: int
    """Its length, negative, ns."""
    span: int
    """The span of the track's lane."""


class LaneTrack(NamedTuple):
    """A track as it is shown."""

    track_id: int
    """The track whose lane stands for it: its own, or that of an equal one."""
    ranks: RankSet
    """The ranks of that lane, ascending."""
    title: str
    """Its name."""
    headings: tuple[str, ...] = ()
    """What it belongs to, from the outermost: its stage, its parallel group."""
    stage: int | None = None
    """The pipeline stage."""
    title_note: str = ""
    """What is written next to its title."""
    seams: Sequence[int] = ()
    """When one of its steps ends and the next one begins, ns: empty of a single step."""


class Sums(NamedTuple):
    """What stretches consist of. ranges: ns by category; figures: a category in words, without its ns."""

    ranges: Ranges
    figures: Sequence[Figure]


class OpSearchColumns(NamedTuple):
    """What a search looks at of the ops of a track.

    An op is as in `Spans`; one below 0 counts from the end.
    """

    names: list[tuple[str, ...]]
    """The table of names that ops have in the file, raw text."""
    name: Sequence[int]
    """The index into `names` of each op."""
    words: Sequence[frozenset[str]]
    """The table of words for what ops are, without the words of the kind that a span is drawn as."""
    word_index: Sequence[int]
    """The index into `words` of each op."""
    microbatch: Sequence[int]
    """The micro-batch of each op, plus 1."""


class LaneFacts(NamedTuple):
    """What holds for all lanes of a run."""

    length: int
    """The end of the axis, ns: the step time."""
    track_ids: Sequence[int]
    """The tracks with a lane of their own when everything is folded, in their order."""
    counts_text: str
    """How many ranks there are, and in how many lanes, in words."""
    orders: Sequence[LaneOrder] = ORDERS
    """The ways to order lanes, the natural one first."""
    spread: Sequence[tuple[str, str]] = ()
    """(words, measure) that are given for several lanes together, the compute first; () for those of
    `orders`.
    """
    communication: str = "communication"
    """The name of all kinds of communication together: `exposed` where they hold compute back."""
    note_heading: tuple[str, str] = ("", "")
    """The heading of `LaneTrack.title_note`, wide and narrow; ("x", "") for how many ranks a track has."""
    axis: TimeAxis = TIME
    """How places on the axis are written."""
    timed: bool = True
    """Whether the axis is time, else an order."""
    concurrent: bool = True
    """Whether the ranks have a common clock."""
    similar_text: str = ""
    """How lanes are similar that may be merged, in words; "" where equal tracks share a lane anyway."""
    streams_wait: bool = False
    """Whether lanes of streams show how long their spans wait."""
    layered: bool = False
    """Whether many spans of a lane run at a time, of which it shows one: its streams have all."""
    filled: bool = False
    """Whether lanes of streams show what fills most of a cell, as those of tracks do; else how busy it is."""


class LaneInput(Protocol):
    """The part of a run that lanes need. accounts: of each track, by its id."""

    @property
    def tracks(self) -> Sequence[Track]: ...

    @property
    def accounts(self) -> Sequence[Accounts]: ...

    @property
    def trace(self) -> Trace: ...

    @property
    def critical_path(self) -> CriticalPath: ...


class Lanes(ABC):
    """The lanes of a run. track_id: a track. stream: one of its streams, None for all that its ranks do.

    A lane is that of a track (stream None: what its ranks do at every known time) or of one of its streams.
    Spans are returned as the same object each time. Each kind of run has a subclass.
    """

    def __init__(self, results: LaneInput) -> None:
        self.results = results
        self._tracks: dict[int, LaneTrack] = {}
        self._streams: dict[int, Mapping[str, str]] = {}
        self._content: dict[tuple[int, str | None], Content] = {}
        self._of_streams: dict[int, dict[str, Spans]] = {}
        self._search_columns: dict[int, OpSearchColumns] = {}
        self._waits: dict[int, list[Wait]] = {}

    # -- what a kind of run gives --------------------------------------------------------

    @property
    @abstractmethod
    def facts(self) -> LaneFacts:
        """What holds for all lanes."""

    @property
    @abstractmethod
    def words(self) -> SpanWords:
        """The words for single spans."""

    @abstractmethod
    def _find_track(self, track_id: int) -> LaneTrack: ...

    @abstractmethod
    def _find_streams(self, track_id: int) -> Mapping[str, str]: ...

    @abstractmethod
    def _find_search_columns(self, track_id: int) -> OpSearchColumns: ...

    @abstractmethod
    def own_track_id(self, rank: int) -> int | None:
        """Returns the track with the words for a rank's figures: its own; None for no rank of the run."""

    @abstractmethod
    def missing_text(self, rank: int | None, stage: int | None, microbatch: int | None) -> str:
        """Returns which of them this run does not have, in words; "" if it has all."""

    @abstractmethod
    def span_name(self, track_id: int, op: int) -> tuple[str, str]:
        """Returns (name, ending) of a span: the name may be truncated in favour of the ending; raw text."""

    @abstractmethod
    def names(self) -> Collection[str]:
        """Returns the names of rows or operations, each once, raw text."""

    def rank_words(self, rank: int) -> str:
        """Returns the position of a rank: `rank 37 = stage 0, dp 4, tp 5`."""
        return f"rank {rank}"

    def stream_of(self, track_id: int, span: int) -> str:
        """Returns the stream whose lane shows a span of the trace; "" where only the track's lane does."""
        return ""

    def passes(self, track_id: int) -> Sequence[TimeStretch]:
        """Returns the passes of micro-batches, in the order of time."""
        return ()

    def _trace_track(self, track_id: int) -> int:
        """Returns the track of the trace that a track of the run is equal to."""
        return track_id

    def _find_content(self, track_id: int, stream: str | None) -> Content:
        """Returns the content of a lane: accounts for a track, spans of the trace for a stream."""
        if stream is None:
            accounts = self.results.accounts[track_id]
            category = accounts.account.translate(self._cell_kinds)
            spans = Spans(accounts.edge[:-1], accounts.edge[1:], accounts.op, category)
        else:
            # Who asks for one stream of a track will ask for all of them.
            if track_id not in self._of_streams:
                self._of_streams[track_id] = self._spans_of_streams(track_id)
            spans = self._of_streams[track_id][stream]
        return Content(spans, spans, covers_all=stream is None)

    def _find_waits(self, track_id: int) -> list[Wait]:
        """Returns the times of `wait`, `bubble` and `idle`, in the order of `Wait`."""
        accounts = self.results.accounts[track_id]
        names, edge, account = accounts.of.all, accounts.edge, accounts.account
        idle = names.index("idle")
        stands = bytes(name in _STANDS for name in names).ljust(256, b"\0")
        return sorted(
            Wait(account[index] == idle, edge[index] - edge[index + 1], index)
            for index in compress(count(), account.translate(stands))
        )

    def _end_ns(self, track_id: int) -> int:
        """Returns the time that the order by `end` goes by, ns."""
        return self.results.accounts[track_id].last_end_ns

    def _other_kinds(self) -> Collection[str]:
        """Returns the names of KINDS that cells have besides those of accounts."""
        return ()

    @cached_property
    def _cell_kinds(self) -> bytes:
        """A table for `translate`: account -> index into KINDS."""
        accounts = self.results.trace.categories.all
        return bytes(cell_kind(account.split(" ", 1)[-1]) for account in accounts).ljust(256, b"\0")

    @cached_property
    def _longest_sums(self) -> Sums:
        """The sums in which the longest span of a stretch is found."""
        return self.account_sums

    def _words_of(self, stream: str | None, category: int, what: frozenset[str]) -> frozenset[str]:
        """Returns the words of a search that stand for spans of a lane. what: the words of their op."""
        return what.union(SEARCH_WORDS.get(KINDS[category], ()))

    # -- what follows --------------------------------------------------------------------

    @cached_property
    def kinds(self) -> Collection[str]:
        """The names of KINDS that cells can have."""
        accounts = self.results.accounts if self.facts.timed else ()
        there = {index for of in accounts for index, ns in enumerate(of.total_ns) if ns}
        return {KINDS[self._cell_kinds[index]] for index in there} | set(self._other_kinds())

    # -- tracks ------------------------------------------------------------------------

    def track(self, track_id: int) -> LaneTrack:
        """Returns a track as it is shown."""
        if track_id not in self._tracks:
            self._tracks[track_id] = self._find_track(track_id)
        return self._tracks[track_id]

    def lane_track_id(self, rank: int) -> int | None:
        """Returns the track whose lane a rank is in, None for no rank of this run."""
        own = self.own_track_id(rank)
        return None if own is None else self.track(own).track_id

    def similar_tracks(self, track_id: int) -> Sequence[int]:
        """Returns the tracks that may share a lane with a track, itself among them, ascending: similar ones.

        It is the track alone where equal tracks share a lane anyway.
        """
        return self._similar_tracks[track_id] if self.facts.similar_text else (track_id,)

    @cached_property
    def _similar_tracks(self) -> dict[int, Sequence[int]]:
        """Each track -> those that are similar: grouped with the first that fits, under the same headings."""
        most = self.facts.length * _SIMILAR_PERCENT // 100
        groups: list[tuple[tuple[str, ...], list[int], list[int], list[int]]] = []
        for track_id in self.facts.track_ids:
            headings, totals = self.track(track_id).headings, self.results.accounts[track_id].total_ns
            for group, least, greatest, members in groups:
                if group == headings and all(
                    max(high, ns) - min(low, ns) <= most
                    for low, high, ns in zip(least, greatest, totals, strict=True)
                ):
                    least[:], greatest[:] = map(min, least, totals), map(max, greatest, totals)
                    members.append(track_id)
                    break
            else:
                groups.append((headings, list(totals), list(totals), [track_id]))
        return {track_id: members for *_, members in groups for track_id in members}

    def measure_ns(self, measure: str, track_id: int) -> int:
        """Returns the time that an order goes by, of a rank of a track, ns; `busy`: that it computes."""
        if measure == "end":
            return self._end_ns(track_id)
        accounts = self.results.accounts[track_id]
        if measure == "busy":
            return accounts.busy_ns
        return accounts.all_exposed_ns if measure == "exposed" else accounts.ns(measure)

    def times_by_measure(self, track_ids: Sequence[int]) -> dict[str, list[int]]:
        """Returns measure -> ns of each of some tracks, compute first; {} where there are no times."""
        orders = self.facts.orders[1:]
        measures = self.facts.spread or [(order.group_name or order.id, order.id) for order in orders]
        return {
            words: [self.measure_ns(measure, track_id) for track_id in track_ids]
            for words, measure in measures
        }

    # -- spans -------------------------------------------------------------------------

    def streams(self, track_id: int) -> Mapping[str, str]:
        """Returns the streams of a track with the names of their lanes, compute first."""
        if track_id not in self._streams:
            self._streams[track_id] = self._find_streams(track_id)
        return self._streams[track_id]

    def content(self, track_id: int, stream: str | None) -> Content:
        """Returns what is on a lane, and what its cells are drawn from."""
        key = track_id, stream
        if key not in self._content:
            self._content[key] = self._find_content(track_id, stream)
        return self._content[key]

    def spans(self, track_id: int, stream: str | None) -> Spans:
        """Returns the spans of a lane."""
        return self.content(track_id, stream).spans

    def search_columns(self, track_id: int, stream: str | None) -> SearchColumns:
        """Returns what a search looks at of a lane."""
        if track_id not in self._search_columns:
            self._search_columns[track_id] = self._find_search_columns(track_id)
        ops, spans = self._search_columns[track_id], self.spans(track_id, stream)
        name, what, microbatch = (
            map(of_op.__getitem__, spans.op) for of_op in (ops.name, ops.word_index, ops.microbatch)
        )
        # As one number: pairs for a million spans would be a million tuples.
        both = list(map(add, map(_APART.__mul__, what), spans.category))
        kinds: dict[frozenset[str], int] = {}
        of_both = {}
        for number_of_both in set(both):
            of_op, category = divmod(number_of_both, _APART)
            words = self._words_of(stream, category, ops.words[of_op])
            of_both[number_of_both] = kinds.setdefault(words, len(kinds))
        return SearchColumns(
            list(kinds),
            encode_indices(map(of_both.__getitem__, both)),
            ops.names,
            encode_indices(name),
            encode_indices(microbatch),
        )

    def _spans_of_streams(self, track_id: int) -> dict[str, Spans]:
        """Returns stream -> the spans of its lane: those of the trace, and those that arrive from other
        tracks.
        """
        trace, track = self.results.trace, self._trace_track(track_id)
        rows: dict[str, list[tuple[int, int, int, int]]] = {stream: [] for stream in self.streams(track_id)}
        of, waits = trace.spans[track], self.facts.streams_wait
        columns = of.start, of.ready, of.end, of.category
        for span, (start, ready, end, account) in enumerate(zip(*columns, strict=True)):
            if waits and ready > start:
                stands = BUBBLE if account == trace.bubbles else WAIT
                rows[self.stream_of(track_id, span)].append((start, ready, span, stands))
            if end > ready:
                rows[self.stream_of(track_id, span)].append((ready, end, span, self._cell_kinds[account]))
        for code, sender, span in trace.arrivals(track):
            sender_spans = trace.spans[sender]
            if sender_spans.end[span] > sender_spans.ready[span]:
                kind = self._cell_kinds[sender_spans.category[span]]
                rows[self.stream_of(sender, span)].append(
                    (sender_spans.ready[span], sender_spans.end[span], code, kind)
                )
        # The order of issue is not that of the begins.
        return {stream: make_spans(sorted(stream_rows)) for stream, stream_rows in rows.items()}

    # -- what one moves by ---------------------------------------------------------------

    def waits(self, track_id: int) -> list[Wait]:
        """Returns the waits of a track's lane, the longest first, then its idle times."""
        if track_id not in self._waits:
            self._waits[track_id] = self._find_waits(track_id)
        return self._waits[track_id]

    def all_waits(self) -> list[tuple[int, Wait]]:
        """Returns (track, wait) of all lanes, in that order; of equal waits the first track's comes first."""
        waits = [(track_id, wait) for track_id in self.facts.track_ids for wait in self.waits(track_id)]
        # The waits of each track are sorted, and sorting is stable: equal ones keep the order of the tracks.
        return sorted(waits, key=lambda of: (of[1].is_idle, of[1].minus_ns))

    def path(self) -> Iterator[tuple[int, int, int, int, str]]:
        """Yields (start, end, track, rank, stream) of the critical path's segments, in the order of time.

        stream: "" where only the lane of the track shows the segment.
        """
        path = self.results.critical_path
        track_ids = {rank: self.lane_track_id(rank) for rank in set(path.rank)}
        for start, end, span, rank in zip(path.edge, path.edge[1:], path.span, path.rank, strict=False):
            track_id = track_ids[rank]
            assert track_id is not None
            yield start, end, track_id, rank, "" if span == NONE else self.stream_of(track_id, span)

    # -- a stretch ---------------------------------------------------------------------

    @cached_property
    def _sizes(self) -> list[int]:
        """The number of ranks of each track, by its id."""
        by_number = {track.track_id: len(track.ranks) for track in self.results.tracks}
        return [by_number[track_id] for track_id in range(len(by_number))]

    @cached_property
    def account_sums(self) -> Sums:
        """What stretches of the step consist of, by account."""
        accounts, names = self.results.accounts, self.results.trace.categories
        ranges = Ranges(
            lambda track_id: (accounts[track_id].edge, accounts[track_id].account),
            self._sizes,
            len(names.all),
        )
        return Sums(ranges, tuple(map(_figure, names.all)))

    @property
    def stretch_sums(self) -> Sums:
        """What stretches consist of."""
        return self.account_sums if self.facts.timed else self._longest_sums

    def figures(self, track_id: int | None, first_ns: int, last_ns: int) -> StretchFigures:
        """Returns what a rank of a track does from `first_ns` to `last_ns`; for None all ranks, added up."""
        ranges, kinds = self.stretch_sums
        ranks = sum(self._sizes) if track_id is None else 1
        if track_id is None:
            sums = ranges.of_all(first_ns, last_ns)
        else:
            sums = ranges.of_class(track_id, first_ns, last_ns)
        there = (figure._replace(ns=ns) for figure, ns in zip(kinds, sums, strict=True) if ns)
        return StretchFigures(tuple(there), (last_ns - first_ns) * ranks, ranks)

    def longest(self, track_id: int, first_ns: int, last_ns: int) -> tuple[int, Figure | None]:
        """Returns (number of spans of a track's lane in a stretch, the longest of them as cut there)."""
        ranges, kinds = self._longest_sums
        longest, category = ranges.longest_segment(track_id, first_ns, last_ns)
        return longest.count, kinds[category]._replace(ns=longest.ns) if longest.index >= 0 else None


class SpanWords(ABC):
    """The words of a run for its spans: `index` counts in the lane of a track, or of one of its streams.

    What runs of all kinds say is here.

    rank: the one of the track's ranks that is meant, None for the first. most_dependencies: how many causes,
    and how many effects, are in the details of a span.
    """

    most_dependencies: int | None = None

    def __init__(self, lanes: Lanes) -> None:
        self._lanes, self._axis = lanes, lanes.facts.axis

    # -- what a kind of run gives --------------------------------------------------------

    @abstractmethod
    def summarize(self, track_id: int, stream: str | None, index: int | None, ranks: RankSet) -> SpanSummary:
        """Returns the summary of the span, or (None) that nothing runs. ranks: those of the lane."""

    @abstractmethod
    def side_note(self, track_id: int, stream: str | None, index: int, wide: bool, rank: int | None) -> str:
        """Returns its pass, or for whom it waits, in words. wide: whether there is a line for it."""

    @abstractmethod
    def detail_rows(
        self, track_id: int, stream: str | None, index: int, rank: int | None
    ) -> list[tuple[str, str]]:
        """Returns (label, words) of all that is known of a span."""

    @abstractmethod
    def dependencies(
        self, track_id: int, stream: str | None, index: int, rank: int | None, direction: int
    ) -> Sequence[Dependency]:
        """Returns what a span waited for (-1), or holds back (1); the first one is the binding one."""

    @abstractmethod
    def span_name(self, track_id: int, span: int) -> str:
        """Returns what a span of a track is called, in few cells that are safe to print."""

    @abstractmethod
    def stream_showing(self, stream: str | None, of: Dependency) -> str | None:
        """Returns the stream of the lane that shows a dependency to a user on a lane of `stream`."""

    # -- what follows --------------------------------------------------------------------

    def op(self, track_id: int, stream: str | None, index: int) -> int:
        """Returns the code by which the run identifies a span."""
        return self._lanes.spans(track_id, stream).op[index]

    def chain_end(self, track_id: int, stream: str | None, index: int) -> str:
        """Returns why a span that waited for nothing has no cause; "" where that is all there is to say."""
        return ""

    def volume(self, track_id: int, stream: str | None, index: int) -> str:
        """Returns how many bytes a span moves, and how fast.

        "" for compute, and where waiting is part of its time: as a bandwidth it would mislead.
        """
        return ""

    def find_steps(
        self, track_id: int, stream: str | None, index: int, rank: int | None, direction: int
    ) -> list[Step]:
        """Returns the steps to what a span waited for (-1), or holds back (1); the first one is binding."""
        dependencies = self.dependencies(track_id, stream, index, rank, direction)
        return [self.make_step(track_id, stream, of) for of in dependencies]

    def make_step(self, track_id: int, stream: str | None, of: Dependency) -> Step:
        """Returns the step from a lane to a cause or effect."""
        words = f"{self.dependency_text(track_id, of)}, {duration(of.end_ns - of.start_ns)}: {of.reason}"
        return Step(of.track_id, self.stream_showing(stream, of), of.start_ns, of.rank, words)

    def dependency_text(self, track_id: int, of: Dependency) -> str:
        """Returns `recv_forward, rank 1 of stage 1`: what it is, and where, if that is another track."""
        name = self.span_name(of.track_id, of.span)
        if of.track_id == track_id:
            return name
        stage = self._lanes.track(of.track_id).stage
        is_other = stage is not None and stage != self._lanes.track(track_id).stage
        return f"{name}, rank {of.rank}{f' of stage {stage}' if is_other else ''}"

    def dependency_rows(
        self, track_id: int, stream: str | None, index: int, rank: int | None
    ) -> list[tuple[str, str]]:
        """Returns (label, words) of the causes and effects among the details of a span."""
        return [
            (label, words)
            for label, direction in (("[ waited for", -1), ("] holds back", 1))
            for words in self.dependency_words(track_id, stream, index, rank, direction)
        ]

    def dependency_words(
        self, track_id: int, stream: str | None, index: int, rank: int | None, direction: int
    ) -> list[str]:
        """Returns the words of `find_steps`, at most `most_dependencies`."""
        return [
            step.words
            for step in self.find_steps(track_id, stream, index, rank, direction)[: self.most_dependencies]
        ]

    def format_times(self, start_ns: int, end_ns: int) -> str:
        """Returns from when to when, in words."""
        return f"{self._axis.clock(start_ns)} .. {self._axis.clock(end_ns)}"

    def format_times_and_length(self, start_ns: int, end_ns: int) -> str:
        """Returns from when to when, and how long that is, in words."""
        ns = end_ns - start_ns
        return f"{self.format_times(start_ns, end_ns)}, {duration(ns)} ({ns} ns)"
