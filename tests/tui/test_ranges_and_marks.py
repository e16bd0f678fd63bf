"""Ranges and marks: how they are set, what is said of them, and where they are drawn."""

from __future__ import annotations

import re

import pytest

from simcore.sources.simulated import ACCOUNTS
from simcore.units import percent
from tests.tui.made_runs import drawn, line_text, lonely, seed, small
from tui.frame import BLOCKS
from tui.timeline.jumps import (
    NO_FREE_LETTER,
    RANGE_BEGINS,
    THIS_SPAN,
    extend_range,
    go_to_mark,
    set_mark,
    step_pass,
    toggle_range,
)
from tui.timeline.lanes import LaneKey
from tui.timeline.margins import make_details, mark_line, range_lines, range_title
from tui.timeline.model import TimelineModel
from tui.timeline.prompts import MarksPanel
from tui.timeline.window import Marks, Selection

STEP = seed().step_time_ns


@pytest.fixture
def model() -> TimelineModel:
    """Seed 002."""
    return TimelineModel(seed())


def test_a_range_follows_the_cursor_until_it_is_ended(model: TimelineModel) -> None:
    anchor = model.cursor_ns
    toggle_range(model)
    assert model.notice == RANGE_BEGINS
    model.move_cursor(5)
    assert model.selection.stretch(model.cursor_ns) == (anchor, model.cursor_ns)
    model.move_cursor(-10)
    assert model.selection.stretch(model.cursor_ns) == (model.cursor_ns, anchor)
    end = model.cursor_ns
    toggle_range(model)
    model.move_cursor(20)
    assert model.selection.stretch(model.cursor_ns) == (end, anchor)
    toggle_range(model)
    assert model.selection.follows
    assert model.selection.clear()
    assert not model.selection.clear()


def test_a_range_of_nothing_is_no_range_to_end(model: TimelineModel) -> None:
    toggle_range(model)
    toggle_range(model)
    assert model.selection.follows
    assert "range 0: l h . , move its end" in line_text(range_lines(model, 120, True)[0])
    model.focus()
    # `f` fits the span when the range is empty.
    assert model.window.span_ns < STEP


def test_taking_more_goes_from_the_span_to_its_pass_to_the_step_and_round(model: TimelineModel) -> None:
    lane, index = model.current, model.span
    assert index is not None
    extend_range(model)
    assert model.selection.fixed_range == (lane.spans.start[index], lane.spans.end[index])
    assert model.notice == f"range: {THIS_SPAN}"
    extend_range(model)
    one = next(one for one in seed().passes(0) if one.start_ns <= model.cursor_ns < one.end_ns)
    assert model.selection.fixed_range == (one.start_ns, one.end_ns)
    assert model.notice == "range: backward of micro-batch 0 (1st of 16)"
    extend_range(model)
    assert model.selection.fixed_range == (0, STEP)
    extend_range(model)
    assert model.notice == f"range: {THIS_SPAN}"


def test_between_passes_the_step_comes_after_the_span(model: TimelineModel) -> None:
    model.move_to(4 * 10**9)
    extend_range(model)
    extend_range(model)
    assert model.notice == "range: the whole step"


def test_f_fits_the_range_and_again_the_whole_step_and_back_leads_to_both(model: TimelineModel) -> None:
    whole = model.window
    model.selection.fix(3 * 10**9, 4 * 10**9)
    model.focus()
    fitted = model.window
    assert fitted.first_ns < 3 * 10**9 < 4 * 10**9 < fitted.last_ns
    assert fitted.span_ns == 1_250_000_000
    assert fitted.first_ns <= model.cursor_ns < fitted.last_ns
    model.focus()
    assert model.window == whole
    model.back()
    assert model.window == fitted
    model.back()
    assert model.window == whole
    model.forward()
    assert model.window == fitted


