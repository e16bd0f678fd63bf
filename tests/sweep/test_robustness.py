"""Whether the best of a sweep stay the best under other conditions, and which rows nobody can tell apart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from simcore.diagnostics import InputError
from simcore.records import replace
from simcore.setup import Setup
from simcore.sources.inputs import open_model
from simcore.sweeping.best_line import encode_best
from simcore.sweeping.engines import HereEngine
from simcore.sweeping.evaluating import CandidateCheck, Evaluator, candidate_of
from simcore.sweeping.outcome import Outcome, Robustness, Spread
from simcore.sweeping.pages import json_values, text_page
from simcore.sweeping.pareto_front import Rule
from simcore.sweeping.point import encode_point
from simcore.sweeping.results_file import ResultsFile, ResultsReader, append_best, merge_files
from simcore.sweeping.robustness import _runs, _shortened, find_robustness, find_spread
from simcore.sweeping.running import Sweep
from simcore.sweeping.space import Candidate
from simcore.sweeping.step_time import StepTimes
from tests.sweep.made import evaluator_of, made_point
from tui.commands.sweep import print_results, read_results
from tui.sweep.points import PointTable


def ended(*axes: str, **fixed: object) -> tuple[Evaluator, Outcome]:
    """A small sweep and its outcome."""
    evaluator = evaluator_of(*axes, global_batch=16, seq=512, **fixed)
    return evaluator, Outcome(Rule(top=3), Sweep(evaluator, HereEngine()).points())


def test_each_of_the_best_is_run_again_under_each_condition() -> None:
    """Planted: the slow rank of the condition before; the same seed eight times."""
    evaluator, outcome = ended("tp=1,2,4", "pp=1,2", world=8)
    conditions: dict[tuple[float, int, tuple[str, ...]], set[int]] = {}
    check = evaluator.check

    def noting(candidate: Candidate) -> CandidateCheck:
        one = candidate.parameters
        conditions.setdefault((one.jitter, one.seed, one.slow_rank), set()).add(candidate.index)
        return check(candidate)

    evaluator.check = noting  # type: ignore[method-assign]
    found = find_robustness(evaluator, outcome)
    assert found is not None
    noise = {(0.02, seed, ()) for seed in range(1, 9)}
    assert {*conditions} == {*noise, (0.0, 0, ()), (0.0, 0, ("0=1.05",))}
    assert all(indices == set(found.wins) for indices in conditions.values())
    best = [group.point for group in outcome.front.best]
    assert set(found.wins) == {point.index for point in best}
    assert found.conditions == sum(found.wins.values()) == 9
    wins = dict.fromkeys(found.wins, 0)
    times = StepTimes()
    changes = [*({"jitter": 0.02, "seed": seed} for seed in range(1, 9)), {"slow_rank": ("0=1.05",)}]
    for change in changes:
        steps = {
            point.index: times.find_step_time(
                Setup(open_model("llama-3-8b"), replace(candidate_of(point).parameters, **change))
            ).step_time_ns
            for point in best
        }
        wins[min(steps, key=lambda index: (steps[index], index))] += 1
    assert found.wins == wins


def test_noise_is_tried_on_a_short_step_and_fewer_seeds_of_many_ranks() -> None:
    """Planted: the whole step, of which 64 GPUs took 16 s a point; eight seeds whatever they cost."""
    few = made_point(0, 100, gpus=8, pp=2, microbatches=4, global_batch=16)
    assert _shortened(few, 32) == ({}, 8 * 4 * 16)
    long = made_point(1, 100, gpus=64, pp=4, microbatches=64, global_batch=128)
    assert _shortened(long, 80) == ({"global_batch": 16}, 64 * 8 * 20)
    of_file = made_point(2, 100, gpus=64, pp=4, microbatches=64)
    assert _shortened(of_file, 80) == ({"microbatches": 8}, 64 * 8 * 20)
    evaluator, outcome = ended("tp=2,4", world=8, pp=2)
    best = [replace(group.point, gpus=2048) for group in outcome.front.best]
    assert [name for name, _ in _runs(evaluator, best)] == ["2 % jitter (1 seed)", "one GPU 5 % slow"]
    best = [replace(point, gpus=65536) for point in best]
    assert [name for name, _ in _runs(evaluator, best)] == ["one GPU 5 % slow"]


def test_the_next_number_of_gpus_is_a_condition_where_the_sweep_has_one() -> None:
    evaluator, outcome = ended("world=8,16", "microbatch_size=1,2", jitter=0.01, tp=4)
    points = outcome.front.points
    assert {point.gpus for point in points} == {8, 16}
    of_eight = find_robustness(evaluator, Outcome(Rule(), [one for one in points if one.gpus == 8]))
    assert of_eight is not None
    # With noise of its own the sweep needs no other.
    assert (of_eight.conditions, of_eight.words) == (2, "one GPU 5 % slow, 16 GPUs")
    of_sixteen = find_robustness(evaluator, Outcome(Rule(), [one for one in points if one.gpus == 16]))
    assert of_sixteen is not None
    assert of_sixteen.conditions == 1
    assert find_robustness(evaluator, Outcome(Rule())) is None


def test_rows_that_differ_by_less_than_steps_are_off_are_a_family() -> None:
    rows = [
        made_point(0, 1000, tp=2, cp=1, pp=4), made_point(1, 1030, tp=4, cp=1, pp=4),
        made_point(2, 1041, tp=8, cp=2, pp=2),
    ]  # fmt: skip
    outcome = Outcome(Rule(), rows)
    assert outcome.family_words() == []
    outcome.spread = Spread(0.04, 15)
    (words,) = outcome.family_words()
    assert words.startswith("The first 2 rows ")
    assert "4.0 %" in words
    assert "with cp 1 and pp 4," in words
    # Two that share nothing, and one alone.
    outcome.spread = Spread(0.05, 15)
    assert "family" not in outcome.family_words()[0]
    outcome.spread = Spread(0.01, 15)
    assert outcome.family_words() == []


def test_how_often_a_row_is_the_best_stands_beside_it() -> None:
    outcome = Outcome(Rule(), [made_point(0, 1000, tp=2), made_point(1, 1030, tp=4)])
    assert "best in" not in text_page(outcome, "t")
    assert json_values(outcome)["best_in"] is None
    outcome.robustness = Robustness({0: 7, 1: 3}, 10, "noise")
    page = text_page(outcome, "t")
    assert "best in" in page
    assert [page.count(f" {wins} of 10 ") for wins in (7, 3)] == [2, 1]
    assert json_values(outcome)["best_in"] == {"runs": 10, "points": {"0": 7, "1": 3}}


def test_the_spread_is_that_of_the_kind_of_the_fastest() -> None:
    evaluator, outcome = ended("tp=1,2", world=8, gpu="h100")
    spread = find_spread(evaluator, outcome)
    assert spread is not None
    assert 0 < spread.share < 0.2
    assert spread.steps > 1
    evaluator, outcome = ended("tp=1,2", world=8, gpu="h200", engine_preset="deepspeed")
    assert find_spread(evaluator, outcome) is None


# -- in a file of results --------------------------------------------------------------------

KNOWN = Robustness({0: 7, 1: 3}, 10, "2 % jitter (8 seeds), one GPU 5 % slow, 16 GPUs"), Spread(0.044, 15)
POINTS = [made_point(0, 1000, tp=2), made_point(1, 1030, tp=4)]


def known_outcome() -> Outcome:
    outcome = Outcome(Rule(), POINTS)
    outcome.robustness, outcome.spread = KNOWN
    return outcome


def written(path: Path, *lines: bytes) -> Path:
    path.write_bytes(b"".join([*map(encode_point, POINTS), *lines]))
    return path


def test_a_file_states_it_once_and_until_points_come_after_it(tmp_path: Path) -> None:
    path = written(tmp_path / "r.jsonl")
    for _ in range(2):
        append_best(str(path), POINTS[0].sweep, known_outcome())
    assert path.read_bytes().count(b"wltui.sweep-best/1") == 1
    reader = ResultsReader(str(path))
    assert reader.read_new() == POINTS
    assert reader.best is not None
    assert reader.best[1:] == KNOWN
    with ResultsFile(str(path), POINTS[0].sweep, resume=True) as file:
        file.append(made_point(2, 900, tp=8))
    assert len(reader.read_new()) == 1
    assert reader.best is None
    append_best(str(path), POINTS[0].sweep, known_outcome())
    assert reader.read_new() == []
    assert reader.best is not None
    assert len(merge_files([str(path)])) == 3
    bare = written(tmp_path / "bare.jsonl")
    append_best(str(bare), POINTS[0].sweep, Outcome(Rule(), POINTS))
    assert b"best" not in bare.read_bytes()


def test_its_page_and_its_screen_have_the_column(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path / "r.jsonl", encode_best(POINTS[0].sweep, known_outcome()))
    print_results(str(path))
    page = capsys.readouterr().out
    assert [page.count(f" {wins} of 10 ") for wins in (7, 3)] == [2, 1]
    table = PointTable(read_results(str(path))[0])
    assert "best in" in [column.heading for column in table.columns_for(100)]
    assert [table.texts(line)["best in"] for line in range(2)] == ["7 of 10", "3 of 10"]
    table.sort("wins", False)
    assert [table.texts(line)["best in"] for line in range(2)] == ["3 of 10", "7 of 10"]
    plain = PointTable(read_results(str(written(tmp_path / "plain.jsonl")))[0])
    assert "best in" not in [column.heading for column in plain.columns_for(100)]


@pytest.mark.parametrize(
    "change",
    [{"sweep": "another"}, {"runs": 0}, {"runs": 5}, {"best_in": {"0": -1}}, {"best_in": [1]}, {"off": -1.0},
     {"off": 1e300}, {"steps": 0}, {"conditions": 5}, {"runs": 10**30}, {"best_in": {"x": 1}}],
)  # fmt: skip
def test_a_line_that_no_sweep_writes_is_refused_with_its_number(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    line = json.loads(encode_best(POINTS[0].sweep, known_outcome()))
    compact = json.dumps(line | change, separators=(",", ":")).encode() + b"\n"
    reader = ResultsReader(str(written(tmp_path / "r.jsonl", compact)))
    with pytest.raises(InputError) as refused:
        reader.read_new()
    (diagnostic,) = refused.value.diagnostics
    assert (diagnostic.code, diagnostic.line) == ("sweep-line", 3)


def test_words_of_a_file_reach_no_terminal_raw(tmp_path: Path) -> None:
    outcome = known_outcome()
    outcome.robustness = Robustness({0: 1}, 1, "\x1b]0;owned\x07")
    reader = ResultsReader(str(written(tmp_path / "r.jsonl", encode_best(POINTS[0].sweep, outcome))))
    reader.read_new()
    assert reader.best is not None
    assert reader.best.robustness is not None
    assert "\x1b" not in reader.best.robustness.words
