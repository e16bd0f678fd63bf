"""AICB's own arguments, as its scripts and README give them."""

from __future__ import annotations

import shlex
from typing import Any

from simcore.diagnostics import Diagnostic, UsageError, printable
from simcore.model.aicb import NEWEST, VERSIONS, AicbConfig
from simcore.model.sizes import Mla
from simcore.units import is_whole

# Argument -> AICB's default.
_COUNTS = {
    "world_size": 1, "tensor_model_parallel_size": 1, "pipeline_model_parallel": 1, "global_batch": 4,
    "micro_batch": 1, "num_layers": 24, "seq_length": 2048, "hidden_size": 1024, "vocab_size": 32000,
    "num_attention_heads": 0, "ffn_hidden_size": 0, "expert_model_parallel_size": 1, "num_experts": 1,
    "moe_router_topk": 1, "n_shared_expert": 2, "n_dense_layers": 3, "q_lora_rank": 1536,
    "kv_lora_rank": 512, "qk_nope_dim": 128, "qk_rope_dim": 64, "v_head_dim": 128,
    "make_vocab_size_divisible_by": 128,
}  # fmt: skip
_SWITCHES = (
    "enable_sequence_parallel", "swiglu", "add_bias_linear", "recompute_activations", "moe_enable",
    "aiob_enable",
)  # fmt: skip
# Field of `AicbConfig` -> argument, of arguments that are taken unchanged.
_FIELDS = {
    "vocab": "vocab_size", "seq": "seq_length", "microbatch_size": "micro_batch",
    "global_batch": "global_batch", "world": "world_size", "tp": "tensor_model_parallel_size",
    "pp": "pipeline_model_parallel", "ep": "expert_model_parallel_size",
    "experts_per_token": "moe_router_topk", "shared_experts": "n_shared_expert",
    "dense_layers": "n_dense_layers", "vocab_step": "make_vocab_size_divisible_by",
}  # fmt: skip
_SWITCH_FIELDS = {
    "sequence_parallel": "enable_sequence_parallel", "recompute": "recompute_activations",
    "bias": "add_bias_linear",
}  # fmt: skip
# `aicb_version` is wltui's: it chooses the period whose rows are written.
_WORDS = ("frame", "comp_filepath", "model_name", "aicb_version")
# Arguments that change no byte of the file that AICB writes.
_WITHOUT_EFFECT = frozenset((
    "use_distributed_optimizer", "use_flash_attn", "context_parallel_size", "gpu_type", "epoch_num",
    "overlap_version", "max_position_embeddings", "moe_grouped_gemm", "computation_enable", "dtype",
    "enable_visual", "workload_only", "pp_rank", "overlap_grad_reduce", "gated_linear_unit",
    "bias_gelu_fusion", "openai_gelu", "onnx_safe", "squared_relu", "activation_func", "result_dir",
    "stage", "amp_enabled", "reduce_bucket_size", "allgather_bucket_size", "contiguous_gradients",
    "param_persistence_threshold", "model_persistence_threshold", "max_live_parameters",
    "prefetch_bucket_size",
))  # fmt: skip
_FRAMES = ("Megatron", "DeepSeek")
_MOST = 1 << 40
# More is a mistyped number: a file of more rows is not simulated.
_MOST_ROWS = 10_000_000


class AicbArguments:
    """Parsed arguments of AICB.

    config: sizes and degrees. aiob: whether cells are measured. comp_filepath: the file of times.
    diagnostics: which arguments are unknown.
    """

    def __init__(self, text: str) -> None:
        try:
            words = shlex.split(text)
        except ValueError as error:
            raise UsageError(f"--aicb-args {printable(text, 60)}: {error}") from None
        values = _values(words)
        unknown = [name for name in values if name not in (*_COUNTS, *_SWITCHES, *_WORDS, *_WITHOUT_EFFECT)]
        self.diagnostics: tuple[Diagnostic, ...] = ()
        if unknown:
            names = ", ".join(f"--{printable(name, 40)}" for name in unknown)
            message = f"--aicb-args: {names}: not known as arguments of AICB; ignored"
            self.diagnostics = (Diagnostic("warning", "aicb-argument", message, "AICB arguments"),)
        self.name = values.get("model_name") or "model"
        self.comp_filepath = values.get("comp_filepath")
        self.aiob = "aiob_enable" in values
        self.config = _config(values)


