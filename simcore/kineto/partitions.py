"""Which ranks are one group where calls state how many members it has, but not which: those that end
together.

More ranks call than the group has members, so they are of several groups. Of all partitions of the ranks into
groups of that size the one is chosen in which members leave their calls together and calls take least without
waiting, from the arrival of the last member: equal groups take equal times. Where in no partition they end at
once on the clocks as they are, the median difference of two ranks' ends is the offset of their clocks. Where
several partitions fit equally and their waits differ, no ranks are assigned.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import factorial
from statistics import median_low

from simcore.diagnostics import Diagnostic, printable
from simcore.measured.columns import TOLERANCE_NS, CollectiveInfo, RankTrace
from simcore.measured.device_order import ANY_SIZE, APART_NS, elements_of
from simcore.ranks import RankSet
from simcore.records import NamedTuple, Struct, field, replace
from simcore.units import join_names, plural

# All partitions are tried up to this number (8 ranks in pairs: 105); else those of groups at equal distances,
# for up to so many ranks.
_MOST_PARTITIONS, _MOST_RANKS = 2_000, 14
_MOST_DISTANCE = 4_096
_COMPARED, _MOST_KINDS = 256, 64
# A partition that costs no more than this times the best fits as well; calls of a kind that cost so much less
# in another partition are of other groups than the rest.
_AS_WELL, _BETTER = 1.05, 0.8
# So large a share of the calls of a group may not have met, as where a window truncates them.
_MAY_DIFFER = 0.1
_LISTED = 4

# Ranks by their index, ascending, a tuple for each group.
_Partition = tuple[tuple[int, ...], ...]


class _Call(NamedTuple):
    """A call of a group."""

    start: int
    end: int
    op: int
    kind: tuple[str, int]
    """(operation, elements), the same for a send and its receive."""
    is_transfer: bool
    leads: bool
    """Whether it sends."""


class _Fit(NamedTuple):
    """How well calls fit a partition."""

    cost_ns: int
    """What they take without waiting, and how far apart they end."""
    waits: tuple[int, ...]
    """Of each rank."""
    partition: _Partition


class _GroupCalls(Struct):
    """Calls of groups of one name, of `size` members each."""

    group: str | None
    size: int
    by_rank: dict[int, list[_Call]]
    """By the index of their rank, in order."""
    group_fits: dict[tuple[int, ...], tuple[int, tuple[int, ...]] | None] = field(default_factory=dict)
    """Members of a group -> its cost and waits, computed so far."""

    @property
    def count(self) -> int:
        """The number of calls of the rank that has most."""
        return max(map(len, self.by_rank.values()))

    @property
    def kinds(self) -> list[tuple[str, int]]:
        """Operation and size of the calls, each once."""
        return list(dict.fromkeys(call.kind for calls in self.by_rank.values() for call in calls))

    def of(self, kinds: Sequence[tuple[str, int]]) -> _GroupCalls:
        """Returns the calls of these kinds alone."""
        some = {rank: [call for call in calls if call.kind in kinds] for rank, calls in self.by_rank.items()}
        return _GroupCalls(self.group, self.size, {rank: calls for rank, calls in some.items() if calls})

    def lines(self, members: Sequence[int]) -> list[list[_Call]]:
        """Returns the calls of the members of a group: those at one index are one collective, or send and
        receive.
        """
        lines = [self.by_rank[rank] for rank in members]
        if lines[0][0].is_transfer and len(lines) == 2:
            lines = [
                sorted(line, key=lambda call: call.leads == bool(index)) for index, line in enumerate(lines)
            ]
        return [line[:_COMPARED] for line in lines]

    def fit(self, partition: _Partition) -> _Fit | None:
        """Returns how the calls fit; None where the members of a group made other calls or did not meet."""
        waits = dict.fromkeys(self.by_rank, 0)
        cost_ns = 0
        for members in partition:
            if members not in self.group_fits:
                self.group_fits[members] = _group_fit(self.lines(members))
            group_fit = self.group_fits[members]
            if group_fit is None:
                return None
            cost_ns += group_fit[0]
            waits.update(zip(members, group_fit[1], strict=True))
        return _Fit(cost_ns, tuple(waits.values()), partition)


def _group_fit(lines: Sequence[Sequence[_Call]]) -> tuple[int, tuple[int, ...]] | None:
    """Returns (cost, wait of each member) of one group; None where they are none."""
    if len({tuple(call.kind for call in line) for line in lines}) > 1:
        return None
    # A rank whose process is not stated sends to itself.
    if lines[0][0].is_transfer and (
        len(lines) != 2 or any(one.leads == two.leads for one, two in zip(*lines, strict=True))
    ):
        return None
    late = [_later(lines[0], line) for line in lines]
    cost_ns, apart = 0, 0
    waits = [0] * len(lines)
    for calls in zip(*lines, strict=True):
        starts = [call.start - ns for call, ns in zip(calls, late, strict=True)]
        ends = [call.end - ns for call, ns in zip(calls, late, strict=True)]
        came = max(starts)
        apart += min(ends) < came - TOLERANCE_NS or max(ends) - min(ends) > APART_NS
        cost_ns += max(ends) - min(ends) + max(max(ends) - came, 0)
        waits = [ns + came - start for ns, start in zip(waits, starts, strict=True)]
    return None if apart > _MAY_DIFFER * len(lines[0]) else (cost_ns, tuple(waits))


def _later(line: Sequence[_Call], other: Sequence[_Call]) -> int:
    """Returns how much later the other's calls end, the median."""
    return median_low(two.end - one.end for one, two in zip(line, other, strict=True))


