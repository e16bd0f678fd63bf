"""ZeRO 2 and 3, hybrid sharding and buckets: the rules of docs/fsdp.md, by hand and as properties."""

import re
from array import array
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from benchmarks import published_fsdp
from simcore.analysis.model_figures import find_model_rows
from simcore.diagnostics import UsageError
from simcore.model.costs import Op, Row, RowOps, nanoseconds
from simcore.model.maker import ModelMaker
from simcore.model.memory import stage_memory
from simcore.model.sharding import Unit, UnitSize, sharded_rows, stage_parameters, unit_sizes
from simcore.model.sizes import Model, Moe
from simcore.model.training import Training
from simcore.parameters import Parameters
from simcore.program.ops import STREAMS
from simcore.runs.simulated import SimulatedRun
from simcore.setup import Setup
from simcore.simulation import Simulation, simulate
from simcore.sweeping.bound import Bounds
from simcore.sweeping.space import Candidate
from simcore.sweeping.step_time import StepTimes
from simcore.workload import Cells, Header, Workload
from simcore.workload.model import PHASES, ModelParameters, StageRows
from tests.model.test_megatron import EXPERTS, SMALL, run

# Two ranks, 1 GB/s: a gather of 2n bytes takes n ns.
_NAMES = ("embedding_layer", "layer", "final_layer")
TWO_RANKS = {"dim": ("switch:2:1:0",), "endpoint_delay": 0, "local_mem_bw": 1e12}


def of_ns(ns: int) -> list[Op]:
    return [Op("made", 0.0, 0.0, 0.0, ns / 1e9, "compute")]


def training_of(model: Model = SMALL, **parameters: Any) -> Training:
    return (
        ModelMaker(model.name, model)
        .make_rows(Parameters(**{"gpu": "h100", **parameters}).part(ModelParameters))
        .training
    )


def three_units(microbatches: int = 1, roots: tuple[int, ...] = (), **given: Any) -> Simulation:
    """Three units of 60 parameters: forward 100 ns, backward 80 and 120, gathers 60 ns, reductions 120."""
    training = training_of(world=2, global_batch=2, zero="3", **given)
    compute = RowOps(of_ns(100), of_ns(80), of_ns(120))
    units = [Unit(UnitSize(60, 0, place in roots), [Row(name, compute)]) for place, name in enumerate(_NAMES)]
    made = sharded_rows(training, units)
    columns = []
    for phase in PHASES:
        sent = [getattr(row, phase) for row in made.rows]
        columns.append(
            Cells(
                array("q", [nanoseconds(getattr(row.ops, phase)) for row in made.rows]),
                [one and one.collective for one in sent],
                [one and one.group for one in sent],
                array("q", [one.bytes if one else 0 for one in sent]),
                {place for place, one in enumerate(sent) if one and one.is_overlapped and phase != "wg"},
            )
        )
    count = len(made.rows)
    workload = Workload(
        "by hand", "model", "HYBRID_TRANSFORMER_FWD_IN_BCKWD", "simai",
        Header(tp=1, ep=1, pp=1, ga=microbatches, all_gpus=2, vpp=1), [row.name for row in made.rows],
        array("q", range(1, count + 1)), *columns, array("q", [100]) * count, None,
        stages=(StageRows((), (tuple(range(count)),)),), waits=made.waits,
    )  # fmt: skip
    return simulate(workload, Parameters(**TWO_RANKS))


def spans(simulation: Simulation, stream: str) -> list[tuple[str, int, int]]:
    """(row, start, end) of a stream, by start."""
    ops, start, end = simulation.timeline.columns(0)
    names = simulation.workload.name
    return sorted(
        ((names[ops.row[op]], start[op], end[op]) for op, lane in enumerate(ops.stream)
         if STREAMS[lane] == stream), key=lambda one: one[1:],
    )  # fmt: skip


def test_three_units_by_hand_without_prefetch() -> None:
    found = three_units(prefetch="0")
    assert [one[1:] for one in spans(found, "dp")] == [
        (0, 60), (160, 220), (320, 380),  # forward
        (480, 540),                       # unit 2 again, then its reduction and the gather behind it
        (740, 860), (860, 920), (1120, 1240), (1240, 1300), (1500, 1620),
    ]  # fmt: skip
    assert found.step_time_ns == 1620


