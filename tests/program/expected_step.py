"""The step of one stage, written down straight from the rules of schedules: a second statement of them.

A step is a list of actions in the order in which one rank does or issues them:
("compute", phase, row, microbatch, ns), ("comm", phase, row, microbatch, stream, blocking,
collective, bytes), ("send", stage, microbatch), ("receive", stage, microbatch) and ("join",
actions), a wait for earlier actions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from simcore.layout import Layout
from simcore.program import Program
from simcore.program.ops import PHASES, STREAMS, CollectiveCost, ComputeCost, Receive, TransferCost
from simcore.workload import Workload

Action = tuple[Any, ...]


def flattened(program: Program, stage: int) -> list[Action]:
    """What the program of a stage does, as actions."""
    stage_program = program.stages[stage]
    ops = stage_program.ops
    actions: list[Action] = []
    of_op: dict[int, Action] = {}
    senders = {
        message: (number, one.ops.microbatch[op])
        for number, one in enumerate(program.stages)
        for op, message in enumerate(one.ops.message)
        if message >= 0
    }
    for run in stage_program.runs:
        joined = []
        for wait in run.waits:
            if isinstance(wait, Receive):
                source, microbatch = senders[wait.message]
                assert source == wait.source
                actions.append(("receive", source, microbatch))
            else:
                joined.append(of_op[wait.op])
        if joined:
            actions.append(("join", joined))
        for op in range(run.first, run.last):
            phase, cost = PHASES[ops.phase[op]], program.costs[ops.cost[op]]
            place = (phase, ops.row[op], ops.microbatch[op])
            if isinstance(cost, ComputeCost):
                of_op[op] = ("compute", *place, cost.ns)
            elif isinstance(cost, CollectiveCost):
                stream = STREAMS[ops.stream[op]]
                assert stream == cost.group
                of_op[op] = ("comm", *place, stream, bool(ops.blocking[op]), cost.collective, cost.bytes)
            else:
                assert isinstance(cost, TransferCost)
                of_op[op] = ("send", stage + cost.step, ops.microbatch[op])
            actions.append(of_op[op])
    return actions


class ExpectedStep:
    """Writes the actions of one stage."""

    def __init__(self, workload: Workload, layout: Layout, microbatches: int | None) -> None:
        self.workload, self.layout = workload, layout
        names = workload.name
        starts = [row for row, name in enumerate(names) if name.startswith("embedding_layer")]
        after = (
            row for row in range(starts[-1], len(names)) if names[row].startswith(("cross_", "optimizer"))
        )
        end = next(after, len(names))
        self.prologue = list(range(starts[0]))
        self.blocks = [list(range(*pair)) for pair in zip(starts, [*starts[1:], end], strict=True)]
        self.loss = [row for row in range(end, len(names)) if names[row].startswith("cross_entropy")]
        self.tail = [row for row in range(end, len(names)) if row not in self.loss]
        self.microbatches = microbatches or len(self.blocks)

    # -- rows ------------------------------------------------------------------------

    def cell(
        self, row: int, cell: str, microbatch: int, blocking: bool = True, phase: str = ""
    ) -> Iterator[Action]:
        cells = {"fwd": self.workload.fwd, "ig": self.workload.ig, "wg": self.workload.wg}[cell]
        optimizer = row in self.tail or self.workload.name[row].startswith("grad_param_compute")
        place = ("opt" if optimizer else phase or cell, row, microbatch)
        if cells.compute_ns[row]:
            yield ("compute", *place, cells.compute_ns[row])
        group, size = cells.group[row], cells.bytes[row]
        if group and size and self._members(group) > 1:
            yield ("comm", *place, group, blocking, cells.collective[row], size)

    def forward(self, rows: list[int], microbatch: int) -> Iterator[Action]:
        for row in rows:
            yield from self.cell(row, "fwd", microbatch)

    def backward(self, rows: list[int], microbatch: int) -> Iterator[Action]:
        header = self.workload.header
        for row in reversed(rows):
            before = [checkpoint for checkpoint in header.checkpoints if checkpoint < row]
            if row in header.checkpoint_initiates and before:
                for again in range(max(before), row):
                    if again in rows:
                        yield from self.cell(again, "fwd", self.of_row(again, microbatch), phase="recompute")
            of_row = self.of_row(row, microbatch)
            yield from self.cell(row, "ig", of_row)
            yield from self.cell(row, "wg", of_row, blocking=False)

    def of_row(self, row: int, microbatch: int | None) -> int:
        return microbatch if microbatch is not None else -1

    def _members(self, kind: str) -> int:
        layout = self.layout
        shards = layout.tp * layout.dp // layout.ep if layout.dp % layout.ep else layout.dp // layout.ep
        sizes = {"tp": layout.tp, "ep": layout.ep, "dp": layout.dp, "dp_ep": shards}
        return sizes.get(kind, layout.tp * layout.dp * layout.pp)

    # -- the whole step --------------------------------------------------------------

    def one_f_one_b(self, stage: int) -> list[Action]:
        """Start of step, warm-up, pairs, the rest, end of step, final join."""
        actions: list[Action] = list(self.forward(self.prologue, -1))
        count, last = self.microbatches, self.layout.pp - 1
        forwards, backwards = 0, 0
        while backwards < count:
            if forwards < count and forwards - backwards < min(count, last - stage) + 1:
                if stage > 0:
                    actions.append(("receive", stage - 1, forwards))
                actions += self.forward(self.blocks[forwards % len(self.blocks)], forwards)
                if stage < last:
                    actions.append(("send", stage + 1, forwards))
                actions += self.forward(self.loss, forwards)
                forwards += 1
            else:
                if stage < last:
                    actions.append(("receive", stage + 1, backwards))
                actions += self.backward(self.loss, backwards)
                actions += self.backward(self.blocks[backwards % len(self.blocks)], backwards)
                if stage > 0:
                    actions.append(("send", stage - 1, backwards))
                backwards += 1
        self.end_of_step(actions)
        return self.joined(actions)

    def end_of_step(self, actions: list[Action]) -> None:
        names, collective = self.workload.name, self.workload.wg.collective
        update = [row for row in self.prologue if names[row].startswith("grad_param_compute")]
        rest = [row for row in self.prologue if row not in update]
        reduce = [row for row in rest if collective[row] in ("ALLREDUCE", "REDUCESCATTER")]
        gather = [row for row in rest if collective[row] == "ALLGATHER"]
        for row in rest:
            if row not in reduce and row not in gather:
                actions += [*self.cell(row, "ig", -1), *self.cell(row, "wg", -1)]
        self.together(actions, reduce)
        for row in self.tail:
            for cell in ("fwd", "ig", "wg"):
                actions += self.cell(row, cell, -1)
        for row in update:
            actions += [*self.cell(row, "ig", -1), *self.cell(row, "wg", -1)]
        self.together(actions, gather)

    def together(self, actions: list[Action], rows: list[int]) -> None:
        wg = [[*self.cell(row, "wg", -1, blocking=False)] for row in rows]
        for row, cell in zip(rows, wg, strict=True):
            actions += [*self.cell(row, "ig", -1), *[action for action in cell if action[0] == "compute"]]
        actions += [action for cell in wg for action in cell if action[0] == "comm"]
        self.joined(actions, transfers=False)

    def joined(self, actions: list[Action], transfers: bool = True) -> list[Action]:
        """A join on whatever runs asynchronously and is not joined yet, in the order of issue."""
        outstanding: list[Action] = []
        for action in actions:
            if (action[0] == "comm" and not action[5]) or action[0] == "send":
                outstanding.append(action)
            elif action[0] == "join":
                for done in action[1]:
                    outstanding.remove(done)
        wanted = [action for action in outstanding if transfers or action[0] != "send"]
        if wanted:
            actions.append(("join", wanted))
        return actions

    def layer_loop(self) -> list[Action]:
        """Forward over all rows, then backward in reverse, every row once."""
        block_of = {row: number for number, block in enumerate(self.blocks) for row in block}
        self.of_row = lambda row, _: block_of.get(row, -1)  # type: ignore[method-assign]
        rows = list(range(len(self.workload)))
        actions = [action for row in rows for action in self.cell(row, "fwd", block_of.get(row, -1))]
        actions += self.backward(rows, -1)
        return self.joined(actions)
