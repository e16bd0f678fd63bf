"""What the fields of a model's configuration mean, whatever they are called.

One table: a size -> the names that configurations have for it, of Hugging Face, Meta, DeepSeek, Megatron-LM,
SimAI and SimuMax. Every other field is of no cost, or is reported, so that none is ignored silently.
"""

from __future__ import annotations

from typing import Any

from simcore.diagnostics import Diagnostic, InputError, printable
from simcore.units import is_whole

SPELLINGS: dict[str, tuple[str, ...]] = {
    "layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "layer_num"),
    "hidden": ("hidden_size", "n_embd", "d_model", "dim"),
    "heads": ("num_attention_heads", "n_head", "n_heads", "head_num"),
    "kv_heads": (
        "num_key_value_heads", "n_kv_heads", "kv_head_num", "num_query_groups", "num_attention_groups",
        "kv_n_heads",
    ),
    "head_dim": ("head_dim", "head_size", "kv_channels", "attention_head_dim"),
    "v_head_dim": ("v_head_dim", "d_kv"),
    "ffn": ("intermediate_size", "n_inner", "ffn_hidden_size", "inter_dim", "hidden_dim", "ffn_dim"),
    # Of dense layers, where `intermediate_size` is that of the experts: Llama 4, MiniMax M3.
    "dense_ffn": ("intermediate_size_mlp", "dense_intermediate_size"),
    "vocab": ("vocab_size", "padded_vocab_size"),
    "seq": (
        "max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "max_seq_length", "seq_length",
        "model_max_length", "seq_len",
    ),
    "experts": (
        "n_routed_experts", "router_expert", "num_routed_experts", "num_local_experts", "num_experts",
        "moe_num_experts", "num_moe_experts", "expert_num",
    ),
    "experts_per_token": (
        "num_experts_per_tok", "num_experts_per_token", "experts_per_token", "top_k_experts", "moe_top_k",
        "moe_topk", "n_activated_experts", "moe_router_topk", "moe_k", "topk",
    ),
    "expert_ffn": (
        "moe_intermediate_size", "expert_ffn_hidden_size", "moe_ffn_hidden_size", "moe_inter_dim",
        "expert_dim",
    ),
    "shared_experts": (
        "n_shared_experts", "num_shared_experts", "moe_num_shared_experts", "num_shared_expert",
        "shared_experts",
    ),
    "shared_ffn": (
        "shared_expert_intermediate_size", "moe_shared_expert_intermediate_size",
        "shared_intermediate_size", "share_expert_dim", "share_expert_dims",
    ),
    "groups": ("n_group", "num_expert_group", "n_expert_groups", "moe_router_num_groups"),
    "groups_per_token": ("topk_group", "n_limited_groups", "moe_router_group_topk"),
    "latent": ("moe_latent_size", "routed_expert_hidden_size"),
    "dense_layers": (
        "first_k_dense_replace", "n_dense_layers", "n_dense_layer", "dense_layers", "dense_layer",
        "moe_layer_start_index",
    ),
    "q_lora_rank": ("q_lora_rank", "d_q_c"),
    "kv_lora_rank": ("kv_lora_rank", "d_kv_c"),
    "qk_nope_head_dim": ("qk_nope_head_dim", "qk_nope_dim", "d_q", "qk_head_dim"),
    "qk_rope_head_dim": ("qk_rope_head_dim", "qk_rope_dim", "qk_pos_emb_head_dim", "rope_head_dim", "d_r"),
    "window": ("sliding_window", "sliding_window_size", "window_size"),
    "chunk": ("attention_chunk_size",),
    "index_heads": ("index_n_heads", "sparse_num_index_heads"),
    "index_head_dim": ("index_head_dim", "sparse_index_dim"),
    "index_topk": ("index_topk",),
    "mtp_layers": (
        "num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_layers", "mtp_num_layers",
        "n_mtp_layers",
    ),
    "ssm_heads": ("mamba_num_heads", "mamba_n_heads"),
    "ssm_head_dim": ("mamba_head_dim", "mamba_d_head"),
    "ssm_groups": ("n_groups", "mamba_n_groups", "mamba_num_groups"),
    "ssm_state": ("ssm_state_size", "mamba_d_state", "mamba_state_dim"),
    "ssm_conv": ("conv_kernel", "mamba_d_conv"),
}  # fmt: skip

