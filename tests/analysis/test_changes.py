"""Advice: changes that a user can make, each of them a gain that a rerun confirms.

Seen to fail on these bugs, planted one at a time: a change that gains nothing kept; a pair kept that gains
less than one of the two alone; the step of twice the micro-batches taken for a step of as many.
"""

from __future__ import annotations

import shlex
from functools import cache

import pytest
from hypothesis import given, settings

from simcore.analysis.file_memory import peak_bytes
from simcore.analysis.what_if.changes import _schedule_changes
from simcore.diagnostics import UsageError
from simcore.layout import with_gathered_buffer
from simcore.parameters import Parameters
from simcore.program.ops import COMPUTE, PHASES
from simcore.program.schedules import SCHEDULES
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import Simulation, simulate
from simcore.trace.findings import WhatIf
from simcore.trace.run import mean_busy_ns
from simcore.units import change_percent, duration
from simcore.workload import open_workload
from tests.analysis.booking import run
from tests.engine.test_folding_with_overrides import overridden
from tests.says import figures
from tests.says import said as says
from tests.strategies import Case, Cell, Row, cases, layer
from tui.commands.arguments import Parser, add_parameters, parse_parameters

SEEDS = {
    "000": "fixtures/000_gpt13b_tp4_old_header.txt",
    "001": "fixtures/001_moe_128npu_with_mistakes.txt",
    "002": "fixtures/002_gpt_1024npu.txt",
    "003": "fixtures/003_gpt2_large_op_table.txt",
}
# Seed 002 on 4 stages: what changes of it bring is found in a tenth of the time.
FEW = "--pp 4 --microbatches 4"
BLOCK = layer("embedding_layer", 1000, 1000, 1000)


@cache
def seed_run(seed: str, flags: str = "") -> SimulatedRun:
    """A run of a fixture, made once: it is only read, and what changes of it bring takes seconds to find."""
    return SimulatedRun(simulate(open_workload(SEEDS[seed]), flags_of(flags)))


def advice(run: SimulatedRun | Simulation) -> list[WhatIf]:
    results = run if isinstance(run, SimulatedRun) else SimulatedRun(run)
    return [one for one in results.what_if() if one.list == "change"]


def alike_ns(simulation: Simulation, one: WhatIf) -> int:
    """The step time with a change, for as many micro-batches as the run has."""
    count = one.microbatches or simulation.program.microbatches
    return one.better10_ns * simulation.program.microbatches // count if count else one.better10_ns


@settings(max_examples=30)
@given(overridden() | cases())
def test_every_change_gains_and_the_most_comes_first(case: Case) -> None:
    simulation = simulate(*case)
    base, found = simulation.step_time_ns, advice(simulation)
    of_flags = {one.flags: alike_ns(simulation, one) for one in found}
    assert len(of_flags) == len(found)
    for one in found:
        assert base - of_flags[one.flags] >= max(0.001 * base, 1)
        if one.microbatches is None:
            assert one.better10_ns < base
    same_work = [
        one.better10_ns
        for one in found
        if one.microbatches is None and not one.meaning.startswith("stage layout")
    ]
    assert same_work == sorted(same_work)


@pytest.mark.slow
@settings(max_examples=40)
@given(overridden() | cases())
def test_a_run_with_the_parameters_of_a_row_takes_what_the_row_says(case: Case) -> None:
    """Of changes and of sensitivity: `t` on any row shows a run, and it is the one that was computed.

    Planted: a factor of 0.91 in the parameters; a factor that the queues of shared ports do not have.
    """
    simulation = simulate(*case)
    for one in SimulatedRun(simulation).what_if():
        assert one.parameters is not None, one.name
        assert simulate(case.workload, one.parameters).step_time_ns == one.better10_ns, one.name


