"""The actions of a screen in groups, as the help lists them: the eight to begin with, then by purpose."""

from __future__ import annotations

from collections.abc import Sequence

from tui.keys.actions import KeyAction

FIRST = "The keys to begin with"
# By screen the names of its first eight actions, or as many as it has.
_FIRST = {
    "summary": ("next-panel", "down", "right", "go", "try", "beside"),
    "timeline": ("zoom-in", "zoom-out", "pan-left", "pan-right", "fold", "details", "search", "cause"),
    "layers": ("down", "column-right", "sort", "search", "filter", "unfold", "go", "leave"),
    "why": ("next-panel", "down", "go", "try", "grouping", "order", "leave"),
    "parameters": ("less", "more", "type", "undo", "keep", "down", "next-group", "save"),
    "compare": ("zoom-in", "zoom-out", "down", "shown", "ends", "next-moved", "panel", "go"),
    "sweep": ("go", "try", "mark", "shown", "sort", "filter", "type", "leave"),
    "notes": ("down", "up", "line", "filter", "leave"),
}
# By title the names of the actions; what is in none of them comes last.
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
        "shown", "other", "other-b",
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


def grouped(screen: str, found: Sequence[KeyAction]) -> list[tuple[str, list[KeyAction]]]:
    """(title, actions) of each group of a screen's actions that has any; every action is in one of them."""
    first = [one for name in _FIRST.get(screen, ()) for one in found if _name(one) == name]
    left = [one for one in found if one not in first]
    groups = [(FIRST, first)]
    for title, names in _GROUPS.items():
        groups.append((title, [one for one in left if _name(one) in names]))
    known = {name for names in _GROUPS.values() for name in names}
    groups.append((_REST, [one for one in left if _name(one) not in known]))
    return [(title, members) for title, members in groups if members]


def _name(one: KeyAction) -> str:
    return one.id.partition(".")[2]
