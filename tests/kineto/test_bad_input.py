"""Damaged, hostile and huge profiler traces: an error that says where, or a picture with diagnostics."""

from __future__ import annotations

import gzip
import json
import random
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simcore.diagnostics import InputError, UsageError
from simcore.kineto.reading import read_file_events
from simcore.measured import MeasuredRun
from simcore.parameters import OpeningOptions, Parameters
from simcore.render.report.pages import run_json, run_page
from simcore.runs.measured import run_recording
from simcore.sources.inputs import open_input
from tests.kineto.corpus import CORPUS, NSYS, every_file, needs_corpus, unpacked
from tests.says import figures, said


def event(**given: Any) -> dict[str, Any]:
    """A kernel, with what is given in its place."""
    return {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 100, "dur": 10,
            "args": {"stream": 7, "device": 0}} | given  # fmt: skip


def opened(tmp_path: Path, events: list[Any], **top: Any) -> MeasuredRun:
    """The run of a file with these events."""
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events} | top))
    run = open_input(str(path))
    assert isinstance(run, MeasuredRun)
    return run


def shown(run: MeasuredRun) -> None:
    """Everything that is made of a run, without a traceback; its accounts sum to the step."""
    results = run_recording(run, Parameters())
    assert run_page(results)
    for one in run_json(results)["classes"]:
        accounts = sum(one["compute_ns"].values()) + sum(one["exposed_ns"].values())
        accounts += sum(one[f"{name}_ns"] for name in ("wait", "bubble", "host", "idle"))
        assert accounts == results.step_time_ns


@pytest.mark.parametrize(
    "change",
    [{"ts": "soon"}, {"ts": {}}, {"cat": 7}, {"tid": [1]}, {"ts": "500,0"}, {"ph": None}],
)
def test_an_event_that_cannot_be_is_left_out_with_its_byte(tmp_path: Path, change: dict[str, Any]) -> None:
    run = opened(tmp_path, [event(), event(**change), event(ts=200)])
    assert (run.ops, run.step_time_ns) == (2, 110_000)
    text = (tmp_path / "trace.json").read_text()
    (message,) = [one.message for one in run.diagnostics if one.code == "lost-events"]
    second = text.index('{"ph"', text.index('{"ph"') + 1)
    assert f"byte {second}" in message
    shown(run)


def test_where_no_event_can_be_read_that_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        opened(tmp_path, [event(ts="100,5"), event(ts="200,5")])
    assert [one.code for one in caught.value.diagnostics] == ["no-events", "lost-events"]


def test_numbers_as_text_beside_an_event_that_cannot_be_are_numbers(tmp_path: Path) -> None:
    run = opened(tmp_path, [event(ts="100"), event(ts="soon"), event(ts=200)])
    assert (run.ops, run.step_time_ns) == (2, 110_000)
    assert {"lost-events", "damaged-file"} <= {one.code for one in run.diagnostics}


@pytest.mark.parametrize(
    "change",
    [
        {"args": {"stream": {}, "device": [], "correlation": "x", "grid": "1", "bytes": -1}},
        {"args": 7},
        {"args": {"stream": 10**30, "Collective name": 7, "Process Group Ranks": "[0, 1, ..., 7]"}},
        {"name": None},
        {"name": "\x1b[31m\u202e[bold]"},
        {"dur": None},
        {"pid": "Spans"},
        {"id": {"local": [1]}},
        {"args": {"stream": "--5", "Collective name": "allreduce", "Process Group Ranks": "[0,,1]"}},
        {"args": {"grid": [10**400, 1, 1], "block": [[[]]], "est. achieved occupancy %": 10**40}},
        {"args": {"Collective name": "allreduce", "Process Group Ranks": "[" + "9" * 5000 + "]"}},
    ],
)
def test_what_is_odd_beside_the_times_is_shown(tmp_path: Path, change: dict[str, Any]) -> None:
    run = opened(tmp_path, [event(), event(ts=200, **change)])
    assert run.ops == 2
    shown(run)


