"""Screen 5 of execution traces: what is in force where nothing was given, with where it comes from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from simcore.chakra import find_set, open_set
from simcore.executing.execution_result import Execution
from simcore.parameters import Parameters
from simcore.records import replace
from simcore.runs.executed import ExecutedRun, run_execution
from tests.executing.encoding import COMP, write_json, write_set
from tui.parameters.execution_form import ExecutionForm

SYSTEM = {
    "endpoint-delay": 7, "active-chunks-per-dimension": 2, "preferred-dataset-splits": 4,
    "local-mem-bw": 1600, "collective-optimization": "baseline", "all-reduce-implementation": ["ring"],
}  # fmt: skip
NETWORK = "topology: [ Switch ]\nnpus_count: [ 2 ]\nbandwidth: [ 400.0 ]\nlatency: [ 300.0 ]\n"


def opened(folder: Path, **asked: Any) -> ExecutedRun:
    node = {"id": 1, "name": "fwd", "type": COMP, "micros": 5, "attributes": {}}
    found = find_set(write_set(folder, [[node]] * 2))
    assert found is not None
    return run_execution(Execution(open_set(found), Parameters(**asked)))


def rows(run: ExecutedRun, draft: Parameters | None = None) -> dict[str, tuple[str, str]]:
    """(value, where it comes from) by label."""
    form = ExecutionForm()
    basis = form.make_context(run)
    near = basis if draft is None else form.make_draft_context(run.setup.with_parameters(draft), basis)
    fields = form.fields(basis)
    return {one.label: (one.displayed_value(near), one.origin(near)) for one in fields}


@pytest.mark.parametrize("dialect", [None, "astra-sim-2"])
def test_what_the_system_file_says_is_shown_with_its_basis(tmp_path: Path, dialect: str | None) -> None:
    system = write_json(tmp_path / "system.json", SYSTEM)
    (tmp_path / "network.yml").write_text(NETWORK)
    run = opened(tmp_path, system=system, cluster=str(tmp_path / "network.yml"), dialect=dialect)
    found = rows(run)
    assert found["splits"] == ("4", "the files")
    assert found["active chunks"] == ("2", "the files")
    assert found["endpoint delay"] == ("7", "the files")
    assert found["local mem bw"] == ("1600", "the files")
    assert found["collective optimization"] == ("baseline", "the files")
    assert found["dim"] == ("switch 2 400GiB/s", "the file")
    # The JSON has the same, not the defaults of a cluster that did not run.
    values = run.figures.origin.parameters
    assert (values["splits"], values["endpoint_delay"], values["local_mem_bw"]) == (4, 7, 1600)
    given = rows(run, replace(run.parameters, splits=8, system=None))
    assert given["splits"] == ("8", "given")
    assert given["endpoint delay"] == ("10", "the file")


def test_without_files_defaults_are_shown_as_such(tmp_path: Path) -> None:
    run = opened(tmp_path)
    found = rows(run)
    assert found["cluster"] == ("h100-8", "default")
    assert found["splits"] == ("1", "default")
    assert found["algorithm"] == ("-", "default")
    # A file that is not there leaves what was in force, until the run says what is wrong.
    assert rows(run, replace(run.parameters, system=str(tmp_path / "none.json")))["splits"][0] == "1"


def test_a_count_is_scrubbed_from_what_is_in_force(tmp_path: Path) -> None:
    system = write_json(tmp_path / "system.json", SYSTEM)
    run = opened(tmp_path, system=system, dim=("switch:2:50:500",))
    form = ExecutionForm()
    basis = form.make_context(run)
    splits = next(one for one in form.fields(basis) if one.label == "splits")
    assert splits.scrubbed(basis, 1, False) == {"splits": 5}


def test_a_switch_is_on_or_off(tmp_path: Path) -> None:
    run = opened(tmp_path)
    form = ExecutionForm()
    basis = form.make_context(run)
    fold = next(one for one in form.fields(basis) if one.label == "no fold")
    assert fold.displayed_value(basis) == "off"
    on = form.make_draft_context(run.setup.with_changes(**fold.scrubbed(basis, 1, False)), basis)
    assert (on.setup.parameters.no_fold, fold.displayed_value(on), fold.origin(on)) == (True, "on", "given")
    assert fold.parse_text(basis, "on") == {"no_fold": True}
    assert fold.parse_text(on, "off") == {"no_fold": False}
