"""Prices on an idle network: the `analytical` network model."""

from __future__ import annotations

from typing import NamedTuple

from simcore.cluster import Cluster, GroupShape, TransferShape
from simcore.collectives.chunks import chunks_done
from simcore.collectives.exact import floor_ns, scaled
from simcore.collectives.phases import chunk_bytes, phases
from simcore.collectives.queued import queued_ns, queued_phases


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
