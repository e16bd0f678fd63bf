"""The rows of a SimAI workload as columns, one 12-cell row at a time or a block of clean ones.

Where the rows are in the lines of a SimAI workload.

SimAI reads its rows as a stream of cells, so a row may be broken over lines and a line may
hold several rows. On the other hand a line may have cells after its twelfth that mean
nothing to us (17 were seen), or a row's own policy (13, HYBRID_CUSTOMIZED). What follows a row
is therefore the beginning of another one only if it fits as such, together with the next line.
A line of 21 cells may have the three sizes of a matrix product after each compute time.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Sequence

from simcore.workload.formats.cell import (
    KINDS,
    NO_COLLECTIVE,
    SAFE_DIGITS,
    Findings,
    Kind,
    TextCell,
    cells_of,
    looks_like_collective,
    read_number,
    skips_comment,
)
from simcore.workload.formats.format import is_comment
from simcore.workload.model import Cells
from simcore.workload.policies import ROW_POLICIES

ROW_CELLS = 12
DEPENDENCY = 1
PROCESS = 11
COMPUTE, TYPE, SIZE = (2, 5, 8), (3, 6, 9), (4, 7, 10)  # cells of fwd, ig, wg
_PHASES = ("forward", "input-gradient", "weight-gradient")
_TIME = "nanoseconds"
_POLICIES = f"{', '.join(ROW_POLICIES[:-1])} or {ROW_POLICIES[-1]}"
_TYPES = "NONE, ALLREDUCE, ALLGATHER, REDUCESCATTER or ALLTOALL, alone or with _EP or _DP_EP"


class Rows:
    """The rows read so far: columns of `Workload`, in file order.

    customized: each row is followed by a policy of its own (HYBRID_CUSTOMIZED).
    """

    def __init__(self, findings: Findings, customized: bool = False) -> None:
        self.name: list[str] = []
        self.line: array[int] = array("q")
        self.fwd, self.ig, self.wg = self.phases = (Cells(), Cells(), Cells())
        self.process_ns: array[int] = array("q")
        self._findings = findings
        self._names: dict[str, str] = {}
        self._customized = customized
        self._policies: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self.name)

    def take_clean(self, lines: Iterable[int], rows: Sequence[Sequence[str]]) -> bool:
        """Takes rows of 12 cells each if there is nothing new to say about any of them.

        Whole columns are checked and converted at once: a row costs 3 us this way and 20 us
        in `take`. What was said of a row before is counted. On False nothing was taken.
        """
        if self._customized:
            return False
        columns = list(zip(*rows, strict=True))
        repeated: list[tuple[str, str]] = []
        if columns[DEPENDENCY].count("-1") != len(rows):
            odd = [text for text in columns[DEPENDENCY] if text != "-1"]
            if not all(text.isdecimal() and text.isascii() and len(text) <= SAFE_DIGITS for text in odd):
                return False
            repeated += [("dependency", "row")] * len(odd)
        try:
            compute = [_whole_numbers(columns[cell]) for cell in COMPUTE]
            sizes = [_whole_numbers(columns[cell]) for cell in SIZE]
            process = _whole_numbers(columns[PROCESS])
        except (ValueError, OverflowError):
            return False
        kinds = [_kinds(columns[cell], KINDS[phase], repeated) for phase, cell in enumerate(TYPE)]
        if not all(self._findings.has(*repeat) for repeat in set(repeated)):
            return False
        for repeat in repeated:
            self._findings.count(*repeat)
        for phase, cells in enumerate(self.phases):
            cells.compute_ns.extend(compute[phase])
            cells.collective.extend([collective for collective, _ in kinds[phase]])
            cells.group.extend([group for _, group in kinds[phase]])
            sized = zip(sizes[phase], kinds[phase], strict=True)
            cells.bytes.extend([size if collective else 0 for size, (collective, _) in sized])
        self.name.extend(self._shared(columns[0]))
        self.line.extend(lines)
        self.process_ns.extend(process)
        return True

    def take(self, row: Sequence[TextCell]) -> None:
        """Takes one row of 12 cells; what is wrong becomes a finding, and after an error it is left out."""
        if not self._check_dependency(row[DEPENDENCY]):
            return
        parsed: list[tuple[int, Kind, int]] = []
        for phase, what in enumerate(_PHASES):
            compute = self._parse_number(row[COMPUTE[phase]], f"{what} compute time", _TIME)
            kind = self._kind(row[TYPE[phase]], KINDS[phase], what)
            size = self._parse_number(row[SIZE[phase]], f"{what} size", "bytes")
            if compute is None or size is None:
                return
            parsed.append((compute, kind, size))
        process = self._parse_number(row[PROCESS], "process time", _TIME)
        if process is None:
            return
        self.name.extend(self._shared([row[0].text]))
        self.line.append(row[0].line)
        for cells, (compute, (collective, group), size) in zip(self.phases, parsed, strict=True):
            cells.compute_ns.append(compute)
            cells.collective.append(collective)
            cells.group.append(group)
            cells.bytes.append(size if collective else 0)
        self.process_ns.append(process)

    def awaits_policy(self) -> bool:
        """Whether the last row taken still lacks the policy that it must have."""
        return self._customized and bool(self.name) and len(self.name) - 1 not in self._policies

    def take_policy(self, cell: TextCell) -> None:
        """Takes the policy of the last row."""
        policy = cell.text.upper()
        if policy not in ROW_POLICIES:
            message = f"policy of the row: found {cell.quote()}, expected {_POLICIES}"
            self._findings.add("error", "row-policy", message, cell)
        self._policies[len(self.name) - 1] = policy

    def policies(self) -> tuple[str, ...]:
        """Each row's own policy; a row that lacks one is an error. () where rows have none."""
        if not self._customized:
            return ()
        for row, name in enumerate(self.name):
            if row not in self._policies:
                cell = TextCell(name, self.line[row], 1)
                message = f"the row {cell.quote()}: found no policy after its {ROW_CELLS} cells"
                self._findings.add("error", "row-policy", f"{message}, expected {_POLICIES}", cell)
        return tuple(self._policies.get(row, "") for row in range(len(self.name)))

    def _shared(self, names: Iterable[str]) -> list[str]:
        """The names, equal ones as one object: a file repeats few names in many rows."""
        return [self._names.setdefault(name, name) for name in names]

    def _parse_number(self, cell: TextCell, what: str, unit: str) -> int | None:
        return self._findings.parse_number(cell, what, f"{unit} as a whole number", floats_as="row")

    def _kind(self, cell: TextCell, table: dict[str, Kind], what: str) -> Kind:
        kind = table.get(cell.text.upper())
        if kind is None:
            message = f"{what} collective: found {cell.quote()}, expected {_TYPES}; read as NONE"
            self._findings.add("warning", "unknown-collective", message, cell, cell.text.upper())
            return NO_COLLECTIVE
        return kind

    def _check_dependency(self, cell: TextCell) -> bool:
        parsed = read_number(cell.text)
        if parsed is None:
            message = f"dependency: found {cell.quote()}, expected a whole number"
            self._findings.add("error", "not-a-number", message, cell)
            return False
        if parsed.value != -1 or not parsed.integer:
            message = f"dependency: found {cell.quote()}, expected -1; ignored, rows run in file order"
            self._findings.add("note", "dependency", message, cell, "row")
        return True


