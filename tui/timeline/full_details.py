"""`Enter`: all that is known of the span at the cursor, and of the range."""

from __future__ import annotations

from collections.abc import Callable

from simcore.run.lanes import Figures
from simcore.units import percent
from tui.frame import Line, cells, in_cells, wrapped
from tui.timeline.model import TimelineModel

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
