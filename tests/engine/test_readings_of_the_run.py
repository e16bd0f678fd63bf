"""How a run is timed and booked where two readings give different nanoseconds.

Each test's name is a sentence of docs/semantics.md, Readings of the rules.
"""

import pytest

from simcore.collectives.exact import scaled
from simcore.parameters import Parameters
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import simulate
from tests.analysis.booking import booked, pair_ns, run, spans
from tests.strategies import Cell, Row, layer, make_workload


def test_a_join_waits_for_its_ops_in_the_order_they_were_issued() -> None:
    """The first one issued is booked whole, what is left of the later one after it."""
    dp, ep = Cell(10, "ALLREDUCE", "dp", 1000), Cell(10, "ALLREDUCE", "ep", 1500)
    rows = [Row("mlp_1", wg=ep), Row("mlp_2", wg=dp)]
    degrees = {"dp": 2, "ep": 2}
    first, second = 10 + pair_ns(1000), 20 + pair_ns(1500)
    assert booked(run(rows, degrees), 0)[2:] == [(20, first, "exposed dp"), (first, second, "exposed ep")]
    rows.reverse()
    first = 10 + pair_ns(1500)
    assert booked(run(rows, degrees), 0)[2:] == [(20, first, "exposed ep")]


def test_the_final_join_includes_the_transfers_that_the_rank_sends() -> None:
    simulation = run([layer("embedding_layer", 100, 50, 25)], {"pp": 2, "pp_comm": 10_000})
    # Nobody computes after the first stage's B, but the second one's gradient was long under way.
    finish = simulation.timeline.times.finish
    (sent,) = spans(simulation, 1, "pp>prev")
    assert finish[1] == sent[1]
    assert finish[0] == sent[1] + 75


def test_waiting_for_own_transfers_is_exposed_throughout_even_while_they_queue_on_their_channel() -> None:
    """The second gradient is ready 10 ns after the first, and leaves when that one has arrived."""
    rows = [layer("embedding_layer", 0, 5000, 0), layer("embedding_layer", 0, 10, 0)]
    simulation = run(rows, {"pp": 2, "pp_comm": 1000}, microbatches=2)
    assert spans(simulation, 1, "pp>prev") == [(6010, 7020), (7020, 8030)]
    assert booked(simulation, 1)[-3:] == [
        (6020, 7020, "exposed pp"),
        (7020, 8030, "exposed pp"),
        (8030, 12030, "idle"),
    ]


def test_scales_round_each_duration_half_to_even() -> None:
    assert [scaled(ns, 0.5) for ns in (1, 2, 3, 4, 5, 7)] == [0, 1, 2, 2, 2, 4]
    rows = [layer("mlp_1", 1), layer("mlp_2", 3), layer("mlp_3", 5)]
    assert run(rows, {}, compute_scale=0.5).step_time_ns == 0 + 2 + 2
    assert run(rows, {}, compute_scale=2.5).step_time_ns == 2 + 8 + 12
    collective = [Row("mlp", Cell(0, "ALLREDUCE", "tp", 3))] * 2
    assert pair_ns(3) == 22
    assert run(collective, {"tp": 2}, comm_scale=0.25).step_time_ns == 2 * round(5.5)


def test_a_scale_of_1_leaves_any_duration_exact() -> None:
    assert scaled(2**62 + 1, 1.0) == 2**62 + 1


def test_a_transfer_of_0_bytes_takes_no_time_and_is_still_waited_for() -> None:
    simulation = run([layer("embedding_layer", 100, 50, 25)], {"pp": 2, "pp_comm": 0})
    assert spans(simulation, 0, "pp>next") == [(100, 100)]
    assert booked(simulation, 1)[0] == (0, 100, "bubble")


def test_a_comm_scale_of_0_keeps_the_order_of_everything() -> None:
    """Collectives still wait for their members and transfers for their producers."""
    rows = [Row("embedding_layer", Cell(100, "ALLREDUCE", "tp", 1000), Cell(50), Cell(25))]
    simulation = run(rows, {"tp": 2, "pp": 2, "pp_comm": 1000}, comm_scale=0.0)
    assert spans(simulation, 0, "tp") == [(100, 100)]
    assert simulation.step_time_ns == 100 + 175 + 75


def test_communication_counts_once_however_many_streams_are_busy() -> None:
    cells = [Cell(10, "ALLREDUCE", kind, 1000) for kind in ("dp", "ep")]
    simulation = run([Row("mlp", wg=cell) for cell in cells], {"dp": 2, "ep": 2})
    assert spans(simulation, 0, "ep") == [(10, 1030)]
    assert spans(simulation, 0, "dp") == [(20, 1040)]
    assert [used[1:] for used in SimulatedRun(simulation).figures.streams] == [(1030, 10)]


def test_a_transfer_is_communication_of_the_rank_that_sends_and_of_the_rank_that_receives() -> None:
    simulation = run([layer("embedding_layer", 100, 50, 25)], {"pp": 2, "pp_comm": 1000})
    assert [used.comm_ns for used in SimulatedRun(simulation).figures.streams] == [2 * 1010, 2 * 1010]


def test_collectives_of_different_streams_of_a_rank_run_beside_each_other() -> None:
    cells = [Cell(0, "ALLREDUCE", kind, 1000) for kind in ("dp", "ep", "tp", "dp_ep")]
    simulation = run([Row("mlp", wg=cell) for cell in cells], {"tp": 2, "dp": 4, "ep": 2})
    for stream in ("dp", "ep", "tp", "dp_ep"):
        assert spans(simulation, 0, stream)[0][0] == 0


def test_a_blocking_collective_waits_for_its_stream_and_compute_with_it() -> None:
    rows = [
        Row("mlp_1", ig=Cell(0, "ALLREDUCE", "ep", 100)),
        Row("mlp_2", wg=Cell(0, "ALLREDUCE", "ep", 1000)),
    ]
    simulation = run(rows, {"dp": 2, "ep": 2})
    assert spans(simulation, 0, "ep") == [(0, 1020), (1020, 1020 + pair_ns(100))]


def test_a_layer_shows_compute_and_exposed_time_of_the_rank_where_both_together_are_most() -> None:
    rows = [Row("mlp", Cell(10, "ALLREDUCE", "tp", 1000))]
    workload = make_workload(rows, tp=2, ep=1, pp=1, all_gpus=4)
    parameters = Parameters(dim=("switch:3:100:1", "switch:2:1:1"), endpoint_delay=0, local_mem_bw=1e9)
    (row,) = SimulatedRun(simulate(workload, parameters)).layers
    assert (row.use.compute_ns, row.use.exposed_ns) == (10, 2 * (2 + 500))
    assert row.cells["fwd"].comm_ns == 2 * (2 + 500)


@pytest.mark.parametrize("kind", ["tp", "ep", "dp", "dp_ep"])
def test_a_group_of_one_and_a_collective_of_0_bytes_make_no_op(kind: str) -> None:
    one = run([Row("mlp", Cell(1, "ALLREDUCE", kind, 1000))], {})
    empty = run([Row("mlp", Cell(1, "ALLREDUCE", kind, 0))], {"tp": 2, "dp": 2, "ep": 2})
    assert one.timeline.streams(0) == empty.timeline.streams(0) == ["compute"]
    assert one.step_time_ns == empty.step_time_ns == 1


def test_a_compute_cell_of_0_makes_no_op_and_one_of_1_counts() -> None:
    simulation = run([layer("mlp", 1, 0, 1)], {})
    assert (simulation.timeline.ops_simulated, simulation.step_time_ns) == (2, 2)
