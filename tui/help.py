"""`?`: the keys of the screen that is open, and those that work everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType

from tui.frame import Line, rule
from tui.keys.actions import Action, Keymap, actions
from tui.panel import Panel
from tui.screen_view import ScreenView

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
            found = [_line(one) for one in here]
            if view.mouse:
                found.append(rule("Mouse", width, view.glyphs))
                found += [[(f"  {what:<24}", "key"), (words, "")] for what, words in view.mouse]
            found += [rule("Everywhere", width, view.glyphs), *map(_line, always)]
            found.append(rule("Where time goes", width, view.glyphs))
            return [*found, *([(f"  {what:<24}", "key"), (words, "")] for what, words in _ACCOUNTS)]

        super().__init__(f"Keys of this screen: {view.id}", lines, view.glyphs)


def _line(one: Action) -> Line:
    return [(f"  {'  '.join(one.keys):<24}", "key"), (one.words, "")]
