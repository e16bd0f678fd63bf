"""What layers have in place of attention over all tokens: sizes, parameters and FLOPs.

The FLOPs are those that Megatron-LM counts for gated delta nets and Mamba 2, and the products over the keys
that are seen for sparse and compressed attention (docs/models.md, kinds of layers).
"""

from __future__ import annotations

from simcore.records import Struct


def mean_keys(seq: float, most: float = 0.0, chunked: bool = False, causal: bool = True) -> float:
    """Returns the keys that a query of a sequence sees on average.

    most: of a sliding window or a selection, 0 for all; chunked: of its own chunk. causal: without it, twice
    as many, as formulas count that leave the mask out.
    """
    if not most or most >= seq:
        keys = seq / 2
    elif chunked:
        keys = most / 2
    else:
        # The first tokens of a sequence have fewer before them.
        keys = most - most * most / (2 * seq)
    return keys if causal else min(2 * keys, seq)


class Indexer(Struct, frozen=True):
    """What selects the keys that a query of sparse attention sees (DeepSeek-V3.2, arXiv 2512.02556)."""

    heads: int
    """Its heads; 0 where a layer takes the selection of the layer before it (GLM-5.2)."""
    head_dim: int
    """The size of a head."""
    topk: int
    """How many keys a query sees at most."""
    by_head: bool = False
    """Whether it is a pair of projections, normalized by head (MiniMax M3), in place of DeepSeek's."""
    block: int = 1
    """Tokens that it selects at once."""

    def parameters(self, hidden: int, q_rank: int) -> int:
        """Returns its parameters, which every rank has. q_rank: the latent rank of queries."""
        if not self.heads:
            return 0
        if self.by_head:
            return hidden * (self.heads + 1) * self.head_dim + 2 * self.head_dim
        queries = (q_rank or hidden) * self.heads * self.head_dim
        return queries + hidden * (self.head_dim + self.heads) + 2 * self.head_dim

    def score_flops(self, keys: float) -> float:
        """Returns the FLOPs of a token's scores over so many keys."""
        return 2.0 * self.heads * self.head_dim * keys


class Compression(Struct, frozen=True):
    """Attention over a window of tokens and over compressed ones (DeepSeek-V4): one key, which is also the
    value, for all heads.
    """

    ratio: int
    """Tokens that become one; 0 for the window alone."""
    window: int
    """Tokens of the window."""
    q_lora_rank: int
    """The latent rank of queries."""
    o_groups: int
    """Groups of heads whose outputs are projected together."""
    o_lora_rank: int
    """The rank of each group's output."""
    indexer: Indexer | None = None
    """What selects compressed tokens; None where all are seen."""

    @property
    def overlap(self) -> int:
        """How many windows a compressed token is made of: with a selection, its own and the one before."""
        return 2 if self.indexer else 1

    def parameters(self, hidden: int, heads: int, head_dim: int) -> tuple[int, int]:
        """Returns (divided by tensor parallelism, whole on every rank)."""
        sharded, whole = self.product_parameters(hidden, heads, head_dim)
        whole += self.q_lora_rank + head_dim
        if self.ratio:
            whole += self.ratio * self.overlap * head_dim + head_dim
            if self.indexer:
                whole += self.ratio * 2 * self.indexer.head_dim + self.indexer.head_dim
        return sharded + heads, whole

    def product_parameters(self, hidden: int, heads: int, head_dim: int) -> tuple[int, int]:
        """Returns those of linears alone."""
        sharded = heads * head_dim * (self.q_lora_rank + self.o_lora_rank)
        sharded += self.o_groups * self.o_lora_rank * hidden
        whole = hidden * (self.q_lora_rank + head_dim)
        if self.ratio:
            whole += 2 * hidden * self.overlap * head_dim
            if self.indexer:
                index = self.indexer
                whole += 2 * hidden * 2 * index.head_dim + hidden * index.heads
                whole += self.q_lora_rank * index.heads * index.head_dim
        return sharded, whole

    def keys(self, seq: float, causal: bool = True) -> float:
        """Returns the keys that a query sees on average."""
        keys = mean_keys(seq, self.window, causal=causal)
        if self.ratio:
            keys += mean_keys(seq / self.ratio, self.indexer.topk if self.indexer else 0, causal=causal)
        return keys

    def index_flops(self, seq: float, causal: bool = True) -> float:
        """Returns the FLOPs of a token's scores that select compressed tokens."""
        if not self.ratio or not self.indexer:
            return 0.0
        return self.indexer.score_flops(mean_keys(seq / self.ratio, causal=causal))


