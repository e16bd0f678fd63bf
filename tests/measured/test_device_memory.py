"""The memory of a device as its allocator recorded it, counted a second time from the JSON itself."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from simcore.parameters import OpeningOptions, Parameters
from simcore.render.report.pages import run_json
from simcore.runs.measured import RecordedRun, run_recording
from simcore.sources.inputs import open_input

FOLDER = Path("../shared/corpus/kineto_memory")
NAMES = {"bert_small_h100.json.gz": (0, 101_305_344), "df_index_resolver.json.gz": (1, 6_629_508_096)}


def run_of(path: str | Path, **options: Any) -> RecordedRun:
    return run_recording(open_input(str(path), OpeningOptions(**options)), Parameters())  # type: ignore[arg-type]


def count_again(events: list[dict[str, Any]], device: int) -> tuple[int, int]:
    """(peak of all events of a device, the bytes of allocations that are live then)."""
    rows = sorted(
        (
            (event["ts"], event["args"])
            for event in events
            if event.get("name") == "[memory]"
            and event["args"]["Device Type"] == 1
            and event["args"]["Device Id"] == device
        ),
        key=lambda row: row[0],
    )
    totals = [args["Total Allocated"] for _, args in rows]
    peak = totals.index(max(totals))
    live: dict[int, int] = {}
    for _, args in rows[: peak + 1]:
        if args["Bytes"] > 0:
            live[args["Addr"]] = args["Bytes"]
        else:
            live.pop(args["Addr"], None)
    return totals[peak], sum(live.values())


@pytest.mark.parametrize("name", NAMES)
def test_peaks_of_real_recordings_are_those_of_a_second_count(name: str) -> None:
    if not FOLDER.exists():
        pytest.skip("../shared/corpus/kineto_memory is not here")
    device, most = NAMES[name]
    events = json.loads(gzip.decompress((FOLDER / name).read_bytes()))["traceEvents"]
    peak, live = count_again(events, device)
    assert peak == most
    run = run_of(FOLDER / name)
    (of_rank,) = run.model.memory_peaks
    assert of_rank.allocated_bytes == most
    assert sum(size for _, size in of_rank.held_by) == live <= most
    lane = run.model.memory_lane(0)
    assert lane is not None
    assert max(lane.peak_bytes([0, run.step_time_ns])) == most


def event(cat: str, name: str, ts: float, dur: float, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur, "args": args}


def memory(ts: float, size: int, address: int, allocated: int, **more: Any) -> dict[str, Any]:
    args = {"Device Type": 1, "Device Id": 0, "Addr": address, "Bytes": size, "Total Allocated": allocated,
            "Total Reserved": 4000}  # fmt: skip
    return {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": ts,
            "args": args | more}  # fmt: skip


# 1,000 B before; a holds 500 and gives them back, b holds 700 and c 900 at the peak of 2,600 B, at 40 us.
EVENTS = [
    event("cpu_op", "aten::a", 10, 5),
    event("cpu_op", "aten::b", 20, 5),
    event("cpu_op", "aten::c", 39, 5),
    memory(12, 500, 1, 1500),
    memory(22, 700, 2, 2200),
    memory(30, -500, 1, 1700),
    memory(40, 900, 1, 2600),
    memory(60, -900, 1, 1700),
    event("cuda_runtime", "cudaLaunchKernel", 10, 1, correlation=7),
    event("kernel", "k", 10, 90, device=0, stream=7, correlation=7),
]


def trace_file(folder: Path, events: list[dict[str, Any]]) -> Path:
    path = folder / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return path


def test_who_holds_memory_at_the_peak_is_what_allocated_and_has_not_released_it(tmp_path: Path) -> None:
    run = run_of(trace_file(tmp_path, EVENTS))
    (peak,) = run.model.memory_peaks
    assert (peak.rank, peak.allocated_bytes, peak.time_ns, peak.operation) == (0, 2600, 30_000, "aten::c")
    assert Counter(dict(peak.held_by)) == Counter({"aten::c": 900, "aten::b": 700})
    lane = run.model.memory_lane(0)
    assert lane is not None
    edges = [0, 2_000, 12_000, 20_000, 30_000, 50_000, 90_000]
    assert lane.peak_bytes(edges) == [1000, 1500, 2200, 1700, 2600, 1700]
    (entry,) = run_json(run)["memory_peaks"]
    assert entry["held_by"][0] == {"operation": "aten::c", "bytes": 900}


@pytest.mark.parametrize(
    "odd",
    [
        {"Device Type": 0},
        {"Total Allocated": "many"},
        {"Total Allocated": -1},
        {"Bytes": 1e300},
        {"Addr": 1 << 80},
        {"Total Reserved": None},
    ],
)
def test_events_of_the_host_and_odd_figures_are_left_out(tmp_path: Path, odd: dict[str, Any]) -> None:
    run = run_of(trace_file(tmp_path, [*EVENTS, memory(45, 10**6, 9, 10**9, **odd)]))
    assert run.model.memory_peaks[0].allocated_bytes == 2600


@pytest.mark.parametrize("time", [None, 1e300, -1e300])
def test_an_event_without_a_time_is_left_out(tmp_path: Path, time: float | None) -> None:
    odd = memory(45, 10**6, 9, 10**9) | {"ts": time}
    assert run_of(trace_file(tmp_path, [*EVENTS, odd])).model.memory_peaks[0].allocated_bytes == 2600


def test_a_recording_without_allocations_says_that_memory_is_not_known(tmp_path: Path) -> None:
    run = run_of(trace_file(tmp_path, [one for one in EVENTS if one["name"] != "[memory]"]))
    assert not run.model.memory_peaks
    assert run.model.memory_unknown
    assert run.model.memory_lane(0) is None


def test_a_replay_does_not_tell_when_it_would_allocate(tmp_path: Path) -> None:
    run = run_of(trace_file(tmp_path, EVENTS)).with_parameters(Parameters(compute_scale=0.5))
    assert not run.model.memory_peaks
    assert run.model.memory_lane(0) is None
