"""Where an op's duration comes from, in words and figures that can be redone by hand.

What the file or the network gives, the factors of the run on it, and what is left when other
traffic, queues or jitter make it another duration.
"""

from __future__ import annotations

import math

from simcore.collectives.exact import scaled
from simcore.folding.classes import PortFactors
from simcore.networks import PlacedCollective, Sharing
from simcore.pricing import rounds_phases
from simcore.program.ops import (
    COMPUTE,
    FWD,
    PHASES,
    RECOMPUTE,
    CollectiveCost,
    ComputeCost,
    TransferCost,
)
from simcore.simulation import Simulation
from simcore.units import byte_size, duration, number
from simcore.workload.model import PHASES as CELLS

# A factor of a run that is not 1, and what it is called.
_Factor = tuple[float, str]


def origin(simulation: Simulation, of: int, op: int) -> str:
    """Where the duration of op `op` of class `of` comes from, in one or two lines of text.

    The price as the file or the network has it, the run's factors, and the difference to what the op
    takes, with its reason: jitter, other traffic at its ports, queues.
    """
    timeline = simulation.timeline
    ops, start, end = timeline.columns(of)
    cost = timeline.program.costs[ops.cost[op]]
    if isinstance(cost, ComputeCost):
        words, expected_ns, factors = _compute(simulation, of, op, cost)
    elif isinstance(cost, CollectiveCost):
        words, expected_ns, factors = _collective(simulation, of, cost)
    else:
        words, expected_ns, factors = _transfer(simulation, of, op, cost)
    return words + _outcome(simulation, ops.stream[op] == COMPUTE, end[op] - start[op], expected_ns, factors)


def _compute(simulation: Simulation, of: int, op: int, cost: ComputeCost) -> tuple[str, int, list[_Factor]]:
    rank_class = simulation.timeline.classes[of]
    row = simulation.timeline.stage_program(of).ops.row[op]
    cell = _cell_of(simulation, of, op)
    factors = [
        (simulation.parameters.compute_scale, "compute scale"),
        (cost.scale, "layer scale"),
        (rank_class.slowdown, "slow rank"),
    ]
    product = math.prod(factor for factor, _ in factors)
    maker = simulation.workload.maker
    if maker is None:
        words = f"{duration(cost.ns)}, the {cell} cell of line {simulation.workload.line[row]}"
    else:
        words = f"{duration(cost.ns)}"
        phase = next((known for known in CELLS if known == cell), None)
        ops = "" if phase is None else maker.summed(simulation.parameters, row, phase)
        words += f": {ops}" if ops else ""
    return words, scaled(cost.ns, product), factors


def _collective(simulation: Simulation, of: int, cost: CollectiveCost) -> tuple[str, int, list[_Factor]]:
    timeline, network = simulation.timeline, simulation.network
    group = timeline.folding.group_classes[timeline.classes[of].groups[cost.group]]
    placed = PlacedCollective.of(group, cost)
    words = network.explain_collective(placed) + _ports(simulation, group.ports)
    scale = simulation.parameters.comm_scale
    rounded = ", each phase of a chunk rounded" if rounds_phases(network, placed, scale) else ""
    return words, network.collective_ns(placed, scale), [(scale, f"comm scale{rounded}")]


def _transfer(simulation: Simulation, of: int, op: int, cost: TransferCost) -> tuple[str, int, list[_Factor]]:
    timeline, network = simulation.timeline, simulation.network
    link = timeline.classes[of].links[cost.step]
    phase = timeline.stage_program(of).ops.phase[op]
    what = "an activation" if phase in (FWD, RECOMPUTE) else "a gradient"
    formula = network.explain_transfer(link.shape, link.ports, cost.bytes) + _ports(simulation, link.ports)
    alone_ns = network.transfer_ns(link.shape, link.ports, cost.bytes)
    words = f"{what} of {byte_size(cost.bytes)}: {formula}"
    scale = simulation.parameters.comm_scale
    return words, scaled(alone_ns, scale), [(scale, "comm scale")]


def _ports(simulation: Simulation, ports: PortFactors) -> str:
    """Which dimensions the formula has at less than their bandwidth."""
    dims = simulation.cluster.dims
    slowed = [
        f"dimension {index} at {number(factor)} of {number(dims[index].bandwidth)} GB/s (slow link)"
        for index, factor in enumerate(ports)
        if factor != 1
    ]
    return f", {' and '.join(slowed)}" if slowed else ""


def _outcome(simulation: Simulation, is_compute: bool, ns: int, expected: int, factors: list[_Factor]) -> str:
    """The factors that are not 1, and what is left between what they make of the price and `ns`."""
    named = [(factor, what) for factor, what in factors if factor != 1]
    words = "".join(f", times {number(factor)} ({what})" for factor, what in named)
    if named:
        words += f" = {duration(expected)}"
    if ns == expected:
        return words
    sharing = not is_compute and isinstance(simulation.network, Sharing)
    if simulation.parameters.jitter and not sharing and expected:
        return f"{words}, times {ns / expected:.4g} (jitter)"
    more = f"{duration(abs(ns - expected))} {'more' if ns > expected else 'less'}"
    if simulation.parameters.jitter:
        return f"{words}, {more} by jitter{' and other traffic at its ports' if sharing else ''}"
    if sharing:
        return f"{words}, {more} as other traffic shares its ports"
    return f"{words}, {more} in the queues of the dimensions"


def _cell_of(simulation: Simulation, of: int, op: int) -> str:
    """Which cell of a row the compute stands in: `opt` and `recompute` name none by themselves.

    The optimizer runs the cells of a row in their order: of cells with the same ns, the op's place among
    the row's ops of that ns says which.
    """
    ops = simulation.timeline.stage_program(of).ops
    costs = simulation.timeline.program.costs
    phase, row = PHASES[ops.phase[op]], ops.row[op]
    if phase in CELLS:
        return phase
    if phase == "recompute":
        return "fwd"
    cost = costs[ops.cost[op]]
    assert isinstance(cost, ComputeCost)
    like = [cell for cell in CELLS if simulation.workload.cells(cell).compute_ns[row] == cost.ns]
    before = 0
    for one in range(op):
        if ops.row[one] == row and ops.stream[one] == COMPUTE:
            other = costs[ops.cost[one]]
            before += isinstance(other, ComputeCost) and other.ns == cost.ns
    return like[before % len(like)]
