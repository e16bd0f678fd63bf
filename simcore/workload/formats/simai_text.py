"""The SimAI / AICB workload text and its ASTRA-sim 1.0 ancestor, of any policy or none.

Line 1 is the header, line 2 the number of rows, then come rows of 12 cells between blanks.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Sequence
from typing import Protocol

from simcore.names import Dialect
from simcore.workload.formats.cell import (
    Findings,
    TextCell,
    cells_of,
    decode_text,
    lines_of,
    read_number,
    skip_to_content,
)
from simcore.workload.formats.format import FileHead, Format
from simcore.workload.formats.simai_header import HeaderReader, read_policy_header
from simcore.workload.formats.simai_rows import PROCESS, ROW_CELLS, Rows, read_rows, starts_row
from simcore.workload.model import LARGEST, Cells, Workload
from simcore.workload.policies import CUSTOMIZED, NO_POLICY, OF_BOTH_DIALECTS, TRANSFORMER

_SIMAI_KEYS = ("ep", "pp", "vpp", "ga", "all_gpus", "pp_comm")
# `layernorm1` is a row of ASTRA-sim's own transformer: these three are AICB's only as they stand.
_AICB_NAMES = frozenset(("norm", "layernorm", "micro_test"))
_AICB_PREFIXES = ("grad_", "embedding_", "attention_", "mlp_", "moe_", "cross_entropy", "optimizer")
_AICB_PROCESS_NS = 100
# What AICB writes for compute that it has not timed.
_PLACEHOLDER_NS = 1


def read(path: str, data: bytes) -> Workload:
    """The workload in `data`, the bytes of a file that begins with its policy; `path` is for messages.

    Raises: InputError with every place that cannot be read.
    """
    findings = Findings(path)
    lines = lines_of(decode_text(data, findings))
    start = skip_to_content(lines, 0, findings)
    header_reader = HeaderReader(findings)
    policy = lines[start].split(None, 1)[0].upper()
    if policy in TRANSFORMER:
        after = header_reader.read(lines, start)
    else:
        after = read_policy_header(lines, start, header_reader, findings)
    declared, count_cell, after = _read_count(lines, after, findings)
    return _read_body(path, policy, header_reader, lines, after, (declared, count_cell), findings)


def read_without_header(path: str, data: bytes) -> Workload:
    """The workload in `data`, the bytes of a file of rows alone; `path` is for messages.

    Raises: InputError with every place that cannot be read.
    """
    findings = Findings(path)
    lines = lines_of(decode_text(data, findings))
    # Which of the two dialects will run is not known yet: parameters tell.
    message = (
        "found a row, expected a policy: dialect astra-sim-1, the default here, runs every collective "
        "over all ranks, in the order of HYBRID_TRANSFORMER; dialect simai runs each in its own group, "
        "as SimAI does"
    )
    start = skip_to_content(lines, 0, findings)
    findings.add("warning", "no-policy", message, cells_of(lines[start], start + 1)[0])
    return _read_body(path, NO_POLICY, HeaderReader(findings), lines, 0, (None, None), findings)


def _read_body(
    path: str,
    policy: str,
    header_reader: HeaderReader,
    lines: list[str],
    after: int,
    count: tuple[int | None, TextCell | None],
    findings: Findings,
) -> Workload:
    """The rows from `lines[after]` on, and all of the workload. count: declared rows and their cell."""
    declared, count_cell = count
    rows = Rows(findings, customized=policy == CUSTOMIZED)
    read_rows(lines, after, rows, findings)
    header = header_reader.header(len(rows))
    row_policy = rows.policies()
    if not rows and not findings.has_errors():
        message = "found no row after the header, expected at least one"
        findings.add("error", "no-rows", message, TextCell("", header.line, 1))
    dialect = dialect_of(header.column, rows) if policy in OF_BOTH_DIALECTS else "astra-sim-1"
    if declared is not None and declared != len(rows):
        reader = "SimAI" if dialect == "simai" and policy in TRANSFORMER else "ASTRA-sim"
        message, brief = _count_message(declared, len(rows), reader), f"{len(rows)} rows, {declared} stated"
        findings.add("warning", "row-count", message, count_cell, brief=brief)
    if dialect == "simai":
        _note_process_times(lines, rows, findings)
    if rows and max(max(cells.compute_ns) for cells in (rows.fwd, rows.ig, rows.wg)) <= _PLACEHOLDER_NS:
        message = _no_compute_message(len(rows), dialect)
        findings.add("warning", "compute-placeholder", message, TextCell("", rows.line[0], 1))
    diagnostics = findings.diagnostics()
    workload = Workload(
        path=path,
        format=dialect,
        policy=policy,
        dialect=dialect,
        header=header,
        name=rows.name,
        line=rows.line,
        fwd=rows.fwd,
        ig=rows.ig,
        wg=rows.wg,
        process_ns=rows.process_ns,
        declared_rows=declared,
        diagnostics=diagnostics,
        row_policy=row_policy,
    )
    if not header.inference:
        return workload
    from simcore.workload.inference import without_backward

    return without_backward(workload)


def _no_compute_message(rows: int, dialect: Dialect) -> str:
    who = "as AICB writes them without a GPU" if dialect == "simai" else "which stand for no duration"
    return (
        f"found 0 or 1 ns in all {3 * rows} compute cells, {who}: compute is not modelled, the step is "
        "communication alone"
    )


def _sniff(head: FileHead) -> bool:
    return bool(head.lines) and head.lines[0].split(None, 1)[0].upper() in TRANSFORMER


FORMATS = (Format("SimAI workload", _sniff, read),)


def _read_count(lines: list[str], start: int, findings: Findings) -> tuple[int | None, TextCell | None, int]:
    """The number of rows, its cell, and the index of the line where the rows begin.

    The number is None where line 2 has none. If rows follow it in its line, it is blanked out.
    """
    start = skip_to_content(lines, start, findings)
    if start == len(lines):
        return None, None, start
    # The count, and what tells whether a row follows it: the line may have millions of cells.
    first, *rest = cells = cells_of(lines[start], start + 1, most=ROW_CELLS + 1)
    parsed = read_number(first.text)
    counts = parsed is not None and parsed.exact and 0 <= parsed.value <= LARGEST
    if starts_row(cells) or (not counts and len(cells) >= ROW_CELLS):
        message = f"found the row {first.quote()}, expected the number of rows; read without it"
        findings.add("warning", "no-row-count", message, first)
        return None, None, start
    if parsed is None or not counts:
        message = f"found {first.quote()}, expected the number of rows; the line is ignored"
        findings.add("warning", "no-row-count", message, first)
        return None, None, start + 1
    if starts_row(rest):
        end = first.column - 1 + len(first.text)
        lines[start] = " " * end + lines[start][end:]
        return parsed.value, first, start
    if rest:
        message = f"found {rest[0].quote()} after the number of rows, expected a new line; ignored"
        findings.add("note", "stray-value", message, rest[0])
    return parsed.value, first, start + 1


def _count_message(declared: int, present: int, reader: str) -> str:
    """reader: the program that the file is for, and that runs its policy."""
    if declared < present:
        return f"found {present} rows, expected {declared}; all are read, {reader} stops after {declared}"
    return f"found {present} rows, expected {declared}; those found are read"


class HasRows(Protocol):
    """What tells a dialect: the columns of a workload, or of rows on their way to one."""

    @property
    def name(self) -> list[str]: ...
    @property
    def fwd(self) -> Cells: ...
    @property
    def ig(self) -> Cells: ...
    @property
    def wg(self) -> Cells: ...
    @property
    def process_ns(self) -> array[int]: ...


def dialect_of(keys: Collection[str], rows: HasRows) -> Dialect:
    """Which of the two programs of the same grammar a file is written for; `keys` of its header."""
    by_expert = any(kind in cells.group for cells in (rows.fwd, rows.ig, rows.wg) for kind in ("ep", "dp_ep"))
    if by_expert or any(key in keys for key in _SIMAI_KEYS):
        return "simai"
    if rows.process_ns.count(_AICB_PROCESS_NS) == len(rows.name):
        return "simai"
    by_name = any(name in _AICB_NAMES or name.startswith(_AICB_PREFIXES) for name in set(rows.name))
    return "simai" if by_name else "astra-sim-1"


def _note_process_times(lines: Sequence[str], rows: Rows, findings: Findings) -> None:
    timed_rows = [row for row, time in enumerate(rows.process_ns) if time not in (0, _AICB_PROCESS_NS)]
    if not timed_rows:
        return
    row = timed_rows[0]
    cells = cells_of(lines[rows.line[row] - 1], rows.line[row], most=ROW_CELLS + 1)
    cell = cells[PROCESS] if len(cells) == ROW_CELLS else cells[0]
    time = rows.process_ns[row]
    message = f"process time: found {time} ns, counted only in dialect astra-sim-1; ignored"
    findings.add("note", "process-time", message, cell, times=len(timed_rows))
