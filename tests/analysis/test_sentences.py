"""Runs whose cause is known by construction: the report names it in words, else it is silent."""

from collections.abc import Iterable
from pathlib import Path
from tempfile import mkdtemp
from typing import TypeVar

import pytest
from hypothesis import given

from simcore.analysis.model_use import describe_model_change
from simcore.model.known_models import MODELS
from simcore.model.maker import ModelMaker
from simcore.model.sizes import Model
from simcore.parameters import Parameters
from simcore.records import replace
from simcore.render.report.pages import run_page
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import Simulation, simulate
from simcore.units import duration, percent
from simcore.words.sentences.compute import (
    AnotherModel,
    ComputeBound,
    Computed,
    NoCompute,
    find_compute_bound,
    find_no_compute,
)
from simcore.words.sentences.faults import Peers, SlowLink, Straggler, find_slow_link
from simcore.words.sentences.model import RunSums, Weighed
from simcore.words.sentences.network import (
    Exposed,
    FreeCommunication,
    KindLoad,
    MostWaited,
    Network,
    RowWait,
    find_busy_port,
    find_free_communication,
)
from simcore.words.sentences.pipeline import Bubble, Slots, UnbalancedStages, find_bubble, find_idle
from simcore.words.sentences.ports import find_shared_port
from simcore.words.simulated_sentences import RULES
from simcore.workload import open_workload
from simcore.workload.traffic import with_backward_sent
from tests.analysis.booking import pair_ns, run
from tests.analysis.test_blocks import uneven_microbatches
from tests.flows.test_ports import shared_run
from tests.flows.test_two_jobs import jobs_at
from tests.says import figures
from tests.strategies import Case, Cell, Row, cases, layer
from tests.workload.texts import read, text_of

SEED_002 = "fixtures/002_gpt_1024npu.txt"
BLOCK = layer("embedding_layer", 1000, 1000, 1000)
COMPUTES = [layer("embedding_layer", 10_000)]
One = TypeVar("One", bound=Weighed)


def said(simulation: Simulation) -> list[str]:
    """Returns the rules that speak, each once, in their order."""
    return list(dict.fromkeys(one.rule for one in SimulatedRun(simulation).sentences))


def only(found: Iterable[One]) -> One:
    """The one sentence that a rule has of a run."""
    (one,) = found
    return one


def sums(simulation: Simulation) -> RunSums:
    return RunSums(SimulatedRun(simulation))


def first(simulation: Simulation) -> Weighed:
    return SimulatedRun(simulation).sentences[0]


def straggler() -> Simulation:
    rows = [Row("embedding_layer", Cell(1000, "ALLREDUCE", "tp", 100))]
    return run(rows, {"tp": 4, "dp": 2}, slow_rank=("5=3",))


def exposed_all_reduce() -> Simulation:
    rows = [Row("mlp_1", Cell(1000, "ALLREDUCE", "tp", 8000)), layer("mlp_2", 1000)]
    return run(rows, {"tp": 2})


def bubble_bound() -> Simulation:
    return run([BLOCK] * 2, {"pp": 4}, schedule="1f1b")


def mostly_compute() -> Simulation:
    return run([BLOCK] * 4, {"pp": 4}, schedule="1f1b")


def several_kinds(compute_ns: int) -> Simulation:
    """Three stages that wait for tp and ep collectives as long as for each other."""
    mlp = Row("embedding_layer", Cell(compute_ns, "ALLREDUCE", "tp", 2000))
    moe = Row("moe", Cell(compute_ns, "ALLTOALL", "ep", 4000))
    return run([mlp, moe] * 4, {"tp": 2, "ep": 2, "dp": 2, "pp": 3}, schedule="1f1b", dim=("switch:16:1:5",))


def late_gradients(**parameters: bool) -> Simulation:
    rows = [Row("grad_param_comm", wg=Cell(0, "ALLREDUCE", "dp", 20_000))]
    rows += [row for _ in range(4) for row in (BLOCK, layer("mlp", 2000, 2000, 2000))]
    return run(rows, {"dp": 2, "pp": 2, "vpp": 0}, schedule="1f1b", **parameters)


def unbalanced_stages() -> Simulation:
    rows = [*([layer("embedding_layer", 10), layer("mlp", 1000), layer("final_norm", 4000)] * 8)]
    return run(rows, {"pp": 2}, schedule="1f1b", stage_layout="megatron")


