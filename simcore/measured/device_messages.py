"""Which send belongs to which receive among the kernels of several ranks, and which sends wait for theirs.

The partner is the rank that a call names, in the world or in its group, whichever fits the ranks of the
group; where both fit, the one that pairs with the calls of the other side. A group of two has one partner,
named or not. Between two ranks sends and receives are matched by order. Two ranks that send to each other in
one kernel each, or that both name their sends alone, exchange.

A send ends before its receive begins where its data fit into a buffer: it waits for nobody. A send that
begins before its receive and ends with it waits for it. Where the receive begins first the times do not show
which of both it is: it is treated as the others of its size between these two.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from simcore.measured.columns import CollectiveInfo, RankTrace
from simcore.measured.device_order import APART_NS, align_calls, get_collective
from simcore.measured.matching import Call, times_of
from simcore.records import NamedTuple

_SENDS, _RECEIVES, _EXCHANGES = range(3)
# Names of several sends and receives launched as one; `coalesced` leaves an empty name.
_SEVERAL = ("", "batchisendirecv")

# Group name and its ranks, as stated.
_Group = tuple[str | None, tuple[int, ...] | None]


class Transfer(NamedTuple):
    """A send and its receive; for an exchange both calls, that of the lower rank first."""

    send: Call
    receive: Call
    is_exchange: bool


def match_transfers(ranks: Sequence[RankTrace], world: int | None) -> tuple[list[Transfer], list[Call]]:
    """Returns (transfers, calls without a partner) of all sends and receives; no clock is used."""
    directions = {
        call: direction
        for rank_index, rank in enumerate(ranks)
        if rank.device is not None
        for call in (Call(rank_index, op) for op in rank.device.collectives)
        if (direction := _direction(ranks, call)) is not None
    }
    partners = _find_partners(ranks, directions, world)
    pairs_found: list[Transfer] = []
    left = [call for call in directions if call in partners]
    # Groups of other names, or whose ranks only one side states, may be one.
    for by_group in (True, False):
        pairs: dict[tuple[_Group | None, int, int], list[Call]] = {}
        for call in left:
            first, second = sorted((call.rank, partners[call]))
            pairs.setdefault((_group(ranks, call) if by_group else None, first, second), []).append(call)
        for some in pairs.values():
            pairs_found += _pair_calls(ranks, directions, some)
        matched_calls = {call for pair in pairs_found for call in (pair.send, pair.receive)}
        left = [call for call in left if call not in matched_calls]
    matched_calls = {call for pair in pairs_found for call in (pair.send, pair.receive)}
    return sorted(pairs_found), [call for call in directions if call not in matched_calls]


def is_transfer(ranks: Sequence[RankTrace], call: Call) -> bool:
    """Returns whether a call is from rank to rank. A kernel's name alone does not say it: an all-to-all has
    the same one.
    """
    return _direction(ranks, call) is not None


def find_held_sends(ranks: Sequence[RankTrace], candidates: Sequence[Transfer]) -> set[Transfer]:
    """Returns the transfers whose send waits for its receive, on aligned clocks; exchanges are left out."""
    sent_ahead = set()
    undecided = []
    holding = set()
    for transfer in candidates:
        if transfer.is_exchange:
            continue
        (send_start, send_end), (receive_start, receive_end) = _times(ranks, transfer)
        if send_end < receive_start:
            sent_ahead.add(_kind(ranks, transfer))
        elif receive_start <= send_start:
            undecided.append(transfer)
        # Two kernels of about the same length that begin apart end as far apart: they do not wait.
        elif 2 * abs(receive_end - send_end) <= receive_start - send_start and _end_together(ranks, transfer):
            holding.add(transfer)
    return holding | {transfer for transfer in undecided if _kind(ranks, transfer) not in sent_ahead}


def _end_together(ranks: Sequence[RankTrace], transfer: Transfer) -> bool:
    """Returns whether a send and its receive end at once. Threads of a host end when they get a core."""
    (_, over), (_, received) = _times(ranks, transfer)
    devices = (ranks[call.rank].device for call in (transfer.send, transfer.receive))
    on_device = all(device is not None and device.on_device for device in devices)
    return abs(received - over) <= APART_NS or not on_device


def _times(ranks: Sequence[RankTrace], transfer: Transfer) -> tuple[tuple[int, int], tuple[int, int]]:
    return (
        times_of(ranks[transfer.send.rank], transfer.send),
        times_of(ranks[transfer.receive.rank], transfer.receive),
    )


def _kind(ranks: Sequence[RankTrace], transfer: Transfer) -> tuple[int, int, int]:
    return transfer.send.rank, transfer.receive.rank, get_collective(ranks, transfer.send).elements_in


def _direction(ranks: Sequence[RankTrace], call: Call) -> int | None:
    info = get_collective(ranks, call)
    if info.sends:
        return _SENDS
    if info.receives:
        return _RECEIVES
    # If the kernel's name is all that is stated, there is no size.
    is_stated = info.size > 0 or info.peer >= 0
    if info.operation == "sendrecv":
        return _EXCHANGES if is_stated else None
    is_kernel = "sendrecv" in ranks[call.rank].ops.name[call.op].lower()
    return _EXCHANGES if info.operation in _SEVERAL and is_kernel else None


def _group(ranks: Sequence[RankTrace], call: Call) -> _Group:
    info = get_collective(ranks, call)
    return info.group, info.ranks


# -- who the partner is ----------------------------------------------------------------------------


def _find_partners(
    ranks: Sequence[RankTrace], directions: Mapping[Call, int], world: int | None
) -> dict[Call, int]:
    """Returns the index of the partner of each call, where it is known and present."""
    index = {rank.rank: rank_index for rank_index, rank in enumerate(ranks)}
    groups: dict[_Group, list[Call]] = {}
    for call in directions:
        groups.setdefault(_group(ranks, call), []).append(call)
    partners: dict[Call, int] = {}
    for some in groups.values():
        there = tuple(sorted({ranks[call.rank].rank for call in some}))
        ends = {call: _partner_readings(ranks, call, there, world) for call in some}
        counts = Counter((directions[call], ranks[call.rank].rank, *both) for call, both in ends.items())
        local = max(
            itertools.product((0, 1), repeat=2), key=lambda local: (_count_pairs(counts, local), -sum(local))
        )
        for call, both in ends.items():
            which = local[directions[call] == _RECEIVES]
            partner = both[which] if both[which] is not None else both[1 - which]
            if partner in index and index[partner] != call.rank:
                partners[call] = index[partner]
    return partners


def _partner_readings(
    ranks: Sequence[RankTrace], call: Call, there: tuple[int, ...], world: int | None
) -> tuple[int | None, int | None]:
    """Returns the rank of a call's partner if the stated number is a rank of the world, and if it is a
    position in the group; None where that is not in the group. there: the ranks that call in its group.
    """
    info, own = get_collective(ranks, call), ranks[call.rank].rank
    members = _members(info, own, there, world)
    if members is not None and len(members) == 2:
        other = next(rank for rank in members if rank != own)
        if info.ranks is not None or info.peer < 0 or world == 2:
            return other, other
        # Two ranks whose groups have equal names and list no ranks may be of two groups, each with a missing
        # rank.
        return info.peer if info.peer != own else None, other if info.peer < 2 else None
    peer = info.peer
    of_world = peer if peer >= 0 and peer != own and (members is None or peer in members) else None
    of_group = members[peer] if members is not None and 0 <= peer < len(members) else None
    return of_world, of_group if of_group != own else None


def _members(
    info: CollectiveInfo, own: int, there: tuple[int, ...], world: int | None
) -> tuple[int, ...] | None:
    """Returns the ranks of a call's group; None where they are not known."""
    if info.ranks is not None and own in info.ranks and len(set(info.ranks)) > 1:
        return info.ranks
    return there if len(there) == 2 and (info.size == 2 or world == 2) else None


