"""`wltui export` as a user runs it."""

from __future__ import annotations

import contextlib
import errno
import gzip
import io
import json
import os
import pty
import resource
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from subprocess import PIPE, Popen

import pytest

from simcore.render.export import FORMATS
from tests.command_line.running import (
    OLD_HEADER,
    ROOT,
    SEED_001,
    SEED_002,
    TABLE,
    TRACE,
    environment,
    process,
    shell,
    wltui_here,
    wltui_into,
    workload_file,
)
from tests.findings import finding, findings
from tui.commands import export


def test_an_export_can_be_opened_again_and_runs_as_the_parameters_said(tmp_path: Path) -> None:
    out = str(tmp_path / "out.txt")
    flags = ["--world", "512", "--microbatches", "4", "--compute-scale", "0.5"]
    done = wltui_here("export", SEED_002, "--format", "simai", "-o", out, *flags)
    size = os.path.getsize(out)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (f"{out}: 149 rows of HYBRID_TRANSFORMER_FWD_IN_BCKWD, {size / 1000:.1f} kB\n")
    step = wltui_here("report", SEED_002, *flags).stdout.split("\n")[0]
    assert wltui_here("report", out).stdout.split("\n")[0] == step


def test_an_export_goes_to_standard_output_and_comes_from_standard_input() -> None:
    done = shell(f"WLTUI export - --format simai -o - --tp 4 <{SEED_002} | WLTUI check -")
    assert done.returncode == 0
    assert "not-rescaled" in done.stderr
    # Its rows are odd for any tp: they send nothing over it backward.
    assert {line.split(" ")[2] for line in done.stdout.splitlines()} == {"note", "warning"}


def test_what_is_not_in_the_file_goes_to_stderr(tmp_path: Path) -> None:
    done = wltui_here("export", SEED_002, "--format", "simai", "-o", str(tmp_path / "o"), "--comm-scale", "2")
    assert done.returncode == 0
    assert finding(done.stderr) == f"{SEED_002}: warning not-in-file --comm-scale 2.0"


ONE_FILE = "--format simai: one file holds all ranks, so --ranks and --per-rank do not fit it"
WRONG = [
    ([SEED_002, "--format", "svg", "-o", "OUT"],
     "--format svg: one of simai, chrome, schedule, chakra, html, csv is expected; did you mean csv?"),
    ([SEED_002, "--format", "simai"],
     "the following arguments are required: -o/--output (see wltui export --help)"),
    ([SEED_002, "-o", "OUT"], "the following arguments are required: --format (see wltui export --help)"),
    ([TABLE, "--format", "simai", "-o", "OUT"],
     "--format simai: op-table (dp) is not written as SimAI text; HYBRID_TRANSFORMER and "
     "HYBRID_TRANSFORMER_FWD_IN_BCKWD are"),
    ([SEED_002, "--format", "simai", "-o", "OUT", "--pp", "3"],
     "world 1024 is not a multiple of tp 8 x pp 3 = 24: 1008 or 1032 would fit"),
    ([SEED_002, "--format", "simai", "-o", "OUT", "--ranks", "0"], ONE_FILE),
    ([SEED_002, "--format", "simai", "-o", "OUT", "--per-rank"], ONE_FILE),
    ([TRACE, "--format", "simai", "-o", "OUT"],
     "FILE fixtures/004_megatron_rank7_trace.txt: found a measured run, expected a workload"),
    ([SEED_002, "--format", "csv", "-o", "OUT", "--replay"],
     "--replay: found a workload file, expected rank traces"),
    ([TRACE, "--format", "csv", "-o", "OUT", "--passes", "2"],
     "--passes has no meaning for a trace; its replay takes --compute-scale, --comm-scale, --layer-scale, "
     "--slow-rank, --replay, --gap-scale, --slow-host, --host-scale, "
         "--kind-scale and --stage-scale"),
    ([SEED_002, "--format", "chrome", "-o", "OUT", "--ranks", "0-7,2000"],
     "--ranks: found rank 2000, expected ranks from 0 to 1023"),
    ([SEED_002, "--format", "csv", "-o", "OUT", "--ranks", "some"],
     "--ranks some: ranks are expected, for example 0-7,64 (found `some`)"),
    ([SEED_002, "--format", "csv", "-o", "-", "--per-rank"],
     "--per-rank and --format chakra make a folder: name it instead of -o -"),
    ([SEED_002, "--format", "csv", "-o", "OUT", "--run", "1"],
     "--run 1: found a workload file, expected a directory of rank traces"),
    ([TRACE, "--format", "csv", "-o", "OUT", "--ranks", "6"],
     "--ranks: found rank 6, which fixtures/004_megatron_rank7_trace.txt does not have"),
    ([SEED_002, "--format", "chrome", "-o", "fixtures", "--per-rank"],
     "fixtures is there already: --force overwrites it"),
    ([SEED_002, "--format", "chrome", "-o", "fixtures", "--per-rank", "--force"],
     "fixtures holds 000_gpt13b_tp4_old_header.txt, which no export wrote: name another folder"),
    ([SEED_002, "--format", "chrome", "-o", SEED_002, "--per-rank", "--force"],
     f"{SEED_002} is there already, and no folder: name a folder to make"),
    ([SEED_002, "--format", "simai", "-o", "fixtures"], "fixtures is a directory: name a file to write"),
    ([SEED_002, "--format", "simai", "-o", SEED_002], f"{SEED_002} is there already: --force overwrites it"),
]  # fmt: skip


