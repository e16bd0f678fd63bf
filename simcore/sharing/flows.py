"""What a collective or transfer puts on the ports: phases of fixed time and bytes."""

from __future__ import annotations

from typing import NamedTuple

from simcore.cluster import Cluster, GroupShape, TransferShape
from simcore.collectives import transfer_ns
from simcore.collectives.algorithms import algorithm_named
from simcore.collectives.exact import floor_ns
from simcore.collectives.loads import chain_bytes, load_ns, phase_loads
from simcore.collectives.phases import Phase, chunk_bytes, phases


class Flow(NamedTuple):
    """One phase: first fixed_ns that nothing slows down, then bytes on ports.

    work_ns: how long the bytes take at full speed. rate: bytes per ns then, each way, on the
    busiest port of a member. shares: (dimension, part of that rate) of every dimension used.
    place: the dimension whose queue of chunks serves the phase.
    """

    fixed_ns: int
    work_ns: int
    rate: float
    shares: tuple[tuple[int, float], ...]
    place: int = 0

    @property
    def whole_ns(self) -> int:
        """How long it takes at full speed, ns."""
        return self.fixed_ns + self.work_ns


class Transmission(NamedTuple):
    """One collective or transfer: `chunks` equal chunks that each walk `flows` in order.

    active_chunks: how many of them a dimension serves at a time. scales: factors on all
    durations, one after the other; the flows are those without.
    """

    flows: tuple[Flow, ...]
    chunks: int = 1
    active_chunks: int = 1
    scales: tuple[float, ...] = ()

    def scaled(self, scale: float) -> Transmission:
        """All durations times `scale`."""
        return self if scale == 1.0 else self._replace(scales=(*self.scales, scale))

    def clock(self, ns: int) -> int:
        """When it has come as far as it is after `ns` without scales, ns: rounded once a scale."""
        for scale in self.scales:
            ns = round(ns * scale)
        return ns

    def times(self, phase: int, since: int) -> tuple[int, int]:
        """(fixed ns, ns of the bytes at full speed) of a phase that begins `since` ns into it without scales.

        A phase lasts from one time of `clock` to another, so that what is rounded never adds up:
        alone, phases and chunks take together what the whole takes, scaled and rounded once.
        """
        flow = self.flows[phase]
        if not self.scales:
            return flow.fixed_ns, flow.work_ns
        whole = self.clock(since + flow.whole_ns) - self.clock(since)
        work = min(whole, self.clock(flow.work_ns))
        return whole - work, work


FREE = Transmission((Flow(0, 0, 0.0, ()),))


def collective_transmission(
    cluster: Cluster, shape: GroupShape, collective: str, size_bytes: int
) -> Transmission:
    """The phases of one collective; takes and raises what `collective_ns` of simcore.collectives does."""
    if not size_bytes or not shape.crossings:
        return FREE
    chunks, size = chunk_bytes(cluster, shape, collective, size_bytes)
    flows = tuple([_flow(cluster, phase) for phase in phases(cluster, shape, collective, size)])
    return Transmission(flows, chunks, cluster.active_chunks)


def transfer_transmission(cluster: Cluster, shape: TransferShape, size_bytes: int) -> Transmission:
    """A point-to-point transfer: its hops, then its bytes on each dimension in which the two ends differ."""
    if not size_bytes or not shape:
        return FREE
    rate = min(cluster.dims[index].bandwidth for index, _ in shape)
    whole = transfer_ns(cluster, shape, size_bytes)
    work = min(whole, floor_ns(size_bytes, rate))
    shares = tuple([(index, 1.0) for index, _ in shape])
    return Transmission((Flow(whole - work, work, rate, shares),))


def port_capacity(cluster: Cluster, dimension: int) -> float:
    """Bytes per ns of one NPU's port on a dimension, each way."""
    one = cluster.dims[dimension]
    return one.bandwidth * (one.size - 1) if one.kind == "fully-connected" else one.bandwidth


def _flow(cluster: Cluster, phase: Phase) -> Flow:
    """The chain of a phase's messages as fixed time and bytes.

    What the ports carry beyond the chain (the other messages of `direct`) takes port time; what
    the chain waits for beyond its own port (the levels of a tree) stays fixed time.
    """
    whole = phase.ns()
    carried = chain_bytes(phase)
    dims = cluster.dims
    chain_ns = min(whole, sum(floor_ns(size, dims[index].bandwidth) for index, size in carried.items()))
    loads = phase_loads(phase)
    if algorithm_named(phase.algorithm).port_loads is None:
        work = chain_ns
    else:
        work = max(load_ns(cluster, load) for load in loads)
    fixed_ns = whole - min(chain_ns, work)
    place = phase.leg.dimension
    if not work:
        return Flow(fixed_ns, 0, 0.0, (), place)
    rates = {}
    for index, size, links in loads:
        most = dims[index].bandwidth * links
        rates[index] = most if len(loads) == 1 else min(most, size / work)
    highest = max(rates.values())
    shares = tuple([(index, rate / highest) for index, rate in rates.items() if rate])
    return Flow(fixed_ns, work, highest, shares, place)
