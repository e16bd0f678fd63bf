"""Configurations of published models, as sizes alone, with the parameters that their publishers state.

Billions, all and those of one token; 0 for active ones of dense models. Facts of the models' own pages;
fields that do not change a count are left out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

Config = dict[str, Any]


class Published(NamedTuple):
    """A model: its name, its configuration, and what its publisher states, billions."""

    name: str
    config: Config
    total: float
    active: float = 0.0


def _sizes(
    kind: str, layers: int, hidden: int, heads: int, kv: int, ffn: int, vocab: int, **more: Any
) -> Config:  # fmt: skip
    inner = {"intermediate_size": ffn} if ffn else {}
    return {
        "model_type": kind, "num_hidden_layers": layers, "hidden_size": hidden, "num_attention_heads": heads,
        "num_key_value_heads": kv, "vocab_size": vocab, "max_position_embeddings": 32768, **inner, **more,
    }  # fmt: skip


def _experts(many: int, topk: int, ffn: int, **more: Any) -> Config:
    return {"num_experts": many, "num_experts_per_tok": topk, "moe_intermediate_size": ffn, **more}


def _mla(q: int, kv: int = 512, nope: int = 128, rope: int = 64, value: int = 128) -> Config:
    return {
        "q_lora_rank": q or None, "kv_lora_rank": kv, "qk_nope_head_dim": nope, "qk_rope_head_dim": rope,
        "v_head_dim": value,
    }  # fmt: skip


def _routed(many: int, topk: int, ffn: int, shared: int, dense: int) -> Config:
    return {
        "n_routed_experts": many, "num_experts_per_tok": topk, "moe_intermediate_size": ffn,
        "n_shared_experts": shared, "first_k_dense_replace": dense,
    }  # fmt: skip


_TIED: Config = {"tie_word_embeddings": True}
_INDEX = {"index_n_heads": 64, "index_head_dim": 128, "index_topk": 2048}
_DELTA = {
    "linear_num_key_heads": 16, "linear_num_value_heads": 32, "linear_key_head_dim": 128,
    "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4, "full_attention_interval": 4, "head_dim": 256,
}  # fmt: skip
_QWEN_TOWER = {
    "depth": 27, "hidden_size": 1152, "intermediate_size": 4304, "num_position_embeddings": 2304,
    "patch_size": 16, "spatial_merge_size": 2, "temporal_patch_size": 2,
}  # fmt: skip


def _qwen_vl(kind: str, text: Config, deep: tuple[int, ...] = (8, 16, 24)) -> Config:
    tower = _QWEN_TOWER | {"out_hidden_size": text["hidden_size"], "deepstack_visual_indexes": list(deep)}
    return {"model_type": kind, "text_config": text, "vision_config": tower}


def _mamba(heads: int, groups: int = 8) -> Config:
    return {
        "mamba_num_heads": heads, "mamba_head_dim": 64, "n_groups": groups, "ssm_state_size": 128,
        "conv_kernel": 4,
    }  # fmt: skip


_NANO = "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME"
_V4_FLASH_RATIOS = [0, 0, *([4, 128] * 20), 4]
_NO_ROPE = [1, 1, 1, 0]
# Its class has a vision tower whether its file says so or not.
_LLAMA_4 = {"model_type": "llama4", "architectures": ["Llama4ForConditionalGeneration"]}

MODELS: tuple[Published, ...] = (
    Published("Llama 2 7B", _sizes("llama", 32, 4096, 32, 32, 11008, 32000), 6.74),
    Published("Llama 2 70B", _sizes("llama", 80, 8192, 64, 8, 28672, 32000), 68.98),
    Published("Llama 3.1 8B", _sizes("llama", 32, 4096, 32, 8, 14336, 128256), 8.03),
    Published("Llama 3.1 405B", _sizes("llama", 126, 16384, 128, 8, 53248, 128256), 405.9),
    Published("Llama 3.2 1B", _sizes("llama", 16, 2048, 32, 8, 8192, 128256, **_TIED), 1.24),
    Published("Mistral 7B", _sizes("mistral", 32, 4096, 32, 8, 14336, 32000, sliding_window=4096), 7.24),
    Published("Mistral Nemo", _sizes("mistral", 40, 5120, 32, 8, 14336, 131072, head_dim=128), 12.25),
    Published("Mixtral 8x7B", _sizes(
        "mixtral", 32, 4096, 32, 8, 14336, 32000, num_local_experts=8, num_experts_per_tok=2), 46.7, 12.9),
    Published("Mixtral 8x22B", _sizes(
        "mixtral", 56, 6144, 48, 8, 16384, 32768, num_local_experts=8, num_experts_per_tok=2), 141, 39),
    Published("Qwen2.5 7B", _sizes("qwen2", 28, 3584, 28, 4, 18944, 152064), 7.61),
    Published("Qwen2.5 72B", _sizes("qwen2", 80, 8192, 64, 8, 29568, 152064), 72.7),
    Published("Qwen1.5 MoE A2.7B", _sizes(
        "qwen2_moe", 24, 2048, 16, 16, 5632, 151936, **_experts(60, 4, 1408),
        shared_expert_intermediate_size=5632), 14.3, 2.7),
    Published("Qwen2 57B-A14B", _sizes(
        "qwen2_moe", 28, 3584, 28, 4, 18944, 151936, **_experts(64, 8, 2560),
        shared_expert_intermediate_size=20480), 57.4, 14),
    Published("Qwen3 0.6B", _sizes("qwen3", 28, 1024, 16, 8, 3072, 151936, head_dim=128, **_TIED), 0.6),
    Published("Qwen3 8B", _sizes("qwen3", 36, 4096, 32, 8, 12288, 151936, head_dim=128), 8.2),
    Published("Qwen3 32B", _sizes("qwen3", 64, 5120, 64, 8, 25600, 151936, head_dim=128), 32.8),
    Published("Qwen3 30B-A3B", _sizes(
        "qwen3_moe", 48, 2048, 32, 4, 6144, 151936, head_dim=128, **_experts(128, 8, 768)), 30.5, 3.3),
    Published("Qwen3 235B-A22B", _sizes(
        "qwen3_moe", 94, 4096, 64, 4, 12288, 151936, head_dim=128, **_experts(128, 8, 1536)), 235, 22),
    Published("Qwen3 Coder 480B-A35B", _sizes(
        "qwen3_moe", 62, 6144, 96, 8, 8192, 151936, head_dim=128, **_experts(160, 8, 2560)), 480, 35),
    Published("Qwen3 VL 8B", _qwen_vl(
        "qwen3_vl", _sizes("qwen3_vl_text", 36, 4096, 32, 8, 12288, 151936, head_dim=128)), 8.77),
    Published("Qwen3 VL 30B-A3B", _qwen_vl("qwen3_vl_moe", _sizes(
        "qwen3_vl_moe_text", 48, 2048, 32, 4, 6144, 151936, head_dim=128, **_experts(128, 8, 768))),
        31.1, 3.3),
    Published("Qwen3 Next 80B-A3B", _sizes(
        "qwen3_next", 48, 2048, 16, 2, 5120, 151936, **_DELTA, **_experts(512, 10, 512),
        shared_expert_intermediate_size=512), 80, 3),
    Published("Qwen3.5 35B-A3B", _qwen_vl("qwen3_5_moe", _sizes(
        "qwen3_5_moe_text", 40, 2048, 16, 2, 0, 248320, **_DELTA, **_experts(256, 8, 512),
        shared_expert_intermediate_size=512, mtp_num_hidden_layers=1), ()), 35, 3),
    Published("Qwen3.5 27B", _qwen_vl("qwen3_5", _sizes(
        "qwen3_5_text", 64, 5120, 24, 4, 17408, 248320, **_DELTA | {"linear_num_value_heads": 48}), ()), 27),
    Published("Qwen3.5 122B-A10B", _qwen_vl("qwen3_5_moe", _sizes(
        "qwen3_5_moe_text", 48, 3072, 32, 2, 0, 248320, **_DELTA | {"linear_num_value_heads": 64},
        **_experts(256, 8, 1024), shared_expert_intermediate_size=1024, mtp_num_hidden_layers=1), ()),
        122, 10),
    Published("Qwen3.5 397B-A17B", _qwen_vl("qwen3_5_moe", _sizes(
        "qwen3_5_moe_text", 60, 4096, 32, 2, 0, 248320, **_DELTA | {"linear_num_value_heads": 64},
        **_experts(512, 10, 1024), shared_expert_intermediate_size=1024, mtp_num_hidden_layers=1), ()),
        397, 17),
    Published("DeepSeek V2", _sizes(
        "deepseek_v2", 60, 5120, 128, 128, 12288, 102400, **_mla(1536), **_routed(160, 6, 1536, 2, 1)),
        236, 21),
    Published("DeepSeek V2 Lite", _sizes(
        "deepseek_v2", 27, 2048, 16, 16, 10944, 102400, **_mla(0), **_routed(64, 6, 1408, 2, 1)), 15.7, 2.4),
    Published("DeepSeek V3", _sizes(
        "deepseek_v3", 61, 7168, 128, 128, 18432, 129280, **_mla(1536), **_routed(256, 8, 2048, 1, 3),
        num_nextn_predict_layers=1), 671, 37),
    Published("DeepSeek V3.2", _sizes(
        "deepseek_v32", 61, 7168, 128, 128, 18432, 129280, **_mla(1536), **_routed(256, 8, 2048, 1, 3),
        **_INDEX, num_nextn_predict_layers=1), 671, 37),
    Published("DeepSeek V4 Flash", _sizes(
        "deepseek_v4", 43, 4096, 64, 1, 0, 129280, head_dim=512, q_lora_rank=1024, qk_rope_head_dim=64,
        o_groups=8, o_lora_rank=1024, sliding_window=128, hc_mult=4, compress_ratios=_V4_FLASH_RATIOS,
        **_routed(256, 6, 2048, 1, 0), **_INDEX | {"index_topk": 512}, num_nextn_predict_layers=1), 284, 13),
    Published("DeepSeek V4 Pro", _sizes(
        "deepseek_v4", 61, 7168, 128, 1, 0, 129280, head_dim=512, q_lora_rank=1536, qk_rope_head_dim=64,
        o_groups=16, o_lora_rank=1024, sliding_window=128, hc_mult=4,
        compress_ratios=[128, 128, *([4, 128] * 29), 4], **_routed(384, 6, 3072, 1, 0),
        **_INDEX | {"index_topk": 1024}, num_nextn_predict_layers=1), 1600, 49),
    Published("Kimi K2", _sizes(
        "kimi_k2", 61, 7168, 64, 64, 18432, 163840, **_mla(1536), **_routed(384, 8, 2048, 1, 1)), 1026, 32),
    Published("Kimi K2.5", {
        "model_type": "kimi_k25", "tie_word_embeddings": False, "vision_config": {"vt_hidden_size": 1152},
        "text_config": _sizes(
        "kimi_k2", 61, 7168, 64, 64, 18432, 163840, **_mla(1536), **_routed(384, 8, 2048, 1, 1))}, 1027, 32),
    Published("Kimi Linear 48B-A3B", _sizes(
        "kimi_linear", 27, 2304, 32, 32, 9216, 163840, **_mla(0), **_experts(256, 8, 1024),
        num_shared_experts=1, first_k_dense_replace=1, linear_attn_config={
            "head_dim": 128, "num_heads": 32, "short_conv_kernel_size": 4,
            "full_attn_layers": [4, 8, 12, 16, 20, 24, 27],
            "kda_layers": [layer for layer in range(1, 27) if layer % 4]}), 48, 3),
    Published("Kimi K3", {"model_type": "kimi_k3", "text_config": _sizes(
        "kimi_linear", 93, 7168, 96, 96, 33792, 163840, **_mla(1536), **_experts(896, 16, 3072),
        num_shared_experts=2, first_k_dense_replace=1, routed_expert_hidden_size=3584,
        latent_moe_use_norm=True, mla_use_output_gate=True, linear_attn_config={
            "head_dim": 128, "num_heads": 96, "short_conv_kernel_size": 4, "use_full_rank_gate": True,
            "full_attn_layers": [*range(4, 93, 4), 93]})}, 2800, 104),
    Published("GLM 4 9B", _sizes(
        "glm4", 40, 4096, 32, 2, 13696, 151552, head_dim=128, attention_bias=True), 9.4),
    Published("GLM 4.5", _sizes(
        "glm4_moe", 92, 5120, 96, 8, 12288, 151552, head_dim=128, attention_bias=True, use_qk_norm=True,
        **_routed(160, 8, 1536, 1, 3), num_nextn_predict_layers=1), 355, 32),
    Published("GLM 4.5 Air", _sizes(
        "glm4_moe", 46, 4096, 96, 8, 10944, 151552, head_dim=128, attention_bias=True, use_qk_norm=False,
        **_routed(128, 8, 1408, 1, 1), num_nextn_predict_layers=1), 106, 12),
    Published("GLM 4.7 Flash", _sizes(
        "glm4_moe_lite", 47, 2048, 20, 20, 10240, 154880, **_mla(768, 512, 192, 64, 256),
        **_routed(64, 4, 1536, 1, 1), num_nextn_predict_layers=1), 30, 3),
    Published("GLM 5", _sizes(
        "glm_moe_dsa", 78, 6144, 64, 64, 12288, 154880, **_mla(2048, 512, 192, 64, 256),
        **_routed(256, 8, 2048, 1, 3), **_INDEX | {"index_n_heads": 32}, num_nextn_predict_layers=1),
        744, 40),
    Published("gpt-oss 20B", _sizes(
        "gpt_oss", 24, 2880, 64, 8, 2880, 201088, head_dim=64, num_local_experts=32, num_experts_per_tok=4,
        sliding_window=128), 20.9, 3.6),
    Published("gpt-oss 120B", _sizes(
        "gpt_oss", 36, 2880, 64, 8, 2880, 201088, head_dim=64, num_local_experts=128, num_experts_per_tok=4,
        sliding_window=128), 116.8, 5.1),
    Published("Gemma 2 9B", _sizes(
        "gemma2", 42, 3584, 16, 8, 14336, 256000, head_dim=256, sliding_window=4096), 9.24),
    Published("Gemma 3 27B", {"model_type": "gemma3", "text_config": _sizes(
        "gemma3_text", 62, 5376, 32, 16, 21504, 262208, head_dim=128, sliding_window=1024),
        "vision_config": {"model_type": "siglip_vision_model", "hidden_size": 1152, "num_hidden_layers": 27,
            "intermediate_size": 4304, "image_size": 896, "patch_size": 14, "vision_use_head": False}}, 27.4),
    Published("Gemma 4 26B-A4B", {"model_type": "gemma4", "text_config": _sizes(
        "gemma4_text", 30, 2816, 16, 8, 2112, 262144, head_dim=256, global_head_dim=512, sliding_window=1024,
        hidden_size_per_layer_input=0, attention_k_eq_v=True, num_global_key_value_heads=2,
        enable_moe_block=True, num_experts=128, top_k_experts=8, moe_intermediate_size=704),
        "vision_config": {
            "hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27, "head_dim": 72,
            "num_attention_heads": 16, "num_key_value_heads": 16, "position_embedding_size": 10240}},
        25.8, 3.8),
    Published("Llama 4 Scout", {**_LLAMA_4, "text_config": _sizes(
        "llama4_text", 48, 5120, 40, 8, 8192, 202048, head_dim=128, intermediate_size_mlp=16384,
        num_local_experts=16, num_experts_per_tok=1, interleave_moe_layer_step=1, attention_chunk_size=8192,
        no_rope_layers=_NO_ROPE * 12)}, 109, 17),
    Published("Llama 4 Maverick", {**_LLAMA_4, "text_config": _sizes(
        "llama4_text", 48, 5120, 40, 8, 8192, 202048, head_dim=128, intermediate_size_mlp=16384,
        num_local_experts=128, num_experts_per_tok=1, interleave_moe_layer_step=2,
        attention_chunk_size=8192)}, 400, 17),
    Published("MiniMax M2", _sizes(
        "minimax_m2", 62, 3072, 48, 8, 1536, 200064, head_dim=128, num_local_experts=256,
        num_experts_per_tok=8, use_qk_norm=True), 229, 10),
    Published("MiniMax M3", _sizes(
        "minimax_m3", 60, 6144, 64, 4, 3072, 200064, head_dim=128, num_local_experts=128,
        num_experts_per_tok=4, shared_intermediate_size=3072, dense_intermediate_size=12288,
        moe_layer_freq=[0] * 3 + [1] * 57, sparse_attention_config={
            "sparse_num_index_heads": 4, "sparse_index_dim": 128, "sparse_block_size": 128,
            "sparse_topk_blocks": 16, "sparse_attention_freq": [0] * 3 + [1] * 57}), 428, 23),
    Published("Nemotron 3 Nano 30B-A3B", _sizes(
        "nemotron_h", 52, 2688, 32, 2, 1856, 131072, head_dim=128, hybrid_override_pattern=_NANO,
        **_mamba(64), **_routed(128, 6, 1856, 1, 0), moe_shared_expert_intermediate_size=3712), 31.6, 3.6),
    Published("Nemotron-H 8B", _sizes(
        "nemotron_h", 52, 4096, 32, 8, 21504, 131072, head_dim=128, **_mamba(128),
        hybrid_override_pattern="M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-"), 8.1),
    Published("Phi-3 mini", _sizes("phi3", 32, 3072, 32, 32, 8192, 32064), 3.8),
    Published("Phi-3.5 MoE", _sizes(
        "phimoe", 32, 4096, 32, 8, 6400, 32064, num_local_experts=16, num_experts_per_tok=2), 41.9, 6.6),
    Published("DBRX", {
        "model_type": "dbrx", "d_model": 6144, "n_heads": 48, "n_layers": 40, "max_seq_len": 32768,
        "vocab_size": 100352, "attn_config": {"kv_n_heads": 8, "rope_theta": 500000.0},
        "ffn_config": {"ffn_hidden_size": 10752, "moe_num_experts": 16, "moe_top_k": 4}}, 132, 36),
    Published("MiMo 7B", _sizes("mimo", 36, 4096, 32, 8, 11008, 151680, num_nextn_predict_layers=1), 7.6),
    Published("MiMo V2 Flash", _sizes(
        "mimo_v2_flash", 48, 4096, 64, 4, 16384, 152576, head_dim=192, v_head_dim=128, sliding_window=128,
        swa_num_key_value_heads=8, add_swa_attention_sink_bias=True, moe_layer_freq=[0] + [1] * 47,
        hybrid_layer_pattern=[0, 1, 1, 1, 1, 0, *([1, 1, 1, 1, 1, 0] * 7)], **_routed(256, 8, 2048, 0, 0)),
        309, 15),
    Published("Step 3.5 Flash", {"model_type": "step3p5", **{k: v for k, v in _sizes(
        "step3p5", 45, 4096, 64, 8, 11264, 128896, head_dim=128, moe_num_experts=288, moe_top_k=8,
        moe_intermediate_size=1280, share_expert_dim=1280, sliding_window=512,
        moe_layers_enum=",".join(map(str, range(3, 45))), num_nextn_predict_layers=3,
        layer_types=["full_attention" if layer % 4 == 0 else "sliding_attention" for layer in range(48)],
        attention_other_setting={"num_attention_heads": 96, "num_attention_groups": 8, "head_dim": 128},
        ).items() if k != "num_key_value_heads"}, "num_attention_groups": 8}, 196, 11),
    Published("OLMo 2 7B", _sizes("olmo2", 32, 4096, 32, 32, 11008, 100352), 7.3),
    Published("OLMoE 1B-7B", _sizes(
        "olmoe", 16, 2048, 16, 16, 1024, 50304, num_experts=64, num_experts_per_tok=8), 6.9, 1.3),
    Published("Command R", _sizes("cohere", 40, 8192, 64, 64, 22528, 256000), 35),
    Published("StarCoder2 3B", _sizes("starcoder2", 30, 3072, 24, 2, 12288, 49152, use_bias=True), 3.03),
    Published("Seed OSS 36B", _sizes(
        "seed_oss", 64, 5120, 80, 8, 27648, 155136, head_dim=128, attention_bias=True), 36),
    Published("GPT-2 XL", {
        "model_type": "gpt2", "n_embd": 1600, "n_head": 25, "n_layer": 48, "n_positions": 1024,
        "vocab_size": 50257}, 1.56),
    Published("GPT-NeoX 20B", _sizes("gpt_neox", 44, 6144, 64, 64, 24576, 50432), 20.6),
)  # fmt: skip
