"""Closed forms of the pipeline schedules, exact to the nanosecond, with free communication.

Those of the papers: Qi et al., Zero Bubble Pipeline Parallelism (arXiv 2401.10241) and Pipeline Parallelism
with Controllable Memory (2405.15362); DeepSeek-V3's report (2412.19437), table 2. Everywhere else the naive
simulator of `naive_pipeline.py` says what a schedule takes.
"""

import itertools

import pytest

from simcore.parameters import Parameters
from simcore.program.ops import TO_NEXT, TransferCost
from simcore.program.order import Shape
from simcore.program.schedules import SCHEDULES
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import Simulation, simulate
from tests.engine.naive_pipeline import Times, naive_pipeline
from tests.strategies import Cell, Row, make_workload

# As many as a stage of four chunks needs, and stages so few that a step has hundreds of actions: what a run
# takes grows with both, and no closed form changes with them.
LAYERS = 4
TIMES = [(1000, 900, 800), (900, 1000, 800), (700, 800, 1500), (500, 500, 500), (2000, 300, 700)]


def pipeline(stages: int, microbatches: int, times: tuple[int, int, int], **parameters: object) -> Simulation:
    """Equal micro-batches of equal layers of (F, I, W) ns each; free communication."""
    cells = [Cell(ns) for ns in times]
    rows = [Row(f"mlp_{number}", *cells) for number in range(LAYERS)]
    workload = make_workload(rows, tp=1, ep=1, pp=stages, all_gpus=stages, pp_comm=10**6)
    return simulate(workload, Parameters(microbatches=microbatches, comm_scale=0.0, **parameters))  # type: ignore[arg-type]


def bubbles(simulation: Simulation) -> set[int]:
    """Bubble and idle time together, of every class."""
    return {accounts.bubble_ns + accounts.idle_ns for accounts in SimulatedRun(simulation).accounts}


def peaks(simulation: Simulation) -> list[int]:
    """How many micro-batches each stage holds at most."""
    return [stage.peak_microbatches for stage in simulation.program.stages]


def counts(stages: int) -> list[int]:
    return sorted({1, stages - 1, stages, stages + 1, 2 * stages + 1})


# Every count with two of the durations, and each of these with most counts: all with all are 125 runs.
CASES = [
    (p, m, TIMES[number % 5])
    for number, (p, m) in enumerate([(p, m) for p in (2, 3, 4, 6, 9) for m in counts(p)] * 2)
]


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
def test_the_bubble_of_gpipe_and_1f1b_is_p_minus_1_micro_batches(schedule: str) -> None:
    for stages, microbatches, times in CASES:
        simulation = pipeline(stages, microbatches, times, schedule=schedule)
        one = LAYERS * sum(times)
        case = (stages, microbatches, times)
        assert bubbles(simulation) == {(stages - 1) * one}, case
        assert simulation.step_time_ns == (microbatches + stages - 1) * one, case
        held = [microbatches if schedule == "gpipe" else stages - stage for stage in range(stages)]
        assert peaks(simulation) == [min(microbatches, most) for most in held], case


