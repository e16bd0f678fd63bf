"""What-if: every figure is a simulation with those durations, and what is cheaper never takes longer.

Seen to fail on these bugs, planted one at a time: durations floored; a bandwidth times 0.9; the chosen ops
of another stage; knobs skipped that are on the path of another stage than the first; chunks and
transmissions left as long as they are.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from simcore.analysis.dependencies import Dependencies
from simcore.analysis.rerun import Rerun
from simcore.analysis.what_if.changes import find_changes
from simcore.collectives.exact import scaled
from simcore.diagnostics import Cancelled
from simcore.engine import Engine
from simcore.parameters import Parameters
from simcore.program.ops import COMPUTE, KIND_OF_STREAM, PHASES, STREAMS
from simcore.render.report.pages import run_json, run_page
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import Simulation, simulate, simulate_like
from simcore.sources.simulated_graph import SimulatedGraph
from simcore.trace.changes import Change, Trials
from simcore.trace.findings import WhatIf
from simcore.trace.knobs import Search
from simcore.workload import open_workload
from simcore.workload.model import base_name
from tests.analysis.booking import run
from tests.analysis.lengthening import frozen_durations
from tests.engine.policy_cases import PolicyCase, policy_cases
from tests.engine.reference_simulator import class_of_ranks, reference_of
from tests.engine.test_folding import SEED_002
from tests.engine.test_folding_with_overrides import overridden
from tests.strategies import Case, Cell, Row, cases, layer, make_workload
from tests.workload.texts import read

# Seed 002 on 4 stages: what changes of it bring is found in a fifth of the time.
FEW: dict[str, Any] = {"pp": 4, "microbatches": 4}
# Each row of a table is a run of its own.
MOST_RANKS = 8
FIXED = ("analytical", "busbw", "simai-auto")


def table(simulation: Simulation) -> dict[str, WhatIf]:
    return {one.knob: one for one in SimulatedRun(simulation).what_if()}


def is_about(simulation: Simulation, knob: str, number: int, op: int) -> bool:
    """Whether an op of a class is of a knob, from the knob's words."""
    ops = simulation.timeline.columns(number)[0]
    family, _, name = knob.partition(" ")
    stream = STREAMS[ops.stream[op]]
    if family == "compute":
        return stream == "compute" and PHASES[ops.phase[op]] == name
    if family == "layer":
        return ops.row[op] >= 0 and base_name(simulation.workload.name[ops.row[op]]) == name
    return family == "stream" and (
        stream == name or stream.startswith(name + ">") or (stream, name) == ("pp<next", "pp")
    )


@pytest.mark.slow
@settings(max_examples=40)
@given(overridden(("analytical",), MOST_RANKS))
def test_what_if_is_the_naive_simulation_of_every_rank_with_these_durations(case: Case) -> None:
    simulation = simulate(*case)
    classes, frozen, reference = (
        class_of_ranks(simulation),
        frozen_durations(simulation),
        reference_of(simulation),
    )
    for knob, one in table(simulation).items():
        if one.list == "change" or knob.startswith("dimension"):
            continue
        for factor, step in ((0.0, one.free_ns), (0.9, one.better10_ns)):
            durations = [
                [
                    scaled(ns, factor) if is_about(simulation, knob, number, op) else ns
                    for op, ns in enumerate(frozen[number])
                ]
                for number in classes
            ]
            assert reference.step_ns(durations) == step, knob


def rerun_of(simulation: Simulation) -> Rerun:
    return Rerun(simulation, Dependencies(simulation, simulation))


@settings(max_examples=100)
@given(overridden() | cases(), st.randoms(use_true_random=False))
def test_one_pass_over_the_fixed_order_is_the_engine_for_any_durations(case: Case, random: Random) -> None:
    timeline = simulate(*case).timeline
    built = SimulatedGraph(timeline)
    for _ in range(3):
        durations = [
            [random.choice((0, 1, random.randrange(500))) for _ in ops] for ops in timeline.times.start
        ]
        for number, group in enumerate(timeline.classes):
            # A collective takes as long for all its members: those of its first class decide.
            for op, stream in enumerate(timeline.columns(number)[0].stream):
                if stream in KIND_OF_STREAM and KIND_OF_STREAM[stream] in group.groups:
                    first, its_op = built.members(number, op)[0]
                    durations[number][op] = durations[first][its_op]
        times = Engine(timeline.program, timeline.folding, durations).run()
        ends = built.graph.ends(built.durations(durations))
        assert max(ends[node] for node in built.last) == max(times.finish)
        for number, end in enumerate(times.end):
            assert [ends[node] for node in built.nodes(number)] == list(end)


