"""Screen 7 as lines: the plot next to or below the table, and the sentences about the points.

The plot has the points of a sweep in a plane: a time or a rate against memory, GPUs or cost, in cells.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from simcore.records import NamedTuple
from simcore.sweeping.pareto_front import choose_measure
from simcore.sweeping.point import Point
from simcore.units import byte_size, duration, group_digits, plural
from tui.frame import ASCII, Glyphs, Line, cells, end_cut, fitted, rule, wrapped
from tui.sweep.sweep_result import FAILED, RUNNING, SweepResult

# Figures with a larger ratio are drawn by their logarithm.
_LINEAR_UP_TO = 5.0


class PlotAxis(NamedTuple):
    """An axis of the plot."""

    words: str
    """What it shows."""
    value: Callable[[Point], float]
    """The value of a point."""
    text: Callable[[float], str]
    """A value in words."""


def _step(point: Point) -> float:
    return point.step_time_ns or 0


_STEP = PlotAxis("step time", _step, lambda ns: duration(round(ns)))
_MEMORY = PlotAxis("memory", lambda point: point.memory_peak_bytes or 0, lambda size: byte_size(round(size)))
_GPUS = PlotAxis("GPUs", lambda point: point.gpus or 0, lambda count: group_digits(round(count)))
_COST = PlotAxis("$ a step", lambda point: point.cost or 0.0, lambda price: f"$ {price:.4g}")
_INDEX_AXIS = PlotAxis(
    "number of the point", lambda point: point.index, lambda index: group_digits(round(index))
)


def planes(points: Sequence[Point]) -> list[tuple[PlotAxis, PlotAxis]]:
    """Returns (up, right) of each plane that shows something of these points, the most informative first."""
    up = []
    same_work = len({point.work for point in points}) == 1
    if same_work:
        up.append(_STEP)
    rate = choose_measure(points)
    if rate is not None:
        value = rate.value
        up.append(PlotAxis(rate.words, lambda point: value(point) or 0.0, rate.text))
    right = []
    if len({point.memory_peak_bytes for point in points}) > 1:
        right.append(_MEMORY)
    if len({point.gpus for point in points}) > 1:
        right.append(_GPUS)
    if all(point.cost is not None for point in points):
        right.append(_COST)
    return [(plot_axis, other) for other in right or [_INDEX_AXIS] for plot_axis in up]


class Signs(NamedTuple):
    """The glyphs of points; instead of marks there are the letters of the comparison."""

    front: str
    one: str
    more: str
    here: str


_BLOCK_SIGNS, _ASCII_SIGNS = Signs("●", "·", ":", "◆"), Signs("*", ".", ":", "@")


def plot(
    shown_sweep: SweepResult,
    plane: tuple[PlotAxis, PlotAxis],
    cursor_point: Point | None,
    marked_points: Sequence[Point],
    size: tuple[int, int],
    glyphs: Glyphs,
) -> list[Line]:
    """Returns `size` (columns, rows) of lines: the plane with its figures at the edges, and what its glyphs
    mean.
    """
    width, height = size
    points, front = shown_sweep.outcome.front.points, shown_sweep.outcome.front
    up, right = plane
    signs = _ASCII_SIGNS if glyphs is ASCII else _BLOCK_SIGNS
    ups, rights = [up.value(point) for point in points], [right.value(point) for point in points]
    above, below = up.text(max(ups)), up.text(min(ups))
    gutter = min(max(len(above), len(below)), width // 3)
    rows, columns = max(height - 3, 1), max(width - gutter - 2, 1)
    down_of, across_of = _scale(ups, rows), _scale(rights, columns)
    grid = [[(" ", "")] * columns for _ in range(rows)]
    counts: dict[tuple[int, int], int] = {}

    def cell_of(point: Point) -> tuple[int, int]:
        return rows - 1 - down_of(up.value(point)), across_of(right.value(point))

    for point in points:
        row, column = cell_of(point)
        counts[row, column] = counts.get((row, column), 0) + 1
        grid[row][column] = (signs.one if counts[row, column] == 1 else signs.more, "dim")
    for point in front.front:
        row, column = cell_of(point)
        grid[row][column] = (signs.front, "accent")
    for letter, point in zip("AB", marked_points, strict=False):
        if point.is_run and point.fits:
            row, column = cell_of(point)
            grid[row][column] = (letter, "warn")
    if cursor_point is not None and cursor_point.is_run and cursor_point.fits:
        row, column = cell_of(cursor_point)
        grid[row][column] = (signs.here, "bright reversed")
    title = f"{up.words}{_log_suffix(ups)} over {right.words}{_log_suffix(rights)}"
    lines: list[Line] = [fitted([(" " * gutter, ""), (f"  {end_cut(title, columns)}", "dim")], width)]
    for row in range(rows):
        text = above if row == 0 else below if row == rows - 1 else ""
        edge = glyphs.vertical
        lines.append([(f"{end_cut(text, gutter):>{gutter}} ", "dim"), (edge, "dim"), *grid[row]])
    left_text, right_text = right.text(min(rights)), right.text(max(rights))
    room = max(columns - len(left_text), 0)
    ends = f"{left_text}{right_text:>{room}}" if len(right_text) < room else left_text
    lines.append([(" " * (gutter + 2), ""), (ends, "dim")])
    others = len(points) - len(front.front)
    legend: Line = [(" " * 2, ""), (signs.front, "accent"), (f" front {len(front.front)}", "dim")]
    if others:
        legend += [("  ", ""), (f"{signs.one} {signs.more}", "dim"), (f" others {others}", "dim")]
    if cursor_point is not None:
        legend += [("  ", ""), (signs.here, "bright reversed"), (" cursor", "dim")]
    lines.append(legend)
    return [fitted(line, width) for line in lines[:height]]


def _is_log(values: Sequence[float]) -> bool:
    return min(values) > 0 and max(values) / min(values) > _LINEAR_UP_TO


def _log_suffix(values: Sequence[float]) -> str:
    return " (log)" if _is_log(values) else ""


def _scale(values: Sequence[float], cell_count: int) -> Callable[[float], int]:
    """Returns the function of a value's position among this many cells, from the least to the largest of
    `values`.
    """
    transform: Callable[[float], float] = math.log if _is_log(values) else float
    least, most = transform(min(values)), transform(max(values))
    if most <= least:
        return lambda value: cell_count // 2
    return lambda value: round((transform(value) - least) / (most - least) * (cell_count - 1))


# From this width on the plot stands next to the table; it has a share of the width, within bounds.
WIDE = 110
_LEAST_PLOT, _MOST_PLOT = 40, 90
# Rows of the plot below a table, and the least height that has room for one.
_PLOT_BELOW, _LEAST_HEIGHT = 8, 18
_WORDS_BELOW = 3


def table_width(width: int) -> int:
    """Returns the cells of a row that the table has."""
    return width if width < WIDE else width - 1 - min(max(width * 2 // 5, _LEAST_PLOT), _MOST_PLOT)


def rows_below(height: int) -> tuple[int, int]:
    """Returns (rows of the plot, of the words) below the table on a narrow screen."""
    if height < _LEAST_HEIGHT:
        return 0, 0
    more = max(height - 24, 0)
    return _PLOT_BELOW + more // 3, _WORDS_BELOW + more // 6


def _hanging_lines(sentence: str, width: int) -> list[str]:
    """Returns a sentence in lines, those after the first indented."""
    # A figure and its per cent sign stay together.
    first, *other_lines = wrapped(sentence.replace(" %", "\u00a0%"), width - 2) or [""]
    if not other_lines:
        return [first]
    remaining_text = " ".join(other_lines).replace(" %", "\u00a0%")
    return [first, *(f"  {line}" for line in wrapped(remaining_text, width - 4))]


def sentence_lines(shown_sweep: SweepResult, width: int, rows: int, glyphs: Glyphs) -> list[Line]:
    """Returns a heading, and the sentences about the points."""
    if rows < 2:
        return []
    heading = "So far" if shown_sweep.state == RUNNING else "In words"
    sentences = shown_sweep.sentences()
    texts = [
        (line, sentence)
        for sentence in sentences
        for line in _hanging_lines(cells(sentence, 1000), width - 2)
    ]
    if not texts:
        return []
    hidden_count = len(texts) - rows + 1
    if hidden_count > 0:
        heading += f", {plural(hidden_count, 'more line')} where there is room"
    lines: list[Line] = [rule(heading, width, glyphs)]
    for text, sentence in texts[: rows - 1]:
        lines.append(
            [(f" {text}", "warn" if shown_sweep.state == FAILED and sentence is sentences[0] else "")]
        )
    return lines


def plane_lines(
    shown_sweep: SweepResult,
    plane: tuple[PlotAxis, PlotAxis] | None,
    cursor_point: Point | None,
    marked_points: Sequence[Point],
    size: tuple[int, int],
    glyphs: Glyphs,
) -> list[Line]:
    """Returns the scatter plot; where there is nothing to draw, as many empty lines."""
    width, rows = size
    if plane is None or rows < 4 or not shown_sweep.outcome.front.points:
        return [fitted([], width) for _ in range(rows)]
    lines = plot(shown_sweep, plane, cursor_point, marked_points, size, glyphs)
    return lines + [fitted([], width)] * (rows - len(lines))


def join_columns(
    left: Sequence[Line], right: Sequence[Line], width: int, split: int, glyphs: Glyphs
) -> list[Line]:
    """Returns two columns of lines, a rule between them. split: cells of the left one."""
    lines = []
    for row in range(max(len(left), len(right))):
        line = fitted(left[row] if row < len(left) else [], split)
        other = fitted(right[row] if row < len(right) else [], width - split - 1)
        lines.append([*line, (glyphs.vertical, "dim"), *other])
    return lines


def intro_lines(sentences: Sequence[str], command: str, width: int, glyphs: Glyphs) -> list[Line]:
    """Returns the screen before there is a sweep: what one is, and how to get it."""
    lines: list[Line] = [rule("Sweep: many layouts, and the few worth running", width, glyphs), []]
    for sentence in sentences:
        lines += [[(f"  {line}", "")] for line in wrapped(sentence, width - 4)]
        lines.append([])
    lines.append([("  From the command line:", "dim")])
    lines += [[(f"    {line}", "")] for line in wrapped(cells(command, 2000), width - 6)]
    again = "   opens the results of one (-o results.jsonl) again"
    return [*lines, [("    wltui results.jsonl", ""), (again, "dim")]]
