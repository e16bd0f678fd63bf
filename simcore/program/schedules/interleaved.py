"""`interleaved`: Megatron's 1F1B over virtual stages, each stage holding several chunks.

Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters, 2021, 2.2.2.
"""

from simcore.program.stage_builder import StageBuilder


def interleaved(stage: StageBuilder) -> None:
    """Groups of P micro-batches go through chunk after chunk; 2(P-1-s) + (V-1)P warm-up forwards."""
    stages, chunks = stage.stages, stage.plan.chunks
    total = stage.plan.microbatches * chunks
    warm_up = min(total, 2 * (stages - 1 - stage.stage) + (chunks - 1) * stages)

    def forward(step: int) -> None:
        group, place = divmod(step, stages * chunks)
        stage.forward(group * stages + place % stages, place // stages)

    def backward(step: int) -> None:
        group, place = divmod(step, stages * chunks)
        stage.backward(group * stages + place % stages, chunks - 1 - place // stages)

    stage.start_of_step()
    for step in range(warm_up):
        forward(step)
    for step in range(warm_up, total):
        forward(step)
        backward(step - warm_up)
    for step in range(total - warm_up, total):
        backward(step)
    stage.end_of_step()