def test_a_slow_rank_is_named_with_who_waits_for_it_and_what_it_costs() -> None:
    sentence = first(straggler())
    assert isinstance(sentence, Straggler)
    assert (sentence.rule, sentence.lead, sentence.ns) == ("straggler", "Straggler. ", 2000)
    assert (list(sentence.late), sentence.position) == ([5], (("dp", 1), ("tp", 1)))
    assert sentence.peers == Peers("tp", 3, 3, 2000, 2000)
    assert len(sentence.early) == 3
    assert sentence.growth is not None
    assert (sentence.growth.ns, sentence.growth.slow) == (2000, 1)
    assert sentence.growth.without_ns == sentence.step_ns - 2000


def test_what_a_bubble_absorbs_of_a_slow_rank_is_said() -> None:
    simulation = simulate(open_workload(SEED_002), Parameters(slow_rank=("37=1.3",), microbatches=4))
    sentence = first(simulation)
    assert isinstance(sentence, Straggler)
    assert (list(sentence.late), sentence.position) == ([37], (("stage", 0), ("dp", 4), ("tp", 5)))
    assert (sentence.peers.kind, sentence.peers.waiting, sentence.peers.of) == ("tp", 7, 7)
    assert (sentence.others, sentence.through) == ((), ())
    assert figures(sentence.text)[-5:] == ["530.5 ms", "5.7 %", "136.3 ms", "1.5 %", "0"]
    assert sentence.growth is not None
    assert (sentence.growth.absorbs, sentence.growth.stage) == (True, 0)
    assert 2 * sentence.growth.ns < sentence.ns


def test_an_exposed_all_reduce_is_the_cause() -> None:
    simulation = exposed_all_reduce()
    sentence = first(simulation)
    assert isinstance(sentence, Exposed)
    assert (sentence.rule, sentence.lead, sentence.ns) == ("exposed", "Network-bound. ", pair_ns(8000))
    assert figures(sentence.text) == ["8.020 us", "80.0 %"]
    assert (sentence.computes, sentence.kind, sentence.has_late) == (True, "tp", False)
    assert sentence.least_ns == sentence.most_ns == sentence.ns
    assert sentence.most == MostWaited(
        {"mlp_1": RowWait(sentence.ns, ["forward"], ["all-reduce"])}, "all", None, ""
    )
    free = only(find_free_communication(sums(simulation)))
    assert (free.ns, free.is_cause, free.waits_less) == (2000, True, False)


def test_a_bubble_is_the_cause_and_its_slots_are_counted() -> None:
    assert said(bubble_bound()) == ["bubble", "idle"]
    found = first(bubble_bound())
    assert isinstance(found, Bubble)
    assert (found.lead, found.step_ns) == ("Bubble-bound. ", 15_000)
    assert (found.mean_bubble_ns, found.ns, found.least_ns) == (6000, 9000, 9000)
    assert found.who is not None
    assert found.who.words == "Stage 0"
    assert found.slots == Slots("1f1b", stages=4, microbatches=2, chunks=1, is_uneven=False)
    assert (found.equal_in, found.is_assumed, found.other_ns) == ("compute", True, None)
    done = only(find_idle(sums(bubble_bound())))
    assert (done.who.words, done.ns) == ("Stage 3", 6000)


def test_compute_leads_where_it_takes_half_of_the_step_and_names_what_comes_second() -> None:
    assert said(mostly_compute()) == ["compute-bound", "bubble", "idle"]
    computes = first(mostly_compute())
    assert isinstance(computes, ComputeBound)
    assert computes.lead == "Mostly compute, then bubble. "
    assert (computes.step_ns, computes.ns, computes.most) == (21_000, 12_000, ())
    found = only(find_bubble(sums(mostly_compute())))
    assert (found.mean_bubble_ns, found.ns, found.least_ns) == (6000, 9000, 9000)
    assert found.who is not None
    assert found.who.words == "Stage 0"
    assert found.slots == Slots("1f1b", stages=4, microbatches=4, chunks=1, is_uneven=False)
    assert (found.equal_in, found.is_assumed) == ("compute", True)
    done = only(find_idle(sums(mostly_compute())))
    assert (done.who.words, done.ns) == ("Stage 3", 6000)


def test_compute_of_a_layer_is_said_to_be_alone_where_its_communication_would_be_another_figure() -> None:
    """Of seed 000: 29.2 % of the step in mlp_norm, and 29.9 with what it waits for, as the layers have it."""
    results = SimulatedRun(simulate(open_workload("fixtures/000_gpt13b_tp4_old_header.txt"), Parameters()))
    sentence = only(find_compute_bound(RunSums(results)))
    assert [one.name for one in sentence.most] == ["mlp_norm"]
    assert figures(sentence.text)[-1] == "29.2 %"
    # The layer that takes most is another one, and computes nothing.
    (layer_words,) = [one.words for one in results.figures.worst_findings if one.what == "layer"]
    assert layer_words == "138.4 ms (32.2 %) of communication: grad_param_comm"
    groups, step = results.layer_groups, results.step_time_ns
    computed, exposed = (groups.sum_by_name(ns)["mlp_norm"] for ns in (groups.compute_ns, groups.exposed_ns))
    assert sentence.most[0][1:] == (computed, computed + exposed)
    assert [round(1000 * ns / step) for ns in (computed, computed + exposed)] == [292, 299]


