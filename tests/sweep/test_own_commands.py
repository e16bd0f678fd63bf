"""A point of a sweep takes what the report of its own command says, to the ns, whatever is in it.

Seen to fail on these bugs, planted one at a time: split cells that wait for no split; a row that does not
wait for its gather; classes that meet and do not wait for each other; jitter of another seed.
"""

from __future__ import annotations

import random

import pytest

from simcore.sweeping import step_time
from tests.sweep.own_commands import FEATURES, random_point, reported_ns


@pytest.mark.slow
@pytest.mark.sampled(10)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("feature", FEATURES)
def test_a_point_takes_what_its_own_command_reports(
    feature: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In some of the points that `python -m tests.sweep.own_commands` looks at, and without a whole run."""
    with monkeypatch.context() as context:
        context.setattr(step_time, "_simulated", None)
        point = random_point(feature, random.Random(f"{feature} {seed}"))
    assert reported_ns(point) == point.step_time_ns
