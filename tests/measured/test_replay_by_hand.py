"""Small traces whose accounts, critical path and replay were calculated by hand."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from simcore.diagnostics import UsageError
from simcore.measured import MeasuredRun, open_directory, read_run
from simcore.parameters import Parameters
from simcore.ranks import RankSet
from simcore.replay.differences import differences
from simcore.replay.parameters import Scales, parameters_of
from simcore.replay.stragglers import OperationCompute, SlowRank, find_balance_gain
from simcore.replay.what_if import AS_FAST
from simcore.runs.measured import RecordedRun, run_recording
from simcore.sources.inputs import open_input
from simcore.words.measured_sentences import find_sentences
from simcore.words.sentences.replays import ReplayedStep, UnchangedCalls
from simcore.words.sentences.slow import (
    RankComputesLonger,
    RankIsSlow,
    ShorterPhase,
    StageIsSlow,
    find_slow_stage,
    speak_of_slow_ranks,
)
from simcore.words.sentences.spent import AccountHolders, MostTime, find_most_time
from simcore.words.sentences.waits import OwnWait, WaitFor, find_waits
from tests import says
from tests.findings import named
from tests.measured.paths import path_rows

from .traces import STAMP, Op, Sub, noted, said, step, write_set

MS = 10**6


def run_of(text: str, world: int, tp: int = 1, pp: int = 1) -> MeasuredRun:
    return read_run(f"wd{world}_tp{tp}_pp{pp}_numl4_bs1_x_rank0_{STAMP}.txt", text.encode())


def op(rank: int, name: str, start: float, end: float, group: str | None = None, **more: object) -> str:
    """A line; times in ms."""
    made = Op(name, f"{1000 + end:.2f}", f"{end - start:.2f}", group=group, **more)  # type: ignore[arg-type]
    return made.line(rank) + "\n"


# Two data-parallel ranks, the second one slow: it computes 30 ms, the first one 10 and waits 20.
SLOW_RANK = (
    op(0, "forward_step", 0, 10)
    + op(0, "dp_allreduce", 10, 35, "dp")
    + op(0, "optimizer_step", 36, 40)
    + op(1, "forward_step", 0, 30)
    + op(1, "dp_allreduce", 30, 35, "dp")
    + op(1, "optimizer_step", 35.5, 39.5)
)


def test_a_slow_rank_is_named_and_the_other_waits_for_it() -> None:
    results = RecordedRun(run_of(SLOW_RANK, 2))
    first, second = results.accounts
    assert (first.ns("compute forward"), first.ns("wait"), first.ns("exposed dp")) == (
        10 * MS,
        20 * MS,
        5 * MS,
    )
    assert (second.ns("wait"), second.ns("exposed dp"), second.ns("idle")) == (0, 5 * MS, MS)
    (waiting,) = results.waiting
    assert (waiting.early, waiting.late, waiting.name, waiting.ns) == (0, 1, "dp_allreduce", 20 * MS)
    zero, one = RankSet.of([0]), RankSet.of([1])
    assert find_sentences(results) == [
        RankIsSlow(
            unit="rank",
            slow_rank=SlowRank(1, 0, 34 * MS, 14 * MS, (0,)),
            is_by_position=False,
            shorter=None,
            rerun=ReplayedStep(40 * MS, 22_354_000),
        ),
        MostTime(
            unit="rank",
            ranks=2,
            whole_ns=80 * MS,
            compute_ns=48 * MS,
            account="wait",
            ns=20 * MS,
            with_messages=False,
            most=AccountHolders(zero, 20 * MS, are_all=False, have_all=True),
            begin=None,
            outside_ns=0,
            knows_waits=True,
        ),
        WaitFor(
            operation="dp_allreduce",
            early=zero,
            early_stage=0,
            late=one,
            late_stage=0,
            ns=20 * MS,
            own_wait=None,
        ),
    ]


def test_ranks_that_have_as_much_are_named_together() -> None:
    """Four ranks meet in one collective: which of them is first in the file is no finding."""

    def most(*computes: float) -> AccountHolders | None:
        lines = "".join(
            op(rank, "forward_step", 0, ms) + op(rank, "dp_allreduce", ms, 90, "dp")
            for rank, ms in enumerate(computes)
        )
        (sentence,) = find_most_time(RecordedRun(run_of(lines, len(computes))))
        return sentence.most

    assert most(30, 30) == AccountHolders(RankSet.of([0, 1]), 60 * MS, are_all=True, have_all=True)
    assert most(10, 10, 10, 80) == AccountHolders(RankSet.of(range(3)), 70 * MS, are_all=False, have_all=True)
    # 10 ms less is another rank.
    assert most(10, 20, 80, 80) == AccountHolders(RankSet.of([0]), 70 * MS, are_all=False, have_all=False)


def path_of(results: RecordedRun) -> list[tuple[int, float, float, str, str, int]]:
    return [(one.rank, one.start / MS, one.end / MS, one.kind, one.reason, one.of)
            for one in path_rows(results)]  # fmt: skip


def test_the_critical_path_goes_over_the_slow_rank() -> None:
    assert path_of(RecordedRun(run_of(SLOW_RANK, 2))) == [
        (1, 0, 30, "compute forward", "first", 1),
        (0, 30, 35, "dp", "late", 1),
        (0, 35, 36, "idle", "idles", 0),
        (0, 36, 40, "compute optimizer", "was idle", 0),
    ]


def test_a_slow_rank_made_faster_leaves_the_rest_as_it_was() -> None:
    run = run_of(SLOW_RANK, 2)
    parameters = Parameters(slow_rank=("1=0.5",))
    results = run_recording(run, parameters)
    # Rank 1 comes at 15 instead of 30; rank 0 is free 5 ms later, at 20, and ends 5 ms after that.
    assert results.step_time_ns == 25 * MS
    assert [(one.rank, one.replayed_ns - one.measured_ns) for one in differences(results)] == [
        (0, -15 * MS),
        (1, -17 * MS),
    ]
    assert differences(results)[1].ops == (("forward_step", -15 * MS), ("optimizer_step", -2 * MS))
    assert (results.run.replayed, results.run.step_time_ns, run.step_time_ns) == (True, 25 * MS, 40 * MS)


# Two stages; the second computes three times as much. Messages take 2 ms, a receive 1 ms more.
SLOW_STAGE = (
    op(0, "forward_step", 0, 10)
    + op(0, "send_forward", 10, 12, "pp")
    + op(0, "recv_backward", 13, 76, "pp")
    + op(0, "backward_step", 76, 96)
    + op(1, "recv_forward", 1, 13, "pp", stage=1)
    + op(1, "forward_step", 13, 43, stage=1)
    + op(1, "backward_step", 43, 73, stage=1)
    + op(1, "send_backward", 73, 75, "pp", stage=1)
)


def test_a_slow_stage_and_the_bubble_of_the_other() -> None:
    results = RecordedRun(run_of(SLOW_STAGE, 2, pp=2))
    first, second = results.accounts
    assert (first.ns("bubble"), first.ns("exposed pp"), first.ns("idle")) == (60 * MS, 5 * MS, MS)
    assert (second.ns("bubble"), second.ns("exposed pp"), second.ns("idle")) == (9 * MS, 5 * MS, 22 * MS)
    assert path_of(results) == [
        (0, 0, 10, "compute forward", "first", 0),
        (0, 10, 12, "pp", "behind", 0),
        (1, 12, 13, "pp", "received", 0),
        (1, 13, 43, "compute forward", "behind", 1),
        (1, 43, 73, "compute backward", "behind", 1),
        (1, 73, 75, "pp", "behind", 1),
        (0, 75, 76, "pp", "received", 1),
        (0, 76, 96, "compute backward", "behind", 0),
    ]
    # Balanced it takes as long: what is slow does not say that moving work would help.
    assert [*find_slow_stage(results)] == [
        StageIsSlow(
            stage=1,
            ns=60 * MS,
            others=1,
            others_ns=30 * MS,
            microbatches=1,
            rerun=ReplayedStep(96 * MS, 96 * MS),
            condition="",
        )
    ]


def test_a_slow_stage_with_a_slow_rank_says_what_is_left_once_that_is_as_fast_as_its_peers() -> None:
    """Stage 1 takes 30 ms on rank 2 and 40 on rank 3, stage 0 takes 10: once rank 3 takes 30, 20 each."""
    text = "".join(
        op(rank, "forward_step", 0, ms, stage=rank // 2) for rank, ms in enumerate((10, 10, 30, 40))
    )
    results = RecordedRun(run_of(text, 4, pp=2))
    beside = find_balance_gain(results)
    assert beside is not None
    assert named(beside.once) == ["3", "2"]
    assert find_sentences(results)[:2] == [
        RankIsSlow(
            unit="rank",
            slow_rank=SlowRank(3, 1, 40 * MS, 30 * MS, (2,)),
            is_by_position=False,
            shorter=None,
            rerun=ReplayedStep(40 * MS, 30 * MS),
        ),
        StageIsSlow(
            stage=1,
            ns=30 * MS,
            others=1,
            others_ns=10 * MS,
            microbatches=1,
            rerun=ReplayedStep(30 * MS, 20 * MS),
            condition=beside.once,
        ),
    ]
    # The rerun, with the factors by hand; all that a balanced stage 0 takes is no more than that.
    scales = Scales(ranks={3: 0.75}, stages={0: 2.0, 1: 2 / 3})
    assert results.with_scales(scales).step_time_ns == 20 * MS
    meaning = next(knob.meaning for knob in results.what_if() if knob.name == "balanced stages")
    assert named(meaning) == ["3", "2", "-33.3 %"]


@pytest.mark.parametrize(
    ("scales", "step_ms"),
    [
        (Scales(), 96),
        # 10 + 30 + 30 + 20 of compute on the path are doubled.
        (Scales(compute=2), 96 + 90),
        (Scales(compute=0), 6),
        (Scales(comm=0), 90),
        (Scales(comm=3), 96 + 12),
        (Scales(ops={"forward_step": 2}), 96 + 40),
        (Scales(ops={"send_backward": 0}), 96 - 2),
        (Scales(stages={1: 0.5}), 96 - 30),
        # The wait for the gradient is longer than the gap before it.
        (Scales(gaps=2), 96),
        (Scales(gaps=100), 12 + 100 + 1 + 20),
    ],
)
def test_the_replay_is_what_the_path_says(scales: Scales, step_ms: int) -> None:
    results = RecordedRun(run_of(SLOW_STAGE, 2, pp=2), scales)
    assert results.step_time_ns == step_ms * MS


def test_factors_tried_one_after_another_are_typed_without_binary_digits() -> None:
    tried = Scales(compute=0.9, comm=0.7, ops={"forward_step": 0.9}, ranks={1: 1.1})
    parameters = parameters_of(tried.times(tried).times(tried))
    assert (parameters.compute_scale, parameters.comm_scale) == (0.729, 0.343)
    assert (parameters.layer_scale, parameters.slow_rank) == (("forward_step=0.729",), ("1=1.331",))


def test_what_if_has_the_greatest_gain_first_and_what_a_slowed_rank_costs() -> None:
    knobs = {knob.name: knob for knob in RecordedRun(run_of(SLOW_STAGE, 2, pp=2)).what_if()}
    assert next(iter(knobs)) == "all compute"
    assert (knobs["all compute"].free_ns, knobs["all compute"].better10_ns) == (6 * MS, 87 * MS)
    assert (knobs["compute of stage 1"].free_ns, knobs["compute of stage 1"].better10_ns) == (
        36 * MS,
        90 * MS,
    )
    assert (knobs["pp communication"].free_ns, knobs["host gaps"].free_ns) == (90 * MS, 96 * MS)
    assert (knobs["compute of rank 1"].better10_ns, knobs["compute of rank 1"].worse10_ns) == (
        90 * MS,
        102 * MS,
    )
    assert (knobs["balanced stages"].free_ns, knobs["balanced stages"].better10_ns) == (None, 96 * MS)
    better = [(knob.better10_ns, knob.best_ns) for knob in knobs.values()]
    assert better == sorted(better)


def test_a_rank_that_is_said_to_be_slow_is_asked_to_be_as_fast_as_the_other_ranks_of_its_stage() -> None:
    results = RecordedRun(run_of(SLOW_RANK, 2))
    (asked,) = [knob for knob in results.what_if() if knob.name.startswith("rank ")]
    # A change that is made or not stands with all its gain between others with a tenth of theirs.
    assert asked == results.what_if()[0]
    # 14 ms over 34 ms, four places; rank 1 comes at 30 x 0.4118 ms, and 10 ms later rank 0 ends.
    assert AS_FAST in asked.name
    assert named(asked.name) == ["1", "0", "34.000 ms", "14.000 ms"]
    assert asked.parameters == Parameters(slow_rank=("1=0.4118",))
    assert (asked.free_ns, asked.better10_ns, asked.worse10_ns) == (None, 22_354_000, None)
    tried = results.with_parameters(asked.parameters)
    assert tried.step_time_ns == asked.better10_ns
    assert not [*speak_of_slow_ranks(tried)]
    assert not [knob.name for knob in tried.what_if() if knob.name.startswith("rank ")]
    # A stage of one rank has no peers.
    alone = RecordedRun(run_of(SLOW_STAGE, 2, pp=2)).what_if()
    assert not [knob.name for knob in alone if knob.name.startswith("rank ")]


def tensor_parallel(rank: int, first: float, second: float) -> str:
    """A forward step with an all-reduce of the tensor-parallel group that begins at `first`, ends at 20."""
    sub = Sub("1020.00", f"{20 - first:.2f}")
    return op(rank, "forward_step", 0, second, subs=(sub,))


def test_tensor_parallel_ranks_wait_for_each_other_inside_a_step() -> None:
    run = run_of(tensor_parallel(0, 8, 30) + tensor_parallel(1, 17, 28), 2, tp=2)
    results = RecordedRun(run)
    one, other = results.accounts
    assert (one.ns("compute forward"), one.ns("wait"), one.ns("exposed tp")) == (18 * MS, 9 * MS, 3 * MS)
    assert (other.ns("compute forward"), other.ns("wait"), other.ns("exposed tp")) == (25 * MS, 0, 3 * MS)
    # Both are through at 8.5 + 3 when rank 1 computes twice as fast; rank 0 has 10 ms left.
    assert results.with_scales(Scales(ranks={1: 0.5})).step_time_ns == 21.5 * MS


def asynchronous(rank: int, launch: float, over: float) -> str:
    sub = Sub(f"{1000 + over:.2f}", f"{over - launch:.2f}", "bwd", "bwd_async")
    return op(rank, "backward_step", 0, 30, subs=(sub,))


def test_beside_an_asynchronous_collective_runs_compute() -> None:
    """Rank 1 launches at 16 and needs 6 ms beside it; rank 0 waits for it from 8 + 6 to 18."""
    run = run_of(asynchronous(0, 8, 18) + asynchronous(1, 16, 22), 2, tp=2)
    results = RecordedRun(run)
    one, other = results.accounts
    assert (one.ns("compute backward"), one.ns("wait"), one.ns("exposed tp")) == (26 * MS, 2 * MS, 2 * MS)
    assert (other.ns("compute backward"), other.ns("wait"), other.ns("exposed tp")) == (30 * MS, 0, 0)
    assert results.with_scales(Scales()).step_time_ns == 30 * MS
    assert results.with_scales(Scales()).run.ranks[0].subs.end == results.measured.ranks[0].subs.end
    # Without compute rank 0 and rank 1 launch at 0, and the collective takes its 2 ms.
    assert results.with_scales(Scales(compute=0)).step_time_ns == 2 * MS


def test_the_optimizer_step_waits_for_the_last_rank_of_the_model() -> None:
    text = op(0, "forward_step", 0, 10) + op(0, "optimizer_step", 10, 50)
    text += op(1, "forward_step", 0, 44, stage=1) + op(1, "optimizer_step", 44, 52, stage=1)
    results = RecordedRun(run_of(text, 2, pp=2))
    assert [one.ns("wait") for one in results.accounts] == [34 * MS, 0]
    assert [one.ns("compute optimizer") for one in results.accounts] == [6 * MS, 8 * MS]
    # Only the 8 ms behind the wait are compute of its own.
    assert results.with_scales(Scales(ops={"optimizer_step": 2})).step_time_ns == (44 + 16) * MS
    # Who had its step done before the last one came did not wait for it.
    early = text.replace("timestamp=1050.00", "timestamp=1040.00").replace("duration=40.00", "duration=30.00")
    assert [one.ns("wait") for one in RecordedRun(run_of(early, 2, pp=2)).accounts] == [0, 0]


def unmatched(results: RecordedRun) -> list[list[str]]:
    """How many calls have no partner, and of which operations, as it is said."""
    return [named(one.message) for one in results.run.diagnostics if one.code == "replay-unmatched"]


def test_an_optimizer_step_of_a_rank_whose_group_is_not_known_is_no_communication() -> None:
    """Nothing says how many ranks there are: the all-reduce has no partner, the optimizer step needs none."""
    text = (
        op(7, "forward_step", 0, 10) + op(7, "dp_allreduce", 10, 20, "dp") + op(7, "optimizer_step", 20, 30)
    )
    replayed = run_recording(read_run("trace.txt", text.encode()), Parameters(compute_scale=2.0))
    assert replayed.step_time_ns == 50 * MS
    assert unmatched(replayed) == [["1", "dp_allreduce"]]


def test_a_message_that_was_there_before_its_send_was_over_is_there_as_early_in_the_replay() -> None:
    text = op(0, "send_forward", 0, 10, "pp") + op(1, "recv_forward", 1, 7, "pp", stage=1)
    text += op(1, "forward_step", 7, 20, stage=1)
    results = RecordedRun(run_of(text, 2, pp=2))
    assert results.rendezvous.message_ns == [7 * MS]
    assert results.with_scales(Scales()).step_time_ns == 20 * MS


def test_a_missing_rank_leaves_its_partners_with_what_was_measured(tmp_path: Path) -> None:
    lines = {0: "".join(SLOW_STAGE.splitlines(True)[:4])}
    write_set(tmp_path, lines, world=2)
    results = run_recording(open_directory(str(tmp_path)), Parameters(compute_scale=2.0))
    assert results.step_time_ns == (96 + 30) * MS
    assert unmatched(results) == [["2", "send_forward", "recv_backward"]]
    assert [one.ns("bubble") for one in results.accounts] == [0]


def test_two_runs_of_one_directory_are_replayed_one_at_a_time(tmp_path: Path) -> None:
    write_set(
        tmp_path,
        {0: SLOW_RANK.split("rank:1")[0], 1: "rank:1" + SLOW_RANK.split("rank:1", 1)[1]},
        world=2,
        pp=1,
    )
    older = "20240101000000"
    write_set(tmp_path, {rank: step(rank) for rank in (0, 1)}, world=2, pp=1, stamp=older)
    # Of the older one 7.5 ms are compute: an all-reduce of one rank takes 0.5 ms of the forward step.
    for wanted, step_ms in ((None, 40 + 34), (older, 17.5)):
        run = open_directory(str(tmp_path), wanted)
        assert run_recording(run, Parameters(compute_scale=2.0)).step_time_ns == step_ms * MS


def test_ranks_profiled_one_after_another_are_run_together(tmp_path: Path) -> None:
    """Rank 1's own times begin 100 s later; what it receives is not there before rank 0 has sent it."""
    stamps = {0: "20240923205004", 1: "20240923215004"}
    lines = SLOW_STAGE.splitlines(True)
    later = "".join(
        op(1, name, start + 100_000, end + 100_000, group, stage=1)
        for name, start, end, group in (
            ("recv_forward", 0, 0.1, "pp"), ("forward_step", 0.1, 30.1, None),
            ("backward_step", 30.1, 60.1, None), ("send_backward", 60.1, 62.1, "pp"),
        )
    )  # fmt: skip
    write_set(tmp_path, {0: "".join(lines[:4]), 1: later}, world=2, stamps=stamps)
    run = open_directory(str(tmp_path))
    assert not run.concurrent
    measured = RecordedRun(run)
    assert (measured.waiting, measured.step_time_ns) == ([], 96 * MS)
    assert [one.ns("bubble") for one in measured.accounts] == [0, 0]
    replayed = run_recording(run, Parameters(replay=True))
    # Forward 10, message 2, forward and backward 60, message 2, backward 20.
    assert (replayed.step_time_ns, replayed.run.concurrent) == (94 * MS, True)
    # What the step answers to is asked of the replay: measured apart, ranks wait for nobody.
    slopes = {one.scale: (one.left_ns, one.right_ns) for one in measured.gradients}
    assert slopes == {one.scale: (one.left_ns, one.right_ns) for one in replayed.gradients}
    assert slopes["compute"] == (90 * MS, 90 * MS)


