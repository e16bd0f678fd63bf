"""The outcome of a sweep: counts and reasons, the front, and sentences on what the best have in common.

A sentence on what a value costs compares the fastest point of all with those that differ from it in that
value alone, and in what follows from it (`_FOLLOWERS`). Where the fastest of these was left out, so that no
run tells, it says `at least` with its lower bound.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from simcore.diagnostics import printable
from simcore.records import NamedTuple
from simcore.sweeping.pareto_front import (
    EquivalentPoints,
    ParetoFront,
    Rule,
    group_equivalent,
    measures,
    measures_of,
)
from simcore.sweeping.point import CANNOT_BE, FAILED, LEFT_OUT, NO_MEMORY, Point
from simcore.sweeping.space import OVERLAPS
from simcore.units import format_number as plain_words
from simcore.units import plural

# The values of a layout without a technique: simpler to run, and to understand.
PLAIN: dict[str, tuple[Any, ...]] = {
    "tp": (1,), "pp": (1,), "cp": (1,), "ep": (1,), "virtual_stages": (1,), "schedule": ("1f1b",),
    "recompute": ("none",), "zero": (1, 0),
}  # fmt: skip
# What a degree of such a name changes: the neighbours of its value are compared.
DEGREES = ("tp", "pp", "cp", "ep", "microbatch_size", "virtual_stages")
# What follows from a value, and differs with it: another schedule has other virtual stages, another stage of
# ZeRO other overlaps.
_FOLLOWERS: dict[str, tuple[str, ...]] = {
    "tp": ("sequence_parallel", "overlap_tp"),
    "pp": ("schedule", "virtual_stages"),
    "schedule": ("virtual_stages",),
    "zero": ("overlap_grad_reduce", "overlap_param_gather"),
}
# What is no choice of a layout.
_NO_CHOICES = ("world", "gpus", "microbatches", "global_batch")
# What the world and the other values decide.
_DERIVED = ("dp", "microbatches", "gpus")
# The name of all overlaps together.
OVERLAP = "overlap"
# Sentences are on at most the first, and on no fewer than the second number of points.
_MAX_BEST, _MIN_BEST = 10, 3
_FIGURE = re.compile(r"\d[\d.,]*")
# A smaller difference is printed as 0.0 %.
_MIN_DIFFERENCE = 0.0005


class Robustness(NamedTuple):
    """How often each of the best points of a sweep is the best of them under other conditions."""

    wins: dict[int, int]
    """By the index of a point."""
    conditions: int
    """How many conditions there are."""
    words: str
    """The conditions in words."""


class Spread(NamedTuple):
    """The error of simulated steps of a sweep's kind."""

    share: float
    """The median of published steps."""
    steps: int
    """How many these are."""


