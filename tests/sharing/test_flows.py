"""What collectives put on ports, alone on a network: `shared` against `analytical` and against bytes.

Seen to fail on these bugs, planted one at a time: the port of `direct` carries one message
only; an all-reduce of `direct` has one round; the links of a group on a fully-connected dimension
counted by the dimension.
"""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from benchmarks import shared_network
from benchmarks.measuring import marks
from simcore.cluster import Cluster, Dimension, GroupShape, group_shape, transfer_shape
from simcore.collectives import collective_ns, transfer_ns
from simcore.collectives.phases import chunk_bytes
from simcore.networks import GroupCollective
from simcore.networks.shared import SharedNetwork, Transmission
from tests.collectives.test_astra2_golden import RUNS, gib
from tests.collectives.test_collective_properties import COLLECTIVES, clusters, groups

SIZES = st.integers(0, 2**20) | st.integers(0, 2**40)


def shared_ns(cluster: Cluster, shape: GroupShape, collective: str, size: int, scale: float = 1.0) -> int:
    return SharedNetwork(cluster).collective_ns(GroupCollective("tp", shape, (), collective, size), scale)


SCALES = st.sampled_from([1.0, 0.0, 0.001, 0.37, 0.9, 2.5]) | st.floats(0, 10)


@settings(max_examples=300)
@given(groups(), st.sampled_from(COLLECTIVES), SIZES, SCALES)
def test_ring_and_halving_doubling_alone_are_as_under_analytical(
    drawn: tuple[Cluster, list[int]], collective: str, size: int, scale: float
) -> None:
    """One active chunk, any splits, any scale; an all-to-all runs direct unless a ring was asked for."""
    cluster, ranks = drawn
    alone = tuple("ring" if collective == "ALLTOALL" else None for _ in cluster.dims)
    dims = tuple(replace(one, kind="switch" if one.kind != "ring" else "ring") for one in cluster.dims)
    cluster = replace(cluster, dims=dims, algorithms=alone, active_chunks=1)
    shape = group_shape(cluster, ranks)
    alone_ns = collective_ns(cluster, shape, collective, size, scale)
    assert shared_ns(cluster, shape, collective, size, scale) == alone_ns


@settings(max_examples=200)
@given(clusters(), st.data(), SIZES)
def test_a_transfer_alone_is_as_under_analytical(cluster: Cluster, data: st.DataObject, size: int) -> None:
    ends = st.integers(0, cluster.npus - 1)
    shape = transfer_shape(cluster, data.draw(ends), data.draw(ends))
    flows = SharedNetwork(cluster).transfer(shape, (), size).flows
    assert sum(flow.fixed_ns + flow.work_ns for flow in flows) == transfer_ns(cluster, shape, size)


@settings(max_examples=300)
@given(groups(), st.sampled_from(COLLECTIVES), SIZES)
def test_shared_is_never_faster_than_analytical_with_one_active_chunk(
    drawn: tuple[Cluster, list[int]], collective: str, size: int
) -> None:
    cluster = replace(drawn[0], active_chunks=1)
    shape = group_shape(cluster, drawn[1])
    assert shared_ns(cluster, shape, collective, size) >= collective_ns(cluster, shape, collective, size)


def port_bytes(algorithm: str, collective: str, members: int, size: int) -> int:
    """Bytes that one member of a group sends at least, by the textbook: an all-gather puts in a shard."""
    packet = size if collective == "ALLGATHER" else size // members
    if algorithm == "ring" and collective == "ALLTOALL":
        return packet * members * (members - 1) // 2
    if collective == "ALLREDUCE":
        return 2 * packet * (members - 1)
    return packet * (members - 1)


@settings(max_examples=300)
@given(
    st.sampled_from(["ring", "switch", "fully-connected"]),
    st.integers(2, 9),
    st.integers(2, 9),
    st.sampled_from(["ring", "direct", "direct2", "halving-doubling"]),
    st.sampled_from(COLLECTIVES),
    st.integers(1, 2**30),
    st.integers(1, 5),
    st.integers(1, 3),
    st.sampled_from([0.5, 7.0, 450.0]),
)
def test_shared_is_never_faster_than_bytes_over_port_capacity(
    kind: Any, size: int, members: int, algorithm: str, collective: str, whole: int, splits: int, active: int,
    bandwidth: float,
) -> None:  # fmt: skip
    """Also with several active chunks, where `analytical` hands out more than there is.

    A message's time is floored, under `analytical` too: each of them may be less than 1 ns short.
    """
    assume(members <= size and (algorithm != "halving-doubling" or members & (members - 1) == 0))
    dims = (Dimension(kind, size, bandwidth, 0.0),)
    cluster = Cluster(dims, (algorithm,), 0, 1e9, splits=splits, active_chunks=active)
    shape = group_shape(cluster, range(members))
    chunks, chunk = chunk_bytes(cluster, shape, collective, whole)
    carried = chunks * port_bytes(algorithm, collective, members, chunk)
    capacity = Fraction(bandwidth) * (size - 1 if kind == "fully-connected" else 1)
    messages = chunks * members * members
    assert shared_ns(cluster, shape, collective, whole) + messages >= carried / capacity


