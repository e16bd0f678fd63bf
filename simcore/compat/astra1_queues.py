"""The engine of dialect astra-sim-1: collectives go chunk by chunk through one queue a dimension.

The rules (ASTRA-sim 1.0): a collective is issued as chunks, each walks its phases. A phase waits in
the queue of its dimension, highest priority first, then in the order of arrival; each dimension
of a rank serves `active_chunks` at a time and is not interrupted. A chunk is issued when the last
member of its group has issued it, and is served when all members have room for it, so ranks that
are late delay those in their groups and nobody else. All that ends at an instant ends before anything
begins there.

One rank of each class is simulated. Equal keys of the order below never share a rank, so what is
served does not depend on how many groups a group class stands for.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush
from typing import Protocol

from simcore.diagnostics import Cancelled
from simcore.engine.actor import NOT_YET
from simcore.engine.event_queue import Times
from simcore.folding import Folding
from simcore.program import Program
from simcore.program.ops import COMPUTE, STREAM_OF_GROUP, Join, Pause, StageProgram
from simcore.records import NamedTuple
from simcore.workload.model import LARGEST

_INSTANTS_BETWEEN_CANCEL_CHECKS = 256


class QueuePhase(Protocol):
    """One phase of a chunk: the id of the queue it waits in, and its ns once it is served."""

    @property
    def dimension(self) -> int: ...
    @property
    def ns(self) -> int: ...


class QueueChunks(Protocol):
    """A collective in the queues: its number of chunks, the phases of each and those of the last."""

    @property
    def chunk_count(self) -> int: ...
    @property
    def each(self) -> Sequence[QueuePhase]: ...
    @property
    def last(self) -> Sequence[QueuePhase]: ...


class _Rank:
    """A rank class while it is simulated: its position in its program. Times are ns."""

    __slots__ = ("end", "finish", "groups", "index", "next_op", "parked", "pass_end_times", "program", "run",
                 "start", "wait")  # fmt: skip

    def __init__(self, index: int, program: StageProgram, groups: dict[int, int]) -> None:
        self.index = index
        self.program = program
        self.groups = groups
        self.start = array("q", (NOT_YET,)) * len(program.ops)
        self.end = array("q", (NOT_YET,)) * len(program.ops)
        self.run = self.wait = self.next_op = 0
        self.parked = NOT_YET
        self.finish = NOT_YET
        # By run at whose beginning a pass ends, when that was.
        self.pass_end_times = dict.fromkeys(program.pass_ends, NOT_YET)


class _Collective:
    """A collective of one group class. missing: member classes that have not issued it."""

    __slots__ = ("chunks", "group", "left", "missing", "op", "priority", "start")

    def __init__(self, group: int, op: int, priority: int, members: int, chunks: QueueChunks) -> None:
        self.group = group
        self.op = op
        self.priority = priority
        self.missing = members
        self.chunks = chunks
        self.left = chunks.chunk_count
        self.start = NOT_YET


class _Waiting(NamedTuple):
    """A phase in a queue. The least is served first; op and chunk make keys unique."""

    rank: int  # the priority, negative
    arrival: int
    op: int
    chunk: int
    phase_index: int
    group: int


# (group class, queue): the phases there wait for the same ranks.
_QueueKey = tuple[int, int]


class DimensionQueues:
    """Simulates one run with a queue of chunks a dimension.

    compute: per rank class ns of each op. price: (group class, op) -> its chunks.
    """

    def __init__(
        self,
        program: Program,
        folding: Folding,
        compute: Sequence[Sequence[int]],
        price: Callable[[int, int], QueueChunks],
        active_chunks: int,
    ) -> None:
        self._folding = folding
        self._compute = compute
        self._price = price
        self._room = active_chunks
        self._ranks = []
        for index, rank_class in enumerate(folding.classes):
            groups = {STREAM_OF_GROUP[kind]: group for kind, group in rank_class.groups.items()}
            self._ranks.append(_Rank(index, program.stages[rank_class.stage], groups))
        self._now = 0
        self._awake: list[tuple[int, int]] = []
        self._served: list[tuple[int, _QueueKey, _Waiting]] = []
        self._collectives: dict[tuple[int, int], _Collective] = {}
        self._waiting: dict[_QueueKey, list[_Waiting]] = {}
        self._serving: dict[tuple[int, int], int] = {}
        self._changed: set[_QueueKey] = set()

    def run(self, cancelled: Callable[[], bool] = lambda: False) -> Times:
        """Runs and returns all times. Raises `Cancelled` when `cancelled()` becomes true, OverflowError from
        2^63 ns on.
        """
        self._awake = [(0, rank.index) for rank in self._ranks]
        instants = 0
        while self._awake or self._served:
            instants += 1
            if not instants % _INSTANTS_BETWEEN_CANCEL_CHECKS and cancelled():
                raise Cancelled
            self._now = min(queue[0][0] for queue in (self._awake, self._served) if queue)
            while self._served and self._served[0][0] == self._now:
                _, queue_key, phase = heappop(self._served)
                self._end_phase(queue_key, phase)
            while self._awake and self._awake[0][0] == self._now:
                self._advance(self._ranks[heappop(self._awake)[1]])
            self._serve()
        for rank in self._ranks:
            if rank.finish == NOT_YET:
                raise RuntimeError(f"class {rank.index} never gets past op {rank.next_op}")
            if rank.finish > LARGEST:
                # The end of an update time, which no column holds.
                raise OverflowError
        return Times(
            tuple(rank.start for rank in self._ranks),
            tuple(rank.end for rank in self._ranks),
            tuple(tuple(rank.pass_end_times[run] for run in rank.program.pass_ends) for rank in self._ranks),
            tuple(rank.finish for rank in self._ranks),
        )

    # -- ranks -----------------------------------------------------------------------

    def _advance(self, rank: _Rank) -> None:
        """Runs a rank on from now until it computes, pauses or waits."""
        # No rows of this dialect wait inside a run, so runs need not be split.
        runs = rank.program.packed
        while rank.run < len(runs):
            run = runs[rank.run]
            if rank.wait == 0 and rank.pass_end_times.get(rank.run) == NOT_YET:
                rank.pass_end_times[rank.run] = self._now
            while rank.wait < len(run.waits):
                wait = run.waits[rank.wait]
                if isinstance(wait, Pause):
                    rank.wait += 1
                    heappush(self._awake, (self._now + wait.ns, rank.index))
                    return
                assert isinstance(wait, Join)
                if rank.end[wait.op] == NOT_YET:
                    rank.parked = wait.op
                    return
                rank.wait += 1
                if rank.end[wait.op] + wait.after > self._now:
                    heappush(self._awake, (rank.end[wait.op] + wait.after, rank.index))
                    return
            rank.next_op = max(rank.next_op, run.first)
            while rank.next_op < run.last:
                op = rank.next_op
                rank.next_op += 1
                if rank.program.ops.stream[op] != COMPUTE:
                    self._issue(rank, op)
                    continue
                rank.start[op] = self._now
                over = rank.end[op] = self._now + self._compute[rank.index][op]
                if over > self._now:
                    heappush(self._awake, (over, rank.index))
                    return
            rank.run += 1
            rank.wait = 0
        rank.finish = self._now

    def _issue(self, rank: _Rank, op: int) -> None:
        """Counts in a member of a collective; with the last one its chunks come to the queues."""
        group = rank.groups[rank.program.ops.stream[op]]
        key = (group, op)
        collective = self._collectives.get(key)
        if collective is None:
            members = len(self._folding.group_classes[group].members)
            priority = rank.program.priority[op]
            collective = _Collective(group, op, priority, members, self._price(group, op))
            self._collectives[key] = collective
        collective.missing -= 1
        if not collective.missing:
            for chunk in range(collective.chunks.chunk_count):
                self._queue(collective, chunk, 0)

    def _finish(self, collective: _Collective) -> None:
        """Ends a collective for all its members, when all its chunks have ended."""
        op = collective.op
        del self._collectives[collective.group, op]
        for member in self._folding.group_classes[collective.group].members:
            rank = self._ranks[member]
            rank.start[op], rank.end[op] = collective.start, self._now
            if rank.parked == op:
                rank.parked = NOT_YET
                heappush(self._awake, (self._now, member))

    # -- queues ----------------------------------------------------------------------

    def _walk(self, collective: _Collective, chunk: int) -> Sequence[QueuePhase]:
        chunks = collective.chunks
        return chunks.last if chunk == chunks.chunk_count - 1 else chunks.each

    def _queue(self, collective: _Collective, chunk: int, phase_index: int) -> None:
        """Puts a chunk into the queue of its next phase."""
        queue_key = (collective.group, self._walk(collective, chunk)[phase_index].dimension)
        phase = _Waiting(-collective.priority, self._now, collective.op, chunk, phase_index, collective.group)
        heappush(self._waiting.setdefault(queue_key, []), phase)
        self._changed.add(queue_key)

    def _end_phase(self, queue_key: _QueueKey, phase: _Waiting) -> None:
        """Ends a phase: there is room in its dimension, and the chunk goes on."""
        group, dimension = queue_key
        for member in self._folding.group_classes[group].members:
            self._serving[member, dimension] -= 1
            for other in self._ranks[member].groups.values():
                if (other, dimension) in self._waiting:
                    self._changed.add((other, dimension))
        collective = self._collectives[group, phase.op]
        if phase.phase_index + 1 < len(self._walk(collective, phase.chunk)):
            self._queue(collective, phase.chunk, phase.phase_index + 1)
            return
        collective.left -= 1
        if not collective.left:
            self._finish(collective)

    def _serve(self) -> None:
        """Begins all that can be served now, the first in the queues first."""
        first = [(self._waiting[queue][0], queue) for queue in self._changed if self._waiting[queue]]
        self._changed.clear()
        heapify(first)
        while first:
            phase, queue = heappop(first)
            group, dimension = queue
            members = self._folding.group_classes[group].members
            if any(self._serving.get((member, dimension), 0) >= self._room for member in members):
                # The others of this group in this queue need the same ranks.
                continue
            waiting = self._waiting[queue]
            heappop(waiting)
            for member in members:
                self._serving[member, dimension] = self._serving.get((member, dimension), 0) + 1
            collective = self._collectives[group, phase.op]
            if collective.start == NOT_YET:
                collective.start = self._now
            over = self._now + self._walk(collective, phase.chunk)[phase.phase_index].ns
            heappush(self._served, (over, queue, phase))
            if waiting:
                heappush(first, (waiting[0], queue))
