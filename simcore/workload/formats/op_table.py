"""The NeuSight op table: a line of column names, then a row an operator, cells between tabs."""

from __future__ import annotations

from functools import partial

from simcore.workload.formats.cell import (
    Findings,
    TextCell,
    cells_of,
    decoded,
    lines_of,
    quoted,
    skip_to_content,
    skips_comment,
)
from simcore.workload.formats.format import Format, Head, is_comment
from simcore.workload.formats.op_table_rows import COLUMNS, TableRows
from simcore.workload.model import Workload

# Any real line of column names is far below; one of 100 MB must not become 50 million cells.
_MOST_COLUMNS = 1000


def read(path: str, data: bytes) -> Workload:
    """The workload in `data`, the bytes of a file; `path` is for messages.

    Raises: InputError with every place that cannot be read.
    """
    findings = Findings(path)
    lines = lines_of(decoded(data, findings))
    start = skip_to_content(lines, 0, findings)
    places = _places_of_columns(lines[start], start + 1, findings)
    rows = TableRows(findings)
    if places is not None:
        width = max(places) + 1
        more = len(_split(lines[start], start + 1, _MOST_COLUMNS)) > width
        _read_rows(lines, start + 1, places, width, more, rows, findings)
    return rows.workload(path)


def _sniff(head: Head) -> bool:
    return bool(head.lines) and head.lines[0].startswith("name\t") and "forward_compute_time" in head.lines[0]


FORMAT: Format = Format("op table", _sniff, read)


def _split(line: str, line_number: int, most: int) -> list[TextCell]:
    """The cells between tabs of a line, blanks around them taken away; the last has what is left."""
    cells = []
    at = 0
    for text in line.split("\t", most):
        stripped = text.strip()
        cells.append(TextCell(stripped, line_number, at + len(text) - len(text.lstrip()) + 1))
        at += len(text) + 1
    return cells


def _places_of_columns(line: str, number: int, findings: Findings) -> list[int] | None:
    """For each of `COLUMNS` its place in a row; None after an error."""
    cells = _split(line, number, _MOST_COLUMNS)
    if len(cells) > _MOST_COLUMNS:
        message = f"found more than {_MOST_COLUMNS} columns, expected {len(COLUMNS)}"
        findings.add("error", "unknown-column", message, cells[0])
        return None
    place_of: dict[str, int] = {}
    for index, cell in enumerate(cells):
        if cell.text in place_of:
            message = f"column {cell.shown()} again, expected once; the first counts"
            findings.add("warning", "repeated-column", message, cell)
        elif cell.text in COLUMNS:
            place_of[cell.text] = index
        elif cell.text:
            findings.add("note", "unknown-column", f"found the column {cell.shown()}; ignored", cell)
    missing = [name for name in COLUMNS if name not in place_of]
    if missing:
        message = f"found no column {', '.join(missing)}, expected the {len(COLUMNS)} of an op table"
        findings.add("error", "missing-column", message, cells[0])
        return None
    return [place_of[name] for name in COLUMNS]


def _read_rows(
    lines: list[str],
    start: int,
    places: list[int],
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
        number = index + 1
        texts = [text.strip() for text in line.split("\t", width)]
        if not texts[0] or is_comment(texts[0]):
            first = cells_of(line, number, most=1)
            if not first or skips_comment(first, findings):
                continue
        if len(texts) < width:
            message = f"the row {quoted(texts[0])}: found {len(texts)} cells, expected {width}"
            findings.add("error", "incomplete-row", message, _split(line, number, 0)[0])
            continue
        if len(texts) > width and texts[width] and not more:
            cell = _split(line, number, width)[width]
            message = f"found {cell.shown()} after the {width} cells of a row, expected no more; ignored"
            findings.add("warning", "extra-cells", message, cell, "row")
        row = [texts[column] for column in places]
        rows.take(row, number, partial(_cell_of, line, number, width, places))


def _cell_of(line: str, number: int, width: int, places: list[int], column: int) -> TextCell:
    return _split(line, number, width)[places[column]]
