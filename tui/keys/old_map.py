"""The keys as they were before each letter had one meaning on all screens: `map = "old"` in keys.toml."""

from __future__ import annotations

# By the id of an action, as Textual's `App.set_keymap` takes it. What is not here has the same key in both.
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
