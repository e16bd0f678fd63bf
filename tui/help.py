"""`?`: the keys of the screen that is open, and those that work everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from tui.frame import Line, rule
from tui.frame_view import FrameView
from tui.keys.actions import Action, Keymap, actions
from tui.modal import Modal
from tui.screen_view import ScreenView


class KeyList(FrameView):
    """The list of keys."""

    DEFAULT_CSS = "KeyList { width: 1fr; height: 1fr; }"

    def __init__(self, view: ScreenView, everywhere: Sequence[BindingType], keymap: Keymap) -> None:
        super().__init__()
        self.glyphs = view.glyphs
        self._view = view
        self._here = actions(view.BINDINGS, keymap)
        self._everywhere = actions(everywhere, keymap)
        self.top = 0

    def frame(self, width: int, height: int) -> list[Line]:
        lines = [rule(f"Keys of this screen: {self._view.id}", width, self.glyphs)]
        lines += [self._line(one) for one in self._here]
        if self._view.mouse:
            lines.append(rule("Mouse", width, self.glyphs))
            lines += [[(f"  {what:<24}", "key"), (words, "")] for what, words in self._view.mouse]
        lines.append(rule("Everywhere", width, self.glyphs))
        lines += [self._line(one) for one in self._everywhere]
        lines.append(rule("Esc closes this", width, self.glyphs))
        self.top = max(0, min(self.top, len(lines) - height))
        hidden = len(lines) - self.top - height
        if hidden > 0:
            return [*lines[self.top :][: height - 1], rule(f"{hidden + 1} more: j", width, self.glyphs)]
        return lines[self.top :]

    def _line(self, one: Action) -> Line:
        return [(f"  {'  '.join(one.keys):<24}", "key"), (one.words, "")]


class HelpScreen(Modal[None]):
    """Covers the screen with its keys; Esc, `?` or `q` go back."""

    CSS = "HelpScreen { background: $background; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,q,enter", "dismiss", "back"),
        Binding("j,down", "scroll(1)", "down"),
        Binding("k,up", "scroll(-1)", "up"),
        Binding("pagedown,space", "scroll(20)", "a page down"),
        Binding("pageup", "scroll(-20)", "a page up"),
        Binding("g,home", "scroll(-1000000)", "to the top"),
        Binding("G,end", "scroll(1000000)", "to the end"),
    ]

    def __init__(self, view: ScreenView, everywhere: Sequence[BindingType], keymap: Keymap) -> None:
        super().__init__()
        self._keys = KeyList(view, everywhere, keymap)

    def compose(self) -> ComposeResult:
        yield self._keys

    def action_scroll(self, by: int) -> None:
        self._keys.top += by
        self._keys.redraw()
