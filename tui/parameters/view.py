"""The form on the screen: fields left, the effect of the draft right."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, cast

from textual.binding import BindingType

from simcore.analysis import Results
from simcore.diagnostics import UsageError
from simcore.parameters import Parameters, as_flags
from simcore.units import duration
from tui.chrome import difference
from tui.frame import Line, cells, fitted, rule
from tui.parameters.fields import Field, fields_for
from tui.screen_view import ScreenView, binding
from tui.session import Run, Session

if TYPE_CHECKING:
    from tui.app import WltuiApp

_FIELDS_WIDTH = 66
_EFFECT_ROWS = 7


class ParametersView(ScreenView):
    """Every parameter; a change runs at once in a worker and its effect stands beside it."""

    hints = (
        ("jk", "field"), ("Left Right", "change"), ("shift", "x2"), ("Enter", "type a value"), ("u", "undo"),
        ("Delete", "as opened"), ("2", "timeline"),
    )  # fmt: skip
    BINDINGS: ClassVar[list[BindingType]] = [
        binding("j,down", "move(1)", "next field", "parameters.down"),
        binding("k,up", "move(-1)", "field above", "parameters.up"),
        binding("h,left", "scrub(-1, False)", "less, or the choice before", "parameters.less"),
        binding("l,right,space", "scrub(1, False)", "more, or the next choice", "parameters.more"),
        binding("H,shift+left", "scrub(-1, True)", "half", "parameters.half"),
        binding("L,shift+right", "scrub(1, True)", "twice", "parameters.twice"),
        binding("enter,e", "type", "type a value", "parameters.type"),
        binding(
            "delete,backspace", "reset", "this field as it was when the file was opened", "parameters.reset"
        ),
        binding("r", "app.keep", "keep this run, to come back to and to compare", "parameters.keep"),
        binding("u", "undo", "take back the last change", "parameters.undo"),
        binding("ctrl+r", "redo", "make it again", "parameters.redo"),
        binding("escape", "leave", "clear a refusal; else back to the timeline", "parameters.leave"),
    ]

    session: Session

    def __init__(self, session: Session, *, ascii_only: bool, id: str | None = None) -> None:
        super().__init__(session, ascii_only=ascii_only, id=id)
        self.fields = fields_for(session.current.simulation)
        self.field = 0
        self.top = 0
        self.complaint = ""

    def show(self, results: Run) -> None:
        assert isinstance(results, Results)
        self.fields = fields_for(results.simulation)
        self.field = min(self.field, len(self.fields) - 1)
        self.redraw()

    # -- drawing ---------------------------------------------------------------------

    def draw(self, width: int, height: int) -> list[Line]:
        if width < 100:
            rows = max(height - _EFFECT_ROWS - 1, 3)
            effect = self._effect(width - 1, compact=True)
            return [*self._form(width, rows), rule("Effect", width, self.glyphs), *effect[:_EFFECT_ROWS]]
        form = self._form(_FIELDS_WIDTH, height)
        effect = self._effect(width - _FIELDS_WIDTH - 3, compact=False)
        lines = []
        for y in range(height):
            left = fitted(form[y] if y < len(form) else [], _FIELDS_WIDTH)
            right = effect[y] if y < len(effect) else []
            lines.append([*left, (f" {self.glyphs.vertical} ", "dim"), *right])
        return lines

    def _form(self, width: int, height: int) -> list[Line]:
        session = self.session
        lines: list[Line] = []
        places = []
        group = ""
        for index, field in enumerate(self.fields):
            if field.group != group:
                group = field.group
                lines.append(rule(group, width, self.glyphs))
            places.append(len(lines))
            lines.append(self._field(field, index == self.field))
        rows = max(height - 3, 1)
        place = places[self.field]
        first = 0 if self.field == 0 else place
        self.top = max(min(self.top, first), place - rows + 1, 0)
        shown = lines[self.top : self.top + rows]
        shown += [[] for _ in range(rows - len(shown))]
        flags = " ".join(map(shlex.quote, as_flags(session.draft))) or "(as in the file)"
        return [
            *shown,
            rule("", width, self.glyphs),
            [(f" {self.fields[self.field].help}"[: width - 1], "")],
            [(f" {cells(flags)}"[: width - 1], "dim")],
        ]

    def _field(self, field: Field, focused: bool) -> Line:
        session = self.session
        now = field.text(session.draft, session.current.simulation)
        opened = session.opened.simulation
        was = field.text(opened.parameters, opened)
        changed = now != was
        value = f"< {now} >" if focused else f"  {now}"
        line: Line = [
            (
                f"{'>' if focused else ' '}{'*' if changed else ' '} {field.label:<20}",
                "accent" if focused else "",
            ),
            (f"{value:<18} ", "accent" if focused else "bright" if changed else ""),
        ]
        # Words have no unit: their old value may begin where the unit would stand.
        line += [(f"{field.unit:<9}", "dim")] if field.unit or not changed else []
        return [*line, (f"was {was}", "warn")] if changed else line

    def _effect(self, width: int, compact: bool) -> list[Line]:
        session = self.session
        was, now = session.opened.simulation, session.current.simulation
        head: Line = [("step ", ""), (duration(now.step_time_ns), "bright")]
        if session.current is not session.opened:
            head += [("   was ", "dim"), (duration(was.step_time_ns), ""), ("   ", ""),
                     *difference(was.step_time_ns, now.step_time_ns)]  # fmt: skip
        lines: list[Line] = [head, *self._state(width)]
        if compact:
            for role, words in self._accounts()[1:]:
                lines.append([(words, role)])
            return [[(" ", ""), *line] for line in lines]
        lines.append([])
        lines += [[(words, role)] for role, words in self._accounts()]
        return lines

    def _state(self, width: int) -> list[Line]:
        """What the draft is: refused and why, running, as opened, or on every screen."""
        error = self.complaint or self.session.error
        words, role = "every screen now shows this run; u takes the last change back", "dim"
        if error:
            words, role = cells(error.replace("\n", "; "), 400), "worse"
        elif self.session.running:
            words = "simulating; the picture is still the run before"
        elif self.session.current is self.session.opened:
            words = "as opened: change a value, its effect shows here and in the timeline"
        room = max(width - 1, 20)
        lines: list[Line] = [[(line, role)] for line in textwrap.wrap(words, room)]
        for found in self._new_warnings():
            lines += [[(line, "warn")] for line in textwrap.wrap(f"! {cells(found, 400)}", room)]
        return lines

    def _new_warnings(self) -> list[str]:
        """What the change makes doubtful: warnings that the run as opened did not have."""
        opened = {found.code for found in self.session.opened.simulation.diagnostics}
        return [
            found.message
            for found in self.session.current.simulation.diagnostics
            if found.severity == "warning" and found.code not in opened
        ]

    def _accounts(self) -> list[tuple[str, str]]:
        """Accounts of the first stage's first ranks, as opened and now."""
        before, after = self.session.opened, self.session.current
        old, new = before.accounts[0], after.accounts[0]
        lines = [("bright", f"{'stage 0':<16}{'opened':>9} {'now':>9} {'diff':>10}")]
        rows = [("compute", old.busy_ns, new.busy_ns)]
        rows += [
            (f"exposed {kind}", ns, new.exposed_ns()[kind])
            for kind, ns in old.exposed_ns().items()
            if ns or new.exposed_ns()[kind]
        ]
        rows += [("wait", old.wait_ns, new.wait_ns)] if old.wait_ns or new.wait_ns else []
        rows += [("bubble", old.bubble_ns, new.bubble_ns), ("idle", old.idle_ns, new.idle_ns)]
        for name, was, now in rows:
            diff = "=" if now == was else ("+" if now > was else "") + duration(now - was)
            lines.append(("", f"  {name:<14}{duration(was):>9} {duration(now):>9} {diff:>10}"))
        return lines

    # -- keys ------------------------------------------------------------------------

    def action_move(self, by: int) -> None:
        self.field = max(0, min(self.field + by, len(self.fields) - 1))
        self.complaint = ""
        self.redraw()

    async def action_leave(self) -> None:
        if self.complaint:
            self.complaint = ""
            self.redraw()
        else:
            await cast("WltuiApp", self.app).action_open("timeline")

    def action_scrub(self, direction: int, large: bool) -> None:
        field = self.fields[self.field]
        simulation = self.session.current.simulation
        self._take(lambda: field.scrubbed(self.session.draft, simulation, direction, large))

    def action_reset(self) -> None:
        field = self.fields[self.field]
        self._take(lambda: field.reset(self.session.draft, self.session.opened.simulation))

    def action_type(self) -> None:
        from tui.prompt import Prompt

        field = self.fields[self.field]
        value = field.text(self.session.draft, self.session.current.simulation)
        unit = f" [{field.unit}]" if field.unit else ""
        self.app.push_screen(Prompt(f"{field.label}{unit}", value), self._typed)

    def _typed(self, text: str | None) -> None:
        field = self.fields[self.field]
        if text is not None and text.strip() != field.text(
            self.session.draft, self.session.current.simulation
        ):
            self._take(lambda: field.typed(self.session.draft, self.session.current.simulation, text.strip()))

    def action_undo(self) -> None:
        if self.session.undo():
            self._run()

    def action_redo(self) -> None:
        if self.session.redo():
            self._run()

    def _take(self, change: Callable[[], Parameters]) -> None:
        """Make a change the draft and run it; what cannot be is said in its place."""
        try:
            parameters = change()
        except UsageError as error:
            self.complaint = str(error)
            self.redraw()
            return
        if parameters != self.session.draft:
            self.session.edit(parameters)
            self._run()

    def _run(self) -> None:
        self.complaint = ""
        cast("WltuiApp", self.app).run_draft()
