"""Prices as properties over generated clusters and groups, and against rules simulated step by step."""

from fractions import Fraction
from math import floor

from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from simcore.cluster import (
    Cluster,
    Dimension,
    GroupDimension,
    direct_window,
    group_shape,
    transfer_shape,
)
from simcore.cluster.placement import hops
from simcore.collectives import collective_ns, completion_times, explain_collective, transfer_ns
from simcore.collectives.algorithm_scope import AlgorithmScope
from simcore.collectives.exact import decimal_ratio, floor_ns
from simcore.collectives.phases import chunk_bytes
from simcore.names import OPTIMIZATIONS

KINDS = ("ring", "switch", "fully-connected")
COLLECTIVES = ("ALLREDUCE", "ALLGATHER", "REDUCESCATTER", "ALLTOALL")
FIGURES = st.floats(1e-3, 1e6)
SIZES = st.integers(0, 2**20) | st.integers(0, 2**63)


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    dimension = st.builds(Dimension, st.sampled_from(KINDS), st.integers(1, 9), FIGURES, FIGURES)
    dims = draw(st.lists(dimension, min_size=1, max_size=3))
    names = st.sampled_from([None, "ring", "direct", "direct1", "direct3"])
    algorithms: tuple[str | None, ...] = tuple(draw(names) for _ in dims)
    if draw(st.integers(0, 3)) == 0:
        algorithms = (draw(st.sampled_from(["one-ring", "one-direct", "one-direct2"])),) * len(dims)
    return Cluster(
        tuple(dims), algorithms, draw(st.integers(0, 1000)), draw(FIGURES), draw(st.booleans()),
        splits=draw(st.integers(1, 5)), active_chunks=draw(st.integers(1, 3)),
        optimization=draw(st.sampled_from(OPTIMIZATIONS)),
    )  # fmt: skip


@st.composite
def groups(draw: st.DrawFn) -> tuple[Cluster, list[int]]:
    cluster = draw(clusters())
    if draw(st.booleans()):
        return cluster, sorted(draw(st.sets(st.integers(0, cluster.npus - 1), min_size=1, max_size=12)))
    sets = [draw(st.sets(st.integers(0, dimension.size - 1), min_size=1)) for dimension in cluster.dims]
    return cluster, [
        rank
        for rank in range(cluster.npus)
        if all(place in places for place, places in zip(cluster.coordinates(rank), sets, strict=True))
    ]


def order_matters(cluster: Cluster, collective: str) -> bool:
    """Where more bytes may cost less: a direct all-reduce on a ring, and reducing under a window."""
    return collective in ("ALLREDUCE", "REDUCESCATTER") and any(
        direct_window(name) or (dimension.kind == "ring" and "direct" in name)
        for dimension, name in zip(cluster.dims, cluster.algorithms, strict=True)
        if name is not None
    )


@given(groups(), st.sampled_from(COLLECTIVES), SIZES, SIZES)
def test_more_bytes_never_cost_less(
    group: tuple[Cluster, list[int]], collective: str, one: int, two: int
) -> None:
    cluster, ranks = group
    # Fewer bytes may be more chunks: a remainder is one.
    cluster = replace(cluster, splits=1)
    assume(not order_matters(cluster, collective))
    shape = group_shape(cluster, ranks)
    less, more = sorted((one, two))
    low, high = (collective_ns(cluster, shape, collective, size) for size in (less, more))
    assert 0 <= low <= high


@given(groups(), st.sampled_from(COLLECTIVES), SIZES)
def test_the_first_rank_is_not_done_after_the_last_one(
    group: tuple[Cluster, list[int]], collective: str, size: int
) -> None:
    cluster, ranks = group
    shape = group_shape(cluster, ranks)
    first, last = completion_times(cluster, shape, collective, size)
    assert 0 <= first <= last == collective_ns(cluster, shape, collective, size)


@given(groups(), st.sampled_from(COLLECTIVES), st.integers(1, 2**40), st.integers(1, 9))
def test_chunks_take_as_long_as_one_and_at_most_as_long_as_all_in_turn(
    group: tuple[Cluster, list[int]], collective: str, size: int, splits: int
) -> None:
    cluster, ranks = group
    cluster = replace(cluster, splits=splits)
    shape = group_shape(cluster, ranks)
    chunks, chunk = chunk_bytes(cluster, shape, collective, size)
    whole = chunk * (shape.members if collective == "ALLGATHER" else 1) or 1
    one = collective_ns(replace(cluster, splits=1), shape, collective, whole)
    assert one <= collective_ns(cluster, shape, collective, size) <= chunks * one


@given(groups(), st.sampled_from(COLLECTIVES), SIZES, st.data())
def test_a_moved_group_costs_the_same(
    group: tuple[Cluster, list[int]], collective: str, size: int, data: st.DataObject
) -> None:
    cluster, ranks = group
    moves = [data.draw(st.integers(0, dimension.size - 1)) for dimension in cluster.dims]
    moved = []
    for rank in ranks:
        number, reach = 0, 1
        for place, move, dimension in zip(cluster.coordinates(rank), moves, cluster.dims, strict=True):
            number += (place + move) % dimension.size * reach
            reach *= dimension.size
        moved.append(number)
    here, there = group_shape(cluster, ranks), group_shape(cluster, sorted(moved))
    assert collective_ns(cluster, here, collective, size) == collective_ns(cluster, there, collective, size)


