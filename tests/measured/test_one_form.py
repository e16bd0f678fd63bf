"""A measured run fills the keys of the report that a simulated one fills, and its accounts are the page's.

Seen to fail on these bugs, planted one at a time: host operations counted as idle twice; communication beside
compute left out of a stream; host gaps taken for an operation; waiting counted as computing on the page.
"""

from __future__ import annotations

import re
from random import Random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from simcore.measured import MeasuredRun
from simcore.render.report.pages import run_json, run_page
from simcore.replay.parameters import Scales
from simcore.runs.measured import RecordedRun
from tests.report.test_json_report import seed_report

from .made_steps import Factors, Layout, actions, made_run, simulated, trace_text
from .test_less_work import _LAYOUTS
from .test_replay_by_hand import SLOW_RANK, run_of
from .test_replay_of_real_runs import RUNS, opened


def check(results: RecordedRun) -> dict[str, Any]:
    """Holds the report of a run to its sums; gives it."""
    report = run_json(results)
    step = report["step_time_ns"]
    assert [one["ranks"] for one in report["classes"]] == [str(rank.rank) for rank in results.run.ranks]
    for one in report["classes"]:
        compute, exposed = sum(one["compute_ns"].values()), sum(one["exposed_ns"].values())
        six = (compute, exposed, one["wait_ns"], one["bubble_ns"], one["host_ns"], one["idle_ns"])
        assert sum(six) == step
        streams = dict(one["streams"])
        assert streams.pop("compute")["busy_ns"] == compute
        assert sum(use["exposed_ns"] for use in streams.values()) == exposed
        for use in streams.values():
            assert use["busy_ns"] == use["exposed_ns"] + (use["overlapped_ns"] or 0) <= step
        assert exposed <= one["comm_ns"] <= sum(use["busy_ns"] for use in streams.values())
        assert (one["overlapped_ns"] or 0) <= compute
    for stream in report["streams"]:
        busy = [one["streams"].get(stream["stream"], {"busy_ns": 0})["busy_ns"] for one in report["classes"]]
        assert (stream["busy_ns"], stream["most_busy_ns"]) == (round(sum(busy) / len(busy)), max(busy))
    idle = sum(one["end_ns"] - one["start_ns"] for one in report["critical_path"] if one["layer"] is None)
    assert sum(one["critical_ns"] for one in report["layers"]) + idle == step
    for layer in report["layers"]:
        assert layer["slack_ns"] == 0 or not layer["critical_ns"]
    return report


def made(layout: Layout, seed: int) -> MeasuredRun:
    steps = actions(layout, Random(seed))
    return made_run(trace_text(layout, steps, simulated(steps, Factors())), layout)


@settings(max_examples=60)
# On its path is a collective beside compute that no rank has waited for.
@example(Layout(2, 1, 1, 1, asynchronous=True), 1, None)
@given(_LAYOUTS, st.integers(0, 10**6), st.sampled_from([None, 0.5, 2.0]))
def test_the_parts_of_a_made_step_sum_to_it(layout: Layout, seed: int, compute: float | None) -> None:
    check(RecordedRun(made(layout, seed), None if compute is None else Scales(compute)))


@pytest.mark.parametrize(("name", "stamp"), RUNS)
def test_the_parts_of_a_real_step_sum_to_it(name: str, stamp: str) -> None:
    results = RecordedRun(opened(name, stamp))
    check(results)
    check(results.with_scales(Scales(compute=2.0)))


def test_what_a_simulated_run_fills_a_measured_one_fills() -> None:
    measured, simulated_one = run_json(RecordedRun(run_of(SLOW_RANK, 2))), seed_report()
    # No trace says what is held in memory.
    assert simulated_one.keys() - measured.keys() == {"memory"}
    for key in ("classes", "layers", "streams", "critical_path"):
        assert measured[key], key
        assert simulated_one[key][0].keys() - measured[key][0].keys() == set(), key
    assert {"fwd", "opt"} <= measured["classes"][0]["compute_ns"].keys()
    assert measured["rank_classes"] == len(measured["classes"]) == 2


def test_the_page_counts_as_computing_what_the_classes_do() -> None:
    results = RecordedRun(run_of(SLOW_RANK, 2))
    report = check(results)
    found = [
        re.search(rf"^ +\S+  {one['ranks']} .* ([0-9.]+) %$", run_page(results), re.MULTILINE)
        for one in report["classes"]
    ]
    step = report["step_time_ns"]
    shares = [round(100 * sum(one["compute_ns"].values()) / step, 1) for one in report["classes"]]
    assert [match and float(match[1]) for match in found] == shares
    assert any(one["wait_ns"] or one["bubble_ns"] for one in report["classes"])


def test_communication_beside_compute_is_on_its_stream_and_not_exposed() -> None:
    report = check(RecordedRun(made(Layout(2, 1, 2, 2, True), 3)))
    assert any(one["overlapped_ns"] for one in report["classes"])
