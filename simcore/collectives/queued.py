"""One collective of dialect astra-sim-1 on an idle network: its chunks in the queues of the dimensions.

ASTRA-sim 1.0 cuts a collective into equal chunks and a rest; each walks its phases, and each
dimension serves a number of chunks at a time in the order in which they came.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from typing import NamedTuple

from simcore.cluster import Cluster, GroupShape
from simcore.collectives.exact import scaled
from simcore.collectives.phases import phases, rest_bytes


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
