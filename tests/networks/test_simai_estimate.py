"""SimAI's estimate beside the step time: its lines by hand, its report, and what SimAI itself would do.

Planted in a copy of simcore, one at a time, and seen to fail here or on SimAI's measured figures: the bubble
counts every row; exposed time rounded, not floored; weight gradients hidden by the ratio of tp; transfers
not hidden; all rows counted instead of the declared ones; recompute left out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from simcore.parameters import Parameters
from simcore.render.report.pages import run_json, run_page
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import simulate
from simcore.workload import Header, Workload, open_workload
from tests.findings import facts, findings
from tests.says import figures, said
from tests.strategies import Cell, Row, make_workload
from tests.workload.texts import HEADER, read, row, text_of

INPUTS = Path(__file__).parent / "simai"
FIXED = f"busbw:{INPUTS / 'busbw_fixed.yaml'}"
GIB = 2**30


def rows() -> list[Row]:
    """Times in us that are easy to add up: a GiB over two ranks at 300 GiB/s is 3333.333 us."""
    return [
        Row("grad_param_comm", Cell(1000), Cell(1000), Cell(1000, "ALLREDUCE", "dp", GIB)),
        Row("embedding_layer", Cell(500, "ALLREDUCE", "tp", GIB), Cell(500), Cell(500)),
        Row("mlp", Cell(2000, "ALLREDUCE", "tp", GIB), Cell(3000, "ALLREDUCE", "tp", GIB), Cell(4000)),
    ]


def estimate(workload: Workload, **parameters: Any) -> dict[str, Any]:
    values = {"network": FIXED} | parameters
    found = run_json(SimulatedRun(simulate(workload, Parameters(**values))))["estimates"]["simai"]
    assert isinstance(found, dict)
    return found


def made(**header: Any) -> Workload:
    keys = {"tp": 2, "ep": 1, "pp": 2, "vpp": 3, "ga": 5, "all_gpus": 16, "pp_comm": GIB // 10}
    return make_workload(rows(), **keys | header)


def test_the_lines_by_hand() -> None:
    tp_ns = 3_333_333  # 1 / 300 s x 2 x 1/2
    dp_ns = 3_947_368  # 1 / 380 s x 2 x 3/4
    shown = estimate(made())
    assert shown == {
        # Single precision has 24 bits: SimAI keeps times in it.
        "dp_us": 3947.368, "dp_ep_us": 0.0, "tp_us": 3 * 3333.333, "ep_us": 0.0, "pp_us": 0,
        "bubble_us": round((3000 + 9000 + 2 * tp_ns) / (5 * 3) / 1000, 3),
        "compute_us": 13.5,
        "exposed_us": round(3 * 3333.333 + dp_ns / 1000, 3),
        "total_us": round(13.5 + 3 * 3333.333 + dp_ns / 1000 + (12000 + 2 * tp_ns) / 15 / 1000, 3),
    }  # fmt: skip


def test_overlap_hides_a_share_of_each_kind() -> None:
    whole, half = estimate(made()), estimate(made(), overlap=("dp=0.5,tp=1", "pp=0.25"))
    assert half["dp_us"] == int(whole["dp_us"] * 1000 / 2) / 1000
    assert half["tp_us"] == 0
    transfers = int(2 * 3 * 5 * (GIB // 10) / GIB / 47.5 * 1e9 / 1000)
    assert half["pp_us"] == int(transfers * 0.75)
    assert (half["bubble_us"], half["compute_us"]) == (whole["bubble_us"], whole["compute_us"])
    assert half["exposed_us"] == half["dp_us"]
    assert half["total_us"] == pytest.approx(
        half["dp_us"] + half["pp_us"] + half["bubble_us"] + half["compute_us"], abs=0.001
    )


def test_the_overlap_of_an_expert_row_is_that_of_ep() -> None:
    workload = make_workload(
        [Row("moe", Cell(0, "ALLTOALL", "ep", GIB), Cell(0, "ALLREDUCE", "tp", GIB))],
        tp=2, ep=2, pp=1, vpp=1, ga=1, all_gpus=16,
    )  # fmt: skip
    whole, most = estimate(workload), estimate(workload, overlap=("ep=0.1",))
    # Both cells go to the group of the forward one.
    assert (whole["tp_us"], whole["ep_us"]) == (0, 6250 + 3333.333)
    assert most["ep_us"] == 5625 + 2999.999


@pytest.mark.slow
def test_a_missing_vpp_is_the_layers_that_were_found_and_a_missing_ga_the_blocks() -> None:
    layers = [Row("embedding_layer"), *[Row("mlp", Cell(100), Cell(100), Cell(100))] * 8] * 2
    keys = {"tp": 2, "ep": 1, "pp": 4, "all_gpus": 16, "pp_comm": 0}
    assert estimate(make_workload(layers, **keys)) == estimate(make_workload(layers, vpp=8, ga=2, **keys))
    found = estimate(open_workload("fixtures/002_gpt_1024npu.txt"), network="simai-auto", nvlink=360.0)
    assert found["bubble_us"] == pytest.approx(6_946_315 / 8, abs=0.2)
    assert found["pp_us"] is None
    assert found["total_us"] == pytest.approx(found["compute_us"] + found["exposed_us"] + found["bubble_us"])


def test_transfers_are_not_known_where_there_is_no_bandwidth() -> None:
    assert estimate(made(), network="simai-auto")["pp_us"] is None
    plain = make_workload([Row("mlp", Cell(1))], tp=2, ep=1, pp=2, vpp=1, ga=1, all_gpus=4, pp_comm=0)
    assert estimate(plain, network=f"busbw:{INPUTS / 'busbw_docs.yaml'}")["pp_us"] is None
    assert estimate(made(pp_comm=None))["pp_us"] == 0


@pytest.mark.parametrize(("declared", "counted"), [(None, 3), (2, 2), (3, 3), (9, 3), (0, 0)])
def test_rows_beyond_the_declared_ones_do_not_count(declared: int | None, counted: int) -> None:
    workload = structs.replace(made(), declared_rows=declared)
    assert estimate(workload)["compute_us"] == sum([3, 1.5, 9][:counted])


def test_a_recompute_adds_the_forward_from_the_nearest_checkpoint() -> None:
    times = {"a": 1000, "b": 2000, "c": 4000, "d": 8000}
    layers = [Row(name, Cell(ns), Cell(1)) for name, ns in times.items()]
    keys = {"tp": 1, "ep": 1, "pp": 1, "vpp": 1, "ga": 1, "all_gpus": 1}
    plain = make_workload(layers, **keys)
    again = make_workload(layers, checkpoints=(0, 1), checkpoint_initiates=(3, 1, 0), **keys)
    # Row 3 from checkpoint 1: b and c; row 1 from checkpoint 0: a; row 0 from none.
    assert estimate(again)["compute_us"] - estimate(plain)["compute_us"] == pytest.approx(7.0)


def test_scales_faults_and_the_schedule_play_no_part() -> None:
    changed = {"compute_scale": 2.0, "comm_scale": 0.5, "slow_rank": ("0=2",), "schedule": "gpipe"}
    assert estimate(made(), **changed) == estimate(made())


def test_there_is_none_under_other_networks() -> None:
    for network in ("analytical", "shared"):
        results = SimulatedRun(simulate(made(), Parameters(network=network)))
        assert run_json(results)["estimates"] == {"simai": None}
        assert "SimAI" not in run_page(results)


def test_without_a_bandwidth_that_only_the_estimate_needs_there_is_none_and_it_is_said() -> None:
    """SimAI prices a weight gradient's `_EP` on dp groups."""
    cell = Cell(0, "ALLREDUCE", "ep", 100)
    workload = make_workload([Row("moe", wg=cell)], tp=2, ep=2, pp=1, vpp=1, ga=1, all_gpus=16)
    simulation = simulate(workload, Parameters(network=f"busbw:{INPUTS / 'busbw.yaml'}"))
    assert run_json(SimulatedRun(simulation))["estimates"] == {"simai": None}
    assert findings(one.text() for one in simulation.diagnostics if one.code == "simai-no-estimate") == [
        "made.txt: note simai-no-estimate DP.allreduce, dp, 2, 64 ns"
    ]


