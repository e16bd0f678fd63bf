"""A CSV of spans: what anyone can write of a run from a log of their own, a line a span."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate, compress, islice, repeat
from operator import le
from typing import Protocol

from simcore.diagnostics import Diagnostic, did_you_mean
from simcore.workload.formats.cell import Findings, TextCell, decode_text
from simcore.workload.formats.format import FileHead, Format
from simcore.workload.model import LARGEST
from simcore.workload.spans import COLLECTIVES, COMPUTES, KINDS, TRANSFERS, UNSTATED, SpanGroup, SpanTable

NEEDED = ("rank", "start_ns", "end_ns", "name", "kind")
COLUMNS = (*NEEDED, "stream", "group", "step", "microbatch")
_TIMES = ("start_ns", "end_ns")
# Columns of a timeline that wltui has exported, which has other ones.
_EXPORTED = {"ranks", "rank_count", "phase", "layer"}
_MOST_RANK, _MOST_COUNT, _MOST_MEMBERS = 9_999_999, 10**12 - 1, 1 << 20
_MOST_COLUMNS, _BATCH = 1000, 8192
# `0-3`, `0,2,4`, or either behind a name: `tp:0-3`.
_RANKS = r"([0-9]{1,7})(?:-([0-9]{1,7}))?"
_GROUP = rf"(?s)(?:(.*?)\s*:\s*)?({_RANKS}(?:\s*,\s*{_RANKS})*)"
# Index of a kind by its letters: case and what joins words do not matter.
_KIND_OF = {kind.replace("-", ""): index for index, kind in enumerate(KINDS)}
# The stream of spans for which none is stated: of what they do.
_DEFAULTS = (
    dict.fromkeys(COMPUTES, "compute") | dict.fromkeys((*COLLECTIVES, *TRANSFERS), "communication")
    | {"copy": "copy", "host": "host"}
)  # fmt: skip
_STREAMS = [_DEFAULTS[kind] for kind in KINDS]


def read(path: str, data: bytes) -> tuple[SpanTable, tuple[Diagnostic, ...]]:
    """(the spans in `data`, the bytes of a file, what was found); `path` is for messages.

    Raises: InputError with every place that cannot be read.
    """
    # Imported here: other formats have no use for it.
    import csv
    from io import BytesIO, TextIOWrapper

    findings = Findings(path)
    if not data.isascii():
        decode_text(data, findings)
    # In pieces: of all text at once there would be four times as much.
    rows = csv.reader(TextIOWrapper(BytesIO(data), "utf-8-sig", "surrogateescape", newline=""))
    reader = _Reader(rows, findings)
    try:
        reader.read()
    except csv.Error as error:
        message = (
            f"found what is no row of a CSV ({error}), expected cells of at most {csv.field_size_limit()}"
        )
        findings.add("error", "bad-csv", f"{message} characters", TextCell("", rows.line_num, 1))
    return reader.table, findings.diagnostics()


def _sniff(head: FileHead) -> bool:
    # Of a header with a mistake in it most is right.
    cells = head.first.split(",", _MOST_COLUMNS)
    return len({cell.strip(' \t"').lower() for cell in cells} & {*NEEDED}) > 2


FORMATS = (
    Format("a CSV of spans", _sniff, kind="profile", key="span-csv", words="CSV of spans", spans=read),
)


class _InvalidText(ValueError):
    """A text that a column cannot have. expected: what it can."""

    def __init__(self, code: str, expected: str) -> None:
        super().__init__(expected)
        self.code, self.expected = code, expected


class _Rows(Protocol):
    """What csv.reader gives. line_num: lines read."""

    line_num: int

    def __iter__(self) -> Iterator[list[str]]: ...

    def __next__(self) -> list[str]: ...


class _ColumnValues(dict[str, int]):
    """What the texts of a column stand for; each is read once."""

    def __init__(self, read_text: Callable[[str], int]) -> None:
        super().__init__()
        self._read = read_text

    def __missing__(self, text: str) -> int:
        value = self[text] = self._read(text)
        return value


class _Reader:
    """Fills a table, many rows at a time; where one of them is not like the others, one by one."""

    def __init__(self, rows: _Rows, findings: Findings) -> None:
        self.rows, self.findings = rows, findings
        self.table = SpanTable()
        self.index_of: dict[str, int] = {}
        self.width = 0
        self.names: dict[str, str] = {}
        self.streams: dict[str, int] = {}
        self.groups: dict[SpanGroup, int] = {}
        self.values_of = {
            "rank": _ColumnValues(lambda text: _parse_count(text, _MOST_RANK)),
            "kind": _ColumnValues(_kind),
            "stream": _ColumnValues(lambda text: self.streams.setdefault(text.strip(), len(self.streams))),
            "group": _ColumnValues(lambda text: self._group(text)),
            "step": _ColumnValues(lambda text: _parse_count(text, _MOST_COUNT) if text else UNSTATED),
            "microbatch": _ColumnValues(lambda text: _parse_count(text, _MOST_COUNT) if text else UNSTATED),
        }

    def read(self) -> None:
        """Reads all rows. Raises csv.Error for what is none."""
        header = next(row for row in self.rows if any(map(str.strip, row)))
        line = self.rows.line_num
        if not self._take_header(line, header):
            return
        for lines, batch in self._batches():
            self._take(lines, batch)
        if not len(self.table) and not self.findings.has_errors():
            message = "found no row below the header, expected spans"
            self.findings.add("error", "no-rows", message, TextCell("", line, 1))
        self._finish(line)

    def _batches(self) -> Iterator[tuple[Sequence[int], list[list[str]]]]:
        """(the line on which each begins, from 1, their cells) of so many rows at a time as are read fast."""
        before = self.rows.line_num
        while batch := list(islice(self.rows, _BATCH)):
            lines: Sequence[int] = range(before + 1, self.rows.line_num + 1)
            if len(lines) > len(batch):
                # A cell in quotes may have several lines.
                lines = list(accumulate(map(_lines_of, batch), initial=before + 1))[:-1]
            before = self.rows.line_num
            if [] in batch:
                lines = list(compress(lines, batch))
                batch = [row for row in batch if row]
            yield lines, batch

    def _take_header(self, line: int, header: list[str]) -> bool:
        """Notes the place of each column; False after an error."""
        if len(header) > _MOST_COLUMNS:
            message = f"found more than {_MOST_COLUMNS} columns, expected at most {len(COLUMNS)}"
            self.findings.add("error", "unknown-column", message, TextCell("", line, 1))
            return False
        for index, text in enumerate(header):
            name, cell = text.strip().lower(), _cell(line, header, index)
            if name in self.index_of:
                message = f"column {cell.quote()} again, expected once; the first counts"
                self.findings.add("warning", "repeated-column", message, cell)
            elif name in COLUMNS:
                self.index_of[name] = index
            elif name:
                self.findings.add("note", "unknown-column", f"found the column {cell.quote()}; ignored", cell)
        self.width = len(header)
        missing = [name for name in NEEDED if name not in self.index_of]
        if missing:
            message = f"found no column {', '.join(missing)}, expected at least {', '.join(NEEDED)}"
            if {text.strip().lower() for text in header} >= _EXPORTED:
                message += "; these are the columns of wltui export --format csv: --format chrome opens again"
            self.findings.add("error", "missing-column", message, TextCell("", line, 1))
        return not missing

    # -- rows ------------------------------------------------------------------------

    def _take(self, lines: Sequence[int], rows: list[list[str]]) -> None:
        try:
            cells = list(zip(*rows, strict=True))
            if len(cells) != self.width:
                raise ValueError
            self._add(lines, {name: cells[index] for name, index in self.index_of.items()})
        except ValueError:
            for line, row in zip(lines, rows, strict=True):
                self._take_one(line, row)

    def _take_one(self, line: int, row: list[str]) -> None:
        """Takes a row, or says what is wrong with it."""
        if not any(map(str.strip, row)):
            return
        if len(row) < self.width:
            message = f"found {len(row)} cells, expected the {self.width} of the header"
            self.findings.add("error", "incomplete-row", message, _cell(line, row, 0), f"{len(row)} cells")
            return
        if any(row[self.width :]):
            cell = _cell(line, row, self.width)
            message = f"found {cell.quote()} after the {self.width} cells of a row, expected no more; ignored"
            self.findings.add("warning", "extra-cells", message, cell, "row")
        texts = {name: self._text(name, _cell(line, row, index)) for name, index in self.index_of.items()}
        valid = {name: text for name, text in texts.items() if text is not None}
        if len(valid) < len(texts):
            return
        start, end = (int(valid[name]) for name in _TIMES)
        if end < start:
            message = f"end_ns: found {end}, before start_ns {start}; expected the start first"
            cell = _cell(line, row, self.index_of["end_ns"])
            self.findings.add("error", "reversed-times", message, cell)
            return
        self._add([line], {name: (text,) for name, text in valid.items()})

    def _text(self, name: str, cell: TextCell) -> str | None:
        """The text of a cell as `_add` takes it; None after an error."""
        if name != "name":
            cell.text = cell.text.strip()
        if name in _TIMES:
            value = self.findings.parse_number(cell, name, "a whole number of ns", name)
            return None if value is None else str(value)
        try:
            if name in self.values_of:
                self.values_of[name][cell.text]
        except _InvalidText as unfit:
            message = f"{name}: found {cell.quote()}, expected {unfit.expected}"
            self.findings.add("error", unfit.code, message, cell)
            return None
        return cell.text

    def _add(self, lines: Sequence[int], cells: Mapping[str, Sequence[str]]) -> None:
        """Adds rows, the texts of each column. Raises ValueError, and adds none, where one does not fit."""
        start, end = (_whole_numbers(cells[name]) for name in _TIMES)
        if not all(map(le, start, end)):
            raise ValueError
        parsed = {
            name: list(map(column_values.__getitem__, cells[name]))
            for name, column_values in self.values_of.items()
            if name in cells and name != "stream"
        }
        kind, none = parsed["kind"], [UNSTATED] * len(lines)
        streams = cells.get("stream") or repeat("")
        names = [name or KINDS[code] for name, code in zip(cells["name"], kind, strict=True)]
        stream_of = self.values_of["stream"]
        table = self.table
        table.stream.extend(
            [stream_of[stream or _STREAMS[code]] for stream, code in zip(streams, kind, strict=False)]
        )
        table.name += map(self.names.setdefault, names, names)
        table.kind += bytes(kind)
        for column, values in (
            (table.rank, parsed["rank"]), (table.start, start), (table.end, end), (table.line, lines),
            (table.group, parsed.get("group", none)), (table.step, parsed.get("step", none)),
            (table.microbatch, parsed.get("microbatch", none)),
        ):  # fmt: skip
            column.extend(values)

    def _group(self, text: str) -> int:
        text = text.strip()
        if not text:
            return UNSTATED
        match = re.fullmatch(_GROUP, text)
        ranks = None if match is None else _ranks(match[2])
        group = SpanGroup(text) if match is None or ranks is None else SpanGroup(match[1] or "", ranks)
        return self.groups.setdefault(group, len(self.groups))

    def _finish(self, line: int) -> None:
        """What all rows together say."""
        table = self.table
        table.groups = list(self.groups)
        table.has_steps = any(value != UNSTATED for value in set(table.step))
        if not table.has_steps and len(table):
            table.step = array("q", bytes(8 * len(table)))
            message = "no step is stated: all spans are taken to be of one step, 0"
            self.findings.add("note", "no-steps", message, TextCell("", line, 1))
        # Numbers in their order, then names as they come.
        by_number = sorted(self.streams, key=lambda name: (0, int(name)) if _is_number(name) else (1, 0))
        new_index = {self.streams[name]: index for index, name in enumerate(by_number)}
        table.streams = by_number
        table.stream = array("i", map(new_index.__getitem__, table.stream))


def _lines_of(row: list[str]) -> int:
    return 1 + sum(len(re.findall(r"\r\n?|\n", cell)) for cell in row)


def _cell(line: int, row: Sequence[str], index: int) -> TextCell:
    """A cell with its place, counted as if quotes stood where they must."""
    before = sum(len(cell) + 1 + _quotes(cell) for cell in row[:index])
    return TextCell(row[index], line, before + 1)


def _quotes(cell: str) -> int:
    return 2 + cell.count('"') if re.search(r'[",\r\n]', cell) else 0


def _whole_numbers(texts: Sequence[str]) -> list[int]:
    """Raises ValueError for what is not written in digits alone, or above LARGEST."""
    digits = "".join(texts)
    if not (digits.isascii() and digits.isdecimal()):
        raise ValueError
    values = list(map(int, texts))
    if max(values) > LARGEST:
        raise ValueError
    return values


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 20


def _parse_count(text: str, most: int) -> int:
    """A number from 0; spreadsheets write one of a column with empty cells as `3.0`."""
    match = re.fullmatch(r"([0-9]{1,12})(?:\.0*)?", text)
    if match is None or int(match[1]) > most:
        raise _InvalidText("not-a-number", f"a whole number from 0 to {most}")
    return int(match[1])


def _kind(text: str) -> int:
    word = re.sub("[-_ ]", "", text.lower())
    if word not in _KIND_OF:
        raise _InvalidText("unknown-kind", f"one of {', '.join(KINDS)}{did_you_mean(text, KINDS)}")
    return _KIND_OF[word]


def _ranks(text: str) -> tuple[int, ...] | None:
    """The ranks that a group lists, ascending; None where an end stands before its start, or of too many."""
    ends = [(int(first), int(last or first)) for first, last in re.findall(_RANKS, text)]
    if any(last < first for first, last in ends) or sum(last - first for first, last in ends) > _MOST_MEMBERS:
        return None
    return tuple(sorted({rank for first, last in ends for rank in range(first, last + 1)}))
