"""Finds the rendezvous of all ranks of a measured run, and how long each segment takes by itself.

What a segment takes is measured; what it waits is not stored, it follows from the others. So:

* a collective takes the time from the last arrival to the first departure: the part of the shortest
  member's measured duration that lies behind the last arrival. Who left later has that time as its own;
* a message takes as long as its send, or less where the receive was over before; what a receive lasts
  beyond the message's end is its own;
* an asynchronous sub-operation lasts as long as the compute that it overlaps, unless the rank was the first
  to end the wait: then the compute is that of the member that needed least.

With every scale at 1 a concurrent run comes out as it was measured, wherever the files' times allow it.

A rank of a profiler trace becomes segments in time order: its streams are merged into one line.

At any time the rank computes, else copies, else does nothing. A collective is launched where its
kernel starts and overlaps that line. The rank waits for it where its kernel ends while nothing computes:
from the end of the compute before. A collective that ends under compute is waited for by the first kernel
of another phase behind it, or at the end of the step: the trace does not state the waiter, and this is the
least that a step needs. Only programs that time their own work are less exact: their compute begins up to 2 %
of a collective's time before the end of the one that it waited for. The host's gaps stay, also during a
collective.

A send and its receive are kernels too. Where the send waits for the receive both are a collective of two.
Else the send is one by itself, and so is the receive, to which the sender comes when its send begins: it
takes the time from then, or from its own launch, to its end.
"""

from __future__ import annotations

import itertools
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from itertools import chain, compress, groupby, islice, repeat
from operator import and_, itemgetter, le, lt, ne

from simcore.measured.columns import RankTrace
from simcore.measured.device_matching import match_devices
from simcore.measured.matching import Call, CollectiveMatch, Matches, match_calls, times_of
from simcore.measured.rank_positions import MODEL_PARALLEL
from simcore.measured.run import MeasuredRun
from simcore.measured.vocabulary import CATEGORIES, COMPUTE, COPY
from simcore.records import Struct
from simcore.sources.segments import (
    AWAIT,
    GAP,
    LAUNCH,
    MEET,
    OWN,
    TRANSFER,
    CallLinks,
    SegmentColumns,
    make_segments,
)
from simcore.units import differences

_COMPUTE = frozenset((*map(CATEGORIES.index, COMPUTE), CATEGORIES.index("host")))
_COPY = CATEGORIES.index(COPY)
# Tables for `translate`, 1 for what computes, copies, communicates, and for segments that take part in what
# several ranks do.
_COMPUTES = bytes(kind in _COMPUTE for kind in range(256))
_COPIES = bytes(kind == _COPY for kind in range(256))
_COMMUNICATES = bytes(kind not in _COMPUTE and kind != _COPY for kind in range(256))
_OF_SEVERAL = bytes(kind in (MEET, LAUNCH, AWAIT, TRANSFER) for kind in range(256))
# Fewer segments than this are made one by one in less time.
_STRETCH = 8
# Compute waited for a collective that ends this part of its length or less behind the begin of the compute,
# where its rank ran nothing for so large a part of it; of timers that are not those of a device.
_TOUCHES, _WAITS = 0.05, 0.5


def make_device_segments(rank_index: int, rank: RankTrace, meetings: Mapping[Call, int]) -> SegmentColumns:
    """Returns the segments of the rank with index `rank_index` in its run, from 0 ns to the end of its
    window.

    meetings: the id of the collective of each call.
    """
    walk = _DeviceWalk(rank)
    # What is before the step's begin on this rank is no gap of it.
    walk.until(rank.first_ns)
    # (time, whether it begins, operation): what ends at a time ends before another begins there.
    events: list[tuple[int, bool, int]] = []
    waited: dict[int, tuple[int, int]] = {}
    for op in compress(range(len(rank.ops)), rank.ops.stated_category.translate(_COMMUNICATES)):
        start, end = rank.ops.start[op], rank.ops.end[op]
        events.append((start, True, op))
        waited[op] = walk.waited(start, end)
        events.append((waited[op][1], False, op))

    def order(event: tuple[int, bool, int]) -> tuple[int, int, bool, int, int]:
        """Returns a sort key: ends come before what takes no time, then begins. Of several ends the one with
        the longest wait comes first; what has no length begins before it ends.
        """
        time, begins, op = event
        lasts = rank.ops.end[op] > rank.ops.start[op]
        turn = 2 * begins if lasts else 1
        return time, turn, not begins, 0 if begins else waited[op][0], op

    events.sort(key=order)
    for time, begins, op in events:
        meeting = meetings[Call(rank_index, op)]
        if begins:
            walk.until(time)
            walk.segments.add(LAUNCH, (walk.now, walk.now), op, meeting=meeting)
        else:
            walk.until(min(waited[op][0], time))
            walk.segments.add(AWAIT, (walk.now, max(walk.now, time)), op, meeting=meeting)
            walk.now = max(walk.now, time)
    walk.until(rank.last_ns)
    segments = walk.segments
    if not events:
        # Nothing is of several ranks: one column is enough.
        segments.meeting = segments.message = segments.received = segments.sub
    return segments


