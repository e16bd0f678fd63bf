"""Chrome traces, parsed again: every figure in them is the report's, every thread can be drawn.

Planted in a copy of simcore, one at a time: a stream's spans start 1 ns late; received transfers
are left out; a group's mark is not replaced; flows begin on the stage behind; all rows of queued
collectives are one. Each of them failed here.
"""

from __future__ import annotations

import json
from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore import __version__
from simcore.diagnostics import UsageError
from simcore.layout import GROUP_KINDS
from simcore.parameters import Parameters
from simcore.render.export.spans import disjoint_rows, nested_rows
from simcore.render.report.json_text import microseconds
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import Simulation, simulate
from simcore.workload import Workload, open_workload
from tests.export.reading import Span, Trace, common, covered, exported, is_nested, length, load, read_trace
from tests.layout.rank_text import ranks_of_text
from tests.strategies import Case, Cell, Row, cases, layer, make_workload
from tests.workload.texts import REPOSITORY

SEED_002 = str(REPOSITORY / "fixtures" / "002_gpt_1024npu.txt")
COMMUNICATION = ("tp", "ep", "dp", "dp_ep", "all", "pp>next", "pp<next", "pp>prev", "pp<prev")
HOSTILE = [
    'a"b\\c',
    "\x00\x1b[31m\n\r\t",
    "\udc80\ud800",
    "\u202eevil\u2028",
    "é" * 300,
    "<script>",
    "=1+1",
    "",
]


def trace_of(workload: Workload, parameters: Parameters = Parameters(), **more: object) -> Trace:  # noqa: B008
    return read_trace(b"".join(exported("chrome", workload, parameters, **more).chunks))  # type: ignore[arg-type]


def check_figures(trace: Trace, results: SimulatedRun, rank: int) -> None:
    """What a rank's threads add up to is what the report says of its class."""
    timeline = results.simulation.timeline
    number = timeline.folding.class_of(rank)
    accounts = results.accounts[number]
    computing = trace.spans(rank, "compute")
    by_phase: dict[str, int] = {}
    for start, end, event in computing:
        phase = event["args"]["phase"]
        by_phase[phase] = by_phase.get(phase, 0) + end - start
    assert {phase: value for phase, value in accounts.compute_ns().items() if value} == {
        phase: value for phase, value in by_phase.items() if value
    }
    communicating = covered([span for lane in COMMUNICATION for span in trace.spans(rank, lane)])
    _, comm, overlapped = results.figures.streams[number]
    assert length(communicating) == comm
    assert common(communicating, covered(computing)) == overlapped
    waiting: dict[str, int] = {}
    for start, end, event in trace.spans(rank, "waiting"):
        waiting[event["name"]] = waiting.get(event["name"], 0) + end - start
    expected = {f"exposed {kind}": value for kind, value in accounts.exposed_ns().items()}
    expected |= {"wait": accounts.wait_ns, "bubble": accounts.bubble_ns, "idle": accounts.idle_ns}
    assert waiting == {name: value for name, value in expected.items() if value}
    together = covered([*computing, *trace.spans(rank, "waiting")])
    assert together == ([(0, results.step_time_ns)] if results.step_time_ns else [])
    ops = len(timeline.stage_program(number).ops)
    received = sum(len(spans) for (pid, lane), spans in trace.lanes.items() if pid == rank and "<" in lane)
    spans = sum(len(found) for (pid, lane), found in trace.lanes.items() if pid == rank and lane != "waiting")
    assert spans == ops + received


def check_threads(trace: Trace) -> None:
    for (_, lane), spans in trace.lanes.items():
        assert is_nested(spans)
        spans = sorted(spans, key=lambda span: span[:2])
        assert all(one[1] <= other[0] for one, other in pairwise(spans)), lane


def check_groups(trace: Trace, simulation: Simulation) -> None:
    groups = {kind: list(simulation.layout.groups(kind)) for kind in GROUP_KINDS}
    for (rank, _), spans in trace.lanes.items():
        for _, _, event in spans:
            if kind := event["args"].get("group"):
                (members,) = [group for group in groups[kind] if rank in group]
                assert event["args"]["members"] == len(members)
                assert ranks_of_text(event["args"]["ranks"]) == members


