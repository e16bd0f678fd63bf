"""`?`: the keys of the screen that is open, and those that work everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType

from tui.frame import Line, rule, wrapped
from tui.frame_view import ScreenView
from tui.keys.actions import KeyAction, Keymap, actions
from tui.panel import Panel

# Where the words begin, behind the keys.
_WORDS_AT = 26
# What the accounts of a rank's time mean: docs/semantics.md has the rules.
_ACCOUNTS = (
    ("compute", "forward, backward (input, weight gradients), optimizer"),
    ("exposed", "communication for which compute stands still"),
    ("wait", "for the last member of a collective"),
    ("bubble", "for what a neighbouring stage has not sent yet"),
    ("idle", "done, until the step ends; host gaps when measured"),
)


class HelpScreen(Panel):
    """Covers the screen with its keys; Esc, Enter, `?` or `q` go back."""

    # A screen's rules hold for its own name alone.
    CSS = "HelpScreen { background: $background; }"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("question_mark", "dismiss(None)", "back")]

    def __init__(self, view: ScreenView, everywhere: Sequence[BindingType], keymap: Keymap) -> None:
        here, always = actions(view.BINDINGS, keymap), actions(everywhere, keymap)

        def lines(width: int) -> list[Line]:
            found = [line for one in here for line in _line(one, width)]
            if view.mouse:
                found.append(rule("Mouse", width, view.glyphs))
                found += [line for one in view.mouse for line in _explained(*one, width)]
            found.append(rule("Everywhere", width, view.glyphs))
            found += [line for one in always for line in _line(one, width)]
            found.append(rule("Where time goes", width, view.glyphs))
            return [*found, *(line for one in _ACCOUNTS for line in _explained(*one, width))]

        super().__init__(f"Keys of this screen: {view.id}", lines, view.glyphs)


def _line(one: KeyAction, width: int) -> list[Line]:
    return _explained("  ".join(one.keys), one.words, width)


def _explained(what: str, words: str, width: int) -> list[Line]:
    """What it is, and in words as many lines as they need."""
    first, *more = wrapped(words, width - _WORDS_AT)
    rest: list[Line] = [[(" " * _WORDS_AT, ""), (line, "")] for line in more]
    return [[(f"  {what:<{_WORDS_AT - 2}}", "key"), (first, "")], *rest]
