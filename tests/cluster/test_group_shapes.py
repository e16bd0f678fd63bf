"""The price signature of a group: grids, flat groups, rings, translates; and of a transfer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.cluster import (
    Cluster,
    Dimension,
    GroupDimension,
    GroupShape,
    group_shape,
    name_groups,
    transfer_shape,
)
from simcore.layout import Layout
from tests.strategies import default_cluster


def ring(size: int, bandwidth: float = 50.0, latency: float = 500.0) -> Dimension:
    return Dimension("ring", size, bandwidth, latency)


def switch(size: int, bandwidth: float = 50.0, latency: float = 500.0) -> Dimension:
    return Dimension("switch", size, bandwidth, latency)


def cluster_of(*dims: Dimension) -> Cluster:
    return Cluster(dims, (None,) * len(dims))


@given(st.sampled_from([1, 2, 4, 8]), st.integers(1, 40), st.integers(1, 4))
def test_tp_groups_within_a_server_cross_dimension_0(tp: int, dp: int, pp: int) -> None:
    cluster = default_cluster(tp * dp * pp)
    expected = GroupShape((GroupDimension(0, tp),) if tp > 1 else ())
    for first in range(0, tp * dp * pp, tp):
        assert group_shape(cluster, range(first, first + tp)) == expected


@given(st.sampled_from([1, 2, 4, 8]), st.sampled_from([1, 2, 4, 8, 16, 64]), st.integers(1, 4))
def test_dp_groups_are_grids_over_servers(tp: int, dp: int, pp: int) -> None:
    cluster = default_cluster(tp * dp * pp)
    inside = min(dp, 8 // tp)
    crossings = [GroupDimension(0, inside), GroupDimension(1, dp // inside)]
    expected = GroupShape(tuple(crossing for crossing in crossings if crossing.members > 1))
    for stage in range(pp):
        for first in range(tp):
            ranks = range(stage * tp * dp + first, (stage + 1) * tp * dp, tp)
            assert group_shape(cluster, ranks) == expected
            assert expected.members == dp


def test_tp_3_in_servers_of_8_has_groups_that_cross_servers() -> None:
    cluster = default_cluster(24)
    shapes = [group_shape(cluster, range(first, first + 3)) for first in range(0, 24, 3)]
    inside, across = GroupShape((GroupDimension(0, 3),)), GroupShape((GroupDimension(1, 3),), is_flat=True)
    assert shapes == [inside, inside, across, inside, inside, across, inside, inside]
    assert across.members == 3


def test_a_group_of_one_crosses_nothing() -> None:
    shape = group_shape(default_cluster(64), [5])
    assert shape == GroupShape(())
    assert shape.members == 1


def test_a_grid_is_a_product_of_sets_and_nothing_less() -> None:
    cluster = cluster_of(switch(4), switch(4))
    assert group_shape(cluster, [1, 2, 9, 10]) == GroupShape((GroupDimension(0, 2), GroupDimension(1, 2)))
    assert group_shape(cluster, [1, 2, 9, 11]).is_flat
    assert group_shape(cluster, [1, 2, 9]).is_flat


@pytest.mark.parametrize(
    ("dims", "slowest"),
    [
        ((switch(4, 400.0), switch(4, 50.0)), 1),
        ((switch(4, 50.0), switch(4, 400.0)), 0),
        ((switch(4, 50.0, 900.0), switch(4, 50.0, 500.0)), 0),
        ((switch(4), switch(4)), 1),
        ((switch(4, 400.0), switch(4, 300.0), switch(2, 1.0)), 1),
    ],
)
def test_a_flat_group_lies_on_its_slowest_dimension(dims: tuple[Dimension, ...], slowest: int) -> None:
    assert group_shape(cluster_of(*dims), [0, 1, 4]) == GroupShape(
        (GroupDimension(slowest, 3),), is_flat=True
    )


@pytest.mark.parametrize(
    ("ranks", "gaps"),
    [
        (range(8), (1,) * 8),
        (range(4), (1, 1, 1, 5)),
        ([0, 1, 6, 7], (1, 1, 1, 5)),
        ([0, 2, 4, 6], (2, 2, 2, 2)),
        ([1, 3, 5, 7], (2, 2, 2, 2)),
        ([0, 1, 4, 5], (1, 3, 1, 3)),
        ([3, 4], (1, 7)),
        ([0, 1, 3, 6], (2, 1, 2, 3)),
        ([0, 2, 3, 6], (2, 2, 1, 3)),
        ([0, 3, 4, 7], (1, 3, 1, 3)),
    ],
)
def test_a_ring_keeps_the_gaps_between_members_the_widest_last(
    ranks: list[int], gaps: tuple[int, ...]
) -> None:
    assert group_shape(cluster_of(ring(8)), ranks) == GroupShape((GroupDimension(0, len(gaps), gaps),))


def test_a_flat_group_keeps_all_its_members_on_a_ring() -> None:
    cluster = cluster_of(switch(2, 400.0), ring(4))
    assert group_shape(cluster, [0, 1, 2]) == GroupShape((GroupDimension(1, 3, (0, 1, 3)),), is_flat=True)


@st.composite
def clusters_and_groups(draw: st.DrawFn) -> tuple[Cluster, list[int], list[int]]:
    """A cluster, a group on it, and the same group moved along every dimension."""
    dims = draw(st.lists(st.builds(
        Dimension, st.sampled_from(["ring", "switch", "fully-connected"]), st.integers(1, 8),
        st.sampled_from([50.0, 400.0]), st.sampled_from([500.0, 2000.0]),
    ), min_size=1, max_size=3))  # fmt: skip
    cluster = cluster_of(*dims)
    ranks = draw(st.sets(st.integers(0, cluster.npus - 1), min_size=1, max_size=12))
    moves = [draw(st.integers(0, dimension.size - 1)) for dimension in dims]
    moved = []
    for rank in ranks:
        number, reach = 0, 1
        for place, move, dimension in zip(cluster.coordinates(rank), moves, dims, strict=True):
            number += (place + move) % dimension.size * reach
            reach *= dimension.size
        moved.append(number)
    return cluster, sorted(ranks), sorted(moved)


@given(clusters_and_groups())
def test_translates_of_a_group_have_equal_shapes(case: tuple[Cluster, list[int], list[int]]) -> None:
    cluster, ranks, moved = case
    shape = group_shape(cluster, ranks)
    assert group_shape(cluster, moved) == shape
    assert hash(group_shape(cluster, moved)) == hash(shape)
    assert shape.members == len(ranks)


@pytest.mark.parametrize("ranks", [[-1, 0], [7, 8]])
def test_a_group_outside_the_cluster_has_no_shape(ranks: list[int]) -> None:
    with pytest.raises(ValueError, match=f"ranks {ranks[0]} to {ranks[1]} on 8 NPUs"):
        group_shape(cluster_of(ring(8)), ranks)


def test_a_transfer_is_known_by_its_hops_on_each_dimension() -> None:
    cluster = cluster_of(ring(8), Dimension("fully-connected", 4, 50.0, 500.0), switch(2))
    assert transfer_shape(cluster, 0, 7) == ((0, 1),)
    assert transfer_shape(cluster, 0, 4) == ((0, 4),)
    assert transfer_shape(cluster, 0, 3 * 8 + 2) == ((0, 2), (1, 1))
    assert transfer_shape(cluster, 5, 63) == ((0, 2), (1, 1), (2, 2))
    assert transfer_shape(cluster, 63, 5) == transfer_shape(cluster, 5, 63)
    assert transfer_shape(cluster, 9, 9) == ()


def test_a_dimension_is_called_by_its_number_and_the_groups_that_cross_it() -> None:
    cluster = default_cluster(64)
    layout = Layout(tp=4, ep=1, dp=8, pp=2)
    inner, outer = name_groups(cluster, layout)
    # tp 4 in servers of 8: dp crosses both. All of dp shards its weights together: its groups are one kind.
    assert (inner.name(0), outer.name(1)) == ("dim 0 (tp, dp)", "dim 1 (dp, pp)")
    assert outer.name(1, "50 GB/s") == "dim 1 (dp, pp; 50 GB/s)"
    sharded = Layout(tp=4, ep=1, dp=8, pp=2, shard=2)
    assert [dim.groups for dim in name_groups(cluster, sharded)] == [
        ("tp", "dp", "dp_shard"),
        ("dp", "pp", "dp_replicate"),
    ]
    assert [dim.text() for dim in name_groups(cluster, layout)] == [dim.text() for dim in cluster.dims]


def test_without_a_layout_that_fits_a_dimension_has_its_number_alone() -> None:
    cluster = default_cluster(8)
    assert name_groups(cluster, Layout(tp=4, ep=1, dp=8, pp=2)) == cluster.dims
    assert cluster.dims[0].name(0) == "dim 0"
    assert cluster.dims[0].name(0, "450 GB/s") == "dim 0 (450 GB/s)"
