"""What a run takes for granted is among its notes, with what is at stake where another run can tell."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.comparison import Comparison
from simcore.diagnostics import Cancelled, UsageError, sort_by_weight
from simcore.model.known_models import MODELS
from simcore.model.maker import ModelMaker
from simcore.model.sizes import Model
from simcore.parameters import Parameters
from simcore.program.ops import COMPUTE, FWD, IG, OPT, STREAMS
from simcore.program.schedules import SCHEDULES
from simcore.records import replace
from simcore.render.report.pages import run_json, run_page
from simcore.runs.measured import run_recording
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import Simulation, simulate
from simcore.units import change_percent, duration
from simcore.words.sentences.assumed import find_schedule_range
from simcore.words.sentences.model import RunSums
from simcore.workload import open_workload
from tests.analysis.test_sentences import of_model
from tests.measured.test_replay_by_hand import SLOW_RANK, run_of
from tests.says import figures
from tests.says import said as says
from tests.strategies import Cell, Row, layer, make_workload
from tui.frame import BLOCKS, text_of
from tui.summary.frame import draw
from tui.summary.model import SummaryModel

SHARD, PIPELINE = "fixtures/000_gpt13b_tp4_old_header.txt", "fixtures/002_gpt_1024npu.txt"
SMALL_PIPELINE = "fixtures/001_moe_128npu_with_mistakes.txt"
# What changes of it bring is found in a tenth of the time.
FEW: dict[str, object] = {"pp": 4, "microbatches": 4}


def assumed(results: SimulatedRun) -> dict[str, str]:
    return {one.code: one.message for one in results.diagnostics if one.weight == "assumption"}


def results_of(path: str, **parameters: object) -> SimulatedRun:
    return SimulatedRun(simulate(open_workload(path), Parameters(**parameters)))  # type: ignore[arg-type]


@pytest.mark.parametrize("flags", [{}, {"schedule": "1f1b", "overlap_param_gather": True}])
def test_what_a_shard_in_place_of_the_gathered_buffer_costs_is_that_of_a_file_with_the_buffer(
    tmp_path: Path, flags: dict[str, object]
) -> None:
    """Planted: dp told anew, 1, by a file without a shard."""
    results = results_of(SHARD, **flags)
    (note,) = [one for one in results.diagnostics if one.code == "gather-is-shard"]
    whole = tmp_path / "whole.txt"
    whole.write_text(Path(SHARD).read_text("utf-8").replace("202424320", "6477578240"), "utf-8")
    other = results_of(str(whole), world=128, **flags)
    step, then = results.step_time_ns, other.step_time_ns
    change = change_percent(step, then)
    assert figures(note.message)[-2:] == [duration(then), change]
    assert (note.weight, note.line) == ("warning", 3)
    # In a panel of one row for it what is at stake is not left out: nobody knew of +15.3 %.
    assert says([note.brief], "grad_gather", "1/32", change)
    assert not [one for one in other.diagnostics if one.code == "gather-is-shard"]
    # The rest is as the run has it.
    told = results.simulation.diagnostics
    assert [one.code for one in results.diagnostics][: len(told)] == [one.code for one in told]


def test_a_warning_on_which_hardly_anything_hangs_comes_last_of_them() -> None:
    """`with all 0.0 %` took the one row for a warning, with -7.4 % below it."""
    changed = {"schedule": "1f1b", "overlap_grad_reduce": True, "overlap_param_gather": True}
    for flags, is_last in (({}, False), (changed, True)):
        results = results_of(SHARD, **flags)
        results.weigh_assumptions()
        warnings = [one for one in sort_by_weight(results.diagnostics) if one.weight == "warning"]
        (note,) = [one for one in warnings if one.code == "gather-is-shard"]
        assert (0 < note.effect < 0.001) == is_last
        assert warnings.index(note) == (len(warnings) - 1 if is_last else 0)
        # Of what no run can weigh nobody knows that it is little.
        assert warnings[0].effect == 0 or warnings[0].effect >= 0.001


def test_ranks_that_a_line_of_the_file_tells_are_an_assumption_and_no_warning() -> None:
    told = assumed(results_of(SHARD))["all-gpus-missing"]
    assert says([told], "all_gpus", "dp 32", "line 3", "grad_gather", "1/32")


def test_the_schedule_that_nobody_gave_is_said_where_another_would_be_another_run() -> None:
    """Planted: said of one stage of a model, which has no other order."""
    of_shard, of_pipeline = (assumed(results_of(path))["schedule-default"] for path in (SHARD, PIPELINE))
    assert says([of_shard], "--schedule", "layer-loop", "pp is 1", "SimAI", "optimizer before")
    assert says([of_pipeline], "--schedule", "1f1b")
    assert "pp" not in of_pipeline
    given = results_of(SHARD, schedule="layer-loop"), results_of(PIPELINE, schedule="1f1b")
    table = results_of("fixtures/003_gpt2_large_op_table.txt")
    model = ModelMaker("llama-3-8b", MODELS["llama-3-8b"]).empty_workload()
    one_stage = SimulatedRun(simulate(model, Parameters(world=8)))
    for results in (*given, table, one_stage):
        assert "schedule-default" not in assumed(results)


def test_that_communication_beside_compute_is_free_is_said_where_there_is_both() -> None:
    said = assumed(results_of(SHARD))["overlap-assumed"]
    assert said.startswith("compute and collectives")
    shared = assumed(results_of(SHARD, network="shared", world=8))["overlap-assumed"]
    assert shared.startswith("compute beside")
    assert "overlap-assumed" in assumed(results_of(PIPELINE))
    row = Row("a", Cell(1000, "ALLREDUCE", "dp", 100))
    alone = make_workload([row], tp=1, pp=1, all_gpus=1)
    apart = make_workload([layer("a", 1000, 1000, 1000)], tp=1, pp=1, all_gpus=8)
    for workload in (alone, apart):
        assert "overlap-assumed" not in assumed(SimulatedRun(simulate(workload, Parameters())))


def test_a_stage_layout_that_was_typed_is_no_assumption() -> None:
    """Planted: the note of the default where `--stage-layout uniform` was given, as before."""
    said = assumed(results_of(PIPELINE))["stage-layout-default"]
    assert said.startswith("stage layout uniform")
    for layout in ("uniform", "megatron"):
        assert "stage-layout-default" not in assumed(results_of(PIPELINE, stage_layout=layout))
    left, typed = Parameters(), Parameters(stage_layout="uniform")
    assert (left.as_flags(), typed.as_flags()) == ([], ["--stage-layout", "uniform"])
    # The run is the same, and nothing has changed between the two.
    one, two = (SimulatedRun(simulate(open_workload(PIPELINE), given)) for given in (left, typed))
    assert one.step_time_ns == two.step_time_ns
    assert Comparison(one, two).ops.changed_parameters == {}


def test_what_an_assumed_stage_layout_costs_is_that_of_a_rerun_and_not_looked_for_before_it_is_asked() -> (
    None
):
    """Planted: the run of the other layout at the start, before any picture."""
    results = results_of(SMALL_PIPELINE)
    note = assumed(results)["stage-layout-default"]
    whose = figures(note)
    assert "megatron_step_ns" not in vars(results)
    results.weigh_assumptions()
    step, other = results.step_time_ns, results_of(SMALL_PIPELINE, stage_layout="megatron").step_time_ns
    weighed = assumed(results)["stage-layout-default"]
    change = [duration(other), change_percent(step, other)]
    assert weighed.startswith(note)
    assert figures(weighed) == [*whose, *change]
    # Text and JSON of a report say it, whatever was asked of the run before.
    for printed in (run_page(results_of(SMALL_PIPELINE)), str(run_json(results_of(SMALL_PIPELINE)))):
        assert says([" ".join(printed.split())], *change)
    # Who leaves the screen does not wait for it; a small file has come to its end before it is asked.
    stopped = results_of(PIPELINE)
    said = assumed(stopped)["stage-layout-default"]
    with pytest.raises(Cancelled):
        stopped.weigh_assumptions(lambda: True)
    assert assumed(stopped)["stage-layout-default"] == said
    # Nobody knows it under jitter; who asked for the layout assumes nothing.
    random = results_of(SMALL_PIPELINE, jitter=0.1)
    random.weigh_assumptions()
    assert assumed(random)["stage-layout-default"] == note
    given = results_of(SMALL_PIPELINE, stage_layout="uniform")
    given.weigh_assumptions()
    assert given.other_layout_ns is None


def test_why_memory_is_not_known_is_said_where_it_is_not() -> None:
    table = results_of("fixtures/003_gpt2_large_op_table.txt")
    trace = run_recording(run_of(SLOW_RANK, 2), Parameters())
    for results, whose in ((table, "the file"), (trace, "a trace")):
        why = results.model.memory_unknown
        assert why.startswith(whose)
        assert says(run_page(results).splitlines(), "Memory", why)
        large = text_of(draw(SummaryModel(results), 200, 48, BLOCKS, ""))
        assert says(large.splitlines(), "memory not known", why)
        middling = text_of(draw(SummaryModel(results), 120, 38, BLOCKS, ""))
        assert says(middling.splitlines(), "memory not known", why.partition("gives ")[2])
        assert why not in middling
    model = ModelMaker("llama-3-8b", MODELS["llama-3-8b"]).empty_workload()
    for results in (results_of(SHARD), SimulatedRun(simulate(model, Parameters(world=8)))):
        assert results.model.memory_unknown == ""
        assert "not known" not in run_page(results)
        assert "memory not known" not in text_of(draw(SummaryModel(results), 200, 48, BLOCKS, ""))


def test_a_schedule_with_fewer_micro_batches_than_it_is_made_for_says_so_in_its_run() -> None:
    """After `t` the caveat of the change was gone: the run itself has it among its notes."""
    notes = assumed(results_of(PIPELINE, schedule="zb-h1", microbatches=8))
    assert says([notes["few-microbatches-assumed"]], "zb-h1", "16 micro-batches", "8")
    for parameters in ({}, {"schedule": "zb-h1"}, {"microbatches": 8}):
        assert "few-microbatches-assumed" not in assumed(results_of(PIPELINE, **parameters))


def test_what_the_memory_of_a_file_is_made_of_is_among_the_notes() -> None:
    """`memory about 60.5 GB` stood on every screen, and nowhere what is counted in it."""
    results = results_of(PIPELINE)
    most = max(results.model.file_memory, key=lambda memory: memory.total)
    assert most.activations is not None
    assert round((most.weights + most.gradients + most.optimizer + most.activations) / 1e9, 1) == 60.5
    parts = ("weights 6.4 GB", "gradients 12.8 GB", "optimizer 4.8 GB", "activations 36.5 GB")
    assert says([assumed(results)["memory-assumed"]], "stage 0", "60.5 GB", *parts)
    # With a GPU, or of a model, memory is that of what made the rows.
    model = ModelMaker("llama-3-8b", MODELS["llama-3-8b"]).empty_workload()
    of_model = SimulatedRun(simulate(model, Parameters(gpu="h100", world=8, global_batch=8)))
    for others in (results_of(PIPELINE, gpu="h100"), of_model):
        assert "memory-assumed" not in assumed(others)


def test_the_range_of_a_step_without_a_schedule_holds_whatever_is_given() -> None:
    step_ns, fastest = of_model().step_time_ns, SimulatedRun(of_model()).lower_bound
    assert fastest is not None
    assert not fastest.is_one_microbatch
    (found,) = find_schedule_range(RunSums(SimulatedRun(of_model())))
    assert (found.ns, found.step_ns) == (fastest.ns, step_ns)
    assert (found.schedule, found.is_way) == ("1f1b", False)
    hidden = {"overlap_grad_reduce": True, "overlap_param_gather": True}
    others = [
        of_model(virtual_stages=2), of_model(schedule="zb-h1"), of_model(schedule="zb-h2"),
        of_model(**hidden), of_model(virtual_stages=2, **hidden),
    ]  # fmt: skip
    assert all(fastest.ns <= other.step_time_ns for other in others)
    # Of many micro-batches the bubble is little: the end is near what can be reached.
    many = SimulatedRun(of_model(global_batch=64)).lower_bound
    assert many is not None
    assert many.ns > 0.95 * of_model(global_batch=64, schedule="dualpipe").step_time_ns


def way_of_one_ns(simulation: Simulation) -> int:
    """Forward and input gradients of micro-batch 0 on all stages, and the optimizer, from spans alone."""
    way, optimizers = 0, []
    for stage, program in enumerate(simulation.program.stages):
        number = next(n for n, one in enumerate(simulation.timeline.classes) if one.stage == stage)
        ops, start, end = simulation.timeline.columns(number)
        lasting = [end[op] - start[op] for op in range(len(program.ops))]
        tp = STREAMS.index("tp")
        way += sum(
            ns for op, ns in enumerate(lasting)
            if ops.microbatch[op] == 0 and ops.stream[op] in (COMPUTE, tp) and ops.phase[op] in (FWD, IG)
        )  # fmt: skip
        optimizers.append(
            sum(ns for op, ns in enumerate(lasting) if ops.phase[op] == OPT and ops.stream[op] == COMPUTE)
        )
    return way + min(optimizers)


def test_one_micro_batch_on_its_way_through_all_stages_bounds_the_step() -> None:
    """llama-3-70b with one micro-batch: 297.7 ms was said, the work of a rank, and v-half takes 1.009 s."""
    model = ModelMaker("llama-3-70b", MODELS["llama-3-70b"]).empty_workload()
    simulation = simulate(model, Parameters(world=64, tp=8, pp=4))
    fastest = SimulatedRun(simulation).lower_bound
    assert fastest is not None
    assert fastest == (way_of_one_ns(simulation), True)
    (found,) = find_schedule_range(RunSums(SimulatedRun(simulation)))
    assert (found.ns, found.step_ns) == (fastest.ns, simulation.step_time_ns)
    assert (found.schedule, found.is_way) == ("1f1b", True)
    hidden = Parameters(
        world=64, tp=8, pp=4, schedule="v-half", overlap_grad_reduce=True, overlap_param_gather=True
    )
    assert fastest.ns <= simulate(model, hidden).step_time_ns < 1.2 * fastest.ns


def test_no_range_is_said_where_single_ranks_or_links_are_slow() -> None:
    for slow in ({"slow_rank": ("3=1.5",)}, {"slow_link": ("0:1=0.5",)}):
        assert not list(find_schedule_range(RunSums(SimulatedRun(of_model(**slow)))))


@settings(max_examples=15)
@given(
    st.sampled_from((2, 3, 4)), st.sampled_from((1, 2)), st.sampled_from((1, 2)), st.sampled_from((1, 2)),
    st.sampled_from((1, 2, 4, 8)), st.sampled_from((2000, 32000, 200_000)), st.sampled_from((None, "full")),
)  # fmt: skip
def test_no_schedule_ends_below_the_range(
    pp: int, tp: int, dp: int, layers: int, batches: int, vocabulary: int, recompute: str | None
) -> None:
    """The head of a large vocabulary makes the last stage long, which dualpipe shares out over two ranks."""
    model = Model("small", pp * layers, 512, 8, 8, 64, 2048, True, vocabulary, 512, tied_embeddings=False)
    opened = ModelMaker("small", model).empty_workload()
    given = Parameters(world=pp * tp * dp, tp=tp, pp=pp, global_batch=batches * dp, gpu="h100")
    given = replace(given, recompute=recompute) if recompute else given
    fastest = SimulatedRun(simulate(opened, given)).lower_bound
    assert fastest is not None
    ran = 0
    for schedule, hidden in itertools.product(SCHEDULES, (False, True)):
        for stages in {None, layers} if SCHEDULES[schedule].chunks is None else {None}:
            other = replace(
                given, schedule=schedule, virtual_stages=stages, overlap_grad_reduce=hidden,
                overlap_param_gather=hidden,
            )  # fmt: skip
            try:
                step_ns = simulate(opened, other).step_time_ns
            except UsageError:
                # It does not fit so many stages or micro-batches.
                continue
            assert fastest.ns <= step_ns, other
            ran += 1
    assert ran >= 6


# -- how much hangs on it --------------------------------------------------------------


def weighed(results: SimulatedRun) -> dict[str, str]:
    """What is assumed, with all that is known once the changes are."""
    results.what_if()
    return assumed(results)


def otherwise(results: SimulatedRun, **parameters: object) -> list[str]:
    """The step with other parameters and its change, `496.2 ms` and `+15.3 %`, by a run of its own."""
    workload = results.simulation.workload
    then = simulate(workload, replace(results.simulation.parameters, **parameters)).step_time_ns
    return [duration(then), change_percent(results.step_time_ns, then)]


def halved(results: SimulatedRun) -> tuple[str, ...]:
    found = []
    for dimension in results.dims:
        kind, size, rate, latency = dimension.flag().split(":")
        found.append(f"{kind}:{size}:{float(rate) / 2:g}:{latency}")
    return tuple(found)


@pytest.mark.parametrize(("path", "few"), [(SHARD, {}), (PIPELINE, FEW)])
def test_what_hangs_on_the_cluster_is_the_step_with_half_its_bandwidth(
    path: str, few: dict[str, object]
) -> None:
    """A newcomer went through two pages of notes to find which assumption decides. Planted: the latency."""
    results = results_of(path, **few)
    told = weighed(results)["cluster-default"]
    assert says([told], "half", *otherwise(results, dim=halved(results)))
    # The same cluster in words is the same run.
    as_flags_of_it = tuple(dimension.flag() for dimension in results.dims)
    same = results_of(path, dim=as_flags_of_it, **few)
    assert same.step_time_ns == results.step_time_ns
    # Who gave some of it is told what: nothing of that is assumed.
    assert "half the bandwidth" not in str(weighed(results_of(path, dim=halved(results), **few)))
    assert "half the bandwidth" not in str(weighed(results_of(path, cluster="h100-8", **few)))


def test_half_the_bandwidth_leaves_the_ranks_of_a_file_that_does_not_tell_its_world(tmp_path: Path) -> None:
    """Planted: the halved cluster given by its dimensions alone, 8 ranks in place of 1."""
    path = tmp_path / "micro.txt"
    path.write_text("MICRO\n1\nmicro_test\t-1\t1\tNONE\t0\t1\tNONE\t0\t1\tALLGATHER\t1048576\t1\n")
    results = results_of(str(path))
    assert results.simulation.layout.world == 1
    assert weighed(results)["cluster-default"].endswith("as long")


def test_what_hangs_on_the_ranks_is_the_step_of_twice_as_many() -> None:
    results = results_of(SHARD)
    told = weighed(results)["all-gpus-missing"]
    assert says([told], "world 128", "twice", *otherwise(results, world=256))
    assert "all-gpus-missing" not in weighed(results_of(SHARD, world=128))


def test_what_hangs_on_the_bytes_between_stages_is_the_step_with_twice_as_many(tmp_path: Path) -> None:
    results = results_of(PIPELINE, **FEW)
    twice = tmp_path / "twice.txt"
    text = Path(PIPELINE).read_text("utf-8")
    twice.write_text(text.replace(" ga: 16 ", " ga: 16 pp_comm: 33554432 ", 1), "utf-8")
    then = results_of(str(twice), world=1024, **FEW).step_time_ns
    change = change_percent(results.step_time_ns, then)
    told = weighed(results)["pp-comm-missing"]
    assert says([told], "pp_comm", "16 777 216 B", "twice", duration(then), change)
    assert "pp-comm-missing" not in weighed(results_of(SMALL_PIPELINE))


def test_what_hangs_on_the_schedule_is_the_best_other_one_of_the_changes() -> None:
    results = results_of(PIPELINE, **FEW)
    best = otherwise(results, schedule="interleaved", virtual_stages=8)
    told = weighed(results)["schedule-default"]
    assert says([told], "--schedule", "1f1b", "interleaved", "8 chunks", *best)
    alone = [one for one in results.what_if() if one.flags == "--schedule interleaved --virtual-stages 8"]
    assert [one.name for one in alone] == ["--schedule interleaved --virtual-stages 8"]
    # Of one stage it is 1f1b, whose step differs by 2 ns; one micro-batch leaves nothing to another order.
    of_one_stage = results_of(SHARD)
    assert says([weighed(of_one_stage)["schedule-default"]], "with 1f1b", "as long")
    assert (
        "the step"
        not in weighed(results_of(PIPELINE, virtual_stages=1, microbatches=1, compute_scale=0))[
            "schedule-default"
        ]
    )


def test_of_assumptions_that_with_which_the_step_differs_most_comes_first() -> None:
    results = results_of(PIPELINE, **FEW)
    before = [one.code for one in sort_by_weight(results.diagnostics) if one.weight == "assumption"]
    assert before[0] == "cluster-default"
    results.what_if()
    found = sort_by_weight(results.diagnostics)
    assert [one.code for one in found][:5] == [
        "not-rescaled", "backward-unsent", "schedule-default", "cluster-default", "stage-layout-default",
    ]  # fmt: skip
    assert [one.effect for one in found[2:5]] == sorted((one.effect for one in found[2:5]), reverse=True)
    # In a panel of one row for it, too.
    assert found[2].brief == "schedule 1f1b; interleaved -32.1 %"
    assert found[3].brief == "cluster h100-8; half GB/s +12.9 %"
    # On which hardly anything hangs, 0.1 %, stands behind that of which nobody knows.
    assert found[-1].code == "pp-comm-missing"
    assert found[-2].effect == 0 < found[-1].effect < 0.001


def test_that_no_row_sends_over_ep_is_said_where_none_does() -> None:
    assert says([assumed(results_of(SHARD))["ep-missing"]], "ep 1", "no row")
    rows = [Row("moe_1", Cell(1000, "ALLTOALL", "ep", 100), Cell(1000), Cell(1000))]
    told = assumed(SimulatedRun(simulate(make_workload(rows, tp=1), Parameters())))
    assert says([told["ep-missing"]], "ep 1")
    assert "row" not in told["ep-missing"]
