"""Which kernels of several ranks are one collective, and how far the clocks of their hosts lie apart.

A profiler says of a collective its number in its communicator, or its group and sizes, or nothing. So kernels
belong together by (communicator, number), else by (group and its ranks, operation) or (operation alone), and
then by order. Where a rank has fewer of them than another, its window began late or ended early: they are
laid against the others' where sizes agree and the times between their ends are most alike. Neither rule looks
at a clock, so that the match is the same whatever the clocks show; a collective ends for all of its members
at once, and that brings the clocks together. Order is a guess, though, which these clocks put to the test:
kernels that end apart were not one collective.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import median_low

from simcore.measured.columns import TOLERANCE_NS, RankTrace, ToldCollective
from simcore.measured.matching import Call, Matches, Meeting, times_of
from simcore.measured.places import Degrees, GroupKey, Places
from simcore.records import Struct

# Of two windows so many laid against each other are tried, beside the two that begin or end together.
_MOST_SHIFTS = 64
_COMPARED = 256
# The root of a broadcast does not wait, a small send neither: their ends tell nothing of clocks.
_LOOSE = frozenset(("broadcast", "send", "recv", "reduce", "gather", "scatter"))
# Category of a communication -> the word of a rank trace for such a group.
_KINDS = {"tp": "tp", "pp": "pp", "dp": "dp", "expert": "exp"}
# Kernels of one collective end 1 to 332 us apart on clocks brought together (dlrm_8, hta_sampled); those that
# order pairs wrongly, 13 to 134 ms (hta_sampled).
_APART_NS = 1_000_000

_Key = tuple[object, ...]


class DeviceClocks(Struct, frozen=True):
    """shifts: ns to add to each rank's times. matched: how many collectives tell it, 0 of the first rank of
    those that hang together and of ranks that nothing ties to others. residual_ns: by how much the ends of a
    collective still differ, the middle and the most of all.
    """

    shifts: tuple[int, ...]
    matched: tuple[int, ...]
    residual_ns: tuple[int, int]


def match_devices(ranks: Sequence[RankTrace], degrees: Degrees, on_one_clock: bool) -> Matches:
    """What belongs together among the operations of devices. A call without a partner is a meeting of its
    own, which nobody else comes to. on_one_clock: calls that were over before another began are no match, nor
    are those that order pairs and their ends refute.
    """
    groups: dict[tuple[object, ...], int] = {}
    meetings: list[Meeting] = []
    alone: set[Call] = set()
    unmatched: list[Call] = []

    def add(calls: tuple[Call, ...], key: tuple[object, ...]) -> None:
        first = calls[0]
        kind = _KINDS.get(ranks[first.rank].ops.category(first.op), "comm")
        group: GroupKey = (kind, groups.setdefault(key, len(groups)), 0)
        meetings.append(Meeting(kind, group, calls, True))

    together = list(_together(ranks))
    refuted = _refuted(ranks, [calls for _, calls in together]) if on_one_clock else set()
    for key, calls in together:
        met = len(calls) > 1 and (not on_one_clock or (calls not in refuted and _met(ranks, calls)))
        if met:
            add(calls, (key, _members(calls)))
            continue
        for call in calls:
            said = _said(ranks, call)
            if said.size == 1:
                alone.add(call)
            else:
                unmatched.append(call)
            device = ranks[call.rank].device
            add((call,), (key, "alone", call.rank, device.stream[call.op] if device else 0))
    places = Places((None,) * len(ranks), degrees, 1)
    return Matches((), tuple(meetings), frozenset(alone), tuple(unmatched), places)


def meetings_lacking(ranks: Sequence[RankTrace], matches: Matches) -> int:
    """How many collectives are matched among those of their members that are there, others being missing."""
    count = 0
    for meeting in matches.meetings:
        size = max(_said(ranks, call).size for call in meeting.calls)
        count += 1 < len(meeting.calls) < size
    return count


def device_clocks(ranks: Sequence[RankTrace], degrees: Degrees) -> DeviceClocks:
    """The clock of each rank, by the ends of the collectives that ranks were in together."""
    matches = match_devices(ranks, degrees, on_one_clock=False)
    meetings = [meeting.calls for meeting in matches.meetings if len(meeting.calls) > 1]
    firm = [calls for calls in meetings if _said(ranks, calls[0]).operation not in _LOOSE]
    tied = {call.rank for calls in firm for call in calls}
    firm += [calls for calls in meetings if any(call.rank not in tied for call in calls)]
    ends: list[dict[int, int]] = [
        {call.rank: times_of(ranks[call.rank], call)[1] for call in calls} for calls in firm
    ]
    shifts, matched = [0] * len(ranks), [0] * len(ranks)
    known: set[int] = set()
    while len(known) < len(ranks):
        counts: Counter[int] = Counter()
        for end_of in ends:
            if not known.isdisjoint(end_of):
                counts.update(rank for rank in end_of if rank not in known)
        if not counts:
            known.add(min(rank for rank in range(len(ranks)) if rank not in known))
            continue
        rank = max(counts, key=lambda count: (counts[count], -count))
        apart = [
            end_by_rank[rank]
            - median_low(end + shifts[other] for other, end in end_by_rank.items() if other in known)
            for end_by_rank in ends
            if rank in end_by_rank and not known.isdisjoint(end_by_rank)
        ]
        shifts[rank], matched[rank] = -median_low(apart), len(apart)
        known.add(rank)
    left = sorted(
        max(times) - min(times)
        for end_by_rank in ends
        for times in ([end + shifts[rank] for rank, end in end_by_rank.items()],)
    )
    residual = (left[len(left) // 2], left[-1]) if left else (0, 0)
    return DeviceClocks(tuple(shifts), tuple(matched), residual)


def _met(ranks: Sequence[RankTrace], calls: tuple[Call, ...]) -> bool:
    times = [times_of(ranks[call.rank], call) for call in calls]
    return min(end for _, end in times) >= max(start for start, _ in times) - TOLERANCE_NS


def _refuted(ranks: Sequence[RankTrace], together: Sequence[tuple[Call, ...]]) -> set[tuple[Call, ...]]:
    """What order pairs though it was no collective: its members end apart. Of many the only one whose members
    end at once is no match either: it alone has set their clocks, so that its ends prove nothing.
    """
    guessed = [calls for calls in together if len(calls) > 1 and _is_guessed(ranks, calls)]
    tried = Counter(map(_members, guessed))
    at_once = [calls for calls in guessed if _ends_apart_ns(ranks, calls) <= _APART_NS]
    agree = Counter(map(_members, at_once))
    proven = {calls for calls in at_once if agree[_members(calls)] > 1 or tried[_members(calls)] == 1}
    return set(guessed) - proven


def _is_guessed(ranks: Sequence[RankTrace], calls: tuple[Call, ...]) -> bool:
    """Whether order alone has paired kernels that, as one collective, would end at once."""
    devices, said = [ranks[call.rank].device for call in calls], [_said(ranks, call) for call in calls]
    # What a host ran has no kernel: its threads are through when they get a core, milliseconds apart.
    if not all(device is not None and device.on_device for device in devices):
        return False
    if all(one.sequence is not None and one.communicator is not None for one in said):
        return False
    return said[0].operation not in _LOOSE or any(one.ranks is None for one in said)


def _members(calls: tuple[Call, ...]) -> tuple[int, ...]:
    return tuple(call.rank for call in calls)


def _ends_apart_ns(ranks: Sequence[RankTrace], calls: tuple[Call, ...]) -> int:
    ends = [times_of(ranks[call.rank], call)[1] for call in calls]
    return max(ends) - min(ends)


def _said(ranks: Sequence[RankTrace], call: Call) -> ToldCollective:
    device = ranks[call.rank].device
    assert device is not None
    return device.collectives[call.op]


def _together(ranks: Sequence[RankTrace]) -> Iterator[tuple[_Key, tuple[Call, ...]]]:
    """(key, calls) of what is one collective, by key in the order in which they first come."""
    numbered: dict[_Key, list[Call]] = {}
    ordered: dict[_Key, dict[int, list[Call]]] = {}
    for number, rank in enumerate(ranks):
        if rank.device is None:
            continue
        for op, said in rank.device.collectives.items():
            call = Call(number, op)
            if said.sequence is not None and said.communicator is not None:
                key = (said.communicator, said.sequence, *_pair(said, rank.number))
                some = numbered.setdefault(key, [])
                if all(other.rank != number for other in some):
                    some.append(call)
                    continue
            key = _key(said, rank.number)
            ordered.setdefault(key, {}).setdefault(number, []).append(call)
    for key, some in numbered.items():
        yield key[:1], tuple(some)
    for key, by_rank in ordered.items():
        for calls in _aligned(ranks, by_rank):
            yield key, calls


def _key(said: ToldCollective, number: int) -> _Key:
    pair = _pair(said, number)
    return (said.group, said.ranks, *pair) if pair else (said.group, said.ranks, said.operation)


def _pair(said: ToldCollective, number: int) -> tuple[object, ...]:
    """Of a send or receive (from, to)."""
    if said.peer < 0:
        return ()
    return (number, said.peer) if said.operation.startswith("send") else (said.peer, number)


def _aligned(ranks: Sequence[RankTrace], by_rank: dict[int, list[Call]]) -> Iterator[tuple[Call, ...]]:
    """The calls of one kind, rank by rank, as collectives: the rank that has most of them leads."""
    lead = max(by_rank, key=lambda rank: (len(by_rank[rank]), -rank))
    places: list[list[Call]] = [[call] for call in by_rank[lead]]
    for rank in sorted(by_rank):
        if rank == lead:
            continue
        shift = _shift(ranks, by_rank[lead], by_rank[rank])
        for index, call in enumerate(by_rank[rank]):
            at = index + shift
            if 0 <= at < len(by_rank[lead]) and _agree(ranks, by_rank[lead][at], call):
                places[at].append(call)
            else:
                yield (call,)
    for calls in places:
        yield tuple(sorted(calls))


def _shift(ranks: Sequence[RankTrace], lead: list[Call], other: list[Call]) -> int:
    """At which call of the leading rank the first one of another belongs."""
    more = len(lead) - len(other)
    if not more and all(
        _agree(ranks, call, other_call) for call, other_call in zip(lead, other, strict=True)
    ):
        return 0
    tried: list[int] = sorted(
        {more, *range(-min(_MOST_SHIFTS, len(other) - 1), min(_MOST_SHIFTS, len(lead) - 1) + 1)}
    )

    def fit(shift: int) -> tuple[int, int, int]:
        pairs = [
            (lead[index + shift], call)
            for index, call in enumerate(other[:_COMPARED])
            if 0 <= index + shift < len(lead)
        ]
        agree = sum(_agree(ranks, *pair) for pair in pairs)
        apart = [times_of(ranks[b.rank], b)[1] - times_of(ranks[a.rank], a)[1] for a, b in pairs]
        middle = median_low(apart) if apart else 0
        spread = median_low(abs(ns - middle) for ns in apart) if apart else 0
        # Sizes first; then times that are alike; of equal ones windows that end together.
        return -agree, spread, abs(shift - more)

    return min(tried, key=fit)


def _agree(ranks: Sequence[RankTrace], call: Call, two: Call) -> bool:
    """Whether two calls can be the same collective: their sizes agree as far as they are told."""
    first, second = _said(ranks, call), _said(ranks, two)
    if first.operation.startswith(("alltoall", "gather", "scatter", "sendrecv", "allgatherv")):
        return True
    there = (first.elements_in, second.elements_in)
    return min(there) < 0 or there[0] == there[1]
