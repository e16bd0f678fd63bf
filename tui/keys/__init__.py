"""Keys: how people write them, what each does on the open screen, and the user's own keymap.

Import from here: `KeyAction`, `actions`, `key_name`, `key_of`, `read_keymap`, `keymap_path`.
"""

from tui.keys.actions import KeyAction, key_name, key_of, list_actions
from tui.keys.keymap import keymap_path, read_keymap

__all__ = ["KeyAction", "key_name", "key_of", "keymap_path", "list_actions", "read_keymap"]
