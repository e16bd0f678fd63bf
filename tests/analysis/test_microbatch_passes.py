"""When each micro-batch goes forward and backward, how long that takes, and the longest waits."""

from __future__ import annotations

from array import array
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.analysis.equal_ranks import find_late_classes
from simcore.analysis.microbatch_passes import Pass, find_pass
from simcore.layout import GROUP_KINDS, Layout
from simcore.runs.simulated import SimulatedRun
from simcore.sources.simulated import ACCOUNTS, WAIT
from tests.strategies import degrees, layer, make_workload
from tests.tui.made_runs import run, seed, seed_workload, small, two_stages

FREE = {"comm_scale": 0.0}
# Seed 002 without communication: the file gives F, I and W of one micro-batch.
F, I, W = 181_459_408, 133_164_829, 136_029_688  # noqa: E741


def test_a_stage_goes_forward_and_backward_once_for_each_micro_batch() -> None:
    for number in range(16):
        passes = seed(schedule="1f1b").passes(number)
        for direction in ("forward", "backward"):
            assert [one.microbatch for one in passes if one.direction == direction] == list(range(16))
        assert len(passes) == 32
        assert {one.parts for one in passes} == {1}


def test_a_pass_takes_as_long_as_one_micro_batch_of_the_file() -> None:
    passes = seed(**FREE).passes(5)
    assert {one.end_ns - one.start_ns for one in passes if one.direction == "forward"} == {F}
    lengths = {one.end_ns - one.start_ns for one in passes if one.direction == "backward"}
    assert lengths == {I + W, I + W - 985_820}


def test_zb_h1_has_passes_of_input_and_of_weight_gradients() -> None:
    passes = seed(schedule="zb-h1", **FREE).passes(5)
    assert {one.direction for one in passes} == {"forward", "input grad", "weight grad"}
    lengths = {one.end_ns - one.start_ns for one in passes if one.direction == "input grad"}
    assert lengths == {I}
    lengths = {one.end_ns - one.start_ns for one in passes if one.direction == "weight grad"}
    assert lengths == {W, W - 985_820}


def test_a_stage_of_several_chunks_does_a_micro_batch_in_parts() -> None:
    passes = seed(schedule="interleaved", virtual_stages=4).passes(5)
    assert len(passes) == 2 * 4 * 16
    assert {one.parts for one in passes} == {4}
    parts = [one.part for one in passes if (one.microbatch, one.direction) == (3, "forward")]
    assert parts == [0, 1, 2, 3]


def test_layer_loop_counts_the_blocks_of_the_file() -> None:
    passes = seed(schedule="layer-loop").passes(0)
    assert all(one.microbatch >= 0 for one in passes)


@pytest.mark.parametrize("schedule", ["1f1b", "gpipe", "zb-h1"])
def test_passes_follow_one_another_and_hold_the_compute_of_their_micro_batch(schedule: str) -> None:
    results = run(two_stages(4), dim=("switch:2:4:50", "switch:4:2:300"), schedule=schedule)
    for number in range(len(results.simulation.timeline.classes)):
        passes = results.passes(number)
        assert all(one.end_ns <= after.start_ns for one, after in pairwise(passes))
        ops, start, end = results.simulation.timeline.columns(number)
        for op, microbatch in enumerate(ops.microbatch):
            if microbatch >= 0 and ops.stream[op] == 0:
                holding = [
                    one for one in passes if one.start_ns <= start[op] and end[op] <= one.end_ns
                    and one.microbatch == microbatch
                ]  # fmt: skip
                assert len(holding) == 1


def check_waits(results: SimulatedRun) -> None:
    """Idle ends last, else the longest first; every wait once, of each class and of all."""
    together = []
    for number, accounts in enumerate(results.accounts):
        waits = [wait.span for wait in results.lanes.waits(number)]
        keys = [
            (ACCOUNTS[accounts.account[one]] == "idle", accounts.edge[one] - accounts.edge[one + 1])
            for one in waits
        ]
        assert keys == sorted(keys)
        assert keys == [(wait.is_idle, wait.minus_ns) for wait in results.lanes.waits(number)]
        kinds = [ACCOUNTS[account] in ("wait", "bubble", "idle") for account in accounts.account]
        assert sorted(waits) == [segment for segment, is_wait in enumerate(kinds) if is_wait]
        together += [(*key, number, one) for key, one in zip(keys, waits, strict=True)]
    everywhere = [(number, wait.span) for number, wait in results.lanes.all_waits()]
    assert everywhere == [(number, segment) for *_, number, segment in sorted(together)]


