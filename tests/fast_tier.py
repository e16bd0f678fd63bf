"""`pytest --fast`, the tests of `make check`: no terminals, no processes, no large inputs, few examples.

No list says which tests these are. A test is left out

* at the moment it starts a process, opens a pseudo-terminal, runs the whole Textual app or reads a file of
  ../shared: it is skipped there and then, wherever that happens;
* when it is marked `slow`: it needs more than about a second of processor time for other reasons.

A property is tried on at most `FAST_EXAMPLES` examples, and a test with a list of cases on at most
`FAST_CASES` of them, evenly taken from the list; the same ones each time. All else is as in `make test`.

Without it slow proofs are sampled: a property is tried on at most `MOST_EXAMPLES`, one that is marked `slow`
on `EXAMPLES`, and of a list of cases that is marked `sampled(n)` n are tried. `pytest --whole` (`make prove`)
tries all that they ask for.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from textual.app import App

EXAMPLES = 10
MOST_EXAMPLES = 15
FAST_EXAMPLES = 3
FAST_CASES = 1
# As the tests find it, and where it leads: a link may stand there.
_SHARED = Path(__file__).resolve().parents[2] / "shared"
_SHARED_FILES = tuple({f"{_SHARED}{os.sep}", f"{_SHARED.resolve()}{os.sep}"})
# Python's audit events of what starts another program or opens a terminal.
_PROCESSES = ("subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system", "pty.spawn")


class _Watch:
    """Skips the test that is running as soon as it does what the fast tier does without."""

    def __init__(self) -> None:
        self.running = False

    def __call__(self, event: str, arguments: tuple[object, ...]) -> None:
        """Python's audit hook: it sees each event, so it is off outside of tests and asks little."""
        if not self.running:
            return
        if event in _PROCESSES:
            self.leave_out("starts a process")
        elif event == "open" and isinstance(arguments[0], str) and _is_shared(arguments[0]):
            self.leave_out("reads ../shared")

    def leave_out(self, why: str) -> None:
        """Skips the test; what it still does while it ends is not looked at."""
        self.running = False
        pytest.skip(f"not in the fast tier: it {why}")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Iterator[None]:
        """Switches the watch on for one test with its fixtures."""
        self.running = True
        try:
            return (yield)
        finally:
            self.running = False


def _is_shared(path: str) -> bool:
    """Whether a path, relative ones too, is below ../shared; the first question is the cheap one."""
    return _SHARED.name in path and os.path.abspath(path).startswith(_SHARED_FILES)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds --fast and --whole."""
    parser.addoption("--fast", action="store_true", help="the tests of make check; see tests/fast_tier.py")
    parser.addoption("--whole", action="store_true", help="as many examples as each property asks for")


def pytest_configure(config: pytest.Config) -> None:
    """Begins the watch under --fast."""
    config.addinivalue_line("markers", "slow: needs more than about a second of processor time")
    config.addinivalue_line("markers", "sampled(n): a list of slow cases, of which make test tries n")
    if not config.getoption("--fast"):
        return
    watch = _Watch()
    config.pluginmanager.register(watch, "fast-tier")
    sys.addaudithook(watch)
    # A pseudo-terminal of openpty has no event of its own, and the app is no process.
    for owner, name, why in ((os, "openpty", "opens a pseudo-terminal"), (App, "run_test", "runs the app")):
        setattr(owner, name, lambda *_, why=why, **__: watch.leave_out(why))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Takes the slow tests out under --fast, and from the others cases and examples."""
    if not config.getoption("--fast"):
        if not config.getoption("--whole"):
            _keep(config, items, sampled_cases(items))
            fewer_examples(items, MOST_EXAMPLES)
            fewer_examples(_marked(items, "slow"), EXAMPLES)
        return
    quick = [item for item in sampled_cases(items) if not item.get_closest_marker("slow")]
    _keep(config, items, fewer_cases(quick, FAST_CASES))
    fewer_examples(items, FAST_EXAMPLES)


def _marked(items: list[pytest.Item], marker: str) -> list[pytest.Item]:
    return [item for item in items if item.get_closest_marker(marker)]


def _keep(config: pytest.Config, items: list[pytest.Item], kept: list[pytest.Item]) -> None:
    chosen = set(kept)
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = kept


def sampled_cases(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """All items, but of each test that is marked `sampled(n)` n cases, always the same ones; in order.

    They are drawn: each fourth case of four sizes would always have the same size.
    """
    items = list(items)
    left_out: set[pytest.Item] = set()
    for cases in _by_test(items):
        marker = cases[0].get_closest_marker("sampled")
        if marker is not None:
            drawn = random.Random(cases[0].name).sample(cases, min(marker.args[0], len(cases)))
            left_out |= {*cases} - {*drawn}
    return [item for item in items if item not in left_out]


def fewer_cases(items: Iterable[pytest.Item], most: int) -> list[pytest.Item]:
    """Of each test with more than `most` cases so many, evenly taken; items stay in order."""
    return [
        case
        for cases in _by_test(items)
        for case in (
            cases if len(cases) <= most else [cases[len(cases) * index // most] for index in range(most)]
        )
    ]


def _by_test(items: Iterable[pytest.Item]) -> list[list[pytest.Item]]:
    """The cases of each test."""
    of_test: dict[str, list[pytest.Item]] = {}
    for item in items:
        of_test.setdefault(item.nodeid.partition("[")[0], []).append(item)
    return list(of_test.values())


def fewer_examples(items: Iterable[pytest.Item], most: int) -> None:
    """Lets properties that ask for more examples be tried on `most`."""
    for item in items:
        own = getattr(item.obj, "_hypothesis_internal_use_settings", None)  # type: ignore[attr-defined]
        if own is not None and own.max_examples > most:
            item.obj._hypothesis_internal_use_settings = settings(own, max_examples=most)  # type: ignore[attr-defined]
