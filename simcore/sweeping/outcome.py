"""The outcome of a sweep: counts and reasons, the front, and sentences on what the best have in common.

A sentence compares the fastest point that has something with the fastest of all; where points were left out,
so that no run tells, it says `at least` with their lower bound.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from simcore.diagnostics import printable
from simcore.records import Struct
from simcore.sweeping.pareto_front import (
    EquivalentPoints,
    ParetoFront,
    Rule,
    group_equivalent,
    measures,
    measures_of,
)
from simcore.sweeping.point import CANNOT_BE, FAILED, LEFT_OUT, NO_MEMORY, Point
from simcore.units import format_number as plain_words
from simcore.units import plural

# The values of a layout without a technique: simpler to run, and to understand.
PLAIN: dict[str, tuple[Any, ...]] = {
    "tp": (1,), "pp": (1,), "cp": (1,), "ep": (1,), "virtual_stages": (1,), "schedule": ("1f1b",),
    "recompute": ("none",), "zero": (1, 0),
}  # fmt: skip
# Sentences are on at most the first, and on no fewer than the second number of points.
_MAX_BEST, _MIN_BEST = 10, 3
_FIGURE = re.compile(r"\d[\d.,]*")
# A smaller difference is printed as 0.0 %.
_MIN_DIFFERENCE = 0.0005


class ValueRange(Struct):
    """The least times of the points with one value of one parameter, ns of a token."""

    least_run: float = float("inf")
    """The least of those that were simulated and fit; inf without any."""
    least_left_out: float = float("inf")
    """The least lower bound of those that were left out; inf without any."""
    runs: int = 0
    """How many were simulated and fit."""


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
        self.values: dict[str, dict[Any, ValueRange]] = {}
        self.open_from = float("inf")
        self.assumed: list[str] = []
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
            plain = tuple(value) if isinstance(value, list) else value
            extreme = self.values.setdefault(name, {}).setdefault(plain, ValueRange())
            if point.is_run:
                extreme.least_run = min(extreme.least_run, measures(point).time)
                extreme.runs += 1
            else:
                least = measures_of(point.at_least_ns or 0, point.work, None, None).time
                extreme.least_left_out = min(extreme.least_left_out, least)

    @property
    def varied(self) -> list[str]:
        """The parts of the layout that differ among the points that were simulated and fit."""
        runs = self.front.points
        names = dict.fromkeys(name for point in runs for name in point.layout)
        return [name for name in names if len({_hashable(point.layout.get(name)) for point in runs}) > 1]

    def common(self) -> dict[str, Any]:
        """Returns the parts of the layout that all points that were simulated and fit share."""
        varied, runs = set(self.varied), self.front.points
        return {name: value for name, value in (runs[0].layout if runs else {}).items() if name not in varied}

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
        return [*self.common_words(), *self.limit_words(), *self.regret_words()]

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
            if name in ("world", "gpus", "microbatches", "global_batch"):
                continue
            values = {_hashable(point.layout.get(name)) for point in best}
            if len(values) == 1:
                shared.append(value_words(name, best[0].layout.get(name)))
        if not shared:
            return []
        slowest = max(measures(point).time for point in best)
        so_far = " so far" if self.open_from < slowest else ""
        return [f"All of the best {count}{so_far} have {_join_names(shared)}."]

    def limit_words(self) -> list[str]:
        """Returns `pp above 8 costs 6.0 %.`: the cost of degrees above those of all the best."""
        count, best = self._best()
        if count < _MIN_BEST:
            return []
        lines = []
        for name in ("tp", "pp", "cp", "ep", "microbatch_size", "virtual_stages"):
            most = max((point.layout.get(name) or 1 for point in best), default=1)
            above = [
                extreme for value, extreme in self.values.get(name, {}).items() if value and value > most
            ]
            costs = self._cost_words(above)
            if costs:
                lines.append(f"{label(name)} above {most} {costs}.")
        return lines

    def regret_words(self) -> list[str]:
        """Returns how much slower the fastest layout is without each technique that the fastest
        of all uses.
        """
        if not self.front.points:
            return []
        best = min(self.front.points, key=lambda point: (measures(point).time, point.index))
        parts = []
        for name, plain_values in PLAIN.items():
            best_value = best.layout.get(name)
            if best_value is None or best_value in plain_values:
                continue
            for plain in plain_values:
                if plain in self.values.get(name, {}):
                    costs = self._cost_words([self.values[name][plain]])
                    parts.append(f"{value_words(name, plain)} {costs or 'costs nothing'}")
        return [f"Simpler: {'; '.join(parts)}."] if parts else []

    def _cost_words(self, extremes: list[ValueRange]) -> str:
        """Returns how much longer the fastest of these takes than the fastest of all; "" where nothing is
        lost.
        """
        fastest = min((measures(point).time for point in self.front.points), default=0.0)
        ran = min((extreme.least_run for extreme in extremes), default=float("inf"))
        left_out = min((extreme.least_left_out for extreme in extremes), default=float("inf"))
        least = min(ran, left_out)
        if not fastest or least == float("inf") or least / fastest - 1 < _MIN_DIFFERENCE:
            return ""
        share = f"{100 * (least / fastest - 1):.1f} %"
        if self.open_from < least:
            # A point that was not reached may be faster.
            if ran == float("inf"):
                return "was not simulated"
            return f"costs at most {100 * (ran / fastest - 1):.1f} % over the fastest here"
        return f"costs {share}" if ran <= left_out else f"costs at least {share}"


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


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _join_names(items: list[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"
