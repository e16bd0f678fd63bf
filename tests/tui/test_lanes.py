"""Lanes: which spans they have, which of them runs at a time, and how busy they are."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.program.ops import STREAMS, TO_NEXT
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import simulate
from simcore.trace.lane_spans import KINDS
from tests.strategies import Case, Cell, Row, cases, make_workload
from tests.stream_spans import stream_spans
from tests.tui.made_runs import all_lanes, lane_of, lonely, run, seed, small, some_runs
from tui.timeline.lanes import Lane


def run_of(case: Case) -> SimulatedRun:
    """A generated case, simulated."""
    return SimulatedRun(simulate(*case))


def running(lane: Lane, time_ns: int) -> list[int]:
    """The spans of a lane that run at a time, one by one."""
    spans = lane.spans
    return [i for i in range(len(spans.start)) if spans.start[i] <= time_ns < spans.end[i]]


def interesting_times(lane: Lane) -> list[int]:
    """Starts, ends, and a nanosecond around each."""
    step = max(lane.of.results.simulation.step_time_ns, 1)
    edges = {*lane.spans.start, *lane.spans.end, 0, step - 1}
    return sorted({time for edge in edges for time in (edge - 1, edge, edge + 1) if 0 <= time < step})


@settings(max_examples=25)
@given(cases(12))
def test_a_class_lane_covers_the_step_without_hole_or_overlap(case: Case) -> None:
    results = run_of(case)
    for number in range(len(results.simulation.timeline.classes)):
        spans = lane_of(results, number).spans
        assert spans.start[0] == 0
        assert spans.end[-1] == results.simulation.step_time_ns
        assert list(spans.start[1:]) == list(spans.end[:-1])
        assert len(spans.op) == len(spans.category) == len(spans.start)


@settings(max_examples=25)
@given(cases(12))
def test_stream_lanes_have_every_op_that_takes_time_and_no_other(case: Case) -> None:
    results = run_of(case)
    timeline = results.simulation.timeline
    for number in range(len(timeline.classes)):
        for stream in results.lanes.streams(number):
            names = STREAMS[TO_NEXT:] if stream == "pp" else (stream,)
            expected = sorted(
                (span.start, span.end, span.op)
                for name in names
                for span in stream_spans(timeline, number, name)
                if span.end > span.start
            )
            spans = lane_of(results, number, stream).spans
            own = zip(spans.start, spans.end, spans.op, strict=True)
            assert [span for span in own if span[2] >= 0] == expected
            assert stream == "pp" or min(spans.op, default=0) >= 0


@settings(max_examples=60)
@given(cases(12))
def test_what_runs_at_a_time_is_found_and_nothing_else(case: Case) -> None:
    results = run_of(case)
    # A step of 0 ns has nothing that runs; a class lane then still says whose it is.
    lanes = [lane for lane in all_lanes(results) if results.simulation.step_time_ns]
    for lane in lanes:
        for time_ns in interesting_times(lane):
            found, expected = lane.content.find_span(time_ns), running(lane, time_ns)
            assert (found in expected) if expected else (found is None)


def test_a_slow_transfer_is_found_while_fast_ones_come_and_go_beside_it() -> None:
    block = [Row("embedding_layer", Cell(10)), Row("attention_column", Cell(10), Cell(10), Cell(10))]
    workload = make_workload(block * 6, tp=1, pp=6, all_gpus=6, pp_comm=1000)
    # Stages 0 and 1 are neighbours in one server, stage 2 is far away.
    results = run(workload, dim=("switch:2:100:5", "switch:3:1:100"))
    lane = lane_of(results, 1, "pp")
    at, times = lane.content.find_span, interesting_times(lane)
    missed = [time for time in times if running(lane, time) and at(time) is None]
    assert missed == []


@settings(max_examples=25)
@given(cases(12), st.integers(0, 10**6))
def test_the_next_and_previous_starts_are_the_nearest_ones(case: Case, share: int) -> None:
    results = run_of(case)
    time_ns = results.simulation.step_time_ns * share // 10**6
    for lane in all_lanes(results):
        starts = lane.spans.start
        of = lane.content
        assert of.next_start(time_ns) == min((one for one in starts if one > time_ns), default=None)
        assert of.previous_start(time_ns) == max((one for one in starts if one < time_ns), default=None)


@settings(max_examples=25)
@given(cases(12))
def test_the_busy_share_is_the_time_in_which_anything_runs(case: Case) -> None:
    results = run_of(case)
    step = results.simulation.step_time_ns
    for lane in all_lanes(results):
        spans = lane.spans
        busy_names = ("fwd", "bwd", "opt", "recompute") if lane.stream in (None, "compute") else KINDS
        busy, reached = 0, 0
        for start, end, category in zip(spans.start, spans.end, spans.category, strict=True):
            if KINDS[category] in busy_names and end > reached:
                busy += end - max(start, reached)
                reached = end
        share = 100 * busy / step if step else 0.0
        assert lane.busy.endswith("%")
        if busy and share < 0.95:
            assert lane.busy == "<1%"
        else:
            assert abs(float(lane.busy.strip("<%")) - share) <= 0.6


def test_lanes_of_seed_002_are_named_by_stage_stream_and_group_size() -> None:
    assert lane_of(seed(), 5).title == "stage  5"
    assert lane_of(seed(), 5).rank_count == 64
    assert list(seed().lanes.streams(5)) == ["compute", "tp", "dp", "pp"]
    assert [lane_of(seed(), 5, stream).title for stream in ("compute", "tp", "dp", "pp")] == [
        "compute", "tp x8", "dp x8", "pp to 4,6",
    ]  # fmt: skip
    assert lane_of(seed(), 0, "pp").title == "pp to 1"
    assert lane_of(seed(), 15, "pp").title == "pp to 14"


def test_a_rank_without_neighbours_has_no_pipeline_lane() -> None:
    assert list(lonely().lanes.streams(0)) == ["compute"]


def test_all_lanes_of_the_small_run_have_something_to_draw() -> None:
    assert all(len(lane.spans.start) for lane in all_lanes(small()))
    assert {lane.stream for lane in all_lanes(small())} == {None, "compute", "tp", "dp", "pp"}


def test_a_class_lane_always_has_a_span_under_the_cursor() -> None:
    for results in some_runs():
        step = results.simulation.step_time_ns
        for time_ns in (0, step // 2, max(step - 1, 0), step):
            assert lane_of(results, 0).content.find_span(time_ns) is not None
