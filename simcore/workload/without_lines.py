"""A workload without some lines of its file (`--without-lines`), to try how a file could be repaired."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from simcore.diagnostics import Diagnostic, UsageError, printable
from simcore.records import replace
from simcore.units import plural
from simcore.workload.model import PHASES, Cells, Workload

_FLAG = "--without-lines"
# The code for a stated count of rows that the file does not have.
ROW_COUNT = "row-count"


def line_range(text: str) -> tuple[int, int]:
    """Returns the first and the last of the lines that `82-83` or `82` names. Raises `UsageError`."""
    first, dash, last = text.partition("-")
    texts = (first, last if dash else first)
    # 12 digits are far beyond the lines of any file that is read.
    if all(word.isascii() and word.isdecimal() and len(word) < 13 for word in texts):
        begin, end = map(int, texts)
        if 1 <= begin <= end:
            return begin, end
    raise UsageError(f"{_FLAG} {printable(text, 60)}: LINE or FROM-TO, for example 82-83, is expected")


def without_lines(workload: Workload, texts: Sequence[str]) -> Workload:
    """Returns the workload of a file without these lines, and without the diagnostics on them.

    Raises `UsageError` where no row is on one of the ranges, where none remains, and for a file in which
    something else refers to rows by index.
    """
    ranges = [line_range(text) for text in texts]
    lines = workload.line
    if not lines or min(lines) < 1:
        raise UsageError(f"{_FLAG}: rows of {printable(workload.path, 60)} stand on no lines")
    for text, (first, last) in zip(texts, ranges, strict=True):
        if not any(first <= line <= last for line in lines):
            raise UsageError(
                f"{_FLAG} {printable(text, 60)}: no row stands there; rows are on lines {min(lines)} to "
                f"{max(lines)}"
            )
    rows = [row for row, line in enumerate(lines) if any(first <= line <= last for first, last in ranges)]
    if len(rows) == len(workload):
        raise UsageError(f"{_FLAG} {' '.join(texts)}: none of {plural(len(rows), 'row')} would be left")
    result = without_rows(workload, rows)
    if result is None:
        raise UsageError(
            f"{_FLAG}: {printable(workload.path, 60)} names rows by their places (checkpoints, collectives "
            "that are waited for): edit the file"
        )
    words = f"{'line' if len(rows) == 1 else 'lines'} {' '.join(texts)}"
    diagnostics = tuple(
        _with_remaining_count(one, workload, result, words)
        for one in workload.diagnostics
        if not any(one.line is not None and first <= one.line <= last for first, last in ranges)
        and not (one.code == ROW_COUNT and result.declared_rows == len(result))
    )
    return replace(result, diagnostics=diagnostics, as_read=workload, left_out=words)


def _with_remaining_count(one: Diagnostic, workload: Workload, remaining: Workload, words: str) -> Diagnostic:
    """Returns a diagnostic of the file; one on its count of rows becomes a note of how many remain."""
    if one.code != ROW_COUNT:
        return one
    count, declared = len(remaining), remaining.declared_rows
    # A note, no warning: that would look as if the repair had failed (98 rows for 96, then 87).
    message = f"states {declared} rows; of the {len(workload)} that are there {count} are left "
    message += f"without {words}"
    brief = f"{plural(count, 'row')} left, {declared} stated"
    return replace(one, severity="note", message=message, brief=brief)


def without_rows(workload: Workload, rows: Sequence[int]) -> Workload | None:
    """Returns a file without some of its rows; None for one in which something else refers to rows by
    index.
    """
    header, phases = workload.header, map(workload.cells, PHASES)
    if header.checkpoints or header.checkpoint_initiates or header.last_bottom_layer is not None:
        return None
    if any(cells.asynchronous for cells in phases):
        return None
    if workload.as_read is not None or workload.maker is not None:
        return None
    removed = set(rows)
    remaining = [row for row in range(len(workload)) if row not in removed]

    def cells(of: Cells) -> Cells:
        return replace(
            of,
            compute_ns=array("q", (of.compute_ns[row] for row in remaining)),
            collective=[of.collective[row] for row in remaining],
            group=[of.group[row] for row in remaining],
            bytes=array("q", (of.bytes[row] for row in remaining)),
        )

    return replace(
        workload,
        name=[workload.name[row] for row in remaining],
        line=array("q", (workload.line[row] for row in remaining)),
        fwd=cells(workload.fwd),
        ig=cells(workload.ig),
        wg=cells(workload.wg),
        process_ns=array("q", (workload.process_ns[row] for row in remaining)),
        row_policy=tuple(workload.row_policy[row] for row in remaining) if workload.row_policy else (),
    )
