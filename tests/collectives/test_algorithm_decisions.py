"""Where two readings give different nanoseconds, continued: trees, windows, flat groups, chunks."""

from collections.abc import Sequence
from typing import Any

import pytest

from simcore.cluster import Cluster, Dimension, group_shape
from simcore.collectives import CompletionTimes, completion_times, phases
from simcore.diagnostics import UsageError
from tests.findings import facts
from tests.says import said

EP = 10


def dimension(kind: Any, size: int, bandwidth: float = 1.0, latency: float = 0.0) -> Dimension:
    return Dimension(kind, size, bandwidth, latency)


def done(
    dims: Sequence[Dimension],
    collective: str,
    size: int,
    algorithms: Sequence[str | None] | None = None,
    ranks: Sequence[int] | None = None,
    **settings: Any,
) -> CompletionTimes:
    settings = {"local_mem_bandwidth": 1e9} | settings
    cluster = Cluster(tuple(dims), tuple(algorithms or [None] * len(dims)), **settings)
    return completion_times(cluster, group_shape(cluster, ranks or range(cluster.npus)), collective, size)


def price(*arguments: Any, **settings: Any) -> int:
    return done(*arguments, **settings).last_ns


# Trees

TREE = ["double-binary-tree"]


def test_a_tree_runs_an_all_reduce_whatever_was_asked_for() -> None:
    dims = [dimension("fully-connected", 8, 1.0, 100.0)]
    reduce = price(dims, "ALLREDUCE", 800, TREE)
    assert reduce == 6 * (100 + 800) + 7 * EP
    assert price(dims, "REDUCESCATTER", 800, TREE) == reduce
    assert price(dims, "ALLGATHER", 8 * 800, TREE) == reduce
    # What goes up a tree is not divided, and what comes down is not multiplied.
    dims = [dimension("switch", 2), dimension("ring", 2)]
    mixed = price(dims, "REDUCESCATTER", 800, [*TREE, "ring"])
    assert mixed == (2 * 800 + 3 * EP) + (400 + 2 * EP)
    assert price(dims, "ALLGATHER", 4 * 800, ["ring", *TREE]) == (2 * 800 + 3 * EP) + (800 + 2 * EP)


def test_a_tree_is_done_at_its_root_first() -> None:
    # Up: leaf, 2 inner ranks, root; down the same way. Each receive but a leaf's reduces.
    dims = [dimension("fully-connected", 8, 1.0, 100.0)]
    first, last = done(dims, "ALLREDUCE", 800, TREE, local_mem_bandwidth=8.0)
    reduction = 3 * 100
    assert first == EP + 3 * (900 + EP + reduction)
    assert last == first + 3 * (900 + EP) + 2 * reduction


def test_chunks_alternate_between_two_trees() -> None:
    # Two ranks: in the first chunk rank 1 is root, in the second rank 0, in the third rank 1 again.
    dims = [dimension("fully-connected", 2, 1.0, 0.0)]

    def two_chunks(chunk_count: int) -> CompletionTimes:
        return done(dims, "ALLREDUCE", 100 * chunk_count, TREE, splits=chunk_count)

    # The leaf: EP, 100 up; the root: EP, 100 down, and done; the leaf: EP.
    assert two_chunks(1) == (EP + 100 + EP, EP + 100 + EP + 100 + EP)
    # Rank 1, root before, is the leaf now and sends at once; rank 0 hears it after its own first chunk.
    leaf = two_chunks(1).last_ns
    assert two_chunks(2) == (leaf + EP, leaf + EP + 100 + EP)


def test_a_level_of_a_tree_on_an_uneven_ring_pays_its_farthest_pair() -> None:
    # Members 0, 1, 3, 6 of a ring of 16: neighbours at most 3 apart, next but one at most 5.
    dims = [dimension("ring", 16, 1.0, 100.0)]
    assert price(dims, "ALLREDUCE", 8, TREE, [0, 1, 3, 6]) == 2 * (300 + 8) + 2 * (500 + 8) + 5 * EP


def test_a_tree_needs_a_power_of_two() -> None:
    with pytest.raises(UsageError) as error:
        price([dimension("switch", 6)], "ALLREDUCE", 8, TREE)
    assert facts(str(error.value)) == "--algorithm 0=double-binary-tree, 6, 0"
    assert "ring or direct" in str(error.value)


def test_a_tree_has_no_all_to_all() -> None:
    dims = [dimension("switch", 6)]
    assert price(dims, "ALLTOALL", 600, TREE) == price(dims, "ALLTOALL", 600)


# Windows


