"""Cells: what fills most of one is what it shows, and a short span leaves a trace on its stream."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.analysis import Results
from simcore.simulation import simulate
from tests.strategies import Case, cases, layer, make_workload
from tests.tui.made_runs import (
    all_lanes,
    lane_of,
    line_text,
    lonely,
    naive_cell,
    run,
    seed,
    small,
    window_of,
)
from tui.frame import ASCII, BLOCKS, Line, width_of
from tui.timeline.drawing import draw_lane
from tui.timeline.lanes import DRAWN, Lane
from tui.timeline.window import Window

# The drawing code of ASCII, by category: what the legend says.
LETTERS = {
    "fwd": "f", "bwd": "b", "opt": "o", "recompute": "f", "wait": "-", "bubble": ".", "idle": " ",
    **dict.fromkeys(("tp", "ep", "dp", "dp_ep", "all", "pp"), "x"),
}  # fmt: skip


def drawn_cells(line: Line) -> list[tuple[str, str]]:
    """(character, role) of each cell."""
    return [(char, role) for text, role in line for char in text]


def expected_cell(lane: Lane, first_ns: int, last_ns: int) -> tuple[str, str]:
    """What a cell must show, from a naive sum."""
    found = naive_cell(lane, first_ns, last_ns)
    if not found:
        return " ", ""
    category = min(found, key=lambda one: (-found[one], one))
    name = DRAWN[category]
    if lane.stream in (None, "compute"):
        return LETTERS[name], "" if name == "idle" else name
    return ("#" if found[category] * 2 > last_ns - first_ns else "+"), name


def check_lane(lane: Lane, window: Window, columns: int) -> None:
    """Compare a drawn lane with the naive one, cell by cell; names are letters over cells."""
    edges = window.edges(columns)
    cells = drawn_cells(draw_lane(lane, window, columns, ASCII, colour=True))
    assert len(cells) == columns
    for column, (char, role) in enumerate(cells):
        expected_char, expected_role = expected_cell(lane, edges[column], edges[column + 1])
        if role.endswith(" reversed"):
            assert role == f"{expected_role} reversed"
        else:
            assert (char, role) == (expected_char, expected_role), f"column {column}"


@st.composite
def stretches(draw: st.DrawFn, results: Results) -> tuple[Window, int]:
    """A window of a run and a number of columns, none narrower than 1 ns."""
    step = max(results.simulation.step_time_ns, 1)
    columns = draw(st.integers(1, min(step, 120)))
    span = draw(st.integers(columns, step))
    return window_of(results, draw(st.integers(0, step - span)), span), columns


@settings(max_examples=25)
@given(st.data(), cases(8))
def test_each_cell_shows_what_fills_most_of_it(data: st.DataObject, case: Case) -> None:
    results = Results(simulate(*case))
    window, columns = data.draw(stretches(results))
    for lane in all_lanes(results):
        check_lane(lane, window, columns)


@settings(max_examples=30)
@given(stretches(small()))
def test_each_cell_of_a_pipeline_shows_what_fills_most_of_it(stretch: tuple[Window, int]) -> None:
    for lane in all_lanes(small()):
        check_lane(lane, *stretch)


@settings(max_examples=20)
@given(st.integers(1, 400), st.integers(0, 10**9), st.integers(1, 10**9))
def test_a_lane_is_as_wide_as_its_columns_in_colour_and_without(columns: int, first: int, span: int) -> None:
    step = small().simulation.step_time_ns
    span = max(span % step, 1)
    window = window_of(small(), first % (step - span + 1), span)
    for lane in all_lanes(small()):
        for glyphs in (BLOCKS, ASCII):
            for colour in (True, False):
                line = draw_lane(lane, window, columns, glyphs, colour)
                assert width_of(line) == columns


def test_the_whole_of_seed_002_is_drawn_as_the_naive_sums_say() -> None:
    window = Window.whole(seed().simulation.step_time_ns)
    for number in (0, 15):
        check_lane(lane_of(seed(), number), window, 96)
        check_lane(lane_of(seed(), number, "pp"), window, 96)


def test_a_span_far_shorter_than_a_cell_leaves_a_trace_on_its_stream() -> None:
    window = Window.whole(seed().simulation.step_time_ns)
    for stream in ("tp", "dp", "pp"):
        lane = lane_of(seed(), 5, stream)
        edges = window.edges(96)
        cells = drawn_cells(draw_lane(lane, window, 96, ASCII, colour=True))
        spans = lane.spans
        for start, end in zip(spans.start, spans.end, strict=True):
            assert end > start
            assert cells[window.column(start, 96)][0] in "#+", f"{stream} at {start}"
        if stream != "dp":
            assert max(map(int.__sub__, spans.end, spans.start)) < edges[1] // 100


def test_neighbouring_cells_of_one_role_are_one_piece() -> None:
    for lane in all_lanes(seed()):
        if lane.number == 5:
            line = draw_lane(lane, Window.whole(seed().simulation.step_time_ns), 96, BLOCKS, colour=True)
            roles = [role for _, role in line]
            assert all(one != following for one, following in pairwise(roles))


def test_idle_is_blank_and_has_no_role() -> None:
    rows = [layer("embedding_layer", 10, 10, 10), layer("attention_column", 1000, 1000, 1000)]
    results = run(make_workload(rows, tp=1, pp=3, all_gpus=3, pp_comm=5_000_000))
    line = draw_lane(
        lane_of(results, 2), Window.whole(results.simulation.step_time_ns), 60, BLOCKS, colour=True
    )
    assert line[-1][1] == ""
    assert line[-1][0].strip() == ""
    assert width_of(line) == 60


@pytest.mark.parametrize("ns", [1, 10, 96, 100])
def test_a_layer_that_fills_the_step_fills_every_cell_of_it(ns: int) -> None:
    text = line_text(draw_lane(lane_of(lonely(ns), 0), Window.whole(ns), 96, BLOCKS, colour=False))
    assert text in ("▄" * 96, f"{BLOCKS.span_left}{'only_layer':<94}{BLOCKS.span_right}")
