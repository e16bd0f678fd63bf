"""`--network links`: a step's messages on links, first come first served."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.analysis.span_words import explain_duration, find_op_facts
from simcore.chakra import find_set, open_set
from simcore.cluster import ClusterParameters, choose_cluster
from simcore.diagnostics import UsageError
from simcore.executing.execution_result import Execution
from simcore.messages.alone import run_collective
from simcore.messages.network import Busy, LinkHeat
from simcore.parameters import Parameters
from simcore.program.ops import TO_NEXT
from simcore.render.export import FORMATS, Request, save_folder
from simcore.render.report.pages import run_json, run_page
from simcore.runs.executed import run_execution
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import collective_alone_ns, simulate
from simcore.workload import open_workload
from tests.strategies import Cell, Row, make_workload

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"


@settings(max_examples=60)
@given(
    st.sampled_from(["ALLREDUCE", "ALLGATHER", "REDUCESCATTER", "ALLTOALL"]),
    st.integers(1, 500_000),
    st.integers(1, 4),
    st.sampled_from([("ring:8:50:500",), ("switch:4:450:500", "ring:4:20:700"), ("fully-connected:8:9:3",)]),
)
def test_a_collective_that_has_the_links_to_itself_takes_what_it_takes_alone(
    collective: str, size: int, splits: int, dims: tuple[str, ...]
) -> None:
    world = 16 if len(dims) == 2 else 8
    workload = make_workload([Row("mlp", Cell(0, collective, "tp", size))], tp=world, pp=1, all_gpus=world)
    asked = Parameters(network="links", dim=dims, splits=splits)
    if collective == "ALLGATHER" and -(-size // world) < splits:
        # As in ASTRA-sim, which loops without end.
        with pytest.raises(UsageError, match="fewer bytes than preferred-dataset-splits"):
            simulate(workload, asked)
        return
    simulation = simulate(workload, asked)
    cluster = choose_cluster(asked.part(ClusterParameters)).cluster(world)
    alone = max(run_collective(cluster, range(world), collective, size).ends)
    assert simulation.step_time_ns == alone == collective_alone_ns(simulation, collective, "tp", size)


@pytest.mark.parametrize("dims", [("ring:8:50.5:500",), ("switch:4:450:500", "ring:4:20:700"),
                                  ("fully-connected:4:9:3", "switch:2:70:40")])  # fmt: skip
def test_a_transfer_that_has_the_links_to_itself_takes_what_is_said_of_it(dims: tuple[str, ...]) -> None:
    world = 16 if "ring:4:20:700" in dims else 8
    workload = make_workload([Row("mlp", Cell(10))], tp=1, pp=2, all_gpus=world, pp_comm=12_345)
    simulation = simulate(workload, Parameters(network="links", dim=dims, microbatches=1))
    facts = find_op_facts(simulation, 0, next(
        op for op, lane in enumerate(simulation.timeline.columns(0)[0].stream) if lane >= TO_NEXT
    ))  # fmt: skip
    assert facts is not None
    assert facts.end_ns - facts.start_ns == collective_alone_ns(simulation, "", "pp", 12_345)
    words = explain_duration(simulation, facts.class_id, facts.op)
    assert "other traffic" not in words
    assert str(facts.end_ns - facts.start_ns) in words.replace(" ", "").replace("\u202f", "")


def test_messages_of_an_all_reduce_wait_behind_a_transfer_on_the_same_link() -> None:
    """Worked by hand. 4 ranks on one switch of 10 B/ns without latency: a link to it and one from it a rank.

    After 1000 ns forward and 1000 ns backward each rank of stage 1 sends 60 000 B back and begins to reduce
    60 000 B over its two ranks: 2 steps of 30 000 B. A hop of the transfer takes 6000 ns, one of the reduce
    3000. What asks first has the link to the switch; the other waits, and is seen to have queued.
    """
    rows = [Row("mlp", Cell(1000), Cell(1000), Cell(0, "ALLREDUCE", "dp", 60_000))]
    workload = make_workload(rows, tp=1, pp=2, all_gpus=4, pp_comm=60_000)
    asked = Parameters(network="links", microbatches=1, dim=("switch:4:10:0",), endpoint_delay=0,
                       algorithm=("0=ring",), local_mem_bw=1e9)  # fmt: skip
    simulation = simulate(workload, asked)
    # The transfer forth: 2 hops. Then stage 1 computes twice.
    begun = 1000 + 12_000 + 2000
    timeline = simulation.timeline
    ends: dict[str, int] = {}
    for rank in (2, 3):
        ops, start, end = timeline.columns(rank)
        for op, lane in enumerate(ops.stream):
            if lane and start[op] == begun:
                ends["transfer" if ops.message[op] >= 0 else "reduce"] = end[op] - begun
    assert ends in (
        # The transfer first: the reduce's messages begin 6000 later, and its second ones wait for no one.
        {"transfer": 12_000, "reduce": 18_000},
        # The reduce first: the transfer waits 3000, and the second messages wait for it to go.
        {"transfer": 15_000, "reduce": 18_000},
    )
    assert simulation.links is not None
    waited = sum(one.queued_ns for one in simulation.links)
    assert waited == (2 * 6000 if ends["transfer"] == 12_000 else 2 * (3000 + 3000))


@pytest.mark.parametrize("asked", [
    {"dim": ("ring:8:50:500",), "schedule": "1f1b"},
    {"dim": ("switch:4:450:500", "switch:2:50:1000"), "overlap_grad_reduce": True},
    {"dim": ("fully-connected:4:90:100", "ring:4:20:700"), "schedule": "gpipe", "splits": 2},
])  # fmt: skip
def test_a_workload_and_what_is_exported_of_it_take_the_same_on_links(
    asked: dict[str, Any], tmp_path: Path
) -> None:
    """Two engines over one set of links: that of workloads and that of execution traces."""
    world = 16 if "ring:4:20:700" in asked["dim"] else 8
    rows = [Row("mlp", Cell(5000, "ALLREDUCE", "tp", 8000), Cell(4000, "ALLGATHER", "tp", 64_000),
                Cell(3000, "REDUCESCATTER", "dp", 90_000)) for _ in range(4)]  # fmt: skip
    workload = make_workload(rows, tp=2, pp=2, all_gpus=world, pp_comm=30_000)
    parameters = Parameters(network="links", microbatches=3, **asked)
    simulated = SimulatedRun(simulate(workload, parameters))
    chosen = next(one for one in FORMATS if one.name == "chakra")
    export = chosen.build_export(Request(workload, parameters))
    assert export.files is not None
    folder = tmp_path / "out"
    save_folder(str(folder), export.files, False)
    found = find_set(str(folder))
    assert found is not None
    groups = str(folder / "comm_group.json")
    again = Parameters(network="links", dim=asked["dim"], splits=asked.get("splits"), comm_groups=groups)
    read = run_execution(Execution(open_set(found), again))
    assert read.step_time_ns == simulated.step_time_ns
    assert read.network.links is not None
    assert simulated.links is not None
    assert sum(one.bytes for one in read.network.links) == sum(one.bytes for one in simulated.links)


def test_the_page_and_the_json_have_every_link() -> None:
    path = str(FIXTURES / "003_gpt2_large_op_table.txt")
    run = SimulatedRun(simulate(open_workload(path), Parameters(network="links")))
    text = run_page(run)
    assert "What 16 links carried" in text
    assert "rank 7 to the switch" in text
    listed = json.loads(json.dumps(run_json(run)))["links"]
    assert len(listed) == 16
    assert set(listed[0]) == {"dimension", "source", "target", "messages", "bytes", "busy_ns", "queued_ns"}
    closed = SimulatedRun(simulate(open_workload(path), Parameters()))
    assert "links" not in run_json(closed)
    assert "carried" not in run_page(closed)


@pytest.mark.slow
def test_a_step_of_too_many_messages_is_refused_with_their_number() -> None:
    path = str(FIXTURES / "002_gpt_1024npu.txt")
    with pytest.raises(UsageError, match=r"about \d{8} messages over links, some \d+ s: at most 20000000"):
        simulate(open_workload(path), Parameters(network="links", microbatches=8))


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"comm_scale": 0.5}, "--comm-scale"),
        ({"jitter": 0.1}, "--jitter"),
        ({"slow_link": ("0:3=0.5",)}, "--slow-link"),
        ({"dim": ("ring:2:50:500", "switch:4:9:9")}, "a ring of 2"),
    ],
)
def test_what_links_do_not_have_is_refused(asked: dict[str, Any], said: str) -> None:
    path = str(FIXTURES / "003_gpt2_large_op_table.txt")
    with pytest.raises(UsageError, match=said):
        simulate(open_workload(path), Parameters(network="links", **asked))


@given(st.lists(st.tuples(st.integers(0, 200_000), st.integers(0, 60_000)), min_size=1, max_size=40))
def test_the_heat_of_links_holds_all_of_their_busy_time(messages: list[tuple[int, int]]) -> None:
    """However often its stretches had to become wider; and no stretch has more than the messages in it."""
    busy = Busy()
    for begin, length in messages:
        busy.add(begin, length)
    heat = LinkHeat(busy.width, busy.bins, len(messages))
    assert sum(heat.busy_ns) == sum(length for _, length in messages)
    end = max(begin + length for begin, length in messages) + 1
    edges = [end * column // 7 for column in range(8)]
    shares = heat.shares(edges)
    for first, last, share in zip(edges, edges[1:], shares, strict=False):
        exact = sum(max(min(begin + length, last) - max(begin, first), 0) for begin, length in messages)
        room = max(last - first, 1) * len(messages)
        # The stretches at the two ends are taken as evenly filled.
        assert abs(share * room - exact) <= 2 * busy.width * len(messages) + 1


def test_the_links_of_a_run_are_as_busy_as_the_heat_says() -> None:
    path = str(FIXTURES / "003_gpt2_large_op_table.txt")
    run = SimulatedRun(simulate(open_workload(path), Parameters(network="links")))
    assert run.links is not None
    assert run.link_heat is not None
    assert sum(run.link_heat.busy_ns) == sum(one.busy_ns for one in run.links)
    assert run.link_heat.links == len(run.links)
    assert max(run.link_heat.shares([0, run.step_time_ns])) < 0.1
