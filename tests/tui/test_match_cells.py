"""The matches of a search in the lanes: marked where they are and nowhere else, and counted."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple, cast

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from simcore.runs.simulated import SimulatedRun
from simcore.trace.lane_spans import Content, make_spans
from tests.tui.conftest import MakeApp
from tests.tui.made_runs import four_stages, line_text, run, small, two_stages
from tests.tui.screen_reading import burst, press
from tui.frame import ASCII, BLOCKS, Glyphs, Line
from tui.frame_view import styles
from tui.timeline import jumps
from tui.timeline.frame import TimelineFrame
from tui.timeline.lanes import SpanLane
from tui.timeline.match_cells import MatchLanes
from tui.timeline.model import TimelineModel
from tui.timeline.query import parse_query
from tui.timeline.search import Search
from tui.timeline.stretches import flag_columns
from tui.timeline.view import TimelineView
from tui.timeline.window import Window

TEXTS = ["forward", "bubble", "mlp", "mb 1", "tp", "send", "idle", "stage 1 backward", "2 exposed", "< 2 us"]
MODES = [(BLOCKS, True), (BLOCKS, False), (ASCII, True), (ASCII, False)]
NAMES = ["blocks", "blocks, no colour", "ascii", "ascii, no colour"]


def begin_search(model: TimelineModel, text: str) -> Search:
    model.search = model.new_search(parse_query(text))
    search = model.current_search
    assert search is not None
    return search


@cache
def apart() -> SimulatedRun:
    """Eight ranks, each simulated for itself."""
    return run(two_stages(), dim=("switch:2:4:50", "switch:4:2:300"), no_fold=True, slow_rank=("5=1.5",))


def lane_rows(model: TimelineModel, glyphs: Glyphs, colour: bool, width: int, height: int) -> list[list[str]]:
    """The roles of the cells of each lane on the screen, in the line of its name."""
    return [[role for _, role in cells] for cells in lane_cells(model, glyphs, colour, width, height)]


def lane_cells(
    model: TimelineModel, glyphs: Glyphs, colour: bool, width: int, height: int
) -> list[list[tuple[str, str]]]:
    """The cells of each lane on the screen, in the line of its name; without the cursor's."""
    frame = TimelineFrame(glyphs, colour)
    lines: list[Line] = frame.draw(model, width, height)
    left, top, signs, _ = frame.area
    last_lines = {index: top + y for y, (index, _) in enumerate(signs)}
    return [
        [(char, role) for text, role in lines[y] for char in text][left + 1 : left + 1 + model.columns]
        for y in last_lines.values()
    ]


class OneLane(SpanLane):
    """A lane of these spans."""

    def __init__(self, times: list[tuple[int, int]]) -> None:
        self.track_id, self.stream = 0, "pp"
        spans = make_spans([(start, end, 0, 0) for start, end in times])
        self._content = Content(spans, spans)

    @property
    def content(self) -> Content:
        return self._content


class Flags(NamedTuple):
    """A search that has found this."""

    found: bytes

    def searched_lanes(self, lane: SpanLane) -> list[SpanLane]:
        return [lane]

    def flags(self, lane: SpanLane) -> bytes:
        return self.found


@given(
    # Transfers overlap, also by two.
    spans=st.lists(st.tuples(st.integers(0, 60), st.integers(1, 25), st.booleans()), max_size=30),
    first=st.integers(0, 70),
    length=st.integers(1, 90),
    columns=st.sampled_from([1, 3, 10, 40]),
)
# A long one that ends behind shorter ones; more columns than ns; more matches than columns, one at an edge.
@example([(0, 60, True), (1, 1, True), (3, 1, True)], 30, 20, 3)
@example([(11, 1, True)], 10, 3, 10)
@example([(0, 1, True), (2, 1, True), (4, 1, True), (20, 1, True)], 0, 30, 3)
def test_a_match_is_in_each_column_that_it_touches_whatever_overlaps_it(
    spans: list[tuple[int, int, bool]], first: int, length: int, columns: int
) -> None:
    spans.sort()
    lane = OneLane([(start, start + size) for start, size, _ in spans])
    matches = MatchLanes(cast(Search, Flags(bytes(flag for _, _, flag in spans))))
    edges = Window(first, length, 200).edges(columns)
    expected = []
    for column, left in enumerate(edges[:-1]):
        # Columns of one instant show all of it.
        right = next(edge for edge in edges[column:] if edge > left)
        expected.append(any(flag and start < right and start + size > left for start, size, flag in spans))
    assert list(map(bool, matches.match_columns(lane, edges))) == expected
    assert matches.count(lane) == sum(flag for _, _, flag in spans)


