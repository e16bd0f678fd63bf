"""What sentences on simulated runs say, word for word: a record of facts made by hand, and its text."""

from __future__ import annotations

from typing import Any

import pytest

from simcore.analysis.blocks import UnequalBlocks
from simcore.analysis.fitting import MemorySaving
from simcore.cluster import Dimension
from simcore.ranks import RankSet
from simcore.records import replace
from simcore.trace.contexts import Imbalance
from simcore.words.rules import Sentence
from simcore.words.sentences.assumed import ScheduleRange
from simcore.words.sentences.compute import AnotherModel, ComputeBound, Computed, NoCompute, OneLayer
from simcore.words.sentences.experts import UnevenExperts
from simcore.words.sentences.faults import Growth, Peers, SlowLink, Straggler, Through
from simcore.words.sentences.memory import DoesNotFit
from simcore.words.sentences.model import Weighed, Who
from simcore.words.sentences.network import (
    BusyPort,
    Exposed,
    FreeCommunication,
    KindLoad,
    LateGradients,
    Left,
    MostWaited,
    Network,
    RowWait,
    Unsent,
    Whom,
)
from simcore.words.sentences.pipeline import (
    Bubble,
    Idle,
    Slots,
    SurplusMicrobatches,
    UnbalancedStages,
    UnequalMicrobatches,
)
from simcore.words.sentences.sequences import LongestMicrobatch, UnevenSequences
from simcore.words.sentences.shift import PathShift
from simcore.words.simulated_sentences import find_lead

# A step of 10 us.
STEP: dict[str, Any] = {"step_ns": 10_000}
STAGE_0 = Who(RankSet.of(range(4)), RankSet.of([0]))
FEW = Who(RankSet.of([0, 1, 4, 5]))

IMBALANCE = Imbalance(3, 1.5, 1000, 0.02, 9000, (1.25, 9500, 0.01), 9800, ())
STRAGGLER = Straggler(
    **STEP, ns=3000, late=RankSet.of([5]), early=RankSet.of([4, 6, 7]), position=(("dp", 1), ("tp", 1)),
    peers=Peers("tp", 3, 3, 3000, 3000), others=(), through=(), growth=None,
)  # fmt: skip
BUBBLE = Bubble(
    **STEP, ns=4000, mean_bubble_ns=3000, least_ns=4000, who=STAGE_0, stages=4,
    slots=Slots("1f1b", 4, 2, 1, False),
    equal_in="compute", is_assumed=True, other_ns=None,
)  # fmt: skip
SURPLUS = SurplusMicrobatches(
    **STEP, ns=8000, microbatches=1, layers=3, more_layers=(1,), more="lines 8-10", copied="line 4",
    flags="--without-lines 8-10",
)  # fmt: skip
EXPOSED = Exposed(
    **STEP, ns=2000, exposed_ns=2000, least_ns=2000, most_ns=2000, computes=True, kind="tp", has_late=False,
    most=MostWaited({"mlp": RowWait(2000, ["forward"], ["all-reduce"])}, "all", None, ""),
    cost_ns=None, is_standing=False,
)  # fmt: skip
LATE = LateGradients(
    **STEP,
    ns=1000,
    count=1,
    collective="all-reduce",
    row="grad",
    kind="dp",
    bytes=20_000,
    after_ns=1000,
    lasting_ns=1000,
    equal=0,
    is_all_after=True,
    is_split=False,
    after_optimizer=False,
    whom=Whom(1000),
    flags="",
    hidden_step_ns=10_000,
    left=None,
)
HIDDEN = replace(LATE, flags="--overlap-grad-reduce", hidden_step_ns=9500)
FREE = FreeCommunication(**STEP, ns=8000, is_cause=True, waits_less=False, unsent=None)
NO_CAUSE = replace(FREE, ns=9500, is_cause=False)
PORT = BusyPort(
    **STEP, ns=8000, dimension_id=0, dimension=Dimension("switch", 8, 1.0, 5), who=Who(RankSet.of([0, 1])),
    kinds=(KindLoad("tp", 8000, 4000),),
)  # fmt: skip
COMPUTE = ComputeBound(**STEP, ns=6000, most=(), whole_ns=6000)

