"""`zb-h2`: no bubble where F, I and W take equal times, for about twice the memory of 1F1B.

Qi et al., Zero Bubble Pipeline Parallelism, 2024 (arXiv 2401.10241), schedule ZB-H2.
"""

from collections.abc import Iterator

from simcore.program.order import Action, Shape
from simcore.program.schedules.zb_h1 import delayed_weights


def zb_h2(shape: Shape, stage: int) -> Iterator[Action]:
    """2(P-1-s) warm-up forwards, then F and I in turn; after the k-th I, W of micro-batch k - 2s.

    So every stage holds 2P-1 micro-batches and goes on from its first forward to its last W.
    """
    return delayed_weights(shape.microbatches, 2 * (shape.stages - 1 - stage), 2 * stage)
