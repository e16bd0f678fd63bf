"""What the table of screen 3 is, whatever its rows are of: the one interface that the screen asks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from simcore.records import NamedTuple
from simcore.trace.layers import LayerOrder, LayerUse, Of
from tui.layers.columns import ShownColumns
from tui.listing import ListColumn, Listing, find_from


class TableSelection(NamedTuple):
    """A stretch of the timeline, ns. number: of the class of ranks, or the rank's index. stream: whose lane
    it is on, None for the ranks' own.
    """

    track_id: int
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

    def __init__(self, layers: LayerOrder, columns: ShownColumns, step_ns: int) -> None:
        self.layers, self.columns, self.step_ns = layers, columns, step_ns
        self.key, self.descending, self.typed = "", True, ""
        # The places of the lines, as they are sorted.
        self._sorted_indices = self.first_order()
        self.show(self._sorted_indices)

    def show(self, indices: Sequence[int]) -> None:
        """These lines alone: each has a row."""
        self.lines = indices

    @property
    def sorted_by(self) -> Mapping[str, tuple[str, bool]]:
        return self.columns.sorted_by

    @property
    def of_path(self) -> Collection[str]:
        """The keys that only the critical path knows."""
        return [column.key for column in self.columns.columns if column.of_path]

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

    def find_selection(self, line: int) -> TableSelection | None:
        """The longest span of a line; None where it takes no time in the step."""
        raise NotImplementedError

    def origin(self, line: int, width: int) -> tuple[str, list[tuple[str, str]]]:
        """Where the figures of a line come from: a title, and lines of (text, role), `width` cells each."""
        raise NotImplementedError

    def extra_lines(self, line: int, width: int) -> list[tuple[str, str]]:
        """What a screen with rows to spare says below that, most useful first."""
        return []

    def columns_for(self, width: int) -> list[ListColumn]:
        return self.columns.columns_for(width)

    def of_line(self, line: int) -> LayerUse:
        """What a row is of."""
        of: LayerUse = self.layers.lines[self.lines[line]]
        return of

    def find_volume(self, of: LayerUse) -> Any:
        """What a line sends; None where nobody knows."""
        return None

    def texts(self, line: int) -> dict[str, str]:
        # Lines know more once the path is known.
        is_path_known, of = self.learn_path(), self.of_line(line)
        return self.cell_texts({"line": of, "sent": self.find_volume(of)}, is_path_known)

    def cell_texts(self, of: Mapping[Of, Any], is_path_known: bool) -> dict[str, str]:
        """The texts of a row, by heading. of: what its columns are of; those of nothing are empty. known:
        whether
        the path is.
        """
        table_columns, texts = self.columns, {}
        for column in table_columns.columns:
            subject, text = of.get(column.of), ""
            if subject is not None:
                is_unknown = column.of_path and not is_path_known
                text = (
                    "..." if is_unknown else table_columns.text(column, column.value(subject), self.step_ns)
                )
            texts[table_columns.title(column)] = text
        return texts

    def cannot_sort(self, heading: str) -> str:
        if self.sorted_by[heading][0] in self.of_path and not self.learn_path():
            return "the critical path is not ready yet: press o when the column has figures"
        return ""

    def first_order(self) -> Sequence[int]:
        """The places of the lines in the order that it opens in."""
        return range(len(self.layers.lines))

    def matching(self, typed: str, indices: Sequence[int]) -> Sequence[int]:
        """Those of some places whose lines hold every word."""
        return self.layers.filter_indices(typed, indices)

    def sort(self, key: str, descending: bool) -> None:
        """Another order; "" for the first one."""
        self.key, self.descending = key, descending
        self._sorted_indices = self.first_order()
        if key:
            column = next(column for column in self.columns.columns if column.key == key)
            self._sorted_indices = self.layers.sort_indices(self._sorted_indices, column, descending)
        self.filter(self.typed)

    def filter(self, typed: str) -> None:
        """Only what holds every word of `typed`."""
        self.typed = typed.strip()
        self.show(self.matching(typed, self._sorted_indices))

    def find(self, typed: str, line: int, direction: int) -> int | None:
        """The first line of what holds every word of `typed`, from `line` on (1) or back (-1), and round."""
        if not typed.strip():
            return None
        return find_from(self.lines, set(self.matching(typed, self.lines)), line, direction)

    def inside(self, typed: str, line: int) -> str:
        """A line is of no group."""
        return ""

    def first_line(self, line: int) -> int:
        """A line has one row."""
        return line
