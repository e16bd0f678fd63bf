"""Measured runs, exported as they were measured or replayed.

Planted in a copy of simcore, one at a time: operations sorted without regard to their ends; a launch
with a duration of 0. Both failed here.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from simcore.diagnostics import UsageError
from simcore.measured import MeasuredRun
from simcore.parameters import Parameters
from simcore.runs.measured import run_recording
from simcore.sources.inputs import open_input
from tests.export.reading import exported, is_nested, load, read_lines, read_trace
from tests.findings import facts
from tests.measured.traces import Op, Sub, read, step, write_set
from tests.says import said
from tests.workload.texts import REPOSITORY

TRACE = str(REPOSITORY / "fixtures" / "004_megatron_rank7_trace.txt")


def rank_7() -> MeasuredRun:
    run = open_input(TRACE)
    assert isinstance(run, MeasuredRun)
    return run


def test_every_operation_and_sub_operation_of_a_real_trace_is_there() -> None:
    run = rank_7()
    trace = read_trace(b"".join(exported("chrome", run).chunks))
    assert trace.names == {7: "rank 7"}
    events = [one for one in trace.events if one["ph"] in "Xi"]
    kinds = [one["args"]["kind"] for one in events]
    assert (kinds.count("operation"), kinds.count("sub-operation")) == (run.ops, run.subs)
    spans = [span for found in trace.lanes.values() for span in found]
    assert (min(span[0] for span in spans), max(span[1] for span in spans)) == (0, run.step_time_ns)
    assert all(is_nested(found) for found in trace.lanes.values())
    lines = read_lines(b"".join(exported("csv", run).chunks))
    assert len(lines) == run.ops + run.subs
    assert sum(int(line["duration_ns"]) for line in lines if line["layer"] == "forward_step") == sum(
        end - start
        for name, start, end in zip(
            run.ranks[0].ops.name, run.ranks[0].ops.start, run.ranks[0].ops.end, strict=True
        )
        if name == "forward_step"
    )


def test_sub_operations_lie_in_their_operations_and_gaps_are_blank(tmp_path: Path) -> None:
    write_set(tmp_path, {rank: step(rank, 1000.0 + rank, stage=rank // 2) for rank in range(4)})
    run = open_input(str(tmp_path))
    assert isinstance(run, MeasuredRun)
    trace = read_trace(b"".join(exported("chrome", run, ranks=[1, 3]).chunks))
    assert trace.names == {1: "rank 1", 3: "rank 3"}
    assert set(trace.lanes) == {(1, "operations"), (3, "operations")}
    spans = [
        (start, end, event["name"]) for start, end, event in sorted(trace.lanes[1, "operations"], key=str)
    ]
    at = 1_000_000
    assert sorted(spans) == [
        (at, at + 2_000_000, "forward_step"), (at + 1_000_000, at + 1_500_000, "linear_fwd"),
        (at + 2_500_000, at + 3_000_000, "send_forward"), (at + 3_500_000, at + 7_500_000, "backward_step"),
        (at + 8_000_000, at + 10_000_000, "optimizer_step"),
    ]  # fmt: skip


def test_what_begins_together_is_nested_the_longest_outside() -> None:
    subs = (Sub("100.2", "0.2", name="short"), Sub("100.5", "0.5", name="long"))
    trace = read_trace(
        b"".join(exported("chrome", read(Op("forward_step", "102.0", "2.0", subs=subs).line())).chunks)
    )
    assert list(trace.lanes) == [(0, "operations")]
    (spans,) = trace.lanes.values()
    assert [event["name"] for _, _, event in spans] == ["forward_step", "long", "short"]


def test_what_has_no_duration_is_an_instant_and_has_no_end_in_a_line() -> None:
    launch = Op("ddp_grad_comm", "103.0", "0", group="dp", description="a,b")
    text = "".join(
        op.line() + "\n"
        for op in (
            Op("forward_step", "102.0", "2.0", subs=(Sub("101.0", None),)),
            launch,
            Op("x", None, None),
        )
    )
    run = read(text)
    events = {one["name"]: one for one in load(b"".join(exported("chrome", run).chunks))["traceEvents"]}
    lines = {line["layer"]: line for line in read_lines(b"".join(exported("csv", run).chunks))}
    for name, line in lines.items():
        event = events[name]
        known = event["args"]["known"]
        assert (event["ph"] == "X") == (known in ("measured", "fused"))
        assert ("dur" in event) == (event["ph"] == "X")
        assert (line["duration_ns"] != "") == (event["ph"] == "X")
        assert (line["start_ns"] == "") == (known == "placed")
    assert {one["args"]["known"] for one in events.values() if one["ph"] == "i"} == {"launch", "placed"}


REPLAYS = [
    Parameters(replay=True),
    Parameters(compute_scale=0.5),
    Parameters(layer_scale=("backward_step=2",), slow_rank=("3=1.5",), replay=True),
]


@pytest.mark.parametrize("asked", REPLAYS, ids=["as it is", "compute", "an operation and a rank"])
def test_a_replay_is_exported_with_its_own_times(tmp_path: Path, asked: Parameters) -> None:
    write_set(tmp_path, {rank: step(rank, 1000.0 + rank, stage=rank // 2) for rank in range(4)})
    run = open_input(str(tmp_path))
    assert isinstance(run, MeasuredRun)
    results = run_recording(run, asked)
    assert (results.step_time_ns != run.step_time_ns) == (asked != Parameters(replay=True))
    export = exported("chrome", run, asked)
    assert export.what == "4 ranks, 20 spans replayed"
    assert export.diagnostics == results.diagnostics[len(run.diagnostics) :]
    data = b"".join(export.chunks)
    spans = [span for found in read_trace(data).lanes.values() for span in found]
    assert max(end for _, end, _ in spans) == results.step_time_ns
    facts = load(data)["otherData"]
    assert (facts["step_time_ns"], facts["replayed"]) == (str(results.step_time_ns), "true")
    lines = read_lines(b"".join(exported("csv", run, asked).chunks))
    by_rank = {
        rank.rank: [(str(start), str(end)) for start, end in zip(rank.ops.start, rank.ops.end, strict=True)]
        for rank in results.run.ranks
    }
    assert by_rank == {
        number: [
            (line["start_ns"], line["end_ns"])
            for line in lines
            if line["ranks"] == str(number) and line["kind"] == "operation"
        ]
        for number in range(4)
    }


def test_a_replay_that_is_too_long_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        exported("csv", read(step(7)), Parameters(compute_scale=1e12, layer_scale=("backward_step=1e6",)))
    assert facts(str(caught.value)) == "--compute-scale, --layer-scale, 2, 63 ns, 292"


REFUSED = [
    ({"per_rank": True}, "--per-rank: trace.txt is a measured run, which goes into one file"),
    ({"ranks": [7, 8]}, "--ranks: found rank 8, which trace.txt does not have"),
    (
        {"parameters": Parameters(world=8)},
        "--world has no meaning for a trace; its replay takes --compute-scale, --comm-scale, --layer-scale, "
        "--slow-rank, --replay, --gap-scale, --slow-host, --host-scale, "
        "--kind-scale and --stage-scale",
    ),
]


@pytest.mark.parametrize("name", ["chrome", "csv"])
@pytest.mark.parametrize(("more", "message"), REFUSED)
def test_what_a_trace_cannot_give_is_refused(name: str, more: dict[str, bool], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        exported(name, read(step(7)), **more)
    assert str(caught.value) == message


def test_an_order_without_times_is_no_timeline() -> None:
    run = read("".join(Op("forward_step", None, None, batch=batch).line() + "\n" for batch in range(3)))
    assert not run.timed
    with pytest.raises(UsageError) as caught:
        exported("chrome", run)
    said([str(caught.value)], "FILE trace.txt", "without times", "with times")
