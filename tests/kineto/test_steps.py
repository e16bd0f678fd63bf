"""When a device's step begins and ends, which annotations are steps, and which rank a file is of."""

from __future__ import annotations

import json
import shutil
from array import array
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from simcore.diagnostics import UsageError
from simcore.kineto.reading import read_file_events
from simcore.kineto.recording import Recording
from simcore.kineto.steps import StepMark, steps_of_device
from simcore.measured import MeasuredRun
from simcore.measured.columns import OpColumns
from simcore.measured.run import RecordedStep
from simcore.measured.vocabulary import CATEGORIES, COPY, KERNEL
from simcore.parameters import OpeningOptions, Parameters
from simcore.ranks import RankSet
from simcore.runs.measured import run_recording
from simcore.sources.inputs import open_input
from tests.command_line.running import wltui_here
from tests.findings import facts
from tests.kineto.corpus import CORPUS, needs_corpus
from tests.kineto.test_layers import around, kernel, launch
from tests.kineto.test_nsys import launching

CASES = Path(__file__).parent / "cases"


def opened(path: Path, **asked: Any) -> MeasuredRun:
    """The run of a file or directory."""
    run = open_input(str(path), OpeningOptions(**asked))
    assert isinstance(run, MeasuredRun)
    return run


def written(path: Path, events: list[dict[str, Any]], **top: Any) -> Path:
    """A file with these events."""
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(json.dumps({"traceEvents": events} | top))
    return path


def steps_of(run: MeasuredRun) -> dict[int, int]:
    """How long each step is on the rank where it takes longest, us."""
    assert run.recorded is not None
    return {step.step_number: step.longest_ns // 1000 for step in run.recorded.steps}


def said(run: MeasuredRun, code: str) -> list[str]:
    """What is said under a code."""
    return [one.message for one in run.diagnostics if one.code == code]


# -- the host runs ahead -------------------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "ahead", "otherwise"), [(3, "180.0 ms", "280.0 ms"), (8, "630.0 ms", "730.0 ms")]
)
def test_a_job_that_runs_ahead_has_the_same_step_however_many_are_recorded(
    steps: int, ahead: str, otherwise: str
) -> None:
    run = opened(CASES / f"host_ahead_{steps}_steps.json")
    assert steps_of(run) == dict.fromkeys(range(steps), 100_000) | {0: 100_040}
    (rank,) = run_recording(run, Parameters()).accounts
    assert rank.busy_ns == 99_900_000
    assert run.step_time_ns == 100_000_000
    (message,) = said(run, "step-begin-assumed")
    assert f"{ahead} after" in message
    assert f"would last {otherwise}" in message


def test_jobs_that_differ_in_how_far_the_host_is_ahead_compare_as_equal() -> None:
    files = [str(CASES / f"host_ahead_{steps}_steps.json") for steps in (3, 8)]
    done = wltui_here("compare", *files, "--fail-if-slower", "1%")
    assert done.returncode == 0, done.stderr
    assert "100.0 ms" in done.stdout


def test_a_step_without_a_host_ahead_is_its_annotation_and_nothing_is_said_of_it(tmp_path: Path) -> None:
    events = []
    for number, at in enumerate((1000, 2000)):
        events += [around("user_annotation", f"ProfilerStep#{number}", at, 990), launch(number, at + 100)]
        events.append(kernel(number, at + 120))
    run = opened(written(tmp_path / "a.json", events))
    assert steps_of(run) == {0: 990, 1: 990}
    assert not said(run, "step-begin-assumed")


def test_graphs_launched_ahead_are_steps_of_the_device(tmp_path: Path) -> None:
    """Each of three graphs has ten kernels, all of one launch."""
    events = []
    for number in range(3):
        events += [
            around("user_annotation", f"ProfilerStep#{number}", 100 + 50 * number, 40),
            launch(number, 110 + 50 * number) | {"name": "cudaGraphLaunch"},
            *(kernel(number, 200 + 1000 * number + 100 * at) | {"dur": 100} for at in range(10)),
        ]
    assert steps_of(opened(written(tmp_path / "a.json", events))) == {0: 1100, 1: 1000, 2: 1000}


