"""The summary of a measured run: its keys, each a method of the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

from textual.binding import BindingType

from simcore.measured.replay import MeasuredResults
from tui.frame import Line
from tui.measured.session import MeasuredSession
from tui.measured.summary_frame import draw
from tui.measured.summary_model import MeasuredSummaryModel
from tui.screen_view import ScreenView, binding
from tui.session import Run
from tui.summary.cursor import MAP, NOTES

if TYPE_CHECKING:
    from tui.app import WltuiApp


class MeasuredSummaryView(ScreenView):
    """Where the measured step goes at a glance."""

    hints = (
        ("Tab", "panel"), ("jk", "move"), ("Enter", "go there"), ("t", "try the best change"),
        ("o", "waits, replay"), ("2", "timeline"), ("5", "scales"),
    )  # fmt: skip
    BINDINGS: ClassVar[list[BindingType]] = [
        binding("tab", "panel(1)", "next panel", "measured-summary.next-panel"),
        binding("shift+tab", "panel(-1)", "panel before", "measured-summary.previous-panel"),
        binding("j,down", "move(1)", "down", "measured-summary.down"),
        binding("k,up", "move(-1)", "up", "measured-summary.up"),
        binding("enter", "go", "show the place in the timeline, or the notes", "measured-summary.go"),
        binding("t", "try", "replay the best change, or the one at the cursor", "measured-summary.try"),
        binding("o", "beside", "who waits for whom, or the replay's difference", "measured-summary.beside"),
    ]

    session: MeasuredSession

    def __init__(self, session: MeasuredSession, *, ascii_only: bool, id: str | None = None) -> None:
        super().__init__(session, ascii_only=ascii_only, id=id)
        self.model = MeasuredSummaryModel(session.current)

    @property
    def _app(self) -> WltuiApp:
        return cast("WltuiApp", self.app)

    def draw(self, width: int, height: int) -> list[Line]:
        results = self.model.results
        if self.model.knobs is None and results.measured.timed:
            self.model.knobs = self._app.runs.what_if(results)
        return draw(self.model, width, height, self.glyphs, self._app.what_ifs.progress)

    def show(self, results: Run) -> None:
        assert isinstance(results, MeasuredResults)
        self.model.show(results)
        self.redraw()

    def action_panel(self, by: int) -> None:
        self.model.next_panel(by)
        self.redraw()

    def action_move(self, rows: int) -> None:
        self.model.move(rows, 0)
        self.redraw()

    def action_beside(self) -> None:
        model = self.model
        if MAP in model.panels:
            model.next_beside()
        elif model.results.measured.timed:
            # A small screen has room for the bars or for the table.
            model.panel = MAP
        self.redraw()

    async def action_go(self) -> None:
        if self.model.panel == NOTES:
            await self.app.run_action("open('notes')")
            return
        target = self.model.target()
        if target is not None:
            await self._app.go_to(*target)

    def action_try(self) -> None:
        self._app.runs.try_change(self.model.knob())
