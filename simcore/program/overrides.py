"""Faults and scales of single ranks, ports or rows, as the command line states them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from simcore.diagnostics import UsageError, printable
from simcore.records import Struct, field
from simcore.units import is_whole

# The greatest factor on a duration or bandwidth: more is a mistyped figure.
MOST_FACTOR = 1e6
# First words of parts that a factor can be on: of a workload, and of execution traces.
_PARTS = ("compute", "layer", "stream", "all", "nodes")
_LAYER_PHASES = ("fwd", "ig", "wg")
# Stands for every row that has no factor by its own name.
ANY_ROW = "*"
# The forms of the factors of a trace.
TRACE_FORMS = {
    "layer_scale": "of a trace OP=X, for example forward_step=0.9",
    "kind_scale": "KIND=X, for example dp=0.5",
    "slow_host": "R=X, for example 37=0.5",
    "stage_scale": "STAGE=X, for example 3=0.9",
}


class OverrideParameters(Struct, frozen=True):
    """The parameters of faults and scales, as they were given; fields as in `Parameters`."""

    slow_rank: tuple[str, ...]
    slow_link: tuple[str, ...]
    jitter: float
    seed: int
    compute_scale: float
    comm_scale: float
    layer_scale: tuple[str, ...]
    time_scale: tuple[str, ...]


class Overrides(Struct, frozen=True):
    """Faults and scales of a run."""

    slow_ranks: dict[int, float] = field(default_factory=dict)
    """Rank -> factor on its compute durations."""
    slow_links: dict[tuple[int, int], float] = field(default_factory=dict)
    """(dimension, rank) -> factor on the bandwidth of that rank's port."""
    jitter: float = 0.0
    """The standard deviation of every duration, as a share of it."""
    seed: int = 0
    """The seed of the jitter's hash."""
    compute_scale: float = 1.0
    """A factor on all compute durations."""
    comm_scale: float = 1.0
    """A factor on all communication durations."""
    layer_scales: dict[tuple[str, str], float] = field(default_factory=dict)
    """As `layer_scales` returns them."""
    time_scales: list[tuple[str, float]] = field(default_factory=list)
    """As `time_scales` returns them."""


def parse_overrides(parameters: OverrideParameters, world: int, dimensions: int) -> Overrides:
    """Returns the overrides of a run. Raises `UsageError` with what was given and what fits."""
    return Overrides(
        slow_ranks_of(parameters.slow_rank, world),
        slow_links_of(parameters.slow_link, world, dimensions),
        parameters.jitter,
        parameters.seed,
        parameters.compute_scale,
        parameters.comm_scale,
        layer_scales(parameters.layer_scale),
        time_scales(parameters.time_scale),
    )


def slow_links_of(texts: Sequence[str], world: int, dimensions: int) -> dict[tuple[int, int], float]:
    """Returns {(dimension, rank): factor on its port} from `--slow-link DIM:R=X`. Raises `UsageError`."""
    links = {}
    for text in texts:
        form = "DIM:R=X, for example 1:37=0.5"
        left, factor = parse_factor(text, "--slow-link", form)
        dimension, colon, rank = left.partition(":")
        if not colon:
            raise UsageError(f"--slow-link {printable(text, 60)}: {form} is expected")
        link = (
            _parse_index(dimension, "--slow-link", text, "dimension", dimensions),
            _parse_index(rank, "--slow-link", text, "rank", world),
        )
        links[link] = factor
    return links


def slow_ranks_of(texts: Sequence[str], world: int) -> dict[int, float]:
    """Returns {rank: factor on its compute} from `--slow-rank R=X`. Raises `UsageError`."""
    ranks = {}
    for text in texts:
        left, factor = parse_factor(text, "--slow-rank", "R=X, for example 37=1.3")
        ranks[_parse_index(left, "--slow-rank", text, "rank", world)] = factor
    return ranks


def layer_scales(texts: Sequence[str]) -> dict[tuple[str, str], float]:
    """Returns {(name, phase): factor} from `--layer-scale NAME:PHASE=X`. Raises `UsageError`."""
    scales = {}
    # No name of a workload has a blank, so that one text may state several factors.
    for text in (word for words in texts for word in words.split()):
        form = "NAME:PHASE=X, for example mlp_row:fwd=0.9"
        left, factor = parse_factor(text, "--layer-scale", form, zero=True)
        name, colon, phase = left.rpartition(":")
        if not colon or not name or phase not in _LAYER_PHASES:
            raise UsageError(
                f"--layer-scale {printable(text, 60)}: {form} is expected, "
                f"PHASE one of {', '.join(_LAYER_PHASES)}"
            )
        scales[name, phase] = factor
    return scales


def time_scales(texts: Sequence[str]) -> list[tuple[str, float]]:
    """Returns (part, factor) of each `--time-scale WHAT=X`, WHAT a part of the run. Raises `UsageError`."""
    scales = []
    for text in texts:
        form = "WHAT=X, for example stream tp=0.9"
        part, factor = parse_factor(text, "--time-scale", form, zero=True)
        kind, _, name = part.partition(" ")
        if kind not in _PARTS or not name:
            raise UsageError(
                f"--time-scale {printable(text, 60)}: {form} is expected, WHAT compute PHASE, layer NAME or "
                "stream KIND; of execution traces all compute, stream NAME or nodes NAME"
            )
        scales.append((part, factor))
    return scales


def find_factors(scales: Sequence[tuple[str, float]], part: str, layer: str) -> list[float]:
    """Returns the factors on a phase or stream (`compute fwd`) and on rows of that name without digits.

    scales: as `time_scales` returns them.
    """
    return [factor for scaled_part, factor in scales if scaled_part in (part, f"layer {layer}")]


def parse_factor(text: str, option: str, form: str, zero: bool = False) -> tuple[str, float]:
    """Returns (what, X) of `what=X`. Raises `UsageError`.

    form: what fits, for the message. zero: whether X may be 0.
    """
    left, equals, right = text.rpartition("=")
    try:
        factor = float(right)
    except ValueError:
        factor = math.nan
    if not equals or not 0 <= factor <= MOST_FACTOR or (factor == 0 and not zero):
        range_words = "up to 1e6" if zero else "above 0 and up to 1e6"
        raise UsageError(f"{option} {printable(text, 60)}: {form} is expected, X {range_words}")
    return left, factor


def _parse_index(text: str, option: str, full_text: str, what: str, count: int) -> int:
    if not is_whole(text, 12) or int(text) >= count:
        flag_text = f"{option} {printable(full_text, 60)}"
        raise UsageError(f"{flag_text}: no {what} {printable(text, 20)} in this run, only 0 to {count - 1}")
    return int(text)
