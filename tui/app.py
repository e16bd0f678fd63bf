"""The Textual app: the rows around the screens, switching between them, and the runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Click, Event, Key

from simcore.analysis import Results
from simcore.diagnostics import Cancelled, InputError, UsageError
from simcore.parameters import Parameters
from simcore.simulation import simulate
from tui.background import Background, Watched
from tui.chrome import footer, heading, tab_at
from tui.frame import Line, cells, spread
from tui.frame_view import FrameView
from tui.keys.actions import Keymap, renamed
from tui.prompt import FieldScreen
from tui.screen_view import ScreenView
from tui.screens import SCREENS, load, screens_of
from tui.session import AnySession, KeptRun, Run, Session
from tui.state.keeping import Keeping
from tui.terminal.display import CellApp

if TYPE_CHECKING:
    from simcore.analysis.what_if import WhatIf
    from simcore.measured.replay import MeasuredResults
    from tui.runs.panel import Chosen
    from tui.state.keeper import Keeper


class Heading(FrameView):
    """The two rows on top."""

    DEFAULT_CSS = "Heading { height: 2; }"

    def frame(self, width: int, height: int) -> list[Line]:
        app = self.app
        assert isinstance(app, WltuiApp)
        return heading(app.session, app.screen_name, width)

    async def on_click(self, event: Click) -> None:
        """A click on a tab opens its screen."""
        app = self.app
        assert isinstance(app, WltuiApp)
        name = tab_at(app.session, app.screen_name, event.x, self.size.width) if event.y == 1 else None
        if name is not None:
            await app.action_open(name)


class Footer(FrameView):
    """The row at the bottom."""

    DEFAULT_CSS = "Footer { height: 1; }"

    def frame(self, width: int, height: int) -> list[Line]:
        app = self.app
        assert isinstance(app, WltuiApp)
        if app.said:
            return [spread([(f" {app.said}", "bright")], [], width)]
        return [footer(app.hints(), width)]


class WltuiApp(CellApp):
    """The explorer over one workload, or one measured run."""

    CSS = "Screen { layout: vertical; overflow: hidden; }"
    ENABLE_COMMAND_PALETTE = False
    # Dragging marks out a range; the terminal's own selection is there with Shift.
    ALLOW_SELECT = False
    BINDINGS: ClassVar[list[BindingType]] = [
        *(
            Binding(
                "exclamation_mark" if entry.key == "!" else entry.key, f"open('{name}')", entry.title.lower(),
                show=False, id=f"screen.{name}",
            )
            for name, entry in SCREENS.items()
        ),
        Binding("ctrl+z", "suspend_process", "suspend, fg comes back", show=False, id="app.suspend"),
        Binding("x", "other_run", "the run that was shown before, and back", show=False, id="app.other-run"),
        Binding("R", "runs", "the runs that were kept: show, name, compare", show=False, id="app.runs"),
        Binding("y", "copy_command", "copy the command line of this run", show=False, id="app.copy-command"),
        Binding("colon,ctrl+p", "commands", "find an action by its words", show=False, id="app.commands"),
        Binding("question_mark", "help", "keys that work here", show=False, id="app.help"),
        Binding("q", "quit", "quit", show=False, id="app.quit"),
        # Over the keys of a prompt or the help, too.
        Binding("ctrl+q,ctrl+c", "quit", "quit", show=False, id="app.quit-everywhere", priority=True),
        Binding("ctrl+l", "redraw", "draw the screen anew", show=False, id="app.redraw", priority=True),
    ]  # fmt: skip

    def __init__(
        self,
        session: AnySession,
        *,
        ascii_only: bool = False,
        keymap: Keymap | None = None,
        first: str | None = None,
        keeper: Keeper | None = None,
        against: Results | MeasuredResults | None = None,
    ) -> None:
        # The terminal's own colours: a login node's theme is the user's choice, not ours.
        # ansi_color is asked for before the theme is known, and decides what NO_COLOR does.
        super().__init__(ansi_color=True)
        self.theme = "ansi-dark"
        self.animation_level = "none"
        self.session = session
        # What was opened beside it, to be compared with.
        self.against = against
        self.ascii_only = ascii_only
        self.keymap: Keymap = keymap or {}
        self.set_keymap(dict(self.keymap))
        self.screen_name = first or screens_of(session.measured)[0]
        self._views: dict[str, ScreenView] = {}
        self.keeping = Keeping(self, keeper)
        self.said = self.keeping.notice
        # The screen that a place in the timeline was opened from, until another one is opened.
        self.came_from = ""
        # Parameters whose run is kept when it is done, and what is done next when a run is there.
        self._keep: Parameters | None = None
        self._next: tuple[Parameters, Callable[[], None]] | None = None
        self.what_ifs = Background(self, "what-if")
        self.comparisons = Background(self, "compare")
        self.change_times = Background(self, "changes")
        # How long the draft has been simulated, s.
        self.run_seconds = 0.0

    @property
    def current_view(self) -> ScreenView:
        """The view of the screen that is open."""
        return self._views[self.screen_name]

    @property
    def views(self) -> Mapping[str, ScreenView]:
        """The screens that have been opened, by name."""
        return self._views

    def compose(self) -> ComposeResult:
        yield Heading(ascii_only=self.ascii_only)
        yield self._new_view(self.screen_name)
        yield Footer(ascii_only=self.ascii_only)

    def _new_view(self, name: str) -> ScreenView:
        view = load(name, self.session.measured)(self.session, ascii_only=self.ascii_only, id=name)
        self._views[name] = view
        self.keeping.restore(name, view)
        return view

    def on_mount(self) -> None:
        self.current_view.focus()
        self.keeping.begin(self.show_run)
        self.app_resume_signal.subscribe(self, self._resumed)

    def _resumed(self, app: App[None]) -> None:
        """Back from Ctrl+Z: the terminal has shown something else."""
        self.action_redraw()

    def action_redraw(self) -> None:
        """Draw everything anew and send all of it, whatever the terminal shows."""
        self.send_all_again()
        for screen in self.screen_stack:
            for view in screen.query(FrameView):
                view.redraw_all()
            screen.refresh()

    async def action_open(self, name: str) -> None:
        """Show a screen; it is made when it is first opened and found later as it was left."""
        if name == self.screen_name or name not in screens_of(self.session.measured):
            return
        self.came_from = ""
        if name not in self._views:
            new = self._new_view(name)
            new.display = False
            await self.mount(new, before=self.query_one(Footer))
        self.current_view.display = False
        self.screen_name = name
        self.current_view.display = True
        # Not `focus()`, which comes later: keys typed ahead belong to the new screen.
        self.screen.set_focus(self.current_view)
        for row in (self.query_one(Heading), self.query_one(Footer)):
            # Now: Textual lays the screen out at once, and what comes later is another picture.
            row.redraw_now()

    async def go_to(self, number: int, start_ns: int, end_ns: int) -> None:
        """Show a place in the timeline: a rank class, from start_ns to end_ns."""
        from tui.timeline.view import TimelineView

        here = self.screen_name
        await self.action_open("timeline")
        self.came_from = here
        view = self.current_view
        assert isinstance(view, TimelineView)
        view.go_to(number, start_ns, end_ns)

    def on_key(self, event: Key) -> None:
        """Keys typed ahead of a prompt or the palette belong to it, not to what is under it."""
        if isinstance(self.screen, FieldScreen) and self.screen.typed_ahead(event):
            event.stop()
            event.prevent_default()

    def _redraw_chrome(self) -> None:
        self.query_one(Heading).redraw()
        self.query_one(Footer).redraw()

    def action_help(self) -> None:
        """All keys of the open screen."""
        from tui.help import HelpScreen

        self.push_screen(HelpScreen(self.current_view, self.BINDINGS, self.keymap))

    def action_commands(self) -> None:
        """All actions of the open screen and those that work everywhere, found by typing."""
        from tui.palette import Palette

        self.push_screen(Palette(self.current_view, self.BINDINGS, self.keymap), self._do)

    async def _do(self, call: str | None) -> None:
        """Run an action as its key would: of the open screen where it has it, else of the app."""
        if call is not None:
            view = self.current_view
            here = any(isinstance(one, Binding) and one.action == call for one in view.BINDINGS)
            await self.run_action(call, default_namespace=view if here else self)

    def hints(self) -> tuple[tuple[str, str], ...]:
        """What the last row says of the keys of the open screen, as the keymap has them."""
        bindings = [*self.current_view.BINDINGS, *self.BINDINGS]
        return tuple((renamed(keys, bindings, self.keymap), words) for keys, words in self.current_view.hints)

    # -- runs ------------------------------------------------------------------------

    def try_change(self, knob: WhatIf | None) -> None:
        """Run a change of the what-if table as the draft."""
        session = self.session
        assert isinstance(session, Session)
        if knob is None:
            self.say("no change is chosen: Tab leads to the table, when it is there")
        elif knob.parameters is None:
            self.say("no parameter does that alone: 5 has the network and the layers")
        else:
            session.edit(knob.parameters)
            self._keep = knob.parameters
            self.run_draft()

    def show_everywhere(self, run: Run) -> None:
        """Another run on all screens."""
        for view in self._views.values():
            view.show(run)
        self._changed()

    def redraw_current(self) -> None:
        """Something that the open screen shows has changed."""
        self.current_view.redraw()

    def redraw_hints(self) -> None:
        """The keys of the open screen are others than before."""
        self.query_one(Footer).redraw()

    def run_draft(self) -> None:
        """Simulate the session's draft in a worker; the old picture stays until it is done."""
        session = self.session
        assert isinstance(session, Session)
        session.running = True
        session.error = ""
        self.run_seconds = 0.0
        # It would take half of the processor from the run that is waited for.
        self.change_times.stop()
        parameters = session.draft
        self.run_worker(lambda: self._simulate(session, parameters), thread=True, exclusive=True, group="run")
        self._changed()

    def _simulate(self, session: Session, parameters: Parameters) -> None:
        watched = Watched(self._run_takes)
        results: Results | None = None
        error = ""
        try:
            kept = session.kept(parameters)
            if kept is not None and kept.results is not None:
                results = kept.results
            else:
                results = Results(simulate(session.workload, parameters, watched))
                # Computed here, so that drawing has only to look it up.
                results.compute_accounts(watched)
        except Cancelled:
            return
        except (UsageError, InputError) as found:
            error = str(found)
        if not watched():
            self.call_from_thread(self._finished, session, parameters, results, error)

    def _run_takes(self, seconds: float) -> None:
        """Called by the worker: say how long the run takes already."""
        self.run_seconds = seconds
        if self.is_running:
            self.call_from_thread(self.redraw_current)

    def cancel_run(self) -> None:
        """Stop the run of the draft: the parameters of the run on the screen are the draft again."""
        session = self.session
        assert isinstance(session, Session)
        self.workers.cancel_group(self, "run")
        session.running = False
        session.edit(session.current.simulation.parameters)
        self._changed()
        self.say("the run was stopped; u has the change again")

    def _finished(
        self, session: Session, parameters: Parameters, results: Results | None, error: str
    ) -> None:
        if parameters != session.draft:
            return
        session.running = False
        session.error = error
        if results is not None:
            session.show(results)
            for view in self._views.values():
                view.show(results)
            if parameters == self._keep:
                self._keep = None
                session.keep()
                self.say(f"{session.run_words()}: {session.step}; x goes back and forth")
            if self._next is not None and self._next[0] == parameters:
                then, self._next = self._next[1], None
                then()
        self._changed()

    def action_keep(self) -> None:
        """Keep the run on the screen, to come back to and to compare with."""
        session = self.session
        if not isinstance(session, Session):
            self.say("a measured run is the only one there is")
        elif session.running or session.error:
            self.say("there is no finished run to keep")
        else:
            number = session.keep()
            # The row above says which run this is.
            self._redraw_chrome()
            self.say("this run is kept already" if number is None else f"kept as run {number}")

    def action_other_run(self) -> None:
        """Show the run that was shown before, and with the same key this one again."""
        session = self.session
        if session.measured:
            from tui.measured import replaying
            from tui.measured.session import MeasuredSession

            assert isinstance(session, MeasuredSession)
            replaying.show_other(self, session)
            return
        if not isinstance(session, Session) or session.other is None:
            self.say("there is no other run yet: change a parameter first (5)")
            return
        other = session.other
        # The draft goes with it: what is on the screen is what a change begins with.
        session.edit(other.simulation.parameters)
        self._finished(session, session.draft, other, "")
        self.say(f"{session.run_words()}, {session.step}")

    def action_runs(self) -> None:
        """The history of runs."""
        session = self.session
        if not isinstance(session, Session):
            self.say("a measured run is the only one there is")
            return
        from tui.runs.panel import RunsPanel

        self.push_screen(RunsPanel(session, self.current_view.glyphs), self._chosen)

    def _chosen(self, chosen: Chosen | None) -> None:
        """Show a run of the history, or two beside each other: each is simulated when it is first shown."""
        self._redraw_chrome()
        if chosen is None:
            return
        run, beside = chosen
        if beside is None:
            self.show_run(run, self._say_run)
        elif beside.results is None:
            self.show_run(beside, lambda: self.show_run(run, lambda: self._compare_with(beside)))
        else:
            self.show_run(run, lambda: self._compare_with(beside))

    def show_run(self, run: KeptRun, then: Callable[[], None]) -> None:
        """Another run on the screen, simulated first where it has not been; `then` when it is there."""
        session = self.session
        assert isinstance(session, Session)
        session.edit(run.parameters)
        self._next = (run.parameters, then)
        if run.results is not None:
            self._finished(session, session.draft, run.results, "")
        else:
            self.run_draft()

    def _say_run(self) -> None:
        assert isinstance(self.session, Session)
        self.say(f"{self.session.run_words()}, {self.session.step}")

    def _compare_with(self, beside: KeptRun) -> None:
        """Screen 6: another run beside the one on the screen."""
        session = self.session
        assert isinstance(session, Session)
        session.beside = beside.results
        if "compare" in self._views:
            self._views["compare"].show(session.current)
        self.call_later(self.action_open, "compare")

    def action_copy_command(self) -> None:
        """Put the command line that reproduces the run into the clipboard of the terminal, and say it."""
        session = self.session
        command = session.command()
        if command is None:
            self.say("no flags of the command line say this replay: gaps, stages or group kinds are scaled")
            return
        # OSC 52: terminals that know it put the text into the clipboard, also over SSH.
        self.copy_to_clipboard(command)
        self.say(cells(command, 400))

    def say(self, words: str) -> None:
        """A line at the bottom until the next key."""
        self.said = words
        self.query_one(Footer).redraw()

    async def on_event(self, event: Event) -> None:
        """Before a key does its work, what was said about the one before is over."""
        self.keeping.noticed(event)
        if self.said and isinstance(event, Key):
            self.said = ""
            self.query_one(Footer).redraw()
        await super().on_event(event)

    def _changed(self) -> None:
        self.current_view.redraw()
        self._redraw_chrome()
