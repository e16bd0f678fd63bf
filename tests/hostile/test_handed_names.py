"""Names that were handed to us: as file names, as arguments and in files, in every command and output."""

from __future__ import annotations

import csv
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from simcore.shell_words import join_words, quote_word, split_words
from tests.hostile.names import HANDED, HEADER
from tests.hostile.running import UNSAFE, wltui
from tui.cli import guarded
from tui.printing import Controls, shown_text

ROW = "{}\t-1\t5000\tALLREDUCE\t100000\t6000\tNONE\t0\t7000\tALLREDUCE\t50000\t100"
AS_FILE = [name for name in HANDED if "\0" not in name and "/" not in name and len(os.fsencode(name)) < 200]
IN_ROWS = [name for name in HANDED if not set("\0\t\n ") & set(name)]


def workload_named(folder: Path, name: str) -> str:
    """A workload in a file of this name, whose rows have all of them."""
    path = folder / f"{name}.txt"
    rows = [ROW.format(row) for row in IN_ROWS]
    text = "\n".join([HEADER, str(len(rows)), *rows]) + "\n"
    path.write_text(text, encoding="utf-8", errors="surrogateescape")
    return str(path)


COMMANDS = [
    "check FILE", "check FILE --json", "report FILE", "report FILE --json", "compare FILE FILE",
    "compare FILE FILE --json", "compare FILE --with --compute-scale=2", "FILE --snapshot 2",
    "FILE --snapshot 4", "export FILE --format html -o OUT.html", "export FILE --format csv -o OUT.csv",
    "export FILE --format chrome -o OUT.json", "sweep FILE --vary compute-scale=1,2 --jobs 1 -o OUT.jsonl",
    "sweep FILE --vary compute-scale=1,2 --jobs 1 --csv",
    "sweep FILE --vary compute-scale=1,2 --jobs 1 --json",
    "sweep --merge OUT.jsonl", "OUT.jsonl", "export OUT.jsonl --format html -o OUT2.html",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", AS_FILE, ids=map(repr, AS_FILE))
def test_a_file_of_any_name_is_safe_in_every_output(tmp_path: Path, name: str) -> None:
    file, out = workload_named(tmp_path, name), str(tmp_path / name)
    for command in COMMANDS:
        words = [
            file if word == "FILE" else word.replace("OUT", out) if word.startswith("OUT") else word
            for word in command.split()
        ]
        done = wltui(*words)
        assert done.status == 0, (words, done.err)
        if command.endswith("--json"):
            json.loads(done.out)
    for path in tmp_path.iterdir():
        if path.name != os.path.basename(file):
            assert UNSAFE.findall(path.read_text(encoding="utf-8")) == [], path
        if path.suffix == ".csv":
            cells = [
                cell for row in csv.reader(path.read_text(encoding="utf-8").splitlines()) for cell in row
            ]
            assert not [cell for cell in cells if cell.startswith(("=", "+", "@", "\uff1d"))]


@pytest.mark.parametrize("name", AS_FILE, ids=map(repr, AS_FILE))
def test_an_argument_of_any_name_is_safe(tmp_path: Path, name: str) -> None:
    for words in (
        ["report", name], ["check", f"./{name}"], [f"./{name}"], ["sweep", "--merge", f"./{name}"],
        ["sweep", "x", "--vary", f"tp={name}"], ["sweep", "x", f"--where={name}"],
        ["schedule", f"./{name}"], ["op", "product", f"--file={name}"], ["models", f"./{name}"],
        ["keys", name], ["collective", f"--type={name}", "--size=1"], [name],
        ["report", "--model", f"./{name}"], ["report", "x", f"--gpu={name}"], [f"--{name}"],
        ["export", "x", f"--format={name}", "-o", "x"], ["calibrate", f"./{name}", f"./{name}"],
    ):  # fmt: skip
        done = wltui(*words)
        assert done.status in ((0, 1, 2) if {"--help", "check"} & {*words} else (1, 2)), words
        assert not os.path.exists("OWNED")


def test_a_command_that_forgets_a_name_prints_nothing_raw(capsys: pytest.CaptureFixture[str]) -> None:
    def careless(words: list[str]) -> int:
        for name in HANDED:
            print(name)
            print("of", name, file=sys.stderr)
            sys.stdout.writelines([name, "\n"])
            print(Controls(f"\r{name}\x1b[K"), end="")
        return 0

    before = sys.stdout, sys.stderr
    assert guarded(careless, []) == 0
    assert (sys.stdout, sys.stderr) == before
    done = capsys.readouterr()
    # Line ends are a command's own; of controls those alone that `Controls` may have.
    assert set(UNSAFE.findall(done.out)) <= {"\r", "\x1b"}
    assert done.out.count("\x1b") == len(HANDED) + done.out.count("\x1b[31m")
    assert UNSAFE.findall(done.err) == []


def test_what_is_shown_stays_as_it_is() -> None:
    for text in ("a b\n", "\u2588\u2500 12 %\n", "\u65e5\u672c\u8a9e", "\u00e9\u0301"):
        assert shown_text(text) == text


@pytest.mark.parametrize("name", HANDED, ids=range(len(HANDED)))
def test_a_shell_takes_a_name_as_it_is_and_shows_nothing_raw(name: str) -> None:
    quoted = quote_word(name)
    assert UNSAFE.findall(quoted) == []
    assert split_words(join_words(["wltui", name, "x y"])) == ["wltui", name, "x y"]
    if quoted.isascii() and "$'" not in quoted:
        assert shlex.split(quoted) == [name]
    if "\0" not in name and len(name) < 10_000:
        printed = subprocess.run(["bash", "-c", f"printf %s {quoted}"], stdout=subprocess.PIPE, check=True)
        assert printed.stdout == os.fsencode(name)
