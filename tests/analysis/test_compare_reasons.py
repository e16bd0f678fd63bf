"""Why one run takes longer than another: the reasons that a comparison gives."""

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.comparison import Comparison
from simcore.comparison.op_words import cost_words
from simcore.comparison.reasons import REASONS
from simcore.parameters import FLAGS
from simcore.render.report.comparison import comparison_json
from simcore.simulation import simulate
from tests.analysis.booking import run
from tests.analysis.test_compare import (
    AGAINST_EACH_OTHER,
    CHANGES,
    FEW,
    changed,
    compared,
    of_four,
    seed,
    seed_run,
)
from tests.says import figures
from tests.says import said as says
from tests.strategies import Case, Cell, Row, cases, layer


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"schedule": "zb-h1"}, "weight gradients fill the wait for the next backward"),
        ({"schedule": "gpipe"}, "1f1b and gpipe leave as many slots empty, in another order"),
        ({"schedule": "layer-loop"}, "without a pipeline no stage waits for another"),
        (
            {"schedule": "interleaved", "virtual_stages": 8},
            "8 virtual stages make each empty slot of the pipeline 1/8 as long",
        ),
        ({"microbatches": 8}, "a step has 8 micro-batches in place of 4"),
        ({"stage_layout": "megatron"}, "embedding rows run on the first stage alone, final"),
        ({"overlap_grad_reduce": True}, "gradients are reduced beside the last backward"),
        ({"overlap_param_gather": True}, "parameters are gathered beside the first forward"),
        ({"comm_scale": 2.0}, "dp collectives take 754.9 ms a rank, before 377.5 ms"),
        ({"dim": ("switch:1024:50:500",)}, "tp collectives take"),
        ({"dim": ("switch:8:300:500", "switch:128:50:1000")}, ", on dim 0 (tp; 300 GB/s, before 450)"),
        ({"dim": ("switch:8:450:500", "switch:128:9:1000")}, ", on dim 1 (dp, pp; 9 GB/s, before 50)"),
        ({"compute_scale": 0.5}, "each rank computes 902.7 ms, before 1.805 s"),
        ({"layer_scale": ("mlp_row:fwd=2",)}, "each rank computes"),
        ({"time_scale": ("layer mlp_row=2",)}, "layer mlp_row takes 2 times as long"),
        (
            {"slow_rank": ("37=1.3",)},
            "rank 37 computes 1.3 times as long, and the ranks that work with it wait",
        ),
        ({"slow_link": ("1:5=0.2",)}, "port 1:5=0.2 slows down what goes through it"),
        ({"pp": 8}, "tp 8 x dp 16 x pp 8, before tp 8 x dp 32 x pp 4"),
        ({"rank_order": "tp-pp-dp", "tp": 16}, "ranks, and with them groups, lie elsewhere"),
    ],
)  # fmt: skip
def test_each_kind_of_change_has_its_reason(change: dict[str, Any], words: str) -> None:
    assert words in of_four(**change).why_text


@settings(max_examples=60)
@given(cases(), st.sampled_from([*CHANGES, *AGAINST_EACH_OTHER]))
def test_what_is_named_is_the_largest_part_that_changes_as_the_step_does(
    case: Case, change: dict[str, Any]
) -> None:
    found = compared(simulate(*case), changed(case, change))
    sign, leading = found.difference_ns, found.ops.main_cause
    if leading is None:
        assert found.why_text.startswith("nothing changes")
    elif not sign:
        assert says([found.why_text], "equal", leading.most.words)
    else:
        assert leading.most.ns * sign > 0
        assert abs(leading.most.ns) == max(abs(one.ns) for one in found.parts if one.ns * sign > 0)
        assert found.why_text.startswith(leading.words)
        for part in leading.named_parts:
            assert part in found.parts
            assert 2 * abs(part.ns) >= abs(leading.most.ns)


def test_what_goes_against_the_difference_is_named_behind_what_goes_with_it() -> None:
    found = seed(dim=("switch:8:409:500", "switch:128:55:1000"))
    assert found.difference_ns == 9_157_497
    against = ("exposed tp +41.416 ms", "though", "exposed dp -30.550 ms")
    assert says([found.why_text], *against, "tp", "250.0 ms", "228.6 ms", "dim 0 (tp; 409 GB/s", "450")


