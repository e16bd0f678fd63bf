"""`1f1b`: Megatron's schedule without interleaving (PipeDream-flush)."""

from collections.abc import Iterator

from simcore.program.order import Action, Shape


def one_f_one_b(shape: Shape, stage: int) -> Iterator[Action]:
    """Warm-up forwards, then one forward and one backward in turn, then the backwards left.

    Stage s warms up with min(M, P-1-s) forwards, so it never holds more than P-s
    micro-batches (Narayanan et al., Efficient Large-Scale Language Model Training, 2.2.1).
    """
    microbatches = shape.microbatches
    warm_up = min(microbatches, shape.stages - 1 - stage)
    for microbatch in range(warm_up):
        yield Action("F", microbatch)
    for microbatch in range(warm_up, microbatches):
        yield Action("F", microbatch)
        yield Action("B", microbatch - warm_up)
    for microbatch in range(microbatches - warm_up, microbatches):
        yield Action("B", microbatch)
