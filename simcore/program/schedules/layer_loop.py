"""`layer-loop`: one NPU's program without a pipeline, as SimAI runs it."""

from simcore.program.stage_builder import StageBuilder


def layer_loop(stage: StageBuilder) -> None:
    """Forward over all rows of the file, then backward in reverse, every row once."""
    stage.loop_over_rows()
