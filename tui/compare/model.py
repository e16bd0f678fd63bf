"""What the compare screen shows and where the cursor is: two runs, their window, the pair in focus."""

from __future__ import annotations

from dataclasses import dataclass, field

from simcore.analysis.compare import Comparison
from simcore.analysis.compare.matching import ClassPair
from tui.timeline.lanes import SimulatedLanes
from tui.timeline.spans import SpanLane
from tui.timeline.window import Window

PAIRS, MOVERS = "pairs", "movers"


@dataclass(slots=True)
class CompareModel:
    """comparison: run B against run A. window: of an axis as long as the longer step.

    pair: index of the pair with the cursor; top: first pair on the screen. cursor_ns: on A's axis.
    ends: whether the ends of the steps are laid on each other instead of their starts. columns,
    rows: of the lane area in cells and pairs, set when drawn. panel, mover: what has the focus, and
    the row of the cursor among the movers.
    """

    comparison: Comparison
    window: Window = field(init=False)
    a: SimulatedLanes = field(init=False)
    b: SimulatedLanes = field(init=False)
    pair: int = 0
    top: int = 0
    cursor_ns: int = 0
    ends: bool = False
    columns: int = 80
    rows: int = 5
    panel: str = PAIRS
    mover: int = 0

    def __post_init__(self) -> None:
        one, other = self.comparison.a, self.comparison.b
        self.a, self.b = SimulatedLanes(one), SimulatedLanes(other)
        self.window = Window.whole(max(one.step_time_ns, other.step_time_ns))
        self.cursor_ns = self.window.span_ns // 2

    @property
    def pairs(self) -> list[ClassPair]:
        """Ranks that are in one class of each run."""
        return self.comparison.pairs

    def lanes(self, pair: ClassPair) -> tuple[SpanLane, SpanLane]:
        """The lanes of a pair in A and in B."""
        return self.a.lane(pair.a), self.b.lane(pair.b)

    def shifted(self, side: int) -> Window:
        """The window on the axis of run A (0) or B (1): the longer step lies as it is."""
        steps = (self.comparison.a.step_time_ns, self.comparison.b.step_time_ns)
        by = max(steps) - steps[side] if self.ends else 0
        return Window(self.window.first_ns - by, self.window.span_ns, self.window.step_ns)

    @property
    def cursor_column(self) -> int:
        """The cursor's column in the lane area."""
        return max(0, min(self.window.column(self.cursor_ns, self.columns), self.columns - 1))

    def resize(self, columns: int, rows: int) -> None:
        """The lane area has another size."""
        self.columns, self.rows = max(columns, 1), max(rows, 1)
        self._keep_in_view()

    def _keep_in_view(self) -> None:
        self.top = max(0, min(self.top, len(self.pairs) - self.rows))
        self.top = min(max(self.top, self.pair - self.rows + 1), self.pair)

    def next_panel(self) -> None:
        """The focus to the movers, or back to the lanes."""
        self.panel = MOVERS if self.panel == PAIRS else PAIRS

    def move(self, by: int) -> None:
        """The cursor `by` pairs, or movers, down."""
        if self.panel == MOVERS:
            self.mover = max(0, min(self.mover + by, len(self.comparison.movers) - 1))
            return
        self.pair = max(0, min(self.pair + by, len(self.pairs) - 1))
        self._keep_in_view()

    def move_cursor(self, by: int) -> None:
        """The cursor `by` columns to the right; the view follows at its edge."""
        self.cursor_ns += by * max(self.window.span_ns // self.columns, 1)
        self.cursor_ns = max(0, min(self.cursor_ns, self.window.step_ns - 1))
        if not self.window.first_ns <= self.cursor_ns < self.window.last_ns:
            first = self.cursor_ns - self.window.span_ns // 2
            self.window = self.window.moved(first, self.window.span_ns, self.columns)

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

    def go_to_mover(self) -> None:
        """The cursor to where the mover begins in A, on the pair that it is of."""
        movers = self.comparison.movers
        if not movers:
            return
        place, at = movers[self.mover].place, movers[self.mover].a_ns
        stages = [index for index, pair in enumerate(self.pairs) if pair.first <= place]
        self.panel, self.pair = PAIRS, stages[-1] if stages else 0
        self._keep_in_view()
        if movers[self.mover].measure == "start":
            self.cursor_ns = min(at, self.window.step_ns - 1)
            self.move_cursor(0)