SAID: list[tuple[Sentence, str]] = [
    (
        ScheduleRange(**STEP, ns=8000, is_way=False, schedule="1f1b"),
        "No schedule was given: the step is between 8.000 us, without a bubble and with only gradients and "
        "transfers hidden, and 10.000 us, as 1f1b (--schedule, --overlap-grad-reduce).",
    ),
    (
        ScheduleRange(**STEP, ns=8000, is_way=True, schedule="1f1b"),
        "No schedule was given: the step is between 8.000 us, one micro-batch through all stages and back, "
        "then the optimizer, with all else hidden, and 10.000 us, as 1f1b (--schedule, "
        "--overlap-grad-reduce).",
    ),
    (
        NoCompute(**STEP, ns=0, cells=6, sends=True),
        "All 6 compute cells of the file are 0 or 1 ns: the step is communication alone.",
    ),
    (
        NoCompute(**STEP, ns=0, cells=6, sends=False),
        "All 6 compute cells of the file are 0 or 1 ns, and no collective has two ranks to run on: the "
        "step says nothing of a training step.",
    ),
    (
        OneLayer(**STEP, ns=0),
        "The table lists one transformer layer, and nobody said how many there are: with --layers N what "
        "stands beside it takes a smaller share of the step.",
    ),
    (
        AnotherModel(**STEP, ns=0, other="rows are not rescaled: tp 2", can_rescale=False),
        "Rows are not rescaled: tp 2.",
    ),
    (
        AnotherModel(**STEP, ns=0, other="rows are not rescaled: tp 2", can_rescale=True),
        "Rows are not rescaled: tp 2. With --rescale on they are made anew for these degrees.",
    ),
    (COMPUTE, "Ranks compute 6.000 us (60.0 %) of the step."),
    (
        replace(COMPUTE, most=(Computed("mlp", 6000, 6000),)),
        "Ranks compute 6.000 us (60.0 %) of the step, all in mlp.",
    ),
    (
        replace(COMPUTE, most=(Computed("mlp", 4000, 5000),)),
        "Ranks compute 6.000 us (60.0 %) of the step, most in mlp (40.0 %, compute alone).",
    ),
    (
        replace(COMPUTE, most=(Computed("a", 2500, 2500), Computed("b", 2480, 2600))),
        "Ranks compute 6.000 us (60.0 %) of the step, most in a (25.0 %) and b (24.8 %), compute alone.",
    ),
    (
        UnevenExperts(**STEP, ns=1000, imbalance=IMBALANCE),
        "Rank 3 is the hot one: its experts get 1.50 times the mean of tokens, 2.0 % of all are dropped; "
        "with even loads the step would be 9.000 us (-10.0 %), with --expert-placement balanced 9.800 us "
        "(-2.0 %), with --expert-capacity 1.25, which drops 1.0 % of tokens, 9.500 us (-5.0 %).",
    ),
    (
        UnevenExperts(**STEP, ns=0, imbalance=Imbalance(3, 1.5, None, 0.0, None, None, None, ())),
        "Rank 3 is the hot one: its experts get 1.50 times the mean of tokens.",
    ),
    (
        UnevenSequences(
            **STEP,
            ns=1200,
            replicas=RankSet.of([3]),
            of_mean=1.234,
            early=RankSet.of(range(4)),
            kind="dp",
            even_ns=9000,
        ),
        "Attention of dp rank 3 takes 1.23 times the mean, as its sequences are longer: ranks 0-3 wait "
        "1.200 us (12.0 %) each for it in dp collectives; spread evenly, the step would be 9.000 us "
        "(-10.0 %).",
    ),
    (
        UnevenSequences(
            **STEP,
            ns=1200,
            replicas=RankSet.of([1, 3]),
            of_mean=1.5,
            early=RankSet.of([0]),
            kind="ep",
            even_ns=None,
        ),
        "Attention of dp ranks 1,3 takes 1.50 times the mean, as their sequences are longer: rank 0 waits "
        "1.200 us (12.0 %) for them in ep collectives.",
    ),
    (
        LongestMicrobatch(**STEP, ns=300, microbatch=5, replica=0, of_mean=1.75, even_ns=None),
        "Micro-batch 5 of dp rank 0 has the longest sequences: its attention takes 1.75 times the mean, 300 "
        "ns (3.0 %) more.",
    ),
    (STRAGGLER, "Rank 5 (dp 1, tp 1) makes its 3 tp peers wait 3.000 us (30.0 %) each."),
    (
        replace(
            STRAGGLER,
            early=RankSet.of([4]),
            peers=Peers("all", 1, 7, 3000, 3000),
            others=(Peers("ep", 2, 2, 400, 500),),
            through=(Through(None, 600),),
            growth=Growth(1000, 9000, 1, absorbs=True, stage=1),
        ),
        "Rank 5 (dp 1, tp 1) makes 1 of its 7 peers wait 3.000 us (30.0 %), its 2 ep peers 400 ns to 500 "
        "ns and through them all other ranks 600 ns; the step grows by only 1.000 us (11.1 %) against the "
        "run without the slow rank, the bubble of stage 1 absorbs the rest.",
    ),
    (
        replace(STRAGGLER, position=(), growth=Growth(1000, 9000, 2, absorbs=True, stage=None)),
        "Rank 5 makes its 3 tp peers wait 3.000 us (30.0 %) each; the step grows by only 1.000 us (11.1 %) "
        "against the run without the slow ranks, the idle time absorbs the rest.",
    ),
    (
        replace(STRAGGLER, growth=Growth(0, 10_000, 1, absorbs=True, stage=None), through=()),
        "Rank 5 (dp 1, tp 1) makes its 3 tp peers wait 3.000 us (30.0 %) each; the step is no longer for "
        "it, against the run without the slow rank.",
    ),
    (
        replace(STRAGGLER, late=RankSet.of([0, 1]), early=RankSet.of([2])),
        "Ranks 0-1 make rank 2 wait 3.000 us (30.0 %) in tp collectives.",
    ),
    (
        SlowLink(**STEP, ns=1000, links=("0:1=0.5",), without_ns=9000),
        "The port of rank 1 on dimension 0 has 0.5 x its bandwidth: the step is 1.000 us (11.1 %) longer "
        "than without.",
    ),
    (
        SlowLink(**STEP, ns=0, links=("0:1=0.5", "0:2=0.5"), without_ns=10_000),
        "2 ports are slow (0:1=0.5, 0:2=0.5), which costs the step nothing.",
    ),
    (
        DoesNotFit(**STEP, ns=0, stage=1, needed=90 * 10**9, limit=80 * 10**9, savings=()),
        "Does not fit: stage 1 needs 90.0 GB of 80.0 GB.",
    ),
    (
        DoesNotFit(
            **STEP,
            ns=0,
            stage=1,
            needed=90 * 10**9,
            limit=80 * 10**9,
            savings=(MemorySaving("zero 1", {}, 85 * 10**9, fits=False),),
        ),
        "Does not fit: stage 1 needs 90.0 GB of 80.0 GB; zero 1 needs 85.0 GB, which does not fit either.",
    ),
    (
        BUBBLE,
        "Ranks wait 3.000 us (30.0 %) for other stages on average, stage 0 longest, 4.000 us (40.0 %): "
        "with 4 stages and 2 micro-batches 1f1b leaves 3 of 5 slots empty on each, as bubble or, once "
        "done, idle; all stages compute alike, embedding and loss assumed on each.",
    ),
    (
        replace(BUBBLE, who=None, stages=2, least_ns=3980, slots=None, equal_in="collectives", other_ns=9000),
        "Both stages wait about as long for the other, up to 4.000 us (40.0 %). All stages run the same "
        "collectives, embedding and loss assumed on each (on first and last alone: -10.0 %).",
    ),
    (
        replace(BUBBLE, who=None, slots=Slots("1f1b", 4, 2, 3, is_uneven=True), equal_in=""),
        "All stages wait about as long for the others, 4.000 us (40.0 %): the micro-batches are unequal, "
        "and with 4 stages of 3 chunks each and 2 equal ones 1f1b would leave 3 of 9 slots empty on each.",
    ),
    (
        UnbalancedStages(**STEP, ns=1000, stage=1, busy_ns=5000, others_ns=3000),
        "Stage 1 computes 5.000 us, the others 3.000 us on average and wait for it: balanced, each would "
        "compute 4.000 us.",
    ),
    (Idle(**STEP, ns=1000, who=STAGE_0), "Stage 0 is done 1.000 us (10.0 %) before the step ends."),
    (Idle(**STEP, ns=1000, who=FEW), "Ranks 0-1,4-5 are done 1.000 us (10.0 %) before the step ends."),
    (
        Idle(**STEP, ns=1000, who=replace(STAGE_0, is_most=True)),
        "Most of stage 0 is done 1.000 us (10.0 %) before the step ends.",
    ),
    (
        UnequalMicrobatches(
            **STEP, ns=0, blocks=UnequalBlocks(0, 1, 2.0), layers=(2, 1), lines=("lines 3-5", "lines 6-7")
        ),
        "Micro-batch 0 (lines 3-5) computes 2.0 times as long as 1 (lines 6-7): it has 2 layers, the other "
        "1. A mean of unequal micro-batches says little; compare steps by the same work.",
    ),
    (
        SURPLUS,
        "Its rows make 2 micro-batches, of 3 and 1 layers; its header asks for one with 3 (--without-lines "
        "8-10: 8.000 us). Lines 8-10 are 1 more block, of 1 layer, which repeats line 4.",
    ),
    (
        replace(SURPLUS, microbatches=2, more_layers=(1, 2), copied=""),
        "Its rows make 4 micro-batches, of 3, 1 and 2 layers; its header asks for 2 with 3 "
        "(--without-lines 8-10: 8.000 us). Lines 8-10 are 2 more blocks, of 1 and 2 layers.",
    ),
    (
        Network(
            **STEP,
            ns=5000,
            exposed_ns=5000,
            least_ns=4000,
            most_ns=6000,
            computes=True,
            parts={"tp": 1000, "dp": 500, "all": 0, "late": 3500},
            late=("dp",),
        ),
        "Compute waits 5.000 us (50.0 %) for communication on the mean rank: 35.0 % dp gradients after the "
        "last backward, 10.0 % tp, 5.0 % other dp.",
    ),
    (
        EXPOSED,
        "Compute waits 2.000 us (20.0 %) for tp collectives on each rank, all for mlp (forward all-reduce).",
    ),
    (
        replace(EXPOSED, kind="all", computes=False, most_ns=3000, has_late=True, most=None),
        "The mean rank waits 2.000 us (20.0 %) for other collectives of all ranks.",
    ),
    (
        replace(EXPOSED, kind="pp", most=None, cost_ns=4000, is_standing=True),
        "Transfers between stages cost 4.000 us (40.0 %): compute waits 2.000 us (20.0 %) for them on each "
        "rank, the rest is bubble and idle time.",
    ),
    (
        replace(
            EXPOSED,
            most=MostWaited({"layernorm": RowWait(1500, [], ["all-reduce"])}, "most", FEW, "none of it"),
        ),
        "Compute waits 2.000 us (20.0 %) for tp collectives on each rank, most for layernorm (all-reduce "
        "of 2 B of each parameter, 1.500 us on ranks 0-1,4-5; Megatron sends none of it).",
    ),
    (
        LATE,
        "The gradient all-reduce of grad (dp, 20.0 kB) comes after the last backward: nothing hides 1.000 "
        "us (10.0 %).",
    ),
    (
        replace(LATE, is_split=True, is_all_after=False, kind="all", after_optimizer=True),
        "The last piece of the gradient all-reduce of grad (all ranks, 20.0 kB) ends after the last "
        "backward and, as SimAI runs the rows, after the optimizer: nothing hides 1.000 us (10.0 %).",
    ),
    (
        replace(LATE, count=3, lasting_ns=1200, is_all_after=False, whom=Whom(1000, is_nearly=True)),
        "3 gradient collectives, the all-reduce of grad longest (dp, 20.0 kB, 1.000 us of 1.200 us), end "
        "after the last backward: nothing hides up to 1.000 us (10.0 %).",
    ),
    (
        replace(LATE, count=3, equal=1, whom=Whom(1000, False, FEW, 200, is_rest=True, is_slow=True)),
        "3 gradient collectives, longest of them the all-reduce of grad and 1 more (dp, 20.0 kB, 1.000 us "
        "each), come after the last backward: nothing hides 1.000 us (10.0 %) on ranks 0-1,4-5, behind a "
        "slow link, and 200 ns on the others.",
    ),
    (
        replace(LATE, whom=Whom(1000, who=STAGE_0, usual_ns=200)),
        "The gradient all-reduce of grad (dp, 20.0 kB) comes after the last backward: nothing hides 1.000 "
        "us (10.0 %) on stage 0 and 200 ns on most.",
    ),
    (
        replace(LATE, whom=Whom(1000, who=STAGE_0)),
        "The gradient all-reduce of grad (dp, 20.0 kB) comes after the last backward: nothing hides 1.000 "
        "us (10.0 %) on stage 0 and less on the others.",
    ),
    (
        replace(HIDDEN, left=Left(500, None)),
        "The gradient all-reduce of grad (dp, 20.0 kB) comes after the last backward: nothing hides 1.000 "
        "us (10.0 %); with --overlap-grad-reduce, in pieces and assumed as fast beside compute as alone, "
        "the step would be 9.500 us (-5.0 %), since 500 ns would still come after the last backward.",
    ),
    (
        replace(HIDDEN, left=Left(400, None, slower_ns=100)),
        "The gradient all-reduce of grad (dp, 20.0 kB) comes after the last backward: nothing hides 1.000 "
        "us (10.0 %); with --overlap-grad-reduce, in pieces and assumed as fast beside compute as alone, "
        "the step would be 9.500 us (-5.0 %), since 400 ns would still come after the last backward, and "
        "compute beside them takes 100 ns longer.",
    ),
    (
        replace(HIDDEN, left=Left(400, STAGE_0, later_ns=100)),
        "The gradient all-reduce of grad (dp, 20.0 kB) comes after the last backward: nothing hides 1.000 "
        "us (10.0 %); with --overlap-grad-reduce, in pieces and assumed as fast beside compute as alone, "
        "the step would be 9.500 us (-5.0 %); 400 ns would still come after the last backward of stage 0, "
        "which would end 100 ns later.",
    ),
    (FREE, "With all communication free the step would be 8.000 us (-20.0 %)."),
    (
        replace(FREE, waits_less=True),
        "With all communication free the step would be 8.000 us (-20.0 %), as ranks wait less for each "
        "other, too.",
    ),
    (NO_CAUSE, "The network is not the cause: without it the step is 9.500 us (-5.0 %)."),
    (
        replace(NO_CAUSE, unsent=Unsent(4, ("a", "b", "c"), None)),
        "The network is not the cause: without it the step is 9.500 us (-5.0 %), but 4 rows of the file (a "
        "and 2 others) send nothing backward.",
    ),
    (
        replace(NO_CAUSE, unsent=Unsent(1, ("a",), 10_500)),
        "The network is not the cause: without it the step is 9.500 us (-5.0 %), but 1 row of the file "
        "sends nothing backward (if it did: 10.500 us, +5.0 %).",
    ),
    (
        PORT,
        "The ports of dimension 0 (switch 8, 1 GB/s, 5 ns a hop) are busy 80.0 % of the step on ranks 0-1, "
        "all with tp (4.0 kB).",
    ),
    (
        replace(PORT, ns=12_000),
        "The ports of dimension 0 (switch 8, 1 GB/s, 5 ns a hop) are busy 120.0 % of the step on ranks "
        "0-1, most with tp (4.0 kB): more than they can carry, which only --network shared takes into "
        "account.",
    ),
    (
        PathShift(compute_ns=(5000, 3550), kind="dp", kind_ns=(900, 10_100), has_gradients=True),
        "compute -29.0 %, now the step waits for gradients: dp on the path 0.900 -> 10.100 us",
    ),
    (
        PathShift(compute_ns=(0, 0), kind="tp", kind_ns=(2000, 3000)),
        "the step waits longer for tp collectives: tp on the path 2.000 -> 3.000 us",
    ),
    (
        PathShift(compute_ns=(1000, 1500), kind="pp", kind_ns=(2000, 0)),
        "compute +50.0 %, the step no longer waits for transfers between stages: pp on the path "
        "2.000 -> 0.000 us",
    ),
    (PathShift(compute_ns=(1000, 1000)), ""),
]


