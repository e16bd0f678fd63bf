"""Collectives as flows that wait for each other, as SimAI's copy of NCCL sends them.

A ring has a channel for each rank of the group in a server; a rank's flow of a step starts when that of its
predecessor of the step before has arrived, and after its own of the step before: of flows of a pair, one that
overtakes the other waits for it. An all-to-all sends everything at once. NVLS sends chunks to the switch of a
server and from there to all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from simcore.flows.traffic import FlowTraffic

# What a rank does between what it gets and what it sends then, ns, and more where it reduces.
_REDUCE_NS = 30
_NVLS_CHUNKS = 4
_NVLS_LEAST_RANKS = 8


def make_rings(ranks: Sequence[int], gpus_per_server: int) -> list[list[int]]:
    """Returns the rings of a group: ring c visits the ranks of each server rotated by c."""
    servers: dict[int, list[int]] = {}
    for rank in ranks:
        servers.setdefault(rank // gpus_per_server, []).append(rank)
    channels = min(len(there) for there in servers.values())
    return [
        [rank for there in servers.values() for rank in (*there[channel:], *there[:channel])]
        for channel in range(channels)
    ]


def estimate_flows(collective: str, members: int, gpus_per_server: int) -> int:
    """Returns about how many flows a collective is, before it is run."""
    if members < 2:
        return 0
    if collective == "ALLTOALL":
        return members * (members - 1)
    return members * (members - 1) * min(members, gpus_per_server) * (2 if collective == "ALLREDUCE" else 1)


class _Turn:
    """Where a rank is in a channel: the step that it sent last, when, and those that have come too early."""

    __slots__ = ("at_ns", "early", "step")

    def __init__(self, now: int) -> None:
        self.step = 0
        self.at_ns = now
        self.early: set[int] = set()


class Collective:
    """A collective in flight. over: called with the time when its last flow has arrived."""

    def __init__(
        self,
        traffic: FlowTraffic,
        ranks: Sequence[int],
        collective: str,
        size: int,
        over: Callable[[int], None],
        label: int = -1,
    ) -> None:
        self._traffic = traffic
        self._over = over
        self._label = label
        self._delay = traffic.rules.start_ns
        self._latency = traffic.rules.send_latency
        self._turn_ns = traffic.rules.turn_ns
        self._missing = 0
        self._is_pxn = traffic.rules.pxn and collective == "ALLREDUCE"
        count = len(ranks)
        self._steps = 2 * (count - 1) if collective == "ALLREDUCE" else count - 1
        self._rings: list[list[int]] = []
        self._share = 0
        if count < 2 or not size:
            over(traffic.now)
        elif collective == "ALLTOALL":
            self._send_to_all(ranks, size)
        elif collective == "ALLREDUCE" and self._is_nvls(ranks):
            self._begin_nvls(ranks, size)
        else:
            self._rings = make_rings(ranks, traffic.topology.gpus_per_server)
            size_of_server = traffic.topology.gpus_per_server
            if ranks[0] // size_of_server != ranks[-1] // size_of_server:
                traffic.has_chains = True
                traffic.has_mixed_rings = traffic.has_mixed_rings or len(self._rings) > 1
            self._share = max(size // count // len(self._rings), 1)
            self._missing = len(self._rings) * count * self._steps
            # SimAI's count of reducing steps is one for all channels of an all-reduce: an even number of them
            # ends it before it begins.
            self._reducing_steps = 0
            if traffic.rules.model == "ns3" and (
                collective == "REDUCESCATTER" or (collective == "ALLREDUCE" and len(self._rings) % 2)
            ):
                self._reducing_steps = count - 1
            self._turns = [[_Turn(traffic.now) for _ in ring] for ring in self._rings]
            for channel in range(len(self._rings)):
                for position in range(count):
                    self._send_step((channel, position, 0), self._delay)

    def _send_to_all(self, ranks: Sequence[int], size: int) -> None:
        share = max(size // len(ranks), 1)
        self._missing = len(ranks) * (len(ranks) - 1)
        for source in ranks:
            for target in ranks:
                if source != target:
                    self._send(self._delay, source, target, share, self._arrive, None)

    def _send(
        self,
        delay: int,
        source: int,
        target: int,
        size: int,
        arrived: Callable[[Any, int], None],
        key: object,
    ) -> None:
        self._traffic.send(delay, source, target, size, arrived, key, self._label)

    def _arrive(self, _: object, now: int) -> None:
        self._missing -= 1
        if not self._missing:
            self._over(now)

    def _send_step(self, key: tuple[int, int, int], delay: int) -> None:
        channel, position, _ = key
        ring = self._rings[channel]
        source, target = ring[position], ring[(position + 1) % len(ring)]
        if self._is_pxn:
            relay = self._relay(source, target)
            if relay is not None:
                self._send(delay, source, relay, self._share, self._relay_step, (key, relay))
                return
        self._send(delay, source, target, self._share, self._end_step, key)

    def _relay(self, source: int, target: int) -> int | None:
        """Returns the GPU of the sender's server on the rail of a target in another server and rail."""
        size = self._traffic.topology.gpus_per_server
        if source // size == target // size or source % size == target % size:
            return None
        return source // size * size + target % size

    def _relay_step(self, key: tuple[tuple[int, int, int], int], now: int) -> None:
        step, relay = key
        channel, position, _ = step
        ring = self._rings[channel]
        target = ring[(position + 1) % len(ring)]
        self._send(self._delay, relay, target, self._share, self._end_step, step)

    def _end_step(self, key: tuple[int, int, int], now: int) -> None:
        channel, position, step = key
        if step + 1 < self._steps:
            following = (position + 1) % len(self._rings[channel])
            turn = self._turns[channel][following]
            turn.early.add(step)
            while turn.step in turn.early:
                turn.early.remove(turn.step)
                turn.step += 1
                reduce_ns = _REDUCE_NS if turn.step <= self._reducing_steps else 0
                turn.at_ns = max(turn.at_ns, now) + self._turn_ns + reduce_ns
                delay = turn.at_ns - now + self._latency
                self._send_step((channel, following, turn.step), delay)
        self._arrive(None, now)

    def _is_nvls(self, ranks: Sequence[int]) -> bool:
        topology = self._traffic.topology
        return (
            self._traffic.rules.nvls
            and len(ranks) >= _NVLS_LEAST_RANKS
            and topology.gpu_type in ("H100", "H800")
            and len({topology.server_of(rank) for rank in ranks}) == 1
            and bool(topology.inner_switches)
        )

    def _begin_nvls(self, ranks: Sequence[int], size: int) -> None:
        """Sends chunk after chunk to the switch of the server, which sends each down when all have come."""
        topology = self._traffic.topology
        inner = set(topology.inner_switches)
        switch = next(peer for peer, _ in topology.neighbors()[ranks[0]] if peer in inner)
        share = max(size // _NVLS_CHUNKS, 1)
        self._missing = 2 * _NVLS_CHUNKS * len(ranks)
        waiting = [len(ranks)] * _NVLS_CHUNKS

        def send_up(rank: int, chunk: int) -> None:
            self._send(self._delay, rank, switch, share, end_up, (rank, chunk))

        def end_up(key: tuple[int, int], now: int) -> None:
            rank, chunk = key
            if chunk + 1 < _NVLS_CHUNKS:
                send_up(rank, chunk + 1)
            waiting[chunk] -= 1
            if not waiting[chunk]:
                for target in ranks:
                    self._send(self._delay, switch, target, share, self._arrive, None)
            self._arrive(None, now)

        for rank in ranks:
            send_up(rank, 0)
