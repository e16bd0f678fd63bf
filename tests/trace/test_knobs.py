"""How much a thing matters: the same rules for every kind of run."""

from __future__ import annotations

import pytest

from simcore.diagnostics import Cancelled
from simcore.parameters import Parameters
from simcore.trace.findings import WhatIf
from simcore.trace.knobs import BETTER, WORSE, Knob, Search, sort_by_gain


def knob(steps: dict[float, int | None], has_worse: bool = False, still: str = "") -> Knob:
    return Knob("all compute", lambda factor: steps[factor], Parameters(), has_worse, still)


def test_a_knob_is_asked_at_nothing_at_a_tenth_less_and_at_a_tenth_more() -> None:
    row = knob({0.0: 20, BETTER: 92, WORSE: 108}, has_worse=True).sensitivity(100)
    assert row == WhatIf("all compute", 20, 92, 108, parameters=Parameters())
    less = knob({0.0: 20, BETTER: 92}).sensitivity(100)
    assert less is not None
    assert less.worse10_ns is None


@pytest.mark.parametrize("steps", [{0.0: None, BETTER: 92}, {0.0: 20, BETTER: None}])
def test_what_cannot_be_run_is_no_row(steps: dict[float, int | None]) -> None:
    assert knob(steps).sensitivity(100) is None


@pytest.mark.parametrize(("free", "better"), [(101, 99), (90, 101)])
def test_a_step_that_less_makes_longer_is_an_anomaly(free: int, better: int) -> None:
    row = knob({0.0: free, BETTER: better}).sensitivity(100)
    assert row is not None
    assert row.anomaly


@pytest.mark.parametrize(("free", "unknown"), [(100, "no partner"), (99, "")])
def test_what_nobody_knows_is_said_of_a_step_that_stays(free: int, unknown: str) -> None:
    row = knob({0.0: free, BETTER: 100}, still="no partner").sensitivity(100)
    assert row is not None
    assert row.unknown == unknown


def test_the_greatest_gain_comes_first_and_equal_ones_by_name() -> None:
    rows = [WhatIf("b", 50, 90), WhatIf("c", 10, 95), WhatIf("a", 50, 90), WhatIf("d", 40, 90)]
    assert [row.name for row in sort_by_gain(rows)] == ["d", "a", "b", "c"]


def test_a_search_tells_how_far_it_is_and_stops_when_it_is_told() -> None:
    told: list[tuple[int, int]] = []
    search = Search(1, lambda done, total: told.append((done, total)), lambda: len(told) > 2)
    search.begin_next()
    search.begin_next()
    with pytest.raises(Cancelled):
        search.begin_next()
    search.end()
    assert told == [(0, 1), (1, 2), (2, 3), (3, 3)]
