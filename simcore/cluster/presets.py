"""Clusters by name, each with the source of its figures."""

from __future__ import annotations

from simcore.cluster.model import Cluster, Dimension

DEFAULT_PRESET = "h100-8"
_NPUS_PER_SERVER = 8


def default_cluster(world: int) -> Cluster:
    """The preset `h100-8` for `world` ranks: servers of 8 H100-like NPUs, one NIC an NPU.

    Inside a server a switch of 8 at 450 GB/s (NVLink 4: 900 GB/s in both directions together,
    NVIDIA H100 data sheet); between servers a switch of ceil(world / 8) at 50 GB/s (one
    400 Gb/s ConnectX-7 an NPU, NVIDIA DGX H100 data sheet); local memory 3350 GB/s (H100 SXM,
    the same data sheet). The latencies, 500 and 1000 ns a hop, are round assumptions.
    """
    servers = -(-world // _NPUS_PER_SERVER)
    dims = (
        Dimension("switch", _NPUS_PER_SERVER, bandwidth=450.0, latency_ns=500.0),
        Dimension("switch", servers, bandwidth=50.0, latency_ns=1000.0),
    )
    return Cluster(dims, (None, None))
