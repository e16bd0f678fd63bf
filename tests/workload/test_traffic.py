"""What rows send unlike a trainer is among the notes of a run, as `check` has it, and costs what it says."""

from __future__ import annotations

from simcore.analysis import Results
from simcore.parameters import Parameters
from simcore.simulation import simulate
from simcore.units import change_percent, duration
from simcore.workload import Workload, open_workload
from simcore.workload.traffic import (
    backward_unsent,
    forward_senders,
    traffic_warnings,
    with_backward_sent,
    without_reduced_parameters,
    without_stated_transfers,
)
from tests.strategies import Cell, Row, make_workload

SEED_000, SEED_002 = "fixtures/000_gpt13b_tp4_old_header.txt", "fixtures/002_gpt_1024npu.txt"
_SENT = Cell(1000, "ALLREDUCE", "tp", 4096)


def of_aicb(*rows: Row) -> Workload:
    return make_workload([Row("grad_gather"), *rows], tp=2)


def test_the_notes_of_a_run_have_what_check_says_of_its_rows() -> None:
    """`... is not the cause` stood on seed 002 without a word of what its file does not send."""
    for path, codes in ((SEED_000, {"backward-unsent", "all-parameters"}), (SEED_002, {"backward-unsent"})):
        results = Results(simulate(open_workload(path), Parameters()))
        notes = [note for note in results.diagnostics if note.code in ("backward-unsent", "all-parameters")]
        assert {note.code for note in notes} == codes
        assert all(note.weight == "warning" for note in notes)


def test_rows_that_send_forward_and_nothing_backward_are_counted() -> None:
    workload = open_workload(SEED_002)
    # attention_column and mlp_column of 16 x 8 layers and the head of each block; the rows behind them send
    # both ways.
    assert (len(backward_unsent(workload)), len(forward_senders(workload))) == (272, 528)
    names = {"attention_column", "mlp_column", "final_column"}
    assert {workload.name[row] for row in backward_unsent(workload)} == names


def test_files_that_send_both_ways_or_have_no_gradients_of_aicb_are_no_ground_for_a_warning() -> None:
    one_way = Row("attention_row", _SENT, Cell(1000), Cell(1000))
    both_ways = Row("attention_row", _SENT, _SENT, Cell(1000))
    assert [note.code for note in traffic_warnings(of_aicb(one_way))] == ["backward-unsent"]
    assert list(traffic_warnings(of_aicb(both_ways))) == []
    assert list(traffic_warnings(make_workload([one_way], tp=2))) == []


def with_stages(sent: Cell, between: int | None, pp: int = 2) -> list[str]:
    row = Row("attention_column", sent, sent, Cell(1000))
    workload = make_workload([Row("grad_gather"), row], tp=2, pp=pp, pp_comm=between)
    return [note.message for note in traffic_warnings(workload) if note.code == "pp-comm-differs"]


def test_a_transfer_between_stages_that_is_no_activation_by_what_tp_sends_is_a_warning() -> None:
    """Of seed 001 a transfer is 50 MB, and tp gathers 3 MB of the same activation: no word said so."""
    gathers = Cell(1000, "ALLGATHER", "tp", 4096)
    assert with_stages(gathers, 65536) == [
        "pp_comm is 65 536 B, 16 times the activation of 4 096 B that attention_column (line 4) sends over "
        "tp, 32 times a rank's share of it: kept as written"
    ]
    assert "0.25 times" in with_stages(gathers, 1024)[0]
    # All of it, and a rank's share, are what files of AICB have.
    for between in (4096, 2048, None, 0):
        assert with_stages(gathers, between) == []
    assert with_stages(gathers, 65536, pp=1) == []
    assert with_stages(Cell(1000), 65536) == []


def test_what_is_not_sent_backward_has_its_step_once_it_is_weighed() -> None:
    """+1.5 % of seed 000 and +1.0 % of seed 002: by runs of files that send it."""
    for path, pair in ((SEED_000, "ALLREDUCE"), (SEED_002, "REDUCESCATTER")):
        workload = open_workload(path)
        results = Results(simulate(workload, Parameters()))
        sent = with_backward_sent(workload)
        assert sent is not None
        assert not backward_unsent(sent)
        assert {sent.ig.collective[row] for row in backward_unsent(workload)} == {pair}
        other = simulate(sent, Parameters(world=results.simulation.layout.world)).step_time_ns
        assert other > results.step_time_ns
        change = change_percent(results.step_time_ns, other)
        for all_of_them in (None, False, True):
            if all_of_them is not None:
                results.weigh_assumptions(all_of_them=all_of_them)
            (note,) = [one for one in results.diagnostics if one.code == "backward-unsent"]
            words = f": with it the step would be {duration(other)} ({change})"
            # JSON has the others alone.
            assert note.message.endswith(words) == bool(all_of_them)
    both_ways = of_aicb(Row("attention_row", _SENT, _SENT, Cell(1000)))
    assert with_backward_sent(both_ways) is None


def test_what_all_reduces_all_parameters_says_what_the_step_is_without_it() -> None:
    workload = open_workload(SEED_000)
    results = Results(simulate(workload, Parameters()))
    less = without_reduced_parameters(workload)
    assert less is not None
    other = simulate(less, Parameters(world=128)).step_time_ns
    (note,) = [one for one in results.diagnostics if one.code == "all-parameters"]
    assert note.message == (
        "layernorm all-reduces 2 bytes of each of the 3 238 789 120 parameters of a rank over tp; Megatron "
        f"sends none of it: without it the step would be {duration(other)} "
        f"({change_percent(results.step_time_ns, other)})"
    )
    # The sentence that blames the row says so, too.
    (blamed,) = [one.text for one in results.sentences if "layernorm (" in one.text]
    assert blamed.endswith("ms; Megatron sends none of it).")
    assert without_reduced_parameters(open_workload(SEED_002)) is None


def test_a_transfer_that_is_no_activation_has_the_step_with_one() -> None:
    """-3.4 % of seed 001: a newcomer asked whether it spoils the answer."""
    workload = open_workload("fixtures/001_moe_128npu_with_mistakes.txt")
    results = Results(simulate(workload, Parameters()))
    less = without_stated_transfers(workload)
    assert less is not None
    notes = simulate(less, Parameters()).diagnostics
    assert [one.message[:49] for one in notes if one.code == "pp-comm-missing"] == [
        "no pp_comm in the header: 393216 B taken, the for"
    ]
    other = simulate(less, Parameters(world=128)).step_time_ns
    (note,) = [one.message for one in results.diagnostics if one.code == "pp-comm-differs"]
    change = change_percent(results.step_time_ns, other)
    assert note.endswith(f": kept as written: by these rows the step would be {duration(other)} ({change})")
    assert without_stated_transfers(open_workload(SEED_002)) is None
