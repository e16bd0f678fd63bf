"""Fixtures for the tests of the screen."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import textual.app
import textual.pilot
from textual._context import active_app
from textual._wait import wait_for_idle
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.pilot import Pilot

from simcore.analysis.what_if import what_if
from simcore.measured import MeasuredRun
from simcore.parameters import Parameters
from simcore.runs.measured import RecordedRun
from simcore.runs.simulated import SimulatedRun
from simcore.simulation import Simulation, simulate
from simcore.sources.inputs import open_input
from simcore.trace.findings import WhatIf
from simcore.workload import Workload
from tests.tui.made_runs import seed
from tui.app import WltuiApp
from tui.compare.calibrating import Calibrating
from tui.compare.view import CompareView
from tui.session import Run, Session

MakeApp = Callable[..., WltuiApp]
MakePair = Callable[..., WltuiApp]


@pytest.fixture(autouse=True)
def _exact_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pilot waits until nothing is left to be done. Its own way is to look whether the process takes little
    processor time, in steps of 20 ms, four of them for each key.
    """
    for waiting in (textual.app, textual.pilot):
        monkeypatch.setattr(waiting, "wait_for_idle", _wait_until_idle)
    # What has been sent to the widgets is done by then; a message to each of them takes as long as a key.
    monkeypatch.setattr(Pilot, "_wait_for_screen", _wait_until_idle)
    # Its own way is left for workers at work.
    monkeypatch.setattr("textual._wait.SLEEP_GRANULARITY", 1 / 250)
    monkeypatch.setattr("textual._wait.SLEEP_IDLE", 1 / 500)


async def _wait_until_idle(*_: object) -> bool:
    """Waits until the event loop has nothing to call, and workers are done or have to wait themselves."""
    ready = asyncio.get_running_loop()._ready  # type: ignore[attr-defined]
    app = active_app.get()
    while True:
        idle_rounds = 0
        while idle_rounds < 2:
            # What threads have sent is asked for in between.
            await asyncio.sleep(0)
            idle_rounds = 0 if ready else idle_rounds + 1
        due = [screen for screen in app.screen_stack if screen._update_timer._active.is_set()]
        for screen in due:
            # It would be 16 ms later.
            screen._on_timer_update()
        if app._resize_timer is not None:
            # Textual answers to a new size 8 ms later.
            await asyncio.sleep(0.002)
        elif not due:
            break
    if not all(one.is_finished for one in app.workers):
        await wait_for_idle(0)
    return True


_RULES: dict[object, list[RuleSet]] = {}


@pytest.fixture(autouse=True)
def _rules_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The style sheets of Textual's widgets and of the app are parsed once a process, not once an app."""
    parse = Stylesheet._parse_rules

    def parse_once(sheet: Stylesheet, *arguments: Any, **keywords: Any) -> list[RuleSet]:
        key = (*arguments, *keywords.items(), *sheet._variables.items())
        if key not in _RULES:
            _RULES[key] = parse(sheet, *arguments, **keywords)
        return _RULES[key]

    monkeypatch.setattr(Stylesheet, "_parse_rules", parse_once)


_SEARCHED: dict[object, list[WhatIf]] = {}


@pytest.fixture(autouse=True)
def _searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What changes of a run bring is searched once a process: it took two fifths of the time of these tests,
    most of them for the same runs of the same fixtures. The search has tests of its own.
    """

    def found(simulation: Simulation, *arguments: Any) -> list[WhatIf]:
        workload = simulation.workload
        columns = (workload.fwd, workload.ig, workload.wg)
        key = (
            simulation.parameters, workload.path, workload.header.__repr__(), *workload.name,
            *(each for cells in columns for each in (*cells.collective, *cells.group)),
            *(column.tobytes() for cells in columns for column in (cells.compute_ns, cells.bytes)),
        )  # fmt: skip
        if key not in _SEARCHED:
            _SEARCHED[key] = what_if(simulation, *arguments)
        return list(_SEARCHED[key])

    monkeypatch.setattr("simcore.analysis.what_if.what_if", found)


@pytest.fixture
def make_app(monkeypatch: pytest.MonkeyPatch) -> MakeApp:
    """Makes an app on seed 002, or on another run. No colour setting of who runs the tests reaches it."""
    for name in ("NO_COLOR", "COLORTERM", "TEXTUAL", "TEXTUAL_COLOR_SYSTEM", "TEXTUAL_FPS", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")

    def make(opened: Run | None = None, against: Run | None = None, **keywords: object) -> WltuiApp:
        session = Session(opened or seed(), against=against)
        # Most tests are about the timeline; what is first for a user is in the tests of the summary.
        return WltuiApp(session, **{"first": "timeline", **keywords})  # type: ignore[arg-type]

    return make


@pytest.fixture
def pair_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the workload `made.txt` and `traces` of its step are."""
    from tests.command_line.test_calibrate_command import inputs

    inputs(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def make_pair(make_app: MakeApp, pair_folder: Path) -> MakePair:
    """Makes an app on the workload with the trace beside it, on the compare screen."""

    def make(trace: str = "traces", **keywords: object) -> WltuiApp:
        make_app()
        workload, measured = open_input("made.txt"), open_input(trace)
        assert isinstance(workload, Workload)
        assert isinstance(measured, MeasuredRun)
        parameters = keywords.pop("parameters", Parameters(dim=("switch:2:20:0", "switch:2:20:0")))
        assert isinstance(parameters, Parameters)
        session = Session(SimulatedRun(simulate(workload, parameters)), against=RecordedRun(measured))
        return WltuiApp(session, first="compare", **keywords)  # type: ignore[arg-type]

    return make


def calibrating_of(app: WltuiApp) -> Calibrating:
    """The calibration of the compare screen, which has been opened."""
    view = app.views["compare"]
    assert isinstance(view, CompareView)
    return view.calibrating
