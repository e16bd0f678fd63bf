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


@pytest.fixture(scope="module", autouse=True)
def _runs_end_with_their_file(request: pytest.FixtureRequest) -> Iterator[None]:
    """What a test file keeps in a `functools.cache` ends with it: all runs of all files of the screens are
    1.1 GB.
    """
    yield
    for value in vars(request.module).values():
        if hasattr(value, "cache_clear") and value.__module__.rpartition(".")[2].startswith("test_"):
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