class _DeviceWalk:
    def __init__(self, rank: RankTrace) -> None:
        self.rank = rank
        self.segments = SegmentColumns()
        self.now = 0
        self.next = 0
        # What a device ran has launches.
        self.is_timed_by_program = rank.device is not None and all(
            map(lt, rank.device.correlation, repeat(0))
        )
        # Compute, one at a time; then copies, in the holes.
        self.start, self.end, self.op = self.computed = _one_at_a_time(rank, _COMPUTES)
        # Where the phase of compute changes.
        phases = bytes(map(rank.ops.stated_category.__getitem__, self.op))
        self.changes = list(compress(range(1, len(phases)), map(ne, phases[1:], phases)))
        copies = [*compress(range(len(rank.ops)), rank.ops.stated_category.translate(_COPIES))]
        if copies:
            copies.sort(key=lambda op: (rank.ops.start[op], rank.ops.end[op], op))
            self._fill(copies)

    def _fill(self, copies: list[int]) -> None:
        """Puts copies into the holes between what computes."""
        starts, ends, which = self.computed
        holes: list[tuple[int, int, int]] = []
        reached = 0
        for op in copies:
            now, over = max(self.rank.ops.start[op], reached), self.rank.ops.end[op]
            at = bisect_right(ends, now)
            while now < over:
                until = min(over, starts[at]) if at < len(starts) else over
                if until > now:
                    holes.append((now, until, op))
                if at >= len(starts):
                    break
                now = max(now, ends[at])
                at += 1
            reached = max(reached, over)
        columns = [
            [*column, *(hole[part] for hole in holes)] for part, column in enumerate((starts, ends, which))
        ]
        # None lie on each other, and both are in order: sorting merges two runs.
        order = sorted(range(len(columns[0])), key=columns[0].__getitem__)
        self.start, self.end = (array("q", map(column.__getitem__, order)) for column in columns[:2])
        self.op = array("i", map(columns[2].__getitem__, order))

    def waited(self, start: int, end: int) -> tuple[int, int]:
        """Returns (from, to) of the rank's wait for a collective that ran from start to end."""
        starts, ends, _ = self.computed
        at = bisect_left(ends, end)
        came = max(start, ends[at - 1] if at else 0)
        if at == len(starts) or starts[at] >= end:
            return came, end
        length = end - start
        if self.is_timed_by_program and (
            end - starts[at] <= _TOUCHES * length and starts[at] - came >= _WAITS * length
        ):
            return came, starts[at]
        behind = bisect_right(self.changes, at)
        time = starts[self.changes[behind]] if behind < len(self.changes) else self.rank.last_ns
        return time, time

    def until(self, time: int) -> None:
        """Adds what the rank does until `time`, if that is still to come."""
        while self.next < len(self.start) and self.end[self.next] <= self.now:
            self.next += 1
        while self.now < time:
            if self.next == len(self.start):
                self._add_segment(GAP, time, len(self.rank.ops) - 1)
                return
            whole = bisect_right(self.end, time, self.next)
            if whole - self.next >= _STRETCH and self.start[self.next] >= self.now:
                self._stretch(self.next, whole)
                continue
            op = self.op[self.next]
            if self.start[self.next] > self.now:
                self._add_segment(GAP, min(time, self.start[self.next]), op)
            else:
                self._add_segment(OWN, min(time, self.end[self.next]), op)
                self.next += self.end[self.next] <= self.now

    def _add_segment(self, kind: int, end: int, op: int) -> None:
        self.segments.add(kind, (self.now, end), op)
        self.now = end

    def _stretch(self, first: int, last: int) -> None:
        """Adds entries first..last - 1, one after another, each behind its gap, all at once."""
        begins, ends, ops = (column[first:last] for column in (self.start, self.end, self.op))
        kind = bytearray((GAP, OWN)) * len(ops)
        # Twice as long; the content is replaced.
        start, end, op = begins + begins, begins + begins, ops + ops
        start[0::2], start[1::2] = array("q", (self.now,)) + ends[:-1], begins
        end[0::2], end[1::2] = begins, ends
        op[0::2] = op[1::2] = ops
        lasts = bytes(map(ne, start, end))
        if 0 in lasts:
            kind = bytearray(compress(kind, lasts))
            start, end = (array("q", compress(column, lasts)) for column in (start, end))
            op = array("i", compress(op, lasts))
        self.segments.extend(kind, start, end, op)
        self.now, self.next = ends[-1], last


