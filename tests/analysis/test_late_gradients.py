"""Gradients that come after the last backward: which is named, what hides it, and what is still left."""

from simcore.model.known_models import MODELS
from simcore.model.maker import ModelMaker
from simcore.parameters import Parameters
from simcore.program.ops import COMPUTE, WG
from simcore.records import replace
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import Simulation, simulate
from simcore.trace.run import mean_busy_ns
from simcore.units import byte_size, duration
from simcore.words.sentences.model import RunSums
from simcore.words.sentences.network import LateGradients, Left, Whom
from simcore.words.sentences.network import find_late_gradients as late_gradients_of
from simcore.workload import open_workload
from tests.analysis.booking import pair_ns, run
from tests.analysis.test_sentences import BLOCK, SEED_002, first, late_gradients, said
from tests.says import figures
from tests.strategies import Cell, Row
from tests.workload.texts import shared_folder


def late_of(simulation: Simulation) -> LateGradients:
    """What is said of its late gradients."""
    (found,) = late_gradients_of(RunSums(SimulatedRun(simulation)))
    return found


def test_a_late_gradient_all_reduce_is_named_with_the_flag_that_hides_it() -> None:
    simulation = late_gradients()
    with_flag = late_gradients(overlap_grad_reduce=True)
    saved = simulation.step_time_ns - with_flag.step_time_ns
    assert saved > 0
    found = late_of(simulation)
    assert found.ns == pair_ns(20_000)
    assert (found.count, found.collective, found.row) == (1, "all-reduce", "grad_param_comm")
    assert (found.kind, found.bytes, found.is_all_after, found.is_split) == ("dp", 20_000, True, False)
    assert (found.flags, found.hidden_step_ns) == ("--overlap-grad-reduce", with_flag.step_time_ns)
    assert found.left == Left(found.ns - saved, None)
    assert found.saved_ns == saved


def test_a_flag_that_hides_a_part_of_late_gradients_says_what_is_left() -> None:
    """Seed 001: of 5.347 ms the flag saves 1.785, since 3.562 would still come after the last backward. Where
    it hides all, as in seed 002, nothing is left to say.
    """
    workload = open_workload("fixtures/001_moe_128npu_with_mistakes.txt")
    plain, flagged = (
        SimulatedRun(simulate(workload, Parameters(overlap_grad_reduce=on))) for on in (False, True)
    )
    before, after = (late_of(run.simulation) for run in (plain, flagged))
    assert before.left == Left(after.ns, None)
    assert before.change(before.hidden_step_ns).endswith(" (-1.0 %)")
    assert plain.step_time_ns - flagged.step_time_ns == before.ns - after.ns
    whole = late_of(simulate(open_workload(SEED_002), Parameters()))
    assert (whole.flags, whole.left) == ("--overlap-grad-reduce", None)


def test_what_an_overlap_leaves_is_the_last_piece_of_a_reduction() -> None:
    """It read as if the flag were not there, and nothing hidden."""
    workload = open_workload("fixtures/001_moe_128npu_with_mistakes.txt")
    base = Parameters(without_lines=("83-93",), schedule="zb-h1")
    plain, flagged = (
        late_of(simulate(workload, replace(base, overlap_grad_reduce=on))) for on in (False, True)
    )
    for found, size in ((plain, "351.0 MB"), (flagged, "174.4 MB")):
        assert (found.count, found.collective, found.row) == (1, "reduce-scatter", "grad_param_comm")
        assert (found.kind, byte_size(found.bytes), found.is_all_after) == ("dp", size, True)
    assert (plain.is_split, flagged.is_split) == (False, True)


