"""Families of models: what their configurations do not say of them, a row each.

What a file says is read by what its fields mean (`fields.py`); a row has what the code of a family does
without a field: norms, biases, gates, defaults of fields that its files leave out.
"""

from __future__ import annotations

from typing import Any

from simcore.records import NamedTuple


class Family(NamedTuple):
    """What the files of a family do not say."""

    bias: str = "none"
    """Which linears have a bias, one of `BIASES`."""
    attention_bias: str = "attention"
    """Which have one where `attention_bias` is true."""
    gated: bool = True
    """Whether feed-forward parts have a third matrix."""
    norms: int = 2
    """Norms of a layer."""
    norm_bias: bool = False
    """Whether norms have a bias."""
    qk_norm: str = ""
    """Norms of queries and keys: `head`, `whole`, or none."""
    tied: bool = False
    """Whether the output layer is the embedding, where a file says nothing."""
    gate: str = "none"
    """What attention's output is multiplied by."""
    sinks: bool = False
    """Whether heads have sinks."""
    learned_positions: bool = False
    """Whether it has a table of positions."""
    dropout: tuple[str, ...] = ("attention_dropout",)
    """The fields of dropout."""
    sliding: str = ""
    """Which layers slide where a file has a window and no list: `all`, `some` (`use_sliding_window`, from
    `max_window_layers` on), or by turns: `gemma`, `alternate`, `chunk`. Without it the window is not used.
    """
    shared_gate: bool = False
    """Whether shared experts have a gate."""
    router_bias: bool = False
    """Whether the router has a bias."""
    shared_is_one: bool = False
    """Whether every token takes one more expert, without a field that says so (Llama 4, Hunyuan)."""
    layers: str = ""
    """How layers are told apart where that is the family's own way: a function of `mixed.py`."""
    defaults: tuple[tuple[str, Any], ...] = ()
    """Fields or sizes that files of it leave out."""


def _defaults(**values: Any) -> tuple[tuple[str, Any], ...]:
    return tuple(values.items())


_LLAMA = Family()
_QWEN2 = Family("qkv", sliding="some")
_QWEN3 = Family(qk_norm="head", sliding="some")
_QWEN2_MOE = Family("qkv", shared_gate=True, sliding="some")
_DELTA = Family(
    qk_norm="head", gate="element", shared_gate=True,
    defaults=_defaults(
        full_attention_interval=4, linear_conv_kernel_dim=4, linear_key_head_dim=128,
        linear_value_head_dim=128, linear_num_key_heads=16, linear_num_value_heads=32, head_dim=256,
    ),
)  # fmt: skip
_GEMMA = Family(tied=True, defaults=_defaults(vocab=256000, head_dim=256))
_GEMMA_3 = Family(
    norms=4, qk_norm="head", tied=True, sliding="gemma",
    defaults=_defaults(
        vocab=262208, head_dim=256, heads=8, kv_heads=4, hidden=2304, ffn=9216, layers=26, seq=131072,
        window=4096,
    ),
)  # fmt: skip
_LLAMA_4 = Family(sliding="chunk", shared_is_one=True)
_DEEPSEEK = Family(defaults=_defaults(shared_experts=0))
_GLM_MOE = Family(attention_bias="qkv", defaults=_defaults(shared_experts=1))
_GLM_4 = Family(norms=4, attention_bias="qkv", defaults=_defaults(head_dim=128))
_GPT = Family(
    "all", gated=False, norm_bias=True, tied=True, learned_positions=True,
    dropout=("resid_pdrop", "embd_pdrop", "attn_pdrop"), defaults=_defaults(seq=1024),
)  # fmt: skip
_NEOX = Family("all", gated=False, norm_bias=True, dropout=("attention_dropout", "hidden_dropout"))
_NEMOTRON_H = Family(
    gated=False, norms=1, layers="blocks", dropout=(),
    defaults=_defaults(head_dim=128, ssm_conv=4, ssm_state=128, ssm_groups=8, ssm_head_dim=64),
)  # fmt: skip
_MINIMAX_M3 = Family(qk_norm="head", defaults=_defaults(
    index_heads=4, index_head_dim=128, index_block_size=128, index_topk_blocks=16, dense_ffn=12288,
))  # fmt: skip
_STEP = Family(qk_norm="head", gate="head", defaults=_defaults(head_dim=128))
_KIMI_LINEAR = Family(defaults=_defaults(
    head_dim=0, shared_experts=1, dense_layers=1, qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128,
    kv_lora_rank=512,
))  # fmt: skip
_COHERE = Family(norms=1, tied=True)
_OLMO_2 = Family(qk_norm="whole", sliding="olmo")

