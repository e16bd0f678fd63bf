"""`zb-h1`: 1F1B whose backward is split, the weight gradients filling the bubble.

Qi et al., Zero Bubble Pipeline Parallelism, 2024 (arXiv 2401.10241), schedule ZB-H1: the memory of 1F1B on
its first stage, on every stage.
"""

from collections.abc import Iterator

from simcore.program.order import Action, Shape


def zb_h1(shape: Shape, stage: int) -> Iterator[Action]:
    """1F1B with B replaced by I (input gradients); after the k-th I, W of micro-batch k - s.

    s is the stage; the weight gradients that are left come last, in ascending order.
    """
    return delayed_weights(shape.microbatches, shape.stages - 1 - stage, stage)


def delayed_weights(microbatches: int, warm_up: int, behind: int) -> Iterator[Action]:
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
