"""Which layers of a configuration are of which kind: attention that slides, is sparse or linear; experts.

A file says it by lists, by the first layers, by every n-th one, or as its family does. Layers of one kind
make a plain `Model`; of several kinds, one with a `Model` for each.
"""

from __future__ import annotations

from simcore.model.families import Family
from simcore.model.fields import Fields, quote_value, refusal
from simcore.model.mixers import Compression, DeltaNet, Indexer, Mamba
from simcore.model.sizes import MOST_LAYERS, Model
from simcore.records import replace

# Words of `layer_types` -> the kind of attention.
_WORDS = {
    "full_attention": "full", "attention": "full", "global": "full", "full": "full",
    "sliding_attention": "sliding", "sliding": "sliding", "local": "sliding",
    "chunked_attention": "chunked",
    "linear_attention": "linear", "kda": "linear", "mla": "full",
    "indexed_attention": "full", "minimax_m3_sparse": "sparse", "sparse": "sparse",
    "mamba": "mamba", "mamba2": "mamba",
}  # fmt: skip
# Letters of a Nemotron-H pattern, and the words of its list -> what a layer is.
_BLOCKS = {
    "M": "mamba", "*": "full", "E": "experts", "-": "mlp", "mamba": "mamba", "linear_attention": "mamba",
    "attention": "full", "full_attention": "full", "moe": "experts", "mlp": "mlp",
}  # fmt: skip
# A multiple of which a pruned model's inner sizes are (NVIDIA's DeciLM).
_PRUNED_MULTIPLE = 256
# Ratios of DeepSeek-V4's compression by the words of `layer_types`.
_RATIOS = {"sliding_attention": 0, "compressed_sparse_attention": 4, "heavily_compressed_attention": 128}


def lay_out(fields: Fields, family: Family, base: Model) -> Model:
    """Returns the model of a configuration, its layers told apart. base: sizes of its full attention."""
    own = {"blocks": _blocks, "pruned": _pruned, "compressed": _compressed}.get(family.layers)
    if own is not None:
        return own(fields, family, base)
    words = _attention_words(fields, family, base)
    if base.indexer:
        words = _indexed_words(fields, words)
    flags = _expert_flags(fields, base)
    kinds: dict[tuple[str, bool], int] = {}
    pattern = tuple(kinds.setdefault(key, len(kinds)) for key in zip(words, flags, strict=True))
    dense = flags.index(True) if True in flags else len(flags)
    if len(set(words)) == 1 and all(flags[dense:]):
        model = _attention_kind(fields, family, base, words[0])
        return replace(model, moe=replace(base.moe, dense_layers=dense) if base.moe else None)
    models = []
    for word, has_experts in kinds:
        model = _attention_kind(fields, family, base, word)
        mixed = len({flag for _, flag in kinds}) > 1
        name = f"{word} {'experts' if has_experts else 'dense'}" if mixed else word
        models.append(replace(model, name=name, moe=base.moe if has_experts else None))
    return replace(base, kinds=tuple(models), pattern=pattern, other=models[0].other)


def _attention_words(fields: Fields, family: Family, base: Model) -> list[str]:
    """Returns what the attention of each layer is."""
    layers = base.layers
    fields.used.update(("full_attention_interval", "attn_output_gate", "attention_chunk_size"))
    types = fields.sequence("layer_types", layers)
    if types is not None:
        unknown = [word for word in types if _WORDS.get(str(word)) is None]
        if unknown:
            raise refusal(
                fields.path,
                f"layer_types: found {quote_value(unknown[0])}, expected {', '.join(sorted(_WORDS))}",
            )
        words = [_WORDS[str(word)] for word in types]
        # A list says where a window would be; without one nothing slides.
        slides = fields.has("window") and fields.value("use_sliding_window") is not False
        return words if slides else ["full" if word == "sliding" else word for word in words]
    pattern = fields.sequence("hybrid_layer_pattern", layers)
    if pattern is not None:
        return ["sliding" if slides else "full" for slides in pattern]
    sparse = fields.value("sparse_attention_config")
    if isinstance(sparse, dict) and isinstance(sparse.get("sparse_attention_freq"), list):
        flags = sparse["sparse_attention_freq"][:layers]
        return [*(["sparse" if flag else "full" for flag in flags]), *["full"] * (layers - len(flags))]
    linear = fields.value("linear_attn_config")
    if isinstance(linear, dict) and linear.get("full_attn_layers") is not None:
        full = set(fields.indices("full_attn_layers", linear["full_attn_layers"]))
        return ["full" if layer + 1 in full else "linear" for layer in range(layers)]
    interval = fields.count("full_attention_interval", 0)
    if interval:
        return ["linear" if (layer + 1) % interval else "full" for layer in range(layers)]
    return _sliding_words(fields, family, base)


