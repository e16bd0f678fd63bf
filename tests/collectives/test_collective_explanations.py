"""Where a price comes from: exact texts, which a reader can add up again."""

import subprocess
import sys
from pathlib import Path

from simcore.cluster import Cluster, Dimension, group_shape
from simcore.collectives import collective_ns, explain_collective
from tests.says import figures
from tests.strategies import default_cluster

MiB = 2**20


def explained(cluster: Cluster, ranks: range, collective: str, size: int) -> list[str]:
    return explain_collective(cluster, group_shape(cluster, ranks), collective, size).splitlines()


def test_an_all_gather_of_a_tensor_parallel_group() -> None:
    cluster = default_cluster(1024)
    assert explained(cluster, range(8), "ALLGATHER", 128 * MiB) == [
        "all-gather, halving-doubling, group of 8 on dimension 0 (switch 8, 450 GB/s, 500 ns a hop): "
        "134 217 728 B gathered",
        "3 messages of 16 777 216 to 67 108 864 B: 117 440 512 B / 450 GB/s = 260 977, "
        "+ 6 hops x 500, + 4 x 10 endpoint = 264 017 ns",
    ]
    assert collective_ns(cluster, group_shape(cluster, range(8)), "ALLGATHER", 128 * MiB) == 264_017


def test_a_reduce_scatter_says_what_reducing_takes() -> None:
    assert explained(default_cluster(1024), range(0, 64, 8), "REDUCESCATTER", 128 * MiB) == [
        "reduce-scatter, halving-doubling, group of 8 on dimension 1 (switch 128, 50 GB/s, 1000 ns a hop): "
        "134 217 728 B",
        "3 messages of 16 777 216 to 67 108 864 B: 117 440 512 B / 50 GB/s = 2 348 809, "
        "+ 6 hops x 1000, + 4 x 10 endpoint, + 45 072 reducing = 2 399 921 ns",
    ]


def test_phases_of_several_dimensions_stand_in_their_order() -> None:
    dims = (Dimension("ring", 4, 400.0, 500.0), Dimension("fully-connected", 2, 50.0, 2000.0))
    assert explained(Cluster(dims, (None, None)), range(8), "ALLREDUCE", MiB) == [
        "all-reduce, group of 4 x 2 on dimension 0 (ring 4, 400 GB/s, 500 ns a hop) "
        "and dimension 1 (fully-connected 2, 50 GB/s, 2000 ns a hop): 1 048 576 B",
        "reduce-scatter on 0, ring: 3 messages of 262 144 B: 786 432 B / 400 GB/s = 1 965, "
        "+ 3 hops x 500, + 4 x 10 endpoint, + 702 reducing = 4 207; "
        "all-reduce on 1, direct: 2 messages of 131 072 B: 262 144 B / 50 GB/s = 5 242, "
        "+ 2 hops x 2000, + 3 x 10 endpoint, + 117 reducing = 9 389; "
        "all-gather on 0, ring: 3 messages of 262 144 B: 786 432 B / 400 GB/s = 1 965, "
        "+ 3 hops x 500, + 4 x 10 endpoint = 3 505; in all 17 101 ns",
    ]


def test_a_flat_group_is_said_to_be_none_of_the_grids() -> None:
    assert explained(default_cluster(24), range(6, 9), "ALLTOALL", 3000) == [
        "all-to-all, direct, flat group of 3 (not a grid) on dimension 1 (switch 3, 50 GB/s, 1000 ns a hop): "
        "3 000 B",
        "1 message of 2 000 B: 2 000 B / 50 GB/s = 40, + 2 hops x 1000, + 2 x 10 endpoint = 2 060 ns",
    ]


def test_fractions_of_a_ns_are_shown() -> None:
    cluster = Cluster((Dimension("fully-connected", 2, 3.0, 0.7),), (None,))
    # floor(0.7 + 500 / 3) = 167, of which the hop takes 0.7.
    assert explained(cluster, range(2), "ALLGATHER", 1000)[1] == (
        "1 message of 500 B: 500 B / 3 GB/s = 166.3, + 1 hop x 0.7, + 2 x 10 endpoint = 187 ns"
    )


