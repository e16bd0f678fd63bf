"""SimAI's estimate line by line beside the step: the figures of both, and why they differ.

Planted: idle left out of the bubble line, and the estimate's exposed line taken for ours;
`test_our_lines_sum_to_the_step_and_simais_to_its_total` failed on both.
"""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from simcore.compat.simai_estimate import EstimateLine, compare_estimate
from simcore.parameters import Parameters
from simcore.render.report.pages import run_json, run_page
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import simulate
from simcore.workload import open_workload
from tests.says import figures, said
from tests.strategies import Cell, Row, layer, make_workload

INPUTS = Path(__file__).parents[1] / "networks" / "simai"
FIXED = f"busbw:{INPUTS / 'busbw_fixed.yaml'}"
SEEDS = ("fixtures/001_moe_128npu_with_mistakes.txt", "fixtures/002_gpt_1024npu.txt")
GIB = 2**30


def lines(rows: list[Row], header: dict[str, Any], **parameters: Any) -> dict[str, EstimateLine]:
    keys = {"tp": 2, "ep": 1, "pp": 1, "vpp": 1, "ga": 1, "all_gpus": 4}
    workload = make_workload(rows, **keys | header)
    found = SimulatedRun(simulate(workload, Parameters(**{"network": FIXED, **parameters})))
    return {one.line: one for one in compare_estimate(found)[1]}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("schedule", ["1f1b", "zb-h1", "layer-loop"])
def test_our_lines_sum_to_the_step_and_simais_to_its_total(seed: str, schedule: str) -> None:
    results = SimulatedRun(simulate(open_workload(seed), Parameters(network="simai-auto", schedule=schedule)))
    found = {one.line: one for one in compare_estimate(results)[1]}
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
    assert said([found["dp"].text], "SimAI", "2.632 ms", "2.632 ms")
    assert found["dp"].ours_ns == 0
    assert figures(found["tp"].text) == ["3.333 ms"]
    assert found["tp"].ours_ns == 3_333_333
    for line in ("compute", "ep", "bubble"):
        assert figures(found[line].text) == []
        assert "here" not in found[line].text
    assert said([found["total"].text], "-2.632 ms", "all", "dp", "-2.632 ms")


def test_ratios_of_overlap_are_said() -> None:
    found = lines(ROWS, {}, overlap=("tp=0.25",))
    assert figures(found["tp"].text) == ["25 %", "3.333 ms"]


def test_scales_and_passes_are_reasons() -> None:
    found = lines(ROWS, {}, compute_scale=2.0, passes=2)
    assert figures(found["compute"].text) == ["+48.003 ms", "2"]
    assert said([found["compute"].text], "2 passes", "scales", "slow ranks", "jitter")


def test_waits_are_a_line_of_their_own() -> None:
    rows = [Row("mlp", Cell(1000, "ALLREDUCE", "tp", GIB))]
    found = lines(rows, {"all_gpus": 2}, slow_rank=("1=2",))["wait"]
    assert found == EstimateLine("wait", None, 1000, found.text)
    assert said([found.text], "SimAI", "no rank")


def test_the_bubble_of_simai_is_put_beside_the_schedules_own() -> None:
    rows = [Row("embedding_layer", Cell(1000)), *[layer("mlp", 1000)] * 4]
    header = {"pp": 2, "tp": 1, "all_gpus": 2, "vpp": 4, "pp_comm": 0}
    found = lines(rows, header, schedule="1f1b")
    assert said([found["bubble"].text], "(pp - 1)", "(ga x vpp)", "1/4", "1f1b", "1 virtual", "4.000 us")
    assert (found["pp"].ours_ns, figures(found["pp"].text)) == (0, [])


@pytest.mark.slow
def test_the_reports_have_the_lines_and_other_networks_have_none() -> None:
    results = SimulatedRun(simulate(open_workload(SEEDS[1]), Parameters(network="simai-auto")))
    values = run_json(results)["estimates"]["simai_lines"]
    assert [one["line"] for one in values] == [
        "compute", "dp", "dp_ep", "tp", "ep", "pp", "bubble", "exposed", "total"
    ]  # fmt: skip
    assert list(values[0]) == ["line", "simai_us", "ours_ns", "text"]
    page = run_page(results)
    total = "  total        8.685 s    14.859 s   +6.174 s here, almost all of it by bubble (+6.168 s)\n"
    assert total in page
    plain = SimulatedRun(simulate(open_workload(SEEDS[1]), Parameters()))
    assert compare_estimate(plain) == (0, [])
    assert "simai_lines" not in run_json(plain)["estimates"]


