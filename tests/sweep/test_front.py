"""The front and the best of each family, against their definitions; sentences that speak and keep silent."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.diagnostics import UsageError
from simcore.sweep.front import Front, Measures, Rule, objectives_of, rule_of
from simcore.sweep.outcome import Outcome
from simcore.sweep.point import Point
from tests.sweep.made import made_point

_SMALL = st.integers(1, 5)
_POINTS = st.lists(st.tuples(_SMALL, _SMALL, _SMALL, _SMALL), max_size=14).map(
    lambda rows: [
        made_point(number, step, memory, gpus, tp=tp) for number, (step, memory, gpus, tp) in enumerate(rows)
    ]
)
_RULES = st.builds(
    Rule,
    st.sampled_from((("time",), ("time", "memory"), ("time", "memory", "gpus"), ("memory", "gpus"))),
    st.integers(1, 3),
    st.sampled_from(("", "tp")),
)


def _figures(point: Point, rule: Rule) -> list[int]:
    own = {"time": point.step_time_ns, "memory": point.memory_peak_bytes, "gpus": point.gpus}
    return [own[name] for name in rule.objectives]  # type: ignore[misc]


@given(_POINTS, _RULES, st.randoms())
def test_the_front_is_what_no_other_beats_whatever_the_order(points: list[Point], rule: Rule, random) -> None:  # type: ignore[no-untyped-def]
    expected = {
        one.number
        for one in points
        if not any(
            _figures(other, rule) != _figures(one, rule)
            and all(a <= b for a, b in zip(_figures(other, rule), _figures(one, rule), strict=True))
            for other in points
        )
    }
    shuffled = list(points)
    random.shuffle(shuffled)
    front = Front(rule, shuffled)
    assert {point.number for point in front.front} == expected
    families: dict[object, list[Point]] = {}
    for point in points:
        families.setdefault(point.layout["tp"] if rule.by else None, []).append(point)
    best = {
        family: sorted((one.step_time_ns, one.number) for one in ones)[: rule.top]  # type: ignore[type-var]
        for family, ones in families.items()
    }
    found = {
        family: [(one.step_time_ns, one.number) for one in ones] for family, ones in front.families().items()
    }
    assert found == best


@given(_POINTS, _RULES, _SMALL, _SMALL, _SMALL, _SMALL)
def test_what_is_left_out_would_change_nothing(
    points: list[Point], rule: Rule, step: int, memory: int, gpus: int, tp: int
) -> None:
    """With the step that it takes at least, and with a longer one."""
    front = Front(rule, points)
    before = front.front, front.families()
    if front.leaves_out({"tp": tp}, Measures(float(step), float(memory), float(gpus), float(step * gpus))):
        for more in (0, 1):
            other = Front(rule, [*points, made_point(99, step + more, memory, gpus, tp=tp)])
            assert (other.front, other.families()) == before


def test_what_does_not_fit_is_never_among_the_best() -> None:
    front = Front(Rule(), [made_point(0, 1, memory=101), made_point(1, 9, memory=100)])
    assert [point.number for point in front.front] == [point.number for point in front.best] == [1]


def test_a_rule_is_read_as_it_is_written() -> None:
    for rule in (Rule(), Rule(("time", "cost"), 3, "tp")):
        assert rule_of(rule.text) == rule
    with pytest.raises(UsageError, match="expected one like"):
        rule_of("speed;3;")
    with pytest.raises(UsageError, match="found speed, expected some of time"):
        objectives_of("speed", None)
    with pytest.raises(UsageError, match="--price says"):
        objectives_of("cost", None)


def test_sentences_say_what_the_best_share_and_what_others_cost() -> None:
    best = [made_point(number, 100 + number, tp=4, pp=8, recompute="full") for number in range(10)]
    others = [
        made_point(20, 112, tp=2, pp=8, recompute="full"),
        made_point(21, 106 * 2, tp=4, pp=16, recompute="full"),
        made_point(22, 111, tp=4, pp=8, recompute="none"),
    ]
    words = Outcome(Rule(), [*best, *others]).sentences()
    assert words == [
        "All of the best 10 have tp 4, pp 8 and recompute full.",
        "pp above 8 costs 112.0 %.",
        "Simpler: recompute none costs 11.0 %.",
    ]


def test_sentences_keep_silent_where_nothing_can_be_said() -> None:
    assert Outcome(Rule(), []).sentences() == []
    # Two points are too few, of equal ones nothing is in common, and nothing simpler is there.
    assert Outcome(Rule(), [made_point(0, 1, tp=2), made_point(1, 2, tp=4)]).sentences() == []
    alike = [made_point(number, 5, tp=number % 2 + 1) for number in range(12)]
    assert Outcome(Rule(), alike).sentences() == []


def test_points_that_cannot_be_are_counted_by_reason() -> None:
    points = [made_point(0, 5), *(made_point(number, None) for number in range(1, 4))]
    assert Outcome(Rule(), points).count_lines(2) == [
        "4 points, 1 simulated",
        "3 cannot be, like: tp 3 does not fit 4",
        "2 more that no --where means",
    ]


def test_each_family_has_a_best_of_its_own() -> None:
    """What is slower than the best of another family is still the best of its own."""
    front = Front(Rule(("time",), 1, "tp"), [made_point(0, 10, tp=1)])
    least = Measures(20.0, 10.0, 8.0, 160.0)
    assert front.leaves_out({"tp": 1}, least)
    assert not front.leaves_out({"tp": 2}, least)
    front.add(made_point(1, 15, tp=2))
    assert front.leaves_out({"tp": 2}, least)