def test_compute_that_leads_is_said_with_what_hiding_gradients_would_save() -> None:
    """Seed 000: compute is 60 % of the step, and what can be saved first is the reduce-scatter behind it."""
    file = open_workload("fixtures/000_gpt13b_tp4_old_header.txt")
    found = SimulatedRun(simulate(file, Parameters()))
    step = found.step_time_ns
    again = simulate(file, Parameters(schedule="1f1b", overlap_grad_reduce=True)).step_time_ns
    saved = f"{duration(step - again)} ({percent(step - again, step)} %)"
    assert saved == "138.4 ms (32.2 %)"
    assert found.sentences[0].lead == (f"Mostly compute, then network: gradient overlap would save {saved}. ")
    # With it, nothing is left to save so.
    hidden = SimulatedRun(simulate(file, Parameters(schedule="1f1b", overlap_grad_reduce=True)))
    assert hidden.sentences[0].lead == "Compute-bound. "


@pytest.mark.parametrize(("size", "saves"), [(4_000, False), (20_000, True)])
def test_a_change_that_saves_less_than_a_tenth_is_not_named_beside_compute(size: int, saves: bool) -> None:
    rows = [Row("grad_param_comm", wg=Cell(0, "ALLREDUCE", "dp", size))]
    rows += [layer("mlp", 2000, 2000, 2000) for _ in range(8)]
    results = SimulatedRun(run(rows, {"dp": 2, "pp": 1}, schedule="1f1b"))
    (late,) = [one for one in results.sentences if one.rule == "late-gradients"]
    again = run(rows, {"dp": 2, "pp": 1}, schedule="1f1b", overlap_grad_reduce=True).step_time_ns
    assert late.saved_ns == results.step_time_ns - again > 0
    assert (late.saved_ns >= results.step_time_ns / 10) is saves
    assert (": gradient overlap would save" in results.sentences[0].lead) is saves


def test_layers_that_compute_as_long_are_named_together() -> None:
    """Seed 002: mlp_row and mlp_column each compute 2.027 s. Of three, one and how many more."""
    found = SimulatedRun(
        simulate(open_workload("fixtures/002_gpt_1024npu.txt"), Parameters(pp=1, schedule="layer-loop"))
    )
    most = only(find_compute_bound(RunSums(found))).most
    assert {one.name for one in most} == {"mlp_column", "mlp_row"}
    assert len({percent(one.ns, found.step_time_ns) for one in most}) == 1
    assert all(one.both_ns > one.ns for one in most)
    three = run([layer(name, 5000) for name in ("embedding_layer", "mlp", "attention")], {})
    computes = only(find_compute_bound(sums(three)))
    assert computes.most == tuple(
        Computed(name, 5000, 5000) for name in ("embedding_layer", "mlp", "attention")
    )
    assert computes.whole_ns == 15_000


@pytest.mark.parametrize(
    ("rows", "named"),
    [
        # 1.4 % less is as much, 2.1 % are not.
        ({"att": 36_500, "mlp": 36_000, "head": 27_500}, ["att", "mlp"]),
        ({"att": 36_500, "mlp": 35_700, "head": 27_800}, ["att"]),
        # One layer by its names: its rows, where few of them are most of it.
        ({"Layer0": 5, "Layer1": 4000}, ["Layer1"]),
        ({"Layer0": 3000, "Layer1": 7000}, ["Layer1"]),
        ({f"Layer{number}": 1000 for number in range(8)}, []),
        ({"mlp_0": 1000, "mlp_1": 1000, "norm": 0}, ["mlp_0", "mlp_1"]),
    ],
)
def test_what_computes_most_is_named_with_what_computes_nearly_as_much(
    rows: dict[str, int], named: list[str]
) -> None:
    simulation = run([layer(name, ns) for name, ns in rows.items()], {})
    found = only(find_compute_bound(sums(simulation)))
    assert found.most == tuple(Computed(name, rows[name], rows[name]) for name in named)
    assert simulation.step_time_ns == found.whole_ns == sum(rows.values())


