"""The front and the best of each family, against their definitions; sentences that speak and keep silent."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.diagnostics import UsageError
from simcore.records import replace
from simcore.sweeping.outcome import Outcome
from simcore.sweeping.pages import remaining_lines, text_page
from simcore.sweeping.pareto_front import Measures, ParetoFront, Rule, objectives_of, rule_of
from simcore.sweeping.point import Point
from simcore.sweeping.running import SweepProgress
from tests.says import figures, said
from tests.sweep.made import made_point

_SMALL = st.integers(1, 5)
# Of times and memory some are the same in the figures that a page shows.
_LONG = st.sampled_from((10_000, 10_001, 10_004, 10_006, 20_000, 20_001))
_LARGE = st.sampled_from((10, 20, 30, 9_999, 10_001))
_POINTS = st.lists(st.tuples(_LONG, _LARGE, _SMALL, _SMALL), max_size=14).map(
    lambda rows: [
        replace(made_point(number, step, memory, gpus, tp=tp), memory_limit_bytes=20_000)
        for number, (step, memory, gpus, tp) in enumerate(rows)
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
        one.index
        for one in points
        if not any(
            _figures(other, rule) != _figures(one, rule)
            and all(a <= b for a, b in zip(_figures(other, rule), _figures(one, rule), strict=True))
            for other in points
        )
    }
    shuffled = list(points)
    random.shuffle(shuffled)
    front = ParetoFront(rule, shuffled)
    assert {point.index for point in front.front} == expected
    families: dict[object, list[Point]] = {}
    for point in points:
        families.setdefault(point.layout["tp"] if rule.by else None, []).append(point)
    found = {
        family: [[one.index for one in (group.point, *group.others)] for group in groups]
        for family, groups in front.families().items()
    }
    assert found == {family: _groups(ones)[: rule.top] for family, ones in families.items()}


def _groups(points: list[Point]) -> list[list[int]]:
    """The numbers of those that are alike, the groups by their fastest."""
    found: dict[object, list[int]] = {}
    for point in sorted(points, key=lambda one: (one.step_time_ns, one.index)):
        # As a page has them: 4 figures of the time, 3 of the memory.
        shown = f"{point.step_time_ns:.3e}", f"{point.memory_peak_bytes:.2e}", point.gpus
        found.setdefault(shown, []).append(point.index)
    return list(found.values())


@given(_POINTS, _RULES, _LONG, _LARGE, _SMALL, _SMALL)
def test_what_is_left_out_would_change_nothing(
    points: list[Point], rule: Rule, step: int, memory: int, gpus: int, tp: int
) -> None:
    """With the step that it takes at least, and with a longer one."""
    front = ParetoFront(rule, points)
    before = front.front, front.families()
    if front.excludes({"tp": tp}, Measures(float(step), float(memory), float(gpus), float(step * gpus))):
        for more in (0, 1):
            one = replace(made_point(99, step + more, memory, gpus, tp=tp), memory_limit_bytes=20_000)
            other = ParetoFront(rule, [*points, one])
            assert (other.front, other.families()) == before


def test_what_does_not_fit_is_never_among_the_best() -> None:
    front = ParetoFront(Rule(), [made_point(0, 1, memory=101), made_point(1, 9, memory=100)])
    assert [point.index for point in front.front] == [group.point.index for group in front.best] == [1]


def test_a_rule_is_read_as_it_is_written() -> None:
    for rule in (Rule(), Rule(("time", "cost"), 3, "tp")):
        assert rule_of(rule.text) == rule
    for wrong in ("speed;3;", "time;0;", "time;00;"):
        with pytest.raises(UsageError, match="expected one like"):
            rule_of(wrong)
    with pytest.raises(UsageError, match="found speed, expected some of time"):
        objectives_of("speed", None)
    with pytest.raises(UsageError, match="--price says"):
        objectives_of("cost", None)


def test_of_points_that_are_alike_one_is_shown_and_the_others_are_counted() -> None:
    points = [
        made_point(0, 100, cp=1, dp=8),
        made_point(1, 100, cp=2, dp=4),
        made_point(2, 100, cp=4, dp=2),
        made_point(3, 100, memory=20, cp=8, dp=1),
        made_point(4, 200, cp=8, dp=1),
    ]
    page = text_page(Outcome(Rule(), points), "x")
    rows = [line.split() for line in page.splitlines() if line.endswith((" 8", " 4", " 2", " 1"))]
    assert [row[-3:] for row in rows] == [["+2", "1", "8"], ["8", "8", "1"], ["8", "8", "1"]]
    said(page.splitlines(), "+N:", "differ", "cp and dp")
    assert "+N" not in text_page(Outcome(Rule(), points[2:]), "x")


def test_sentences_keep_silent_where_nothing_can_be_said() -> None:
    assert Outcome(Rule(), []).sentences() == []
    # Two points are too few, of equal ones nothing is in common, and none differs in one value alone.
    assert Outcome(Rule(), [made_point(0, 1, tp=2, cp=1), made_point(1, 2, tp=4, cp=2)]).sentences() == []
    alike = [made_point(number, 5, schedule=f"{number}", cp=number + 1) for number in range(12)]
    assert Outcome(Rule(), alike).sentences() == []


def test_points_that_cannot_be_are_counted_by_reason() -> None:
    points = [made_point(0, 5), *(made_point(number, None) for number in range(1, 4))]
    assert Outcome(Rule(), points).count_lines(2) == [
        "4 points, 1 simulated",
        "3 cannot be, like: tp 3 does not fit 4",
        "2 more that no --where means",
    ]


def test_what_is_known_of_points_that_were_not_come_to() -> None:
    found = Outcome(Rule(), [made_point(0, 100), made_point(1, 90)])

    def rest(prunes: bool = True, **known: object) -> list[list[str]]:
        lines = remaining_lines(
            found, SweepProgress(candidates=50, finished=10, checked=50, simulated=2, **known), prunes
        )  # type: ignore[arg-type]
        return [figures(line) + re.findall("none|longer|less|nothing|nobody", line) for line in lines]

    assert rest(total=50, least=99.0) == [["40", "10.0 %", "none", "longer"]]
    assert rest(total=50, least=90.0) == [["40", "none"]]
    assert rest(total=50, least=72.0) == [["40", "20.0 %", "less"]]
    assert rest(total=11, least=None) == [["1", "nothing"]]
    assert rest(prunes=False, total=None) == [["40", "nothing"]]
    assert rest(total=10, least=99.0) == []
    assert rest() == [["50", "50", "2", "nobody"]]


def test_each_family_has_a_best_of_its_own() -> None:
    """What is slower than the best of another family is still the best of its own."""
    front = ParetoFront(Rule(("time",), 1, "tp"), [made_point(0, 10, tp=1)])
    least = Measures(20.0, 10.0, 8.0, 160.0)
    assert front.excludes({"tp": 1}, least)
    assert not front.excludes({"tp": 2}, least)
    front.add(made_point(1, 15, tp=2))
    assert front.excludes({"tp": 2}, least)
