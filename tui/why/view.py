"""The why screen's widget: its keys, each a method of the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

from textual.binding import BindingType

from simcore.analysis import Results
from tui.frame import Line
from tui.screen_view import ScreenView, binding
from tui.session import Run, Session
from tui.why.frame import draw
from tui.why.model import WhyModel

if TYPE_CHECKING:
    from tui.app import WltuiApp


class WhyView(ScreenView):
    """The critical path and the what-if table."""

    hints = (
        ("Tab", "panel"), ("jk", "row"), ("o", "other sums"), ("Enter", "go there"), ("t", "try the change"),
        ("2", "timeline"),
    )  # fmt: skip
    BINDINGS: ClassVar[list[BindingType]] = [
        binding("tab", "panel(1)", "next panel", "why.next-panel"),
        binding("shift+tab", "panel(-1)", "panel before", "why.previous-panel"),
        binding("j,down", "move(1)", "next row", "why.down"),
        binding("k,up", "move(-1)", "row above", "why.up"),
        binding("pagedown", "move(10)", "ten rows down", "why.page-down"),
        binding("pageup", "move(-10)", "ten rows up", "why.page-up"),
        binding("g,home", "move(-10000000)", "first row", "why.first"),
        binding("G,end", "move(10000000)", "last row", "why.last"),
        binding("o", "grouping", "the path by kind, layer, stage or rank", "why.grouping"),
        binding("enter", "go", "show the leg in the timeline", "why.go"),
        binding("t", "try", "try the change under the cursor", "why.try"),
        binding("escape", "app.open('timeline')", "back to the timeline", "why.leave"),
    ]

    session: Session

    def __init__(self, session: Session, *, ascii_only: bool, id: str | None = None) -> None:
        super().__init__(session, ascii_only=ascii_only, id=id)
        self.model = WhyModel(session.current)

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
