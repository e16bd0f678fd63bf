"""What can be done on a screen: its bindings as actions, with the keys that the user's keymap gives them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from textual.binding import Binding, BindingType

from tui.keys.names import key_name

# Binding id -> keys, comma-separated, as Textual's `App.set_keymap` takes it.
Keymap = Mapping[str, str]


class Action(NamedTuple):
    """id: names it in a keymap, `screen.action`. words: what it does. keys: as people write them.
    call: what Textual runs, `zoom(1, 2)`. screen: the screen that is opened first, none for "".
    """

    id: str
    words: str
    keys: tuple[str, ...]
    call: str
    screen: str = ""


def actions(bindings: Iterable[BindingType], keymap: Keymap, screen: str = "") -> list[Action]:
    """The actions of these bindings, in their order, with the keys that they have now.

    screen: where the bindings are those of a screen that is not open.
    """
    found = []
    for one in bindings:
        assert isinstance(one, Binding)
        if one.id is None:  # a key that is part of another action, as a digit of typing a value is
            continue
        keys = (keymap.get(one.id) or one.key).split(",")
        found.append(Action(one.id, one.description, tuple(map(key_name, keys)), one.action, screen))
    return found


def renamed(words: str, bindings: Iterable[BindingType], keymap: Keymap) -> str:
    """The keys of a hint, `w s` or `hjkl`, as the keymap has them: each one its action's first key."""
    if not keymap:
        return words
    new = {}
    for one in bindings:
        assert isinstance(one, Binding)
        if one.id is not None and one.id in keymap:
            for key in one.key.split(","):
                new[key_name(key)] = key_name(keymap[one.id].split(",")[0])
    tokens = [new.get(token) or "".join(new.get(char, char) for char in token) for token in words.split(" ")]
    return " ".join(tokens)
