"""The event queue where transmissions slow each other down: each end is known only when it comes.

Actors run ahead over compute and what meets nothing. At every instant all ends come first, then what they let
start; ports are shared anew when nothing more happens at that instant.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from simcore.diagnostics import Cancelled
from simcore.engine.actor import (
    LOCAL_ASYNCHRONOUS,
    LOCAL_BLOCKING,
    MEET_BLOCKING,
    NOT_YET,
    RUN_COMPUTE,
    Actor,
)
from simcore.engine.event_queue import EVENTS_BETWEEN_CANCEL_CHECKS, Engine, GroupMeeting, Times
from simcore.folding import Folding
from simcore.program import Program
from simcore.program.ops import OFFLOAD, TO_NEXT
from simcore.records import NamedTuple

if TYPE_CHECKING:
    from simcore.networks.model import PortTransport


class Traffic(NamedTuple):
    """What a run puts on its network.

    transmission: what an op moves, of (rank class, op). transport: what times it. own: the groups whose
    collectives meet no other transmission, so that their durations are known.
    """

    transmission: Callable[[int, int], Any]
    transport: PortTransport
    own: frozenset[int] = frozenset()


class _Collective(NamedTuple):
    meeting: GroupMeeting
    lane: int


class _Transfer(NamedTuple):
    sender: Actor
    op: int
    receiver: Actor


class SharedNetworkEngine(Engine):
    """One run on a network whose transmissions share ports."""

    def __init__(
        self,
        program: Program,
        folding: Folding,
        durations: Sequence[Sequence[int]],
        traffic: Traffic,
        cancelled: Callable[[], bool],
    ) -> None:
        self._own = traffic.own
        super().__init__(program, folding, durations, cancelled)
        self.transmission = traffic.transmission
        # (time, class) of the actors that go on.
        self.events: list[tuple[int, int]] = []
        self.network = traffic.transport
        self.channels: dict[tuple[int, int], deque[_Transfer]] = {}
        self.now = 0

    def _local_streams(self, folding: Folding, groups: dict[int, int]) -> frozenset[int]:
        # The end of every other collective depends on the rest of the traffic.
        own = {lane for lane, group in groups.items() if group in self._own}
        return super()._local_streams(folding, groups) & (own | {OFFLOAD})

    def run(self) -> Times:
        """Runs the whole step and returns its times."""
        return run_together([self])[0]

    def begin(self) -> None:
        """Lets every actor go on at the start of the step."""
        self.events.extend((0, index) for index in range(len(self.actors)))

    def do_next(self) -> bool:
        """Does what comes next at the present time; returns False where nothing does."""
        ends = self.network.next_ns()
        if ends is not None and ends <= self.now:
            for token in self.network.finished(self.now):
                self._end(token)
            return True
        if self.events and self.events[0][0] <= self.now:
            _, index = heappop(self.events)
            next(self.actors[index].step, None)
            return True
        return False

    def finish(self) -> Times:
        """Returns the times of the step that is over."""
        return self._times()

    def _wake(self, actor: Actor) -> None:
        """Lets an actor go on at its own time, or now if that is over."""
        heappush(self.events, (max(actor.time, self.now), actor.index))

    def _run_ops(self, actor: Actor, first: int, last: int) -> Iterator[None]:
        """Issues ops first..last-1. Yields until the actor's own time has come, and in each blocking one."""
        time = actor.time
        codes, durations, stream = actor.codes.of_op, actor.durations, actor.program.ops.stream
        free = actor.free
        for op in range(first, last):
            code = codes[op]
            if code == RUN_COMPUTE:
                actor.start[op] = time
                time += durations[op]
                actor.end[op] = time
                continue
            if code in (LOCAL_BLOCKING, LOCAL_ASYNCHRONOUS):
                begin = max(time, free[stream[op]])
                actor.start[op] = begin
                actor.end[op] = free[stream[op]] = begin + durations[op]
                if code == LOCAL_BLOCKING:
                    time = actor.end[op]
                continue
            actor.time = time
            if time > self.now:
                self._wake(actor)
                yield
            self._issue(actor, op, stream[op], time)
            if code == MEET_BLOCKING:
                if actor.end[op] == NOT_YET:
                    actor.parked_op = op
                    yield
                time = actor.end[op]
        actor.time = time

    def _issue(self, actor: Actor, op: int, lane: int, time: int) -> None:
        """Issues an op that moves something, at the actor's own time."""
        if lane >= TO_NEXT:
            self._send(actor, op, time)
        else:
            actor.queued[lane].append((op, time))
            if len(actor.queued[lane]) == 1:
                self._arrive(actor, lane)

    def _begin_collective(self, meeting: GroupMeeting, lane: int) -> list[Actor]:
        member, op = min(meeting.members, key=lambda pair: pair[0].index)
        if member.groups[lane] in self._own:
            return self._end_collective(meeting, lane, meeting.ready + member.durations[op])
        class_ids = [actor.index for actor, _ in meeting.members]
        token = _Collective(meeting, lane)
        self.network.start(self.now, token, self.transmission(member.index, op), class_ids, class_ids, lane)
        return []

    def _send(self, actor: Actor, op: int, time: int) -> None:
        receiver = self.actors[actor.peers[self.transfer_steps[actor.program.ops.cost[op]]]]
        queue = self.channels.setdefault((actor.index, receiver.index), deque())
        queue.append(_Transfer(actor, op, receiver))
        if len(queue) == 1:
            self._begin_transfer(queue[0])

    def _begin_transfer(self, transfer: _Transfer) -> None:
        sender, op, receiver = transfer
        sender.start[op] = self.now
        transmission = self.transmission(sender.index, op)
        lane = sender.program.ops.stream[op]
        self.network.start(self.now, transfer, transmission, (sender.index,), (receiver.index,), lane)

    def _end(self, token: object) -> None:
        """Ends a transmission: those who waited for it go on, and the next one in its queue starts."""
        if isinstance(token, _Collective):
            following = self._end_collective(token.meeting, token.lane, self.now)
            # In the order of classes, so that what starts at one instant always has the same order.
            for member in sorted(following, key=lambda actor: actor.index):
                self._arrive(member, token.lane)
            return
        assert isinstance(token, _Transfer)
        sender, op, receiver = token
        sender.end[op] = self.now
        if sender.parked_op == op:
            sender.parked_op = NOT_YET
            self._wake(sender)
        queue = self.channels[sender.index, receiver.index]
        queue.popleft()
        self._deliver(receiver, sender.program.ops.message[op], self.now)
        if queue:
            self._begin_transfer(queue[0])


def run_together(engines: Sequence[SharedNetworkEngine]) -> list[Times]:
    """Runs steps that begin together, on networks that may be one, and returns the times of each."""
    for engine in engines:
        engine.begin()
    turns, cancelled = 0, engines[0].cancelled
    while True:
        # What one does may be something for another at the same time.
        is_idle = True
        for engine in engines:
            while engine.do_next():
                is_idle = False
                turns += 1
                if turns >= EVENTS_BETWEEN_CANCEL_CHECKS:
                    turns = 0
                    if cancelled():
                        raise Cancelled
        if not is_idle and len(engines) > 1:
            continue
        coming = []
        for engine in engines:
            engine.network.settle(engine.now)
            if len(engines) == 1:
                turns += engine.network.run_ahead(engine.events[0][0] if engine.events else None)
            ends = engine.network.next_ns()
            coming += [] if ends is None else [ends]
            coming += [engine.events[0][0]] if engine.events else []
        if not coming:
            return [engine.finish() for engine in engines]
        for engine in engines:
            engine.now = min(coming)