def _count_pairs(calls: Mapping[tuple[int, int, int | None, int | None], int], local: tuple[int, ...]) -> int:
    """Returns how many sends have a receive if the numbers of sends, of receives are positions in the group.
    calls: counts by direction, rank and partner of both readings.
    """
    sent_counts, received_counts = Counter[tuple[int, int]](), Counter[tuple[int, int]]()
    for (direction, own, *both), count in calls.items():
        peer = both[local[direction == _RECEIVES]]
        if peer is None:
            continue
        if direction != _RECEIVES:
            sent_counts[own, peer] += count
        if direction != _SENDS:
            received_counts[peer, own] += count
    return (sent_counts & received_counts).total()


# -- which calls are matched -----------------------------------------------------------------------


def _pair_calls(
    ranks: Sequence[RankTrace], directions: Mapping[Call, int], calls: Sequence[Call]
) -> Iterator[Transfer]:
    """Yields the transfers among calls between the same two ranks."""
    both = sorted({call.rank for call in calls})
    if len(both) < 2:
        return
    first, second = (
        [
            [call for call in calls if call.rank == rank and directions[call] == direction]
            for direction in range(3)
        ]
        for rank in both
    )
    for senders, receivers in ((first, second), (second, first)):
        if senders[_SENDS] and receivers[_RECEIVES]:
            for send, receive in _align_two(ranks, senders[_SENDS], receivers[_RECEIVES]):
                yield Transfer(send, receive, False)
    # Of several launched as one a profiler states one: sends that nobody receives are exchanges.
    exchanges = [
        sorted((
            *mine[_EXCHANGES],
            *([] if other[_RECEIVES] else mine[_SENDS]),
            *([] if other[_SENDS] else mine[_RECEIVES]),
        ))
        for mine, other in ((first, second), (second, first))
    ]  # fmt: skip
    if all(exchanges):
        for one, other in _align_two(ranks, *exchanges):
            yield Transfer(one, other, True)


def _align_two(
    ranks: Sequence[RankTrace], some: Sequence[Call], others: Sequence[Call]
) -> Iterator[tuple[Call, Call]]:
    """Yields calls of two ranks at the same position of their order, those of the rank of `some` first."""
    for calls in align_calls(ranks, {some[0].rank: list(some), others[0].rank: list(others)}):
        if len(calls) == 2:
            mine, other = calls if calls[0].rank == some[0].rank else calls[::-1]
            yield mine, other
