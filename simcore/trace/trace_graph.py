"""The graph of a trace: what its nodes stand for, slack, and passes with other durations.

It is built when something that needs it is requested: the critical path, slack, what-if by a pass. Nodes are
what ends (`simcore.trace.graph`); a span is one node or several, and several tracks share one of a
collective.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from operator import sub

from simcore.collectives.exact import scaled
from simcore.diagnostics import never_cancelled
from simcore.records import NamedTuple, Struct
from simcore.trace.graph import BEFORE, BUSY, JOINS, START, Cause, Graph
from simcore.trace.spans import NONE
from simcore.units import select

# Nodes whose slack is taken at once.
_PART = 2**16
# Returns, for (track, span, other track), the span of the other track that is the same collective.
FindMemberSpan = Callable[[int, int, int], int]


class Neighbours(NamedTuple):
    """A node, and what ended when it began."""

    node: int
    """The node."""
    track: int
    """The track on which it is looked at."""
    cause: Cause | None
    """What ended when it began; None where the step begins."""


class TraceGraph(Struct, dict=True):
    """A graph, with the spans of the trace that its nodes and durations are parts of."""

    graph: Graph
    """The graph."""
    ends: Sequence[int]
    """When each node ends, ns."""
    step_ns: int
    """The step time, ns."""
    last_nodes: Sequence[int]
    """The node at which each track is over."""
    ranks: Sequence[int]
    """The first rank that each track stands for."""
    nodes: Sequence[Sequence[int]]
    """By track and span the node with which the span ends, NONE without one."""
    row_of: Sequence[int]
    """By duration the span that it is a part of, counted over all tracks; NONE where time passes by itself.
    """
    find_member_span: FindMemberSpan
    """Returns the span of another member of a collective."""
    make_durations: Callable[[], array[int]] | None
    """Returns the durations, as of `Graph.flatten`; None where the order depends on times, so that there is
    no slack.
    """
    message_sends: Sequence[tuple[int, int, int]] = ()
    """(node, track, span) of messages whose slack also limits that of their send."""
    rank_of: Callable[[Cause, int, int, int], int] | None = None
    """Returns, for (cause, track, span, rank) that waited, the rank of its class that the cause is of."""
    shown_track: Callable[[int, int], int] | None = None
    """Returns, for (track, rank), the track of the trace, where the graph is that of a trace with equal ranks
    folded.
    """
    is_launched: Callable[[int, int], bool] | None = None
    """Whether, for (node, track), it is a collective that the track launched to overlap other work, so that
    whoever came last was late for it.
    """
    idle: Sequence[bytes | bytearray] | None = None
    """By track and span 1 for idle time, which is one segment with the idle time next to it on the critical
    path; None where each span is a segment of its own.
    """
    hides_instants: bool = False
    """Whether a cause that takes no time is replaced by what came before it."""
    replayed_ends: Sequence[int] | None = None
    """When each node ends in the replay that tells who waits for whom, where `ends` cannot: files that cut
    waiting off show a rank that waits as idle, as if it held itself.
    """

    @property
    def causing_ends(self) -> Sequence[int]:
        """The ends by which a node waits for the last of its causes, ns."""
        return self.ends if self.replayed_ends is None else self.replayed_ends

    @cached_property
    def first_rows(self) -> list[int]:
        """How many spans come before those of each track."""
        return first_rows(map(len, self.nodes))

    def span_at(self, node: int, track: int) -> int:
        """Returns the span of a track that a node, not a join, is a part of; NONE where time passes by
        itself.
        """
        row = self.row_of[self.graph.duration[node - 1]]
        if row == NONE:
            return NONE
        first = self.first_rows
        if first[track] <= row < first[track + 1]:
            return row - first[track]
        of = bisect_right(first, row) - 1
        return self.find_member_span(of, row - first[of], track)

    @property
    def durations(self) -> array[int]:
        """The durations, as of `Graph.flatten`, computed each time: they take as much memory as the times.

        Raises ValueError where the order depends on times.
        """
        if self.make_durations is None:
            raise ValueError("no slack where collectives queue by priority")
        return self.make_durations()

    def rank_behind(self, cause: Cause, track: int, span: int, rank: int) -> int:
        """Returns the rank of a cause for which a span of `rank` waited."""
        if self.rank_of is None:
            return self.ranks[self.graph.track_of(cause)]
        return self.rank_of(cause, track, span, rank)

    def is_late(self, of: Neighbours) -> bool:
        """Returns whether a node began because another member of its collective came last."""
        if of.cause is None or of.cause.track != of.track:
            return of.cause is not None
        return self.is_launched is not None and of.cause.why != BUSY and self.is_launched(of.node, of.track)

    def span_of_cause(self, cause: Cause) -> tuple[int, int]:
        """Returns (track, span) of a cause, on the track that waited if the cause is on that one."""
        track = self.graph.track_of(cause)
        return track, self.span_at(cause.node, track)

    def skip_instants(self, of: Neighbours) -> Neighbours:
        """Returns the same neighbours; a cause that takes no time is replaced by what came before it."""
        while of.cause is not None and self._is_instant(of.cause.node):
            if of.cause.why not in (BEFORE, JOINS) or self.is_late(of):
                break
            node, track = of.cause.node, self.graph.track_of(of.cause)
            causes = self.graph.find_causes(node, self.causing_ends, track)
            of = Neighbours(node, track, next(iter(causes), None))
        return of

    def _is_instant(self, node: int) -> bool:
        return self.ends[node] == self.graph.start(node, self.ends)

    @property
    def last_track(self) -> int:
        """The first track of those that are over last."""
        over = [self.ends[node] for node in self.last_nodes]
        return over.index(max(over))

    # -- passes ----------------------------------------------------------------------

    def compute_step_ns(self, durations: array[int], cancelled: Callable[[], bool] = never_cancelled) -> int:
        """Returns the step time with other durations, ns. Raises `Cancelled`."""
        ends = self.graph.ends(durations, cancelled)
        return max(ends[node] for node in self.last_nodes)


def graph_without_nodes(ids: Sequence[int]) -> TraceGraph:
    """Returns the graph of a run that has no step. ids: the rank or device of each track."""
    count = len(ids)
    nothing: list[list[int]] = [[] for _ in ids]
    graph = Graph(count, lambda node: ())
    return TraceGraph(graph, [0], 0, [START] * count, ids, nothing, [NONE], lambda *of: NONE, None)


def first_rows(lengths: Iterable[int]) -> list[int]:
    """Returns the index of the first entry of each of consecutive columns, and of the entry behind all."""
    first = [0]
    for length in lengths:
        first.append(first[-1] + length)
    return first


def scale_durations(durations: array[int], duration_ids: Iterable[int], factor: float) -> array[int]:
    """Returns a copy of durations with a factor on those with some indices, rounded half to even."""
    times = durations[:]
    cache: dict[int, int] = {}
    for duration_id in duration_ids:
        ns = times[duration_id]
        if ns not in cache:
            cache[ns] = scaled(ns, factor)
        times[duration_id] = cache[ns]
    return times


def compute_slack(of: TraceGraph, cancelled: Callable[[], bool] = never_cancelled) -> list[array[int]]:
    """Returns by track and span how much later it may end before the step is longer, ns. Raises `Cancelled`.

    Durations and order are frozen; a collective is later for all its members. A track stands for many ranks:
    the slack is that of the span on one of them, and on all of them at once, as no chain of waits meets the
    same span of two ranks of a class, which run at the same time. Raises ValueError where there is no slack.
    """
    step_ns = max(of.ends[node] for node in of.last_nodes)
    slack_ns = of.graph.latest(of.durations, step_ns, cancelled)
    for first in range(0, len(slack_ns), _PART):
        last = first + _PART
        slack_ns[first:last] = array("q", map(sub, slack_ns[first:last], of.ends[first:last]))
    # NONE, of what has not run, indexes the last entry.
    slack_ns.append(0)
    slacks = [select(slack_ns, nodes) for nodes in of.nodes]
    for node, track, span in of.message_sends:
        slacks[track][span] = min(slacks[track][span], slack_ns[node])
    return slacks
