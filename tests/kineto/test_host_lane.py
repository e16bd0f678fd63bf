"""What the host did beside a device: its lanes, the words of a span, and a kernel's launch as a cause."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from simcore.kineto import cache
from simcore.kineto.loading import ReadOptions
from simcore.measured import MeasuredRun
from simcore.parameters import OpeningOptions, Parameters
from simcore.ranks import RankSet
from simcore.runs.measured import run_recording
from simcore.sources.inputs import open_input
from simcore.trace.lane_spans import KINDS
from simcore.trace.lanes import Lanes
from simcore.trace.run import merged_segments_of
from tests.findings import facts
from tests.kineto.corpus import DLRM, needs_corpus
from tests.kineto.test_bad_input import event
from tests.kineto.test_layers import around, kernel, launch, run_of
from tests.says import figures

_WORKER = 2


def events() -> list[dict[str, Any]]:
    """A step whose two kernels two threads launched, one inside of an operation; another thread beside."""
    return [
        around("user_annotation", "ProfilerStep#3", 1000, 500),
        around("user_annotation", "## forward ##", 1010, 100),
        around("cpu_op", "aten::linear", 1020, 50), around("cpu_op", "aten::addmm", 1030, 30),
        launch(1, 1040), kernel(1, 1200, "gemm"),
        launch(2, 1300, tid=_WORKER), kernel(2, 1320, "late"),
        around("cpu_op", "aten::zeros", 1290, 5, tid=_WORKER),
        around("cpu_op", "aten::idle_thread", 1100, 5, tid=3),
        around("cpu_op", "aten::of_another_step", 2000, 5),
    ]  # fmt: skip


def lanes_of(run: MeasuredRun) -> Lanes:
    """Its lanes as measured."""
    return run_recording(run, Parameters()).lanes


def named(lanes: Lanes, stream: str) -> list[tuple[str, int, int]]:
    """(name, start, end) of each span of a lane, us of the step."""
    spans = lanes.spans(0, stream)
    return [
        (lanes.span_name(0, op)[0], start // 1000, end // 1000)
        for start, end, op in zip(spans.start, spans.end, spans.op, strict=True)
    ]


def test_annotations_and_threads_that_launched_are_lanes(tmp_path: Path) -> None:
    lanes = lanes_of(run_of(tmp_path, events()))
    assert [one for one in lanes.streams(0) if one.startswith("host ")] == [
        "host annotations", "host 1", f"host {_WORKER}"
    ]  # fmt: skip
    assert named(lanes, "host annotations") == [("ProfilerStep#3", 0, 500), ("## forward ##", 10, 110)]
    assert named(lanes, "host 1") == [("aten::linear", 20, 70)]
    assert named(lanes, f"host {_WORKER}") == [("aten::zeros", 290, 295)]
    assert {KINDS[kind] for kind in lanes.spans(0, "host 1").category} == {"host"}
    assert "aten::linear" in lanes.names()


def test_a_span_of_the_host_has_its_words_and_leads_to_what_it_launched(tmp_path: Path) -> None:
    lanes = lanes_of(run_of(tmp_path, events()))
    said = lanes.words.summarize(0, "host 1", 0, RankSet.of((0,)))
    assert (said.description, said.length, figures(said.details)) == ("aten::linear", "50.000 us", ["1", "1"])
    assert "host thread 1, launches" in said.details
    (step,) = lanes.words.find_steps(0, "host 1", 0, None, 1)
    assert (step.stream, step.start_ns) == ("stream 7", 200_000)
    assert step.words.startswith("gemm, 160.0 us behind")
    assert lanes.words.find_steps(0, "host 1", 0, None, -1) == []
    assert ("] holds back", step.words) in lanes.words.detail_rows(0, "host 1", 0, None)


def test_the_launch_of_a_kernel_is_a_cause_of_it(tmp_path: Path) -> None:
    lanes = lanes_of(run_of(tmp_path, events()))
    # Both were launched while nothing ran, so the launch binds.
    inside, outside = (lanes.words.find_steps(0, "stream 7", kernel, None, -1)[0] for kernel in (0, 1))
    assert (inside.stream, inside.start_ns) == ("host 1", 40_000)
    assert facts(inside.words) == "aten::linear, 1, 160.0 us"
    assert "before" in inside.words
    # Nothing is around its launch, so only the rank's own lane is at that time.
    assert (outside.stream, outside.start_ns) == (None, 300_000)
    assert outside.words.startswith("its launch")
    assert facts(outside.words) == f"{_WORKER}, 20.000 us"


def test_a_launch_long_before_binds_nothing(tmp_path: Path) -> None:
    early = [launch(1, 1040), launch(2, 1050), kernel(1, 1200), kernel(2, 1300, "next")]
    lanes = lanes_of(run_of(tmp_path, [around("user_annotation", "ProfilerStep#3", 1000, 500), *early]))
    first, *_, last = lanes.words.find_steps(0, "stream 7", 1, None, -1)
    assert first.words.startswith("idle, 90.000 us")
    assert last.words.startswith("its launch")
    assert facts(last.words) == "1, 250.0 us"


def test_a_kernel_without_a_launch_has_none(tmp_path: Path) -> None:
    lanes = lanes_of(run_of(tmp_path, [event(), event(ts=200), launch(5, 90)]))
    assert not [one for one in lanes.streams(0) if one.startswith("host ")]
    assert all("launched" not in one.words for one in lanes.words.find_steps(0, "stream 7", 1, None, -1))


def test_a_replay_has_no_lane_of_the_host_whose_times_are_not_its_own(tmp_path: Path) -> None:
    run = run_of(tmp_path, events())
    replay = run_recording(run, Parameters(compute_scale=0.5)).lanes
    assert not [one for one in replay.streams(0) if one.startswith("host ")]
    assert all("launched" not in one.words for one in replay.words.find_steps(0, "stream 7", 1, None, -1))


def test_what_is_kept_of_a_file_has_the_host_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    path = tmp_path / "rank0.json"
    path.write_text(json.dumps({"traceEvents": events()} | {"pad": "x" * (1 << 20)}))
    first = lanes_of(_opened(path))
    assert cache.is_kept(str(path), ReadOptions().patterns)
    again = lanes_of(_opened(path))
    for stream in ("host annotations", "host 1", f"host {_WORKER}"):
        assert named(first, stream) == named(again, stream) != []
    assert again.words.find_steps(0, "stream 7", 0, None, -1) == first.words.find_steps(
        0, "stream 7", 0, None, -1
    )


def _opened(path: Path) -> MeasuredRun:
    run = open_input(str(path), OpeningOptions(cache=True))
    assert isinstance(run, MeasuredRun)
    return run


def test_times_of_the_host_that_no_axis_holds_are_left_out(tmp_path: Path) -> None:
    hostile = [around("cpu_op", "aten::far", 1e300, 1), around("cpu_op", "aten::long", 1050, 1e300)]
    lanes = lanes_of(run_of(tmp_path, [*events(), *hostile]))
    assert named(lanes, "host 1") == [("aten::linear", 20, 70)]


@needs_corpus
def test_the_host_moves_with_the_clock_of_its_rank() -> None:
    run = _opened(DLRM)
    for number, rank in enumerate(run.ranks):
        assert rank.device is not None
        host = rank.device.host
        assert host is not None
        lane = host.lane.columns
        steps = [place for place, name in enumerate(lane.name) if name.startswith("ProfilerStep#")]
        assert rank.window is not None
        assert rank.window[0] - rank.ahead_ns in {lane.start[place] for place in steps}
        # No kernel starts before it was launched by more than the clock of the device is off.
        assert all(
            rank.ops.start[op] >= host.launch[op] - 1000
            for op in range(len(rank.ops)) if host.launcher[op] >= 0
        ), number  # fmt: skip


def test_a_rank_that_begins_its_step_later_says_when(tmp_path: Path) -> None:
    for rank, begins in enumerate((1000, 1300)):
        step = [around("user_annotation", "ProfilerStep#3", begins, 500), event(ts=begins + 40, pid=rank)]
        # The collective brings the clocks together.
        step.append(event(name="ncclDevKernel_AllReduce", ts=begins + 100, dur=1900 - begins, tid=20))
        top = {"distributedInfo": {"rank": rank, "world_size": 2}, "traceEvents": step}
        (tmp_path / f"rank{rank}.json").write_text(json.dumps(top))
    for asked, begins_at in (("3", "step 3 at 0.000 300 000 s"), ("all", "")):
        run = open_input(str(tmp_path), OpeningOptions(step=asked))
        assert isinstance(run, MeasuredRun)
        lanes = lanes_of(run)
        first = lanes.words.summarize(1, None, 0, RankSet.of([1]))
        assert first.description.startswith("not running yet")
        assert first.description.endswith(" gemm")
        assert first.details.endswith(begins_at)
        assert bool(first.details) == bool(begins_at)
        # A gap inside of the step, and the lane of the rank that begins it, say nothing of it.
        for rank in (0, 1):
            spans = range(rank, len(lanes.spans(rank, None).op))
            said = [lanes.words.summarize(rank, None, index, RankSet.of([rank])) for index in spans]
            assert said
            assert not any("begins step" in one.details for one in said)


def reasons(run: MeasuredRun) -> list[str]:
    """Why each idle leg of the path is not earlier."""
    return [leg.reason for leg in merged_segments_of(run_recording(run, Parameters())) if leg.what == "idle"]


def test_a_gap_is_the_hosts_where_it_had_launched_nothing_for_most_of_it(tmp_path: Path) -> None:
    """Kernels of 10 us; the second one's launch lies early or late in the gap of 90 us before it."""
    step = around("user_annotation", "ProfilerStep#3", 1000, 310)
    late, queued = "its host was late: no kernel queued", "its next kernel was queued already"
    for launched, reason in ((1050, queued), (1230, queued), (1260, late), (1299, late)):
        two = [launch(1, 1040), launch(2, launched), kernel(1, 1200), kernel(2, 1300, "next")]
        assert reasons(run_of(tmp_path, [step, *two])) == ["the step begins", reason], launched


def test_of_a_gap_before_a_kernel_without_a_launch_only_that_it_is_one_is_said(tmp_path: Path) -> None:
    step = around("user_annotation", "ProfilerStep#3", 1000, 310)
    one = [launch(1, 1040), kernel(1, 1200), kernel(2, 1300, "next")]
    assert reasons(run_of(tmp_path, [step, *one]))[-1].endswith("ran nothing")
