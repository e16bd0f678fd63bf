"""Typing a value: a prompt that says while one types why it cannot be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simcore.diagnostics import UsageError
from tui.frame import cells

if TYPE_CHECKING:
    from tui.parameters.field import Field
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

    def _unfit(self, field: Field, text: str) -> str:
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
