"""The parts of the critical path: what a segment counts to, by kind, layer, stage or rank; where each is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from simcore.analysis.accounts import IDLE_OP
from simcore.workload.model import base_name

if TYPE_CHECKING:
    from simcore.analysis.results import Results

# What the path can be summed by.
PARTS = ("kind", "layer", "stage", "rank")
# The part of transfers and of what is idle, which are of no row of the file.
NO_LAYER = "no layer"


def path_parts(results: Results, by: str) -> list[tuple[str, int]]:
    """(part, ns) of the critical path, the longest first; they sum to the step time.

    by: one of PARTS. A layer is the rows of one name without digits, raw text of the file.
    """
    path = results.critical_path
    if by == "kind":
        return list(path.by_kind().items())
    if by == "layer":
        return [(name or NO_LAYER, ns) for name, ns in results.critical_by_layer.items()]
    found = path.by_stage() if by == "stage" else path.by_rank()
    return [(f"{by} {number}", ns) for number, ns in found.items()]


def longest_of_part(results: Results, by: str, part: str) -> tuple[int, int, int] | None:
    """(rank class, start, end) of the longest segment of a part, ns; the first of equal ones.

    by, part: as `path_parts` has them. None where no segment is of it.
    """
    path = results.critical_path
    part_of = _part_of(results, by)
    edge = path.edge
    best: int | None = None
    for index in range(len(path)):
        longer = best is None or edge[index + 1] - edge[index] > edge[best + 1] - edge[best]
        if longer and part_of(index) == part:
            best = index
    return None if best is None else (path.number[best], edge[best], edge[best + 1])


def _part_of(results: Results, by: str) -> Callable[[int], str]:
    """The part of a segment of the path, by its index."""
    path, timeline = results.critical_path, results.simulation.timeline
    if by == "kind":
        return path.kind_of
    if by == "stage":
        return lambda index: f"stage {timeline.classes[path.number[index]].stage}"
    if by == "rank":
        return lambda index: f"rank {path.rank[index]}"
    names = results.simulation.workload.name

    def layer(index: int) -> str:
        op = path.op[index]
        row = -1 if op == IDLE_OP else timeline.stage_program(path.number[index]).ops.row[op]
        return base_name(names[row]) or NO_LAYER if row >= 0 else NO_LAYER

    return layer