class Outcome:
    """The points of a sweep that have arrived, and the sentences on them.

    rule: the rule of the sweep. open_from: for a sweep that was stopped, a lower bound of the time of the
    points that it did not reach; 0 where none is known, inf where none are left. assumed: the assumptions of
    the report of the fastest; empty where it was not requested.
    """

    def __init__(self, rule: Rule, points: Iterable[Point] = ()) -> None:
        self.front = ParetoFront(rule)
        self.total = self.simulated = 0
        # (kind of reason, its words without figures) -> how many points, and the words of the first one.
        self.reasons: Counter[tuple[str, str]] = Counter()
        self.examples: dict[tuple[str, str], tuple[int, str]] = {}
        self.too_large = 0
        # The values that points have, by part of the layout.
        self.values: dict[str, set[Any]] = {}
        # By the hash of a layout without what is derived: (time of a token in ns, whether it was simulated).
        self._times: dict[int, tuple[float, bool]] = {}
        self.open_from = float("inf")
        self.assumed: list[str] = []
        # Of a sweep that has ended: how often the best stay the best, and what simulated steps are off by.
        self.robustness: Robustness | None = None
        self.spread: Spread | None = None
        for point in points:
            self.add(point)

    def add(self, point: Point) -> None:
        """Adds a point."""
        self.total += 1
        if point.skipped is not None:
            kind, _, why = point.skipped.partition(": ")
            key = (kind, _FIGURE.sub("N", why) if kind == CANNOT_BE else "")
            self.reasons[key] += 1
            # The first point of the space, in whatever order points arrive.
            self.examples[key] = min(self.examples.get(key, (point.index, why)), (point.index, why))
            if kind != LEFT_OUT:
                return
        else:
            self.simulated += 1
            if not point.fits:
                self.too_large += 1
                return
            self.front.add(point)
        for name, value in point.layout.items():
            self.values.setdefault(name, set()).add(_hashable(value))
        time = (
            measures(point).time
            if point.is_run
            else measures_of(point.at_least_ns or 0, point.work, None, None).time
        )
        self._times[_layout_key(point.layout)] = time, point.is_run

    @property
    def varied(self) -> list[str]:
        """The parts of the layout that differ among the points that were simulated and fit."""
        runs = self.front.points
        names = dict.fromkeys(
            OVERLAP if name in OVERLAPS else name for point in runs for name in point.layout
        )
        return [name for name in names if len({layout_value(point.layout, name) for point in runs}) > 1]

    def common(self) -> dict[str, Any]:
        """Returns the parts of the layout that all points that were simulated and fit share."""
        varied, layout = set(self.varied), self.front.points[0].layout if self.front.points else {}
        names = dict.fromkeys(OVERLAP if name in OVERLAPS else name for name in layout)
        return {name: layout_value(layout, name) for name in names if name not in varied}

    # -- sentences -------------------------------------------------------------------

    def count_lines(self, excluded: int = 0) -> list[str]:
        """Returns how many points there were, and why some were not simulated; each kind of reason once."""
        lines = [f"{plural(self.total, 'point')}, {self.simulated} simulated"]
        if self.too_large:
            lines.append(f"{self.too_large} of them do not fit into memory")
        for key, count in self.reasons.most_common():
            lines.append(f"{count} {reason_words(key[0], count)}{self._example(key, count)}")
        if excluded:
            lines.append(f"{excluded} more that no --where means")
        return lines

    def _example(self, key: tuple[str, str], count: int) -> str:
        if key[0] == LEFT_OUT:
            return ""
        return f", {'like' if count > 1 else 'as'}: {printable(self.examples[key][1], 240)}"

    def sentences(self) -> list[str]:
        """Returns what the best have in common, the cost of other values, and the cost of simpler layouts."""
        return [
            *self.common_words(), *self.family_words(), *self.robust_words(), *self.alternative_words()
        ]  # fmt: skip

    def _best(self) -> tuple[int, list[Point]]:
        """Returns how many of the fastest count as the best, and all points that these stand for.

        Where points were left out, these are no more than are certain.
        """
        is_pruned = any(kind == LEFT_OUT for kind, _ in self.reasons)
        if is_pruned or self.front.rule.top >= _MAX_BEST:
            groups = self.front.best[:_MAX_BEST]
        else:
            points = sorted(self.front.points, key=lambda point: (measures(point).time, point.index))
            groups = group_equivalent(points)[:_MAX_BEST]
        return len(groups), [point for group in groups for point in (group.point, *group.others)]

    def common_words(self) -> list[str]:
        """Returns `All of the best 10 have tp 4 and schedule interleaved.`, of values that others do not
        have.
        """
        count, best = self._best()
        if count < _MIN_BEST or len(self.front.points) <= len(best):
            return []
        shared = []
        for name in self.varied:
            if name in _NO_CHOICES:
                continue
            values = {layout_value(point.layout, name) for point in best}
            if len(values) == 1:
                shared.append(value_words(name, layout_value(best[0].layout, name)))
        if not shared:
            return []
        slowest = max(measures(point).time for point in best)
        so_far = " so far" if self.open_from < slowest else ""
        return [f"All of the best {count}{so_far} have {_join_names(shared)}."]

    def family_words(self) -> list[str]:
        """Returns what the rows have in common that differ by less than simulated steps are off, where there
        are several: which of them is the fastest nobody knows.
        """
        groups = self.front.best
        if self.spread is None or not groups:
            return []
        fastest = measures(groups[0].point).time
        near = [
            group.point for group in groups if measures(group.point).time <= fastest * (1 + self.spread.share)
        ]
        if len(near) < 2:
            return []
        shared = [
            value_words(name, layout_value(near[0].layout, name))
            for name in self.varied
            if name not in _NO_CHOICES and len({layout_value(point.layout, name) for point in near}) == 1
        ]
        family = f": the family with {_join_names(shared)}, not a row, is the fastest" if shared else ""
        return [
            f"The first {len(near)} rows differ by less than the {100 * self.spread.share:.1f} % that "
            f"simulated steps are off in the median of {plural(self.spread.steps, 'published step')}{family}."
        ]

    def robust_words(self) -> list[str]:
        """Returns how often the fastest stays the best of the rows under other conditions."""
        if self.robustness is None or not self.front.best:
            return []
        wins = self.robustness.wins.get(self.front.best[0].point.index, 0)
        return [
            f"The fastest is the best of the rows in {wins} of {self.robustness.conditions} further runs: "
            f"{self.robustness.words}."
        ]

    def alternative_words(self) -> list[str]:
        """Returns `All else equal, tp 2 costs 3.1 %, tp 8 at least 5.0 %.`: what other values of a part of
        the layout cost beside the fastest: of degrees the next lower and higher one, and those without a
        technique.
        """
        if not self.front.points:
            return []
        best = min(self.front.points, key=lambda point: (measures(point).time, point.index))
        lines = []
        for name in (*DEGREES, *(name for name in PLAIN if name not in DEGREES)):
            words = [
                f"{value_words(name, value)} {costs}"
                for value in self._alternatives(name, best)
                if (costs := self._cost_words(best, name, value))
            ]
            lines += [f"All else equal, {', '.join(words)}."] if words else []
        return lines

    def _alternatives(self, name: str, best: Point) -> list[Any]:
        """Returns the values that the fastest point is compared with."""
        value, values = _hashable(best.layout.get(name)), self.values.get(name, set())
        if name not in DEGREES:
            return [plain for plain in PLAIN[name] if plain in values and plain != value]
        degrees = [one for one in values if isinstance(one, int)]
        lower = max((one for one in degrees if one < (value or 1)), default=None)
        higher = min((one for one in degrees if one > (value or 1)), default=None)
        return [one for one in (lower, higher) if one is not None]

    def _cost_words(self, best: Point, name: str, value: Any) -> str:
        """Returns how much longer the fastest of the points takes that differ from the best in this value
        alone; "" where there is none.
        """
        timed_point = self._times.get(_layout_key(best.layout | {name: value}))
        if timed_point is None:
            followers = [one for one in _FOLLOWERS.get(name, ()) if one in best.layout]
            all_values = itertools.product(*(self.values.get(one, ()) for one in followers))
            layouts = (
                best.layout | {name: value} | dict(zip(followers, values, strict=True))
                for values in all_values
            )
            times = (self._times.get(_layout_key(layout)) for layout in layouts)
            timed_point = min((one for one in times if one is not None), default=None)
        fastest = measures(best).time
        if timed_point is None or not fastest:
            return ""
        time, is_run = timed_point
        share = time / fastest - 1
        if share < _MIN_DIFFERENCE:
            return "costs nothing" if is_run else ""
        return f"costs {'' if is_run else 'at least '}{100 * share:.1f} %"


