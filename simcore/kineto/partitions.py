"""Which ranks are one group where calls tell how many members it has, but not which: who ends alike.

More ranks call than the group has members, so they are of several groups. Of all ways to part the ranks into
groups of that size the one is taken in which members leave their calls together and calls take least by
themselves, from the last member to come on: groups that do alike take alike. Where no way lets them end at
once on the clocks as they are, of the differences of two ranks' ends the middle one is none. Where several
ways fit alike and their waits differ, nothing is told.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import factorial
from statistics import median_low

from simcore.diagnostics import Diagnostic, printable
from simcore.measured.columns import TOLERANCE_NS, RankTrace, ToldCollective
from simcore.measured.device_order import ANY_SIZE, APART_NS, elements_of
from simcore.ranks import RankSet
from simcore.records import NamedTuple, Struct, field, replace
from simcore.units import listed, plural

# All ways are tried where there are no more (8 ranks in pairs: 105); else those of groups at equal distances,
# of up to so many ranks.
_MOST_WAYS, _MOST_RANKS = 2_000, 14
_MOST_DISTANCE = 4_096
_COMPARED, _MOST_KINDS = 256, 64
# A way that costs no more than this beside the best fits as well; calls of a kind that cost so much less in
# another way are of other groups than the rest.
_AS_WELL, _BETTER = 1.05, 0.8
# Of the calls of a group so many may not have met, as where a window cuts them.
_MAY_DIFFER = 0.1
_LISTED = 4

# Ranks by their index, ascending, a tuple for each group.
_Way = tuple[tuple[int, ...], ...]


class _Call(NamedTuple):
    """A call. kind: (operation, elements), of a send and its receive the same. leads: whether it sends."""

    start: int
    end: int
    op: int
    kind: tuple[str, int]
    is_transfer: bool
    leads: bool


class _Fit(NamedTuple):
    """How calls fit a way. cost_ns: what they take by themselves and how far they end apart; waits: of each
    rank.
    """

    cost_ns: int
    waits: tuple[int, ...]
    way: _Way


class _Calls(Struct):
    """Calls of groups of one name, of `size` members each, by the index of their rank, in order."""

    group: str | None
    size: int
    by_rank: dict[int, list[_Call]]
    known: dict[tuple[int, ...], tuple[int, tuple[int, ...]] | None] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """How many calls a rank has."""
        return max(map(len, self.by_rank.values()))

    @property
    def kinds(self) -> list[tuple[str, int]]:
        """Operation and size of the calls, each once."""
        return list(dict.fromkeys(call.kind for calls in self.by_rank.values() for call in calls))

    def of(self, kinds: Sequence[tuple[str, int]]) -> _Calls:
        """Those of these kinds alone."""
        some = {rank: [call for call in calls if call.kind in kinds] for rank, calls in self.by_rank.items()}
        return _Calls(self.group, self.size, {rank: calls for rank, calls in some.items() if calls})

    def lines(self, members: Sequence[int]) -> list[list[_Call]]:
        """The calls of the members of a group: those at one place are one collective, or send and receive."""
        lines = [self.by_rank[rank] for rank in members]
        if lines[0][0].is_transfer and len(lines) == 2:
            lines = [
                sorted(line, key=lambda call: call.leads == bool(number)) for number, line in enumerate(lines)
            ]
        return [line[:_COMPARED] for line in lines]

    def fit(self, way: _Way) -> _Fit | None:
        """How the calls fit; None where the members of a group made other calls or did not meet."""
        waits = dict.fromkeys(self.by_rank, 0)
        cost_ns = 0
        for members in way:
            if members not in self.known:
                self.known[members] = _group_fit(self.lines(members))
            known = self.known[members]
            if known is None:
                return None
            cost_ns += known[0]
            waits.update(zip(members, known[1], strict=True))
        return _Fit(cost_ns, tuple(waits.values()), way)


def _group_fit(lines: Sequence[Sequence[_Call]]) -> tuple[int, tuple[int, ...]] | None:
    """(cost, wait of each member) of one group; None where they are none."""
    if len({tuple(call.kind for call in line) for line in lines}) > 1:
        return None
    if lines[0][0].is_transfer and any(one.leads == two.leads for one, two in zip(*lines, strict=True)):
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
    """How much later the other's calls end, the middle one."""
    return median_low(two.end - one.end for one, two in zip(line, other, strict=True))


