"""Keys as people write them, and as Textual names them."""

from __future__ import annotations

from textual.keys import key_to_character

_NAMES = {
    "pagedown": "PageDown", "pageup": "PageUp", "space": "Space", "enter": "Enter", "escape": "Esc",
    "delete": "Delete", "insert": "Insert", "left": "Left", "right": "Right", "up": "Up", "down": "Down",
    "home": "Home", "end": "End", "backspace": "Backspace", "tab": "Tab",
}  # fmt: skip
_BY_NAME = {name.lower(): key for key, name in _NAMES.items()} | {key: key for key in _NAMES}
# Characters that Textual calls by a name that `key_to_character` does not know.
_CHARACTERS = {"plus": "+", "minus": "-", "slash": "/", "backslash": "\\", "at": "@", "underscore": "_"}
_MODIFIERS = ("ctrl", "shift", "alt")


def key_name(key: str) -> str:
    """A key as people write it: `ctrl+r` -> `Ctrl+R`, `full_stop` -> `.`, `f` -> `f`."""
    if len(key) == 1:
        return key
    *held, last = key.split("+")
    name = _NAMES.get(last) or _CHARACTERS.get(last) or key_to_character(last) or last
    if (held and len(name) == 1) or _is_function_key(name):
        name = name.upper()
    return "+".join([part.capitalize() for part in held] + [name])


def key_of(name: str) -> str | None:
    """The key that people write as `name`, as Textual's keymaps take it; None if there is no such key.

    `Ctrl+R` -> `ctrl+r`, `PageDown` -> `pagedown`, `.` -> `.`. Of characters only those that a
    keyboard gives as one key; with Ctrl or Alt only letters: terminals send no others apart.
    """
    if len(name) == 1:
        return name if name.isprintable() and name != " " else None
    *held, last = name.lower().split("+")
    if len(set(held)) != len(held) or not set(held) <= set(_MODIFIERS):
        return None
    if len(last) == 1:
        fits = last.isascii() and last.isalpha() and held in (["ctrl"], ["alt"])
        return f"{held[0]}+{last}" if fits else None
    found = _BY_NAME.get(last) or (last if _is_function_key(last) else None)
    return None if found is None else "+".join([*sorted(held), found])


def _is_function_key(name: str) -> bool:
    return name[:1] == "f" and name[1:].isdigit() and len(name) <= 3 and 1 <= int(name[1:]) <= 24
