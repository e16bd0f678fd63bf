"""Columns of text under their headings: figures right-aligned, names left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Column(NamedTuple):
    """A heading; `left` for names, else the column is of figures."""

    heading: str
    left: bool = False


def table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table: heading, then rows, two blanks before each column."""
    widths = [
        max([len(column.heading), *(len(row[number]) for row in rows)])
        for number, column in enumerate(columns)
    ]
    return [
        "".join(
            "  " + (cell.ljust(width) if column.left else cell.rjust(width))
            for cell, width, column in zip(line, widths, columns, strict=True)
        ).rstrip()
        for line in ([column.heading for column in columns], *rows)
    ]
