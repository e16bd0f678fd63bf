"""Hypothesis for all tests: the same examples on every run and machine, and no deadlines; no session is
kept for whoever runs them. The hooks of `pytest --fast` are in fast_tier.py.
"""

import gc
import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.fast_tier import pytest_addoption, pytest_collection_modifyitems, pytest_configure

__all__ = ["pytest_addoption", "pytest_collection_modifyitems", "pytest_configure"]

settings.register_profile(
    "wltui",
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("wltui")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Leaves what was collected, 10,000 tests with all modules, to no garbage collection, and has fewer: the
    tests of analysis took 190 s with all of it and take 162.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """What a test file keeps in a `functools.cache` ends with it, and so does the syntax of all modules with
    the last file that asks for it: the runs of all files of the screens are 1.1 GB, the syntax 280 MB.
    """
    module = getattr(item, "module", None)
    following = getattr(nextitem, "module", None)
    if module is None or module is following:
        return
    kept = () if following is None else vars(following).values()
    for value in vars(module).values():
        if not hasattr(value, "cache_clear"):
            continue
        is_syntax = value.__module__ == "tests.syntax"
        if value.__module__ == module.__name__ or (is_syntax and value not in kept):
            value.cache_clear()


@pytest.fixture(scope="session", autouse=True)
def _no_more_is_frozen() -> Iterator[None]:
    """An app leaves what is there to no garbage collection: its run. Here that is what all tests before have
    left, for ever: 600 MB.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gc, "freeze", lambda: None)
        yield


# Nothing can be made below a device: a session that a test keeps by mistake is an error, and nobody's.
os.environ["XDG_STATE_HOME"] = "/dev/null/state"
