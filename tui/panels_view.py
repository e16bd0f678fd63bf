"""A screen of panels over one run: the keys for the focus, the cursor, Enter and `t`."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from textual.binding import Binding

from tui.frame_view import ScreenView, binding
from tui.panels import WHAT_IF, PanelCursor
from tui.runs.runs import NO_CHANGE
from tui.session import Run
from tui.tour import FIXES, TRY_FIRST, TRY_THIS

if TYPE_CHECKING:
    from tui.runs.runs import RunsHost


NO_POSITION = "a change has no place on the timeline: t tries it"


class PanelsView(ScreenView):
    """A screen whose model has panels. The what-if table is computed when it is first drawn."""

    model: PanelCursor

    @property
    def _app(self) -> RunsHost:
        return cast("RunsHost", self.app)

    def _hints(self) -> tuple[tuple[str, str], ...]:
        """Returns the keys that do something here and now, with what they do."""
        raise NotImplementedError

    def redraw(self) -> None:
        """Draws again, and says which keys do something now."""
        super().redraw()
        self.show_hints(self._hints())

    def redraw_all(self) -> None:
        """Draws all again, for instance in another size, and says which keys do something now."""
        super().redraw_all()
        self.show_hints(self._hints())

    def look_for_changes(self) -> str:
        """Puts the what-if table into the model, once it is there; returns its progress."""
        if self.model.knobs is None:
            self.model.set_what_if(self._app.runs.what_if(self.model.results))
            if self.model.knobs is not None:
                # The changes are new, and the first one may fix the file.
                self.app.call_later(self.show_hints, self._hints())
        return self._app.what_ifs.progress

    def show(self, results: Run) -> None:
        self.model.show(results)
        self.redraw()

    def action_panel(self, by: int) -> None:
        self.model.next_panel(by)
        self.redraw()

    def action_move(self, rows: int, columns: int = 0) -> None:
        self.model.move(rows, columns)
        self.redraw()

    async def action_go(self) -> None:
        target = self.model.target()
        if target is not None:
            await self._app.go_to(*target)
        elif self.model.panel == WHAT_IF:
            self._app.say(NO_POSITION)

    @property
    def tries(self) -> str:
        """What `t` does: it tries the change at the cursor, else the first one, which may fix the file."""
        model = self.model
        selected, first = model.selected_change(), model.best()
        # The key says that it tries a fix: it would be taken for the first change that gains.
        if first is not None and first.fixes and selected in (None, first):
            return FIXES
        return TRY_FIRST if selected is None else TRY_THIS

    def action_try(self) -> None:
        """Tries the change under the cursor, or else the best, which may not be known yet."""
        model, runs = self.model, self._app.runs
        if self.session.running or model.knobs:
            runs.try_change(model.selected_change() or model.best())
        elif model.knobs is None:
            runs.try_best()
        else:
            self._app.say(NO_CHANGE)


def panel_bindings(room: str) -> list[Binding]:
    """Returns the keys of the focus."""
    return [
        binding("tab", "panel(1)", "next panel", f"{room}.next-panel"),
        binding("shift+tab", "panel(-1)", "panel before", f"{room}.previous-panel"),
    ]