def test_kinds_of_communication_lead_together() -> None:
    """Stages wait for each other longer than for either kind, and for both together less than that."""
    simulation = several_kinds(800)
    facts = RunSums(SimulatedRun(simulation))
    kinds = [facts.mean_ns["exposed tp"], facts.mean_ns["exposed ep"]]
    assert max(kinds) < facts.mean_ns["bubble"] + facts.mean_ns["idle"] < sum(kinds) == facts.exposed_ns
    found = facts.results.sentences
    assert [one.rule for one in found[:3]] == ["network", "free-communication", "bubble"]
    assert isinstance(found[0], Network)
    assert (found[0].lead, found[0].computes, found[0].late) == ("Network-bound. ", True, ())
    assert figures(found[0].text) == ["16.120 us", "47.7 %", "23.9 %", "23.8 %"]
    parts = found[0].parts
    assert [what for what in sorted(parts, key=lambda what: -parts[what]) if parts[what]] == ["tp", "ep"]
    assert found[0].least_ns == found[0].most_ns


def test_what_comes_second_is_named_by_all_of_it() -> None:
    """Compute leads below half of the step where nothing else comes near it."""
    facts = RunSums(SimulatedRun(several_kinds(4000)))
    assert facts.mean_busy_ns < facts.step_ns / 2
    found = facts.results.sentences
    assert found[0].lead == "Compute, then network. "
    assert [one.rule for one in found[:3]] == ["compute-bound", "free-communication", "network"]


@pytest.mark.parametrize(
    ("final_ns", "gradient_bytes", "blocks", "size", "lead", "causes"),
    [
        (4000, 1000, 1, 2000, "Network. ", ["network", "unbalanced-stages", "bubble"]),
        (0, 200, 8, 50, "Mostly compute. ", ["compute-bound", "network", "bubble"]),
        # 37.9 % of the step: the largest part, and not most of it.
        (300, 200, 2, 20, "Compute, then several causes. ", ["compute-bound", "bubble", "unbalanced-stages"]),
    ],
)
def test_what_is_less_than_half_of_the_rest_binds_no_step_and_is_no_second(
    final_ns: int, gradient_bytes: int, blocks: int, size: int, lead: str, causes: list[str]
) -> None:
    """Stages wait for the last one, for their neighbours and for the network."""
    block = [Row("embedding_layer", Cell(100, "ALLREDUCE", "tp", size)), *[layer("mlp", 100)] * 2]
    rows = [Row("grad_param_comm", wg=Cell(0, "ALLREDUCE", "dp", gradient_bytes))]
    rows += [*block, layer("final_norm", final_ns)] * blocks
    dim = ("switch:16:1:5",)
    degrees = {"pp": 3, "tp": 2, "dp": 2}
    found = SimulatedRun(run(rows, degrees, schedule="1f1b", stage_layout="megatron", dim=dim)).sentences
    assert found[0].lead == lead
    assert [one.rule for one in found if one.cause][:3] == causes


def test_what_stages_wait_for_communication_of_others_the_network_costs() -> None:
    """Nothing is computed but 10 ns: half of the step is a bubble, and without communication all is gone."""
    row = Row("embedding_layer", Cell(10, "ALLREDUCE", "tp", 8000))
    found = SimulatedRun(run([row], {"tp": 2, "pp": 2}, schedule="1f1b")).sentences
    assert [one.rule for one in found[:3]] == ["exposed", "free-communication", "bubble"]
    assert found[0].lead == "Network-bound. "
    assert found[1].ns < found[1].step_ns / 100


def test_slots_of_interleaved_are_chunks() -> None:
    rows = [row for _ in range(4) for row in (layer("embedding_layer"), *[layer("mlp", 30, 30, 30)] * 4)]
    simulation = run(rows, {"pp": 2}, schedule="interleaved", virtual_stages=2)
    slots = only(find_bubble(sums(simulation))).slots
    assert slots == Slots("interleaved", stages=2, microbatches=4, chunks=2, is_uneven=False)
    assert figures(slots.words)[-2:] == ["1", "9"]


def test_slots_are_not_counted_where_they_do_not_give_the_time_that_is_lost() -> None:
    found = only(find_bubble(sums(run([BLOCK] * 4, {"pp": 4}, schedule="zb-h1"))))
    assert (found.who, found.stages, found.slots) == (None, 4, None)
    assert (found.ns, found.least_ns, found.step_ns) == (3000, 3000, 15_000)
    assert (found.equal_in, found.is_assumed) == ("compute", True)


