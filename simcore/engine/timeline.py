"""A finished run: which op ran when, on which rank and stream."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from functools import cached_property

from simcore.engine import Times
from simcore.folding import Folding, RankClass
from simcore.program import Ops, Program, StageProgram
from simcore.program.ops import COMPUTE, PHASES, STREAMS, TO_NEXT, Receive
from simcore.ranks import RankSet
from simcore.records import NamedTuple, Struct
from simcore.workload.model import GroupKind


class Span(NamedTuple):
    """One op with its times, ns from the start of the step."""

    op: int
    """Its index in its class's ops."""
    start: int
    end: int
    stream: str
    phase: str
    row: int
    """The row of the file, -1 for a pipeline transfer."""
    microbatch: int
    """From 0, -1 outside micro-batches."""


class Arrival(NamedTuple):
    """A transfer that a rank class waits for."""

    message: int
    sender: int
    """The class that sends it."""
    op: int
    """The op that sends it, an index in that class's ops."""
    source: int
    """The stage that sends it."""
    first: int
    """The first op that the class issues once it has waited."""
    last: int
    """The op behind the last one of these."""


class Timeline(Struct, frozen=True, dict=True):
    """Start and end of every op of every rank class; a rank's timeline is its class's."""

    program: Program
    folding: Folding
    times: Times

    @cached_property
    def classes(self) -> tuple[RankClass, ...]:
        return self.folding.classes

    @property
    def step_time_ns(self) -> int:
        """When the last rank has joined all its work, ns."""
        return max(self.times.finish)

    @property
    def ops_simulated(self) -> int:
        """The number of ops that the engine timed: those of one rank of each class."""
        return sum(len(self.stage_program(class_id).ops) for class_id in range(len(self.classes)))

    @property
    def spans(self) -> int:
        """The number of spans of all ranks: every op of every rank has one."""
        return sum(
            len(self.stage_program(class_id).ops) * len(rank_class.ranks)
            for class_id, rank_class in enumerate(self.classes)
        )

    def stage_of(self, class_id: int) -> int:
        """Returns the pipeline stage of a class."""
        return self.classes[class_id].stage

    def ranks_of(self, class_id: int) -> RankSet:
        """Returns the ranks of a class."""
        return self.classes[class_id].ranks

    def groups_of(self, class_id: int) -> dict[GroupKind, int]:
        """Returns, by kind of group, the group class that the ranks of a class are in."""
        return self.classes[class_id].groups

    def stage_program(self, class_id: int) -> StageProgram:
        """Returns the program that the ranks of a class run."""
        return self.program.stages[self.stage_of(class_id)]

    def columns(self, class_id: int) -> tuple[Ops, array[int], array[int]]:
        """Returns (ops, start, end) of a class: columns of equal length, in issue order."""
        return self.stage_program(class_id).ops, self.times.start[class_id], self.times.end[class_id]

    def span(self, class_id: int, op: int) -> Span:
        """Returns op `op` of a class with its times."""
        ops, start, end = self.columns(class_id)
        return Span(
            op,
            start[op],
            end[op],
            STREAMS[ops.stream[op]],
            PHASES[ops.phase[op]],
            ops.row[op],
            ops.microbatch[op],
        )

    def streams(self, class_id: int) -> list[str]:
        """Returns the streams that a class has ops on, compute first."""
        present = set(self.stage_program(class_id).ops.stream) | {COMPUTE}
        return [name for code, name in enumerate(STREAMS) if code in present]

    @cached_property
    def first_equal_class(self) -> list[int]:
        """Per class, the first class whose ops and received transfers have the same times (itself if none
        has).

        Where ranks are not folded, most equal another one, so that one analysis holds for all of them.
        """
        if len(self.classes) == len(self.program.stages):
            return list(range(len(self.classes)))
        own: dict[tuple[int, bytes, bytes], int] = {}
        first = [
            own.setdefault((rank_class.stage, start.tobytes(), end.tobytes()), class_id)
            for class_id, (rank_class, start, end) in enumerate(
                zip(self.classes, self.times.start, self.times.end, strict=True)
            )
        ]
        from_same: dict[tuple[int, tuple[tuple[int, int], ...]], int] = {}
        first_equal = []
        for class_id, rank_class in enumerate(self.classes):
            senders = tuple((step, first[link.neighbour]) for step, link in sorted(rank_class.links.items()))
            first_equal.append(from_same.setdefault((first[class_id], senders), class_id))
        return first_equal

    @cached_property
    def senders(self) -> list[tuple[int, int]]:
        """Per message, (stage, op) of its sender: the op's index in that stage's ops."""
        senders = [(-1, -1)] * self.program.messages
        if not self.program.pipelined:
            return senders
        for stage, stage_program in enumerate(self.program.stages):
            column = stage_program.ops.stream
            for lane in range(TO_NEXT, len(STREAMS)):
                op = column.find(lane)
                while op >= 0:
                    senders[stage_program.ops.message[op]] = (stage, op)
                    op = column.find(lane, op + 1)
        return senders

    def find_transfer(self, class_id: int, message: int) -> tuple[int, int]:
        """Returns (class, op) of the transfer that arrives at a class as `message`."""
        stage, op = self.senders[message]
        rank_class = self.classes[class_id]
        return rank_class.links[stage - rank_class.stage].neighbour, op

    def arrivals(self, class_id: int) -> Iterator[Arrival]:
        """Yields the transfers that a class receives, in the order in which it waits for them."""
        for run in self.stage_program(class_id).packed:
            last = run.last if run.inner is None else run.first + run.inner.pairs[0][0]
            for wait in run.waits:
                if isinstance(wait, Receive):
                    sender, op = self.find_transfer(class_id, wait.message)
                    yield Arrival(wait.message, sender, op, wait.source, run.first, last)

    def transfer_times(self, class_id: int, message: int) -> tuple[int, int]:
        """Returns (start, end) of the transfer that arrives at a class as `message`, ns."""
        sender, op = self.find_transfer(class_id, message)
        return self.times.start[sender][op], self.times.end[sender][op]
