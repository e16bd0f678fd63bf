"""ASTRA-sim 1.0's policies: equal to what it measured, to a naive reference, and folded or not.

Seen to fail on these bugs, planted one at a time: priorities counted before they are taken; queues
in order of arrival alone; one queue for both parts of a cut dimension; a last chunk as large as the
others; a collective visible at its end; chunks in the queues with the first member; room that is
told only to the group that leaves it; classes of HYBRID_MODEL_DATA folded by boxes of the other rank
order, or without their slowdown; state changes left out of the accounts; passes without update times.
Room asked of the first member alone fails in `test_a_chunk_is_served_when_all_its_members_have_room`.
"""

from __future__ import annotations

import itertools
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from simcore.parameters import Parameters
from simcore.program.ops import COMPUTE, STREAMS, CollectiveCost
from simcore.render.report.pages import run_json
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import Simulation, collective_alone_ns, simulate
from simcore.sources.simulated import ACCOUNTS, FIRST_EXPOSED, WAIT
from tests.engine.policy_cases import PolicyCase, policy_cases
from tests.engine.reference_policies import Link, Reference, Setting
from tests.engine.test_folding import assert_same_run
from tests.stream_spans import stream_spans
from tests.workload.texts import read

RUNS = json.loads((Path(__file__).parent / "golden_astra1.json").read_text())["runs"]


def run_id(run: dict[str, Any]) -> str:
    return run["label"].replace("\t", " ")


def write_inputs(run: dict[str, Any], folder: Path, as_lines: bool = False) -> Parameters:
    """The run's network and system as the files that ASTRA-sim was given."""
    network, system = folder / "net.json", folder / "system.txt"
    network.write_text(json.dumps(run["net"]))
    lines = "".join(f"{key}: {value}\n" for key, value in run["system"].items())
    system.write_text(lines if as_lines else json.dumps(run["system"]))
    return Parameters(cluster=str(network), system=str(system), passes=run["passes"])


def measured(run: dict[str, Any], parameters: Parameters) -> Simulation:
    return simulate(read(run["workload_text"]), parameters)


def test_the_measured_runs_are_met_to_the_nanosecond(tmp_path: Path) -> None:
    for run in RUNS:
        parameters = write_inputs(run, tmp_path)
        for one in (parameters, structs.replace(parameters, no_fold=True)):
            results = SimulatedRun(measured(run, one))
            assert results.step_time_ns == run["finish_ns"], run_id(run)
            # ASTRA-sim prints no passes of MICRO and of inference.
            assert len(results.pass_end_ns) == run["passes"], run_id(run)
            assert not run["pass_finish_ns"] or results.pass_end_ns == run["pass_finish_ns"], run_id(run)


def test_a_report_has_the_policy_of_its_file(tmp_path: Path) -> None:
    run = RUNS[0]
    report = run_json(SimulatedRun(measured(run, write_inputs(run, tmp_path))))
    assert report["workload"]["format"] == "astra-sim-1"
    assert report["workload"]["policy"] == run["workload_text"].split()[0]
    assert report["pass_end_ns"] == run["pass_finish_ns"]


def test_the_measured_runs_are_all_here() -> None:
    assert len(RUNS) == 35
    assert sum(run["label"].split()[0] in ("syn", "HT", "example") for run in RUNS) == 34
    assert {run["workload_text"].split()[0] for run in RUNS} == {
        "DATA", "MODEL", "HYBRID_DATA_MODEL", "HYBRID_MODEL_DATA", "HYBRID_TRANSFORMER",
        "HYBRID_TRANSFORMER_FWD_IN_BCKWD", "HYBRID_DLRM", "HYBRID_DLRM_ENHANCED", "HYBRID_CUSTOMIZED",
        "MICRO", "DISTRIBUTED_INFERENCE",
    }  # fmt: skip


@pytest.mark.parametrize("run", RUNS[-3:], ids=run_id)
def test_the_system_file_may_be_the_lines_of_version_1(run: dict[str, Any], tmp_path: Path) -> None:
    assert measured(run, write_inputs(run, tmp_path, as_lines=True)).step_time_ns == run["finish_ns"]


@pytest.mark.parametrize("run", RUNS, ids=run_id)
def test_the_reference_meets_the_measured_runs_too(run: dict[str, Any]) -> None:
    net, system = run["net"], run["system"]
    links = [
        Link(kind, size, Fraction(str(speed)) * count / share(kind, size) * 2**30 / 10**9, delay)
        for kind, size, count, delay, speed in zip(
            *[net[key] for key in ("topologies-per-dim", "units-count", "links-count", "link-latency")],
            net["link-bandwidth"],
            strict=True,
        )
    ]
    setting = Setting(
        links,
        system["endpoint-delay"],
        splits=system["preferred-dataset-splits"],
        active=system["active-chunks-per-dimension"],
        passes=run["passes"],
    )
    reference = Reference(run["workload_text"], setting).run()
    assert reference.finish == run["finish_ns"]
    assert not run["pass_finish_ns"] or reference.pass_ends[0] == run["pass_finish_ns"]


