"""The offsets between the clocks of several hosts, from what their devices did together.

A collective ends for all of its members at once: the offset of two clocks is the median of the differences of
these ends. A send may end long before its receive: it is known only that the receive ends no earlier than the
send begins. Clocks of ranks without a common collective are shifted only where they break this, and no
further than needed.
"""

from __future__ import annotations

from array import array
from bisect import insort
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import add, itemgetter, sub

from simcore.measured.clocks import largest_gap
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


class ClockAxis(NamedTuple):
    """How aligned clocks come on one axis."""

    further: list[int]
    """ns by which each rank is shifted further."""
    is_shared: bool
    """Whether the ranks have a common time; if not, each begins at its own start."""
    gap_ns: int
    """The longest time at which no rank runs between two that do."""
    drifts: bool
    """Whether nothing ties the ranks and some are behind their hosts: at no time are all at one step."""


class ShiftLimit(NamedTuple):
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
    columns = [{rank: (end,) for rank, end in end_by_rank.items()} for end_by_rank in ends]
    shift_columns, match_counts, root = align_by_ends(len(ranks), columns)
    shifts = [column[0] for column in shift_columns]
    left = sorted(
        max(times) - min(times)
        for end_by_rank in ends
        for times in ([end + shifts[rank] for rank, end in end_by_rank.items()],)
    )
    residual = (left[len(left) // 2], left[-1]) if left else (0, 0)
    messages = [meeting for meeting in several if meeting.is_message]
    more, message_root = move_within_limits(_shift_limits(ranks, messages, shifts), root)
    shifts = [shift + more[root[rank]] for rank, shift in enumerate(shifts)]
    return DeviceClocks(
        tuple(shifts),
        tuple(match_counts),
        residual,
        tuple(root),
        tuple(message_root[first] for first in root),
    )


def align_by_ends(
    count: int, ends: Sequence[Mapping[int, Sequence[int]]]
) -> tuple[list[Sequence[int]], list[int], list[int]]:
    """Returns (shifts, match counts, roots) of `count` ranks. ends: by collective when each rank left it, in
    each step; shifts are of each step, too.
    """
    steps = len(next(iter(ends[0].values()))) if ends else 1
    none = array("q", bytes(8 * steps))
    shifts: list[Sequence[int]] = [none] * count
    match_counts, root = [0] * count, list(range(count))
    of_rank: list[list[int]] = [[] for _ in range(count)]
    for collective, end_by_rank in enumerate(ends):
        for rank in end_by_rank:
            of_rank[rank].append(collective)
    # By collective and step the ends of the ranks whose clocks are known, on the aligned clock, ascending;
    # by rank in how many collectives it meets such a rank.
    known_ends: list[list[list[int]]] = [[] for _ in ends]
    counts = [0] * count
    unknown_ranks = set(range(count))
    first = 0
    while unknown_ranks:
        rank = max(unknown_ranks, key=lambda rank: (counts[rank], -rank))
        unknown_ranks.discard(rank)
        apart = []
        for collective in of_rank[rank]:
            if ends_so_far := known_ends[collective]:
                middles = map(itemgetter((len(ends_so_far[0]) - 1) // 2), ends_so_far)
                apart.append(map(sub, middles, ends[collective][rank]))
        if apart:
            # The lower of two in the middle of how far it is ahead is the upper one of how far behind.
            middle = len(apart) // 2
            shift: Iterable[int] = apart[0]
            if middle:
                shift = [sorted(some)[middle] for some in zip(*apart, strict=True)]
            shifts[rank], match_counts[rank], root[rank] = array("q", shift), len(apart), first
        else:
            first = rank
        for collective in of_rank[rank]:
            aligned_ends = map(add, ends[collective][rank], shifts[rank])
            if ends_so_far := known_ends[collective]:
                deque(map(insort, ends_so_far, aligned_ends), 0)
            else:
                known_ends[collective] = [[end] for end in aligned_ends]
                for other in ends[collective]:
                    counts[other] += 1
    return shifts, match_counts, root


def move_within_limits(
    limits: Iterable[ShiftLimit], root: Sequence[int]
) -> tuple[dict[int, int], dict[int, int]]:
    """Returns by root (how much more each clock is shifted, the first clock that sends and receives connect
    it with).

    The first clock of each group stays; where no shifts make all sends and receives possible, all stay.
    """
    bounds: dict[tuple[int, int], int] = {}
    for early, late, least in limits:
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
) -> Iterator[ShiftLimit]:
    """Yields the limits that sends and receives set between two clocks, which `shifts` are applied to."""

    def times(call: Call) -> tuple[int, int]:
        start, end = times_of(ranks[call.rank], call)
        return start + shifts[call.rank], end + shifts[call.rank]

    for meeting in messages:
        send, receive = meeting.calls
        yield ShiftLimit(send.rank, receive.rank, times(send)[0] - times(receive)[1])
        if not (get_collective(ranks, send).sends and get_collective(ranks, receive).receives):
            # If two send to each other, neither ends before the other begins.
            yield ShiftLimit(receive.rank, send.rank, times(receive)[0] - times(send)[1])


def find_axis(spans: Sequence[tuple[int, int]], root: Sequence[int], is_ahead: bool) -> ClockAxis:
    """Returns the axis of ranks on aligned clocks. spans: (start, end) of each. root: the first rank that
    anything ties each with. is_ahead: whether the host of any but the first ran ahead.

    Ranks that did not run at one time by their clocks, tied in several sets, begin at one start.
    """
    gap_ns, none = largest_gap(spans), [0] * len(spans)
    if gap_ns and 1 < len(set(root)) < len(spans):
        starts: dict[int, int] = {}
        for clock, (start, _) in zip(root, spans, strict=True):
            starts[clock] = min(start, starts.get(clock, start))
        return ClockAxis([starts[root[0]] - starts[clock] for clock in root], True, gap_ns, False)
    drifts = is_ahead and list(root) == list(range(len(spans)))
    return ClockAxis(none, not gap_ns and not drifts, gap_ns, drifts)
