"""The timeline as a frame: minimap, ruler, lanes, what is under the cursor, legend, view."""

from __future__ import annotations

from bisect import bisect_right
from operator import sub

from simcore.records import NamedTuple
from simcore.trace.lane_spans import Content
from simcore.trace.run import account_ns
from simcore.units import duration, percent, plural
from tui.frame import Glyphs, Line, cells, fitted, row_of, rule, shortened, text_of, width_of
from tui.timeline.arrangement import LaneRow
from tui.timeline.critical import PathLanes
from tui.timeline.drawing import Drawn, drawn_lane
from tui.timeline.lanes import LaneKey, SpanLane
from tui.timeline.margins import (
    MemoryRow,
    details,
    filter_words,
    legend,
    links_row,
    mark_columns,
    mark_line,
    range_columns,
    range_lines,
    range_title,
    ticks,
    view_bar,
    view_in,
)
from tui.timeline.model import FEW_LANES, ROOM_TO_FILL, TimelineModel
from tui.timeline.pointer import Area
from tui.timeline.window import Window

# Cells of the head over the shares, on a narrow screen.
_SHORT_COLUMN = 4
_WIDE = 100
_TALL = 30
# Rows above the lanes and below them on a tall screen, and on a low one without a range.
_TALL_ABOVE, _TALL_BELOW = 4, 9
_LOW_ABOVE, _LOW_BELOW = 3, 4
# Rows that a table of accounts below the lanes is worth.
_LEAST_ACCOUNTS = 6
_NARROW = "many spans under 2 columns wide: zoom in"
# Lines of a lane at most: of work, of communication.
_HIGHEST, _HIGHEST_STREAM = 8, 4


