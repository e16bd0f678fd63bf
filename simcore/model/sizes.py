"""The sizes of a transformer, and the number of its parameters.

Import from here: `Model`, `Moe`, `Mla`, `check_model`; what layers have in place of attention, `mixers.py`.
"""

from __future__ import annotations

from simcore.diagnostics import UsageError
from simcore.model.mixers import Compression, DeltaNet, Indexer, Mamba
from simcore.records import Struct, replace

Biases = str
# Which linears have a bias: all in GPT, those of attention, the projections to queries, keys and values in
# Qwen 2, or those of the feed-forward parts.
BIASES: tuple[Biases, ...] = ("all", "attention", "qkv", "mlp", "none")
# What attention's output is multiplied by: nothing, a number a head, or a number each of its elements.
GATES: tuple[str, ...] = ("none", "head", "element")
# More is a mistyped number: GPT-3 has 96 layers, the largest vocabularies 256 thousand words.
_MOST = {
    "layers": 10_000, "hidden": 1 << 20, "heads": 1 << 14, "kv_heads": 1 << 14, "head_dim": 1 << 14,
    "ffn": 1 << 22, "vocab": 1 << 24, "seq": 1 << 24, "longest": 1 << 28, "v_head_dim": 1 << 14,
    "window": 1 << 28, "norms": 64, "streams": 64, "mtp_layers": 10_000, "layer_other": 1 << 50,
    "other": 1 << 50, "vision_parameters": 1 << 50, "vocab_step": 1 << 20,
}  # fmt: skip
_MAY_BE_0 = frozenset((
    "longest", "v_head_dim", "window", "norms", "mtp_layers", "layer_other", "other", "vision_parameters",
))  # fmt: skip
_MOST_OF_PART = 1 << 20
_MOST_EXPERTS = 1 << 14
MOST_LAYERS = _MOST["layers"]


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
    shared_ffn: int = 0
    """The inner size of what every token takes, where it is not `shared_experts` times `ffn`."""
    latent: int = 0
    """The size that tokens are projected to before their experts (Nemotron 3); 0 for the hidden size."""
    router_bias: bool = False
    """Whether the router adds a bias."""
    other: int = 0
    """Further parameters of a layer's routing: gates of shared experts, scales."""
    groups: int = 0
    """The groups of experts, by number, of which a token chooses some first (group-limited routing); 0 for
    none.
    """
    groups_per_token: int = 0
    """How many it chooses."""

    @property
    def shared_inner(self) -> int:
        """The inner size of what every token takes; 0 without any."""
        return self.shared_ffn or self.shared_experts * self.ffn

    def width(self, hidden: int) -> int:
        """Returns the size of a token as experts get it."""
        return self.latent or hidden

    def whole(self, hidden: int) -> int:
        """Returns the parameters of a layer's routing, which every rank has."""
        return self.routing(hidden) + (self.experts if self.router_bias else 0) + self.other

    def routing(self, hidden: int) -> int:
        """Returns the parameters of the router and of the projections to and from the latent size."""
        return self.experts * hidden + 2 * hidden * self.latent


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
    v_head_dim: int = 0
    """The size of a head of values; 0 for that of queries and keys."""
    window: int = 0
    """How many tokens a query sees at most; 0 for all before it."""
    chunked: bool = False
    """Whether it sees those of its own chunk of so many tokens alone (Llama 4)."""
    gate: str = "none"
    """What attention's output is multiplied by, one of `GATES`."""
    shares_kv: bool = False
    """Whether values are the keys."""
    sinks: bool = False
    """Whether each head has a learned sink."""
    qk_norm_whole: bool = False
    """Whether queries and keys are normalized over all heads at once (OLMo 2, MiniMax M2)."""
    norms: int = 2
    """Norms over the hidden size of a layer."""
    attends: bool = True
    """Whether layers have attention, or what stands in its place."""
    indexer: Indexer | None = None
    """What selects the keys of sparse attention; None where all are seen."""
    compression: Compression | None = None
    """Attention over compressed keys (DeepSeek-V4), in place of other attention."""
    delta: DeltaNet | None = None
    """A gated delta net in place of attention."""
    mamba: Mamba | None = None
    """A Mamba 2 mixer in place of attention."""
    streams: int = 1
    """Residual streams between layers (hyper-connections of DeepSeek-V4)."""
    longest: int = 0
    """The positions that it was made for, where they are more than `seq`."""
    layer_other: int = 0
    """Further parameters of a layer, which every rank has."""
    other: int = 0
    """Further parameters of the model, with its embedding."""
    vision_parameters: int = 0
    """Parameters of the vision tower and its projector."""
    mtp_layers: int = 0
    """Layers of the checkpoint that predict a further token each."""
    mtp_kind: int = -1
    """Their kind, an index of `kinds`; -1 for that of the last layer."""
    kinds: tuple[Model, ...] = ()
    """Models of one kind of layer each, where layers differ by more than experts; () where they do not."""
    pattern: tuple[int, ...] = ()
    """The kind of each layer, an index of `kinds`."""

    def is_moe(self, layer: int) -> bool:
        """Returns whether a layer, from 0, has experts."""
        if self.kinds:
            return self.kinds[self.pattern[layer]].moe is not None
        return self.moe is not None and layer >= self.moe.dense_layers

    def kind_of(self, layer: int) -> int:
        """Returns the kind of a layer: an index of `kinds`; without any, 1 with experts and 0 without."""
        return self.pattern[layer] if self.kinds else int(self.is_moe(layer))

    @property
    def unmeasured(self) -> list[str]:
        """What layers have of which no kernel was measured, in words."""
        kinds = self.kinds or (self,)
        words = {
            "attention over a window": any(kind.window for kind in kinds),
            "sparse attention": any(kind.indexer for kind in kinds),
            "attention over compressed tokens": any(kind.compression for kind in kinds),
            "gated delta nets": any(kind.delta for kind in kinds),
            "Mamba 2": any(kind.mamba for kind in kinds),
        }
        return [word for word, has in words.items() if has]

    @property
    def prediction_kind(self) -> int:
        """The kind of layers that predict further tokens."""
        return self.mtp_kind if self.mtp_kind >= 0 else self.kind_of(self.layers - 1)

    def of_kind(self, kind: int) -> Model:
        """Returns the sizes of a kind of layer."""
        return self.kinds[kind] if self.kinds else self

    def experts_of(self, kind: int) -> Moe | None:
        """Returns the experts of a kind of layer; None without any."""
        return self.kinds[kind].moe if self.kinds else self.moe if kind else None

    def count_kinds(self) -> list[tuple[int, int]]:
        """Returns (kind, how many layers) of each kind that the model has."""
        if self.kinds:
            return [(kind, self.pattern.count(kind)) for kind in sorted(set(self.pattern))]
        dense = self.layers if self.moe is None else min(self.moe.dense_layers, self.layers)
        return [(kind, count) for kind, count in ((0, dense), (1, self.layers - dense)) if count]

    @property
    def query_dim(self) -> int:
        """The size of a query or key of one head."""
        return self.mla.qk_nope_head_dim + self.mla.qk_rope_head_dim if self.mla else self.head_dim

    @property
    def value_dim(self) -> int:
        """The size of a value of one head."""
        return self.mla.v_head_dim if self.mla else self.v_head_dim or self.head_dim

    @property
    def mixer(self) -> Compression | DeltaNet | Mamba | None:
        """What stands in place of attention; None for attention itself."""
        return self.compression or self.delta or self.mamba

    @property
    def has_scores(self) -> bool:
        """Whether layers have scores of queries and keys."""
        return self.attends and self.mixer is None

    @property
    def has_kv_heads(self) -> bool:
        """Whether layers have attention whose keys and values are projected head by head."""
        return self.attends and self.mla is None and self.mixer is None

    @property
    def kv_width(self) -> int:
        """The size of the key and the value of one head, as they are projected."""
        return self.head_dim if self.shares_kv else self.head_dim + self.value_dim

    @property
    def norm(self) -> int:
        """Parameters of one norm over the hidden size."""
        return self.hidden * (2 if self.norm_bias else 1)

    def attention(self) -> tuple[int, int]:
        """Returns the parameters of a layer's attention: (divided by tensor parallelism, whole on every
        rank).
        """
        h, heads = self.hidden, self.heads
        if not self.attends:
            return 0, 0
        if self.mixer:
            return self.mixer.parameters(h, heads, self.head_dim)
        if self.mla:
            mla = self.mla
            sharded = self.latent_up + heads * mla.v_head_dim * h
            whole = h * (mla.kv_lora_rank + mla.qk_rope_head_dim) + mla.kv_lora_rank
            whole += h * mla.q_lora_rank + mla.q_lora_rank if mla.q_lora_rank else 0
        else:
            inner, kv = heads * self.head_dim, self.kv_heads * self.kv_width
            sharded, whole = h * (inner + heads * self.value_dim + kv), 0
            if self.bias in ("all", "attention", "qkv"):
                sharded += inner + kv
            if self.bias in ("all", "attention"):
                whole += h
            if self.qk_norm:
                whole += 2 * self.head_dim
            if self.qk_norm_whole:
                sharded += (heads + self.kv_heads) * self.head_dim
        sharded += self.gate_width * h + (heads if self.sinks else 0)
        if self.indexer:
            whole += self.indexer.parameters(h, self.mla.q_lora_rank if self.mla else 0)
        return sharded, whole

    @property
    def gate_width(self) -> int:
        """The numbers that attention's output is multiplied by."""
        return self.heads * {"none": 0, "head": 1, "element": self.value_dim}[self.gate]

    @property
    def latent_up(self) -> int:
        """Parameters that make queries, keys and values of all heads out of latent vectors; 0 without MLA."""
        mla = self.mla
        if mla is None:
            return 0
        queries = (mla.q_lora_rank or self.hidden) * self.heads * self.query_dim
        return queries + mla.kv_lora_rank * self.heads * (mla.qk_nope_head_dim + mla.v_head_dim)

    def mlp(self, ffn: int, width: int = 0) -> tuple[int, int]:
        """Returns the parameters of a feed-forward part of that inner size: (divided by tensor parallelism,
        whole on every rank).

        width: of its input; 0 for the hidden size.
        """
        sharded = (3 if self.gated else 2) * (width or self.hidden) * ffn
        if self.bias not in ("all", "mlp") or not ffn:
            return sharded, 0
        return sharded + (2 if self.gated else 1) * ffn, width or self.hidden

    @property
    def parameters(self) -> int:
        """All parameters of the checkpoint, with its vision tower and without layers that predict further
        tokens.
        """
        return self._count(None) + self.vision_parameters

    @property
    def active_parameters(self) -> int:
        """The parameters that one token of text uses: of the experts those it is sent to and the shared
        ones.
        """
        return self._count(self.moe.experts_per_token if self.moe else 0)

    @property
    def active_parameters_without_embedding(self) -> int:
        """Those without the table of the input, which is read at one row; a tied one is the output layer."""
        return self.active_parameters - (0 if self.tied_embeddings else self.embedding)

    @property
    def mtp_parameters(self) -> int:
        """The parameters of the layers that predict further tokens: each has a projection of two hidden
        states and three norms, and shares its embedding and output layer with the model.
        """
        if not self.mtp_layers:
            return 0
        layer = self.layer_parameters(self.prediction_kind)
        return self.mtp_layers * (layer + 2 * self.hidden**2 + 3 * self.norm)

    def layer_parameters(self, kind: int, experts: int | None = None) -> int:
        """Returns the parameters of a layer of a kind. experts: routed ones that are counted; None for
        all.
        """
        model, moe = self.of_kind(kind), self.experts_of(kind)
        size = sum(model.attention()) + model.norms * model.norm + model.layer_other
        if moe is None:
            return size + sum(model.mlp(model.ffn))
        expert = sum(model.mlp(moe.ffn, moe.width(model.hidden)))
        size += expert * (moe.experts if experts is None else experts) + moe.whole(model.hidden)
        return size + sum(model.mlp(moe.shared_inner))

    @property
    def embedding(self) -> int:
        """Parameters of the word embedding; the output layer has as many."""
        return self.vocab * self.hidden

    def _count(self, experts: int | None) -> int:
        total = sum(count * self.layer_parameters(kind, experts) for kind, count in self.count_kinds())
        tables = self.embedding * (1 if self.tied_embeddings else 2) + self.positions * self.hidden
        return total + tables + self.norm + self.other


