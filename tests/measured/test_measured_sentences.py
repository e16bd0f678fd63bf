"""The words of each sentence on a measured run, made of facts alone: no run is needed to say them."""

from __future__ import annotations

import pytest

from simcore.ranks import RankSet
from simcore.records import replace
from simcore.replay.idle import GapCause, HostGap
from simcore.replay.stragglers import OperationCompute, SlowRank, Straggler
from simcore.words.rules import Sentence
from simcore.words.sentences.host import RunsNothing
from simcore.words.sentences.late import ComesLast
from simcore.words.sentences.replays import ReplayedStep, UnchangedCalls
from simcore.words.sentences.slow import RankComputesLonger, RankIsSlow, ShorterPhase, StageIsSlow
from simcore.words.sentences.spent import AccountHolders, InitialIdle, MostTime, SlotsAreEmpty
from simcore.words.sentences.waits import OwnWait, WaitFor

MS = 10**6
RERUN = ReplayedStep(40 * MS, 30 * MS)
ONE, MANY = SlowRank(7, 3, 40 * MS, 20 * MS, (6,)), SlowRank(7, None, 40 * MS, 20 * MS, (4, 5, 6))

SLOW = RankIsSlow(unit="rank", slow_rank=ONE, is_by_position=False, shorter=None, rerun=RERUN)
LONGER = RankComputesLonger(
    unit="device",
    slow_rank=MANY,
    is_by_position=False,
    operation="gemm",
    own_work=OperationCompute(2, 50 * MS),
    peers_work=OperationCompute(1, 10 * MS),
)
STAGE = StageIsSlow(
    stage=1, ns=60 * MS, others=1, others_ns=30 * MS, microbatches=4, rerun=RERUN, condition=""
)
LAST = ComesLast(
    straggler=Straggler(3, 4, 5, 9000, 509_000, 2 * MS, 3 * MS, MS, ("gemm", "relu"), 0, None),
    less_ns=0,
    rerun=None,
)
CALL = HostGap(0, 10 * MS, 10 * MS, "5000", "cudaLaunchKernel", "call", 0, 10 * MS, None)
NO_CALL = CALL._replace(name=None)
QUEUED = NO_CALL._replace(launched=0)
NOTHING = RunsNothing(unit="rank", cause=GapCause({0: [CALL]}), step_ns=40 * MS, next_op="gemm")
MOST = MostTime(
    unit="rank",
    ranks=4,
    whole_ns=100 * MS,
    compute_ns=60 * MS,
    account="wait",
    ns=25 * MS,
    with_messages=False,
    most=None,
    begin=None,
    outside_ns=0,
    knows_waits=True,
)
IDLE = replace(
    MOST,
    account="idle",
    most=AccountHolders(RankSet.of([2]), 20 * MS, False, False),
    begin=InitialIdle(15 * MS, 0, False),
)
WAIT = WaitFor(
    operation="dp_allreduce",
    early=RankSet.of([0]),
    early_stage=0,
    late=RankSet.of([2, 3]),
    late_stage=1,
    ns=21 * MS,
    own_wait=None,
)
ITSELF = OwnWait(19 * MS, RankSet.of([2]), RankSet.of([5]), None, "tp_allreduce")