def test_the_report_says_it_beside_the_step_time() -> None:
    text = run_page(SimulatedRun(simulate(made(), Parameters(network=FIXED, overlap=("pp=0.5",)))))
    title, _, head, *lines = text[text.index("SimAI's own estimate") :].splitlines()
    assert figures(title) == ["45.984 ms", "1.632"]
    assert figures(head) == ["0-7"]
    assert figures(said(lines, "  compute  ")) == ["13.500 us", "13.500 us"]
    assert figures(said(lines, "  pp  "))[:3] == ["31.578 ms", "2.105 ms", "50 %"]
    assert facts(said(lines, "  total  ")) == "45.984 ms, 28.182 ms, -17.802 ms, pp, -29.473 ms"
    nothing = make_workload([Row("embedding_layer"), Row("mlp", Cell(1000))], tp=2, ep=1, pp=1, all_gpus=2)
    text = run_page(SimulatedRun(simulate(nothing, Parameters(network="simai-auto"))))
    lines = text[text.index("SimAI's own estimate") :].splitlines()
    assert said(lines, "  pp  ").split()[:4] == ["pp", "-", "0", "s"]
    assert "no bandwidth" in said(lines, "  pp  ")
    assert facts(said(lines, "  total  ")) == "1.000 us, 1.000 us"


