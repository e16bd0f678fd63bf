"""What crosses each dimension of the network, and how long its ports are busy with it.

Bytes are those that a rank sends (what it receives is as much: ports are full duplex), by the algorithm of
each collective; where members differ (trees), those of the busiest. A port is busy as long as its bytes
take at the bandwidth they move at, scaled like the durations of the run, jitter left out. Under
`analytical`, which lets transmissions overlap at full speed, that may be more than the step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from simcore.cluster import Cluster
from simcore.collectives.exact import scaled
from simcore.collectives.loads import DimensionLoad, collective_loads, transfer_loads
from simcore.folding.classes import PortFactors, RankClass
from simcore.networks.analytical import Analytical
from simcore.program.ops import COMPUTE, STREAMS, TO_NEXT, CollectiveCost, Cost, TransferCost
from simcore.simulation import Simulation

# The streams by which bytes are told apart: both pipeline streams are pp.
KINDS = (*STREAMS[1:TO_NEXT], "pp")

ClassUse = dict[tuple[int, str], DimensionLoad]


class KindUse(NamedTuple):
    """What streams of one kind put on a dimension, on the rank that sends most over it."""

    bytes: int
    busy_ns: int


@dataclass(frozen=True, slots=True)
class DimensionUse:
    """One dimension in a stretch of time.

    bytes: of the rank that sends most over it; rank_class: its class. mean_bytes, mean_busy_ns:
    of all ranks, rounded. busy_ns: of that rank's port. by_kind: its bytes by the kind of
    stream, in the order of the streams, kinds that send nothing left out.
    """

    index: int
    rank_class: int
    bytes: int
    mean_bytes: int
    busy_ns: int
    mean_busy_ns: int
    by_kind: dict[str, KindUse]


def class_use(
    simulation: Simulation, number: int, first_ns: int | None = None, last_ns: int | None = None
) -> ClassUse:
    """(dimension, kind) -> what a rank of class `number` sends; all of the step, or first_ns..last_ns.

    An op that lies partly in the stretch counts in proportion, floored so that stretches that
    follow each other sum to the whole.
    """
    network = simulation.network
    if not isinstance(network, Analytical):
        return {}
    timeline = simulation.timeline
    rank_class = timeline.classes[number]
    ops, start, end = timeline.columns(number)
    costs = timeline.program.costs
    found: ClassUse = {}
    slowed = network.slowed
    scale = simulation.parameters.comm_scale

    def add(cost: Cost, bytes_part: Callable[[int], int]) -> None:
        kind, loads = _loads(simulation, rank_class, cost, slowed)
        for dimension, load in loads.items():
            carried, busy_ns = found.get((dimension, kind), (0, 0))
            found[dimension, kind] = DimensionLoad(
                carried + bytes_part(load.bytes), busy_ns + bytes_part(scaled(load.busy_ns, scale))
            )

    if first_ns is None and last_ns is None:
        for cost, times in sorted(Counter(ops.cost).items()):
            add(costs[cost], times.__mul__)
        return found
    first, last = first_ns or 0, simulation.step_time_ns if last_ns is None else last_ns
    for op, stream in enumerate(ops.stream):
        begin, length = start[op], end[op] - start[op]
        if stream == COMPUTE or begin > last or end[op] < first:
            continue
        if length == 0:
            # What takes no time counts where it stands; at the end of the step, in the last stretch.
            if first <= begin < last or begin == last == simulation.step_time_ns:
                add(costs[ops.cost[op]], int)
            continue
        before, until = max(first - begin, 0), min(last - begin, length)
        add(
            costs[ops.cost[op]],
            lambda whole, before=before, until=until, length=length: (  # type: ignore[misc]
                whole * until // length - whole * before // length
            ),
        )
    return found


def _loads(
    simulation: Simulation, rank_class: RankClass, cost: Cost, slowed: Callable[[PortFactors], Cluster]
) -> tuple[str, dict[int, DimensionLoad]]:
    """(kind, what one op of a cost puts on each dimension) for a rank of a class."""
    if isinstance(cost, CollectiveCost) and cost.group in rank_class.groups:
        group = simulation.timeline.folding.group_classes[rank_class.groups[cost.group]]
        return cost.group, collective_loads(slowed(group.ports), group.shape, cost.collective, cost.bytes)
    if isinstance(cost, TransferCost) and cost.step in rank_class.links:
        link = rank_class.links[cost.step]
        return "pp", transfer_loads(slowed(link.ports), link.shape, cost.bytes)
    return "", {}


def dimension_use(
    simulation: Simulation, first_ns: int | None = None, last_ns: int | None = None
) -> list[DimensionUse]:
    """Every dimension of the cluster, inner first; none where the network has no dimensions."""
    if not isinstance(simulation.network, Analytical):
        return []
    classes = simulation.timeline.classes
    world = sum(len(one.ranks) for one in classes)
    uses = [class_use(simulation, number, first_ns, last_ns) for number in range(len(classes))]
    found = []
    for index in range(len(simulation.cluster.dims)):
        sums = [_sum(use, index) for use in uses]
        most = max(range(len(classes)), key=lambda number: (sums[number].bytes, -number))
        total = [
            sum(part * len(one.ranks) for one, part in zip(classes, parts, strict=True))
            for parts in zip(*sums, strict=True)
        ]
        by_kind = {kind: KindUse(*uses[most][index, kind]) for kind in KINDS if (index, kind) in uses[most]}
        found.append(
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
    return found


def _sum(use: ClassUse, index: int) -> DimensionLoad:
    loads = [load for (dimension, _), load in use.items() if dimension == index]
    return DimensionLoad(sum(load.bytes for load in loads), sum(load.busy_ns for load in loads))
