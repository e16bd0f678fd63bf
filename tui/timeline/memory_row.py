"""The memory of a model's rank above the lanes: how full a GPU is in each column of the view."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from tui.frame import Glyphs, Line
from tui.timeline.window import Window

if TYPE_CHECKING:
    from simcore.analysis import Results
    from simcore.analysis.model_figures import MemoryLane
    from simcore.analysis.run import Run

# What is above the limit is drawn as a full column and named by its colour's role, and by this.
_OVER = "!"


class MemoryRow:
    """Draws the row. Keeps the lane of the class that was last asked for."""

    def __init__(self, glyphs: Glyphs) -> None:
        self.glyphs = glyphs
        self._kept: tuple[Run, int, MemoryLane | None] | None = None

    def lane(self, run: Run, number: int) -> MemoryLane | None:
        """The memory of a class of a run; None where it is not of a model."""
        if run.model_figures is None:
            return None
        number = max(number, 0)
        if self._kept is None or self._kept[0] is not run or self._kept[1] != number:
            # Imported here: files have no such lane.
            from simcore.analysis.model_figures import memory_lane

            self._kept = run, number, memory_lane(cast("Results", run), number)
        return self._kept[2]

    def line(self, lane: MemoryLane, window: Window, left: int, columns: int) -> Line:
        """`left` cells of words, with the peak in view of what a GPU has, and a glyph a column."""
        span = window.last_ns - window.first_ns
        edges = [window.first_ns + span * column // columns for column in range(columns + 1)]
        most = lane.most(edges)
        peak, limit = max(most), lane.limit
        percent = f"{100 * peak / limit:.0f}%"
        name = f"  memory, stage {lane.stage}" if left > 20 else f" mem s{lane.stage}"
        words = name[: left - len(percent) - 1].ljust(left - len(percent)) + percent
        levels = len(self.glyphs.heat) - 1
        line: Line = [(words, "warn" if peak > limit else "dim"), (self.glyphs.vertical, "dim")]
        for held in most:
            if held > limit:
                line.append((_OVER, "warn"))
            else:
                line.append((self.glyphs.heat[-(-held * levels // limit)], "opt"))
        return line
