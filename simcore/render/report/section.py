"""The sections of a page, each a subject as lines of text and as keys of a JSON, and the tables in them.

A table has rows under headings as text and objects as JSON, each figure declared once; lists are lines.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from simcore.records import NamedTuple, Struct
from simcore.units import keep_units_unbroken

if TYPE_CHECKING:
    from simcore.cluster.choice import ClusterChoice

Subject = TypeVar("Subject")


class PageOptions(NamedTuple):
    """The options of a page."""

    ascii_only: bool = False
    """Whether glyphs are ASCII characters."""
    what_if: bool = False
    """Whether it has the section on what would help."""
    every_layer: bool = False
    """Whether the table of rows, or operations, has all."""
    everything: bool = False
    """Whether the tables of a comparison have all their rows."""
    rows: int | None = None
    """The most rows of a table that gives way to others; None: all."""
    cluster: tuple[str, ClusterChoice] | None = None
    """A cluster by its name, on which measured collectives are also priced; None: none."""


class Section(Struct, Generic[Subject], frozen=True):
    """A subject of a page."""

    name: str
    """Its name, also the identifier on a page of HTML."""
    lines: Callable[[Subject, PageOptions], Sequence[str]]
    """Returns its lines of text, the first its title; empty where it is no part of the page."""
    values: Callable[[Subject, PageOptions], dict[str, Any]] = lambda of, options: {}
    """Returns its keys of the JSON; none where another section has them."""


def page(
    sections: Iterable[Section[Subject]],
    of: Subject,
    options: PageOptions,
    rows: Mapping[Section[Subject], int] | None = None,
) -> str:
    """Returns the text of the sections that have lines, a blank line between two.

    rows: `PageOptions.rows` of the sections that give way.
    """
    parts = []
    for section in sections:
        limited = options._replace(rows=rows[section]) if rows and section in rows else options
        parts.append("\n".join(section.lines(of, limited)))
    return "\n\n".join(part for part in parts if part) + "\n"


def values(
    sections: Iterable[Section[Subject]], of: Subject, options: PageOptions, first: Sequence[str]
) -> dict[str, Any]:
    """Returns the keys of all sections.

    first: the keys that come first, in this order; the others keep the order of the page.
    """
    merged: dict[str, Any] = {}
    for section in sections:
        merged |= section.values(of, options)
    return {key: merged[key] for key in dict.fromkeys((*first, *merged)) if key in merged}


# The width of a page, cells.
WIDTH = 110
# Replaces blanks inside a part while lines are broken; `printable` leaves none in a name.
_UNBROKEN = "\u00a0"
Row = TypeVar("Row")


class Field(Struct, Generic[Row], frozen=True):
    """One figure of a row: a column of the page, a key of the JSON, or both."""

    heading: str = ""
    """The heading of the column."""
    text: Callable[[Row], str] | None = None
    """Returns a cell of the column; None: not on the page."""
    key: str = ""
    """The key in JSON; "": not in it."""
    value: Callable[[Row], Any] | None = None
    """Returns the value in JSON; None: the row's attribute with the name of the key."""
    left: bool = False
    """Whether the column is of names, else it is of figures."""
    optional: bool = False
    """Whether the key is left out where its value is None."""


def keys(*names: str) -> list[Field[Any]]:
    """Returns fields of the JSON alone, the row's attributes of these names."""
    return [Field(key=name) for name in names]


def field_lines(fields: Iterable[Field[Row]], rows: Iterable[Row]) -> list[str]:
    """Returns the rows as a table of text: the fields that have `text`."""
    page_columns = [
        (Column(field.heading, field.left), field.text) for field in fields if field.text is not None
    ]
    cells = [[text(row) for _, text in page_columns] for row in rows]
    return format_table([column for column, _ in page_columns], cells)


def field_values(fields: Sequence[Field[Row]], rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Returns the rows as objects of the JSON: the fields that have a key."""
    keyed = [field for field in fields if field.key]
    names = [field.key for field in keyed]
    if len(names) > 1 and all(field.value is None and not field.optional for field in keyed):
        # A critical path has thousands of rows, and one call for each row takes a third of one for each
        # figure.
        figures = attrgetter(*names)
        return [dict(zip(names, figures(row), strict=True)) for row in rows]
    columns = [field.value or attrgetter(field.key) for field in keyed]
    objects = [{name: value(row) for name, value in zip(names, columns, strict=True)} for row in rows]
    for name in (field.key for field in keyed if field.optional):
        for values in objects:
            if values[name] is None:
                del values[name]
    return objects


class Column(NamedTuple):
    """A heading; `left` for names, else the column is of figures."""

    heading: str
    left: bool = False


class TableLine(str):
    """A line of a table with its cells, for pages that are not text.

    columns: the same object for all lines of a table.
    """

    columns: Sequence[Column]
    cells: Sequence[str]
    is_heading: bool


class WrappedLine(str):
    """A line of a wrapped text. whole: the whole text on its first line, "" on others."""

    whole: str


class Bar(str):
    """A cell that is a bar. parts: (part of the legend, ns), from left to right. whole: the ns of
    its width.
    """

    parts: Sequence[tuple[str, int]]
    whole: int


class Legend(str):
    """The line that explains the parts of a table's bars. parts: as those of `Bar`."""

    parts: Sequence[str]


def format_table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[str]:
    """Returns the lines of a table: heading, then rows, two blanks before each column."""
    widths = [
        max([len(column.heading), *(len(row[index]) for row in rows)]) for index, column in enumerate(columns)
    ]
    lines: list[str] = []
    for cells in ([column.heading for column in columns], *rows):
        line = TableLine(
            "".join(
                "  " + (cell.ljust(width) if column.left else cell.rjust(width))
                for cell, width, column in zip(cells, widths, columns, strict=True)
            ).rstrip()
        )
        line.columns, line.cells, line.is_heading = columns, cells, not lines
        lines.append(line)
    return lines


def wrap(text: str, first: str = "", then: str = "") -> list[str]:
    """Returns a text in lines of a page, broken only between its words.

    first, then: the beginning of the first line and of all others.
    """
    lines: list[str] = []
    full_text = f"{first.strip()} {text}".replace(_UNBROKEN, " ").strip()
    for text_line in textwrap.wrap(
        keep_units_unbroken(text),
        WIDTH,
        initial_indent=first,
        subsequent_indent=then,
        break_long_words=False,
        break_on_hyphens=False,
    ):
        line = WrappedLine(text_line.replace(_UNBROKEN, " "))
        line.whole = "" if lines else full_text
        lines.append(line)
    return lines


def format_list(name: str, parts: Sequence[str]) -> list[str]:
    """Returns a heading and its parts, lines broken only between the parts."""
    joined_text = "; ".join(part.replace(" ", _UNBROKEN) for part in parts)
    first = f"  {name:<9} "
    return wrap(joined_text, first, " " * len(first))


def shorten(text: str, cells: int) -> str:
    """Returns a text that ends with dots where it is longer."""
    return text if len(text) <= cells else text[: cells - 3] + "..."


def remaining_line(count: int, of: str = "more", where: str = "") -> list[str]:
    """Returns `  and 12 more (--json has all)`; nothing where none are left."""
    return [f"  and {count} {of}{where and f' ({where})'}"] if count > 0 else []
