"""`dualpipe`: micro-batches from both ends at once, forwards beside backwards; `dualpipev`: the same cut in
half, two chunks a stage, down the stages and up.

DeepSeek-V3 technical report, 2024 (arXiv 2412.19437), 3.2.1, in the order of deepseek-ai/DualPipe. Of
DualPipe each stage holds two stages of the model: its own and the one as far from the other end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from simcore.program.order import Action, Kind, Shape, without_extra


def dualpipe(shape: Shape, stage: int) -> Iterator[Action]:
    """Half of the micro-batches go down the stages, half up; the second half of the stages mirrors the first.

    Made for 2P micro-batches or more; of fewer the others are left out.
    """
    half = shape.stages // 2
    mirrored = stage >= half
    own = shape.microbatches // 2
    steps = _eight_steps(half, max(shape.stages, own), shape.stages - 1 - stage if mirrored else stage)
    for action in without_extra(steps, own):
        # What is first for a stage comes from the end that is nearer.
        chunk = 1 - action.chunk if mirrored else action.chunk
        yield action._replace(microbatch=action.microbatch + chunk * own, chunk=chunk)


def _eight_steps(ranks: int, microbatches: int, rank: int) -> Iterator[Action]:
    """What rank `rank` of `ranks`, counted from the end, does with that many micro-batches of each direction.

    Direction 0, as chunk 0, comes from the end, direction 1 comes back from the middle.
    """
    following: dict[tuple[str, int], int] = {}
    owed: deque[Action] = deque()

    def run(kind: Kind, chunk: int, paired: bool = False) -> Action:
        pass_kind = "F" if kind == "F" else "B"
        microbatch = following.get((pass_kind, chunk), 0)
        following[pass_kind, chunk] = microbatch + 1
        if kind == "I":
            owed.append(Action("W", microbatch, chunk))
        return Action(kind, microbatch, chunk, paired)

    away = ranks - 1 - rank
    for _ in range(2 * away):
        yield run("F", 0)
    for _ in range(rank + 1):
        yield run("F", 0)
        yield run("F", 1)
    for _ in range(away):
        yield run("I", 1)
        yield owed.popleft()
        yield run("F", 1)
    for turn in range(microbatches - 2 * ranks + rank + 1):
        # The first in the middle are of one micro-batch, or else wait for each other.
        yield run("F", 0, paired=turn > 0 or away > 0)
        yield run("B", 1)
        yield run("F", 1, paired=True)
        yield run("B", 0)
    for _ in range(away):
        yield run("B", 1)
        yield run("F", 1, paired=True)
        yield run("B", 0)
    splits = False
    for turn in range(rank + 1):
        half = turn == (rank + 1) // 2
        splits = splits or (half and rank % 2 == 1)
        yield run("I" if splits else "B", 1)
        splits = splits or (half and rank % 2 == 0)
        yield run("I" if splits else "B", 0)
    for _ in range(away):
        yield owed.popleft()
        yield run("I", 0)
    while owed:
        yield owed.popleft()


def dualpipev(shape: Shape, stage: int) -> Iterator[Action]:
    """The eight steps of DualPipe, chunk 0 and chunk 1 of each micro-batch for its two directions.

    Made for 2P micro-batches or more; of fewer the others are left out.
    """
    most = max(2 * shape.stages, shape.microbatches)
    return without_extra(_eight_steps(shape.stages, most, stage), shape.microbatches)
