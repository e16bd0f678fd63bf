"""Every run ends: with times, or with an error that says what does not fit.

Planted in a copy of simcore, one at a time, to see these tests fail:
  the check is not called                     all of them
  stages are not compared                     the two texts of other collectives
  the walk lets a blocking collective pass    both properties, the text of a stage held back
"""

from unittest import mock

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec import structs

from simcore.diagnostics import InputError, UsageError
from simcore.parameters import Parameters
from simcore.program import SCHEDULES
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import simulate
from tests.findings import facts, finding
from tests.says import said
from tests.strategies import Case, Cell, Row, cases, make_workload


@st.composite
def any_runs(draw: st.DrawFn) -> Case:
    """A case under parameters that nobody made fit, with some of its collectives over all ranks."""
    workload, parameters = draw(cases(12))
    everywhere = draw(st.sampled_from([(), ("fwd",), ("ig",), ("wg",), ("fwd", "ig", "wg")]))
    columns = {}
    for phase in everywhere:
        cells = workload.cells(phase)  # type: ignore[arg-type]
        row = draw(st.integers(0, len(workload) - 1))
        group = [*cells.group[:row], "all" if cells.collective[row] else None, *cells.group[row + 1 :]]
        columns[phase] = structs.replace(cells, group=group)
    changes = {
        "schedule": draw(st.sampled_from([None, *SCHEDULES])),
        "virtual_stages": draw(st.sampled_from([None, 1, 2, 3])),
        "microbatches": draw(st.none() | st.integers(1, 6)),
        "steps": draw(st.sampled_from([1, 1, 2])),
        "overlap_fwd_bwd": draw(st.booleans()),
        "stage_layout": draw(st.sampled_from(["uniform", "uniform", "megatron"])),
        "overlap_grad_reduce": draw(st.booleans()),
        "overlap_param_gather": draw(st.booleans()),
        "network": draw(st.sampled_from(["analytical", "analytical", "shared"])),
        "slow_rank": draw(st.sampled_from([(), (), ("0=2",)])),
        "jitter": draw(st.sampled_from([0.0, 0.0, 0.3])),
        "passes": draw(st.sampled_from([1, 2])),
        "no_fold": draw(st.booleans()),
    }
    return Case(structs.replace(workload, **columns), structs.replace(parameters, **changes))  # type: ignore[arg-type]


def refusal(case: Case) -> str | None:
    """What is said of a run that cannot be, None if it ends with times."""
    try:
        simulation = simulate(*case)
    except (UsageError, InputError) as error:
        return str(error)
    assert min(simulation.timeline.times.finish) >= 0
    return None


@settings(max_examples=250)
@given(any_runs())
def test_every_run_ends_with_times_or_with_an_error_that_says_why(case: Case) -> None:
    error = refusal(case)
    assert error is None or "would fit" in error or "needs --virtual-stages" in error


@settings(max_examples=120)
@given(any_runs())
def test_no_run_is_refused_that_would_end(case: Case) -> None:
    """The walk has no times, the engine has: both hang, or neither does."""
    parameters = structs.replace(case.parameters, stage_layout="uniform")
    with mock.patch("simcore.program.building.check_meetings"):
        try:
            simulate(case.workload, parameters)
        except (UsageError, InputError):
            assume(False)
        except RuntimeError:
            hangs = True
        else:
            hangs = False
    error = refusal(Case(case.workload, parameters))
    assert (error is not None) == hangs, error


def everywhere(size: int = 100) -> Cell:
    return Cell(5, "ALLREDUCE", "all", size)


def test_a_stage_held_back_in_a_collective_over_all_ranks_is_said() -> None:
    rows = [Row("embedding_layer", Cell(5)), Row("mlp_row", everywhere())]
    workload = make_workload(rows, tp=1, pp=3, all_gpus=3, pp_comm=8)
    for schedule in ("1f1b", "gpipe", "zb-h1"):
        with pytest.raises(UsageError) as caught:
            simulate(workload, Parameters(schedule=schedule, microbatches=2))
        assert facts(str(caught.value)) == (
            f"--schedule {schedule}, 0, ALLREDUCE, 100 B, mlp_row, 4, 0, 1, 1, 0, --schedule"
        )
        said([str(caught.value)], "stage 0", "line 4, fwd", "stage 1", "stage 0", "--schedule layer-loop")
    simulate(workload, Parameters(schedule="layer-loop"))


