"""SimAI's estimate line by line beside the step: the figures of both, and why they differ.

Planted: idle left out of the bubble line, and the estimate's exposed line taken for ours;
`test_our_lines_sum_to_the_step_and_simais_to_its_total` failed on both.
"""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from simcore.compat.simai_estimate import EstimateLine, beside_estimate
from simcore.parameters import Parameters
from simcore.render.report.pages import run_json, run_page
from simcore.runs.simulated import Results
from simcore.simulation import simulate
from simcore.workload import open_workload
from tests.strategies import Cell, Row, layer, make_workload

INPUTS = Path(__file__).parents[1] / "networks" / "simai"
FIXED = f"busbw:{INPUTS / 'busbw_fixed.yaml'}"
SEEDS = ("fixtures/001_moe_128npu_with_mistakes.txt", "fixtures/002_gpt_1024npu.txt")
GIB = 2**30


def lines(rows: list[Row], header: dict[str, Any], **parameters: Any) -> dict[str, EstimateLine]:
    keys = {"tp": 2, "ep": 1, "pp": 1, "vpp": 1, "ga": 1, "all_gpus": 4}
    workload = make_workload(rows, **keys | header)
    found = Results(simulate(workload, Parameters(**{"network": FIXED, **parameters})))
    return {one.line: one for one in beside_estimate(found)[1]}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("schedule", ["1f1b", "zb-h1", "layer-loop"])
def test_our_lines_sum_to_the_step_and_simais_to_its_total(seed: str, schedule: str) -> None:
    results = Results(simulate(open_workload(seed), Parameters(network="simai-auto", schedule=schedule)))
    found = {one.line: one for one in beside_estimate(results)[1]}
    total, exposed = found.pop("total"), found.pop("exposed")
    assert sum(one.ours_ns for one in found.values()) == total.ours_ns == results.step_time_ns
    assert sum(one.simai_us or 0 for one in found.values()) == pytest.approx(total.simai_us)
    collectives = [found[kind] for kind in ("dp", "dp_ep", "tp", "ep")]
    assert exposed.ours_ns == sum(one.ours_ns for one in collectives)
    assert exposed.simai_us == pytest.approx(sum(one.simai_us or 0 for one in collectives))


ROWS = [
    Row("mlp", Cell(1000, "ALLREDUCE", "tp", GIB), wg=Cell(7_000_000, "ALLREDUCE", "dp", GIB)),
    layer("mlp", 0, 0, 9_000_000),
]


def test_what_runs_beside_compute_is_said() -> None:
    rows = [ROWS[1], ROWS[0]]
    found = lines(rows, {})
    assert found["dp"].text == (
        "SimAI counts every one as exposed and in sequence; here 2.632 ms of 2.632 ms runs beside compute"
    )
    assert found["dp"].ours_ns == 0
    assert found["tp"].text == (
        "SimAI counts every one as exposed and in sequence; here too all 3.333 ms holds compute back"
    )
    assert found["compute"].text == "both add up the same cells"
    assert found["ep"].text == "no ep collective takes time in either"
    assert found["bubble"].text == "no pipeline in either"
    assert found["total"].text == "-2.632 ms here, all of it by dp (-2.632 ms)"


def test_ratios_of_overlap_are_said() -> None:
    found = lines(ROWS, {}, overlap=("tp=0.25",))
    assert found["tp"].text.startswith(
        "SimAI counts them in sequence and 25 % of each as hidden; here too all"
    )


def test_scales_and_passes_are_reasons() -> None:
    found = lines(ROWS, {}, compute_scale=2.0, passes=2)
    assert found["compute"].text == (
        "+48.003 ms here: 2 passes run; scales, slow ranks and jitter are not in SimAI's figure"
    )


def test_waits_are_a_line_of_their_own() -> None:
    rows = [Row("mlp", Cell(1000, "ALLREDUCE", "tp", GIB))]
    found = lines(rows, {"all_gpus": 2}, slow_rank=("1=2",))["wait"]
    assert found == EstimateLine("wait", None, 1000, "in SimAI no rank waits for another one of its groups")


def test_the_bubble_of_simai_is_put_beside_the_schedules_own() -> None:
    rows = [Row("embedding_layer", Cell(1000)), *[layer("mlp", 1000)] * 4]
    header = {"pp": 2, "tp": 1, "all_gpus": 2, "vpp": 4, "pp_comm": 0}
    found = lines(rows, header, schedule="1f1b")
    assert found["bubble"].text == (
        "SimAI takes (pp - 1) / (ga x vpp) = 1/4 of its rows' time, whatever the schedule; "
        "1f1b has 1 virtual stage a stage, with which it would be 4.000 us"
    )
    assert found["pp"].text == "no transfer between stages takes time here"


