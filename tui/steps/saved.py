"""The part of screen 8 in a session file: the measure of the heat, the order of the table and its filter."""

from __future__ import annotations

from typing import Any

from simcore.records import NamedTuple
from tui.state.checking import check_optional, check_table, check_text, check_whole, invalid_value

_MOST_TYPED = 2000


class SavedSteps(NamedTuple):
    """The measure, the table and its filter."""

    measure: str
    """What the heat shows, of MEASURES."""
    key: str = ""
    """What the table is sorted by."""
    descending: bool = False
    typed: str = ""
    """The filter."""
    step: int | None = None
    """The step at the cursor, None without one."""

    def as_json(self) -> dict[str, Any]:
        """Returns the values as JSON takes them."""
        return self._asdict()

    @classmethod
    def read(cls, value: object, where: str) -> SavedSteps:
        """Returns the checked values. Raises `InvalidSession`."""
        # Imported here: every session is read by this, and few have steps.
        from simcore.replay.step_table import MEASURES

        entries = check_table(value, where)
        measure = check_text(entries.get("measure"), f"{where}.measure", 100)
        if measure not in MEASURES:
            raise invalid_value(measure, f"{where}.measure", f"one of {', '.join(MEASURES)}")
        if not isinstance(entries.get("descending"), bool):
            raise invalid_value(entries.get("descending"), f"{where}.descending", "true or false")
        return cls(
            measure,
            check_text(entries.get("key"), f"{where}.key", 100),
            entries["descending"] is True,
            check_text(entries.get("typed"), f"{where}.typed", _MOST_TYPED),
            check_optional(entries.get("step"), f"{where}.step", check_whole),
        )