def test_of_several_late_gradients_the_longest_is_named_with_its_own_time() -> None:
    """Each waits for the one before; none has the time of all of them."""
    sizes = (30_000, 50_000, 20_000)
    rows = [Row(f"grad_{size}", wg=Cell(0, "ALLREDUCE", "dp", size)) for size in sizes]
    simulation = run([*rows, BLOCK], {"dp": 2})
    found = late_of(simulation)
    assert (found.ns, found.step_ns) == (sum(pair_ns(size) for size in sizes), simulation.step_time_ns)
    assert (found.count, found.collective, found.row, found.kind) == (3, "all-reduce", "grad", "dp")
    assert (found.bytes, found.after_ns, found.lasting_ns) == (50_000, pair_ns(50_000), pair_ns(50_000))
    assert (found.equal, found.is_all_after, found.flags) == (0, True, "")


def test_a_late_gradient_that_waits_for_its_turn_takes_no_more_than_its_own_time() -> None:
    """Four all-reduces queue behind the last backward: 24.3 us are exposed of one that lasts 23.8, as long as
    another one of as many bytes.
    """
    name = "yleintel__astra-sim__Resnet50_DataParallel.txt"
    workload = open_workload(str(shared_folder("corpus/astra1") / name))
    found = late_of(simulate(workload, Parameters()))
    assert (found.collective, found.row, found.equal) == ("all-reduce", "layer_512_3_conv", 1)
    assert (found.kind, byte_size(found.bytes)) == ("all", "4.2 MB")
    assert (found.after_ns, duration(found.lasting_ns)) == (found.lasting_ns, "23.787 us")


def test_a_late_gradient_all_reduce_can_be_the_main_cause() -> None:
    rows = [Row("grad_param_comm", wg=Cell(0, "ALLREDUCE", "dp", 90_000)), BLOCK]
    sentence = first(run(rows, {"dp": 2}))
    assert (sentence.rule, sentence.lead) == ("late-gradients", "Late gradients. ")
    # Its one row computes its gradient last: there is nothing beside which to send it.
    assert "--overlap-grad-reduce" not in sentence.text


def test_late_gradients_of_layer_loop_are_hidden_by_a_schedule_with_overlap() -> None:
    """Seed 000: 1f1b alone changes 2 ns of placeholders, with the flag it takes what is said."""
    workload = open_workload("fixtures/000_gpt13b_tp4_old_header.txt")
    plain = simulate(workload, Parameters())
    found = late_of(plain)
    assert figures(found.text)[-5:-2] == ["32.2 %", "--schedule", "--overlap-grad-reduce"]
    assert found.flags == "--schedule 1f1b --overlap-grad-reduce"
    assert found.change(found.hidden_step_ns) == "292.0 ms (-32.2 %)"
    assert found.left is None
    both, alone = (
        simulate(workload, Parameters(schedule="1f1b", overlap_grad_reduce=on)) for on in (True, False)
    )
    assert duration(both.step_time_ns) == "292.0 ms"
    assert alone.step_time_ns - plain.step_time_ns == 2
    # As it is assumed: what a rank computes is as long beside a reduction as alone.
    assert mean_busy_ns(SimulatedRun(both)) == mean_busy_ns(SimulatedRun(plain))
    # Two passes of a file are no schedule's, and what is hidden already has no flag.
    for other in (Parameters(passes=2), Parameters(schedule="1f1b", overlap_grad_reduce=True)):
        assert not any("--overlap" in one.text for one in SimulatedRun(simulate(workload, other)).sentences)


def test_of_ranks_with_as_much_late_those_that_end_last_say_what_is_left() -> None:
    """llama-3-70b: the gradients of stage 3 take 0.8 us longer, but it is done 410 ms before stage 0 is."""
    model = ModelMaker("llama-3-70b", MODELS["llama-3-70b"]).empty_workload()
    simulation, flagged = (
        simulate(
            model,
            Parameters(
                world=64, tp=8, pp=4, overlap_grad_reduce=on, dim=("switch:8:341:6500", "switch:8:10:5000")
            ),
        )
        for on in (False, True)
    )
    late = late_of(simulation)
    assert flagged.timeline.times.finish[0] == flagged.step_time_ns
    left = []
    for number in (0, 3):
        ops, start, end = flagged.timeline.columns(number)
        layers = [op for op in range(len(ops.row)) if ops.microbatch[op] >= 0 and ops.stream[op] == COMPUTE]
        last = max(end[op] for op in layers)
        reduced = [op for op in range(len(ops.row)) if end[op] > last and ops.phase[op] == WG]
        left.append(sum(end[op] - max(start[op], last) for op in reduced if ops.stream[op] != COMPUTE))
    assert duration(left[0]) != duration(left[1])
    longer = [
        sum(
            ns
            for op, ns in enumerate(end[index] - start[index] for index in range(len(ops.row)))
            if ops.stream[op] == COMPUTE
        )
        for ops, start, end in (one.timeline.columns(0) for one in (simulation, flagged))
    ]
    assert late.left == Left(left[0], None, slower_ns=longer[1] - longer[0])


