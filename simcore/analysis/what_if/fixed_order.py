"""The step time for any durations, where durations decide nothing but when things happen.

Under `analytical` and SimAI's networks every stream is first in, first out, and the program alone
says what waits for what. So all ops of all classes are put in one order in which each comes after
what it waits for, once; then a run is one pass over that order.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence

from simcore.analysis.program_index import NONE, ProgramIndex
from simcore.diagnostics import Cancelled
from simcore.program.ops import COMPUTE, KIND_OF_STREAM, Join, Receive
from simcore.timeline import Timeline

_NODES_BETWEEN_CANCEL_CHECKS = 2**16


class FixedOrder:
    """Columns over nodes: an op, a collective of several classes, or the later of two nodes.

    first, second: the nodes that one waits for, equal where it is but one; node 0 is the start of
    the step. duration: which duration a node takes, from 1 in the order of (class, op); 0 for none.
    """

    def __init__(self, timeline: Timeline, index: ProgramIndex) -> None:
        self.timeline = timeline
        self.index = index
        self.first = array("i")
        self.second = array("i")
        self.duration = array("i")
        classes = timeline.classes
        counts = [len(timeline.stage_program(number).ops) for number in range(len(classes))]
        self._offset = [1 + sum(counts[:number]) for number in range(len(counts))]
        self._nodes = [array("i", (NONE,)) * count for count in counts]
        self._now = [0] * len(classes)
        self._run = [0] * len(classes)
        self._wait = [0] * len(classes)
        self._op = [0] * len(classes)
        # Collectives that some members have come to, by (class, op) of the first: the nodes they come from.
        self._come: dict[tuple[int, int], list[int]] = {}
        # Who waits for an op of a class to have its node.
        self._parked: dict[tuple[int, int], list[int]] = {}
        self._ready = list(range(len(classes)))
        while self._ready:
            self._walk(self._ready.pop())
        for number, run in enumerate(self._run):
            if run < len(timeline.stage_program(number).runs):
                raise RuntimeError(f"class {number} never gets past op {self._op[number]}")

    def step_ns(
        self, durations: Sequence[Sequence[int]], cancelled: Callable[[], bool] = lambda: False
    ) -> int:
        """The step time, ns. durations[c][i]: ns of op i of class c. Raises `Cancelled`."""
        flat = [0]
        for column in durations:
            flat += column
        end = [0]
        append = end.append
        for begin in range(0, len(self.first), _NODES_BETWEEN_CANCEL_CHECKS):
            if cancelled():
                raise Cancelled
            part = slice(begin, begin + _NODES_BETWEEN_CANCEL_CHECKS)
            columns = zip(self.first[part], self.second[part], self.duration[part], strict=True)
            for first, second, duration in columns:
                one, other = end[first], end[second]
                append((one if one > other else other) + flat[duration])
        return max(end[node] for node in self._now)

    # -- the order -------------------------------------------------------------------

    def _add(self, first: int, second: int, duration: int) -> int:
        self.first.append(first)
        self.second.append(second)
        self.duration.append(duration)
        return len(self.first)

    def _later(self, one: int, other: int) -> int:
        """The node at which two are over."""
        if one == other or not other:
            return one
        return self._add(one, other, 0) if one else other

    def _walk(self, number: int) -> None:
        """Put a class's ops in the order until it is done or waits for what has no node yet."""
        runs = self.timeline.stage_program(number).runs
        while (place := self._run[number]) < len(runs):
            run = runs[place]
            while self._wait[number] < len(run.waits):
                wait = run.waits[self._wait[number]]
                if isinstance(wait, Receive):
                    whose = self.timeline.received(number, wait.message)
                else:
                    assert isinstance(wait, Join)
                    whose = (number, wait.op)
                if not self._follow(number, *whose):
                    return
                self._wait[number] += 1
            self._op[number] = max(self._op[number], run.first)
            while self._op[number] < run.last:
                if not self._issue(number, self._op[number]):
                    return
                self._op[number] += 1
            self._run[number], self._wait[number] = place + 1, 0

    def _follow(self, number: int, other: int, op: int) -> bool:
        """A class goes on after an op of a class; False where that has no node yet."""
        node = self._nodes[other][op]
        if node == NONE:
            self._parked.setdefault((other, op), []).append(number)
            return False
        self._now[number] = self._later(self._now[number], node)
        return True

    def _issue(self, number: int, op: int) -> bool:
        """Give an op its node, or come to its collective; False where compute has to wait for that."""
        index, nodes, now = self.index.of(number), self._nodes[number], self._now[number]
        ops = index.program.ops
        lane, before = ops.stream[op], index.before[op]
        if nodes[op] == NONE:
            members = self.index.members(number, op) if lane in KIND_OF_STREAM else [(number, op)]
            if len(members) == 1:
                free = nodes[before] if before != NONE else now
                self._place(number, op, self._add(now, free, self._offset[number] + op))
            else:
                self._meet(number, op, members)
        if lane == COMPUTE:
            self._now[number] = nodes[op]
        elif ops.blocking[op]:
            return self._follow(number, number, op)
        return True

    def _meet(self, number: int, op: int, members: list[tuple[int, int]]) -> None:
        """A member comes to a collective; with the last one it has its node, the same for all."""
        come = self._come.setdefault(members[0], [])
        come.append(self._now[number])
        if len(come) < len(members):
            return
        del self._come[members[0]]
        # All came to what is before it on the stream first: that has its node.
        before = self.index.of(number).before[op]
        over = self._nodes[number][before] if before != NONE else 0
        for node in come:
            over = self._later(over, node)
        node = self._add(over, over, self._offset[number] + op)
        for member, its_op in members:
            self._place(member, its_op, node)

    def _place(self, number: int, op: int, node: int) -> None:
        """An op has its node: who waited for that goes on."""
        self._nodes[number][op] = node
        self._ready += self._parked.pop((number, op), ())
