"""What is on a page, before any script runs: figures, words, and names that must stay text."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from simcore.comparison import Comparison
from simcore.measured import MeasuredRun
from simcore.parameters import OpeningOptions, Parameters
from simcore.render.report.comparison import comparison_json
from simcore.render.report.pages import run_json, run_page
from simcore.runs.measured import run_recording
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import simulate
from simcore.sources.inputs import open_input
from simcore.trace.lane_spans import KINDS
from simcore.trace.run import Run
from simcore.units import duration
from tests.page.opened import ROOT, data_of, packed_of, page_of, seed, tables_of, text_of, whole_page
from tests.strategies import Case, Cell, Row, cases, make_workload

_SHARED = ROOT.parent / "shared" / "corpus" / "kineto" / "dlrm_8"
# The account that a kind of span counts for, where it is compute or no communication.
_UNITS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
SEEDS = ("000", "001", "002", "003")


def trace_004() -> Run:
    """The measured run of the one trace among the fixtures."""
    opened = open_input(str(ROOT / "fixtures" / "004_megatron_rank7_trace.txt"))
    assert isinstance(opened, MeasuredRun)
    return run_recording(opened, Parameters())


def any_run(number: str) -> Run:
    # Of the largest a quarter: each span on a page takes its time.
    return trace_004() if number == "004" else seed(number, microbatches=4 if number == "002" else None)


@pytest.mark.slow
@pytest.mark.sampled(2)
@pytest.mark.parametrize("number", [*SEEDS, "004"])
def test_the_figures_of_a_page_are_those_of_the_json(number: str) -> None:
    run = any_run(number)
    values, page = run_json(run, with_what_if=True), page_of(run)
    tables, data = tables_of(page), data_of(page)
    _same_step(values, text_of(page), data["runs"][0])
    _same_classes(values, tables["accounts"][0])
    _same_layers(values, tables)
    _same_spans(values, data)


@pytest.mark.skipif(not _SHARED.exists(), reason="../shared/corpus/kineto/dlrm_8 is not there")
def test_the_figures_of_a_profiler_set_are_those_of_the_json() -> None:
    opened = open_input(str(_SHARED), OpeningOptions(ranks="0-2"))
    assert isinstance(opened, MeasuredRun)
    run = run_recording(opened, Parameters())
    values, page = run_json(run, with_what_if=True), page_of(run)
    _same_step(values, text_of(page), data_of(page)["runs"][0])
    _same_classes(values, tables_of(page)["accounts"][0])


def _same_step(values: dict[str, Any], text: dict[str, str], run: dict[str, Any]) -> None:
    assert run["length"] == values["step_time_ns"]
    for one in values["sentences"]:
        assert one["text"] in text["verdict"]
    for one in values["diagnostics"]:
        assert one["message"] in text["noticed"]


def _ns(cell: str, unit: str) -> float:
    return float(cell) * _UNITS[unit]


def _same_classes(values: dict[str, Any], table: list[list[str]]) -> None:
    """Compute, exposed communication and idle of each class, as rounded as they are shown."""
    head, *rows = table
    assert len(rows) == len(values["classes"])
    step = values["step_time_ns"]
    for row, one in zip(rows, values["classes"], strict=True):
        cells = dict(zip(head, row, strict=True))
        shown = {name: float(cells[name]) for name in ("idle", "bubble", "wait") if name in cells}
        unit = min(_UNITS.values(), key=lambda unit: abs(sum(_all(one)) / unit - _sum(cells)))
        for name, figure in shown.items():
            assert figure == pytest.approx(one[f"{name}_ns"] / unit, abs=0.0051)
        assert _sum(cells) == pytest.approx(step / unit, abs=0.01 * len(cells))
        share = 100 * sum(one["compute_ns"].values()) / step if step else 0
        assert float(cells["computing"].rstrip(" %")) == pytest.approx(share, abs=0.051)


def _all(one: dict[str, Any]) -> list[int]:
    alone = [one.get(f"{name}_ns") or 0 for name in ("wait", "bubble", "host", "idle")]
    return [*one["compute_ns"].values(), *one["exposed_ns"].values(), *alone]


def _sum(cells: dict[str, str]) -> float:
    return sum(float(cell) for name, cell in cells.items() if name not in ("stage", "ranks", "", "computing"))


def _same_layers(values: dict[str, Any], tables: dict[str, Any]) -> None:
    """Every row of the file, in its order, with what of it is exposed and critical; a trace has none."""
    if "rows" not in tables:
        assert not any("fwd" in one and one["fwd"] for one in values["layers"])
        return
    head, *lines = tables["rows"][0]
    rows = [dict(zip(head, line, strict=True)) for line in lines if line[head.index("layer")]]
    assert len(rows) == len(values["layers"])
    for row, one in zip(rows, values["layers"], strict=True):
        assert row["layer"] == one["name"]
        for name in ("exposed", "critical"):
            assert float(row[f"{name} ms"]) == pytest.approx(one[f"{name}_ns"] / 1e6, abs=0.00051)


def _same_spans(values: dict[str, Any], data: dict[str, Any]) -> None:
    """The lane of each class adds up to the step, and its compute to the compute of the JSON."""
    by_rank = {one["ranks"]: one for one in values["classes"]}
    for track in data["runs"][0]["tracks"]:
        lane, one = track["lane"], by_rank[track["ranks"]]
        ns: dict[str, int] = defaultdict(int)
        fills = lane["parts"] or lane
        for kind, length in zip(fills["kind"], fills["length"], strict=True):
            ns[KINDS[kind]] += length
        assert sum(ns.values()) == values["step_time_ns"]
        compute = sum(ns[name] for name in ("fwd", "bwd", "wg", "opt", "recompute", "kernel"))
        assert compute == sum(one["compute_ns"].values())


@pytest.mark.slow
def test_the_words_of_a_page_are_those_of_the_report() -> None:
    run = seed("000")
    words = re.sub(r"\s+", " ", " ".join(text_of(page_of(run)).values()))
    page = run_page(run, with_what_if=True)
    for section in page.split("\n\n"):
        title = section.split("\n")[0].strip()
        if not title.startswith(("file", "In words", "Diagnostics", "The 10 most")):
            assert re.sub(r"\s+", " ", title) in words


@pytest.mark.slow
def test_a_page_of_two_runs_has_both_on_one_axis(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simcore.render.page.packing.MOST_SPANS", 1)  # one lane of each
    a, b = seed("002", schedule="1f1b"), seed("002", schedule="zb-h1")
    page = page_of(b, a)
    data, text = data_of(page), text_of(page)
    assert [one["length"] for one in data["runs"]] == [a.step_time_ns, b.step_time_ns]
    assert "The step of B is 27.6 % shorter: 10.695 s instead of 14.774 s" in text["verdict"]
    assert "B - A -4.079 s (-27.6 %)" in re.sub(r"\s+", " ", text["verdict"])
    # What was noticed of both is said once.
    assert "noticed of both" in text["noticed"]
    head, *rows = tables_of(page)["parameters"][0]
    assert head == ["parameter", "A", "B"]
    assert ["--schedule", "1f1b", "zb-h1"] in rows
    # What the network has no use for was not in force.
    assert not {"--nvlink", "--nic-type"} & {row[0] for row in rows}
    assert "wltui compare" in text["command"]
    assert "--with '--schedule zb-h1'" in text["command"]
    assert "wltui export" in text["command"]


def test_the_parameters_of_a_network_stand_where_it_is_in_force() -> None:
    rows = tables_of(page_of(seed("000", network="simai-auto")))["parameters"][0]
    assert ["--nvlink", "370.8"] in rows


def test_the_change_that_gains_most_stands_with_the_verdict() -> None:
    """It is the first row of the table of changes, and a run with it takes what it says."""
    run = seed("000")
    page = page_of(run)
    said = re.search(r"Of the changes that were tried (--.*) gains most: (\S+ \w+) \((\S+ %)\)",
                     text_of(page)["verdict"])  # fmt: skip
    assert said is not None
    rows = tables_of(page)["what-if"][0][1:]
    assert rows[0][:3] == [said[1], said[2], said[3]]
    assert said[1] == "--schedule 1f1b --overlap-grad-reduce"
    again = seed("000", schedule="1f1b", overlap_grad_reduce=True)
    assert duration(again.step_time_ns) == said[2]


def test_where_no_change_gains_none_is_named() -> None:
    workload = make_workload([Row("mlp", Cell(1000))], tp=1, pp=1, all_gpus=1)
    page = page_of(SimulatedRun(simulate(workload, Parameters(schedule="1f1b"))))
    assert "gains most" not in text_of(page)["verdict"]


@pytest.mark.slow
def test_the_figures_of_a_comparison_are_those_of_the_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simcore.render.page.packing.MOST_SPANS", 1)  # one lane of each
    a, b = seed("002", microbatches=4), seed("002", schedule="zb-h1", microbatches=4)
    values, page = comparison_json(Comparison(a, b)), page_of(b, a)
    text = re.sub(r"\s+", " ", text_of(page)["verdict"])
    assert values["why"] in text
    assert f"({values['difference_percent']:.1f} %)" in text
    rows = tables_of(page)["account-changes"][0][1:]
    shown = {row[0]: row[1:3] for row in rows}
    for one in values["accounts"]:
        if one["a_ns"] or one["b_ns"]:
            cells = [float(cell) for cell in shown[one["account"]]]
            assert cells == pytest.approx([one["a_ns"] / 1e9, one["b_ns"] / 1e9], abs=0.00051)
    lines = tables_of(page)["path-changes"][0]
    for one in values["critical_path"]["by_kind"]:
        row = next(line for line in lines if line[0] == one["kind"])
        assert float(row[1]) == pytest.approx(one["a_ns"] / 1e9, abs=0.00051)


@pytest.mark.slow
def test_seed_002_is_below_2_mb_and_asks_for_nothing(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> None:
    """Of 16 micro-batches 2 have an eighth of the spans, and the page takes a sixth of the time."""
    if request.config.getoption("--whole"):
        page, times = whole_page(tmp_path_factory), 1
    else:
        page, times = page_of(seed("002", microbatches=2)), 8
    assert len(page) + (times - 1) * len(packed_of(page)) < 2_000_000
    assert not re.search(r"(src|href|url|import|fetch|XMLHttp)\s*[=(:]\s*['\"]?\s*(https?:)?//", page)
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)
    assert policy is not None
    assert "default-src 'none'" in policy[1]
    assert "unsafe" not in policy[1]


@settings(max_examples=20)
@given(cases(most_ranks=12))
def test_every_lane_of_a_page_is_the_lane_of_the_run(case: Case) -> None:
    """Nothing is lost on the way: the spans that a browser unpacks are those that the run has."""
    run = SimulatedRun(simulate(*case))
    lanes = run.lanes
    data = data_of(page_of(run))
    assert [one["number"] for one in data["runs"][0]["tracks"]] == list(lanes.facts.track_ids)
    for track in data["runs"][0]["tracks"]:
        wanted = lanes.spans(track["number"], None)
        lane = track["lane"]
        assert lane["start"] == list(wanted.start)
        ends = [start + length for start, length in zip(lane["start"], lane["length"], strict=True)]
        assert ends == list(wanted.end)
        for place, number in enumerate(lane["cause"]):
            steps = lanes.words.find_steps(track["number"], None, place, None, -1)
            assert (number >= 0) == bool(steps)
            if steps:
                assert lane["to_start"][place] == steps[0].start_ns
                assert lane["to_track"][place] == steps[0].track_id


def test_the_words_of_a_page_are_explained_and_no_other() -> None:
    words = text_of(page_of(seed("001")))["words"]
    assert "bubble" in words
    assert "weight gradients" in words
    # Its table of bandwidths has no micro-batch sizes.
    assert "sequences of a micro-batch" not in words


HOSTILE = (
    "<script>alert(1)</script>", "</script><img src=x onerror=alert(1)>", "\"'><svg/onload=alert(1)>",
    "&lt;b&gt;", "x" * 1_000_000, "\u202eevil\u2066", "]]>--><!--", "{{7*7}}",
    "a\x1b[31mb", "javascript:alert(1)",
)  # fmt: skip


def hostile_page() -> str:
    """The page of a run whose rows have names that want to be more than text."""
    rows = [Row(name, Cell(1000 + place, "ALLREDUCE", "tp", 4096)) for place, name in enumerate(HOSTILE)]
    workload = make_workload(rows, tp=2, pp=1, all_gpus=2)
    return page_of(SimulatedRun(simulate(workload, Parameters())))


def test_names_from_a_file_stay_text() -> None:
    page = hostile_page()
    assert len(page) < 1_000_000
    # One script that runs, one that is data; no element that a name brought along.
    assert page.count("<script") == page.count("</script>") == 2
    assert "<img" not in page
    assert "onload=alert(1)>" not in page.replace("&gt;", "")
    for char in ("\u202e", "\u2066", "\x1b"):
        assert char not in page
        assert char not in json.dumps(data_of(page), ensure_ascii=False)


def test_what_a_file_is_called_stays_text(tmp_path: Path) -> None:
    path = tmp_path / "<b>&amp;$(rm -rf).txt"
    path.write_bytes((ROOT / "fixtures" / "000_gpt13b_tp4_old_header.txt").read_bytes())
    opened = open_input(str(path))
    run = SimulatedRun(simulate(opened, Parameters()))  # type: ignore[arg-type]
    page = page_of(run)
    assert "<b>" not in page
    assert f"wltui '{path}'" in text_of(page)["command"]


@pytest.mark.slow
def test_lanes_that_find_no_room_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simcore.render.page.packing.MOST_SPANS", 1_500)
    page = page_of(seed("002", microbatches=1))
    shown = len(data_of(page)["runs"][0]["tracks"])
    assert 0 < shown < 16
    assert f"{16 - shown} more lanes " in text_of(page)["timeline"]


def test_paper_and_narrow_windows_state_what_differs_alone() -> None:
    """On paper no row is torn by the end of a page."""
    styles = (ROOT / "simcore" / "render" / "page" / "page.css").read_text(encoding="utf-8")
    rules = [line.strip() for line in styles.splitlines() if "{" in line and line.endswith("}")]
    assert [rule for rule in rules if rules.count(rule) > 1] == []
    printed = styles.partition("@media print")[2]
    assert re.search(r"\btr\b[^}]*{ break-inside: avoid", printed)
