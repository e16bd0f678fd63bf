"""The form: the fields of the draft with the cursor, why a value of them is refused, and both as lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from simcore.diagnostics import UsageError
from simcore.records import replace
from tui.frame import Glyphs, Line, cells, middle_cut, rule, wrapped
from tui.parameters.fields import FormField, Values
from tui.parameters.source import FormSource, WorkloadForm
from tui.session import Run, Session

if TYPE_CHECKING:
    from simcore.parameters import RunInput
    from simcore.trace.findings import WhatIf


def form_source(run: Run) -> FormSource:
    """Returns the form of what is open."""
    if run.shape.simulated is not None:
        return WorkloadForm()
    if not run.figures.has_step:
        from tui.parameters.dump_form import DumpForm

        return DumpForm()
    if run.recording is None:
        from tui.parameters.execution_form import ExecutionForm

        return ExecutionForm()
    from tui.parameters.trace_form import TraceForm

    return TraceForm()


@dataclass(frozen=True, slots=True)
class FormRow:
    """A field as it is shown."""

    group: str
    label: str
    value: str
    unit: str
    was: str
    """The value when the file was opened, empty if it is unchanged."""
    origin: str
    """Where an unchanged value comes from."""
    form: str = ""
    """How one types it, for a list."""


class DraftForm:
    """The fields of the draft, and the cursor among them: `cursor` is the index of its field."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.source = form_source(session.opened)
        # The draft without its run: a key must not wait for that.
        self._context: Any = self.source.make_context(session.current)
        self.fields = self.source.fields(self._context)
        self.cursor = 0

    @property
    def current_field(self) -> FormField:
        """The field of the cursor."""
        return self.fields[self.cursor]

    def follow(self) -> Any:
        """Returns the context of the draft. The fields become the draft's, and the cursor stays on its field
        when others come or go.
        """
        draft, now = self._session.draft, self.source.make_context(self._session.current)
        if draft == now.setup.parameters:
            context = now
        elif self._context.setup.parameters is draft:
            context = self._context
        else:
            context = self.source.make_draft_context(now.setup.with_parameters(draft), now)
        if context is not self._context:
            self._context = context
            earlier_field = self.fields[self.cursor] if self.fields else None
            with suppress(UsageError):
                self.fields = self.source.fields(context)
            self.cursor = self._index_of(earlier_field)
        return context

    def changed_values(self, field: FormField, change: Callable[[], Values]) -> Values:
        """Returns what a change of a field makes of the parameters; back at its opened value it is as it was
        given then, or not given. Raises as `change` does.
        """
        source, context = self.source, self.follow()
        values, opened = change(), source.make_context(self._session.opened)
        now = source.make_draft_context(context.setup.with_changes(**values), context)
        as_opened = values | field.reset(now, opened)
        back = source.make_draft_context(context.setup.with_changes(**as_opened), context)
        return as_opened if field.text(now) == field.text(opened) == field.text(back) else values

    def draft_with(self, values: Values) -> RunInput:
        """Returns the draft with other values, and the file as it was opened. Raises `UsageError`, and
        `InputError` where a file is named that cannot be read.
        """
        return self._session.opened.setup.with_parameters(replace(self._session.draft, **values))

    def _index_of(self, field: FormField | None) -> int:
        """Returns the index of a field now, or of the one with its label; operations may have the
        same label.
        """
        if field in self.fields:
            return self.fields.index(field)
        labels = [form_field.label for form_field in self.fields]
        if field is not None and field.label in labels:
            return labels.index(field.label)
        return max(min(self.cursor, len(labels) - 1), 0)

    def move(self, by: int) -> None:
        """Moves the cursor by as many fields, up to the first or last."""
        self.cursor = max(0, min(self.cursor + by, len(self.fields) - 1))

    def move_group(self, by: int) -> None:
        """Moves to the first field of the next group, or of this one or the one before, wrapping around."""
        groups = [field.group for field in self.fields]
        starts = [n for n, group in enumerate(groups) if n == 0 or group != groups[n - 1]]
        if by > 0:
            self.cursor = next((start for start in starts if start > self.cursor), 0)
        else:
            self.cursor = next((start for start in reversed(starts) if start < self.cursor), starts[-1])

    def go_to_label(self, label: str) -> bool:
        """Moves to the field of a label; returns whether there is one."""
        self.follow()
        index = next((n for n, field in enumerate(self.fields) if field.label == label), None)
        if index is not None:
            self.cursor = index
        return index is not None

    def go_to_change(self, knob: WhatIf) -> bool:
        """Moves to the first field in which a change differs from the draft; returns whether there is one."""
        context = self.follow()
        changed_context = self.source.make_draft_context(
            context.setup.with_parameters(knob.parameters), context
        )
        for index, field in enumerate(self.fields):
            if field.text(changed_context) != field.text(context):
                self.cursor = index
                return True
        return False

    def go_to_difference(self, run: Run, others: Sequence[Run]) -> None:
        """Moves to the first field in which a run differs from the first of the others that it differs from;
        the cursor stays where it differs from none. Others with another label are other runs of a directory.
        """
        self.follow()
        now = self.source.make_context(run)
        for other in others:
            if other.setup.label != run.setup.label:
                continue
            before = self.source.make_context(other)
            changed = [index for index, field in enumerate(self.fields) if field.differs(before, now)]
            if changed:
                self.cursor = changed[0]
                return

    def rows(self, width: int) -> list[FormRow]:
        """Returns the fields as they are shown. width: of the titles of their groups, cells."""
        context, opened = self.follow(), self.source.make_context(self._session.opened)
        rows = []
        titles: dict[str, str] = {}
        for field in self.fields:
            value, was = field.displayed_value(context), field.displayed_value(opened)
            group = titles.setdefault(field.group, self.source.title(field.group, context, width))
            implied = field.implied(context)
            # 2 micro-batches that were counted become 2 given ones when another change leaves none to count.
            origin = implied or field.origin(context if was == value else opened)
            was = was if was != value and not implied else ""
            rows.append(FormRow(group, _short_label(field), value, field.unit, was, origin, field.form))
        return rows

    def index_on(self, line: Line) -> int:
        """Returns the index of the field that a line of the form shows; -1 for another line."""
        label = line[0][0][3:].rstrip() if line else ""
        return next((n for n, field in enumerate(self.fields) if label and _short_label(field) == label), -1)


