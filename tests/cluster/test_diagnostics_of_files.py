"""What is said of a run on a cluster."""

from pathlib import Path

from simcore.parameters import Parameters
from simcore.simulation import simulate
from simcore.workload import open_workload

ROOT = Path(__file__).parents[2]


def test_groups_that_are_no_grid_are_said() -> None:
    workload = open_workload(str(ROOT / "fixtures" / "002_gpt_1024npu.txt"))
    run = simulate(workload, Parameters(world=24, tp=3, pp=1, microbatches=1))
    notes = [found.message for found in run.diagnostics if found.code == "group-flat"]
    assert notes == [
        f"some {kind} groups are no grid of the cluster's dimensions: "
        "each is priced as one flat group on the slowest dimension it crosses"
        for kind in ("tp", "dp")
    ]
    run = simulate(workload, Parameters(world=32, tp=4, pp=1, microbatches=1))
    assert [found for found in run.diagnostics if found.code == "group-flat"] == []
