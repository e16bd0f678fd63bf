"""What trainers print of their steps: logs of Megatron-LM, Megatron-Bridge and NeMo state how long each is,
torchtitan's when it was over.

A log is a table of spans of one rank, a span a step, each behind the one before.
"""

from __future__ import annotations

import re
from datetime import datetime

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
# `[rank0]:[titan] 2025-06-04 14:02:03,456 - root - INFO - step: 10  loss: 8.1 ...`, perhaps with colours.
_STAMPED = (
    r"(?<![0-9])([0-9]{4})-([0-9]{2})-([0-9]{2}) ([0-9]{2}):([0-9]{2}):([0-9]{2}),([0-9]{3}) .{0,200}?"
    r"(?:\b|\x1b\[[0-9;]{0,9}m)step:\s{0,20}([0-9]{1,12})\s{1,20}(?:\x1b\[[0-9;]{0,9}m)?loss:"
)
_STAMPED_WORDS = "loss:"
# Three years.
_MOST_NS = 10**17
_LONGEST_LINE = 1 << 16
_COMPUTE = KINDS.index("compute")


def _sniff(head: FileHead) -> bool:
    patterns = [(words, pattern) for words, pattern, _ in _LINES] + [(_STAMPED_WORDS, _STAMPED)]
    # Only a file with the words is decoded.
    return (
        any(words.encode() in head.raw for words, _ in patterns)
        and is_text(head.raw)
        and any(re.search(pattern, head.raw.decode("utf-8", "replace")) for _, pattern in patterns)
    )


class _Clock:
    """The time of steps of which a log states when they were over: evenly that between two lines."""

    def __init__(self) -> None:
        self.before: tuple[int, int] | None = None

    def find_step(self, line: str) -> tuple[int, int] | None:
        """Returns (the step of a line, its ns); None for another line, and the first one."""
        match = re.search(_STAMPED, line)
        if match is None:
            return None
        *date, milliseconds, step = map(int, match.groups())
        try:
            seconds = (datetime(*date) - datetime(1970, 1, 1)).total_seconds()  # type: ignore[arg-type]
        except ValueError:
            return None
        now, before = (step, round(seconds) * 10**9 + milliseconds * 10**6), self.before
        self.before = now
        if before is None or before[0] >= step:
            return None
        return step, (now[1] - before[1]) // (step - before[0])


def _find_step(line: str, clock: _Clock) -> tuple[int, int] | None:
    """Returns (the step that a line states, its ns); None where it states none."""
    for words, pattern, unit_ns in _LINES:
        match = re.search(pattern, line) if words in line else None
        if match is not None:
            return int(match[1]), round(float(match[2]) * unit_ns)
    return clock.find_step(line) if _STAMPED_WORDS in line else None


def read(path: str, data: bytes) -> tuple[SpanTable, tuple[Diagnostic, ...]]:
    """Returns the steps of a log, a span each, and what was found. Raises InputError where there is none."""
    findings, clock = Findings(path), _Clock()
    table = SpanTable(streams=["steps"], has_steps=True)
    line_of: dict[int, int] = {}
    at = 0
    for line_number, line in enumerate(without_bom(data).decode("utf-8", "replace").splitlines(), 1):
        timed_step = _find_step(line, clock) if len(line) < _LONGEST_LINE else None
        if timed_step is None:
            continue
        step, ns = timed_step
        if step in line_of:
            message = f"found step {step} again, first on line {line_of[step]}; the first counts"
            findings.add("note", "repeated-step", message, TextCell(line, line_number, 1))
            continue
        if not 0 < ns < _MOST_NS - at:
            continue
        line_of[step] = line_number
        for column, value in (
            (table.rank, 0), (table.start, at), (table.end, at + ns), (table.step, step),
            (table.line, line_number), (table.stream, 0), (table.group, -1), (table.microbatch, -1),
        ):  # fmt: skip
            column.append(value)
        table.name.append("iteration")
        table.kind.append(_COMPUTE)
        at += ns
    if not len(table):
        raise InputError(Diagnostic("error", "no-events", "found no step with a time, expected some", path))
    return table, findings.diagnostics()


FORMAT: Format = Format(
    "a trainer's log", _sniff, kind="profile", key="training-log", words="Training log", spans=read
)
