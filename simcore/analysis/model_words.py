"""A model's throughput and memory in words."""

from __future__ import annotations

from simcore.analysis.model_figures import ModelFigures
from simcore.diagnostics import printable


def throughput_facts(figures: ModelFigures) -> list[str]:
    """Tokens a second, FLOP/s and their share of the peak, a fact each."""
    found = figures.throughput
    return [
        f"{tokens_words(found.tokens_per_s)} tokens/s",
        f"{tokens_words(found.tokens_per_s_per_gpu)}/GPU",
        f"{found.model_tflops_per_gpu:.1f} TFLOP/s/GPU",
        f"MFU {100 * found.mfu:.1f} %",
        f"HFU {100 * found.hfu:.1f} %",
    ]


def tokens_words(tokens: float) -> str:
    """A number of tokens in four figures: `14.25 k`, `873.2`."""
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if tokens >= size:
            return f"{tokens / size:.4g}{unit}"
    return f"{tokens:.4g}"


def memory_words(figures: ModelFigures) -> str:
    """What the fullest stage needs of what a GPU has."""
    fullest = figures.fullest
    fits = "" if figures.fits else ", does not fit"
    return f"{fullest.total / 1e9:.1f} of {figures.limit / 1e9:.1f} GB on stage {fullest.stage}{fits}"


def model_words(figures: ModelFigures) -> str:
    """The model's name and size."""
    model = figures.model
    active = f", {model.active_parameters / 1e9:.2f} B active" if model.moe else ""
    return f"{printable(model.name)}, {model.parameters / 1e9:.2f} B parameters{active}"
