"""Passes: when a stage does the forward or the backward of each micro-batch, and for how long.

A pass is what a stage does without a break for one micro-batch in one direction: its compute
and its blocking collectives, from the first start to the last end. Where a schedule splits the
backward (zb-h1), input and weight gradients are passes of their own. A stage of several chunks
does each micro-batch once a chunk: these are its parts. Asynchronous collectives and the transfers
between stages run beside it and do not count.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from simcore.program import Ops, Program
from simcore.program.ops import COMPUTE, FWD, WG
from simcore.program.schedules import SCHEDULES
from simcore.timeline import Timeline


class Pass(NamedTuple):
    """One pass of a rank class. microbatch: from 0, as JSON has it. part: from 0, of `parts`.

    direction: `forward`, `backward`, `input grad` or `weight grad`. start_ns, end_ns: of the step.
    """

    microbatch: int
    direction: str
    part: int
    parts: int
    start_ns: int
    end_ns: int


def class_passes(timeline: Timeline, number: int) -> list[Pass]:
    """The passes of class `number`, in the order in which its compute stream does them."""
    ops, start, end = timeline.columns(number)
    found: list[tuple[int, str, int, int]] = []
    last: tuple[int, str] | None = None
    for op, direction in _directions(timeline.program, ops):
        key = (ops.microbatch[op], direction)
        if key != last:
            found.append((*key, start[op], end[op]))
            last = key
        elif end[op] > found[-1][3]:
            found[-1] = (*found[-1][:3], end[op])
    parts: dict[tuple[int, str], int] = {}
    for microbatch, direction, _, _ in found:
        parts[microbatch, direction] = parts.get((microbatch, direction), 0) + 1
    done: dict[tuple[int, str], int] = {}
    passes = []
    for microbatch, direction, first_ns, last_ns in found:
        part = done.get((microbatch, direction), 0)
        done[microbatch, direction] = part + 1
        passes.append(Pass(microbatch, direction, part, parts[microbatch, direction], first_ns, last_ns))
    return passes


def _directions(program: Program, ops: Ops) -> list[tuple[int, str]]:
    """(op, direction) of the ops that make up passes, in issue order."""
    schedule = SCHEDULES.get(program.schedule)
    splits = schedule is not None and schedule.splits_backward
    words = ["forward" if phase == FWD else "backward" for phase in range(256)]
    if splits:
        # What is recomputed serves the input gradient that comes behind it.
        words = [word if word == "forward" else "input grad" for word in words]
        words[WG] = "weight grad"
    return [
        (op, words[ops.phase[op]])
        for op, (stream, blocking, microbatch) in enumerate(
            zip(ops.stream, ops.blocking, ops.microbatch, strict=True)
        )
        if microbatch >= 0 and (stream == COMPUTE or blocking)
    ]


def pass_at(passes: Sequence[Pass], starts: array[int], time_ns: int) -> int | None:
    """The index of the pass that runs at `time_ns`; None between passes. starts: theirs."""
    index = bisect_right(starts, time_ns) - 1
    return index if index >= 0 and time_ns < passes[index].end_ns else None
