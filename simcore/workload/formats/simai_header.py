"""The header of a SimAI workload: the policy, then `key: value` pairs in any order.

Keys may lack their colon, unknown keys are skipped with what follows them. In the token
stream of ASTRA-sim 1.0 the header may go on in further lines, each beginning with a key, and
the last row of HYBRID_DLRM's bottom MLP is a bare number after the policy.

The header of an ASTRA-sim 1.0 text: a token stream in which line breaks mean nothing.

HYBRID_DLRM 4        the policy, and for HYBRID_DLRM(_ENHANCED) the last row of the bottom MLP
8                    the number of rows, which may stand in the line before
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from simcore.units import plural
from simcore.workload.formats.cell import Findings, TextCell, cells_of, quoted, read_number
from simcore.workload.formats.format import is_comment
from simcore.workload.formats.simai_rows import ROW_CELLS, starts_row
from simcore.workload.model import Header
from simcore.workload.policies import DLRM

# Key of the file -> field of Header.
_NUMBER_KEYS = {
    "model_parallel_NPU_group": "tp",
    "ep": "ep",
    "expert_parallel_npu_group": "ep",
    "pp": "pp",
    "vpp": "vpp",
    "ga": "ga",
    "all_gpus": "all_gpus",
    "pp_comm": "pp_comm",
    "mode": "mode",
    "DLRM_LAST_BOTTOM_LAYER": "last_bottom_layer",
}
_LISTS = ("checkpoints", "checkpoint_initiates")
# Our own: numbers between commas, in one word.
_RESCALED = "rescaled_from"
_HEADER_KEYS = frozenset((*_NUMBER_KEYS, *_LISTS, _RESCALED))
# The mode of AICB's inference generator; training files state none.
_INFERENCE = 1
_DEGREES = ("tp", "ep", "pp")
_POSITIVE = ("vpp", "all_gpus")
_EXPECTED = "a number"
# Beyond this a file is no workload: rows in the line of the header, or another text altogether.
_MOST_CELLS = 100_000


def _is_key(text: str) -> bool:
    """Whether a header cell is a key: a known one, `known:value`, or any word with a colon at its end."""
    return text.partition(":")[0] in _HEADER_KEYS or (text.endswith(":") and text != ":")


def _is_header_line(line: str) -> bool:
    cells = cells_of(line, 0, most=ROW_CELLS)
    # A row may bear the name of a key.
    return bool(cells) and _is_key(cells[0].text) and not is_comment(cells[0].text) and not starts_row(cells)


def _entries(cells: Sequence[TextCell]) -> list[tuple[TextCell | None, list[TextCell]]]:
    """Each key with the cells up to the next key; None as key of what stands before the first."""
    entries: list[tuple[TextCell | None, list[TextCell]]] = [(None, [])]
    for cell in cells:
        if not _is_key(cell.text):
            colonless = cell.text.removeprefix(":") if not entries[-1][1] else cell.text
            if colonless:  # `ep : 4` and `ep :4`
                shift = len(cell.text) - len(colonless)
                entries[-1][1].append(TextCell(colonless, cell.line, cell.column + shift))
            continue
        name, _, value = cell.text.partition(":")
        if name in _HEADER_KEYS:
            values = [TextCell(value, cell.line, cell.column + len(name) + 1)] if value else []
            entries.append((TextCell(name, cell.line, cell.column), values))
        else:
            entries.append((TextCell(cell.text[:-1], cell.line, cell.column), []))
    return entries


class HeaderReader:
    """Reads one header; `policy` is its first word, in upper case."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._values: dict[str, int | None] = {}
        self._lists: dict[str, list[tuple[int, TextCell]]] = {}
        self._column: dict[str, int] = {}
        self._rescaled: tuple[int, ...] = ()
        self._line = 1
        self.policy = ""

    def read(self, lines: Sequence[str], start: int) -> int:
        """Reads the header from `lines[start]` on and returns the index of the line after it."""
        policy, *cells = cells_of(lines[start], start + 1, most=_MOST_CELLS)
        self.policy = policy.text.upper()
        self._line = start + 1
        after = start + 1
        while after < len(lines) and len(cells) < _MOST_CELLS - 1 and _is_header_line(lines[after]):
            cells += cells_of(lines[after], after + 1, most=_MOST_CELLS)
            after += 1
        if len(cells) >= _MOST_CELLS - 1:
            message = f"found a header of {_MOST_CELLS} words or more, expected fewer"
            self._findings.add("error", "header-too-long", message, policy)
            return after
        for key, values in _entries(cells):
            self._take(key, values)
        return after

    def has(self, field: str) -> bool:
        """Whether a key of the header was there."""
        return field in self._column

    def take_last_bottom_layer(self, cell: TextCell) -> None:
        """Takes the bare number of HYBRID_DLRM: the last row of the bottom MLP."""
        key = TextCell("DLRM_LAST_BOTTOM_LAYER", cell.line, cell.column)
        self._note_column(key, "last_bottom_layer")
        self._values["last_bottom_layer"] = self._parse_number(key, "last_bottom_layer", [cell])

    def header(self, rows: int) -> Header:
        """The header of a file of `rows` rows; checkpoints at other rows are left out with a warning."""
        get = self._values.get
        return Header(
            tp=get("tp"),
            ep=get("ep"),
            pp=get("pp"),
            vpp=get("vpp"),
            ga=get("ga"),
            all_gpus=get("all_gpus"),
            pp_comm=get("pp_comm"),
            inference=get("mode") == _INFERENCE,
            checkpoints=self._present("checkpoints", rows),
            checkpoint_initiates=self._present("checkpoint_initiates", rows),
            last_bottom_layer=self._last_bottom_layer(rows),
            rescaled_from=self._rescaled,
            line=self._line,
            column=self._column,
        )

    def _take(self, key: TextCell | None, values: list[TextCell]) -> None:
        if key is None:
            self._ignore(values)
        elif key.text not in _HEADER_KEYS:
            value = f" and its value {quoted(' '.join(cell.text for cell in values))}" if values else ""
            message = f"found {key.quote()}{value}, expected a known key; ignored"
            self._findings.add("note", "unknown-key", message, key)
        elif key.text == _RESCALED:
            digits = values[0].text.split(",") if values else []
            if digits and all(word.isascii() and word.isdecimal() and len(word) < 19 for word in digits):
                self._rescaled = tuple(map(int, digits))
            else:
                message = f"{key.quote()}: found no numbers between commas, expected them; ignored"
                self._findings.add("note", "unknown-key", message, key)
        elif key.text in _LISTS:
            self._note_column(key, key.text)
            self._lists[key.text] = self._list(key, values)
        else:
            field = _NUMBER_KEYS[key.text]
            self._note_column(key, field)
            self._values[field] = self._parse_number(key, field, values)

    def _present(self, key: str, rows: int) -> tuple[int, ...]:
        listed = self._lists.get(key, [])
        for index, cell in listed:
            if index >= rows:
                message = f"{key}: found row index {index}, expected 0 to {rows - 1}; ignored"
                self._findings.add("warning", "checkpoint-range", message, cell)
        return tuple(index for index, _ in listed if index < rows)

    def _last_bottom_layer(self, rows: int) -> int | None:
        last = self._values.get("last_bottom_layer")
        if last is not None and last >= rows > 0:
            cell = TextCell("", self._line, self._column["last_bottom_layer"])
            message = f"last row of the bottom MLP: found {last}, expected 0 to {rows - 1}"
            self._findings.add(
                "warning", "last-bottom-layer", f"{message}; nothing waits for the embedding", cell
            )
        return last

    def _note_column(self, key: TextCell, field: str) -> None:
        if field in self._column:
            message = f"key {key.quote()} again, expected once; this one counts"
            self._findings.add("warning", "repeated-key", message, key)
        # Under both names: those who ask know either the file's key or the field of Header.
        self._column[field] = self._column[key.text] = key.column

    def _parse_number(self, key: TextCell, field: str, values: list[TextCell]) -> int | None:
        if not values:
            message = f"{key.text}: found nothing, expected {_EXPECTED}"
            self._findings.add("error", "not-a-number", message, key)
            return None
        self._ignore(values[1:])
        value = self._findings.parse_number(values[0], key.text, _EXPECTED, lenient=True)
        if value == 0 and field in _DEGREES:
            message = f"{key.text}: found {values[0].quote()}, expected 1 or more; read as 1"
            self._findings.add("warning", "zero-degree", message, values[0])
            return 1
        if value == 0 and field in _POSITIVE:
            message = f"{key.text}: found {values[0].quote()}, expected 1 or more; read as not given"
            self._findings.add("warning", "zero-degree", message, values[0])
            return None
        return value

    def _list(self, key: TextCell, values: list[TextCell]) -> list[tuple[int, TextCell]]:
        """The row indices of `N l1..lN` with their cells; none after an error."""
        if not values:
            message = f"{key.text}: found nothing, expected a number of rows and their indices"
            self._findings.add("error", "checkpoint-list", message, key)
            return []
        announced, *cells = values
        count = self._findings.parse_number(announced, key.text, _EXPECTED, lenient=True)
        if count is None:
            return []
        if count != len(cells):
            count_text = plural(len(cells), "row index")
            message = f"{key.text}: found {count_text} after the number {count}, expected {count}"
            self._findings.add("error", "checkpoint-list", message, announced)
            return []
        listed = []
        for cell in cells:
            index = self._findings.parse_number(cell, key.text, "a row index", lenient=True)
            if index is not None:
                listed.append((index, cell))
        return listed

    def _ignore(self, cells: list[TextCell]) -> None:
        for cell in cells:
            message = f"found {cell.quote()} in the header, expected a key; ignored"
            self._findings.add("note", "stray-value", message, cell)


