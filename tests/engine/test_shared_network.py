"""A step on the `shared` network: the rules of the engine hold, and every end is the ports' doing.

Seen to fail on these bugs, planted one at a time: a second transfer of a channel that starts
beside the first; an actor that runs ahead over its collectives.
"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from simcore.analysis.span_words import explain_duration, find_op_facts
from simcore.engine.pricing import Prices
from simcore.engine.running import jitter_of
from simcore.networks import Sharing
from simcore.parameters import Parameters
from simcore.program.ops import COMPUTE, TO_NEXT
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import Simulation, collective_alone_ns, simulate
from simcore.workload import open_workload
from tests.engine.reference_simulator import Reference, reference_of
from tests.engine.test_folding import SEED_002
from tests.engine.test_folding_with_overrides import overridden
from tests.says import figures
from tests.sharing.naive_sharing import Sent, naive_ends
from tests.strategies import Case, Cell, Row, make_workload


def shared_run(case: Case) -> Simulation:
    """Every rank simulated, one chunk a collective: what the naive simulations know."""
    changes = {"network": "shared", "no_fold": True, "splits": 1}
    return simulate(case.workload, structs.replace(case.parameters, **changes))  # type: ignore[arg-type]


def rerun(simulation: Simulation) -> Reference:
    """The naive simulation of every rank, its communication as long as it was on the ports."""
    times = simulation.timeline.times
    spans = [
        [end - start for start, end in zip(starts, ends, strict=True)]
        for starts, ends in zip(times.start, times.end, strict=True)
    ]
    return reference_of(simulation, spans)


@settings(max_examples=150)
@given(overridden())
def test_everything_starts_when_the_rules_of_the_engine_let_it(case: Case) -> None:
    simulation = shared_run(case)
    reference = rerun(simulation)
    for rank, times in enumerate(reference.times):
        assert list(simulation.timeline.times.start[rank]) == times.start
        assert simulation.timeline.times.finish[rank] == times.finish


@settings(max_examples=150)
@given(overridden())
def test_every_transmission_ends_when_naively_shared_ports_let_it(case: Case) -> None:
    """Within 1 ns a phase of the run: floats may round a half to its other side."""
    simulation = shared_run(case)
    network, timeline = simulation.network, simulation.timeline
    assert isinstance(network, Sharing)
    overrides = simulation.setup.overrides
    jitter = jitter_of(overrides)
    prices = Prices(network, overrides.compute_scale, overrides.comm_scale, jitter)
    transmission = prices.transmissions(simulation.program, timeline.folding, network)
    reference = rerun(simulation)
    sent, found, phases = [], [], 0
    for rank in range(simulation.layout.world):
        ops, start, end = timeline.columns(rank)
        for op, lane in enumerate(ops.stream):
            if lane == COMPUTE:
                continue
            moved = transmission(rank, op)
            if lane >= TO_NEXT:
                step = simulation.program.costs[ops.cost[op]].step  # type: ignore[union-attr]
                receivers = (reference.at_stage(rank, reference.stage[rank] + step),)
                sent.append(Sent(start[op], moved, (rank,), receivers, lane))
            elif rank == min(members := [one for one, _ in reference.members(rank, op)]):
                sent.append(Sent(start[op], moved, tuple(members), tuple(members), lane))
            else:
                continue
            found.append(end[op])
            phases += len(moved.flows)
    capacities = [network.capacities(one.ports) for one in timeline.classes]
    for end_ns, expected in zip(found, naive_ends(sent, capacities), strict=True):
        assert abs(end_ns - expected) <= phases


@settings(max_examples=150)
@given(
    st.sampled_from(["ALLREDUCE", "ALLGATHER", "REDUCESCATTER", "ALLTOALL"]),
    st.integers(1, 500_000),
    st.integers(1, 64),
    st.integers(1, 4),
    st.sampled_from([("ring:8:50:500",), ("switch:4:450:500", "ring:2:20:700"), ("fully-connected:8:9:3",)]),
    st.floats(0.01, 10),
)
def test_a_collective_that_has_the_ports_to_itself_takes_what_it_takes_alone(
    collective: str, size: int, splits: int, active: int, dims: tuple[str, ...], scale: float
) -> None:
    """Whatever the scale, and with several chunks: the layer table, the details and the run are one."""
    workload = make_workload([Row("mlp", Cell(0, collective, "tp", size))], tp=8, pp=1, all_gpus=8)
    simulation = simulate(workload, Parameters(
        network="shared", dim=dims, splits=splits, active_chunks=active, comm_scale=scale
    ))  # fmt: skip
    facts = find_op_facts(simulation, 0, 0)
    assert facts is not None
    taken = facts.end_ns - facts.start_ns
    assert taken == collective_alone_ns(simulation, collective, "tp", size)
    assert taken == SimulatedRun(simulation).layers[0].cells["fwd"].comm_ns
    assert "other traffic" not in explain_duration(simulation, facts.class_id, facts.op)


def test_a_transfer_beside_a_collective_makes_both_slower() -> None:
    """A gradient all-reduce over dp and the pipeline's last transfer meet at the same ports.

    All 4 ranks hang on one switch of 10 B/ns without latency. Stage 1 sends 60 000 B back, 6000 ns
    alone, at the instant at which it starts to reduce 60 000 B over dp 2, 6000 ns alone too.
    The reduce leaves by both its ports at each rank and comes in by them; the transfer leaves
    stage 1 and comes in at stage 0. Both have half: 12 000 ns.
    """
    rows = [Row("mlp", Cell(1000), Cell(1000), Cell(0, "ALLREDUCE", "dp", 60_000))]
    workload = make_workload(rows, tp=1, pp=2, all_gpus=4, pp_comm=60_000)
    changes = {"dim": ("switch:4:10:0",), "endpoint_delay": 0, "algorithm": ("0=ring",), "local_mem_bw": 1e9}
    runs = {
        network: simulate(workload, Parameters(network=network, microbatches=1, **changes))  # type: ignore[arg-type]
        for network in ("analytical", "shared")
    }
    ends = {}
    for network, run in runs.items():
        last = len(run.timeline.classes) - 1
        spans = [run.timeline.span(last, op) for op in range(len(run.timeline.columns(last)[0]))]
        ends[network] = {span.stream: span.end - span.start for span in spans}
    assert ends["analytical"]["dp"] == ends["analytical"]["pp>prev"] == 6000
    assert ends["shared"]["dp"] == ends["shared"]["pp>prev"] == 12_000
    shared = runs["shared"]
    last = len(shared.timeline.classes) - 1
    said = [find_op_facts(shared, last, op) for op in range(len(shared.timeline.columns(last)[0]))]
    for one in said:
        if one is not None and one.stream != "compute":
            words = explain_duration(shared, one.class_id, one.op)
            assert figures(words)[-1] == "6.000 us"
            assert "other traffic" in words


def test_on_seed_002_nothing_shares_a_port_for_long() -> None:
    """Its tp collectives stay in their servers, its transfers cross them: alone nearly all the time."""
    workload = open_workload(SEED_002)
    alone, shared = (
        simulate(workload, Parameters(network=name, microbatches=4)) for name in ("analytical", "shared")
    )
    assert alone.step_time_ns <= shared.step_time_ns <= alone.step_time_ns * 1.001
    for simulation in (alone, shared):
        assert collective_alone_ns(simulation, "ALLGATHER", "tp", 50331648) == collective_alone_ns(
            alone, "ALLGATHER", "tp", 50331648
        )
