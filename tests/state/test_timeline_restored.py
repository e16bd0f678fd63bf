"""The timeline as a session keeps it comes back as it was, and fits whatever run it is restored over."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.runs.measured import RecordedRun
from tests.tui.made_runs import lonely, plain, seed, small
from tests.tui.test_arrangement import each_rank, measured
from tui.frame import BLOCKS
from tui.session import Run
from tui.timeline import jumps
from tui.timeline.frame import TimelineFrame
from tui.timeline.model import TimelineModel
from tui.timeline.query import parse_query
from tui.timeline.saved import SavedTimeline, restore, save

RUNS: dict[str, Callable[[], Run]] = {
    "folded": small,
    "16 stages": seed,
    "a slow rank": lambda: seed(slow_rank=("37=1.3",)),
    "each rank": each_rank,
    "one rank": lonely,
    "measured": lambda: RecordedRun(measured()),
}
ACTIONS: dict[str, Callable[[TimelineModel], object]] = {
    "zoom in": lambda model: model.zoom(1, 2),
    "zoom out": lambda model: model.zoom(2, 1),
    "pan": lambda model: model.pan(1, 3),
    "cursor": lambda model: model.move_cursor(7),
    "down": lambda model: model.move_lane(3),
    "up": lambda model: model.move_lane(-2),
    "fold": lambda model: model.toggle_fold(),
    "ranks": lambda model: model.arrangement.toggle_ranks(),
    "level": lambda model: model.arrangement.open_level(),
    "pin": lambda model: model.arrangement.toggle_pin(),
    "hide": lambda model: model.arrangement.hide(),
    "order": lambda model: model.arrangement.next_order(),
    "only": lambda model: model.arrangement.show_only("0-9,40-90"),
    "filter": lambda model: model.filter.set(parse_query("forward > 1 us")),
    "range": jumps.toggle_range,
    "take": jumps.extend_range,
    "mark": jumps.set_mark,
}
SIZES = st.sampled_from([(80, 24), (120, 36), (200, 50)])


def drawn(model: TimelineModel, size: tuple[int, int]) -> str:
    """The timeline on a screen of a size, without what the last key had to say."""
    model.notice = ""
    return plain(TimelineFrame(BLOCKS, True).draw(model, *size))


def through_a_file(model: TimelineModel) -> SavedTimeline:
    """What is kept of it, as it is read again."""
    state = save(model)
    found = SavedTimeline.read(json.loads(json.dumps(state.as_json())), "timeline")
    assert found == state
    return found


@pytest.mark.slow
@given(st.sampled_from(list(RUNS)), st.lists(st.sampled_from(list(ACTIONS)), max_size=25), SIZES)
def test_whatever_was_done_the_timeline_looks_the_same_when_it_is_restored(
    name: str, actions: list[str], size: tuple[int, int]
) -> None:
    run = RUNS[name]()
    model = TimelineModel(run)
    drawn(model, size)
    for action in actions:
        ACTIONS[action](model)
    before = drawn(model, size)
    again = TimelineModel(run)
    restore(again, through_a_file(model))
    assert drawn(again, size) == before
    assert save(again) == save(model)
    assert again.marks == model.marks
    assert again.selection == model.selection


@pytest.mark.slow
@given(
    st.sampled_from(list(RUNS)), st.sampled_from(list(RUNS)),
    st.lists(st.sampled_from(list(ACTIONS)), max_size=20), SIZES, st.booleans(),
)  # fmt: skip
def test_it_fits_any_other_run(
    name: str, other: str, actions: list[str], size: tuple[int, int], place: bool
) -> None:
    model = TimelineModel(RUNS[name]())
    drawn(model, size)
    for action in actions:
        ACTIONS[action](model)
    found = TimelineModel(RUNS[other]())
    restore(found, through_a_file(model), place)
    drawn(found, size)
    window = found.window
    assert window.step_ns == max(found.source.length, 1)
    assert 0 <= window.first_ns <= found.cursor_ns < window.last_ns <= window.step_ns
    numbers = set(found.source.track_ids)
    for mark in found.marks.all:
        assert 0 <= mark.time_ns <= window.step_ns
        found.go_to(mark.lane)
    assert found.arrangement.rows
    assert {row.key.track_id for row in found.arrangement.rows if not row.key.path} <= numbers | {-1}
    for action in actions:
        ACTIONS[action](found)
        drawn(found, size)


def test_of_another_input_lanes_and_marks_come_back_but_not_the_place_in_time() -> None:
    model = TimelineModel(seed())
    drawn(model, (120, 36))
    for action in ("down", "pin", "mark", "zoom in", "range"):
        ACTIONS[action](model)
    found = TimelineModel(seed())
    restore(found, through_a_file(model), keeps_position=False)
    assert [row.key.track_id for row in found.arrangement.rows if row.pinned] == [3]
    assert [mark.letter for mark in found.marks.all] == ["a"]
    assert found.window.span_ns == found.window.step_ns
    assert not found.selection.is_there


def test_lanes_that_the_run_has_not_are_left_out() -> None:
    state = through_a_file(TimelineModel(lonely()))
    gone = (((), 7, -1, None), (("stage 9",), -1, -1, None), ((), 0, 99, "compute"))
    found = TimelineModel(lonely())
    restore(found, state._replace(pinned=gone, hidden=gone, opened=gone, kept=(7,), only="stage 7",
                                  apart=((0, (99,)), (7, (1,)))))  # fmt: skip
    assert save(found) == state


def test_with_all_lanes_hidden_the_list_is_as_the_run_opens() -> None:
    state = through_a_file(TimelineModel(lonely()))
    found = TimelineModel(lonely())
    restore(found, state._replace(hidden=(((), 0, -1, None),)))
    assert found.arrangement.hidden_count == 0
    assert len(found.arrangement.rows) == 1


@pytest.mark.parametrize("text", ["rank 9999", "mb", "stage 77", "> 1 lightyear"])
def test_a_filter_that_the_run_does_not_know_is_left_out(text: str) -> None:
    state = through_a_file(TimelineModel(seed()))
    found = TimelineModel(seed())
    restore(found, state._replace(filter=text))
    assert not found.filter.is_on
