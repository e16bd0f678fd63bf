"""Rings, direct algorithms and trees as flows: what each sends, and how long it takes by hand."""

from __future__ import annotations

import pytest

from simcore.flows.alone import run_collectives
from simcore.flows.collectives import make_tree
from simcore.flows.traffic import FlowRules
from simcore.topology import Link, Topology, generate_topology

PLAIN = FlowRules("plain", 0, "seeded")
# GPUs, each a server, on one switch: 10 bytes a ns and no latency.
STAR = Topology("star", 8, 1, (), (8,), tuple(Link(gpu, 8, 80.0, 0.0) for gpu in range(8)))
SIZE = 8 * 16 * 1000


def ends_of(algorithm: str, collective: str, ranks: int, rules: FlowRules = PLAIN) -> int:
    return run_collectives(STAR, [range(ranks)], collective, SIZE, rules, algorithm).ends[0]


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_rings_and_direct_algorithms_take_what_their_bytes_take(ranks: int) -> None:
    once = SIZE * (ranks - 1) / ranks / 10
    for algorithm in ("ring", "direct"):
        assert ends_of(algorithm, "ALLGATHER", ranks) == pytest.approx(once, rel=0.01)
        assert ends_of(algorithm, "ALLREDUCE", ranks) == pytest.approx(2 * once, rel=0.01)


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_direct_algorithms_wait_less_often(ranks: int) -> None:
    slow = FlowRules("plain", 100_000, "seeded")
    steps = {
        name: (ends_of(name, "ALLREDUCE", ranks, slow) - ends_of(name, "ALLREDUCE", ranks)) / 100_000
        for name in ("ring", "direct")
    }
    assert steps == {"ring": pytest.approx(2 * (ranks - 1)), "direct": pytest.approx(2)}


def test_a_tree_of_two_ranks_is_two_exchanges_of_halves() -> None:
    # Each of 8 chunks goes up and down, in both trees at once: while one goes down the next goes up.
    chunk = SIZE / 2 / 8 / 10
    assert ends_of("double-binary-tree", "ALLREDUCE", 2) == pytest.approx(2 * 9 * chunk, rel=0.12)


@pytest.mark.parametrize("ranks", range(2, 20))
def test_every_rank_but_the_root_has_a_parent_and_none_more_than_two_children(ranks: int) -> None:
    parents = make_tree(range(ranks))
    assert sorted(parents) == list(range(ranks))
    assert list(parents.values()).count(None) == 1
    for rank in range(ranks):
        assert list(parents.values()).count(rank) <= 2
        depth, node = 0, rank
        while (above := parents[node]) is not None:
            depth, node = depth + 1, above
        assert depth <= ranks.bit_length()


@pytest.mark.parametrize("algorithm", ["ring", "direct", "double-binary-tree"])
@pytest.mark.parametrize("model", ["plain", "ns3"])
def test_ranks_send_what_an_algorithm_needs(algorithm: str, model: str) -> None:
    rules = FlowRules(model, 0, "seeded")
    topology = generate_topology("dcn:16:npa=8:psn=2")
    size = 16 * 8 * 2 * 1000
    report = run_collectives(topology, [range(16)], "ALLREDUCE", size, rules, algorithm).report
    sent = sum(port.bytes for port in report.ports if port.source < 16)
    # In all of them each byte goes to n - 1 others to be reduced, and to n - 1 when it is.
    assert sent == 2 * 15 * size


def test_latency_of_a_tree_grows_with_its_depth() -> None:
    slow = FlowRules("plain", 1_000_000, "seeded")
    waits = [ends_of("double-binary-tree", "ALLREDUCE", ranks, slow) // 1_000_000 for ranks in (2, 4, 8)]
    # Eight chunks on the longest way up and down.
    assert waits == sorted(waits)
    assert waits[2] < 2 * 8 * 7
