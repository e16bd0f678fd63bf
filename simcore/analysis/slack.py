"""Slack: how much longer a span may take before the step time grows (SPEC 7).

Durations and order of the run are frozen, a collective is lengthened for all its members. One pass
over the program from its end gives the latest end of every op: compute must end before what its
rank does next has to begin, a collective before all that any member waits for it with, a transfer
before its receiver needs it, and each before what is next on its stream or channel.

A class stands for many ranks. Its slack is that of a span on one of them, and on all of them alike:
no chain of dependencies meets the same op of two ranks of a class, since they run at the same time.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence

from simcore.analysis.program_index import KIND_OF_STREAM, NONE, ProgramIndex
from simcore.diagnostics import Cancelled
from simcore.program.ops import COMPUTE, STREAMS, TO_NEXT, Join, Receive
from simcore.timeline import Timeline


def slack_columns(
    timeline: Timeline, index: ProgramIndex, cancelled: Callable[[], bool] = lambda: False
) -> list[array[int]]:
    """Per rank class, ns by which each op may take longer. Raises `Cancelled`.

    Raises ValueError for a run in queues (`Program.queued`): what they serve first depends on times.
    """
    if timeline.program.queued:
        raise ValueError("no slack where collectives queue by priority")
    return _Backward(timeline, index).run(cancelled)


def least_by_row(timeline: Timeline, slacks: Sequence[Sequence[int]], rows: int) -> list[int | None]:
    """Per row of the file the least slack of its spans on any rank, ns; None for a row without spans."""
    beyond = timeline.step_time_ns + 1
    # One entry more: transfers are of row -1.
    least = [beyond] * (rows + 1)
    for number, slack in enumerate(slacks):
        for row, ns in zip(timeline.stage_program(number).ops.row, slack, strict=True):
            if ns < least[row]:
                least[row] = ns
    return [None if ns == beyond else ns for ns in least[:rows]]


class _Backward:
    """All classes, each walked from the end of its program; one waits for another as in the engine.

    late[c]: the latest time at which class c may come to where it is. latest[c][op]: the latest end
    of an op, as far as it is known. run_number, next_op: where each class is.
    """

    def __init__(self, timeline: Timeline, index: ProgramIndex) -> None:
        self.timeline = timeline
        self.index = index
        classes = timeline.classes
        step = timeline.step_time_ns
        stages = [timeline.stage_program(number) for number in range(len(classes))]
        self.latest = [array("q", (step,)) * len(stage.ops) for stage in stages]
        self.late = [step] * len(classes)
        self.run_number = [len(stage.runs) - 1 for stage in stages]
        self.next_op = [len(stage.ops) - 1 for stage in stages]
        # Transfers (class, op) whose receivers have been walked back past their waits for them.
        self.received: set[tuple[int, int]] = set()
        # Per collective, by its op of the first member class, how many members have come back to it.
        self.met: dict[tuple[int, int], int] = {}
        # The collective of each class that all its members have come back to.
        self.cleared = [NONE] * len(classes)
        self.parked: set[tuple[int, int]] = set()
        self.ready = list(range(len(classes)))

    def run(self, cancelled: Callable[[], bool]) -> list[array[int]]:
        while self.ready:
            if cancelled():
                raise Cancelled
            self._walk(self.ready.pop())
        for number, run in enumerate(self.run_number):
            if run >= 0:
                raise RuntimeError(f"class {number} is never walked back past op {self.next_op[number]}")
        found = []
        for latest, end in zip(self.latest, self.timeline.times.end, strict=True):
            found.append(array("q", [most - over for most, over in zip(latest, end, strict=True)]))
        return found

    def _walk(self, number: int) -> None:
        """Walk a class back until it is done or needs another class first."""
        runs = self.timeline.stage_program(number).runs
        while (place := self.run_number[number]) >= 0:
            run = runs[place]
            if not self._walk_ops(number, run.first):
                return
            late, latest = self.late[number], self.latest[number]
            for wait in run.waits:
                if isinstance(wait, Join):
                    latest[wait.op] = min(latest[wait.op], late - wait.after)
                elif isinstance(wait, Receive):
                    sender, sent = self.timeline.received(number, wait.message)
                    self.latest[sender][sent] = min(self.latest[sender][sent], late)
                    self.received.add((sender, sent))
                    if (sender, sent) in self.parked:
                        self.parked.remove((sender, sent))
                        self.ready.append(sender)
            self.run_number[number] = place - 1

    def _walk_ops(self, number: int, first: int) -> bool:
        """Walk back over the ops of a run. False if the class has to wait for another at one of them."""
        ops, start, end = self.timeline.columns(number)
        stream, blocking, before = ops.stream, ops.blocking, self.index.of(number).before
        groups = self._groups(number)
        latest, late = self.latest[number], self.late[number]
        for op in range(self.next_op[number], first - 1, -1):
            lane = stream[op]
            if lane == COMPUTE:
                latest[op] = late
                late -= end[op] - start[op]
                continue
            if lane >= TO_NEXT:
                if (number, op) not in self.received and self._is_received(number, op):
                    self.parked.add((number, op))
                    self.late[number], self.next_op[number] = late, op
                    return False
            else:
                if blocking[op] and late < latest[op]:
                    latest[op] = late
                members = groups[lane]
                if len(members) > 1 and self.cleared[number] != op:
                    self.late[number], self.next_op[number] = late, op
                    if not self._meet(number, op):
                        return False
            begin = latest[op] - end[op] + start[op]
            if begin < late:
                late = begin
            if before[op] != NONE and begin < latest[before[op]]:
                latest[before[op]] = begin
        self.late[number], self.next_op[number] = late, first - 1
        return True

    def _is_received(self, number: int, op: int) -> bool:
        """Whether the receiver of a transfer waits for it."""
        receiver = self.index.of(self.index.receiver(number, op))
        return self.timeline.stage_program(number).ops.message[op] in receiver.receives

    def _meet(self, number: int, op: int) -> bool:
        """A member has come back to a collective; with the last one its latest end is known to all."""
        members = self.index.members(number, op)
        key = members[0]
        self.met[key] = self.met.get(key, 0) + 1
        if self.met[key] < len(members):
            return False
        del self.met[key]
        over = min(self.latest[member][its_op] for member, its_op in members)
        for member, its_op in members:
            self.latest[member][its_op] = over
            self.cleared[member] = its_op
            if member != number:
                self.ready.append(member)
        return True

    def _groups(self, number: int) -> list[Sequence[int]]:
        """Per stream of a class the member classes of its collectives there."""
        timeline = self.timeline
        groups = timeline.classes[number].groups
        return [
            timeline.folding.group_classes[groups[kind]].members if kind in groups else ()
            for kind in (KIND_OF_STREAM.get(stream) for stream in range(len(STREAMS)))
        ]
