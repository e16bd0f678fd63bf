"""Lanes of measured ranks are drawn from their accounts: waiting is no work, and the slow rank is seen."""

from __future__ import annotations

import re
from functools import cache
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.measured import MeasuredRun
from simcore.replay.parameters import Scales
from simcore.runs.measured import RecordedRun
from simcore.sources.inputs import open_input
from simcore.sources.measured import ACCOUNTS
from simcore.trace.lane_spans import COMPUTING, KINDS
from tests.analysis.test_measured_ranges import seed
from tests.measured.made_steps import Factors, Layout, actions, made_run, simulated, trace_text
from tests.measured.test_replay_by_hand import MS, SLOW_RANK, op, run_of
from tests.measured.traces import Op, Sub
from tests.says import figures
from tests.tui.made_runs import line_text
from tests.workload.texts import shared_folder
from tui.frame import ASCII, BLOCKS, text_of
from tui.timeline.drawing import draw_lane
from tui.timeline.frame import TimelineFrame
from tui.timeline.jumps import go_to_longest_wait
from tui.timeline.lanes import LaneKey, LaneSource
from tui.timeline.model import TimelineModel
from tui.timeline.query import parse_query
from tui.timeline.window import Window

_LAYOUTS = st.builds(
    Layout, st.sampled_from([1, 2]), st.sampled_from([1, 2]), st.sampled_from([1, 2, 3]), st.integers(1, 3)
)
_DRAWN_AS = {
    "compute forward": "fwd", "compute backward": "bwd", "compute optimizer": "opt",
    "exposed expert": "ep", "exposed expert dp": "dp_ep",
}  # fmt: skip


@cache
def slow() -> RecordedRun:
    return RecordedRun(run_of(SLOW_RANK, 2))


@cache
def real() -> RecordedRun:
    run = open_input(str(shared_folder("corpus/rank_trace") / "wd8_tp2_pp4"))
    assert isinstance(run, MeasuredRun)
    return RecordedRun(run)


def drawn_ns(source: LaneSource, number: int) -> dict[str, int]:
    """ns of the step by what a rank's lane is drawn as, of what it has any."""
    found = source.lane(number).content.shares.between(0, source.length)
    return {KINDS[kind]: ns for kind, ns in found.items() if ns}


def accounts_ns(results: RecordedRun, number: int) -> dict[str, int]:
    one, found = results.accounts[number], {}
    for index, ns in enumerate(one.total_ns):
        if ns:
            name = ACCOUNTS[index]
            found[_DRAWN_AS.get(name, name.removeprefix("exposed "))] = ns
    return found


def test_a_rank_that_waits_for_a_slow_one_is_not_busy_while_it_does() -> None:
    lanes = LaneSource(slow())
    assert [lanes.lane(number).busy for number in lanes.track_ids] == ["35%", "85%"]
    assert [lanes.streams(number)[0].busy for number in lanes.track_ids] == ["35%", "85%"]
    assert drawn_ns(lanes, 0) == {
        "fwd": 10 * MS, "wait": 20 * MS, "dp": 5 * MS, "idle": MS, "opt": 4 * MS
    }  # fmt: skip


def test_the_cells_of_a_wait_are_those_of_simulated_lanes_and_the_cursor_still_tells_the_operation() -> None:
    model = TimelineModel(slow())
    lane = model.source.lane(0)
    text = line_text(draw_lane(lane, Window(0, 40 * MS, 40 * MS), 40, ASCII, False).line)
    wait = ASCII.fills["wait"]
    assert text == "[forward_]" + wait * 20 + "[dp_]" + " " + ASCII.fills["opt"] * 4
    model.go_to(LaneKey((), 0))
    model.cursor_ns = 20 * MS
    index = model.current.content.find_span(model.cursor_ns)
    assert index is not None
    assert slow().run.ranks[0].ops.name[model.current.spans.op[index]] == "dp_allreduce"


