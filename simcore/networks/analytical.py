"""`analytical`: closed forms per dimension and algorithm, unaware of other traffic (ASTRA-sim 2.0)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from simcore.cluster import Cluster, GroupShape, TransferShape
from simcore.collectives import collective_ns, explain_collective, transfer_ns
from simcore.folding.classes import PortFactors
from simcore.layout import Layout
from simcore.parameters import Parameters
from simcore.workload.model import GroupKind


@dataclass(slots=True)
class Analytical:
    """The network of one run; satisfies `Network`."""

    cluster: Cluster
    _slowed: dict[PortFactors, Cluster] = field(default_factory=dict)

    def collective_ns(
        self, group: GroupKind, shape: GroupShape, ports: PortFactors, collective: str, size: int
    ) -> int:
        return collective_ns(self.slowed(ports), shape, collective, size)

    def transfer_ns(self, shape: TransferShape, ports: PortFactors, size: int) -> int:
        return transfer_ns(self.slowed(ports), shape, size)

    def explain_collective(self, group: GroupKind, shape: GroupShape, collective: str, size: int) -> str:
        return explain_collective(self.cluster, shape, collective, size)

    def slowed(self, ports: PortFactors) -> Cluster:
        """The cluster with each dimension at the bandwidth of its slowest port."""
        if not ports:
            return self.cluster
        if ports not in self._slowed:
            dims = zip(self.cluster.dims, ports, strict=True)
            slowed = tuple(
                replace(dimension, bandwidth=dimension.bandwidth * factor) for dimension, factor in dims
            )
            self._slowed[ports] = replace(self.cluster, dims=slowed)
        return self._slowed[ports]


def open_analytical(parameters: Parameters, layout: Layout, cluster: Cluster, argument: str) -> Analytical:
    """The `analytical` network of a cluster."""
    return Analytical(cluster)
