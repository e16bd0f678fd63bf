"""Operations of a device in categories that are not Kineto's own, and events that are not shown."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from simcore.diagnostics import InputError
from simcore.kineto.reading import read_file_events
from simcore.measured import MeasuredRun
from simcore.parameters import Parameters
from simcore.render.report.pages import run_json
from simcore.runs.measured import run_recording
from simcore.sources.inputs import open_input
from tests.findings import facts
from tests.kineto.test_bad_input import event, opened
from tests.kineto.test_libraries import CASES, notes

CATEGORIES = (
    "aiu", "hpu_op", "musa_kernel", "npu", "xpu", "privateuse1_kernel", "mtia_insight_ops", "Ascend Hardware",
    "tpu::op", "gcu_op",
)  # fmt: skip
_HOST, _KERNELS = 9, 3


def operation(category: str, ts: int, args: dict[str, Any], **given: Any) -> dict[str, Any]:
    """One of a device, 390 us."""
    return event(cat=category, name=f"op_{ts}", ts=ts, dur=390, args=args) | given


def host(category: str, name: str, ts: int, args: dict[str, Any], dur: int = 10) -> dict[str, Any]:
    """An event of the host's only thread."""
    return event(cat=category, name=name, pid=_HOST, tid=_HOST, ts=ts, dur=dur, args=args)


def step(
    category: str, wanted: tuple[str, ...], runtime: str = "privateuse1_runtime"
) -> list[dict[str, Any]]:
    """Three operations launched one after another, 90 % of a step. wanted: what their arguments have."""
    events = [event(cat="user_annotation", name="ProfilerStep#3", pid=_HOST, tid=_HOST, ts=0, dur=1300)]
    for number in range(_KERNELS):
        every = {"device": 0, "stream": 7, "correlation": 100 + number}
        events += [
            host("cpu_op", "aten::mm", 10 + 20 * number, {"External id": number}),
            host(runtime, "launchKernel", 12 + 20 * number, {"correlation": 100 + number}, 4),
            operation(category, 30 + 400 * number, {key: every[key] for key in wanted}),
        ]
    return events


def computing(run: MeasuredRun) -> float:
    """Compute of the only rank, % of the step."""
    (one,) = run_json(run_recording(run, Parameters()))["classes"]
    return round(100 * sum(one["compute_ns"].values()) / run.step_time_ns, 1)


@pytest.mark.parametrize("case", ["device_category_aiu", "device_category_hpu_op"])
def test_the_case_computes(case: str) -> None:
    run = open_input(str(CASES / f"{case}.json"))
    assert isinstance(run, MeasuredRun)
    assert computing(run) == 90.0
    assert not notes(run, "no-device")


@pytest.mark.parametrize(
    "wanted",
    [("device", "stream", "correlation"), ("stream",), ("device",), ("correlation",), ("device", "stream")],
)
def test_a_category_of_a_device_is_as_good_as_kernel(tmp_path: Path, wanted: tuple[str, ...]) -> None:
    def figures(run: MeasuredRun) -> tuple[Any, Any]:
        found = run_json(run_recording(run, Parameters()))
        return found["classes"], found["step_time_ns"]

    expected = figures(opened(tmp_path, step("kernel", wanted)))
    for category in CATEGORIES:
        run = opened(tmp_path, step(category, wanted))
        assert computing(run) == 90.0, category
        assert figures(run) == expected, category
        (said,) = notes(run, "unknown-category")
        assert said.startswith(f"{_KERNELS} events of category '{category}' are taken")


def test_calls_of_a_runtime_nobody_knows_launch_as_others_do(tmp_path: Path) -> None:
    run = opened(tmp_path, step("gcu_op", ("correlation",), runtime="gcu_runtime"))
    assert computing(run) == 90.0


def test_what_no_launch_and_no_stream_ties_to_a_device_is_counted(tmp_path: Path) -> None:
    events = step("aiu", ("correlation",))
    for one in events:
        if one["cat"] == "privateuse1_runtime":
            one["args"] = {}
    run = opened(tmp_path, events)
    assert [facts(one) for one in notes(run, "unknown-category")] == [f"{_KERNELS}, 'aiu'"]
    (said,) = notes(run, "no-device")
    assert "no device" not in said


@pytest.mark.parametrize("args", [{}, {"device": 0, "stream": 7}, {"correlation": 100}])
def test_what_the_host_did_is_no_devices(tmp_path: Path, args: dict[str, Any]) -> None:
    """On a thread of its operations, whatever it names."""
    events = step("kernel", ("device", "stream", "correlation"))
    before = computing(opened(tmp_path, events))
    events += [host("hpu_op", "compile", 500 + 10 * at, args, 9) for at in range(5)]
    run = opened(tmp_path, events)
    assert computing(run) == before
    assert [facts(one) for one in notes(run, "unknown-category")] == ["5, 'hpu_op'"]