def test_stages_that_come_to_other_collectives_over_all_ranks_are_said() -> None:
    rows = [
        Row("embedding_layer", wg=everywhere(7)),
        Row("mlp_row", wg=everywhere()),
        Row("final_column", wg=everywhere(9)),
    ]
    workload = make_workload(rows, tp=1, pp=2, all_gpus=2, pp_comm=8)
    with pytest.raises(UsageError) as caught:
        simulate(workload, Parameters(stage_layout="megatron"))
    assert facts(str(caught.value)) == (
        "--schedule 1f1b, --stage-layout megatron, 1, ALLREDUCE, 100 B, mlp_row, 4, 0, 0, "
        "ALLREDUCE, 9 B, final_column, 5, 0, 1, --schedule"
    )
    said([str(caught.value)], "line 4, wg", "stage 0", "line 5, wg", "stage 1", "--schedule layer-loop")
    simulate(workload, Parameters(schedule="1f1b"))


def test_a_stage_without_another_ones_collective_over_all_ranks_is_said() -> None:
    rows = [Row("embedding_layer", wg=everywhere()), Row("mlp_row", Cell(5))]
    workload = make_workload(rows, tp=1, pp=2, all_gpus=2, pp_comm=8)
    with pytest.raises(UsageError) as caught:
        simulate(workload, Parameters(stage_layout="megatron"))
    assert facts(str(caught.value)) == (
        "--schedule 1f1b, --stage-layout megatron, 1, ALLREDUCE, 100 B, embedding_layer, 3, 0, 0, 1, "
        "--schedule"
    )
    said([str(caught.value)], "line 3, wg", "stage 0", "none", "stage 1", "--schedule layer-loop")


def test_without_parameters_it_is_the_file_that_cannot_be_simulated() -> None:
    rows = [Row("embedding_layer", Cell(5)), Row("mlp_row", everywhere())]
    workload = make_workload(rows, tp=1, pp=2, all_gpus=2, pp_comm=8)
    with pytest.raises(InputError) as caught:
        simulate(workload, Parameters())
    assert finding(str(caught.value)).startswith(
        "made.txt:1:1: error cannot-simulate --schedule 1f1b, 0, ALLREDUCE, 100 B, mlp_row, 4, 0, 1"
    )


def test_a_run_beside_a_run_that_would_hang_is_none() -> None:
    rows = [Row("embedding_layer", Cell(5)), Row("mlp_row", everywhere())]
    workload = make_workload(rows, tp=1, pp=2, all_gpus=2, pp_comm=8)
    variants = SimulatedRun(simulate(workload, Parameters(schedule="layer-loop"))).variants
    assert variants.run(schedule="gpipe") is None
    assert variants.step_ns(comm_scale=0.5) is not None


@pytest.mark.parametrize("network", ["analytical", "shared"])
@pytest.mark.parametrize("schedule", ["1f1b", "zb-h1"])
def test_the_step_without_communication_is_that_of_a_run_with_it_free(schedule: str, network: str) -> None:
    rows = [Row("embedding_layer", Cell(5)), Row("mlp_row", Cell(7, "ALLREDUCE", 1000), Cell(3), Cell(2))]
    workload = make_workload(rows, tp=2, pp=2, all_gpus=8, ga=3, pp_comm=800)
    results = SimulatedRun(simulate(workload, Parameters(schedule=schedule, network=network, no_fold=True)))
    free = results.variants.step_ns_without_communication()
    assert free == simulate(workload, Parameters(schedule=schedule, comm_scale=0.0)).step_time_ns
    assert free is not None
    assert 0 < free < results.step_time_ns
