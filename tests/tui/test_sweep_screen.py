"""Screen 7: its table and plot over points that were made, and what leads from a point to its run."""

from __future__ import annotations

import functools
import itertools
import re
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion
from textual.pilot import Pilot

from simcore.diagnostics import InputError
from simcore.parameters import Parameters
from simcore.records import replace
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import simulate
from simcore.sources.inputs import open_model
from simcore.sweeping.engines import HereEngine
from simcore.sweeping.evaluating import candidate_of
from simcore.sweeping.outcome import Robustness
from simcore.sweeping.pareto_front import Rule
from simcore.sweeping.point import Point
from simcore.sweeping.results_file import ResultsReader, write_all
from simcore.sweeping.running import Sweep
from tests.says import figures
from tests.sweep.made import evaluator_of, made_point
from tests.tui.conftest import MakeApp
from tests.tui.made_runs import seed
from tests.tui.pseudo_terminal import ROOT
from tests.tui.screen_reading import burst, press, resize, run_over, screen_rows, screen_text, wait_until
from tui.app import WltuiApp
from tui.cli import main as wltui_main
from tui.sweep.opening import OTHER_STEP, open_fastest
from tui.sweep.sweep_result import FILE, SweepResult
from tui.sweep.view import SweepView

SIZES = [(80, 24), (120, 36), (200, 50)]


def points() -> list[Point]:
    """Points over tp, pp and the schedule with figures of a formula; some do not fit, some cannot be."""
    found = []
    places = itertools.product((1, 2, 4, 8), (1, 2, 4, 8, 16), ("1f1b", "zb-h1"))
    for number, (tp, pp, schedule) in enumerate(places):
        if tp * pp > 64:
            found.append(made_point(number, None, tp=tp, pp=pp, schedule=schedule))
            continue
        step = 1_000_000_000 + 40_000_000 * abs(tp - 4) + 15_000_000 * (pp - 1) + 3_000_000 * len(schedule)
        memory = 120 * 10**9 // (tp * pp) + 2 * 10**9 * len(schedule)
        found.append(made_point(number, step, memory, tp=tp, pp=pp, schedule=schedule))
    limit = 80 * 10**9
    return [
        _with(one, memory_limit_bytes=limit, tokens_per_s=None if one.step_time_ns is None
              else 4e15 / one.step_time_ns, work=4_000_000)
        for one in found
    ]  # fmt: skip


def _with(point: Point, **values: Any) -> Point:
    return replace(point, **values)


def found_of(given: Iterable[Point], title: str = "results.jsonl") -> SweepResult:
    """A sweep of a file."""
    found = SweepResult(title, Rule(), FILE, ("--model", "llama-3-8b"))
    found.add_points(list(given))
    return found


def app_of(make_app: MakeApp, given: list[Point] | None = None, **keywords: Any) -> WltuiApp:
    """An app on screen 7 over points."""
    app = make_app(first="sweep", **keywords)
    app.sweeping.result = found_of(points() if given is None else given)
    return app


def view_of(app: WltuiApp) -> SweepView:
    view = app.views["sweep"]
    assert isinstance(view, SweepView)
    return view


# -- the picture -------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("ascii_only", [False, True])
async def test_the_screen(
    make_app: MakeApp, size: tuple[int, int], ascii_only: bool, snapshot: SnapshotAssertion
) -> None:
    app = app_of(make_app, ascii_only=ascii_only)
    async with app.run_test(size=size) as pilot:
        await press(pilot, "j", "j")
        text = screen_text(app)
        assert not ascii_only or text.isascii()
        assert text == snapshot


async def test_without_a_sweep_the_screen_says_how_to_get_one(
    make_app: MakeApp, snapshot: SnapshotAssertion
) -> None:
    app = make_app()
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "7")
        assert screen_text(app) == snapshot


async def test_every_key_does_no_harm_without_points(make_app: MakeApp) -> None:
    for app in (make_app(first="sweep"), app_of(make_app, [])):
        async with app.run_test(size=(80, 24)) as pilot:
            for key in (*"jkGglhoOiUtmSny", "pagedown"):
                await press(pilot, key)
                await press(pilot, "escape")
                await app.action_open("sweep")
            assert "Sweep" in screen_text(app)


