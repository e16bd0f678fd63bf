"""Flows on links, to the ns: by hand, and what is conserved whatever runs."""

from __future__ import annotations

import random

import pytest

from simcore.diagnostics import UsageError
from simcore.flows.alone import like_groups, run_collectives
from simcore.flows.collectives import make_rings
from simcore.flows.routes import Router
from simcore.flows.traffic import FlowRules, FlowTraffic
from simcore.topology import Link, PacketRules, Topology, generate_topology

PLAIN = FlowRules("plain", 0, "seeded")
# Three GPUs, each a server, on one switch: 80 Gb/s are 10 bytes a ns.
STAR = Topology("star", 3, 1, (), (3,), tuple(Link(gpu, 3, 80.0, 100.0) for gpu in range(3)))


def ends_of(traffic: FlowTraffic, *sends: tuple[int, int, int, int]) -> dict[int, int]:
    """When each send (delay, source, target, bytes) has arrived."""
    ends: dict[int, int] = {}
    for index, (delay, source, target, size) in enumerate(sends):
        traffic.send(delay, source, target, size, ends.__setitem__, index)
    traffic.run()
    return ends


def test_one_flow_takes_its_bytes_and_two_links() -> None:
    assert ends_of(FlowTraffic(STAR, PLAIN), (50, 0, 1, 10_000)) == {0: 50 + 1000 + 200}


def test_two_flows_on_one_link_share_it_and_the_longer_one_then_has_it_alone() -> None:
    # Both at 5 bytes a ns until 10,000 bytes of each are through at 2000; then 10,000 more at 10.
    ends = ends_of(FlowTraffic(STAR, PLAIN), (0, 0, 2, 10_000), (0, 1, 2, 20_000))
    assert ends == {0: 2000 + 200, 1: 3000 + 200}


def test_a_flow_that_comes_later_slows_the_first() -> None:
    # 5000 bytes alone until 500, then half: 5000 more take until 1500; the second has 5000 left then.
    ends = ends_of(FlowTraffic(STAR, PLAIN), (0, 0, 2, 10_000), (500, 1, 2, 10_000))
    assert ends == {0: 1500 + 200, 1: 2000 + 200}


def test_directions_of_a_link_do_not_share() -> None:
    assert ends_of(FlowTraffic(STAR, PLAIN), (0, 0, 1, 10_000), (0, 1, 0, 10_000)) == {0: 1200, 1: 1200}


def test_ports_count_bytes_and_flows() -> None:
    traffic = FlowTraffic(STAR, PLAIN)
    ends_of(traffic, (0, 0, 2, 10_000), (0, 1, 2, 20_000))
    port = next(port for port in traffic.port_uses() if (port.source, port.target) == (3, 2))
    assert (port.bytes, port.flows, port.busy_ns, port.most_flows) == (30_000, 2, 3000, 2)
    assert port.mean_flows == pytest.approx((2 * 2000 + 1 * 1000) / 3000)
    # Alone, the second flow fills the port of its GPU and this one.
    assert port.full_ns == 3000


def test_a_port_behind_a_full_port_of_a_gpu_has_no_queue_in_ns3_and_is_not_full() -> None:
    traffic = FlowTraffic(STAR, FlowRules())
    ends_of(traffic, (0, 0, 2, 10_000))
    assert [port.full_ns > 0 for port in traffic.port_uses() if port.bytes] == [True, False]


def test_ports_that_are_full_together_are_all_full() -> None:
    # Two GPUs of one switch send to two of another over a link up and one down, each half as fast.
    ends = [(0, 4, 80), (1, 4, 80), (2, 6, 80), (3, 6, 80), (4, 5, 80), (5, 6, 80)]
    links = tuple(Link(*end, 100.0) for end in ends)
    traffic = FlowTraffic(Topology("tree", 4, 1, (), (4, 5, 6), links), FlowRules())
    ends_of(traffic, (0, 0, 2, 1_000_000), (0, 1, 3, 1_000_000))
    full = {(port.source, port.target): port.full_ns for port in traffic.port_uses()}
    assert full[4, 5] == full[5, 6] > 0 == full[0, 4]


def test_no_path_is_refused() -> None:
    lonely = Topology("lonely", 3, 1, (), (3,), STAR.links[:2])
    with pytest.raises(UsageError):
        ends_of(FlowTraffic(lonely, PLAIN), (0, 0, 2, 1))


@pytest.mark.parametrize(
    "name", ["spectrum-x:16:psn=4", "dcn:16:npa=8:psn=2", "hpn:16:npa=1:psn=4", "fat-tree:4"]
)
@pytest.mark.parametrize("collective", ["ALLREDUCE", "ALLGATHER", "REDUCESCATTER", "ALLTOALL"])
def test_what_ranks_send_is_what_they_get(name: str, collective: str) -> None:
    topology = generate_topology(name)
    run = run_collectives(topology, [list(range(topology.gpus))], collective, 1 << 20, FlowRules())
    sent, got = 0, 0
    rates = {}
    for port in run.report.ports:
        sent += port.bytes * (port.source < topology.gpus)
        got += port.bytes * (port.target < topology.gpus)
        rates[port.source, port.target] = port.bytes * 8 / max(port.busy_ns, 1) / port.gbps
    assert sent == got > 0
    assert max(rates.values()) <= 1.0


def test_faster_links_never_make_a_symmetric_collective_slower() -> None:
    times = [
        run_collectives(
            generate_topology(f"spectrum-x:32:psn=8:bw={rate}"),
            [range(0, 32, 8)],
            "ALLREDUCE",
            1 << 24,
            FlowRules(),
        ).ends[0]
        for rate in (100, 200, 400)
    ]
    assert times == sorted(times, reverse=True)