class DeltaNet(Struct, frozen=True):
    """A gated delta net (arXiv 2412.06464; Qwen3-Next), or Kimi's delta attention (arXiv 2510.26692)."""

    key_heads: int
    """Heads of queries and keys."""
    value_heads: int
    """Heads of values, and states."""
    key_dim: int
    """The size of a head of queries and keys."""
    value_dim: int
    """The size of a head of values."""
    conv: int = 4
    """Tokens of the convolution before it."""
    decay_rank: int = 0
    """The latent rank of a decay for each element of a key (Kimi); 0 for one a head."""
    gate_rank: int = 0
    """The latent rank of the output's gate; 0 for a whole matrix."""

    @property
    def keys(self) -> int:
        """The size of the keys of all heads."""
        return self.key_heads * self.key_dim

    @property
    def values(self) -> int:
        """The size of the values of all heads."""
        return self.value_heads * self.value_dim

    @property
    def inputs(self) -> int:
        """The size of what its linears give: queries, keys, values, the output's gate, decays and rates."""
        decays = self.keys if self.decay_rank else self.value_heads
        return 2 * self.keys + 2 * self.values + self.value_heads + decays

    def parameters(self, hidden: int, heads: int = 0, head_dim: int = 0) -> tuple[int, int]:
        """Returns (divided by tensor parallelism, whole on every rank)."""
        sharded, whole = self.product_parameters(hidden)
        if self.decay_rank:
            return sharded + self.keys + self.value_heads, whole + self.value_dim
        return sharded + 2 * self.value_heads, whole + self.value_dim

    def product_parameters(self, hidden: int) -> tuple[int, int]:
        """Returns those of linears and of the convolution alone."""
        channels = 2 * self.keys + self.values
        sharded = hidden * (channels + self.value_heads + self.values) + channels * self.conv
        whole = 0
        for rank, out in ((self.decay_rank, self.keys), (self.gate_rank, self.values)):
            sharded, whole = (sharded + rank * out, whole + hidden * rank) if rank else (sharded, whole)
        if not self.decay_rank:
            sharded += hidden * self.value_heads
        if not self.gate_rank:
            sharded += hidden * self.values
        return sharded, whole

    def core_flops(self) -> float:
        """Returns the FLOPs of a token between the linears: four products of a key and a value a head."""
        return 8.0 * self.value_heads * self.key_dim * self.value_dim


class Mamba(Struct, frozen=True):
    """A Mamba 2 mixer (arXiv 2405.21060)."""

    heads: int
    """Heads."""
    head_dim: int
    """The size of a head."""
    groups: int
    """Groups of heads with the same B and C."""
    state: int
    """The size of a state."""
    conv: int = 4
    """Tokens of the convolution before it."""
    conv_bias: bool = True
    """Whether the convolution has a bias."""
    bias: bool = False
    """Whether its linears have one."""

    @property
    def inner(self) -> int:
        """The size of all heads."""
        return self.heads * self.head_dim

    @property
    def channels(self) -> int:
        """The size of what the convolution runs over: x, B and C."""
        return self.inner + 2 * self.groups * self.state

    @property
    def inputs(self) -> int:
        """The size of what its first linear gives: the gate, x, B, C and the steps."""
        return self.inner + self.channels + self.heads

    def parameters(self, hidden: int, heads: int = 0, head_dim: int = 0) -> tuple[int, int]:
        """Returns (divided by tensor parallelism, whole on every rank)."""
        sharded, whole = self.product_parameters(hidden)
        sharded += self.channels * (self.conv + self.conv_bias) + 3 * self.heads + self.inner
        return (sharded + self.inputs, whole + hidden) if self.bias else (sharded, whole)

    def product_parameters(self, hidden: int) -> tuple[int, int]:
        """Returns those of linears alone."""
        return hidden * (self.inputs + self.inner), 0

    def core_flops(self) -> float:
        """Returns the FLOPs of a token between the linears."""
        return 7.0 * self.inner * self.state