def test_that_stages_are_alike_is_said_to_be_assumed_with_the_step_of_the_other_layout() -> None:
    """An engineer took it for a finding, and the layout that undoes it for advice."""
    rows = [layer("embedding_layer", 400, 400, 400), *[layer("mlp", 1000, 1000, 1000)] * 4] * 2
    workload = run(rows, {"pp": 4}, schedule="1f1b").workload

    def alike(**parameters: object) -> tuple[bool, int | None, int | None]:
        """Whether it is assumed that they are alike; the other step before and after its run."""
        results = SimulatedRun(simulate(workload, Parameters(pp=4, schedule="1f1b", **parameters)))  # type: ignore[arg-type]
        before = only(find_bubble(RunSums(results)))
        assert "megatron_step_ns" not in vars(results)
        results.weigh_assumptions()
        (after,) = [one for one in results.sentences if isinstance(one, Bubble)]
        assert before.equal_in == after.equal_in == "compute"
        assert before.is_assumed == after.is_assumed
        return after.is_assumed, before.other_ns, after.other_ns

    step, other = (
        simulate(workload, Parameters(pp=4, schedule="1f1b", stage_layout=name)).step_time_ns
        for name in ("uniform", "megatron")
    )
    assert other < step
    assert alike() == (True, None, other)
    # Who asked for it assumes nothing; of less than a per cent of compute they are alike anyway.
    assert not alike(stage_layout="uniform")[0]
    little = (*(f"compute {phase}=1" for phase in ("fwd", "ig", "wg")),)
    workload = run(
        [layer("embedding_layer", 9, 9, 9), *[layer("mlp", 1000, 1000, 1000)] * 4] * 2, {"pp": 4},
        schedule="1f1b", time_scale=little,
    ).workload  # fmt: skip
    assert not alike()[0]


def test_stages_of_which_one_computes_longer_are_not_alike() -> None:
    facts = RunSums(SimulatedRun(bubble_bound()))
    assert facts.has_equal_stages
    ranks = [len(one.ranks) for one in facts.classes]
    bubbles = [found.bubble_ns for found in facts.accounts]
    total = sum(ns * count for ns, count in zip(bubbles, ranks, strict=True))
    assert facts.mean_ns["bubble"] == round(total / sum(ranks)) < max(bubbles)
    parameters = Parameters(slow_rank=("0=2",), tp=1, world=128)
    slow = RunSums(SimulatedRun(simulate(open_workload(SEED_002), parameters)))
    assert not slow.has_equal_stages
    assert only(find_bubble(slow)).equal_in == ""


def test_stages_that_compute_longer_than_others_are_named() -> None:
    found = SimulatedRun(unbalanced_stages()).sentences
    assert [one.rule for one in found[:2]] == ["compute-bound", "unbalanced-stages"]
    assert found[0].lead == "Mostly compute, then unbalanced stages. "
    assert isinstance(found[1], UnbalancedStages)
    assert (found[1].stage, found[1].busy_ns, found[1].others_ns) == (1, 40_000, 8080)
    assert found[1].ns == 40_000 - 24_040


def test_unbalanced_stages_lead_where_ranks_compute_less_than_half_of_the_step() -> None:
    rows = [*([layer("embedding_layer", 10), *[layer("mlp", 10)] * 3, layer("final_norm", 4000)] * 8)]
    sentence = first(run(rows, {"pp": 4}, schedule="1f1b", stage_layout="megatron"))
    assert (sentence.rule, sentence.lead) == ("unbalanced-stages", "Unbalanced stages. ")


def test_a_run_that_computes_says_what() -> None:
    simulation = run([layer("mlp_1", 3000), layer("mlp_2", 3000), layer("norm", 100)], {})
    assert said(simulation) == ["compute-bound"]
    assert first(simulation).lead == "Compute-bound. "
    found = only(find_compute_bound(sums(simulation)))
    assert (found.ns, found.step_ns) == (6100, 6100)
    assert found.most == (Computed("mlp", 6000, 6000),)


def test_a_slow_link_is_named_with_what_it_costs() -> None:
    rows = [Row("mlp", Cell(1000, "ALLREDUCE", "tp", 8000))]
    simulation = run(rows, {"tp": 2}, slow_link=("0:1=0.5",))
    found = first(simulation)
    assert isinstance(found, SlowLink)
    assert (found.rule, found.links, found.ns) == ("slow-link", ("0:1=0.5",), 8000)
    assert found.without_ns == simulation.step_time_ns - 8000
    assert figures(found.text)[-2:] == ["8.000 us", "88.7 %"]
    two = first(run(rows, {"tp": 2}, slow_link=("0:1=0.5", "0:0=0.5")))
    assert isinstance(two, SlowLink)
    assert (two.lead, two.links, two.ns) == ("Slow link. ", ("0:1=0.5", "0:0=0.5"), 8000)
    nothing = only(find_slow_link(sums(run(COMPUTES, {"tp": 2}, slow_link=("0:1=0.5",)))))
    assert (nothing.links, nothing.ns) == (("0:1=0.5",), 0)


