"""`shared`: concurrent transmissions share ports max-min fairly, by the algorithms of `analytical`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simcore.cluster import Cluster, GroupShape, TransferShape
from simcore.folding.graph import PortFactors
from simcore.layout import Layout
from simcore.networks.analytical import Analytical
from simcore.networks.model import Carrier, Network, PlacedCollective
from simcore.parameters import Parameters
from simcore.sharing import (
    PortNetwork,
    Transmission,
    alone_ns,
    collective_transmission,
    port_capacity,
    transfer_transmission,
)

if TYPE_CHECKING:
    from simcore.folding import Folding
    from simcore.program import Program


class Shared(Analytical):
    """The network of one run; satisfies `Network` and `Sharing`."""

    def collective_ns(self, placed: PlacedCollective, scale: float = 1.0) -> int:
        sent = self.collective(placed.shape, placed.ports, placed.collective, placed.size).scaled(scale)
        return alone_ns(sent, self.capacities(placed.ports))

    def explain_collective(self, placed: PlacedCollective) -> str:
        words = super().explain_collective(placed)
        alone = self.collective_ns(placed)
        if alone == super().collective_ns(placed):
            return words
        return f"{words}\nwhat its messages take of a shared port makes it {alone} ns"

    def collective(self, shape: GroupShape, ports: PortFactors, collective: str, size: int) -> Transmission:
        return collective_transmission(self.slowed(ports), shape, collective, size)

    def transfer(self, shape: TransferShape, ports: PortFactors, size: int) -> Transmission:
        return transfer_transmission(self.slowed(ports), shape, size)

    def carrier(self, folding: Folding) -> Carrier:
        return PortNetwork([self.capacities(rank_class.ports) for rank_class in folding.classes])

    def check_size(self, program: Program, folding: Folding) -> None:
        """Ports are shared by rank classes: as many ops as on an idle network."""

    def capacities(self, ports: PortFactors) -> list[float]:
        """Bytes per ns of each dimension's port of a rank, each way."""
        cluster = self.slowed(ports)
        return [port_capacity(cluster, dimension) for dimension in range(len(cluster.dims))]


def opened(parameters: Parameters, layout: Layout, cluster: Cluster, argument: str) -> Network:
    """The network of a run: see `NetworkModel`."""
    return Shared(cluster)
