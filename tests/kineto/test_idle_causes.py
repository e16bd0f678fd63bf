"""Why a rank is late or idle: the call of the host in which the thread that launches next was meanwhile."""

from __future__ import annotations

import json
import random
import re
from bisect import bisect_left
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import pytest

from simcore.kineto import cache
from simcore.kineto.gaps import LEAST_NS, PART, SHARE
from simcore.kineto.reading import read_file_events
from simcore.measured import MeasuredRun
from simcore.parameters import OpeningOptions, Parameters
from simcore.ranks import RankSet
from simcore.render.report.pages import run_json, run_page
from simcore.replay.idle import CALL, NO_CALL, QUEUED, GapSums, HostGap, gap_words, sum_gaps
from simcore.replay.parameters import Scales
from simcore.replay.stragglers import Straggler, find_stragglers
from simcore.runs.measured import RecordedRun, run_recording
from simcore.sources.inputs import open_input
from simcore.trace.run import merged_segments_of
from tests.kineto.corpus import DLRM, every_file, needs_corpus, unpacked
from tests.kineto.test_bad_input import event
from tests.kineto.test_layers import around, kernel, launch
from tests.kineto.test_nsys import launching
from tests.measured.paths import insight_lines
from tests.says import figures, said

CASES = Path(__file__).parent / "cases"
_MAIN, _AUTOGRAD = 1, 2
# The gap of every small trace here, us: between its two kernels.
_FROM, _TO = 1010, 21_010


def call(
    name: str, ts: float, dur: float, correlation: int = 99, tid: int = _MAIN, cat: str = "cuda_runtime"
) -> dict[str, Any]:
    """A call of the runtime that lasts."""
    return launch(correlation, ts, tid, name) | {"dur": dur, "cat": cat}


def overhead(name: str, ts: float, dur: float, pid: int = 9, tid: int = _MAIN) -> dict[str, Any]:
    """What the profiler takes for itself."""
    return event(cat="overhead", name=name, pid=pid, tid=tid, ts=ts, dur=dur, args={})


def python(name: str, ts: float, dur: float, tid: int = _MAIN) -> dict[str, Any]:
    """A call of a function of Python."""
    return around("python_function", name, ts, dur, tid)


def idle(*host: dict[str, Any], tid: int = _MAIN, launched: float = 21_000) -> list[dict[str, Any]]:
    """A step of 22 ms with two kernels, 20 ms apart, the second one launched by a thread; what the host
    does.
    """
    return [
        around("user_annotation", "ProfilerStep#3", 900, 22_000),
        launch(1, 950),
        kernel(1, 1000),
        launch(2, launched, tid),
        kernel(2, _TO, "next"),
        *host,
    ]


def results_of(folder: Path, events: list[dict[str, Any]], **asked: Any) -> RecordedRun:
    """Of a file with these events."""
    path = folder / "rank0.json"
    path.write_text(json.dumps({"traceEvents": events}))
    return opened(path, **asked)


def opened(path: Path, **asked: Any) -> RecordedRun:
    """Of a file or directory."""
    run = open_input(str(path), OpeningOptions(**asked))
    assert isinstance(run, MeasuredRun)
    return run_recording(run, Parameters())


def gap_of(folder: Path, events: list[dict[str, Any]]) -> HostGap:
    """The gap between the two kernels of `idle`."""
    results = results_of(folder, events)
    (gap,) = (gap for gap in results.gaps[0] if gap.ns == (_TO - _FROM) * 1000)
    assert run_page(results)
    assert run_json(results)
    return gap


