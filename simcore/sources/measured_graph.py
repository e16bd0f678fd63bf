"""Builds the graph of a measured run from the segments of its ranks: a track is a rank.

What waits for what in a trace is read here and nowhere else: a receive waits for its message, or for its
send to begin, a rank in a collective for its last member and for the collective before it in the group, and
at the end of one that overlaps compute, for that. All else takes its own time: compute, sends, the host's
gaps, communication without a partner. Nothing is decided by who comes first, so that one graph serves all
durations.

Damaged traces can have ranks wait for each other in a circle. It is broken where the lowest rank in it
waits: that segment waits for nobody and keeps the time that was measured, as if it had no partner. The rule
does not depend on durations: with others the order is the same, and less work never makes a replay longer.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate, compress
from typing import Any

from simcore.records import NamedTuple, Struct
from simcore.sources.rendezvous import NONE, Rendezvous
from simcore.sources.segments import AWAIT, GAP, LAUNCH, OWN, TRANSFER
from simcore.trace.graph import BUSY, JOINS, RECEIVED, START, Cause, Graph
from simcore.trace.trace_graph import first_rows

# A table for `translate`: 1 for segments that wait for nobody.
_ALONE = bytes(kind in (OWN, GAP) for kind in range(256))
_LAUNCHES = bytes(kind == LAUNCH for kind in range(256))
# Fewer segments than this are added one by one in less time.
_STRETCH = 8


class SegmentTimes(Struct, frozen=True):
    """When the segments of each rank start and end; ns from the start of the step, columns over the
    segments.
    """

    start: tuple[array[int], ...]
    end: tuple[array[int], ...]


class MeasuredGraph:
    """The graph of a measured run, and the rank and segment of each of its nodes.

    together: False leaves each rank by itself, as it was measured: no segment waits for another rank's.
    """

    def __init__(self, rendezvous: Rendezvous, together: bool = True) -> None:
        self.rendezvous = rendezvous
        self.together = together
        counts = [len(segments) for segments in rendezvous.segments]
        columns = [*counts, *counts, len(rendezvous.members), len(rendezvous.transfers)]
        # The first duration of each column: `first_ns` and `after_ns` by rank, meetings, messages.
        self._offset = list(accumulate(columns, initial=1))
        self.graph = Graph(len(counts), self.ranks_of)
        # The node of each collective and of each message.
        self.meetings = array("i", (NONE,)) * len(rendezvous.members)
        self.messages = array("i", (NONE,)) * len(rendezvous.transfers)
        # (rank, node) of those that have come to each collective.
        self.arrivals: list[list[tuple[int, int]]] = [[] for _ in rendezvous.members]
        # For each segment its last node, and the one at which its waiting ends, NONE without any.
        self.end_nodes = [array("i", (NONE,)) * count for count in counts]
        self.wait_nodes = [array("i", (NONE,)) * count for count in counts]
        # (rank, segment) that wait for nobody, because they closed a circle.
        self.circles: list[tuple[int, int]] = []
        # When each node ended in the files; meaningless where ranks that did not run together have common
        # rendezvous.
        self.measured_ends = array("q", (0,))
        _RankWalk(self).run()
        # For each segment of each rank the time before any waiting, and the time behind it.
        self.first_ns = rendezvous.first_ns
        if self.circles or not together:
            self.first_ns = tuple(times[:] for times in rendezvous.first_ns)
        for rank, segment in self._segments_alone():
            self.first_ns[rank][segment] = (
                rendezvous.segments[rank].end[segment] - rendezvous.segments[rank].start[segment]
            )
        self.after_ns = rendezvous.after_ns

    def _segments_alone(self) -> Iterable[tuple[int, int]]:
        """Returns (rank, segment) that last as long as was measured, waiting included."""
        if self.together:
            return self.circles
        return ((rank, segment) for rank, nodes in enumerate(self.end_nodes) for segment in range(len(nodes)))

    # -- what nodes are --------------------------------------------------------------

    def ranks_of(self, node: int) -> Sequence[int]:
        """Returns the ranks that a node, not a join, is on: more than one for a collective, ascending."""
        column, index = self._locate(node)
        ranks = len(self.end_nodes)
        if column < 2 * ranks:
            return (column % ranks,)
        if column == 2 * ranks:
            return [rank for rank, _, _ in self.rendezvous.members[index]]
        return (self.rendezvous.transfers[index][0][0],)

    def meeting_of(self, node: int) -> int:
        """Returns the collective that a node, not a join, belongs to; NONE for all others."""
        column, index = self._locate(node)
        return index if column == 2 * len(self.end_nodes) else NONE

    def waiting_segment(self, meeting: int, rank: int) -> int:
        """Returns the segment in which a member waits for a collective."""
        return next(segment for who, _, segment in self.rendezvous.members[meeting] if who == rank)

    def first_duration(self, rank: int, segment: int) -> int:
        """Returns the index of the duration that a segment takes before any waiting."""
        return self._offset[rank] + segment

    def after_duration(self, rank: int, segment: int) -> int:
        """Returns the index of the duration that a segment takes behind its waiting."""
        return self._offset[len(self.end_nodes) + rank] + segment

    def meeting_duration(self, meeting: int) -> int:
        """Returns the index of the duration of a collective."""
        return self._offset[2 * len(self.end_nodes)] + meeting

    def message_duration(self, message: int) -> int:
        """Returns the index of the duration of a message."""
        return self._offset[2 * len(self.end_nodes) + 1] + message

    def _locate(self, node: int) -> tuple[int, int]:
        """Returns the column of a node's duration, and the index in it."""
        duration = self.graph.duration[node - 1]
        column = bisect_right(self._offset, duration) - 1
        return column, duration - self._offset[column]

    @cached_property
    def row_of(self) -> _DurationRows:
        """By duration the segment that it is a part of, counted over all ranks."""
        first = first_rows(map(len, self.end_nodes))
        shared = array("i", (first[rank] + segment for (rank, _, segment), *_ in self.rendezvous.members))
        shared.extend(first[rank] + segment for (rank, segment), _ in self.rendezvous.transfers)
        return _DurationRows(first[-1], shared)

    # -- passes ----------------------------------------------------------------------

    def durations(
        self,
        first: Sequence[array[int]],
        after: Sequence[array[int]],
        meetings: Sequence[int],
        messages: Sequence[int],
    ) -> array[int]:
        """Returns the durations of the graph, ns: of each segment by rank, of collectives, of messages."""
        return self.graph.flatten([*first, *after, meetings, messages])

    def times(self, ends: Sequence[int]) -> SegmentTimes:
        """Returns the times of all segments. ends: those of a pass. Raises OverflowError from 2^63 ns on."""
        end = [array("q", (ends[node] for node in nodes)) for nodes in self.end_nodes]
        return SegmentTimes(tuple(array("q", (0, *over[:-1])) if over else over for over in end), tuple(end))

    # -- who waits for whom ----------------------------------------------------------

    def can_wait(self, rank: int, segment: int) -> bool:
        """Returns whether a segment can wait for another rank: it receives, or is in a collective of
        several.
        """
        return self.wait_nodes[rank][segment] != NONE

    def begin_ns(self, rank: int, segment: int, ends: Sequence[int]) -> int:
        """Returns when what a segment waits for begins, ns: the last member has come and the lane of the
        group is free, the message is sent.
        """
        segments = self.rendezvous.segments[rank]
        if segments.kind[segment] == TRANSFER:
            return self.graph.start(self.messages[segments.received[segment]], ends)
        return self.graph.start(self.meetings[segments.meeting[segment]], ends)

    def find_causes(self, rank: int, segment: int, ends: Sequence[int]) -> list[Cause]:
        """Returns what held a segment until it went on, the first of several causes first.

        Causes are another rank's node, or the collective before its own in the group; none where its rank
        itself held it.
        """
        node, segments = self.wait_nodes[rank][segment], self.rendezvous.segments[rank]
        if node == NONE:
            return []
        direct_causes = self.graph.find_blockers(node, ends, rank)
        if segments.kind[segment] == TRANSFER:
            return direct_causes if direct_causes and direct_causes[0].why == RECEIVED else []
        meeting = self.meetings[segments.meeting[segment]]
        if not direct_causes or direct_causes[0].node != meeting:
            # Compute that overlaps the collective took longer.
            return []
        causes = self.graph.find_causes(meeting, ends, rank)
        if segments.kind[segment] == AWAIT:
            return causes
        return causes if causes and (causes[0].track != rank or causes[0].why == BUSY) else []