def check_model(model: Model) -> Model:
    """Returns the model if its sizes fit. Raises `UsageError` that names what does not fit, and what
    would.
    """
    if model.kinds:
        return _check_kinds(model)
    return _check_kind(model, 0 if model.moe and model.moe.dense_layers == 0 else 1)


def check_layers(layers: int) -> int:
    """Returns a number of layers, if there may be as many. Raises `UsageError` otherwise."""
    if not 1 <= layers <= _MOST["layers"]:
        raise UsageError(f"layers: found {layers}, expected 1 to {_MOST['layers']}")
    return layers


def _check_kinds(model: Model) -> Model:
    """Returns a model of several kinds of layers if each of them fits."""
    check_layers(model.layers)
    if len(model.pattern) != model.layers:
        raise UsageError(f"pattern: found {len(model.pattern)} layers, expected layers {model.layers}")
    if not all(0 <= kind < len(model.kinds) for kind in (*model.pattern, max(model.mtp_kind, 0))):
        raise UsageError(f"pattern: found a kind beyond the {len(model.kinds)} kinds")
    for kind in (replace(model, kinds=(), pattern=()), *model.kinds):
        if kind.kinds:
            raise UsageError("kinds: found kinds of a kind, expected one kind of layer each")
        _check_kind(kind, 0)
    return model


