"""What stays when another run of the same workload is shown."""

from __future__ import annotations

import pytest

from simcore.parameters import Parameters
from tests.tui.conftest import MakeApp
from tests.tui.made_runs import lonely, seed
from tests.tui.screen_reading import press, run_over, screen_text
from tui.timeline import jumps
from tui.timeline.model import TimelineModel
from tui.timeline.query import parse_query
from tui.timeline.search import Search
from tui.timeline.view import RANGE_SCALED
from tui.timeline.window import Window


def test_a_view_of_the_whole_step_stays_one() -> None:
    model = TimelineModel(seed())
    model.show(seed(compute_scale=2.0))
    assert model.window == Window.whole(seed(compute_scale=2.0).simulation.step_time_ns)


@pytest.mark.parametrize("scale", [0.25, 0.5, 2.0, 8.0])
def test_the_cursor_keeps_its_share_of_the_step(scale: float) -> None:
    model = TimelineModel(seed())
    for _ in range(5):
        model.zoom(1, 2)
    share = model.cursor_ns / model.window.step_ns
    model.show(seed(compute_scale=scale))
    assert model.window.step_ns == seed(compute_scale=scale).simulation.step_time_ns
    assert model.cursor_ns / model.window.step_ns == pytest.approx(share, abs=1e-6)
    assert model.window.first_ns <= model.cursor_ns < model.window.last_ns


@pytest.mark.parametrize("scale", [0.5, 2.0])
def test_the_cursor_keeps_its_column(scale: float) -> None:
    model = TimelineModel(seed())
    for _ in range(5):
        model.zoom(1, 2)
    column = model.cursor_column
    model.show(seed(compute_scale=scale))
    assert abs(model.cursor_column - column) <= 1


def test_the_cursor_stays_on_its_stream() -> None:
    model = TimelineModel(seed())
    model.move_lane(5)
    model.toggle_fold()
    model.move_lane(2)
    assert model.current.title == "tp x8"
    model.show(seed(compute_scale=2.0))
    assert model.unfolded == {5}
    assert (model.current.track_id, model.current.title) == (5, "tp x8")


def test_unfolding_another_stage_leaves_the_cursor_on_its_own() -> None:
    model = TimelineModel(seed())
    for number in (0, 2):
        model.lane = next(index for index, lane in enumerate(model.lanes) if lane.track_id == number)
        model.toggle_fold()
    assert model.current.title == "stage  2"
    assert model.unfolded == {0, 2}


def test_fewer_stages_fold_everything_and_keep_the_cursor_on_a_lane() -> None:
    model = TimelineModel(seed())
    model.move_lane(12)
    model.toggle_fold()
    model.show(seed(pp=4))
    assert len(model.lanes) == 4
    assert model.unfolded == set()
    assert 0 <= model.lane < 4
    assert model.lanes[0].of.results is seed(pp=4)


def test_more_stages_keep_the_cursor_on_its_stage() -> None:
    model = TimelineModel(seed(pp=4))
    model.move_lane(3)
    model.show(seed())
    assert model.current.title == "stage  3"


def test_views_of_the_run_before_are_forgotten() -> None:
    model = TimelineModel(seed())
    model.zoom(1, 2)
    model.zoom(1, 2)
    model.show(seed(compute_scale=0.5))
    window = model.window
    model.back()
    assert model.window == window


@pytest.mark.parametrize("ns", [0, 1, 5000])
def test_any_step_can_follow_any_other(ns: int) -> None:
    model = TimelineModel(lonely(ns))
    for other in (5000, 1, 0, 1, 5000, 0):
        model.show(lonely(other))
        assert model.window == Window.whole(other)
        assert 0 <= model.cursor_ns < model.window.step_ns


async def test_what_was_said_of_one_place_or_run_does_not_stay_beside_another(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "2", "b")
        assert "longest of" in screen_text(app)
        await press(pilot, "1", "enter")
        await press(pilot, "2")
        assert "longest of" not in screen_text(app)
        await press(pilot, "0", "b", "v", "full_stop", "v", "b", "5")
        app.session.edit(app.session.opened.setup.with_parameters(Parameters(microbatches=32)))
        app.runs.run_draft()
        await run_over(pilot)
        await press(pilot, "2")
        assert "longest of" not in screen_text(app)
        assert RANGE_SCALED in screen_text(app)


def test_a_search_for_waits_says_what_waiting_for_a_stage_is_called() -> None:
    model = TimelineModel(lonely())
    for text in ("wait", "waits", "waiting"):
        found = Search(model.source, parse_query(text), model.unfolded)
        while not found.advance(1.0):
            pass
        assert jumps.no_match_text(found) == f"no match for {text} (for a neighbouring stage: bubble)"
