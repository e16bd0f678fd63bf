"""What is said of a run on a cluster."""

from pathlib import Path

from simcore.parameters import Parameters
from simcore.simulation import simulate
from simcore.workload import open_workload
from tests.findings import facts

ROOT = Path(__file__).parents[2]


def test_groups_that_are_no_grid_are_said() -> None:
    workload = open_workload(str(ROOT / "fixtures" / "002_gpt_1024npu.txt"))
    run = simulate(workload, Parameters(world=24, tp=3, pp=1, microbatches=1))
    notes = [found.message for found in run.diagnostics if found.code == "group-flat"]
    assert [facts(note) for note in notes] == ["tp", "dp"]
    assert all("slowest dimension" in note for note in notes)
    run = simulate(workload, Parameters(world=32, tp=4, pp=1, microbatches=1))
    assert [found for found in run.diagnostics if found.code == "group-flat"] == []