def _check_kind(model: Model, least_ffn: int) -> Model:
    """Returns the sizes of one kind of layer if they fit."""
    for name, most in _MOST.items():
        value = getattr(model, name)
        least = least_ffn if name == "ffn" else int(name not in _MAY_BE_0)
        if not least <= value <= most:
            raise UsageError(f"{name}: found {value}, expected {least} to {most}")
    if model.heads % model.kv_heads:
        fitting = ", ".join(str(divisor) for divisor in _divisors(model.heads))
        raise UsageError(
            f"kv_heads: {model.kv_heads} does not divide heads {model.heads}: {fitting} would fit"
        )
    for name, choices in (("bias", BIASES), ("gate", GATES)):
        if getattr(model, name) not in choices:
            expected = ", ".join(choices)
            raise UsageError(f"{name}: found {getattr(model, name)}, expected one of {expected}")
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
        _check_sizes(moe, ("shared_ffn", "latent", "other", "groups", "groups_per_token"))
        _check_groups(moe)
    for part, may_be_0 in (
        (model.mla, ("q_lora_rank",)), (model.delta, ("decay_rank", "gate_rank")), (model.mamba, ()),
        (model.compression, ("ratio",)), (model.indexer, ("heads",)),
        (model.compression and model.compression.indexer, ()),
    ):  # fmt: skip
        if part is not None:
            _check_sizes(part, may_be_0)
    return model


