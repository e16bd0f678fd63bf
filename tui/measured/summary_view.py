"""The summary of a measured run: its keys, each a method of the model."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import BindingType

from tui.frame import Line
from tui.measured.summary_frame import draw_measured
from tui.measured.summary_model import MeasuredSummaryModel
from tui.panels_view import panel_bindings
from tui.screen_view import binding
from tui.session import Session
from tui.summary.model import MAP
from tui.summary.view import SummaryPanelsView


class MeasuredSummaryView(SummaryPanelsView):
    """Where the measured step goes at a glance."""

    hints = (
        ("Tab", "panel"), ("jk", "move"), ("Enter", "go there"), ("t", "try the best change"),
        ("o", "waits, replay"), ("2", "timeline"), ("5", "scales"),
    )  # fmt: skip
    BINDINGS: ClassVar[list[BindingType]] = [
        *panel_bindings("measured-summary"),
        binding("j,down", "move(1)", "down", "measured-summary.down"),
        binding("k,up", "move(-1)", "up", "measured-summary.up"),
        binding("enter", "go", "show the place in the timeline, or the notes", "measured-summary.go"),
        binding("t", "try", "replay the best change, or the one at the cursor", "measured-summary.try"),
        binding("o", "beside", "who waits for whom, or the replay's difference", "measured-summary.beside"),
    ]

    def __init__(self, session: Session, *, ascii_only: bool, id: str | None = None) -> None:
        super().__init__(session, ascii_only=ascii_only, id=id)
        self.model: MeasuredSummaryModel = MeasuredSummaryModel(session.current)

    def draw(self, width: int, height: int) -> list[Line]:
        return draw_measured(self.model, width, height, self.glyphs, self.look_for_changes())

    def action_beside(self) -> None:
        model = self.model
        if MAP in model.panels:
            model.next_beside()
        elif model.results.measured.timed:
            # A small screen has room for the bars or for the table.
            model.panel = MAP
        self.redraw()