def _one_at_a_time(rank: RankTrace, kinds_table: bytes) -> tuple[array[int], array[int], array[int]]:
    """Returns (start, end, op) of operations that take time, one at a time: what began first goes first.

    kinds_table: a table for `translate`, 1 for the kinds of operations to take.
    """
    ops = rank.ops
    mask = bytes(map(and_, ops.stated_category.translate(kinds_table), map(lt, ops.start, ops.end)))
    start, end, which = ops.start, ops.end, array("i", range(len(ops)))
    if 0 in mask:
        start, end = (array("q", compress(column, mask)) for column in (start, end))
        which = array("i", compress(which, mask))
    if all(map(le, end, start[1:])):
        return start, end, which
    reached = 0
    starts, ends, ops_in_order = array("q"), array("q"), array("i")
    for begin, over, op in _sort_rows(start, end, which):
        if begin < reached:
            begin = reached
        if over > begin:
            starts.append(begin)
            ends.append(over)
            ops_in_order.append(op)
            reached = over
    return starts, ends, ops_in_order


def _sort_rows(start: array[int], end: array[int], which: array[int]) -> Iterable[tuple[int, int, int]]:
    """Returns (start, end, operation) in order. Starts mostly are: then those that begin at once are sorted
    alone, as a list of all rows takes 170 B each.
    """
    rows = zip(start, end, which, strict=True)
    if not all(map(le, start, islice(start, 1, None))):
        return sorted(rows)
    return chain.from_iterable(sorted(some) for _, some in groupby(rows, key=itemgetter(0)))


NONE = -1


class Rendezvous(Struct, frozen=True):
    """A run as segments, and the rendezvous of its ranks."""

    run: MeasuredRun
    """The run."""
    matches: Matches
    """The collectives and messages of its calls."""
    segments: tuple[SegmentColumns, ...]
    """By rank."""
    members: tuple[tuple[tuple[int, int, int], ...], ...]
    """members[m]: (rank, segment of arrival, segment of waiting) of collective m."""
    senders: tuple[tuple[int, int] | None, ...]
    """senders[m]: the (rank, segment) with which a rank comes to collective m without waiting in it: it
    begins to send what the collective, a receive alone, receives; None for all others.
    """
    before: tuple[int, ...]
    """before[m]: the collective of the same group that has to be over, or NONE."""
    transfers: tuple[tuple[tuple[int, int], tuple[int, int]], ...]
    """transfers[k]: ((rank, segment) of the sender, of the receiver) of message k."""
    meetings: tuple[tuple[int, int], ...]
    """(start, end) of each collective as measured, ns from the start of the step: from the last arrival,
    behind the one before it in its group. Where the ranks did not run together, only its length counts.
    """
    messages: tuple[tuple[int, int], ...]
    """(start, end) of each message, likewise."""
    first_ns: tuple[array[int], ...]
    """For each segment the time before any waiting (own time, a send)."""
    after_ns: tuple[array[int], ...]
    """For each segment the time behind its waiting."""

    def coming(self, meeting: int) -> list[tuple[int, int]]:
        """Returns (rank, segment) with which ranks come to a collective, those that do not wait in it
        last.
        """
        sender = self.senders[meeting]
        come = [(rank, segment) for rank, segment, _ in self.members[meeting]]
        return come if sender is None else [*come, sender]

    def count_coming(self, meeting: int) -> int:
        """Returns how many ranks come to a collective."""
        return len(self.members[meeting]) + (self.senders[meeting] is not None)

    @property
    def meeting_ns(self) -> list[int]:
        """The duration of each collective."""
        return [end - start for start, end in self.meetings]

    @property
    def message_ns(self) -> list[int]:
        """The duration of each message."""
        return [end - start for start, end in self.messages]


def make_rendezvous(run: MeasuredRun) -> Rendezvous:
    """Returns the rendezvous of a timed run; those of ranks that did not run together are as if they had."""
    if run.of_devices:
        matches = match_devices(run.ranks, run.degrees, run.concurrent)
        meetings = {call: index for index, meeting in enumerate(matches.meetings) for call in meeting.calls}
        segments = tuple(make_device_segments(index, rank, meetings) for index, rank in enumerate(run.ranks))
    else:
        matches = match_calls(run.ranks, run.degrees, run.concurrent)
        links = _links(run, matches)
        segments = tuple(make_segments(index, rank, links) for index, rank in enumerate(run.ranks))
    members, transfers = _partners(matches, segments)
    before = _orders(matches, members)
    senders = _senders(matches, members)
    return _Measure(run, matches, segments, members, senders, before, transfers).rendezvous()


