"""`--recompute-rows`: rows of a kind run again in backward, in time and in memory."""

from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from simcore.analysis.model_figures import make_model_figures
from simcore.diagnostics import UsageError
from simcore.model.costs import step_flops
from simcore.model.maker import ModelMaker
from simcore.model.memory import chunk_activations
from simcore.model.training import ROW_KINDS
from simcore.program.ops import PHASES
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import Simulation
from simcore.workload.model import ModelParameters
from tests.model.test_experts import MODEL
from tests.model.test_megatron import EXPERTS, SMALL, run

# The rows that each kind runs again.
NAMES = {
    "attention": {"attention_core"},
    "mla_up_proj": {"attention_up"},
    "mlp_act": {"mlp_act", "moe_act", "moe_shared_act"},
    "moe_act": {"moe_act"},
    "norm": {"attention_norm", "mlp_norm", "moe_norm"},
}


def again(simulation: Simulation, number: int = 0) -> list[str]:
    """The rows that a class runs again, in order."""
    ops = simulation.timeline.stage_program(number).ops
    return [
        simulation.workload.name[ops.row[op]]
        for op in range(len(ops))
        if PHASES[ops.phase[op]] == "recompute"
    ]


def test_an_activation_runs_again_before_the_row_that_takes_it() -> None:
    found = run(SMALL, gpu="h100", world=1, recompute_rows="mlp_act")
    ops = found.timeline.stage_program(0).ops
    names = [found.workload.name[row] for row in ops.row]
    places = [op for op in range(len(ops)) if PHASES[ops.phase[op]] == "recompute"]
    assert len(places) == SMALL.layers
    for op in places:
        assert names[op] == "mlp_act"
        assert (names[op + 1], PHASES[ops.phase[op + 1]]) == ("mlp_row", "ig")
    # And takes what it took forward.
    _, start, end = found.timeline.columns(0)
    forward = next(op for op in range(len(ops)) if names[op] == "mlp_act")
    assert {end[op] - start[op] for op in places} == {end[forward] - start[forward]}


def test_megatrons_words_mean_the_same_rows() -> None:
    for words, own in (("core_attn,layernorm", "attention,norm"), ("layernorm,moe_act", "norm,moe_act")):
        runs = [run(EXPERTS, gpu="h100", recompute_rows=one) for one in (words, own)]
        assert runs[0].timeline.times == runs[1].timeline.times
        assert make_model_figures(runs[0]) == make_model_figures(runs[1])
    with pytest.raises(UsageError, match="moe_act: small has no experts; mlp_act would fit"):
        run(SMALL, gpu="h100", recompute_rows="moe_act")


def test_attention_is_what_selective_runs_again() -> None:
    for flash in ("on", "off"):
        rows, selective = (
            run(SMALL, gpu="h100", world=4, tp=2, global_batch=4, flash=flash, **one)
            for one in ({"recompute_rows": "attention"}, {"recompute": "selective"})
        )
        assert rows.timeline.times == selective.timeline.times
        assert make_model_figures(rows) == make_model_figures(selective)


