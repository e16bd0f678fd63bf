"""Random sets: every node of every rank equals a second statement of ASTRA-sim's rules, to the ns.

30 sets, 2,000 with --whole; `WLTUI_RANDOM_SETS=5000` runs so many, `WLTUI_RANDOM_SET=N` set N alone. Planted,
to see this fail: a walk in the order of the file, an endpoint delay in a group, a last chunk of the rest, a
receive before the sender's callback, a queue left before the workload is told.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from simcore.chakra import find_set, open_set
from simcore.cluster import ClusterParameters, choose_cluster
from simcore.compat.astra2 import AstraRun, RemoteMemory, System
from simcore.compat.astra2_system import read_astra_system
from simcore.messages.clock import Clock
from simcore.messages.collectives import Rules
from simcore.messages.network import FullBandwidth, LinkByLink
from tests.executing.encoding import write_json, write_network, write_set
from tests.executing.random_sets import random_setup
from tests.executing.second_rules import simulate
from tests.fast_tier import FAST_CASES

SOME, ALL = 30, 2000


def seeds(config: pytest.Config) -> range:
    only = os.environ.get("WLTUI_RANDOM_SET")
    if only is not None:
        return range(int(only), int(only) + 1)
    usual = ALL if config.getoption("--whole") else FAST_CASES if config.getoption("--fast") else SOME
    return range(int(os.environ.get("WLTUI_RANDOM_SETS", usual)))


def system_json(system: dict[str, Any]) -> dict[str, Any]:
    words = {"ALLREDUCE": "all-reduce", "ALLGATHER": "all-gather", "REDUCESCATTER": "reduce-scatter",
             "ALLTOALL": "all-to-all"}  # fmt: skip
    return {
        **{f"{words[kind]}-implementation": names for kind, names in system["algorithms"].items()},
        "endpoint-delay": system["delay"], "preferred-dataset-splits": system["splits"],
        "active-chunks-per-dimension": system["active"], "local-mem-bw": system["memory"],
        "collective-optimization": "baseline" if system["baseline"] else "localBWAware",
        "roofline-enabled": int(system["roofline"]), "peak-perf": system["peak"],
        "replay-only": int(system["replay"]), "scheduling-policy": "EXPLICIT",
    }  # fmt: skip


def ours(setup: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The engine's answer, in the form of the second statement's."""
    found = find_set(write_set(folder, setup["ranks"]))
    assert found is not None
    traces = open_set(found)
    network = write_network(folder / "network.yml", setup["dims"])
    system = write_json(folder / "system.json", system_json(setup["system"]))
    read = read_astra_system(system, len(setup["dims"]))
    cluster = choose_cluster(ClusterParameters(cluster=network)).cluster(1)
    rules = Rules(
        tuple(dim.size for dim in cluster.dims),
        read.algorithms,
        int(read.endpoint_delay_ns * setup["injection"]),
        read.system.memory_bandwidth,
        read.splits,
        read.active_chunks,
        setup["queues"],
        read.baseline,
    )
    clock = Clock(cluster.npus)
    made = (LinkByLink if setup["links"] else FullBandwidth)(clock, cluster.dims, setup["rendezvous"])
    groups = {number: tuple(ranks) for number, ranks in setup["groups"].items()}
    assert isinstance(read.system, System)
    run = AstraRun(
        traces.nodes_by_rank(), traces.kinds, clock, made, rules, read.system,
        RemoteMemory(*setup["memory"]), groups,
    )  # fmt: skip
    outcome = run.run()
    nodes = [
        {
            one.id[place]: (start[place], end[place] if end[place] >= 0 else None)
            for place in range(len(one))
            if start[place] >= 0
        }
        for one, start, end in zip(
            (rank.nodes for rank in run.ranks), outcome.start, outcome.end, strict=True
        )
    ]
    finished = {rank: (end, exposed) for rank, end, exposed in outcome.finished}
    return {"finished": finished, "nodes": nodes, "stopped": outcome.fault is not None}


def test_random_sets_run_as_the_second_statement_of_the_rules_says(
    pytestconfig: pytest.Config, tmp_path: Path
) -> None:
    ended = 0
    for seed in seeds(pytestconfig):
        setup = random_setup(seed)
        expected = simulate(setup)
        folder = tmp_path / str(seed)
        folder.mkdir()
        found = ours(setup, folder)
        assert found["stopped"] == expected["stopped"], seed
        assert found["finished"] == expected["finished"], seed
        assert found["nodes"] == expected["nodes"], seed
        ended += len(expected["finished"]) == len(setup["ranks"])
    # Two of five run to their end.
    assert ended >= 0.4 * len(seeds(pytestconfig)) or len(seeds(pytestconfig)) < SOME