def check_flows(trace: Trace, simulation: Simulation, every: bool) -> None:
    """Each arrow begins on a transfer and ends on compute that does not start before it has arrived."""
    at: dict[tuple[int, int, object], list[Span]] = {}
    for spans in trace.lanes.values():
        for span in spans:
            if span[1] > span[0]:
                at.setdefault((span[2]["pid"], span[2]["tid"], span[2]["ts"]), []).append(span)
    for begun, ended in trace.flows.values():
        (sent,) = at[begun["pid"], begun["tid"], begun["ts"]]
        (taken,) = at[ended["pid"], ended["tid"], ended["ts"]]
        assert taken[2]["cat"].startswith("compute,")
        assert sent[1] <= taken[0]
        stage = simulation.layout.position(ended["pid"])[2]
        assert sent[2]["name"].startswith(f"send to stage {stage} ")
        if every:
            assert simulation.layout.neighbour(begun["pid"], stage) == ended["pid"]


@settings(max_examples=50)
@given(cases(most_ranks=12), st.booleans())
def test_a_trace_says_what_the_report_says(case: Case, every_rank: bool) -> None:
    simulation = simulate(*case)
    results = SimulatedRun(simulation)
    trace = trace_of(*case, every_rank=every_rank)
    classes = simulation.timeline.classes
    if every_rank:
        assert sorted(trace.names) == list(range(simulation.layout.world))
    else:
        assert sorted(trace.names) == sorted(one.ranks.first for one in classes)
    for rank in trace.names:
        check_figures(trace, results, rank)
    check_threads(trace)
    check_groups(trace, simulation)
    check_flows(trace, simulation, every_rank)


@settings(max_examples=20)
@given(cases(most_ranks=12), st.data())
def test_some_ranks_are_those_of_all_of_them(case: Case, data: st.DataObject) -> None:
    simulation = simulate(*case)
    some = data.draw(st.sets(st.integers(0, simulation.layout.world - 1), min_size=1))
    whole, part = trace_of(*case, every_rank=True), trace_of(*case, ranks=sorted(some))
    assert set(part.names) == some
    assert part.lanes == {lane: spans for lane, spans in whole.lanes.items() if lane[0] in some}
    assert part.flows == {
        key: flow for key, flow in whole.flows.items() if {flow[0]["pid"], flow[1]["pid"]} <= some
    }


@pytest.mark.slow
def test_seed_002_has_a_process_for_each_class_and_an_arrow_for_each_transfer() -> None:
    workload, parameters = open_workload(SEED_002), Parameters(microbatches=4)
    simulation = simulate(workload, parameters)
    trace = trace_of(workload, parameters)
    assert trace.names[64] == "rank 64 (x64)"
    assert list(trace.names) == [64 * stage for stage in range(16)]
    # 4 micro-batches, forward and back over 15 boundaries.
    assert len(trace.flows) == 2 * 4 * 15
    results = SimulatedRun(simulation)
    for rank in trace.names:
        check_figures(trace, results, rank)
    check_flows(trace, simulation, True)


@pytest.mark.parametrize("schedule", ["gpipe", "interleaved", "zb-h1"])
def test_every_schedule_has_arrows_for_all_its_transfers(schedule: str) -> None:
    rows = [layer("embedding_layer", 5, 4, 3), *[layer(f"attention_layer{n}", 50, 40, 30) for n in range(8)]]
    workload = make_workload(rows, tp=1, ep=1, pp=4, all_gpus=8, pp_comm=1000, ga=4)
    parameters = Parameters(
        schedule=schedule, microbatches=4, virtual_stages=2 if schedule == "interleaved" else None
    )
    simulation = simulate(workload, parameters)
    trace, results = trace_of(workload, parameters, every_rank=True), SimulatedRun(simulation)
    for rank in trace.names:
        check_figures(trace, results, rank)
    check_threads(trace)
    assert len(trace.flows) == simulation.program.messages * simulation.layout.tp * simulation.layout.dp
    check_flows(trace, simulation, False)


def test_queued_collectives_that_overlap_lie_in_rows_of_their_own() -> None:
    cell = Cell(10, "ALLREDUCE", "dp", 4_000_000)
    rows = [Row(f"r{number}", Cell(10), Cell(10), cell) for number in range(6)]
    workload = make_workload(rows, tp=1, ep=1, pp=1, all_gpus=4)
    parameters = Parameters(
        dialect="astra-sim-1", active_chunks=4, splits=4, dim=("ring:2:10:100", "ring:2:5:50")
    )
    simulation = simulate(workload, parameters)
    assert simulation.program.queued
    trace = trace_of(workload, parameters)
    assert len({lane for _, lane in trace.lanes if lane.startswith("dp")}) > 1
    check_threads(trace)
    check_figures(trace, SimulatedRun(simulation), 0)


