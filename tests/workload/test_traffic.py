"""What rows send unlike a trainer is among the notes of a run, as `check` has it, and costs what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from simcore.parameters import Parameters
from simcore.recovery.rescale import rescale_rows
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import simulate
from simcore.units import change_percent, duration
from simcore.workload import Workload, open_workload
from simcore.workload.model import DegreeParameters
from simcore.workload.traffic import (
    backward_unsent,
    forward_senders,
    traffic_warnings,
    with_backward_sent,
    without_reduced_parameters,
    without_stated_transfers,
)
from tests.findings import facts
from tests.says import said
from tests.strategies import Cell, Row, make_workload
from tests.workload.texts import shared_folder

SEED_000, SEED_002 = "fixtures/000_gpt13b_tp4_old_header.txt", "fixtures/002_gpt_1024npu.txt"
_SENT = Cell(1000, "ALLREDUCE", "tp", 4096)


def of_aicb(*rows: Row) -> Workload:
    return make_workload([Row("grad_gather"), *rows], tp=2)


def test_the_notes_of_a_run_have_what_check_says_of_its_rows() -> None:
    """`... is not the cause` stood on seed 002 without a word of what its file does not send."""
    for path, codes in ((SEED_000, {"backward-unsent", "all-parameters"}), (SEED_002, {"backward-unsent"})):
        results = SimulatedRun(simulate(open_workload(path), Parameters()))
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
    assert [facts(one) for one in with_stages(gathers, 65536)] == [
        "pp_comm, 65 536 B, 32, 2 048 B, 4 096 B, attention_column, 4, tp"
    ]
    assert "0.5 times" in with_stages(gathers, 1024)[0]
    reduces = Cell(1000, "ALLREDUCE", "tp", 4096)
    assert facts(with_stages(reduces, 65536)[0]) == "pp_comm, 65 536 B, 16, 4 096 B, attention_column, 4, tp"
    # All of it, and a rank's share, are what files of AICB have.
    for between in (4096, 2048, None, 0):
        assert with_stages(gathers, between) == []
    assert with_stages(gathers, 65536, pp=1) == []
    assert with_stages(Cell(1000), 65536) == []


def test_what_is_not_sent_backward_has_its_step_once_it_is_weighed() -> None:
    """+1.5 % of seed 000 and +1.0 % of seed 002: by runs of files that send it."""
    for path, pair in ((SEED_000, "ALLREDUCE"), (SEED_002, "REDUCESCATTER")):
        workload = open_workload(path)
        results = SimulatedRun(simulate(workload, Parameters()))
        sent = with_backward_sent(workload)
        assert sent is not None
        assert not backward_unsent(sent)
        assert {sent.ig.collective[row] for row in backward_unsent(workload)} == {pair}
        other = simulate(sent, Parameters(world=results.simulation.layout.world)).step_time_ns
        assert other > results.step_time_ns
        change = change_percent(results.step_time_ns, other)
        for all_of_them in (None, False, True):
            if all_of_them is not None:
                results.weigh_assumptions(include_all=all_of_them)
            (note,) = [one for one in results.diagnostics if one.code == "backward-unsent"]
            words = f": with it the step would be {duration(other)} ({change})"
            # JSON has the others alone.
            assert note.message.endswith(words) == bool(all_of_them)
    both_ways = of_aicb(Row("attention_row", _SENT, _SENT, Cell(1000)))
    assert with_backward_sent(both_ways) is None


def test_what_all_reduces_all_parameters_says_what_the_step_is_without_it() -> None:
    workload = open_workload(SEED_000)
    results = SimulatedRun(simulate(workload, Parameters()))
    less = without_reduced_parameters(workload)
    assert less is not None
    other = simulate(less, Parameters(world=128)).step_time_ns
    (note,) = [one for one in results.diagnostics if one.code == "all-parameters"]
    assert (
        facts(note.message)
        == f"2, 3 238 789 120, tp, {duration(other)}, {change_percent(results.step_time_ns, other)}"
    )
    # The sentence that blames the row says so, too.
    (blamed,) = [one.text for one in results.sentences if "layernorm (" in one.text]
    assert said([blamed], "layernorm (all-reduce", "2 B", "ms", "Megatron sends none")
    assert without_reduced_parameters(open_workload(SEED_002)) is None


def test_a_transfer_that_is_no_activation_has_the_step_with_one() -> None:
    """-3.4 % of seed 001: a newcomer asked whether it spoils the answer."""
    workload = open_workload("fixtures/001_moe_128npu_with_mistakes.txt")
    results = SimulatedRun(simulate(workload, Parameters()))
    less = without_stated_transfers(workload)
    assert less is not None
    notes = simulate(less, Parameters()).diagnostics
    assert [facts(one.message[:49]) for one in notes if one.code == "pp-comm-missing"] == [
        "pp_comm, 393 216 B"
    ]
    other = simulate(less, Parameters(world=128)).step_time_ns
    (note,) = [one.message for one in results.diagnostics if one.code == "pp-comm-differs"]
    change = change_percent(results.step_time_ns, other)
    assert facts(note).endswith(f", {duration(other)}, {change}")
    assert without_stated_transfers(open_workload(SEED_002)) is None


def at_stake(results: SimulatedRun, code: str) -> str:
    """What the note of a run says behind its last colon."""
    (message,) = [one.message for one in results.diagnostics if one.code == code]
    return message.rpartition(": ")[2]


@pytest.mark.parametrize("passes", [1, 2])
def test_in_the_queues_of_astra_sim_the_other_step_is_that_of_a_file_edited_by_hand(
    tmp_path: Path, passes: int
) -> None:
    """The run began with the file's cells, so nothing was taken away: `without it the step takes as long`."""
    parameters = Parameters(dialect="astra-sim-1", passes=passes)
    results = SimulatedRun(simulate(open_workload(SEED_000), parameters))
    lines = Path(SEED_000).read_text("utf-8").splitlines()
    (layernorm,) = [number for number, line in enumerate(lines) if line.startswith("layernorm")]
    less = [line.replace("6477578240", "0") if at == layernorm else line for at, line in enumerate(lines)]
    # Columns of a row: forward, input gradient and weight gradient, of each compute, collective and bytes.
    cells = [line.split("\t") for line in lines]
    for row in cells:
        if row[0].startswith(("attention", "mlp")) and row[7].strip() == "0":
            row[6:8] = row[3:5]
    texts = {"all-parameters": less, "backward-unsent": ["\t".join(row) for row in cells]}
    steps = {}
    for code, text in texts.items():
        path = tmp_path / f"{code}.txt"
        path.write_text("\n".join(text) + "\n", "utf-8")
        other = open_workload(str(path))
        assert code not in [one.code for one in traffic_warnings(other)]
        steps[code] = simulate(other, parameters).step_time_ns
    step = results.step_time_ns
    other_ns = steps["all-parameters"]
    change = change_percent(step, other_ns)
    assert change == "-7.6 %"
    assert facts(at_stake(results, "all-parameters")) == f"{duration(other_ns)}, {change}"
    # This policy sends nothing over tp while it goes back.
    results.weigh_assumptions()
    assert steps["backward-unsent"] == step
    assert at_stake(results, "backward-unsent").endswith("takes as long")


def test_of_rows_made_anew_the_other_step_is_that_of_their_file_edited_by_hand(tmp_path: Path) -> None:
    """The rows were made once more, with what was to be taken away."""
    workload = open_workload(str(shared_folder("golden/aicb") / "006_gpt_13B_tp8_pp1_ep1_w32_plain.txt"))
    parameters = Parameters(rescale="on", tp=4, pp=2)
    results = SimulatedRun(simulate(workload, parameters))
    made = rescale_rows(workload, parameters.part(DegreeParameters), parameters.microbatches)
    assert made is not None
    lines = made.text.splitlines()
    (layernorm,) = [number for number, line in enumerate(lines) if line.startswith("layernorm")]
    cells = lines[layernorm].split("\t")
    assert int(cells[7]) == made.workload.ig.bytes[made.workload.name.index("layernorm")]
    cells[7] = "0"
    lines[layernorm] = "\t".join(cells)
    path = tmp_path / "less.txt"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    other = simulate(open_workload(str(path)), Parameters()).step_time_ns
    assert other < results.step_time_ns
    assert (
        facts(at_stake(results, "all-parameters"))
        == f"{duration(other)}, {change_percent(results.step_time_ns, other)}"
    )