async def test_every_cell_of_a_small_terminal_is_drawn(make_app: MakeApp) -> None:
    app = app_of(make_app)
    async with app.run_test(size=(20, 5)) as pilot:
        for size in ((20, 5), (40, 10), (109, 17), (110, 9), (300, 90), (80, 18)):
            await resize(pilot, *size)
            await press(pilot, "j")
            assert len(screen_rows(app)) == size[1]


# -- order, filter, find -----------------------------------------------------------------


async def test_a_low_screen_has_as_many_points_as_fit_and_the_rest_of_its_rows_say_what_the_point_is(
    make_app: MakeApp,
) -> None:
    few = points()[:3]
    for given in (points(), few):
        app = app_of(make_app, given)
        async with app.run_test(size=(60, 15)) as pilot:
            await press(pilot, "7")
            rows = screen_rows(app)
            listed = [row for row in rows if re.match(r"[ >][* ] +\d\.\d+ s", row)]
            # Tabs and title above, heading and rule, the keys below.
            assert len(listed) == (9 if given is not few else len(view_of(app).table.lines))
            assert ("── Point " in screen_text(app)) == (given is few)
            assert not any("..." in row for row in rows[1:5])


async def test_points_that_fit_come_fastest_first_and_u_shows_the_others(make_app: MakeApp) -> None:
    app = app_of(make_app)
    async with app.run_test(size=(120, 36)) as pilot:
        table = view_of(app).table
        shown = [table.point(line) for line in range(len(table.lines))]
        assert [one.step_time_ns for one in shown] == sorted(one.step_time_ns or 0 for one in shown)
        assert all(one.is_run and one.fits for one in shown)
        await press(pilot, "U")
        table = view_of(app).table
        assert len(table.lines) == len(points())
        assert figures(app.status_text) == [str(len(points()) - len(shown))]
        assert "are shown" in app.status_text
        await press(pilot, "G")
        assert "not simulated: cannot be: tp 3 does not fit 4" in screen_text(app)
        await press(pilot, "U")
        assert len(view_of(app).table.lines) == len(shown)


async def test_a_column_sorts_both_ways_and_the_cursor_stays_on_its_point(make_app: MakeApp) -> None:
    app = app_of(make_app)
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "j", "j", *"llll", "o")
        view = view_of(app)
        here = view.table.point(view.line).index
        sizes = [view.table.point(line).memory_peak_bytes for line in range(len(view.table.lines))]
        assert view.table.key == "memory"
        assert sizes == sorted(sizes)  # type: ignore[type-var]
        await press(pilot, "o")
        sizes = [view.table.point(line).memory_peak_bytes for line in range(len(view.table.lines))]
        assert sizes == sorted(sizes, reverse=True)  # type: ignore[type-var]
        assert view.table.point(view.line).index == here
        await press(pilot, "O")
        assert view.table.key == ""


async def test_a_filter_takes_words_and_conditions(make_app: MakeApp) -> None:
    app = app_of(make_app)
    async with app.run_test(size=(120, 36)) as pilot:
        for typed, wanted in (
            ("zb-h1", lambda one: one.layout["schedule"] == "zb-h1"),
            ("tp=4", lambda one: one.layout["tp"] == 4),
            ("tp*pp <= 8 and schedule = 1f1b",
             lambda one: one.layout["tp"] * one.layout["pp"] <= 8 and one.layout["schedule"] == "1f1b"),
            ("memory_gb < 30", lambda one: one.memory_peak_bytes < 30e9),
            ("step_ms < 1100", lambda one: one.step_time_ns < 1_100_000_000),
        ):  # fmt: skip
            await press(pilot, "backslash")
            await burst(pilot, *map(_key, typed), "enter")
            table = view_of(app).table
            shown = {table.point(line).index for line in range(len(table.lines))}
            assert shown == {one.index for one in points() if one.is_run and one.fits and wanted(one)}, typed
            assert 0 < len(shown) < len(app.sweeping.result.outcome.front.points)  # type: ignore[union-attr]
            await press(pilot, "escape")
            assert table.typed == ""


