"""Fixtures for the tests of the screen."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from simcore.analysis import Results
from tests.tui.made_runs import seed, seed_workload
from tui.app import WltuiApp
from tui.session import Session

MakeApp = Callable[..., WltuiApp]


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pilot waits until the process is idle, in steps of 20 ms by default: three for each key."""
    monkeypatch.setattr("textual._wait.SLEEP_GRANULARITY", 1 / 250, raising=False)
    monkeypatch.setattr("textual._wait.SLEEP_IDLE", 1 / 500, raising=False)


@pytest.fixture
def make_app(monkeypatch: pytest.MonkeyPatch) -> MakeApp:
    """Makes an app on seed 002, or on another run. No colour setting of who runs the tests reaches it."""
    for name in ("NO_COLOR", "COLORTERM", "TEXTUAL", "TEXTUAL_COLOR_SYSTEM", "TEXTUAL_FPS", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")

    def make(opened: Results | None = None, **keywords: object) -> WltuiApp:
        results = opened or seed()
        workload = results.simulation.workload if opened else seed_workload()
        # Most tests are about the timeline; what is first for a user is in the tests of the summary.
        return WltuiApp(Session(workload, results), **{"first": "timeline", **keywords})  # type: ignore[arg-type]

    return make
