"""Where things stand in a stage's program: what comes before an op on its stream, who waits for it."""

from __future__ import annotations

from array import array
from bisect import bisect_right

from simcore.program import Program
from simcore.program.ops import COMPUTE, KIND_OF_STREAM, TO_NEXT, Join, Receive, TransferCost
from simcore.timeline import Timeline

NONE = -1
# A channel is of an ordered pair of ranks, so all transfers of a rank that go so many stages on are
# on one; its number lies beyond those of the streams.
_CHANNEL = 1000


class StageIndex:
    """One stage's program, looked up backwards.

    before, after: per op the op before and after it on its stream or channel, NONE without one
    and for compute. place: which it is there. lanes: the ops of each stream or channel, in order.
    joins: op -> (run, wait) of each wait for it. receives: message -> (run, wait).
    """

    def __init__(self, program: Program, stage: int) -> None:
        self.program = program.stages[stage]
        ops = self.program.ops
        self.firsts = [run.first for run in self.program.runs]
        self.before = array("i", (NONE,)) * len(ops)
        self.after = array("i", (NONE,)) * len(ops)
        self.place = array("i", (NONE,)) * len(ops)
        self.lanes: dict[int, list[int]] = {}
        steps = [cost.step if isinstance(cost, TransferCost) else 0 for cost in program.costs]
        for op, stream in enumerate(ops.stream):
            if stream == COMPUTE:
                continue
            lane = self.lanes.setdefault(stream if stream < TO_NEXT else _CHANNEL + steps[ops.cost[op]], [])
            self.place[op] = len(lane)
            if lane:
                self.before[op] = lane[-1]
                self.after[lane[-1]] = op
            lane.append(op)
        self.joins: dict[int, list[tuple[int, int]]] = {}
        self.receives: dict[int, tuple[int, int]] = {}
        for number, run in enumerate(self.program.runs):
            for place, wait in enumerate(run.waits):
                if isinstance(wait, Join):
                    self.joins.setdefault(wait.op, []).append((number, place))
                elif isinstance(wait, Receive):
                    self.receives[wait.message] = (number, place)

    def run_of(self, op: int) -> int:
        """The run that issues an op."""
        return bisect_right(self.firsts, op) - 1


class ProgramIndex:
    """The program of a run, looked up backwards: each stage's index is made when it is first asked for."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self._stages: dict[int, StageIndex] = {}

    def of(self, number: int) -> StageIndex:
        """The index of the program that class `number` runs."""
        program = self.timeline.program
        stage = self.timeline.classes[number].stage
        # Without a pipeline all stages share one program.
        key = id(program.stages[stage])
        found = self._stages.get(key)
        if found is None:
            found = self._stages[key] = StageIndex(program, stage)
        return found

    def members(self, number: int, op: int) -> list[tuple[int, int]]:
        """(class, op) of each class that takes part in the collective that `op` of class `number` is.

        Members meet in the order in which each issues on the stream.
        """
        index = self.of(number)
        stream = index.program.ops.stream[op]
        group = self.timeline.classes[number].groups[KIND_OF_STREAM[stream]]
        members = self.timeline.folding.group_classes[group].members
        place = index.place[op]
        return [(member, self.of(member).lanes[stream][place]) for member in members]

    def receiver(self, number: int, op: int) -> int:
        """The class that the transfer `op` of class `number` goes to."""
        cost = self.timeline.program.costs[self.of(number).program.ops.cost[op]]
        assert isinstance(cost, TransferCost)
        return self.timeline.classes[number].links[cost.step].neighbour
