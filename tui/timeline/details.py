"""The lines about what is under the cursor."""

from __future__ import annotations

from tui.frame import Line, width_of
from tui.timeline.model import TimelineModel
from tui.timeline.spans import ALL


def details(model: TimelineModel, width: int, wide: bool) -> list[Line]:
    """The span at the cursor, its times, where its duration comes from: lines of at most `width` cells."""
    lane = model.current
    index, others = model.span, ""
    if index is not None and lane.at(model.cursor_ns) is None:
        # A cell that is partly busy: speak of what makes it so.
        edges = model.window.edges(model.columns)
        column = model.cursor_column
        inside = lane.starting_in(edges[column], edges[column + 1])
        others = f"   {len(inside)} in this column" if len(inside) > 1 else ""
    if index is not None and model.filter.hides(lane, index, model.source, model.moves):
        others += "   hidden by the filter"
    lines = lane.told(index, others, width, wide)
    said = "" if index is None else model.moves.more(lane, index, wide, model.spoken_of)
    if not wide:
        if said and len(lines) > 1:
            # Behind the length: there is no room for when a transfer itself runs.
            lines[1] = [*lines[1][:3], (f"   {said}", "")]
        if model.spoken_of is not None:
            lines[0] = [*lines[0][:-1], (f"rank {model.spoken_of}, {lines[0][-1][0]}", "dim")]
        return lines
    more = []
    if model.spoken_of is not None and model.current.key.rank == ALL:
        more.append(f"{model.moves.rank_words(model.spoken_of)} is one of them")
    if index is not None:
        volume = model.moves.volume(lane, index)
        if volume and len(lines) > 1 and width_of(lines[1]) + len(volume) + 5 <= width:
            lines[1] = [*lines[1], (f"   {volume}", "")]
        slack = model.moves.slack(lane, index)
        if slack and len(lines) > 1 and width_of(lines[1]) + len(slack) + 5 <= width:
            lines[1] = [*lines[1], (f"   {slack}", "dim")]
    more.append(said)
    return [*lines[:2], *([(words, "")] for words in more if words), *lines[2:]]
