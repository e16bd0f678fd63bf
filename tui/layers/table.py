"""The table of screen 3, whatever its rows are of: the one interface that the screen uses."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from simcore.records import NamedTuple
from simcore.trace.layers import LayerOrder, LayerUse, Of
from tui.layers.columns import ShownColumns
from tui.listing import ListColumn, Listing, find_from


class TableSelection(NamedTuple):
    """A stretch of the timeline, ns."""

    track_id: int
    """The track of its ranks."""
    start_ns: int
    end_ns: int
    stream: str | None = None
    """The stream whose lane it is on, None for the ranks' own."""


class Table(Listing):
    """The lines of a run. A row of it is of a line of the layer table.

    `layers` is the lines in their first order, `columns` its columns. `step_ns` is what shares are of. `each`
    says whether equal ones have lines of their own. `hint` is the text of the last row for the key that
    changes that, "" where nothing can be split.
    """

    each = False
    hint = ""
    cannot_split = "a single rank has nothing to take apart"
    lines: Sequence[Any] = ()

    def __init__(self, layers: LayerOrder, columns: ShownColumns, step_ns: int) -> None:
        self.layers, self.columns, self.step_ns = layers, columns, step_ns
        self.key, self.descending, self.typed = "", True, ""
        # The indices of the lines, as they are sorted.
        self._sorted_indices = self.first_order()
        self.show(self._sorted_indices)

    def show(self, indices: Sequence[int]) -> None:
        """Shows only these lines: each has a row."""
        self.lines = indices

    @property
    def sorted_by(self) -> Mapping[str, tuple[str, bool]]:
        return self.columns.sorted_by

    @property
    def of_path(self) -> Collection[str]:
        """The keys of columns that need the critical path."""
        return [column.key for column in self.columns.columns if column.of_path]

    @property
    def subject(self) -> object:
        """The object whose critical path is computed."""
        raise NotImplementedError

    def find_path(self, cancelled: Callable[[], bool]) -> object:
        """Computes the critical path, in a worker."""
        return self.subject

    def learn_path(self) -> bool:
        """Puts the figures of the critical path into the lines, if they are known; returns whether
        they are.
        """
        return True

    def apart(self, each: bool) -> Table:
        """Returns the table of the same run, equal ones together or each with a line of its own."""
        return self

    @property
    def can_regroup(self) -> bool:
        """Whether `regrouped` has another table."""
        return False

    def regrouped(self) -> Table | None:
        """Returns the table of the same run grouped by the next criterion; None where there is none."""
        return None

    def find_selection(self, line: int) -> TableSelection | None:
        """Returns the longest span of a line; None where it takes no time in the step."""
        raise NotImplementedError

    def origin(self, line: int, width: int) -> tuple[str, list[tuple[str, str]]]:
        """Returns the origin of the figures of a line: a title, and lines of (text, role), `width` cells
        each.
        """
        raise NotImplementedError

    def extra_lines(self, line: int, width: int) -> list[tuple[str, str]]:
        """Returns additional lines for a screen with spare rows, most useful first."""
        return []

    def columns_for(self, width: int) -> list[ListColumn]:
        return self.columns.columns_for(width)

    def of_line(self, line: int) -> LayerUse:
        """Returns the line of the layer table that a row is of."""
        of: LayerUse = self.layers.lines[self.lines[line]]
        return of

    def find_volume(self, of: LayerUse) -> Any:
        """Returns what a line sends; None where that is unknown."""
        return None

    def texts(self, line: int) -> dict[str, str]:
        # Lines have more figures once the path is known.
        is_path_known, of = self.learn_path(), self.of_line(line)
        return self.cell_texts({"line": of, "sent": self.find_volume(of)}, is_path_known)

    def cell_texts(self, of: Mapping[Of, Any], is_path_known: bool) -> dict[str, str]:
        """Returns the texts of a row, by heading. of: what its columns are of; columns of nothing are empty.
        is_path_known: whether the critical path is computed.
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
        """Returns the indices of the lines in the order that it opens in."""
        return range(len(self.layers.lines))

    def matching(self, typed: str, indices: Sequence[int]) -> Sequence[int]:
        """Returns those of some indices whose lines contain every word."""
        return self.layers.filter_indices(typed, indices)

    def sort(self, key: str, descending: bool) -> None:
        """Sorts the lines by a key; "" for the first order."""
        self.key, self.descending = key, descending
        self._sorted_indices = self.first_order()
        if key:
            column = next(column for column in self.columns.columns if column.key == key)
            self._sorted_indices = self.layers.sort_indices(self._sorted_indices, column, descending)
        self.filter(self.typed)

    def filter(self, typed: str) -> None:
        """Shows only lines that contain every word of `typed`."""
        self.typed = typed.strip()
        self.show(self.matching(typed, self._sorted_indices))

    def find(self, typed: str, line: int, direction: int) -> int | None:
        """Returns the first line that contains every word of `typed`, from `line` on (1) or back (-1),
        wrapping around.
        """
        if not typed.strip():
            return None
        return find_from(self.lines, set(self.matching(typed, self.lines)), line, direction)
