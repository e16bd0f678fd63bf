"""Memory snapshots: what is held over time equals a second count, and nothing but plain values is read."""

from __future__ import annotations

import gzip
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.diagnostics import InputError, UsageError
from simcore.parameters import Parameters, RunInput
from simcore.render.report.pages import run_json, run_page
from simcore.runs.snapshot import SnapshotRun, run_snapshots
from simcore.snapshots.history import BEFORE, NEVER, NO_STACK
from simcore.snapshots.opening import COLUMNS
from simcore.snapshots.record import ALLOCATED, SnapshotRecord
from simcore.sources.checking import check_file_of
from simcore.sources.inputs import open_input, read_input
from simcore.unpickling.process import read_tables
from simcore.workload.model import LARGEST
from tests.snapshots.made import (
    BEGIN_US,
    MB,
    ROUND,
    STACKS,
    Allocator,
    count_again,
    frames,
    random_run,
    snapshot,
    write,
)


def run_of(path: Path) -> SnapshotRun:
    record = open_input(str(path))
    assert isinstance(record, SnapshotRecord)
    return run_snapshots(RunInput(record, Parameters()))


def made(tmp_path: Path, *allocators: Allocator, **more: Any) -> SnapshotRun:
    return run_of(write(tmp_path / "snapshot.pickle", snapshot(*allocators, **more)))


def codes(path: Path) -> list[str]:
    return [one.code for one in check_file_of(lambda: open_input(str(path))).diagnostics]


# -- equal to a second count -----------------------------------------------------------------


def assert_equal_to_second_count(run: SnapshotRun, content: dict[str, Any]) -> None:
    for history in run.histories:
        again = count_again(content, history.device.device)
        assert [history.base_allocated, *history.allocated] == again["allocated"]
        assert [history.base_reserved, *history.reserved] == again["reserved"]
        assert history.peak == again["peak"]
        holders = history.holders_at(history.peak)
        assert sorted((holder.bytes, holder.allocations) for holder in holders) == again["holders"]
        # What no event gives back is what blocks have.
        assert history.allocations.released.count(NEVER) == history.device.blocks.state.count(ALLOCATED)


@given(
    st.integers(0, 10**6), st.integers(0, 90), st.booleans(), st.one_of(st.none(), st.integers(1, 60)),
    st.integers(0, 2),
)  # fmt: skip
def test_what_is_held_is_what_a_naive_replay_counts(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    steps: int,
    expandable: bool,
    keep: int | None,
    device: int,
) -> None:
    allocator = random_run(seed, steps, device, expandable)
    content = snapshot(allocator, keep=keep)
    path = write(tmp_path_factory.mktemp("run") / "snapshot.pickle", content)
    assert_equal_to_second_count(run_of(path), content)


def test_each_allocation_lies_in_its_segment(tmp_path: Path) -> None:
    for seed in range(6):
        run = made(tmp_path, random_run(seed, 120))
        (history,) = run.histories
        of = history.allocations
        for row, index in enumerate(history.arena_of):
            arena = history.arenas[index]
            assert index >= 0
            assert arena.address <= of.address[row] < arena.address + arena.size
            assert arena.begin <= of.begin[row]


def test_peak_is_by_stack_and_what_failed_is_stated(tmp_path: Path) -> None:
    allocator = Allocator()
    first = allocator.alloc(30 * MB, STACKS[0])
    kept = [allocator.alloc(3 * MB, STACKS[1]) for _ in range(4)]
    allocator.free(first)
    allocator.alloc(100, STACKS[2])
    allocator.fail(40 * MB, 5 * MB, STACKS[2])
    allocator.free(kept[0])
    run = made(tmp_path, allocator)
    (device,) = run.figures.snapshot.devices
    assert (device.peak_allocated, device.peak_reserved) == (42 * MB, 50 * MB)
    assert [(one.bytes, one.allocations, one.site) for one in device.holders] == [
        (30 * MB, 1, "forward  model.py:41"), (12 * MB, 4, "attention  model.py:77"),
    ]  # fmt: skip
    (failure,) = device.failures
    assert (failure.size, failure.free, failure.reserved) == (40 * MB, 5 * MB, 50 * MB)
    assert failure.allocated == 12 * MB + 100
    assert failure.unused == failure.reserved - failure.allocated
    assert failure.site == "loss  train.py:30"
    assert device.rounding == ROUND - 100
    rules = [one.rule for one in run.figures.insights]
    assert rules[:2] == ["out-of-memory", "memory-peak"]
    assert device.end_allocated == 9 * MB + 100
    page = run_page(run)
    assert "attention  model.py:77" in page
    values = run_json(run)["snapshot"]["devices"][0]
    assert values["peak"]["allocated_bytes"] == 42 * MB
    assert values["peak"]["unused_bytes"] == 8 * MB
    assert values["out_of_memory"][0]["requested_bytes"] == 40 * MB
    assert values["held_by"][0]["frames"][2] == {
        "name": "forward", "file": "/train/model.py", "line": 41
    }  # fmt: skip
    assert run.model.memory_peaks[0].allocated_bytes == 42 * MB


