"""`F`: fits the simulated run of the two that are open to the measured one, and applies or saves
the result.
"""

from __future__ import annotations

import textwrap
from itertools import permutations
from typing import TYPE_CHECKING, cast

from simcore.calibration import Calibration
from simcore.comparison import has_rows
from simcore.diagnostics import InputError, UsageError
from simcore.render.report.calibration import (
    fitted_lines,
    fitted_title,
    kind_lines,
    kinds_title,
    rank_lines,
    rest_lines,
    saved_lines,
    step_lines,
    warnings,
)
from tui.background import IsCancelled, Progress
from tui.exporting import FileQuestion
from tui.frame import Glyphs, Line, cells, page_of, rule, wrapped

if TYPE_CHECKING:
    from simcore.measured import MeasuredRun
    from simcore.runs.simulated import SimulatedRun
    from tui.runs.runs import RunsHost


_OPEN_BOTH = "To fit a workload to a trace open both: wltui WORKLOAD --against DIR"
NOT_YET = "nothing is fitted yet: F fits the workload to the trace beside it"
WAIT = "nothing is fitted yet: wait for it, or stop it (Esc)"
NOTHING_TO_TRY = "nothing could be fitted, so there is nothing to try"
ALREADY_TRIED = "the run on the screen has these parameters already"
STOPPED = "the calibration was stopped; F starts it again"
_FIRST_NAME = "fitted.toml"
_HINTS = (("t", "try it"), ("S", "save"), ("jk", "scroll"), ("Esc", "back"))
_REFUSED_HINTS = (("Esc", "back"),)
_RUNNING_HINTS = (("Esc", "stop"),)


class Calibrating:
    """The panel of the calibration of the two open runs; `is_open` says whether it covers the comparison."""

    def __init__(self, app: RunsHost) -> None:
        self._app = app
        self.is_open = False
        self._top = 0
        # The run, and its calibration or why there is none.
        self._result: tuple[SimulatedRun, Calibration | str] | None = None
        # The calibration that `t` tried: its run is on the screen with other parameters than were fitted.
        self._tried_calibration: Calibration | None = None
        # The calibration that was saved last, and where; the path is offered again.
        self._saved: tuple[Calibration, str] | None = None
        self._path = _FIRST_NAME

    @property
    def _pair(self) -> tuple[SimulatedRun, MeasuredRun] | None:
        """The simulated run and the trace, whichever of them is on the screen; None where both are of one
        kind.
        """
        session = self._app.session
        for simulated, trace in permutations((session.current, session.against)):
            if (
                simulated is not None
                and trace is not None
                and has_rows(simulated)
                and trace.recording is not None
            ):
                return cast("SimulatedRun", simulated), cast("MeasuredRun", trace.setup.source)
        return None

    @property
    def can_calibrate(self) -> bool:
        """Whether a workload and a trace are both open."""
        return self._pair is not None

    @property
    def hints(self) -> tuple[tuple[str, str], ...]:
        """The hints of the last row for the keys of the panel."""
        if self._current is None:
            return _RUNNING_HINTS
        return _REFUSED_HINTS if isinstance(self._current, str) else _HINTS

    @property
    def _current(self) -> Calibration | str | None:
        """The result for the run on the screen; None while there is none."""
        last = self._result
        pair = self._pair
        return last[1] if last is not None and pair is not None and last[0] is pair[0] else None

    def open(self) -> None:
        """Opens the panel, or says what has to be opened first."""
        if self.can_calibrate:
            self.is_open, self._top = True, 0
        else:
            self._app.say(_OPEN_BOTH)

    def leave(self) -> None:
        """Closes the panel; a running calibration is stopped."""
        self.is_open = False
        if self._current is None:
            self._app.calibrations.stop()
            self._app.say(STOPPED)

    def update(self) -> None:
        """Computes the calibration of the simulated run, once."""
        pair = self._pair
        assert pair is not None  # else the panel is not open
        results, measured = pair
        simulation = results.simulation

        def find(progress: Progress, is_cancelled: IsCancelled) -> Calibration | str:
            from simcore.calibration import calibrate_run

            try:
                return calibrate_run(simulation, measured, progress, is_cancelled)
            except (UsageError, InputError) as error:
                return str(error)

        calibration = self._app.calibrations.request(results, find)
        self._result = None if calibration is None else (results, calibration)

    def scroll(self, by: int) -> None:
        """Scrolls the panel."""
        self._top += by

    def draw(self, width: int, height: int, glyphs: Glyphs) -> list[Line]:
        """Returns the lines of the panel."""
        calibration = self._current
        paths = [run.path for run in self._pair or ()]
        names = [cells(path.rstrip("/").rsplit("/", 1)[-1], 30) for path in paths]
        title = rule(f"Calibrate {names[0]} to {names[1]}", width, glyphs)
        if calibration is None:
            return [title, [(f" {self._app.calibrations.progress}, Esc stops it", "dim")]]
        if isinstance(calibration, str):
            return [title, *([(f" {line}", "worse")] for line in wrapped(calibration, width - 2))]

        saved = self._saved[1] if self._saved is not None and self._saved[0] is calibration else None
        lines = calibration_lines(calibration, saved, width, glyphs)
        self._top, visible_lines = page_of(
            lines, self._top, height - 1, lambda below: rule(f"{below} more: j", width, glyphs)
        )
        return [title, *visible_lines]

    @property
    def _calibration_on_screen(self) -> Calibration | None:
        """The tried calibration, if the simulated run has its parameters; None while the panel is open or
        that run has a calibration of its own.
        """
        pair, calibration = self._pair, self._tried_calibration
        if calibration is None or self.is_open or self._current is not None or pair is None:
            return None
        return calibration if pair[0].parameters == calibration.after.parameters else None

    def _fit_or_explain(self, otherwise: str) -> Calibration | None:
        """Returns the calibration of the simulated run; None where there is none or it has fitted nothing,
        which it says.
        """
        calibration = self._current
        if not self.can_calibrate:
            self.open()
        elif calibration is None:
            self._app.say(WAIT if self.is_open else NOT_YET)
        elif isinstance(calibration, str) or not calibration.is_fitted:
            self._app.say(otherwise)
        else:
            return calibration
        return None

    def try_it(self) -> None:
        """Makes the fitted parameters those of the simulated run, on the screen or as the other run."""
        calibration = self._fit_or_explain(NOTHING_TO_TRY)
        if calibration is None:
            return
        app, pair = self._app, self._pair
        is_second = pair is not None and pair[0] is app.session.against
        try_them = app.runs.try_second if is_second else app.runs.try_run
        if calibration.after.parameters == calibration.before.parameters:
            app.say(ALREADY_TRIED)
        elif try_them(calibration.after.setup):
            self.is_open, self._tried_calibration = False, calibration

    def save(self) -> None:
        """Asks for a file and writes the fitted parameters to it, also while their run is on the screen."""
        from simcore.render.report.calibration import NOTHING_SAVED

        calibration = self._calibration_on_screen or self._fit_or_explain(NOTHING_SAVED)
        if calibration is not None:
            question = FileQuestion(
                self._app, lambda path, force: self._write(calibration, path, force), self._app.say
            )
            question.ask("save the fitted parameters as", self._path)

    def _write(self, calibration: Calibration, path: str, force: bool) -> str:
        from simcore.parameter_values.parameters_file import toml_of
        from simcore.render.export.saving import save

        save(path, [toml_of(calibration.after.parameters.explicit_values()).encode()], force)
        self._path, self._saved = path, (calibration, path)
        self._app.redraw_current()
        return f"saved: {cells(path, 200)}"


