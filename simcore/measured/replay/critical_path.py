"""The critical path of a measured or replayed run: a chain of segments that covers 0..step time.

Found from the end: what a rank did last, then what that waited for, on this rank or on another.
"""

from __future__ import annotations

from dataclasses import dataclass

from simcore.measured.replay.accounts import ACCOUNTS, late_rank, own_account
from simcore.measured.replay.graph import Graph, Times
from simcore.measured.replay.pieces import AWAIT, MEET, TRANSFER

START, BEFORE, MESSAGE, LAST = "start", "before", "message", "last"
# Why a segment could not start earlier, by its reason, as reports say it.
REASONS = {
    START: "the step begins",
    BEFORE: "its rank did this before",
    MESSAGE: "it needs what rank {rank} sends",
    LAST: "rank {rank} came last",
}


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of the path. rank: index. piece: of the rank. account: index into ACCOUNTS.

    reason: why it could not start earlier, a key of REASONS; of: the rank that the reason names.
    """

    start: int
    end: int
    rank: int
    piece: int
    account: int
    reason: str
    of: int

    @property
    def kind(self) -> str:
        """What the time goes to, as accounts say it."""
        return ACCOUNTS[self.account]


def critical_path(graph: Graph, times: Times) -> list[Segment]:
    """The path, in time order."""
    return _Walk(graph, times).segments()


class _Walk:
    def __init__(self, graph: Graph, times: Times) -> None:
        self.graph = graph
        self.times = times
        self.found: list[Segment] = []
        # Where the path came from another rank. Damaged files can have ranks wait in a circle.
        self.seen: set[tuple[int, int]] = set()

    def segments(self) -> list[Segment]:
        """From the end of the step back to its begin, then in time order."""
        ends = [end[-1] if end else 0 for end in self.times.end]
        rank = ends.index(max(ends))
        piece, until = len(self.times.end[rank]) - 1, ends[rank]
        while piece >= 0:
            start = self.times.start[rank][piece]
            held = self._last_arrival(rank, piece, until) or self._message(rank, piece, until)
            if held is None:
                self._add(start, until, rank, piece, BEFORE if piece else START, rank)
                piece, until = piece - 1, start
                continue
            reason, other, there, since = held
            self._add(since, until, rank, piece, reason, other)
            rank, piece, until = other, there, since
            if reason == MESSAGE:
                # What it sends is under way, whatever else it waits for itself.
                start = self.times.start[rank][piece]
                self._add(start, until, rank, piece, BEFORE if piece else START, rank)
                piece, until = piece - 1, start
        self.found.reverse()
        return self.found

    def _add(self, start: int, end: int, rank: int, piece: int, reason: str, of: int) -> None:
        if end > start:
            account = own_account(self.graph, rank, piece)
            self.found.append(Segment(start, end, rank, piece, account, reason, of))

    def _last_arrival(self, rank: int, piece: int, until: int) -> tuple[str, int, int, int] | None:
        """(reason, rank, piece, time) of what the last member of a collective did before it came."""
        pieces = self.graph.pieces[rank]
        if pieces.kind[piece] not in (MEET, AWAIT) or not self.times.together:
            return None
        late = late_rank(self.graph, self.times, rank, piece)
        arrival = next(there for who, there, _ in self.graph.members[pieces.meeting[piece]] if who == late)
        came = self.times.start[late][arrival]
        if late == rank or not self.times.start[rank][piece] < came <= until:
            return None
        return self._once(LAST, late, arrival - 1, came)

    def _message(self, rank: int, piece: int, until: int) -> tuple[str, int, int, int] | None:
        """(reason, rank, piece, time) of the send that a receive waited for."""
        pieces = self.graph.pieces[rank]
        if pieces.kind[piece] != TRANSFER or pieces.received[piece] < 0 or not self.times.together:
            return None
        (sender, sending), _ = self.graph.ends[pieces.received[piece]]
        begin, arrival = self.times.messages[pieces.received[piece]]
        since = min(arrival, until)
        if not self.times.start[rank][piece] < since or begin > since:
            return None
        return self._once(MESSAGE, sender, sending, since)

    def _once(self, reason: str, rank: int, piece: int, time: int) -> tuple[str, int, int, int] | None:
        if (rank, piece) in self.seen:
            return None
        self.seen.add((rank, piece))
        return reason, rank, piece, time
