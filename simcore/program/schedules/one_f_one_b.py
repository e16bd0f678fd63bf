"""`1f1b`: Megatron's schedule without interleaving (PipeDream-flush)."""

from simcore.program.stage_builder import StageBuilder


def one_f_one_b(stage: StageBuilder) -> None:
    """Warm-up forwards, then one forward and one backward in turn, then the backwards left.

    Stage s warms up with min(M, P-1-s) forwards, so it never holds more than P-s
    micro-batches (Narayanan et al., Efficient Large-Scale Language Model Training, 2.2.1).
    """
    microbatches = stage.plan.microbatches
    warm_up = min(microbatches, stage.stages - 1 - stage.stage)
    stage.start_of_step()
    for microbatch in range(warm_up):
        stage.forward(microbatch)
    for microbatch in range(warm_up, microbatches):
        stage.forward(microbatch)
        stage.backward(microbatch - warm_up)
    for microbatch in range(microbatches - warm_up, microbatches):
        stage.backward(microbatch)
    stage.end_of_step()
