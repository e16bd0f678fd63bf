"""How well a measured step uses its GPUs, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simcore.trace.contexts import ProductUse


def use_facts(use: ProductUse) -> list[str]:
    """Returns tokens per second, FLOP/s and their share of the peak, one fact each, as runs of models state
    them.
    """
    # Imported here: most traces are not asked for it.
    from simcore.analysis.model_figures import format_tokens

    throughput, words = use.throughput, list[str]()
    if throughput is not None:
        words = [
            f"{format_tokens(throughput.tokens_per_s)} tokens/s",
            f"{format_tokens(throughput.tokens_per_s_per_gpu)}/GPU",
            f"{throughput.model_tflops_per_gpu:.1f} TFLOP/s/GPU",
        ]
    shares = (("MFU", use.mfu), ("HFU", use.hfu))
    return [*words, *(f"{name} {share_text(share)} %" for name, share in shares if share is not None)]


def share_text(share: float | None) -> str:
    """Returns a share as percent: `41.2`; of a small one two figures, `-` where it is not known."""
    if share is None:
        return "-"
    return f"{100 * share:.1f}" if share >= 0.01 or not share else f"{100 * share:.2g}"
