"""Cells: what fills most of one is what it shows, and a short span leaves a trace on its stream."""

from __future__ import annotations

from itertools import groupby, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.runs.simulated import SimulatedRun
from simcore.simulation import simulate
from simcore.trace.lane_spans import KINDS, NAMELESS
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
from tui.timeline.drawing import CROWDED, alternating_kinds, draw_lane, majority_kinds
from tui.timeline.lanes import Lane
from tui.timeline.window import Window

# The drawing code of ASCII, by category: what the legend says.
LETTERS = {
    "fwd": "f", "bwd": "b", "wg": "w", "opt": "o", "recompute": "f", "wait": "-", "bubble": ".", "idle": " ",
    **dict.fromkeys(("tp", "ep", "dp", "dp_ep", "all", "pp"), "x"),
}  # fmt: skip


BWD, WG, BUBBLE = (KINDS.index(name) for name in ("bwd", "wg", "bubble"))


def drawn_cells(line: Line) -> list[tuple[str, str]]:
    """(character, role) of each cell."""
    return [(char, role) for text, role in line for char in text]


def expected_cell(lane: Lane, first_ns: int, last_ns: int) -> tuple[str, str]:
    """What a cell must show, from a naive sum."""
    found = naive_cell(lane, first_ns, last_ns)
    if not found:
        return " ", ""
    backward = found.get(BWD, 0) + found.get(WG, 0)
    whole = {one: ns for one, ns in found.items() if one != WG} | ({BWD: backward} if backward else {})
    category = min(whole, key=lambda one: (-whole[one], one))
    if category == BWD and 3 * found.get(WG, 0) >= 2 * backward:
        category = WG
    name = KINDS[category]
    if lane.stream in (None, "compute"):
        return LETTERS[name], "" if name == "idle" else name
    return ("#" if found[category] * 2 > last_ns - first_ns else "+"), name


def mostly_empty(
    lane: Lane, edges: list[int], expected: list[tuple[str, str]], column: int
) -> tuple[str, str]:
    """A cell of compute that is mostly empty is a trace, and so is work in one that is mostly idle."""
    found = naive_cell(lane, edges[column], edges[column + 1])
    running = {kind: ns for kind, ns in found.items() if kind not in NAMELESS}
    if lane.stream is None:
        if expected[column] != (" ", "") or not running:
            return expected[column]
        return "+", KINDS[min(running, key=lambda kind: (-running[kind], kind))]
    if not found or 2 * sum(found.values()) >= edges[column + 1] - edges[column]:
        return expected[column]
    return "+", expected[column][1]


def check_alternating(lane: Lane, edges: list[int], cells: list[tuple[str, str]]) -> None:
    """Where short spans take turns a cell has a kind that fills an eighth of it, or what fills most of it."""
    for (char, role), (first, last) in zip(cells, pairwise(edges), strict=True):
        found = naive_cell(lane, first, last)
        if role.endswith(" reversed") or char in " +":
            continue
        backward = found.get(BWD, 0) + found.get(WG, 0)
        ns = backward if role in ("bwd", "wg") else found.get(KINDS.index(role), 0)
        assert 8 * ns >= last - first or ns == max(found.values())


