"""Every key of the timeline, as a method of its model."""

from __future__ import annotations

import pytest

from tests.tui.made_runs import lonely, many_layers, seed, small
from tui.timeline.model import TimelineModel
from tui.timeline.window import Window


@pytest.fixture
def model() -> TimelineModel:
    """Seed 002, 96 columns and 20 rows."""
    return TimelineModel(seed())


def zoomed_model(times: int = 6) -> TimelineModel:
    """Seed 002 with the middle of the step zoomed in."""
    model = TimelineModel(seed())
    for _ in range(times):
        model.zoom(1, 2)
    return model


def test_it_opens_on_the_whole_step_with_the_cursor_in_the_middle(model: TimelineModel) -> None:
    step = seed().simulation.step_time_ns
    assert model.window == Window.whole(step)
    assert model.cursor_ns == step // 2
    assert (model.lane, model.top, model.cursor_column) == (0, 0, 48)
    assert [lane.title for lane in model.lanes][:2] == ["stage  0", "stage  1"]
    assert len(model.lanes) == 16


def test_unfolding_shows_the_streams_below_and_folding_takes_them_away(model: TimelineModel) -> None:
    model.move_lane(5)
    model.toggle_fold()
    assert model.unfolded == {5}
    assert [lane.title for lane in model.lanes[5:11]] == [
        "stage  5", "compute", "tp x8", "dp x8", "pp to 4,6", "stage  6",
    ]  # fmt: skip
    assert model.current.title == "stage  5"
    model.toggle_fold()
    assert model.unfolded == set()
    assert len(model.lanes) == 16
    assert model.current.title == "stage  5"


def test_folding_from_a_stream_goes_up_to_its_stage(model: TimelineModel) -> None:
    model.move_lane(5)
    model.toggle_fold()
    model.move_lane(3)
    assert model.current.title == "dp x8"
    model.toggle_fold()
    assert model.current.title == "stage  5"


def test_the_cursor_moves_by_lanes_and_stops_at_the_first_and_the_last(model: TimelineModel) -> None:
    model.move_lane(-1)
    assert model.lane == 0
    model.move_lane(10)
    assert model.lane == 10
    model.move_lane(1_000_000)
    assert model.lane == 15


def test_the_list_scrolls_no_further_than_it_must() -> None:
    model = TimelineModel(seed())
    model.resize(96, 6)
    model.move_lane(5)
    assert model.top == 0
    model.move_lane(1)
    assert model.top == 1
    model.move_lane(-1)
    assert model.top == 1
    model.move_lane(100)
    assert model.top == 10
    model.resize(96, 20)
    assert model.top == 0


@pytest.mark.parametrize("by", [1, -1, 7, -7])
def test_the_cursor_moves_by_columns_to_the_middle_of_one(model: TimelineModel, by: int) -> None:
    column = model.cursor_column
    model.move_cursor(by)
    assert model.cursor_column == column + by
    edges = model.window.edges(model.columns)
    assert model.cursor_ns == (edges[column + by] + edges[column + by + 1]) // 2


def test_the_cursor_stops_at_both_ends_of_the_step(model: TimelineModel) -> None:
    for _ in range(200):
        model.move_cursor(1)
    assert model.cursor_column == 95
    assert model.cursor_ns < model.window.step_ns
    for _ in range(200):
        model.move_cursor(-1)
    assert model.cursor_column == 0
    assert model.cursor_ns >= 0


@pytest.mark.parametrize("by", [1, -1])
def test_the_view_moves_with_the_cursor_at_its_edge(by: int) -> None:
    model = zoomed_model()
    before = model.window
    for _ in range(60):
        model.move_cursor(by)
    assert model.window.span_ns == before.span_ns
    assert (model.window.first_ns > before.first_ns) == (by > 0)
    assert model.window.first_ns <= model.cursor_ns < model.window.last_ns


@pytest.mark.parametrize("ns", [2, 10, 50, 95, 96, 97, 200])
def test_moving_right_reaches_the_end_of_a_step_of_few_nanoseconds(ns: int) -> None:
    model = TimelineModel(lonely(ns))
    for _ in range(300):
        model.move_cursor(1)
    assert model.cursor_ns == ns - 1
    for _ in range(300):
        model.move_cursor(-1)
    assert model.cursor_ns == 0


def test_the_cursor_still_moves_when_the_terminal_got_wider_at_the_closest_zoom() -> None:
    model = TimelineModel(seed())
    model.resize(60, 20)
    for _ in range(60):
        model.zoom(1, 2)
    model.resize(200, 20)
    before = model.cursor_ns
    for _ in range(20):
        model.move_cursor(1)
    assert model.cursor_ns > before


