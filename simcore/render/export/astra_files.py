"""The files that ASTRA-sim 2.x takes with execution traces: network, system, memory and groups."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from simcore.cluster import Cluster
from simcore.messages.alone import make_rules
from simcore.render.export.format import RankFile

# The prefix of the names of traces.
PREFIX = "wl"
_MEMORY = b'{"memory-type": "NO_MEMORY_EXPANSION"}\n'
_ALGORITHMS = {
    "ring": "ring",
    "halving-doubling": "halvingDoubling",
    "double-binary-tree": "doubleBinaryTree",
    "one-ring": "oneRing",
    "one-halving-doubling": "oneHalvingDoubling",
}
_TOPOLOGY = {"ring": "Ring", "fully-connected": "FullyConnected", "switch": "Switch"}
_FILES = {"ALLREDUCE": "all-reduce", "ALLGATHER": "all-gather", "REDUCESCATTER": "reduce-scatter",
          "ALLTOALL": "all-to-all"}  # fmt: skip


def companion_files(cluster: Cluster, groups: Sequence[Sequence[int]]) -> Iterator[RankFile]:
    """Yields the files of a cluster and of groups of ranks, which have numbers from 1."""
    ranks_by_group = {str(group_id): list(ranks) for group_id, ranks in enumerate(groups, 1)}
    yield RankFile("network.yml", [_network_yml(cluster)])
    yield RankFile("system.json", [_system_json(cluster)])
    yield RankFile("memory.json", [_MEMORY])
    yield RankFile("comm_group.json", [(json.dumps(ranks_by_group) + "\n").encode()])


def _network_yml(cluster: Cluster) -> bytes:
    """Returns ASTRA-sim's network file, bandwidths in its GiB/s."""
    dims = cluster.dims
    gib = [float(f"{dim.bandwidth * 1e9 / 2**30:.12g}") for dim in dims]
    lines = [
        f"topology: [ {', '.join(_TOPOLOGY[dim.kind] for dim in dims)} ]",
        f"npus_count: [ {', '.join(str(dim.size) for dim in dims)} ]",
        f"bandwidth: [ {', '.join(map(repr, gib))} ]  # GiB/s",
        f"latency: [ {', '.join(repr(float(dim.latency_ns)) for dim in dims)} ]  # ns",
    ]
    return ("\n".join(lines) + "\n").encode()


def _system_json(cluster: Cluster) -> bytes:
    """Returns ASTRA-sim's system file."""
    rules = make_rules(cluster)
    values = {
        "scheduling-policy": "FIFO",
        "endpoint-delay": cluster.endpoint_delay_ns,
        "active-chunks-per-dimension": cluster.active_chunks,
        "preferred-dataset-splits": cluster.splits,
        **{f"{word}-implementation": [_astra_name(name) for name in rules.algorithms[kind]]
           for kind, word in _FILES.items()},
        "collective-optimization": cluster.optimization,
        "local-mem-bw": cluster.local_mem_bandwidth,
        "boost-mode": 0,
        "roofline-enabled": 0,
        "peak-perf": 900,
    }  # fmt: skip
    return (json.dumps(values, indent=1) + "\n").encode()


def _astra_name(name: str) -> str:
    return _ALGORITHMS.get(name) or name.replace("one-direct", "oneDirect")