def test_all_gaps_are_summed_by_whether_the_next_kernel_was_queued(tmp_path: Path) -> None:
    """Kernels at 1000, 1030, 1050, 1052 and 1100 us, of 10 us, the third of 20; the calls that launch them
    take 5 us. Planted: gaps from the end of the kernel before in place of the latest end.
    """
    begun = {1: 900, 2: 905, 3: 1046, 4: 1047, 5: 1080}
    starts = {1: 1000, 2: 1030, 3: 1050, 4: 1052, 5: 1100}
    events = [around("user_annotation", "ProfilerStep#3", 890, 300)]
    for one, at in begun.items():
        events += [
            call("cudaLaunchKernel", at, 5, one),
            kernel(one, starts[one]) | {"dur": 20 if one == 3 else 10},
        ]
    results = results_of(tmp_path, events)
    # The gaps begin at 1010, 1040 and 1070 us. The first one waits for no launch, the others do.
    assert sum_gaps(results.measured.ranks) == GapSums(queued=1, queued_ns=20_000, late=2, late_ns=40_000)
    (sentence,) = [one.text for one in results.figures.insights if one.rule == "most-time"]
    assert {"40.000 us", "2 gaps", "20.000 us", "1 gap"} <= {*re.findall(r"[\d.]+ us|\d gaps?", sentence)}
    # Without launches nobody knows.
    alone = [one for one in events if one["cat"] != "cuda_runtime"]
    assert sum_gaps(results_of(tmp_path, alone).measured.ranks) is None


# -- which call it is ----------------------------------------------------------------

_POLL = "<built-in method poll of select.poll object at 0x7f0012ab>"
_KINDS: list[tuple[str, list[dict[str, Any]], str, str, str | None]] = [
    ("a launch that lasts", [call("cudaLaunchKernel", 1005, 19_995, 2)], "cudaLaunchKernel", "runtime", None),
    (
        "a copy that blocks",
        [around("cpu_op", "aten::copy_", 1100, 19_000), call("cudaMemcpy", 1200, 18_500)],
        "cudaMemcpy",
        "runtime",
        "aten::copy_",
    ),
    (
        "a value that is read",
        [
            around("cpu_op", "aten::item", 1100, 19_000),
            around("cpu_op", "aten::_local_scalar_dense", 1150, 18_900),
            call("cudaMemcpyAsync", 1200, 10),
            call("cudaStreamSynchronize", 1300, 18_500),
        ],
        "cudaStreamSynchronize",
        "runtime",
        "aten::item",
    ),
    (
        "an event that is waited for",
        [call("cudaEventSynchronize", 900, 19_500)],
        "cudaEventSynchronize",
        "runtime",
        None,
    ),
    (
        "memory that is given back",
        [
            around("cpu_op", "aten::empty", 1100, 19_500),
            call("cudaFree", 1200, 9000),
            call("cudaMalloc", 10_300, 10_000),
        ],
        "cudaMalloc",
        "runtime",
        "aten::empty",
    ),
    (
        "data that is loaded, without stacks",
        [
            around(
                "user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 1050, 19_900
            )
        ],
        "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
        "annotation",
        None,
    ),
    (
        "data that is loaded, with stacks",
        [
            python("train.py(7): main", 0, 50_000),
            python("torch/utils/data/dataloader.py(631): __next__", 1050, 19_900),
            python("selectors.py(402): select", 1100, 19_800),
            python(_POLL, 1105, 19_790),
        ],
        _POLL,
        "python",
        "torch/utils/data/dataloader.py(631): __next__",
    ),
    (
        "garbage that is collected",
        [python("train.py(7): main", 0, 50_000), python("Python GC", 2000, 15_000)],
        "Python GC",
        "python",
        None,
    ),
    (
        "a checkpoint",
        [
            python("torch/serialization.py(840): save", 1020, 19_900),
            python("<built-in method write of _io.BufferedWriter object at 0x1>", 1500, 19_000),
        ],
        "<built-in method write of _io.BufferedWriter object at 0x1>",
        "python",
        "torch/serialization.py(840): save",
    ),
    (
        "a log",
        [python("logging/__init__.py(1477): info", 3000, 10_000)],
        "logging/__init__.py(1477): info",
        "python",
        None,
    ),
    ("a module", [python("nn.Module: Net_0", 1020, 19_900)], "nn.Module: Net_0", "python", None),
    (
        "a wrapper of a model",
        [around("user_annotation", "DistributedDataParallel.forward", 1020, 19_900)],
        "DistributedDataParallel.forward",
        "annotation",
        None,
    ),
    (
        "buffers of the profiler",
        [call("cudaLaunchKernel", 1005, 19_995, 2), overhead("CUPTI Buffer Flush", 1100, 15_000)],
        "CUPTI Buffer Flush",
        "overhead",
        "cudaLaunchKernel",
    ),
    (
        "functions that are loaded, on a process of the profiler",
        [call("cudaLaunchKernel", 1005, 19_995, 2), overhead("Lazy Function Loading", 1100, 19_000, -1)],
        "Lazy Function Loading",
        "overhead",
        "cudaLaunchKernel",
    ),
    (
        "functions that are loaded, on no thread",
        [call("cudaLaunchKernel", 1005, 19_995, 2), overhead("Lazy Function Loading", 1100, 19_000, -1, 0)],
        "Lazy Function Loading",
        "overhead",
        "cudaLaunchKernel",
    ),
    (
        "times that are equal",
        [
            python("f.py(1): f", 2000, 15_000),
            around("user_annotation", "mark", 2000, 15_000),
            around("cpu_op", "aten::op", 2000, 15_000),
            call("cudaMalloc", 2000, 15_000),
        ],
        "cudaMalloc",
        "runtime",
        "f.py(1): f",
    ),
    (
        "the longer of two",
        [around("cpu_op", "aten::first", 1020, 8_000), around("cpu_op", "aten::second", 9_500, 11_000)],
        "aten::second",
        "operation",
        None,
    ),
    (
        "a third, to the ns",
        [around("cpu_op", "aten::third", 1010, 20_000 / 3 + 0.001)],
        "aten::third",
        "operation",
        None,
    ),
]