def test_a_port_that_is_busy_most_of_the_step_is_named() -> None:
    simulation = exposed_all_reduce()
    found = only(find_busy_port(sums(simulation)))
    assert (found.dimension_id, found.dimension) == (0, simulation.cluster.dims[0])
    assert percent(found.ns, found.step_ns) == "79.8"
    assert found.who.words == "Ranks 0-1"
    assert found.kinds == (KindLoad("tp", found.ns, 8000),)


def test_a_port_with_more_than_it_can_carry_is_said() -> None:
    rows = [
        Row("mlp", wg=Cell(10, "ALLREDUCE", "dp", 8000)),
        Row("moe", wg=Cell(10, "ALLREDUCE", "all", 8000)),
    ]
    found = only(find_busy_port(sums(run(rows, {"dp": 2}))))
    assert found.ns > found.step_ns


def test_communication_that_costs_more_than_anybody_waits_for_it_says_why() -> None:
    """Of seed 001 8.7 % are exposed at most, and -18.7 % without communication had no reason."""
    results = SimulatedRun(simulate(open_workload("fixtures/001_moe_128npu_with_mistakes.txt"), Parameters()))
    free = SimulatedRun(simulate(results.simulation.workload, Parameters(comm_scale=0)))
    assert only(find_free_communication(RunSums(results))).waits_less
    gain = results.step_time_ns - free.step_time_ns
    assert gain > 1.25 * max(accounts.all_exposed_ns for accounts in results.accounts)
    # Of each rank the rest is what it waits for others.
    for before, after in zip(results.accounts, free.accounts, strict=True):
        waits, less = (
            results.step_time_ns - before.all_exposed_ns - before.busy_ns,
            free.step_time_ns - after.all_exposed_ns - after.busy_ns,
        )
        assert waits > less
    # On one stage of equal ranks nobody waits for anybody.
    alone = SimulatedRun(simulate(open_workload("fixtures/000_gpt13b_tp4_old_header.txt"), Parameters()))
    assert not only(find_free_communication(RunSums(alone))).waits_less


def test_the_network_is_cleared_where_free_communication_changes_little() -> None:
    results = SimulatedRun(simulate(open_workload(SEED_002), Parameters()))
    free = only(find_free_communication(RunSums(results)))
    assert (free.is_cause, free.change(free.ns)) == (False, "13.973 s (-5.4 %)")
    assert free.unsent is not None
    assert (free.unsent.rows, free.unsent.names[0], len(free.unsent.names)) == (272, "attention_column", 3)
    assert free.unsent.sent_ns is None
    # What that is worth is said once a run with it has been made, as its note says it.
    sent = with_backward_sent(results.simulation.workload)
    assert sent is not None
    other = simulate(sent, Parameters()).step_time_ns
    results.weigh_assumptions()
    (weighed,) = [one for one in results.sentences if isinstance(one, FreeCommunication)]
    assert weighed == replace(free, unsent=free.unsent._replace(sent_ns=other))
    # Rows of another kind of file say nothing of what a trainer sends.
    rows = [Row("mlp", Cell(1000, "ALLREDUCE", "tp", 64), Cell(1000), Cell(1000))]
    assert not any(one.unsent for one in find_free_communication(sums(run(rows, {"tp": 2}))))


def of_model(**parameters: str | int) -> Simulation:
    """A small model on four GPUs."""
    model = Model("small", 4, 1024, 8, 8, 128, 4096, True, 32000, 2048, tied_embeddings=False)
    given = Parameters(**{"world": 4, "tp": 2, "pp": 2, "global_batch": 4, "gpu": "h100", **parameters})  # type: ignore[arg-type]
    return simulate(ModelMaker("small", model).empty_workload(), given)


def of_experts(imbalance: str) -> Simulation:
    """A model with experts on four GPUs."""
    given = Parameters(world=4, ep=4, gpu="h100", expert_imbalance=imbalance)
    return simulate(ModelMaker("mixtral-8x7b", MODELS["mixtral-8x7b"]).empty_workload(), given)


def of_sequences(imbalance: str) -> Simulation:
    """A model on two GPUs whose time is mostly attention."""
    model = Model("long", 2, 2048, 16, 4, 128, 8192, True, 32000, 16384, tied_embeddings=False)
    given = Parameters(world=2, global_batch=4, gpu="h100", seq_imbalance=imbalance)
    return simulate(ModelMaker("long", model).empty_workload(), given)