@pytest.mark.slow
def test_the_reports_have_the_lines_and_other_networks_have_none() -> None:
    results = Results(simulate(open_workload(SEEDS[1]), Parameters(network="simai-auto")))
    values = run_json(results)["estimates"]["simai_lines"]
    assert [one["line"] for one in values] == [
        "compute", "dp", "dp_ep", "tp", "ep", "pp", "bubble", "exposed", "total"
    ]  # fmt: skip
    assert list(values[0]) == ["line", "simai_us", "ours_ns", "text"]
    page = run_page(results)
    total = "  total        8.685 s    14.859 s   +6.174 s here, almost all of it by bubble (+6.168 s)\n"
    assert total in page
    plain = Results(simulate(open_workload(SEEDS[1]), Parameters()))
    assert beside_estimate(plain) == (0, [])
    assert "simai_lines" not in run_json(plain)["estimates"]


def test_the_bubble_with_other_virtual_stages_is_simais_shared_among_them() -> None:
    rows = [Row("embedding_layer", Cell(1000)), *[layer("mlp", 1000)] * 4]
    header = {"pp": 2, "tp": 1, "all_gpus": 2, "vpp": 4, "pp_comm": 0}
    found = lines(rows, header, schedule="interleaved", virtual_stages=2, microbatches=2)["bubble"]
    assert found.simai_us == 1
    assert found.text.endswith("; interleaved has 2 virtual stages a stage, with which it would be 2.000 us")


def test_a_schedule_without_a_pipeline_says_so_beside_simais_bubble() -> None:
    rows = [Row("embedding_layer", Cell(1000)), *[layer("mlp", 1000)] * 4]
    header = {"pp": 2, "tp": 1, "all_gpus": 2, "vpp": 4, "pp_comm": 0}
    assert lines(rows, header, schedule="layer-loop")["bubble"].text.endswith(
        "whatever the schedule; layer-loop has no pipeline"
    )


def test_collectives_that_run_beside_each_other_hold_compute_back_once() -> None:
    """All compute is over: it waits for ep, 3 333 333 ns, then for what is left of dp's 3 947 368 ns."""
    rows = [Row("mlp", wg=Cell(0, "ALLREDUCE", kind, GIB)) for kind in ("dp", "ep")]
    found = lines(rows, {"tp": 1, "ep": 2})
    assert (found["ep"].ours_ns, found["dp"].ours_ns) == (3_333_333, 614_035)
    assert "; here 614.0 us of 3.947 ms holds compute back, " in found["dp"].text


def test_loss_rows_of_several_microbatches_are_a_reason() -> None:
    rows = [*[layer("embedding_layer", 1000), layer("mlp", 1000)] * 2, layer("cross_entropy1", 400, 0, 0)]
    header = {"pp": 2, "tp": 1, "all_gpus": 2, "ga": 2, "pp_comm": 0}
    found = lines(rows, header, schedule="1f1b")
    assert found["compute"].text == ("+400 ns here: loss rows run for each of 2 micro-batches, there once")


def test_how_much_longer_collectives_run_is_said_unless_simai_hides_some() -> None:
    """Two passes run the all-reduce of 3 333 333 ns twice."""
    assert lines(ROWS, {}, passes=2)["tp"].text.endswith(
        "; here too all 6.667 ms holds compute back, +3.333 ms of them (2 passes run)"
    )
    assert lines(ROWS, {}, passes=2, overlap=("tp=0.25",))["tp"].text.endswith(
        "; here too all 6.667 ms holds compute back"
    )


def test_each_kind_has_the_reasons_that_have_rows_of_it() -> None:
    """The loss row has a tp collective for each micro-batch, the row behind those of line 2 a dp one."""
    blocks = [layer("embedding_layer", 1000), Row("mlp", Cell(1000, "ALLREDUCE", "tp", GIB))] * 2
    loss = Row("cross_entropy1", Cell(400, "ALLREDUCE", "tp", GIB))
    behind = Row("optimizer1", wg=Cell(0, "ALLREDUCE", "dp", GIB))
    header = {"pp": 2, "all_gpus": 8, "ga": 2, "pp_comm": 0}
    workload = make_workload([*blocks, loss, behind], tp=2, ep=1, vpp=1, **header)
    workload = replace(workload, declared_rows=5)
    results = Results(simulate(workload, Parameters(network=FIXED, schedule="1f1b")))
    found = {one.line: one.text for one in beside_estimate(results)[1]}
    assert found["tp"].endswith(" of them (loss rows run for each of 2 micro-batches, there once)")
    assert found["dp"].endswith(" of them (SimAI leaves out the 1 row behind the 5 of line 2)")
    assert "; loss rows run for each of 2 micro-batches" in found["compute"]


def test_a_difference_of_rounding_is_called_so() -> None:
    """SimAI cuts each collective, of single precision, to whole ns: 3 947 368 421 ns are 3 947 368 448."""
    rows = [Row("mlp", Cell(1000), wg=Cell(0, "ALLREDUCE", "dp", 1000 * GIB))]
    text = lines(rows, {})["dp"].text
    assert text.endswith(" ns of them (rounding)")
