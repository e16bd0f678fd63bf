"""Reads the configuration of a model: Hugging Face's `config.json`, Meta's or Mistral's `params.json`,
DeepSeek's own, SimAI's and SimuMax's.

What a field means is in `fields.py`, what a family's files do not say in `families.py`, which layers are of
which kind in `mixed.py`, the parameters of a vision tower in `vision.py`.
"""

from __future__ import annotations

from typing import Any

from simcore.diagnostics import Diagnostic, InputError, UsageError, printable
from simcore.model.families import FAMILIES, NESTED, Family
from simcore.model.fields import Fields, merge_tables, quote_value, refusal
from simcore.model.mixed import lay_out
from simcore.model.mixers import Indexer
from simcore.model.sizes import Mla, Model, Moe, check_layers, check_model
from simcore.model.vision import ALWAYS, count_vision
from simcore.records import replace

# Where a configuration of several parts has its text model.
_TEXT = ("text_config", "llm_config", "language_config")
# Tables of a configuration whose fields are read as its own (DBRX).
_PARTS = ("attn_config", "ffn_config")
_SIZES_OF_PARTS = ("kv_n_heads", "ffn_hidden_size", "moe_num_experts", "moe_top_k")
# What a nested Llama leaves out (LLaVA 1.5): its class's defaults.
_NESTED_DEFAULTS = {
    "llama": {"hidden": 4096, "layers": 32, "heads": 32, "ffn": 11008, "vocab": 32000, "seq": 2048},
}
_WAYS_ON = (
    "two other ways: --model-map FILE says which family it is and what its fields mean, "
    "and wltui's own TOML has the sizes (`wltui models NAME --save FILE` writes one)"
)
# Tokens of a sequence in training, where a file has more positions: most pre-training runs at 4,096 or 8,192,
# and longer sequences are a phase at its end.
LONGEST_DEFAULT = 8192


def read_config(path: str, data: bytes, model_map: str | None = None) -> tuple[Model, tuple[Diagnostic, ...]]:
    """Returns the model of a configuration, and notes on fields that are unknown or not priced.

    path: for messages; its directory names the model. model_map: the file of `--model-map`. Raises InputError
    for another kind of file.
    """
    import json

    try:
        whole = json.loads(data)
    except (ValueError, RecursionError) as error:
        location = getattr(error, "lineno", 1), getattr(error, "colno", 1)
        message = f"this is not JSON: {printable(str(error), 80)}"
        raise InputError(Diagnostic("error", "model-file", message, path, *location)) from None
    if not isinstance(whole, dict):
        raise refusal(path, "found no JSON object, expected the configuration of a model")
    kind_name = None
    if model_map is not None:
        from simcore.model.model_map import map_fields

        whole, kind_name = map_fields(path, whole, model_map)
    table, nested = _text_table(whole)
    kind_name = kind_name or _kind_of(path, whole, table, nested)
    family = FAMILIES[kind_name]
    defaults = dict(family.defaults) | (_NESTED_DEFAULTS.get(kind_name, {}) if nested else {})
    fields = Fields(path, table, defaults)
    try:
        model = check_model(replace(_read(fields, family, kind_name), name=name_of(path)))
    except UsageError as error:
        raise refusal(path, str(error)) from None
    model = _with_vision(fields, whole, model, nested)
    if nested:
        fields.used.update(("model_type", nested))
    _note_unpriced(fields, model)
    fields.note_unknown()
    return model, tuple(fields.notes)


