"""Accounts: every nanosecond of a rank is in exactly one, whatever the run came from.

A builder of each kind of run decides the account of a nanosecond: `accounts.py` of `analysis`, `replay` and
`executing`. The accounts of any stretch are exact at the cost of two bisections: segments are cut at its
ends, so the accounts of every rank add up to its length.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import accumulate, compress, islice
from operator import sub

from simcore.records import NamedTuple, Struct, field
from simcore.trace.track import COMMON_ACCOUNTS
from simcore.units import lengths_between


class AccountNames(NamedTuple):
    """The accounts of a kind of run: compute by phase, exposed communication by kind, the rest."""

    all: tuple[str, ...]
    """All accounts."""
    compute: tuple[str, ...]
    """The phases of compute."""
    exposed: tuple[str, ...]
    """The kinds of exposed communication."""
    rare: tuple[str, ...]
    """Phases and kinds that are left out where they have no time."""
    common_indices: tuple[int, ...]
    """The index of each account in `COMMON_ACCOUNTS`."""
    in_bars: Sequence[int]
    """The indices of the accounts in the order of a bar."""

    @property
    def rare_accounts(self) -> set[str]:
        """The accounts that are left out where they have no time."""
        return {name for name in self.all if name.partition(" ")[2] in self.rare}

    @property
    def first_exposed(self) -> int:
        """The index of the first account behind compute."""
        return len(self.compute)

    @property
    def first_other(self) -> int:
        """The index of the first account behind exposed communication: `wait`."""
        return len(self.compute) + len(self.exposed)


def account_names(
    compute: Sequence[str], exposed: Sequence[str], others: Sequence[str], names: Mapping[str, str],
    rare: Sequence[str] = (), in_bars: Sequence[int] = (),
) -> AccountNames:  # fmt: skip
    """Returns the accounts of a kind of run.

    others: the accounts from `wait` on. names: the name in `COMMON_ACCOUNTS` of each account that has another
    one there.
    """
    all_names = (*(f"compute {name}" for name in compute), *(f"exposed {name}" for name in exposed), *others)
    common_indices = tuple(COMMON_ACCOUNTS.index(names.get(name, name)) for name in all_names)
    bars = in_bars or range(len(all_names))
    return AccountNames(all_names, tuple(compute), tuple(exposed), tuple(rare), common_indices, bars)


class Accounts(Struct):
    """The segments of one rank, or of a class of equal ones: they cover 0..step time, and none is empty."""

    of: AccountNames
    """The accounts that exist."""
    edge: array[int] = field(default_factory=lambda: array("q"))
    """edge[i]..edge[i + 1] ns is segment i: one entry more than there are segments."""
    account: bytearray = field(default_factory=bytearray)
    """The index into `of.all` of each segment."""
    op: array[int] = field(default_factory=lambda: array("i"))
    """The code of what runs or is waited for in each segment, as the builder numbers it."""
    total_ns: list[int] = field(default_factory=list)
    """ns by account."""

    def __post_init__(self) -> None:
        if not self.total_ns:
            self.total_ns = [0] * len(self.of.all)

    def book(self, begin: int, over: int, account: int, op: int) -> None:
        """Adds a segment behind the last one."""
        self.edge.append(begin)
        self.account.append(account)
        self.op.append(op)
        self.total_ns[account] += over - begin

    def ns(self, account: str) -> int:
        """Returns the time in an account, ns."""
        return self.total_ns[self.of.all.index(account)]

    def compute_ns(self) -> dict[str, int]:
        """Returns compute by phase, ns."""
        return self._times_by_name(self.of.compute, 0)

    def exposed_ns(self) -> dict[str, int]:
        """Returns exposed communication by kind, ns."""
        return self._times_by_name(self.of.exposed, self.of.first_exposed)

    def _times_by_name(self, names: Sequence[str], first: int) -> dict[str, int]:
        times = zip(names, self.total_ns[first:], strict=False)
        return {name: ns for name, ns in times if ns or name not in self.of.rare}

    @property
    def busy_ns(self) -> int:
        """All compute, ns."""
        return sum(self.total_ns[: self.of.first_exposed])

    @property
    def all_exposed_ns(self) -> int:
        """Exposed communication of all kinds, ns."""
        return sum(self.total_ns[self.of.first_exposed : self.of.first_other])

    @property
    def wait_ns(self) -> int:
        return self.ns("wait")

    @property
    def bubble_ns(self) -> int:
        return self.ns("bubble")

    @property
    def idle_ns(self) -> int:
        return self.ns("idle")

    @property
    def last_end_ns(self) -> int:
        """When it becomes idle until the step ends, ns."""
        idle, last = self.of.all.index("idle"), len(self.account)
        # Changes of state of ASTRA-sim's loop may follow each other at the end.
        while last and self.account[last - 1] == idle:
            last -= 1
        return self.edge[last]

    @property
    def lengths(self) -> array[int]:
        """The length of each segment, ns. It is computed each time: of a run of 1,024 ranks all lengths take
        20 MB.
        """
        return lengths_between(self.edge)

    def at(self, time_ns: int) -> int:
        """Returns the segment that holds `time_ns`, the last one for the end of the step."""
        return min(bisect_right(self.edge, time_ns) - 1, len(self.account) - 1)

    def computed_until(self) -> Callable[[int], int]:
        """Returns a function that gives how much the rank has computed until a moment, ns."""
        is_compute = bytes(account < self.of.first_exposed for account in range(256))
        flags = self.account.translate(is_compute)
        starts, sums = prefix_sums(compress(self.edge, flags), compress(self.lengths, flags))
        return partial(covered_until, starts, sums)


def used_accounts(
    accounts: Sequence[Accounts], headings: Mapping[str, str], always: Collection[str] = ()
) -> list[tuple[str, tuple[str, ...]]]:
    """Returns (heading, (account,)) of each account that any rank has time in.

    headings: the headings of accounts whose heading is not their name. always: accounts that are listed even
    where no rank has time in them.
    """
    used: list[tuple[str, tuple[str, ...]]] = []
    for index, account in enumerate(accounts[0].of.all if accounts else ()):
        if account in always or any(of_rank.total_ns[index] for of_rank in accounts):
            name = account.removeprefix("compute ").removeprefix("exposed ")
            used.append((headings.get(name, name), (account,)))
    return used


def prefix_sums(starts: Iterable[int], lengths: Iterable[int]) -> tuple[array[int], array[int]]:
    """Returns the begins of successive spans and the total length before each: see `covered_until`."""
    return array("q", starts), array("q", accumulate(lengths, initial=0))


def covered_until(starts: array[int], sums: array[int], time_ns: int) -> int:
    """Returns how much of the spans lies before a moment, ns. starts, sums: of `prefix_sums`."""
    index = bisect_right(starts, time_ns)
    return min(sums[index], sums[index - 1] + time_ns - starts[index - 1]) if index else 0


def merge_spans(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Returns the union of spans, (start, end) ns, as disjoint spans."""
    disjoint: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if disjoint and start <= disjoint[-1][1]:
            disjoint[-1] = disjoint[-1][0], max(end, disjoint[-1][1])
        elif end > start:
            disjoint.append((start, end))
    return disjoint


