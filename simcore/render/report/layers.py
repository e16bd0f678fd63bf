"""The layers: the most expensive groups of equal rows, or every row with its cells; operations of a trace.

A column is a line here, in the tables that have it; a figure of its own is a field of `Use`
(`simcore/trace/tables.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from simcore.diagnostics import printable
from simcore.records import NamedTuple
from simcore.render.report.section import Field, PageAsked, Section, field_lines, field_values, more_line
from simcore.trace.tables import LayerUse
from simcore.units import duration, percent

if TYPE_CHECKING:
    from simcore.analysis.layers import LayerCell
    from simcore.trace.run import Run

_EXPENSIVE_LAYERS = 10
_NAME_CELLS = 32
_Layer = Field[LayerUse]


def _ms(ns: int) -> str:
    return f"{ns / 1e6:.3f}"


_NAME = _Layer("layer", lambda layer: printable(layer.name, _NAME_CELLS), "name", left=True)
# Of a row with cells these have it, by phase.
_COMPUTE = _Layer(
    "compute ms", lambda layer: _ms(layer.use.compute_ns),
    "compute_ns", lambda layer: layer.use.compute_ns if layer.cells is None else None, optional=True,
)  # fmt: skip
_EXPOSED = _Layer(
    "exposed ms", lambda layer: _ms(layer.use.exposed_ns),
    "exposed_ns", lambda layer: layer.use.exposed_ns,
)  # fmt: skip
_CRITICAL = _Layer(
    "critical ms", lambda layer: _ms(layer.use.critical_ns),
    "critical_ns", lambda layer: layer.use.critical_ns,
)  # fmt: skip
_SLACK = _Layer(
    "least slack",
    lambda layer: "-" if layer.use.slack_ns is None else duration(layer.use.slack_ns),
    "slack_ns",
    lambda layer: layer.use.slack_ns,
)


def _groups(run: Run) -> list[_Layer]:
    """Of equal rows together."""

    def share(layer: LayerUse) -> str:
        return percent(layer.use.compute_ns + layer.use.exposed_ns, run.step_time_ns)

    rows = _Layer("rows", lambda layer: f"x{layer.rows}")
    return [_NAME, rows, _COMPUTE, _EXPOSED, _Layer("% of step", share), _CRITICAL, _SLACK]


def _keys(rows: Sequence[LayerUse]) -> list[_Layer]:
    """Of rows or operations, in JSON."""

    def cell(phase: str) -> _Layer:
        cells = field_values(_CELL, (row.cells[phase] for row in rows if row.cells is not None))
        return _Layer(key=phase, value=lambda layer: None if layer.cells is None else cells[layer.index])

    operation = _Layer(key="operation", value=lambda layer: layer.parent, optional=True)
    cells = [cell(phase) for phase in ("fwd", "ig", "wg")]
    return [_Layer(key="index"), _NAME, operation, *cells, _COMPUTE, _EXPOSED, _CRITICAL, _SLACK]


_CELL: list[Field[LayerCell]] = [
    Field(key="compute_ns"),
    Field(key="comm", value=lambda layer_cell: layer_cell.collective),
    Field(key="group"),
    Field(key="bytes"),
    Field(key="comm_ns"),
    Field(key="algbw_gbps", value=lambda layer_cell: layer_cell.algbw),
    Field(key="busbw_gbps", value=lambda layer_cell: layer_cell.busbw),
]


class _Line(NamedTuple):
    """A cell that computes or communicates, in the table of all rows. row: None where the line before has it;
    cell: None of a row that has none.
    """

    row: LayerUse | None
    phase: str
    cell: LayerCell | None


def _all_rows() -> list[Field[_Line]]:
    from simcore.collectives import cell_name

    def of_row(layer: _Layer) -> Field[_Line]:
        text = layer.text
        assert text is not None
        return Field(layer.heading, lambda line: "" if line.row is None else text(line.row), left=layer.left)

    def comm(line: _Line) -> LayerCell | None:
        return None if line.cell is None or line.cell.collective is None else line.cell

    def compute(line: _Line) -> str:
        if line.cell is None:
            return ""
        return _ms(line.cell.compute_ns) if line.cell.is_modelled else "-"

    def collective(line: _Line) -> str:
        if line.cell is None:
            return ""
        return "-" if line.cell.collective is None else cell_name(line.cell.collective)

    block = _Layer("block", lambda layer: "-" if layer.block is None else str(layer.block))
    return [
        of_row(_Layer("line", lambda layer: str(layer.line))),
        of_row(_NAME),
        of_row(block),
        Field("cell", lambda line: line.phase, left=True),
        Field("compute ms", compute),
        Field("collective", collective, left=True),
        Field("group", lambda line: f"{of.group} {of.members}" if (of := comm(line)) else "", left=True),
        Field("bytes", lambda line: str(of.bytes) if (of := comm(line)) else ""),
        Field("alone ms", lambda line: _ms(of.comm_ns) if (of := comm(line)) else ""),
        Field("algbw", lambda line: f"{of.algbw:.1f}" if (of := comm(line)) else ""),
        Field("busbw", lambda line: f"{of.busbw:.1f}" if (of := comm(line)) else ""),
        of_row(_EXPOSED),
        of_row(_CRITICAL),
        of_row(_SLACK),
    ]


def _lines_of(row: LayerUse) -> Iterator[_Line]:
    """A line for each cell of a row that computes or communicates, or one where none does."""
    cells = row.cells or {}
    there = [phase for phase, cell in cells.items() if cell.is_modelled or cell.collective is not None]
    yield _Line(row, there[0] if there else "-", cells[there[0]] if there else None)
    for phase in there[1:]:
        yield _Line(None, phase, cells[phase])


def lines(run: Run, asked: PageAsked) -> list[str]:
    """The groups of equal rows that cost most, or all rows.

    Of all rows, compute and alone: of one run of the cell. exposed: of all runs of the row in a step, on the
    rank where compute and exposed together are most. Bandwidths: GB/s, of the collective alone. critical: of
    all ranks, what of the critical path its spans are.
    """
    groups = run.figures.layers(grouped=True)
    if not groups:
        return []
    if asked.every_layer:
        title = (
            "All rows of the file; block: micro-batch, from 0; alone, algbw, busbw (GB/s): of the collective"
        )
        rows = [line for row in run.figures.layers(grouped=False) for line in _lines_of(row)]
        return [title, *field_lines(_all_rows(), rows)]
    shown = groups if asked.everything else groups[:_EXPENSIVE_LAYERS]
    title = f"The {len(shown)} most expensive layers, in one step of one rank, equal rows together"
    title += "; critical: of all ranks"
    return [title, *field_lines(_groups(run), shown), *more_line(len(groups) - len(shown))]


def values(run: Run, asked: PageAsked) -> dict[str, Any]:
    """`layers`: each row of the file, or operation, with its share of the critical path and its slack."""
    if run.figures.nodes is not None:
        # Their names are the layers: see `nodes.py`.
        return {}
    rows = list(run.figures.layers(grouped=False))
    return {"layers": field_values(_keys(rows), rows)}


SECTION: Section[Run] = Section("layers", lines, values)
