"""When the passes of a layer-loop are over."""

from __future__ import annotations

from simcore.program.ops import COMPUTE, Join, Pause
from simcore.timeline import Timeline


def pass_ends(timeline: Timeline) -> list[int]:
    """ns at which the last rank comes to the end of each pass's loop."""
    by_class = [_of_class(timeline, number) for number in range(len(timeline.classes))]
    return [max(ends) for ends in zip(*by_class, strict=True)]


def _of_class(timeline: Timeline, number: int) -> list[int]:
    stage_program = timeline.stage_program(number)
    *earlier, _ = stage_program.pass_ends
    ends = []
    if earlier:
        # Walk the program beside its times; the last pass needs no walk, its end is known.
        ops, _, end = timeline.columns(number)
        now, wanted = 0, set(earlier)
        for index, run in enumerate(stage_program.runs[: earlier[-1] + 1]):
            ends += [now] * earlier.count(index) if index in wanted else []
            for wait in run.waits:
                if isinstance(wait, Pause):
                    now += wait.ns
                elif isinstance(wait, Join):
                    now = max(now, end[wait.op] + wait.after)
                # What an op table receives its sender waits for too: the last rank is there no later.
            for op in range(run.first, run.last):
                if ops.stream[op] == COMPUTE or ops.blocking[op]:
                    now = max(now, end[op])
    return [*ends, timeline.times.loop_end[number]]