def _values(words: list[str]) -> dict[str, str | None]:
    """Returns {argument without its dashes, `-` as `_`: its value}, None for a switch; the last one
    counts.
    """
    while words and not words[0].startswith("--"):
        words = words[1:]
    values: dict[str, str | None] = {}
    index = 0
    while index < len(words):
        word = words[index]
        if not word.startswith("--"):
            raise UsageError(
                f"--aicb-args: found {printable(word, 60)}, expected an argument like --num_layers"
            )
        name, equals, value = word.lstrip("-").partition("=")
        name = name.replace("-", "_")
        index += 1
        if equals:
            values[name] = value
        elif name not in _SWITCHES and index < len(words) and not words[index].startswith("--"):
            values[name] = words[index]
            index += 1
        else:
            values[name] = None
    return values


def _config(values: dict[str, str | None]) -> AicbConfig:
    def count(name: str) -> int:
        text = values.get(name)
        if name not in values:
            return _COUNTS[name]
        if text is None or not is_whole(text, 13) or int(text) > _MOST:
            quoted = "nothing" if text is None else printable(text, 40)
            raise UsageError(f"--aicb-args --{name}: found {quoted}, expected a whole number")
        return int(text)

    for name in ("world_size", "tensor_model_parallel_size", "pipeline_model_parallel", "micro_batch",
                 "num_layers", "hidden_size", "seq_length", "vocab_size", "expert_model_parallel_size",
                 "make_vocab_size_divisible_by"):  # fmt: skip
        if count(name) == 0:
            raise UsageError(f"--aicb-args --{name}: found 0, expected 1 or more")
    frame = values.get("frame", "Megatron")
    if frame not in _FRAMES:
        raise UsageError(
            f"--aicb-args --frame: found {printable(str(frame), 40)}, expected {' or '.join(_FRAMES)}"
        )
    hidden = count("hidden_size")
    layers = count("num_layers")
    ffn = count("ffn_hidden_size")
    if not ffn:
        ffn = int((4 * hidden * 2 / 3) / 64) * 64 if "swiglu" in values else 4 * hidden
    mla = None
    if frame == "DeepSeek":
        mla = Mla(*map(count, ("q_lora_rank", "kv_lora_rank", "qk_nope_dim", "qk_rope_dim", "v_head_dim")))
    counts: dict[str, Any] = {field: count(name) for field, name in _FIELDS.items()}
    switches = {field: name in values for field, name in _SWITCH_FIELDS.items()}
    experts = count("num_experts") if "moe_enable" in values else None
    heads = count("num_attention_heads") or layers
    version = values.get("aicb_version", NEWEST)
    if version not in VERSIONS:
        printable_version = printable(str(version), 40)
        raise UsageError(
            f"--aicb-args --aicb_version: found {printable_version}, expected one of {', '.join(VERSIONS)}"
        )
    config = AicbConfig(
        **counts,
        version=version,
        **switches,
        layers=layers,
        hidden=hidden,
        heads=heads,
        ffn=ffn,
        experts=experts,
        mla=mla,
    )
    check_config(config)
    return config


def check_config(config: AicbConfig) -> None:
    """Raises `UsageError` for configs that AICB itself refuses, with what would fit, and for files
    too long.
    """
    ranks = config.tp * config.pp
    if config.world % ranks:
        below = config.world - config.world % ranks
        near = f"{below} or {below + ranks}" if below else str(ranks)
        raise UsageError(
            f"world {config.world} is not a multiple of tp {config.tp} x pp {config.pp} = {ranks}: "
            f"{near} would fit"
        )
    if config.experts is not None and not config.sequence_parallel:
        raise UsageError(
            "AICB has experts with sequence parallelism alone: --enable_sequence_parallel would fit"
        )
    if config.ep > 1 and (config.experts or 1) % config.ep:
        raise UsageError(f"ep {config.ep} does not divide the {config.experts or 1} experts")
    rows = config.microbatches * (8 * config.stage_layers + 4)
    if rows > _MOST_ROWS:
        raise UsageError(
            f"{config.microbatches} micro-batches of {config.stage_layers} layers are about {rows} rows: "
            f"at most {_MOST_ROWS} are written"
        )
