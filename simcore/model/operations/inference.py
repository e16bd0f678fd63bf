"""The ops of an inference step: no gradients, the residual added by the norm, attention over a cache.

Products of few rows are those of products.py, whose formula leaves them to the rate at which their weights
are read. Attention over a cache was not measured: its bytes at the rate of other kernels that memory bounds,
its products at that of fused attention.
"""

from __future__ import annotations

from collections.abc import Sequence

from simcore.model.costs import NOTHING, Costs, Op, RowOps
from simcore.model.engines import Passes
from simcore.model.gpu import Gpu
from simcore.model.kv_cache import layer_keys, layer_reads
from simcore.model.operations.experts import grouped_product_time
from simcore.model.operations.products import BYTES
from simcore.model.training import Training

# Reads a branch and the residual, writes their sum and its norm (vLLM's and TensorRT-LLM's fused kernels).
_NORM = Passes(4, 0)
# Attention over a cache runs parts of the keys side by side, and a second kernel merges them (FlashDecoding).
_SPLIT_KERNELS = 2


class InferenceCosts(Costs):
    """Makes the ops of an inference step on one GPU."""

    def __init__(self, gpu: Gpu, training: Training) -> None:
        super().__init__(gpu, training)
        # CUDA graphs start all kernels at once.
        self.host = 0.0

    def product(self, name: str, m: int, n: int, k: int, precision: str = "") -> Op:
        """Returns a product of matrices, m x k by k x n, whose weights are stored in its precision."""
        each = BYTES[precision or self.training.precision]
        return super().product(name, m, n, k, precision)._replace(bytes=each * (m * k + k * n) + 2.0 * m * n)

    def linear(self, name: str, tokens: int, out: int, inner: int, precision: str = "") -> RowOps:
        """Returns the product of a linear on `tokens`, and the cast of its operand."""
        precision = precision or self.training.precision
        casts = self.cast(name, tokens * inner, precision)
        return RowOps([*casts, self.product(name, tokens, out, inner, precision)], [], [])

    def cast(self, name: str, elements: float, precision: str) -> list[Op]:
        """Returns the cast of a linear's operand by rows; none in bf16."""
        if precision == "bf16" or not elements:
            return []
        return [self.elementwise(f"{name} cast", elements, (2.0 + BYTES[precision]) / 2)]

    def grouped_linear(self, name: str, loads: Sequence[int], out: int, inner: int) -> RowOps:
        """Returns a linear of experts with so many tokens each."""
        count, rows, precision = len(loads), sum(loads), self.training.precision
        if count == 1:
            return self.linear(name, rows, out, inner)
        moved_bytes = 2.0 * (rows * (inner + out)) + BYTES[precision] * count * inner * out
        product = self.grouped(
            name, loads, lambda each: grouped_product_time(self.gpu, precision, count, each, out, inner),
            moved_bytes,
        )  # fmt: skip
        return RowOps([*self.cast(name, rows * inner, precision), product], [], [])

    def experts(self, loads: Sequence[int] = ()) -> RowOps:
        """Returns the experts of a rank; without loads, of those that some token is expected to choose."""
        training, moe = self.training, self.training.model.moe
        assert moe is not None
        if loads:
            # The weights of an expert without tokens are not read.
            return super().experts([tokens for tokens in loads if tokens] or [1])
        here = moe.experts // training.ep
        # Each token that reaches the expert group chooses among all its experts alike.
        group_tokens = training.tokens * training.ep * training.etp / training.tp
        hit_share = 1 - (1 - moe.experts_per_token / moe.experts) ** group_tokens
        active = max(1, round(here * hit_share))
        rows = max(active, round(group_tokens * moe.experts_per_token / training.ep))
        each, more = divmod(rows, active)
        return super().experts([each + (expert < more) for expert in range(active)])

    def norm(self) -> RowOps:
        """Returns a norm over the hidden size, with the residual's addition before it."""
        elements = self.training.tokens // self.training.shard * self.training.model.hidden
        return self._passes_ops("norm", elements, _NORM)

    def residual(self) -> RowOps:
        """Returns no op: the next norm adds the residual."""
        return NOTHING

    def router(self) -> RowOps:
        """Returns the choice of experts for each token, and the sorting of tokens by expert."""
        training, moe = self.training, self.training.model.moe
        assert moe is not None
        tokens = training.tokens // training.shard
        scores = self.product("router", tokens, moe.experts, training.model.hidden, precision="bf16")
        top_k = self.elementwise("top-k", tokens * moe.experts, 2)
        return RowOps([scores, top_k, *self.permute().fwd], [], [])

    def permute(self) -> RowOps:
        """Returns the reordering of the tokens of an expert rank by expert, or back: one kernel."""
        return RowOps([op._replace(kernels=1, seconds=op.seconds - (op.kernels - 1) * self.launch)
                       for op in super().permute().fwd], [], [])  # fmt: skip

    def embedding(self) -> RowOps:
        """Returns the lookup of rows of the table."""
        elements = self.training.tokens * self.training.model.hidden
        return RowOps([self.elementwise("embedding", elements, 2)], [], [])

    def head(self) -> RowOps:
        """Returns the last norm, and the output layer of the last token of each sequence."""
        training = self.training
        vocab, hidden = training.padded_vocab // training.tp, training.model.hidden
        logits = self.linear("logits", training.microbatch_size, vocab, hidden, precision="bf16")
        return RowOps([*self.norm().fwd, *logits.fwd], [], [])

    def cache_core(self) -> RowOps:
        """Returns what mixes a token of each sequence with those of its cache."""
        training, model = self.training, self.training.model
        read = float(training.microbatch_size * layer_reads(training, model))
        recurrent = model.delta or model.mamba
        if recurrent:
            flops = training.tokens * recurrent.core_flops() / training.tp
            # A state is read and written.
            op = self._op("state", flops, 2 * read, self.gpu.batched, self.peak, _SPLIT_KERNELS)
            return RowOps([op], [], [])
        keys, width = layer_keys(training, model), model.query_dim + model.value_dim
        if model.mla:
            # Queries are projected to the latent size, so that heads share the latent keys and values.
            width = 2 * model.mla.kv_lora_rank + model.mla.qk_rope_head_dim
        heads = max(1, model.heads // training.tp)
        flops = 2.0 * training.tokens * heads * keys * width
        op = self._op(
            "attention over the cache", flops, read, self.gpu.flash_forward, self.peak, _SPLIT_KERNELS
        )
        return RowOps([op], [], [])
