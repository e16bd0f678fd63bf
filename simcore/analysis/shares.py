"""How much of any stretch of time each category fills: exact sums at any zoom, in log time."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable


class Shares:
    """Prefix sums over spans that do not overlap within a category; times in ns.

    A query costs one bisection a category however many spans it covers: a cell of the
    screen may stand for one span or for a million.
    """

    __slots__ = ("_before", "_starts", "categories")

    def __init__(self, spans: Iterable[tuple[int, int, int]]) -> None:
        """spans: (start, end, category), ascending by start within a category."""
        self._starts: dict[int, array[int]] = {}
        # before[c][i]: ns of category c before its span i; one entry more than there are spans.
        self._before: dict[int, array[int]] = {}
        for start, end, category in spans:
            starts = self._starts.get(category)
            if starts is None:
                starts = self._starts[category] = array("q")
                self._before[category] = array("q", (0,))
            starts.append(start)
            before = self._before[category]
            before.append(before[-1] + end - start)
        self.categories = tuple(sorted(self._starts))

    def until(self, category: int, time_ns: int) -> int:
        """ns of a category from 0 to `time_ns`."""
        starts = self._starts.get(category)
        if starts is None:
            return 0
        index = bisect_right(starts, time_ns) - 1
        if index < 0:
            return 0
        before = self._before[category]
        return min(before[index] + time_ns - starts[index], before[index + 1])

    def between(self, first_ns: int, last_ns: int) -> dict[int, int]:
        """ns of each category from `first_ns` to `last_ns`."""
        return {c: self.until(c, last_ns) - self.until(c, first_ns) for c in self.categories}

    def cells(self, edges: list[int]) -> list[dict[int, int]]:
        """ns of each category between each two neighbouring `edges`, categories of 0 ns left out."""
        found: list[dict[int, int]] = [{} for _ in range(len(edges) - 1)]
        for category in self.categories:
            starts, before = self._starts[category], self._before[category]
            last = 0
            for cell, time_ns in enumerate(edges, -1):
                index = bisect_right(starts, time_ns) - 1
                sum_ns = 0 if index < 0 else min(before[index] + time_ns - starts[index], before[index + 1])
                if cell >= 0 and sum_ns > last:
                    found[cell][category] = sum_ns - last
                last = sum_ns
        return found