@pytest.mark.parametrize("change", [{"ts": 1e300}, {"dur": 10**19}, {"dur": 18446744073709551.574}])
@pytest.mark.parametrize("category", ["kernel", "aiu"])
def test_times_that_cannot_be_are_left_out_and_said(
    tmp_path: Path, category: str, change: dict[str, Any]
) -> None:
    beside = event(cat=category, ts=300, tid=8, args={"stream": 8, "device": 0})
    run = opened(tmp_path, [event(), beside | change, beside])
    assert run.ops == 2
    (message,) = [one.message for one in run.diagnostics if one.code == "no-time"]
    assert figures(message)[0] == "1"
    shown(run)


@pytest.mark.parametrize("cat", ["user_annotation", "gpu_user_annotation", "cpu_op"])
def test_times_of_the_host_that_cannot_be_are_left_out_and_said(tmp_path: Path, cat: str) -> None:
    far = event(cat=cat, name="ProfilerStep#1", ts=1e300)
    other = event(cat="cpu_op", name="aten::mm") if cat == "cpu_op" else event()
    run = opened(tmp_path, [other, far])
    assert (run.ops, run.step_time_ns) == (1, 10_000)
    assert "no-time" in [one.code for one in run.diagnostics]


def test_a_base_written_as_a_fraction_is_the_same(tmp_path: Path) -> None:
    assert opened(tmp_path, [event()], baseTimeNanoseconds=1.7e18).step_time_ns == 10_000


def test_a_base_that_cannot_be_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="baseTimeNanoseconds: found 9000000000000000000"):
        opened(tmp_path, [event()], baseTimeNanoseconds=9 * 10**18)


@pytest.mark.parametrize("dur", [None, 0, "NaN"])
def test_a_step_in_which_nothing_takes_time_is_shown(tmp_path: Path, dur: str | None) -> None:
    run = opened(tmp_path, [event(dur=dur), event(dur=dur)])
    assert run.step_time_ns == 0
    shown(run)


def test_negative_durations_are_said_and_taken_as_nothing(tmp_path: Path) -> None:
    run = opened(tmp_path, [event(), event(ts=200, dur=-5)])
    assert "1 event with a negative duration, taken as 0" in [one.message for one in run.diagnostics]
    shown(run)


def test_events_without_a_time_are_said(tmp_path: Path) -> None:
    run = opened(tmp_path, [event(), event(ts=None)])
    assert "1 event without a time, left out" in [one.message for one in run.diagnostics]


def test_nesting_is_refused_and_names_no_stack(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    deep = "[" * 200_000
    path.write_text('{"traceEvents": [{"ph": "X", "cat": "kernel", "args": {"a": ' + deep)
    with pytest.raises(InputError, match=r"deeper than any trace has them, at byte 556$"):
        open_input(str(path))


def test_a_gzip_bomb_is_refused_before_it_takes_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("simcore.kineto.loading.most_bytes", lambda path: 1 << 20)
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(b'{"traceEvents": [' + b" " * (16 << 20), 9))
    with pytest.raises(InputError, match="found more than 1 MiB"):
        open_input(str(path))


def test_gzip_may_hold_what_traces_do_and_no_hundred_times_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("simcore.kineto.loading.MOST_BYTES", 1 << 20)
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(json.dumps({"traceEvents": [event()], "pad": " " * (1 << 19)}).encode()))
    assert len(open_input(str(path)).diagnostics)
    path.write_bytes(gzip.compress(json.dumps({"traceEvents": [event()], "pad": " " * (4 << 20)}).encode()))
    with pytest.raises(InputError, match="found more than 1 MiB"):
        open_input(str(path))


