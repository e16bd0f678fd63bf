"""The lines below the lanes: all of them wherever the lanes leave room, and dots where there are more."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tui.made_runs import lonely, seed, small
from tui.frame import ASCII, BLOCKS, text_of
from tui.timeline.details import details
from tui.timeline.frame import TimelineFrame
from tui.timeline.model import TimelineModel

FORMULA = "5.00 us, the fwd cell of line 3"


def rows_of(model: TimelineModel, width: int, height: int) -> list[str]:
    """A frame as rows, drawn twice as on a screen: the first time tells the model its size."""
    frame = TimelineFrame(BLOCKS, colour=True)
    frame.draw(model, width, height)
    return text_of(frame.draw(model, width, height)).split("\n")


def said_of_the_span(rows: list[str]) -> list[str]:
    """The details: from the title to the rule below them, or to the legend."""
    first = next(index for index, row in enumerate(rows) if row.startswith("── At the cursor")) + 1
    ends = (i for i, row in enumerate(rows) if i >= first and (row.startswith("──") or "forward" in row[:20]))
    return [row.strip() for row in rows[first : next(ends)] if row.strip()]


@pytest.mark.parametrize(("width", "height"), [(120, 27), (100, 22), (80, 21), (80, 14), (80, 33), (200, 47)])
def test_a_low_screen_has_every_line_where_the_lanes_leave_room(width: int, height: int) -> None:
    text = "\n".join(rows_of(TimelineModel(lonely()), width, height))
    for words in ("in view", " view 0.000", "the fwd cell of line 3"):
        assert words in text, words


def test_a_lane_more_than_there_is_room_for_makes_a_screen_low() -> None:
    # 16 lanes, 4 rows above them and 9 below.
    assert "in view" in "\n".join(rows_of(TimelineModel(seed()), 120, 29))
    assert "in view" not in "\n".join(rows_of(TimelineModel(seed()), 120, 28))


def test_the_formula_at_the_cursor_stands_whole_down_to_its_result() -> None:
    model = TimelineModel(seed())
    model.move_to(model.window.step_ns - 1)
    for width, height in ((120, 33), (100, 31), (200, 47)):
        text = " ".join(said_of_the_span(rows_of(model, width, height)))
        assert text.endswith("endpoint = 112 024 101 ns"), text


def test_what_of_it_does_not_fit_is_dots() -> None:
    model = TimelineModel(seed())
    model.move_to(model.window.step_ns - 1)
    model.selection.fix(0, model.window.step_ns)
    # Two lines of the range and no row that is free: three lines are left for the details.
    said = said_of_the_span(rows_of(model, 120, 29))
    assert len(said) == 3
    assert said[-1].endswith(" ...")
    # With a row that is free they are four, with three all.
    assert len(said_of_the_span(rows_of(model, 120, 30))) == 4
    assert said_of_the_span(rows_of(model, 120, 32))[-1].endswith("endpoint = 112 024 101 ns")


def test_a_range_does_not_take_the_formula_where_rows_are_free() -> None:
    model = TimelineModel(seed())
    model.selection.fix(0, model.window.step_ns // 2)
    said = said_of_the_span(rows_of(model, 120, 33))
    assert "cell of line" in said[-1]


@settings(max_examples=60)
@given(
    st.sampled_from([seed(), small(), lonely()]), st.integers(80, 200), st.integers(14, 60),
    st.integers(0, 999), st.booleans(), st.booleans(), st.booleans(),
)  # fmt: skip
def test_of_the_details_nothing_is_left_out_unsaid_and_no_lane_for_them(
    results: object, width: int, height: int, share: int, unfolded: bool, ranged: bool, marked: bool
) -> None:
    model = TimelineModel(results)  # type: ignore[arg-type]
    if unfolded:
        model.toggle_fold()
    model.move_to(model.window.step_ns * share // 1000)
    if ranged:
        model.selection.fix(0, model.window.step_ns // 3)
    if marked:
        model.marks.set(0, model.arrangement.rows[0].key, "a lane")
    frame = TimelineFrame(ASCII, colour=True)
    frame.draw(model, width, height)
    lines = frame.draw(model, width, height)
    assert len(lines) == height
    rows = text_of(lines).split("\n")
    shown = len(model.arrangement.visible())
    # Every lane that has a row, but for the one that says how many are below.
    assert shown == min(len(model.arrangement.rows), model.rows)
    told = details(model, width - 2, width >= 100)
    last = "".join(text for text, _ in told[-1]).strip()
    free = model.rows - len(model.arrangement.rows)
    if free > 0:
        assert any(last[: width - 8] in row for row in rows), last
    elif not any(last[: width - 8] in row for row in rows) and height >= 30:
        assert any(row.endswith("...") or row.rstrip().endswith(" ...") for row in rows)