def test_names_of_any_kind_are_valid_json_without_control_characters() -> None:
    names = [*HOSTILE, "x" * 1_000_000]
    rows = [Row(name, Cell(10, "ALLREDUCE", "dp", 100)) for name in names]
    workload = make_workload(rows, tp=1, ep=1, pp=1, all_gpus=2)
    for more in ({}, {"per_rank": True}):
        export = exported("chrome", workload, **more)
        files = [file.chunks for file in export.files] if export.files is not None else [export.chunks]
        for pieces in files:
            data = b"".join(pieces)
            assert len(data) < 100_000
            assert not any(byte < 32 and byte != 10 for byte in data)
            texts = json.dumps(load(data), default=str, ensure_ascii=False)
            assert not any("\ud800" <= char <= "\udfff" for char in texts)
            layers = [
                one["args"]["layer"] for one in load(data)["traceEvents"] if "layer" in one.get("args", {})
            ]
            assert 'a"b\\c' in layers
            assert "\\x00\\x1b[31m\\x0a\\x0d\\x09" in layers
            assert "\\x80\\ud800" in layers
            assert "x" * 197 + "..." in layers


def test_the_file_says_where_it_comes_from() -> None:
    workload, parameters = open_workload(SEED_002), Parameters(comm_scale=2.0, microbatches=1)
    found = load(b"".join(exported("chrome", workload, parameters).chunks))
    assert found["displayTimeUnit"] == "ns"
    step = simulate(workload, parameters).step_time_ns
    assert found["otherData"] == {
        "wltui": __version__, "file": SEED_002, "parameters": "--microbatches 1 --comm-scale 2.0",
        "schedule": "1f1b",
        "network": "analytical", "step_time_ns": str(step),
    }  # fmt: skip


def test_arguments_of_a_collective_are_those_of_its_row() -> None:
    trace = trace_of(open_workload(SEED_002), Parameters(microbatches=1), ranks=[9])
    event = next(event for _, _, event in trace.spans(9, "tp"))
    algbw = event["args"].pop("algbw_gbps")
    assert event["name"] == "all-reduce embedding_layer fwd"
    assert event["cat"] == "collective,fwd"
    busbw = event["args"].pop("busbw_gbps")
    assert event["args"] == {
        "phase": "fwd", "layer": "embedding_layer", "row": 6, "line": 9, "bytes": 134217728, "group": "tp",
        "members": 8, "ranks": "8-15", "blocking": True, "microbatch": 0,
    }  # fmt: skip
    assert float(algbw) == pytest.approx(134217728 / float(event["dur"]) / 1000, abs=0.001)
    assert float(busbw) == pytest.approx(float(algbw) * 2 * 7 / 8, abs=0.001)


def test_a_rank_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        exported("chrome", open_workload(SEED_002), ranks=[3, 1024])
    assert str(caught.value) == "--ranks: found rank 1024, expected ranks from 0 to 1023"


@given(st.integers(0, 2**63 - 1))
def test_microseconds_are_exact(time_ns: int) -> None:
    whole, _, rest = microseconds(time_ns).partition(".")
    assert (int(whole + rest), len(rest)) == (time_ns, 3)


SPANS = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 9)).map(lambda one: (one[0], sum(one))), max_size=12
)


@given(SPANS)
def test_rows_hold_spans_that_do_not_meet(spans: list[tuple[int, int]]) -> None:
    spans.sort()
    rows = disjoint_rows(spans)
    for (one, row), (other, second) in combinations(zip(spans, rows, strict=True), 2):
        assert row != second or one[1] <= other[0]
    # No row is opened while a lower one is free.
    for index, (start, _) in enumerate(spans):
        busy = {rows[before] for before in range(index) if spans[before][1] > start}
        assert rows[index] == min(set(range(len(spans))) - busy)


@given(SPANS)
def test_rows_of_nested_spans_hold_no_two_that_cross(spans: list[tuple[int, int]]) -> None:
    spans.sort(key=lambda span: (span[0], -span[1]))
    rows = nested_rows(spans)
    for row in set(rows):
        assert is_nested([(*span, {}) for span, own in zip(spans, rows, strict=True) if own == row])
    inside = [(0, 100), *spans] if not spans or spans[0] != (0, 100) else spans
    if is_nested([(*span, {}) for span in spans]):
        assert set(nested_rows(inside)) <= {0}


def test_a_large_export_is_made_as_it_is_asked_for() -> None:
    export = exported("chrome", open_workload(SEED_002), every_rank=True)
    pieces = iter(export.chunks)
    assert max(len(next(pieces)) for _ in range(200)) < 1_000_000
    assert export.progress is not None
    assert 0 < export.progress.written_count < export.progress.total == 1024 * 2535
