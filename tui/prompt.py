"""A line at the bottom of the screen in which a value is typed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.events import Event, Key
from textual.screen import ScreenResultType
from textual.widgets import Input, Label

from tui.frame import end_cut
from tui.panel import Modal

# The most per cent of a prompt's row for a question, and for an answer; the typed text has the rest.
_QUESTION_PERCENT, _ANSWER_PERCENT = 50, 70
# The least cells for the typed text.
_LEAST_TYPED = 12


class PromptInput(Input):
    """The input. It remembers which keys it was given, so that none is lost or handled twice."""

    def __init__(self, value: str, *, select_on_focus: bool = True) -> None:
        # The value may be a name of a session file: control characters are not offered.
        value = "".join(char for char in value if char.isprintable())
        super().__init__(value, select_on_focus=select_on_focus)
        self.received_keys: deque[Key] = deque(maxlen=100)

    async def _on_key(self, event: Key) -> None:
        self.received_keys.append(event)
        # At once: Textual takes letters here, but lets keys that edit (Backspace, Enter) or choose go up to
        # the app first, where the letters of the same read overtake them.
        for where in (self, self.screen):
            for binding in where._bindings.key_to_bindings.get(event.key, ()):
                if await self.app.run_action(binding.action, where):
                    event.stop()
                    event.prevent_default()
                    return
        await super()._on_key(event)


class FieldScreen(Modal[ScreenResultType]):
    """A screen over the others with one field that all keys are for."""

    def __init__(self, field: PromptInput) -> None:
        super().__init__()
        self._field = field

    def on_mount(self) -> None:
        self._field.cursor_blink = False

    def _forward_event(self, event: Event) -> None:
        # While nothing has the focus keys come here: on their way through, later ones would overtake them.
        if isinstance(event, Key) and self.focused is None:
            self._field._forward_event(event)
        else:
            super()._forward_event(event)

    def typed_ahead(self, event: Key) -> bool:
        """Takes a key that was typed before the field was there; returns False if the field was given it
        already.

        Such a key went to what had the focus then, and comes here after it has passed all of that.
        """
        if any(event is key for key in self._field.received_keys):
            if self.focused is None:
                # So early that nothing has the focus yet: Enter still means this field.
                self.set_focus(self._field)
            return False
        # A new event: the old one is stopped now for its other receivers.
        self._field._forward_event(Key(event.key, event.character))
        return True


class Prompt(FieldScreen["str | None"]):
    """Asks for one value: Enter takes it, Esc leaves it as it was."""

    CSS = """
    Prompt { align: left bottom; background: transparent; }
    Prompt Vertical { height: auto; dock: bottom; background: $background; }
    Prompt Horizontal { height: 1; }
    Prompt Label { width: auto; padding: 0 1; text-style: bold; }
    Prompt #form { width: 100%; text-style: none; }
    Prompt Input { width: 1fr; height: 1; border: none; padding: 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "leave it")]

    def __init__(self, question: str, value: str, *, form: str = "") -> None:
        """Makes the prompt. value: what is typed replaces it. form: how a value is written, in rows of its
        own above.
        """
        super().__init__(PromptInput(value))
        self._question, self._form = question, form

    def compose(self) -> ComposeResult:
        with Vertical():
            if self._form:
                yield Label(self._form, id="form", markup=False)
            with Horizontal():
                yield from self._row()

    def _row(self) -> ComposeResult:
        yield Label(end_cut(self._question, self._cells(_QUESTION_PERCENT)), markup=False)
        yield self._field

    def _cells(self, percent: int) -> int:
        """Returns the cells of this share of the row, without those around a label."""
        return self.app.size.width * percent // 100 - 2

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value)


class LivePrompt(Prompt):
    """A prompt that answers while one types: `changed` gets every text, `show_answer` shows an answer."""

    # CSS rules of a screen hold only for its own name.
    CSS = f"""
    {Prompt.CSS.replace("Prompt ", "LivePrompt ")}
    LivePrompt #said {{ width: auto; text-style: none; }}
    """

    def __init__(self, question: str, value: str, changed: Callable[[str], None]) -> None:
        super().__init__(question, value)
        self._changed = changed
        self._answer_label = Label("", id="said", markup=False)

    def _row(self) -> ComposeResult:
        yield from super()._row()
        yield self._answer_label

    def show_answer(self, words: str) -> None:
        """Shows words behind the text, as many as there is room for."""
        question_cells = min(len(self._question), self._cells(_QUESTION_PERCENT))
        room = min(self._cells(_ANSWER_PERCENT), self._cells(100) - question_cells - 2 - _LEAST_TYPED)
        self._answer_label.update(end_cut(words, room))

    def on_input_changed(self, event: Input.Changed) -> None:
        self._changed(event.value)