def test_three_units_by_hand_with_prefetch() -> None:
    found = three_units(prefetch="1")
    assert [one[1:] for one in spans(found, "dp")] == [
        (0, 60), (60, 120), (160, 220),
        (360, 420), (420, 480), (620, 740), (740, 800), (820, 940), (1020, 1140),
    ]  # fmt: skip
    assert [one[1:] for one in spans(found, "compute")] == [
        (60, 160), (160, 260), (260, 360), (420, 500), (500, 620), (620, 700), (700, 820), (820, 900),
        (900, 1020),
    ]  # fmt: skip
    assert found.step_time_ns == 1140


def test_three_units_by_hand_two_ahead_and_without_resharding() -> None:
    found = three_units(prefetch="2")
    assert [one[1:] for one in spans(found, "dp")] == [
        (0, 60), (60, 120), (120, 180), (360, 420), (420, 480), (480, 540), (620, 740), (820, 940),
        (1020, 1140),
    ]  # fmt: skip
    kept = three_units(reshard_after_forward="off")
    assert [one[1:] for one in spans(kept, "dp")] == [
        (0, 60), (60, 120), (160, 220), (560, 680), (760, 880), (960, 1080)
    ]  # fmt: skip
    assert kept.step_time_ns == 1080


def test_the_root_stays() -> None:
    found = three_units(roots=(0, 2))
    again = [name for name, _, _ in spans(found, "dp") if name == "weights_gather_again"]
    assert len(again) == 1
    # Beside the backward of the last unit, which has its weights.
    assert spans(found, "dp")[3] == ("weights_gather_again", 360, 420)
    assert found.step_time_ns == 1080


def test_a_unit_waits_for_its_own_weights() -> None:
    for ahead in "012":
        found = three_units(prefetch=ahead)
        gathers = [end for name, _, end in spans(found, "dp") if name == "weights_gather"]
        forward = [start for _, start, _ in spans(found, "compute")][:3]
        assert all(end <= start for end, start in zip(gathers, forward, strict=True))
        # None waits for a gather that is not its own: without one it begins when its own is over.
        before = [0, *(end for _, _, end in spans(found, "compute"))]
        assert forward == [max(end, done) for end, done in zip(gathers, before, strict=False)]


def test_gathers_and_reductions_are_one_stream() -> None:
    found = spans(three_units(prefetch="0"), "dp")
    reduced = next(place for place, one in enumerate(found) if one[0] == "grad_reduce")
    assert found[reduced + 1][0] == "weights_gather_again"
    assert found[reduced + 1][1] == found[reduced][2]


def test_nothing_is_prefetched_across_the_turn() -> None:
    for ahead in "012":
        found = three_units(prefetch=ahead)
        forward_ends = spans(found, "compute")[2][2]
        first = next(one for one in spans(found, "dp") if one[0] == "weights_gather_again")
        assert first[1] == forward_ends
        assert spans(found, "compute")[3][1] == first[2]


def test_gradients_are_reduced_in_every_microbatch() -> None:
    for zero in ("2", "3"):
        once, thrice = (
            run(SMALL, gpu="h100", world=4, zero=zero, global_batch=4 * times) for times in (1, 3)
        )
        counts = [sum(name == "grad_reduce" for name, _, _ in spans(one, "dp")) for one in (once, thrice)]
        assert counts == [10, 30]


def test_copies_of_gradients_are_added_up_one_unit_later() -> None:
    found = run(SMALL, gpu="h100", world=8, zero="3", shard_size=4, global_batch=8)
    reduced = [one for one in spans(found, "dp_shard") if one[0] == "grad_reduce"]
    copied = spans(found, "dp_replicate")
    assert len(reduced) == len(copied) == 10
    back = [end for name, _, end in spans(found, "compute") if name.startswith(("attention_col", "embed"))]
    for place, (_, start, _) in enumerate(copied[:-1]):
        assert start >= reduced[place][2]
        # Not before the unit behind it is over.
        assert any(start >= end for end in back)
        assert start >= reduced[place + 1][1] or start >= reduced[place][2]
    assert copied[-1][1] >= reduced[-1][2]
    # Half of the ranks hold each share: a quarter of the bytes are left to add up.
    workload = found.workload
    bytes_of = dict(zip(workload.name, workload.wg.bytes, strict=True))
    assert bytes_of["grad_copies"] * 4 == bytes_of["grad_reduce"]


