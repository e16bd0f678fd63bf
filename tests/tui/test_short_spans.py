"""No cell in which something runs is blank, in any lane and at any zoom."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import cache, cached_property
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from simcore.runs.measured import RecordedRun
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import simulate
from simcore.trace.lane_spans import KINDS, Content, Spans
from tests.measured.made_steps import Factors, Layout, actions, made_run, simulated, trace_text
from tests.strategies import Case, Cell, Row, cases, make_workload
from tests.tui.made_runs import all_lanes, lane_of, line_text, run, seed
from tui.frame import ASCII, BLOCKS
from tui.timeline.drawing import LaneCells, draw_lane
from tui.timeline.filtering import filter_content
from tui.timeline.lanes import LaneSource, SpanLane
from tui.timeline.window import Window

WAITING = {KINDS.index(name) for name in ("idle", "wait", "bubble")}
LOOKS = [(BLOCKS, True), (BLOCKS, False), (ASCII, True), (ASCII, False)]


def running_columns(content: Content, edges: Sequence[int]) -> list[bool]:
    """Of each column whether something runs in it, span by span."""
    running = [False] * (len(edges) - 1)
    spans = content.cell_spans
    for start, end, kind in zip(spans.start, spans.end, spans.category, strict=True):
        for column in range(
            max(bisect_right(edges, start) - 1, 0), min(bisect_left(edges, end), len(running))
        ):
            is_in_it = min(end, edges[column + 1]) > max(start, edges[column])
            running[column] |= is_in_it and kind not in WAITING
    return running


def in_names(drawn: LaneCells, colour: bool) -> list[bool]:
    """Of each cell whether the name of a span stands in it."""
    if colour:
        return [role.endswith(" reversed") for text, role in drawn.line for _ in text]
    found, inside = [], False
    for char in line_text(drawn.line):
        inside |= char == "["
        found.append(inside)
        inside &= char != "]"
    return found


def check(lane: SpanLane, window: Window, columns: int, left: Content | None = None) -> None:
    """Every look of a lane over a window. left: what is left of it."""
    content, edges = left or lane.content, window.edges(columns)
    running = running_columns(content, edges)
    for glyphs, colour in LOOKS:
        drawn = draw_lane(lane, window, columns, glyphs, colour, content=content)
        text, named = line_text(drawn.line), in_names(drawn, colour)
        assert len(text) == columns
        for column, char in enumerate(text):
            place = f"{lane.stream} column {column} of {text!r}"
            if running[column] and not named[column]:
                assert char != " ", place


@st.composite
def stretches(draw: st.DrawFn, length: int) -> tuple[Window, int]:
    """A window of a step at any zoom, the whole of it too, and a number of columns."""
    step = max(length, 1)
    columns = draw(st.integers(1, 130))
    span = draw(st.just(step) | st.integers(1, step) | st.integers(1, max(step // 20, 1)))
    whole = Window.whole(step)
    return whole.moved_to(draw(st.integers(0, step)), span, columns), columns


@settings(max_examples=60)
@given(st.data(), cases(8), st.sampled_from([1.0, 0.3, 0.02]))
def test_no_cell_is_blank_in_which_something_runs(data: st.DataObject, case: Case, scale: float) -> None:
    results = SimulatedRun(simulate(case.workload, replace(case.parameters, compute_scale=scale)))
    window, columns = data.draw(stretches(results.simulation.step_time_ns))
    for lane in all_lanes(results):
        check(lane, window, columns)
        flags = data.draw(st.lists(st.booleans(), min_size=7, max_size=7))
        count = len(lane.spans.start)
        left = filter_content(lane.content, bytes(flags[index % 7] for index in range(count)))
        check(lane, window, columns, left)


_LAYOUTS = st.builds(
    Layout, st.sampled_from([1, 2]), st.sampled_from([1, 2]), st.sampled_from([1, 2, 3]), st.integers(1, 3)
)


@settings(max_examples=25)
@given(st.data(), _LAYOUTS, st.integers(0, 10**6))
def test_no_cell_of_a_measured_run_is_blank_in_which_something_runs(
    data: st.DataObject, layout: Layout, number: int
) -> None:
    steps = actions(layout, Random(number))
    run = made_run(trace_text(layout, steps, simulated(steps, Factors())), layout)
    source = LaneSource(RecordedRun(run))
    window, columns = data.draw(stretches(source.length))
    for rank in source.track_ids:
        for lane in (source.lane(rank), *source.streams(rank)):
            check(lane, window, columns)


@cache
def sparse() -> SimulatedRun:
    """400 layers of short compute, each behind a long collective: no cell of compute is half full."""
    cell = Cell(20_000, "ALLREDUCE", "tp", 67_108_864)
    rows = [Row(f"layer_{number}", cell, cell, Cell(20_000)) for number in range(400)]
    return run(make_workload(rows, tp=8, all_gpus=8))


@pytest.mark.parametrize("columns", [56, 96, 176])
def test_of_a_lane_without_a_cell_that_is_half_full_the_others_have_a_trace(columns: int) -> None:
    lane = lane_of(sparse(), 0, "compute")
    whole = Window.whole(sparse().simulation.step_time_ns)
    busy = sum(lane.content.shares.between(0, whole.step_ns).values()) / whole.step_ns
    assert 0 < busy < 0.5
    for glyphs, colour in LOOKS:
        text = line_text(draw_lane(lane, whole, columns, glyphs, colour).line)
        assert " " not in text
        assert abs(text.count(glyphs.partly) - (1 - busy) * columns) <= max(1, columns / 100)


@pytest.mark.slow
def test_traces_beside_each_other_and_at_every_zoom() -> None:
    # A fiftieth of the compute: next to nothing of any cell, though some 2,500 ops run.
    results = seed(compute_scale=0.02)
    whole = Window.whole(results.simulation.step_time_ns)
    for stage in (0, 7):
        for zoom in (1, 2, 4, 8, 16, 64):
            window = whole.zoomed(whole.step_ns // 4, 1, zoom, 96)
            check(lane_of(results, stage, "compute"), window, 96)


class MadeLane(SpanLane):
    """Spans one behind the other, (length, index into KINDS), None for a time without one."""

    track_id = 0

    def __init__(self, stream: str | None, parts: Sequence[tuple[int, int | None]]) -> None:
        self.stream = stream
        self.made = [], [], bytearray()
        self.length = 0
        for ns, kind in parts:
            if kind is not None:
                self.made[0].append(self.length)
                self.made[1].append(self.length + ns)
                self.made[2].append(kind)
            self.length += ns

    @cached_property
    def content(self) -> Content:
        start, end, kinds = self.made
        spans = Spans(array("q", start), array("q", end), array("q", range(len(start))), kinds)
        return Content(spans, spans, self.stream is None and sum(map(int.__sub__, end, start)) == self.length)

    def label(self, op: int, room: int) -> str:
        return "name"[:room]


@settings(max_examples=150)
@given(
    st.integers(0, 10**6),
    st.sampled_from([None, "compute"]),
    st.sampled_from([("fwd",), ("fwd", "bwd"), ("fwd", "bwd", "idle"), ("fwd", "bwd", "idle", "tp", "wait")]),
    st.booleans(),
    st.sampled_from([3, 25, 60, 400]),
)
def test_no_cell_of_short_spans_is_blank_in_which_something_runs(
    number: int, stream: str | None, names: tuple[str, ...], gaps: bool, longest: int
) -> None:
    random = Random(number)
    kinds = [*map(KINDS.index, names), *([None] if gaps else [])]
    # The first kinds are the shortest: of what is idle there is most.
    parts = [
        (random.randint(1, longest * (1 + kinds.index(kind))), kind) for kind in random.choices(kinds, k=400)
    ]
    lane = MadeLane(stream, parts)
    check(lane, Window.whole(lane.length), 180)


def test_the_last_cell_before_a_rank_is_idle_shows_what_ends_in_it() -> None:
    parts = [(41, KINDS.index("fwd")), (59, KINDS.index("idle"))]
    assert line_text(draw_lane(MadeLane(None, parts), Window.whole(100), 10, ASCII, True).line) == (
        f"{ASCII.fills['fwd'] * 4}{ASCII.partly}     "
    )
