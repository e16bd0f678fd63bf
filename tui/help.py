"""`?`: the keys of the screen that is open, in their groups, and those that work everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType

from tui.frame import Line, fitted, rule, wrapped
from tui.frame_view import ScreenView
from tui.keys.actions import KeyAction, Keymap, list_actions
from tui.panel import Panel

FIRST = "The keys to begin with"
# By screen the names of its first actions, at most eight.
_FIRST = {
    "summary": ("next-panel", "down", "right", "go", "try", "beside", "words"),
    "timeline": ("zoom-in", "zoom-out", "pan-left", "pan-right", "fold", "details", "search", "cause"),
    "layers": ("down", "column-right", "sort", "search", "filter", "unfold", "go", "leave"),
    "why": ("next-panel", "down", "go", "try", "grouping", "order", "leave"),
    "parameters": ("less", "more", "type", "undo", "keep", "down", "next-group", "save"),
    "compare": ("zoom-in", "zoom-out", "down", "shown", "ends", "next-moved", "panel", "go"),
    "sweep": ("go", "try", "mark", "shown", "sort", "filter", "type", "leave"),
    "steps": ("down", "go", "shown", "slowest", "mark", "sort", "filter", "leave"),
    "links": ("next-panel", "down", "right", "go", "try", "next-change", "shown", "leave"),
    "notes": ("down", "up", "line", "filter", "leave"),
}
# By title the names of the actions; those in no group come last.
_GROUPS = {
    "Move": (
        "down", "up", "left", "right", "page-down", "page-up", "first", "last", "cursor-left", "cursor-right",
        "lane-down", "lane-up", "lanes-down", "lanes-up", "first-lane", "last-lane", "start", "end",
        "next-panel", "previous-panel", "panel", "next-group", "previous-group", "column-left",
        "column-right",
    ),
    "Zoom and pan": (
        "zoom-in", "zoom-out", "pan-left", "pan-right", "page-left", "page-right", "focus", "all", "back",
        "forward", "ends",
    ),
    "Lanes": (
        "fold", "ranks", "unfold-all", "fold-all", "pin", "hide", "show-hidden", "order", "only-lanes",
        "shown", "other", "other-b", "as-a", "as-b",
    ),
    "Find and mark": (
        "search", "next-match", "previous-match", "filter", "range", "take-range", "mark", "marks",
        "next-moved", "previous-moved",
    ),
    "Causes": (
        "cause", "effect", "next-critical", "previous-critical", "path", "longest-wait", "longest-of-all",
        "next-span", "previous-span", "next-pass", "previous-pass", "details",
    ),
    "Values": (
        "less", "more", "half", "twice", "type", "reset", "undo", "redo", "balance", "save", "load", "keep",
    ),
}  # fmt: skip
_REST = "More"


def group_actions(screen: str, key_actions: Sequence[KeyAction]) -> list[tuple[str, list[KeyAction]]]:
    """Returns (title, actions) of each group of a screen's actions that has any; every action is in one of
    them.
    """
    first = [action for name in _FIRST.get(screen, ()) for action in key_actions if _name(action) == name]
    left = [action for action in key_actions if action not in first]
    groups = [(FIRST, first)]
    for title, names in _GROUPS.items():
        groups.append((title, [action for action in left if _name(action) in names]))
    grouped_names = {name for names in _GROUPS.values() for name in names}
    groups.append((_REST, [action for action in left if _name(action) not in grouped_names]))
    return [(title, members) for title, members in groups if members]


def _name(action: KeyAction) -> str:
    return action.id.partition(".")[2]


# The column where the words begin, behind the keys; and the cells from which on there are two columns.
_WORDS_AT = 22
_TWO_COLUMNS = 140
# The accounts of a rank's time: docs/semantics.md has the rules.
_ACCOUNTS = (
    ("compute", "forward, backward (input, weight gradients), optimizer"),
    ("exposed", "communication for which compute stands still"),
    ("wait", "for the last member of a collective"),
    ("bubble", "for what a neighbouring stage has not sent yet"),
    ("idle", "done, until the step ends; host gaps when measured"),
)
_Block = list[tuple[str, str]]


class HelpScreen(Panel):
    """Covers the screen with its keys; Esc, Enter, `?` or `q` go back."""

    # CSS rules of a screen hold only for its own name.
    CSS = "HelpScreen { background: $background; }"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("question_mark", "dismiss(None)", "back")]

    def __init__(self, view: ScreenView, everywhere: Sequence[BindingType], keymap: Keymap) -> None:
        here, always = list_actions(view.BINDINGS, keymap), list_actions(everywhere, keymap)
        blocks: list[tuple[str, _Block]] = [
            (title, list(map(_pair, members))) for title, members in group_actions(view.id or "", here)
        ]
        if view.mouse:
            blocks.append(("Mouse", list(view.mouse)))
        # The keys from screen to screen come behind the first keys of this one.
        index = 1 if blocks and blocks[0][0] == FIRST else 0
        blocks.insert(index, ("Everywhere", list(map(_pair, always))))
        blocks.append(("Where time goes", list(_ACCOUNTS)))

        def lines(width: int) -> list[Line]:
            columns = 2 if width >= _TWO_COLUMNS else 1
            cells = (width - columns + 1) // columns
            rendered = [
                [
                    *([] if title == FIRST else [rule(title, cells, view.glyphs)]),
                    *(line for what, words in block for line in _explained(what, words, cells)),
                ]
                for title, block in blocks
            ]
            return _in_columns(rendered, columns, cells)

        super().__init__(f"Keys of this screen: {view.id}", lines, view.glyphs)


def _in_columns(blocks: list[list[Line]], columns: int, cells: int) -> list[Line]:
    """Returns blocks of lines one below the other, in one column or in two of which the left is no
    shorter.
    """
    if columns == 1:
        return [line for block in blocks for line in block]
    total, left = sum(map(len, blocks)), 0
    first: list[Line] = []
    while left < len(blocks) and 2 * len(first) < total:
        first += blocks[left]
        left += 1
    second = [line for block in blocks[left:] for line in block]
    count = max(len(first), len(second))
    blank: Line = []
    first += [blank] * (count - len(first))
    second += [blank] * (count - len(second))
    return [[*fitted(line, cells), (" ", ""), *other] for line, other in zip(first, second, strict=True)]


def _pair(action: KeyAction) -> tuple[str, str]:
    return "  ".join(action.keys), action.words


def _explained(what: str, words: str, width: int) -> list[Line]:
    """Returns a key, and its words in as many lines as they need."""
    first, *more = wrapped(words, width - _WORDS_AT)
    rest: list[Line] = [[(" " * _WORDS_AT, ""), (line, "")] for line in more]
    return [[(f"  {what:<{_WORDS_AT - 2}}", "key"), (first, "")], *rest]
