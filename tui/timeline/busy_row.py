"""How much of each stretch of the step is compute: the sums behind the busy row, of any number of lanes."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Sequence
from itertools import accumulate, compress, repeat
from operator import add, sub

from simcore.run.lanes import Spans


def filled_ns(spans: Spans, categories: Collection[int], edges: Sequence[int]) -> list[int]:
    """ns between each two neighbouring `edges` in spans of some categories, each category by itself.

    Spans ascend by start and do not overlap within a category. What `Shares` gives, without keeping
    what it needs: the busy row asks a thousand lanes once each, and a lane may have thousands of spans.
    """
    sums: list[int] = [0] * (len(edges) - 1)
    for category in set(spans.category).intersection(categories):
        mask = bytearray(256)
        mask[category] = 1
        picked = spans.category.translate(mask)
        starts = list(compress(spans.start, picked))
        lengths = map(sub, compress(spans.end, picked), starts)
        # before[i]: ns in the spans before span i.
        before = list(accumulate(lengths, initial=0))
        # A span for the time left of all spans: it fills nothing.
        starts.insert(0, edges[0])
        before.insert(0, 0)
        after = list(map(bisect_right, repeat(starts), edges, repeat(1)))
        last = [index - 1 for index in after]
        inside = map(sub, edges, map(starts.__getitem__, last))
        so_far = map(add, map(before.__getitem__, last), inside)
        until = list(map(min, so_far, map(before.__getitem__, after)))
        sums = list(map(add, sums, map(sub, until[1:], until)))
    return sums
