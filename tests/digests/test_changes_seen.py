"""The digests tell which part of an output a change has moved, and leave the others alone."""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from simcore.records import replace
from simcore.runs.simulated import SimulatedRun
from simcore.trace.run import merged_segments_of

from . import __main__ as command
from . import kept, parts, running
from .cases import Case
from .running import digests, printed_json, texts
from .runs import opened_run

_SEED = "fixtures/000_gpt13b_tp4_old_header.txt"
_PIPELINE = Case(_SEED, "--world 8 --pp 2 --microbatches 2", ("json", "run"))
_COMPARED = Case(_PIPELINE.source, f'{_PIPELINE.words} --with "--slow-rank 5=1.5"', ("compare",))
_TRACE = Case("fixtures/004_megatron_rank7_trace.txt", "", ("json",))
_SET = Case("wl", "", ("json", "run", "lanes"), folder="chakra/004")
_OF_EACH_KIND = [
    Case(case.source, case.words, ("run", "lanes"), folder=case.folder) for case in (_PIPELINE, _TRACE, _SET)
]

Output = Any
Plant = Callable[[Output], object]


@pytest.fixture(scope="module")
def report() -> str:
    return _printed(_PIPELINE, "json")


@pytest.fixture(scope="module")
def comparison() -> str:
    return _printed(_COMPARED, "compare")


def _printed(case: Case, view: str) -> str:
    printed = printed_json(case, view)
    assert printed is not None
    return printed


def _parts_that_differ(view: str, printed: str, plant: Plant) -> set[str]:
    """The parts of an output that are others after something was planted in it."""
    output = json.loads(printed)
    plant(output)
    before, after = parts.json_parts(view, printed), parts.json_parts(view, json.dumps(output))
    return {part for part in before.keys() | after.keys() if before.get(part) != after.get(part)}


def _a_nanosecond_more(output: Output, key: str) -> None:
    output[key] += 1


def _path_over_another_rank(output: Output) -> None:
    """A tie named otherwise: the same times by the peer of a rank."""
    for segment in output["critical_path"]:
        segment["rank"] += 1


def _later_end(output: Output) -> None:
    """The last of the path takes longer, under the same names."""
    output["critical_path"][-1]["end_ns"] += 1


def _one_segment_less(output: Output) -> None:
    """Two neighbours of one kind as one: what the path has of each kind is the same."""
    path = output["critical_path"]
    number = next(n for n in range(len(path) - 1) if path[n]["kind"] == path[n + 1]["kind"])
    path[number]["end_ns"] = path.pop(number + 1)["end_ns"]


REPORT_PLANTS: list[tuple[Plant, set[str]]] = [
    (lambda output: _a_nanosecond_more(output, "step_time_ns"), {"step"}),
    (lambda output: _a_nanosecond_more(output["classes"][0], "bubble_ns"), {"accounts"}),
    (lambda output: _a_nanosecond_more(output["mean_ns"], "idle"), {"accounts"}),
    (lambda output: _a_nanosecond_more(output["layers"][20], "slack_ns"), {"slack"}),
    (lambda output: _a_nanosecond_more(output["layers"][20], "exposed_ns"), {"layers"}),
    (lambda output: _a_nanosecond_more(output["layers"][20], "critical_ns"), {"path_layers"}),
    (_path_over_another_rank, {"path_names"}),
    (_later_end, {"path", "path_sums"}),
    (_one_segment_less, {"path", "path_names"}),
    (lambda output: output["diagnostics"].pop(), {"words"}),
    (lambda output: output["sentences"][0].update(text="All is well."), {"words"}),
    (lambda output: output.update(what_if=[{"knob": "comm", "free_ns": 1, "better10_ns": 2}]), {"what_if"}),
    (lambda output: output["estimates"].update(simai={"dp_us": 1.0}), {"estimates"}),
    (lambda output: output["parameters"].update(world=16), {"rest"}),
    (lambda output: output.update(of_tomorrow=[{"scale": "compute", "left_ns": 1}]), {"new_keys"}),
    (lambda output: [found.update(of_tomorrow_ns=0) for found in output["classes"]], {"new_keys"}),
    (lambda output: output["parameters"].update(cp=1), {"new_keys"}),
    (lambda output: [found.pop("idle_ns") for found in output["classes"]], {"accounts"}),
]
COMPARE_PLANTS: list[tuple[Plant, set[str]]] = [
    (lambda output: _a_nanosecond_more(output, "difference_ns"), {"step"}),
    (lambda output: _a_nanosecond_more(output["accounts"][0], "a_ns"), {"sums"}),
    (lambda output: _a_nanosecond_more(output["critical_path"]["by_kind"][0], "b_ns"), {"path_sums"}),
    (lambda output: _a_nanosecond_more(output["layers"][0]["compute"], "b_ns"), {"layers"}),
    (lambda output: output["movers"].reverse(), {"movers"}),
    (lambda output: output.update(why="another schedule"), {"words"}),
    (lambda output: output["matched"].update(ranks=1), {"rest"}),
    (lambda output: output.update(causes=[]), {"new_keys"}),
]


@pytest.mark.parametrize(("plant", "moved"), REPORT_PLANTS)
def test_a_change_of_a_report_is_told_by_its_part_alone(report: str, plant: Plant, moved: set[str]) -> None:
    assert _parts_that_differ("json", report, plant) == moved


