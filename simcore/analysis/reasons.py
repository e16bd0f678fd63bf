"""Why something could not start earlier, in the field's words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simcore.analysis.accounts import IDLE_OP
from simcore.collectives import NAMES
from simcore.program.ops import COMPUTE, FWD, RECOMPUTE, STREAMS, TO_NEXT, CollectiveCost, TransferCost
from simcore.run.graph import ARRIVED, BUSY, JOINED, QUEUED, RECEIVED
from simcore.units import duration

if TYPE_CHECKING:
    from simcore.analysis.dependencies import Cause
    from simcore.simulation import Simulation

# What a `Cause` can be to what waits for it beside the words of the graph: a state change; a collective that
# it joins and that is seen some time after its end.
PAUSED, SEEN = ARRIVED + 1, ARRIVED + 2
FIRST_REASON = "the step begins"


def reason_words(simulation: Simulation, cause: Cause, number: int, op: int, late: int) -> str:
    """Why `op` of class `number` could not start before `cause` was over.

    late: the rank that came late, if the cause is another member's.
    """
    if cause.member >= 0:
        return f"rank {late} comes late to the {_name(simulation, number, op)}"
    if cause.why == PAUSED:
        return f"a state change of {duration(cause.end_ns - cause.start_ns)}"
    what = _name(simulation, cause.number, cause.op)
    if cause.why == SEEN:
        times = simulation.timeline.times
        later = cause.end_ns - times.end[cause.number][cause.op]
        return f"the {what} is seen {duration(later)} after its end"
    if cause.why == QUEUED:
        return f"the queues serve another {what} first"
    ops = simulation.timeline.stage_program(cause.number).ops
    stream = ops.stream[cause.op]
    if cause.why == RECEIVED:
        stage = simulation.timeline.classes[cause.number].stage
        handed = "activation" if ops.phase[cause.op] in (FWD, RECOMPUTE) else "gradient"
        return f"stage {stage} sends the {handed}"
    if cause.why == BUSY:
        where = f"the {STREAMS[stream]} stream"
        if stream >= TO_NEXT:
            where = f"the channel to {_target(simulation, cause)}"
        return f"{where} is busy with the {op_kind(simulation, cause.number, cause.op)} before it"
    if cause.why == JOINED:
        return f"it waits for the {what}" + (f" to {_target(simulation, cause)}" if stream >= TO_NEXT else "")
    return "compute before it" if stream == COMPUTE else f"the {what} before it"


def _target(simulation: Simulation, cause: Cause) -> str:
    timeline = simulation.timeline
    cost = timeline.program.costs[timeline.stage_program(cause.number).ops.cost[cause.op]]
    assert isinstance(cost, TransferCost)
    return f"stage {timeline.classes[cause.number].stage + cost.step}"


def _name(simulation: Simulation, number: int, op: int) -> str:
    """`tp all-gather`, `transfer`, `compute`: what an op is."""
    return op_kind(simulation, number, op, with_group=True)


def op_kind(simulation: Simulation, number: int, op: int, with_group: bool = False) -> str:
    """`compute`, a collective's name, `transfer`, or `idle` for a state change.

    with_group: with the kind of its group before a collective's name.
    """
    if op == IDLE_OP:
        return "idle"
    timeline = simulation.timeline
    cost = timeline.program.costs[timeline.stage_program(number).ops.cost[op]]
    if isinstance(cost, CollectiveCost):
        return f"{cost.group} {NAMES[cost.collective]}" if with_group else NAMES[cost.collective]
    return "transfer" if isinstance(cost, TransferCost) else "compute"