@given(
    st.sets(st.sampled_from(ROW_KINDS), min_size=1), st.sampled_from([SMALL, EXPERTS, MODEL]),
    st.sampled_from(("on", "off")), st.sampled_from(("on", "off")), st.sampled_from((1, 2)),
    st.sampled_from(("0", "3")), st.booleans(),
)  # fmt: skip
@settings(max_examples=40, deadline=None)
def test_rows_run_again_once_and_hold_less(
    kinds: set[str], model: Any, flash: str, parallel: str, pp: int, zero: str, uneven: bool
) -> None:
    # Of a model without experts there is nothing to run again.
    kinds = kinds if model.moe else kinds - {"moe_act"}
    kinds = kinds if model.mla else kinds - {"mla_up_proj"}
    assume(kinds)
    given: dict[str, Any] = {
        "world": 4 * pp, "tp": 2, "pp": pp, "global_batch": 4, "gpu": "h100", "flash": flash,
        "sequence_parallel": parallel, "zero": zero if pp == 1 else "0",
    }  # fmt: skip
    if uneven and model.moe:
        given |= {"expert_imbalance": "lognormal:0.5", "ep": 2}
    without, found = (run(model, **given, **one) for one in ({}, {"recompute_rows": ",".join(sorted(kinds))}))
    before, after = SimulatedRun(without), SimulatedRun(found)
    for number in range(len(found.timeline.classes)):
        computed = [one.accounts[number].compute_ns() for one in (before, after)]
        ops = found.timeline.stage_program(number).ops
        rounded = len(ops)  # a row taken apart is rounded in parts
        for phase in ("fwd", "ig", "wg"):
            assert abs(computed[0][phase] - computed[1][phase]) <= rounded
        # Each row of the kinds once in every backward, and no other.
        _, start, end = found.timeline.columns(number)
        forward_ns, again_ns = 0, 0
        wanted = set().union(*(NAMES[kind] for kind in kinds))
        for op in range(len(ops)):
            if found.workload.name[ops.row[op]] in wanted and ops.row[op] >= 0:
                forward_ns += (end[op] - start[op]) * (PHASES[ops.phase[op]] == "fwd")
            again_ns += (end[op] - start[op]) * (PHASES[ops.phase[op]] == "recompute")
        assert again_ns == forward_ns > 0
        assert set(again(found, number)) <= wanted
    figures = [make_model_figures(one) for one in (without, found)]
    assert figures[0] is not None
    assert figures[1] is not None
    for one, other in zip(figures[0].memory, figures[1].memory, strict=True):
        assert other.activations <= one.activations
        if kinds & {"mlp_act", "norm", "mla_up_proj"}:
            assert other.activations < one.activations
        assert (other.weights, other.gradients, other.optimizer) == (
            one.weights,
            one.gradients,
            one.optimizer,
        )


def test_what_an_activation_gives_is_not_held() -> None:
    without, found = (
        make_model_figures(run(SMALL, gpu="h100", world=1, **one))
        for one in ({}, {"recompute_rows": "mlp_act"})
    )
    assert without is not None
    assert found is not None
    given_again = 2 * 2048 * 4096  # 2 B a number, tokens x ffn
    assert without.memory[0].activations - found.memory[0].activations == SMALL.layers * given_again
    assert found.memory[0].work - without.memory[0].work == given_again


@pytest.mark.parametrize("with_core", [False, True])
def test_heads_of_latent_attention_are_made_again_before_its_core(with_core: bool) -> None:
    """By hand: 6 layers of 2048 tokens on tp 2, 8 heads of 96 (queries, keys) and 64 (values); latent vectors
    of 256 for queries and of 128 for keys and values, which are kept.
    """
    given: dict[str, Any] = {"world": 2, "tp": 2, "gpu": "h100", "global_batch": 1}
    core = "attention," if with_core else ""
    base = {"recompute_rows": "attention"} if with_core else {}
    without, found = run(EXPERTS, **given, **base), run(EXPERTS, **given, recompute_rows=f"{core}mla_up_proj")
    rows = ["attention_up", "attention_core"] if with_core else ["attention_up"]
    assert again(found) == rows * 6
    ops = found.timeline.stage_program(0).ops
    names = [found.workload.name[row] for row in ops.row]
    places = [
        op for op in range(len(ops)) if names[op] == "attention_up" and PHASES[ops.phase[op]] == "recompute"
    ]
    for op in places:
        behind = op + len(rows)
        assert (names[behind], PHASES[ops.phase[behind]]) == ("attention_core", "ig")
    # What runs again is what the step takes longer, but for what is rounded in each part of a layer.
    _, start, end = found.timeline.columns(0)
    longer = sum(end[op] - start[op] for op in places)
    assert longer > 0
    assert found.step_time_ns - without.step_time_ns == pytest.approx(longer, abs=2 * 3 * 6)
    heads = 2 * 2048 * 8 * (96 + 96 + 64) // 2
    figures = [make_model_figures(one) for one in (without, found)]
    assert figures[0].memory[0].activations - figures[1].memory[0].activations == 6 * heads  # type: ignore
    trainings = [
        ModelMaker("m", EXPERTS).make_rows(ModelParameters(**given, **one)).training
        for one in (base, {"recompute_rows": f"{core}mla_up_proj"})
    ]
    more = step_flops(trainings[1])[1] - step_flops(trainings[0])[1]
    assert more == 2 * 2048 * 6 * (256 * 8 * 96 + 128 * 8 * (64 + 64))