def _indexed_words(fields: Fields, words: list[str]) -> list[str]:
    """Returns the words of layers of sparse attention: `shared` takes the selection of a layer before it."""
    layers = len(words)
    listed = fields.sequence("indexer_types", layers)
    text = fields.value("index_topk_pattern")
    if listed is None and isinstance(text, str) and len(text) >= layers:
        listed = ["shared" if letter == "S" else "full" for letter in text]
    every, first = fields.count("index_topk_freq", 1) or 1, fields.count("index_skip_topk_offset", 2)
    if listed is None:
        listed = ["shared" if max(layer - first + 1, 0) % every else "full" for layer in range(layers)]
    return ["shared" if kind == "shared" else word for kind, word in zip(listed, words, strict=False)]


def _sliding_words(fields: Fields, family: Family, base: Model) -> list[str]:
    """Returns the same of a file with a window and no list."""
    layers, way = base.layers, family.sliding
    if way == "chunk":
        if not fields.has("chunk"):
            return ["full"] * layers
        # Layers without rotary positions see all tokens: every fourth one.
        listed = fields.sequence("no_rope_layers", layers) if fields.value("no_rope_layers") else None
        every = fields.count("no_rope_layer_interval", 4) or 4
        rotary = listed or [(layer + 1) % every for layer in range(layers)]
        return ["chunked" if flag else "full" for flag in rotary]
    if fields.value("use_sliding_window") is False:
        fields.count("window", 0)
        return ["full"] * layers
    if not way or not fields.has("window"):
        window = fields.count("window", 0)
        if window:
            message = f"sliding_window: found `{window}`; attention is priced over the whole sequence"
            fields.note_unpriced(message)
        return ["full"] * layers
    every = fields.count("sliding_window_pattern", 0) or {"gemma": 6, "cohere": 4, "olmo": 4}.get(way, 0)
    if way == "exaone":
        text = fields.value("sliding_window_pattern")
        every = len(text) if isinstance(text, str) and text else 4
    if way == "mimo":
        return ["full" if not layer or not (layer + 1) % 6 else "sliding" for layer in range(layers)]
    if way == "some":
        first = fields.count("max_window_layers", layers)
        if not fields.truth("use_sliding_window"):
            first = layers
        return ["sliding" if layer >= first else "full" for layer in range(layers)]
    if way == "all":
        return ["sliding"] * layers
    if way == "alternate":
        every = 2
    return ["sliding" if (layer + 1) % every else "full" for layer in range(layers)]


