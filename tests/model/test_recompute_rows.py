"""`--recompute-rows`: rows of a kind run again in backward, in time and in memory."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.analysis.model_figures import make_model_figures
from simcore.diagnostics import UsageError
from simcore.model.training import ROW_KINDS
from simcore.program.ops import PHASES
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import Simulation
from tests.model.test_experts import MODEL
from tests.model.test_megatron import EXPERTS, SMALL, run

# The rows that each kind runs again.
NAMES = {
    "attention": {"attention_core"},
    "mlp_act": {"mlp_act", "moe_act", "moe_shared_act"},
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
        if kinds & {"mlp_act", "norm"}:
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


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"recompute_rows": "mlp_akt"}, "norm; did you mean mlp_act?"),
        ({"recompute_rows": "norm,"}, "found nothing, expected words of attention, mlp_act, norm"),
        ({"recompute_rows": "norm", "recompute": "full"}, "--recompute none or selective would fit"),
    ],
)
def test_what_does_not_go_together_says_what_would(given: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        run(SMALL, gpu="h100", **given)
    assert words in str(caught.value)
