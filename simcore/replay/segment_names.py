"""Names of the segments of a measured rank."""

from __future__ import annotations

from typing import Protocol

from simcore.measured.matching import Call, name_of
from simcore.measured.run import MeasuredRun
from simcore.sources.rendezvous import Rendezvous
from simcore.sources.segments import GAP

IDLE_NAME = "idle"


class SegmentedRun(Protocol):
    """A run whose ranks are divided into segments. measured: the run of the files, which has the names."""

    @property
    def measured(self) -> MeasuredRun: ...

    @property
    def rendezvous(self) -> Rendezvous: ...


def segment_name(results: SegmentedRun, rank: int, segment: int) -> str:
    """Returns the operation or sub-operation of a segment, as the file has it; `idle` where there is none."""
    segments, trace = results.rendezvous.segments[rank], results.measured.ranks[rank]
    if not 0 <= segment < len(segments) or segments.kind[segment] == GAP:
        return IDLE_NAME
    return name_of(trace, Call(rank, segments.op[segment], segments.sub[segment]))
