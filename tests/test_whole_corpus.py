"""Every file of the corpus opens, checks and reports: none of them is refused."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from simcore.parameters import Parameters
from simcore.render.report.pages import run_json, run_page
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import simulate
from simcore.sources.checking import check_file_of
from simcore.sources.inputs import open_input
from simcore.workload import Workload
from tests.workload.texts import SHARED

FOLDERS = ("seeds", "corpus/simai", "corpus/optable", "corpus/astra1", "corpus/rank_trace")
FILES = [path for folder in FOLDERS for path in sorted((SHARED / folder).rglob("*")) if path.is_file()]
# Of this process, for 0.6 s at most on an idle machine: what takes longer for a reason takes minutes.
SECONDS = 6.0


@pytest.mark.sampled(28)
@pytest.mark.skipif(not FILES, reason=f"{SHARED} is not there")
@pytest.mark.parametrize("path", FILES, ids=[path.name[:60] for path in FILES])
def test_a_real_file_opens_in_time_and_gives_a_step(path: Path) -> None:
    begin = time.process_time()
    workload = open_input(str(path))
    checked = check_file_of(lambda: open_input(str(path)))
    if not isinstance(workload, Workload):
        assert time.process_time() - begin < SECONDS
        assert workload.step_time_ns > 0 or not workload.timed
        assert sorted(found.text() for found in checked.diagnostics) == sorted(
            found.text() for found in workload.diagnostics
        )
        return
    simulation = simulate(workload, Parameters())
    results = SimulatedRun(simulation)
    assert run_page(results).startswith("Step time  ")
    assert time.process_time() - begin < SECONDS
    codes = {found.code for found in simulation.diagnostics}
    assert simulation.step_time_ns > 0 or "zero-step" in codes
    assert run_json(results)["workload"]["format"] == workload.format
    # What a check says is what a run says of the file; the rest is about the run.
    of_the_run = {"cluster-default", "group-flat", "group-straddles", "zero-step"}
    said = [found for found in simulation.diagnostics if found.code not in of_the_run]
    # What was asked of the model behind a file is said by a check alone.
    of_the_model = {
        "aicb-model", "above-peak", "example-cells", "lost-layers", "backward-unsent", "all-parameters",
        "pp-comm-differs",
    }  # fmt: skip
    of_the_file = [found for found in checked.diagnostics if found.code not in of_the_model]
    assert sorted(found.text() for found in of_the_file) == sorted(found.text() for found in said)
    assert checked.errors == 0
