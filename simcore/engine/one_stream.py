"""The event queue of dialect simai-sim: a rank has one collective at a time, whatever its group.

SimAI's scheduler has one queue and one active stream: what is issued while a collective runs waits, and then
the newest goes first. A rank begins its part of a collective without waiting for others, and goes on when all
that it sends and gets has arrived; the last cell of its row comes on top.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from simcore.engine.actor import NOT_YET, Actor
from simcore.engine.shared_queue import SharedNetworkEngine, Traffic
from simcore.folding import Folding
from simcore.networks.flows import FlowTransport
from simcore.program import Program
from simcore.program.ops import STREAM_OF_GROUP
from simcore.records import NamedTuple


class _Part(NamedTuple):
    """The part of a rank in a collective."""

    actor: Actor
    op: int


class OneStreamEngine(SharedNetworkEngine):
    """One run on a network of flows."""

    def __init__(
        self,
        program: Program,
        folding: Folding,
        durations: Sequence[Sequence[int]],
        traffic: Traffic,
        cancelled: Callable[[], bool],
    ) -> None:
        super().__init__(program, folding, durations, traffic, cancelled)
        assert isinstance(traffic.transport, FlowTransport)
        self._flows = traffic.transport
        self._after_ns = program.after_ns
        self._members: dict[int, list[int]] = {}
        for actor in self.actors:
            for group in actor.groups.values():
                self._members.setdefault(group, []).append(actor.index)
        # By rank class: the op that runs, and those that wait, the newest last.
        self._active = [NOT_YET] * len(self.actors)
        self._waiting: list[list[int]] = [[] for _ in self.actors]

    def _local_streams(self, folding: Folding, groups: dict[int, int]) -> frozenset[int]:
        return frozenset({STREAM_OF_GROUP["offload"]} & groups.keys())

    def _issue(self, actor: Actor, op: int, lane: int, time: int) -> None:
        self._waiting[actor.index].append(op)
        if self._active[actor.index] == NOT_YET:
            self._begin_newest(actor)

    def _begin_newest(self, actor: Actor) -> None:
        """Begins the part of a rank in the newest of what it has issued."""
        op = self._active[actor.index] = self._waiting[actor.index].pop()
        actor.start[op] = self.now
        lane = actor.program.ops.stream[op]
        group = actor.groups[lane]
        self._flows.join(
            self.now, (group, op), self.transmission(actor.index, op), self._members[group], actor.index,
            _Part(actor, op), lane,
        )  # fmt: skip

    def _end(self, token: object) -> None:
        """Ends the part of a rank: it goes on with the next one."""
        assert isinstance(token, _Part)
        actor, op = token
        actor.end[op] = self.now + self._after_ns[actor.program.ops.row[op]]
        self._active[actor.index] = NOT_YET
        if actor.parked_op == op:
            actor.parked_op = NOT_YET
            actor.time = max(actor.time, actor.end[op])
            self._wake(actor)
        if self._waiting[actor.index]:
            self._begin_newest(actor)
