"""What STAGE (astra-sim/symbolic_tensor_graph) writes: a Llama of two layers, tp 2, pp 2, two micro-batches.

Made with its commit 3a7f49c: `.et` files, JSON files of its own form, and protocol buffers under the name
that was asked for.
"""

from __future__ import annotations

import gzip
import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from simcore.chakra.nodes import COLL, RECV, SEND
from simcore.executing.execution_result import Execution
from simcore.executing.sibling_files import with_sibling_files
from simcore.parameters import Parameters
from simcore.runs.executed import run_execution
from simcore.sources.inputs import open_input

FOLDER = Path("fixtures/inputs")
NETWORK = "topology: [ Switch ]\nnpus_count: [ 4 ]\nbandwidth: [ 50.0 ]\nlatency: [ 500.0 ]\n"
SYSTEM = {
    "endpoint-delay": 10, "active-chunks-per-dimension": 1, "preferred-dataset-splits": 1,
    "all-reduce-implementation": ["ring"], "all-gather-implementation": ["ring"],
    "reduce-scatter-implementation": ["ring"], "all-to-all-implementation": ["ring"],
    "collective-optimization": "localBWAware", "local-mem-bw": 1600, "peak-perf": 900, "roofline-enabled": 1,
}  # fmt: skip


def run_of(path: Path, **parameters: Any) -> Any:
    return run_execution(Execution(open_input(str(path)), Parameters(**parameters)))  # type: ignore[arg-type]


@pytest.fixture
def forms(tmp_path: Path) -> dict[str, Path]:
    """The set in each form that STAGE writes, unpacked, with its groups, a network and a system."""
    for form, suffix in (("et", "et"), ("json", "json"), ("et in .json", "et")):
        folder = tmp_path / form
        folder.mkdir()
        source = FOLDER / ("stage_json" if form == "json" else "stage")
        for path in source.glob("w.*.gz"):
            name = path.name.removesuffix(".gz")
            name = name.replace(".et", ".json") if form == "et in .json" else name
            assert suffix in path.name
            (folder / name).write_bytes(gzip.decompress(path.read_bytes()))
        shutil.copy(source / "w.json", folder)
    (tmp_path / "network.yml").write_text(NETWORK)
    (tmp_path / "system.json").write_text(json.dumps(SYSTEM))
    return {form: tmp_path / form for form in ("et", "json", "et in .json")}


def test_every_form_is_the_same_set(forms: dict[str, Path]) -> None:
    paths = [
        *forms.values(), forms["et"] / "w", forms["et"] / "w.2.et", forms["json"] / "w.0.json",
        forms["et in .json"] / "w.3.json", FOLDER / "stage", FOLDER / "stage_json",
    ]  # fmt: skip
    steps = {str(path): run_of(path).step_time_ns for path in paths}
    assert len(set(steps.values())) == 1, steps
    assert min(steps.values()) > 0


@pytest.mark.parametrize("dialect", [None, "astra-sim-2"])
def test_the_forms_run_alike_with_groups_a_network_and_the_roofline(
    forms: dict[str, Path], dialect: str | None
) -> None:
    above = forms["et"].parent
    given: dict[str, Any] = {
        "cluster": str(above / "network.yml"), "system": str(above / "system.json"), "dialect": dialect,
    }  # fmt: skip
    runs = [run_of(folder, comm_groups=str(folder / "w.json"), **given) for folder in forms.values()]
    assert len({run.step_time_ns for run in runs}) == 1
    # The roofline gives compute a time; a pipeline of two stages has a rank that waits.
    bare = run_of(forms["et"])
    assert runs[0].step_time_ns > bare.step_time_ns


def test_nodes_may_stand_in_a_list(forms: dict[str, Path]) -> None:
    step_ns = run_of(forms["json"]).step_time_ns
    for path in forms["json"].glob("w.*.json"):
        path.write_text(json.dumps(json.loads(path.read_text("utf-8"))["nodes"]))
    assert run_of(forms["json"]).step_time_ns == step_ns
    assert run_of(forms["json"] / "w.1.json").step_time_ns == step_ns


def test_ranks_send_along_the_pipeline_and_gather_in_their_stage(forms: dict[str, Path]) -> None:
    """Per micro-batch an activation goes from stage 0 to stage 1, and its gradient back."""
    opened = open_input(str(forms["json"]))
    kinds = [Counter(file.columns.type) for file in opened.files]  # type: ignore[union-attr]
    assert [(kind[SEND], kind[RECV]) for kind in kinds] == [(2, 2)] * 4
    assert kinds[0] == kinds[1]
    assert kinds[2] == kinds[3]
    assert all(kind[COLL] > 0 for kind in kinds)


def test_the_note_offers_its_groups_and_what_it_offers_runs(forms: dict[str, Path]) -> None:
    for folder in forms.values():
        opened = open_input(str(folder))
        taking = with_sibling_files(Execution(opened, Parameters()))  # type: ignore[arg-type]
        assert taking is not None
        assert taking.parameters.comm_groups == str(folder / "w.json")
        assert taking.parameters.dialect == "astra-sim-2"
        assert run_execution(taking).step_time_ns > 0


def test_a_file_of_any_name_is_a_trace_by_its_content(forms: dict[str, Path], tmp_path: Path) -> None:
    for form, name in (("et", "w.0.et"), ("json", "w.0.json")):
        path = tmp_path / "one.bin"
        shutil.copy(forms[form] / name, path)
        opened = open_input(str(path))
        assert opened.source == "executed"
        assert opened.count == len(open_input(str(forms[form])).files[0].columns)  # type: ignore[union-attr]
