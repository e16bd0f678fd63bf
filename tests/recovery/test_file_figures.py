"""Memory and throughput of a file whose model is recovered: as for a model, once a GPU is given."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from simcore.analysis.model_figures import find_training, make_memory_lane
from simcore.parameters import Parameters
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import simulate
from simcore.workload.opening import open_workload
from tests.command_line.running import ROOT, SEED_002, wltui_here
from tests.model.test_aicb import HERE, index
from tests.says import said
from tui.cli import main

SEED_001 = str(ROOT / "fixtures" / "001_moe_128npu_with_mistakes.txt")


@cache
def report(*words: str) -> dict[str, Any]:
    """The JSON of a report, which no test changes."""
    done = wltui_here("report", *words, "--json")
    assert done.returncode == 0
    values: dict[str, Any] = json.loads(done.stdout)
    return values


@pytest.mark.slow
def test_a_recovered_file_on_a_gpu_has_what_a_model_has() -> None:
    values = report(SEED_002, "--gpu", "a100-80")
    assert values["model"]["name"] == "Llama 405B"
    found = values["throughput"]
    # 128 sequences of 4096 tokens a step.
    assert found["tokens_per_s"] == pytest.approx(128 * 4096 / (values["step_time_ns"] / 1e9))
    assert found["mfu"] == pytest.approx(found["model_tflops_per_gpu"] / 312)
    assert [one["stage"] for one in values["memory"]] == list(range(16))
    assert {one["limit"] for one in values["memory"]} == {84_987_740_160}
    plain = report(SEED_002)
    assert plain["step_time_ns"] == values["step_time_ns"]
    assert "throughput" not in plain
    assert "gpu" not in plain["parameters"]


def test_states_are_about_what_the_gradients_of_the_file_say() -> None:
    # A stage in the middle has no embedding, AICB counts one and a half on each.
    values = report(SEED_002, "--gpu", "a100-80")
    of_rows = report(SEED_002)["memory"][8]
    middle = values["memory"][8]
    assert middle["gradients"] < of_rows["gradients"] < 1.2 * middle["gradients"]


def test_its_page_says_what_is_assumed_and_the_limit_counts(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["report", SEED_002, "--gpu", "a100-80", "--memory-limit", "40GB"]) == 0
    page = capsys.readouterr().out
    assert "Does not fit: stage 0 needs" in page
    assert "assumed    ZeRO 1 and fp32 gradients as AICB has them" in page
    assert "tokens/s" in page
    assert f"file       {SEED_002}" in page


def test_the_timeline_has_the_lane_of_memory() -> None:
    results = SimulatedRun(simulate(open_workload(SEED_002), Parameters(gpu="a100-80")))
    lane = make_memory_lane(results.model.model_figures, results.simulation, 0)
    assert lane is not None
    assert results.model.model_figures is not None
    assert max(lane.resident_bytes) == results.model.model_figures.memory[0].needed
    assert make_memory_lane(None, results.simulation, 0) is None


def test_rescaled_it_is_that_of_the_other_layout() -> None:
    values = report(SEED_002, "--gpu", "a100-80", "--tp", "4", "--rescale", "on")
    here = report(SEED_002, "--gpu", "a100-80")
    assert values["memory"][0]["weights"] > 1.9 * here["memory"][0]["weights"]
    assert len(values["memory"]) == 16


@pytest.mark.slow
def test_without_its_layout_or_cells_it_has_what_the_rows_say() -> None:
    other = report(SEED_002, "--gpu", "a100-80", "--tp", "4")
    assert "throughput" not in other
    plain = str(HERE / index(HERE)[0]["file"])
    simulation = simulate(open_workload(plain), Parameters(gpu="h100"))
    assert find_training(simulation) is None


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([SEED_001, "--gpu", "h100"], "a name that AICB does not write; --model NAME|FILE would fit"),
        ([SEED_002, "--memory-limit", "80GB"], "--memory-limit of a file goes with --gpu"),
        ([SEED_002, "--gpu", "h101"], "--gpu h101: no file, and none of"),
        ([SEED_002, "--gpu", "h100", "--seq", "4096"], "found a workload file, which has its rows"),
    ],
)
def test_what_cannot_be_says_why(words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", *words]) == 2
    assert says in capsys.readouterr().err


def test_an_op_table_has_no_gpu(capsys: pytest.CaptureFixture[str]) -> None:
    table = str(Path(ROOT) / "fixtures" / "003_gpt2_large_op_table.txt")
    assert main(["report", table, "--gpu", "h100"]) == 2
    said(capsys.readouterr().err.splitlines(), "AICB's", "grad_norm", "grad_gather")
