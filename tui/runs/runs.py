"""The runs of what is open: the draft found in a worker, runs shown, kept, and laid beside each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from simcore.diagnostics import Cancelled, InputError, UsageError
from simcore.parameters import Given
from simcore.units import duration
from tui.background import Background, ModelsBehind, Watched
from tui.chrome import run_difference
from tui.frame import cells, text_of
from tui.host import Host
from tui.session import KeptRun, Run, Session

if TYPE_CHECKING:
    from simcore.trace.findings import WhatIf
    from tui.runs.panel import ChosenRuns
    from tui.sweep.sweeping import Sweeping

# The table is of the run on the screen: a change of it would take away what is being looked for.
NO_OTHER_YET = "there is no other run yet: change a parameter first (5)"
KEPT_ALREADY = "this run is kept already"
RUN_STOPPED, WITH_CHANGE = "the run was stopped", "; u has the change again"
STILL_RUNNING = "a run is in progress: wait for it, or stop it (5, Esc), then press t"
TRIES_BEST = "t tries the first change as soon as it is known: still computing"
NO_CHANGE = "no change is known that would make the run on the screen shorter"


class RunsHost(Host):
    """The app with its runs, and what is looked for of them behind the picture."""

    runs: Runs
    what_ifs: Background
    comparisons: Background
    layer_paths: Background
    change_times: Background
    calibrations: Background
    models_behind: ModelsBehind

    @property
    def sweeping(self) -> Sweeping:
        """The sweep of this session."""
        raise NotImplementedError


class Runs:
    """seconds: how long the draft has been looked for, s."""

    def __init__(self, app: RunsHost, session: Session) -> None:
        self._app = app
        self._session = session
        self.seconds = 0.0
        # Parameters whose run is kept when it is done, and what is done next when a run is there.
        self._keep: Given | None = None
        self._next: tuple[KeptRun, Callable[[], None]] | None = None
        self._wanted: KeptRun | None = None

    @property
    def has_other(self) -> bool:
        """Whether it is worth a hint that there is another run: to the run as opened `u` leads, too."""
        other = self._session.other
        return other is not None and (other is not self._session.opened or len(self._session.runs) > 1)

    def what_if(self, run: Run) -> Sequence[WhatIf] | None:
        """The what-if table of a run, the best first; None while it is looked for."""
        if not run.timed:
            return ()
        what_ifs: list[WhatIf] | None = self._app.what_ifs.of(run, run.what_if)
        return what_ifs

    def known_what_if(self, run: Run) -> Sequence[WhatIf]:
        """The what-if table of a run where it is there already; else nothing."""
        return self._app.what_ifs.known(run) or ()

    def try_change(self, knob: WhatIf | None) -> None:
        """Run a change of the what-if table as the draft."""
        if self._session.running:
            self._app.say(STILL_RUNNING)
        elif knob is None:
            self._app.say("no change is chosen: Tab leads to the table, when it is there")
        else:
            assert knob.parameters is not None, "each row of the table is a run"
            self.try_run(self._session.opened.setup.under(knob.parameters))

    def try_best(self) -> None:
        """Try the best change once it is known, where no key is pressed before."""
        self._app.say(TRIES_BEST)

        def try_it(knobs: Sequence[WhatIf]) -> None:
            # A key clears the line that says so.
            if self._app.said == TRIES_BEST:
                self._app.say("" if knobs else NO_CHANGE)
                if knobs:
                    self.try_change(knobs[0])

        self._app.what_ifs.then(try_it)

    def try_run(self, setup: Given) -> bool:
        """Run this as the draft and keep the run; False, which is said, while another one is looked for."""
        if self._session.running:
            self._app.say(STILL_RUNNING)
            return False
        self._session.edit(setup)
        self._keep = setup
        self.run_draft()
        return True

    def try_beside(self, setup: Given) -> bool:
        """Take another setup for the run of the other file; False, which is said, while a run is made."""
        beside = self._session.against
        if self._session.running or beside is None:
            self._app.say(STILL_RUNNING)
            return False
        self._app.run_worker(
            lambda: self._find_beside(beside, setup), thread=True, exclusive=True, group="run"
        )
        return True

    def _find_beside(self, beside: Run, setup: Given) -> None:
        watched = Watched(lambda seconds: None)
        try:
            run = beside.rerun(setup, watched)
            run.compute_accounts(watched)
        except Cancelled:
            return
        except (UsageError, InputError) as error:
            self._app.call_from_thread(self._app.say, str(error))
            return
        if not watched():
            self._app.call_from_thread(self._put_beside, run)

    def _put_beside(self, run: Run) -> None:
        self._session.against = run
        self._app.compare_again()
        self._app.say(f"the run beside it has these parameters now: step {duration(run.step_time_ns)}")

    def run_draft(self) -> None:
        """Find the run of the session's draft in a worker; the old picture stays until it is done."""
        session = self._session
        self._begin(KeptRun(session.draft, label=session.opened.setup.label))

    def _begin(self, wanted: KeptRun) -> None:
        """Find a run in a worker."""
        session = self._session
        session.running, session.error, self.seconds = True, "", 0.0
        # It would take half of the processor from the run that is waited for.
        self._app.change_times.stop()
        self._wanted = wanted
        self._app.run_worker(lambda: self._find(wanted), thread=True, exclusive=True, group="run")
        self._app.changed()

    def _find(self, wanted: KeptRun) -> None:
        watched = Watched(self._takes)
        run: Run | None = None
        error = ""
        try:
            kept = self._session.kept_like(wanted)
            # Read once: it may give way meanwhile.
            run = None if kept is None else kept.results
            if run is None:
                root = self._session.root(wanted.label)
                same = root.parameters == wanted.parameters
                run = root if same else root.with_parameters(wanted.parameters, watched)
                # Computed here, so that drawing has only to look it up.
                run.compute_accounts(watched)
        except Cancelled:
            return
        except (UsageError, InputError) as refusal:
            error = str(refusal)
        if not watched():
            self._app.call_from_thread(self._finished, wanted, run, error)

    def _takes(self, seconds: float) -> None:
        """Called by the worker: say how long the run takes already."""
        self.seconds = seconds
        if self._app.is_running:
            self._app.call_from_thread(self._app.redraw_current)

    def cancel(self) -> None:
        """Stop the run of the draft: the parameters of the run on the screen are the draft again."""
        app, session = self._app, self._session
        app.workers.cancel_group(app, "run")
        self._wanted = None
        session.running = False
        changed = session.draft != session.current.parameters
        if changed:
            session.edit(session.current.setup)
        app.changed()
        app.say(RUN_STOPPED + (WITH_CHANGE if changed else ""))

    def _finished(self, wanted: KeptRun, run: Run | None, error: str) -> None:
        app, session = self._app, self._session
        if wanted is not self._wanted:
            return
        session.running = False
        session.error = error
        if run is None:
            if wanted.label != session.opened.setup.label:
                # Another run of the directory: the draft is not to blame.
                session.error = ""
                app.say(cells(error.replace("\n", "; "), 400))
            app.changed()
            return
        session.show(run)
        app.show_everywhere(run)
        if self._keep is not None and wanted.parameters == self._keep.parameters:
            self._keep = None
            session.keep()
            listed = ", R lists all runs" if len(session.history) > 2 else ""
            before = self._against_the_one_before()
            # `x goes back` was pressed twice, to go back by two runs.
            app.say(f"{session.run_words()}: {session.step}{before}; x shows {self._other_words()}{listed}")
        if self._next is not None and self._next[0] is wanted:
            then, self._next = self._next[1], None
            then()

    def _against_the_one_before(self) -> str:
        """`, -9.3 % vs run 2`: what a change has made of the run that it was made to, as its row promised; ""
        where that is the opened one, to which the row on top compares.
        """
        session = self._session
        before, now = session.other, session.current
        if before is None or before.setup.label != now.setup.label:
            return ""
        kept = session.kept(before)
        if kept is None or kept is session.kept(session.opened):
            return ""
        against = f"run {session.history.index(kept) + 1}"
        return f", {text_of([run_difference(before.shape, now.shape, True, against)])}"

    def keep(self) -> None:
        """Keep the run on the screen, to come back to and to compare with."""
        session = self._session
        if session.running or session.error:
            self._app.say("there is no finished run to keep")
        else:
            number = session.keep()
            # The row above says which run this is.
            self._app.redraw_chrome()
            kept = f"kept as run {number}: R has all runs, n there names one"
            self._app.say(KEPT_ALREADY if number is None else kept)

    def show_other(self) -> None:
        """Show the run that was shown before, and the next time this one again."""
        session = self._session
        if session.other is None:
            self._app.say(NO_OTHER_YET)
            return
        other = session.other
        self._put(KeptRun(other.parameters, "", None, other, other.setup.label))
        self.say_run(f"; x shows {self._other_words()}")

    def _other_words(self) -> str:
        """`run 2 again`: what was on the screen before, which `x` shows."""
        session = self._session
        there = None if session.other is None else session.kept(session.other)
        return "the draft again" if there is None else f"run {session.history.index(there) + 1} again"

    def _put(self, wanted: KeptRun) -> None:
        """A run that is there goes on the screen, and its parameters are what a change begins with."""
        if wanted.label == self._session.opened.setup.label:
            self._session.edit(self._session.opened.setup.under(wanted.parameters))
        self._wanted = wanted
        self._finished(wanted, wanted.results, "")

    def open_history(self) -> None:
        """The panel of the runs that were kept."""
        from tui.runs.panel import RunsPanel

        panel = RunsPanel(self._session, self._app.current_view.glyphs)
        self._app.push_screen(panel, self._chosen)

    def _chosen(self, chosen: ChosenRuns | None) -> None:
        """Show a run of the history, or two beside each other: each is found when it is first shown."""
        self._app.redraw_chrome()
        # Runs may have been named and removed.
        self._app.compare_again()
        if chosen is None:
            return
        run, beside = chosen
        if beside is None:
            self.show(run, self.say_run)
        else:
            self.compare(run, beside)

    def compare(self, run: KeptRun, beside: KeptRun) -> None:
        """Screen 6: a run (B) on the screen and another one (A), each found first where it has not been."""
        if beside.results is None:
            self.show(beside, lambda: self._show_beside(run, self._session.current))
        else:
            self._show_beside(run, beside.results)

    def _show_beside(self, run: KeptRun, beside: Run) -> None:
        """A run on the screen, another one beside it, which is held: large runs give way to others."""
        self._session.beside = beside
        self.show(run, lambda: self._compare_with(beside))

    def show(self, run: KeptRun, then: Callable[[], None]) -> None:
        """Another run on the screen, found first where it has not been; `then` when it is there."""
        session = self._session
        self._next = (run, then)
        if run.results is not None:
            self._put(run)
            return
        if run.label == session.opened.setup.label:
            session.edit(session.opened.setup.under(run.parameters))
        self._begin(run)

    def say_run(self, more: str = "") -> None:
        """Which run is on the screen now, and its step time. more: what follows."""
        session = self._session
        there = session.kept(session.current)
        name = f"{cells(there.name, 30)}: " if there is not None and there.name else ""
        self._app.say(f"{name}{session.run_words()}, {session.step}{more}")

    def _compare_with(self, beside: Run) -> None:
        """Screen 6: another run beside the one on the screen."""
        self._session.beside = beside
        self._app.compare_again()
        self._app.call_later(self._app.action_open, "compare")
