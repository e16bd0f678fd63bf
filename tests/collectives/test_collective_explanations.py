"""Where a price comes from: exact texts, which a reader can add up again."""

import re
import subprocess
import sys
from fractions import Fraction
from math import floor
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from simcore.cluster import (
    Cluster,
    ClusterParameters,
    Dimension,
    choose_cluster,
    group_shape,
    transfer_shape,
)
from simcore.collectives import collective_ns, explain_collective, transfer_ns
from simcore.collectives.pricing import explain_transfer
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
    # floor(0.7 + 500 / 3) = 167.
    assert explained(cluster, range(2), "ALLGATHER", 1000)[1] == (
        "1 message of 500 B: 500 B / 3 GB/s + 1 hop x 0.7 = 167, + 2 x 10 endpoint = 187 ns"
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


def parse(text: str) -> Fraction:
    return Fraction(text.replace(" ", ""))


_NUMBER = r"([0-9][0-9 ]*(?:\.[0-9]+)?)"
_SENT = re.compile(
    rf"(\d+) messages? of {_NUMBER}(?: to {_NUMBER})? B(?: on dimension \d+)?: "
    rf"(?:{_NUMBER} B / {_NUMBER} GB/s = {_NUMBER}, \+ {_NUMBER} hops? x {_NUMBER}"
    rf"|(\d+) x {_NUMBER}, each {_NUMBER} B / {_NUMBER} GB/s \+ {_NUMBER} hops? x {_NUMBER}"
    rf"|{_NUMBER} B / {_NUMBER} GB/s \+ {_NUMBER} hops? x {_NUMBER} = {_NUMBER}(?:, each message floored)?)"
)
_REST = re.compile(rf"\+ {_NUMBER} x {_NUMBER} endpoint(?:, \+ {_NUMBER} reducing)? = {_NUMBER}")


def check_sum(text: str) -> int:
    """Redoes a printed sum: each of its terms by its own figures, and all of them; returns it, ns."""
    total = Fraction(0)
    for term in _SENT.finditer(text):
        count, size, most, *figures = (parse(one) if one else Fraction(-1) for one in term.groups())
        apart, equal, together = figures[:5], figures[5:11], figures[11:]
        if apart[0] >= 0:
            moved, rate, ns, hops, latency = apart
            assert ns.denominator == 1
            assert 0 <= moved / rate - ns < count
            if most < 0:
                assert ns == count * floor(size / rate) or hops * latency
                assert moved == count * size
            total += ns + hops * latency
        elif equal[0] >= 0:
            times, each, of_each, rate, hops, latency = equal
            assert (times, of_each) == (count, size)
            assert each == floor(size / rate + hops * latency)
            total += times * each
        else:
            moved, rate, hops, latency, ns = together
            assert 0 <= moved / rate + hops * latency - ns < count
            total += ns
    rest = _REST.search(text)
    assert rest is not None, text
    ends, delay, reducing, printed = (parse(one or "0") for one in rest.groups())
    assert total + ends * delay + reducing == printed, text
    return int(printed)


_THOUSANDTHS = st.integers(1, 10**6).map(lambda figure: figure / 1000)
_LATENCIES = st.just(500.0) | _THOUSANDTHS


@given(
    st.lists(
        st.builds(
            Dimension,
            st.sampled_from(["ring", "switch", "fully-connected"]),
            st.sampled_from([2, 3, 4, 8]),
            _THOUSANDTHS,
            _LATENCIES,
        ),
        min_size=1,
        max_size=2,
    ),
    st.sampled_from(["ALLREDUCE", "ALLGATHER", "REDUCESCATTER", "ALLTOALL"]),
    st.integers(1, 2**34),
)
def test_a_printed_price_can_be_redone(dims: list[Dimension], collective: str, size: int) -> None:
    """Seen to fail: hops of a fraction of a ns taken from the floored messages, which left bytes that take
    less than they do.
    """
    cluster = Cluster(tuple(dims), (None,) * len(dims))
    shape = group_shape(cluster, range(cluster.npus))
    text = explain_collective(cluster, shape, collective, size).splitlines()[1]
    phases, in_all, _ = text.partition("; in all ")
    alone = sum(check_sum(phase) for phase in phases.split("; "))
    price = collective_ns(cluster, shape, collective, size)
    assert alone == price
    assert not in_all or text.endswith(f"{price:,} ns".replace(",", " "))


@given(_THOUSANDTHS, _LATENCIES, st.integers(1, 2**40))
def test_a_printed_transfer_can_be_redone(bandwidth: float, latency: float, size: int) -> None:
    cluster = Cluster((Dimension("switch", 2, bandwidth, latency),), (None,))
    shape = transfer_shape(cluster, 0, 1)
    text = explain_transfer(cluster, shape, size)
    match = re.fullmatch(
        rf"{_NUMBER} B / {_NUMBER} GB/s = {_NUMBER}, \+ {_NUMBER} hops x {_NUMBER} on dimension 0 "
        rf"= {_NUMBER} ns",
        text,
    )
    assert match is not None, text
    moved, rate, ns, hops, per_hop, total = map(parse, match.groups())
    assert abs(moved / rate - ns) <= Fraction(1, 1000)
    assert total == floor(moved / rate + hops * per_hop) == transfer_ns(cluster, shape, size)


def test_the_given_ring_has_six_messages_of_5_000_003_ns() -> None:
    cluster = choose_cluster(ClusterParameters(cluster="fixtures/inputs/ring4_fraction.yml")).cluster(4)
    text = explained(cluster, range(4), "ALLREDUCE", 64 * MiB)[1]
    assert "6 x 5 000 003, each 16 777 216 B / 3.3554432 GB/s + 1 hop x 3.39" in text
    assert check_sum(text) == 30_045_160