@pytest.mark.parametrize(
    ("host", "name", "kind", "around_it"), [case[1:] for case in _KINDS], ids=[case[0] for case in _KINDS]
)
def test_the_deepest_call_that_covers_a_third_is_named(
    host: list[dict[str, Any]], name: str, kind: str, around_it: str | None, tmp_path: Path
) -> None:
    # Where the host's own call launches the kernel there is no other that does.
    events = [one for one in idle() if one["name"] != "cudaLaunchKernel" or one["args"]["correlation"] == 1]
    launches = any(one["args"].get("correlation") == 2 for one in host)
    gap = gap_of(tmp_path, [*(events if launches else idle()), *host])
    assert (gap.name, gap.kind, gap.around, gap.cause) == (name, kind, around_it, CALL)
    assert gap.covered_ns * PART >= gap.ns
    assert gap.thread == str(_MAIN)


_SILENT: list[tuple[str, list[dict[str, Any]]]] = [
    ("nothing", []),
    ("many short calls", [around("cpu_op", f"aten::op{at}", 1020 + 100 * at, 90) for at in range(190)]),
    ("less than a third", [around("cpu_op", "aten::op", 1010, 6_600)]),
    ("the step alone", [around("user_annotation", "ProfilerStep#4", 0, 1)]),
    ("another thread", [around("cpu_op", "aten::op", 1020, 19_000, _AUTOGRAD)]),
    ("another process", [around("cpu_op", "aten::op", 1020, 19_000) | {"pid": 10}]),
    (
        "overhead beside a thread that goes on",
        [around("cpu_op", "aten::op", 9_000, 100), overhead("CUPTI Buffer Flush", 1100, 19_000, -1, 0)],
    ),
    (
        "overhead of another thread",
        [
            around("cpu_op", "aten::op", 5, 1, _AUTOGRAD),
            overhead("CUPTI Buffer Flush", 1100, 19_000, 9, _AUTOGRAD),
        ],
    ),
    ("a call behind the launch", [call("cudaDeviceSynchronize", 21_002, 9000)]),
    (
        "a time that is none",
        [around("cpu_op", "aten::op", 1020, 1e300), around("cpu_op", "aten::op", 1020, -5)],
    ),
]


@pytest.mark.parametrize("host", [case[1] for case in _SILENT], ids=[case[0] for case in _SILENT])
def test_where_no_call_covers_a_third_none_is_named_and_that_is_said(
    host: list[dict[str, Any]], tmp_path: Path
) -> None:
    gap = gap_of(tmp_path, idle(*host))
    assert (gap.name, gap.around, gap.covered_ns, gap.cause) == (None, None, 0, NO_CALL)
    (line,) = [line for line in insight_lines(opened(tmp_path / "rank0.json")) if "runs nothing" in line]
    assert all(words in line for words in ("no single call", "third", "20.000 ms"))


