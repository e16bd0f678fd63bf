"""What the ops of a row cost on a GPU, each with what bounds it: compute, memory or its launch; and the FLOPs
of a step, as papers count them for MFU and HFU.

Time of an op = max(FLOPs / (peak x efficiency), bytes / (hbm x share)) + launch (docs/models.md).
"""

from __future__ import annotations

from collections.abc import Sequence

from simcore.model.gpu import Gpu
from simcore.model.training import Training
from simcore.records import NamedTuple, replace
from simcore.workload.model import GroupKind

# A tile of a matrix product: what one SM computes at a time.
_TILE_ROWS, _TILE_COLUMNS = 128, 256


class Op(NamedTuple):
    """One kernel, or some alike. efficiency: share of the peak that its FLOPs reach, 0 without FLOPs.

    seconds: with its launch. bound: `compute`, `memory` or `launch`, by what takes longest.
    """

    name: str
    flops: float
    bytes: float
    efficiency: float
    seconds: float
    bound: str


class RowOps(NamedTuple):
    """The ops of a row: forward, input gradient, weight gradient."""

    fwd: list[Op]
    ig: list[Op]
    wg: list[Op]


class Costs:
    """The ops of one training on one GPU. `scale`: of all times, as measured ones want it."""

    def __init__(self, gpu: Gpu, training: Training) -> None:
        self.gpu = gpu
        self.training = training
        self.peak = gpu.peak * 1e12
        self.peak_linear = (gpu.peak_fp8 if training.fp8 else gpu.peak) * 1e12
        self.memory = gpu.hbm * 1e9 * gpu.elementwise
        self.launch = gpu.launch_us * 1e-6

    # -- kinds of op ---------------------------------------------------------------------

    def product(self, name: str, m: int, n: int, k: int, batch: int = 1) -> Op:
        """A product of matrices, m x k by k x n: of `batch` of them, the experts' grouped product."""
        gpu = self.gpu
        tiles = batch * -(-m // _TILE_ROWS) * -(-n // _TILE_COLUMNS)
        # The last wave of tiles leaves SMs idle.
        wave = tiles / (-(-tiles // gpu.sms) * gpu.sms)
        efficiency = (gpu.grouped if batch > 1 else gpu.matmul) * wave * k / (k + gpu.half_depth)
        flops = 2.0 * batch * m * n * k
        moved = 2.0 * batch * (m * k + k * n + m * n)
        return self._op(name, flops, moved, efficiency, self.peak_linear)

    def uneven_product(self, name: str, sizes: Sequence[tuple[int, int, int]]) -> Op:
        """Products of matrices (m, n, k) of unequal sizes in one kernel: grouped, as the experts' are."""
        gpu = self.gpu
        tiles = sum(-(-m // _TILE_ROWS) * -(-n // _TILE_COLUMNS) for m, n, k in sizes if k)
        wave = tiles / (-(-tiles // gpu.sms) * gpu.sms) if tiles else 1.0
        reached = (gpu.grouped if len(sizes) > 1 else gpu.matmul) * wave
        flops = seconds = moved = 0.0
        for m, n, k in sizes:
            if m and n and k:
                flops += 2.0 * m * n * k
                seconds += 2.0 * m * n * k / (self.peak_linear * reached * k / (k + gpu.half_depth))
                moved += 2.0 * (m * k + k * n + m * n)
        efficiency = flops / (seconds * self.peak_linear) if seconds else 0.0
        return self._op(name, flops, moved, efficiency, self.peak_linear)

    def elementwise(
        self, name: str, numbers: float, passes: float, kernels: int = 1, share: float | None = None
    ) -> Op:
        """`passes` reads and writes of so many 2-byte numbers; share: of hbm, where not that of most."""
        return self._op(name, 0.0, 2.0 * numbers * passes, 0.0, self.peak, kernels, share)

    def _op(
        self, name: str, flops: float, moved: float, efficiency: float, peak: float, kernels: int = 1,
        share: float | None = None,
    ) -> Op:  # fmt: skip
        compute = flops / (peak * efficiency) if flops else 0.0
        reached = self.memory if share is None else self.gpu.hbm * 1e9 * share
        memory, launch = moved / reached, kernels * self.launch
        bound = "launch" if launch > max(compute, memory) else "compute" if compute >= memory else "memory"
        return Op(name, flops, moved, efficiency, max(compute, memory) + launch, bound)

    # -- parts of a layer ----------------------------------------------------------------

    def linear(self, name: str, tokens: int, out: int, inner: int, batch: int = 1) -> RowOps:
        """A linear on `tokens`: its product, and those of its two gradients."""
        return RowOps(
            [self.product(name, tokens, out, inner, batch)],
            [self.product(name, tokens, inner, out, batch)],
            [self.product(name, inner, out, tokens, batch)],
        )

    def attention_core(self) -> RowOps:
        """Attention between its linears."""
        training, gpu = self.training, self.gpu
        model = training.model
        heads = model.heads / training.tp
        queries = training.seq / training.cp
        scores = training.microbatch_size * heads * queries * training.seq
        flops = 2.0 * scores * (model.query_dim + model.value_dim)
        moved = 2.0 * training.tokens * heads * 2 * (model.query_dim + model.value_dim)
        if training.flash:
            once = self._op("flash attention", flops / 2, moved, gpu.flash_forward, self.peak)
            twice = self._op(
                "flash attention", 2.5 * flops / 2, 2.5 * moved, gpu.flash_backward, self.peak, 3
            )
            return RowOps([once], [twice], [])
        dropped = 2.5 if model.dropout else 0.0  # read, write, and a mask of a byte
        forward = [
            self._op("scores and values", flops, 0.0, gpu.batched, self.peak, 2),
            self.elementwise("softmax", scores, 4 + dropped, 3),
        ]
        backward = [
            self._op("scores and values", 2 * flops, 0.0, gpu.batched, self.peak, 4),
            self.elementwise("softmax", scores, 7 + dropped, 3),
        ]
        return RowOps(forward, backward, [])

    def norm(self) -> RowOps:
        """A norm over the hidden size, of the tokens between linears."""
        numbers = self.training.tokens // self.training.shard * self.training.model.hidden
        return RowOps([self.elementwise("norm", numbers, 2)], [self.elementwise("norm", numbers, 4, 2)], [])

    def residual(self) -> RowOps:
        """The residual's addition, with dropout where there is one."""
        numbers = self.training.tokens // self.training.shard * self.training.model.hidden
        dropout = self.training.model.dropout
        return RowOps(
            [self.elementwise("residual", numbers, 3.5 if dropout else 3)],
            [self.elementwise("residual", numbers, 2 if dropout else 1)],
            [],
        )

    def attention_in(self) -> RowOps:
        """The projections to queries, keys and values, with rotary positions where there are."""
        training = self.training
        model, tokens = training.model, training.tokens
        heads = model.heads // training.tp
        if model.mla:
            mla = model.mla
            query = heads * model.query_dim
            kv = heads * (mla.qk_nope_head_dim + mla.v_head_dim)
            parts = [self.linear("kv down", tokens, mla.kv_lora_rank + mla.qk_rope_head_dim, model.hidden),
                     self.linear("kv up", tokens, kv, mla.kv_lora_rank)]  # fmt: skip
            if mla.q_lora_rank:
                parts += [self.linear("query down", tokens, mla.q_lora_rank, model.hidden),
                          self.linear("query up", tokens, query, mla.q_lora_rank)]  # fmt: skip
            else:
                parts.append(self.linear("query", tokens, query, model.hidden))
            parts.append(self._alike("rotary and concatenation", tokens * query, 6, 4))
            return joined(*parts)
        kv_heads = max(model.kv_heads // training.tp, 1)
        parts = [self.linear("qkv", tokens, (heads + 2 * kv_heads) * model.head_dim, model.hidden)]
        if not model.positions:
            parts.append(self._alike("rotary", tokens * (heads + kv_heads) * model.head_dim, 2, 2))
        return joined(*parts)

    def _alike(
        self, name: str, numbers: float, passes: float, kernels: int, share: float | None = None
    ) -> RowOps:
        """An elementwise op that takes as long backward."""
        op = self.elementwise(name, numbers, passes, kernels, share)
        return RowOps([op], [op], [])

    def attention_out(self) -> RowOps:
        """The projection of attention's output."""
        model, training = self.training.model, self.training
        return self.linear(
            "projection", training.tokens, model.hidden, model.heads // training.tp * model.value_dim
        )

    def mlp_in(self, ffn: int, tokens: int, batch: int = 1) -> RowOps:
        """The first linear of a feed-forward part (both, where it is gated), and its activation."""
        width = 2 if self.training.model.gated else 1
        activation = RowOps(
            [self.elementwise("activation", batch * tokens * ffn, width + 1)],
            [self.elementwise("activation", batch * tokens * ffn, 2 * width + 1)],
            [],
        )
        return joined(self.linear("up", tokens, width * ffn, self.training.model.hidden, batch), activation)

    def mlp_out(self, ffn: int, tokens: int, batch: int = 1) -> RowOps:
        """The second linear of a feed-forward part."""
        return self.linear("down", tokens, self.training.model.hidden, ffn, batch)

    def router(self) -> RowOps:
        """Which expert each token is sent to, and its tokens sorted by them."""
        training = self.training
        moe = training.model.moe
        assert moe is not None
        tokens = training.tokens // training.shard
        scores = self.product("router", tokens, moe.experts, training.model.hidden)
        chosen = self.elementwise("top-k", tokens * moe.experts, 6, 6)
        sort = self.permute()
        return RowOps([scores, chosen, *sort.fwd], [scores, scores, chosen, chosen, *sort.ig], [])

    def permute(self) -> RowOps:
        """The tokens of an expert rank brought into the order of its experts, or back."""
        return self._alike("permute", self.routed_tokens * self.training.model.hidden, 4, 6, self.gpu.permute)

    @property
    def routed_tokens(self) -> int:
        """Tokens that one rank's experts get, if all get the same, each counted once an expert."""
        return self.training.routed_tokens

    def experts(self, loads: Sequence[int] = ()) -> RowOps:
        """The experts of a rank, as grouped products. loads: tokens of each, where they are uneven."""
        moe = self.training.model.moe
        assert moe is not None
        here = moe.experts // self.training.ep
        if loads:
            return self._uneven_experts(moe.ffn, loads)
        tokens = max(1, self.routed_tokens // here)
        return joined(self.mlp_in(moe.ffn, tokens, here), self.mlp_out(moe.ffn, tokens, here))

    def _uneven_experts(self, ffn: int, loads: Sequence[int]) -> RowOps:
        """`mlp_in` and `mlp_out` of experts with so many tokens each."""
        hidden, width = self.training.model.hidden, 2 if self.training.model.gated else 1

        def linear(name: str, out: int, inner: int) -> RowOps:
            return RowOps(
                [self.uneven_product(name, [(tokens, out, inner) for tokens in loads])],
                [self.uneven_product(name, [(tokens, inner, out) for tokens in loads])],
                [self.uneven_product(name, [(inner, out, tokens) for tokens in loads])],
            )

        numbers = sum(loads) * ffn
        activation = RowOps(
            [self.elementwise("activation", numbers, width + 1)],
            [self.elementwise("activation", numbers, 2 * width + 1)],
            [],
        )
        return joined(linear("up", width * ffn, hidden), activation, linear("down", hidden, ffn))

    def embedding(self) -> RowOps:
        """The rows of the table taken up, and their gradients added to it."""
        numbers = self.training.tokens * self.training.model.hidden
        op = self.elementwise("embedding", numbers, 3, 3)
        return RowOps([op], [op], [self.elementwise("embedding", numbers, 2)])

    def head(self) -> RowOps:
        """The output layer and the loss on its logits."""
        training = self.training
        vocab = training.padded_vocab // training.tp
        numbers = training.tokens * vocab
        loss = RowOps(
            [self.elementwise("cross entropy", numbers, 8, 6, self.gpu.cross_entropy)],
            [self.elementwise("cross entropy", numbers, 4, 3, self.gpu.cross_entropy)],
            [],
        )
        return joined(self.norm(), self.linear("logits", training.tokens, vocab, training.model.hidden), loss)

    def optimizer(self, states: float, parameters: float) -> RowOps:
        """Adam over `states` numbers of this rank, its gradients read and weights written."""
        moved = states * 34 + parameters * (self.training.grad_bytes + 2)
        return RowOps([], [self._op("Adam", 0.0, moved, 0.0, self.peak)], [])


def joined(*parts: RowOps) -> RowOps:
    """The ops of several parts, one after another."""
    return RowOps(*([op for part in parts for op in part[phase]] for phase in range(3)))


def named(ops: RowOps, names: Sequence[str], chosen: bool = True) -> RowOps:
    """The ops of these names, or (chosen False) all others."""
    return RowOps(*([op for op in part if (op.name in names) == chosen] for part in ops))


def nanoseconds(ops: list[Op]) -> int:
    """What they take together, ns, rounded once."""
    return round(sum(op.seconds for op in ops) * 1e9)


def step_flops(training: Training) -> tuple[float, float]:
    """(of the model, of the hardware) of one step of all ranks.

    The model's: three times the forward's products, attention over the whole square of scores, the output
    layer (the formula of arXiv 2104.04473, which counts no causal mask). The hardware's: what is
    recomputed, too.
    """
    # Biases and norms are no products.
    model = replace(training.model, bias="none", norm_bias=False, qk_norm=False)
    linear = sum(model.attention())
    core = 2.0 * training.seq * model.heads * (model.query_dim + model.value_dim)
    layers = 0.0
    for layer in range(model.layers):
        if model.is_moe(layer) and model.moe:
            moe = model.moe
            width = moe.ffn * (moe.experts_per_token + moe.shared_experts)
            mlp = sum(model.mlp(width)) + moe.experts * model.hidden
        else:
            mlp = sum(model.mlp(model.ffn))
        layers += 2.0 * (linear + mlp) + core
    tokens = training.global_batch * training.seq
    forward = layers + 2.0 * model.embedding
    again = (
        layers
        if training.recompute == "full"
        else core * model.layers
        if "attention" in training.recompute_rows
        else 0
    )
    return 3 * forward * tokens, (3 * forward + again) * tokens


class Sent(NamedTuple):
    """A collective of a cell. beside: compute does not wait for it. ports: where ranks differ, the bytes that
    go through the port of each rank of an expert group.
    """

    collective: str
    group: GroupKind
    bytes: int
    beside: bool = False
    ports: tuple[int, ...] = ()


class Row(NamedTuple):
    """A row before it is columns: its ops, and the collective of each of its cells.

    by_rank: where ranks of an expert group differ, the ops of each; `ops` are then those of the fullest.
    """

    name: str
    ops: RowOps
    fwd: Sent | None = None
    ig: Sent | None = None
    wg: Sent | None = None
    by_rank: tuple[RowOps, ...] = ()


NOTHING = RowOps([], [], [])
