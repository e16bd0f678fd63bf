"""What the table of screen 3 is, whatever its rows are of: the one interface that the screen asks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from simcore.records import NamedTuple
from simcore.trace.layers import LayerOrder, LayerUse, Of
from tui.layers.columns import Shown
from tui.listing import ListColumn, Listing, found_from


class TablePlace(NamedTuple):
    """A stretch of the timeline, ns. number: of the class of ranks, or the rank's index. stream: whose lane
    it is on, None for the ranks' own.
    """

    number: int
    start_ns: int
    end_ns: int
    stream: str | None = None


class Table(Listing):
    """The lines of a run. A row of it is of a line of the layer table.

    layers: the lines, in their first order. shown: its columns. step_ns: what shares are of. each: whether
    equal ones have lines of their own. hint: what the last row says of the key that changes that, "" where
    there is nothing to take apart.
    """

    each = False
    hint = ""
    lines: Sequence[Any] = ()

    def __init__(self, layers: LayerOrder, shown: Shown, step_ns: int) -> None:
        self.layers, self.shown, self.step_ns = layers, shown, step_ns
        self.key, self.descending, self.typed = "", True, ""
        # The places of the lines, as they are sorted.
        self._sorted = self.opening()
        self.show(self._sorted)

    def show(self, places: Sequence[int]) -> None:
        """These lines alone: each has a row."""
        self.lines = places

    @property
    def sorted_by(self) -> Mapping[str, tuple[str, bool]]:
        return self.shown.sorted_by

    @property
    def of_path(self) -> Collection[str]:
        """The keys that only the critical path knows."""
        return [column.key for column in self.shown.columns if column.of_path]

    @property
    def subject(self) -> object:
        """What the critical path is looked for of."""
        raise NotImplementedError

    def find_path(self, cancelled: Callable[[], bool]) -> object:
        """Looks for the critical path, in a worker."""
        return self.subject

    def learn_path(self) -> bool:
        """The figures of the critical path into the lines, where they are known; whether they are."""
        return True

    def apart(self, each: bool) -> Table:
        """The table of the same run, equal ones together or each with a line of its own."""
        return self

    @property
    def can_regroup(self) -> bool:
        """Whether `regrouped` has another table."""
        return False

    def regrouped(self) -> Table | None:
        """The table of the same run grouped by the next thing that it can be by; None where there is none."""
        return None

    def place(self, line: int) -> TablePlace | None:
        """The longest span of a line; None where it takes no time in the step."""
        raise NotImplementedError

    def origin(self, line: int, width: int) -> tuple[str, list[tuple[str, str]]]:
        """Where the figures of a line come from: a title, and lines of (text, role), `width` cells each."""
        raise NotImplementedError

    def more(self, line: int, width: int) -> list[tuple[str, str]]:
        """What a screen with rows to spare says below that, most useful first."""
        return []

    def columns_for(self, width: int) -> list[ListColumn]:
        return self.shown.columns_for(width)

    def of_line(self, line: int) -> LayerUse:
        """What a row is of."""
        of: LayerUse = self.layers.lines[self.lines[line]]
        return of

    def sent(self, of: LayerUse) -> Any:
        """What a line sends; None where nobody knows."""
        return None

    def texts(self, line: int) -> dict[str, str]:
        # Lines know more once the path is known.
        known, of = self.learn_path(), self.of_line(line)
        return self.written({"line": of, "sent": self.sent(of)}, known)

    def written(self, of: Mapping[Of, Any], known: bool) -> dict[str, str]:
        """The texts of a row, by heading. of: what its columns are of; those of nothing are empty. known:
        whether
        the path is.
        """
        shown, texts = self.shown, {}
        for column in shown.columns:
            subject, text = of.get(column.of), ""
            if subject is not None:
                unknown = column.of_path and not known
                text = "..." if unknown else shown.text(column, column.value(subject), self.step_ns)
            texts[shown.title(column)] = text
        return texts

    def cannot_sort(self, heading: str) -> str:
        if self.sorted_by[heading][0] in self.of_path and not self.learn_path():
            return "the critical path is not ready yet: press o when the column has figures"
        return ""

    def opening(self) -> Sequence[int]:
        """The places of the lines in the order that it opens in."""
        return range(len(self.layers.lines))

    def matching(self, typed: str, places: Sequence[int]) -> Sequence[int]:
        """Those of some places whose lines hold every word."""
        return self.layers.matching(typed, places)

    def sort(self, key: str, descending: bool) -> None:
        """Another order; "" for the first one."""
        self.key, self.descending = key, descending
        self._sorted = self.opening()
        if key:
            column = next(column for column in self.shown.columns if column.key == key)
            self._sorted = self.layers.sorted(self._sorted, column, descending)
        self.filter(self.typed)

    def filter(self, typed: str) -> None:
        """Only what holds every word of `typed`."""
        self.typed = typed.strip()
        self.show(self.matching(typed, self._sorted))

    def find(self, typed: str, line: int, direction: int) -> int | None:
        """The first line of what holds every word of `typed`, from `line` on (1) or back (-1), and round."""
        if not typed.strip():
            return None
        return found_from(self.lines, set(self.matching(typed, self.lines)), line, direction)

    def inside(self, typed: str, line: int) -> str:
        """A line is of no group."""
        return ""

    def first_line(self, line: int) -> int:
        """A line has one row."""
        return line