def _kinds(column: Sequence[str], table: dict[str, Kind], repeated: list[tuple[str, str]]) -> list[Kind]:
    """The collectives of a column; unknown ones are NONE, and a finding that is added to `repeated`."""
    try:
        return [table[token] for token in column]
    except KeyError:
        pass
    tokens = [token.upper() for token in column]
    repeated += [("unknown-collective", token) for token in tokens if token not in table]
    return [table.get(token, NO_COLLECTIVE) for token in tokens]


def _whole_numbers(column: Sequence[str]) -> array[int]:
    """The numbers of a column.

    Raises: ValueError unless all cells are ASCII digits, OverflowError above int64.
    """
    digits = "".join(column)
    if not (digits.isascii() and digits.isdecimal()):
        raise ValueError
    return array("q", map(int, column))


# Clean lines are taken a block at a time; one line that is not sends its block the slow way.
_BLOCK = 128
# Characters: no line of one row is so long, and as cells one of 100 MB would need gigabytes.
_LONG = 1 << 16
_BLANK = re.compile(r"\s")
# A name, a dependency, a compute time and the first collective: less is no sign of a row.
_TELLING_CELLS = 4
# A fork's row: after each of the three compute times m, k and n of its matrix product.
_GEMM_CELLS = 21
_GEMM_SIZES = (3, 4, 5, 9, 10, 11, 15, 16, 17)


