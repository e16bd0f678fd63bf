"""What each operation waits: how long, for whom, where, and what that rank was at."""

from __future__ import annotations

import re
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.render.report.measured import OPERATIONS
from simcore.render.report.section import PageOptions
from simcore.replay.waits import Wait, waits_by_item
from simcore.runs.measured import RecordedRun
from simcore.sources.measured import BUBBLE, WAIT
from tests.measured.made_steps import Factors, Layout, actions, made_run, simulated, trace_text
from tests.measured.test_replay_by_hand import MS, SLOW_RANK, op, run_of
from tests.measured.traces import Sub

_LAYOUTS = st.builds(
    Layout, st.sampled_from([1, 2]), st.sampled_from([1, 2]), st.sampled_from([1, 2, 3]), st.integers(1, 3)
)


def test_the_early_rank_waits_for_the_slow_one_and_what_it_computed() -> None:
    results = RecordedRun(run_of(SLOW_RANK, 2))
    # dp_allreduce is the second operation of each rank.
    assert waits_by_item(results, 0) == {1: [Wait(1, "dp_allreduce", False, "forward_step", 20 * MS, 1)]}
    assert waits_by_item(results, 1) == {}


def test_a_receive_waits_for_the_sender_and_a_gap_before_the_sending_is_no_cause() -> None:
    text = (
        op(0, "forward_step", 0, 30)
        + op(0, "send_forward", 31, 32, "pp")
        + op(1, "recv_forward", 0, 32, "pp", stage=1)
        + op(1, "forward_step", 32, 40, stage=1)
    )
    results = RecordedRun(run_of(text, 2, pp=2))
    (wait,) = waits_by_item(results, 1)[0]
    assert wait == Wait(0, "recv_forward", True, "forward_step", 31 * MS, 1)


def test_the_table_of_operations_says_how_much_of_the_longest_is_waiting() -> None:
    lines = OPERATIONS.lines(RecordedRun(run_of(SLOW_RANK, 2)), PageOptions())
    title, *table = lines
    assert re.search(r"\bms\b.*\bwaits\b", title)
    assert table == [
        "  operation       kind       count   mean  least   most  waits  most is on",
        "  forward_step    forward        2  20.00  10.00  30.00   0.00  rank 1, micro-batch 0",
        "  dp_allreduce    dp             2  15.00   5.00  25.00  20.00  rank 0, micro-batch 0",
        "  optimizer_step  optimizer      2   4.00   4.00   4.00   0.00  rank 0, micro-batch 0",
    ]
    # Where nobody is known to wait there is no such column.
    alone = OPERATIONS.lines(RecordedRun(run_of(op(0, "forward_step", 0, 10), 1)), PageOptions())
    assert not any("waits" in line for line in alone[:2])


def test_of_a_sub_operation_its_own_waiting_is_said() -> None:
    early = Sub("1030.00", "20.00", "linear"), Sub("1045.00", "5.00", "layernorm")
    late = Sub("1030.00", "0.10", "linear"), Sub("1045.00", "0.10", "layernorm")
    text = op(0, "forward_step", 0, 60, subs=early) + op(1, "forward_step", 0, 60, subs=late)
    lines = OPERATIONS.lines(RecordedRun(run_of(text, 2, tp=2)), PageOptions())
    assert lines[2].split(", ")[0].split()[-5:] == ["60.00", "60.00", "24.80", "rank", "0"]
    assert lines[-2].split(", ")[0].split()[-4:] == ["20.00", "19.90", "rank", "0"]
    assert lines[-1].split(", ")[0].split()[-4:] == ["5.00", "4.90", "rank", "0"]


@settings(max_examples=60, deadline=None)
@given(_LAYOUTS, st.integers(0, 10**6))
def test_the_waits_of_all_operations_sum_to_the_accounts_and_to_who_waits_for_whom(
    layout: Layout, seed: int
) -> None:
    steps = actions(layout, Random(seed))
    results = RecordedRun(made_run(trace_text(layout, steps, simulated(steps, Factors())), layout))
    pairs: dict[tuple[int, int, str], int] = {}
    for rank, account in enumerate(results.accounts):
        trace, found = results.measured.ranks[rank], waits_by_item(results, rank)
        count = len(trace.ops)
        whole = [one for item, waits in found.items() if item < count for one in waits]
        assert sum(one.ns for one in whole) == account.total_ns[WAIT] + account.total_ns[BUBBLE]
        for one in whole:
            key = (trace.rank, results.measured.ranks[one.late].rank, one.name)
            pairs[key] = pairs.get(key, 0) + one.ns
        for item, waits in found.items():
            if item >= count:
                # What a sub-operation waits is a part of what its operation waits.
                parent = found[trace.subs.parent[item - count]]
                assert sum(one.ns for one in waits) <= sum(one.ns for one in parent)
    said: dict[tuple[int, int, str], int] = {}
    for one in results.waiting:
        said[one.early, one.late, one.name] = said.get((one.early, one.late, one.name), 0) + one.ns
    assert pairs == said