def _key(one: str) -> str:
    return {" ": "space", "=": "equals_sign", "<": "less_than_sign", "*": "asterisk", "-": "minus",
            "_": "underscore"}.get(one, one)  # fmt: skip


async def test_half_a_condition_hides_nothing_and_says_what_is_missing(make_app: MakeApp) -> None:
    app = app_of(make_app)
    async with app.run_test(size=(120, 36)) as pilot:
        before = len(view_of(app).table.lines)
        await press(pilot, "backslash", "t", "p", "less_than_sign")
        assert len(view_of(app).table.lines) == before
        assert "it ends where" in screen_text(app)


async def test_find_goes_to_the_next_point_that_has_the_words(make_app: MakeApp) -> None:
    app = app_of(make_app)
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "slash", *"pp", "equals_sign", "8", "enter")
        view, seen = view_of(app), set()
        for _ in range(3):
            point = view.table.point(view.line)
            assert point.layout["pp"] == 8
            seen.add(point.index)
            await press(pilot, "n")
        assert len(seen) == 3


# -- from a point to its run -------------------------------------------------------------


@functools.cache
def swept(*axes: str) -> tuple[Point, ...]:
    """The points of a small sweep."""
    evaluator = evaluator_of(
        *(axes or ("tp=1,2,4", "pp=1,2")), world=16, global_batch=32, memory_limit="200GB"
    )
    return tuple(Sweep(evaluator, HereEngine()).points())


@functools.cache
def model_run(**parameters: int) -> SimulatedRun:
    """A model on a few ranks."""
    values = {"world": 16, "global_batch": 32, **parameters}
    return SimulatedRun(simulate(open_model("llama-3-8b"), Parameters(**values)))


def swept_app(make_app: MakeApp, given: Iterable[Point] | None = None) -> WltuiApp:
    """An app over a small sweep of a model."""
    app = make_app(model_run(), first="sweep")
    app.sweeping.result = found_of(swept() if given is None else given)
    return app


async def _over(pilot: Pilot[None], app: WltuiApp) -> None:
    await run_over(pilot)
    await wait_until(pilot, lambda: not app.session.running)


async def test_enter_opens_the_timeline_of_the_point(make_app: MakeApp) -> None:
    app = swept_app(make_app)
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "j")
        point = view_of(app).table.point(1)
        await press(pilot, "enter")
        await _over(pilot, app)
        assert app.screen_name == "timeline"
        assert app.session.current.step_time_ns == point.step_time_ns
        assert app.session.current.parameters == candidate_of(point).parameters
        assert app.status_text.startswith(f"point {point.index}; 7 ")
        assert len(app.session.history) == 1


async def test_t_keeps_the_run_of_the_point(make_app: MakeApp) -> None:
    app = swept_app(make_app)
    async with app.run_test(size=(120, 36)) as pilot:
        point = view_of(app).table.point(0)
        await press(pilot, "t")
        await _over(pilot, app)
        assert app.screen_name == "sweep"
        assert app.session.history[-1].parameters == candidate_of(point).parameters
        assert app.session.current.step_time_ns == point.step_time_ns


async def test_six_compares_the_marked_point_with_that_at_the_cursor(make_app: MakeApp) -> None:
    app = swept_app(make_app)
    async with app.run_test(size=(120, 36)) as pilot:
        table = view_of(app).table
        a, b = table.point(1), table.point(2)
        await press(pilot, "j", "m")
        assert app.status_text == f"A is point {a.index}: 6 compares"
        await press(pilot, "j", "6")
        await _over(pilot, app)
        await wait_until(pilot, lambda: app.screen_name == "compare")
        runs = app.current_view.compared_runs
        assert runs is not None
        assert [run.step_time_ns for run in runs] == [a.step_time_ns, b.step_time_ns]


