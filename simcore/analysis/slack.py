"""Slack: how much longer a span may take before the step time grows.

Durations and order of the run are frozen, a collective is lengthened for all its members: the latest end of
each node of the graph, less its end.

A class stands for many ranks. Its slack is that of a span on one of them, and on all of them alike:
no chain of dependencies meets the same op of two ranks of a class, since they run at the same time.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence

from simcore.run.graph import never
from simcore.run.simulated import SimulatedGraph
from simcore.timeline import Timeline


def slack_columns(built: SimulatedGraph, cancelled: Callable[[], bool] = never) -> list[array[int]]:
    """Per rank class, ns by which each op may take longer. Raises `Cancelled`.

    Raises ValueError for a run in queues (`Program.queued`): what they serve first depends on times.
    """
    timeline = built.timeline
    if timeline.program.queued:
        raise ValueError("no slack where collectives queue by priority")
    latest = built.graph.latest(built.durations(), timeline.step_time_ns, cancelled)
    return [
        array("q", (latest[node] - over for node, over in zip(built.nodes(number), end, strict=True)))
        for number, end in enumerate(timeline.times.end)
    ]


def least_by_row(timeline: Timeline, slacks: Sequence[Sequence[int]], rows: int) -> list[int | None]:
    """Per row of the file the least slack of its spans on any rank, ns; None for a row without spans."""
    beyond = timeline.step_time_ns + 1
    # One entry more: transfers are of row -1.
    least = [beyond] * (rows + 1)
    for number, slack in enumerate(slacks):
        for row, ns in zip(timeline.stage_program(number).ops.row, slack, strict=True):
            if ns < least[row]:
                least[row] = ns
    return [None if ns == beyond else ns for ns in least[:rows]]
