"""Which runs of a model fit into memory, what would make others fit, and what they are held against."""

from typing import Any

import pytest

from simcore.analysis.fitting import list_chunk_events
from simcore.analysis.model_figures import find_model_rows, make_model_figures
from simcore.analysis.what_if.changes import _list_caveats
from simcore.model.known_models import MODELS
from simcore.records import replace
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import simulate
from simcore.trace.findings import WhatIf
from tests.model.test_megatron import SMALL, run
from tests.says import figures, said


def test_what_does_not_fit_says_what_would() -> None:
    results = SimulatedRun(run(MODELS["llama-3-8b"], world=8, tp=2, global_batch=8, gpu="h100"))
    first = results.sentences[0]
    assert first.rule == "memory"
    assert first.text.startswith("Does not fit: stage 0 needs ")
    ways = results.memory_savings
    assert any(way.fits for way in ways)
    for one in ways:
        again = make_model_figures(
            results.with_parameters(replace(results.parameters, **one.fields)).simulation
        )
        assert again is not None
        assert again.fullest.needed == one.peak_bytes


@pytest.mark.parametrize(
    ("schedule", "chunks"),
    [
        (None, None), ("gpipe", None), ("zb-h1", None), ("zb-h2", None), (None, 2), ("looped-bfs", 2),
        ("zb-v", None), ("v-half", None), ("v-min", None), ("dualpipe", None), ("dualpipev", None),
    ],
)  # fmt: skip
def test_what_a_schedule_holds_is_known_from_its_order(schedule: str | None, chunks: int | None) -> None:
    given = {"world": 4, "pp": 4, "global_batch": 8, "schedule": schedule, "virtual_stages": chunks}
    simulation = run(SMALL, **given)
    made = find_model_rows(simulation)
    assert made is not None
    held = list_chunk_events(
        made.training, simulation.program.schedule, simulation.setup.schedule.overlap_fwd_bwd
    )
    ours = [[one[1:] for one in stage] for stage in held]
    assert ours == [[one[1:] for one in stage.chunk_changes] for stage in simulation.program.stages]


def test_several_changes_at_once_where_none_is_enough() -> None:
    given = {"world": 8, "tp": 2, "global_batch": 64, "gpu": "a100-40"}
    ways = SimulatedRun(run(MODELS["llama-3-8b"], **given)).memory_savings
    fitting = [one for one in ways if one.fits]
    assert len(fitting) == 3
    assert {len(one.words.split(" + ")) for one in fitting} == {2}
    for one in fitting:
        other = run(MODELS["llama-3-8b"], **(given | one.fields))
        again = make_model_figures(other)
        assert again is not None
        assert (again.fits, again.fullest.needed) == (True, one.peak_bytes)
        assert other.workload.header.ga is not None
        # As many sequences in the step.
        assert other.workload.header.ga * other.layout.dp == 64


@pytest.mark.slow
def test_runs_that_would_fit_are_the_first_of_the_changes_and_can_be_tried() -> None:
    results = SimulatedRun(run(MODELS["llama-3-8b"], world=8, tp=2, global_batch=64, gpu="a100-40"))
    fitting = [one for one in results.memory_savings if one.fits]
    changes = [one for one in results.what_if() if one.list == "change"]
    first = changes[: len(fitting)]
    assert results.what_if()[: len(first)] == first
    assert [one.better10_ns for one in first] == sorted(one.better10_ns for one in first)
    assert {one.parameters for one in first} == {replace(results.parameters, **one.fields) for one in fitting}
    # What gains and leaves the run too large comes behind, and says so.
    assert changes[len(first) :]
    for one in changes[len(first) :]:
        assert one.name.endswith("(does not fit)")
        assert one.parameters is not None
        figures = make_model_figures(simulate(results.setup.source, one.parameters))
        assert figures is not None
        assert not figures.fits
    for one in first:
        assert one.parameters is not None
        again = SimulatedRun(simulate(results.setup.source, one.parameters))
        assert again.step_time_ns == one.better10_ns
        assert again.model.model_figures is not None
        assert f"(fits: {again.model.model_figures.fullest.needed / 1e9:.1f} GB)" in one.name
        # No way is offered out of what fits: neither the sentence nor the changes.
        assert not again.memory_savings
        assert all(sentence.rule != "memory" for sentence in again.sentences)


