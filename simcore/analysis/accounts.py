"""The kinds of ops of a simulated run, in words."""

from __future__ import annotations

from simcore.collectives import WITH_COPIES
from simcore.engine.timeline import Timeline
from simcore.program.ops import (
    CollectiveCost,
    TransferCost,
)

IDLE_OP = -1


def op_kind(timeline: Timeline, class_id: int, op: int, with_group: bool = False) -> str:
    """Returns `compute`, a collective's name, `transfer`, or `idle` for a state change.

    with_group: whether the kind of its group stands before a collective's name.
    """
    if op == IDLE_OP:
        return "idle"
    cost = timeline.program.costs[timeline.stage_program(class_id).ops.cost[op]]
    if isinstance(cost, CollectiveCost):
        return f"{cost.group} {WITH_COPIES[cost.collective]}" if with_group else WITH_COPIES[cost.collective]
    return "transfer" if isinstance(cost, TransferCost) else "compute"
