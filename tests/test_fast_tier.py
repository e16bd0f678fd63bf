"""What `pytest --fast` leaves out, seen on a folder of made tests; and that `make check` is made of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.fast_tier import FAST_EXAMPLES, MOST_EXAMPLES

ROOT = Path(__file__).resolve().parents[1]
CONFTEST = """
from tests.conftest import pytest_addoption, pytest_collection_modifyitems, pytest_configure
"""
# A new file, of which nobody knows: `tried` counts the examples of its property.
MADE = """
import os, pty, subprocess, sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from textual.app import App

from tests.fast_tier import _SHARED

tried = []
asked = []
slowly = []


@pytest.fixture
def answer():
    return subprocess.run([sys.executable, "-c", "print(7)"], capture_output=True, text=True).stdout


def test_a_sum_is_a_sum():
    assert 3 + 4 == 7


def test_a_process_answers():
    assert subprocess.run([sys.executable, "-c", "pass"]).returncode == 0


def test_a_fixture_has_asked_a_process(answer):
    assert answer == "7\\n"


def test_a_pseudo_terminal_opens():
    for end in pty.openpty():
        os.close(end)


async def test_the_app_runs():
    async with App().run_test():
        pass


def test_a_file_of_others_is_read():
    open(_SHARED / "README.md").close()


def test_a_file_of_others_is_read_by_its_relative_path():
    open(os.path.relpath(_SHARED / "README.md")).close()


@pytest.mark.slow
def test_what_takes_long():
    pass


@settings(max_examples=300)
@given(st.integers(0, 10**9))
def test_a_property_that_asks_for_examples(number):
    asked.append(number)


@given(st.integers(0, 10**9))
def test_a_property(number):
    tried.append(number)


def test_how_many_were_tried(record_property):
    record_property("asked", len(asked))
    record_property("tried", len(tried))
    record_property("numbers", tried)


@pytest.mark.parametrize("number", range(25))
def test_a_list_of_cases(number):
    pass


@pytest.mark.sampled(24)
@pytest.mark.parametrize("number", range(48))
def test_a_sampled_list_of_cases(number):
    pass


@pytest.mark.slow
@settings(max_examples=300)
@given(st.integers(0, 10**9))
def test_a_slow_property(number):
    slowly.append(number)


def test_how_many_were_tried_slowly(record_property):
    record_property("slowly", len(slowly))


def test_a_file_of_the_test_itself_is_read(tmp_path):
    (tmp_path / "made").write_text("7")
    assert (tmp_path / "made").read_text() == "7"
"""
LEFT_OUT = {
    "test_a_process_answers": "it starts a process",
    "test_a_fixture_has_asked_a_process": "it starts a process",
    "test_a_pseudo_terminal_opens": "it opens a pseudo-terminal",
    "test_the_app_runs": "it runs the app",
    "test_a_file_of_others_is_read": "it reads ../shared",
    "test_a_file_of_others_is_read_by_its_relative_path": "it reads ../shared",
}


# The same tests in several ways: pytest, Hypothesis and Textual load in a second, the tests take a third.
RUNNING = """
import gc, json, os, sys

import hypothesis, pytest, textual.app

gc.freeze()
for words in json.loads(sys.argv[1]):
    number = os.fork()
    if not number:
        os._exit(pytest.main(words))
    os.waitpid(number, 0)
"""


class Ran:
    """What became of the made tests: of each name why it was skipped, or None; the properties of the run."""

    def __init__(self, results: Path) -> None:
        self.outcome: dict[str, str | None] = {}
        self.failed: list[str] = []
        self.properties: dict[str, str] = {}
        for case in ElementTree.parse(results).iter("testcase"):
            skipped = case.find("skipped")
            self.outcome[case.attrib["name"]] = None if skipped is None else skipped.attrib["message"]
            if case.find("failure") is not None or case.find("error") is not None:
                self.failed.append(case.attrib["name"])
            self.properties |= {one.attrib["name"]: one.attrib["value"] for one in case.iter("property")}

    def cases(self, name: str) -> list[int]:
        """Which cases of a list of numbers were tried."""
        begin = f"{name}["
        return [int(one[len(begin) : -1]) for one in self.outcome if one.startswith(begin)]


def ran(folder: Path, *runs: list[str]) -> list[Ran]:
    """The made tests with each of these flags."""
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_made.py").write_text(MADE)
    words = ["-o", "asyncio_mode=auto", "-p", "no:cacheprovider", str(folder), "--junitxml"]
    results = [folder / f"{number}.xml" for number in range(len(runs))]
    asked = [[*words, str(path), *flags] for path, flags in zip(results, runs, strict=True)]
    subprocess.run(
        [sys.executable, "-c", RUNNING, json.dumps(asked)],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        check=True,
        capture_output=True,
    )
    return [Ran(path) for path in results]


def test_what_each_tier_tries(tmp_path: Path) -> None:
    fast, again, usual, whole = ran(
        tmp_path, ["--fast"], ["--fast", "-k", "property or tried"], [], ["--whole"]
    )

    # The fast tier leaves out terminals, processes, the app and shared files, and what is marked slow.
    skipped = {name: why.removeprefix("not in the fast tier: ") for name, why in fast.outcome.items() if why}
    assert skipped == LEFT_OUT
    assert not fast.failed
    run = {name for name, why in fast.outcome.items() if why is None}
    assert {"test_a_sum_is_a_sum", "test_a_property", "test_a_file_of_the_test_itself_is_read"} <= run
    assert "test_what_takes_long" not in fast.outcome
    # A property has few examples and the same each time, and of a list of cases some are taken evenly.
    assert fast.properties["asked"] == fast.properties["tried"] == str(FAST_EXAMPLES)
    assert fast.properties["numbers"] == again.properties["numbers"]
    assert fast.cases("test_a_list_of_cases") == [0]

    # Without it everything runs.
    assert not [name for name, why in usual.outcome.items() if why]
    # ../shared is not beside every checkout.
    assert all("file_of_others" in name for name in usual.failed)
    assert usual.outcome["test_what_takes_long"] is None
    assert usual.properties["asked"] == usual.properties["tried"] == str(MOST_EXAMPLES)
    assert usual.cases("test_a_list_of_cases") == list(range(25))

    # Slow proofs are sampled unless all of them is asked for.
    assert usual.properties["slowly"] == "10"
    drawn = usual.cases("test_a_sampled_list_of_cases")
    assert len(drawn) == len({*drawn}) == 24
    assert drawn == sorted(drawn)
    # Not each second one: of a product of two lists these would all have the same half of one.
    assert {number % 2 for number in drawn} == {0, 1}
    assert (whole.properties["asked"], whole.properties["slowly"]) == ("300", "300")
    assert whole.cases("test_a_sampled_list_of_cases") == list(range(48))


def commands_of(target: str) -> str:
    """What `make TARGET` would run."""
    done = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout


def test_make_check_is_lint_types_contracts_and_the_fast_tier() -> None:
    commands = commands_of("check")
    assert all(words in commands for words in ("ruff check", "mypy", "lint-imports", "pytest -n 2 --fast"))


def test_make_test_is_all_tests() -> None:
    assert "pytest" in commands_of("test")
    assert "--fast" not in commands_of("test")


@pytest.mark.skipif(not (ROOT / ".ci").exists(), reason="a source distribution has no .ci")
def test_the_integration_server_runs_all_tests() -> None:
    assert (ROOT / ".ci" / "run").read_text(encoding="utf-8").rstrip().endswith("make test")
