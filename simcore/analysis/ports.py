"""The ports of a simulated run, with what each flow was sent for."""

from __future__ import annotations

from functools import cache

from simcore.analysis.what_if.links import flow_changes, link_changes
from simcore.flows.log import Transmission
from simcore.networks.model import GroupCollective
from simcore.program.ops import LANE_OF_STREAM, CollectiveCost, TransferCost
from simcore.simulation import Simulation
from simcore.trace.ports import Ports, Purpose, ports_of_flows, ports_of_links
from simcore.workload.model import base_name


def find_ports(simulation: Simulation) -> Ports:
    """Returns the ports of a run on a network with links."""
    if simulation.flow_report is None:
        return ports_of_links(simulation.links or (), simulation.cluster.dims, simulation.step_time_ns)
    timeline, names = simulation.timeline, simulation.workload.name

    @cache
    def starts_of(rank_class: int, stream: int) -> dict[int, int]:
        """Returns the op of a class on a stream by its start."""
        ops, starts = timeline.stage_program(rank_class).ops, timeline.times.start[rank_class]
        return {starts[op]: op for op, lane in enumerate(ops.stream) if lane == stream}

    def find_purpose(transmission: Transmission) -> Purpose | None:
        class_id = transmission.rank_class
        op = starts_of(class_id, transmission.stream).get(transmission.start_ns)
        if op is None:
            return None
        ops, times = timeline.stage_program(class_id).ops, timeline.times
        layer = base_name(names[ops.row[op]]) if 0 <= ops.row[op] < len(names) else ""
        group = LANE_OF_STREAM[transmission.stream]
        return Purpose(group, layer, class_id, times.start[class_id][op], times.end[class_id][op], op)

    topology = simulation.cluster.topology
    assert topology is not None
    return ports_of_flows(
        simulation.flow_report,
        topology,
        simulation.step_time_ns,
        find_purpose,
        lambda ends: [*link_changes(simulation, *ends), *flow_changes(simulation)],
    )


def find_alone_ns(simulation: Simulation, class_id: int, op: int) -> int | None:
    """Returns what a collective or transfer takes alone on the idle network; None of any other op."""
    timeline, network = simulation.timeline, simulation.network
    cost = simulation.program.costs[timeline.stage_program(class_id).ops.cost[op]]
    if isinstance(cost, CollectiveCost) and not cost.ns:
        group = timeline.folding.group_classes[timeline.groups_of(class_id)[cost.group]]
        alone_ns = network.collective_ns(GroupCollective.of(group, cost))
        return cost.share_of(alone_ns) if cost.split_count > 1 else alone_ns
    if isinstance(cost, TransferCost):
        link = timeline.classes[class_id].links[cost.step]
        return network.transfer_ns(link.shape, link.ports, cost.bytes)
    return None
