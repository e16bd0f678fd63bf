"""The critical path of a measured or replayed run: a chain of segments that covers 0..step time.

Found from the end: what a rank did last, then what that waited for, on this rank or on another. Whatever
lies on the path could not begin before the part before it was over, so that a replay with other durations
is never shorter than the path with these.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from simcore.replay.accounts import ACCOUNTS, own_account
from simcore.replay.graph import Graph, Times
from simcore.replay.holds import LAST, MESSAGE, QUEUED, Hold, arrival, hold

START, BEFORE = "start", "before"
# Why a segment could not start earlier, by its reason, as reports say it.
REASONS = {
    START: "the step begins",
    BEFORE: "its rank did this before",
    MESSAGE: "it needs what rank {rank} sends",
    LAST: "rank {rank} came last",
    QUEUED: "the collective before it was not over",
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
    """until: where what has been found begins; nothing is left out before the end of the step."""

    def __init__(self, graph: Graph, times: Times) -> None:
        self.graph = graph
        self.times = times
        self.found: list[Segment] = []
        # Where the path came from another rank. Damaged files can have ranks wait in a circle.
        self.seen: set[tuple[int, int]] = set()
        ends = [end[-1] if end else 0 for end in times.end]
        self.until = max(ends)
        self.rank = ends.index(self.until)
        self.piece = len(times.end[self.rank]) - 1

    def segments(self) -> list[Segment]:
        """From the end of the step back to its begin, then in time order."""
        while self.piece >= 0:
            held = hold(self.graph, self.times, self.rank, self.piece)
            if held is None or not self._is_new(held):
                self._own()
                continue
            self._follow(held)
            while held.reason == QUEUED:
                # No piece of the rank decides here: its compute may go on beside both collectives.
                meeting = self.graph.pieces[held.rank].meeting[held.piece]
                held = arrival(self.graph, self.times, held.rank, meeting)
                self._follow(held)
            if held.reason == MESSAGE:
                # What it sends is under way, whatever else it waits for itself.
                self._own()
        self.found.reverse()
        return self.found

    def _own(self) -> None:
        """What the rank did itself, and to what it did before."""
        self._add(self.times.start[self.rank][self.piece], BEFORE if self.piece else START, self.rank)
        self.piece -= 1

    def _follow(self, held: Hold) -> None:
        """What was left when the hold was over, and to what held."""
        reason = held.reason if held.piece >= 0 else START
        if held.since < self.until:
            self._add(held.since, reason, held.rank)
        elif self.found and self.found[-1].reason == BEFORE:
            # Nothing was left, as behind a mere meeting: what came next is what was held.
            self.found[-1] = replace(self.found[-1], reason=reason, of=held.rank)
        self.rank, self.piece = held.rank, held.piece

    def _add(self, start: int, reason: str, of: int) -> None:
        """The segment down to `start`. By their own clocks ranks may be through a little too early."""
        if start < self.until:
            account = own_account(self.graph, self.rank, self.piece)
            self.found.append(Segment(start, self.until, self.rank, self.piece, account, reason, of))
            self.until = start

    def _is_new(self, held: Hold) -> bool:
        key = (held.rank, held.piece)
        if key in self.seen:
            return False
        self.seen.add(key)
        return True
