"""Builds the graph of a measured run from the pieces of its ranks: a track is a rank.

What waits for what in a trace is read here and nowhere else: a receive waits for its message, or for its
send to begin, a rank in a collective for its last member and for the collective before it in the group, and
at the end of one that runs beside compute, for that. All else takes its own time: compute, sends, the host's
gaps, communication without a partner. Nothing is decided by who comes first, so that one graph serves all
durations.

Damaged traces can have ranks wait for each other in a circle. It is broken where the lowest rank in it
waits: that piece waits for nobody and keeps the time that was measured, as if it had no partner. The rule
knows no durations: with others the order is the same, and less work never makes a replay longer.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, compress

from simcore.records import NamedTuple, Struct
from simcore.sources.pieces import AWAIT, GAP, LAUNCH, OWN, TRANSFER
from simcore.sources.ties import NONE, Ties
from simcore.trace.graph import BUSY, JOINED, RECEIVED, START, Cause, Graph

# A table for `translate`: 1 for pieces that wait for nobody.
_ALONE = bytes(kind in (OWN, GAP) for kind in range(256))
_LAUNCHES = bytes(kind == LAUNCH for kind in range(256))
# Fewer pieces than this are added one by one in less time.
_STRETCH = 8


class PieceTimes(Struct, frozen=True):
    """When the pieces of each rank start and end; ns from the start of the step, columns over the pieces."""

    start: tuple[array[int], ...]
    end: tuple[array[int], ...]


class MeasuredGraph:
    """The graph of a measured run, and which piece of which rank each node is.

    together: False leaves each rank by itself, as it was measured: no piece waits for another rank's.
    first_ns, after_ns: of each piece of each rank what comes before any waiting and what comes behind it.
    meetings, messages: the node of each collective and message; arrivals: (rank, node) of those that have
    come to each collective. circles: (rank, piece) that wait for nobody, because they closed a circle.
    measured: when each node ended in the files; it says nothing where ranks that did not run together are
    tied.
    """

    def __init__(self, ties: Ties, together: bool = True) -> None:
        self.ties = ties
        self.together = together
        counts = [len(pieces) for pieces in ties.pieces]
        columns = [*counts, *counts, len(ties.members), len(ties.transfers)]
        # The first duration of each column: `first_ns` and `after_ns` by rank, meetings, messages.
        self._offset = list(accumulate(columns, initial=1))
        self.graph = Graph(len(counts), self.ranks_of)
        self.meetings = array("i", (NONE,)) * len(ties.members)
        self.messages = array("i", (NONE,)) * len(ties.transfers)
        self.arrivals: list[list[tuple[int, int]]] = [[] for _ in ties.members]
        # Of each piece the node at which it is over, and the one at which its waiting is, NONE without any.
        self.over = [array("i", (NONE,)) * count for count in counts]
        self.waited = [array("i", (NONE,)) * count for count in counts]
        self.circles: list[tuple[int, int]] = []
        self.measured = [0]
        _RankWalk(self).run()
        self.first_ns = tuple(array("q", times) for times in ties.first_ns)
        for rank, piece in self._alone():
            self.first_ns[rank][piece] = ties.pieces[rank].end[piece] - ties.pieces[rank].start[piece]
        self.after_ns = ties.after_ns

    def _alone(self) -> Iterable[tuple[int, int]]:
        """(rank, piece) that last as long as was measured, waiting included."""
        if self.together:
            return self.circles
        return ((rank, piece) for rank, nodes in enumerate(self.over) for piece in range(len(nodes)))

    # -- what nodes are --------------------------------------------------------------

    def ranks_of(self, node: int) -> Sequence[int]:
        """The ranks that a node, not a join, is on: more than one for a collective, ascending."""
        column, number = self._place(node)
        ranks = len(self.over)
        if column < 2 * ranks:
            return (column % ranks,)
        if column == 2 * ranks:
            return [rank for rank, _, _ in self.ties.members[number]]
        return (self.ties.transfers[number][0][0],)

    def meeting_of(self, node: int) -> int:
        """The collective that a node, not a join, is; NONE for all others."""
        column, number = self._place(node)
        return number if column == 2 * len(self.over) else NONE

    def waiting_piece(self, meeting: int, rank: int) -> int:
        """The piece in which a member waits for a collective."""
        return next(piece for who, _, piece in self.ties.members[meeting] if who == rank)

    def first_duration(self, rank: int, piece: int) -> int:
        """Which duration a piece takes before any waiting."""
        return self._offset[rank] + piece

    def after_duration(self, rank: int, piece: int) -> int:
        """Which duration a piece takes behind its waiting."""
        return self._offset[len(self.over) + rank] + piece

    def meeting_duration(self, meeting: int) -> int:
        """Which duration a collective takes."""
        return self._offset[2 * len(self.over)] + meeting

    def message_duration(self, message: int) -> int:
        """Which duration a message takes."""
        return self._offset[2 * len(self.over) + 1] + message

    def _place(self, node: int) -> tuple[int, int]:
        """The column of a node's duration, and which one it is there."""
        duration = self.graph.duration[node - 1]
        column = bisect_right(self._offset, duration) - 1
        return column, duration - self._offset[column]

    # -- passes ----------------------------------------------------------------------

    def durations(
        self,
        first: Sequence[array[int]],
        after: Sequence[array[int]],
        meetings: Sequence[int],
        messages: Sequence[int],
    ) -> array[int]:
        """What the passes of the graph take, ns: of each piece by rank, of collectives, of messages."""
        return self.graph.flat([*first, *after, meetings, messages])

    def times(self, ends: Sequence[int]) -> PieceTimes:
        """The times of all pieces. ends: of a pass. Raises OverflowError for 2^63 ns or more."""
        end = [array("q", (ends[node] for node in nodes)) for nodes in self.over]
        return PieceTimes(tuple(array("q", (0, *over[:-1])) if over else over for over in end), tuple(end))

    # -- who waits for whom ----------------------------------------------------------

    def waits(self, rank: int, piece: int) -> bool:
        """Whether a piece can wait for another rank: it receives, or is in a collective of several."""
        return self.waited[rank][piece] != NONE

    def begins(self, rank: int, piece: int, ends: Sequence[int]) -> int:
        """When what a piece waits for begins, ns: the last member has come and the lane of the group is
        free, the message is sent.
        """
        pieces = self.ties.pieces[rank]
        if pieces.kind[piece] == TRANSFER:
            return self.graph.start(self.messages[pieces.received[piece]], ends)
        return self.graph.start(self.meetings[pieces.meeting[piece]], ends)

    def late(self, rank: int, piece: int, ends: Sequence[int]) -> tuple[int, int]:
        """(rank, piece) that a waiting piece waits for: the send, or with which its last member comes to the
        collective; of several at the same time the lowest rank.
        """
        pieces = self.ties.pieces[rank]
        if pieces.kind[piece] == TRANSFER:
            return self.ties.transfers[pieces.received[piece]][0]
        meeting = pieces.meeting[piece]
        late, _ = max(self.arrivals[meeting], key=lambda arrival: (ends[arrival[1]], -arrival[0]))
        return late, next(came for who, came in self.ties.coming(meeting) if who == late)

    def waited_for(self, rank: int, piece: int, ends: Sequence[int]) -> list[Cause]:
        """What held a piece until it went on, the first of several named first: another rank's node, or the
        collective before its own in the group. Nothing where its rank itself did.
        """
        node, pieces = self.waited[rank][piece], self.ties.pieces[rank]
        if node == NONE:
            return []
        held = self.graph.held(node, ends, rank)
        if pieces.kind[piece] == TRANSFER:
            return held if held and held[0].why == RECEIVED else []
        meeting = self.meetings[pieces.meeting[piece]]
        if not held or held[0].node != meeting:
            # Compute beside the collective took longer.
            return []
        causes = self.graph.causes(meeting, ends, rank)
        if pieces.kind[piece] == AWAIT:
            return causes
        return causes if causes and (causes[0].track != rank or causes[0].why == BUSY) else []


