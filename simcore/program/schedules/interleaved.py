"""`interleaved`: Megatron's 1F1B over virtual stages, each stage holding several chunks.

Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters, 2021, 2.2.2.
"""

from collections.abc import Iterator

from simcore.program.order import Action, Shape


def interleaved(shape: Shape, stage: int) -> Iterator[Action]:
    """Groups of P micro-batches go through chunk after chunk; 2(P-1-s) + (V-1)P warm-up forwards.

    One more where forwards run beside backwards (Megatron's overlapped MoE communication): then no
    pair has the forward that its backward needs.
    """
    stages, chunks = shape.stages, shape.chunks
    total = shape.microbatches * chunks
    warm_up = min(total, 2 * (stages - 1 - stage) + (chunks - 1) * stages + shape.overlapped)

    def locate_step(step: int) -> tuple[int, int]:
        group, rest = divmod(step, stages * chunks)
        return group * stages + rest % stages, rest // stages

    def forward(step: int, paired: bool = False) -> Action:
        microbatch, chunk = locate_step(step)
        return Action("F", microbatch, chunk, paired)

    def backward(step: int) -> Action:
        microbatch, chunk = locate_step(step)
        return Action("B", microbatch, chunks - 1 - chunk)

    for step in range(warm_up):
        yield forward(step)
    for step in range(warm_up, total):
        yield forward(step, paired=shape.overlapped)
        yield backward(step - warm_up)
    for step in range(total - warm_up, total):
        yield backward(step)