def without_compute(**cells: int) -> Simulation:
    """AICB's file of a machine without a GPU, but for some of its cells."""
    ns = {"fwd": 1, "ig": 1, "wg": 1} | cells
    line = f"mlp -1 {ns['fwd']} ALLREDUCE 8000000 {ns['ig']} NONE 0 {ns['wg']} NONE 0 100"
    return simulate(read(text_of(line, line)), Parameters())


def test_a_file_without_compute_is_no_network_bound_step() -> None:
    found = SimulatedRun(without_compute()).sentences
    assert (found[0].rule, found[0].lead) == ("no-compute", "Compute is not modelled. ")
    assert isinstance(found[0], NoCompute)
    assert (found[0].cells, found[0].sends) == (6, True)
    assert {one.rule for one in found} & {"compute-bound", "free-communication"} == set()
    assert not [one for one in found[1:] if one.lead]
    # One cell that is a duration, and it is a step.
    found = SimulatedRun(without_compute(wg=2)).sentences
    assert "no-compute" not in {one.rule for one in found}
    assert found[0].lead == "Network-bound. "


def half_the_stages() -> Simulation:
    header = "HYBRID_TRANSFORMER model_parallel_NPU_group: 1 ep: 1 pp: 4 vpp: 1 ga: 2 all_gpus: 4"
    lines = ["embedding_layer -1 500 NONE 0 500 NONE 0 500 NONE 0 100"] * 2
    return simulate(read(text_of(*lines, header=header)), Parameters(pp=2))


def test_other_degrees_than_the_file_has_are_said_first_and_then_what_the_step_goes_to() -> None:
    found = SimulatedRun(half_the_stages()).sentences
    assert isinstance(found[0], AnotherModel)
    assert found[0].lead == "Not the model of the file. "
    assert (found[0].other, found[0].can_rescale) == (describe_model_change(half_the_stages()), False)
    assert figures(found[0].other) == ["2", "4"]
    assert found[1].lead
    assert not [one for one in found[2:] if one.lead]


def one_layer(**parameters: int) -> Simulation:
    table = open_workload("fixtures/003_gpt2_large_op_table.txt")
    return simulate(table, Parameters(**parameters))  # type: ignore[arg-type]


def test_a_table_of_one_layer_says_so_before_it_blames_what_stands_beside_it() -> None:
    """`Compute-bound, most in lm_head (67.4 %)` stood first; with the 36 layers of gpt2_large it is 5 %."""
    once, all_of_them = (SimulatedRun(found).sentences for found in (one_layer(), one_layer(layers=36)))
    assert (once[0].rule, once[0].fault) == ("one-layer", True)
    assert once[0].lead == "One layer of the model runs. "
    shares = []
    for sentence in (once[1], all_of_them[0]):
        assert isinstance(sentence, ComputeBound)
        shares.append([(one.name, percent(one.ns, sentence.step_ns)) for one in sentence.most])
    assert shares == [[("lm_head", "67.4")], [("addmm", "62.6")]]


def two_jobs() -> Simulation:
    """Two jobs whose flows share a link."""
    # The sentence runs each job alone, from the same files.
    return jobs_at(Path(mkdtemp()), "0,2", "1,3").simulation


SPEAKS = {
    "uneven-microbatches": uneven_microbatches,
    "another-model": half_the_stages,
    "no-compute": without_compute,
    "one-layer": one_layer,
    "straggler": straggler,
    "slow-link": lambda: run(COMPUTES, {"tp": 2}, slow_link=("0:1=0.5",)),
    "compute-bound": lambda: run(COMPUTES, {}),
    "unbalanced-stages": unbalanced_stages,
    "bubble": bubble_bound,
    "late-gradients": late_gradients,
    "network": lambda: several_kinds(800),
    "exposed": exposed_all_reduce,
    "free-communication": exposed_all_reduce,
    "busy-port": exposed_all_reduce,
    "shared-port": lambda: shared_run().simulation,
    "other-job": two_jobs,
    "idle": bubble_bound,
    "memory": lambda: of_model(memory_limit="100MB"),
    "schedule-range": of_model,
    "uneven-experts": lambda: of_experts("lognormal:0.5"),
    "uneven-sequences": lambda: of_sequences("lognormal:1.5"),
}
SILENT = {
    "uneven-microbatches": bubble_bound,
    "another-model": mostly_compute,
    "no-compute": mostly_compute,
    "one-layer": lambda: one_layer(layers=36),
    "straggler": exposed_all_reduce,
    "slow-link": exposed_all_reduce,
    "compute-bound": bubble_bound,
    "unbalanced-stages": bubble_bound,
    "bubble": exposed_all_reduce,
    "late-gradients": exposed_all_reduce,
    "network": exposed_all_reduce,
    "exposed": bubble_bound,
    "free-communication": bubble_bound,
    "busy-port": bubble_bound,
    "shared-port": exposed_all_reduce,
    "other-job": exposed_all_reduce,
    "idle": exposed_all_reduce,
    "memory": lambda: of_model(memory_limit="80GB"),
    "schedule-range": lambda: of_model(schedule="1f1b"),
    "uneven-experts": lambda: of_experts("lognormal:0"),
    "uneven-sequences": lambda: of_sequences("lognormal:0"),
}


