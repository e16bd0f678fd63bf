"""Builds the ops of one stage: turns rows into compute, collectives, transfers and waits."""

from __future__ import annotations

from dataclasses import dataclass, field

from simcore.layout import Layout
from simcore.program.blocks import Structure
from simcore.program.ops import (
    COMPUTE,
    FWD,
    IG,
    OPT,
    RECOMPUTE,
    STREAM_OF_GROUP,
    TO_NEXT,
    TO_PREVIOUS,
    WG,
    CollectiveCost,
    ComputeCost,
    Cost,
    Join,
    Ops,
    Receive,
    Run,
    StageProgram,
    TransferCost,
    Wait,
)
from simcore.workload import Cells, Workload


@dataclass(slots=True)
class Plan:
    """What all stages of a program share: the file, the layout, the costs, the messages.

    transfer_bytes: one activation between neighbouring stages. segments: the ops of a
    block's part, made once for all stages and micro-batches that repeat it.
    """

    workload: Workload
    structure: Structure
    layout: Layout
    microbatches: int
    transfer_bytes: int
    costs: dict[Cost, int] = field(default_factory=dict)
    messages: dict[tuple[int, int, int], int] = field(default_factory=dict)
    segments: dict[tuple[str, int], Ops] = field(default_factory=dict)

    def cost(self, cost: Cost) -> int:
        """The number of a cost in the program's table."""
        return self.costs.setdefault(cost, len(self.costs))

    def message(self, source: int, destination: int, microbatch: int) -> int:
        """The number of the transfer of a micro-batch between two stages."""
        return self.messages.setdefault((source, destination, microbatch), len(self.messages))

    def is_optimizer(self, row: int) -> bool:
        """Whether a row's compute is the optimizer's, whatever cell it stands in."""
        return row in self.structure.tail or self.workload.name[row].startswith("grad_param_compute")


class RowOps:
    """Appends the ops of single rows to `ops`: compute cells, then their collectives."""

    def __init__(self, plan: Plan, ops: Ops, microbatch_of: dict[int, int] | None = None) -> None:
        self.plan = plan
        self.ops = ops
        self.microbatch_of = microbatch_of or {}

    def compute(self, cells: Cells, row: int, phase: int) -> None:
        """The compute cell of a row; a cell of 0 makes no op."""
        ns = cells.compute_ns[row]
        if ns:
            phase = OPT if self.plan.is_optimizer(row) else phase
            cost = self.plan.cost(ComputeCost(ns))
            self.ops.append(COMPUTE, phase, 1, cost, row, self.microbatch_of.get(row, -1))

    def collective(self, cells: Cells, row: int, phase: int, blocking: bool) -> None:
        """The collective of a row; none, one of 0 bytes, or a group of one make no op."""
        name, group, size = cells.collective[row], cells.group[row], cells.bytes[row]
        if name is None or group is None or not size or self.plan.layout.group_size(group) == 1:
            return
        phase = OPT if self.plan.is_optimizer(row) else phase
        cost = self.plan.cost(CollectiveCost(name, group, size))
        self.ops.append(
            STREAM_OF_GROUP[group], phase, int(blocking), cost, row, self.microbatch_of.get(row, -1)
        )

    def forward(self, row: int, phase: int = FWD) -> None:
        """Forward of a row: compute, then its blocking collective."""
        fwd = self.plan.workload.fwd
        self.compute(fwd, row, phase)
        self.collective(fwd, row, phase, blocking=True)

    def input_grad(self, row: int) -> None:
        """Input gradient of a row: compute, then its blocking collective."""
        ig = self.plan.workload.ig
        self.compute(ig, row, IG)
        self.collective(ig, row, IG, blocking=True)

    def weight_grad(self, row: int, blocking: bool) -> None:
        """Weight gradient of a row: compute, then its collective."""
        wg = self.plan.workload.wg
        self.compute(wg, row, WG)
        self.collective(wg, row, WG, blocking)

    def backward(self, rows: tuple[int, ...]) -> None:
        """Backward of `rows` in reverse, each: ig, its blocking collective, wg, its asynchronous one.

        A row that initiates a recompute runs the forward of the rows from its nearest
        checkpoint up to it (itself excluded) again first.
        """
        header = self.plan.workload.header
        present = set(rows) if header.checkpoint_initiates else set()
        for row in reversed(rows):
            if row in header.checkpoint_initiates:
                checkpoint = max((c for c in header.checkpoints if c < row), default=row)
                for again in range(checkpoint, row):
                    if again in present:
                        self.forward(again, RECOMPUTE)
            self.input_grad(row)
            self.weight_grad(row, blocking=False)


