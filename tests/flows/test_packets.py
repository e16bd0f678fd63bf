"""Flows as packets, to the ns: by hand, beside max-min shares, and under DCQCN."""

from __future__ import annotations

from typing import Any

import pytest

from simcore.flows.alone import run_collectives
from simcore.flows.collectives import start_collective
from simcore.flows.packets import PacketTraffic, finer_rules, make_traffic
from simcore.flows.traffic import FlowRules, FlowTraffic
from simcore.networks.in_flight import FlowsInFlight
from simcore.records import replace
from simcore.runs.simulated import SimulatedRun
from simcore.topology import Link, PacketRules, Topology, generate_topology
from tests.strategies import Cell, Row, make_workload
from tests.tui.made_runs import run

RULES = FlowRules(send_latency=0, detail="outer")
# GPUs, each a server, on one switch: 80 Gb/s are 10 bytes a ns, a full packet 905 ns, an ACK 6.
STAR = Topology("star", 7, 1, (), (7,), tuple(Link(gpu, 7, 80.0, 100.0) for gpu in range(7)))
# The same at 400 Gb/s, a rate that has thresholds of marks.
FAST = Topology("fast", 7, 1, (), (7,), tuple(Link(gpu, 7, 400.0, 500.0) for gpu in range(7)))


def ends_of(topology: Topology, rules: FlowRules, *sends: tuple[int, int, int, int]) -> dict[int, int]:
    """When each send (delay, source, target, bytes) is acknowledged."""
    traffic, ends = PacketTraffic(topology, rules), dict[int, int]()
    for index, (delay, source, target, size) in enumerate(sends):
        traffic.send(delay, source, target, size, ends.__setitem__, index)
    traffic.run()
    return ends


def test_a_packet_is_stored_on_each_link_and_its_acknowledgement_comes_back() -> None:
    # Two packets leave by 1810; the second is at the switch at 1910, leaves it by 2815, and is there at 2915.
    assert ends_of(STAR, RULES, (0, 0, 1, 18_000)) == {0: 2915 + 6 + 100 + 6 + 100}


def test_flows_of_a_gpu_take_turns() -> None:
    # The short one has its only packet between those of the long one.
    ends = ends_of(STAR, RULES, (0, 0, 1, 27_000), (0, 0, 2, 9_000))
    assert ends == {0: 4 * 905 + 100 + 905 + 312, 1: 2 * 905 + 100 + 905 + 312} or ends == {
        0: 4 * 905 + 100 + 905 + 312, 1: 905 + 100 + 905 + 312
    }  # fmt: skip


def test_a_port_of_a_switch_serves_what_comes_first() -> None:
    ends = ends_of(STAR, RULES, (0, 0, 2, 9_000), (1, 1, 2, 9_000))
    assert ends == {0: 905 + 100 + 905 + 312, 1: 905 + 100 + 2 * 905 + 312}


def test_an_acknowledgement_waits_for_the_packet_on_the_wire() -> None:
    # When the packet of 0 has come to 1, the second packet of 1 is on the wire, from 905 + 1000 to 2810.
    ends = ends_of(STAR, RULES, (0, 0, 1, 9_000), (1000, 1, 2, 18_000))
    assert ends[0] == 2810 + 6 + 100 + 6 + 100


def test_a_window_stops_a_flow_until_it_is_acknowledged() -> None:
    # A window of 9,000 bytes: each packet waits for the acknowledgement of the one before.
    traffic = PacketTraffic(STAR, RULES)
    traffic._window_bytes = 9_000
    ends: dict[int, int] = {}
    traffic.send(0, 0, 1, 27_000, ends.__setitem__, 0)
    traffic.run()
    assert ends == {0: 3 * (2 * 905 + 2 * 100 + 2 * 106)}


