"""Clocks of different hosts, brought together by what their ranks did together.

`perf_counter` counts from each host's own start. Every matched communication bounds the offset between the
clocks of its two ranks: nothing is over before what it needs has begun. Ranks between which no offset is
needed are on one clock, the fewest clocks with which the run is possible.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median_low

from simcore.measured.columns import RankTrace
from simcore.measured.matching import Call, Matches, match, times_of
from simcore.measured.places import MODEL_PARALLEL, Degrees
from simcore.records import Struct, field

# Real runs on one clock have nothing that is over more than 0.03 ms before what it needs begins.
_SLACK_NS = 100_000
# Two ranks on one clock leave many collectives 0.00 to 0.02 ms apart (median), a single one up to 6.74 ms.
_MANY = 8
_APART_NS, _FEW_APART_NS, _ALONE_APART_NS = 200_000, 500_000, 10_000_000
_SPREAD_NS = 100_000
_ANY = 1 << 70


class Tie(Struct):
    """Communication between the ranks of two clocks; all ns, and by how much the second clock is ahead.

    least, most: what is possible. ends: (collective, difference of the ends) of collectives; there, back: of
    messages from the first to the second and back.
    """

    least: int = -_ANY
    most: int = _ANY
    ends: list[tuple[int, int]] = field(default_factory=list)
    there: list[int] = field(default_factory=list)
    back: list[int] = field(default_factory=list)

    @property
    def matched(self) -> tuple[int, int]:
        """How many collectives, how many messages."""
        return len({number for number, _ in self.ends}), len(self.there) + len(self.back)

    def offset(self) -> int:
        """What it seems to be. Members leave a collective together; a message takes its time both ways."""
        if self.ends:
            return median_low(ns for _, ns in self.ends)
        if self.there and self.back:
            return (median_low(self.there) + median_low(self.back)) // 2
        return median_low(self.there or self.back)

    def is_one_clock(self) -> bool:
        """Whether the clocks need not differ."""
        return self.least <= _SLACK_NS and self.most >= -_SLACK_NS and not self._leaves_apart()

    def _leaves_apart(self) -> bool:
        """Whether one leaves every collective by the same time later: no host is that regular."""
        collectives = self.matched[0]
        if not collectives:
            return False
        middle = self.offset()
        if collectives == 1:
            return abs(middle) > _ALONE_APART_NS
        spread = max(_SPREAD_NS, abs(middle) // 10)
        near = sum(abs(ns - middle) <= spread for _, ns in self.ends)
        least = _APART_NS if collectives >= _MANY else _FEW_APART_NS
        return abs(middle) > least and near * 4 >= len(self.ends) * 3

    def flipped(self) -> Tie:
        """The same, seen from the second clock."""
        ends = [(number, -ns) for number, ns in self.ends]
        return Tie(-self.most, -self.least, ends, [-ns for ns in self.back], [-ns for ns in self.there])

    def joined(self, other: Tie) -> Tie:
        """Both, of clocks that are one."""
        return Tie(max(self.least, other.least), min(self.most, other.most), self.ends + other.ends,
                   self.there + other.there, self.back + other.back)  # fmt: skip


def fewest_clocks(
    count: int, ties: Mapping[tuple[int, int], Tie]
) -> tuple[list[tuple[int, ...]], list[dict[int, Tie]]]:
    """(the ranks of each clock, ascending; by clock its ties to others) of `count` ranks.

    ties: by (rank, rank), the lower one first. Those that seem to differ least are brought together first.
    """
    root = list(range(count))
    near: list[dict[int, Tie]] = [{} for _ in root]
    for (clock, other), tie in ties.items():
        near[clock][other], near[other][clock] = tie, tie.flipped()

    def find(rank: int) -> int:
        while root[rank] != rank:
            rank = root[rank]
        return rank

    for pair in sorted(ties, key=lambda pair: (abs(ties[pair].offset()), pair)):
        first, second = sorted(map(find, pair))
        if first == second or not near[first][second].is_one_clock():
            continue
        root[second] = first
        del near[first][second]
        for third, tie in near[second].items():
            if third == first:
                continue
            del near[third][second]
            tie = near[first][third].joined(tie) if third in near[first] else tie
            near[first][third], near[third][first] = tie, tie.flipped()
        near[second] = {}
    members: dict[int, list[int]] = {}
    for rank in range(count):
        members.setdefault(find(rank), []).append(rank)
    number_of = {member: number for number, member in enumerate(members)}
    between = [{number_of[other]: tie for other, tie in near[member].items()} for member in members]
    return [tuple(ranks) for ranks in members.values()], between


# What may be over too early, on clocks that were brought together: an offset is known that well.
_TOLERATED_NS = 1_000_000
# One communication alone brings any two ranks together that lie apart.
_LEAST_MATCHED = 2


class RankClock(Struct, frozen=True):
    """Ranks of one clock. members: indices of ranks. shift_ns: to add to their times. matched: how many
    communications tell it, 0 of the clock that the others are brought to.
    """

    members: tuple[int, ...]
    shift_ns: int
    matched: int


class Breach(Struct, frozen=True):
    """`early` was over `ns` before `late`, which it needs, began."""

    early: Call
    late: Call
    ns: int


class CommonClock(Struct, frozen=True):
    """clocks: none or more than one, the first of them unshifted. loose: indices of ranks that nothing ties
    to them, which stay as written. breach: what is impossible on any clocks, the worst of it.
    """

    clocks: tuple[RankClock, ...] = ()
    loose: tuple[int, ...] = ()
    breach: Breach | None = None


def common_clock(ranks: Sequence[RankTrace], degrees: Degrees, apart: bool) -> CommonClock:
    """The clocks of these ranks.

    apart: whether there is a time at which no rank runs. Nothing is shifted if no offsets make the run
    possible: ranks that lie apart did not run together then, and of the others it is said.
    """
    matches = match(ranks, degrees, on_one_clock=False)
    clocks, ties = fewest_clocks(len(ranks), _ties(ranks, matches))
    clock_of = _shifts(clocks, ties, _LEAST_MATCHED if apart else 1)
    loose = tuple(rank for number in range(len(clocks)) if number not in clock_of for rank in clocks[number])
    shifts = [0] * len(ranks)
    for clock in clock_of.values():
        for member in clock.members:
            shifts[member] = clock.shift_ns
    if len(clock_of) > 1 and not (apart and loose) and _worst(ranks, matches, shifts) is None:
        return CommonClock(tuple(clock_of.values()), loose)
    return CommonClock() if apart else CommonClock(breach=_worst(ranks, matches, [0] * len(ranks)))


def _bound(ranks: Sequence[RankTrace], matches: Matches) -> Iterator[tuple[Call, ...]]:
    """The calls of each collective that ends for all of its members at once."""
    for meeting in matches.meetings:
        first = meeting.calls[0]
        trace = ranks[first.rank]
        collective = trace.subs.collective[first.sub] if first.sub >= 0 else None
        # The root of a broadcast does not wait for the others; `tp_load_batch_broadcast` may be alone.
        is_broadcast = "broadcast" in (collective or trace.ops.name[first.op])
        if meeting.kind != MODEL_PARALLEL and not meeting.is_async and not is_broadcast:
            yield meeting.calls


def _ties(ranks: Sequence[RankTrace], matches: Matches) -> dict[tuple[int, int], Tie]:
    """(rank, rank), the lower one first -> what both did together."""
    ties: dict[tuple[int, int], Tie] = {}
    for message in matches.messages:
        send, receive = message
        sent, received = times_of(ranks[send.rank], send), times_of(ranks[receive.rank], receive)
        if send.rank < receive.rank:
            tie = ties.setdefault((send.rank, receive.rank), Tie())
            tie.most = min(tie.most, received[1] - sent[0])
            tie.there.append(received[1] - sent[1])
        elif send.rank > receive.rank:
            tie = ties.setdefault((receive.rank, send.rank), Tie())
            tie.least = max(tie.least, sent[0] - received[1])
            tie.back.append(sent[1] - received[1])
    for number, calls in enumerate(_bound(ranks, matches)):
        spans = {call.rank: times_of(ranks[call.rank], call) for call in calls}
        # Of all pairs those that bound most: with the first one gone, and with the last one to come.
        hubs = {min(spans), min(spans, key=lambda rank: spans[rank][1]),
                max(spans, key=lambda rank: spans[rank][0])}  # fmt: skip
        for first, other in sorted({(min(hub, rank), max(hub, rank)) for hub in hubs for rank in spans}):
            if first == other:
                continue
            (start, end), (other_start, other_end) = spans[first], spans[other]
            tie = ties.setdefault((first, other), Tie())
            tie.least, tie.most = max(tie.least, other_start - end), min(tie.most, other_end - start)
            tie.ends.append((number, other_end - end))
    return ties


def _shifts(
    clocks: Sequence[tuple[int, ...]], ties: Sequence[dict[int, Tie]], least_matched: int
) -> dict[int, RankClock]:
    """The clocks that can be brought to the first one, by the most matched communications first."""
    shifts = {0: RankClock(clocks[0], 0, 0)}
    while True:
        edges = [(*tie.matched, -first, -other) for first in shifts for other, tie in ties[first].items()
                 if other not in shifts and sum(tie.matched) >= least_matched]  # fmt: skip
        if not edges:
            return shifts
        collectives, messages, first, other = max(edges)
        first, other = -first, -other
        bounds = [
            (ties[number][other], clock.shift_ns) for number, clock in shifts.items() if other in ties[number]
        ]
        least = max(tie.least - shift_ns for tie, shift_ns in bounds)
        most = min(tie.most - shift_ns for tie, shift_ns in bounds)
        offset = ties[first][other].offset() - shifts[first].shift_ns
        if least <= most:
            offset = min(max(offset, least), most)
        shifts[other] = RankClock(clocks[other], -offset, collectives or messages)


def _worst(ranks: Sequence[RankTrace], matches: Matches, shifts: Sequence[int]) -> Breach | None:
    """What ends furthest before what it needs begins; None where all is possible."""
    worst: Breach | None = None

    def end_of(call: Call) -> int:
        return times_of(ranks[call.rank], call)[1] + shifts[call.rank]

    def start_of(call: Call) -> int:
        return times_of(ranks[call.rank], call)[0] + shifts[call.rank]

    needs = [(message.receive, message.send) for message in matches.messages]
    needs += [(min(calls, key=end_of), max(calls, key=start_of)) for calls in _bound(ranks, matches)]
    for early, late in needs:
        ns = start_of(late) - end_of(early)
        if ns > (_TOLERATED_NS if worst is None else worst.ns):
            worst = Breach(early, late, ns)
    return worst
