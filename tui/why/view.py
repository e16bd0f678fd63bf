"""The why screen's widget: its keys, each a method of the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType

from tui.frame import Line
from tui.panel_cursor import WHAT_IF
from tui.panels_view import PanelsView, panel_bindings
from tui.screen_view import binding
from tui.session import Session
from tui.why.frame import draw, shows_all
from tui.why.model import WhyModel
from tui.why.path import SUMS

if TYPE_CHECKING:
    from tui.measured.why_model import MeasuredWhyModel


class PathView(PanelsView):
    """What the why screens of simulated and of measured runs share."""

    hints = (("Tab", "panel"), ("jk", "row"), ("Enter", "go there"), ("o", "other sums"), ("2", "timeline"))
    model: WhyModel | MeasuredWhyModel

    def draw(self, width: int, height: int) -> list[Line]:
        return draw(self.model, width, height, self.glyphs, self.look_for_changes())

    @property
    def _shows_sums(self) -> bool:
        return self.model.panel == SUMS or shows_all(*self.size)

    def _hints(self) -> tuple[tuple[str, str], ...]:
        """Only keys that do something here and now."""
        hints = [("Tab", "panel"), ("jk", "row")]
        if self.model.panel != WHAT_IF:
            hints.append(("Enter", "go there"))
        elif self.model.chosen() is not None:
            hints.append(("t", "try it"))
        if self._shows_sums:
            hints.append(("o", "other sums"))
        return (*hints, ("2", "timeline"))

    def redraw(self) -> None:
        """Draw again, and say which keys do something now."""
        super().redraw()
        self.show_hints(self._hints())

    def redraw_all(self) -> None:
        """As `redraw`, in a screen of another size, say."""
        super().redraw_all()
        self.show_hints(self._hints())

    def action_grouping(self) -> None:
        """Other sums; where they are not on the screen, they come there first."""
        if self._shows_sums:
            self.model.next_grouping()
        else:
            self.model.panel = SUMS
        self.redraw()

    def action_try(self) -> None:
        if self.model.panel == WHAT_IF and self.model.knobs is None:
            self._app.say("what would help is still looked for: t once it is there")
        elif self.model.panel == WHAT_IF:
            super().action_try()
        else:
            self._app.say("t tries a change of the what-if table: Tab leads there")


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