def _links(run: MeasuredRun, matches: Matches) -> CallLinks:
    meetings, reached, waited = {}, {}, {}
    for index, meeting in enumerate(matches.meetings):
        meetings.update(dict.fromkeys(meeting.calls, index))
        if meeting.kind == MODEL_PARALLEL:
            arrivals = [times_of(run.ranks[call.rank], call)[0] for call in meeting.calls]
            # Ranks without a common clock did not wait for each other here.
            reached[index] = max(arrivals) if run.concurrent else 0
        elif meeting.is_async:
            waited.update(_waited(run, meeting))
    return CallLinks(
        meetings,
        {message.send: index for index, message in enumerate(matches.messages)},
        {message.receive: index for index, message in enumerate(matches.messages)},
        reached,
        waited,
    )


def _waited(run: MeasuredRun, meeting: CollectiveMatch) -> dict[Call, int]:
    """Returns how long each rank waits for an asynchronous collective behind the compute that it overlaps."""
    times = {call: times_of(run.ranks[call.rank], call) for call in meeting.calls}
    if not run.concurrent:
        return dict.fromkeys(times, 0)
    shortest = min(end - start for start, end in times.values())
    first = min(end for _, end in times.values())
    # Only the first to end can have been held by the collective; the others had compute to do.
    return {call: end - start - shortest if end == first else 0 for call, (start, end) in times.items()}


def _partners(
    matches: Matches, segments: tuple[SegmentColumns, ...]
) -> tuple[tuple[tuple[tuple[int, int, int], ...], ...], tuple[tuple[tuple[int, int], tuple[int, int]], ...]]:
    """Returns the segments of each collective and of each message."""
    arrivals: list[dict[int, int]] = [{} for _ in matches.meetings]
    waits: list[dict[int, int]] = [{} for _ in matches.meetings]
    senders = [(NONE, NONE)] * len(matches.messages)
    receivers = list(senders)
    for rank, columns in enumerate(segments):
        for segment in compress(range(len(columns)), columns.kind.translate(_OF_SEVERAL)):
            kind, meeting = columns.kind[segment], columns.meeting[segment]
            if kind in (MEET, LAUNCH):
                arrivals[meeting][rank] = segment
            if kind in (MEET, AWAIT):
                waits[meeting][rank] = segment
            if kind == TRANSFER:
                if columns.message[segment] >= 0:
                    senders[columns.message[segment]] = (rank, segment)
                if columns.received[segment] >= 0:
                    receivers[columns.received[segment]] = (rank, segment)
    members = tuple(
        tuple((rank, segment, waits[index][rank]) for rank, segment in arrivals[index].items())
        for index in range(len(matches.meetings))
    )
    return members, tuple(zip(senders, receivers, strict=True))


def _senders(
    matches: Matches, members: tuple[tuple[tuple[int, int, int], ...], ...]
) -> tuple[tuple[int, int] | None, ...]:
    """Returns, for each collective, the segment with which a rank that does not wait begins to send."""
    send_by_call = {
        meeting.calls[0]: of[0][:2]
        for meeting, of in zip(matches.meetings, members, strict=True)
        if meeting.is_message and len(of) == 1
    }
    return tuple(
        None if meeting.sender is None else send_by_call[meeting.sender] for meeting in matches.meetings
    )


def _orders(matches: Matches, members: tuple[tuple[tuple[int, int, int], ...], ...]) -> tuple[int, ...]:
    """Returns the collective before each one on the lane of its group, if all members come in that order."""
    groups: dict[object, list[int]] = {}
    for index, meeting in enumerate(matches.meetings):
        groups.setdefault(meeting.group, []).append(index)
    before = [NONE] * len(members)
    for indices in groups.values():
        rank, _, _ = members[indices[0]][0]
        indices.sort(key=lambda index: _arrival(members[index], rank))
        for earlier, later in itertools.pairwise(indices):
            came = {who: segment for who, segment, _ in members[earlier]}
            if all(came.get(who, segment) < segment for who, segment, _ in members[later]):
                before[later] = earlier
    return tuple(before)


def _arrival(members: tuple[tuple[int, int, int], ...], rank: int) -> int:
    """Returns the segment with which a rank comes to a collective; its first member's if it is no member."""
    return next((segment for who, segment, _ in members if who == rank), members[0][1])