def test_chunks_are_explained_by_one_of_them_and_their_number() -> None:
    dims = (Dimension("ring", 2, 100.0, 0.0), Dimension("fully-connected", 2, 100.0, 0.0))
    cluster = Cluster(dims, (None, None), endpoint_delay_ns=0, splits=2, active_chunks=1)
    assert explained(cluster, range(4), "ALLGATHER", 8000) == [
        "all-gather, group of 2 x 2 on dimension 0 (ring 2, 100 GB/s, 0 ns a hop) "
        "and dimension 1 (fully-connected 2, 100 GB/s, 0 ns a hop): "
        "8 000 B gathered in 2 chunks of 1 000 B a rank",
        "all-gather on 1, direct: 1 message of 1 000 B: 1 000 B / 100 GB/s = 10, + 1 hop x 0, "
        "+ 2 x 0 endpoint = 10; "
        "all-gather on 0, ring: 1 message of 2 000 B: 2 000 B / 100 GB/s = 20, + 1 hop x 0, "
        "+ 2 x 0 endpoint = 20; in all 30 ns a chunk; 2 chunks, 1 at a time on a dimension = 50 ns",
    ]


def test_a_flat_group_of_several_dimensions_says_what_each_of_them_carries() -> None:
    dims = (Dimension("ring", 2, 100.0, 10.0), Dimension("switch", 2, 50.0, 20.0))
    cluster = Cluster(dims, ("one-halving-doubling", None))
    assert explained(cluster, range(4), "REDUCESCATTER", 4000) == [
        "reduce-scatter, one-halving-doubling, group of 2 x 2 on dimension 0 (ring 2, 100 GB/s, 10 ns a hop) "
        "and dimension 1 (switch 2, 50 GB/s, 20 ns a hop): 4 000 B",
        "1 message of 2 000 B on dimension 0: 2 000 B / 100 GB/s = 20, + 1 hop x 10, "
        "+ 1 message of 1 000 B on dimension 1: 1 000 B / 50 GB/s = 20, + 2 hops x 20, "
        "+ 3 x 10 endpoint, + 0 reducing = 120 ns",
    ]


def test_two_trees_on_one_dimension_are_said_to_overlap() -> None:
    dims = (Dimension("fully-connected", 2, 1.0, 0.0), Dimension("ring", 2, 1.0, 0.0))
    cluster = Cluster(dims, ("double-binary-tree", "ring"), endpoint_delay_ns=0)
    assert figures(explained(cluster, range(4), "ALLREDUCE", 100)[1])[-2:] == ["500 ns", "400 ns"]


def test_what_costs_nothing_is_free() -> None:
    cluster = default_cluster(64)
    assert explained(cluster, range(1), "ALLREDUCE", MiB) == ["all-reduce, group of 1, 1 048 576 B: free"]
    assert explained(cluster, range(8), "ALLTOALL", 0) == ["all-to-all, group of 8, 0 B: free"]


def test_the_rooms_import_nothing_heavy() -> None:
    # Start-up counts: the command line prices a workload in a fraction of a second.
    code = "import sys, simcore.collectives; print([m for m in sys.argv[1:] if m in sys.modules])"
    heavy = ["fractions", "numpy", "json", "textual", "simcore.workload", "simcore.engine"]
    done = subprocess.run(
        [sys.executable, "-c", code, *heavy],
        capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert done.stdout.strip() == "[]"


def test_whole_ns_are_shown_as_such_where_a_hop_takes_a_fraction() -> None:
    cluster = Cluster((Dimension("switch", 2, 1.0, 0.5),), (None,))
    assert explained(cluster, range(2), "ALLGATHER", 1000)[1] == (
        "1 message of 500 B: 500 B / 1 GB/s = 500, + 2 hops x 0.5, + 2 x 10 endpoint = 521 ns"
    )
