"""Thousands of broken files: `check` and `report` answer each with a result or a place, never a traceback.

`WLTUI_MUTANTS=20000` runs so many (400 without it), `WLTUI_MUTANT=N` mutant N alone; a failure
prints its number. Planted, to see this fail: an assertion in the reader of rows, an error without a
place, a control character that is not escaped, a KeyError in the form of the report.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fuzz.mutants import UNSAFE, mutant, originals
from tui.cli import main

COUNT = int(os.environ.get("WLTUI_MUTANTS", "400"))
ONLY = os.environ.get("WLTUI_MUTANT")
SHARED = Path(__file__).resolve().parents[3] / "shared" / "corpus"
PARTS = 16
LINE = re.compile(r"(?P<place>\S+?)(:\d+(:\d+)?)?: (?P<severity>error|warning|note) [a-z0-9-]+ \S.*")
ERROR = re.compile(r"\S+?:\d+:\d+: error [a-z0-9-]+ \S.*")


def run(words: list[str]) -> tuple[int, str, str]:
    """(exit status, stdout, stderr) of the program in this process."""
    out, err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(words)
        out.flush()
    return status, out.buffer.getvalue().decode(), err.getvalue()  # type: ignore[attr-defined]


def assert_check_answers(path: str) -> None:
    status, out, err = run(["check", path])
    assert err == ""
    lines = out.split("\n")[:-1]
    assert all(LINE.fullmatch(line) for line in lines), lines
    errors = [line for line in lines if f"{path}:" in line and ": error " in line]
    assert all(ERROR.fullmatch(line) for line in errors), errors
    assert status == (1 if errors else 0)
    assert not UNSAFE.search(out)


def assert_report_answers(path: str) -> None:
    status, out, err = run(["report", path])
    assert not UNSAFE.search(out + err)
    if status == 0:
        assert err == ""
        assert out.startswith(("Step time  ", "Measured step time  "))
        assert not out.startswith("Step time  0 s") or "zero-step" in out or "no-ops" in out
        assert not out.startswith("Measured step time  0 s") or "no-step-time" in out
    else:
        assert (status, out) == (1, "")
        assert all(ERROR.fullmatch(line) for line in err.split("\n")[:-1]), err


def numbers(part: int) -> Iterator[int]:
    if ONLY is not None:
        yield from [int(ONLY)] if part == 0 else []
        return
    yield from range(part, COUNT, PARTS)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("answer", [assert_check_answers, assert_report_answers])
def test_a_mutant_gets_an_answer(tmp_path: Path, part: int, answer: Callable[[str], None]) -> None:
    # The corpus makes other mutants of the same numbers: with it, without it, each is reproducible.
    folders = ("simai", "astra1", "optable", "rank_trace/wd4_tp1_pp2")
    shared = [path for folder in folders for path in sorted((SHARED / folder).glob("*"))]
    files = originals([path for path in shared if path.stat().st_size < 30_000])
    path = tmp_path / "mutant"
    for number in numbers(part):
        made_of, data = mutant(number, files)
        path.write_bytes(data)
        try:
            answer(str(path))
        except BaseException as error:
            print(f"WLTUI_MUTANT={number} ({made_of}; {len(files)} originals)", file=sys.stderr)
            if isinstance(error, Exception):
                raise AssertionError(f"mutant {number} ({made_of}): {error!r}") from error
            raise
