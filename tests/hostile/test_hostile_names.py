"""Names that steer terminals, are markup, turn directions or are long: in every answer of the program."""

from __future__ import annotations

import csv
import io
import json
import os
import time
from pathlib import Path

import pytest

from simcore.diagnostics import printable
from tests.hostile.names import ALL, HEADER, IN_FILE_NAMES, NASTY, traces, workload
from tests.hostile.running import UNSAFE, wltui

SHORT = {key: name for key, name in NASTY.items() if key != "long"}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str, str]:
    """(a workload, another of the same layers, a measured run)."""
    folder = tmp_path_factory.mktemp("hostile")
    return workload(folder), workload(folder, 6000), traces(folder)


COMMANDS = [
    "check A", "check A --json", "check T", "check T --json",
    "report A", "report A --json", "report A --what-if", "report A --no-fold",
    "report T", "report T --json", "report T --what-if",
    "compare A B", "compare A B --json", "compare A B --all", "compare A --with --compute-scale=2",
    "compare A T", "compare A T --json", "compare T T --all",
    "calibrate A T", "calibrate A T --json",
    "collective --type allreduce --size 1MiB",
]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_that_a_command_prints_steers_a_terminal(files: tuple[str, str, str], command: str) -> None:
    paths = dict(zip("ABT", files, strict=True))
    done = wltui(*(paths.get(word, word) for word in command.split()))
    if "--json" in command and done.status == 0:
        json.loads(done.out)


SCREENS = ["1", "2", "2 Enter", "2 z j Enter", "3", "4", "5", "6", "!", "?", ":",
           "2 / x", "2 \\ x", "3 / x", "2 m '", "2 v", "R", "R n", "5 d", "5 S", "5 O",
           "2 L x Enter"]  # fmt: skip


@pytest.mark.sampled(9)
@pytest.mark.slow
@pytest.mark.parametrize("keys", SCREENS)
@pytest.mark.parametrize("size", ["80x24", "120x36"])
@pytest.mark.parametrize("kind", ["A", "T"])
def test_no_screen_shows_what_steers_a_terminal(
    files: tuple[str, str, str], kind: str, size: str, keys: str
) -> None:
    done = wltui(files[0] if kind == "A" else files[2], "--snapshot", keys, "--size", size)
    assert (done.status, done.err) == (0, "")
    columns, rows = map(int, size.split("x"))
    lines = done.out.split("\n")[:-1]
    assert len(lines) <= rows
    assert max(map(len, lines)) <= columns


@pytest.mark.parametrize("kind", ["A", "T"])
def test_a_picture_of_a_screen_runs_nothing(files: tuple[str, str, str], kind: str) -> None:
    done = wltui(files[0] if kind == "A" else files[2], "--snapshot", "2", "--svg")
    assert "<script" not in done.out
    assert "@click" not in done.out.replace("[@click=app.bell]", "")


@pytest.mark.slow
def test_two_inputs_side_by_side_are_safe_too(files: tuple[str, str, str]) -> None:
    for other in files[1:]:
        for keys in ("", "j Enter", "?"):
            done = wltui(files[0], "--against", other, "--snapshot", keys)
            assert (done.status, done.err) == (0, "")


@pytest.mark.sampled(7)
@pytest.mark.parametrize("name", SHORT.values(), ids=SHORT)
def test_an_argument_that_steers_a_terminal_is_escaped(files: tuple[str, str, str], name: str) -> None:
    path, _, trace = files
    gone = name.replace("/", "")
    for words in (
        ["report", gone], ["check", gone], ["compare", path, gone], ["calibrate", path, gone],
        [path, "--against", gone, "--snapshot", ""], [path, "--screen", name, "--snapshot", ""],
        ["report", path, "--params", gone], ["report", path, "--cluster", gone],
        ["report", path, "--system", gone], ["report", path, "--network", name],
        ["report", path, "--network", f"busbw:{gone}"], ["report", path, "--slow-rank", name],
        ["report", path, "--slow-link", name], ["report", path, "--layer-scale", f"{name}:fwd"],
        ["report", path, "--dim", name], ["report", path, "--algorithm", f"0={name}"],
        ["report", path, "--explain", name], ["report", trace, "--run", name],
        ["report", path, f"--{name}"], ["report", path, "--network", "simai-auto", "--overlap", name],
        ["export", path, "--format", name, "-o", "-"], ["export", path, "--format", "csv", "--ranks", name],
        ["compare", path, "--with", name], ["compare", path, "--with", f"--cluster '{gone}'"],
        ["compare", path, path, "--fail-if-slower", name],
    ):  # fmt: skip
        done = wltui(*words)
        assert done.status in ((0, 1, 2) if "--explain" in words else (1, 2)), words
        # `check` prints what it found.
        assert (done.err or done.out).count("\n") >= 1


