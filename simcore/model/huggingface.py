"""Reads a Hugging Face `config.json` as a model.

Each kind of `model_type` is one entry of `_KINDS`: which of its fields are sizes, and which do not change
the cost of a step. Every other field is reported, so that none is ignored silently.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from simcore.diagnostics import Diagnostic, InputError, UsageError, printable
from simcore.model.sizes import Mla, Model, Moe, check_model
from simcore.records import NamedTuple

# Fields that do not change a step's cost: names, tokens, initial weights, how text is generated.
_FREE_FIELDS = frozenset((
    "_name_or_path", "architectures", "auto_map", "bos_token_id", "eos_token_id", "pad_token_id",
    "cls_token_id", "sep_token_id", "decoder_start_token_id", "transformers_version", "use_cache",
    "torch_dtype", "dtype", "initializer_range", "rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon",
    "norm_eps", "hidden_act", "activation_function", "rope_theta", "rope_scaling", "rope_parameters",
    "rotary_emb_base", "rotary_pct", "rope_interleave", "output_router_logits", "router_aux_loss_coef",
    "router_jitter_noise", "aux_loss_alpha", "seq_aux", "scoring_func", "topk_method", "norm_topk_prob",
    "routed_scaling_factor", "n_group", "topk_group", "pretraining_tp", "task_specific_params",
    "gradient_checkpointing", "resid_pdrop", "embd_pdrop", "attn_pdrop", "attention_dropout",
    "hidden_dropout", "classifier_dropout", "summary_activation", "summary_first_dropout",
    "summary_proj_to_labels", "summary_type", "summary_use_proj", "scale_attn_weights",
    "scale_attn_by_inverse_layer_idx", "reorder_and_upcast_attn", "model_type", "max_window_layers",
    "ep_size", "moe_layer_freq", "use_parallel_residual", "attention_bias", "mlp_bias", "rms_norm",
    "tie_word_embeddings", "use_sliding_window", "initializer_factor", "n_positions", "n_ctx",
    "max_position_embeddings", "quantization_config", "head_dim", "num_key_value_heads", "id2label",
    "label2id", "num_labels", "unsloth_fixed", "unsloth_version", "layer_types",
))  # fmt: skip
# Field of something that is no part of the step, and is reported -> why it is not priced.
_UNPRICED_FIELDS = {
    "sliding_window": "attention is priced over the whole sequence",
    "num_nextn_predict_layers": "the layers of multi-token prediction are left out",
}


class _Fields:
    """The values of a configuration, each read once: a field that is never read is unknown."""

    def __init__(self, path: str, table: dict[str, Any]) -> None:
        self.path = path
        self.table = table
        self.used: set[str] = set()

    def count(self, *names: str, default: int | None = None) -> int:
        """Returns the whole number under the first of the names that the file has. Raises InputError for any
        other value.
        """
        for name in names:
            value = self.table.get(name)
            self.used.add(name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise refusal(self.path, f"{name}: found {quote_value(value)}, expected a whole number")
            return value
        if default is None:
            raise refusal(
                self.path, f"found no {' or '.join(names)}, expected a configuration with its sizes"
            )
        return default

    def truth(self, name: str, default: bool) -> bool:
        """Returns whether a field is true."""
        value = self.table.get(name)
        self.used.add(name)
        return default if value is None else bool(value)

    def dropout(self, *names: str) -> bool:
        """Returns whether any of the fields is a rate above 0."""
        self.used.update(names)
        rates = [self.table.get(name) for name in names]
        return any(isinstance(rate, (int, float)) and rate > 0 for rate in rates)


def _llama(fields: _Fields, bias: str = "none", qk_norm: bool = False) -> Model:
    hidden, heads = fields.count("hidden_size"), fields.count("num_attention_heads")
    if fields.truth("attention_bias", False):
        bias = "all"
    return Model(
        "",
        fields.count("num_hidden_layers"),
        hidden,
        heads,
        fields.count("num_key_value_heads", default=heads),
        fields.count("head_dim", default=hidden // max(heads, 1)),
        fields.count("intermediate_size"),
        True,
        fields.count("vocab_size"),
        fields.count("max_position_embeddings", default=2048),
        tied_embeddings=fields.truth("tie_word_embeddings", False),
        dropout=fields.dropout("attention_dropout"),
        bias=bias,
        qk_norm=qk_norm,
    )


def _with_moe(model: Model, moe: Moe) -> Model:
    from simcore.records import replace

    return replace(model, moe=moe)


def _mixtral(fields: _Fields) -> Model:
    model = _llama(fields)
    return _with_moe(
        model, Moe(fields.count("num_local_experts"), fields.count("num_experts_per_tok"), model.ffn)
    )


def _qwen_moe(fields: _Fields, bias: str, qk_norm: bool) -> Model:
    model, ffn = _llama(fields, bias, qk_norm), fields.count("moe_intermediate_size")
    shared = fields.count("shared_expert_intermediate_size", default=0)
    step = fields.count("decoder_sparse_step", default=1)
    if step != 1 or fields.table.get("mlp_only_layers"):
        raise refusal(
            fields.path,
            f"decoder_sparse_step {step}, mlp_only_layers "
            f"{quote_value(fields.table.get('mlp_only_layers'))}: "
            "expected 1 and none, dense layers come first or not at all",
        )
    fields.used.add("mlp_only_layers")
    moe = Moe(fields.count("num_experts"), fields.count("num_experts_per_tok"), ffn, shared // max(ffn, 1))
    return _with_moe(model, moe)


def _deepseek(fields: _Fields) -> Model:
    from simcore.records import replace

    model = _llama(fields)
    frequency = fields.count("moe_layer_freq", default=1)
    if frequency != 1:
        raise refusal(
            fields.path,
            f"moe_layer_freq: found {frequency}, expected 1: dense layers come first or not at all",
        )
    mla = Mla(
        fields.count("q_lora_rank", default=0),
        fields.count("kv_lora_rank"),
        fields.count("qk_nope_head_dim"),
        fields.count("qk_rope_head_dim"),
        fields.count("v_head_dim"),
    )
    moe = Moe(
        fields.count("n_routed_experts"),
        fields.count("num_experts_per_tok"),
        fields.count("moe_intermediate_size"),
        fields.count("n_shared_experts", default=0),
        fields.count("first_k_dense_replace", default=0),
    )
    return replace(model, moe=moe, mla=mla, kv_heads=model.heads, head_dim=mla.v_head_dim)


def _gpt2(fields: _Fields) -> Model:
    hidden, heads = fields.count("n_embd"), fields.count("n_head")
    positions = fields.count("n_positions", "n_ctx", default=1024)
    return Model(
        "", fields.count("n_layer"), hidden, heads, heads, hidden // max(heads, 1),
        fields.count("n_inner", default=4 * hidden), False, fields.count("vocab_size"), positions,
        tied_embeddings=fields.truth("tie_word_embeddings", True),
        dropout=fields.dropout("resid_pdrop", "embd_pdrop", "attn_pdrop"),
        bias="all", norm_bias=True, positions=positions,
    )  # fmt: skip


def _gpt_neox(fields: _Fields) -> Model:
    hidden, heads = fields.count("hidden_size"), fields.count("num_attention_heads")
    return Model(
        "", fields.count("num_hidden_layers"), hidden, heads, heads, hidden // max(heads, 1),
        fields.count("intermediate_size"), False, fields.count("vocab_size"),
        fields.count("max_position_embeddings", default=2048),
        tied_embeddings=fields.truth("tie_word_embeddings", False),
        dropout=fields.dropout("attention_dropout", "hidden_dropout"), bias="all", norm_bias=True,
    )  # fmt: skip


class _Kind(NamedTuple):
    read: Callable[[_Fields], Model]


_KINDS: dict[str, _Kind] = {
    "llama": _Kind(_llama),
    "mistral": _Kind(_llama),
    "mixtral": _Kind(_mixtral),
    "qwen2": _Kind(lambda fields: _llama(fields, "qkv")),
    "qwen3": _Kind(lambda fields: _llama(fields, qk_norm=True)),
    "qwen2_moe": _Kind(lambda fields: _qwen_moe(fields, "qkv", False)),
    "qwen3_moe": _Kind(lambda fields: _qwen_moe(fields, "none", True)),
    "deepseek_v2": _Kind(_deepseek),
    "deepseek_v3": _Kind(_deepseek),
    "gpt2": _Kind(_gpt2),
    "gpt_neox": _Kind(_gpt_neox),
}


def read_config(path: str, data: bytes) -> tuple[Model, tuple[Diagnostic, ...]]:
    """Returns the model of a `config.json`, and notes on fields that are unknown or not priced.

    path: for messages; its directory names the model. Raises InputError for another kind of file.
    """
    import json

    try:
        table = json.loads(data)
    except (ValueError, RecursionError) as error:
        location = getattr(error, "lineno", 1), getattr(error, "colno", 1)
        message = f"this is not JSON: {printable(str(error), 80)}"
        raise InputError(Diagnostic("error", "model-file", message, path, *location)) from None
    if not isinstance(table, dict):
        raise refusal(path, "found no JSON object, expected the configuration of a model")
    kind_name = table.get("model_type")
    kind = _KINDS.get(kind_name) if isinstance(kind_name, str) else None
    if kind is None:
        raise refusal(
            path, f"model_type: found {quote_value(kind_name)}, expected one of {', '.join(_KINDS)}"
        )
    fields = _Fields(path, table)
    model = kind.read(fields)
    from simcore.records import replace

    try:
        model = check_model(replace(model, name=name_of(path)))
    except UsageError as error:
        raise refusal(path, str(error)) from None
    return model, tuple(_ignored_field_notes(path, table, fields.used))


def _ignored_field_notes(path: str, table: dict[str, Any], used: Iterable[str]) -> list[Diagnostic]:
    diagnostics = []
    for name, why in _UNPRICED_FIELDS.items():
        if table.get(name):
            message = f"{name}: found {quote_value(table[name])}; {why}"
            diagnostics.append(Diagnostic("note", "model-field-unpriced", message, path))
    unknown = [
        name
        for name in table
        if name not in used and name not in _FREE_FIELDS and name not in _UNPRICED_FIELDS
    ]
    if unknown:
        names = ", ".join(printable(name, 40) for name in unknown[:8])
        more = f" and {len(unknown) - 8} more" if len(unknown) > 8 else ""
        message = f"found fields that are not known here: {names}{more}; they change nothing"
        diagnostics.append(Diagnostic("note", "model-field-unknown", message, path))
    return diagnostics


def name_of(path: str) -> str:
    """Returns the name of a model in a file: the file without its ending, of a `config.json` its
    directory.
    """
    import os

    base, _ = os.path.splitext(os.path.basename(path))
    folder = os.path.basename(os.path.dirname(os.path.abspath(path)))
    return (folder if base == "config" and folder else base) or "model"


def refusal(path: str, message: str, location: tuple[int, int] | None = None) -> InputError:
    """Returns the error for a model's file."""
    line, column = location or (None, None)
    return InputError(Diagnostic("error", "model-file", message, path, line, column))


def quote_value(value: object) -> str:
    """Returns a value of a file, as a message quotes it."""
    return f"`{printable(str(value), 40)}`"
