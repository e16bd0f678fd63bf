"""What lanes say of times."""

from __future__ import annotations

import pytest

from simcore.trace.lane_spans import format_clock


@pytest.mark.parametrize(
    ("ns", "words"),
    [(6_204_608_123, "6.204 608 123 s"), (0, "0.000 000 000 s"), (-14_195_541, "-0.014 195 541 s")],
)
def test_a_time_before_the_step_begins_has_a_minus_and_its_own_figures(ns: int, words: str) -> None:
    assert format_clock(ns) == words
