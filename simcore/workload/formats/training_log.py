"""What trainers print of their steps: logs of Megatron-LM, Megatron-Bridge and NeMo state how long each is.

A log is a table of spans of one rank, a span a step, each behind the one before.
"""

from __future__ import annotations

import re

from simcore.diagnostics import Diagnostic, InputError
from simcore.workload.formats.cell import Findings, TextCell
from simcore.workload.formats.format import FileHead, Format, without_bom
from simcore.workload.formats.recordings import is_text
from simcore.workload.spans import KINDS, SpanTable

_DECIMAL = r"([0-9]{1,12}(?:\.[0-9]{1,12})?(?:[eE][-+]?[0-9]{1,2})?)"
# Of each trainer words before its time of a step, the line of a step, and ns of the unit of that time.
_LINES = (
    # ` iteration      10/     500 | consumed samples: 80 | elapsed time per iteration (ms): 1234.5 | ...`
    (
        "elapsed time per iteration",
        r"\biteration\s+([0-9]{1,12})/\s*[0-9]+ \|.{0,400}?elapsed time per iteration \(ms\): " + _DECIMAL,
        10**6,
    ),
    # `Training epoch 0, iteration 5/99 | lr: 1e-05 | global_step: 5 | ... | train_step_timing in s: 1.234`
    (
        "train_step_timing in s",
        rf"\bglobal_step: ([0-9]{{1,12}}) \|.{{0,400}}?train_step_timing in s: {_DECIMAL}",
        10**9,
    ),
)
# Three years.
_MOST_NS = 10**17
_LONGEST_LINE = 1 << 16
_COMPUTE = KINDS.index("compute")


def _sniff(head: FileHead) -> bool:
    # Only a file with the words is decoded.
    return (
        any(words.encode() in head.raw for words, _, _ in _LINES)
        and is_text(head.raw)
        and any(re.search(pattern, head.raw.decode("utf-8", "replace")) for _, pattern, _ in _LINES)
    )


def read(path: str, data: bytes) -> tuple[SpanTable, tuple[Diagnostic, ...]]:
    """Returns the steps of a log, a span each, and what was found. Raises InputError where there is none."""
    findings = Findings(path)
    table = SpanTable(streams=["steps"], has_steps=True)
    line_of: dict[int, int] = {}
    at = 0
    for line_number, line in enumerate(without_bom(data).decode("utf-8", "replace").splitlines(), 1):
        for words, pattern, unit_ns in _LINES:
            match = re.search(pattern, line) if words in line and len(line) < _LONGEST_LINE else None
            if match is None:
                continue
            step, ns = int(match[1]), round(float(match[2]) * unit_ns)
            if step in line_of:
                message = f"found step {step} again, first on line {line_of[step]}; the first counts"
                findings.add("note", "repeated-step", message, TextCell(line, line_number, 1))
                break
            if not 0 < ns < _MOST_NS - at:
                break
            line_of[step] = line_number
            for column, value in (
                (table.rank, 0), (table.start, at), (table.end, at + ns), (table.step, step),
                (table.line, line_number), (table.stream, 0), (table.group, -1), (table.microbatch, -1),
            ):  # fmt: skip
                column.append(value)
            table.name.append("iteration")
            table.kind.append(_COMPUTE)
            at += ns
            break
    if not len(table):
        raise InputError(Diagnostic("error", "no-events", "found no step with a time, expected some", path))
    return table, findings.diagnostics()


FORMAT: Format = Format(
    "a trainer's log", _sniff, kind="profile", key="training-log", words="Training log", spans=read
)
