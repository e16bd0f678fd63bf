"""The layer table as lines: a group of equal rows, or each row, one line a phase that does something."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from dataclasses import dataclass

from simcore.analysis import LayerGroup, Results
from simcore.analysis.layers import LayerCell, LayerGroups, LayerRows
from simcore.analysis.on_demand import OnDemand
from simcore.collectives import NAMES
from simcore.units import percent
from simcore.workload.model import PHASES
from tui.frame import cells

_NOT_MODELLED = (0, 1, 1000)


@dataclass(frozen=True, slots=True)
class TableLine:
    """One line: a phase of `group`; `first` lines carry the name and the sums of all phases."""

    group: LayerGroup
    phase: str
    cell: LayerCell
    first: bool


class TableLines(OnDemand[TableLine]):
    """The lines of the table, each made when it is asked for.

    groups: of equal rows, or None where each row of the file has its own lines.
    """

    def __init__(self, rows: LayerRows, groups: LayerGroups | None) -> None:
        workload = rows.table.simulation.workload
        self._table = rows.table
        self._groups = groups
        # The first row of each group: its cells are those of the others.
        firsts = range(len(rows)) if groups is None else groups.first_row
        shown = [
            [
                stated not in _NOT_MODELLED or size
                for stated, size in zip(column.compute_ns, column.bytes, strict=True)
            ]
            for column in map(workload.cells, PHASES)
        ]
        # Of each line, the place of its group and its phase in one number.
        codes: list[int] = []
        for phase, has_line in enumerate(shown):
            codes += [len(PHASES) * place + phase for place, row in enumerate(firsts) if has_line[row]]
        self._codes = array("q", sorted(codes))
        super().__init__(len(self._codes))

    def make(self, place: int) -> TableLine:
        at, phase = divmod(self._codes[place], len(PHASES))
        first = not place or self._codes[place - 1] // len(PHASES) != at
        group = self._alone(at) if self._groups is None else self._groups[at]
        return TableLine(group, PHASES[phase], self._table.cell(group.rows.indices[0], PHASES[phase]), first)

    def line_of(self, row: int) -> int:
        """The first line of the group that row `row` of the file is in; 0 where it has none."""
        at = row if self._groups is None else self._groups.place_of(row)
        line = bisect_left(self._codes, len(PHASES) * at)
        has_one = line < len(self) and self._codes[line] // len(PHASES) == at
        return line if has_one else 0

    def _alone(self, index: int) -> LayerGroup:
        row = self._table.row(index)
        return LayerGroup(row.name, LayerRows(self._table, (index,)), row.compute_ns, row.exposed_ns)


def table_lines(results: Results, every_row: bool) -> TableLines:
    """The lines of the table, the most expensive first; in file order when each row has its own."""
    return TableLines(results.layers, None if every_row else results.layer_groups)


def is_modelled(cell: LayerCell) -> bool:
    """Whether the file models this compute: 0, and the 1 or 1000 ns that generators write, mean no."""
    return cell.stated_ns not in _NOT_MODELLED


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
