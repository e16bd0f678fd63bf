"""Prices on an idle network: the `analytical` network model."""

from __future__ import annotations

from simcore.cluster import Cluster, GroupShape, TransferShape
from simcore.collectives.exact import floor_ns
from simcore.collectives.phases import phases


def collective_ns(cluster: Cluster, shape: GroupShape, collective: str, size_bytes: int) -> int:
    """How long one collective takes alone on an idle network, ns, until its last rank is done.

    collective: ALLREDUCE, ALLGATHER, REDUCESCATTER or ALLTOALL. size_bytes: the whole buffer
    (the gathered result, the input of a reduce-scatter, one rank's buffer otherwise); 0 bytes
    and a group of one are free. Formulas: ASTRA-sim 2.0, analytical backend, one chunk. Raises
    UsageError when an algorithm that was asked for does not fit the group.
    """
    return sum([phase.ns() for phase in phases(cluster, shape, collective, size_bytes)])


def transfer_ns(cluster: Cluster, shape: TransferShape, size_bytes: int) -> int:
    """How long one point-to-point transfer of `size_bytes` takes alone on an idle network, ns.

    floor(sum of hops * latency + size / least bandwidth) over the dimensions in which the two
    ends differ, without endpoint delay; 0 bytes and a transfer to oneself are free.
    """
    if not size_bytes or not shape:
        return 0
    bandwidth = min(cluster.dims[index].bandwidth for index, _ in shape)
    return floor_ns(size_bytes, bandwidth, [(hops, cluster.dims[index].latency_ns) for index, hops in shape])
