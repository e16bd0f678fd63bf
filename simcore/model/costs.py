"""The costs of the ops of a row on a GPU, each with what bounds it (compute, memory or its launch); and the
FLOPs of a step, as papers count them for MFU and HFU.

Time of an op = max(FLOPs / (peak x efficiency), bytes / (hbm x share)) + launch (docs/models.md).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence

from simcore.model.engines import EAGER, ENGINES, FUSED, Passes
from simcore.model.gpu import Gpu
from simcore.model.mixers import mean_keys
from simcore.model.operations.attention import attention_backward_ratio, attention_time
from simcore.model.operations.experts import grouped_product_time, grouped_weight_gradient_time
from simcore.model.operations.products import BYTES, product_time
from simcore.model.operations.timing import OperationTime
from simcore.model.packing import PackedMicrobatch
from simcore.model.sizes import Model
from simcore.model.training import Training
from simcore.records import NamedTuple, replace
from simcore.workload.model import GroupKind

# Kernels that the host starts from its reading of the experts' loads to the first long kernel: copies of the
# counts, the permutation and its maps, the all-to-all.
_KERNELS_BEFORE_EXPERTS = 12


# Numbers of 2 bytes in a line of 128 bytes.
_LINE = 64


class Op(NamedTuple):
    """One kernel, or some equal ones."""

    name: str
    """The name of the op."""
    flops: float
    """Its FLOPs."""
    bytes: float
    """The bytes that it reads and writes."""
    efficiency: float
    """The share of the peak that its FLOPs reach; 0 without FLOPs."""
    seconds: float
    """Its time with its launch, s."""
    bound_by: str
    """`compute`, `memory` or `launch`, whichever takes longest."""
    kernels: int = 1
    """How many kernels the host starts for it."""


class RowOps(NamedTuple):
    """The ops of a row: forward, input gradient, weight gradient."""

    fwd: list[Op]
    ig: list[Op]
    wg: list[Op]


class Costs:
    """Makes the ops of one training on one GPU."""

    def __init__(self, gpu: Gpu, training: Training) -> None:
        self.gpu = gpu
        self.training = training
        self.engine = ENGINES[training.engine]
        self.kernels = self.engine.kernels
        if training.compiled:
            # Gradients are added up outside of the compiled code.
            self.kernels = replace(FUSED, adds_gradients=self.engine.kernels.adds_gradients)
        self.peak = gpu.peak * 1e12
        # All GPUs wait for the slowest.
        self._wait = 1.0 + gpu.spread * slowest_deviation(training.world)
        self._slow = {
            precision: self._wait / gpu.sustained_of(precision) for precision in {"bf16", training.precision}
        }
        self._slow[""] = self._wait / gpu.clock
        self.memory = gpu.hbm * 1e9 * gpu.elementwise
        self.launch = gpu.launch_us * 1e-6
        # Time for each kernel that the host starts, s; a CUDA graph starts all at once.
        self.host = 0.0 if self.engine.graphs and gpu.peak_fp4 else gpu.host_us * 1e-6

    # -- kinds of op ---------------------------------------------------------------------

    def product(self, name: str, m: int, n: int, k: int, precision: str = "") -> Op:
        """Returns a product of matrices, m x k by k x n. Operands of a narrower precision are cast before."""
        precision = precision or self.training.precision
        moved_bytes = 2.0 * (m * k + k * n + m * n)
        one = product_time(self.gpu, precision, m, n, k)
        return self._measured(
            name, 2.0 * m * n * k, one.seconds - one.cast, one.bound_by, precision, moved_bytes
        )

    def cast(self, name: str, elements: float, precision: str) -> list[Op]:
        """Returns the casts of a linear's operand to its precision, once by rows and once by columns; none in
        bf16.
        """
        if precision == "bf16" or not elements:
            return []
        # A scale of the whole tensor is known from the steps before; that of NVFP4 takes one more reading.
        read, write_bytes = (4.0 if precision == "nvfp4" else 2.0), BYTES[precision]
        return [self.elementwise(f"{name} cast", elements, (read + 2 * write_bytes) / 2)]

    def grouped(
        self, name: str, loads: Sequence[int], time: Callable[[int], OperationTime], moved_bytes: float
    ) -> Op:
        """Returns the products of one kernel, one for each expert with its tokens.

        time: the time of the kernel if all experts have as many tokens as one; each then takes its share of
        that.
        """
        count = len(loads)
        flops = alone = 0.0
        bounds: dict[str, float] = {}
        for each, expert_count in Counter(load for load in loads if load).items():
            op_time = time(each)
            flops += op_time.flops * expert_count / count
            alone += op_time.seconds * expert_count / count
            bounds[op_time.bound_by] = bounds.get(op_time.bound_by, 0.0) + op_time.seconds * expert_count
        bound_by = max(bounds, key=lambda word: bounds[word], default="launch")
        return self._measured(name, flops, alone, bound_by, self.training.precision, moved_bytes, count)

    def _measured(
        self,
        name: str,
        flops: float,
        alone: float,
        bound_by: str,
        precision: str,
        moved_bytes: float,
        kernels: int = 1,
    ) -> Op:
        """Returns an operation in training from its time alone, s.

        precision: of products, which draw the power that lowers the clock; "" for other operations.
        """
        slow = self._slow[precision] if bound_by == "compute" else self._wait
        seconds = alone * slow
        peak = self.gpu.peak_of(precision or "bf16") * 1e12
        efficiency = flops / seconds / peak if seconds else 0.0
        return Op(name, flops, moved_bytes, efficiency, seconds, bound_by, kernels)

    def elementwise(
        self, name: str, elements: float, passes: float, kernels: int = 1, share: float | None = None
    ) -> Op:
        """Returns an op of `passes` reads and writes of 2-byte numbers.

        share: the share of the memory bandwidth that it reaches; None for that of most kernels.
        """
        return self._op(name, 0.0, 2.0 * elements * passes, 0.0, self.peak, kernels, share)

    def _op(
        self, name: str, flops: float, moved_bytes: float, efficiency: float, peak: float, kernels: int = 1,
        share: float | None = None,
    ) -> Op:  # fmt: skip
        compute = flops / (peak * efficiency) if flops else 0.0
        bandwidth = self.memory if share is None else self.gpu.hbm * 1e9 * share
        memory, launch = moved_bytes / bandwidth, kernels * self.launch
        bound_by = "launch" if launch > max(compute, memory) else "compute" if compute >= memory else "memory"
        return Op(name, flops, moved_bytes, efficiency, max(compute, memory) + launch, bound_by, kernels)

    # -- parts of a layer ----------------------------------------------------------------

    def linear(self, name: str, tokens: int, out: int, inner: int, precision: str = "") -> RowOps:
        """Returns a linear on `tokens`: its product, and those of its two gradients."""
        precision = precision or self.training.precision
        forward = self.product(name, tokens, out, inner, precision)
        # Tokens are not the aligned dimension of its operands, so that any number of them is rounded up.
        weights = self.product(name, inner, out, -(-tokens // _LINE) * _LINE, precision)
        added = self._accumulation_bytes
        if added:
            # This is hidden as far as the product takes longer.
            moved_bytes = added * inner * out
            seconds = math.hypot(weights.seconds, moved_bytes / self.memory)
            efficiency = weights.efficiency * weights.seconds / seconds
            weights = weights._replace(
                seconds=seconds, bytes=weights.bytes + moved_bytes, efficiency=efficiency
            )
        return RowOps(
            [*self.cast(name, tokens * inner, precision), forward],
            [
                *self._recomputed_half(forward),
                *self.cast(name, tokens * out, precision),
                self.product(name, tokens, inner, out, precision),
            ],
            # Its operands are cast by the other two products.
            [weights, *self._accumulation_ops(name, inner * out)],
        )

    def grouped_linear(self, name: str, loads: Sequence[int], out: int, inner: int) -> RowOps:
        """Returns a linear of experts with so many tokens each."""
        gpu, precision, count, rows = self.gpu, self.training.precision, len(loads), sum(loads)
        if count == 1:
            return self.linear(name, rows, out, inner)
        moved_bytes = 2.0 * (rows * inner + count * inner * out + rows * out)
        added = self._accumulation_bytes or 2.0

        def forward(each: int) -> OperationTime:
            return grouped_product_time(gpu, precision, count, each, out, inner)

        def backward(each: int) -> OperationTime:
            return grouped_product_time(gpu, precision, count, each, inner, out)

        def weights(each: int) -> OperationTime:
            return grouped_weight_gradient_time(gpu, precision, count, each, out, inner, added)

        product = self.grouped(name, loads, forward, moved_bytes)
        return RowOps(
            [*self.cast(name, rows * inner, precision), product],
            [
                *self._recomputed_half(product),
                *self.cast(name, rows * out, precision),
                self.grouped(name, loads, backward, moved_bytes),
            ],
            [
                self.grouped(name, loads, weights, moved_bytes),
                *self._accumulation_ops(name, count * inner * out),
            ],
        )

    @property
    def _accumulates_gradients(self) -> bool:
        """Whether gradients of a micro-batch are added to those of earlier ones on the rank."""
        return self.training.zero < 2 and self.training.microbatches > 1

    @property
    def _accumulation_bytes(self) -> float:
        """Bytes that a product of a weight gradient reads and writes of each number to add to it; 0 where it
        does not.
        """
        return (
            2.0 * self.training.grad_bytes
            if self._accumulates_gradients and self.kernels.adds_gradients
            else 0.0
        )

    def _accumulation_ops(self, name: str, elements: float) -> list[Op]:
        """Returns a kernel that adds the gradients, where their product does not."""
        if not self._accumulates_gradients or self.kernels.adds_gradients:
            return []
        return [self.elementwise(f"{name} added", elements, 1 + self.training.grad_bytes)]

    def _recomputed_half(self, product: Op) -> list[Op]:
        """Returns half of a product that backward runs forward again in every second linear, as torchtitan
        does.
        """
        if not (self.engine.selective_by_op and self.training.recompute_rows):
            return []
        half = product._replace(seconds=product.seconds / 2, flops=product.flops / 2, bytes=product.bytes / 2)
        return [half._replace(name=f"{product.name} again")]

    def attention_core(self, packed: PackedMicrobatch | None = None) -> RowOps:
        """Returns attention between its linears. packed: the documents of a micro-batch, where sequences are
        no documents.
        """
        training, gpu = self.training, self.gpu
        model = training.model
        # A rank has all heads of its part of the sequence, or by all-to-all some of a longer part.
        by_heads = training.cp_heads
        heads = model.heads / training.tp / by_heads
        queries = training.seq * by_heads / training.cp
        scores = training.microbatch_size * heads * queries * training.seq
        flops = 2.0 * scores * (model.query_dim + model.value_dim)
        if training.flash:
            moved_bytes = 2.0 * training.tokens * by_heads * heads * 2 * (model.query_dim + model.value_dim)
            kv_heads = max((model.heads if model.mla else model.kv_heads) // training.tp // by_heads, 1)
            batch, keys = training.microbatch_size, training.seq
            squares = longest = None
            if packed is not None:
                batch, (keys, squares, longest) = 1, packed
                queries = keys * by_heads / training.cp
                moved_bytes *= keys / (training.microbatch_size * training.seq)
            op_time = attention_time(
                gpu, "bf16", batch, math.ceil(queries), int(heads), kv_heads,
                model.query_dim, model.value_dim, keys=keys, squares=squares, longest_keys=longest,
            )  # fmt: skip
            forward, ratio = op_time.seconds, attention_backward_ratio(gpu, model.query_dim)
            if not self.engine.newest_attention:
                forward /= gpu.flash_2
            once = self._measured(
                "flash attention", op_time.flops, forward, op_time.bound_by, "", moved_bytes
            )
            twice = self._measured(
                "flash attention",
                2.5 * op_time.flops,
                ratio * forward,
                op_time.bound_by,
                "",
                2.5 * moved_bytes,
                3,
            )
            forward_merges, backward_merges = self._ring_merges()
            return RowOps([once, *forward_merges], [twice, *backward_merges], [])
        dropped = 2.5 if model.dropout else 0.0  # read, write, and a mask of a byte
        scored = [
            self._op("scores and values", flops, 0.0, gpu.batched, self.peak, 2),
            self.elementwise("softmax", scores, 4 + dropped, 3),
        ]
        backward = [
            self._op("scores and values", 2 * flops, 0.0, gpu.batched, self.peak, 4),
            self.elementwise("softmax", scores, 7 + dropped, 3),
        ]
        return RowOps(scored, backward, [])

    def _ring_merges(self) -> tuple[list[Op], list[Op]]:
        """Returns (forward, backward) the ops that a ring of keys and values adds to attention.

        After each step but the first its outputs are merged with those before, in fp32; in backward the
        gradients of queries, and of keys and values.
        """
        training, kernels = self.training, self.engine.kernels
        # With all-gather Megatron runs one attention over all keys and values; PyTorch still runs in steps.
        in_steps = training.cp_comm_type != "all-gather" or self.engine.holds == "fsdp"
        if training.cp_ring == 1 or not in_steps:
            return [], []
        model = training.model
        steps, kv_heads = training.cp_ring - 1, model.heads if model.mla else model.kv_heads
        out = training.tokens * model.heads * model.value_dim // training.tp
        width = max(kv_heads, training.tp) * (model.query_dim + model.value_dim)
        keys = training.tokens * width // training.tp
        return (
            [self.elementwise("merge", steps * out, kernels.merge, steps)],
            [self.elementwise("merge", steps * (out + keys), FUSED.merge, 2 * steps)],
        )

    def norm(self) -> RowOps:
        """Returns a norm over the hidden size, of the tokens between linears."""
        elements = self.training.tokens // self.training.shard * self.training.model.hidden
        # PyTorch's LayerNorm is one kernel; its RMSNorm has as many as operators.
        fused = self.training.model.norm_bias
        return self._passes_ops("norm", elements, FUSED.norm if fused else self.kernels.norm)

    @property
    def _activation(self) -> Passes:
        return self.kernels.gated if self.training.model.gated else self.kernels.activation

    def residual(self) -> RowOps:
        """Returns the residual's addition, with dropout where the model has it."""
        elements = self.training.tokens // self.training.shard * self.training.model.hidden
        passes = self.kernels.residual
        if self.training.model.dropout:
            # The mask is written as bytes, and read with the gradient.
            passes = passes._replace(forward=passes.forward + 0.5, backward=passes.backward + 1)
        return self._passes_ops("residual", elements, passes)

    def _passes_ops(self, name: str, elements: float, passes: Passes) -> RowOps:
        """Returns an elementwise op and its gradient over so many 2-byte numbers."""
        return RowOps(
            [self.elementwise(name, elements, passes.forward, passes.forward_kernels)],
            [self.elementwise(name, elements, passes.backward, passes.backward_kernels)],
            [],
        )

    def attention_in(self) -> RowOps:
        """Returns the projections to queries, keys and values, with rotary positions where the model has
        them.
        """
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
            parts.append(self._symmetric_ops("rotary and concatenation", tokens * query, 6, 4))
            return concat_ops(*parts)
        kv_heads = max(model.kv_heads // training.tp, 1)
        width = heads * model.head_dim + kv_heads * model.kv_width
        parts = [self.linear("qkv", tokens, width, model.hidden)]
        if not model.positions:
            parts.append(
                self._passes_ops("rotary", tokens * (heads + kv_heads) * model.head_dim, self.kernels.rotary)
            )
        return concat_ops(*parts)

    def _symmetric_ops(
        self, name: str, elements: float, passes: float, kernels: int, share: float | None = None
    ) -> RowOps:
        """Returns an elementwise op that takes as long in backward."""
        op = self.elementwise(name, elements, passes, kernels, share)
        return RowOps([op], [op], [])

    def attention_out(self) -> RowOps:
        """Returns the projection of attention's output."""
        model, training = self.training.model, self.training
        return self.linear(
            "projection", training.tokens, model.hidden, model.heads // training.tp * model.value_dim
        )

    def mlp_in(self, ffn: int, tokens: int) -> RowOps:
        """Returns the first linear of a feed-forward part (both, where it is gated), and its activation."""
        width = 2 if self.training.model.gated else 1
        activation = self._passes_ops("activation", tokens * ffn, self._activation)
        return concat_ops(self.linear("up", tokens, width * ffn, self.training.model.hidden), activation)

    def mlp_out(self, ffn: int, tokens: int) -> RowOps:
        """Returns the second linear of a feed-forward part."""
        return self.linear("down", tokens, self.training.model.hidden, ffn)

    def router(self) -> RowOps:
        """Returns the choice of experts for each token, and the sorting of tokens by expert."""
        training = self.training
        moe = training.model.moe
        assert moe is not None
        tokens = training.tokens // training.shard
        scores = self.product("router", tokens, moe.experts, training.model.hidden, precision="bf16")
        top_k = self.elementwise("top-k", tokens * moe.experts, 6, 6)
        sort = self.permute()
        # The host reads how many tokens each expert gets before it starts the next kernels.
        host = _KERNELS_BEFORE_EXPERTS * self.host
        read = [Op("counts read", 0.0, 0.0, 0.0, host, "host", 0)] if host else []
        return RowOps([scores, top_k, *read, *sort.fwd], [scores, scores, top_k, top_k, *sort.ig], [])

    def permute(self) -> RowOps:
        """Returns the reordering of the tokens of an expert rank by expert, or back."""
        moe = self.training.model.moe
        assert moe is not None
        # A kernel reads a token once and writes a copy for each of its experts, or adds the copies up.
        passes = 1 + 1 / moe.experts_per_token
        elements = self.routed_tokens * moe.width(self.training.model.hidden)
        return self._symmetric_ops("permute", elements, passes, 3, self.gpu.permute)

    @property
    def routed_tokens(self) -> int:
        """Tokens that one rank's experts get, if all get the same, each counted once for each expert."""
        return self.training.routed_tokens

    def experts(self, loads: Sequence[int] = ()) -> RowOps:
        """Returns the experts of a rank, as grouped products. loads: tokens of each, where they are
        uneven.
        """
        model = self.training.model
        moe = model.moe
        assert moe is not None
        if not loads:
            here = moe.experts // self.training.ep
            loads = (max(1, self.training.expert_tokens // here),) * here
        ffn = moe.ffn // self.training.etp
        rows, width = sum(loads), 2 if model.gated else 1
        hidden = moe.width(model.hidden)
        # No kernel of activations includes biases of experts: with biases operators run one at a time.
        biased = model.bias == "all"
        activation = EAGER.gated if biased and model.gated else self._activation
        return concat_ops(
            self.grouped_linear("up", loads, width * ffn, hidden),
            *([self._bias("up", rows * width * ffn)] if biased else []),
            self._passes_ops("activation", rows * ffn, activation),
            self.grouped_linear("down", loads, hidden, ffn),
            *([self._bias("down", rows * hidden)] if biased else []),
        )

    def latent(self, name: str, to_latent: bool) -> RowOps:
        """Returns the projection of tokens to the latent size of experts, or back; nothing without one."""
        training, hidden = self.training, self.training.model.hidden
        moe = training.model.moe
        if moe is None or not moe.latent:
            return NOTHING
        out, inner = (moe.latent, hidden) if to_latent else (hidden, moe.latent)
        return self.linear(name, training.tokens // training.shard, out, inner)

    def _bias(self, name: str, elements: float) -> RowOps:
        """Returns the addition of biases of experts to each row, and that of their gradients over the
        rows.
        """
        forward = self.elementwise(f"{name} bias", elements, 2)
        return RowOps([forward], [self.elementwise(f"{name} bias", elements, 1)], [])

    def embedding(self) -> RowOps:
        """Returns the lookup of rows of the table, and the addition of their gradients to it."""
        elements = self.training.tokens * self.training.model.hidden
        op = self.elementwise("embedding", elements, 3, 3)
        return RowOps([op], [op], [self.elementwise("embedding", elements, 2)])

    def prediction(self) -> RowOps:
        """Returns what precedes the layer of a further predicted token: the norms of the hidden state and of
        the next token's embedding, and the projection of both.
        """
        training, hidden = self.training, self.training.model.hidden
        projection = self.linear("mtp projection", training.tokens, hidden // training.tp, 2 * hidden)
        return concat_ops(self.norm(), self.norm(), projection)

    def head(self) -> RowOps:
        """Returns the output layer and the loss on its logits."""
        training = self.training
        vocab = training.padded_vocab // training.tp
        elements = training.tokens * vocab
        passes, share = self.kernels.loss, self.gpu.cross_entropy
        loss = RowOps(
            [self.elementwise("cross entropy", elements, passes.forward, passes.forward_kernels, share)],
            [self.elementwise("cross entropy", elements, passes.backward, passes.backward_kernels, share)],
            [],
        )
        return concat_ops(
            self.norm(),
            self.linear("logits", training.tokens, vocab, training.model.hidden, precision="bf16"),
            loss,
        )

    def optimizer(self, states: float, parameters: float) -> RowOps:
        """Returns Adam over `states` numbers of this rank, its gradients read and weights written."""
        moved_bytes = states * 34 + parameters * (self.training.grad_bytes + 2)
        return RowOps([], [self._op("Adam", 0.0, moved_bytes, 0.0, self.peak)], [])


def slowest_deviation(ranks: int) -> float:
    """Returns by how many standard deviations the slowest of so many ranks is behind the mean.

    Speeds are normally distributed: Blom's approximation of the expected maximum, with Hastings' of the
    quantiles (Abramowitz and Stegun 26.2.23, to 4.5e-4).
    """
    if ranks < 2:
        return 0.0
    above = 0.625 / (ranks + 0.25)
    t = math.sqrt(-2.0 * math.log(above))
    return t - (2.515517 + 0.802853 * t + 0.010328 * t * t) / (
        1.0 + 1.432788 * t + 0.189269 * t * t + 0.001308 * t**3
    )


def concat_ops(*parts: RowOps) -> RowOps:
    """Returns the ops of several parts, one after another."""
    return RowOps(*([op for part in parts for op in part[phase]] for phase in range(3)))


def select_ops(ops: RowOps, names: Sequence[str], is_matching: bool = True) -> RowOps:
    """Returns the ops whose names begin with one of these words, or (is_matching False) all others."""
    begins = tuple(f"{name} " for name in names)
    return RowOps(*([op for op in part if f"{op.name} ".startswith(begins) == is_matching] for part in ops))


def nanoseconds(ops: list[Op]) -> int:
    """Returns the time of ops together, ns, rounded once."""
    return round(sum(op.seconds for op in ops) * 1e9)


def step_flops(training: Training, causal: bool = False) -> tuple[float, float]:
    """Returns the FLOPs of one step of all ranks: (of the model, of the hardware).

    The model's: three times the forward's products, attention over the whole square of scores, the output
    layer (the formula of arXiv 2104.04473, which counts no causal mask). causal: counts only the half of the
    square that a causal mask leaves. The hardware's include what is recomputed, and padding of experts.
    Packed documents have a square each.
    """
    each = {kind: layer_flops(training.model, kind, training.seen_keys, causal) for kind in _kinds(training)}
    # What padding adds to the experts of a token.
    filled = {kind: _padding_flops(training, kind) for kind in each}
    kinds = [training.model.kind_of(layer) for layer in range(training.model.layers)]
    padded = 3 * sum(filled[kind] for kind in kinds)
    again = 0.0
    for stage in range(training.pp if training.recompute == "full" else 0):
        for chunk in range(training.chunks):
            for index, layer in enumerate(training.layers_of(stage, chunk)):
                if training.recomputes(index):
                    again += sum(each[kinds[layer]])
                    padded += filled[kinds[layer]]
    layers = sum(sum(each[kind]) for kind in kinds)
    # A further predicted token has a layer as the last one, a projection of two hidden states, and the head.
    model, predictions, of_prediction = training.model, training.predictions, training.model.prediction_kind
    layers += predictions * sum(each[of_prediction])
    padded += predictions * (4 if training.recomputes_predictions else 3) * filled[of_prediction]
    if training.recomputes_predictions:
        again += predictions * sum(each[of_prediction])
    tokens = training.global_batch * training.seq
    forward = layers + 2.0 * (1 + predictions) * model.embedding + predictions * 4.0 * model.hidden**2
    if "attention" in training.recompute_rows:
        again += sum(each[kind][1] for kind in kinds) + predictions * each[of_prediction][1]
    if "mla_up_proj" in training.recompute_rows:
        latent_up = {kind: 2.0 * model.of_kind(kind).latent_up for kind in each}
        again += sum(latent_up[kind] for kind in kinds) + predictions * latent_up[of_prediction]
    return 3 * forward * tokens, (3 * forward + again + padded) * tokens


def forward_flops(training: Training, causal: bool = False) -> tuple[float, float]:
    """Returns the FLOPs of an inference step of all ranks, twice, as `step_flops` has them.

    The output layer runs for the last token of a sequence alone. causal: as of `step_flops`; a token that is
    decoded sees all keys that its layer keeps of the cache.
    """
    model, step = training.model, training.inference
    assert step is not None
    layers = 0.0
    for kind, count in model.count_kinds():
        if step.decodes:
            linear, core = layer_flops(model, kind, step.context + 1)
            of_kind = model.of_kind(kind)
            if of_kind.has_scores and of_kind.window and not of_kind.indexer:
                keys = min(of_kind.window, step.context + 1)
                core = 2.0 * of_kind.heads * keys * (of_kind.query_dim + of_kind.value_dim)
        else:
            linear, core = layer_flops(model, kind, training.seq, causal)
        layers += count * (linear + core)
    total = training.global_batch * (training.seq * layers + 2.0 * model.embedding)
    return total, total


def _padding_flops(training: Training, kind: int) -> float:
    """Returns the FLOPs that padding to the capacity adds to a token's experts in a layer of a kind."""
    model, moe = training.model.of_kind(kind), training.model.experts_of(kind)
    if moe is None or not training.capacity:
        return 0.0
    plain = replace(model, bias="none")
    each = 2.0 * sum(plain.mlp(moe.ffn * moe.experts_per_token, moe.width(model.hidden)))
    return each * (training.capacity - 1)


def _kinds(training: Training) -> set[int]:
    model = training.model
    return {*(kind for kind, _ in model.count_kinds()), model.prediction_kind}


def layer_flops(model: Model, kind: int, seq: float, causal: bool = False) -> tuple[float, float]:
    """Returns the FLOPs of a token's forward in a layer of a kind: (of linears, between them).

    seq: tokens of a sequence. causal: as of `step_flops`.
    """
    moe = model.experts_of(kind)
    # Biases and norms are left out: they are no products.
    model = replace(
        model.of_kind(kind), bias="none", norm_bias=False, qk_norm=False, qk_norm_whole=False, sinks=False
    )
    core, heads = 0.0, model.heads
    if not model.attends:
        linear = 0
    elif model.compression:
        compression = model.compression
        linear = sum(compression.product_parameters(model.hidden, heads, model.head_dim))
        core = 4.0 * heads * model.head_dim * compression.keys(seq, causal)
        core += compression.index_flops(seq, causal)
    elif model.delta or model.mamba:
        recurrent = model.delta or model.mamba
        assert recurrent is not None
        linear, core = sum(recurrent.product_parameters(model.hidden)), recurrent.core_flops()
    else:
        linear = sum(model.attention())
        most = model.indexer.topk if model.indexer else model.window
        keys = mean_keys(seq, most, model.chunked, causal)
        width = model.query_dim + model.value_dim
        if model.indexer and model.mla and most < seq:
            # Selected keys stay latent.
            width = 2 * model.mla.kv_lora_rank + model.mla.qk_rope_head_dim
        core = 2.0 * heads * keys * width
        if model.indexer and model.indexer.heads:
            linear -= 2 * model.indexer.head_dim
            core += model.indexer.score_flops(mean_keys(seq, causal=causal))
    if moe is not None:
        expert = sum(model.mlp(moe.ffn, moe.width(model.hidden))) * moe.experts_per_token
        mlp = expert + sum(model.mlp(moe.shared_inner)) + moe.routing(model.hidden)
    else:
        mlp = sum(model.mlp(model.ffn))
    return 2.0 * (linear + mlp), core


class CellCollective(NamedTuple):
    """A collective of a cell."""

    collective: str
    """`ALLREDUCE`, `ALLGATHER` and the like."""
    group: GroupKind
    """The kind of group."""
    bytes: int
    """The whole buffer."""
    is_overlapped: bool = False
    """Whether compute does not wait for it."""
    ports: tuple[int, ...] = ()
    """The bytes through the port of each rank of an expert group, where ranks differ."""


class Row(NamedTuple):
    """A row before it becomes columns."""

    name: str
    """The name of the row."""
    ops: RowOps
    """Its ops; where ranks of an expert group differ, those of the fullest."""
    fwd: CellCollective | None = None
    """The collective of the forward."""
    ig: CellCollective | None = None
    """The collective of the input gradient."""
    wg: CellCollective | None = None
    """The collective of the weight gradient."""
    by_rank: tuple[RowOps, ...] = ()
    """The ops of each rank of an expert group, where they differ."""
    by_packing: tuple[RowOps, ...] = ()
    """The ops in each of the different micro-batches, where packed documents make them differ; the first are
    `ops`.
    """


NOTHING = RowOps([], [], [])
