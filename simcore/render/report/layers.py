"""The layer table as text and JSON: the most expensive rows, equal ones merged, or every row with its cells.

Of traces it has operations, or nodes by name. Its columns are those of `simcore/trace/layers.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from simcore.diagnostics import printable
from simcore.kernel_names import short_name
from simcore.records import NamedTuple
from simcore.render.report.section import Field, PageOptions, Section, field_lines, remaining_line
from simcore.trace.layers import Column, LayerUse, Unit, columns_of, json_rows
from simcore.units import column_unit, duration, percent

if TYPE_CHECKING:
    from simcore.analysis.layers import LayerCell
    from simcore.trace.run import Run

_EXPENSIVE_LAYERS = 10
_NAME_CELLS = 32
# How a value is written, by its unit, from (value, step ns, ns of the unit of times).
_FORMS: dict[Unit, Callable[[Any, int, float], str]] = {
    "ns": lambda ns, _, unit_ns: f"{ns / unit_ns:.3f}",
    "share": lambda ns, step_ns, _: percent(ns, step_ns),
    "slack": lambda ns, *_: duration(ns),
    "count": lambda count, *_: str(count),
    "rank": lambda rank, *_: str(rank),
    "times": lambda times, *_: f"x{times:.2f}",
    "bytes": lambda size, *_: str(size),
    "rate": lambda rate, *_: f"{rate:.1f}",
    "text": lambda text, *_: text,
    "raw": lambda text, *_: printable(text, _NAME_CELLS),
    "rows": lambda rows, *_: f"x{rows}",
}


def column_field(
    column: Column, step_ns: int, unit: tuple[float, str], name: Callable[[str], str], heading: str = ""
) -> Field[Any]:
    """Returns a column as a field of a page.

    unit: of times, its ns and its name. name: writes names. heading: of names.
    """
    unit_ns, unit_name = unit

    def text(of: Any) -> str:
        value = column.value(of)
        if column.key == "name":
            return name(value)
        return "-" if value is None else _FORMS[column.unit](value, step_ns, unit_ns)

    title = column.page or (f"{column.heading} {unit_name}" if column.unit == "ns" else column.heading)
    return Field(
        heading if column.key == "name" else title.rstrip(), text, left=column.unit in ("text", "raw")
    )


def _fields(run: Run) -> list[tuple[Column, Field[Any]]]:
    """Returns the columns of rows and their cells, or of operations."""
    lines = run.figures.lines
    heading, name = ("layer", printable) if lines == "rows" else ("operation", short_name)
    # For a step of microseconds operations need a finer unit than ms.
    unit = (1e6, "ms") if lines == "rows" else column_unit(min(run.step_time_ns, 10**9 - 1))
    return [
        (column, column_field(column, run.step_time_ns, unit, lambda text: name(text, _NAME_CELLS), heading))
        for column in columns_of(lines)
    ]  # fmt: skip


class _Line(NamedTuple):
    """A cell that computes or communicates, in the table of all rows."""

    row: LayerUse | None
    """The row; None where the line before has it."""
    cell: LayerCell | None
    """The cell; None for a row without any."""


def _all_row_fields(run: Run) -> list[Field[_Line]]:
    def as_line_field(column: Column, field: Field[Any]) -> Field[_Line]:
        text = field.text
        assert text is not None

        def of_line(line: _Line) -> str:
            of = line.row if column.of == "line" else line.cell
            if of is None:
                return "-" if column.key == "phase" else ""
            if column.of == "sent" and line.cell is not None and line.cell.collective is None:
                return "-" if column.key == "collective" else ""
            return text(of)

        return Field(field.heading, of_line, left=field.left)

    def of_row(text: Callable[[LayerUse], str]) -> Callable[[_Line], str]:
        return lambda line: "" if line.row is None else text(line.row)

    name, *others = [as_line_field(column, field) for column, field in _fields(run) if column.has_each_row]

    def block(row: LayerUse) -> str:
        block_index = row.in_file[1]
        return "-" if block_index is None else str(block_index)

    return [
        Field("line", of_row(lambda row: str(row.in_file[0]))),
        name,
        Field("block", of_row(block)),
        *others,
    ]


def _cell_lines(row: LayerUse) -> Iterator[_Line]:
    """Yields a line for each cell of a row that computes or communicates, or one where none does."""
    used_cells = [cell for cell in row.cells.values() if cell.is_modelled or cell.collective is not None]
    yield _Line(row, used_cells[0] if used_cells else None)
    for cell in used_cells[1:]:
        yield _Line(None, cell)


def lines(run: Run, options: PageOptions) -> list[str]:
    """Returns the groups of equal rows, or the operations, that cost most, or all rows.

    In the table of all rows, compute and alone are of one run of the cell; exposed is of all runs of the row
    in a step, on the rank where compute and exposed together are most. Bandwidths: GB/s, of the collective
    alone. critical: the part of the critical path that its spans are, of all ranks.
    """
    groups = run.figures.layers(grouped=True)
    if not groups:
        return []
    of_rows = groups[0].of_rows is not None
    if options.every_layer and of_rows:
        title = (
            "All rows of the file; block: micro-batch, from 0; alone, algbw, busbw (GB/s): of the collective"
        )
        rows = [line for row in run.figures.layers(grouped=False) for line in _cell_lines(row)]
        return [title, *field_lines(_all_row_fields(run), rows)]
    displayed_groups = groups if options.everything or options.every_layer else groups[:_EXPENSIVE_LAYERS]
    title = f"The {len(displayed_groups)} most expensive layers, in one step of one rank, equal rows together"
    if not of_rows:
        title = (
            f"The {len(displayed_groups)} operations that take most of the step, on the rank where they do"
        )
    of_lines = [
        field
        for column, field in _fields(run)
        if column.of == "line"
        and not (column.optional and all(column.value(one) is None for one in displayed_groups))
    ]
    more = remaining_line(
        len(groups) - len(displayed_groups), where="" if of_rows else "--all-layers has all"
    )
    return [f"{title}; critical: of all ranks", *field_lines(of_lines, displayed_groups), *more]


def values(run: Run, options: PageOptions) -> dict[str, Any]:
    """Returns `layers`: each row of the file, or operation, with its share of the critical path and its
    slack.
    """
    if run.figures.nodes is not None:
        # Names of nodes are the layers: see `nodes.py`.
        return {}
    return {"layers": json_rows(run.figures.layers(grouped=False), run.step_time_ns)}


SECTION: Section[Run] = Section("layers", lines, values)
