"""The mouse over the timeline: what a cell is of, and what pressing, dragging and turning the wheel do."""

from __future__ import annotations

from dataclasses import dataclass

from simcore.records import NamedTuple
from tui.timeline.model import TimelineModel

# The wheel over the names goes so many lanes.
_LANES_A_TURN = 3


class Area(NamedTuple):
    """Where the parts of a drawn timeline are: cells left of the lanes, rows above them.

    rows: of each row of lanes its place in the list, and the column of its sign (-1: none). minimap: rows
    of the minimap.
    """

    left: int
    above: int
    rows: tuple[tuple[int, int], ...]
    minimap: int

    def part(self, x: int, y: int) -> str:
        """`name`, `lane`, `minimap`, `ruler`, or "" for anywhere else."""
        if self.above <= y < self.above + len(self.rows):
            return "name" if x < self.left else "lane"
        if 0 <= y < self.above and x > self.left:
            return "minimap" if y < self.minimap else "ruler"
        return ""


@dataclass(slots=True)
class Pointer:
    """A button that is held. part: where it was pressed. anchor_ns: at which time."""

    model: TimelineModel
    part: str = ""
    anchor_ns: int = 0
    has_moved: bool = False

    def press(self, area: Area, x: int, y: int) -> bool:
        """A button goes down; False where that means nothing."""
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
        """The pointer moves with the button held; False where that means nothing."""
        model = self.model
        if self.part == "minimap":
            self._show(area, x)
        elif self.part in ("lane", "ruler"):
            time_ns = model.time_at(x - area.left - 1)
            if not self.has_moved and time_ns == self.anchor_ns:
                return False
            self.has_moved = True
            # To both ends of the cells: what looks marked is in the range.
            column_ns = max(model.window.span_ns // model.columns, 1)
            first, last = sorted((self.anchor_ns, time_ns))
            step = model.window.step_ns
            model.selection.fix(max(first - column_ns // 2, 0), min(last + -(-column_ns // 2), step))
            model.move_to(time_ns)
        else:
            return False
        return True

    def release(self) -> None:
        """The button goes up."""
        self.part = ""

    def turn(self, area: Area, x: int, y: int, direction: int, pan: bool) -> bool:
        """The wheel goes up or left (-1), down or right (1); `pan`: sideways, or with Shift or Ctrl."""
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
        """The place of the minimap in the middle of the view."""
        model = self.model
        column = max(0, min(x - area.left - 1, model.columns - 1))
        time_ns = model.window.step_ns * (2 * column + 1) // (2 * model.columns)
        model.center(time_ns)
        model.move_to(time_ns)
