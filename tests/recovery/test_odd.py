"""What is odd in AICB's files: each is said where it is, with its row, and nowhere else."""

import pytest

from simcore.diagnostics import Diagnostic
from simcore.model.aicb import AicbTimes, aicb_text
from simcore.model.aicb_arguments import AicbArguments
from simcore.recovery import recover
from simcore.recovery.odd import gpu_of, oddities
from simcore.workload.formats.simai_text import read
from tests.findings import facts

GPT_7B = "--num_layers 36 --hidden_size 4096 --num_attention_heads 32 --vocab_size 50257 --global_batch 4"
SOUND = AicbTimes(800_000, 6_000_000, 9_000_000, (1_800_000, 1_900_000))
EXAMPLE = AicbTimes(799_000, 1_820_000, 2_478_000, (16_647_000, 17_374_000))


def odd(arguments: str, times: AicbTimes | None = None, name: str = "made.txt") -> dict[str, Diagnostic]:
    text = aicb_text(AicbArguments(f"{GPT_7B} {arguments}").config, times)
    workload = read(name, text.encode())
    found = recover(workload)
    assert found.exact
    return {one.code: one for one in oddities(workload, found)}


def test_a_plain_file_on_one_rank_with_sequence_parallelism_has_nothing_odd() -> None:
    assert odd("--world_size 1 --enable_sequence_parallel", SOUND) == {}


def test_backward_without_tensor_parallel_collectives_is_said_with_its_rows() -> None:
    said = odd("--world_size 8 --tensor_model_parallel_size 8 --enable_sequence_parallel", SOUND)
    assert set(said) == {"backward-unsent"}
    assert facts(said["backward-unsent"].message).startswith("attention_column, tp, ")
    assert "(292 rows, " in said["backward-unsent"].message
    # All of it without sequence parallelism; plain files send it there.
    assert "backward-unsent" in odd("--world_size 8 --tensor_model_parallel_size 8", SOUND)
    assert "backward-unsent" not in odd("--world_size 8 --tensor_model_parallel_size 8")


def test_an_all_reduce_of_all_parameters_is_said() -> None:
    said = odd("--world_size 8 --tensor_model_parallel_size 8")
    assert said["all-parameters"].line == 4
    assert "each of the 1 019 215 872 parameters" in said["all-parameters"].message
    assert "all-parameters" not in odd("--world_size 8 --enable_sequence_parallel")


def test_layers_that_pp_loses_are_said() -> None:
    said = odd("--world_size 5 --pipeline_model_parallel 5")["lost-layers"]
    assert facts(said.message) == "7, 5, 35, 7B, 36, AICB, 1"
    assert "GPT 7B has 36" in said.message
    assert "lost-layers" not in odd("--world_size 4 --pipeline_model_parallel 4")
    llama = (
        "--num_layers 126 --hidden_size 16384 --num_attention_heads 128 --ffn_hidden_size 53248 "
        "--vocab_size 128256 --world_size 16 --pipeline_model_parallel 16"
    )
    assert facts(odd(llama)["lost-layers"].message).endswith("llama-3-405b, 126, AICB, 14")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (
            "H100-gpt_7B-world_size1.txt",
            "the file's name says H100, but its cells are those of AICB's",
        ),
        ("made.txt", "its cells are those of AICB's Example.txt (799 000, 1 820 000, 2 478 000"),
    ],
)
def test_the_cells_of_aicbs_example_are_said(name: str, says: str) -> None:
    said = odd("--world_size 1 --enable_sequence_parallel", EXAMPLE, name)
    assert says in said["example-cells"].message
    assert said["example-cells"].line is not None
    assert "example-cells" not in odd("--world_size 1", SOUND, name)


def test_cells_above_the_peak_of_the_gpu_in_the_name_are_said() -> None:
    # 4 x 2048 x 4096 x 16384 products in 1.5 ms.
    fast = AicbTimes(800_000, 6_000_000, 1_500_000, (1_800_000, 1_900_000))
    said = odd("--world_size 1", fast, "A100-gpt_7B.txt")["above-peak"]
    assert facts(said.message).startswith("mlp_layer, 1 500 000 ns, 367 TFLOP/s, A100, 312, ")
    assert "(144 rows, " in said.message
    assert "above-peak" not in odd("--world_size 1", fast, "H100-gpt_7B.txt")
    assert "above-peak" not in odd("--world_size 1", SOUND, "A100-gpt_7B.txt")


def test_the_gpu_is_taken_from_the_name_of_the_file() -> None:
    names = ("/a100/x.txt", "x/H100-gpt.txt", "GPT13B_A100.txt", "None-gpt_7B.txt")
    assert [gpu_of(name) for name in names] == ["", "h100", "a100", ""]
