"""The report as JSON: its keys, its values, and that a run can be made again from it."""

import json
from functools import cache
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings

from simcore.parameters import FLAGS, TOPOLOGY_FIELDS, Parameters
from simcore.program.ops import PHASES
from simcore.render.report.pages import run_json
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import simulate
from simcore.sources.simulated import EXPOSED_KINDS
from simcore.trace.track import RARE_ACCOUNTS
from simcore.workload import Workload, open_workload
from tests.analysis.booking import run
from tests.layout.rank_text import ranks_of_text
from tests.strategies import Case, Cell, Row, cases, layer

SEED_002 = "fixtures/002_gpt_1024npu.txt"


def report_of(workload: Workload, parameters: Parameters) -> dict[str, Any]:
    """The report after a way through text: what a reader of the JSON gets."""
    report = run_json(SimulatedRun(simulate(workload, parameters)))
    loaded: dict[str, Any] = json.loads(json.dumps(report, allow_nan=False))
    assert loaded == report, "values that JSON cannot give back"
    return loaded


@cache
def seed_report(**parameters: Any) -> dict[str, Any]:
    return report_of(open_workload(SEED_002), Parameters(**parameters))


def test_the_report_has_the_keys_of_its_schema() -> None:
    report = seed_report()
    assert report["schema"] == "wltui.report/1"
    assert list(report) == [
        "schema",
        "workload",
        "cluster",
        "schedule",
        "parameters",
        "step_time_ns",
        "microbatch_ns",
        "pass_end_ns",
        "step_end_ns",
        "steady_step_ns",
        "spans",
        "ops_simulated",
        "rank_classes",
        "classes",
        "mean_ns",
        "memory",
        "layers",
        "critical_path",
        "what_if",
        "what_if_base_ns",
        "gradients",
        "streams",
        "dimensions",
        "worst_link",
        "sentences",
        "estimates",
        "diagnostics",
    ]
    assert list(report["workload"]) == [
        "format",
        "policy",
        "rows",
        "declared_rows",
        "microbatches",
        "degrees",
    ]
    assert list(report["workload"]["degrees"]) == ["tp", "ep", "dp", "pp", "world"]
    assert list(report["cluster"]) == ["dims", "network"]
    assert list(report["cluster"]["dims"][0]) == ["kind", "size", "bandwidth_gbps", "latency_ns"]
    assert list(report["classes"][0]) == [
        "ranks",
        "count",
        "stage",
        "compute_ns",
        "exposed_ns",
        "wait_ns",
        "bubble_ns",
        "idle_ns",
        "overlapped_ns",
        "comm_ns",
        "peak_microbatches",
        "streams",
    ]
    streams = ["compute", "tp", "dp", "pp>next", "pp<next", "pp>prev", "pp<prev"]
    assert [one["stream"] for one in report["streams"]] == streams
    assert list(report["streams"][0]) == [
        "stream", "busy_ns", "share", "overlapped_ns", "exposed_ns", "most_busy_ns"
    ]  # fmt: skip
    assert list(report["classes"][0]["streams"]["tp"]) == ["busy_ns", "overlapped_ns", "exposed_ns"]
    assert list(report["dimensions"][1]) == [
        "bytes", "mean_bytes", "busy_ns", "mean_busy_ns", "share", "ranks", "by_kind"
    ]  # fmt: skip
    assert list(report["dimensions"][1]["by_kind"]) == ["dp", "pp"]
    assert list(report["worst_link"]) == ["dimension", "ranks", "busy_ns", "factor"]
    assert list(report["sentences"][0]) == ["rule", "text", "ns"]
    assert tuple(report["classes"][0]["compute_ns"]) == PHASES
    assert tuple(report["classes"][0]["exposed_ns"]) == tuple(
        one for one in EXPOSED_KINDS if one != "cp" and f"exposed {one}" not in RARE_ACCOUNTS
    )
    assert list(report["layers"][0]) == [
        "index", "name", "fwd", "ig", "wg", "exposed_ns", "critical_ns", "slack_ns"
    ]  # fmt: skip
    assert list(report["critical_path"][0]) == [
        "start_ns", "end_ns", "rank", "stream", "kind", "layer", "phase", "microbatch", "reason"
    ]  # fmt: skip
    assert report["what_if"] is None
    assert list(report["layers"][0]["wg"]) == [
        "compute_ns", "comm", "group", "bytes", "comm_ns", "algbw_gbps", "busbw_gbps"
    ]  # fmt: skip
    for key in ("severity", "code", "line", "message"):
        assert key in report["diagnostics"][0]


def test_seed_002_in_json() -> None:
    report = seed_report()
    assert report["workload"] == {
        "format": "simai",
        "policy": "HYBRID_TRANSFORMER_FWD_IN_BCKWD",
        "rows": 557,
        "declared_rows": 557,
        "microbatches": 16,
        "degrees": {"tp": 8, "ep": 1, "dp": 8, "pp": 16, "world": 1024},
    }
    assert (report["schedule"], report["pass_end_ns"], report["rank_classes"]) == ("1f1b", [], 16)
    assert report["classes"][15]["ranks"] == "960-1023"
    assert [entry["peak_microbatches"] for entry in report["classes"]] == list(range(16, 0, -1))
    assert report["layers"][7]["name"] == "attention_column"
    assert report["layers"][7]["fwd"]["comm"] == "ALLGATHER"
    assert report["layers"][7]["ig"] == {
        "compute_ns": 2864860,
        "comm": "REDUCESCATTER",
        "group": "tp",
        "bytes": 0,
        "comm_ns": 0,
        "algbw_gbps": 0.0,
        "busbw_gbps": 0.0,
    }
    assert report["layers"][7]["wg"]["comm"] is None