def part_groups(path: str, ranks: Sequence[RankTrace], world: int | None) -> list[Diagnostic]:
    """Gives calls of groups without ranks those ranks that fit; says which, and of which none do."""
    clocks = _Clocks(len(ranks))
    told: dict[tuple[str | None, int, _Way], list[_Calls]] = {}
    unknown: dict[tuple[str | None, int], list[_Calls]] = {}
    # What most calls tell comes first: it ties clocks for the others.
    left = sorted(_unnamed(ranks), key=lambda calls: calls.count)
    while left:
        calls = left.pop()
        ways = _ways(ranks, calls, world)
        fits = _fits(calls, ways)
        best = min(fits, key=lambda fit: fit.cost_ns, default=None)
        # Calls of one name may be of groups that part the ranks otherwise: those of one kind are of one.
        others = [
            kind
            for kind in calls.kinds[:_MOST_KINDS]
            if best is None or _is_other(calls.of([kind]), best, ways)
        ]
        if others and len(calls.kinds) > 1:
            rest = [kind for kind in calls.kinds if kind not in others]
            left += [calls.of([kind]) for kind in others]
            left += [calls.of(rest)] if rest else []
            continue
        way = None if best is None else _chosen(clocks, calls, best, fits)
        if way is None:
            unknown.setdefault((calls.group, calls.size), []).append(calls)
        else:
            clocks.tie(calls, way)
            _name(ranks, calls, way)
            told.setdefault((calls.group, calls.size, way), []).append(calls)
    return [
        *(_told(path, ranks, some, way) for (_, _, way), some in told.items()),
        *(_unknown(path, some) for some in unknown.values()),
    ]


def _unnamed(ranks: Sequence[RankTrace]) -> Iterator[_Calls]:
    """Calls of groups that tell no ranks, or more than they have members, and are made by more ranks than
    that, by name and size; on streams of their own where each rank has as many: a communicator has one.
    """
    found: dict[tuple[str | None, str | None, int, bool], dict[int, list[_Call]]] = {}
    streams: dict[tuple[str | None, str | None, int, bool], dict[int, list[int]]] = {}
    for index, rank in enumerate(ranks):
        if rank.device is None:
            continue
        for op, said in rank.device.collectives.items():
            is_transfer = said.sends or said.receives
            is_named = said.ranks is not None and len(said.ranks) <= said.size
            if is_named or said.size < 2 or (is_transfer and (said.peer >= 0 or said.size > 2)):
                continue
            elements = -1 if said.operation.startswith(ANY_SIZE) else elements_of(said)
            kind = ("send and recv" if is_transfer else said.operation, elements)
            key = (said.group, None if said.sequence is None else said.communicator, said.size, is_transfer)
            call = _Call(rank.ops.start[op], rank.ops.end[op], op, kind, is_transfer, said.sends)
            found.setdefault(key, {}).setdefault(index, []).append(call)
            streams.setdefault(key, {}).setdefault(index, []).append(rank.device.stream[op])
    for key, by_rank in found.items():
        if len(by_rank) <= key[2]:
            continue
        orders = {rank: list(dict.fromkeys(line)) for rank, line in streams[key].items()}
        counts = {len(order) for order in orders.values()}
        for place in range(min(counts) if len(counts) == 1 else 1):
            yield _Calls(key[0], key[2], {
                rank: [
                    call for call, stream in zip(calls, streams[key][rank], strict=True)
                    if len(counts) > 1 or stream == orders[rank][place]
                ]
                for rank, calls in by_rank.items()
            })  # fmt: skip


# -- ways to part ranks ----------------------------------------------------------------------------


