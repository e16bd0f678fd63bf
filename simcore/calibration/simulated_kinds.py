"""What a simulated step does of each kind on the measured ranks, and what that takes on any cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from simcore.calibration.kinds import COMPUTE_KINDS, simulated_kind
from simcore.cluster import Cluster
from simcore.collectives.exact import scaled
from simcore.networks import Network, PlacedCollective, open_network
from simcore.program.ops import CollectiveCost, TransferCost
from simcore.records import Struct, field
from simcore.simulation import Simulation


class SimulatedKind(Struct):
    """One kind on the measured ranks together. calls, total_ns: as they ran. dimensions: of the cluster,
    that its groups or links cross. costs: (rank class, cost) -> how many calls.
    """

    calls: int = 0
    total_ns: int = 0
    dimensions: set[int] = field(default_factory=set)
    costs: Counter[tuple[int, int]] = field(default_factory=Counter)


def simulated_kinds(simulation: Simulation, ranks: Sequence[int]) -> dict[str, SimulatedKind]:
    """Kinds of the work of `ranks`, numbered as the simulation does, without those that never come.

    A collective counts once for each of its ranks, a transfer for the rank that sends it.
    """
    found: dict[str, SimulatedKind] = {}
    for number, count in _classes(simulation, ranks).items():
        for kind, (calls, total_ns, costs) in _of_class(simulation, number).items():
            one = found.setdefault(kind, SimulatedKind())
            one.calls += count * calls
            one.total_ns += count * total_ns
            if kind in COMPUTE_KINDS:
                continue
            for cost, times in costs.items():
                one.costs[number, cost] += count * times
                one.dimensions |= _crossed(simulation, number, cost)
    return found


def compute_of_ranks(simulation: Simulation, ranks: Sequence[int]) -> list[dict[str, int]]:
    """Compute of each of `ranks` by kind, ns; 0 for a kind that it does not have."""
    found: dict[int, dict[str, int]] = {}
    for number in _classes(simulation, ranks):
        kinds = _of_class(simulation, number)
        found[number] = {kind: kinds[kind][1] if kind in kinds else 0 for kind in COMPUTE_KINDS}
    folding = simulation.timeline.folding
    return [found[folding.class_of(rank)] for rank in ranks]


def kind_ns(simulation: Simulation, kind: SimulatedKind, cluster: Cluster) -> int:
    """What the calls of a kind of communication take on an idle network of another cluster, ns together."""
    network = open_network(simulation.parameters, simulation.layout, cluster)
    scale = simulation.parameters.comm_scale
    return sum(
        count * _alone_ns(simulation, network, number, cost, scale)
        for (number, cost), count in kind.costs.items()
    )


def _classes(simulation: Simulation, ranks: Sequence[int]) -> Counter[int]:
    """How many of `ranks` each class has."""
    folding = simulation.timeline.folding
    return Counter(folding.class_of(rank) for rank in ranks)


def _of_class(simulation: Simulation, number: int) -> dict[str, tuple[int, int, Counter[int]]]:
    """(calls, ns, calls by cost) of each kind of one rank of a class."""
    program = simulation.program
    ops, start, end = simulation.timeline.columns(number)
    totals: dict[tuple[int, int, bool], tuple[int, int, Counter[int]]] = {}
    columns = zip(ops.stream, ops.phase, ops.microbatch, ops.cost, start, end, strict=True)
    for stream, phase, microbatch, cost, begin, over in columns:
        # Under layer-loop no op is of a micro-batch; its rows are nothing else.
        key = (stream, phase, microbatch >= 0 or not program.pipelined)
        calls, total, costs = totals.get(key) or (0, 0, Counter())
        costs[cost] += 1
        totals[key] = (calls + 1, total + over - begin, costs)
    found: dict[str, tuple[int, int, Counter[int]]] = {}
    for (stream, phase, inside), (calls, total, costs) in totals.items():
        kind = simulated_kind(stream, phase, inside)
        before = found.get(kind) or (0, 0, Counter())
        found[kind] = (before[0] + calls, before[1] + total, before[2] + costs)
    return found


def _crossed(simulation: Simulation, number: int, cost: int) -> set[int]:
    """The dimensions that the group or link of a cost crosses for a class."""
    folding = simulation.timeline.folding
    rank_class, what = folding.classes[number], simulation.program.costs[cost]
    if isinstance(what, CollectiveCost):
        crossings = folding.group_classes[rank_class.groups[what.group]].shape.crossings
        return {crossing.dimension for crossing in crossings}
    assert isinstance(what, TransferCost)
    return {dimension for dimension, _ in rank_class.links[what.step].shape}


def _alone_ns(simulation: Simulation, network: Network, number: int, cost: int, scale: float) -> int:
    """ns of one call on the idle network, with the scale of communication."""
    folding = simulation.timeline.folding
    rank_class, what = folding.classes[number], simulation.program.costs[cost]
    if isinstance(what, CollectiveCost):
        group = folding.group_classes[rank_class.groups[what.group]]
        return network.collective_ns(PlacedCollective.of(group, what), scale)
    assert isinstance(what, TransferCost)
    link = rank_class.links[what.step]
    return scaled(network.transfer_ns(link.shape, link.ports, what.bytes), scale)
