"""Folding stays exact under every schedule and override, and splits no further than needed.

Seen to fail on these bugs, planted one at a time: a cell's first colour without its slowdown;
without the factors on its own ports; a named rank's coordinates not cut out of its box; every layout
taken as aligned with SimAI's servers;
and, by the other property tests, costs of different kinds taken for one when their values are
equal. (The port factors in the signature of a group and of a link follow from the colours of the
ranks at their ends: without them nothing changes, and nothing failed.)
"""

import math
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec import structs

from simcore.parameters import Parameters
from simcore.program.blocks import find_structure
from simcore.program.schedules import SCHEDULES
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import simulate
from simcore.workload import open_workload
from tests.engine.reference_simulator import class_of_ranks, reference_of
from tests.engine.test_folding import SEED_001, SEED_002, assert_same_run, unfolded
from tests.strategies import Case, Cell, Row, cases, make_workload

BUSBW = f"busbw:{Path(__file__).parents[1] / 'networks' / 'simai' / 'busbw_fixed.yaml'}"


NETWORKS = ("analytical", "shared", "simai-auto", BUSBW)


def _takes(schedule: str, stages: int, fitting: list[int]) -> bool:
    """Whether a schedule can be: with so many stages, and virtual stages that divide the layers."""
    rules = SCHEDULES[schedule]
    chunks = 1 in fitting if rules.chunks is None else rules.chunks == 1 or rules.chunks in fitting
    return chunks and not (rules.even_stages and stages % 2)


@st.composite
def overridden(draw: st.DrawFn, networks: tuple[str, ...] = NETWORKS, most_ranks: int = 12) -> Case:
    """A case under any schedule, with slow ranks, slow links, overlaps and layer scales."""
    workload, parameters = draw(cases(most_ranks))
    groups = {*workload.fwd.group, *workload.ig.group, *workload.wg.group}
    # Stages that run different rows would meet in different numbers in a group over all of them.
    assume("all" not in groups)
    header = workload.header
    world, stages = header.all_gpus or 1, header.pp or 1
    structure, _ = find_structure(workload)
    layers = math.gcd(*structure.layers_per_block)
    fitting = [number for number in range(1, layers + 1) if layers and layers % number == 0]
    schedule = draw(st.sampled_from([name for name in SCHEDULES if _takes(name, stages, fitting)]))
    rules = SCHEDULES[schedule]
    unit = {"stages": stages, "two": 2}.get(rules.multiple, 1)
    changes: dict[str, object] = {
        "schedule": schedule,
        "microbatches": unit * draw(st.integers(1, 5 if unit == 1 else 2)),
        "steps": draw(st.sampled_from([1, 1, 2, 3])),
        "overlap_fwd_bwd": draw(st.booleans()),
    }
    if rules.chunks is None:
        changes["virtual_stages"] = draw(st.sampled_from(fitting))
    ranks, dimension = st.integers(0, world - 1), st.integers(0, len(parameters.dim) - 1)
    slow = st.lists(st.tuples(ranks, st.sampled_from(["1.3", "2", "0.5"])), max_size=2)
    links = st.lists(st.tuples(dimension, ranks, st.sampled_from(["0.5", "0.25"])), max_size=2)
    changes |= {
        "slow_rank": tuple(f"{rank}={factor}" for rank, factor in draw(slow)),
        "slow_link": tuple(f"{place}:{rank}={factor}" for place, rank, factor in draw(links)),
        "stage_layout": draw(st.sampled_from(["uniform", "megatron"])),
        "overlap_grad_reduce": draw(st.booleans()),
        "overlap_param_gather": draw(st.booleans()),
        "network": draw(st.sampled_from(networks)),
        "gpus_per_server": draw(st.sampled_from([1, 2, 3, 8])),
        "nics_per_server": 64,
        "splits": draw(st.sampled_from([1, 1, 2, 3])),
        "active_chunks": draw(st.integers(1, 2)),
        "algorithm": draw(st.sampled_from([(), ("0=direct",), ("0=ring",), ("0=direct2",)])),
    }
    if draw(st.booleans()):
        # Sizes that align with the layout: the boxes of coordinates are used, not single ranks.
        changes["dim"] = (f"switch:{header.tp or 1}:40:3", f"switch:{world // (header.tp or 1)}:7:50")
        changes["slow_link"] = tuple(
            f"{index % 2}:{text.split(':', 1)[1]}" for index, text in enumerate(changes["slow_link"])
        )  # type: ignore[arg-type]
    if changes["network"] in ("simai-auto", BUSBW):
        # They have no ports.
        changes["slow_link"] = ()
    return Case(workload, structs.replace(parameters, **changes))  # type: ignore[arg-type]


