"""The compare screen: pairs of lanes on one axis, what differs, and which run is compared with which."""

from __future__ import annotations

from simcore.analysis.compare import Comparison
from tests.tui.conftest import MakeApp
from tests.tui.made_runs import seed
from tests.tui.screen_reading import press, run_over, screen_rows, screen_text
from tui.compare.model import MOVERS, CompareModel
from tui.compare.view import CompareView
from tui.session import Session


def model_of(**parameters: object) -> CompareModel:
    """1f1b beside another run of seed 002."""
    return CompareModel(Comparison(seed(), seed(**parameters)))


def test_the_axis_is_as_long_as_the_longer_step() -> None:
    assert model_of(schedule="zb-h1").window.span_ns == seed().step_time_ns
    assert model_of(compute_scale=2.0).window.span_ns == seed(compute_scale=2.0).step_time_ns


def test_ends_can_be_laid_on_each_other() -> None:
    model = model_of(schedule="zb-h1")
    other = seed(schedule="zb-h1").step_time_ns
    assert model.shifted(0) == model.shifted(1) == model.window
    model.toggle_ends()
    assert model.shifted(0) == model.window
    assert model.shifted(1).first_ns == model.window.first_ns - (seed().step_time_ns - other)
    assert model.shifted(1).last_ns == other
    model.toggle_ends()
    assert model.shifted(1) == model.window


def test_zoom_and_pan_move_both_runs_and_keep_the_cursor_in_view() -> None:
    model = model_of(schedule="zb-h1")
    for _ in range(8):
        model.zoom(1, 2)
    assert model.window.first_ns <= model.cursor_ns < model.window.last_ns
    for direction in (1, -1, -1):
        model.pan(direction, 1)
        assert model.window.first_ns <= model.cursor_ns < model.window.last_ns
    for _ in range(500):
        model.move_cursor(1)
    assert model.window.first_ns <= model.cursor_ns < model.window.last_ns
    model.show_all()
    assert model.window.span_ns == model.window.step_ns


def test_the_cursor_stays_among_pairs_and_movers() -> None:
    model = model_of(schedule="zb-h1")
    model.resize(90, 5)
    model.move(100)
    assert (model.pair, model.top) == (15, 11)
    model.next_panel()
    assert model.panel == MOVERS
    model.move(100)
    assert model.mover == len(model.comparison.movers) - 1
    model.move(-100)
    model.go_to_mover()
    mover = model.comparison.movers[0]
    assert model.pairs[model.pair].first[0] == mover.place[0]
    assert model.cursor_ns == mover.a_ns


async def test_one_run_has_nothing_to_be_compared_with(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "6", *"wsadhljkz0", "tab", "enter", "o")
        assert "There is one run: change a parameter (5), or try a change (t on 1 or 4)." in screen_text(app)
        assert screen_rows(app)[-1].strip() == "there is no other run that was kept: r keeps one (5)"


async def test_a_changed_run_stands_beside_the_opened_one_with_the_reason(make_app: MakeApp) -> None:
    app = make_app()
    session = app.session
    assert isinstance(session, Session)
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "5", *"jjjjj", "enter", *"zb-h1", "enter")
        await run_over(pilot)
        await press(pilot, "6")
        await run_over(pilot)
        assert session.current.simulation.parameters.schedule == "zb-h1"
        text = screen_text(app)
        assert "Why: bubble and idle -4.079 s on the mean rank: weight gradients fill the wait" in text
        assert "all 2 595 840 ops of 1 024 ranks matched" in text
        assert "B - A  -4.079 s (-27.6 %)" in text
        assert "unchanged: every op's duration" in text


async def test_it_follows_the_run_on_the_screen_and_o_takes_another_to_compare_with(
    make_app: MakeApp,
) -> None:
    app = make_app()
    session = app.session
    assert isinstance(session, Session)
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "5", *"jjjjj", "enter", *"zb-h1", "enter")
        await run_over(pilot)
        await press(pilot, "r")
        assert screen_rows(app)[-1].strip() == "kept as run 2"
        await press(pilot, "r")
        assert screen_rows(app)[-1].strip() == "this run is kept already"
        await press(pilot, "j", "l")
        await run_over(pilot)
        await press(pilot, "r", "6")
        view = app.current_view
        assert isinstance(view, CompareView)
        assert view.model is not None
        assert view.model.comparison.a is session.runs[0]
        await press(pilot, "o")
        assert view.model.comparison.a is session.runs[1]
        await press(pilot, "x")
        assert view.model.comparison.b is session.current
        assert view.model.comparison.a is not session.current
        await run_over(pilot)