def test_what_was_launched_before_the_recording_belongs_to_the_step_before(tmp_path: Path) -> None:
    left = [kernel(90 + at, 1000 + 100 * at) | {"dur": 100} for at in range(5)]
    step = [around("user_annotation", "ProfilerStep#4", 1000, 50), launch(1, 1010)]
    own = [kernel(1, 1600) | {"dur": 200}]
    run = opened(written(tmp_path / "a.json", [*left, *step, *own]))
    assert (run.ops, run.step_time_ns) == (1, 300_000)
    # A kernel without a launch behind the first own one is one of the step.
    late = [kernel(99, 1850) | {"dur": 10}]
    step[0]["dur"] = 900
    assert opened(written(tmp_path / "b.json", [*left, *step, *own, *late])).ops == 2


@needs_corpus
def test_left_over_kernels_are_no_part_of_a_real_step() -> None:
    """Its annotation on the device lasts 34.892 ms, from the first own kernel: 291 us behind the others."""
    run = opened(CORPUS / "h100_qwen.json.gz")
    assert run.step_time_ns == 34_892_420 + 290_942
    assert {rank.ops.name[0] for rank in run.ranks} != {""}
    assert run.ops == 1198


def test_copies_ahead_of_a_step_or_beside_the_next_hold_nobody_up(tmp_path: Path) -> None:
    """The input of a step is copied beside the kernels of the one before, a checkpoint beside the next's."""
    events = []
    for number in range(3):
        host, device = 100 + 100 * number, 1000 + 1000 * number
        events += [
            around("user_annotation", f"ProfilerStep#{number}", host, 90),
            launch(10 * number + 1, host + 1), launch(10 * number + 2, host + 2),
            launch(10 * number + 3, host + 3),
            kernel(10 * number + 1, host + 10) | {"cat": "gpu_memcpy", "name": "Memcpy HtoD", "dur": 20},
            kernel(10 * number + 2, device) | {"dur": 1000},
            kernel(10 * number + 3, device + 900) | {"cat": "gpu_memcpy", "name": "Memcpy DtoH", "dur": 700},
        ]  # fmt: skip
    run = opened(written(tmp_path / "a.json", events), step="1")
    assert steps_of(run) == {0: 1900, 1: 1000, 2: 1600}
    # What lies outside of the step's own time is not shown, which is said: 20 us, and 600 of 700.
    (message,) = said(run, "beside-other-steps")
    assert "2 operations of step 1 on rank 0 run while" in message
    assert "up to 620.0 us" in message
    (rank,) = run.ranks
    assert list(zip(rank.ops.start, rank.ops.end, strict=True)) == [(0, 10**6), (900_000, 10**6)]


def test_a_kernel_that_outlasts_the_next_step_does_not_swallow_it(tmp_path: Path) -> None:
    events = [
        around("user_annotation", "ProfilerStep#0", 100, 90), launch(1, 110), launch(2, 120),
        kernel(1, 200) | {"dur": 100}, kernel(2, 200) | {"dur": 5000, "tid": 20},
        around("user_annotation", "ProfilerStep#1", 200, 200), launch(3, 210),
        kernel(3, 300) | {"dur": 50},
    ]  # fmt: skip
    assert steps_of(opened(written(tmp_path / "a.json", events))) == {0: 5100, 1: 100}


_MARKS = st.lists(st.integers(0, 12), min_size=1, max_size=4, unique=True).map(sorted)
_OPS = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 12), st.none() | st.integers(-3, 30), st.booleans()),
    max_size=8,
)  # fmt: skip


