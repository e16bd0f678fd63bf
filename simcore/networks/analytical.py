"""`analytical`: closed forms per dimension and algorithm, unaware of other traffic (ASTRA-sim 2.0)."""

from __future__ import annotations

from simcore.cluster import Cluster, TransferShape
from simcore.collectives import collective_ns, explain_collective, explain_transfer, transfer_ns
from simcore.diagnostics import Diagnostic
from simcore.folding.graph import PortFactors
from simcore.layout import Layout
from simcore.networks.model import GroupCollective, Network, NetworkParameters
from simcore.program.blocks import Structure
from simcore.records import Struct, field
from simcore.workload import Workload


class Analytical(Struct):
    """The network of one run; satisfies `Network`."""

    cluster: Cluster
    _slowed: dict[PortFactors, Cluster] = field(default_factory=dict)

    def collective_ns(self, group_collective: GroupCollective, scale: float = 1.0) -> int:
        cluster = self.slowed(group_collective.ports)
        return collective_ns(
            cluster, group_collective.shape, group_collective.collective, group_collective.size, scale
        )

    def transfer_ns(self, shape: TransferShape, ports: PortFactors, size: int) -> int:
        return transfer_ns(self.slowed(ports), shape, size)

    def explain_collective(self, group_collective: GroupCollective) -> str:
        cluster = self.slowed(group_collective.ports)
        return explain_collective(
            cluster, group_collective.shape, group_collective.collective, group_collective.size
        )

    def explain_transfer(self, shape: TransferShape, ports: PortFactors, size: int) -> str:
        return explain_transfer(self.slowed(ports), shape, size)

    def words(self) -> str:
        """Returns each dimension, inner first, with its requested algorithm; the chunks if there are
        several.
        """
        cluster = self.cluster
        words = " x ".join(
            f"{dimension.text()}{f' ({algorithm})' if algorithm else ''}"
            for dimension, algorithm in zip(cluster.dims, cluster.algorithms, strict=True)
        )
        if cluster.splits > 1:
            words += f"; {cluster.splits} splits, {cluster.active_chunks} at a time"
        return words

    def diagnostics(self, workload: Workload, structure: Structure) -> tuple[Diagnostic, ...]:
        return ()

    def slowed(self, ports: PortFactors) -> Cluster:
        """Returns the cluster with each dimension at the bandwidth of its slowest port."""
        if ports not in self._slowed:
            self._slowed[ports] = self.cluster.slowed(ports)
        return self._slowed[ports]


def opened(parameters: NetworkParameters, layout: Layout, cluster: Cluster) -> Network:
    """Returns the network of a run: see `NetworkModel`."""
    return Analytical(cluster)
