"""Which sizes have the parameters that a file states.

A rank's parameters are a sum in which the vocabulary, the length of a sequence (a table of positions) and
the inner size each have a factor that is known once the hidden size is: what rows leave open is tried, the
common sizes first.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from simcore.model.aicb import VERSIONS, AicbConfig, modules
from simcore.model.sizes import Mla
from simcore.records import NamedTuple, replace
from simcore.recovery.known import KNOWN, common_ffns, known_model, rarity, vocabulary
from simcore.recovery.statement import Statement

_MOST_HIDDEN = 1 << 17
_MOST_WORDS = 1 << 22
# So many are looked at: of some files every inner size has a vocabulary.
_MOST_FOUND = 400
_EXPERTS = (8, 16, 32, 64, 128, 160, 256)
_LATENT_RANKS = (1536, 512, 768, 1024, 2048)
_LATENT_HEADS = (128, 64, 32, 16, 20, 40, 96, 48, 56, 24)
# Counts of heads that may not divide the hidden size, whose projections are smaller then.
_HEADS = (12, 14, 18, 20, 24, 28, 36, 40, 44, 48, 52, 56, 60, 72, 80, 88, 96, 112, 120)


# Below this a config is common enough to look no further.
_COMMON = 4.0


class _Reach(NamedTuple):
    """How far is looked: inner sizes that are not common; heads that do not divide, and latent attention."""

    inner: bool
    heads: bool


_NEAR = _Reach(False, False)
_FURTHER = (_Reach(True, False), _Reach(False, True), _Reach(True, True))


def configs_of(stated: Statement) -> list[AicbConfig]:
    """Configs with the parameters stated, the most common first; none where there are none."""
    rarity_of: dict[AicbConfig, float] = {}
    readings = (stated.dense if stated.aiob else stated.total) or [0]
    for reading in readings[:3]:
        for version in stated.versions:
            for config in _of_reading(stated, version, reading):
                # What fewer rows say is less likely.
                rarity_of.setdefault(config, rarity(config) + (0.0 if reading == readings[0] else 0.25))
    return sorted(rarity_of, key=lambda config: rarity_of[config])


def _of_reading(stated: Statement, version: str, wanted: int) -> list[AicbConfig]:
    """wanted: parameters of a rank, in aiob files without those of experts."""
    configs = list(islice(_solved(stated, version, wanted, _NEAR), _MOST_FOUND))
    if (stated.microbatches or stated.activations) and (not configs or min(map(rarity, configs)) > _COMMON):
        for reach in _FURTHER:
            if reach.inner and not stated.activations:
                # Any hidden size with any inner one: whatever is found there says nothing.
                continue
            configs += islice(_solved(stated, version, wanted, reach), _MOST_FOUND)
            if configs:
                break
    return configs


def _solved(stated: Statement, version: str, wanted: int, reach: _Reach) -> Iterator[AicbConfig]:
    for hidden, topk in _hidden_sizes(stated, wanted, reach.heads):
        for first in _attention(stated, version, hidden, topk, reach.heads):
            for bias in (False, True):
                yield from _of_layer(stated, replace(first, bias=bias), wanted, reach.inner)


def _hidden_sizes(stated: Statement, wanted: int, wide: bool) -> Iterator[tuple[int, int]]:
    """(hidden size, experts a token)."""
    tokens = stated.tokens
    if not tokens:
        return
    for size in stated.activations[:2]:
        if size % (2 * tokens) == 0:
            topk = (stated.routed or size) // size
            yield size // (2 * tokens), max(topk, 1)
    if stated.activations:
        return
    known = [each.hidden for each in KNOWN]
    # A layer has at least the projections of its attention.
    most = min(_MOST_HIDDEN, int((wanted * stated.tp / max(4 * stated.layers, 1)) ** 0.5) + 64)
    # With each of the kinds of attention: the few that are common.
    step = 512 if stated.mla or wide else 64
    for hidden in dict.fromkeys([*known, *range(step, most, step)]):
        if stated.routed:
            product = stated.routed // (2 * tokens)
            if product % hidden == 0 and product // hidden <= 64:
                yield hidden, product // hidden
        elif stated.mla or wide or wanted % hidden == 0:
            yield hidden, 2 if stated.experts is not None else 1


def _attention(stated: Statement, version: str, hidden: int, topk: int, wide: bool) -> Iterator[AicbConfig]:
    """Configs of that hidden size, one for each kind of attention; all else in them is a first guess."""
    known = next((model for model in KNOWN if model.hidden == hidden), None)
    if stated.experts == 0:
        # No row says how many.
        here = [model.experts for model in KNOWN if model.hidden == hidden and model.experts]
        for count in dict.fromkeys([*here, *_EXPERTS]):
            if count % stated.ep == 0:
                yield from _attention(replace(stated, experts=count), version, hidden, topk, wide)
        return
    experts = stated.experts
    usual = [known.heads] if known else []
    sizes = (128, 64, 80, 96, 32, 16, 8, 4, 2)
    counts = [*usual, *(hidden // size for size in sizes if hidden % size == 0), 1]
    even = next(heads for heads in counts if hidden % heads == 0)
    first = AicbConfig(
        layers=stated.layers * stated.pp, hidden=hidden, heads=even, ffn=4 * hidden, vocab=1,
        seq=stated.tokens or 1, microbatch_size=1, global_batch=max(1, stated.microbatches * stated.dp),
        world=stated.world, tp=stated.tp, pp=stated.pp, ep=stated.ep,
        sequence_parallel=stated.sequence_parallel, recompute=stated.recompute, bias=False, experts=experts,
        experts_per_token=topk if experts is not None else 1,
        shared_experts=1 if stated.shared else 0, dense_layers=stated.dense_layers, mla=None, version=version,
    )  # fmt: skip
    if not stated.mla:
        yield first
        for heads in dict.fromkeys([stated.layers * stated.pp, *(_HEADS if wide else ())]):
            if hidden % heads:
                yield replace(first, heads=heads)
    if stated.mla or (wide and not stated.sequence_parallel):
        for rank in _LATENT_RANKS:
            for heads in dict.fromkeys([*usual, *_LATENT_HEADS, stated.layers * stated.pp]):
                yield replace(first, heads=heads, mla=Mla(rank, 512, 128, 64, 128))


def _of_layer(stated: Statement, first: AicbConfig, wanted: int, wide: bool) -> Iterator[AicbConfig]:
    """Configs that differ from `first` in the inner size, the sequence and the vocabulary."""
    if stated.words is not None:
        vocab, rest = divmod(stated.words, first.hidden)
        if rest or not 0 < vocab <= _MOST_WORDS:
            return
        first = replace(first, vocab=vocab)
        for seq, size in _sequences(stated):
            sized = replace(first, seq=seq, microbatch_size=size)
            for ffn in _inner_sizes(stated, sized, wanted):
                config = _finished(replace(sized, ffn=ffn), stated)
                if _counted(config, stated) == wanted:
                    yield config
        return
    yield from _with_words(first, _tried_ffns(stated, first, wide), stated, wanted, wide)


def _counted(config: AicbConfig, stated: Statement) -> int:
    """Parameters of a rank, in aiob files without those of experts."""
    return sum(n for name, n in modules(config) if not stated.aiob or "moe" not in name)


def _experts_counted(config: AicbConfig) -> int:
    return sum(n for name, n in modules(config) if "moe" in name)


def _sequences(stated: Statement) -> list[tuple[int, int]]:
    """(sequence, sequences of a micro-batch): the ways to make a micro-batch's tokens."""
    tokens = stated.tokens or 1
    return [(tokens // size, size) for size in range(1, min(tokens, 4096) + 1) if tokens % size == 0]


def _inner_sizes(stated: Statement, config: AicbConfig, wanted: int) -> list[int]:
    """The inner sizes with which the parameters of experts, or else all of them, are those stated."""
    if stated.moe and config.experts is not None:
        return _solve_ffn(config, stated.moe[0], experts=True, stated=stated)
    solved = _solve_ffn(config, wanted, experts=False, stated=stated)
    return solved or common_ffns(config.hidden)[:1]


def _solve_ffn(config: AicbConfig, wanted: int, experts: bool, stated: Statement) -> list[int]:
    def count(ffn: int) -> int:
        tried = replace(config, ffn=ffn)
        return _experts_counted(tried) if experts else _counted(tried, stated)

    far = 1024 * config.tp
    none, slope = count(0), (count(far) - count(0)) / far
    if slope <= 0 or wanted <= none:
        return []
    near = (wanted - none) / slope
    low, high = max(1, int(near) - config.tp), int(near) + config.tp + 1
    fitting = [ffn for ffn in range(low, high + 1) if count(ffn) == wanted]
    # tp cuts off what does not divide: the roundest of those that are the same.
    return sorted(fitting, key=lambda ffn: -(ffn & -ffn))[:1]


def _tried_ffns(stated: Statement, first: AicbConfig, wide: bool) -> list[int]:
    if stated.moe and first.experts is not None:
        return _solve_ffn(first, stated.moe[0], experts=True, stated=stated)
    common = common_ffns(first.hidden)
    of_rows = _counted(replace(first, ffn=1024 * first.tp), stated) != _counted(replace(first, ffn=0), stated)
    if not of_rows:
        # No row says it: experts whose gradients go where everybody else's go.
        like = [
            known.ffn for known in KNOWN if (known.hidden, known.experts) == (first.hidden, first.experts)
        ]
        return [*like, *common][:1]
    if not wide:
        return common
    step = max(first.tp, 64) if first.hidden >= 512 else first.tp
    most = 8 * first.hidden
    return [*common, *range(step, most + 1, step), *range(8, min(most, 8192), 8)]


def _with_words(
    first: AicbConfig, ffns: list[int], stated: Statement, wanted: int, wide: bool
) -> Iterator[AicbConfig]:
    """Configs whose vocabulary makes up the parameters that are left, for each inner size and sequence."""
    tp, hidden = first.tp, first.hidden
    slope = VERSIONS[first.version].embedding * hidden
    if first.sequence_parallel:
        slope += hidden + int(first.bias)
    step = 128 * tp
    least = replace(first, vocab=step, seq=0, ffn=0)
    none = _counted(least, stated) - 128 * slope
    # An inner size counts as what each rank of tp has of it.
    each_inner = _counted(replace(least, ffn=tp), stated) - 128 * slope - none
    sequences = _sequences(stated)
    most = _MOST_WORDS // tp
    for ffn in ffns:
        base = wanted - none - ffn // tp * each_inner
        for seq, size in sequences:
            each, rest = divmod(base - seq * hidden, slope)
            if rest or not 0 < each <= most:
                continue
            if each % 128 == 0:
                vocab, divisor = vocabulary(each * tp, step), 128
            elif wide and each >= 64:
                # Padded to something else (--make_vocab_size_divisible_by).
                vocab, divisor = each * tp, each & -each
            else:
                continue
            config = replace(first, ffn=ffn, seq=seq, microbatch_size=size, vocab=vocab, vocab_step=divisor)
            yield _finished(config, stated)


def _finished(config: AicbConfig, stated: Statement) -> AicbConfig:
    """The config with the batch that has the micro-batches found, and what a known model of its sizes has."""
    each = config.microbatch_size * stated.dp
    batch = stated.microbatches * each if stated.microbatches else max(1, each // 2)
    config = replace(config, global_batch=batch)
    known = known_model(config)
    if known is None:
        return config
    config = replace(config, layers=known.layers)
    if config.mla is None and config.hidden % config.heads == 0 and config.hidden % known.heads == 0:
        config = replace(config, heads=known.heads)
    if stated.experts is not None and not stated.routed and known.experts_per_token:
        config = replace(config, experts_per_token=known.experts_per_token)
    if config.mla and config.experts is not None and stated.shared:
        config = replace(config, shared_experts=known.shared_experts or 1)
    return config
