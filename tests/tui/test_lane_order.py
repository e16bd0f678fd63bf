"""Pinned lanes, their order, lanes filtered, and what stays when another run is shown."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.runs.measured import RecordedRun
from simcore.runs.simulated import SimulatedRun
from tests.tui.made_runs import seed, small
from tests.tui.test_arrangement import SOURCES, groups_of, measured, opened
from tui.frame import ASCII, BLOCKS, Glyphs, text_of, width_of
from tui.timeline.arrangement import Arrangement
from tui.timeline.frame import TimelineFrame
from tui.timeline.lanes import ALL, LaneKey, LaneSource
from tui.timeline.model import TimelineModel


@pytest.mark.parametrize("pins", [0, 1, 2, 3, 5])
def test_a_row_behind_the_pinned_ones_is_scrolled_to(pins: int) -> None:
    found = Arrangement(SOURCES["16 stages"](), height=6)
    for _ in range(pins):
        found.focus_row(15)
        found.toggle_pin()
    for by in (1, -1):
        found.focus_row(0 if by > 0 else 15)
        for _ in range(16):
            assert found.focus in [index for index, _ in found.visible()]
            assert len(found.visible()) == 6
            found.move(by)


def test_pinned_lanes_stay_above_in_the_order_in_which_they_were_pinned() -> None:
    found = Arrangement(SOURCES["16 stages"](), height=6)
    for stage in (9, 3):
        found.focus_row([row.lane.title for row in found.rows].index(f"stage {stage:>2}"))
        found.toggle_pin()
    assert found.current.title == "stage  3"
    found.focus_row(15)
    assert [row.lane.title for _, row in found.visible()] == [
        "stage  9", "stage  3", "stage 12", "stage 13", "stage 14", "stage 15",
    ]  # fmt: skip
    found.focus_row(0)
    found.toggle_pin()
    assert [row.lane.title for row in found.rows[:3]] == ["stage  3", "stage  0", "stage  1"]
    assert found.current.title == "stage  9"


def test_a_pinned_stream_leaves_its_lane() -> None:
    found = Arrangement(SOURCES["16 stages"]())
    found.focus_row(5)
    found.toggle()
    found.move(2)
    assert found.current.title == "tp x8"
    found.toggle_pin()
    assert found.rows[0].key == LaneKey((), 5, ALL, "tp")
    assert found.rows[0].lane.whose == "stage 5"
    assert [row.lane.title for row in found.rows[6:10]] == ["stage  5", "compute", "dp x8", "pp to 4,6"]
    found.focus_row(6)
    found.toggle()
    assert found.rows[0].key == LaneKey((), 5, ALL, "tp")


@pytest.mark.parametrize(
    ("order", "first"),
    [("busy", "stage  0"), ("bubble", "stage  0"), ("exposed", "stage  1"), ("end", "stage  0")],
)
def test_lanes_are_sorted_by_each_measure(order: str, first: str) -> None:
    found = Arrangement(SOURCES["16 stages"]())
    while found.order.id != order:
        found.next_order()
    accounts = seed().accounts
    measures = {
        "busy": [accounts[row.key.track_id].busy_ns for row in found.rows],
        "bubble": [-accounts[row.key.track_id].bubble_ns for row in found.rows],
        "exposed": [-accounts[row.key.track_id].all_exposed_ns for row in found.rows],
        "end": [-accounts[row.key.track_id].last_end_ns for row in found.rows],
    }
    assert measures[order] == sorted(measures[order])
    assert found.rows[0].lane.title == first


def test_a_lane_shows_the_measure_that_it_is_sorted_by() -> None:
    lane = LaneSource(seed()).lane(3)
    shares = {order.column: lane.share(order.id) for order in lane.of.facts.orders if order.id}
    assert shares == {"busy": "49%", "bubble": "42%", "wait": "0%", "exposed": "4%", "end": "94%"}


def test_the_orders_come_round_and_the_cursor_stays_on_its_lane() -> None:
    for name in SOURCES:
        found = opened(name)
        found.focus_row(4)
        key, before = found.rows[found.focus].key, [row.key for row in found.rows]
        for _ in found.source.orders:
            found.next_order()
            assert found.rows[found.focus].key == key
        assert [row.key for row in found.rows] == before


def test_a_group_is_sorted_by_the_first_of_its_lanes() -> None:
    found = Arrangement(SOURCES["a slow rank"]())
    while found.order.id != "wait":
        found.next_order()
    waits = [
        max(found.source.of.measure_ns("wait", one) for one in group.track_ids)
        for row in found.rows
        for group in groups_of(found.source)
        if group.path == row.key.path
    ]
    assert waits == sorted(waits, reverse=True)
    assert found.rows[0].lane.title == "stage  0"


@pytest.mark.parametrize(
    ("text", "titles"),
    [
        ("stage 1", ["stage  1"]),
        ("STAGE  1", ["stage  1"]),
        ("37", ["stage  0"]),
        ("60-70,1023", ["stage  0", "stage  1", "stage 15"]),
        ("0-99999999", [f"stage {stage:>2}" for stage in range(16)]),
    ],
)
def test_only_the_lanes_that_match_are_shown(text: str, titles: list[str]) -> None:
    found = Arrangement(SOURCES["16 stages"]())
    assert found.show_only(text) == len(titles)
    assert [row.lane.title for row in found.rows] == titles
    assert found.omission_text == f"only {text}: {len(titles)} of 16 lanes (L)"
    assert found.show_only("") == 16
    assert (len(found.rows), found.omission_text) == (16, "")


def test_a_group_stays_while_one_of_its_lanes_matches() -> None:
    found = opened("each rank, all different")
    assert found.show_only("dp 1") == 4
    assert [row.lane.title for row in found.rows] == [
        "stage  0", "dp 1", "rank 2", "rank 3", "stage  1", "dp 1", "rank 6", "rank 7",
    ]  # fmt: skip
    assert found.show_only("5") == 1
    assert [row.lane.title for row in found.rows] == ["stage  1", "dp 0", "rank 5"]


@pytest.mark.parametrize("text", ["stage 99", "999999", "nonsense", "(", "5-3", "1-", "٣"])
def test_a_filter_that_nothing_matches_changes_nothing(text: str) -> None:
    found = Arrangement(SOURCES["16 stages"]())
    found.show_only("stage 3")
    assert found.show_only(text) == 0
    assert [row.lane.title for row in found.rows] == ["stage  3"]
    assert found.only == "stage 3"


def test_a_filter_whose_lanes_are_all_hidden_is_refused() -> None:
    found = Arrangement(SOURCES["16 stages"]())
    found.hide()
    assert found.show_only("stage 0") == 0
    assert len(found.rows) == 15


# -- another run -------------------------------------------------------------------------


def test_an_arrangement_stays_with_equal_ranks_and_begins_anew_with_others() -> None:
    found = Arrangement(LaneSource(seed()))
    found.focus_row(5)
    found.toggle_pin()
    found.toggle()
    found.next_order()
    found.show(LaneSource(seed(compute_scale=2.0)))
    assert (found.current.title, found.rows[0].pinned, found.order.id) == ("stage  5", True, "busy")
    assert len(found.rows) == 20
    found.show(LaneSource(seed(slow_rank=("37=1.3",))))
    assert found.current.title == "stage  5"
    assert found.order.id == "busy"
    assert not any(row.pinned for row in found.rows)
    found.show(LaneSource(seed()))
    assert found.current.title == "stage  5"


KEYS = [
    "toggle",
    "toggle_ranks",
    "open_level",
    "close_all",
    "toggle_pin",
    "next_order",
    "hide",
    "show_hidden",
]


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from([small, lambda: seed(slow_rank=("37=1.3",)), lambda: RecordedRun(measured())]),
    st.lists(st.sampled_from(KEYS) | st.integers(-20, 20), max_size=15),
    st.integers(20, 210),
    st.integers(1, 50),
    st.sampled_from([BLOCKS, ASCII]),
    st.booleans(),
)
def test_any_arrangement_fills_the_screen_and_marks_the_lane_of_the_cursor(
    made: Callable[[], SimulatedRun | RecordedRun],
    actions: list[str | int],
    width: int,
    height: int,
    glyphs: Glyphs,
    colour: bool,
) -> None:
    model = TimelineModel(made())
    drawing = TimelineFrame(glyphs, colour)
    for action in actions:
        if isinstance(action, int):
            model.move_lane(action)
        else:
            getattr(model.arrangement, action)()
        lines = drawing.draw(model, width, height)
        assert len(lines) == height
        assert {width_of(line) for line in lines} == {width}
        if height > 4:
            marked = [line for line in text_of(lines).split("\n") if line.startswith(">")]
            assert len(marked) == 1
        if height > 14 and width > 70 and model.arrangement.omission_text:
            assert model.arrangement.omission_text in text_of(lines)
