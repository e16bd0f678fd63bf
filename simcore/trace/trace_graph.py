"""The graph of a trace: what its nodes stand for, slack, and passes with other durations.

It is made when something that stands on it is asked for: the critical path, slack, what-if by a pass. Nodes
are what ends (`simcore.trace.graph`); a span is one node or several, and of a collective several tracks have
one.
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
from simcore.trace.graph import BEFORE, BUSY, JOINS, Cause, Graph
from simcore.trace.spans import NONE

# Gives, of (track, span, other track), the span that the same collective is on the other track.
FindMemberSpan = Callable[[int, int, int], int]


class Neighbours(NamedTuple):
    """A node of `track`, and what ended when it began; None where the step begins."""

    node: int
    track: int
    cause: Cause | None


class TraceGraph(Struct, dict=True):
    """A graph, and of what its nodes and durations are a part.

    ends: of each node, ns. last: of each track the node at which it is over. ranks: of each track the first
    rank that it stands for. nodes: of each track and span the node with which it ends, NONE without one.
    row_of: of each duration the span that it is a part of, counted over all tracks, NONE where time passes by
    itself.
    taken: gives what the durations were, as of `Graph.flat`; None where what comes first depends on times, so
    that there is no slack. sent: (node, track, span) of messages whose slack their send has, too.
    rank_of: of (cause, track, span, rank) that waited for it, which rank of its class the cause is of.
    shown: of (track, rank) the track of the trace that it is, where the graph is that of a trace with equal
    ranks folded.
    launched: of (node, track) whether it is a collective that the track has launched beside what it does, so
    that whoever came last was late for it. is_one: whether two spans of a track that follow each
    other on the critical path are one segment there. hides_instants: whether it is told what is before that
    which takes no time.
    """

    graph: Graph
    ends: Sequence[int]
    step_ns: int
    last_nodes: Sequence[int]
    ranks: Sequence[int]
    nodes: Sequence[Sequence[int]]
    row_of: Sequence[int]
    find_member_span: FindMemberSpan
    make_durations: Callable[[], array[int]] | None
    message_sends: Sequence[tuple[int, int, int]] = ()
    rank_of: Callable[[Cause, int, int, int], int] | None = None
    shown_track: Callable[[int, int], int] | None = None
    is_launched: Callable[[int, int], bool] | None = None
    is_one_segment: Callable[[int, int, int], bool] | None = None
    hides_instants: bool = False

    @cached_property
    def first_rows(self) -> list[int]:
        """Of each track how many spans come before its own."""
        return first_rows(map(len, self.nodes))

    def span_at(self, node: int, track: int) -> int:
        """The span of a track that a node, not a join, is a part of; NONE where time passes by itself."""
        row = self.row_of[self.graph.duration[node - 1]]
        if row == NONE:
            return NONE
        first = self.first_rows
        if first[track] <= row < first[track + 1]:
            return row - first[track]
        of = bisect_right(first, row) - 1
        return self.find_member_span(of, row - first[of], track)

    @cached_property
    def durations(self) -> array[int]:
        """What the durations were, as of `Graph.flat`. Raises ValueError where times decide what is first."""
        if self.make_durations is None:
            raise ValueError("no slack where collectives queue by priority")
        return self.make_durations()

    def rank_behind(self, cause: Cause, track: int, span: int, rank: int) -> int:
        """The rank that a cause is of, for which a span of `rank` waited."""
        if self.rank_of is None:
            return self.ranks[self.graph.track_of(cause)]
        return self.rank_of(cause, track, span, rank)

    def is_late(self, of: Neighbours) -> bool:
        """Whether it began because another member of its collective came last."""
        if of.cause is None or of.cause.track != of.track:
            return of.cause is not None
        return self.is_launched is not None and of.cause.why != BUSY and self.is_launched(of.node, of.track)

    def span_of_cause(self, cause: Cause) -> tuple[int, int]:
        """(track, span) of a cause, on the track that waited where it is on that."""
        track = self.graph.track_of(cause)
        return track, self.span_at(cause.node, track)

    def skip_instants(self, of: Neighbours) -> Neighbours:
        """The same, or of what takes no time the node that is before it."""
        while of.cause is not None and self._is_instant(of.cause.node):
            if of.cause.why not in (BEFORE, JOINS) or self.is_late(of):
                break
            node, track = of.cause.node, self.graph.track_of(of.cause)
            of = Neighbours(node, track, next(iter(self.graph.find_causes(node, self.ends, track)), None))
        return of

    def _is_instant(self, node: int) -> bool:
        return self.ends[node] == self.graph.start(node, self.ends)

    @property
    def last_track(self) -> int:
        """The first track that is over last."""
        over = [self.ends[node] for node in self.last_nodes]
        return over.index(max(over))

    # -- passes ----------------------------------------------------------------------

    def compute_step_ns(self, durations: array[int], cancelled: Callable[[], bool] = never_cancelled) -> int:
        """The step time with other durations, ns. Raises `Cancelled`."""
        ends = self.graph.ends(durations, cancelled)
        return max(ends[node] for node in self.last_nodes)


def first_rows(lengths: Iterable[int]) -> list[int]:
    """Of columns behind each other the place of the first entry of each, and of what would come next."""
    first = [0]
    for length in lengths:
        first.append(first[-1] + length)
    return first


def scale_durations(durations: array[int], duration_ids: Iterable[int], factor: float) -> array[int]:
    """A copy of durations with a factor on those of the chosen numbers, rounded half to even."""
    times = durations[:]
    cache: dict[int, int] = {}
    for duration_id in duration_ids:
        ns = times[duration_id]
        if ns not in cache:
            cache[ns] = scaled(ns, factor)
        times[duration_id] = cache[ns]
    return times


def compute_slack(of: TraceGraph, cancelled: Callable[[], bool] = never_cancelled) -> list[array[int]]:
    """By track and span, how much later it may end before the step is longer, ns. Raises `Cancelled`.

    Durations and order are frozen, a collective is later for all its members. A track stands for many ranks:
    the slack is that of a span on one of them, and on all of them alike, as no chain of waits meets the same
    span of two ranks of a class, which run at the same time. Raises ValueError where there is none.
    """
    step_ns = max(of.ends[node] for node in of.last_nodes)
    latest = of.graph.latest(of.durations, step_ns, cancelled)
    # What has not run, NONE, has no node: it is the last entry.
    slack_ns = [*map(sub, latest, of.ends), 0]
    # By lists: an array that is made of an iterator grows by each element.
    slacks = [array("q", [*map(slack_ns.__getitem__, nodes)]) for nodes in of.nodes]
    for node, track, span in of.message_sends:
        slacks[track][span] = min(slacks[track][span], slack_ns[node])
    return slacks
