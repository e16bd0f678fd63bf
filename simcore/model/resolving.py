"""The requested training of a model: explicit or assumed, its options in their order."""

from __future__ import annotations

from simcore.diagnostics import UsageError, did_you_mean, printable
from simcore.model.engines import DEFAULT_ENGINE, ENGINES
from simcore.model.inference import resolve_step
from simcore.model.options.activations import add_activations
from simcore.model.options.experts import add_experts
from simcore.model.options.layout import (
    find_batches,
    find_chunk_placement,
    find_head_ranks,
    find_pipeline,
    find_replicas,
    find_seq,
    find_sequence_parallel,
)
from simcore.model.options.request import TrainingRequest
from simcore.model.options.sharding import add_sharding
from simcore.model.packing import Packing, pack_documents
from simcore.model.sizes import Model
from simcore.model.training import Training
from simcore.names import GPU_NAMES
from simcore.records import replace
from simcore.workload.model import ModelParameters

DEFAULT_GPU = "h100"


def resolve_training(model: Model, parameters: ModelParameters) -> Training:
    """Returns the requested training of `model`.

    Raises `UsageError` for numbers that do not fit each other, with what would.
    """
    parameters, inference = resolve_step(parameters)
    request = TrainingRequest(model, parameters)
    seq, dp, pp = find_seq(request), find_replicas(request), parameters.pp or 1
    sequence_parallel = find_sequence_parallel(request, seq, inference)
    microbatch, batch = find_batches(request, dp)
    chunks, placement = find_chunk_placement(parameters, pp)
    pipeline = find_pipeline(request, chunks, placement, batch // (microbatch * dp))
    gpu = parameters.gpu
    if gpu is None:
        gpu = DEFAULT_GPU
        request.assume("gpu", gpu, f"of {', '.join(GPU_NAMES)}")
    choose = request.choose
    training = Training(
        model, parameters.tp or 1, parameters.cp or 1, dp, pp, parameters.ep or 1, chunks, pipeline.layers,
        microbatch, batch, seq, sequence_parallel, choose("flash") == "on", choose("recompute"),
        int(choose("zero")), 4 if choose("grad_dtype") == "fp32" else 2, choose("precision"),
        choose("pp_scatter") == "on", gpu, choose("cp_comm_type"), placement,
        position_predictions=pipeline.predictions, routes=parameters.routes, inference=inference,
    )  # fmt: skip
    training = replace(training, cp_heads=find_head_ranks(request, training))
    training = add_sharding(request, _add_engine(request, training))
    _check_overlap_tp(training, parameters)
    training = replace(training, overlap_tp=parameters.overlap_tp)
    training = add_experts(request, add_activations(training, parameters))
    training = replace(training, packing=_packing(training, parameters))
    return replace(training, diagnostics=tuple(request.diagnostics))


def _check_overlap_tp(training: Training, parameters: ModelParameters) -> None:
    """Raises `UsageError` where no tensor-parallel collective can be cut into pieces."""
    if not parameters.overlap_tp or (training.tp > 1 and training.sequence_parallel):
        return
    words = "tp 1" if training.tp == 1 else "--sequence-parallel off"
    fit = "--tp 2 or more with --sequence-parallel on" if training.tp == 1 else "--sequence-parallel on"
    raise UsageError(
        f"--overlap-tp cuts the gathers and reduce-scatters of sequence parallelism: found {words}; {fit} "
        "would fit"
    )


def _add_engine(request: TrainingRequest, training: Training) -> Training:
    """Returns the training with its trainer. Raises `UsageError` for --compile with one that has no
    torch.compile.
    """
    parameters = request.parameters
    name = parameters.engine_preset
    if name is None:
        name, why = DEFAULT_ENGINE, "as nothing that Megatron lacks is asked for"
        if training.zero >= 2:
            name, why = "fsdp", f"as ZeRO {training.zero} is PyTorch's"
        request.assume("engine_preset", name, why)
    elif name not in ENGINES:
        raise UsageError(
            f"--engine-preset {printable(name, 40)}: one of {', '.join(ENGINES)} is expected"
            f"{did_you_mean(name, tuple(ENGINES))}"
        )
    if ENGINES[name].scatters and parameters.pp_scatter is None and training.pp > 1 and training.tp > 1:
        request.assume("pp_scatter", "on", f"as {name}")
        training = replace(training, pp_scatter=True)
    if not ENGINES[name].compiled:
        if parameters.compile is not None:
            fitting = " or ".join(engine.name for engine in ENGINES.values() if engine.compiled)
            raise UsageError(f"--compile is of --engine-preset {fitting}: found {name}")
        return replace(training, engine=name)
    return replace(training, engine=name, compiled=request.choose("compile") == "on")


def _packing(training: Training, parameters: ModelParameters) -> Packing | None:
    """Returns the documents in the sequences. Raises `UsageError` where they change nothing."""
    if parameters.seq_imbalance is None:
        return None
    if not training.flash:
        raise UsageError(
            "--seq-imbalance with --flash off: attention computes all scores of a sequence, whatever its "
            "documents; --flash on would fit"
        )
    return pack_documents(
        parameters, training.dp, training.microbatches, training.microbatch_size, training.seq
    )
