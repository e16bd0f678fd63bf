"""What ports carried over time adds up to what they carried, and says for what."""

from __future__ import annotations

import itertools
from functools import cache

import pytest

from simcore.analysis.span_words import explain_duration
from simcore.program.ops import LANE_OF_STREAM
from simcore.runs.simulated import SimulatedRun
from simcore.trace.ports import STRETCHES, Ports
from tests.strategies import Cell, Row, make_workload
from tests.tui.made_runs import run
from tui.links.frame import congestion_words

_NONE = Cell(0)
# All ranks exchange over two switches of the upper tier; then their gradients are reduced.
ROWS = [
    Row("experts_0", Cell(5000, "ALLTOALL", "ep", 4 << 20), _NONE, _NONE),
    Row("grads", _NONE, _NONE, Cell(2000, "ALLREDUCE", "dp", 1 << 20)),
]


@cache
def shared_run(**parameters: object) -> SimulatedRun:
    """16 GPUs of two servers on two lower and two upper switches."""
    workload = make_workload(ROWS, tp=1, ep=16, pp=1, all_gpus=16)
    return run(workload, **{"network": "flows", "cluster": "dcn:16:npa=8:psn=2"} | parameters)


def ports_of(simulated: SimulatedRun) -> Ports:
    ports = simulated.network.ports
    assert ports is not None
    return ports


def test_the_load_over_time_sums_to_the_bytes() -> None:
    ports = ports_of(shared_run())
    for index in ports.by_heat:
        port = ports.all[index]
        width = ports.step_ns / STRETCHES
        assert sum(ports.load(index)) * width * port.gbps / 8 == pytest.approx(port.bytes, rel=1e-6)


def test_the_flows_at_a_time_are_those_that_the_engine_counted() -> None:
    ports = ports_of(shared_run())
    for index in ports.by_heat:
        busiest = ports.busiest_ns(index)
        assert ports.count_at(index, busiest) == len(ports.sends_at(index, busiest)) == ports.all[index].most
        changes = ports.changes(index)
        assert ports.count_at(index, changes[0] - 1) == ports.count_at(index, changes[-1]) == 0
        area = sum(ports.count_at(index, begin) * (end - begin) for begin, end in itertools.pairwise(changes))
        assert area / ports.all[index].busy_ns == pytest.approx(ports.all[index].mean)


def test_every_byte_has_a_group_and_a_layer() -> None:
    ports = ports_of(shared_run())
    for index in ports.by_heat:
        purposes = ports.purposes(index)
        assert sum(size for _, _, size in purposes) == ports.all[index].bytes
        assert {(group, layer) for group, layer, _ in purposes} <= {("ep", "experts"), ("dp", "grads")}


def test_a_flow_lies_within_the_collective_that_it_is_of() -> None:
    ports = ports_of(shared_run())
    for index in ports.by_heat[:4]:
        for send in ports.sends_at(index, ports.busiest_ns(index)):
            assert send.purpose is not None
            assert send.purpose.start_ns <= send.start_ns < send.end_ns <= send.purpose.end_ns


def test_both_directions_of_a_link_have_the_same_position_in_their_tiers() -> None:
    ports = ports_of(shared_run())
    up, down = (
        next(tier for tier in ports.tiers if tier.name == name) for name in ("asw > psw", "psw > asw")
    )
    assert [index ^ 1 for index in up.ports] == list(down.ports)
    assert [tier.name for tier in ports.tiers] == [
        "gpu > nvsw", "nvsw > gpu", "gpu > asw", "asw > psw", "psw > asw", "asw > gpu",
    ]  # fmt: skip


def test_an_op_that_takes_longer_than_alone_names_the_groups_whose_flows_it_meets() -> None:
    workload = make_workload(ROWS[:1], tp=2, ep=8, pp=1, all_gpus=16)
    simulation = run(workload, network="flows", cluster="dcn:16:npa=8:psn=2").simulation
    ops = simulation.timeline.stage_program(0).ops
    op = next(index for index, lane in enumerate(ops.stream) if LANE_OF_STREAM[lane] == "ep")
    assert "flows of other ep groups" in explain_duration(simulation, 0, op)


def test_what_is_idle_is_there_and_carried_nothing() -> None:
    ports = ports_of(shared_run())
    assert len(ports.all) == 2 * len(shared_run().simulation.cluster.topology.links)  # type: ignore[union-attr]
    assert {index for index, port in enumerate(ports.all) if port.bytes} == set(ports.by_heat)


def test_messages_have_sums_and_no_times() -> None:
    ports = ports_of(run(make_workload(ROWS, tp=1, ep=16, pp=1, all_gpus=16), network="links"))
    assert not ports.has_times
    assert ports.sends_noun == "message"
    links = run(make_workload(ROWS, tp=1, ep=16, pp=1, all_gpus=16), network="links").network.links
    assert sum(port.bytes for port in ports.all) == sum(link.bytes for link in links or ())


def test_links_take_the_place_of_dimensions_among_what_could_be_cheaper() -> None:
    # Few packets: each of some 40 changes is a run of them.
    small = make_workload(
        [Row("experts_0", ROWS[0].fwd._replace(bytes=1 << 18), _NONE, _NONE)], tp=1, ep=16, pp=1, all_gpus=16
    )
    names = [row.name for row in run(small, network="flows", cluster="dcn:16:npa=8:psn=2").what_if()]
    assert "stream ep" in names
    assert not [name for name in names if name.startswith("dimension")]
    on_dimensions = run(make_workload(ROWS, tp=1, ep=16, pp=1, all_gpus=16), network="analytical")
    assert [row.name for row in on_dimensions.what_if() if row.name.startswith("dimension")]


def test_congestion_control_is_tried_where_it_would_slow_flows_down_and_can_be_simulated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def tries(ports: Ports) -> bool:
        return any("congestion" in change.fields for change in ports.changes_of(ports.by_heat[0]))

    marked, slowed = ports_of(shared_run()), ports_of(shared_run(congestion="dcqcn"))
    assert any(port.is_marked for port in marked.all)
    assert (tries(marked), tries(slowed)) == (True, False)
    assert congestion_words(marked, 400).startswith(marked.congestion)
    assert len(congestion_words(marked, 79)) <= 79
    monkeypatch.setattr("simcore.flows.packets.MOST_HOPS", 0)
    assert not tries(marked)
    few = ports_of(shared_run(cluster="dcn:16:npa=8:psn=64"))
    assert bool(few.congestion) == any(port.is_marked for port in few.all)
