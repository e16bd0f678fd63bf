"""The mouse over the timeline: which part of it a cell belongs to, and what pressing, dragging and the wheel
do.
"""

from __future__ import annotations

from dataclasses import dataclass

from simcore.records import NamedTuple
from tui.timeline.model import TimelineModel

# The wheel over the names moves by this many lanes.
_LANES_A_TURN = 3


class Area(NamedTuple):
    """Where the parts of a drawn timeline are."""

    left: int
    """Cells left of the lanes."""
    above: int
    """Rows above the lanes."""
    rows: tuple[tuple[int, int], ...]
    """By row of lanes, its index in the list and the column of its folding sign (-1: none)."""
    minimap: int
    """Rows of the minimap."""

    def part(self, x: int, y: int) -> str:
        """Returns `name`, `lane`, `minimap`, `ruler`, or "" for anywhere else."""
        if self.above <= y < self.above + len(self.rows):
            return "name" if x < self.left else "lane"
        if 0 <= y < self.above and x > self.left:
            return "minimap" if y < self.minimap else "ruler"
        return ""


@dataclass(slots=True)
class Pointer:
    """A pressed button."""

    model: TimelineModel
    part: str = ""
    """The part of the timeline where it was pressed."""
    anchor_ns: int = 0
    """The time at which it was pressed."""
    has_moved: bool = False

    def press(self, area: Area, x: int, y: int) -> bool:
        """Handles the press of a button; returns False where that means nothing."""
        model = self.model
        self.part, self.has_moved = area.part(x, y), False
        if self.part in ("name", "lane"):
            model.lane, sign = area.rows[y - area.above]
            if sign >= 0 and abs(x - sign) <= 1:
                model.toggle_fold()
                self.part = "name"
        if self.part in ("lane", "ruler"):
            self.anchor_ns = model.time_at(x - area.left - 1)
            model.move_to(self.anchor_ns)
        elif self.part == "minimap":
            self._show(area, x)
        return bool(self.part)

    def drag(self, area: Area, x: int) -> bool:
        """Handles a move with the button pressed; returns False where that means nothing."""
        model = self.model
        if self.part == "minimap":
            self._show(area, x)
        elif self.part in ("lane", "ruler"):
            time_ns = model.time_at(x - area.left - 1)
            if not self.has_moved and time_ns == self.anchor_ns:
                return False
            self.has_moved = True
            # The range reaches both ends of the cells: what looks marked is in it.
            column_ns = max(model.window.span_ns // model.columns, 1)
            first, last = sorted((self.anchor_ns, time_ns))
            step = model.window.step_ns
            model.selection.fix(max(first - column_ns // 2, 0), min(last + -(-column_ns // 2), step))
            model.move_to(time_ns)
        else:
            return False
        return True

    def release(self) -> None:
        """Handles the release of the button."""
        self.part = ""

    def turn(self, area: Area, x: int, y: int, direction: int, pan: bool) -> bool:
        """Handles a turn of the wheel up or left (-1), down or right (1). pan: whether sideways, or with
        Shift or Ctrl.
        """
        model = self.model
        part = area.part(x, y)
        if part == "name":
            model.arrangement.scroll(direction * _LANES_A_TURN)
        elif part and pan:
            model.pan(direction, 8)
        elif part:
            ratio = (2, 1) if direction > 0 else (1, 2)
            at_ns = None if part == "minimap" else model.time_at(x - area.left - 1)
            model.zoom(*ratio, at_ns)
        return bool(part)

    def _show(self, area: Area, x: int) -> None:
        """Shows the pointed part of the minimap in the middle of the view."""
        model = self.model
        column = max(0, min(x - area.left - 1, model.columns - 1))
        time_ns = model.window.step_ns * (2 * column + 1) // (2 * model.columns)
        model.center(time_ns)
        model.move_to(time_ns)
