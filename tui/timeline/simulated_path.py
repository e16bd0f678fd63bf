"""The critical path of a simulated run, by the lanes that show it."""

from __future__ import annotations

from collections.abc import Iterator

from simcore.analysis import Results
from simcore.analysis.accounts import IDLE_OP
from simcore.program.ops import STREAMS, TO_NEXT
from tui.timeline.critical import PathLanes
from tui.timeline.lanes import PIPELINE
from tui.timeline.spans import LaneSource


def simulated_path(results: Results, source: LaneSource) -> PathLanes:
    """Segments of `Results.critical_path`; ranks that are one lane have one number."""
    return PathLanes(_segments(results, source))


def _segments(results: Results, source: LaneSource) -> Iterator[tuple[int, int, int, int, str]]:
    path, timeline = results.critical_path, results.simulation.timeline
    lane_of: dict[int, int] = {}
    for index, (number, op, rank) in enumerate(zip(path.number, path.op, path.rank, strict=True)):
        if number not in lane_of:
            found = source.number_of(timeline.classes[number].ranks.first)
            lane_of[number] = number if found is None else found
        stream = ""
        if op != IDLE_OP:
            code = timeline.stage_program(number).ops.stream[op]
            stream = STREAMS[code] if code < TO_NEXT else PIPELINE
        yield path.edge[index], path.edge[index + 1], lane_of[number], rank, stream
