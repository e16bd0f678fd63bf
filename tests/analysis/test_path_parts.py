"""The parts of the critical path and the longest segment of each, against all segments one by one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from simcore.analysis.path_words import NO_LAYER
from simcore.runs.simulated import SimulatedRun
from simcore.trace.run import find_longest_of_part, sum_path
from simcore.words.simulated import SimulatedFigures
from simcore.workload.model import base_name
from tests.tui.made_runs import four_stages, lonely, small

RUNS: dict[str, Callable[[], SimulatedRun]] = {
    "seed 002": four_stages,
    "zb-h1": lambda: four_stages(schedule="zb-h1"),
    "a slow rank": lambda: four_stages(slow_rank=("37=1.3",)),
    "two stages on a slow network": small,
    "one op": lonely,
}


def parts_of(results: SimulatedRun, index: int) -> dict[str, str]:
    """The part of a segment by grouping, from what it says of itself."""
    path = results.critical_path
    one = results.path_source.segment(path, index)
    if one.kind in ("idle", "transfer"):
        kind = {"idle": "idle", "transfer": "pp"}[one.kind]
    else:
        kind = f"compute {one.phase}" if one.kind == "compute" else one.stream
    stage = results.simulation.timeline.classes[path.track[index]].stage
    layer = NO_LAYER if one.layer is None else base_name(one.layer)
    return {"kind": kind, "layer": layer, "stage": f"stage {stage}", "rank": f"rank {one.rank}"}


@pytest.mark.parametrize("run", RUNS)
def test_parts_sum_to_the_step_and_each_has_its_longest_segment(run: str) -> None:
    results = RUNS[run]()
    path = results.critical_path
    lengths = [ns for _, _, ns in path]
    part_of = [parts_of(results, index) for index in range(len(path))]
    assert set(part_of[0]) == set(SimulatedFigures.path_groupings)
    for by in SimulatedFigures.path_groupings:
        parts = sum_path(results, by)
        assert sum(ns for _, ns in parts) == results.step_time_ns
        for part, ns in parts:
            mine = [index for index, one in enumerate(part_of) if one[by] == part]
            assert sum(lengths[index] for index in mine) == ns
            longest = max(mine, key=lengths.__getitem__)
            found = find_longest_of_part(results, by, part)
            assert found is not None
            assert found[:3] == (path.track[longest], path.edge[longest], path.edge[longest + 1])


def test_what_is_no_part_is_nowhere() -> None:
    assert find_longest_of_part(small(), "kind", "compute nothing") is None
    assert find_longest_of_part(lonely(0), "rank", "rank 0") is None
