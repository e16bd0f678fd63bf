"""The columns of screen 3, whatever its rows are of: each is declared here, once.

A table gives a line's value of a column's key: what stands there is that value in words, and it sorts by it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from simcore.analysis.layer_order import NO_SLACK
from simcore.records import NamedTuple
from simcore.units import percent
from tui.listing import ListColumn

# Headings are abbreviated on screens narrower than that.
SPELLED_FROM = 100


def figure(value: float, size: int) -> str:
    """A figure with three decimals, with fewer where `size` cells have no room for them."""
    for decimals in (3, 2, 1):
        text = f"{value:.{decimals}f}"
        if len(text) <= size:
            return text
    text = f"{value:.0f}"
    return text if len(text) <= size else f"{value:.0e}"


def _ms(ns: float, step_ns: int) -> str:
    return figure(ns / 1e6, 8)


def _count(value: int, step_ns: int) -> str:
    return str(value) if value < 100_000 else f"{value // 1000}k"


def _text(value: object, step_ns: int) -> str:
    return str(value)


class Column(NamedTuple):
    """A column. key: of its value, None where a line has none. cells: at least. form: the value in words, of
    (value, step ns). left: whether texts stand at its left end. largest_first: whether sorting begins with
    the largest; None of a column that does not sort. short: its heading where there is no room. none: what
    stands there without a value, last: what that sorts as.
    """

    key: str
    cells: int
    form: Callable[[Any, int], str] = _ms
    left: bool = False
    largest_first: bool | None = True
    short: str = ""
    none: str = "-"
    last: float = -1

    def text(self, value: Any, step_ns: int) -> str:
        """What stands there."""
        return self.none if value is None else self.form(value, step_ns)


COLUMNS: dict[str, Column] = {
    "name": Column("name", 0, _text, True, False),
    "rank": Column("rank", 5, _text, largest_first=False),
    "rows": Column("rows", 5, lambda rows, _: f"x{rows}" if rows < 10_000 else f"x{rows // 1000}k"),
    "phase": Column("phase", 5, _text, True, None, "ph."),
    "kind": Column("kind", 9, _text, True, False),
    "work": Column("work", 7, _text, True, False),
    "count": Column("count", 5, _count),
    "ranks": Column("ranks", 5, _text),
    "time ms": Column("time", 8),
    "run ms": Column("run", 8),
    "most ms": Column("most", 8),
    "waits ms": Column("waits", 8),
    "compute ms": Column("compute", 10, short="comp. ms"),
    "collective": Column("collective", 14, _text, True, False),
    "group": Column("group", 7, _text, True, False),
    "MB": Column("bytes", 9, lambda size, _: figure(size / 1e6, 9), none=""),
    "alone ms": Column("alone", 8),
    "algbw": Column("algbw", 5, lambda rate, _: figure(rate, 5), none=""),
    "busbw": Column("busbw", 5, lambda rate, _: figure(rate, 5), none=""),
    "all ms": Column("all", 8),
    "exposed ms": Column("exposed", 10, lambda ns, _: figure(ns / 1e6, 10)),
    "most on": Column("times mean", 10, lambda times, _: f"x{figure(times, 4)}"),
    "to mean": Column("times mean", 7, lambda times, _: f"x{figure(times, 4)}"),
    "% step": Column("cost", 6, percent),
    "critical ms": Column("critical", 11, short="crit. ms"),
    "slack ms": Column("slack", 8, largest_first=False, last=NO_SLACK),
}
BY_KEY = {column.key: column for column in COLUMNS.values()}


class Shown(NamedTuple):
    """Which columns a table has. first: from the front, as far as a screen has room; always: those of any
    screen. heading: of the name, name_cells: how many it has at least, where even that is too much, and at
    most. ends: whether names differ at their ends. headings: of columns that are called otherwise there.
    cells: of columns that need more. of: what the figures of a column are of.
    """

    first: Sequence[str]
    always: Sequence[str]
    heading: str
    name_cells: tuple[int, int, int]
    ends: bool = False
    headings: Mapping[str, str] = {}
    cells: Mapping[str, int] = {}
    of: Mapping[str, str] = {}

    def title(self, name: str) -> str:
        """The heading of a column."""
        return self.heading if name == "name" else self.headings.get(name, name)

    @property
    def sorted_by(self) -> dict[str, tuple[str, bool]]:
        """What each heading sorts by, and whether the largest comes first."""
        return {
            self.title(name): (column.key, column.largest_first)
            for name, column in COLUMNS.items()
            if name in self.first and column.largest_first is not None
        }

    def _size(self, name: str, is_short: bool) -> int:
        column = COLUMNS[name]
        if is_short and column.short:
            return len(column.short)
        return max(column.cells, len(self.title(name)), self.cells.get(name, 0), len(self.of.get(name, "")))

    def columns_for(self, width: int) -> list[ListColumn]:
        """Those that fit a screen of this width."""
        least, narrowest, most = self.name_cells
        is_short = width < SPELLED_FROM
        # The first cell is the cursor's; behind the last column no blank is needed.
        room, chosen = width - 1 - least, {"name"}
        for name in self.first:
            if name == "name":
                continue
            size = self._size(name, is_short) + 1
            if size > room and name not in self.always:
                break
            room -= size
            chosen.add(name)
        return [
            ListColumn(
                self.title(name),
                min(max(least + room, narrowest), most) if name == "name" else self._size(name, is_short),
                column.left,
                column.short if is_short else "",
                ends=self.ends and name == "name",
                of=self.of.get(name, ""),
            )
            for name, column in COLUMNS.items()
            if name in chosen
        ]

    def texts(self, values: Mapping[str, Any], step_ns: int) -> dict[str, str]:
        """The texts of a line, by heading; nothing where `values`, by key, has no entry."""
        return {
            self.title(name): COLUMNS[name].text(values[COLUMNS[name].key], step_ns)
            if COLUMNS[name].key in values
            else ""
            for name in self.first
        }