def _expert_flags(fields: Fields, base: Model) -> list[bool]:
    """Returns whether each layer has experts."""
    layers = base.layers
    if base.moe is None:
        fields.used.update(("decoder_sparse_step", "mlp_only_layers", "mlp_layer_types"))
        return [False] * layers
    types = fields.sequence("mlp_layer_types", layers)
    if types is not None:
        return [word != "dense" for word in types]
    frequency = fields.value("moe_layer_freq")
    if isinstance(frequency, list):
        return [bool(flag) for flag in fields.sequence("moe_layer_freq", layers) or ()]
    for name in ("moe_layers_enum", "moe_layers"):
        if fields.value(name):
            with_experts = set(fields.indices(name, fields.value(name)))
            return [layer in with_experts for layer in range(layers)]
    step = fields.count("interleave_moe_layer_step", 0) or fields.count("decoder_sparse_step", 1)
    every = fields.count("moe_layer_freq", 1) or fields.count("moe_layer_interval", 1) or 1
    fields.used.add("moe_layer_interval")
    without = set(fields.indices("mlp_only_layers", fields.value("mlp_only_layers")))
    last = fields.count("moe_layer_end_index", layers)
    first = base.moe.dense_layers
    return [
        first <= layer <= last and layer % every == 0 and (layer + 1) % max(step, 1) == 0
        and layer not in without
        for layer in range(layers)
    ]  # fmt: skip


def _attention_kind(fields: Fields, family: Family, base: Model, word: str) -> Model:
    """Returns the sizes of layers with attention of a kind."""
    if family.layers == "gemma4":
        base = _gemma4(fields, base, word)
    if word == "sliding":
        base = replace(base, window=fields.count("window"), **_sliding_sizes(fields, base))
        if fields.value("add_swa_attention_sink_bias"):
            base = replace(base, sinks=True)
    elif word == "full" and fields.value("add_full_attention_sink_bias"):
        base = replace(base, sinks=True)
    elif word == "shared" and base.indexer:
        base = replace(base, indexer=replace(base.indexer, heads=0))
    elif word == "chunked":
        base = replace(base, window=fields.count("chunk"), chunked=True)
    elif word == "linear":
        base = replace(base, mla=None, qk_norm=False, gate="none", delta=_delta(fields))
    elif word == "mamba":
        base = replace(base, qk_norm=False, gate="none", mamba=_mamba(fields))
    elif word == "sparse":
        sparse = fields.value("sparse_attention_config")
        of_file = Fields(fields.path, sparse if isinstance(sparse, dict) else fields.table, fields.defaults)
        block = of_file.count("sparse_block_size", fields.count("index_block_size", 128))
        blocks = of_file.count("sparse_topk_blocks", fields.count("index_topk_blocks", 16))
        base = replace(base, indexer=Indexer(
            of_file.count("index_heads"), of_file.count("index_head_dim"), block * blocks, True, block,
        ))  # fmt: skip
    return base


def _sliding_sizes(fields: Fields, base: Model) -> dict[str, int]:
    """Returns the sizes in which layers that slide differ."""
    other = fields.value("attention_other_setting")
    if isinstance(other, dict):
        own = Fields(fields.path, other)
        return {
            "heads": own.count("heads", base.heads), "kv_heads": own.count("kv_heads", base.kv_heads),
            "head_dim": own.count("head_dim", base.head_dim),
        }  # fmt: skip
    return {
        "heads": fields.count("swa_num_attention_heads", 0)
        or fields.count("num_sliding_attention_heads", base.heads),
        "kv_heads": fields.count("swa_num_key_value_heads", base.kv_heads),
        "head_dim": fields.count("swa_head_dim", base.head_dim),
        "v_head_dim": fields.count("swa_v_head_dim", base.v_head_dim),
    }


def _delta(fields: Fields) -> DeltaNet:
    linear = fields.value("linear_attn_config")
    if isinstance(linear, dict):
        own = Fields(fields.path, linear)
        heads, dim = own.count("num_heads"), own.count("head_dim")
        return DeltaNet(
            heads, heads, dim, dim, own.count("short_conv_kernel_size", 4), dim,
            0 if own.truth("use_full_rank_gate") else dim,
        )  # fmt: skip
    if fields.has("linear_num_heads"):
        heads, dim = fields.count("linear_num_heads"), fields.count("linear_head_dim")
        return DeltaNet(heads, heads, dim, dim, fields.count("linear_conv_kernel_dim", 4), dim, dim)
    return DeltaNet(
        fields.count("linear_num_key_heads"), fields.count("linear_num_value_heads"),
        fields.count("linear_key_head_dim"), fields.count("linear_value_head_dim"),
        fields.count("linear_conv_kernel_dim"),
    )  # fmt: skip