def test_an_order_without_times_is_not_replayed(tmp_path: Path) -> None:
    path = tmp_path / "plan.txt"
    path.write_text("stage:0:forward_step(batch_id=0, mg_state=warmup, duration=None)\n")
    run = open_input(str(path))
    assert isinstance(run, MeasuredRun)
    for parameters, asked in (
        (Parameters(replay=True), "--replay"),
        (Parameters(comm_scale=2.0), "--comm-scale"),
    ):
        with pytest.raises(UsageError) as caught:
            run_recording(run, parameters)
        says.said([str(caught.value)], asked, "without times")
    with pytest.raises(UsageError) as caught:
        run_recording(run, Parameters()).what_if()
    says.said([str(caught.value)], "--what-if", "without times")


def test_clocks_of_two_hosts_are_brought_together(tmp_path: Path) -> None:
    lines = SLOW_STAGE.splitlines(True)
    # 900 s: the other host has been up that much longer.
    later = "".join(lines[4:]).replace("timestamp=1", "timestamp=901")
    write_set(tmp_path, {0: "".join(lines[:4]), 1: later}, world=2)
    run = open_directory(str(tmp_path))
    assert (run.concurrent, run.step_time_ns) == (True, 96 * MS)
    assert said(run) == ["note clock-offset: 0, 1, +900.0 s, 2"]


