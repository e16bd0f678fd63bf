"""The operations of a measured run: their figures are those of the report, and add up to the step.

Seen to fail on these bugs, planted one at a time: the mean of all ranks of the run, not of those that have
the operation; waiting counted as an operation's own; the longest run looked for on the first rank alone; the
waiting of sub-operations left out of their operation's; communication timed from another start; what lies on
the path and has no account left out of the report.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.render.report.pages import run_json
from simcore.replay.operations import Operations
from simcore.replay.parameters import Scales
from simcore.runs.measured import RecordedRun
from simcore.sources.measured import BUBBLE, IDLE, WAIT

from .made_steps import Factors, Layout, actions, made_run, run_apart, simulated, trace_text
from .test_less_work import _LAYOUTS
from .test_replay_of_real_runs import RUNS, opened
from .traces import Op, read


def text_of_step(layout: Layout, seed: int) -> str:
    steps = actions(layout, Random(seed))
    return trace_text(layout, steps, simulated(steps, Factors()))


def made_step(layout: Layout, seed: int = 0) -> RecordedRun:
    return RecordedRun(made_run(text_of_step(layout, seed), layout))


@cache
def four() -> RecordedRun:
    """Four ranks of two stages, two micro-batches, two collectives beside compute."""
    return made_step(Layout(2, 1, 2, 2, asynchronous=True), 3)


def assert_as_reported(results: RecordedRun) -> None:
    """The figures of all ranks together are those of `report --json`."""
    report: dict[str, Any] = run_json(results)
    operations = Operations(results)
    layers = {(one["operation"], None if one["name"] == one["operation"] and not inside else one["name"]): one
              for one, inside in _with_inside(report["layers"], results)}  # fmt: skip
    reported: dict[tuple[str, str | None], list[dict[str, Any]]] = {}
    for one in (*report["measured"]["operations"], *report["measured"]["sub_operations"]):
        key = (one["name"], None) if one["parent"] is None else (one["parent"], one["name"])
        reported.setdefault(key, []).append(one)
    slack = {one["name"]: one["slack_ns"] for one in report["measured"]["operations"]}
    assert {one.key for one in operations.together} == reported.keys()
    for one in operations.together:
        key = one.key
        some = reported[key]
        assert one.kinds == tuple(other["kind"] for other in some)
        assert one.runs.count == sum(other["count"] for other in some)
        assert one.runs.measured == sum(other["measured"] for other in some)
        if results.scales is None:
            assert (one.runs.total_ns or 0) == sum(other["total_ns"] for other in some)
            assert (one.runs.most_ns or 0) == max(other["most_ns"] for other in some)
            timed = [other["least_ns"] for other in some if other["measured"]]
            assert (one.runs.least_ns or 0) == min(timed, default=0)
        layer = layers.get(key)
        use = (one.use.compute_ns, one.use.exposed_ns, operations.critical_ns(one))
        if layer is None:
            assert use == (0, 0, 0)
        else:
            assert use == (layer["compute_ns"], layer["exposed_ns"], layer["critical_ns"])
            assert operations.slack_ns(one) == layer["slack_ns"]
        if not one.inside:
            assert operations.slack_ns(one) == slack[one.name]


def _with_inside(layers: list[dict[str, Any]], results: RecordedRun) -> Iterator[tuple[dict[str, Any], bool]]:
    """Each layer, and whether it is the sub-operation of an operation of the same name: that comes second."""
    seen = set()
    for one in layers:
        yield one, one["name"] in seen and one["name"] == one["operation"]
        seen.add(one["name"] if one["name"] == one["operation"] else None)


@pytest.mark.parametrize(("name", "stamp"), RUNS)
def test_the_figures_of_a_real_trace_are_those_of_its_report(name: str, stamp: str) -> None:
    results = RecordedRun(opened(name, stamp))
    assert_as_reported(results)
    assert_as_reported(results.with_scales(Scales(compute=0.5)))


@settings(max_examples=60)
@given(_LAYOUTS, st.integers(0, 10**6), st.booleans(), st.sampled_from([None, 0.5, 2.0]))
def test_the_figures_of_a_made_step_are_those_of_its_report(
    layout: Layout, seed: int, apart: bool, compute: float | None
) -> None:
    run = (run_apart if apart else made_run)(text_of_step(layout, seed), layout)
    results = RecordedRun(run, None if compute is None else Scales(compute))
    assert_as_reported(results)
    assert_parts_sum_to_the_step(results)


def assert_parts_sum_to_the_step(results: RecordedRun) -> None:
    """What is an operation's own, what it waits and what no operation runs are each rank's step."""
    operations = Operations(results)
    for rank, accounts in enumerate(results.accounts):
        mine = [one for one in operations.of_each_rank if one.runs.rank == rank]
        own = sum(one.cost_ns for one in mine)
        waits = sum(one.runs.waits_ns for one in mine if not one.inside)
        assert waits == accounts.total_ns[WAIT] + accounts.total_ns[BUBBLE]
        assert own + waits + accounts.total_ns[IDLE] == results.step_time_ns
        for one in mine:
            assert one.runs.ranks == (rank,)
            assert one.runs.measured < one.runs.count or one.runs.waits_ns <= one.runs.total_ns
    for one in operations.together:
        mine = [other for other in operations.of_each_rank if other.key == one.key]
        assert one.runs.ranks == tuple(other.runs.rank for other in mine)
        assert (one.runs.total_ns or 0) == sum(other.runs.total_ns or 0 for other in mine)
        assert one.cost_ns == max(other.cost_ns for other in mine)
        assert one.runs.waits_ns == sum(other.runs.waits_ns for other in mine)
        assert one.runs.mean_own_ns == pytest.approx(sum(other.cost_ns for other in mine) / len(mine))
        if one.runs.total_ns is not None:
            assert one.runs.mean(one.runs.total_ns) == pytest.approx(
                sum(other.runs.total_ns or 0 for other in mine) / len(mine)
            )
        assert all(other.runs.mean_own_ns == one.runs.mean_own_ns for other in mine)


def test_runs_of_an_operation_in_different_groups_are_one_line_with_both_kinds() -> None:
    text = "\n".join(
        op.line() for op in (Op("reduce", "10", "4", group="tp"), Op("reduce", "20", "6", group="dp"))
    )
    (one,) = Operations(RecordedRun(read(text))).together
    assert (one.kinds, one.runs.count, one.runs.total_ns, one.runs.least_ns, one.runs.most_ns) == (
        ("tp", "dp"), 2, 10_000_000, 4_000_000, 6_000_000,
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_the_bandwidth_is_of_the_time_from_the_last_arrival_to_the_first_departure(seed: int) -> None:
    layout = Layout(2, 1, 2, 3)
    steps = actions(layout, Random(seed))
    times = simulated(steps, Factors())
    operations = Operations(made_step(layout, seed))
    calls: dict[object, list[tuple[int, int]]] = {}
    for todo, spans in zip(steps, times, strict=True):
        for action, span in zip(todo, spans, strict=True):
            if action.sub == "linear" and action.op == "forward_step":
                calls.setdefault(action.key, []).append(span)
    ns = [min(end for _, end in spans) - max(start for start, _ in spans) for spans in calls.values()]
    one = next(one for one in operations.together if one.key == ("forward_step", "linear"))
    size = 4096 * 5120 * 4
    assert operations.sizes(one) == (size, size)
    assert operations.find_transfers(one) == (len(ns), size * len(ns), sum(ns))
    assert operations.find_transfers(one).algbw == pytest.approx(size * len(ns) / sum(ns))


@pytest.mark.parametrize("seed", range(4))
def test_a_message_takes_from_the_start_of_its_send_to_its_end(seed: int) -> None:
    sends = [Op("send_forward", f"{1000 + 10 * batch + 3 + seed}", "3", batch, group="pp", shape="[1000]",
                dtype="torch.int8") for batch in range(2)]  # fmt: skip
    receives = [Op("recv_forward", f"{1000 + 10 * batch + 4 + seed}", f"{4 + seed}", batch, group="pp",
                   stage=1, shape="[1000]", dtype="torch.int8") for batch in range(2)]  # fmt: skip
    text = "".join(op.line(rank) + "\n" for rank, ops in enumerate((sends, receives)) for op in ops)
    operations = Operations(RecordedRun(read(text)))
    for one in operations.together:
        assert operations.find_transfers(one) == (2, 2000, 6_000_000)


def test_communication_beside_compute_and_of_ranks_apart_has_no_bandwidth() -> None:
    operations = Operations(four())
    for one in operations.together:
        if one.name in ("first_async", "second_async"):
            assert not operations.find_transfers(one).times
            assert operations.overlaps_compute(one)
    layout = Layout(2, 1, 2, 2)
    apart = Operations(RecordedRun(run_apart(text_of_step(layout, 1), layout)))
    assert not any(apart.find_transfers(one).times for one in apart.together)
