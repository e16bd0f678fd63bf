"""Mutation testing: how many small mistakes in the engine, the collectives and the analysis the tests see.

Each mutant is one file with one mistake (mutations.py), in a process of its own that imports it in the
place of the real file. The tests that reach its line run against it, those first that find most for their
time, until one fails. A test that takes far longer than without the mistake has failed as well. Properties
stop at their first counterexample, which is not made smaller, and try at most --examples.

Usage: python benchmarks/mutants.py [FILE OR FOLDER]... [--seed N] [--minutes N] [--seconds N] [--only NAME]
                                    [--examples N] [--results FILE]
The sample is the first mutants of a shuffle by --seed, as many as fit into --minutes. --seconds is how long
the tests of one mutant may take without the mistake: a survivor whose other tests were left out is told
apart. --results keeps what was found (a line of JSON a mutant) and is gone on with. Python 3.12 or newer.
"""

from __future__ import annotations

import argparse
import importlib.machinery
import json
import os
import random
import resource
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

import pytest
from hypothesis import Phase, settings
from mutations import Place, mutated, places

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.fast_tier import fewer_examples  # noqa: E402

ROOMS = ("simcore/engine", "simcore/collectives", "simcore/analysis")
# Those that know the figures. The screens' tests draw what these already check.
TESTS = ("engine", "collectives", "analysis", "sharing", "networks", "program", "report", "layout", "cluster")
TOOL = 4
# So much longer, and then so many seconds, a test may take than it did without a mistake.
PATIENCE, GRACE_S = 8, 10
# One may fill a list for ever.
MOST_BYTES = 4 << 30
QUICK_S = 2.0


class Reached(NamedTuple):
    """Of each test, by its name: the lines it reaches, as (file, line), and its seconds."""

    lines: dict[str, list[tuple[str, int]]]
    seconds: dict[str, float]


class Reach:
    """A pytest plugin: which lines of the code each test reaches, and how long it takes."""

    def __init__(self, files: Iterable[str], examples: int) -> None:
        self._examples = examples
        self._files = {str(ROOT / path): path for path in files}
        self._lines: set[tuple[str, int]] = set()
        self.lines: dict[str, list[tuple[str, int]]] = {}
        self.seconds: dict[str, float] = {}
        self.failed: list[str] = []
        sys.monitoring.use_tool_id(TOOL, "reach")
        sys.monitoring.register_callback(TOOL, sys.monitoring.events.LINE, self._line)
        sys.monitoring.set_events(TOOL, sys.monitoring.events.LINE)

    def _line(self, code: CodeType, line: int) -> object:
        path = self._files.get(code.co_filename)
        if path is not None:
            self._lines.add((path, line))
        return sys.monitoring.DISABLE

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        fewer_examples(items, self._examples)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._lines.clear()
        sys.monitoring.restart_events()
        begin = time.perf_counter()
        found: Any = yield
        self.seconds[item.nodeid] = time.perf_counter() - begin
        self.lines[item.nodeid] = sorted(self._lines)
        return found

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(f"{report.nodeid}\n{report.longreprtext}")


class Chosen:
    """A pytest plugin: these tests in this order, each within its time."""

    def __init__(self, seconds: dict[str, float], examples: int) -> None:
        self._examples = examples
        self._seconds = seconds
        self.failed = ""

    def pytest_collection(self) -> None:
        """After the tests' own profile is loaded, before they are imported."""
        settings.register_profile("mutants", settings(), phases=[Phase.explicit, Phase.generate])
        settings.load_profile("mutants")

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        known = {item.nodeid: item for item in items}
        items[:] = [known[name] for name in self._seconds if name in known]
        fewer_examples(items, self._examples)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        # The signal ends the process; who waits for it knows why.
        signal.setitimer(signal.ITIMER_REAL, self._seconds[item.nodeid] * PATIENCE + GRACE_S)
        found: Any = yield
        signal.setitimer(signal.ITIMER_REAL, 0)
        return found

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.failed:
            self.failed = report.nodeid


