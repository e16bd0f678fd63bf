"""A point of a sweep and its line in a file of results: schema `wltui.sweep/1`, one JSON object a line."""

from __future__ import annotations

from typing import Any

import msgspec

from simcore.diagnostics import UsageError, printable
from simcore.records import Struct
from simcore.units import duration

SCHEMA = "wltui.sweep/1"
# What a line that was not simulated begins with; the rest says it in full.
CANNOT_BE, NO_MEMORY, LEFT_OUT, FAILED = "cannot be", "memory", "bound", "failed"


class Point(Struct, frozen=True):
    """A point: what it is, and what it takes or why nobody ran it.

    sweep: of which sweep it is; version: of the program; input: hash of what was opened. rule: by what points
    are left out (`Rule.text`), "" where none is. number: its place in the space. parameters: those that are
    not at their default. command: the words that run it. layout: degrees and choices as the run has them,
    also those that nobody gave. step_time_ns, tokens_per_s, memory_peak_bytes (of the fullest stage),
    memory_limit_bytes (of a GPU), cost ($ of a step, with --price): None where they are not known. work:
    tokens of a run, of a workload file the micro-batches of all replicas. at_least_ns: what the step takes at
    least. skipped: None, or why it was not simulated.
    """

    schema: str
    sweep: str
    version: str
    input: str
    rule: str
    point: int
    parameters: dict[str, Any]
    command: str
    layout: dict[str, Any]
    step_time_ns: int | None
    tokens_per_s: float | None
    memory_peak_bytes: int | None
    memory_limit_bytes: int | None
    gpus: int | None
    cost: float | None
    work: int | None
    at_least_ns: int | None
    skipped: str | None

    @property
    def index(self) -> int:
        """Its place in the space."""
        return self.point

    @property
    def fits(self) -> bool:
        """Whether its fullest stage fits into a GPU, as far as that is known."""
        peak, limit = self.memory_peak_bytes, self.memory_limit_bytes
        return peak is None or limit is None or peak <= limit

    @property
    def is_run(self) -> bool:
        """Whether it was simulated."""
        return self.step_time_ns is not None

    @property
    def reason(self) -> str:
        """The kind of reason why it was not simulated, "" where it was."""
        return (self.skipped or "").partition(":")[0]


def bound_words(at_least_ns: int) -> str:
    """Why a point was left out that takes so long at least."""
    return f"{LEFT_OUT}: takes {duration(at_least_ns)} at least"


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Point)


def encode_point(point: Point) -> bytes:
    """The line of a point, with its end: the same bytes whoever writes it."""
    return _ENCODER.encode(point) + b"\n"


def parse_point(line: bytes, path: str, line_number: int) -> Point:
    """The point of a line. Raises `UsageError` that names file, line and what was found."""
    where = f"{printable(path)}:{line_number}"
    try:
        point = _DECODER.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{where}: found no point of a sweep, expected {SCHEMA}: {error}") from None
    if point.schema != SCHEMA:
        raise UsageError(f"{where}: found schema {printable(point.schema, 40)}, expected {SCHEMA}")
    return point


def is_sweep(head: bytes) -> bool:
    """Whether a file that begins so is one of results."""
    return head.startswith(b'{"schema":"' + SCHEMA.encode() + b'"')
