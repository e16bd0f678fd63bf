"""`links`: every message on its links, first come first served (ASTRA-sim 2.x's congestion-aware backend).

Of execution traces and of `wltui collective`; a workload's collectives are simulated one by one, each alone.
"""

from __future__ import annotations

from simcore.cluster import Cluster
from simcore.diagnostics import UsageError
from simcore.layout import Layout
from simcore.networks.model import Network
from simcore.parameters import Parameters


def opened(parameters: Parameters, layout: Layout, cluster: Cluster, argument: str) -> Network:
    """The network of a run: see `NetworkModel`."""
    raise UsageError(
        "--network links: of execution traces and of wltui collective; export a workload with --format "
        "chakra "
        "and open that"
    )
