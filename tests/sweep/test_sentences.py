"""What a sweep says in words, looked up again among all points of its space, also where it left some out."""

from __future__ import annotations

import re
from functools import cache

import pytest

from simcore.records import replace
from simcore.sweeping.engines import HereEngine
from simcore.sweeping.outcome import PLAIN, Outcome
from simcore.sweeping.pages import open_from
from simcore.sweeping.pareto_front import Rule, measures
from simcore.sweeping.point import Point
from simcore.sweeping.running import Sweep, SweepProgress
from tests.sweep.made import evaluator_of, made_point

_NAMES = {"micro-batch size": "microbatch_size", "virtual stages": "virtual_stages"}
_AXES = ("tp=1,2,4", "pp=1,2,4", "microbatch_size=1,2,4", "recompute=none,full", "zero=1,2")
_FIXED = {"world": 16, "global_batch": 64, "memory_limit": "50GB"}


@cache
def exhaustive() -> tuple[Point, ...]:
    """All points, those that fit with what they take."""
    found = Sweep(evaluator_of(*_AXES, **_FIXED), HereEngine()).points()
    fit = (one for one in found if one.is_run and one.fits)
    return tuple(sorted(fit, key=lambda one: measures(one).time))


def check_sentences(words: list[str], among: tuple[Point, ...]) -> int:
    """Each clause against all points; how many there were."""
    checked, fastest = 0, measures(among[0]).time
    for sentence in words:
        found = re.fullmatch(r"All of the best (\d+) have (.+)\.", sentence)
        if found is not None:
            best = among[: int(found[1])]
            for clause in re.split(r", | and ", found[2]):
                name, value = clause.rsplit(" ", 1)
                name = _NAMES.get(name, name)
                assert {str(one.layout[name]) for one in best} == {value}
                # It tells the best from others.
                assert any(str(one.layout[name]) != value for one in among)
                checked += 1
            continue
        for clause in sentence.removeprefix("Simpler: ").removesuffix(".").split("; "):
            above = re.fullmatch(r"(.+) above (\d+) costs (at least )?([\d.]+) %", clause)
            plain = re.fullmatch(r"(.+) (\S+) costs (at least )?(?:([\d.]+) %|nothing)", clause)
            assert above or plain, clause
            if above:
                name = _NAMES.get(above[1], above[1])
                those = [one for one in among if (one.layout[name] or 0) > int(above[2])]
                at_least, figure = above[3], above[4]
            else:
                assert plain is not None
                name = _NAMES.get(plain[1], plain[1])
                assert plain[2] in map(str, PLAIN[name])
                those = [one for one in among if str(one.layout[name]) == plain[2]]
                at_least, figure = plain[3], plain[4] or "0.0"
            if not those:
                # All of them were left out or do not fit: nothing may contradict it.
                assert at_least
                continue
            costs = 100 * (min(measures(one).time for one in those) / fastest - 1)
            assert costs >= float(figure) - 0.05 if at_least else abs(costs - float(figure)) <= 0.0501
            checked += 1
    return checked


@pytest.mark.slow
def test_of_all_points() -> None:
    words = Outcome(Rule(), exhaustive()).sentences()
    assert check_sentences(words, exhaustive()) >= 3, words


@pytest.mark.parametrize("top", [3, 5, 10])
def test_where_points_were_left_out_it_says_no_more_than_is_certain(top: int) -> None:
    rule = Rule(("time",), top)
    points = list(Sweep(evaluator_of(*_AXES, rule=rule.text, **_FIXED), HereEngine(), rule, wave=8).points())
    assert any(point.reason == "bound" for point in points)
    assert check_sentences(Outcome(rule, points).sentences(), exhaustive()) >= 1


def test_of_fewer_best_points_than_usual_no_more_are_called_the_best() -> None:
    """Planted: the best 10 of those that were run, where only the best 3 are certain. It was found."""
    runs = [made_point(number, 100 + number, tp=4 if number < 5 else 2) for number in range(11)]
    left_out = made_point(20, None, tp=8)
    left_out = replace(left_out, skipped="bound: takes 104 ns at least", at_least_ns=104)
    words = Outcome(Rule(("time",), 3), [*runs, left_out]).sentences()
    assert words[0] == "All of the best 3 have tp 4."
    assert Outcome(Rule(("time",), 10), [*runs, left_out]).sentences() != words


def test_a_sweep_that_was_stopped_says_no_more_than_what_it_came_to() -> None:
    """Its simplest layout came in at 25 % more, and one that it had not come to took 2.5 %."""
    runs = [made_point(number, 100 + number, tp=4, pp=2) for number in range(10)]
    found = Outcome(Rule(("time",), 10), [*runs, made_point(19, 125, tp=1, pp=2)])
    words = found.sentences()
    assert "All of the best 10 have tp 4." in words
    assert "Simpler: tp 1 costs 25.0 %." in words
    at_most = "Simpler: tp 1 costs at most 25.0 % over the fastest here."
    for least, total in ((102.0, 40), (None, None)):
        progress = SweepProgress(candidates=40, finished=5, checked=20, total=total, least=least)
        found.open_from = open_from(progress, prunes=True)
        assert at_most in found.sentences()
    assert "All of the best 10 so far have tp 4." in found.sentences()
    # What is left takes longer than all that is spoken of; or nothing is left.
    progress = SweepProgress(candidates=40, finished=5, checked=40, total=40, least=130.0)
    found.open_from = open_from(progress, prunes=True)
    assert found.sentences() == words
    found.open_from = open_from(SweepProgress(candidates=5, finished=5, checked=5, total=5), prunes=True)
    assert found.sentences() == words


def test_sentences_say_what_the_best_share_and_what_others_cost() -> None:
    best = [made_point(number, 100 + number, tp=4, pp=8, recompute="full") for number in range(10)]
    # Alike to the fastest: it takes no place of its own among the best.
    best.append(made_point(10, 100, tp=4, pp=8, recompute="full", cp=2))
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
