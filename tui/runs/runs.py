"""The runs of what is open: the draft simulated in a worker, runs shown, kept, and compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from simcore.diagnostics import Cancelled, InputError, UsageError
from simcore.parameters import RunInput
from simcore.trace.run import compute_description
from simcore.units import duration
from tui.background import (
    Background,
    CancelWatch,
    IsCancelled,
    Progress,
    RecoveredModels,
    give_back_memory,
)
from tui.chrome import run_difference
from tui.frame import cells, text_of
from tui.host import Host
from tui.session import HistoryRun, Run, Session

if TYPE_CHECKING:
    from simcore.trace.findings import WhatIf
    from tui.runs.panel import ChosenRuns
    from tui.sweep.sweeping import Sweeping

# The table is of the run on the screen: changing that would remove the requested table.
NO_OTHER_YET = "there is no other run yet: change a parameter first (5)"
KEPT_ALREADY = "this run is kept already"
RUN_STOPPED, WITH_CHANGE = "the run was stopped", "; u has the change again"
STILL_RUNNING = "a run is in progress: wait for it, or stop it (5, Esc), then press t"
TRIES_BEST = "t tries the first change as soon as it is known: still computing"
NO_CHANGE = "no change is known that would make the run on the screen shorter"


class RunsHost(Host):
    """The app with its runs, and what is computed of them in the background."""

    runs: Runs
    what_ifs: Background
    comparisons: Background
    layer_paths: Background
    change_times: Background
    calibrations: Background
    step_tables: Background
    step_findings: Background
    models_behind: RecoveredModels

    @property
    def sweeping(self) -> Sweeping:
        """The sweep of this session."""
        raise NotImplementedError


class Runs:
    """The runs of an app. `seconds` is how long the draft has been running, s."""

    def __init__(self, app: RunsHost, session: Session) -> None:
        self._app = app
        self._session = session
        self.seconds = 0.0
        # The parameters whose run is kept when it is finished, and what follows when a run is there.
        self._keep: RunInput | None = None
        self._next: tuple[HistoryRun, Callable[[], None]] | None = None
        self._target_run: HistoryRun | None = None

    @property
    def has_other(self) -> bool:
        """Whether a hint to another run is useful: `u`, too, leads to the run as opened."""
        session = self._session
        is_opened = session.other is session.opened
        return session.before is not None and (not is_opened or len(session.runs) > 1)

    def what_if(self, run: Run) -> Sequence[WhatIf] | None:
        """Returns the what-if table of a run, the best first; None while it is computed."""
        if not run.timed:
            return ()

        def find(progress: Progress, cancelled: IsCancelled) -> list[WhatIf]:
            # The words of the picture before what would help.
            compute_description(run, cancelled)
            progress(0, 0)
            return run.what_if(progress, cancelled)

        what_ifs: list[WhatIf] | None = self._app.what_ifs.request(run, find)
        return what_ifs

    def known_what_if(self, run: Run) -> Sequence[WhatIf]:
        """Returns the what-if table of a run if it is computed already; else nothing."""
        return self._app.what_ifs.result_of(run) or ()

    def try_change(self, knob: WhatIf | None) -> None:
        """Runs a change of the what-if table as the draft."""
        if self._session.running:
            self._app.say(STILL_RUNNING)
        elif knob is None:
            self._app.say("no change is chosen: Tab leads to the table, when it is there")
        else:
            assert knob.parameters is not None, "each row of the table is a run"
            self.try_run(self._session.opened.setup.with_parameters(knob.parameters))

    def try_best(self) -> None:
        """Tries the best change once it is known, unless a key is pressed before."""
        self._app.say(TRIES_BEST)

        def try_it(knobs: Sequence[WhatIf]) -> None:
            # A key clears the line that says so.
            if self._app.status_text == TRIES_BEST:
                self._app.say("" if knobs else NO_CHANGE)
                if knobs:
                    self.try_change(knobs[0])

        self._app.what_ifs.then(try_it)

    def try_run(self, setup: RunInput) -> bool:
        """Runs this as the draft and keeps the run; returns False, with a message, while another one runs."""
        if self._session.running:
            self._app.say(STILL_RUNNING)
            return False
        self._session.edit(setup)
        self._keep = setup
        self.run_draft()
        return True

    def try_second(self, setup: RunInput) -> bool:
        """Reruns the run of the other file with another setup; returns False, with a message, while a run is
        made.
        """
        second_run = self._session.against
        if self._session.running or second_run is None:
            self._app.say(STILL_RUNNING)
            return False
        self._app.run_worker(
            lambda: self._find_second(second_run, setup), thread=True, exclusive=True, group="run"
        )
        return True

    def _find_second(self, second_run: Run, setup: RunInput) -> None:
        watched = CancelWatch(lambda seconds: None)
        try:
            run = second_run.rerun(setup, watched)
            run.compute_accounts(watched)
        except Cancelled:
            return
        except (UsageError, InputError) as error:
            self._app.call_from_thread(self._app.say, str(error))
            return
        finally:
            give_back_memory()
        if not watched():
            self._app.call_from_thread(self._replace_second, run)

    def _replace_second(self, run: Run) -> None:
        self._session.against = run
        self._app.compare_again()
        self._app.say(f"the run beside it has these parameters now: step {duration(run.step_time_ns)}")

    def run_draft(self) -> None:
        """Computes the run of the session's draft in a worker; the old run stays on the screen until it is
        finished.
        """
        session = self._session
        self._begin(HistoryRun(session.draft, label=session.opened.setup.label))

    def _begin(self, target: HistoryRun) -> None:
        """Computes a run in a worker."""
        session = self._session
        session.running, session.error, self.seconds = True, "", 0.0
        # It would take half of the processor from the requested run.
        self._app.change_times.stop()
        self._target_run = target
        self._app.run_worker(lambda: self._find(target), thread=True, exclusive=True, group="run")
        self._app.changed()

    def _find(self, target: HistoryRun) -> None:
        watched = CancelWatch(self._report_seconds)
        run: Run | None = None
        error = ""
        try:
            history_run = self._session.find_same_run(target)
            # Read once: it may be evicted meanwhile.
            run = None if history_run is None else history_run.results
            if run is None:
                root = self._session.root(target.label)
                is_root = root.parameters == target.parameters
                run = root if is_root else root.with_parameters(target.parameters, watched)
                # Computed here, so that drawing has only to look it up.
                run.compute_accounts(watched)
        except Cancelled:
            return
        except (UsageError, InputError) as refusal:
            error = str(refusal)
        finally:
            give_back_memory()
        if not watched():
            self._app.call_from_thread(self._finish_run, target, run, error)

    def _report_seconds(self, seconds: float) -> None:
        """Called by the worker: shows how long the run has taken so far."""
        self.seconds = seconds
        if self._app.is_running:
            self._app.call_from_thread(self._app.redraw_current)

    def cancel(self) -> None:
        """Stops the run of the draft: the parameters of the run on the screen are the draft again."""
        app, session = self._app, self._session
        app.workers.cancel_group(app, "run")
        self._target_run = None
        session.running = False
        has_changes = session.draft != session.current.parameters
        if has_changes:
            session.edit(session.current.setup)
        app.changed()
        app.say(RUN_STOPPED + (WITH_CHANGE if has_changes else ""))

    def _finish_run(self, target: HistoryRun, run: Run | None, error: str) -> None:
        app, session = self._app, self._session
        if target is not self._target_run:
            return
        session.running = False
        session.error = error
        if run is None:
            if target.label != session.opened.setup.label:
                # Another run of the directory: the draft is not the cause.
                session.error = ""
                app.say(cells(error.replace("\n", "; "), 400))
            app.changed()
            return
        session.show(run)
        app.show_everywhere(run)
        if self._keep is not None and target.parameters == self._keep.parameters:
            self._keep = None
            session.keep()
            listed = ", R lists all runs" if len(session.numbered_runs) > 2 else ""
            before = self._change_from_previous()
            # The message names the run that `x` shows: `x` toggles between two runs, and does not go back
            # further.
            app.say(f"{session.run_words()}: {session.step}{before}; x shows {self._other_words()}{listed}")
        if self._next is not None and self._next[0] is target:
            then, self._next = self._next[1], None
            then()

    def _change_from_previous(self) -> str:
        """Returns `, -9.3 % vs run 2`: the effect of a change on the run that it was made to, as its row
        states it; "" where that is the opened one, to which the top row compares.
        """
        session = self._session
        before, now = session.other, session.current
        if before is None or before.setup.label != now.setup.label:
            return ""
        history_run = session.find_in_history(before)
        if history_run is None or history_run is session.find_in_history(session.opened):
            return ""
        against = session.title_of(history_run)
        return f", {text_of([run_difference(before.shape, now.shape, True, against)])}"

    def keep(self) -> None:
        """Keeps the run on the screen, to come back to and to compare with."""
        session = self._session
        if session.running or session.error:
            self._app.say("there is no finished run to keep")
        else:
            run_number = session.keep()
            # The row above says which run this is.
            self._app.redraw_chrome()
            message = f"kept as run {run_number}: R has all runs, n there names one"
            self._app.say(KEPT_ALREADY if run_number is None else message)

    def show_other(self) -> None:
        """Shows the run that was shown before, and the next time this one again."""
        before = self._session.before
        if before is None:
            self._app.say(NO_OTHER_YET)
        else:
            self.show(before, lambda: self.say_run(f"; x shows {self._other_words()}"))

    def _other_words(self) -> str:
        """Returns `run 2 again`: the previous run, which `x` shows."""
        session = self._session
        history_run = None if session.before is None else session.find_same_run(session.before)
        return f"{'the draft' if history_run is None else session.title_of(history_run)} again"

    def _show_target(self, target: HistoryRun) -> None:
        """Shows a run that exists; its parameters become the draft."""
        if target.label == self._session.opened.setup.label:
            self._session.edit(self._session.opened.setup.with_parameters(target.parameters))
        self._target_run = target
        self._finish_run(target, target.results, "")

    def open_history(self) -> None:
        """Opens the panel of the runs that were kept."""
        from tui.runs.panel import RunsPanel

        panel = RunsPanel(self._session, self._app.current_view.glyphs)
        self._app.push_screen(panel, self._runs_selected)

    def _runs_selected(self, selection: ChosenRuns | None) -> None:
        """Shows a run of the history, or compares two; each is simulated when it is first shown."""
        self._app.redraw_chrome()
        # Runs may have been named and removed.
        self._app.compare_again()
        if selection is None:
            return
        run, other = selection
        if other is None:
            self.show(run, self.say_run)
        else:
            self.compare(run, other)

    def compare(self, run: HistoryRun, other: HistoryRun) -> None:
        """Opens screen 6: a run (B) on the screen and another one (A), each simulated first if it has not
        been.
        """
        if other.results is None:
            self.show(other, lambda: self._show_compared(run, self._session.current))
        else:
            self._show_compared(run, other.results)

    def _show_compared(self, run: HistoryRun, other: Run) -> None:
        """Shows a run and compares another one, which is kept in memory: large runs are evicted for
        others.
        """
        self._session.compared_run = other
        self.show(run, lambda: self._compare_with(other))

    def show(self, run: HistoryRun, then: Callable[[], None]) -> None:
        """Shows another run, simulated first if it has not been; calls `then` when it is there."""
        session = self._session
        self._next = (run, then)
        if run.results is not None:
            self._show_target(run)
            return
        if run.label == session.opened.setup.label:
            session.edit(session.opened.setup.with_parameters(run.parameters))
        self._begin(run)

    def say_run(self, more: str = "") -> None:
        """Says which run is on the screen now, and its step time. more: what follows."""
        session = self._session
        history_run = session.find_in_history(session.current)
        name = f"{cells(history_run.name, 30)}: " if history_run is not None and history_run.name else ""
        self._app.say(f"{name}{session.run_words()}, {session.step}{more}")

    def _compare_with(self, other: Run) -> None:
        """Opens screen 6: another run against the one on the screen."""
        self._session.compared_run = other
        self._app.compare_again()
        self._app.call_later(self._app.action_open, "compare")
