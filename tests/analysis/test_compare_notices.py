"""What is said of two runs before their difference: another model, and changes without effect."""

from __future__ import annotations

from typing import Any

from simcore.comparison import Comparison
from simcore.parameters import Parameters
from simcore.render.report.comparison import comparison_page
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import simulate
from simcore.workload import open_workload
from tests.says import said as says

SEED_000, SEED_002 = "fixtures/000_gpt13b_tp4_old_header.txt", "fixtures/002_gpt_1024npu.txt"
SEED_001 = "fixtures/001_moe_128npu_with_mistakes.txt"


def compared(path: str, **other: Any) -> Comparison:
    workload = open_workload(path)
    a, b = (SimulatedRun(simulate(workload, one)) for one in (Parameters(), Parameters(**other)))
    return Comparison(a, b)


def said_first(comparison: Comparison) -> list[str]:
    """The lines of the page before the figures of A."""
    lines = comparison_page(comparison).splitlines()
    end = next(place for place, line in enumerate(lines) if line.startswith("A  "))
    return [line for line in lines[:end] if not line.startswith("Compare ")]


def test_another_pp_is_not_the_same_model_and_that_is_said_first() -> None:
    comparison = compared(SEED_002, pp=8)
    (line,) = said_first(comparison)
    assert says([line], "B", f"{comparison.b.model.other_model}.")
    assert says([line], "pp 8", "pp 16", "half")
    assert said_first(compared(SEED_001, schedule="zb-h1")) == []


def test_a_parameter_without_effect_is_said_first_and_is_no_reason() -> None:
    comparison = compared(SEED_000, overlap_grad_reduce=True, compute_scale=1.2)
    (line,) = said_first(comparison)
    assert says([line], "--overlap-grad-reduce", "no effect", "layer-loop")
    assert "compute" in comparison.why_text
    assert "overlap" not in comparison.why_text
    assert "gradient" not in comparison.why_text
    # Where it has one nothing is said of it.
    assert said_first(compared(SEED_001, overlap_grad_reduce=True)) == []