@pytest.mark.parametrize("kind", ["ring", "switch", "fully-connected"])
@pytest.mark.parametrize("collective", ["ALLREDUCE", "ALLGATHER", "REDUCESCATTER", "ALLTOALL"])
def test_a_window_as_wide_as_the_group_is_direct(kind: str, collective: str) -> None:
    dims = [dimension(kind, 8, 3.0, 100.0)]
    assert price(dims, collective, 8000, ["direct7"]) == price(dims, collective, 8000, ["direct"])
    assert price(dims, collective, 8000, ["direct64"]) == price(dims, collective, 8000, ["direct"])


def test_a_window_of_one_reduces_every_second_message() -> None:
    dims = [dimension("fully-connected", 8, 1.0, 0.0)]

    def reducing(collective: str) -> int:
        slow = price(dims, collective, 800, ["direct1"], local_mem_bandwidth=10.0)
        return (slow - price(dims, collective, 800, ["direct1"])) // (3 * 10)

    assert price(dims, "REDUCESCATTER", 800, ["direct1"]) == 7 * 100 + 8 * EP
    assert reducing("REDUCESCATTER") == 4
    assert price(dims, "ALLREDUCE", 800, ["direct1"]) == 14 * 100 + 15 * EP
    assert reducing("ALLREDUCE") == 4
    assert reducing("ALLGATHER") == 0


def test_a_window_lets_so_many_messages_go_at_a_time() -> None:
    dims = [dimension("fully-connected", 8, 1.0, 0.0)]
    # 7 messages of 100 bytes: 7, 4, 3 and 2 rounds.
    for window, rounds in [(1, 7), (2, 4), (3, 3), (4, 2), (6, 2)]:
        assert price(dims, "ALLGATHER", 800, [f"direct{window}"]) == rounds * 100 + (rounds + 1) * EP


def test_a_window_shares_the_port_of_an_all_to_all() -> None:
    dims = [dimension("switch", 8, 1.0, 0.0)]
    assert price(dims, "ALLTOALL", 800, ["direct2"]) == 4 * 200 + 5 * EP
    assert price(dims, "ALLTOALL", 800, ["direct2"], alltoall_port_time=False) == 4 * 100 + 5 * EP
    links = [dimension("fully-connected", 8, 1.0, 0.0)]
    assert price(links, "ALLTOALL", 800, ["direct2"]) == 4 * 100 + 5 * EP


def test_a_window_on_an_uneven_ring_takes_the_slowest_way() -> None:
    dims = [dimension("ring", 16, 1.0, 100.0)]
    assert price(dims, "ALLGATHER", 300, ["direct1"], [0, 1, 6]) == 2 * (100 + 600) + 3 * EP


# Flat groups


def test_a_flat_ring_only_pays_the_innermost_dimension() -> None:
    dims = [dimension("ring", 4, 10.0, 100.0), dimension("switch", 4, 1.0, 9000.0)]
    assert price(dims, "ALLGATHER", 1600, ["one-ring", None]) == 15 * (100 + 10) + 16 * EP
    # A group that has one member on the innermost dimension starts at the next one.
    assert price(dims, "ALLGATHER", 400, ["one-ring", None], range(0, 16, 4)) == 3 * (18000 + 100) + 4 * EP


def test_a_flat_halving_doubling_crosses_one_dimension_after_the_other() -> None:
    dims = [dimension("ring", 4, 10.0, 100.0), dimension("switch", 4, 1.0, 1000.0)]
    rounds = [(100 + 80), (200 + 40), (2000 + 200), (2000 + 100)]
    assert price(dims, "REDUCESCATTER", 1600, ["one-halving-doubling"] * 2) == sum(rounds) + 5 * EP


def test_a_flat_direct_all_reduce_waits_for_the_slowest_way_twice() -> None:
    dims = [dimension("ring", 4, 10.0, 100.0), dimension("switch", 4, 1.0, 50.0)]
    # 100 bytes: 110 or 210 ns on the ring, 200 on the switch; 10 bytes: at most 201 and 110.
    assert price(dims, "ALLREDUCE", 1600, ["one-direct", None]) == 2 * 210 + 3 * EP
    assert price(dims, "ALLREDUCE", 16000, ["one-direct", None]) == 2 * 1100 + 3 * EP


def test_a_flat_all_to_all_waits_for_its_slowest_port() -> None:
    # 16 members, 100 bytes each: 3 * 4 peers differ on dimension 0, 3 on dimension 1 alone.
    dims = [dimension("switch", 4, 10.0), dimension("switch", 4, 1.0)]
    assert price(dims, "ALLTOALL", 1600, ["one-direct", None]) == 300 + 2 * EP
    dims = [dimension("switch", 4, 2.0), dimension("switch", 4, 1.0)]
    assert price(dims, "ALLTOALL", 1600, ["one-direct", None]) == 600 + 2 * EP
    dims = [dimension("fully-connected", 4, 1.0), dimension("switch", 4, 1.0)]
    assert price(dims, "ALLTOALL", 1600, ["one-halving-doubling", None]) == 400 + 2 * EP


