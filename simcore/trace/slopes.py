"""Slopes of the step of a trace over scales: factors on durations of some kinds, with the order frozen."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable

from simcore.records import NamedTuple
from simcore.trace.gradients import Chains, Gradient
from simcore.trace.trace_graph import TraceGraph

# The kind of durations that no scale covers.
NO_KIND = 0


class Scale(NamedTuple):
    """A factor on some durations. Scales are ordered by (family, order) of the lowest of their kinds."""

    family: int
    """The group of scales it belongs to."""
    order: int
    """Its place among the scales of its family."""
    name: str
    """Its name, raw text of the file may be in it."""


def compute_gradients(
    of: TraceGraph, durations: array[int], kind_of: array[int], scales_of: Callable[[int], Iterable[Scale]]
) -> list[Gradient]:
    """Returns the gradient of each scale that covers any time.

    durations: as of `Graph.flatten`. kind_of: the kind of each duration. scales_of: returns the scales of a
    kind.
    """
    chains = Chains(of.graph, durations, kind_of, of.last_nodes)
    kinds_of: dict[str, list[int]] = {}
    scale_orders: dict[str, tuple[int, int]] = {}
    for kind in sorted(chains.kinds.keys() - {NO_KIND}):
        for family, order, name in scales_of(kind):
            kinds_of.setdefault(name, []).append(kind)
            scale_orders.setdefault(name, (family, order))
    ordered = sorted(kinds_of, key=scale_orders.__getitem__)
    return [Gradient(name, *chains.find_slopes(kinds_of[name])) for name in ordered]