@given(groups(), st.sampled_from(COLLECTIVES), SIZES)
def test_an_explanation_ends_in_the_price(
    group: tuple[Cluster, list[int]], collective: str, size: int
) -> None:
    cluster, ranks = group
    shape = group_shape(cluster, ranks)
    price = collective_ns(cluster, shape, collective, size)
    text = explain_collective(cluster, shape, collective, size)
    assert len(text.splitlines()) in (1, 2)
    assert text.isascii()
    shown = f"{price:,} ns".replace(",", " ")
    assert text.endswith(shown) or (price == 0 and text.endswith(": free"))


@given(FIGURES | st.floats(1e-6, 1e9) | st.integers(1, 10**9))
def test_a_figure_is_its_shortest_decimal_print(value: float) -> None:
    assert Fraction(*decimal_ratio(value)) == Fraction(repr(value))


@given(st.integers(0, 2**63), FIGURES, st.lists(st.tuples(st.integers(1, 64), FIGURES), max_size=3))
def test_floors_equal_exact_fractions(size: int, bandwidth: float, walk: list[tuple[int, float]]) -> None:
    exact = sum((count * Fraction(repr(latency)) for count, latency in walk), Fraction(0))
    assert floor_ns(size, bandwidth, walk) == floor(exact + size / Fraction(repr(bandwidth)))


@given(clusters(), st.data(), SIZES)
def test_a_transfer_costs_the_same_in_both_directions(
    cluster: Cluster, data: st.DataObject, size: int
) -> None:
    here, there = (data.draw(st.integers(0, cluster.npus - 1)) for _ in range(2))
    forth = transfer_ns(cluster, transfer_shape(cluster, here, there), size)
    assert forth == transfer_ns(cluster, transfer_shape(cluster, there, here), size) >= 0
    assert (forth > 0) <= (size > 0 and here != there)


@st.composite
def ring_groups(draw: st.DrawFn) -> tuple[Cluster, list[int]]:
    nodes = draw(st.integers(2, 24))
    ranks = sorted(draw(st.sets(st.integers(0, nodes - 1), min_size=2)))
    dimension = Dimension("ring", nodes, draw(st.integers(1, 400)), draw(st.integers(0, 2000)))
    return Cluster((dimension,), (None,), draw(st.integers(0, 50))), ranks


def simulated_ring(cluster: Cluster, ranks: list[int], collective: str, size: int) -> int:
    """When the last rank is done if every packet is really passed on from member to member."""
    dimension, delay = cluster.dims[0], cluster.endpoint_delay_ns
    members = len(ranks)
    packet = size // members
    reduction = 3 * floor(packet / Fraction(cluster.local_mem_bandwidth))
    once = members - 1
    steps = {"ALLREDUCE": 2 * once, "ALLTOALL": members * once // 2}.get(collective, once)
    reducing = once if collective in ("ALLREDUCE", "REDUCESCATTER") else 0
    ready = [delay] * members
    for step in range(steps):
        arrivals = []
        for member in range(members):
            distance = ranks[member] - ranks[member - 1]
            way = min(distance % dimension.size, -distance % dimension.size)
            arrivals.append(
                ready[member - 1] + floor(way * dimension.latency_ns + packet / Fraction(dimension.bandwidth))
            )
        ready = [arrival + delay + (reduction if step < reducing else 0) for arrival in arrivals]
    return max(ready)


@given(ring_groups(), st.sampled_from(COLLECTIVES), st.integers(1, 2**24))
def test_a_ring_costs_what_its_packets_take(
    group: tuple[Cluster, list[int]], collective: str, size: int
) -> None:
    cluster, ranks = group
    size = max(size, len(ranks))
    asked = Cluster(cluster.dims, ("ring",), cluster.endpoint_delay_ns)
    price = collective_ns(asked, group_shape(asked, ranks), collective, size)
    assert price == simulated_ring(asked, ranks, collective, size)


@given(ring_groups())
def test_the_farthest_members_of_a_ring_are_found(group: tuple[Cluster, list[int]]) -> None:
    cluster, ranks = group
    dimension = cluster.dims[0]
    leg = AlgorithmScope(cluster, group_shape(cluster, ranks).dimensions)
    pairs = [(low, high) for low in ranks for high in ranks if low < high]
    assert leg.farthest(1).hops == max(hops(dimension, high - low) for low, high in pairs)


@given(st.sampled_from([2, 4, 8, 16, 32]), st.integers(1, 2**26), st.integers(0, 1000))
def test_two_halves_make_an_all_reduce_of_halving_doubling(members: int, size: int, delay: int) -> None:
    # All-reduce = reduce-scatter + all-gather, but for one endpoint delay: the first send of the way back.
    cluster = Cluster((Dimension("switch", members, 100.0, 500.0),), (None,), delay)
    shape = group_shape(cluster, range(members))
    whole = max(size // members, 1) * members
    there = collective_ns(cluster, shape, "REDUCESCATTER", whole)
    back = collective_ns(cluster, shape, "ALLGATHER", whole)
    assert collective_ns(cluster, shape, "ALLREDUCE", whole) == there + back - delay


def test_a_full_ring_of_any_size_is_even() -> None:
    for nodes in range(2, 20):
        cluster = Cluster((Dimension("ring", nodes, 50.0, 500.0),), (None,))
        shape = group_shape(cluster, range(nodes))
        assert shape.dimensions == (GroupDimension(0, nodes, (1,) * nodes),)
        assert AlgorithmScope(cluster, shape.dimensions).is_even_ring()
