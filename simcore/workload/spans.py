"""The table that a reader of a recording fills where the file is a list of spans."""

from __future__ import annotations

from array import array

from simcore.records import Struct, field, replace

# Kinds of spans: compute by phase, or of none; collectives and transfers; a copy of memory; the host.
COMPUTES = ("forward", "backward", "optimizer", "compute")
COLLECTIVES = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all")
TRANSFERS = ("send", "receive")
KINDS = (*COMPUTES, *COLLECTIVES, *TRANSFERS, "copy", "host")
# The step, micro-batch, stream or group of a span where the file does not state it.
UNSTATED = -1


class SpanGroup(Struct, frozen=True):
    """A group of ranks as a file states it.

    name: "" where only ranks are stated. ranks: None where the file does not list them; the ranks that use
    the name are its members then.
    """

    name: str
    ranks: tuple[int, ...] | None = None


class SpanTable(Struct):
    """Spans of any ranks in the order of the file, as columns of equal length; ns of one clock."""

    rank: array[int] = field(default_factory=lambda: array("q"))
    """The rank of each span."""
    start: array[int] = field(default_factory=lambda: array("q"))
    """The start, ns."""
    end: array[int] = field(default_factory=lambda: array("q"))
    """The end, ns."""
    name: list[str] = field(default_factory=list)
    """The name."""
    kind: bytearray = field(default_factory=bytearray)
    """An index into KINDS."""
    stream: array[int] = field(default_factory=lambda: array("i"))
    """An index into `streams`."""
    group: array[int] = field(default_factory=lambda: array("i"))
    """An index into `groups`."""
    step: array[int] = field(default_factory=lambda: array("q"))
    """The number of the step."""
    microbatch: array[int] = field(default_factory=lambda: array("q"))
    """From 0."""
    chunk: array[int] = field(default_factory=lambda: array("q"))
    """The chunk of the model on its rank, from 0; empty where the file states none."""
    line: array[int] = field(default_factory=lambda: array("q"))
    """The line of the file, from 1."""
    streams: list[str] = field(default_factory=list)
    """The names of streams."""
    groups: list[SpanGroup] = field(default_factory=list)
    """The groups of ranks."""
    windows: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    """By rank and step from when to when the step lasts, ns, where more than its spans says it."""
    stages: dict[int, int] = field(default_factory=dict)
    """By rank the pipeline stage, where the file states it."""
    positions: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    """By rank (tp, dp, stage), where the file states them."""
    figures: dict[str, dict[int, float]] = field(default_factory=dict)
    """What the file states of steps beside their spans, by name and step: `loss`, `tflops`."""
    line_noun: str = "line"
    """What `line` counts."""
    has_steps: bool = False
    """Whether the file states steps: the calls of a group are then counted in each."""

    def copy(self) -> SpanTable:
        """Returns a table with columns of its own."""
        # Imported here: only a log that is followed is copied.
        from copy import copy

        return replace(self, **{name: copy(getattr(self, name)) for name in self.__struct_fields__})

    def __len__(self) -> int:
        return len(self.name)
