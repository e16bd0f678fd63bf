"""The why screen of a measured run: the keys of the simulated one, over its own model."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

from textual.binding import BindingType

from simcore.measured.replay import MeasuredResults
from tui.frame import Line
from tui.measured.session import MeasuredSession
from tui.measured.why_model import MeasuredWhyModel
from tui.screen_view import ScreenView, binding
from tui.session import Run
from tui.why.frame import draw

if TYPE_CHECKING:
    from tui.app import WltuiApp


class MeasuredWhyView(ScreenView):
    """The critical path and the what-if table of a measured run."""

    hints = (
        ("Tab", "panel"), ("jk", "row"), ("o", "other sums"), ("Enter", "go there"), ("t", "try the change"),
        ("2", "timeline"),
    )  # fmt: skip
    BINDINGS: ClassVar[list[BindingType]] = [
        binding("tab", "panel(1)", "next panel", "measured-why.next-panel"),
        binding("shift+tab", "panel(-1)", "panel before", "measured-why.previous-panel"),
        binding("j,down", "move(1)", "next row", "measured-why.down"),
        binding("k,up", "move(-1)", "row above", "measured-why.up"),
        binding("pagedown", "move(10)", "ten rows down", "measured-why.page-down"),
        binding("pageup", "move(-10)", "ten rows up", "measured-why.page-up"),
        binding("g,home", "move(-10000000)", "first row", "measured-why.first"),
        binding("G,end", "move(10000000)", "last row", "measured-why.last"),
        binding("o", "grouping", "the path by kind, operation, stage or rank", "measured-why.grouping"),
        binding("enter", "go", "show the leg in the timeline", "measured-why.go"),
        binding("t", "try", "replay the change under the cursor", "measured-why.try"),
        binding("escape", "app.open('timeline')", "back to the timeline", "measured-why.leave"),
    ]

    session: MeasuredSession

    def __init__(self, session: MeasuredSession, *, ascii_only: bool, id: str | None = None) -> None:
        super().__init__(session, ascii_only=ascii_only, id=id)
        self.model = MeasuredWhyModel(session.current)

    @property
    def _app(self) -> WltuiApp:
        return cast("WltuiApp", self.app)

    def draw(self, width: int, height: int) -> list[Line]:
        results = self.model.results
        if self.model.knobs is None:
            self.model.knobs = self._app.runs.what_if(results) if results.measured.timed else []
        return draw(self.model, width, height, self.glyphs, self._app.what_ifs.progress)

    def show(self, results: Run) -> None:
        assert isinstance(results, MeasuredResults)
        self.model.show(results)
        self.redraw()

    def action_panel(self, by: int) -> None:
        self.model.next_panel(by)
        self.redraw()

    def action_move(self, by: int) -> None:
        self.model.move(by)
        self.redraw()

    def action_grouping(self) -> None:
        self.model.next_grouping()
        self.redraw()

    async def action_go(self) -> None:
        target = self.model.target()
        if target is not None:
            await self._app.go_to(*target)

    def action_try(self) -> None:
        self._app.runs.try_change(self.model.knob())
