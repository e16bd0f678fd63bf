"""What a span is, and where its duration comes from, as facts that can be redone by hand.

What the file or the network gives, the factors of the run on it, and what is left when other
traffic, queues or jitter make it another duration; and what it waited for.
"""

from __future__ import annotations

import math

from simcore.analysis.accounts import IDLE_OP, op_of
from simcore.collectives import NAMES, algorithm_bandwidth, bus_bandwidth
from simcore.collectives.exact import scaled
from simcore.folding.classes import PortFactors
from simcore.layout import Layout
from simcore.networks import PlacedCollective, Sharing
from simcore.pricing import rounds_phases
from simcore.program.ops import (
    COMPUTE,
    FWD,
    PHASES,
    RECOMPUTE,
    STREAMS,
    TO_NEXT,
    CollectiveCost,
    ComputeCost,
    TransferCost,
)
from simcore.records import Struct
from simcore.simulation import Simulation
from simcore.units import byte_size, duration, number
from simcore.workload.model import PHASES as CELLS
from simcore.workload.model import GroupKind

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
    group = timeline.folding.group_classes[timeline.groups_of(of)[cost.group]]
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


class OpFacts(Struct, frozen=True):
    """One op of a rank class, or a transfer that it receives.

    name: the row's name, raw text of the file; "" for a transfer. phase: of PHASES. kind:
    `compute`, a collective's name, `send` or `receive`. row: of the file, -1 for a transfer.
    other_stage: where a transfer goes or comes from. origin: where the duration comes from.
    collective, group: of a collective, as the file's words; bytes: of its whole buffer, or of the
    transfer; 0 for compute.
    """

    name: str
    phase: str
    kind: str
    stream: str
    start_ns: int
    end_ns: int
    row: int
    microbatch: int
    other_stage: int | None
    origin: str
    collective: str | None = None
    group: GroupKind | None = None
    bytes: int = 0

    def bandwidths(self, layout: Layout) -> tuple[float, float] | None:
        """(algbw, busbw), GB/s, by what the span took in this run, as nccl-tests defines them.

        Its doc/PERFORMANCE.md has the factors (`bus_bandwidth`). None for compute, and where no time passes.
        """
        ns = self.end_ns - self.start_ns
        if not self.bytes or not ns:
            return None
        members = layout.group_size(self.group) if self.group is not None else 2
        algbw = algorithm_bandwidth(self.bytes, ns)
        return algbw, bus_bandwidth(self.collective or "SENDRECV", members, self.bytes, ns)


def op_facts(simulation: Simulation, number: int, op: int) -> OpFacts | None:
    """The facts of op `op` of class `number`, as the accounts write it; None for idle."""
    timeline = simulation.timeline
    if op == IDLE_OP:
        return None
    of, own = op_of(timeline, number, op)
    return _facts(simulation, of, own, received_by=None if own == op else number)


def _facts(simulation: Simulation, number: int, op: int, received_by: int | None = None) -> OpFacts:
    timeline = simulation.timeline
    ops, start, end = timeline.columns(number)
    rank_class = timeline.classes[number]
    cost = timeline.program.costs[ops.cost[op]]
    row, lane = ops.row[op], ops.stream[op]
    name = simulation.workload.name[row] if row >= 0 else ""
    other_stage = None
    if isinstance(cost, CollectiveCost):
        kind = NAMES[cost.collective]
    elif isinstance(cost, TransferCost):
        kind = "send" if received_by is None else "receive"
        other_stage = rank_class.stage + (cost.step if received_by is None else 0)
    else:
        kind = "compute"
    stream = STREAMS[lane] if lane < TO_NEXT else "pp"
    phase = PHASES[ops.phase[op]]
    collective: str | None = None
    kind_of_group: GroupKind | None = None
    if isinstance(cost, CollectiveCost):
        collective, kind_of_group = cost.collective, cost.group
    size = 0 if isinstance(cost, ComputeCost) else cost.bytes
    return OpFacts(
        name, phase, kind, stream, start[op], end[op], row, ops.microbatch[op], other_stage,
        origin(simulation, number, op), collective, kind_of_group, size,
    )  # fmt: skip
