"""The layer table: every row of the file with what it costs in a step."""

from hypothesis import given, settings

from simcore.analysis import Results
from simcore.parameters import Parameters
from simcore.simulation import simulate
from tests.analysis.booking import pair_ns, run
from tests.strategies import Case, Cell, Row, cases, layer, make_workload


@settings(max_examples=60)
@given(cases())
def test_rows_of_a_run_of_one_class_sum_to_its_accounts(case: Case) -> None:
    results = Results(simulate(*case))
    if len(results.accounts) > 1:
        return
    (accounts,) = results.accounts
    assert sum(row.compute_ns for row in results.layers) == accounts.busy_ns
    exposed = accounts.all_exposed_ns - accounts.exposed_ns()["pp"]
    assert sum(row.exposed_ns for row in results.layers) == exposed


@settings(max_examples=40)
@given(cases())
def test_groups_of_layers_are_all_rows_once_and_the_most_expensive_come_first(case: Case) -> None:
    results = Results(simulate(*case))
    groups = results.layer_groups
    assert sorted(row.index for group in groups for row in group.rows) == list(range(len(case.workload)))
    costs = [group.cost_ns for group in groups]
    assert costs == sorted(costs, reverse=True)
    for group in groups:
        assert group.compute_ns == sum(row.compute_ns for row in group.rows)
        assert group.exposed_ns == sum(row.exposed_ns for row in group.rows)


def test_a_row_that_runs_in_several_micro_batches_counts_all_of_them() -> None:
    rows = [Row("embedding_layer", Cell(10, "ALLREDUCE", "tp", 100), Cell(3), Cell(4))]
    (row,) = Results(run(rows, {"tp": 2}, schedule="1f1b", microbatches=5)).layers
    assert (row.compute_ns, row.exposed_ns) == (5 * 17, 5 * pair_ns(100))
    cells = row.cells
    assert [cells[phase].compute_ns for phase in ("fwd", "ig", "wg")] == [10, 3, 4]
    assert (cells["fwd"].comm_ns, cells["fwd"].bytes, cells["fwd"].group) == (pair_ns(100), 100, "tp")


def test_rows_that_no_micro_batch_runs_cost_nothing_and_still_show_what_their_collective_takes() -> None:
    """With --microbatches 1 the second block never runs, nor does any other collective over ep."""
    rows = [
        layer("embedding_layer", 5),
        layer("embedding_layer", 7),
        Row("moe", Cell(1, "ALLTOALL", "ep", 1000)),
    ]
    simulation = run(rows, {"dp": 2, "ep": 2}, schedule="1f1b", microbatches=1)
    row = Results(simulation).layers[2]
    assert (row.compute_ns, row.exposed_ns, row.cells["fwd"].compute_ns) == (0, 0, 1)
    assert row.cells["fwd"].comm_ns == 510


def test_the_loss_rows_of_a_file_without_blocks_show_what_their_collective_takes() -> None:
    rows = [layer("grad_gather", 1), Row("cross_entropy1", Cell(1, "ALLREDUCE", "tp", 1000))]
    simulation = run(rows, {"tp": 2, "pp": 2})
    assert Results(simulation).layers[1].cells["fwd"].comm_ns == pair_ns(1000)


def test_cells_are_scaled_as_the_run_is() -> None:
    rows = [Row("mlp", Cell(5, "ALLREDUCE", "tp", 3))]
    (row,) = Results(run(rows, {"tp": 2}, compute_scale=0.5, comm_scale=2.0)).layers
    assert (row.cells["fwd"].compute_ns, row.cells["fwd"].comm_ns) == (2, 2 * pair_ns(3))


def test_a_group_of_one_and_no_bytes_take_no_time_alone() -> None:
    rows = [Row("mlp", Cell(5, "ALLREDUCE", "tp", 0), Cell(5, "ALLREDUCE", "ep", 100))]
    workload = make_workload(rows, tp=2, ep=1, pp=1, all_gpus=2)
    (row,) = Results(simulate(workload, Parameters())).layers
    assert [row.cells[phase].comm_ns for phase in ("fwd", "ig", "wg")] == [0, 0, 0]


def test_rows_are_one_group_when_their_names_but_for_the_number_and_all_their_cells_are_equal() -> None:
    rows = [
        layer("mlp_1", 5),
        layer("attention", 100),
        layer("mlp_2", 5),
        layer("mlp12", 5),
        layer("mlp_3", 6),
    ]
    groups = Results(run(rows, {})).layer_groups
    assert [(group.name, [row.index for row in group.rows], group.compute_ns) for group in groups] == [
        ("attention", [1], 100),
        ("mlp", [0, 2, 3], 15),
        ("mlp", [4], 6),
    ]
