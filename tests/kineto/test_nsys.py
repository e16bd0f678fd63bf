"""Exports of Nsight Systems: a real one, and databases in any state."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest

from simcore.diagnostics import InputError
from simcore.measured import MeasuredRun
from simcore.parameters import OpeningOptions, Parameters
from simcore.replay.parameters import Scales
from simcore.runs.measured import run_recording
from simcore.sources.inputs import open_input
from tests.kineto.corpus import NSYS, needs_corpus, union_ns
from tests.measured.paths import insight_lines
from tests.says import figures, said

_KERNELS, _CALLS = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"


def _opened(path: Path, step: str | None = "all") -> MeasuredRun:
    run = open_input(str(path), OpeningOptions(step=step))
    assert isinstance(run, MeasuredRun)
    return run


def launching(
    path: Path,
    kernels: Sequence[tuple[int, int, int]],
    calls: Sequence[tuple[int, int, int, int, str]],
    ranges: Sequence[tuple[int, int, int, str]],
) -> Path:
    """An export that tells what launched. kernels: (start, end, correlation); calls: (start, end, thread,
    correlation, name); ranges: (start, end, thread, name).
    """
    texts = {name: number for number, name in enumerate(["gemm", *(call[4] for call in calls)])}
    with sqlite3.connect(path) as connection:
        connection.execute(
            f"create table {_KERNELS} (start, end, correlationId, deviceId, streamId, shortName)"
        )
        connection.execute(f"create table {_CALLS} (start, end, globalTid, correlationId, nameId)")
        connection.execute("create table StringIds (id, value)")
        connection.execute("create table NVTX_EVENTS (start, end, globalTid, text)")
        connection.executemany(
            "insert into StringIds values (?, ?)", [(number, name) for name, number in texts.items()]
        )
        rows = [(*kernel, texts["gemm"]) for kernel in kernels]
        connection.executemany(f"insert into {_KERNELS} values (?, ?, ?, 0, 7, ?)", rows)
        named = [(*call[:4], texts[call[4]]) for call in calls]
        connection.executemany(f"insert into {_CALLS} values (?, ?, ?, ?, ?)", named)
        connection.executemany("insert into NVTX_EVENTS values (?, ?, ?, ?)", ranges)
    connection.close()
    return path


def made(
    path: Path, kernels: list[tuple[int, int, int, str]], ranges: Sequence[tuple[int, int, str]] = ()
) -> Path:
    """An export with as few tables and columns as there may be. kernels: (start, end, device, name)."""
    with sqlite3.connect(path) as connection:
        connection.execute(f"create table {_KERNELS} (start, end, deviceId, streamId, shortName)")
        connection.execute("create table StringIds (id, value)")
        connection.execute("create table NVTX_EVENTS (start, end, text, globalTid)")
        for number, (start, end, device, name) in enumerate(kernels):
            connection.execute("insert into StringIds values (?, ?)", (number, name))
            connection.execute(f"insert into {_KERNELS} values (?, ?, ?, 7, ?)", (start, end, device, number))
        connection.executemany("insert into NVTX_EVENTS values (?, ?, ?, 1)", ranges)
    connection.close()
    return path


@needs_corpus
def test_accounts_of_each_device_are_the_unions_of_its_rows() -> None:
    run = _opened(NSYS)
    results = run_recording(run, Parameters())
    connection = sqlite3.connect(f"file:{NSYS}?mode=ro&immutable=1", uri=True)
    assert [rank.rank for rank in run.ranks] == [0, 1]
    for rank, accounts in zip(run.ranks, results.accounts, strict=True):
        spans = [
            connection.execute(f"select start, end from {table} where deviceId = ?", (rank.rank,)).fetchall()
            for table in (_KERNELS, "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET")
        ]
        kernels, every = union_ns(spans[0]), union_ns([one for some in spans for one in some])
        assert abs(accounts.busy_ns - kernels) <= 2_000
        assert abs(accounts.ns("exposed copy") - (every - kernels)) <= 2_000
        assert sum(accounts.total_ns) == results.step_time_ns
    connection.close()
    assert abs(results.with_scales(Scales()).step_time_ns - results.step_time_ns) <= 10_000


def test_missing_tables_and_columns_are_no_hindrance(tmp_path: Path) -> None:
    kernels = [
        (0, 100, 0, "gemm"),
        (100, 300, 0, "ncclDevKernel_AllReduce_Sum_f32_RING_LL"),
        (50, 260, 1, "gemm"),
    ]
    run = _opened(made(tmp_path / "a.sqlite", kernels))
    assert run.unit == "device"
    assert [list(rank.ops.name) for rank in run.ranks] == [[kernels[0][3], kernels[1][3]], ["gemm"]]
    assert list(run.ranks[0].device.collectives) == [1]  # type: ignore[union-attr]
    assert run.step_time_ns == 300


def test_ranges_named_as_steps_are_steps(tmp_path: Path) -> None:
    kernels = [(10, 100, 0, "gemm"), (210, 300, 0, "gemm")]
    path = made(tmp_path / "a.sqlite", kernels, [(0, 200, "ProfilerStep#1"), (200, 290, "ProfilerStep#2")])
    run = _opened(path, None)
    assert run.recorded is not None
    assert run.recorded.step == 2
    assert run.step_time_ns == 100


@pytest.mark.parametrize("cut", [20, 4096, 5000])
def test_what_is_cut_or_no_database_is_refused(tmp_path: Path, cut: int) -> None:
    path = made(tmp_path / "a.sqlite", [(0, 100, 0, "gemm")])
    damaged = tmp_path / "b.sqlite"
    damaged.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(InputError, match=r"database is damaged|no table of kernels"):
        _opened(damaged)


@needs_corpus
def test_what_is_damaged_names_the_row_and_what_is_cut_the_byte(tmp_path: Path) -> None:
    data = NSYS.read_bytes()
    damaged = tmp_path / "b.sqlite"
    damaged.write_bytes(data[:70_000])
    with pytest.raises(InputError, match=f"the file ends at byte 70000 of {len(data)}"):
        _opened(damaged)
    damaged.write_bytes(data[: len(data) // 2] + b"\xff" * 4096 + data[len(data) // 2 + 4096 :])
    with pytest.raises(InputError, match=r"row \d+ of [A-Z_]+: the database is damaged"):
        _opened(damaged)


def test_what_is_said_of_devices_calls_them_so(tmp_path: Path) -> None:
    kernels = [(0, 50, 0, "gemm"), (50, 100, 0, "gemm"), (0, 300, 1, "gemm"), (900, 1000, 1, "gemm")]
    results = run_recording(_opened(made(tmp_path / "a.sqlite", kernels)), Parameters())
    slow, idle = insight_lines(results)
    assert figures(slow) == ["1", "400 ns", "0", "100 ns", "0", "700 ns", "-30.0 %"]
    said([slow], "Device 1", "device 0", "device 0")
    assert figures(idle) == ["75.0 %", "0", "900 ns"]
    said([idle], "devices' time", "host gaps", "device 0")


def test_a_device_that_runs_more_kernels_has_more_work_and_is_not_slow(tmp_path: Path) -> None:
    kernels = [(0, 100, 0, "gemm"), (0, 100, 1, "gemm"), (300, 410, 1, "gemm")]
    results = run_recording(_opened(made(tmp_path / "a.sqlite", kernels)), Parameters())
    longer = insight_lines(results)[0]
    assert figures(longer) == ["1", "210 ns", "0", "100 ns", "210 ns", "2", "0", "100 ns", "1"]
    said([longer], "Device 1 computes longer", "device 0", "gemm", "device 0")
    assert not any("as fast as" in knob.name for knob in results.what_if())


def test_rows_that_cannot_be_are_left_out_and_counted(tmp_path: Path) -> None:
    path = made(tmp_path / "a.sqlite", [(0, 100, 0, "gemm"), (300, 200, 0, "gemm"), (0, 2**62, 0, "gemm")])
    run = _opened(path)
    assert run.ops == 1
    assert any("2 rows without a time" in one.message for one in run.diagnostics)


def test_tables_without_rows_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="found no kernel and no copy"):
        _opened(made(tmp_path / "a.sqlite", []))


def test_less_time_on_copies_makes_the_step_shorter_as_their_row_promises(tmp_path: Path) -> None:
    path = made(tmp_path / "copies.sqlite", [(0, 100_000, 0, "gemm"), (300_000, 400_000, 0, "gemm")])
    with sqlite3.connect(path) as connection:
        connection.execute(
            "create table CUPTI_ACTIVITY_KIND_MEMCPY (start, end, deviceId, streamId, bytes, copyKind)"
        )
        connection.execute("insert into CUPTI_ACTIVITY_KIND_MEMCPY values (100000, 300000, 0, 7, 4096, 1)")
    results = run_recording(_opened(path), Parameters())
    assert results.step_time_ns == 400_000
    copies = next(knob for knob in results.what_if() if knob.name == "copies of memory")
    assert (copies.free_ns, copies.better10_ns, copies.unknown) == (200_000, 380_000, "")
    # What `t` tries, and what a user types.
    assert copies.parameters == Parameters(kind_scale=("copy=0.9",))
    again = run_recording(_opened(path), copies.parameters)
    assert again.step_time_ns == copies.better10_ns
    assert run_recording(_opened(path), Parameters(comm_scale=0.5)).step_time_ns == 400_000
    slopes = {gradient.scale: gradient for gradient in results.gradients}
    assert (slopes["copies"].left_ns, slopes["copies"].right_ns) == (200_000, 200_000)


def test_runs_without_copies_are_not_told_of_any(tmp_path: Path) -> None:
    path = made(tmp_path / "kernels.sqlite", [(0, 100_000, 0, "gemm"), (300_000, 400_000, 0, "gemm")])
    results = run_recording(_opened(path), Parameters())
    assert "copies of memory" not in [knob.name for knob in results.what_if()]
    assert "copies" not in [gradient.scale for gradient in results.gradients]
