"""Screen 3, the rows of a file or the operations of a trace as a table: only the lines in view are made."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, ClassVar, cast

from textual.binding import BindingType

from tui.frame import Line, cells, end_cut, fitted, middle_cut, rule, scrolled, width_of
from tui.frame_view import ScreenView, binding
from tui.layers.source import table_of
from tui.layers.table import Column, Table
from tui.prompt import LivePrompt
from tui.session import Run, Session

if TYPE_CHECKING:
    from tui.runs.runs import RunsHost


class LayersView(ScreenView):
    """What rows of the file, or operations of a trace, take of the step, and where a figure comes from."""

    BINDINGS: ClassVar[list[BindingType]] = [
        binding("j,down", "move(1)", "next line", "layers.down"),
        binding("k,up", "move(-1)", "line above", "layers.up"),
        binding("pagedown", "move(20)", "page down", "layers.page-down"),
        binding("pageup", "move(-20)", "page up", "layers.page-up"),
        binding("g,home", "move(-10000000)", "first line", "layers.first"),
        binding("G,end", "move(10000000)", "last line", "layers.last"),
        binding("l,right", "column(1)", "next column", "layers.column-right"),
        binding("h,left", "column(-1)", "column before", "layers.column-left"),
        binding("o", "sort", "sort by this column; again: the other way round", "layers.sort"),
        binding("O", "unsort", "the order that the table opens in", "layers.unsort"),
        binding("slash", "search", "find a name, a collective, a group", "layers.search"),
        binding("n", "match(1)", "next match", "layers.next-match"),
        binding("N", "match(-1)", "match before", "layers.previous-match"),
        binding("backslash", "filter", "show only what has these words", "layers.filter"),
        binding("space,I", "each_row", "each row or rank alone, or equal ones together", "layers.unfold"),
        binding("i", "group", "by kernel, launching operation or layer", "layers.group"),
        binding("enter", "go", "the timeline at its longest span", "layers.go"),
        binding("escape", "leave", "remove the filter; again: back to the timeline", "layers.leave"),
    ]

    def __init__(self, session: Session, *, ascii_only: bool, id: str | None = None) -> None:
        super().__init__(session, ascii_only=ascii_only, id=id)
        self.line = 0
        self.top = 0
        self.column = 0
        self._found = ""
        self._prompt: LivePrompt | None = None
        self._before: tuple[int, str] = (0, "")
        self.table: Table = table_of(session.current)
        self.hints = self._hints()

    @property
    def _app(self) -> RunsHost:
        return cast("RunsHost", self.app)

    def _hints(self) -> tuple[tuple[str, str], ...]:
        """Only keys that do something here and now."""
        hints = [("jk", "row"), ("hl", "column"), ("o", "sort")]
        hints.append(("Esc", "no filter") if self.table.typed else ("\\", "filter"))
        hints.append(("n N", "match") if self._found else ("/", "find"))
        hints.append(("Enter", "timeline"))
        if self.table.can_regroup:
            hints.append(("i", "group by"))
        return (*hints, ("Space", self.table.hint)) if self.table.hint else tuple(hints)

    def show(self, results: Run) -> None:
        new = table_of(results)
        self._take(new.apart(True) if self.table.each else new)
        self.action_move(0)

    def _take(self, new: Table) -> None:
        """The table of another run or of other units, in the order and with the filter of this one."""
        old, self.table = self.table, new
        new.filter(old.typed)
        heading = next((name for name, (key, _) in new.sorted_by.items() if key == old.key), None)
        if heading is not None and not new.cannot_sort(heading):
            new.sort(old.key, old.descending)

    def _look_for_path(self) -> None:
        """What the critical path has of each row, from a worker when the screen is first drawn."""
        table = self.table
        if table.learn_path() or not self.is_mounted:
            return
        if self._app.layer_paths.of(table.subject, lambda _, cancelled: table.find_path(cancelled)):
            table.learn_path()

    def frame(self, width: int, height: int) -> list[Line]:
        table = self.table
        columns = table.columns_for(width)
        if any(table.sorted_by.get(one.heading, ("",))[0] in table.of_path for one in columns):
            self._look_for_path()
        self.column = min(self.column, len(columns) - 1)
        origin = self._origin(width)
        rows = max(height - 3 - len(origin), 1)
        count = len(table.lines)
        # The name of the row at the cursor, in its first line, is on the screen too where there is room.
        first = table.first_line(self.line) if count else 0
        self.top = scrolled(self.top, count, rows, self.line, first)
        lines = [self._title(columns, width), *self._heading(columns, width)]
        in_view = range(self.top, min(self.top + rows, count))
        lines += [self._row(line, columns, width) for line in in_view]
        lines += [[] for _ in range(3 + rows - len(lines))]
        return lines + origin

    def _heading(self, columns: Sequence[Column], width: int) -> list[Line]:
        """The headings, and under them a rule that shows which one is chosen."""
        heading: Line = [(" ", "")]
        for place, one in enumerate(columns):
            here = " reversed" if place == self.column else ""
            sign = self._sign(one.heading)
            # Where a heading fills its column the sign stands behind it.
            inside = sign if len(one.title) < one.size else ""
            words = _aligned(f"{one.title}{inside}" if one.left else f"{inside}{one.title}", one)
            role = f"{'accent' if sign else 'bright'}{here}"
            heading += [(words[:-1], role), (" " if inside else sign or " ", "accent")]
        # Under the heading of the chosen column, for who sees no reversed cells.
        left_of = 1 + sum(one.size + 1 for one in columns[: self.column])
        under = self.glyphs.view * columns[self.column].size
        line_below = [(self.glyphs.horizontal * left_of, "dim"), (under, "accent")]
        line_below.append((self.glyphs.horizontal * width, "dim"))
        return [heading, fitted(line_below, width)]

    def _title(self, columns: Sequence[Column], width: int) -> Line:
        """How many rows, in which order, which of them; the order in fewer words where there is no room."""
        table = self.table
        order, few = table.order()
        if table.key:
            name = next(name for name, (key, _) in table.sorted_by.items() if key == table.key)
            end = "largest" if table.descending else "smallest"
            order, few = f"sorted by {name}, from the {end}", f"{end} {name} first"
        line = self._titled(order, table.legend(columns, False))
        return line if width_of(line) <= width else self._titled(few, table.legend(columns, True))

    def _titled(self, order: str, legend: str) -> Line:
        words = f", {order}; {legend}" if legend else f", {order}"
        if not self.table.typed:
            return [(f" {self.table.counted()}{words}", "dim")]
        filtered = f" filter {cells(self.table.typed, 30)}: {self.table.left()}"
        return [(filtered, "accent"), (words, "dim")]

    def _sign(self, heading: str) -> str:
        """Which way round a column is sorted; "" for the others."""
        if not self.table.key or self.table.sorted_by.get(heading, ("",))[0] != self.table.key:
            return ""
        return "v" if self.table.descending else "^"

    def _row(self, line: int, columns: Sequence[Column], width: int) -> Line:
        texts, focused = self.table.texts(line), line == self.line
        words = "".join(_aligned(texts[one.heading], one) for one in columns)
        mark = ">" if focused else " "
        return [(f"{mark}{words}".ljust(width), "accent" if focused else "")]

    def _origin(self, width: int) -> list[Line]:
        """Where the figures under the cursor come from."""
        table = self.table
        if not table.lines:
            return [rule(table.no_match(table.typed), width, self.glyphs)]
        title, lines = table.origin(self.line, width - 4)
        head = rule(f"Where it comes from: {title}", width, self.glyphs)
        return [head, *([(f"  {text}", role)] for text, role in lines)]

    def changed(self) -> None:
        """Show where one is now, and the keys that do something there."""
        self.line = max(0, min(self.line, len(self.table.lines) - 1))
        self.redraw()
        self.show_hints(self._hints())

    def action_move(self, by: int) -> None:
        self.line = max(0, min(self.line + by, len(self.table.lines) - 1))
        self.redraw()

    def action_each_row(self) -> None:
        if not self.table.hint:
            self._app.say("a single rank has nothing to take apart")
            return
        here = self._here()
        self._take(self.table.apart(not self.table.each))
        self._go_back(here)
        self.redraw()

    def action_group(self) -> None:
        new = self.table.regrouped()
        if new is None:
            self._app.say("what launched these, and in which layer, is not in the file")
            return
        new.filter(self.table.typed)
        self.table, self.line = new, 0
        self.changed()

    def _here(self) -> Hashable | None:
        """What the line of the cursor is of."""
        return self.table.mark(self.line) if self.table.lines else None

    def _go_back(self, here: Hashable | None) -> None:
        """The cursor to where that is now."""
        self.line = 0 if here is None else self.table.line_of(here)

    async def action_go(self) -> None:
        """The timeline at the longest span of the line."""
        if not self.table.lines:
            return
        place = self.table.place(self.line)
        if place is None:
            self._app.say("these rows take no time in the step")
        else:
            await self._app.go_to(*place)

    # -- order -------------------------------------------------------------------------

    def action_column(self, by: int) -> None:
        self.column = max(0, min(self.column + by, len(self.table.columns_for(self.size.width)) - 1))
        self.redraw()

    def action_sort(self) -> None:
        """By the column of the cursor; the cursor stays on its row."""
        table = self.table
        heading = table.columns_for(self.size.width)[self.column].heading
        why_not = table.cannot_sort(heading)
        if why_not:
            self._app.say(why_not)
            return
        key, descending = table.sorted_by[heading]
        self._sort(key, not table.descending if table.key == key else descending)

    def action_unsort(self) -> None:
        self._sort("", True)

    def _sort(self, key: str, descending: bool) -> None:
        here = self._here()
        self.table.sort(key, descending)
        self._go_back(here)
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
        self._go_back(here)
        if self._prompt is not None:
            self._prompt.say(self.table.left())
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
            nothing = self.table.no_match(text) if place is None and text.strip() else ""
            self._prompt.say(nothing or (self.table.inside(text, self.line) if text.strip() else ""))
        self.redraw()

    def _searched(self, text: str | None) -> None:
        self._prompt = None
        if text is None or not text.strip():
            self.line, self._found = self._before
        else:
            self._found = text
            self._say_inside()
        self.changed()

    def _say_inside(self) -> None:
        """Which row of the group at the cursor it was that was found."""
        words = self.table.inside(self._found, self.line) if self.table.lines else ""
        if words:
            self._app.say(words)

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
            self._say_inside()
            self.redraw()

    def go_to_line(self, words: str, line: int) -> None:
        """The cursor to a line that was found by `words`; `n` goes on from there."""
        self._found = words
        self.line = min(line, max(len(self.table.lines) - 1, 0))
        self.changed()

    async def action_leave(self) -> None:
        """The filter off, else back to the timeline."""
        if self.table.typed:
            here = self._here()
            self.table.filter("")
            self._go_back(here)
            self.changed()
        else:
            await self._app.action_open("timeline")


def _aligned(text: str, column: Column) -> str:
    text = (middle_cut if column.ends else end_cut)(text, column.size)
    return f"{text:<{column.size}} " if column.left else f"{text:>{column.size}} "
