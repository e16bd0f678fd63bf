"""Columns of what a host did: their order, and that batches, threads and spellings make no difference."""

from __future__ import annotations

import json
import pickle
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.kineto import reading
from simcore.kineto.host import Ranges, lane_columns, outermost
from simcore.kineto.loading import ReadOptions, read_all
from simcore.kineto.reading import read_file_events
from simcore.kineto.recording import Recording
from simcore.kineto.sets import ProfilerFile

# Few times and names, so that many are equal.
_ROWS = st.lists(
    st.tuples(st.integers(0, 6), st.sampled_from((0, 1, 2.5, 4, -1)), st.sampled_from("ab")), max_size=12
)
_Row = tuple[float, float, str]


def _ranges(rows: list[_Row], first: int = 0) -> Ranges:
    ranges = Ranges()
    for place, (start, length, name) in enumerate(rows, first):
        ranges.add(start, length, name, place)
    return ranges


def _tuples(ranges: Ranges) -> list[tuple[float, float, str, int]]:
    columns = ranges.start, ranges.ends, ranges.name, ranges.event_index
    return [(start, -end, name, place) for start, end, name, place in zip(*columns, strict=True)]


@given(_ROWS, _ROWS)
def test_ranges_in_order_are_sorted_tuples_of_start_and_end(rows: list[_Row], others: list[_Row]) -> None:
    ranges, more = _ranges(rows), _ranges(others, len(rows))
    assert _tuples(ranges.sort()) == sorted(_tuples(ranges))
    both = sorted([*_tuples(ranges), *_tuples(more)])
    assert _tuples(ranges.sort().merge(more.sort())) == both


@given(_ROWS)
def test_outermost_ranges_begin_when_the_one_before_is_over(rows: list[_Row]) -> None:
    ranges, reached, outer = _ranges(rows).sort(), -1.0, []
    for row, (start, minus_end, _, _) in enumerate(_tuples(ranges)):
        if start >= reached:
            outer.append(row)
            reached = -minus_end
    assert outermost(ranges) == outer


def _events(drawn: random.Random, as_text: bool) -> list[dict[str, Any]]:
    """Launches of kernels and copies, by two threads, in operations, annotations and calls of Python."""

    def number(value: int) -> Any:
        return str(value) if as_text else value

    events: list[dict[str, Any]] = []
    for place in range(1, 60):
        at, thread = place * 100 + drawn.choice((0, 0.125)), drawn.choice((1, 2))
        host = {"ph": "X", "pid": 5, "tid": thread}
        name = drawn.choice(("aten::mm", "aten::add", "record_param_comms", "c10d::allreduce_"))
        args: dict[str, Any] = {"External id": number(place), "Input Dims": [[8, 8]], "Input type": ["float"]}
        events.append(host | {"cat": "cpu_op", "name": name, "ts": at, "dur": 50, "args": args})
        events.append(host | {"cat": "python_function", "name": "step", "ts": at - 1, "dur": 60})
        if drawn.random() < 0.3:
            events.append(host | {"cat": "user_annotation", "name": "## forward ##", "ts": at - 2, "dur": 70})
        launch = {"ts": at + drawn.choice((1, 20)), "dur": drawn.choice((2, 15))}
        launch_args = {"correlation": number(place)}
        events.append(host | {"cat": "cuda_runtime", "name": "launch", "args": launch_args} | launch)
        stated = {"device": 0, "stream": number(7), "correlation": number(place)} | args
        kind = drawn.choice(("kernel", "kernel", "gpu_memcpy"))
        kernel = {
            "ph": "X",
            "pid": 0,
            "tid": 7,
            "cat": kind,
            "name": f"k{place % 3}",
            "ts": at + 30,
            "dur": 9,
        }
        size = {"bytes": 64} if kind == "gpu_memcpy" else {"grid": [place, 1, 1], "block": [32, 1, 1]}
        events.append(kernel | {"args": stated | size})
    drawn.shuffle(events)
    return events


def _read(events: list[dict[str, Any]]) -> list[Recording]:
    data = json.dumps({"traceEvents": events}, separators=(",", ":")).encode()
    return read_file_events("trace.json", data)[0]


@pytest.mark.parametrize("seed", range(8))
def test_batches_of_any_size_make_the_same_recording(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    events = _events(random.Random(seed), as_text=False)
    (whole,) = _read(events)
    monkeypatch.setattr("simcore.kineto.events._BATCH", 700)
    assert _read(events) == [whole]
    assert whole.columns.host is not None
    # Each kernel has its launch, and what is around it.
    assert -1 not in whole.columns.host.launcher
    assert None not in whole.columns.operation


@pytest.mark.parametrize("seed", range(4))
def test_numbers_as_text_make_the_same_recording(seed: int) -> None:
    """The quick way takes numbers alone."""
    recordings = [_read(_events(random.Random(seed), as_text)) for as_text in (False, True)]
    assert recordings[0] == recordings[1]


def test_what_the_host_did_is_made_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A report does not ask; a process that reads for another sends the columns."""
    made = []
    monkeypatch.setattr(reading, "lane_columns", lambda *parts: made.append(1) or lane_columns(*parts))
    (one,) = _read(_events(random.Random(1), as_text=False))
    assert one.columns.host is not None
    part = one.columns.host.part(range(len(one.ops)), (one.first_ns, one.last_ns)).shift(5)
    assert not made
    names = part.lane.columns.name
    assert pickle.loads(pickle.dumps(part)) == part
    assert names == part.lane.columns.name != []
    assert made == [1]


@pytest.mark.parametrize("count", [1, 3])
def test_of_several_files_no_rank_holds_what_its_lanes_are_made_of(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, files = [], []
    monkeypatch.setattr(reading, "lane_columns", lambda *parts: made.append(1) or lane_columns(*parts))
    for rank in range(count):
        path = tmp_path / f"rank{rank}.json"
        path.write_text(json.dumps({"traceEvents": _events(random.Random(rank), as_text=False)}))
        files.append(ProfilerFile(str(path), rank, path.stat().st_size))
    assert len(read_all(files, ReadOptions(keep=False))[0]) == count
    assert len(made) == (count if count > 1 else 0)


def test_of_launches_with_one_correlation_the_last_counts() -> None:
    kernel = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 50, "dur": 9}
    launch = {"ph": "X", "cat": "cuda_runtime", "name": "launch", "pid": 5, "tid": 1, "dur": 2}
    args = {"correlation": 3}
    (one,) = _read(
        [launch | {"ts": ts, "args": args} for ts in (10, 20)]
        + [kernel | {"args": args | {"device": 0, "stream": 7}}]
    )
    assert one.columns.host is not None
    assert (list(one.columns.host.launch), list(one.columns.host.launched)) == ([20_000], [22_000])
