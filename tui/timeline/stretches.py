"""Which columns of the screen hold a part of some stretches of time."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import repeat


def flag_columns(starts: Sequence[int], ends: Sequence[int], edges: Sequence[int]) -> bytearray:
    """Returns for each column between two of the `edges` (ns) 1 if a part of a stretch is in it.

    The stretches are ascending and disjoint. Those out of view are not visited, and of those in view no more
    than there are columns.
    """
    flags = bytearray(len(edges) - 1)
    first, last = bisect_right(ends, edges[0]), bisect_left(starts, edges[-1])
    if first == last:
        return flags
    if last - first < len(flags):
        for index in range(first, last):
            left = max(bisect_right(edges, starts[index]) - 1, 0)
            right = max(min(bisect_left(edges, ends[index]), len(flags)), left + 1)
            # With more columns than nanoseconds, the columns of one instant have equal flags.
            left = bisect_left(edges, edges[left])
            flags[left:right] = b"\1" * (right - left)
        return flags
    # With more stretches than columns, the stretches of a column are not visited one by one.
    indices = map(bisect_right, repeat(ends), edges[:-1], repeat(first), repeat(last))
    return bytearray(at < last and starts[at] < right for at, right in zip(indices, edges[1:], strict=True))
