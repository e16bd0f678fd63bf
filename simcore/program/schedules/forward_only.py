"""`forward-only`: the forwards of an inference step, which has no backward."""

from collections.abc import Iterator

from simcore.program.order import Action, Shape


def forward_only(shape: Shape, stage: int) -> Iterator[Action]:
    """F of every micro-batch, in ascending order."""
    del stage
    for microbatch in range(shape.microbatches):
        yield Action("F", microbatch)
