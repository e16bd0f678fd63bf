"""Screen 7 as lines: the plot beside or below the table, and what is said of the points."""

from __future__ import annotations

from collections.abc import Sequence

from simcore.sweep.point import Point
from simcore.units import plural
from tui.frame import Glyphs, Line, cells, fitted, rule, wrapped
from tui.sweep.found import FAILED, RUNNING, ShownSweep
from tui.sweep.plot import PlotAxis, plot

# From this width on the plot stands beside the table; it has a share of the width, within bounds.
WIDE = 110
_LEAST_PLOT, _MOST_PLOT = 40, 90
# Rows of the plot below a table, and the least height that has room for one.
_PLOT_BELOW, _LEAST_HEIGHT = 8, 18
_WORDS_BELOW = 3


def table_width(width: int) -> int:
    """Cells that the table has of a row."""
    return width if width < WIDE else width - 1 - min(max(width * 2 // 5, _LEAST_PLOT), _MOST_PLOT)


def rows_below(height: int) -> tuple[int, int]:
    """(rows of the plot, of the words) below the table on a narrow screen."""
    if height < _LEAST_HEIGHT:
        return 0, 0
    more = max(height - 24, 0)
    return _PLOT_BELOW + more // 3, _WORDS_BELOW + more // 6


def _hanging(sentence: str, width: int) -> list[str]:
    """A sentence in lines, those after the first set in."""
    # A figure and its per cent stay together.
    first, *rest = wrapped(sentence.replace(" %", "\u00a0%"), width - 2) or [""]
    if not rest:
        return [first]
    left = " ".join(rest).replace(" %", "\u00a0%")
    return [first, *(f"  {line}" for line in wrapped(left, width - 4))]


def said_lines(shown_sweep: ShownSweep, width: int, rows: int, glyphs: Glyphs) -> list[Line]:
    """A heading, and what is said of the points."""
    if rows < 2:
        return []
    heading = "So far" if shown_sweep.state == RUNNING else "In words"
    said = shown_sweep.said()
    texts = [(line, sentence) for sentence in said for line in _hanging(cells(sentence, 1000), width - 2)]
    more = len(texts) - rows + 1
    if more > 0:
        heading += f", {plural(more, 'more line')} where there is room"
    lines: list[Line] = [rule(heading, width, glyphs)]
    for text, sentence in texts[: rows - 1]:
        lines.append([(f" {text}", "warn" if shown_sweep.state == FAILED and sentence is said[0] else "")])
    return lines


def plane_lines(
    shown_sweep: ShownSweep,
    plane: tuple[PlotAxis, PlotAxis] | None,
    here: Point | None,
    marked: Sequence[Point],
    size: tuple[int, int],
    glyphs: Glyphs,
) -> list[Line]:
    """The scatter plot; where there is nothing to draw, so many empty lines."""
    width, rows = size
    if plane is None or rows < 4 or not shown_sweep.outcome.front.points:
        return [fitted([], width) for _ in range(rows)]
    lines = plot(shown_sweep, plane, here, marked, size, glyphs)
    return lines + [fitted([], width)] * (rows - len(lines))


def beside(left: Sequence[Line], right: Sequence[Line], width: int, split: int, glyphs: Glyphs) -> list[Line]:
    """Two columns of lines, a rule between them. split: cells of the left one."""
    lines = []
    for row in range(max(len(left), len(right))):
        line = fitted(left[row] if row < len(left) else [], split)
        other = fitted(right[row] if row < len(right) else [], width - split - 1)
        lines.append([*line, (glyphs.vertical, "dim"), *other])
    return lines


def without(how: Sequence[str], command: str, width: int, glyphs: Glyphs) -> list[Line]:
    """The screen before there is a sweep: what one is, and how to get it."""
    lines: list[Line] = [rule("Sweep: many layouts, and the few worth running", width, glyphs), []]
    for sentence in how:
        lines += [[(f"  {line}", "")] for line in wrapped(sentence, width - 4)]
        lines.append([])
    lines.append([("  From the command line:", "dim")])
    lines += [[(f"    {line}", "")] for line in wrapped(cells(command, 2000), width - 6)]
    again = "   opens the results of one (-o results.jsonl) again"
    return [*lines, [("    wltui results.jsonl", ""), (again, "dim")]]