async def test_six_without_a_mark_compares_with_the_fastest(make_app: MakeApp) -> None:
    app = swept_app(make_app)
    async with app.run_test(size=(120, 36)) as pilot:
        table = view_of(app).table
        first, last = table.point(0), table.point(len(table.lines) - 1)
        await press(pilot, "G", "6")
        await _over(pilot, app)
        await wait_until(pilot, lambda: app.screen_name == "compare")
        runs = app.current_view.compared_runs
        assert runs is not None
        assert [run.step_time_ns for run in runs] == [first.step_time_ns, last.step_time_ns]
        await press(pilot, "7", "g", "6")
        assert app.screen_name == "compare"


async def test_y_copies_the_command_of_the_point(make_app: MakeApp) -> None:
    app = swept_app(make_app)
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "j", "y")
        assert app.clipboard == view_of(app).table.point(1).command
        assert shlex.split(app.clipboard)[:4] == ["wltui", "report", "--model", "llama-3-8b"]
        await press(pilot, "escape", "2", "y")
        assert app.clipboard == "wltui llama-3-8b --world 16 --global-batch 32"


async def test_a_point_that_cannot_be_says_why_and_opens_nothing(make_app: MakeApp) -> None:
    app = swept_app(make_app, swept("tp=1,3"))
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "U", "G", "enter")
        assert app.screen_name == "sweep"
        assert "was not run: cannot be: " in app.status_text
        await press(pilot, "t")
        assert len(app.session.history) == 1


async def test_a_step_that_is_another_one_now_is_said(make_app: MakeApp) -> None:
    first, *others = sorted(swept(), key=lambda one: one.step_time_ns or 0)
    app = swept_app(make_app, [_with(first, step_time_ns=(first.step_time_ns or 0) - 1), *others])
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "enter")
        await _over(pilot, app)
        assert app.status_text == OTHER_STEP


# -- a sweep that runs -------------------------------------------------------------------


async def test_a_sweep_of_what_is_open_is_typed_and_fills_the_screen(make_app: MakeApp) -> None:
    app = make_app(model_run(tp=2))
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "7", "enter")
        assert "--layouts" in screen_text(app)
        await burst(pilot, *["backspace"] * 12, *map(_key, "--vary pp=1,2"), "enter")
        await wait_until(
            pilot, lambda: app.sweeping.result is not None and not app.sweeping.result.is_running
        )
        found = app.sweeping.result
        assert found is not None
        assert found.state == "done", found.error
        assert [one.layout["pp"] for one in sorted(found.points, key=lambda one: one.index)] == [1, 2]
        # What was not typed is as in the run.
        assert {one.layout["tp"] for one in found.points} == {2}
        assert "2 points in" in screen_text(app)
        await press(pilot, "enter")
        await _over(pilot, app)
        assert app.screen_name == "timeline"


async def test_a_sweep_that_has_ended_says_how_far_its_best_stay_the_best_in_its_file_too(
    make_app: MakeApp, tmp_path: Path
) -> None:
    path = tmp_path / "r.jsonl"
    app = make_app(model_run(tp=2))
    async with app.run_test(size=(200, 36)) as pilot:
        await press(pilot, "7", "enter")
        await burst(pilot, *["backspace"] * 12, *map(_key, f"--vary pp=2,4 --prune -o {path}"), "enter")
        await wait_until(
            pilot, lambda: app.sweeping.result is not None and not app.sweeping.result.is_running
        )
        assert "best in" in screen_text(app)
        reader = ResultsReader(str(path))
        assert len(reader.read_new()) == 2
        assert reader.best is not None
        assert reader.best.robustness == app.sweeping.result.outcome.robustness  # type: ignore[union-attr]


async def test_words_that_are_none_are_said_on_the_screen(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "7", "enter")
        await burst(pilot, *map(_key, "--vary nonsense=1"), "enter")
        await wait_until(
            pilot, lambda: app.sweeping.result is not None and not app.sweeping.result.is_running
        )
        assert "no parameter nonsense" in screen_text(app)


