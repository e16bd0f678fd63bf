"""`v-min`: a third of the memory of 1F1B (Qi et al., Pipeline Parallelism with Controllable Memory)."""

from collections.abc import Iterable

from simcore.program.order import Action, Shape
from simcore.program.schedules.building_block import Block, repeated


def v_min(shape: Shape, stage: int) -> Iterable[Action]:
    """Both chunks go at one unit a stage, down and up; a stage holds (P+4)//3 micro-batches."""
    return repeated(_block, shape.stages, shape.microbatches)[stage]


def _block(stage: int, stages: int) -> Block:
    # Of a multiple of three stages I would meet F in the same unit.
    later = 2 if stages % 3 == 0 else 0
    return stage, 2 * stages - stage - 1, 2 * stages + later + stage, 4 * stages + later - stage - 1
