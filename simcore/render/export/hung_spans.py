"""The spans of flight recorder dumps, for formats that write spans: a track is a rank, a span an entry.

What has not ended has no end: a table leaves it empty, Perfetto draws it to the end of the trace.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from simcore.diagnostics import printable
from simcore.flight.names import kind_of_group, short_group
from simcore.flight.progress import collective_of, short_operation
from simcore.flight.record import STATE_WORDS, count_elements
from simcore.measured.vocabulary import element_bytes
from simcore.render.export.format import Request, select_indices
from simcore.render.export.spans import (
    OPEN,
    ArrivedTransfer,
    ExportedSpans,
    Fact,
    Threads,
    TrackSpans,
    nested_rows,
)
from simcore.units import plural

if TYPE_CHECKING:
    from simcore.hangs.run import HangAnalysis

_NAME_CELLS = 80


def select_hung_spans(request: Request) -> ExportedSpans:
    """Returns the entries of the requested ranks, by default all. Raises `UsageError` for ranks without a
    dump.
    """
    run = cast("HangAnalysis", request.results)
    ranks = [dump.rank for dump in run.record.dumps]
    indices = select_indices(request, run.path, run.record.noun, ranks, ("rank ", "dump"))
    tracks = [_EntrySpans(run, index) for index in indices]
    facts = {"hung": "true", "begin_ns": str(run.timeline.begin_ns)}
    return ExportedSpans(run.path, facts, tracks, plural(len(indices), "rank"), (), " of their rings")


class _EntrySpans(TrackSpans):
    """The entries of a rank. rows: in this order, by default that of the dump."""

    stage = None

    def __init__(self, run: HangAnalysis, index: int, rows: Sequence[int] | None = None) -> None:
        self.run, self.index = run, index
        self.dump = run.record.dumps[index]
        self.ranks = (self.dump.rank,)
        start, end, _ = run.timeline.times(index)
        self.rows = range(len(start)) if rows is None else rows
        self.start = array("q", map(start.__getitem__, self.rows))
        self.end = array("q", map(end.__getitem__, self.rows))
        self.microbatch = array("q", (-1,)) * len(self.rows)

    def title(self, rank: int) -> tuple[str, str]:
        return f"rank {rank}", ""

    def kinds(self) -> Sequence[int]:
        # No two are known to be equal.
        return self.rows

    def fact(self, span: int) -> Fact:
        row, entries, names = self.rows[span], self.dump.entries, self.run.record.names
        group = self.run.record.groups[entries.group[row]]
        operation = names.operations[entries.operation[row]]
        sequence = entries.message[row] if entries.is_message[row] else entries.collective[row]
        is_over = self.dump.over[row]
        elements = count_elements(names.sizes[entries.input_size[row]])
        size = (element_bytes(names.dtypes[entries.input_dtype[row]]) or 0) * elements
        return Fact(
            printable(collective_of(operation).partition(" ")[0], _NAME_CELLS), self._stream(row),
            f"{printable(short_operation(operation), _NAME_CELLS)} no. {sequence}",
            kind_of_group(group.description), row, row + 1, size or -1,
            group=printable(group.description, _NAME_CELLS), members=len(group.ranks),
            state=STATE_WORDS[entries.state[row]], time_source="measured" if is_over else OPEN,
        )  # fmt: skip

    def _stream(self, row: int) -> str:
        group = self.run.record.groups[self.dump.entries.group[row]]
        return printable(short_group(group.description), _NAME_CELLS)

    def assign_threads(self, received: Sequence[ArrivedTransfer]) -> tuple[TrackSpans, Threads]:
        """Returns the entries by their starts; each group has a thread, several where its spans cross."""
        start, end, _ = self.run.timeline.times(self.index)
        order = sorted(self.rows, key=lambda row: (start[row], -end[row]))
        thread_of = array("i", bytes(4 * len(start)))
        thread_names: list[tuple[int, str]] = []
        for group in sorted({*self.dump.entries.group}):
            of_group = [row for row in order if self.dump.entries.group[row] == group]
            lanes, first = nested_rows((start[row], end[row]) for row in of_group), len(thread_names) + 1
            for row, lane in zip(of_group, lanes, strict=True):
                thread_of[row] = first + lane
            word = self._stream(of_group[0])
            names = (f"{word} ({lane + 1})" if lane else word for lane in range(max(lanes) + 1))
            thread_names += enumerate(names, first)
        ordered = _EntrySpans(self.run, self.index, order)
        return ordered, Threads(thread_names, [thread_of[row] for row in order])
