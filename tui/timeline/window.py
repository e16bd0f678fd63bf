"""The stretch of time that the screen shows and the cursor in it; the range and the marks.

Zoom, pan, cursor and the history of views; the selected range, and the positions of marks.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from simcore.records import NamedTuple, Struct
from tui.timeline.lanes import LaneKey

_HISTORY = 100
# The columns of a span that a jump zooms in on: of three at least one is its own.
_COLUMNS_OF_SPAN = 3


class Window(Struct, frozen=True):
    """The stretch first_ns..first_ns + span_ns of a step of step_ns."""

    first_ns: int
    span_ns: int
    step_ns: int

    @classmethod
    def whole(cls, step_ns: int) -> Window:
        """Returns the whole step; a step of 0 ns is shown as 1 ns."""
        return cls(0, max(step_ns, 1), max(step_ns, 1))

    @property
    def last_ns(self) -> int:
        return self.first_ns + self.span_ns

    def edges(self, columns: int) -> list[int]:
        """Returns the times between the columns: `columns` + 1 of them."""
        first, span = self.first_ns, self.span_ns
        return [first + span * column // columns for column in range(columns + 1)]

    def column(self, time_ns: int, columns: int) -> int:
        """Returns the column that holds `time_ns`; it may lie outside 0..columns-1."""
        # The last column whose left edge is not after the time: edges are floors, as in drawing.
        return -(-(time_ns - self.first_ns + 1) * columns // self.span_ns) - 1

    def moved_to(self, first_ns: int, span_ns: int, columns: int) -> Window:
        """Returns another stretch, kept inside the step and at least 1 ns a column (or the whole step)."""
        span_ns = max(min(span_ns, self.step_ns), min(columns, self.step_ns))
        first_ns = max(0, min(first_ns, self.step_ns - span_ns))
        return Window(first_ns, span_ns, self.step_ns)

    def zoomed(self, at_ns: int, numerator: int, denominator: int, columns: int) -> Window:
        """Returns the span times numerator / denominator, with `at_ns` staying where it is on the screen."""
        target_ns = self.span_ns * numerator // denominator
        span = max(min(target_ns, self.step_ns), min(columns, self.step_ns))
        return self.moved_to(at_ns - (at_ns - self.first_ns) * span // self.span_ns, span, columns)

    def panned(self, numerator: int, denominator: int, columns: int) -> Window:
        """Returns the window moved by a fraction of its span; negative numerators go left."""
        return self.moved_to(self.first_ns + self.span_ns * numerator // denominator, self.span_ns, columns)


class History:
    """The windows before and after the current one."""

    def __init__(self) -> None:
        self._back: list[Window] = []
        self._forward: list[Window] = []

    def leave(self, window: Window) -> None:
        """Remembers a window that is about to change."""
        if not self._back or self._back[-1] != window:
            self._back = [*self._back[1 - _HISTORY :], window]
        self._forward.clear()

    def back(self, window: Window) -> Window:
        """Returns the window before `window`, or itself when there is none."""
        if not self._back:
            return window
        self._forward.append(window)
        return self._back.pop()

    def forward(self, window: Window) -> Window:
        """Returns the window that `back` left, or itself when there is none."""
        if not self._forward:
            return window
        self._back.append(window)
        return self._forward.pop()


@dataclass(slots=True)
class Navigation:
    """The window and the cursor in it."""

    window: Window = field(init=False)
    """The stretch on the screen."""
    history: History = field(init=False, default_factory=History)
    cursor_ns: int = field(init=False, default=0)
    """The cursor's time."""
    columns: int = field(init=False, default=96)
    """The columns of the lane area."""

    @property
    def cursor_column(self) -> int:
        """The cursor's column in the lane area."""
        return max(0, min(self.window.column(self.cursor_ns, self.columns), self.columns - 1))

    def time_at(self, column: int) -> int:
        """Returns the time in the middle of a column, a time of the step wherever the column lies."""
        column = max(0, min(column, self.columns - 1))
        edges = self.window.edges(self.columns)
        return (edges[column] + edges[column + 1]) // 2

    def move_cursor(self, by: int) -> None:
        """Moves the cursor `by` columns to the right; at the edge the view moves with it."""
        before = self.cursor_ns
        column_ns = max(self.window.span_ns // self.columns, 1)
        target = self.window.column(self.cursor_ns, self.columns) + by
        if 0 <= target < self.columns:
            # The middle of a column: the details are about what the cell mostly shows.
            self.cursor_ns = self.time_at(target)
        else:
            self.cursor_ns += by * column_ns
        if self.cursor_ns == before:
            # With more columns than nanoseconds the next column may be the same instant.
            self.cursor_ns += 1 if by > 0 else -1
        self.cursor_ns = max(0, min(self.cursor_ns, self.window.step_ns - 1))
        self._keep_cursor_in_view()

    def move_to(self, time_ns: int) -> None:
        """Moves the cursor to a time of the step; the view follows."""
        self.cursor_ns = max(0, min(time_ns, self.window.step_ns - 1))
        self._keep_cursor_in_view()

    def jump_to(self, time_ns: int, length_ns: int = 0) -> None:
        """Moves the cursor to a time of the step; where the view has to change, `back` returns to it.

        length_ns: that of a span there: one that is narrower than a column is zoomed in on, until it has
        three.
        """
        before = self.window
        self.move_to(time_ns)
        if 0 < length_ns * self.columns < before.span_ns:
            span_ns = length_ns * self.columns // _COLUMNS_OF_SPAN
            self.window = before.moved_to(time_ns + (length_ns - span_ns) // 2, span_ns, self.columns)
        if self.window != before:
            self.history.leave(before)

    def zoom(self, numerator: int, denominator: int, at_ns: int | None = None) -> None:
        """Shows numerator / denominator of the span; the cursor, or another time, stays in its column."""
        at_ns = self.cursor_ns if at_ns is None else at_ns
        self._change(self.window.zoomed(at_ns, numerator, denominator, self.columns))

    def pan(self, numerator: int, denominator: int) -> None:
        """Moves the view by a share of itself; the cursor keeps its column."""
        self._pan_to(self.window.panned(numerator, denominator, self.columns))

    def center(self, time_ns: int) -> None:
        """Moves the view so that a time is in its middle; the cursor keeps its column."""
        window = self.window
        self._pan_to(window.moved_to(time_ns - window.span_ns // 2, window.span_ns, self.columns))

    def _pan_to(self, window: Window) -> None:
        column, before = self.cursor_column, self.window
        self._change(window)
        if self.window != before:
            self.cursor_ns = self.time_at(column)

    def show_all(self) -> None:
        """Shows the whole step."""
        self._change(Window.whole(self.window.step_ns))

    def fit(self, first_ns: int, last_ns: int, margin: int = 8) -> None:
        """Shows a stretch over most of the width, 1/margin of it on both sides; when repeated, the whole
        step.
        """
        span = last_ns - first_ns
        target = self.window.moved_to(first_ns - span // margin, span + 2 * span // margin, self.columns)
        if target == self.window:
            self.show_all()
            return
        if not first_ns <= self.cursor_ns < last_ns:
            self.cursor_ns = first_ns + span // 2
        self._change(target)

    def back(self) -> None:
        """Goes back to the view before the last zoom, pan or focus."""
        self.window = self.history.back(self.window)
        self._keep_cursor_in_window()

    def forward(self) -> None:
        """Goes forward to the view that `back` left."""
        self.window = self.history.forward(self.window)
        self._keep_cursor_in_window()

    def show_step(self, step_ns: int) -> None:
        """Shows a step of another length; the position is kept as a share of it."""
        old, new = self.window.step_ns, max(step_ns, 1)
        whole = Window.whole(new)
        if self.window.span_ns == old:
            self.window = whole
        else:
            first, span = self.window.first_ns * new // old, self.window.span_ns * new // old
            self.window = whole.moved_to(first, span, self.columns)
        self.history = History()
        self.move_to(self.cursor_ns * new // old)

    def _change(self, window: Window) -> None:
        if window != self.window:
            self.history.leave(self.window)
            self.window = window
        self._keep_cursor_in_window()

    def _keep_cursor_in_window(self) -> None:
        self.cursor_ns = max(self.window.first_ns, min(self.cursor_ns, self.window.last_ns - 1))

    def _keep_cursor_in_view(self) -> None:
        window = self.window
        if self.cursor_ns < window.first_ns:
            self.window = window.moved_to(self.cursor_ns - window.span_ns // 10, window.span_ns, self.columns)
        elif self.cursor_ns >= window.last_ns:
            first = self.cursor_ns - window.span_ns * 9 // 10
            self.window = window.moved_to(first, window.span_ns, self.columns)
        self._keep_cursor_in_window()


LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass(slots=True)
class Selection:
    """The range: one that begins at anchor_ns and follows the cursor, or the fixed one, or none."""

    anchor_ns: int | None = None
    fixed_range: tuple[int, int] | None = None

    def start(self, time_ns: int) -> None:
        """Begins a range here; the cursor is its other end."""
        self.anchor_ns, self.fixed_range = time_ns, None

    def fix(self, first_ns: int, last_ns: int) -> None:
        """Sets a range that does not follow the cursor."""
        self.anchor_ns, self.fixed_range = None, (first_ns, last_ns)

    def clear(self) -> bool:
        """Clears the range; returns False if there was none."""
        was = self.is_there
        self.anchor_ns, self.fixed_range = None, None
        return was

    @property
    def is_there(self) -> bool:
        return self.anchor_ns is not None or self.fixed_range is not None

    @property
    def follows(self) -> bool:
        """Whether the cursor is one of its ends."""
        return self.anchor_ns is not None

    def stretch(self, cursor_ns: int) -> tuple[int, int] | None:
        """Returns (first, last) ns of the range, None without one."""
        if self.anchor_ns is not None:
            return min(self.anchor_ns, cursor_ns), max(self.anchor_ns, cursor_ns)
        return self.fixed_range

    def scale(self, old_ns: int, new_ns: int) -> None:
        """Scales the range to a step of another length: it is kept as a share of it."""
        if self.anchor_ns is not None:
            self.anchor_ns = self.anchor_ns * new_ns // old_ns
        if self.fixed_range is not None:
            self.fixed_range = self.fixed_range[0] * new_ns // old_ns, self.fixed_range[1] * new_ns // old_ns


class Mark(NamedTuple):
    """A position to come back to: a time of a lane, which had this title."""

    letter: str
    time_ns: int
    lane: LaneKey
    title: str


@dataclass(slots=True)
class Marks:
    """Marks by letter, in the order in which they were set."""

    all: list[Mark] = field(default_factory=list)

    def set(self, time_ns: int, lane: LaneKey, title: str) -> Mark | None:
        """Returns a mark with the first letter that is free; None when none is."""
        used_letters = {mark.letter for mark in self.all}
        letter = next((letter for letter in LETTERS if letter not in used_letters), None)
        if letter is None:
            return None
        mark = Mark(letter, time_ns, lane, title)
        self.all.append(mark)
        return mark

    def remove(self, letter: str) -> None:
        """Removes the mark with a letter."""
        self.all = [mark for mark in self.all if mark.letter != letter]

    def of(self, letter: str) -> Mark | None:
        """Returns the mark with a letter."""
        return next((mark for mark in self.all if mark.letter == letter), None)

    @property
    def last(self) -> Mark | None:
        """The mark that was set last: distances are from there."""
        return self.all[-1] if self.all else None

    def scale(self, old_ns: int, new_ns: int) -> None:
        """Scales the marks to a step of another length: they are kept as shares of it."""
        self.all = [mark._replace(time_ns=mark.time_ns * new_ns // old_ns) for mark in self.all]