def test_a_bucket_is_closed_by_the_row_that_fills_it() -> None:
    def sizes(bucket: int | None) -> list[int]:
        found = run(
            SMALL, gpu="h100", world=4, zero="1", global_batch=8, overlap_grad_reduce=True, bucket_size=bucket
        )
        ops = found.program.stages[0].ops
        row = found.workload.name.index("grad_param_comm")
        return [found.program.costs[cost].bytes for op, cost in enumerate(ops.cost) if ops.row[op] == row]  # type: ignore[union-attr]

    rows, whole = sizes(1), sizes(10**9)
    assert sizes(None) == sizes(40_000_000)
    assert whole == [sum(rows)]
    for bucket in (10**6, 10**7, 5 * 10**7):
        found = sizes(bucket)
        assert sum(found) == sum(rows)
        # Each but the last has so many at least, and had fewer without its last row.
        expected, size = [], 0
        for one in rows:
            size += one
            if size >= 4 * bucket:
                expected.append(size)
                size = 0
        assert found == expected + [size] * (size > 0)


@st.composite
def layouts(draw: st.DrawFn) -> tuple[Model, dict[str, Any]]:
    pick = lambda *values: draw(st.sampled_from(values))  # noqa: E731
    tied = Model(
        "gpt",
        3,
        512,
        8,
        8,
        64,
        2048,
        False,
        1000,
        512,
        dropout=True,
        bias="all",
        norm_bias=True,
        positions=512,
    )
    moe = Model(
        "moe", 3, 512, 8, 8, 64, 2048, True, 1000, 512, tied_embeddings=False, moe=Moe(4, 2, 512, 0, 1)
    )
    model = pick(SMALL, tied, moe, EXPERTS)
    tp, cp, dp = pick(1, 2), pick(1, 2), pick(1, 2, 4)
    ep = pick(1, 2) if model.moe else 1
    zero = pick("2", "3")
    given: dict[str, Any] = {
        "world": tp * cp * dp, "tp": tp, "cp": cp, "ep": ep, "zero": zero, "global_batch": dp * pick(1, 2),
        "recompute": pick("none", "selective", "full"), "gpu": "h100",
        "dim": (f"switch:{pick(2, 4)}:300:500", "switch:8:50:1000"),
    }  # fmt: skip
    if zero == "3":
        given |= {"prefetch": pick("0", "1", "2"), "reshard_after_forward": pick("on", "off")}
    if ep == 1 and dp * cp > 1 and pick(True, False):
        given["shard_size"] = pick(*(one for one in (2, 4) if dp * cp % one == 0))
    assume(not model.moe or cp * dp % ep == 0)
    if pick(True, False):
        given["slow_rank"] = (f"{draw(st.integers(0, 15)) % given['world']}=1.5",)
    return model, given


@given(layouts())
@settings(max_examples=40, deadline=None)
def test_units_are_the_parameters_of_the_stage_and_folding_is_exact(
    case: tuple[Model, dict[str, Any]],
) -> None:
    model, given = case
    training = training_of(model, **given)
    sizes = [one for chunk in training.stage_chunks for one in unit_sizes(training, 0, chunk)]
    assert sum(one.dense + one.experts for one in sizes) == sum(stage_parameters(training, 0))
    folded, every = (run(model, **given, no_fold=apart) for apart in (False, True))
    assert folded.step_time_ns == every.step_time_ns
    for rank in range(folded.layout.world):
        ours = folded.timeline.folding.class_of(rank)
        assert folded.timeline.columns(ours)[1:] == every.timeline.columns(rank)[1:]
        accounts = SimulatedRun(folded).accounts[ours].total_ns
        assert sum(accounts) == folded.step_time_ns


@given(layouts())
@settings(max_examples=25, deadline=None)
def test_a_sweep_has_the_same_steps_and_no_bound_above_them(case: tuple[Model, dict[str, Any]]) -> None:
    model, given = case
    opened = ModelMaker(model.name, model).empty_workload()
    step_ns = run(model, **given).step_time_ns
    assert StepTimes().find_step_time(Setup(opened, Parameters(**given))).step_time_ns == step_ns
    given = {name: value for name, value in given.items() if name != "slow_rank"}
    bound = Bounds(opened).find_bound_ns(Candidate(0, Parameters(**given)), training_of(model, **given))
    assert 0 < bound <= run(model, **given).step_time_ns


