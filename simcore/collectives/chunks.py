"""The chunks of one collective on an idle network: each walks the phases, dimensions serve them in turn.

Ranks are simulated only as far as they differ. All ranks of a ring, of direct and of halving-doubling
are done together, so one stands for all; on a double binary tree ranks differ by their
place in it, so there is one for each place (and for each pair of places with two trees).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import Any

from simcore.collectives.algorithms.double_binary_tree import level_ns
from simcore.collectives.phases import Phase

# More messages of trees than that would take seconds: all ranks then wait for the last one of each phase.
MOST_MESSAGES = 100_000


def chunks_done(phases: Sequence[Phase], chunks: int, active_chunks: int) -> tuple[int, int]:
    """(first, last): ns until the first and until the last rank has finished `chunks` equal chunks.

    phases: of one chunk, in order. active_chunks: how many a dimension serves at a time; the
    others wait in the order in which they came, at each rank for itself.
    """
    if not phases:
        return 0, 0
    trees = [phase for phase in phases if phase.is_tree]
    if chunks == 1 and len({phase.leg.dimension for phase in trees}) == len(trees):
        # On its way a rank meets each tree once, with all members of that tree starting together.
        last = sum([phase.ns() for phase in phases])
        return (last + sum(phase.first_ns() - phase.ns() for phase in trees) if trees else last), last
    if len(phases) == 1 and not trees:
        last = -(-chunks // active_chunks) * phases[0].ns()
        return last, last
    return _Run(phases, chunks, active_chunks).done()


class _Run:
    """One run of all chunks. Time is ns; `rank` is a representative, 0 when all ranks are alike."""

    def __init__(self, phases: Sequence[Phase], chunks: int, active_chunks: int) -> None:
        self.chunks = chunks
        self.active_chunks = active_chunks
        self.places = [phase.leg.dimension for phase in phases]
        self.ns = [phase.ns() for phase in phases]
        self.trees: list[_Tree | None] = [None] * len(phases)
        self.ranks = 1
        self._plant(phases)
        self.events: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self.order = 0
        self.waiting: dict[tuple[int, int], deque[tuple[int, int]]] = {}
        self.running: dict[tuple[int, int], int] = {}
        self.done_ns = [0] * self.ranks

    def _plant(self, phases: Sequence[Phase]) -> None:
        """Give each tree phase its tree, unless there are too many ranks to simulate."""
        sizes = {phase.leg.dimension: phase.leg.members for phase in phases if phase.is_tree}
        ranks = 1
        strides = {}
        for dimension, members in sizes.items():
            strides[dimension] = ranks
            ranks *= members
        planted = sum(phase.is_tree for phase in phases)
        if 2 * ranks * planted * self.chunks > MOST_MESSAGES:
            return
        self.ranks = ranks
        seen = dict.fromkeys(sizes, 0)
        for index, phase in enumerate(phases):
            if phase.is_tree:
                dimension = phase.leg.dimension
                # The trees of a dimension take turns, chunk by chunk and phase by phase.
                turns = (seen[dimension], self.places.count(dimension))
                seen[dimension] += 1
                self.trees[index] = _Tree(self, index, phase, strides[dimension], turns)

    def done(self) -> tuple[int, int]:
        for rank in range(self.ranks):
            for chunk in range(self.chunks):
                self._queue(rank, chunk, 0)
            self._serve(0, rank, self.places[0])
        while self.events:
            now, _, action, arguments = heappop(self.events)
            action(now, *arguments)
        return min(self.done_ns), max(self.done_ns)

    def after(self, time: int, action: Callable[..., None], *arguments: Any) -> None:
        """Have `action(time, *arguments)` done at `time`; equal times in the order of the calls."""
        self.order += 1
        heappush(self.events, (time, self.order, action, arguments))

    def _queue(self, rank: int, chunk: int, phase: int) -> None:
        self.waiting.setdefault((rank, self.places[phase]), deque()).append((chunk, phase))

    def _serve(self, now: int, rank: int, dimension: int) -> None:
        """Start what waits at a dimension of a rank, as far as active chunks allow."""
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
        """A rank is done with one phase of a chunk: it queues for the next, and the dimension goes on."""
        dimension = self.places[phase]
        self.running[rank, dimension] -= 1
        last = phase + 1 == len(self.places)
        if last:
            self.done_ns[rank] = now
        else:
            self._queue(rank, chunk, phase + 1)
        self._serve(now, rank, dimension)
        if not last:
            self._serve(now, rank, self.places[phase + 1])


class _Tree:
    """The double binary tree of one phase: in order over N = 2^k ranks, root last.

    Its twin is the mirror image. A rank's number in the tree goes from 1 to N, and its height
    is how often 2 divides it. Every receive costs the endpoint delay, and an inner rank a
    reduction more (ASTRA-sim 2.0, DoubleBinaryTreeAllReduce::run).
    """

    def __init__(self, run: _Run, index: int, phase: Phase, stride: int, turns: tuple[int, int]) -> None:
        self.run = run
        self.index = index
        self.stride = stride
        self.turn, self.turns = turns
        self.members = phase.leg.members
        self.up_ns = level_ns(phase.leg, phase.size)
        self.delay_ns = phase.leg.cluster.endpoint_delay_ns
        self.reduced_ns = self.delay_ns + phase.leg.reduction_ns(phase.size)
        self.heard: Counter[tuple[int, int]] = Counter()
        self.started: set[tuple[int, int]] = set()

    def start(self, now: int, rank: int, chunk: int) -> None:
        """A rank begins: a leaf sends, another one waits for its children."""
        if self._height(rank, chunk) == 0:
            self.run.after(now + self.delay_ns, self._send_up, rank, chunk)
            return
        self.started.add((rank, chunk))
        self._listen(now, rank, chunk)

    def _listen(self, now: int, rank: int, chunk: int) -> None:
        """All children are in: reduce what the last one sent, then up, or at the root down."""
        if (rank, chunk) in self.started and self.heard[rank, chunk] == len(self._children(rank, chunk)):
            is_root = self._number(rank, chunk) == self.members
            self.run.after(now + self.reduced_ns, self._send_down if is_root else self._send_up, rank, chunk)

    def _send_up(self, now: int, rank: int, chunk: int) -> None:
        number, height = self._number(rank, chunk), self._height(rank, chunk)
        parent = self._rank(rank, chunk, (number ^ 1 << height) | 2 << height)
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

    def _number(self, rank: int, chunk: int) -> int:
        place = rank // self.stride % self.members
        is_twin = (chunk * self.turns + self.turn) % 2
        return self.members - place if is_twin else place + 1

    def _rank(self, near: int, chunk: int, number: int) -> int:
        """The rank with a number in the tree that `near` is in."""
        return near + (number - self._number(near, chunk)) * self._direction(chunk) * self.stride

    def _direction(self, chunk: int) -> int:
        return -1 if (chunk * self.turns + self.turn) % 2 else 1

    def _height(self, rank: int, chunk: int) -> int:
        number = self._number(rank, chunk)
        return (number & -number).bit_length() - 1

    def _children(self, rank: int, chunk: int) -> list[int]:
        number, height = self._number(rank, chunk), self._height(rank, chunk)
        if height == 0:
            return []
        beside = 1 << (height - 1)
        numbers = [number - beside] if number == self.members else [number - beside, number + beside]
        return [self._rank(rank, chunk, child) for child in numbers]