def test_the_thread_that_launches_next_is_asked(tmp_path: Path) -> None:
    host = [
        around("cpu_op", "aten::main", 1020, 19_900),
        around("cpu_op", "autograd::engine::evaluate_function: MmBackward0", 5_000, 15_900, _AUTOGRAD),
        around("cpu_op", "MmBackward0", 5_100, 15_000, _AUTOGRAD),
    ]
    gap = gap_of(tmp_path, idle(*host))
    assert (gap.thread, gap.name) == (str(_MAIN), "aten::main")
    gap = gap_of(tmp_path, idle(*host, tid=_AUTOGRAD))
    assert (gap.thread, gap.name) == (str(_AUTOGRAD), "MmBackward0")
    assert gap.around == "autograd::engine::evaluate_function: MmBackward0"


@pytest.mark.parametrize("launched", [960, 3_000, 10_998])
def test_what_was_queued_for_most_of_a_gap_is_not_the_hosts(launched: int, tmp_path: Path) -> None:
    """The host waits in a call for all of it, but had launched before."""
    waits = call("cudaDeviceSynchronize", 980, 20_500)
    gap = gap_of(tmp_path, idle(waits, launched=launched))
    assert (gap.cause, gap.name) == (QUEUED, None)
    assert gap.queued_ns == _TO * 1000 - max(_FROM, launched + 1) * 1000
    assert "queued already" in gap_words(gap)


def test_a_call_counts_until_the_launch_alone(tmp_path: Path) -> None:
    """Both last as long in the gap; of the second one nothing is before the launch."""
    before, behind = around("cpu_op", "aten::before", 2_000, 7_000), call("cudaFree", 12_010, 9_000)
    gap = gap_of(tmp_path, idle(before, behind, launched=12_000))
    assert (gap.name, gap.covered_ns) == ("aten::before", 7_000_000)


def test_kernels_of_a_graph_have_the_one_launch_of_all(tmp_path: Path) -> None:
    graph = [call("cudaGraphLaunch", 1000, 20_000, 2), kernel(2, 21_010, "a"), kernel(2, 21_500, "b")]
    step = around("user_annotation", "ProfilerStep#3", 900, 22_000)
    gaps = results_of(tmp_path, [step, launch(1, 950), kernel(1, 1000), *graph]).gaps[0]
    assert [(gap.cause, gap.name) for gap in gaps] == [(CALL, "cudaGraphLaunch"), (QUEUED, None)]


def test_a_gap_before_the_first_kernel_counts(tmp_path: Path) -> None:
    events = [
        around("user_annotation", "ProfilerStep#3", 1000, 30_000),
        launch(1, 28_000),
        kernel(1, 28_010),
        around("user_annotation", "enumerate(DataLoader)#X.__next__", 1100, 26_000),
    ]
    (gap,) = results_of(tmp_path, events).gaps[0]
    assert (gap.start, gap.end, gap.name) == (0, 27_010_000, "enumerate(DataLoader)#X.__next__")


def test_nothing_is_said_where_nothing_launched_what_comes_next(tmp_path: Path) -> None:
    events = [one for one in idle(around("cpu_op", "aten::op", 1020, 19_900)) if one["cat"] != "cuda_runtime"]
    results = results_of(tmp_path, events)
    assert not results.gaps[0]
    assert not any("runs nothing" in line for line in insight_lines(results))


def test_a_gap_below_a_share_of_the_step_says_nothing(tmp_path: Path) -> None:
    """A gap of 100 us with its cause, in a step of 5 ms and in one of 20."""
    for length, is_said in ((5_000, True), (20_000, False)):
        events = [
            around("user_annotation", "ProfilerStep#3", 1000, length),
            launch(1, 1001),
            kernel(1, 1010) | {"dur": 1000},
            around("cpu_op", "aten::slow", 2010, 90),
            launch(2, 2101),
            kernel(2, 2110) | {"dur": length - 1110},
        ]
        assert is_said == (length * SHARE <= 100)
        results = results_of(tmp_path, events)
        assert bool(results.gaps[0]) == is_said
        assert any("aten::slow" in line for line in insight_lines(results)) == is_said


