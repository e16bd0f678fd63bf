"""The critical path in legs: one rank doing one thing of one micro-batch, as people tell the story."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from simcore.analysis.accounts import IDLE_OP
from simcore.analysis.layers import NOT_MODELLED
from simcore.program.ops import COMPUTE, PHASES, STREAMS, TO_NEXT, ComputeCost
from simcore.run.findings import Leg
from simcore.run.legs import Key, stretches
from simcore.workload.model import base_name

if TYPE_CHECKING:
    from simcore.analysis.critical_path import CriticalPath

# What the spans of a micro-batch belong to: both gradients are its backward pass.
_PASS = {"fwd": "forward", "ig": "backward", "wg": "backward", "opt": "optimizer", "recompute": "recompute"}


def legs(path: CriticalPath) -> list[Leg]:
    """The legs of the critical path, in the order of time: they cover 0..step time.

    what: `forward`, `backward`, `optimizer`, `recompute`, `idle`, or the kind of group of a collective
    outside micro-batches with its layer, raw text of the file: `dp of grad_gather`; a transfer stands alone
    as `pp`.
    """
    timeline = path.simulation.timeline
    found: list[Leg] = []
    for stretch in stretches(_keyed(path)):
        rank, what, microbatch = stretch.key
        start, end, number = path.edge[stretch.first], path.edge[stretch.last], path.number[stretch.first]
        stage, reason = timeline.stage_of(number), path.reason(stretch.first)
        found.append(
            Leg(stretch.first, stretch.last, start, end, number, rank, stage, what, microbatch, reason)
        )
    return found


def _keyed(path: CriticalPath) -> Iterator[tuple[Key, bool]]:
    """What a rank does of a micro-batch or in the collectives of a layer; whether nothing is known of it."""
    for number, op, rank in zip(path.number, path.op, path.rank, strict=True):
        what, microbatch = _pass_of(path, number, op)
        yield (rank, what, microbatch), microbatch < 0 and _is_placeholder(path, number, op)


def _is_placeholder(path: CriticalPath, number: int, op: int) -> bool:
    if op == IDLE_OP:
        return False
    timeline = path.simulation.timeline
    ops = timeline.stage_program(number).ops
    cost = timeline.program.costs[ops.cost[op]]
    return ops.stream[op] == COMPUTE and isinstance(cost, ComputeCost) and cost.ns in NOT_MODELLED


def _pass_of(path: CriticalPath, number: int, op: int) -> tuple[str, int]:
    """What a segment is a part of, and of which micro-batch."""
    if op == IDLE_OP:
        return "idle", -1
    simulation = path.simulation
    ops = simulation.timeline.stage_program(number).ops
    stream, microbatch = ops.stream[op], ops.microbatch[op]
    if stream >= TO_NEXT:
        return "pp", microbatch
    if microbatch < 0 and stream:
        row = ops.row[op]
        name = base_name(simulation.workload.name[row]) if row >= 0 else ""
        return f"{STREAMS[stream]} of {name}" if name else STREAMS[stream], -1
    return _PASS[PHASES[ops.phase[op]]], microbatch
