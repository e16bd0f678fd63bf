"""Who sentences and worst places name: all ranks with the figure, whatever class they are of."""

import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from simcore.parameters import Parameters
from simcore.ranks import RankSet
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import Simulation, simulate
from simcore.units import duration
from simcore.words.sentences.faults import Growth, Peers, find_straggler
from simcore.words.sentences.model import RunSums, Who, name_stages
from simcore.words.sentences.network import KindLoad, find_busy_port, find_exposed
from simcore.words.sentences.pipeline import find_bubble
from simcore.workload import open_workload
from tests.analysis.booking import pair_ns, run
from tests.analysis.test_sentences import SEED_002
from tests.analysis.test_summary_figures import slowed
from tests.says import figures
from tests.strategies import Case, Cell, Row


def test_who_is_not_said_of_what_all_stages_wait_for_alike() -> None:
    rows = [Row("embedding_layer", Cell(1000, "ALLREDUCE", "tp", 8000))] * 4
    simulation = run(rows, {"tp": 2, "pp": 2}, schedule="1f1b")
    assert len(simulation.timeline.classes) == 2
    (found,) = find_exposed(RunSums(SimulatedRun(simulation)))
    assert found.most is not None
    assert (found.most.how, found.most.who) == ("all", None)
    (wait,) = [found.most.rows[name] for name in found.most.rows if name == "embedding_layer"]
    assert (wait.phases, wait.collectives) == (["forward"], ["all-reduce"])


def test_half_of_a_stage_is_not_most_of_it() -> None:
    # Rank 5 is slow: of the 8 ranks of stage 0 4 are neither it nor of its tp group.
    rows = [Row("embedding_layer", Cell(1000, "ALLREDUCE", "tp", 100))]
    simulation = run(
        rows, {"tp": 4, "dp": 2, "pp": 2}, slow_rank=("5=3",), schedule="1f1b", dim=("switch:16:1:5",)
    )
    named = [
        name_stages(RunSums(SimulatedRun(simulation)), (number,))
        for number in range(len(simulation.timeline.classes))
    ]
    assert len({who.words for who in named}) > 2
    assert not any(who.is_most for who in named)


def test_a_port_that_carries_all_that_it_can_carries_no_more() -> None:
    rows = [Row("mlp", Cell(0, "ALLREDUCE", "tp", 8000))]
    results = SimulatedRun(run(rows, {"tp": 2}, dim=("switch:8:1:0",)))
    (found,) = find_busy_port(RunSums(results))
    assert (found.dimension_id, found.dimension) == (0, results.simulation.cluster.dims[0])
    assert (found.ns, found.who.words) == (results.step_time_ns, "Ranks 0-1")
    assert found.kinds == (KindLoad("tp", found.ns, 8000),)


def test_ranks_that_wait_equally_long_are_named_together() -> None:
    """Ranks 0-3 have slow ports, of which 2 and 3 compute longer too; 4 and 5 have neither."""
    simulation = run(
        [Row("mlp", Cell(1000, "ALLREDUCE", "tp", 8000))], {"tp": 2, "dp": 3},
        slow_rank=("2=2", "3=2"), slow_link=tuple(f"0:{rank}=0.5" for rank in range(4)),
    )  # fmt: skip
    assert len(simulation.timeline.classes) == 3
    (found,) = find_exposed(RunSums(SimulatedRun(simulation)))
    assert found.most is not None
    assert found.most.who == Who(RankSet.of(range(4)))
    assert [wait.ns for wait in found.most.rows.values()] == [16_020]


def test_a_step_that_is_1_ns_longer_for_a_slow_rank_has_grown() -> None:
    rows = [Row("mlp", Cell(20, "ALLREDUCE", "tp", 2))]
    simulation = run(rows, {"tp": 2}, slow_rank=("1=1.05",))
    assert simulation.step_time_ns == 21 + pair_ns(2)
    (found,) = find_straggler(RunSums(SimulatedRun(simulation)))
    assert (list(found.late), found.position, found.ns) == ([1], (("tp", 1),), 1)
    assert found.peers == Peers("tp", waiting=1, of=1, least_ns=1, most_ns=1)
    assert found.growth is not None
    assert found.growth[:3] == (1, 20 + pair_ns(2), 1)
    assert SimulatedRun(simulation).sentences[0].lead == "Straggler. "