class _Measure:
    """Computes what each segment takes by itself from the times that were measured."""

    def __init__(
        self,
        run: MeasuredRun,
        matches: Matches,
        segments: tuple[SegmentColumns, ...],
        members: tuple[tuple[tuple[int, int, int], ...], ...],
        senders: tuple[tuple[int, int] | None, ...],
        before: tuple[int, ...],
        transfers: tuple[tuple[tuple[int, int], tuple[int, int]], ...],
    ) -> None:
        self.run = run
        self.matches = matches
        self.segments = segments
        self.members = members
        self.senders = senders
        self.before = list(before)
        self.transfers = transfers

    def rendezvous(self) -> Rendezvous:
        meetings = self._meetings()
        messages = self._messages()
        first = [differences(segments.end, segments.start) for segments in self.segments]
        after = [array("q", bytes(8 * len(segments))) for segments in self.segments]
        concurrent, of_devices = self.run.concurrent, self.run.of_devices
        for rank, columns in enumerate(self.segments):
            for segment in compress(range(len(columns)), columns.kind.translate(_OF_SEVERAL)):
                kind, start, end = columns.kind[segment], columns.start[segment], columns.end[segment]
                if kind in (MEET, AWAIT, LAUNCH):
                    first[rank][segment] = 0
                    # A kernel ends by itself, microseconds after the first of its collective; what overlaps
                    # a Megatron trace's compute has no end of its own.
                    if (kind == MEET or (kind == AWAIT and of_devices)) and concurrent:
                        over = max(start, meetings[columns.meeting[segment]][1])
                        after[rank][segment] = max(end - over, 0)
                elif kind == TRANSFER and columns.received[segment] >= 0:
                    message = columns.message[segment]
                    own = messages[message][1] - messages[message][0] if message >= 0 else 0
                    first[rank][segment] = own
                    over = max(start + own, messages[columns.received[segment]][1])
                    after[rank][segment] = max(end - over, 0) if concurrent else 0
        return Rendezvous(
            self.run, self.matches, self.segments, self.members, self.senders, tuple(self.before),
            self.transfers,
            tuple(meetings), tuple(messages), tuple(first), tuple(after),
        )  # fmt: skip

    def _meetings(self) -> list[tuple[int, int]]:
        meetings: list[tuple[int, int]] = [(0, 0)] * len(self.members)
        for index in self._in_order():
            calls = self.members[index]
            sender = self.senders[index]
            came = [(rank, segment) for rank, segment, _ in calls] + ([] if sender is None else [sender])
            start = max(self.segments[rank].start[segment] for rank, segment in came)
            ends = [self._end(rank, segment) for rank, _, segment in calls]
            if self.matches.meetings[index].kind == MODEL_PARALLEL:
                meetings[index] = (start, start)
            elif self.run.concurrent:
                earlier = self.before[index]
                if earlier != NONE and meetings[earlier][1] > start:
                    if meetings[earlier][1] > min(ends):
                        # They ran at the same time: no queue on a lane.
                        self.before[index] = NONE
                    else:
                        start = meetings[earlier][1]
                meetings[index] = (start, max(start, min(ends)))
            else:
                shortest = min(
                    self._end(rank, last) - self.segments[rank].start[segment]
                    for rank, segment, last in calls
                )
                meetings[index] = (start, start + shortest)
        return meetings

    def _end(self, rank: int, segment: int) -> int:
        """Returns when a member's part in a collective ended: on a device the end of its kernel, whether it
        is waited for or not, unless compute that waited for it began before.
        """
        segments = self.segments[rank]
        end = segments.end[segment]
        return min(self.run.ranks[rank].ops.end[segments.op[segment]], end) if self.run.of_devices else end

    def _in_order(self) -> list[int]:
        """Returns the collectives, each behind the one before it in its group."""
        visited_meetings: set[int] = set()
        order: list[int] = []
        for index in range(len(self.members)):
            chain = []
            at = index
            while at != NONE and at not in visited_meetings:
                visited_meetings.add(at)
                chain.append(at)
                at = self.before[at]
            order += reversed(chain)
        return order

    def _messages(self) -> list[tuple[int, int]]:
        messages = []
        for (sender, sending), (receiver, receiving) in self.transfers:
            start, end = self.segments[sender].start[sending], self.segments[sender].end[sending]
            fused = self.segments[sender].received[sending] >= 0
            if self.run.concurrent:
                end = min(end, max(start, self.segments[receiver].end[receiving]))
            if fused:
                other = self.segments[receiver]
                end = min(end, start + other.end[receiving] - other.start[receiving])
            messages.append((start, end))
        return messages
