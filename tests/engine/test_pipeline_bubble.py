"""Closed forms of the 1F1B pipeline, exact to the nanosecond."""

import pytest

from simcore.parameters import Parameters
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import Simulation, simulate
from tests.strategies import Cell, Row, make_workload

FWD, IG, WG = 1013, 977, 809


def pipeline(stages: int, microbatches: int, tp: int = 1, **parameters: object) -> Simulation:
    """Equal micro-batches of FWD, IG and WG ns on each stage, spread over three rows; free transfers."""
    rows = [
        Row("embedding_layer", Cell(13), Cell(0), Cell(9)),
        Row("attention_1", Cell(500), Cell(77), Cell(300)),
        Row("mlp_1", Cell(500), Cell(900), Cell(500)),
    ]
    workload = make_workload(rows, tp=tp, ep=1, pp=stages, all_gpus=tp * stages, pp_comm=10**6)
    return simulate(workload, Parameters(microbatches=microbatches, comm_scale=0.0, **parameters))  # type: ignore[arg-type]


def micro_batch_counts(stages: int) -> list[int]:
    return [1, stages - 1, stages, stages + 1, 2 * stages, 5 * stages + 3]


CASES = [(stages, count) for stages in range(2, 9) for count in sorted({*micro_batch_counts(stages)})]


@pytest.mark.parametrize(("stages", "microbatches"), CASES)
def test_a_1f1b_bubble_is_p_minus_1_micro_batches(stages: int, microbatches: int) -> None:
    simulation = pipeline(stages, microbatches)
    assert simulation.program.schedule == "1f1b"
    assert simulation.program.microbatches == microbatches
    bubble = (stages - 1) * (FWD + IG + WG)
    assert simulation.step_time_ns == microbatches * (FWD + IG + WG) + bubble
    for accounts in SimulatedRun(simulation).accounts:
        assert accounts.bubble_ns + accounts.idle_ns == bubble
        assert accounts.busy_ns == microbatches * (FWD + IG + WG)
        assert (accounts.all_exposed_ns, accounts.wait_ns) == (0, 0)


@pytest.mark.parametrize(("stages", "microbatches"), CASES)
def test_a_1f1b_stage_holds_at_most_p_minus_s_micro_batches(stages: int, microbatches: int) -> None:
    peaks = [stage.peak_microbatches for stage in pipeline(stages, microbatches).program.stages]
    assert peaks == [min(microbatches, stages - stage) for stage in range(stages)]


def test_a_micro_batch_is_held_from_the_end_of_its_f_to_the_end_of_its_b() -> None:
    """On stage s, F of micro-batch s has not ended before B of the first one begins; layer-loop keeps all."""
    assert [stage.peak_microbatches for stage in pipeline(3, 8).program.stages] == [3, 2, 1]
    rows = [Row("embedding_layer", Cell(1))] * 5
    workload = make_workload(rows, tp=1, ep=1, pp=1, all_gpus=1)
    assert simulate(workload, Parameters()).program.stages[0].peak_microbatches == 5


def test_without_a_pipeline_1f1b_does_one_micro_batch_after_another() -> None:
    simulation = pipeline(1, 5, schedule="1f1b")
    assert simulation.step_time_ns == 5 * (FWD + IG + WG)
    (stage,) = simulation.program.stages
    order = [(stage.ops.phase[op], stage.ops.microbatch[op]) for op in range(len(stage.ops))]
    assert [microbatch for _, microbatch in order] == sorted(microbatch for _, microbatch in order)


def test_the_first_stage_of_1f1b_waits_longest_and_the_last_one_is_idle_longest() -> None:
    accounts = SimulatedRun(pipeline(6, 24)).accounts
    bubbles, idles = [found.bubble_ns for found in accounts], [found.idle_ns for found in accounts]
    assert bubbles == sorted(bubbles, reverse=True)
    assert idles == [stage * (IG + WG) for stage in range(6)]


@pytest.mark.parametrize("scale", [0.0, 0.5, 2.0, 3.0])
def test_compute_scale_stretches_the_bubble_with_the_compute(scale: float) -> None:
    scaled = sum(round(ns * scale) for ns in (13, 500, 500, 77, 900, 9, 300, 500))
    simulation = pipeline(4, 7, compute_scale=scale)
    assert simulation.step_time_ns == (7 + 3) * scaled


def test_a_paid_transfer_delays_the_next_stage_and_nothing_else() -> None:
    """Two stages, one micro-batch: F, transfer, F, B, transfer, B; hops 2 x 5 ns, 1000 B at 1 GB/s."""
    rows = [Row("embedding_layer", Cell(FWD), Cell(IG), Cell(WG))]
    workload = make_workload(rows, tp=1, ep=1, pp=2, all_gpus=2, pp_comm=1000)
    simulation = simulate(workload, Parameters(dim=("switch:2:1:5",)))
    assert simulation.step_time_ns == 2 * (FWD + IG + WG) + 2 * 1010
    first, second = SimulatedRun(simulation).accounts
    # The first stage waits while the other one receives, computes and sends back.
    assert (first.bubble_ns, first.exposed_ns()["pp"], first.idle_ns) == (1010 + FWD + IG + WG, 1010, 0)
    # The second one waits for F of the first, for the transfer, and at the end for its own.
    assert (second.bubble_ns, second.exposed_ns()["pp"], second.idle_ns) == (FWD, 2020, IG + WG)
