"""Prices, chunks and trees equal a simulation of every rank, message by message."""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from simcore.cluster import Cluster, Dimension, group_shape
from simcore.collectives import completion_times
from simcore.collectives.phases import chunk_bytes
from tests.collectives.every_rank import EveryRank

COLLECTIVES = ("ALLREDUCE", "ALLGATHER", "REDUCESCATTER", "ALLTOALL")
ALGORITHMS = ("ring", "direct", "halving-doubling", "double-binary-tree")


@st.composite
def runs(draw: st.DrawFn) -> tuple[Cluster, str, int]:
    dims, names = [], []
    ranks = 1
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(["ring", "switch", "fully-connected"]))
        size = draw(st.sampled_from([one for one in (2, 4, 8, 3, 5) if ranks * one <= 64] or [1]))
        power = size & (size - 1) == 0
        # A direct all-reduce on a ring has a rule of its own for near peers.
        allowed = [name for name in ALGORITHMS if (power or name in ("ring", "direct"))]
        dims.append(
            Dimension(
                kind, size, draw(st.sampled_from([3.7, 50.0, 401.3])), draw(st.sampled_from([0.0, 333.3]))
            )
        )
        names.append(draw(st.sampled_from(allowed)))
        ranks *= size
    cluster = Cluster(
        tuple(dims), tuple(names), draw(st.integers(0, 20)), draw(st.sampled_from([13.1, 3350.0])),
        alltoall_port_time=False, splits=draw(st.integers(1, 6)), active_chunks=draw(st.integers(1, 3)),
        optimization=draw(st.sampled_from(["localBWAware", "baseline"])),
    )  # fmt: skip
    return cluster, draw(st.sampled_from(COLLECTIVES)), draw(st.integers(1, 100_000))


@settings(max_examples=150, deadline=None)
@given(runs())
def test_a_price_is_what_every_rank_simulated_takes(run: tuple[Cluster, str, int]) -> None:
    cluster, collective, size = run
    assume(cluster.npus > 1)
    for dimension, name in zip(cluster.dims, cluster.algorithms, strict=True):
        assume(not (name == "direct" and dimension.kind == "ring" and collective == "ALLREDUCE"))
        assume(collective != "ALLTOALL" or name in ("ring", "direct"))
    shape = group_shape(cluster, range(cluster.npus))
    chunks, chunk = chunk_bytes(cluster, shape, collective, size)
    expected = EveryRank(cluster, collective, chunk, chunks).run()
    assert completion_times(cluster, shape, collective, size) == expected


@pytest.mark.parametrize("members", [2, 4, 8, 16, 32])
@pytest.mark.parametrize("splits", [1, 2, 3, 7])
@pytest.mark.parametrize("active", [1, 2])
def test_trees_of_any_size_and_number_of_chunks(members: int, splits: int, active: int) -> None:
    cluster = Cluster((Dimension("ring", members, 50.0, 500.0),), ("double-binary-tree",), splits=splits)
    cluster = replace(cluster, active_chunks=active)
    shape = group_shape(cluster, range(members))
    size = 2**20 // splits * splits
    expected = EveryRank(cluster, "ALLREDUCE", size // splits, splits).run()
    assert completion_times(cluster, shape, "ALLREDUCE", size) == expected
