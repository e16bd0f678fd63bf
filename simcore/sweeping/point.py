"""A point of a sweep and its line in a file of results: schema `wltui.sweep/1`, one JSON object a line."""

from __future__ import annotations

from typing import Any

import msgspec

from simcore.diagnostics import UsageError, printable
from simcore.records import Struct
from simcore.units import duration

SCHEMA = "wltui.sweep/1"
# The counts of SimuMax's 28 measured peaks are off by at most so much (docs/accuracy.md).
TIGHT_PERCENT = 3
# The start of the reason of a point that was not simulated; the rest states it in full.
CANNOT_BE, NO_MEMORY, LEFT_OUT, FAILED = "cannot be", "memory", "bound", "failed"


class Point(Struct, frozen=True):
    """A point of a sweep: its parameters, and its figures or why it was not run."""

    schema: str
    """Always `SCHEMA`."""
    sweep: str
    """The hash of its sweep."""
    version: str
    """The version of the program."""
    input: str
    """The hash of the input."""
    rule: str
    """The rule by which points are left out (`Rule.text`); "" where none is."""
    point: int
    """Its index in the space."""
    parameters: dict[str, Any]
    """The parameters that are not at their default."""
    command: str
    """The command line that runs it."""
    layout: dict[str, Any]
    """Degrees and choices as the run has them, also those that were not stated."""
    step_time_ns: int | None
    """The step time; None where it was not simulated."""
    tokens_per_s: float | None
    """Tokens a second; None where they are not known."""
    memory_peak_bytes: int | None
    """The bytes of the fullest stage; None where they are not known."""
    memory_limit_bytes: int | None
    """The bytes of a GPU; None where they are not known."""
    gpus: int | None
    """How many GPUs it needs; None where it is not known."""
    cost: float | None
    """$ of a step; None without --price."""
    work: int | None
    """Tokens of a run; for a workload file the micro-batches of all replicas."""
    at_least_ns: int | None
    """A lower bound of the step time; None where it was not computed."""
    skipped: str | None
    """Why it was not simulated; None where it was."""

    @property
    def index(self) -> int:
        """The index of the point in the space."""
        return self.point

    @property
    def fits(self) -> bool:
        """Whether its fullest stage fits into a GPU, or may where that is not known."""
        peak, limit = self.memory_peak_bytes, self.memory_limit_bytes
        return peak is None or limit is None or peak <= limit

    @property
    def is_tight(self) -> bool:
        """Whether it fits with little room: what a run allocates beside the count may end it."""
        peak, limit = self.memory_peak_bytes, self.memory_limit_bytes
        return (
            self.fits
            and peak is not None
            and limit is not None
            and 100 * peak > (100 - TIGHT_PERCENT) * limit
        )

    @property
    def is_run(self) -> bool:
        """Whether it was simulated."""
        return self.step_time_ns is not None

    @property
    def reason(self) -> str:
        """The kind of reason why it was not simulated; "" where it was."""
        return (self.skipped or "").partition(":")[0]


def bound_words(at_least_ns: int) -> str:
    """Returns why a point with this lower bound was left out."""
    return f"{LEFT_OUT}: takes {duration(at_least_ns)} at least"


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Point)


def encode_point(point: Point) -> bytes:
    """Returns the line of a point, with its end: the same bytes in every process."""
    return _ENCODER.encode(point) + b"\n"


def parse_point(line: bytes, path: str, line_number: int) -> Point:
    """Returns the point of a line. Raises `UsageError` that names file, line and what was found."""
    where = f"{printable(path)}:{line_number}"
    try:
        point = _DECODER.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{where}: found no point of a sweep, expected {SCHEMA}: {error}") from None
    if point.schema != SCHEMA:
        raise UsageError(f"{where}: found schema {printable(point.schema, 40)}, expected {SCHEMA}")
    return point


def is_sweep(head: bytes) -> bool:
    """Returns whether a file with these first bytes is one of results."""
    return head.startswith(b'{"schema":"' + SCHEMA.encode() + b'"')