def test_analytical_hands_out_more_than_the_port_has_and_shared_does_not() -> None:
    """4 chunks at a time on one ring: 2 * 7/8 GiB through a port of 50 GiB/s take 35 ms."""
    cluster = Cluster((gib("ring", 8, 50, 0),), (None,), 0, 1600.0, splits=4, active_chunks=4)
    shape = group_shape(cluster, range(8))
    least = 2 * 7 / 8 / 50 * 1e9
    assert collective_ns(cluster, shape, "ALLREDUCE", 2**30) < least / 3
    assert shared_ns(cluster, shape, "ALLREDUCE", 2**30) >= least


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_direct_takes_the_port_time_of_all_its_messages(collective: str) -> None:
    """7 messages of 1000 B leave a switch port of 10 B/ns in 700 ns, in two rounds for an all-reduce."""
    cluster = Cluster((Dimension("switch", 8, 10.0, 50.0),), ("direct",), 0, 1e9)
    rounds = 2 if collective == "ALLREDUCE" else 1
    shape = group_shape(cluster, range(8))
    assert shared_ns(cluster, shape, collective, 8000) == rounds * (100 + 700)


def test_direct_on_a_fully_connected_dimension_uses_the_links_to_its_members_alone() -> None:
    """3 peers of 7: three links of 10 B/ns at a time, so 1000 B to each take 100 ns."""
    cluster = Cluster((Dimension("fully-connected", 8, 10.0, 0.0),), ("direct",), 0, 1e9)
    flow = SharedNetwork(cluster).collective(group_shape(cluster, range(4)), (), "ALLGATHER", 4000).flows[0]
    assert (flow.work_ns, flow.rate) == (100, 30.0)
    assert SharedNetwork(cluster).capacities(()) == [70.0]


def test_a_tree_keeps_its_levels_and_takes_the_port_of_an_inner_rank() -> None:
    """8 ranks: 6 messages of 1000 B one after another, 3 of which cross the port of an inner rank."""
    cluster = Cluster((Dimension("switch", 8, 10.0, 0.0),), ("double-binary-tree",), 0, 1e9)
    flow = SharedNetwork(cluster).collective(group_shape(cluster, range(8)), (), "ALLREDUCE", 1000).flows[0]
    assert (flow.fixed_ns, flow.work_ns, flow.rate) == (300, 300, 10.0)


def test_one_halving_doubling_spreads_its_bytes_over_its_dimensions() -> None:
    """500 B on the inner dimension, 250 B on the outer one, of 10 and 5 B/ns: 50 + 50 ns."""
    dims = (Dimension("switch", 2, 10.0, 0.0), Dimension("switch", 2, 5.0, 0.0))
    cluster = Cluster(dims, ("one-halving-doubling", None), 0, 1e9)
    flow = (
        SharedNetwork(cluster).collective(group_shape(cluster, range(4)), (), "REDUCESCATTER", 1000).flows[0]
    )
    assert (flow.work_ns, flow.rate, flow.shares) == (100, 5.0, ((0, 1.0), (1, 0.5)))


@given(groups(), st.sampled_from(COLLECTIVES), SIZES, st.floats(0, 10))
def test_a_scaled_transmission_of_one_chunk_is_its_time_scaled_and_rounded_once(
    drawn: tuple[Cluster, list[int]], collective: str, size: int, scale: float
) -> None:
    cluster, ranks = drawn
    made: Transmission = SharedNetwork(cluster).collective(group_shape(cluster, ranks), (), collective, size)
    since = taken = 0
    for phase, flow in enumerate(made.flows):
        fixed_ns, work_ns = made.scaled(scale).times(phase, since)
        assert min(fixed_ns, work_ns) >= 0
        taken += fixed_ns + work_ns
        since += flow.whole_ns
    assert taken == round(since * scale)


FIFO = json.loads((Path(__file__).parent / "golden_astra2_fifo.json").read_text())["runs"]


def test_the_runs_with_queues_on_links_are_all_here() -> None:
    assert len(FIFO) == 398
    assert len(RUNS) + len(FIFO) == 799


def test_a_transfer_over_two_dimensions_takes_a_port_of_each_at_both_ends() -> None:
    dims = (Dimension("switch", 2, 10.0, 3.0), Dimension("switch", 2, 5.0, 4.0))
    cluster = Cluster(dims, (None, None))
    (flow,) = SharedNetwork(cluster).transfer(transfer_shape(cluster, 0, 3), (), 1000).flows
    assert flow == (14, 200, 5.0, ((0, 1.0), (1, 1.0)), 0)


def test_the_page_has_the_table_that_its_command_makes() -> None:
    page = shared_network.PAGE.read_text(encoding="utf-8")
    begin, end = marks("shared_network")
    assert page.partition(begin)[2].partition(end)[0] == shared_network.table()
