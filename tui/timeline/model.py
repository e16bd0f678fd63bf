"""What the timeline shows and where the cursor is; every key is a method here."""

from __future__ import annotations

from dataclasses import dataclass, field

from tui.session import Run
from tui.timeline.arrangement import Arrangement
from tui.timeline.source import lane_source
from tui.timeline.spans import LaneSource, SpanLane
from tui.timeline.window import History, Window


@dataclass(slots=True)
class TimelineModel:
    """State of the timeline screen. columns, rows: cells of the lane area, set when drawn.

    results: the run. source: its lanes. arrangement: which of them are shown, in which order, and
    which has the cursor. cursor_ns: the cursor's time.
    """

    results: Run
    source: LaneSource = field(init=False)
    arrangement: Arrangement = field(init=False)
    window: Window = field(init=False)
    history: History = field(default_factory=History)
    cursor_ns: int = 0
    columns: int = 96
    rows: int = 20

    def __post_init__(self) -> None:
        self.source = lane_source(self.results)
        self.arrangement = Arrangement(self.source, self.rows)
        self.window = Window.whole(self.source.length)
        self.cursor_ns = self.window.span_ns // 2

    def show(self, results: Run) -> None:
        """Another run of the same workload: the place is kept as a share of the step."""
        source = lane_source(results)
        old, new = self.window.step_ns, max(source.length, 1)
        was_whole = self.window.span_ns == old
        self.results, self.source = results, source
        whole = Window.whole(new)
        self.history = History()
        first, span = self.window.first_ns * new // old, self.window.span_ns * new // old
        self.window = whole if was_whole else whole.moved(first, span, self.columns)
        self.cursor_ns = self.cursor_ns * new // old
        self.arrangement.show(source)
        self._keep_cursor_in_view()

    @property
    def current(self) -> SpanLane:
        """The lane with the cursor."""
        return self.arrangement.current

    @property
    def lanes(self) -> list[SpanLane]:
        """The lanes of the list, those out of view too."""
        return [row.lane for row in self.arrangement.rows]

    @property
    def lane(self) -> int:
        """Index of the lane with the cursor."""
        return self.arrangement.focus

    @lane.setter
    def lane(self, index: int) -> None:
        self.arrangement.focus_row(index)

    @property
    def top(self) -> int:
        """How many lanes are scrolled out above."""
        return self.arrangement.top

    @property
    def unfolded(self) -> set[int]:
        """Groups of ranks whose streams are shown."""
        return self.arrangement.unfolded

    @property
    def cursor_column(self) -> int:
        """The cursor's column in the lane area."""
        return max(0, min(self.window.column(self.cursor_ns, self.columns), self.columns - 1))

    def resize(self, columns: int, rows: int) -> None:
        """The lane area has another size."""
        self.columns, self.rows = max(columns, 1), max(rows, 1)
        self.arrangement.resize(self.rows)

    # -- lanes -----------------------------------------------------------------------

    def move_lane(self, by: int) -> None:
        """The cursor to another lane, `by` lanes down."""
        self.arrangement.move(by)

    def toggle_fold(self) -> None:
        """Show or hide what is under the lane of the cursor: its streams, or a group's lanes."""
        self.arrangement.toggle()

    # -- time ------------------------------------------------------------------------

    def move_cursor(self, by: int) -> None:
        """The cursor `by` columns to the right; at the edge the view moves with it."""
        before = self.cursor_ns
        column_ns = max(self.window.span_ns // self.columns, 1)
        target = self.window.column(self.cursor_ns, self.columns) + by
        if 0 <= target < self.columns:
            # The middle of a column: what the cell mostly shows is what the details speak of.
            edges = self.window.edges(self.columns)
            self.cursor_ns = (edges[target] + edges[target + 1]) // 2
        else:
            self.cursor_ns += by * column_ns
        if self.cursor_ns == before:
            # More columns than nanoseconds: the next column may be the same instant.
            self.cursor_ns += 1 if by > 0 else -1
        self.cursor_ns = max(0, min(self.cursor_ns, self.window.step_ns - 1))
        self._keep_cursor_in_view()

    def move_to(self, time_ns: int) -> None:
        """The cursor to a time of the step; the view follows."""
        self.cursor_ns = max(0, min(time_ns, self.window.step_ns - 1))
        self._keep_cursor_in_view()

    def zoom(self, numerator: int, denominator: int) -> None:
        """Show numerator / denominator of the span, the cursor staying in its column."""
        self._change(self.window.zoomed(self.cursor_ns, numerator, denominator, self.columns))

    def pan(self, numerator: int, denominator: int) -> None:
        """Move the view by a share of itself; the cursor keeps its column."""
        column, before = self.cursor_column, self.window
        self._change(self.window.panned(numerator, denominator, self.columns))
        if self.window == before:
            return
        edges = self.window.edges(self.columns)
        self.cursor_ns = (edges[column] + edges[column + 1]) // 2

    def show_all(self) -> None:
        """The whole step."""
        self._change(Window.whole(self.window.step_ns))

    def focus(self) -> None:
        """The span under the cursor over most of the width; once more, the whole step."""
        index = self.current.at(self.cursor_ns)
        if index is None:
            self.show_all()
            return
        spans = self.current.spans
        start, span = spans.start[index], spans.end[index] - spans.start[index]
        target = self.window.moved(start - span // 8, span + span // 4, self.columns)
        if target == self.window:
            self.show_all()
        else:
            self.cursor_ns = start + span // 2
            self._change(target)

    def go_to(self, number: int, start_ns: int, end_ns: int) -> None:
        """The cursor to the middle of start_ns..end_ns on a folded lane; the view fits around it."""
        self.lane = next(
            index for index, lane in enumerate(self.lanes) if lane.number == number and lane.stream is None
        )
        self._keep_lane_in_view()
        span = end_ns - start_ns
        self.cursor_ns = start_ns + span // 2
        self._change(self.window.moved(start_ns - span // 4, span + span // 2, self.columns))

    def step_span(self, direction: int) -> None:
        """The cursor to the next (1) or previous (-1) span of its lane."""
        lane = self.current
        found = lane.next_start(self.cursor_ns) if direction > 0 else lane.previous_start(self.cursor_ns)
        index = None if found is None else lane.at(found)
        if direction < 0 and index is not None and lane.at(self.cursor_ns) == index:
            found = lane.previous_start(lane.spans.start[index])
        if found is not None:
            self.cursor_ns = found
            self._keep_cursor_in_view()

    def back(self) -> None:
        """The view before the last zoom, pan or focus."""
        self.window = self.history.back(self.window)
        self._keep_cursor_in_window()

    def forward(self) -> None:
        """The view that `back` left."""
        self.window = self.history.forward(self.window)
        self._keep_cursor_in_window()

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
            self.window = window.moved(self.cursor_ns - window.span_ns // 10, window.span_ns, self.columns)
        elif self.cursor_ns >= window.last_ns:
            first = self.cursor_ns - window.span_ns * 9 // 10
            self.window = window.moved(first, window.span_ns, self.columns)
        self._keep_cursor_in_window()
