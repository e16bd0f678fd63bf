"""The user's own keys: a TOML file with a table a screen.

    [timeline]
    zoom-in = ["w", "+"]      # one key or a list of keys
    zoom-out = "Ctrl+D"

`map = "old"` before the tables begins with the keys of earlier versions (`OLD_MAP`). `wltui keys`
prints all actions with their keys in this form.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping, Sequence
from typing import Any

from textual.binding import Binding, BindingType

from simcore.diagnostics import Diagnostic, InputError, printable
from simcore.model.toml_text import TomlProblem, format_toml_value, locate_in_table, parse_toml, read_text
from tui.keys.actions import KeyAction, key_name, key_of, list_actions

# Keys by the id of an action, as Textual's `App.set_keymap` takes them. Other actions have the same key in
# both.
OLD_MAP = {
    "summary.beside": "o",
    "timeline.ranks": "r",
    "layers.column-right": "l,right,greater_than_sign",
    "layers.column-left": "h,left,less_than_sign",
    "layers.sort": "s",
    "layers.unsort": "S",
    "layers.unfold": "space",
    "why.grouping": "o",
    "why.order": "O",
    "parameters.half": "H,shift+left",
    "parameters.twice": "L,shift+right",
    "parameters.type": "enter,e,equals_sign",
    "parameters.balance": "b",
    "parameters.load": "O",
    "compare.shown": "x",
    "compare.ends": "z",
    "compare.calibrate": "c",
    "compare.other": "o",
    "compare.other-b": "O",
}


# The keys that end the program work whatever a keymap says.
QUIT_ID = "app.quit-everywhere"
# Tables, and single actions, that have another name in keymaps of earlier versions.
RENAMED = {
    "measured-summary": "summary",
    "measured-why": "why",
    "measured": "layers",
    "scales": "parameters",
    "summary.measure": "summary.beside",
}


# The name of the keys that a file begins with, and its values.
_MAP, _MAPS = "map", ("new", "old")


class UserKeys(dict[str, str]):
    """The user's keys, as `App.set_keymap` takes them."""

    lost: str = ""
    """The keys of a file of an earlier version that could not be used, in words; "" for none."""


def keymap_path(environ: Mapping[str, str] = os.environ) -> str:
    """Returns the path of the keymap: wltui/keys.toml in the user's configuration directory."""
    base = environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return os.path.join(base, "wltui", "keys.toml")


def read_keymap(
    path: str, screens: Mapping[str, Sequence[BindingType]], everywhere: Sequence[BindingType]
) -> UserKeys:
    """Returns the keymap in the file at `path`; empty if there is no such file.

    screens: bindings of each screen; everywhere: those of the app. Raises InputError, with the position, for
    what is not an action or a key, and for a key that two actions would have.
    """
    try:
        text = read_text(path, "a file of keys")
    except FileNotFoundError:
        return UserKeys()
    except TomlProblem as problem:
        raise _refusal(path, problem.message, problem.location) from None
    return _Reader(path, text, screens, everywhere).keymap()


def current_id(id: str) -> str:
    """Returns the current id of an action that had this one in an earlier version."""
    table, _, name = id.partition(".")
    return RENAMED.get(id) or f"{RENAMED.get(table, table)}.{name}"


def _refusal(path: str, message: str, position: tuple[int, int] | None = None) -> InputError:
    return InputError(Diagnostic("error", "keymap", message, path, *(position or (None, None))))