def test_the_critical_path_of_seed_002_in_json() -> None:
    report = seed_report()
    path = report["critical_path"]
    assert path[0]["start_ns"] == 0
    assert path[-1]["end_ns"] == report["step_time_ns"] == 14_774_124_906
    assert all(one["end_ns"] == after["start_ns"] for one, after in pairwise(path))
    assert path[-1] == {
        "start_ns": 14_662_100_805,
        "end_ns": 14_774_124_906,
        "rank": 0,
        "stream": "dp",
        "kind": "all-gather",
        "layer": "grad_gather",
        "phase": "wg",
        "microbatch": None,
        "reason": "compute before it",
    }
    transfers = [one for one in path if one["kind"] == "transfer"]
    assert (transfers[0]["stream"], transfers[0]["layer"], transfers[0]["phase"]) == ("pp>next", None, "fwd")
    by_layer: dict[str, int] = {}
    for one in path:
        by_layer[one["layer"]] = by_layer.get(one["layer"], 0) + one["end_ns"] - one["start_ns"]
    rows: dict[str, int] = {}
    for row in report["layers"]:
        rows[row["name"]] = rows.get(row["name"], 0) + row["critical_ns"]
        if row["critical_ns"]:
            assert row["slack_ns"] == 0
    assert {name: ns for name, ns in rows.items() if ns} == {
        name: ns for name, ns in by_layer.items() if name is not None
    }


def test_a_row_without_spans_has_no_slack_and_is_on_no_path() -> None:
    report = run_json(SimulatedRun(run([layer("mlp", 10), layer("norm")], {})))
    assert [row["slack_ns"] for row in report["layers"]] == [0, None]
    assert [row["critical_ns"] for row in report["layers"]] == [10, 0]


def test_layer_loop_says_when_its_pass_ends() -> None:
    """Asynchronous collectives may still run then: the step ends later."""
    rows = [Row("mlp", Cell(10), Cell(20), Cell(30, "ALLREDUCE", "dp", 1000))]
    report = run_json(SimulatedRun(run(rows, {"dp": 2})))
    assert (report["pass_end_ns"], report["step_time_ns"]) == ([60], 60 + 1020)


@settings(max_examples=50)
@given(cases())
def test_figures_of_the_report_agree_with_each_other(case: Case) -> None:
    report = report_of(*case)
    step = report["step_time_ns"]
    ranks: list[int] = []
    for entry in report["classes"]:
        whole = [entry["wait_ns"], entry["bubble_ns"], entry["idle_ns"]]
        whole += [*entry["compute_ns"].values(), *entry["exposed_ns"].values()]
        assert sum(whole) == step
        assert all(isinstance(ns, int) and ns >= 0 for ns in whole)
        assert entry["count"] == len(ranks_of_text(entry["ranks"]))
        ranks += ranks_of_text(entry["ranks"])
    assert sorted(ranks) == list(range(report["workload"]["degrees"]["world"]))
    assert len(report["classes"]) == report["rank_classes"]
    assert [row["index"] for row in report["layers"]] == list(range(report["workload"]["rows"]))
    assert report["ops_simulated"] <= report["spans"]


@settings(max_examples=40)
@given(cases())
def test_the_parameters_of_a_report_make_the_same_run_again(case: Case) -> None:
    first = report_of(*case)
    given = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in first["parameters"].items()
    }
    second = report_of(case.workload, Parameters(**given))
    assert second["parameters"] == first["parameters"]
    for key in ("step_time_ns", "classes", "layers", "cluster", "workload"):
        assert second[key] == first[key]


def test_every_value_of_a_parameter_is_in_the_report() -> None:
    dims = ("ring:4:3.5:0", "switch:300:50:1e3")
    report = seed_report(
        dim=dims, algorithm=("0=direct",), endpoint_delay=0, compute_scale=0.5, no_fold=False
    )
    assert report["parameters"]["dim"] == ["ring:4:3.5:0", "switch:300:50:1000"]
    assert report["parameters"]["algorithm"] == ["0=direct"]
    assert report["parameters"]["compute_scale"] == 0.5
    assert report["cluster"]["dims"][0] == {
        "kind": "ring",
        "size": 4,
        "bandwidth_gbps": 3.5,
        "latency_ns": 0.0,
    }
    assert set(report["parameters"]) == {
        flag.field for flag in FLAGS if "workload" in flag.of and flag.field not in TOPOLOGY_FIELDS
    }


@pytest.mark.parametrize("name", ["a\x1b[2Jb", "\u202eevil", "ü", "\ud800"])
def test_names_are_given_as_they_are_in_the_file_in_ascii_json(name: str) -> None:
    report = run_json(SimulatedRun(run([layer(name, 5)], {})))
    text = json.dumps(report, allow_nan=False)
    assert text.isascii()
    assert text.isprintable()
    assert json.loads(text)["layers"][0]["name"] == name
