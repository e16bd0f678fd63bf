"""Names stand inside their spans, from five cells on, cut at the span's end."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.runs.simulated import SimulatedRun
from tests.strategies import layer, make_workload
from tests.tui.made_runs import lane_of, line_text, many_layers, run, seed, small, window_of
from tui.frame import ASCII, BLOCKS
from tui.timeline.drawing import draw_lane
from tui.timeline.lanes import Lane
from tui.timeline.window import Window

FILLS = set(ASCII.fills.values()) | {ASCII.busy, ASCII.partly}


def three_layers(*names: str) -> SimulatedRun:
    """Three layers of 1 us each on one rank, forward only."""
    return run(make_workload([layer(name, 1000) for name in names], tp=1, pp=1, all_gpus=1))


def drawn(results: SimulatedRun, columns: int, *, colour: bool = True) -> str:
    """The class lane over the whole step, ASCII."""
    window = Window.whole(results.simulation.step_time_ns)
    return line_text(draw_lane(lane_of(results, 0), window, columns, ASCII, colour).line)


def test_a_name_stands_at_the_left_end_of_its_span() -> None:
    assert drawn(three_layers("first", "second", "third"), 30) == " first     second    third    "


def test_without_colour_brackets_show_where_a_span_ends() -> None:
    assert drawn(three_layers("first", "second", "third"), 30, colour=False) == (
        "[first   ][second  ][third   ]"
    )


def test_a_long_name_is_cut_at_the_end_of_its_span_and_never_wraps() -> None:
    text = drawn(three_layers("attention_column", "a", "mlp_row"), 30)
    assert text == " attentio  a         mlp_row  "


def test_names_appear_from_five_cells_on() -> None:
    assert drawn(three_layers("first", "second", "third"), 15) == " fir  sec  thi "
    assert drawn(three_layers("first", "second", "third"), 12) == "ffffffffffff"


def test_input_and_weight_gradient_are_told_apart_by_their_names() -> None:
    results = run(make_workload([layer("mlp", 1000, 1000, 1000)], tp=1, pp=1, all_gpus=1))
    assert drawn(results, 36) == " mlp         mlp ig      mlp wg     "


def test_a_long_span_keeps_its_name_beside_many_short_ones() -> None:
    assert "long_layer" in drawn(many_layers(20), 96)
    assert "long_layer" in drawn(many_layers(200), 96)


def test_a_name_is_safe_and_has_one_cell_a_character() -> None:
    results = three_layers("\x1b[31mred\x07", "ñ漢字", "[bold]x[/bold]")
    text = drawn(results, 90)
    assert "\x1b" not in text
    assert "\x07" not in text
    assert len(text) == 90
    assert r"\x1b[31mred\x07" in text
    assert "ñ??" in text
    assert "[bold]x[/bold]" in text


def labels_in(lane: Lane, window: Window) -> list[tuple[int, int, str]]:
    """(start, end, name) of the spans in view, the name as the file has it."""
    simulation = lane.of.results.simulation
    ops = simulation.timeline.stage_program(lane.track_id).ops
    found = []
    for index, op in enumerate(lane.spans.op):
        start, end = lane.spans.start[index], lane.spans.end[index]
        if end > window.first_ns and start < window.last_ns:
            row = ops.row[op] if op >= 0 else -1
            found.append((start, end, simulation.workload.name[row] if row >= 0 else ""))
    return found


@st.composite
def stretches(draw: st.DrawFn) -> tuple[Window, int]:
    """A window of the small run that is wide enough on the screen for names."""
    step = small().simulation.step_time_ns
    span = draw(st.integers(200, step))
    return window_of(small(), draw(st.integers(0, step - span)), span), draw(st.integers(20, 200))


@settings(max_examples=40)
@given(stretches(), st.booleans())
def test_names_never_leave_their_span(stretch: tuple[Window, int], colour: bool) -> None:
    window, columns = stretch
    for number in (0, 1):
        for stream in (None, "compute", "tp", "dp"):
            lane = lane_of(small(), number, stream)
            text = line_text(draw_lane(lane, window, columns, ASCII, colour).line)
            covered = set()
            for start, end, name in labels_in(lane, window):
                left = max(window.column(max(start, window.first_ns), columns), 0)
                right = min(window.column(min(end, window.last_ns) - 1, columns) + 1, columns)
                covered |= set(range(left, right))
                inside = text[left:right].strip("[] ")
                if right - left > 8 and name and not set(inside) <= FILLS:
                    # The cells at both ends may be a neighbour's.
                    assert name[:3] in inside, (name, inside)
            for column in set(range(columns)) - covered:
                assert text[column] == " "


def test_names_of_seed_002_zoomed_in_are_those_of_the_file() -> None:
    lane = lane_of(seed(), 5, "compute")
    index = 40
    start = lane.spans.start[index]
    window = window_of(seed(), start, 30_000_000)
    text = line_text(draw_lane(lane, window, 96, BLOCKS, colour=True).line)
    ops = seed().simulation.timeline.stage_program(5).ops
    name = seed().simulation.workload.name[ops.row[lane.spans.op[index]]]
    assert text.startswith(f" {name[:5]}")
