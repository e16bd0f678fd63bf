"""What stands above and below the lanes: minimap, ruler, busy row, memory row, legend; details, range, marks.

The minimap says where the view lies in the step, as a bar of half cells below the busy row, or as the row
itself; the ruler has round times with their unit; the busy row how much of each stretch is compute, of any
number of lanes; the memory row how full a GPU is in each column; the legend the kinds that occur, as many as
the width takes. Below stand what is under the cursor, the full details that `Enter` shows, and the filter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import count as counted
from typing import TYPE_CHECKING

from simcore.trace.lane_spans import TIME, StretchFigures, TimeAxis
from simcore.units import percent, plural
from tui.frame import ASCII, Glyphs, Line, cells, in_cells, width_of, wrapped
from tui.timeline.lanes import Kind
from tui.timeline.model import TimelineModel
from tui.timeline.search import Search
from tui.timeline.window import Window

if TYPE_CHECKING:
    from simcore.messages.network import LinkHeat
    from simcore.trace.contexts import MemoryLane
    from simcore.trace.ports import Ports
    from simcore.trace.run import Run

HIDDEN = "hidden by the filter"


def view_bar(window: Window, columns: int, glyphs: Glyphs) -> Line:
    """Returns the bar, exact to half a cell; ASCII has only whole cells."""
    if glyphs is ASCII:
        first, last = _parts_in_view(window, columns)
        length = last - first
        bar = glyphs.view_left + glyphs.view * (length - 2) + glyphs.view_right if length > 1 else glyphs.view
        return [(" " * first, ""), (bar, "accent")]
    first, last = _parts_in_view(window, 2 * columns)
    # Half a cell at an end: the right half of the first cell, the left half of the last one.
    left, right = first % 2, last % 2
    if last - first == 1:
        bar = glyphs.view_left if left else glyphs.view_right
    else:
        whole = (last - right - first - left) // 2
        bar = glyphs.view_left * left + glyphs.view * whole + glyphs.view_right * right
    return [(" " * (first // 2), ""), (bar, "accent")]


def busy_view_row(row: str, window: Window, colour: bool) -> Line:
    """Returns the busy row with the view in it: bright in view, dim outside; without colour, reversed in
    view.
    """
    first, last = _parts_in_view(window, len(row))
    if last - first == len(row):
        return [(row, "bwd")]
    inside, outside = ("bwd", "dim") if colour else ("bwd reversed", "bwd")
    return [(row[:first], outside), (row[first:last], inside), (row[last:], outside)]


def _parts_in_view(window: Window, parts: int) -> tuple[int, int]:
    """Returns the first part of the step that the view touches, and the one behind the last."""
    first = window.first_ns * parts // window.step_ns
    return first, max(-(-window.last_ns * parts // window.step_ns), first + 1)


_STEPS = (1, 2, 5)


def tick_step(span_ns: int, columns: int, least_columns: int) -> int:
    """Returns the least round number of ns (1, 2 or 5 times a power of ten) at least that many
    columns wide.
    """
    power = 1
    while True:
        for step in _STEPS:
            if step * power * columns >= least_columns * span_ns:
                return step * power
        power *= 10


def ticks(window: Window, columns: int, axis: TimeAxis = TIME) -> list[tuple[int, str]]:
    """Returns (column, label) of each tick; the first label carries the unit.

    The labels' unit is the one of the window's end, with as many decimals as tell two
    neighbouring ticks apart.
    """
    unit_ns, unit = next(
        (unit for unit in axis.units if window.last_ns >= unit[0] or unit[0] == 1), axis.units[-1]
    )
    least = 6
    while True:
        step = tick_step(window.span_ns, columns, least)
        decimals = next(digits for digits in counted() if not step * 10**digits % unit_ns)
        needed = len(f"{window.last_ns / unit_ns:.{decimals}f} {unit}") + 1
        if needed <= least:
            break
        least = needed
    first = -(-window.first_ns // step) * step
    labels: list[tuple[int, str]] = []
    for time_ns in range(first, window.last_ns, step):
        label = f"{time_ns / unit_ns:.{decimals}f}"
        labels.append((window.column(time_ns, columns), label if labels else f"{label} {unit}"))
    return labels


# The glyph of a column above the limit, in the role of a warning.
_OVER = "!"


class MemoryRow:
    """Draws the row. It caches the lane of the class that it last drew."""

    def __init__(self, glyphs: Glyphs) -> None:
        self.glyphs = glyphs
        self._cached: tuple[Run, int, MemoryLane | None] | None = None

    def lane(self, run: Run, class_id: int) -> MemoryLane | None:
        """Returns the memory of a track of a run; None where it is not known."""
        if run.model.model_figures is None and not run.model.memory_peaks:
            return None
        class_id = max(class_id, 0)
        if self._cached is None or self._cached[0] is not run or self._cached[1] != class_id:
            self._cached = run, class_id, run.model.memory_lane(class_id)
        return self._cached[2]

    def line(self, lane: MemoryLane, window: Window, label_cells: int, columns: int) -> Line:
        """Returns `left` cells of words, with the peak in view of a GPU's capacity, and a glyph a column."""
        span = window.last_ns - window.first_ns
        edges = [window.first_ns + span * column // columns for column in range(columns + 1)]
        peaks = lane.peak_bytes(edges)
        peak, limit = max(peaks), lane.limit
        percent = f"{100 * peak / limit:.0f}%"
        name = f"  memory, stage {lane.stage}" if label_cells > 20 else f" mem s{lane.stage}"
        if lane.name:
            name = f"  {lane.name}" if label_cells > 20 else " memory"
        words = name[: label_cells - len(percent) - 1].ljust(label_cells - len(percent)) + percent
        levels = len(self.glyphs.heat) - 1
        line: Line = [(words, "warn" if peak > limit else "dim"), (self.glyphs.vertical, "dim")]
        for used_bytes in peaks:
            if used_bytes > limit:
                line.append((_OVER, "warn"))
            else:
                line.append((self.glyphs.heat[-(-used_bytes * levels // limit)], "opt"))
        return line


def links_row(
    heat: LinkHeat, busiest: float, window: Window, left: int, columns: int, glyphs: Glyphs
) -> Line:
    """Returns how busy the links are: `left` cells of words, with the share of the step that the busiest one
    is busy, and a glyph a column, the mean of all links.
    """
    span = window.last_ns - window.first_ns
    edges = [window.first_ns + span * column // columns for column in range(columns + 1)]
    percent = f"{100 * busiest:.0f}%"
    name = f"  {heat.links} links, busiest" if left > 20 else "  links"
    words = name[: left - len(percent) - 1].ljust(left - len(percent)) + percent
    levels = len(glyphs.heat) - 1
    row = "".join(glyphs.heat[math.ceil(share * levels)] for share in heat.shares(edges))
    return [(words, "dim"), (glyphs.vertical, "dim"), (row, "comm")]


def tier_rows(
    ports: Ports, most_rows: int, window: Window, left: int, columns: int, glyphs: Glyphs
) -> list[Line]:
    """Returns a row for each tier that carried anything, of more than `most_rows` the fullest: the load of
    its fullest port in each column, and in the words the share of the step that this one is full.
    """
    hottest: dict[int, int] = {}
    for index in ports.by_heat:
        hottest.setdefault(ports.all[index].tier, index)
    rows = []
    for tier in sorted(list(hottest)[:most_rows]):
        percent = f"{100 * ports.held_share(hottest[tier]):.0f}%"
        name = ports.tiers[tier].name
        name = f"  {name}, full" if left > 20 else f" {name.replace(' ', '')}"
        words = name[: left - len(percent) - 1].ljust(left - len(percent)) + percent
        parts = ports.between(ports.tier_load(tier), window.first_ns, window.last_ns, columns)
        levels = len(glyphs.heat) - 1
        row = "".join(glyphs.heat[min(math.ceil(share * levels), levels)] for share in parts)
        rows.append([(words, "dim"), (glyphs.vertical, "dim"), (row, "comm")])
    return rows


_WIDE = 100


def legend(
    kinds: Sequence[Kind], glyphs: Glyphs, width: int, colour: bool, streams: bool,
    path: bool = False, wide: bool | None = None, partly: bool = False, seams: bool = False,
) -> Line:  # fmt: skip
    """Returns one line of at most `width` cells; an entry that does not fit complete is left out.

    streams: whether a stream's lane is shown. path: whether the critical path stands out. seams: whether
    steps end in lanes. partly: whether lanes are shown that are empty at times. wide: whether full words are
    written and communication by its kinds; None: from 100 cells on.
    """
    wide = width >= _WIDE if wide is None else wide
    entries: list[Line] = [_legend_entry(kind, glyphs, wide and colour, wide) for kind in kinds]
    if streams and not wide:
        # Communication hidden behind compute has the same glyph in lanes of communication, which are busy
        # then.
        for kind, entry in zip(kinds, entries, strict=True):
            if kind.parts and kind.words.startswith("exposed"):
                entry[-1] = (" exposed or busy ", "")
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


def _legend_entry(kind: Kind, glyphs: Glyphs, names_kinds: bool, wide: bool) -> Line:
    """Returns an entry of the legend. names_kinds: whether communication has an entry for each kind, in its
    colour.
    """
    line: Line = [(glyphs.fills[kind.fill], kind.role)]
    if kind.parts and names_kinds:
        line.append((f" {kind.words}", ""))
        for role, word in kind.parts:
            line += [(" ", ""), (word, role)]
        return [*line, (" ", "")]
    return [*line, (f" {kind.words if wide else kind.words.split()[0]} ", "")]


# From this many cells on a line has room for the full words.
WIDE = 100
# Cells for whose figures they are: both lines have the same indent.
_WHOSE = 22


def range_title(model: TimelineModel) -> str:
    """Returns the range in words: its ends, its length, the spans of this lane in it; "" without a range."""
    stretch = model.selection.stretch(model.cursor_ns)
    if stretch is None:
        return ""
    first, last = stretch
    axis = model.source.axis
    words = f"Range {model.clock(first)} .. {model.clock(last)}, {axis.length(last - first)}"
    count, longest = model.source.of.longest(model.current.track_id, first, last)
    if longest is None:
        return words
    noun = "span" if count == 1 else "spans"
    return f"{words}, {count} {noun} here, longest {longest.words} {axis.length(longest.ns)}"


def range_lines(model: TimelineModel, width: int, wide: bool) -> list[Line]:
    """Returns what this lane's ranks, and (wide) all ranks on average, do in the range."""
    stretch = model.selection.stretch(model.cursor_ns)
    if stretch is None:
        return []
    first, last = stretch
    track_id = model.current.track_id
    lane = cells(model.whose, _WHOSE)
    length = model.source.axis.length
    if first == last:
        return [[(" range 0: l h . , move its end, v fixes it, Esc removes it", "dim")]]
    here = model.source.of.figures(track_id, first, last)
    if not wide:
        start: Line = [(f" range {length(last - first)}: ", "bright")]
        return [start + _figure_line(model, here, width - width_of(start), wide)]
    title = max(len(lane), len("mean of all"))
    lines: list[Line] = []
    for words, figures in ((lane, here), ("mean of all", model.source.of.figures(None, first, last))):
        start = [(f" {words.ljust(title)}  ", "bright")]
        lines.append(start + _figure_line(model, figures, width - width_of(start), wide))
    return lines


def _figure_line(
    model: TimelineModel, figures: StretchFigures, room: int, wide: bool, times: bool = True
) -> Line:
    """Returns shares, and times, in the order of the accounts.

    Where there is no room the words are short ones, and where that is not enough the smallest figures are
    left out.
    """
    length = model.source.axis.length
    for short in (not wide, True):
        parts: list[Line] = []
        for figure in figures.figures:
            share = f"{percent(figure.ns, figures.full_ns)} %"
            time = f" {length(round(figure.ns / figures.ranks))}" if times else ""
            words = figure.short if short else figure.words
            parts.append([(f"{words} ", figure.kind), (share, "bright"), (f"{time}  ", "dim")])
        if sum(map(width_of, parts)) - 2 <= room:
            break
    if sum(map(width_of, parts)) - 2 > room:
        room -= len("+ 99.9 %") + 2
    by_size = sorted(range(len(parts)), key=lambda index: -figures.figures[index].ns)
    fitting: set[int] = set()
    for index in by_size:
        if (size := width_of(parts[index])) - 2 > room:
            break
        room -= size
        fitting.add(index)
    line = [part for index in sorted(fitting) for part in parts[index]]
    if len(fitting) < len(parts):
        # The sum of what is left out is stated.
        remaining_ns = sum(figure.ns for index, figure in enumerate(figures.figures) if index not in fitting)
        line.append((f"+ {percent(remaining_ns, figures.full_ns)} %", "dim"))
    return line


def mark_line(model: TimelineModel, width: int, wide: bool) -> Line:
    """Returns how far the cursor is from the last mark, and what this lane does between the two; [] without
    marks.
    """
    mark = model.marks.last
    if mark is None:
        return []
    first, last = sorted((mark.time_ns, model.cursor_ns))
    axis = model.source.axis
    start: Line = [(f" mark {mark.letter} {model.clock(mark.time_ns)}", "bright")] if wide else []
    start += [(f"{'   ' if wide else ' '}{mark.letter} .. cursor {axis.length(last - first)}", "bright")]
    if first == last:
        return start
    start.append((", this lane: " if wide else ": ", ""))
    return start + stretch_figures(model, first, last, start, width)


def stretch_figures(model: TimelineModel, first: int, last: int, start: Line, width: int) -> Line:
    """Returns what the ranks of the cursor's lane do from `first` to `last` ns, behind `start`; [] for no
    time.
    """
    if first == last:
        return []
    figures = model.source.of.figures(model.current.track_id, first, last)
    return _figure_line(model, figures, width - width_of(start), width >= WIDE, times=False)


def filter_text(model: TimelineModel) -> str:
    """Returns what the filter leaves, in words; "" without a filter."""
    if not model.filter.is_on:
        return ""
    lane, content = model.current, model.visible_content(model.current)
    counts = f"{len(content.spans.start)} of {len(lane.spans.start)} spans here"
    return f"filter {cells(model.filter.query.text, 30)}: {counts}"


def search_text(search: Search | None) -> str:
    """Returns what is searched for and how much of it there is, in words; "" without a search."""
    if search is None:
        return ""
    count = plural(search.count, "lane" if search.of_lanes else "match")
    return f"find {cells(search.query.text, 30)}: {count}"


def mark_columns(model: TimelineModel, columns: int) -> dict[int, str]:
    """Returns the letter of each mark in view by column; of several in a column the last that was set."""
    letters = {}
    for mark in model.marks.all:
        column = model.window.column(mark.time_ns, columns)
        if 0 <= column < columns:
            letters[column] = mark.letter
    return letters


def range_columns(model: TimelineModel, columns: int) -> tuple[int, int] | None:
    """Returns the first and last column of the range that are in view."""
    stretch = model.selection.stretch(model.cursor_ns)
    if stretch is None or stretch[1] <= model.window.first_ns or stretch[0] >= model.window.last_ns:
        return None
    first = max(model.window.column(stretch[0], columns), 0)
    last = min(model.window.column(max(stretch[1] - 1, stretch[0]), columns), columns - 1)
    return first, last


def cursor_lines(model: TimelineModel, width: int, wide: bool, low: bool = False) -> list[Line]:
    """Returns the span at the cursor, its times, where its duration comes from: lines of at most `width`
    cells.

    low: whether there is room for only two of them; what matters of the others stands in the second, as it
    does where the screen is not wide.
    """
    lane = model.current
    index, others = model.span, ""
    if index is not None and lane.content.find_span(model.cursor_ns) is None:
        # In a cell that is partly busy the lines are about the span that makes it so.
        edges = model.window.edges(model.columns)
        column = model.cursor_column
        inside = lane.content.starting_in(edges[column], edges[column + 1])
        others = f"   {len(inside)} in this column" if len(inside) > 1 else ""
    if index is not None and model.filter.hides(lane, index, model.source):
        others += f"   {HIDDEN}"
    lines = lane.detail_lines(index, others, width, wide)
    words, aside, volume = model.source.of.words, "", ""
    if index is not None:
        aside = in_cells(words.side_note(lane.track_id, lane.stream, index, wide and not low, model.rank))
        volume = words.volume(lane.track_id, lane.stream, index) if wide else ""
    if low or not wide:
        if aside and len(lines) > 1:
            # Behind the length: it gives way to when a transfer itself runs.
            fits = wide and width_of(lines[1]) + len(aside) + 3 <= width
            lines[1] = [*(lines[1] if fits else lines[1][:3]), (f"   {aside}", "")]
        more = []
    else:
        more = [aside]
    if volume and len(lines) > 1 and width_of(lines[1]) + len(volume) + 3 <= width:
        lines[1] = [*lines[1], (f"   {volume}", "")]
    return [*lines[:2], *([(words, "")] for words in more if words), *lines[2:]]


# Least cells of the labels, and cells of a label with what is set next to it.
_LABEL, _SPACE = 16, 2


def make_details(model: TimelineModel) -> Callable[[int], list[Line]]:
    """Returns the function that makes its lines of at most a given width; it keeps the run as it is now, even
    if another one is shown later.
    """
    lane, index = model.current, model.span
    facts = []
    if index is not None:
        words = model.source.of.words
        facts = words.detail_rows(lane.track_id, lane.stream, index, model.rank)
    stretch = model.selection.stretch(model.cursor_ns)
    table = _Table(model, *stretch) if stretch is not None and stretch[0] < stretch[1] else None
    labels = [*(label for label, _ in facts), *(table.names if table is not None else ())]
    label_cells = max(_LABEL, *(len(label) + _SPACE for label in labels), 0)

    def lines(width: int) -> list[Line]:
        result: list[Line] = []
        for detail_line in lane.detail_lines(index, "", width, wide=True)[:1]:
            # The first line says what it is; whose it is stands below.
            result += [[("  ", ""), *detail_line[:1]], []]
        for label, words in facts:
            result += _paragraph(label, words, label_cells, width)
        return result + table.lines(label_cells, width) if table is not None else result

    return lines


def _paragraph(label: str, words: str, label_cells: int, width: int) -> list[Line]:
    parts = [part for line in words.split("\n") for part in wrapped(in_cells(line), width - label_cells - 4)]
    return [
        [(f"  {label if index == 0 else '':<{label_cells}}", "dim"), (part, "")]
        for index, part in enumerate(parts or [""])
    ]


class _Table:
    """The range's accounts, of this lane and of all ranks. `names` are its rows."""

    def __init__(self, model: TimelineModel, first_ns: int, last_ns: int) -> None:
        axis, track_id = model.source.axis, model.current.track_id
        here = model.source.of.figures(track_id, first_ns, last_ns)
        everywhere = model.source.of.figures(None, first_ns, last_ns)
        self._title = cells(model.whose, 22)
        self._words = f"{axis.clock(first_ns)} .. {axis.clock(last_ns)}, {axis.length(last_ns - first_ns)}"
        roles = {figure.words: figure.kind for figures in (here, everywhere) for figure in figures.figures}
        in_order = [figure.words for figure in model.source.of.stretch_sums.figures]
        self.names = sorted(roles, key=in_order.index)
        self._rows = [
            (name, roles[name], _format_cell(model, here, name), _format_cell(model, everywhere, name))
            for name in self.names
        ]

    def lines(self, label_cells: int, width: int) -> list[Line]:
        """Returns its lines: the range, a heading, a row for each account."""
        result: list[Line] = [[], *_paragraph("range", self._words, label_cells, width)]
        result.append([(f"  {'':<{label_cells}}{self._title:>22}{'mean of all ranks':>26}", "dim")])
        for name, role, here, everywhere in self._rows:
            result.append(
                [(f"  {name:<{label_cells}}", role), (here.rjust(22), ""), (everywhere.rjust(26), "")]
            )
        return result


def _format_cell(model: TimelineModel, figures: StretchFigures, name: str) -> str:
    ns = sum(figure.ns for figure in figures.figures if figure.words == name)
    return f"{model.source.axis.length(round(ns / figures.ranks))} {percent(ns, figures.full_ns):>6} %"
