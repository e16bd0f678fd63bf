"""The lines below the lanes: what is under the cursor, the range, the marks and the filter.

In full, what `Enter` shows of the span there and of the range.
"""

from __future__ import annotations

from collections.abc import Callable

from simcore.run.lanes import Figures
from simcore.units import percent
from tui.frame import Line, cells, in_cells, width_of, wrapped
from tui.timeline.model import TimelineModel

# From so many cells on a line has room for the whole words.
WIDE = 100
# Whose figures they are, in so many cells: both lines are as far in.
_WHOSE = 22


def range_title(model: TimelineModel) -> str:
    """The range in words: its ends, its length, the spans of this lane in it; "" without a range."""
    stretch = model.selection.stretch(model.cursor_ns)
    if stretch is None:
        return ""
    first, last = stretch
    axis = model.source.axis
    words = f"Range {axis.clock(first)} .. {axis.clock(last)}, {axis.length(last - first)}"
    count, longest = model.source.of.longest(model.current.number, first, last)
    if longest is None:
        return words
    noun = "span" if count == 1 else "spans"
    return f"{words}, {count} {noun} here, longest {longest.words} {axis.length(longest.ns)}"


def range_lines(model: TimelineModel, width: int, wide: bool) -> list[Line]:
    """What this lane's ranks, and (wide) all ranks on average, do in the range."""
    stretch = model.selection.stretch(model.cursor_ns)
    if stretch is None:
        return []
    first, last = stretch
    number = model.current.number
    lane = cells(model.whose, _WHOSE)
    length = model.source.axis.length
    if first == last:
        return [[(" range 0: l h . , move its end, v fixes it, Esc removes it", "dim")]]
    here = model.source.of.figures(number, first, last)
    if not wide:
        start: Line = [(f" range {length(last - first)}: ", "bright")]
        return [start + _figures(model, here, width - width_of(start), wide)]
    title = max(len(lane), len("mean of all"))
    lines: list[Line] = []
    for words, figures in ((lane, here), ("mean of all", model.source.of.all_figures(first, last))):
        start = [(f" {words.ljust(title)}  ", "bright")]
        lines.append(start + _figures(model, figures, width - width_of(start), wide))
    return lines


def _figures(model: TimelineModel, figures: Figures, room: int, wide: bool, times: bool = True) -> Line:
    """Shares, and times, in the order of the accounts.

    Where there is no room the words are short ones, and where that is not enough the smallest are left out.
    """
    length = model.source.axis.length
    for short in (not wide, True):
        pieces: list[Line] = []
        for one in figures.of:
            share = f"{percent(one.ns, figures.room_ns)} %"
            time = f" {length(round(one.ns / figures.ranks))}" if times else ""
            words = one.short if short else one.words
            pieces.append([(f"{words} ", one.kind), (share, "bright"), (f"{time}  ", "dim")])
        if sum(map(width_of, pieces)) - 2 <= room:
            break
    if sum(map(width_of, pieces)) - 2 > room:
        room -= len("+ 99.9 %") + 2
    by_size = sorted(range(len(pieces)), key=lambda index: -figures.of[index].ns)
    kept: set[int] = set()
    for index in by_size:
        if (size := width_of(pieces[index])) - 2 > room:
            break
        room -= size
        kept.add(index)
    shown = [part for index in sorted(kept) for part in pieces[index]]
    if len(kept) < len(pieces):
        # Nothing is left out unsaid.
        rest = sum(one.ns for index, one in enumerate(figures.of) if index not in kept)
        shown.append((f"+ {percent(rest, figures.room_ns)} %", "dim"))
    return shown


def mark_line(model: TimelineModel, width: int, wide: bool) -> Line:
    """How far the cursor is from the last mark, and what this lane does between the two; [] without marks."""
    mark = model.marks.last
    if mark is None:
        return []
    first, last = sorted((mark.time_ns, model.cursor_ns))
    axis = model.source.axis
    start: Line = [(f" mark {mark.letter} {axis.clock(mark.time_ns)}", "bright")] if wide else []
    start += [(f"{'   ' if wide else ' '}{mark.letter} .. cursor {axis.length(last - first)}", "bright")]
    if first == last:
        return start
    start.append((", this lane: " if wide else ": ", ""))
    return start + stretch_figures(model, first, last, start, width)


def stretch_figures(model: TimelineModel, first: int, last: int, start: Line, width: int) -> Line:
    """What the ranks of the cursor's lane do from `first` to `last` ns, behind `start`; [] for no time."""
    if first == last:
        return []
    figures = model.source.of.figures(model.current.number, first, last)
    return _figures(model, figures, width - width_of(start), width >= WIDE, times=False)


def filter_words(model: TimelineModel) -> str:
    """What the filter leaves; "" without one."""
    if not model.filter.is_on:
        return ""
    whole, shown = model.current, model.shown(model.current)
    counts = f"{len(shown.spans.start)} of {len(whole.spans.start)} spans here"
    return f"filter {cells(model.filter.query.text, 30)}: {counts}"


def mark_columns(model: TimelineModel, columns: int) -> dict[int, str]:
    """Column -> letter of each mark in view; of several in a column the last that was set."""
    found = {}
    for mark in model.marks.all:
        column = model.window.column(mark.time_ns, columns)
        if 0 <= column < columns:
            found[column] = mark.letter
    return found


