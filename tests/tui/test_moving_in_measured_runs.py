"""Search, filter, ranges, passes and waits of runs as they were measured."""

from __future__ import annotations

import pytest

from simcore.measured import MeasuredRun
from simcore.runs.measured import RecordedRun
from tests.analysis.test_measured_ranges import seed
from tests.tui.made_runs import line_text
from tui.frame import BLOCKS, text_of
from tui.timeline.frame import TimelineFrame
from tui.timeline.jumps import (
    NOTHING_WAITS_ANYWHERE,
    extend_range,
    first_match,
    go_to_longest_wait,
    next_match,
    set_mark,
    step_pass,
)
from tui.timeline.margins import make_details
from tui.timeline.model import TimelineModel
from tui.timeline.query import parse_query
from tui.timeline.search import Search


def run() -> MeasuredRun:
    """Seed 004."""
    return seed()


def names(text: str) -> set[str]:
    """The operations that a query finds in the rank's own lane."""
    model = TimelineModel(RecordedRun(run()))
    lane, ops = model.current, run().ranks[0].ops
    flags = lane.matches(parse_query(text))
    items = (item for item, flag in zip(lane.spans.op, flags, strict=True) if flag)
    return {ops.name[item] if item >= 0 else "gap" for item in items}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("forward", {"forward_step", "loss_func"}),
        ("backward", {"backward_step"}),
        ("recv_forward", {"recv_forward"}),
        ("receive", {"recv_forward"}),
        ("gradient", {"send_backward"}),
        ("optimizer", {"optimizer_step"}),
        ("idle", {"gap"}),
        ("gap", {"gap"}),
        ("backward mb 0", {"backward_step"}),
        ("backward mb 1", set()),
        ("nowhere", set()),
    ],
)
def test_words_mean_operations(text: str, found: set[str]) -> None:
    assert names(text) == found


def test_a_search_finds_sub_operations_where_no_operation_matches() -> None:
    model = TimelineModel(RecordedRun(run()))
    found = Search(model.source, parse_query("linear"), model.unfolded)
    while not found.advance(1.0):
        pass
    if found.count:
        assert found.searches_folded
        first_match(model, found)
        assert model.current.stream is not None


def test_a_rank_that_is_not_there_is_said() -> None:
    model = TimelineModel(RecordedRun(run()))
    problems = {"37": "rank 37 is not in this run", "stage 9": "no rank of stage 9 is in this run"}
    for text, problem in problems.items():
        assert Search(model.source, parse_query(text), model.unfolded).problem == problem
    model.search = Search(model.source, parse_query("7"), model.unfolded)
    next_match(model, 1)
    assert model.notice.startswith("lane 1 of 1")


def test_passes_are_the_steps_of_micro_batches() -> None:
    model = TimelineModel(RecordedRun(run()))
    model.move_to(0)
    step_pass(model, 1)
    assert model.notice.startswith("forward_step of micro-batch 0 (1st of 1), ")
    step_pass(model, 1)
    assert model.notice.startswith("backward_step of micro-batch 0 (1st of 1), ")


def test_waits_are_gaps_and_receives() -> None:
    model = TimelineModel(RecordedRun(run()))
    go_to_longest_wait(model, everywhere=False)
    index = model.current.content.find_span(model.cursor_ns)
    assert index is not None
    first = model.current.spans.end[index] - model.current.spans.start[index]
    go_to_longest_wait(model, everywhere=True)
    assert "longest of " in model.notice
    waits = model.source.of.waits(0)
    lengths = [-wait.minus_ns for wait in waits]
    assert first == max(lengths)
    assert lengths == sorted(lengths, reverse=True)


def test_a_range_has_the_categories_of_the_trace() -> None:
    model = TimelineModel(RecordedRun(run()))
    extend_range(model)
    extend_range(model)
    set_mark(model)
    text = text_of(TimelineFrame(BLOCKS, colour=True).draw(model, 120, 33))
    assert "── Range " in text
    assert " mean of all" in text
    assert " mark a " in text


def test_all_details_have_what_the_file_says() -> None:
    model = TimelineModel(RecordedRun(run()))
    model.move_to(run().ranks[0].ops.start[0])
    lines = [line_text(line) for line in make_details(model)(120)]
    assert any("83.9 MB = [2048, 2, 5120] float32" in line for line in lines)
    assert any(line.startswith("  line            1 of ") for line in lines)
    assert any("waiting included" in line for line in lines)
    for index in range(len(model.current.spans.start)):
        model.move_to(model.current.spans.start[index])
        assert make_details(model)(80)


def test_the_filter_leaves_matching_operations() -> None:
    model = TimelineModel(RecordedRun(run()))
    model.filter.set(parse_query("backward"))
    assert len(model.visible_content(model.current).spans.start) == 1
    model.move_to(0)
    model.step_span(1)
    index = model.current.content.find_span(model.cursor_ns)
    assert index is not None
    assert run().ranks[0].ops.name[model.current.spans.op[index]] == "backward_step"


def test_a_plan_without_times_has_ranges_in_places() -> None:
    from tests.tui.test_measured_screens import RUNS

    model = TimelineModel(RecordedRun(RUNS["plan"]()))
    extend_range(model)
    assert model.selection.fixed_range is not None
    text = text_of(TimelineFrame(BLOCKS, colour=True).draw(model, 120, 33))
    assert "── Range place " in text
    go_to_longest_wait(model, everywhere=True)
    assert model.notice == NOTHING_WAITS_ANYWHERE
    step_pass(model, 1)
    assert make_details(model)(80)


def test_a_word_that_nothing_in_the_run_is_is_looked_for_in_its_names() -> None:
    model = TimelineModel(RecordedRun(run()))
    for text, meant in (("ep", 1), ("ep_all", 1), ("all", 2), ("forward", 2)):
        model.filter.set(parse_query(text))
        left = model.visible_content(model.current).spans
        found = Search(model.source, parse_query(text), model.unfolded)
        while not found.advance(1.0):
            pass
        of_lane = sum(one.matches for one in found.matched_lanes if one.lane.key == model.current.key)
        assert of_lane == len(left.start)
        if meant:
            assert len(left.start) == meant, text
    # Of a group of ranks that is there, and only named otherwise elsewhere.
    model.filter.set(parse_query("tp"))
    assert not len(model.visible_content(model.current).spans.start)
