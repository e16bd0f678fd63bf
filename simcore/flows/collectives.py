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


class Collective:
    """A collective in flight, of which each rank takes part from `begin` on.

    over: called with the time when its last flow has arrived. rank_over: with a rank when all that it sends
    and gets has arrived.
    """

    def __init__(
        self,
        traffic: FlowTraffic,
        ranks: Sequence[int],
        size: int,
        over: Callable[[int], None],
        label: int,
        rank_over: Callable[[int], None],
    ) -> None:
        self.ranks = ranks
        self.size = size
        self._traffic = traffic
        self._over = over
        self._label = label
        self._rank_over = rank_over
        self._delay = traffic.rules.start_ns
        self._missing = 0
        # Flows of a rank that have not arrived, those that it sends and those that it gets.
        self._missing_of_rank: dict[int, int] = {}

    def begin(self, rank: int) -> None:
        """Has a rank send what it can."""
        raise NotImplementedError

    def _expect(self, flows: int, of_rank: int) -> None:
        self._missing = flows
        self._missing_of_rank = dict.fromkeys(self.ranks, of_rank)

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

    def _arrive(self, ends: tuple[int, int], now: int) -> None:
        """Counts a flow from one end to the other."""
        missing_of_rank = self._missing_of_rank
        for rank in ends:
            # A switch is no rank.
            if rank in missing_of_rank:
                missing_of_rank[rank] -= 1
                if not missing_of_rank[rank]:
                    self._rank_over(rank)
        self._missing -= 1
        if not self._missing:
            self._over(now)


class _AllToAll(Collective):
    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        count = len(self.ranks)
        self._share = max(self.size // count, 1)
        self._expect(count * (count - 1), 2 * (count - 1))

    def begin(self, rank: int) -> None:
        for target in self.ranks:
            if target != rank:
                self._send(self._delay, rank, target, self._share, self._arrive, (rank, target))


class _Turn:
    """Where a rank is in a channel: the step that it sent last, when, and those that have come too early."""

    __slots__ = ("at_ns", "early", "step")

    def __init__(self) -> None:
        # -2 before it takes part: what comes waits for that as well.
        self.step = -2
        self.at_ns = 0
        self.early: set[int] = set()


class _Rings(Collective):
    def __init__(self, is_pxn: bool, steps: int, reduces: bool, *args: Any) -> None:
        super().__init__(*args)
        traffic, ranks = self._traffic, self.ranks
        count, per_server = len(ranks), traffic.topology.gpus_per_server
        self._is_pxn = is_pxn
        self._steps = steps
        self._rings = make_rings(ranks, per_server)
        if ranks[0] // per_server != ranks[-1] // per_server:
            traffic.has_chains = True
            traffic.has_mixed_rings = traffic.has_mixed_rings or len(self._rings) > 1
        self._share = max(self.size // count // len(self._rings), 1)
        # SimAI has one count of reducing steps for all channels of an all-reduce: with an even number of
        # channels it is over before it has begun.
        is_counted = steps < count or len(self._rings) % 2
        is_ns3 = traffic.rules.model == "ns3"
        self._reducing_steps = count - 1 if reduces and is_ns3 and is_counted else 0
        self._turns = [[_Turn() for _ in ring] for ring in self._rings]
        self._positions = [{rank: position for position, rank in enumerate(ring)} for ring in self._rings]
        self._expect(len(self._rings) * count * steps, 2 * len(self._rings) * steps)

    def begin(self, rank: int) -> None:
        for channel, positions in enumerate(self._positions):
            turn = self._turns[channel][positions[rank]]
            turn.step = -1
            turn.at_ns = self._traffic.now
            turn.early.add(-1)
            self._go_on(channel, positions[rank])

    def _go_on(self, channel: int, position: int) -> None:
        """Sends the steps of a rank whose turn it is, in their order."""
        turn, now, rules = self._turns[channel][position], self._traffic.now, self._traffic.rules
        while turn.step in turn.early and turn.step + 1 < self._steps:
            turn.early.remove(turn.step)
            turn.step += 1
            reduce_ns = _REDUCE_NS if 0 < turn.step <= self._reducing_steps else 0
            turn.at_ns = max(turn.at_ns, now) + rules.turn_ns + reduce_ns
            self._send_step((channel, position, turn.step), turn.at_ns - now + rules.send_latency)

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
        ring = self._rings[channel]
        following = (position + 1) % len(ring)
        self._turns[channel][following].early.add(step)
        self._go_on(channel, following)
        self._arrive((ring[position], ring[following]), now)


class _Nvls(Collective):
    """Sends chunk after chunk to the switch of the server, which sends each down when all have come."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        topology = self._traffic.topology
        inner = topology.inner_set()
        self._switch = next(peer for peer, _ in topology.neighbors()[self.ranks[0]] if peer in inner)
        self._share = max(self.size // _NVLS_CHUNKS, 1)
        self._waiting = [len(self.ranks)] * _NVLS_CHUNKS
        self._expect(2 * _NVLS_CHUNKS * len(self.ranks), 2 * _NVLS_CHUNKS)

    def begin(self, rank: int) -> None:
        self._send_up(rank, 0)

    def _send_up(self, rank: int, chunk: int) -> None:
        self._send(self._delay, rank, self._switch, self._share, self._end_up, (rank, chunk))

    def _end_up(self, key: tuple[int, int], now: int) -> None:
        rank, chunk = key
        if chunk + 1 < _NVLS_CHUNKS:
            self._send_up(rank, chunk + 1)
        self._waiting[chunk] -= 1
        if not self._waiting[chunk]:
            for target in self.ranks:
                ends = self._switch, target
                self._send(self._delay, *ends, self._share, self._arrive, ends)
        self._arrive((rank, self._switch), now)


def _pass(_: int) -> None:
    pass


def make_collective(
    traffic: FlowTraffic,
    ranks: Sequence[int],
    collective: str,
    size: int,
    over: Callable[[int], None],
    label: int = -1,
    rank_over: Callable[[int], None] = _pass,
) -> Collective | None:
    """Returns a collective in which no rank has begun; None where it moves nothing."""
    if len(ranks) < 2 or not size:
        return None
    args = traffic, ranks, size, over, label, rank_over
    if collective == "ALLTOALL":
        return _AllToAll(*args)
    if collective == "ALLREDUCE" and _is_nvls(traffic, ranks):
        return _Nvls(*args)
    is_reduced = collective == "ALLREDUCE"
    steps = (len(ranks) - 1) * (2 if is_reduced else 1)
    return _Rings(traffic.rules.pxn and is_reduced, steps, collective != "ALLGATHER", *args)


def start_collective(
    traffic: FlowTraffic,
    ranks: Sequence[int],
    collective: str,
    size: int,
    over: Callable[[int], None],
    label: int = -1,
) -> None:
    """Begins a collective in all ranks at once."""
    what = make_collective(traffic, ranks, collective, size, over, label)
    if what is None:
        over(traffic.now)
        return
    for rank in ranks:
        what.begin(rank)


def _is_nvls(traffic: FlowTraffic, ranks: Sequence[int]) -> bool:
    topology = traffic.topology
    return (
        traffic.rules.nvls
        and len(ranks) >= _NVLS_LEAST_RANKS
        and topology.gpu_type in ("H100", "H800")
        and len({topology.server_of(rank) for rank in ranks}) == 1
        and bool(topology.inner_switches)
    )
