"""What a span is, where its duration comes from, and what it waited for, as facts to print."""

from __future__ import annotations

from simcore.analysis.accounts import IDLE_OP, op_of
from simcore.analysis.origins import origin
from simcore.collectives import NAMES, algorithm_bandwidth, bus_bandwidth
from simcore.layout import Layout
from simcore.program.ops import (
    PHASES,
    STREAMS,
    TO_NEXT,
    CollectiveCost,
    ComputeCost,
    TransferCost,
)
from simcore.records import Struct
from simcore.simulation import Simulation
from simcore.workload.model import GroupKind


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