@pytest.mark.parametrize("name", ["spectrum-x:16:psn=4", "dcn:16:npa=8:psn=2", "hpn:16:npa=1:psn=4"])
@pytest.mark.parametrize("collective", ["ALLREDUCE", "ALLGATHER", "ALLTOALL"])
@pytest.mark.parametrize("congestion", ["none", "dcqcn"])
def test_packets_carry_what_shares_carry(name: str, collective: str, congestion: str) -> None:
    topology = generate_topology(name)
    carried = []
    for detail in ("shares", "outer", "all"):
        traffic = make_traffic(topology, FlowRules(detail=detail, congestion=congestion))
        start_collective(traffic, range(topology.gpus), collective, 1 << 20, lambda _: None)
        traffic.run()
        carried.append(sum(port.bytes for port in traffic.port_uses()))
        for port in traffic.port_uses():
            assert port.bytes * 8 / port.gbps <= max(port.busy_ns, 1)
    assert carried[0] == carried[1] == carried[2]


@pytest.mark.parametrize("name", ["dcn:16:npa=8:psn=2", "hpn:32:psn=8"])
def test_the_busiest_port_decides_when_an_all_to_all_is_over(name: str) -> None:
    topology = generate_topology(name)
    ends = []
    for detail in ("shares", "all"):
        traffic = make_traffic(topology, FlowRules(detail=detail))
        start_collective(traffic, range(0, topology.gpus, 4), "ALLTOALL", 1 << 24, ends.append)
        traffic.run()
    assert ends[1] == pytest.approx(ends[0], rel=0.03)


class _Wire:
    """Takes sends, and lets the test say which arrives when."""

    def __init__(self, topology: Topology) -> None:
        self.topology, self.rules, self.now = topology, FlowRules(), 0
        self.has_chains = self.has_mixed_rings = False
        self.sends: list[tuple[int, int, int, Any, Any]] = []

    def send(
        self, delay: int, source: int, target: int, size: int, arrived: Any, key: Any, label: int = -1
    ) -> None:
        self.sends.append((self.now + delay, source, target, arrived, key))


def test_a_step_that_overtakes_another_waits_for_it() -> None:
    wire = _Wire(generate_topology("dcn:32:npa=8:psn=2"))
    start_collective(wire, [0, 8, 16, 24], "ALLGATHER", 1 << 20, lambda _: None)  # type: ignore[arg-type]
    first = {source: (arrived, key) for _, source, _, arrived, key in wire.sends}
    assert {when for when, *_ in wire.sends} == {3010}
    wire.now = 5000
    first[24][0](first[24][1], 5000)
    assert wire.sends[4][:3] == (8010, 0, 8)
    # What 0 sent second is at 8 before what it sent first.
    wire.now = 9000
    wire.sends[4][3](wire.sends[4][4], 9000)
    assert len(wire.sends) == 5
    wire.now = 9500
    first[0][0](first[0][1], 9500)
    assert [send[:3] for send in wire.sends[5:]] == [(12510, 8, 16), (12520, 8, 16)]


def test_dcqcn_halves_the_rates_of_flows_in_a_long_queue() -> None:
    sends = [(0, source, 6, 8_000_000) for source in range(6)]
    big_window = replace(RULES, packets=PacketRules(window=False))
    ends = {
        congestion: max(ends_of(FAST, replace(big_window, congestion=congestion), *sends).values())
        for congestion in ("none", "dcqcn")
    }
    # Six at once keep the port busy; slowed down they leave it idle.
    assert ends["none"] == pytest.approx(6 * 8_000_000 / 9_000 * 181, rel=0.01)
    assert ends["dcqcn"] > 1.2 * ends["none"]
    one = [ends_of(FAST, replace(big_window, congestion=congestion), sends[0]) for congestion in ends]
    assert one[0] == one[1]


def test_marks_between_the_thresholds_are_drawn_by_the_seed() -> None:
    # While the queue of two flows grows from 800 kB to 3,200 kB a part of the packets is marked.
    sends = [(0, source, 6, 8_000_000) for source in range(2)]
    rules = replace(RULES, packets=PacketRules(window=False), congestion="dcqcn")
    ends = [tuple(ends_of(FAST, replace(rules, seed=seed), *sends).values()) for seed in (0, 0, 1, 2, 3)]
    assert ends[0] == ends[1]
    assert len({*ends}) > 2


