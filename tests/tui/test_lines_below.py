"""The lines below the lanes: all of them wherever the lanes leave room, and dots where there are more."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tui.made_runs import lane_of, line_text, lonely, seed, small
from tui.frame import ASCII, BLOCKS, text_of
from tui.session import Session
from tui.timeline.frame import TimelineFrame
from tui.timeline.margins import cursor_lines, range_lines
from tui.timeline.model import TimelineModel
from tui.timeline.query import parse_query


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
    told = cursor_lines(model, width - 2, width >= 100)
    last = "".join(text for text, _ in told[-1]).strip()
    free = model.rows - len(model.arrangement.rows)
    if free > 0:
        assert any(last[: width - 8] in row for row in rows), last
    elif not any(last[: width - 8] in row for row in rows) and height >= 30:
        assert any(row.endswith("...") or row.rstrip().endswith(" ...") for row in rows)


# -- lines that are too long, lanes that are scrolled out ---------------------------------


def test_a_long_list_of_ranks_does_not_push_the_bubble_off_the_line_of_the_range() -> None:
    model = TimelineModel(seed(slow_rank=("37=1.3",)))
    model.toggle_fold()
    model.move_lane(1)
    assert len(model.whose) == 40
    model.selection.fix(model.window.step_ns // 2, model.window.step_ns * 61 // 100)
    lines = [line_text(line) for line in range_lines(model, 120, wide=True)]
    assert lines[0].startswith(f" {model.whose[:19]}...  ")
    assert lines[1].startswith(f" {'mean of all':<22}  ")
    assert "bubble" in lines[1]
    assert max(map(len, lines)) <= 120


@pytest.mark.slow
@pytest.mark.parametrize("path", [False, True])
def test_the_line_of_the_view_says_whole_words_and_the_path_first(path: bool) -> None:
    model = TimelineModel(seed())
    model.shows_path = path
    for words in ("mb 3", "stage 5 forward mb 3 > 1 ms"):
        model.filter.set(parse_query(words))
        for width in range(100, 161, 3):
            view = rows_of(model, width, 40)[-1].rstrip()
            assert re.search(r"( s|column|classes|critical path off|in colour|\.\.\.)$", view), view
            assert not path or "critical path on" in view or width < 137
    assert "critical path on, in colour" in view or not path


def test_lanes_that_are_scrolled_out_above_are_counted_beside_those_that_are_shown() -> None:
    model = TimelineModel(seed())
    for width, words in ((120, "── 9 lanes above ─"), (80, "── 9 above ─")):
        model.lane = 0
        rows = rows_of(model, width, 14)
        assert "above" not in "".join(rows)
        model.lane = 15
        rows = rows_of(model, width, 14)
        assert rows[2].startswith(words), rows[2]
        assert model.top == 9


def test_letters_of_a_name_come_before_its_phase() -> None:
    lane = lane_of(seed(), 0)
    op = next(op for op in lane.spans.op if op >= 0 and lane.label(op, 40) == "attention_column ig")
    assert [lane.label(op, room) for room in (3, 5, 6, 7, 12)] == [
        "att", "atten", "att ig", "atte ig", "attention ig",
    ]  # fmt: skip


def test_one_rank_is_one_rank() -> None:
    model = TimelineModel(lonely())
    assert " 1 rank in 1 class" in rows_of(model, 120, 33)[-1]
    found = dict(model.source.of.words.detail_rows(model.current.track_id, model.current.stream, 0, None))
    assert found["on"] == "rank 0 = stage 0, dp 0, tp 0"
    session = Session(lonely())
    assert session.facts(wide=False)[0] == "1 rank"
    assert session.facts(wide=True)[0] == "1 rank = tp 1 x dp 1 x pp 1"
