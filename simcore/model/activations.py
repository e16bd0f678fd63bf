"""What a layer keeps of a micro-batch for its backward, tensor by tensor (arXiv 2205.05198, table 2)."""

from __future__ import annotations

from simcore.model.training import Training


def layer_activations(
    training: Training, moe: bool, recompute: str | None = None, expert: int | None = None
) -> int:
    """Bytes that one layer holds of one micro-batch (arXiv 2205.05198, table 2, tensor by tensor).

    recompute: of another training than this one's. expert: as of `stage_memory`.
    """
    model, tokens, tp, shard = training.model, training.tokens, training.tp, training.shard
    recompute = training.recompute if recompute is None else recompute
    between = 2 * tokens * model.hidden // shard
    if recompute == "full":
        return between
    dropped = tokens * model.hidden // shard if model.dropout else 0
    # Each half of a layer: what its norm takes, what its first linear takes, and a mask.
    rows = training.recompute_rows
    size = 2 * ((1 if "norm" in rows else 2) * between + dropped)
    if model.mla:
        mla = model.mla
        size += 2 * tokens * model.heads * 2 * (model.query_dim + model.value_dim) // tp
        size += 2 * tokens * 2 * (mla.q_lora_rank + mla.kv_lora_rank + mla.qk_rope_head_dim)
    else:
        kv_heads = max(model.kv_heads, tp)
        # Queries, keys, values; and the output, which the projection takes.
        size += 2 * tokens * (2 * model.heads + 2 * kv_heads) * model.head_dim // tp
    if training.flash:
        size += 4 * tokens * model.heads // tp
    elif "attention" not in rows:
        size += attention_scores(training)
    if moe and model.moe:
        routed, loads = training.routed_tokens, training.loads
        if loads is not None:
            routed = loads.of_rank[loads.hot if expert is None else expert]
        size += 4 * routed * model.hidden + _mlp(training, model.moe.ffn, routed)
        if model.moe.shared_experts:
            size += _mlp(training, model.moe.ffn * model.moe.shared_experts, tokens) // tp
        return size
    return size + _mlp(training, model.ffn, tokens) // tp


def _mlp(training: Training, ffn: int, tokens: int) -> int:
    """Both outputs of a gated first linear and what the second takes; of one that is not, one output.

    What the second takes is no longer held where the activation runs again.
    """
    each = 4 if training.model.gated else 2
    return tokens * ffn * (each if "mlp_act" in training.recompute_rows else each + 2)


def attention_scores(training: Training) -> int:
    """The scores of attention without flash: before and after softmax, with dropout's mask and output."""
    model = training.model
    numbers = model.heads * training.tokens * training.seq // training.tp
    return numbers * (5 if model.dropout else 4)