def _check_groups(moe: Moe) -> None:
    """Raises `UsageError` for groups of experts that cannot be."""
    groups, per_token = moe.groups, moe.groups_per_token
    if not groups and not per_token:
        return
    if not groups or moe.experts % groups:
        fitting = ", ".join(str(divisor) for divisor in _divisors(moe.experts))
        raise UsageError(f"groups: {groups} does not divide experts {moe.experts}: {fitting} would fit")
    least = -(-moe.experts_per_token * groups // moe.experts)
    if not least <= per_token <= groups:
        raise UsageError(
            f"groups_per_token: found {per_token}, expected {least} to {groups}, that a token finds its "
            f"{moe.experts_per_token} experts in"
        )


def _check_sizes(part: Struct, may_be_0: tuple[str, ...]) -> None:
    """Raises `UsageError` for a size of a part of a model that cannot be."""
    for field in part.__struct_fields__:
        value, least = getattr(part, field), int(field not in may_be_0)
        if isinstance(part, Moe) and field not in may_be_0:
            continue
        if isinstance(value, int) and not isinstance(value, bool) and not least <= value <= _MOST_OF_PART:
            raise UsageError(f"{field}: found {value}, expected {least} to {_MOST_OF_PART}")


def _divisors(value: int) -> list[int]:
    return [divisor for divisor in range(1, value + 1) if value % divisor == 0]
