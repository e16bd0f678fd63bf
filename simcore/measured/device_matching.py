"""Which kernels of several ranks are one collective, or a send and its receive.

A profiler says of a collective its number in its communicator, or its group and sizes, or nothing. So kernels
belong together by (communicator, number), else by (group and its ranks, operation) or (operation alone), and
then by order, never more of them than the group is said to have members. No rule looks at a clock, so that
the match is the same whatever the clocks show; a collective ends for all of its members at once, and that
brings the clocks together. Order is a guess, though, which these clocks put to the test: kernels that end
apart were not one collective.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from simcore.measured.columns import TOLERANCE_NS, RankTrace, ToldCollective
from simcore.measured.device_messages import Transfer, held, transfers
from simcore.measured.device_order import APART_NS, aligned, said_of
from simcore.measured.matching import Call, Matches, Meeting, times_of
from simcore.measured.places import Degrees, GroupKey, Places

# The root of a broadcast does not wait: its ends tell nothing of clocks.
LOOSE = frozenset(("broadcast", "reduce", "gather", "scatter"))
# Category of a communication -> the word of a rank trace for such a group.
_KINDS = {"tp": "tp", "pp": "pp", "dp": "dp", "expert": "exp"}

_Key = tuple[object, ...]


def match_devices(ranks: Sequence[RankTrace], degrees: Degrees, on_one_clock: bool) -> Matches:
    """What belongs together among the operations of devices. A call without a partner is a meeting of its
    own, which nobody else comes to. on_one_clock: calls that were over before another began are no match, nor
    are those that order pairs and their ends refute.
    """
    groups: dict[tuple[object, ...], int] = {}
    meetings: list[Meeting] = []
    alone: set[Call] = set()
    unmatched: list[Call] = []

    def add(
        calls: tuple[Call, ...], key: tuple[object, ...], is_message: bool = False, sender: Call | None = None
    ) -> None:
        first = calls[0]
        kind = _KINDS.get(ranks[first.rank].ops.category(first.op), "comm")
        group: GroupKey = (kind, groups.setdefault(key, len(groups)), 0)
        meetings.append(Meeting(kind, group, calls, True, is_message, sender))

    def add_alone(call: Call, key: _Key) -> None:
        (alone.add if said_of(ranks, call).size == 1 else unmatched.append)(call)
        device = ranks[call.rank].device
        add((call,), (key, "alone", call.rank, device.stream[call.op] if device else 0))

    pairs, left = transfers(ranks, degrees.world)
    apart = {*left, *(call for pair in pairs for call in (pair.send, pair.receive))}
    together = list(_together(ranks, apart, degrees.world))
    refuted = _refuted(ranks, [calls for _, calls in together]) if on_one_clock else set()
    for key, calls in together:
        if len(calls) > 1 and (not on_one_clock or (calls not in refuted and _met(ranks, calls))):
            add(calls, (key, _members(calls)))
        else:
            for call in calls:
                add_alone(call, key)
    if on_one_clock:
        left += [
            call for pair in pairs if not _is_possible(ranks, pair) for call in (pair.send, pair.receive)
        ]
        pairs = [pair for pair in pairs if _is_possible(ranks, pair)]
    waiting = held(ranks, pairs) if on_one_clock else set(pairs)
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
    places = Places((None,) * len(ranks), degrees, 1)
    return Matches((), tuple(meetings), frozenset(alone), tuple(unmatched), places)


def meetings_lacking(ranks: Sequence[RankTrace], matches: Matches) -> int:
    """How many collectives are matched among those of their members that are there, others being missing."""
    count = 0
    for meeting in matches.meetings:
        size = max(said_of(ranks, call).size for call in meeting.calls)
        count += 1 < len(meeting.calls) < size and not meeting.is_message
    return count


def _met(ranks: Sequence[RankTrace], calls: tuple[Call, ...]) -> bool:
    times = [times_of(ranks[call.rank], call) for call in calls]
    return min(end for _, end in times) >= max(start for start, _ in times) - TOLERANCE_NS


def _is_possible(ranks: Sequence[RankTrace], pair: Transfer) -> bool:
    """Whether a receive is not over before its send begins; of an exchange neither before the other."""
    sent, received = (times_of(ranks[call.rank], call) for call in (pair.send, pair.receive))
    return sent[0] <= received[1] and (not pair.is_exchange or received[0] <= sent[1])


def _refuted(ranks: Sequence[RankTrace], together: Sequence[tuple[Call, ...]]) -> set[tuple[Call, ...]]:
    """What order pairs though it was no collective: its members end apart. Of many the only one whose members
    end at once is no match either: it alone has set their clocks, so that its ends prove nothing.
    """
    guessed = [calls for calls in together if len(calls) > 1 and _is_guessed(ranks, calls)]
    tried = Counter(map(_members, guessed))
    at_once = [calls for calls in guessed if _ends_apart_ns(ranks, calls) <= APART_NS]
    agree = Counter(map(_members, at_once))
    proven = {calls for calls in at_once if agree[_members(calls)] > 1 or tried[_members(calls)] == 1}
    return set(guessed) - proven


def _is_guessed(ranks: Sequence[RankTrace], calls: tuple[Call, ...]) -> bool:
    """Whether order alone has paired kernels that, as one collective, would end at once."""
    devices, said = [ranks[call.rank].device for call in calls], [said_of(ranks, call) for call in calls]
    # What a host ran has no kernel: its threads are through when they get a core, milliseconds apart.
    if not all(device is not None and device.on_device for device in devices):
        return False
    if all(one.sequence is not None and one.communicator is not None for one in said):
        return False
    return said[0].operation not in LOOSE or any(one.ranks is None for one in said)


def _members(calls: tuple[Call, ...]) -> tuple[int, ...]:
    return tuple(call.rank for call in calls)


def _ends_apart_ns(ranks: Sequence[RankTrace], calls: tuple[Call, ...]) -> int:
    ends = [times_of(ranks[call.rank], call)[1] for call in calls]
    return max(ends) - min(ends)


def _together(
    ranks: Sequence[RankTrace], apart: set[Call], world: int | None
) -> Iterator[tuple[_Key, tuple[Call, ...]]]:
    """(key, calls) of what is one collective, by key in the order in which they first come. apart: sends and
    receives, which are none. world: how many ranks there are, None if not told.
    """
    numbered: dict[_Key, list[Call]] = {}
    ordered: dict[_Key, dict[int, list[Call]]] = {}
    for number, rank in enumerate(ranks):
        if rank.device is None:
            continue
        for op, said in rank.device.collectives.items():
            call = Call(number, op)
            if call in apart:
                continue
            if said.sequence is not None and said.communicator is not None:
                some = numbered.setdefault((said.communicator, said.sequence), [])
                if all(other.rank != number for other in some):
                    some.append(call)
                    continue
            ordered.setdefault(_key(said), {}).setdefault(number, []).append(call)
    for key, some in list(numbered.items()):
        if _fits(ranks, some, world):
            yield key[:1], tuple(some)
        else:
            # Communicators of one number are several: the number tells nothing.
            for call in some:
                ordered.setdefault(_key(said_of(ranks, call)), {}).setdefault(call.rank, []).append(call)
    for key, by_rank in ordered.items():
        by_rank = {rank: sorted(calls) for rank, calls in sorted(by_rank.items())}
        if _fits(ranks, [calls[0] for calls in by_rank.values()], world):
            for calls in aligned(ranks, by_rank):
                yield key, calls
        else:
            # Several groups that nothing tells apart.
            for call in (call for calls in by_rank.values() for call in calls):
                yield key, (call,)


def _fits(ranks: Sequence[RankTrace], calls: Sequence[Call], world: int | None) -> bool:
    """Whether there are no more calls, one of each rank, than their group has members, and no more members
    than ranks.
    """
    sizes = [size for size in (said_of(ranks, call).size for call in calls) if size > 0]
    return not sizes or (len(calls) <= min(sizes) and (world is None or max(sizes) <= world))


def beyond_world(ranks: Sequence[RankTrace], world: int) -> tuple[int, int]:
    """(how many calls are of groups of more members than the world has ranks, the most members)."""
    sizes = [
        said.size for rank in ranks for said in (rank.device.collectives if rank.device else {}).values()
        if said.size > world
    ]  # fmt: skip
    return len(sizes), max(sizes, default=0)


def _key(said: ToldCollective) -> _Key:
    key = (said.group, said.ranks, said.operation)
    # Groups whose ranks are not told are at least told apart by how many those are.
    return key if said.ranks is not None else (*key, said.size)
