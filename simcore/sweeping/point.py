"""A point of a sweep and its line in a file of results: schema `wltui.sweep/1`, one JSON object a line."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from simcore.records import Struct
from simcore.units import duration

SCHEMA = "wltui.sweep/1"
# The counts of SimuMax's 28 measured peaks are off by at most so much (docs/accuracy.md).
TIGHT_PERCENT = 3
# The start of the reason of a point that was not simulated; the rest states it in full.
CANNOT_BE, NO_MEMORY, LEFT_OUT, FAILED = "cannot be", "memory", "bound", "failed"


# What a file may state: the hash of something, a version, and figures that can be.
Hash = Annotated[str, Meta(pattern="^[0-9a-z]{1,64}$")]
Version = Annotated[str, Meta(pattern="^[0-9A-Za-z.+!_-]{1,64}$")]
# 2^62 ns are 146 years: a sum of two is still a 64-bit number.
Figure = Annotated[int, Meta(ge=0, lt=1 << 62)]
Rate = Annotated[float, Meta(ge=0, le=1e30)]


class Point(Struct, frozen=True):
    """A point of a sweep: its parameters, and its figures or why it was not run."""

    schema: str
    """Always `SCHEMA`."""
    sweep: Hash
    """The hash of its sweep."""
    version: Version
    """The version of the program."""
    input: Hash
    """The hash of the input."""
    rule: str
    """The rule by which points are left out (`Rule.text`); "" where none is."""
    point: Figure
    """Its index in the space."""
    parameters: dict[str, Any]
    """The parameters that are not at their default."""
    command: str
    """The command line that runs it."""
    layout: dict[str, Any]
    """Degrees and choices as the run has them, also those that were not stated."""
    step_time_ns: Figure | None
    """The step time; None where it was not simulated."""
    tokens_per_s: Rate | None
    """Tokens a second; None where they are not known."""
    memory_peak_bytes: Figure | None
    """The bytes of the fullest stage; None where they are not known."""
    memory_limit_bytes: Figure | None
    """The bytes of a GPU; None where they are not known."""
    gpus: Figure | None
    """How many GPUs it needs; None where it is not known."""
    cost: Rate | None
    """$ of a step; None without --price."""
    work: Figure | None
    """Tokens of a run; for a workload file the micro-batches of all replicas."""
    at_least_ns: Figure | None
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


def encode_point(point: Point) -> bytes:
    """Returns the line of a point, with its end: the same bytes in every process."""
    return _ENCODER.encode(point) + b"\n"


def is_sweep(head: bytes) -> bool:
    """Returns whether a file with these first bytes is one of results."""
    return head.startswith(b'{"schema":"' + SCHEMA.encode() + b'"')
