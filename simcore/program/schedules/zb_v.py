"""`zb-v`: no bubble where F, I and W take equal times, with the memory of 1F1B.

Two chunks a stage, laid down the stages and up again. Qi et al., Pipeline Parallelism with Controllable
Memory, 2024 (arXiv 2405.15362), V-ZB; in the fixed order that PyTorch's ZBVZeroBubble has.
"""

from collections.abc import Iterator

from simcore.program.order import Action, Shape, without_extra


def zb_v(shape: Shape, stage: int) -> Iterator[Action]:
    """Fill with F of chunk 0, then each chunk's F, I and W in turn, then I before W to be done in time.

    Made for 2P-1 micro-batches or more; of fewer the others are left out.
    """
    most = max(2 * shape.stages - 1, shape.microbatches)
    return without_extra(_actions(shape.stages, most, stage), shape.microbatches)


def _actions(stages: int, microbatches: int, stage: int) -> Iterator[Action]:
    # The next micro-batch of each kind, in chunk 0 and in chunk 1.
    following = {kind: [0, 0] for kind in ("F", "I", "W")}

    def run(*words: str) -> Iterator[Action]:
        for word in words:
            kind, chunk = word[0], int(word[1])
            yield Action(kind, following[kind][chunk], chunk)  # type: ignore[arg-type]
            following[kind][chunk] += 1

    for _ in range(2 * (stages - stage) - 1):
        yield from run("F0")
    for _ in range(stage):
        yield from run("F1", "F0")
    for _ in range(stages - stage):
        yield from run("F1", "I1", "W1")
    forwards = following["F"]
    while forwards[1] < microbatches:
        if forwards[0] < microbatches:
            yield from run("F0")
        yield from run("I0", "W0", "F1", "I1", "W1")
    for _ in range(stage):
        yield from run("I0", "I1")
    for _ in range(stages - stage):
        yield from run("I0", "W0")
    for chunk in (1, 0):
        while following["W"][chunk] < following["I"][chunk]:
            yield from run(f"W{chunk}")