@pytest.mark.parametrize(("sentence", "text"), SAID, ids=lambda one: getattr(one, "rule", ""))
def test_a_sentence_says_its_facts(sentence: Sentence, text: str) -> None:
    assert sentence.text == sentence.text_with_lead == text
    assert replace(sentence, lead="First. ").text_with_lead == f"First. {text}"


def cause(name: str, lost_ns: int, *, fault: bool = False, saved_ns: int = 0) -> Weighed:
    return OneLayer(**STEP, ns=0, cause=name, lost_ns=lost_ns, fault=fault, saved_ns=saved_ns)


@pytest.mark.parametrize(("causes", "busy_ns", "lead"), [
    ([cause("straggler", 100, fault=True), cause("compute", 6000)], 6000, "Straggler. "),
    ([cause("compute", 9000)], 9000, "Compute-bound. "),
    ([cause("compute", 6000), cause("bubble", 3000)], 6000, "Mostly compute, then bubble. "),
    ([cause("compute", 6000), cause("bubble", 1000)], 6000, "Mostly compute. "),
    ([cause("compute", 4000), cause("bubble", 1000)], 4000, "Compute, then several causes. "),
    ([cause("compute", 6000), cause("network", 3000, saved_ns=2000)], 6000,
     "Mostly compute, then network: gradient overlap would save 2.000 us (20.0 %). "),
    ([cause("network", 4000)], 3000, "Network-bound. "),
    ([cause("bubble", 3000)], 3000, "Bubble. "),
    ([cause("late gradients", 6000)], 3000, "Late gradients. "),
])  # fmt: skip
def test_what_leads_says_what_the_step_goes_to(causes: list[Weighed], busy_ns: int, lead: str) -> None:
    assert find_lead(causes, busy_ns) == lead
