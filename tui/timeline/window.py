"""The stretch of time that the screen shows: zoom, pan, and the way back."""

from __future__ import annotations

from dataclasses import dataclass

_HISTORY = 100


@dataclass(frozen=True, slots=True)
class Window:
    """first_ns..first_ns + span_ns of a step of step_ns."""

    first_ns: int
    span_ns: int
    step_ns: int

    @classmethod
    def whole(cls, step_ns: int) -> Window:
        """The whole step; a step of 0 ns is shown as 1 ns."""
        return cls(0, max(step_ns, 1), max(step_ns, 1))

    @property
    def last_ns(self) -> int:
        return self.first_ns + self.span_ns

    def edges(self, columns: int) -> list[int]:
        """The times between the columns: `columns` + 1 of them."""
        first, span = self.first_ns, self.span_ns
        return [first + span * column // columns for column in range(columns + 1)]

    def column(self, time_ns: int, columns: int) -> int:
        """The column that holds `time_ns`; it may lie outside 0..columns-1."""
        # The last column whose left edge is not after the time: edges are floors, as in drawing.
        return -(-(time_ns - self.first_ns + 1) * columns // self.span_ns) - 1

    def moved(self, first_ns: int, span_ns: int, columns: int) -> Window:
        """Another stretch, kept inside the step and at least 1 ns a column (or the whole step)."""
        span_ns = max(min(span_ns, self.step_ns), min(columns, self.step_ns))
        first_ns = max(0, min(first_ns, self.step_ns - span_ns))
        return Window(first_ns, span_ns, self.step_ns)

    def zoomed(self, at_ns: int, numerator: int, denominator: int, columns: int) -> Window:
        """The span times numerator / denominator, with `at_ns` staying where it is on the screen."""
        wanted = self.span_ns * numerator // denominator
        span = max(min(wanted, self.step_ns), min(columns, self.step_ns))
        return self.moved(at_ns - (at_ns - self.first_ns) * span // self.span_ns, span, columns)

    def panned(self, numerator: int, denominator: int, columns: int) -> Window:
        """Moved by a fraction of its span; negative numerators go left."""
        return self.moved(self.first_ns + self.span_ns * numerator // denominator, self.span_ns, columns)


class History:
    """Windows to go back and forward to."""

    def __init__(self) -> None:
        self._back: list[Window] = []
        self._forward: list[Window] = []

    def leave(self, window: Window) -> None:
        """Remember a window that is about to change."""
        if not self._back or self._back[-1] != window:
            self._back = [*self._back[1 - _HISTORY :], window]
        self._forward.clear()

    def back(self, window: Window) -> Window:
        """The window before `window`, or itself when there is none."""
        if not self._back:
            return window
        self._forward.append(window)
        return self._back.pop()

    def forward(self, window: Window) -> Window:
        """The window that `back` left, or itself when there is none."""
        if not self._forward:
            return window
        self._back.append(window)
        return self._forward.pop()
