"""What models say: an example of each code."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from simcore.diagnostics import Diagnostic, InputError
from simcore.model.gpu import find_gpu
from simcore.model.huggingface import read_config
from simcore.model.known_models import MODELS
from simcore.model.launch import read_launch
from simcore.model.maker import ModelMaker
from simcore.model.opening import read_model
from simcore.model.operations.alone import price_file
from simcore.parameters import Parameters
from simcore.records import replace
from simcore.simulation import simulate
from simcore.sources.inputs import open_model
from simcore.workload import open_workload

Example = Callable[[Path], list[Diagnostic]]

_CONFIG = (
    b'{"model_type": "gpt2", "n_embd": 64, "n_head": 4, "n_layer": 2, "vocab_size": 99, '
    b'"sliding_window": 4, "mine": 1}'
)


def config(_: Path) -> list[Diagnostic]:
    return list(read_config("config.json", _CONFIG)[1])


def nested_config(_: Path) -> list[Diagnostic]:
    tower = b'{"model_type": "clip_vision_model", "hidden_size": 1024}'
    nested = b'{"text_config": {"model_type": "llama"}, "vision_config": ' + tower + b"}"
    return list(read_config("config.json", nested)[1])


def bad_model(_: Path) -> list[Diagnostic]:
    with pytest.raises(InputError) as caught:
        read_model("model.toml", b"[model]\nlayers = 4\nhidden = 1.5\nheads = 2\n")
    return list(caught.value.diagnostics)


def refusal_of(name: str, ask: Callable[[], object]) -> list[Diagnostic]:
    """The error that is raised, as one of a file of this name."""
    with pytest.raises(InputError) as caught:
        ask()
    (one,) = caught.value.diagnostics
    return [Diagnostic(one.severity, one.code, one.message, name, one.line, one.column)]


def workload_wanted(folder: Path) -> list[Diagnostic]:
    (folder / "config.json").write_bytes(_CONFIG)
    return refusal_of("config.json", lambda: open_workload(str(folder / "config.json")))


def gpu_file(folder: Path) -> list[Diagnostic]:
    (folder / "gpu.toml").write_text('[gpu]\nbase = "h100"\nmatmul = 7\n')
    return refusal_of("gpu.toml", lambda: find_gpu(str(folder / "gpu.toml")))


def operations_file(folder: Path) -> list[Diagnostic]:
    (folder / "ops.csv").write_text("gemm_dtype,m,n,k\nbfloat16,8,8,8\nfp8,8,8,8\n")
    return refusal_of("ops.csv", lambda: price_file(find_gpu("a100-80"), "product", str(folder / "ops.csv")))


def expert_loads(folder: Path) -> list[Diagnostic]:
    (folder / "loads.txt").write_text("3 1 4\n1 five\n")
    opened = ModelMaker("mixtral-8x7b", MODELS["mixtral-8x7b"]).empty_workload()
    parameters = Parameters(expert_imbalance=str(folder / "loads.txt"))
    return refusal_of("loads.txt", lambda: simulate(opened, parameters))


def sequence_lengths(folder: Path) -> list[Diagnostic]:
    (folder / "lengths.csv").write_text("dp,microbatch,length\n0,0,6000,3000\n")
    opened = ModelMaker("llama-3-8b", MODELS["llama-3-8b"]).empty_workload()
    parameters = Parameters(seq_imbalance=str(folder / "lengths.csv"))
    return refusal_of("lengths.csv", lambda: simulate(opened, parameters))


def launch(*arguments: str) -> Example:
    def example(folder: Path) -> list[Diagnostic]:
        (folder / "run.sh").write_text("torchrun pretrain_gpt.py --bf16 " + " ".join(arguments) + "\n")
        try:
            diagnostics = read_launch(str(folder / "run.sh")).diagnostics
        except InputError as error:
            diagnostics = error.diagnostics
        return [replace(one, file="run.sh") for one in diagnostics]

    return example


def launch_model(_: Path) -> list[Diagnostic]:
    arguments = b"--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 8 --vocab-size 99"
    return list(read_model("run.sh", arguments)[1])


def run_of(**parameters: object) -> Example:
    def example(_: Path) -> list[Diagnostic]:
        opened = ModelMaker("llama-3-8b", MODELS["llama-3-8b"]).empty_workload()
        return list(simulate(opened, Parameters(**parameters)).diagnostics)  # type: ignore[arg-type]

    return example


def aicb(mode: str, arguments: str) -> Example:
    def example(_: Path) -> list[Diagnostic]:
        given = Parameters(as_aicb=mode, aicb_args=arguments)
        return list(simulate(open_model(None), given).diagnostics)

    return example


MODEL_EXAMPLES: dict[str, Example] = {
    "is-a-model": workload_wanted,
    "model-file": bad_model,
    "model-field-unpriced": config,
    "model-part-left-out": nested_config,
    "model-field-unknown": config,
    "gpu-file": gpu_file,
    "operations-file": operations_file,
    "expert-loads": expert_loads,
    "sequence-lengths": sequence_lengths,
    "model-assumed": run_of(),
    "model-priced": run_of(gpu="a100-80"),
    "inference-assumed": run_of(decode=1, context=100),
    "launch-argument": launch("--num-layers two"),
    "launch-argument-unpriced": launch("--micro-batch-size 1 --use-nccl-ub"),
    "launch-argument-assumed": launch(
        "--num-layers 2 --hidden-size 64 --num-attention-heads 4", "--seq-length 8 --tokenizer-type Llama2"
    ),
    "launch-argument-unused": launch("--micro-batch-size 1 --lr 0.1"),
    "launch-layout": launch_model,
    "aicb-argument": aicb("plain", "--num_layers 2 --depth 3"),
    "aicb-mode": aicb("plain", "--num_layers 2 --aiob_enable"),
    "aicb-times": aicb("aiob", "--num_layers 2 --aiob_enable"),
    "aicb-quirk": aicb("plain", "--num_layers 5 --world_size 2 --pipeline_model_parallel 2"),
}
