"""`wltui export` as a user runs it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.command_line.running import ROOT, SEED_002, environment, process, shell, wltui, wltui_into


def test_an_export_can_be_opened_again_and_runs_as_the_parameters_said(tmp_path: Path) -> None:
    out = str(tmp_path / "out.txt")
    flags = ["--world", "512", "--microbatches", "4", "--compute-scale", "0.5"]
    done = wltui("export", SEED_002, "--format", "simai", "-o", out, *flags)
    size = os.path.getsize(out)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (f"{out}: 149 rows of HYBRID_TRANSFORMER_FWD_IN_BCKWD, {size / 1000:.1f} kB\n")
    step = wltui("report", SEED_002, *flags).stdout.split("\n")[0]
    assert wltui("report", out).stdout.split("\n")[0] == step


def test_an_export_goes_to_standard_output_and_comes_from_standard_input() -> None:
    done = shell(f"WLTUI export - --format simai -o - --tp 4 <{SEED_002} | WLTUI check -")
    assert done.returncode == 0
    assert "not-rescaled" in done.stderr
    assert {line.split(" ")[2] for line in done.stdout.splitlines()} == {"note"}


def test_what_is_not_in_the_file_goes_to_stderr(tmp_path: Path) -> None:
    done = wltui("export", SEED_002, "--format", "simai", "-o", str(tmp_path / "o"), "--comm-scale", "2")
    assert done.returncode == 0
    assert done.stderr == (
        f"{SEED_002}: warning not-in-file --comm-scale 2.0: no part of a workload file; "
        "give it again when you open the file\n"
    )


WRONG = [
    ([SEED_002, "--format", "chrome", "-o", "OUT"], "--format chrome: one of simai is expected"),
    ([SEED_002, "--format", "simai"],
     "the following arguments are required: -o/--output (see wltui export --help)"),
    ([SEED_002, "-o", "OUT"], "the following arguments are required: --format (see wltui export --help)"),
    (["fixtures/003_gpt2_large_op_table.txt", "--format", "simai", "-o", "OUT"],
     "--format simai: op-table (dp) is not written as SimAI text; HYBRID_TRANSFORMER and "
     "HYBRID_TRANSFORMER_FWD_IN_BCKWD are"),
    ([SEED_002, "--format", "simai", "-o", "OUT", "--pp", "3"],
     "world 1024 is not a multiple of tp 8 x pp 3 = 24: 1008 or 1032 would fit"),
    ([SEED_002, "--format", "simai", "-o", "fixtures"], "fixtures is a directory: name a file to write"),
    ([SEED_002, "--format", "simai", "-o", SEED_002], f"{SEED_002} is there already: --force overwrites it"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "message"), WRONG)
def test_wrong_usage_writes_nothing(tmp_path: Path, words: list[str], message: str) -> None:
    out = tmp_path / "out.txt"
    before = (ROOT / SEED_002).read_bytes()
    done = wltui("export", *[str(out) if word == "OUT" else word for word in words])
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"wltui: {message}\n")
    assert os.listdir(tmp_path) == []
    assert (ROOT / SEED_002).read_bytes() == before


def test_help_lists_the_formats_that_exist() -> None:
    done = wltui("export", "--help")
    assert done.returncode == 0
    assert "simai (SimAI / AICB workload text)" in " ".join(done.stdout.split())
    assert "chrome" not in done.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_behind_standard_output_is_one_line() -> None:
    disk = os.open("/dev/full", os.O_WRONLY)
    try:
        done = wltui_into(disk, "export", SEED_002, "--format", "simai", "-o", "-")
    finally:
        os.close(disk)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)


def test_a_disk_that_fills_up_leaves_no_half_file(tmp_path: Path) -> None:
    """A limit on the size of files stands for a full disk."""
    out = tmp_path / "out.txt"
    command = f"ulimit -f 8; {sys.executable} -m tui export {SEED_002} --format simai -o {out}"
    done = process(["bash", "-c", command], environment())
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"{out}: error unwritable-file the file cannot be written: File too large\n"
    assert os.listdir(tmp_path) == []