def range_columns(model: TimelineModel, columns: int) -> tuple[int, int] | None:
    """First and last column of the range that are in view."""
    stretch = model.selection.stretch(model.cursor_ns)
    if stretch is None or stretch[1] <= model.window.first_ns or stretch[0] >= model.window.last_ns:
        return None
    first = max(model.window.column(stretch[0], columns), 0)
    last = min(model.window.column(max(stretch[1] - 1, stretch[0]), columns), columns - 1)
    return first, last


def details(model: TimelineModel, width: int, wide: bool, low: bool = False) -> list[Line]:
    """The span at the cursor, its times, where its duration comes from: lines of at most `width` cells.

    low: there is room for two of them; what matters of the others stands in the second, as it does where
    the screen is not wide.
    """
    lane = model.current
    index, others = model.span, ""
    if index is not None and lane.at(model.cursor_ns) is None:
        # A cell that is partly busy: speak of what makes it so.
        edges = model.window.edges(model.columns)
        column = model.cursor_column
        inside = lane.starting_in(edges[column], edges[column + 1])
        others = f"   {len(inside)} in this column" if len(inside) > 1 else ""
    if index is not None and model.filter.hides(lane, index, model.source):
        others += "   hidden by the filter"
    lines = lane.told(index, others, width, wide)
    words, said, volume = model.source.of.words, "", ""
    if index is not None:
        said = in_cells(words.aside(lane.number, lane.stream, index, wide and not low, model.rank))
        volume = words.volume(lane.number, lane.stream, index) if wide else ""
    if low or not wide:
        if said and len(lines) > 1:
            # Behind the length: when a transfer itself runs gives way to it.
            fits = wide and width_of(lines[1]) + len(said) + 3 <= width
            lines[1] = [*(lines[1] if fits else lines[1][:3]), (f"   {said}", "")]
        more = []
    else:
        more = [said]
    if volume and len(lines) > 1 and width_of(lines[1]) + len(volume) + 3 <= width:
        lines[1] = [*lines[1], (f"   {volume}", "")]
    return [*lines[:2], *([(words, "")] for words in more if words), *lines[2:]]


# Cells of the labels at least, and of one and what is set beside it.
_LABEL, _SPACE = 16, 2


def full_details(model: TimelineModel) -> Callable[[int], list[Line]]:
    """What makes its lines of at most a given width: of the run as it is now, whichever comes meanwhile."""
    lane, index = model.current, model.span
    found = []
    if index is not None:
        words = model.source.of.words
        found = words.all_of(lane.number, lane.stream, index, model.rank)
    stretch = model.selection.stretch(model.cursor_ns)
    table = _Table(model, *stretch) if stretch is not None and stretch[0] < stretch[1] else None
    labels = [*(label for label, _ in found), *(table.names if table is not None else ())]
    label_cells = max(_LABEL, *(len(label) + _SPACE for label in labels), 0)

    def lines(width: int) -> list[Line]:
        made: list[Line] = []
        for told in lane.told(index, "", width, wide=True)[:1]:
            # What it is; whose it is stands below.
            made += [[("  ", ""), *told[:1]], []]
        for label, words in found:
            made += _paragraph(label, words, label_cells, width)
        return made + table.lines(label_cells, width) if table is not None else made

    return lines


def _paragraph(label: str, words: str, label_cells: int, width: int) -> list[Line]:
    parts = [part for line in words.split("\n") for part in wrapped(in_cells(line), width - label_cells - 4)]
    return [
        [(f"  {label if place == 0 else '':<{label_cells}}", "dim"), (part, "")]
        for place, part in enumerate(parts or [""])
    ]


class _Table:
    """The range's accounts, of this lane and of all ranks. names: its rows."""

    def __init__(self, model: TimelineModel, first_ns: int, last_ns: int) -> None:
        axis, number = model.source.axis, model.current.number
        here = model.source.of.figures(number, first_ns, last_ns)
        everywhere = model.source.of.all_figures(first_ns, last_ns)
        self._title = cells(model.whose, 22)
        self._words = f"{axis.clock(first_ns)} .. {axis.clock(last_ns)}, {axis.length(last_ns - first_ns)}"
        roles = {one.words: one.kind for figures in (here, everywhere) for one in figures.of}
        self.names = sorted(roles, key=model.source.of.figure_words.index)
        self._rows = [
            (name, roles[name], _cell(model, here, name), _cell(model, everywhere, name))
            for name in self.names
        ]

    def lines(self, label_cells: int, width: int) -> list[Line]:
        """Its lines: the range, a heading, a row for each account."""
        made: list[Line] = [[], *_paragraph("range", self._words, label_cells, width)]
        made.append([(f"  {'':<{label_cells}}{self._title:>22}{'mean of all ranks':>26}", "dim")])
        for name, role, here, everywhere in self._rows:
            made.append(
                [(f"  {name:<{label_cells}}", role), (here.rjust(22), ""), (everywhere.rjust(26), "")]
            )
        return made


def _cell(model: TimelineModel, figures: Figures, name: str) -> str:
    ns = sum(one.ns for one in figures.of if one.words == name)
    return f"{model.source.axis.length(round(ns / figures.ranks))} {percent(ns, figures.room_ns):>6} %"