def test_names_in_parameters_are_escaped(files: tuple[str, str, str], tmp_path: Path) -> None:
    path = tmp_path / f"p{IN_FILE_NAMES}.toml"
    for name in SHORT.values():
        text = json.dumps(name)
        for line in (f"{text} = 1", f"cluster = {text}", f"network = {text}", f"slow_rank = [{text}]",
                     f"schedule = {text}", f"tp = {text}", f"dim = [{text}]", f"layer_scale = [{text}]",
                     f"[{text}.{text}]", f"[[{text}]]", f"cluster = '{name}'", f"# {name}\nx = 1",
                     ):  # fmt: skip
            path.write_text(line + "\n", encoding="utf-8")
            assert wltui("report", files[0], "--params", str(path)).status in (1, 2)


def test_marks_that_pile_up_on_one_letter_are_escaped_beyond_the_fourth() -> None:
    # A terminal draws them over the lines above and below; real words have three at most.
    assert (
        printable("o\u0302\u0323n ka\u0301\u0302\u0303\u0304") == "o\u0302\u0323n ka\u0301\u0302\u0303\u0304"
    )
    assert printable("a" + "\u0301" * 6 + "b\u0301") == "a" + "\u0301" * 4 + "\\u0301" * 2 + "b\u0301"
    assert printable("a" + "\u20dd\u0301" * 3) == "a" + "\u20dd\u0301" * 2 + "\\u20dd\\u0301"


@pytest.mark.parametrize("form", ["chrome", "csv"])
@pytest.mark.parametrize("kind", ["A", "T"])
def test_an_exported_timeline_has_no_control_character(
    files: tuple[str, str, str], tmp_path: Path, form: str, kind: str
) -> None:
    path = files[0] if kind == "A" else files[2]
    out = tmp_path / f"out{IN_FILE_NAMES}"
    assert wltui("export", path, "--format", form, "-o", str(out)).status == 0
    text = out.read_text(encoding="utf-8")
    assert UNSAFE.findall(text) == []
    if form == "chrome":
        json.loads(text)
        return
    rows = list(csv.reader(io.StringIO(text)))
    assert {len(row) for row in rows} == {len(rows[0])}
    # A spreadsheet takes such a cell for a formula, a minus alone may be a number's.
    cells = {cell for row in rows for cell in row}
    assert not [cell for cell in cells if cell.startswith(("=", "+", "@", "\t", "\r"))]
    if kind == "A":
        assert {"'@SUM(1)", "'=1+HYPERLINK('x')"} <= cells


def test_a_workload_that_is_written_back_keeps_its_names(files: tuple[str, str, str], tmp_path: Path) -> None:
    # It is an input of other programs: another name would be another layer.
    out = tmp_path / "out.txt"
    done = wltui("export", files[0], "--format", "simai", "-o", str(out))
    assert done.status == 0
    written = out.read_text(encoding="utf-8").split("\n")[2:-1]
    assert [line.split("\t")[0] for line in written] == list(NASTY.values())
    assert wltui("report", str(out)).status == 0


@pytest.mark.slow
def test_a_search_finds_what_a_trace_says_began_before_its_step(files: tuple[str, str, str]) -> None:
    # It ended the program: the sub-operations of this run begin 900 ms before their operations.
    done = wltui(files[2], "--snapshot", "2 / x n N", "--size", "120x36")
    assert (done.status, done.err) == (0, "")
    done = wltui(files[2], "--snapshot", "2 / x", "--size", "120x36")
    assert " / x " in done.out
    assert "match 1 of " in done.out


@pytest.mark.slow
def test_names_of_a_megabyte_are_answered_in_time(tmp_path: Path) -> None:
    name = "x" * 1_000_000
    path = tmp_path / "a.txt"
    row = f"{name}\t-1\t5\tALLREDUCE\t1000\t6\tNONE\t0\t7\tALLREDUCE\t500\t100"
    path.write_text(f"{HEADER} {name}: {name}\n2\n{row}\nb{row}\n")
    for words in (
        ["check", str(path)], ["report", str(path)], ["report", str(path), "--json"],
        ["compare", str(path), str(path)], [str(path), "--snapshot", "2 / x"], [str(path), "--snapshot", "3"],
        ["export", str(path), "--format", "chrome", "-o", "-"],
        ["export", str(path), "--format", "csv", "-o", "-"],
    ):  # fmt: skip
        started = time.process_time()
        done = wltui(*words)
        assert time.process_time() - started < 10
        assert done.status == 0
        # People get no name whole; a program that reads JSON does.
        assert "--json" in words or name[:1000] not in done.out + done.err


def test_nothing_was_run_of_any_name(files: tuple[str, str, str]) -> None:
    assert "owned" not in os.listdir()
    assert "owned" not in os.listdir(os.path.dirname(files[0]))
    assert "touch" in ALL
