"""`wltui keys`: every action with its keys, in the form of the keymap file."""

from __future__ import annotations

import json

from tui.commands.parser import Parser

_DESCRIPTION = (
    "Print every action of the screens with its keys, as TOML. Put the lines that you want to change into "
    "wltui/keys.toml in your configuration directory ($XDG_CONFIG_HOME, else ~/.config)."
)


def build_parser() -> Parser:
    """Returns the parser of `wltui keys`."""
    return Parser(prog="wltui keys", description=_DESCRIPTION)


def main(words: list[str]) -> int:
    """Prints the keys as they are now, the user's keymap included. Exit status 0; errors raise."""
    build_parser().parse_args(words)
    from tui.app import WltuiApp
    from tui.keys import list_actions
    from tui.keys.keymap import QUIT_ID, keymap_path, read_keymap
    from tui.screens import all_bindings

    screens = all_bindings()
    everywhere = WltuiApp.BINDINGS
    path = keymap_path()
    keymap = read_keymap(path, screens, everywhere)
    print(f"# keys of wltui; yours are read from {json.dumps(path)}")
    if keymap.lost:
        print(f"# {keymap.lost}")
    tables: dict[str, list[str]] = {}
    for action in list_actions(
        [action for some in (*screens.values(), everywhere) for action in some], keymap
    ):
        if action.id == QUIT_ID:
            continue
        table, _, name = action.id.partition(".")
        keys = ", ".join(json.dumps(key, ensure_ascii=False) for key in action.keys)
        line = f"{name} = [{keys}]"
        lines = tables.setdefault(table, [])
        if not any(printed.startswith(f"{name} = ") for printed in lines):
            lines.append(f"{line:<40} # {action.words}")
    for table, lines in tables.items():
        print("", f"[{table}]", *lines, sep="\n")
    return 0
