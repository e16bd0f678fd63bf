"""What trainers print of their steps: logs of Megatron-LM, Megatron-Bridge and NeMo state how long each is,
torchtitan's when it was over.

A log is a table of spans of one rank, a span a step, each behind the one before, with what else its line
states.
"""

from __future__ import annotations

import math
import re
from datetime import datetime

from simcore.diagnostics import Diagnostic, InputError
from simcore.records import NamedTuple, replace
from simcore.workload.formats.cell import Findings, TextCell
from simcore.workload.formats.format import FileHead, Format, is_text, without_bom
from simcore.workload.spans import KINDS, SpanTable

KEY = "training-log"
_DECIMAL = r"([0-9]{1,15}(?:\.[0-9]{1,18})?(?:[eE][-+]?[0-9]{1,2})?)"
_COLOUR = re.compile(r"\x1b\[[0-9;]{0,9}m")


class _Figure(NamedTuple):
    """A figure that a line states of its step."""

    name: str
    """Its key in `StepTime.figures`."""
    pattern: str
    """What is before its value and the value."""
    unit: int = 1
    """By which the value is multiplied."""


class _Trainer(NamedTuple):
    """How a trainer's log says what a step takes."""

    words: str
    """Words of each line of a step."""
    pattern: str
    """The step and its time; where the time is not stated, the time of day of its end, and the step."""
    unit_ns: int
    """ns of the unit of the time; 0 where it is not stated."""
    figures: tuple[_Figure, ...]
    """What else the line states."""


_TRAINERS = (
    # ` iteration      10/     500 | consumed samples: 80 | elapsed time per iteration (ms): 1234.5 | ...`
    _Trainer(
        "elapsed time per iteration",
        r"\biteration\s+([0-9]{1,12})/\s*[0-9]+ \|.{0,400}?elapsed time per iteration \(ms\): " + _DECIMAL,
        10**6,
        (
            _Figure("loss", rf"\blm loss:? {_DECIMAL}"),
            _Figure("tokens_per_second", rf"\(tokens/s/GPU\): {_DECIMAL}"),
            _Figure("tflops", rf"\bthroughput per GPU \(TFLOP/s/GPU\): {_DECIMAL}"),
        ),
    ),
    # `Training epoch 0, iteration 5/99 | lr: 1e-05 | global_step: 5 | ... | train_step_timing in s: 1.234`
    _Trainer(
        "train_step_timing in s",
        rf"\bglobal_step: ([0-9]{{1,12}}) \|.{{0,400}}?train_step_timing in s: {_DECIMAL}",
        10**9,
        (
            _Figure("loss", rf"\b(?:reduced_train_loss|loss): {_DECIMAL}"),
            _Figure("tokens_per_second", rf"\btokens_per_sec_per_gpu: {_DECIMAL}"),
            _Figure("tflops", rf"\bTFLOPS_per_GPU: {_DECIMAL}"),
            _Figure("memory_bytes", rf"\bpeak_memory_usage: {_DECIMAL}"),
        ),
    ),
    # `Epoch 0: :  47%|##   | 7/15 [06:19<07:13, reduced_train_loss=11.50, ..., train_step_timing in s=49.50]`
    _Trainer(
        "train_step_timing in s=",
        rf"\b([0-9]{{1,12}})/[0-9]{{1,12}} \[.{{0,400}}?train_step_timing in s={_DECIMAL}",
        10**9,
        (_Figure("loss", rf"\b(?:reduced_train_loss|loss)={_DECIMAL}"),),
    ),
    # `[rank0]:[titan] 2025-06-04 14:02:03,456 - root - INFO - step: 10  loss: 8.1 ...`
    _Trainer(
        "loss:",
        r"(?<![0-9])([0-9]{4})-([0-9]{2})-([0-9]{2}) ([0-9]{2}):([0-9]{2}):([0-9]{2}),([0-9]{3}) .{0,200}?"
        r"\bstep:\s{0,20}([0-9]{1,12})\s{1,20}loss:",
        0,
        (
            _Figure("loss", rf"\bloss: {{0,9}}{_DECIMAL}"),
            _Figure("tokens_per_second", r"\btps: {0,9}([0-9]{1,3}(?:,[0-9]{3}){0,4})"),
            _Figure("tflops", r"\btflops: {0,9}([0-9]{1,3}(?:,[0-9]{3}){0,4}(?:\.[0-9]{1,9})?)"),
            _Figure("memory_bytes", rf"\bmemory: {{0,9}}{_DECIMAL}GiB", 2**30),
        ),
    ),
)  # fmt: skip
# What lines before and behind that of a step state of it: Megatron-Bridge its FLOPs, Megatron the memory of
# each rank.
_NEXT = _Figure("tflops", rf"\bGPU utilization: {_DECIMAL} ?MODEL_TFLOP/s/GPU")
_MEMORY = rf"\(after ([0-9]{{1,12}}) iterations\) memory \(MB\) \|.{{0,200}}?\bmax allocated: {_DECIMAL}"
_MEMORY_WORDS = "memory (MB)"
# Before the first step a trainer prints its arguments, and libraries their state: often more than a head.
_BEGINNINGS = (b"------------------------ arguments ------------------------", b"[NeMo I 20", b"[titan]")
# Three years.
_MOST_NS = 10**17
_MOST_VALUE = 1e15
_LONGEST_LINE = 1 << 16
_COMPUTE = KINDS.index("compute")
_NO_STEP_WORDS = (
    "found no step with a time, expected lines such as `iteration 10/500 | ... elapsed time per iteration "
    "(ms): 1234.5` (Megatron), `global_step: 5 | ... train_step_timing in s: 1.2` (NeMo), or two of `... - "
    "step: 10  loss: ...` (torchtitan)"
)


