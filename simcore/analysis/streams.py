"""What the streams of each stage's ranks are used for, and how much of a step its communication takes."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, compress
from operator import and_, gt, le, sub

from simcore.analysis.accounts import FIRST_EXPOSED, WAIT, op_of
from simcore.program.ops import COMPUTE, IS_COMMUNICATION, IS_STREAM, RANK_STREAMS, RECEIVING, STREAMS
from simcore.records import NamedTuple
from simcore.run.accounts import Accounts, merged
from simcore.run.figures import StreamUse
from simcore.timeline import Timeline

# A table for `translate`: 1 for 0.
_IS_ZERO = bytes(not one for one in range(256))


def stream_use(
    timeline: Timeline, number: int, accounts: Accounts, first_ns: int = 0, last_ns: int | None = None
) -> list[StreamUse]:
    """The streams that a rank of class `number` has, compute first, from first_ns to last_ns (all)."""
    last = timeline.step_time_ns if last_ns is None else last_ns
    spans = _spans(timeline, number)
    computed = accounts.computed()
    exposed = _exposed(timeline, number, accounts, first_ns, last)
    found = []
    for name in RANK_STREAMS:
        if name == STREAMS[COMPUTE]:
            found.append(StreamUse(name, computed(last) - computed(first_ns), 0, 0))
        elif name in spans:
            busy, overlapped = spans[name].within(first_ns, last, computed)
            found.append(StreamUse(name, busy, overlapped, exposed.get(name, 0)))
    return found


class _Spans(NamedTuple):
    """What runs on a stream that is not compute, in the order of time; beside: 1 where compute may go on."""

    start: Sequence[int]
    end: Sequence[int]
    beside: Sequence[int]

    @classmethod
    def ordered(cls, start: Sequence[int], end: Sequence[int], beside: Sequence[int]) -> _Spans:
        """These spans, which may be in another order."""
        if all(map(le, start, start[1:])):
            return cls(start, end, beside)
        return cls(*zip(*sorted(zip(start, end, beside, strict=True)), strict=True))

    def within(self, first: int, last: int, computed: Callable[[int], int]) -> tuple[int, int]:
        """(ns in which at least one runs, how much of it the rank computes) from `first` to `last`.

        computed: see `Accounts.computed`. Nothing computes beside what holds compute back.
        """
        start, end, beside = self
        overlapped = 0
        if start and first <= start[0] and end[-1] <= last and all(map(le, end, start[1:])):
            # One after another, as on all streams but those of ASTRA-sim 1.0's queues.
            if any(beside):
                for one, over in zip(compress(start, beside), compress(end, beside), strict=True):
                    overlapped += computed(over) - computed(one)
            return sum(end) - sum(start), overlapped
        busy, done = 0, first
        for one, over, goes_on in zip(start, end, beside, strict=True):
            one, over = max(one, done), min(over, last)
            if over > one:
                busy += over - one
                done = over
                if goes_on:
                    overlapped += computed(over) - computed(one)
        return busy, overlapped


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


def _spans(timeline: Timeline, number: int) -> dict[str, _Spans]:
    """What runs on each stream but compute."""
    ops, begun, ended = timeline.columns(number)
    # Lists: each stream goes over all of them, and an array makes its numbers anew each time.
    start, end, beside = begun.tolist(), ended.tolist(), ops.blocking.translate(_IS_ZERO)
    found: dict[str, _Spans] = {}
    for code in range(COMPUTE + 1, len(STREAMS)):
        if code in ops.stream:
            chosen = ops.stream.translate(IS_STREAM[code])
            columns = [list(compress(column, chosen)) for column in (start, end, beside)]
            found[STREAMS[code]] = _Spans.ordered(*columns)
    received: dict[str, list[tuple[int, int]]] = {}
    for arrival in timeline.arrivals(number):
        sent, began, over = timeline.columns(arrival.sender)
        lane = RECEIVING[sent.stream[arrival.op]]
        received.setdefault(lane, []).append((began[arrival.op], over[arrival.op]))
    for lane, times in received.items():
        first, last = zip(*times, strict=True)
        found[lane] = _Spans.ordered(first, last, bytes([1]) * len(times))
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


def communication_ns(timeline: Timeline, number: int, accounts: Accounts) -> tuple[int, int]:
    """(comm_ns, overlapped_ns) of a rank of class `number`.

    comm_ns: time in which at least one of its collectives or transfers, sent or received,
    runs. overlapped_ns: the part of it in which the rank computes: never beside what holds compute back.
    """
    ops, begun, ended = timeline.columns(number)
    start, end = begun.tolist(), ended.tolist()
    communicates = ops.stream.translate(IS_COMMUNICATION)
    beside = bytes(map(and_, communicates, ops.blocking.translate(_IS_ZERO)))
    held = bytes(map(gt, communicates, beside))
    received = [timeline.received_times(number, one.message) for one in timeline.arrivals(number)]
    running = merged([*zip(compress(start, beside), compress(end, beside), strict=True), *received])
    # What holds compute back runs one after another.
    begins, overs = list(compress(start, held)), list(compress(end, held))
    lengths = list(accumulate(map(sub, overs, begins), initial=0))

    def held_until(time_ns: int) -> int:
        place = bisect_right(begins, time_ns)
        return lengths[place] - max(0, overs[place - 1] - time_ns) if place else 0

    computed = accounts.computed()
    comm = lengths[-1] + sum(end - begin - held_until(end) + held_until(begin) for begin, end in running)
    return comm, sum(computed(end) - computed(begin) for begin, end in running)