def part_groups(path: str, ranks: Sequence[RankTrace], world: int | None) -> list[Diagnostic]:
    """Assigns the ranks that fit to calls of groups without ranks; returns notes on these and on the
    others.
    """
    clocks = _Clocks(len(ranks))
    resolved: dict[tuple[str | None, int, _Partition], list[_GroupCalls]] = {}
    unknown: dict[tuple[str | None, int], list[_GroupCalls]] = {}
    # The group with most calls comes first: it aligns clocks for the others.
    left = sorted(_unnamed(ranks), key=lambda calls: calls.count)
    while left:
        calls = left.pop()
        partitions = _find_partitions(ranks, calls, world)
        fits = _fits(calls, partitions)
        best = min(fits, key=lambda fit: fit.cost_ns, default=None)
        # Calls of one name may be of groups of several partitions; those of one kind are of one.
        others = [
            kind
            for kind in calls.kinds[:_MOST_KINDS]
            if best is None or _is_other(calls.of([kind]), best, partitions)
        ]
        if others and len(calls.kinds) > 1:
            rest = [kind for kind in calls.kinds if kind not in others]
            left += [calls.of([kind]) for kind in others]
            left += [calls.of(rest)] if rest else []
            continue
        partition = None if best is None else _choose_partition(clocks, calls, best, fits)
        if partition is None:
            unknown.setdefault((calls.group, calls.size), []).append(calls)
        else:
            clocks.synchronize(calls, partition)
            _set_members(ranks, calls, partition)
            resolved.setdefault((calls.group, calls.size, partition), []).append(calls)
    return [
        *(_resolved_note(path, ranks, some, partition) for (_, _, partition), some in resolved.items()),
        *(_unresolved_note(path, some) for some in unknown.values()),
    ]


