"""Clocks of different hosts, brought together by what their ranks did together.

`perf_counter` counts from each host's own start. Every matched communication bounds the offset between the
clocks of its two ranks: nothing is over before what it needs has begun. Ranks between which no offset is
needed are on one clock, the fewest clocks with which the run is possible.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from simcore.measured.clock_ties import Tie, fewest_clocks
from simcore.measured.columns import RankTrace
from simcore.measured.matching import Call, Matches, match, times_of
from simcore.measured.names import Degrees
from simcore.measured.places import MODEL_PARALLEL
from simcore.records import Struct

# What may be over too early, on clocks that were brought together: an offset is known that well.
_TOLERATED_NS = 1_000_000
# One communication alone brings any two ranks together that lie apart.
_LEAST_MATCHED = 2


class Clock(Struct, frozen=True):
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

    clocks: tuple[Clock, ...] = ()
    loose: tuple[int, ...] = ()
    breach: Breach | None = None


def common_clock(ranks: Sequence[RankTrace], degrees: Degrees, apart: bool) -> CommonClock:
    """The clocks of these ranks.

    apart: whether there is a time at which no rank runs. Nothing is shifted if no offsets make the run
    possible: ranks that lie apart did not run together then, and of the others it is said.
    """
    matches = match(ranks, degrees, on_one_clock=False)
    clocks, ties = fewest_clocks(len(ranks), _ties(ranks, matches))
    found = _shifts(clocks, ties, _LEAST_MATCHED if apart else 1)
    loose = tuple(rank for number in range(len(clocks)) if number not in found for rank in clocks[number])
    shifts = [0] * len(ranks)
    for clock in found.values():
        for member in clock.members:
            shifts[member] = clock.shift_ns
    if len(found) > 1 and not (apart and loose) and _worst(ranks, matches, shifts) is None:
        return CommonClock(tuple(found.values()), loose)
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
    found: dict[tuple[int, int], Tie] = {}
    for message in matches.messages:
        send, receive = message
        sent, received = times_of(ranks[send.rank], send), times_of(ranks[receive.rank], receive)
        if send.rank < receive.rank:
            tie = found.setdefault((send.rank, receive.rank), Tie())
            tie.most = min(tie.most, received[1] - sent[0])
            tie.there.append(received[1] - sent[1])
        elif send.rank > receive.rank:
            tie = found.setdefault((receive.rank, send.rank), Tie())
            tie.least = max(tie.least, sent[0] - received[1])
            tie.back.append(sent[1] - received[1])
    for number, calls in enumerate(_bound(ranks, matches)):
        spans = {call.rank: times_of(ranks[call.rank], call) for call in calls}
        # Of all pairs those that bound most: with the first one gone, and with the last one to come.
        hubs = {min(spans), min(spans, key=lambda rank: spans[rank][1]),
                max(spans, key=lambda rank: spans[rank][0])}  # fmt: skip
        for one, other in sorted({(min(hub, rank), max(hub, rank)) for hub in hubs for rank in spans}):
            if one == other:
                continue
            (start, end), (other_start, other_end) = spans[one], spans[other]
            tie = found.setdefault((one, other), Tie())
            tie.least, tie.most = max(tie.least, other_start - end), min(tie.most, other_end - start)
            tie.ends.append((number, other_end - end))
    return found


def _shifts(
    clocks: Sequence[tuple[int, ...]], ties: Sequence[dict[int, Tie]], least_matched: int
) -> dict[int, Clock]:
    """The clocks that can be brought to the first one, by the most matched communications first."""
    found = {0: Clock(clocks[0], 0, 0)}
    while True:
        edges = [(*tie.matched, -one, -other) for one in found for other, tie in ties[one].items()
                 if other not in found and sum(tie.matched) >= least_matched]  # fmt: skip
        if not edges:
            return found
        collectives, messages, one, other = max(edges)
        one, other = -one, -other
        bounds = [
            (ties[number][other], clock.shift_ns) for number, clock in found.items() if other in ties[number]
        ]
        least = max(tie.least - shift_ns for tie, shift_ns in bounds)
        most = min(tie.most - shift_ns for tie, shift_ns in bounds)
        offset = ties[one][other].offset() - found[one].shift_ns
        if least <= most:
            offset = min(max(offset, least), most)
        found[other] = Clock(clocks[other], -offset, collectives or messages)


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