def test_time_scales_are_taken_one_after_the_other_and_what_is_not_there_is_refused() -> None:
    workload = open_workload(SEEDS["000"])
    once = simulate(workload, flags_of(r"--time-scale=stream\ dp=0.5"))
    twice = simulate(workload, flags_of(r"--time-scale=stream\ dp=0.5 --time-scale=layer\ grad_gather=0"))
    whole = simulate(workload, flags_of(""))
    assert whole.step_time_ns > once.step_time_ns > twice.step_time_ns
    again = SimulatedRun(once).what_if()
    assert {one.name: one.better10_ns for one in again}["stream dp"] < once.step_time_ns
    for asked, words in (
        (r"stream\ ep=0.9", "no stream ep in this run, only stream tp, stream dp"),
        (r"layer\ mlp=0.9", "no layer mlp in this run, only layer grad_gather"),
        ("mlp=0.9", "WHAT compute PHASE, layer NAME or stream KIND"),
        (r"stream\ dp=much", "WHAT=X, for example stream tp=0.9 is expected"),
    ):
        with pytest.raises(UsageError, match=words):
            simulate(workload, flags_of(f"--time-scale={asked}"))


def flags_of(words: str) -> Parameters:
    """The parameters that a command line gives."""
    parser = Parser(prog="wltui")
    add_parameters(parser)
    return parse_parameters(parser.parse_args(shlex.split(words)))


def test_the_best_change_of_a_layer_loop_is_a_schedule_that_hides_its_gradients() -> None:
    simulation = seed_run("000").simulation
    best = advice(seed_run("000"))[0]
    assert best.flags == best.knob == "--schedule 1f1b --overlap-grad-reduce"
    assert best.parameters == flags_of(best.flags)
    assert round(100 * best.better10_ns / simulation.step_time_ns - 100) == -32


def test_of_two_changes_the_pair_is_said_where_it_gains_more_than_each() -> None:
    changes = advice(seed_run("002", FEW))
    found = {one.flags: one.better10_ns for one in changes}
    alone = "--schedule interleaved --virtual-stages 8", "--overlap-grad-reduce"
    assert found[" ".join(alone)] < min(found[one] for one in alone)
    assert not [flags for flags in found if flags.count("--overlap") + flags.count("--schedule") > 2]


def test_a_stage_layout_is_said_to_take_work_away_and_stands_behind_what_gains() -> None:
    """With uniform every stage runs what a model has once: not to run it makes nothing faster. So it is tried
    alone, and no other change has its gain.

    Planted: pairs with it; a place by its gain.
    """
    uniform = "--pp 4 --microbatches 16 --stage-layout uniform"
    simulation = seed_run("002", uniform).simulation
    found = advice(seed_run("002", uniform))
    (layout,) = [one for one in found if one.meaning.startswith("stage layout")]
    assert says([layout.name], layout.flags, "embedding", "stage 0", "loss", "last")
    assert layout.flags == "--stage-layout megatron"
    assert says([layout.meaning], "stage layout", "with uniform")
    assert [one.flags for one in found if "stage-layout" in one.flags] == [layout.flags]
    behind = found[found.index(layout) + 1 :]
    assert [one.flags for one in behind] == ["--microbatches 32"]
    # It gains more than one that stands before it: that is what somebody can change.
    assert sum(one.better10_ns > layout.better10_ns for one in found[: found.index(layout)]) == 1
    # The same model, laid out as it is in Megatron, computes no row faster: its ranks compute less.
    megatron = SimulatedRun(simulate(simulation.workload, flags_of(layout.flags)))
    assert mean_busy_ns(megatron) < mean_busy_ns(seed_run("002", uniform))


@pytest.mark.parametrize(("seed", "flags"), [("001", ""), ("002", FEW)])
def test_a_layout_that_is_assumed_is_no_change_that_somebody_can_make(seed: str, flags: str) -> None:
    """It stood among the advice with -5.3 % on seed 001: it corrects an assumption, which a note says."""
    results = seed_run(seed, flags)
    assert not [one for one in results.what_if() if "stage-layout" in one.flags]
    other = simulate(results.simulation.workload, flags_of(f"{flags} --stage-layout megatron")).step_time_ns
    (note,) = [one for one in results.diagnostics if one.code == "stage-layout-default"]
    change = change_percent(results.step_time_ns, other)
    assert figures(note.message)[-2:] == [duration(other), change]


