"""The filter: what does not match is neither drawn nor stepped to, and it is said."""

from __future__ import annotations

from itertools import compress

import pytest

from tests.tui.made_runs import drawn, run, seed, seed_workload, small, two_stages
from tui.timeline.margins import HIDDEN
from tui.timeline.model import TimelineModel
from tui.timeline.query import Query, parse_query


def filtered(text: str, **parameters: object) -> TimelineModel:
    """Seed 002 with a filter."""
    model = TimelineModel(run(seed_workload(), **parameters) if parameters else seed())
    model.filter.set(parse_query(text))
    return model


def lane_cells(text: str, row: int) -> str:
    """The cells of a lane."""
    return text.split("\n")[4 + row].split("│")[1].rstrip()


def test_only_what_matches_is_drawn() -> None:
    cells = lane_cells(drawn(filtered("bubble")), 5)
    # A trace where a bubble is shorter than half a cell.
    assert set(cells) == {"▁", "▂", " "}
    assert cells.startswith("▁▁▁▁▁▁▂ ")
    assert lane_cells(drawn(filtered("forward mb 3")), 5).strip() == "▂▄▂"
    # The bubbles before the first forward and after the last are long.
    assert len(lane_cells(drawn(filtered("> 2 s")), 5).split()) == 1


def test_lanes_of_other_ranks_and_stages_are_blank() -> None:
    text = drawn(filtered("stage 5"))
    whole = drawn(TimelineModel(seed()))
    assert lane_cells(text, 5) == lane_cells(whole, 5)
    assert [lane_cells(text, row) for row in range(16) if row != 5] == [""] * 15
    text = drawn(filtered("37"))
    assert lane_cells(text, 0) == lane_cells(whole, 0)
    assert lane_cells(text, 1) == ""


@pytest.mark.parametrize("text", ["bubble", "mlp mb 3", "> 1 ms exposed", "forward"])
def test_steps_go_to_spans_that_match_and_to_each_of_them(text: str) -> None:
    model = filtered(text)
    lane = model.current
    wanted = list(compress(lane.spans.start, lane.matches(parse_query(text))))
    assert wanted
    model.move_to(0)
    visited = [0] if wanted[0] == 0 else []
    for _ in range(len(wanted) - len(visited)):
        model.step_span(1)
        visited.append(model.cursor_ns)
    assert visited == wanted
    back = [model.cursor_ns]
    for _ in wanted[1:]:
        model.step_span(-1)
        back.append(model.cursor_ns)
    assert back == wanted[::-1]


def test_the_view_line_says_what_the_filter_leaves() -> None:
    text = drawn(filtered("bubble"))
    assert " filter bubble: 16 of 2537 spans here  " in text
    narrow = drawn(filtered("bubble"), 80, 21)
    assert " filter bubble: 16 of 2537 spans here " in narrow


def test_a_span_that_is_hidden_is_still_told_of_and_that_it_is_hidden() -> None:
    model = filtered("bubble")
    assert "forward   " in drawn(model) or "input grad   " in drawn(model)
    assert HIDDEN in drawn(model)
    assert HIDDEN not in drawn(filtered("input"))


def test_leaving_takes_the_range_first_and_then_the_filter() -> None:
    model = filtered("bubble")
    model.selection.fix(0, 10)
    model.clear_last()
    assert model.filter.is_on
    assert not model.selection.is_there
    model.clear_last()
    assert not model.filter.is_on
    assert model.visible_content(model.current) is model.current.content


def test_an_empty_filter_shows_all() -> None:
    model = filtered("bubble")
    model.filter.set(Query())
    assert drawn(model) == drawn(TimelineModel(seed()))


def test_another_run_is_filtered_alike() -> None:
    model = TimelineModel(small())
    model.filter.set(parse_query("bubble"))
    before = model.visible_content(model.current)
    model.show(seed())
    after = model.visible_content(model.current)
    assert after is not before
    assert len(after.spans.start) == 16


def test_a_lane_shows_where_steps_end_whatever_is_left_of_it() -> None:
    model = TimelineModel(run(two_stages(), schedule="1f1b", steps=2))
    assert model.current.seams
    ends = drawn(model).count("│")
    model.filter.set(parse_query("> 1 s"))
    assert not len(model.visible_content(model.current).spans.start)
    assert drawn(model).count("│") >= ends
