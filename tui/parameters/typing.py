"""Typing a value: a prompt that says while one types why it cannot be; the keys that the last row names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simcore.diagnostics import UsageError
from tui.frame import cells

if TYPE_CHECKING:
    from tui.parameters.fields import FormField
    from tui.parameters.view import ParametersView


class TypedValue:
    """The prompt for the value at the cursor of a form."""

    def __init__(self, view: ParametersView) -> None:
        self._view = view

    def ask(self, value: str) -> None:
        """Ask for the value; what is typed replaces the one that there is."""
        from tui.prompt import LivePrompt

        field = self._view.at
        question = f"{field.label} [{field.unit}]" if field.unit else field.label
        # A list is long: it keeps a good part of the line.
        room = max(self._view.size.width - len(question) - 40, 24) if field.form else 80

        def changed(text: str) -> None:
            prompt.say(cells(self._unfit(field, text.strip()), room))

        prompt = LivePrompt(question, value, changed)
        self._view.app.push_screen(prompt, self._taken)

    def _unfit(self, field: FormField, text: str) -> str:
        """Why a text is no value of the field; nothing if it is."""
        try:
            field.typed(self._view.session.draft, self._view.follow(), text)
        except UsageError as error:
            return str(error).rpartition(": ")[2]
        return ""

    def _taken(self, text: str | None) -> None:
        view = self._view
        field = view.at
        if text is not None:
            typed, basis = text.strip(), view.follow()
            view.refusal.clear()
            if typed != field.text(view.session.draft, basis):
                view.change(field, lambda: field.typed(view.session.draft, basis, typed))
        view.redraw()


_HINTS = (
    ("hl", "change"), ("Enter", "type"), ("u", "undo"), ("r", "keep"), ("jk", "field"), ("Tab", "group"),
    ("HL", "half, twice"), ("S", "save"), ("O", "load"), ("Delete", "as opened"), ("2", "timeline"),
)  # fmt: skip
# A list is typed whole.
_LIST_HINTS = (("Enter", "type the list"), *(hint for hint in _HINTS if hint[0] not in ("hl", "Enter", "HL")))
_RUNNING_HINTS = (("Esc", "stop the run"), *_HINTS)


def hints_of(running: bool, is_list: bool = False) -> tuple[tuple[str, str], ...]:
    """running: whether the draft is simulated; is_list: whether the cursor is on a list."""
    if running:
        return _RUNNING_HINTS
    return _LIST_HINTS if is_list else _HINTS


_SCALES = {"layer": "layer scale", "compute": "compute scale", "stream": "comm scale"}


def label_of(knob: str) -> str:
    """The label of the field that comes next to a knob; empty where there is none.

    `dimension 1 bandwidth` has one of its own; a layer, a kind of compute and a stream are part of what
    a field scales.
    """
    kind, _, rest = knob.partition(" ")
    if kind == "dimension":
        return "dim {}  {}".format(*rest.split(" ", 1))
    return _SCALES.get(kind, "")
