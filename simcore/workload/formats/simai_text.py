"""The SimAI / AICB workload text and its ASTRA-sim 1.0 ancestor, for the two transformer policies.

Line 1 is the header, line 2 the number of rows, then come rows of 12 cells between blanks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from simcore.workload.formats.cell import LARGEST, Cell, cells_of, read_number
from simcore.workload.formats.findings import Findings
from simcore.workload.formats.format import Format, Head, is_comment, without_bom
from simcore.workload.formats.simai_header import drop_missing_rows, read_header
from simcore.workload.formats.simai_lines import read_rows, starts_row
from simcore.workload.formats.simai_rows import PROCESS, ROW_CELLS, Rows
from simcore.workload.model import Dialect, Header, Workload

POLICIES = ("HYBRID_TRANSFORMER", "HYBRID_TRANSFORMER_FWD_IN_BCKWD")

_SIMAI_KEYS = ("ep", "pp", "vpp", "ga", "all_gpus", "pp_comm")
_AICB_NAME = (
    r"(grad_|embedding_|attention_|mlp_|moe_|cross_entropy|optimizer)|(norm|layernorm|micro_test)(_?\d+)?$"
)
_AICB_PROCESS_NS = 100


def read(path: str, data: bytes) -> Workload:
    """The workload in `data`, the bytes of a file; `path` is for messages.

    Raises: InputError with every place that cannot be read.
    """
    findings = Findings(path)
    lines = _lines(_decoded(data, findings))
    start = _skip_to_content(lines, 0, findings)
    policy, header, after = read_header(lines, start, findings)
    declared, count_cell, after = _read_count(lines, after, findings)
    rows = Rows(findings)
    read_rows(lines, after, rows, findings)
    if not rows:
        findings.add("error", "no-rows", "found no complete row after the header, expected at least one")
    elif declared is not None and declared != len(rows):
        findings.add("warning", "row-count", _count_message(declared, len(rows)), count_cell)
    if rows:
        header = replace(header, **drop_missing_rows(header, len(rows), findings))
    dialect = _dialect(header, rows)
    if dialect == "simai":
        _note_process_times(lines, rows, findings)
    fwd, ig, wg = rows.phases
    return Workload(
        path=path,
        format=dialect,
        policy=policy,
        dialect=dialect,
        header=header,
        name=rows.name,
        line=rows.line,
        fwd=fwd,
        ig=ig,
        wg=wg,
        process_ns=rows.process_ns,
        declared_rows=declared,
        diagnostics=findings.diagnostics(),
    )


def _sniff(head: Head) -> bool:
    return bool(head.lines) and head.lines[0].split(None, 1)[0].upper() in POLICIES


FORMAT = Format("SimAI workload", _sniff, read)


def _decoded(data: bytes, findings: Findings) -> str:
    data = without_bom(data)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        text = data.decode("utf-8", "surrogateescape")
    for number, line in enumerate(_lines(text), 1):
        for match in re.finditer(r"[\udc80-\udcff]", line):
            byte = ord(match.group()) - 0xDC00
            message = f"found the byte 0x{byte:02x}, expected UTF-8 text; kept, and shown escaped"
            findings.add("warning", "not-utf-8", message, Cell("", number, match.start() + 1), "byte")
    return text


def _lines(text: str) -> list[str]:
    """The lines of a text. Not splitlines(): that breaks at form feeds and other blanks as well."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.split("\n")


def _skip_to_content(lines: Sequence[str], start: int, findings: Findings) -> int:
    """The index of the first line from `start` on that is neither blank nor a comment."""
    while start < len(lines):
        cells = cells_of(lines[start], start + 1)
        if cells and is_comment(cells[0].text):
            message = f"a comment: {cells[0].shown()}; the line is ignored"
            findings.add("note", "comment", message, cells[0], "line")
        elif cells:
            break
        start += 1
    return start


def _read_count(
    lines: Sequence[str], start: int, findings: Findings
) -> tuple[int | None, Cell | None, int]:
    raise NotImplementedError


def _count_message(declared: int, present: int) -> str:
    if declared < present:
        return f"the count says {declared} rows, found {present}; all are read (SimAI would stop after {declared})"
    return f"the count says {declared} rows, found {present}; these are read"


def _dialect(header: Header, rows: Rows) -> Dialect:
    """SPEC 4: which of the two programs of the same grammar a file is written for."""
    fwd, ig, wg = rows.phases
    by_expert = any(kind in cells.group for cells in (fwd, ig, wg) for kind in ("ep", "dp_ep"))
    if by_expert or any(key in header.column for key in _SIMAI_KEYS):
        return "simai"
    if rows.process_ns.count(_AICB_PROCESS_NS) == len(rows):
        return "simai"
    return "simai" if any(re.match(_AICB_NAME, name) for name in set(rows.name)) else "astra-sim-1"


def _note_process_times(lines: Sequence[str], rows: Rows, findings: Findings) -> None:
    for row, time in enumerate(rows.process_ns):
        if time not in (0, _AICB_PROCESS_NS):
            cells = cells_of(lines[rows.line[row] - 1], rows.line[row])
            cell = cells[PROCESS] if len(cells) == ROW_CELLS else cells[0]
            message = f"process time: found {time} ns; not counted, as SimAI's dialect is read without it"
            findings.add("note", "process-time", message, cell, "row")
