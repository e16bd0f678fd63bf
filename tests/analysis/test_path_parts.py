"""The parts of the critical path and the longest segment of each, against all segments one by one."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from simcore.analysis import Results
from simcore.analysis.critical_path import NO_LAYER, PARTS, Segment
from simcore.run.findings import longest_of_part, path_sums
from simcore.workload.model import base_name
from tests.tui.made_runs import lonely, seed, small

# Made where they are asked for: each process that collects the tests took 4 s for them.
RUNS: dict[str, Callable[[], Results]] = {
    "seed 002": seed,
    "zb-h1": lambda: seed(schedule="zb-h1"),
    "a slow rank": lambda: seed(slow_rank=("37=1.3",)),
    "two stages on a slow network": small,
    "one op": lonely,
}


@cache
def run_of(name: str) -> Results:
    return RUNS[name]()


def part_of(results: Results, one: Segment, by: str) -> str:
    """The part of a segment, from what it says of itself."""
    if by == "kind":
        if one.kind == "idle":
            return "idle"
        if one.kind == "transfer":
            return "pp"
        return f"compute {one.phase}" if one.kind == "compute" else one.stream
    if by == "layer":
        names = results.simulation.workload.name
        return base_name(names[one.row]) if one.row >= 0 else NO_LAYER
    stage = results.simulation.timeline.classes[one.number].stage
    return f"stage {stage}" if by == "stage" else f"rank {one.rank}"


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("by", PARTS)
def test_parts_sum_to_the_step_and_each_has_its_longest_segment(run: str, by: str) -> None:
    results = run_of(run)
    path = results.critical_path
    segments = [path.segment(index) for index in range(len(path))]
    parts = path_sums(results, by)
    assert sum(ns for _, ns in parts) == results.step_time_ns
    for part, ns in parts:
        mine = [one for one in segments if part_of(results, one, by) == part]
        assert sum(one.ns for one in mine) == ns
        longest = max(mine, key=lambda one: one.ns)
        found = longest_of_part(results, by, part)
        assert found is not None
        assert found[:3] == (longest.number, longest.start_ns, longest.end_ns)


def test_what_is_no_part_is_nowhere() -> None:
    assert longest_of_part(seed(), "kind", "compute nothing") is None
    assert longest_of_part(lonely(0), "rank", "rank 0") is None
