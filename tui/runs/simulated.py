"""The runs of a workload: the draft simulated in a worker, runs shown, kept, and laid beside each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from simcore.analysis import Results
from simcore.diagnostics import Cancelled, InputError, UsageError
from simcore.parameters import Parameters
from simcore.simulation import simulate
from tui.background import Watched
from tui.session import KeptRun, Session

if TYPE_CHECKING:
    from simcore.run.findings import WhatIf
    from tui.app import WltuiApp
    from tui.runs.panel import Chosen

# The table is of the run on the screen: a change of it would take away what is being simulated.
STILL_RUNNING = "a run is simulated: wait for it, or stop it (5, Esc), then t tries the change"


class SimulatedRuns:
    """seconds: how long the draft has been simulated, s."""

    def __init__(self, app: WltuiApp, session: Session) -> None:
        self._app = app
        self._session = session
        self.seconds = 0.0
        # Parameters whose run is kept when it is done, and what is done next when a run is there.
        self._keep: Parameters | None = None
        self._next: tuple[Parameters, Callable[[], None]] | None = None

    @property
    def has_other(self) -> bool:
        """Whether it is worth a hint that there is another run: to the run as opened `u` leads, too."""
        other = self._session.other
        return other is not None and (other is not self._session.opened or len(self._session.runs) > 1)

    def what_if(self, results: Results) -> Sequence[WhatIf] | None:
        """The what-if table of a run, the best first; None while it is looked for."""
        found: list[WhatIf] | None = self._app.what_ifs.of(results, results.what_if)
        return found

    def try_change(self, knob: WhatIf | None) -> None:
        """Run a change of the what-if table as the draft."""
        parameters = None if knob is None else knob.parameters
        if self._session.running:
            self._app.say(STILL_RUNNING)
        elif knob is None:
            self._app.say("no change is chosen: Tab leads to the table, when it is there")
        elif parameters is None:
            from tui.change_words import why_not_tried

            self._app.say(why_not_tried(knob, self._session.current.dims))
        else:
            self.try_parameters(parameters)

    def try_parameters(self, parameters: Parameters) -> bool:
        """Run these as the draft and keep the run; False, which is said, while another one is simulated."""
        if self._session.running:
            self._app.say(STILL_RUNNING)
            return False
        self._session.edit(parameters)
        self._keep = parameters
        self.run_draft()
        return True

    def run_draft(self) -> None:
        """Simulate the session's draft in a worker; the old picture stays until it is done."""
        app, session = self._app, self._session
        session.running = True
        session.error = ""
        self.seconds = 0.0
        # It would take half of the processor from the run that is waited for.
        app.change_times.stop()
        parameters = session.draft
        app.run_worker(lambda: self._simulate(parameters), thread=True, exclusive=True, group="run")
        app.changed()

    def _simulate(self, parameters: Parameters) -> None:
        watched = Watched(self._takes)
        results: Results | None = None
        error = ""
        try:
            kept = self._session.kept(parameters)
            if kept is not None and kept.results is not None:
                results = kept.results
            else:
                results = Results(simulate(self._session.workload, parameters, watched))
                # Computed here, so that drawing has only to look it up.
                results.compute_accounts(watched)
        except Cancelled:
            return
        except (UsageError, InputError) as found:
            error = str(found)
        if not watched():
            self._app.call_from_thread(self._finished, parameters, results, error)

    def _takes(self, seconds: float) -> None:
        """Called by the worker: say how long the run takes already."""
        self.seconds = seconds
        if self._app.is_running:
            self._app.call_from_thread(self._app.redraw_current)

    def cancel(self) -> None:
        """Stop the run of the draft: the parameters of the run on the screen are the draft again."""
        app, session = self._app, self._session
        app.workers.cancel_group(app, "run")
        session.running = False
        session.edit(session.current.simulation.parameters)
        app.changed()
        app.say("the run was stopped; u has the change again")

    def _finished(self, parameters: Parameters, results: Results | None, error: str) -> None:
        app, session = self._app, self._session
        if parameters != session.draft:
            return
        session.running = False
        session.error = error
        if results is None:
            app.changed()
            return
        session.show(results)
        app.show_everywhere(results)
        if parameters == self._keep:
            self._keep = None
            session.keep()
            app.say(f"{session.run_words()}: {session.step}; {self._way_back()}")
        if self._next is not None and self._next[0] == parameters:
            then, self._next = self._next[1], None
            then()

    def _way_back(self) -> str:
        """How the run before is had back: `x`, unless it is another key of the open screen."""
        taken = self._app.current_view.takes("x")
        return f"x{' on another screen' if taken else ''} goes back and forth"

    def keep(self) -> None:
        """Keep the run on the screen, to come back to and to compare with."""
        session = self._session
        if session.running or session.error:
            self._app.say("there is no finished run to keep")
        else:
            number = session.keep()
            # The row above says which run this is.
            self._app.redraw_chrome()
            self._app.say("this run is kept already" if number is None else f"kept as run {number}")

    def show_other(self) -> None:
        """Show the run that was shown before, and the next time this one again."""
        session = self._session
        if session.other is None:
            self._app.say("there is no other run yet: change a parameter first (5)")
            return
        other = session.other
        # The draft goes with it: what is on the screen is what a change begins with.
        session.edit(other.simulation.parameters)
        self._finished(session.draft, other, "")
        before = session.other
        draft = before is not None and session.kept(before.simulation.parameters) is None
        self._say_run("; x has the draft again" if draft else "")

    def open_history(self) -> None:
        """The panel of the runs that were kept."""
        from tui.runs.panel import RunsPanel

        panel = RunsPanel(self._session, self._app.current_view.glyphs)
        self._app.push_screen(panel, self._chosen)

    def _chosen(self, chosen: Chosen | None) -> None:
        """Show a run of the history, or two beside each other: each is simulated when it is first shown."""
        self._app.redraw_chrome()
        # Runs may have been named and removed.
        self._app.compare_again()
        if chosen is None:
            return
        run, beside = chosen
        if beside is None:
            self.show(run, self._say_run)
        elif beside.results is None:
            self.show(beside, lambda: self.show(run, lambda: self._compare_with(beside)))
        else:
            self.show(run, lambda: self._compare_with(beside))

    def resume(self, kept: Parameters, then: Callable[[], None]) -> None:
        """Go on with the run of an earlier session; `then` when it is there."""
        self.show(KeptRun(kept), then)

    def show(self, run: KeptRun, then: Callable[[], None]) -> None:
        """Another run on the screen, simulated first where it has not been; `then` when it is there."""
        session = self._session
        session.edit(run.parameters)
        self._next = (run.parameters, then)
        if run.results is not None:
            self._finished(session.draft, run.results, "")
        else:
            self.run_draft()

    def _say_run(self, more: str = "") -> None:
        self._app.say(f"{self._session.run_words()}, {self._session.step}{more}")

    def _compare_with(self, beside: KeptRun) -> None:
        """Screen 6: another run beside the one on the screen."""
        self._session.beside = beside.results
        self._app.compare_again()
        self._app.call_later(self._app.action_open, "compare")
