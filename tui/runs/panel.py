"""`R`: the history of runs, to show one, to name, remove and compare them."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from textual.binding import Binding, BindingType

from tui.frame import Glyphs, Line
from tui.panel import Panel
from tui.prompt import Prompt
from tui.runs.lines import heading, run_lines
from tui.session import KeptRun, Session
from tui.state.stored import MOST_NAME

_ENDING = "Enter shows, n names, Space marks, c compares, Delete removes, Esc closes"


class Chosen(NamedTuple):
    """What is to be done: show `run`, or compare it (B) with `beside` (A)."""

    run: KeptRun
    beside: KeptRun | None = None


class RunsPanel(Panel, inherit_bindings=False):
    """Covers the screen with the runs that were kept."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,R,q", "dismiss(None)", "back"),
        Binding("j,down", "choose(1)", "next run"),
        Binding("k,up", "choose(-1)", "run before"),
        Binding("g,home", "choose(-1000000)", "the first"),
        Binding("G,end", "choose(1000000)", "the last"),
        Binding("enter", "show", "show it"),
        Binding("n", "name", "name it"),
        Binding("space,m", "mark", "mark it for comparing"),
        Binding("c", "compare", "compare the marked one with this one, or the two that are marked"),
        Binding("delete,backspace", "remove", "remove it"),
    ]

    def __init__(self, session: Session, glyphs: Glyphs) -> None:
        super().__init__("Runs", self._made, glyphs, _ENDING)
        self._session = session
        self._marked: list[KeptRun] = []
        self._said = ""
        here = session.kept(session.current.simulation.parameters)
        self._chosen = session.history.index(here) if here is not None else len(session.history) - 1

    @property
    def _run(self) -> KeptRun:
        return self._session.history[self._chosen]

    def _made(self, width: int) -> list[Line]:
        """A line or two for each run, and what the last key has to say."""
        runs = run_lines(self._session, self._chosen, self._marked, width)
        lines = [heading(width), *(line for run in runs for line in run)]
        if len(runs) == 1 and not self._said:
            return [*lines, [], [("  r on screen 5 keeps the run that is shown; t tries a change", "dim")]]
        return [*lines, *([[], [(f"  {self._said}", "warn")]] if self._said else [])]

    def _redraw(self, said: str = "") -> None:
        self._said = said
        # Behind the title and the heading, with its neighbours in view.
        height = max(self._lines.size.height, 5)
        each = len(run_lines(self._session, self._chosen, self._marked, self._lines.size.width)[0])
        place = 2 + self._chosen * each
        self._lines.top = max(min(self._lines.top, place - 2), place + each + 1 - height, 0)
        self._lines.redraw()

    def action_choose(self, by: int) -> None:
        self._chosen = max(0, min(self._chosen + by, len(self._session.history) - 1))
        self._redraw()

    def action_show(self) -> None:
        self.dismiss(Chosen(self._run))

    def action_name(self) -> None:
        run = self._run
        self.app.push_screen(Prompt(f"name of run {self._chosen + 1}", run.name), self._named)

    def _named(self, name: str | None) -> None:
        if name is not None:
            self._run.name = name.strip()[:MOST_NAME]
        self._redraw()

    def action_mark(self) -> None:
        run = self._run
        if run in self._marked:
            self._marked.remove(run)
        else:
            # A third mark takes the place of the second.
            self._marked = [*self._marked[:1], run]
        self._redraw()

    def action_compare(self) -> None:
        one, other = [*self._marked, self._run, self._run][:2]
        if one is other:
            self._redraw("mark another run with Space first: it is compared with this one")
        else:
            self.dismiss(Chosen(other, one))

    def action_remove(self) -> None:
        run = self._run
        if not self._session.remove(run):
            self._redraw("the run as opened stays: the others are compared with it")
            return
        self._marked = [one for one in self._marked if one is not run]
        self.action_choose(0)