def test_what_was_there_before_the_events_has_the_stack_of_its_block(tmp_path: Path) -> None:
    allocator = Allocator()
    allocator.alloc(MB, STACKS[0])
    other = allocator.alloc(MB, STACKS[1])
    allocator.free(other)
    run = made(tmp_path, allocator, keep=3)
    (history,) = run.histories
    held = {history.allocations.stack[row] for row in history.live_at(BEFORE)}
    assert len(held) == 2
    assert NO_STACK in held
    words = {one.words for one in run.figures.snapshot.devices[0].holders}
    assert words == {"before the events", "forward  model.py:41"}
    assert history.base_allocated == 2 * MB


def test_expandable_segments_are_one_lane(tmp_path: Path) -> None:
    allocator = Allocator(expandable=True)
    for _ in range(3):
        allocator.alloc(20 * MB)
    run = made(tmp_path, allocator)
    (history,) = run.histories
    (arena,) = history.arenas
    assert (arena.size, arena.is_expandable) == (60 * MB, True)
    assert ("allocator", "expandable_segments:True") in run.figures.facts


def test_marks_of_the_program_name_the_peak(tmp_path: Path) -> None:
    allocator = Allocator()
    marks = []

    def mark(name: str, stage: str) -> None:
        marks.append({"name": name, "stage": stage, "device": 0, "time_us": allocator.now})

    mark("forward", "START")
    first = allocator.alloc(MB)
    mark("block 3", "START")
    allocator.alloc(MB)
    mark("block 3", "END")
    allocator.free(first)
    mark("forward", "END")
    run = made(tmp_path, allocator, external_annotations=marks)
    assert run.figures.snapshot.devices[0].annotation == "block 3"


# -- several devices and files ---------------------------------------------------------------


def test_devices_of_a_file_are_on_one_axis(tmp_path: Path) -> None:
    one, other = Allocator(0), Allocator(3, first_us=BEGIN_US + 1000)
    one.alloc(MB)
    other.alloc(5 * MB)
    run = made(tmp_path, one, other)
    assert [device.name for device in run.figures.snapshot.devices] == ["device 0", "device 3"]
    assert run.times(1)[0] - run.times(0)[0] == 1_000_000
    assert run.figures.snapshot.highest.device == 3


def test_a_folder_has_a_snapshot_a_rank(tmp_path: Path) -> None:
    for rank in range(4):
        allocator = Allocator(rank % 2)
        allocator.alloc((rank + 1) * MB, STACKS[0])
        write(tmp_path / f"snapshot_rank_{rank}.pickle", snapshot(allocator))
    (tmp_path / "notes.txt").write_text("x")
    run = run_of(tmp_path)
    assert [device.name for device in run.figures.snapshot.devices] == [f"rank {rank}" for rank in range(4)]
    assert run.figures.snapshot.highest.rank == 3
    assert "other-files" in [one.code for one in run.diagnostics]
    (tmp_path / "snapshot_rank_2.pickle").write_bytes(b"\x80\x04segments device_traces")
    assert len(run_of(tmp_path).histories) == 3


@pytest.mark.parametrize("form", ["gz", "protocol 2", "protocol 5", "stream", "segments alone", "no times"])
def test_forms_of_a_snapshot_say_the_same(tmp_path: Path, form: str) -> None:
    content = snapshot(random_run(3, 80))
    path = tmp_path / "snapshot.pickle"
    if form == "gz":
        path.write_bytes(gzip.compress(pickle.dumps(content)))
    elif form == "no times":
        for event in content["device_traces"][0]:
            del event["time_us"]
        write(path, content)
    elif form == "segments alone":
        content["device_traces"] = []
        write(path, content["segments"])
    else:
        write(path, content, int(form[-1]) if form[-1].isdigit() else 4)
    if form == "stream":
        with path.open("rb") as file:
            record = read_input(file)
        run = run_snapshots(RunInput(record, Parameters()))
    else:
        run = run_of(path)
    assert_equal_to_second_count(run, content)
    assert run.lanes.content(0, None).spans.end[-1] == run.length


def test_blocks_of_old_snapshots_have_a_history(tmp_path: Path) -> None:
    block = {"size": 1024, "state": "active_allocated", "history": [
        {"addr": BEGIN_US, "real_size": 900, "frames": STACKS[0]}]}  # fmt: skip
    segment = {"device": 0, "address": 4096, "total_size": 2 * MB, "stream": 0, "segment_type": "small",
               "blocks": [block, {"size": 2 * MB - 1024, "state": "inactive"}]}  # fmt: skip
    run = run_of(write(tmp_path / "old.pickle", {"segments": [segment], "device_traces": []}))
    (device,) = run.figures.snapshot.devices
    assert (device.peak_allocated, device.holders[0].site) == (900, "forward  model.py:41")
    assert device.largest_free == 2 * MB - 1024


# -- what is no snapshot, or damaged ---------------------------------------------------------


class _Touches:
    def __reduce__(self) -> Any:
        return Path.touch, (Path("/tmp/wltui-unpickled-snapshot"),)