def test_a_thread_of_the_hosts_process_is_a_stream_only_if_it_says_so(tmp_path: Path) -> None:
    for args, share in (({"device": 0, "correlation": 100}, 30.0), ({"device": 0, "stream": 5}, 60.0)):
        events = step("kernel", ("stream", "correlation"))[:4]
        events.append(operation("hpu_op", 800, args, pid=_HOST, tid=5))
        assert computing(opened(tmp_path, events)) == share


@pytest.mark.parametrize(
    "category",
    ["gpu_user_annotation", "cuda_sync", "xpu_sync", "musa_sync", "xpu_user_annotation", "cuda_event",
     "overhead", "mtia_counters", "Trace"],
)  # fmt: skip
def test_what_is_known_to_lie_over_kernels_or_beside_them_changes_nothing(
    tmp_path: Path, category: str
) -> None:
    events = step("kernel", ("device", "stream", "correlation"))
    args = {"device": 0, "stream": 20, "correlation": 100}
    more = operation(category, 0, args, dur=1299, tid=20)
    run = opened(tmp_path, [*events, more])
    assert computing(run) == 90.0
    assert not notes(run, "unknown-category")


@pytest.mark.parametrize("category", ["kernel", "aiu"])
def test_a_range_over_the_kernels_of_a_stream_is_none_of_them(tmp_path: Path, category: str) -> None:
    events = step(category, ("device", "stream", "correlation"))
    more = operation("vendor_range", 0, {"device": 0, "stream": 7}, dur=1299)
    run = opened(tmp_path, [*events, more])
    assert computing(run) == 90.0
    assert "1, 'vendor_range'" in [facts(one) for one in notes(run, "unknown-category")]


@pytest.mark.parametrize("category", ["xpu_memcpy", "hpu_memset", "musa Memcpy"])
def test_copies_are_known_by_the_word_in_their_category(tmp_path: Path, category: str) -> None:
    events = step("aiu", ("device", "stream", "correlation"))
    events.append(operation(category, 1240, {"device": 0, "stream": 8}, dur=50))
    run = opened(tmp_path, events)
    (one,) = run_json(run_recording(run, Parameters()))["classes"]
    assert one["exposed_ns"]["copy"] == 50_000
    assert computing(run) == 90.0


def test_what_is_all_unknown_is_refused_with_the_count(tmp_path: Path) -> None:
    events = [event(cat="vendor", args={}) for _ in range(5)]
    with pytest.raises(InputError, match=r"; 5 events of category 'vendor' are not shown"):
        opened(tmp_path, [*events, event(cat="overhead", args={})])
    # Without any of a profiler's categories it is a Chrome trace of another program.
    run = opened(tmp_path, events)
    assert run.recorded is not None
    assert run.recorded.format == "chrome"


def test_many_categories_and_their_letters_stay_in_bounds(tmp_path: Path) -> None:
    names = [f"\x1b[31m[bold]{number}" + "x" * 500 for number in range(300)]
    events = [event(), *(event(cat=name, args={}) for name in names), event(cat=None, args={})]
    (said,) = notes(opened(tmp_path, events), "unknown-category")
    assert "\x1b" not in said
    assert len(said) < 600
    assert "297 events of 297 further" in said


def test_every_event_is_shown_or_counted(tmp_path: Path) -> None:
    """Of any mixture: what is taken of a category and what is not are all there are of it."""
    for seed in range(30):
        rng = random.Random(seed)
        events = step("kernel", ("device", "stream", "correlation"))
        events_more = rng.randrange(1, 60)
        for at in range(events_more):
            category = rng.choice(CATEGORIES)
            args = {
                key: rng.choice((0, 7, 100, "x", None, -3))
                for key in ("device", "stream", "correlation")
                if rng.random() < 0.5
            }
            place = {"pid": rng.choice((0, 1, _HOST, "Spans")), "tid": rng.choice((7, 8, _HOST))}
            events.append(operation(category, 2000 + at, args, **place))
        path = tmp_path / f"{seed}.json"
        path.write_text(json.dumps({"traceEvents": events}))
        recordings, found = read_file_events(str(path), path.read_bytes())
        shown = sum(len(recording.ops) for recording in recordings) - _KERNELS
        said = " ".join(one.message for one in found if one.code == "unknown-category")
        assert shown + _left(said) == events_more, (seed, said)


def _left(said: str) -> int:
    """How many events a note says are not shown."""
    parts = re.split(r"(?:is|are) taken as run by a device, by the streams or launches they name", said)
    return sum(int(number) for number in re.findall(r"(\d+) events? (?:of|without)", parts[-1]))
