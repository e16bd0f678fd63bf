"""Whether the stages of a pipeline can come together in the collectives that span them.

A group of kind `all` has ranks of every stage. Streams are first in, first out, and a collective
starts when every member has reached it: all stages must come to the same collectives in the same
order, and none of them may need a transfer from a stage that is held back in one. That hangs on
the order of ops alone, never on their times, so it is found here by walking through the program
without times. No format of files has such collectives in a pipeline; a workload that a program
puts together may.
"""

from __future__ import annotations

from itertools import zip_longest

from simcore.diagnostics import UsageError, printable
from simcore.program.ops import PHASES, STREAM_OF_GROUP, CollectiveCost, Join, Program, Receive, Wait
from simcore.workload import Workload

_ALL = STREAM_OF_GROUP["all"]


def check_meetings(program: Program, workload: Workload, stage_layout: str) -> None:
    """Raises `UsageError` where the step would hang in a collective over all ranks.

    stage_layout: which rows the stages were given; it is named where they were given different ones.
    """
    if not program.pipelined or not any(_ALL in stage.ops.stream for stage in program.stages):
        return
    # Op number of each collective over all ranks, per stage in the order of its stream.
    meetings = [
        [op for op, stream in enumerate(stage.ops.stream) if stream == _ALL] for stage in program.stages
    ]
    why = _other_order(program, workload, meetings) or _circle(program, workload, meetings)
    if why:
        what = f"--schedule {program.schedule}"
        what += f" --stage-layout {stage_layout}" if stage_layout != "uniform" else ""
        raise UsageError(
            f"{what}: collectives over all ranks would hang: {why}; --schedule layer-loop would fit"
        )


def _other_order(program: Program, workload: Workload, meetings: list[list[int]]) -> str | None:
    """Where a stage comes to another collective than stage 0."""
    for stage in range(1, len(meetings)):
        for number, (first, here) in enumerate(zip_longest(meetings[0], meetings[stage]), 1):
            if _identity(program, 0, first) != _identity(program, stage, here):
                return (
                    f"number {number} of a step is {_words(program, workload, 0, first)} on stage 0, "
                    f"{_words(program, workload, stage, here)} on stage {stage}"
                )
    return None


def _identity(program: Program, stage: int, op: int | None) -> tuple[int, ...] | None:
    if op is None:
        return None
    ops = program.stages[stage].ops
    return ops.row[op], ops.phase[op], ops.microbatch[op], ops.cost[op]


def _words(program: Program, workload: Workload, stage: int, op: int | None) -> str:
    if op is None:
        return "none"
    ops = program.stages[stage].ops
    cost = program.costs[ops.cost[op]]
    assert isinstance(cost, CollectiveCost)
    row, microbatch = ops.row[op], ops.microbatch[op]
    place = f"line {workload.line[row]}, {PHASES[ops.phase[op]]}"
    place += f", micro-batch {microbatch}" if microbatch >= 0 else ""
    return f"{cost.collective} of {cost.bytes} B of {printable(workload.name[row], 60)} ({place})"


def _circle(program: Program, workload: Workload, meetings: list[list[int]]) -> str | None:
    """Where a stage is held back in a collective by one that waits for a transfer."""
    walk = _Walk(program, meetings)
    while walk.advance_all():
        pass
    number = min(walk.come)
    held = [stage for stage, come in enumerate(walk.come) if come > number]
    if not held:
        return None
    absent = walk.come.index(number)
    return (
        f"stage {held[0]} waits in {_words(program, workload, held[0], meetings[held[0]][number])} "
        f"for stage {absent}, and stage {absent} for a transfer from stage {walk.source[absent]}"
    )


class _Walk:
    """The stages, each as far as it gets. come: how many collectives over all ranks each has issued.

    source: the stage whose transfer each last waited for.
    """

    def __init__(self, program: Program, meetings: list[list[int]]) -> None:
        self.come = [0] * len(meetings)
        self.source = [0] * len(meetings)
        self._stages = program.stages
        self._number = [{op: number for number, op in enumerate(ops)} for ops in meetings]
        self._sent: set[int] = set()
        self._place = [(0, 0)] * len(meetings)
        self._next_op = [0] * len(meetings)

    def advance_all(self) -> bool:
        """Let every stage go on until something is not there. Whether one went on at all."""
        before = [*self._place], [*self._next_op], [*self.come]
        for stage in range(len(self._stages)):
            self._advance(stage)
        return before != (self._place, self._next_op, self.come)

    def _advance(self, stage: int) -> None:
        program = self._stages[stage]
        run_number, wait_number = self._place[stage]
        while run_number < len(program.runs):
            run = program.runs[run_number]
            while wait_number < len(run.waits) and self._is_over(stage, run.waits[wait_number]):
                wait_number += 1
            if wait_number < len(run.waits) or not self._issue(stage, run.last):
                break
            run_number, wait_number = run_number + 1, 0
        self._place[stage] = run_number, wait_number

    def _is_over(self, stage: int, wait: Wait) -> bool:
        if isinstance(wait, Receive):
            self.source[stage] = wait.source
            return wait.message in self._sent
        return not isinstance(wait, Join) or self._has_met(stage, wait.op)

    def _has_met(self, stage: int, op: int) -> bool:
        """Whether every stage has come to an op; one that others take no part in ends by itself."""
        number = self._number[stage].get(op)
        return number is None or number < min(self.come)

    def _issue(self, stage: int, last: int) -> bool:
        """Issue the ops before `last`. False if the stage is held back in one of them."""
        ops = self._stages[stage].ops
        while self._next_op[stage] < last:
            op = self._next_op[stage]
            number = self._number[stage].get(op)
            if number is not None:
                self.come[stage] = number + 1
                if ops.blocking[op] and not self._has_met(stage, op):
                    return False
            elif ops.message[op] >= 0:
                self._sent.add(ops.message[op])
            self._next_op[stage] += 1
        return True