# Lines are indented by one cell, and end one cell before the edge.
_MARGIN = 2
# The most cells of a command with the path of a workload.
_MAX_CELLS = 5000


def calibration_lines(calibration: Calibration, saved: str | None, width: int, glyphs: Glyphs) -> list[Line]:
    """Returns all lines, however many. saved: where its parameters are, None for nowhere."""
    room = max(width - _MARGIN, 20)

    def part(title: str, lines: list[str], role: str = "") -> list[Line]:
        return [rule(title, width, glyphs), *_lines(lines, role)]

    head, *kinds = kind_lines(calibration, room)
    doubts = [row for warning in warnings(calibration) for row in _wrap_line(warning, room)]
    ranks, remaining_lines = rank_lines(calibration, room), rest_lines(calibration, room)
    steps = [row for line in step_lines(calibration) for row in _wrap_line(line, room)]
    file = [row for line in saved_lines(calibration, saved, "S") for row in _wrap_line(line, room)]
    lines = [
        *_lines(steps, "bright"),
        *part(fitted_title(calibration), fitted_lines(calibration, room)),
        *part(kinds_title(calibration), [head], "dim"),
        *_lines(kinds, ""),
    ]
    if ranks or remaining_lines or doubts:
        lines += [
            *part("Left out of the fit", ranks, "warn"),
            *_lines(doubts, "warn"),
            *_lines(remaining_lines, ""),
        ]
    return [*lines, *(part("Parameters", file) if calibration.is_fitted else [])]


def _lines(lines: list[str], role: str) -> list[Line]:
    return [[(f" {cells(line, _MAX_CELLS)}", role)] for line in lines]


def _wrap_line(text: str, width: int) -> list[str]:
    """Returns a line in as many lines as it takes, continuations indented; a share stays with its sign."""
    indent = " " * (len(text) - len(text.lstrip()) + 2)
    unbroken = text.replace(" %", "\u00a0%")
    lines = textwrap.wrap(unbroken, width, subsequent_indent=indent, break_on_hyphens=False)
    return [line.replace("\u00a0", " ") for line in lines]
