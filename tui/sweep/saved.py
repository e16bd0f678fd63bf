"""The part of screen 7 in a session file: how the table is sorted and filtered, and which plane is drawn."""

from __future__ import annotations

from typing import Any

from simcore.records import NamedTuple
from tui.state.checking import optional, table, text, whole, wrong

_MOST_TYPED = 2000
_MOST_POINT = 2**31


class SavedSweep(NamedTuple):
    """key, descending, typed, everything: of the table. plane: its place. point: number of the point at the
    cursor, None without one.
    """

    key: str = ""
    descending: bool = False
    typed: str = ""
    everything: bool = False
    plane: int = 0
    point: int | None = None

    def as_json(self) -> dict[str, Any]:
        """As JSON takes it."""
        return self._asdict()

    @classmethod
    def read(cls, value: object, where: str) -> SavedSweep:
        """Checked. Raises `Damaged`."""
        entries = table(value, where)
        for name in ("descending", "everything"):
            if not isinstance(entries.get(name), bool):
                raise wrong(entries.get(name), f"{where}.{name}", "true or false")
        return cls(
            text(entries.get("key"), f"{where}.key", 100),
            entries["descending"] is True,
            text(entries.get("typed"), f"{where}.typed", _MOST_TYPED),
            entries["everything"] is True,
            whole(entries.get("plane"), f"{where}.plane", 0, 1000),
            optional(
                entries.get("point"), f"{where}.point", lambda number, at: whole(number, at, 0, _MOST_POINT)
            ),
        )
