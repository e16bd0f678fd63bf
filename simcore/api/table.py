"""Tables: columns of equal length, as a notebook displays them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any, overload

from simcore.diagnostics import UsageError, printable

# Rows that a notebook displays of a longer table.
_MAX_ROWS = 20


class Table:
    """Columns by name, of equal length: `table["start_ns"]`, `table[:5]`, `for row in table`."""

    def __init__(self, columns: Mapping[str, Sequence[Any]]) -> None:
        self._columns = dict(columns)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, in their order."""
        return tuple(self._columns)

    def __len__(self) -> int:
        return len(next(iter(self._columns.values()), ()))

    @overload
    def __getitem__(self, what: slice) -> Table: ...

    @overload
    def __getitem__(self, what: str) -> Sequence[Any]: ...

    def __getitem__(self, what: str | slice) -> Sequence[Any] | Table:
        if isinstance(what, slice):
            return Table({name: column[what] for name, column in self._columns.items()})
        if what not in self._columns:
            there = ", ".join(self._columns)
            raise KeyError(f"no column {printable(str(what), 40)}, only {there}")
        return self._columns[what]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for row in zip(*self._columns.values(), strict=True):
            yield dict(zip(self._columns, row, strict=True))

    def to_dict(self) -> dict[str, list[Any]]:
        """Returns the columns as lists of plain values."""
        return {name: list(column) for name, column in self._columns.items()}

    def to_pandas(self) -> Any:
        """Returns a `pandas.DataFrame`; whole numbers of which some are missing are of its type Int64.

        Raises `UsageError` where pandas is not installed.
        """
        try:
            import pandas
        except ImportError:
            raise UsageError("to_pandas: pandas is not installed; pip install wltui[pandas]") from None
        columns = self.to_dict()
        # By default pandas makes floats of whole numbers where some are None.
        missing = {name: column for name, column in columns.items() if _is_whole_or_missing(column)}
        return pandas.DataFrame(
            columns | {name: pandas.array(column, dtype="Int64") for name, column in missing.items()}
        )

    def to_arrow(self) -> Any:
        """Returns a `pyarrow.Table`. Raises `UsageError` where pyarrow is not installed."""
        try:
            import pyarrow
        except ImportError:
            raise UsageError("to_arrow: pyarrow is not installed; pip install wltui[arrow]") from None
        return pyarrow.table(self.to_dict())

    def __repr__(self) -> str:
        return f"<Table of {len(self)} rows: {', '.join(self._columns)}>"

    def _repr_html_(self) -> str:
        heads = "".join(f"<th>{escape(name)}</th>" for name in self._columns)
        rows = [
            "<tr>" + "".join(f"<td>{escape(_text(value))}</td>" for value in row) + "</tr>"
            for row, _ in zip(zip(*self._columns.values(), strict=True), range(_MAX_ROWS), strict=False)
        ]
        left = len(self) - _MAX_ROWS
        more = f"<p>{left} more rows</p>" if left > 0 else ""
        return f"<table><tr>{heads}</tr>{''.join(rows)}</table>{more}"


def _is_whole_or_missing(column: Sequence[Any]) -> bool:
    """Returns whether a column has whole numbers and None, and nothing else."""
    return {type(value) for value in column} == {int, type(None)}


def _text(value: object) -> str:
    return "" if value is None else printable(str(value), 60)