def _ways(ranks: Sequence[RankTrace], calls: _Calls, world: int | None) -> list[_Way]:
    """The ways to part the ranks that call into groups, those at equal distances first."""
    there, size = sorted(calls.by_rank), calls.size
    whole = world or max(ranks[index].number for index in there) + 1
    ways: dict[_Way, None] = {}
    farthest = min(whole // size, ranks[there[-1]].number + 1, _MOST_DISTANCE)
    for distance in range(1, farthest + 1):
        if whole % (distance * size) == 0:
            groups: dict[int, list[int]] = {}
            for index in there:
                groups.setdefault(_place(ranks[index].number, distance, size), []).append(index)
            ways[tuple(map(tuple, groups.values()))] = None
    count = len(there) // size
    if len(there) == whole == count * size and whole <= _MOST_RANKS:
        every = factorial(len(there)) // (factorial(size) ** count * factorial(count))
        if every <= _MOST_WAYS:
            ways |= dict.fromkeys(_all_ways(tuple(there), size))
    return list(ways)


def _place(number: int, distance: int, size: int) -> int:
    """The lowest rank of the group of a rank, of groups at a distance."""
    return number // (distance * size) * distance * size + number % distance


def _all_ways(there: tuple[int, ...], size: int) -> Iterator[_Way]:
    if not there:
        yield ()
        return
    for others in combinations(there[1:], size - 1):
        rest = tuple(index for index in there[1:] if index not in others)
        for way in _all_ways(rest, size):
            yield ((there[0], *others), *way)


def _fits(calls: _Calls, ways: Sequence[_Way]) -> list[_Fit]:
    """How the calls fit each way that they fit: where there are some in which they end at once on the clocks
    as written, those alone. Clocks that some groups have brought together would favour these.
    """
    fits = [fit for fit in map(calls.fit, ways) if fit is not None]
    noise = TOLERANCE_NS * calls.count
    written = _Clocks(max(calls.by_rank) + 1)
    at_once = [fit for fit in fits if written.apart_ns(calls, fit.way) <= noise * len(fit.way)]
    return at_once or fits


def _is_other(calls: _Calls, best: _Fit, ways: Sequence[_Way]) -> bool:
    """Whether calls of one kind fit another way by so much better that they are of other groups."""
    own = calls.fit(best.way)
    if own is None:
        return True
    noise = TOLERANCE_NS * calls.count
    return any(fit.cost_ns < _BETTER * own.cost_ns - noise for fit in _fits(calls, ways))


def _chosen(clocks: _Clocks, calls: _Calls, best: _Fit, fits: Sequence[_Fit]) -> _Way | None:
    """The way that fits best, of several that of the clocks as far as they are known, then the first; None
    where several fit and their waits differ.
    """
    noise = TOLERANCE_NS * calls.count
    alike = [fit for fit in fits if fit.cost_ns <= _AS_WELL * best.cost_ns + noise]
    apart = {fit.way: clocks.apart_ns(calls, fit.way) for fit in alike}
    least = min(apart.values())
    alike = [fit for fit in alike if apart[fit.way] <= least + noise]
    first = alike[0]
    if any(abs(ns - own) > noise for fit in alike for ns, own in zip(fit.waits, first.waits, strict=True)):
        return None
    # One call has no difference of ends but its own: with ranks missing it proves no group.
    is_whole = all(len(members) == calls.size for members in first.way)
    return first.way if is_whole or calls.count > 1 else None


class _Clocks:
    """The clocks of ranks, brought together by the groups that are known; as written before."""

    def __init__(self, count: int) -> None:
        self.shift = [0] * count
        self.root = list(range(count))

    def tie(self, calls: _Calls, way: _Way) -> None:
        """Brings the clocks of the members of each group together."""
        for members in way:
            lines = calls.lines(members)
            for rank, line in zip(members[1:], lines[1:], strict=True):
                move = self.shift[members[0]] - _later(lines[0], line) - self.shift[rank]
                whose, to = self.root[rank], self.root[members[0]]
                for other, root in enumerate(self.root):
                    if root == whose != to:
                        self.shift[other] += move
                        self.root[other] = to

    def apart_ns(self, calls: _Calls, way: _Way) -> int:
        """How far the calls of groups end apart on these clocks."""
        apart_ns = 0
        for members in way:
            shifts = [self.shift[rank] for rank in members]
            for some in zip(*calls.lines(members), strict=True):
                ends = [call.end + shift for call, shift in zip(some, shifts, strict=True)]
                apart_ns += max(ends) - min(ends)
        return apart_ns


# -- what is told ----------------------------------------------------------------------------------


def _name(ranks: Sequence[RankTrace], calls: _Calls, way: _Way) -> None:
    for members in way:
        numbers = tuple(ranks[index].number for index in members)
        for index in members:
            device = ranks[index].device
            assert device is not None
            for call in calls.by_rank[index]:
                said: ToldCollective = device.collectives[call.op]
                device.collectives[call.op] = replace(said, ranks=numbers)


def _what(some: Sequence[_Calls]) -> str:
    """`20 calls of allreduce in groups of 2 (tp)`."""
    names = dict.fromkeys(kind[0] for calls in some for kind in calls.kinds)
    operations = listed([printable(name, 40) for name in names])
    name = "" if some[0].group is None else f" ({printable(some[0].group, 40)})"
    return f"{_count(some)} of {operations} in groups of {some[0].size}{name}"


def _count(some: Sequence[_Calls]) -> str:
    return plural(sum(len(line) for calls in some for line in calls.by_rank.values()), "call")


def _told(path: str, ranks: Sequence[RankTrace], some: Sequence[_Calls], way: _Way) -> Diagnostic:
    groups = [RankSet.of([ranks[index].number for index in members]).text() for members in way]
    more = f" and {plural(len(groups) - _LISTED, 'more group')}" if len(groups) > _LISTED else ""
    message = (
        f"{_what(some)} tell no ranks: taken to be of those that end most alike, ranks "
        f"{'; '.join(groups[:_LISTED])}{more}"
    )
    return Diagnostic("note", "group-by-ends", message, path)


def _unknown(path: str, some: Sequence[_Calls]) -> Diagnostic:
    count = max(len(calls.by_rank) for calls in some)
    message = (
        f"{_what(some)} tell no ranks, {count} ranks call, and their ends do not show which of them belong "
        "together: no wait is stated of them"
    )
    brief = f"groups of {_count(some)} not known"
    return Diagnostic("warning", "group-unknown", message, path, brief=brief)