def test_wrong_usage_writes_nothing(tmp_path: Path) -> None:
    out = tmp_path / "out.txt"
    before = (ROOT / SEED_002).read_bytes()
    for words, message in WRONG:
        done = wltui_here("export", *[str(out) if word == "OUT" else word for word in words])
        assert (done.returncode, done.stdout, done.stderr) == (2, "", f"wltui: {message}\n"), words
        assert os.listdir(tmp_path) == [], words
        assert (ROOT / SEED_002).read_bytes() == before, words


def test_help_lists_the_formats_that_exist() -> None:
    done = wltui_here("export", "--help")
    assert done.returncode == 0
    assert "simai (SimAI / AICB workload text)" in " ".join(done.stdout.split())
    assert "chrome (Trace Event JSON for Perfetto, chrome://tracing and HTA)" in " ".join(done.stdout.split())
    assert "csv (one line a span " in " ".join(done.stdout.split())


def test_a_timeline_is_written_with_a_word_on_the_ranks_that_stand_for_others(tmp_path: Path) -> None:
    out = str(tmp_path / "step.json")
    done = wltui_here("export", SEED_001, "--format", "chrome", "-o", out)
    size = os.path.getsize(out)
    assert (done.returncode, done.stdout) == (
        0, f"{out}: 4 of 128 ranks, 1948 spans, {size / 10**3:.1f} kB\n"
    )  # fmt: skip
    assert finding(done.stderr.splitlines()[-1]) == f"{SEED_001}: note equal-ranks 4, 128, --ranks"
    assert "--ranks all" in done.stderr
    assert out not in done.stderr
    assert "\r" not in done.stderr


def test_a_replay_of_a_trace_is_written(tmp_path: Path) -> None:
    out = tmp_path / "replay.json"
    words = [
        "export",
        TRACE,
        "--format",
        "chrome",
        "-o",
        str(out),
        "--force",
    ]
    told, written = [], []
    for more in ([], ["--replay"], ["--compute-scale", "0.5"], ["--slow-rank", "7=0.5", "--replay"]):
        done = wltui_here(*words, *more)
        assert done.returncode == 0
        told.append(done.stdout.split(", ")[1].split(" ", 2)[2])
        written.append(json.loads(out.read_bytes())["otherData"]["step_time_ns"])
    assert told == ["as measured", "replayed", "replayed", "replayed"]
    # As it is the replay is the measured step; the trace's one rank is the slow one.
    assert written[0] == written[1] != written[2] == written[3]