@pytest.mark.slow
@settings(max_examples=50)
@given(overridden() | cases())
def test_nothing_that_is_cheaper_takes_longer_unless_it_is_said(case: Case) -> None:
    simulation = simulate(*case)
    step = simulation.step_time_ns
    found = SimulatedRun(simulation).what_if()
    fixed = simulation.setup.network_name.startswith(FIXED)
    lists = [one.list for one in found]
    assert lists == sorted(lists)
    sensitivity = [one for one in found if one.list == "sensitivity"]
    for one in sensitivity:
        assert one.free_ns is not None
        assert one.anomaly == (max(one.free_ns, one.better10_ns) > step)
        assert not (fixed and one.anomaly)
        assert not fixed or 0 <= one.free_ns <= one.better10_ns <= step
    gains = [step - one.better10_ns for one in sensitivity]
    assert gains == sorted(gains, reverse=True)


@pytest.mark.slow
@settings(max_examples=30)
@given(overridden(most_ranks=MOST_RANKS), st.sampled_from(["bandwidth", "latency"]), st.data())
def test_a_cheaper_dimension_is_the_run_with_that_dimension(
    case: Case, what: str, data: st.DataObject
) -> None:
    simulation = simulate(*case)
    found = table(simulation)
    if not simulation.has_dimensions:
        assert not [knob for knob in found if knob.startswith("dimension")]
        return
    if any(group.shape.is_flat for group in simulation.timeline.folding.group_classes):
        # A flat group might move to another dimension.
        return
    number = data.draw(st.integers(0, len(simulation.cluster.dims) - 1))
    dims = list(case.parameters.dim)
    kind, size, bandwidth, latency = dims[number].split(":")
    for factor, step in ((0.9, "better10_ns"), (0.0, "free_ns")):
        if what == "latency":
            dims[number] = f"{kind}:{size}:{bandwidth}:{float(latency) * factor!r}"
        else:
            dims[number] = f"{kind}:{size}:{float(bandwidth) / factor if factor else 1e9!r}:{latency}"
        changed = simulate(case.workload, structs.replace(case.parameters, dim=tuple(dims)))
        row = found[f"dimension {number} {what}"]
        assert getattr(row, step) == changed.step_time_ns
        if step == "better10_ns":
            assert row.parameters is not None
            assert simulate(case.workload, row.parameters).step_time_ns == row.better10_ns


def test_a_what_if_moves_no_flat_group_to_another_dimension() -> None:
    """Ranks 0, 2 and 4 are no grid, and go over the slowest dimension; the other one changes nothing."""
    rows = [Row("mlp", wg=Cell(0, "ALLREDUCE", "dp", 62))]
    simulation = run(rows, {"tp": 2, "dp": 3}, dim=("fully-connected:3:1:400", "switch:8:1.05:3"))
    found = table(simulation)
    assert simulation.timeline.folding.group_classes[0].shape.is_flat
    moved = structs.replace(simulation.parameters, dim=("fully-connected:3:1e9:400", "switch:8:1.05:3"))
    assert simulate(simulation.workload, moved).step_time_ns < (found["dimension 0 bandwidth"].free_ns or 0)
    assert found["dimension 1 bandwidth"].free_ns == simulation.step_time_ns
    # Nothing moves here with 10 % less time, so the run with it is the one that was computed.
    asked = found["dimension 1 bandwidth"].parameters
    assert asked is not None
    assert simulate(simulation.workload, asked).step_time_ns == found["dimension 1 bandwidth"].better10_ns


def test_a_cheaper_dimension_keeps_the_world_that_the_file_does_not_tell(tmp_path: Path) -> None:
    # Dimensions that are given have 8 NPUs, which without --world would be the world of this file.
    path = tmp_path / "micro.txt"
    row = "micro_test\t-1\t1\tNONE\t0\t1\tNONE\t0\t1\tALLGATHER"
    rows = "".join(f"{row}\t{4096 << number}\t1\n" for number in range(19))
    path.write_text(f"MICRO\n19\n{rows}")
    workload = open_workload(str(path))
    assert workload.format == "simai"
    results = SimulatedRun(simulate(workload, Parameters()))
    cheaper = [one for one in results.what_if() if one.name.startswith("dimension")]
    assert len(cheaper) == 4
    for one in cheaper:
        assert one.parameters is not None
        assert simulate(workload, one.parameters).step_time_ns == one.better10_ns