def test_waits_come_by_their_length() -> None:
    check_waits(small())
    check_waits(seed(schedule="1f1b"))


def test_a_wait_is_for_the_slow_member_of_the_group() -> None:
    results = run(seed_workload(), slow_rank=("37=1.3",))
    timeline = results.simulation.timeline
    slow = timeline.folding.class_of(37)
    found = set()
    for number, accounts in enumerate(results.accounts):
        for segment, account in enumerate(accounts.account):
            if account == WAIT:
                found.update(find_late_classes(timeline, results.accounts, number, segment))
    assert slow in found
    # Ranks that share a group with 37 wait for it alone.
    near = timeline.folding.class_of(36)
    accounts = results.accounts[near]
    first = accounts.account.index(WAIT)
    assert find_late_classes(timeline, results.accounts, near, first) == [slow]


def test_of_two_slow_members_the_others_wait_for_the_slower_one() -> None:
    results = run(seed_workload(), slow_rank=("37=1.3", "38=1.1"))
    timeline = results.simulation.timeline
    near, slower = timeline.folding.class_of(36), timeline.folding.class_of(37)
    late = [
        find_late_classes(timeline, results.accounts, near, segment)
        for segment, account in enumerate(results.accounts[near].account)
        if account == WAIT and results.accounts[near].edge[segment + 1] > results.accounts[near].edge[segment]
    ]
    assert late[0] == [slower]


def test_what_is_no_wait_is_for_nobody() -> None:
    assert find_late_classes(small().simulation.timeline, small().accounts, 0, 0) == []


@settings(max_examples=60)
@given(degrees(), st.sampled_from(["tp-ep-dp-pp", "tp-pp-dp"]))
def test_the_group_of_a_rank_is_the_one_that_lists_it(sizes: object, order: str) -> None:
    layout = Layout(sizes.tp, sizes.ep, sizes.dp, sizes.pp, order)  # type: ignore[attr-defined]
    for kind in (*GROUP_KINDS, "pp"):
        for group in layout.groups(kind):
            for rank in group:
                assert list(layout.group_of(kind, rank)) == group


def test_bandwidths_are_those_of_nccl_tests() -> None:
    from simcore.analysis.span_words import find_op_facts

    simulation = seed(schedule="1f1b").simulation
    ops, start, end = simulation.timeline.columns(0)
    found = {}
    for op in range(len(ops)):
        facts = find_op_facts(simulation, 0, op)
        assert facts is not None
        if facts.kind not in found:
            found[facts.kind] = facts.bandwidths(simulation.layout), facts.bytes, end[op] - start[op]
    assert found["compute"][0] is None
    (algbw, busbw), size, ns = found["all-gather"]
    assert algbw == size / ns
    assert busbw == algbw * 7 / 8
    (algbw, busbw), size, ns = found["send"]
    assert busbw == algbw == size / ns


def test_a_step_without_micro_batches_has_no_passes() -> None:
    results = run(make_workload([layer("grad_norm", 5)], tp=1, pp=1, all_gpus=1))
    assert [one.microbatch for one in results.passes(0)] in ([], [0])


def test_a_pass_holds_its_start_but_not_its_end() -> None:
    passes = [
        Pass(0, "forward", 0, 1, 10, 20),
        Pass(0, "backward", 0, 1, 20, 30),
        Pass(1, "forward", 0, 1, 40, 50),
    ]
    starts = array("q", (one.start_ns for one in passes))
    times = (0, 9, 10, 19, 20, 29, 30, 39, 40, 49, 50)
    assert [find_pass(passes, starts, time) for time in times] == [
        None, None, 0, 0, 1, 1, None, None, 2, 2, None,
    ]  # fmt: skip
