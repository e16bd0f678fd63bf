"""An inference step of a model: one pass forward, of prompts (`--prefill`) or of the next token of sequences
(`--decode`), with the cache of keys and values that it reads or leaves (docs/inference.md).

What follows from the model are the bytes of weights and of the cache, FLOPs, and what ranks send; what is
assumed of kernels is in the notes of the run.
"""

from __future__ import annotations

from simcore.diagnostics import UsageError, printable
from simcore.names import FORWARD_ONLY
from simcore.parameters import flag_of
from simcore.records import Struct, replace
from simcore.units import plural
from simcore.workload.model import ModelParameters

# Bytes of a number of the cache.
KV_BYTES = {"bf16": 2, "fp8": 1}
# Parameters that a pass forward has no use for.
_OF_TRAINING = (
    "virtual_stages", "pipeline_layout", "overlap_fwd_bwd", "overlap_grad_reduce", "overlap_param_gather",
    "overlap_tp", "seq_imbalance", "flash", "recompute", "recompute_layers", "recompute_rows", "offload",
    "offload_layers", "zero", "prefetch", "reshard_after_forward", "shard_size", "bucket_size", "grad_dtype",
    "engine_preset", "compile", "pad_to_capacity", "as_aicb", "aicb_args",
)  # fmt: skip
# What decode has beside: one token of a sequence is not divided, and BATCH says how many there are.
_NOT_OF_DECODE = ("sequence_parallel", "global_batch", "cp_comm_type", "cp_inner")


class InferenceStep(Struct, frozen=True):
    """What one pass forward does."""

    context: int
    """Tokens of each sequence that are in the cache before; 0 for prompts."""
    kv_bytes: int
    """Bytes of a number of the cache."""

    @property
    def kv_dtype(self) -> str:
        """The type of the cache."""
        return next(name for name, size in KV_BYTES.items() if size == self.kv_bytes)

    @property
    def decodes(self) -> bool:
        """Whether each sequence gets one token, not all of its prompt."""
        return self.context > 0

    @property
    def name(self) -> str:
        """`decode` or `prefill`."""
        return "decode" if self.decodes else "prefill"


def resolve_step(parameters: ModelParameters) -> tuple[ModelParameters, InferenceStep | None]:
    """Returns the parameters of a pass forward as those of a training without what follows it, and the step;
    None of training.

    Raises `UsageError` naming the flag that does not go with it.
    """
    prefill, decode, context = parameters.prefill, parameters.decode, parameters.context
    if prefill is None and decode is None:
        for field, value in (("context", context), ("kv_dtype", parameters.kv_dtype)):
            if value is not None:
                fit = "--decode" if field == "context" else "--prefill or --decode"
                raise UsageError(f"{flag_of(field).option} {value} is of inference: with {fit} it would fit")
        return parameters, None
    if prefill is not None and decode is not None:
        raise UsageError("--prefill with --decode: a step does one of the two")
    option = "--prefill" if decode is None else "--decode"
    _refuse_training(parameters, option, decode is not None)
    if parameters.seq is not None:
        other = "--prefill" if decode is None else "--context"
        raise UsageError(f"--seq {parameters.seq} with {option}: {other} has the tokens of a sequence")
    if decode is None and context is not None:
        raise UsageError(f"--context {context} with --prefill: prompts begin without a cache; with --decode "
                         "it would fit")  # fmt: skip
    if decode is not None and context is None:
        raise UsageError(f"--decode {decode} needs --context, the tokens of a sequence in its cache")
    kv_dtype = parameters.kv_dtype or "bf16"
    if kv_dtype not in KV_BYTES:
        expected = ", ".join(KV_BYTES)
        raise UsageError(f"--kv-dtype {printable(kv_dtype, 40)}: one of {expected} is expected")
    size, count = parameters.microbatch_size, parameters.microbatches
    if decode is not None:
        size, count = _divide_batch(decode, size, count)
    elif count is None and parameters.global_batch is None:
        count = 1
    step = InferenceStep(context or 0, KV_BYTES[kv_dtype])
    forward = replace(
        parameters, prefill=None, decode=None, context=None, kv_dtype=None, schedule=FORWARD_ONLY,
        seq=prefill or 1, microbatch_size=size, microbatches=count, flash="on", recompute="none", zero="0",
        grad_dtype="bf16", engine_preset="megatron",
        sequence_parallel=parameters.sequence_parallel or "off", precision=parameters.precision or "bf16",
        cp_comm_type=parameters.cp_comm_type if decode is None else "p2p",
    )  # fmt: skip
    return forward, step


def training_fields(decodes: bool) -> tuple[str, ...]:
    """Returns the parameters that a pass forward has no use for; in place of `seq` it has others."""
    return (*_OF_TRAINING, *(_NOT_OF_DECODE if decodes else ()))


def _refuse_training(parameters: ModelParameters, option: str, decodes: bool) -> None:
    for field in training_fields(decodes):
        if getattr(parameters, field) != flag_of(field).default:
            raise UsageError(f"{flag_of(field).option} with {option}: found an inference step, which has no "
                             f"use for it; without {flag_of(field).option} it would fit")  # fmt: skip
    if parameters.schedule not in (None, FORWARD_ONLY):
        raise UsageError(f"--schedule {printable(parameters.schedule, 60)} with {option}: an inference step "
                         f"has forwards alone; {FORWARD_ONLY} would fit")  # fmt: skip


def _divide_batch(batch: int, size: int | None, count: int | None) -> tuple[int, int]:
    """Returns (sequences of a micro-batch, micro-batches) of the sequences of a replica."""
    if size is None:
        size = batch // (count or 1) or 1
    if count is None:
        count = batch // size or 1
    if size * count != batch:
        raise UsageError(f"--decode {batch}: {plural(count, 'micro-batch')} of {size} are {size * count}; "
                         f"--decode {size * count} would fit")  # fmt: skip
    return size, count
