"""Balanced flows: every path carries the same, and one link may stand for those that are joined alike."""

from __future__ import annotations

import pytest

from simcore.flows.alone import FlowRun, run_collectives
from simcore.flows.routes import Router
from simcore.flows.traffic import FlowRules
from simcore.topology import Topology, generate_topology, parse_link_rates, with_link_rates

PLAIN = FlowRules("plain", 0, "balanced")
TOPOLOGIES = {
    "rails": generate_topology("spectrum-x:16:psn=4"),
    "dual": generate_topology("hpn:32:npa=2:psn=4"),
    "planes": generate_topology("hpn:32:npa=2:psn=4:dp"),
    "tree": generate_topology("fat-tree:4"),
    "failed": with_link_rates(generate_topology("dcn:16:npa=4:psn=4"), parse_link_rates(["18-22=0"])),
    "slow": with_link_rates(generate_topology("dcn:16:npa=4:psn=4"), parse_link_rates(["18-22=0.25"])),
}


def run_of(topology: Topology, rules: FlowRules = PLAIN, collective: str = "ALLTOALL") -> FlowRun:
    return run_collectives(topology, [range(topology.gpus)], collective, 1 << 20, rules)


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_shares_of_a_flow_sum_to_one_at_every_hop(name: str) -> None:
    topology = TOPOLOGIES[name]
    router = Router(topology, "balanced")
    for source in range(topology.gpus):
        for target in range(topology.gpus):
            route = router.route(source, target) if source != target else None
            if route is None:
                continue
            into: dict[int, float] = {}
            out: dict[int, float] = {}
            for link, share in route.spread:
                there = topology.links[link // 2]
                ends = (there.target, there.source) if link % 2 else (there.source, there.target)
                out[ends[0]] = out.get(ends[0], 0.0) + share
                into[ends[1]] = into.get(ends[1], 0.0) + share
            assert out.pop(source) == pytest.approx(1.0)
            assert into.pop(target) == pytest.approx(1.0)
            assert into == pytest.approx(out)


@pytest.mark.parametrize("model", ["plain", "ns3"])
@pytest.mark.parametrize("name", TOPOLOGIES)
def test_one_link_for_those_that_are_alike_changes_nothing(
    name: str, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    topology, rules = TOPOLOGIES[name], FlowRules(model, 0, "balanced")
    before = run_of(topology, rules)
    links = range(2 * len(topology.links))
    assert len(set(Router(topology, "balanced").equal_links().values())) < len(links)
    monkeypatch.setattr(Router, "equal_links", lambda self: {link: link for link in links})
    every = run_of(topology, rules)
    assert before.ends == every.ends
    assert [port[:5] for port in before.report.ports] == [port[:5] for port in every.report.ports]


def test_all_to_all_takes_its_bytes_over_the_links_between_the_tiers() -> None:
    # Every switch has 8 GPUs, each with 24 targets elsewhere, and 4 links of 50 bytes a ns upwards.
    topology = generate_topology("dcn:32:npa=8:psn=4")
    run = run_collectives(topology, [range(32)], "ALLTOALL", 32 << 20, PLAIN)
    assert max(run.ends) == pytest.approx(8 * 24 * (1 << 20) / (4 * 50) + 4 * 500, rel=1e-4)
    up = [port for port in run.report.ports if port.source in range(36, 40) and port.target >= 40]
    assert {port.bytes for port in up} == {8 * 24 * (1 << 20) // 4}
    # What holds for one of four alike links holds for all.
    assert all(len({port.full_ns for port in up if port.source == switch}) == 1 for switch in range(36, 40))
    assert max(port.full_ns for port in run.report.ports) > 0.99 * max(port.busy_ns for port in up)


def test_balanced_paths_are_never_slower_than_those_of_a_hash() -> None:
    for name in ("rails", "dual", "tree"):
        hashed = run_of(TOPOLOGIES[name], FlowRules("plain", 0, "seeded"))
        assert max(run_of(TOPOLOGIES[name]).ends) <= max(hashed.ends)
