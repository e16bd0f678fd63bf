"""The options of ZeRO: what is shared out among replicas, and what is sent beside compute for it."""

from __future__ import annotations

from simcore.diagnostics import UsageError
from simcore.model.engines import ENGINES
from simcore.model.options.request import TrainingRequest, nearest_words
from simcore.model.training import Training
from simcore.parameters import flag_of
from simcore.records import replace
from simcore.workload.model import ModelParameters

# Pipelines that Megatron runs; its FSDP refuses them.
MEGATRON_SCHEDULES = ("1f1b", "interleaved")


def add_sharding(request: TrainingRequest, training: Training) -> Training:
    """Returns the training with what its level of ZeRO shares out, and sends beside compute. Raises
    `UsageError` for options that do not go with the level.
    """
    zero = training.zero
    for field, least in (("prefetch", 3), ("reshard_after_forward", 3), ("shard_size", 1)):
        if getattr(request.parameters, field) is not None and zero < least:
            levels = "--zero 3" if least == 3 else "--zero 1, 2 or 3"
            what = "weights" if least == 3 else "optimizer states"
            raise UsageError(
                f"{flag_of(field).option} is of {what} that are shared out: found --zero {zero}, {levels} "
                "would fit"
            )
    if zero < 2:
        training = replace(training, shard_size=_shard_size(training, request.parameters))
        return _add_overlaps(request, training)
    _check_level(training, request.parameters)
    training = replace(training, shard_size=_shard_size(training, request.parameters))
    if zero < 3:
        return training
    training = replace(training, prefetch=int(request.choose("prefetch")))
    return replace(training, reshard=request.choose("reshard_after_forward") == "on")


def _add_overlaps(request: TrainingRequest, training: Training) -> Training:
    """Returns a training of ZeRO 0 or 1 with the buckets that it sends beside compute. Raises `UsageError`
    for buckets where nothing is sent so.
    """
    parameters, data = request.parameters, training.dp * training.cp
    size = parameters.bucket_size
    if not (parameters.overlap_grad_reduce or parameters.overlap_param_gather):
        if size is not None:
            raise UsageError(
                "--bucket-size is of what is sent beside compute: with --overlap-grad-reduce or "
                "--overlap-param-gather it would fit"
            )
        return training
    if size is None:
        size = ENGINES[training.engine].bucket(data)
        if data > 1:
            request.assume("bucket_size", size, f"as {training.engine} of {data} replicas")
    return replace(
        training, bucket_size=size, overlaps_gradients=parameters.overlap_grad_reduce,
        overlaps_weights=parameters.overlap_param_gather,
    )  # fmt: skip


def _check_level(training: Training, parameters: ModelParameters) -> None:
    """Raises `UsageError` for what does not go with ZeRO 2 or 3."""
    zero = training.zero
    if parameters.bucket_size is not None:
        raise UsageError(
            f"--bucket-size: ZeRO {zero} sends a layer's gradients at once; --zero 1 would fit, or no "
            "--bucket-size"
        )
    if parameters.overlap_grad_reduce:
        raise UsageError(
            f"--overlap-grad-reduce: ZeRO {zero} reduces gradients beside each backward; without it, or with "
            "--zero 1, it would fit"
        )
    if zero == 3 and parameters.overlap_param_gather:
        raise UsageError(
            "--overlap-param-gather: ZeRO 3 gathers weights before each forward; --prefetch says how many "
            "units ahead, or --zero 1 would fit"
        )
    if training.predictions:
        raise UsageError(
            f"--pipeline-layout with m and --zero {zero}: layers that predict further tokens (MTP) are "
            "Megatron's; --zero 0 or 1 would fit, or no m"
        )
    engine = ENGINES[training.engine]
    is_refused = engine.holds != "fsdp" or (
        parameters.schedule in (None, *MEGATRON_SCHEDULES) and not engine.pipeline_shards
    )
    if zero == 3 and training.pp > 1 and is_refused:
        raise UsageError(
            f"--zero 3 with pp {training.pp}: Megatron's FSDP refuses a pipeline, as does DeepSpeed's; "
            "--zero 1, --pp 1, --engine-preset torchtitan, or a schedule of PyTorch's (--schedule gpipe, "
            "looped-bfs) would fit"
        )


def _shard_size(training: Training, parameters: ModelParameters) -> int:
    """Returns the ranks that share out what ZeRO shares out, 0 for all. Raises `UsageError` where they do not
    divide the replicas.
    """
    size, data = parameters.shard_size or 0, training.dp * training.cp
    if size:
        if training.ep > 1:
            raise UsageError(
                f"--shard-size {size} with ep {training.ep}: experts are shared out over their own replicas; "
                "--ep 1 would fit, or no --shard-size"
            )
        if data % size or size == 1:
            fitting = [ranks for ranks in range(2, data + 1) if data % ranks == 0]
            if not fitting or size == 1:
                raise UsageError(
                    f"--shard-size {size}: nothing is shared out; "
                    + (
                        f"{nearest_words(fitting, size)} would fit, or --zero 0"
                        if fitting
                        else "--zero 0 would fit"
                    )
                )
            raise UsageError(
                f"--shard-size {size} does not divide dp x cp {data}: {nearest_words(fitting, size)} "
                "would fit"
            )
    return size if size < data else 0