def _unnamed(ranks: Sequence[RankTrace]) -> Iterator[_GroupCalls]:
    """Yields calls of groups that state no ranks, or more than they have members, and are made by more ranks
    than that, by name and size; by stream where each rank has as many streams: a communicator has one.
    """
    calls_by_key: dict[tuple[str | None, str | None, int, bool], dict[int, list[_Call]]] = {}
    streams: dict[tuple[str | None, str | None, int, bool], dict[int, list[int]]] = {}
    for index, rank in enumerate(ranks):
        if rank.device is None:
            continue
        for op, collective in rank.device.collectives.items():
            is_transfer = collective.sends or collective.receives
            is_named = collective.ranks is not None and len(collective.ranks) <= collective.size
            if (
                is_named
                or collective.size < 2
                or (is_transfer and (collective.peer >= 0 or collective.size > 2))
            ):
                continue
            elements = -1 if collective.operation.startswith(ANY_SIZE) else elements_of(collective)
            kind = ("send and recv" if is_transfer else collective.operation, elements)
            key = (
                collective.group,
                None if collective.sequence is None else collective.communicator,
                collective.size,
                is_transfer,
            )
            call = _Call(rank.ops.start[op], rank.ops.end[op], op, kind, is_transfer, collective.sends)
            calls_by_key.setdefault(key, {}).setdefault(index, []).append(call)
            streams.setdefault(key, {}).setdefault(index, []).append(rank.device.stream[op])
    for key, by_rank in calls_by_key.items():
        if len(by_rank) <= key[2]:
            continue
        orders = {rank: list(dict.fromkeys(line)) for rank, line in streams[key].items()}
        counts = {len(order) for order in orders.values()}
        for position in range(min(counts) if len(counts) == 1 else 1):
            yield _GroupCalls(key[0], key[2], {
                rank: [
                    call for call, stream in zip(calls, streams[key][rank], strict=True)
                    if len(counts) > 1 or stream == orders[rank][position]
                ]
                for rank, calls in by_rank.items()
            })  # fmt: skip


# -- partitions of ranks ---------------------------------------------------------------------------


