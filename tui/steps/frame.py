"""Screen 8 as lines: the sparkline of the steps, the heat of step x rank, and the words above them."""

from __future__ import annotations

from collections.abc import Sequence

from simcore.records import NamedTuple
from simcore.replay.step_table import COMPUTE, StepTable
from simcore.units import duration
from tui.frame import Glyphs, Line, end_cut, wrapped

# Cells between the table and the heat; those that the heat leaves, and that it has at the least; the most of
# a rank.
GAP = 1
_TABLE, _LEAST_HEAT, _MOST_OF_RANK = 62, 18, 3
# A measure that varies by less than this part of its largest value is drawn as if it varied so much.
_LEAST_SPREAD = 0.05


def heat_width(width: int, ranks: int) -> int:
    """Returns the cells that the heat has beside the table; 0 of steps without ranks."""
    if ranks < 2:
        return 0
    room = max(width - _TABLE - GAP, min(_LEAST_HEAT, width // 3))
    return ranks * min(room // ranks, _MOST_OF_RANK) if room >= ranks else room


class HeatScale(NamedTuple):
    """From which ns on a cell is drawn, and where it is full."""

    least_ns: int
    most_ns: int


def find_scale(steps: StepTable, measure: str) -> HeatScale:
    """Returns the scale of a measure: of waits from 0, of compute from the shortest one."""
    columns = steps.measure(measure)
    most = max((max(column) for column in columns), default=0)
    if measure != COMPUTE:
        return HeatScale(0, most)
    least = min((min((ns for ns in column if ns >= 0), default=most) for column in columns), default=0)
    return HeatScale(min(least, round(most * (1 - _LEAST_SPREAD))), most)


def shade(ns: int, scale: HeatScale, glyphs: Glyphs) -> tuple[str, str]:
    """Returns the glyph of a value and its role: full for the largest, blank for nothing."""
    steps = len(glyphs.heat) - 1
    range_ns = scale.most_ns - scale.least_ns
    if ns < 0 or not range_ns:
        return " ", ""
    height = -(-(ns - scale.least_ns) * steps // range_ns)
    height = max(min(height, steps), int(scale.least_ns > 0))
    return glyphs.heat[height], f"heat {height}" if height else ""


def heat_cells(
    columns: Sequence[Sequence[int]], row: int, cells: int, scale: HeatScale, glyphs: Glyphs
) -> Line:
    """Returns a step as cells, a rank each or, where there are too few, the largest of several ranks."""
    count = len(columns)
    line: Line = []
    for cell in range(cells):
        some = columns[cell * count // cells : max((cell + 1) * count // cells, cell * count // cells + 1)]
        line.append(shade(max(column[row] for column in some), scale, glyphs))
    return line


def heat_title(steps: StepTable, scale: HeatScale, cells: int, room: int, glyphs: Glyphs) -> tuple[str, str]:
    """Returns the two lines over the heat, in `room` cells: the first and last rank, and what a full cell
    is.
    """
    first, last = str(steps.ranks[0]), str(steps.ranks[-1])
    axis = f"{first}{' ' * max(cells - len(first) - len(last), 1)}{last}"
    full = f"{glyphs.heat[-1]} {duration(scale.most_ns)}"
    return axis, end_cut(full, room)


def sparkline(steps: StepTable, width: int, cursor_row: int | None, glyphs: Glyphs) -> Line:
    """Returns the lengths of the steps in `width` cells, the longest of several in each; the cursor's
    reversed.
    """
    count = len(steps)
    cells = min(width, count)
    scale = HeatScale(steps.sorted_ns[0], steps.sorted_ns[-1])
    line: Line = []
    for cell in range(cells):
        first, last = cell * count // cells, (cell + 1) * count // cells
        glyph, role = shade(max(steps.ns[first:last]), scale, glyphs)
        here = cursor_row is not None and first <= cursor_row < last
        line.append((glyph if glyph != " " else glyphs.heat[1], f"{role} reversed" if here else role))
    return line


def word_lines(sentences: Sequence[str], width: int, rows: int) -> list[Line]:
    """Returns sentences in at most `rows` lines; one that has no room is left out."""
    lines: list[Line] = []
    for sentence in sentences:
        some = wrapped(sentence, width - 2)
        if len(lines) + len(some) > rows:
            break
        lines += [[(f" {line}", "")] for line in some]
    return lines
