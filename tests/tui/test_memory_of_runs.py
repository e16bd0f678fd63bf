"""Runs of every rank: what left the screen is gone, so that repeated changes take no more memory, and so is
what workers have simulated beside it.

Seen to fail: without a collection of what is gone; with the run before the one on the screen held whatever
its size; with the run in the key of a row that the timeline has drawn; without a worker's giving back.
"""

from __future__ import annotations

import gc
import threading
import weakref

import pytest
from textual.pilot import Pilot

import tui.app
import tui.compare.choice
from simcore.diagnostics import Cancelled
from simcore.parameters import Parameters
from simcore.runs.simulated import SimulatedRun
from simcore.trace.run import estimate_bytes
from simcore.workload.memory import resident_bytes
from tests.tui.conftest import MakeApp
from tests.tui.made_runs import seed
from tests.tui.screen_reading import press, run_over
from tui import memory
from tui import session as sessions
from tui.app import WltuiApp
from tui.session import Session

FEW = {"world": 128, "microbatches": 1}


def bound_runs(monkeypatch: pytest.MonkeyPatch, most_bytes: int) -> None:
    """Makes runs large from so many bytes on."""
    for module, name in (
        (sessions, "MOST_KEPT_BYTES"), (sessions, "MOST_OTHER_BYTES"), (tui.app, "MOST_KEPT_BYTES"),
        (tui.compare.choice, "MOST_OTHER_BYTES"),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, most_bytes)


async def change(app: WltuiApp, pilot: Pilot[None], **parameters: object) -> SimulatedRun:
    """Runs the draft with other parameters; returns the run."""
    setup = app.session.opened.setup
    app.session.edit(setup.with_parameters(Parameters(**FEW, **parameters)))  # type: ignore[arg-type]
    app.runs.run_draft()
    await run_over(pilot)
    run = app.session.current
    assert isinstance(run, SimulatedRun)
    return run


async def test_a_run_of_every_rank_that_left_the_screen_is_gone(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = seed(**FEW)
    bound_runs(monkeypatch, 3 * estimate_bytes(opened))
    app = make_app(opened)
    runs: list[weakref.ref[SimulatedRun]] = []
    async with app.run_test(size=(80, 24)) as pilot:
        await run_over(pilot)
        # Only the app collects what is gone.
        gc.disable()
        try:
            for number in range(4):
                runs.append(weakref.ref(await change(app, pilot, jitter=0.1, seed=number)))
                assert [of() is None for of in runs] == [True] * number + [False]
            await change(app, pilot)
            assert runs[-1]() is None
        finally:
            gc.enable()


def test_a_large_run_that_was_shown_before_is_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = seed(**FEW)
    large = seed(**FEW, jitter=0.1)
    bound_runs(monkeypatch, estimate_bytes(large) - 1)
    session = Session(opened)
    for run in (large, opened):
        session.show(run)
        assert session.other is (opened if run is large else None)
        assert session.before is not None
    assert session.before.parameters == large.parameters
    session.show(large)
    assert session.other is opened


async def test_x_shows_a_large_run_again(make_app: MakeApp, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = seed(**FEW)
    bound_runs(monkeypatch, 2 * estimate_bytes(opened))
    app = make_app(opened)
    async with app.run_test(size=(80, 24)) as pilot:
        large = await change(app, pilot, jitter=0.1)
        await press(pilot, "x")
        await run_over(pilot)
        assert app.session.current is opened
        assert app.session.other is None
        assert app.runs.has_other
        await press(pilot, "x")
        await run_over(pilot)
        again = app.session.current
        assert again is not large
        assert (again.parameters, again.step_time_ns) == (large.parameters, large.step_time_ns)
        assert app.session.draft == large.parameters


def resident_mb() -> float:
    return resident_bytes() / 1e6


@pytest.mark.skipif(not resident_mb(), reason="the system does not say how much of a process is in memory")
def test_what_a_thread_has_dropped_goes_back_to_the_system() -> None:
    def work() -> None:
        kept, dropped = [], []
        for number in range(20_000):
            # What stays lies between what goes, as beside columns.
            dropped.append(bytearray(10_000))
            if number % 100 == 0:
                kept.append(bytearray(10_000))
        held.append(kept)

    held: list[list[bytearray]] = []
    memory.free_memory()
    before = resident_mb()
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    memory.free_grown_memory()
    assert resident_mb() - before < 20


async def test_workers_give_memory_back_when_they_are_done_or_stopped(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    freed: list[str] = []
    monkeypatch.setattr(memory, "free_grown_memory", lambda: freed.append(threading.current_thread().name))
    app = make_app(seed(**FEW))
    async with app.run_test(size=(80, 24)) as pilot:
        await run_over(pilot)
        freed.clear()
        await change(app, pilot, jitter=0.1)
        assert freed, "of the run"
        freed.clear()
        # The step time of each change alone, on screen 5.
        await press(pilot, "5")
        await change(app, pilot, jitter=0.1, seed=2)
        await run_over(pilot)
        assert len(freed) > 1, "of the run and of its changes"
        freed.clear()
        app.change_times.request(object(), stopped)
        await run_over(pilot)
        assert freed, "of what was stopped"
        assert threading.current_thread().name not in freed


def stopped(progress: object, cancelled: object) -> None:
    raise Cancelled
