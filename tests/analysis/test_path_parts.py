"""The parts of the critical path and the longest segment of each, against all segments one by one."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from simcore.analysis.path_words import NO_LAYER
from simcore.runs.simulated import SimulatedRun
from simcore.trace.run import find_longest_of_part, sum_path
from simcore.words.simulated import SimulatedFigures
from simcore.workload.model import base_name
from tests.tui.made_runs import lonely, seed, small

# Made where they are asked for: each process that collects the tests took 4 s for them.
RUNS: dict[str, Callable[[], SimulatedRun]] = {
    "seed 002": seed,
    "zb-h1": lambda: seed(schedule="zb-h1"),
    "a slow rank": lambda: seed(slow_rank=("37=1.3",)),
    "two stages on a slow network": small,
    "one op": lonely,
}


@cache
def run_of(name: str) -> SimulatedRun:
    return RUNS[name]()


def part_of(results: SimulatedRun, index: int, by: str) -> str:
    """The part of a segment, from what it says of itself."""
    path = results.critical_path
    one = results.path_source.segment(path, index)
    if by == "kind":
        if one.kind == "idle":
            return "idle"
        if one.kind == "transfer":
            return "pp"
        return f"compute {one.phase}" if one.kind == "compute" else one.stream
    if by == "layer":
        return NO_LAYER if one.layer is None else base_name(one.layer)
    stage = results.simulation.timeline.classes[path.track[index]].stage
    return f"stage {stage}" if by == "stage" else f"rank {one.rank}"


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("by", SimulatedFigures.path_groupings)
def test_parts_sum_to_the_step_and_each_has_its_longest_segment(run: str, by: str) -> None:
    results = run_of(run)
    path = results.critical_path
    lengths = [ns for _, _, ns in path]
    parts = sum_path(results, by)
    assert sum(ns for _, ns in parts) == results.step_time_ns
    for part, ns in parts:
        mine = [index for index in range(len(path)) if part_of(results, index, by) == part]
        assert sum(lengths[index] for index in mine) == ns
        longest = max(mine, key=lengths.__getitem__)
        found = find_longest_of_part(results, by, part)
        assert found is not None
        assert found[:3] == (path.track[longest], path.edge[longest], path.edge[longest + 1])


def test_what_is_no_part_is_nowhere() -> None:
    assert find_longest_of_part(seed(), "kind", "compute nothing") is None
    assert find_longest_of_part(lonely(0), "rank", "rank 0") is None
