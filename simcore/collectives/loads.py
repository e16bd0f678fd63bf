"""What a collective or a transfer puts on the ports of its ranks: bytes by dimension, and port time."""

from __future__ import annotations

from typing import NamedTuple

from simcore.cluster import Cluster, GroupShape, TransferShape
from simcore.collectives.algorithm import PortLoad
from simcore.collectives.algorithms import algorithm_named
from simcore.collectives.exact import decimal_ratio
from simcore.collectives.phases import Phase, chunk_bytes, phases, rest_bytes


class DimensionLoad(NamedTuple):
    """`bytes` that the busiest member sends over a dimension, and how long its port is busy with them, ns."""

    bytes: int
    busy_ns: int


def phase_loads(phase: Phase) -> list[PortLoad]:
    """What the ports carry of a phase, one entry a dimension: all messages of its busiest member."""
    port_loads = algorithm_named(phase.algorithm).port_loads
    if port_loads is not None:
        return port_loads(phase.leg, phase.collective, phase.size)
    # The messages of the chain are all there are, on one dimension after another.
    return [PortLoad(index, size, 1) for index, size in chain_bytes(phase).items()]


def chain_bytes(phase: Phase) -> dict[int, int]:
    """Bytes by dimension of the chain of messages that the slowest rank of a phase waits for."""
    carried: dict[int, int] = {}
    for times, route, size in phase.steps.messages:
        carried[route.dimension] = carried.get(route.dimension, 0) + times * size
    return carried


def load_ns(cluster: Cluster, load: PortLoad) -> int:
    """floor(bytes / (bandwidth * links)): how long a port is busy with a load, ns."""
    numerator, denominator = decimal_ratio(cluster.dims[load.dimension].bandwidth)
    return load.size * denominator // (numerator * load.links)


def collective_loads(
    cluster: Cluster, shape: GroupShape, collective: str, size_bytes: int
) -> dict[int, DimensionLoad]:
    """What one collective puts on each dimension; takes and raises what `collective_ns` does.

    Every chunk and phase is floored for itself. On a tree the busiest member is an inner one.
    """
    found: dict[int, DimensionLoad] = {}
    if not size_bytes or not shape.crossings:
        return found
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
                carried, busy_ns = found.get(load.dimension, (0, 0))
                found[load.dimension] = DimensionLoad(
                    carried + times * load.size, busy_ns + times * load_ns(cluster, load)
                )
    return found


def transfer_loads(cluster: Cluster, shape: TransferShape, size_bytes: int) -> dict[int, DimensionLoad]:
    """What one point-to-point transfer puts on each dimension in which its two ends differ.

    It moves at the least bandwidth among them, so that all its ports are busy equally long.
    """
    if not size_bytes or not shape:
        return {}
    slowest = min((index for index, _ in shape), key=lambda index: cluster.dims[index].bandwidth)
    busy_ns = load_ns(cluster, PortLoad(slowest, size_bytes, 1))
    return {index: DimensionLoad(size_bytes, busy_ns) for index, _ in shape}
