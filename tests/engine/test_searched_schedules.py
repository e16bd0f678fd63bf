"""zb-1p and zb-2p (arXiv 2401.10241): orders that can run, within their memory, no longer than the rule's.

Planted, one at a time, each seen to fail: the first policy's order whatever it takes; a stage that holds one
more; W before its I; the rule not run beside what is found; a stream that is free while it sends (--whole);
the loss rows behind the activation taken as before it; weight gradients without the loss rows; the
order of another run taken in a sweep; memory without the order; a bound of gradients that are not added up.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from simcore.analysis.model_figures import make_model_figures
from simcore.diagnostics import InputError, UsageError
from simcore.engine.searched_orders import find_orders, find_stage_times
from simcore.parameters import Parameters
from simcore.program.building import plan_program
from simcore.program.order import Order, Shape
from simcore.program.order_text import format_order
from simcore.program.schedules.zb_search import (
    ActionTimes,
    StageTimes,
    rule_order,
    run_order,
    search_order,
)
from simcore.records import replace
from simcore.setup import Setup
from simcore.simulation import simulate
from simcore.sweeping.evaluating import Definition, Evaluator
from simcore.sweeping.space import Space, parse_axis
from tests.engine.test_folding_with_overrides import overridden
from tests.strategies import Case, Cell, Row, layer, make_workload
from tests.sweep.test_step_time import _MODELS

RULES = {"zb-1p": ("zb-h1", 1), "zb-2p": ("zb-h2", 2)}
_NS = st.integers(0, 300)
_TIMES = st.builds(ActionTimes, _NS, _NS, _NS, st.sampled_from([0, 0, 40]))


@st.composite
def stage_times(draw: st.DrawFn) -> StageTimes:
    """Of equal stages, of such with one that takes longer, and of stages that have nothing in common."""
    stages = draw(st.integers(1, 6))
    turns = draw(st.sampled_from([1, 1, 2]))
    each = [tuple(draw(_TIMES) for _ in range(turns))] * stages
    if draw(st.booleans()):
        each[draw(st.integers(0, stages - 1))] = tuple(draw(_TIMES) for _ in range(turns))
    elif draw(st.booleans()):
        each = [tuple(draw(_TIMES) for _ in range(turns)) for _ in range(stages)]
    sends = draw(st.sampled_from([(0, 0), (5, 5), (30, 60), (200, 100)]))
    return StageTimes(tuple(each), (sends[0],) * stages, (sends[1],) * stages)


def naive_ends(order: Order, times: StageTimes) -> list[int]:
    """When each stage is done: each action and each transfer as soon as what it needs is over, ns."""
    over: dict[tuple[str, int, int], int] = {}
    arrived: dict[tuple[str, int, int], int] = {}
    ends, free = [0] * len(order.stages), dict[tuple[str, int], int]()
    left = [[*actions] for actions in order.stages]
    while any(left):
        for stage, actions in enumerate(left):
            if not actions:
                continue
            kind, microbatch = actions[0][:2]
            if kind == "F":
                needs = {("F", stage, microbatch): arrived} if stage else {}
            elif kind == "I" and stage + 1 < len(left):
                needs = {("I", stage, microbatch): arrived}
            else:
                needs = {("F" if kind == "I" else "I", stage, microbatch): over}
            if any(key not in times_of for key, times_of in needs.items()):
                continue
            begin = max([ends[stage], *(times_of[key] for key, times_of in needs.items())])
            one = times.actions[stage][microbatch % len(times.actions[stage])]
            sent = begin + {"F": one.forward, "I": one.input_grad, "W": one.weight_grad}[kind]
            ends[stage] = over[kind, stage, microbatch] = sent + (one.loss if kind == "F" else 0)
            for way, other, sending in (("F", stage + 1, times.to_next), ("I", stage - 1, times.to_previous)):
                if kind == way and 0 <= other < len(left):
                    free[way, stage] = max(sent, free.get((way, stage), 0)) + sending[stage]
                    arrived[way, other, microbatch] = free[way, stage]
            actions.pop(0)
    return ends


@settings(deadline=None)
@given(stage_times(), st.integers(1, 18), st.sampled_from([1, 2]), st.booleans())
def test_an_order_is_whole_and_within_its_memory_and_no_longer_than_the_rule(
    times: StageTimes, microbatches: int, limit: int, repeats: bool
) -> None:
    shape = Shape(len(times.actions), microbatches)
    order, rule = search_order(shape, limit, times, repeats), rule_order(shape, limit)
    for actions in order.stages:
        for kind in "FIW":
            numbers = [action.microbatch for action in actions if action.kind == kind]
            assert numbers == [*range(microbatches)], "each once, in turn"
        assert len(actions) == 3 * microbatches
        position = {action[:2]: index for index, action in enumerate(actions)}
        for number in range(microbatches):
            assert position["F", number] < position["I", number] < position["W", number]
        held, most = 0, 0
        for action in actions:
            held += (action.kind == "F") - (action.kind == "W")
            most = max(most, held)
        assert most <= limit * shape.stages
    pipeline = run_order(times, order)
    assert [state.time for state in pipeline.stages] == naive_ends(order, times)
    assert pipeline.step_ns == max(naive_ends(order, times))
    by_rule = run_order(times, rule)
    if repeats:
        assert pipeline.span_ns <= by_rule.span_ns
    else:
        assert pipeline.step_ns <= max(naive_ends(rule, times)) == by_rule.step_ns


@settings(deadline=None)
@given(overridden(), st.sampled_from([*RULES]))
def test_a_run_is_never_longer_than_that_of_the_rule(case: Case, schedule: str) -> None:
    """Whatever delays its ops: collectives in W, shared ports, slow ranks, several steps."""
    assume((case.workload.header.pp or 1) > 1)
    parameters = replace(case.parameters, virtual_stages=None, overlap_fwd_bwd=False)
    try:
        rule = simulate(case.workload, replace(parameters, schedule=RULES[schedule][0]))
    except (UsageError, InputError) as error:
        with pytest.raises(type(error), match=re.escape(str(error).replace(RULES[schedule][0], schedule))):
            simulate(case.workload, replace(parameters, schedule=schedule))
        return
    found = simulate(case.workload, replace(parameters, schedule=schedule))
    assert found.step_time_ns <= rule.step_time_ns
    stages, limit = found.layout.pp, RULES[schedule][1]
    assert max(stage.peak_microbatches for stage in found.program.stages) <= limit * stages


_WAITED = st.tuples(
    st.integers(1, 900), st.sampled_from([None, "ALLREDUCE"]), st.just("tp"), st.integers(1, 2000)
).map(Cell._make)
_ROWS = st.lists(
    st.tuples(
        st.sampled_from(["mlp_row", "attention_row"]), _WAITED, _WAITED, st.integers(1, 900).map(Cell)
    ).map(Row._make),
    min_size=1,
    max_size=3,
)


@settings(deadline=None)
@given(_ROWS, st.integers(0, 900), st.integers(2, 5), st.integers(1, 9), st.integers(0, 3000),
       st.sampled_from([*RULES]))  # fmt: skip
def test_what_is_searched_is_what_runs(
    layers: list[Row], loss: int, stages: int, microbatches: int, transfer: int, schedule: str
) -> None:
    """Where compute waits for every collective, a step takes what the search says, to the ns."""
    rows = [*layers, layer("cross_entropy1", loss, loss // 2, loss // 3)]
    workload = make_workload(rows, tp=2, ep=1, pp=stages, all_gpus=2 * stages, pp_comm=transfer)
    parameters = Parameters(schedule=schedule, microbatches=microbatches, slow_rank=("1=1.3",))
    setup = Setup(workload, parameters)
    order, simulation = find_orders(setup)[0], simulate(workload, parameters)
    times = find_stage_times(plan_program(setup.workload, setup.layout, setup.schedule), setup)
    assert run_order(times, order).step_ns == simulation.step_time_ns
    assert simulation.program.order.stages == order.stages
    assert find_orders(setup)[0].stages == order.stages, "the same again"


def test_by_hand() -> None:
    """Three stages, two micro-batches. zb-h1 has stage 1 wait for the second I before its first W."""
    for schedule, step in {"zb-h1": 150, "zb-1p": 140}.items():
        workload = make_workload([layer("mlp", 20, 10, 20)], tp=1, ep=1, pp=3, all_gpus=3, pp_comm=0)
        simulation = simulate(workload, Parameters(schedule=schedule, microbatches=2))
        assert simulation.step_time_ns == step
    # F0 20 F1 40 | I0 80..90, W0 110, I1 110..120, W1 140
    # 20 F0 40 F1 60 | I0 70..80, W0 100, I1 100..110, W1 130
    # 40 F0 60 I0 70 F1 90 I1 100 W0 120 W1 140
    order = simulation.program.order
    words = [[f"{one.kind}{one.microbatch}" for one in actions] for actions in order.stages]
    assert words == [
        ["F0", "F1", "I0", "W0", "I1", "W1"],
        ["F0", "F1", "I0", "W0", "I1", "W1"],
        ["F0", "I0", "F1", "I1", "W0", "W1"],
    ]


def test_by_hand_with_transfers_of_5_ns() -> None:
    """Stage 1: 35 F0 65 F1 95, I0 115..125, W0 155, I1 155..165, W1 195; in zb-h1 I1, W0 195, W1 225."""
    for schedule, step in {"zb-h1": 225, "zb-1p": 210, "zb-h2": 225, "zb-2p": 210}.items():
        workload = make_workload([layer("mlp", 30, 10, 30)], tp=1, ep=1, pp=3, all_gpus=3, pp_comm=5)
        parameters = Parameters(schedule=schedule, microbatches=2, dim=("switch:3:1:0",), endpoint_delay=0)
        assert simulate(workload, parameters).step_time_ns == step


def test_where_the_order_of_the_rule_takes_less_it_is_run(tmp_path: Path) -> None:
    """The search looks at one step: two of its steps take 10 ns more than two of zb-h1."""
    rows = [layer("mlp", 20, 20, 30), layer("grad_param_compute", 40)]
    workload = make_workload(rows, tp=1, ep=1, pp=4, all_gpus=4, pp_comm=10)
    parameters = Parameters(
        schedule="zb-1p", microbatches=4, steps=2, dim=("switch:4:1:0",), endpoint_delay=0
    )  # fmt: skip
    steps = []
    for order in find_orders(Setup(workload, parameters)):
        path = tmp_path / f"{len(steps)}.csv"
        path.write_text(format_order(order), encoding="utf-8")
        alone = replace(parameters, schedule=str(path), microbatches=None)
        steps.append(simulate(workload, alone).step_time_ns)
    assert steps == [910, 900]
    assert simulate(workload, parameters).step_time_ns == 900


def test_without_weight_gradients_it_is_the_rule() -> None:
    for schedule, (rule, _) in RULES.items():
        workload = make_workload([layer("mlp", 30, 60)], tp=1, ep=1, pp=4, all_gpus=4, pp_comm=0)
        steps = {simulate(workload, Parameters(schedule=one, microbatches=9)).step_time_ns
                 for one in (schedule, rule)}  # fmt: skip
        assert len(steps) == 1


@pytest.mark.parametrize("schedule", RULES)
def test_an_order_that_is_written_gives_the_same_step(schedule: str, tmp_path: Path) -> None:
    forward, weight = Cell(700, "ALLREDUCE", "tp", 900), Cell(300, "ALLREDUCE", "dp", 90_000)
    rows = [Row("mlp_row", forward, Cell(500), weight)]
    workload = make_workload(rows, tp=2, ep=1, pp=4, all_gpus=16, pp_comm=2000)
    found = simulate(workload, Parameters(schedule=schedule, microbatches=10))
    path = tmp_path / "order.csv"
    path.write_text(format_order(found.program.order), encoding="utf-8")
    again = simulate(workload, Parameters(schedule=str(path)))
    assert again.step_time_ns == found.step_time_ns
    assert again.program.order.stages == found.program.order.stages


@pytest.mark.parametrize("schedule", RULES)
@pytest.mark.parametrize("name", ["dense", "experts"])
def test_a_sweep_knows_memory_and_step_of_the_run(schedule: str, name: str) -> None:
    workload = _MODELS[name]
    base = Parameters(world=8, pp=4, seq=128, schedule=schedule, stage_layers="3,2,2,1")
    space = Space(base, (parse_axis("global-batch=16,10,4"), parse_axis("compute-scale=1,0.2")))
    evaluator = Evaluator(workload, Definition(("--model", name), space))
    for candidate in space.combinations():
        simulation = simulate(workload, candidate.parameters)
        figures = make_model_figures(simulation)
        assert figures is not None
        check = evaluator.check(candidate)
        assert (check.why, check.memory) == ("", figures.fullest.needed)
        point = evaluator.evaluate(check)
        assert point.step_time_ns == simulation.step_time_ns >= evaluator.with_bound(check).at_least_ns