def test_a_what_if_rounds_the_durations_of_its_run_half_to_even() -> None:
    """5 ns become 2.5 ns by the scale, so 2 ns; 0.9 of that is 1.8 ns, so 2 ns again."""
    simulation = run([layer("mlp", 5)], {}, compute_scale=0.5)
    assert simulation.step_time_ns == 2
    found = table(simulation)
    assert (found["compute fwd"].free_ns, found["compute fwd"].better10_ns) == (0, 2)
    assert table(run([layer("mlp", 15)], {}))["compute fwd"].better10_ns == 14


def test_a_layer_of_a_what_if_is_its_compute_and_its_collectives() -> None:
    rows = [Row("mlp_1", Cell(100, "ALLREDUCE", "tp", 1000)), layer("mlp_2", 50), layer("norm", 7)]
    found = table(run(rows, {"tp": 2}))
    assert found["layer mlp"].free_ns == 7
    assert found["compute fwd"].free_ns == 1020
    assert found["stream tp"].free_ns == 157
    assert "stream dp" not in found


def test_seed_002_gains_most_by_interleaving_8_virtual_stages() -> None:
    results = SimulatedRun(simulate(open_workload(SEED_002), Parameters(**FEW)))
    found = {one.knob: one for one in results.what_if()}
    first = found["--schedule interleaved --virtual-stages 8"]
    alone = [one for one in found.values() if one.list == "change" and "--stage" not in one.knob
             and "--overlap" not in one.knob]  # fmt: skip
    assert alone[0] is first
    assert (first.free_ns, first.better10_ns) == (None, 2_471_721_146)
    assert first.parameters == Parameters(**FEW, schedule="interleaved", virtual_stages=8)
    assert simulate(open_workload(SEED_002), first.parameters).step_time_ns == first.better10_ns
    knobs = set(found)
    assert knobs >= {
        "--schedule zb-h1",
        "--schedule interleaved --virtual-stages 2",
        "--schedule interleaved --virtual-stages 4",
        "--overlap-grad-reduce",
        "--overlap-param-gather",
        "compute fwd",
        "layer mlp_row",
        "stream pp",
        "dimension 1 latency",
    }
    # As it is, and what takes as long or longer, is no advice.
    assert knobs.isdisjoint(
        {"--schedule 1f1b", "--schedule gpipe", "--schedule interleaved --virtual-stages 1"}
    )


def schedules_tried(rows: list[Row], **parameters: object) -> list[Parameters]:
    """What a what-if of a pipeline of three stages tries in place of its schedule."""
    pp = 1 if "schedule" in parameters else 3
    workload = make_workload(rows, tp=1, ep=1, pp=pp, all_gpus=6, pp_comm=0)
    simulation = simulate(workload, Parameters(**parameters))  # type: ignore[arg-type]
    tried: list[Change] = []
    search = Search(0, lambda done, total: None, lambda: False)
    find_changes(simulation, Trials(simulation.step_time_ns, tried.append, search))  # type: ignore[arg-type]
    return [Parameters(**one.fields) for one in tried if "schedule" in one.fields]


def test_schedules_are_tried_that_fit_and_could_help() -> None:
    one, two = [layer("mlp_1", 9, 9, 9)], [layer("mlp_1", 9, 9, 9), layer("mlp_2", 9, 9, 9)]
    found = [parameters.schedule for parameters in schedules_tried(one, microbatches=6)]
    # One layer a stage has nothing to interleave.
    assert found == ["gpipe", "zb-h1", "zb-h2"]
    found = [parameters.schedule for parameters in schedules_tried(two, microbatches=6)]
    assert found == ["gpipe", "interleaved", "zb-h1", "zb-h2", "zb-v", "v-half"]


