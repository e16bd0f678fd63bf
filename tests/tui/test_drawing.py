"""Cells: one shows a kind that it has, and a short span leaves a trace on its stream."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

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
from tui.timeline.column_kinds import majority_kinds
from tui.timeline.drawing import draw_lane
from tui.timeline.lanes import Lane
from tui.timeline.window import Window

# The drawing code of ASCII, by category: what the legend says.
LETTERS = {
    "fwd": "f", "bwd": "b", "wg": "w", "opt": "o", "recompute": "f", "wait": "-", "bubble": ".", "idle": " ",
    **dict.fromkeys(("tp", "ep", "dp", "dp_ep", "all", "pp"), "x"),
}  # fmt: skip


BWD, WG = KINDS.index("bwd"), KINDS.index("wg")


def drawn_cells(line: Line) -> list[tuple[str, str]]:
    """(character, role) of each cell."""
    return [(char, role) for text, role in line for char in text]


def expected_busy_cell(lane: Lane, first_ns: int, last_ns: int) -> tuple[str, str]:
    """What a cell of communication must show, from a naive sum."""
    ns_by_kind = naive_cell(lane, first_ns, last_ns)
    if not ns_by_kind:
        return " ", ""
    kind = min(ns_by_kind, key=lambda one: (-ns_by_kind[one], one))
    return ("#" if ns_by_kind[kind] * 2 > last_ns - first_ns else "+"), KINDS[kind]


def as_drawn(kinds: Iterable[int]) -> set[str]:
    """The roles that a cell with these kinds may have: gradients are backward or weight gradient."""
    names = {KINDS[kind] for kind in kinds}
    return names | ({"bwd", "wg"} if names & {"bwd", "wg"} else set())


def check_lane(lane: Lane, window: Window, columns: int) -> None:
    """Compare a drawn lane with naive sums; names are letters over cells."""
    edges = window.edges(columns)
    cells = drawn_cells(draw_lane(lane, window, columns, ASCII, colour=True).line)
    assert len(cells) == columns
    for column, ((char, role), (first, last)) in enumerate(zip(cells, pairwise(edges), strict=True)):
        if not lane.by_majority:
            expected = expected_busy_cell(lane, first, last)
            # A blank has whatever role makes fewer pieces; a name stands over its span.
            is_named = role == f"{expected[1]} reversed"
            assert is_named or (char, role) == expected or char == expected[0] == " ", f"column {column}"
            continue
        sums = naive_cell(lane, first, last)
        is_full = sum(sums.values()) >= last - first
        running = {kind: ns for kind, ns in sums.items() if kind not in NAMELESS}
        if char == " " and not role:
            assert not running, f"column {column}"
            assert "idle" in as_drawn(sums) or not is_full, f"column {column}"
        elif char == "+":
            # A trace of what runs longest in a cell that counts as idle or empty.
            assert "idle" in as_drawn(sums) or not is_full, f"column {column}"
            assert role == KINDS[min(running, key=lambda kind: (-running[kind], kind))]
        else:
            kind = role.removesuffix(" reversed")
            assert kind in as_drawn(sums), f"column {column}"
            assert role != kind or char == LETTERS[kind], f"column {column}"


@st.composite
def stretches(draw: st.DrawFn, results: SimulatedRun) -> tuple[Window, int]:
    """A window of a run and a number of columns, none narrower than 1 ns."""
    step = max(results.simulation.step_time_ns, 1)
    columns = draw(st.integers(1, min(step, 120)))
    span = draw(st.integers(columns, step))
    return window_of(results, draw(st.integers(0, step - span)), span), columns


@settings(max_examples=25)
@given(st.data(), cases(8))
def test_each_cell_shows_a_kind_that_it_has(data: st.DataObject, case: Case) -> None:
    results = SimulatedRun(simulate(*case))
    window, columns = data.draw(stretches(results))
    for lane in all_lanes(results):
        check_lane(lane, window, columns)


@settings(max_examples=30)
@given(stretches(small()))
def test_each_cell_of_a_pipeline_shows_a_kind_that_it_has(stretch: tuple[Window, int]) -> None:
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
    # Twenty cells of 80 ns: forward ends in the seventh one, and names make it as high as backward.
    lane = phases(480 + 10 * eighths, 1120 - 10 * eighths)
    cells = cells_of(lane, Window.whole(1600), 20)
    assert cells[5][1] == "fwd reversed"
    if 0 < eighths < 8:
        assert cells[6] == (EIGHTHS[eighths - 1], "fwd on bwd")
    else:
        assert cells[6][1] == ("fwd reversed" if eighths else "bwd reversed")
    assert cells[7][1] == "bwd reversed"


def test_where_a_low_kind_without_a_name_meets_a_full_one_no_cell_is_a_sliver() -> None:
    for fwd in range(240, 330, 10):
        cells = cells_of(phases(fwd, 1600 - fwd), Window.whole(1600), 20)
        assert not set(EIGHTHS) & {char for char, _ in cells[:5]}, fwd
        assert {role for _, role in cells} == {"fwd", "bwd reversed"}


def test_spans_of_one_kind_are_parted_by_a_hairline_where_both_have_two_columns() -> None:
    def lane_of_layers(*lengths: int) -> Lane:
        rows = [layer(f"l{number}", ns, 1000) for number, ns in enumerate(lengths)]
        return lane_of(run(make_workload(rows, tp=1, pp=1, all_gpus=1)), 0)

    # Ten columns of forward at 100 ns each, ten of backward.
    cells = cells_of(lane_of_layers(300, 300, 100, 300), Window(0, 1000, 4000), 10)
    assert "".join(char for char, _ in cells) == "▄▄▖▄▄▄▄▄▄▄"
    # Before a name it stands in the blank of the name.
    cells = cells_of(lane_of_layers(300, 600, 100), Window(0, 1000, 4000), 10)
    assert cells[3] == ("▏", "fwd reversed")
    assert "".join(char for char, _ in cells[:3]) == "▄▄▄"
    # Backward fills its cells: the hairline is the last eighth of one.
    cells = cells_of(lane_of_layers(100, 100), Window(200, 2000, 2200), 8)
    assert ("▉", "bwd") in cells


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
    lane = phases(510, 1090)
    cells = cells_of(lane, Window.whole(1600), 20)
    assert cells[6] == ("▍", "fwd on bwd")
    assert "".join(char for char, _ in cells[7:]) == "a ig" + " " * 9
    assert {role for _, role in cells[7:]} == {"bwd reversed"}


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


# -- many short spans ------------------------------------------------------------------


def short_passes() -> Lane:
    """A rank whose forward and backward alternate in nearly every cell of 176."""
    return lane_of(seed(microbatches=48), 8)


@pytest.mark.slow
def test_a_row_of_many_short_spans_has_few_pieces_in_colour_and_one_without() -> None:
    lane = short_passes()
    window = Window.whole(lane.of.results.simulation.step_time_ns)
    assert len(draw_lane(lane, window, 176, BLOCKS, colour=True).line) <= 100
    assert len(draw_lane(lane, window, 176, BLOCKS, colour=False).line) == 1


def test_a_row_knows_whether_its_spans_have_columns_to_themselves() -> None:
    """Passes of 1.2 columns beside bubbles of 0.6 look like one long pass here and there."""
    lane, step = lane_of(seed(), 0), seed().simulation.step_time_ns
    whole = Window.whole(step)
    assert draw_lane(lane, whole, 66, BLOCKS, colour=True).narrow
    # Three columns and two, or a few passes in view, are what they look like.
    assert not draw_lane(lane, whole, 176, BLOCKS, colour=True).narrow
    assert not draw_lane(lane, window_of(seed(), step // 2, step // 20), 66, BLOCKS, colour=True).narrow
    lane = short_passes()
    whole = Window.whole(lane.of.results.simulation.step_time_ns)
    for colour in (True, False):
        assert draw_lane(lane, whole, 176, BLOCKS, colour=colour).narrow


def test_blanks_between_spans_of_a_stream_cost_no_piece() -> None:
    lane = lane_of(seed(), 5, "tp")
    line = draw_lane(lane, Window.whole(seed().simulation.step_time_ns), 176, BLOCKS, colour=True).line
    assert len(line) <= 2
    assert " " in line_text(line).strip()