def test_where_the_stage_layout_is_not_the_default_or_there_is_one_stage_nothing_is_undone() -> None:
    assert not [one for one in advice(seed_run("000")) if "stage layout" in one.meaning]
    there = seed_run("002", "--pp 4 --microbatches 4 --stage-layout megatron")
    assert not [one for one in advice(there) if "layout" in one.meaning + one.flags]


def test_that_interleaved_stages_need_no_more_memory_says_why() -> None:
    """`needs about 60.5 GB, as now` puzzled a newcomer: interleaved stages hold more, where there is more."""
    why = "memory as now: with 1f1b, too, the fullest stage holds all {} micro-batches"
    now = seed_run("002", "--pp 4 --microbatches 4")
    assert max(now.shape.held_microbatches) == now.shape.microbatches == 4
    cases = (("--pp 4 --microbatches 4", True), ("--pp 4 --microbatches 8", False))
    for flags, speaks in (*cases, ("--pp 2 --microbatches 4", False)):
        run = seed_run("002", flags).simulation
        rows = [one for one in advice(seed_run("002", flags)) if "--virtual-stages" in one.flags]
        assert rows
        count = run.program.microbatches
        for one in rows:
            assert one.parameters is not None
            other = SimulatedRun(simulate(run.workload, one.parameters))
            as_now = peak_bytes(other.model) == peak_bytes(seed_run("002", flags).model)
            held = max(seed_run("002", flags).shape.held_microbatches) == count
            assert (why.format(count) in one.meaning) == (as_now and held) == speaks, one.flags
    # Of schedules that hold no more nobody expects it.
    assert not [one for one in advice(now) if one.flags == "--schedule zb-h1" and "memory" in one.meaning]


_ASSUMED = "assumed: sent in pieces, compute and all collectives at full speed"
_SHARD = "grad_gather is a shard as written"
_LOOP = (
    f"{_ASSUMED}; 1f1b since SimAI's layer-loop cannot overlap (your job may already); 1f1b alone: no gain"
)


def test_what_an_overlap_assumes_of_collectives_beside_each_other() -> None:
    """All of 138.4 ms is hidden in seed 000, as the last pieces run beside a tp all-reduce: a newcomer asked
    whether it may. On shared ports they slow each other, and that is simulated.
    """
    tp, dp = Cell(100_000, "ALLREDUCE", "tp", 40_000), Cell(100_000, "ALLREDUCE", "dp", 600_000)
    rows = [Row("grad_param_comm", wg=dp), *(Row(f"mlp_{one}", tp, tp, Cell(100_000)) for one in range(4))]
    steps = {}
    for network in ("analytical", "shared"):
        simulation = run(rows, {"tp": 2, "dp": 2}, schedule="1f1b", network=network)
        (one,) = [one for one in advice(simulation) if one.flags == "--overlap-grad-reduce"]
        steps[network] = one.better10_ns
        collectives = "and all collectives " if network == "analytical" else ""
        assert one.meaning == f"assumed: sent in pieces, compute {collectives}at full speed"
    assert steps["analytical"] < steps["shared"]


def test_a_schedule_in_place_of_layer_loop_says_what_it_is_for_and_what_is_assumed_of_its_overlap() -> None:
    """Planted: the words where a schedule runs already."""
    steps = [seed_run("000", flags).simulation.step_time_ns
             for flags in ("", "--schedule 1f1b")]  # fmt: skip
    assert duration(steps[0]) == duration(steps[1])
    rows = {one.flags: one.meaning for one in advice(seed_run("000"))}
    whole = _gathered_whole("", "--schedule 1f1b")
    assert rows == {
        "--schedule 1f1b --overlap-grad-reduce": _LOOP,
        "--schedule 1f1b --overlap-param-gather": f"{_LOOP}; {_SHARD}: {whole}",
    }
    for one in advice(seed_run("000", "--schedule 1f1b")):
        shard = ""
        if "--overlap-param-gather" in one.flags:
            reduces = "--overlap-grad-reduce" if "--overlap-grad-reduce" in one.flags else ""
            shard = f"; {_SHARD}: {_gathered_whole('--schedule 1f1b', f'--schedule 1f1b {reduces}')}"
        assert one.meaning == (f"{_ASSUMED}{shard}" if "--overlap" in one.flags else "")


