"""The Pareto front of a sweep, the points that no other beats in every objective, and the best of each
family.

A run counts by the time of its work: the step time over its tokens, or over its micro-batches for a workload
file. A point that does not fit into memory is never among the best. Points are equivalent whose time and
memory are the same in the digits that a page shows: what differs between them does not matter, and the
fastest of them, the first of equal ones, stands for all.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from simcore.diagnostics import UsageError, did_you_mean, printable
from simcore.records import Struct
from simcore.sweeping.point import Point
from simcore.sweeping.space import VALUE_NAMES
from simcore.units import duration, group_digits, is_whole

OBJECTIVES = ("time", "memory", "gpus", "cost")
DEFAULT_TOP = 10
# The digits of time and memory in which equivalent points are equal.
_TIME_DIGITS, _MEMORY_DIGITS = 4, 3


class Rule(Struct, frozen=True):
    """What a sweep looks for."""

    objectives: tuple[str, ...] = ("time", "memory", "gpus")
    """The compared measures, of `OBJECTIVES`."""
    top: int = DEFAULT_TOP
    """How many points of each family are wanted."""
    by: str = ""
    """The value that all points of a family share; "": all points are one family."""

    @property
    def text(self) -> str:
        """The rule in one word, as lines of results have it."""
        return f"{'+'.join(self.objectives)};{self.top};{self.by}"


def rule_of(text: str) -> Rule:
    """Returns the rule of such a word. Raises `UsageError` for any other."""
    objectives, _, rest = text.partition(";")
    top, _, by = rest.partition(";")
    names = tuple(objectives.split("+"))
    has_top = is_whole(top) and int(top) > 0
    if not set(names) <= set(OBJECTIVES) or not has_top or (by and by not in VALUE_NAMES):
        raise UsageError(f"found rule {printable(text, 60)}, expected one like {Rule().text}")
    return Rule(names, int(top), by)


def objectives_of(text: str | None, price: float | None) -> tuple[str, ...]:
    """Returns the objectives of `--front`; without it all, the cost if there is a price. Raises
    `UsageError`.
    """
    if text is None:
        return OBJECTIVES if price is not None else OBJECTIVES[:3]
    names = tuple(dict.fromkeys(text.split(",")))
    for name in names:
        if name not in OBJECTIVES:
            fit = f"found {printable(name, 30) or 'nothing'}, expected some of {', '.join(OBJECTIVES)}"
            raise UsageError(f"--front {printable(text, 60)}: {fit}{did_you_mean(name, OBJECTIVES)}")
    if "cost" in names and price is None:
        raise UsageError("--front cost: --price says what a GPU costs for an hour")
    return names


class Measures(Struct, frozen=True):
    """The compared measures of a point, less is better; infinite where one is not known."""

    time: float
    """ns of a token, or of a micro-batch."""
    memory: float
    """Bytes of the fullest stage."""
    gpus: float
    """How many GPUs it needs."""
    cost: float
    """The cost of a step over its work, in GPUs x ns."""

    def of(self, objectives: Sequence[str]) -> tuple[float, ...]:
        """Returns the measures of the objectives."""
        return tuple(getattr(self, name) for name in objectives)


def measures(point: Point) -> Measures:
    """Returns the measures of a point that was simulated."""
    assert point.step_time_ns is not None
    return measures_of(point.step_time_ns, point.work, point.memory_peak_bytes, point.gpus)


def measures_of(step_ns: int, work: int | None, memory: int | None, gpus: int | None) -> Measures:
    """Returns the measures of these figures.

    Memory, which a workload file does not tell, counts as 0: it is no reason for or against a point.
    """
    time = step_ns / (work or 1)
    count = gpus or 0
    # $ are proportional to GPUs and time: the price is the same for all points.
    return Measures(time, memory or 0, count, time * count)


class WorkMeasure(Struct, frozen=True):
    """A measure that orders points of unequal work by speed."""

    head: str
    """The head of its column."""
    words: str
    """The title of the axis of a plot."""
    value: Callable[[Point], float | None]
    """Returns the value of a point that was simulated; None where it is not known."""
    text: Callable[[float], str]
    """Returns a value in words."""
    is_more_better: bool
    """Whether more is better."""


def _microbatch_ns(point: Point) -> float | None:
    """Returns the time of a micro-batch of one replica, ns, as a report has it."""
    batches = point.layout.get("microbatches")
    return point.step_time_ns / batches if point.step_time_ns and batches else None


def _micro_batches_a_second(point: Point) -> float | None:
    return point.work * 1e9 / point.step_time_ns if point.step_time_ns and point.work else None


_MICROBATCH_TIME = WorkMeasure(
    "a micro-b.",
    "time of a micro-batch",
    _microbatch_ns,
    lambda ns: duration(round(ns)),
    is_more_better=False,
)
# Of all replicas; a report has those of one.
_MICROBATCH_RATE = WorkMeasure(
    "all mb/s",
    "micro-batches/s of all replicas",
    _micro_batches_a_second,
    lambda rate: f"{rate:.4g}",
    is_more_better=True,
)
_TOKEN_RATE = WorkMeasure(
    "tokens/s",
    "tokens/s",
    lambda point: point.tokens_per_s,
    lambda rate: group_digits(round(rate)),
    is_more_better=True,
)


def choose_measure(points: Sequence[Point]) -> WorkMeasure | None:
    """Returns the measure by which points of unequal work are compared; None where steps do equal work.

    It is tokens a second for a model. For a workload file it is the time of a micro-batch or, where the
    number of replicas differs too, the micro-batches a second of all of them.
    """
    if any(point.tokens_per_s is not None for point in points):
        return _TOKEN_RATE
    if len({point.work for point in points}) < 2:
        return None
    replicas = {(point.work or 0) / (point.layout.get("microbatches") or 1) for point in points}
    return _MICROBATCH_TIME if len(replicas) == 1 else _MICROBATCH_RATE


class EquivalentPoints(Struct, frozen=True):
    """Points that are equal in the displayed digits."""

    point: Point
    """The point that stands for them."""
    others: tuple[Point, ...] = ()
    """The rest, fastest first."""


class _Best:
    """The fastest groups of points, at most `top`. slowest_time: points with a larger time, rounded, are in
    none of them.
    """

    def __init__(self, top: int) -> None:
        self.top = top
        self.groups: list[EquivalentPoints] = []
        self.slowest_time = math.inf
        self._entries: list[tuple[float, int, Point]] = []

    def add(self, point: Point) -> None:
        """Adds a point."""
        time = measures(point).time
        if _round_to(time, _TIME_DIGITS) > self.slowest_time:
            return
        insort(self._entries, (time, point.index, point))
        self.groups = group_equivalent([entry[2] for entry in self._entries])[: self.top]
        if len(self.groups) == self.top:
            # It only decreases as points arrive: which are equivalent depends on each alone.
            self.slowest_time = _round_to(measures(self.groups[-1].point).time, _TIME_DIGITS)
            while _round_to(self._entries[-1][0], _TIME_DIGITS) > self.slowest_time:
                self._entries.pop()


class ParetoFront:
    """The best of the points that have arrived so far. points: those that were simulated and fit."""

    def __init__(self, rule: Rule, points: Iterable[Point] = ()) -> None:
        self.rule = rule
        self.points: list[Point] = []
        self._front: list[tuple[tuple[float, ...], Point]] = []
        self._best = _Best(rule.top)
        self._families: dict[Any, _Best] = {}
        for point in points:
            self.add(point)

    def add(self, point: Point) -> None:
        """Adds a point; one that was not simulated or does not fit changes nothing."""
        if not point.is_run or not point.fits:
            return
        self.points.append(point)
        measured = measures(point)
        values = measured.of(self.rule.objectives)
        if not any(dominates(other, values) for other, _ in self._front):
            self._front = [entry for entry in self._front if not dominates(values, entry[0])]
            self._front.append((values, point))
        self._best.add(point)
        if self.rule.by:
            self._families.setdefault(self._family(point.layout), _Best(self.rule.top)).add(point)

    def _family(self, layout: dict[str, Any]) -> Any:
        value = layout.get(self.rule.by)
        return tuple(value) if isinstance(value, list) else value

    @property
    def front(self) -> list[Point]:
        """The points that no other dominates, fastest first."""
        return [point for _, point in sorted(self._front, key=lambda entry: (*_order_key(entry[1]),))]

    def is_on_front(self, point: Point) -> bool:
        """Returns whether a point is on the front."""
        return any(other.index == point.index for _, other in self._front)

    def families(self) -> dict[Any, list[EquivalentPoints]]:
        """Returns the best of each family, fastest first, families in the order of their values; without `by`
        one.
        """
        if not self.rule.by:
            return {None: self.best} if self.best else {}
        return {
            family: self._families[family].groups
            for family in sorted(
                self._families, key=lambda key: (isinstance(key, str), key is not None and key)
            )
        }

    @property
    def best(self) -> list[EquivalentPoints]:
        """The fastest points of all, at most `top` groups of equivalent ones."""
        return self._best.groups

    def excludes(self, layout: dict[str, Any], least: Measures) -> bool:
        """Returns whether no point with this layout that is nowhere better than `least` can be among the
        best.
        """
        best = self._families.get(self._family(layout)) if self.rule.by else self._best
        # Every point of an equivalent group counts: equal times are not excluded.
        if best is None or _round_to(least.time, _TIME_DIGITS) <= best.slowest_time:
            return False
        values = least.of(self.rule.objectives)
        return any(dominates(other, values) for other, _ in self._front)


def group_equivalent(points: Iterable[Point]) -> list[EquivalentPoints]:
    """Returns points in groups of equivalent ones. points: fastest first."""
    groups: dict[object, list[Point]] = {}
    for point in points:
        point_measures = measures(point)
        key = (
            _round_to(point_measures.time, _TIME_DIGITS),
            _round_to(point_measures.memory, _MEMORY_DIGITS),
            point_measures.gpus,
        )
        groups.setdefault(key, []).append(point)
    return [EquivalentPoints(group[0], tuple(group[1:])) for group in groups.values()]


def _round_to(value: float, figures: int) -> float:
    return float(f"{value:.{figures - 1}e}")


def dominates(first: Sequence[float], other: Sequence[float]) -> bool:
    """Returns whether one is nowhere worse than the other, and better somewhere."""
    return first != other and all(left <= right for left, right in zip(first, other, strict=True))


def _order_key(point: Point) -> tuple[float, int]:
    return measures(point).time, point.index
