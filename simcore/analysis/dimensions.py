"""The traffic of each dimension of the network, and how long its ports are busy with it.

Bytes are those that a rank sends (it receives as many: ports are full duplex), by the algorithm of each
collective; where members differ (trees), those of the busiest. A port is busy as long as its bytes take at
the bandwidth they move at, scaled like the durations of the run, without jitter. Under `analytical`, which
lets transmissions overlap at full speed, that may be more than the step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import reduce

from simcore.cluster import Cluster
from simcore.collectives.exact import scaled
from simcore.collectives.phases import DimensionLoad, collective_loads, transfer_loads
from simcore.folding.graph import PortFactors, RankClass
from simcore.networks.analytical import Analytical
from simcore.program.ops import STREAMS, TO_NEXT, CollectiveCost, Cost, TransferCost
from simcore.program.overrides import find_factors
from simcore.simulation import Simulation
from simcore.trace.contexts import DimensionUse, KindUse, PortUse
from simcore.units import join_names, largest_keys, share_word
from simcore.workload.model import base_name

# The kinds of streams by which bytes are counted: both pipeline streams are pp.
KINDS = (*STREAMS[1:TO_NEXT], "pp")

# (dimension, kind) -> what a rank of a class sends over it.
ClassUse = dict[tuple[int, str], DimensionLoad]


def compute_class_use(simulation: Simulation, class_id: int) -> ClassUse:
    """Returns what a rank of a class sends in the step."""
    network = simulation.network
    if not isinstance(network, Analytical):
        return {}
    timeline = simulation.timeline
    rank_class = timeline.classes[class_id]
    ops, _, _ = timeline.columns(class_id)
    costs = timeline.program.costs
    by_kind: ClassUse = {}
    scale, scales = simulation.parameters.comm_scale, simulation.setup.overrides.time_scales
    if scales:
        # Only time scales depend on the layer of an op; a transfer between stages has none, row -1.
        layers = [*map(base_name, simulation.workload.name), ""]
        counts = Counter(zip(ops.cost, (layers[row] for row in ops.row), strict=True))
    else:
        counts = Counter({(cost, ""): times for cost, times in Counter(ops.cost).items()})
    for (cost, layer), times in sorted(counts.items()):
        kind, loads = _op_loads(simulation, rank_class, costs[cost], network.slowed)
        factors = [scale, *find_factors(scales, f"stream {kind}", layer)]
        for dimension, load in loads.items():
            carried, busy_ns = by_kind.get((dimension, kind), (0, 0))
            ns = reduce(scaled, factors, load.busy_ns)
            by_kind[dimension, kind] = DimensionLoad(carried + times * load.bytes, busy_ns + times * ns)
    return by_kind


def _op_loads(
    simulation: Simulation, rank_class: RankClass, cost: Cost, slowed: Callable[[PortFactors], Cluster]
) -> tuple[str, dict[int, DimensionLoad]]:
    """Returns (kind, what one op of a cost puts on each dimension) for a rank of a class."""
    if isinstance(cost, CollectiveCost) and cost.group in rank_class.groups and not cost.ns:
        group = simulation.timeline.folding.group_classes[rank_class.groups[cost.group]]
        size = cost.port_bytes(rank_class.expert)
        return cost.group, collective_loads(slowed(group.ports), group.shape, cost.collective, size)
    if isinstance(cost, TransferCost) and cost.step in rank_class.links:
        link = rank_class.links[cost.step]
        return "pp", transfer_loads(slowed(link.ports), link.shape, cost.bytes)
    return "", {}


def compute_class_uses(simulation: Simulation) -> list[ClassUse]:
    """Returns what a rank of each class sends in the whole step, by class id."""
    timeline = simulation.timeline
    groups = timeline.folding.group_classes
    # Unfolded classes that send the same share one entry.
    cached_uses: dict[object, ClassUse] = {}
    uses = []
    for class_id, rank_class in enumerate(timeline.classes):
        key = (
            id(timeline.stage_program(class_id).ops),
            tuple(
                (kind, groups[group].shape, groups[group].ports) for kind, group in rank_class.groups.items()
            ),
            tuple((step, link.shape, link.ports) for step, link in rank_class.links.items()),
        )
        if key not in cached_uses:
            cached_uses[key] = compute_class_use(simulation, class_id)
        uses.append(cached_uses[key])
    return uses


def compute_dimension_use(
    simulation: Simulation, uses: Sequence[ClassUse] | None = None
) -> list[DimensionUse]:
    """Returns every dimension of the cluster, inner first; none where the network has no dimensions.

    uses: of `compute_class_uses`, where they are known.
    """
    if not isinstance(simulation.network, Analytical):
        return []
    uses = compute_class_uses(simulation) if uses is None else uses
    classes = simulation.timeline.classes
    world = sum(len(rank_class.ranks) for rank_class in classes)
    rows = []
    for index in range(len(simulation.cluster.dims)):
        sums = [_sum_loads(use, index) for use in uses]
        most = max(range(len(classes)), key=lambda class_id: (sums[class_id].bytes, -class_id))
        total = [
            sum(part * len(rank_class.ranks) for rank_class, part in zip(classes, parts, strict=True))
            for parts in zip(*sums, strict=True)
        ]
        by_kind = {kind: KindUse(*uses[most][index, kind]) for kind in KINDS if (index, kind) in uses[most]}
        rows.append(
            DimensionUse(
                index,
                most,
                sums[most].bytes,
                round(total[0] / world),
                sums[most].busy_ns,
                round(total[1] / world),
                by_kind,
            )
        )
    return rows


def find_busiest_port(simulation: Simulation, uses: Sequence[ClassUse]) -> PortUse | None:
    """Returns the port that is busy longest; None where no port carries anything.

    Of equally busy ports it is the one with the least bandwidth, which makes all of its group equally busy: a
    ring goes at the pace of its slowest port; then the innermost, of the lowest rank class. uses: of
    `compute_class_uses`.
    """
    classes = simulation.timeline.classes

    def factor(class_id: int, index: int) -> float:
        ports = classes[class_id].ports
        return ports[index] if ports else 1.0

    port_loads = [
        (-_sum_loads(use, index).busy_ns, factor(class_id, index), index, class_id)
        for class_id, use in enumerate(uses)
        for index in {dimension: None for dimension, _ in use}
    ]
    if not port_loads or not min(port_loads)[0]:
        return None
    least, slowest, index, class_id = min(port_loads)
    of_kind = {kind: load.busy_ns for (dimension, kind), load in uses[class_id].items() if dimension == index}
    kinds = largest_keys({kind: of_kind[kind] for kind in sorted(of_kind, key=KINDS.index)})
    streams = f"{share_word(sum(of_kind[kind] for kind in kinds), -least)} with {join_names(kinds)}"
    equal_classes = tuple(
        class_number for *figures, class_number in sorted(port_loads) if figures == [least, slowest, index]
    )
    return PortUse(index, class_id, -least, equal_classes, slowest, streams)


def find_longest_op(simulation: Simulation, class_id: int, index: int) -> int | None:
    """Returns the longest collective or transfer of a class that sends over dimension `index`, by its op.

    It is the earliest of equal ones; None where none takes any time.
    """
    network = simulation.network
    assert isinstance(network, Analytical)
    timeline = simulation.timeline
    ops, start, end = timeline.columns(class_id)
    costs, rank_class = timeline.program.costs, timeline.classes[class_id]
    dimension_costs = {
        cost
        for cost in sorted(set(ops.cost))
        if index in _op_loads(simulation, rank_class, costs[cost], network.slowed)[1]
    }
    return max(
        (op for op, cost in enumerate(ops.cost) if cost in dimension_costs and end[op] > start[op]),
        key=lambda op: (end[op] - start[op], -start[op]),
        default=None,
    )


def _sum_loads(use: ClassUse, index: int) -> DimensionLoad:
    loads = [load for (dimension, _), load in use.items() if dimension == index]
    return DimensionLoad(sum(load.bytes for load in loads), sum(load.busy_ns for load in loads))
