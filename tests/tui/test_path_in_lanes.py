"""`P`: the critical path stands out in the lanes, by colour or without."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.render.report.pages import run_page
from simcore.runs.measured import RecordedRun
from simcore.trace.critical_path import sum_by_rank
from simcore.trace.run import merged_segments_of
from tests.tui.conftest import MakeApp
from tests.tui.made_runs import (
    all_lanes,
    lane_of,
    line_text,
    run,
    seed,
    small,
    some_runs,
    two_stages,
    window_of,
)
from tests.tui.screen_reading import burst, press, screen_rows
from tests.tui.test_measured_screens import four_ranks
from tests.tui.test_measured_screens import seed as measured_seed
from tui.frame import ASCII, BLOCKS
from tui.timeline import jumps
from tui.timeline.critical import OFF_PATH, TRACE, PathLanes
from tui.timeline.drawing import draw_lane
from tui.timeline.frame import TimelineFrame
from tui.timeline.groups import GroupLane
from tui.timeline.lanes import LaneKey
from tui.timeline.model import TimelineModel
from tui.timeline.window import Window


@given(
    # Few columns over many segments, and many over few: these are two ways.
    lengths=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), max_size=60),
    cuts=st.one_of(
        st.lists(st.integers(0, 60), min_size=2, max_size=6), st.lists(st.integers(0, 60), max_size=40)
    ),
)
def test_a_column_is_on_the_path_where_a_segment_of_the_lane_is_in_it(
    lengths: list[tuple[int, int]], cuts: list[int]
) -> None:
    segments, time = [], 0
    for length, number in lengths:
        if length:
            segments.append((time, time + length, number, number, ""))
        time += length
    edges = sorted({0, *cuts, 200})
    path = PathLanes(segments)
    for number in range(3):
        expected = [
            any(start < right and end > left for start, end, whose, _, _ in segments if whose == number)
            for left, right in pairwise(edges)
        ]
        assert list(path.path_columns(lane_of(seed(), number), edges)) == expected


def test_every_lane_shows_its_own_segments_and_together_they_cover_the_step() -> None:
    for results in some_runs():
        model = TimelineModel(results)
        assert model.path is not None
        path, shown = results.critical_path, 0
        for number in model.source.track_ids:
            lane = model.source.lane(number)
            starts, ends = model.path.stretches(lane)
            own = [index for index in range(len(path)) if path.track[index] == number]
            assert sum(ends) - sum(starts) == sum(path.edge[index + 1] - path.edge[index] for index in own)
            shown += sum(ends) - sum(starts)
            below = [model.path.stretches(stream) for stream in model.source.streams(number)]
            assert sum(sum(over) - sum(begin) for begin, over in below) <= sum(ends) - sum(starts)
        assert shown == results.step_time_ns


def test_ranks_that_are_one_lane_and_ranks_apart_have_their_part() -> None:
    results = run(two_stages(), dim=("switch:2:4:50", "switch:4:2:300"), no_fold=True)
    model = TimelineModel(results)
    assert model.path is not None
    stretches = [model.path.stretches(model.source.lane(number)) for number in model.source.track_ids]
    assert sum(sum(ends) - sum(starts) for starts, ends in stretches) == results.step_time_ns
    on_rank = sum_by_rank(results.critical_path)
    assert len(on_rank) > 1
    for number in model.source.track_ids:
        for rank in model.source.of.track(number).ranks:
            starts, ends = model.path.stretches(model.source.lane(number, rank))
            assert sum(ends) - sum(starts) == on_rank.get(rank, 0)


@pytest.mark.slow
@pytest.mark.sampled(5)
@pytest.mark.parametrize("glyphs", [BLOCKS, ASCII], ids=["blocks", "ascii"])
@pytest.mark.parametrize("share", [1, 2, 3, 5, 6])
def test_by_colour_the_path_alone_has_any_and_without_it_other_glyphs(glyphs: object, share: int) -> None:
    assert glyphs in (BLOCKS, ASCII)
    letters = BLOCKS if glyphs is BLOCKS else ASCII
    results = seed()
    model = TimelineModel(results)
    assert model.path is not None
    step = results.step_time_ns
    window = Window.whole(step).moved_to(step * share // 8, step // 8, 96)
    edges = window.edges(96)
    for lane in all_lanes(results):
        flags = model.path.path_columns(lane, edges)
        plain = draw_lane(lane, window, 96, letters, True).line
        colours = draw_lane(lane, window, 96, letters, True, model.path).line
        roles = [role for text, role in colours for _ in text]
        before = [role for text, role in plain for _ in text]
        for column, on_path in enumerate(flags):
            if on_path:
                assert roles[column] in (before[column], TRACE)
            else:
                assert roles[column].split(" ")[0] == OFF_PATH
        mono = line_text(draw_lane(lane, window, 96, letters, False).line)
        marked = line_text(draw_lane(lane, window, 96, letters, False, model.path).line)
        changed = [column for column in range(96) if mono[column] != marked[column]]
        assert all(flags[column] for column in changed if mono[column] not in "[]")
        if any(flags) and lane.stream is None:
            assert changed


def test_the_path_can_be_seen_at_the_begin_of_each_of_its_segments() -> None:
    results = small()
    model = TimelineModel(results)
    assert model.path is not None
    path = results.critical_path
    for index in range(len(path)):
        window = window_of(results, 0, results.step_time_ns).moved_to(path.edge[index] - 50, 100, 50)
        lane = model.source.lane(path.track[index])
        assert model.path.path_columns(lane, window.edges(50))[window.column(path.edge[index], 50)]


def rows_of(model: TimelineModel, width: int, height: int, colour: bool = False) -> list[str]:
    return [line_text(line) for line in TimelineFrame(BLOCKS, colour).draw(model, width, height)]


def test_it_is_off_until_asked_for_or_walked_along_and_the_screen_says_so() -> None:
    model = TimelineModel(seed())
    before = rows_of(model, 120, 33)
    assert any(row.rstrip().endswith("critical path off") for row in before)
    jumps.toggle_path(model)
    assert any(row.rstrip().endswith("critical path on, in capitals") for row in rows_of(model, 120, 33))
    assert any("critical path on, in colour" in row for row in rows_of(model, 120, 33, colour=True))
    assert any("critical path on" in row for row in rows_of(model, 80, 21))
    jumps.toggle_path(model)
    assert model.notice == "critical path off"
    model.notice = ""
    assert rows_of(model, 120, 33) == before
    jumps.step_critical(model, 1)
    assert any("critical path on" in row for row in rows_of(model, 120, 33))


def test_another_run_has_another_path() -> None:
    model = TimelineModel(seed())
    first = model.path
    assert model.path is first
    model.show(small())
    assert model.path is not first


def test_a_heading_shows_what_is_below_it() -> None:
    results = run(two_stages(), dim=("switch:2:4:50", "switch:4:2:300"), no_fold=True, slow_rank=("5=1.5",))
    model = TimelineModel(results)
    assert model.path is not None
    headings = [lane for lane in model.lanes if lane.key.path]
    assert headings
    for lane in headings:
        assert isinstance(lane, GroupLane)
        below = [model.path.stretches(model.source.lane(number)) for number in lane.track_ids]
        starts, ends = model.path.stretches(lane)
        assert sum(ends) - sum(starts) == sum(sum(over) - sum(begin) for begin, over in below)


def test_a_measured_run_has_a_path_too_and_is_walked_along() -> None:
    results = RecordedRun(four_ranks())
    model = TimelineModel(results)
    assert model.path is not None
    stretches = [model.path.stretches(model.source.lane(number)) for number in model.source.track_ids]
    assert sum(sum(ends) - sum(starts) for starts, ends in stretches) == model.source.length
    model.jump_to(0)
    jumps.step_critical(model, 1)
    legs, segments = len(merged_segments_of(results)), len(results.critical_path)
    assert legs < segments
    assert model.notice.startswith(f"path segment 2 of {legs} (joined from {segments}): ")
    # The report counts the segments, too.
    assert f"Critical path: {segments} segments on " in run_page(results)
    assert model.shows_path
    jumps.step_critical(model, -1)
    jumps.step_critical(model, -1)
    assert model.notice == jumps.PATH_BEGINS
    assert TimelineModel(RecordedRun(measured_seed())).path is not None


def test_ranks_without_a_common_time_have_no_path() -> None:
    model = TimelineModel(RecordedRun(four_ranks(50)))
    jumps.toggle_path(model)
    assert model.notice == jumps.NO_PATH
    assert not model.shows_path
    model.go_to(LaneKey((), 1))
    jumps.step_critical(model, 1)
    assert model.notice == jumps.NO_PATH
    assert not model.shows_path


async def test_the_key_and_the_palette_turn_it_on_and_off(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(120, 36)) as pilot:
        await press(pilot, "P")
        assert "critical path on" in screen_rows(app)[-2]
        await press(pilot, "colon")
        await burst(pilot, *"path on/off", "enter")
        assert "critical path off" in screen_rows(app)[-2]


@pytest.mark.parametrize("keys", [("P",), ("P", "c")])
async def test_without_colour_the_legend_says_what_the_capitals_are(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch, keys: tuple[str, ...]
) -> None:
    app = make_app()
    monkeypatch.setattr(app, "no_color", True)
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, *keys)
        assert screen_rows(app)[-2].startswith(" FBX* <> critical path  ")
        await press(pilot, "P")
        assert "critical path" not in screen_rows(app)[-2]
