"""The timeline as a frame: minimap, ruler, lanes, what is under the cursor, legend, view."""

from __future__ import annotations

import weakref
from bisect import bisect_right
from operator import sub

from simcore.records import NamedTuple
from simcore.trace.lane_spans import Content, TimeAxis
from simcore.trace.run import Run, account_ns
from simcore.units import duration, percent, plural
from tui.frame import Glyphs, Line, cells, fitted, row_of, rule, share_bar, shortened, text_of, width_of
from tui.timeline.arrangement import LaneRow
from tui.timeline.critical import PathLanes
from tui.timeline.drawing import LaneCells, draw_lane
from tui.timeline.lanes import LaneKey, SpanLane, format_count
from tui.timeline.margins import (
    MemoryRow,
    busy_view_row,
    cursor_lines,
    filter_text,
    legend,
    links_row,
    mark_columns,
    mark_line,
    range_columns,
    range_lines,
    range_title,
    search_text,
    ticks,
    tier_rows,
    view_bar,
)
from tui.timeline.match_cells import UNDERLINED, MatchLanes, MatchMarker
from tui.timeline.model import FEW_LANES, ROOM_TO_FILL, TimelineModel
from tui.timeline.pointer import Area
from tui.timeline.window import Window

# Cells of the heading over the shares, on a narrow screen.
_SHORT_COLUMN = 4
_WIDE = 100
_TALL = 30
# Rows above the lanes and below them on a tall screen, and on a low one without a range.
_TALL_ABOVE, _TALL_BELOW = 4, 9
_LOW_ABOVE, _LOW_BELOW = 3, 4
# A table of accounts below the lanes needs this many rows.
_LEAST_ACCOUNTS = 6
# Of so many rows of a screen one is for a tier of links.
_ROWS_A_TIER = 7
_NARROW = "many spans under 2 columns wide: zoom in"
# The most lines that a lane has: of work, of communication.
_HIGHEST, _HIGHEST_STREAM = 8, 4