async def test_esc_stops_a_sweep_and_what_has_come_stays(make_app: MakeApp, tmp_path: Path) -> None:
    app = make_app(model_run(world=64, global_batch=512), first="sweep")
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "enter")
        await burst(pilot, *map(_key, "--layouts --exhaustive"), "enter")
        await wait_until(pilot, lambda: len(app.sweeping.result.points) > 3)  # type: ignore[union-attr]
        await press(pilot, "escape")
        await wait_until(pilot, lambda: not app.sweeping.result.is_running)  # type: ignore[union-attr]
        found = app.sweeping.result
        assert found is not None
        assert found.state == "stopped"
        assert "stopped after" in screen_text(app)
        path = tmp_path / "r.jsonl"
        await press(pilot, "S")
        await burst(pilot, *["backspace"] * 20, *map(_key, str(path)), "enter")
        await wait_until(pilot, lambda: path.exists())
        assert len(ResultsReader(str(path)).read_new()) == len(found.points)
        await press(pilot, "escape")
        assert app.screen_name == "timeline"


async def test_a_point_opens_with_all_its_parameters_while_the_sweep_goes_on(make_app: MakeApp) -> None:
    app = make_app(model_run(world=64, global_batch=512, overlap_grad_reduce=True), first="sweep")
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "enter")
        await burst(pilot, *map(_key, "--layouts --exhaustive"), "enter")
        await wait_until(pilot, lambda: len(view_of(app).table.lines) > 3)
        await press(pilot, "j")
        point = view_of(app).table.point(view_of(app).line)
        await press(pilot, "enter")
        await wait_until(pilot, lambda: app.screen_name == "timeline")
        assert app.sweeping.result is not None
        assert app.sweeping.result.is_running
        assert app.session.current.parameters == candidate_of(point).parameters
        assert app.session.current.parameters.overlap_grad_reduce
        assert app.session.current.step_time_ns == point.step_time_ns
        await press(pilot, "7", "escape")
        await wait_until(pilot, lambda: not app.sweeping.result.is_running)  # type: ignore[union-attr]


# -- a file ------------------------------------------------------------------------------


def test_a_file_opens_with_its_fastest_point(tmp_path: Path) -> None:
    path = str(tmp_path / "r.jsonl")
    given = list(swept())
    write_all(path, given, False)
    found = found_of(ResultsReader(path).read_new())
    fastest = min(given, key=lambda one: one.step_time_ns or 0)
    assert open_fastest(found, path).step_time_ns == fastest.step_time_ns
    assert found.opened == ("--model", "llama-3-8b")


async def test_points_that_somebody_else_writes_come_in(make_app: MakeApp, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    given = list(swept())
    write_all(str(path), given[:2], False)
    reader = ResultsReader(str(path))
    app = swept_app(make_app)
    app.sweeping.follow(found_of(reader.read_new()), reader)
    async with app.run_test(size=(120, 36)) as pilot:
        assert "2 points, 2 simulated" in screen_text(app)
        here = view_of(app).table.point(0).index
        outcome = found_of(given).outcome
        outcome.robustness = Robustness({given[0].index: 5}, 5, "noise")
        write_all(str(path), given, True, outcome)
        await wait_until(pilot, lambda: f"{len(given)} points" in screen_text(app))
        assert "5 of 5" in screen_text(app)
        assert here in {one.index for one in given[:2]}


async def test_where_the_cursor_was_and_how_it_was_sorted_comes_back(make_app: MakeApp) -> None:
    from tui.sweep.saved import SavedSweep

    app = app_of(make_app)
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, *"jjj", *"llll", "o", "i", "U")
        kept = view_of(app).saved()
        assert kept is not None
        number = view_of(app).table.point(view_of(app).line).index
    again = app_of(make_app)
    async with again.run_test(size=(120, 36)) as pilot:
        view = view_of(again)
        view.restore(SavedSweep.read(kept.as_json(), "sweep"), True)
        await press(pilot, "l")
        assert view.saved() == kept
        assert view.table.point(view.line).index == number


# -- files that are not as they should be ------------------------------------------------


def _lines(tmp_path: Path, given: list[Point]) -> str:
    path = str(tmp_path / "r.jsonl")
    write_all(path, given, True)
    return path


def test_a_command_that_does_not_run_its_point_is_refused(tmp_path: Path) -> None:
    first = swept("tp=1")[0]
    for command in ("rm -rf /", "wltui report", "wltui report a b c", "wltui report --model x --tp 64", "'"):
        path = _lines(tmp_path, [_with(first, command=command)])
        with pytest.raises(InputError, match="found another command") as refused:
            ResultsReader(path).read_new()
        assert refused.value.diagnostics[0].line == 1