def _find_partitions(ranks: Sequence[RankTrace], calls: _GroupCalls, world: int | None) -> list[_Partition]:
    """Returns the partitions of the ranks that call, those with groups at equal distances first."""
    there, size = sorted(calls.by_rank), calls.size
    whole = world or max(ranks[index].rank for index in there) + 1
    partitions: dict[_Partition, None] = {}
    farthest = min(whole // size, ranks[there[-1]].rank + 1, _MOST_DISTANCE)
    for distance in range(1, farthest + 1):
        if whole % (distance * size) == 0:
            groups: dict[int, list[int]] = {}
            for index in there:
                groups.setdefault(_lowest_rank(ranks[index].rank, distance, size), []).append(index)
            partitions[tuple(map(tuple, groups.values()))] = None
    count = len(there) // size
    if len(there) == whole == count * size and whole <= _MOST_RANKS:
        every = factorial(len(there)) // (factorial(size) ** count * factorial(count))
        if every <= _MOST_PARTITIONS:
            partitions |= dict.fromkeys(_all_partitions(tuple(there), size))
    return list(partitions)


def _lowest_rank(rank: int, distance: int, size: int) -> int:
    """Returns the lowest rank of the group of a rank, of groups at a distance."""
    return rank // (distance * size) * distance * size + rank % distance


def _all_partitions(there: tuple[int, ...], size: int) -> Iterator[_Partition]:
    if not there:
        yield ()
        return
    for others in combinations(there[1:], size - 1):
        rest = tuple(index for index in there[1:] if index not in others)
        for partition in _all_partitions(rest, size):
            yield ((there[0], *others), *partition)


def _fits(calls: _GroupCalls, partitions: Sequence[_Partition]) -> list[_Fit]:
    """Returns how the calls fit each partition that they fit.

    Where there are some in which they end at once on the clocks as written, it returns those alone: clocks
    aligned by some groups would favour these.
    """
    fits = [fit for fit in map(calls.fit, partitions) if fit is not None]
    noise = TOLERANCE_NS * calls.count
    raw_clocks = _Clocks(max(calls.by_rank) + 1)
    at_once = [fit for fit in fits if raw_clocks.apart_ns(calls, fit.partition) <= noise * len(fit.partition)]
    return at_once or fits


def _is_other(calls: _GroupCalls, best: _Fit, partitions: Sequence[_Partition]) -> bool:
    """Returns whether calls of one kind fit another partition by so much better that they are of other
    groups.
    """
    own = calls.fit(best.partition)
    if own is None:
        return True
    noise = TOLERANCE_NS * calls.count
    return any(fit.cost_ns < _BETTER * own.cost_ns - noise for fit in _fits(calls, partitions))


def _choose_partition(
    clocks: _Clocks, calls: _GroupCalls, best: _Fit, fits: Sequence[_Fit]
) -> _Partition | None:
    """Returns the partition that fits best; of several the one that fits the clocks known so far, then the
    first; None where several fit and their waits differ.
    """
    noise = TOLERANCE_NS * calls.count
    similar = [fit for fit in fits if fit.cost_ns <= _AS_WELL * best.cost_ns + noise]
    apart = {fit.partition: clocks.apart_ns(calls, fit.partition) for fit in similar}
    least = min(apart.values())
    similar = [fit for fit in similar if apart[fit.partition] <= least + noise]
    first = similar[0]
    if any(abs(ns - own) > noise for fit in similar for ns, own in zip(fit.waits, first.waits, strict=True)):
        return None
    # One call has no difference of ends but its own: with ranks missing it proves no group.
    is_whole = all(len(members) == calls.size for members in first.partition)
    return first.partition if is_whole or calls.count > 1 else None


class _Clocks:
    """The clocks of ranks, aligned by the groups that are known; before that as written."""

    def __init__(self, count: int) -> None:
        self.shift = [0] * count
        self.root = list(range(count))

    def synchronize(self, calls: _GroupCalls, partition: _Partition) -> None:
        """Aligns the clocks of the members of each group."""
        for members in partition:
            lines = calls.lines(members)
            for rank, line in zip(members[1:], lines[1:], strict=True):
                move = self.shift[members[0]] - _later(lines[0], line) - self.shift[rank]
                old_root, new_root = self.root[rank], self.root[members[0]]
                for other, root in enumerate(self.root):
                    if root == old_root != new_root:
                        self.shift[other] += move
                        self.root[other] = new_root

    def apart_ns(self, calls: _GroupCalls, partition: _Partition) -> int:
        """Returns how far apart the calls of groups end on these clocks."""
        apart_ns = 0
        for members in partition:
            shifts = [self.shift[rank] for rank in members]
            for some in zip(*calls.lines(members), strict=True):
                ends = [call.end + shift for call, shift in zip(some, shifts, strict=True)]
                apart_ns += max(ends) - min(ends)
        return apart_ns


# -- words of the notes ----------------------------------------------------------------------------


def _set_members(ranks: Sequence[RankTrace], calls: _GroupCalls, partition: _Partition) -> None:
    for members in partition:
        group_ranks = tuple(ranks[index].rank for index in members)
        for index in members:
            device = ranks[index].device
            assert device is not None
            for call in calls.by_rank[index]:
                collective: CollectiveInfo = device.collectives[call.op]
                device.collectives[call.op] = replace(collective, ranks=group_ranks)


def _call_words(some: Sequence[_GroupCalls]) -> str:
    """Returns `20 calls of allreduce in groups of 2 (tp)`."""
    names = dict.fromkeys(kind[0] for calls in some for kind in calls.kinds)
    operations = join_names([printable(name, 40) for name in names])
    name = "" if some[0].group is None else f" ({printable(some[0].group, 40)})"
    return f"{_count(some)} of {operations} in groups of {some[0].size}{name}"


def _count(some: Sequence[_GroupCalls]) -> str:
    return plural(sum(len(line) for calls in some for line in calls.by_rank.values()), "call")


def _resolved_note(
    path: str, ranks: Sequence[RankTrace], some: Sequence[_GroupCalls], partition: _Partition
) -> Diagnostic:
    groups = [RankSet.of([ranks[index].rank for index in members]).text() for members in partition]
    more = f" and {plural(len(groups) - _LISTED, 'more group')}" if len(groups) > _LISTED else ""
    message = (
        f"{_call_words(some)} tell no ranks: taken to be of those whose ends differ least, ranks "
        f"{'; '.join(groups[:_LISTED])}{more}"
    )
    return Diagnostic("note", "group-by-ends", message, path)


def _unresolved_note(path: str, some: Sequence[_GroupCalls]) -> Diagnostic:
    count = max(len(calls.by_rank) for calls in some)
    message = (
        f"{_call_words(some)} tell no ranks, {count} ranks call, and their ends do not show which of "
        "them belong "
        "together: no wait is stated of them"
    )
    brief = f"groups of {_count(some)} not known"
    return Diagnostic("warning", "group-unknown", message, path, brief=brief)
