"""Changed scales become a replay, found by a worker and shown on all screens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.worker import get_current_worker

from simcore.measured.replay import MeasuredResults
from simcore.measured.replay.scales import Scales
from simcore.measured.replay.what_if import Knob, answers
from tui.background import IsCancelled, Progress
from tui.measured.session import MeasuredSession

if TYPE_CHECKING:
    from tui.app import WltuiApp


def knobs_of(app: WltuiApp, results: MeasuredResults) -> list[Knob] | None:
    """The what-if table, what gains most with a tenth less first; None while it is looked for."""

    def find(_: Progress, cancelled: IsCancelled) -> list[Knob]:
        return sorted(
            answers(results, cancelled), key=lambda knob: (knob.better10_ns, knob.best_ns, knob.name)
        )

    found: list[Knob] | None = app.what_ifs.of(results, find)
    return found


def replay_draft(app: WltuiApp, session: MeasuredSession) -> None:
    """Replay the session's draft; the old picture stays until it is done."""
    session.running = True
    session.error = ""
    scales = session.draft
    app.run_worker(lambda: _replay(app, session, scales), thread=True, exclusive=True, group="run")
    app.redraw_current()


def try_knob(app: WltuiApp, session: MeasuredSession, knob: Knob | None) -> None:
    """Replay with a change of the what-if table."""
    if not session.current.measured.timed:
        app.say("an order without times cannot be replayed")
    elif knob is None:
        app.say("no change is chosen: Tab leads to the table, when it is there")
    else:
        session.edit(knob.scales)
        replay_draft(app, session)


def show_other(app: WltuiApp, session: MeasuredSession) -> None:
    """The run that was shown before, and with the same key this one again."""
    if session.other is None:
        app.say("there is no other run yet: change a scale first (5)")
        return
    other = session.other
    session.edit(other.scales or Scales())
    _finished(app, session, session.draft, other)


def _replay(app: WltuiApp, session: MeasuredSession, scales: Scales) -> None:
    worker = get_current_worker()
    opened = session.opened
    # As opened it was measured, or replayed as the command line said.
    results: MeasuredResults | None = opened
    if scales != (opened.scales or Scales()):
        results = opened.with_scales(scales)
    try:
        _prepare(results or opened)
    except OverflowError:
        results = None
    if not worker.is_cancelled and app.is_running:
        app.call_from_thread(_finished, app, session, scales, results)


def _prepare(results: MeasuredResults) -> None:
    """Found here, so that drawing has only to look it up."""
    assert results.run
    assert results.accounts


def _finished(
    app: WltuiApp, session: MeasuredSession, scales: Scales, results: MeasuredResults | None
) -> None:
    """None: the replay has no time that could be written."""
    if scales != session.draft:
        return
    session.running = False
    if results is None:
        session.error = (
            "with these factors the step is longer than an axis can be: expected less than 2^63 ns"
        )
        app.redraw_current()
        return
    session.show(results)
    app.show_everywhere(results)
    app.say(f"{'replayed' if results.run.replayed else 'as measured'}: {session.step}; x goes back and forth")