@given(layouts())
@settings(max_examples=40, deadline=None)
def test_what_is_gathered_and_reduced_is_all_of_it(case: tuple[Model, dict[str, Any]]) -> None:
    """In each micro-batch every unit's weights once a pass that needs them, and every gradient once."""
    model, given = case
    found = run(model, **given)
    training = training_of(model, **given)
    sizes = unit_sizes(training, 0, 0)
    ops, costs = found.program.stages[0].ops, found.program.costs
    moved: dict[str, int] = {}
    for op, lane in enumerate(ops.stream):
        name = found.workload.name[ops.row[op]]
        if STREAMS[lane].startswith("dp"):
            moved[name] = moved.get(name, 0) + costs[ops.cost[op]].bytes  # type: ignore[union-attr]
    dense = sum(one.dense for one in sizes) if training.shards > 1 else 0
    layers = sum(one.dense for one in sizes if not one.root) if training.shards > 1 else 0
    if training.zero == 3:
        assert moved.get("weights_gather", 0) == 2 * dense * training.microbatches
        again = 2 * layers * training.microbatches if training.reshard else 0
        assert moved.get("weights_gather_again", 0) == again
    assert moved.get("grad_reduce", 0) == training.grad_bytes * dense * training.microbatches


@given(layouts())
@settings(max_examples=40, deadline=None)
def test_sharing_out_more_never_holds_more(case: tuple[Model, dict[str, Any]]) -> None:
    model, given = case
    given = {
        name: value for name, value in given.items() if name not in ("prefetch", "reshard_after_forward")
    }
    training = training_of(model, **given | {"zero": "2"})
    held = run(model, **given | {"zero": "2"}).program.stages[0].chunk_changes
    two = stage_memory(training, 0, held)
    three = {
        (ahead, reshard): stage_memory(
            training_of(model, **given | {"zero": "3", "prefetch": ahead, "reshard_after_forward": reshard}),
            0,
            held,
        )
        for ahead in "012"
        for reshard in ("on", "off")
    }
    for one in three.values():
        assert (one.gradients, one.optimizer, one.activations) == (
            two.gradients,
            two.optimizer,
            two.activations,
        )
    on = [three[ahead, "on"].weights for ahead in "012"]
    assert on == sorted(on)
    assert three["0", "off"].weights >= on[2]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"zero": "1", "prefetch": "1"},
            "--prefetch is of weights that are shared out: found --zero 1, --zero 3",
        ),
        ({"reshard_after_forward": "on"}, "found --zero 0, --zero 3 would fit"),
        ({"zero": "0", "shard_size": 2}, "found --zero 0, --zero 1, 2 or 3 would fit"),
        ({"zero": "3", "shard_size": 3}, "--shard-size 3 does not divide dp x cp 4: 2 or 4 would fit"),
        (
            {"zero": "3", "shard_size": 1},
            "--shard-size 1: nothing is shared out; 2 or 4 would fit, or --zero 0",
        ),
        ({"zero": "2", "overlap_grad_reduce": True}, "--zero 1, it would fit"),
        ({"zero": "3", "overlap_param_gather": True}, "--prefetch says how many"),
        (
            {"zero": "1", "bucket_size": 5},
            "with --overlap-grad-reduce or --overlap-param-gather it would fit",
        ),
        ({"zero": "3", "bucket_size": 5}, "--zero 1 would fit"),
        (
            {"zero": "3", "shard_size": 2, "network": "simai-auto"},
            "knows no groups inside data parallelism; analytical and shared and links and flows would fit",
        ),
        ({"zero": "3", "pp": 2}, "--pp 1, --engine-preset torchtitan, or a schedule of PyTorch's"),
        ({"zero": "3", "pp": 2, "virtual_stages": 2, "schedule": "interleaved"}, "Megatron's FSDP refuses"),
    ],
)
def test_what_does_not_go_together_says_what_would(given: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        run(SMALL, gpu="h100", **{"world": 4, "global_batch": 8, **given})
    assert words in str(caught.value)


def test_experts_over_ranks_are_not_in_hybrid_shards() -> None:
    with pytest.raises(UsageError, match="--ep 1 would fit"):
        run(EXPERTS, gpu="h100", world=4, ep=2, zero="3", shard_size=2, global_batch=4)


@pytest.mark.parametrize("schedule", ["gpipe", "looped-bfs", "breadth-first"])
def test_schedules_of_others_run_a_sharded_pipeline(schedule: str) -> None:
    given = {} if schedule == "gpipe" else {"virtual_stages": 2}
    found = run(SMALL, gpu="h100", world=8, pp=2, zero="3", global_batch=16, schedule=schedule, **given)
    assert "weights_gather" in found.workload.name
    assert found.step_time_ns > 0


def test_each_rule_of_the_page_has_a_test_of_its_name() -> None:
    page = (Path(__file__).parents[2] / "docs" / "fsdp.md").read_text("utf-8")
    here = Path(__file__).read_text("utf-8")
    rules = re.findall(r"^\* \*\*(.+?)\.?\*\*", page, re.MULTILINE)
    assert len(rules) == 7
    for rule in rules:
        name = re.sub(r"[^a-z]+", "_", rule.lower().replace("micro-batch", "microbatch")).strip("_")
        assert f"def test_{name}(" in here


@pytest.mark.skipif(not published_fsdp.ROWS.exists(), reason="../shared/validation is not here")
@pytest.mark.slow
def test_published_runs_with_the_attention_of_their_time() -> None:
    """With wltui's: test_published_steps.py, which needs them for another figure as well."""
    found = published_fsdp.all_made(True)
    assert len(found) == 56
    errors = [error for ones in published_fsdp.errors(found, True).values() for error in ones]
    median, most, _ = published_fsdp.spread(errors)
    assert (median <= 0.10, most <= 0.20) == (True, True)


def test_zero_1_inside_a_node_shares_states_in_groups_and_adds_gradients_up_over_all() -> None:
    """Gradients: an all-reduce over 8 replicas; weights: a gather over the 4 of a group; states: a fourth."""
    layout: dict[str, Any] = {"world": 8, "gpu": "h100", "global_batch": 8, "zero": "1"}
    rows = ModelMaker("m", SMALL).make_rows(ModelParameters(**layout, shard_size=4))
    sent = {
        (group, kind): size
        for group, kind, size in zip(
            rows.workload.wg.group, rows.workload.wg.collective, rows.workload.wg.bytes, strict=True
        )
        if kind
    }
    parameters = sum(stage_parameters(rows.training, 0))
    assert sent == {("dp", "ALLREDUCE"): 4 * parameters, ("dp_shard", "ALLGATHER"): 2 * parameters}
    states = {
        size: stage_memory(
            ModelMaker("m", SMALL).make_rows(ModelParameters(**layout, shard_size=size)).training, 0, []
        )
        for size in (None, 2, 4, 8)
    }
    all_states = 12 * parameters
    assert [states[size].optimizer for size in (None, 8, 4, 2)] == [
        all_states // 8, all_states // 8, all_states // 4, all_states // 2
    ]  # fmt: skip
    assert len({one.gradients for one in states.values()}) == 1
    # All of them as one group is what it is without the flag, to the nanosecond.
    assert run(SMALL, **layout, shard_size=8).step_time_ns == run(SMALL, **layout).step_time_ns
    overlaps = {"overlap_grad_reduce": True, "overlap_param_gather": True}
    assert (
        run(SMALL, **layout, **overlaps, shard_size=4).step_time_ns
        < run(SMALL, **layout, shard_size=4).step_time_ns
    )


@pytest.mark.parametrize("schedule", ["1f1b", "interleaved", "zb-h1", "zb-v", "gpipe"])
def test_a_stage_that_keeps_its_weights_gathers_and_reduces_once_a_step(schedule: str) -> None:
    """Of 8 micro-batches each: with resharding all of them gather twice and reduce, on every stage."""
    layout: dict[str, Any] = {
        "world": 8, "pp": 2, "gpu": "h100", "global_batch": 32, "zero": "3", "schedule": schedule,
        "engine_preset": "torchtitan", "virtual_stages": 2 if schedule == "interleaved" else None,
        "dim": ("switch:8:10:0",), "algorithm": ("0=ring",),
    }  # fmt: skip
    busy = {}
    for reshard in ("off", "on"):
        simulation = run(SMALL, **layout, reshard_after_forward=reshard)
        training = find_model_rows(simulation).training
        lanes = SimulatedRun(simulation).lanes
        for stage in (0, 1):
            sent_ns = sum(lanes.content(stage, "dp").shares.between(0, simulation.step_time_ns).values())
            # Bytes of a parameter that leave a rank of a ring of four, at 10 GB/s.
            busy[reshard, stage] = sent_ns * 10 / (3 / 4) / sum(stage_parameters(training, stage))
    # Weights in 2 bytes and gradients in 4, once.
    assert [busy["off", stage] for stage in (0, 1)] == pytest.approx([6, 6], rel=1e-2)
    assert all(busy["on", stage] > 6 * 8 for stage in (0, 1))
