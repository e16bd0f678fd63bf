"""The critical path in legs: one rank doing one thing of one micro-batch, as people tell the story."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simcore.analysis.accounts import IDLE_OP
from simcore.program.ops import PHASES, STREAMS, TO_NEXT
from simcore.run.findings import Leg

if TYPE_CHECKING:
    from simcore.analysis.results import Results

# What the spans of a micro-batch belong to: both gradients are its backward pass.
_PASS = {"fwd": "forward", "ig": "backward", "wg": "backward", "opt": "optimizer", "recompute": "recompute"}


def legs(results: Results) -> list[Leg]:
    """The legs of the critical path, in the order of time: they cover 0..step time.

    what: `forward`, `backward`, `optimizer`, `recompute`, `idle`, or the kind of group of a collective
    outside micro-batches; a transfer stands alone as `pp`.
    """
    path, classes = results.critical_path, results.simulation.timeline.classes
    found: list[Leg] = []
    keys = [
        (rank, *_pass_of(results, number, op))
        for number, op, rank in zip(path.number, path.op, path.rank, strict=True)
    ]
    first = 0
    for index in range(1, len(keys) + 1):
        if index == len(keys) or keys[index] != keys[first]:
            rank, what, microbatch = keys[first]
            start, end, number = path.edge[first], path.edge[index], path.number[first]
            stage, reason = classes[number].stage, path.reason(first)
            found.append(Leg(first, index, start, end, number, rank, stage, what, microbatch, reason))
            first = index
    return found


def _pass_of(results: Results, number: int, op: int) -> tuple[str, int]:
    """What a segment is a part of, and of which micro-batch."""
    if op == IDLE_OP:
        return "idle", -1
    ops = results.simulation.timeline.stage_program(number).ops
    stream, microbatch = ops.stream[op], ops.microbatch[op]
    if stream >= TO_NEXT:
        return "pp", microbatch
    if microbatch < 0 and stream:
        return STREAMS[stream], -1
    return _PASS[PHASES[ops.phase[op]]], microbatch
