"""The options of activations: what runs forward again, and what is offloaded to the host."""

from __future__ import annotations

from simcore.diagnostics import UsageError, did_you_mean, printable
from simcore.model.engines import ENGINES
from simcore.model.pipeline_layers import is_count
from simcore.model.training import ROW_KINDS, Training
from simcore.records import replace
from simcore.workload.model import ModelParameters

# Megatron-LM's words for them.
_ROW_ALIASES = {"core_attn": "attention", "layernorm": "norm"}
# Schedules whose backwards include weight gradients.
_FULL_BACKWARD_SCHEDULES = ("1f1b", "interleaved", "gpipe", "looped-bfs", "breadth-first")


def add_activations(training: Training, parameters: ModelParameters) -> Training:
    """Returns the training with what it does about the memory of activations. Raises `UsageError` for options
    that do not fit.
    """
    training = replace(training, recompute_rows=_recomputed_rows(training, parameters))
    training = replace(training, recompute_layers=_recomputed_layers(training, parameters))
    training = replace(training, offload=_offload_rate(training, parameters))
    return replace(training, offload_layers=_offloaded_layers(training, parameters))


def _recomputed_rows(training: Training, parameters: ModelParameters) -> frozenset[str]:
    """Returns the kinds of rows that run again. Raises `UsageError` for other words, and with whole
    layers.
    """
    text = parameters.recompute_rows
    names: set[str] = set()
    if training.recompute == "selective":
        # torchtitan keeps attention's output, and every second product of a layer.
        names = {"mlp_act", "norm"} if ENGINES[training.engine].selective_by_op else {"attention"}
    if text is None:
        return frozenset(names)
    words = [_ROW_ALIASES.get(word.strip(), word.strip()) for word in text.split(",")]
    for word in words:
        if word not in ROW_KINDS:
            raise UsageError(
                f"--recompute-rows {printable(text, 60)}: found {printable(word, 40) or 'nothing'}, expected "
                f"words of {', '.join(ROW_KINDS)}{did_you_mean(word, ROW_KINDS)}"
            )
    if "moe_act" in words and training.model.moe is None:
        raise UsageError(
            f"--recompute-rows moe_act: {printable(training.model.name, 40)} has no experts; mlp_act would "
            "fit"
        )
    if "mla_up_proj" in words:
        words_there = f"--recompute-rows mla_up_proj: {printable(training.model.name, 40)}"
        if training.model.mla is None:
            raise UsageError(f"{words_there} has no latent attention; attention would fit")
        if ENGINES[training.engine].selective_by_op:
            raise UsageError(
                f"{words_there} under {training.engine}, which runs every second product again; "
                "--engine-preset megatron would fit"
            )
    if training.recompute == "full":
        raise UsageError(
            f"--recompute-rows {printable(text, 60)}: --recompute full runs whole layers again; --recompute "
            "none or selective would fit, or no --recompute-rows"
        )
    return frozenset(names | set(words))


def _recomputed_layers(training: Training, parameters: ModelParameters) -> tuple[int, int]:
    """Returns which layers run again, as `Training.recompute_layers`. Raises `UsageError` for other words,
    and without whole layers.
    """
    text = parameters.recompute_layers
    if text is None:
        return 0, 0
    words = f"--recompute-layers {printable(text, 40)}"
    if training.recompute != "full":
        raise UsageError(
            f"{words}: --recompute {training.recompute} runs no whole layer again; --recompute full would fit"
        )
    if parameters.offload is not None:
        raise UsageError(
            f"{words} with --offload: what is offloaded would differ by layer; one of the two would fit"
        )
    count, slash, period = text.partition("/")
    most = max(training.position_layers)
    if not is_count(count) or (slash and not (is_count(period) and int(count) < int(period))):
        raise UsageError(f"{words}: expected layers of a virtual stage, like 4, or of every few, like 1/2")
    if not slash and int(count) > most:
        raise UsageError(f"{words}: a virtual stage has {most} layers; at most {most} would fit")
    return int(count), int(period or 0)


def _offload_rate(training: Training, parameters: ModelParameters) -> float:
    """Returns the GB/s of the link to the host. Raises `UsageError` for parameters that do not go with it."""
    rate = parameters.offload
    if rate is None:
        return 0.0
    name = parameters.schedule
    if name is not None and name not in _FULL_BACKWARD_SCHEDULES:
        raise UsageError(
            f"--offload with --schedule {printable(name, 40)}: what comes back would be held until its "
            f"weight gradients are made; {', '.join(_FULL_BACKWARD_SCHEDULES)} would fit"
        )
    if parameters.overlap_fwd_bwd:
        raise UsageError(
            "--offload with --overlap-fwd-bwd: two passes at once would share the link; one of the two "
            "would fit"
        )
    if parameters.expert_imbalance is not None:
        raise UsageError(
            "--offload with --expert-imbalance: ranks would send different sizes; one of the two would fit"
        )
    if min(training.position_layers) < 1 or max(training.position_layers) < 2:
        raise UsageError(
            f"--offload: found {min(training.position_layers)} layers in a chunk, whose last layer stays "
            f"until its backward; fewer stages than {training.pp}, or fewer virtual stages, would fit"
        )
    return rate


def _offloaded_layers(training: Training, parameters: ModelParameters) -> int:
    """Returns how many layers are offloaded, 0 for all but the last. Raises `UsageError` where there are not
    as many.
    """
    count, most = parameters.offload_layers, max(training.position_layers) - 1
    if count is None:
        return 0
    if parameters.offload is None:
        raise UsageError(f"--offload-layers {count}: nothing is offloaded; with --offload it would fit")
    if count > most:
        raise UsageError(
            f"--offload-layers {count}: a virtual stage has {most + 1} layers, and its last one stays; at "
            f"most {most} would fit"
        )
    return count