class _RankWalk:
    """Puts the pieces of all ranks in an order in which each comes behind what it waits for.

    A rank goes on until it waits for a message or a collective that has no node yet. now: the node at which
    it is.
    """

    def __init__(self, built: MeasuredGraph) -> None:
        self.built = built
        self.ties = built.ties
        self.graph = built.graph
        ranks = range(len(self.ties.pieces))
        self.now = [START] * len(ranks)
        self.next = [0] * len(ranks)
        self._ready = list(reversed(ranks))
        # 1 for each piece of a rank that waits for nobody.
        alone = _ALONE if built.together else bytes((1,)) * 256
        self._alone = [pieces.kind.translate(alone) for pieces in self.ties.pieces]
        # Whether each rank has come to the collective at which it is.
        self._has_come = bytearray(len(ranks))
        # Who waits for the node of each message and collective, and the collectives that stand behind one.
        self._receiving: dict[int, int] = {}
        self._meeting: dict[int, list[int]] = {}
        self._behind: dict[int, list[int]] = {}
        # The collectives to which a rank comes with a piece without waiting in them.
        self._sent: dict[tuple[int, int], int] = {
            sender: meeting for meeting, sender in enumerate(self.ties.senders) if sender is not None
        }

    def run(self) -> None:
        """Adds the nodes of all pieces, and breaks circles where there are any."""
        while True:
            while self._ready:
                self._advance(self._ready.pop())
            left = (rank for rank, pieces in enumerate(self.ties.pieces) if self.next[rank] < len(pieces))
            stuck = next(left, NONE)
            if stuck == NONE:
                return
            self._break(self._circle(stuck))

    def _advance(self, rank: int) -> None:
        """Takes a rank on until it is done or must wait."""
        kinds, piece = self._alone[rank], self.next[rank]
        while piece < len(kinds):
            until = kinds.find(0, piece)
            until = len(kinds) if until < 0 else until
            if until - piece >= _STRETCH:
                self._stretch(rank, piece, until)
                piece = until
                continue
            node = self._piece(rank, piece)
            if node == NONE:
                # It comes back to this piece when what it waits for has its node.
                return
            self._go_on(rank, piece, node)
            piece += 1

    def _stretch(self, rank: int, first: int, last: int) -> None:
        """Adds the nodes of pieces that wait for nobody, all at once."""
        count, duration = last - first, self.built.first_duration(rank, first)
        node = self.graph.add_line(range(duration, duration + count), self.now[rank])
        self.built.measured += self.ties.pieces[rank].end[first:last]
        self.built.over[rank][first:last] = array("i", range(node, node + count))
        self.now[rank], self.next[rank] = node + count - 1, last
        self._has_come[rank] = False

    def _go_on(self, rank: int, piece: int, node: int) -> None:
        self.built.over[rank][piece] = self.now[rank] = node
        self.next[rank] = piece + 1
        self._has_come[rank] = False

    def _piece(self, rank: int, piece: int) -> int:
        """Adds the nodes of a piece; gives the one at which it is over, NONE while it has to wait."""
        pieces, now = self.ties.pieces[rank], self.now[rank]
        kind = pieces.kind[piece]
        if kind in (OWN, GAP) or not self.built.together:
            return self._own(rank, piece, now)
        if kind == TRANSFER:
            return self._transfer(rank, piece, now)
        meeting = pieces.meeting[piece]
        if kind != AWAIT and not self._has_come[rank]:
            self._has_come[rank] = True
            self._come_to(meeting, rank)
            if (rank, piece) in self._sent:
                self._come_to(self._sent[rank, piece], rank)
        if kind == LAUNCH:
            return now
        node = self.built.meetings[meeting]
        if node == NONE:
            self._meeting.setdefault(meeting, []).append(rank)
            return NONE
        if kind == AWAIT:
            node = self._join(rank, now, node, JOINED)
        self.built.waited[rank][piece] = node
        return self._tail(rank, piece, node)

    def _transfer(self, rank: int, piece: int, now: int) -> int:
        """A send, a receive, or both in one."""
        pieces, messages = self.ties.pieces[rank], self.built.messages
        sent, received = pieces.sent[piece], pieces.received[piece]
        if sent != NONE and messages[sent] == NONE:
            messages[sent] = self._add(
                self.built.message_duration(sent), now, end=self.ties.messages[sent][1]
            )
            if sent in self._receiving:
                self._ready.append(self._receiving.pop(sent))
        if received == NONE:
            return self._own(rank, piece, now)
        if messages[received] == NONE:
            self._receiving[received] = rank
            return NONE
        if sent != NONE:
            now = self._add(self.built.first_duration(rank, piece), now, end=self.ties.messages[sent][1])
        node = self._join(rank, now, messages[received], RECEIVED)
        self.built.waited[rank][piece] = node
        return self._tail(rank, piece, node)

    def _own(self, rank: int, piece: int, now: int) -> int:
        """A piece that waits for nobody."""
        end = self.ties.pieces[rank].end[piece]
        return self._add(self.built.first_duration(rank, piece), now, end=end)

    def _tail(self, rank: int, piece: int, node: int) -> int:
        """What a rank does of a piece behind its waiting; in files it may have been through too early."""
        end, measured = self.ties.pieces[rank].end[piece], self.built.measured[node]
        if not self.ties.after_ns[rank][piece] and (end == measured or not self.ties.run.concurrent):
            return node
        return self._add(self.built.after_duration(rank, piece), node, end=end)

    def _come_to(self, meeting: int, rank: int) -> None:
        """A member comes to a collective; with the last one that begins."""
        come = self.built.arrivals[meeting]
        come.append((rank, self.now[rank]))
        if len(come) == len(self.ties.coming(meeting)):
            self._begin(meeting)

    def _begin(self, meeting: int) -> None:
        """Adds a collective to which all members have come, behind the one before it in its group."""
        before = self.ties.before[meeting]
        first = START
        if before != NONE:
            first = self.built.meetings[before]
            if first == NONE:
                self._behind.setdefault(before, []).append(meeting)
                return
        come = self.built.arrivals[meeting]
        # Ties among members are named in the order of the ranks, not in that of this walk.
        come.sort()
        over = self.graph.meet(come)
        self._catch_up()
        _, end = self.ties.meetings[meeting]
        duration = self.built.meeting_duration(meeting)
        self.built.meetings[meeting] = self._add(duration, over, first, end=end)
        self._ready += self._meeting.pop(meeting, ())
        for standing in self._behind.pop(meeting, ()):
            self._begin(standing)

    # -- nodes, and when they ended in the files -------------------------------------

    def _add(self, duration: int, first: int, second: int = START, *, end: int) -> int:
        node = self.graph.add(duration, first, second)
        self.built.measured.append(end)
        return node

    def _join(self, rank: int, now: int, other: int, why: int) -> int:
        node = self.graph.join(rank, now, other, why)
        self._catch_up()
        return node

    def _catch_up(self) -> None:
        """Joins that were added are over with the later of what they join."""
        measured, graph = self.built.measured, self.graph
        for at in range(len(measured) - 1, len(graph)):
            measured.append(max(measured[graph.first[at]], measured[graph.second[at]]))

    # -- circles ---------------------------------------------------------------------

    def _circle(self, rank: int) -> list[int]:
        """Ranks that wait for each other in a circle, found from one that waits."""
        seen: list[int] = []
        while rank not in seen:
            seen.append(rank)
            rank = self._waits_for(rank)
        return seen[seen.index(rank) :]

    def _waits_for(self, rank: int) -> int:
        """The rank that a waiting one waits for: of several the lowest."""
        pieces, piece = self.ties.pieces[rank], self.next[rank]
        if pieces.kind[piece] == TRANSFER:
            return self.ties.transfers[pieces.received[piece]][0][0]
        meeting = pieces.meeting[piece]
        while True:
            come = {who for who, _ in self.built.arrivals[meeting]}
            missing = [who for who, _ in self.ties.coming(meeting) if who not in come]
            if missing:
                return min(missing)
            # All are there: it stands behind the one before it.
            meeting = self.ties.before[meeting]

    def _break(self, circle: list[int]) -> None:
        """Lets the lowest rank of a circle go on without waiting."""
        rank = min(circle)
        piece, pieces = self.next[rank], self.ties.pieces[rank]
        self.built.circles.append((rank, piece))
        if pieces.kind[piece] == TRANSFER:
            del self._receiving[pieces.received[piece]]
        else:
            self._meeting[pieces.meeting[piece]].remove(rank)
        self._go_on(rank, piece, self._own(rank, piece, self.now[rank]))
        self._ready.append(rank)


class Flight(NamedTuple):
    """A collective on a rank, ns: from its launch on, from when the last member had come, to its end. op: of
    the rank; piece: its launch.
    """

    start: int
    began: int
    end: int
    op: int
    piece: int


def flights(graph: MeasuredGraph, ends: Sequence[int], rank: int) -> Iterator[Flight]:
    """The collectives of the `rank`-th rank in the order of their launches. ends: of a pass of the graph.

    A kernel ends as much later than the first one of its collective as was measured.
    """
    ties = graph.ties
    pieces, ops = ties.pieces[rank], ties.run.ranks[rank].ops
    for piece in compress(range(len(pieces)), pieces.kind.translate(_LAUNCHES)):
        op, meeting = pieces.op[piece], pieces.meeting[piece]
        start = ends[graph.over[rank][piece]]
        node = graph.meetings[meeting]
        if graph.together and node >= 0:
            late = max(0, ops.end[op] - ties.meetings[meeting][1])
            began, end = graph.graph.start(node, ends), ends[node] + late
        else:
            began, end = start, start + ops.end[op] - ops.start[op]
        yield Flight(start, min(max(began, start), max(end, start)), max(end, start), op, piece)