def test_the_row_over_all_lanes_counts_who_computes() -> None:
    model = TimelineModel(slow())
    rows = text_of(TimelineFrame(BLOCKS, colour=False).draw(model, 40 + 23, 20)).split("\n")
    row = next(one for one in rows if "all ranks" in one).partition("│")[2]
    # Both ranks compute for 10 ms, one of them until 30 ms, none until 35.5 ms.
    levels = [BLOCKS.heat.index(char) for char in row]
    columns = len(row)
    whole, half = len(BLOCKS.heat) - 1, (len(BLOCKS.heat)) // 2
    assert set(levels[: columns * 10 // 40 - 1]) == {whole}
    assert set(levels[columns * 10 // 40 + 1 : columns * 30 // 40 - 1]) == {half}
    assert set(levels[columns * 30 // 40 + 1 : columns * 35 // 40]) == {0}


@settings(max_examples=60, deadline=None)
@given(_LAYOUTS, st.integers(0, 10**6), st.sampled_from([None, Scales(compute=2.0, gaps=0.0)]))
def test_every_ns_of_a_lane_is_drawn_as_its_account_within_its_operation(
    layout: Layout, number: int, scales: Scales | None
) -> None:
    steps = actions(layout, Random(number))
    results = RecordedRun(made_run(trace_text(layout, steps, simulated(steps, Factors())), layout))
    if scales is not None:
        results = results.with_scales(scales)
    source = LaneSource(results)
    for rank in source.track_ids:
        lane, compute = source.lane(rank), source.streams(rank)[0]
        assert drawn_ns(source, rank) == accounts_ns(results, rank)
        computing = sum(results.accounts[rank].compute_ns().values())
        assert source.of.measure_ns("busy", rank) == computing
        shares = compute.content.shares.between(0, source.length)
        assert sum(ns for kind, ns in shares.items() if kind in COMPUTING) == computing
        whole = {item: (lane.spans.start[at], lane.spans.end[at]) for at, item in enumerate(lane.spans.op)}
        reached = 0
        drawn = lane.content.cell_spans
        for start, end, item in zip(drawn.start, drawn.end, drawn.op, strict=True):
            assert start == reached < end
            assert whole[item][0] <= start
            assert end <= whole[item][1]
            reached = end
        assert reached == source.length


def test_lanes_are_sorted_by_what_their_ranks_compute_wait_and_communicate() -> None:
    source = LaneSource(slow())
    assert [one.id for one in source.orders] == ["", "busy", "bubble", "wait", "exposed", "end"]
    assert sorted(source.track_ids, key=lambda number: source.of.measure_ns("busy", number)) == [0, 1]
    assert sorted(source.track_ids, key=lambda number: -source.of.measure_ns("wait", number)) == [0, 1]
    assert [source.lane(0).share(one) for one in ("busy", "wait", "exposed", "bubble")] == [
        "35%", "50%", "12%", "0%",
    ]  # fmt: skip
    told = [line_text(line) for line in source.heading_lines([("stage 0", "")], (0, 1))]
    assert told[0] == "stage 0   least compute: rank 0, most: rank 1"
    assert re.findall(r"(compute|wait|exposed|over)\b[a-z ]* ([\d.]+) %", told[1]) == [
        ("compute", "35.0..85.0"), ("wait", "0.0..50.0"), ("exposed", "12.5"), ("over", "0.0..1.2"),
    ]  # fmt: skip
    # Ranks without a common time wait for nobody: there is nothing to sort by.
    apart = LaneSource(RecordedRun(run_of(op(0, "forward_step", 0, 10) + op(1, "forward_step", 50, 60), 2)))
    assert [one.id for one in apart.orders] == ["", "busy", "exposed", "end"]


def test_what_takes_no_time_is_drawn_with_its_instant_still() -> None:
    text = (
        Op("backward_step", "1010.00", "10.00").line()
        + "\n"
        + Op("dp_allreduce", "1010.00", "0", group="dp").line()
    )
    lane = LaneSource(RecordedRun(run_of(text, 1))).lane(0)
    assert [KINDS[kind] for kind in lane.content.cell_spans.category] == ["bwd", "dp"]
    assert lane.content.cell_spans.end[1] - lane.content.cell_spans.start[1] == 1


def test_a_name_stands_in_the_longest_part_and_hides_no_wait() -> None:
    # Rank 0 waits 20 ms for rank 1 in the collective inside its forward step, and computes 30 ms behind it.
    first = Sub("1030.00", "20.00", source="_allreduce")
    second = Sub("1030.00", "0.10", source="_allreduce")
    text = op(0, "forward_step", 0, 60, subs=(first,)) + op(1, "forward_step", 0, 60, subs=(second,))
    lane = LaneSource(RecordedRun(run_of(text, 2, tp=2))).lane(0)
    line = line_text(draw_lane(lane, Window(0, 60 * MS, 60 * MS), 60, ASCII, False).line)
    fill, wait = ASCII.fills["fwd"], ASCII.fills["wait"]
    assert line == fill * 10 + wait * 20 + "[forward_step                ]"


def test_the_filter_leaves_the_parts_of_matching_operations() -> None:
    model = TimelineModel(slow())
    model.filter.set(parse_query("dp_allreduce"))
    shown = model.visible_content(model.source.lane(0))
    assert [KINDS[kind] for kind in shown.cell_spans.category] == ["wait", "dp"]
    assert list(shown.cell_spans.start) == [10 * MS, 30 * MS]


def test_of_a_real_run_the_slow_rank_is_seen() -> None:
    lanes = LaneSource(real())
    busy = [lanes.lane(number).busy for number in lanes.track_ids]
    assert busy == ["17%", "18%", "17%", "17%", "17%", "17%", "24%", "49%"]


# -- b and B -----------------------------------------------------------------------------


# Where nothing waits; which of how many waits or idle stretches of this lane, and its length.
_WAIT = re.compile(r"(?:(nothing) waits; )?(?:(\w+) )?longest of (\d+) (wait|idle)\w*.* this lane, (.*)")


def waits_told(results: RecordedRun, number: int, count: int) -> list[tuple[str | None, ...]]:
    """What `b` says, pressed so often in the lane of a rank: (name, "nothing" where nothing waits, which one,
    of how many, of what, its length).
    """
    model = TimelineModel(results)
    model.go_to(LaneKey((), number))
    said: list[tuple[str | None, ...]] = []
    for _ in range(count):
        go_to_longest_wait(model, everywhere=False)
        index = model.current.content.find_span(model.cursor_ns)
        assert index is not None
        item = model.current.spans.op[index]
        name = results.run.ranks[number].ops.name[item] if item >= 0 else "gap"
        found = _WAIT.fullmatch(model.notice)
        assert found is not None, model.notice
        said.append((name, *found.groups()))
    return said


def test_the_longest_wait_is_that_of_the_details() -> None:
    assert waits_told(slow(), 0, 2) == [
        ("dp_allreduce", None, None, "1", "wait", "20.000 ms"),
        ("gap", None, None, "1", "idle", "1.000 ms"),
    ]
    assert waits_told(slow(), 1, 2) == [
        ("gap", "nothing", None, "2", "idle", "500.0 us"),
        ("gap", "nothing", "2nd", "2", "idle", "500.0 us"),
    ]
    model = TimelineModel(slow())
    model.go_to(LaneKey((), 1))
    go_to_longest_wait(model, everywhere=True)
    assert figures(model.notice) == ["1", "20.000 ms"]
    assert " all lanes, " in model.notice
    assert (model.current.track_id, model.cursor_ns) == (0, 10 * MS)


def test_an_operation_waits_as_long_as_all_of_it_does() -> None:
    def step(rank: int) -> str:
        # Rank 1 comes 4 ms later to the first collective inside the step, and 7 ms later to the second.
        subs = tuple(
            Sub(f"{1020 + 20 * turn:.2f}", f"{1 + (4 + 3 * turn) * (1 - rank):.2f}", name=f"linear{turn}")
            for turn in range(2)
        )
        return op(rank, "forward_step", 0, 60, subs=subs)

    results = RecordedRun(run_of(step(0) + step(1), 2, tp=2))
    assert waits_told(results, 0, 1) == [("forward_step", None, None, "1", "wait", "11.000 ms")]


def test_of_a_real_run_waits_inside_operations_are_found() -> None:
    assert waits_told(real(), 6, 3) == [
        ("ep_allreduce", None, None, "5", "wait", "1.291 s"),
        ("recv_forward", None, "2nd", "5", "wait", "628.5 ms"),
        ("backward_step", None, "3rd", "5", "wait", "531.5 ms"),
    ]


def test_a_receive_of_which_no_send_is_known_counts_in_whole() -> None:
    ((name, nothing, which, _, what, length),) = waits_told(RecordedRun(seed()), 0, 1)
    assert (name, nothing, which, what, length) == ("recv_forward", None, None, "wait", "629.8 ms")


@settings(max_examples=60, deadline=None)
@given(_LAYOUTS, st.integers(0, 10**6))
def test_what_b_walks_through_is_all_that_a_rank_waits_and_idles(layout: Layout, number: int) -> None:
    steps = actions(layout, Random(number))
    results = RecordedRun(made_run(trace_text(layout, steps, simulated(steps, Factors())), layout))
    model = TimelineModel(results)
    everywhere = []
    for rank, account in enumerate(results.accounts):
        waits = model.source.of.waits(rank)
        lengths = [-wait.minus_ns for wait in waits]
        gaps = [TimelineModel(results).source.lane(rank).spans.op[wait.span] < 0 for wait in waits]
        assert gaps == [wait.is_idle for wait in waits]
        assert waits == sorted(waits)
        assert all(lengths)
        assert sum(lengths) == account.ns("wait") + account.ns("bubble") + account.ns("idle")
        everywhere += [(rank, one) for one in waits]
    assert sorted(model.source.of.all_waits()) == sorted(everywhere)


@pytest.mark.parametrize("number", [0, 1])
def test_a_span_that_does_not_wait_has_no_wait(number: int) -> None:
    assert all(wait.span != 0 for wait in slow().lanes.waits(number))


@settings(max_examples=40, deadline=None)
@given(_LAYOUTS, st.integers(0, 10**6), st.tuples(st.integers(0, 100), st.integers(0, 100)))
def test_a_range_has_the_accounts_and_sums_to_its_length(
    layout: Layout, number: int, percents: tuple[int, int]
) -> None:
    steps = actions(layout, Random(number))
    results = RecordedRun(made_run(trace_text(layout, steps, simulated(steps, Factors())), layout))
    lanes = results.lanes
    first, last = (results.step_time_ns * one // 100 for one in sorted(percents))
    together: dict[str, int] = {}
    for rank in range(len(results.accounts)):
        found = lanes.figures(rank, first, last)
        assert sum(one.ns for one in found.figures) == last - first == found.full_ns
        for one in found.figures:
            together[one.words] = together.get(one.words, 0) + one.ns
        whole = lanes.figures(rank, 0, results.step_time_ns)
        waits = {one.words: one.ns for one in whole.figures if one.words in ("wait", "bubble")}
        account = results.accounts[rank]
        assert waits == {name: account.ns(name) for name in ("wait", "bubble") if account.ns(name)}
    assert {one.words: one.ns for one in lanes.figures(None, first, last).figures} == together


def test_the_range_of_an_operation_says_what_of_it_is_waiting() -> None:
    found = slow().lanes.figures(0, 10 * MS, 35 * MS)
    assert [(one.words, one.short, one.kind, one.ns) for one in found.figures] == [
        ("exposed dp", "exp dp", "dp", 5 * MS),
        ("wait", "wait", "wait", 20 * MS),
    ]