def test_beside_a_schedule_file_others_are_tried_in_its_shape(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("0F0,0B0\n1F0,1B0\n2F0,2B0\n", encoding="utf-8")
    tried = schedules_tried([layer("mlp_1", 9, 9, 9)], schedule=str(path))
    assert [one.schedule for one in tried] == ["1f1b", "gpipe", "zb-h1", "zb-h2"]
    assert {(one.pp, one.microbatches) for one in tried} == {(3, 1)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("parameters", "missing", "there"),
    [
        (
            Parameters(**FEW, schedule="zb-h1"),
            "--schedule zb-h1",
            "--schedule interleaved --virtual-stages 8",
        ),
        (Parameters(**FEW, overlap_grad_reduce=True), "--overlap-grad-reduce", "--overlap-param-gather"),
        # 6 micro-batches are no multiple of 4 stages.
        (Parameters(pp=4, microbatches=6), "--schedule interleaved --virtual-stages 2", "--schedule zb-h1"),
        (Parameters(pp=4, schedule="layer-loop"), "--schedule gpipe", "compute wg"),
        (
            Parameters(**FEW, schedule="interleaved", virtual_stages=2),
            "--schedule interleaved --virtual-stages 2",
            "--schedule interleaved --virtual-stages 4",
        ),
    ],
)
def test_other_schedules_are_those_that_fit_and_are_not_there_yet(
    parameters: Parameters, missing: str, there: str
) -> None:
    found = table(simulate(open_workload(SEED_002), parameters))
    assert missing not in found
    assert there in found


@pytest.mark.slow
@settings(max_examples=30)
@given(overridden(most_ranks=MOST_RANKS) | cases(MOST_RANKS))
def test_what_if_is_the_same_of_every_rank_as_of_one_of_each_class(case: Case) -> None:
    every_rank = structs.replace(case.parameters, no_fold=True)
    folded, unfolded = simulate(*case), simulate(case.workload, every_rank)
    plain = [(one.knob, one.free_ns, one.better10_ns) for one in SimulatedRun(folded).what_if()]
    assert plain == [(one.knob, one.free_ns, one.better10_ns) for one in SimulatedRun(unfolded).what_if()]


@settings(max_examples=30)
@given(policy_cases(faults=True))
def test_queues_are_simulated_with_cheaper_chunks(case: PolicyCase) -> None:
    simulation = simulate(read(case.text), case.parameters)
    step = simulation.step_time_ns
    found = table(simulation)
    for one in found.values():
        if one.list == "change":
            # No schedule fits its policy: a rank that was made slow is all there is to mend.
            assert re.match(r"rank \d+ as fast", one.knob)
            continue
        assert one.free_ns is not None
        assert one.anomaly == (max(one.free_ns, one.better10_ns) > step)
    for number, dim in enumerate(case.parameters.dim):
        kind, size, bandwidth, latency = dim.split(":")
        faster = f"{kind}:{size}:{float(bandwidth) / 0.9!r}:{latency}"
        dims = (*case.parameters.dim[:number], faster, *case.parameters.dim[number + 1 :])
        changed = simulate(simulation.workload, structs.replace(case.parameters, dim=dims))
        assert found[f"dimension {number} bandwidth"].better10_ns == changed.step_time_ns


def step_with_communication_at(simulation: Simulation, factor: float) -> int:
    stages = simulation.program.stages
    masks = [bytes(stream != COMPUTE for stream in stage.ops.stream) for stage in stages]
    return rerun_of(simulation).step_ns(masks, factor)


@settings(max_examples=30)
@given(policy_cases(faults=True), st.sampled_from([0.0, 0.5, 0.9]))
def test_all_chunks_cheaper_are_the_queues_under_that_scale(case: PolicyCase, factor: float) -> None:
    workload = read(case.text)
    parameters = structs.replace(case.parameters, comm_scale=1.0, jitter=0.0)
    scaled_run = simulate(workload, structs.replace(parameters, comm_scale=factor))
    found = step_with_communication_at(simulate(workload, parameters), factor)
    assert found == scaled_run.step_time_ns


@settings(max_examples=30)
@given(overridden(), st.sampled_from([0.0, 0.5, 0.9]))
def test_all_transmissions_cheaper_are_shared_ports_under_that_scale(case: Case, factor: float) -> None:
    parameters = structs.replace(case.parameters, network="shared", comm_scale=1.0, jitter=0.0)
    scaled_run = simulate(case.workload, structs.replace(parameters, comm_scale=factor))
    found = step_with_communication_at(simulate(case.workload, parameters), factor)
    assert found == scaled_run.step_time_ns


def test_a_step_that_gets_longer_is_an_anomaly_and_said_so() -> None:
    found = WhatIf("stream tp", 120, 95, anomaly=True)
    results = SimulatedRun(run([layer("mlp", 100)], {}))
    results._what_if.store([WhatIf("compute fwd", 0, 90), found])
    assert run_json(results, with_what_if=True)["what_if"] == [
        {"list": "sensitivity", "knob": "compute fwd", "free_ns": 0, "better10_ns": 90},
        {"list": "sensitivity", "knob": "stream tp", "free_ns": 120, "better10_ns": 95, "anomaly": True},
    ]
    text = " ".join(run_page(results, with_what_if=True).split())
    assert "stream tp 120 ns +20.0 % 95 ns -5.0 % slower: anomaly" in text
    assert "anomaly: what" in text


def test_progress_is_told_and_a_caller_can_stop() -> None:
    results = SimulatedRun(run([Row("mlp", Cell(10, "ALLREDUCE", "tp", 10))], {"tp": 2}))
    told: list[tuple[int, int]] = []
    count = len(results.what_if(lambda done, total: told.append((done, total))))
    assert [done for done, _ in told] == list(range(len(told)))
    assert all(done < total for done, total in told[:-1])
    assert told[-1] == (len(told) - 1,) * 2
    calls = len(told)
    assert calls > count
    assert results.what_if(lambda done, total: told.append((done, total))) is results.what_if()
    assert len(told) == calls
    again = SimulatedRun(results.simulation)
    with pytest.raises(Cancelled):
        again.what_if(cancelled=lambda: True)
    stopping: list[int] = []
    with pytest.raises(Cancelled):
        again.what_if(lambda done, total: stopping.append(done), lambda: len(stopping) > 2)
    assert stopping == [0, 1, 2]


def test_what_a_cancelled_search_has_found_is_not_looked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaving a screen and coming back ran all changes of seed 002 anew. Planted: found only of knobs."""
    ran: list[Any] = []

    def counted(base: Simulation, fields: Any, *more: Any) -> Simulation:
        ran.append(fields)
        return simulate_like(base, fields, *more)

    # The package has a function of the module's name.
    monkeypatch.setattr(sys.modules["simcore.analysis.what_if.changes"], "simulate_like", counted)
    block = layer("mlp", 100, 100, 100)
    simulation = run([block] * 4, {"pp": 4}, schedule="1f1b")
    whole = SimulatedRun(simulation).what_if()
    of_whole = len(ran)
    again = SimulatedRun(simulation)
    with pytest.raises(Cancelled):
        again.what_if(cancelled=lambda: len(ran) >= of_whole + of_whole // 2)
    # In the middle, and shortly before the end.
    with pytest.raises(Cancelled):
        again.what_if(cancelled=lambda: len(ran) >= 2 * of_whole - 1)
    before = len(ran)
    assert again.what_if() == whole
    # The change at which a search is stopped is run again.
    assert 0 < len(ran) - before <= 2
    assert len(ran) <= 2 * of_whole + 2
    assert "_what_if_found" not in vars(again)


def test_the_names_of_layers_in_a_what_if_are_made_safe() -> None:
    results = SimulatedRun(run([layer("m\x1b[31mlp", 100), layer("tiny\x1b", 0)], {}))
    text = run_page(results, with_what_if=True)
    assert "\x1b" not in text
    assert "layer m\\x1b[31mlp" in text


def test_a_step_of_0_ns_has_nothing_to_gain() -> None:
    results = SimulatedRun(run([layer("mlp")], {}))
    assert "What if: nothing" in run_page(results, with_what_if=True)


def test_what_changes_next_to_nothing_is_named_on_one_line() -> None:
    results = SimulatedRun(run([layer("mlp", 10**6), layer("norm", 3)], {}))
    text = run_page(results, with_what_if=True)
    assert "  below 0.05 %, or nothing: layer norm" in text


def test_a_phase_that_one_stage_has_is_a_knob() -> None:
    """With Megatron's stage layout the loss row is on the last stage alone, and nothing else has a wg."""
    rows = [layer("embedding_layer", 50), *[layer("mlp", 50)] * 2, layer("cross_entropy", 10, 0, 40)]
    simulation = run(rows, {"pp": 2}, schedule="1f1b", stage_layout="megatron")
    assert table(simulation)["compute wg"].free_ns == simulation.step_time_ns - 40
