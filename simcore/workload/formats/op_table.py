"""The NeuSight op table: a line of column names, then a row an operator, cells between tabs."""

from __future__ import annotations

from functools import partial

from simcore.workload.formats.cell import (
    Findings,
    TextCell,
    cells_of,
    decode_text,
    lines_of,
    quoted,
    skip_to_content,
    skips_comment,
)
from simcore.workload.formats.format import FileHead, Format, is_comment
from simcore.workload.formats.op_table_rows import COLUMNS, TableRows
from simcore.workload.model import Workload

# Any real line of column names is far below; one of 100 MB must not become 50 million cells.
_MOST_COLUMNS = 1000


def read(path: str, data: bytes) -> Workload:
    """The workload in `data`, the bytes of a file; `path` is for messages.

    Raises: InputError with every place that cannot be read.
    """
    findings = Findings(path)
    lines = lines_of(decode_text(data, findings))
    start = skip_to_content(lines, 0, findings)
    positions = _find_columns(lines[start], start + 1, findings)
    rows = TableRows(findings)
    if positions is not None:
        width = max(positions) + 1
        more = len(_split(lines[start], start + 1, _MOST_COLUMNS)) > width
        _read_rows(lines, start + 1, positions, width, more, rows, findings)
    return rows.workload(path)


def _sniff(head: FileHead) -> bool:
    return bool(head.lines) and head.lines[0].startswith("name\t") and "forward_compute_time" in head.lines[0]


FORMATS = (Format("op table", _sniff, read),)


def _split(line: str, line_number: int, most: int) -> list[TextCell]:
    """The cells between tabs of a line, blanks around them taken away; the last has what is left."""
    cells = []
    at = 0
    for text in line.split("\t", most):
        stripped = text.strip()
        cells.append(TextCell(stripped, line_number, at + len(text) - len(text.lstrip()) + 1))
        at += len(text) + 1
    return cells


def _find_columns(line: str, line_number: int, findings: Findings) -> list[int] | None:
    """For each of `COLUMNS` its place in a row; None after an error."""
    cells = _split(line, line_number, _MOST_COLUMNS)
    if len(cells) > _MOST_COLUMNS:
        message = f"found more than {_MOST_COLUMNS} columns, expected {len(COLUMNS)}"
        findings.add("error", "unknown-column", message, cells[0])
        return None
    position_of: dict[str, int] = {}
    for index, cell in enumerate(cells):
        if cell.text in position_of:
            message = f"column {cell.quote()} again, expected once; the first counts"
            findings.add("warning", "repeated-column", message, cell)
        elif cell.text in COLUMNS:
            position_of[cell.text] = index
        elif cell.text:
            findings.add("note", "unknown-column", f"found the column {cell.quote()}; ignored", cell)
    missing = [name for name in COLUMNS if name not in position_of]
    if missing:
        message = f"found no column {', '.join(missing)}, expected the {len(COLUMNS)} of an op table"
        findings.add("error", "missing-column", message, cells[0])
        return None
    return [position_of[name] for name in COLUMNS]


def _read_rows(
    lines: list[str],
    start: int,
    positions: list[int],
    width: int,
    more: bool,
    rows: TableRows,
    findings: Findings,
) -> None:
    """Takes the rows of `lines[start:]`.

    width: cells up to the last wanted column; more: whether others follow it in the header.
    """
    for index in range(start, len(lines)):
        line = lines[index]
        line_number = index + 1
        texts = [text.strip() for text in line.split("\t", width)]
        if not texts[0] or is_comment(texts[0]):
            first = cells_of(line, line_number, most=1)
            if not first or skips_comment(first, findings):
                continue
        if len(texts) < width:
            message = f"the row {quoted(texts[0])}: found {len(texts)} cells, expected {width}"
            findings.add("error", "incomplete-row", message, _split(line, line_number, 0)[0])
            continue
        if len(texts) > width and texts[width] and not more:
            cell = _split(line, line_number, width)[width]
            message = f"found {cell.quote()} after the {width} cells of a row, expected no more; ignored"
            findings.add("warning", "extra-cells", message, cell, "row")
        row = [texts[column] for column in positions]
        rows.take(row, line_number, partial(_cell_of, line, line_number, width, positions))


def _cell_of(line: str, line_number: int, width: int, positions: list[int], column: int) -> TextCell:
    return _split(line, line_number, width)[positions[column]]