# -- what SimAI itself would do ------------------------------------------------------


def fails(workload: Workload) -> list[str]:
    simulation = simulate(workload, Parameters(network="simai-auto"))
    return [one.text() for one in simulation.diagnostics if one.code == "simai-fails"]


def test_missing_header_keys_crash_simai() -> None:
    lines = fails(open_workload("fixtures/000_gpt13b_tp4_old_header.txt"))
    assert findings(lines) == ["fixtures/000_gpt13b_tp4_old_header.txt:1: note simai-fails ep, pp"]
    assert "crashes" in lines[0]


def test_a_missing_vpp_or_ga_gives_inf() -> None:
    lines = [
        *fails(open_workload("fixtures/002_gpt_1024npu.txt")),
        *fails(read(text_of(row(), header=HEADER.replace("ga: 1", "ga: 0")))),
    ]
    assert findings(lines) == [
        "fixtures/002_gpt_1024npu.txt:1: note simai-fails vpp, 8",
        "w.txt:1: note simai-fails 0, ga, 1",
    ]
    assert all("Inf" in line for line in lines)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (text_of("# note", row(), count=1), "w.txt:3: note simai-fails SimAI itself prints "
         "nothing for this file and ends with status 0: a comment"),
        (text_of(row(), row().replace(" 10 ", " 10.5 ")), "w.txt:4: note simai-fails SimAI itself prints "
         "nothing for this file and ends with status 0: a number with a point or exponent"),
        (text_of(row(), row().replace(" 10 ", f" {2**31} ")), "w.txt:4: note simai-fails SimAI itself hangs "
         "on this file: a cell of 2147483648 ns, 2^31 or more"),
        (text_of(row(), count=3), "w.txt: note simai-fails SimAI itself counts the last row 2 times more"),
    ],
)  # fmt: skip
def test_what_simai_would_do_with_a_file_is_said(text: str, message: str) -> None:
    assert fails(read(text)) == [message]


def test_another_policy_crashes_simai() -> None:
    workload = structs.replace(read(text_of(row())), policy="HYBRID_DLRM\x1b")
    assert findings(fails(workload)) == ["w.txt:1: note simai-fails HYBRID_DLRM\\x1b"]


def test_of_a_policy_that_crashes_simai_the_policy_alone_is_said() -> None:
    workload = structs.replace(read(text_of(row(), count=3)), policy="MICRO", header=Header())
    assert findings(fails(workload)) == ["w.txt:1: note simai-fails MICRO"]


def test_of_an_op_table_one_note_says_that_simai_does_not_read_it() -> None:
    path = "fixtures/003_gpt2_large_op_table.txt"
    for name in ("simai-auto", "busbw:tests/networks/simai/busbw_fixed.yaml"):
        found = simulate(open_workload(path), Parameters(network=name)).diagnostics
        assert findings(one.text() for one in found if one.code.startswith("simai")) == [
            f"{path}: note simai-fails"
        ]


def test_of_a_file_that_simai_reads_nothing_is_said() -> None:
    assert fails(read(text_of(row(), row().replace(" 10 ", f" {2**31 - 1} "), row()))) == []
    assert fails(read(text_of(row(), row().replace(" 10 ", f" {2**31} "), count=1))) == []
