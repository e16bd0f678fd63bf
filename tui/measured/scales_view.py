"""The parameters screen of a measured run: factors on what was measured, and what the replay takes then."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, cast

from textual.binding import BindingType

from simcore.diagnostics import UsageError
from simcore.replay.scales import Scales
from simcore.replay.what_if import balanced
from simcore.units import duration, number, signed
from tui.chrome import difference
from tui.frame import Line, cells, fitted, largest, rule, wrapped
from tui.measured.scale_fields import ScaleField, fields_of
from tui.measured.session import MeasuredSession
from tui.prompt import Prompt
from tui.screen_view import ScreenView, binding
from tui.session import Run

if TYPE_CHECKING:
    from tui.app import WltuiApp

_FORM = 66
_EFFECT_ROWS = 7
# From here on the form and what each rank does stand beside each other.
_WIDE = 118


class ScalesView(ScreenView):
    """A change replays the run at once; its effect stands beside it, and on every screen."""

    hints = (
        ("jk", "field"), ("Left Right", "change"), ("shift", "x2"), ("Enter", "type a factor"),
        ("b", "balance stages"), ("u", "undo"), ("2", "timeline"),
    )  # fmt: skip
    BINDINGS: ClassVar[list[BindingType]] = [
        binding("j,down", "move(1)", "next field", "scales.down"),
        binding("k,up", "move(-1)", "field above", "scales.up"),
        binding("pagedown", "move(10)", "ten fields down", "scales.page-down"),
        binding("pageup", "move(-10)", "ten fields up", "scales.page-up"),
        binding("g,home", "move(-1000000)", "first field", "scales.first"),
        binding("G,end", "move(1000000)", "last field", "scales.last"),
        binding("h,left", "scrub(-1, False)", "a tenth less", "scales.less"),
        binding("l,right,space", "scrub(1, False)", "a tenth more", "scales.more"),
        binding("H,shift+left", "scrub(-1, True)", "half", "scales.half"),
        binding("L,shift+right", "scrub(1, True)", "twice", "scales.twice"),
        binding("enter,e", "type", "type a factor", "scales.type"),
        binding("b", "balance", "all stages compute as long as they do on average", "scales.balance"),
        binding("delete,backspace", "reset", "this factor as it was when the run was opened", "scales.reset"),
        binding("u", "undo", "take back the last change", "scales.undo"),
        binding("ctrl+r", "redo", "make it again", "scales.redo"),
        binding("escape", "leave", "clear a refusal; else back to the timeline", "scales.leave"),
    ]

    session: MeasuredSession

    def __init__(self, session: MeasuredSession, *, ascii_only: bool, id: str | None = None) -> None:
        super().__init__(session, ascii_only=ascii_only, id=id)
        self.fields = fields_of(session.opened) if session.opened.measured.timed else []
        self.field = 0
        self.top = 0
        self.complaint = ""

    def show(self, results: Run) -> None:
        self.redraw()

    # -- drawing ---------------------------------------------------------------------

    def draw(self, width: int, height: int) -> list[Line]:
        if not self.fields:
            words = "This is an order of operations without times: there is nothing to scale."
            lines: list[Line] = [rule("No parameters", width, self.glyphs), []]
            return [*lines, *([(f"  {line}", "")] for line in wrapped(words, width - 4))]
        if width < _WIDE:
            below = max(_EFFECT_ROWS, height // 3)
            rows = max(height - below - 1, 3)
            effect = self._effect(width - 1, below)
            return [*self._form(width, rows), rule("Effect", width, self.glyphs), *effect]
        form, effect = self._form(_FORM, height), self._effect(width - _FORM - 3, height)
        found = []
        for y in range(height):
            left = fitted(form[y] if y < len(form) else [], _FORM)
            found.append(
                [*left, (f" {self.glyphs.vertical} ", "dim"), *(effect[y] if y < len(effect) else [])]
            )
        return found

    def _form(self, width: int, height: int) -> list[Line]:
        lines: list[Line] = []
        places, group = [], ""
        for index, field in enumerate(self.fields):
            if field.group != group:
                group = field.group
                lines.append(rule(group, width, self.glyphs))
            places.append(len(lines))
            lines.append(self._line(field, index == self.field))
        rows = max(height - 2, 1)
        place = places[self.field]
        self.top = max(min(self.top, 0 if self.field == 0 else place), place - rows + 1, 0)
        shown = lines[self.top : self.top + rows]
        shown += [[] for _ in range(rows - len(shown))]
        below = sum(place >= self.top + rows for place in places)
        words = f"{below} more below" if below else ""
        said = f" {self.fields[self.field].help}"[: width - 1]
        return [*shown, rule(words, width, self.glyphs), [(said, "")]]

    def _line(self, field: ScaleField, focused: bool) -> Line:
        session = self.session
        now, was = field.take(session.draft), field.take(session.opened.scales or Scales())
        value = f"< {_factor(now)} >" if focused else f"  {_factor(now)}"
        head = f"{'>' if focused else ' '}{'*' if now != was else ' '} {field.label:<31}"
        line: Line = [
            (head, "accent" if focused else ""),
            (f"{value:<12}", "accent" if focused else "bright" if now != was else ""),
        ]
        return [*line, (f"was {_factor(was)}", "warn")] if now != was else line

    def _effect(self, width: int, rows: int) -> list[Line]:
        """The step now and as opened, what the draft is, and when each rank ends."""
        session = self.session
        was, now = session.opened, session.current
        head: Line = [("step ", ""), (duration(now.step_time_ns), "bright")]
        if now is not was:
            head += [("   was ", "dim"), (duration(was.step_time_ns), ""), ("   ", ""),
                     *difference(was.step_time_ns, now.step_time_ns)]  # fmt: skip
        lines: list[Line] = [head, *self._state(width)]
        lines.append([(f"{'rank':>6}{'end, opened':>13}{'end, now':>11}{'difference':>12}", "dim")])
        # Where there is no room for all, those whose end moves most, of equal ones those that end last.
        ends = [(one.last_ns, other.last_ns) for one, other in zip(was.run.ranks, now.run.ranks, strict=True)]
        shown = largest([(abs(new - old), new) for old, new in ends], rows - len(lines))
        for place in shown:
            old, new = ends[place]
            words = f"{was.run.ranks[place].number:>6}{duration(old):>13}{duration(new):>11}"
            lines.append([(words, ""), (f"{'=' if new == old else signed(new - old):>12}", "")])
        if len(shown) < len(ends):
            lines[-1] = [*lines[-1], (f"   {len(ends) - len(shown)} more", "dim")]
        return [[(" ", ""), *line] for line in lines[:rows]]

    def _state(self, width: int) -> list[Line]:
        session = self.session
        error = self.complaint or session.error
        words, role = "every screen now shows this replay; u takes the last change back", "dim"
        if error:
            words, role = cells(error, 400), "worse"
        elif session.running:
            words = "replaying; the picture is still the run before"
        elif session.current is session.opened:
            words = "as opened: change a factor, its effect shows here and in the timeline"
        return [[(line, role)] for line in textwrap.wrap(words, max(width - 1, 20))]

    # -- keys ------------------------------------------------------------------------

    @property
    def _app(self) -> WltuiApp:
        return cast("WltuiApp", self.app)

    def action_move(self, by: int) -> None:
        self.field = max(0, min(self.field + by, len(self.fields) - 1))
        self.complaint = ""
        self.redraw()

    async def action_leave(self) -> None:
        if self.complaint:
            self.complaint = ""
            self.redraw()
        else:
            await self._app.action_open("timeline")

    def action_scrub(self, direction: int, large: bool) -> None:
        self._take(lambda field: field.scrubbed(self.session.draft, direction, large))

    def action_reset(self) -> None:
        opened = self.session.opened.scales or Scales()
        self._take(lambda field: field.put(self.session.draft, field.take(opened)))

    def action_balance(self) -> None:
        self._take(lambda _: balanced(self.session.opened.with_scales(self.session.draft)))

    def action_type(self) -> None:
        if self.fields:
            field = self.fields[self.field]
            prompt = Prompt(f"{field.label} times", _factor(field.take(self.session.draft)))
            self.app.push_screen(prompt, self._typed)

    def _typed(self, text: str | None) -> None:
        if text is not None:
            self._take(lambda field: field.typed(self.session.draft, text.strip()))

    def action_undo(self) -> None:
        if self.session.undo():
            self._run()

    def action_redo(self) -> None:
        if self.session.redo():
            self._run()

    def _take(self, change: Callable[[ScaleField], Scales]) -> None:
        """Make a change the draft and replay it; what cannot be is said in its place."""
        if not self.fields:
            return
        try:
            scales = change(self.fields[self.field])
        except UsageError as error:
            self.complaint = str(error)
            self.redraw()
            return
        if scales != self.session.draft:
            self.session.edit(scales)
            self._run()

    def _run(self) -> None:
        self.complaint = ""
        self._app.runs.run_draft()


def _factor(value: float) -> str:
    return number(round(value, 4))