@settings(max_examples=60)
@given(
    text=st.sampled_from(TEXTS),
    mode=st.sampled_from(MODES),
    # Down to fewer nanoseconds than columns, and to less than a span a column.
    zoom=st.sampled_from([1, 2, 7, 60, 900]),
    share=st.integers(0, 100),
    results=st.sampled_from([small, apart, four_stages]),
    filtered=st.sampled_from(["", "", "forward"]),
)
def test_the_columns_with_a_part_of_a_match_are_marked_and_no_others(
    text: str, mode: tuple[Glyphs, bool], zoom: int, share: int, results: object, filtered: str
) -> None:
    assert callable(results)
    model = TimelineModel(results())
    model.columns = 96
    model.arrangement.open_level()
    model.filter.set(parse_query(filtered))
    model.zoom(1, zoom, model.window.step_ns * share // 100)
    search = begin_search(model, text)
    rows = lane_rows(model, *mode, 110, 33)
    assert rows
    edges = model.window.edges(model.columns)
    for roles, (_, row) in zip(rows, model.arrangement.visible(), strict=False):
        flags, spans = search.flags(row.lane), row.lane.spans
        stretches = [
            (start, end) for start, end, flag in zip(spans.start, spans.end, flags, strict=True) if flag
        ]
        for column, role in enumerate(roles):
            # Where columns are of one instant, each of them shows all of it.
            until = next(edge for edge in edges[column:] if edge > edges[column])
            has_match = any(start < until and end > edges[column] for start, end in stretches)
            assert (" underlined" in role) == has_match, (row.key, column)


@pytest.mark.parametrize("mode", MODES, ids=NAMES)
@pytest.mark.parametrize("path", [False, True])
@pytest.mark.parametrize("text", ["forward", "bubble", "tp", "send", "optimizer"])
def test_a_marked_cell_says_its_kind_as_before(mode: tuple[Glyphs, bool], path: bool, text: str) -> None:
    glyphs, colour = mode
    letters = {glyph: ASCII.fills[kind] for kind, glyph in reversed(glyphs.fills.items())} | {
        glyphs.partly: ASCII.partly
    }
    model = TimelineModel(small())
    model.arrangement.open_level()
    model.move_to(0)
    if path:
        jumps.toggle_path(model)
    before = lane_cells(model, glyphs, colour, 80, 21)
    begin_search(model, text)
    after = lane_cells(model, glyphs, colour, 80, 21)
    changed = 0
    for cells_before, cells_after in zip(before, after, strict=True):
        for (glyph, role), (marked_glyph, marked_role) in zip(cells_before, cells_after, strict=True):
            if " underlined" not in marked_role:
                assert (marked_glyph, marked_role) == (glyph, role)
                continue
            changed += 1
            assert marked_role.replace(" underlined", "").removesuffix(" reversed") == role.removesuffix(
                " reversed"
            )
            assert marked_glyph in (glyph, letters.get(glyph), ASCII.busy if glyph == glyphs.busy else glyph)
            if not colour:
                assert not marked_role.endswith(" reversed") or role.endswith(" reversed")
    assert changed


@pytest.mark.parametrize("system", ["256", "standard", None])
def test_every_role_has_a_style_and_a_mark_is_seen_in_it(system: str | None) -> None:
    model = TimelineModel(four_stages())
    begin_search(model, "forward")
    by_role = styles(system)
    for glyphs, colour in MODES:
        for roles in lane_rows(model, glyphs, colour, 80, 24):
            for role in roles:
                assert bool(by_role[role].underline) == (" underlined" in role)


@pytest.mark.parametrize(("width", "height"), [(80, 21), (120, 33), (200, 47)])
@pytest.mark.parametrize("text", TEXTS)
def test_each_lane_says_how_many_spans_match_and_the_screen_how_many_in_all(
    text: str, width: int, height: int
) -> None:
    model = TimelineModel(small())
    frame = TimelineFrame(BLOCKS, False)
    frame.draw(model, width, height)
    search = begin_search(model, text)
    lines = [line_text(line) for line in frame.draw(model, width, height)]
    left, top, signs, _ = frame.area
    last_lines = {index: top + y for y, (index, _) in enumerate(signs)}
    matches = MatchLanes(search)
    for index, y in last_lines.items():
        lane = model.lanes[index]
        count = matches.count(lane)
        assert count == search.flags(lane).count(1)
        label = lines[y][:left]
        assert (f"/{count} " in label) == (count > 0), label
    assert any(f"find {text}: {search.count} match" in line for line in lines)
    assert sum(one.matches for one in search.matched_lanes) == search.count


def test_what_is_shown_or_filtered_afterwards_is_searched_too() -> None:
    model = TimelineModel(small())
    search = begin_search(model, "all-gather")
    model.toggle_fold()
    again = model.current_search
    assert again is not None
    assert again is not search
    assert again.count > search.count
    shown = {row.lane.key: MatchLanes(again).count(row.lane) for row in model.arrangement.rows}
    assert {one.lane.key: one.matches for one in again.matched_lanes} == {
        key: count for key, count in shown.items() if count
    }
    assert model.current_search is again
    model.filter.set(parse_query("backward"))
    filtered = model.current_search
    assert filtered is not None
    assert 0 < filtered.count < again.count


@given(st.sampled_from(["forward", "send", "tp", "mb 1"]), st.sampled_from([1, -1]), st.integers(0, 100))
@settings(max_examples=30)
def test_the_next_match_has_three_columns_where_it_had_none(text: str, direction: int, share: int) -> None:
    model = TimelineModel(four_stages())
    model.resize(96, 20)
    begin_search(model, text)
    model.move_to(model.window.step_ns * share // 100)
    before = model.window
    jumps.next_match(model, direction)
    assert model.search is not None
    lane = model.current
    index = lane.content.find_span(model.cursor_ns)
    assert index is not None
    start, end = lane.spans.start[index], lane.spans.end[index]
    if (end - start) * model.columns >= before.span_ns:
        assert model.window.span_ns == before.span_ns
    else:
        assert (
            3 * model.window.span_ns <= (end - start) * model.columns or model.window.span_ns == model.columns
        )
        assert model.window.first_ns <= start < end <= model.window.last_ns
        # One key goes back.
        model.back()
        assert model.window == before


async def test_escape_leaves_the_search_and_clears_its_marks(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "2")
        view = app.query_one(TimelineView)
        before = view.frame(80, 21)
        await press(pilot, "slash")
        await burst(pilot, *"forward", "enter")
        assert view.model.search is not None
        assert any(" underlined" in role for line in view.frame(80, 21) for _, role in line)
        await press(pilot, "escape")
        assert view.model.search is None
        assert not any(" underlined" in role for line in view.frame(80, 21) for _, role in line)
        assert len(view.frame(80, 21)) == len(before)


class Counting(list[int]):
    """A list that counts how often one of its values is looked at."""

    reads = 0

    def __getitem__(self, index: object) -> int:  # type: ignore[override]
        self.reads += 1
        return super().__getitem__(index)  # type: ignore[index, return-value]


@pytest.mark.parametrize("count", [10, 1000, 200_000])
@pytest.mark.parametrize("stretch", [(0, 1), (1, 2), (499, 500)])
def test_what_marks_take_depends_on_the_columns_and_not_on_the_spans(
    count: int, stretch: tuple[int, int]
) -> None:
    starts, ends = Counting(range(0, 10 * count, 10)), Counting(range(5, 10 * count + 5, 10))
    part, parts = stretch
    first, last = 10 * count * part // parts, 10 * count * (part + 1) // parts
    edges = [first + (last - first) * column // 100 for column in range(101)]
    assert len(flag_columns(starts, ends, edges)) == 100
    # A bisection for each column.
    assert starts.reads + ends.reads <= 100 * (count.bit_length() + 3)
