"""How much processor time the tests take, by file: of the tests themselves and of the processes they start.

Usage: python benchmarks/suite.py [PATH]... [--rows N]
Without a path, the whole suite as `make test` runs it. --rows is how many files are listed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDER = "WLTUI_TEST_TIMES"


class Times(NamedTuple):
    """Seconds of some tests. own, children: processor time of the tests and of the processes they start."""

    tests: int
    own: float
    children: float
    wall: float

    def __add__(self, other: object) -> Times:
        assert isinstance(other, Times)
        return Times(*(a + b for a, b in zip(self, other, strict=True)))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Appends the times of a test to the file of this process."""
    before, begin = os.times(), time.perf_counter()
    result: Any = yield
    after, wall = os.times(), time.perf_counter() - begin
    own = after.user + after.system - before.user - before.system
    children = sum(after[2:4]) - sum(before[2:4])
    with open(Path(os.environ[FOLDER], str(os.getpid())), "a", encoding="utf-8") as file:
        file.write(json.dumps([item.nodeid.partition("::")[0], 1, own, children, wall]) + "\n")
    return result


def table(by_file: dict[str, Times], rows: int) -> Iterator[str]:
    """The times by folder, then those of the files that take most."""
    folders: dict[str, Times] = defaultdict(lambda: Times(0, 0.0, 0.0, 0.0))
    for file, times in by_file.items():
        folders["/".join(file.split("/")[:2])] += times
    total = sum(by_file.values(), Times(0, 0.0, 0.0, 0.0))
    yield f"{'':<52} tests    own  processes   wall s"
    for name, times in [("all", total), *_most_first(folders), *_most_first(by_file)[:rows]]:
        yield f"{name:<52} {times.tests:5} {times.own:6.1f} {times.children:10.1f} {times.wall:8.1f}"


def _most_first(by_name: dict[str, Times]) -> list[tuple[str, Times]]:
    return sorted(by_name.items(), key=lambda item: -(item[1].own + item[1].children))


def read(files: Iterable[Path]) -> dict[str, Times]:
    """The sums of each test file, of what the processes wrote."""
    by_file: dict[str, Times] = defaultdict(lambda: Times(0, 0.0, 0.0, 0.0))
    for path in files:
        for line in path.read_text(encoding="utf-8").splitlines():
            file, *times = json.loads(line)
            by_file[file] += Times(*times)
    return by_file


def main() -> int:
    """Runs the tests and prints the table. Gives the exit status of pytest."""
    parser = argparse.ArgumentParser()
    parser.add_argument("paths", nargs="*")
    parser.add_argument("--rows", type=int, default=20)
    words = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {FOLDER: folder, "PYTHONPATH": str(ROOT)}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-n",
            "4",
            "--dist",
            "loadfile",
            "-p",
            "benchmarks.suite",
            *words.paths,
        ]
        begin = time.monotonic()
        done = subprocess.run(command, cwd=ROOT, env=environment)
        print(f"python {sys.version.split()[0]}, {os.cpu_count()} cores, {time.monotonic() - begin:.0f} s")
        print("\n".join(table(read(Path(folder).iterdir()), words.rows)))
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
