"""The critical path: a chain of segments from 0 to the step time, its parts and its legs.

Each segment waits for the one before. It is walked from the end: what ended last, what held that back, and so
on (`Graph.path`). Where two things ended at the same instant the first cause is taken: a track's own work
before that of others, then the lower track. What takes 0 ns hands the chain on and is no segment. A leg is
one rank doing one thing of one micro-batch, as people tell the story.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from itertools import compress
from operator import ne
from typing import TypeVar

from simcore.diagnostics import never
from simcore.records import NamedTuple
from simcore.trace.figures import PathSegment
from simcore.trace.findings import Leg, LegKey, stretches
from simcore.trace.graph import BEFORE, Cause, ChainStep
from simcore.trace.reasons import Facts, graph_facts, reason_words
from simcore.trace.repeats import Way
from simcore.trace.spans import NONE
from simcore.trace.trace_graph import Neighbours, TraceGraph
from simcore.units import differences, shifted

Part = TypeVar("Part", int, str)


class PathStep(NamedTuple):
    """A chain of nodes of the graph, `first` to `last`, on one of its tracks. span: that of the first one.
    way: of a repeat the nodes that it goes through.
    """

    first: int
    last: int
    span: int
    track: int
    cause: Cause | None
    way: Way | None


class CriticalPath:
    """Columns over the segments, in the order of time.

    edge[i]..edge[i+1] ns is segment i (one entry more than segments). track, span: of which span of the trace
    it is a part, NONE where time passes by itself; rank: on which rank of the track.
    """

    def __init__(self, of: TraceGraph, cancelled: Callable[[], bool] = never) -> None:
        self.of = of
        self.edge, self.rank = array("q", (of.step_ns,)), array("q")
        self.track, self.span = array("i"), array("i")
        self._steps: list[PathStep] = []
        # By step its first segment.
        self._begun = array("i")
        if of.step_ns:
            self._walk(cancelled)

    def _walk(self, cancelled: Callable[[], bool]) -> None:
        """From the end of the step back to its start; the columns are turned round at the end."""
        of, graph = self.of, self.of.graph
        track, span, until = of.last_track, NONE, of.step_ns
        rank, last = of.ranks[track], of.last[track]
        held = next(iter(graph.held(last, of.ends, track)), None)
        # By way (each there once), which ends as its last span does, its columns.
        known: dict[int, tuple[array[int], array[int]]] = {}
        for step in graph.path(last, of.ends, track, cancelled):
            if held is not None and (held.track != track or held.why != BEFORE):
                rank = of.rank_behind(held, track, span, rank)
            track, held = step.track, step.cause
            span = of.span_at(step.node, track)
            # By their own clocks ranks may be through a little too early: no time is on the path twice.
            if step.start < until:
                self._add(step, span, rank, until, known)
                until = step.start
        for column in (self.edge, self.track, self.span, self.rank):
            column.reverse()
        self._begun = array("i", [len(self) - behind for behind in reversed(self._begun)])
        self._steps.reverse()

    def _add(
        self, step: ChainStep, span: int, rank: int, until: int,
        known: dict[int, tuple[array[int], array[int]]],
    ) -> None:  # fmt: skip
        """Adds the segments of a chain, the last one first. span: of its last node."""
        of, way = self.of, step.way
        track = step.track if of.shown is None else of.shown(step.track, rank)
        first = span - (step.node - step.first)
        if way is not None:
            origin = span - way.places[-1]
            first = origin + way.places[0]
            if id(way) not in known:
                known[id(way)] = _turned(way.begin, way.places, until - step.start)
            begins, places = known[id(way)]
            begins, spans = shifted(begins, step.start), shifted(places, origin)
        elif step.first == step.node:
            begins, spans = array("q", (step.start,)), array("i", (span,))
        else:
            begins = array("q", (step.start, *of.ends[step.first : step.node]))
            begins, spans = _turned(begins, array("i", range(first, span + 1)), until)
        told = PathStep(step.first, step.node, first, step.track, step.cause, way)
        if self.span and self.track[-1] == track and self._is_more(step.track, spans[0]):
            self.edge[-1] = begins[-1]
            self._steps[-1] = told
            return
        self.edge += begins
        self.span += spans
        self.track += array("i", (track,)) * len(spans)
        self.rank += array("q", (rank,)) * len(spans)
        self._begun.append(len(self.span))
        self._steps.append(told)

    def _is_more(self, track: int, span: int) -> bool:
        """Whether a span is one segment with the one that was added last."""
        return self.of.is_one is not None and self.of.is_one(track, span, self.span[-1])

    def __len__(self) -> int:
        return len(self.span)

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        """(track, span, ns) of each segment."""
        return zip(self.track, self.span, self.lengths, strict=True)

    @cached_property
    def lengths(self) -> array[int]:
        """How long each segment is, ns."""
        return differences(self.edge[1:], self.edge[:-1])

    def at(self, time_ns: int) -> int:
        """The segment that holds `time_ns`, the last one for the end of the step; -1 without segments."""
        return min(bisect_right(self.edge, time_ns) - 1, len(self) - 1)

    # -- why ---------------------------------------------------------------------------

    def chains(self) -> Iterator[tuple[int, int, Way | None]]:
        """(first, last + 1, way) of segments of one rank in a row, each of which waits for the one before it,
        or goes a known way, in the order of time.
        """
        for begun, over, step in zip(self._begun, [*self._begun[1:], len(self)], self._steps, strict=False):
            yield begun, over, step.way

    def neighbours(self, index: int) -> Neighbours:
        """Segment `index`, and what ended when it began."""
        of, graph = self.of, self.of.graph
        step, span = self._steps[bisect_right(self._begun, index) - 1], self.span[index]
        node, track, cause = step.first, step.track, step.cause
        if step.first != step.last and span != step.span:
            node = of.nodes[track][span]
            # In a chain each node waits for the one before it alone.
            cause = Cause(node - 1, BEFORE, track)
            if step.way is not None:
                cause = graph.first_cause(node, graph.start(node, of.ends), of.ends, track)
        neighbours = Neighbours(node, track, cause if index else None)
        return of.behind_instants(neighbours) if of.hides_instants else neighbours


# -- what it is made of --------------------------------------------------------------


def sums(path: CriticalPath, part_of: Callable[[int, int], Part]) -> dict[Part, int]:
    """Returns ns by part, the longest first, of equal ones the lesser. part_of: of (track, span)."""
    ns_of: dict[Part, int] = {}
    for track, span, ns in path:
        part = part_of(track, span)
        ns_of[part] = ns_of.get(part, 0) + ns
    return longest_first(ns_of)


def by_rank(path: CriticalPath) -> dict[int, int]:
    """Returns ns by rank, in the same order."""
    return longest_first(summed(path.rank, path.lengths))


def summed(keys: Iterable[Part], lengths: Iterable[int]) -> dict[Part, int]:
    """Returns the sum of the lengths of each key."""
    ns_of: dict[Part, int] = {}
    for key, ns in zip(keys, lengths, strict=True):
        ns_of[key] = ns_of.get(key, 0) + ns
    return ns_of


def longest_first(ns_of: dict[Part, int]) -> dict[Part, int]:
    """Returns them by length, of equal ones the lesser part first."""
    return dict(sorted(ns_of.items(), key=lambda pair: (-pair[1], pair[0])))


class LegOf(NamedTuple):
    """What a span is a part of, as a leg tells it. apart: keeps legs that are told alike apart.
    is_placeholder: whether it is compute of which nothing is known.
    """

    what: str
    microbatch: int
    apart: int = NONE
    is_placeholder: bool = False


class PathSource(ABC):
    """What a kind of run says of its critical path."""

    @abstractmethod
    def kind(self, track: int, span: int) -> str:
        """What the time goes to."""

    @abstractmethod
    def name(self, track: int, span: int) -> str:
        """What it is called, raw text of the file."""

    def part(self, by: str, track: int, span: int) -> str:
        """The part of a segment by what this kind of run alone has."""
        return self.name(track, span)

    def alike(self, track: int, span: int) -> object:
        """What runs: segments with equal ones are alike."""
        return self.kind(track, span), self.name(track, span)

    @abstractmethod
    def leg(self, track: int, span: int) -> LegOf:
        """What it is a part of."""

    @abstractmethod
    def segment(self, path: CriticalPath, index: int) -> PathSegment:
        """A segment, with its words."""

    def facts(self, path: CriticalPath, index: int) -> Facts:
        """What is known of a segment and what ended when it began."""
        return graph_facts(path.of, path.neighbours(index))

    def reason(self, path: CriticalPath, index: int) -> str:
        """Why a segment could not start earlier."""
        return reason_words(self.facts(path, index))

    def number(self, track: int, rank: int) -> int:
        """The track of a screen."""
        return track

    def stage(self, track: int) -> int | None:
        """The stage of a pipeline, None where it is not known."""
        return None

    def part_of(self, by: str) -> Callable[[int, int, int], str]:
        """The part of a segment, by its track, span and rank. by: `kind`, `stage`, `rank`,
        or what `part` knows.
        """
        if by == "kind":
            return lambda track, span, rank: self.kind(track, span)
        if by == "stage":
            return lambda track, span, rank: stage_words(self.stage(track))
        if by == "rank":
            return lambda track, span, rank: f"rank {rank}"
        return lambda track, span, rank: self.part(by, track, span)

    def segments(self, path: CriticalPath, indices: Iterable[int] | None = None) -> Iterator[PathSegment]:
        """Some segments, or all."""
        return (self.segment(path, index) for index in (range(len(path)) if indices is None else indices))


def stage_words(stage: int | None) -> str:
    """`stage 3`."""
    return "no stage" if stage is None else f"stage {stage}"


def path_parts(path: CriticalPath, source: PathSource, by: str) -> Iterator[tuple[str, int]]:
    """Returns (part, ns) of each segment, in the order of time."""
    part_of = source.part_of(by)
    return ((part_of(track, span, rank), ns) for rank, (track, span, ns) in zip(path.rank, path, strict=True))


def path_legs(path: CriticalPath, source: PathSource) -> list[Leg]:
    """Returns the legs, in the order of time: they cover 0..step time."""
    legs = []
    for stretch in stretches(_keyed(path, source)):
        first, (rank, what, microbatch, _) = stretch.first, stretch.key
        track, start, end = path.track[first], path.edge[first], path.edge[stretch.last]
        number, stage = source.number(track, rank), source.stage(track)
        reason = source.reason(path, first)
        legs.append(Leg(first, stretch.last, start, end, number, rank, stage, what, microbatch, reason))
    return legs


def _keyed(path: CriticalPath, source: PathSource) -> Iterator[tuple[LegKey, bool]]:
    for track, span, rank in zip(path.track, path.span, path.rank, strict=True):
        leg = source.leg(track, span)
        yield (rank, leg.what, leg.microbatch, leg.apart), leg.is_placeholder


def _turned(begins: array[int], spans: array[int], end_ns: int) -> tuple[array[int], array[int]]:
    """Spans that follow one another, and when they begin, the last first, without those that take 0 ns."""
    if len(spans) > 1:
        # What takes 0 ns begins when what is behind it does.
        lasts = bytes(map(ne, begins, (*begins[1:], end_ns)))
        begins = array("q", compress(begins, lasts))
        spans = array("i", compress(spans, lasts))
    return begins[::-1], spans[::-1]
