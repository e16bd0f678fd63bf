"""What is said of a single op: its figures, and where its duration comes from."""

from hypothesis import given, settings

from simcore.analysis.accounts import IDLE_OP
from simcore.analysis.span_words import OpFacts, explain_duration, find_op_facts
from simcore.program.ops import PHASES
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import simulate
from tests.analysis.booking import facts, pair_ns, run
from tests.says import said as says
from tests.strategies import Case, Cell, Row, cases, layer
from tests.stream_spans import stream_spans


@settings(max_examples=30)
@given(cases())
def test_every_op_that_an_account_names_can_be_described(case: Case) -> None:
    simulation = simulate(*case)
    for number, accounts in enumerate(SimulatedRun(simulation).accounts):
        for segment, op in enumerate(accounts.op):
            if op == IDLE_OP:
                assert find_op_facts(simulation, number, op) is None
                continue
            found = facts(simulation, number, op)
            assert accounts.edge[segment] < found.end_ns
            assert found.phase in PHASES
            assert (found.row >= 0) == (found.stream != "pp")
            assert explain_duration(simulation, found.class_id, found.op)


def test_compute_says_which_cell_of_which_line_it_is() -> None:
    simulation = run([layer("mlp_7", 1500, 0, 0)], {}, compute_scale=2.0)
    words = "1.500 us, the fwd cell of line 3, times 2 (compute scale) = 3.000 us"
    assert facts(simulation, 0, 0) == OpFacts(
        "mlp_7",
        "fwd",
        "compute",
        "compute",
        0,
        3000,
        0,
        0,
        None,
        0,
        0,
    )
    assert explain_duration(simulation, 0, 0) == words


def test_compute_of_the_optimizer_and_of_a_recompute_names_the_cell_of_the_file() -> None:
    """A file has the cells fwd, ig and wg; opt and recompute are what they are used for."""
    rows = [layer("grad_param_compute", 0, 9), layer("embedding_layer", 5), layer("mlp", 0, 3)]
    simulation = run(rows, {"checkpoints": (1,), "checkpoint_initiates": (2,)}, schedule="1f1b")
    by_phase = {facts(simulation, 0, op).phase: explain_duration(simulation, 0, op) for op in range(4)}
    assert says([by_phase["opt"]], "9 ns", "ig", "line 3")
    assert says([by_phase["recompute"]], "5 ns", "fwd", "line 4")


def test_of_cells_with_the_same_time_each_op_of_the_optimizer_names_its_own() -> None:
    rows = [layer("grad_param_compute", 1000, 1856, 1000), layer("mlp", 7)]
    simulation = run(rows, {}, schedule="1f1b")
    ops = simulation.timeline.stage_program(0).ops
    origins = [
        explain_duration(simulation, 0, op) for op in range(len(ops)) if PHASES[ops.phase[op]] == "opt"
    ]
    wanted = [("1.000", "fwd"), ("1.856", "ig"), ("1.000", "wg")]
    assert origins == [f"{us} us, the {cell} cell of line 3" for us, cell in wanted]


def test_a_collective_says_what_runs_where() -> None:
    simulation = run([Row("mlp", Cell(0, "ALLREDUCE", "tp", 1000))], {"tp": 2}, comm_scale=0.5)
    found = facts(simulation, 0, 0)
    assert (found.kind, found.stream, found.end_ns) == ("all-reduce", "tp", pair_ns(1000) // 2)
    words = explain_duration(simulation, 0, 0)
    assert words.startswith("all-reduce, halving-doubling, group of 2 on dimension 0")
    assert words.endswith(f", times 0.5 (comm scale) = {pair_ns(1000) // 2} ns")


def test_a_transfer_names_the_stage_at_its_other_end() -> None:
    simulation = run([layer("embedding_layer", 100, 50, 25)], {"pp": 3, "pp_comm": 1000})
    accounts = SimulatedRun(simulation).accounts
    received = facts(simulation, 1, accounts[1].op[0])
    assert (received.kind, received.other_stage, received.start_ns, received.phase) == (
        "receive",
        0,
        100,
        "fwd",
    )
    (sent,) = [span.op for span in stream_spans(simulation.timeline, 1, "pp>prev")]
    found = facts(simulation, 1, sent)
    assert (found.kind, found.other_stage, found.phase, found.stream) == ("send", 0, "ig", "pp")
    assert explain_duration(simulation, found.class_id, found.op).startswith(
        "a gradient of 1.0 kB: 1 000 B / "
    )
    assert explain_duration(simulation, found.class_id, found.op).endswith(" = 1 010 ns")
    assert found.end_ns - found.start_ns == 1010
