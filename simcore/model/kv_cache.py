"""The cache of keys and values that an inference step reads or leaves, bytes (docs/inference.md)."""

from __future__ import annotations

from simcore.model.sizes import Model
from simcore.model.training import Training

# States of linear attention stay fp32, as its kernels have them.
_STATE_BYTES = 4


def cached_tokens(training: Training) -> int:
    """Returns the tokens of a sequence in the cache when the step has ended, on one rank of a cp group."""
    step = training.inference
    assert step is not None
    tokens = step.context + 1 if step.decodes else training.seq
    return -(-tokens // training.cp)


def layer_cache(training: Training, kind: int) -> int:
    """Returns the bytes of the cache of one sequence in a layer of a kind, on one rank.

    Keys and values of the rank's heads, at least one; latent attention has its latent vector and the rotary
    key on every rank of tp. A window keeps its last tokens; linear attention has a state and no tokens.
    """
    model, tokens = training.model.of_kind(kind), cached_tokens(training)
    if not model.attends:
        return 0
    if model.delta or model.mamba:
        return _state_bytes(model, training.tp)
    token_numbers = _kept_tokens(model, tokens) * _token_numbers(model, training.tp)
    return _number_bytes(training) * (token_numbers + _index_numbers(model, tokens))


def layer_reads(training: Training, model: Model) -> int:
    """Returns the bytes of its cache that the next token of one sequence reads in a layer of these sizes, on
    one rank: less than all of it where keys are selected.
    """
    if not model.attends:
        return 0
    if model.delta or model.mamba:
        return _state_bytes(model, training.tp)
    tokens = cached_tokens(training)
    token_numbers = layer_keys(training, model) * _token_numbers(model, training.tp)
    return _number_bytes(training) * (token_numbers + _index_numbers(model, tokens))


def layer_keys(training: Training, model: Model) -> int:
    """Returns the keys that the next token of a sequence sees in a layer of these sizes, on one rank."""
    tokens = cached_tokens(training)
    keys = _kept_tokens(model, tokens)
    if model.indexer:
        return min(keys, model.indexer.topk)
    compression = model.compression
    if compression and compression.ratio and compression.indexer:
        window = min(tokens, compression.window)
        return window + min(keys - window, compression.indexer.topk)
    return keys


def stage_cache(training: Training, stage: int) -> int:
    """Returns the bytes of the cache of all sequences of a replica on one rank of a stage."""
    sequences = training.microbatch_size * training.microbatches
    return sequences * sum(
        count * layer_cache(training, kind)
        for chunk in training.stage_chunks
        for kind, count in training.kinds_of(stage, chunk)
    )


def _number_bytes(training: Training) -> int:
    assert training.inference is not None
    return training.inference.kv_bytes


def _state_bytes(model: Model, tp: int) -> int:
    """Returns the bytes of the state of linear attention, and of the inputs of its convolution."""
    if model.delta:
        delta = model.delta
        state = delta.value_heads * delta.key_dim * delta.value_dim
        inputs = (delta.conv - 1) * (2 * delta.keys + delta.values)
    else:
        mamba = model.mamba
        assert mamba is not None
        state, inputs = mamba.inner * mamba.state, (mamba.conv - 1) * mamba.channels
    return (_STATE_BYTES * state + 2 * inputs) // tp


def _kept_tokens(model: Model, tokens: int) -> int:
    """Returns how many tokens of so many a layer keeps: those of a window, compressed ones behind it."""
    compression = model.compression
    if compression:
        compressed = tokens // compression.ratio if compression.ratio else 0
        return min(tokens, compression.window) + compressed
    return min(tokens, model.window) if model.window else tokens


def _token_numbers(model: Model, tp: int) -> int:
    """Returns the numbers of a kept token on one rank."""
    if model.mla:
        return model.mla.kv_lora_rank + model.mla.qk_rope_head_dim
    if model.compression:
        # One key for all heads, which is the value, too.
        return model.head_dim
    return -(-model.kv_heads // tp) * (model.query_dim + model.value_dim)


def _index_numbers(model: Model, tokens: int) -> int:
    """Returns the numbers of the keys by which tokens are selected, which every rank has."""
    index, compression = model.indexer, model.compression
    if index and index.heads:
        return tokens // index.block * index.head_dim
    if compression and compression.ratio and compression.indexer:
        return tokens // compression.ratio * compression.indexer.head_dim
    return 0
