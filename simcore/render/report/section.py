"""A section of a page, one subject as lines of text and as keys of a JSON, and the tables in it.

Rows stand as columns under their headings and as JSON, each figure declared once; lists stand in lines.
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
    """What a page is asked for beside what all have. what_if: what would help; every_layer: all rows, or
    operations, in their table. everything: of a comparison, as long as it is; rows: how many of a table that
    gives way to others, None for all. cluster: by its name, on which collectives that were measured are also
    priced, None of none.
    """

    ascii_only: bool = False
    what_if: bool = False
    every_layer: bool = False
    everything: bool = False
    rows: int | None = None
    cluster: tuple[str, ClusterChoice] | None = None


class Section(Struct, Generic[Subject], frozen=True):
    """A subject of a page. name: which it is, in a page of HTML too. lines: of text, the first its title; of
    nothing they are no part of the page. values: the keys of the JSON, none where another section has them.
    """

    name: str
    lines: Callable[[Subject, PageOptions], Sequence[str]]
    values: Callable[[Subject, PageOptions], dict[str, Any]] = lambda of, options: {}


def page(
    sections: Iterable[Section[Subject]],
    of: Subject,
    options: PageOptions,
    rows: Mapping[Section[Subject], int] | None = None,
) -> str:
    """The text of the sections that say something, a blank line between two. rows: of `asked`, of sections
    that give way.
    """
    parts = []
    for section in sections:
        limited = options._replace(rows=rows[section]) if rows and section in rows else options
        parts.append("\n".join(section.lines(of, limited)))
    return "\n\n".join(part for part in parts if part) + "\n"


def values(
    sections: Iterable[Section[Subject]], of: Subject, options: PageOptions, first: Sequence[str]
) -> dict[str, Any]:
    """The keys of all sections. first: those that come first, in this order, whatever the order of the page;
    the others are in it.
    """
    merged: dict[str, Any] = {}
    for section in sections:
        merged |= section.values(of, options)
    return {key: merged[key] for key in dict.fromkeys((*first, *merged)) if key in merged}


# Cells of a page.
WIDTH = 110
# Stands for a blank inside a part while lines are broken; `printable` leaves none in a name.
_UNBROKEN = "\u00a0"
Row = TypeVar("Row")


class Field(Struct, Generic[Row], frozen=True):
    """One figure of a row: a column of the page, a key of the JSON, or both.

    heading: over the column, whose cells are what `text` gives; None: not on the page. left: of names, else
    the column is of figures. key: in JSON, "" not there, with what `value` gives (None: the row's attribute
    of that name). optional: the key is left out where its value is None.
    """

    heading: str = ""
    text: Callable[[Row], str] | None = None
    key: str = ""
    value: Callable[[Row], Any] | None = None
    left: bool = False
    optional: bool = False


def keys(*names: str) -> list[Field[Any]]:
    """Fields of the JSON alone, the row's attributes of these names."""
    return [Field(key=name) for name in names]


def field_lines(fields: Iterable[Field[Row]], rows: Iterable[Row]) -> list[str]:
    """The rows as a table of text: what of the fields is on the page."""
    page_columns = [
        (Column(field.heading, field.left), field.text) for field in fields if field.text is not None
    ]
    cells = [[text(row) for _, text in page_columns] for row in rows]
    return format_table([column for column, _ in page_columns], cells)


def field_values(fields: Sequence[Field[Row]], rows: Iterable[Row]) -> list[dict[str, Any]]:
    """The rows as JSON has them: what of the fields has a key."""
    keyed = [field for field in fields if field.key]
    names = [field.key for field in keyed]
    if len(names) > 1 and all(field.value is None and not field.optional for field in keyed):
        # A critical path has thousands of rows, and one call a row is a third of one a figure.
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
    """A line of a table that knows its cells, for pages that are not of text. columns: the same object for
    all lines of a table.
    """

    columns: Sequence[Column]
    cells: Sequence[str]
    is_heading: bool


class WrappedLine(str):
    """A line of a text that was broken into lines. whole: all of it with the first one, "" with others."""

    whole: str


class Bar(str):
    """A cell that is a bar. parts: (what a legend has, ns) beside each other, whole: the ns of its width."""

    parts: Sequence[tuple[str, int]]
    whole: int


class Legend(str):
    """The line that says what the parts of a table's bars are. parts: as `Bar` has them."""

    parts: Sequence[str]


def format_table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table: heading, then rows, two blanks before each column."""
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
    """A text in lines of a page, broken between its words alone. first, then: what the lines begin with."""
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
    """A heading and what stands behind it, lines broken between the parts alone."""
    joined_text = "; ".join(part.replace(" ", _UNBROKEN) for part in parts)
    first = f"  {name:<9} "
    return wrap(joined_text, first, " " * len(first))


def shorten(text: str, cells: int) -> str:
    """A text that ends with dots where it is longer."""
    return text if len(text) <= cells else text[: cells - 3] + "..."


def remaining_line(count: int, of: str = "more", where: str = "") -> list[str]:
    """`  and 12 more (--json has all)`; nothing where none are left."""
    return [f"  and {count} {of}{where and f' ({where})'}"] if count > 0 else []