# Sums are stored for every so many segments; those in between are added up by a query. 64 makes the table
# 15 numbers for every 64 segments (a quarter of the segments' own size) and a query 6 us.
_BLOCK = 64


class RangeSums:
    """Prefix sums over segments that follow one another without a gap, each in one category."""

    __slots__ = ("_before", "_category", "_edge", "_kinds")

    def __init__(self, edge: array[int], category: bytearray, kinds: int) -> None:
        """edge[i]..edge[i+1] ns is segment i, of category[i]; there are `kinds` categories."""
        self._edge, self._category, self._kinds = edge, category, kinds
        # before[b * kinds + c]: ns of category c before segment b * _BLOCK.
        self._before = array("q")
        totals = [0] * kinds
        lengths = map(sub, islice(edge, 1, None), edge)
        for first in range(0, len(category), _BLOCK):
            self._before.extend(totals)
            for kind, length in zip(category[first : first + _BLOCK], lengths, strict=False):
                totals[kind] += length
        if not category:
            self._before.extend(totals)

    def until(self, time_ns: int) -> list[int]:
        """Returns ns by category from the first edge to `time_ns`."""
        edge, category = self._edge, self._category
        if not category:
            return [0] * self._kinds
        time_ns = max(edge[0], min(time_ns, edge[-1]))
        segment = min(bisect_right(edge, time_ns) - 1, len(category) - 1)
        block = segment // _BLOCK
        totals = self._before[block * self._kinds : (block + 1) * self._kinds].tolist()
        for index in range(block * _BLOCK, segment):
            totals[category[index]] += edge[index + 1] - edge[index]
        totals[category[segment]] += time_ns - edge[segment]
        return totals

    def between(self, first_ns: int, last_ns: int) -> list[int]:
        """Returns ns by category from `first_ns` to `last_ns`; they sum to the stretch inside the edges."""
        return list(map(sub, self.until(last_ns), self.until(first_ns)))


