"""Runs the pieces of all ranks again with other durations: each rank in its order, waits as they follow.

The engine of the simulation takes a program of stages: rows, five kinds of groups, one program for all
ranks of a stage. A trace has more group kinds than that, host gaps, and durations of each rank's own;
and its order is fixed, so that nothing is decided by who comes first. What is left is a walk in the
order of dependencies, with the rules of the engine: a collective starts when its last member comes and
its lane is free, a transfer when it is sent, and both hold who waits for them.
"""

from __future__ import annotations

from array import array
from collections import deque

from simcore.replay.durations import Durations, Scaled
from simcore.replay.graph import NONE, Graph, Times
from simcore.replay.pieces import AWAIT, GAP, LAUNCH, OWN, TRANSFER
from simcore.replay.scales import Scales


def evaluate(durations: Durations, scales: Scales) -> Times:
    """The times of all pieces under these scales."""
    return _Replay(durations.graph, durations.scaled(scales)).times()


class _Replay:
    """The walk. A rank goes on until it waits for a message or a collective that is not known yet."""

    def __init__(self, graph: Graph, durations: Scaled) -> None:
        self.graph = graph
        self.durations = durations
        self.start = [array("q", one.start) for one in graph.pieces]
        self.end = [array("q", one.end) for one in graph.pieces]
        self.now = [0] * len(graph.pieces)
        self.next = [0] * len(graph.pieces)
        self.missing = [len(members) for members in graph.members]
        self.meetings: list[tuple[int, int] | None] = [None] * len(graph.members)
        self.arrived = [0] * len(graph.members)
        self.messages: list[tuple[int, int] | None] = [None] * len(graph.ends)
        self.waiting: dict[tuple[bool, int], list[int]] = {}
        self.ready = deque(range(len(graph.pieces)))

    def times(self) -> Times:
        while self.ready or self.waiting:
            if not self.ready:
                self._release()
            self._advance(self.ready.popleft())
        return Times(
            tuple(self.start), tuple(self.end),
            tuple(one for one in self.meetings if one is not None),
            tuple(one for one in self.messages if one is not None),
        )  # fmt: skip

    def _advance(self, rank: int) -> None:
        """Run a rank on until it is done or must wait."""
        pieces = self.graph.pieces[rank]
        kinds, first, after = pieces.kind, self.durations.first[rank], self.durations.after[rank]
        starts, ends = self.start[rank], self.end[rank]
        now = self.now[rank]
        for piece in range(self.next[rank], len(kinds)):
            kind = kinds[piece]
            starts[piece] = now
            over: int | None = now
            if kind in (OWN, GAP):
                over = now + first[piece]
            elif kind == TRANSFER:
                over = self._transfer(rank, piece, now)
            else:
                meeting = pieces.meeting[piece]
                if kind != AWAIT:
                    self._arrive(meeting, now)
                if kind != LAUNCH:
                    times = self.meetings[meeting]
                    if times is None:
                        self.waiting.setdefault((True, meeting), []).append(rank)
                        over = None
                    else:
                        over = max(now, times[1]) + after[piece]
            if over is None:
                # It comes back to this piece when what it waits for is known.
                self.now[rank], self.next[rank] = now, piece
                return
            ends[piece] = now = over
        self.now[rank], self.next[rank] = now, len(kinds)

    def _transfer(self, rank: int, piece: int, now: int) -> int | None:
        """The end of a send, a receive or both, None while what is received has not been sent."""
        pieces = self.graph.pieces[rank]
        sent, received = pieces.sent[piece], pieces.received[piece]
        if sent >= 0 and self.messages[sent] is None:
            self.messages[sent] = (now, now + self.durations.messages[sent])
            self.ready += self.waiting.pop((False, sent), ())
        over = now + self.durations.first[rank][piece]
        if received < 0:
            return over
        arrival = self.messages[received]
        if arrival is None:
            self.waiting.setdefault((False, received), []).append(rank)
            return None
        return max(over, arrival[1]) + self.durations.after[rank][piece]

    def _arrive(self, meeting: int, now: int) -> None:
        """A member comes; with the last one the collective has its times."""
        if self.meetings[meeting] is not None:
            return
        self.missing[meeting] -= 1
        self.arrived[meeting] = max(self.arrived[meeting], now)
        if not self.missing[meeting]:
            self._begin(meeting)

    def _begin(self, meeting: int) -> None:
        """A collective has its times: all members are there."""
        before = self.graph.before[meeting]
        earlier = self.meetings[before] if before != NONE else None
        start = max(self.arrived[meeting], earlier[1] if earlier is not None else 0)
        self.meetings[meeting] = (start, start + self.durations.meetings[meeting])
        self.ready += self.waiting.pop((True, meeting), ())

    def _release(self) -> None:
        """Ranks that wait for each other, as the orders of damaged files may have it: the one that came
        first goes on alone.
        """
        (is_meeting, number), _ = min(
            ((key, min((self.now[rank], rank) for rank in ranks)) for key, ranks in self.waiting.items()),
            key=lambda one: one[1],
        )
        if is_meeting:
            self._begin(number)
            return
        rank, *_ = self.waiting[False, number]
        self.messages[number] = (self.now[rank], self.now[rank])
        self.ready += self.waiting.pop((False, number))
