"""A rank's step as segments in time order, without a hole: what a replay gives new durations and starts."""

from __future__ import annotations

from array import array
from collections.abc import Mapping

from simcore.measured.columns import FUSED, MEASURED, RankTrace
from simcore.measured.lanes import timed_ops
from simcore.measured.matching import Call, is_asynchronous
from simcore.records import Struct, field

# Takes its own time: an operation or part of one, or communication without a partner.
OWN = 0
# No operation: the host's time between two, or before the first.
GAP = 1
# A collective of several ranks, which holds the rank until it ends.
MEET = 2
# A send, a receive, or both in one.
TRANSFER = 3
# Where a collective that overlaps compute begins for this rank; takes no time.
LAUNCH = 4
# What the rank waits for such a collective when the compute that it overlaps is over.
AWAIT = 5


class SegmentColumns(Struct):
    """Columns of equal length, ascending, each segment beginning where the one before ends."""

    kind: bytearray = field(default_factory=bytearray)
    """OWN to AWAIT."""
    start: array[int] = field(default_factory=lambda: array("q"))
    """ns as measured."""
    end: array[int] = field(default_factory=lambda: array("q"))
    """ns as measured."""
    op: array[int] = field(default_factory=lambda: array("i"))
    """The operation, in a gap the one behind it."""
    sub: array[int] = field(default_factory=lambda: array("i"))
    """The sub-operation, else -1."""
    meeting: array[int] = field(default_factory=lambda: array("i"))
    """The collective of MEET, LAUNCH and AWAIT, else -1."""
    message: array[int] = field(default_factory=lambda: array("i"))
    """The message that a TRANSFER sends, else -1."""
    received: array[int] = field(default_factory=lambda: array("i"))
    """The message that a TRANSFER receives, else -1."""

    def __len__(self) -> int:
        return len(self.kind)

    def add(
        self,
        kind: int,
        span: tuple[int, int],
        op: int,
        sub: int = -1,
        meeting: int = -1,
        message: int = -1,
        received: int = -1,
    ) -> None:
        """Appends a segment."""
        self.kind.append(kind)
        self.start.append(span[0])
        self.end.append(span[1])
        self.op.append(op)
        self.sub.append(sub)
        self.meeting.append(meeting)
        self.message.append(message)
        self.received.append(received)

    def extend(self, kind: bytearray, start: array[int], end: array[int], op: array[int]) -> None:
        """Appends segments that no other rank takes part in."""
        self.kind += kind
        self.start += start
        self.end += end
        self.op += op
        for column in (self.sub, self.meeting, self.message, self.received):
            column.extend(array(column.typecode, (-1,)) * len(kind))


class CallLinks(Struct, frozen=True):
    """The collectives and messages that the calls of a run take part in."""

    meetings: Mapping[Call, int]
    """The collective of a call."""
    sent_messages: Mapping[Call, int]
    """The message that a call sends."""
    received_messages: Mapping[Call, int]
    """The message that a call receives."""
    reached: Mapping[int, int]
    """When the last member came to each collective of MODEL_PARALLEL."""
    waited: Mapping[Call, int]
    """The ns that a call's rank waits for an asynchronous collective, behind its compute; unknown where not
    all members launched it so.
    """


def make_segments(rank_index: int, rank: RankTrace, links: CallLinks) -> SegmentColumns:
    """Returns the segments of the rank with index `rank_index`, from 0 ns to its last operation's end."""
    return _SegmentWalk(rank_index, rank, links).segments


class _SegmentWalk:
    def __init__(self, rank_index: int, rank: RankTrace, links: CallLinks) -> None:
        self.rank_index = rank_index
        self.rank = rank
        self.links = links
        self.segments = SegmentColumns()
        self.now = 0
        subs = rank.subs
        self.subs: dict[int, list[int]] = {}
        for sub, parent in enumerate(subs.parent):
            if subs.timing[sub] == MEASURED:
                self.subs.setdefault(parent, []).append(sub)
        ops = rank.ops
        # The other line of one physical operation has no segment of its own.
        self.fused = {
            (ops.start[op], ops.end[op]): op for op, status in enumerate(ops.timing) if status == FUSED
        }
        for start, end, op, _ in sorted(timed_ops(rank)):
            if start > self.now:
                self._until(start, op, GAP)
            self._op(op, max(end, self.now))
        # A launch may come behind the last operation.
        self._until(rank.last_ns, len(ops) - 1, GAP)

    def _until(self, time: int, op: int, kind: int = OWN, sub: int = -1) -> None:
        """Adds the rank's own time until `time`, if that is still to come."""
        if time > self.now:
            self.segments.add(kind, (self.now, time), op, sub)
            self.now = time

    def _op(self, op: int, end: int) -> None:
        """Adds an operation from now to its end; operations that overlap share no time."""
        links, call = self.links, Call(self.rank_index, op)
        other = self.fused.get((self.rank.ops.start[op], self.rank.ops.end[op]))
        lines = [call] if other is None else [call, Call(self.rank_index, other)]
        sends = [links.sent_messages[line] for line in lines if line in links.sent_messages]
        receives = [links.received_messages[line] for line in lines if line in links.received_messages]
        if sends or receives:
            self.segments.add(
                TRANSFER, (self.now, end), op,
                message=sends[0] if sends else -1, received=receives[0] if receives else -1,
            )  # fmt: skip
            self.now = end
            return
        meeting = links.meetings.get(call)
        if meeting is not None and meeting in links.reached:
            over = max(self.now, min(end, links.reached[meeting]))
            self.segments.add(MEET, (self.now, over), op, meeting=meeting)
            self.now = over
        elif meeting is not None:
            self.segments.add(MEET, (self.now, end), op, meeting=meeting)
            self.now = end
            return
        for time, is_end, sub in self._events(op):
            self._event(min(time, end), is_end, op, sub)
        self._until(end, op)

    def _events(self, op: int) -> list[tuple[int, bool, int]]:
        """Returns (time, whether it is an end, sub-operation) of what happens inside an operation."""
        subs = self.rank.subs
        events = []
        for sub in self.subs.get(op, ()):
            if is_asynchronous(self.rank, sub):
                if Call(self.rank_index, op, sub) not in self.links.meetings:
                    continue
                events.append((subs.start[sub], False, sub))
            events.append((subs.end[sub], True, sub))
        return sorted(events)

    def _event(self, time: int, is_end: bool, op: int, sub: int) -> None:
        subs, call = self.rank.subs, Call(self.rank_index, op, sub)
        meeting = self.links.meetings.get(call, -1)
        if not is_end:
            self._until(time, op)
            self.segments.add(LAUNCH, (self.now, self.now), op, sub, meeting)
            return
        if is_asynchronous(self.rank, sub):
            self._until(time - self.links.waited.get(call, 0), op)
            self.segments.add(AWAIT, (self.now, max(time, self.now)), op, sub, meeting)
        else:
            self._until(min(subs.start[sub], time), op)
            if meeting < 0:
                self._until(time, op, OWN, sub)
                return
            self.segments.add(MEET, (self.now, max(time, self.now)), op, sub, meeting)
        self.now = max(time, self.now)