def test_gzip_that_ends_early_gives_what_it_has(tmp_path: Path) -> None:
    drawn = random.Random(3)
    events = [event(ts=100 * number, name=f"k{drawn.random()}") for number in range(200)]
    data = gzip.compress(json.dumps({"distributedInfo": {"rank": 1}, "traceEvents": events}).encode())
    path = tmp_path / "rank1.json.gz"
    path.write_bytes(data[: len(data) // 2])
    run = open_input(str(path))
    assert isinstance(run, MeasuredRun)
    assert 60 < run.ops < 140
    assert "cut-file" in {one.code for one in run.diagnostics}
    path.write_bytes(data[:15])
    with pytest.raises(InputError, match="ends early, at byte 15"):
        open_input(str(path))


def test_a_file_cut_before_its_events_is_told_by_how_kineto_begins(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text('{\n  "schemaVersion": 1,\n  "deviceProperties": [\n    {"id": 0, "na')
    with pytest.raises(InputError, match="the file ends at byte 65, before its first event is whole"):
        open_input(str(path))


def test_a_rank_whose_gzip_is_damaged_is_said_with_the_reason(tmp_path: Path) -> None:
    for rank in range(3):
        text = json.dumps({"distributedInfo": {"rank": rank, "world_size": 3}, "traceEvents": [event()]})
        data = bytearray(gzip.compress(text.encode()))
        if rank == 1:
            data[40:49] = b"\xff" * 9
        (tmp_path / f"rank{rank}.json.gz").write_bytes(data)
    run = open_input(str(tmp_path))
    assert isinstance(run, MeasuredRun)
    lines = [one.text() for one in run.diagnostics]
    said(lines, "rank1.json.gz", "gzip", "damaged")
    said(lines, "ranks-missing", "rank 1")


@pytest.mark.parametrize("rank", [5, 3, -1])
def test_a_rank_outside_of_the_world_that_its_file_states_is_an_error_with_its_place(
    tmp_path: Path, rank: int
) -> None:
    for name, number in (("a", 0), ("b", rank)):
        text = json.dumps({"distributedInfo": {"rank": number, "world_size": 3}, "traceEvents": [event()]})
        (tmp_path / f"{name}.json").write_text(f"{{\n{text[1:]}")
    path = str(tmp_path / "b.json")
    with pytest.raises(InputError) as refused:
        open_input(path)
    (error,) = refused.value.diagnostics
    assert (error.code, error.file, error.line, error.column) == ("bad-rank", path, 2, 1)
    assert str(rank) in error.message
    # Beside another rank that can be, it is left out.
    run = open_input(str(tmp_path))
    assert isinstance(run, MeasuredRun)
    assert "bad-rank" in {one.code for one in run.diagnostics}
    assert [one.rank for one in run.ranks] == [0]


@pytest.mark.slow
def test_so_many_steps_take_no_longer_each(tmp_path: Path) -> None:
    """20,000 steps: looking each one up among all others took a minute of 60,000."""
    steps = [
        event(cat="user_annotation", name=f"ProfilerStep#{number}", ts=10 * number, dur=9)
        for number in range(20_000)
    ]
    begin = time.process_time()
    run = opened(tmp_path, [event(ts=10 * 19_999, dur=2), *steps])
    assert run.recorded is not None
    assert run.recorded.step == 19_999
    assert time.process_time() - begin < 4


def test_more_devices_than_there_can_be_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="found events of 5000 devices, expected at most 4096"):
        opened(tmp_path, [event(pid=number, args={}) for number in range(5000)])


def test_a_file_that_does_not_fit_into_memory_is_refused_with_the_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for rank in (0, 1):
        (tmp_path / f"rank{rank}.json").write_text(
            json.dumps({"traceEvents": [event()], "pad": "x" * 100_000})
        )
    monkeypatch.setattr("simcore.kineto.loading.free_bytes", lambda: 100_000)
    with pytest.raises(UsageError, match=r"would need about 300\.\d kB of memory and 100\.0 kB are free"):
        open_input(str(tmp_path))


def test_a_step_whose_report_does_not_fit_into_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """450 B for each operation, and 2300 B for each that communicates."""
    kernels = [event(ts=10 * number, dur=5) for number in range(30)]
    calls = [event(name="ncclDevKernel_AllReduce", ts=10 * number + 300, dur=5) for number in range(10)]
    needed = 40 * 450 + 10 * 2300
    monkeypatch.setattr("simcore.kineto.opening.free_bytes", lambda: needed)
    assert opened(tmp_path, [*kernels, *calls]).ops == 40
    monkeypatch.setattr("simcore.kineto.opening.free_bytes", lambda: needed - 1)
    with pytest.raises(UsageError, match=r"40 operations of .* would need about 41\.0 kB of memory"):
        opened(tmp_path, [*kernels, *calls])


def test_very_many_streams_and_kernels_at_one_time(tmp_path: Path) -> None:
    shown(opened(tmp_path, [event(tid=number, args={"stream": number}) for number in range(10_000)]))


@pytest.mark.parametrize("flow", [{"id": {}}, {"id": None}, {"ts": None}, {"id": 1, "tid": 7}, {"id": "x"}])
def test_odd_flows_are_no_hindrance(tmp_path: Path, flow: dict[str, Any]) -> None:
    both = [{"ph": ph, "cat": "fwdbwd", "id": 1, "pid": 0, "tid": 1, "ts": 5} | flow for ph in "sf"]
    assert opened(tmp_path, [event(), *both]).ops == 1


def test_an_event_of_nested_objects_across_batches_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    nested = {"stream": 7, "list": [{"a": number} for number in range(2000)]}
    monkeypatch.setattr("simcore.kineto.events._BATCH", 300)
    data = json.dumps({"traceEvents": [event(args=nested), event(ts=200)]}).encode()
    (found,), _ = read_file_events("f", data)
    assert list(found.ops.start) == [100_000, 200_000]


def test_events_across_batches_are_all_read(monkeypatch: pytest.MonkeyPatch) -> None:
    events = [
        event(ts=100 + 20 * number, args={"stream": 7, "list": [{"a": 1}, {"b": "}, {"}]})
        for number in range(400)
    ]
    data = json.dumps({"traceEvents": events, "more": [{}, {}]}).encode()
    monkeypatch.setattr("simcore.kineto.events._BATCH", 500)
    (found,), _ = read_file_events("f", data)
    assert list(found.ops.start) == [(100 + 20 * number) * 1000 for number in range(400)]
    assert list(found.ops.line) == list(range(400))


def test_an_event_of_a_later_batch_is_lost_at_its_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    events = [event() for _ in range(300)] + [event(ts="soon")]
    monkeypatch.setattr("simcore.kineto.events._BATCH", 500)
    text = json.dumps({"traceEvents": events})
    (recording,), said = read_file_events("f", text.encode())
    assert len(recording.ops) == 300
    assert [f"byte {text.rindex('{', 0, text.index('soon'))}" in one.message for one in said] == [True]


def _cut(data: bytes, drawn: random.Random) -> bytes:
    return data[: drawn.randrange(len(data))]


def _flipped(data: bytes, drawn: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(drawn.randint(1, 20)):
        changed[drawn.randrange(len(changed))] ^= 1 << drawn.randrange(8)
    return bytes(changed)


def _hostile(data: bytes, drawn: random.Random) -> bytes:
    """Numbers are replaced by others."""
    words = [b"-1", b"1e308", b"9" * 30, b'"x"', b"null", b"[]", b"0.000001"]
    changed = bytearray(data)
    for _ in range(5):
        at = changed.find(b'"dur": ', drawn.randrange(len(changed)))
        if at >= 0:
            end = changed.find(b",", at)
            changed[at + 7 : end] = drawn.choice(words)
    return bytes(changed)


def _survives(path: Path) -> None:
    """An error that names the file, or a picture."""
    try:
        run = open_input(str(path), OpeningOptions())
    except (InputError, UsageError):
        return
    assert isinstance(run, MeasuredRun)
    shown(run)


@pytest.mark.sampled(9)
@needs_corpus
@pytest.mark.slow
@pytest.mark.parametrize("damage", [_cut, _flipped, _hostile])
@pytest.mark.parametrize("path", every_file(), ids=lambda one: one.name[:14])
def test_damaged_files_of_the_corpus(
    path: Path,
    damage: Callable[[bytes, random.Random], bytes],
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    drawn = random.Random(zlib.crc32(path.name.encode()))
    data = unpacked(path)
    whole = request.config.getoption("--whole")
    for number in range(50 if whole else 1):
        damaged = tmp_path / f"{number}.json"
        damaged.write_bytes(damage(data, drawn))
        _survives(damaged)
        damaged.unlink()


@needs_corpus
@pytest.mark.slow
def test_damaged_exports_and_gzip(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    drawn = random.Random(1)
    packed = next(CORPUS.rglob("worker0*")).read_bytes()
    export = NSYS.read_bytes()
    for number in range(12 if request.config.getoption("--whole") else 4):
        for name, data in (("a.json.gz", packed), ("b.sqlite", export)):
            path = tmp_path / f"{number}_{name}"
            path.write_bytes((_cut if number % 2 else _flipped)(data, drawn))
            _survives(path)
            path.unlink()
