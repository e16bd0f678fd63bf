"""The part of screen 7 in a session file: how the table is sorted and filtered, and which plane is drawn."""

from __future__ import annotations

from typing import Any

from simcore.records import NamedTuple
from tui.state.checking import check_optional, check_table, check_text, check_whole, invalid_value

_MOST_TYPED = 2000
_MOST_POINT = 2**31


class SavedSweep(NamedTuple):
    """The table, its filter and its plot."""

    key: str = ""
    """What the table is sorted by."""
    descending: bool = False
    typed: str = ""
    """The filter."""
    everything: bool = False
    plane: int = 0
    """The index of the plane."""
    point: int | None = None
    """The index of the point at the cursor, None without one."""

    def as_json(self) -> dict[str, Any]:
        """Returns the values as JSON takes them."""
        return self._asdict()

    @classmethod
    def read(cls, value: object, where: str) -> SavedSweep:
        """Returns the checked values. Raises `InvalidSession`."""
        entries = check_table(value, where)
        for name in ("descending", "everything"):
            if not isinstance(entries.get(name), bool):
                raise invalid_value(entries.get(name), f"{where}.{name}", "true or false")
        return cls(
            check_text(entries.get("key"), f"{where}.key", 100),
            entries["descending"] is True,
            check_text(entries.get("typed"), f"{where}.typed", _MOST_TYPED),
            entries["everything"] is True,
            check_whole(entries.get("plane"), f"{where}.plane", 0, 1000),
            check_optional(
                entries.get("point"), f"{where}.point", lambda item, at: check_whole(item, at, 0, _MOST_POINT)
            ),
        )
