"""Collectives of ranks as chunks that go through phases, each in a queue of its dimension (CHAKRA R4.3 to
R4.9).

Each rank starts its part by itself; a collective of several ranks is matched by the number of its chunk,
which every rank counts by itself. A phase runs on one dimension, or on all as one flat group.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from simcore.messages.clock import Clock, Fault, ForbiddenExit
from simcore.messages.machines import (
    ALLGATHER,
    ALLREDUCE,
    ALLTOALL,
    REDUCESCATTER,
    Direct,
    HalvingDoubling,
    Machine,
    Members,
    Ring,
    Tree,
)
from simcore.messages.network import Matching
from simcore.records import NamedTuple

# A smaller group's endpoint delay, whatever the system file states (R5.3).
GROUP_DELAY_NS = 10
# Stream numbers of group g begin at g times this; they match modulo TAGS.
STREAMS_OF_GROUP = 1_000_000
_TAGS = 500_000_000


class Rules(NamedTuple):
    """The rules of collectives, as the system file states them."""

    sizes: tuple[int, ...]
    """NPUs along each dimension."""
    algorithms: dict[str, tuple[str, ...]]
    """Kind of collective -> one name a dimension, those of wltui."""
    endpoint_delay_ns: int
    """What a rank pays before a send and after a receive."""
    memory_bandwidth: float | None
    """Bytes per ns, for reductions; None without reductions' time."""
    splits: int | None
    """The number of chunks of a collective, None where the file has none."""
    active_chunks: int
    """How many chunks a dimension runs at a time."""
    queues: int
    """The number of queues of a dimension."""
    baseline: bool
    """Whether an all-reduce is a whole all-reduce on each dimension."""


class Communicator(NamedTuple):
    """Ranks of a collective."""

    group_id: int
    """Decides its stream numbers, 0 for the default group."""
    ranks: tuple[int, ...] | None
    """In the order of the list; None for the whole world."""
    is_grid: bool = False
    """Whether each dimension runs over those ranks that share all other positions, where the group is such a
    grid; without it a group is one ring.
    """


class ChunkPhase(NamedTuple):
    """One phase of a chunk on one rank."""

    kind: str
    """The kind of collective."""
    algorithm: str
    """The name of the algorithm, as wltui has it."""
    ring: Members
    """The members of the phase."""
    size: int
    """Bytes that the rank puts in."""
    queue: tuple[int, int]
    """(dimension, queue)."""
    step: int
    """1 clockwise, -1 anticlockwise."""
    delay_ns: int
    """The endpoint delay."""
    last_root: bool = False
    """Which of the two trees it is: True for the one whose root is the last member."""


class Chunk:
    """A chunk of a collective on one rank."""

    __slots__ = ("_delay", "_next", "collective", "machine", "phases", "rank", "tag", "where")

    def __init__(self, collective: Collective, tag: int, phases: list[ChunkPhase]) -> None:
        self.collective = collective
        self.rank = collective.owner.rank
        self.tag = tag
        self.phases = phases
        self.where: tuple[int, int] | None = None
        self._next = 0
        self._delay = 0
        self.machine: Any = None

    def advance(self) -> None:
        """Leaves the present phase and goes to the queue of the next one."""
        owner = self.collective.owner
        left = self.where
        if self._next == len(self.phases):
            self.collective.chunk_ended()
            if left is not None:
                owner.leave(left)
            return
        self.where = self.phases[self._next].queue
        self._next += 1
        queue = owner.queue(self.where)
        queue.waiting.append(self)
        if left is not None:
            owner.leave(left)
        owner.serve(self.where)

    def begin(self) -> None:
        """Begins the phase: the queue serves it."""
        phase = self.phases[self._next - 1]
        owner = self.collective.owner
        self._delay = phase.delay_ns
        self.machine = owner.machine(self, phase)
        if self.machine is not None:
            self.machine.begin()

    def process(self, delay_reduce: int, machine: Machine | Tree) -> None:
        """Sends a token through the endpoint delay, then the reduction of so many bytes, -1 for none."""
        owner = self.collective.owner
        if delay_reduce < 0:
            owner.clock.schedule_own(self.rank, self._delay, _token, machine)
        else:
            owner.clock.schedule_own(self.rank, self._delay, self._reduce, (delay_reduce, machine))

    def _reduce(self, reducing: tuple[int, Machine | Tree]) -> None:
        size, machine = reducing
        owner = self.collective.owner
        owner.clock.schedule_own(self.rank, owner.reduction_ns(size), _token, machine)

    @property
    def clock(self) -> Clock:
        """The clock of the run."""
        return self.collective.owner.clock

    def delays(self, size: int) -> tuple[int, int]:
        """Returns (endpoint delay of the phase, reduction of so many bytes), ns."""
        return self._delay, self.collective.owner.reduction_ns(size)

    def ended(self) -> None:
        """Ends the phase on this rank."""
        self.advance()