@pytest.mark.parametrize(("plant", "moved"), COMPARE_PLANTS)
def test_a_change_of_a_comparison_is_told_by_its_part_alone(
    comparison: str, plant: Plant, moved: set[str]
) -> None:
    assert _parts_that_differ("compare", comparison, plant) == moved


def test_the_order_of_keys_and_the_widths_of_a_json_mean_nothing(report: str) -> None:
    output = json.loads(report)
    turned = json.dumps(dict(reversed(output.items())), indent=4)
    assert parts.json_parts("json", turned) == parts.json_parts("json", report)


@pytest.mark.parametrize("case", [_PIPELINE, _COMPARED, _TRACE, _SET], ids=lambda case: case.name)
def test_a_case_run_again_gives_the_same_texts_and_none_that_names_the_machine(case: Case) -> None:
    first = texts(case)
    assert texts(case) == first
    assert not any(str(Path.cwd()) in text or str(Path.home()) in text for text in first.values())


def test_a_wrong_slack_in_the_program_is_seen_as_slack_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    before = {_PIPELINE.name: digests(_PIPELINE)}
    right = SimulatedRun.slacks.func  # type: ignore[attr-defined]

    def one_more(results: SimulatedRun) -> list[array[int]]:
        columns = right(results)
        return [array("q", [slack + 1 for slack in column]) for column in columns]

    monkeypatch.setattr(SimulatedRun, "slacks", property(one_more))
    moved = [change.what for change in kept.changes(before, {_PIPELINE.name: digests(_PIPELINE)})]
    assert moved == ["json slack", "slack of ops"]


@cache
def _as_it_is(case: Case) -> dict[str, str]:
    return texts(case)


def _segment_that_begins_later(run: Any) -> None:
    run.accounts[run.tracks[0].track_id].edge[2] += 1


def _another_reason(run: Any) -> None:
    legs = merged_segments_of(run)
    legs[-1] = replace(legs[-1], reason="of another reason")


def _another_place(run: Any) -> None:
    worst = run.figures.worst_findings
    worst[0] = replace(worst[0], words=f"{worst[0].words}!")


def _span_that_ends_later(run: Any) -> None:
    lanes = run.lanes
    number = lanes.facts.track_ids[0]
    lanes.spans(number, next(iter(lanes.streams(number)))).end[0] += 1


@pytest.mark.parametrize("case", _OF_EACH_KIND, ids=lambda case: case.name)
@pytest.mark.parametrize(
    ("plant", "seen", "unseen"),
    [
        (_segment_that_begins_later, {"segments", "lanes"}, {"slack of ops", "legs", "path by", "passes"}),
        (_another_reason, {"legs"}, {"segments", "path by", "worst", "lanes"}),
        (_another_place, {"worst"}, {"segments", "legs", "lanes"}),
        (_span_that_ends_later, {"lanes"}, {"segments", "slack of ops", "legs", "worst", "work by name"}),
    ],
)
def test_a_change_of_a_run_is_told_by_its_part(
    case: Case, plant: Plant, seen: set[str], unseen: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = _as_it_is(case)

    def planted(words: list[str]) -> Any:
        run = opened_run(words)
        plant(run)
        return run

    monkeypatch.setattr(running, "opened_run", planted)
    after = texts(case)
    moved = {part for part in before.keys() | after.keys() if before.get(part) != after.get(part)}
    assert seen <= moved
    assert not unseen & moved


def test_a_refusal_is_kept_by_its_words() -> None:
    refused = Case(_PIPELINE.source, "--schedule none", ("json", "run"))
    assert list(texts(refused)) == ["json refused"]
    assert "--schedule" in texts(refused)["json refused"]


def test_the_files_give_back_what_was_written(tmp_path: Path) -> None:
    found = {"b | c --with x": {"json step": "12", "chrome": "34"}, "a": {"text": "56"}}
    kept.write(tmp_path / "kept.txt", found)
    assert kept.read(tmp_path / "kept.txt") == found
    lines = (tmp_path / "kept.txt").read_text().splitlines()
    assert lines == ["a | text | 56", "b | c --with x | chrome | 34", "b | c --with x | json step | 12"]


def test_the_summary_counts_cases_by_part_and_tells_what_came_and_went() -> None:
    before = {"a": {"text": "1", "csv": "1"}, "b": {"text": "1"}}
    after = {"a": {"text": "2", "chrome": "1"}, "b": {"text": "2"}}
    assert kept.summary(kept.changes(before, after), 3) == [
        "2 of 3 cases have changed; cases by part:",
        "      2 text",
        "      1 +chrome",
        "      1 -csv",
        "a: +chrome, -csv, text",
        "b: text",
    ]
    assert kept.summary([], 3) == ["no digest of 3 cases has changed"]


def test_the_check_names_a_digest_that_is_another_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = f"{_TRACE.source} --comm-scale 0"
    right = kept.read(kept.FIXTURES)[name]
    planted = {name: right | {"json step": "0" * 12}}
    monkeypatch.setattr(kept, "FIXTURES", tmp_path / "fixtures.txt")
    kept.write(kept.FIXTURES, planted)
    words = ["--jobs", "1", name]
    assert command.main(["--check", *words]) == 1
    assert f"{name}: json step\n" in capsys.readouterr().out
    assert kept.read(kept.FIXTURES) == planted
    assert command.main(words) == 0
    assert kept.read(kept.FIXTURES) == {name: right}
    assert command.main(["--check", *words]) == 0
