"""Bytes and port time by dimension, and busy streams: held against sums made another way.

Planted, one at a time: phases of a collective after its second left out of `collective_loads`; its chunks
counted as one; overlap with compute counted twice. The first two fell to
`test_bytes_are_those_that_every_rank_sends`, the third to
`test_streams_agree_with_the_accounts_and_the_communication_of_a_rank`. Spans of a queue that run at once
summed one by one, by stream or in all: `test_communication_is_the_union_of_its_spans_also_where_...`.
"""

from collections import defaultdict
from itertools import pairwise
from math import prod
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.analysis.dimensions import compute_class_use, compute_dimension_use
from simcore.cluster import Cluster, Dimension, group_shape
from simcore.collectives.phases import chunk_bytes, collective_loads
from simcore.parameters import Parameters
from simcore.program.ops import COMPUTE, RECEIVING, STREAMS
from simcore.render.report.pages import run_json, run_page
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import simulate
from simcore.workload import open_workload
from tests.analysis.booking import pair_ns, run
from tests.collectives.every_rank import EveryRank
from tests.engine.policy_cases import PolicyCase, policy_cases
from tests.strategies import Case, Cell, Row, cases, layer
from tests.workload.texts import read

SEED_001 = "fixtures/001_moe_128npu_with_mistakes.txt"
SEED_002 = "fixtures/002_gpt_1024npu.txt"


class Counting(EveryRank):
    """Every rank's messages, counted by the dimension in which their ends differ."""

    def __init__(self, *words: Any) -> None:
        super().__init__(*words)
        self.sent: dict[tuple[int, int], int] = defaultdict(int)

    def message_ns(self, rank: int, other: int, size: int, index: int) -> int:
        here, there = self.cluster.coordinates(rank), self.cluster.coordinates(other)
        (dimension,) = [d for d, (a, b) in enumerate(zip(here, there, strict=True)) if a != b]
        self.sent[rank, dimension] += size
        return super().message_ns(rank, other, size, index)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["ring", "fully-connected", "switch"]), st.sampled_from([2, 4])),
        min_size=1,
        max_size=2,
    ),
    st.sampled_from(["ALLREDUCE", "ALLGATHER", "REDUCESCATTER"]),
    st.sampled_from(["ring", "direct", "halving-doubling", "double-binary-tree"]),
    st.integers(1, 5000).map(lambda size: size * 16),
    st.integers(1, 3),
)
def test_bytes_are_those_that_every_rank_sends(
    kinds: list[tuple[Any, int]], collective: str, algorithm: str, size: int, splits: int
) -> None:
    """The rank that sends most on a dimension, counted message by message."""
    dims = tuple(Dimension(kind, members, 7.0, 3.0) for kind, members in kinds)
    cluster = Cluster(dims, (algorithm,) * len(dims), splits=splits)
    shape = group_shape(cluster, range(cluster.npus))
    chunks, one = chunk_bytes(cluster, shape, collective, size)
    counting = Counting(cluster, collective, one, chunks)
    counting.run()
    loads = collective_loads(cluster, shape, collective, size)
    for dimension in range(len(dims)):
        most = max(counting.sent[rank, dimension] for rank in range(cluster.npus))
        if algorithm == "double-binary-tree" and dims[dimension].size > 2:
            # Two trees take turns: an inner member of one is a leaf of the other.
            assert most <= loads[dimension].bytes
        else:
            assert loads[dimension].bytes == most


@pytest.mark.parametrize("members", [2, 3, 4, 8])
def test_a_collective_sends_what_bus_bandwidth_counts(members: int) -> None:
    """nccl-tests: (n-1)/n of the buffer, twice that for an all-reduce."""
    for kind in ("ring", "fully-connected", "switch"):
        cluster = Cluster((Dimension(kind, members, 10.0, 5.0),), (None,))
        shape = group_shape(cluster, range(members))
        size = members * 1000
        for collective, times in (("ALLGATHER", 1), ("REDUCESCATTER", 1), ("ALLREDUCE", 2)):
            load = collective_loads(cluster, shape, collective, size)[0]
            assert load.bytes == times * size * (members - 1) // members


