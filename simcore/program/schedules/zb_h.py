"""`zb-h1` and `zb-h2`: 1F1B whose backward is split, the weight gradients filling the bubble.

Qi et al., Zero Bubble Pipeline Parallelism, 2024 (arXiv 2401.10241). ZB-H1 has the memory of 1F1B on its
first stage, on every stage; ZB-H2 has no bubble where F, I and W take equal times, for about twice of it.
"""

from __future__ import annotations

from collections.abc import Iterator

from simcore.program.order import Action, Shape


def zb_h1(shape: Shape, stage: int) -> Iterator[Action]:
    """1F1B with B replaced by I (input gradients); after the k-th I, W of micro-batch k - s.

    s is the stage; the weight gradients that are left come last, in ascending order.
    """
    return _delayed_weights(shape.microbatches, shape.stages - 1 - stage, stage)


def _delayed_weights(microbatches: int, warm_up: int, behind: int) -> Iterator[Action]:
    """Forwards to warm up, then F and I in turn; W runs `behind` micro-batches behind I."""
    warm_up = min(microbatches, warm_up)
    for microbatch in range(warm_up):
        yield Action("F", microbatch)
    for microbatch in range(microbatches):
        if warm_up + microbatch < microbatches:
            yield Action("F", warm_up + microbatch)
        yield Action("I", microbatch)
        if microbatch >= behind:
            yield Action("W", microbatch - behind)
    for microbatch in range(max(0, microbatches - behind), microbatches):
        yield Action("W", microbatch)


def zb_h2(shape: Shape, stage: int) -> Iterator[Action]:
    """2(P-1-s) warm-up forwards, then F and I in turn; after the k-th I, W of micro-batch k - 2s.

    So every stage holds 2P-1 micro-batches and goes on from its first forward to its last W.
    """
    return _delayed_weights(shape.microbatches, 2 * (shape.stages - 1 - stage), 2 * stage)
