"""What a reader of a recording fills where the file is a list of spans: one table, whoever wrote it."""

from __future__ import annotations

from array import array

from simcore.records import Struct, field

# What a span may be: compute by phase, or of none; collectives and transfers; a copy of memory; the host.
COMPUTES = ("forward", "backward", "optimizer", "compute")
COLLECTIVES = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all")
TRANSFERS = ("send", "receive")
KINDS = (*COMPUTES, *COLLECTIVES, *TRANSFERS, "copy", "host")
# Of a step, micro-batch, stream or group that the file does not state.
UNSTATED = -1


class SpanGroup(Struct, frozen=True):
    """A group of ranks as a file states it. name: "" for ranks alone. ranks: None where the file does not
    list them; those that use the name are its members then.
    """

    name: str
    ranks: tuple[int, ...] | None = None


class SpanTable(Struct):
    """Spans of any ranks in the order of the file, columns of equal length, ns of one clock.

    kind: index into KINDS. stream: index into `streams`, group: into `groups`. step: its number;
    microbatch: from 0. line: of the file, from 1. has_steps: whether the file states steps: then the calls
    of a group are counted in each.
    """

    rank: array[int] = field(default_factory=lambda: array("q"))
    start: array[int] = field(default_factory=lambda: array("q"))
    end: array[int] = field(default_factory=lambda: array("q"))
    name: list[str] = field(default_factory=list)
    kind: bytearray = field(default_factory=bytearray)
    stream: array[int] = field(default_factory=lambda: array("i"))
    group: array[int] = field(default_factory=lambda: array("i"))
    step: array[int] = field(default_factory=lambda: array("q"))
    microbatch: array[int] = field(default_factory=lambda: array("q"))
    line: array[int] = field(default_factory=lambda: array("q"))
    streams: list[str] = field(default_factory=list)
    groups: list[SpanGroup] = field(default_factory=list)
    has_steps: bool = False

    def __len__(self) -> int:
        return len(self.name)
