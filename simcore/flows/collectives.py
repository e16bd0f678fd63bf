"""Collectives as flows that wait for each other, as SimAI's copy of NCCL sends them.

A ring has a channel for each rank of the group in a server; a rank's flow of a step starts when that of its
predecessor of the step before has arrived, and after its own of the step before: of flows of a pair, one that
overtakes the other waits for it. An all-to-all sends everything at once, and so do direct
algorithms. Trees send chunks to their root and back, NVLS to the switch of a server and from there to all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from simcore.flows.traffic import FlowTraffic

# What a rank does between what it gets and what it sends then, ns, and more where it reduces.
_REDUCE_NS = 30
_NVLS_CHUNKS = 4
_TREE_CHUNKS = 8
# What a user may choose for the outermost dimension that a group crosses; "" as SimAI does.
FLOW_ALGORITHMS = ("", "ring", "direct", "double-binary-tree")
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


class Collective(ABC):
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

    @abstractmethod
    def begin(self, rank: int) -> None:
        """Has a rank send what it can."""

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


class _Direct(Collective):
    """Shards go to all others at once; of an all-reduce again, when a rank has those of all."""

    def __init__(self, is_reduced: bool, *args: Any) -> None:
        super().__init__(*args)
        count = len(self.ranks)
        self._share = max(self.size // count, 1)
        self._phases = 2 if is_reduced else 1
        # By rank the shards of the first phase that it lacks, and itself until it begins.
        self._lacks = dict.fromkeys(self.ranks, count)
        self._expect(self._phases * count * (count - 1), self._phases * 2 * (count - 1))

    def begin(self, rank: int) -> None:
        self._send_all(rank, 1)
        self._get(rank)

    def _send_all(self, rank: int, phase: int) -> None:
        for target in self.ranks:
            if target != rank:
                self._send(self._delay, rank, target, self._share, self._end_shard, (rank, target, phase))

    def _end_shard(self, key: tuple[int, int, int], now: int) -> None:
        source, target, phase = key
        if phase == 1:
            self._get(target)
        self._arrive((source, target), now)

    def _get(self, rank: int) -> None:
        self._lacks[rank] -= 1
        if not self._lacks[rank] and self._phases == 2:
            self._send_all(rank, 2)


def make_tree(ranks: Sequence[int]) -> dict[int, int | None]:
    """Returns the parent of each rank in a binary tree, None of the root.

    >>> make_tree([0, 1, 2, 3])
    {2: None, 1: 2, 0: 1, 3: 2}
    """
    parents: dict[int, int | None] = {}
    waiting: list[tuple[int, int, int | None]] = [(0, len(ranks), None)]
    while waiting:
        first, end, parent = waiting.pop()
        if first < end:
            middle = (first + end) // 2
            parents[ranks[middle]] = parent
            waiting += [(middle + 1, end, ranks[middle]), (first, middle, ranks[middle])]
    return parents


class _Trees(Collective):
    """Two binary trees, each for half of the buffer: leaves of one are inside the other. Chunks go up to the
    root, each reduced with those of the children, and down again; a rank sends a chunk to another when the
    one before has arrived.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        ranks = self.ranks
        self._parents = [make_tree(ranks), make_tree([*ranks[1:], ranks[0]])]
        self._children: list[dict[int, list[int]]] = []
        for parents in self._parents:
            children: dict[int, list[int]] = {rank: [] for rank in ranks}
            for rank, parent in parents.items():
                if parent is not None:
                    children[parent].append(rank)
            self._children.append(children)
        self._share = max(self.size // 2 // _TREE_CHUNKS, 1)
        per_server = self._traffic.topology.gpus_per_server
        if ranks[0] // per_server != ranks[-1] // per_server:
            self._traffic.has_chains = self._traffic.has_mixed_rings = True
        # (tree, rank, chunk) -> children whose part is missing, and the rank's own until it begins.
        self._lacks: dict[tuple[int, int, int], int] = {}
        # (tree, from, to) -> chunks that wait for the one on the way, the first of all.
        self._lines: dict[tuple[int, int, int], list[int]] = {}
        edges = 2 * (len(ranks) - 1)
        self._expect(2 * edges * _TREE_CHUNKS, 0)
        for parents in self._parents:
            for rank, parent in parents.items():
                for end in (rank, parent) if parent is not None else ():
                    self._missing_of_rank[end] += 2 * _TREE_CHUNKS

    def begin(self, rank: int) -> None:
        for tree in range(2):
            for chunk in range(_TREE_CHUNKS):
                self._get_up(tree, rank, chunk)

    def _get_up(self, tree: int, rank: int, chunk: int) -> None:
        key = tree, rank, chunk
        self._lacks[key] = self._lacks.get(key, len(self._children[tree][rank]) + 1) - 1
        if not self._lacks[key]:
            parent = self._parents[tree][rank]
            if parent is None:
                self._send_down(tree, rank, chunk)
            else:
                self._queue(tree, rank, parent, chunk)

    def _send_down(self, tree: int, rank: int, chunk: int) -> None:
        for child in self._children[tree][rank]:
            self._queue(tree, rank, child, chunk)

    def _queue(self, tree: int, source: int, target: int, chunk: int) -> None:
        line = self._lines.setdefault((tree, source, target), [])
        line.append(chunk)
        if len(line) == 1:
            self._send_first(tree, source, target)

    def _send_first(self, tree: int, source: int, target: int) -> None:
        self._send(self._delay, source, target, self._share, self._end_chunk, (tree, source, target))

    def _end_chunk(self, key: tuple[int, int, int], now: int) -> None:
        tree, source, target = key
        line = self._lines[key]
        chunk = line.pop(0)
        if line:
            self._send_first(*key)
        if self._parents[tree][source] == target:
            self._get_up(tree, target, chunk)
        else:
            self._send_down(tree, target, chunk)
        self._arrive((source, target), now)


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
    algorithm: str = "",
) -> Collective | None:
    """Returns a collective in which no rank has begun; None where it moves nothing.

    algorithm: one of `FLOW_ALGORITHMS`; trees are of all-reduces.
    """
    if len(ranks) < 2 or not size:
        return None
    args = traffic, ranks, size, over, label, rank_over
    if collective == "ALLTOALL":
        return _AllToAll(*args)
    if collective == "ALLREDUCE" and not algorithm and _is_nvls(traffic, ranks):
        return _Nvls(*args)
    is_reduced = collective == "ALLREDUCE"
    if algorithm == "direct":
        return _Direct(is_reduced, *args)
    if algorithm == "double-binary-tree" and is_reduced:
        return _Trees(*args)
    steps = (len(ranks) - 1) * (2 if is_reduced else 1)
    return _Rings(traffic.rules.pxn and is_reduced, steps, collective != "ALLGATHER", *args)


def start_collective(
    traffic: FlowTraffic,
    ranks: Sequence[int],
    collective: str,
    size: int,
    over: Callable[[int], None],
    label: int = -1,
    algorithm: str = "",
) -> None:
    """Begins a collective in all ranks at once."""
    what = make_collective(traffic, ranks, collective, size, over, label, algorithm=algorithm)
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