def test_the_bubble_with_other_virtual_stages_is_simais_shared_among_them() -> None:
    rows = [Row("embedding_layer", Cell(1000)), *[layer("mlp", 1000)] * 4]
    header = {"pp": 2, "tp": 1, "all_gpus": 2, "vpp": 4, "pp_comm": 0}
    found = lines(rows, header, schedule="interleaved", virtual_stages=2, microbatches=2)["bubble"]
    assert found.simai_us == 1
    assert said([found.text], "interleaved", "2 virtual", "2.000 us")


def test_a_schedule_without_a_pipeline_says_so_beside_simais_bubble() -> None:
    rows = [Row("embedding_layer", Cell(1000)), *[layer("mlp", 1000)] * 4]
    header = {"pp": 2, "tp": 1, "all_gpus": 2, "vpp": 4, "pp_comm": 0}
    assert said(
        [lines(rows, header, schedule="layer-loop")["bubble"].text], "1/4", "layer-loop", "no pipeline"
    )


def test_collectives_that_run_beside_each_other_hold_compute_back_once() -> None:
    """All compute is over: it waits for ep, 3 333 333 ns, then for what is left of dp's 3 947 368 ns."""
    rows = [Row("mlp", wg=Cell(0, "ALLREDUCE", kind, GIB)) for kind in ("dp", "ep")]
    found = lines(rows, {"tp": 1, "ep": 2})
    assert (found["ep"].ours_ns, found["dp"].ours_ns) == (3_333_333, 614_035)
    assert figures(found["dp"].text)[:2] == ["614.0 us", "3.947 ms"]


def test_loss_rows_of_several_microbatches_are_a_reason() -> None:
    rows = [*[layer("embedding_layer", 1000), layer("mlp", 1000)] * 2, layer("cross_entropy1", 400, 0, 0)]
    header = {"pp": 2, "tp": 1, "all_gpus": 2, "ga": 2, "pp_comm": 0}
    found = lines(rows, header, schedule="1f1b")
    assert said([found["compute"].text], "+400 ns", "loss rows", "2 micro-batches")


def test_how_much_longer_collectives_run_is_said_unless_simai_hides_some() -> None:
    """Two passes run the all-reduce of 3 333 333 ns twice."""
    assert figures(lines(ROWS, {}, passes=2)["tp"].text) == ["6.667 ms", "+3.333 ms", "2"]
    hidden = lines(ROWS, {}, passes=2, overlap=("tp=0.25",))["tp"]
    assert figures(hidden.text) == ["25 %", "6.667 ms"]


def test_each_kind_has_the_reasons_that_have_rows_of_it() -> None:
    """The loss row has a tp collective for each micro-batch, the row behind those of line 2 a dp one."""
    blocks = [layer("embedding_layer", 1000), Row("mlp", Cell(1000, "ALLREDUCE", "tp", GIB))] * 2
    loss = Row("cross_entropy1", Cell(400, "ALLREDUCE", "tp", GIB))
    behind = Row("optimizer1", wg=Cell(0, "ALLREDUCE", "dp", GIB))
    header = {"pp": 2, "all_gpus": 8, "ga": 2, "pp_comm": 0}
    workload = make_workload([*blocks, loss, behind], tp=2, ep=1, vpp=1, **header)
    workload = replace(workload, declared_rows=5)
    results = SimulatedRun(simulate(workload, Parameters(network=FIXED, schedule="1f1b")))
    found = {one.line: one.text for one in compare_estimate(results)[1]}
    for line in ("tp", "compute"):
        assert said([found[line]], "loss rows", "2 micro-batches")
    assert said([found["dp"]], "SimAI", "1 row", "5 of line 2")
    assert "loss" not in found["dp"]
    assert "SimAI leaves" not in found["tp"]


def test_a_difference_of_rounding_is_called_so() -> None:
    """SimAI cuts each collective, of single precision, to whole ns: 3 947 368 421 ns are 3 947 368 448."""
    rows = [Row("mlp", Cell(1000), wg=Cell(0, "ALLREDUCE", "dp", 1000 * GIB))]
    text = lines(rows, {})["dp"].text
    assert text.endswith(" ns of them (rounding)")