@settings(max_examples=40)
@given(cases())
def test_dimensions_sum_over_ranks_as_the_ops_do(case: Case) -> None:
    """Folded, and rank by rank: what all ranks send is the same."""
    folded = compute_dimension_use(simulate(*case))
    every = simulate(case.workload, case.parameters.with_value("no_fold", True))
    world = every.layout.world
    for one, plain in zip(folded, compute_dimension_use(every), strict=True):
        assert (one.bytes, one.mean_bytes, one.busy_ns, one.mean_busy_ns) == (
            plain.bytes,
            plain.mean_bytes,
            plain.busy_ns,
            plain.mean_busy_ns,
        )
        by_rank = [
            sum(
                load.bytes
                for (index, _), load in compute_class_use(every, number).items()
                if index == one.index
            )
            for number in range(world)
        ]
        assert max(by_rank) == one.bytes
        assert round(sum(by_rank) / world) == one.mean_bytes
        assert sum(use.bytes for use in one.by_kind.values()) == one.bytes
        assert sum(use.busy_ns for use in one.by_kind.values()) == one.busy_ns


@settings(max_examples=60)
@given(cases())
def test_streams_agree_with_the_accounts_and_the_communication_of_a_rank(case: Case) -> None:
    simulation = simulate(*case)
    results = SimulatedRun(simulation)
    for number, (accounts, (streams, comm, overlapped)) in enumerate(
        zip(results.accounts, results.figures.streams, strict=True)
    ):
        ops, start, end = simulation.timeline.columns(number)
        by_stream = {use.stream: use for use in streams}
        assert by_stream["compute"].busy_ns == accounts.busy_ns
        exposed: dict[str, int] = defaultdict(int)
        for use in streams:
            exposed[use.kind] += use.exposed_ns
            assert use.stream == "compute" or use.overlapped_ns + use.exposed_ns <= use.busy_ns
        assert {kind: ns for kind, ns in exposed.items() if ns} == {
            kind: ns for kind, ns in accounts.exposed_ns().items() if ns
        }
        others = [use for use in streams if use.stream != "compute"]
        assert max((use.busy_ns for use in others), default=0) <= comm <= sum(use.busy_ns for use in others)
        assert max((use.overlapped_ns for use in others), default=0) <= overlapped
        assert overlapped <= sum(use.overlapped_ns for use in others)
        sent = sum(end[op] - start[op] for op, stream in enumerate(ops.stream) if stream != COMPUTE)
        assert sent == sum(use.busy_ns for use in others if "<" not in use.stream)


def opened(case: PolicyCase) -> Case:
    """The same with its text read."""
    return Case(read(case.text), case.parameters)


def union_ns(spans: list[tuple[int, int]]) -> int:
    """The ns in which at least one of them runs, counted between the edges of all."""
    edges = sorted({edge for span in spans for edge in span})
    return sum(
        over - begin
        for begin, over in pairwise(edges)
        if any(first <= begin and over <= last for first, last in spans)
    )


@settings(max_examples=60)
@given(cases() | policy_cases().map(opened) | policy_cases(faults=True).map(opened))
def test_communication_is_the_union_of_its_spans_also_where_several_run_at_once(
    case: Case,
) -> None:
    simulation = simulate(*case)
    results = SimulatedRun(simulation)
    timeline = simulation.timeline
    for number, (streams, comm, overlapped) in enumerate(results.figures.streams):
        ops, start, end = timeline.columns(number)
        spans: dict[str, list[tuple[int, int]]] = defaultdict(list)
        beside = []
        for op, stream in enumerate(ops.stream):
            spans[STREAMS[stream]].append((start[op], end[op]))
            if stream != COMPUTE and not ops.blocking[op]:
                beside.append((start[op], end[op]))
        for arrival in timeline.arrivals(number):
            times = timeline.transfer_times(number, arrival.message)
            stream = timeline.stage_program(arrival.sender).ops.stream[arrival.op]
            spans[RECEIVING[stream]].append(times)
            beside.append(times)
        for use in streams:
            assert use.busy_ns == union_ns(spans[use.stream])
        computed = spans.pop("compute", [])
        assert comm == union_ns([one for of_stream in spans.values() for one in of_stream])
        assert overlapped == union_ns(beside) + union_ns(computed) - union_ns(beside + computed)


def test_a_transfer_is_seen_by_the_sender_and_by_the_receiver() -> None:
    """The last stage's join at the end waits for its gradient to be sent."""
    simulation = run([layer("embedding_layer", 100)], {"pp": 2, "pp_comm": 50}, schedule="1f1b")
    first, last = (used.streams for used in SimulatedRun(simulation).figures.streams)
    assert [(use.stream, use.busy_ns, use.exposed_ns) for use in first] == [
        ("compute", 100, 0), ("pp>next", 60, 0), ("pp<next", 60, 60)
    ]  # fmt: skip
    assert [(use.stream, use.busy_ns, use.exposed_ns) for use in last] == [
        ("compute", 100, 0), ("pp>prev", 60, 60), ("pp<prev", 60, 60)
    ]  # fmt: skip


