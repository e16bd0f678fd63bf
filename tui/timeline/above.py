"""What stands around the lanes: minimap, ruler, busy row, memory row, legend.

The minimap says where the view lies in the step, a bar of half cells below the busy row, or the row itself;
the ruler has round times with their unit; the busy row how much of each stretch is compute, of any number
of lanes; the memory row how full a GPU is in each column; the legend the kinds that occur, as many as the
width takes.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Collection, Sequence
from itertools import accumulate, compress, repeat
from operator import add, sub
from typing import TYPE_CHECKING, cast

from simcore.run.lanes import TIME, Axis, Spans
from tui.frame import ASCII, Glyphs, Line, width_of
from tui.timeline.lanes import Kind
from tui.timeline.window import Window

if TYPE_CHECKING:
    from simcore.analysis import Results
    from simcore.analysis.model_figures import MemoryLane
    from simcore.analysis.run import Run
    from simcore.messages.network import LinkHeat


def view_bar(window: Window, columns: int, glyphs: Glyphs) -> Line:
    """The bar, exact to half a cell; ASCII has whole cells alone."""
    if glyphs is ASCII:
        first, last = _covered(window, columns)
        length = last - first
        bar = glyphs.view_left + glyphs.view * (length - 2) + glyphs.view_right if length > 1 else glyphs.view
        return [(" " * first, ""), (bar, "accent")]
    first, last = _covered(window, 2 * columns)
    # Half a cell at an end: the right half of the first one, the left half of the last one.
    left, right = first % 2, last % 2
    if last - first == 1:
        bar = glyphs.view_left if left else glyphs.view_right
    else:
        whole = (last - right - first - left) // 2
        bar = glyphs.view_left * left + glyphs.view * whole + glyphs.view_right * right
    return [(" " * (first // 2), ""), (bar, "accent")]


def view_in(row: str, window: Window, colour: bool) -> Line:
    """The busy row with the view in it: bright in view, dim outside; without colour, reversed in view."""
    first, last = _covered(window, len(row))
    if last - first == len(row):
        return [(row, "bwd")]
    inside, outside = ("bwd", "dim") if colour else ("bwd reversed", "bwd")
    return [(row[:first], outside), (row[first:last], inside), (row[last:], outside)]


def _covered(window: Window, parts: int) -> tuple[int, int]:
    """The first part of the step that the view touches, and the one behind the last."""
    first = window.first_ns * parts // window.step_ns
    return first, max(-(-window.last_ns * parts // window.step_ns), first + 1)


_STEPS = (1, 2, 5)


def tick_step(span_ns: int, columns: int, least_columns: int) -> int:
    """The least round number of ns (1, 2 or 5 times a power of ten) at least that many columns wide."""
    power = 1
    while True:
        for step in _STEPS:
            if step * power * columns >= least_columns * span_ns:
                return step * power
        power *= 10


def ticks(window: Window, columns: int, axis: Axis = TIME) -> list[tuple[int, str]]:
    """(column, label) of each tick; the first label carries the unit.

    The labels' unit is the one of the window's end, with as many decimals as tell two
    neighbouring ticks apart.
    """
    unit_ns, unit = next(
        (found for found in axis.units if window.last_ns >= found[0] or found[0] == 1), axis.units[-1]
    )
    least = 6
    while True:
        step = tick_step(window.span_ns, columns, least)
        decimals = _decimals(step, unit_ns)
        needed = len(f"{window.last_ns / unit_ns:.{decimals}f} {unit}") + 1
        if needed <= least:
            break
        least = needed
    first = -(-window.first_ns // step) * step
    found: list[tuple[int, str]] = []
    for time_ns in range(first, window.last_ns, step):
        label = f"{time_ns / unit_ns:.{decimals}f}"
        found.append((window.column(time_ns, columns), label if found else f"{label} {unit}"))
    return found


def _decimals(step_ns: int, unit_ns: int) -> int:
    decimals = 0
    while step_ns * 10**decimals % unit_ns:
        decimals += 1
    return decimals


def filled_ns(spans: Spans, categories: Collection[int], edges: Sequence[int]) -> list[int]:
    """ns between each two neighbouring `edges` in spans of some categories, each category by itself.

    Spans ascend by start and do not overlap within a category. What `Shares` gives, without keeping
    what it needs: the busy row asks a thousand lanes once each, and a lane may have thousands of spans.
    """
    sums: list[int] = [0] * (len(edges) - 1)
    for category in set(spans.category).intersection(categories):
        mask = bytearray(256)
        mask[category] = 1
        picked = spans.category.translate(mask)
        starts = list(compress(spans.start, picked))
        lengths = map(sub, compress(spans.end, picked), starts)
        # before[i]: ns in the spans before span i.
        before = list(accumulate(lengths, initial=0))
        # A span for the time left of all spans: it fills nothing.
        starts.insert(0, edges[0])
        before.insert(0, 0)
        after = list(map(bisect_right, repeat(starts), edges, repeat(1)))
        last = [index - 1 for index in after]
        inside = map(sub, edges, map(starts.__getitem__, last))
        so_far = map(add, map(before.__getitem__, last), inside)
        until = list(map(min, so_far, map(before.__getitem__, after)))
        sums = list(map(add, sums, map(sub, until[1:], until)))
    return sums


# What is above the limit is drawn as a full column and named by its colour's role, and by this.
_OVER = "!"


class MemoryRow:
    """Draws the row. Keeps the lane of the class that was last asked for."""

    def __init__(self, glyphs: Glyphs) -> None:
        self.glyphs = glyphs
        self._kept: tuple[Run, int, MemoryLane | None] | None = None

    def lane(self, run: Run, number: int) -> MemoryLane | None:
        """The memory of a class of a run; None where it is not of a model."""
        if run.model_figures is None:
            return None
        number = max(number, 0)
        if self._kept is None or self._kept[0] is not run or self._kept[1] != number:
            # Imported here: files have no such lane.
            from simcore.analysis.model_figures import memory_lane

            self._kept = run, number, memory_lane(run.model_figures, cast("Results", run).simulation, number)
        return self._kept[2]

    def line(self, lane: MemoryLane, window: Window, left: int, columns: int) -> Line:
        """`left` cells of words, with the peak in view of what a GPU has, and a glyph a column."""
        span = window.last_ns - window.first_ns
        edges = [window.first_ns + span * column // columns for column in range(columns + 1)]
        most = lane.most(edges)
        peak, limit = max(most), lane.limit
        percent = f"{100 * peak / limit:.0f}%"
        name = f"  memory, stage {lane.stage}" if left > 20 else f" mem s{lane.stage}"
        words = name[: left - len(percent) - 1].ljust(left - len(percent)) + percent
        levels = len(self.glyphs.heat) - 1
        line: Line = [(words, "warn" if peak > limit else "dim"), (self.glyphs.vertical, "dim")]
        for held in most:
            if held > limit:
                line.append((_OVER, "warn"))
            else:
                line.append((self.glyphs.heat[-(-held * levels // limit)], "opt"))
        return line


def links_row(
    heat: LinkHeat, busiest: float, window: Window, left: int, columns: int, glyphs: Glyphs
) -> Line:
    """How busy the links are: `left` cells of words, with the share of the step that the busiest one is busy,
    and a glyph a column, the mean of all links.
    """
    span = window.last_ns - window.first_ns
    edges = [window.first_ns + span * column // columns for column in range(columns + 1)]
    percent = f"{100 * busiest:.0f}%"
    name = f"  {heat.links} links, busiest" if left > 20 else "  links"
    words = name[: left - len(percent) - 1].ljust(left - len(percent)) + percent
    levels = len(glyphs.heat) - 1
    row = "".join(glyphs.heat[math.ceil(share * levels)] for share in heat.shares(edges))
    return [(words, "dim"), (glyphs.vertical, "dim"), (row, "comm")]


_WIDE = 100


def legend(
    kinds: Sequence[Kind], glyphs: Glyphs, width: int, colour: bool, crowded: bool, streams: bool,
    path: bool = False, wide: bool | None = None, partly: bool = False, seams: bool = False,
) -> Line:  # fmt: skip
    """One line of at most `width` cells; an entry that does not fit whole is left out.

    crowded: whether a row is drawn by how busy it is. streams: whether a stream's lane is shown.
    path: whether the critical path stands out. seams: whether steps end in lanes. partly: whether lanes
    are shown that are empty at times.
    wide: whether whole words are written and communication by its kinds; None: from 100 cells on.
    """
    wide = width >= _WIDE if wide is None else wide
    entries: list[Line] = [_entry(kind, glyphs, wide and colour, wide) for kind in kinds]
    if crowded:
        height = f"{glyphs.heat[2]}{glyphs.heat[5]}{glyphs.heat[8]}"
        words = " crowded: height is busy share" if wide else " busy share"
        # In front of all else: it changes what the others say.
        entries.insert(0, [(height, "bright"), (f"{words} ", "")])
    if seams:
        entries.insert(0, [(glyphs.vertical, "bright"), (" step ends ", "")])
    if path and not colour:
        entries.insert(0, [("FBX* <>", "bright"), (" critical path ", "")])
    if streams and wide:
        entries.append([("   comm lanes: ", "dim"), (glyphs.busy, "comm"), (" busy  ", "")])
    if partly:
        # In lanes of compute as in those of communication: less than half of the cell.
        entries.append([(glyphs.partly, "comm"), (" partly", "")])
    line: Line = []
    for entry in entries:
        if width_of(line) + width_of(entry) + 1 <= width:
            line += [(" ", ""), *entry]
    return line


def _entry(kind: Kind, glyphs: Glyphs, named: bool, wide: bool) -> Line:
    """named: whether communication is told apart, each kind in its colour."""
    found: Line = [(glyphs.fills[kind.fill], kind.role)]
    if kind.parts and named:
        found.append((f" {kind.words}", ""))
        for role, word in kind.parts:
            found += [(" ", ""), (word, role)]
        return [*found, (" ", "")]
    return [*found, (f" {kind.words if wide else kind.words.split()[0]} ", "")]
