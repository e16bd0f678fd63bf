"""`gpipe`: all forwards, then all backwards (Huang et al., GPipe, 2019)."""

from simcore.program.stage_builder import StageBuilder


def gpipe(stage: StageBuilder) -> None:
    """F of every micro-batch, then B of every micro-batch, both in ascending order."""
    microbatches = range(stage.plan.microbatches)
    stage.start_of_step()
    for microbatch in microbatches:
        stage.forward(microbatch)
    for microbatch in microbatches:
        stage.backward(microbatch)
    stage.end_of_step()
