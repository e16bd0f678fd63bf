"""The session of what is open: restored when the program starts, saved after a change and when it ends."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING

from textual.events import Event, Key, MouseScrollDown, MouseScrollUp, MouseUp

from simcore import __version__
from simcore.parameters import Parameters
from simcore.units import plural
from tui.frame import cells
from tui.session import HistoryRun, Session
from tui.state.checking import InvalidSession
from tui.state.files import Identity, read_identity, read_text, session_path, set_aside, write_text

if TYPE_CHECKING:
    from tui.frame_view import ScreenState, ScreenView
    from tui.host import Host
    from tui.runs.runs import Runs
    from tui.state.session_content import Stored

NOT_SAVED, NOT_RESTORED = "the session is not kept", "no session is restored"


class SessionFile:
    """Keeps a session in its file.

    `path` is the file, `identity` that of the input. `notice` is the message about the restored session, ""
    for none. `screen` is the one that was open, `run` the one to continue with, None for the one as opened.
    `screens` is the saved state of screens that have not been opened yet; `keeps_positions` says whether
    positions in time still mean the same.
    """

    def __init__(self, path: str, identity: Identity) -> None:
        self.path, self.identity = path, identity
        self.notice = ""
        self.screen: str | None = None
        self.run: HistoryRun | None = None
        self.screens: dict[str, ScreenState] = {}
        self.keeps_positions = True
        self._current_text = self._saved_text = self._complaint = ""
        self._lock = threading.Lock()

    # -- what was kept ---------------------------------------------------------------

    def resume(self, stored: Stored, session: Session, parameters_given: bool) -> None:
        """Continues a saved session.

        The runs come into the history. If the input has changed, or the command line states parameters, the
        run that was on the screen is only one more of them; if the input has changed, positions in time are
        dropped.
        """
        is_same_input = stored.input.is_same_input(self.identity)
        has_same_times = is_same_input and stored.version == __version__
        self.screen = stored.screen
        self.screens = dict(stored.screens)
        self.keeps_positions = is_same_input
        parts = ["view"] if self.screens and is_same_input else ["lanes, marks"] if self.screens else []
        earlier_count, label = len(session.history), session.opened.setup.label
        for run in stored.runs:
            step_ns, work = (run.step_ns, run.work) if has_same_times else (None, None)
            session.recall(HistoryRun(run.parameters, run.name, step_ns, None, run.label or label, work=work))
        displayed_run = HistoryRun(stored.parameters or Parameters(), label=stored.label or label)
        if stored.parameters is not None and not session.history[0].is_same_run(displayed_run):
            if is_same_input and not parameters_given:
                self.run = displayed_run
            else:
                session.recall(displayed_run)
        new_count = len(session.history) - earlier_count
        if new_count:
            parts.append(f"{plural(new_count, 'more run')} (R)")
        if not is_same_input:
            self.notice = (
                f"the input changed since: {', '.join(parts) or 'nothing'} kept, not the place in it"
            )
        elif self.run is not None:
            # Complete in 80 cells: which run it is, and how to get to the file's own.
            which = session.run_words(self.run)
            self.notice = f"restored: {which}; x shows run 1, as opened; --no-session starts fresh"
        elif parts:
            self.notice = f"restored from last time: {', '.join(parts)}; --no-session starts fresh"
        if stored.lost:
            self.notice = f"{stored.lost}; {self.notice}" if self.notice else stored.lost

    def restore(self, name: str, view: ScreenView) -> None:
        """Gives a screen its saved state, if there is one."""
        state = self.screens.get(name)
        if state is not None:
            view.restore(state, self.keeps_positions)

    # -- keeping ---------------------------------------------------------------------

    def update(self, session: Session, screen: str, views: Mapping[str, ScreenView]) -> bool:
        """Records the current state; returns whether it differs from what was written."""
        from tui.state.session_content import MOST_RUNS, Stored, StoredRun, format_session

        for name, view in views.items():
            state = view.saved()
            if state is not None:
                self.screens[name] = state
        first, current = session.history[0], session.current
        parameters, label = current.parameters, current.setup.label
        if session.running:
            parameters = session.draft
        # Runs of the directory that were neither looked at nor changed are found there again.
        runs = [
            first,
            *(
                kept_run
                for kept_run in session.history[1:]
                if kept_run.name or kept_run.step_ns is not None or kept_run.parameters != Parameters()
            ),
        ]
        # The one as opened, and the newest.
        runs = [first, *runs[1:][1 - MOST_RUNS :]]
        stored = Stored(
            self.identity,
            __version__,
            screen,
            # The run as opened is what the command line says, which is not the session's.
            None if first.is_same_run(HistoryRun(parameters, label=label)) else parameters,
            tuple(
                StoredRun(run.parameters, run.name, run.step_ns, _other_label(run.label, first), run.work)
                for run in runs
            ),
            self.screens,
            _other_label(label, first),
        )
        self._current_text = format_session(stored)
        return self._current_text != self._saved_text

    def write(self) -> str:
        """Writes what was recorded last; returns a message if that fails, else ""."""
        # A slow disk may still be writing the one before.
        with self._lock:
            current_text = self._current_text
            if current_text == self._saved_text:
                return ""
            try:
                write_text(self.path, current_text)
            except OSError as error:
                # Said once: a directory that cannot be written mostly stays so.
                complaint = f"{NOT_SAVED}: {cells(_describe_error(error, self.path))}"
                again = complaint == self._complaint
                self._complaint = complaint
                return "" if again else complaint
            self._saved_text = current_text
        return ""


def open_keeper(opened: str, run: str, session: Session, parameters_given: bool) -> SessionFile | None:
    """Returns the keeper of what is open, with its session restored.

    run: which of a directory's measured runs. parameters_given: whether the command line states any. None
    when the input has disappeared meanwhile. A file that cannot be read is renamed, with a message.
    """
    try:
        identity = read_identity(opened)
        path = session_path(opened, run)
    except (OSError, ValueError):
        return None
    keeper = SessionFile(path, identity)
    try:
        text = read_text(path)
        if text is not None:
            from tui.state.session_content import parse_session

            keeper.resume(parse_session(text), session, parameters_given)
    except InvalidSession as damage:
        try:
            aside = f"set aside as {cells(os.path.basename(set_aside(path)))}"
        except OSError as error:
            aside = f"cannot be set aside ({cells(error.strerror or str(error))})"
        keeper.notice = f"session damaged, {aside}: {cells(str(damage))}"
    except OSError as error:
        keeper.notice = f"{NOT_RESTORED}: {cells(_describe_error(error, path))}"
    return keeper


def _other_label(label: str | None, first: HistoryRun) -> str | None:
    """Returns which run of the directory it is, None for the one that was opened."""
    return None if label == first.label else label


def _describe_error(error: OSError, path: str) -> str:
    return f"{os.path.dirname(path)}: {error.strerror or error}"


# Seconds after a change until the session is written.
SAVE_AFTER = 5.0
# Events that may change something. The position of the pointer does not.
_ACTING = (Key, MouseUp, MouseScrollUp, MouseScrollDown)


class SessionKeeping:
    """Restores an app's session and saves it; does nothing without a keeper."""

    def __init__(self, app: Host, keeper: SessionFile | None) -> None:
        self._app = app
        self._keeper = keeper
        self._touched = False
        self._is_due = False

    @property
    def notice(self) -> str:
        """The message about the restored session."""
        return "" if self._keeper is None else self._keeper.notice

    def restore(self, name: str, view: ScreenView) -> None:
        """Gives a new screen its saved state."""
        if self._keeper is not None:
            self._keeper.restore(name, view)

    def begin(self, runs: Runs) -> None:
        """Continues with the run that was on the screen: shown when it is there, after the first drawing."""
        if self._keeper is None:
            return
        restored_run = self._keeper.run
        if restored_run is not None:
            # Not before the first drawing, which is of the run as opened.
            self._app.call_after_refresh(runs.show, restored_run, self._restore_positions)

    def _restore_positions(self) -> None:
        """Restores the positions in this very run, unless the user has moved meanwhile."""
        if not self._touched:
            for name, view in self._app.views.items():
                self.restore(name, view)

    def on_event(self, event: Event) -> None:
        """Schedules saving: once for all keys until then."""
        if self._keeper is None or not isinstance(event, _ACTING):
            return
        self._touched = True
        if not self._is_due:
            self._is_due = True
            self._app.set_timer(SAVE_AFTER, self._keep)

    def _keep(self) -> None:
        self._is_due = False
        keeper, app = self._keeper, self._app
        if keeper is not None and keeper.update(app.session, app.screen_name, app.views):
            # A disk may be slow.
            app.run_worker(lambda: self._write(keeper), thread=True, group="session")

    def _write(self, keeper: SessionFile) -> None:
        complaint = keeper.write()
        if complaint and self._app.is_running:
            self._app.call_from_thread(self._app.say, complaint)

    def end(self) -> str:
        """Saves the session as it is at the end; returns a message if that fails, else ""."""
        keeper, app = self._keeper, self._app
        # After a failure of the program itself the session may be what it failed at.
        if keeper is None or app.return_code == 1:
            return ""
        return keeper.write() if keeper.update(app.session, app.screen_name, app.views) else ""
