"""MPT models trained with PyTorch's FSDP, as MosaicML published them, and the same made by wltui.

../shared/validation/fsdp.json has the rows (mosaicml/llm-foundry, Apache-2.0), docs/accuracy.md the table.
Composer's FSDP: every block is a unit, the rest is the root; weights are sent in bf16, gradients in fp32
where mixed precision is DEFAULT; activation checkpointing is full recompute. Two engines are told apart: one
with wltui's constants (Megatron's kernels), one with the attention of that time, the first FlashAttention.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.measuring import ROOT
from benchmarks.published_steps import spread
from simcore.model.maker import ModelMaker
from simcore.model.sizes import Model
from simcore.parameters import Parameters
from simcore.simulation import simulate

ROWS = ROOT.parent / "shared" / "validation" / "fsdp.json"

# llm-foundry's scripts/train/yamls/pretrain/mpt-*.yaml: layers, hidden size, heads.
_SIZES = {
    "125m": (12, 768, 12), "350m": (24, 1024, 16), "760m": (24, 1536, 12), "1b": (24, 2048, 16),
    "3b": (32, 2560, 20), "7b": (32, 4096, 32), "13b": (40, 5120, 40), "30b": (48, 7168, 56),
    "70b": (80, 8192, 64),
}  # fmt: skip
_VOCABULARY = 50368
_GPUS = {"a100_80gb": "a100-80", "a100_40gb": "a100-40", "h100_80gb": "h100"}
# The first FlashAttention reaches 30 to 50 % of the peak forward, 25 to 35 % backward (arXiv 2307.08691,
# section 1): the middle of each.
_FIRST_FLASH = "flash_forward = 0.40\nflash_backward = 0.30\n"
# What the published MFU is a share of, FLOP/s.
_PEAKS = {"a100_80gb": 312e12, "a100_40gb": 312e12, "h100_80gb": 989.4e12}


class Made(NamedTuple):
    """One row, its published MFU and that of the simulated step."""

    row: dict[str, Any]
    published: float
    made: float

    @property
    def error(self) -> float:
        """How much higher than published, as a share of it."""
        return self.made / self.published - 1


def rows() -> list[dict[str, Any]]:
    """All rows that are here."""
    found: list[dict[str, Any]] = json.loads(ROWS.read_text("utf-8"))["rows"]
    return found


def model_of(row: dict[str, Any]) -> Model:
    """The model of a row: biases everywhere and a learned table of positions, as its parameters count."""
    layers, hidden, heads = _SIZES[row["Model"]]
    seq = int(row["SeqLen (T)"])
    model = Model(
        f"mpt-{row['Model']}", layers, hidden, heads, heads, hidden // heads, 4 * hidden, False, _VOCABULARY,
        seq, bias="all", norm_bias=True, positions=seq,
    )  # fmt: skip
    if model.parameters != int(row["NumParams"]):
        raise ValueError(f"{model.name}: {model.parameters} parameters, published {row['NumParams']}")
    return model


def parameters_of(row: dict[str, Any], gpu: str | None = None) -> Parameters:
    """The layout of a row. gpu: another than the one that wltui has."""
    return Parameters(
        world=int(row["# GPUs"]),
        gpu=gpu or _GPUS[row["GPU"]],
        zero="3",
        reshard_after_forward="on" if row["Sharding Strategy"] == "FULL_SHARD" else "off",
        grad_dtype="fp32" if row["MP Mode"] == "DEFAULT" else "bf16",
        microbatch_size=int(row["MicroBatchSize"]),
        global_batch=int(row["GlobalBatchSize"]),
        recompute="full" if row["Activation Checkpointing"] == "True" else "none",
    )


def mfu_of(row: dict[str, Any], seconds: float) -> float:
    """The MFU of a step as llm-foundry counts it: 6 N and attention over the whole square of scores."""
    layers, hidden, _ = _SIZES[row["Model"]]
    seq = int(row["SeqLen (T)"])
    flops = 6 * int(row["NumParams"]) + 12 * layers * hidden * seq
    tokens = int(row["GlobalBatchSize"]) * seq / seconds
    return flops * tokens / int(row["# GPUs"]) / _PEAKS[row["GPU"]]


@cache
def all_made(first_flash: bool = False) -> tuple[Made, ...]:
    """Every row with the simulated step; first_flash: with the attention of the first FlashAttention."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for row in rows():
            model, gpu = model_of(row), None
            if first_flash:
                path = Path(folder) / f"{row['GPU']}.toml"
                path.write_text(f'[gpu]\nbase = "{_GPUS[row["GPU"]]}"\n{_FIRST_FLASH}', "utf-8")
                gpu = str(path)
            simulation = simulate(ModelMaker(model.name, model).empty_workload(), parameters_of(row, gpu))
            found.append(Made(row, float(row["MFU"]) / 100, mfu_of(row, simulation.step_time_ns / 1e9)))
    return tuple(found)


def factors(found: tuple[Made, ...]) -> dict[str, float]:
    """By GPU the one constant of this engine on it: the median of published over simulated MFU."""
    of_gpu: dict[str, list[float]] = {}
    for one in found:
        of_gpu.setdefault(one.row["GPU"], []).append(one.published / one.made)
    return {gpu: statistics.median(ones) for gpu, ones in sorted(of_gpu.items())}


def errors(found: tuple[Made, ...], after: bool) -> dict[str, list[float]]:
    """By GPU the errors of the MFU, as they are or after its constant."""
    constants = factors(found)
    of_gpu: dict[str, list[float]] = {gpu: [] for gpu in constants}
    for one in found:
        gpu = one.row["GPU"]
        of_gpu[gpu].append((1 + one.error) * (constants[gpu] if after else 1.0) - 1)
    return of_gpu


def table() -> list[list[str]]:
    """By engine and GPU, and of all: the errors of the MFU as they are, and after one constant a GPU."""
    lines = [["MFU of MPT on", "rows", "median", "90 % within", "one constant", "median after", "90 % within",
              "worst"]]  # fmt: skip
    for first_flash in (False, True):
        found = all_made(first_flash)
        constants = factors(found)
        before, after = errors(found, False), errors(found, True)
        parts = [(gpu.replace("_", " "), [gpu]) for gpu in constants] + [("all", [*constants])]
        for name, gpus in parts:
            of_before = spread(error for gpu in gpus for error in before[gpu])
            of_after = spread(error for gpu in gpus for error in after[gpu])
            constant = f"{constants[gpus[0]]:.3f}" if len(gpus) == 1 else "a GPU"
            cells = [f"{100 * one:.1f} %" for one in (*of_before[:2], *of_after)]
            count = sum(len(before[gpu]) for gpu in gpus)
            name += ", first FlashAttention" if first_flash else ""
            lines.append([name, str(count), *cells[:2], constant, *cells[2:]])
    return lines
