"""`looped-bfs`: chunk after chunk, each with all micro-batches (Lamy-Poirier, Breadth-First Pipeline
Parallelism, 2023), as PyTorch's LoopedBFS orders it."""

from collections.abc import Iterator

from simcore.program.order import Action, Shape


def looped_bfs(shape: Shape, stage: int) -> Iterator[Action]:
    """F of every micro-batch chunk by chunk, then B of the last chunk first, micro-batches descending."""
    del stage
    for chunk in range(shape.chunks):
        for microbatch in range(shape.microbatches):
            yield Action("F", microbatch, chunk)
    for chunk in reversed(range(shape.chunks)):
        for microbatch in reversed(range(shape.microbatches)):
            yield Action("B", microbatch, chunk)