class _Reader:
    """Checks one file: each table a screen, each key of it an action, each value its keys."""

    def __init__(
        self,
        path: str,
        text: str,
        screens: Mapping[str, Sequence[BindingType]],
        everywhere: Sequence[BindingType],
    ) -> None:
        self.path = path
        self.text = text
        self.screens = screens
        self.everywhere = everywhere
        lists = [*screens.values(), everywhere]
        self.ids = [
            binding.id
            for bindings in lists
            for binding in bindings
            if isinstance(binding, Binding) and binding.id
        ]
        self.ids = [id for id in dict.fromkeys(self.ids) if id != QUIT_ID]
        # Table and name of each action as the file has them.
        self.name_in_file: dict[str, tuple[str, str]] = {}

    def keymap(self) -> UserKeys:
        user_keys, lost = UserKeys(), []
        tables = self._parse_tables()
        base = self._base_keys(tables.pop(_MAP, _MAPS[0]))
        for table, value in tables.items():
            if not isinstance(value, dict):
                raise self._build_error(
                    f"found {_quoted(table)}, expected a table of keys like [timeline]", table
                )
            for name, keys in value.items():
                full_name = f"{table}.{name}"
                id = full_name if full_name in self.ids else current_id(full_name)
                if id not in self.ids:
                    close = difflib.get_close_matches(full_name, self.ids, 1, 0.75)
                    expected = f"an action, for example {(close or self.ids)[0]} (wltui keys lists all)"
                    raise self._build_error(f"found {_quoted(full_name)}, expected {expected}", table, name)
                key_list = ",".join(self._parse_keys(table, name, keys))
                # Where a file has both the old and the current name, the current one counts, in any order.
                if id == full_name or id not in user_keys:
                    user_keys[id] = key_list
                    self.name_in_file[id] = (table, name)
        for bindings in self.screens.values():
            own = list_actions([*bindings, *self.everywhere], base)
            while clash := _find_clash(
                list_actions([*bindings, *self.everywhere], {**base, **user_keys}), user_keys, own
            ):
                first, second, key = clash
                old = next((id for id in (first, second) if self._is_old(id, user_keys)), None)
                if old is None:
                    message = (
                        f'key "{key}" of {first} is already that of {second}: give {second} another key too'
                    )
                    raise self._build_error(message, *self.name_in_file[first])
                # The earlier version could give this key to the action; now the screen needs it, and the
                # action keeps its default.
                del user_keys[old]
                full_name = ".".join(self.name_in_file[old])
                lost.append(
                    f'{full_name} = "{key_name(key)}" ({first if old == second else second} has this key now)'
                )
        if lost:
            user_keys.lost = f"not taken from {os.path.basename(self.path)}: {', '.join(lost)}"
        for id, keys in base.items():
            user_keys.setdefault(id, keys)
        return user_keys

    def _base_keys(self, map_name: object) -> dict[str, str]:
        """Returns the keys that the file begins with."""
        if map_name not in _MAPS:
            raise self._build_error(f'found {_quoted(map_name)}, expected map = "new" or map = "old"', _MAP)
        return dict(OLD_MAP) if map_name == _MAPS[1] else {}

    def _is_old(self, id: str, user_keys: Mapping[str, str]) -> bool:
        """Returns whether the file has an action by the name of an earlier version."""
        return id in user_keys and ".".join(self.name_in_file[id]) != id

    def _parse_tables(self) -> dict[str, Any]:
        try:
            return parse_toml(self.text, "keys")
        except TomlProblem as problem:
            raise _refusal(self.path, problem.message, problem.location) from None

    def _parse_keys(self, table: str, name: str, value: object) -> list[str]:
        key_names = [value] if isinstance(value, str) else value
        if (
            not isinstance(key_names, list)
            or not key_names
            or not all(isinstance(key, str) for key in key_names)
        ):
            message = f'found {_quoted(value)}, expected a key like "w" or a list of keys'
            raise self._build_error(message, table, name)
        keys = []
        for given_key in key_names:
            key = key_of(given_key)
            if key is None:
                message = f'found {_quoted(given_key)}, expected a key like "w", "Ctrl+R", "F5" or "PageDown"'
                raise self._build_error(message, table, name)
            # Textual separates keys by commas.
            keys.append("comma" if key == "," else key)
        return keys

    def _build_error(self, message: str, table: str, name: str | None = None) -> InputError:
        return _refusal(self.path, message, locate_in_table(self.text, table, name))


def _find_clash(
    key_actions: list[KeyAction], mapped: Mapping[str, str], own: list[KeyAction]
) -> tuple[str, str, str] | None:
    """Returns (action, action, key) of two of one screen that have the same key, but not without a keymap.
    The first is one of the keymap.

    own: the actions without a keymap; there a screen overrides a key of the app.
    """
    plain = {(action.id, key) for action in own for key in action.keys}
    owner: dict[str, str] = {}
    for action in key_actions:
        for key in action.keys:
            other = owner.setdefault(key, action.id)
            if other == action.id:
                continue
            mapped_id, other_id = (action.id, other) if action.id in mapped else (other, action.id)
            if mapped_id in mapped and not {(mapped_id, key), (other_id, key)} <= plain:
                return mapped_id, other_id, key
    return None


def _quoted(value: object) -> str:
    return f'"{printable(value, 40)}"' if isinstance(value, str) else printable(format_toml_value(value), 40)
