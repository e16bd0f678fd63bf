"""The summary's widget: its keys, each a method of the model."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import BindingType

from tui.frame import Line
from tui.panels_view import PanelsView, panel_bindings
from tui.screen_view import binding
from tui.session import Session
from tui.summary.frame import draw
from tui.summary.model import MAP, NOTES, SummaryModel
from tui.summary.simulated import parts_of


class SummaryPanelsView(PanelsView):
    """What the summaries of simulated and of measured runs share."""

    async def action_go(self) -> None:
        if self.model.panel == NOTES:
            await self.app.run_action("open('notes')")
        else:
            await super().action_go()

    def action_try(self) -> None:
        model = self.model
        if model.knobs is None and not self.session.running:
            self._app.say("what would help is still looked for: t once it is there")
        else:
            self._app.runs.try_change(model.chosen() or model.best())


class SummaryView(SummaryPanelsView):
    """Where the step goes at a glance."""

    hints = (
        ("Tab", "panel"), ("hjkl", "move"), ("Enter", "go there"), ("t", "try the best change"),
        ("o", "other measure"), ("2", "timeline"), ("5", "parameters"),
    )  # fmt: skip
    BINDINGS: ClassVar[list[BindingType]] = [
        *panel_bindings("summary"),
        binding("j,down", "move(1, 0)", "down", "summary.down"),
        binding("k,up", "move(-1, 0)", "up", "summary.up"),
        binding("l,right", "move(0, 1)", "right", "summary.right"),
        binding("h,left", "move(0, -1)", "left", "summary.left"),
        binding("enter", "go", "show the place in the timeline, or the notes", "summary.go"),
        binding("t", "try", "try the best change, or the one at the cursor", "summary.try"),
        binding("o", "measure", "the map of ranks, then other measures in it", "summary.measure"),
    ]

    def __init__(self, session: Session, *, ascii_only: bool, id: str | None = None) -> None:
        super().__init__(session, ascii_only=ascii_only, id=id)
        self.model: SummaryModel = SummaryModel(session.current)

    def draw(self, width: int, height: int) -> list[Line]:
        progress = self.look_for_changes()
        return draw(self.model, parts_of(self.model, self.glyphs), width, height, self.glyphs, progress)

    def action_measure(self) -> None:
        model = self.model
        if MAP in model.panels:
            model.next_measure()
        else:
            # A small screen has room for the stages or for the map.
            model.panel = MAP
        self.redraw()
