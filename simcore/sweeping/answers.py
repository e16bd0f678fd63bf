"""What a sweep answers: on how few GPUs a step fits, how long a sequence may be, how large a micro-batch, and
which GPU does the step for the least money.

A value is asked for all its points: it fits where one of them does, and those that were left out as slow fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from simcore.records import Struct
from simcore.sweeping.point import CANNOT_BE, FAILED, NO_MEMORY, Point
from simcore.units import group_digits, plural

# Parameter that varies -> the part of the layout that has its value, and whether the least is sought.
_SOUGHT = {
    "world": ("gpus", True),
    "dp": ("gpus", True),
    "seq": ("seq", False),
    "microbatch_size": ("microbatch_size", False),
}
_WORDS = {
    "gpus": "The fewest GPUs on which it fits are {}",
    "seq": "The longest sequence that fits has {} tokens",
    "microbatch_size": "The largest micro-batch that fits has {}",
}


class ValueState(Struct):
    """What the points of one value have shown."""

    fits: bool = False
    """Whether one fits."""
    needs_memory: bool = False
    """Whether one is possible and does not fit."""


class Answers:
    """The answers of a sweep, from its points as they arrive.

    varied: the parameters that vary. prices: $ of a GPU for an hour, by its name.
    """

    def __init__(self, varied: Iterable[str], prices: Mapping[str, float] | None = None) -> None:
        self._sought = dict(_SOUGHT[name] for name in varied if name in _SOUGHT)
        self._values: dict[str, dict[int, ValueState]] = {name: {} for name in self._sought}
        self._prices = dict(prices or {})
        # GPU -> the least $ of a step, per token, and the point.
        self._cheapest: dict[str, tuple[float, Point]] = {}

    def add(self, point: Point) -> None:
        """Adds a point."""
        is_possible = point.reason not in (CANNOT_BE, FAILED)
        fits = is_possible and point.reason != NO_MEMORY and point.fits
        for name, states in self._values.items():
            value = point.layout.get(name)
            if isinstance(value, int):
                state = states.setdefault(value, ValueState())
                state.fits |= fits
                state.needs_memory |= is_possible and not fits
        gpu = point.layout.get("gpu")
        if fits and point.cost is not None and gpu in self._prices:
            cost = point.cost / (point.work or 1)
            known_cost, known_point = self._cheapest.get(gpu, (cost, point))
            if (cost, point.index) <= (known_cost, known_point.index):
                self._cheapest[gpu] = cost, point

    def sentences(self) -> list[str]:
        """Returns a sentence for each question that the sweep asks."""
        lines = [self._limit_words(name, is_least) for name, is_least in self._sought.items()]
        return [line for line in [*lines, self._price_words()] if line]

    def _limit_words(self, name: str, is_least: bool) -> str:
        states = self._values[name]
        if len(states) < 2:
            return ""
        fitting = [value for value, state in states.items() if state.fits]
        if not fitting:
            return ""
        best = min(fitting) if is_least else max(fitting)
        further = sorted(value for value in states if (value < best if is_least else value > best))
        count = plural(best, "sequence") if name == "microbatch_size" else group_digits(best)
        words = _WORDS[name].format(count)
        too_large = [value for value in further if states[value].needs_memory]
        impossible = [value for value in further if not states[value].needs_memory]
        reasons = [f"{_list(too_large)} {_verb(too_large, 'needs', 'need')} more memory"] * bool(too_large)
        reasons += [f"{_list(impossible)} cannot be"] * bool(impossible)
        return f"{words}; {', '.join(reasons)}." if reasons else f"{words}, of all that vary."

    def _price_words(self) -> str:
        if not self._cheapest:
            return ""
        ordered = sorted((cost, gpu, point) for gpu, (cost, point) in self._cheapest.items())
        least, cheapest, point = ordered[0]
        words = f"Cheapest is {cheapest}: ${point.cost:.4g} a step on {plural(point.gpus or 0, 'GPU')}"
        others = [f"{gpu} costs {100 * (cost / least - 1):.1f} % more" for cost, gpu, _ in ordered[1:]]
        missing = [gpu for gpu in self._prices if gpu not in self._cheapest]
        others += [f"on {_list(missing)} nothing fits"] * bool(missing)
        return "; ".join([words, *others]) + "."


def answer_sentences(points: Iterable[Point], varied: Sequence[str]) -> list[str]:
    """Returns what points answer of the parameters that vary."""
    answers = Answers(varied)
    for point in points:
        answers.add(point)
    return answers.sentences()


def _list(values: Sequence[Any]) -> str:
    """Returns `8 and 16`, of many the first and the last: `8 to 512`."""
    if not values:
        return ""
    words = [group_digits(value) if isinstance(value, int) else str(value) for value in values]
    if len(words) > 3:
        return f"{words[0]} to {words[-1]}"
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _verb(values: Sequence[Any], one: str, several: str) -> str:
    return one if len(values) == 1 else several
