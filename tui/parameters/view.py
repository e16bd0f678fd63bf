"""Screen 5: the form on the left, the effect of the draft on the right; typed values, and parameters as
files.

While one types, the prompt says why a value is refused; the last row names the keys. The draft is saved for
`--params`, and such a file loaded as a draft.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, cast

from textual.binding import BindingType
from textual.events import Click

from simcore.diagnostics import InputError, UsageError
from simcore.parameters import Parameters
from simcore.records import asdict
from simcore.shell_words import quote_word
from simcore.trace.findings import drop_overlap_variants
from tui.change_words import LESS_TIME
from tui.exporting import FileQuestion
from tui.frame import Line, cells, rule, scrolled, wrapped
from tui.frame_view import ScreenView, binding
from tui.panels import box, join_panels
from tui.parameters.changes import ChangeTimes, StepTimeCache, list_changes
from tui.parameters.effect import state_lines
from tui.parameters.fields import FROM_USER, FormField, Values
from tui.parameters.form import DraftForm, Refusal, form_lines, help_lines, is_reason
from tui.session import Run, Session
from tui.summary.panels import change_line

if TYPE_CHECKING:
    from simcore.trace.findings import WhatIf
    from tui.runs.runs import Runs, RunsHost


ON_EVERY_SCREEN = "every screen shows this run; u here takes the last change back"
AS_OPENED = "the run as opened: change a value to see its effect here and on all screens"
STILL_SHOWING = "still showing the previous run"
SAME_AS_FILE = "the parameters are those of the file already"
UNCHANGED = "is as opened already"
BALANCED = "all stages compute equally long already"
NOTHING_TO_UNDO, NOTHING_TO_REDO = "nothing to undo: no change was made", "no change was taken back"


class TypedValue:
    """The prompt for the value at the cursor of a form."""

    def __init__(self, view: ParametersView) -> None:
        self._view = view

    def ask(self, value: str) -> None:
        """Asks for the value; what is typed replaces the current one."""
        from tui.prompt import LivePrompt

        field = self._view.form.current_field
        question = f"{field.label} [{field.unit}]" if field.unit else field.label
        # A list is long: it keeps a good part of the line.
        room = max(self._view.size.width - len(question) - 40, 24) if field.form else 80

        def changed(text: str) -> None:
            prompt.show_answer(cells(self._refusal_reason(field, text.strip()), room))

        prompt = LivePrompt(question, value, changed)
        self._view.app.push_screen(prompt, self._accept)

    def _refusal_reason(self, field: FormField, text: str) -> str:
        """Returns why a text is no value of the field; "" if it is one."""
        try:
            field.parse_text(self._view.form.follow(), text)
        except (UsageError, InputError) as error:
            return str(error).rpartition(": ")[2]
        return ""

    def _accept(self, text: str | None) -> None:
        view = self._view
        field = view.form.current_field
        if text is not None:
            typed, context = text.strip(), view.form.follow()
            view.refusal.clear()
            if typed != field.text(context):
                view.change(field, lambda: field.parse_text(context, typed))
        view.redraw()


_HINTS = (
    ("hl", "change"), ("Enter", "type"), ("u", "undo"), ("r", "keep"), ("jk", "field"), ("Tab", "group"),
    ("< >", "half, twice"), ("S", "save"), ("Ctrl+O", "load"), ("Delete", "as opened"), ("2", "timeline"),
)  # fmt: skip
# Keys that do nothing on a list, which can only be typed.
_NOT_OF_LISTS = ("hl", "Enter", "< >")
_LIST_HINTS = (("Enter", "type the list"), *(hint for hint in _HINTS if hint[0] not in _NOT_OF_LISTS))
_RUNNING_HINTS = (("Esc", "stop the run"), *_HINTS)


def hints_of(running: bool, is_list: bool = False) -> tuple[tuple[str, str], ...]:
    """Returns the hints. running: whether the draft is simulated; is_list: whether the cursor is on
    a list.
    """
    if running:
        return _RUNNING_HINTS
    return _LIST_HINTS if is_list else _HINTS


_HEAD = "# Parameters of wltui: wltui FILE --params THIS_FILE\n"
_FIRST_NAME = "parameters.toml"


class SavedParameters:
    """The prompts of saving and loading. The path that was used last is offered again."""

    def __init__(self, view: ParametersView) -> None:
        self._view = view
        self._path = _FIRST_NAME

    @property
    def _app(self) -> RunsHost:
        return cast("RunsHost", self._view.app)

    def save(self) -> None:
        """Asks where to, and before a file is overwritten."""
        FileQuestion(self._app, self._write, self._view.show_file_reason).ask(
            "save the parameters as", self._path
        )

    def _write(self, path: str, force: bool) -> str:
        from simcore.parameter_values.parameters_file import toml_of
        from simcore.render.export.saving import save

        text = _HEAD + toml_of(self._view.session.draft.explicit_values())
        save(path, [text.encode()], force)
        self._path = path
        refused = cells(self._view.session.error.replace("\n", "; "), 200)
        more = f" as shown, which cannot be simulated: {refused}" if refused else ""
        return f"saved: {cells(path, 200)}{more}"

    def load(self) -> None:
        """Asks which file, and makes it the draft."""
        from tui.prompt import Prompt

        self._app.push_screen(Prompt("load parameters from", self._path), self._load_typed)

    def _load_typed(self, typed: str | None) -> None:
        from simcore.parameter_values.parameters_file import read_parameters

        if not typed or not typed.strip():
            return
        path = os.path.expanduser(typed.strip())

        def read() -> Values:
            # What the file does not name has its default, as with --params alone.
            values = asdict(Parameters(**read_parameters(path)))
            self._path = path
            if values == asdict(self._view.session.draft):
                self._app.say(SAME_AS_FILE)
            return values

        self._view.take(read)


# From this width on form and effect stand side by side.
_WIDE = 118
# The least rows below the effect for advice.
_ADVICE_ROWS = 6
_FORM_WIDTH = 68
_EFFECT_ROWS, _MOST_EFFECT_ROWS = 7, 9
# On a screen with fewer rows than the first: the step, and what it is of.
_TALL, _FEW_EFFECT_ROWS = 17, 3
_NOTHING = "An order of operations without times has nothing to scale."


class ParametersView(ScreenView):
    """Every parameter; a change runs at once in a worker and its effect stands next to it."""

    hints = hints_of(running=False)
    mouse = (("click", "the cursor to the field"),)
    BINDINGS: ClassVar[list[BindingType]] = [
        binding("j,down", "move(1)", "next field", "parameters.down"),
        binding("k,up", "move(-1)", "field above", "parameters.up"),
        binding("pagedown", "move(10)", "ten fields on", "parameters.page-down"),
        binding("pageup", "move(-10)", "ten fields back", "parameters.page-up"),
        binding("tab", "group(1)", "next group", "parameters.next-group"),
        binding("shift+tab", "group(-1)", "group before", "parameters.previous-group"),
        binding("g,home", "move(-1000)", "first field", "parameters.first"),
        binding("G,end", "move(1000)", "last field", "parameters.last"),
        binding("h,left", "scrub(-1, False)", "left: less, or the choice before", "parameters.less"),
        binding("l,right", "scrub(1, False)", "right: more, or the next choice", "parameters.more"),
        binding("space", "choose", "the next choice; of a number nothing", "parameters.choose"),
        binding("less_than_sign,shift+left", "scrub(-1, True)", "half", "parameters.half"),
        binding("greater_than_sign,shift+right", "scrub(1, True)", "twice", "parameters.twice"),
        binding("enter,equals_sign", "type", "type a value", "parameters.type"),
        binding(
            "delete,backspace", "reset", "this field as it was when the file was opened", "parameters.reset"
        ),
        binding("slash", "app.commands", "find a field by its words", "parameters.search"),
        binding("r", "app.keep", "keep this run, to come back to and to compare", "parameters.keep"),
        binding("tilde", "balance", "all stages compute as long as they do on average", "parameters.balance"),
        binding("u", "undo", "take back the last change", "parameters.undo"),
        binding("ctrl+r", "redo", "make it again", "parameters.redo"),
        binding("S", "save", "save the parameters as a file, for --params", "parameters.save"),
        binding("ctrl+o", "load", "load parameters from a file", "parameters.load"),
        binding(
            "escape", "leave", "stop a run; clear a refusal; else back to the timeline", "parameters.leave"
        ),
    ]

    def __init__(self, session: Session, *, ascii_only: bool, id: str | None = None) -> None:
        super().__init__(session, ascii_only=ascii_only, id=id)
        self.form = DraftForm(session)
        self.top = 0
        self.refusal = Refusal(session)
        self._step_times = StepTimeCache()
        self._label = session.opened.setup.label
        # For each row of the screen the index of the field on it, -1 for none.
        self._field_on_row: list[int] = []
        self._side_refusal = ""
        self._saved = SavedParameters(self)
        self._typed = TypedValue(self)
        # The run that was last shown here: when another screen has changed it, the cursor goes to the change.
        self._last_run = session.current
        self.form.go_to_difference(session.current, (session.opened,))

    @property
    def _app(self) -> RunsHost:
        return cast("RunsHost", self.app)

    @property
    def _runs(self) -> Runs:
        return self._app.runs

    @property
    def _is_empty(self) -> bool:
        """Whether there is nothing to change, as in an order without times; it says so."""
        if not self.form.fields:
            self._app.say(_NOTHING)
        return not self.form.fields

    def show(self, results: Run) -> None:
        if results.setup.label != self._label:
            # The step times were those of another run of the directory.
            self._label, self._step_times = results.setup.label, StepTimeCache()
        self._step_times.remember(results)
        self.refusal.clear()
        if not self.display:
            self.form.go_to_difference(results, (self._last_run, self.session.opened))
        self._last_run = results
        self.redraw()

    def go_to_knob(self, knob: WhatIf) -> None:
        """Moves the cursor to the field of a change of the what-if table."""
        if knob.parameters is not None:
            self.go_to_change(knob)

    def go_to_field(self, label: str, value: str | None = None) -> None:
        """Moves the cursor to the field of a label; value: which it is to have."""
        if not self.form.go_to_label(label):
            return
        if value is None:
            self.redraw()
        else:
            field, context = self.form.current_field, self.form.follow()
            self.change(field, lambda: field.parse_text(context, value))

    def go_to_change(self, knob: WhatIf) -> None:
        """Moves the cursor to the first field in which a change differs from what is edited."""
        if self.form.go_to_change(knob):
            self.redraw()

    # -- drawing ---------------------------------------------------------------------

    def frame(self, width: int, height: int) -> list[Line]:
        session, glyphs = self.session, self.glyphs
        self.form.follow()
        if not self.form.fields:
            message_lines = wrapped(_NOTHING, width - 4)
            return [
                rule("No parameters", width, glyphs),
                [],
                *([(f"  {line}", "")] for line in message_lines),
            ]
        changes, progress = self._change_times()
        if width < _WIDE:
            # The step, what it is, each change under its heading, and the account that changes most.
            needed = 2 + len(self._new_warnings()) + 1 + len(changes) + 2
            below = max(_EFFECT_ROWS, height // 3, min(needed, _MOST_EFFECT_ROWS) if changes else 0)
            if height < _TALL:
                # Fields come before what the other screens show, too.
                below = _FEW_EFFECT_ROWS
            rows = max(height - below - 1, 3)
            form = self._form(width, rows, 0)
            # It says what the form has no room for.
            state, size = self._state(width - 2), (width - 2, below)
            effect = self.form.source.compact(session.opened, session.current, state, changes, progress, size)
            effect = [[(" ", ""), *line] for line in effect[:below]]
            return [*form, rule("Effect", width, glyphs), *effect]
        room = width - _FORM_WIDTH - 3
        form = self._form(_FORM_WIDTH - 2, height - 2, 1)
        effect = self.form.source.effect(
            session.opened, session.current, self._state(room), changes, progress, (room, height - 2), glyphs
        )
        effect += self._advice(room, height - 2 - len(effect))
        effect = [[(" ", ""), *line] for line in effect]
        form_rows = self.form.rows(_FORM_WIDTH)
        count = sum(bool(row.was) for row in form_rows)
        given_count = sum(row.origin == FROM_USER and not row.was for row in form_rows)
        counts_text = f"{count} changed" + (f", {given_count} given" if given_count else "")
        return join_panels(
            box("Parameters", counts_text, form, _FORM_WIDTH, height, glyphs, True),
            box("Effect", self._running_text(), effect, width - _FORM_WIDTH, height, glyphs),
        )

    def _advice(self, width: int, rows: int) -> list[Line]:
        """Returns what would help most, in rows that the effect leaves free, if another screen has computed
        it.
        """
        run = self.session.current
        knobs = drop_overlap_variants(self._runs.known_what_if(run))[: rows - 2] if self.is_attached else []
        if rows < _ADVICE_ROWS or not knobs:
            return []
        title: Line = [("what would help most, % of step", "bright")]
        size = max(width - 22, 14)
        base = run.figures.what_if_base_ns
        changes = [knob for knob in knobs if knob.list == "change"]
        lines = [change_line(knob, run.network.dims, base, size, False) for knob in changes]
        things = knobs[len(changes) : rows - 3]
        if things:
            lines.append([(f" {LESS_TIME} on", "dim")])
            lines += [
                change_line(knob, run.network.dims, base, size, False, with_time=False) for knob in things
            ]
        return [[], title, *lines]

    def _running_text(self) -> str:
        return self.session.doing if self.session.running else "live"

    def _form(self, width: int, height: int, above: int) -> list[Line]:
        """Returns the form. above: rows over the form, for the mouse."""
        fields = self.form.rows(width)
        rows_of = zip(self.form.fields, fields, strict=True)
        refused = self.refusal.find_field_index(
            self.form.fields, {field.label: row.value for field, row in rows_of if row.was}
        )
        lines, at_lines = form_lines(
            fields, self.form.cursor, refused, self.refusal.words, width, self.glyphs
        )
        rows = max(height - 3, 1)
        first, last = at_lines
        # The title of the first group is visible with its first field.
        first = 0 if first == 1 and last < rows else first
        self.top = scrolled(self.top, len(lines), rows, first, last)
        visible = lines[self.top : self.top + rows]
        # The reason stands under its field; where that is out of view, next to the form.
        where = f"{fields[refused].label}: " if refused >= 0 else ""
        is_reason_visible = refused >= 0 and sum(map(is_reason, visible)) == sum(map(is_reason, lines))
        self._side_refusal = (
            f"{where}{self.refusal.words}" if self.refusal.words and not is_reason_visible else ""
        )
        self._field_on_row = [-1] * above + [self.form.index_on(line) for line in visible]
        visible += [[] for _ in range(rows - len(visible))]
        flags = " ".join(map(quote_word, self.session.draft.as_flags())) or "(as in the file)"
        hidden = len(lines) - self.top - rows
        title = f"{hidden} more below" if hidden > 0 else ""
        return [*visible, rule(title, width, self.glyphs),
                *help_lines(self.form.current_field.help, flags, width)]  # fmt: skip

    def _state(self, width: int) -> list[Line]:
        """Returns what the draft is: refused, running, as opened, or on every screen."""
        session = self.session
        state = ON_EVERY_SCREEN
        refusal = self.refusal.file or self._side_refusal
        if self.refusal.words:
            state = f"invalid value: {STILL_SHOWING}"
        elif session.running:
            seconds = self._runs.seconds
            state = f"{session.doing}; {STILL_SHOWING}"
            state = f"{session.doing} for {seconds:.1f} s, Esc stops it" if seconds else state
        elif session.current is session.opened:
            state = AS_OPENED
        return state_lines(refusal, state, self._new_warnings(), width)

    def _new_warnings(self) -> list[str]:
        """Returns the warnings of the change: those that the run as opened did not have."""
        opened = {diagnostic.code for diagnostic in self.session.opened.diagnostics}
        return [
            diagnostic.message
            for diagnostic in self.session.current.diagnostics
            if diagnostic.severity == "warning" and diagnostic.code not in opened
        ]

    def _change_times(self) -> tuple[list[ChangeTimes], str]:
        """Returns for two or more changes the step times of each, or how far computing them is."""
        session, now = self.session, self.session.current
        bases = self.form.source.make_context(session.opened), self.form.source.make_context(now)
        changes = list_changes(self.form.fields, *bases)
        if len(changes) < 2 or not self.is_attached:
            return [], ""
        if session.running:
            return [], "after the run"
        background = self._app.change_times
        times = background.request(
            now,
            lambda progress, cancelled: self._step_times.find_times(changes, now, progress, cancelled),
        )
        return (times, "") if times is not None else ([], background.progress)

    def redraw(self) -> None:
        """Draws again, and says which keys do something now."""
        self.form.follow()
        super().redraw()
        is_list = bool(self.form.fields and self.form.current_field.form)
        self.show_hints(hints_of(self.session.running, is_list))

    # -- keys ------------------------------------------------------------------------

    def action_move(self, by: int) -> None:
        if not self._is_empty:
            self.form.move(by)
            self._redraw_moved()

    def action_group(self, by: int) -> None:
        if not self._is_empty:
            self.form.move_group(by)
            self._redraw_moved()

    def _redraw_moved(self) -> None:
        self.refusal.clear()
        self.redraw()

    def on_click(self, event: Click) -> None:
        """Moves the cursor to a field."""
        field_index = self._field_on_row[event.y] if event.y < len(self._field_on_row) else -1
        if field_index >= 0 and (event.x < _FORM_WIDTH or self.size.width < _WIDE):
            self.action_move(field_index - self.form.cursor)

    async def action_leave(self) -> None:
        if self.session.running:
            self._runs.cancel()
        elif self.refusal.value or self.refusal.file:
            self.refusal.clear()
            self.redraw()
        else:
            await self._app.action_open("timeline")

    def action_scrub(self, direction: int, large: bool) -> None:
        if self._is_empty:
            return
        field, context = self.form.current_field, self.form.follow()
        if field.form:
            self._app.say(f"Enter types it: {field.form}; several with spaces")
            return
        self.change(field, lambda: field.scrubbed(context, direction, large))

    def action_choose(self) -> None:
        """Takes the next choice of a field; a number is never changed by a key that scrolls elsewhere."""
        if self._is_empty:
            return
        if self.form.current_field.is_choice:
            self.action_scrub(1, False)
        else:
            self._app.say("h l change a number, < > half and twice, Enter types it; / finds a field")

    def action_reset(self) -> None:
        if self._is_empty:
            return
        field, before, context = self.form.current_field, self.session.draft, self.form.follow()
        self.change(field, lambda: field.reset(context, self.form.source.make_context(self.session.opened)))
        if self.session.draft is before and not self.refusal.words:
            self._app.say(f"{field.label} {UNCHANGED}")

    def action_type(self) -> None:
        if self._is_empty:
            return
        self._typed.ask(self.form.current_field.text(self.form.follow()))

    def action_balance(self) -> None:
        """Makes the stages of a trace compute equally long."""
        if self._is_empty:
            return
        draft = self.session.draft
        try:
            draft_setup = self.session.opened.setup.with_parameters(draft)
            changed = self.form.source.balance_stages(self.session.opened, draft_setup)
        except UsageError as error:
            self._app.say(str(error))
            return
        self.refusal.touched = None
        self.take(lambda: changed)
        if self.session.draft == draft:
            self._app.say(BALANCED)

    def action_undo(self) -> None:
        if self.session.undo():
            self.refusal.touched = None
            self._run()
        else:
            self.refusal.clear()
            self.redraw()
            self._app.say(NOTHING_TO_UNDO)

    def action_redo(self) -> None:
        if self.session.redo():
            self.refusal.touched = None
            self._run()
        else:
            self._app.say(NOTHING_TO_REDO)

    def action_save(self) -> None:
        self._saved.save()

    def action_load(self) -> None:
        # The refusal is no longer of a field: it stands next to the form from now on.
        self.refusal.touched = None
        self.redraw()
        self._saved.load()

    def change(self, field: FormField, change: Callable[[], Values]) -> None:
        """Makes a change of a field, and runs it."""
        self.refusal.touched = field.label
        self.take(lambda: self.form.changed_values(field, change))

    def take(self, change: Callable[[], Values]) -> None:
        """Makes a change the draft and runs it; a refusal stands at its field.

        If the draft cannot be run, the next change starts from it: scrubbing can pass through invalid values.
        """
        self.refusal.clear()
        try:
            draft = self.form.draft_with(change())
        except UsageError as error:
            self.refusal.set_value_reason(str(error))
        except InputError as error:
            self.refusal.set_file_reason(str(error))
        else:
            if draft.parameters != self.session.draft:
                self.session.edit(draft)
                self._run()
        self.redraw()

    def show_file_reason(self, reason: str) -> None:
        """Shows why a file could not be saved."""
        self.refusal.set_file_reason(reason)
        self.redraw()

    def _run(self) -> None:
        self.refusal.clear()
        self._runs.run_draft()
        self.redraw()