def share(kind: str, size: int) -> int:
    return size - 1 if kind == "FullyConnected" else 1


@settings(max_examples=400)
@given(policy_cases() | policy_cases(faults=True))
def test_every_collective_runs_when_the_reference_runs_it(case: PolicyCase) -> None:
    simulation, reference = case.simulated(), case.referred()
    assert simulation.step_time_ns == reference.finish
    ends = [max(times) for times in zip(*reference.pass_ends, strict=True)]
    assert SimulatedRun(simulation).pass_end_ns == ends
    for number, rank_class in enumerate(simulation.timeline.classes):
        ops, start, end = simulation.timeline.columns(number)
        found = [(start[op], end[op]) for op in range(len(ops)) if ops.stream[op] != COMPUTE]
        for rank in (rank_class.ranks.first, list(rank_class.ranks)[-1]):
            rows = [(one.start, one.visible - one.update) for one in reference.mine[rank]]
            assert found == rows


@settings(max_examples=300)
@given(policy_cases() | policy_cases(faults=True), st.sampled_from([0.0, 0.5, 1.0, 1.3]), st.booleans())
def test_a_folded_run_equals_the_run_of_every_rank(case: PolicyCase, scale: float, jitters: bool) -> None:
    parameters = structs.replace(case.parameters, comm_scale=scale, jitter=0.2 if jitters else 0.0)
    case = case._replace(parameters=parameters)
    folded = case.simulated()
    every = case._replace(parameters=structs.replace(parameters, no_fold=True)).simulated()
    assert len(every.timeline.classes) == every.layout.world
    ranks = [rank for rank_class in folded.timeline.classes for rank in rank_class.ranks]
    assert sorted(ranks) == list(range(folded.layout.world))
    assert_same_run(folded, every)
    assert SimulatedRun(folded).pass_end_ns == SimulatedRun(every).pass_end_ns


@settings(max_examples=300)
@given(policy_cases(faults=True))
def test_accounts_cover_the_step_of_every_rank(case: PolicyCase) -> None:
    simulation = case.simulated()
    results = SimulatedRun(simulation)
    for number, accounts in enumerate(results.accounts):
        assert sum(accounts.total_ns) == simulation.step_time_ns
        assert list(accounts.edge) == sorted(set(accounts.edge)) or simulation.step_time_ns == 0
        ops, start, end = simulation.timeline.columns(number)
        compute = [(start[op], end[op]) for op in range(len(ops)) if ops.stream[op] == COMPUTE]
        assert all(one[1] <= other[0] for one, other in itertools.pairwise(compute))
        assert accounts.busy_ns == sum(over - begin for begin, over in compute)
        _, comm_ns, overlapped_ns = results.figures.streams[number]
        assert overlapped_ns <= min(comm_ns, accounts.busy_ns)


ROOM = """HYBRID_CUSTOMIZED
3
l0 -1 0 NONE 0 0 NONE 0 0 NONE 0 0 DATA
l1 -1 0 NONE 0 0 ALLREDUCE 4096 0 NONE 0 0 HYBRID_DATA_MODEL
l2 -1 0 NONE 0 0 NONE 0 100 ALLREDUCE 1 0 DATA
"""


def test_a_chunk_is_served_when_all_its_members_have_room() -> None:
    # Ranks 2 and 3 are on dimension 0 with their own all-reduce of l1 from 105 on; it takes
    # 2 x 4096 + 3 x 10 ns + 3 x 40 ns of reducing. Rank 0 computes 200 ns for l2 and joins the
    # all-reduce of all ranks at 204; 1 ns later it begins l1 with rank 1.
    parameters = Parameters(
        dim=("ring:2:0.5:0", "ring:2:0.5:0"), algorithm=("0=ring", "1=ring"), local_mem_bw=50.0,
        slow_rank=("0=2",),
    )  # fmt: skip
    simulation = simulate(read(ROOM, "room.txt"), parameters)
    timeline = simulation.timeline
    of_rank_2 = timeline.folding.class_of(2)
    (model,), (every,) = stream_spans(timeline, of_rank_2, "tp"), stream_spans(timeline, of_rank_2, "all")
    assert (model.start, model.end) == (105, 105 + 8342)
    (beside,) = stream_spans(timeline, timeline.folding.class_of(0), "tp")
    assert (beside.start, beside.end) == (205, 205 + 8342)
    assert every.start == 205 + 8342


def made(rows: list[str], policy: str = "DATA", **parameters: Any) -> Simulation:
    text = "\n".join([policy, str(len(rows)), *rows]) + "\n"
    defaults = {"dim": ("ring:4:1:0",), "algorithm": ("0=ring",), "endpoint_delay": 0, "local_mem_bw": 1e6}
    return simulate(read(text, "made.txt"), Parameters(**(defaults | parameters)))


