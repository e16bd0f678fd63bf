"""The rows of a SimAI workload as columns, one 12-cell row at a time or a block of clean ones."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence

from simcore.workload.formats.cell import SAFE_DIGITS, Cell, read_number
from simcore.workload.formats.collectives import KINDS, NO_COLLECTIVE, Kind
from simcore.workload.formats.findings import Findings
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
            if not all(text.isdigit() and text.isascii() and len(text) <= SAFE_DIGITS for text in odd):
                return False
            repeated += [("dependency", "row")] * len(odd)
        try:
            compute = [_whole_numbers(columns[cell]) for cell in COMPUTE]
            sizes = [_whole_numbers(columns[cell]) for cell in SIZE]
            process = _whole_numbers(columns[PROCESS])
        except (ValueError, OverflowError):
            return False
        kinds = [_kinds(columns[cell], KINDS[phase], repeated) for phase, cell in enumerate(TYPE)]
        if not all(self._findings.is_known(*one) for one in set(repeated)):
            return False
        for one in repeated:
            self._findings.count(*one)
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

    def take(self, row: Sequence[Cell]) -> None:
        """Takes one row of 12 cells; what is wrong becomes a finding, and after an error it is left out."""
        if not self._check_dependency(row[DEPENDENCY]):
            return
        taken: list[tuple[int, Kind, int]] = []
        for phase, what in enumerate(_PHASES):
            compute = self._number(row[COMPUTE[phase]], f"{what} compute time", _TIME)
            kind = self._kind(row[TYPE[phase]], KINDS[phase], what)
            size = self._number(row[SIZE[phase]], f"{what} size", "bytes")
            if compute is None or size is None:
                return
            taken.append((compute, kind, size))
        process = self._number(row[PROCESS], "process time", _TIME)
        if process is None:
            return
        self.name.extend(self._shared([row[0].text]))
        self.line.append(row[0].line)
        for cells, (compute, (collective, group), size) in zip(self.phases, taken, strict=True):
            cells.compute_ns.append(compute)
            cells.collective.append(collective)
            cells.group.append(group)
            cells.bytes.append(size if collective else 0)
        self.process_ns.append(process)

    def awaits_policy(self) -> bool:
        """Whether the last row taken still lacks the policy that it must have."""
        return self._customized and bool(self.name) and len(self.name) - 1 not in self._policies

    def take_policy(self, cell: Cell) -> None:
        """Takes the policy of the last row."""
        policy = cell.text.upper()
        if policy not in ROW_POLICIES:
            message = f"policy of the row: found {cell.shown()}, expected {_POLICIES}"
            self._findings.add("error", "row-policy", message, cell)
        self._policies[len(self.name) - 1] = policy

    def policies(self) -> tuple[str, ...]:
        """Each row's own policy; a row that lacks one is an error. () where rows have none."""
        if not self._customized:
            return ()
        for row, name in enumerate(self.name):
            if row not in self._policies:
                cell = Cell(name, self.line[row], 1)
                message = f"the row {cell.shown()}: found no policy after its {ROW_CELLS} cells"
                self._findings.add("error", "row-policy", f"{message}, expected {_POLICIES}", cell)
        return tuple(self._policies.get(row, "") for row in range(len(self.name)))

    def _shared(self, names: Iterable[str]) -> list[str]:
        """The names, equal ones as one object: a file repeats few names in many rows."""
        return [self._names.setdefault(name, name) for name in names]

    def _number(self, cell: Cell, what: str, unit: str) -> int | None:
        return self._findings.number(cell, what, f"{unit} as a whole number", floats_as="row")

    def _kind(self, cell: Cell, table: dict[str, Kind], what: str) -> Kind:
        kind = table.get(cell.text.upper())
        if kind is None:
            message = f"{what} collective: found {cell.shown()}, expected {_TYPES}; read as NONE"
            self._findings.add("warning", "unknown-collective", message, cell, cell.text.upper())
            return NO_COLLECTIVE
        return kind

    def _check_dependency(self, cell: Cell) -> bool:
        number = read_number(cell.text)
        if number is None:
            message = f"dependency: found {cell.shown()}, expected a whole number"
            self._findings.add("error", "not-a-number", message, cell)
            return False
        if number.value != -1 or not number.integer:
            message = f"dependency: found {cell.shown()}, expected -1; ignored, rows run in file order"
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
    if not (digits.isascii() and digits.isdigit()):
        raise ValueError
    return array("q", map(int, column))
