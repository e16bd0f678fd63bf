"""`v-half`: half the memory of 1F1B (Qi et al., Pipeline Parallelism with Controllable Memory, V-Half)."""

from collections.abc import Iterable

from simcore.program.order import Action, Shape
from simcore.program.schedules.building_block import Block, repeated


def v_half(shape: Shape, stage: int) -> Iterable[Action]:
    """Chunk 0 goes down at two units a stage, chunk 1 up at one; a stage holds (P+2)//2 micro-batches."""
    return repeated(_block, shape.stages, shape.microbatches)[stage]


def _block(stage: int, stages: int) -> Block:
    # Of an even number of stages I would meet F in the same unit.
    later = 3 if stages % 2 == 0 else 0
    return (
        2 * stage,
        3 * stages - stage - 2,
        3 * stages + later + 2 * stage - 1,
        6 * stages + later - stage - 2,
    )
