"""Differences between a file and the rows that AICB would write: the first one, and how many rows differ."""

from __future__ import annotations

from typing import Any

from simcore.diagnostics import printable
from simcore.model.aicb import AicbConfig, AicbRow
from simcore.records import NamedTuple, Struct, asdict
from simcore.units import group_digits, is_whole
from simcore.workload import Workload
from simcore.workload.model import Cells

_SUFFIX = {"tp": "", "dp": "", "ep": "_EP", "dp_ep": "_DP_EP", None: ""}
_PHASES = (("fwd", "forward"), ("ig", "input-gradient"), ("wg", "weight-gradient"))


class Difference(Struct, frozen=True):
    """The first difference of a file from what AICB writes."""

    row: int | None
    """The index of the row, from 0; None in the header."""
    line: int
    """The line of the file, from 1."""
    name: str
    """The name of the row."""
    field: str
    """What differs."""
    found: str
    """What the file has."""
    expected: str
    """What AICB writes there; "" where it writes no row."""

    def text(self) -> str:
        """Returns `row 0 (line 3), grad_gather: weight-gradient bytes 202 424 320, AICB writes 6 477 578
        240`.
        """
        name = printable(self.name, 40)
        where = "header" if self.row is None else f"row {self.row} (line {self.line}), {name}"
        writes = f"AICB writes {_format_value(self.expected)}" if self.expected else "AICB writes no such row"
        return f"{where}: {self.field} {_format_value(self.found)}, {writes}"

    def values(self) -> dict[str, Any]:
        return asdict(self)


def _format_value(text: str) -> str:
    return group_digits(int(text)) if is_whole(text) else printable(text, 40)


class RowDifferences(NamedTuple):
    """How much a file differs from what AICB writes."""

    first: Difference | None
    """The first difference; None where all is equal."""
    rows: int
    """How many rows differ in names, types or bytes."""
    cells: int
    """How many differ only in times."""
    header: int
    """How many numbers of the header differ."""


def compare_rows(
    workload: Workload, config: AicbConfig, rows: list[AicbRow], data: bytes | None
) -> RowDifferences:
    """Returns the differences of a workload from the rows that AICB would write.

    data: the file, for what no column has: sizes of what is not sent, dependencies; None compares the columns
    alone.
    """
    first_row: Difference | None = None
    differing = cells = 0
    columns = (workload.fwd, workload.ig, workload.wg)
    lines = data.decode("utf-8", "replace").splitlines() if data is not None else None
    of_row: dict[AicbRow, list[str]] = {}
    for index, (row, name) in enumerate(zip(rows, workload.name, strict=False)):
        collectives = [
            _cell_collective(cells, index, expected)
            for cells, expected in zip(columns, row.collectives, strict=True)
        ]
        ns = columns[0].compute_ns[index], columns[1].compute_ns[index], columns[2].compute_ns[index]
        aicb_row = AicbRow(name, ns, *collectives)
        if aicb_row != row or workload.process_ns[index] != 100:
            same = (
                aicb_row.name == row.name
                and aicb_row.collectives == row.collectives
                and workload.process_ns[index] == 100
            )
            differing += not same
            cells += same
            if first_row is None:
                first_row = _difference(workload, index, aicb_row, row)
        elif lines is not None:
            aicb_cells = of_row.get(row)
            if aicb_cells is None:
                aicb_cells = of_row[row] = row.text().split()
            line = workload.line[index]
            there = lines[line - 1].split() if line <= len(lines) else []
            if there != aicb_cells and len(there) == len(aicb_cells):
                differing += 1
                if first_row is None:
                    pairs = enumerate(zip(there, aicb_cells, strict=True))
                    cell = next(at for at, pair in pairs if pair[0] != pair[1])
                    first_row = Difference(
                        index, line, name, f"cell {cell + 1}", there[cell], aicb_cells[cell]
                    )
    common = min(len(rows), len(workload))
    differing += max(len(rows), len(workload)) - common
    if first_row is None and len(workload) != len(rows):
        if len(workload) > common:
            name = workload.name[common]
            first_row = Difference(common, workload.line[common], name, "row", name, "")
        else:
            last = workload.line[-1] if len(workload) else workload.header.line
            first_row = Difference(common, last, rows[common].name, "rows", "the end", rows[common].name)
    header = _header_difference(workload, config, len(rows))
    return RowDifferences(header[0] if header else first_row, differing, cells, len(header))


def _cell_collective(cells: Cells, row: int, expected: tuple[str, int]) -> tuple[str, int]:
    """Returns (type, bytes) of a cell as AICB writes them; what is not sent has AICB's size."""
    kind = cells.collective[row]
    if kind is None:
        return "NONE", expected[1] if expected[0] == "NONE" else 0
    return kind + _SUFFIX.get(cells.group[row], ""), cells.bytes[row]


def _difference(workload: Workload, row: int, file_row: AicbRow, aicb_row: AicbRow) -> Difference:
    def at(field: str, there: object, expected: object) -> Difference:
        return Difference(row, workload.line[row], file_row.name, field, str(there), str(expected))

    if file_row.name != aicb_row.name:
        return at("name", file_row.name, aicb_row.name)
    for phase, (_, phase_words) in enumerate(_PHASES):
        (kind, size), (made_kind, made_size) = file_row.collectives[phase], aicb_row.collectives[phase]
        if kind != made_kind:
            return at(f"{phase_words} collective", kind, made_kind)
        if size != made_size:
            return at(f"{phase_words} bytes", size, made_size)
    for phase, (_, phase_words) in enumerate(_PHASES):
        if file_row.cells[phase] != aicb_row.cells[phase]:
            return at(f"{phase_words} compute ns", file_row.cells[phase], aicb_row.cells[phase])
    return at("process time", workload.process_ns[row], 100)


def _header_difference(workload: Workload, config: AicbConfig, rows: int) -> list[Difference]:
    header, keys = workload.header, config.written_by.keys
    expected: dict[str, int | None] = {
        "tp": config.tp, "ep": config.ep, "pp": config.pp, "vpp": config.stage_layers,
        "ga": config.microbatches, "all_gpus": config.world, "pp_comm": round(config.pp_comm),
    }  # fmt: skip
    differences = []
    for key, value in expected.items():
        expected_value = value if key == "tp" or key in keys else None
        there = getattr(header, key)
        if there != expected_value:
            texts = ["none" if value is None else str(value) for value in (there, expected_value)]
            differences.append(Difference(None, header.line, "", key, *texts))
    if workload.declared_rows not in (None, rows) and len(workload) == rows:
        declared = str(workload.declared_rows)
        differences.append(Difference(None, header.line + 1, "", "number of rows", declared, str(rows)))
    return differences
