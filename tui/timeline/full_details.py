"""`Enter`: all that is known of the span at the cursor, and of the range."""

from __future__ import annotations

from collections.abc import Callable

from simcore.units import percent
from tui.frame import Line, cells, wrapped
from tui.timeline.model import TimelineModel
from tui.timeline.moves import Figures

_LABEL = 16


def full_details(model: TimelineModel) -> Callable[[int], list[Line]]:
    """What makes its lines of at most a given width: of the run as it is now, whichever comes meanwhile."""
    lane, index = model.current, model.span
    found = [] if index is None else model.moves.all_of(lane, index, model.rank)
    stretch = model.selection.stretch(model.cursor_ns)
    range_of = _range(model, *stretch) if stretch is not None and stretch[0] < stretch[1] else None

    def lines(width: int) -> list[Line]:
        made: list[Line] = []
        for told in lane.told(index, "", width, wide=True)[:1]:
            # What it is; whose it is stands below.
            made += [[("  ", ""), *told[:1]], []]
        for label, words in found:
            made += _paragraph(label, words, width)
        return made + range_of(width) if range_of is not None else made

    return lines


def _paragraph(label: str, words: str, width: int) -> list[Line]:
    parts = [part for line in words.split("\n") for part in wrapped(line, width - _LABEL - 4)]
    return [
        [(f"  {label if place == 0 else '':<{_LABEL}}", "dim"), (part, "")]
        for place, part in enumerate(parts or [""])
    ]


def _range(model: TimelineModel, first_ns: int, last_ns: int) -> Callable[[int], list[Line]]:
    """A table of the range's accounts, of this lane and of all ranks."""
    axis, number = model.source.axis, model.current.number
    here = model.moves.figures(number, first_ns, last_ns)
    everywhere = model.moves.all_figures(first_ns, last_ns)
    title = cells(model.whose, 22)
    words = f"{axis.clock(first_ns)} .. {axis.clock(last_ns)}, {axis.length(last_ns - first_ns)}"
    table: list[Line] = [[(f"  {'':<{_LABEL}}{title:>22}{'mean of all ranks':>26}", "dim")]]
    names = {one.words: one.role for figures in (here, everywhere) for one in figures.of}
    for name, role in sorted(names.items(), key=lambda item: model.moves.order.index(item[0])):
        line: Line = [(f"  {name:<{_LABEL}}", role)]
        for figures, room in ((here, 22), (everywhere, 26)):
            line.append((_cell(model, figures, name).rjust(room), ""))
        table.append(line)
    return lambda width: [[], *_paragraph("range", words, width), *table]


def _cell(model: TimelineModel, figures: Figures, name: str) -> str:
    ns = sum(one.ns for one in figures.of if one.words == name)
    return f"{model.source.axis.length(round(ns / figures.ranks))} {percent(ns, figures.room_ns):>6} %"
