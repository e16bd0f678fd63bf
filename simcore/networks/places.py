"""Where ranks are for a model without dimensions: what folding compares in place of a cluster's places."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simcore.cluster import Cluster
    from simcore.layout import Layout
    from simcore.parameters import Parameters

# Never shown and never priced: only which dimensions two ranks differ in is asked.
_BANDWIDTH, _LATENCY_NS = 1.0, 0.0


def one_place(parameters: Parameters, layout: Layout) -> Cluster:
    """All ranks beside each other: prices depend on no place."""
    return _switches(layout.world)


def servers(parameters: Parameters, layout: Layout) -> Cluster:
    """Servers of `--gpus-per-server` ranks, dimension 0; dimension 1 is between them."""
    inside = parameters.gpus_per_server
    return _switches(inside, -(-layout.world // inside))


def _switches(*sizes: int) -> Cluster:
    # Imported here: this room is looked into for the names of its models alone.
    from simcore.cluster import Cluster, Dimension

    dims = tuple(Dimension("switch", size, _BANDWIDTH, _LATENCY_NS) for size in sizes)
    return Cluster(dims, (None,) * len(dims))
