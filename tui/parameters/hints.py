"""What the last row says of the form's keys: on 80 columns those that one needs first."""

from __future__ import annotations

_HINTS = (
    ("hl", "change"), ("Enter", "type"), ("u", "undo"), ("r", "keep"), ("jk", "field"), ("Tab", "group"),
    ("HL", "half, twice"), ("S", "save"), ("O", "load"), ("Delete", "as opened"), ("2", "timeline"),
)  # fmt: skip
# A list is typed whole.
_LIST_HINTS = (("Enter", "type the list"), *(hint for hint in _HINTS if hint[0] not in ("hl", "Enter", "HL")))
_RUNNING_HINTS = (("Esc", "stop the run"), *_HINTS)


def hints_of(running: bool, is_list: bool = False) -> tuple[tuple[str, str], ...]:
    """running: whether the draft is simulated; is_list: whether the cursor is on a list."""
    if running:
        return _RUNNING_HINTS
    return _LIST_HINTS if is_list else _HINTS
