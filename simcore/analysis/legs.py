"""The critical path in legs: one rank doing one thing of one micro-batch, as people tell the story.

Compute of 1 ns or 1 us is what files write where nothing is modelled: it is no leg, but a part of the next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from simcore.analysis.accounts import IDLE_OP
from simcore.analysis.layers import NOT_MODELLED
from simcore.program.ops import COMPUTE, PHASES, STREAMS, TO_NEXT, ComputeCost
from simcore.run.findings import Leg
from simcore.workload.model import base_name

if TYPE_CHECKING:
    from simcore.analysis.critical_path import CriticalPath

# What the spans of a micro-batch belong to: both gradients are its backward pass.
_PASS = {"fwd": "forward", "ig": "backward", "wg": "backward", "opt": "optimizer", "recompute": "recompute"}


class _Stretch(NamedTuple):
    """Segments first..last-1 of the path, of one key. is_placeholder: whether nothing of it is known."""

    first: int
    last: int
    key: tuple[int, str, int]
    is_placeholder: bool


def legs(path: CriticalPath) -> list[Leg]:
    """The legs of the critical path, in the order of time: they cover 0..step time.

    what: `forward`, `backward`, `optimizer`, `recompute`, `idle`, or the kind of group of a collective
    outside micro-batches with its layer, raw text of the file: `dp of grad_gather`; a transfer stands alone
    as `pp`.
    """
    timeline = path.simulation.timeline
    found: list[Leg] = []
    for one in _joined(_stretches(path)):
        rank, what, microbatch = one.key
        start, end, number = path.edge[one.first], path.edge[one.last], path.number[one.first]
        stage, reason = timeline.stage_of(number), path.reason(one.first)
        found.append(Leg(one.first, one.last, start, end, number, rank, stage, what, microbatch, reason))
    return found


def _stretches(path: CriticalPath) -> list[_Stretch]:
    """The path, a stretch for what a rank does of a micro-batch or in the collectives of a layer."""
    found: list[_Stretch] = []
    for index, (number, op, rank) in enumerate(zip(path.number, path.op, path.rank, strict=True)):
        key = (rank, *_pass_of(path, number, op))
        placeholder = key[2] < 0 and _is_placeholder(path, number, op)
        before = found[-1] if found else None
        if before is not None and (before.key, before.is_placeholder) == (key, placeholder):
            found[-1] = before._replace(last=index + 1)
        else:
            found.append(_Stretch(index, index + 1, key, placeholder))
    return found


def _joined(stretches: list[_Stretch]) -> list[_Stretch]:
    """Placeholders as a part of what their rank does next, the last ones of what it did before."""
    found: list[_Stretch] = []
    for one in stretches:
        before = found[-1] if found else None
        if before is not None and before.key[0] == one.key[0]:
            if before.is_placeholder:
                # Behind that there may now be more of what came before the placeholder.
                found.pop()
                one = _Stretch(before.first, one.last, one.key, one.is_placeholder)
                before = found[-1] if found else None
            if before is not None and not one.is_placeholder and before.key == one.key:
                one = found.pop()._replace(last=one.last)
        found.append(one)
    if len(found) > 1 and found[-1].is_placeholder and found[-2].key[0] == found[-1].key[0]:
        last = found.pop()
        found[-1] = found[-1]._replace(last=last.last)
    return found


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