def test_port_time_follows_a_slow_port_and_the_scale() -> None:
    rows = [Row("mlp", Cell(10, "ALLREDUCE", "tp", 1000))]
    (plain,) = compute_dimension_use(run(rows, {"tp": 2}))
    (slow,) = compute_dimension_use(run(rows, {"tp": 2}, slow_link=("0:1=0.5",)))
    (scaled,) = compute_dimension_use(run(rows, {"tp": 2}, comm_scale=3.0))
    assert (plain.bytes, plain.busy_ns) == (1000, 1000)
    assert (slow.bytes, slow.busy_ns) == (1000, 2000)
    assert (scaled.bytes, scaled.busy_ns) == (1000, 3000)


def test_port_time_is_that_of_the_collectives_with_a_time_scale() -> None:
    """`busy 123.4 ms` stood over dp collectives that took 10 % less time than before, as before."""
    rows = [Row("mlp_1", Cell(10, "ALLREDUCE", "tp", 1000)), Row("norm", Cell(10, "ALLREDUCE", "tp", 400))]
    for scales, busy in (
        ((), 1400), (("stream tp=0.5",), 700), (("layer mlp=0.5",), 900), (("compute fwd=0.5",), 1400),
        (("layer mlp=0.5", "stream tp=0.1"), 90), (("stream tp=0",), 0),
    ):  # fmt: skip
        (use,) = compute_dimension_use(run(rows, {"tp": 2}, time_scale=scales))
        assert (use.bytes, use.busy_ns) == (1400, busy)
    stages = [layer("embedding_layer", 10), layer("mlp", 10)]
    scaled = run(stages, {"pp": 2, "pp_comm": 60}, schedule="1f1b", time_scale=("stream pp=0.5",))
    plain = run(stages, {"pp": 2, "pp_comm": 60}, schedule="1f1b")
    assert 0 < 2 * compute_dimension_use(scaled)[0].busy_ns == compute_dimension_use(plain)[0].busy_ns


def test_shared_has_the_same_bytes_and_simais_networks_have_no_dimensions() -> None:
    workload = open_workload(SEED_002)
    plain, shared = (
        SimulatedRun(simulate(workload, Parameters(network=name, pp=4, microbatches=4)))
        for name in ("analytical", "shared")
    )
    assert [use.bytes for use in plain.dimensions] == [use.bytes for use in shared.dimensions]
    simai = SimulatedRun(simulate(open_workload(SEED_001), Parameters(network="simai-auto")))
    assert (simai.dimensions, run_json(simai)["dimensions"]) == ([], [])
    assert run_json(simai)["worst_link"] is None
    assert "over each dimension" in run_page(plain)
    assert "over each dimension" not in run_page(simai)


def test_bytes_of_seed_002_are_those_of_its_rows() -> None:
    """dp: a reduce-scatter and an all-gather over 8 servers, 7/8 of a buffer; pp: 16 activations each way."""
    results = SimulatedRun(simulate(open_workload(SEED_002), Parameters()))
    cells = results.simulation.workload.wg
    buffers = [size for group, size in zip(cells.group, cells.bytes, strict=True) if group == "dp" and size]
    outer = results.dimensions[1]
    assert outer.by_kind["dp"].bytes == sum(size // 8 * 7 for size in buffers)
    assert outer.by_kind["pp"].bytes == 2 * 16 * 16_777_216
    assert prod([len(results.dimensions), len(buffers)]) == 4


def test_what_takes_no_time_is_sent() -> None:
    # 10 B at 1000 B a ns, no latency: 0 ns, at 100 ns and at the end of the step.
    rows = [Row("a", Cell(100, "ALLREDUCE", "tp", 10)), Row("b", Cell(100, "ALLREDUCE", "tp", 10))]
    simulation = run(rows, {"tp": 2}, dim=("switch:2:1000:0",))
    assert simulation.step_time_ns == 200
    assert compute_class_use(simulation, 0)[0, "tp"].bytes == 20


def test_a_collective_that_is_the_first_op_of_all_has_its_stream() -> None:
    simulation = run([Row("mlp", Cell(0, "ALLREDUCE", "tp", 1000))], {"tp": 2})
    (used,) = SimulatedRun(simulation).figures.streams
    assert [(one.stream, one.busy_ns, one.exposed_ns) for one in used.streams] == [
        ("compute", 0, 0),
        ("tp", pair_ns(1000), pair_ns(1000)),
    ]
