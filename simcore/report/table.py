"""Columns of text under their headings, figures right-aligned, names left; and lists in lines."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import NamedTuple

_WIDTH = 110
# Stands for a blank inside a part while lines are broken; `printable` leaves none in a name.
_UNBROKEN = "\0"


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


def listed(name: str, parts: Sequence[str]) -> str:
    """A heading and what stands behind it, lines broken between the parts alone."""
    whole = "; ".join(part.replace(" ", _UNBROKEN) for part in parts)
    first = f"  {name:<9} "
    text = textwrap.fill(
        whole,
        _WIDTH,
        initial_indent=first,
        subsequent_indent=" " * len(first),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return text.replace(_UNBROKEN, " ")
