"""What parts of a run of several steps cost: by hand, and as published of two jobs.

Planted, one at a time: communication is replaced by its mean; a send and its receive do not begin together;
the worst rank is that of the least score. Each failed here; that reductions are not joined over replicas
failed in the published jobs.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from simcore.parameters import Parameters
from simcore.render.report.pages import run_json, run_page
from simcore.replay.late import RankWaiting
from simcore.replay.slowdown import AsPeers, Slowdown, make_costs
from simcore.replay.step_findings import StepFindings
from simcore.words.sentences.spent import find_most_time
from simcore.words.step_words import describe_gain
from tests.kineto.test_chrome import CORPUS, named, opened, results, trace

Event = dict[str, Any]


def names(replicas: int, stages: int) -> list[Event]:
    return [
        *(named(dp, f"DP rank [{dp}]") for dp in range(replicas)),
        *(named(dp, f"PP rank {pp}, TP rank 0, all", pp) for dp in range(replicas) for pp in range(stages)),
    ]


def op(lane: tuple[int, int], step: int, kind: str, start: float, us: float, microbatch: int = -1) -> Event:
    return {"ph": "X", "cat": kind, "name": kind, "pid": lane[0], "tid": lane[1], "ts": 1000 * step + start,
            "dur": us, "args": {"step": step, "mb_id": microbatch, "model_chunk": 0}}  # fmt: skip


def slowdown(path: str) -> Slowdown:
    costs = make_costs(opened(path, step="all"))
    assert costs is not None
    return costs.slowdown()


def two_replicas(steps: int = 3) -> list[Event]:
    """Replica 1 computes twice as long: two micro-batches of 20 + 40 us for 10 + 20."""
    events = names(2, 1)
    for step in range(steps):
        for dp, factor in ((0, 1), (1, 2)):
            lane, at = (dp, 0), 1.0
            for kind, us in (("forward-compute", 10), ("backward-compute", 20)):
                for microbatch in (0, 1):
                    events.append(op(lane, step, kind, at, us * factor, microbatch))
                    at += us * factor
            events.append(op(lane, step, "grads-reduce-scatter", 200, 4))
            events.append(op(lane, step, "optimizer", 300, 5))
    return events


def test_a_slow_replica_by_hand(tmp_path: Path) -> None:
    """All alike: 2 x (15 + 30) + 4 + 5 us; as measured 2 x (20 + 40) + 4 + 5."""
    found = slowdown(trace(tmp_path, *two_replicas()))
    assert found.total == pytest.approx(129 / 99)
    assert found.by_dp_rank == pytest.approx({0: 1, 1: 129 / 99})
    assert found.by_rank == pytest.approx({0: 1, 1: 129 / 99})
    assert found.by_kind == pytest.approx(
        {"forward-compute": 109 / 99, "backward-compute": 119 / 99, "grads-reduce-scatter": 1, "optimizer": 1}
    )
    assert found.by_step == pytest.approx(dict.fromkeys(range(3), 129 / 99))
    assert (found.m_w, found.worst_ranks) == (pytest.approx(1), (1,))


def test_a_long_stage_by_hand(tmp_path: Path) -> None:
    """One micro-batch: 10, 1 to send, 30 and 30, 1 to send, 10 and 2 us; stage 1 alone: 20 for each 10."""
    events = names(1, 2)
    for step in range(2):
        for stage, us in ((0, 10), (1, 30)):
            forward = 1 if stage == 0 else 12
            events.append(op((0, stage), step, "forward-compute", forward, us, 0))
            events.append(op((0, stage), step, "forward-recv" if stage else "forward-send", 11, 1))
            events.append(op((0, stage), step, "backward-compute", 42 if stage else 73, us, 0))
            events.append(op((0, stage), step, "backward-send" if stage else "backward-recv", 72, 1))
            events.append(op((0, stage), step, "optimizer", 90, 2))
    found = slowdown(trace(tmp_path, *events))
    assert found.total == pytest.approx(1)
    assert found.by_stage == pytest.approx({0: 64 / 84, 1: 104 / 84})


def test_communication_is_replaced_by_its_median(tmp_path: Path) -> None:
    """A reduction of 400 us in one of three steps is an outlier: of the other steps nothing is lost."""
    events = two_replicas()
    for event in events:
        if event["name"] == "grads-reduce-scatter" and event["args"]["step"] == 2:
            event["dur"] = 90
    assert slowdown(trace(tmp_path, *events)).by_kind["grads-reduce-scatter"] == pytest.approx(
        (99 + 99 + 185) / 3 / 99
    )


def test_steps_that_do_less_are_left_out(tmp_path: Path) -> None:
    events = [
        event for event in two_replicas(4)
        if not (event["name"] == "optimizer" and event["args"]["step"] == 0)
    ]  # fmt: skip
    assert [*slowdown(trace(tmp_path, *events)).by_step] == [1, 2, 3]


def test_a_run_without_a_layout_or_with_other_kinds_has_none(tmp_path: Path) -> None:
    other = [*two_replicas(), *(op((dp, 0), step, "zap", 400, 5) for dp in (0, 1) for step in range(3))]
    assert make_costs(opened(trace(tmp_path, *other), step="all")) is None
    assert make_costs(opened(trace(tmp_path, *two_replicas()[2:]), step="1")) is None


def test_the_report_names_the_rank_and_its_steps(tmp_path: Path) -> None:
    run = results(trace(tmp_path, *two_replicas()), step="all")
    values = run_json(run)
    assert values["slowdown"].keys() >= {
        "total", "by_kind", "by_stage", "by_dp_rank", "by_rank", "by_step", "m_w", "m_s",
    }  # fmt: skip
    # It computes 120 us for 60, and its peer waits for it before the reduction, which begins at once.
    assert [(step["step"], step["ns"], step["last_rank"], step["late_ns"]) for step in values["steps"]] == [
        (0, 304_000, 1, 60_000), (1, 304_000, 1, 60_000), (2, 304_000, 1, 60_000),
    ]  # fmt: skip
    assert values["steps"][0]["ranks"][0] == {
        "rank": 0, "ns": 304_000, "compute_ns": 65_000, "wait_ns": 60_000, "late_ns": 0,
    }  # fmt: skip
    assert values["recurrence"] == [{"rank": 1, "steps": 3}]
    assert values["cause"] == {"part": "rank", "which": [1], "share": pytest.approx(1)}
    # Replayed, 120 + 4 + 5 us; with 65 / 125 of its compute 62.4 + 4, and 5 of its peer.
    assert (values["as_peers"]["before_ns"], values["as_peers"]["after_ns"]) == (129_000, 71_400)
    assert values["as_peers"]["gain_ns"] == 3 * 57_600
    assert "rank 1" in run_page(run).lower()


def test_a_run_of_one_step_has_no_section(tmp_path: Path) -> None:
    values = run_json(results(trace(tmp_path, *two_replicas())))
    assert not values.keys() & {"slowdown", "spread", "recurrence"}


@pytest.mark.skipif(not (CORPUS / "straggler").is_dir(), reason="needs ../shared/corpus/straggler")
@pytest.mark.parametrize("name", ["ST", "AR"])
def test_published_jobs_cost_what_their_study_says(name: str) -> None:
    folder = CORPUS / "straggler"
    found = slowdown(str(folder / f"timeline-{name}.json.gz"))
    published, worst, last = (
        json.loads((folder / f"{what}-{name}.json").read_text()) for what in ("result", "mw", "ms")
    )
    for ours, key in (
        (found.by_dp_rank, "blocking_decompose_by_dp_rank"), (found.by_stage, "blocking_decompose_by_stage"),
        (found.by_kind, "blocking_decompose_by_optype"), (found.by_step, "blocking_step_slowdown"),
    ):  # fmt: skip
        assert {str(part): ratio for part, ratio in ours.items()} == pytest.approx(published[key], abs=2e-6)
    assert found.total == pytest.approx(published["blocking_slowdown"], abs=2e-6)
    assert (found.m_w, found.m_s) == (
        pytest.approx(worst["Mw"], abs=2e-6),
        pytest.approx(last["Ms"], abs=2e-6),
    )


def test_a_replay_of_a_file_that_cut_waiting_off_has_no_idle_time(tmp_path: Path) -> None:
    """Replica 0 has waited 60 us before the reduction, which both begin at once: with compute of replica 1
    halved the step is 60 + 4 + 5 us, which idle time of its file would hide.
    """
    run = results(trace(tmp_path, *two_replicas()))
    assert run.durations.takes_idle_as_waiting
    assert [most.is_cut_off for most in find_most_time(run)] == [True]
    assert run.waiting == [RankWaiting(0, 1, "grads-reduce-scatter", False, 60_000)]
    (wait,) = (finding for finding in run.figures.worst_findings if finding.what == "wait")
    assert (wait.track_id, wait.ns) == (0, 60_000)
    halved = run.with_parameters(Parameters(slow_rank=("1=0.5",)))
    assert halved.step_time_ns == 60_000 + 4_000 + 5_000
    assert run.with_parameters(Parameters(replay=True)).step_time_ns == 129_000


def test_idle_time_before_ranks_that_come_apart_is_their_own(tmp_path: Path) -> None:
    """Replica 1 is idle for 60 us before the reduction, in which replica 0 waits for it."""
    events = [*names(2, 1)]
    for dp, begin in ((0, 31), (1, 91)):
        events.append(op((dp, 0), 0, "forward-compute", 1, 30, 0))
        events.append(op((dp, 0), 0, "grads-reduce-scatter", begin, 95 - begin))
    run = results(trace(tmp_path, *events))
    assert not run.durations.takes_idle_as_waiting
    assert run.with_parameters(Parameters(replay=True)).step_time_ns == run.step_time_ns == 94_000


@pytest.mark.parametrize("without", ["forward-compute", ""])
def test_a_microbatch_without_any_time_is_as_long_as_usual(tmp_path: Path, without: str) -> None:
    """As a file has it whose clock is too coarse for one that is nearly empty."""
    events = two_replicas()
    for event in events:
        if event["ph"] == "X" and event["args"]["mb_id"] == 1 and event["name"] != without:
            event["dur"] = 0
    assert slowdown(trace(tmp_path, *events)).uneven == pytest.approx(1)


def test_a_run_that_takes_no_time_has_none(tmp_path: Path) -> None:
    events = two_replicas()
    for event in events:
        if event["ph"] == "X":
            event["dur"] = 0
    path = trace(tmp_path, *events)
    assert make_costs(opened(path, step="all")) is None
    assert run_page(results(path, step="all"))


@pytest.mark.parametrize(("after", "said"), [(80, "20 ns less"), (130, "30 ns more")])
def test_a_rank_that_would_compute_longer_costs_time(after: int, said: str) -> None:
    words = describe_gain(StepFindings(AsPeers(3, (0,), (100,), (after,)), None, None))
    assert words.endswith(f": {said} in all.")
