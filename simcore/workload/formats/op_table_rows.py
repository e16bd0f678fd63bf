"""The rows of a NeuSight op table as columns: milliseconds become ns, elements of fp32 become bytes.

Which group a collective runs on is told by its type and by the name of its row, as the
generator (mtccl of asu-gkg/simai) writes them.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence

from simcore.workload.formats.cell import COLLECTIVES, Findings, TextCell, read_number
from simcore.workload.model import LARGEST, Cells, GroupKind, Header, Workload

_PHASES = ("forward", "backward", "weight_grad")
COLUMNS = (
    "name",
    *(f"{phase}_{what}" for phase in _PHASES for what in ("compute_time", "comm_type", "comm_size")),
    "process_time",
)
_NAME, _TIME, _TYPE, _SIZE, _PROCESS = 0, (1, 4, 7), (2, 5, 8), (3, 6, 9), 10
_NS_IN_MS = 6  # powers of ten
_ELEMENT_BYTES = 4
_ASYNC = "_ASYNC"
_SENDRECV = "SENDRECV"
_TYPES = f"None, {', '.join(COLLECTIVES)}, each also with {_ASYNC}"

# By upper-case token: which collective, and whether compute goes on beside it. Some writers
# leave an absent value empty.
_KINDS: dict[str, tuple[str | None, bool]] = {"NONE": (None, False), "": (None, False)}
for _collective in COLLECTIVES:
    _KINDS[_collective] = (_collective, False)
    _KINDS[_collective + _ASYNC] = (_collective, True)
_KINDS[_SENDRECV] = (_SENDRECV, False)

# A table repeats few figures; a file made to have many must not fill the memory with them.
_REMEMBERED = 1 << 16


class TableRows:
    """The rows read so far: columns of `Workload`, in file order."""

    def __init__(self, findings: Findings) -> None:
        self.name: list[str] = []
        self.line: array[int] = array("q")
        self.phases = (Cells(), Cells(), Cells())
        self._findings = findings
        self._times: dict[str, int] = {}
        self._sizes: dict[str, int] = {}

    def take(self, row: Sequence[str], line: int, cell_at: Callable[[int], TextCell]) -> None:
        """Takes one row, its texts in the order of `COLUMNS`; after an error it is left out.

        place: the cell of a column, for messages.
        """
        name = row[_NAME]
        parsed: list[tuple[int, str | None, bool, GroupKind | None, int]] = []
        for phase in range(len(_PHASES)):
            compute = self._times.get(row[_TIME[phase]])
            if compute is None:
                compute = self._time(row[_TIME[phase]], _TIME[phase], cell_at)
            kind = _KINDS.get(row[_TYPE[phase]].upper())
            if kind is None or (kind[0] == _SENDRECV and phase == 2):
                kind = self._unknown(phase, cell_at)
            collective, asynchronous = kind
            size = self._sizes.get(row[_SIZE[phase]])
            if size is None:
                size = self._size(row[_SIZE[phase]], _SIZE[phase], cell_at)
            if compute is None or size is None:
                return
            group = self._group(name, collective, asynchronous, phase, cell_at) if collective else None
            parsed.append((compute, collective, asynchronous, group, size if collective else 0))
        if self._times.get(row[_PROCESS]) != 0 and not self._check_process(row[_PROCESS], cell_at):
            return
        self.name.append(name)
        self.line.append(line)
        for cells, (compute, collective, asynchronous, group, size) in zip(self.phases, parsed, strict=True):
            if asynchronous:
                cells.asynchronous.add(len(cells.compute_ns))
            cells.compute_ns.append(compute)
            cells.collective.append(collective)
            cells.group.append(group)
            cells.bytes.append(size)

    def workload(self, path: str) -> Workload:
        """All rows as a workload. Raises: InputError with all errors found."""
        if not self.name and not self._findings.has_errors():
            message = "found no row after the header, expected at least one"
            self._findings.add("error", "no-rows", message, TextCell("", 1, 1))
        fwd, ig, wg = self.phases
        kinds = [
            kind for kind in ("dp", "tp", "pp") if any(kind in cells.group for cells in self.phases)
        ]  # in an order of their own: sets have none
        if len(kinds) > 1:
            message = (
                f"found {' and '.join(kinds)} communication, expected one kind a table; all but dp "
                "takes no time unless --tp or --pp says how wide it is"
            )
            self._findings.add("warning", "several-kinds", message)
        if self.name and not any(ig.compute_ns) and not any(wg.compute_ns):
            message = "all backward times are 0 (a prediction of inference): backward has communication alone"
            self._findings.add("warning", "forward-only", message, brief="all backward times are 0")
        return Workload(
            path=path,
            format="op-table",
            policy="+".join(kinds) or "none",
            dialect="simai",
            header=Header(),
            name=self.name,
            line=self.line,
            fwd=fwd,
            ig=ig,
            wg=wg,
            process_ns=array("q", bytes(8 * len(self.name))),
            declared_rows=None,
            diagnostics=self._findings.diagnostics(),
            is_table=True,
        )

    def _time(self, text: str, column: int, cell_at: Callable[[int], TextCell]) -> int | None:
        value = self._parse_number(text, column, cell_at, "milliseconds", _NS_IN_MS)
        if value is not None and len(self._times) < _REMEMBERED:
            self._times[text] = value
        return value

    def _size(self, text: str, column: int, cell_at: Callable[[int], TextCell]) -> int | None:
        elements = self._parse_number(text, column, cell_at, "a number of elements", 0)
        if elements is None:
            return None
        size = elements * _ELEMENT_BYTES
        if size > LARGEST:
            self._too_large(column, cell_at, f"at most {LARGEST // _ELEMENT_BYTES} elements")
            return None
        if len(self._sizes) < _REMEMBERED:
            self._sizes[text] = size
        return size

    def _parse_number(
        self, text: str, column: int, cell_at: Callable[[int], TextCell], expected: str, shift: int
    ) -> int | None:
        """The number in a cell times 10^shift, rounded half to even; None after an error."""
        parsed = read_number(text, shift)
        what = COLUMNS[column]
        if parsed is None:
            cell = cell_at(column)
            found_text = cell.quote() if cell.text else "nothing"
            self._findings.add(
                "error", "not-a-number", f"{what}: found {found_text}, expected {expected}", cell
            )
        elif parsed.below_zero:
            cell = cell_at(column)
            message = f"{what}: found {cell.quote()}, expected 0 or more"
            self._findings.add("error", "negative-value", message, cell)
        elif parsed.value > LARGEST:
            self._too_large(column, cell_at, f"at most {LARGEST} ns" if shift else f"at most {LARGEST}")
        else:
            if not shift and not parsed.exact:
                cell = cell_at(column)
                message = f"{what}: found {cell.quote()}, expected a whole number; read as {parsed.value}"
                self._findings.add("note", "float-value", message, cell, "row")
            return parsed.value
        return None

    def _too_large(self, column: int, cell_at: Callable[[int], TextCell], expected: str) -> None:
        cell = cell_at(column)
        message = f"{COLUMNS[column]}: found {cell.quote()}, expected {expected}"
        self._findings.add("error", "value-too-large", message, cell)

    def _unknown(self, phase: int, cell_at: Callable[[int], TextCell]) -> tuple[None, bool]:
        cell = cell_at(_TYPE[phase])
        expected = _TYPES if phase == 2 else f"{_TYPES}, or {_SENDRECV}"
        message = f"{COLUMNS[_TYPE[phase]]}: found {cell.quote()}, expected {expected}; read as None"
        self._findings.add("warning", "unknown-collective", message, cell, cell.text.upper())
        return None, False

    def _group(
        self, name: str, collective: str, asynchronous: bool, phase: int, cell_at: Callable[[int], TextCell]
    ) -> GroupKind:
        if collective == _SENDRECV:
            return "pp"
        if asynchronous or name.endswith("_grad") or phase == 2:
            return "dp"
        if "tensor_model_parallel" not in name:
            cell = cell_at(_TYPE[phase])
            message = (
                f"{COLUMNS[_TYPE[phase]]}: {cell.quote()} in a row that is named neither *_grad nor "
                "*tensor_model_parallel*; tp group taken"
            )
            self._findings.add("note", "group-assumed", message, cell, "row")
        return "tp"

    def _check_process(self, text: str, cell_at: Callable[[int], TextCell]) -> bool:
        value = self._time(text, _PROCESS, cell_at)
        if value:
            cell = cell_at(_PROCESS)
            message = f"process_time: found {cell.quote()}, expected 0; ignored"
            self._findings.add("note", "process-time", message, cell, "row")
        return value is not None
