"""The lines about what is under the cursor; in full what is known of the span there, and of the range."""

from __future__ import annotations

from collections.abc import Callable

from simcore.run.lanes import Figures
from simcore.units import percent
from tui.frame import Line, cells, in_cells, width_of, wrapped
from tui.timeline.model import TimelineModel


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
