"""The spans of a simulated run, for formats that write them down.

Spans that overlap get rows: in a thread of a trace they lie beside or inside each other, never across.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import islice
from typing import TypeVar

from simcore.collectives import WITH_COPIES
from simcore.diagnostics import printable
from simcore.program.ops import COMPUTE, PHASES, RECEIVING, STREAMS, CollectiveCost, TransferCost
from simcore.records import NamedTuple
from simcore.simulation import Simulation


def disjoint_rows(spans: Iterable[tuple[int, int]]) -> list[int]:
    """The lowest free row for each of the spans (start, end), so that no row has two at a time.

    spans: ascending by start.
    """
    rows: list[int] = []
    free: list[int] = []
    taken: list[tuple[int, int]] = []
    for start, end in spans:
        while taken and taken[0][0] <= start:
            heappush(free, heappop(taken)[1])
        row = heappop(free) if free else len(taken)
        heappush(taken, (end, row))
        rows.append(row)
    return rows


def nested_rows(spans: Iterable[tuple[int, int]]) -> list[int]:
    """The first row for each of the spans (start, end) in which it lies beside or wholly inside others.

    spans: ascending by start, of equal starts the longest first.
    """
    rows: list[int] = []
    # Per row the ends of the spans that are open, the innermost last.
    opened: list[list[int]] = []
    for start, end in spans:
        row = 0
        for ends in opened:
            while ends and ends[-1] <= start:
                ends.pop()
            if not ends or end <= ends[-1]:
                break
            row += 1
        else:
            opened.append([])
        opened[row].append(end)
        rows.append(row)
    return rows


_TEXTS_A_PIECE = 1024
_MOST_KNOWN = 10_000
Made = TypeVar("Made")


def in_pieces(texts: Iterable[str]) -> Iterator[tuple[bytes, int]]:
    """Texts as bytes, many at a time, with how many they are."""
    left = iter(texts)
    while batch := list(islice(left, _TEXTS_A_PIECE)):
        yield "".join(batch).encode(), len(batch)


def made_once(keys: Iterable[Hashable], make: Callable[[int], Made]) -> Iterator[Made]:
    """What `make` gives for each place; asked once of places with equal keys, as long as these are few."""
    known: dict[Hashable, Made] = {}
    for place, key in enumerate(keys):
        made = known.get(key)
        if made is None:
            if len(known) >= _MOST_KNOWN:
                known.clear()
            made = known[key] = make(place)
        yield made


class Fact(NamedTuple):
    """What is equal for all runs of a row's op.

    kind: `compute`, a collective's name, `send` or `receive`. layer: the row's name, made safe and
    cut; "" for a pipeline transfer. row: of the file from 0, line: from 1; -1 for a pipeline
    transfer. bytes: of the whole buffer, -1 of compute. group: kind of the collective's group,
    members: its size; "" and 0 where there is none. blocking: 1 or 0, -1 of what is no collective.
    other_stage: where a transfer goes or comes from, -1 of what is none.
    """

    kind: str
    layer: str
    phase: str
    row: int
    line: int
    bytes: int
    collective: str
    group: str
    members: int
    blocking: int
    other_stage: int


class Received(NamedTuple):
    """A transfer that arrives, times in ns. stream: of this rank; sent_on: of the sender.

    source: the stage it comes from. consumer: the first compute behind it that takes time, an index
    into this class's ops; -1 if there is none before the rank waits again.
    """

    message: int
    fact: Fact
    stream: str
    sent_on: str
    start: int
    end: int
    microbatch: int
    source: int
    consumer: int


class ClassSpans:
    """The spans of rank class `number`, in issue order, then what it receives."""

    def __init__(self, simulation: Simulation, number: int) -> None:
        self.simulation = simulation
        self.timeline = simulation.timeline
        self.number = number
        self.rank_class = self.timeline.classes[number]
        self.ops, self.start, self.end = self.timeline.columns(number)

    def fact(self, op: int) -> Fact:
        """The facts of op `op` of the class. Made anew each time: a class may have millions."""
        ops = self.ops
        return self._fact(ops.cost[op], ops.row[op], ops.phase[op], ops.blocking[op])

    def kinds(self) -> Iterator[tuple[int, int, int, int]]:
        """What the facts of each op hang on."""
        ops = self.ops
        return zip(ops.cost, ops.row, ops.phase, ops.blocking, strict=True)

    def _fact(self, cost: int, row: int, phase: int, blocking: int) -> Fact:
        workload = self.simulation.workload
        layer = printable(workload.name[row]) if row >= 0 else ""
        line = workload.line[row] if row >= 0 else -1
        what = self.timeline.program.costs[cost]
        name = PHASES[phase]
        if isinstance(what, CollectiveCost):
            members = self.simulation.layout.group_size(what.group)
            kind = WITH_COPIES[what.collective]
            if what.ns:
                # A copy to the host is of one rank.
                return Fact(kind, layer, name, row, line, what.bytes, "", "", 0, -1, -1)
            return Fact(
                kind, layer, name, row, line, what.bytes, what.collective, what.group, members, blocking, -1
            )
        if isinstance(what, TransferCost):
            stage = self.rank_class.stage + what.step
            return Fact("send", layer, name, row, line, what.bytes, "SENDRECV", "", 0, -1, stage)
        return Fact("compute", layer, name, row, line, -1, "", "", 0, -1, -1)

    def received(self) -> Iterator[Received]:
        """What the class receives, in the order in which it waits for it."""
        timeline = self.timeline
        facts: dict[tuple[int, int, int], Fact] = {}
        for message, sender, op, source, first, last in timeline.arrivals(self.number):
            sent, start, end = timeline.columns(sender)
            key = (sent.cost[op], sent.row[op], sent.phase[op])
            fact = facts.get(key)
            if fact is None:
                made = self._fact(*key, 0)
                fact = facts[key] = made._replace(kind="receive", other_stage=source)
            sent_on = sent.stream[op]
            consumer = self._first_that_takes_time(first, last)
            yield Received(
                message, fact, RECEIVING[sent_on], STREAMS[sent_on], start[op], end[op],
                sent.microbatch[op], source, consumer,
            )  # fmt: skip

    def _first_that_takes_time(self, first: int, last: int) -> int:
        stream, start, end = self.ops.stream, self.start, self.end
        for op in range(first, last):
            if stream[op] == COMPUTE and end[op] > start[op]:
                return op
        return -1

    def rows(self) -> Sequence[int] | None:
        """The row of each op within its stream, from 0; None where one row holds every stream.

        Only the queues of dialect astra-sim-1 serve several collectives of a stream at a time.
        """
        if not self.timeline.program.queued:
            return None
        rows = array("i", bytes(4 * len(self.ops)))
        for lane in range(len(STREAMS)):
            ops = [op for op, stream in enumerate(self.ops.stream) if stream == lane]
            ops.sort(key=lambda op: (self.start[op], self.end[op], op))
            taken = disjoint_rows([(self.start[op], self.end[op]) for op in ops])
            for op, row in zip(ops, taken, strict=True):
                rows[op] = row
        return rows
