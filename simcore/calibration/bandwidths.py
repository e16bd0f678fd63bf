"""Fits bandwidths of a cluster's dimensions so that communication takes as long as measured.

Each search is over one number: the kinds that cross one dimension alone decide its bandwidth, so that what
they take together equals what was measured; with that known, kinds that cross it and one other
dimension decide the other, and so on. Where no kind crosses any of several dimensions alone, these
get one common factor. Latencies stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from simcore.cluster import Cluster
from simcore.cluster.parsing import BANDWIDTHS
from simcore.records import Struct, replace

# A search ends when it knows the factor to this share; six figures of it are kept.
_EXACT = 1e-9
# 2^-30 to 2^30 times as slow: beyond any mistaken unit.
_MOST_DOUBLINGS = 30


class Target(Struct, frozen=True):
    """A kind of communication to fit by."""

    name: str
    """The name of the kind."""
    dimensions: frozenset[int]
    """The dimensions that it crosses."""
    measured_ns: int
    """The time of all its calls, ns."""
    ns_on: Callable[[Cluster], int]
    """Returns their time on a cluster, which never grows with a bandwidth."""


class DimensionFit(Struct, frozen=True):
    """The fit of a dimension."""

    dimension: int
    """The index of the dimension."""
    gbps: float
    """Its bandwidth, GB/s; the old one where it could not be fitted."""
    by: tuple[str, ...] = ()
    """The names of the kinds that decided."""
    together: tuple[int, ...] = ()
    """The dimensions that got one common factor, if it is not this one alone."""
    why: str = ""
    """Why it was not fitted; "" if it was."""


def fit_bandwidths(cluster: Cluster, targets: Sequence[Target]) -> list[DimensionFit]:
    """Returns one fit for each dimension, inner first."""
    fitted: dict[int, DimensionFit] = {}
    left = list(targets)
    while left:
        dimensions, deciding = _next(left, fitted)
        left = [target for target in left if target not in deciding]
        if not dimensions:
            continue
        for fitted_dimension in _fitted(cluster, dimensions, deciding):
            fitted[fitted_dimension.dimension] = fitted_dimension
            cluster = _with(cluster, {fitted_dimension.dimension: fitted_dimension.gbps})
    nothing = "nothing that could be compared crosses it"
    return [
        fitted.get(index) or DimensionFit(index, dimension.bandwidth, why=nothing)
        for index, dimension in enumerate(cluster.dims)
    ]


def _next(left: list[Target], fitted: Mapping[int, DimensionFit]) -> tuple[tuple[int, ...], list[Target]]:
    """Returns the fewest further dimensions that a kind depends on, and all kinds that need no others."""
    open_sets = [target.dimensions - fitted.keys() for target in left]
    fewest = min(open_sets, key=lambda open_set: (len(open_set), sorted(open_set)))
    return tuple(sorted(fewest)), [
        target for target, unknown in zip(left, open_sets, strict=True) if unknown <= fewest
    ]


def _fitted(
    cluster: Cluster, dimensions: tuple[int, ...], deciding: Sequence[Target]
) -> Iterable[DimensionFit]:
    names = tuple(target.name for target in deciding)
    goal = sum(target.measured_ns for target in deciding)
    old = {index: cluster.dims[index].bandwidth for index in dimensions}

    def ns(slower: float) -> int:
        other = _with(cluster, {index: gbps / slower for index, gbps in old.items()})
        return sum(target.ns_on(other) for target in deciding)

    together = dimensions if len(dimensions) > 1 else ()
    least = 2.0**-_MOST_DOUBLINGS
    if ns(least) >= goal:
        why = "latency and other fixed costs alone take as long as was measured, or longer"
        return [DimensionFit(index, gbps, names, together, why) for index, gbps in old.items()]
    slower = _slowness(ns, goal)
    if slower is None:
        why = "no bandwidth is low enough for what was measured"
        return [DimensionFit(index, gbps, names, together, why) for index, gbps in old.items()]
    return [DimensionFit(index, _within(gbps / slower), names, together) for index, gbps in old.items()]


def _slowness(ns: Callable[[float], int], goal: int) -> float | None:
    """Returns the factor on the time of a byte at which `ns`, which never falls with it, is `goal`.

    Times are whole ns, so a range of factors gives the same: its middle is taken. None where no factor in the
    range of the search gives it.
    """
    high = 1.0
    for _ in range(_MOST_DOUBLINGS):
        if ns(high) > goal:
            break
        high *= 2
    else:
        return None
    low = high / 2
    while ns(low) >= goal:
        low /= 2
    first = _edge(low, high, lambda slower: ns(slower) >= goal)
    last = _edge(low, high, lambda slower: ns(slower) > goal)
    return (first + last) / 2


def _edge(low: float, high: float, is_above: Callable[[float], bool]) -> float:
    """Returns where `is_above`, False at `low` and True at `high`, changes."""
    while high - low > _EXACT * high:
        middle = (low + high) / 2
        if is_above(middle):
            high = middle
        else:
            low = middle
    return (low + high) / 2


def _within(gbps: float) -> float:
    """Returns six figures of a bandwidth, within the range that `--dim` takes."""
    least, most = BANDWIDTHS
    return float(f"{min(max(gbps, least), most):.6g}")


def _with(cluster: Cluster, bandwidths: Mapping[int, float]) -> Cluster:
    dims = tuple(
        replace(dimension, bandwidth=bandwidths.get(index, dimension.bandwidth))
        for index, dimension in enumerate(cluster.dims)
    )
    return replace(cluster, dims=dims)
