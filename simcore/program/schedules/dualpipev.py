"""`dualpipev`: DualPipe cut in half, two chunks a stage, down the stages and up (deepseek-ai/DualPipe)."""

from collections.abc import Iterator

from simcore.program.order import Action, Shape, without_extra
from simcore.program.schedules.dualpipe import eight_steps


def dualpipev(shape: Shape, stage: int) -> Iterator[Action]:
    """The eight steps of DualPipe, chunk 0 and chunk 1 of each micro-batch for its two directions.

    Made for 2P micro-batches or more; of fewer the others are left out.
    """
    most = max(2 * shape.stages, shape.microbatches)
    return without_extra(eight_steps(shape.stages, most, stage), shape.microbatches)
