"""The text of a workload file: its characters, its lines, and what stands before the first row."""

from __future__ import annotations

from collections.abc import Sequence

from simcore.workload.formats.cell import Cell, Findings, cells_of
from simcore.workload.formats.format import is_comment, without_bom


def decoded(data: bytes, findings: Findings) -> str:
    """The characters of a file; bytes that are not UTF-8 are kept, and said."""
    data = without_bom(data)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        bad = error.start
    before = lines_of(data[:bad].decode("utf-8"))
    place = Cell("", len(before), len(before[-1]) + 1)
    del before
    text = data.decode("utf-8", "surrogateescape")
    count = len(text) - len(data.decode("utf-8", "ignore"))
    message = f"found the byte 0x{data[bad]:02x}, expected UTF-8 text; kept, and shown escaped"
    findings.add("warning", "not-utf-8", message, place, times=count)
    return text


def lines_of(text: str) -> list[str]:
    """The lines of a text. Not splitlines(): that breaks at form feeds and other blanks as well."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.split("\n")


def skips_comment(cells: Sequence[Cell], findings: Findings) -> bool:
    """Whether the cells are those of a comment line, which is noted then."""
    if not is_comment(cells[0].text):
        return False
    message = f"a comment: {cells[0].shown()}; the line is ignored"
    findings.add("note", "comment", message, cells[0], "line")
    return True


def skip_to_content(lines: Sequence[str], start: int, findings: Findings) -> int:
    """The index of the first line from `start` on that is neither blank nor a comment."""
    while start < len(lines):
        cells = cells_of(lines[start], start + 1, most=1)
        if cells and not skips_comment(cells, findings):
            break
        start += 1
    return start
