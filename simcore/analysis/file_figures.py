"""The training behind a file that AICB wrote, once `--gpu` says on what: memory and throughput of its run are
counted with it, as a model's are.
"""

from __future__ import annotations

from simcore.model.gpu import Gpu, find_gpu
from simcore.model.training import Training
from simcore.names import TWO_WAY_SCHEDULES, V_SCHEDULES
from simcore.records import replace
from simcore.recovery.recovered import model_of
from simcore.recovery.rescale import known
from simcore.simulation import Simulation

# What no row says, in the words of a page.
ASSUMED = "ZeRO 1 and fp32 gradients as AICB has them, flash attention; embedding and loss on one stage each"


def training_of_file(simulation: Simulation) -> tuple[Training, Gpu] | None:
    """What the rows of a run were made for, as a training on a GPU; None where the run is of other degrees.

    The layers are those of the file, so without what pp loses. AICB shares out the optimizer's states (ZeRO
    1), adds gradients up in fp32 and recomputes attention's core; flash attention is assumed.
    """
    workload, layout, program = simulation.workload, simulation.layout, simulation.program
    config = known(workload).config
    name = simulation.parameters.gpu
    if config is None or name is None or not workload.has_compute:
        return None
    if (layout.tp, layout.pp, layout.ep) != (config.tp, config.pp, config.ep):
        return None
    chunks = program.virtual_stages
    schedule = simulation.parameters.schedule
    if config.stage_layers % chunks or not config.stage_layers or schedule in TWO_WAY_SCHEDULES:
        return None
    model = replace(model_of(config), layers=config.stage_layers * config.pp)
    batch = program.microbatches * config.microbatch_size * layout.dp
    gpu = find_gpu(name)
    training = Training(
        model, layout.tp, 1, layout.dp, layout.pp, layout.ep, chunks, (config.stage_layers,) * config.pp,
        config.microbatch_size, batch, config.seq, config.sequence_parallel, True,
        "selective" if config.recompute else "none", 1, 4, False, False, gpu.name,
        placement="v" if schedule in V_SCHEDULES else "loop",
    )  # fmt: skip
    return training, gpu
