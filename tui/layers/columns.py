"""The columns of screen 3 as it shows them: which fit, and how their values are written.

The columns themselves, and the values of their lines, are declared in `simcore/trace/layers.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from simcore.records import NamedTuple
from simcore.trace.layers import LAST, Column, Lines, Unit, columns_of
from simcore.units import percent
from tui.frame import cells, name_cut
from tui.listing import ListColumn

# Headings are abbreviated on narrower screens.
SPELLED_FROM = 100


def format_figure(value: float, size: int) -> str:
    """Returns a figure with three decimals, with fewer where `size` cells have no room for them."""
    for decimals in (3, 2, 1):
        text = f"{value:.{decimals}f}"
        if len(text) <= size:
            return text
    text = f"{value:.0f}"
    return text if len(text) <= size else f"{value:.0e}"


class _Form(NamedTuple):
    """How values of a unit are written."""

    cells: int
    """The least cells."""
    write: Callable[[Any, int, int], str]
    """Returns the text of (value, step ns, cells)."""
    none: str = "-"
    """The text of a missing value."""


_SHORT = {"communication": "comm."}
_FORMS: dict[Unit, _Form] = {
    "ns": _Form(8, lambda ns, _, size: format_figure(ns / 1e6, size)),
    "slack": _Form(8, lambda ns, _, size: format_figure(ns / 1e6, size)),
    "share": _Form(6, lambda ns, step_ns, _: percent(ns, step_ns)),
    "count": _Form(5, lambda count, *_: str(count) if count < 100_000 else f"{count // 1000}k"),
    "rank": _Form(5, lambda rank, *_: str(rank)),
    "rows": _Form(5, lambda rows, *_: f"x{rows}" if rows < 10_000 else f"x{rows // 1000}k"),
    "times": _Form(7, lambda times, *_: f"x{format_figure(times, 4)}"),
    "bytes": _Form(9, lambda size, _, room: format_figure(size / 1e6, room), ""),
    "rate": _Form(5, lambda rate, _, size: format_figure(rate, size) if rate else "", ""),
    "text": _Form(0, lambda text, *_: _SHORT.get(text, text)),
    "raw": _Form(0, lambda text, _, size: cells(text, size)),
}


class ShownColumns(NamedTuple):
    """The columns of a table."""

    lines: Lines
    """What its lines are."""
    always: int
    """How many columns from the front every screen has."""
    heading: str
    """The heading of the name."""
    name_cells: tuple[int, int, int]
    """The cells of the name: at least, at least on the narrowest screens, and at most."""
    ends: bool = False
    """Whether names differ at their ends."""
    without: frozenset[str] = frozenset()
    """Columns that say nothing of its run."""
    headings: Mapping[str, str] = {}
    """By key, the headings of columns that have another one here."""
    sizes: Mapping[str, int] = {}
    """By key, the cells of columns that need more."""
    of_several: bool = True
    """Whether its figures are of several ranks together."""

    @property
    def columns(self) -> list[Column]:
        """The columns in their order."""
        return [column for column in columns_of(self.lines) if column.key not in self.without]

    def title(self, column: Column) -> str:
        """Returns the heading of a column."""
        if column.key == "name":
            return self.heading
        unit = " ms" if column.unit in ("ns", "slack") else ""
        return self.headings.get(column.key) or column.on[self.lines].heading or f"{column.heading}{unit}"

    @property
    def sorted_by(self) -> dict[str, tuple[str, bool]]:
        """What each heading sorts by, and whether the largest comes first."""
        return {
            self.title(column): (column.key, column.largest_first)
            for column in self.columns
            if column.largest_first is not None
        }

    def _figures_of(self, column: Column) -> str:
        return column.on[self.lines].of if self.of_several else ""

    def _short_heading(self, column: Column) -> str:
        return "" if column.on[self.lines].heading else column.short

    def _size(self, column: Column, is_short: bool) -> int:
        if is_short and self._short_heading(column):
            return len(column.short)
        return max(
            column.cells, _FORMS[column.unit].cells, len(self.title(column)), self.sizes.get(column.key, 0),
            len(self._figures_of(column)),
        )  # fmt: skip

    def columns_for(self, width: int) -> list[ListColumn]:
        """Returns the columns that fit a screen of this width."""
        least, narrowest, most = self.name_cells
        is_short = width < SPELLED_FROM
        # The first cell is the cursor's; behind the last column no blank is needed.
        room, keys = width - 1 - least, {"name"}
        first = sorted(self.columns, key=lambda column: column.on[self.lines].priority)
        for index, column in enumerate(first[1:], start=1):
            size = self._size(column, is_short) + 1
            of_names = most - least if column.on[self.lines].priority == LAST else 0
            if size + of_names > room and index >= self.always:
                break
            room -= size
            keys.add(column.key)
        return [
            ListColumn(
                self.title(column),
                min(max(least + room, narrowest), most)
                if column.key == "name"
                else self._size(column, is_short),
                column.unit in ("text", "raw"),
                self._short_heading(column) if is_short else "",
                ends=self.ends and column.key == "name",
                of=self._figures_of(column),
            )
            for column in self.columns
            if column.key in keys
        ]

    def text(self, column: Column, value: Any, step_ns: int) -> str:
        """Returns the text of a value in a column."""
        form = _FORMS[column.unit]
        if value is None:
            return form.none
        if column.key == "name":
            return (name_cut if self.ends else cells)(value, self.name_cells[-1])
        # Where the heading may be short there is no more room.
        return form.write(
            value, step_ns, form.cells if self._short_heading(column) else self._size(column, False)
        )