def run(words: list[str], plugin: object) -> int:
    """pytest in this process, without its words."""
    kept = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    try:
        # Hypothesis is imported already, here and by the first of two runs.
        quiet = ("-q", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning")
        return pytest.main([*quiet, "--rootdir", str(ROOT), *words], [plugin])
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def reach(files: list[str], examples: int) -> Reached:
    """One run of all tests without a mistake; in a child, so that nothing stays imported."""
    folders = [f"tests/{name}" for name in TESTS]
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        found = Reach(files, examples)
        run(folders, found)
        with open(writable, "w", encoding="utf-8") as pipe:
            json.dump([found.lines, found.seconds, found.failed], pipe)
        os._exit(0)
    os.close(writable)
    with open(readable, encoding="utf-8") as pipe:
        lines, seconds, failed = json.load(pipe)
    os.waitpid(child, 0)
    if failed:
        print("\n\n".join(["left out, for they fail without any mistake:", *failed]), file=sys.stderr)
    fail = {text.split("\n")[0] for text in failed}
    return Reached({name: lines[name] for name in lines if name not in fail}, seconds)


def import_instead(place: Place) -> None:
    """From now on an import of the file gives it with the mistake."""
    code = compile(mutated(ROOT, place)[0], str(ROOT / place.path), "exec")
    original = importlib.machinery.SourceFileLoader.get_code

    def get_code(self: Any, fullname: str) -> CodeType | None:
        return code if self.path == str(ROOT / place.path) else original(self, fullname)

    importlib.machinery.SourceFileLoader.get_code = get_code  # type: ignore[method-assign]


def judge(place: Place, tests: dict[str, float], examples: int) -> str:
    """The test that failed, `time` or `crash` where the process was ended, nothing where all passed."""
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(readable)
        resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        # Collecting takes long: most mistakes are seen by a few quick tests.
        quick, spent = {}, 0.0
        for name, seconds in tests.items():
            spent += seconds
            if spent > QUICK_S and quick:
                break
            quick[name] = seconds
        rest = {name: seconds for name, seconds in tests.items() if name not in quick}
        failed = "import"
        try:
            import_instead(place)
            for part in filter(None, (quick, rest)):
                plugin = Chosen(part, examples)
                status = run(["-x", *sorted({name.split("::")[0] for name in part})], plugin)
                failed = plugin.failed or ("collection" if status else "")
                if failed:
                    break
        finally:
            os.write(writable, failed.encode())
            os._exit(0)
    os.close(writable)
    with open(readable, encoding="utf-8") as pipe:
        failed = pipe.read()
    ended = os.WTERMSIG(os.waitpid(child, 0)[1])
    return failed if not ended else "time" if ended == signal.SIGALRM else "crash"


class Choice:
    """Which tests run against a mutant, in which order."""

    def __init__(self, found: Reached, most_seconds: float) -> None:
        self._seconds = found.seconds
        self._most = most_seconds
        self.kills: Counter[str] = Counter()
        self._by_line: dict[tuple[str, int], set[str]] = defaultdict(set)
        self._by_file: dict[str, set[str]] = defaultdict(set)
        for name, lines in found.lines.items():
            for path, line in lines:
                self._by_line[path, line].add(name)
                self._by_file[path].add(name)

    def tests(self, place: Place) -> tuple[dict[str, float], int]:
        """(seconds of each test in order, how many were left out because they take too long)."""
        if place.lines is None:
            names = set(self._by_file[place.path])
        else:
            lines = range(place.lines[0], place.lines[1] + 1)
            names = set().union(*(self._by_line[place.path, line] for line in lines))
        # Of a test of the file's own room more can be expected.
        room = place.path.split("/")[1]

        def cost(name: str) -> tuple[float, str]:
            own = name.startswith(f"tests/{room}/")
            return (self._seconds[name] + 0.02) / (1 + self.kills[name] + own), name

        chosen: dict[str, float] = {}
        spent = 0.0
        for name in sorted(names, key=cost):
            if spent + self._seconds[name] <= self._most or not chosen:
                spent += self._seconds[name]
                chosen[name] = self._seconds[name]
        return chosen, len(names) - len(chosen)


def table(results: list[dict[str, Any]], everything: dict[str, int]) -> Iterator[str]:
    """The figures by room, and the survivors."""
    yield "room                    mutants   judged   killed   by time   survived   not reached"
    rooms = sorted(everything)
    for room in [*rooms, "all"]:
        of = [one for one in results if room == "all" or one["room"] == room]
        count = sum(everything.values()) if room == "all" else everything[room]
        by_time = sum(one["failed"] == "time" for one in of)
        survived = sum(not one["failed"] and one["tests"] > 0 for one in of)
        unreached = sum(not one["tests"] for one in of)
        killed = len(of) - survived - unreached
        yield f"{room:<22} {count:8} {len(of):8} {killed:8} {by_time:9} {survived:10} {unreached:13}"
    for one in results:
        if not one["failed"]:
            left = f", {one['left_out']} tests left out" if one["left_out"] else ""
            yield f"survived: {one['name']}  {one['words']}  ({one['tests']} tests{left})"


def main() -> int:
    """Judge a sample of mutants, and print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("paths", nargs="*", default=list(ROOMS))
    parser.add_argument("--seed", type=int, default=9)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seconds", type=float, default=40)
    parser.add_argument("--examples", type=int, default=1000)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--results")
    given = parser.parse_args()
    os.chdir(ROOT)
    files = [
        str(path.relative_to(ROOT))
        for name in given.paths
        for path in sorted((ROOT / name).rglob("*.py") if (ROOT / name).is_dir() else [ROOT / name])
    ]
    sample = [place for path in files for place in places(ROOT, path)]
    everything = Counter("/".join(place.path.split("/")[:2]) for place in sample)
    if given.only:
        sample = [place for place in sample if place.name in given.only]
    random.Random(given.seed).shuffle(sample)
    results: list[dict[str, Any]] = []
    if given.results and Path(given.results).exists():
        results = [json.loads(line) for line in Path(given.results).read_text(encoding="utf-8").splitlines()]
    judged = {one["name"] for one in results}
    known = Path(f"{given.results}.reach")
    found = (
        Reached(*json.loads(known.read_text(encoding="utf-8")))
        if known.exists()
        else reach(files, given.examples)
    )
    if given.results:
        known.write_text(json.dumps(found), encoding="utf-8")
    choice = Choice(found, given.seconds)
    choice.kills.update(one["failed"] for one in results)
    until = time.monotonic() + given.minutes * 60
    for place in sample:
        if place.name in judged:
            continue
        if time.monotonic() > until:
            break
        tests, left_out = choice.tests(place)
        failed = judge(place, tests, given.examples) if tests else ""
        choice.kills[failed] += 1
        words = mutated(ROOT, place)[1]
        room = "/".join(place.path.split("/")[:2])
        one = {"name": place.name, "room": room, "words": words, "tests": len(tests), "left_out": left_out}
        results.append(one | {"failed": failed})
        if given.results:
            with open(given.results, "a", encoding="utf-8") as file:
                file.write(json.dumps(results[-1]) + "\n")
    print(f"python {sys.version.split()[0]}, seed {given.seed}")
    print("\n".join(table(results, everything)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