def _gathered_whole(before: str, after: str) -> str:
    """What gathering ahead brings where the file has the whole buffer, by runs of that file."""
    workload = with_gathered_buffer(open_workload(SEEDS["000"]))
    assert workload is not None
    was, now = (
        simulate(workload, flags_of(f"--world 128 {flags}")).step_time_ns
        for flags in (before, f"{after} --overlap-param-gather")
    )
    assert now < 0.9 * was
    change = change_percent(was, now)
    return f"if it were whole, as AICB writes it, {duration(was)} -> {duration(now)} ({change})"


def test_two_changes_carry_what_either_has_to_say_first() -> None:
    """Seed 001 has 2 micro-batches. Planted: the words of the first alone, as before."""
    found = advice(seed_run("001"))
    some = [one for one in found if "zb-" in one.flags]
    assert len(some) >= 4
    for one in some:
        count = 7 if "zb-h2" in one.flags else 4
        assert one.name == f"{one.flags} (full gain from {count} micro-batches on, here 2)"


def test_a_schedule_made_for_more_micro_batches_says_so() -> None:
    """With 4 micro-batches zb-h2 is slower than zb-h1: on 4 stages it is made for 7, and then faster."""
    few, many = (seed_run("002", f"--pp 4 --microbatches {count}") for count in (4, 7))
    rows = {one.flags: one for one in advice(few)}
    caveat = "full gain from 7 micro-batches on, here 4"
    assert rows["--schedule zb-h2"].name == f"--schedule zb-h2 ({caveat})"
    assert rows["--schedule zb-v"].name == f"--schedule zb-v ({caveat})"
    assert rows["--schedule zb-h1"].name == "--schedule zb-h1"
    assert rows["--schedule zb-h2"].better10_ns > rows["--schedule zb-h1"].better10_ns
    again = {one.flags: one for one in advice(many)}
    assert again["--schedule zb-h2"].name == "--schedule zb-h2"
    assert again["--schedule zb-h2"].better10_ns < again["--schedule zb-h1"].better10_ns
    # Two at a time say it, too.
    for one in rows.values():
        assert ("full gain from 7" in one.name) == ("zb-h2" in one.flags or "zb-v" in one.flags)


def test_what_a_schedule_does_that_not_everybody_knows_is_said_and_true() -> None:
    """A newcomer found what zb-h1 is only after he had tried it."""
    flags = "--pp 4 --microbatches 8"
    now = seed_run("002", flags).simulation
    held = max(seed_run("002", flags).shape.held_microbatches)
    for one in advice(seed_run("002", flags)):
        name = one.flags.split()[1] if one.flags.startswith("--schedule") else ""
        said = SCHEDULES[name].does if name else ""
        assert (said in one.meaning) if said else ("weight" not in one.meaning), one.flags
    most = {}
    for name in ("zb-h1", "zb-h2", "zb-v", "v-half"):
        does = SCHEDULES[name].does
        other = simulate(now.workload, flags_of(f"{flags} --schedule {name}"))
        most[name] = max(SimulatedRun(other).shape.held_microbatches)
        assert ("two chunks, laid out as a V" in does) == (other.program.virtual_stages == 2)
        # A weight gradient runs behind input gradients of stages that wait for them.
        ops = other.timeline.stage_program(0).ops
        kinds = [
            PHASES[phase] for phase, stream in zip(ops.phase, ops.stream, strict=True) if stream == COMPUTE
        ]
        assert kinds.index("wg") > kinds.index("ig")
    assert most["v-half"] < held == 4
    assert held < most["zb-h2"] <= 2 * held


