"""The session of what is open: found when the program starts, and kept while it runs and when it ends."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from simcore import __version__
from simcore.parameters import Parameters
from simcore.units import plural
from tui.frame import cells
from tui.session import AnySession, KeptRun, Session
from tui.state.checking import Damaged
from tui.state.files import read_text, session_path, set_aside, write_text
from tui.state.identity import Identity, identity_of
from tui.state.stored import MOST_RUNS, ScreenState, Stored, StoredRun, as_text, from_text

if TYPE_CHECKING:
    from tui.screen_view import ScreenView


@dataclass(slots=True)
class Keeper:
    """Keeps a session in its file. path: the file; identity: of the input.

    notice: what there is to say of the session that was found, "" for nothing. screen: the one that was
    open, parameters: of the run to go on with, None for the one as opened. screens: what screens that
    have not been opened yet begin with; places: whether places in time still mean the same.
    """

    path: str
    identity: Identity
    notice: str = ""
    screen: str | None = None
    parameters: Parameters | None = None
    screens: dict[str, ScreenState] = field(default_factory=dict)
    places: bool = True
    _wanted: str = ""
    _written: str = ""
    _complaint: str = ""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    # -- what was kept ---------------------------------------------------------------

    def resume(self, stored: Stored, session: AnySession, parameters_given: bool) -> None:
        """Go on with a session that was found.

        The runs come into the history. Of another input, or where the command line states parameters,
        the run that was on the screen is only one more of them; of another input places in time are left.
        """
        same = stored.input.is_of(self.identity)
        known = same and stored.version == __version__
        self.screen = stored.screen
        self.screens = dict(stored.screens)
        self.places = same
        said = []
        if isinstance(session, Session):
            for run in stored.runs:
                session.recall(KeptRun(run.parameters, run.name, run.step_ns if known else None))
            opened = session.opened.simulation.parameters
            if stored.parameters is not None and stored.parameters != opened:
                if same and not parameters_given:
                    self.parameters = stored.parameters
                    said.append("its parameters (R: other runs)")
                else:
                    session.recall(KeptRun(stored.parameters))
        self._say(same, said, session)

    def _say(self, same: bool, said: list[str], session: AnySession) -> None:
        more = len(session.history) - 1 if isinstance(session, Session) else 0
        if not said and more:
            said = [f"{plural(more, 'more run')} (R)"]
        if not same:
            kept = ["lanes and marks are as they were where they still exist", *said]
            self.notice = f"the input has changed since the last session: {', '.join(kept)}"
        elif said or self.screens:
            self.notice = f"as you left it: {', '.join(['the view'] * bool(self.screens) + said)}"
            self.notice += "; --no-session begins anew"

    def restore(self, name: str, view: ScreenView) -> None:
        """Give a screen its part, if there is one."""
        state = self.screens.get(name)
        if state is not None:
            view.restore(state, self.places)

    # -- keeping ---------------------------------------------------------------------

    def take(self, session: AnySession, screen: str, views: Mapping[str, ScreenView]) -> bool:
        """Take down how all is now; whether that is something else than what was written."""
        for name, view in views.items():
            state = view.saved()
            if state is not None:
                self.screens[name] = state
        parameters, runs = None, []
        if isinstance(session, Session):
            parameters = session.draft if session.running else session.current.simulation.parameters
            runs = [StoredRun(one.parameters, one.name, one.step_ns) for one in session.history]
            # The one as opened, and the newest.
            runs = [runs[0], *runs[1:][1 - MOST_RUNS :]]
        stored = Stored(self.identity, __version__, screen, parameters, tuple(runs), self.screens)
        self._wanted = as_text(stored)
        return self._wanted != self._written

    def write(self) -> str:
        """Write what was taken down last; what there is to say if that cannot be, else ""."""
        # A slow disk may still be at the one before.
        with self._lock:
            wanted = self._wanted
            if wanted == self._written:
                return ""
            try:
                write_text(self.path, wanted)
            except OSError as error:
                # Said once: a directory that cannot be written stays so most of the time.
                complaint = f"the session is not kept: {cells(_where(error, self.path))}"
                again = complaint == self._complaint
                self._complaint = complaint
                return "" if again else complaint
            self._written = wanted
        return ""


def keeper_of(opened: str, run: str, session: AnySession, parameters_given: bool) -> Keeper | None:
    """The keeper of what is open, its session restored.

    run: which of a directory's measured runs. parameters_given: whether the command line states any.
    None when what is open has gone meanwhile. A file that cannot be read is set aside and said.
    """
    try:
        identity = identity_of(opened)
        path = session_path(opened, run)
    except (OSError, ValueError):
        return None
    keeper = Keeper(path, identity)
    try:
        text = read_text(path)
        if text is not None:
            keeper.resume(from_text(text), session, parameters_given)
    except Damaged as damage:
        try:
            aside = f"set aside as {cells(os.path.basename(set_aside(path)))}"
        except OSError as error:
            aside = f"it cannot be set aside: {cells(error.strerror or str(error))}"
        keeper.notice = f"the session file was damaged ({cells(str(damage))}), {aside}"
    except OSError as error:
        keeper.notice = f"no session is restored: {cells(_where(error, path))}"
    return keeper


def _where(error: OSError, path: str) -> str:
    return f"{os.path.dirname(path)}: {error.strerror or error}"
