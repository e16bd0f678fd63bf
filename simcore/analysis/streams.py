"""What the streams of each stage's ranks are used for, and how much of a step its communication takes."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import compress
from operator import le

from simcore.program.ops import (
    COMPUTE,
    IS_COMMUNICATION,
    IS_STREAM,
    RANK_STREAMS,
    RECEIVING,
    STREAMS,
    OpRun,
)
from simcore.records import NamedTuple
from simcore.run.accounts import Accounts, merged, prefix_sums, until
from simcore.run.figures import StreamUse
from simcore.simulation import Simulation
from simcore.sources.simulated import EXPOSED_KINDS, FIRST_EXPOSED
from simcore.timeline import Timeline
from simcore.units import differences, shifted

# Tables for `translate`: 1 for 0; 1 for exposed communication of the pipeline.
_IS_ZERO = bytes(not flag for flag in range(256))
_IS_TRANSFER = bytes(account == FIRST_EXPOSED + EXPOSED_KINDS.index("pp") for account in range(256))


def stream_use(simulation: Simulation, number: int, accounts: Accounts, joined: JoinedUse) -> list[StreamUse]:
    """The streams that a rank of class `number` has, compute first. joined: of its runs that wait inside."""
    timeline = simulation.timeline
    spans = _spans(timeline, number, joined)
    computed = accounts.computed()
    exposed = _exposed(simulation, number, accounts)
    uses = []
    for name in RANK_STREAMS:
        if name == STREAMS[COMPUTE]:
            uses.append(StreamUse(name, computed(timeline.step_time_ns), 0, 0))
        elif name in spans or name in joined.by_stream:
            busy, overlapped = spans[name].busy(computed) if name in spans else (0, 0)
            in_runs = joined.by_stream.get(name, (0, 0))
            busy, overlapped = busy + in_runs[0], overlapped + in_runs[1]
            uses.append(StreamUse(name, busy, overlapped, exposed.get(name, 0)))
    return uses


class _RunUse(NamedTuple):
    """What a run that waits inside does beside compute, ns from its first start.

    begin, over: what runs beside compute, as disjoint spans. comm_ns: how long these are, without what holds
    compute back meanwhile; computed_ns: how much of them computes. by_stream: (busy, of that beside compute).
    """

    begin: array[int]
    over: array[int]
    comm_ns: int
    computed_ns: int
    by_stream: dict[str, tuple[int, int]]


class JoinedUse:
    """What all runs of a class that wait inside do beside compute: they repeat each other.

    outside: 1 for each op that is in none. comm_ns, computed_ns, by_stream: sums of `_RunUse`.
    """

    def __init__(self, timeline: Timeline, number: int, computed: Callable[[int], int]) -> None:
        self.ops, self.start, self.end = timeline.columns(number)
        self.computed = computed
        self.outside = bytearray(b"\1") * len(self.ops)
        self.comm_ns = self.computed_ns = 0
        self.by_stream: dict[str, tuple[int, int]] = {}
        # By time: when each run begins, and what it does.
        self._begin: list[int] = []
        self._uses: list[_RunUse] = []
        known: dict[object, _RunUse] = {}
        for run in timeline.stage_program(number).packed:
            if run.inner is None or run.inner.left:
                # What nothing waits for in it may run on beside the next.
                continue
            ops = slice(run.first, run.last)
            self.outside[ops] = bytes(run.last - run.first)
            begin = min(self.start[ops])
            times = shifted(self.start[ops], -begin), shifted(self.end[ops], -begin)
            key = run.inner, *(column.tobytes() for column in times)
            use = known.get(key)
            if use is None:
                use = known[key] = self._use_of(run, begin)
            self._begin.append(begin)
            self._uses.append(use)
            self.comm_ns += use.comm_ns
            self.computed_ns += use.computed_ns
            for name, (busy, beside) in use.by_stream.items():
                before = self.by_stream.get(name, (0, 0))
                self.by_stream[name] = before[0] + busy, before[1] + beside

    def _use_of(self, run: OpRun, begun: int) -> _RunUse:
        ops, start, end, computed = self.ops, self.start, self.end, self.computed
        beside: list[tuple[int, int]] = []
        held: list[tuple[int, int]] = []
        by_stream: dict[str, tuple[int, int]] = {}
        for op in range(run.first, run.last):
            if ops.stream[op] == COMPUTE:
                continue
            overlapped = 0
            if ops.blocking[op]:
                held.append((start[op], end[op]))
            else:
                beside.append((start[op], end[op]))
                overlapped = computed(end[op]) - computed(start[op])
            name = STREAMS[ops.stream[op]]
            busy = by_stream.get(name, (0, 0))
            by_stream[name] = busy[0] + end[op] - start[op], busy[1] + overlapped
        running = merged(beside)
        comm = sum(over - begin for begin, over in running)
        comm -= sum(_common(one, other) for one in running for other in held)
        return _RunUse(
            array("q", [begin - begun for begin, _ in running]),
            array("q", [over - begun for _, over in running]),
            comm,
            sum(computed(over) - computed(begin) for begin, over in running),
            by_stream,
        )

    def outside_on(self, streams: bytes) -> Iterator[int]:
        """The ops in no such run that are on these streams. streams: a table for `translate`, 1 for these."""
        on = self.ops.stream.translate(streams)
        return compress(range(len(on)), _both(on, self.outside) if self._begin else on)

    def inside(self, begin: int, over: int) -> Iterator[tuple[int, int]]:
        """What runs beside compute in the runs between two times, as disjoint spans."""
        for number in range(max(bisect_right(self._begin, begin) - 1, 0), len(self._begin)):
            begun, use = self._begin[number], self._uses[number]
            if begun >= over:
                return
            first = bisect_right(use.over, begin - begun)
            for span in zip(use.begin[first:], use.over[first:], strict=True):
                if span[0] + begun >= over:
                    break
                yield max(span[0] + begun, begin), min(span[1] + begun, over)


def _both(one: bytearray, other: bytearray) -> bytes:
    """1 where both columns of flags are."""
    # All of a column in one number.
    both = int.from_bytes(one, "little") & int.from_bytes(other, "little")
    return both.to_bytes(len(one), "little")


def _common(one: tuple[int, int], other: tuple[int, int]) -> int:
    """How long two spans run together, ns."""
    return max(min(one[1], other[1]) - max(one[0], other[0]), 0)


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


def _spans(timeline: Timeline, number: int, joined: JoinedUse) -> dict[str, _Spans]:
    """What runs on each stream but compute, outside of runs that wait inside."""
    ops, start, end = timeline.columns(number)
    beside = ops.blocking.translate(_IS_ZERO)
    spans: dict[str, _Spans] = {}
    for code in range(COMPUTE + 1, len(STREAMS)):
        chosen = list(joined.outside_on(IS_STREAM[code])) if code in ops.stream else []
        if chosen:
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


def _exposed(simulation: Simulation, number: int, accounts: Accounts) -> dict[str, int]:
    """Exposed ns by stream."""
    timeline = simulation.timeline
    edge, stream = accounts.edge, timeline.stage_program(number).ops.stream
    # The sums are known, but for transfers, which are on several streams.
    ns_of = {kind: ns for kind, ns in accounts.exposed_ns().items() if kind in STREAMS}
    chosen = accounts.account.translate(_IS_TRANSFER)
    columns = compress(edge, chosen), compress(edge[1:], chosen), compress(accounts.op, chosen)
    for begin, over, op in zip(*columns, strict=True):
        if op >= 0:
            name = STREAMS[stream[op]]
        else:
            of, sent = simulation.trace.span_of(number, op)
            name = RECEIVING[timeline.stage_program(of).ops.stream[sent]]
        ns_of[name] = ns_of.get(name, 0) + over - begin
    return ns_of


def communication_ns(
    timeline: Timeline, number: int, accounts: Accounts, joined: JoinedUse
) -> tuple[int, int]:
    """(comm_ns, overlapped_ns) of a rank of class `number`. joined: of its runs that wait inside.

    comm_ns: time in which at least one of its collectives or transfers, sent or received,
    runs. overlapped_ns: the part of it in which the rank computes: never beside what holds compute back.
    """
    ops, start, end = timeline.columns(number)
    communicates = ops.stream.translate(IS_COMMUNICATION)
    sent = [(start[op], end[op]) for op in joined.outside_on(IS_COMMUNICATION) if not ops.blocking[op]]
    received = [timeline.received_times(number, arrival.message) for arrival in timeline.arrivals(number)]
    running = merged([*sent, *received])
    # What holds compute back runs one after another.
    held = _both(communicates, ops.blocking)
    starts, sums = prefix_sums(compress(start, held), compress(differences(end, start), held))
    held_until, computed = partial(until, starts, sums), accounts.computed()

    def of(begin: int, over: int) -> tuple[int, int]:
        """(communication that does not hold compute back, how much of it computes)."""
        return over - begin - held_until(over) + held_until(begin), computed(over) - computed(begin)

    comm, overlapped = sums[-1] + joined.comm_ns, joined.computed_ns
    for begin, over in running:
        for ns, factor in ((of(begin, over), 1), *((of(*span), -1) for span in joined.inside(begin, over))):
            comm += factor * ns[0]
            overlapped += factor * ns[1]
    return comm, overlapped
