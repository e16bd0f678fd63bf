"""`breadth-first`: chunk after chunk, each with all micro-batches, as MegatronApp runs it (measured)."""

from collections.abc import Iterator

from simcore.program.order import Action, Shape


def breadth_first(shape: Shape, stage: int) -> Iterator[Action]:
    """F of every micro-batch chunk by chunk, then B of the last chunk first, micro-batches ascending.

    In the last chunk the last stage alternates: B of a micro-batch follows its F.
    """
    microbatches, last = range(shape.microbatches), shape.chunks - 1
    alternates = stage == shape.stages - 1
    for chunk in range(shape.chunks):
        for microbatch in microbatches:
            yield Action("F", microbatch, chunk)
            if alternates and chunk == last:
                yield Action("B", microbatch, chunk)
    for chunk in reversed(range(last if alternates else shape.chunks)):
        for microbatch in microbatches:
            yield Action("B", microbatch, chunk)
