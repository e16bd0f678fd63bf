"""`c`: the run on the screen fitted to the trace beside it, what came of it, and what is done with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from simcore.analysis import Results
from simcore.diagnostics import InputError, UsageError
from simcore.replay import MeasuredResults
from tui.background import IsCancelled, Progress
from tui.frame import Glyphs, Line, cells, rule, wrapped
from tui.session import Session
from tui.writing import FileQuestion

if TYPE_CHECKING:
    from simcore.calibration import Calibration
    from tui.app import WltuiApp
    from tui.runs.simulated import SimulatedRuns

_OPEN_BOTH = "To fit a workload to a trace open both: wltui WORKLOAD --against DIR"
_OTHER_WAY = "To fit the workload that is beside it: wltui WORKLOAD --against DIR"
_NOT_YET = "nothing is fitted yet: c fits the workload to the trace beside it"
_WAIT = "nothing is fitted yet: wait for it, or stop it (Esc)"
_NOTHING_TO_TRY = "nothing could be fitted, so there is nothing to try"
_TRIED = "the run on the screen has these parameters already"
_STOPPED = "the calibration was stopped; c begins it anew"
_FIRST_NAME = "fitted.toml"
_HINTS = (("t", "try it"), ("S", "save"), ("jk", "scroll"), ("Esc", "back"))
_REFUSED_HINTS = (("Esc", "back"),)
_RUNNING_HINTS = (("Esc", "stop"),)


class Calibrating:
    """is_open: whether the panel covers the comparison. It is of the run on the screen, whichever that is."""

    def __init__(self, app: WltuiApp) -> None:
        self._app = app
        self.is_open = False
        self._top = 0
        # The run, and its calibration or why there is none.
        self._found: tuple[Results, Calibration | str] | None = None
        # What `t` tried: its run is on the screen with other parameters than were fitted.
        self._tried: Calibration | None = None
        # Which calibration was saved last, and where; the path is offered again.
        self._saved: tuple[Calibration, str] | None = None
        self._path = _FIRST_NAME

    @property
    def can(self) -> bool:
        """Whether a workload is open with a trace beside it."""
        return isinstance(self._app.session, Session) and isinstance(self._app.against, MeasuredResults)

    @property
    def hints(self) -> tuple[tuple[str, str], ...]:
        """What the last row says of the keys of the panel."""
        if self._here is None:
            return _RUNNING_HINTS
        return _REFUSED_HINTS if isinstance(self._here, str) else _HINTS

    @property
    def _here(self) -> Calibration | str | None:
        """What was found for the run on the screen; None while it is not there."""
        found = self._found
        return found[1] if found is not None and found[0] is self._app.session.current else None

    def open(self) -> None:
        """Open the panel, or say what is to be opened before."""
        if self.can:
            self.is_open, self._top = True, 0
        elif self._app.session.measured and isinstance(self._app.against, Results):
            self._app.say(_OTHER_WAY)
        else:
            self._app.say(_OPEN_BOTH)

    def leave(self) -> None:
        """Close the panel; a calibration that is under way is stopped."""
        self.is_open = False
        if self._here is None:
            self._app.calibrations.stop()
            self._app.say(_STOPPED)

    def look(self) -> None:
        """Look for the calibration of the run on the screen, once."""
        results, against = self._app.session.current, self._app.against
        assert isinstance(results, Results)
        assert isinstance(against, MeasuredResults)
        simulation, measured = results.simulation, against.measured

        def find(progress: Progress, is_cancelled: IsCancelled) -> Calibration | str:
            from simcore.calibration import calibrate_run

            try:
                return calibrate_run(simulation, measured, progress, is_cancelled)
            except (UsageError, InputError) as error:
                return str(error)

        found = self._app.calibrations.of(results, find)
        self._found = None if found is None else (results, found)

    def scroll(self, by: int) -> None:
        """Other lines of the panel."""
        self._top += by

    def draw(self, width: int, height: int, glyphs: Glyphs) -> list[Line]:
        """The lines of the panel."""
        found = self._here
        session = self._app.session
        names = [cells(one.rstrip("/").rsplit("/", 1)[-1], 30) for one in (session.current.path, self._trace)]
        title = rule(f"Calibrate {names[0]} to {names[1]}", width, glyphs)
        if found is None:
            return [title, [(f" {self._app.calibrations.progress}, Esc stops it", "dim")]]
        if isinstance(found, str):
            return [title, *([(f" {line}", "worse")] for line in wrapped(found, width - 2))]
        from tui.compare.calibration_frame import calibration_lines

        saved = self._saved[1] if self._saved is not None and self._saved[0] is found else None
        lines = calibration_lines(found, saved, width, glyphs)
        rows = height - 1
        self._top = max(0, min(self._top, len(lines) - rows))
        hidden = len(lines) - self._top - rows
        if hidden > 0:
            shown = lines[self._top :][: rows - 1]
            return [title, *shown, rule(f"{hidden + 1} more: j", width, glyphs)]
        return [title, *lines[self._top :]]

    @property
    def _trace(self) -> str:
        return self._app.against.path if self._app.against is not None else ""

    @property
    def _tried_here(self) -> Calibration | None:
        """The calibration whose parameters the run on the screen has, where none is asked for of that run."""
        current, tried = self._app.session.current, self._tried
        if tried is None or self.is_open or self._here is not None or not isinstance(current, Results):
            return None
        return tried if current.simulation.parameters == tried.parameters else None

    def _fitted(self, otherwise: str) -> Calibration | None:
        """The calibration of the run on the screen; None where there is none or it has fitted nothing, which
        is said.
        """
        found = self._here
        if not self.can:
            self.open()
        elif found is None:
            self._app.say(_WAIT if self.is_open else _NOT_YET)
        elif isinstance(found, str) or not found.is_fitted:
            self._app.say(otherwise)
        else:
            return found
        return None

    def try_it(self) -> None:
        """The fitted parameters become the run on the screen, one of the history."""
        found = self._fitted(_NOTHING_TO_TRY)
        if found is None:
            return
        runs = cast("SimulatedRuns", self._app.runs)
        if found.parameters == found.before.parameters:
            self._app.say(_TRIED)
        elif runs.try_parameters(found.parameters):
            self.is_open, self._tried = False, found

    def save(self) -> None:
        """Ask for a file, and write the fitted parameters to it: also while their run is on the screen."""
        from simcore.report.calibration_text import NOTHING_SAVED

        found = self._tried_here or self._fitted(NOTHING_SAVED)
        if found is not None:
            question = FileQuestion(
                self._app, lambda path, force: self._write(found, path, force), self._app.say
            )
            question.ask("save the fitted parameters as", self._path)

    def _write(self, calibration: Calibration, path: str, force: bool) -> None:
        from simcore.export.saving import save
        from simcore.parameters_file import parameters_toml

        try:
            save(path, [parameters_toml(calibration.parameters).encode()], force)
        except (UsageError, InputError) as error:
            self._app.say(str(error))
            return
        self._path, self._saved = path, (calibration, path)
        self._app.redraw_current()
        self._app.say(f"saved: {cells(path, 200)}")
