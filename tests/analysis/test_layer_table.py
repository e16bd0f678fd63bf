"""The layer table: every row of the file with what it costs in a step."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.analysis import layers
from simcore.parameters import Parameters
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import Simulation, collective_alone_ns, simulate
from simcore.sources.simulated import NAMES
from simcore.workload.model import GroupKind, base_name
from tests.analysis.booking import pair_ns, run
from tests.strategies import Case, Cell, Row, cases, layer, make_workload


@settings(max_examples=60)
@given(cases())
def test_rows_of_a_run_of_one_class_sum_to_its_accounts(case: Case) -> None:
    results = SimulatedRun(simulate(*case))
    if len(results.accounts) > 1:
        return
    (accounts,) = results.accounts
    assert sum(row.use.compute_ns for row in results.layers) == accounts.busy_ns
    exposed = accounts.all_exposed_ns - accounts.exposed_ns()["pp"]
    assert sum(row.use.exposed_ns for row in results.layers) == exposed


@settings(max_examples=60)
@given(cases())
def test_a_row_is_shown_on_the_rank_where_it_costs_most(case: Case) -> None:
    """Seen to fail: the first rank alone."""
    results = SimulatedRun(simulate(*case))
    found = [(0, 0)] * len(case.workload)
    for number, accounts in enumerate(results.accounts):
        mine = [[0, 0] for _ in case.workload.name]
        for place, (begin, over) in enumerate(pairwise(accounts.edge)):
            kind = NAMES.all[accounts.account[place]].split()[0]
            if kind in ("compute", "exposed"):
                of, op = results.trace.span_of(number, accounts.op[place])
                row = results.simulation.timeline.stage_program(of).ops.row[op]
                if row >= 0:
                    mine[row][kind == "exposed"] += over - begin
        for row, (compute, exposed) in enumerate(mine):
            if compute + exposed > sum(found[row]):
                found[row] = compute, exposed
    assert [(row.use.compute_ns, row.use.exposed_ns) for row in results.layers] == found


@settings(max_examples=40)
@given(cases())
def test_groups_of_layers_are_all_rows_once_and_the_most_expensive_come_first(case: Case) -> None:
    results = SimulatedRun(simulate(*case))
    groups = results.layer_groups
    assert sorted(row for group in groups for row in group.rows) == list(range(len(case.workload)))
    costs = [group.cost_ns for group in groups]
    assert costs == sorted(costs, reverse=True)
    for group in groups:
        assert group.use.compute_ns == sum(results.layers[row].use.compute_ns for row in group.rows)
        assert group.use.exposed_ns == sum(results.layers[row].use.exposed_ns for row in group.rows)


# Few values, so that rows are often equal but for one.
CELLS = st.sampled_from([Cell(5), Cell(6), *[Cell(5, *one) for one in (
    ("ALLREDUCE", "tp", 7), ("ALLREDUCE", "tp", 8), ("ALLREDUCE", "dp", 7), ("ALLGATHER", "tp", 7)
)]])  # fmt: skip
ROWS = st.builds(Row, st.sampled_from(["mlp_1", "mlp_2", "add"]), st.just(Cell(5)), CELLS, CELLS)


@settings(max_examples=100)
@given(st.lists(ROWS, min_size=1, max_size=8), st.sampled_from([(), ("mlp_2:wg=3",), ("mlp:ig=3",)]))
def test_rows_are_together_if_and_only_if_their_names_and_cells_are_equal(
    rows: list[Row], scales: tuple[str, ...]
) -> None:
    workload = make_workload(rows, tp=2, pp=1, all_gpus=4)
    scales = tuple(
        one for one in scales if one.split(":")[0] in {*workload.name, *map(base_name, workload.name)}
    )
    results = SimulatedRun(simulate(workload, Parameters().with_value("layer_scale", scales)))
    alike: dict[tuple[object, ...], list[int]] = {}
    for row in results.layers:
        alike.setdefault((base_name(row.name), *row.cells.values()), []).append(row.index)
    groups = results.layer_groups
    assert sorted(row for group in groups for row in group.rows) == list(range(len(workload)))
    assert sorted([*group.rows] for group in groups) == sorted(alike.values())
    assert [groups.index_of_row(row) for group in groups for row in group.rows] == [
        place for place, group in enumerate(groups) for _ in group.rows
    ]


def test_only_the_collectives_of_rows_that_are_looked_at_are_priced(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [Row(f"mlp_{size}", Cell(5, "ALLREDUCE", "tp", size)) for size in range(10_000, 1_010_000, 10_000)]
    results = SimulatedRun(run(rows, {"tp": 2}))
    priced: list[int] = []

    def counted(simulation: Simulation, collective: str, group: GroupKind, size: int) -> int:
        priced.append(size)
        return collective_alone_ns(simulation, collective, group, size)

    monkeypatch.setattr(layers, "collective_alone_ns", counted)
    assert len(results.layer_groups) == 100
    assert len(results.layers) == 100
    assert priced == []
    assert results.layer_groups[0].cells["fwd"].comm_ns == results.layers[99].cells["fwd"].comm_ns
    assert priced == [1_000_000], "each once"


def test_rows_and_groups_are_sequences() -> None:
    results = SimulatedRun(run([layer("a", 5), layer("b", 7), layer("c", 6)], {}))
    rows, groups = results.layers, results.layer_groups
    assert [row.name for row in rows[1:]] == ["b", "c"]
    assert (rows[-1].name, groups[-1].title) == ("c", "a")
    assert [group.title for group in groups[:2]] == ["b", "c"]
    assert rows[0] == rows[0]
    assert [row.name for row in layers.LayerLines(rows.table, [2, 0], each=True)] == ["c", "a"]
    assert [*rows] == [rows[index] for index in range(3)]
    assert [*groups] == [groups[index] for index in range(3)]
    with pytest.raises(IndexError):
        rows[3]


def test_a_row_that_runs_in_several_micro_batches_counts_all_of_them() -> None:
    rows = [Row("embedding_layer", Cell(10, "ALLREDUCE", "tp", 100), Cell(3), Cell(4))]
    (row,) = SimulatedRun(run(rows, {"tp": 2}, schedule="1f1b", microbatches=5)).layers
    assert (row.use.compute_ns, row.use.exposed_ns) == (5 * 17, 5 * pair_ns(100))
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
    row = SimulatedRun(simulation).layers[2]
    assert (row.use.compute_ns, row.use.exposed_ns, row.cells["fwd"].compute_ns) == (0, 0, 1)
    assert row.cells["fwd"].comm_ns == 510


def test_the_loss_rows_of_a_file_without_blocks_show_what_their_collective_takes() -> None:
    rows = [layer("grad_gather", 1), Row("cross_entropy1", Cell(1, "ALLREDUCE", "tp", 1000))]
    simulation = run(rows, {"tp": 2, "pp": 2})
    assert SimulatedRun(simulation).layers[1].cells["fwd"].comm_ns == pair_ns(1000)


def test_cells_are_scaled_as_the_run_is() -> None:
    rows = [Row("mlp", Cell(5, "ALLREDUCE", "tp", 3))]
    (row,) = SimulatedRun(run(rows, {"tp": 2}, compute_scale=0.5, comm_scale=2.0)).layers
    assert (row.cells["fwd"].compute_ns, row.cells["fwd"].comm_ns) == (2, 2 * pair_ns(3))


def test_a_group_of_one_and_no_bytes_take_no_time_alone() -> None:
    rows = [Row("mlp", Cell(5, "ALLREDUCE", "tp", 0), Cell(5, "ALLREDUCE", "ep", 100))]
    workload = make_workload(rows, tp=2, ep=1, pp=1, all_gpus=2)
    (row,) = SimulatedRun(simulate(workload, Parameters())).layers
    assert [row.cells[phase].comm_ns for phase in ("fwd", "ig", "wg")] == [0, 0, 0]


def test_rows_are_one_group_when_their_names_but_for_the_number_and_all_their_cells_are_equal() -> None:
    rows = [
        layer("mlp_1", 5),
        layer("attention", 100),
        layer("mlp_2", 5),
        layer("mlp12", 5),
        layer("mlp_3", 6),
    ]
    groups = SimulatedRun(run(rows, {})).layer_groups
    assert [(group.title, [*group.rows], group.use.compute_ns) for group in groups] == [
        ("attention", [1], 100),
        ("mlp", [0, 2, 3], 15),
        ("mlp", [4], 6),
    ]
