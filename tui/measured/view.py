"""The layers screen of a measured run: its operations, in words."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import BindingType

from simcore.report.measured_words import op_lines
from tui.frame import Line, cells, rule
from tui.screen_view import ScreenView, binding
from tui.session import Session


class _WordsView(ScreenView):
    """Lines to scroll through."""

    session: Session
    hints = (("jk", "scroll"), ("2", "timeline"))
    BINDINGS: ClassVar[list[BindingType]] = [
        binding("j,down", "scroll(1)", "down", "measured.down"),
        binding("k,up", "scroll(-1)", "up", "measured.up"),
        binding("pagedown", "scroll(20)", "page down", "measured.page-down"),
        binding("pageup", "scroll(-20)", "page up", "measured.page-up"),
        binding("escape", "app.open('timeline')", "back to the timeline", "measured.leave"),
    ]

    def __init__(self, session: Session, *, ascii_only: bool, id: str | None = None) -> None:
        super().__init__(session, ascii_only=ascii_only, id=id)
        self.top = 0

    def lines(self, width: int) -> list[Line]:
        """All lines of the screen."""
        raise NotImplementedError

    def draw(self, width: int, height: int) -> list[Line]:
        lines = self.lines(width)
        self.top = max(0, min(self.top, len(lines) - height))
        hidden = len(lines) - self.top - height
        if hidden > 0:
            return [*lines[self.top :][: height - 1], rule(f"{hidden + 1} more: j", width, self.glyphs)]
        return lines[self.top :]

    def action_scroll(self, by: int) -> None:
        self.top += by
        self.redraw()


class OperationsView(_WordsView):
    """In place of the rows of a workload file: the operations of the trace."""

    def lines(self, width: int) -> list[Line]:
        first = rule("A trace has operations instead of layers", width, self.glyphs)
        return [first, *([(cells(line, 400), "")] for line in op_lines(self.session.current, width))]