def equivalent_words(groups: Sequence[EquivalentPoints]) -> str:
    """Returns what the number next to a point means, and in what the points differ; "" where
    there is none.
    """
    names = dict.fromkeys(
        name
        for group in groups
        for other in group.others
        for name, value in other.layout.items()
        if value != group.point.layout.get(name)
    )
    if not names:
        return ""
    return (
        "+N: so many more take as long and need as much as the point shown; they differ from it in "
        f"{_join_names([label(name) for name in names])} alone"
    )


def reason_words(kind: str, count: int) -> str:
    """Returns the words of a kind of reason."""
    return {
        CANNOT_BE: "cannot be",
        NO_MEMORY: f"{'need' if count > 1 else 'needs'} more memory than a GPU has",
        LEFT_OUT: "left out: what they take at least is more than the best take" if count > 1
        else "left out: what it takes at least is more than the best take",
        FAILED: "failed",
    }.get(kind, printable(kind, 40))  # fmt: skip


# A stage that ZeRO does not have.
_NEVER = 9
_LABELS = {"microbatch_size": "micro-batch size", "virtual_stages": "virtual stages", "gpus": "GPUs"}


def label(name: str) -> str:
    """Returns the displayed name of a parameter."""
    return _LABELS.get(name) or printable(name.replace("_", " "), 40)


def value_words(name: str, value: Any) -> str:
    """Returns `tp 4`, `schedule interleaved`, `sequence parallel on`."""
    return f"{label(name)} {format_value(value)}"


def format_value(value: Any) -> str:
    """Returns a value as the text of a cell."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):
        return plain_words(value)
    if isinstance(value, list | tuple):
        return printable(" ".join(map(str, value)), 40)
    return printable(str(value), 40)


def layout_value(layout: dict[str, Any], name: str) -> Any:
    """Returns a part of a layout; of its overlaps what runs beside compute: `grads+weights+tp`, or `none`."""
    if name != OVERLAP:
        return _hashable(layout.get(name))
    # ZeRO 2 reduces gradients beside backward by itself, ZeRO 3 gathers weights, too.
    least_zero = {"overlap_grad_reduce": 2, "overlap_param_gather": 3}
    zero = layout.get("zero") or 0
    words = [
        word
        for field, word in OVERLAPS.items()
        if layout.get(field) or int(zero) >= least_zero.get(field, _NEVER)
    ]
    return "+".join(words) or "none"


def _layout_key(layout: dict[str, Any]) -> int:
    """Returns the hash of what decides a point."""
    return hash(tuple((name, _hashable(layout[name])) for name in sorted(layout) if name not in _DERIVED))


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _join_names(items: list[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"
