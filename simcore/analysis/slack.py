"""Slack: how much longer a span may take before the step time grows.

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

from simcore.analysis.program_index import NONE, ProgramIndex
from simcore.diagnostics import Cancelled
from simcore.program.ops import COMPUTE, STREAM_OF_GROUP, STREAMS, TO_NEXT, Join, Receive
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


class _Collective:
    """A collective of several classes. latest: its latest end as far as it is known, ns.

    unknown: joins of its members, and members that it blocks, that have not been walked back to.
    parked: the classes that have come to it and wait for the others.
    """

    __slots__ = ("latest", "parked", "unknown")

    def __init__(self, latest: int, unknown: int) -> None:
        self.latest = latest
        self.unknown = unknown
        self.parked: list[int] = []


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
        self.step = step
        self.latest = [array("q", (step,)) * len(stage.ops) for stage in stages]
        self.late = [step] * len(classes)
        self.run_number = [len(stage.runs) - 1 for stage in stages]
        self.next_op = [len(stage.ops) - 1 for stage in stages]
        # Transfers (class, op) whose receivers have been walked back past their waits for them.
        self.received: set[tuple[int, int]] = set()
        self.parked: set[tuple[int, int]] = set()
        # By group class, and which of the group's collectives on their stream it is.
        self.collectives: dict[tuple[int, int], _Collective] = {}
        # The blocking collective that each class has come to.
        self.come_to = [NONE] * len(classes)
        # Per class and stream, the group class that meets there, NONE where no other class takes part.
        self.groups = [self._groups(number) for number in range(len(classes))]
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
        stream = self.timeline.stage_program(number).ops.stream
        groups, latest = self.groups[number], self.latest[number]
        while (place := self.run_number[number]) >= 0:
            run = runs[place]
            if not self._walk_ops(number, run.first):
                return
            late = self.late[number]
            for wait in run.waits:
                if isinstance(wait, Join):
                    if groups[stream[wait.op]] != NONE:
                        self._tell(number, wait.op, late)
                    elif late < latest[wait.op]:
                        latest[wait.op] = late
                elif isinstance(wait, Receive):
                    self._receive(*self.timeline.received(number, wait.message), late)
            self.run_number[number] = place - 1

    def _walk_ops(self, number: int, first: int) -> bool:
        """Walk back over the ops of a run. False if the class has to wait for another at one of them."""
        ops, start, end = self.timeline.columns(number)
        stream, blocking, before = ops.stream, ops.blocking, self.index.of(number).before
        groups = self.groups[number]
        latest, late = self.latest[number], self.late[number]
        for op in range(self.next_op[number], first - 1, -1):
            lane = stream[op]
            if lane == COMPUTE:
                latest[op] = late
                late -= end[op] - start[op]
                continue
            meets = groups[lane] != NONE
            if meets:
                if blocking[op] and self.come_to[number] != op:
                    self.come_to[number] = op
                    self._tell(number, op, late)
                collective = self._collective(number, op)
                if collective.unknown:
                    collective.parked.append(number)
                    self.late[number], self.next_op[number] = late, op
                    return False
                latest[op] = collective.latest
            elif lane >= TO_NEXT:
                if (number, op) not in self.received and self._is_received(number, op):
                    self.parked.add((number, op))
                    self.late[number], self.next_op[number] = late, op
                    return False
            elif blocking[op] and late < latest[op]:
                latest[op] = late
            begin = latest[op] - end[op] + start[op]
            if begin < late:
                late = begin
            if before[op] != NONE:
                if meets:
                    earlier = self._collective(number, before[op])
                    earlier.latest = min(earlier.latest, begin)
                elif begin < latest[before[op]]:
                    latest[before[op]] = begin
        self.late[number], self.next_op[number] = late, first - 1
        return True

    def _receive(self, sender: int, sent: int, late: int) -> None:
        """A receiver of a transfer has been walked back past its wait for it."""
        self.latest[sender][sent] = min(self.latest[sender][sent], late)
        self.received.add((sender, sent))
        if (sender, sent) in self.parked:
            self.parked.remove((sender, sent))
            self.ready.append(sender)

    def _is_received(self, number: int, op: int) -> bool:
        """Whether the receiver of a transfer waits for it."""
        receiver = self.index.of(self.index.receiver(number, op))
        return self.timeline.stage_program(number).ops.message[op] in receiver.receives

    def _tell(self, number: int, op: int, late: int) -> None:
        """A member has to have the end of its collective `op` by `late`. Who waited to know goes on."""
        collective = self._collective(number, op)
        collective.latest = min(collective.latest, late)
        collective.unknown -= 1
        if not collective.unknown:
            self.ready += collective.parked
            collective.parked = []

    def _collective(self, number: int, op: int) -> _Collective:
        """The collective that `op` of a class is, whichever of its classes asks."""
        index = self.index.of(number)
        key = (self.groups[number][index.program.ops.stream[op]], index.place[op])
        found = self.collectives.get(key)
        if found is None:
            unknown = 0
            for member, its_op in self.index.members(number, op):
                theirs = self.index.of(member)
                unknown += len(theirs.joins.get(its_op, ())) + theirs.program.ops.blocking[its_op]
            found = self.collectives[key] = _Collective(self.step, unknown)
        return found

    def _groups(self, number: int) -> list[int]:
        found = [NONE] * len(STREAMS)
        for kind, group in self.timeline.classes[number].groups.items():
            if len(self.timeline.folding.group_classes[group].members) > 1:
                found[STREAM_OF_GROUP[kind]] = group
        return found
