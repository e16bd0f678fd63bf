"""The ops of what layers have in place of attention over all tokens: windows, selections, compressed keys,
gated delta nets, Mamba 2.

None of them was measured. FLOPs and bytes are those of their papers and of Megatron-LM; attention over fewer
keys runs at the speed of fused attention over as many tokens, and the recurrences of
linear attention at `_RECURRENT` of the peak: their times are about right.
"""

from __future__ import annotations

from simcore.model.costs import Costs, Op, RowOps, concat_ops
from simcore.model.mixers import mean_keys
from simcore.model.operations.attention import attention_backward_ratio, attention_time
from simcore.records import replace

# The share of the peak that kernels of linear attention reach: products of 64 to 128 rows, a state that is
# read and written for each chunk, and several kernels that wait for each other.
_RECURRENT = 0.15
# Tokens of a chunk, of which each writes a state in fp32.
_CHUNK = 128
# Bytes of a score.
_SCORE_BYTES = 4.0


def mixer_name(costs: Costs) -> str:
    """Returns what the rows of a layer's mixer are named by."""
    model = costs.training.model
    return "delta" if model.delta else "mamba" if model.mamba else "attention"


def mixer_parts(costs: Costs) -> tuple[RowOps, RowOps, RowOps]:
    """Returns the ops before what mixes tokens, of that, and behind it."""
    model = costs.training.model
    if model.delta or model.mamba:
        return _linear_attention(costs)
    if model.compression:
        return _compressed(costs)
    into, out = costs.attention_in(), costs.attention_out()
    if model.gate_width:
        training = costs.training
        gates = costs.linear("gate", training.tokens, model.gate_width // training.tp, model.hidden)
        into = concat_ops(into, gates)
        out = concat_ops(_gate_ops(costs), out)
    if model.indexer and model.indexer.heads:
        into = concat_ops(into, _indexer_linears(costs))
    return into, _core(costs), out


def _gate_ops(costs: Costs) -> RowOps:
    """Returns the product of attention's output and its gate."""
    training = costs.training
    elements = training.tokens * training.model.heads * training.model.value_dim // training.tp
    return RowOps(
        [costs.elementwise("output gate", elements, 3)], [costs.elementwise("output gate", elements, 5)], []
    )


def _core(costs: Costs) -> RowOps:
    """Returns attention of a window, a chunk or a selection; else over all tokens."""
    training, model = costs.training, costs.training.model
    if model.indexer:
        core = costs.attention_core()
        if model.indexer.topk < training.seq:
            core = _selected_core(costs)
        return concat_ops(_index_scores(costs), core) if model.indexer.heads else core
    if not model.window or model.window >= training.seq:
        return costs.attention_core()
    # A causal sequence of twice a window has as many keys a query; one of a chunk is its own sequence.
    return _shorter_core(costs, min(model.window * (1 if model.chunked else 2), training.seq))


def _shorter_core(costs: Costs, length: int) -> RowOps:
    """Returns attention over as many tokens in sequences of a length."""
    training = costs.training
    count = training.tokens / length
    whole = max(1, round(count))
    shorter = replace(training, seq=length, microbatch_size=whole, cp=1)
    part = Costs(costs.gpu, shorter).attention_core()
    return RowOps(*([_scaled(op, count / whole) for op in ops] for ops in part))


def _scaled(op: Op, by: float) -> Op:
    return op._replace(flops=op.flops * by, bytes=op.bytes * by, seconds=op.seconds * by)


def _selected_core(costs: Costs) -> RowOps:
    """Returns attention over selected keys; latent attention keeps them latent, one for all heads."""
    training, model = costs.training, costs.training.model
    assert model.indexer is not None
    length = min(2 * model.indexer.topk, training.seq)
    if model.mla:
        rank = model.mla.kv_lora_rank
        sizes = (1, rank + model.mla.qk_rope_head_dim, rank)
    else:
        sizes = (max(model.kv_heads // training.tp, 1), model.query_dim, model.value_dim)
    return _fused(costs, "sparse attention", length, mean_keys(training.seq, model.indexer.topk), *sizes)


def _fused(
    costs: Costs, name: str, length: float, keys: float, kv_heads: int, query_dim: int, value_dim: int
) -> RowOps:
    """Returns attention of so many keys a query, at the speed of fused attention over sequences of a
    length.
    """
    training, gpu, heads = costs.training, costs.gpu, training_heads(costs)
    count, size = training.tokens / length, max(1, int(length))
    batch = max(1, round(count))
    one = attention_time(gpu, "bf16", batch, size, heads, kv_heads, query_dim, value_dim, keys=size)
    flops = 2.0 * training.tokens * heads * keys * (query_dim + value_dim)
    forward = one.seconds * flops / one.flops if one.flops else one.seconds
    moved_bytes = 2.0 * training.tokens * (heads + 2 * kv_heads) * (query_dim + value_dim)
    ratio = attention_backward_ratio(gpu, query_dim)
    return RowOps(
        [_timed(costs, name, flops, forward, moved_bytes, 1)],
        [_timed(costs, name, 2.5 * flops, ratio * forward, 2.5 * moved_bytes, 3)],
        [],
    )


def training_heads(costs: Costs) -> int:
    """Returns the heads of a rank."""
    return max(1, costs.training.model.heads // costs.training.tp)


def _timed(costs: Costs, name: str, flops: float, seconds: float, moved_bytes: float, kernels: int) -> Op:
    """Returns an op of a time, no shorter than what its bytes take."""
    memory = moved_bytes / costs.memory
    bound_by = "memory" if memory > seconds else "compute"
    longest = max(seconds, memory)
    return Op(name, flops, moved_bytes, flops / longest / costs.peak, longest, bound_by, kernels)


def _indexer_linears(costs: Costs) -> RowOps:
    """Returns the projections of the indexer, which every rank of tp computes."""
    training, model = costs.training, costs.training.model
    index = model.indexer
    assert index is not None
    tokens, queries = training.tokens, index.heads * index.head_dim
    if index.by_head:
        return costs.linear("index", tokens, queries + index.head_dim, model.hidden)
    rank = model.mla.q_lora_rank if model.mla and model.mla.q_lora_rank else model.hidden
    return concat_ops(
        costs.linear("index queries", tokens, queries, rank),
        costs.linear("index keys", tokens, index.head_dim + index.heads, model.hidden),
    )


def _index_scores(costs: Costs) -> RowOps:
    """Returns the scores of a sequence's tokens, and the choice of the highest ones."""
    training, index = costs.training, costs.training.model.indexer
    assert index is not None
    keys = mean_keys(training.seq / index.block)
    return _scores(costs, index.score_flops(mean_keys(training.seq)), keys)


def _scores(costs: Costs, flops: float, keys: float) -> RowOps:
    tokens, gpu = costs.training.tokens, costs.gpu
    seconds = tokens * flops / (costs.peak * gpu.batched)
    scores = _timed(costs, "index scores", tokens * flops, seconds, tokens * keys * _SCORE_BYTES, 1)
    top_k = costs.elementwise("index top-k", tokens * keys, _SCORE_BYTES, 2)
    return RowOps([scores, top_k], [_scaled(scores, 2.0)], [])


def _compressed(costs: Costs) -> tuple[RowOps, RowOps, RowOps]:
    """Returns DeepSeek-V4's attention."""
    training, model, heads = costs.training, costs.training.model, training_heads(costs)
    compression = model.compression
    assert compression is not None
    tokens, head_dim, rank = training.tokens, model.head_dim, compression.q_lora_rank
    parts = [
        costs.linear("query down", tokens, rank, model.hidden),
        costs.linear("query up", tokens, heads * head_dim, rank),
        costs.linear("key", tokens, head_dim, model.hidden),
    ]
    index = compression.indexer
    if compression.ratio:
        wide = 2 * compression.overlap * head_dim
        parts.append(costs.linear("compressor", tokens, wide, model.hidden))
        if index:
            parts.append(costs.linear("index queries", tokens, index.heads * index.head_dim, rank))
            parts.append(costs.linear("index keys", tokens, 4 * index.head_dim + index.heads, model.hidden))
    parts.append(_streams(costs))
    keys = compression.keys(training.seq)
    core = _fused(costs, "compressed attention", min(2 * keys, training.seq), keys, 1, head_dim, head_dim)
    if compression.ratio and index:
        scored = mean_keys(training.seq / compression.ratio)
        core = concat_ops(_scores(costs, compression.index_flops(training.seq), scored), core)
    groups = max(1, compression.o_groups // training.tp)
    out = concat_ops(
        costs.linear("output down", tokens, groups * compression.o_lora_rank, heads * head_dim // groups),
        costs.linear("projection", tokens, model.hidden, groups * compression.o_lora_rank),
        _streams(costs),
    )
    return concat_ops(*parts), core, out


def _streams(costs: Costs) -> RowOps:
    """Returns the mixing of residual streams before or behind a half of a layer."""
    training, model = costs.training, costs.training.model
    if model.streams == 1:
        return RowOps([], [], [])
    elements = training.tokens // training.shard * model.hidden * model.streams
    return RowOps(
        [costs.elementwise("hyper-connections", elements, 2, 2)],
        [costs.elementwise("hyper-connections", elements, 4, 4)],
        [],
    )


def _linear_attention(costs: Costs) -> tuple[RowOps, RowOps, RowOps]:
    """Returns a gated delta net's, or Mamba 2's: a convolution, a recurrence over chunks, a gated norm."""
    training, model, tp = costs.training, costs.training.model, costs.training.tp
    tokens = training.tokens
    if model.delta:
        delta = model.delta
        inputs, inner, name = delta.inputs, delta.values, "gated delta rule"
        channels, flops = 2 * delta.keys + delta.values, delta.core_flops()
        state = delta.value_heads * delta.key_dim * delta.value_dim
    else:
        assert model.mamba is not None
        mamba = model.mamba
        inputs, inner, name = mamba.inputs, mamba.inner, "selective scan"
        channels, flops = mamba.channels, mamba.core_flops()
        state = mamba.inner * mamba.state
    ranks = model.delta.gate_rank + model.delta.decay_rank if model.delta else 0
    into = [costs.linear("inputs", tokens, inputs // tp, model.hidden)]
    if model.delta and ranks:
        # What comes of latent ranks is no part of the first linear.
        delta = model.delta
        latent = (delta.values if delta.gate_rank else 0) + (delta.keys if delta.decay_rank else 0)
        into = [
            costs.linear("inputs", tokens, (inputs - latent) // tp + ranks, model.hidden),
            costs.linear("gates", tokens, latent // tp, max(delta.gate_rank, delta.decay_rank)),
        ]
    conv = costs.elementwise("convolution", tokens * channels // tp, 2)
    conv_back = costs.elementwise("convolution", tokens * channels // tp, 4, 2)
    states = 2 * 4.0 * state / _CHUNK
    moved_bytes = tokens * (2.0 * (channels + 2 * inner) + states) / tp
    seconds = tokens * flops / tp / (costs.peak * _RECURRENT)
    core = _timed(costs, name, tokens * flops / tp, seconds, moved_bytes, 4)
    back = core._replace(
        flops=2 * core.flops, bytes=2.5 * core.bytes, seconds=2.5 * core.seconds, kernels=8,
        efficiency=core.efficiency * 0.8,
    )  # fmt: skip
    gated = RowOps(
        [costs.elementwise("gated norm", tokens * inner // tp, 3)],
        [costs.elementwise("gated norm", tokens * inner // tp, 5, 2)],
        [],
    )
    out = concat_ops(gated, costs.linear("projection", tokens, model.hidden, inner // tp))
    return concat_ops(*into, RowOps([conv], [conv_back], [])), RowOps([core], [back], []), out