class TimelineFrame:
    """Draws the timeline. It caches what does not change with the view: the minimap of a run."""

    def __init__(self, glyphs: Glyphs, colour: bool) -> None:
        self.glyphs = glyphs
        self.colour = colour
        self._memory = MemoryRow(glyphs)
        # Not the run itself: a screen that is not drawn would hold it until it is.
        self._heat: tuple[weakref.ref[Run], int, str] | None = None
        self.area = Area(0, 0, (), 0)
        # Lanes as last drawn: most keys move the cursor and leave the cells as they are.
        self._lane_cells: dict[LaneKey, tuple[SpanLane, Content, LaneCells]] = {}
        # By lane what its label depends on, and the label.
        self._labels: dict[LaneKey, tuple[tuple[LaneRow, bool, int, str, int], Line]] = {}
        # The window, the columns and the axis of the bar of the view and of the ruler, and these.
        self._scale: tuple[tuple[Window, int, TimeAxis] | None, Line, tuple[str, str]] = None, [], ("", "")
        self._drawn_view: tuple[Window, int, PathLanes | None, MatchLanes | None] | None = None
        self._path: PathLanes | None = None
        self._matches: MatchLanes | None = None
        self._edges: list[int] = []
        self._marker = MatchMarker(glyphs, colour)
        # Whether some lane drawn over this window is `narrow`.
        self._is_narrow = False

    def draw(self, model: TimelineModel, width: int, height: int) -> list[Line]:
        """Returns the frame's lines: `height` of them, each `width` cells."""
        # Before anything is laid out: the lines that it shows have to be counted.
        around = _TALL_ABOVE + _TALL_BELOW if height >= _TALL else _LOW_ABOVE + _LOW_BELOW
        model.unfold_first(height - around)
        wide, count = width >= _WIDE, len(model.arrangement.rows)
        # Where the lanes leave room for it, a screen has all the lines of a tall one.
        tall = height >= _TALL or count + _TALL_ABOVE + _TALL_BELOW <= height
        # The name of a lane that stands for several tracks says how similar these are.
        more = (17 if wide else 7) if model.arrangement.folds_tracks else 0
        left = (23 if wide else 13) + more
        # The class of the lane at the cursor, or of the first lane where that is a heading.
        track_id = model.arrangement.rows[model.lane].key.track_id if count else 0
        memory = self._memory.lane(model.results, track_id) if tall else None
        network = model.results.network
        heat = network.link_heat if tall else None
        ports = network.ports if tall and network.flow_report is not None else None
        tiers = 0 if ports is None else min(ports.used_tiers, max(height // _ROWS_A_TIER, 1))
        above = (_TALL_ABOVE + (memory is not None) + (heat is not None) + tiers) if tall else _LOW_ABOVE
        columns = max(width - left - 1, 1)
        # The digits of a time follow from the columns of this picture, not of the one before.
        model.columns = columns
        status = _status(model, width, tall)
        below = (_TALL_BELOW if tall else _LOW_BELOW + len(status.lines)) if height >= 14 else 0
        model.resize(columns, max(height - above - below, 1))
        span_lines: list[Line] = []
        if below:
            # The description of the span takes rows that no lane needs.
            spare = max(model.rows - count, 0)
            span_lines = cursor_lines(model, width - 2, wide, low=not tall and not spare)
            below += max(min(len(span_lines) + status.around - below, spare), 0)
            model.resize(columns, height - above - below)
        lines = self._lines_above(model, left, columns, tall)
        if memory is not None:
            # Below the ruler, over the view: the memory of the class of the lane at the cursor.
            lines.insert(-1, self._memory.line(memory, model.window, left, columns))
        if heat is not None:
            step = model.results.step_time_ns
            most = max((link.busy_ns for link in model.results.network.links or ()), default=0)
            busiest = most / step if step else 0.0
            lines.insert(-1, links_row(heat, busiest, model.window, left, columns, self.glyphs))
        if ports is not None:
            lines[-1:-1] = tier_rows(ports, tiers, model.window, left, columns, self.glyphs)
        # Drawn only where the path is displayed: it takes time to find.
        self._path = model.path if model.shows_path else None
        search = model.current_search
        if search is None:
            self._matches = None
        elif self._matches is None or self._matches.search is not search:
            self._matches = MatchLanes(search)
        view = model.window, columns, self._path, self._matches
        if self._drawn_view != view:
            self._drawn_view = view
            self._edges = model.window.edges(columns)
            self._lane_cells.clear()
            self._labels.clear()
            self._is_narrow = False
        arrangement = model.arrangement
        visible_rows = arrangement.visible()
        lanes_below = len(arrangement.rows) - (visible_rows[-1][0] + 1)
        if lanes_below and len(visible_rows) > 1 and arrangement.focus != visible_rows[-1][0]:
            visible_rows = visible_rows[:-1]
            lanes_below += 1
        signs: list[tuple[int, int]] = []
        # A single group of ranks has the screen for itself, whatever its size. At twice the height 16 lanes
        # would take 16 of the 16 ms that a pan has; the table below them stays as it is.
        are_few = model.source.track_count <= FEW_LANES
        may_grow = (model.rows >= ROOM_TO_FILL and are_few) or model.source.track_count == 1
        is_whole = not lanes_below and not model.top
        work_height, stream_height = 1, 1
        if may_grow and is_whole:
            work_height, stream_height = _lane_heights([row for _, row in visible_rows], model.rows)
        for index, row in visible_rows:
            rows = self._lane_lines(
                model, row, index, left, work_height if row.lane.by_majority else stream_height
            )
            lines += rows
            # The sign stands in the last one.
            signs += [(index, -1)] * (len(rows) - 1) + [(index, _sign_column(row, wide))]
        self.area = Area(left, above, tuple(signs), 2 if tall else 1)
        if lanes_below and len(visible_rows) < model.rows:
            words = f"{plural(lanes_below, 'lane')} below"
            if not below and arrangement.omission_text:
                # There is no other line for it.
                words += f", {arrangement.omission_text}"
            lines.append(rule(words, width, self.glyphs))
        lines += self._account_lines(model, width, above + model.rows - len(lines))
        while len(lines) < above + model.rows:
            lines.append([])
        if below:
            lines += self._lines_below(model, width, below, span_lines, status)
        return [fitted(line, width) for line in lines[:height]]

    # -- above the lanes -------------------------------------------------------------

    def _lines_above(self, model: TimelineModel, left: int, columns: int, tall: bool) -> list[Line]:
        glyphs = self.glyphs
        wide = left > 20
        title = model.source.axis.title[0 if wide else 1]
        heat: Line = [
            (title.ljust(left), "dim"),
            (glyphs.vertical, "dim"),
        ]
        row = self._heat_row(model, columns)
        heat += [(row, "bwd")] if tall else busy_view_row(row, model.window, self.colour)
        scale = model.window, columns, model.source.axis
        if self._scale[0] != scale:
            # A cursor key leaves them as they are.
            self._scale = scale, view_bar(model.window, columns, glyphs), self._ruler(model, columns)
        _, bar, (labels, marks) = self._scale
        view: Line = [("  in view".ljust(left), "dim"), (glyphs.vertical, "dim"), *bar]
        heading = _column_heading(model, left)
        ruler: Line = [(heading.ljust(left), "dim"), (glyphs.vertical, "dim"), (labels, "")]
        under = glyphs.horizontal * left
        above = model.arrangement.top
        if above:
            # Next to the visible lanes that they are above; behind the pinned ones, which stay.
            words = f" {plural(above, 'lane')} above " if wide else f" {above} above "
            under = f"{glyphs.horizontal * 2}{words}".ljust(left, glyphs.horizontal)[:left]
        line: Line = [(f"{under}{glyphs.cross}", "dim"), *self._mark_line(model, marks)]
        return [heat, view, ruler, line] if tall else [heat, ruler, line]

    def _heat_row(self, model: TimelineModel, columns: int) -> str:
        """Returns for each column how many of all ranks compute, over the whole step."""
        if self._heat is not None and self._heat[0]() is model.results and self._heat[1] == columns:
            return self._heat[2]
        step = model.window.step_ns
        edges = [step * column // columns for column in range(columns + 1)]
        busy = [0] * columns
        world = 0
        facts = model.source.of.facts
        # Ranks without a common time cannot be added up at any instant.
        for track_id in facts.track_ids if facts.concurrent and facts.timed else ():
            count = model.source.count_ranks(track_id)
            world += count
            busy_until = list(map(model.results.accounts[track_id].computed_until(), edges))
            busy = [
                total + count * ns
                for total, ns in zip(busy, map(sub, busy_until[1:], busy_until), strict=True)
            ]
        levels = len(self.glyphs.heat) - 1
        row = ""
        for column in range(columns):
            room = max((edges[column + 1] - edges[column]) * world, 1)
            # A step of 0 ns has spans in its only ns.
            row += self.glyphs.heat[-(-min(busy[column], room) * levels // room)]
        self._heat = (weakref.ref(model.results), columns, row)
        return row

    def _mark_line(self, model: TimelineModel, ticks: str) -> Line:
        """Returns the line under the ruler: its ticks, the range, the marks, and the cursor over
        all of them.
        """
        row_cells = [(tick, "dim") for tick in ticks]
        stretch = range_columns(model, model.columns)
        if stretch is not None:
            first, last = stretch
            row_cells[first : last + 1] = [(self.glyphs.view, "accent")] * (last + 1 - first)
        for column, letter in mark_columns(model, model.columns).items():
            row_cells[column] = (letter, "accent")
        row_cells[model.cursor_column] = (self.glyphs.cursor, "accent")
        return fitted(row_cells, len(row_cells))

    def _ruler(self, model: TimelineModel, columns: int) -> tuple[str, str]:
        labels, marks = "", ""
        for column, label in ticks(model.window, columns, model.source.axis):
            if column + len(label) <= columns and len(labels) <= column:
                labels = labels.ljust(column) + label + " "
            marks = marks.ljust(column, self.glyphs.horizontal) + self.glyphs.tee
        return labels[:columns].ljust(columns), marks[:columns].ljust(columns, self.glyphs.horizontal)

    # -- lanes -----------------------------------------------------------------------

    def _lane_lines(self, model: TimelineModel, row: LaneRow, index: int, left: int, high: int) -> list[Line]:
        """Returns the lines of a lane, `high` of them; names and label stand in the last."""
        is_focused = index == model.lane
        lane, order = row.lane, model.arrangement.order.id
        share = lane.share(order) if order else lane.busy
        match_count = 0 if self._matches is None else self._matches.count(lane)
        facts = row, is_focused, left, share, match_count
        label_facts, label = self._labels.get(row.key, (None, []))
        if label_facts != facts:
            name = _lane_name(row, ">" if is_focused else " ", left > 20)
            label = _format_label(name, lane.count, match_count, share, left, "accent" if is_focused else "")
            self._labels[row.key] = facts, label
        cached, content = self._lane_cells.get(row.key), model.visible_content(lane)
        is_known = cached is not None and cached[0] is lane and cached[1] is content
        if cached is None or not is_known or (high > 1 and not cached[2].plain):
            lane_cells = draw_lane(
                lane, model.window, model.columns, self.glyphs, self.colour, self._path, high > 1, content
            )
            if match_count and self._matches is not None:
                flags = self._matches.match_columns(lane, self._edges)
                marked_line = self._marker.mark(lane_cells.line, flags, lane.by_majority)
                lane_cells = lane_cells._replace(line=marked_line)
            self._lane_cells[row.key] = cached = lane, content, lane_cells
            self._is_narrow |= lane_cells.narrow
        plain = cached[2].plain
        rows = [row_of(plain, above, high) for above in range(high - 1, 0, -1)]
        rows.append(row_of(cached[2].line, 0, high) if high > 1 else cached[2].line)
        if is_focused:
            rows = [_reverse_cell(cells, model.cursor_column) for cells in rows]
        labels: list[Line] = [[(" " * left, "")], label]
        return [
            [*labels[index == len(rows) - 1], (self.glyphs.vertical, "dim"), *cells]
            for index, cells in enumerate(rows)
        ]

    def _account_lines(self, model: TimelineModel, width: int, rows: int) -> list[Line]:
        """Returns where the step of the ranks at the cursor goes, in rows that no lane needs."""
        run, lanes = model.results, model.arrangement.rows
        if rows < _LEAST_ACCOUNTS or not run.timed or width < _WIDE or not lanes:
            return []
        # A heading is of several tracks.
        key = lanes[model.lane].key
        track = next((track for track in run.tracks if track.track_id == key.track_id and not key.path), None)
        if track is None:
            return []
        accounts = [(name, ns // len(track.ranks)) for name, ns in account_ns(run, [track]).items() if ns]
        if len(accounts) + 2 > rows:
            return []
        most, step = max((ns for _, ns in accounts), default=0), run.step_time_ns
        who = f"{'rank' if len(track.ranks) == 1 else 'ranks'} {track.ranks.text()}"
        lines: list[Line] = [[], rule(f"Time of {cells(who, 60)}", width, self.glyphs, "% of step")]
        for name, ns in accounts:
            words = f"  {name:<18}{duration(ns):>10}{percent(ns, step):>7} % "
            bar = share_bar(ns, most, width - len(words) - 1, self.glyphs)
            lines.append([(words, ""), (bar, "dim")])
        return lines

    # -- below the lanes -------------------------------------------------------------

    def _lines_below(
        self, model: TimelineModel, width: int, rows: int, span_lines: list[Line], status: _Status
    ) -> list[Line]:
        """Returns the lines below the lanes. span_lines: the full description of the span at the cursor."""
        title = self._title_line(model, width, not status.tall)
        span_lines = _first_lines(span_lines, rows - status.around, width)
        legend_line = self._legend_line(model, width)
        if not status.tall:
            return [title, *span_lines, *status.lines, legend_line]
        range_rule = rule(
            text_of([shortened([(range_title(model), "")], width - 5)]).rstrip(), width, self.glyphs
        )
        return [
            title,
            *span_lines,
            range_rule,
            *status.lines,
            legend_line,
            self._view_line(model, width),
            *status.mark,
        ]

    def _title_line(self, model: TimelineModel, width: int, low: bool) -> Line:
        """Returns where the cursor is; the notice of the last key; which lanes are left out; the filter and
        the critical path where no line of the view says them.
        """
        time_text = model.clock(model.cursor_ns)
        # Lanes missing from the list are mentioned on every size of screen.
        texts = [words for words in (model.notice, model.arrangement.omission_text) if words]
        if (low or width < _WIDE) and model.filter.is_on:
            texts.append(filter_text(model))
        if low and not model.notice:
            # The notice of a jump counts the matches as well.
            texts += filter(None, [search_text(model.search)])
        if (low or width < _WIDE) and self._path is not None:
            texts.append(self._path_words)
        # Complete or not at all: a notice that the picture misleads, and how to correct it.
        all_texts = [*texts, _NARROW] if self._is_narrow else texts
        full_title = f"At the cursor, {time_text}"
        glyph = self.glyphs.horizontal
        line: Line = []
        for words, notices in (
            (full_title, all_texts),
            (time_text, all_texts),
            (full_title, texts),
            (time_text, texts),
        ):
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

    def _legend_line(self, model: TimelineModel, width: int) -> Line:
        rows = [row for _, row in model.arrangement.visible()]
        streams = any(row.key.stream is not None and not row.lane.by_majority for row in rows)
        path = self._path is not None
        partly = not all(model.visible_content(row.lane).covers_all for row in rows)
        kinds = model.source.legend
        seams = any(row.lane.seams for row in rows)
        return legend(kinds, self.glyphs, width, self.colour, streams, path, partly=partly, seams=seams)

    def _view_line(self, model: TimelineModel, width: int) -> Line:
        window = model.window
        column_text = model.source.axis.length(window.span_ns // model.columns)
        line: Line = [
            (f" {words}  ", "accent") for words in (filter_text(model), search_text(model.search)) if words
        ]
        line.append((f" view {model.clock(window.first_ns)} .. {model.clock(window.last_ns)}", ""))
        column = (f", {column_text} a column", "")
        ranks = (f"   {model.source.of.facts.counts_text}", "")
        # Where there is no room for all, what stands out is kept before what does not change.
        endings: tuple[Line, ...] = ([column, ranks, ("   critical path off", "")], [column, ranks], [column])
        if self._path is not None:
            path = (f"   {self._path_words}", "accent")
            endings = ([column, ranks, path], [column, path], [path], [column])
        for ending in endings:
            if width_of([*line, *ending]) <= width:
                return [*line, *ending]
        return shortened(line, width)


class _Status(NamedTuple):
    """The lines about the range, and on a tall screen about the last mark, below the details.

    On a low screen there is one line for the range, or else for the mark, if there is one.
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


def _first_lines(span_lines: list[Line], rows: int, width: int) -> list[Line]:
    """Returns the first lines of the details, as many as there is room for; dots where there are more.

    The two lines of a low screen hold all that matters of the others.
    """
    visible_lines: list[Line] = [[("  ", ""), *line] for line in span_lines[:rows]]
    if len(span_lines) > rows > 2:
        visible_lines[-1] = [
            *fitted(visible_lines[-1], min(width_of(visible_lines[-1]), width - 4)),
            (" ...", "dim"),
        ]
    return [
        *(shortened(line, width) for line in visible_lines),
        *[[] for _ in range(rows - len(visible_lines))],
    ]


def _lane_heights(visible_rows: list[LaneRow], rows: int) -> tuple[int, int]:
    """Returns how many lines a lane of work, and one of communication, has where all lanes are on the screen
    and there is room for more: work comes first.
    """
    work_lanes = sum(row.lane.by_majority for row in visible_rows)
    streams = len(visible_rows) - work_lanes
    work = min((rows - streams) // work_lanes, _HIGHEST) if work_lanes else 1
    return work, min((rows - work * work_lanes) // streams, work, _HIGHEST_STREAM) if streams else 1


def _sign_column(row: LaneRow, wide: bool) -> int:
    """Returns the column of the folding sign, -1 without one."""
    return 1 + (2 if wide else 1) * row.depth if row.sign.strip() else -1


def _column_heading(model: TimelineModel, left: int) -> str:
    """Returns the heading above the lanes: what they are sorted by, and what the share in each is of."""
    order = model.arrangement.order
    of_wide, of_narrow = model.source.of.facts.note_heading
    if left > 20:
        room = left - 4 - len(order.words) - len(order.column)
        of = of_wide if len(of_wide) < room else ""
        return f"  {order.words}{of:>{room}}  {order.column}"
    column = order.column[:_SHORT_COLUMN]
    if order.id:
        return f" sorted{column:>{left - 7}}"
    return f" lane {of_narrow:>{left - 11}} {column}"


def _lane_name(row: LaneRow, mark: str, wide: bool) -> str:
    """Returns cursor, folding, pin and title of a lane, indented by its depth."""
    lane, depth = row.lane, row.depth
    title = lane.title if wide else lane.short_title
    if row.pinned and depth == 0 and row.key.stream is not None:
        # Away from its own lane a stream names its ranks.
        whose = lane.whose if wide else lane.whose.removeprefix("stage ").removeprefix("rank ")
        title = f"{whose}: {title}"
    pin = "*" if row.pinned and depth == 0 else " "
    step = 2 if wide else 1
    if row.key.stream is not None and depth:
        return f"{mark}{' ' * step * (depth - 1)}   {title}"
    return f"{mark}{' ' * step * depth}{row.sign}{pin}{title}"


def _format_label(name: str, ranks: str, match_count: int, busy: str, left: int, role: str) -> Line:
    """Returns a lane's name, how many ranks it is of, how many matches it has, and its busy share, in `left`
    cells: the share complete, each count complete or absent, that of the matches first.
    """
    share = f"{busy:>4}" if len(busy) < 4 else f" {busy}"
    room = left - len(share)
    matches = f"/{format_count(match_count)}" if match_count else ""
    if len(name) + len(matches) >= room:
        matches = ""
    if matches and len(name) + len(matches) + len(ranks) + 1 < room:
        ranks = f"{ranks} " if ranks else ""
    elif matches or len(name) + len(ranks) >= room:
        ranks = ""
    start = name[:room].ljust(room - len(matches) - len(ranks)) + ranks
    if not matches:
        return [(start + share, role)]
    return [(start, role), (matches, f"{role}{UNDERLINED}"), (share, role)]


def _reverse_cell(line: Line, column: int) -> Line:
    """Returns the line with the cell at `column` in reverse: the cursor on its lane."""
    ends: list[int] = []
    position = 0
    for text, _ in line:
        position += len(text)
        ends.append(position)
    index = bisect_right(ends, column)
    if index == len(line):
        return line
    text, role = line[index]
    at = column - (ends[index] - len(text))
    plain, inverse = (
        (role, f"{role} reversed") if not role.endswith("reversed") else (role, role[: -len(" reversed")])
    )
    parts = [(text[:at], plain), (text[at], inverse), (text[at + 1 :], plain)]
    return [*line[:index], *[part for part in parts if part[0]], *line[index + 1 :]]
