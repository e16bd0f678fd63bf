"""What the compare screen shows and where the cursor is: two runs, their window, the pair in focus."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

from simcore.comparison import SpanPair
from tui.compare.marks import are_equal, difference_marks
from tui.compare.source import ComparedLanes
from tui.timeline.window import Window

PAIRS, DIFFERENCES = "pairs", "movers"
BOTH, A_ALONE, B_ALONE = "A and B", "A alone", "B alone"
_LANE_CHOICES = (BOTH, A_ALONE, B_ALONE)
# A shift of more than this share of step A is a difference to stop at: 1 / 100.
_SHIFT_DIVISOR = 100


@dataclass(slots=True)
class CompareModel:
    """State of the compare screen."""

    compared: ComparedLanes
    """Run B against run A."""
    window: Window = field(init=False)
    """The window on an axis as long as the longer step."""
    pair: int = 0
    """The pair with the cursor."""
    top: int = 0
    """The first pair on the screen."""
    cursor_ns: int = 0
    """The cursor's time on the axis."""
    aligns_ends: bool = False
    """Whether the ends of the steps are aligned instead of their starts."""
    visible_sides: str = BOTH
    """The runs whose lanes are visible."""
    columns: int = 80
    """Columns of the lane area, set when drawn."""
    lines: int = 15
    """Lines of the lane area, set when drawn."""
    unfolded: set[int] = field(default_factory=set)
    """The pairs whose streams are shown, and both lanes of a pair that is alike."""
    is_new: bool = True
    """Whether it was never drawn."""
    panel: str = PAIRS
    """The panel with the focus."""
    difference_index: int = 0
    """The row of the cursor among what differs most."""
    # By pair, by what is aligned and by whether its spans are known: whether its lanes do the same.
    _equal: dict[tuple[int, bool, bool], bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.window = Window.whole(max(self.compared.steps))
        self.cursor_ns = self.window.span_ns // 2

    def start_offset(self, side: int) -> int:
        """Returns how much later than its step begins run A (0) or B (1) lies on the axis, ns."""
        steps = self.compared.steps
        return max(steps) - steps[side] if self.aligns_ends else 0

    def side_window(self, side: int) -> Window:
        """Returns the window on the axis of run A (0) or B (1): the longer step is not shifted."""
        return Window(
            self.window.first_ns - self.start_offset(side), self.window.span_ns, self.window.step_ns
        )

    @property
    def cursor_column(self) -> int:
        """The cursor's column in the lane area."""
        return max(0, min(self.window.column(self.cursor_ns, self.columns), self.columns - 1))

    def resize(self, columns: int, lines: int) -> None:
        """Sets the size of the lane area. Where it has room for them, the first pairs show their streams."""
        self.columns, self.lines = max(columns, 1), max(lines, 1)
        if self.is_new:
            self.is_new = False
            free_lines = self.lines - sum(map(self.height, range(min(self.compared.pairs, self.lines))))
            for pair in range(self.compared.pairs if free_lines > 0 else 0):
                if self.is_folded(pair):
                    continue
                free_lines -= self._lines_per_lane * len(self.compared.streams(pair))
                if free_lines < 0:
                    break
                self.unfolded.add(pair)
        self._keep_in_view()

    @property
    def _lines_per_lane(self) -> int:
        """Lines of two lanes one below the other, or of one of them alone."""
        return 2 if self.visible_sides == BOTH else 1

    def height(self, pair: int) -> int:
        """Returns the lines of a pair with its streams."""
        if self.is_folded(pair):
            return 1
        streams = len(self.compared.streams(pair)) if pair in self.unfolded else 0
        return self._lines_per_lane * (1 + streams)

    def is_folded(self, pair: int) -> bool:
        """Returns whether one lane stands for both of a pair: they are alike."""
        return self.visible_sides == BOTH and pair not in self.unfolded and self.is_equal(pair)

    def is_equal(self, pair: int) -> bool:
        """Returns whether both lanes of a pair do the same over the whole axis, to 1 % of it."""
        spans = self.compared.cached_span_pairs(pair)
        key = pair, self.aligns_ends, bool(spans)
        if key not in self._equal:
            step_ns = self.window.step_ns
            windows = [Window(-self.start_offset(side), step_ns, step_ns) for side in (0, 1)]
            busy_ns, steps = self.compared.busy_ns(pair), self.compared.steps
            shares = [ns / max(step, 1) for ns, step in zip(busy_ns, steps, strict=True)]
            self._equal[key] = (
                abs(shares[0] - shares[1]) * _SHIFT_DIVISOR <= 1
                and are_equal(self.compared.lanes(pair), windows, _SHIFT_DIVISOR)
                and not any(map(self.is_shifted, spans))
            )
        return self._equal[key]

    def difference_marks(self, pair: int) -> str:
        """Returns where the visible lanes of a pair differ, a mark for each column."""
        windows = self.side_window(0), self.side_window(1)
        spans = self.compared.cached_span_pairs(pair)
        shifted_spans = [span_pair for span_pair in spans if self.is_shifted(span_pair)]
        return difference_marks(self.compared.lanes(pair), windows, self.columns, shifted_spans)

    def visible_pairs(self) -> range:
        """Returns the pairs from `top` on that the lane area has room for, at least one."""
        free_lines, last = self.lines, self.top
        while last < self.compared.pairs and (free_lines := free_lines - self.height(last)) >= 0:
            last += 1
        return range(self.top, max(last, min(self.top + 1, self.compared.pairs)))

    def toggle_fold(self) -> None:
        """Shows or hides the streams of the pair with the cursor, and the second lane of one that is
        alike.
        """
        self.unfolded ^= {self.pair}
        self._keep_in_view()

    def _keep_in_view(self) -> None:
        self.top = min(self.top, self.pair)
        while self.pair not in self.visible_pairs():
            self.top += 1
        # No blank lines below the last pair while pairs are scrolled out above.
        while self.top and len(self.visible_pairs()) + self.top == self.compared.pairs:
            used = sum(map(self.height, self.visible_pairs())) + self.height(self.top - 1)
            if used > self.lines:
                break
            self.top -= 1

    def next_panel(self) -> None:
        """Moves the focus to what differs most, or back to the lanes."""
        self.panel = DIFFERENCES if self.panel == PAIRS else PAIRS

    def move(self, by: int) -> None:
        """Moves the cursor `by` pairs, or differences, down."""
        if self.panel == DIFFERENCES:
            self.difference_index = max(0, min(self.difference_index + by, len(self.compared.rows) - 1))
            return
        self.pair = max(0, min(self.pair + by, self.compared.pairs - 1))
        self._keep_in_view()

    def move_cursor(self, by: int) -> None:
        """Moves the cursor `by` columns to the right; the view follows at its edge."""
        self._go(self.cursor_ns + by * max(self.window.span_ns // self.columns, 1))

    def _go(self, time_ns: int) -> None:
        self.cursor_ns = max(0, min(time_ns, self.window.step_ns - 1))
        if not self.window.first_ns <= self.cursor_ns < self.window.last_ns:
            first = self.cursor_ns - self.window.span_ns // 2
            self.window = self.window.moved_to(first, self.window.span_ns, self.columns)

    def at_cursor(self, side: int) -> tuple[int, int, int]:
        """Returns the track of the lane of A (0) or B (1) under the cursor, and the start and end of what it
        does there, ns of its step; of a gap, the visible part.
        """
        lane = self.compared.lanes(self.pair)[side]
        time_ns = max(0, min(self.cursor_ns - self.start_offset(side), self.compared.steps[side] - 1))
        index = lane.content.find_span(time_ns)
        if index is None:
            return lane.track_id, time_ns - self.window.span_ns // 3, time_ns + self.window.span_ns // 3
        return lane.track_id, lane.spans.start[index], lane.spans.end[index]

    def zoom(self, numerator: int, denominator: int) -> None:
        """Zooms both runs at once, the cursor staying in its column."""
        self.window = self.window.zoomed(self.cursor_ns, numerator, denominator, self.columns)

    def pan(self, numerator: int, denominator: int) -> None:
        """Pans both runs at once, by a share of the window; the cursor goes with it."""
        before = self.window.first_ns
        self.window = self.window.panned(numerator, denominator, self.columns)
        self.cursor_ns = max(0, min(self.cursor_ns + self.window.first_ns - before, self.window.step_ns - 1))

    def show_all(self) -> None:
        """Shows both steps in full."""
        self.window = Window.whole(self.window.step_ns)

    def toggle_ends(self) -> None:
        """Aligns the ends, or the starts again."""
        self.aligns_ends = not self.aligns_ends

    def next_sides(self) -> None:
        """Shows the lanes of both runs, then of A alone, then of B alone."""
        self.visible_sides = _LANE_CHOICES[(_LANE_CHOICES.index(self.visible_sides) + 1) % len(_LANE_CHOICES)]

    # -- what moved ------------------------------------------------------------------

    def is_shifted(self, span_pair: SpanPair) -> bool:
        """Returns whether, as the runs are aligned now, it starts over 1 % of step A elsewhere."""
        shift_ns = span_pair.b_start_ns + self.start_offset(1) - span_pair.a_start_ns - self.start_offset(0)
        return abs(shift_ns) * _SHIFT_DIVISOR > self.compared.steps[0]

    def go_to_shifted(self, direction: int) -> str:
        """Moves the cursor to the next (1) or previous (-1) op of the pair that is shifted, at its start in
        A; returns the message.
        """
        offset_ns = self.start_offset(0)
        shifted_pairs = [
            span_pair for span_pair in self.compared.span_pairs(self.pair) if self.is_shifted(span_pair)
        ]
        run_cursor_ns = self.cursor_ns - offset_ns
        candidates = [
            span_pair
            for span_pair in shifted_pairs
            if (
                span_pair.a_start_ns > run_cursor_ns
                if direction > 0
                else span_pair.a_start_ns < run_cursor_ns
            )
        ]
        if not candidates:
            return (
                f"nothing {'behind' if direction > 0 else 'before'} the cursor moved by over 1 % of the step"
            )
        span_pair = candidates[0] if direction > 0 else candidates[-1]
        self.panel = PAIRS
        self._go(span_pair.a_start_ns + offset_ns)
        ordinal = bisect_right([other.a_start_ns for other in shifted_pairs], span_pair.a_start_ns)
        return f"{ordinal} of {len(shifted_pairs)} that moved by over 1 % of the step on this lane"

    def go_to_difference(self) -> None:
        """Moves the cursor to where the difference begins in A, on its pair."""
        rows = self.compared.rows
        if not rows:
            return
        row = rows[self.difference_index]
        self.panel, self.pair = PAIRS, row.pair
        self._keep_in_view()
        if row.at_ns is not None:
            self._go(row.at_ns + self.start_offset(0))
