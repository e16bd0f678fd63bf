"""Where in a step some rows of the file are seen best."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from simcore.program.ops import PHASES
from simcore.timeline import Timeline


class Seen(NamedTuple):
    """A stretch of class `number`, ns."""

    number: int
    start_ns: int
    end_ns: int


def longest_span(timeline: Timeline, rows: Collection[int], phase: str | None = None) -> Seen | None:
    """The longest span of some rows on the first class that has any, the earliest of equal ones.

    phase: of this one alone. None where they take no time in the step.
    """
    of_phase = None if phase is None else PHASES.index(phase)
    for number in range(len(timeline.classes)):
        ops, start, end = timeline.columns(number)
        inside = [
            op
            for op, (row, one) in enumerate(zip(ops.row, ops.phase, strict=True))
            if row in rows and (of_phase is None or one == of_phase) and end[op] > start[op]
        ]
        if inside:
            op = max(inside, key=lambda op: (end[op] - start[op], -start[op]))
            return Seen(number, start[op], end[op])
    return None