def test_zoom_halves_and_doubles_the_span_and_keeps_the_column() -> None:
    model = zoomed_model(3)
    model.move_cursor(20)
    column, span = model.cursor_column, model.window.span_ns
    model.zoom(1, 2)
    assert model.window.span_ns == span // 2
    assert model.cursor_column == column
    model.zoom(2, 1)
    assert abs(model.window.span_ns - span) <= 1
    assert model.cursor_column == column


def test_zoom_ends_at_a_nanosecond_a_column() -> None:
    assert zoomed_model(99).window.span_ns == 96


def test_pan_moves_an_eighth_of_the_view_and_keeps_the_column() -> None:
    model = zoomed_model()
    window, column = model.window, model.cursor_column
    model.pan(1, 8)
    assert model.window.first_ns == window.first_ns + window.span_ns // 8
    assert model.cursor_column == column
    model.pan(-1, 1)
    assert model.cursor_column == column


def test_pan_stops_at_the_ends_of_the_step() -> None:
    model = zoomed_model(2)
    for _ in range(50):
        model.pan(1, 1)
    assert model.window.last_ns == model.window.step_ns
    for _ in range(50):
        model.pan(-1, 1)
    assert model.window.first_ns == 0


def test_a_pan_that_cannot_move_leaves_the_cursor_where_it_is() -> None:
    model = TimelineModel(seed())
    before = model.cursor_ns
    model.pan(1, 8)
    assert model.cursor_ns == before


def test_focus_fits_the_span_at_the_cursor_and_again_the_whole_step(model: TimelineModel) -> None:
    lane = model.current
    index = lane.content.find_span(model.cursor_ns)
    assert index is not None
    start, end = lane.spans.start[index], lane.spans.end[index]
    model.focus()
    assert model.window.first_ns <= start
    assert end <= model.window.last_ns
    assert 1.2 < model.window.span_ns / (end - start) < 1.3
    assert start <= model.cursor_ns < end
    model.focus()
    assert model.window == Window.whole(model.window.step_ns)


def test_focus_where_nothing_runs_shows_the_whole_step() -> None:
    model = zoomed_model(2)
    model.toggle_fold()
    model.move_lane(3)
    assert model.current.content.find_span(0) is None
    model.cursor_ns = model.window.first_ns
    while model.current.content.find_span(model.cursor_ns) is not None:
        model.move_cursor(1)
    model.focus()
    assert model.window == Window.whole(model.window.step_ns)


def test_show_all_shows_the_whole_step_and_keeps_the_cursor() -> None:
    model = zoomed_model()
    cursor = model.cursor_ns
    model.show_all()
    assert model.window == Window.whole(model.window.step_ns)
    assert model.cursor_ns == cursor


def test_the_next_span_begins_where_this_one_ends(model: TimelineModel) -> None:
    lane = model.current
    index = lane.content.find_span(model.cursor_ns)
    assert index is not None
    model.step_span(1)
    assert model.cursor_ns == lane.spans.start[index + 1]
    model.step_span(-1)
    assert model.cursor_ns == lane.spans.start[index]


def test_the_next_span_is_brought_into_view() -> None:
    model = TimelineModel(many_layers())
    for _ in range(8):
        model.zoom(1, 2)
    for _ in range(300):
        model.step_span(1)
        assert model.window.first_ns <= model.cursor_ns < model.window.last_ns
    assert model.current.content.find_span(model.cursor_ns) == len(model.current.spans.start) - 1
    for _ in range(300):
        model.step_span(-1)
    assert model.cursor_ns == 0


def test_every_span_of_a_lane_is_visited_in_turn() -> None:
    model = TimelineModel(small())
    model.toggle_fold()
    for lane in range(len(model.lanes)):
        model.lane = lane
        starts = sorted(set(model.lanes[lane].spans.start))
        model.cursor_ns = 0
        visited = [] if starts[0] else [0]
        for _ in range(len(starts) - len(visited)):
            model.step_span(1)
            visited.append(model.cursor_ns)
        assert visited == starts


def test_back_and_forward_walk_the_views() -> None:
    model = TimelineModel(seed())
    whole = model.window
    model.zoom(1, 2)
    zoomed = model.window
    model.pan(1, 8)
    panned = model.window
    model.back()
    assert model.window == zoomed
    model.back()
    assert model.window == whole
    model.back()
    assert model.window == whole
    model.forward()
    model.forward()
    assert model.window == panned