@pytest.mark.sampled(12)
@pytest.mark.parametrize("stages", [2, 3, 4, 6, 8])
@pytest.mark.parametrize("groups", [1, 2, 3])
@pytest.mark.parametrize("chunks", [2, 4])
@pytest.mark.parametrize("times", TIMES)
def test_the_bubble_of_interleaved_is_that_of_1f1b_divided_by_its_chunks(
    times: tuple[int, int, int], chunks: int, groups: int, stages: int
) -> None:
    simulation = pipeline(stages, groups * stages, times, schedule="interleaved", virtual_stages=chunks)
    assert bubbles(simulation) == {(stages - 1) * LAYERS * sum(times) // chunks}


def test_the_bubble_of_zb_h1_is_filled_by_weight_gradients() -> None:
    """(P-1)(F+I) - (min(M,P)-1) min(F,I,W): so (P-1)(F+I-W) for M >= P and W no longer than F and I."""
    for stages, microbatches, times in CASES:
        simulation = pipeline(stages, microbatches, times, schedule="zb-h1")
        f, i, w = (LAYERS * ns for ns in times)
        bubble = (stages - 1) * (f + i) - (min(microbatches, stages) - 1) * min(f, i, w)
        case = (stages, microbatches, times)
        assert simulation.step_time_ns == microbatches * (f + i + w) + bubble, case
        assert bubbles(simulation) == {bubble}, case
        assert peaks(simulation) == [min(microbatches, stages)] * stages, case


# -- schedules of two chunks, of two directions, breadth first -------------------------

BEYOND = ["zb-h2", "zb-v", "v-half", "v-min", "dualpipe", "dualpipev", "looped-bfs", "breadth-first"]
EQUAL = (500, 500, 500)


def chunks_of(schedule: str) -> int:
    """Chunks of a stage that a test takes."""
    return SCHEDULES[schedule].chunks or 2


def run(
    schedule: str, stages: int, microbatches: int, times: tuple[int, int, int], **more: object
) -> Simulation:
    if SCHEDULES[schedule].chunks is None:
        more["virtual_stages"] = chunks_of(schedule)
    return pipeline(stages, microbatches, times, schedule=schedule, **more)


def longest_span(simulation: Simulation) -> int:
    """From a stage's first compute to its last, the longest of all stages: what a step takes it, not the
    wait for the first micro-batch to come."""
    timeline = simulation.timeline
    return max(
        max(end) - min(start) for start, end in zip(timeline.times.start, timeline.times.end, strict=True)
    )


@pytest.mark.parametrize("stages", [2, 3, 4, 6, 8])
@pytest.mark.parametrize("more", [0, 3])
def test_zb_h2_and_zb_v_have_no_bubble_where_f_i_and_w_are_equal(stages: int, more: int) -> None:
    """2401.10241 table 1: ZB-H2 none for 2P-1 micro-batches held; 2405.15362 table 1: V-ZB none for P."""
    microbatches = 2 * stages + more
    for schedule, fill, held in (
        ("zb-h2", LAYERS * EQUAL[0], 2 * stages - 1),
        ("zb-v", LAYERS * EQUAL[0] // 2, stages),
    ):
        simulation = run(schedule, stages, microbatches, EQUAL)
        work = microbatches * LAYERS * sum(EQUAL)
        assert longest_span(simulation) == work
        # The last stage begins when F of micro-batch 0 has come to it.
        assert simulation.step_time_ns == work + (stages - 1) * fill
        assert max(peaks(simulation)) == held


@pytest.mark.parametrize("stages", [2, 4, 6])
@pytest.mark.parametrize("schedule", [name for name, one in SCHEDULES.items() if one.full_gain != (0, 0)])
def test_from_the_micro_batches_that_it_is_made_for_on_a_bubble_stays_and_below_it_is_longer(
    schedule: str, stages: int
) -> None:
    """What advice says of a schedule: `full gain from 31 micro-batches on`. Planted: P in place of 2P-1."""
    made_for = SCHEDULES[schedule].full_gain_microbatches(stages)

    def bubble(microbatches: int) -> int:
        simulation = run(schedule, stages, microbatches, EQUAL)
        return longest_span(simulation) - microbatches * LAYERS * sum(EQUAL)

    there = bubble(made_for)
    assert [bubble(made_for + more) for more in (1, 5)] == [there, there]
    assert bubble(made_for - 1) > there


@pytest.mark.parametrize("stages", [2, 3, 4, 6])
def test_the_bubble_of_zb_h2_where_times_differ(stages: int) -> None:
    """2401.10241 table 1: (P-1)(F+I-2W), for F = I and W from half of that on; besides it the wait for the
    first micro-batch."""
    for f, i, w in ((1000, 1000, 900), (1000, 1000, 600), (1000, 1000, 500)):
        simulation = run("zb-h2", stages, 3 * stages, (f, i, w))
        bubble = longest_span(simulation) - 3 * stages * LAYERS * (f + i + w)
        assert bubble == (stages - 1) * LAYERS * (f + i - 2 * w)


@pytest.mark.parametrize("stages", [2, 3, 4, 5, 6, 7, 8])
@pytest.mark.parametrize("more", [0, 5])
def test_v_half_holds_half_and_v_min_a_third_of_1f1b(stages: int, more: int) -> None:
    """2405.15362: (P+2)//2 and (P+4)//3 micro-batches, bubbles of about half and two thirds of 1F1B's."""
    microbatches = 2 * stages + more
    one = LAYERS * sum(EQUAL)
    for schedule, held, share in (("v-half", (stages + 2) // 2, 1 / 2), ("v-min", (stages + 4) // 3, 2 / 3)):
        simulation = run(schedule, stages, microbatches, EQUAL)
        assert max(peaks(simulation)) == held
        bubble = longest_span(simulation) - microbatches * one
        # Half of one micro-batch's time more or less: the papers say "about".
        assert abs(bubble - share * (stages - 1) * one) <= one / 2


def test_the_bubble_of_v_half_is_that_of_interleaved_with_two_chunks() -> None:
    for stages in (2, 4, 6):
        bubble = bubbles(run("v-half", stages, 3 * stages, EQUAL))
        assert bubble == {(stages - 1) * LAYERS * sum(EQUAL) // 2}


@pytest.mark.parametrize("times", [(500, 500, 500), (1000, 1000, 500), (800, 800, 100)])
@pytest.mark.parametrize("more", [0, 2])
def test_the_bubble_of_dualpipe_is_that_of_deepseeks_table(times: tuple[int, int, int], more: int) -> None:
    """(PP/2-1)(F&B + B - 3W) with B = I + W, for F = I no shorter than W; F&B is an overlapped pair, here
    without anything to hide: F + B. DualPipeV has half as many ranks as positions."""
    f, i, w = (LAYERS * ns for ns in times)
    bubble = (f + i + w) + (i + w) - 3 * w
    for stages in (2, 4, 6, 8):
        simulation = run("dualpipe", stages, 2 * stages + more, times, overlap_fwd_bwd=True)
        assert longest_span(simulation) == (2 * stages + more) * (f + i + w) + (stages // 2 - 1) * bubble
        assert peaks(simulation) == [stages + 1] * stages
        simulation = run("dualpipev", stages, 2 * stages + more, times, overlap_fwd_bwd=True)
        # A chunk is half a stage.
        assert longest_span(simulation) == (2 * stages + more) * (f + i + w) + (stages - 1) * bubble // 2
        assert {one.peak_chunks for one in simulation.program.stages} == {2 * stages + 1}


def test_pairs_of_dualpipe_one_after_the_other_leave_p_half_minus_1_of_f_plus_i_minus_w() -> None:
    for times in ((500, 500, 500), (1000, 1000, 500), (800, 800, 100)):
        f, i, w = (LAYERS * ns for ns in times)
        for stages in (2, 4, 6):
            simulation = run("dualpipe", stages, 2 * stages, times)
            bubble = (stages // 2 - 1) * (f + i - w)
            assert longest_span(simulation) == 2 * stages * (f + i + w) + bubble


@pytest.mark.parametrize("schedule", ["looped-bfs", "breadth-first"])
def test_the_bubble_of_breadth_first_is_that_of_interleaved(schedule: str) -> None:
    """Lamy-Poirier 2023: (P-1)(F+B)/V for M at least P."""
    some = itertools.product((2, 3, 4), (0, 1, None), (2, 4))
    for (stages, more, chunks), times in zip(some, itertools.cycle(TIMES)):
        microbatches = 2 * stages + 1 if more is None else stages + more
        simulation = pipeline(stages, microbatches, times, schedule=schedule, virtual_stages=chunks)
        assert bubbles(simulation) == {(stages - 1) * LAYERS * sum(times) // chunks}
        held = {one.peak_chunks for one in simulation.program.stages[:-1]}
        assert held == {microbatches * chunks}


def shapes(schedule: str) -> list[tuple[int, int]]:
    """P from 2 to 7, M below, at and above what the schedule is made for."""
    pairs = [(p, m) for p in (2, 3, 4, 6, 7) for m in (1, p - 1, p, p + 2, 2 * p, 3 * p + 1)]
    return sorted({(p, m) for p, m in pairs if m and SCHEDULES[schedule].misfit(p, m) is None})


@pytest.mark.sampled(9)
@pytest.mark.parametrize("times", [*TIMES, (900, 100, 100), (100, 100, 1700)])
@pytest.mark.parametrize("schedule", [name for name, one in SCHEDULES.items() if one.pipelined])
def test_every_schedule_takes_as_long_as_the_naive_simulator_says(
    schedule: str, times: tuple[int, int, int]
) -> None:
    chunks = chunks_of(schedule)
    for stages, microbatches in shapes(schedule):
        simulation = run(schedule, stages, microbatches, times)
        order = SCHEDULES[schedule].order(Shape(stages, microbatches, chunks))
        part = Times(*(LAYERS * ns // order.placement.parts for ns in times))
        naive = naive_pipeline(order, part)
        assert list(simulation.timeline.times.finish) == naive
        # Nothing is shorter than what a stage computes, nor than one micro-batch through all of them.
        work, depth = microbatches * LAYERS * sum(times), order.placement.depth
        assert simulation.step_time_ns >= max(work, depth * (part.forward + part.input_grad))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize("schedule", [name for name, one in SCHEDULES.items() if one.pairs])
def test_overlapped_pairs_take_as_long_as_the_naive_simulator_says(
    schedule: str, times: tuple[int, int, int]
) -> None:
    """A pair begins when both have what they need and hands on when both are over."""
    for stages, microbatches in shapes(schedule):
        simulation = run(schedule, stages, microbatches, times, overlap_fwd_bwd=True)
        order = SCHEDULES[schedule].order(Shape(stages, microbatches, chunks_of(schedule), True))
        part = Times(*(LAYERS * ns // order.placement.parts for ns in times))
        assert list(simulation.timeline.times.finish) == naive_pipeline(order, part, overlapped=True)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("schedule", BEYOND)
def test_every_micro_batch_is_held_from_its_forward_to_its_weight_gradient(schedule: str) -> None:
    for stages, microbatches in shapes(schedule):
        order = SCHEDULES[schedule].order(Shape(stages, microbatches, chunks_of(schedule)))
        program = run(schedule, stages, microbatches, EQUAL).program
        placement = order.placement
        for number, actions in enumerate(order.stages):
            for action in actions:
                here = placement.at(action.microbatch, placement.position(number, action.chunk))
                assert here == (number, action.chunk)
        for actions, stage in zip(order.stages, program.stages, strict=True):
            held = most = 0
            for action in actions:
                held += (action.kind == "F") - (action.kind in "BW")
                most = max(most, held)
            assert held == 0
            assert stage.peak_chunks == most


@pytest.mark.parametrize("schedule", [name for name, one in SCHEDULES.items() if one.pipelined])
def test_one_stage_alone_goes_through_every_schedule(schedule: str) -> None:
    if SCHEDULES[schedule].even_stages:
        return
    simulation = run(schedule, 1, 3, EQUAL)
    assert simulation.step_time_ns == 3 * LAYERS * sum(EQUAL)


@pytest.mark.parametrize("schedule", ["zb-v", "dualpipe"])
def test_a_transfer_is_on_the_stream_of_the_side_it_goes_to(schedule: str) -> None:
    program = run(schedule, 4, 8, EQUAL).program
    for stage in program.stages:
        for stream, number in zip(stage.ops.stream, stage.ops.cost, strict=True):
            cost = program.costs[number]
            if isinstance(cost, TransferCost):
                assert cost.step == (1 if stream == TO_NEXT else -1)