@given(begins=_MARKS, length=st.integers(0, 6), rows=_OPS)
# A step of copies alone, beside kernels of the next; with a kernel, too; a step that runs before the first.
@example(begins=[0, 10], length=10, rows=[(1, 29, -5, False), (31, 29, 5, True), (32, 18, 12, False)])
@example(
    begins=[0, 10],
    length=10,
    rows=[(1, 29, -5, False), (2, 6, 5, False), (31, 29, 5, True), (32, 18, 12, False)],
)
@example(begins=[0, 10], length=10, rows=[(100, 10, 5, False), (50, 10, 12, False)])
def test_no_step_ends_before_it_begins_or_has_what_does_not_touch_it(
    begins: list[int], length: int, rows: list[tuple[int, int, int | None, bool]]
) -> None:
    """However copies and kernels of several streams lie: what a step launched, it shows at least in part."""
    marks = [StepMark(at, begin, begin + length, begin, begin + length) for at, begin in enumerate(begins)]
    rows = sorted(rows, key=lambda row: row[:2])
    ops = OpColumns(
        start=array("q", [start for start, *_ in rows]),
        end=array("q", [start + ns for start, ns, *_ in rows]),
        stated_category=bytearray([CATEGORIES.index(COPY if is_copy else KERNEL) for *_, is_copy in rows]),
        name=[""] * len(rows),
    )
    # Nothing runs before it is launched.
    launches = [None if launch is None else min(launch, start) for start, _, launch, _ in rows]
    step, steps = steps_of_device(marks, ops, launches)
    for one in steps:
        assert one.start <= one.end
        own = [op for op, of in enumerate(step) if of == one.step_number]
        assert not own or any(ops.start[op] <= one.end and ops.end[op] >= one.start for op in own)


@st.composite
def jobs(draw: st.DrawFn) -> tuple[list[dict[str, Any]], list[tuple[int, int]], int]:
    """A device that runs what a host launches, in order: (events, (begin, end) of each step, us; left-over
    kernels before the first step).
    """
    ns = st.integers(1, 40)
    launched = draw(st.lists(st.lists(ns, min_size=1, max_size=4), min_size=1, max_size=5))
    events: list[dict[str, Any]] = []
    host, device, number = draw(ns), 0, 1000
    before = draw(st.lists(ns, max_size=3))
    for dur in before:
        number += 1
        events.append(kernel(number, device) | {"dur": dur})
        device += dur
    expected = []
    for step, durations in enumerate(launched):
        begin, reached = host, device
        for dur in durations:
            number += 1
            host += draw(ns)
            events.append(launch(number, host))
            device = max(device, host + 1)
            events.append(kernel(number, device) | {"dur": dur})
            device += dur
        host += draw(ns)
        if draw(st.booleans()):
            # A synchronisation, as a loss that is printed.
            host = max(host, device)
        events.append(around("user_annotation", f"ProfilerStep#{step}", begin, host - begin))
        expected.append((max(begin, reached), max(host, device)))
        host += draw(st.integers(0, 9))
    return events, expected, len(before)