def last_backward_end_ns(simulation: Simulation, number: int) -> int:
    """When the last compute of a micro-batch ends on a class, from spans alone."""
    ops, _, end = simulation.timeline.columns(number)
    layers = [op for op in range(len(ops.row)) if ops.microbatch[op] >= 0 and ops.stream[op] == COMPUTE]
    return max(end[op] for op in layers)


def reduced_last_ns(simulation: Simulation, number: int) -> int:
    """What of its gradient reductions a class runs behind its last backward, from spans alone."""
    ops, start, end = simulation.timeline.columns(number)
    last = last_backward_end_ns(simulation, number)
    reductions = [
        op for op in range(len(ops.row))
        if ops.phase[op] == WG and ops.stream[op] != COMPUTE and end[op] > last
        and simulation.workload.wg.collective[ops.row[op]] in ("REDUCESCATTER", "ALLREDUCE")
    ]  # fmt: skip
    return sum(end[op] - max(start[op], last) for op in reductions)


def test_a_figure_of_some_ranks_alone_names_them_the_slow_link_and_what_the_others_have() -> None:
    """Seed 002 with a slow port of rank 5: the dp group of 5, 13 ... 61 takes 900.4 ms, all others 228.3."""
    workload = open_workload(SEED_002)
    slow, whole = (
        simulate(workload, Parameters(slow_link=link, microbatches=2)) for link in (("1:5=0.25",), ())
    )
    found = late_of(slow)
    assert found.figure(found.ns) == "900.4 ms (9.7 %)"
    assert found.whom.who is not None
    assert list(found.whom.who.ranks) == list(range(5, 64, 8))
    assert found.whom.who.words == "Ranks 5, 13 ... 61"
    assert (found.whom.is_slow, found.whom.is_rest, found.whom.is_nearly) == (True, True, False)
    assert found.whom.usual_ns is not None
    assert duration(found.whom.usual_ns) == "228.3 ms"
    assert found.flags
    folding = slow.timeline.folding
    for rank in (0, 4, 5, 13, 61, 64, 69, 1023):
        is_slowed = rank % 8 == 5 and rank < 64
        found = duration(reduced_last_ns(slow, folding.class_of(rank)))
        assert found == ("900.4 ms" if is_slowed else "228.3 ms")
    assert duration(reduced_last_ns(whole, whole.timeline.folding.class_of(5))) == "228.3 ms"
    # Of all ranks alike neither a rank nor a link is named.
    found = late_of(whole)
    assert (found.figure(found.ns), found.whom) == ("228.3 ms (2.8 %)", Whom(found.ns))


def test_a_slow_link_that_makes_no_difference_to_late_gradients_is_not_named() -> None:
    """A tp port: what comes after the last backward are dp collectives, which do not use it."""
    simulation = simulate(open_workload(SEED_002), Parameters(slow_link=("0:5=0.5",), microbatches=2))
    assert not late_of(simulation).whom.is_slow


def test_a_figure_that_few_others_fall_short_of_is_said_as_the_most() -> None:
    """llama-3-70b: 220.4 ms on stages 0 and 3, which have more parameters, less on the others."""
    model = ModelMaker("llama-3-70b", MODELS["llama-3-70b"]).empty_workload()
    found = late_of(simulate(model, Parameters(world=64, tp=8, pp=4)))
    assert found.figure(found.ns) == "220.4 ms (14.9 %)"
    assert found.whom.is_nearly
    assert found.whom.who is None


