"""Spans of a stream one by one, as a test reads them; the program draws from columns."""

from __future__ import annotations

from collections.abc import Iterator

from simcore.engine.timeline import Span, Timeline
from simcore.program.ops import STREAMS


def stream_spans(timeline: Timeline, number: int, stream: str) -> Iterator[Span]:
    """The spans of one stream of class `number`, in time order."""
    code, start, end = STREAMS.index(stream), timeline.times.start[number], timeline.times.end[number]
    ops = [op for op, lane in enumerate(timeline.stage_program(number).ops.stream) if lane == code]
    if timeline.program.queued:
        # Priorities decide there what is served first, and chunks of several run in turn.
        ops.sort(key=lambda op: (start[op], end[op], op))
    return (timeline.span(number, op) for op in ops)
