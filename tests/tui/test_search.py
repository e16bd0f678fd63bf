"""A search over all lanes: what is found, what comes next, and how it is said."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.runs.simulated import SimulatedRun
from tests.says import said
from tests.tui.made_runs import run, seed, seed_workload, small, two_stages
from tui.frame import BLOCKS, text_of
from tui.timeline.frame import TimelineFrame
from tui.timeline.jumps import (
    ALL_SHOWN,
    BEFORE_START,
    IN_THE_FILTER,
    NOTHING_SEARCHED,
    OF_THE_FILTER,
    PAST_END,
    PAST_LANES,
    WAS_FOLDED,
    WAS_HIDDEN,
    current_position,
    extend_range,
    first_match,
    go_to_longest_wait,
    next_match,
    return_to,
    set_mark,
    step_pass,
)
from tui.timeline.lanes import LaneKey
from tui.timeline.margins import make_details
from tui.timeline.model import TimelineModel
from tui.timeline.query import parse_query
from tui.timeline.search import Match, Search


def search(model: TimelineModel, text: str, seconds: float = 10.0) -> Search:
    """A search that is done."""
    found = Search(model.source, parse_query(text), model.unfolded)
    while not found.advance(seconds):
        pass
    return found


def in_order(found: Search) -> list[Match]:
    """All matches, by time and then by lane."""
    matches = [
        Match(one.lane.spans.start[index], place, index)
        for place, one in enumerate(found.matched_lanes)
        for index, flag in enumerate(one.flags)
        if flag
    ]
    return sorted(matches)


TEXTS = ["forward", "bubble", "mlp", "mb 1", "tp", "pp", "idle", "stage 1 backward", "2 exposed", "> 2 us"]


@pytest.mark.parametrize("text", TEXTS)
def test_next_walks_all_matches_in_the_order_of_time_and_begins_again(text: str) -> None:
    model = TimelineModel(small())
    found = search(model, text)
    matches = in_order(found)
    assert len(matches) == found.count > 0
    # Spans of one lane that begin together are one place to go to.
    places = sorted({one[:2] for one in matches})
    walked, place = [], (-1, LaneKey())
    for _ in places:
        step = found.next(*place, 1)
        assert step is not None
        match, wrapped = step
        assert not wrapped
        walked.append(match[:2])
        lane = found.matched_lanes[match.lane].lane
        place = match.time_ns, lane.key
    assert walked == places
    again = found.next(*place, 1)
    assert again is not None
    assert (again[0][:2], again[1]) == (places[0], True)


@settings(max_examples=60)
@given(st.sampled_from(TEXTS), st.integers(0, 10**6), st.integers(0, 9))
def test_before_is_the_other_way_of_next_from_any_place(text: str, share: int, lane: int) -> None:
    model = TimelineModel(small())
    model.toggle_fold()
    found = search(model, text)
    here = model.lanes[lane % len(model.unfolded)]
    time_ns = model.window.step_ns * share // 10**6
    place = here.key
    order = [one.lane.key for one in found.matched_lanes]
    position = (time_ns, order.index(place) if place in order else -1)
    matches = in_order(found)
    after = found.next(time_ns, place, 1)
    before = found.next(time_ns, place, -1)
    assert after is not None
    assert before is not None
    later = [one for one in matches if one[:2] > position]
    earlier = [one for one in matches if one[:2] < position]
    assert after[0][:2] == (later[0] if later else matches[0])[:2]
    assert before[0][:2] == (earlier[-1] if earlier else matches[-1])[:2]
    assert (after[1], before[1]) == (not later, not earlier)
    assert matches[found.ordinal(after[0]) - 1][:2] == after[0][:2]


def test_the_first_match_is_the_first_from_the_left_edge_of_the_view() -> None:
    model = TimelineModel(seed())
    found = search(model, "37 bubble")
    match = first_match(model, found)
    assert match is not None
    assert model.cursor_ns == match.time_ns == in_order(found)[0].time_ns
    assert model.notice == "match 1 of 16"
    model.fit(8 * 10**9, 9 * 10**9)
    match = first_match(model, found)
    assert match is not None
    assert model.window.first_ns <= match.time_ns
    assert match == next(one for one in in_order(found) if one.time_ns >= model.window.first_ns)


def test_past_the_end_it_begins_again_and_says_so() -> None:
    model = TimelineModel(seed())
    model.search = search(model, "37 bubble")
    model.move_to(model.window.step_ns)
    next_match(model, 1)
    assert model.notice == f"match 1 of 16, {PAST_END}"
    next_match(model, -1)
    assert model.notice == f"match 16 of 16, {BEFORE_START}"


def test_a_rank_is_its_lane_and_it_is_named() -> None:
    model = TimelineModel(seed())
    before = model.cursor_ns
    found = search(model, "700")
    assert first_match(model, found) is not None
    assert model.current.title == "rank 700"
    assert model.cursor_ns == before
    assert model.rank == 700
    assert model.notice == "lane 1 of 1"


def test_next_goes_from_lane_to_lane_of_a_stage() -> None:
    model = TimelineModel(run(seed_workload(), slow_rank=("37=1.3",)))
    model.search = search(model, "stage 0")
    titles = []
    for _ in range(5):
        next_match(model, 1)
        titles.append(model.current.title)
    assert len(set(titles)) == 4
    assert titles[4] == titles[0] or model.notice.endswith(PAST_LANES)


def test_streams_are_looked_through_where_they_are_shown() -> None:
    model = TimelineModel(small())
    folded = search(model, "all-gather").count
    model.toggle_fold()
    unfolded = search(model, "all-gather")
    assert unfolded.count > folded
    assert {one.lane.stream for one in unfolded.matched_lanes} >= {None, "tp"}


def test_what_no_folded_lane_shows_is_found_in_its_streams() -> None:
    model = TimelineModel(small())
    found = search(model, "send")
    assert found.searches_folded
    assert found.count > 0
    first_match(model, found)
    assert model.current.stream == "pp"
    assert model.notice == f"match 1 of {found.count}, {WAS_FOLDED}"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("1024", "no rank 1024: ranks are 0 to 1023"),
        ("stage 16 wait", "no stage 16: stages are 0 to 15"),
        ("mb 16", "no micro-batch 16: micro-batches are 0 to 15"),
        ("stage", "a number behind stage is expected (stage 3), found nothing"),
    ],
)
def test_what_is_not_there_is_said(text: str, problem: str) -> None:
    found = search(TimelineModel(seed()), text)
    assert found.problem == problem
    assert not found.count


def test_no_match_is_no_place() -> None:
    model = TimelineModel(seed())
    model.search = search(model, "nowhere")
    before = current_position(model)
    next_match(model, 1)
    said([model.notice], "no match", "nowhere")
    assert current_position(model) == before


def test_without_a_search_next_says_how_to_begin() -> None:
    model = TimelineModel(seed())
    next_match(model, 1)
    assert model.notice == NOTHING_SEARCHED


def test_a_search_in_pieces_finds_the_same() -> None:
    model = TimelineModel(seed())
    pieces = Search(model.source, parse_query("mlp forward"), model.unfolded)
    count = 0
    while not pieces.advance(0.0):
        count += 1
    assert count >= 16
    whole = search(model, "mlp forward")
    assert in_order(pieces) == in_order(whole)


@given(st.sampled_from([*TEXTS, "send", "3", "stage 0"]), st.integers(0, 99))
@settings(max_examples=40)
def test_leaving_a_search_is_as_if_it_had_not_been(text: str, share: int) -> None:
    results: SimulatedRun = small()
    model = TimelineModel(results)
    model.zoom(1, 3)
    model.move_to(model.window.step_ns * share // 99)
    model.move_lane(1)
    model.toggle_fold()
    before, shown = current_position(model), [one.key for one in model.lanes]
    first_match(model, search(model, text))
    return_to(model, before)
    assert current_position(model) == before
    assert [one.key for one in model.lanes] == shown


def test_each_rank_simulated_is_found_on_a_lane_of_its_own() -> None:
    model = TimelineModel(run(two_stages(2), dim=("switch:2:4:50", "switch:4:2:300"), no_fold=True))
    for rank in range(8):
        found = search(model, f"{rank} bubble")
        assert first_match(model, found) is not None
        assert model.rank == rank
        for move in (extend_range, extend_range, set_mark):
            move(model)
        step_pass(model, 1)
        go_to_longest_wait(model, everywhere=False)
        assert model.rank == rank
        go_to_longest_wait(model, everywhere=True)
        model.filter.set(parse_query(f"{rank}"))
        assert text_of(TimelineFrame(BLOCKS, colour=True).draw(model, 120, 33))
        assert make_details(model)(120)


def test_next_stops_only_at_what_the_filter_leaves_and_counts_that() -> None:
    model = TimelineModel(seed())
    model.search = search(model, "mlp_row")
    every = model.search.count
    model.filter.set(parse_query("forward stage 3"))
    visited = set()
    for _ in range(12):
        next_match(model, 1)
        assert model.search is not None
        assert 0 < model.search.count < every
        assert model.current.title.split() == ["stage", "3"]
        assert model.span is not None
        assert not model.filter.hides(model.current, model.span, model.source)
        assert f" of {model.search.count} {OF_THE_FILTER}" in model.notice
        visited.add(model.cursor_ns)
    assert len(visited) == 12
    model.filter.set(parse_query("bubble"))
    next_match(model, 1)
    said([model.notice], "no match", "mlp_row", IN_THE_FILTER)
    model.filter.set(parse_query(""))
    next_match(model, 1)
    assert f" of {every}" in model.notice
    assert "filter" not in model.notice


def test_a_lane_that_is_shown_again_for_a_match_is_said_to_be() -> None:
    model = TimelineModel(seed())
    model.arrangement.hide()
    model.search = search(model, "stage 0 forward")
    first_match(model, model.search)
    assert model.notice == f"match 1 of {model.search.count}, {WAS_HIDDEN}"
    next_match(model, 1)
    assert model.notice == f"match 2 of {model.search.count}"
    model.arrangement.show_only("stages 3-5")
    model.move_to(0)
    next_match(model, 1)
    assert model.notice == f"match 1 of {model.search.count}, not in stages 3-5: {ALL_SHOWN}"
    assert len(model.lanes) == 16