def _sniff(head: FileHead) -> bool:
    # Only a file with the words is decoded.
    trainers = [trainer for trainer in _TRAINERS if trainer.words.encode() in head.raw]
    begins = any(beginning in head.raw for beginning in _BEGINNINGS)
    if not (trainers or begins) or not is_text(head.raw):
        return False
    text = _COLOUR.sub("", head.raw.decode("utf-8", "replace"))
    return begins or any(re.search(trainer.pattern, text) for trainer in trainers)


class LogReader:
    """The steps of a log, in whatever pieces its bytes come: each byte is read once."""

    def __init__(self, path: str) -> None:
        self._findings = Findings(path)
        self._path = path
        self._table = SpanTable(streams=["steps"], has_steps=True)
        self._line_of: dict[int, int] = {}
        self._figures: dict[str, dict[int, float]] = {}
        self._line_number = 0
        self._at = 0
        self._rest = b""
        self._before: tuple[int, int] | None = None
        self._next: dict[str, float] = {}

    @property
    def steps(self) -> int:
        """The number of steps so far."""
        return len(self._table)

    def feed(self, data: bytes) -> None:
        """Reads the next bytes; a last line without an end waits for more."""
        data = self._rest + data
        # Progress bars end with a return, which may be half of an end of line.
        whole = data[:-1] if data.endswith(b"\r") else data
        end = max(whole.rfind(b"\n"), whole.rfind(b"\r")) + 1
        self._rest = data[end:]
        if not self._line_number:
            data = without_bom(data[:end])
            end = len(data)
        self._read_lines(data[:end])

    def finish(self) -> tuple[SpanTable, tuple[Diagnostic, ...]]:
        """Returns the steps so far, a span each, and what was found, with a last line that has no end. Raises
        InputError where there is none.
        """
        self._read_lines(self._rest)
        self._rest = b""
        return self.table()

    def table(self) -> tuple[SpanTable, tuple[Diagnostic, ...]]:
        """Returns the steps of whole lines so far, and what was found. Raises InputError for none."""
        if not self.steps:
            raise InputError(Diagnostic("error", "no-events", _NO_STEP_WORDS, self._path))
        figures = {
            name: {step: value for step, value in by_step.items() if step in self._line_of}
            for name, by_step in self._figures.items()
        }
        # A run has the columns of its table, which must not grow with the log.
        return replace(self._table.copy(), figures=figures), self._findings.diagnostics()

    def _read_lines(self, data: bytes) -> None:
        for line in data.decode("utf-8", "replace").splitlines():
            self._line_number += 1
            if len(line) < _LONGEST_LINE:
                self._read_line(line)

    def _read_line(self, line: str) -> None:
        if "\x1b" in line:
            line = _COLOUR.sub("", line)
        if "MODEL_TFLOP" in line:
            self._next |= _find_figures(line, (_NEXT,))
        if _MEMORY_WORDS in line:
            self._add_memory(line)
        for trainer in _TRAINERS:
            match = re.search(trainer.pattern, line) if trainer.words in line else None
            if match is not None:
                step_time = (
                    (int(match[1]), round(float(match[2]) * trainer.unit_ns))
                    if trainer.unit_ns
                    else self._find_length(match)
                )
                if step_time is not None:
                    figures, self._next = self._next | _find_figures(line, trainer.figures), {}
                    self._add_step(*step_time, figures, line)
                return

    def _find_length(self, match: re.Match[str]) -> tuple[int, int] | None:
        """Returns (a step, its ns) where a log states when steps were over: evenly that between two lines;
        None for the first.
        """
        *date, milliseconds, step = map(int, match.groups())
        try:
            seconds = (datetime(*date) - datetime(1970, 1, 1)).total_seconds()  # type: ignore[arg-type]
        except ValueError:
            return None
        now, before = (step, round(seconds) * 10**9 + milliseconds * 10**6), self._before
        # Where each rank prints a step, its first line counts.
        if before is not None and before[0] == step:
            return None
        self._before = now
        if before is None or before[0] > step:
            return None
        return step, (now[1] - before[1]) // (step - before[0])

    def _add_memory(self, line: str) -> None:
        """Takes the memory of a rank: that of the step is the largest."""
        match = re.search(_MEMORY, line)
        value = None if match is None else _valid(float(match[2]) * 2**20)
        if match is not None and value is not None:
            memory = self._figures.setdefault("memory_bytes", {})
            memory[int(match[1])] = max(memory.get(int(match[1]), 0.0), value)

    def _add_step(self, step: int, ns: int, figures: dict[str, float], line: str) -> None:
        if step in self._line_of:
            message = f"found step {step} again, first on line {self._line_of[step]}; the first counts"
            self._findings.add("note", "repeated-step", message, TextCell(line, self._line_number, 1))
            return
        if not 0 < ns < _MOST_NS - self._at:
            return
        self._line_of[step] = self._line_number
        table = self._table
        for column, value in (
            (table.rank, 0), (table.start, self._at), (table.end, self._at + ns), (table.step, step),
            (table.line, self._line_number), (table.stream, 0), (table.group, -1), (table.microbatch, -1),
        ):  # fmt: skip
            column.append(value)
        table.name.append("iteration")
        table.kind.append(_COMPUTE)
        self._at += ns
        for name, figure in figures.items():
            self._figures.setdefault(name, {})[step] = figure


def _find_figures(line: str, figures: tuple[_Figure, ...]) -> dict[str, float]:
    values = {}
    for figure in figures:
        match = re.search(figure.pattern, line)
        value = None if match is None else _valid(float(match[1].replace(",", "")) * figure.unit)
        if value is not None:
            values[figure.name] = value
    return values


def _valid(value: float) -> float | None:
    return value if math.isfinite(value) and value <= _MOST_VALUE else None


def read(path: str, data: bytes) -> tuple[SpanTable, tuple[Diagnostic, ...]]:
    """Returns the steps of a log, a span each, and what was found. Raises InputError where there is none."""
    reader = LogReader(path)
    reader.feed(data)
    return reader.finish()


FORMATS = (Format("a trainer's log", _sniff, kind="profile", key=KEY, words="Training log", spans=read),)
