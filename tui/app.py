"""The Textual app: the rows around the screens, and switching between them."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from textual._styles_cache import StylesCache
from textual.app import App, ComposeResult
from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.events import Click, Event, Key

from simcore.cached_methods import is_cached
from tui.background import Background, RecoveredModels
from tui.chrome import footer, heading, tab_at
from tui.frame import Line, cells, spread
from tui.frame_view import FrameView, ScreenView
from tui.prompt import FieldScreen
from tui.runs.runs import Runs, RunsHost
from tui.screens import SCREENS, load, screens_of
from tui.session import Run, Session
from tui.state.keeper import SessionKeeping

if TYPE_CHECKING:
    from tui.exporting import Exporting
    from tui.following import Following
    from tui.keys.actions import KeyAction, Keymap
    from tui.state.keeper import SessionFile
    from tui.sweep.sweeping import Sweeping
    from tui.tour import Tour


NOTHING_FOLLOWED = "nothing is followed: wltui --follow DIR|LOG looks every second for what is new"
TRIES_ELSEWHERE = "t tries a change where they are listed, on 1 and 4: the marked or first one"
# The position of the hint to the other run, once there is one: among those that fit on 80 columns.
_OTHER_RUN_AT = 3
# The message about a restored session stays for this many keys.
_KEYS_OF_NOTICE = 2


class Heading(FrameView):
    """The two rows on top."""

    DEFAULT_CSS = "Heading { height: 2; }"

    def frame(self, width: int, height: int) -> list[Line]:
        app = self.app
        assert isinstance(app, WltuiApp)
        return heading(app.session, app.screen_name, width)

    async def on_click(self, event: Click) -> None:
        """Opens the screen of a clicked tab."""
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
        tour = None if app.tour is None or app.tour.is_over else app.tour
        if app.status_text:
            # The message of a key of the tour hides no step of it.
            step = tour.step_words(width - len(app.status_text) - 2, *app.tour_state) if tour else []
            # A key is named once.
            message = app.status_text.partition(f";{step[0][0]}")[0] if step else app.status_text
            return [spread([(f" {message}", "bright")], step, width)]
        if tour is not None:
            return [tour.line(width, app.hints(), *app.tour_state)]
        return [footer(app.hints(), width)]


# By screen why a run has none.
MISSING = {
    "links": "this network has no links: --network flows has those of a topology, --network links its own",
    "steps": "8 lists the steps of measured runs of several: this one has none to list",
}


NO_NETWORK = "9 has the links of a simulated network: a recording has none"


class WltuiApp(RunsHost):
    """The explorer over the runs of one workload, or of one directory of traces."""

    CSS = "Screen { layout: vertical; overflow: hidden; }"
    ENABLE_COMMAND_PALETTE = False
    # Dragging sets a range; the terminal's own selection is there with Shift.
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
        Binding(
            "x", "other_run", "the run that was shown before, and back", show=False,
            id="app.other-run",
        ),
        Binding(
            "R", "runs", "all runs, kept or of the directory: compare", show=False,
            id="app.runs",
        ),
        Binding("W", "follow", "stop and resume to look for what is new", show=False, id="app.follow"),
        Binding("y", "copy_command", "copy the command line of this run", show=False, id="app.copy-command"),
        Binding("e", "edit", "the parameters, at the change that is marked", show=False, id="app.edit"),
        Binding(
            "E", "export", "export as page, for Perfetto, as CSV, or this screen", show=False, id="app.export"
        ),
        Binding("colon,ctrl+p", "commands", "find an action by its words", show=False, id="app.commands"),
        Binding("question_mark", "help", "keys that work here", show=False, id="app.help"),
        Binding("q", "quit", "quit", show=False, id="app.quit"),
        # Also over the keys of a prompt or the help.
        Binding("ctrl+q,ctrl+c", "quit", "quit", show=False, id="app.quit-everywhere", priority=True),
        Binding("ctrl+l", "redraw", "draw the screen anew", show=False, id="app.redraw", priority=True),
    ]  # fmt: skip

    def __init__(
        self,
        session: Session,
        *,
        ascii_only: bool = False,
        keymap: Keymap | None = None,
        first: str | None = None,
        keeper: SessionFile | None = None,
        tour: Tour | None = None,
    ) -> None:
        # The terminal's own colours: the theme of a login node is the user's choice. ansi_color is read
        # before the theme is known, and decides what NO_COLOR does.
        super().__init__(ansi_color=True)
        self.theme = "ansi-dark"
        self.animation_level = "none"
        self.session = session
        self.ascii_only = ascii_only
        self.keymap: Keymap = keymap or {}
        self.set_keymap(dict(self.keymap))
        self.screen_name = first or next(iter(SCREENS))
        self._views: dict[str, ScreenView] = {}
        self.tour = tour
        self.keeping = SessionKeeping(self, keeper)
        self.status_text = self._notice = self.keeping.notice
        # The message about a restored session outlasts some keys: its figures are not those of the file as it
        # is.
        self._unread_keys = _KEYS_OF_NOTICE if self.status_text else 0
        self._last_counted_key: Key | None = None
        # The screen from which an interval of the timeline was opened, until another screen is opened.
        self.came_from = ""
        self.what_ifs = Background(self, "what-if")
        self.comparisons = Background(self, "compare")
        self.layer_paths = Background(self, "layers")
        self.change_times = Background(self, "changes")
        self.calibrations = Background(self, "calibrate")
        self.step_tables = Background(self, "steps")
        self.step_findings = Background(self, "step findings")
        self.models_behind = RecoveredModels(self, "model behind")
        self.runs = Runs(self, session)
        self._exporting: Exporting | None = None
        self.following: Following | None = None

    @cached_property
    def sweeping(self) -> Sweeping:
        """The sweep of this session."""
        from tui.sweep.sweeping import Sweeping

        return Sweeping(self)

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
        view = load(name)(self.session, ascii_only=self.ascii_only, id=name)
        self._views[name] = view
        self.keeping.restore(name, view)
        return view

    def on_mount(self) -> None:
        # The run as opened stays in memory: without this the garbage collector would traverse it each time,
        # which took 50 ms of a key now and then with a million spans.
        gc.freeze()
        gc.enable()
        self.current_view.focus()
        self.keeping.begin(self.runs)
        # A look into the cache, which creates nothing: most sessions have no sweep.
        if is_cached(self, "sweeping"):
            self.sweeping.start()
        if self.following is not None:
            self.following.start()
        self.app_resume_signal.subscribe(self, self._resumed)

    def _resumed(self, app: App[None]) -> None:
        """Redraws after Ctrl+Z: the terminal has shown something else."""
        self.action_redraw()

    def action_redraw(self) -> None:
        """Draws everything anew and sends all of it, whatever the terminal shows."""
        self.send_all_again()
        for screen in self.screen_stack:
            for view in screen.query(FrameView):
                view.redraw_all()
            screen.refresh()

    async def action_open(self, name: str) -> None:
        """Shows a screen; it is made when it is first opened, and keeps its state."""
        if name == self.screen_name or name not in SCREENS or self.current_view.leads_to(name):
            return
        if name not in screens_of(self.session.current):
            self.say(NO_NETWORK if name == "links" and self.session.current.recording else MISSING[name])
            return
        self.came_from = ""
        if name not in self._views:
            new = self._new_view(name)
            new.display = False
            await self.mount(new, before=self.query_one(Footer))
        self.current_view.display = False
        self.screen_name = name
        if self.status_text == self._notice:
            self.status_text = ""
        self.current_view.display = True
        # Not `focus()`, which comes later: keys typed ahead belong to the new screen.
        self.screen.set_focus(self.current_view)
        for row in (self.query_one(Heading), self.query_one(Footer)):
            # At once: Textual lays the screen out now, and later changes are another picture.
            row.redraw_now()

    async def go_to(self, track_id: int, start_ns: int, end_ns: int, stream: str | None = None) -> None:
        """Shows an interval in the timeline: a track or a stream of it, from start_ns to end_ns."""
        from tui.timeline.view import TimelineView

        here = self.screen_name
        await self.action_open("timeline")
        self.came_from = here
        view = self.current_view
        assert isinstance(view, TimelineView)
        view.go_to(track_id, start_ns, end_ns, stream)

    def on_key(self, event: Key) -> None:
        """Gives keys typed ahead of a prompt or the palette to it, not to what is under it."""
        if isinstance(self.screen, FieldScreen) and self.screen.typed_ahead(event):
            event.stop()
            event.prevent_default()

    def redraw_chrome(self) -> None:
        """Redraws the rows around the screen."""
        self.query_one(Heading).redraw()
        self.query_one(Footer).redraw()

    def action_help(self) -> None:
        """Shows all keys of the open screen."""
        from tui.help import HelpScreen

        self.push_screen(HelpScreen(self.current_view, self.BINDINGS, self.keymap))

    def action_commands(self) -> None:
        """Opens the palette with all actions: those of the open screen and of the app first."""
        from tui.palette import Palette
        from tui.search_index import SearchIndex

        self.push_screen(Palette(self.current_view, self.BINDINGS, self.keymap, SearchIndex(self)), self.do)

    async def do(self, action: KeyAction | None) -> None:
        """Does an action as its key would: of its screen, opened first, if that has it, else of the app."""
        if action is None:
            return
        if action.act is not None:
            waiting = action.act()
            if waiting is not None:
                await waiting
            return
        if action.screen:
            await self.action_open(action.screen)
        view = self.current_view
        here = any(
            isinstance(binding, Binding) and binding.action == action.call for binding in view.BINDINGS
        )
        await self.run_action(action.call, default_namespace=view if here else self)

    def hints(self) -> tuple[tuple[str, str], ...]:
        """Returns the hints of the last row for the keys of the open screen, as the keymap has them."""
        hints = list(self.current_view.hints)
        if self.runs.has_other and not self.current_view.has_key("x"):
            hints.insert(_OTHER_RUN_AT, ("x", "other run"))
        if self.session.opened.setup.others:
            hints.insert(_OTHER_RUN_AT, ("R", "other runs"))
        if self.following is not None:
            hints.insert(_OTHER_RUN_AT, ("W", self.following.hint))
        if not self.keymap:
            return tuple(hints)
        # Imported here: most users keep the default keys.
        from tui.keys.actions import rename_hint_keys

        bindings = [*self.current_view.BINDINGS, *self.BINDINGS]
        return tuple((rename_hint_keys(keys, bindings, self.keymap), words) for keys, words in hints)

    def show_everywhere(self, run: Run) -> None:
        """Shows another run on all screens."""
        for view in self._views.values():
            view.show(run)
        self.changed()

    def compare_again(self) -> None:
        """Updates screen 6 when the runs that it compares may have changed."""
        if "compare" in self._views:
            self._views["compare"].show(self.session.current)

    def redraw_current(self) -> None:
        """Redraws the open screen."""
        self.current_view.redraw()

    def redraw_sweep(self) -> None:
        """Shows new points of the sweep."""
        view = self._views.get("sweep")
        if view is not None:
            view.show(self.session.current)

    def redraw_hints(self) -> None:
        """Redraws the hints of the open screen."""
        self.query_one(Footer).redraw()

    def action_keep(self) -> None:
        """Keeps the run on the screen, to come back to and to compare with."""
        self.runs.keep()

    def action_other_run(self) -> None:
        """Shows the run that was shown before, and with the same key this one again."""
        self.runs.show_other()

    def action_runs(self) -> None:
        """Opens the history of runs."""
        self.runs.open_history()

    async def action_edit(self) -> None:
        """Opens screen 5, at the field of the what-if that is marked on the open screen."""
        from tui.panels_view import PanelsView
        from tui.parameters.view import ParametersView

        view = self.current_view
        selected = view.model.selected_change() if isinstance(view, PanelsView) else None
        await self.action_open("parameters")
        if selected is not None and isinstance(self.current_view, ParametersView):
            self.current_view.go_to_knob(selected)

    def pop_screen(self) -> AwaitComplete:
        # Its keys are widgets' own caches: those of 1,024 widgets of closed panels would be kept, with their
        # lines, 14 MB in five minutes of prompts.
        forget_colours = getattr(StylesCache.get_inner_outer, "cache_clear", None)
        if forget_colours is not None:
            forget_colours()
        return super().pop_screen()

    def action_try_elsewhere(self) -> None:
        """Says where a change can be tried."""
        self.say(TRIES_ELSEWHERE)

    def action_export(self) -> None:
        """Asks for a file, and writes the run or the screen to it."""
        if self._exporting is None:
            from tui.exporting import Exporting

            self._exporting = Exporting(self)
        self._exporting.ask()

    def action_follow(self) -> None:
        """Stops looking for what is new in what is followed, or begins again."""
        if self.following is None:
            self.say(NOTHING_FOLLOWED)
        else:
            self.following.toggle()

    def action_copy_command(self) -> None:
        """Copies the command line that reproduces the run to the clipboard of the terminal, and shows it."""
        from tui.reproducing import CommandLine, build_command_line, command_panel

        own = self.current_view.command
        copied = build_command_line(self.session) if own is None else CommandLine(own)
        # OSC 52: terminals that know it put the text into the clipboard, also over SSH.
        self.copy_to_clipboard(copied.command)
        message = cells(f"{copied.left_out}: {copied.command}" if copied.left_out else copied.command, 400)
        if len(message) < self.size.width:
            self.say(message)
        else:
            # Where a terminal ignores it, this is the only copy: complete, over several rows.
            self.push_screen(command_panel(copied, self.current_view.glyphs))

    def say(self, message: str) -> None:
        """Shows a line at the bottom until a key does something."""
        self.status_text = message
        self._unread_keys = 0
        self.query_one(Footer).redraw()

    async def on_event(self, event: Event) -> None:
        """Clears the message of the previous key before a key does its work."""
        self.keeping.on_event(event)
        # Esc belongs to an open panel first.
        closes = len(self.screen_stack) > 1 and isinstance(event, Key) and event.key == "escape"
        pressed = event.key if isinstance(event, Key) and not closes else ""
        if pressed and self.tour is not None and self.tour.press(pressed, *self.tour_state):
            self.query_one(Footer).redraw()
            if pressed == "escape":
                # `Esc ends it` is meant literally: it leaves no screen as well.
                event.stop()
                return
        # A key that no widget stops comes here a second time.
        if (
            self.status_text
            and isinstance(event, Key)
            and event is not self._last_counted_key
            and self._acts(event)
        ):
            self._last_counted_key = event
            self._unread_keys -= 1
            if self._unread_keys < 0:
                self.status_text = ""
                self.query_one(Footer).redraw()
        await super().on_event(event)

    @property
    def tour_state(self) -> tuple[str, int]:
        """The position of the tour: the open screen, and how many runs there are to go back to."""
        return self.screen_name, len(self.session.runs)

    def _acts(self, event: Key) -> bool:
        """Returns whether a key does something here: one that does nothing leaves the message to be read."""
        return self.focused is not self.current_view or event.key in self.screen.active_bindings

    def _fatal_error(self) -> None:
        """Ends on an error of the program, with its traceback.

        Textual would print the values of all variables, too: with a run of 1,024 ranks that takes more than
        20 s, in which no key works, and text of the file is among them.
        """
        # Imported here: it happens once, if at all.
        from traceback import format_exc

        from rich.text import Text

        from simcore.diagnostics import printable

        calls = [printable(line, 400) for line in format_exc().splitlines()]
        advice = "wltui: a mistake of the program, not of the file; please report it with these lines"
        self._exit_renderables.append(Text("\n".join([*calls, advice])))
        self._close_messages_no_wait()

    def changed(self) -> None:
        """Updates the screen when the shown run, or the state of the next one, has changed."""
        self.current_view.redraw()
        self.redraw_chrome()
        # A panel over the screen may list runs.
        for over in self.screen_stack[1:]:
            for view in over.query(FrameView):
                view.redraw()