FAMILIES: dict[str, Family] = {
    "llama": _LLAMA,
    "mistral": Family(sliding="all"),
    "mixtral": Family(sliding="all"),
    "ministral": Family(sliding="all"),
    "ministral3": Family(sliding="all"),
    "qwen2": _QWEN2,
    "qwen3": _QWEN3,
    "qwen2_moe": _QWEN2_MOE,
    "qwen3_moe": _QWEN3,
    "qwen2_vl": _QWEN2,
    "qwen2_vl_text": _QWEN2,
    "qwen2_5_vl": _QWEN2,
    "qwen2_5_vl_text": _QWEN2,
    "qwen3_vl_text": _QWEN3,
    "qwen3_vl_moe_text": _QWEN3,
    "qwen3_next": _DELTA,
    "qwen3_5_text": _DELTA,
    "qwen3_5_moe_text": _DELTA,
    "deepseek_v2": _DEEPSEEK,
    "deepseek_v3": _DEEPSEEK,
    "deepseek_v32": _DEEPSEEK,
    "deepseek_v4": Family(layers="compressed", sinks=True, defaults=_defaults(window=128, hc_mult=4)),
    "deepseek_ref": Family(layers="compressed", sinks=True, defaults=_defaults(window=128, hc_mult=4)),
    "kimi_k2": _DEEPSEEK,
    "kimi_linear": _KIMI_LINEAR,
    "glm_moe_dsa": _DEEPSEEK,
    "glm4_moe": _GLM_MOE,
    "glm4_moe_lite": _DEEPSEEK,
    "glm4v_moe_text": _GLM_MOE,
    "glm4": _GLM_4,
    "glm4v_text": _GLM_4,
    "glm": Family(attention_bias="qkv", defaults=_defaults(head_dim=128)),
    "gpt_oss": Family("all", sinks=True, router_bias=True, sliding="alternate"),
    "llama4_text": _LLAMA_4,
    "gemma": _GEMMA,
    "gemma2": Family(norms=4, tied=True, sliding="alternate", defaults=_defaults(vocab=256000, head_dim=256)),
    "gemma3_text": _GEMMA_3,
    "gemma4_text": Family(
        norms=4, qk_norm="head", tied=True, sliding="gemma", layers="gemma4",
        defaults=_defaults(hidden_size_per_layer_input=256, head_dim=256),
    ),
    "minimax_m2": Family(qk_norm="whole"),
    "minimax_m3": _MINIMAX_M3,
    "minimax_m3_vl_text": _MINIMAX_M3,
    "nemotron": Family(gated=False, norm_bias=True),
    "nemotron_h": _NEMOTRON_H,
    "nemotron-nas": Family(layers="pruned"),
    "phimoe": Family(norm_bias=True, sliding="all"),
    "phi3": Family(sliding="all"),
    "dbrx": Family(norm_bias=False, dropout=("resid_pdrop", "emb_pdrop", "attn_pdrop")),
    "mimo": Family("qkv", sliding="some"),
    "mimo_v2_flash": Family(sliding="mimo", defaults=_defaults(swa_num_key_value_heads=8)),
    "step3p5": _STEP,
    "step3p7": _STEP,
    "olmo2": _OLMO_2,
    "olmo3": _OLMO_2,
    "olmoe": Family(qk_norm="whole"),
    "granite": Family(tied=True),
    "granitemoe": Family(tied=True),
    "cohere": _COHERE,
    "cohere2": _COHERE._replace(sliding="cohere"),
    "starcoder2": Family("all", gated=False, norm_bias=True, tied=True, sliding="all"),
    "internlm2": _LLAMA,
    "internlm3": Family(attention_bias="attention"),
    "baichuan": _LLAMA,
    "smollm3": Family(tied=True),
    "seed_oss": Family(attention_bias="qkv"),
    "exaone4": Family(qk_norm="head", sliding="exaone"),
    "ernie4_5": Family(tied=True),
    "ernie4_5_moe": Family(tied=True),
    "hunyuan_v1_dense": Family(qk_norm="head"),
    "hunyuan_v1_moe": Family(qk_norm="head", shared_is_one=True),
    "dots1": Family(qk_norm="head", sliding="some"),
    "arcee": Family(gated=False),
    "apertus": Family(gated=False, qk_norm="head"),
    "bailing_moe_v2": Family(qk_norm="head"),
    # No names of Hugging Face: what configurations of other programs are.
    "meta": Family(),
    "simai": _DEEPSEEK,
    "simumax": Family(),
    "megatron": Family(),
    "gpt2": _GPT,
    "gpt_neox": _NEOX,
}  # fmt: skip

# Models of text beside a vision tower whose own file calls the text model otherwise, or not at all.
NESTED = {
    "llama4": "llama4_text", "gemma3": "gemma3_text", "gemma4": "gemma4_text", "kimi_k25": "kimi_k2",
    "kimi_k3": "kimi_linear", "qwen3_vl": "qwen3_vl_text", "qwen3_vl_moe": "qwen3_vl_moe_text",
    "qwen3_5": "qwen3_5_text", "qwen3_5_moe": "qwen3_5_moe_text", "minimax_m3_vl": "minimax_m3_vl_text",
    "glm4v": "glm4v_text", "glm4v_moe": "glm4v_moe_text",
}  # fmt: skip