def read_policy_header(lines: list[str], start: int, reader: HeaderReader, findings: Findings) -> int:
    """Reads the header from `lines[start]` on; the index of the line where the row count may be.

    What was read of a line that goes on with the row count is blanked out.
    """
    first, *rest = cells_of(lines[start], start + 1)
    number_cells = list(takewhile(_is_number, rest))
    bottom = None
    if first.text.upper() in DLRM:
        bottom = number_cells.pop(0) if number_cells else _from_next_line(lines, start + 1)
    line = lines[start]
    head = _blanked(line, bottom) if bottom is not None and bottom.line == start + 1 else line
    if number_cells:
        boundary = number_cells[0].column - 1
        reader.read([*lines[:start], head[:boundary]], start)
        lines[start] = " " * boundary + line[boundary:]
        after = start
    else:
        after = reader.read([*lines[:start], head, *lines[start + 1 :]], start)
    if bottom is not None:
        reader.take_last_bottom_layer(bottom)
    elif first.text.upper() in DLRM and not reader.has("last_bottom_layer"):
        message = f"{first.text.upper()}: found no number after it, expected the last row of the bottom MLP"
        findings.add("error", "last-bottom-layer", message, first)
    return after


def _is_number(cell: TextCell) -> bool:
    parsed = read_number(cell.text)
    return parsed is not None and parsed.integer


def _from_next_line(lines: list[str], start: int) -> TextCell | None:
    """A number that a further one follows, before the rows: the first is not the row count."""
    text_cells: list[TextCell] = []
    for index in range(start, len(lines)):
        cells = cells_of(lines[index], index + 1)
        text_cells += takewhile(_is_number, cells)
        if len(text_cells) > 1:
            bottom = text_cells[0]
            lines[bottom.line - 1] = _blanked(lines[bottom.line - 1], bottom)
            return bottom
        if cells and (starts_row(cells) or not _is_number(cells[0])):
            return None
    return None


def _blanked(line: str, cell: TextCell) -> str:
    """The line with blanks in place of a cell: other cells keep their columns."""
    first = cell.column - 1
    return line[:first] + " " * len(cell.text) + line[first + len(cell.text) :]
