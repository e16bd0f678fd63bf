"""Clocks of different hosts, aligned by what their ranks did together.

`perf_counter` counts from each host's own start. Every matched communication bounds the offset between the
clocks of its two ranks: nothing ends before what it needs has begun. Ranks that need no offset between them
are on one clock; the number of clocks is the least with which the run is possible.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median_low

from simcore.measured.columns import RankTrace
from simcore.measured.matching import Call, Matches, match_calls, times_of
from simcore.measured.rank_positions import MODEL_PARALLEL, Degrees
from simcore.records import Struct, field

# In real runs on one clock nothing ends more than 0.03 ms before what it needs begins.
_SLACK_NS = 100_000
# Two ranks on one clock leave many collectives 0.00 to 0.02 ms apart (median), a single one up to 6.74 ms.
_MANY = 8
_APART_OF_MANY_NS, _APART_OF_FEW_NS, _APART_OF_ONE_NS = 200_000, 500_000, 10_000_000
_SPREAD_NS = 100_000
_ANY = 1 << 70


class ClockPair(Struct):
    """Communication between the ranks of two clocks, ns; offsets are by how much the second clock is
    ahead.
    """

    least: int = -_ANY
    """The least possible offset."""
    most: int = _ANY
    """The greatest possible offset."""
    ends: list[tuple[int, int]] = field(default_factory=list)
    """(collective, difference of the ends) of the collectives."""
    there: list[int] = field(default_factory=list)
    """Differences of the ends of messages from the first to the second."""
    back: list[int] = field(default_factory=list)
    """Differences of the ends of messages from the second to the first."""

    @property
    def match_counts(self) -> tuple[int, int]:
        """Returns (number of collectives, number of messages)."""
        return len({collective for collective, _ in self.ends}), len(self.there) + len(self.back)

    def offset(self) -> int:
        """Returns the likely offset. Members leave a collective together; a message takes its time both
        ways.
        """
        if self.ends:
            return median_low(ns for _, ns in self.ends)
        if self.there and self.back:
            return (median_low(self.there) + median_low(self.back)) // 2
        return median_low(self.there or self.back)

    def is_one_clock(self) -> bool:
        """Returns whether the offset may be 0."""
        return self.least <= _SLACK_NS and self.most >= -_SLACK_NS and not self._has_constant_offset()

    def _has_constant_offset(self) -> bool:
        """Returns whether one leaves every collective later by the same time: no host is that regular."""
        collectives = self.match_counts[0]
        if not collectives:
            return False
        middle = self.offset()
        if collectives == 1:
            return abs(middle) > _APART_OF_ONE_NS
        spread = max(_SPREAD_NS, abs(middle) // 10)
        near_count = sum(abs(ns - middle) <= spread for _, ns in self.ends)
        least = _APART_OF_MANY_NS if collectives >= _MANY else _APART_OF_FEW_NS
        return abs(middle) > least and near_count * 4 >= len(self.ends) * 3

    def flip(self) -> ClockPair:
        """Returns the pair as seen from the second clock."""
        ends = [(collective, -ns) for collective, ns in self.ends]
        return ClockPair(-self.most, -self.least, ends, [-ns for ns in self.back], [-ns for ns in self.there])

    def merge(self, other: ClockPair) -> ClockPair:
        """Returns both pairs as one, for clocks that are one."""
        return ClockPair(max(self.least, other.least), min(self.most, other.most), self.ends + other.ends,
                   self.there + other.there, self.back + other.back)  # fmt: skip


def find_fewest_clocks(
    count: int, clock_pairs: Mapping[tuple[int, int], ClockPair]
) -> tuple[list[tuple[int, ...]], list[dict[int, ClockPair]]]:
    """Returns (the ranks of each clock, ascending; by clock its pairs with other clocks) of `count` ranks.

    clock_pairs: by (rank, rank), the lower one first. Clocks that seem to differ least are merged first.
    """
    root = list(range(count))
    pairs_of: list[dict[int, ClockPair]] = [{} for _ in root]
    for (clock, other), clock_pair in clock_pairs.items():
        pairs_of[clock][other], pairs_of[other][clock] = clock_pair, clock_pair.flip()

    def find(rank: int) -> int:
        while root[rank] != rank:
            rank = root[rank]
        return rank

    for pair in sorted(clock_pairs, key=lambda pair: (abs(clock_pairs[pair].offset()), pair)):
        first, second = sorted(map(find, pair))
        if first == second or not pairs_of[first][second].is_one_clock():
            continue
        root[second] = first
        del pairs_of[first][second]
        for third, clock_pair in pairs_of[second].items():
            if third == first:
                continue
            del pairs_of[third][second]
            clock_pair = pairs_of[first][third].merge(clock_pair) if third in pairs_of[first] else clock_pair
            pairs_of[first][third], pairs_of[third][first] = clock_pair, clock_pair.flip()
        pairs_of[second] = {}
    members: dict[int, list[int]] = {}
    for rank in range(count):
        members.setdefault(find(rank), []).append(rank)
    number_of = {member: index for index, member in enumerate(members)}
    between = [
        {number_of[other]: clock_pair for other, clock_pair in pairs_of[member].items()} for member in members
    ]
    return [tuple(ranks) for ranks in members.values()], between


# By how much something may end too early on aligned clocks: offsets are known to this precision.
_TOLERATED_NS = 1_000_000
# A single communication would align any two ranks that did not run at the same time.
_LEAST_MATCHED = 2


class RankClock(Struct, frozen=True):
    """Ranks of one clock."""

    members: tuple[int, ...]
    """Indices of the ranks."""
    shift_ns: int
    """To add to their times."""
    match_count: int
    """How many communications the shift is from, 0 for the clock that the others are aligned to."""


class Breach(Struct, frozen=True):
    """`early` ended `ns` before `late`, which it needs, began."""

    early: Call
    late: Call
    ns: int


class CommonClock(Struct, frozen=True):
    """The clocks of the ranks of a run and their shifts."""

    clocks: tuple[RankClock, ...] = ()
    """None or more than one, the first of them unshifted."""
    loose: tuple[int, ...] = ()
    """Indices of ranks that no communication aligns with these clocks; their times stay as written."""
    breach: Breach | None = None
    """The worst of what is impossible on any clocks."""


def find_common_clock(ranks: Sequence[RankTrace], degrees: Degrees, apart: bool) -> CommonClock:
    """Returns the clocks of these ranks.

    apart: whether there is a time at which no rank runs. Nothing is shifted if no offsets make the run
    possible: ranks that lie apart did not run together then; for others `breach` says what is impossible.
    """
    matches = match_calls(ranks, degrees, on_one_clock=False)
    clocks, clock_pairs = find_fewest_clocks(len(ranks), _find_clock_pairs(ranks, matches))
    clock_of = _find_shifts(clocks, clock_pairs, _LEAST_MATCHED if apart else 1)
    loose = tuple(rank for index in range(len(clocks)) if index not in clock_of for rank in clocks[index])
    shifts = [0] * len(ranks)
    for clock in clock_of.values():
        for member in clock.members:
            shifts[member] = clock.shift_ns
    if len(clock_of) > 1 and not (apart and loose) and _worst_breach(ranks, matches, shifts) is None:
        return CommonClock(tuple(clock_of.values()), loose)
    return CommonClock() if apart else CommonClock(breach=_worst_breach(ranks, matches, [0] * len(ranks)))


def _synchronous_calls(ranks: Sequence[RankTrace], matches: Matches) -> Iterator[tuple[Call, ...]]:
    """Yields the calls of each collective that ends for all of its members at once."""
    for meeting in matches.meetings:
        first = meeting.calls[0]
        trace = ranks[first.rank]
        collective = trace.subs.collective[first.sub] if first.sub >= 0 else None
        # The root of a broadcast does not wait for the others; `tp_load_batch_broadcast` may be alone.
        is_broadcast = "broadcast" in (collective or trace.ops.name[first.op])
        if meeting.kind != MODEL_PARALLEL and not meeting.is_async and not is_broadcast:
            yield meeting.calls


def _find_clock_pairs(ranks: Sequence[RankTrace], matches: Matches) -> dict[tuple[int, int], ClockPair]:
    """Returns (rank, rank), the lower one first -> what both did together."""
    clock_pairs: dict[tuple[int, int], ClockPair] = {}
    for message in matches.messages:
        send, receive = message
        send_times, receive_times = times_of(ranks[send.rank], send), times_of(ranks[receive.rank], receive)
        if send.rank < receive.rank:
            clock_pair = clock_pairs.setdefault((send.rank, receive.rank), ClockPair())
            clock_pair.most = min(clock_pair.most, receive_times[1] - send_times[0])
            clock_pair.there.append(receive_times[1] - send_times[1])
        elif send.rank > receive.rank:
            clock_pair = clock_pairs.setdefault((receive.rank, send.rank), ClockPair())
            clock_pair.least = max(clock_pair.least, send_times[0] - receive_times[1])
            clock_pair.back.append(send_times[1] - receive_times[1])
    for collective, calls in enumerate(_synchronous_calls(ranks, matches)):
        spans = {call.rank: times_of(ranks[call.rank], call) for call in calls}
        # These pairs bound most: those with the first member that left and with the last one that came.
        hubs = {min(spans), min(spans, key=lambda rank: spans[rank][1]),
                max(spans, key=lambda rank: spans[rank][0])}  # fmt: skip
        for first, other in sorted({(min(hub, rank), max(hub, rank)) for hub in hubs for rank in spans}):
            if first == other:
                continue
            (start, end), (other_start, other_end) = spans[first], spans[other]
            clock_pair = clock_pairs.setdefault((first, other), ClockPair())
            clock_pair.least, clock_pair.most = (
                max(clock_pair.least, other_start - end),
                min(clock_pair.most, other_end - start),
            )
            clock_pair.ends.append((collective, other_end - end))
    return clock_pairs


def _find_shifts(
    clocks: Sequence[tuple[int, ...]], clock_pairs: Sequence[dict[int, ClockPair]], least_matched: int
) -> dict[int, RankClock]:
    """Returns the clocks that can be aligned with the first one, by the most matched communications first."""
    shifts = {0: RankClock(clocks[0], 0, 0)}
    while True:
        edges = [
            (*clock_pair.match_counts, -first, -other)
            for first in shifts
            for other, clock_pair in clock_pairs[first].items()
            if other not in shifts and sum(clock_pair.match_counts) >= least_matched
        ]
        if not edges:
            return shifts
        collectives, messages, first, other = max(edges)
        first, other = -first, -other
        bounds = [
            (clock_pairs[index][other], clock.shift_ns)
            for index, clock in shifts.items()
            if other in clock_pairs[index]
        ]
        least = max(clock_pair.least - shift_ns for clock_pair, shift_ns in bounds)
        most = min(clock_pair.most - shift_ns for clock_pair, shift_ns in bounds)
        offset = clock_pairs[first][other].offset() - shifts[first].shift_ns
        if least <= most:
            offset = min(max(offset, least), most)
        shifts[other] = RankClock(clocks[other], -offset, collectives or messages)


def _worst_breach(ranks: Sequence[RankTrace], matches: Matches, shifts: Sequence[int]) -> Breach | None:
    """Returns what ends furthest before what it needs begins; None where all is possible."""
    worst: Breach | None = None

    def end_of(call: Call) -> int:
        return times_of(ranks[call.rank], call)[1] + shifts[call.rank]

    def start_of(call: Call) -> int:
        return times_of(ranks[call.rank], call)[0] + shifts[call.rank]

    needs = [(message.receive, message.send) for message in matches.messages]
    needs += [
        (min(calls, key=end_of), max(calls, key=start_of)) for calls in _synchronous_calls(ranks, matches)
    ]
    for early, late in needs:
        ns = start_of(late) - end_of(early)
        if ns > (_TOLERATED_NS if worst is None else worst.ns):
            worst = Breach(early, late, ns)
    return worst


def largest_gap(spans: Iterable[tuple[int, int]]) -> int:
    """Returns the longest time, ns, at which no rank runs between two that do; 0 where there is none. spans:
    (start, end) of each.
    """
    (_, reached), *others = sorted(spans)
    largest = 0
    for start, end in others:
        largest = max(largest, start - reached)
        reached = max(reached, end)
    return largest