def test_a_bubble_absorbs_the_rest_when_it_absorbs_half_of_it() -> None:
    """Rank 7 waits 3 ns: 1 makes the step longer, and of the other 2 its bubble was 1 longer before."""
    rows = [Row("mlp", Cell(1, "ALLREDUCE", "tp", 2), wg=Cell(0, "ALLREDUCE", "dp", 16))]
    degrees = {"tp": 2, "dp": 2, "pp": 2, "pp_comm": 2}
    made = {"schedule": "1f1b", "microbatches": 3, "dim": ("switch:8:1:0",)}
    slow, before = run(rows, degrees, slow_rank=("6=2",), **made), run(rows, degrees, **made)
    stood = [(one.step_time_ns, *standing_of(one, 7)) for one in (slow, before)]
    assert stood == [(59, 3, 4, 2), (58, 0, 5, 2)]
    (found,) = find_straggler(RunSums(SimulatedRun(slow)))
    assert found.ns == 3
    assert found.growth == Growth(ns=1, without_ns=58, slow=1, absorbs=True, stage=1)


def standing_of(simulation: Simulation, rank: int) -> tuple[int, int, int]:
    """ns of a rank that are wait, bubble and idle."""
    accounts = SimulatedRun(simulation).accounts[simulation.timeline.folding.class_of(rank)]
    return accounts.wait_ns, accounts.bubble_ns, accounts.idle_ns


def test_whoever_waits_for_a_slow_rank_alone_is_named_with_its_peers() -> None:
    """A rank with tp and dp collectives in a pass: the peers of both wait for it."""
    rows = [
        Row("mlp", Cell(1000, "ALLREDUCE", "tp", 100)),
        Row("norm", Cell(1000, "ALLREDUCE", "dp", 100)),
    ]
    simulation = run(rows, {"tp": 4, "dp": 2}, slow_rank=("5=3",))
    results = SimulatedRun(simulation)
    # By the accounts of the dp peer: it waits for rank 5 in the second collective, and for nobody else.
    classes = simulation.timeline
    waits = {
        wait.kind: wait.ns
        for wait in results.class_waits
        if 5 in classes.classes[wait.late].ranks and len(wait.all_late) == 1
    }
    assert waits["dp"] == results.accounts[classes.folding.class_of(1)].wait_ns
    (found,) = find_straggler(RunSums(results))
    assert found.peers == Peers("dp", 1, 1, waits["dp"], waits["dp"])
    assert found.others == (Peers("tp", 3, 3, waits["tp"], waits["tp"]),)
    # Nobody else waits where the others have no collective with it.
    (alone,) = find_straggler(RunSums(SimulatedRun(run(rows[:1], {"tp": 4, "dp": 2}, slow_rank=("5=3",)))))
    assert (alone.peers.kind, alone.others) == ("tp", ())


@pytest.mark.slow
def test_who_waits_for_a_slow_rank_is_counted_whatever_class_it_is_of() -> None:
    """Rank 700 splits the peers of rank 37; no rank of them waits any other time for it."""
    one, two = (
        next(find_straggler(RunSums(SimulatedRun(simulation))))
        for simulation in (
            simulate(open_workload(SEED_002), Parameters(slow_rank=slow, microbatches=2))
            for slow in (("37=1.3",), ("37=1.3", "700=1.1"))
        )
    )
    for found in (one, two):
        assert (list(found.late), found.position) == ([37], (("stage", 0), ("dp", 4), ("tp", 5)))
        assert (found.peers.kind, found.peers.waiting, found.peers.of) == ("tp", 7, 7)
        assert duration(found.ns) == "267.0 ms"
    assert (one.figure(one.ns), one.others) == ("267.0 ms (3.2 %)", ())


@settings(max_examples=60)
@given(slowed())
def test_sentences_and_worst_places_are_the_same_where_each_rank_is_a_class(case: Case) -> None:
    """An override that splits a class changes no count and no name; `--no-fold` splits all of them."""
    workload, parameters = case
    folded, split = (
        SimulatedRun(simulate(workload, replace(parameters, no_fold=no_fold))) for no_fold in (False, True)
    )
    assert split.sentences == folded.sentences
    assert [place.words for place in split.figures.worst_findings] == [
        place.words for place in folded.figures.worst_findings
    ]


