"""Passes: when a stage does the forward or the backward of each micro-batch, and for how long.

A pass is what a stage does without a break for one micro-batch in one direction: its compute and its blocking
collectives, from the first start to the last end. Where a schedule splits the backward, input and weight
gradients are separate passes. A stage of several chunks does each micro-batch once per chunk: these are its
parts. The passes of an overlapped pair overlap in time. Asynchronous collectives and the transfers between
stages run concurrently and do not count.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence

from simcore.engine.timeline import Timeline
from simcore.program import Ops
from simcore.program.ops import COMPUTE, FWD, ActionOps
from simcore.records import NamedTuple


class Pass(NamedTuple):
    """One pass of a rank class."""

    microbatch: int
    """The micro-batch, from 0, as in JSON."""
    direction: str
    """`forward`, `backward`, `input grad` or `weight grad`."""
    part: int
    """The part, from 0."""
    parts: int
    """The number of parts."""
    start_ns: int
    """When it begins, ns of the step."""
    end_ns: int
    """When it ends, ns of the step."""


# By kind of action of a schedule; recomputation belongs to the backward that follows it.
_DIRECTIONS = {"F": "forward", "B": "backward", "I": "input grad", "W": "weight grad"}


def find_passes(timeline: Timeline, class_id: int) -> list[Pass]:
    """Returns the passes of a class, in the order in which its compute stream begins them."""
    ops, start, end = timeline.columns(class_id)
    stretches = timeline.stage_program(class_id).stretches
    # For each pass (step, micro-batch, direction, start, end).
    spans: list[tuple[int, int, str, int, int]] = []
    if stretches:
        for stretch in stretches:
            members = _action_ops(ops, stretch)
            if members:
                last_ns = max(end[op] for op in members)
                action = stretch.action
                direction = _DIRECTIONS[action.kind]
                spans.append((stretch.step, action.microbatch, direction, start[members[0]], last_ns))
    else:
        last: tuple[int, str] | None = None
        for op, direction in _op_directions(ops):
            key = (ops.microbatch[op], direction)
            if key != last:
                spans.append((0, *key, start[op], end[op]))
                last = key
            elif end[op] > spans[-1][4]:
                spans[-1] = (*spans[-1][:4], end[op])
    parts: dict[tuple[int, int, str], int] = {}
    for span in spans:
        parts[span[:3]] = parts.get(span[:3], 0) + 1
    finished_parts: dict[tuple[int, int, str], int] = {}
    passes = []
    for step, microbatch, direction, first_ns, last_ns in spans:
        key_of_pass = (step, microbatch, direction)
        part = finished_parts.get(key_of_pass, 0)
        finished_parts[key_of_pass] = part + 1
        passes.append(Pass(microbatch, direction, part, parts[key_of_pass], first_ns, last_ns))
    return passes


def _action_ops(ops: Ops, stretch: ActionOps) -> list[int]:
    """Returns the ops of an action that count, without those of the action that it alternates with."""
    action = stretch.action
    forward = action.kind == "F"
    return [
        op
        for op in range(stretch.first, stretch.last)
        if ops.microbatch[op] == action.microbatch
        and (ops.phase[op] == FWD) == forward
        and (ops.stream[op] == COMPUTE or ops.blocking[op])
    ]


def _op_directions(ops: Ops) -> list[tuple[int, str]]:
    """Returns (op, direction) of the ops that make up passes of a loop over the rows, in issue order."""
    direction_of = ["forward" if phase == FWD else "backward" for phase in range(256)]
    return [
        (op, direction_of[ops.phase[op]])
        for op, (stream, blocking, microbatch) in enumerate(
            zip(ops.stream, ops.blocking, ops.microbatch, strict=True)
        )
        if microbatch >= 0 and (stream == COMPUTE or blocking)
    ]


def find_pass(passes: Sequence[Pass], starts: array[int], time_ns: int) -> int | None:
    """Returns the index of the pass that runs at `time_ns`; None between passes. starts: of the passes."""
    index = bisect_right(starts, time_ns) - 1
    return index if index >= 0 and time_ns < passes[index].end_ns else None