def test_pickled_object_is_not_made(tmp_path: Path) -> None:
    mark = Path("/tmp/wltui-unpickled-snapshot")
    mark.unlink(missing_ok=True)
    path = write(tmp_path / "snapshot.pickle", snapshot(Allocator()) | {"segments": [_Touches()]})
    with pytest.raises(InputError) as caught:
        open_input(str(path))
    assert [one.code for one in caught.value.diagnostics] == ["bad-snapshot"]
    assert not mark.exists()


@pytest.mark.parametrize(
    "content",
    [{"segments": 3, "device_traces": []}, {"segments": [], "device_traces": []},
     {"segments": [], "device_traces": {}}, {"segments": [{"blocks": 7}], "device_traces": []}],
)  # fmt: skip
def test_what_holds_nothing_is_refused(tmp_path: Path, content: Any) -> None:
    assert codes(write(tmp_path / "snapshot.pickle", content)) == ["bad-snapshot"]


@pytest.mark.parametrize("key", ["addr", "size", "time_us", "action", "frames", "stream"])
@pytest.mark.parametrize("value", [None, "text", -5, 1 << 70, 1.5, [1], {}, True])
def test_value_of_another_kind_is_no_error(tmp_path: Path, key: str, value: Any) -> None:
    allocator = random_run(5, 40)
    content = snapshot(allocator)
    content["device_traces"][0][7][key] = value
    run = run_of(write(tmp_path / "snapshot.pickle", content))
    assert run_page(run)
    assert json.dumps(run_json(run))


@pytest.mark.parametrize("key", ["address", "total_size", "device", "blocks", "is_expandable", "stream"])
def test_segment_without_a_key_is_no_error(tmp_path: Path, key: str) -> None:
    content = snapshot(random_run(5, 40))
    del content["segments"][0][key]
    assert run_page(run_of(write(tmp_path / "snapshot.pickle", content)))


def test_list_that_is_repeated_is_refused() -> None:
    """40 bytes that name one list a million times are no million events."""
    repeated: list[Any] = [[[{}] * 1000] * 100_000, [[{"action": "alloc"}] * 800_000]]
    for nested in repeated:
        (table,) = read_tables(COLUMNS, [pickle.dumps({"segments": [], "device_traces": nested})], 1)
        assert isinstance(table, str)
    blocks: Any = [{"blocks": [{}] * 1000}] * 100_000
    (table,) = read_tables(COLUMNS, [pickle.dumps({"segments": blocks, "device_traces": []})], 1)
    assert isinstance(table, str)


@pytest.mark.parametrize("seed", range(12))
def test_damaged_bytes_are_read_or_refused(tmp_path: Path, seed: int) -> None:
    import random

    data = pickle.dumps(snapshot(random_run(seed, 30)))
    choose = random.Random(seed)
    damaged = []
    for _ in range(40):
        at = choose.randrange(len(data))
        damaged.append(data[:at] + bytes([choose.randrange(256)]) + data[at + 1 :])
    for table in read_tables(COLUMNS, damaged, len(damaged)):
        assert isinstance(table, (dict, str))


def test_release_that_is_missing_and_sizes_of_no_device_are_no_error(tmp_path: Path) -> None:
    content = snapshot(Allocator())
    stack = frames(("f", "a.py", 1))
    content["device_traces"] = [[
        {"action": "alloc", "addr": 1, "size": 5, "stream": 0, "time_us": 5, "frames": stack},
        {"action": "alloc", "addr": 1, "size": 7, "stream": 0, "time_us": 3, "frames": stack},
        {"action": "alloc", "addr": 9, "size": 1 << 60, "stream": 0, "time_us": 9, "frames": stack},
        {"action": "user_defined", "addr": 0, "size": 0, "stream": 0, "time_us": 10, "frames": []},
    ]]  # fmt: skip
    run = run_of(write(tmp_path / "snapshot.pickle", content))
    (history,) = run.histories
    assert list(history.allocated) == [5, 7, 7, 7]
    assert list(run.times(0)) == [2000, 2000, 6000, 7000]
    assert "unknown-action" in [one.code for one in run.diagnostics]


@pytest.mark.parametrize("time_us", [LARGEST // 1000, 1 << 62])
def test_times_that_no_axis_has_are_at_its_end(tmp_path: Path, time_us: int) -> None:
    content = snapshot(random_run(5, 40))
    content["device_traces"][0][0]["time_us"] = time_us + 1_000
    content["device_traces"][0][1]["time_us"] = 0
    run = run_of(write(tmp_path / "snapshot.pickle", content))
    for stream in run.lanes.streams(0):
        spans = run.lanes.content(0, stream).spans
        assert all(0 <= start < end <= LARGEST for start, end in zip(spans.start, spans.end, strict=True))


def test_snapshots_take_no_parameters(tmp_path: Path) -> None:
    run = made(tmp_path, random_run(1))
    with pytest.raises(UsageError, match="memory snapshots"):
        run.with_parameters(Parameters(compute_scale=2.0))
