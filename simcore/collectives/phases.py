"""A collective over several dimensions: which phase runs where, by which algorithm, and what ports it loads.

The module gives bytes by dimension and port time, and the chunks of a collective on an idle network: each
walks the phases, dimensions serve them in turn. All ranks of a ring, of direct and of halving-doubling
finish together, so one stands for all; on a double binary tree ranks differ by their position in it, so
there is one for each position (and for each pair of positions with two trees).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import Any

from simcore.cluster import Cluster, GroupShape, TransferShape
from simcore.collectives.algorithm import Algorithm, PortLoad, Steps
from simcore.collectives.algorithm_scope import AlgorithmScope
from simcore.collectives.algorithms import algorithm_named
from simcore.collectives.algorithms.double_binary_tree import level_ns
from simcore.collectives.exact import decimal_ratio
from simcore.diagnostics import UsageError
from simcore.names import COLLECTIVES
from simcore.records import NamedTuple

NAMES = {kind: name for name, kind in COLLECTIVES.items()}
# With the copies between a rank and the host's memory, which no network carries.
WITH_COPIES = NAMES | {"OFFLOAD": "offload", "FETCH": "fetch"}
_SEND_RECV = "send-recv"
_DEFAULT = {"ring": "ring", "fully-connected": "direct", "switch": "halving-doubling"}


def cell_name(collective: str | None) -> str:
    """Returns the name of a cell's communication: a collective, else `send-recv`, to a neighbouring stage."""
    return WITH_COPIES.get(collective or "", _SEND_RECV)


def collectives_of(kind: str) -> str:
    """Returns the text for the collectives of a kind of group; `all` is the group of all ranks.

    >>> collectives_of("tp"), collectives_of("all")
    ('tp collectives', 'collectives of all ranks')
    """
    return "collectives of all ranks" if kind == "all" else f"{kind} collectives"


class Phase(NamedTuple):
    """One collective in one scope, a part of a collective over several dimensions."""

    scope: AlgorithmScope
    """The members that take part."""
    collective: str
    """As in a workload."""
    algorithm: str
    """The name of the algorithm."""
    size: int
    """Bytes that one rank puts in."""
    steps: Steps
    """The chain of messages of the last rank when all start together."""

    def ns(self) -> int:
        """Returns how long the phase takes alone, until its last rank has finished, ns."""
        return self.steps.ns(self.scope)

    def first_ns(self) -> int:
        """Returns how long it takes until its first rank has finished, ns."""
        first_steps = algorithm_named(self.algorithm).first_steps
        if first_steps is None:
            return self.ns()
        return first_steps(self.scope, self.collective, self.size).ns(self.scope)

    @property
    def is_tree(self) -> bool:
        """Whether its ranks finish at different times."""
        return algorithm_named(self.algorithm).is_tree


