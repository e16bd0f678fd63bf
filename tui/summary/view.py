"""The summary's widget: its keys, each a method of the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

from textual.binding import BindingType

from simcore.analysis import Results
from tui.frame import Line
from tui.screen_view import ScreenView, binding
from tui.session import Run, Session
from tui.summary.frame import draw
from tui.summary.model import MAP, NOTES, SummaryModel

if TYPE_CHECKING:
    from tui.app import WltuiApp


class SummaryView(ScreenView):
    """Where the step goes at a glance."""

    hints = (
        ("Tab", "panel"), ("hjkl", "move"), ("Enter", "go there"), ("t", "try the best change"),
        ("o", "other measure"), ("2", "timeline"), ("5", "parameters"),
    )  # fmt: skip
    BINDINGS: ClassVar[list[BindingType]] = [
        binding("tab", "panel(1)", "next panel", "summary.next-panel"),
        binding("shift+tab", "panel(-1)", "panel before", "summary.previous-panel"),
        binding("j,down", "move(1, 0)", "down", "summary.down"),
        binding("k,up", "move(-1, 0)", "up", "summary.up"),
        binding("l,right", "move(0, 1)", "right", "summary.right"),
        binding("h,left", "move(0, -1)", "left", "summary.left"),
        binding("enter", "go", "show the place in the timeline, or the notes", "summary.go"),
        binding("t", "try", "try the best change, or the one at the cursor", "summary.try"),
        binding("o", "measure", "the map of ranks, then other measures in it", "summary.measure"),
    ]

    session: Session

    def __init__(self, session: Session, *, ascii_only: bool, id: str | None = None) -> None:
        super().__init__(session, ascii_only=ascii_only, id=id)
        self.model = SummaryModel(session.current)

    @property
    def _app(self) -> WltuiApp:
        return cast("WltuiApp", self.app)

    def draw(self, width: int, height: int) -> list[Line]:
        found = self._app.what_ifs
        if self.model.knobs is None:
            self.model.knobs = found.of(self.model.results, self.model.results.what_if)
        return draw(self.model, width, height, self.glyphs, found.progress)

    def show(self, results: Run) -> None:
        assert isinstance(results, Results)
        self.model.show(results)
        self.redraw()

    def action_panel(self, by: int) -> None:
        self.model.next_panel(by)
        self.redraw()

    def action_move(self, rows: int, columns: int) -> None:
        self.model.move(rows, columns)
        self.redraw()

    def action_measure(self) -> None:
        model = self.model
        if MAP in model.panels:
            model.next_measure()
        else:
            # A small screen has room for the stages or for the map.
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
