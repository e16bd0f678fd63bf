"""Which points of a sweep are worth running: those that no other beats in everything, and the best of each
family.

A run counts by the time of its work: the step time over its tokens, or over its micro-batches of a workload
file. A point that does not fit into memory is never among the best. Points are alike whose time and memory
are the same in the figures that a page shows: what differs between them does not matter, and the fastest of
them, of equals the first, stands for all.
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
from simcore.units import duration, group_digits

OBJECTIVES = ("time", "memory", "gpus", "cost")
DEFAULT_TOP = 10
# Figures of the time and of the memory in which points that are alike are the same.
_TIME_DIGITS, _MEMORY_DIGITS = 4, 3


class Rule(Struct, frozen=True):
    """What is looked for. objectives: of `OBJECTIVES`. top: so many of each family, which has one value of
    `by`; "": all points are one family.
    """

    objectives: tuple[str, ...] = ("time", "memory", "gpus")
    top: int = DEFAULT_TOP
    by: str = ""

    @property
    def text(self) -> str:
        """The rule in one word, as lines of results have it."""
        return f"{'+'.join(self.objectives)};{self.top};{self.by}"


def rule_of(text: str) -> Rule:
    """The rule of such a word. Raises `UsageError` for none."""
    objectives, _, rest = text.partition(";")
    top, _, by = rest.partition(";")
    names = tuple(objectives.split("+"))
    if not set(names) <= set(OBJECTIVES) or not top.isdecimal() or (by and by not in VALUE_NAMES):
        raise UsageError(f"found rule {printable(text, 60)}, expected one like {Rule().text}")
    return Rule(names, int(top), by)


def objectives_of(text: str | None, price: float | None) -> tuple[str, ...]:
    """Those of `--front`; without it all, the cost if there is a price. Raises `UsageError`."""
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
    """What of a point is compared, less is better: ns of a token (or micro-batch), bytes, GPUs, $ of a step
    over its work. infinite: not known.
    """

    time: float
    memory: float
    gpus: float
    cost: float

    def of(self, objectives: Sequence[str]) -> tuple[float, ...]:
        """Those of the objectives."""
        return tuple(getattr(self, name) for name in objectives)


def measures(point: Point) -> Measures:
    """The measures of a point that was simulated."""
    assert point.step_time_ns is not None
    return measures_of(point.step_time_ns, point.work, point.memory_peak_bytes, point.gpus)


def measures_of(step_ns: int, work: int | None, memory: int | None, gpus: int | None) -> Measures:
    """The same of its figures. What a workload file does not tell (memory) is no reason for or against."""
    time = step_ns / (work or 1)
    count = gpus or 0
    # $ go by GPUs and time: the price is the same for all points.
    return Measures(time, memory or 0, count, time * count)


class WorkMeasure(Struct, frozen=True):
    """By what points of unequal work are faster or slower. head: of its column; words: of the axis of a
    plot. value: of a point that was simulated, None where it is not known. text: a value in words. more:
    whether more is better.
    """

    head: str
    words: str
    value: Callable[[Point], float | None]
    text: Callable[[float], str]
    is_more_better: bool


def _microbatch_ns(point: Point) -> float | None:
    """The time of a micro-batch, ns, as a report has it: of one replica."""
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
# Of all replicas: a report's are those of one.
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
    """Tokens a second of a model's points. Of a workload file the time of a micro-batch, where steps do
    unequal work; where the number of replicas differs too, the micro-batches a second of all of them.
    """
    if any(point.tokens_per_s is not None for point in points):
        return _TOKEN_RATE
    if len({point.work for point in points}) < 2:
        return None
    replicas = {(point.work or 0) / (point.layout.get("microbatches") or 1) for point in points}
    return _MICROBATCH_TIME if len(replicas) == 1 else _MICROBATCH_RATE


class EquivalentPoints(Struct, frozen=True):
    """Points that are alike. point: the one that stands for them. others: the rest, fastest first."""

    point: Point
    others: tuple[Point, ...] = ()


class _Best:
    """The fastest groups of points, at most `top`. until: what takes longer, rounded, is in none of them."""

    def __init__(self, top: int) -> None:
        self.top = top
        self.groups: list[EquivalentPoints] = []
        self.slowest_time = math.inf
        self._entries: list[tuple[float, int, Point]] = []

    def add(self, point: Point) -> None:
        """One more point."""
        time = measures(point).time
        if _round_to(time, _TIME_DIGITS) > self.slowest_time:
            return
        insort(self._entries, (time, point.index, point))
        self.groups = group_equivalent([entry[2] for entry in self._entries])[: self.top]
        if len(self.groups) == self.top:
            # As points come this only gets less: which are alike goes by each alone.
            self.slowest_time = _round_to(measures(self.groups[-1].point).time, _TIME_DIGITS)
            while _round_to(self._entries[-1][0], _TIME_DIGITS) > self.slowest_time:
                self._entries.pop()


class ParetoFront:
    """The best of the points that have come so far. points: those that were simulated and fit."""

    def __init__(self, rule: Rule, points: Iterable[Point] = ()) -> None:
        self.rule = rule
        self.points: list[Point] = []
        self._front: list[tuple[tuple[float, ...], Point]] = []
        self._best = _Best(rule.top)
        self._families: dict[Any, _Best] = {}
        for point in points:
            self.add(point)

    def add(self, point: Point) -> None:
        """One more point; what was not simulated or does not fit changes nothing."""
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
        """The points that no other beats in one objective without being worse in another; fastest first."""
        return [point for _, point in sorted(self._front, key=lambda entry: (*_order_key(entry[1]),))]

    def is_on_front(self, point: Point) -> bool:
        """Whether a point is one of the front."""
        return any(other.index == point.index for _, other in self._front)

    def families(self) -> dict[Any, list[EquivalentPoints]]:
        """The best of each family, fastest first, families in the order of their values; without `by` one."""
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
        """The fastest points of all, at most `top` that are not alike."""
        return self._best.groups

    def excludes(self, layout: dict[str, Any], least: Measures) -> bool:
        """Whether no point with this layout that is nowhere better than `least` can be among the best."""
        best = self._families.get(self._family(layout)) if self.rule.by else self._best
        # Of those that are alike each counts.
        if best is None or _round_to(least.time, _TIME_DIGITS) <= best.slowest_time:
            return False
        values = least.of(self.rule.objectives)
        return any(dominates(other, values) for other, _ in self._front)


def group_equivalent(points: Iterable[Point]) -> list[EquivalentPoints]:
    """Points in groups of those that are alike. points: fastest first."""
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
    """Whether one is nowhere worse than the other, and better somewhere."""
    return first != other and all(left <= right for left, right in zip(first, other, strict=True))


def _order_key(point: Point) -> tuple[float, int]:
    return measures(point).time, point.index