def test_a_name_that_ends_in_gz_makes_a_gzip_file_of_every_format(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("chrome", "csv", "simai"):
        plain, packed = tmp_path / f"{name}.txt", tmp_path / f"{name}.txt.gz"
        for out in (plain, packed):
            assert wltui_here("export", SEED_001, "--format", name, "-o", str(out)).returncode == 0
        assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()
        before = packed.read_bytes()
        words = ("export", SEED_001, "--format", name, "-o", str(packed), "--force")
        # The same bytes whenever it is made.
        with monkeypatch.context() as patched:
            patched.setattr(time, "time", lambda: 2e9)
            assert wltui_here(*words).returncode == 0
        assert packed.read_bytes() == before


def test_a_folder_of_ranks_is_made_and_replaced(tmp_path: Path) -> None:
    out = tmp_path / "ranks.gz"
    words = ["export", SEED_001, "--format", "chrome", "--per-rank", "-o", str(out), "--ranks"]
    done = wltui_here(*words, "0,64,127")
    assert done.returncode == 0
    assert done.stdout.startswith(f"{out}: 3 of 128 ranks, 1460 spans, 3 files, ")
    assert sorted(os.listdir(out)) == ["rank-0.json.gz", "rank-127.json.gz", "rank-64.json.gz"]
    assert wltui_here(*words, "1").stderr == f"wltui: {out} is there already: --force overwrites it\n"
    assert wltui_here(*words, "1", "--force").returncode == 0
    assert os.listdir(out) == ["rank-1.json.gz"]
    assert os.listdir(tmp_path) == ["ranks.gz"]


def test_spans_go_to_standard_output() -> None:
    done = shell(f"WLTUI export - --format csv -o - --ranks 5 <{SEED_002} | head -2")
    assert done.stdout.splitlines()[1] == "5,1,0,compute,fwd,compute,grad_gather,0,3,,0,1,1,,,,,"


@pytest.mark.parametrize(
    ("number", "more"), [(signal.SIGINT, ("--per-rank",)), (signal.SIGTERM, ()), (signal.SIGHUP, ())]
)
def test_whoever_ends_an_export_leaves_nothing(
    tmp_path: Path, number: signal.Signals, more: tuple[str, ...]
) -> None:
    out = tmp_path / "out"
    words = ["export", SEED_002, "--format", "chrome", "--ranks", "all", "-o", str(out), *more]
    with Popen(
        [sys.executable, "-m", "tui", *words], cwd=ROOT, env=environment(), stdout=PIPE, stderr=PIPE
    ) as done:
        deadline = time.monotonic() + 60
        while not os.listdir(tmp_path) and time.monotonic() < deadline:
            time.sleep(0.005)
        assert [name.endswith(".tmp") for name in os.listdir(tmp_path)] == [True]
        done.send_signal(number)
        stdout, stderr = done.communicate(timeout=60)
    assert (done.returncode, stdout) == (128 + number, b"")
    assert b"Traceback" not in stderr
    assert os.listdir(tmp_path) == []


class Tty(io.StringIO):
    """What is written to a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_sees_how_far_it_is_and_nothing_of_it_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A line for each piece that is written, however fast.
    monkeypatch.setattr(export, "_FIRST_DELAY_S", 0)
    monkeypatch.setattr(export, "_INTERVAL_S", 0)
    with contextlib.redirect_stderr(Tty()) as seen, contextlib.redirect_stdout(io.StringIO()):
        words = [SEED_001, "--format", "chrome", "--ranks", "all", "-o", str(tmp_path / "out.json")]
        assert export.main(words) == 0
    first, *lines = seen.getvalue().split("\r\x1b[K")
    # The notes are said behind the file.
    assert first == ""
    assert lines[-1].endswith("\n")
    assert "cluster-default" in lines[-1]
    assert "export to " not in lines[-1]
    shares = [int(line.split("  ")[-1].split(" %")[0]) for line in lines[:-1]]
    assert shares == sorted(shares)
    assert 0 <= shares[0] < 50 < shares[-1] <= 100


def test_a_file_that_cannot_be_written_is_said_before_any_note() -> None:
    done = wltui_here("export", SEED_001, "--format", "chrome", "-o", "/nowhere/out.json")
    assert done.returncode == 1
    assert "error unwritable-file" in done.stderr.splitlines()[0]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("name", ["simai", "chrome", "csv"])
def test_a_full_disk_behind_standard_output_is_one_line(name: str) -> None:
    disk = os.open("/dev/full", os.O_WRONLY)
    try:
        done = wltui_into(disk, "export", OLD_HEADER, "--format", name, "-o", "-")
    finally:
        os.close(disk)
    errors = [line for line in done.stderr.splitlines() if " note " not in line]
    assert (done.returncode, len(errors)) == (1, 1)
    assert errors[0].startswith("wltui: standard output ")
    assert errors[0].endswith(f": {os.strerror(errno.ENOSPC)}")


@pytest.mark.parametrize("more", ["simai", "chrome", "csv", "chrome --per-rank", "csv --per-rank"])
def test_a_disk_that_fills_up_leaves_no_half_file(tmp_path: Path, more: str) -> None:
    """A limit on the size of files stands for a full disk."""
    out = tmp_path / "out.txt"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        done = wltui_here("export", OLD_HEADER, "-o", str(out), "--format", *more.split())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (done.returncode, done.stdout) == (1, "")
    errors = [line for line in done.stderr.splitlines() if " note " not in line]
    assert findings(errors) == [f"{out}: error unwritable-file {os.strerror(errno.EFBIG)}"]
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("\x1b[2J\x1b]0;owned\x07", "\\x1b[2J\\x1b]0;owned\\x07"),
        ("left\u202eright", "left\\u202eright"),
        ("nul\0", "nul\\x00"),
        ("mlp_Ω", None),
    ],
)
def test_a_terminal_is_not_sent_a_name_that_it_would_obey(
    tmp_path: Path, name: str, said: str | None
) -> None:
    source = workload_file(tmp_path, f"{name} -1 5 NONE 0 6 NONE 0 7 NONE 0 100")
    words = ["export", source, "--format", "simai", "-o", "-"]
    ours, theirs = pty.openpty()
    done = process([sys.executable, "-m", "tui", *words], stdout=theirs)
    os.close(theirs)
    seen = b""
    with suppress(OSError):
        while piece := os.read(ours, 4096):
            seen += piece
    os.close(ours)
    # A pipe gets it as it was read.
    assert name in wltui_here(*words).stdout
    if said is None:
        assert (done.returncode, f"{name}\t-1".encode() in seen) == (0, True)
        return
    assert (done.returncode, seen) == (2, b"")
    last = done.stderr.splitlines()[-1]
    assert last.startswith("wltui: --output -: line 3 ")
    assert f"'{said}'" in last
    assert "a terminal" in last


# What each kind of input can be written as; none of these takes any other.
TAKEN = {
    OLD_HEADER: ("html", "chrome", "csv", "simai", "schedule", "chakra"),
    TRACE: ("html", "chrome", "csv", "chakra"),
    "SET": ("html",),
}


@pytest.mark.parametrize("path", TAKEN)
def test_a_format_takes_what_it_says_and_refuses_all_else(tmp_path: Path, path: str) -> None:
    taken, more = TAKEN[path], ()
    if path == "SET":
        path, more = str(tmp_path / "set"), ("--world", "8")
        assert wltui_here("export", OLD_HEADER, *more, "--format", "chakra", "-o", path).returncode == 0
    for form in (one.name for one in FORMATS):
        out = tmp_path / form
        scaled = ("--world", "8", "--pp", "2", "--microbatches", "2") if path == OLD_HEADER else ()
        done = wltui_here("export", path, "--format", form, "-o", str(out), *scaled)
        if form in taken:
            assert (done.returncode, out.exists()) == (0, True), (form, done.stderr)
        else:
            assert (done.returncode, out.exists()) == (2, False), form
            assert ": found a " in done.stderr
            assert ", expected a workload" in done.stderr
