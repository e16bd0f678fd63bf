"""Replays of the real sets of the corpus, beside what was measured and beside two other replays."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from functools import cache
from pathlib import Path

import pytest

from simcore.comparison import Comparison
from simcore.measured import MeasuredRun
from simcore.parameters import OpeningOptions, Parameters
from simcore.ranks import RankSet
from simcore.replay.parameters import Scales, rounded
from simcore.replay.segment_names import segment_name
from simcore.replay.stragglers import find_balance_gain
from simcore.replay.waits import late_waits_itself, wait_stretches
from simcore.replay.what_if import AS_FAST
from simcore.runs.measured import RecordedRun, run_recording
from simcore.sources.inputs import open_input
from simcore.sources.measured import BUBBLE, WAIT
from simcore.words.measured_sentences import find_sentences
from simcore.words.sentences.slow import find_slow_stage, speak_of_slow_ranks
from simcore.words.sentences.spent import find_empty_slots
from simcore.words.sentences.waits import OwnWait, find_waits
from tests.findings import named
from tests.says import said
from tests.workload.texts import shared_folder

from .naive_replay import fine_ns, naive_ns, read_set
from .test_trace_properties import assert_accounts_and_path

# Directory, stamp -> the largest difference of the naive replay from the measured step, in parts of 10,000.
SETS = [
    ("wd8_tp2_pp4", "20240923205004", 8),
    ("wd4_tp2_pp2", "20250321125500", 6),
    ("wd4_tp2_pp2", "20250320144110", 6),
    ("wd4_tp1_pp2", "20250401230426", 16),
]
RUNS = [(name, stamp) for name, stamp, _ in SETS]


def folder_of(name: str) -> Path:
    return shared_folder("corpus/rank_trace") / name


@cache
def opened(name: str, stamp: str) -> MeasuredRun:
    """A real run, which is read once: nothing changes it."""
    run = open_input(str(folder_of(name)), OpeningOptions(stamp))
    assert isinstance(run, MeasuredRun)
    return run


@pytest.mark.parametrize(("name", "stamp", "naive"), SETS)
def test_the_replay_of_a_real_run_is_the_measured_step(name: str, stamp: str, naive: int) -> None:
    run = opened(name, stamp)
    results = run_recording(run, Parameters(replay=True))
    off = abs(results.step_time_ns - run.step_time_ns)
    # The promise is 0.3 %, and 0.2 % for the eight ranks.
    assert off <= run.step_time_ns * (2 if len(run.ranks) == 8 else 3) // 1000
    # It is exact, for what each operation takes by itself is as it was measured.
    assert off == 0
    text = read_set(folder_of(name), stamp)
    assert text.step_ns == run.step_time_ns
    assert abs(naive_ns(text) - run.step_time_ns) <= run.step_time_ns * naive // 10_000


@pytest.mark.parametrize(("name", "stamp"), RUNS)
@pytest.mark.parametrize("compute", [0, 1, 2, 3])
def test_with_scaled_compute_it_is_what_another_replay_of_the_text_says(
    name: str, stamp: str, compute: int
) -> None:
    run = opened(name, stamp)
    results = run_recording(run, Parameters(compute_scale=float(compute), replay=True))
    assert results.step_time_ns == fine_ns(read_set(folder_of(name), stamp), compute)


@pytest.mark.parametrize(("name", "stamp"), RUNS)
def test_accounts_sum_and_the_path_covers_a_real_step(name: str, stamp: str) -> None:
    run = opened(name, stamp)
    assert_accounts_and_path(RecordedRun(run))
    changed = Parameters(compute_scale=0.7, comm_scale=3.0, slow_rank=("1=1.5",))
    assert_accounts_and_path(run_recording(run, changed))


def test_the_embedding_all_reduce_of_the_last_stage_waits_for_the_first() -> None:
    results = RecordedRun(opened("wd8_tp2_pp4", "20240923205004"))
    waits = {(one.early, one.late): one.ns for one in results.waiting if one.name == "ep_allreduce"}
    # From 2442.37 and 2471.24 ms to 3733.28 and 3736.33 ms, when ranks 0 and 1 come.
    assert waits == {(6, 0): 1_290_910_000, (7, 1): 1_265_090_000}
    assert [(one.rule, *named(one.text)) for one in find_sentences(results)] == [
        ("slow-rank", "7", "1.873 s", "6", "3", "910.0 ms", "6", "2.925 s", "-24.1 %"),
        ("empty-slots", "1", "4", "3", "4", "75.0 %", "22.0 %", "55.6 %", "19.9 %"),
        ("wait", "0-1", "0", "2-3", "1", "recv_backward", "3.077 s", "2.442 s", "2-3", "4-5", "2"),
        ("wait", "2-3", "1", "4-5", "2", "recv_backward", "2.443 s", "1.807 s", "4-5", "6-7", "3"),
        ("wait", "6-7", "3", "0-1", "0", "ep_allreduce", "1.291 s",
         "846.3 ms", "0-1", "2-3", "1", "recv_backward"),
        ("wait", "4-5", "2", "7", "3", "optimizer_step", "875.6 ms",
         "861.8 ms", "7", "1", "0", "ep_allreduce"),
    ]  # fmt: skip


@pytest.mark.parametrize(("name", "stamp"), RUNS)
def test_every_rank_that_is_said_to_be_slow_has_its_question(name: str, stamp: str) -> None:
    results = RecordedRun(opened(name, stamp))
    said = [str(one.slow_rank.rank) for one in speak_of_slow_ranks(results) if one.rule == "slow-rank"]
    knobs = [knob for knob in results.what_if() if knob.name.startswith("rank ")]
    assert sorted(said) == sorted(knob.name.split()[1] for knob in knobs)
    assert all(AS_FAST in knob.name and len(named(knob.name)) == 4 for knob in knobs)
    if name == "wd8_tp2_pp4":
        # 910.0 ms over 1.873 s.
        assert [(knob.parameters, knob.better10_ns // 10**6) for knob in knobs] == [
            (Parameters(slow_rank=("7=0.4858",)), 2924)
        ]
        assert results.what_if()[0] == knobs[0]


def test_a_stage_is_not_called_slow_where_a_slow_rank_of_it_is_all_that_it_has() -> None:
    """Stage 3 computes 910 ms, the others 662 ms; with 1 micro-batch on 4 stages moving it gains 0.2 %."""
    results = RecordedRun(opened("wd8_tp2_pp4", "20240923205004"))
    beside = find_balance_gain(results)
    assert beside is not None
    mended = results.with_scales(Scales(ranks={7: rounded(910 / 1873)}))
    assert named(beside.once) == ["7", "6"]
    assert beside.before_ns == pytest.approx(mended.step_time_ns, rel=1e-3)
    assert 0 < beside.before_ns - beside.after_ns < 0.01 * results.step_time_ns
    assert not [*find_slow_stage(results)]
    knob = next(knob for knob in results.what_if() if knob.name == "balanced stages")
    # Its gain, 5.9 %, is that of the slow rank; the name says so where no line is left for what it means.
    assert (knob.knob, named(knob.moves)) == (f"balanced stages ({knob.moves})", ["7"])
    assert beside.once in knob.meaning
    assert named(knob.meaning) == ["7", "6", "-0.2 %"]
    # Without a slow rank it is what it was: every stage computes as long as the mean of all.
    assert find_balance_gain(results.with_scales(Scales(ranks={7: 0.486}))) is None


def test_where_the_degrees_come_from_is_said_of_each_real_run() -> None:
    run = opened("wd8_tp2_pp4", "20240923205004")
    notes = {note.code: note for note in run.diagnostics}
    assert notes["layout-assumed"].weight == "assumption"
    assert notes["layout-assumed"].message.startswith("tp 2 x dp 1 x pp 4 ")
    said([notes["layout-assumed"].message], "1 micro-batch", "forward_step")
    assert named(notes["dp-of-one"].message) == ["dp", "1", "dp_allreduce", "24.640 ms", "7", "dp"]
    assert notes["step-assumed"].weight == "assumption"
    for name, stamp in RUNS:
        run = opened(name, stamp)
        assert (run.degrees.dp == 1) == any(note.code == "dp-of-one" for note in run.diagnostics)


def test_empty_slots_are_said_where_they_are_what_ranks_do_not_compute() -> None:
    """(P - 1) of M + P - 1: 75 % of wd8, where 78 % is not compute; of wd4_tp1_pp2 it is 62 of 50 %."""
    speaks = {name: any(find_empty_slots(RecordedRun(opened(name, stamp)))) for name, stamp in RUNS}
    assert (speaks["wd8_tp2_pp4"], speaks["wd4_tp1_pp2"]) == (True, False)


def test_a_rank_made_as_fast_as_its_peers_is_why_its_replay_is_shorter() -> None:
    results = RecordedRun(opened("wd8_tp2_pp4", "20240923205004"))
    found = Comparison(results, results.with_scales(Scales(ranks={7: 0.486})))
    assert (
        said([found.why_text], "rank 7", "962.8 ms less", "bubble -656.5 ms", "mean rank") == found.why_text
    )
    of_ranks = [(one.rank, one.change.name) for one in found.kind_changes if one.rank is not None]
    assert of_ranks[:3] == [(6, "wait"), (7, "backward"), (7, "forward")]


def test_a_file_of_a_set_with_holes_is_replayed_with_what_is_there() -> None:
    results = run_recording(opened("schedule_plan", None), Parameters(compute_scale=2.0))  # type: ignore[arg-type]
    assert results.step_time_ns > results.measured.step_time_ns
    assert_accounts_and_path(results)


def test_who_comes_last_and_waits_itself_is_not_blamed_alone() -> None:
    """`Ranks 4-5 wait for rank 7 in optimizer_step` stood there as before when rank 7 was as fast as rank 6:
    it waits itself, for rank 1. A rerun says so: rank 7 mended they wait as long, and the sentence is true.
    """
    results = RecordedRun(opened("wd8_tp2_pp4", "20240923205004"))
    mended = results.with_parameters(Parameters(slow_rank=("7=0.4858",)))
    for run in (results, mended):
        (ns,) = [one.ns for one in run.waiting if (one.early, one.late, one.name) == (4, 7, "optimizer_step")]
        (wait,) = (one for one in find_waits(run) if one.operation == "optimizer_step")
        assert (wait.early, wait.early_stage, wait.ns) == (RankSet.of([4, 5]), 2, ns)
        assert (wait.late, wait.late_stage) == (RankSet.of([7]), 3)
        assert wait.own_wait == OwnWait(861_780_000, RankSet.of([7]), RankSet.of([1]), 0, "ep_allreduce")
        assert ns == 875_620_000
    # Who is waited for and does its own work is.
    stretches = wait_stretches(results)
    assert late_waits_itself(results, stretches, 5, 7, "recv_backward") == {}


@pytest.mark.parametrize(("name", "stamp"), RUNS)
def test_what_a_late_rank_waits_itself_is_what_it_waits_at_each_moment(name: str, stamp: str) -> None:
    """Planted: a wait that begins before the other one counted whole."""
    results = RecordedRun(opened(name, stamp))
    stretches = wait_stretches(results)
    index = {rank.rank: at for at, rank in enumerate(results.measured.ranks)}
    for one in results.waiting[:12]:
        early, late = index[one.early], index[one.late]
        own = late_waits_itself(results, stretches, early, late, one.name)
        theirs, others = results.accounts[early], results.accounts[late]
        edges = sorted({*theirs.edge, *others.edge})
        found = 0
        for start, end in itertools.pairwise(edges):
            here = (wait for wait in stretches[early] if wait.start <= start < wait.end)
            there = next(here, None)
            if there is None or there.rank != late or segment_name(results, early, there.segment) != one.name:
                continue
            waits = others.account[bisect_right(others.edge, start) - 1] in (WAIT, BUBBLE)
            found += waits * (end - start)
        assert sum(own.values()) == found <= one.ns
