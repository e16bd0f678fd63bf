"""How far the clocks of the hosts of several ranks lie apart, by what their devices did together.

A collective ends for all of its members at once: the middle one of the differences of these ends is how far
two clocks lie apart. A send may be over long before its receive: of both only that the receive ends no
earlier than the send begins is known. Where no collective ties ranks, their clocks are moved only where they
break this, and no further than needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import median_low

from simcore.measured.columns import RankTrace
from simcore.measured.device_matching import LOOSE, match_devices
from simcore.measured.device_order import get_collective
from simcore.measured.matching import Call, CollectiveMatch, times_of
from simcore.measured.rank_positions import Degrees
from simcore.records import NamedTuple, Struct


class DeviceClocks(Struct, frozen=True):
    """shifts: ns to add to each rank's times. matched: how many collectives tell it, 0 of the first rank of
    those that hang together and of ranks that none ties to others. residual_ns: by how much the ends of a
    collective still differ, the middle and the most of all. root: the index of the first rank of those that
    collectives tie together; bound: of those that sends and receives tie as well.
    """

    shifts: tuple[int, ...]
    match_counts: tuple[int, ...]
    residual_ns: tuple[int, int]
    root: tuple[int, ...]
    message_root: tuple[int, ...]


class _ShiftLimit(NamedTuple):
    """The clock `late` is to be moved by `least` ns more than the clock `early`, or by more."""

    early: int
    late: int
    least: int


def one_clock(count: int) -> DeviceClocks:
    """The clocks of `count` ranks that are one."""
    none = (0,) * count
    return DeviceClocks(none, none, (0, 0), none, none)


def find_device_clocks(ranks: Sequence[RankTrace], degrees: Degrees) -> DeviceClocks:
    """The clock of each rank."""
    matches = match_devices(ranks, degrees, on_one_clock=False)
    several = [meeting for meeting in matches.meetings if len(meeting.calls) > 1]
    meetings = [meeting.calls for meeting in several if not meeting.is_message]
    firm = [calls for calls in meetings if get_collective(ranks, calls[0]).operation not in LOOSE]
    tied = {call.rank for calls in firm for call in calls}
    firm += [calls for calls in meetings if any(call.rank not in tied for call in calls)]
    ends: list[dict[int, int]] = [
        {call.rank: times_of(ranks[call.rank], call)[1] for call in calls} for calls in firm
    ]
    shifts, match_counts, root = _by_ends(len(ranks), ends)
    left = sorted(
        max(times) - min(times)
        for end_by_rank in ends
        for times in ([end + shifts[rank] for rank, end in end_by_rank.items()],)
    )
    residual = (left[len(left) // 2], left[-1]) if left else (0, 0)
    messages = [meeting for meeting in several if meeting.is_message]
    more, message_root = _by_messages(ranks, messages, shifts, root)
    shifts = [shift + more[root[rank]] for rank, shift in enumerate(shifts)]
    return DeviceClocks(
        tuple(shifts),
        tuple(match_counts),
        residual,
        tuple(root),
        tuple(message_root[first] for first in root),
    )


def _by_ends(count: int, ends: Sequence[dict[int, int]]) -> tuple[list[int], list[int], list[int]]:
    """(shifts, matched, root) of `count` ranks. ends: by rank when it left each collective."""
    shifts, match_counts, root = [0] * count, [0] * count, list(range(count))
    known_ranks: set[int] = set()
    first = 0
    while len(known_ranks) < count:
        counts: Counter[int] = Counter()
        for end_of in ends:
            if not known_ranks.isdisjoint(end_of):
                counts.update(rank for rank in end_of if rank not in known_ranks)
        if not counts:
            first = min(rank for rank in range(count) if rank not in known_ranks)
            known_ranks.add(first)
            continue
        rank = max(counts, key=lambda count: (counts[count], -count))
        apart = [
            end_by_rank[rank]
            - median_low(end + shifts[other] for other, end in end_by_rank.items() if other in known_ranks)
            for end_by_rank in ends
            if rank in end_by_rank and not known_ranks.isdisjoint(end_by_rank)
        ]
        shifts[rank], match_counts[rank], root[rank] = -median_low(apart), len(apart), first
        known_ranks.add(rank)
    return shifts, match_counts, root


def _by_messages(
    ranks: Sequence[RankTrace],
    messages: Sequence[CollectiveMatch],
    shifts: Sequence[int],
    root: Sequence[int],
) -> tuple[dict[int, int], dict[int, int]]:
    """(by how much more each clock moves, the first clock that sends and receives tie it to) by root.

    The first clock of each stays; where no moves make all sends and receives possible, all stay.
    """
    bounds: dict[tuple[int, int], int] = {}
    for early, late, least in _shift_limits(ranks, messages, shifts):
        clocks = root[early], root[late]
        if clocks[0] != clocks[1]:
            bounds[clocks] = max(least, bounds.get(clocks, least))
    first = {clock: clock for clock in root}
    for one, other in bounds:
        both = sorted((first[one], first[other]))
        first = {clock: both[0] if at == both[1] else at for clock, at in first.items()}
    moves = dict.fromkeys(first, 0)
    for _ in range(len(moves)):
        has_changed = False
        for (early, late), least in bounds.items():
            if moves[late] < moves[early] + least:
                moves[late], has_changed = moves[early] + least, True
        if not has_changed:
            break
    broken = {first[late] for (early, late), least in bounds.items() if moves[late] < moves[early] + least}
    return {clock: 0 if at in broken else moves[clock] - moves[at] for clock, at in first.items()}, first


def _shift_limits(
    ranks: Sequence[RankTrace], messages: Sequence[CollectiveMatch], shifts: Sequence[int]
) -> Iterator[_ShiftLimit]:
    """What sends and receives say of the clocks of two ranks, which `shifts` have moved already."""

    def times(call: Call) -> tuple[int, int]:
        start, end = times_of(ranks[call.rank], call)
        return start + shifts[call.rank], end + shifts[call.rank]

    for meeting in messages:
        send, receive = meeting.calls
        yield _ShiftLimit(send.rank, receive.rank, times(send)[0] - times(receive)[1])
        if not (get_collective(ranks, send).sends and get_collective(ranks, receive).receives):
            # Of two that send to each other neither is over before the other begins.
            yield _ShiftLimit(receive.rank, send.rank, times(receive)[0] - times(send)[1])