def test_the_fastest_run_that_fits_is_also_tried_with_the_change_that_gains_most() -> None:
    results = SimulatedRun(run(MODELS["llama-3-8b"], world=8))
    both, alone, *_ = results.what_if()
    assert both.flags == "--tp 2 --overlap-grad-reduce --global-batch 8 --zero 1"
    assert alone.flags == "--tp 2 --global-batch 8 --zero 1"
    assert both.better10_ns < alone.better10_ns
    assert both.parameters is not None
    again = SimulatedRun(simulate(results.setup.source, both.parameters))
    assert again.step_time_ns == both.better10_ns
    assert again.model.model_figures is not None
    assert both.name.endswith(f"(fits: {again.model.model_figures.fullest.needed / 1e9:.1f} GB)")


def test_what_fits_with_the_change_that_gains_most_carries_what_has_to_be_known_of_both() -> None:
    """zb-h1 on 4 stages is made for 4 micro-batches, and there are 2. Planted: the flags alone, as before."""
    given: dict[str, Any] = {"world": 16, "pp": 4, "global_batch": 8}
    roomy = SimulatedRun(run(SMALL, **given)).model.model_figures
    assert roomy is not None
    limit = roomy.fullest.total * 8 // 10 + roomy.fullest.overhead
    tight = SimulatedRun(run(SMALL, **given, memory_limit=f"{limit}B"))
    both, alone, *_ = tight.what_if()
    assert both.flags == "--schedule zb-h1 --zero 1"
    assert figures(both.name.removeprefix(both.flags))[:2] == ["4", "2"]
    assert "(fits: " in both.name
    said([both.meaning], "zb-h1", "weight gradients", "bubble")
    assert both.parameters is not None
    assert simulate(tight.setup.source, both.parameters).step_time_ns == both.better10_ns
    assert alone.name.startswith("--zero 1 (fits: ")
    assert alone.meaning == ""
    # Without another schedule there is nothing to know but what is assumed.
    first, *_ = SimulatedRun(run(MODELS["llama-3-8b"], world=8)).what_if()
    assert first.name.startswith(f"{first.flags} (fits: ")
    said([first.meaning], "assumed:", "in pieces", "NCCL's SMs", "full speed")


def test_a_schedule_that_fits_with_more_micro_batches_is_held_against_those() -> None:
    """Twice the tp is half the replicas, and the batch stays: each has twice the micro-batches. Planted: the
    words of the run that does not fit.
    """
    simulation = run(SMALL, world=16, pp=4, global_batch=8)
    gain = WhatIf("--schedule zb-h1 (full gain from 4 on; b)", None, 9, flags="--schedule zb-h1")
    for tp, caveats in ((1, ["full gain from 4 micro-batches on, here 2", "b"]), (2, ["b"])):
        asked = replace(simulation.parameters, schedule="zb-h1", tp=tp, global_batch=8)
        assert _list_caveats(simulation, gain, asked) == caveats


def test_no_change_that_does_not_fit_is_offered_to_a_run_that_fits() -> None:
    given: dict[str, Any] = {"world": 4, "pp": 4, "global_batch": 8, "gpu": "h100"}
    roomy = SimulatedRun(run(SMALL, **given))
    wanted = {one.flags for one in roomy.what_if() if one.list == "change"}
    assert roomy.model.model_figures is not None
    tight = SimulatedRun(run(SMALL, **given, memory_limit=f"{roomy.model.model_figures.fullest.needed}B"))
    assert tight.model.model_figures is not None
    assert tight.model.model_figures.fits
    left = {one.flags for one in tight.what_if() if one.list == "change"}
    assert left < wanted
    for one in tight.what_if():
        if one.list == "change":
            assert one.parameters is not None
            figures = make_model_figures(simulate(tight.setup.source, one.parameters))
            assert figures is not None
            assert figures.fits
