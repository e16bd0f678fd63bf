"""Where two readings of a rule give different nanoseconds: one test a decision of docs/network.md."""

import re
from collections.abc import Sequence
from fractions import Fraction
from math import floor
from pathlib import Path
from typing import Any

import pytest

from simcore.cluster import ALGORITHM_NAMES, Cluster, Dimension, group_shape, transfer_shape
from simcore.collectives import collective_ns, transfer_ns
from simcore.collectives.algorithms import algorithm_named
from simcore.diagnostics import UsageError
from tests.findings import facts

ROOT = Path(__file__).parents[2]
ENDPOINT = 10


def dimension(kind: Any, size: int, bandwidth: float = 100.0, latency: float = 500.0) -> Dimension:
    return Dimension(kind, size, bandwidth, latency)


def price(
    dims: Sequence[Dimension],
    collective: str,
    size: int,
    ranks: Sequence[int] | None = None,
    algorithms: Sequence[str | None] | None = None,
    **settings: Any,
) -> int:
    cluster = Cluster(tuple(dims), tuple(algorithms or [None] * len(dims)), **settings)
    return collective_ns(cluster, group_shape(cluster, ranks or range(cluster.npus)), collective, size)


def test_every_decision_of_the_documentation_is_a_test() -> None:
    named = re.findall(r"`(test_\w+)`", (ROOT / "docs" / "network.md").read_text())
    sources = [path.read_text() for room in ("cluster", "collectives")
               for path in (ROOT / "tests" / room).glob("test_*.py")]  # fmt: skip
    assert len(named) > 20
    assert [name for name in named if not any(f"def {name}(" in source for source in sources)] == []


# Numbers


def test_a_bandwidth_is_the_decimal_number_that_is_written() -> None:
    # 4 GiB/s. The nearest double is a little above, so its exact quotient is just below a whole ns.
    bandwidth = 4 * 2**30 / 1e9
    assert floor(2**30 / Fraction(bandwidth)) == floor(2**30 / bandwidth) == 249_999_999
    dims = [dimension("fully-connected", 2, bandwidth, 0.0)]
    assert price(dims, "ALLGATHER", 2**31) == 250_000_000 + 2 * ENDPOINT


