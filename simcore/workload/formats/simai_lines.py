"""Where the rows are in the lines of a SimAI workload.

SimAI reads its rows as a stream of cells, so a row may be broken over lines and a line may
hold several rows. On the other hand a line may have cells after its twelfth that mean
nothing to us (13, 17 and 21 were seen). What follows a row is therefore the beginning of
another one only if it fits as such, together with the next line.
"""

from __future__ import annotations

from collections.abc import Sequence

from simcore.workload.formats.cell import Cell, cells_of, read_number
from simcore.workload.formats.collectives import KINDS, looks_like_collective
from simcore.workload.formats.findings import Findings
from simcore.workload.formats.format import is_comment
from simcore.workload.formats.simai_rows import ROW_CELLS, TYPE, Rows
from simcore.workload.formats.text import skips_comment

# Clean lines are taken a block at a time; one line that is not sends its block the slow way.
_BLOCK = 128
# A name, a dependency, a compute time and the first collective: less is no sign of a row.
_TELLING_CELLS = 4


def read_rows(lines: Sequence[str], start: int, rows: Rows, findings: Findings) -> None:
    """Reads the rows of `lines[start:]` into `rows`; `lines[0]` is line 1."""
    reader = _LineReader(rows, findings)
    for first in range(start, len(lines), _BLOCK):
        reader.take_block(lines[first : first + _BLOCK], first + 1)
    reader.finish()


def _fits(cells: Sequence[Cell]) -> bool:
    """Whether the first twelve cells, or those there are, can be the beginning of a row."""
    if cells and cells[0].text.upper() in KINDS[0]:
        return False
    return all(
        looks_like_collective(cell.text) if place in TYPE else read_number(cell.text) is not None
        for place, cell in enumerate(cells[1:ROW_CELLS], 1)
    )


def starts_row(cells: Sequence[Cell]) -> bool:
    """Whether the cells are a row, or the beginning of one with its first collective."""
    return len(cells) >= _TELLING_CELLS and _fits(cells)


class _LineReader:
    """Takes lines and gives rows; holds what a line left over until the next one explains it."""

    def __init__(self, rows: Rows, findings: Findings) -> None:
        self._rows = rows
        self._findings = findings
        self._left: list[Cell] = []
        self._left_by_row = False  # the leftover follows a complete row of its line

    def take_block(self, lines: Sequence[str], number: int) -> None:
        """Takes lines, of which the first is line `number`."""
        if not self._left:
            split = [line.split() for line in lines]
            rows = [cells for cells in split if cells]
            if not rows:
                return
            clean = all(len(cells) == ROW_CELLS for cells in rows)
            if clean and not any(is_comment(cells[0]) for cells in rows):
                numbers = [number + index for index, cells in enumerate(split) if cells]
                if self._rows.take_clean(numbers, rows):
                    return
        for index, line in enumerate(lines):
            self._take_line(cells_of(line, number + index))

    def finish(self) -> None:
        """The end of the file: nothing explains what is left any more."""
        if not self._left:
            return
        first, count = self._left[0], len(self._left)
        if self._left_by_row and not starts_row(self._left):
            message = f"found {first.shown()} after the {ROW_CELLS} cells of a row, expected no more; ignored"
            self._findings.add("warning", "extra-cells", message, first, "row")
        else:
            message = f"the row {first.shown()}: found {count} cells, expected {ROW_CELLS}"
            self._findings.add("error", "incomplete-row", message, first)
        self._left = []

    def _take_line(self, cells: list[Cell]) -> None:
        if not cells or skips_comment(cells, self._findings):
            return
        if self._left:
            if self._goes_on(cells):
                self._note_break(self._left[0])
                cells = self._left + cells
                self._left = []
            else:
                self.finish()
        if len(cells) < ROW_CELLS:
            self._left, self._left_by_row = cells, False
            return
        start = 0
        while start == 0 or (len(cells) - start >= ROW_CELLS and _fits(cells[start : start + ROW_CELLS])):
            if start and cells[start].line == cells[start - 1].line:
                self._note_break(cells[start])
            self._rows.take(cells[start : start + ROW_CELLS])
            start += ROW_CELLS
        self._left, self._left_by_row = cells[start:], True

    def _goes_on(self, cells: list[Cell]) -> bool:
        """Whether a line goes on with the row that the leftover begins."""
        together = _fits((self._left + cells)[:ROW_CELLS])
        if self._left_by_row:
            return together and not starts_row(cells)
        return together or not (starts_row(cells) or len(cells) >= ROW_CELLS)

    def _note_break(self, cell: Cell) -> None:
        message = f"the row {cell.shown()} does not have a line of its own; read on by cells"
        self._findings.add("note", "row-breaks", message, cell, "row")