def test_the_figures_are_those_of_the_accounts(model: TimelineModel) -> None:
    first, last = 7 * 10**9, 8 * 10**9
    model.selection.fix(first, last)
    model.lane = 5
    lane, mean = (line_text(line) for line in range_lines(model, 400, True))
    assert lane.startswith(" stage 5")
    assert mean.startswith(" mean of all")
    for line, sums, room in (
        (lane, seed().lanes.account_sums.ranges.of_class(5, first, last), last - first),
        (mean, seed().lanes.account_sums.ranges.of_all(first, last), (last - first) * 1024),
    ):
        found = re.findall(r"([a-z _]+) ([0-9.]+) % ", line[13:])
        assert "input grad" in line
        expected = [percent(ns, room) for account, ns in zip(ACCOUNTS, sums, strict=True) if ns]
        assert [share for _, share in found] == expected
        assert abs(sum(float(share) for _, share in found) - 100) < 0.5


def test_where_there_is_no_room_the_smallest_figures_are_left_out(model: TimelineModel) -> None:
    model.selection.fix(0, STEP)
    for width in (60, 80, 100, 120):
        for line in range_lines(model, width, width >= 100):
            assert len(line_text(line).rstrip()) <= width
            assert "bubble" in line_text(line)


def test_the_title_has_ends_length_and_the_longest_span(model: TimelineModel) -> None:
    assert range_title(model) == ""
    model.selection.fix(3 * 10**9, 8 * 10**9)
    assert range_title(model) == ("Range 3.0 s .. 8.0 s, 5.000 s, 200 spans here, longest bubble 4.096 s")