def _text_table(whole: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Returns (the fields of the text model, the name of the table that has them; "" where it is no
    other).
    """
    for name in _TEXT:
        nested = whole.get(name)
        if isinstance(nested, dict):
            outer: dict[str, Any] = {
                key: whole[key] for key in ("tie_word_embeddings", "quantization_config") if key in whole
            }
            # The whole has the last word on what its parts share.
            return merge_tables(nested, outer), name
    parts = [whole[name] for name in _PARTS if isinstance(whole.get(name), dict)]
    # Older files have the defaults of every class in each part.
    sizes = [{key: part[key] for key in _SIZES_OF_PARTS if key in part} for part in parts]
    plain = {key: value for key, value in whole.items() if key not in _PARTS}
    return merge_tables(*sizes, plain) if parts else whole, ""


def _kind_of(path: str, whole: dict[str, Any], table: dict[str, Any], nested: str) -> str:
    """Returns the family of a configuration. Raises InputError with what it is, where it is none."""
    names = [table.get("model_type"), whole.get("model_type")]
    for name in names:
        if isinstance(name, str):
            family = name if name in FAMILIES else NESTED.get(name, name.removesuffix("_text"))
            if family in FAMILIES:
                return family
    foreign = _foreign_kind(table)
    if foreign:
        return foreign
    encoder = _encoder_words(whole, table)
    name = table.get("model_type") or whole.get("model_type")
    if encoder:
        raise refusal(
            path,
            f"{quote_value(name)} is {encoder}: expected a decoder, a model that predicts the next token",
        )
    from difflib import get_close_matches

    subject = "found no model_type" if name is None else f"model_type: found {quote_value(name)}"
    near = get_close_matches(str(name), FAMILIES, 3, 0.6) or [*FAMILIES][:3]
    more = f"{', '.join(near)} and {len(FAMILIES) - len(near)} more (docs/models.md)"
    raise refusal(path, f"{subject}, expected one of {more}; {_WAYS_ON}")


def _foreign_kind(table: dict[str, Any]) -> str:
    """Returns the family of a configuration that is not Hugging Face's; "" for none."""
    if "head_num" in table and "layer_num" in table:
        return "simumax"
    if "num_layers" in table and "d_kv_c" in table:
        return "simai"
    if "dim" in table and "n_layers" in table and table.get("model_type") is None:
        if "o_lora_rank" in table:
            return "deepseek_ref"
        if "kv_lora_rank" in table:
            return "deepseek_v3"
        # Llama 4's has experts of its own way, Mistral's those of Mixtral.
        return "llama4_text" if "moe_args" in table else "meta"
    if "num_layers" in table and "ffn_hidden_size" in table and table.get("model_type") is None:
        return "megatron"
    return ""


def _architectures(whole: dict[str, Any]) -> str:
    """Returns the classes that a configuration names, one after another."""
    listed = whole.get("architectures")
    return " ".join(map(str, listed)) if isinstance(listed, list) else ""


def _encoder_words(whole: dict[str, Any], table: dict[str, Any]) -> str:
    """Returns what a configuration that is no decoder is, by what it has; "" where it may be one."""
    architectures = _architectures(whole)
    if whole.get("is_encoder_decoder") or any(
        name in table for name in ("num_decoder_layers", "decoder_layers", "decoder_ffn_dim")
    ):
        return "an encoder and a decoder"
    pairs = "projection_dim" in whole or str(table.get("model_type")).endswith("_text_model")
    if isinstance(whole.get("vision_config"), dict) and pairs:
        return "a pair of encoders, of text and images"
    of_text = "type_vocab_size" in table or "sinusoidal_pos_embds" in table
    if of_text or "MaskedLM" in architectures or "EncoderModel" in architectures:
        return "an encoder of text"
    if "vocab_size" not in table:
        if "patch_size" in table or "image_size" in table:
            return "an encoder of images"
        if "num_mel_bins" in table or ("conv_kernel" in table and "feat_extract_norm" in table):
            return "an encoder of sound"
    if "num_mel_bins" in table or "feat_extract_norm" in table:
        return "an encoder of sound"
    return ""


def _read(fields: Fields, family: Family, kind_name: str) -> Model:
    """Returns the sizes of a text model."""
    _foreign_fields(fields, kind_name)
    base = _base(fields, family)
    if family.layers != "blocks":
        # Before layers are told apart: lists of them are as long.
        check_layers(base.layers)
    moe = _moe(fields, family, base)
    base = _attention(fields, family, replace(base, moe=moe))
    if moe and not fields.has("expert_ffn") and not fields.has("dense_ffn") and not moe.dense_layers:
        # The inner size of the file is that of the experts.
        base = replace(base, ffn=moe.ffn)
    predicts = fields.count("mtp_layers", 0)
    if fields.value("num_mtp_modules") and fields.value("use_mtp") is not False:
        predicts = fields.count("num_mtp_modules", 1) * max(1, fields.count("mtp_transformer_layers", 1))
    fields.used.update(("num_mtp_modules", "mtp_transformer_layers"))
    # Its kinds have none of what is of the whole.
    model = replace(lay_out(fields, family, base), mtp_layers=predicts)
    kinds = tuple(replace(kind, other=0, longest=0) for kind in model.kinds)
    of_head = model.vocab if fields.truth("lm_head_bias") else 0
    return replace(model, kinds=kinds, other=model.other + of_head)


def _foreign_fields(fields: Fields, kind_name: str) -> None:
    """Adds what Meta's and SimAI's configurations state in their own way."""
    table = fields.table
    if kind_name == "simai":
        table = merge_tables({"intermediate_size": 18432, "max_position_embeddings": 4096}, table)
        fields.note_assumed("ffn 18432 and seq 4096 assumed, DeepSeek-V3's: the file has none")
        fields.used.add("num_experts")
    elif "dim" in table and kind_name in ("meta", "llama4_text"):
        table = _meta_fields(fields)
    fields.table = table


def _meta_fields(fields: Fields) -> dict[str, Any]:
    """Returns Meta's fields with the inner size that its code computes, and the experts of a part."""
    table = dict(fields.table)
    for name in ("moe", "moe_args"):
        part = table.pop(name, None)
        if isinstance(part, dict):
            table |= {"num_experts": part.get("num_experts")}
            table |= {"num_experts_per_tok": part.get("num_experts_per_tok", part.get("top_k"))}
            table |= {"interleave_moe_layer_step": part.get("interleave_moe_layer_step")}
            fields.used.update(("moe", "moe_args"))
    if table.get("vocab_size") == -1:
        table["vocab_size"] = 32000
        fields.note_assumed("vocab_size -1 is the tokenizer's: 32000 assumed, Llama 2's")
    dim, multiple = table.get("dim"), table.get("multiple_of", 256)
    if isinstance(dim, int) and isinstance(multiple, int) and multiple > 0 and "hidden_dim" not in table:
        factor, exponent = table.get("ffn_dim_multiplier"), table.get("ffn_exp", 4)
        exponent = exponent if isinstance(exponent, int | float) and 0 < exponent < 1024 else 4
        inner = int(2 * exponent * dim / 3)
        inner = int(factor * inner) if isinstance(factor, int | float) and 0 < factor < 1024 else inner
        dense = -(-inner // multiple) * multiple
        if table.get("num_experts") and "ffn_exp" in table:
            # Llama 4's experts share out the inner size among those that a token takes and the shared one.
            topk = table.get("num_experts_per_tok")
            expert = inner // ((topk if isinstance(topk, int) and topk > 0 else 1) + 1)
            table["moe_intermediate_size"] = -(-expert // multiple) * multiple
        table["hidden_dim"] = dense
    fields.used.update(("multiple_of", "ffn_dim_multiplier", "ffn_exp"))
    table.setdefault("max_seq_len", LONGEST_DEFAULT)
    return table


def _base(fields: Fields, family: Family) -> Model:
    """Returns the sizes that all layers have, with attention of queries, keys and values."""
    hidden, heads = fields.count("hidden"), fields.count("heads")
    bias = family.bias
    # Some call it otherwise: Qwen's and Ling's own code.
    if fields.truth("attention_bias") or fields.truth("use_qkv_bias") or fields.truth("add_qkv_bias"):
        bias = {"none": family.attention_bias}.get(bias, bias)
    if fields.truth("mlp_bias") or fields.truth("use_bias") or fields.truth("add_bias_linear"):
        both = {"none": "mlp", "attention": "all", "all": "all"}
        if bias not in both:
            fields.note_unpriced(f"mlp_bias: found true; no bias beside {bias} is counted")
        bias = both.get(bias, bias)
    elif bias == "all" and fields.value("use_bias") is False:
        bias = "none"
    kv_heads = 1 if fields.truth("multi_query") else fields.count("kv_heads", heads)
    qk_norm = family.qk_norm
    if fields.value("use_qk_norm") is not None and not qk_norm:
        qk_norm = "head" if fields.truth("use_qk_norm") and not family.shared_is_one else ""
    elif fields.value("use_qk_norm") is False:
        qk_norm = ""
    positions = fields.count("seq", 2048)
    layers = fields.count("layers", 0 if family.layers == "blocks" else None)
    head_dim = fields.count("head_dim", 0) or hidden // max(heads, 1)
    return Model(
        "", layers, hidden, heads, kv_heads, head_dim, _ffn(fields, family, hidden),
        fields.truth("use_swiglu", family.gated), fields.count("vocab"), min(positions, LONGEST_DEFAULT),
        tied_embeddings=fields.truth("tie_word_embeddings", family.tied),
        dropout=fields.dropout(*family.dropout),
        bias=bias, norm_bias=family.norm_bias, positions=positions if family.learned_positions else 0,
        qk_norm=qk_norm == "head", qk_norm_whole=qk_norm == "whole", norms=family.norms, sinks=family.sinks,
        gate=family.gate, longest=positions if positions > LONGEST_DEFAULT else 0,
    )  # fmt: skip


def _ffn(fields: Fields, family: Family, hidden: int) -> int:
    """Returns the inner size of dense feed-forward parts; 0 where a file has none."""
    if fields.has("dense_ffn"):
        return fields.count("dense_ffn")
    fields.used.update(("intermediate_size_mlp", "dense_intermediate_size"))
    # A pruned model states it layer by layer; one of experts alone may have none.
    needed = not (family.layers in ("pruned", "compressed", "blocks") or fields.has("expert_ffn"))
    gpt = 4 * hidden if family.learned_positions else None
    return fields.count("ffn", gpt if needed else 0)


def _moe(fields: Fields, family: Family, base: Model) -> Moe | None:
    """Returns the experts of a configuration; None without any."""
    if not fields.has("experts"):
        fields.used.update(("enable_moe_block", "shared_intermediate_size"))
        for meaning in (
            "experts_per_token",
            "expert_ffn",
            "shared_ffn",
            "latent",
            "groups",
            "groups_per_token",
        ):
            fields.count(meaning, 0)
        return None
    if fields.value("enable_moe_block") is False:
        return None
    experts, hidden = fields.count("experts"), base.hidden
    ffn = fields.count("expert_ffn", 0) or fields.count("ffn", 0)
    shared = 1 if family.shared_is_one else fields.count("shared_experts", 0)
    shared_ffn = fields.count("shared_ffn", 0)
    other = hidden if family.shared_gate and (shared or shared_ffn) else 0
    if family.layers == "gemma4":
        # Its dense part stands beside the experts, with three norms more; the router has scales.
        shared_ffn, other = base.ffn, hidden + experts + 3 * hidden
    elif family.layers == "blocks" and shared_ffn:
        shared_ffn *= max(shared, 1)
    if shared_ffn and ffn and shared_ffn % ffn == 0:
        shared, shared_ffn = shared_ffn // ffn, 0
    elif shared_ffn:
        shared = 1
    latent = fields.count("latent", 0)
    if latent and fields.truth("latent_moe_use_norm"):
        other += latent
    groups, groups_per_token = fields.count("groups", 0), fields.count("groups_per_token", 0)
    if fields.value("topk_method") == "greedy" or groups_per_token in (0, groups):
        groups = groups_per_token = 0
    return Moe(
        experts, fields.count("experts_per_token"), ffn, shared, fields.count("dense_layers", 0), shared_ffn,
        latent if latent != hidden else 0, family.router_bias, other, groups, groups_per_token,
    )  # fmt: skip


def _attention(fields: Fields, family: Family, base: Model) -> Model:
    """Returns the model with what its full attention is: latent, sparse, or of other sizes."""
    if family.layers == "compressed":
        return base
    if not fields.has("kv_lora_rank"):
        value = fields.count("v_head_dim", 0)
        return replace(base, v_head_dim=value if value != base.head_dim else 0)
    mla = Mla(
        fields.count("q_lora_rank", 0), fields.count("kv_lora_rank"), fields.count("qk_nope_head_dim"),
        fields.count("qk_rope_head_dim"), fields.count("v_head_dim"),
    )  # fmt: skip
    fields.used.add("qk_head_dim")
    gate = "element" if fields.truth("mla_use_output_gate") else base.gate
    base = replace(
        base, mla=mla, kv_heads=base.heads, head_dim=mla.v_head_dim, qk_norm=False, qk_norm_whole=False,
        gate=gate, bias="none" if base.bias == "qkv" else base.bias,
    )  # fmt: skip
    if fields.has("index_topk"):
        base = replace(base, indexer=Indexer(
            fields.count("index_heads"), fields.count("index_head_dim"), fields.count("index_topk"),
        ))  # fmt: skip
    return base


def _with_vision(fields: Fields, whole: dict[str, Any], model: Model, nested: str) -> Model:
    """Returns the model with the parameters of its vision tower, and says what was opened of a whole."""
    tower = whole.get("vision_config")
    architecture = _architectures(whole)
    if not isinstance(tower, dict):
        if architecture not in ALWAYS:
            return model
        tower = {}
    kind = ALWAYS.get(architecture) or str(whole.get("model_type"))
    count = count_vision(kind, tower, whole, model.hidden)
    opened = f"the text model ({nested}) is opened" if nested else "the text model is opened"
    if count is None:
        fields.note_part(f"{opened}; its vision tower is not known and not counted")
        return model
    fields.note_part(
        f"{opened}; its vision tower has {count / 1e9:.2f} B parameters, which are counted and not priced",
    )
    return replace(model, vision_parameters=count)


def _note_unpriced(fields: Fields, model: Model) -> None:
    """Notes what a file has that no step is priced with."""
    if model.mtp_layers:
        layers = "layer that predicts" if model.mtp_layers == 1 else "layers that predict"
        fields.note_unpriced(
            f"{model.mtp_layers} {layers} a further token, {model.mtp_parameters / 1e9:.2f} B parameters: "
            "left out of a step without m in --pipeline-layout",
        )
    quantized = fields.value("quantization_config")
    if isinstance(quantized, dict):
        method = quantized.get("quant_method") or quantized.get("quant_algo") or "quantized"
        fields.note_unpriced(
            f"quantization_config: the checkpoint is {printable(str(method), 20)}; training computes in "
            "--precision",
        )


def name_of(path: str) -> str:
    """Returns the name of a model in a file: the file without its ending, of a `config.json` its
    directory.
    """
    import os

    base, _ = os.path.splitext(os.path.basename(path))
    folder = os.path.basename(os.path.dirname(os.path.abspath(path)))
    return (folder if base in ("config", "params") and folder else base) or "model"
