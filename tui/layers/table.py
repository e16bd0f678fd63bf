"""What the table of screen 3 is, whatever its rows are of: the one interface that the screen asks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

from simcore.records import NamedTuple
from tui.layers.columns import BY_KEY, COLUMNS, Shown
from tui.listing import ListColumn, Listing, found_from


class TablePlace(NamedTuple):
    """A stretch of the timeline, ns. number: of the class of ranks, or the rank's index. stream: whose lane
    it is on, None for the ranks' own.
    """

    number: int
    start_ns: int
    end_ns: int
    stream: str | None = None


class Table(Listing, Protocol):
    """The lines of a run. each: whether equal ones have lines of their own. hint: what the last row says of
    the key that changes that, "" where there is nothing to take apart.
    """

    each: bool

    @property
    def hint(self) -> str: ...
    @property
    def of_path(self) -> Collection[str]:
        """The keys that only the critical path knows."""

    @property
    def subject(self) -> object:
        """What the critical path is looked for of."""

    def apart(self, each: bool) -> Table:
        """The table of the same run, equal ones together or each with a line of its own."""
        ...

    @property
    def can_regroup(self) -> bool:
        """Whether `regrouped` has another table."""
        ...

    def regrouped(self) -> Table | None:
        """The table of the same run grouped by the next thing that it can be by; None where there is none."""
        ...

    def learn_path(self) -> bool:
        """The figures of the critical path into the lines, where they are known; whether they are."""
        ...

    def find_path(self, cancelled: Callable[[], bool]) -> object:
        """Looks for the critical path, in a worker."""
        ...

    def place(self, line: int) -> TablePlace | None:
        """The longest span of a line; None where it takes no time in the step."""
        ...

    def origin(self, line: int, width: int) -> tuple[str, list[tuple[str, str]]]:
        """Where the figures of a line come from: a title, and lines of (text, role), `width` cells each."""
        ...

    def more(self, line: int, width: int) -> list[tuple[str, str]]:
        """What a screen with rows to spare says below that, most useful first."""
        ...


class RowTable:
    """What the tables of traces have alike: a line a row, of the order those that the filter leaves.

    shown: its columns. step_ns: what shares are of.
    """

    shown: Shown
    step_ns: int
    of_path: Collection[str] = ()

    def __init__(self) -> None:
        self.key, self.descending, self.typed = "", True, ""
        self._known: dict[str, Sequence[Any]] = {}
        self._order = self._opening()
        self.lines: Sequence[int] = self._order

    @property
    def sorted_by(self) -> Mapping[str, tuple[str, bool]]:
        return self.shown.sorted_by

    def columns_for(self, width: int) -> list[ListColumn]:
        return self.shown.columns_for(width)

    def texts(self, line: int) -> dict[str, str]:
        at, keys = self.lines[line], [COLUMNS[name].key for name in self.shown.first]
        unknown = self.of_path if self.of_path and not self.learn_path() else ()
        values = {key: self.value(key, at) for key in keys if key not in unknown}
        pending = {self.shown.title(name): "..." for name, key in zip(self.shown.first, keys, strict=True)
                   if key in unknown}  # fmt: skip
        return self.shown.texts(values, self.step_ns) | pending

    def learn_path(self) -> bool:
        """Whether the figures of the critical path are known."""
        return True

    def value(self, key: str, at: int) -> Any:
        """What a row has in the column of a key, None where it has nothing."""
        raise NotImplementedError

    def values(self, key: str) -> Sequence[Any]:
        """What all rows are sorted by."""
        if key not in self._known:
            last = BY_KEY[key].last
            found = (self.value(key, at) for at in range(len(self._order)))
            self._known[key] = [last if value is None else value for value in found]
        return self._known[key]

    def _opening(self) -> list[int]:
        """The rows in the order that it opens in."""
        raise NotImplementedError

    def _matching(self, typed: str, of: Sequence[int]) -> list[int]:
        """Those of some rows that hold every word."""
        raise NotImplementedError

    def sort(self, key: str, descending: bool) -> None:
        """Another order; "" for the first one."""
        self.key, self.descending = key, descending
        self._order = self._opening()
        if key:
            self._order.sort(key=self.values(key).__getitem__, reverse=descending)
        self.filter(self.typed)

    def filter(self, typed: str) -> None:
        """Only what holds every word of `typed`."""
        self.typed = typed.strip()
        self.lines = self._matching(typed, self._order)

    def find(self, typed: str, line: int, direction: int) -> int | None:
        """The first line of what holds every word of `typed`, from `line` on (1) or back (-1), and round."""
        if not typed.strip():
            return None
        return found_from(self.lines, set(self._matching(typed, self.lines)), line, direction)

    def inside(self, typed: str, line: int) -> str:
        """A line is of no group."""
        return ""

    def first_line(self, line: int) -> int:
        """A row has one line."""
        return line
