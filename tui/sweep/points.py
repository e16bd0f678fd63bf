"""The table of screen 7: a line a point, in an order, those that a filter leaves."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from simcore.diagnostics import UsageError
from simcore.sweeping.front import PerWork, groups_of, measures, per_work
from simcore.sweeping.outcome import shown, value_words
from simcore.sweeping.pages import columns_of, head_of
from simcore.sweeping.point import Point
from simcore.sweeping.space import KNOWN
from simcore.sweeping.where import Condition
from simcore.units import byte_size, digits, duration
from tui.frame import cells, in_cells
from tui.listing import ListColumn, found_from
from tui.sweep.found import ShownSweep

FRONT, STEP, MORE = "*", "step", "slower"
# In its place stands what `per_work` has as a head.
RATE = "rate"
MEMORY, GPUS, COST, ALIKE = "memory", "GPUs", "$ a step", "alike"
# Columns of the figures: (heading, size, left).
_FIGURES = (
    (FRONT, 1, True), (STEP, 9, False), (RATE, 10, False), (MORE, 9, False), (MEMORY, 8, False),
    (GPUS, 6, False), (COST, 9, False), (ALIKE, 5, False),
)  # fmt: skip
# What goes first where there is no room: what follows from the rest, and what the line below the table says.
_DROPPED = ("microbatches", "dp", RATE, "sequence_parallel", "global_batch", COST, GPUS, ALIKE, MORE)
# What a filter may compare beside parameters, and how a point has it.
_FIGURE_NAMES = ("step_ms", "memory_gb", "tokens_per_s", "cost")
_LONGEST_VALUE = 16


class PointTable:
    """The points of a sweep: see `Listing`. everything: also those that were not simulated or do not fit, and
    each of those that are alike, of which otherwise one stands for all.
    """

    def __init__(self, shown_sweep: ShownSweep) -> None:
        self.found = shown_sweep
        self.key, self.descending, self.typed = "", False, ""
        self.everything = False
        self.refused = ""
        self.lines: list[int] = []
        # By the number of a point how many others it stands for.
        self._alike: dict[int, int] = {}
        self._names: list[str] = []
        self._sizes: dict[str, int] = {}
        self._known: tuple[bool, ...] = ()
        self._rate: PerWork | None = None
        self._fastest = 0.0
        self.refresh()

    def refresh(self) -> None:
        """The lines of the points that are there now, in the order and with the filter."""
        outcome = self.found.outcome
        runs = outcome.front.points
        self._names, self._rate = columns_of(outcome), per_work(runs)
        self._sizes = {
            name: min(
                max(len(_head(name)), *(len(shown(point.layout.get(name))) for point in runs)),
                _LONGEST_VALUE,
            )
            for name in self._names
        }
        fastest = self.found.fastest
        self._fastest = measures(fastest).time if fastest is not None else 0.0
        self.filter(self.typed)

    def _in_order(self) -> list[int]:
        points = self.found.points
        there = range(len(points)) if self.everything else self.found.fit
        if not self.key:
            return sorted(there, key=lambda index: _first_order(points[index]))
        known = [index for index in there if _value(points[index], self.key, self.found) is not None]
        known.sort(key=lambda index: _sortable(_value(points[index], self.key, self.found)),
                   reverse=self.descending)  # fmt: skip
        # What has no figure is last, whichever way round.
        held = set(known)
        return known + [index for index in there if index not in held]

    def point(self, line: int) -> Point:
        """The point of a line."""
        return self.found.points[self.lines[line]]

    # -- columns ---------------------------------------------------------------------

    @property
    def sorted_by(self) -> Mapping[str, tuple[str, bool]]:
        figures = {
            FRONT: ("front", True), STEP: ("step", False), MORE: ("time", False), MEMORY: ("memory", False),
            GPUS: ("gpus", False), COST: ("cost", False),
        }  # fmt: skip
        if self._rate is not None:
            figures[self._rate.head] = ("rate", self._rate.more)
        return figures | {_head(name): (f"layout {name}", False) for name in self._names}

    def columns_for(self, width: int) -> list[ListColumn]:
        """Those that are known of some point; where not all fit, less of what follows from others."""
        outcome = self.found.outcome
        runs = outcome.front.points
        known = {
            RATE: self._rate is not None,
            MEMORY: any(point.memory_peak_bytes is not None for point in runs),
            GPUS: len({point.gpus for point in runs}) > 1,
            COST: any(point.cost is not None for point in runs),
            ALIKE: any(self._alike.values()),
        }
        named = [(figure, ListColumn(*figure)) for figure in _FIGURES if known.get(figure[0], True)]
        columns: list[tuple[str, ListColumn]] = [(heading[0], column) for heading, column in named]
        if self._rate is not None:
            head = self._rate.head
            columns = [
                (name, column._replace(heading=head) if name == RATE else column) for name, column in columns
            ]
        for name in self._names:
            left = not all(_is_number(point.layout.get(name)) for point in runs)
            columns.append((name, ListColumn(_head(name), self._sizes[name], left)))
        for name in _DROPPED:
            if _room(columns) <= width:
                break
            columns = [column for column in columns if column[0] != name]
        while _room(columns) > width and len(columns) > 2:
            columns.pop()
        return [column for _, column in columns]

    def texts(self, line: int) -> dict[str, str]:
        point = self.point(line)
        texts = {_head(name): cells(shown(point.layout.get(name))) for name in self._names}
        texts[FRONT] = "*" if self.found.outcome.front.is_on_front(point) else ""
        texts[MEMORY] = "-" if point.memory_peak_bytes is None else byte_size(point.memory_peak_bytes)
        texts[GPUS] = "-" if point.gpus is None else str(point.gpus)
        alike = self._alike.get(point.number, 0)
        texts[ALIKE] = f"+{alike}" if alike else ""
        if self._rate is not None:
            rate = self._rate.value(point)
            texts[self._rate.head] = "-" if rate is None else self._rate.text(rate)
        texts[COST] = "-" if point.cost is None else f"{point.cost:.4g}"
        if point.step_time_ns is None:
            return texts | {STEP: "not run", MORE: ""}
        texts[STEP] = duration(point.step_time_ns)
        texts[MORE] = slower_words(point, self._fastest) if point.fits else "no room"
        return texts

    # -- order and filter ------------------------------------------------------------

    def counted(self) -> str:
        return self.found.counted()

    def left(self) -> str:
        whole = len(self.found.points) if self.everything else len(self.found.outcome.front.points)
        return self.refused or f"{len(self.lines)} of {whole} points"

    def order(self) -> tuple[str, str]:
        what = "fastest first" if not self.everything else "all points, fastest first"
        return what, what

    def legend(self, columns: Sequence[ListColumn], short: bool) -> str:
        if short:
            return ""
        alike = any(column.heading == ALIKE for column in columns)
        return "* on the front" + (", +N so many alike (U shows them)" if alike else "")

    def sort(self, key: str, descending: bool) -> None:
        self.key, self.descending = key, descending
        self.filter(self.typed)

    def cannot_sort(self, heading: str) -> str:
        return ""

    def show_everything(self) -> None:
        """Also what was not simulated or does not fit, and each of those that are alike; again: without."""
        self.everything = not self.everything
        self.filter(self.typed)

    def filter(self, typed: str) -> None:
        self.typed = typed.strip()
        order = self._in_order()
        wanted = self._wanted(self.typed, order)
        self.lines = [index for index in order if index in wanted]
        self._alike = {}
        if not self.everything:
            points = self.found.points
            place_of = {points[index].number: index for index in self.lines}
            groups = groups_of(sorted(map(points.__getitem__, self.lines), key=_first_order))
            self._alike = {group.point.number: len(group.others) for group in groups}
            shown_places = {place_of[number] for number in self._alike}
            self.lines = [index for index in self.lines if index in shown_places]

    def _wanted(self, typed: str, places: Sequence[int]) -> set[int]:
        """Those of which a condition holds, or that have every word; all where a condition is not whole."""
        points, self.refused = self.found.points, ""
        if any(sign in typed for sign in "<>="):
            try:
                condition = Condition(typed, (*KNOWN, *_FIGURE_NAMES))
            except UsageError as error:
                self.refused = str(error).partition(": ")[2] or str(error)
                return set(places)
            return {index for index in places if condition.holds(_values(points[index]))}
        asked = typed.lower().split()
        return {index for index in places if not asked or self._has(points[index], asked)}

    def _has(self, point: Point, asked: Sequence[str]) -> bool:
        text = " ".join(value_words(name, value) for name, value in point.layout.items()).lower()
        if self.found.outcome.front.is_on_front(point):
            text += " front"
        text += f" {point.skipped}".lower() if point.skipped is not None else ""
        return all(word in text for word in asked)

    def find(self, typed: str, line: int, direction: int) -> int | None:
        if not typed.strip():
            return None
        refused = self.refused
        wanted = self._wanted(typed.strip(), self.lines)
        row = None if self.refused else found_from(self.lines, wanted, line, direction)
        self.refused = refused
        return row

    def inside(self, typed: str, line: int) -> str:
        return ""

    def no_match(self, typed: str) -> str:
        if typed.strip():
            return self.refused or "no point has these words"
        if self.found.goes_on:
            return "no point that fits yet"
        return "no point that was simulated fits: U shows all"

    def mark(self, line: int) -> Hashable:
        return self.point(line).number

    def line_of(self, mark: Hashable) -> int:
        numbers = (index for index, at in enumerate(self.lines) if self.found.points[at].number == mark)
        return next(numbers, 0)

    def first_line(self, line: int) -> int:
        return line


def _head(name: str) -> str:
    """What stands over the column of something of the layout, in one cell a character."""
    return in_cells(head_of(name))


def slower_words(point: Point, fastest: float) -> str:
    """How much longer its work takes than that of the fastest: `+6.0 %`; "" of the fastest."""
    more = measures(point).time / fastest - 1 if fastest else 0.0
    if more < 0.0005:
        return ""
    return f"+{100 * more:.1f} %" if more < 9.9995 else f"x {1 + more:.1f}"


def details(point: Point, names: Sequence[str]) -> list[str]:
    """A point in words: what it is, and its figures or why it was not run."""
    layout = [in_cells(value_words(name, point.layout[name])) for name in names if name in point.layout]
    lines = [", ".join(layout)] if layout else []
    if point.step_time_ns is None:
        return [*lines, f"not simulated: {cells(point.skipped or '', 400)}"]
    figures = [f"step {duration(point.step_time_ns)}"]
    if point.tokens_per_s is not None:
        figures.append(f"{digits(round(point.tokens_per_s))} tokens/s")
    if point.memory_peak_bytes is not None:
        peak, limit = point.memory_peak_bytes, point.memory_limit_bytes
        needed = f"{byte_size(peak)}" + ("" if limit is None else f" of {byte_size(limit)}")
        figures.append(f"{needed}{'' if point.fits else ', does not fit'}")
    if point.gpus is not None:
        figures.append(f"{digits(point.gpus)} GPU{'s' if point.gpus != 1 else ''}")
    if point.cost is not None:
        figures.append(f"$ {point.cost:.4g} a step")
    return [*lines, ", ".join(figures)]


def _first_order(point: Point) -> tuple[int, float, int]:
    """Fastest first; then what does not fit, then what was not run."""
    if not point.is_run:
        return 2, 0.0, point.number
    return (0 if point.fits else 1), measures(point).time, point.number


def _value(point: Point, key: str, shown_sweep: ShownSweep) -> Any:
    if key.startswith("layout "):
        return point.layout.get(key.removeprefix("layout "))
    if key == "front":
        return shown_sweep.outcome.front.is_on_front(point)
    if key == "time":
        return measures(point).time if point.is_run else None
    if key == "rate":
        rate = per_work(shown_sweep.outcome.front.points)
        return rate.value(point) if rate is not None else None
    names = {"step": "step_time_ns", "memory": "memory_peak_bytes"}
    return getattr(point, names.get(key, key))


def _sortable(value: Any) -> tuple[bool, Any]:
    """Numbers before words: a column may have both."""
    is_number = isinstance(value, int | float)
    return (not is_number, value if is_number else shown(value))


def _values(point: Point) -> dict[str, Any]:
    """What a filter's condition knows of a point."""
    figures: dict[str, Any] = {"tokens_per_s": point.tokens_per_s, "cost": point.cost}
    if point.step_time_ns is not None:
        figures["step_ms"] = point.step_time_ns / 1e6
    if point.memory_peak_bytes is not None:
        figures["memory_gb"] = point.memory_peak_bytes / 1e9
    return point.layout | figures


def _is_number(value: Any) -> bool:
    return value is None or shown(value).replace(".", "").isdigit()


def _room(columns: Sequence[tuple[str, ListColumn]]) -> int:
    return 1 + sum(column.size + 1 for _, column in columns)