def test_floors_are_exact_up_to_2_to_the_63() -> None:
    dims = [dimension("ring", 8, 0.3, 0.7)]
    for size in (2**63, 2**63 - 1, 2**53 + 1):
        message = floor(Fraction("0.7") + (size // 8) / Fraction("0.3"))
        reduction = 3 * floor((size // 8) / Fraction(3350))
        assert price(dims, "ALLREDUCE", size) == 14 * message + 15 * ENDPOINT + 7 * reduction
    # A float quotient of that size cannot even hold the units.
    assert int(0.7 + 2**60 / 0.3) != floor(Fraction("0.7") + 2**60 / Fraction("0.3"))


def test_each_message_is_floored_on_its_own() -> None:
    # 8 members, shards of 19 bytes at 10 bytes/ns: 1.9 ns a message.
    dims = [dimension("ring", 8, 10.0, 0.0)]
    assert price(dims, "ALLGATHER", 8 * 19, endpoint_delay_ns=0) == 7


def test_a_message_is_a_whole_number_of_bytes() -> None:
    # One byte a ns: 27 bytes on 4 members are messages of 6, and 13 after halving once.
    for kind, algorithm, expected in [
        ("ring", "ring", 3 * 6 + 4 * ENDPOINT),
        ("fully-connected", "direct", 6 + 2 * ENDPOINT),
        ("switch", "halving-doubling", 13 + 6 + 3 * ENDPOINT),
    ]:
        dims = [dimension(kind, 4, 1.0, 0.0)]
        assert price(dims, "REDUCESCATTER", 27, algorithms=[algorithm]) == expected
    # Half a byte a ns tells 6 bytes (12 ns) from 6.75 (13 ns).
    halves = [dimension("fully-connected", 4, 0.5, 0.0)]
    assert price(halves, "REDUCESCATTER", 27) == 12 + 2 * ENDPOINT


# Sizes


def test_the_size_of_an_all_gather_is_the_gathered_buffer() -> None:
    dims = [dimension("ring", 4, 1.0, 0.0)]
    assert price(dims, "ALLGATHER", 4000) == 3 * 1000 + 4 * ENDPOINT
    assert price(dims, "ALLGATHER", 4003) == price(dims, "ALLGATHER", 4000)


def test_an_all_gather_smaller_than_its_group_still_pays_the_latency() -> None:
    assert price([dimension("ring", 4)], "ALLGATHER", 3) == 3 * 500 + 4 * ENDPOINT


def test_other_collectives_carry_at_least_a_byte_a_member() -> None:
    dims = [dimension("ring", 16, 0.1, 0.0)]
    members = range(0, 16, 4)
    for collective in ("ALLREDUCE", "REDUCESCATTER", "ALLTOALL"):
        assert price(dims, collective, 1, members) == price(dims, collective, 4, members)
        assert price(dims, collective, 4, members) < price(dims, collective, 8, members)
    assert price(dims, "REDUCESCATTER", 1, members) == 3 * 10 + 4 * ENDPOINT


def test_no_bytes_and_a_group_of_one_are_free() -> None:
    for collective in ("ALLREDUCE", "ALLGATHER", "REDUCESCATTER", "ALLTOALL"):
        assert price([dimension("ring", 4)], collective, 0) == 0
        assert price([dimension("ring", 4)], collective, 2**20, [2]) == 0
        assert price([dimension("ring", 1), dimension("switch", 1)], collective, 2**20) == 0


def test_what_comes_down_again_is_the_floored_size() -> None:
    # 1003 bytes on 4 x 2: reduce-scatter of 250 a message, all-reduce of 125, all-gather of 250.
    dims = [dimension("ring", 4, 1.0, 0.0), dimension("fully-connected", 2, 1.0, 0.0)]
    expected = (3 * 250 + 4 * ENDPOINT) + (2 * 125 + 3 * ENDPOINT) + (3 * 250 + 4 * ENDPOINT)
    assert price(dims, "ALLREDUCE", 1003) == expected
    # 251 bytes on 4 x 4 x 2: 62 reach the second dimension, 15 the third, and 15 * 4 come back to the first.
    dims = [dimension("ring", 4, 1.0, 0.0), dimension("ring", 4, 1.0, 0.0), dimension("ring", 2, 1.0, 0.0)]
    up = (3 * 62 + 4 * ENDPOINT) + (3 * 15 + 4 * ENDPOINT)
    down = (3 * 15 + 4 * ENDPOINT) + (3 * 60 + 4 * ENDPOINT)
    assert price(dims, "ALLREDUCE", 251) == up + (2 * 7 + 3 * ENDPOINT) + down


# Dimensions


def test_only_dimensions_that_the_group_crosses_count() -> None:
    dims = [dimension("ring", 4), dimension("switch", 8), dimension("switch", 2)]
    for collective in ("ALLREDUCE", "ALLGATHER", "REDUCESCATTER", "ALLTOALL"):
        inner = price(dims[:1], collective, 2**20)
        assert price(dims, collective, 2**20, range(4)) == inner
        assert price(dims[1:2], collective, 2**20) == price(dims, collective, 2**20, range(1, 32, 4))


def test_the_default_algorithm_depends_on_the_members_not_on_the_dimension() -> None:
    def by(size: int, members: int, algorithm: str | None) -> int:
        return price([dimension("switch", size)], "ALLREDUCE", 2**20, range(members), [algorithm])

    assert by(12, 8, None) == by(12, 8, "halving-doubling") != by(12, 8, "ring")
    assert by(16, 6, None) == by(16, 6, "ring")
    assert price([dimension("ring", 8)], "ALLREDUCE", 2**20) == price(
        [dimension("ring", 8)], "ALLREDUCE", 2**20, algorithms=["ring"]
    )
    assert price([dimension("fully-connected", 8)], "ALLREDUCE", 2**20) == price(
        [dimension("fully-connected", 8)], "ALLREDUCE", 2**20, algorithms=["direct"]
    )


def test_members_at_one_place_of_a_ring_are_one_hop_apart() -> None:
    # Ranks 0, 1 and 2 on switch 2 x ring 4 stand at places 0, 0 and 1 of the slower ring.
    dims = [dimension("switch", 2, 400.0), dimension("ring", 4, 1.0, 500.0)]
    assert price(dims, "ALLGATHER", 300, [0, 1, 2]) == (500 + 100) + (500 + 100) + 3 * ENDPOINT


# Rings


def test_a_ring_pays_its_slowest_walk() -> None:
    # Members 0 to 3 on a ring of 8: three gaps of 1 hop, and 3 hops back from 3 to 0 (the short way is 3).
    dims = [dimension("ring", 8, 100.0, 500.0)]
    message = 25_000 // 100
    gather = price(dims, "ALLGATHER", 100_000, range(4))
    assert gather == 3 * message + (3 + 1 + 1) * 500 + 4 * ENDPOINT
    # Six steps go round one and a half times; the slowest walk crosses the wide gap twice.
    reduce = price(dims, "ALLREDUCE", 100_000, range(4))
    assert reduce == 6 * message + (3 + 1 + 1 + 1 + 3 + 1) * 500 + 7 * ENDPOINT + 3 * 3 * (25_000 // 3350)


def test_a_group_across_the_end_of_a_ring_costs_the_same() -> None:
    dims = [dimension("ring", 8)]
    for algorithm in ALGORITHM_NAMES:
        for collective in ("ALLREDUCE", "ALLGATHER", "REDUCESCATTER", "ALLTOALL"):
            across = price(dims, collective, 2**20, [0, 1, 6, 7], [algorithm])
            assert across == price(dims, collective, 2**20, range(4), [algorithm])


def test_halving_doubling_on_an_uneven_ring_waits_for_the_slowest_pair() -> None:
    # Members 0, 1, 3, 4 of 16: pairs 0-1 and 3-4 are 1 hop, 0-3 and 1-4 are 3.
    dims = [dimension("ring", 16, 1.0, 500.0)]
    even_pairs = price(dims, "ALLGATHER", 400, [0, 1, 3, 4], ["halving-doubling"])
    assert even_pairs == (100 + 3 * 500) + (200 + 500) + 3 * ENDPOINT
    # Members 0, 1, 3, 6: pairs 0-1 (1) and 3-6 (3 hops), then 0-3 (3) and 1-6 (5).
    uneven_pairs = price(dims, "ALLGATHER", 400, [0, 1, 3, 6], ["halving-doubling"])
    assert uneven_pairs == (100 + 5 * 500) + (200 + 3 * 500) + 3 * ENDPOINT


def test_direct_waits_for_the_farthest_pair() -> None:
    dims = [dimension("ring", 16, 1.0, 500.0)]
    assert price(dims, "ALLGATHER", 300, [0, 1, 6], ["direct"]) == 100 + 6 * 500 + 2 * ENDPOINT
    assert price(dims, "ALLGATHER", 300, [0, 5, 11], ["direct"]) == 100 + 6 * 500 + 2 * ENDPOINT
    assert price(dims, "ALLGATHER", 1600, algorithms=["direct"]) == 100 + 8 * 500 + 2 * ENDPOINT


@pytest.mark.parametrize(
    ("size", "chunks", "nodes", "measured"),
    [
        (2**20, 1, 4, 12283),  # small packets: two messages between the farthest
        (2**20, 4, 8, 21240),
        (2**26, 4, 4, 662572),  # 4 chunks, each one hop less
        (2**30, 4, 4, 10509436),
        (2**26, 1, 16, 170143),  # four hops less
    ],
)
def test_near_peers_release_the_second_round_early(size: int, chunks: int, nodes: int, measured: int) -> None:
    # Measured on ASTRA-sim 2.0, analytical backend: 50 GiB/s, 500 ns a hop, memory 1600 GB/s.
    dims = [dimension("ring", nodes, 50 * 2**30 / 1e9, 500.0)]
    chunk = price(dims, "ALLREDUCE", size // chunks, algorithms=["direct"], local_mem_bandwidth=1600.0)
    assert chunks * chunk == measured


def test_near_peers_do_not_count_on_an_uneven_ring() -> None:
    dims = [dimension("ring", 16, 100.0, 500.0)]
    packet = 2**26 // 4

    def two_messages_over(hops: int) -> int:
        return 2 * (packet // 100 + hops * 500) + 3 * ENDPOINT + 3 * (packet // 3350)

    assert price(dims, "ALLREDUCE", 2**26, [0, 1, 2, 4], ["direct"]) == two_messages_over(4)
    # Evenly spaced members of the same ring: 4 + 8 hops instead of 8 + 8.
    assert price(dims, "ALLREDUCE", 2**26, [0, 4, 8, 12], ["direct"]) == two_messages_over(6)


# Reductions and ports


def test_halving_doubling_reduces_one_time_less_than_it_sends() -> None:
    dims = [dimension("switch", 8, 1e6, 0.0)]
    size = 8000
    reductions = 3 * (size // 4) + 3 * (size // 8)
    free = price(dims, "REDUCESCATTER", size, local_mem_bandwidth=1e9)
    assert price(dims, "REDUCESCATTER", size, local_mem_bandwidth=1.0) - free == reductions


def test_direct_gives_each_message_the_whole_bandwidth() -> None:
    for kind, hops in [("switch", 2), ("fully-connected", 1)]:
        dims = [dimension(kind, 8, 1.0, 500.0)]
        gather = price(dims, "ALLGATHER", 8000, algorithms=["direct"])
        assert gather == 1000 + hops * 500 + 2 * ENDPOINT


def test_an_all_to_all_shares_the_port_of_a_ring_or_switch() -> None:
    # 8 members, messages of 125 bytes at 10 bytes/ns: 12.5 ns each, 87.5 together.
    for kind, hops, bytes_ns in [("switch", 2, 87), ("ring", 4, 87), ("fully-connected", 1, 12)]:
        dims = [dimension(kind, 8, 10.0, 500.0)]
        assert price(dims, "ALLTOALL", 1000) == bytes_ns + hops * 500 + 2 * ENDPOINT


def test_an_explicit_direct_all_to_all_keeps_the_port_time() -> None:
    for kind in ("switch", "ring", "fully-connected"):
        dims = [dimension(kind, 8)]
        assert price(dims, "ALLTOALL", 2**20, algorithms=["direct"]) == price(dims, "ALLTOALL", 2**20)


def test_an_explicit_ring_runs_the_all_to_all_from_neighbour_to_neighbour() -> None:
    for kind, hops in [("switch", 2), ("ring", 1), ("fully-connected", 1)]:
        steps = 8 * 7 // 2
        expected = steps * (hops * 500 + 2**17 // 100) + (steps + 1) * ENDPOINT
        assert price([dimension(kind, 8)], "ALLTOALL", 2**20, algorithms=["ring"]) == expected


def test_halving_doubling_has_no_all_to_all() -> None:
    for members in (8, 6):
        dims = [dimension("switch", 8)]
        asked = price(dims, "ALLTOALL", 2**20, range(members), ["halving-doubling"])
        assert asked == price(dims, "ALLTOALL", 2**20, range(members))


def test_astra_sim_gives_each_message_of_an_all_to_all_the_whole_bandwidth() -> None:
    dims = [dimension("switch", 8, 10.0, 500.0)]
    assert price(dims, "ALLTOALL", 1000, alltoall_port_time=False) == 12 + 2 * 500 + 2 * ENDPOINT


# Transfers


def test_a_transfer_is_floored_once_over_all_its_dimensions() -> None:
    dims = (dimension("ring", 8, 400.0, 0.4), dimension("switch", 4, 50.0, 0.3))
    cluster = Cluster(dims, (None, None))
    # 3 hops of 0.4, 2 of 0.3 and 9 bytes at the slower 50 GB/s: 1.98 ns.
    assert transfer_ns(cluster, transfer_shape(cluster, 0, 13), 9) == 1
    assert transfer_ns(cluster, transfer_shape(cluster, 0, 13), 10) == 2
    # Within dimension 0 only: its own bandwidth.
    assert transfer_ns(cluster, transfer_shape(cluster, 0, 5), 4000) == 11
    assert transfer_ns(cluster, transfer_shape(cluster, 0, 5), 0) == 0
    assert transfer_ns(cluster, transfer_shape(cluster, 5, 5), 2**20) == 0


# What a user may ask for


def test_every_algorithm_that_a_user_may_name_is_there() -> None:
    assert ALGORITHM_NAMES == (
        "ring", "direct", "halving-doubling", "double-binary-tree",
        "one-ring", "one-direct", "one-halving-doubling",
    )  # fmt: skip
    on_dimension = {name: algorithm_named(name) for name in ALGORITHM_NAMES if not name.startswith("one-")}
    assert len(set(on_dimension.values())) == 4
    for name in (*ALGORITHM_NAMES, "direct3", "one-direct3"):
        found, flat = algorithm_named(name), name.startswith("one-")
        assert found.takes_flat_group == flat
        if flat and name in ALGORITHM_NAMES:
            assert found._replace(takes_flat_group=False) == on_dimension[name.removeprefix("one-")]


def test_halving_doubling_on_six_members_is_refused_with_what_fits() -> None:
    dims = [dimension("ring", 2), dimension("switch", 6)]
    with pytest.raises(UsageError) as error:
        price(dims, "ALLREDUCE", 2**20, algorithms=[None, "halving-doubling"])
    assert facts(str(error.value)) == "--algorithm 1=halving-doubling, 6, 1"
    assert "ring or direct" in str(error.value)


def test_an_unknown_collective_is_refused() -> None:
    with pytest.raises(ValueError, match="no collective BROADCAST"):
        price([dimension("ring", 2)], "BROADCAST", 8)
