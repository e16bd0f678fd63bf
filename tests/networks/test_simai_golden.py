"""The networks and the estimate equal what SimAI-analytical printed, and to the ns its formulas.

golden_simai.json holds 34 of its runs. `*_us` is what it printed, rounded to 1 us; `*_ns` the same
cells by its formulas, evaluated by others. Each run is given to wltui as it was to SimAI. Two of its
inputs are no fixture: those runs are skipped by name where the shared folder is not.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from simcore.parameters import Parameters
from simcore.render.report.pages import run_json
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import simulate
from simcore.workload import Workload, open_workload
from tests.workload.texts import FIXTURES, read, shared_folder

HERE = Path(__file__).parent
RUNS = {run["run"]: run for run in json.loads((HERE / "golden_simai.json").read_text())["runs"]}
OF_CORPUS = ("microAllReduce.txt", "workload_analytical.txt")


def option(run: dict[str, Any], name: str, default: str | None = None) -> str | None:
    words = run["options"].split()
    return words[words.index(name) + 1] if name in words else default


def workload_of(run: dict[str, Any]) -> Workload:
    name = run["input"]
    if name in OF_CORPUS:
        return open_workload(str(shared_folder("corpus/simai") / f"aliyun__SimAI__{name}"))
    if name.startswith("001_"):
        return open_workload(str(FIXTURES / "001_moe_128npu_with_mistakes.txt"))
    if name == "002_vpp1.txt":
        text = (FIXTURES / "002_gpt_1024npu.txt").read_text().replace(" ga: 16 ", " vpp: 1 ga: 16 ", 1)
        return read(text, name)
    return open_workload(str(HERE / "simai" / name))


def parameters_of(run: dict[str, Any]) -> Parameters:
    ratios = {kind: option(run, f"-{kind}_o") for kind in ("dp", "tp", "ep", "pp")}
    common: dict[str, Any] = {
        "world": int(option(run, "-g") or 0),
        "gpus_per_server": int(option(run, "-g_p_s") or 0),
        "overlap": tuple(f"{kind}={value}" for kind, value in ratios.items() if value),
    }
    file = option(run, "-busbw")
    if file:
        return Parameters(network=f"busbw:{HERE / 'simai' / file}", **common)
    return Parameters(
        network="simai-auto",
        nvlink=float(option(run, "-nv") or 0),
        nic=float(option(run, "-nic") or 0),
        nics_per_server=int(option(run, "-n_p_s") or 0),
        **common,
    )


def report_of(run: dict[str, Any]) -> dict[str, Any]:
    return run_json(results_of(run))


def results_of(run: dict[str, Any]) -> SimulatedRun:
    return SimulatedRun(simulate(workload_of(run), parameters_of(run)))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", RUNS)
def test_each_cell_is_simais_to_1_us_and_its_formulas_to_the_ns(name: str) -> None:
    layers = report_of(RUNS[name])["layers"]
    for golden in RUNS[name]["distinct_layers"]:
        row = layers[golden["index"]]
        assert row["name"] == golden["name"]
        for phase in ("fwd", "ig", "wg"):
            assert row[phase]["comm_ns"] == golden[f"{phase}_comm_ns"]
            assert abs(row[phase]["comm_ns"] / 1000 - golden[f"{phase}_comm_us"]) <= 1


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", RUNS)
def test_each_line_of_the_estimate_is_simais_to_1_us(name: str) -> None:
    estimate = report_of(RUNS[name])["estimates"]["simai"]
    assert list(estimate) == [
        "dp_us", "dp_ep_us", "tp_us", "ep_us", "pp_us", "bubble_us", "compute_us", "exposed_us", "total_us",
    ]  # fmt: skip
    for line, golden in RUNS[name]["summary_us"].items():
        ours = estimate[{"exposed_total": "exposed_us"}.get(line, f"{line}_us")]
        if ours is None:
            # Without a bandwidth SimAI prints 0.
            assert (line, golden, "auto" in name) == ("pp", 0.0, True)
        else:
            assert abs(ours - golden) <= max(1, 1e-6 * golden), line


SUMMARIES = {
    "example_yaml": (20590, 1150000, 351407, 843749, 325648, 4542795, 7234189),
    "example_autoREADME": (40332, 1067010, 326686, 1222811, 345984, 4542795, 7545619),
    "s001_yaml": (968, 0, 1892, 1978, 15930, 40829, 61596),
    "s001_autoREADME": (7582, 0, 2903, 3641, 16934, 40829, 71889),
    "s002vpp1_autoREADME": (322654, 0, 290054, 0, 6946315, 7213232, 14772256),
    "s000fix_autoREADME": (118434, 0, 33117, 0, 0, 259211, 410762),
}


@pytest.mark.parametrize("name", SUMMARIES)
def test_the_summaries_that_simais_users_know(name: str) -> None:
    estimate = results_of(RUNS[name]).network.simai_estimate
    assert estimate is not None
    lines = ("dp_us", "dp_ep_us", "tp_us", "ep_us", "bubble_us", "compute_us", "total_us")
    for line, expected in zip(lines, SUMMARIES[name], strict=True):
        assert abs(getattr(estimate, line) - expected) <= 1, line


def test_the_measured_runs_are_all_here() -> None:
    assert len(RUNS) == 34
    assert sum("-busbw" in run["options"] for run in RUNS.values()) == 17
    assert sum(3 * len(run["distinct_layers"]) for run in RUNS.values()) == 2058
    collectives = {name.split("_")[2] for name in RUNS if name.startswith("p_")}
    assert collectives == {"ALLREDUCE", "ALLGATHER", "REDUCESCATTER", "ALLTOALL"}
