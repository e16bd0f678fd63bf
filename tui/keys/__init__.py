"""Keys: how people write them, what each does on the open screen, and the user's own keymap.

Import from here: `KeyAction`, `actions`, `key_name`, `key_of`, `read_keymap`, `keymap_path`.
"""

from tui.keys.actions import KeyAction, actions, key_name, key_of
from tui.keys.keymap import keymap_path, read_keymap

__all__ = ["KeyAction", "actions", "key_name", "key_of", "keymap_path", "read_keymap"]
