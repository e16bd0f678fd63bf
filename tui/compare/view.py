"""The compare screen's widget: its keys, each a method of the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, cast

from textual.binding import BindingType

from simcore.analysis import Results
from simcore.analysis.compare import Comparison
from tui.background import IsCancelled, Progress
from tui.compare.frame import draw
from tui.compare.model import MOVERS, CompareModel
from tui.frame import Line, rule
from tui.screen_view import ScreenView, binding
from tui.session import Run, Session

if TYPE_CHECKING:
    from tui.app import WltuiApp


class CompareView(ScreenView):
    """The run on the screen, B, beside one that was kept, A."""

    hints = (
        ("w s", "zoom"), ("a d", "pan"), ("hjkl", "cursor"), ("z", "align ends"), ("o", "other A"),
        ("x", "swap"), ("Tab", "ops"), ("2", "timeline"),
    )  # fmt: skip
    BINDINGS: ClassVar[list[BindingType]] = [
        binding("w,plus,equals_sign", "zoom(1, 2)", "zoom in at the cursor, both runs", "compare.zoom-in"),
        binding("s,minus", "zoom(2, 1)", "zoom out", "compare.zoom-out"),
        binding("a", "pan(-1, 8)", "pan left", "compare.pan-left"),
        binding("d", "pan(1, 8)", "pan right", "compare.pan-right"),
        binding("A,shift+left", "pan(-1, 1)", "page left", "compare.page-left"),
        binding("D,shift+right", "pan(1, 1)", "page right", "compare.page-right"),
        binding("h,left", "cursor(-1)", "cursor left", "compare.cursor-left"),
        binding("l,right", "cursor(1)", "cursor right", "compare.cursor-right"),
        binding("j,down", "move(1)", "next pair of lanes, or next op", "compare.down"),
        binding("k,up", "move(-1)", "pair above, or op above", "compare.up"),
        binding("pagedown", "move(5)", "five on", "compare.page-down"),
        binding("pageup", "move(-5)", "five back", "compare.page-up"),
        binding("f,0", "all", "both steps whole", "compare.all"),
        binding("z", "ends", "lay the ends of the steps on each other, or the starts", "compare.ends"),
        binding("tab", "panel", "to the ops that differ most, and back", "compare.panel"),
        binding("enter", "go", "show the op in the lanes", "compare.go"),
        binding("o", "other", "compare with another run that was kept", "compare.other"),
        binding("escape", "app.open('timeline')", "back to the timeline", "compare.leave"),
    ]

    session: Session

    def __init__(self, session: Session, *, ascii_only: bool, id: str | None = None) -> None:
        super().__init__(session, ascii_only=ascii_only, id=id)
        self._first = 0
        self.model: CompareModel | None = None
        self._compare()

    def _compare(self) -> None:
        """The run on the screen against the chosen one, or the first that is another."""
        current = self.session.current
        others = [
            run for run in self.session.runs if run.simulation.parameters != current.simulation.parameters
        ]
        beside, self.session.beside = self.session.beside, None
        if beside is not None and beside in others:
            self._first = others.index(beside)
        self.model = CompareModel(Comparison(others[self._first % len(others)], current)) if others else None

    def draw(self, width: int, height: int) -> list[Line]:
        model = self.model
        if model is None:
            words = "There is one run: change a parameter (5), or try a change (t on 1 or 4)."
            return [rule("Compare", width, self.glyphs), [(f"  {words}", "")]]
        found = self._app.comparisons.of(model.comparison, lambda *_: _ops(model.comparison, *_))
        return draw(model, width, height, self.glyphs, self.colour, found is not None)

    @property
    def _app(self) -> WltuiApp:
        return cast("WltuiApp", self.app)

    def show(self, results: Run) -> None:
        assert isinstance(results, Results)
        self._compare()
        self.redraw()

    def action_zoom(self, numerator: int, denominator: int) -> None:
        if self.model is not None:
            self.model.zoom(numerator, denominator)
            self.redraw()

    def action_pan(self, numerator: int, denominator: int) -> None:
        if self.model is not None:
            self.model.pan(numerator, denominator)
            self.redraw()

    def action_cursor(self, by: int) -> None:
        if self.model is not None:
            self.model.move_cursor(by)
            self.redraw()

    def action_move(self, by: int) -> None:
        if self.model is not None:
            self.model.move(by)
            self.redraw()

    def action_all(self) -> None:
        if self.model is not None:
            self.model.show_all()
            self.redraw()

    def action_ends(self) -> None:
        if self.model is not None:
            self.model.toggle_ends()
            self.redraw()

    def action_panel(self) -> None:
        if self.model is not None:
            self.model.next_panel()
            self.redraw()

    def action_go(self) -> None:
        if self.model is not None and self.model.panel == MOVERS:
            self.model.go_to_mover()
            self.redraw()

    def action_other(self) -> None:
        if len(self.session.runs) < 2:
            self._app.say("there is no other run that was kept: r keeps one (5)")
            return
        self._first += 1
        self._compare()
        self.redraw()


def _ops(comparison: Comparison, progress: Progress, is_cancelled: IsCancelled) -> Any:
    """What takes long: every op of the one run beside its like in the other."""
    return comparison.movers