async def test_parameters_that_cannot_be_are_said(make_app: MakeApp) -> None:
    expected: list[tuple[dict[str, Any], str]] = [
        ({"tpp": 2}, "tpp: no parameter"), ({"tp": "x"}, "tp: found x"), ({"tp": -1}, "tp"),
        ({"dim": 3}, "dim"),
    ]  # fmt: skip
    (good,) = swept("tp=1")
    # Points that take as long stand in one line.
    steps = itertools.count(good.step_time_ns or 0, 1_000_000)
    given = [
        replace(good, point=number, step_time_ns=next(steps), parameters=one)
        for number, (one, _) in enumerate(expected)
    ]
    app = swept_app(make_app, given)
    async with app.run_test(size=(120, 36)) as pilot:
        view = view_of(app)
        seen = set()
        for _ in expected:
            parameters, said = expected[view.table.point(view.line).index]
            seen.add(said)
            await press(pilot, "enter")
            assert said in app.status_text, parameters
            await press(pilot, "y")
            assert app.screen_name == "sweep"
            await press(pilot, "j")
        assert len(seen) == 4


async def test_text_of_a_file_never_reaches_the_terminal_raw(make_app: MakeApp) -> None:
    evil = "\x1b[2J[bold]x\x07中"
    points_ = [_with(one, layout={**one.layout, "schedule": evil, evil: evil}) for one in points()]
    points_.append(_with(points()[-1], skipped=f"cannot be: {evil}"))
    app = app_of(make_app, points_)
    app.sweeping.result.title = evil  # type: ignore[union-attr]
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "U", "G")
        text = screen_text(app)
        assert not any(sign in text for sign in "\x1b\x07中")
        assert "[bold]" in text
        await press(pilot, "enter")
        assert "\x1b" not in app.status_text


def test_an_input_that_is_beside_the_results_is_found_and_one_that_is_nowhere_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    for folder in (home, elsewhere):
        folder.mkdir()
    text = Path(ROOT, "fixtures/002_gpt_1024npu.txt").read_text(encoding="utf-8")
    (home / "w.txt").write_text(text, encoding="utf-8")
    monkeypatch.chdir(home)
    words = ["sweep", "w.txt", "--vary", "schedule=1f1b,gpipe", "--jobs", "1", "-o", "r.jsonl"]
    assert wltui_main(words) == 0
    monkeypatch.chdir(elsewhere)
    path = str(home / "r.jsonl")
    found = found_of(ResultsReader(path).read_new())
    run = open_fastest(found, path)
    assert found.opened == (str(home / "w.txt"),)
    assert run.step_time_ns == min(one.step_time_ns or 0 for one in found.points)
    (home / "w.txt").unlink()
    with pytest.raises(InputError, match="the input of the sweep is not there"):
        open_fastest(found_of(ResultsReader(path).read_new()), path)


def test_a_file_of_results_opens_by_its_content_and_prints_without_a_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "any.name")
    write_all(path, list(swept()), False)
    assert wltui_main([path, "--snapshot", "j", "--size", "100x30"]) == 0
    shown = capsys.readouterr().out
    assert "[7 Sweep]" in shown
    assert "any.name: 6 points, 6 simulated" in shown
    assert wltui_main([path]) == 0
    assert "Fastest 6" in capsys.readouterr().out
    assert wltui_main([path, "--tp", "2"]) == 2
    assert "found results of a sweep" in capsys.readouterr().err


async def test_the_name_of_what_is_open_is_never_shown_raw(make_app: MakeApp) -> None:
    evil = "\x1b[2J\x07中.txt"
    workload = replace(seed().simulation.workload, path=f"/x/{evil}")
    app = make_app(SimulatedRun(simulate(workload, Parameters())), first="sweep")
    async with app.run_test(size=(120, 36)):
        assert "wltui sweep" in screen_text(app)
        assert not any(sign in screen_text(app) for sign in "\x1b\x07中")
