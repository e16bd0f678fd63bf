"""Hypothesis for all tests: the same examples on every run and machine, and no deadlines."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "wltui",
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("wltui")
