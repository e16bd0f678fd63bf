"""Solves for the sizes that give the parameters that a file states.

A rank's parameters are a sum in which the vocabulary, the length of a sequence (a table of positions) and
the inner size each have a factor that is known once the hidden size is. Sizes that rows leave open are tried,
the common ones first.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import islice

from simcore.model.aicb import VERSIONS, AicbConfig, repeated_modules
from simcore.model.sizes import Mla
from simcore.records import NamedTuple, replace
from simcore.recovery.published_models import (
    PUBLISHED_MODELS,
    common_ffns,
    find_published_model,
    guess_vocabulary,
    rarity,
)
from simcore.recovery.statement import Statement

_MOST_HIDDEN = 1 << 17
_MOST_WORDS = 1 << 22
# The most configs that are collected: for some files every inner size has a vocabulary.
_MOST_FOUND = 400
_EXPERTS = (8, 16, 32, 64, 128, 160, 256)
_LATENT_RANKS = (1536, 512, 768, 1024, 2048)
_LATENT_HEADS = (128, 64, 32, 16, 20, 40, 96, 48, 56, 24)
# Numbers of heads that may not divide the hidden size; the projections are smaller then.
_HEADS = (12, 14, 18, 20, 24, 28, 36, 40, 44, 48, 52, 56, 60, 72, 80, 88, 96, 112, 120)


# With a config below this rarity the search ends.
_COMMON = 4.0


class _SearchLimits(NamedTuple):
    """How far the search goes.

    inner: whether uncommon inner sizes are tried. heads: whether heads that do not divide the hidden size,
    and latent attention, are tried.
    """

    inner: bool
    heads: bool


_COMMON_LIMITS = _SearchLimits(False, False)
_WIDER_LIMITS = (_SearchLimits(True, False), _SearchLimits(False, True), _SearchLimits(True, True))


def find_configs(statement: Statement) -> list[AicbConfig]:
    """Returns the configs with the parameters stated, the most common first; none if none has them."""
    rarity_of: dict[AicbConfig, float] = {}
    readings = (statement.dense if statement.aiob else statement.total) or [0]
    for reading in readings[:3]:
        for version in statement.versions:
            for config in _configs_of_reading(statement, version, reading):
                # A reading of fewer rows is less likely.
                rarity_of.setdefault(config, rarity(config) + (0.0 if reading == readings[0] else 0.25))
    return sorted(rarity_of, key=lambda config: rarity_of[config])


def _configs_of_reading(statement: Statement, version: str, parameters: int) -> list[AicbConfig]:
    """Returns the configs of one reading.

    parameters: of a rank, in aiob files without those of experts.
    """
    configs = list(islice(_solve_reading(statement, version, parameters, _COMMON_LIMITS), _MOST_FOUND))
    if (statement.microbatches or statement.activations) and (
        not configs or min(map(rarity, configs)) > _COMMON
    ):
        for limits in _WIDER_LIMITS:
            if limits.inner and not statement.activations:
                # Any hidden size with any inner size: such a result would prove nothing.
                continue
            configs += islice(_solve_reading(statement, version, parameters, limits), _MOST_FOUND)
            if configs:
                break
    return configs


def _solve_reading(
    statement: Statement, version: str, parameters: int, limits: _SearchLimits
) -> Iterator[AicbConfig]:
    for hidden, topk in _hidden_sizes(statement, parameters, limits.heads):
        for first in _attention_configs(statement, version, hidden, topk, limits.heads):
            for bias in (False, True):
                yield from _layer_configs(statement, replace(first, bias=bias), parameters, limits.inner)


def _hidden_sizes(statement: Statement, parameters: int, wide: bool) -> Iterator[tuple[int, int]]:
    """Yields (hidden size, experts of a token)."""
    tokens = statement.tokens
    if not tokens:
        return
    for size in statement.activations[:2]:
        if size % (2 * tokens) == 0:
            topk = (statement.routed or size) // size
            yield size // (2 * tokens), max(topk, 1)
    if statement.activations:
        return
    published = [each.hidden for each in PUBLISHED_MODELS]
    # A layer has at least the projections of its attention.
    most = min(_MOST_HIDDEN, int((parameters * statement.tp / max(4 * statement.layers, 1)) ** 0.5) + 64)
    # With several kinds of attention only the few common sizes are tried.
    step = 512 if statement.mla or wide else 64
    for hidden in dict.fromkeys([*published, *range(step, most, step)]):
        if statement.routed:
            product = statement.routed // (2 * tokens)
            if product % hidden == 0 and product // hidden <= 64:
                yield hidden, product // hidden
        elif statement.mla or wide or parameters % hidden == 0:
            yield hidden, 2 if statement.experts is not None else 1


def _attention_configs(
    statement: Statement, version: str, hidden: int, topk: int, wide: bool
) -> Iterator[AicbConfig]:
    """Yields configs of that hidden size, one for each kind of attention; all else in them is a first
    guess.
    """
    published = next((model for model in PUBLISHED_MODELS if model.hidden == hidden), None)
    if statement.experts == 0:
        # No row states how many.
        here = [model.experts for model in PUBLISHED_MODELS if model.hidden == hidden and model.experts]
        for count in dict.fromkeys([*here, *_EXPERTS]):
            if count % statement.ep == 0:
                yield from _attention_configs(replace(statement, experts=count), version, hidden, topk, wide)
        return
    experts = statement.experts
    usual = [published.heads] if published else []
    sizes = (128, 64, 80, 96, 32, 16, 8, 4, 2)
    counts = [*usual, *(hidden // size for size in sizes if hidden % size == 0), 1]
    even = next(heads for heads in counts if hidden % heads == 0)
    first = AicbConfig(
        layers=statement.layers * statement.pp,
        hidden=hidden,
        heads=even,
        ffn=4 * hidden,
        vocab=1,
        seq=statement.tokens or 1,
        microbatch_size=1,
        global_batch=max(1, statement.microbatches * statement.dp),
        world=statement.world,
        tp=statement.tp,
        pp=statement.pp,
        ep=statement.ep,
        sequence_parallel=statement.sequence_parallel,
        recompute=statement.recompute,
        bias=False,
        experts=experts,
        experts_per_token=topk if experts is not None else 1,
        shared_experts=1 if statement.shared else 0,
        dense_layers=statement.dense_layers,
        mla=None,
        version=version,
    )
    if not statement.mla:
        yield first
        for heads in dict.fromkeys([statement.layers * statement.pp, *(_HEADS if wide else ())]):
            if hidden % heads:
                yield replace(first, heads=heads)
    if statement.mla or (wide and not statement.sequence_parallel):
        for rank in _LATENT_RANKS:
            for heads in dict.fromkeys([*usual, *_LATENT_HEADS, statement.layers * statement.pp]):
                yield replace(first, heads=heads, mla=Mla(rank, 512, 128, 64, 128))


def _layer_configs(
    statement: Statement, first: AicbConfig, parameters: int, wide: bool
) -> Iterator[AicbConfig]:
    """Yields configs that differ from `first` in the inner size, the sequence and the vocabulary."""
    if statement.words is not None:
        vocab, rest = divmod(statement.words, first.hidden)
        if rest or not 0 < vocab <= _MOST_WORDS:
            return
        first = replace(first, vocab=vocab)
        for seq, size in _sequences(statement.tokens or 1):
            sized = replace(first, seq=seq, microbatch_size=size)
            for ffn in _inner_sizes(statement, sized, parameters):
                config = _complete_config(replace(sized, ffn=ffn), statement)
                if _count_parameters(config, statement) == parameters:
                    yield config
        return
    yield from _vocabulary_configs(
        first, _candidate_ffns(statement, first, wide), statement, parameters, wide
    )


def _count_parameters(config: AicbConfig, statement: Statement) -> int:
    """Returns the parameters of a rank, in aiob files without those of experts."""
    return sum(
        count * sum(n for name, n in equal_ones if not statement.aiob or "moe" not in name)
        for equal_ones, count in repeated_modules(config)
    )


def _count_expert_parameters(config: AicbConfig) -> int:
    return sum(
        count * sum(n for name, n in equal_ones if "moe" in name)
        for equal_ones, count in repeated_modules(config)
    )


@lru_cache(1)
def _sequences(tokens: int) -> list[tuple[int, int]]:
    """Returns (tokens of a sequence, sequences of a micro-batch): the ways to make a micro-batch's tokens."""
    return [(tokens // size, size) for size in range(1, min(tokens, 4096) + 1) if tokens % size == 0]


def _inner_sizes(statement: Statement, config: AicbConfig, parameters: int) -> list[int]:
    """Returns the inner sizes with which the parameters of experts, or else all of them, are those stated."""
    if statement.moe and config.experts is not None:
        return _solve_ffn(config, statement.moe[0], experts=True, statement=statement)
    solved = _solve_ffn(config, parameters, experts=False, statement=statement)
    return solved or common_ffns(config.hidden)[:1]


def _solve_ffn(config: AicbConfig, parameters: int, experts: bool, statement: Statement) -> list[int]:
    def count(ffn: int) -> int:
        candidate = replace(config, ffn=ffn)
        return _count_expert_parameters(candidate) if experts else _count_parameters(candidate, statement)

    far = 1024 * config.tp
    none, slope = count(0), (count(far) - count(0)) / far
    if slope <= 0 or parameters <= none:
        return []
    near = (parameters - none) / slope
    low, high = max(1, int(near) - config.tp), int(near) + config.tp + 1
    fitting = [ffn for ffn in range(low, high + 1) if count(ffn) == parameters]
    # tp drops what does not divide, so that several give the same: the roundest of them is taken.
    return sorted(fitting, key=lambda ffn: -(ffn & -ffn))[:1]


def _candidate_ffns(statement: Statement, first: AicbConfig, wide: bool) -> list[int]:
    if statement.moe and first.experts is not None:
        return _solve_ffn(first, statement.moe[0], experts=True, statement=statement)
    common = common_ffns(first.hidden)
    of_rows = _count_parameters(replace(first, ffn=1024 * first.tp), statement) != _count_parameters(
        replace(first, ffn=0), statement
    )
    if not of_rows:
        # No row states it for experts whose gradients are reduced with all others.
        similar = [
            model.ffn
            for model in PUBLISHED_MODELS
            if (model.hidden, model.experts) == (first.hidden, first.experts)
        ]
        return [*similar, *common][:1]
    if not wide:
        return common
    step = max(first.tp, 64) if first.hidden >= 512 else first.tp
    most = 8 * first.hidden
    return [*common, *range(step, most + 1, step), *range(8, min(most, 8192), 8)]


def _vocabulary_configs(
    first: AicbConfig, ffns: list[int], statement: Statement, parameters: int, wide: bool
) -> Iterator[AicbConfig]:
    """Yields configs whose vocabulary makes up the remaining parameters, for each inner size and sequence."""
    tp, hidden = first.tp, first.hidden
    slope = VERSIONS[first.version].embedding * hidden
    if first.sequence_parallel:
        slope += hidden + int(first.bias)
    step = 128 * tp
    least = replace(first, vocab=step, seq=0, ffn=0)
    none = _count_parameters(least, statement) - 128 * slope
    # Of an inner size each rank of tp has a share.
    each_inner = _count_parameters(replace(least, ffn=tp), statement) - 128 * slope - none
    sequences = _sequences(statement.tokens or 1)
    most = _MOST_WORDS // tp
    for ffn in ffns:
        base = parameters - none - ffn // tp * each_inner
        for seq, size in sequences:
            each, rest = divmod(base - seq * hidden, slope)
            if rest or not 0 < each <= most:
                continue
            if each % 128 == 0:
                vocab, divisor = guess_vocabulary(each * tp, step), 128
            elif wide and each >= 64:
                # It is padded to another multiple (--make_vocab_size_divisible_by).
                vocab, divisor = each * tp, each & -each
            else:
                continue
            config = replace(first, ffn=ffn, seq=seq, microbatch_size=size, vocab=vocab, vocab_step=divisor)
            yield _complete_config(config, statement)


def _complete_config(config: AicbConfig, statement: Statement) -> AicbConfig:
    """Returns the config with the batch that has the micro-batches found, and what a known model of its sizes
    has.
    """
    each = config.microbatch_size * statement.dp
    batch = statement.microbatches * each if statement.microbatches else max(1, each // 2)
    config = replace(config, global_batch=batch)
    published = find_published_model(config)
    if published is None:
        return config
    config = replace(config, layers=published.layers)
    if config.mla is None and config.hidden % config.heads == 0 and config.hidden % published.heads == 0:
        config = replace(config, heads=published.heads)
    if statement.experts is not None and not statement.routed and published.experts_per_token:
        config = replace(config, experts_per_token=published.experts_per_token)
    if config.mla and config.experts is not None and statement.shared:
        config = replace(config, shared_experts=published.shared_experts or 1)
    return config
