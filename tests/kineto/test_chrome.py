"""Chrome traces of any program: whose each event is, what it is, and that an export read again is the run.

Planted, one at a time: an end closes the outermost open event; a wait is not given to the span that it is
for; threads that do the same work are one rank; a receive's partner is the next stage. Each failed here.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from simcore.diagnostics import InputError, UsageError
from simcore.measured import MeasuredRun
from simcore.parameters import OpeningOptions, Parameters
from simcore.program.order import Shape
from simcore.program.schedules import SCHEDULES
from simcore.render.report.pages import run_json
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import simulate
from simcore.sources.inputs import open_input
from simcore.sources.trace_maps import make_trace_map
from simcore.workload import open_workload
from tests.kineto.corpus import GLOO, HTA, NSYS
from tests.kineto.made_jobs import Job
from tests.kineto.made_jobs import events as job_events
from tests.kineto.simulated_spans import SIMULATED
from tests.kineto.test_span_csv import TWO, figures, opened, results, told, written
from tests.measured.traces import step as rank_step
from tests.measured.traces import write_set
from tests.workload.texts import REPOSITORY
from tui.cli import main

CORPUS = REPOSITORY.parent / "shared" / "corpus"
needs_corpus = pytest.mark.skipif(
    not (CORPUS / "megatronapp").is_dir(), reason="needs ../shared/corpus/megatronapp and straggler"
)
CASES = Path(__file__).parent / "cases"


def trace(folder: Path, *events: dict[str, Any], name: str = "t.json", **top: Any) -> str:
    """The path of a file of these events, a bare list where nothing else is stated."""
    content = {"traceEvents": [*events]} | top if top else [*events]
    return written(folder, json.dumps(content), name)


def span(name: str, start: float, dur: float, pid: Any = 0, tid: Any = 0, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": start, "dur": dur, "args": args}


def named(pid: Any, name: str, tid: Any = None) -> dict[str, Any]:
    what = "process_name" if tid is None else "thread_name"
    return {"ph": "M", "name": what, "pid": pid, "args": {"name": name}} | (
        {} if tid is None else {"tid": tid}
    )


def exported(path: str, folder: Path, *words: str) -> str:
    target = str(folder / f"{len(list(folder.iterdir()))}.json")
    assert main(["export", path, "--format", "chrome", "-o", target, *words]) == 0
    return target


# -- the proof: what was exported is the run ---------------------------------------------------------


@pytest.mark.parametrize(("name", "given"), SIMULATED)
def test_a_simulated_run_is_the_same_run_as_a_chrome_trace(
    tmp_path: Path, name: str, given: dict[str, Any]
) -> None:
    words = Parameters(**given).as_flags()
    path = str(REPOSITORY / "fixtures" / name)
    simulation = simulate(open_workload(path), Parameters(**given))
    simulated = SimulatedRun(simulation)
    read = results(exported(path, tmp_path, "--ranks", "all", *words))
    assert read.measured.recorded is not None
    assert read.measured.recorded.format == "chrome"
    assert read.measured.step_time_ns == simulation.timeline.step_time_ns
    for number, rank_class in enumerate(simulation.timeline.classes):
        for rank in rank_class.ranks:
            assert told(read.accounts[rank]) == told(simulated.accounts[number]), rank


def test_a_recording_is_the_same_run_as_a_chrome_trace(tmp_path: Path) -> None:
    first = results(written(tmp_path, TWO))
    again = results(exported(first.measured.path, tmp_path))
    assert figures(again) == figures(first)
    assert again.measured.step_time_ns == first.measured.step_time_ns
    meetings = [
        [[tuple(call) for call in meeting.calls] for meeting in one.rendezvous.matches.meetings]
        for one in (first, again)
    ]
    assert meetings[0] == meetings[1]


@pytest.mark.parametrize(
    "path", [CASES / "eager_send", CASES / "megatron.log", CASES / "pipeline_chrome.json", GLOO, HTA, NSYS],
    ids=lambda path: path.name,
)  # fmt: skip
def test_a_recording_of_any_kind_is_the_same_run_as_a_chrome_trace(tmp_path: Path, path: Path) -> None:
    if not path.exists():
        pytest.skip("the profiler traces of ../shared are not there")
    first = results(str(path))
    again = results(exported(str(path), tmp_path))
    assert again.measured.step_time_ns == first.measured.step_time_ns
    assert again.measured.ops == first.measured.ops
    for one, other in zip(first.accounts, again.accounts, strict=True):
        assert told(one) == told(other)


def _make_steps_file(folder: Path, form: str) -> str:
    """Writes a run of several steps in a form."""
    if form == "chrome":
        return trace(folder, *job_events(Job(2, 2, 1, 4, 3, slow={(1, 0): 1.8})), name="job.json")
    if form == "profiler":
        return str(REPOSITORY / "tests" / "kineto" / "cases" / "host_ahead_3_steps.json")
    (folder / "ranks").mkdir()
    texts = {
        rank: "".join(rank_step(rank, 1000 + 30 * at, rank // 2) for at in range(3)) for rank in range(4)
    }
    write_set(folder / "ranks", texts, world=4, pp=2)
    return str(folder / "ranks")


@pytest.mark.parametrize("shown", ["all", "1"])
@pytest.mark.parametrize("form", ["chrome", "profiler", "ranks"])
def test_a_run_of_several_steps_has_the_same_steps_stages_and_ranks_as_a_chrome_trace(
    tmp_path: Path, form: str, shown: str
) -> None:
    path = _make_steps_file(tmp_path, form)
    first = results(path, step=shown)
    if shown == "1":
        shown = str(first.measured.shown_step)
    again = results(exported(path, tmp_path, "--step", shown), step=shown)
    for one, other in zip(first.measured.ranks, again.measured.ranks, strict=True):
        assert (one.rank, one.stage, one.position) == (other.rank, other.stage, other.position)
        assert one.last_ns - one.first_ns == other.last_ns - other.first_ns
    assert again.measured.shown_step == first.measured.shown_step
    if shown == "all":
        tables = [run.step_table for run in (first, again)]
        assert tables[0] is not None
        assert tables[1] is not None
        assert tables[0].steps == tables[1].steps
        assert tables[0].stages == tables[1].stages
        assert [[*lengths] for lengths in tables[0].lengths] == [[*lengths] for lengths in tables[1].lengths]
        values = [run_json(run) for run in (first, again)]
        assert values[0].get("slowdown") == values[1].get("slowdown")


# -- events ------------------------------------------------------------------------------------------


def test_pairs_of_events_are_spans(tmp_path: Path) -> None:
    """The inner of two that are open ends first; an end may state what the begin does not."""
    where = {"pid": 0, "tid": 0}
    events = (
        {"ph": "B", "name": "forward", "ts": 0, **where},
        {"ph": "B", "name": "send", "ts": 2, **where},
        {"ph": "E", "ts": 3, **where},
        {"ph": "E", "name": "forward", "ts": 5, "args": {"microbatch": 7}, **where},
        {"ph": "b", "cat": "x", "id": "0x1", "name": "backward", "ts": 10, **where},
        {"ph": "b", "cat": "x", "id": "0x2", "name": "optimizer", "ts": 11, **where},
        {"ph": "e", "cat": "x", "id": "0x1", "name": "backward", "ts": 14, **where},
        {"ph": "e", "cat": "x", "id": "0x2", "name": "optimizer", "ts": 19, **where},
        {"ph": "B", "name": "forward", "ts": 30, **where},
        {"ph": "C", "name": "memory", "ts": 31, "args": {"bytes": 3}, **where},
    )
    run = opened(trace(tmp_path, *events))
    (rank,) = run.ranks
    ops = rank.ops
    assert [
        (ops.name[op], ops.category(op), ops.start[op], ops.end[op], ops.batch[op]) for op in range(len(ops))
    ] == [
        ("forward", "forward", 0, 5000, 7), ("send", "pp", 2000, 3000, -1),
        ("backward", "backward", 10000, 14000, -1), ("optimizer", "optimizer", 11000, 19000, -1),
    ]  # fmt: skip
    assert {"no-time", "spans-not-shown"} <= {one.code for one in run.diagnostics}


@pytest.mark.parametrize(
    ("names", "ranks", "stages"),
    [
        ([named(7, "rank 3"), named(9, "rank 5")], [3, 5], [None, None]),
        ([named(7, "DP rank [1]"), named(9, "DP rank [0]")], [1, 0], [0, 0]),
        ([named(7, "worker"), named(7, "PP rank 1, TP rank 0, compute", 0), named(9, "PP rank 0", 0)],
         [1, 0], [1, 0]),
        ([named(7, "stage 1"), named(9, "stage 0")], [1, 0], [1, 0]),
        ([], [7, 9], [None, None]),
    ],
)  # fmt: skip
def test_a_rank_is_what_names_say(
    tmp_path: Path, names: list[dict[str, Any]], ranks: list[int], stages: list[int | None]
) -> None:
    run = opened(trace(tmp_path, *names, span("first", 0, 4, 7), span("second", 0, 5, 9)))
    found = {rank.ops.name[0]: (rank.rank, rank.stage) for rank in run.ranks}
    assert found == dict(zip(("first", "second"), zip(ranks, stages, strict=True), strict=True))


def test_threads_that_do_the_same_work_are_ranks(tmp_path: Path) -> None:
    """Streams of one rank do other work."""
    work = [span("forward", 0, 4, 0, tid, mb_id=0) for tid in (0, 1)]
    assert len(opened(trace(tmp_path, *work)).ranks) == 2
    assert len(opened(trace(tmp_path, work[0], span("backward", 0, 4, 0, 1, mb_id=0))).ranks) == 1


def test_a_file_a_rank_is_a_rank_a_file(tmp_path: Path) -> None:
    job = tmp_path / "job"
    job.mkdir()
    for rank in (0, 1):
        trace(job, span("forward", 0, 4 + rank, 0, 0, step=2), name=f"profile_rank{rank}.json")
    run = opened(str(job))
    assert [(rank.rank, rank.ops.end[0]) for rank in run.ranks] == [(0, 4000), (1, 5000)]


# -- what spans are ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("forward-compute", "forward"), ("backward_step", "backward"), ("FWD mb 3", "forward"),
        ("0F3", "forward"), ("1B2", "backward"), ("optimizer", "optimizer"), ("recv_forward", "pp"),
        ("1SEND_F2", "pp"),
        ("ncclDevKernel_AllReduce_Sum", "comm"), ("dp_allreduce", "dp"), ("params-all-gather", "dp"),
        ("gc", "host"), ("Memcpy HtoD", "copy"), ("ampere_sgemm_128x64", "kernel"), ("descend", "kernel"),
    ],
)  # fmt: skip
def test_a_span_is_what_it_is_called(tmp_path: Path, name: str, category: str) -> None:
    run = opened(trace(tmp_path, span(name, 0, 4)))
    assert run.ranks[0].ops.category(0) == category
    unknown = [one for one in run.diagnostics if one.code == "unknown-span"]
    assert bool(unknown) is (category == "kernel")


def test_a_map_says_what_no_rule_knows(tmp_path: Path) -> None:
    """The starter has a rule for each name; edited, it decides."""
    events = [span(f"block@{at}", 10 * at, 5) for at in range(3)] + [
        span("train 7", 0, 40),
        span("zap", 35, 2),
    ]
    path = trace(tmp_path, *events)
    starter = make_trace_map(path)
    assert starter.count("[[rule]]") == 5
    own = '[[rule]]\nname = "block@(?P<microbatch>\\\\d)"\nkind = "forward"\n'
    own += (
        '[[rule]]\nname = "train (?P<step>\\\\d+)"\nkind = "step"\n[[rule]]\nname = "zap"\nkind = "ignored"\n'
    )
    run = opened(path, trace_map=written(tmp_path, own, "map.toml"))
    (rank,) = run.ranks
    assert [rank.ops.category(op) for op in range(len(rank.ops))] == ["forward"] * 3
    assert [*rank.ops.batch] == [0, 1, 2]
    assert run.recorded is not None
    assert run.recorded.step == 7
    # The step is as long as its event.
    assert run.step_time_ns == 40_000


def test_a_starter_map_changes_nothing(tmp_path: Path) -> None:
    path = trace(tmp_path, span("forward", 0, 4, mb=1), span("wat [1+2]", 5, 4), span("dp_allreduce", 10, 2))
    plain = results(path)
    mapped = results(path, trace_map=written(tmp_path, make_trace_map(path), "map.toml"))
    assert figures(mapped) == figures(plain)


@pytest.mark.parametrize(
    "text",
    [
        '[[rule]]\nname = "("\nkind = "forward"', '[[rule]]\nname = "a"\nkind = "fwd"',
        '[[rule]]\nkind = "host"',
        '[[rule]]\nnome = "a"', "rule = 3", 'x = "y"', "[[rule]]\nname = 3", "[[rule",
        '[[rule]]\nname="a"\ngroup="q"',
    ],
)  # fmt: skip
def test_a_map_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    path = trace(tmp_path, span("forward", 0, 4))
    with pytest.raises(InputError) as caught:
        opened(path, trace_map=written(tmp_path, text, "map.toml"))
    assert [one.code for one in caught.value.diagnostics] == ["bad-trace-map"]


def test_options_of_profilers_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="trace-map"):
        opened(trace(tmp_path, span("forward", 0, 4)), comm_names="x")


def test_a_call_around_known_spans_hides_none(tmp_path: Path) -> None:
    run = results(
        trace(tmp_path, span("train_loop()", 0, 100), span("forward", 0, 40), span("backward", 50, 50))
    )
    assert figures(run) == {0: {"compute forward": 40_000, "compute backward": 50_000, "idle": 10_000}}


def test_a_transfer_waits_for_the_other_stage(tmp_path: Path) -> None:
    """The receive of stage 1 begins 3 us before the send of stage 0."""
    events = (
        named(0, "PP rank 0"), named(1, "PP rank 1"), span("forward", 0, 5, 0, 0, step=0),
        span("forward-send", 5, 2, 0, 1, step=0), span("forward-recv", 2, 5, 1, 1, step=0),
        span("forward", 7, 4, 1, 0, step=0),
    )  # fmt: skip
    assert figures(results(trace(tmp_path, *events)))[1] == {
        "compute forward": 4000, "exposed pp": 2000, "wait": 3000, "idle": 2000,
    }  # fmt: skip


# -- published ones ----------------------------------------------------------------------------------


@needs_corpus
@pytest.mark.parametrize(
    ("name", "ranks", "steps", "passes"),
    [("dpp4_v4_m8_20_iterations", 4, 20, 64), ("pp4_v4_m8_20_iterations", 4, 20, 64),
     ("pp4_v4_m8_one_iteration", 8, 1, 64)],
)  # fmt: skip
def test_traces_of_megatronapp_open(name: str, ranks: int, steps: int, passes: int) -> None:
    run = open_input(str(CORPUS / "megatronapp" / f"{name}.json.gz"), OpeningOptions(cache=False))
    assert isinstance(run, MeasuredRun)
    assert run.recorded is not None
    assert (len(run.ranks), len(run.recorded.steps)) == (ranks, steps)
    assert all(len(rank.ops) == passes for rank in run.ranks)
    for rank in run.ranks:
        assert Counter(rank.ops.category(op) for op in range(passes)) == {"forward": 32, "backward": 32}
        assert Counter(rank.ops.batch) == dict.fromkeys(range(8), 8)
    assert {rank.stage for rank in run.ranks} == {0, 1, 2, 3}


@needs_corpus
@pytest.mark.parametrize(
    ("name", "schedules"),
    [("dpp4_v4_m8_20_iterations", ["breadth-first"]), ("pp4_v4_m8_20_iterations", ["interleaved"]),
     ("pp4_v4_m8_one_iteration", ["interleaved", "breadth-first"])],
)  # fmt: skip
def test_each_rank_of_megatronapp_runs_in_the_order_of_its_schedule(name: str, schedules: list[str]) -> None:
    """Op by op, in each step: pp 4, 4 chunks, 8 micro-batches, as the files are named. One has both
    schedules, each on a thread of its own.
    """
    run = open_input(str(CORPUS / "megatronapp" / f"{name}.json.gz"), OpeningOptions(cache=False, step="all"))
    assert isinstance(run, MeasuredRun)
    for rank in run.ranks:
        assert rank.stage is not None
        order = SCHEDULES[schedules[rank.rank % len(schedules)]].order(Shape(4, 8, 4))
        ours = [f"{one.chunk}{one.kind}{one.microbatch}" for one in order.stages[rank.stage]]
        ops = rank.ops
        measured = [f"{ops.chunk[op]}{ops.category(op)[0].upper()}{ops.batch[op]}" for op in range(len(ops))]
        assert len(measured) % len(ours) == 0
        assert measured == ours * (len(measured) // len(ours))


@needs_corpus
def test_a_trace_of_a_straggler_study_has_its_layout() -> None:
    run = open_input(str(CORPUS / "straggler" / "timeline-ST.json.gz"), OpeningOptions(cache=False))
    assert isinstance(run, MeasuredRun)
    assert run.recorded is not None
    # dp 2 x pp 4, 4 micro-batches: of each rank 4 forwards and 4 backwards, and all of their transfers.
    assert (len(run.ranks), len(run.recorded.steps), run.microbatches) == (8, 32, 4)
    assert [rank.stage for rank in run.ranks] == [0, 0, 1, 1, 2, 2, 3, 3]