def test_the_range_is_drawn_in_the_ruler(model: TimelineModel) -> None:
    model.selection.fix(STEP // 4, STEP // 2)
    ruler = drawn(model).split("\n")[3]
    assert 22 <= ruler.count("━") <= 25
    model.fit(0, STEP // 8)
    assert "━" not in drawn(model).split("\n")[3]


def test_marks_have_the_first_free_letter() -> None:
    marks = Marks()
    for letter in "abc":
        mark = marks.set(5, LaneKey(), "stage 0")
        assert mark is not None
        assert mark.letter == letter
    marks.remove("b")
    again = marks.set(7, LaneKey(), "stage 0")
    assert again is not None
    assert again.letter == "b"
    assert marks.last == again
    for _ in range(23):
        assert marks.set(1, LaneKey(), "") is not None
    assert marks.set(1, LaneKey(), "") is None


def test_without_a_free_letter_it_is_said(model: TimelineModel) -> None:
    for _ in range(26):
        set_mark(model)
    assert model.notice == "mark z is set"
    set_mark(model)
    assert model.notice == NO_FREE_LETTER


def test_a_mark_is_a_time_and_a_lane_and_one_comes_back_to_both(model: TimelineModel) -> None:
    model.move_lane(5)
    model.toggle_fold()
    model.move_lane(2)
    time_ns = model.cursor_ns
    set_mark(model)
    mark = model.marks.last
    assert mark is not None
    assert (mark.letter, mark.title) == ("a", "stage 5, tp x8")
    model.move_lane(-7)
    model.toggle_fold()
    model.move_to(0)
    model.lane = next(index for index, lane in enumerate(model.lanes) if lane.track_id == 5)
    model.toggle_fold()
    go_to_mark(model, mark)
    assert (model.current.title, model.current.track_id, model.cursor_ns) == ("tp x8", 5, time_ns)


def test_the_line_of_the_mark_has_the_distance_and_what_the_lane_does_between(model: TimelineModel) -> None:
    assert mark_line(model, 120, True) == []
    model.move_to(3 * 10**9)
    set_mark(model)
    assert line_text(mark_line(model, 120, True)) == " mark a 3.0 s   a .. cursor 0 s"
    model.move_to(7 * 10**9)
    line = line_text(mark_line(model, 120, True))
    assert line.startswith(" mark a 3.0 s   a .. cursor 4.000 s, this lane: forward 1.5 %  ")
    assert line.endswith("bubble 98.4 %  ")
    assert line_text(mark_line(model, 80, False)).startswith(" a .. cursor 4.000 s: fwd 1.5 % ")
    assert "a" in drawn(model).split("\n")[3]


def test_ranges_and_marks_keep_their_share_of_another_run() -> None:
    model = TimelineModel(lonely(5000))
    model.selection.fix(1000, 2000)
    model.move_to(2500)
    set_mark(model)
    model.show(lonely(50))
    assert model.selection.fixed_range == (10, 20)
    assert model.marks.all[0].time_ns == 25
    model.selection.start(30)
    model.show(lonely(5000))
    assert model.selection.anchor_ns == 3000


def test_a_range_has_its_table_among_the_details(model: TimelineModel) -> None:
    model.selection.fix(3 * 10**9, 8 * 10**9)
    lines = [line_text(line) for line in make_details(model)(120)]
    assert "  range           3.000 000 000 s .. 8.000 000 000 s, 5.000 s" in lines
    bubble = next(line for line in lines if line.startswith("  bubble"))
    assert re.fullmatch(r"  bubble +4\.\d+ s +\d\d\.\d % +\d\.\d+ s +\d\d\.\d %", bubble)


@pytest.mark.parametrize(("width", "height"), [(120, 33), (80, 21), (80, 14), (60, 12), (20, 8)])
def test_range_and_marks_fit_on_every_screen(width: int, height: int) -> None:
    model = TimelineModel(small())
    toggle_range(model)
    set_mark(model)
    step_pass(model, 1)
    text = drawn(model, width, height)
    assert [len(line) for line in text.split("\n")] == [width] * height


def test_a_selection_of_an_empty_step_does_not_fail() -> None:
    model = TimelineModel(lonely(0))
    toggle_range(model)
    extend_range(model)
    set_mark(model)
    step_pass(model, 1)
    model.focus()
    drawn(model)
    assert Selection().stretch(5) is None


def marks_panel(model: TimelineModel) -> list[str]:
    """The lines of the list of marks, 120 cells wide."""
    return [line_text(line).rstrip() for line in MarksPanel(model, BLOCKS)._build_lines(120)]


def test_the_list_of_marks_has_the_distances_and_what_is_done_in_between(model: TimelineModel) -> None:
    model.move_to(3_100_000_000)
    set_mark(model)
    model.move_to(7_000_000_000)
    set_mark(model)
    model.move_to(14_000_000_000)
    text = marks_panel(model)
    assert text[0].endswith("10.900 s before the cursor")
    assert text[1].startswith("> b ")
    assert text[1].endswith("7.000 s before the cursor")
    assert text[3] == "  From b, on stage 0:"
    figures = model.source.of.figures(model.current.track_id, 3_100_000_000, 7_000_000_000)
    (bubble,) = [one for one in figures.figures if one.words == "bubble"]
    assert bubble.ns == figures.full_ns
    assert text[4].startswith("  b .. cursor    7.000 s  ")
    assert "bubble" in text[4]
    assert text[5] == "  b .. a         3.900 s  bubble 100.0 %"


def test_a_mark_at_the_cursor_is_at_the_cursor_and_no_stretch(model: TimelineModel) -> None:
    set_mark(model)
    text = marks_panel(model)
    assert text[0].endswith("at the cursor")
    assert text[-1] == "  a .. cursor        0 s"


def test_of_many_marks_the_stretches_to_the_nearest_are_shown(model: TimelineModel) -> None:
    for _ in range(26):
        set_mark(model)
        model.move_cursor(-1)
    text = marks_panel(model)
    assert len(text) == 26 + 2 + 1 + 6
    assert [line.split()[2] for line in text[-6:]] == ["y", "x", "w", "v", "u", "t"]


def test_a_list_is_drawn_after_another_one_has_removed_marks(model: TimelineModel) -> None:
    """A list that closes may be drawn once more, when the next is open."""
    for _ in range(2):
        set_mark(model)
        model.move_cursor(-1)
    closing = MarksPanel(model, BLOCKS)
    model.marks.remove("b")
    lines = [line_text(line) for line in closing._build_lines(120)]
    assert lines[0].startswith("> a ")