# -- property ------------------------------------------------------------------------


def nested(drawn: random.Random, first: int, last: int, depth: int = 0) -> list[tuple[int, int]]:
    """Calls one after the other, each with calls inside, (start, end), us."""
    count = drawn.randrange(4) if depth < 4 and last - first > 20 else 0
    edges = sorted(drawn.randrange(first, last + 1) for _ in range(2 * count))
    calls = []
    for start, end in zip(edges[::2], edges[1::2], strict=True):
        if end > start:
            calls += [(start, end), *nested(drawn, start, end, depth + 1)]
    return calls


def _is_inside(inner: tuple[int, int, str], outer: tuple[int, int, str]) -> bool:
    return inner[0] >= outer[0] and inner[1] <= outer[1] and inner[:2] != outer[:2]


def test_the_call_covers_a_third_and_no_callee_does() -> None:
    """Against every call by itself: kernels of 20 us, most launched late in the gap before, nested calls."""
    for seed in range(200):
        _is_third_and_deepest(seed)


def _is_third_and_deepest(seed: int) -> None:
    drawn = random.Random(seed)
    events, at, launches = [], 100, dict[int, int]()
    for number in range(drawn.randrange(2, 5)):
        gap = drawn.randrange(300)
        at += gap
        launches[at] = at - 1 - (drawn.randrange(gap + 20) if drawn.randrange(2) else gap // 8)
        events += [launch(number, launches[at]), kernel(number, at) | {"dur": 20}]
        at += 20
    kinds = ("cpu_op", "user_annotation", "python_function")
    made = []
    for start, end in nested(drawn, 50, at):
        made.append((start, end, f"call {len(made)}"))
        events.append(around(drawn.choice(kinds), made[-1][2], start, end - start))
    ((recording,), _) = read_file_events("made", json.dumps({"traceEvents": events}).encode())
    gaps = recording.columns.gaps
    starts = sorted(launches)
    whole = 1000 * (starts[-1] + 20 - starts[0])
    idle_times = [(1000 * (before + 20), 1000 * after) for before, after in pairwise(starts)]
    least = max(LEAST_NS, whole * SHARE)
    assert list(zip(gaps.start, gaps.end, strict=True)) == [
        (start, end) for start, end in idle_times if end - start >= least
    ]
    for start, end, launched, name in zip(gaps.start, gaps.end, gaps.launched, gaps.name, strict=True):
        assert launched == 1000 * launches[end // 1000] + 1000
        until = min(end, launched)

        def covered(call: tuple[int, int, str], start: int = start, until: int = until) -> int:
            return min(1000 * call[1], until) - max(1000 * call[0], start)

        long = [one for one in made if PART * covered(one) >= end - start]
        if 2 * (end - max(start, launched)) > end - start:
            assert name is None
        elif name is None:
            assert not long
        else:
            (named,) = (one for one in made if one[2] == name)
            assert named in long
            leaves = [one for one in long if not any(_is_inside(other, one) for other in long)]
            # One that ends within a us of another's end may be taken for one that it makes.
            near = [one for one in long if one[0] >= named[0] and one[1] < named[1]]
            assert not near
            assert covered(named) + 1000 >= max(map(covered, leaves))


@needs_corpus
def test_of_real_traces_the_call_covers_a_third_of_a_time_in_which_nothing_runs() -> None:
    named = 0
    for path in every_file():
        recordings, _ = read_file_events(str(path), unpacked(path))
        for recording in recordings:
            gaps, ops = recording.columns.gaps, recording.ops
            spans = sorted(zip(ops.start, ops.end, strict=True))
            begins, ends = [begin for begin, _ in spans], [*accumulate((over for _, over in spans), max)]
            for row in range(len(gaps)):
                start, end = gaps.start[row], gaps.end[row]
                before = bisect_left(begins, end)
                assert not before or ends[before - 1] <= start
                if gaps.name[row] is not None:
                    named += 1
                    until = min(end, gaps.launched[row], gaps.over[row])
                    assert PART * (until - max(start, gaps.begin[row])) >= end - start
    assert named > 100


# -- what is said ----------------------------------------------------------------------


def test_a_long_launch_is_a_call_in_which_the_host_was() -> None:
    results = opened(CASES / "long_launch_call.json")
    (line,) = [line for line in insight_lines(results) if "runs nothing" in line]
    for words in ("20.010 ms", "92.6 %", "before gemm_kernel_b", "in cudaLaunchKernel", "19.990 ms"):
        assert words in line
    (leg,) = [leg for leg in merged_segments_of(results) if leg.ns == 20_010_000]
    assert leg.reason.endswith("in cudaLaunchKernel")
    (value,) = run_json(results)["measured"]["gaps"]
    assert (value["ranks"], value["cause"], value["call"], value["kind"]) == (
        "0",
        CALL,
        "cudaLaunchKernel",
        "runtime",
    )
    assert (value["start_ns"], value["end_ns"], value["covered_ns"]) == (520_000, 20_530_000, 19_990_000)
    assert (value["call_start_ns"], value["call_end_ns"]) == (30_000, 20_510_000)


def test_a_rank_that_is_late_by_loading_data_comes_last_with_that() -> None:
    results = opened(CASES / "late_by_data_loading")
    (late,) = find_stragglers(results)
    assert (late.rank, late.last, late.of, late.call_ns) == (2, 1, 4, 30_200_000)
    lines = insight_lines(results)
    (line,) = [line for line in lines if "comes last" in line]
    assert figures(line)[:4] == ["2", "1", "4", "30.000 ms"]
    said([line], "30.200 ms", "in enumerate(DataLoader)")
    # Once is enough.
    assert not any("runs nothing" in line for line in lines)
    (value,) = run_json(results)["measured"]["stragglers"]
    assert value["gap"]["call"].startswith("enumerate(DataLoader)#")
    assert value["call_ns"] == 30_200_000


def test_a_replay_says_nothing_of_gaps_that_are_not_its_own() -> None:
    results = opened(CASES / "late_by_data_loading").with_scales(Scales(gaps=0.5))
    assert not any(results.gaps)
    assert all(late.gap is None for late in find_stragglers(results))
    lines = insight_lines(results)
    assert not any("DataLoader" in line or "runs nothing" in line for line in lines)


def test_what_blocks_is_waited_in(tmp_path: Path) -> None:
    names = {
        "cudaStreamSynchronize": True,
        "cudaDeviceSynchronize": True,
        "cudaMemcpy": True,
        "cudaMemcpy2D": True,
        "hipEventSynchronize": True,
        "aten::item": True,
        "cudaMemcpyAsync": False,
        "cudaMemcpy2DAsync": False,
        "cudaLaunchKernel": False,
        "cudaStreamWaitEvent": False,
    }
    for name, waits in names.items():
        cat = "cpu_op" if name.startswith("aten") else "cuda_runtime"
        words = gap_words(gap_of(tmp_path, idle(call(name, 1020, 19_900, cat=cat))))
        assert f"{'waits' if waits else 'is'} in {name}" in words


def test_gaps_with_one_cause_are_one_sentence_with_their_sum(tmp_path: Path) -> None:
    """Four ranks, each with three gaps of 2 ms or a little more in an object's method at its own address."""
    for rank in range(4):
        step = [around("user_annotation", "ProfilerStep#3", 1000, 20_000)]
        for at in range(4):
            begins = 1010 + 3_000 * at
            if at:
                method = f"<built-in method acquire of _thread.lock object at 0x{rank}{at}f>"
                step.append(python(method, begins - 1_900 - rank, 1_800 + rank))
            step += [launch(at, begins - 5), kernel(at, begins) | {"dur": 1_000 - rank, "pid": rank}]
        step.append(kernel(9, 11_010) | {"dur": 9_990, "pid": rank})
        top = {"distributedInfo": {"rank": rank, "world_size": 4}, "traceEvents": step}
        (tmp_path / f"rank{rank}.json").write_text(json.dumps(top))
    lines = [line for line in insight_lines(opened(tmp_path)) if "nothing for" in line]
    assert len(lines) == 1
    for words in ("Ranks 0-3 run nothing", "up to 6.009 ms", "3 gaps each", "lock object>", "5.409 ms of it"):
        assert words in lines[0]
    assert "0x" not in lines[0]


# -- stragglers --------------------------------------------------------------------------


def job(folder: Path, late_us: dict[int, float], name: str = "aten::slow", busy_us: int = 0) -> RecordedRun:
    """Four ranks with one collective of 100 us a step, some come late to it after a call of the host, and
    after so much more compute.
    """
    most = max(late_us.values())
    for rank in range(4):
        late = late_us.get(rank, 0)
        begins = 1000 + late
        end = 1000 + most + busy_us + 1200
        step = [
            around("user_annotation", "ProfilerStep#3", 900, most + busy_us + 2_000),
            launch(1, begins - 10),
            kernel(1, begins) | {"dur": 500 + busy_us * (late > 0), "pid": rank},
            launch(2, begins - 5, name="cudaLaunchKernel"),
        ]
        arrives = begins + 600 + busy_us * (late > 0)
        step.append(
            kernel(2, arrives, "ncclDevKernel_AllReduce") | {"dur": end - arrives, "pid": rank, "tid": 20}
        )
        step[-1]["args"] |= {"stream": 20}
        if late:
            step.append(around("cpu_op", name, 905, late))
        top = {"distributedInfo": {"rank": rank, "world_size": 4}, "traceEvents": step}
        (folder / f"rank{rank}.json").write_text(json.dumps(top))
    return opened(folder)


def late_ranks(results: RecordedRun) -> list[Straggler]:
    """The ranks that come last, as the report has them."""
    found = find_stragglers(results)
    said = [line for line in insight_lines(results) if "comes last" in line]
    assert len(said) == min(2, len(found))
    return found


def test_one_collective_a_step_is_enough_for_a_straggler(tmp_path: Path) -> None:
    (late,) = late_ranks(job(tmp_path, {2: 8_000}))
    assert (late.rank, late.last, late.of, late.least_ns) == (2, 1, 1, 8_000_000)
    assert late.gap is not None
    assert (late.gap.name, late.call_ns) == ("aten::slow", 8_000_000)


def test_who_comes_late_by_next_to_nothing_is_no_straggler(tmp_path: Path) -> None:
    assert late_ranks(job(tmp_path, {2: 8}, busy_us=0)) == []


def test_who_computes_longer_is_late_without_a_call_to_blame(tmp_path: Path) -> None:
    (late,) = late_ranks(job(tmp_path, {2: 20}, busy_us=5_000))
    assert (late.compute_ns, late.gap, late.call_ns) == (5_000_000, None, 0)


# -- where it is kept and shown ------------------------------------------------------------


def test_what_is_read_from_the_cache_has_the_same_causes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(cache, "_LEAST_BYTES", 1)
    found = []
    for _ in range(3):
        results = opened(CASES / "late_by_data_loading", cache=True)
        found.append((results.gaps, run_json(results)["measured"], insight_lines(results)))
    read = opened(CASES / "late_by_data_loading", cache=False)
    assert any(read.gaps)
    assert all(one == (read.gaps, run_json(read)["measured"], insight_lines(read)) for one in found)


def test_all_steps_together_have_their_own_gaps(tmp_path: Path) -> None:
    whole = opened(CASES / "late_by_data_loading", step="all")
    (late,) = [index for index, rank in enumerate(whole.measured.ranks) if rank.rank == 2]
    # From the end of the step before: a step alone begins later.
    assert [gap.ns for gap in whole.gaps[late]] == [30_340_000] * 2
    for number in range(3):
        (gap,) = opened(CASES / "late_by_data_loading", step=str(number)).gaps[late]
        assert (gap.ns, gap.covered_ns) == (30_220_000, 30_200_000)


def test_the_cause_of_a_gap_is_in_the_lane_that_shows_the_call(tmp_path: Path) -> None:
    hosts = [
        (f"host calls {_MAIN}", around("user_annotation", "enumerate(DataLoader)#X", 1020, 19_900)),
        (f"host {_MAIN}", around("cpu_op", "aten::outermost", 1020, 19_900)),
        (f"host calls {_MAIN}", call("cudaMalloc", 1020, 19_900)),
    ]
    for stream, made in hosts:
        lanes = results_of(tmp_path, idle(made)).lanes
        assert stream in lanes.streams(0)
        spans = lanes.spans(0, None)
        (index,) = [at for at, op in enumerate(spans.op) if spans.end[at] - spans.start[at] == 20_000_000]
        told = lanes.words.summarize(0, None, index, RankSet.of([0]))
        assert figures(told.details).count("19.900 ms") == 1
        (step, *_) = lanes.words.find_steps(0, None, index, None, -1)
        assert (step.stream, step.start_ns) == (stream, 120_000)
        assert figures(step.words)[-1] == "19.900 ms"
        shown = lanes.spans(0, stream)
        assert (120_000, 20_020_000) in zip(shown.start, shown.end, strict=True)
        assert ("because", told.details) in lanes.words.detail_rows(0, None, index, None)


def test_a_call_has_its_place_in_the_file_and_its_thread(tmp_path: Path) -> None:
    lanes = results_of(tmp_path, idle(call("cudaMalloc", 1020, 19_900))).lanes
    lane = f"host calls {_MAIN}"
    rows = dict(lanes.words.detail_rows(0, lane, 0, None))
    assert rows["operation"] == "cudaMalloc"
    assert [value for name, value in rows.items() if "host thread" in name] == [str(_MAIN)]
    assert rows["event"].startswith("5 of ")
    assert lanes.streams(0)[lane] == f"calls {_MAIN}"
    # What a thread launched is told of its operations alone.
    assert lanes.words.find_steps(0, lane, 0, None, 1) == []


def test_a_host_that_is_in_no_call_has_no_lane_of_calls(tmp_path: Path) -> None:
    lanes = results_of(tmp_path, idle()).lanes
    assert not any("calls" in stream for stream in lanes.streams(0))


def test_names_of_a_file_never_reach_a_terminal_raw(tmp_path: Path) -> None:
    name = "\x1b[31mred\x1b[0m [bold]" + "x" * 5000
    results = results_of(tmp_path, idle(around("cpu_op", name, 1020, 19_900), python(name, 1019, 19_902)))
    page = "\n".join(
        [*run_page(results), *insight_lines(results), *(leg.reason for leg in merged_segments_of(results))]
    )
    assert "\x1b" not in page
    assert "x" * 200 not in page
    assert results.gaps[0][0].name == name


@needs_corpus
def test_gaps_move_with_the_clock_of_their_rank() -> None:
    results = opened(DLRM)
    for rank, gaps in zip(results.measured.ranks, results.gaps, strict=True):
        assert gaps
        ends = set(rank.ops.start) | {rank.last_ns}
        assert all(gap.end in ends for gap in gaps)


# -- Nsight Systems ------------------------------------------------------------------------


def test_an_export_tells_its_calls_and_ranges(tmp_path: Path) -> None:
    kernels = [(100, 200, 1), (900_200, 900_300, 2), (1_800_300, 1_800_400, 3), (2_700_400, 2_700_500, 4)]
    launch_name, wait_name = "cudaLaunchKernel_v7000", "cudaStreamSynchronize_v3020"
    calls = [
        (50, 60, 5, 1, launch_name),
        (300, 800_000, 5, 90, wait_name),
        (900_000, 900_100, 5, 2, launch_name),
        (900_250, 1_800_250, 6, 3, launch_name),
        (2_700_300, 2_700_350, 5, 4, launch_name),
    ]
    ranges = [(1_800_500, 2_700_000, 5, "load"), (0, 2_700_000, 6, "other")]
    path = launching(tmp_path / "a.sqlite", kernels, calls, ranges)
    results = opened(path, step="all")
    assert [(gap.name, gap.kind, gap.thread, gap.covered_ns) for gap in results.gaps[0]] == [
        ("cudaStreamSynchronize", "runtime", "5", 799_700),
        ("cudaLaunchKernel", "runtime", "6", 899_950),
        ("load", "annotation", "5", 899_500),
    ]
    assert any("cudaLaunchKernel" in line for line in insight_lines(results))
