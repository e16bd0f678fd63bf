"""The timeline as a frame: minimap, ruler, lanes, what is under the cursor, legend, view."""

from __future__ import annotations

from bisect import bisect_right

from tui.frame import ASCII, Glyphs, Line, as_ascii, fitted, rule
from tui.timeline.busy_row import filled_ns
from tui.timeline.details import details
from tui.timeline.drawing import draw_lane
from tui.timeline.model import TimelineModel
from tui.timeline.ruler import ticks
from tui.timeline.spans import COMPUTING, SpanLane

_WIDE = 100
_TALL = 30


class TimelineFrame:
    """Draws the timeline. Keeps what does not change with the view: the minimap of a run."""

    def __init__(self, glyphs: Glyphs, colour: bool) -> None:
        self.glyphs = glyphs
        self.colour = colour
        self._heat: tuple[object, int, str] | None = None

    def draw(self, model: TimelineModel, width: int, height: int) -> list[Line]:
        """The frame's lines: `height` of them, each `width` cells."""
        wide, tall = width >= _WIDE, height >= _TALL
        left = 23 if wide else 13
        below = (9 if tall else 4) if height >= 14 else 0
        above = 4 if tall else 3
        columns = max(width - left - 1, 1)
        model.resize(columns, max(height - above - below, 1))
        lines = self._above(model, left, columns, tall)
        shown = model.lanes[model.top : model.top + model.rows]
        if len(model.lanes) > model.top + model.rows and model.rows > 1:
            shown = shown[:-1] if model.lane < model.top + model.rows - 1 else shown
        lines += [self._lane(model, lane, index, left) for index, lane in enumerate(shown, model.top)]
        hidden = len(model.lanes) - model.top - len(shown)
        if hidden > 0 and len(shown) < model.rows:
            lines.append(rule(f"{hidden} lanes below", width, self.glyphs))
        while len(lines) < above + model.rows:
            lines.append([])
        if below:
            lines += self._below(model, width, below)
        lines = [fitted(line, width) for line in lines[:height]]
        return as_ascii(lines) if self.glyphs is ASCII else lines

    # -- above the lanes -------------------------------------------------------------

    def _above(self, model: TimelineModel, left: int, columns: int, tall: bool) -> list[Line]:
        glyphs = self.glyphs
        wide = left > 20
        title = model.source.axis.title[0 if wide else 1]
        heat: Line = [
            (title.ljust(left), "dim"),
            (glyphs.vertical, "dim"),
            (self._heat_row(model, columns), "bwd"),
        ]
        first = model.window.first_ns * columns // model.window.step_ns
        last = max(model.window.last_ns * columns // model.window.step_ns, first + 1)
        if last - first == 1:
            bar = glyphs.view
        else:
            bar = glyphs.view_left + glyphs.view * (last - first - 2) + glyphs.view_right
        view: Line = [
            ("  in view".ljust(left), "dim"), (glyphs.vertical, "dim"),
            (" " * first, ""), (bar, "accent"),
        ]  # fmt: skip
        labels, marks = self._ruler(model, columns)
        of_wide, of_narrow = model.source.count_heading
        heading = f"  lane{of_wide:>11}  busy" if wide else f" lane {of_narrow:>2} busy"
        ruler: Line = [(heading.ljust(left), "dim"), (glyphs.vertical, "dim"), (labels, "")]
        cursor = model.cursor_column
        line: Line = [
            (glyphs.horizontal * left + glyphs.cross, "dim"), (marks[:cursor], "dim"),
            (glyphs.cursor, "accent"), (marks[cursor + 1 :], "dim"),
        ]  # fmt: skip
        return [heat, view, ruler, line] if tall else [heat, ruler, line]

    def _heat_row(self, model: TimelineModel, columns: int) -> str:
        """How many of all ranks compute, over the whole step."""
        if self._heat is not None and self._heat[0] is model.results and self._heat[1] == columns:
            return self._heat[2]
        step = model.window.step_ns
        edges = [step * column // columns for column in range(columns + 1)]
        busy = [0] * columns
        world = 0
        for number, count in model.source.heat.items():
            world += count
            filled = filled_ns(model.source.computing(number).spans, COMPUTING, edges)
            busy = [total + count * ns for total, ns in zip(busy, filled, strict=True)]
        levels = len(self.glyphs.heat) - 1
        row = ""
        for column in range(columns):
            room = max((edges[column + 1] - edges[column]) * world, 1)
            row += self.glyphs.heat[-(-busy[column] * levels // room)]
        self._heat = (model.results, columns, row)
        return row

    def _ruler(self, model: TimelineModel, columns: int) -> tuple[str, str]:
        labels, marks = "", ""
        for column, label in ticks(model.window, columns, model.source.axis):
            if column + len(label) <= columns and len(labels) <= column:
                labels = labels.ljust(column) + label + " "
            marks = marks.ljust(column, self.glyphs.horizontal) + self.glyphs.tee
        return labels[:columns].ljust(columns), marks[:columns].ljust(columns, self.glyphs.horizontal)

    # -- lanes -----------------------------------------------------------------------

    def _lane(self, model: TimelineModel, lane: SpanLane, index: int, left: int) -> Line:
        focused = index == model.lane
        mark = ">" if focused else " "
        sign = " " if lane.stream is not None else "-" if lane.number in model.unfolded else "+"
        title = lane.title if left > 20 else lane.short_title
        name = f"   {title}" if lane.stream is not None else f"{sign} {title}"
        label = _label(f"{mark}{name}", lane.count, lane.busy, left)
        cells = draw_lane(lane, model.window, model.columns, self.glyphs, self.colour)
        if focused:
            cells = _reversed_at(cells, model.cursor_column)
        role = "accent" if focused else ""
        return [(label, role), (self.glyphs.vertical, "dim"), *cells]

    # -- below the lanes -------------------------------------------------------------

    def _below(self, model: TimelineModel, width: int, rows: int) -> list[Line]:
        lines = [[("  ", ""), *line] for line in details(model, width, width >= _WIDE)]
        legend = self._legend(model, width)
        title = rule(f"At the cursor, {model.source.axis.clock(model.cursor_ns)}", width, self.glyphs)
        view = self._view(model)
        if rows < 9:
            return [title, *[*lines, [], []][:2], legend]
        room = rows - 4
        lines = [*lines[:room], *[[] for _ in range(room - len(lines))]]
        return [title, *lines, rule("", width, self.glyphs), legend, view]

    def _legend(self, model: TimelineModel, width: int) -> Line:
        line: Line = []
        for fill, role, words in model.source.legend:
            line += [
                (" ", ""),
                (self.glyphs.fills[fill], role),
                (f" {words if width >= _WIDE else words.split()[0]} ", ""),
            ]
        if model.unfolded and width >= _WIDE:
            line += [("   comm lanes: ", "dim"), (self.glyphs.busy, "tp"), (" busy  ", ""),
                     (self.glyphs.partly, "tp"), (" partly", "")]  # fmt: skip
        return line

    def _view(self, model: TimelineModel) -> Line:
        window = model.window
        axis, column_ns = model.source.axis, window.span_ns // model.columns
        words = (
            f" view {axis.clock(window.first_ns)} .. {axis.clock(window.last_ns)}, "
            f"{axis.length(column_ns)} a column   {model.source.counted}"
        )
        return [(words, "")]


def _label(name: str, count: str, busy: str, left: int) -> str:
    """A lane's name, count and busy share in `left` cells: the share whole, the count whole or absent."""
    share = f"{busy:>4}" if len(busy) < 4 else f" {busy}"
    room = left - len(share)
    if len(name) + len(count) < room or not count:
        return name[:room].ljust(room - len(count)) + count + share
    return name[:room].ljust(room) + share


def _reversed_at(line: Line, column: int) -> Line:
    """The cell at `column` in reverse: the cursor on its lane."""
    ends: list[int] = []
    position = 0
    for text, _ in line:
        position += len(text)
        ends.append(position)
    piece = bisect_right(ends, column)
    if piece == len(line):
        return line
    text, role = line[piece]
    at = column - (ends[piece] - len(text))
    plain, inverse = (
        (role, f"{role} reversed") if not role.endswith("reversed") else (role, role[: -len(" reversed")])
    )
    found = [(text[:at], plain), (text[at], inverse), (text[at + 1 :], plain)]
    return [*line[:piece], *[part for part in found if part[0]], *line[piece + 1 :]]
