"""The JSON twin of the op table: a list of objects whose keys are the table's columns."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from simcore.workload.formats.cell import Findings, TextCell, decode_text, quoted
from simcore.workload.formats.format import FileHead, Format
from simcore.workload.formats.op_table_rows import COLUMNS, TableRows
from simcore.workload.model import Workload

if TYPE_CHECKING:
    from json import JSONDecoder

_BLANKS = re.compile(r"[ \t\r\n]*")
_MAX_QUOTED = 60


class _Literal(str):
    """A number as it is written: a float would round it once more."""


def read(path: str, data: bytes) -> Workload:
    """The workload in `data`, the bytes of a file; `path` is for messages.

    Raises: InputError with every place that cannot be read.
    """
    findings = Findings(path)
    rows = TableRows(findings)
    _Reader(decode_text(data, findings), rows, findings).read()
    return rows.workload(path)


def _sniff(head: FileHead) -> bool:
    raw = head.raw.lstrip()
    return raw.startswith(b"[") and b'"forward_compute_time"' in raw


FORMATS = (Format("op table (JSON)", _sniff, read),)


class _Reader:
    """Takes one object after another, so that a list of any length needs no more memory than its rows."""

    def __init__(self, text: str, rows: TableRows, findings: Findings) -> None:
        self._text = text
        self._rows = rows
        self._findings = findings
        self._at = 0
        self._line = 1
        self._line_start = 0
        self._counted_to = 0  # lines are counted up to this character

    def read(self) -> None:
        """Reads the list. What is no JSON ends it with an error."""
        from json import JSONDecodeError, JSONDecoder

        decoder = JSONDecoder(parse_float=_Literal, parse_int=_Literal, parse_constant=_Literal)
        try:
            self._read_list(decoder)
        except JSONDecodeError as error:
            message = f"this is not JSON: {error.msg[:1].lower()}{error.msg[1:]}"
            self._findings.add("error", "bad-json", message, self._cell(min(error.pos, len(self._text))))
        except RecursionError:
            message = "this JSON is nested too deeply for an op table"
            self._findings.add("error", "bad-json", message, self._cell(self._at))

    def _read_list(self, decoder: JSONDecoder) -> None:
        text = self._text
        self._at = text.index("[") + 1
        first = True
        while True:
            self._skip_blanks()
            if text.startswith("]", self._at):
                break
            if not first:
                if not text.startswith(",", self._at):
                    self._stop("a comma or the end of the list")
                    return
                self._at += 1
                self._skip_blanks()
            first = False
            value, end = decoder.raw_decode(text, self._at)
            self._take(value, end)
            self._at = end
        self._at += 1
        self._skip_blanks()
        if self._at < len(text):
            self._stop("nothing after the list")

    def _take(self, row: Any, end: int) -> None:
        begin = self._at
        cell = self._cell(begin)
        if not isinstance(row, dict):
            self._stop("an object for each row")
            return
        for key in row:
            if key not in COLUMNS:
                self._findings.add(
                    "note", "unknown-column", f"found the key {quoted(key)}; ignored", cell, key
                )
        missing = [name for name in COLUMNS if name not in row]
        if missing:
            message = f"found no key {', '.join(missing)}, expected the {len(COLUMNS)} of an op table"
            self._findings.add("error", "missing-column", message, cell)
            return
        texts = [_text_of(row[name]) for name in COLUMNS]

        def cell_at(column: int) -> TextCell:
            match_ = re.compile(rf'"{COLUMNS[column]}"\s*:\s*').search(self._text, begin, end)
            value = self._cell(match_.end() if match_ else begin)
            return TextCell(texts[column], value.line, value.column)

        self._rows.take(texts, cell.line, cell_at)

    def _skip_blanks(self) -> None:
        blanks = _BLANKS.match(self._text, self._at)
        self._at = blanks.end() if blanks else self._at

    def _stop(self, expected: str) -> None:
        """An error at the place reached, after which nothing can be understood."""
        cell = self._cell(self._at)
        excerpt = quoted(self._text[self._at : self._at + _MAX_QUOTED].split("\n")[0])
        if self._at >= len(self._text):
            excerpt = "the end of the file"
        self._findings.add("error", "bad-json", f"found {excerpt}, expected {expected}", cell)

    def _cell(self, offset: int) -> TextCell:
        """The place of a character. Lines are counted on from the row before, or it would be quadratic."""
        breaks = self._text.count("\n", self._counted_to, offset)
        line, start = self._line + breaks, self._line_start
        if breaks:
            start = self._text.rfind("\n", self._counted_to, offset) + 1
        if offset == self._at:
            self._counted_to, self._line, self._line_start = offset, line, start
        return TextCell("", line, offset - start + 1)


def _text_of(value: Any) -> str:
    """A value as the table would write it; what a table cannot hold, as it is shown in a message."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else repr(value)
