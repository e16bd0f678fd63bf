"""The offsets between the clocks of several hosts, from what their devices did together.

A collective ends for all of its members at once: the offset of two clocks is the median of the differences of
these ends. A send may end long before its receive: it is known only that the receive ends no earlier than the
send begins. Clocks of ranks without a common collective are shifted only where they break this, and no
further than needed.
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
    """The shifts that align the clocks of all ranks."""

    shifts: tuple[int, ...]
    """ns to add to each rank's times."""
    match_counts: tuple[int, ...]
    """How many collectives a shift is from; 0 for the first rank of a connected group and for ranks without a
    common collective.
    """
    residual_ns: tuple[int, int]
    """By how much the ends of a collective still differ, the median and the maximum."""
    root: tuple[int, ...]
    """By rank the index of the first rank that collectives connect it with."""
    message_root: tuple[int, ...]
    """The same for sends and receives as well."""


class _ShiftLimit(NamedTuple):
    """The clock `late` is to be shifted by `least` ns more than the clock `early`, or by more."""

    early: int
    late: int
    least: int


def one_clock(count: int) -> DeviceClocks:
    """Returns the clocks of `count` ranks that are one clock."""
    none = (0,) * count
    return DeviceClocks(none, none, (0, 0), none, none)


def find_device_clocks(ranks: Sequence[RankTrace], degrees: Degrees) -> DeviceClocks:
    """Returns the clock of each rank."""
    if len(ranks) == 1:
        return one_clock(1)
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
    """Returns (shifts, match counts, roots) of `count` ranks. ends: when each rank left a collective, by
    collective.
    """
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
    """Returns by root (how much more each clock is shifted, the first clock that sends and receives connect
    it with).

    The first clock of each group stays; where no shifts make all sends and receives possible, all stay.
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
    """Yields the limits that sends and receives set between two clocks, which `shifts` are applied to."""

    def times(call: Call) -> tuple[int, int]:
        start, end = times_of(ranks[call.rank], call)
        return start + shifts[call.rank], end + shifts[call.rank]

    for meeting in messages:
        send, receive = meeting.calls
        yield _ShiftLimit(send.rank, receive.rank, times(send)[0] - times(receive)[1])
        if not (get_collective(ranks, send).sends and get_collective(ranks, receive).receives):
            # If two send to each other, neither ends before the other begins.
            yield _ShiftLimit(receive.rank, send.rank, times(receive)[0] - times(send)[1])
