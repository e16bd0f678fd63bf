"""Memory snapshots as CSV and as counters: both equal a second count of the file's own events."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.diagnostics import UsageError
from simcore.parameters import Parameters
from simcore.ranks import RankSet
from simcore.render.export import Request
from simcore.sources.inputs import open_input
from tests.export.reading import BY_NAME, load, ns, read_lines
from tests.snapshots.made import BEGIN_US, MB, STACKS, Allocator, count_again, random_run, snapshot, write


def exported(name: str, path: Path, ranks: list[int] | None = None, per_rank: bool = False) -> bytes:
    chosen = None if ranks is None else RankSet.of(ranks)
    request = Request(open_input(str(path)), Parameters(), chosen, per_rank=per_rank)
    export = BY_NAME[name].build_export(request)
    data = b"".join(export.chunks)
    assert export.progress is not None
    return data


def number(text: str, unknown: float) -> float:
    return float(text) if text else unknown


@given(st.integers(0, 10**6), st.integers(0, 80), st.booleans(), st.one_of(st.none(), st.integers(1, 60)))
def test_lines_and_counters_are_what_a_naive_replay_counts(
    tmp_path_factory: pytest.TempPathFactory, seed: int, steps: int, expandable: bool, keep: int | None
) -> None:
    content = snapshot(random_run(seed, steps, 1, expandable), keep=keep)
    path = write(tmp_path_factory.mktemp("run") / "snapshot.pickle", content)
    again = count_again(content, 1)
    events = content["device_traces"][1]
    first_us = events[0]["time_us"]
    times = [-1, *(1000 * (event["time_us"] - first_us) for event in events)]
    # What is held after each event, from the lines alone.
    lines = read_lines(exported("csv", path))
    held = [
        sum(
            int(line["bytes"])
            for line in lines
            if number(line["start_ns"], -1) <= time < number(line["end_ns"], float("inf"))
        )
        for time in times
    ]
    assert held == again["allocated"]
    blocks = [block for segment in content["segments"] for block in segment["blocks"]]
    assert sorted(int(line["address"], 16) for line in lines if not line["end_ns"]) == sorted(
        block["address"] for block in blocks if block["state"] == "active_allocated"
    )
    counters = [one for one in load(exported("chrome", path))["traceEvents"] if one["ph"] == "C"]
    levels = {ns(one["ts"]): (one["args"]["allocated"], one["args"]["reserved"]) for one in counters}
    expected = dict(
        zip([0, *times[1:]], zip(again["allocated"], again["reserved"], strict=True), strict=True)
    )
    for time, level in expected.items():
        assert levels[max(known for known in levels if known <= time)] == level
    assert all(one["pid"] == 1 for one in counters)


def test_a_line_has_where_and_in_what_it_was_allocated(tmp_path: Path) -> None:
    allocator = Allocator()
    first = allocator.alloc(3 * MB, STACKS[0])
    allocator.alloc(100, STACKS[1])
    allocator.fail(40 * MB, 5 * MB, STACKS[2])
    allocator.free(first)
    marks = [
        {"device": 0, "time_us": BEGIN_US + 10, "name": "=forward", "stage": "START"},
        {"device": 0, "time_us": BEGIN_US + 15, "name": "=forward", "stage": "END"},
    ]
    path = write(tmp_path / "snapshot.pickle", snapshot(allocator, external_annotations=marks))
    one, other = read_lines(exported("csv", path))
    # A segment, both allocations in it, the failure, the release: 7 us each.
    assert (one["bytes"], one["start_ns"], one["end_ns"], one["free_ns"]) == (
        str(3 * MB), "7000", "28000", "35000"
    )  # fmt: skip
    assert (one["mark"], one["site"], other["mark"]) == ("'=forward", "forward  model.py:41", "")
    assert one["segment"] == one["address"] == f"{first:#x}"
    assert one["frames"].split("; ")[2:] == ["forward /train/model.py:41", "main /train/train.py:9"]
    assert (other["end_ns"], other["free_ns"], other["rank"], other["device"]) == ("", "", "", "0")
    (failed,) = [one for one in load(exported("chrome", path))["traceEvents"] if one["ph"] == "i"]
    assert failed["args"] == {
        "asked": 40 * MB, "free": 5 * MB, "allocated": 3 * MB + 100, "reserved": 20 * MB,
        "site": "loss  train.py:30",
    }  # fmt: skip
    assert ns(failed["ts"]) == 21_000


def test_devices_are_chosen_and_others_are_refused(tmp_path: Path) -> None:
    content = snapshot(random_run(1, 30, 0), random_run(2, 30, 1))
    path = write(tmp_path / "snapshot.pickle", content)
    assert {line["device"] for line in read_lines(exported("csv", path))} == {"0", "1"}
    assert {line["device"] for line in read_lines(exported("csv", path, [1]))} == {"1"}
    for wrong in ({"ranks": [7]}, {"per_rank": True}):
        for name in ("csv", "chrome"):
            with pytest.raises(UsageError, match=r"ranks|per-rank"):
                exported(name, path, **wrong)
    with pytest.raises(UsageError, match="expected a workload"):
        exported("simai", path)
