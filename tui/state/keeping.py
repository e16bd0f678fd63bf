"""When a session is kept: a while after a change, and when the program ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.events import Event, Key, MouseScrollDown, MouseScrollUp, MouseUp

if TYPE_CHECKING:
    from tui.app import WltuiApp
    from tui.runs.runs import Runs
    from tui.screen_view import ScreenView
    from tui.state.keeper import Keeper

# Seconds after a change until the session is written.
SAVE_AFTER = 5.0
# What may change something. Not where the pointer is.
_ACTING = (Key, MouseUp, MouseScrollUp, MouseScrollDown)


class Keeping:
    """Restores an app's session and keeps it; without a keeper nothing of that is done."""

    def __init__(self, app: WltuiApp, keeper: Keeper | None) -> None:
        self._app = app
        self._keeper = keeper
        self._touched = False
        self._is_due = False

    @property
    def notice(self) -> str:
        """What there is to say of the session that was found."""
        return "" if self._keeper is None else self._keeper.notice

    def restore(self, name: str, view: ScreenView) -> None:
        """Give a new screen its part."""
        if self._keeper is not None:
            self._keeper.restore(name, view)

    def begin(self, runs: Runs) -> None:
        """Go on with the run that was on the screen: shown when it is there, behind the first picture."""
        if self._keeper is None:
            return
        kept = self._keeper.run
        if kept is not None:
            # Not before the first picture is there: that is of the run as opened.
            self._app.call_after_refresh(runs.show, kept, self._restore_places)

    def _restore_places(self) -> None:
        """Where one was in this very run, if nobody has gone elsewhere meanwhile."""
        if not self._touched:
            for name, view in self._app.views.items():
                self.restore(name, view)

    def noticed(self, event: Event) -> None:
        """What was done is kept in a while: once for all keys until then."""
        if self._keeper is None or not isinstance(event, _ACTING):
            return
        self._touched = True
        if not self._is_due:
            self._is_due = True
            self._app.set_timer(SAVE_AFTER, self._keep)

    def _keep(self) -> None:
        self._is_due = False
        keeper, app = self._keeper, self._app
        if keeper is not None and keeper.take(app.session, app.screen_name, app.views):
            # A disk may be slow.
            app.run_worker(lambda: self._write(keeper), thread=True, group="session")

    def _write(self, keeper: Keeper) -> None:
        complaint = keeper.write()
        if complaint and self._app.is_running:
            self._app.call_from_thread(self._app.say, complaint)

    def end(self) -> str:
        """Keep the session as it is at the end; what there is to say if that cannot be, else ""."""
        keeper, app = self._keeper, self._app
        # After a failure of the program itself the session may be what it failed at.
        if keeper is None or app.return_code == 1:
            return ""
        return keeper.write() if keeper.take(app.session, app.screen_name, app.views) else ""
