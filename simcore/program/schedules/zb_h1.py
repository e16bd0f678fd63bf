"""`zb-h1`: 1F1B whose backward is split, the weight gradients filling the bubble.

Qi et al., Zero Bubble Pipeline Parallelism, 2024, schedule ZB-H1: the memory of 1F1B on its
first stage, on every stage.
"""

from simcore.program.stage_builder import StageBuilder


def zb_h1(stage: StageBuilder) -> None:
    """1F1B with B replaced by I (input gradients); after the k-th I, W of micro-batch k - s.

    s is the stage; the weight gradients that are left come last, in ascending order.
    """
    microbatches = stage.plan.microbatches
    warm_up = min(microbatches, stage.stages - 1 - stage.stage)
    done = 0

    def input_then_weight_grad(microbatch: int) -> None:
        nonlocal done
        stage.input_grad(microbatch)
        if microbatch >= stage.stage:
            stage.weight_grad(done)
            done += 1

    stage.start_of_step()
    for microbatch in range(warm_up):
        stage.forward(microbatch)
    for microbatch in range(warm_up, microbatches):
        stage.forward(microbatch)
        input_then_weight_grad(microbatch - warm_up)
    for microbatch in range(microbatches - warm_up, microbatches):
        input_then_weight_grad(microbatch)
    for microbatch in range(done, microbatches):
        stage.weight_grad(microbatch)
    stage.end_of_step()
