"""A screen that is a table: its cursor, its order, its search and its filter."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, cast

from textual.binding import Binding

from tui.frame import Line, cells, end_cut, fitted, middle_cut, scrolled, width_of
from tui.frame_view import ScreenView, binding
from tui.listing import ListColumn, Listing
from tui.prompt import LivePrompt
from tui.session import Session

if TYPE_CHECKING:
    from tui.runs.runs import RunsHost


NOTHING_SEARCHED = "nothing was searched for: / does"


def table_bindings(room: str, search: str, filters: str) -> list[Binding]:
    """Returns the keys of a table. search, filters: the help of finding and filtering."""
    return [
        binding("j,down", "move(1)", "next line", f"{room}.down"),
        binding("k,up", "move(-1)", "line above", f"{room}.up"),
        binding("pagedown", "move(20)", "page down", f"{room}.page-down"),
        binding("pageup", "move(-20)", "page up", f"{room}.page-up"),
        binding("g,home", "move(-10000000)", "first line", f"{room}.first"),
        binding("G,end", "move(10000000)", "last line", f"{room}.last"),
        binding("l,right", "column(1)", "next column", f"{room}.column-right"),
        binding("h,left", "column(-1)", "column before", f"{room}.column-left"),
        binding("o", "sort", "sort by this column; again: the other way round", f"{room}.sort"),
        binding("O", "unsort", "the order that the table opens in", f"{room}.unsort"),
        binding("slash", "search", search, f"{room}.search"),
        binding("n", "match(1)", "next match", f"{room}.next-match"),
        binding("N", "match(-1)", "match before", f"{room}.previous-match"),
        binding("backslash", "filter", filters, f"{room}.filter"),
    ]


class TableView(ScreenView):
    """A screen with a table. `table` has the lines; a subclass makes it before anything is drawn, and its
    `_hints`.
    """

    table: Listing

    def __init__(self, session: Session, *, ascii_only: bool, id: str | None = None) -> None:
        super().__init__(session, ascii_only=ascii_only, id=id)
        self._line = self._column = 0
        self.top = 0
        self._sought = ""
        self._prompt: LivePrompt | None = None
        self._before: tuple[int, str] = (0, "")

    @property
    def line(self) -> int:
        """The line of the cursor, in the table as it is now: a worker, a filter or another size may have left
        it fewer lines since it was drawn.
        """
        return max(0, min(self._line, len(self.table.lines) - 1))

    @line.setter
    def line(self, line: int) -> None:
        self._line = line

    @property
    def column(self) -> int:
        """The chosen column, in the table as it is now."""
        return max(0, min(self._column, len(self.table.columns_for(self._table_width)) - 1))

    @column.setter
    def column(self, column: int) -> None:
        self._column = column

    @property
    def _app(self) -> RunsHost:
        return cast("RunsHost", self.app)

    @property
    def _table_width(self) -> int:
        """Cells that the table has of each row."""
        return self.size.width

    def _hints(self) -> tuple[tuple[str, str], ...]:
        """Returns only the keys that do something here and now."""
        raise NotImplementedError

    def _table_lines(self, width: int, rows: int) -> list[Line]:
        """Returns title, headings, and `rows` lines around the cursor."""
        table = self.table
        columns = table.columns_for(width)
        count = len(table.lines)
        # The name of the row at the cursor, in its first line, is on the screen too where there is room.
        first = table.first_line(self.line) if count else 0
        self.top = scrolled(self.top, count, rows, self.line, first)
        lines = [self._title(columns, width), *self._heading(columns, width)]
        in_view = range(self.top, min(self.top + rows, count))
        lines += [self._row(line, columns, width) for line in in_view]
        return lines + [[] for _ in range(3 + rows - len(lines))]

    def _heading(self, columns: Sequence[ListColumn], width: int) -> list[Line]:
        """Returns the headings, and under them a rule that shows which one is chosen and what
        figures are of.
        """
        heading: Line = [(" ", "")]
        selected = min(self.column, len(columns) - 1)
        for index, column in enumerate(columns):
            here = " reversed" if index == selected else ""
            sign = self._sign(column.heading)
            # Where a heading fills its column the sign stands behind it.
            inside = sign if len(column.title) < column.size else ""
            words = _aligned(f"{column.title}{inside}" if column.left else f"{inside}{column.title}", column)
            role = f"{'accent' if sign else 'bright'}{here}"
            heading += [(words[:-1], role), (" " if inside else sign or " ", "accent")]
        line_below: Line = [(self.glyphs.horizontal, "dim")]
        for index, column in enumerate(columns):
            # Under the heading of the chosen column, for readers who see no reversed cells.
            is_selected = index == selected
            under = (self.glyphs.view if is_selected else self.glyphs.horizontal) * column.size
            words = f" {column.of}" if column.of and len(column.of) < column.size else column.of
            line_below.append((under[len(words) :], "accent" if is_selected else "dim"))
            line_below += [(words, ""), (self.glyphs.horizontal if not words else " ", "dim")]
        line_below.append((self.glyphs.horizontal * width, "dim"))
        return [heading, fitted(line_below, width)]

    def _title(self, columns: Sequence[ListColumn], width: int) -> Line:
        """Returns how many rows, in which order, which of them; in fewer words where there is no room."""
        table = self.table
        order, few = table.order()
        if table.key:
            name = next(name for name, (key, _) in table.sorted_by.items() if key == table.key)
            end = "largest" if table.descending else "smallest"
            order, few = f"sorted by {name}, from the {end}", f"{end} {name} first"
        short = table.legend(columns, True)
        # The last clause is the one that prevents a misreading.
        last = short.rpartition("; ")[2]
        forms = ((order, table.legend(columns, False)), (few, short), (few, last), (few, ""))
        lines = [self._title_line(*form) for form in forms]
        return next((line for line in lines if width_of(line) <= width), lines[-1])

    def _title_line(self, order: str, legend: str) -> Line:
        words = f", {order}; {legend}" if legend else f", {order}"
        if not self.table.typed:
            return [(f" {self.table.count_text()}{words}", "dim")]
        filtered = f" filter {cells(self.table.typed, 30)}: {self.table.left()}"
        return [(filtered, "accent"), (words, "dim")]

    def _sign(self, heading: str) -> str:
        """Returns the direction in which a column is sorted; "" for the others."""
        if not self.table.key or self.table.sorted_by.get(heading, ("",))[0] != self.table.key:
            return ""
        return "v" if self.table.descending else "^"

    def _row(self, line: int, columns: Sequence[ListColumn], width: int) -> Line:
        texts, focused = self.table.texts(line), line == self.line
        words = "".join(_aligned(texts[column.heading], column) for column in columns)
        mark = ">" if focused else " "
        return [(f"{mark}{words}".ljust(width), "accent" if focused else "")]

    def changed(self) -> None:
        """Shows the current state, and the keys that do something there."""
        self.redraw()
        self.show_hints(self._hints())

    def action_move(self, by: int) -> None:
        self.line = max(self.line + by, 0)
        self.redraw()

    def _current_mark(self) -> Hashable | None:
        """Returns the mark of the cursor's line."""
        return self.table.mark(self.line) if self.table.lines else None

    def _go_back(self, here: Hashable | None) -> None:
        """Moves the cursor to where the mark is now."""
        self.line = 0 if here is None else self.table.line_of(here)

    # -- order -------------------------------------------------------------------------

    def action_column(self, by: int) -> None:
        self.column = max(self.column + by, 0)
        self.redraw()

    def action_sort(self) -> None:
        """Sorts by the column of the cursor; the cursor stays on its row."""
        table = self.table
        columns = table.columns_for(self._table_width)
        if not columns:
            return
        heading = columns[self.column].heading
        why_not = table.cannot_sort(heading)
        if why_not:
            self._app.say(why_not)
            return
        key, descending = table.sorted_by[heading]
        self._sort(key, not table.descending if table.key == key else descending)

    def action_unsort(self) -> None:
        self._sort("", True)

    def _sort(self, key: str, descending: bool) -> None:
        here = self._current_mark()
        self.table.sort(key, descending)
        self._go_back(here)
        self.redraw()

    # -- find and filter ---------------------------------------------------------------

    def action_filter(self) -> None:
        """Filters by the words while they are typed; Esc leaves the table as it was."""
        self._before = self.line, self.table.typed
        self._prompt = LivePrompt("filter", self.table.typed, self._filter_typed)
        self.app.push_screen(self._prompt, self._filtered)

    def _filter_typed(self, text: str) -> None:
        here = self._current_mark()
        self.table.filter(text)
        self._go_back(here)
        if self._prompt is not None:
            self._prompt.show_answer(self.table.left())
        self.changed()

    def _filtered(self, text: str | None) -> None:
        self._prompt = None
        if text is None:
            line, typed = self._before
            self.table.filter(typed)
            self.line = line
        self.changed()

    def action_search(self) -> None:
        """Goes to the first row that has the words, while they are typed; Esc goes back."""
        self._before = self.line, self._sought
        self._prompt = LivePrompt("/", "", self._search_typed)
        self.app.push_screen(self._prompt, self._searched)

    def _search_typed(self, text: str) -> None:
        self.line = self._before[0]
        line = self.table.find(text, self.line, 1)
        if line is not None:
            self.line = line
        if self._prompt is not None:
            nothing = self.table.no_match(text) if line is None and text.strip() else ""
            self._prompt.show_answer(nothing or (self.table.inside(text, self.line) if text.strip() else ""))
        self.redraw()

    def _searched(self, text: str | None) -> None:
        self._prompt = None
        if text is None or not text.strip():
            self.line, self._sought = self._before
        else:
            self._sought = text
            self._say_inside()
        self.changed()

    def _say_inside(self) -> None:
        """Says which row of the group at the cursor matched."""
        words = self.table.inside(self._sought, self.line) if self.table.lines else ""
        if words:
            self._app.say(words)

    def action_match(self, direction: int) -> None:
        if not self._sought:
            self._app.say(NOTHING_SEARCHED)
            return
        line = self.table.find(self._sought, self.line + direction, direction)
        if line is None:
            words = f"{self.table.no_match(self._sought)}: {cells(self._sought, 40)}"
            self._app.say(words)
        else:
            self.line = line
            self._say_inside()
            self.redraw()

    def go_to_line(self, words: str, line: int) -> None:
        """Moves the cursor to a line that was found by `words`; `n` goes on from there."""
        self._sought = words
        self.line = min(line, max(len(self.table.lines) - 1, 0))
        self.changed()


def _aligned(text: str, column: ListColumn) -> str:
    text = (middle_cut if column.ends else end_cut)(text, column.size)
    return f"{text:<{column.size}} " if column.left else f"{text:>{column.size}} "
