"""The sizes of a transformer, and the number of its parameters.

Import from here: `Model`, `Moe`, `Mla`, `check_model`.
"""

from __future__ import annotations

from simcore.diagnostics import UsageError
from simcore.records import Struct

Biases = str
# Which linears have a bias: all in GPT, the projections to queries, keys and values in Qwen 2.
BIASES: tuple[Biases, ...] = ("all", "qkv", "none")
# More is a mistyped number: GPT-3 has 96 layers, the largest vocabularies 256 thousand words.
_MOST = {
    "layers": 10_000, "hidden": 1 << 20, "heads": 1 << 14, "kv_heads": 1 << 14, "head_dim": 1 << 14,
    "ffn": 1 << 22, "vocab": 1 << 24, "seq": 1 << 24,
    "vocab_step": 1 << 20,
}  # fmt: skip
_MOST_EXPERTS = 1 << 14


class Moe(Struct, frozen=True):
    """The experts of a layer."""

    experts: int
    """How many there are."""
    experts_per_token: int
    """Routed experts that a token is sent to."""
    ffn: int
    """The inner size of one expert."""
    shared_experts: int = 0
    """Further experts, which every token takes."""
    dense_layers: int = 0
    """How many of the first layers have no experts."""


class Mla(Struct, frozen=True):
    """Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434)."""

    q_lora_rank: int
    """The latent rank of queries; 0 where they are projected at once."""
    kv_lora_rank: int
    """The latent rank of keys and values."""
    qk_nope_head_dim: int
    """The size of a head of queries and keys without positions."""
    qk_rope_head_dim: int
    """The size of a head of queries and keys with rotary positions."""
    v_head_dim: int
    """The size of a head of values."""


class Model(Struct, frozen=True):
    """The sizes of a transformer."""

    name: str
    """The name of the model."""
    layers: int
    """Layers."""
    hidden: int
    """The hidden size."""
    heads: int
    """Attention heads."""
    kv_heads: int
    """Key-value heads."""
    head_dim: int
    """The size of a head."""
    ffn: int
    """The inner size of the dense feed-forward part."""
    gated: bool
    """Whether that part has a third matrix (SwiGLU)."""
    vocab: int
    """The vocabulary."""
    seq: int
    """Tokens of a sequence in training."""
    tied_embeddings: bool = True
    """Whether the output layer is the embedding."""
    dropout: bool = False
    """Whether training has dropout."""
    bias: Biases = "none"
    """Which linears have a bias, one of `BIASES`."""
    norm_bias: bool = False
    """Whether norms have a bias: LayerNorm does, RMSNorm does not."""
    positions: int = 0
    """Rows of a learned position table; 0 without one."""
    qk_norm: bool = False
    """Whether queries and keys are normalized by head (Qwen 3)."""
    moe: Moe | None = None
    """The experts; None without any."""
    mla: Mla | None = None
    """The sizes of latent attention; None for other attention."""
    vocab_step: int = 128
    """Of what the vocabulary becomes a multiple on each rank of tp; Megatron-LM's default is 128."""

    def is_moe(self, layer: int) -> bool:
        """Returns whether a layer, from 0, has experts."""
        return self.moe is not None and layer >= self.moe.dense_layers

    @property
    def query_dim(self) -> int:
        """The size of a query or key of one head."""
        return self.mla.qk_nope_head_dim + self.mla.qk_rope_head_dim if self.mla else self.head_dim

    @property
    def value_dim(self) -> int:
        """The size of a value of one head."""
        return self.mla.v_head_dim if self.mla else self.head_dim

    @property
    def norm(self) -> int:
        """Parameters of one norm over the hidden size."""
        return self.hidden * (2 if self.norm_bias else 1)

    def attention(self) -> tuple[int, int]:
        """Returns the parameters of a layer's attention: (divided by tensor parallelism, whole on every
        rank).
        """
        h, heads = self.hidden, self.heads
        if self.mla:
            mla = self.mla
            sharded = self.latent_up + heads * mla.v_head_dim * h
            whole = h * (mla.kv_lora_rank + mla.qk_rope_head_dim) + mla.kv_lora_rank
            return sharded, whole + (h * mla.q_lora_rank + mla.q_lora_rank if mla.q_lora_rank else 0)
        inner, kv = heads * self.head_dim, 2 * self.kv_heads * self.head_dim
        sharded, whole = h * (2 * inner + kv), 0
        if self.bias != "none":
            sharded += inner + kv
        if self.bias == "all":
            whole += h
        if self.qk_norm:
            whole += 2 * self.head_dim
        return sharded, whole

    @property
    def latent_up(self) -> int:
        """Parameters that make queries, keys and values of all heads out of latent vectors; 0 without MLA."""
        mla = self.mla
        if mla is None:
            return 0
        queries = (mla.q_lora_rank or self.hidden) * self.heads * self.query_dim
        return queries + mla.kv_lora_rank * self.heads * (mla.qk_nope_head_dim + mla.v_head_dim)

    def mlp(self, ffn: int) -> tuple[int, int]:
        """Returns the parameters of a feed-forward part of that inner size: (divided by tensor parallelism,
        whole on every rank).
        """
        sharded = (3 if self.gated else 2) * self.hidden * ffn
        if self.bias != "all":
            return sharded, 0
        return sharded + (2 if self.gated else 1) * ffn, self.hidden

    @property
    def parameters(self) -> int:
        """All parameters of the model."""
        return self._count(self.moe.experts if self.moe else 0)

    @property
    def active_parameters(self) -> int:
        """The parameters that one token uses: of the experts those it is sent to and the shared ones."""
        return self._count(self.moe.experts_per_token if self.moe else 0)

    @property
    def embedding(self) -> int:
        """Parameters of the word embedding; the output layer has as many."""
        return self.vocab * self.hidden

    def _count(self, experts: int) -> int:
        moe_layers = sum(map(self.is_moe, range(self.layers)))
        each = sum(self.attention()) + 2 * self.norm
        total = self.layers * each + (self.layers - moe_layers) * sum(self.mlp(self.ffn))
        if self.moe:
            expert = sum(self.mlp(self.moe.ffn))
            router = self.moe.experts * self.hidden
            total += moe_layers * (expert * (experts + self.moe.shared_experts) + router)
        tables = self.embedding * (1 if self.tied_embeddings else 2) + self.positions * self.hidden
        return total + tables + self.norm


