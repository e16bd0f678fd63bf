"""The header of a SimAI workload: the policy, then `key: value` pairs in any order.

Keys may lack their colon, unknown keys are skipped with what follows them. In the token
stream of ASTRA-sim 1.0 the header may go on in further lines, each beginning with a key.
"""

from __future__ import annotations

from collections.abc import Sequence

from simcore.workload.formats.cell import Cell, cells_of
from simcore.workload.formats.findings import Findings
from simcore.workload.formats.format import is_comment
from simcore.workload.model import Header

# Key of the file -> field of Header.
_NUMBERS = {
    "model_parallel_NPU_group": "tp",
    "ep": "ep",
    "expert_parallel_npu_group": "ep",
    "pp": "pp",
    "vpp": "vpp",
    "ga": "ga",
    "all_gpus": "all_gpus",
    "pp_comm": "pp_comm",
}
_LISTS = ("checkpoints", "checkpoint_initiates")
_KNOWN = frozenset((*_NUMBERS, *_LISTS))
_DEGREES = ("tp", "ep", "pp")
_POSITIVE = ("vpp", "all_gpus")
_EXPECTED = "a number"


def is_key(text: str) -> bool:
    """Whether a header cell is a key: a known one, `known:value`, or any word with a colon at its end."""
    name, colon, value = text.partition(":")
    return name in _KNOWN or (colon != "" and name != "" and text.endswith(":"))


def read_header(lines: Sequence[str], start: int, findings: Findings) -> tuple[str, Header, int]:
    """The policy, the header, and the index of the line after it; `start` is the policy's line."""
    policy, *cells = cells_of(lines[start], start + 1)
    after = start + 1
    while after < len(lines) and _is_header_line(lines[after]):
        cells += cells_of(lines[after], after + 1)
        after += 1
    header = _HeaderReader(findings)
    for key, values in _entries(cells):
        header.take(key, values)
    return policy.text.upper(), header.result(), after


def drop_missing_rows(header: Header, rows: int, findings: Findings) -> dict[str, tuple[int, ...]]:
    """The checkpoint lists without the indices that no row has; those are warnings."""
    kept = {}
    for key in _LISTS:
        indices: tuple[int, ...] = getattr(header, key)
        kept[key] = tuple(index for index in indices if index < rows)
        for index in indices:
            if index >= rows:
                message = f"{key}: found row {index}, expected 0 to {rows - 1}; ignored"
                findings.add("warning", "checkpoint-range", message, Cell(key, 1, header.column[key]))
    return kept


def _is_header_line(line: str) -> bool:
    first = line.split(None, 1)[:1]
    return bool(first) and not is_comment(line.lstrip()) and is_key(first[0])


def _entries(cells: Sequence[Cell]) -> list[tuple[Cell | None, list[Cell]]]:
    """Each key with the cells up to the next key; None as key of what stands before the first."""
    entries: list[tuple[Cell | None, list[Cell]]] = [(None, [])]
    for cell in cells:
        if not is_key(cell.text):
            colonless = cell.text.removeprefix(":") if not entries[-1][1] else cell.text
            if colonless:  # `ep : 4` and `ep :4`
                shift = len(cell.text) - len(colonless)
                entries[-1][1].append(Cell(colonless, cell.line, cell.column + shift))
            continue
        name, colon, value = cell.text.partition(":")
        if name in _KNOWN:
            values = [Cell(value, cell.line, cell.column + len(name) + 1)] if value else []
            entries.append((Cell(name, cell.line, cell.column), values))
        else:
            entries.append((Cell(cell.text[:-1], cell.line, cell.column), []))
    return entries


class _HeaderReader:
    """Gathers the keys of one header and what is wrong with them."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._numbers: dict[str, int | None] = {}
        self._lists: dict[str, tuple[int, ...]] = {}
        self._column: dict[str, int] = {}

    def take(self, key: Cell | None, values: list[Cell]) -> None:
        if key is None:
            self._ignore(values)
        elif key.text not in _KNOWN:
            found = Cell(" ".join(value.text for value in values), 0, 0).shown() if values else "nothing"
            self._findings.add("note", "unknown-key", f"key {key.shown()} with {found}: not known; ignored", key)
        elif key.text in _LISTS:
            self._place(key, key.text)
            self._lists[key.text] = self._list(key, values)
        else:
            field = _NUMBERS[key.text]
            self._place(key, field)
            self._numbers[field] = self._number(key, field, values)

    def result(self) -> Header:
        number = self._numbers.get
        return Header(
            tp=number("tp"),
            ep=number("ep"),
            pp=number("pp"),
            vpp=number("vpp"),
            ga=number("ga"),
            all_gpus=number("all_gpus"),
            pp_comm=number("pp_comm"),
            checkpoints=self._lists.get("checkpoints", ()),
            checkpoint_initiates=self._lists.get("checkpoint_initiates", ()),
            column=self._column,
        )

    def _place(self, key: Cell, field: str) -> None:
        if field in self._column:
            message = f"key {key.shown()} again, expected once; this one counts"
            self._findings.add("warning", "repeated-key", message, key)
        # Under both names: those who ask know either the file's key or the field of Header.
        self._column[field] = self._column[key.text] = key.column

    def _number(self, key: Cell, field: str, values: list[Cell]) -> int | None:
        if not values:
            self._findings.add("error", "not-a-number", f"{key.text}: found nothing, expected {_EXPECTED}", key)
            return None
        self._ignore(values[1:])
        value = self._findings.number(values[0], key.text, _EXPECTED, lenient=True)
        if value == 0 and field in _DEGREES:
            message = f"{key.text}: found {values[0].shown()}, expected 1 or more; read as 1"
            self._findings.add("warning", "zero-degree", message, values[0])
            return 1
        if value == 0 and field in _POSITIVE:
            message = f"{key.text}: found {values[0].shown()}, expected 1 or more; read as not given"
            self._findings.add("warning", "zero-degree", message, values[0])
            return None
        return value

    def _list(self, key: Cell, values: list[Cell]) -> tuple[int, ...]:
        """The indices of `N l1..lN`."""
        if not values:
            message = f"{key.text}: found nothing, expected a number of rows and their indices"
            self._findings.add("error", "checkpoint-list", message, key)
            return ()
        announced, *listed = values
        count = self._findings.number(announced, key.text, _EXPECTED, lenient=True)
        if count != len(listed):
            message = f"{key.text}: found {len(listed)} row indices after the number {count}, expected {count}"
            self._findings.add("error", "checkpoint-list", message, announced)
            return ()
        return tuple(self._findings.number(cell, key.text, "a row index", lenient=True) for cell in listed)

    def _ignore(self, cells: list[Cell]) -> None:
        for cell in cells:
            message = f"found {cell.shown()} in the header, expected a key; ignored"
            self._findings.add("note", "stray-value", message, cell)
