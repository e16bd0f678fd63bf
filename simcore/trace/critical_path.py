"""The critical path: a chain of segments from 0 to the step time, its parts and its merged segments.

Each segment waits for the one before. The path is walked from the end: what ended last, what held that back,
and so on (`Graph.walk_path`). Where two nodes ended at the same instant the first cause is taken: a track's
own work before that of others, then the lower track. What takes 0 ns hands the chain on and is no segment. A
merged segment is one rank doing one thing of one micro-batch.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import compress
from operator import le, lt, ne
from typing import TypeVar

from simcore.diagnostics import never_cancelled
from simcore.records import NamedTuple
from simcore.trace.figures import PathSegment
from simcore.trace.findings import MergedSegment, MergeKey, merge_stretches
from simcore.trace.graph import BEFORE, Cause, ChainStep
from simcore.trace.reasons import Facts, make_graph_facts, reason_words
from simcore.trace.repeats import PathNodes
from simcore.trace.spans import NONE
from simcore.trace.trace_graph import Neighbours, TraceGraph
from simcore.units import add_to_column, lengths_between

Part = TypeVar("Part", int, str)

# Of a chain by span, in two bits: whether it takes time, whether it is idle. Idle spans with nothing between
# them that takes time, or at an end of their chain, may be one segment with another.
_AS_TIME = bytes(2 * (takes == 1) for takes in range(256))
_IDLE_BEHIND = re.compile(rb"\x03(?=[\x00\x01]*(?:\x03|\Z))")
_IDLE_BEFORE = re.compile(rb"(?:\A|\x03)[\x00\x01]*(?=(\x03))")


class PathStep(NamedTuple):
    """A chain of nodes of the graph, `first` to `last`, on one of its tracks."""

    first: int
    """Its first node."""
    last: int
    """Its last node."""
    span: int
    """The span of its first node."""
    track: int
    """Its track."""
    cause: Cause | None
    """Why it began, None where the step begins."""
    way: PathNodes | None
    """The nodes that the path goes through, of a chain in a repeat; else None."""


class CriticalPath:
    """Columns over the segments, in the order of time.

    edge[i]..edge[i+1] ns is segment i (one entry more than segments). track, span: the span of the trace that
    it is a part of, NONE where time passes by itself; rank: the rank of the track that it is on.
    """

    def __init__(self, of: TraceGraph, cancelled: Callable[[], bool] = never_cancelled) -> None:
        self.of = of
        # Ranks of recordings are those of files.
        is_small = of.rank_of is None and max(of.ranks) < 2**31
        self.edge, self.rank = array("q", (of.step_ns,)), array("i" if is_small else "q")
        self.track, self.span = array("i"), array("i")
        self._steps: list[PathStep] = []
        # The first segment of each step.
        self._step_starts = array("i")
        if of.step_ns:
            self._walk(cancelled)

    def _walk(self, cancelled: Callable[[], bool]) -> None:
        """Walks from the end of the step back to its start; the columns are reversed at the end."""
        of, graph, causing_ends = self.of, self.of.graph, self.of.causing_ends
        track, span, until = of.last_track, NONE, of.step_ns
        rank, last = of.ranks[track], of.last_nodes[track]
        cause = next(iter(graph.find_blockers(last, causing_ends, track)), None)
        # By the id of a path through a repeat, whose end is that of its last span, the columns of it.
        cache: dict[int, tuple[array[int], array[int]]] = {}
        for step in graph.walk_path(last, causing_ends, track, cancelled):
            if of.replayed_ends is not None:
                step = _with_ends(step, of.ends)
            if cause is not None and (cause.track != track or cause.why != BEFORE):
                rank = of.rank_behind(cause, track, span, rank)
            track, cause = step.track, step.cause
            last_node = step.node
            span = of.span_at(last_node, track)
            for part in self._parts(step, span, until):
                # Clocks of ranks differ a little, so that ends may overlap: no time is on the path twice.
                if part.start < until:
                    self._add(part, span - (last_node - part.node), rank, until, cache)
                    until = part.start
        for column in (self.edge, self.track, self.span, self.rank):
            column.reverse()
        self._step_starts = array("i", [len(self) - behind for behind in reversed(self._step_starts)])
        self._steps.reverse()

    def _parts(self, step: ChainStep, span: int, until: int) -> Iterator[ChainStep]:
        """Yields the parts of a chain, the last one first: idle time that may be one segment with other idle
        time is a part of its own. span: of its last node.
        """
        idle, ends = self.of.idle, self.of.ends
        if idle is None or step.first == step.node or step.repeat_path is not None:
            yield step
            return
        begins = _begins(step, ends)
        count = len(begins)
        behind = begins[1:]
        behind.append(until)
        takes_time = bytes(map(lt, begins, behind))
        if 0 not in takes_time or all(map(le, begins, behind)):
            is_idle = int.from_bytes(idle[step.track][span - count + 1 : span + 1], "little")
            as_time = int.from_bytes(takes_time.translate(_AS_TIME), "little")
            kinds = (as_time | is_idle).to_bytes(count, "little")
            alone = {match.start() for match in _IDLE_BEHIND.finditer(kinds)}
            alone.update(match.start(1) for match in _IDLE_BEFORE.finditer(kinds))
            edges = sorted({0, count, *alone, *(at + 1 for at in alone)})
        else:
            edges = list(range(count + 1))
        edge_times = [begins[at] for at in edges[:-1]]
        # Columns of a long chain are not held while its parts are taken.
        del begins, behind
        for at, over, start in zip(edges[-2::-1], edges[:0:-1], edge_times[::-1], strict=True):
            cause = Cause(step.first + at - 1, BEFORE, step.track) if at else step.cause
            node = step.first + over - 1
            yield ChainStep(step.first + at, node, start, ends[node], step.track, cause)

    def _add(
        self, step: ChainStep, span: int, rank: int, until: int,
        cache: dict[int, tuple[array[int], array[int]]],
    ) -> None:  # fmt: skip
        """Adds the segments of a chain, the last one first. span: of its last node."""
        of, way = self.of, step.repeat_path
        track = step.track if of.shown_track is None else of.shown_track(step.track, rank)
        first = span - (step.node - step.first)
        if way is not None:
            origin = span - way.duration_ids[-1]
            first = origin + way.duration_ids[0]
            if id(way) not in cache:
                columns = _select_lasting(way.begin, way.duration_ids, until - step.start)
                cache[id(way)] = columns[0][::-1], columns[1][::-1]
            begins, durations = cache[id(way)]
            begins, spans = add_to_column(begins, step.start), add_to_column(durations, origin)
        elif step.first == step.node:
            begins, spans = array("q", (step.start,)), array("i", (span,))
        else:
            begins, spans = _begins(step, of.ends), array("i", range(first, span + 1))
            begins, spans = _select_lasting(begins, spans, until)
            begins.reverse()
            spans.reverse()
        path_step = PathStep(step.first, step.node, first, step.track, step.cause, way)
        if self.span and self.track[-1] == track and self.continues_last(step.track, spans[0]):
            self.edge[-1] = begins[-1]
            self._steps[-1] = path_step
            return
        self.edge += begins
        self.span += spans
        self.track += array("i", (track,)) * len(spans)
        self.rank += array(self.rank.typecode, (rank,)) * len(spans)
        self._step_starts.append(len(self.span))
        self._steps.append(path_step)

    def continues_last(self, track: int, span: int) -> bool:
        """Returns whether a span is one segment with the one that was added last."""
        if self.of.idle is None:
            return False
        idle, last = self.of.idle[track], self.span[-1]
        return span == last or bool(idle[span] and idle[last])

    def __len__(self) -> int:
        return len(self.span)

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        """(track, span, ns) of each segment."""
        return zip(self.track, self.span, self.lengths, strict=True)

    @cached_property
    def lengths(self) -> array[int]:
        """The length of each segment, ns."""
        return lengths_between(self.edge)

    def at(self, time_ns: int) -> int:
        """Returns the segment that holds `time_ns`, the last one for the end of the step; -1 without
        segments.
        """
        return min(bisect_right(self.edge, time_ns) - 1, len(self) - 1)

    # -- why ---------------------------------------------------------------------------

    def chains(self) -> Iterator[tuple[int, int, PathNodes | None]]:
        """Yields (first, last + 1, path through a repeat) of successive segments of one rank, in the order of
        time. Each of them waits for the one before it, or the path through a repeat says why it began.
        """
        for start, end, step in zip(
            self._step_starts, [*self._step_starts[1:], len(self)], self._steps, strict=False
        ):
            yield start, end, step.way

    def neighbours(self, index: int) -> Neighbours:
        """Returns segment `index` and what ended when it began."""
        of, graph = self.of, self.of.graph
        step, span = self._steps[bisect_right(self._step_starts, index) - 1], self.span[index]
        node, track, cause = step.first, step.track, step.cause
        if step.first != step.last and span != step.span:
            node = of.nodes[track][span]
            # In a chain each node waits for the one before it alone.
            cause = Cause(node - 1, BEFORE, track)
            if step.way is not None:
                begin = graph.start(node, of.causing_ends)
                cause = graph.find_first_cause(node, begin, of.causing_ends, track)
        neighbours = Neighbours(node, track, cause if index else None)
        return of.skip_instants(neighbours) if of.hides_instants else neighbours


# -- what it is made of --------------------------------------------------------------


def sum_by_part(path: CriticalPath, part_of: Callable[[int, int], Part]) -> dict[Part, int]:
    """Returns ns by part, the longest first, of equal ones the lesser. part_of: of (track, span)."""
    ns_of: dict[Part, int] = {}
    for track, span, ns in path:
        part = part_of(track, span)
        ns_of[part] = ns_of.get(part, 0) + ns
    return sort_longest_first(ns_of)


def sum_by_rank(path: CriticalPath) -> dict[int, int]:
    """Returns ns by rank, the longest first, of equal ones the lesser."""
    return sort_longest_first(sum_lengths(path.rank, path.lengths))


def sum_lengths(keys: Iterable[Part], lengths: Iterable[int]) -> dict[Part, int]:
    """Returns the sum of the lengths of each key."""
    ns_of: dict[Part, int] = defaultdict(int)
    for key, ns in zip(keys, lengths, strict=True):
        ns_of[key] += ns
    return dict(ns_of)


def sort_longest_first(ns_of: dict[Part, int]) -> dict[Part, int]:
    """Returns the parts by length, the longest first, of equal ones the lesser."""
    return dict(sorted(ns_of.items(), key=lambda pair: (-pair[1], pair[0])))


class MergeFacts(NamedTuple):
    """What a span is a part of, as a merged segment states it."""

    what: str
    """What is done: as `MergedSegment.what`."""
    microbatch: int
    """The micro-batch, -1 outside of them."""
    separator: int = NONE
    """Keeps apart merged segments that are called the same."""
    is_placeholder: bool = False
    """Whether it is compute of which nothing is known."""


class PathSource(ABC):
    """The words of a kind of run for its critical path."""

    @abstractmethod
    def kind(self, track: int, span: int) -> str:
        """Returns what the time goes to: an account or a kind of group."""

    @abstractmethod
    def name(self, track: int, span: int) -> str:
        """Returns what the span is called, raw text of the file."""

    def part_name(self, by: str, track: int, span: int) -> str:
        """Returns the part of a segment by a grouping that only this kind of run has."""
        return self.name(track, span)

    def kind_key(self, track: int, span: int) -> object:
        """Returns a key of what runs: segments with equal keys run the same."""
        return self.kind(track, span), self.name(track, span)

    @abstractmethod
    def merge_facts(self, track: int, span: int) -> MergeFacts:
        """Returns what a span is a part of."""

    @abstractmethod
    def segment(self, path: CriticalPath, index: int) -> PathSegment:
        """Returns a segment with its words."""

    def wait_facts(self, path: CriticalPath, index: int) -> Facts:
        """Returns what is known of a segment and of what ended when it began."""
        return make_graph_facts(path.of, path.neighbours(index))

    def reason(self, path: CriticalPath, index: int) -> str:
        """Returns why a segment could not start earlier, in words."""
        return reason_words(self.wait_facts(path, index))

    def track_id(self, track: int, rank: int) -> int:
        """Returns the track of the screen that shows a rank of a track."""
        return track

    def stage(self, track: int) -> int | None:
        """Returns the pipeline stage of a track, None where it is not known."""
        return None

    def parts(self, path: CriticalPath, by: str) -> Iterable[str]:
        """Returns the part of each segment, in the order of time. by: as of `make_part_function`."""
        part_of = self.make_part_function(by)
        return map(part_of, path.track, path.span, path.rank)

    def sum_parts(self, path: CriticalPath, by: str) -> dict[str, int]:
        """Returns the ns of each part. by: as of `make_part_function`."""
        if by == "rank":
            return {f"rank {rank}": ns for rank, ns in sum_lengths(path.rank, path.lengths).items()}
        if by == "stage":
            by_track = sum_lengths(path.track, path.lengths)
            return sum_lengths((stage_words(self.stage(track)) for track in by_track), by_track.values())
        return sum_lengths(self.parts(path, by), path.lengths)

    def kind_keys(self, path: CriticalPath) -> Iterable[object]:
        """Returns a key of what runs for each segment: segments with equal keys run the same."""
        return map(self.kind_key, path.track, path.span)

    def make_part_function(self, by: str) -> Callable[[int, int, int], str]:
        """Returns a function that gives the part of a segment by its track, span and rank.

        by: `kind`, `stage`, `rank`, or a grouping of `part_name`.
        """
        if by == "kind":
            return lambda track, span, rank: self.kind(track, span)
        if by == "stage":
            return lambda track, span, rank: stage_words(self.stage(track))
        if by == "rank":
            return lambda track, span, rank: f"rank {rank}"
        return lambda track, span, rank: self.part_name(by, track, span)

    def segments(self, path: CriticalPath, indices: Iterable[int] | None = None) -> Iterator[PathSegment]:
        """Yields some segments, or all."""
        return (self.segment(path, index) for index in (range(len(path)) if indices is None else indices))


def stage_words(stage: int | None) -> str:
    """Returns `stage 3`, or `no stage`."""
    return "no stage" if stage is None else f"stage {stage}"


def path_parts(path: CriticalPath, source: PathSource, by: str) -> Iterator[tuple[str, int]]:
    """Returns (part, ns) of each segment, in the order of time."""
    return zip(source.parts(path, by), path.lengths, strict=True)


def merge_segments(path: CriticalPath, source: PathSource) -> list[MergedSegment]:
    """Returns the merged segments, in the order of time: they cover 0..step time."""
    merged_segments = []
    for stretch in merge_stretches(_merge_keys(path, source)):
        first, (rank, what, microbatch, _) = stretch.first, stretch.key
        track, start, end = path.track[first], path.edge[first], path.edge[stretch.last]
        track_id, stage = source.track_id(track, rank), source.stage(track)
        reason = source.reason(path, first)
        merged_segments.append(
            MergedSegment(first, stretch.last, start, end, track_id, rank, stage, what, microbatch, reason)
        )
    return merged_segments


def _merge_keys(path: CriticalPath, source: PathSource) -> Iterator[tuple[MergeKey, bool]]:
    for track, span, rank in zip(path.track, path.span, path.rank, strict=True):
        merge_facts = source.merge_facts(track, span)
        yield (
            (rank, merge_facts.what, merge_facts.microbatch, merge_facts.separator),
            merge_facts.is_placeholder,
        )


def _with_ends(step: ChainStep, ends: Sequence[int]) -> ChainStep:
    """Returns a chain of a replay with the times of the run: it begins when its cause ends."""
    begin = 0 if step.cause is None else ends[step.cause.node]
    return step._replace(start=begin, end=ends[step.node])


def _begins(step: ChainStep, ends: Sequence[int]) -> array[int]:
    """Returns when each node of a chain begins, ns."""
    begins = array("q", (step.start,))
    begins.extend(ends[step.first : step.node])
    return begins


def _select_lasting(begins: array[int], spans: array[int], end_ns: int) -> tuple[array[int], array[int]]:
    """Returns the begins of successive spans and the spans, without those of 0 ns."""
    if len(spans) > 1:
        # A span of 0 ns begins when the one behind it does.
        behind = begins[1:]
        behind.append(end_ns)
        lasts = bytes(map(ne, begins, behind))
        if 0 in lasts:
            begins = array("q", compress(begins, lasts))
            spans = array("i", compress(spans, lasts))
    return begins, spans