# Fields that do not change a step's cost: names, tokens, initial weights, how text is generated, numbers that
# something is multiplied by.
FREE_FIELDS = frozenset((
    "_name_or_path", "architectures", "auto_map", "bos_token_id", "eos_token_id", "pad_token_id",
    "cls_token_id", "sep_token_id", "decoder_start_token_id", "transformers_version", "use_cache",
    "torch_dtype", "dtype", "initializer_range", "rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon",
    "layernorm_epsilon", "norm_eps", "norm_epsilon", "hidden_act", "activation_function",
    "hidden_activation", "mlp_hidden_act", "mamba_hidden_act", "rope_theta", "rope_scaling",
    "rope_parameters", "rope_local_base_freq", "swa_rope_theta", "compress_rope_theta", "rotary_dim",
    "rotary_emb_base", "rotary_pct", "rope_interleave", "indexer_rope_interleave", "partial_rotary_factor",
    "partial_rotary_factors", "output_router_logits", "router_aux_loss_coef", "router_jitter_noise",
    "input_jitter_noise", "aux_loss_alpha", "seq_aux", "scoring_func", "score_func", "route_scale",
    "topk_method", "norm_topk_prob", "norm_expert_weight", "routed_scaling_factor",
    "moe_router_scaling_factor", "moe_router_activation_func", "moe_renormalize", "use_grouped_topk",
    "pretraining_tp", "task_specific_params", "gradient_checkpointing", "resid_pdrop", "embd_pdrop",
    "emb_pdrop",
    "attn_pdrop", "attention_dropout", "hidden_dropout", "classifier_dropout", "summary_activation",
    "summary_first_dropout", "summary_proj_to_labels", "summary_type", "summary_use_proj",
    "scale_attn_weights", "scale_attn_by_inverse_layer_idx", "reorder_and_upcast_attn", "model_type",
    "ep_size", "use_parallel_residual", "rms_norm", "initializer_factor", "id2label", "label2id",
    "num_labels", "unsloth_fixed", "unsloth_version", "problem_type", "return_dict", "output_attentions",
    "output_hidden_states", "is_encoder_decoder", "is_decoder", "add_cross_attention", "torchscript",
    "use_bfloat16", "chunk_size_feed_forward", "tokenizer_class", "prefix", "pruned_heads", "bad_words_ids",
    "finetuning_task", "cross_attention_hidden_size", "tf_legacy_loss", "tie_encoder_decoder",
    "max_length", "min_length", "do_sample", "early_stopping", "num_beams", "num_beam_groups",
    "diversity_penalty", "temperature", "top_k", "top_p", "typical_p", "repetition_penalty",
    "length_penalty", "no_repeat_ngram_size", "encoder_no_repeat_ngram_size", "num_return_sequences",
    "output_scores", "return_dict_in_generate", "forced_bos_token_id", "forced_eos_token_id",
    "begin_suppress_tokens", "suppress_tokens", "exponential_decay_length_penalty",
    "remove_invalid_values", "image_token_id", "image_token_index", "video_token_id", "video_token_index",
    "vision_start_token_id", "vision_end_token_id", "audio_token_id", "audio_config", "boi_token_id",
    "eoi_token_id", "boa_token_id", "eoa_token_id", "boi_token_index", "eoi_token_index",
    "eoa_token_index", "ignore_index", "media_placeholder_token_id", "video_placeholder",
    "use_unified_vision_chunk", "vision_soft_tokens_per_image", "mm_tokens_per_image",
    "image_seq_length", "vision_feature_layer", "vision_feature_select_strategy", "projector_hidden_act",
    "multimodal_projector_bias", "spatial_merge_size", "vision_config", "use_bidirectional_attention",
    "final_logit_softcapping", "attn_logit_softcapping", "query_pre_attn_scalar", "logit_scale",
    "embedding_multiplier", "residual_multiplier", "attention_multiplier", "logits_scaling", "scale_depth",
    "scale_emb", "attention_value_scale", "swiglu_limit", "swiglu_limits", "swiglu_limits_shared",
    "swiglu_alpha", "activation_situ_beta", "activation_situ_linear_beta", "initial_context_length",
    "original_max_position_embeddings", "attn_temperature_tuning", "attn_scale", "floor_scale",
    "num_logits_to_keep", "rescale_prenorm_residual", "residual_in_fp32", "time_step_floor",
    "time_step_max", "time_step_min", "time_step_limit", "use_mamba_kernels", "mamba_ssm_dtype",
    "mamba_ssm_cache_dtype", "chunk_size", "expand", "mamba_expand", "mamba_chunk_size", "hc_eps",
    "hc_sinkhorn_iters", "expert_dtype", "scale_fmt", "num_hash_layers", "n_hash_layers", "clip_qkv",
    "mtp_use_dedicated_embeddings", "use_routing_bias", "qk_norm_type", "moe_shared_expert_overlap",
    "vocab_size_per_layer_input", "rotary_base", "rope_factor", "beta_fast", "beta_slow", "mscale",
    "original_seq_len", "max_batch_size", "norm_type", "use_scaled_rope", "model_name",
    "attention_type", "attn_type", "mla_use_nope", "cp_size", "dp_size", "pipeline_parallel",
    "aiob_enable", "frame", "micro_batch", "world_size", "tensor_model_parallel_size",
    "expert_model_parallel_size", "pipeline_model_parallel", "moe_enable", "result_dir",
    "computation_enable", "duped_expert", "parallel_attn", "shared_expert_gate", "router_dtype",
    "moe_router_dtype", "use_qk_l2norm", "use_rope", "rotary_emb_scale_base", "vision_token_id",
    "max_window_layers", "qkv_bias", "residual_dropout",
    "interleave_moe_layer_step", "no_rope_layers", "no_rope_layer_interval", "sliding_window_pattern",
    "_sliding_window_pattern", "per_layer_config", "mlp_layer_types", "moe_norm_min", "index_block_size",
    "index_topk_blocks", "index_local_blocks", "num_sliding_attention_heads", "use_sliding_window",
    "embedding_dropout", "attention_softmax_in_fp32", "scale_attention_softmax_in_fp32", "eos_token",
    "bos_token", "pad_token", "image_grid_pinpoints", "tie_embeddings_and_output_weights",
    "num_experts_shared", "keep_mtp_spec_in_bf16", "moe_layer_freq", "layer_types", "mamba_proj_bias",
    "use_conv_bias", "conv_bias", "ffn_act_fn", "moe_jitter_eps", "moe_loss_weight",
    "moe_normalize_expert_weights", "moe_expert_capacity_factor", "rope_scaling_factor", "use_qkv_bias",
))  # fmt: skip


