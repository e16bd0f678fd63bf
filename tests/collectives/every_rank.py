"""One collective simulated message by message on every rank: what prices and chunks are checked against.

Slow and plain: each rank runs a small program for each chunk and phase; a dimension of a rank serves
a given number of chunks at a time, in the order in which they came.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from fractions import Fraction
from heapq import heappop, heappush
from math import floor
from typing import Any

from simcore.cluster import Cluster

# What a program asks for: ("wait", ns), ("send", rank, bytes) or ("receive", rank).
Program = Iterator[tuple[Any, ...]]


class EveryRank:
    """All ranks of a cluster run `chunks` chunks of `size` bytes (a shard for an all-gather)."""

    def __init__(self, cluster: Cluster, collective: str, size: int, chunks: int) -> None:
        self.cluster = cluster
        self.chunks = chunks
        self.phases = list(phases(cluster, collective, size))
        self.events: list[tuple[int, int, Any]] = []
        self.order = 0
        self.queues: dict[Any, deque[Any]] = defaultdict(deque)
        self.running: dict[Any, int] = defaultdict(int)
        self.mail: dict[Any, int] = defaultdict(int)
        self.expecting: dict[Any, Program] = {}
        self.trees: dict[int, int] = defaultdict(int)
        self.turns: dict[tuple[int, int], int] = {}
        for chunk in range(chunks):
            for index, (dimension, name, *_) in enumerate(self.phases):
                if name == "double-binary-tree":
                    self.turns[chunk, index] = self.trees[dimension] % 2
                    self.trees[dimension] += 1
        self.done = [0] * cluster.npus

    def run(self) -> tuple[int, int]:
        """(first, last): when the first and the last rank are done, ns."""
        for rank in range(self.cluster.npus):
            for chunk in range(self.chunks):
                self.queues[rank, self.phases[0][0]].append((chunk, 0))
            self.serve(0, rank, self.phases[0][0])
        while self.events:
            now, _, action = heappop(self.events)
            action(now)
        return min(self.done), max(self.done)

    def at(self, time: int, action: Any) -> None:
        self.order += 1
        heappush(self.events, (time, self.order, action))

    def serve(self, now: int, rank: int, dimension: int) -> None:
        queue = self.queues[rank, dimension]
        while queue and self.running[rank, dimension] < self.cluster.active_chunks:
            self.running[rank, dimension] += 1
            chunk, index = queue.popleft()
            self.go_on(now, (rank, chunk, index), self.program(rank, chunk, index))

    def go_on(self, now: int, where: tuple[int, int, int], program: Program) -> None:
        """Run a program until it waits."""
        rank, chunk, index = where
        for what, *words in program:
            if what == "wait":
                self.at(now + words[0], lambda time: self.go_on(time, where, program))
                return
            other = (words[0], rank, chunk, index) if what == "send" else (rank, words[0], chunk, index)
            if what == "send":
                self.at(
                    now + self.message_ns(rank, *words, index), lambda time, to=other: self.arrive(time, to)
                )
            elif self.mail[other]:
                self.mail[other] -= 1
            else:
                self.expecting[other] = program
                return
        self.finish(now, where)

    def arrive(self, now: int, to: tuple[int, int, int, int]) -> None:
        if to in self.expecting:
            rank, _, chunk, index = to
            self.go_on(now, (rank, chunk, index), self.expecting.pop(to))
        else:
            self.mail[to] += 1

    def finish(self, now: int, where: tuple[int, int, int]) -> None:
        rank, chunk, index = where
        dimension = self.phases[index][0]
        self.running[rank, dimension] -= 1
        self.done[rank] = now
        following = index + 1
        if following < len(self.phases):
            self.queues[rank, self.phases[following][0]].append((chunk, following))
        self.serve(now, rank, dimension)
        if following < len(self.phases):
            self.serve(now, rank, self.phases[following][0])

    def message_ns(self, rank: int, other: int, size: int, index: int) -> int:
        dimension = self.cluster.dims[self.phases[index][0]]
        here, there = (self.cluster.coordinates(one)[self.phases[index][0]] for one in (rank, other))
        apart = abs(here - there)
        hops = {"switch": 2, "fully-connected": 1, "ring": min(apart, dimension.size - apart)}[dimension.kind]
        return floor(hops * Fraction(repr(dimension.latency_ns)) + size / Fraction(repr(dimension.bandwidth)))

    def program(self, rank: int, chunk: int, index: int) -> Program:
        """What a rank does in a phase of a chunk."""
        dimension, name, collective, size = self.phases[index]
        stride = 1
        for inner in self.cluster.dims[:dimension]:
            stride *= inner.size
        place = self.cluster.coordinates(rank)[dimension]
        members = [rank + (other - place) * stride for other in range(self.cluster.dims[dimension].size)]
        delay = self.cluster.endpoint_delay_ns

        def reducing(received: int) -> int:
            return delay + 3 * floor(received / Fraction(repr(self.cluster.local_mem_bandwidth)))

        if name == "double-binary-tree":
            order = list(reversed(members)) if self.turns[chunk, index] else members
            return tree(order, rank, size, delay, reducing(size))
        reduces = collective in ("ALLREDUCE", "REDUCESCATTER")
        if name == "halving-doubling":
            return halving_doubling(members, place, collective, size, delay, reducing)
        packet = size if collective == "ALLGATHER" else size // len(members)
        cost = reducing(packet) if reduces else delay
        rounds = 2 if collective == "ALLREDUCE" else 1
        if name == "direct":
            return direct(members, place, packet, rounds, delay, cost)
        steps = (
            len(members) * (len(members) - 1) // 2
            if collective == "ALLTOALL"
            else rounds * (len(members) - 1)
        )
        return ring(members, place, packet, steps, delay, cost)


def phases(cluster: Cluster, collective: str, size: int) -> Iterator[tuple[int, str, str, int]]:
    """(dimension, algorithm, collective, bytes) of each phase, inner dimension 0 first."""
    crossed = [index for index, dimension in enumerate(cluster.dims) if dimension.size > 1]
    plan = [(collective, index) for index in crossed]
    if collective == "ALLGATHER":
        plan.reverse()
    elif collective == "ALLREDUCE" and cluster.optimization == "localBWAware":
        plan = [("REDUCESCATTER", index) for index in crossed[:-1]]
        plan += [("ALLREDUCE", crossed[-1])] + [("ALLGATHER", index) for _, index in reversed(plan)]
    for part, index in plan:
        name = cluster.algorithms[index]
        assert name is not None
        yield index, name, part, size
        if name != "double-binary-tree" and part == "REDUCESCATTER":
            size //= cluster.dims[index].size
        elif name != "double-binary-tree" and part == "ALLGATHER":
            size *= cluster.dims[index].size


def ring(members: list[int], place: int, packet: int, steps: int, delay: int, cost: int) -> Program:
    yield "wait", delay
    for step in range(steps):
        yield "send", members[(place + 1) % len(members)], packet
        yield "receive", members[place - 1]
        yield "wait", cost if step < len(members) - 1 else delay


def direct(members: list[int], place: int, packet: int, rounds: int, delay: int, cost: int) -> Program:
    others = [members[(place + step) % len(members)] for step in range(1, len(members))]
    yield "wait", delay
    for number in range(rounds):
        for other in others:
            yield "send", other, packet
        for other in others:
            yield "receive", other
        yield "wait", cost if number == 0 else delay


def halving_doubling(
    members: list[int], place: int, collective: str, size: int, delay: int, reducing: Any
) -> Program:
    count = len(members).bit_length() - 1
    halving = [(1 << step, size >> (step + 1)) for step in range(count)]
    rounds = {
        "ALLREDUCE": halving + halving[::-1],
        "REDUCESCATTER": halving,
        "ALLGATHER": [(len(members) >> (step + 1), size << step) for step in range(count)],
    }[collective]
    yield "wait", delay
    for step, (distance, amount) in enumerate(rounds):
        yield "send", members[place ^ distance], amount
        yield "receive", members[place ^ distance]
        is_reduced = collective != "ALLGATHER" and step < count - 1
        yield "wait", reducing(amount // 2) if is_reduced else delay


def tree(order: list[int], rank: int, size: int, delay: int, cost: int) -> Program:
    """In order: the root is the last, its one child the middle of the others, and so on."""
    parents: dict[int, int] = {}
    children: dict[int, list[int]] = defaultdict(list)

    def plant(part: list[int], parent: int) -> None:
        if part:
            middle = part[len(part) // 2]
            parents[middle] = parent
            children[parent].append(middle)
            plant(part[: len(part) // 2], middle)
            plant(part[len(part) // 2 + 1 :], middle)

    plant(order[:-1], order[-1])
    if not children[rank]:
        yield "wait", delay
    for child in children[rank]:
        yield "receive", child
    if children[rank]:
        yield "wait", cost
    if rank in parents:
        yield "send", parents[rank], size
        yield "receive", parents[rank]
        yield "wait", cost if children[rank] else delay
    for child in children[rank]:
        yield "send", child, size
