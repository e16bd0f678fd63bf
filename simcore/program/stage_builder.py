"""Builds the step of one stage: micro-batches in the order of a schedule, waits, transfers."""

from __future__ import annotations

from collections.abc import Sequence

from simcore.program.ops import (
    FWD,
    IG,
    TO_NEXT,
    TO_PREVIOUS,
    WG,
    Join,
    Ops,
    Receive,
    Run,
    StageProgram,
    TransferCost,
    Wait,
)
from simcore.program.plan import Plan, RowOps, shares
from simcore.workload import Cells


class StageBuilder:
    """The step of one stage, put together in the order in which its schedule calls.

    Waits and transfers between stages come with the calls; `finish` adds the last join. A
    virtual stage is chunk * P + stage: activations go from one to the next, gradients back.
    """

    def __init__(self, plan: Plan, stage: int) -> None:
        self.plan = plan
        self.stage = stage
        self.stages = plan.layout.pp
        self.ops = Ops()
        self._row_ops = RowOps(plan, self.ops)
        self._runs: list[Run] = []
        self._waits: list[Wait] = []
        self._run_start = 0
        self._outstanding: list[int] = []
        self._pass_ends: list[int] = []
        self._held = 0
        self._most_held = 0
        self._holding: list[tuple[int, int, int]] = []
        self._exchanges = 0
        self._gathered: dict[int, list[int]] = {}
        names, wg = plan.workload.name, plan.workload.wg
        self._points: list[list[int]] = [[], [], [], [], []]
        stages = plan.workload.stages
        self._prologue = stages[stage].prologue if stages else plan.structure.prologue
        for row in self._prologue:
            self._points[_point(names[row], wg.collective[row]) - 1].append(row)

    # -- micro-batches of a pipeline -------------------------------------------------

    def forward(self, microbatch: int, chunk: int = 0) -> None:
        """F of a micro-batch: receive, the chunk's rows, send on; after the last chunk the loss rows."""
        here = chunk * self.stages + self.stage
        if here > 0:
            self._receive(FWD, microbatch, here - 1)
        self._hold(chunk, 1)
        if microbatch == 0 and self._gathered:
            self._forward_as_gathered(chunk)
        else:
            self._segment("fwd", microbatch, self.plan.rows(self.stage, microbatch, chunk))
        if here < self._last_virtual_stage:
            # The activation leaves when the chunk's last row has ended; loss rows come after it.
            self._send(FWD, microbatch, here, here + 1)
        if chunk == self.plan.chunks - 1:
            self._segment("fwd", microbatch, self.plan.loss_rows(self.stage))

    def backward(self, microbatch: int, chunk: int = 0) -> None:
        """B of a micro-batch: receive, the loss rows' gradients, the rows in reverse, send back."""
        self._backward(microbatch, chunk, "bwd")
        self._hold(chunk, -1)

    def input_grad(self, microbatch: int, chunk: int = 0) -> None:
        """I of a micro-batch: B without its weight gradients."""
        self._backward(microbatch, chunk, "ig")

    def weight_grad(self, microbatch: int, chunk: int = 0) -> None:
        """W of a micro-batch: the weight gradients of the loss rows and of its rows in reverse."""
        if chunk == self.plan.chunks - 1:
            self._segment("wg", microbatch, self.plan.loss_rows(self.stage))
        self._gradients(microbatch, chunk, "wg")
        self._hold(chunk, -1)

    def _hold(self, chunk: int, change: int) -> None:
        """The activations of a chunk of one micro-batch are there from here on, or no longer."""
        self._held += change
        self._most_held = max(self._most_held, self._held)
        self._holding.append((len(self.ops), chunk, change))

    def _backward(self, microbatch: int, chunk: int, part: str) -> None:
        here = chunk * self.stages + self.stage
        if here < self._last_virtual_stage:
            self._receive(IG, microbatch, here + 1)
        if chunk == self.plan.chunks - 1:
            self._segment(part, microbatch, self.plan.loss_rows(self.stage))
        self._gradients(microbatch, chunk, part)
        if here > 0:
            self._send(IG, microbatch, here, here - 1)

    def _gradients(self, microbatch: int, chunk: int, part: str) -> None:
        rows = self.plan.rows(self.stage, microbatch, chunk)
        last = microbatch == self.plan.microbatches - 1
        if last and part != "ig" and self.plan.overlap_grad_reduce and self._reduced_in_backward():
            self._gradients_and_reductions(microbatch, part, rows)
        else:
            self._segment(part, microbatch, rows)

    @property
    def _last_virtual_stage(self) -> int:
        return self.stages * self.plan.chunks - 1

    def _segment(self, part: str, microbatch: int, rows: tuple[int, ...]) -> None:
        key = (part, rows)
        ops = self.plan.segments.get(key)
        if ops is None:
            ops = self.plan.segments[key] = Ops()
            row_ops = RowOps(self.plan, ops)
            if part == "fwd":
                for row in rows:
                    row_ops.forward(row)
            else:
                recomputed = self.plan.recomputed(rows)
                for row in reversed(rows):
                    self._row_gradients(row_ops, part, row, recomputed)
        first = len(self.ops)
        self.ops.extend(ops, microbatch)
        self._remember_asynchronous(first)

    @staticmethod
    def _row_gradients(row_ops: RowOps, part: str, row: int, recomputed: dict[int, list[int]]) -> None:
        if part != "wg":
            row_ops.recompute(recomputed.get(row, ()))
            row_ops.input_grad(row)
        if part != "ig":
            row_ops.weight_grad(row, blocking=False)

    def _receive(self, phase: int, microbatch: int, producer: int) -> None:
        source = producer % self.stages
        if source != self.stage:
            self._wait(Receive(self.plan.message(phase, microbatch, producer), source))

    def _send(self, phase: int, microbatch: int, here: int, consumer: int) -> None:
        step = consumer % self.stages - self.stage
        if step == 0:
            return
        cost = self.plan.cost(TransferCost(step, self.plan.transfer_bytes))
        self._outstanding.append(len(self.ops))
        stream = TO_NEXT if phase == FWD else TO_PREVIOUS
        self.ops.append(stream, phase, 0, cost, -1, microbatch, self.plan.message(phase, microbatch, here))

    # -- communication beside compute ------------------------------------------------

    def _all_rows(self, microbatch: int) -> list[int]:
        """The rows of a micro-batch on this stage, chunk after chunk, in forward order."""
        return [
            row for chunk in range(self.plan.chunks) for row in self.plan.rows(self.stage, microbatch, chunk)
        ]

    def _weights(self, rows: list[int]) -> list[int]:
        """What a layer's share of a gradient or parameter buffer goes by: its weight-gradient time."""
        compute_ns = self.plan.workload.wg.compute_ns
        return [compute_ns[row] for row in rows]

    def _reduced_in_backward(self) -> bool:
        """Whether reductions can be shared out: some row of the last micro-batch has a wg time."""
        return bool(self._points[1]) and any(self._weights(self._all_rows(self.plan.microbatches - 1)))

    def _gradients_and_reductions(self, microbatch: int, part: str, rows: tuple[int, ...]) -> None:
        """The rows in reverse, each row's share of every reduction issued after its weight gradient."""
        wg = self.plan.workload.wg
        order = self._all_rows(microbatch)[::-1]
        weights = self._weights(order)
        parts = {
            reduction: dict(zip(order, shares(weights, wg.bytes[reduction]), strict=True))
            for reduction in self._points[1]
        }
        first = len(self.ops)
        row_ops = RowOps(self.plan, self.ops, dict.fromkeys([*rows, *parts], microbatch))
        recomputed = self.plan.recomputed(rows)
        for row in reversed(rows):
            self._row_gradients(row_ops, part, row, recomputed)
            for reduction, by_row in parts.items():
                row_ops.part_of_collective(wg, reduction, WG, False, by_row[row])
        self._remember_asynchronous(first)

    def _issue_gathers(self) -> None:
        """All parameter gathers at once, layer by layer; each layer's first F waits for its own."""
        wg = self.plan.workload.wg
        order = self._all_rows(0)
        weights = self._weights(order)
        if not any(weights):
            return
        parts = {gather: shares(weights, wg.bytes[gather]) for gather in self._points[4]}
        for place, row in enumerate(order):
            first = len(self.ops)
            for gather, by_place in parts.items():
                self._row_ops.part_of_collective(wg, gather, WG, False, by_place[place])
            self._gathered[row] = list(range(first, len(self.ops)))
            self._remember_asynchronous(first)

    def _forward_as_gathered(self, chunk: int) -> None:
        """The first F of a chunk: each row waits for its parameters."""
        rows = self.plan.rows(self.stage, 0, chunk)
        row_ops = RowOps(self.plan, self.ops, dict.fromkeys(rows, 0))
        for row in rows:
            self._join(self._gathered[row])
            row_ops.forward(row)

    # -- the whole file as one program -----------------------------------------------

    def loop_over_rows(self) -> None:
        """Per pass, forward over all rows of the file, then backward in reverse, every row once.

        The forward of a row waits for its weight-gradient collective of the pass before.
        """
        rows = tuple(range(len(self.plan.workload)))
        blocks = enumerate(self.plan.structure.blocks)
        row_ops = RowOps(self.plan, self.ops, {row: block for block, members in blocks for row in members})
        recomputed = self.plan.recomputed(rows)
        reduced: dict[int, int] = {}
        joined: set[int] = set()
        for number in range(self.plan.passes):
            if number:
                self._end_pass()
            for row in rows:
                if row in reduced:
                    joined.add(reduced[row])
                    self._wait(Join(reduced.pop(row)))
                row_ops.forward(row)
            for row in reversed(rows):
                first = len(self.ops)
                self._row_gradients(row_ops, "bwd", row, recomputed)
                self._remember_asynchronous(first)
                if len(self.ops) > first and not self.ops.blocking[-1]:
                    reduced[row] = len(self.ops) - 1
        self._outstanding = [op for op in self._outstanding if op not in joined]
        self._most_held = len(self.plan.structure.blocks)

    def _end_pass(self) -> None:
        """A pass is over here: what comes next is a run of its own."""
        if self._waits or self._run_start < len(self.ops):
            self._close_run()
        self._pass_ends.append(len(self._runs))

    # -- an op table -----------------------------------------------------------------

    def loop_over_table(self, order: Sequence[int]) -> None:
        """Per pass, forward over the rows of `order`, then backward; a SENDRECV goes between stages.

        A row waits forward for its asynchronous collectives of the backward before, in each place
        of `order` for those of that place.
        """
        fwd, ig = self.plan.workload.fwd, self.plan.workload.ig
        row_ops = RowOps(self.plan, self.ops, dict.fromkeys(order, 0))
        reduced: dict[int, list[int]] = {}
        joined: set[int] = set()
        for number in range(self.plan.passes):
            if number:
                self._end_pass()
            for place, row in enumerate(order):
                for op in reduced.pop(place, ()):
                    joined.add(op)
                    self._wait(Join(op))
                row_ops.forward(row)
                self._exchange(fwd, row, FWD)
            for place in reversed(range(len(order))):
                row, first = order[place], len(self.ops)
                row_ops.input_grad(row)
                self._exchange(ig, row, IG)
                row_ops.weight_grad(row, blocking=False)
                if issued := self._asynchronous(first):
                    reduced[place] = issued
        self._outstanding = [op for op in self._asynchronous(0) if op not in joined]
        self._most_held = 1

    def _asynchronous(self, first: int) -> list[int]:
        """The collectives from op `first` on that compute does not wait for; for its own transfers it has."""
        blocking, message = self.ops.blocking, self.ops.message
        return [op for op in range(first, len(self.ops)) if not blocking[op] and message[op] < 0]

    def _exchange(self, cells: Cells, row: int, phase: int) -> None:
        """The SENDRECV of a row: to the next stage (FWD) or the one before (IG), and compute waits.

        It waits for what it sends and for what it receives; every stage does the same at once.
        """
        if cells.group[row] != "pp" or not cells.bytes[row]:
            return
        step, stream = (1, TO_NEXT) if phase == FWD else (-1, TO_PREVIOUS)
        number = self._exchanges = self._exchanges + 1
        if 0 <= self.stage + step < self.stages:
            cost = self.plan.cost(TransferCost(step, cells.bytes[row]))
            op = len(self.ops)
            message = self.plan.message(phase, number, self.stage)
            self.ops.append(stream, phase, 0, cost, row, 0, message)
            self._wait(Join(op))
        if 0 <= self.stage - step < self.stages:
            self._receive(phase, number, self.stage - step)

    # -- start and end of a pipelined step -------------------------------------------

    def start_of_step(self) -> None:
        """Forward cells of the prologue rows, once, in row order; before them overlapped gathers."""
        if self.plan.overlap_param_gather and self.plan.microbatches:
            self._issue_gathers()
        for row in self._prologue:
            self._row_ops.forward(row)

    def end_of_step(self) -> None:
        """The five points of the end of a step, each waiting for the one before."""
        others, reductions, _, optimizer_compute, gathers = self._points
        rows = self._row_ops
        for row in others:
            rows.input_grad(row)
            rows.weight_grad(row, blocking=True)
        overlapped = self.plan.overlap_grad_reduce and self.plan.microbatches and self._reduced_in_backward()
        self._issue_together(reductions, issued=bool(overlapped))
        for row in self.plan.structure.tail:
            rows.forward(row)
            rows.input_grad(row)
            rows.weight_grad(row, blocking=True)
        for row in optimizer_compute:
            rows.input_grad(row)
            rows.weight_grad(row, blocking=True)
        self._issue_together(gathers, issued=bool(self._gathered))

    def _issue_together(self, members: list[int], issued: bool) -> None:
        """All compute cells of the rows, then all their weight-gradient collectives, then a join.

        The join is over every collective still running, those of backward included: the
        optimizer needs all gradients. issued: the collectives ran earlier, layer by layer.
        """
        wg = self.plan.workload.wg
        for row in members:
            self._row_ops.input_grad(row)
            self._row_ops.compute(wg, row, WG)
        first = len(self.ops)
        for row in members if not issued else ():
            self._row_ops.collective(wg, row, WG, blocking=False)
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
        # Chunks held, in whole micro-batches: V chunks are one.
        held = -(-self._most_held // self.plan.chunks)
        pass_ends = (*self._pass_ends, len(self._runs) - 1)
        return StageProgram(
            self.ops, tuple(self._runs), held, pass_ends,
            peak_chunks=self._most_held, held=tuple(self._holding),
        )  # fmt: skip


def _point(name: str, wg_collective: str | None) -> int:
    """At which point of the end of the step a prologue row runs; tail rows are point 3."""
    if name.startswith("grad_param_compute"):
        return 4
    if wg_collective in ("REDUCESCATTER", "ALLREDUCE"):
        return 2
    return 5 if wg_collective == "ALLGATHER" else 1
