"""`gpipe`: all forwards, then all backwards (Huang et al., GPipe, 2019)."""

from collections.abc import Iterator

from simcore.program.order import Action, Shape


def gpipe(shape: Shape, stage: int) -> Iterator[Action]:
    """F of every micro-batch, then B of every micro-batch, both in ascending order."""
    del stage
    for microbatch in range(shape.microbatches):
        yield Action("F", microbatch)
    for microbatch in range(shape.microbatches):
        yield Action("B", microbatch)
