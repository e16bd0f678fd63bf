"""What the ops of a simulated run are, and the accounts of its stages together."""

from __future__ import annotations

from simcore.collectives import WITH_COPIES
from simcore.engine.timeline import Timeline
from simcore.program.ops import (
    CollectiveCost,
    TransferCost,
)

IDLE_OP = -1


def op_kind(timeline: Timeline, class_id: int, op: int, with_group: bool = False) -> str:
    """`compute`, a collective's name, `transfer`, or `idle` for a state change.

    with_group: with the kind of its group before a collective's name.
    """
    if op == IDLE_OP:
        return "idle"
    cost = timeline.program.costs[timeline.stage_program(class_id).ops.cost[op]]
    if isinstance(cost, CollectiveCost):
        return f"{cost.group} {WITH_COPIES[cost.collective]}" if with_group else WITH_COPIES[cost.collective]
    return "transfer" if isinstance(cost, TransferCost) else "compute"
