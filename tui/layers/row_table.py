"""A table of screen 3 with rows of its own, which are no lines of a layer table."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Generic, TypeVar

from tui.layers.table import Table

Row = TypeVar("Row")


def value_in(of: object, key: str) -> tuple[int, str]:
    """Returns a value of an object, a number or a text, as one that sorts."""
    value = getattr(of, key)
    return (value, "") if isinstance(value, int) else (0, str(value))


class RowTable(Table, Generic[Row]):
    """Rows that sort by their own values, and match by their own words: see `Table`."""

    def __init__(
        self, subject: object, rows: Sequence[Row], sorted_by: Mapping[str, tuple[str, bool]]
    ) -> None:
        """sorted_by: heading -> key that it sorts by, and whether the largest comes first."""
        self._subject, self.rows, self._sorted_by = subject, rows, sorted_by
        self.key, self.descending, self.typed = "", True, ""
        self._sorted_indices = self.first_order()
        self.show(self._sorted_indices)

    def words_of(self, row: Row) -> str:
        """Returns the text that a row is found by."""
        raise NotImplementedError

    def value_of(self, row: Row, key: str) -> tuple[int, str]:
        """Returns what a row sorts by."""
        return value_in(row, key)

    @property
    def sorted_by(self) -> Mapping[str, tuple[str, bool]]:
        return self._sorted_by

    @property
    def of_path(self) -> Collection[str]:
        return ()

    @property
    def subject(self) -> object:
        return self._subject

    def first_order(self) -> Sequence[int]:
        return range(len(self.rows))

    @cached_property
    def _words(self) -> list[str]:
        return [self.words_of(row).lower() for row in self.rows]

    def matching(self, typed: str, indices: Sequence[int]) -> Sequence[int]:
        for word in typed.lower().split():
            indices = [index for index in indices if word in self._words[index]]
        return indices

    def sort(self, key: str, descending: bool) -> None:
        self.key, self.descending = key, descending
        self._sorted_indices = self.first_order()
        if key:
            values = [self.value_of(row, key) for row in self.rows]
            self._sorted_indices = sorted(self._sorted_indices, key=values.__getitem__, reverse=descending)
        self.filter(self.typed)

    def of_line(self, line: int) -> Row:  # type: ignore[override]
        """Returns the row at a line."""
        index: int = self.lines[line]
        return self.rows[index]