def _mamba(fields: Fields) -> Mamba:
    return Mamba(
        fields.count("ssm_heads"), fields.count("ssm_head_dim"), fields.count("ssm_groups"),
        fields.count("ssm_state"), fields.count("ssm_conv"),
        fields.truth("use_conv_bias", fields.truth("mamba_conv_bias", True)),
        fields.truth("mamba_proj_bias"),
    )  # fmt: skip


def _gemma4(fields: Fields, base: Model, word: str) -> Model:
    """Returns Gemma 4's: layers that see all tokens have other heads, whose values may be their keys."""
    head_dim, shares = fields.count("global_head_dim", 512), fields.truth("attention_k_eq_v")
    kv_heads = fields.count("num_global_key_value_heads", 0)
    width = fields.count("hidden_size_per_layer_input", 0)
    # Each layer has inputs of its own: a gate, a projection and a norm; a table for all of them.
    all_widths, words = width * base.layers, fields.count("vocab_size_per_layer_input", base.vocab)
    base = replace(
        base, layer_other=(2 * width + 1) * base.hidden if width else 0,
        other=all_widths * (words + base.hidden) + width,
    )  # fmt: skip
    if word != "full":
        return base
    return replace(
        base, head_dim=head_dim or base.head_dim, shares_kv=shares,
        kv_heads=kv_heads if shares and kv_heads else base.kv_heads,
    )  # fmt: skip


def _blocks(fields: Fields, family: Family, base: Model) -> Model:
    """Returns Nemotron-H's: each layer is one mixer, one feed-forward part or the experts."""
    text = fields.value("hybrid_override_pattern")
    listed = list(text) if isinstance(text, str) else fields.sequence("layers_block_type")
    listed = listed or fields.sequence("layer_types") or []
    words = [_BLOCKS.get(str(word)) for word in listed if word != "|"]
    if not words or None in words or len(words) > MOST_LAYERS:
        wrong = next((word for word in listed if word not in _BLOCKS), None)
        raise refusal(
            fields.path,
            f"hybrid_override_pattern: found {quote_value(wrong)}, expected a layer each of M, *, E or -",
        )
    names = list(dict.fromkeys(words))
    if "experts" in names and base.moe is None:
        raise refusal(fields.path, "hybrid_override_pattern: found E, expected n_routed_experts beside it")
    kinds = {
        "mamba": lambda: replace(base, moe=None, ffn=0, mamba=_mamba(fields)),
        "full": lambda: replace(base, moe=None, ffn=0),
        "experts": lambda: replace(base, attends=False, ffn=0),
        "mlp": lambda: replace(base, attends=False, moe=None),
    }
    models = [replace(kinds[str(name)](), name=str(name), layers=len(words)) for name in names]
    mtp_kind = -1
    if fields.count("mtp_layers", 0) and base.moe:
        # Attention and experts.
        mtp_kind = len(models)
        models.append(replace(base, name="prediction", norms=2, ffn=0, layers=len(words)))
    fields.used.update(("mtp_hybrid_override_pattern", "mtp_layers_block_type"))
    pattern = tuple(names.index(word) for word in words)
    moe = base.moe if "experts" in names else None
    return replace(
        base, layers=len(words), kinds=tuple(models), pattern=pattern, moe=moe, mtp_kind=mtp_kind,
        ffn=base.ffn if "mlp" in names else 0,
    )  # fmt: skip


