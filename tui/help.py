"""`?`: the keys of the screen that is open, and those that work everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

from tui.frame import Line, rule
from tui.frame_view import FrameView
from tui.screen_view import ScreenView

_NAMES = {
    "full_stop": ".", "comma": ",", "plus": "+", "equals_sign": "=", "minus": "-", "question_mark": "?",
    "exclamation_mark": "!", "pagedown": "PageDown", "pageup": "PageUp", "space": "Space", "enter": "Enter",
    "escape": "Esc", "delete": "Delete", "left": "Left", "right": "Right", "up": "Up", "down": "Down",
    "circumflex_accent": "^", "dollar_sign": "$", "home": "Home", "end": "End", "backspace": "Backspace",
    "slash": "/", "backslash": "\\", "apostrophe": "'", "left_curly_bracket": "{", "right_curly_bracket": "}",
}  # fmt: skip


def key_name(key: str) -> str:
    """A key as people write it: `ctrl+r` -> `Ctrl+R`, `full_stop` -> `.`."""
    *held, last = key.split("+") if key != "+" else [key]
    name = _NAMES.get(last, last.upper() if held and len(last) == 1 else last)
    return "+".join([part.capitalize() for part in held] + [name])


class KeyList(FrameView):
    """The list of keys."""

    DEFAULT_CSS = "KeyList { width: 1fr; height: 1fr; }"

    def __init__(self, view: ScreenView, everywhere: Sequence[BindingType]) -> None:
        super().__init__()
        self.glyphs = view.glyphs
        self._view = view
        self._everywhere = everywhere
        self.top = 0

    def frame(self, width: int, height: int) -> list[Line]:
        lines = [rule(f"Keys of this screen: {self._view.id}", width, self.glyphs)]
        lines += [self._line(one) for one in self._view.BINDINGS if isinstance(one, Binding)]
        lines.append(rule("Everywhere", width, self.glyphs))
        lines += [self._line(one) for one in self._everywhere if isinstance(one, Binding)]
        lines.append(rule("Esc closes this", width, self.glyphs))
        self.top = max(0, min(self.top, len(lines) - height))
        hidden = len(lines) - self.top - height
        if hidden > 0:
            return [*lines[self.top :][: height - 1], rule(f"{hidden + 1} more: j", width, self.glyphs)]
        return lines[self.top :]

    def _line(self, one: Binding) -> Line:
        keys = "  ".join(key_name(key) for key in one.key.split(","))
        return [(f"  {keys:<24}", "key"), (one.description, "")]


class HelpScreen(ModalScreen[None]):
    """Covers the screen with its keys; Esc, `?` or `q` go back."""

    CSS = "HelpScreen { background: $background; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,q,enter", "dismiss", "back"),
        Binding("j,down", "scroll(1)", "down"),
        Binding("k,up", "scroll(-1)", "up"),
    ]

    def __init__(self, view: ScreenView, everywhere: Sequence[BindingType]) -> None:
        super().__init__()
        self._keys = KeyList(view, everywhere)

    def compose(self) -> ComposeResult:
        yield self._keys

    def action_scroll(self, by: int) -> None:
        self._keys.top += by
        self._keys.redraw()
