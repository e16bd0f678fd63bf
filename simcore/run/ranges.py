"""The accounts, or categories, of any stretch of the step: exact sums at the cost of two bisections.

The sums over a stretch are the accounts, cut at its two ends: on every rank they add up to
the stretch's length.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from itertools import islice
from operator import sub

from simcore.records import Struct

# Sums are kept for every so many segments; those in between are added up when asked for. 64
# makes the table 15 numbers a 64 segments (a quarter of the segments' own size) and a query 6 us.
_BLOCK = 64


class RangeSums:
    """Prefix sums over segments that follow one another without a hole, each in one category."""

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
        """ns by category from the first edge to `time_ns`."""
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
        """ns by category from `first_ns` to `last_ns`; they sum to the stretch inside the edges."""
        return list(map(sub, self.until(last_ns), self.until(first_ns)))


class Longest(Struct, frozen=True):
    """The spans of a stretch. count: how many touch it. index: the longest, cut at the stretch's ends,
    -1 of none; ns: how long it is there.
    """

    count: int
    index: int
    ns: int


def longest_in(edge: Sequence[int], first_ns: int, last_ns: int) -> Longest:
    """The longest segment edge[i]..edge[i+1] between two times, the earliest of equal ones."""
    segments = len(edge) - 1
    low = max(bisect_right(edge, first_ns) - 1, 0)
    high = min(bisect_left(edge, last_ns), segments)
    if high <= low or last_ns <= first_ns:
        return Longest(0, -1, 0)
    inner = [max(edge[low], first_ns), *edge[low + 1 : high], min(edge[high], last_ns)]
    lengths = list(map(sub, inner[1:], inner))
    longest = max(lengths)
    return Longest(high - low, low + lengths.index(longest), longest)


class Ranges:
    """What any stretch is made of, on one rank class or on all ranks; tables are made when first used."""

    def __init__(
        self, segments: Callable[[int], tuple[array[int], bytearray]], ranks: Sequence[int], kinds: int
    ) -> None:
        """segments: (edge, category) of a class as `RangeSums` takes them, by its number; ranks: how many
        each class has. There are `kinds` categories. A measured rank is a class of its own.
        """
        self._segments, self._ranks, self._kinds = segments, ranks, kinds
        self._sums: dict[int, RangeSums] = {}

    def of_class(self, number: int, first_ns: int, last_ns: int) -> list[int]:
        """ns by category, of a rank of class `number`, from `first_ns` to `last_ns`."""
        sums = self._sums.get(number)
        if sums is None:
            sums = self._sums[number] = RangeSums(*self._segments(number), self._kinds)
        return sums.between(first_ns, last_ns)

    def of_all(self, first_ns: int, last_ns: int) -> list[int]:
        """ns by category, of all ranks together, from `first_ns` to `last_ns`."""
        totals = [0] * self._kinds
        for number, ranks in enumerate(self._ranks):
            for kind, ns in enumerate(self.of_class(number, first_ns, last_ns)):
                totals[kind] += ns * ranks
        return totals

    def longest(self, number: int, first_ns: int, last_ns: int) -> tuple[Longest, int]:
        """The segments of class `number` in a stretch, and the category of the longest one, 0 of none."""
        edge, category = self._segments(number)
        found = longest_in(edge, first_ns, last_ns)
        return found, category[found.index] if found.index >= 0 else 0
