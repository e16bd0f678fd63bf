"""The header of an ASTRA-sim 1.0 text: a token stream in which line breaks mean nothing.

HYBRID_DLRM 4        the policy, and for HYBRID_DLRM(_ENHANCED) the last row of the bottom MLP
8                    the number of rows, which may stand in the line before
"""

from __future__ import annotations

from itertools import takewhile

from simcore.workload.formats.cell import Cell, cells_of, read_number
from simcore.workload.formats.findings import Findings
from simcore.workload.formats.simai_header import HeaderReader
from simcore.workload.formats.simai_lines import starts_row
from simcore.workload.policies import DLRM


def read_policy_header(lines: list[str], start: int, reader: HeaderReader, findings: Findings) -> int:
    """Reads the header from `lines[start]` on; the index of the line where the row count may be.

    What was read of a line that goes on with the row count is blanked out.
    """
    first, *rest = cells_of(lines[start], start + 1)
    numbers = list(takewhile(_is_number, rest))
    bottom = None
    if first.text.upper() in DLRM:
        bottom = numbers.pop(0) if numbers else _from_next_line(lines, start + 1)
    line = lines[start]
    head = _blanked(line, bottom) if bottom is not None and bottom.line == start + 1 else line
    if numbers:
        cut = numbers[0].column - 1
        reader.read([*lines[:start], head[:cut]], start)
        lines[start] = " " * cut + line[cut:]
        after = start
    else:
        after = reader.read([*lines[:start], head, *lines[start + 1 :]], start)
    if bottom is not None:
        reader.take_last_bottom_layer(bottom)
    elif first.text.upper() in DLRM and not reader.has("last_bottom_layer"):
        message = f"{first.text.upper()}: found no number after it, expected the last row of the bottom MLP"
        findings.add("error", "last-bottom-layer", message, first)
    return after


def _is_number(cell: Cell) -> bool:
    number = read_number(cell.text)
    return number is not None and number.integer


def _from_next_line(lines: list[str], start: int) -> Cell | None:
    """A number that a further one follows, before the rows: the first is not the row count."""
    found: list[Cell] = []
    for index in range(start, len(lines)):
        cells = cells_of(lines[index], index + 1)
        found += takewhile(_is_number, cells)
        if len(found) > 1:
            bottom = found[0]
            lines[bottom.line - 1] = _blanked(lines[bottom.line - 1], bottom)
            return bottom
        if cells and (starts_row(cells) or not _is_number(cells[0])):
            return None
    return None


def _blanked(line: str, cell: Cell) -> str:
    """The line with blanks in place of a cell: other cells keep their columns."""
    first = cell.column - 1
    return line[:first] + " " * len(cell.text) + line[first + len(cell.text) :]
