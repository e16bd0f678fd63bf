"""Prices equal what ASTRA-sim 2.0 measured, to the nanosecond, at the last rank and at the first.

golden_astra2.json holds 401 runs of its analytical backend (congestion-unaware): every algorithm,
1 and 4 chunks, both optimizations. Each is given to wltui as it was to ASTRA-sim, as a
`network.yml` and a `system.json`. Its sizes are shards for an all-gather, its bandwidths GiB/s.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from simcore.cluster import Cluster, ClusterParameters, Dimension, choose_cluster, group_shape
from simcore.collectives import collective_ns, completion_times

RUNS = json.loads((Path(__file__).parent / "golden_astra2.json").read_text())["runs"]
SIZES = (2**16, 2**20, 2**26, 2**30)


def gib(kind: Any, size: int, gibps: float, latency: float) -> Dimension:
    return Dimension(kind, size, gibps * 2**30 / 1e9, latency)


def run_id(run: dict[str, Any]) -> str:
    dims = "x".join(f"{dim['kind']}{dim['size']}" for dim in run["dims"])
    words = (run["collective"], run["size_bytes"], run["splits"], run["optimization"])
    return f"{dims}-{'+'.join(run['algorithms'])}-{'-'.join(map(str, words))}"


KINDS = {"ring": "Ring", "fully-connected": "FullyConnected", "switch": "Switch"}


def network_yml(run: dict[str, Any]) -> str:
    """The run's network as the file that ASTRA-sim was given."""
    dims = run["dims"]
    lists = {
        "topology": [KINDS[dim["kind"]] for dim in dims],
        "npus_count": [dim["size"] for dim in dims],
        "bandwidth": [float(dim["bandwidth_gibps"]) for dim in dims],
        "latency": [float(dim["latency_ns"]) for dim in dims],
    }
    return "".join(f"{key}: [ {', '.join(map(str, values))} ]\n" for key, values in lists.items())


def system_json(run: dict[str, Any]) -> str:
    """The run's system as the file that ASTRA-sim was given."""
    names = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all")
    return json.dumps(
        {
            "scheduling-policy": "LIFO",
            "endpoint-delay": run["endpoint_delay_ns"],
            "active-chunks-per-dimension": run["active_chunks"],
            "preferred-dataset-splits": run["splits"],
            **{f"{name}-implementation": run["algorithms"] for name in names},
            "collective-optimization": run["optimization"],
            "local-mem-bw": run["local_mem_bw_gbps"],
        },
        indent=1,
    )


@pytest.mark.slow
def test_the_measured_runs_are_met_to_the_nanosecond(tmp_path: Path) -> None:
    network, system = tmp_path / "network.yml", tmp_path / "system.json"
    for run in RUNS:
        network.write_text(network_yml(run))
        system.write_text(system_json(run))
        choice = choose_cluster(ClusterParameters(cluster=str(network), system=str(system)))
        assert choice.npus is not None
        cluster = choice.cluster(choice.npus)
        collective = run["collective"].upper()
        size = run["size_bytes"] * (cluster.npus if collective == "ALLGATHER" else 1)
        done = completion_times(cluster, group_shape(cluster, range(cluster.npus)), collective, size)
        assert done == (run["finish_min_ns"], run["finish_max_ns"]), run_id(run)


def test_the_measured_runs_are_all_here() -> None:
    assert len(RUNS) == 401
    assert {run["collective"] for run in RUNS} == {"AllReduce", "AllGather", "ReduceScatter", "AllToAll"}
    assert Counter(run["splits"] for run in RUNS) == {1: 185, 4: 216}
    assert {name for run in RUNS for name in run["algorithms"]} == {
        "ring", "direct", "direct1", "halvingDoubling", "doubleBinaryTree",
        "oneRing", "oneDirect", "oneHalvingDoubling",
    }  # fmt: skip
    assert sum(run["finish_min_ns"] < run["finish_max_ns"] for run in RUNS) > 20


FOUR_DIMENSIONS = (
    gib("ring", 2, 250, 50), gib("fully-connected", 8, 200, 500),
    gib("ring", 8, 100, 500), gib("switch", 4, 50, 2000),
)  # fmt: skip


@pytest.mark.parametrize(
    ("dims", "prices"),
    [
        ([gib("ring", 4, 50, 500)], [4990, 33829, 1972435, 31513018]),
        ([gib("ring", 8, 50, 500)], [9383, 43025, 2304732, 36768756]),
        ([gib("fully-connected", 8, 400, 500)], [1083, 1883, 55818, 877688]),
        ([gib("switch", 8, 400, 500)], [6381, 11072, 326687, 5136044]),
        ([gib("ring", 4, 400, 500), gib("switch", 4, 50, 2000)], [19910, 31699, 824480, 12904907]),
        (FOUR_DIMENSIONS, [24806, 31407, 474332, 7223987]),
    ],
    ids=["ring 4", "ring 8", "fully-connected 8", "switch 8", "ring 4 x switch 4", "four dimensions"],
)
def test_one_all_reduce_by_the_default_algorithms(dims: list[Dimension], prices: list[int]) -> None:
    cluster = Cluster(tuple(dims), (None,) * len(dims), local_mem_bandwidth=1600.0)
    shape = group_shape(cluster, range(cluster.npus))
    assert [collective_ns(cluster, shape, "ALLREDUCE", size) for size in SIZES] == prices


def test_four_chunks_on_one_dimension_take_four_times_a_quarter() -> None:
    # Measured with 4 splits on ring 8; chunks of one dimension run one after another.
    cluster = Cluster((gib("ring", 8, 50, 500),), (None,), local_mem_bandwidth=1600.0)
    shape = group_shape(cluster, range(8))
    quarters = [collective_ns(cluster, shape, "ALLREDUCE", size // 4) for size in SIZES]
    assert [4 * price for price in quarters] == [30812, 64440, 2326112, 36790164]
