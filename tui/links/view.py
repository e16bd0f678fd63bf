"""Screen 9's widget: the picture of the tiers over the table of ports, and the flows at a time."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType

from simcore.records import replace
from simcore.trace.ports import Ports
from tui.frame import Glyphs, Line, cells, rule, shortened
from tui.frame_view import binding
from tui.links.frame import (
    PortCursor,
    cell_words,
    congestion_words,
    hot_words,
    measure_words,
    picture_lines,
    port_lines,
    send_lines,
    send_text,
    sends_title,
    time_line,
)
from tui.links.table import PortTable
from tui.panel import Panel
from tui.panels_view import panel_bindings
from tui.session import Run, Session
from tui.table_view import TableView, table_bindings

# The most tiers of a picture.
_MOST_TIERS = 12
# Parts of the step that a key moves the time by.
_TIME_STEPS = 60
_NO_TIMES = "messages have sums alone here: their times are not kept"
_TO_COLLECTIVE = "its collective in the timeline"
_AS_RUN = "tries it as another run"


class LinksView(TableView):
    """Where a network is hot: ports by tier, and a line a port."""

    table: PortTable

    BINDINGS: ClassVar[list[BindingType]] = [
        *(one for one in table_bindings("links", "find a port, a group, a layer", "only ports of these words")
          if one.action not in ("column(1)", "column(-1)", "move(1)", "move(-1)")),
        binding("j,down", "go_down(1)", "next tier, or next port of the table", "links.down"),
        binding("k,up", "go_down(-1)", "tier above, or port above", "links.up"),
        binding("l,right", "go_right(1)", "next port of the tier, or next column", "links.right"),
        binding("h,left", "go_right(-1)", "port before, or column before", "links.left"),
        *panel_bindings("links"),
        binding("enter", "flows", "the flows on this port at this time", "links.go"),
        binding("t", "try", "try this link failed, slower or faster, or other paths", "links.try"),
        binding("i", "measure", "load (bytes of what a port could carry), how long it is full (holds flows "
                "back), or flows at this time", "links.shown"),
        binding("full_stop", "change(1)", "when the flows of this port change next", "links.next-change"),
        binding("comma", "change(-1)", "when they changed before", "links.previous-change"),
        binding("d", "time(1)", "later", "links.pan-right"),
        binding("a", "time(-1)", "earlier", "links.pan-left"),
        binding("escape", "leave", "remove the filter; again: back to the timeline", "links.leave"),
    ]  # fmt: skip

    def __init__(self, session: Session, *, ascii_only: bool, id: str | None = None) -> None:
        super().__init__(session, ascii_only=ascii_only, id=id)
        self._is_in_table = False
        # The cursor of the timeline when it was last taken over.
        self._timeline_ns = -1
        self._set_ports(session.current)
        self.hints = self._hints()

    def _set_ports(self, run: Run) -> None:
        ports = run.network.ports or Ports((), (), run.step_time_ns, "flow")
        self.table = PortTable(ports, self.glyphs)
        self.cursor = PortCursor(ports)

    def _hints(self) -> tuple[tuple[str, str], ...]:
        hints = [("Tab", "picture" if self._is_in_table else "table"), ("hjkl", "port")]
        if self.table.ports.has_times:
            hints += [("Enter", "flows"), (", .", "time"), ("t", "what if"), ("i", "measure")]
        if self._is_in_table:
            hints += [("o", "sort")]
        return (*hints, ("Esc", "no filter") if self.table.typed else ("\\", "filter"), ("/", "find"))

    def on_show(self) -> None:
        """Takes over the time of the timeline's cursor where that has been moved."""
        view = self._app.views.get("timeline")
        if view is None:
            return
        # Imported here: it is there only where the timeline was opened.
        from tui.timeline.view import TimelineView

        assert isinstance(view, TimelineView)
        model = view.model
        # The middle of the step is where it is at first.
        if model.cursor_ns not in (self._timeline_ns, model.window.step_ns // 2):
            self._timeline_ns = model.cursor_ns
            self.cursor.time_ns = self._timeline_ns
            self.redraw()

    def show(self, results: Run) -> None:
        old, cursor = self.table, self.cursor
        name = cursor.ports.all[cursor.index].name if cursor.ports.all else ""
        self._set_ports(results)
        self.table.filter(old.typed)
        if any(key == old.key for key, _ in self.table.sorted_by.values()):
            self.table.sort(old.key, old.descending)
        self.cursor.measure = cursor.measure
        index = next((index for index, port in enumerate(self.cursor.ports.all) if port.name == name), None)
        if index is not None:
            self.cursor.index = index
        self._take_cursor()
        self.redraw()

    # -- the picture -----------------------------------------------------------------

    def frame(self, width: int, height: int) -> list[Line]:
        ports = self.table.ports
        if not ports.all:
            return [rule("this run has no links", width, self.glyphs)]
        lines: list[Line] = [shortened([(f" {cells(hot_words(ports, width - 1), 400)}", "bright")], width)]
        if ports.congestion:
            lines.append([(f" {cells(congestion_words(ports, width - 1), width - 1)}", "warn")])
        focus = "" if self._is_in_table else "> "
        title = f"{focus}Ports by tier{cell_words(self.cursor, width)}: {measure_words(self.cursor)}"
        lines.append(rule(title, width, self.glyphs))
        tiers = min(len(ports.tiers), _MOST_TIERS, max(height // 3, 3))
        lines += picture_lines(self.cursor, width, tiers, self.glyphs, not self._is_in_table)
        lines += time_line(self.cursor, width, self.glyphs)
        lines += port_lines(self.cursor, width)
        room = height - len(lines) - 4
        count = len(self.table.lines)
        rows = max(min(room, max(count, 1)), 1)
        # On a tall screen the flows have a third of the rows that the table would have.
        shown_sends = len(ports.sends_at(self.cursor.index, self.cursor.time_ns)) + 1
        below = min(max(room - rows, room // 3 if room > 16 else 0), shown_sends)
        rows = max(min(rows, room - below), 1)
        focus = "> " if self._is_in_table else ""
        lines.append(rule(f"{focus}Ports", width, self.glyphs))
        lines += self._table_lines(width, rows)
        return lines + send_lines(self.cursor, below, width, self.glyphs)

    # -- the cursor --------------------------------------------------------------------

    def _take_cursor(self) -> None:
        """Moves the cursor of the table to the port of the picture, where the table has that."""
        index = self.cursor.index
        if index in self.table.lines:
            self.line = self.table.lines.index(index)

    def _take_line(self) -> None:
        """Moves the cursor of the picture to the port of the table's line."""
        if self.table.lines:
            self.cursor.index = self.table.lines[self.line]

    def redraw(self) -> None:
        super().redraw()
        self.show_hints(self._hints())

    def action_panel(self, by: int) -> None:
        self._is_in_table = not self._is_in_table
        self.redraw()

    def action_go_down(self, by: int) -> None:
        if self._is_in_table:
            self.action_move(by)
        else:
            self.cursor.move(by, 0)
            self._take_cursor()
            self.redraw()

    def action_go_right(self, by: int) -> None:
        if self._is_in_table:
            self.action_column(by)
        else:
            self.cursor.move(0, by)
            self._take_cursor()
            self.redraw()

    def action_move(self, by: int) -> None:
        super().action_move(by)
        self._take_line()
        self.redraw()

    def changed(self) -> None:
        self._take_line()
        super().changed()

    def action_measure(self) -> None:
        self.cursor.next_measure()
        self.redraw()

    def action_change(self, direction: int) -> None:
        if not self.table.ports.has_times:
            self._app.say(_NO_TIMES)
        elif not self.cursor.go_to_change(direction):
            self._app.say(f"no flow of this port begins or ends {'later' if direction > 0 else 'earlier'}")
        self.redraw()

    def action_time(self, direction: int) -> None:
        if not self.table.ports.has_times:
            self._app.say(_NO_TIMES)
            return
        self.cursor.shift_time(direction * max(self.table.ports.step_ns // _TIME_STEPS, 1))
        self.redraw()

    # -- the flows -----------------------------------------------------------------------

    def action_flows(self) -> None:
        """Lists the flows on the port at the cursor's time."""
        if not self.table.ports.has_times:
            self._app.say(_NO_TIMES)
            return
        sends = self.cursor.ports.sends_at(self.cursor.index, self.cursor.time_ns)
        if not sends:
            self._app.say("no flow is on this port at this time: , and . go to one")
            return

        async def go_to_flow(line: int | None) -> None:
            purpose = None if line is None else sends[line].purpose
            if purpose is not None and purpose.job:
                self._app.say("the flow is of the other job: the timeline shows this one")
            elif purpose is not None:
                await self._app.go_to(purpose.track_id, purpose.start_ns, purpose.end_ns, purpose.group)

        title, texts = sends_title(self.cursor, len(sends)), list(map(send_text, sends))
        self.app.push_screen(ChoicePanel(title, texts, self.glyphs, _TO_COLLECTIVE), go_to_flow)

    def action_try(self) -> None:
        """Asks which change of this link, or of the paths, to try as another run."""
        changes = self.table.ports.changes_of(self.cursor.index) if self.table.ports.all else ()
        if not changes:
            self._app.say("there is no change of these links to try: --cluster and --network flows have some")
            return

        def try_it(line: int | None) -> None:
            if line is not None:
                setup, fields = self.session.current.setup, changes[line].fields
                parameters = replace(setup.parameters, **fields)
                self._app.runs.try_run(self.session.opened.setup.with_parameters(parameters))

        name_cells = max(len(change.name) for change in changes) + 1
        texts = [f"{change.name:<{name_cells}} {change.meaning or change.flags}" for change in changes]
        name = self.table.ports.all[self.cursor.index].name
        self.app.push_screen(ChoicePanel(f"What if, at {name}", texts, self.glyphs, _AS_RUN), try_it)

    async def action_leave(self) -> None:
        if self.table.typed:
            self.table.filter("")
            self._take_cursor()
            self.changed()
        else:
            await self._app.action_open("timeline")


class ChoicePanel(Panel):
    """Lines of which one is chosen: Enter gives its index."""

    CSS = "ChoicePanel { background: $background; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,t", "take", "take the line at the cursor"),
        Binding("j,down", "move(1)", "next line"),
        Binding("k,up", "move(-1)", "line above"),
    ]

    def __init__(self, title: str, texts: list[str], glyphs: Glyphs, does: str) -> None:
        """does: what Enter does with a line."""
        self._texts, self._line = texts, 0
        super().__init__(title, self._make_lines, glyphs, f"j k line   Enter {does}   Esc back")

    def _make_lines(self, width: int) -> list[Line]:
        marks = [(">", "accent") if at == self._line else (" ", "") for at in range(len(self._texts))]
        return [
            [(f"{mark} {cells(text, 200)}", role)]
            for (mark, role), text in zip(marks, self._texts, strict=True)
        ]

    def action_move(self, by: int) -> None:
        self._line = min(max(self._line + by, 0), len(self._texts) - 1)
        self._lines.keep = self._line
        self._lines.redraw()

    def action_take(self) -> None:
        self.dismiss(self._line)