class StretchSpans(Struct, frozen=True):
    """The spans of a stretch."""

    count: int
    """How many spans touch it."""
    index: int
    """The longest span, cut at the ends of the stretch; -1 without spans."""
    ns: int
    """The length of the longest span inside the stretch."""


def longest_in(edge: Sequence[int], first_ns: int, last_ns: int) -> StretchSpans:
    """Returns the longest segment edge[i]..edge[i+1] between two times, the earliest of equal ones."""
    segments = len(edge) - 1
    low = max(bisect_right(edge, first_ns) - 1, 0)
    high = min(bisect_left(edge, last_ns), segments)
    if high <= low or last_ns <= first_ns:
        return StretchSpans(0, -1, 0)
    inner = [max(edge[low], first_ns), *edge[low + 1 : high], min(edge[high], last_ns)]
    lengths = list(map(sub, inner[1:], inner))
    longest = max(lengths)
    return StretchSpans(high - low, low + lengths.index(longest), longest)


class Ranges:
    """What any stretch is made of, on one rank class or on all ranks; tables are made on first use."""

    def __init__(
        self, segments: Callable[[int], tuple[array[int], bytearray]], ranks: Sequence[int], kinds: int
    ) -> None:
        """segments: returns (edge, category) of a class by its id, as `RangeSums` takes them; ranks: how many
        ranks each class has. There are `kinds` categories. A measured rank is a class of its own.
        """
        self._segments, self._ranks, self._kinds = segments, ranks, kinds
        self._sums: dict[int, RangeSums] = {}

    def of_class(self, class_id: int, first_ns: int, last_ns: int) -> list[int]:
        """Returns ns by category of a rank of a class, from `first_ns` to `last_ns`."""
        sums = self._sums.get(class_id)
        if sums is None:
            sums = self._sums[class_id] = RangeSums(*self._segments(class_id), self._kinds)
        return sums.between(first_ns, last_ns)

    def of_all(self, first_ns: int, last_ns: int) -> list[int]:
        """Returns ns by category of all ranks together, from `first_ns` to `last_ns`."""
        totals = [0] * self._kinds
        for class_id, ranks in enumerate(self._ranks):
            for kind, ns in enumerate(self.of_class(class_id, first_ns, last_ns)):
                totals[kind] += ns * ranks
        return totals

    def longest_segment(self, class_id: int, first_ns: int, last_ns: int) -> tuple[StretchSpans, int]:
        """Returns the segments of a class in a stretch, and the category of the longest, 0 without any."""
        edge, category = self._segments(class_id)
        longest = longest_in(edge, first_ns, last_ns)
        return longest, category[longest.index] if longest.index >= 0 else 0
