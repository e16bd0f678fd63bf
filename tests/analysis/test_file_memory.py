"""What a SimAI file alone says of memory: by hand, and against the model that the file was made of."""

import json
from pathlib import Path
from typing import Any

import pytest

from simcore.model.known_models import MODELS
from simcore.model.maker import ModelMaker
from simcore.parameters import Parameters
from simcore.render.export.format import Request
from simcore.render.export.simai import export_model
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import simulate
from simcore.trace.contexts import FileMemory
from simcore.workload import open_workload
from simcore.workload.formats.simai_text import read
from tests.command_line.running import ROOT
from tui.cli import main

AICB = ROOT / "tests" / "model" / "aicb"


def memory_of(path: Path, **parameters: Any) -> tuple[FileMemory, ...]:
    return SimulatedRun(simulate(open_workload(str(path)), Parameters(**parameters))).model.file_memory


def test_a_gpt_of_405_b_by_hand() -> None:
    found = memory_of(ROOT / "fixtures" / "002_gpt_1024npu.txt")
    # The reduce-scatter of grad_param_comm, 12,802,064,384 bytes, is 4 a parameter; dp is 8.
    first = found[0]
    parameters = first.weights // 2
    assert (first.gradients, first.optimizer) == (4 * parameters, 12 * parameters // 8)
    assert 405e9 / 128 < parameters < 1.02 * 405e9 / 128
    # b s h = 4096 x 16384; 8 layers a stage, tp 8, and 16 micro-batches on the first of 16 stages.
    layer = 4096 * 16384 * 34 // 8
    assert [one.activations for one in found] == [8 * layer * (16 - stage) for stage in range(16)]
    assert first.total == first.weights + first.gradients + first.optimizer + 8 * layer * 16


def test_chunks_are_not_rounded_to_micro_batches() -> None:
    path = ROOT / "fixtures" / "002_gpt_1024npu.txt"
    found = memory_of(path, schedule="interleaved", virtual_stages=8)
    layer = 4096 * 16384 * 34 // 8
    assert [one.activations for one in found] == [layer * one.peak_chunks for one in found]
    assert any(one.peak_chunks % 8 for one in found)


@pytest.mark.parametrize(("number", "known"), [("003", True), ("051", False), ("084", True)])
def test_files_of_aicb(number: str, known: bool) -> None:
    (path,) = AICB.glob(f"{number}_*.txt")
    first = memory_of(path)[0]
    rows = [line.split("\t") for line in path.read_text("utf-8").splitlines()[2:]]
    (size,) = (int(cells[10]) for cells in rows if cells[0] in ("grad_param_comm", "grad_norm"))
    assert first.gradients == size
    # Without tensor parallelism aiob writes no collective that says b s h.
    assert (first.activations is not None) == known


@pytest.mark.parametrize("parallel", ["on", "off"])
@pytest.mark.parametrize("zero", ["0", "1"])
def test_the_file_of_a_model_has_the_states_of_the_model(tmp_path: Path, zero: str, parallel: str) -> None:
    model = MODELS["megatron-22b"]
    given = Parameters(
        gpu="h100", world=16, tp=8, global_batch=4, zero=zero, sequence_parallel=parallel, microbatch_size=2
    )
    opened = ModelMaker(model.name, model).empty_workload()
    assert opened.maker is not None
    path = tmp_path / "file.txt"
    path.write_bytes(b"".join(export_model(opened.maker, Request(opened, given)).chunks))
    (found,) = memory_of(path)
    figures = SimulatedRun(simulate(opened, given)).model.model_figures
    assert figures is not None
    (whole,) = figures.memory
    assert (found.weights, found.gradients, found.optimizer) == (
        whole.weights,
        whole.gradients,
        whole.optimizer,
    )
    assert found.activations == pytest.approx(whole.activations, rel=0.03)
    assert found.total < whole.total


def test_experts_are_counted_over_their_own_replicas() -> None:
    def row(name: str, wg: str, size: int) -> str:
        return f"{name}\t-1\t1\tNONE\t0\t1\tNONE\t0\t1\t{wg}\t{size}\t100"

    text = "\n".join(
        [
            "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 1 ep: 2 pp: 1 ga: 1 all_gpus: 8",
            "4",
            row("grad_norm", "REDUCESCATTER", 4 * 10_000),
            row("moe_grad_norm2", "REDUCESCATTER_DP_EP", 4 * 6_000),
            row("embedding_layer", "NONE", 0),
            row("attention_row", "NONE", 0),
        ]
    )
    (found,) = SimulatedRun(simulate(read("file.txt", text.encode()), Parameters())).model.file_memory
    # A plain file's grad_norm has the experts in it; 8 replicas of what is dense, 4 of each expert.
    assert (found.weights, found.gradients) == (2 * 10_000, 4 * 10_000)
    assert found.optimizer == 12 * 4_000 // 8 + 12 * 6_000 // 4


def test_the_report_says_at_least_and_about(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, few = str(ROOT / "fixtures" / "002_gpt_1024npu.txt"), ["--microbatches", "2"]
    assert main(["report", path, *few]) == 0
    text = capsys.readouterr().out
    assert "Memory of a rank, GB, about" in text
    assert "activations by b s h and layers, none recomputed" in " ".join(text.split())
    assert main(["report", "--json", path, *few]) == 0
    first = json.loads(capsys.readouterr().out)["memory"][0]
    # With recomputing it may be less: nothing that is needed at least.
    assert (first["at_least"], first["about"]) == (False, ["activations", "total"])
    assert (first["logits"], first["work"], first["limit"], first["fits"]) == (None, None, None, None)
    assert first["total"] == sum(first[part] for part in ("weights", "gradients", "optimizer", "activations"))


def test_a_total_without_activations_is_the_least(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = "{}\t-1\t1\tNONE\t0\t1\tNONE\t0\t1\t{}\t40000\t100\n"
    names = [("grad_norm", "REDUCESCATTER"), ("embedding_layer", "NONE"), ("attention_row", "NONE")]
    header = "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 1 ep: 1 pp: 1 ga: 1 all_gpus: 8\n3\n"
    path = tmp_path / "file.txt"
    path.write_text(header + "".join(row.format(*name) for name in names))
    assert main(["report", "--json", str(path)]) == 0
    (stage,) = json.loads(capsys.readouterr().out)["memory"]
    assert (stage["at_least"], stage["about"], stage["activations"]) == (True, [], None)
    assert stage["total"] == sum(stage[part] for part in ("weights", "gradients", "optimizer"))
    assert main(["report", str(path)]) == 0
    assert "GB, at least" in capsys.readouterr().out


def test_a_file_without_gradients_says_nothing_of_memory() -> None:
    rows = "HYBRID_TRANSFORMER model_parallel_NPU_group: 2\n1\nmlp -1 5 NONE 0 5 NONE 0 5 NONE 0 5\n"
    assert SimulatedRun(simulate(read("file.txt", rows.encode()), Parameters())).model.file_memory == ()


def test_of_unequal_micro_batches_those_that_are_held_count_with_their_own_layers() -> None:
    """Seed 001 has blocks of 8 layers and of 1: 2 held counted as 16 layers, which were 9."""
    workload = open_workload("fixtures/001_moe_128npu_with_mistakes.txt")
    held: dict[int, int] = {}
    for count in (1, 2, 3, 4):
        first = SimulatedRun(simulate(workload, Parameters(microbatches=count))).model.file_memory[0]
        assert first.activations is not None
        held[count] = first.activations
    assert [round(8 * held[count] / held[1]) for count in (1, 2, 3, 4)] == [8, 9, 17, 18]