def test_heads_of_latent_attention_are_made_again_by_megatron_alone() -> None:
    with pytest.raises(UsageError, match="small has no latent attention; attention would fit"):
        run(SMALL, gpu="h100", recompute_rows="mla_up_proj")
    with pytest.raises(UsageError, match=r"under torchtitan.*--engine-preset megatron would fit"):
        run(EXPERTS, gpu="h100", recompute_rows="mla_up_proj", engine_preset="torchtitan")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"recompute_rows": "mlp_akt"}, "norm; did you mean mlp_act?"),
        (
            {"recompute_rows": "norm,"},
            "found nothing, expected words of attention, mla_up_proj, mlp_act, moe_act, norm",
        ),
        ({"recompute_rows": "norm", "recompute": "full"}, "--recompute none or selective would fit"),
    ],
)
def test_what_does_not_go_together_says_what_would(given: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        run(SMALL, gpu="h100", **given)
    assert words in str(caught.value)


def test_some_layers_run_again_as_a_whole_and_the_others_keep_their_activations() -> None:
    """The first layers of a virtual stage, or the last of every few (every second one of torchtitan's)."""
    common: dict[str, Any] = {"world": 2, "pp": 2, "gpu": "h100", "global_batch": 4}

    def layers_again(**parameters: Any) -> list[list[int]]:
        workload = run(SMALL, **common, **parameters).workload
        layers = [[row for row in stage.chunks[0] if row in workload.recomputed] for stage in workload.stages]
        ends = [
            [row for row in stage.chunks[0] if workload.name[row] == "mlp_row"] for stage in workload.stages
        ]
        return [
            [stage_ends.index(row) for row in rows] for rows, stage_ends in zip(layers, ends, strict=True)
        ]

    assert layers_again(recompute="full") == [[0, 1, 2, 3]] * 2
    assert layers_again(recompute="full", recompute_layers="1") == [[0]] * 2
    assert layers_again(recompute="full", recompute_layers="1/2") == [[1, 3]] * 2
    assert layers_again(recompute="full", recompute_layers="2/3", stage_layers="5,3") == [[1, 2, 4], [1, 2]]

    def held_and_flops(**parameters: Any) -> tuple[list[int], float]:
        rows = ModelMaker("m", SMALL).make_rows(ModelParameters(**common, **parameters))
        memory = [chunk_activations(rows.training, stage)[0] for stage in (0, 1)]
        model, hardware = step_flops(rows.training)
        return memory, hardware / model

    none, none_flops = held_and_flops(recompute="none")
    full, full_flops = held_and_flops(recompute="full")
    some, some_flops = held_and_flops(recompute="full", recompute_layers="1")
    assert some == [kept - (kept - freed) // 4 for kept, freed in zip(none, full, strict=True)]
    assert some_flops - none_flops == pytest.approx((full_flops - none_flops) / 4)
    # All of them is what it is without the flag, to the nanosecond; none would be --recompute none.
    whole = run(SMALL, **common, recompute="full").step_time_ns
    assert run(SMALL, **common, recompute="full", recompute_layers="4").step_time_ns == whole
    half = run(SMALL, **common, recompute="full", recompute_layers="1/2").step_time_ns
    assert run(SMALL, **common, recompute="full", recompute_layers="2").step_time_ns == half
    assert run(SMALL, **common).step_time_ns < half < whole


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"recompute_layers": "2"}, "--recompute none runs no whole layer again; --recompute full would fit"),
        ({"recompute": "full", "recompute_layers": "9"}, "a virtual stage has 8 layers; at most 8 would fit"),
        ({"recompute": "full", "recompute_layers": "2/2"}, "expected layers of a virtual stage, like 4, or"),
        ({"recompute": "full", "recompute_layers": "x"}, "expected layers of a virtual stage, like 4, or"),
        ({"recompute": "full", "recompute_layers": "1", "offload": 5.0}, "one of the two would fit"),
    ],
)
def test_layers_that_cannot_run_again_say_what_would_fit(given: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        run(SMALL, gpu="h100", **given)