ONE = ["a -1 0 NONE 0 0 NONE 0 0 ALLREDUCE 4000 7"]  # 6 steps of 1000 ns


def test_a_system_file_may_ask_for_the_oldest_collective_first(tmp_path: Path) -> None:
    rows = [f"{name} -1 0 NONE 0 0 NONE 0 0 ALLREDUCE 4000 0" for name in "abc"]
    starts = {}
    for order in ("LIFO", "FIFO"):
        system = tmp_path / f"{order}.json"
        system.write_text(json.dumps({"scheduling-policy": order, "endpoint-delay": 0, "local-mem-bw": 1e6}))
        spans = list(stream_spans(made(rows, system=str(system)).timeline, 0, "all"))
        starts[order] = [span.row for span in spans]
    # c is issued first and begins at once; a and b wait meanwhile.
    assert starts == {"LIFO": [2, 0, 1], "FIFO": [2, 1, 0]}


def test_the_last_chunk_is_what_the_others_leave() -> None:
    rows = ["a -1 0 NONE 0 0 NONE 0 0 ALLREDUCE 4600 0"]
    # 1533, 1533, 1533 and 1 B: messages of 383 and of 0 B, after one state change.
    assert made(rows, splits=3).step_time_ns == 1 + 3 * 6 * 383


def test_compute_and_collectives_are_scaled_and_each_phase_is_rounded() -> None:
    rows = ["a -1 101 NONE 0 0 NONE 0 0 ALLREDUCE 4004 0"]
    simulation = made(rows, compute_scale=0.5, comm_scale=0.5, splits=4)
    # 101 x 0.5 = 50; a chunk of 1001 B has 6 x 250 ns, 750 by half.
    assert simulation.step_time_ns == 50 + 1 + 4 * 750
    assert made(ONE, comm_scale=0).step_time_ns == 8


def test_accounts_of_a_small_step() -> None:
    simulation = made(ONE, passes=2)
    (accounts,) = SimulatedRun(simulation).accounts
    # A state change, then a collective of 6000 ns that is visible 7 ns later; the same once more.
    assert simulation.step_time_ns == 2 * (1 + 6007)
    # The state change that ends a pass runs beside the collective.
    assert accounts.idle_ns == 2 * (1 + 1)
    assert accounts.exposed_ns()["all"] == 2 * 6006
    assert accounts.wait_ns == 0


@settings(max_examples=300)
@given(policy_cases(faults=True))
def test_in_the_queues_a_rank_waits_only_while_none_of_its_own_collectives_runs(case: PolicyCase) -> None:
    results = SimulatedRun(case.simulated())
    timeline = results.simulation.timeline
    for number, accounts in enumerate(results.accounts):
        ops, start, end = timeline.columns(number)
        collectives = [op for op in range(len(ops)) if ops.stream[op] != COMPUTE]
        for (first, last), account, op in zip(
            itertools.pairwise(accounts.edge), accounts.account, accounts.op, strict=True
        ):
            if account == WAIT:
                # For the collective `op`; of what was issued before it nothing is under way.
                assert last <= start[op]
                assert not [one for one in collectives if one < op and start[one] < last and end[one] > first]
            elif FIRST_EXPOSED <= account < WAIT:
                assert start[op] <= first
                assert ACCOUNTS[account] == f"exposed {STREAMS[ops.stream[op]]}"


@settings(max_examples=150)
@given(
    st.sampled_from(["ALLREDUCE", "ALLGATHER", "REDUCESCATTER", "ALLTOALL"]),
    st.integers(1, 50_000),
    st.integers(1, 7),
    st.integers(1, 4),
    st.sampled_from(
        [("ring:4:1:0",), ("ring:4:1:3", "ring:2:0.5:0"), ("ring:2:2:0", "ring:2:1:7", "ring:2:4:1")]
    ),
    st.sampled_from([1.0, 0.37, 2.9]),
)
def test_a_collective_with_the_queues_to_itself_takes_its_price(
    collective: str, size: int, splits: int, active: int, dims: tuple[str, ...], scale: float
) -> None:
    row = f"a -1 0 NONE 0 0 NONE 0 0 {collective} {size} 0"
    rings = tuple(f"{index}=ring" for index in range(len(dims)))
    simulation = made([row], dim=dims, algorithm=rings, splits=splits, active_chunks=active, comm_scale=scale)
    ((_, end),) = {(span.start, span.end) for span in stream_spans(simulation.timeline, 0, "all")}
    (cost,) = [one for one in simulation.program.costs if isinstance(one, CollectiveCost)]
    # It is issued behind one state change.
    assert end - 1 == collective_alone_ns(simulation, collective, "all", cost.bytes)