@settings(max_examples=200)
@given(st.integers(60, 190), st.integers(60, 190), st.integers(0, 300))
def test_short_spans_that_take_turns_have_as_many_columns_as_they_have_time(
    work: int, gap: int, first: int
) -> None:
    """Passes of 1.2 columns were now and then a block of four, a straggler that nobody ran. Planted: what
    fills most of each.
    """
    columns, width = 66, 100
    edges = [width * column for column in range(columns + 1)]
    sums = {kind: [0] * columns for kind in (BWD, BUBBLE)}
    for ns in range(edges[-1]):
        sums[BWD if (ns + first) % (work + gap) < work else BUBBLE][ns // width] += 1
    kinds = alternating_kinds(sums, edges)
    for kind, length in ((BWD, work), (BUBBLE, gap)):
        assert abs(kinds.count(kind) - sum(sums[kind]) / width) <= 2
        longest = max(len(list(same)) for one, same in groupby(kinds) if one == kind)
        assert longest < length / width + 3


def check_lane(lane: Lane, window: Window, columns: int) -> None:
    """Compare a drawn lane with the naive one, cell by cell; names are letters over cells."""
    edges = window.edges(columns)
    drawn = draw_lane(lane, window, columns, ASCII, colour=True)
    cells = drawn_cells(drawn.line)
    assert len(cells) == columns
    if drawn.crowded:
        return
    if drawn.narrow and lane.content.covers_all:
        check_alternating(lane, edges, cells)
        return
    expected = [expected_cell(lane, edges[column], edges[column + 1]) for column in range(columns)]
    if lane.by_majority:
        expected = [mostly_empty(lane, edges, expected, column) for column in range(columns)]
    for column, (char, role) in enumerate(cells):
        expected_char, expected_role = expected[column]
        if role.endswith(" reversed"):
            # A name stands over the whole of its span, a cell of it that is mostly empty included.
            assert role == f"{expected_role} reversed" or expected_char in " +"
        elif char == " ":
            # A blank has whatever role makes fewer pieces.
            assert expected_char == " ", f"column {column}"
        else:
            assert (char, role) == (expected_char, expected_role), f"column {column}"


@st.composite
def stretches(draw: st.DrawFn, results: SimulatedRun) -> tuple[Window, int]:
    """A window of a run and a number of columns, none narrower than 1 ns."""
    step = max(results.simulation.step_time_ns, 1)
    columns = draw(st.integers(1, min(step, 120)))
    span = draw(st.integers(columns, step))
    return window_of(results, draw(st.integers(0, step - span)), span), columns


@settings(max_examples=25)
@given(st.data(), cases(8))
def test_each_cell_shows_what_fills_most_of_it(data: st.DataObject, case: Case) -> None:
    results = SimulatedRun(simulate(*case))
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
                line = draw_lane(lane, window, columns, glyphs, colour).line
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
        cells = drawn_cells(draw_lane(lane, window, 96, ASCII, colour=True).line)
        spans = lane.spans
        for start, end in zip(spans.start, spans.end, strict=True):
            assert end > start
            assert cells[window.column(start, 96)][0] in "#+", f"{stream} at {start}"
        if stream != "dp":
            assert max(map(int.__sub__, spans.end, spans.start)) < edges[1] // 100


def test_neighbouring_cells_of_one_role_are_one_piece() -> None:
    for lane in all_lanes(seed()):
        if lane.track_id == 5:
            line = draw_lane(lane, Window.whole(seed().simulation.step_time_ns), 96, BLOCKS, colour=True).line
            roles = [role for _, role in line]
            assert all(one != following for one, following in pairwise(roles))


def test_idle_is_blank_and_has_no_role() -> None:
    rows = [layer("embedding_layer", 10, 10, 10), layer("attention_column", 1000, 1000, 1000)]
    results = run(make_workload(rows, tp=1, pp=3, all_gpus=3, pp_comm=5_000_000))
    line = draw_lane(
        lane_of(results, 2), Window.whole(results.simulation.step_time_ns), 60, BLOCKS, colour=True
    ).line
    assert line[-1][1] == ""
    assert line[-1][0].strip() == ""
    assert width_of(line) == 60


@pytest.mark.parametrize("ns", [1, 10, 96, 100])
def test_a_layer_that_fills_the_step_fills_every_cell_of_it(ns: int) -> None:
    text = line_text(draw_lane(lane_of(lonely(ns), 0), Window.whole(ns), 96, BLOCKS, colour=False).line)
    assert text in ("▄" * 96, f"[{'only_layer':<94}]")


# -- the ends of spans, in eighths of a cell ------------------------------------------


def cells_of(lane: Lane, window: Window, columns: int, *, colour: bool = True) -> list[tuple[str, str]]:
    """A lane's cells in blocks."""
    return drawn_cells(draw_lane(lane, window, columns, BLOCKS, colour).line)


def phases(fwd: int, ig: int, wg: int = 0) -> Lane:
    """The compute of one rank with one layer of these lengths."""
    results = run(make_workload([layer("a", fwd, ig, wg)], tp=1, pp=1, all_gpus=1))
    return lane_of(results, 0)


EIGHTHS = "▏▎▍▌▋▊▉"


@pytest.mark.parametrize("eighths", range(9))
def test_a_cell_that_one_kind_begins_and_another_ends_is_an_eighth_block(eighths: int) -> None:
    # Ten cells of 80 ns: forward ends in the fourth one. Names would need five cells.
    lane = phases(240 + 10 * eighths, 560 - 10 * eighths)
    cells = cells_of(lane, Window.whole(800), 10)
    edge = ("▄", "fwd") if eighths == 8 else (EIGHTHS[eighths - 1], "fwd on bwd") if eighths else None
    assert cells[2] == ("▄", "fwd")
    if edge is None:
        assert cells[3][1].startswith("bwd")
    else:
        assert cells[3] == edge
    assert cells[4][1] == "bwd reversed"


def test_without_colour_and_in_ascii_no_cell_is_an_eighth_block() -> None:
    lane = phases(270, 530)
    for glyphs, colour in ((BLOCKS, False), (ASCII, True), (ASCII, False)):
        line = draw_lane(lane, Window.whole(800), 10, glyphs, colour).line
        assert not set(line_text(line)) & set(EIGHTHS)
        assert all(" on " not in role for _, role in line)
        assert colour or {role for _, role in line} == {""}


def test_what_lies_beside_nothing_is_cut_in_eighths_at_both_ends() -> None:
    rows = [layer("a", 250, 0, 0)]
    results = run(make_workload([*rows, layer("b", 0, 270, 0)], tp=1, pp=1, all_gpus=1))
    compute = lane_of(results, 0, "compute")
    # Forward until 250 ns, backward until 520, then nothing; 16 ns a cell.
    cells = cells_of(compute, Window(0, 800, 800), 50)
    assert cells[15] == ("▋", "fwd on bwd")
    assert cells[31][1] == "bwd reversed"
    assert cells[32] == ("▌", "bwd")
    assert cells[33:] == [(" ", "")] * 17


@settings(max_examples=60)
@given(stretches(small()))
def test_an_edge_tells_how_much_of_its_cell_the_left_kind_fills(stretch: tuple[Window, int]) -> None:
    window, columns = stretch
    edges = window.edges(columns)
    for lane in all_lanes(small()):
        if lane.stream not in (None, "compute"):
            continue
        for column, (char, role) in enumerate(cells_of(lane, window, columns)):
            if char not in EIGHTHS or (char == "▌" and " on " not in role and "reversed" not in role):
                continue
            found = naive_cell(lane, edges[column], edges[column + 1])
            width = edges[column + 1] - edges[column]
            left, on, right = role.partition(" on ")
            if on:
                share = found[KINDS.index(left)]
            elif role.endswith(" reversed"):
                share = width - found[KINDS.index(role.removesuffix(" reversed"))]
            else:
                share = found[KINDS.index(role)]
            # Rounded to an eighth; up to half an eighth may be of a third kind.
            assert abs(8 * share / width - (EIGHTHS.index(char) + 1)) <= 1.01, (role, column)
            assert not right or found[KINDS.index(right)] > 0


def test_a_name_beside_an_edge_begins_right_behind_it() -> None:
    lane = phases(270, 1330)
    cells = cells_of(lane, Window.whole(1600), 20)
    assert cells[3] == ("▍", "fwd on bwd")
    assert "".join(char for char, _ in cells[4:]) == "a ig" + " " * 12
    assert {role for _, role in cells[4:]} == {"bwd reversed"}


# -- weight gradients apart ------------------------------------------------------------


def zero_bubble() -> SimulatedRun:
    """A schedule that puts weight gradients off."""
    rows = [layer("a", 1000, 1000, 1000)] * 2
    return run(make_workload(rows, tp=1, pp=2, all_gpus=2), schedule="zb-h1", microbatches=2)


def test_weight_gradients_are_apart_only_where_the_schedule_takes_them_apart() -> None:
    whole = Window.whole(zero_bubble().simulation.step_time_ns)
    kinds = {
        role for _, role in drawn_cells(draw_lane(lane_of(zero_bubble(), 0), whole, 200, ASCII, True).line)
    }
    assert {role.removesuffix(" reversed") for role in kinds} >= {"bwd", "wg"}
    other = run(make_workload([layer("a", 1000, 1000, 1000)] * 2, tp=1, pp=2, all_gpus=2), microbatches=2)
    lane = lane_of(other, 0)
    line = draw_lane(lane, Window.whole(other.simulation.step_time_ns), 200, ASCII, True).line
    assert not any(role.startswith("wg") for _, role in line)


@pytest.mark.parametrize(
    ("ig", "wg", "expected"),
    [
        (100, 0, "bwd"),
        (68, 32, "bwd"),
        (60, 40, "bwd"),
        (40, 60, "bwd"),
        (34, 66, "bwd"),
        (32, 68, "wg"),
        (0, 9, "wg"),
    ],
)
def test_where_both_gradients_have_over_a_third_it_is_plainly_backward(
    ig: int, wg: int, expected: str
) -> None:
    sums = {category: [ns] for category, ns in ((BWD, ig), (WG, wg)) if ns}
    assert KINDS[majority_kinds(sums, 1)[0]] == expected
    # Together they outweigh what is more than each.
    fwd = KINDS.index("fwd")
    assert majority_kinds({fwd: [ig + wg - 1], **sums}, 1)[0] == KINDS.index(expected)
    assert majority_kinds({fwd: [ig + wg], **sums}, 1)[0] == fwd


# -- crowded rows ----------------------------------------------------------------------


def crowded() -> Lane:
    """A rank whose forward and backward alternate in nearly every cell of 176."""
    return lane_of(seed(microbatches=48), 8)


@pytest.mark.slow
def test_a_crowded_row_is_as_high_as_it_is_busy_and_has_few_pieces() -> None:
    lane = crowded()
    window = Window.whole(lane.of.results.simulation.step_time_ns)
    edges = window.edges(176)
    for glyphs in (BLOCKS, ASCII):
        drawn = draw_lane(lane, window, 176, glyphs, colour=True)
        assert drawn.crowded
        assert len(drawn.line) <= CROWDED
        for column, (char, role) in enumerate(drawn_cells(drawn.line)):
            found = naive_cell(lane, edges[column], edges[column + 1])
            busy = sum(found.get(KINDS.index(name), 0) for name in ("fwd", "bwd", "wg", "opt", "recompute"))
            level = -(-busy * 8 // (edges[column + 1] - edges[column]))
            assert char == (glyphs.heat[max(level, 1)] if role else " ")


def test_a_row_of_80_runs_is_not_crowded_and_without_colour_none_is() -> None:
    lane = crowded()
    window = Window.whole(lane.of.results.simulation.step_time_ns)
    assert not draw_lane(lane, window, 96, BLOCKS, colour=True).crowded
    mono = draw_lane(lane, window, 176, BLOCKS, colour=False)
    assert not mono.crowded
    assert len(mono.line) == 1


def test_a_row_knows_whether_its_spans_have_columns_to_themselves() -> None:
    """Passes of 1.2 columns beside bubbles of 0.6 look like one long pass here and there."""
    lane, step = lane_of(seed(), 0), seed().simulation.step_time_ns
    whole = Window.whole(step)
    assert draw_lane(lane, whole, 66, BLOCKS, colour=True).narrow
    # Three columns and two, or a few passes in view, are what they look like.
    assert not draw_lane(lane, whole, 176, BLOCKS, colour=True).narrow
    assert not draw_lane(lane, window_of(seed(), step // 2, step // 20), 66, BLOCKS, colour=True).narrow
    # Nobody takes a height for a pass.
    crowd = crowded()
    whole = Window.whole(crowd.of.results.simulation.step_time_ns)
    assert not draw_lane(crowd, whole, 176, BLOCKS, colour=True).narrow
    assert draw_lane(crowd, whole, 176, BLOCKS, colour=False).narrow


def test_blanks_between_spans_of_a_stream_cost_no_piece() -> None:
    lane = lane_of(seed(), 5, "tp")
    line = draw_lane(lane, Window.whole(seed().simulation.step_time_ns), 176, BLOCKS, colour=True).line
    assert len(line) <= 2
    assert " " in line_text(line).strip()
