"""The runs of a measured session: a replay of changed scales, found by a worker and shown on all screens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from textual.worker import get_current_worker

from simcore.replay import MeasuredResults
from simcore.replay.scales import Scales
from tui.measured.session import MeasuredSession

if TYPE_CHECKING:
    from simcore.run.findings import WhatIf
    from tui.app import WltuiApp
    from tui.state.stored import StoredReplay


_NO_TIMES = "an order without times has no replay, and so no other run"
_ONE_RUN = "one measured run: change a scale on 5 (or t on 1), x and 6 have its replay"
_TWO_RUNS = "the measured run and one replay: x shows either, 6 both; y copies the flags"


class MeasuredRuns:
    """What was opened, and the replays of it."""

    def __init__(self, app: WltuiApp, session: MeasuredSession) -> None:
        self._app = app
        self._session = session
        # A replay of an earlier session, and what is done when it is there.
        self._next: tuple[Scales, Callable[[], None]] | None = None

    @property
    def has_other(self) -> bool:
        """Whether there is another run to go back and forth to."""
        return self._session.other is not None

    def what_if(self, results: MeasuredResults) -> Sequence[WhatIf] | None:
        """The what-if table, the greatest gain first; None while it is looked for."""
        if not results.measured.timed:
            return ()

        found: list[WhatIf] | None = self._app.what_ifs.of(results, results.what_if)
        return found

    def try_change(self, knob: WhatIf | None) -> None:
        """Replay with a change of the what-if table."""
        if not self._session.current.measured.timed:
            self._app.say("an order without times cannot be replayed")
        elif self._session.running:
            self._app.say("a replay is being made: wait for it, then t tries the change")
        elif knob is None:
            self._app.say("no change is chosen: Tab leads to the table, when it is there")
        else:
            self._session.edit(knob.scales or Scales())
            self.run_draft()

    def resume(self, kept: StoredReplay, then: Callable[[], None]) -> None:
        """Go on with the replay of an earlier session; `then` when it is there, if it was on the screen."""
        if kept.shown:
            self._session.edit(kept.scales)
            self._next = (kept.scales, then)
            self.run_draft()
        else:
            other = self._session.opened.with_scales(kept.scales)
            self._app.run_worker(lambda: self._find_other(other), thread=True, group="other run")

    def _find_other(self, other: MeasuredResults) -> None:
        """The replay that was not on the screen, for `x`."""
        try:
            _prepare(other)
        except OverflowError:
            return
        if not get_current_worker().is_cancelled and self._app.is_running:
            self._app.call_from_thread(self._found_other, other)

    def _found_other(self, other: MeasuredResults) -> None:
        session = self._session
        # Not if another replay was made meanwhile.
        if session.current is session.opened and not session.running:
            session.other = other
            self._app.compare_again()
            self._app.redraw_hints()

    def run_draft(self) -> None:
        """Replay the session's draft; the old picture stays until it is done."""
        session = self._session
        session.running = True
        session.error = ""
        scales = session.draft
        self._app.run_worker(lambda: self._replay(scales), thread=True, exclusive=True, group="run")
        self._app.redraw_current()

    def keep(self) -> None:
        """Nothing is kept: the command line says a replay."""
        self.open_history()

    def open_history(self) -> None:
        """There is none: what there is instead is said."""
        timed = self._session.opened.measured.timed
        self._app.say(_NO_TIMES if not timed else _TWO_RUNS if self.has_other else _ONE_RUN)

    def show_other(self) -> None:
        """Show the run that was shown before, and the next time this one again."""
        session = self._session
        if session.other is None:
            self.open_history()
            return
        other = session.other
        session.edit(other.scales or Scales())
        self._finished(session.draft, other)

    def _replay(self, scales: Scales) -> None:
        worker = get_current_worker()
        opened = self._session.opened
        # As opened it was measured, or replayed as the command line said.
        results: MeasuredResults | None = opened
        if scales != (opened.scales or Scales()):
            results = opened.with_scales(scales)
        try:
            _prepare(results or opened)
        except OverflowError:
            results = None
        if not worker.is_cancelled and self._app.is_running:
            self._app.call_from_thread(self._finished, scales, results)

    def _finished(self, scales: Scales, results: MeasuredResults | None) -> None:
        """None: the replay has no time that could be written."""
        app, session = self._app, self._session
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
        if self._next is not None and self._next[0] == scales:
            # The last row says that this is how it was left.
            then, self._next = self._next[1], None
            then()
            return
        what = "replayed" if results.run.replayed else "as measured"
        app.say(f"{what}: {session.step}; x goes back and forth")


def _prepare(results: MeasuredResults) -> None:
    """Found here, so that drawing has only to look it up."""
    assert results.run
    assert results.accounts