class _DurationRows(Sequence[int]):
    """By duration the segment that it is a part of, counted over all ranks; NONE before the first.

    rows: how many segments there are, each with two durations; shared: the segments of those of collectives
    and messages. Of two million segments a column takes 16 MB.
    """

    def __init__(self, rows: int, shared: array[int]) -> None:
        self._rows, self._shared = rows, shared

    def __len__(self) -> int:
        return 1 + 2 * self._rows + len(self._shared)

    def __getitem__(self, duration: Any) -> Any:
        at = duration - 1 - 2 * self._rows
        if at >= 0:
            return self._shared[at]
        return (duration - 1) % self._rows if duration > 0 else NONE


class _RankWalk:
    """Orders the segments of all ranks so that each comes behind what it waits for.

    A rank goes on until it waits for a message or a collective that has no node yet. now: the present node
    of each rank.
    """

    def __init__(self, built: MeasuredGraph) -> None:
        self.built = built
        self.rendezvous = built.rendezvous
        self.graph = built.graph
        ranks = range(len(self.rendezvous.segments))
        self.now = [START] * len(ranks)
        self.next = [0] * len(ranks)
        self._ready = list(reversed(ranks))
        # 1 for each segment of a rank that waits for nobody.
        alone = _ALONE if built.together else bytes((1,)) * 256
        self._alone = [segments.kind.translate(alone) for segments in self.rendezvous.segments]
        # Whether each rank has come to its present collective.
        self._has_come = bytearray(len(ranks))
        # Who waits for the node of each message and collective, and the collectives that are behind one.
        self._receiving: dict[int, int] = {}
        self._meeting: dict[int, list[int]] = {}
        self._behind: dict[int, list[int]] = {}
        # The collectives to which a rank comes with a segment without waiting in them.
        self._sender_meetings: dict[tuple[int, int], int] = {
            sender: meeting for meeting, sender in enumerate(self.rendezvous.senders) if sender is not None
        }

    def run(self) -> None:
        """Adds the nodes of all segments, and breaks circles where there are any."""
        while True:
            while self._ready:
                self._advance(self._ready.pop())
            left = (
                rank
                for rank, segments in enumerate(self.rendezvous.segments)
                if self.next[rank] < len(segments)
            )
            stuck = next(left, NONE)
            if stuck == NONE:
                return
            self._break_circle(self._find_circle(stuck))

    def _advance(self, rank: int) -> None:
        """Advances a rank until it is finished or must wait."""
        kinds, segment = self._alone[rank], self.next[rank]
        while segment < len(kinds):
            until = kinds.find(0, segment)
            until = len(kinds) if until < 0 else until
            if until - segment >= _STRETCH:
                self._stretch(rank, segment, until)
                segment = until
                continue
            node = self._add_segment(rank, segment)
            if node == NONE:
                # It comes back to this segment when what it waits for has its node.
                return
            self._go_on(rank, segment, node)
            segment += 1

    def _stretch(self, rank: int, first: int, last: int) -> None:
        """Adds the nodes of segments that wait for nobody, all at once."""
        count, duration = last - first, self.built.first_duration(rank, first)
        node = self.graph.add_line(range(duration, duration + count), self.now[rank])
        self.built.measured_ends += self.rendezvous.segments[rank].end[first:last]
        self.built.end_nodes[rank][first:last] = array("i", range(node, node + count))
        self.now[rank], self.next[rank] = node + count - 1, last
        self._has_come[rank] = False

    def _go_on(self, rank: int, segment: int, node: int) -> None:
        self.built.end_nodes[rank][segment] = self.now[rank] = node
        self.next[rank] = segment + 1
        self._has_come[rank] = False

    def _add_segment(self, rank: int, segment: int) -> int:
        """Adds the nodes of a segment; returns the last one, NONE while it has to wait."""
        segments, now = self.rendezvous.segments[rank], self.now[rank]
        kind = segments.kind[segment]
        if kind in (OWN, GAP) or not self.built.together:
            return self._add_own(rank, segment, now)
        if kind == TRANSFER:
            return self._add_transfer(rank, segment, now)
        meeting = segments.meeting[segment]
        if kind != AWAIT and not self._has_come[rank]:
            self._has_come[rank] = True
            self._come_to(meeting, rank)
            if (rank, segment) in self._sender_meetings:
                self._come_to(self._sender_meetings[rank, segment], rank)
        if kind == LAUNCH:
            return now
        node = self.built.meetings[meeting]
        if node == NONE:
            self._meeting.setdefault(meeting, []).append(rank)
            return NONE
        if kind == AWAIT:
            node = self._join(rank, now, node, JOINS)
        self.built.wait_nodes[rank][segment] = node
        return self._add_tail(rank, segment, node)

    def _add_transfer(self, rank: int, segment: int, now: int) -> int:
        """Adds a send, a receive, or both in one; returns the last node, NONE while it has to wait."""
        segments, messages = self.rendezvous.segments[rank], self.built.messages
        sent_message, received_message = segments.message[segment], segments.received[segment]
        if sent_message != NONE and messages[sent_message] == NONE:
            messages[sent_message] = self._add(
                self.built.message_duration(sent_message), now, end=self.rendezvous.messages[sent_message][1]
            )
            if sent_message in self._receiving:
                self._ready.append(self._receiving.pop(sent_message))
        if received_message == NONE:
            return self._add_own(rank, segment, now)
        if messages[received_message] == NONE:
            self._receiving[received_message] = rank
            return NONE
        if sent_message != NONE:
            now = self._add(
                self.built.first_duration(rank, segment), now, end=self.rendezvous.messages[sent_message][1]
            )
        node = self._join(rank, now, messages[received_message], RECEIVED)
        self.built.wait_nodes[rank][segment] = node
        return self._add_tail(rank, segment, node)

    def _add_own(self, rank: int, segment: int, now: int) -> int:
        """Adds a segment that waits for nobody; returns its node."""
        end = self.rendezvous.segments[rank].end[segment]
        return self._add(self.built.first_duration(rank, segment), now, end=end)

    def _add_tail(self, rank: int, segment: int, node: int) -> int:
        """Adds the part of a segment behind its waiting; returns its last node. Files may end it too
        early.
        """
        end, measured = self.rendezvous.segments[rank].end[segment], self.built.measured_ends[node]
        if not self.rendezvous.after_ns[rank][segment] and (
            end == measured or not self.rendezvous.run.concurrent
        ):
            return node
        return self._add(self.built.after_duration(rank, segment), node, end=end)

    def _come_to(self, meeting: int, rank: int) -> None:
        """Counts in a member of a collective, which begins with the last one."""
        come = self.built.arrivals[meeting]
        come.append((rank, self.now[rank]))
        if len(come) == self.rendezvous.count_coming(meeting):
            self._begin(meeting)

    def _begin(self, meeting: int) -> None:
        """Adds a collective to which all members have come, behind the one before it in its group."""
        before = self.rendezvous.before[meeting]
        first = START
        if before != NONE:
            first = self.built.meetings[before]
            if first == NONE:
                self._behind.setdefault(before, []).append(meeting)
                return
        come = self.built.arrivals[meeting]
        # Simultaneous members are in the order of the ranks, not in that of this walk.
        come.sort()
        over = self.graph.add_rendezvous(come)
        self._catch_up()
        _, end = self.rendezvous.meetings[meeting]
        duration = self.built.meeting_duration(meeting)
        self.built.meetings[meeting] = self._add(duration, over, first, end=end)
        self._ready += self._meeting.pop(meeting, ())
        for standing in self._behind.pop(meeting, ()):
            self._begin(standing)

    # -- nodes, and when they ended in the files -------------------------------------

    def _add(self, duration: int, first: int, second: int = START, *, end: int) -> int:
        node = self.graph.add(duration, first, second)
        self.built.measured_ends.append(end)
        return node

    def _join(self, rank: int, now: int, other: int, why: int) -> int:
        node = self.graph.add_join(rank, now, other, why)
        self._catch_up()
        return node

    def _catch_up(self) -> None:
        """Ends the joins that were added with the later of what they join."""
        measured, graph = self.built.measured_ends, self.graph
        for at in range(len(measured) - 1, len(graph)):
            measured.append(max(measured[graph.first[at]], measured[graph.second[at]]))

    # -- circles ---------------------------------------------------------------------

    def _find_circle(self, rank: int) -> list[int]:
        """Returns ranks that wait for each other in a circle, found from one that waits."""
        visited_ranks: list[int] = []
        while rank not in visited_ranks:
            visited_ranks.append(rank)
            rank = self._waits_for(rank)
        return visited_ranks[visited_ranks.index(rank) :]

    def _waits_for(self, rank: int) -> int:
        """Returns the rank that a waiting one waits for: of several the lowest."""
        segments, segment = self.rendezvous.segments[rank], self.next[rank]
        if segments.kind[segment] == TRANSFER:
            return self.rendezvous.transfers[segments.received[segment]][0][0]
        meeting = segments.meeting[segment]
        while True:
            come = {who for who, _ in self.built.arrivals[meeting]}
            missing = [who for who, _ in self.rendezvous.coming(meeting) if who not in come]
            if missing:
                return min(missing)
            # All have come: it is behind the one before it.
            meeting = self.rendezvous.before[meeting]

    def _break_circle(self, circle: list[int]) -> None:
        """Lets the lowest rank of a circle go on without waiting."""
        rank = min(circle)
        segment, segments = self.next[rank], self.rendezvous.segments[rank]
        self.built.circles.append((rank, segment))
        if segments.kind[segment] == TRANSFER:
            del self._receiving[segments.received[segment]]
        else:
            self._meeting[segments.meeting[segment]].remove(rank)
        self._go_on(rank, segment, self._add_own(rank, segment, self.now[rank]))
        self._ready.append(rank)


class Flight(NamedTuple):
    """A collective on a rank, ns."""

    start: int
    """Its launch."""
    began: int
    """When the last member had come."""
    end: int
    """Its end."""
    op: int
    """The operation of the rank."""
    segment: int
    """The segment of its launch."""


def flights(graph: MeasuredGraph, ends: Sequence[int], rank: int) -> Iterator[Flight]:
    """Yields the collectives of the `rank`-th rank in the order of their launches. ends: those of a pass.

    A kernel ends as much later than the first one of its collective as was measured.
    """
    rendezvous = graph.rendezvous
    segments, ops = rendezvous.segments[rank], rendezvous.run.ranks[rank].ops
    for segment in compress(range(len(segments)), segments.kind.translate(_LAUNCHES)):
        op, meeting = segments.op[segment], segments.meeting[segment]
        start = ends[graph.end_nodes[rank][segment]]
        node = graph.meetings[meeting]
        if graph.together and node >= 0:
            late = max(0, ops.end[op] - rendezvous.meetings[meeting][1])
            began, end = graph.graph.start(node, ends), ends[node] + late
        else:
            began, end = start, start + ops.end[op] - ops.start[op]
        yield Flight(start, min(max(began, start), max(end, start)), max(end, start), op, segment)
