"""Runs beside the screen: it goes on working, only the last draft counts, a late result is dropped."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest
from textual.pilot import Pilot

from simcore.diagnostics import Cancelled
from simcore.parameters import Parameters
from simcore.runs.simulated import SimulatedRun
from simcore.setup import Setup
from simcore.simulation import simulate
from tests.tui.conftest import MakeApp
from tests.tui.made_runs import run, seed, small
from tests.tui.screen_reading import press, resize, run_over, screen_rows, screen_text, wait_until
from tui.app import WltuiApp
from tui.parameters.view import STILL_SHOWING, ParametersView
from tui.timeline.view import TimelineView

SIZE = (120, 36)


class Gate:
    """Holds runs up until it is opened. obeys: whether a held run looks at its cancellation."""

    def __init__(self) -> None:
        self.opened = threading.Event()
        self.obeys = True
        self.begun: list[Parameters] = []
        self.cancelled: list[Parameters] = []

    def run(
        self, opened: SimulatedRun, setup: Setup, cancelled: Callable[[], bool] = lambda: False
    ) -> SimulatedRun:
        """In place of `Results.rerun`."""
        parameters = setup.parameters
        self.begun.append(parameters)
        while not self.opened.wait(0.005):
            if self.obeys and cancelled():
                self.cancelled.append(parameters)
                raise Cancelled
        workload = opened.simulation.workload
        return SimulatedRun(simulate(workload, parameters, cancelled if self.obeys else lambda: False))


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    """A gate before every run of the app."""
    found = Gate()
    monkeypatch.setattr(SimulatedRun, "rerun", lambda *arguments: found.run(*arguments))
    yield found
    found.opened.set()


async def open_compute_scale(pilot: Pilot[None]) -> None:
    """The form with the cursor on the compute scale."""
    await press(pilot, "5")
    app = pilot.app
    assert isinstance(app, WltuiApp)
    view = app.current_view
    assert isinstance(view, ParametersView)
    view.action_move(next(i for i, field in enumerate(view.form.fields) if field.label == "compute scale"))


async def test_while_a_run_is_going_the_picture_is_the_one_before(make_app: MakeApp, gate: Gate) -> None:
    app = make_app()
    async with app.run_test(size=SIZE) as pilot:
        await open_compute_scale(pilot)
        await press(pilot, "greater_than_sign")
        await wait_until(pilot, lambda: gate.begun)
        assert app.session.running
        assert app.session.current is app.session.opened
        assert f"simulating; {STILL_SHOWING}" in " ".join(screen_text(app).split())
        assert "step 14.774 s " in screen_rows(app)[1]
        assert "+13.97" not in screen_text(app)
        assert "< 2 >" in screen_text(app)
        gate.opened.set()
        await run_over(pilot)
        assert "step 28.747 s" in screen_rows(app)[1]
        assert "simulating" not in screen_text(app)


async def test_all_keys_and_sizes_work_while_a_run_is_going(make_app: MakeApp, gate: Gate) -> None:
    app = make_app(small())
    async with app.run_test(size=SIZE) as pilot:
        await open_compute_scale(pilot)
        await press(pilot, "greater_than_sign")
        await wait_until(pilot, lambda: gate.begun)
        for columns, rows in ((80, 24), (200, 50), (20, 3), (120, 36)):
            await resize(pilot, columns, rows)
            for key in ("2", "w", "l", "space", "3", "j", "exclamation_mark", "question_mark", "escape", "5"):
                await press(pilot, key)
            assert all(len(row) == columns for row in screen_rows(app))
            assert len(screen_rows(app)) == rows
        assert app.session.running
        gate.opened.set()
        await run_over(pilot)
        assert app.session.current.simulation.parameters.compute_scale == 2.0
        assert f"step {app.session.step} " in screen_rows(app)[1]


async def test_every_size_of_the_terminal_is_drawn(make_app: MakeApp) -> None:
    app = make_app(small())
    async with app.run_test(size=(120, 24)) as pilot:
        for key in ("2", "3", "5", "exclamation_mark", "question_mark"):
            await press(pilot, key)
            for size in ((1, 1), (5, 2), (80, 24), (13, 4), (20, 30), (120, 24)):
                await resize(pilot, *size)
                rows = screen_rows(app)
                assert (len(rows[0]), len(rows)) == size


async def test_a_new_change_cancels_the_run_before(make_app: MakeApp, gate: Gate) -> None:
    app = make_app()
    async with app.run_test(size=SIZE) as pilot:
        await open_compute_scale(pilot)
        await press(pilot, "greater_than_sign")
        await wait_until(pilot, lambda: len(gate.begun) == 1)
        await press(pilot, "greater_than_sign")
        await wait_until(pilot, lambda: len(gate.begun) == 2 and gate.cancelled)
        assert [one.compute_scale for one in gate.cancelled] == [2.0]
        gate.opened.set()
        await run_over(pilot)
        assert app.session.current.simulation.parameters.compute_scale == 4.0


async def test_a_late_result_never_replaces_a_newer_one(make_app: MakeApp, gate: Gate) -> None:
    app = make_app()
    async with app.run_test(size=SIZE) as pilot:
        await open_compute_scale(pilot)
        gate.obeys = False
        await press(pilot, "greater_than_sign")
        await wait_until(pilot, lambda: len(gate.begun) == 1)
        await press(pilot, "greater_than_sign")
        await wait_until(pilot, lambda: len(gate.begun) == 2)
        gate.opened.set()
        await run_over(pilot)
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert app.session.current.simulation.parameters.compute_scale == 4.0
        assert "step 56.7" in screen_rows(app)[1] or "step 56.6" in screen_rows(app)[1]


async def test_undo_back_to_the_start_needs_no_run(make_app: MakeApp, gate: Gate) -> None:
    app = make_app()
    async with app.run_test(size=SIZE) as pilot:
        await open_compute_scale(pilot)
        await press(pilot, "greater_than_sign")
        await wait_until(pilot, lambda: gate.begun)
        await press(pilot, "u")
        await run_over(pilot)
        assert app.session.current is app.session.opened
        assert len(gate.begun) == 1
        assert "step 14.774 s   run 1 of 1   8 notes" in screen_rows(app)[1]


async def test_thirty_changes_in_a_row_end_with_the_run_of_the_last(make_app: MakeApp) -> None:
    app = make_app()
    async with app.run_test(size=SIZE) as pilot:
        await open_compute_scale(pilot)
        view = app.current_view
        assert isinstance(view, ParametersView)
        for _ in range(30):
            await pilot.app.run_action("scrub(1, False)", view)
        assert app.session.running
        await run_over(pilot)
        assert app.session.draft.compute_scale == 4.0
        assert app.session.current.simulation.parameters == app.session.draft
        step = app.session.current.simulation.step_time_ns
        assert step == seed(compute_scale=4.0).simulation.step_time_ns
        assert not app.session.running
        for _ in range(30):
            app.session.undo()
        assert app.session.draft == Parameters()


async def test_quit_does_not_wait_for_a_run(make_app: MakeApp, gate: Gate) -> None:
    app = make_app()
    async with app.run_test(size=SIZE) as pilot:
        await open_compute_scale(pilot)
        await press(pilot, "greater_than_sign")
        await wait_until(pilot, lambda: gate.begun)
        await press(pilot, "2", "q")
        await wait_until(pilot, lambda: gate.cancelled)
    assert app.return_code == 0


async def test_an_answer_in_the_prompt_is_for_the_field_it_asked_for(make_app: MakeApp, gate: Gate) -> None:
    app = make_app()
    async with app.run_test(size=SIZE) as pilot:
        await open_compute_scale(pilot)
        await press(pilot, "greater_than_sign")
        await wait_until(pilot, lambda: gate.begun)
        await press(pilot, "enter")
        gate.opened.set()
        await run_over(pilot)
        await press(pilot, "3", "enter")
        await run_over(pilot)
        assert app.session.draft == Parameters(compute_scale=3.0)


async def test_details_stay_those_of_their_span_when_another_run_comes(make_app: MakeApp, gate: Gate) -> None:
    app = make_app(run(seed().simulation.workload, no_fold=True, world=128))
    async with app.run_test(size=SIZE) as pilot:
        await press(pilot, "2", "tab", "G", "n")
        view = app.current_view
        assert isinstance(view, TimelineView)
        app.session.edit(app.session.opened.setup.with_parameters(Parameters(world=16, pp=1)))
        app.runs.run_draft()
        await wait_until(pilot, lambda: gate.begun)
        await press(pilot, "enter")
        shown = screen_rows(app)
        assert any(row.startswith("  on ") for row in shown)
        gate.opened.set()
        await run_over(pilot)
        await resize(pilot, 100, 36)
        await resize(pilot, *SIZE)
        assert screen_rows(app) == shown


async def test_the_history_says_which_run_is_shown_when_another_comes_under_it(
    make_app: MakeApp, gate: Gate
) -> None:
    app = make_app()
    async with app.run_test(size=SIZE) as pilot:
        app.session.edit(app.session.opened.setup.with_parameters(Parameters(microbatches=8)))
        app.runs.run_draft()
        await wait_until(pilot, lambda: gate.begun)
        await press(pilot, "R")
        assert screen_rows(app)[2].startswith(">  *  1  as opened")
        gate.opened.set()
        await run_over(pilot)
        assert screen_rows(app)[2].startswith(">     1  as opened")
