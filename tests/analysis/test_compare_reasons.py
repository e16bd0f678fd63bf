"""Why one run takes longer than another: the reasons that a comparison gives."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.analysis.compare import Change, leading_change
from simcore.analysis.compare.reasons import REASONS
from simcore.parameters import FLAGS, Parameters
from simcore.simulation import simulate
from simcore.workload import open_workload
from tests.analysis.test_compare import AGAINST_EACH_OTHER, CHANGES, changed, compared, seed
from tests.strategies import Case, cases

SEED_001 = "fixtures/001_moe_128npu_with_mistakes.txt"
SEED_002 = "fixtures/002_gpt_1024npu.txt"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"schedule": "zb-h1"}, "weight gradients fill the wait for the next backward"),
        ({"schedule": "gpipe"}, "1f1b and gpipe leave the same slots empty, in another order"),
        ({"schedule": "layer-loop"}, "without a pipeline no stage waits for another"),
        (
            {"schedule": "interleaved", "virtual_stages": 8},
            "chunks of 1/8 of a stage make the empty slots as much shorter",
        ),
        ({"microbatches": 32}, "15 empty slots stand beside 32 micro-batches in place of 16"),
        ({"stage_layout": "megatron"}, "embedding rows run on the first stage alone, final"),
        ({"overlap_grad_reduce": True}, "gradients are reduced beside the last backward"),
        ({"overlap_param_gather": True}, "parameters are gathered beside the first forward"),
        ({"comm_scale": 2.0}, "each rank communicates 1.169 s, before 584.8 ms"),
        ({"dim": ("switch:1024:50:500",)}, "each rank communicates"),
        ({"compute_scale": 0.5}, "each rank computes 3.607 s, before 7.213 s"),
        ({"layer_scale": ("mlp_row:fwd=2",)}, "each rank computes"),
        ({"slow_rank": ("37=1.3",)}, "rank 37 computes 1.3 times as long, and who works with it waits"),
        ({"slow_link": ("1:5=0.2",)}, "port 1:5=0.2 slows down what goes through it"),
        ({"pp": 8}, "tp 8 x dp 16 x pp 8, before tp 8 x dp 8 x pp 16"),
        ({"rank_order": "tp-pp-dp", "microbatches": 8}, "ranks, and with them groups, lie elsewhere"),
    ],
)  # fmt: skip
def test_each_kind_of_change_has_its_reason(change: dict[str, Any], words: str) -> None:
    assert words in seed(**change).why


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=8))
def test_of_changes_that_sum_to_the_difference_the_leading_one_has_its_sign(changes: list[int]) -> None:
    """Seen to fail on the largest change whatever its sign, and on an opposing one of the same sign."""
    difference = sum(changes)
    most, against = leading_change([Change("", 10, 10 + ns) for ns in changes], difference)
    if difference:
        assert most.ns * difference > 0
    alike = [abs(ns) for ns in changes if ns * most.ns > 0]
    others = [abs(ns) for ns in changes if ns * most.ns < 0]
    assert abs(most.ns) == max(alike, default=0)
    assert (against is None) == (2 * max(others, default=0) < abs(most.ns) or not others)
    if against is not None:
        assert against.ns * most.ns < 0
        assert abs(against.ns) == max(others)


@settings(max_examples=60)
@given(cases(), st.sampled_from([*CHANGES, *AGAINST_EACH_OTHER]))
def test_the_account_that_explains_the_difference_changes_as_the_step_does(
    case: Case, change: dict[str, Any]
) -> None:
    found = compared(simulate(*case), changed(case, change))
    most, against = found.leading
    sign = found.difference_ns
    named = [one.ns for one in found.accounts if one.name not in ("bubble", "idle")]
    named.append(found.account_change("bubble") + found.account_change("idle"))
    # Means of ranks are rounded: a difference of a nanosecond may be none of theirs.
    if any(ns * sign > 0 for ns in named):
        assert most.ns * sign > 0
        assert abs(most.ns) == max(abs(ns) for ns in named if ns * sign > 0)
    if against is not None:
        assert against.ns * most.ns < 0
        assert f", though {against.name} {'+' if against.ns > 0 else '-'}" in found.why
    if most.ns:
        assert found.why.startswith(f"{most.name} {'+' if most.ns > 0 else '-'}")


def test_what_goes_against_the_difference_is_named_behind_what_goes_with_it() -> None:
    found = seed(dim=("switch:8:409:500", "switch:128:55:1000"))
    assert found.difference_ns == 9_157_497
    assert found.why == (
        "exposed tp +21.402 ms, though exposed dp -30.550 ms, on the mean rank: "
        "each rank communicates 573.5 ms, before 584.8 ms"
    )


@pytest.mark.slow
def test_the_way_back_has_reasons_too() -> None:
    workload = open_workload(SEED_002)
    plain = simulate(workload, Parameters())
    for change, words in (
        ({"schedule": "zb-h1"}, "weight gradients no longer fill the wait for the next backward"),
        (
            {"schedule": "interleaved", "virtual_stages": 8},
            "whole stages in place of chunks make the empty slots 8 times as long",
        ),
        ({"schedule": "layer-loop"}, "stages of a pipeline wait for each other"),
        ({"slow_rank": ("37=1.3",)}, "no rank that was slow is waited for any more"),
        ({"slow_link": ("1:5=0.2",)}, "no slow port is waited for any more"),
        ({"overlap_grad_reduce": True}, "gradients are reduced after the last backward"),
        ({"overlap_param_gather": True}, "parameters are gathered at the end of the step"),
        ({"stage_layout": "megatron"}, "every stage runs the embedding, final and loss rows too"),
    ):
        assert words in compared(simulate(workload, Parameters(**change)), plain).why


def test_every_parameter_but_no_fold_has_a_reason() -> None:
    assert set(REASONS) == {flag.field for flag in FLAGS} - {"no_fold"}


def test_three_changes_give_two_reasons_and_say_that_there_are_more() -> None:
    found = seed(schedule="zb-h1", compute_scale=0.5, comm_scale=2.0)
    assert found.why.endswith(" (and 1 more changes)") or found.why.count(";") == 1
