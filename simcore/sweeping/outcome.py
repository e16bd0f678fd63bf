"""What came out of a sweep: counts and reasons, the front, and sentences on what the best have in common.

A sentence compares the fastest point that has something with the fastest of all; where points were left
out, so that no run tells, it says `at least` what they take at least.
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

# What a layout has that does without: simpler to run, and to understand.
PLAIN: dict[str, tuple[Any, ...]] = {
    "tp": (1,), "pp": (1,), "cp": (1,), "ep": (1,), "virtual_stages": (1,), "schedule": ("1f1b",),
    "recompute": ("none",), "zero": (1, 0),
}  # fmt: skip
# Said of so many at most; of fewer nothing can be said.
_MAX_BEST, _MIN_BEST = 10, 3
_FIGURE = re.compile(r"\d[\d.,]*")
# A difference below shows as 0.0 %.
_MIN_DIFFERENCE = 0.0005


class ValueRange(Struct):
    """Of the points with one value of one thing: the least time of a run and of what was left out, ns of a
    token; inf without any. runs: how many were simulated and fit.
    """

    least_run: float = float("inf")
    least_left_out: float = float("inf")
    runs: int = 0


class Outcome:
    """The points of a sweep that have come, and what is said of them. rule: what is looked for.

    open_from: of a sweep that was stopped, what the time of a point is at least that it had not come to; 0
    where nothing is known, inf where there is none. assumed: what a report of the fastest says that it takes
    for granted; empty where nobody asked.
    """

    def __init__(self, rule: Rule, points: Iterable[Point] = ()) -> None:
        self.front = ParetoFront(rule)
        self.total = self.simulated = 0
        # Kind of reason, its words without figures -> how many points, the first one's own words.
        self.reasons: Counter[tuple[str, str]] = Counter()
        self.examples: dict[tuple[str, str], tuple[int, str]] = {}
        self.too_large = 0
        self.values: dict[str, dict[Any, ValueRange]] = {}
        self.open_from = float("inf")
        self.assumed: list[str] = []
        for point in points:
            self.add(point)

    def add(self, point: Point) -> None:
        """One more point."""
        self.total += 1
        if point.skipped is not None:
            kind, _, why = point.skipped.partition(": ")
            key = (kind, _FIGURE.sub("N", why) if kind == CANNOT_BE else "")
            self.reasons[key] += 1
            # Whatever the order in which they come, the first of the space.
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
        """What of the layout differs among the points that could be among the best."""
        runs = self.front.points
        names = dict.fromkeys(name for point in runs for name in point.layout)
        return [name for name in names if len({_hashable(point.layout.get(name)) for point in runs}) > 1]

    def common(self) -> dict[str, Any]:
        """What of the layout all points share that were simulated and fit."""
        varied, runs = set(self.varied), self.front.points
        return {name: value for name, value in (runs[0].layout if runs else {}).items() if name not in varied}

    # -- sentences -------------------------------------------------------------------

    def count_lines(self, excluded: int = 0) -> list[str]:
        """How many points there were, and why some were not simulated; each kind of reason once."""
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
        """What the best have in common, what other values cost, and what simpler layouts cost."""
        return [*self.common_words(), *self.limit_words(), *self.regret_words()]

    def _best(self) -> tuple[int, list[Point]]:
        """How many of the fastest are said to be the best, and all points that these stand for: where points
        were left out, no more than it is certain of.
        """
        is_pruned = any(kind == LEFT_OUT for kind, _ in self.reasons)
        if is_pruned or self.front.rule.top >= _MAX_BEST:
            groups = self.front.best[:_MAX_BEST]
        else:
            points = sorted(self.front.points, key=lambda point: (measures(point).time, point.index))
            groups = group_equivalent(points)[:_MAX_BEST]
        return len(groups), [point for group in groups for point in (group.point, *group.others)]

    def common_words(self) -> list[str]:
        """`All of the best 10 have tp 4 and schedule interleaved.`, of what others have otherwise."""
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
        """`pp above 8 costs 6.0 %.`: the fastest with more than any of the best has, of degrees."""
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
        """How much worse the fastest layout is that does without something that the fastest of all has."""
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
        """What the fastest of these takes longer than the fastest of all; "" where nothing is lost."""
        fastest = min((measures(point).time for point in self.front.points), default=0.0)
        ran = min((extreme.least_run for extreme in extremes), default=float("inf"))
        left_out = min((extreme.least_left_out for extreme in extremes), default=float("inf"))
        least = min(ran, left_out)
        if not fastest or least == float("inf") or least / fastest - 1 < _MIN_DIFFERENCE:
            return ""
        share = f"{100 * (least / fastest - 1):.1f} %"
        if self.open_from < least:
            # One that was not come to may be faster.
            if ran == float("inf"):
                return "was not simulated"
            return f"costs at most {100 * (ran / fastest - 1):.1f} % over the fastest here"
        return f"costs {share}" if ran <= left_out else f"costs at least {share}"


def equivalent_words(groups: Sequence[EquivalentPoints]) -> str:
    """What the number of those beside a point means, and in what they differ; "" where each is alone."""
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
    """The words of a kind of reason."""
    return {
        CANNOT_BE: "cannot be",
        NO_MEMORY: f"{'need' if count > 1 else 'needs'} more memory than a GPU has",
        LEFT_OUT: "left out: what they take at least is more than the best take" if count > 1
        else "left out: what it takes at least is more than the best take",
        FAILED: "failed",
    }.get(kind, printable(kind, 40))  # fmt: skip


_LABELS = {"microbatch_size": "micro-batch size", "virtual_stages": "virtual stages", "gpus": "GPUs"}


def label(name: str) -> str:
    """The name of what varies, as people say it."""
    return _LABELS.get(name) or printable(name.replace("_", " "), 40)


def value_words(name: str, value: Any) -> str:
    """`tp 4`, `schedule interleaved`, `sequence parallel on`."""
    return f"{label(name)} {format_value(value)}"


def format_value(value: Any) -> str:
    """A value in a column."""
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
