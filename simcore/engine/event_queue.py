"""The event queue: actors wake in time order, and run ahead over what no one else can change.

An event is (time, actor): the actor can go on from there. It runs through its ops until it
must wait for another actor: a pipeline transfer that has not been sent, or a collective whose
other members have not come. Compute, and collectives among equal ranks, have starts that only
this actor decides, so they cost no event of their own.

The rules: compute and each stream are FIFO; a collective starts when every member
has reached it on its stream and ends for all at once; a transfer starts when its producing op
has ended and its channel, one per ordered pair of ranks, is free.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Sequence
from heapq import heappop, heappush

from simcore.diagnostics import Cancelled
from simcore.engine.actor import (
    LOCAL_ASYNCHRONOUS,
    LOCAL_BLOCKING,
    MEET_BLOCKING,
    NOT_YET,
    RUN_COMPUTE,
    SEND,
    Actor,
)
from simcore.folding import Folding
from simcore.program import Program
from simcore.program.ops import STREAM_OF_GROUP, Join, Receive, TransferCost
from simcore.records import Struct

EVENTS_BETWEEN_CANCEL_CHECKS = 256


class Times(Struct, frozen=True):
    """When everything happened, per rank class; ns from the start of the step.

    start, end: columns over the class's ops. pass_ends: when the class came to the end of each pass
    (`StageProgram.pass_ends`), the last one before the join at the end of its step. finish: when that join
    was over.
    """

    start: tuple[array[int], ...]
    end: tuple[array[int], ...]
    pass_ends: tuple[tuple[int, ...], ...]
    finish: tuple[int, ...]


class Meeting:
    """A collective of a group. missing: members that have not come. ready: when the last one came."""

    __slots__ = ("members", "missing", "ready")

    def __init__(self, members: int) -> None:
        self.missing = members
        self.ready = 0
        self.members: list[tuple[Actor, int]] = []


def _by_index(member: tuple[Actor, int]) -> int:
    return member[0].index


class Engine:
    """One run on a network where nothing slows a transmission down."""

    def __init__(
        self,
        program: Program,
        folding: Folding,
        durations: Sequence[Sequence[int]],
        cancelled: Callable[[], bool],
    ) -> None:
        self.cancelled = cancelled
        self.group_classes = folding.group_classes
        # By group class the collective that some members have come to: a stream is first in, first out, so no
        # member comes to the next one before it is over.
        self.meetings: dict[int, Meeting] = {}
        self.events: list[tuple[int, int]] = []
        self.actors: list[Actor] = []
        for index, rank_class in enumerate(folding.classes):
            groups = {STREAM_OF_GROUP[kind]: group for kind, group in rank_class.groups.items()}
            local = self._local_streams(folding, groups)
            peers = {step: link.neighbour for step, link in rank_class.links.items()}
            stage_program = program.stages[rank_class.stage]
            self.actors.append(Actor(index, stage_program, durations[index], groups, local, peers))
        self.transfer_steps = [cost.step if isinstance(cost, TransferCost) else 0 for cost in program.costs]

    def _local_streams(self, folding: Folding, groups: dict[int, int]) -> frozenset[int]:
        """The streams of a class whose collectives it alone decides on: all members are of it."""
        return frozenset(
            stream for stream, group in groups.items() if len(folding.group_classes[group].members) == 1
        )

    def run(self) -> Times:
        """The whole step."""
        events = self.events
        events.extend((0, index) for index in range(len(self.actors)))
        popped = 0
        while events:
            popped += 1
            if not popped % EVENTS_BETWEEN_CANCEL_CHECKS and self.cancelled():
                raise Cancelled
            time, index = heappop(events)
            actor = self.actors[index]
            actor.time = time
            self._advance(actor)
        return self._times()

    def _times(self) -> Times:
        """What was found, when nothing more happens."""
        for actor in self.actors:
            run = actor.current_run()
            if run is not None:
                raise RuntimeError(f"class {actor.index} never gets past op {actor.next_op}: {run.waits}")
        return Times(
            tuple(actor.start for actor in self.actors),
            tuple(actor.end for actor in self.actors),
            tuple(actor.pass_ends() for actor in self.actors),
            tuple(actor.time for actor in self.actors),
        )

    def _advance(self, actor: Actor) -> None:
        """Run the actor on from its time until it is done or must wait for another."""
        runs = actor.program.runs
        last = len(runs) - 1
        while actor.run <= last:
            run = runs[actor.run]
            if actor.run in actor.passed:
                actor.note_pass_end(actor.time)
            waits = run.waits
            while actor.wait < len(waits):
                wait = waits[actor.wait]
                if isinstance(wait, Receive):
                    over = actor.inbox.get(wait.message, NOT_YET)
                    if over == NOT_YET:
                        actor.parked_message = wait.message
                        return
                else:
                    assert isinstance(wait, Join)  # no state changes in dialect simai
                    over = actor.end[wait.op]
                    if over == NOT_YET:
                        actor.parked_op = wait.op
                        return
                if over > actor.time:
                    actor.time = over
                actor.wait += 1
            if not self._run_ops(actor, max(run.first, actor.next_op), run.last):
                return
            actor.run += 1
            actor.wait = 0
            actor.next_op = run.last

    def _run_ops(self, actor: Actor, first: int, last: int) -> bool:
        """Issue ops first..last-1. False if the actor waits in one that meets others."""
        time = actor.time
        codes, durations, stream = actor.codes, actor.durations, actor.program.ops.stream
        start, end, free = actor.start, actor.end, actor.free
        for op in range(first, last):
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
                self._issue_meeting(actor, stream[op], op, time)
                if code == MEET_BLOCKING:
                    if end[op] == NOT_YET:
                        actor.time, actor.next_op, actor.parked_op = time, op + 1, op
                        return False
                    time = end[op]
        actor.time = time
        return True

    def _send(self, actor: Actor, op: int, time: int) -> None:
        """Start a pipeline transfer, as soon as its channel is free."""
        ops = actor.program.ops
        message = ops.message[op]
        receiver = self.actors[actor.peers[self.transfer_steps[ops.cost[op]]]]
        begin = max(time, actor.channels.get(receiver.index, 0))
        actor.start[op] = begin
        actor.end[op] = actor.channels[receiver.index] = arrival = begin + actor.durations[op]
        self._deliver(receiver, message, arrival)

    def _deliver(self, receiver: Actor, message: int, arrival: int) -> None:
        """A message is there at `arrival`: its receiver goes on if it waits for it."""
        receiver.inbox[message] = arrival
        if receiver.parked_message == message:
            receiver.parked_message = NOT_YET
            heappush(self.events, (max(receiver.time, arrival), receiver.index))

    def _issue_meeting(self, actor: Actor, lane: int, op: int, time: int) -> None:
        queue = actor.queued.get(lane)
        if queue is None:
            queue = actor.queued[lane] = deque()
        queue.append((op, time))
        if len(queue) == 1:
            following = self._come(actor, lane, op, time)
            if following:
                self._arrive(lane, deque(following))

    def _arrive(self, lane: int, arrivals: deque[Actor]) -> None:
        """These actors have reached the head of their queue on a stream: tell their meetings.

        A collective that starts frees the stream of every member with its end, and their next one
        arrives in turn.
        """
        while arrivals:
            member = arrivals.popleft()
            arrivals += self._come(member, lane, *member.queued[lane][0])

    def _come(self, member: Actor, lane: int, op: int, issued: int) -> Sequence[Actor]:
        """A member has come to its collective; the last one starts it.

        Returns those that come to their next one on the stream.
        """
        group = member.groups[lane]
        meeting = self.meetings.get(group)
        if meeting is None:
            meeting = self.meetings[group] = Meeting(len(self.group_classes[group].members))
        meeting.members.append((member, op))
        meeting.missing -= 1
        if issued > meeting.ready:
            meeting.ready = issued
        if member.free[lane] > meeting.ready:
            meeting.ready = member.free[lane]
        if meeting.missing:
            return ()
        del self.meetings[group]
        return self._begin_collective(meeting, lane)

    def _begin_collective(self, meeting: Meeting, lane: int) -> list[Actor]:
        """All members have come. Returns those that come to their next meeting on the stream."""
        member, op = meeting.members[0]
        return self._end_collective(meeting, lane, meeting.ready + member.durations[op])

    def _end_collective(self, meeting: Meeting, lane: int, over: int) -> list[Actor]:
        """Give every member the end. Returns those whose next collective is queued on the stream."""
        going_on = []
        ready, events = meeting.ready, self.events
        for member, op in sorted(meeting.members, key=_by_index):
            member.start[op] = ready
            member.end[op] = member.free[lane] = over
            queue = member.queued[lane]
            queue.popleft()
            if member.parked_op == op:
                member.parked_op = NOT_YET
                heappush(events, (over if over > member.time else member.time, member.index))
            if queue:
                going_on.append(member)
        return going_on