def _pruned(fields: Fields, family: Family, base: Model) -> Model:
    """Returns NVIDIA's pruned Llamas: each layer has its own inner size, and may have no attention."""
    kinds: dict[Model, int] = {}
    pattern = []
    blocks = fields.sequence("block_configs", base.layers)
    if blocks is None:
        raise refusal(fields.path, "found no block_configs, expected what each layer has")
    for block in blocks:
        parts = block if isinstance(block, dict) else {}
        attention, ffn = parts.get("attention"), parts.get("ffn")
        attention = attention if isinstance(attention, dict) else {}
        ffn = ffn if isinstance(ffn, dict) else {}
        group, multiple = attention.get("n_heads_in_group"), ffn.get("ffn_mult")
        attends = not attention.get("no_op") and not attention.get("replace_with_linear")
        inner = 0
        if not ffn.get("no_op") and not ffn.get("replace_with_linear"):
            exact = int(2 * _multiple(multiple) * base.hidden / 3)
            inner = -(-exact // _PRUNED_MULTIPLE) * _PRUNED_MULTIPLE
        linears = bool(attention.get("replace_with_linear")) + bool(ffn.get("replace_with_linear"))
        kv_heads = base.heads // group if attends and isinstance(group, int) and group else base.kv_heads
        name = f"ffn {inner}" if attends else f"ffn {inner}, no attention"
        model = replace(
            base, name=name, attends=attends, kv_heads=kv_heads, ffn=inner,
            norms=int(not attention.get("no_op")) + int(not ffn.get("no_op")),
            layer_other=linears * base.hidden**2,
        )  # fmt: skip
        pattern.append(kinds.setdefault(model, len(kinds)))
    models = tuple(kinds)
    widest = max(models, key=lambda model: model.ffn)
    kv_heads = max((model.kv_heads for model in models if model.attends), default=base.kv_heads)
    return replace(base, kinds=models, pattern=tuple(pattern), ffn=widest.ffn, kv_heads=kv_heads)


def _multiple(value: object) -> float:
    """Returns by how much an inner size is larger than the hidden size; 0 for what cannot be that."""
    return value if isinstance(value, int | float) and 0 < value < 1024 else 0.0


def _compressed(fields: Fields, family: Family, base: Model) -> Model:
    """Returns DeepSeek-V4's: a window and tokens compressed by the ratio of each layer."""
    layers, ratios = base.layers, fields.sequence("compress_ratios")
    if ratios is None:
        words = fields.sequence("layer_types", layers)
        rates = fields.value("compress_rates")
        own = _RATIOS | (rates if isinstance(rates, dict) else {})
        ratios = [own.get(str(word), 0) for word in words] if words else [
            0 if layer < 2 else 128 if layer % 2 else 4 for layer in range(layers)
        ]  # fmt: skip
    if len(ratios) < layers or not all(type(ratio) is int and 0 <= ratio <= 1 << 20 for ratio in ratios):
        raise refusal(
            fields.path, f"compress_ratios: found {len(ratios)} entries, expected a number for each layer"
        )
    streams = min(fields.count("hc_mult", 4), 64)
    columns = streams * streams + 2 * streams
    index = Indexer(fields.count("index_heads"), fields.count("index_head_dim"), fields.count("index_topk"))
    base = replace(
        base, streams=streams, layer_other=2 * (columns * (streams * base.hidden + 1) + 3)
    )  # fmt: skip
    least = min((ratio for ratio in ratios if ratio), default=0)

    def kind(ratio: int) -> Model:
        selects = 0 < ratio == least and ratio < 32
        compression = Compression(
            ratio, fields.count("window"), fields.count("q_lora_rank"), fields.count("o_groups"),
            fields.count("o_lora_rank"), index if selects else None,
        )  # fmt: skip
        name = f"1 of {ratio} selected" if selects else f"1 of {ratio}" if ratio else "window"
        return replace(base, name=name, compression=compression)

    fields.used.update(("qk_rope_head_dim", "rope_head_dim"))
    names = list(dict.fromkeys(ratios[:layers]))
    predicts = fields.count("mtp_layers", 0)
    if predicts and 0 not in names:
        names.append(0)
    models = tuple(map(kind, names))
    return replace(
        base, kinds=models, pattern=tuple(names.index(ratio) for ratio in ratios[:layers]),
        mtp_kind=names.index(0) if predicts else -1,
        other=streams * streams * base.hidden + streams + 1,
    )  # fmt: skip
