"""What the streams of each stage's ranks are used for, and how much of a step its communication takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import compress
from operator import and_, gt, le

from simcore.analysis.accounts import EXPOSED_KINDS, FIRST_EXPOSED, op_of
from simcore.program.ops import COMPUTE, IS_COMMUNICATION, IS_STREAM, RANK_STREAMS, RECEIVING, STREAMS
from simcore.records import NamedTuple
from simcore.run.accounts import Accounts, merged, prefix_sums, until
from simcore.run.figures import StreamUse
from simcore.timeline import Timeline
from simcore.units import differences

# Tables for `translate`: 1 for 0; 1 for exposed communication of the pipeline.
_IS_ZERO = bytes(not flag for flag in range(256))
_IS_TRANSFER = bytes(account == FIRST_EXPOSED + EXPOSED_KINDS.index("pp") for account in range(256))


def stream_use(timeline: Timeline, number: int, accounts: Accounts) -> list[StreamUse]:
    """The streams that a rank of class `number` has, compute first."""
    spans = _spans(timeline, number)
    computed = accounts.computed()
    exposed = _exposed(timeline, number, accounts)
    uses = []
    for name in RANK_STREAMS:
        if name == STREAMS[COMPUTE]:
            uses.append(StreamUse(name, computed(timeline.step_time_ns), 0, 0))
        elif name in spans:
            busy, overlapped = spans[name].busy(computed)
            uses.append(StreamUse(name, busy, overlapped, exposed.get(name, 0)))
    return uses


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

    def busy(self, computed: Callable[[int], int]) -> tuple[int, int]:
        """(ns in which at least one runs, how much of it the rank computes).

        computed: see `Accounts.computed`. Nothing computes beside what holds compute back.
        """
        start, end, beside = self
        overlapped = 0
        if all(map(le, end, start[1:])):
            # One after another, as on all streams but those of ASTRA-sim 1.0's queues.
            if any(beside):
                for begin, over in zip(compress(start, beside), compress(end, beside), strict=True):
                    overlapped += computed(over) - computed(begin)
            return sum(end) - sum(start), overlapped
        busy = done = 0
        for begin, over, goes_on in zip(start, end, beside, strict=True):
            begin = max(begin, done)
            if over > begin:
                busy += over - begin
                done = over
                if goes_on:
                    overlapped += computed(over) - computed(begin)
        return busy, overlapped


def mean_use(
    by_class: Sequence[Sequence[StreamUse]], mean: Callable[[Iterable[int]], int]
) -> list[tuple[StreamUse, int]]:
    """(the mean of all ranks, busy ns of the rank that is busy longest) of each stream that there is.

    by_class: streams of each rank class. mean: of a figure of each class, as `Results.mean_of_ranks`.
    """
    named = [{use.stream: use for use in uses} for uses in by_class]
    means = []
    for name in RANK_STREAMS:
        if any(name in uses for uses in named):
            uses = [named_uses.get(name) or StreamUse(name, 0, 0, 0) for named_uses in named]
            busy = [use.busy_ns for use in uses]
            overlapped = mean(use.overlapped_ns or 0 for use in uses)
            exposed = mean(use.exposed_ns for use in uses)
            means.append((StreamUse(name, mean(busy), overlapped, exposed), max(busy)))
    return means


def _spans(timeline: Timeline, number: int) -> dict[str, _Spans]:
    """What runs on each stream but compute."""
    ops, start, end = timeline.columns(number)
    beside = ops.blocking.translate(_IS_ZERO)
    spans: dict[str, _Spans] = {}
    for code in range(COMPUTE + 1, len(STREAMS)):
        if code in ops.stream:
            chosen = list(compress(range(len(ops)), ops.stream.translate(IS_STREAM[code])))
            columns = [list(map(column.__getitem__, chosen)) for column in (start, end, beside)]
            spans[STREAMS[code]] = _Spans.ordered(*columns)
    received: dict[str, list[tuple[int, int]]] = {}
    for arrival in timeline.arrivals(number):
        sent, began, over = timeline.columns(arrival.sender)
        lane = RECEIVING[sent.stream[arrival.op]]
        received.setdefault(lane, []).append((began[arrival.op], over[arrival.op]))
    for lane, times in received.items():
        first, last = zip(*times, strict=True)
        spans[lane] = _Spans.ordered(first, last, bytes([1]) * len(times))
    return spans


def _exposed(timeline: Timeline, number: int, accounts: Accounts) -> dict[str, int]:
    """Exposed ns by stream."""
    edge, stream = accounts.edge, timeline.stage_program(number).ops.stream
    # The sums are known, but for transfers, which are on several streams.
    ns_of = {kind: ns for kind, ns in accounts.exposed_ns().items() if kind in STREAMS}
    chosen = accounts.account.translate(_IS_TRANSFER)
    columns = compress(edge, chosen), compress(edge[1:], chosen), compress(accounts.op, chosen)
    for begin, over, op in zip(*columns, strict=True):
        if op >= 0:
            name = STREAMS[stream[op]]
        else:
            of, sent = op_of(timeline, number, op)
            name = RECEIVING[timeline.stage_program(of).ops.stream[sent]]
        ns_of[name] = ns_of.get(name, 0) + over - begin
    return ns_of


def communication_ns(timeline: Timeline, number: int, accounts: Accounts) -> tuple[int, int]:
    """(comm_ns, overlapped_ns) of a rank of class `number`.

    comm_ns: time in which at least one of its collectives or transfers, sent or received,
    runs. overlapped_ns: the part of it in which the rank computes: never beside what holds compute back.
    """
    ops, start, end = timeline.columns(number)
    communicates = ops.stream.translate(IS_COMMUNICATION)
    beside = bytes(map(and_, communicates, ops.blocking.translate(_IS_ZERO)))
    received = [timeline.received_times(number, arrival.message) for arrival in timeline.arrivals(number)]
    running = merged([*zip(compress(start, beside), compress(end, beside), strict=True), *received])
    # What holds compute back runs one after another.
    held = bytes(map(gt, communicates, beside))
    starts, sums = prefix_sums(compress(start, held), compress(differences(end, start), held))
    held_until, computed = partial(until, starts, sums), accounts.computed()
    comm = sums[-1] + sum(end - begin - held_until(end) + held_until(begin) for begin, end in running)
    return comm, sum(computed(end) - computed(begin) for begin, end in running)