class StageBuilder:
    """The step of one stage, put together in the order in which its schedule calls.

    Waits and transfers between stages come with the calls; `finish` adds the last join.
    """

    def __init__(self, plan: Plan, stage: int) -> None:
        self.plan = plan
        self.stage = stage
        self.stages = plan.layout.pp
        self.ops = Ops()
        self._runs: list[Run] = []
        self._waits: list[Wait] = []
        self._run_start = 0
        self._outstanding: list[int] = []
        self._open_microbatches = 0
        self._peak_microbatches = 0

    # -- micro-batches of a pipeline -------------------------------------------------

    def forward(self, microbatch: int) -> None:
        """F of a micro-batch: receive, its rows, send on; then the loss rows' forward."""
        if self.stage > 0:
            self._receive(self.stage - 1, microbatch)
        self._segment("fwd", microbatch)
        if self.stage < self.stages - 1:
            # The activation leaves when the block's last row has ended; loss rows come after it.
            self._send(self.stage + 1, microbatch, FWD)
        self._segment("loss-fwd", microbatch)
        self._open_microbatches += 1
        self._peak_microbatches = max(self._peak_microbatches, self._open_microbatches)

    def backward(self, microbatch: int) -> None:
        """B of a micro-batch: receive, the loss rows' gradients, its rows in reverse, send back."""
        if self.stage < self.stages - 1:
            self._receive(self.stage + 1, microbatch)
        self._segment("loss-bwd", microbatch)
        self._segment("bwd", microbatch)
        if self.stage > 0:
            self._send(self.stage - 1, microbatch, IG)
        self._open_microbatches -= 1

    def _segment(self, part: str, microbatch: int) -> None:
        structure = self.plan.structure
        block = microbatch % len(structure.blocks)
        key = (part, 0 if part.startswith("loss") else block)
        ops = self.plan.segments.get(key)
        if ops is None:
            ops = self.plan.segments[key] = Ops()
            rows = RowOps(self.plan, ops)
            members = structure.loss if part.startswith("loss") else structure.blocks[block]
            if part.endswith("fwd"):
                for row in members:
                    rows.forward(row)
            else:
                rows.backward(members)
        first = len(self.ops)
        self.ops.extend(ops, microbatch)
        self._remember_asynchronous(first)

    def _receive(self, source: int, microbatch: int) -> None:
        self._wait(Receive(self.plan.message(source, self.stage, microbatch), source))

    def _send(self, destination: int, microbatch: int, phase: int) -> None:
        step = destination - self.stage
        cost = self.plan.cost(TransferCost(step, self.plan.transfer_bytes))
        message = self.plan.message(self.stage, destination, microbatch)
        self._outstanding.append(len(self.ops))
        stream = TO_NEXT if step > 0 else TO_PREVIOUS
        self.ops.append(stream, phase, 0, cost, -1, microbatch, message)

    # -- the whole file as one program -----------------------------------------------

    def loop_over_rows(self) -> None:
        """Forward over all rows of the file, then backward in reverse, every row once."""
        rows = tuple(range(len(self.plan.workload)))
        blocks = enumerate(self.plan.structure.blocks)
        row_ops = RowOps(self.plan, self.ops, {row: block for block, members in blocks for row in members})
        for row in rows:
            row_ops.forward(row)
        row_ops.backward(rows)
        self._remember_asynchronous(0)
        self._peak_microbatches = len(self.plan.structure.blocks)

    # -- start and end of a pipelined step -------------------------------------------

    def start_of_step(self) -> None:
        """Forward cells of the prologue rows, once, in row order."""
        rows = RowOps(self.plan, self.ops)
        for row in self.plan.structure.prologue:
            rows.forward(row)

    def end_of_step(self) -> None:
        """The five points of the end of a step, each waiting for the one before."""
        workload, structure = self.plan.workload, self.plan.structure
        points: list[list[int]] = [[], [], [], [], []]
        for row in structure.prologue:
            points[_point(workload.name[row], workload.wg.collective[row]) - 1].append(row)
        others, reductions, _, optimizer_compute, gathers = points
        rows = RowOps(self.plan, self.ops)

        for row in others:
            rows.input_grad(row)
            rows.weight_grad(row, blocking=True)
        self._issue_together(rows, reductions)
        for row in structure.tail:
            rows.forward(row)
            rows.input_grad(row)
            rows.weight_grad(row, blocking=True)
        for row in optimizer_compute:
            rows.input_grad(row)
            rows.weight_grad(row, blocking=True)
        self._issue_together(rows, gathers)

    def _issue_together(self, rows: RowOps, members: list[int]) -> None:
        """All compute cells of the rows, then all their weight-gradient collectives, then a join.

        The join is over every collective still running, those of backward included: the
        optimizer needs all gradients.
        """
        wg = self.plan.workload.wg
        for row in members:
            rows.input_grad(row)
            rows.compute(wg, row, WG)
        first = len(self.ops)
        for row in members:
            rows.collective(wg, row, WG, blocking=False)
        self._remember_asynchronous(first)
        self._join([op for op in self._outstanding if self.ops.message[op] < 0])

    # -- waits -----------------------------------------------------------------------

    def _remember_asynchronous(self, first: int) -> None:
        blocking = self.ops.blocking
        self._outstanding += [op for op in range(first, len(self.ops)) if not blocking[op]]

    def _join(self, ops: list[int]) -> None:
        """Wait for ops in the order they were issued."""
        for op in ops:
            self._wait(Join(op))
        joined = set(ops)
        self._outstanding = [op for op in self._outstanding if op not in joined]

    def _wait(self, wait: Wait) -> None:
        if self._run_start < len(self.ops):
            self._close_run()
        self._waits.append(wait)

    def _close_run(self) -> None:
        self._runs.append(Run(self._run_start, len(self.ops), tuple(self._waits)))
        self._run_start = len(self.ops)
        self._waits = []

    def finish(self) -> StageProgram:
        """The stage's program, closed by a join on all outstanding work, transfers included."""
        self._close_run()
        self._waits = [Join(op) for op in self._outstanding]
        self._close_run()
        return StageProgram(self.ops, tuple(self._runs), self._peak_microbatches)


def _point(name: str, wg_collective: str | None) -> int:
    """At which point of the end of the step a prologue row runs; tail rows are point 3."""
    if name.startswith("grad_param_compute"):
        return 4
    if wg_collective in ("REDUCESCATTER", "ALLREDUCE"):
        return 2
    return 5 if wg_collective == "ALLGATHER" else 1
