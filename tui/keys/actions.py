"""The actions of a screen: its bindings, with the keys that the user's keymap gives them.

Keys are named as people write them, and as Textual does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from textual.binding import Binding, BindingType
from textual.keys import key_to_character

from simcore.records import NamedTuple
from simcore.units import is_whole

_NAMES = {
    "pagedown": "PageDown", "pageup": "PageUp", "space": "Space", "enter": "Enter", "escape": "Esc",
    "delete": "Delete", "insert": "Insert", "left": "Left", "right": "Right", "up": "Up", "down": "Down",
    "home": "Home", "end": "End", "backspace": "Backspace", "tab": "Tab",
}  # fmt: skip
_BY_NAME = {name.lower(): key for key, name in _NAMES.items()} | {key: key for key in _NAMES}
# Characters that Textual has a name for which `key_to_character` does not know.
_CHARACTERS = {"plus": "+", "minus": "-", "slash": "/", "backslash": "\\", "at": "@", "underscore": "_"}
_MODIFIERS = ("ctrl", "shift", "alt")


def key_name(key: str) -> str:
    """Returns a key as people write it: `ctrl+r` -> `Ctrl+R`, `full_stop` -> `.`, `f` -> `f`."""
    if len(key) == 1:
        return key
    *modifiers, last = key.split("+")
    name = _NAMES.get(last) or _CHARACTERS.get(last) or key_to_character(last) or last
    if (modifiers and len(name) == 1) or _is_function_key(name):
        name = name.upper()
    return "+".join([part.capitalize() for part in modifiers] + [name])


def key_of(name: str) -> str | None:
    """Returns the key that people write as `name`, as Textual's keymaps take it; None if there is no such
    key.

    `Ctrl+R` -> `ctrl+r`, `PageDown` -> `pagedown`, `.` -> `.`. Of characters only those that a keyboard gives
    as one key; with Ctrl or Alt only letters: terminals cannot send others distinctly.
    """
    if len(name) == 1:
        return name if name.isprintable() and name != " " else None
    *modifiers, last = name.lower().split("+")
    if len(set(modifiers)) != len(modifiers) or not set(modifiers) <= set(_MODIFIERS):
        return None
    if len(last) == 1:
        fits = last.isascii() and last.isalpha() and modifiers in (["ctrl"], ["alt"])
        return f"{modifiers[0]}+{last}" if fits else None
    base_key = _BY_NAME.get(last) or (last if _is_function_key(last) else None)
    return None if base_key is None else "+".join([*sorted(modifiers), base_key])


def _is_function_key(name: str) -> bool:
    return name[:1] == "f" and is_whole(name[1:], 2) and 1 <= int(name[1:]) <= 24


# Binding id -> keys, comma-separated, as Textual's `App.set_keymap` takes it.
Keymap = Mapping[str, str]


class KeyAction(NamedTuple):
    """An action of a screen."""

    id: str
    """Its name in a keymap, `screen.action`."""
    words: str
    """What it does."""
    keys: tuple[str, ...]
    """As people write them."""
    call: str
    """What Textual runs, `zoom(1, 2)`."""
    screen: str = ""
    """The screen that is opened first, none for ""."""
    act: Callable[[], Any] | None = None
    """What is called instead of `call`, for what is no action of a screen (`tui/search_index.py`)."""


def list_actions(bindings: Iterable[BindingType], keymap: Keymap, screen: str = "") -> list[KeyAction]:
    """Returns the actions of these bindings, in their order, with the keys that they have now.

    screen: where the bindings are those of a screen that is not open.
    """
    key_actions = []
    for binding in bindings:
        assert isinstance(binding, Binding)
        if binding.id is None:  # a key that is part of another action, as a digit of typing a value is
            continue
        keys = (keymap.get(binding.id) or binding.key).split(",")
        key_actions.append(
            KeyAction(binding.id, binding.description, tuple(map(key_name, keys)), binding.action, screen)
        )
    return key_actions


def rename_hint_keys(words: str, bindings: Iterable[BindingType], keymap: Keymap) -> str:
    """Returns the keys of a hint, `w s` or `hjkl`, as the keymap has them: for each one its action's first
    key.
    """
    new = {}
    for binding in bindings:
        assert isinstance(binding, Binding)
        if binding.id is not None and binding.id in keymap:
            for key in binding.key.split(","):
                new[key_name(key)] = key_name(keymap[binding.id].split(",")[0])
    tokens = [new.get(token) or "".join(new.get(char, char) for char in token) for token in words.split(" ")]
    return " ".join(tokens)
