"""Folding: one rank of each class is simulated, and nothing that is said of a run changes.

Planted in a copy of simcore, one at a time: a group's colour without its members' colours, or
without its price signature; a rank's colour without its neighbours'; a refinement that stops a round
early; every cluster taken as aligned. `test_a_folded_run_equals_the_run_of_every_rank` failed on
each, and the comparison with the naive simulation on all but the early stop. The digits that groups of
kind ep vary, the boundary of ep, or the size of a digit planted wrong: `test_expert_groups_that_cut_...`.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from simcore.folding import Folding
from simcore.folding.graph import is_aligned
from simcore.parameters import Parameters
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import Simulation, simulate
from simcore.workload import open_workload
from tests.engine.reference_simulator import class_of_ranks
from tests.strategies import Case, Cell, Row, cases, cells, make_workload

SEED_001 = "fixtures/001_moe_128npu_with_mistakes.txt"
SEED_002 = "fixtures/002_gpt_1024npu.txt"


def unfolded(case: Case) -> Simulation:
    return simulate(case.workload, structs.replace(case.parameters, no_fold=True))


def assert_same_run(folded: Simulation, every_rank: Simulation) -> None:
    """Step time, and start, end and accounts of every rank."""
    assert folded.step_time_ns == every_rank.step_time_ns
    first, second = SimulatedRun(folded).accounts, SimulatedRun(every_rank).accounts
    times, all_times = folded.timeline.times, every_rank.timeline.times
    for one, other in zip(class_of_ranks(folded), class_of_ranks(every_rank), strict=True):
        assert first[one] == second[other]
        assert times.start[one] == all_times.start[other]
        assert times.end[one] == all_times.end[other]


@settings(max_examples=120)
@given(cases())
def test_a_folded_run_equals_the_run_of_every_rank(case: Case) -> None:
    assert_same_run(simulate(*case), unfolded(case))


@settings(max_examples=20)
@given(cases(most_ranks=48))
def test_with_no_fold_each_rank_is_a_class_of_its_own(case: Case) -> None:
    every_rank = unfolded(case)
    assert [list(found.ranks) for found in every_rank.timeline.classes] == [
        [rank] for rank in range(every_rank.layout.world)
    ]


@settings(max_examples=40)
@given(cases(most_ranks=48))
def test_classes_are_an_equitable_partition(case: Case) -> None:
    """Every rank is in one class, and ranks of a class see the same classes in the same places."""
    simulation = simulate(*case)
    folding, layout = simulation.timeline.folding, simulation.layout
    classes = class_of_ranks(simulation)
    for rank, number in enumerate(classes):
        assert folding.class_of(rank) == number
        found = folding.classes[number]
        assert layout.position(rank)[2] == found.stage
        for step, link in found.links.items():
            assert classes[layout.neighbour(rank, found.stage + step)] == link.neighbour
    for kind in {group.kind for group in folding.group_classes}:
        for members in layout.groups(kind):
            (group,) = {folding.classes[classes[rank]].groups[kind] for rank in members}
            assert folding.group_classes[group].members == tuple(sorted({classes[rank] for rank in members}))


def test_a_rank_outside_the_world_is_in_no_class() -> None:
    folding: Folding = simulate(make_workload([Row("mlp")], pp=1, all_gpus=4), Parameters()).timeline.folding
    for rank in (-1, 4):
        with pytest.raises(ValueError, match=f"^no rank {rank}$"):
            folding.class_of(rank)


# -- hand counts ---------------------------------------------------------------------


def class_sizes(simulation: Simulation) -> list[int]:
    return [len(found.ranks) for found in simulation.timeline.classes]


def test_seed_002_has_a_class_of_64_ranks_for_each_of_16_stages() -> None:
    simulation = simulate(open_workload(SEED_002), Parameters())
    assert [found.ranks.text() for found in simulation.timeline.classes] == [
        f"{64 * stage}-{64 * stage + 63}" for stage in range(16)
    ]


def test_seed_001_has_a_class_for_each_of_4_stages() -> None:
    simulation = simulate(open_workload(SEED_001), Parameters())
    layout = simulation.layout
    assert (layout.tp, layout.dp, layout.ep, layout.pp) == (8, 4, 4, 4)
    assert class_sizes(simulation) == [32, 32, 32, 32]


def test_rank_order_tp_pp_dp_strides_the_classes() -> None:
    simulation = simulate(open_workload(SEED_002), Parameters(rank_order="tp-pp-dp"))
    assert [found.ranks.text() for found in simulation.timeline.classes] == [
        f"{8 * stage}-{8 * stage + 7}+128*8" for stage in range(16)
    ]


def tp_and_dp_rows() -> list[Row]:
    return [Row("mlp", Cell(10, "ALLREDUCE", "tp", 3000), Cell(10), Cell(10, "ALLREDUCE", "dp", 5000))]


def test_tp_3_in_servers_of_8_has_groups_that_cross_servers_and_groups_that_do_not() -> None:
    """TP groups 6-8 and 15-17 cross servers; ranks whose DP group holds them all are alike."""
    workload = make_workload(tp_and_dp_rows(), tp=3, ep=1, pp=1, all_gpus=24, pp_comm=0)
    simulation = simulate(workload, Parameters(dim=("switch:8:450:500", "switch:3:50:1000")))
    classes = class_of_ranks(simulation)
    assert len(set(classes[6:9]) & set(classes[0:6])) == 0
    assert set(classes[6:9]) == set(classes[15:18])


def test_tp_that_divides_the_server_needs_one_class() -> None:
    workload = make_workload(tp_and_dp_rows(), tp=4, ep=1, pp=1, all_gpus=24, pp_comm=0)
    simulation = simulate(workload, Parameters(dim=("switch:8:450:500", "switch:3:50:1000")))
    assert [found.ranks.text() for found in simulation.timeline.classes] == ["0-23"]


def test_a_group_kind_without_collectives_splits_no_class() -> None:
    """Only prices that are paid tell ranks apart: without TP collectives TP 3 needs no class."""
    rows = [Row("mlp", Cell(10), Cell(10), Cell(10))]
    workload = make_workload(rows, tp=3, ep=1, pp=1, all_gpus=24, pp_comm=0)
    simulation = simulate(workload, Parameters(dim=("switch:8:450:500", "switch:3:50:1000")))
    assert class_sizes(simulation) == [24]


@st.composite
def aligned_cases(draw: st.DrawFn) -> Case:
    """Layouts and clusters of powers of two: the boundaries of one divide those of the other."""
    power = st.sampled_from([1, 2, 4])
    tp, dp, pp = draw(power), draw(power), draw(power)
    ep = draw(st.sampled_from([ep for ep in (1, 2, 4) if dp % ep == 0]))
    kinds = ("tp", "ep", "dp", "dp_ep")
    rows = [
        Row(f"mlp_{kind}", draw(cells(kinds)), draw(cells(kinds)), Cell(5, "ALLREDUCE", kind, 1000))
        for kind in kinds
    ]
    world = tp * dp * pp
    sizes = draw(st.sampled_from([(2, 2), (4, 2), (2, 8), (8, 2), (4, 4)]))
    outer = draw(st.sampled_from([world, 2 * world, world + 1]))
    kind = st.sampled_from(["ring", "switch", "fully-connected"])
    dim = [f"{draw(kind)}:{size}:{draw(st.sampled_from([1, 3]))}:7" for size in (*sizes, outer)]
    order = draw(st.sampled_from(["tp-ep-dp-pp", "tp-pp-dp"]))
    workload = make_workload(rows * 2, tp=tp, ep=ep, pp=pp, all_gpus=world, pp_comm=900)
    return Case(workload, Parameters(rank_order=order, dim=tuple(dim), schedule="1f1b", microbatches=3))


@settings(max_examples=60)
@given(aligned_cases())
def test_a_cluster_that_aligns_with_the_layout_needs_one_class_a_stage(case: Case) -> None:
    folded = simulate(*case)
    assert [found.stage for found in folded.timeline.classes] == list(range(folded.layout.pp))
    assert_same_run(folded, unfolded(case))


# -- experts whose groups do not divide dp --------------------------------------------


@st.composite
def nested_expert_cases(draw: st.DrawFn) -> Case:
    """EP divides TP * DP but not DP, or experts are whole on tp; TP divides EP or EP divides TP; slow ranks
    and links on it.
    """
    whole = draw(st.booleans())
    apart = [(2, 2, 3), (4, 2, 3), (4, 4, 5), (2, 4, 6), (2, 6, 3), (6, 2, 3)]
    tp, ep, dp = draw(st.sampled_from([(2, 1, 4), (2, 2, 4), (4, 2, 2), (2, 4, 4)] if whole else apart))
    server = draw(st.sampled_from([2, 3])) if tp == 6 else 2
    pp = draw(st.sampled_from([1, 2]))
    kinds = ("tp", "ep", "dp", "dp_ep")
    rows = [
        Row(f"mlp_{kind}", draw(cells(kinds)), draw(cells(kinds)), Cell(5, "ALLREDUCE", kind, 1000))
        for kind in kinds
    ]
    world = tp * dp * pp
    kind = st.sampled_from(["ring", "switch", "fully-connected"])
    dim = tuple(f"{draw(kind)}:{size}:{draw(st.sampled_from([1, 3]))}:7" for size in (server, world))
    ranks = st.lists(st.integers(0, world - 1), max_size=2)
    parameters = Parameters(
        rank_order=draw(st.sampled_from(["tp-ep-dp-pp", "tp-pp-dp"])),
        dim=dim,
        schedule="1f1b",
        microbatches=3,
        slow_rank=tuple(f"{rank}=1.5" for rank in draw(ranks)),
        slow_link=tuple(f"{draw(st.integers(0, 1))}:{rank}=0.5" for rank in draw(ranks)),
    )
    workload = make_workload(rows * 2, tp=tp, ep=ep, pp=pp, all_gpus=world, pp_comm=900, whole_experts=whole)
    return Case(workload, parameters)


@settings(max_examples=100)
@given(nested_expert_cases())
def test_expert_groups_that_cut_tp_or_several_dp_fold_as_when_every_rank_is_listed(case: Case) -> None:
    folded = simulate(*case)
    # Pairs of experts do not cut a server of three.
    assert is_aligned(folded.layout, folded.cluster) == (folded.cluster.dims[0].size == 2)
    assert_same_run(folded, unfolded(case))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("simcore.folding.folding.is_aligned", lambda *_: False)
        listed = simulate(*case)
    assert [set(found.ranks) for found in folded.timeline.classes] == [
        set(found.ranks) for found in listed.timeline.classes
    ]


@pytest.mark.parametrize("order", ["tp-ep-dp-pp", "tp-pp-dp"])
def test_a_million_ranks_with_experts_that_do_not_divide_dp_are_not_listed(
    monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    def listed(*_: object) -> None:
        raise AssertionError("every rank is looked at")

    monkeypatch.setattr("simcore.folding.folding.listed_graph", listed)
    parameters = Parameters(world=1_000_000, rank_order=order)
    simulation = simulate(open_workload(SEED_001), parameters)
    layout = simulation.layout
    assert (layout.dp % layout.ep, layout.tp % layout.ep) == (2, 0)
    assert class_sizes(simulation) == [250_000] * 4
