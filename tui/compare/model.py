"""What the compare screen shows and where the cursor is: two runs, their window, the pair in focus."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

from simcore.comparison import Alike
from tui.compare.source import Compared
from tui.timeline.window import Window

PAIRS, MOVERS = "pairs", "movers"
BOTH, A_ALONE, B_ALONE = "A and B", "A alone", "B alone"
_SHOWN = (BOTH, A_ALONE, B_ALONE)
# What moved by more than this share of step A is a difference to stop at: 1 / 100.
_MOVED = 100


@dataclass(slots=True)
class CompareModel:
    """compared: run B against run A. window: of an axis as long as the longer step.

    pair: index of the pair with the cursor; top: first pair on the screen. cursor_ns: on the axis.
    ends: whether the ends of the steps are laid on each other instead of their starts. shown: whose
    lanes. unfolded: the pairs whose streams are shown. columns, lines: of the lane area, set when drawn.
    is_new: whether it was never drawn. panel, mover: what has the focus, and the row of the cursor among
    what differs most.
    """

    compared: Compared
    window: Window = field(init=False)
    pair: int = 0
    top: int = 0
    cursor_ns: int = 0
    ends: bool = False
    shown: str = BOTH
    columns: int = 80
    lines: int = 15
    unfolded: set[int] = field(default_factory=set)
    is_new: bool = True
    panel: str = PAIRS
    mover: int = 0

    def __post_init__(self) -> None:
        self.window = Window.whole(max(self.compared.steps))
        self.cursor_ns = self.window.span_ns // 2

    def later(self, side: int) -> int:
        """How much later than its step begins run A (0) or B (1) lies on the axis, ns."""
        steps = self.compared.steps
        return max(steps) - steps[side] if self.ends else 0

    def shifted(self, side: int) -> Window:
        """The window on the axis of run A (0) or B (1): the longer step lies as it is."""
        return Window(self.window.first_ns - self.later(side), self.window.span_ns, self.window.step_ns)

    @property
    def cursor_column(self) -> int:
        """The cursor's column in the lane area."""
        return max(0, min(self.window.column(self.cursor_ns, self.columns), self.columns - 1))

    def resize(self, columns: int, lines: int) -> None:
        """The lane area has another size. Where it has room for them, the first pairs show their streams."""
        self.columns, self.lines = max(columns, 1), max(lines, 1)
        if self.is_new:
            self.is_new = False
            left = self.lines - sum(map(self.height, range(min(self.compared.pairs, self.lines))))
            for pair in range(self.compared.pairs if left > 0 else 0):
                left -= self._each * len(self.compared.streams(pair))
                if left < 0:
                    break
                self.unfolded.add(pair)
        self._keep_in_view()

    @property
    def _each(self) -> int:
        """Lines of two lanes beside each other: A, B and what differs, or one of them alone."""
        return 3 if self.shown == BOTH else 1

    def height(self, pair: int) -> int:
        """Lines of a pair with its streams."""
        streams = len(self.compared.streams(pair)) if pair in self.unfolded else 0
        return self._each * (1 + streams)

    def in_view(self) -> range:
        """The pairs from `top` on that the lane area has room for, one at least."""
        left, last = self.lines, self.top
        while last < self.compared.pairs and (left := left - self.height(last)) >= 0:
            last += 1
        return range(self.top, max(last, min(self.top + 1, self.compared.pairs)))

    def toggle_fold(self) -> None:
        """Show or hide the streams of the pair with the cursor."""
        self.unfolded ^= {self.pair}
        self._keep_in_view()

    def _keep_in_view(self) -> None:
        self.top = min(self.top, self.pair)
        while self.pair not in self.in_view():
            self.top += 1
        # No blank lines below the last pair while there are some above.
        while self.top and len(self.in_view()) + self.top == self.compared.pairs:
            used = sum(map(self.height, self.in_view())) + self.height(self.top - 1)
            if used > self.lines:
                break
            self.top -= 1

    def next_panel(self) -> None:
        """The focus to the movers, or back to the lanes."""
        self.panel = MOVERS if self.panel == PAIRS else PAIRS

    def move(self, by: int) -> None:
        """The cursor `by` pairs, or movers, down."""
        if self.panel == MOVERS:
            self.mover = max(0, min(self.mover + by, len(self.compared.rows) - 1))
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
            self.window = self.window.moved(first, self.window.span_ns, self.columns)

    def at_cursor(self, side: int) -> tuple[int, int, int]:
        """The number of the lane of A (0) or B (1) under the cursor, and from when to when what it does there
        lasts, ns of its step; of a gap, as much as is seen.
        """
        lane = self.compared.lanes(self.pair)[side]
        time_ns = max(0, min(self.cursor_ns - self.later(side), self.compared.steps[side] - 1))
        index = lane.content.at(time_ns)
        if index is None:
            return lane.number, time_ns - self.window.span_ns // 3, time_ns + self.window.span_ns // 3
        return lane.number, lane.spans.start[index], lane.spans.end[index]

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
        self.ends = not self.ends

    def next_shown(self) -> None:
        """The lanes of both runs, of A alone, of B alone."""
        self.shown = _SHOWN[(_SHOWN.index(self.shown) + 1) % len(_SHOWN)]

    # -- what moved ------------------------------------------------------------------

    def has_moved(self, alike: Alike) -> bool:
        """Whether, as the runs lie now, it starts more than 1 % of step A elsewhere."""
        by = alike.b_start_ns + self.later(1) - alike.a_start_ns - self.later(0)
        return abs(by) * _MOVED > self.compared.steps[0]

    def go_to_moved(self, direction: int) -> str:
        """The cursor to the next (1) or previous (-1) op of the pair that moved, at its start in A: what
        there is to say of it.
        """
        later = self.later(0)
        moved = [alike for alike in self.compared.alike(self.pair) if self.has_moved(alike)]
        here = self.cursor_ns - later
        further = [
            alike
            for alike in moved
            if (alike.a_start_ns > here if direction > 0 else alike.a_start_ns < here)
        ]
        if not further:
            return (
                f"nothing {'behind' if direction > 0 else 'before'} the cursor moved by over 1 % of the step"
            )
        alike = further[0] if direction > 0 else further[-1]
        self.panel = PAIRS
        self._go(alike.a_start_ns + later)
        number = bisect_right([other.a_start_ns for other in moved], alike.a_start_ns)
        return f"{number} of {len(moved)} that moved by over 1 % of the step on this lane"

    def go_to_mover(self) -> None:
        """The cursor to where the mover begins in A, on the pair that it is of."""
        rows = self.compared.rows
        if not rows:
            return
        row = rows[self.mover]
        self.panel, self.pair = PAIRS, row.pair
        self._keep_in_view()
        if row.at_ns is not None:
            self._go(row.at_ns + self.later(0))