class TimelineFrame:
    """Draws the timeline. Keeps what does not change with the view: the minimap of a run."""

    def __init__(self, glyphs: Glyphs, colour: bool) -> None:
        self.glyphs = glyphs
        self.colour = colour
        self._memory = MemoryRow(glyphs)
        self._heat: tuple[object, int, str] | None = None
        self.area = Area(0, 0, (), 0)
        # Lanes as last drawn: most keys move the cursor and leave the cells as they are.
        self._drawn: dict[LaneKey, tuple[SpanLane, Content, Drawn]] = {}
        self._drawn_over: tuple[Window, int, PathLanes | None] | None = None
        self._path: PathLanes | None = None
        # Of the lanes drawn over this window.
        self._is_narrow = False

    def draw(self, model: TimelineModel, width: int, height: int) -> list[Line]:
        """The frame's lines: `height` of them, each `width` cells."""
        # Before anything is laid out: what it shows has to be counted.
        around = _TALL_ABOVE + _TALL_BELOW if height >= _TALL else _LOW_ABOVE + _LOW_BELOW
        model.unfold_first(height - around)
        wide, count = width >= _WIDE, len(model.arrangement.rows)
        # Where the lanes leave room for it, a screen has all the lines of a tall one.
        tall = height >= _TALL or count + _TALL_ABOVE + _TALL_BELOW <= height
        # The name of a lane that stands for ranks says how alike they are.
        more = (17 if wide else 7) if model.arrangement.folds else 0
        left = (23 if wide else 13) + more
        # Of the class of the lane at the cursor, of the first where that heads others.
        number = model.arrangement.rows[model.lane].key.number if count else 0
        memory = self._memory.lane(model.results, number) if tall else None
        heat = model.results.network.link_heat if tall else None
        above = (_TALL_ABOVE + (memory is not None) + (heat is not None)) if tall else _LOW_ABOVE
        status = _status(model, width, tall)
        below = (_TALL_BELOW if tall else _LOW_BELOW + len(status.lines)) if height >= 14 else 0
        columns = max(width - left - 1, 1)
        model.resize(columns, max(height - above - below, 1))
        told: list[Line] = []
        if below:
            # What is said of the span takes rows that no lane needs.
            spare = max(model.rows - count, 0)
            told = details(model, width - 2, wide, low=not tall and not spare)
            below += max(min(len(told) + status.around - below, spare), 0)
            model.resize(columns, height - above - below)
        lines = self._above(model, left, columns, tall)
        if memory is not None:
            # Below the ruler, over the view: a lane of what the lane at the cursor holds.
            lines.insert(-1, self._memory.line(memory, model.window, left, columns))
        if heat is not None:
            step = model.results.step_time_ns
            most = max((link.busy_ns for link in model.results.network.links or ()), default=0)
            busiest = most / step if step else 0.0
            lines.insert(-1, links_row(heat, busiest, model.window, left, columns, self.glyphs))
        # Asked for when it is shown alone: it is not there for nothing.
        self._path = model.path if model.shows_path else None
        if self._drawn_over != (model.window, columns, self._path):
            self._drawn_over = (model.window, columns, self._path)
            self._drawn.clear()
            self._is_narrow = False
        arrangement = model.arrangement
        shown = arrangement.visible()
        below_them = len(arrangement.rows) - (shown[-1][0] + 1)
        if below_them and len(shown) > 1 and arrangement.focus != shown[-1][0]:
            shown = shown[:-1]
            below_them += 1
        signs: list[tuple[int, int]] = []
        # One group of ranks alone has the screen for itself, whatever its size. Twice as high 16 lanes would
        # take 16 of the 16 ms that a pan has; the table below them stays as it is.
        few = model.source.groups <= FEW_LANES
        may_grow = (model.rows >= ROOM_TO_FILL and few) or model.source.groups == 1
        is_whole = not below_them and not model.top
        of_work, of_streams = 1, 1
        if may_grow and is_whole:
            of_work, of_streams = _heights([row for _, row in shown], model.rows)
        for index, row in shown:
            rows = self._lane(model, row, index, left, of_work if row.lane.by_majority else of_streams)
            lines += rows
            # The sign stands beside the last one.
            signs += [(index, -1)] * (len(rows) - 1) + [(index, _sign_column(row, wide))]
        self.area = Area(left, above, tuple(signs), 2 if tall else 1)
        if below_them and len(shown) < model.rows:
            words = f"{plural(below_them, 'lane')} below"
            if not below and arrangement.words:
                # There is no other line to say it in.
                words += f", {arrangement.words}"
            lines.append(rule(words, width, self.glyphs))
        lines += self._accounts(model, width, above + model.rows - len(lines))
        while len(lines) < above + model.rows:
            lines.append([])
        if below:
            lines += self._below(model, width, below, told, status)
        return [fitted(line, width) for line in lines[:height]]

    # -- above the lanes -------------------------------------------------------------

    def _above(self, model: TimelineModel, left: int, columns: int, tall: bool) -> list[Line]:
        glyphs = self.glyphs
        wide = left > 20
        title = model.source.axis.title[0 if wide else 1]
        heat: Line = [
            (title.ljust(left), "dim"),
            (glyphs.vertical, "dim"),
        ]
        row = self._heat_row(model, columns)
        heat += [(row, "bwd")] if tall else view_in(row, model.window, self.colour)
        view: Line = [("  in view".ljust(left), "dim"), (glyphs.vertical, "dim")]
        view += view_bar(model.window, columns, glyphs)
        labels, marks = self._ruler(model, columns)
        heading = _heading(model, left)
        ruler: Line = [(heading.ljust(left), "dim"), (glyphs.vertical, "dim"), (labels, "")]
        under = glyphs.horizontal * left
        above = model.arrangement.top
        if above:
            # Beside the lanes that they are above of; behind the pinned ones, that stay.
            words = f" {plural(above, 'lane')} above " if wide else f" {above} above "
            under = f"{glyphs.horizontal * 2}{words}".ljust(left, glyphs.horizontal)[:left]
        line: Line = [(f"{under}{glyphs.cross}", "dim"), *self._marked(model, marks)]
        return [heat, view, ruler, line] if tall else [heat, ruler, line]

    def _heat_row(self, model: TimelineModel, columns: int) -> str:
        """How many of all ranks compute, over the whole step."""
        if self._heat is not None and self._heat[0] is model.results and self._heat[1] == columns:
            return self._heat[2]
        step = model.window.step_ns
        edges = [step * column // columns for column in range(columns + 1)]
        busy = [0] * columns
        world = 0
        facts = model.source.of.facts
        # Ranks without a common time cannot be added up at any.
        for number in facts.numbers if facts.concurrent else ():
            count = model.source.count(number)
            world += count
            until = list(map(model.results.accounts[number].computed(), edges))
            busy = [total + count * ns for total, ns in zip(busy, map(sub, until[1:], until), strict=True)]
        levels = len(self.glyphs.heat) - 1
        row = ""
        for column in range(columns):
            room = max((edges[column + 1] - edges[column]) * world, 1)
            # A step of 0 ns has spans that share its only one.
            row += self.glyphs.heat[-(-min(busy[column], room) * levels // room)]
        self._heat = (model.results, columns, row)
        return row

    def _marked(self, model: TimelineModel, ticks: str) -> Line:
        """The line under the ruler: its ticks, the range, the marks, and the cursor over all of them."""
        pieces = [(tick, "dim") for tick in ticks]
        stretch = range_columns(model, model.columns)
        if stretch is not None:
            first, last = stretch
            pieces[first : last + 1] = [(self.glyphs.view, "accent")] * (last + 1 - first)
        for column, letter in mark_columns(model, model.columns).items():
            pieces[column] = (letter, "accent")
        pieces[model.cursor_column] = (self.glyphs.cursor, "accent")
        return fitted(pieces, len(pieces))

    def _ruler(self, model: TimelineModel, columns: int) -> tuple[str, str]:
        labels, marks = "", ""
        for column, label in ticks(model.window, columns, model.source.axis):
            if column + len(label) <= columns and len(labels) <= column:
                labels = labels.ljust(column) + label + " "
            marks = marks.ljust(column, self.glyphs.horizontal) + self.glyphs.tee
        return labels[:columns].ljust(columns), marks[:columns].ljust(columns, self.glyphs.horizontal)

    # -- lanes -----------------------------------------------------------------------

    def _lane(self, model: TimelineModel, row: LaneRow, index: int, left: int, high: int) -> list[Line]:
        """The lines of a lane, `high` of them; names and label stand in the last."""
        focused = index == model.lane
        lane, order = row.lane, model.arrangement.order.id
        share = lane.share(order) if order else lane.busy
        label = _label(_name(row, ">" if focused else " ", left > 20), lane.count, share, left)
        drawn, content = self._drawn.get(row.key), model.shown(lane)
        is_known = drawn is not None and drawn[0] is lane and drawn[1] is content
        if drawn is None or not is_known or (high > 1 and not drawn[2].plain):
            cells_of = drawn_lane(
                lane, model.window, model.columns, self.glyphs, self.colour, self._path, high > 1, content
            )
            self._drawn[row.key] = drawn = lane, content, cells_of
            self._is_narrow |= cells_of.narrow
        crowded, plain = drawn[2].crowded, drawn[2].plain
        rows = [row_of(plain, above, high, crowded) for above in range(high - 1, 0, -1)]
        rows.append(row_of(drawn[2].line, 0, high, crowded) if high > 1 else drawn[2].line)
        if focused:
            rows = [_reversed_at(cells, model.cursor_column) for cells in rows]
        labels = [(" " * left, ""), (label, "accent" if focused else "")]
        return [
            [labels[index == len(rows) - 1], (self.glyphs.vertical, "dim"), *cells]
            for index, cells in enumerate(rows)
        ]

    def _accounts(self, model: TimelineModel, width: int, rows: int) -> list[Line]:
        """Where the step of the ranks at the cursor goes, in rows that no lane needs."""
        run, lanes = model.results, model.arrangement.rows
        if rows < _LEAST_ACCOUNTS or not run.timed or width < _WIDE or not lanes:
            return []
        # A heading is of several sets of ranks.
        key = lanes[model.lane].key
        track = next((track for track in run.tracks if track.number == key.number and not key.path), None)
        if track is None:
            return []
        shown = [(name, ns // len(track.ranks)) for name, ns in account_ns(run, [track]).items() if ns]
        if len(shown) + 2 > rows:
            return []
        most, step = max((ns for _, ns in shown), default=0), run.step_time_ns
        who = f"{'rank' if len(track.ranks) == 1 else 'each of the ranks'} {track.ranks.text()}"
        lines: list[Line] = [[], rule(f"Where the step of {cells(who, 60)} goes", width, self.glyphs)]
        for name, ns in shown:
            words = f"  {name:<18}{duration(ns):>10}{percent(ns, step):>7} % "
            bar = "=" * round((width - len(words) - 1) * ns / most)
            lines.append([(words, ""), (bar, "dim")])
        return lines

    # -- below the lanes -------------------------------------------------------------

    def _below(
        self, model: TimelineModel, width: int, rows: int, told: list[Line], status: _Status
    ) -> list[Line]:
        """told: what there is to say of the span at the cursor, in full."""
        title = self._title(model, width, not status.tall)
        told = _first(told, rows - status.around, width)
        explained = self._legend(model, width)
        if not status.tall:
            return [title, *told, *status.lines, explained]
        ruled = rule(text_of([shortened([(range_title(model), "")], width - 5)]).rstrip(), width, self.glyphs)
        return [title, *told, ruled, *status.lines, explained, self._view(model, width), *status.mark]

    def _title(self, model: TimelineModel, width: int, low: bool) -> Line:
        """Where the cursor is; what the last key has to say; which lanes are left out; the filter and the
        critical path where no line of the view says them.
        """
        here = model.source.axis.clock(model.cursor_ns)
        # What is not in the list is said on every size of screen.
        said = [words for words in (model.notice, model.arrangement.words) if words]
        if (low or width < _WIDE) and model.filter.is_on:
            said.append(filter_words(model))
        if (low or width < _WIDE) and self._path is not None:
            said.append(self._path_words)
        # Whole or not at all: a picture that is not what it seems, and how it becomes so.
        told = [*said, _NARROW] if self._is_narrow else said
        whole = f"At the cursor, {here}"
        glyph = self.glyphs.horizontal
        line: Line = []
        for words, notices in ((whole, told), (here, told), (whole, said), (here, said)):
            line = [(glyph * 2, "dim"), (f" {words} ", "")]
            for notice in notices:
                line += [(glyph * 2, "dim"), (f" {notice} ", "accent")]
            if width_of(line) < width:
                break
        return (
            fitted([*line, (glyph * width, "dim")], width)
            if width_of(line) < width
            else shortened(line, width)
        )

    @property
    def _path_words(self) -> str:
        return f"critical path on, in {'colour' if self.colour else 'capitals'}"

    def _legend(self, model: TimelineModel, width: int) -> Line:
        rows = [row for _, row in model.arrangement.visible()]
        crowded = any(row.key in self._drawn and self._drawn[row.key][2].crowded for row in rows)
        streams = any(row.key.stream is not None for row in rows)
        path = self._path is not None
        partly = not all(model.shown(row.lane).covers_all for row in rows)
        kinds = model.source.legend
        seams = any(row.lane.seams for row in rows)
        return legend(
            kinds, self.glyphs, width, self.colour, crowded, streams, path, partly=partly, seams=seams
        )

    def _view(self, model: TimelineModel, width: int) -> Line:
        window = model.window
        axis, column_ns = model.source.axis, window.span_ns // model.columns
        line: Line = [(f" {filter_words(model)}  ", "accent")] if model.filter.is_on else []
        line.append((f" view {axis.clock(window.first_ns)} .. {axis.clock(window.last_ns)}", ""))
        column = (f", {axis.length(column_ns)} a column", "")
        ranks = (f"   {model.source.of.facts.counted}", "")
        # What stands out is said, where there is no room for all, rather than what does not change.
        rests: tuple[Line, ...] = ([column, ranks, ("   critical path off", "")], [column, ranks], [column])
        if self._path is not None:
            path = (f"   {self._path_words}", "accent")
            rests = ([column, ranks, path], [column, path], [path], [column])
        for rest in rests:
            if width_of([*line, *rest]) <= width:
                return [*line, *rest]
        return shortened(line, width)


class _Status(NamedTuple):
    """What is said of the range (lines), and on a tall screen of the last mark, below the details.

    On a low screen there is one line for the range, or else for the mark, where there is one.
    """

    tall: bool
    lines: list[Line]
    mark: list[Line]

    @property
    def around(self) -> int:
        """How many lines are below the lanes besides the details: title, legend; if tall rule and view."""
        return (4 if self.tall else 2) + len(self.lines) + len(self.mark)


def _status(model: TimelineModel, width: int, tall: bool) -> _Status:
    wide = tall and width >= _WIDE
    lines = range_lines(model, width, wide)
    mark = mark_line(model, width, wide)
    marks = [mark] if mark else []
    return _Status(tall, lines, marks) if tall else _Status(tall, lines or marks, [])


def _first(told: list[Line], rows: int, width: int) -> list[Line]:
    """The first lines of the details, as many as there is room for; dots where there are more.

    In the two lines of a low screen stands all that matters of the others.
    """
    kept: list[Line] = [[("  ", ""), *line] for line in told[:rows]]
    if len(told) > rows > 2:
        kept[-1] = [*fitted(kept[-1], min(width_of(kept[-1]), width - 4)), (" ...", "dim")]
    return [*(shortened(line, width) for line in kept), *[[] for _ in range(rows - len(kept))]]


def _heights(shown: list[LaneRow], rows: int) -> tuple[int, int]:
    """How many lines a lane of work, and one of communication, has where all are on the screen and there is
    room for more: work comes first.
    """
    growing = sum(row.lane.by_majority for row in shown)
    streams = len(shown) - growing
    work = min((rows - streams) // growing, _HIGHEST) if growing else 1
    return work, min((rows - work * growing) // streams, work, _HIGHEST_STREAM) if streams else 1


def _sign_column(row: LaneRow, wide: bool) -> int:
    """Where the sign of folding is, -1 without one."""
    return 1 + (2 if wide else 1) * row.depth if row.sign.strip() else -1


def _heading(model: TimelineModel, left: int) -> str:
    """Above the lanes: what they are sorted by, and what the share beside each is of."""
    order = model.arrangement.order
    of_wide, of_narrow = model.source.of.facts.beside
    if left > 20:
        room = left - 4 - len(order.words) - len(order.column)
        of = of_wide if len(of_wide) < room else ""
        return f"  {order.words}{of:>{room}}  {order.column}"
    column = order.column[:_SHORT_COLUMN]
    if order.id:
        return f" sorted{column:>{left - 7}}"
    return f" lane {of_narrow:>{left - 11}} {column}"


def _name(row: LaneRow, mark: str, wide: bool) -> str:
    """Cursor, folding, pin and title of a lane, as deep as it is under others."""
    lane, depth = row.lane, row.depth
    title = lane.title if wide else lane.short_title
    if row.pinned and depth == 0 and row.key.stream is not None:
        # Away from its own lane a stream says whose it is.
        whose = lane.whose if wide else lane.whose.removeprefix("stage ").removeprefix("rank ")
        title = f"{whose}: {title}"
    pin = "*" if row.pinned and depth == 0 else " "
    step = 2 if wide else 1
    if row.key.stream is not None and depth:
        return f"{mark}{' ' * step * (depth - 1)}   {title}"
    return f"{mark}{' ' * step * depth}{row.sign}{pin}{title}"


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
    cut = [(text[:at], plain), (text[at], inverse), (text[at + 1 :], plain)]
    return [*line[:piece], *[part for part in cut if part[0]], *line[piece + 1 :]]
