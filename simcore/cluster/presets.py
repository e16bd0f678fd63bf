"""Clusters by name, each with the source of its figures.

Bandwidths are those of one direction, bytes per ns; NVLink is a `switch`, which each GPU reaches
with the sum of its links. Latencies are round assumptions where no source is named: 500 ns
a hop inside a server or rack, 1000 ns between them. The last dimension is as long as the
world needs.
"""

from __future__ import annotations

from collections.abc import Callable

from simcore.cluster.model import Dimension
from simcore.cluster.parsing import Settings
from simcore.names import PRESET_NAMES
from simcore.ranks import ranks_of_domain

DEFAULT_PRESET = PRESET_NAMES[0]


def _make_servers(world: int, gpus: int, nvlink: float, nic: float, memory: float) -> Settings:
    """Returns servers (or racks) of `gpus` GPUs on NVLink, one NIC a GPU between them. GB/s."""
    # A small job keeps the whole dimension: its ranks are the first on it.
    domain_size = gpus if world <= gpus else ranks_of_domain(gpus, world)
    inside = Dimension("switch", domain_size, bandwidth=nvlink, latency_ns=500.0)
    between = Dimension("switch", -(-world // domain_size), bandwidth=nic, latency_ns=1000.0)
    return Settings(dims=(inside, between), local_mem_bandwidth=memory)


def a100_8(world: int) -> Settings:
    """Servers of 8 A100 80GB: NVLink 3, 600 GB/s in both directions together, and HBM2e with
    2039 GB/s (NVIDIA A100 data sheet, SXM); one 200 Gb/s ConnectX-6 a GPU (NVIDIA DGX A100
    data sheet)."""
    return _make_servers(world, 8, 300.0, 25.0, 2039.0)


def h100_8(world: int) -> Settings:
    """Servers of 8 H100: NVLink 4, 900 GB/s in both directions together, and HBM3 with 3350 GB/s
    (NVIDIA H100 data sheet, SXM); one 400 Gb/s ConnectX-7 a GPU (NVIDIA DGX H100 data sheet)."""
    return _make_servers(world, 8, 450.0, 50.0, 3350.0)


def h200_8(world: int) -> Settings:
    """Servers of 8 H200: NVLink 4 as in the H100, HBM3e with 4800 GB/s (NVIDIA H200 data sheet,
    SXM); one 400 Gb/s ConnectX-7 a GPU (NVIDIA DGX H200 data sheet)."""
    return _make_servers(world, 8, 450.0, 50.0, 4800.0)


def b200_8(world: int) -> Settings:
    """Servers of 8 B200: NVLink 5, 1800 GB/s in both directions together (14.4 TB/s a server), HBM3e
    with 64 TB/s a server, one 400 Gb/s ConnectX-7 a GPU (NVIDIA DGX B200 data sheet)."""
    return _make_servers(world, 8, 900.0, 50.0, 8000.0)


def gb200_nvl72(world: int) -> Settings:
    """Racks of 72 B200: NVLink 5, 1800 GB/s in both directions together (130 TB/s a rack), HBM3e with
    up to 576 TB/s a rack (NVIDIA GB200 NVL72 data sheet); one 400 Gb/s ConnectX-7 a GPU
    (NVIDIA DGX GB200 user guide)."""
    return _make_servers(world, 72, 900.0, 50.0, 8000.0)


def tpu_v4(world: int) -> Settings:
    """A 3D torus like TPU v4's, 4 x 4 x as many as are needed: 6 links of 50 GB/s a chip, HBM with
    1200 GB/s (Jouppi et al., "TPU v4: An Optically Reconfigurable Supercomputer for Machine
    Learning with Hardware Support for Embeddings", ISCA 2023)."""
    sizes = (4, 4, -(-world // 16))
    dims = tuple(Dimension("ring", size, bandwidth=50.0, latency_ns=500.0) for size in sizes)
    return Settings(dims=dims, local_mem_bandwidth=1200.0)


PRESETS: dict[str, Callable[[int], Settings]] = {
    "h100-8": h100_8,
    "a100-8": a100_8,
    "h200-8": h200_8,
    "b200-8": b200_8,
    "gb200-nvl72": gb200_nvl72,
    "tpu-v4": tpu_v4,
}