def read_rows(lines: Sequence[str], start: int, rows: Rows, findings: Findings) -> None:
    """Reads the rows of `lines[start:]` into `rows`; `lines[0]` is line 1."""
    reader = _LineReader(rows, findings)
    for first in range(start, len(lines), _BLOCK):
        reader.take_block(lines[first : first + _BLOCK], first + 1)
    reader.finish()


def _fits(cells: Sequence[TextCell]) -> bool:
    """Whether the first twelve cells, or those there are, can be the beginning of a row."""
    if cells and cells[0].text.upper() in KINDS[0]:
        return False
    return all(
        looks_like_collective(cell.text) if index in TYPE else read_number(cell.text) is not None
        for index, cell in enumerate(cells[1:ROW_CELLS], 1)
    )


def starts_row(cells: Sequence[TextCell]) -> bool:
    """Whether the cells are a row, or the beginning of one with its first collective."""
    return len(cells) >= _TELLING_CELLS and _fits(cells)


def _is_policy(cells: Sequence[TextCell]) -> bool:
    """Whether the first cell is a row's own policy, and not the name of a row."""
    return cells[0].text.upper() in ROW_POLICIES and not starts_row(cells)


class _LineReader:
    """Takes lines and gives rows; holds what a line left over until the next one explains it."""

    def __init__(self, rows: Rows, findings: Findings) -> None:
        self._rows = rows
        self._findings = findings
        self._left: list[TextCell] = []
        self._left_by_row = False  # the leftover follows a complete row of its line

    def take_block(self, lines: Sequence[str], first_line: int) -> None:
        """Takes lines, of which the first is line `number`."""
        if not self._left and max(map(len, lines)) <= _LONG:
            split = [line.split() for line in lines]
            rows = [cells for cells in split if cells]
            if not rows:
                return
            clean = all(len(cells) == ROW_CELLS for cells in rows)
            if clean and not any(is_comment(cells[0]) for cells in rows):
                line_numbers = [first_line + index for index, cells in enumerate(split) if cells]
                if self._rows.take_clean(line_numbers, rows):
                    return
        for index, line in enumerate(lines):
            if len(line) > _LONG:
                self._take_long_line(line, first_line + index)
            else:
                self._take_line(cells_of(line, first_line + index))

    def finish(self) -> None:
        """The end of the file: nothing explains what is left any more."""
        if not self._left:
            return
        first, count = self._left[0], len(self._left)
        if self._left_by_row and not starts_row(self._left):
            message = f"found {first.quote()} after the {ROW_CELLS} cells of a row, expected no more; ignored"
            self._findings.add("warning", "extra-cells", message, first, "row")
        else:
            message = f"the row {first.quote()}: found {count} cells, expected {ROW_CELLS}"
            self._findings.add("error", "incomplete-row", message, first)
        self._left = []

    def _take_line(self, cells: list[TextCell]) -> None:
        if not cells or skips_comment(cells, self._findings):
            return
        if len(cells) == _GEMM_CELLS and not self._left:
            cells = self._without_gemms(cells)
        elif self._rows.awaits_policy() and not self._left and _is_policy(cells):
            self._rows.take_policy(cells.pop(0))
            if not cells:
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
            if self._rows.awaits_policy() and start < len(cells) and not starts_row(cells[start:]):
                self._rows.take_policy(cells[start])
                start += 1
        self._left, self._left_by_row = cells[start:], True

    def _without_gemms(self, cells: list[TextCell]) -> list[TextCell]:
        """The twelve cells of a row that has matrix sizes beside them; other cells as they are."""
        twelve = [cell for index, cell in enumerate(cells) if index not in _GEMM_SIZES]
        if not _fits(twelve):
            return cells
        message = f"found m, k and n of a matrix product after each time of {cells[0].quote()}; ignored"
        self._findings.add("note", "gemm-columns", message, cells[0], "row")
        return twelve

    def _take_long_line(self, line: str, line_number: int) -> None:
        """Takes a line that may hold a million rows a piece at a time, with the outcome of `_take_line`."""
        first = cells_of(line, line_number, most=2 * ROW_CELLS)
        self._take_line(first)
        if len(first) < 2 * ROW_CELLS or is_comment(first[0].text):
            return
        at = first[-1].column - 1 + len(first[-1].text)
        size = _LONG
        # What follows the first row goes on as long as it is rows; the leftover is read once more.
        while len(self._left) < ROW_CELLS and at < len(line):
            if self._left:
                at, self._left = self._left[0].column - 1, []
            blank = _BLANK.search(line, at + size)
            end = blank.start() if blank else len(line)
            chunk = line[at:end]
            tokens = chunk.split()
            rows = [tokens[cell : cell + ROW_CELLS] for cell in range(0, len(tokens), ROW_CELLS)]
            rest = rows.pop() if rows and len(rows[-1]) < ROW_CELLS else []
            if not rows and end < len(line):
                size *= 2  # a cell of megabytes
                continue
            if not self._take_following(chunk, rows, line_number, at):
                self._take_fitting(cells_of(line, line_number, len(rows) * ROW_CELLS, at))
            if rest and len(self._left) < ROW_CELLS:
                at += len(chunk.rsplit(None, len(rest))[0]) if rows else 0
                self._left = cells_of(line, line_number, len(rest), at)
            if end == len(line):
                return
            at = end

    def _take_following(self, chunk: str, rows: Sequence[Sequence[str]], line_number: int, at: int) -> bool:
        """Takes rows of one line, after others, if there is nothing to say but that.

        at: where `piece`, their text, begins in the line.
        """
        if any(row[0].upper() in KINDS[0] for row in rows):
            return False
        if not rows or not self._rows.take_clean([line_number] * len(rows), rows):
            return not rows
        blanks = len(chunk) - len(chunk.lstrip())
        self._note_break(TextCell(rows[0][0], line_number, at + blanks + 1), len(rows))
        return True

    def _take_fitting(self, cells: Sequence[TextCell]) -> None:
        """Takes rows of one line, after others, as long as they fit; the first that does not is left over."""
        for start in range(0, len(cells), ROW_CELLS):
            row = list(cells[start : start + ROW_CELLS])
            if not _fits(row):
                self._left = row
                return
            self._note_break(row[0])
            self._rows.take(row)

    def _goes_on(self, cells: list[TextCell]) -> bool:
        """Whether a line goes on with the row that the leftover begins."""
        together = _fits((self._left + cells)[:ROW_CELLS])
        if self._left_by_row:
            return together and not starts_row(cells)
        return together or not (starts_row(cells) or len(cells) >= ROW_CELLS)

    def _note_break(self, cell: TextCell, times: int = 1) -> None:
        message = f"the row {cell.quote()} does not have a line of its own; read on by cells"
        self._findings.add("note", "row-breaks", message, cell, "row", times)