def _token(machine: Any) -> None:
    machine.token()


class Collective:
    """A collective on one rank. over: called when its last chunk has ended."""

    __slots__ = ("chunks", "left", "over", "owner")

    def __init__(self, owner: RankCollectives, chunks: int, over: Callable[[], None]) -> None:
        self.owner = owner
        self.left = chunks
        self.over = over

    def chunk_ended(self) -> None:
        self.left -= 1
        if not self.left:
            self.over()


def split_into_chunks(size: int, kind: str, rules: Rules, rank: int) -> tuple[int, int]:
    """Returns (bytes of a chunk, number of chunks) of a collective (R4.3): the last one has full
    size, too.
    """
    if rules.splits is None:
        raise ForbiddenExit(
            rank, None, "the system file has no preferred-dataset-splits (R4.11)", "divides by zero"
        )
    npus = 1
    for members in rules.sizes:
        npus *= members
    chunk = size // rules.splits
    if chunk < npus and kind != ALLGATHER:
        chunk = npus
        size = rules.splits * chunk
    return chunk, -(-size // chunk) if chunk else 0


class _Queue:
    __slots__ = ("running", "waiting")

    def __init__(self) -> None:
        self.running = 0
        self.waiting: deque[Chunk] = deque()


class RankCollectives:
    """The queues and counters of one rank, for the whole run."""

    def __init__(self, rank: int, clock: Clock, network: Matching, rules: Rules) -> None:
        self.rank = rank
        self.clock = clock
        self.network = network
        self.rules = rules
        self._limit = -(-rules.active_chunks // rules.queues)
        self._queues: dict[tuple[int, int], _Queue] = {}
        # By dimension and way of taking a queue, the turn.
        self._turns: dict[tuple[int, str], int] = {}
        self._trees: dict[tuple[str, int], int] = {}
        self._streams: dict[int, int] = {}
        # Why a collective of the rank never ends.
        self.never = ""

    def start(
        self, kind: str, size: int, group: Communicator, involved: Sequence[bool], over: Callable[[], None]
    ) -> str | None:
        """Starts this rank's part; `over` is called when it has ended here.

        Returns why it never will, None when it may.
        """
        rules = self.rules
        if group.ranks is None:
            if kind not in rules.algorithms:
                raise Fault(self.rank, None, f"the system file has no algorithm for {kind} (R4.11)")
            rings = _world_rings(self.rank, rules, kind)
            delay = rules.endpoint_delay_ns
            algorithms = rules.algorithms.get(kind, ())
        elif group.is_grid and (grid := _grid_rings(self.rank, group.ranks, rules)) is not None:
            rings, delay = grid, rules.endpoint_delay_ns
            algorithms = tuple(
                "ring"
                if name == "halving-doubling" and len(members.ranks) & (len(members.ranks) - 1)
                else name
                for name, members in zip(rules.algorithms[kind], rings, strict=True)
            )
        else:
            names = rules.algorithms.get(kind, ())
            algorithms = names if len(names) == 1 else ("ring",)
            rings = [Members(group.ranks, group.ranks.index(self.rank), True)]
            delay = GROUP_DELAY_NS
            involved = (True,)
        chunk, count = split_into_chunks(size, kind, rules, self.rank)
        taking_part = [
            (dimension, ring, name)
            for dimension, (ring, name) in enumerate(zip(rings, algorithms, strict=False))
            if len(ring.ranks) > 1 and (dimension >= len(involved) or involved[dimension])
        ]
        if chunk == 0:
            if size:
                return "an all-gather of fewer bytes than preferred-dataset-splits loops without end"
            return "an all-gather of 0 bytes never ends"
        if not taking_part:
            return "no dimension is left to the collective"
        collective = Collective(self, count, over)
        for _ in range(count):
            stream_id = self._streams.get(group.group_id, group.group_id * STREAMS_OF_GROUP)
            self._streams[group.group_id] = stream_id + 1
            phases = self._phases(kind, chunk, taking_part, delay)
            Chunk(collective, stream_id % _TAGS, phases).advance()
        return None

    # -- phases ------------------------------------------------------------------------

    def _phases(
        self, kind: str, size: int, parts: list[tuple[int, Members, str]], delay: int
    ) -> list[ChunkPhase]:
        steps: list[tuple[str, tuple[int, Members, str], str]]
        if kind == ALLREDUCE and not self.rules.baseline:
            steps = [(REDUCESCATTER, part, "out") for part in parts[:-1]]
            steps.append((ALLREDUCE, parts[-1], "out"))
            steps += [(ALLGATHER, part, "back") for part in reversed(parts[:-1])]
        elif kind == ALLGATHER:
            steps = [(kind, part, "turn") for part in reversed(parts)]
        else:
            steps = [(kind, part, "turn") for part in parts]
        phases = []
        for phase_kind, (dimension, ring, name), way in steps:
            queue, step = self._take(dimension, way)
            if name == "double-binary-tree":
                turn = self._trees.get((kind, dimension), 0)
                self._trees[kind, dimension] = turn + 1
                phases.append(
                    ChunkPhase(phase_kind, name, ring, size, (dimension, queue), step, delay, turn % 2 == 0)
                )
                continue
            phases.append(ChunkPhase(phase_kind, name, ring, size, (dimension, queue), step, delay))
            if phase_kind == REDUCESCATTER:
                size //= len(ring.ranks)
            elif phase_kind == ALLGATHER:
                size *= len(ring.ranks)
        return phases

    def _take(self, dimension: int, way: str) -> tuple[int, int]:
        """Returns (queue, direction) of the next phase on a dimension."""
        queues = self.rules.queues
        half = queues // 2
        first, last = {"turn": (0, queues), "out": (0, max(half, 1)), "back": (half, queues)}[way]
        turn = self._turns.get((dimension, way), 0)
        self._turns[dimension, way] = (turn + 1) % (last - first)
        queue = first + turn
        if way == "turn":
            return queue, -1 if queues > 1 and queue >= half else 1
        return queue, 1 if way == "out" else -1

    def machine(self, chunk: Chunk, phase: ChunkPhase) -> Machine | Tree | None:
        """Returns the machine of a phase; None for one that never ends."""
        name = phase.algorithm.removeprefix("one-")
        ring = phase.ring
        if name == "ring":
            return Ring(chunk, self.network, phase.kind, ring, phase.size, phase.step)
        if name.startswith("direct"):
            window = int(name[6:]) if name[6:] else None
            return Direct(chunk, self.network, phase.kind, ring, phase.size, phase.step, window)
        if len(ring.ranks) & (len(ring.ranks) - 1):
            self.never = f"{name} over {len(ring.ranks)} ranks, no power of two, never ends"
            return None
        if name == "halving-doubling":
            if phase.kind == ALLTOALL:
                raise Fault(self.rank, None, "halving-doubling has no all-to-all", "is not known to end")
            return HalvingDoubling(chunk, self.network, phase.kind, ring, phase.size)
        return Tree(chunk, self.network, ring, phase.size, phase.last_root)

    def reduction_ns(self, size: int) -> int:
        """Returns the ns of a reduction: two operands read, one result written."""
        bandwidth = self.rules.memory_bandwidth
        return 3 * int(size / (bandwidth * 1e9) * 1e9) if bandwidth else 0

    # -- queues ------------------------------------------------------------------------

    def queue(self, where: tuple[int, int]) -> _Queue:
        """Returns a queue of a dimension."""
        queue = self._queues.get(where)
        if queue is None:
            queue = self._queues[where] = _Queue()
        return queue

    def leave(self, where: tuple[int, int]) -> None:
        """Ends a chunk's phase in a queue: the next one there begins."""
        self._queues[where].running -= 1
        self.serve(where)

    def serve(self, where: tuple[int, int]) -> None:
        """Begins waiting chunks of a queue up to its limit."""
        queue = self._queues[where]
        while queue.waiting and queue.running < self._limit:
            queue.running += 1
            queue.waiting.popleft().begin()


def _world_rings(rank: int, rules: Rules, kind: str) -> list[Members]:
    """Returns the rank's ring on each dimension, or one over all ranks for an algorithm `one-...`."""
    names = rules.algorithms.get(kind, ())
    rings: list[Members] = []
    stride = 1
    for size, name in zip(rules.sizes, names, strict=False):
        if name.startswith("one-"):
            world = 1
            for members in rules.sizes:
                world *= members
            rings.append(Members(tuple(range(world)), rank))
            break
        position = rank // stride % size
        first = rank - position * stride
        rings.append(Members(tuple(range(first, first + size * stride, stride)), position))
        stride *= size
    return rings


def _grid_rings(rank: int, ranks: tuple[int, ...], rules: Rules) -> list[Members] | None:
    """Returns a rank's ring on each dimension, for a group that is a product of one set of positions each.

    None for any other group.
    """
    rings: list[Members] = []
    stride, cells = 1, 1
    there = set(ranks)
    for size in rules.sizes:
        mine = rank // stride % size
        line = [rank + (index - mine) * stride for index in range(size)]
        members = tuple(member for member in line if member in there)
        cells *= len({rank // stride % size for rank in ranks})
        rings.append(Members(members, members.index(rank)))
        stride *= size
    product = 1
    for ring in rings:
        product *= len(ring.ranks)
    return rings if cells == product == len(ranks) else None
