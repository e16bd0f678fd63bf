"""The event queue: actors go on in any order, each as far as what others have done lets it.

An event is an actor that can go on. It runs through its ops until it must wait for another
actor: a pipeline transfer that has not been sent, or a collective whose other members have not
come. Each actor decides alone in which order it issues ops, and an op's start follows from the ends
of others: no order of events gives other times, so none is kept.

The rules: compute and each stream are FIFO; a collective starts when every member
has reached it on its stream and ends for all at once; a transfer starts when its producing op
has ended and its channel, one per ordered pair of ranks, is free.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

from simcore.diagnostics import Cancelled
from simcore.engine.actor import (
    LOCAL_ASYNCHRONOUS,
    LOCAL_BLOCKING,
    MEET_BLOCKING,
    NOT_YET,
    RUN_COMPUTE,
    SEND,
    Actor,
    Codes,
)
from simcore.folding import Folding
from simcore.program import Program
from simcore.program.ops import STREAM_OF_GROUP, InnerJoins, Join, OpRun, Receive, TransferCost
from simcore.records import NamedTuple, Struct
from simcore.units import add_to_column
from simcore.workload.model import LARGEST

EVENTS_BETWEEN_CANCEL_CHECKS = 256
# Stretches whose durations differ may be millions.
MOST_STRETCHES = 1000


class Times(Struct, frozen=True):
    """When everything happened, per rank class; ns from the start of the step."""

    start: tuple[array[int], ...]
    """Per class the starts of its ops."""
    end: tuple[array[int], ...]
    """Per class the ends of its ops."""
    pass_ends: tuple[tuple[int, ...], ...]
    """When the class came to the end of each pass (`StageProgram.pass_ends`), the last one before the join at
    the end of its step.
    """
    finish: tuple[int, ...]
    """When that join was over."""


class JoinTimes(NamedTuple):
    """The times of a run that waits inside, ns from its begin."""

    start: array[int]
    """The starts of its ops."""
    end: array[int]
    """The ends of its ops."""
    compute_end: int
    """When compute is over."""
    streams_free: tuple[int, ...]
    """When the streams of `InnerJoins.ends` are free."""
    last_end: int
    """The last end of all ops."""


class GroupMeeting:
    """A collective of a group, while its members come. ready: when the last one of them came."""

    __slots__ = ("members", "missing", "ready")

    def __init__(self, members: int) -> None:
        self.missing = members
        self.ready = 0
        self.members: list[tuple[Actor, int]] = []


class Engine:
    """One run on a network where nothing slows a transmission down."""

    def __init__(
        self,
        program: Program,
        folding: Folding,
        durations: Sequence[Sequence[int]],
        cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        """durations[c][i]: ns of op i of rank class c, communication on an idle network. Its `run` raises
        `Cancelled` when `cancelled()` becomes true, RuntimeError if the program waits for something that
        nobody does (a defect of a schedule, never of an input).
        """
        self.cancelled = cancelled
        self.group_classes = folding.group_classes
        # By group class the collective that some members have come to: a stream is first in, first out, so no
        # member comes to the next one before it is over.
        self.meetings: dict[int, GroupMeeting] = {}
        self.awake: list[Actor] = []
        # By the durations of a stretch, when its ops end: micro-batches, and stages, repeat each other.
        self.offsets: dict[tuple[int, ...], array[int]] = {}
        # The times of runs that wait inside, by all that decides them: these repeat each other as well.
        self.join_times: dict[object, JoinTimes] = {}
        self.actors: list[Actor] = []
        codes_by_stage: dict[tuple[int, frozenset[int]], Codes] = {}
        for index, rank_class in enumerate(folding.classes):
            groups = {STREAM_OF_GROUP[kind]: group for kind, group in rank_class.groups.items()}
            local = self._local_streams(folding, groups)
            peers = {step: link.neighbour for step, link in rank_class.links.items()}
            stage_program = program.stages[rank_class.stage]
            key = (id(stage_program), local)
            if key not in codes_by_stage:
                codes_by_stage[key] = Codes.of(stage_program, local)
            self.actors.append(
                Actor(index, stage_program, codes_by_stage[key], durations[index], groups, local, peers)
            )
        for actor in self.actors:
            actor.step = self._step(actor)
        self.transfer_steps = [cost.step if isinstance(cost, TransferCost) else 0 for cost in program.costs]

    def _local_streams(self, folding: Folding, groups: dict[int, int]) -> frozenset[int]:
        """Returns the streams whose collectives a class alone decides on: all members are of this class."""
        return frozenset(
            stream for stream, group in groups.items() if len(folding.group_classes[group].members) == 1
        )

    def run(self) -> Times:
        """Runs the whole step and returns its times."""
        awake = self.awake
        awake.extend(self.actors)
        resumed = 0
        while awake:
            resumed += 1
            if not resumed % EVENTS_BETWEEN_CANCEL_CHECKS and self.cancelled():
                raise Cancelled
            next(awake.pop().step, None)
        return self._times()

    def _times(self) -> Times:
        """Returns the times when nothing more happens."""
        for actor in self.actors:
            run = actor.current_run()
            if run is not None:
                raise RuntimeError(f"class {actor.index} never gets past run {actor.run}: {run.waits}")
        return Times(
            tuple(actor.start for actor in self.actors),
            tuple(actor.end for actor in self.actors),
            tuple(actor.pass_ends() for actor in self.actors),
            tuple(actor.time for actor in self.actors),
        )

    def _step(self, actor: Actor) -> Iterator[None]:
        """Runs the actor's whole step. Yields where it must wait for another actor, which wakes it."""
        for run_index, run in enumerate(actor.program.packed):
            actor.run = run_index
            if run_index in actor.pass_end_times:
                actor.pass_end_times[run_index] = actor.time
            for wait in run.waits:
                if isinstance(wait, Receive):
                    if wait.message not in actor.inbox:
                        actor.parked_message = wait.message
                        yield
                    over = actor.inbox[wait.message]
                else:
                    assert isinstance(wait, Join)  # no state changes in dialect simai
                    if actor.end[wait.op] == NOT_YET:
                        actor.parked_op = wait.op
                        yield
                    over = actor.end[wait.op]
                if over > actor.time:
                    actor.time = over
            if run.inner is None:
                yield from self._run_ops(actor, run.first, run.last)
            else:
                yield from self._run_with_joins(actor, run, run.inner)
        actor.run += 1

    def _run_with_joins(self, actor: Actor, run: OpRun, inner: InnerJoins) -> Iterator[None]:
        """Issues the ops of a run that waits inside. Yields as `_run_ops`, and where it waits for others."""
        codes = actor.codes.of_op[run.first : run.last]
        if max(codes) > LOCAL_ASYNCHRONOUS:
            yield from self._run_op_by_op(actor, run, inner)
            return
        begin, free = actor.time, actor.free
        # Nobody else has a say: all goes by the durations, and by how long streams are still busy.
        busy = tuple([free[lane] - begin if free[lane] > begin else 0 for lane, _, _ in inner.ends])
        key = (inner, codes, busy, tuple(actor.durations[run.first : run.last]))
        cached = self.join_times.get(key)
        if cached is not None and begin + cached.last_end <= LARGEST:
            actor.start[run.first : run.last] = add_to_column(cached.start, begin)
            actor.end[run.first : run.last] = add_to_column(cached.end, begin)
            actor.time = begin + cached.compute_end
            for (lane, _, _), until in zip(inner.ends, cached.streams_free, strict=True):
                free[lane] = begin + until
            return
        yield from self._run_op_by_op(actor, run, inner)
        if len(self.join_times) < MOST_STRETCHES:
            start, end = (
                add_to_column(column[run.first : run.last], -begin) for column in (actor.start, actor.end)
            )
            free_at = tuple([free[lane] - begin for lane, _, _ in inner.ends])
            self.join_times[key] = JoinTimes(start, end, actor.time - begin, free_at, max(end))

    def _run_op_by_op(self, actor: Actor, run: OpRun, inner: InnerJoins) -> Iterator[None]:
        """Issues the same ops one by one."""
        first = run.first
        for position, op in inner.pairs:
            yield from self._run_ops(actor, first, run.first + position)
            first = run.first + position
            if actor.end[run.first + op] == NOT_YET:
                actor.parked_op = run.first + op
                yield
            actor.time = max(actor.time, actor.end[run.first + op])
        yield from self._run_ops(actor, first, run.last)

    def _run_ops(self, actor: Actor, first: int, last: int) -> Iterator[None]:
        """Issues ops first..last-1. Yields in each blocking one that other members are still to come to."""
        time = actor.time
        durations, stream, start, end = actor.durations, actor.program.ops.stream, actor.start, actor.end
        free, queued = actor.free, actor.queued
        codes, firsts, lasts = actor.codes
        stretch = bisect_right(lasts, first)
        while first < last:
            until = last
            if stretch < len(firsts) and firsts[stretch] <= first:
                until = min(lasts[stretch], last)
                stretch += 1
                if all(free[lane] <= time for lane in {*stream[first:until]}):
                    # One after another, each stream idle when its collective comes: it is so again behind it.
                    times = self._one_after_another(time, tuple(durations[first:until]))
                    start[first:until], end[first:until], time = times[:-1], times[1:], times[-1]
                    first = until
                    continue
            elif stretch < len(firsts) and firsts[stretch] < last:
                until = firsts[stretch]
            for op in range(first, until):
                code = codes[op]
                if code == RUN_COMPUTE:
                    start[op] = time
                    time += durations[op]
                    end[op] = time
                elif code == LOCAL_BLOCKING:
                    lane = stream[op]
                    if free[lane] > time:
                        time = free[lane]
                    start[op] = time
                    time += durations[op]
                    end[op] = free[lane] = time
                elif code == LOCAL_ASYNCHRONOUS:
                    lane = stream[op]
                    begin = free[lane] if free[lane] > time else time
                    start[op] = begin
                    end[op] = free[lane] = begin + durations[op]
                elif code == SEND:
                    self._send(actor, op, time)
                else:
                    lane = stream[op]
                    queue = queued[lane]
                    queue.append((op, time))
                    if len(queue) == 1:
                        self._arrive(actor, lane)
                    if code == MEET_BLOCKING:
                        if end[op] == NOT_YET:
                            actor.parked_op = op
                            yield
                        time = end[op]
            first = until
        actor.time = time

    def _one_after_another(self, time: int, durations: tuple[int, ...]) -> array[int]:
        """Returns when each op of a sequence that runs from `time` on begins, and when the last one
        is over.
        """
        offsets = self.offsets.get(durations)
        if offsets is None:
            offsets = array("q", [*accumulate(durations, initial=0)])
            if len(self.offsets) < MOST_STRETCHES:
                self.offsets[durations] = offsets
        if time + offsets[-1] > LARGEST:
            raise OverflowError
        return add_to_column(offsets, time)

    def _send(self, actor: Actor, op: int, time: int) -> None:
        """Starts a pipeline transfer as soon as its channel is free."""
        ops = actor.program.ops
        message = ops.message[op]
        receiver = self.actors[actor.peers[self.transfer_steps[ops.cost[op]]]]
        begin = max(time, actor.channels.get(receiver.index, 0))
        actor.start[op] = begin
        actor.end[op] = actor.channels[receiver.index] = arrival = begin + actor.durations[op]
        self._deliver(receiver, message, arrival)

    def _deliver(self, receiver: Actor, message: int, arrival: int) -> None:
        """Delivers a message at `arrival`: its receiver goes on if it waits for it."""
        receiver.inbox[message] = arrival
        if receiver.parked_message == message:
            receiver.parked_message = NOT_YET
            self._wake(receiver)

    def _wake(self, actor: Actor) -> None:
        """Lets an actor go on: it has what it waited for."""
        self.awake.append(actor)

    def _arrive(self, member: Actor, lane: int) -> None:
        """Counts in a member at the head of its queue on a stream; the last one starts that collective.

        With its end the stream of every member is free, and whoever has queued another one there
        comes to it in turn.
        """
        coming = [member]
        for here in coming:
            group = here.groups[lane]
            meeting = self.meetings.get(group)
            if meeting is None:
                meeting = self.meetings[group] = GroupMeeting(len(self.group_classes[group].members))
            op, issued = here.queued[lane][0]
            meeting.members.append((here, op))
            if issued > meeting.ready:
                meeting.ready = issued
            if here.free[lane] > meeting.ready:
                meeting.ready = here.free[lane]
            meeting.missing -= 1
            if not meeting.missing:
                del self.meetings[group]
                coming += self._begin_collective(meeting, lane)

    def _begin_collective(self, meeting: GroupMeeting, lane: int) -> list[Actor]:
        """Begins a collective whose members have all come. Returns those that come to their next meeting
        there.
        """
        member, op = meeting.members[0]
        return self._end_collective(meeting, lane, meeting.ready + member.durations[op])

    def _end_collective(self, meeting: GroupMeeting, lane: int, over: int) -> list[Actor]:
        """Gives every member the end. Returns those whose next collective is queued on the stream."""
        going_on = []
        ready = meeting.ready
        for member, op in meeting.members:
            member.start[op] = ready
            member.end[op] = member.free[lane] = over
            queue = member.queued[lane]
            queue.popleft()
            if member.parked_op == op:
                member.parked_op = NOT_YET
                self._wake(member)
            if queue:
                going_on.append(member)
        return going_on
