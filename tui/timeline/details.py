"""The lines about what is under the cursor."""

from __future__ import annotations

from tui.frame import Line, in_cells, width_of
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
