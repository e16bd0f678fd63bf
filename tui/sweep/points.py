"""The table of screen 7: a line a point, in an order, those that a filter leaves."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from simcore.diagnostics import UsageError
from simcore.sweeping.outcome import format_value, layout_value, value_words
from simcore.sweeping.pages import columns_of, head_of, memory_text, wins_text
from simcore.sweeping.pareto_front import WorkMeasure, choose_measure, group_equivalent, measures
from simcore.sweeping.point import TIGHT_PERCENT, Point
from simcore.sweeping.space import VALUE_NAMES
from simcore.sweeping.where import Condition
from simcore.units import byte_size, duration, group_digits
from tui.frame import cells, in_cells
from tui.listing import ListColumn, Listing, find_from
from tui.sweep.sweep_result import SweepResult

FRONT, STEP, MORE, WINS = "*", "step", "slower", "best in"
# A placeholder for the heading of the rate, which is that of `choose_measure`.
RATE = "rate"
MEMORY, GPUS, COST, EQUIVALENT = "memory", "GPUs", "$ a step", "equal"
# Columns of the figures: (heading, size, left).
_FIGURES = (
    (FRONT, 1, True), (STEP, 9, False), (RATE, 10, False), (MORE, 9, False), (WINS, 8, False),
    (MEMORY, 8, False), (GPUS, 6, False), (COST, 9, False), (EQUIVALENT, 5, False),
)  # fmt: skip
# Columns in the order in which they are dropped: first what follows from the others, and what the line below
# the table says.
_DROP_ORDER = (
    "microbatches", "dp", RATE, "sequence_parallel", "global_batch", COST, GPUS, EQUIVALENT, WINS, MORE,
)  # fmt: skip
# What a filter may compare besides parameters, by the name that a point has for it.
_FIGURE_NAMES = ("step_ms", "memory_gb", "tokens_per_s", "cost")
_LONGEST_VALUE = 16


class PointTable(Listing):
    """The points of a sweep: see `Listing`.

    `everything` says whether there are also those that were not simulated or do not fit, and each of the
    equivalent ones, of which otherwise one stands for all.
    """

    def __init__(self, shown_sweep: SweepResult) -> None:
        self.result = shown_sweep
        self.key, self.descending, self.typed = "", False, ""
        self.everything = False
        self.problem = ""
        self.lines: list[int] = []
        # By the index of a point how many others it stands for.
        self._equivalent_counts: dict[int, int] = {}
        self._names: list[str] = []
        self._sizes: dict[str, int] = {}
        self._rate: WorkMeasure | None = None
        self._fastest = 0.0
        self.refresh()

    def refresh(self) -> None:
        """Makes the lines of the current points, in the order and with the filter."""
        outcome = self.result.outcome
        runs = outcome.front.points
        self._names, self._rate = columns_of(outcome), choose_measure(runs)
        self._sizes = {
            name: min(
                max(
                    len(_head(name)), *(len(format_value(layout_value(point.layout, name))) for point in runs)
                ),
                _LONGEST_VALUE,
            )
            for name in self._names
        }
        fastest = self.result.fastest
        self._fastest = measures(fastest).time if fastest is not None else 0.0
        self.filter(self.typed)

    def _ordered_indices(self) -> list[int]:
        points = self.result.points
        candidates = range(len(points)) if self.everything else self.result.fitting_indices
        if not self.key:
            return sorted(candidates, key=lambda index: _first_order(points[index]))
        with_value = [
            index for index in candidates if _value(points[index], self.key, self.result) is not None
        ]
        with_value.sort(key=lambda index: _sort_key(_value(points[index], self.key, self.result)),
                   reverse=self.descending)  # fmt: skip
        # Points without the figure are last, in both directions.
        value_indices = set(with_value)
        return with_value + [index for index in candidates if index not in value_indices]

    def point(self, line: int) -> Point:
        """Returns the point of a line."""
        return self.result.points[self.lines[line]]

    # -- columns ---------------------------------------------------------------------

    @property
    def sorted_by(self) -> Mapping[str, tuple[str, bool]]:
        figures = {
            FRONT: ("front", True), STEP: ("step", False), MORE: ("time", False), MEMORY: ("memory", False),
            GPUS: ("gpus", False), COST: ("cost", False), WINS: ("wins", True),
        }  # fmt: skip
        if self._rate is not None:
            figures[self._rate.head] = ("rate", self._rate.is_more_better)
        return figures | {_head(name): (f"layout {name}", False) for name in self._names}

    def columns_for(self, width: int) -> list[ListColumn]:
        """Returns the columns that some point has; where not all fit, without those that follow
        from others.
        """
        outcome = self.result.outcome
        runs = outcome.front.points
        is_known = {
            RATE: self._rate is not None,
            WINS: outcome.robustness is not None,
            MEMORY: any(point.memory_peak_bytes is not None for point in runs),
            GPUS: len({point.gpus for point in runs}) > 1,
            COST: any(point.cost is not None for point in runs),
            EQUIVALENT: any(self._equivalent_counts.values()),
        }
        figure_columns = [
            (figure, ListColumn(*figure)) for figure in _FIGURES if is_known.get(figure[0], True)
        ]
        columns: list[tuple[str, ListColumn]] = [(heading[0], column) for heading, column in figure_columns]
        if self._rate is not None:
            head = self._rate.head
            columns = [
                (name, column._replace(heading=head) if name == RATE else column) for name, column in columns
            ]
        for name in self._names:
            left = not all(_is_number(layout_value(point.layout, name)) for point in runs)
            columns.append((name, ListColumn(_head(name), self._sizes[name], left)))
        for name in _DROP_ORDER:
            if _columns_width(columns) <= width:
                break
            columns = [column for column in columns if column[0] != name]
        while _columns_width(columns) > width and len(columns) > 2:
            columns.pop()
        return [column for _, column in columns]

    def texts(self, line: int) -> dict[str, str]:
        point = self.point(line)
        texts = {_head(name): cells(format_value(layout_value(point.layout, name))) for name in self._names}
        texts[FRONT] = "*" if self.result.outcome.front.is_on_front(point) else ""
        texts[MEMORY] = memory_text(point)
        texts[WINS] = wins_text(self.result.outcome, point)
        texts[GPUS] = "-" if point.gpus is None else str(point.gpus)
        other_count = self._equivalent_counts.get(point.index, 0)
        texts[EQUIVALENT] = f"+{other_count}" if other_count else ""
        if self._rate is not None:
            rate = self._rate.value(point)
            texts[self._rate.head] = "-" if rate is None else self._rate.text(rate)
        texts[COST] = "-" if point.cost is None else f"{point.cost:.4g}"
        if point.step_time_ns is None:
            return texts | {STEP: "not run", MORE: ""}
        texts[STEP] = duration(point.step_time_ns)
        texts[MORE] = slowdown_text(point, self._fastest) if point.fits else "no room"
        return texts

    # -- order and filter ------------------------------------------------------------

    def count_text(self) -> str:
        return self.result.progress_text()

    def left(self) -> str:
        total = len(self.result.points) if self.everything else len(self.result.outcome.front.points)
        return self.problem or f"{len(self.lines)} of {total} points"

    def order(self) -> tuple[str, str]:
        what = "fastest first" if not self.everything else "all points, fastest first"
        return what, what

    def legend(self, columns: Sequence[ListColumn], short: bool) -> str:
        if short:
            return ""
        has_equivalent = any(column.heading == EQUIVALENT for column in columns)
        return "* on the front" + (", +N so many equal (U shows them)" if has_equivalent else "")

    def sort(self, key: str, descending: bool) -> None:
        self.key, self.descending = key, descending
        self.filter(self.typed)

    def cannot_sort(self, heading: str) -> str:
        return ""

    def show_everything(self) -> None:
        """Shows also what was not simulated or does not fit, and each of the equivalent points; or hides them
        again.
        """
        self.everything = not self.everything
        self.filter(self.typed)

    def filter(self, typed: str) -> None:
        self.typed = typed.strip()
        order = self._ordered_indices()
        matches = self._find_matches(self.typed, order)
        self.lines = [index for index in order if index in matches]
        self._equivalent_counts = {}
        if not self.everything:
            points = self.result.points
            row_by_point = {points[index].index: index for index in self.lines}
            groups = group_equivalent(sorted(map(points.__getitem__, self.lines), key=_first_order))
            self._equivalent_counts = {group.point.index: len(group.others) for group in groups}
            visible_rows = {row_by_point[point_index] for point_index in self._equivalent_counts}
            self.lines = [index for index in self.lines if index in visible_rows]

    def _find_matches(self, typed: str, indices: Sequence[int]) -> set[int]:
        """Returns those that satisfy the condition, or contain every word; all while a condition is
        incomplete.
        """
        points, self.problem = self.result.points, ""
        if any(sign in typed for sign in "<>="):
            try:
                condition = Condition(typed, (*VALUE_NAMES, *_FIGURE_NAMES))
            except UsageError as error:
                self.problem = str(error).partition(": ")[2] or str(error)
                return set(indices)
            return {index for index in indices if condition.holds(_values(points[index]))}
        words = typed.lower().split()
        return {index for index in indices if not words or self._has_words(points[index], words)}

    def _has_words(self, point: Point, words: Sequence[str]) -> bool:
        text = " ".join(value_words(name, value) for name, value in point.layout.items()).lower()
        if self.result.outcome.front.is_on_front(point):
            text += " front"
        text += f" {point.skipped}".lower() if point.skipped is not None else ""
        return all(word in text for word in words)

    def find(self, typed: str, line: int, direction: int) -> int | None:
        if not typed.strip():
            return None
        problem = self.problem
        matches = self._find_matches(typed.strip(), self.lines)
        row = None if self.problem else find_from(self.lines, matches, line, direction)
        self.problem = problem
        return row

    def no_match(self, typed: str) -> str:
        if typed.strip():
            return self.problem or "no point has these words"
        if self.result.is_running:
            return "no point that fits yet"
        return "no point that was simulated fits: U shows all"

    def mark(self, line: int) -> Hashable:
        return self.point(line).index


def _head(name: str) -> str:
    """Returns the heading of a column of the layout, in one cell a character."""
    return in_cells(head_of(name))


def slowdown_text(point: Point, fastest: float) -> str:
    """Returns how much longer its work takes than that of the fastest: `+6.0 %`; "" for the fastest."""
    more = measures(point).time / fastest - 1 if fastest else 0.0
    if more < 0.0005:
        return ""
    return f"+{100 * more:.1f} %" if more < 9.9995 else f"x {1 + more:.1f}"


def point_lines(point: Point, names: Sequence[str]) -> list[str]:
    """Returns a point in words: what it is, and its figures or why it was not run."""
    layout = [in_cells(value_words(name, layout_value(point.layout, name))) for name in names]
    lines = [", ".join(layout)] if layout else []
    if point.step_time_ns is None:
        return [*lines, f"not simulated: {cells(point.skipped or '', 400)}"]
    figures = [f"step {duration(point.step_time_ns)}"]
    if point.tokens_per_s is not None:
        figures.append(f"{group_digits(round(point.tokens_per_s))} tokens/s")
    if point.memory_peak_bytes is not None:
        peak, limit = point.memory_peak_bytes, point.memory_limit_bytes
        needed = f"{byte_size(peak)}" + ("" if limit is None else f" of {byte_size(limit)}")
        spare = f", within {TIGHT_PERCENT} % of it" if point.is_tight else ""
        figures.append(f"{needed}{spare if point.fits else ', does not fit'}")
    if point.gpus is not None:
        figures.append(f"{group_digits(point.gpus)} GPU{'s' if point.gpus != 1 else ''}")
    if point.cost is not None:
        figures.append(f"$ {point.cost:.4g} a step")
    return [*lines, ", ".join(figures)]


def _first_order(point: Point) -> tuple[int, float, int]:
    """Returns the sort key: fastest first; then what does not fit, then what was not run."""
    if not point.is_run:
        return 2, 0.0, point.index
    return (0 if point.fits else 1), measures(point).time, point.index


def _value(point: Point, key: str, shown_sweep: SweepResult) -> Any:
    if key.startswith("layout "):
        return layout_value(point.layout, key.removeprefix("layout "))
    if key == "front":
        return shown_sweep.outcome.front.is_on_front(point)
    if key == "time":
        return measures(point).time if point.is_run else None
    if key == "rate":
        rate = choose_measure(shown_sweep.outcome.front.points)
        return rate.value(point) if rate is not None else None
    if key == "wins":
        robust = shown_sweep.outcome.robustness
        return None if robust is None else robust.wins.get(point.index)
    names = {"step": "step_time_ns", "memory": "memory_peak_bytes"}
    return getattr(point, names.get(key, key))


def _sort_key(value: Any) -> tuple[bool, Any]:
    """Returns the sort key of a value, numbers before words: a column may have both."""
    is_number = isinstance(value, int | float)
    return (not is_number, value if is_number else format_value(value))


def _values(point: Point) -> dict[str, Any]:
    """Returns the values that a filter's condition can name."""
    figures: dict[str, Any] = {"tokens_per_s": point.tokens_per_s, "cost": point.cost}
    if point.step_time_ns is not None:
        figures["step_ms"] = point.step_time_ns / 1e6
    if point.memory_peak_bytes is not None:
        figures["memory_gb"] = point.memory_peak_bytes / 1e9
    return point.layout | figures


def _is_number(value: Any) -> bool:
    return value is None or format_value(value).replace(".", "").isdecimal()


def _columns_width(columns: Sequence[tuple[str, ListColumn]]) -> int:
    return 1 + sum(column.size + 1 for _, column in columns)