def test_a_run_that_computes_nothing_has_no_late_gradients() -> None:
    """A micro-benchmark of a collective: there is no backward that it could come after."""
    assert "late-gradients" in said(run([Row("conv", wg=Cell(100, "ALLREDUCE", "dp", 90_000))], {"dp": 2}))
    alone = run([Row("conv", wg=Cell(0, "ALLREDUCE", "dp", 90_000))], {"dp": 2})
    assert "late-gradients" not in said(alone)
    assert "exposed" in said(alone)


def test_what_an_overlap_gives_is_not_said_where_compute_is_not_modelled() -> None:
    """It would lie beside other communication on the same ports: with shared ones it gains nothing."""
    name = "030_Mixtral_8x7B_tp1_pp1_ep8_w8_plain.txt"
    workload = open_workload(str(shared_folder("golden/aicb") / name))
    late = late_of(simulate(workload, Parameters()))
    assert (late.count, late.is_all_after, late.figure(late.ns)) == (1, True, "59.925 ms (77.9 %)")
    assert (late.whom, late.flags, late.saved_ns) == (Whom(late.ns), "", 0)
    plain, overlapped = (
        simulate(workload, Parameters(network="shared", schedule="1f1b", overlap_grad_reduce=on)).step_time_ns
        for on in (False, True)
    )
    assert plain - overlapped < plain // 1000


def test_ranks_that_have_as_good_as_most_late_are_named_together() -> None:
    """Stage 3 has 389 ns more than stage 0 and is done 417 ms before it: it stood there alone."""
    model = ModelMaker("qwen3-235b-a22b", MODELS["qwen3-235b-a22b"]).empty_workload()
    simulation = simulate(model, Parameters(world=256, tp=4, pp=4, ep=64))
    late = [reduced_last_ns(simulation, number) for number in range(4)]
    assert 0 < late[3] - late[0] < late[3] // 50
    assert duration(late[1]) == duration(late[2])
    share = 100 * late[3] / simulation.step_time_ns
    found = late_of(simulation)
    assert found.figure(found.ns) == f"{duration(late[3])} ({share:.1f} %)"
    assert found.whom.who is not None
    assert found.whom.who.words == "Stages 0,3"
    assert (duration(found.whom.least_ns), duration(found.ns)) == (duration(late[0]), duration(late[3]))
    assert found.whom.usual_ns is not None
    assert (duration(found.whom.usual_ns), found.whom.is_rest) == (duration(late[1]), True)
    assert found.flags


def test_a_backward_that_a_flag_makes_end_later_is_said_with_what_is_left() -> None:
    """Seed 001 on shared ports: of 1.785 ms that the flag hides on stage 0, whose end the step is, 0.540 are
    saved. With ports of its own each the backward ends when it did.
    """
    workload = open_workload("fixtures/001_moe_128npu_with_mistakes.txt")
    for network in ("shared", "analytical"):
        plain, flagged = (
            simulate(workload, Parameters(network=network, overlap_grad_reduce=on)) for on in (False, True)
        )
        for run_of in (plain, flagged):
            assert run_of.timeline.times.finish[0] == run_of.step_time_ns
        saved = plain.step_time_ns - flagged.step_time_ns
        # Some of it lies beside what else there is to do at the end.
        before, after = (
            sum(sum(ops.values()) for ops in RunSums(SimulatedRun(run_of)).late[0].values())
            for run_of in (plain, flagged)
        )
        later = last_backward_end_ns(flagged, 0) - last_backward_end_ns(plain, 0)
        assert after <= reduced_last_ns(flagged, 0)
        assert saved == before - after - later
        left = late_of(plain).left
        assert left is not None
        assert (left.ns, left.slower_ns, left.later_ns) == (after, 0, later)
        if network == "shared":
            assert later > saved
            assert left.who is not None
            assert left.who.words == "Stage 0"
        else:
            assert later == 0
            assert left.who is None
