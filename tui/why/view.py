"""The why screen's widget: its keys, each a method of the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType

from tui.frame import Line
from tui.panels_view import PanelsView, panel_bindings
from tui.screen_view import binding
from tui.session import Session
from tui.why.frame import draw
from tui.why.model import WhyModel

if TYPE_CHECKING:
    from tui.measured.why_model import MeasuredWhyModel


class PathView(PanelsView):
    """What the why screens of simulated and of measured runs share."""

    hints = (
        ("Tab", "panel"), ("jk", "row"), ("Enter", "go there"), ("t", "try it"), ("o", "other sums"),
        ("2", "timeline"),
    )  # fmt: skip
    model: WhyModel | MeasuredWhyModel

    def draw(self, width: int, height: int) -> list[Line]:
        return draw(self.model, width, height, self.glyphs, self.look_for_changes())

    def action_grouping(self) -> None:
        self.model.next_grouping()
        self.redraw()


def path_bindings(room: str, groupings: str, tries: str) -> list[Binding]:
    """The keys of a why screen. groupings: what the path is summed by; tries: what `t` does."""
    return [
        *panel_bindings(room),
        binding("j,down", "move(1)", "next row", f"{room}.down"),
        binding("k,up", "move(-1)", "row above", f"{room}.up"),
        binding("pagedown", "move(10)", "ten rows down", f"{room}.page-down"),
        binding("pageup", "move(-10)", "ten rows up", f"{room}.page-up"),
        binding("g,home", "move(-10000000)", "first row", f"{room}.first"),
        binding("G,end", "move(10000000)", "last row", f"{room}.last"),
        binding("o", "grouping", f"the path by {groupings}", f"{room}.grouping"),
        binding("enter", "go", "to the leg, or longest of a sum, in the timeline", f"{room}.go"),
        binding("t", "try", f"{tries} the change under the cursor", f"{room}.try"),
        binding("escape", "app.open('timeline')", "back to the timeline", f"{room}.leave"),
    ]


class WhyView(PathView):
    """The critical path and the what-if table."""

    BINDINGS: ClassVar[list[BindingType]] = [*path_bindings("why", "kind, layer, stage or rank", "try")]

    def __init__(self, session: Session, *, ascii_only: bool, id: str | None = None) -> None:
        super().__init__(session, ascii_only=ascii_only, id=id)
        self.model: WhyModel = WhyModel(session.current)
