"""Hypothesis for all tests: the same examples on every run and machine, and no deadlines; no session is
kept for whoever runs them. The hooks of `pytest --fast` are in fast_tier.py.
"""

import os

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

# Nothing can be made below a device: a session that a test keeps by mistake is an error, and nobody's.
os.environ["XDG_STATE_HOME"] = "/dev/null/state"
