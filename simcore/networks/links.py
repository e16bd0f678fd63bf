"""`links`: every message on its links, first come first served (ASTRA-sim 2.x's congestion-aware backend)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from simcore.cluster import Cluster, GroupShape, TransferShape
from simcore.diagnostics import UsageError
from simcore.folding.graph import PortFactors
from simcore.layout import Layout
from simcore.messages.alone import check_messages, estimate_messages, make_rules
from simcore.messages.network import astra_bandwidth
from simcore.messages.traffic import LinkTraffic, Payload, alone_ns
from simcore.networks.model import GroupCollective, Network, NetworkParameters, PortTransport
from simcore.networks.simulated_alone import SimulatedAlone
from simcore.parameters import flag_of
from simcore.program.ops import CollectiveCost, TransferCost
from simcore.units import plural

if TYPE_CHECKING:
    from simcore.folding import Folding
    from simcore.program import Program


class LinkNetwork(SimulatedAlone):
    """The network of one run; satisfies `Network` and `Sharing`. A collective alone is simulated as well."""

    def simulate_alone(self, ranks: Sequence[int], group_collective: GroupCollective) -> int:
        check_messages(
            estimate_messages(
                self.cluster, len(ranks), group_collective.collective, make_rules(self.cluster)
            ),
            "a collective",
        )
        return alone_ns(self.cluster, ranks, Payload(group_collective.collective, group_collective.size))

    def transfer_ns(self, shape: TransferShape, ports: PortFactors, size: int) -> int:
        """Returns the ns of a transfer that goes link by link, stored and forwarded."""
        if not size:
            return 0
        total = 0
        for index, hops in shape:
            dimension = self.cluster.dims[index]
            total += hops * int(dimension.latency_ns + size / astra_bandwidth(dimension.bandwidth))
        return total

    def explain_transfer(self, shape: TransferShape, ports: PortFactors, size: int) -> str:
        terms = " + ".join(
            f"{plural(hops, 'link')} of dimension {index} x floor({self.cluster.dims[index].latency_ns:g} + "
            f"{size} B / {self.cluster.dims[index].bandwidth:g} GB/s)"
            for index, hops in shape
        )
        return f"{terms or '0'} = {self.transfer_ns(shape, ports, size)} ns"

    def explain_collective(self, group_collective: GroupCollective) -> str:
        alone = self.collective_ns(group_collective)
        return (
            f"{super().explain_collective(group_collective)}\nits messages, link by link, make it "
            f"{alone} ns alone"
        )

    def collective(self, shape: GroupShape, ports: PortFactors, collective: str, size: int) -> Payload:
        return Payload(collective, size)

    def transfer(self, shape: TransferShape, ports: PortFactors, size: int) -> Payload:
        return Payload(None, size)

    def make_transport(self, folding: Folding) -> PortTransport:
        return LinkTraffic(self.cluster, [rank_class.ranks.blocks[0].first for rank_class in folding.classes])

    def refine(self, transport: PortTransport) -> bool:
        """Returns False: a run has all there is."""
        return False

    def check_size(self, program: Program, folding: Folding) -> None:
        rules = make_rules(self.cluster)
        message_counts: dict[tuple[int, str], int] = {}
        total = 0.0
        for rank_class in folding.classes:
            ops = program.stages[rank_class.stage].ops
            for cost_index in ops.cost:
                cost = program.costs[cost_index]
                if isinstance(cost, CollectiveCost):
                    members = folding.group_classes[rank_class.groups[cost.group]].shape.members
                    key = (members, cost.collective)
                    if key not in message_counts:
                        message_counts[key] = estimate_messages(self.cluster, members, cost.collective, rules)
                    total += message_counts[key] / max(members, 1)
                elif isinstance(cost, TransferCost):
                    total += sum(hops for _, hops in rank_class.links[cost.step].shape)
        check_messages(round(total), "the step")


def opened(parameters: NetworkParameters, layout: Layout, cluster: Cluster) -> Network:
    """Returns the network of a run: see `NetworkModel`."""
    names = ("comm_scale", "jitter", "slow_link")
    refused_flags = [
        flag_of(name).option for name in names if getattr(parameters, name) != flag_of(name).default
    ]
    if refused_flags:
        why = "where durations of messages are found as they go"
        raise UsageError(f"{', '.join(refused_flags)}: not under --network links, {why}")
    for dimension in cluster.dims:
        if dimension.kind == "ring" and dimension.size == 2:
            raise UsageError("--network links: a ring of 2 has no two ways; take a switch or fully-connected")
    return LinkNetwork(cluster)
