"""Claims about clusters: ranks in mixed radix, inner dimension first, and the default preset."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.cluster import DEFAULT_PRESET, Cluster, Dimension
from simcore.diagnostics import UsageError
from tests.findings import facts
from tests.says import said
from tests.strategies import default_cluster


def of_sizes(*sizes: int) -> Cluster:
    return Cluster(tuple(Dimension("switch", size, 50.0, 500.0) for size in sizes), (None,) * len(sizes))


@given(st.lists(st.integers(1, 9), min_size=1, max_size=4), st.data())
def test_coordinates_are_the_mixed_radix_digits_of_a_rank(sizes: list[int], data: st.DataObject) -> None:
    cluster = of_sizes(*sizes)
    rank = data.draw(st.integers(0, cluster.npus - 1))
    back, reach = 0, 1
    for place, size in zip(cluster.coordinates(rank), sizes, strict=True):
        assert 0 <= place < size
        back += place * reach
        reach *= size
    assert back == rank


def test_the_first_dimension_is_the_inner_one() -> None:
    assert of_sizes(8, 4, 2).coordinates(8 * 3 + 5) == (5, 3, 0)


@pytest.mark.parametrize("rank", [-1, 32])
def test_a_rank_outside_the_cluster_has_no_coordinates(rank: int) -> None:
    with pytest.raises(ValueError, match=f"no rank {rank} on 32 NPUs"):
        of_sizes(8, 4).coordinates(rank)


def test_a_cluster_smaller_than_the_world_is_an_error() -> None:
    cluster = Cluster((Dimension("ring", 4, 50.0, 500.0), Dimension("switch", 8, 50.0, 500.0)), (None, None))
    cluster.check_world(32)
    cluster.check_world(3)
    with pytest.raises(UsageError) as error:
        cluster.check_world(33)
    assert facts(str(error.value)) == "32, 4, 8, 33, 33"
    said([str(error.value)], "ring 4", "switch 8", "too few")


def test_each_dimension_has_one_algorithm() -> None:
    with pytest.raises(ValueError, match="1 algorithms for 2 dimensions"):
        Cluster(of_sizes(8, 4).dims, (None,))


@pytest.mark.parametrize(("world", "servers"), [(1, 1), (8, 1), (9, 2), (128, 16), (1024, 128)])
def test_the_default_cluster_is_servers_of_eight(world: int, servers: int) -> None:
    cluster = default_cluster(world)
    assert cluster.dims == (Dimension("switch", 8, 450.0, 500.0), Dimension("switch", servers, 50.0, 1000.0))
    assert cluster.algorithms == (None, None)
    assert (cluster.endpoint_delay_ns, cluster.local_mem_bandwidth) == (10, 3350.0)
    assert cluster.npus >= world
    assert DEFAULT_PRESET == "h100-8"


def test_a_dimension_says_its_figures_without_needless_decimals() -> None:
    assert Dimension("switch", 8, 450.0, 500.0).text() == "switch 8, 450 GB/s, 500 ns a hop"
    assert Dimension("ring", 4, 0.123, 0.5).text() == "ring 4, 0.123 GB/s, 0.5 ns a hop"
    # As a network.yml has 450 GB/s.
    assert Dimension("switch", 8, 419.095158577 * 2**30 / 1e9, 5).bandwidth_text() == "450 GB/s"
    assert Dimension("ring", 4, 53.6870912, 0.5).text() == "ring 4, 50 GiB/s (53.69 GB/s), 0.5 ns a hop"
