"""Where the time of a rank goes, on runs whose every segment was booked by hand."""

from itertools import pairwise

from simcore.parameters import Parameters
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import Simulation, simulate
from simcore.sources.simulated import ACCOUNTS
from tests.analysis.booking import booked, pair_ns, run, spans
from tests.engine.test_policies import made
from tests.strategies import Cell, Row, layer, make_workload


def test_a_blocking_tp_collective_is_exposed_from_start_to_end() -> None:
    simulation = run([Row("mlp", Cell(100, "ALLREDUCE", "tp", 1000))], {"tp": 2})
    assert pair_ns(1000) == 1020
    assert booked(simulation, 0) == [(0, 100, "compute fwd"), (100, 1120, "exposed tp")]


def test_an_asynchronous_dp_collective_beside_compute_is_exposed_nowhere() -> None:
    rows = [Row("mlp_1", ig=Cell(2000)), Row("mlp_2", wg=Cell(10, "ALLREDUCE", "dp", 1000))]
    simulation = run(rows, {"dp": 2})
    assert spans(simulation, 0, "dp") == [(10, 1030)]
    assert booked(simulation, 0) == [(0, 10, "compute wg"), (10, 2010, "compute ig")]
    assert [used[1:] for used in SimulatedRun(simulation).figures.streams] == [(1020, 1020)]


def test_of_an_asynchronous_dp_collective_only_what_outlasts_compute_is_exposed() -> None:
    rows = [Row("mlp_1", ig=Cell(600)), Row("mlp_2", wg=Cell(10, "ALLREDUCE", "dp", 1000))]
    simulation = run(rows, {"dp": 2})
    assert booked(simulation, 0)[-1] == (610, 1030, "exposed dp")
    assert [used[1:] for used in SimulatedRun(simulation).figures.streams] == [(1020, 600)]


def test_a_receive_is_bubble_until_the_transfer_starts_and_exposed_pp_from_then() -> None:
    rows = [Row("embedding_layer", Cell(100), Cell(20), Cell(30))]
    simulation = run(rows, {"pp": 2, "pp_comm": 40})
    assert booked(simulation, 1) == [
        (0, 100, "bubble"),
        (100, 150, "exposed pp"),
        (150, 250, "compute fwd"),
        (250, 270, "compute ig"),
        (270, 300, "compute wg"),
        (300, 350, "exposed pp"),  # its own transfer back, in the join at the end
        (350, 400, "idle"),
    ]
    assert booked(simulation, 0) == [
        (0, 100, "compute fwd"),
        (100, 300, "bubble"),
        (300, 350, "exposed pp"),
        (350, 370, "compute ig"),
        (370, 400, "compute wg"),
    ]


def test_a_transfer_that_is_under_way_when_its_receiver_comes_is_no_bubble() -> None:
    rows = [Row("embedding_layer", Cell(100)), Row("embedding_layer", Cell(100))]
    simulation = run(rows, {"pp": 2, "pp_comm": 140}, microbatches=2)
    # Transfers of 150 ns: 100 to 250 and, because the channel is busy, 250 to 400.
    assert spans(simulation, 0, "pp>next") == [(100, 250), (250, 400)]
    assert booked(simulation, 1)[:4] == [
        (0, 100, "bubble"),
        (100, 250, "exposed pp"),
        (250, 350, "compute fwd"),
        (350, 400, "exposed pp"),
    ]


def uneven_servers(*rows: Row) -> Simulation:
    """TP pairs 0-1 and 2-3 on servers of three: the second pair lies across two of them."""
    workload = make_workload(rows, tp=2, ep=1, pp=1, all_gpus=4)
    dim = ("switch:3:100:1", "switch:2:1:1")
    return simulate(workload, Parameters(dim=dim, endpoint_delay=0, local_mem_bw=1e9, schedule="layer-loop"))


TP, DP = Cell(10, "ALLREDUCE", "tp", 1000), Cell(5, "ALLREDUCE", "dp", 1000)
INSIDE, ACROSS = 2 * (2 + 5), 2 * (2 + 500)


def test_waiting_for_a_slower_member_of_a_collective_is_wait() -> None:
    simulation = uneven_servers(Row("mlp", TP, wg=DP))
    # Ranks 2 and 3 leave the forward at 10 + ACROSS, 0 and 1 at 10 + INSIDE.
    late = 10 + ACROSS + 5
    assert booked(simulation, 0) == [
        (0, 10, "compute fwd"),
        (10, 24, "exposed tp"),
        (24, 29, "compute wg"),
        (29, late, "wait"),
        (late, late + INSIDE, "exposed dp"),
        (late + INSIDE, late + ACROSS, "idle"),
    ]
    assert booked(simulation, 1)[3:] == [(29, late, "wait"), (late, late + ACROSS, "exposed dp")]
    assert booked(simulation, 2)[1:] == [
        (10, 1014, "exposed tp"),
        (1014, 1019, "compute wg"),
        (late, late + INSIDE, "exposed dp"),
        (late + INSIDE, late + ACROSS, "idle"),
    ]


