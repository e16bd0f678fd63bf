"""What repeats is built, timed, booked and asked once: the same to the nanosecond as run by run.

Planted in a copy of simcore, one at a time: a run that finds its stream busy timed as one that finds it idle
(`Engine._run_joined`), the latest end of a repeat's entry left as it was (`Graph.latest`), a transfer beside
a run counted twice (`communication_ns`), slopes without the chain in front of a repeat (`Chains`).
`test_what_repeats_is_as_if_each_run_were_the_only_one` failed on each.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.engine.event_queue import Engine
from simcore.model.maker import ModelMaker
from simcore.model.sizes import Model
from simcore.parameters import Parameters
from simcore.program.ops import StageProgram
from simcore.program.stage_builder import StageBuilder
from simcore.records import replace
from simcore.render.report.pages import run_json
from simcore.runs.simulated import SimulatedRun
from simcore.sources.simulated_graph import SimulatedGraph
from simcore.trace.repeats import Pattern
from tests.export.reading import exported
from tests.model.test_megatron import EXPERTS, SMALL, run


@st.composite
def layouts(draw: st.DrawFn) -> dict[str, Any]:
    pick = lambda *values: draw(st.sampled_from(values))  # noqa: E731
    zero = pick("0", "1", "3")
    # Sharded weights are gathered on one stage: Megatron's FSDP refuses a pipeline.
    tp, dp, pp, cp = pick(2, 2, 4), pick(1, 1, 2), 1 if zero == "3" else pick(1, 2), pick(1, 2)
    chosen = {
        "gpu": "h100", "world": tp * dp * pp * cp, "tp": tp, "pp": pp, "cp": cp, "sequence_parallel": "on",
        "overlap_tp": pick(True, True, False), "global_batch": dp * pick(2, 2, 3),
        "recompute": pick("none", "selective", "full"), "seq": pick(128, 2048),
        "dim": (f"switch:8:{pick(3, 30, 300)}:{pick(0, 2500)}", "switch:8:50:1000"),
        "network": pick("analytical", "analytical", "shared"), "zero": zero,
        "slow_rank": pick((), ("0=1.3",)), "jitter": pick(0.0, 0.0, 0.02), "no_fold": pick(False, True),
    }  # fmt: skip
    if zero == "3":
        # Gathers before rows, and reductions that nothing waits for until the end of the step.
        return chosen | {"prefetch": pick("0", "1"), "reshard_after_forward": pick("on", "off")}
    return chosen | {"overlap_grad_reduce": pick(False, True), "overlap_param_gather": pick(False, True)}


def apart(builder: StageBuilder) -> StageProgram:
    """The program of a stage with no run that waits inside."""
    program = FINISH(builder)
    return replace(program, packed=program.runs, pass_ends=(len(program.runs) - 1,))


FINISH = StageBuilder.finish


# A run repeats from layer to layer: three show it in a third of the time of eight.
MODELS = [replace(SMALL, layers=3), replace(EXPERTS, layers=3)]


def told(model: Model, given: dict[str, Any], name: str) -> list[Any]:
    """All that a run is: its report, its times, segments and slacks, its spans as they are exported."""
    results = SimulatedRun(run(model, **given))
    times = results.simulation.timeline.times
    workload = ModelMaker(model.name, model).empty_workload()
    parameters = Parameters(**given)
    return [
        run_json(results), [*times.start, *times.end], times.pass_ends,
        [(one.edge, one.account, one.op) for one in results.accounts], results.slacks,
        list(exported(name, workload, parameters, run=results).chunks),
    ]  # fmt: skip


@given(layouts(), st.sampled_from(MODELS), st.sampled_from(["csv", "chrome"]))
@settings(max_examples=40, deadline=None)
def test_what_repeats_is_as_if_each_run_were_the_only_one(
    given: dict[str, Any], model: Model, name: str
) -> None:
    found = told(model, given, name)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(StageBuilder, "finish", apart)
        expected = told(model, given, name)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours == theirs


def test_four_times_the_micro_batches_are_no_more_work_op_by_op(monkeypatch: pytest.MonkeyPatch) -> None:
    """How often ops are looked at one by one: timed, put into the graph, passed over in it."""
    counted: dict[str, int] = {}

    def count(owner: type, name: str) -> None:
        whole = getattr(owner, name)

        def counting(*words: Any) -> Any:
            counted[name] = counted.get(name, 0) + 1
            return whole(*words)

        monkeypatch.setattr(owner, name, counting)

    count(Engine, "_run_op_by_op")
    count(SimulatedGraph, "_add_each")
    count(Pattern, "ends")
    count(Pattern, "longest_to_exit")
    found = []
    for microbatches in (8, 32):
        counted.clear()
        simulation = run(
            gpu="h100", world=16, tp=4, pp=4, sequence_parallel="on", overlap_tp=True, virtual_stages=2,
            global_batch=microbatches,
        )  # fmt: skip
        repeated = [
            run for stage in simulation.program.stages for run in stage.packed if run.inner is not None
        ]
        run_json(SimulatedRun(simulation))
        found.append((len(repeated), {**counted}))
    (few, by_few), (many, by_many) = found
    assert (few, many) == (4 * 2 * 2 * 8, 4 * 2 * 2 * 32)
    assert by_few == by_many
    assert 0 < max(by_many.values()) < many // 8
