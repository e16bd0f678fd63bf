"""What each op had to wait for, and what it holds back in turn.

Public names (all from `Results`):
  results.dependencies.causes(number, op)           what held an op back: it ends when the op starts
  results.dependencies.effects(number, op)          what starts when an op ends, because of it
  results.dependencies.segment_causes(number, segment), segment_effects(...)
                                                    the same of a segment of the accounts
  results.critical_path                             `CriticalPath`: segments that cover the step
  results.slack(number)                             ns by which each op of a class may be longer, or None
  results.what_if(progress, cancelled)              step times with one thing cheaper

An op is (rank class, index into its ops). A class stands for many ranks; `rank` says which of them
is meant: the one that the rank asked about meets in its group or hands on to.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import NamedTuple

from simcore.analysis.accounts import IDLE_OP, Accounts, received_op
from simcore.analysis.program_index import NONE, ProgramIndex
from simcore.analysis.reasons import (
    BEFORE,
    BUSY,
    JOINED,
    PAUSED,
    QUEUED,
    RECEIVED,
    SEEN,
    reason_words,
)
from simcore.program.ops import COMPUTE, KIND_OF_STREAM, TO_NEXT, Join, Pause, Receive
from simcore.simulation import Simulation


class Cause(NamedTuple):
    """What ended at the instant at which something else could start.

    why: of simcore.analysis.reasons. op: IDLE_OP for a state change (PAUSED). start_ns, end_ns: of the
    part that was waited for. run, wait: for a state change, the place in the class's program
    before it. member: the class that came late to a collective because of this, NONE where the
    waiting op's own class did.
    """

    why: int
    number: int
    op: int
    start_ns: int
    end_ns: int
    run: int = NONE
    wait: int = NONE
    member: int = NONE


@dataclass(frozen=True, slots=True)
class Dependency:
    """An op that another waits for, or that waits for another, with the reason in words.

    number: its rank class. rank: which of its ranks. op: IDLE_OP for a state change.
    """

    number: int
    op: int
    rank: int
    reason: str
    start_ns: int
    end_ns: int


class Dependencies:
    """Who waits for whom in a finished run, found when it is asked for."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.timeline = simulation.timeline
        self.index = ProgramIndex(self.timeline)
        self._by_start: dict[int, tuple[list[int], list[int]]] = {}
        self._issued: dict[int, array[int]] = {}
        self._queues_of_group: dict[int, set[int]] = {}

    # -- for screens -----------------------------------------------------------------

    def causes(self, number: int, op: int, rank: int | None = None) -> list[Dependency]:
        """What ended when `op` of class `number` started and held it back until then.

        The binding one first: compute before it on its rank, then what its rank waited for, its
        stream, then other members of its collective. Nothing for what starts with the step.
        rank: which rank of the class, the first one by default.
        """
        rank = self.timeline.classes[number].ranks.first if rank is None else rank
        return [self._dependency(cause, number, op, rank) for cause in self.op_causes(number, op)]

    def effects(self, number: int, op: int, rank: int | None = None) -> list[Dependency]:
        """What started when `op` of class `number` ended and could not start before."""
        rank = self.timeline.classes[number].ranks.first if rank is None else rank
        found = []
        times = self.timeline.times
        for other, waiting in self._successors(number, op):
            for cause in self.op_causes(other, waiting):
                if (cause.number, cause.op) == (number, op):
                    of_other = self._rank_behind(cause, other, waiting, rank)
                    reason = reason_words(self.simulation, cause, other, waiting, rank)
                    start, end = times.start[other][waiting], times.end[other][waiting]
                    found.append(Dependency(other, waiting, of_other, reason, start, end))
                    break
        return found

    def segment_causes(
        self, number: int, accounts: Accounts, segment: int, rank: int | None = None
    ) -> list[Dependency]:
        """What a rank of class `number` waits for in a segment of its accounts.

        While it computes: what held the op back. While it waits: what it waits for first, then what
        held that back. Nothing while it is idle.
        """
        rank = self.timeline.classes[number].ranks.first if rank is None else rank
        op = accounts.op[segment]
        if op == IDLE_OP:
            return []
        if op < 0:
            sender, sent = self.timeline.received(number, received_op(op))
            of_sender = self.simulation.layout.neighbour(rank, self.timeline.classes[sender].stage)
            first = self._cause(RECEIVED, sender, sent)
            return [self._dependency(first, number, op, rank), *self.causes(sender, sent, of_sender)]
        if self.timeline.stage_program(number).ops.stream[op] == COMPUTE:
            return self.causes(number, op, rank)
        return [
            self._dependency(self._cause(JOINED, number, op), number, op, rank),
            *self.causes(number, op, rank),
        ]

    def segment_effects(
        self, number: int, accounts: Accounts, segment: int, rank: int | None = None
    ) -> list[Dependency]:
        """What a rank of class `number` does when a segment of its accounts is over."""
        rank = self.timeline.classes[number].ranks.first if rank is None else rank
        op = accounts.op[segment]
        if op == IDLE_OP:
            return []
        if op < 0:
            sender, sent = self.timeline.received(number, received_op(op))
            of_sender = self.simulation.layout.neighbour(rank, self.timeline.classes[sender].stage)
            return [one for one in self.effects(sender, sent, of_sender) if one.number == number]
        return self.effects(number, op, rank)

    def _dependency(self, cause: Cause, number: int, op: int, rank: int) -> Dependency:
        late, other = self.ranks_of(cause, number, op, rank)
        reason = reason_words(self.simulation, cause, number, op, late)
        return Dependency(cause.number, cause.op, other, reason, cause.start_ns, cause.end_ns)

    def ranks_of(self, cause: Cause, number: int, op: int, rank: int) -> tuple[int, int]:
        """Which ranks a cause of `op` is about, when `op` is that of `rank`, of class `number`.

        (the member that came late to the collective `op`, or `rank` itself; the rank of the cause).
        """
        late = rank
        if cause.member != NONE:
            late = self._in_group(rank, number, op, cause.member)
        if cause.why == QUEUED:
            return late, self._in_group(rank, number, op, cause.number)
        if cause.why == RECEIVED:
            stage = self.timeline.classes[cause.number].stage
            return late, self.simulation.layout.neighbour(late, stage)
        return late, late

    def _rank_behind(self, cause: Cause, number: int, op: int, rank: int) -> int:
        """The rank of class `number` whose `op` waits for a cause that is of `rank`: `ranks_of` backwards."""
        if cause.why == RECEIVED:
            # The member that received; its group is that of the rank that waits.
            met = number if cause.member == NONE else cause.member
            rank = self.simulation.layout.neighbour(rank, self.timeline.classes[met].stage)
        met_op = cause.member != NONE or cause.why == QUEUED
        return self._in_group(rank, number, op, number) if met_op else rank

    def _in_group(self, rank: int, number: int, op: int, wanted: int) -> int:
        """The first rank of class `wanted` in the group of `rank` that runs the collective `op` of `number`.

        A rank of the class itself stands for itself.
        """
        ranks = self.timeline.classes[wanted].ranks
        if rank in ranks:
            return rank
        kind = KIND_OF_STREAM[self.timeline.stage_program(number).ops.stream[op]]
        return next(one for one in self.simulation.layout.group_of(kind, rank) if one in ranks)

    # -- the rules of the engine, read backwards -------------------------------------

    def op_causes(self, number: int, op: int) -> list[Cause]:
        """What ended when an op started and held it back, the binding one first."""
        ops, start, _ = self.timeline.columns(number)
        stream, now = ops.stream[op], start[op]
        found = self._before(number, op, now)
        if stream == COMPUTE:
            return found
        if stream >= TO_NEXT or not self.timeline.program.queued:
            found += self._lane(number, op, now)
        if stream < TO_NEXT:
            members = self.index.members(number, op)
            for member, its_op in members:
                if member != number:
                    found += [one._replace(member=member) for one in self._before(member, its_op, now)]
            if not found and now and self.timeline.program.queued:
                found.append(self._served_first(members, now))
        # What compute waited for may also have kept the stream busy: it is said once.
        said: dict[tuple[int, int], Cause] = {}
        for cause in found:
            said.setdefault((cause.number, cause.op), cause)
        return list(said.values())

    def first_cause(self, number: int, op: int) -> Cause | None:
        """The first of `op_causes`, None without any."""
        ops, start, end = self.timeline.columns(number)
        before = op - 1
        # By far the most: nothing comes before what compute did just before.
        right_behind = before >= 0 and end[before] == start[op] and not self.timeline.program.queued
        if right_behind and (ops.stream[before] == COMPUTE or ops.blocking[before]):
            return Cause(BEFORE, number, before, start[before], end[before])
        return next(iter(self.op_causes(number, op)), None)

    def end_causes(self, number: int) -> list[Cause]:
        """What ended when the step of class `number` ended: what its last join waited for."""
        stage = self.timeline.stage_program(number)
        last = len(stage.runs) - 1
        now = self.timeline.times.finish[number]
        return self.held_by(number, last, len(stage.runs[last].waits), len(stage.ops), now)

    def _cause(self, why: int, number: int, op: int) -> Cause:
        times = self.timeline.times
        return Cause(why, number, op, times.start[number][op], times.end[number][op])

    def _before(self, number: int, op: int, now: int) -> list[Cause]:
        """What held the rank's compute stream until it issued `op`, if it issued it at `now`."""
        index = self.index.of(number)
        if self.timeline.program.queued and self._issue_times(number)[op] != now:
            return []
        run = index.run_of(op)
        return self.held_by(number, run, len(index.program.runs[run].waits), op, now)

    def _issue_times(self, number: int) -> array[int]:
        """When a class issued each of its ops, ns: known by itself where no state changes let time pass."""
        found = self._issued.get(number)
        if found is None:
            ops, _, end = self.timeline.columns(number)
            found = array("q")
            now = 0
            for run in self.timeline.stage_program(number).runs:
                for wait in run.waits:
                    if isinstance(wait, Pause):
                        now += wait.ns
                    elif isinstance(wait, Join):
                        now = max(now, end[wait.op] + wait.after)
                for op in range(run.first, run.last):
                    found.append(now)
                    if ops.stream[op] == COMPUTE:
                        now = end[op]
            self._issued[number] = found
        return found

    def _lane(self, number: int, op: int, now: int) -> list[Cause]:
        """What ran before on the stream or channel of `op`, if it ended at `now`."""
        before = self.index.of(number).before[op]
        if before != NONE and self.timeline.times.end[number][before] == now:
            return [self._cause(BUSY, number, before)]
        return []

    def held_by(self, number: int, run: int, wait: int, op: int, now: int) -> list[Cause]:
        """What ended at `now` and held the compute stream of a class until it came to a place.

        The place is before wait `wait` of run `run`, or, when that is the number of its waits, before
        `op`. The stream's own work first, then its waits in their order.
        """
        stage, end = self.timeline.stage_program(number), self.timeline.times.end[number]
        stream, blocking = stage.ops.stream, stage.ops.blocking
        found: list[Cause] = []
        while True:
            waits = stage.runs[run].waits
            if wait == len(waits):
                for before in range(op - 1, stage.runs[run].first - 1, -1):
                    if stream[before] == COMPUTE or blocking[before]:
                        if end[before] == now:
                            found.append(self._cause(BEFORE, number, before))
                        return found[::-1]
            while wait:
                wait -= 1
                one = waits[wait]
                if isinstance(one, Pause):
                    # Where a later wait ended at `now`, when the pause ended is of no account.
                    if not found:
                        found.append(Cause(PAUSED, number, IDLE_OP, now - one.ns, now, run, wait))
                    return found[::-1]
                if isinstance(one, Receive):
                    sender, sent = self.timeline.received(number, one.message)
                    if self.timeline.times.end[sender][sent] == now:
                        found.append(self._cause(RECEIVED, sender, sent))
                elif end[one.op] + one.after == now:
                    found.append(self._joined(number, one))
            if not run:
                return found[::-1]
            run -= 1
            wait, op = len(stage.runs[run].waits), stage.runs[run].last

    def _joined(self, number: int, wait: Join) -> Cause:
        """A join that was over at `now`: at the op's end, or some ns later, when it was seen."""
        cause = self._cause(JOINED, number, wait.op)
        return cause if not wait.after else cause._replace(why=SEEN, end_ns=cause.end_ns + wait.after)

    def _served_first(self, members: list[tuple[int, int]], now: int) -> Cause:
        """In dialect astra-sim-1: a collective of a member that ran in one of this one's queues meanwhile.

        The latest that started before; one did, or this one would have been served.
        """
        found: Cause | None = None
        queues = self._queues(*members[0])
        for member, _ in members:
            starts, ops = self._collectives_by_start(member)
            end = self.timeline.times.end[member]
            for place in range(bisect_left(starts, now) - 1, -1, -1):
                if found is not None and starts[place] <= found.start_ns:
                    break
                if end[ops[place]] >= now and queues & self._queues(member, ops[place]):
                    found = Cause(QUEUED, member, ops[place], starts[place], now)
                    break
        if found is None:
            raise RuntimeError(f"class {members[0][0]} op {members[0][1]} waited for nothing")
        return found

    def _queues(self, number: int, op: int) -> set[int]:
        """The queues that a collective of class `number` goes through."""
        stream = self.timeline.stage_program(number).ops.stream[op]
        of_group = self.timeline.classes[number].groups[KIND_OF_STREAM[stream]]
        if of_group not in self._queues_of_group:
            from simcore.queue_pricing import queue_of

            folding, dims = self.timeline.folding, len(self.simulation.cluster.dims)
            group = folding.group_classes[of_group]
            self._queues_of_group[of_group] = {
                queue_of(folding, dims, group, crossing.dimension) for crossing in group.shape.crossings
            }
        return self._queues_of_group[of_group]

    def _collectives_by_start(self, number: int) -> tuple[list[int], list[int]]:
        found = self._by_start.get(number)
        if found is None:
            ops, start, _ = self.timeline.columns(number)
            order = sorted((start[op], op) for op, stream in enumerate(ops.stream) if stream != COMPUTE)
            found = self._by_start[number] = ([time for time, _ in order], [op for _, op in order])
        return found

    # -- and forwards ----------------------------------------------------------------

    def _successors(self, number: int, op: int) -> list[tuple[int, int]]:
        """(class, op) of what comes directly behind an op and starts when it ends, each once."""
        timeline, index = self.timeline, self.index.of(number)
        ops, start, end = timeline.columns(number)
        found: list[tuple[int, int]] = []
        if ops.stream[op] == COMPUTE or ops.blocking[op]:
            found += self._issued_from(number, op + 1, end[op])
        for run, place in index.joins.get(op, ()):
            wait = index.program.runs[run].waits[place]
            assert isinstance(wait, Join)
            found += self._issued_from(number, index.program.runs[run].first, end[op] + wait.after)
        if not timeline.program.queued and ops.stream[op] != COMPUTE and index.after[op] != NONE:
            found += self._with_members(number, [index.after[op]])
        if ops.message[op] >= 0:
            receiver = self.index.receiver(number, op)
            other = self.index.of(receiver)
            if ops.message[op] in other.receives:
                run, _ = other.receives[ops.message[op]]
                found += self._issued_from(receiver, other.program.runs[run].first, end[op])
        if timeline.program.queued and ops.stream[op] != COMPUTE:
            starts, collectives = self._collectives_by_start(number)
            first, last = bisect_right(starts, start[op]), bisect_right(starts, end[op])
            found += self._with_members(number, collectives[first:last])
        return list(dict.fromkeys(found))

    def _issued_from(self, number: int, first: int, now: int) -> list[tuple[int, int]]:
        """The ops from `first` on that start at `now`, up to the next that compute waits for."""
        ops, start, _ = self.timeline.columns(number)
        found = []
        for op in range(first, len(ops)):
            if start[op] == now:
                found.append(op)
            if ops.stream[op] == COMPUTE or ops.blocking[op]:
                break
        return self._with_members(number, found)

    def _with_members(self, number: int, found: list[int]) -> list[tuple[int, int]]:
        """(class, op) of ops of a class, collectives with their other members."""
        stream = self.timeline.stage_program(number).ops.stream
        return [
            pair
            for op in found
            for pair in (self.index.members(number, op) if COMPUTE < stream[op] < TO_NEXT else [(number, op)])
        ]
