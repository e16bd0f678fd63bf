"""What a span is, where its duration comes from, and what it waited for, as facts to print."""

from __future__ import annotations

from dataclasses import dataclass

from simcore.analysis.accounts import IDLE_OP, received_op
from simcore.collectives import NAMES, algorithm_bandwidth, bus_bandwidth
from simcore.collectives.exact import scaled
from simcore.layout import Layout
from simcore.networks import Sharing
from simcore.program.ops import (
    FWD,
    PHASES,
    RECOMPUTE,
    STREAMS,
    TO_NEXT,
    CollectiveCost,
    ComputeCost,
    TransferCost,
)
from simcore.simulation import Simulation
from simcore.units import byte_size, duration, number
from simcore.workload.model import PHASES as CELLS
from simcore.workload.model import GroupKind


@dataclass(frozen=True, slots=True)
class OpFacts:
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
    if op < 0:
        sender, sent = timeline.received(number, received_op(op))
        return _facts(simulation, sender, sent, received_by=number)
    return _facts(simulation, number, op)


def _facts(simulation: Simulation, number: int, op: int, received_by: int | None = None) -> OpFacts:
    timeline = simulation.timeline
    ops, start, end = timeline.columns(number)
    rank_class = timeline.classes[number]
    cost, parameters = timeline.program.costs[ops.cost[op]], simulation.parameters
    row, lane = ops.row[op], ops.stream[op]
    name = simulation.workload.name[row] if row >= 0 else ""
    other_stage = None
    if isinstance(cost, CollectiveCost):
        kind = NAMES[cost.collective]
        group = timeline.folding.group_classes[rank_class.groups[cost.group]]
        network = simulation.network
        origin = network.explain_collective(cost.group, group.shape, cost.collective, cost.bytes)
        origin += _scale_words(parameters.comm_scale)
        alone = network.collective_ns(
            cost.group, group.shape, group.ports, cost.collective, cost.bytes, parameters.comm_scale
        )
        origin += _traffic_words(simulation, end[op] - start[op], alone)
    elif isinstance(cost, TransferCost):
        kind = "send" if received_by is None else "receive"
        other_stage = rank_class.stage + (cost.step if received_by is None else 0)
        what = "an activation" if ops.phase[op] in (FWD, RECOMPUTE) else "a gradient"
        origin = f"{what} of {byte_size(cost.bytes)}" + _scale_words(parameters.comm_scale)
        link = rank_class.links[cost.step]
        alone = scaled(
            simulation.network.transfer_ns(link.shape, link.ports, cost.bytes), parameters.comm_scale
        )
        origin += _traffic_words(simulation, end[op] - start[op], alone)
    else:
        kind = "compute"
        cell = _cell_of(simulation, row, cost, PHASES[ops.phase[op]])
        origin = f"{duration(cost.ns)}, the {cell} cell of line {simulation.workload.line[row]}"
        origin += _scale_words(parameters.compute_scale)
    stream = STREAMS[lane] if lane < TO_NEXT else "pp"
    phase = PHASES[ops.phase[op]]
    collective: str | None = None
    kind_of_group: GroupKind | None = None
    if isinstance(cost, CollectiveCost):
        collective, kind_of_group = cost.collective, cost.group
    size = 0 if isinstance(cost, ComputeCost) else cost.bytes
    return OpFacts(
        name, phase, kind, stream, start[op], end[op], row, ops.microbatch[op], other_stage, origin,
        collective, kind_of_group, size,
    )  # fmt: skip


def _cell_of(simulation: Simulation, row: int, cost: ComputeCost, phase: str) -> str:
    """Which cell of a row the compute stands in: `opt` and `recompute` name none by themselves."""
    if phase in CELLS:
        return phase
    if phase == "recompute":
        return "fwd"
    return next(cell for cell in CELLS if simulation.workload.cells(cell).compute_ns[row] == cost.ns)


def _traffic_words(simulation: Simulation, ns: int, alone_ns: int) -> str:
    """How much of a duration is due to other traffic at the same ports; with jitter nobody can tell."""
    if not isinstance(simulation.network, Sharing) or simulation.parameters.jitter:
        return ""
    more = ns - alone_ns
    return f", {duration(more)} more as other traffic shares its ports" if more > 0 else ""


def _scale_words(scale: float) -> str:
    return "" if scale == 1.0 else f", times {number(scale)}"
