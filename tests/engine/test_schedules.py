"""Closed forms of the pipeline schedules, exact to the nanosecond, with free communication."""

import pytest

from simcore.analysis import Results
from simcore.parameters import Parameters
from simcore.simulation import Simulation, simulate
from tests.strategies import Cell, Row, make_workload

LAYERS = 8
TIMES = [(1000, 900, 800), (900, 1000, 800), (700, 800, 1500), (500, 500, 500), (2000, 300, 700)]


def pipeline(stages: int, microbatches: int, times: tuple[int, int, int], **parameters: object) -> Simulation:
    """Equal micro-batches of 8 equal layers of (F, I, W) / 8 ns each; free communication."""
    cells = [Cell(ns * 8 // LAYERS) for ns in times]
    rows = [Row(f"mlp_{number}", *cells) for number in range(LAYERS)]
    workload = make_workload(rows, tp=1, ep=1, pp=stages, all_gpus=stages, pp_comm=10**6)
    return simulate(workload, Parameters(microbatches=microbatches, comm_scale=0.0, **parameters))  # type: ignore[arg-type]


def bubbles(simulation: Simulation) -> set[int]:
    """Bubble and idle time together, of every class."""
    return {accounts.bubble_ns + accounts.idle_ns for accounts in Results(simulation).accounts}


def counts(stages: int) -> list[int]:
    return sorted({1, stages - 1, stages, stages + 1, 2 * stages, 3 * stages + 2})


CASES = [(p, m) for p in (2, 3, 4, 6, 8, 16) for m in counts(p)]


@pytest.mark.parametrize(("stages", "microbatches"), CASES)
@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
def test_the_bubble_of_gpipe_and_1f1b_is_p_minus_1_micro_batches(
    schedule: str, times: tuple[int, int, int], stages: int, microbatches: int
) -> None:
    simulation = pipeline(stages, microbatches, times, schedule=schedule)
    one = LAYERS * sum(times)
    assert bubbles(simulation) == {(stages - 1) * one}
    assert simulation.step_time_ns == (microbatches + stages - 1) * one


@pytest.mark.parametrize("stages", [2, 3, 4, 6, 8, 16])
@pytest.mark.parametrize("groups", [1, 2, 3])
@pytest.mark.parametrize("chunks", [2, 4])
@pytest.mark.parametrize("times", TIMES)
def test_the_bubble_of_interleaved_is_that_of_1f1b_divided_by_its_chunks(
    times: tuple[int, int, int], chunks: int, groups: int, stages: int
) -> None:
    simulation = pipeline(stages, groups * stages, times, schedule="interleaved", virtual_stages=chunks)
    assert bubbles(simulation) == {(stages - 1) * LAYERS * sum(times) // chunks}


@pytest.mark.parametrize(("stages", "microbatches"), CASES)
@pytest.mark.parametrize("times", TIMES)
def test_the_bubble_of_zb_h1_is_filled_by_weight_gradients(
    times: tuple[int, int, int], stages: int, microbatches: int
) -> None:
    """(P-1)(F+I) - (min(M,P)-1) min(F,I,W): so (P-1)(F+I-W) for M >= P and W no longer than F and I."""
    simulation = pipeline(stages, microbatches, times, schedule="zb-h1")
    f, i, w = (LAYERS * ns for ns in times)
    bubble = (stages - 1) * (f + i) - (min(microbatches, stages) - 1) * min(f, i, w)
    assert simulation.step_time_ns == microbatches * (f + i + w) + bubble
    assert bubbles(simulation) == {bubble}


@pytest.mark.parametrize(("stages", "microbatches"), CASES)
def test_how_many_micro_batches_each_schedule_holds(stages: int, microbatches: int) -> None:
    def peaks(schedule: str) -> list[int]:
        program = pipeline(stages, microbatches, TIMES[0], schedule=schedule).program
        return [stage.peak_microbatches for stage in program.stages]

    assert peaks("gpipe") == [microbatches] * stages
    assert peaks("1f1b") == [min(microbatches, stages - stage) for stage in range(stages)]
    assert peaks("zb-h1") == [min(microbatches, stages)] * stages
