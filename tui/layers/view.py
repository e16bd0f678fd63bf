"""The layer table on the screen: only the lines in view are made."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

from textual.binding import BindingType

from simcore.analysis import Results
from simcore.analysis.layer_places import longest_span
from simcore.collectives import NAMES
from simcore.simulation import explain_alone
from simcore.units import duration, plural
from simcore.workload.model import PHASES
from tui.frame import Line, cells, fitted, rule, width_of, wrapped
from tui.layers.table import (
    MOST_PRICED,
    OF_PATH,
    PRICED,
    SORTED_BY,
    Table,
    TableLine,
    columns_for,
    row_texts,
)
from tui.prompt import LivePrompt
from tui.screen_view import ScreenView, binding
from tui.session import Run, Session

if TYPE_CHECKING:
    from tui.app import WltuiApp


class LayersView(ScreenView):
    """Rows of the file with their times, collectives and bandwidths."""

    BINDINGS: ClassVar[list[BindingType]] = [
        binding("j,down", "move(1)", "next line", "layers.down"),
        binding("k,up", "move(-1)", "line above", "layers.up"),
        binding("pagedown", "move(20)", "page down", "layers.page-down"),
        binding("pageup", "move(-20)", "page up", "layers.page-up"),
        binding("g,home", "move(-10000000)", "first line", "layers.first"),
        binding("G,end", "move(10000000)", "last line", "layers.last"),
        binding("l,right,greater_than_sign", "column(1)", "next column", "layers.column-right"),
        binding("h,left,less_than_sign", "column(-1)", "column before", "layers.column-left"),
        binding("s", "sort", "sort by this column; again: the other way round", "layers.sort"),
        binding("S", "unsort", "the order that the table opens in", "layers.unsort"),
        binding("slash", "search", "find a name, a collective, a group", "layers.search"),
        binding("n", "match(1)", "next match", "layers.next-match"),
        binding("N", "match(-1)", "match before", "layers.previous-match"),
        binding("backslash", "filter", "show only what has these words", "layers.filter"),
        binding("space", "each_row", "each row of the file, or equal rows together", "layers.unfold"),
        binding("enter", "go", "the timeline at its longest span", "layers.go"),
        binding("escape", "leave", "remove the filter; again: back to the timeline", "layers.leave"),
    ]

    session: Session

    def __init__(self, session: Session, *, ascii_only: bool, id: str | None = None) -> None:
        super().__init__(session, ascii_only=ascii_only, id=id)
        self.every_row = False
        self.line = 0
        self.top = 0
        self.column = 0
        self._found = ""
        self._prompt: LivePrompt | None = None
        self._before: tuple[int, str] = (0, "")
        self.table = Table(session.current, self.every_row)
        self.hints = self._hints()

    @property
    def _app(self) -> WltuiApp:
        return cast("WltuiApp", self.app)

    def _hints(self) -> tuple[tuple[str, str], ...]:
        """Only keys that do something here and now."""
        hints = [("jk", "row"), ("hl", "column"), ("s", "sort")]
        hints.append(("Esc", "no filter") if self.table.typed else ("\\", "filter"))
        hints.append(("n N", "match") if self._found else ("/", "find"))
        return (*hints, ("Enter", "timeline"), ("Space", "each row / equal rows together"))

    def show(self, results: Run) -> None:
        assert isinstance(results, Results)
        self._new_table(results)
        self.action_move(0)

    def _new_table(self, results: Results) -> None:
        """The table of another run or of other units, in the order and with the filter of this one."""
        old, self.table = self.table, Table(results, self.every_row)
        self.table.filter(old.typed)
        known = old.key not in OF_PATH or self.table.learn_path()
        if old.key and known and not self._too_many(old.key):
            self.table.sort(old.key, old.descending)

    def _look_for_path(self) -> None:
        """What the critical path has of each row, from a worker when the screen is first drawn."""
        if not self.table.learn_path() and self.is_mounted:
            results = self.session.current
            if self._app.layer_paths.of(results, lambda _, cancelled: results.compute_layer_path(cancelled)):
                self.table.learn_path()

    def draw(self, width: int, height: int) -> list[Line]:
        columns = columns_for(width)
        if any(SORTED_BY.get(heading, ("",))[0] in OF_PATH for heading, *_ in columns):
            self._look_for_path()
        self.column = min(self.column, len(columns) - 1)
        origin = self._origin(width)
        rows = max(height - 3 - len(origin), 1)
        table = self.table.lines
        self.top = max(0, min(self.top, len(table) - rows))
        # The name of the row at the cursor, in its first line, is on the screen too where there is room.
        self.top = max(min(self.top, self._first_line()), self.line - rows + 1)
        heading: Line = [(" ", "")]
        for place, (name, size, left) in enumerate(columns):
            here = " reversed" if place == self.column else ""
            sign = self._sign(name)
            # Where a heading fills its column the sign stands behind it.
            inside = sign if len(name) < size else ""
            words = self._aligned(f"{name}{inside}" if left else f"{inside}{name}", size, left)
            role = f"{'accent' if sign else 'bright'}{here}"
            heading += [(words[:-1], role), (" " if inside else sign or " ", "accent")]
        # Under the heading of the chosen column, for who sees no reversed cells.
        left_of = 1 + sum(size + 1 for _, size, _ in columns[: self.column])
        under = self.glyphs.view * columns[self.column][1]
        line_below = [(self.glyphs.horizontal * left_of, "dim"), (under, "accent")]
        line_below.append((self.glyphs.horizontal * width, "dim"))
        lines: list[Line] = [self._title(columns, width), heading, fitted(line_below, width)]
        for index, line in enumerate(table[self.top : self.top + rows], self.top):
            lines.append(self._row(line, columns, index == self.line, width))
        lines += [[] for _ in range(3 + rows - len(lines))]
        return lines + origin

    def _title(self, columns: list[tuple[str, int, bool]], width: int) -> Line:
        """How many rows, in which order, which of them; the order in fewer words where there is no room."""
        order, short = "equal ones together, dearest first", "dearest first"
        if self.every_row:
            order = short = "in file order"
        if self.table.key:
            name = next(name for name, (key, _) in SORTED_BY.items() if key == self.table.key)
            end = "largest" if self.table.descending else "smallest"
            order, short = f"sorted by {name}, from the {end}", f"{end} {name} first"
        line = self._titled(order, columns)
        return line if width_of(line) <= width else self._titled(short, columns)

    def _titled(self, order: str, columns: list[tuple[str, int, bool]]) -> Line:
        of_rank = any(heading == "all ms" for heading, *_ in columns)
        words = f", {order}; " + ("all: a rank's compute" if of_rank else "crit.: on the critical path")
        # What does nothing has no line: the lines alone would not add up.
        count = self.table.empty(self.table.typed)
        empty = f", {count} empty" if count else ""
        if not self.table.typed:
            return [(f" {plural(len(self.session.current.simulation.workload), 'row')}{empty}{words}", "dim")]
        left, whole = self.table.rows()
        filtered = f" filter {cells(self.table.typed, 30)}: {left} of {whole} rows{empty}"
        return [(filtered, "accent"), (words, "dim")]

    def _sign(self, heading: str) -> str:
        """Which way round a column is sorted; "" for the others."""
        if not self.table.key or SORTED_BY.get(heading, ("",))[0] != self.table.key:
            return ""
        return "v" if self.table.descending else "^"

    def _row(self, line: TableLine, columns: list[tuple[str, int, bool]], focused: bool, width: int) -> Line:
        texts = row_texts(line, self.session.current.simulation.step_time_ns)
        words = "".join(self._aligned(texts[heading], size, left) for heading, size, left in columns)
        mark = ">" if focused else " "
        return [(f"{mark}{words}".ljust(width), "accent" if focused else "")]

    @staticmethod
    def _aligned(text: str, size: int, left: bool) -> str:
        return f"{text:<{size}} " if left else f"{text:>{size}} "

    def _origin(self, width: int) -> list[Line]:
        """Where the price under the cursor comes from."""
        if not self.table.lines:
            none = self.table.no_match(self.table.typed) if self.table.typed else "no row does anything"
            return [rule(none, width, self.glyphs)]
        line = self.table.lines[self.line]
        cell = line.cell
        rows = line.group.rows
        where = f"line {rows[0].line}" + (f" and {len(rows) - 1} more" if len(rows) > 1 else "")
        title = f"Where it comes from: {cells(line.group.name, 40)}, {line.phase}, {where}"
        lines: list[Line] = [rule(title, width, self.glyphs)]
        simulation = self.session.current.simulation
        if cell.collective and cell.group and cell.bytes:
            words = explain_alone(
                simulation, cell.collective, cell.group, simulation.priced_bytes(line.phase, cell.bytes)
            )
        else:
            words = "no collective in this phase"
            if cell.collective and cell.bytes:
                words = f"{NAMES[cell.collective]}: the policy lets nobody take part in it"
        lines += [[("  " + text, "")] for text in wrapped(words, width - 4)]
        scale = simulation.parameters.compute_scale
        factor = "" if scale == 1.0 else f", already times compute scale {scale:g}"
        compute = f"compute {duration(cell.compute_ns)} a run, from the file{factor}"
        if not cell.is_modelled:
            compute = f"compute not modelled in the file ({duration(cell.compute_ns)})"
        lines.append([("  " + compute, "dim")])
        return lines

    def changed(self) -> None:
        """Show where one is now, and the keys that do something there."""
        self.line = max(0, min(self.line, len(self.table.lines) - 1))
        self.redraw()
        self.show_hints(self._hints())

    def action_move(self, by: int) -> None:
        self.line = max(0, min(self.line + by, len(self.table.lines) - 1))
        self.redraw()

    def action_each_row(self) -> None:
        here = self._here()
        self.every_row = not self.every_row
        self._new_table(self.session.current)
        self.line = self._line_of(here)
        self.redraw()

    def _here(self) -> tuple[int, str] | None:
        """(row of the file, phase) that the cursor is on, the first of equal rows."""
        if not self.table.lines:
            return None
        line = self.table.lines[self.line]
        return line.group.rows.indices[0], line.phase

    def _line_of(self, here: tuple[int, str] | None) -> int:
        """Where that is now; the row's first line where its phase has none."""
        if here is None:
            return 0
        lines, (row, phase) = self.table.lines, here
        first = lines.line_of(row)
        own = range(first, min(first + len(PHASES), len(lines)))
        return next(
            (at for at in own if row in lines[at].group.rows.indices and lines[at].phase == phase), first
        )

    def _first_line(self) -> int:
        """The line with the name of the row at the cursor."""
        at = self.line
        while at > 0 and not self.table.lines[at].first:
            at -= 1
        return at

    async def action_go(self) -> None:
        """The timeline at the longest span of the line's phase, else of its rows."""
        if not self.table.lines:
            return
        line = self.table.lines[self.line]
        rows, timeline = frozenset(line.group.rows.indices), self.session.current.simulation.timeline
        seen = longest_span(timeline, rows, line.phase) or longest_span(timeline, rows)
        if seen is None:
            self._app.say("these rows take no time in the step")
        else:
            await self._app.go_to(*seen)

    # -- order -------------------------------------------------------------------------

    def action_column(self, by: int) -> None:
        self.column = max(0, min(self.column + by, len(columns_for(self.size.width)) - 1))
        self.redraw()

    def action_sort(self) -> None:
        """By the column of the cursor; the cursor stays on its row."""
        name = columns_for(self.size.width)[self.column][0]
        if name not in SORTED_BY:
            self._app.say("the phases of a row stay together: another column sorts")
            return
        key, descending = SORTED_BY[name]
        if key in OF_PATH and not self.table.learn_path():
            self._app.say("the critical path is looked for: s again when the column has figures")
        elif self._too_many(key):
            words = f"{name} is priced row by row: not for more than {MOST_PRICED} rows"
            self._app.say(words)
        else:
            self._sort(key, not self.table.descending if self.table.key == key else descending)

    def _too_many(self, key: str) -> bool:
        return key in PRICED and len(self.table.layers.first_row) > MOST_PRICED

    def action_unsort(self) -> None:
        self._sort("", True)

    def _sort(self, key: str, descending: bool) -> None:
        here = self._here()
        self.table.sort(key, descending)
        self.line = self._line_of(here)
        self.redraw()

    # -- find and filter ---------------------------------------------------------------

    def action_filter(self) -> None:
        """Only what has the words, while they are typed; Esc leaves the table as it was."""
        self._before = self.line, self.table.typed
        self._prompt = LivePrompt("filter", self.table.typed, self._filter_typed)
        self.app.push_screen(self._prompt, self._filtered)

    def _filter_typed(self, text: str) -> None:
        here = self._here()
        self.table.filter(text)
        self.line = self._line_of(here)
        if self._prompt is not None:
            left, whole = self.table.rows()
            empty = self.table.empty(text)
            self._prompt.say(f"{left} of {plural(whole, 'row')}" + (f", {empty} empty" if empty else ""))
        self.changed()

    def _filtered(self, text: str | None) -> None:
        self._prompt = None
        if text is None:
            line, typed = self._before
            self.table.filter(typed)
            self.line = line
        self.changed()

    def action_search(self) -> None:
        """To the first row that has the words, while they are typed; Esc goes back."""
        self._before = self.line, self._found
        self._prompt = LivePrompt("/", "", self._search_typed)
        self.app.push_screen(self._prompt, self._searched)

    def _search_typed(self, text: str) -> None:
        self.line = self._before[0]
        place = self.table.find(text, self.line, 1)
        if place is not None:
            self.line = place
        if self._prompt is not None:
            self._prompt.say(self.table.no_match(text) if place is None and text.strip() else "")
        self.redraw()

    def _searched(self, text: str | None) -> None:
        self._prompt = None
        if text is None or not text.strip():
            self.line, self._found = self._before
        else:
            self._found = text
        self.changed()

    def action_match(self, direction: int) -> None:
        if not self._found:
            self._app.say("nothing was searched for: / does")
            return
        place = self.table.find(self._found, self.line + direction, direction)
        if place is None:
            words = f"{self.table.no_match(self._found)}: {cells(self._found, 40)}"
            self._app.say(words)
        else:
            self.line = place
            self.redraw()

    async def action_leave(self) -> None:
        """The filter off, else back to the timeline."""
        if self.table.typed:
            here = self._here()
            self.table.filter("")
            self.line = self._line_of(here)
            self.changed()
        else:
            await self._app.action_open("timeline")
