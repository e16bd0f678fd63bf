"""Closed pipes, full disks, narrow encodings, absurd figures: a traceback is never the answer."""

import errno
import os
import shlex
from pathlib import Path

import pytest

from tests.command_line.running import (
    OLD_HEADER,
    SEED_001,
    TABLE,
    shell,
    wltui,
    wltui_here,
    wltui_into,
    workload_file,
)
from tests.says import said

ROW = "mlp_layer -1 5 ALLREDUCE 1000 6 NONE 0 7 ALLREDUCE 500 100"


# Every command that prints, also what only argparse prints, and the picture of a screen.
PRINTING = [
    ["--help"], ["--version"], [SEED_001], [TABLE, "--snapshot", "j"],
    ["report", "--help"], ["report", SEED_001], ["report", SEED_001, "--json"],
    ["report", SEED_001, "--all-layers"], ["report", SEED_001, "--explain", "mlp_moelayer:ig"],
    ["check", "--help"], ["check", SEED_001], ["check", SEED_001, "--json"],
    ["compare", "--help"], ["compare", SEED_001, "--with", "--schedule gpipe"],
    ["export", "--help"], ["export", OLD_HEADER, "--format", "simai", "-o", "-"],
    ["collective", "--help"], ["collective", "all-reduce", "--size", "64MiB"],
    ["collective", "all-reduce", "--size", "1KiB..1GiB"],
    ["keys", "--help"], ["keys"],
]  # fmt: skip


def left_of(errors: str) -> list[str]:
    """The lines on standard error that are no note of a file."""
    return [line for line in errors.splitlines() if " note " not in line]


def test_a_report_into_head_says_nothing_more() -> None:
    done = shell(f"WLTUI report {SEED_001} --json --no-fold | head -1")
    assert (done.returncode, done.stdout, done.stderr) == (0, "{\n", "")


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "words",
    PRINTING,
)
def test_a_reader_that_has_gone_is_no_error(words: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = wltui_into(writer, *words)
    finally:
        os.close(writer)
    assert (done.returncode, left_of(done.stderr)) == (0, [])


@pytest.mark.sampled(3)
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("words", PRINTING)
def test_a_full_disk_is_one_line_on_stderr_and_exit_status_1(words: list[str]) -> None:
    disk = os.open("/dev/full", os.O_WRONLY)
    try:
        done = wltui_into(disk, *words)
    finally:
        os.close(disk)
    (line,) = left_of(done.stderr)
    assert (done.returncode, line.endswith(f": {os.strerror(errno.ENOSPC)}")) == (1, True)
    assert line.startswith("wltui: standard output ")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.sampled(3)
@pytest.mark.parametrize("words", [words for words in PRINTING if "--help" in words])
def test_help_is_not_silent_on_a_full_disk_without_a_buffer(words: list[str]) -> None:
    done = shell(f"PYTHONUNBUFFERED=1 WLTUI {shlex.join(words)} >/dev/full")
    said = "wltui: standard output cannot be written: No space left on device\n"
    assert (done.returncode, done.stderr) == (1, said)
    gone = shell(f"{{ PYTHONUNBUFFERED=1 WLTUI {shlex.join(words)}; echo $? >&2; }} | true")
    assert gone.stderr == "0\n"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("words", PRINTING)
def test_a_closed_stdout_is_one_line_and_exit_status_1(words: list[str]) -> None:
    done = shell(f"WLTUI {shlex.join(words)} >&-")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    said([done.stderr], "wltui: standard output", "closed")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("words", PRINTING)
def test_nobody_needs_a_standard_input(words: list[str]) -> None:
    done = shell(f"WLTUI {shlex.join(words)} <&-")
    assert (done.returncode, left_of(done.stderr)) == (0, [])
    assert done.stdout


@pytest.mark.parametrize("closed", ["2>&-", "2>/dev/full"])
def test_a_closed_standard_error_leaves_the_exit_status_and_standard_output_alone(closed: str) -> None:
    done = shell(f"WLTUI report {TABLE} --tp 0 {closed}")
    assert (done.returncode, done.stdout) == (2, "")
    done = shell(f"WLTUI report nowhere {closed}")
    assert (done.returncode, done.stdout) == (1, "")
    assert shell(f"WLTUI report {TABLE} {closed}").stdout == wltui_here("report", TABLE).stdout


def test_a_narrow_encoding_gets_a_report_without_glyphs_it_does_not_have(tmp_path: Path) -> None:
    path = workload_file(tmp_path, ROW)
    done = wltui("report", path, PYTHONUTF8="0", PYTHONIOENCODING="latin-1")
    assert (done.returncode, done.stderr) == (0, "")
    for shown in (done, *(wltui_here("report", path, encoding=name) for name in ("ascii", "cp437"))):
        assert "f forward  b backward  o optimizer  x exposed" in shown.stdout


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_name_that_the_encoding_does_not_have_is_escaped(tmp_path: Path, encoding: str) -> None:
    path = workload_file(tmp_path, ROW.replace("mlp_layer", "mlp_Ω"))
    done = wltui_here("report", path, encoding=encoding)
    assert (done.returncode, "mlp_\\u03a9" in done.stdout) == (0, True)


def test_control_characters_in_arguments_do_not_reach_the_terminal() -> None:
    for words in (
        ["report", SEED_001, "--\x1b[31m"],
        ["report", "\x1b[31mno"],
        ["report", SEED_001, "\x1b[2J"],
    ):
        done = wltui_here(*words)
        assert done.returncode in (1, 2)
        assert "\x1b" not in done.stderr


HUGE = str(2**63 - 1)
ABSURD = [
    (["--compute-scale", "1e12"], SEED_001),
    (["--comm-scale", "1e12"], SEED_001),
    (["--endpoint-delay", "1099511627776", "--comm-scale", "1e9"], SEED_001),
    (["--dim", "ring:128:1e-6:1e9", "--comm-scale", "1e12"], SEED_001),
    ([], f"a -1 {HUGE} NONE 0 {HUGE} NONE 0 {HUGE} NONE 0 100"),
    (["--compute-scale", "2"], f"a -1 {HUGE} NONE 0 0 NONE 0 0 NONE 0 100"),
    ([], f"a -1 1 ALLREDUCE {HUGE} 1 NONE 0 1 ALLGATHER {HUGE} 100"),
    (["--dim", "switch:8:1e-6:1"], f"a -1 1 ALLREDUCE {HUGE} 1 NONE 0 1 ALLGATHER {HUGE} 100"),
]


@pytest.mark.parametrize(("flags", "source"), ABSURD)
def test_absurd_figures_give_a_report_or_one_line_and_no_traceback(
    tmp_path: Path, flags: list[str], source: str
) -> None:
    path = source if source == SEED_001 else workload_file(tmp_path, source)
    for more in ([], ["--json"], ["--schedule", "1f1b"]):
        done = wltui_here("report", path, *flags, *more)
        assert done.returncode in (0, 1, 2)
        assert bool(done.stdout) == (done.returncode == 0)


def test_a_row_that_never_runs_does_not_stop_the_report(tmp_path: Path) -> None:
    block = "embedding_layer -1 5 NONE 0 5 NONE 0 5 NONE 0 100"
    path = workload_file(tmp_path, block, block, ROW)
    done = wltui_here("report", path, "--schedule", "1f1b", "--microbatches", "1")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Step time  15 ns" in done.stdout


def test_version_counts_wherever_it_stands() -> None:
    assert wltui_here("--ascii", "--version").stdout == wltui_here("--version").stdout