@settings(max_examples=500)
@given(overridden(most_ranks=16))
def test_a_folded_run_with_overrides_equals_the_run_of_every_rank(case: Case) -> None:
    folded = simulate(*case)
    assert_same_run(folded, unfolded(case))
    for accounts in SimulatedRun(folded).accounts:
        assert sum(accounts.total_ns) == folded.step_time_ns


@pytest.mark.slow
@settings(max_examples=100)
@given(overridden(("analytical",)))
def test_times_with_overrides_are_those_of_a_naive_simulation_of_every_rank(case: Case) -> None:
    simulation = simulate(*case)
    reference = reference_of(simulation)
    times = simulation.timeline.times
    for rank, number in enumerate(class_of_ranks(simulation)):
        assert list(times.start[number]) == reference.times[rank].start
        assert list(times.end[number]) == reference.times[rank].end
        assert times.finish[number] == reference.times[rank].finish


def test_a_slow_link_moves_no_flat_group_to_another_dimension() -> None:
    """Ranks 0, 2 and 4 are no grid. On the switch they would take less: a slow link would be a gain."""
    rows = [Row("mlp", wg=Cell(0, "ALLREDUCE", "dp", 62))]
    workload = make_workload(rows, tp=2, ep=1, pp=1, all_gpus=6)

    def step_ns(switch_gbps: str, *slow_link: str) -> int:
        dim = ("fully-connected:3:1:400", f"switch:8:{switch_gbps}:3")
        return simulate(workload, Parameters(dim=dim, slow_link=slow_link)).step_time_ns

    assert step_ns("2.5") == step_ns("2.5", "1:4=0.25") == 870
    assert step_ns("0.625") == 202


def test_two_interleaved_stages_have_one_channel_each_way() -> None:
    """From stage 1 to 0 go activations at the chunk boundary and gradients: they queue together."""
    rows = [Row("embedding_layer"), Row("attention_column"), Row("attention_column")]
    workload = make_workload(rows, tp=1, ep=1, pp=2, all_gpus=2, pp_comm=1)
    interleaved = {"schedule": "interleaved", "microbatches": 4, "virtual_stages": 2}
    simulation = simulate(workload, Parameters(dim=("switch:2:1:0",), **interleaved))  # type: ignore[arg-type]
    reference = reference_of(simulation)
    for rank, number in enumerate(class_of_ranks(simulation)):
        start = list(simulation.timeline.times.start[number])
        assert start == reference.times[rank].start
        assert len(set(start)) == len(start) == 12


@settings(max_examples=60)
@given(overridden(), st.integers(0, 3))
def test_jitter_depends_on_seed_rank_and_op_alone(case: Case, seed: int) -> None:
    jittered = structs.replace(case.parameters, jitter=0.2, seed=seed)
    one, again = simulate(case.workload, jittered), simulate(case.workload, jittered)
    assert one.timeline.times == again.timeline.times
    assert len(one.timeline.classes) == one.layout.world
    assert_same_run(one, unfolded(Case(case.workload, jittered)))


def test_a_slow_rank_splits_each_stage_of_seed_002_into_four_classes() -> None:
    """{1, 7, 7, 49} in each stage: the rank, its tp peers, its dp peers, all others."""
    simulation = simulate(open_workload(SEED_002), Parameters(slow_rank=("37=1.3",)))
    classes = simulation.timeline.classes
    assert len(classes) == 64
    for stage in range(16):
        assert sorted(len(one.ranks) for one in classes if one.stage == stage) == [1, 7, 7, 49]
    assert len(simulate(open_workload(SEED_001), Parameters()).timeline.classes) == 4
    assert len(simulate(open_workload(SEED_001), Parameters(slow_rank=("37=1.3",))).timeline.classes) == 16


