"""Which kernels of several ranks are one collective, or a send and its receive.

A profiler states the number of a collective in its communicator, or its group and sizes, or nothing. Kernels
are matched by (communicator, number), else by (group and its ranks, operation) or (operation alone), and then
by order, never more of them than the group is stated to have members. No rule uses a clock, so that the match
is the same whatever the clocks show; a collective ends for all of its members at once, which aligns the
clocks. Order is a guess, though, which the aligned clocks test: kernels that end apart were not one
collective.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from simcore.measured.columns import TOLERANCE_NS, CollectiveInfo, RankTrace
from simcore.measured.device_messages import Transfer, find_held_sends, match_transfers
from simcore.measured.device_order import APART_NS, align_calls, get_collective
from simcore.measured.matching import Call, CollectiveMatch, Matches, times_of
from simcore.measured.rank_positions import Degrees, GroupKey, RankPositions

# The root of a broadcast does not wait: its ends say nothing of clocks.
LOOSE = frozenset(("broadcast", "reduce", "gather", "scatter"))
# Category of a communication -> the word of a rank trace for such a group.
_KINDS = {"tp": "tp", "pp": "pp", "dp": "dp", "expert": "exp"}

_Key = tuple[object, ...]


def match_devices(ranks: Sequence[RankTrace], degrees: Degrees, on_one_clock: bool) -> Matches:
    """Returns the matches among the operations of devices.

    A call without a partner is a meeting of its own with a single call. on_one_clock: calls that ended before
    another began are no match, nor are those paired by order whose ends refute it.
    """
    groups: dict[tuple[object, ...], int] = {}
    meetings: list[CollectiveMatch] = []
    alone: set[Call] = set()
    unmatched: list[Call] = []

    def add(
        calls: tuple[Call, ...], key: tuple[object, ...], is_message: bool = False, sender: Call | None = None
    ) -> None:
        first = calls[0]
        kind = _KINDS.get(ranks[first.rank].ops.category(first.op), "comm")
        group: GroupKey = (kind, groups.setdefault(key, len(groups)), 0)
        meetings.append(CollectiveMatch(kind, group, calls, True, is_message, sender))

    def add_alone(call: Call, key: _Key) -> None:
        (alone.add if get_collective(ranks, call).size == 1 else unmatched.append)(call)
        device = ranks[call.rank].device
        add((call,), (key, "alone", call.rank, device.stream[call.op] if device else 0))

    pairs, left = match_transfers(ranks, degrees.world)
    apart = {*left, *(call for pair in pairs for call in (pair.send, pair.receive))}
    together = list(_find_collectives(ranks, apart, degrees.world))
    refuted = _find_refuted(ranks, [calls for _, calls in together]) if on_one_clock else set()
    for key, calls in together:
        if len(calls) > 1 and (not on_one_clock or (calls not in refuted and _have_overlap(ranks, calls))):
            add(calls, (key, _members(calls)))
        else:
            for call in calls:
                add_alone(call, key)
    if on_one_clock:
        left += [
            call for pair in pairs if not _is_possible(ranks, pair) for call in (pair.send, pair.receive)
        ]
        pairs = [pair for pair in pairs if _is_possible(ranks, pair)]
    waiting = find_held_sends(ranks, pairs) if on_one_clock else set(pairs)
    for pair in pairs:
        send, receive, is_exchange = pair
        ends = (send.rank, receive.rank)
        if is_exchange or pair in waiting:
            add((send, receive), ("held", *ends, is_exchange), is_message=True)
        else:
            alone.add(send)
            add((send,), ("sent", *ends), is_message=True)
            add((receive,), ("received", *ends), is_message=True, sender=send)
    for call in sorted(left):
        add_alone(call, ("transfer",))
    positions = RankPositions((None,) * len(ranks), degrees, 1)
    return Matches((), tuple(meetings), frozenset(alone), tuple(unmatched), positions)


def count_incomplete(ranks: Sequence[RankTrace], degrees: Degrees, on_one_clock: bool) -> int:
    """Returns how many collectives are matched among their present members, others being missing."""
    # A rank alone matches none.
    meetings = match_devices(ranks, degrees, on_one_clock).meetings if len(ranks) > 1 else ()
    count = 0
    for meeting in meetings:
        size = max(get_collective(ranks, call).size for call in meeting.calls)
        count += 1 < len(meeting.calls) < size and not meeting.is_message
    return count


def _have_overlap(ranks: Sequence[RankTrace], calls: tuple[Call, ...]) -> bool:
    times = [times_of(ranks[call.rank], call) for call in calls]
    return min(end for _, end in times) >= max(start for start, _ in times) - TOLERANCE_NS


def _is_possible(ranks: Sequence[RankTrace], pair: Transfer) -> bool:
    """Returns whether a receive does not end before its send begins; in an exchange neither before the
    other.
    """
    send_times, receive_times = (times_of(ranks[call.rank], call) for call in (pair.send, pair.receive))
    return send_times[0] <= receive_times[1] and (not pair.is_exchange or receive_times[0] <= send_times[1])


def _find_refuted(ranks: Sequence[RankTrace], together: Sequence[tuple[Call, ...]]) -> set[tuple[Call, ...]]:
    """Returns the matches by order that were no collectives: their members end apart.

    If a single one of many has members that end at once, it is no match either: it alone has set their
    clocks, so its ends prove nothing.
    """
    guessed = [calls for calls in together if len(calls) > 1 and _is_guessed(ranks, calls)]
    guess_counts = Counter(map(_members, guessed))
    at_once = [calls for calls in guessed if _ends_apart_ns(ranks, calls) <= APART_NS]
    agree = Counter(map(_members, at_once))
    proven = {calls for calls in at_once if agree[_members(calls)] > 1 or guess_counts[_members(calls)] == 1}
    return set(guessed) - proven


def _is_guessed(ranks: Sequence[RankTrace], calls: tuple[Call, ...]) -> bool:
    """Returns whether order alone has paired kernels that, as one collective, would end at once."""
    devices, collectives = (
        [ranks[call.rank].device for call in calls],
        [get_collective(ranks, call) for call in calls],
    )
    # Operations of a host have no kernel: its threads end when they get a core, milliseconds apart.
    if not all(device is not None and device.on_device for device in devices):
        return False
    if all(one.sequence is not None and one.communicator is not None for one in collectives):
        return False
    return collectives[0].operation not in LOOSE or any(one.ranks is None for one in collectives)


def _members(calls: tuple[Call, ...]) -> tuple[int, ...]:
    return tuple(call.rank for call in calls)


def _ends_apart_ns(ranks: Sequence[RankTrace], calls: tuple[Call, ...]) -> int:
    ends = [times_of(ranks[call.rank], call)[1] for call in calls]
    return max(ends) - min(ends)


def _find_collectives(
    ranks: Sequence[RankTrace], apart: set[Call], world: int | None
) -> Iterator[tuple[_Key, tuple[Call, ...]]]:
    """Yields (key, calls) of each collective, by key in the order in which keys first come. apart: sends and
    receives, which are no collectives. world: the number of ranks, None if not stated.
    """
    by_sequence: dict[_Key, list[Call]] = {}
    ordered: dict[_Key, dict[int, list[Call]]] = {}
    for rank_index, rank in enumerate(ranks):
        if rank.device is None:
            continue
        for op, info in rank.device.collectives.items():
            call = Call(rank_index, op)
            if call in apart:
                continue
            if info.sequence is not None and info.communicator is not None:
                some = by_sequence.setdefault((info.communicator, info.sequence), [])
                if all(other.rank != rank_index for other in some):
                    some.append(call)
                    continue
            ordered.setdefault(_key(info), {}).setdefault(rank_index, []).append(call)
    for key, some in list(by_sequence.items()):
        if _fits(ranks, some, world):
            yield key[:1], tuple(some)
        else:
            # Several communicators have this number: it identifies none of them.
            for call in some:
                ordered.setdefault(_key(get_collective(ranks, call)), {}).setdefault(call.rank, []).append(
                    call
                )
    for key, by_rank in ordered.items():
        by_rank = {rank: sorted(calls) for rank, calls in sorted(by_rank.items())}
        if _fits(ranks, [calls[0] for calls in by_rank.values()], world):
            for calls in align_calls(ranks, by_rank):
                yield key, calls
        else:
            # Several groups that nothing distinguishes.
            for call in (call for calls in by_rank.values() for call in calls):
                yield key, (call,)


def _fits(ranks: Sequence[RankTrace], calls: Sequence[Call], world: int | None) -> bool:
    """Returns whether there are no more calls, one of each rank, than their group has members, and no more
    members than ranks.
    """
    sizes = [size for size in (get_collective(ranks, call).size for call in calls) if size > 0]
    return not sizes or (len(calls) <= min(sizes) and (world is None or max(sizes) <= world))


def count_beyond_world(ranks: Sequence[RankTrace], world: int) -> tuple[int, int]:
    """Returns (how many calls are of groups with more members than the world has ranks, the most members)."""
    sizes = [
        info.size for rank in ranks for info in (rank.device.collectives if rank.device else {}).values()
        if info.size > world
    ]  # fmt: skip
    return len(sizes), max(sizes, default=0)


def _key(info: CollectiveInfo) -> _Key:
    key = (info.group, info.ranks, info.operation)
    # Groups whose ranks are not stated are distinguished at least by their number.
    return key if info.ranks is not None else (*key, info.size)
