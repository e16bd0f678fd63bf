"""How much of any stretch of time each category fills: exact sums at any zoom, in logarithmic time."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate, chain, compress, repeat
from operator import add, sub

# Earlier than any time: where the stretch left of the first span begins.
_BEFORE_ALL = -(2**62)


class Shares:
    """Prefix sums over spans that do not overlap within a category; times in ns.

    A query costs one bisection per category however many spans it covers: a cell of the screen may stand for
    one span or for a million.
    """

    __slots__ = ("_before", "_starts", "categories")

    def __init__(self, spans: Iterable[tuple[int, int, int]]) -> None:
        """spans: (start, end, category), ascending by start within a category."""
        columns = tuple(zip(*spans, strict=True)) or ((), (), ())
        self._add(columns[0], columns[1], bytes(columns[2]))

    @classmethod
    def of_columns(cls, start: Sequence[int], end: Sequence[int], category: bytes | bytearray) -> Shares:
        """Returns the shares of columns of equal length, ascending by start within a category."""
        shares = cls.__new__(cls)
        shares._add(start, end, category)
        return shares

    def _add(self, start: Sequence[int], end: Sequence[int], category: bytes | bytearray) -> None:
        # Per category the starts, and before[i], its ns before its span i - 1: a first entry stands for the
        # time left of all spans.
        self._starts: dict[int, array[int]] = {}
        self._before: dict[int, array[int]] = {}
        self.categories = tuple(sorted(set(category)))
        # Lists: their ints are created once, those of an array on each access.
        begins, lengths = list(start), list(map(sub, end, start))
        for kind in self.categories:
            mask = bytearray(256)
            mask[kind] = 1
            picked = category.translate(mask)
            starts = array("q", (_BEFORE_ALL,))
            starts.extend(compress(begins, picked))
            self._starts[kind] = starts
            self._before[kind] = array("q", accumulate(chain((0, 0), compress(lengths, picked))))

    def until(self, category: int, time_ns: int) -> int:
        """Returns ns of a category from 0 to `time_ns`."""
        return self._until(category, (time_ns,))[0] if category in self.categories else 0

    def between(self, first_ns: int, last_ns: int) -> dict[int, int]:
        """Returns ns of each category from `first_ns` to `last_ns`."""
        ns_of = {}
        for category in self.categories:
            before, after = self._until(category, (first_ns, last_ns))
            ns_of[category] = after - before
        return ns_of

    def columns(self, edges: Sequence[int]) -> dict[int, list[int]]:
        """Returns ns between neighbouring `edges`, of each category that has any there."""
        columns = {}
        for category in self.categories:
            sums = self._until(category, edges)
            if sums[-1] > sums[0]:
                columns[category] = list(map(sub, sums[1:], sums))
        return columns

    def cells(self, edges: Sequence[int]) -> list[dict[int, int]]:
        """Returns ns of each category between neighbouring `edges`, categories of 0 ns left out."""
        cells: list[dict[int, int]] = [{} for _ in range(len(edges) - 1)]
        for category, column in self.columns(edges).items():
            for cell, ns in zip(cells, column, strict=True):
                if ns:
                    cell[category] = ns
        return cells

    def _until(self, category: int, times: Sequence[int]) -> list[int]:
        """Returns the ns spent in a category from 0 to each of the ascending `times`."""
        starts, before = self._starts[category], self._before[category]
        # All of the spans that began count in full, except the last one: only its elapsed part does.
        after = _count_until(starts, times)
        last = [index - 1 for index in after]
        inside = map(sub, times, map(starts.__getitem__, last))
        so_far = map(add, map(before.__getitem__, last), inside)
        return list(map(min, so_far, map(before.__getitem__, after)))


def _count_until(points: Sequence[int], times: Sequence[int]) -> list[int]:
    """Returns for each of the ascending `times` how many of the ascending `points` are not after it."""
    first = bisect_right(points, times[0])
    last = bisect_right(points, times[-1], first)
    if first == last:
        return [first] * len(times)
    return list(map(bisect_right, repeat(points), times, repeat(first), repeat(last)))


def sum_span_columns(
    start: Sequence[int], end: Sequence[int], category: bytes | bytearray, edges: Sequence[int]
) -> dict[int, list[int]]:
    """Returns the same as `Shares.columns` for spans that do not overlap at all, by a walk over those in
    view.

    For a few spans a column this is faster than building prefix sums, and nothing is retained.
    """
    first_ns, last_ns = edges[0], edges[-1]
    first = max(bisect_right(start, first_ns) - 1, 0)
    last = bisect_left(start, last_ns)
    inside = category[first:last]
    if not inside:
        return {}
    starts, ends = list(start[first:last]), list(end[first:last])
    # Clip once here instead of at each span.
    starts[0] = max(starts[0], first_ns)
    ends[0] = max(ends[0], first_ns)
    ends[-1] = min(ends[-1], last_ns)
    width = list(map(sub, edges[1:], edges))
    columns = {kind: [0] * len(width) for kind in sorted(set(inside))}
    column, right = 0, edges[1]
    for begin, over, kind in zip(starts, ends, inside, strict=True):
        # Most spans end in the column in which the one before ended.
        if over <= right:
            columns[kind][column] += over - begin
            continue
        values = columns[kind]
        if begin < right:
            values[column] += right - begin
            column += 1
        else:
            column = bisect_right(edges, begin, column + 1) - 1
            values[column] -= begin - edges[column]
        # Fill whole columns, then take back the part of the last one behind the end of the span.
        behind = bisect_left(edges, over, column + 1)
        values[column] += width[column]
        values[column + 1 : behind] = width[column + 1 : behind]
        column, right = behind - 1, edges[behind]
        values[column] -= right - over
    return {column_kind: values for column_kind, values in columns.items() if any(values)}
