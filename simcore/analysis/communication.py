"""How long a rank communicates, and how much of it lies beside compute."""

from __future__ import annotations

from bisect import bisect_right
from itertools import compress

from simcore.analysis.accounts import FIRST_EXPOSED, Accounts
from simcore.program.ops import COMPUTE
from simcore.timeline import Timeline

# A table for `translate`: 1 for all streams but compute.
_IS_COMMUNICATION = bytes(one != COMPUTE for one in range(256))


def communication_ns(timeline: Timeline, number: int, accounts: Accounts) -> tuple[int, int]:
    """(comm_ns, overlapped_ns) of a rank of class `number`.

    comm_ns: time in which at least one of its collectives or transfers, sent or received,
    runs. overlapped_ns: the part of it in which the rank computes.
    """
    merged = _merged(_communication(timeline, number))
    comm = sum(end - start for start, end in merged)
    edge, account = accounts.edge, accounts.account
    overlapped = index = 0
    for start, end in merged:
        index = bisect_right(edge, start, index, len(account)) - 1
        while index < len(account) and edge[index] < end:
            if account[index] < FIRST_EXPOSED:
                overlapped += min(end, edge[index + 1]) - max(start, edge[index])
            index += 1
        # The next one may begin in the segment in which this one ends.
        index -= 1
    return comm, overlapped


def _communication(timeline: Timeline, number: int) -> list[tuple[int, int]]:
    """(start, end) of every collective and transfer that a rank of a class takes part in."""
    ops, start, end = timeline.columns(number)
    communicates = ops.stream.translate(_IS_COMMUNICATION)
    intervals = [one for one in compress(zip(start, end, strict=True), communicates) if one[1] > one[0]]
    for arrival in timeline.arrivals(number):
        begin, over = timeline.received_times(number, arrival.message)
        if over > begin:
            intervals.append((begin, over))
    intervals.sort()
    return intervals


def _merged(intervals: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The union of sorted intervals, as disjoint ones."""
    merged: list[tuple[int, int]] = []
    if not intervals:
        return merged
    first, last = intervals[0]
    for start, end in intervals:
        if start > last:
            merged.append((first, last))
            first, last = start, end
        elif end > last:
            last = end
    merged.append((first, last))
    return merged