def test_the_way_back_has_reasons_too() -> None:
    for change, words in (
        ({"schedule": "zb-h1"}, "weight gradients no longer fill the wait for the next backward"),
        (
            {"schedule": "interleaved", "virtual_stages": 8},
            "without virtual stages each empty slot of the pipeline is 8 times as long",
        ),
        ({"schedule": "layer-loop"}, "stages of a pipeline wait for each other"),
        ({"slow_rank": ("37=1.3",)}, "rank 37 no longer computes 1.3 times as long"),
        ({"slow_link": ("1:5=0.2",)}, "nothing waits for a slow port any more"),
        ({"overlap_grad_reduce": True}, "gradients are reduced after the last backward"),
        ({"overlap_param_gather": True}, "parameters are gathered at the end of the step"),
        ({"stage_layout": "megatron"}, "every stage runs the embedding, final and loss rows too"),
    ):
        assert words in Comparison(seed_run(**FEW, **change), seed_run(**FEW)).why_text


def test_every_parameter_but_no_fold_has_a_reason() -> None:
    of_runs = {flag.field for flag in FLAGS if "workload" in flag.of}
    assert set(REASONS) == of_runs - {"no_fold"} | {"without_lines"}


def test_three_changes_give_two_reasons_and_say_that_there_are_more() -> None:
    found = seed(schedule="zb-h1", compute_scale=0.5, comm_scale=2.0)
    of_path = ("compute -5.966 s", "drain -3.060 s")
    assert says(
        [found.why_text], *of_path, "3.607 s", "7.213 s", "weight gradients fill", "(and --comm-scale)"
    )


def test_a_change_that_explains_nothing_named_is_counted_and_not_said() -> None:
    found = seed(schedule="zb-h1", comm_scale=1.01, compute_scale=1.01)
    assert says([found.why_text], "drain -4.101 s", "weight gradients fill", "2 more changes")
    assert len(figures(found.why_text)) == 2


def test_the_slow_rank_that_is_named_is_on_the_path() -> None:
    found = of_four(slow_rank=("5=1.001", "837=1.3"))
    assert says([found.why_text], "rank 837", "1 more", "1.3 times")
    hidden = of_four(slow_rank=("5=1.000001",), compute_scale=1.1)
    assert says([hidden.why_text], "mean rank", "1.986 s", "1.805 s", "(and --slow-rank)")
    more = Comparison(of_four(slow_rank=("37=1.3",)).b, of_four(slow_rank=("37=1.5",)).b)
    assert says([more.why_text], "rank 37", "1.5 times", "1.3 times")


def test_what_makes_up_for_each_other_is_said_of_equal_steps() -> None:
    """1000 ns more of compute, and an all-reduce that is as much shorter."""
    cell = Cell(1000, "ALLREDUCE", "tp", 1 << 20)
    step = run([Row("a", cell)], {"tp": 2}).step_time_ns
    longer = Row("a", Cell(step - 1000 + 500))
    found = compared(run([Row("a", cell)], {"tp": 2}), run([longer, layer("b", 500)], {"tp": 2}))
    assert found.difference_ns == 0
    (compute,) = re.findall(r"compute ([+-]).*? ms", found.why_text)
    (exposed,) = re.findall(r"exposed tp ([+-]).*? ms", found.why_text)
    assert (compute, exposed) == ("+", "-")
    assert "equal" in found.why_text


@pytest.mark.parametrize(
    ("change", "words"),
    [
        # Stage 0 of 1f1b keeps as many as there are stages; zb-h1 keeps as many everywhere.
        ({"schedule": "zb-h1"}, "4 micro-batches in memory, as in A; stage 3 keeps 4, in A 1"),
        (
            {"schedule": "gpipe", "microbatches": 8},
            "8 micro-batches in memory, in A 4; stage 3 keeps 8, in A 1",
        ),
        ({"pp": 2}, "2 micro-batches in memory, in A 4"),
        ({"compute_scale": 2.0}, ""),
    ],
)  # fmt: skip
def test_the_cost_is_the_peak_over_the_stages_and_then_what_moved(change: dict[str, Any], words: str) -> None:
    """Counted again by hand: the most that any class keeps, whatever its stage."""
    found = of_four(**change)
    assert cost_words(found.ops) == (f"Cost: at most {words}" if words else "")
    peaks = [
        max(
            side.simulation.timeline.stage_program(number).peak_microbatches
            for number in range(len(side.accounts))
        )
        for side in (found.a, found.b)
    ]
    if found.ops.memory_change is not None:
        assert [found.ops.memory_change.a_peak, found.ops.memory_change.b_peak] == peaks
        assert comparison_json(found)["peak_microbatches"]["b_peak"] == peaks[1]
    else:
        assert peaks[0] == peaks[1]
