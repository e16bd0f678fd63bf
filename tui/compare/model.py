"""What the compare screen shows and where the cursor is: two runs, their window, the pair in focus."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

from simcore.comparison import SpanPair
from tui.compare.source import ComparedLanes
from tui.timeline.window import Window

PAIRS, DIFFERENCES = "pairs", "movers"
BOTH, A_ALONE, B_ALONE = "A and B", "A alone", "B alone"
_LANE_CHOICES = (BOTH, A_ALONE, B_ALONE)
# What moved by more than this share of step A is a difference to stop at: 1 / 100.
_SHIFT_DIVISOR = 100


@dataclass(slots=True)
class CompareModel:
    """compared: run B against run A. window: of an axis as long as the longer step.

    pair: index of the pair with the cursor; top: first pair on the screen. cursor_ns: on the axis.
    ends: whether the ends of the steps are laid on each other instead of their starts. shown: whose
    lanes. unfolded: the pairs whose streams are shown. columns, lines: of the lane area, set when drawn.
    is_new: whether it was never drawn. panel, mover: what has the focus, and the row of the cursor among
    what differs most.
    """

    compared: ComparedLanes
    window: Window = field(init=False)
    pair: int = 0
    top: int = 0
    cursor_ns: int = 0
    aligns_ends: bool = False
    visible_sides: str = BOTH
    columns: int = 80
    lines: int = 15
    unfolded: set[int] = field(default_factory=set)
    is_new: bool = True
    panel: str = PAIRS
    difference_index: int = 0

    def __post_init__(self) -> None:
        self.window = Window.whole(max(self.compared.steps))
        self.cursor_ns = self.window.span_ns // 2

    def start_offset(self, side: int) -> int:
        """How much later than its step begins run A (0) or B (1) lies on the axis, ns."""
        steps = self.compared.steps
        return max(steps) - steps[side] if self.aligns_ends else 0

    def side_window(self, side: int) -> Window:
        """The window on the axis of run A (0) or B (1): the longer step lies as it is."""
        return Window(
            self.window.first_ns - self.start_offset(side), self.window.span_ns, self.window.step_ns
        )

    @property
    def cursor_column(self) -> int:
        """The cursor's column in the lane area."""
        return max(0, min(self.window.column(self.cursor_ns, self.columns), self.columns - 1))

    def resize(self, columns: int, lines: int) -> None:
        """The lane area has another size. Where it has room for them, the first pairs show their streams."""
        self.columns, self.lines = max(columns, 1), max(lines, 1)
        if self.is_new:
            self.is_new = False
            free_lines = self.lines - sum(map(self.height, range(min(self.compared.pairs, self.lines))))
            for pair in range(self.compared.pairs if free_lines > 0 else 0):
                free_lines -= self._lines_per_lane * len(self.compared.streams(pair))
                if free_lines < 0:
                    break
                self.unfolded.add(pair)
        self._keep_in_view()

    @property
    def _lines_per_lane(self) -> int:
        """Lines of two lanes beside each other: A, B and what differs, or one of them alone."""
        return 3 if self.visible_sides == BOTH else 1

    def height(self, pair: int) -> int:
        """Lines of a pair with its streams."""
        streams = len(self.compared.streams(pair)) if pair in self.unfolded else 0
        return self._lines_per_lane * (1 + streams)

    def visible_pairs(self) -> range:
        """The pairs from `top` on that the lane area has room for, one at least."""
        free_lines, last = self.lines, self.top
        while last < self.compared.pairs and (free_lines := free_lines - self.height(last)) >= 0:
            last += 1
        return range(self.top, max(last, min(self.top + 1, self.compared.pairs)))

    def toggle_fold(self) -> None:
        """Show or hide the streams of the pair with the cursor."""
        self.unfolded ^= {self.pair}
        self._keep_in_view()

    def _keep_in_view(self) -> None:
        self.top = min(self.top, self.pair)
        while self.pair not in self.visible_pairs():
            self.top += 1
        # No blank lines below the last pair while there are some above.
        while self.top and len(self.visible_pairs()) + self.top == self.compared.pairs:
            used = sum(map(self.height, self.visible_pairs())) + self.height(self.top - 1)
            if used > self.lines:
                break
            self.top -= 1

    def next_panel(self) -> None:
        """The focus to the movers, or back to the lanes."""
        self.panel = DIFFERENCES if self.panel == PAIRS else PAIRS

    def move(self, by: int) -> None:
        """The cursor `by` pairs, or movers, down."""
        if self.panel == DIFFERENCES:
            self.difference_index = max(0, min(self.difference_index + by, len(self.compared.rows) - 1))
            return
        self.pair = max(0, min(self.pair + by, self.compared.pairs - 1))
        self._keep_in_view()

    def move_cursor(self, by: int) -> None:
        """The cursor `by` columns to the right; the view follows at its edge."""
        self._go(self.cursor_ns + by * max(self.window.span_ns // self.columns, 1))

    def _go(self, time_ns: int) -> None:
        self.cursor_ns = max(0, min(time_ns, self.window.step_ns - 1))
        if not self.window.first_ns <= self.cursor_ns < self.window.last_ns:
            first = self.cursor_ns - self.window.span_ns // 2
            self.window = self.window.moved_to(first, self.window.span_ns, self.columns)

    def at_cursor(self, side: int) -> tuple[int, int, int]:
        """The number of the lane of A (0) or B (1) under the cursor, and from when to when what it does there
        lasts, ns of its step; of a gap, as much as is seen.
        """
        lane = self.compared.lanes(self.pair)[side]
        time_ns = max(0, min(self.cursor_ns - self.start_offset(side), self.compared.steps[side] - 1))
        index = lane.content.find_span(time_ns)
        if index is None:
            return lane.track_id, time_ns - self.window.span_ns // 3, time_ns + self.window.span_ns // 3
        return lane.track_id, lane.spans.start[index], lane.spans.end[index]

    def zoom(self, numerator: int, denominator: int) -> None:
        """Both runs at once, the cursor staying in its column."""
        self.window = self.window.zoomed(self.cursor_ns, numerator, denominator, self.columns)

    def pan(self, numerator: int, denominator: int) -> None:
        """Both runs at once, by a share of the window; the cursor goes with it."""
        before = self.window.first_ns
        self.window = self.window.panned(numerator, denominator, self.columns)
        self.cursor_ns = max(0, min(self.cursor_ns + self.window.first_ns - before, self.window.step_ns - 1))

    def show_all(self) -> None:
        """Both steps whole."""
        self.window = Window.whole(self.window.step_ns)

    def toggle_ends(self) -> None:
        """Lay the ends on each other, or the starts again."""
        self.aligns_ends = not self.aligns_ends

    def next_sides(self) -> None:
        """The lanes of both runs, of A alone, of B alone."""
        self.visible_sides = _LANE_CHOICES[(_LANE_CHOICES.index(self.visible_sides) + 1) % len(_LANE_CHOICES)]

    # -- what moved ------------------------------------------------------------------

    def is_shifted(self, span_pair: SpanPair) -> bool:
        """Whether, as the runs lie now, it starts more than 1 % of step A elsewhere."""
        shift_ns = span_pair.b_start_ns + self.start_offset(1) - span_pair.a_start_ns - self.start_offset(0)
        return abs(shift_ns) * _SHIFT_DIVISOR > self.compared.steps[0]

    def go_to_shifted(self, direction: int) -> str:
        """The cursor to the next (1) or previous (-1) op of the pair that moved, at its start in A: what
        there is to say of it.
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
        """The cursor to where the mover begins in A, on the pair that it is of."""
        rows = self.compared.rows
        if not rows:
            return
        row = rows[self.difference_index]
        self.panel, self.pair = PAIRS, row.pair
        self._keep_in_view()
        if row.at_ns is not None:
            self._go(row.at_ns + self.start_offset(0))
