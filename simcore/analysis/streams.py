"""What the streams of each stage's ranks are used for, and how much of a step its communication takes."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import compress

from simcore.analysis.accounts import FIRST_EXPOSED, WAIT, op_of
from simcore.program.ops import COMPUTE, RANK_STREAMS, RECEIVING, STREAMS
from simcore.run.accounts import Accounts, merged
from simcore.run.figures import StreamUse
from simcore.timeline import Timeline

# Tables for `translate`: 1 for one stream.
_IS_STREAM = [bytes(one == code for one in range(256)) for code in range(len(STREAMS))]


def stream_use(
    timeline: Timeline, number: int, accounts: Accounts, first_ns: int = 0, last_ns: int | None = None
) -> list[StreamUse]:
    """The streams that a rank of class `number` has, compute first, from first_ns to last_ns (all)."""
    last = timeline.step_time_ns if last_ns is None else last_ns
    intervals = _intervals(timeline, number)
    computed = accounts.computed()
    exposed = _exposed(timeline, number, accounts, first_ns, last)
    found = []
    for name in RANK_STREAMS:
        if name == STREAMS[COMPUTE]:
            found.append(StreamUse(name, computed(last) - computed(first_ns), 0, 0))
            continue
        if name not in intervals:
            continue
        busy = overlapped = 0
        done = first_ns
        # In the queues of dialect astra-sim-1 several collectives of a stream run at once.
        for start, end, blocks in intervals[name]:
            start = start if start > done else done
            end = end if end < last else last
            if end > start:
                busy += end - start
                done = end
                # Nothing computes beside what holds compute back.
                if not blocks:
                    overlapped += computed(end) - computed(start)
        found.append(StreamUse(name, busy, overlapped, exposed.get(name, 0)))
    return found


def mean_use(
    by_class: Sequence[Sequence[StreamUse]], mean: Callable[[Iterable[int]], int]
) -> list[tuple[StreamUse, int]]:
    """(the mean of all ranks, busy ns of the rank that is busy longest) of each stream that there is.

    by_class: streams of each rank class. mean: of a figure of each class, as `Results.mean_of_ranks`.
    """
    named = [{use.stream: use for use in uses} for uses in by_class]
    found = []
    for name in RANK_STREAMS:
        if any(name in uses for uses in named):
            uses = [one.get(name) or StreamUse(name, 0, 0, 0) for one in named]
            busy = [use.busy_ns for use in uses]
            overlapped = mean(use.overlapped_ns or 0 for use in uses)
            exposed = mean(use.exposed_ns for use in uses)
            found.append((StreamUse(name, mean(busy), overlapped, exposed), max(busy)))
    return found


def _intervals(timeline: Timeline, number: int) -> dict[str, list[tuple[int, int, int]]]:
    """(start, end, 1 where it blocks) of all that runs on each stream but compute, ascending."""
    ops, start, end = timeline.columns(number)
    found: dict[str, list[tuple[int, int, int]]] = {}
    for code in range(COMPUTE + 1, len(STREAMS)):
        if code in ops.stream:
            chosen = ops.stream.translate(_IS_STREAM[code])
            columns = zip(start, end, ops.blocking, strict=True)
            found[STREAMS[code]] = list(compress(columns, chosen))
    for arrival in timeline.arrivals(number):
        sent, began, over = timeline.columns(arrival.sender)
        lane = RECEIVING[sent.stream[arrival.op]]
        found.setdefault(lane, []).append((began[arrival.op], over[arrival.op], 0))
    for name in found:
        found[name].sort()
    return found


def _exposed(timeline: Timeline, number: int, accounts: Accounts, first: int, last: int) -> dict[str, int]:
    """Exposed ns by stream."""
    edge, stream = accounts.edge, timeline.stage_program(number).ops.stream
    own = [0] * len(STREAMS)
    found: dict[str, int] = {}
    for account, begin, over, op in zip(accounts.account, edge, edge[1:], accounts.op, strict=False):
        if not FIRST_EXPOSED <= account < WAIT:
            continue
        ns = (over if over < last else last) - (begin if begin > first else first)
        if ns <= 0:
            continue
        if op >= 0:
            own[stream[op]] += ns
            continue
        of, sent = op_of(timeline, number, op)
        name = RECEIVING[timeline.stage_program(of).ops.stream[sent]]
        found[name] = found.get(name, 0) + ns
    return found | {name: ns for name, ns in zip(STREAMS, own, strict=True) if ns}


# A table for `translate`: 1 for all streams but compute.
_IS_COMMUNICATION = bytes(one != COMPUTE for one in range(256))


def communication_ns(timeline: Timeline, number: int, accounts: Accounts) -> tuple[int, int]:
    """(comm_ns, overlapped_ns) of a rank of class `number`.

    comm_ns: time in which at least one of its collectives or transfers, sent or received,
    runs. overlapped_ns: the part of it in which the rank computes.
    """
    spans = merged(_communication(timeline, number))
    comm = sum(end - start for start, end in spans)
    edge, account = accounts.edge, accounts.account
    overlapped = index = 0
    for start, end in spans:
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
