"""What a sweep says in words, looked up again among all points of its space, also where it left some out."""

from __future__ import annotations

import re
from functools import cache

import pytest

from simcore.records import replace
from simcore.sweeping.engines import HereEngine
from simcore.sweeping.outcome import _FOLLOWERS, OVERLAP, Outcome, layout_value
from simcore.sweeping.pages import open_from, text_page
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
                assert {str(layout_value(one.layout, name)) for one in best} == {value}
                # It tells the best from others.
                assert any(str(layout_value(one.layout, name)) != value for one in among)
                checked += 1
            continue
        for clause in sentence.removeprefix("All else equal, ").removesuffix(".").split(", "):
            found = re.fullmatch(r"(.+) (\S+) costs (at least )?(?:([\d.]+) %|nothing)", clause)
            assert found, clause
            name, at_least, figure = _NAMES.get(found[1], found[1]), found[3], float(found[4] or 0)
            followers = _FOLLOWERS.get(name, ())
            those = [
                one for one in among
                if str(one.layout[name]) == found[2] and all(
                    one.layout[other] == value for other, value in among[0].layout.items()
                    if other not in (name, *followers, "dp", "microbatches", "gpus")
                )
            ]  # fmt: skip
            if not those:
                # All of them were left out: nothing may contradict it.
                assert at_least
                continue
            costs = 100 * (min(measures(one).time for one in those) / fastest - 1)
            assert costs >= figure - 0.05 if at_least else abs(costs - figure) <= 0.0501
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


def test_a_sweep_that_was_stopped_says_so_far() -> None:
    """What a value costs beside the fastest here is so whatever comes."""
    runs = [made_point(number, 100 + number, tp=4, pp=2, schedule=number) for number in range(10)]
    found = Outcome(Rule(("time",), 10), [*runs, made_point(19, 125, tp=1, pp=2, schedule=0)])
    words = ["All of the best 10 have tp 4.", "All else equal, tp 1 costs 25.0 %."]
    assert found.sentences() == words
    for least, total in ((102.0, 40), (None, None)):
        progress = SweepProgress(candidates=40, finished=5, checked=20, total=total, least=least)
        found.open_from = open_from(progress, prunes=True)
        assert found.sentences() == ["All of the best 10 so far have tp 4.", words[1]]
    # What is left takes longer than all that is spoken of; or nothing is left.
    progress = SweepProgress(candidates=40, finished=5, checked=40, total=40, least=130.0)
    found.open_from = open_from(progress, prunes=True)
    assert found.sentences() == words
    found.open_from = open_from(SweepProgress(candidates=5, finished=5, checked=5, total=5), prunes=True)
    assert found.sentences() == words


def test_sentences_say_what_the_best_share_and_what_one_change_costs() -> None:
    """Planted: the fastest point of a value whatever else it has (tp 2 is 4 % slower with a larger
    micro-batch); the value next but one; a schedule's virtual stages taken for another difference.
    """
    fastest = {
        "tp": 4, "pp": 8, "recompute": "full", "schedule": "interleaved", "virtual_stages": 4,
        "microbatch_size": 1,
    }  # fmt: skip
    best = [made_point(number, 100 + number, **fastest | {"seed": number}) for number in range(10)]
    changed = [
        (112, {"tp": 2}), (104, {"tp": 2, "microbatch_size": 2}), (150, {"tp": 1}), (212, {"pp": 16}),
        (111, {"recompute": "none"}), (130, {"schedule": "1f1b", "virtual_stages": 1}),
        (170, {"schedule": "1f1b", "virtual_stages": 1, "recompute": "none"}),
    ]  # fmt: skip
    others = [
        made_point(20 + number, step, **fastest | {"seed": 0} | layout)
        for number, (step, layout) in enumerate(changed)
    ]
    left_out = made_point(40, None, **fastest | {"seed": 0, "tp": 8})
    left_out = replace(left_out, skipped="bound: takes 109 ns at least", at_least_ns=109)
    words = Outcome(Rule(), [*best, *others, left_out]).sentences()
    assert words[1:] == [
        f"All else equal, {costs}."
        for costs in (
            "tp 2 costs 12.0 %, tp 8 costs at least 9.0 %", "pp 16 costs 112.0 %",
            "schedule 1f1b costs 30.0 %", "recompute none costs 11.0 %",
        )
    ]  # fmt: skip


def test_overlaps_are_one_value_and_those_of_zero_count() -> None:
    overlaps = {"overlap_grad_reduce": True, "overlap_param_gather": True, "overlap_tp": False}
    none = dict.fromkeys(overlaps, False)
    runs = [
        made_point(0, 100, zero=1, **overlaps), made_point(1, 101, zero=2, **none),
        made_point(2, 102, zero=3, **none | {"overlap_tp": True}), made_point(3, 103, zero=0, **none),
    ]  # fmt: skip
    words = [layout_value(point.layout, OVERLAP) for point in runs]
    assert words == ["grads+weights", "grads", "grads+weights+tp", "none"]
    found = Outcome(Rule(), runs)
    assert found.varied == ["zero", OVERLAP]
    # Another stage of ZeRO has other overlaps: that follows from it.
    assert found.sentences()[-1] == "All else equal, zero 0 costs 3.0 %."


def test_a_row_with_little_room_in_memory_is_marked() -> None:
    rows = [made_point(0, 100, memory=98), made_point(1, 101, memory=97), made_point(2, 102, memory=101)]
    assert [point.is_tight for point in rows] == [True, False, False]
    page = text_page(Outcome(Rule(), rows), "t")
    assert len(re.findall(r"98 B !", page)) == 1
    assert "! within 3 % of the memory of a GPU" in page
    assert "!" not in text_page(Outcome(Rule(), rows[1:]), "t")
