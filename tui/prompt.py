"""A line at the bottom of the screen in which a value is typed."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.screen import ModalScreen
from textual.widgets import Input, Label


class Prompt(ModalScreen["str | None"]):
    """Asks for one value: Enter takes it, Esc leaves it as it was."""

    CSS = """
    Prompt { align: left bottom; background: transparent; }
    Prompt Horizontal { height: 1; dock: bottom; background: $background; }
    Prompt Label { width: auto; padding: 0 1; text-style: bold; }
    Prompt Input { width: 1fr; height: 1; border: none; padding: 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "leave it")]

    def __init__(self, question: str, value: str) -> None:
        super().__init__()
        self._question = question
        self._value = value

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield Label(self._question, markup=False)
            yield Input(self._value, select_on_focus=True)

    def on_mount(self) -> None:
        self.query_one(Input).cursor_blink = False

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value)