def test_a_million_ranks_with_a_slow_one_are_as_many_classes_as_a_thousand() -> None:
    simulation = simulate(open_workload(SEED_002), Parameters(slow_rank=("37=1.3",), world=2**20))
    classes = simulation.timeline.classes
    assert len(classes) == 64
    assert sum(len(one.ranks) for one in classes) == 2**20


def test_the_tp_peers_of_a_slow_rank_are_named_as_those_who_wait_for_it() -> None:
    few = Parameters(slow_rank=("37=1.3",), pp=4, microbatches=4)
    results = SimulatedRun(simulate(open_workload(SEED_002), few))
    classes = results.simulation.timeline.classes
    longest = results.class_waits[0]
    assert classes[longest.early].ranks.text() == "32-36,38-39"
    assert (classes[longest.late].ranks.text(), longest.kind) == ("37", "tp")
    from simcore.render.report.pages import run_page

    rows = [row.split() for row in run_page(results).splitlines()]
    assert ["32-36,38-39", "37", "tp", "collectives", "530.5", "ms", "14.1", "%"] in rows


REFUSED = [
    ({"slow_rank": ("37",)}, "--slow-rank 37: R=X, for example 37=1.3 is expected, X above 0 and up to 1e6"),
    (
        {"slow_rank": ("37=0",)},
        "--slow-rank 37=0: R=X, for example 37=1.3 is expected, X above 0 and up to 1e6",
    ),
    ({"slow_rank": ("1024=2",)}, "--slow-rank 1024=2: no rank 1024 in this run, only 0 to 1023"),
    ({"slow_link": ("5=0.5",)}, "--slow-link 5=0.5: DIM:R=X, for example 1:37=0.5 is expected"),
    ({"slow_link": ("2:5=0.5",)}, "--slow-link 2:5=0.5: no dimension 2 in this run, only 0 to 1"),
    (
        {"layer_scale": ("mlp_row=2",)},
        "--layer-scale mlp_row=2: NAME:PHASE=X, for example mlp_row:fwd=0.9 is expected, "
        "PHASE one of fwd, ig, wg",
    ),
    ({"layer_scale": ("nothing:fwd=2",)}, "--layer-scale nothing: no row of the file has this name"),
    ({"schedule": "interleaved"}, "--schedule interleaved needs --virtual-stages; 1, 2, 4, 8 would fit"),
    (
        {"schedule": "interleaved", "virtual_stages": 3},
        "--virtual-stages 3 does not divide the layers of a stage: 1, 2, 4, 8 would fit",
    ),
    (
        {"schedule": "interleaved", "virtual_stages": 2, "microbatches": 20},
        "--schedule interleaved: 20 micro-batches are not a multiple of 16 stages: 16 or 32 would fit",
    ),
    ({"stage_layout": "x"}, "--stage-layout x: one of uniform, megatron is expected"),
]


@pytest.mark.parametrize(("parameters", "message"), REFUSED)
def test_what_cannot_be_is_refused_with_what_would_fit(parameters: dict[str, object], message: str) -> None:
    from simcore.diagnostics import UsageError

    with pytest.raises(UsageError) as refused:
        simulate(open_workload(SEED_002), Parameters(**parameters))  # type: ignore[arg-type]
    assert str(refused.value) == message


def test_a_layer_scale_without_digits_means_all_rows_of_the_name() -> None:
    workload = open_workload(SEED_001)
    whole = simulate(workload, Parameters(layer_scale=("attention_row:fwd=2",)))
    one = simulate(workload, Parameters(layer_scale=("attention_row_1:fwd=2",)))
    plain = simulate(workload, Parameters())
    assert plain.step_time_ns < one.step_time_ns < whole.step_time_ns