@given(jobs())
def test_steps_begin_when_the_device_is_free_and_share_no_time(
    job: tuple[list[dict[str, Any]], list[tuple[int, int]], int],
) -> None:
    events, expected, left = job
    recording = _recording(events)
    found = [(step.start // 1000, step.end // 1000) for step in recording.steps]
    assert found == expected
    # A device that is always behind is at one step at a time; each kernel is of one.
    assert sum(step.ops for step in recording.steps) == len(recording.ops) - left
    for step, (begin, end) in zip(recording.steps, expected, strict=True):
        trace = recording.trace(0, step.step_number)
        assert len(trace.ops) == step.ops
        assert all(begin * 1000 <= start for start in trace.ops.start)
        assert all(over <= end * 1000 for over in trace.ops.end)
    if all(one.end >= other.start for one, other in pairwise(recording.steps)):
        total = recording.steps[-1].end - recording.steps[0].start
        assert sum(step.end - step.start for step in recording.steps) >= total


def _recording(events: list[dict[str, Any]], step_names: str | None = None) -> Recording:
    data = json.dumps({"traceEvents": events}).encode()
    (recording,), _ = read_file_events("a.json", data, step_names=step_names)
    return recording


def test_a_rank_that_is_at_the_step_before_says_so_of_the_time_until_it_begins(tmp_path: Path) -> None:
    """Rank 1 is 300 us behind with the step before; the collective brings clocks together."""
    for rank, before in enumerate((0, 300)):
        events = [
            around("user_annotation", "ProfilerStep#1", 1000, 100), launch(1, 1010), launch(2, 1020),
            kernel(90, 900) | {"dur": 150 + before}, kernel(1, 1050 + before) | {"dur": 200},
            kernel(2, 1250 + before) | {"name": "ncclDevKernel_AllReduce", "dur": 900 - before, "tid": 20},
        ]  # fmt: skip
        written(tmp_path / f"rank{rank}.json", events, distributedInfo={"rank": rank, "world_size": 2})
    results = run_recording(opened(tmp_path), Parameters())
    first = results.lanes.words.summarize(1, None, 0, RankSet.of([1]))
    assert first.details.endswith("until 0.000 300 000 s")


@pytest.mark.parametrize("is_one_file", [False, True])
def test_devices_that_nothing_ties_have_their_own_steps(tmp_path: Path, is_one_file: bool) -> None:
    """Two devices behind one host, or two, with steps of 3.0 and 3.5 ms: whatever was recorded of them."""
    for steps in (4, 9):
        folder, both = tmp_path / f"{steps}", list[dict[str, Any]]()
        for rank, length in enumerate((3000, 3500)):
            events = []
            for number in range(steps):
                key = 1000 * rank + number
                host = 100 + 50 * number
                if not (is_one_file and rank):
                    events.append(around("user_annotation", f"ProfilerStep#{number}", host, 40))
                ran = kernel(key, 200 + length * number) | {"dur": length, "pid": rank}
                ran["args"] = ran["args"] | {"device": rank}
                events += [launch(key, host + 10 + rank), ran]
            both += events
            if not is_one_file:
                written(folder / f"rank{rank}.json", events, distributedInfo={"rank": rank, "world_size": 2})
        run = opened(written(folder / "both.json", both) if is_one_file else folder)
        assert run.step_time_ns == 3_500_000
        assert steps_of(run)[steps - 1] == 3500
        assert not run.concurrent
        assert "nothing ties the" in said(run, "not-concurrent")[0]


# -- names of steps ------------------------------------------------------------------


def test_steps_of_the_first_profilers_are_operators() -> None:
    assert steps_of(opened(CASES / "operator_steps.json")) == {5: 3770, 6: 3770, 7: 3770}


def _loop(names: list[str], cat: str = "user_annotation") -> list[dict[str, Any]]:
    events = []
    for number, name in enumerate(names):
        at = 1000 * (number + 1)
        events += [around(cat, name, at, 900), launch(number, at + 10), kernel(number, at + 20)]
    return events


def test_steps_on_the_device_alone_are_steps(tmp_path: Path) -> None:
    """Without the host's events each stream has an annotation of its own; other annotations are none."""
    events = []
    for number in range(3):
        at = 1000 * (number + 1)
        events += [kernel(number, at) | {"dur": 400}, kernel(10 + number, at + 500) | {"dur": 300, "tid": 20}]
        for stream, start, dur in ((7, at, 400), (20, at + 500, 300)):
            events.append(around("gpu_user_annotation", f"ProfilerStep#{number}", start, dur, tid=stream))
            events[-1]["pid"] = 0
        events.append(around("gpu_user_annotation", "aten::mm", at, 400, tid=7))
    run = opened(written(tmp_path / "a.json", events))
    assert steps_of(run) == {0: 800, 1: 800, 2: 800}


def test_a_rank_without_an_operation_in_the_step_of_its_job_is_left_out(tmp_path: Path) -> None:
    """Both ranks have two steps; the host of rank 1 launches nothing in the second."""
    for rank, launched in ((0, (0, 1)), (1, (0,))):
        events = [around("user_annotation", f"ProfilerStep#{step}", 1000 * step, 900) for step in (0, 1)]
        for step in launched:
            events += [launch(step, 1000 * step + 10), kernel(step, 1000 * step + 20)]
        written(tmp_path / f"rank{rank}.json", events, distributedInfo={"rank": rank, "world_size": 2})
    run = opened(tmp_path, step="1")
    assert [rank.rank for rank in run.ranks] == [0]
    assert said(run, "empty-step") == ["rank 1 has nothing in step 1: it is left out"]


def test_a_device_without_a_step_is_named_as_a_device(tmp_path: Path) -> None:
    """The traces of two devices of one file, of which one has a step more."""
    events = []
    for device, number in ((3, 0), (3, 1), (5, 0)):
        ran = kernel(10 * device + number, 1000 * number + 100) | {"pid": device}
        ran["args"] = ran["args"] | {"device": device}
        step = around("gpu_user_annotation", f"ProfilerStep#{number}", 1000 * number + 100, 50, tid=7)
        events += [ran, step | {"pid": device}]
    path = written(tmp_path / "a.json", events)
    (message,) = said(opened(path, step="1"), "step-not-whole")
    assert message.startswith("device 5 ")


def test_annotations_of_the_host_come_before_those_on_the_device(tmp_path: Path) -> None:
    events = [*_loop(["ProfilerStep#1"]), around("gpu_user_annotation", "ProfilerStep#1", 1020, 10)]
    assert steps_of(opened(written(tmp_path / "a.json", events))) == {1: 900}


def test_steps_inside_of_others_are_taken_once(tmp_path: Path) -> None:
    """A window around several steps is none; the same step twice is one."""
    steps = _loop([f"ProfilerStep#{number}" for number in (5, 6, 7)])
    window = around("user_annotation", "ProfilerStep#0", 900, 5000)
    run = opened(written(tmp_path / "a.json", [*steps, window]))
    assert steps_of(run) == {5: 900, 6: 900, 7: 900}
    again = around("cpu_op", "ProfilerStep#6", 2001, 890)
    assert steps_of(opened(written(tmp_path / "b.json", [*steps, again]))) == {5: 900, 6: 900, 7: 900}
    part = around("user_annotation", "ProfilerStep#1", 2100, 300)
    assert steps_of(opened(written(tmp_path / "c.json", [*steps, part]))) == {5: 900, 6: 900, 7: 900}


@pytest.mark.parametrize(
    ("names", "pattern", "numbers"),
    [
        (["train_step 7", "train_step 8"], "train_step", [7, 8]),
        (["iteration: 12 of 20", "iteration: 13 of 20"], r"iteration: (\d+)", [12, 13]),
        (["[pl][profile]run_training_batch"] * 3, "run_training_batch", [0, 1, 2]),
        (["step 1", "step 1"], "step", [0, 1]),
    ],
)
@pytest.mark.parametrize("cat", ["user_annotation", "cpu_op"])
def test_other_annotations_are_steps_where_they_are_named(
    tmp_path: Path, names: list[str], pattern: str, numbers: list[int], cat: str
) -> None:
    path = written(tmp_path / "a.json", _loop(names, cat))
    assert steps_of(opened(path, step_names=pattern)) == dict.fromkeys(numbers, 900)
    # Without the flag they are none, and the note names it.
    assert steps_of(opened(path)) == {}
    assert "--step-names REGEX" in said(opened(path), "no-steps")[0]


def test_what_fits_no_name_of_a_step_is_said(tmp_path: Path) -> None:
    path = written(tmp_path / "a.json", _loop(["ProfilerStep#1"]))
    assert [facts(one) for one in said(opened(path, step_names="epoch"), "no-steps")] == [
        "--step-names epoch"
    ]
    with pytest.raises(UsageError, match="--step-names: found"):
        opened(path, step_names="(")


def test_parts_of_a_step_that_fit_its_name_too_are_no_steps(tmp_path: Path) -> None:
    events = _loop(["train_step", "train_step"])
    events += [around("user_annotation", "train_step.forward", at + 5, 100) for at in (1000, 2000)]
    events += [around("user_annotation", "train_step.backward", at + 200, 100) for at in (1000, 2000)]
    assert steps_of(opened(written(tmp_path / "a.json", events), step_names="train_step")) == {0: 900, 1: 900}


def test_ranges_of_nsight_are_steps_by_the_same_rules(tmp_path: Path) -> None:
    """Kernels launched ahead, in ranges that another framework names."""
    hosts = [100 + 50 * number for number in range(4)]
    kernels = [(1000 + 1000 * number, 2000 + 1000 * number, number) for number in range(4)]
    calls = [(at + 10, at + 12, 1, number, "cudaLaunchKernel") for number, at in enumerate(hosts)]
    ranges = [(at, at + 40, 1, f"it {number}") for number, at in enumerate(hosts)]
    path = launching(tmp_path / "a.sqlite", kernels, calls, ranges)
    run = opened(path, step_names=r"^it \d+")
    assert run.recorded is not None
    first, *others = run.recorded.steps
    assert others == [RecordedStep(number, {0: 1000}) for number in (1, 2, 3)]
    assert first == RecordedStep(0, {0: 1900})


# -- which rank a file is of ---------------------------------------------------------


def test_two_windows_of_one_process_are_one_rank() -> None:
    run = opened(CASES / "default_handler_names")
    assert steps_of(run) == {1: 800, 2: 800, 6: 800, 7: 800}
    assert [rank.rank for rank in run.ranks] == [0]
    (message,) = said(run, "rank-from-name")
    assert "windows" in message


def _window(folder: Path, name: str, process: int, first: int, at: int = 0) -> None:
    """A file of two steps from `first` on, which begin `at` us."""
    events = _loop([f"ProfilerStep#{first}", f"ProfilerStep#{first + 1}"])
    for one in events:
        one["ts"] += at
        if one["cat"] != "kernel":
            one["pid"] = process
    written(folder / name, events)


def test_processes_of_two_windows_each_are_as_many_ranks(tmp_path: Path) -> None:
    for window in range(2):
        for process in (851, 852):
            name = f"node-a_{process}.{1752215573000000000 + window}.pt.trace.json"
            _window(tmp_path, name, process, 1 + 5 * window, 10_000 * window)
    run = opened(tmp_path)
    assert [rank.rank for rank in run.ranks] == [0, 1]
    assert set(steps_of(run)) == {1, 2, 6, 7}


def test_one_process_with_the_same_steps_again_is_one_rank_in_two_runs(tmp_path: Path) -> None:
    for window in range(2):
        name = f"node-a_851.{1752215573000000000 + window}.pt.trace.json"
        _window(tmp_path, name, 851, 1, 50_000 * window)
    run = opened(tmp_path)
    assert [rank.rank for rank in run.ranks] == [0]
    assert len([one for one in run.others if "#" not in one]) == 1


def test_processes_of_one_number_on_two_hosts_are_two_ranks(tmp_path: Path) -> None:
    _window(tmp_path, "node-a_7.1752215573000000000.pt.trace.json", 7, 1)
    _window(tmp_path, "node-b_7.1752215574000000000.pt.trace.json", 7, 1)
    assert len(opened(tmp_path).ranks) == 2
    # Nor is one process at a step twice: two containers number theirs alike.
    _window(tmp_path / "c", "first.json", 7, 1)
    _window(tmp_path / "c", "second.json", 7, 1, 50_000)
    assert len(opened(tmp_path / "c").ranks) == 2


def test_a_process_goes_before_a_name_and_metadata_before_both(tmp_path: Path) -> None:
    _window(tmp_path / "a", "worker3.json", 7, 1)
    _window(tmp_path / "a", "worker4.json", 7, 6, 50_000)
    run = opened(tmp_path / "a")
    assert [rank.rank for rank in run.ranks] == [3]
    for rank in (0, 1):
        events = _loop(["ProfilerStep#1"])
        written(tmp_path / "b" / f"worker{rank + 4}.json", events, distributedInfo={"rank": rank})
    run = opened(tmp_path / "b")
    assert [rank.rank for rank in run.ranks] == [0, 1]
    assert not said(run, "rank-from-name")


def test_windows_of_other_hours_are_another_run(tmp_path: Path) -> None:
    hour = 3600 * 10**6
    _window(tmp_path, "node-a_851.1752215573000000000.pt.trace.json", 851, 1)
    _window(tmp_path, "node-a_990.1752215579000000000.pt.trace.json", 990, 1, 3 * hour)
    run = opened(tmp_path)
    assert [rank.rank for rank in run.ranks] == [0]
    (other,) = [one for one in run.others if "#" not in one]
    assert run.label is not None
    assert not run.label.startswith(other)
    assert opened(tmp_path, run=other).ranks[0].path != run.ranks[0].path
    # Within the hour they are ranks that were recorded one after the other.
    shutil.rmtree(tmp_path)
    _window(tmp_path, "node-a_851.1752215573000000000.pt.trace.json", 851, 1)
    _window(tmp_path, "node-a_990.1752215579000000000.pt.trace.json", 990, 1, hour // 2)
    assert len(opened(tmp_path).ranks) == 2
