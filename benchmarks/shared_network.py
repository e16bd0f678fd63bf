"""The `shared` network beside ASTRA-sim 2.0's congestion-aware backend, run by run.

Prints the table of docs/shared-network.md; with --write puts it there. The figures of ASTRA-sim
were measured (one collective alone, per-link FIFO queues); wltui's are made anew.
Usage: python benchmarks/shared_network.py [--write]
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median_high as median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.measuring import ROOT, put
from simcore.cluster import Cluster, Dimension, group_shape
from simcore.networks import GroupCollective
from simcore.networks.shared import SharedNetwork

FIGURES = ROOT / "tests" / "sharing" / "golden_astra2_fifo.json"
PAGE = ROOT / "docs" / "shared-network.md"
NAMES = {
    "halvingDoubling": "halving-doubling",
    "doubleBinaryTree": "double-binary-tree",
    "oneRing": "one-ring",
    "oneDirect": "one-direct",
    "oneHalvingDoubling": "one-halving-doubling",
}


def cluster_of(run: dict[str, Any]) -> Cluster:
    """The cluster of a measured run; its bandwidths are GiB/s."""
    dims = tuple(
        Dimension(dim["kind"], dim["size"], dim["bandwidth_gibps"] * 2**30 / 1e9, dim["latency_ns"])
        for dim in run["dims"]
    )
    names = tuple(NAMES.get(name, name) for name in run["algorithms"])
    return Cluster(
        dims,
        names if len(names) == len(dims) else names * len(dims),
        run["endpoint_delay_ns"],
        float(run["local_mem_bw_gbps"]),
        alltoall_port_time=False,
        splits=run["splits"],
        active_chunks=run["active_chunks"],
        optimization=run["optimization"],
    )


def rows(runs: list[dict[str, Any]]) -> Iterator[tuple[str, str, int, int, int, int, int]]:
    """(cluster and algorithms, collective, bytes, splits, ns of: analytical, shared, per-link FIFO)."""
    for run in runs:
        cluster = cluster_of(run)
        network = SharedNetwork(cluster)
        collective = run["collective"].upper()
        size = run["size_bytes"] * (cluster.npus if collective == "ALLGATHER" else 1)
        shape = group_shape(cluster, range(cluster.npus))
        dims = " x ".join(f"{dim['kind']} {dim['size']}" for dim in run["dims"])
        where = f"{dims}, {' / '.join(run['algorithms'])}"
        if run["optimization"] != "localBWAware":
            where += f", {run['optimization']}"
        placed = GroupCollective("all", shape, (), collective, size)
        alone, shared = super(SharedNetwork, network).collective_ns(placed), network.collective_ns(placed)
        yield where, run["collective"], size, run["splits"], alone, shared, run["finish_max_ns"]


def table() -> str:
    """The table of the page, with its summary."""
    runs = json.loads(FIGURES.read_text(encoding="utf-8"))["runs"]
    found = sorted(rows(runs))
    ratios = sorted(row[6] / row[5] for row in found)
    unaware = sorted(row[6] / row[4] for row in found)
    within = sum(0.95 <= ratio <= 1.05 for ratio in ratios)
    lines = [
        f"{len(found)} runs: per-link FIFO / `shared` is {ratios[0]:.2f} to {ratios[-1]:.2f}, median "
        f"{median(ratios):.2f}, {within} within 5 %; per-link FIFO / `analytical` is "
        f"{unaware[0]:.2f} to {unaware[-1]:.2f}, median {median(unaware):.2f}.",
        "",
        "| cluster (kind, size), algorithms | runs | FIFO / shared: least | median | most |",
        "|---|---|---|---|---|",
    ]
    by_cluster: dict[str, list[float]] = {}
    for row in found:
        by_cluster.setdefault(row[0], []).append(row[6] / row[5])
    for where, some in by_cluster.items():
        lines.append(f"| {where} | {len(some)} | {min(some):.2f} | {median(some):.2f} | {max(some):.2f} |")
    return "\n".join(lines) + "\n"


def main(words: list[str]) -> None:
    """Print the table, or write it."""
    made = table()
    print(made, end="")
    if "--write" in words:
        put(PAGE, Path(__file__).stem, made)


if __name__ == "__main__":
    main(sys.argv[1:])