class Fields:
    """The values of a configuration by what they mean: a field that is never read is unknown.

    defaults: values of sizes that a family's files may leave out.
    """

    def __init__(self, path: str, table: dict[str, Any], defaults: dict[str, Any] | None = None) -> None:
        self.path = path
        self.table = table
        self.defaults = defaults or {}
        self.used: set[str] = set()
        self.notes: list[Diagnostic] = []

    def count(self, meaning: str, default: int | None = None) -> int:
        """Returns the whole number of a size. Raises InputError for any other value, or none without
        default.
        """
        names = SPELLINGS.get(meaning, (meaning,))
        self.used.update(names)
        for name in names:
            value = self.table.get(name)
            if isinstance(value, list) and meaning != "layers":
                value = self._value_of_layers(name, value)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise refusal(self.path, f"{name}: found {quote_value(value)}, expected a whole number")
            return value
        default = self.defaults.get(meaning, default)
        if default is None:
            words = " or ".join(names[:4])
            raise refusal(
                self.path,
                f"found no {words}, expected a configuration with its sizes; --model-map FILE says where "
                "they are, wltui's own TOML has them",
            )
        return int(default)

    def _value_of_layers(self, name: str, values: list[Any]) -> Any:
        """Returns the value of a list with one for each layer (Hunyuan). Raises InputError for another."""
        layers = self.count("layers", 0)
        if not values or len(values) < layers or any(item != values[0] for item in values):
            expected = f"a whole number, or the same one for each of the {layers} layers"
            raise refusal(self.path, f"{name}: found {quote_value(values)}, expected {expected}")
        return values[0]

    def has(self, meaning: str) -> bool:
        """Returns whether a size is given, above 0. Raises InputError for what is no size."""
        names = SPELLINGS.get(meaning, (meaning,))
        for name in names:
            value = self.table.get(name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float, list))):
                raise refusal(self.path, f"{name}: found {quote_value(value)}, expected a whole number")
        return any(self.table.get(name) for name in names) or bool(self.defaults.get(meaning))

    def value(self, name: str) -> Any:
        """Returns the value of a field, else the family's default."""
        self.used.add(name)
        value = self.table.get(name)
        return self.defaults.get(name) if value is None else value

    def truth(self, name: str, default: bool = False) -> bool:
        """Returns whether a field is true. Raises InputError for what is neither true nor false."""
        value = self.value(name)
        if value is not None and value not in (0, 1):
            raise refusal(self.path, f"{name}: found {quote_value(value)}, expected true or false")
        return default if value is None else bool(value)

    def sequence(self, name: str, count: int | None = None) -> list[Any] | None:
        """Returns the list under a name; None without it.

        count: entries that it has at least; further ones are of layers that predict further tokens. Raises
        InputError for another value.
        """
        value = self.value(name)
        if value is None:
            return None
        if not isinstance(value, list) or (count is not None and len(value) < count):
            found_words = f"{len(value)} entries" if isinstance(value, list) else quote_value(value)
            expected = "a list" if count is None else f"one for each of the {count} layers"
            raise refusal(self.path, f"{name}: found {found_words}, expected {expected}")
        return value if count is None else value[:count]

    def dropout(self, *names: str) -> bool:
        """Returns whether any of the fields is a rate above 0. Raises InputError for what is no rate."""
        self.used.update(names)
        rates = {name: rate for name in names if (rate := self.table.get(name)) is not None}
        for name, rate in rates.items():
            if isinstance(rate, bool) or not isinstance(rate, (int, float)) or not 0 <= rate <= 1:
                raise refusal(self.path, f"{name}: found {quote_value(rate)}, expected a rate from 0 to 1")
        return any(rates.values())

    def indices(self, name: str, value: object) -> list[int]:
        """Returns the layers that a list, or a text like `3,4,5`, names. Raises InputError for what is none.

        value: of the field `name`; none where it is None.
        """
        if isinstance(value, str):
            value = [part.strip() for part in value.split(",")] if value.strip() else []
        parts: list[Any] = [] if value is None else value if isinstance(value, list) else [None]
        layers = [int(part) for part in parts if (type(part) is int and part >= 0) or _is_layer(part)]
        if len(layers) < len(parts):
            raise refusal(self.path, f"{name}: found {quote_value(value)}, expected the numbers of layers")
        return layers

    def note_unpriced(self, message: str) -> None:
        """Notes what changes the cost of a run and is not priced."""
        self.notes.append(Diagnostic("note", "model-field-unpriced", message, self.path))

    def note_part(self, message: str) -> None:
        """Notes which part of a file is opened."""
        self.notes.append(Diagnostic("note", "model-part-left-out", message, self.path))

    def note_assumed(self, message: str) -> None:
        """Notes a size that the file does not have."""
        self.notes.append(Diagnostic("note", "model-assumed", message, self.path))

    def note_unknown(self) -> None:
        """Notes the fields that nothing has read."""
        unknown = [name for name in self.table if name not in self.used and name not in FREE_FIELDS]
        unknown = [name for name in unknown if self.table[name] not in (None, False, [], {}, 0, "")]
        if unknown:
            names = ", ".join(printable(name, 40) for name in unknown[:8])
            more = f" and {len(unknown) - 8} more" if len(unknown) > 8 else ""
            message = f"found fields that are not known here: {names}{more}; they change nothing"
            self.notes.append(Diagnostic("note", "model-field-unknown", message, self.path))


def merge_tables(*tables: dict[str, Any]) -> dict[str, Any]:
    """Returns one table of several; the later ones have the last word, except with null."""
    merged: dict[str, Any] = {}
    for table in tables:
        merged.update({name: value for name, value in table.items() if value is not None})
    return merged


def _is_layer(value: object) -> bool:
    """Returns whether a value is the text of a layer's number."""
    return isinstance(value, str) and is_whole(value, 9)


def refusal(path: str, message: str, location: tuple[int, int] | None = None) -> InputError:
    """Returns the error for a model's file."""
    line, column = location or (None, None)
    return InputError(Diagnostic("error", "model-file", message, path, line, column))


def quote_value(value: object) -> str:
    """Returns a value of a file, as a message quotes it."""
    return f"`{printable(str(value), 40)}`"
