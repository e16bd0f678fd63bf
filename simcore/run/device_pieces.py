"""A rank of a profiler trace as pieces in time order: its streams laid into one line.

At any time the rank does what computes, else what copies, else nothing. A collective is launched where its
kernel starts and runs beside that line. The rank waits for it where its kernel ends while nothing computes:
from the end of the compute before. What runs beside compute up to its end is waited for by the first kernel
of another phase behind it, or at the end of the step: the trace does not say by whom, and this is the least
that a step needs. The host's gaps stay, also beside a collective.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping

from simcore.measured.columns import RankTrace
from simcore.measured.matching import Call
from simcore.measured.vocabulary import CATEGORIES, COMPUTE, COPY
from simcore.run.pieces import AWAIT, GAP, LAUNCH, OWN, Pieces

_COMPUTE = frozenset((*map(CATEGORIES.index, COMPUTE), CATEGORIES.index("host")))
_COPY = CATEGORIES.index(COPY)


def device_pieces(number: int, rank: RankTrace, meetings: Mapping[Call, int]) -> Pieces:
    """The pieces of the rank that is the `number`-th of its run, from 0 ns to the end of its window.

    meetings: the number of each collective's calls.
    """
    walk = _Walk(rank)
    # What lies before the step begins on this rank is no gap of it.
    walk.until(rank.first_ns)
    kinds = rank.ops.stated
    # (time, whether it begins, operation): what ends at a time ends before another begins there.
    events: list[tuple[int, bool, int]] = []
    waited: dict[int, tuple[int, int]] = {}
    for op, (start, end) in enumerate(zip(rank.ops.start, rank.ops.end, strict=True)):
        if kinds[op] not in _COMPUTE and kinds[op] != _COPY:
            events.append((start, True, op))
            waited[op] = walk.waited(start, end)
            events.append((waited[op][1], False, op))
    # Of one without a length the beginning comes first.
    events.sort(
        key=lambda one: (one[0], one[1] and rank.ops.end[one[2]] > rank.ops.start[one[2]], not one[1], one[2])
    )
    for time, begins, op in events:
        meeting = meetings[Call(number, op)]
        if begins:
            walk.until(time)
            walk.pieces.add(LAUNCH, (walk.now, walk.now), op, meeting=meeting)
        else:
            walk.until(min(waited[op][0], time))
            walk.pieces.add(AWAIT, (walk.now, max(walk.now, time)), op, meeting=meeting)
            walk.now = max(walk.now, time)
    walk.until(rank.last_ns)
    return walk.pieces


class _Walk:
    def __init__(self, rank: RankTrace) -> None:
        self.rank = rank
        self.pieces = Pieces()
        self.now = 0
        self.next = 0
        ops = rank.ops
        # What computes, no two at once; then what copies, in the holes.
        self.start: list[int] = []
        self.end: list[int] = []
        self.op: list[int] = []
        reached = 0
        copies = []
        order = sorted(range(len(ops)), key=lambda op: (ops.start[op], ops.end[op]))
        for op in order:
            if ops.stated[op] == _COPY:
                copies.append(op)
            elif ops.stated[op] in _COMPUTE:
                begin = max(ops.start[op], reached)
                if ops.end[op] > begin:
                    self._add(begin, ops.end[op], op)
                    reached = ops.end[op]
        self.computed = (self.start, self.end, self.op)
        self._fill(copies)

    def _add(self, start: int, end: int, op: int) -> None:
        self.start.append(start)
        self.end.append(end)
        self.op.append(op)

    def _fill(self, copies: list[int]) -> None:
        """Puts copies into the holes between what computes."""
        starts, ends, which = self.computed
        holes: list[tuple[int, int, int]] = []
        reached = 0
        for op in copies:
            now, over = max(self.rank.ops.start[op], reached), self.rank.ops.end[op]
            at = bisect_right(ends, now)
            while now < over:
                until = min(over, starts[at]) if at < len(starts) else over
                if until > now:
                    holes.append((now, until, op))
                if at >= len(starts):
                    break
                now = max(now, ends[at])
                at += 1
            reached = max(reached, over)
        merged = sorted((*zip(starts, ends, which, strict=True), *holes))
        self.start, self.end, self.op = ([one[part] for one in merged] for part in range(3))

    def waited(self, start: int, end: int) -> tuple[int, int]:
        """(from, to) when the rank waits for a collective that ran from start to end."""
        starts, ends, which = self.computed
        at = bisect_left(ends, end)
        if at == len(starts) or starts[at] >= end:
            return max(start, ends[at - 1] if at else 0), end
        kinds = self.rank.ops.stated
        phase = kinds[which[at]]
        after = next((index for index in range(at + 1, len(starts)) if kinds[which[index]] != phase), None)
        time = self.rank.last_ns if after is None else starts[after]
        return time, time

    def until(self, time: int) -> None:
        """What the rank does until `time`, if that is still to come."""
        while self.next < len(self.start) and self.end[self.next] <= self.now:
            self.next += 1
        while self.now < time:
            if self.next == len(self.start):
                self._piece(GAP, time, len(self.rank.ops) - 1)
                return
            op = self.op[self.next]
            if self.start[self.next] > self.now:
                self._piece(GAP, min(time, self.start[self.next]), op)
            else:
                self._piece(OWN, min(time, self.end[self.next]), op)
                self.next += self.end[self.next] <= self.now

    def _piece(self, kind: int, end: int, op: int) -> None:
        self.pieces.add(kind, (self.now, end), op)
        self.now = end
