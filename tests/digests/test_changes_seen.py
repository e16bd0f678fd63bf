"""Golden files and digests say which part of the facts a change has moved, and where to which figure."""

from __future__ import annotations

import dataclasses
import json
from array import array
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from simcore.parameters import RunInput
from simcore.records import replace
from simcore.runs import open_run
from simcore.runs.simulated import SimulatedRun
from simcore.trace.run import merged_segments_of
from tests.command_line.running import wltui_here

from . import __main__ as command
from . import facts as facts_module
from . import golden, kept
from .cases import Case
from .facts import Facts, by_part, facts_of

_SEED = "fixtures/000_gpt13b_tp4_old_header.txt"
_PIPELINE = Case(_SEED, "--world 8 --pp 2 --microbatches 2")
_COMPARED = Case(_SEED, f'{_PIPELINE.words} --with "--slow-rank 5=1.5"', ("compare",))
_TRACE = Case("fixtures/004_megatron_rank7_trace.txt", "")
_SET = Case("wl", "", folder="chakra/004")
_OF_EACH_KIND = (_PIPELINE, _TRACE, _SET)

Output = Any
Plant = Callable[[Output], object]


@cache
def _printed(command: str, case: Case) -> str:
    return wltui_here(command, "--json", *case.arguments).stdout


def _moved(before: Facts, after: Facts) -> set[str]:
    """The parts whose digests differ."""
    parts = kept.changes({"": kept.digests(before)}, {"": kept.digests(after)})
    return set(parts.get("", ()))


def _a_nanosecond_more(output: Output, key: str) -> None:
    output[key] += 1


def _later_end(output: Output) -> None:
    """The last of the path takes longer, under the same names."""
    output["critical_path"][-1]["end_ns"] += 1


REPORT_PLANTS: list[tuple[Plant, str]] = [
    (lambda output: _a_nanosecond_more(output, "step_time_ns"), "step"),
    (lambda output: _a_nanosecond_more(output["classes"][0], "bubble_ns"), "accounts"),
    (lambda output: [track.pop("idle_ns") for track in output["classes"]], "accounts"),
    (lambda output: _a_nanosecond_more(output["layers"][20], "slack_ns"), "layers"),
    (_later_end, "path"),
    (lambda output: output["diagnostics"].pop(), "words"),
    (lambda output: output["sentences"][0].update(text="All takes 1 ns."), "words"),
    (lambda output: output.update(what_if=[{"knob": "comm", "free_ns": 1}]), "what_if"),
    (lambda output: output["parameters"].update(world=16), "rest"),
    (lambda output: output.update(of_tomorrow=[{"scale": "compute", "left_ns": 1}]), "rest"),
]
COMPARE_PLANTS: list[tuple[Plant, str]] = [
    (lambda output: _a_nanosecond_more(output["a"], "step_time_ns"), "step"),
    (lambda output: _a_nanosecond_more(output["accounts"][0], "a_ns"), "accounts"),
    (lambda output: _a_nanosecond_more(output["critical_path"]["by_kind"][0], "b_ns"), "path"),
    (lambda output: _a_nanosecond_more(output["layers"][0]["compute"], "b_ns"), "layers"),
    (lambda output: output["movers"].reverse(), "movers"),
    (lambda output: output.update(why="another schedule"), "words"),
]


@pytest.mark.parametrize(
    ("words", "case", "plants"),
    [("report", _PIPELINE, REPORT_PLANTS), ("compare", _COMPARED, COMPARE_PLANTS)],
    ids=["report", "compare"],
)
def test_a_change_of_a_json_is_seen_in_its_part_alone(
    words: str, case: Case, plants: list[tuple[Plant, str]]
) -> None:
    text = _printed(words, case)
    before = by_part(json.loads(text))
    for number, (plant, part) in enumerate(plants):
        output = json.loads(text)
        plant(output)
        assert _moved(before, by_part(output)) == {part}, number


def test_neither_the_order_of_keys_nor_the_wording_is_a_fact() -> None:
    output = json.loads(_printed("report", _PIPELINE))
    turned = json.loads(json.dumps(output), object_hook=lambda found: dict(reversed(found.items())))
    for sentence in turned["sentences"]:
        sentence["text"] = f"Say: {sentence['text']}"
    assert not _moved(by_part(output), by_part(turned))


@pytest.mark.parametrize("case", [*_OF_EACH_KIND, _COMPARED], ids=lambda case: case.name)
def test_a_case_run_again_gives_the_same_facts_and_none_that_names_the_machine(case: Case) -> None:
    text = json.dumps(facts_of(case))
    assert json.dumps(facts_of(case)) == text
    assert not any(str(folder) in text for folder in (Path.cwd(), Path.home(), "/tmp"))


def test_a_wrong_slack_in_the_program_is_seen_as_slack_of_ops_and_layers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = facts_of(_PIPELINE)
    right = SimulatedRun.slacks.func  # type: ignore[attr-defined]

    def one_more(results: SimulatedRun) -> list[array[int]]:
        return [array("q", [slack + 1 for slack in column]) for column in right(results)]

    monkeypatch.setattr(SimulatedRun, "slacks", property(one_more))
    assert _moved(before, facts_of(_PIPELINE)) == {"slack", "layers"}


def _segment_that_begins_later(run: Any) -> None:
    run.accounts[run.tracks[0].track_id].edge[2] += 1


def _another_reason(run: Any) -> None:
    legs = merged_segments_of(run)
    legs[-1] = replace(legs[-1], reason="of another reason")


def _another_place(run: Any) -> None:
    worst = run.figures.worst_findings
    worst[0] = replace(worst[0], ns=worst[0].ns + 1)