def test_a_slow_rank_is_to_be_as_fast_as_its_peers() -> None:
    simulation = run([BLOCK] * 2, {"tp": 2, "pp": 2}, schedule="1f1b", slow_rank=("1=1.5", "2=0.9"))
    mended = next(one for one in advice(simulation) if one.knob == "rank 1 as fast as its peers")
    assert mended.flags == "--slow-rank 1=1 --slow-rank 2=0.9"
    assert mended.better10_ns == run(
        [BLOCK] * 2, {"tp": 2, "pp": 2}, schedule="1f1b", slow_rank=("2=0.9",)
    ).step_time_ns  # fmt: skip
    assert not [one for one in advice(run([BLOCK], {"tp": 2}, slow_rank=("1=0.5",))) if "rank" in one.knob]


def test_twice_the_batch_comes_last_and_is_worth_it_by_the_micro_batch() -> None:
    simulation = run([BLOCK] * 2, {"pp": 4}, schedule="1f1b")
    last = advice(simulation)[-1]
    half = duration(last.better10_ns // 2)
    assert last.microbatches == 4
    assert figures(last.knob) == ["--microbatches", "4", half]
    assert last.better10_ns > simulation.step_time_ns > last.better10_ns // 2


def test_of_unequal_micro_batches_no_mean_is_said() -> None:
    """Four of seed 001 are both of its blocks twice: half of their step is held against this step."""
    *_, last, reading = advice(seed_run("001"))
    assert reading.fixes
    assert figures(last.knob) == ["--microbatches", "4", duration(last.same_work_ns or 0)]
    assert last.same_work_ns == seed_run("001", last.flags).simulation.step_time_ns // 2


def test_what_a_change_needs_of_memory_is_that_of_its_run() -> None:
    flags = "--pp 4 --microbatches 8"
    simulation = seed_run("002", flags).simulation
    rows = advice(seed_run("002", flags))
    for row in rows:
        assert row.parameters is not None
        memory = SimulatedRun(simulate(simulation.workload, row.parameters)).model.file_memory
        assert row.memory_bytes == max(stage.total for stage in memory)
    # zb-h1 holds as many as 1f1b does on stage 0, interleaved some more, v-half fewer.
    now = peak_bytes(seed_run("002", flags).model)
    needed = {row.flags: row.memory_bytes for row in rows}
    assert now is not None
    assert needed["--schedule zb-h1"] == now < (needed["--schedule interleaved --virtual-stages 8"] or 0)
    assert (needed["--schedule v-half"] or now) < 0.95 * now
    # A thing that matters is no run that somebody chooses.
    assert {one.memory_bytes for one in seed_run("002", flags).what_if() if one.list != "change"} == {None}


def test_nobody_knows_what_a_change_needs_where_the_file_does_not_say_what_activations_are() -> None:
    """The gradients of seed 002 without its tensor-parallel collectives, which say b s h."""
    rows = [Row("grad_gather", wg=Cell(0, "ALLGATHER", "dp", 4000))]
    rows += [Row("grad_param_comm", wg=Cell(0, "REDUCESCATTER", "dp", 8000)), *[BLOCK] * 4]
    results = SimulatedRun(run(rows, {"dp": 2, "pp": 4}, schedule="gpipe"))
    assert results.model.file_memory
    assert peak_bytes(results.model) is None
    found = [one for one in results.what_if() if one.list == "change"]
    assert found
    assert {one.memory_bytes for one in found} == {None}


def test_a_table_of_ops_has_no_other_schedule() -> None:
    assert advice(seed_run("003")) == []


def test_a_schedule_of_several_chunks_is_offered_with_two_or_more() -> None:
    """Of 4 micro-batches on 4 stages of 1 layer it would take one chunk, which is nothing to interleave."""
    simulation = simulate(open_workload(SEEDS["001"]), Parameters(microbatches=4))
    assert not any(
        "interleaved --virtual-stages 1" in one.flags for one in SimulatedRun(simulation).what_if()
    )
    # Where there are layers to cut it is offered.
    simulation = simulate(open_workload(SEEDS["002"]), Parameters())
    counts = [
        change.fields["virtual_stages"]
        for change in _schedule_changes(simulation)
        if change.fields["schedule"] == "interleaved"
    ]
    assert counts
    assert 1 not in counts