def test_a_slowed_flow_sends_at_its_time_whatever_has_only_acknowledgements_to_come() -> None:
    """One packet to a GPU a millisecond away, three to a near one at a hundredth of the rate of the port."""
    links = tuple(Link(gpu, 7, 80.0, 100.0 if gpu < 6 else 1e6) for gpu in range(7))
    traffic, ends = PacketTraffic(Topology("far", 7, 1, (), (7,), links), RULES), dict[int, int]()
    for target, size in ((6, 9_000), (1, 27_000)):
        traffic.send(0, 0, target, size, ends.__setitem__, target)
    traffic.run_until(0)
    for flow in traffic._packet_ports[0].flows:
        flow.gbps /= 100
    traffic.run()
    assert ends[1] < 200_000 < 2_000_000 < ends[6]


def test_queues_below_the_threshold_are_not_marked() -> None:
    # Two flows of 40 packets: at most 40 packets, 362 kB, wait; marks begin at 800 kB.
    sends = [(0, source, 6, 360_000) for source in range(2)]
    rules = replace(RULES, packets=PacketRules(window=False))
    assert ends_of(FAST, rules, *sends) == ends_of(FAST, replace(rules, congestion="dcqcn"), *sends)


def test_a_run_is_made_of_packets_where_rings_share_ports_and_only_there() -> None:
    details = {}
    for name, ranks in (("spectrum-x:32:psn=8", range(0, 32, 8)), ("spectrum-x:32:psn=8", range(32)),
                        ("dcn:32:npa=8:psn=2", range(0, 32, 8))):  # fmt: skip
        groups = [ranks] if len(ranks) == 32 else [range(rail, 32, 8) for rail in range(8)]
        run = run_collectives(generate_topology(name), groups, "ALLGATHER", 1 << 22, FlowRules())
        details[name, len(ranks)] = run.report.detail
    assert list(details.values()) == ["shares", "all", "outer"]


def test_too_many_packets_stay_shares() -> None:
    traffic = FlowTraffic(generate_topology("dcn:32:npa=8:psn=2"), FlowRules())
    start_collective(traffic, range(0, 32, 8), "ALLREDUCE", 1 << 34, lambda _: None)
    start_collective(traffic, range(1, 32, 8), "ALLREDUCE", 1 << 34, lambda _: None)
    traffic.run()
    assert traffic.is_coupled
    assert finer_rules(traffic) is None


def flows_of(simulated: SimulatedRun) -> tuple[object, ...]:
    """What the engine and its flows have found: times of ops, ends of flows, and ports."""
    report = simulated.simulation.flow_report
    assert report is not None
    assert report.log is not None
    times = simulated.simulation.timeline.times
    return times.start, times.end, report.log.end_ns, report.log.label, report.ports, report.detail


@pytest.mark.parametrize("congestion", ["none", "dcqcn"])
def test_what_runs_ahead_is_what_runs_instant_by_instant(
    congestion: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Gradients of one group are reduced while ranks compute, and begin to reduce those of another.
    rows = [
        Row(f"layer_{index}", Cell(900), Cell(40_000), Cell(800, "ALLREDUCE", group, 1 << 19))
        for index, group in enumerate(("dp", "dp_ep") * 2)
    ]
    workload = make_workload(rows, tp=8, ep=2, pp=1, all_gpus=32)
    options = {"network": "flows", "cluster": "dcn:32:npa=8:psn=2", "congestion": congestion}
    ahead = flows_of(run(workload, **options))
    assert ahead[-1] == "outer"
    monkeypatch.setattr(FlowsInFlight, "run_ahead", lambda *_: 0)
    assert flows_of(run(workload, **options)) == ahead