def test_rings_visit_the_ranks_of_each_server_rotated() -> None:
    assert make_rings([0, 1, 8, 9], 8) == [[0, 1, 8, 9], [1, 0, 9, 8]]
    assert make_rings([0, 8, 16], 8) == [[0, 8, 16]]


def test_groups_like_one_are_moved_over_the_cluster() -> None:
    assert like_groups(8, [0, 4]) == [[0, 4], [1, 5], [2, 6], [3, 7]]


def test_windows_are_those_of_simai() -> None:
    windows = {
        "spectrum-x:8:psn=8": 54000, "spectrum-x:16:psn=8": 236000, "dcn:16:psn=4": 118000,
        "hpn:32:psn=8": 127000, "dcn:32:npa=8:psn=4:dt": 127000,
    }  # fmt: skip
    for name, size in windows.items():
        assert Router(generate_topology(name)).window_bytes(PacketRules()) == size


def test_same_rails_meet_on_one_switch_and_others_go_over_two_tiers() -> None:
    router = Router(generate_topology("spectrum-x:32:psn=8"))
    lengths = {}
    for target in (1, 8, 9):
        route = router.route(0, target)
        assert route is not None
        lengths[target] = len(route.links)
    assert lengths == {1: 2, 8: 2, 9: 4}


def test_a_switch_whose_queue_grows_beyond_its_threshold_is_named() -> None:
    topology = generate_topology("spectrum-x:32:psn=1")
    group = [list(range(rail, 32, 8)) for rail in range(8)]
    assert run_collectives(topology, group, "ALLTOALL", 1 << 24, FlowRules()).report.marked_ports() == []
    whole = run_collectives(topology, [range(32)], "ALLTOALL", 1 << 24, FlowRules())
    assert whole.report.marked_ports()
    quiet = FlowRules(packets=PacketRules(control=0))
    assert run_collectives(topology, [range(32)], "ALLTOALL", 1 << 24, quiet).report.marked_ports() == []


def test_ends_that_are_taken_together_move_the_end_by_less_than_a_percent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topology = generate_topology("dcn:32:npa=8:psn=4")
    fast = run_collectives(topology, [range(32)], "ALLTOALL", 1 << 24, FlowRules()).ends[0]
    monkeypatch.setattr("simcore.flows.traffic._MANY_BUNDLES", 1 << 30)
    exact = run_collectives(topology, [range(32)], "ALLTOALL", 1 << 24, FlowRules()).ends[0]
    assert fast == pytest.approx(exact, rel=0.01)


def naive_ends(rates: list[float], sends: list[tuple[int, int, int, int]]) -> list[float]:
    """When each send is over on a star with links of these bytes a ns: rates by raising all together, from
    event to event.
    """
    left = [float(size) for *_, size in sends]
    ends = [0.0] * len(sends)
    now, over = 0.0, set[int]()
    while len(over) < len(sends):
        moving = [i for i, (start, *_) in enumerate(sends) if start <= now and i not in over]
        links = {i: (("out", sends[i][1]), ("in", sends[i][2])) for i in moving}
        speed = dict.fromkeys(moving, 0.0)
        rising = set(moving)
        while rising:
            room = {
                link: (rates[link[1]] - sum(speed[i] for i in moving if link in links[i]))
                / max(sum(link in links[i] for i in rising), 1)
                for i in rising for link in links[i]
            }  # fmt: skip
            step = min(room.values())
            for i in rising:
                speed[i] += step
            full = {link for link, value in room.items() if value <= step * (1 + 1e-9)}
            rising = {i for i in rising if not full & set(links[i])}
        coming = [start - now for start, *_ in sends if start > now]
        step = min([left[i] / speed[i] for i in moving] + coming)
        now += step
        for i in moving:
            left[i] -= speed[i] * step
            if left[i] < 1e-6:
                over.add(i)
                ends[i] = now
    return ends


@pytest.mark.parametrize("seed", range(40))
def test_flows_end_when_a_slow_program_says(seed: int) -> None:
    chance = random.Random(seed)
    gpus = chance.randint(2, 6)
    rates = [chance.choice([2.0, 5.0, 10.0]) for _ in range(gpus)]
    star = Topology(
        "star", gpus, 1, (), (gpus,), tuple(Link(gpu, gpus, 8 * rate, 0.0) for gpu, rate in enumerate(rates))
    )
    sends = []
    for _ in range(chance.randint(1, 12)):
        source, target = chance.sample(range(gpus), 2)
        sends.append((chance.randrange(5) * 700, source, target, chance.randint(1, 50) * 100))
    ends = ends_of(FlowTraffic(star, PLAIN), *sends)
    expected = naive_ends(rates, sends)
    assert [ends[index] for index in range(len(sends))] == pytest.approx(expected, abs=len(sends) + 1)


@pytest.mark.parametrize("seed", range(20))
def test_flows_take_half_as_long_on_links_of_twice_the_rate(seed: int) -> None:
    chance = random.Random(seed)
    sends = [
        (0, *chance.sample(range(3), 2), chance.randint(1, 50) * 1000) for _ in range(chance.randint(1, 8))
    ]
    fast = Topology("fast", 3, 1, (), (3,), tuple(Link(gpu, 3, 160.0, 100.0) for gpu in range(3)))
    slow_ends, fast_ends = (ends_of(FlowTraffic(topology, PLAIN), *sends) for topology in (STAR, fast))
    for index, end in slow_ends.items():
        assert 2 * (fast_ends[index] - 200) == pytest.approx(end - 200, abs=2 * len(sends) + 2)
