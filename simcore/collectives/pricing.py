"""Prices on an idle network: the `analytical` network model.

One collective of dialect astra-sim-1 on an idle network: its chunks in the queues of the dimensions.

ASTRA-sim 1.0 cuts a collective into equal chunks and a rest; each walks its phases, and each
dimension serves a number of chunks at a time in the order in which they came.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from typing import NamedTuple

from simcore.cluster import Cluster, GroupShape, TransferShape
from simcore.collectives.chunks import chunks_done
from simcore.collectives.exact import floor_ns, scaled
from simcore.collectives.phases import chunk_bytes, phases, rest_bytes


class QueuedPhase(NamedTuple):
    """One phase of a chunk: the dimension in whose queue it waits, and its ns once it is served."""

    dimension: int
    ns: int


Walk = tuple[QueuedPhase, ...]


def queued_phases(
    cluster: Cluster, shape: GroupShape, collective: str, size_bytes: int, scale: float = 1.0
) -> tuple[int, Walk, Walk]:
    """(chunks, phases of each, phases of the last) of one collective of `size_bytes` in all.

    scale: a factor on each phase, each rounded half to even.
    """
    chunks, size, rest = rest_bytes(cluster, shape, collective, size_bytes)
    walks = [
        tuple(
            QueuedPhase(phase.leg.dimension, scaled(phase.ns(), scale))
            for phase in phases(cluster, shape, collective, part)
        )
        for part in ((size,) if rest == size else (size, rest))
    ]
    return chunks, walks[0], walks[-1]


def queued_ns(chunks: int, each: Walk, last: Walk, active_chunks: int) -> int:
    """How long the chunks take when nothing else is in the queues, ns."""
    if not each:
        return 0
    if chunks == 1 or (len(each) == 1 and active_chunks == 1):
        return (chunks - 1) * each[0].ns + sum(phase.ns for phase in last)
    waiting: dict[int, deque[tuple[int, int]]] = {phase.dimension: deque() for phase in each}
    serving = dict.fromkeys(waiting, 0)
    events: list[tuple[int, int, int]] = []
    waiting[each[0].dimension].extend((chunk, 0) for chunk in range(chunks))
    now = 0
    while True:
        for dimension, queue in waiting.items():
            while queue and serving[dimension] < active_chunks:
                chunk, place = queue.popleft()
                serving[dimension] += 1
                walk = last if chunk == chunks - 1 else each
                heappush(events, (now + walk[place].ns, chunk, place))
        if not events:
            return now
        now = events[0][0]
        while events and events[0][0] == now:
            _, chunk, place = heappop(events)
            serving[each[place].dimension] -= 1
            if place + 1 < len(each):
                waiting[each[place + 1].dimension].append((chunk, place + 1))


class Done(NamedTuple):
    """When the first and the last rank of a collective are done, ns after all have started it."""

    first_ns: int
    last_ns: int


def collective_ns(
    cluster: Cluster, shape: GroupShape, collective: str, size_bytes: int, scale: float = 1.0
) -> int:
    """How long one collective takes alone on an idle network, ns, until its last rank is done.

    collective: ALLREDUCE, ALLGATHER, REDUCESCATTER or ALLTOALL. size_bytes: the whole buffer
    (the gathered result, the input of a reduce-scatter, one rank's buffer otherwise); 0 bytes
    and a group of one are free. scale: a factor on it, rounded where a run rounds it: once, in
    the queues of dialect astra-sim-1 for each phase. Formulas: ASTRA-sim 2.0, analytical backend.
    Raises UsageError when an algorithm that was asked for does not fit the group.
    """
    return collective_done(cluster, shape, collective, size_bytes, scale).last_ns


def collective_done(
    cluster: Cluster, shape: GroupShape, collective: str, size_bytes: int, scale: float = 1.0
) -> Done:
    """When the first and the last rank of one collective are done. Takes and raises as `collective_ns`."""
    if not size_bytes:
        return Done(0, 0)
    if cluster.last_chunk_is_rest:
        chunks, each, last = queued_phases(cluster, shape, collective, size_bytes, scale)
        last_ns = queued_ns(chunks, each, last, cluster.active_chunks)
        return Done(last_ns, last_ns)
    chunks, size = chunk_bytes(cluster, shape, collective, size_bytes)
    done = chunks_done(phases(cluster, shape, collective, size), chunks, cluster.active_chunks)
    return Done(*(scaled(ns, scale) for ns in done))


def transfer_ns(cluster: Cluster, shape: TransferShape, size_bytes: int) -> int:
    """How long one point-to-point transfer of `size_bytes` takes alone on an idle network, ns.

    floor(sum of hops * latency + size / least bandwidth) over the dimensions in which the two
    ends differ, without endpoint delay; 0 bytes and a transfer to oneself are free.
    """
    if not size_bytes or not shape:
        return 0
    bandwidth = min(cluster.dims[index].bandwidth for index, _ in shape)
    return floor_ns(size_bytes, bandwidth, [(hops, cluster.dims[index].latency_ns) for index, hops in shape])