def _span_that_ends_later(run: Any) -> None:
    lanes = run.lanes
    number = lanes.facts.track_ids[0]
    lanes.spans(number, next(iter(lanes.streams(number)))).end[0] += 1


@pytest.mark.slow
@pytest.mark.parametrize("case", _OF_EACH_KIND, ids=lambda case: case.name)
@pytest.mark.parametrize(
    ("plant", "seen", "unseen"),
    [
        (_segment_that_begins_later, {"accounts", "work", "lanes"}, {"slack", "path"}),
        (_another_reason, {"path"}, {"accounts", "slack", "words", "lanes"}),
        (_another_place, {"words"}, {"accounts", "path", "lanes"}),
        (_span_that_ends_later, {"lanes"}, {"accounts", "slack", "path", "words", "work"}),
    ],
)
def test_a_change_of_a_run_is_seen_in_its_part(
    case: Case, plant: Plant, seen: set[str], unseen: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = dataclasses.replace(case, views=("run", "work", "lanes"))
    before = _facts_as_they_are(shown)

    def planted(run_input: RunInput) -> Any:
        run = open_run(run_input)
        plant(run)
        return run

    monkeypatch.setattr(facts_module, "open_run", planted)
    moved = _moved(before, facts_of(shown))
    assert seen <= moved
    assert not unseen & moved


_facts_as_they_are = cache(facts_of)


def test_a_difference_names_its_place_and_both_figures() -> None:
    before = {"path": {"legs": _many(0), "by": [["tp", 7]]}, "step": {"step_time_ns": 3}}
    after = {"path": {"legs": _many(1), "by": [["tp", 8]]}, "step": {"steps": 2}}
    kept_before, kept_after = (golden.golden(_PIPELINE, facts) for facts in (before, after))
    assert golden.differences(kept_before, kept_before) == []
    assert golden.differences(kept_before, kept_after) == [
        "path.legs.totals.ns: 190 is now 191",
        "path.by[0][1]: 7 is now 8",
        "step.step_time_ns: 3 is now nothing",
        "step.steps: nothing is now 2",
    ]


def _many(later_ns: int) -> list[dict[str, Any]]:
    """20 records, of which the one that begins at 8 takes so much longer."""
    return [{"start_ns": start, "ns": start + later_ns * (start == 8)} for start in range(20)]


def test_a_change_of_what_does_not_stand_in_a_golden_file_is_seen_by_its_checksum() -> None:
    before = {"accounts": {"segments": [[at, "idle"] for at in range(20)]}, "step": {"begin_ns": 0}}
    after = {"accounts": {"segments": [[at + (at == 8), "idle"] for at in range(20)]}, "step": {}}
    kept_before, kept_after = (golden.golden(_PIPELINE, facts) for facts in (before, after))
    found = [line.partition(":")[0] for line in golden.differences(kept_before, kept_after)]
    assert found == ["accounts.segments.checksum", "step.checksum"]


def test_a_refusal_is_kept_by_its_facts() -> None:
    refused = facts_of(Case(_SEED, "--schedule none"))
    assert list(refused) == ["refused"]
    assert "--schedule" in refused["refused"]["facts"]


def test_the_files_give_back_what_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = {"b | c --with x": {"step": "12", "chrome": "34"}, "a": {"text": "56"}}
    kept.write(tmp_path / "kept.txt", found)
    assert kept.read(tmp_path / "kept.txt") == found
    assert (tmp_path / "kept.txt").read_text().splitlines() == [
        "a | text=56",
        "b | c --with x | step=12 chrome=34",
    ]
    monkeypatch.setattr(golden, "FOLDER", tmp_path)
    facts = golden.golden(_TRACE, facts_of(_TRACE))
    golden.write("trace", facts)
    assert golden.read("trace") == facts


def test_the_summary_counts_cases_by_part_and_names_what_came_and_went() -> None:
    before = {"a": {"text": "1", "csv": "1"}, "b": {"text": "1"}}
    after = {"a": {"text": "2", "chrome": "1"}, "b": {"text": "2"}}
    assert kept.summary(kept.changes(before, after), 3) == [
        "2 of 3 cases have changed, by part: +chrome 1, -csv 1, text 2",
        "  a: text -csv +chrome",
        "  b: text",
    ]
    assert kept.summary({}, 3) == ["0 of 3 cases have changed"]


def test_the_check_names_what_is_another_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A golden file and a digest with another figure; `--without` leaves a key out of both."""
    digest = kept.read(kept.path_of("compared"))[f'{_TRACE.source} --with "--slow-rank 7=2"']
    facts = golden.read("trace-scaled")
    monkeypatch.setattr(kept, "FOLDER", tmp_path)
    monkeypatch.setattr(golden, "FOLDER", tmp_path / "golden")
    golden.write("trace-scaled", facts | {"step": facts["step"] | {"step_time_ns": 1}})
    path = kept.path_of("compared")
    kept.write(path, {f'{_TRACE.source} --with "--slow-rank 7=2"': digest | {"step": "0" * 8}})
    before = path.read_text()
    words = ["--jobs", "1", _TRACE.source, "--slow-rank 7=2"]
    assert command.main(["--check", *words]) == 1
    printed = capsys.readouterr().out
    assert "step.step_time_ns: 1 is now " in printed
    assert f'{_TRACE.source} --with "--slow-rank 7=2": step\n' in printed
    assert path.read_text() == before
    assert command.main(words) == 0
    assert golden.read("trace-scaled") == facts
    assert command.main(["--check", *words]) == 0
    assert command.main(["--without", "step_time_ns", *words]) == 1
    assert "step.step_time_ns: " in capsys.readouterr().out
