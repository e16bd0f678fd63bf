"""The layer table as lines: a group of equal rows, or each row, one line a phase that does something."""

from __future__ import annotations

from dataclasses import dataclass

from simcore.analysis import LayerGroup, LayerRow, Results
from simcore.analysis.layers import LayerCell
from simcore.collectives import NAMES
from simcore.units import percent
from tui.frame import cells


@dataclass(frozen=True, slots=True)
class TableLine:
    """One line: a phase of `group`; `first` lines carry the name and the sums of all phases."""

    group: LayerGroup
    phase: str
    cell: LayerCell
    first: bool


def table_lines(results: Results, every_row: bool) -> list[TableLine]:
    """The lines of the table, the most expensive first; in file order when each row has its own."""
    groups = [_alone(row) for row in results.layers] if every_row else results.layer_groups
    lines = []
    for group in groups:
        first = True
        for phase, cell in group.cells.items():
            if is_modelled(cell) or cell.bytes:
                lines.append(TableLine(group, phase, cell, first))
                first = False
    return lines


def is_modelled(cell: LayerCell) -> bool:
    """Whether the file models this compute: 0, and the 1 or 1000 ns that generators write, mean no."""
    return cell.stated_ns not in (0, 1, 1000)


def _alone(row: LayerRow) -> LayerGroup:
    return LayerGroup(row.name, (row,), row.compute_ns, row.exposed_ns)


# (heading, cells, left-aligned, shown from this width on)
COLUMNS = (
    ("layer", 18, True, 0),
    ("rows", 5, False, 0),
    ("ph.", 3, True, 0),
    ("comp. ms", 8, False, 0),
    ("collective", 14, True, 0),
    ("group", 7, True, 92),
    ("MB", 9, False, 104),
    ("alone ms", 8, False, 84),
    ("algbw", 5, False, 116),
    ("busbw", 5, False, 116),
    ("all ms", 8, False, 0),
    ("exposed ms", 10, False, 0),
    ("% step", 6, False, 0),
)


def columns_for(width: int) -> list[tuple[str, int, bool]]:
    """The columns that fit a screen of this width."""
    return [(heading, size, left) for heading, size, left, least in COLUMNS if width >= least]


def figure(value: float, size: int) -> str:
    """A figure with three decimals, with fewer where `size` cells have no room for them."""
    for decimals in (3, 2, 1):
        text = f"{value:.{decimals}f}"
        if len(text) <= size:
            return text
    text = f"{value:.0f}"
    return text if len(text) <= size else f"{value:.0e}"


def row_texts(line: TableLine, step_ns: int) -> dict[str, str]:
    """The texts of a line, by heading."""
    group, cell = line.group, line.cell
    texts = dict.fromkeys((heading for heading, *_ in COLUMNS), "")
    texts["ph."] = line.phase
    texts["comp. ms"] = figure(cell.compute_ns / 1e6, 8) if is_modelled(cell) else "-"
    if line.first:
        texts["layer"] = cells(group.name, 18)
        texts["rows"] = f"x{len(group.rows)}" if len(group.rows) < 10_000 else f"x{len(group.rows) // 1000}k"
        texts["all ms"] = figure(group.compute_ns / 1e6, 8)
        texts["exposed ms"] = figure(group.exposed_ns / 1e6, 10)
        texts["% step"] = percent(group.cost_ns, step_ns)
    if cell.collective and cell.group and cell.bytes:
        texts["collective"] = NAMES.get(cell.collective, "send-recv")
        texts["group"] = f"{cell.group} {cell.members}"
        texts["MB"] = figure(cell.bytes / 1e6, 9)
        texts["alone ms"] = figure(cell.comm_ns / 1e6, 8)
        if cell.comm_ns:
            texts["algbw"] = figure(cell.algbw, 5)
            texts["busbw"] = figure(cell.busbw, 5)
    return texts