def test_ranks_that_wait_about_as_long_are_named_together_and_a_slow_rank_is_no_like_stage() -> None:
    """Seed 001 with rank 40 slow: rank 8 was named alone, 128.7 ms, of a stage whose others wait 127.6."""
    workload = open_workload("fixtures/001_moe_128npu_with_mistakes.txt")
    slow, whole = (simulate(workload, Parameters(slow_rank=rank)) for rank in (("40=1.3",), ()))
    (found,) = find_bubble(RunSums(SimulatedRun(slow)))
    of_stage = [
        accounts.bubble_ns
        for rank_class, accounts in zip(slow.timeline.classes, SimulatedRun(slow).accounts, strict=True)
        if rank_class.stage == 0
    ]
    assert max(of_stage) > min(of_stage) >= 0.99 * max(of_stage)
    assert found.who is not None
    assert (found.who.words, found.ns, found.equal_in) == ("Stage 0", max(of_stage), "")
    assert figures(found.text)[3:5] == [duration(max(of_stage)), "69.8 %"]
    assert duration(found.least_ns) != duration(found.ns)
    # Ranks that all wait as long have no `up to`; stages without a slow rank compute alike.
    (found,) = find_bubble(RunSums(SimulatedRun(whole)))
    assert found.who is not None
    assert (found.who.words, found.figure(found.ns)) == ("Stage 0", "118.5 ms (68.1 %)")
    assert (found.least_ns, found.equal_in) == (found.ns, "compute")


def test_the_stage_beside_who_waits_most_is_not_named_for_it() -> None:
    """A newcomer took stage 1 of `Stage 0 waits ... for stage 1` for who is to blame; it waits itself."""
    mistakes = "fixtures/001_moe_128npu_with_mistakes.txt"
    for path, parameters in (
        (mistakes, Parameters()),
        (SEED_002, Parameters()),
        (SEED_002, Parameters(schedule="interleaved", virtual_stages=8)),
    ):
        (found,) = find_bubble(RunSums(SimulatedRun(simulate(open_workload(path), parameters))))
        assert found.who is not None
        assert found.who.words == "Stage 0"
        assert "stage 1" not in found.text.lower().replace("stage 15", "")


def test_who_waits_for_a_slow_rank_is_not_blamed_for_what_others_wait_for_them() -> None:
    """With a gather beside compute dp waits as long as tp: `Ranks 60-63 make ranks 0-59,64-127 wait`, of
    which 61-63 wait for rank 60.
    """
    workload = open_workload("fixtures/000_gpt13b_tp4_old_header.txt")
    found = Parameters(schedule="1f1b", overlap_param_gather=True, slow_rank=("60=1.3",))
    simulation = simulate(workload, found)
    results = SimulatedRun(simulation)
    (found,) = find_straggler(RunSums(results))
    waits = {account: results.accounts[simulation.timeline.folding.class_of(rank)].wait_ns
             for account, rank in (("slow", 60), ("peer", 61), ("other", 0))}  # fmt: skip
    assert waits["slow"] == 0 < waits["peer"]
    assert results.sentences[0].lead == "Straggler. "
    assert (list(found.late), found.position) == ([60], (("dp", 15), ("tp", 0)))
    assert (found.peers.kind, found.peers.waiting, found.peers.of) == ("tp", 3, 3)
    assert duration(found.ns) == duration(waits["other"])
    assert [(through.whom, duration(through.ns)) for through in found.through] == [
        (None, duration(waits["other"]))
    ]
    assert found.growth is not None
    assert found.growth.ns > 0
    # Without the gather dp waits longer: rank 60 is named with those.
    alone = simulate(workload, Parameters(schedule="1f1b", slow_rank=("60=1.3",)))
    (found,) = find_straggler(RunSums(SimulatedRun(alone)))
    assert (found.peers.kind, found.peers.waiting, found.peers.of) == ("dp", 31, 31)
    assert found.through == ()
