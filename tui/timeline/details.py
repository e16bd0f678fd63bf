"""The lines about what is under the cursor."""

from __future__ import annotations

from tui.frame import Line
from tui.timeline.model import TimelineModel


def details(model: TimelineModel, width: int, wide: bool) -> list[Line]:
    """The span at the cursor, its times, where its duration comes from: lines of at most `width` cells."""
    lane = model.current
    index = lane.at(model.cursor_ns)
    others = ""
    if index is None:
        # A cell that is partly busy: speak of what makes it so.
        edges = model.window.edges(model.columns)
        column = model.cursor_column
        inside = lane.starting_in(edges[column], edges[column + 1])
        if inside:
            index, others = inside[0], f"   {len(inside)} in this column" if len(inside) > 1 else ""
    return lane.told(index, others, width, wide)