def test_every_rule_has_a_run_in_which_it_speaks_and_one_in_which_it_is_silent() -> None:
    assert len(SPEAKS) == len(SILENT) == len(RULES)


@pytest.mark.parametrize("rule", SPEAKS)
def test_a_rule_speaks(rule: str) -> None:
    assert rule in said(SPEAKS[rule]())


@pytest.mark.parametrize("rule", SILENT)
def test_a_rule_is_silent(rule: str) -> None:
    assert rule not in said(SILENT[rule]())


def test_the_page_has_the_sentences_on_top_and_each_names_a_figure() -> None:
    page = run_page(SimulatedRun(bubble_bound()))
    head, line = page.splitlines()[3:5]
    assert head == "In words, % of step"
    told = SimulatedRun(bubble_bound()).sentences[0].text_with_lead
    assert told.startswith(line.strip())
    assert figures(line) == ["6.000 us", "40.0 %", "0", "9.000 us", "60.0 %"]


def test_flows_that_share_a_port_are_counted_and_timed_against_their_collective_alone() -> None:
    simulation = shared_run().simulation
    found = only(find_shared_port(sums(simulation)))
    ports = shared_run().ports
    assert ports is not None
    port = next(port for port in ports.all if port.name == found.port)
    assert (found.flows, found.ns) == (port.most, port.held_ns)
    # All ranks of a server exchange with all of the other over two upper switches.
    assert (found.group, found.of_flows) == ("ep", 2 * 8 * 8)
    assert found.oversubscribed == 8 * 400 / (2 * 400)
    ends = [simulation.timeline.times.end[0][op] - simulation.timeline.times.start[0][op] for op in range(4)]
    # A collective of all ranks alone has the same collisions.
    assert found.took_ns is None or found.took_ns in ends


def test_nothing_is_said_of_a_step_of_0_ns() -> None:
    assert SimulatedRun(run([layer("norm")], {})).sentences == []


@given(cases())
def test_every_run_has_sentences_with_figures_and_the_first_is_a_cause(case: Case) -> None:
    results = SimulatedRun(simulate(*case))
    found = results.sentences
    for one in found:
        assert any(letter.isdigit() for letter in one.text)
        assert one.text.endswith(".")
        assert one.text.isprintable()
    # What the file is stands before all, with words of its own.
    found = [one for one in found if one.rule != "uneven-microbatches"]
    causes = [one.lost_ns for one in found if one.cause and not one.fault]
    assert causes == sorted(causes, reverse=True)
    facts = RunSums(results)
    assert not [one for one in found[1:] if one.lead]
    lead, free = (found[0].lead, facts.without_network_ns) if found else ("", None)
    busy = facts.mean_busy_ns
    if found and found[0].cause and not found[0].fault:
        by_compute = lead.startswith(("Compute", "Mostly compute"))
        assert by_compute or (2 * busy < results.step_time_ns and busy <= 1.2 * causes[0])
    if "-bound" in lead and not lead.startswith("Compute"):
        assert 2 * found[0].lost_ns >= results.step_time_ns - busy
    if "etwork" in lead and free is not None:
        assert 10 * (results.step_time_ns - free) >= results.step_time_ns
        assert all(one.is_cause for one in found if isinstance(one, FreeCommunication))
        bubbles = [one.lost_ns for one in found if one.cause == "bubble"]
        assert results.step_time_ns - free >= max(bubbles, default=0)
    assert sum(facts.mean_ns.values()) == pytest.approx(results.step_time_ns, abs=len(facts.mean_ns))


def test_where_nothing_is_sent_the_step_is_not_called_communication() -> None:
    """`The step is communication alone` stood over 57 ns in which no collective had two ranks."""
    workload = read(text_of("micro_test -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 4096 1"))
    for world in (1, 2):
        found = only(find_no_compute(sums(simulate(workload, Parameters(tp=1, world=world)))))
        assert found.sends == (world == 2)
