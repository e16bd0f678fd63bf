"""Every SimAI workload and op table of the corpus opens, checks and reports, or is refused for a reason."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from simcore.analysis import Results
from simcore.checking import check_file_of
from simcore.diagnostics import InputError
from simcore.parameters import Parameters
from simcore.report.as_json import json_report
from simcore.report.as_text import text_report
from simcore.simulation import simulate
from simcore.workload import open_workload
from tests.workload.texts import SHARED

FOLDERS = ("seeds", "corpus/simai", "corpus/optable")
FILES = [path for folder in FOLDERS for path in sorted((SHARED / folder).glob("*"))]
# File -> why it is refused.
REFUSED = {
    "004_14848477538be528.txt": "a Megatron rank trace",
    "aliyun__SimAI__all_gather.txt": "policy MICRO of ASTRA-sim 1.0",
}
SECONDS = 2.0  # of this process: what else the machine does counts not


@pytest.mark.skipif(not FILES, reason=f"{SHARED} is not there")
@pytest.mark.parametrize("path", FILES, ids=[path.name[:60] for path in FILES])
def test_a_real_file_opens_in_time_and_gives_a_step(path: Path) -> None:
    begin = time.process_time()
    if path.name in REFUSED:
        with pytest.raises(InputError, match=r":1:1: error unsupported-format found "):
            open_workload(str(path))
        return
    workload = open_workload(str(path))
    simulation = simulate(workload, Parameters())
    results = Results(simulation)
    assert text_report(results).startswith("Step time  ")
    assert time.process_time() - begin < SECONDS
    codes = {found.code for found in simulation.diagnostics}
    assert simulation.step_time_ns > 0 or "zero-step" in codes
    assert json_report(results)["workload"]["format"] == workload.format
    # What a check says is what a run says of the file; the rest is about the run.
    checked = check_file_of(lambda: open_workload(str(path)))
    of_the_run = {"cluster-default", "group-flat", "zero-step"}
    said = [found for found in simulation.diagnostics if found.code not in of_the_run]
    assert sorted(found.text() for found in checked.diagnostics) == sorted(found.text() for found in said)
    assert checked.errors == 0


@pytest.mark.skipif(not FILES, reason=f"{SHARED} is not there")
def test_no_refused_file_is_forgotten() -> None:
    assert set(REFUSED) <= {path.name for path in FILES}