def test_a_flat_algorithm_beside_another_is_refused() -> None:
    dims = [dimension("ring", 4), dimension("switch", 4)]
    with pytest.raises(UsageError) as error:
        price(dims, "ALLREDUCE", 1600, ["ring", "one-ring"])
    said([str(error.value)], "--algorithm 0=ring", "dimension 1", "one-ring")


def test_a_flat_halving_doubling_on_six_members_is_refused() -> None:
    with pytest.raises(UsageError) as error:
        price([dimension("ring", 2), dimension("switch", 3)], "ALLREDUCE", 8, ["one-halving-doubling", None])
    assert facts(str(error.value)) == "--algorithm 0=one-halving-doubling, 6"
    assert "one-ring or one-direct" in str(error.value)


# Chunks


def test_a_remainder_makes_one_chunk_more() -> None:
    dims = [dimension("fully-connected", 2)]
    assert price(dims, "REDUCESCATTER", 10, splits=4) == 5 * (1 + 2 * EP)
    assert price(dims, "REDUCESCATTER", 8, splits=4) == 4 * (1 + 2 * EP)


def test_a_chunk_has_at_least_a_byte_a_member() -> None:
    dims = [dimension("ring", 4)]
    assert price(dims, "REDUCESCATTER", 10, splits=8) == 3 * price(dims, "REDUCESCATTER", 4)
    assert price(dims, "REDUCESCATTER", 1, splits=8) == price(dims, "REDUCESCATTER", 4)
    # All-gather of 12 bytes: shards of 3.
    assert price(dims, "ALLGATHER", 12, splits=8) == 3 * price(dims, "ALLGATHER", 4)
    assert price(dims, "ALLGATHER", 3, splits=8) == price(dims, "ALLGATHER", 3)


def test_chunks_on_their_way_down_wait_for_those_that_go_up() -> None:
    # Two chunks of 200 bytes: 100 + 20 up and down on dimension 0, 2 * 50 + 30 on dimension 1.
    dims = [dimension("ring", 2), dimension("ring", 2)]
    up, top = 100 + 2 * EP, 2 * 50 + 3 * EP
    # Both go up first: 0 to 120, 120 to 240. The first comes back from the top at 250, the second at 380.
    assert price(dims, "ALLREDUCE", 400, splits=2) == up + 2 * top + up == 500
    # Four chunks: the first is back at 250, when the third goes up, and waits for the fourth.
    assert price(dims, "ALLREDUCE", 800, splits=4) == 8 * up


def test_active_chunks_share_nothing() -> None:
    dims = [dimension("switch", 8, 3.0, 100.0)]
    one = price(dims, "ALLREDUCE", 1000)
    for active, rounds in [(1, 8), (2, 4), (3, 3), (8, 1), (100, 1)]:
        assert price(dims, "ALLREDUCE", 8000, splits=8, active_chunks=active) == rounds * one


def test_baseline_runs_a_whole_all_reduce_on_each_dimension() -> None:
    dims = [dimension("ring", 4), dimension("switch", 4)]
    each = [price([one], "ALLREDUCE", 1600) for one in dims]
    assert price(dims, "ALLREDUCE", 1600, optimization="baseline") == sum(each)
    for collective in ("ALLGATHER", "REDUCESCATTER", "ALLTOALL"):
        assert price(dims, collective, 1600, optimization="baseline") == price(dims, collective, 1600)


def test_ranks_of_an_uneven_ring_go_on_together() -> None:
    dims = [dimension("ring", 8, 1.0, 100.0)]
    one = done(dims, "ALLGATHER", 400, None, range(4))
    assert one.first_ns == one.last_ns == 3 * 100 + (3 + 1 + 1) * 100 + 4 * EP
    assert price(dims, "ALLGATHER", 1600, None, range(4), splits=4) == 4 * one.last_ns


def test_a_very_large_tree_waits_for_its_last_rank_in_each_phase(monkeypatch: pytest.MonkeyPatch) -> None:
    dims = [dimension("switch", 8)]
    exact = done(dims, "ALLREDUCE", 800, TREE, splits=4)
    monkeypatch.setattr(phases, "MOST_MESSAGES", 63)
    one = price(dims, "ALLREDUCE", 200, TREE)
    assert done(dims, "ALLREDUCE", 800, TREE, splits=4) == (4 * one, 4 * one)
    assert exact.last_ns <= 4 * one


def test_two_trees_on_one_dimension_start_where_each_rank_ended() -> None:
    # Tree up, ring, tree down: the second tree is the mirror image, and its leaves were early before.
    dims = [dimension("switch", 4), dimension("ring", 2)]
    first, last = done(dims, "ALLREDUCE", 800, [*TREE, "ring"])
    alone = 2 * price(dims[:1], "ALLREDUCE", 800, TREE) + price(dims[1:], "ALLREDUCE", 800)
    assert first < last < alone