def check_model(model: Model) -> Model:
    """Returns the model if its sizes fit. Raises `UsageError` that names what does not fit, and what
    would.
    """
    for name, most in _MOST.items():
        value = getattr(model, name)
        least = 0 if name == "ffn" and model.moe and model.moe.dense_layers == 0 else 1
        if not least <= value <= most:
            raise UsageError(f"{name}: found {value}, expected {least} to {most}")
    if model.heads % model.kv_heads:
        fitting = ", ".join(str(divisor) for divisor in _divisors(model.heads))
        raise UsageError(
            f"kv_heads: {model.kv_heads} does not divide heads {model.heads}: {fitting} would fit"
        )
    if model.bias not in BIASES:
        raise UsageError(f"bias: found {model.bias}, expected one of {', '.join(BIASES)}")
    if model.moe:
        moe = model.moe
        if not 1 <= moe.experts <= _MOST_EXPERTS:
            raise UsageError(f"experts: found {moe.experts}, expected 1 to {_MOST_EXPERTS}")
        if not 1 <= moe.experts_per_token <= moe.experts:
            raise UsageError(
                f"experts_per_token: found {moe.experts_per_token}, expected 1 to experts {moe.experts}"
            )
        if not 1 <= moe.ffn <= _MOST["ffn"]:
            raise UsageError(f"ffn of the experts: found {moe.ffn}, expected 1 to {_MOST['ffn']}")
        if not 0 <= moe.dense_layers <= model.layers:
            raise UsageError(f"dense_layers: found {moe.dense_layers}, expected 0 to layers {model.layers}")
        if not 0 <= moe.shared_experts <= _MOST_EXPERTS:
            raise UsageError(f"shared_experts: found {moe.shared_experts}, expected 0 to {_MOST_EXPERTS}")
    if model.mla:
        for field in model.mla.__struct_fields__:
            value, least = getattr(model.mla, field), int(field != "q_lora_rank")
            if not least <= value <= 1 << 20:
                raise UsageError(f"{field}: found {value}, expected {least} to {1 << 20}")
    return model


def _divisors(value: int) -> list[int]:
    return [divisor for divisor in range(1, value + 1) if value % divisor == 0]