def test_a_directory_may_hold_gzip_files(tmp_path: Path) -> None:
    write_set(tmp_path, {rank: step(rank) for rank in range(4)})
    for path in list(tmp_path.glob("*rank[12]_*")):
        (tmp_path / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    (tmp_path / "broken.gz").write_bytes(b"\x1f\x8bnothing")
    run = open_directory(str(tmp_path))
    assert [rank.rank for rank in run.ranks] == [0, 1, 2, 3]
    assert noted(run) == ["other-files"]


def test_a_path_in_a_circle_ends() -> None:
    """As clocks may have it: rank 0 is through when rank 1 comes, which receives what rank 0 then sends."""
    text = op(0, "ep_allreduce", 0, 10, "ep") + op(0, "send_forward", 10, 12, "pp")
    text += op(1, "recv_forward", 0, 10, "pp", stage=1) + op(1, "ep_allreduce", 10, 10.02, "ep", stage=1)
    results = RecordedRun(run_of(text, 2, pp=2))
    assert (len(results.rendezvous.matches.meetings), len(results.rendezvous.matches.messages)) == (1, 1)
    path = path_of(results)
    assert (path[0][1], path[-1][2]) == (0, 12)


# Of four ranks, tp 2, rank 3 is slow; rank 2 waits for it and then comes late to rank 0.
PASSED_ON = "".join(
    op(rank, "forward_step", 0, forward)
    + op(rank, "tp_allreduce", forward, reduced, "tp")
    + op(rank, "dp_allreduce", reduced, 36, "dp")
    for rank, forward, reduced in ((0, 10, 12), (1, 10, 12), (2, 11, 33), (3, 31, 33))
)


def test_a_late_rank_that_waits_itself_is_said_to_with_whom_it_waits_for() -> None:
    """Planted: the figure of the whole wait."""
    results = RecordedRun(run_of(PASSED_ON, 4, tp=2))
    (wait,) = (one for one in find_waits(results) if one.operation == "dp_allreduce")
    assert (wait.early, wait.late, wait.ns) == (RankSet.of([0, 1]), RankSet.of([2, 3]), 21 * MS)
    # From 12 to 33 ms; up to 31 rank 2 waits for rank 3 itself.
    assert wait.own_wait == OwnWait(19 * MS, RankSet.of([2]), RankSet.of([3]), 0, "tp_allreduce")
    # Rank 3 on time, what is left of the wait is for rank 2 alone, which computes 1 ms longer.
    on_time = run_recording(run_of(PASSED_ON, 4, tp=2), Parameters(slow_rank=("3=0.3226",)))
    assert sum(wait.ns for wait in on_time.waiting if wait.name == "dp_allreduce") < 3 * MS
    # Where rank 2 computes as long as rank 3 it is late by its own doing.
    late = PASSED_ON.replace(op(2, "forward_step", 0, 11), op(2, "forward_step", 0, 31)).replace(
        op(2, "tp_allreduce", 11, 33, "tp"), op(2, "tp_allreduce", 31, 33, "tp")
    )
    (wait,) = (
        one for one in find_waits(RecordedRun(run_of(late, 4, tp=2))) if one.operation == "dp_allreduce"
    )
    assert (wait.ns, wait.own_wait) == (21 * MS, None)


def test_what_a_slow_rank_computes_in_less_time_is_said_with_the_one_factor_that_is_tried() -> None:
    """Of a real run rank 1's forward was half of rank 0's, and the replay made it shorter still."""
    lines = (
        op(0, "forward_step", 0, 20)
        + op(0, "backward_step", 20, 45)
        + op(0, "dp_allreduce", 45, 95, "dp")
        + op(1, "forward_step", 0, 10)
        + op(1, "backward_step", 10, 90)
        + op(1, "dp_allreduce", 90, 95, "dp")
    )
    results = RecordedRun(run_of(lines, 2))
    mended = results.with_parameters(Parameters(slow_rank=("1=0.5",)))
    assert [*speak_of_slow_ranks(results)] == [
        RankIsSlow(
            unit="rank",
            slow_rank=SlowRank(1, 0, 90 * MS, 45 * MS, (0,)),
            is_by_position=False,
            shorter=ShorterPhase("forward", 10 * MS, 20 * MS),
            rerun=ReplayedStep(95 * MS, mended.step_time_ns),
        )
    ]
    assert mended.step_time_ns == 50 * MS


def test_a_rank_of_which_less_than_half_takes_longer_is_not_slow() -> None:
    """Its backward alone takes longer, and its peers compute for a third of their time in theirs."""
    results = RecordedRun(
        run_of(
            op(0, "forward_step", 0, 20)
            + op(0, "backward_step", 20, 30)
            + op(1, "forward_step", 0, 10)
            + op(1, "backward_step", 10, 60),
            2,
        )
    )
    assert find_sentences(results)[0] == RankComputesLonger(
        unit="rank",
        slow_rank=SlowRank(1, 0, 60 * MS, 30 * MS, (0,)),
        is_by_position=False,
        operation="backward_step",
        own_work=OperationCompute(1, 50 * MS),
        peers_work=OperationCompute(1, 10 * MS),
    )
    assert not any(AS_FAST in knob.name for knob in results.what_if())


def test_calls_without_a_partner_keep_what_they_took_and_a_gain_beside_them_says_so() -> None:
    """Of a real trace 131 ms were possible, not 147.9: a send that waits for the slow rank stays long."""
    for lasting, there in ((9, True), (0.2, False)):
        alone = op(0, "recv_forward", 41, 41 + lasting, "pp")
        (slow,) = speak_of_slow_ranks(RecordedRun(run_of(SLOW_RANK + alone, 2)))
        assert isinstance(slow, RankIsSlow)
        assert slow.rerun is not None
        assert slow.rerun.unchanged == (UnchangedCalls(1, "rank", 0, round(lasting * MS)) if there else None)
