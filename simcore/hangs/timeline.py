"""The entries of each rank on one clock: when each began and ended, ns from the first of all."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from functools import cached_property
from heapq import heappop, heappush

from simcore.flight.clocks import Offset, clock_offsets
from simcore.flight.names import kind_of_group
from simcore.flight.record import RankDump
from simcore.flight.verdict import Verdict
from simcore.names import GROUP_KINDS
from simcore.records import NamedTuple
from simcore.trace.accounts import account_names
from simcore.trace.lane_spans import KINDS
from simcore.trace.spans import COMMUNICATES, NONE, Column, Spans, Trace, Waits
from simcore.workload.model import LARGEST

# What is open is `wait`: no account of a rank is compute.
NAMES = account_names((), GROUP_KINDS, ("wait", "bubble", "idle"), {"exposed expert": "exposed ep"})
WAIT, IDLE = KINDS.index("wait"), KINDS.index("idle")
_GROUP_KINDS = {"ep": "expert", "dp_ep": "expert dp", "dp_shard": "dp", "dp_replicate": "dp"}
# Index into KINDS -> index into `NAMES.all`.
_ACCOUNTS = bytes(
    NAMES.all.index(name if name in ("wait", "bubble", "idle") else f"exposed {_GROUP_KINDS.get(name, name)}")
    if name in (*GROUP_KINDS, *_GROUP_KINDS, "wait", "bubble", "idle") else NAMES.all.index("exposed comm")
    for name in KINDS
).ljust(256, b"\0")  # fmt: skip
# Behind the last event, so that what is open can be seen to go on.
_MARGIN_PERCENT, _LEAST_MARGIN_NS = 5, 1_000_000


class RankTimes(NamedTuple):
    """The entries of a rank, in the order of the dump."""

    start: array[int]
    """When each was created, ns from the begin of the axis."""
    end: array[int]
    """When each ended; the end of the axis for what has not."""
    category: bytearray
    """The index into KINDS of each: its kind of group, or WAIT where it has not ended."""


class Timeline:
    """The times of a record. offsets: how far the clocks of ranks are ahead, by rank."""

    def __init__(self, verdict: Verdict) -> None:
        self.verdict, self.record = verdict, verdict.record
        self._times: dict[int, RankTimes] = {}

    @cached_property
    def offsets(self) -> dict[int, Offset]:
        """How far the clock of each rank is ahead of the lowest one's."""
        # A rank in no group has the clock that it has.
        of_all = {dump.rank: Offset(0, 0) for dump in self.record.dumps}
        return of_all | clock_offsets(self.verdict.progress)

    @cached_property
    def _kinds(self) -> list[int]:
        """The index into KINDS of each group."""
        return [KINDS.index(kind_of_group(group.description)) for group in self.record.groups]

    @cached_property
    def _extent(self) -> tuple[int, int]:
        """When the first entry was created and when the last thing happened, ns since 1970."""
        first, last = [], []
        for dump in self.record.dumps:
            created = [at for at in dump.entries.created if at > 0]
            if created:
                offset = self.offsets[dump.rank].ns
                first.append(min(created) - offset)
                # The largest number is no time, but one that was never set.
                ends = [at for at in dump.entries.completed if at < LARGEST]
                last.append(max(created + ends) - offset)
        return (min(first), max(last)) if first else (0, 0)

    @property
    def begin_ns(self) -> int:
        """The begin of the axis, ns since 1970."""
        return self._extent[0]

    @cached_property
    def length(self) -> int:
        """The end of the axis, ns."""
        ns = self._extent[1] - self._extent[0]
        return min(ns + max(ns * _MARGIN_PERCENT // 100, _LEAST_MARGIN_NS), LARGEST)

    def begin_of(self, index: int, row: int) -> int:
        """Returns when an entry was created, ns from the begin of the axis, without times of others."""
        dump = self.record.dumps[index]
        ns = dump.entries.created[row] - self.begin_ns - self.offsets[dump.rank].ns
        return min(max(ns, 0), self.length - 1)

    def last_end_of(self, index: int) -> int | None:
        """Returns when the last entry of a rank ended, in the same way; None where none states it."""
        dump = self.record.dumps[index]
        last = max(dump.entries.completed, default=0)
        if last <= 0:
            return None
        return min(max(last - self.begin_ns - self.offsets[dump.rank].ns, 0), self.length)

    def times(self, index: int) -> RankTimes:
        """Returns the times of a dump by its index."""
        if index not in self._times:
            self._times[index] = self._find_times(self.record.dumps[index])
        return self._times[index]

    def _find_times(self, dump: RankDump) -> RankTimes:
        entries, over, length = dump.entries, dump.over, self.length
        shift = self.begin_ns + self.offsets[dump.rank].ns
        start, end = array("q"), array("q")
        category = bytearray()
        last = 0
        for row, created in enumerate(entries.created):
            # What states no time stands behind the entry before it.
            begin = min(max(created - shift, 0), length - 1) if created > 0 else last
            last = begin
            over_ns = length
            if over[row]:
                completed, ms = entries.completed[row], entries.duration_ms[row]
                over_ns = completed - shift if completed > 0 else begin + 1
                if completed <= 0 and 0 <= ms < 1e12:
                    began = entries.started[row] - shift if entries.started[row] > 0 else begin
                    over_ns = began + round(ms * 1e6)
            start.append(begin)
            end.append(min(max(over_ns, begin + 1), length))
            category.append(self._kinds[entries.group[row]] if over[row] else WAIT)
        return RankTimes(start, end, category)

    def segments(self, index: int) -> Iterator[tuple[int, int, int, int]]:
        """Yields (start, end, row, category) of what a rank is in at every time: the oldest that has not
        ended, else the last collective that it began, else nothing (row NONE).
        """
        start, end, category = self.times(index)
        events = sorted(range(len(start)), key=start.__getitem__)
        edges = sorted({0, self.length, *start, *end})
        running: list[tuple[int, int, int]] = []
        at, row, before = 0, NONE, 0
        kind = IDLE
        for edge in edges:
            while at < len(events) and start[events[at]] <= edge:
                new = events[at]
                # Of what has not ended the oldest, else the last to begin.
                is_open = category[new] == WAIT
                heappush(running, (0 if is_open else 1, start[new] if is_open else -start[new], new))
                at += 1
            while running and end[running[0][2]] <= edge < self.length:
                heappop(running)
            now = (running[0][2], category[running[0][2]]) if running else (NONE, IDLE)
            if now != (row, kind) and edge < self.length:
                if edge > before:
                    yield before, edge, row, kind
                (row, kind), before = now, edge
        if self.length > before:
            yield before, self.length, row, kind


def hung_trace(timeline: Timeline) -> Trace:
    """Returns the entries of each rank as spans."""
    record = timeline.record
    spans = []
    for index in range(len(record.dumps)):
        start, end, category = timeline.times(index)
        level = bytearray([COMMUNICATES]) * len(start)
        spans.append(Spans(start, start, end, category.translate(_ACCOUNTS), level))
    columns = {
        "name": lambda: Column(record.names.operations, [dump.entries.operation for dump in record.dumps]),
        "stream": lambda: Column(
            [group.description for group in record.groups], [dump.entries.group for dump in record.dumps]
        ),
    }
    waits = [Waits() for _ in spans]
    return Trace(spans, waits, timeline.length, NAMES, [1] * len(spans), NONE, True, columns)