def chunk_bytes(cluster: Cluster, shape: GroupShape, collective: str, size_bytes: int) -> tuple[int, int]:
    """Returns (chunks, bytes of each that one rank puts in) of a collective of `size_bytes` in all.

    A chunk is floor(bytes / splits), at least a byte a member (all-gather: at least a byte of
    the shard), and there are as many of that size as the bytes need: a remainder makes one
    more (ASTRA-sim 2.0, Sys::generate_collective).
    """
    if collective == "ALLGATHER":
        size, least = size_bytes // shape.members, 1
        if not size:
            return 1, 0
    else:
        size, least = size_bytes, shape.members
    if cluster.splits == 1:
        return 1, max(size, least)
    chunk = max(size // cluster.splits, least)
    return -(-size // chunk), chunk


def rest_bytes(cluster: Cluster, shape: GroupShape, collective: str, size_bytes: int) -> tuple[int, int, int]:
    """Returns (chunks, bytes of each, bytes of the last) that one rank puts in, as ASTRA-sim 1.0 splits them.

    A chunk is floor(bytes / splits), at least a byte; the last one is what the others leave.
    """
    size = max(1, size_bytes // shape.members if collective == "ALLGATHER" else size_bytes)
    chunk = max(1, size // cluster.splits)
    chunks = -(-size // chunk)
    return chunks, chunk, size - (chunks - 1) * chunk


def phases(cluster: Cluster, shape: GroupShape, collective: str, size: int) -> list[Phase]:
    """Returns the phases of one chunk in the order in which they run.

    collective: ALLREDUCE, ALLGATHER, REDUCESCATTER or ALLTOALL. size: bytes that one rank puts
    in (`chunk_bytes`). A group of one has no phase. Order and sizes: ASTRA-sim 2.0. Raises
    UsageError when a requested algorithm does not fit, and ValueError for another
    collective.
    """
    if collective not in NAMES:
        raise ValueError(f"no collective {collective}")
    if not shape.dimensions:
        return []
    algorithms = cluster.algorithms_for(collective)
    whole = _find_flat_algorithm(algorithms)
    if whole is not None:
        name = _fit_algorithm(AlgorithmScope(cluster, shape.dimensions), collective, *whole)
        return [_make_phase(AlgorithmScope(cluster, shape.dimensions), collective, name, size)]
    scopes = [AlgorithmScope(cluster, (group_dimension,)) for group_dimension in shape.dimensions]
    names = [_choose_algorithm(scope, collective, algorithms[scope.dimension]) for scope in scopes]
    all_phases = []
    for part, index in _order_parts(cluster, collective, len(scopes)):
        scope, name = scopes[index], names[index]
        all_phases.append(_make_phase(scope, part, name, size))
        # A tree runs an all-reduce whatever the collective is: its output is as large as its input.
        if part == "REDUCESCATTER" and not algorithm_named(name).is_tree:
            size //= scope.members
        elif part == "ALLGATHER" and not algorithm_named(name).is_tree:
            size *= scope.members
    return all_phases


def _order_parts(cluster: Cluster, collective: str, scope_count: int) -> list[tuple[str, int]]:
    """Returns (collective, index among the group's dimensions) of each phase.

    An all-reduce is a reduce-scatter on each dimension but the last, which alone sees an all-reduce,
    of what they leave; all-gathers then go back down. Under `baseline` it is a whole all-reduce
    on each. Reduce-scatter goes up, all-gather comes down, and an all-to-all goes up with its
    full size.
    """
    if collective == "ALLGATHER":
        return [(collective, index) for index in reversed(range(scope_count))]
    if collective != "ALLREDUCE" or cluster.optimization == "baseline":
        return [(collective, index) for index in range(scope_count)]
    return [
        *[("REDUCESCATTER", index) for index in range(scope_count - 1)],
        (collective, scope_count - 1),
        *[("ALLGATHER", index) for index in reversed(range(scope_count - 1))],
    ]


def _make_phase(scope: AlgorithmScope, collective: str, name: str, size: int) -> Phase:
    return Phase(scope, collective, name, size, algorithm_named(name).steps(scope, collective, size))


def _choose_algorithm(scope: AlgorithmScope, collective: str, requested_name: str | None) -> str:
    """Returns the name of the algorithm that runs `collective` on the one dimension of `scope`."""
    if requested_name is not None:
        return _fit_algorithm(scope, collective, scope.dimension, requested_name)
    if collective == "ALLTOALL":
        return "direct"
    name = _DEFAULT[scope.cluster.dims[scope.dimension].kind]
    return "ring" if algorithm_named(name).power_of_two and not _is_power_of_two(scope.members) else name


def _find_flat_algorithm(algorithms: tuple[str | None, ...]) -> tuple[int, str] | None:
    """Returns (dimension, name) of the algorithm that takes the group as a flat one, None if none is
    requested.

    Raises UsageError when another algorithm is requested as well.
    """
    wholes = [
        (index, name)
        for index, name in enumerate(algorithms)
        if name and algorithm_named(name).takes_flat_group
    ]
    if not wholes:
        return None
    first, whole = wholes[0]
    for index, name in enumerate(algorithms):
        if name not in (None, whole):
            raise UsageError(
                f"--algorithm {index}={name}: dimension {first} has {whole}, "
                "which runs on all dimensions at once; give one of the two"
            )
    return first, whole


def _fit_algorithm(scope: AlgorithmScope, collective: str, index: int, requested_name: str) -> str:
    """Returns the algorithm that is requested on dimension `index`, or its replacement."""
    algorithm: Algorithm = algorithm_named(requested_name)
    prefix = "one-" if algorithm.takes_flat_group else ""
    if collective == "ALLTOALL" and not algorithm.has_alltoall:
        return f"{prefix}direct"
    if algorithm.power_of_two and not _is_power_of_two(scope.members):
        where = "" if algorithm.takes_flat_group else f" on dimension {index}"
        raise UsageError(
            f"--algorithm {index}={requested_name}: a group has {scope.members} members{where}, "
            f"and {requested_name} needs a power of two; {prefix}ring or {prefix}direct fits"
        )
    return requested_name


def _is_power_of_two(members: int) -> bool:
    return members & (members - 1) == 0


class DimensionLoad(NamedTuple):
    """`bytes` that the busiest member sends over a dimension, and how long its port is busy with them, ns."""

    bytes: int
    busy_ns: int


def phase_loads(phase: Phase) -> list[PortLoad]:
    """Returns what the ports carry of a phase, one entry a dimension: all messages of its busiest member."""
    port_loads = algorithm_named(phase.algorithm).port_loads
    if port_loads is not None:
        return port_loads(phase.scope, phase.collective, phase.size)
    # The messages of the chain are all there are, on one dimension after another.
    return [PortLoad(index, size, 1) for index, size in chain_bytes(phase).items()]


def chain_bytes(phase: Phase) -> dict[int, int]:
    """Returns the bytes by dimension of the chain of messages that the slowest rank of a phase waits for."""
    carried: dict[int, int] = {}
    for times, route, size in phase.steps.messages:
        carried[route.dimension] = carried.get(route.dimension, 0) + times * size
    return carried


def load_ns(cluster: Cluster, load: PortLoad) -> int:
    """Returns how long a port is busy with a load, ns: floor(bytes / (bandwidth * links))."""
    numerator, denominator = decimal_ratio(cluster.dims[load.dimension].bandwidth)
    return load.size * denominator // (numerator * load.links)


def collective_loads(
    cluster: Cluster, shape: GroupShape, collective: str, size_bytes: int
) -> dict[int, DimensionLoad]:
    """Returns what one collective puts on each dimension; takes and raises what `collective_ns` does.

    Every chunk and phase is floored by itself. On a tree the busiest member is an inner one.
    """
    loads: dict[int, DimensionLoad] = {}
    if not size_bytes or not shape.dimensions:
        return loads
    if cluster.last_chunk_is_rest:
        chunks, size, rest = rest_bytes(cluster, shape, collective, size_bytes)
        parts = [(chunks - 1, size), (1, rest)]
    else:
        parts = [chunk_bytes(cluster, shape, collective, size_bytes)]
    for times, size in parts:
        if not times:
            continue
        for phase in phases(cluster, shape, collective, size):
            for load in phase_loads(phase):
                carried, busy_ns = loads.get(load.dimension, (0, 0))
                loads[load.dimension] = DimensionLoad(
                    carried + times * load.size, busy_ns + times * load_ns(cluster, load)
                )
    return loads


def transfer_loads(cluster: Cluster, shape: TransferShape, size_bytes: int) -> dict[int, DimensionLoad]:
    """Returns what one point-to-point transfer puts on each dimension in which its two ends differ.

    It moves at the least bandwidth among them, so that all its ports are busy equally long.
    """
    if not size_bytes or not shape:
        return {}
    slowest = min((index for index, _ in shape), key=lambda index: cluster.dims[index].bandwidth)
    busy_ns = load_ns(cluster, PortLoad(slowest, size_bytes, 1))
    return {index: DimensionLoad(size_bytes, busy_ns) for index, _ in shape}


# More messages of trees than this would take seconds: all ranks then wait for the last one of each phase.
MOST_MESSAGES = 100_000


def chunks_finish_ns(phases: Sequence[Phase], chunks: int, active_chunks: int) -> tuple[int, int]:
    """Returns (first, last): ns until the first and until the last rank has finished `chunks` equal chunks.

    phases: of one chunk, in order. active_chunks: how many a dimension serves at a time; the
    others wait in the order in which they came, at each rank for itself.
    """
    if not phases:
        return 0, 0
    trees = [phase for phase in phases if phase.is_tree]
    if chunks == 1 and len({phase.scope.dimension for phase in trees}) == len(trees):
        # On its way a rank meets each tree once, and all members of that tree start together.
        last = sum([phase.ns() for phase in phases])
        return (last + sum(phase.first_ns() - phase.ns() for phase in trees) if trees else last), last
    if len(phases) == 1 and not trees:
        last = -(-chunks // active_chunks) * phases[0].ns()
        return last, last
    return _Run(phases, chunks, active_chunks).run()


class _Run:
    """One run of all chunks. Time is ns; `rank` is a representative, 0 when all ranks have equal times."""

    def __init__(self, phases: Sequence[Phase], chunks: int, active_chunks: int) -> None:
        self.chunks = chunks
        self.active_chunks = active_chunks
        self.dimensions = [phase.scope.dimension for phase in phases]
        self.ns = [phase.ns() for phase in phases]
        self.trees: list[_Tree | None] = [None] * len(phases)
        self.ranks = 1
        self._set_up_trees(phases)
        self.events: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self.order = 0
        self.waiting: dict[tuple[int, int], deque[tuple[int, int]]] = {}
        self.running: dict[tuple[int, int], int] = {}
        self.done_ns = [0] * self.ranks

    def _set_up_trees(self, phases: Sequence[Phase]) -> None:
        """Gives each tree phase its tree, unless there are too many ranks to simulate."""
        sizes = {phase.scope.dimension: phase.scope.members for phase in phases if phase.is_tree}
        ranks = 1
        strides = {}
        for dimension, members in sizes.items():
            strides[dimension] = ranks
            ranks *= members
        planted = sum(phase.is_tree for phase in phases)
        if 2 * ranks * planted * self.chunks > MOST_MESSAGES:
            return
        self.ranks = ranks
        turns_by_dimension = dict.fromkeys(sizes, 0)
        for index, phase in enumerate(phases):
            if phase.is_tree:
                dimension = phase.scope.dimension
                # The trees of a dimension take turns, chunk by chunk and phase by phase.
                turns = (turns_by_dimension[dimension], self.dimensions.count(dimension))
                turns_by_dimension[dimension] += 1
                self.trees[index] = _Tree(self, index, phase, strides[dimension], turns)

    def run(self) -> tuple[int, int]:
        for rank in range(self.ranks):
            for chunk in range(self.chunks):
                self._queue(rank, chunk, 0)
            self._serve(0, rank, self.dimensions[0])
        while self.events:
            now, _, action, arguments = heappop(self.events)
            action(now, *arguments)
        return min(self.done_ns), max(self.done_ns)

    def after(self, time: int, action: Callable[..., None], *arguments: Any) -> None:
        """Schedules `action(time, *arguments)`; equal times run in the order of the calls."""
        self.order += 1
        heappush(self.events, (time, self.order, action, arguments))

    def _queue(self, rank: int, chunk: int, phase: int) -> None:
        self.waiting.setdefault((rank, self.dimensions[phase]), deque()).append((chunk, phase))

    def _serve(self, now: int, rank: int, dimension: int) -> None:
        """Starts what waits at a dimension of a rank, up to the limit of active chunks."""
        waiting = self.waiting[rank, dimension]
        while waiting and self.running.get((rank, dimension), 0) < self.active_chunks:
            chunk, phase = waiting.popleft()
            self.running[rank, dimension] = self.running.get((rank, dimension), 0) + 1
            tree = self.trees[phase]
            if tree is None:
                self.after(now + self.ns[phase], self.finish, rank, chunk, phase)
            else:
                tree.start(now, rank, chunk)

    def finish(self, now: int, rank: int, chunk: int, phase: int) -> None:
        """Ends one phase of a chunk on a rank: it queues for the next, and the dimension goes on."""
        dimension = self.dimensions[phase]
        self.running[rank, dimension] -= 1
        last = phase + 1 == len(self.dimensions)
        if last:
            self.done_ns[rank] = now
        else:
            self._queue(rank, chunk, phase + 1)
        self._serve(now, rank, dimension)
        if not last:
            self._serve(now, rank, self.dimensions[phase + 1])


class _Tree:
    """The double binary tree of one phase: in order over N = 2^k ranks, root last.

    Its twin is the mirror image. A rank's node in the tree goes from 1 to N, and its height
    is how often 2 divides it. Every receive costs the endpoint delay, and on an inner rank a
    reduction more (ASTRA-sim 2.0, DoubleBinaryTreeAllReduce::run).
    """

    def __init__(self, run: _Run, index: int, phase: Phase, stride: int, turns: tuple[int, int]) -> None:
        self.run = run
        self.index = index
        self.stride = stride
        self.turn, self.turns = turns
        self.members = phase.scope.members
        self.up_ns = level_ns(phase.scope, phase.size)
        self.delay_ns = phase.scope.cluster.endpoint_delay_ns
        self.reduced_ns = self.delay_ns + phase.scope.reduction_ns(phase.size)
        self.heard: Counter[tuple[int, int]] = Counter()
        self.started: set[tuple[int, int]] = set()

    def start(self, now: int, rank: int, chunk: int) -> None:
        """Begins the phase on a rank: a leaf sends, another one waits for its children."""
        if self._height(rank, chunk) == 0:
            self.run.after(now + self.delay_ns, self._send_up, rank, chunk)
            return
        self.started.add((rank, chunk))
        self._listen(now, rank, chunk)

    def _listen(self, now: int, rank: int, chunk: int) -> None:
        """Once all children are in: reduces what the last one sent, then sends up, or at the root down."""
        if (rank, chunk) in self.started and self.heard[rank, chunk] == len(self._children(rank, chunk)):
            is_root = self._node_of(rank, chunk) == self.members
            self.run.after(now + self.reduced_ns, self._send_down if is_root else self._send_up, rank, chunk)

    def _send_up(self, now: int, rank: int, chunk: int) -> None:
        node, height = self._node_of(rank, chunk), self._height(rank, chunk)
        parent = self._rank_of_node(rank, chunk, (node ^ 1 << height) | 2 << height)
        self.run.after(now + self.up_ns[height], self._hear, parent, chunk)

    def _hear(self, now: int, rank: int, chunk: int) -> None:
        self.heard[rank, chunk] += 1
        self._listen(now, rank, chunk)

    def _send_down(self, now: int, rank: int, chunk: int) -> None:
        for child in self._children(rank, chunk):
            self.run.after(now + self.up_ns[self._height(rank, chunk) - 1], self._come_down, child, chunk)
        self.run.finish(now, rank, chunk, self.index)

    def _come_down(self, now: int, rank: int, chunk: int) -> None:
        if self._height(rank, chunk) == 0:
            self.run.after(now + self.delay_ns, self.run.finish, rank, chunk, self.index)
        else:
            self.run.after(now + self.reduced_ns, self._send_down, rank, chunk)

    def _node_of(self, rank: int, chunk: int) -> int:
        position = rank // self.stride % self.members
        is_twin = (chunk * self.turns + self.turn) % 2
        return self.members - position if is_twin else position + 1

    def _rank_of_node(self, member: int, chunk: int, node: int) -> int:
        """Returns the rank at a node of the tree that `member` is in."""
        return member + (node - self._node_of(member, chunk)) * self._direction(chunk) * self.stride

    def _direction(self, chunk: int) -> int:
        return -1 if (chunk * self.turns + self.turn) % 2 else 1

    def _height(self, rank: int, chunk: int) -> int:
        node = self._node_of(rank, chunk)
        return (node & -node).bit_length() - 1

    def _children(self, rank: int, chunk: int) -> list[int]:
        node, height = self._node_of(rank, chunk), self._height(rank, chunk)
        if height == 0:
            return []
        offset = 1 << (height - 1)
        nodes = [node - offset] if node == self.members else [node - offset, node + offset]
        return [self._rank_of_node(rank, chunk, child) for child in nodes]
