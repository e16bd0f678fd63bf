"""Where ranks are for a model without dimensions: what folding compares in place of a cluster's places."""

from __future__ import annotations

from simcore.cluster import Cluster, Dimension
from simcore.layout import Layout
from simcore.parameters import Parameters

# Never shown and never priced: only which dimensions two ranks differ in is asked.
_BANDWIDTH, _LATENCY_NS = 1.0, 0.0


def one_place(parameters: Parameters, layout: Layout) -> Cluster:
    """All ranks beside each other: prices depend on no place."""
    return Cluster((Dimension("switch", layout.world, _BANDWIDTH, _LATENCY_NS),), (None,))


def servers(parameters: Parameters, layout: Layout) -> Cluster:
    """Servers of `--gpus-per-server` ranks, dimension 0; dimension 1 is between them."""
    inside = parameters.gpus_per_server
    sizes = (inside, -(-layout.world // inside))
    dims = tuple(Dimension("switch", size, _BANDWIDTH, _LATENCY_NS) for size in sizes)
    return Cluster(dims, (None,) * len(dims))