def _short_label(field: FormField) -> str:
    """Returns the label in its column: names of operations may be longer."""
    return middle_cut(field.label, 20)


def form_lines(
    rows: Sequence[FormRow], at: int, refused: int, refusal: str, width: int, glyphs: Glyphs
) -> tuple[list[Line], tuple[int, int]]:
    """Returns (a line a field under the titles of the groups, first and last line of the field at the
    cursor).

    refusal: why the value of the field `refused` (-1: of none) is not valid; it stands under the field.
    """
    lines: list[Line] = []
    at_lines = (0, 0)
    group = ""
    for index, row in enumerate(rows):
        if row.group != group:
            group = row.group
            lines.append(rule(group, width, glyphs))
        first = len(lines)
        lines.append(_row(row, index == at, index == refused, width))
        if index == refused:
            lines += [[("      ", ""), (line, "worse")] for line in wrapped(refusal, width - 8)]
        if index == at:
            at_lines = (first, len(lines) - 1)
    return lines, at_lines


def is_reason(line: Line) -> bool:
    """Returns whether a line of the form says why a value is refused."""
    return bool(line) and line[-1][1] == "worse"


def _row(row: FormRow, at: bool, refused: bool, width: int) -> Line:
    mark = "!" if refused else "*" if row.was else " "
    role = "accent" if at else ""
    # Both in full where there is room; of two long lists each has half of it.
    room = max(width - 28, 20)
    was = cells(f"was {row.was}", min(room - 14, room - min(len(row.value), room // 2))) if row.was else ""
    value = cells(row.value, room - len(was))
    value = f"< {value} >" if at else f"  {value}"
    line: Line = [
        (f"{'>' if at else ' '}{mark} {row.label:<20}", role),
        (f"{value:<18} ", role or ("bright" if row.was else "")),
    ]
    if at and not was and row.form:
        # The form of a list, as much as there is room for; the help of the field has all of it.
        room = width - 24 - max(len(value), 18)
        form = next((form for form in (row.form, row.form.partition(",")[0]) if len(form) <= room), "")
        return [*line, (form, "dim")]
    # Words have no unit: their old value may begin where the unit would stand.
    if row.unit or not row.was:
        gap = " " if row.unit else ""
        line.append((f"{row.unit + gap:<{max(27 - max(len(value), 18), 0)}}", "dim"))
    return [*line, (was, "warn") if was else (row.origin, "dim")]


def help_lines(help_text: str, flags: str, width: int) -> list[Line]:
    """Returns what the field means, and the flags of the draft."""
    return [[(f" {cells(help_text, width - 2)}", "")], [(f" {cells(flags, width - 2)}", "dim")]]


_LONGEST_REFUSAL = 400
_NAME_IN_WORDS = re.compile(r"[a-z-]+")
# Labels of fields whose names in refusals are others.
_LABEL_OF_NAME = {"micro-batches": "microbatches", "ranks": "world"}


class Refusal:
    """Why the last value, the draft or a file is refused.

    `touched` is the label of the field that was changed last; None when a file or a key changed several. The
    refusal of a value ends when the draft changes: the new draft is simulated, and the session says whether
    that is possible.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._value = self._file = ""
        self._draft = session.draft
        self.touched: str | None = None

    def clear(self) -> None:
        """Clears the refusal; a draft that cannot be simulated still has one."""
        self._value = self._file = ""

    def set_value_reason(self, reason: str) -> None:
        """Sets why the last value is not valid for its field."""
        self._value, self._draft = reason, self._session.draft

    def set_file_reason(self, reason: str) -> None:
        """Sets why a file could not be read or written."""
        self._file = reason

    @property
    def value(self) -> str:
        """Why the last value is not valid for its field."""
        return self._value if self._draft is self._session.draft else ""

    @property
    def words(self) -> str:
        """Why the last value or the draft is refused, in one line; empty when it is not."""
        return cells((self.value or self._session.error).replace("\n", "; "), _LONGEST_REFUSAL)

    def find_field_index(self, fields: Sequence[FormField], changed: Mapping[str, str]) -> int:
        """Returns the field whose value is refused: -1 for none, or for a refusal that belongs to no field.

        changed: label and value of the fields that are not as opened. A refusal that names a flag or a file
        belongs to the field that has it, even if another was touched since; one that names several degrees,
        to the field that was touched, or changed.
        """
        words = self.words
        if not words or self.touched is None:
            return -1
        matches = [index for index, field in enumerate(fields) if field.is_named_by(words)]
        if not matches:
            named_labels = {_LABEL_OF_NAME.get(word, word) for word in _NAME_IN_WORDS.findall(words)}
            matches = [
                index
                for index, field in enumerate(fields)
                if (field.label in named_labels and field.label in (self.touched, *changed))
                or _is_of_file(words, changed.get(field.label, ""))
            ]
        labels = [field.label for field in fields]
        touched = labels.index(self.touched) if self.touched in labels else -1
        return touched if touched in matches or not matches else matches[-1]

    @property
    def file(self) -> str:
        """Why a file could not be read or written."""
        return cells(self._file, _LONGEST_REFUSAL)


def _is_of_file(refusal: str, value: str) -> bool:
    """Returns whether a refusal is of a file that a value names, alone or behind a model: `busbw:FILE`."""
    return any(name and refusal.startswith(f"{name}:") for name in (value, value.partition(":")[2]))