def test_a_wait_for_a_slower_member_is_one_segment_however_much_queues_behind_it() -> None:
    simulation = uneven_servers(Row("mlp", TP), *[Row("mlp", wg=DP)] * 4)
    assert booked(simulation, 0)[6] == (44, 1019, "wait")
    assert [name for _, _, name in booked(simulation, 0)].count("wait") == 1
    assert all(begin < end for begin, end, _ in booked(simulation, 0))


def test_a_collective_queued_behind_another_on_its_stream_is_exposed_and_not_wait() -> None:
    rows = [
        Row("mlp_1", ig=Cell(100, "ALLREDUCE", "ep", 1000)),
        Row("mlp_2", wg=Cell(10, "ALLREDUCE", "ep", 2000)),
    ]
    simulation = run(rows, {"dp": 2, "ep": 2})
    assert spans(simulation, 0, "ep") == [(10, 2030), (2030, 3050)]
    accounts = SimulatedRun(simulation).accounts[0]
    assert booked(simulation, 0) == [
        (0, 10, "compute wg"),
        (10, 110, "compute ig"),
        (110, 2030, "exposed ep"),
        (2030, 3050, "exposed ep"),
    ]
    ops = simulation.timeline.stage_program(0).ops
    assert [ops.row[op] for op in accounts.op] == [1, 0, 1, 0]


def test_behind_the_collective_that_runs_a_slower_member_is_waited_for() -> None:
    """Exposed while an own collective runs on the stream, then wait, then exposed again."""
    early = Row("mlp", wg=Cell(5, "ALLREDUCE", "dp", 1000))
    slow = Row("mlp", ig=Cell(0, "ALLREDUCE", "tp", 10000), wg=Cell(5, "ALLREDUCE", "dp", 200))
    simulation = uneven_servers(slow, early)
    assert spans(simulation, 0, "dp") == [(5, 19), (10014, 10020)]
    assert booked(simulation, 0) == [
        (0, 5, "compute wg"),
        (5, 109, "exposed tp"),
        (109, 114, "compute wg"),
        (114, 10014, "wait"),
        (10014, 10020, "exposed dp"),
        (10020, 10218, "idle"),
    ]
    assert booked(simulation, 1)[3:] == [
        (114, 1009, "exposed dp"),
        (1009, 10014, "wait"),
        (10014, 10218, "exposed dp"),
    ]


def test_compute_is_booked_by_phase() -> None:
    rows = [
        layer("grad_param_compute", 1, 20, 3),
        layer("embedding_layer", 100, 200, 300),
        layer("cross_entropy1", 4, 5, 6),
        layer("optimizer1", 7, 8, 9),
    ]
    (accounts,) = SimulatedRun(run(rows, {}, schedule="1f1b")).accounts
    by_phase = {"fwd": 104, "ig": 205, "wg": 306, "opt": 1 + 20 + 3 + 7 + 8 + 9, "recompute": 0}
    assert accounts.compute_ns() == by_phase


def test_recomputed_forward_is_booked_as_recompute_and_its_collective_as_exposed() -> None:
    rows = [Row("embedding_layer", Cell(30, "ALLREDUCE", "tp", 100)), layer("mlp", 1, 10, 100)]
    simulation = run(rows, {"tp": 2, "checkpoints": (0,), "checkpoint_initiates": (1,)})
    (accounts,) = SimulatedRun(simulation).accounts
    assert accounts.compute_ns()["recompute"] == 30
    assert accounts.exposed_ns()["tp"] == 2 * pair_ns(100)


def test_a_step_without_work_takes_no_time() -> None:
    simulation = run([layer("mlp")], {"pp": 2}, microbatches=3)
    assert simulation.step_time_ns == 0
    assert [accounts.total_ns for accounts in SimulatedRun(simulation).accounts] == [[0] * len(ACCOUNTS)] * 2


def test_in_the_queues_of_what_runs_at_once_the_first_issued_is_exposed() -> None:
    """Two of three run at a time. The second pass waits for a first, which gets its turn when b is over."""
    rows = [
        f"{name} -1 0 NONE 0 0 NONE 0 0 ALLREDUCE {size} 0"
        for name, size in zip("abc", (400, 800, 4000), strict=True)
    ]
    simulation = made(rows, active_chunks=2, splits=1, passes=2)
    assert spans(simulation, 0, "all")[:3] == [(3, 6003), (5, 1205), (1205, 1805)]
    ops, accounts = simulation.timeline.columns(0)[0], SimulatedRun(simulation).accounts[0]
    exposed = [
        (*times, "abc"[ops.row[op]])
        for times, account, op in zip(pairwise(accounts.edge), accounts.account, accounts.op, strict=True)
        if ACCOUNTS[account] == "exposed all"
    ]
    assert exposed == [(8, 1205, "c"), (1205, 1805, "a"), (1807, 6003, "c"), (6009, 12004, "c")]
