"""`v-half` and `v-min`: a building block again and again, what one micro-batch does on each stage, six units
later the next.

Qi et al., Pipeline Parallelism with Controllable Memory, 2024 (arXiv 2405.15362): two chunks a stage, laid
down the stages and up again; how long a block holds its activations decides the memory of a stage: half of
1F1B's, or a third.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from heapq import merge

from simcore.program.order import Action, Kind, Shape

# A stage does F, I and W of two chunks for each micro-batch: at one unit each, the next comes six later.
_PERIOD = 6
# When a stage begins F of chunk 0, F of chunk 1, I of chunk 1 and I of chunk 0 of micro-batch 0, in units.
_Block = tuple[int, int, int, int]
_PARTS: tuple[tuple[Kind, int], ...] = (("F", 0), ("F", 1), ("I", 1), ("I", 0))


@lru_cache(maxsize=4)
def _repeat_blocks(
    block: Callable[[int, int], _Block], stages: int, microbatches: int
) -> tuple[tuple[Action, ...], ...]:
    """Of each stage its actions: F and I in the order of the repeated blocks, each as soon as it can run,
    and W where nothing else can, at unit times.

    A stage holds no more chunks at once than in the repeated blocks, whose W run in the first free unit.
    """
    blocks = [block(stage, stages) for stage in range(stages)]
    most = max(map(_peak_chunks, blocks))
    waiting = [_in_block_order(block, microbatches) for block in blocks]
    head = [next(order, None) for order in waiting]
    owed: list[list[Action]] = [[] for _ in range(stages)]
    held_chunks = [0] * stages
    end_units: dict[tuple[int, Kind, int, int], int] = {}
    orders: list[list[Action]] = [[] for _ in range(stages)]
    unit, left = 0, 2 * 3 * stages * microbatches
    while left:
        for stage in range(stages):
            action = head[stage]
            if action is not None and _can_run(
                action, stage, stages, end_units, unit, held_chunks[stage] < most
            ):
                head[stage] = next(waiting[stage], None)
                end_units[stage, action.kind, action.chunk, action.microbatch] = unit + 1
                if action.kind == "F":
                    held_chunks[stage] += 1
                else:
                    owed[stage].append(action._replace(kind="W"))
            elif owed[stage]:
                action = owed[stage].pop(0)
                held_chunks[stage] -= 1
            else:
                continue
            orders[stage].append(action)
            left -= 1
        unit += 1
        assert unit <= 100 * (stages + 1) * (microbatches + 1), "blocks that wait for each other"
    return tuple(map(tuple, orders))


def _in_block_order(block: _Block, microbatches: int) -> Iterator[Action]:
    """F and I of a stage by the unit in which its blocks begin them."""
    timed = [
        [
            (begin + _PERIOD * microbatch, Action(kind, microbatch, chunk))
            for microbatch in range(microbatches)
        ]
        for begin, (kind, chunk) in zip(block, _PARTS, strict=True)
    ]
    return (action for _, action in merge(*timed))


def _can_run(
    action: Action,
    stage: int,
    stages: int,
    end_units: dict[tuple[int, Kind, int, int], int],
    unit: int,
    room: bool,
) -> bool:
    """Whether what an action needs is over by `unit`, and F has room."""
    kind, chunk = action.kind, action.chunk
    if kind == "F" and not room:
        return False
    # Chunk 0 goes down the stages and chunk 1 up, their gradients the other way.
    down = (chunk == 0) == (kind == "F")
    before = stage - 1 if down else stage + 1
    if 0 <= before < stages:
        key = (before, kind, chunk, action.microbatch)
    elif down and kind == "F":
        return True
    elif down:
        key = (stage, "F", 1, action.microbatch)
    else:
        key = (stage, kind, 1 - chunk, action.microbatch)
    return end_units.get(key, unit + 1) <= unit


def _peak_chunks(block: _Block) -> int:
    """The most chunks that a stage holds, from F to W, when its blocks repeat without end."""
    # Blocks that overlap; by then every unit is as it will be.
    blocks = 2 * (max(block) // _PERIOD + 2)
    part_at = {begin + _PERIOD * repeat: part for part, begin in enumerate(block) for repeat in range(blocks)}
    held_chunks = owed = most = 0
    for unit in range(_PERIOD * blocks):
        part = part_at.get(unit)
        if part is None:
            freed = min(owed, 1)
            owed, held_chunks = owed - freed, held_chunks - freed
        elif part < 2:
            held_chunks += 1
        else:
            owed += 1
        most = max(most, held_chunks)
    return most


def v_half(shape: Shape, stage: int) -> Iterable[Action]:
    """Chunk 0 goes down at two units a stage, chunk 1 up at one; a stage holds (P+2)//2 micro-batches."""
    return _repeat_blocks(_half_block, shape.stages, shape.microbatches)[stage]


def _half_block(stage: int, stages: int) -> _Block:
    # Of an even number of stages I would meet F in the same unit.
    later = 3 if stages % 2 == 0 else 0
    return (
        2 * stage,
        3 * stages - stage - 2,
        3 * stages + later + 2 * stage - 1,
        6 * stages + later - stage - 2,
    )


def v_min(shape: Shape, stage: int) -> Iterable[Action]:
    """Both chunks go at one unit a stage, down and up; a stage holds (P+4)//3 micro-batches."""
    return _repeat_blocks(_min_block, shape.stages, shape.microbatches)[stage]


def _min_block(stage: int, stages: int) -> _Block:
    # Of a multiple of three stages I would meet F in the same unit.
    later = 2 if stages % 3 == 0 else 0
    return stage, 2 * stages - stage - 1, 2 * stages + later + stage, 4 * stages + later - stage - 1
