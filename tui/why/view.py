"""The why screen's widget: its keys, each a method of the model."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import BindingType

from tui.frame import Line
from tui.frame_view import binding
from tui.panels import WHAT_IF
from tui.panels_view import PanelsView, panel_bindings
from tui.session import Session
from tui.tour import FIXES
from tui.why.frame import SEGMENTS, SUMS, WAITS, WhyModel, draw, shows_all

_NO_PATH = "a hung job has no critical path"


class WhyView(PanelsView):
    """The critical path and the what-if table."""

    hints: tuple[tuple[str, str], ...] = (
        ("Tab", "panel"), ("jk", "row"), ("Enter", "go there"), ("i", "other sums"), ("2", "timeline"),
    )  # fmt: skip
    BINDINGS: ClassVar[list[BindingType]] = [
        *panel_bindings("why"),
        binding("j,down", "move(1)", "next row", "why.down"),
        binding("k,up", "move(-1)", "row above", "why.up"),
        binding("pagedown", "move(10)", "ten rows down", "why.page-down"),
        binding("pageup", "move(-10)", "ten rows up", "why.page-up"),
        binding("g,home", "move(-10000000)", "first row", "why.first"),
        binding("G,end", "move(10000000)", "last row", "why.last"),
        binding("i", "grouping", "other sums: by kind, layer or operation, stage or rank", "why.grouping"),
        binding("o", "order", "segments of the path in the order of time, or the longest first", "why.order"),
        binding("enter", "go", "to the segment, or longest of a sum, in the timeline", "why.go"),
        binding("t", "try", "try the first change, or the one under the cursor", "why.try"),
        binding("escape", "app.open('timeline')", "back to the timeline", "why.leave"),
    ]

    def __init__(self, session: Session, *, ascii_only: bool, id: str | None = None) -> None:
        super().__init__(session, ascii_only=ascii_only, id=id)
        self.model: WhyModel = WhyModel(session.current)
        if self.model.panel == WAITS:
            self.hints = self._hints()

    def frame(self, width: int, height: int) -> list[Line]:
        if self.model.panel == WAITS:
            # A hung job has no step that a change could make shorter. Imported here: no other run needs it.
            if self.model.results.figures.snapshot is not None:
                from tui.why.snapshot import draw_failures

                return draw_failures(self.model, width, height, self.glyphs)
            from tui.why.hang import draw_waits

            return draw_waits(self.model, width, height, self.glyphs)
        return draw(self.model, width, height, self.glyphs, self.look_for_changes())

    @property
    def _shows_sums(self) -> bool:
        return self.model.panel == SUMS or shows_all(*self.size)

    def _hints(self) -> tuple[tuple[str, str], ...]:
        """Returns only the keys that do something here and now."""
        if self.model.results.figures.snapshot is not None:
            return ("1", "the peak"), ("2", "timeline"), ("3", "what is held")
        if self.model.panel == WAITS:
            return ("jk", "row"), ("Enter", "go there"), ("2", "timeline"), ("3", "collectives")
        hints = [("Tab", "panel"), ("jk", "row")]
        if self.model.panel != WHAT_IF:
            hints.append(("Enter", "go there"))
        if self.model.panel == WHAT_IF and self.model.selected_change() is not None:
            hints.append(("t", "try it"))
        elif self.tries == FIXES:
            # The first change fixes the file, and gains nothing.
            hints.append(("t", FIXES))
        if self._shows_sums:
            hints.append(("i", "other sums"))
        return (*hints, ("2", "timeline"), ("o", "by time" if self.model.by_length else "longest first"))

    def action_grouping(self) -> None:
        """Shows other sums; where they are out of view, it brings them into view first."""
        if self.model.panel == WAITS:
            self._app.say(_NO_PATH)
            return
        if self._shows_sums:
            self.model.next_grouping()
        else:
            self.model.panel = SUMS
        self.redraw()

    def action_order(self) -> None:
        """Lists the segments in another order; where they are out of view, it brings them into view first."""
        if self.model.panel == WAITS:
            self._app.say(_NO_PATH)
            return
        if self.model.panel == SEGMENTS or shows_all(*self.size):
            self.model.toggle_order()
        self.model.panel = SEGMENTS
        self.redraw()