WORDS: list[tuple[Sentence, str]] = [
    (
        SLOW,
        "Rank 7 is slow: it computes 40.000 ms, rank 6 (stage 3) 20.000 ms; as fast as rank 6, the step "
        "would take 30.000 ms (-25.0 %).",
    ),
    (
        replace(SLOW, shorter=ShorterPhase("forward", 10 * MS, 20 * MS)),
        "Rank 7 is slow: it computes 40.000 ms, rank 6 (stage 3) 20.000 ms, though its forward is shorter "
        "(10.000 ms, rank 6 20.000 ms); as fast as rank 6, with one factor on all of it, the step would take "
        "30.000 ms (-25.0 %).",
    ),
    (
        replace(SLOW, unit="device", slow_rank=MANY, rerun=None),
        "Device 7 is slow: it computes 40.000 ms, the median of the other devices 20.000 ms.",
    ),
    (
        replace(
            SLOW,
            slow_rank=MANY,
            is_by_position=True,
            rerun=ReplayedStep(40 * MS, 30 * MS, UnchangedCalls(1, "rank", 0, 9 * MS)),
        ),
        "Rank 7 is slow: it computes 40.000 ms, the median of ranks 4-6 at its place in other pipelines "
        "20.000 ms; as fast as its peers, the step would take 30.000 ms (-25.0 %), or less: 1 call without a "
        "partner keeps what it took (9.000 ms on rank 0).",
    ),
    (
        LONGER,
        "Device 7 computes longer: 40.000 ms, the median of the other devices 20.000 ms; they differ most in "
        "gemm (50.000 ms in 2 calls, the others' 10.000 ms in 1).",
    ),
    (
        replace(LONGER, unit="rank", slow_rank=ONE, own_work=OperationCompute(1, 50 * MS)),
        "Rank 7 computes longer: 40.000 ms, rank 6 (stage 3) 20.000 ms; they differ most in gemm (50.000 ms, "
        "rank 6 10.000 ms).",
    ),
    (
        STAGE,
        "Stage 1 is slow: its fastest rank computes 60.000 ms, that of the other stage 30.000 ms; with work "
        "moved until all stages compute alike, the step would take 30.000 ms (-25.0 %).",
    ),
    (
        replace(STAGE, others=3, condition="rank 3 is as fast as rank 2"),
        "Stage 1 is slow: its fastest rank computes 60.000 ms, those of the other stages 30.000 ms (median); "
        "once rank 3 is as fast as rank 2, work moved until all stages compute alike would take the step "
        "from 40.000 ms to 30.000 ms (-25.0 %).",
    ),
    (
        replace(STAGE, microbatches=1, rerun=ReplayedStep(40 * MS, 40 * MS)),
        "Stage 1 is slow: its fastest rank computes 60.000 ms, that of the other stage 30.000 ms; with 1 "
        "micro-batch one stage computes after the other, so work moved until all stages compute alike would "
        "gain nothing.",
    ),
    (
        replace(STAGE, rerun=ReplayedStep(1000 * MS, 999 * MS)),
        "Stage 1 is slow: its fastest rank computes 60.000 ms, that of the other stage 30.000 ms; work moved "
        "until all stages compute alike would gain next to nothing (-0.1 %).",
    ),
    (
        LAST,
        "Rank 3 comes last to 4 of 5 collectives, 9.000 us to 509.0 us after the next-latest; before them it "
        "computes 2.000 ms longer, the most in gemm and relu, and has 3.000 ms more in host gaps (1.000 ms "
        "of it before its first operation) than the median of the others.",
    ),
    (
        ComesLast(
            straggler=Straggler(3, 1, 1, 9000, 9000, 0, 3 * MS, 0, (), 10 * MS, CALL),
            less_ns=3 * MS,
            rerun=RERUN,
        ),
        "Rank 3 comes last to 1 of 1 collectives, 9.000 us after the next-latest; before that it has 3.000 "
        "ms more in host gaps than the median of the others; for 10.000 ms its host is in cudaLaunchKernel. "
        "On time, with the median of its peers' compute and host gaps (3.000 ms less), each by one factor, "
        "the step would take 30.000 ms (-25.0 %).",
    ),
    (
        NOTHING,
        "Rank 0 runs nothing for 10.000 ms (25.0 % of the step) before gemm: its host is in cudaLaunchKernel "
        "for all of it.",
    ),
    (
        replace(NOTHING, cause=GapCause({0: [CALL, CALL], 1: [CALL]})),
        "Ranks 0-1 run nothing for up to 20.000 ms (50.0 % of the step) in up to 2 gaps each: the host is in "
        "cudaLaunchKernel for up to 20.000 ms of it.",
    ),
    (
        replace(NOTHING, cause=GapCause({0: [QUEUED, QUEUED]})),
        "Rank 0 runs nothing for 20.000 ms (50.0 % of the step) in 2 gaps: what comes next was queued "
        "already for most of each.",
    ),
    (
        replace(NOTHING, cause=GapCause({0: [NO_CALL, NO_CALL]})),
        "Rank 0 runs nothing for 20.000 ms (50.0 % of the step) in 2 gaps: no single call of host thread "
        "5000, which launches next, covers a third of one.",
    ),
    (
        replace(NOTHING, cause=GapCause({0: [NO_CALL, NO_CALL._replace(thread="6000")]})),
        "Rank 0 runs nothing for 20.000 ms (50.0 % of the step) in 2 gaps: no single call of the host thread "
        "that launches next covers a third of one.",
    ),
    (
        MOST,
        "Compute is 60.0 % of the ranks' time. The largest other part, 25.0 %, is waiting for the last "
        "member of a collective.",
    ),
    (
        replace(MOST, ranks=1, ns=0, compute_ns=100 * MS),
        "All of the rank's time, 100.0 %, is compute.",
    ),
    (replace(MOST, ns=1), "Compute is 60.0 % of the ranks' time."),
    (
        replace(
            MOST,
            account="exposed tp",
            ns=70 * MS,
            knows_waits=False,
            most=AccountHolders(RankSet.of([0, 1, 2]), 30 * MS, False, True),
        ),
        "Most of the ranks' time, 70.0 %, is tp communication; ranks 0-2 have all of it, up to 30.000 ms; "
        "how much of it is waiting is not known.",
    ),
    (
        replace(
            MOST,
            compute_ns=0,
            ns=40 * MS,
            with_messages=True,
            most=AccountHolders(RankSet.of(range(4)), 10 * MS, True, True),
        ),
        "The largest part of the ranks' time, 40.0 %, is waiting for the last member of a collective, or the "
        "other end of a send or receive; all ranks have about as much, up to 10.000 ms.",
    ),
    (
        IDLE,
        "Compute is 60.0 % of the ranks' time. The largest other part, 25.0 %, is idle: host gaps, and the "
        "time before the first and after the last operation; rank 2 has the most, 20.000 ms, 15.000 ms of it "
        "before its first operation.",
    ),
    (
        replace(IDLE, begin=InitialIdle(15 * MS, 9 * MS, True), outside_ns=10 * MS),
        "Compute is 60.0 % of the ranks' time. The largest other part, 25.0 %, is idle: host gaps, and the "
        "time before the first and after the last operation; rank 2 has the most, 20.000 ms, 15.000 ms of it "
        "before its first operation, 9.000 ms of that while it is at the step before; 10.0 % of the time "
        "lies outside of the ranks' own steps.",
    ),
    (
        replace(IDLE, begin=None, is_cut_off=True),
        "Compute is 60.0 % of the ranks' time. The largest other part, 25.0 %, is idle: waiting that the "
        "file has cut off its communication; rank 2 has the most, 20.000 ms.",
    ),
    (
        SlotsAreEmpty(
            microbatches=1,
            stages=4,
            busy_ns=22 * MS,
            step_ns=100 * MS,
            bubble_ns=55 * MS,
            wait_ns=20 * MS,
            whole_ns=100 * MS,
        ),
        "With 1 micro-batch on 4 equal stages every stage would have 3 of 4 slots empty, 75.0 % of its time. "
        "Here the ranks compute for 22.0 %; 55.0 % are bubble, 20.0 % waiting for the last member of a "
        "collective. More micro-batches in a step would leave fewer of them empty; a recorded step does not "
        "tell how much that brings.",
    ),
    (
        WAIT,
        "Rank 0 (stage 0) waits for ranks 2-3 (stage 1) in dp_allreduce, up to 21.000 ms in all.",
    ),
    (
        replace(WAIT, early=WAIT.late, early_stage=None),
        "Ranks 2-3 wait for each other in dp_allreduce, up to 21.000 ms in all.",
    ),
    (
        replace(WAIT, own_wait=ITSELF),
        "Rank 0 (stage 0) waits for ranks 2-3 (stage 1) in dp_allreduce, up to 21.000 ms in all; 19.000 ms "
        "of it rank 2 itself waits for rank 5 in tp_allreduce.",
    ),
    (
        replace(WAIT, own_wait=OwnWait(MS, RankSet.of([2, 3]), RankSet.of([4]), 2, "dp_allreduce")),
        "Rank 0 (stage 0) waits for ranks 2-3 (stage 1) in dp_allreduce, up to 21.000 ms in all; 1.000 ms of "
        "it ranks 2-3 themselves wait for rank 4 (stage 2).",
    ),
]


@pytest.mark.parametrize(("sentence", "words"), WORDS, ids=[one.rule for one, _ in WORDS])
def test_a_sentence_is_its_facts_in_words(sentence: Sentence, words: str) -> None:
    assert sentence.text == words
