"""The timeline as a frame: minimap, ruler, lanes, what is under the cursor, legend, view."""

from __future__ import annotations

from bisect import bisect_right

from simcore.units import duration, plural
from tui.frame import ASCII, Glyphs, Line, as_ascii, fitted, rule
from tui.timeline.details import clock, details
from tui.timeline.drawing import draw_lane
from tui.timeline.lanes import Lane
from tui.timeline.model import TimelineModel
from tui.timeline.ruler import ticks

_WIDE = 100
_TALL = 30
_LEGEND = (
    ("fwd", "fwd", "forward"), ("bwd", "bwd", "backward"), ("opt", "opt", "optimizer"),
    ("exposed", "tp", "exposed comm."), ("wait", "wait", "wait"), ("bubble", "bubble", "bubble"),
    ("idle", "", "idle"),
)  # fmt: skip


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
        title = "  all ranks, computing" if wide else " all ranks"
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
        heading = "  lane          x  busy" if wide else " lane    busy"
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
        for number, rank_class in enumerate(model.results.simulation.timeline.classes):
            count = len(rank_class.ranks)
            world += count
            for column, found in enumerate(Lane(model.results, number, "compute").shares.cells(edges)):
                busy[column] += sum(found.values()) * count
        levels = len(self.glyphs.heat) - 1
        row = ""
        for column in range(columns):
            room = max((edges[column + 1] - edges[column]) * world, 1)
            row += self.glyphs.heat[-(-busy[column] * levels // room)]
        self._heat = (model.results, columns, row)
        return row

    def _ruler(self, model: TimelineModel, columns: int) -> tuple[str, str]:
        labels, marks = "", ""
        for column, label in ticks(model.window, columns):
            if column + len(label) <= columns and len(labels) <= column:
                labels = labels.ljust(column) + label + " "
            marks = marks.ljust(column, self.glyphs.horizontal) + self.glyphs.tee
        return labels[:columns].ljust(columns), marks[:columns].ljust(columns, self.glyphs.horizontal)

    # -- lanes -----------------------------------------------------------------------

    def _lane(self, model: TimelineModel, lane: Lane, index: int, left: int) -> Line:
        focused = index == model.lane
        mark = ">" if focused else " "
        sign = " " if lane.stream else "-" if lane.number in model.unfolded else "+"
        count = "" if lane.stream else f"x{_count(lane.ranks)}"
        if left > 20:
            name = f"   {lane.title}" if lane.stream else f"{sign} {lane.title}"
        else:
            short = lane.title.replace("stage ", "").replace("rank ", "").replace("compute", "comp")
            name = f"   {short.split(' ')[0]}" if lane.stream else f"{sign} {short}"
        label = _label(f"{mark}{name}", count, lane.busy, left)
        cells = draw_lane(lane, model.window, model.columns, self.glyphs, self.colour)
        if focused:
            cells = _reversed_at(cells, model.cursor_column)
        role = "accent" if focused else ""
        return [(label, role), (self.glyphs.vertical, "dim"), *cells]

    # -- below the lanes -------------------------------------------------------------

    def _below(self, model: TimelineModel, width: int, rows: int) -> list[Line]:
        lines = [[("  ", ""), *line] for line in details(model, width, width >= _WIDE)]
        legend = self._legend(model, width)
        title = rule(f"At the cursor, {clock(model.cursor_ns)}", width, self.glyphs)
        view = self._view(model)
        if rows < 9:
            return [title, *[*lines, [], []][:2], legend]
        room = rows - 4
        lines = [*lines[:room], *[[] for _ in range(room - len(lines))]]
        return [title, *lines, rule("", width, self.glyphs), legend, view]

    def _legend(self, model: TimelineModel, width: int) -> Line:
        line: Line = []
        for fill, role, words in _LEGEND:
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
        simulation = model.results.simulation
        column_ns = window.span_ns // model.columns
        words = (
            f" view {clock(window.first_ns)} .. {clock(window.last_ns)}, "
            f"{duration(column_ns)} a column   {simulation.layout.world} ranks in "
            f"{plural(len(simulation.timeline.classes), 'class')}"
        )
        return [(words, "")]


def _count(ranks: int) -> str:
    """How many ranks, in at most four characters: 64, 1024, 131k, 1.0M."""
    if ranks < 10_000:
        return str(ranks)
    return f"{ranks // 1000}k" if ranks < 1_000_000 else f"{ranks / 1e6:.1f}M"


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
