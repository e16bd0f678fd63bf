"""What each op had to wait for, and what it holds back in turn: the graph of the run, asked in ops and ranks.

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

from collections.abc import Callable, Iterator

from simcore.analysis.accounts import IDLE_OP, op_kind
from simcore.program.ops import (
    COMPUTE,
    FWD,
    KIND_OF_STREAM,
    RECOMPUTE,
    STREAMS,
    TO_NEXT,
    TransferCost,
)
from simcore.records import NamedTuple, Struct
from simcore.run.accounts import Accounts
from simcore.run.graph import ARRIVED, BEFORE, BUSY, JOINED, QUEUED, RECEIVED, START, never
from simcore.run.graph import Cause as GraphCause
from simcore.run.repeats import Way
from simcore.run.simulated import SimulatedGraph
from simcore.simulation import Simulation
from simcore.units import duration

# What an `OpCause` can be to what waits for it beside the words of the graph: a state change; a collective
# that it joins and that is seen some time after its end.
PAUSED, SEEN = ARRIVED + 1, ARRIVED + 2
FIRST_REASON = "the step begins"


def reason_words(simulation: Simulation, cause: OpCause, number: int, op: int, late: int) -> str:
    """Why `op` of class `number` could not start before `cause` was over.

    late: the rank that came late, if the cause is another member's.
    """
    if cause.member >= 0:
        return f"rank {late} comes late to the {_name(simulation, number, op)}"
    if cause.why == PAUSED:
        return f"a state change of {duration(cause.end_ns - cause.start_ns)}"
    what = _name(simulation, cause.number, cause.op)
    if cause.why == SEEN:
        times = simulation.timeline.times
        later = cause.end_ns - times.end[cause.number][cause.op]
        return f"the {what} is seen {duration(later)} after its end"
    if cause.why == QUEUED:
        return f"the queues serve another {what} first"
    ops = simulation.timeline.stage_program(cause.number).ops
    stream = ops.stream[cause.op]
    if cause.why == RECEIVED:
        stage = simulation.timeline.stage_of(cause.number)
        handed = "activation" if ops.phase[cause.op] in (FWD, RECOMPUTE) else "gradient"
        return f"stage {stage} sends the {handed}"
    if cause.why == BUSY:
        where = f"the {STREAMS[stream]} stream"
        if stream >= TO_NEXT:
            where = f"the channel to {_target(simulation, cause)}"
        return f"{where} is busy with the {op_kind(simulation.timeline, cause.number, cause.op)} before it"
    if cause.why == JOINED:
        return f"it waits for the {what}" + (f" to {_target(simulation, cause)}" if stream >= TO_NEXT else "")
    return "compute before it" if stream == COMPUTE else f"the {what} before it"


def _target(simulation: Simulation, cause: OpCause) -> str:
    timeline = simulation.timeline
    cost = timeline.program.costs[timeline.stage_program(cause.number).ops.cost[cause.op]]
    assert isinstance(cost, TransferCost)
    return f"stage {timeline.stage_of(cause.number) + cost.step}"


def _name(simulation: Simulation, number: int, op: int) -> str:
    """`tp all-gather`, `transfer`, `compute`: what an op is."""
    return op_kind(simulation.timeline, number, op, with_group=True)


NONE = -1


class OpCause(NamedTuple):
    """What ended at the instant at which something else could start.

    why: of simcore.run.graph, or PAUSED, SEEN. number, op: its rank class and op, IDLE_OP for a state change.
    start_ns, end_ns: of the part that was waited for. member: the class that came late to a collective
    because of this, NONE where the waiting op's own class did.
    """

    why: int
    number: int
    op: int
    start_ns: int
    end_ns: int
    member: int = NONE


class PathStep(NamedTuple):
    """A part of the critical path: ops `first` to `op` of `rank`, of class `number`, without a gap.

    words: why time that passes by itself (IDLE_OP) began then; "" of an op, which can be asked. way: of ops
    that repeat which of them it is; None where it is all.
    """

    number: int
    first: int
    op: int
    rank: int
    start_ns: int
    end_ns: int
    words: str
    way: Way | None = None


class OpDependency(Struct, frozen=True):
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
    """Who waits for whom in a finished run.

    simulation: the run that is asked about. folded: the same run with equal ranks folded, of which the graph
    is made; its times are equal, at a fraction of the cost where the run itself is not folded.
    """

    def __init__(
        self, simulation: Simulation, folded: Simulation, cancelled: Callable[[], bool] = never
    ) -> None:
        self.simulation = simulation
        self.folded = folded
        self.timeline = folded.timeline
        self.built = SimulatedGraph(folded.timeline, len(folded.cluster.dims), cancelled)
        self._unfolded = folded is not simulation
        # By cost: why an op begins that is behind one of it on its own rank.
        self._before: dict[int, str] = {}
        # The same by how it waits and the cost, on ways of the critical path.
        self._in_ways: dict[tuple[int, int], str] = {}

    # -- classes of the run and of its folded form -----------------------------------

    def _folded_class(self, number: int, rank: int | None) -> tuple[int, int]:
        """(class of the folded run, rank) of a class of the run; its first rank by default."""
        rank = self.simulation.timeline.ranks_of(number).first if rank is None else rank
        return (self.timeline.folding.class_of(rank) if self._unfolded else number), rank

    def _shown_class(self, number: int, rank: int) -> int:
        """The class of the run that `rank` of class `number` of the folded run is of."""
        return self.simulation.timeline.folding.class_of(rank) if self._unfolded else number

    # -- for screens -----------------------------------------------------------------

    def causes(self, number: int, op: int, rank: int | None = None) -> list[OpDependency]:
        """What ended when `op` of class `number` started and held it back until then.

        The binding one first: compute before it on its rank, then what its rank waited for, its
        stream, then other members of its collective. Nothing for what starts with the step.
        rank: which rank of the class, the first one by default.
        """
        number, rank = self._folded_class(number, rank)
        return self._causes(number, op, rank)

    def effects(self, number: int, op: int, rank: int | None = None) -> list[OpDependency]:
        """What started when `op` of class `number` ended and could not start before."""
        number, rank = self._folded_class(number, rank)
        return self._effects(number, op, rank)

    def reason(self, number: int, op: int, rank: int) -> str:
        """Why `op` of `rank`, of class `number`, could not start earlier; "" where nothing held it."""
        number, rank = self._folded_class(number, rank)
        graph, ends, node = self.built.graph, self.built.ends, self.built.node(number, op)
        if graph.chained[node - 1]:
            return self._words_before(number, op)
        cause = graph.first_cause(node, graph.start(node, ends), ends, number)
        return self._words(self._of_node(cause, number, op), number, op, rank) if cause else ""

    def reason_in_way(self, number: int, op: int, rank: int, why: int, before: int) -> str:
        """The same of an op on a `Way` of the critical path, by how it waits for the op before it there.

        Both are of one rank: it is said in the same words wherever that one has the same cost.
        """
        key = why, self.simulation.timeline.stage_program(number).ops.cost[before]
        if key not in self._in_ways:
            self._in_ways[key] = self.reason(number, op, rank)
        return self._in_ways[key]

    def _words_before(self, number: int, op: int) -> str:
        """Why an op of the folded run could not start earlier that is behind the one before it on its rank.

        Nearly all of a path: said in the same words of each op that is behind one of the same cost.
        """
        cost = self.timeline.stage_program(number).ops.cost[op - 1]
        if cost not in self._before:
            before = self._whole(BEFORE, number, op - 1)
            self._before[cost] = reason_words(self.folded, before, number, op, NONE)
        return self._before[cost]

    def segment_causes(
        self, number: int, accounts: Accounts, segment: int, rank: int | None = None
    ) -> list[OpDependency]:
        """What a rank of class `number` waits for in a segment of its accounts.

        While it computes: what held the op back. While it waits: what it waits for first, then what
        held that back. Nothing while it is idle.
        """
        op, shown = accounts.op[segment], number
        number, rank = self._folded_class(number, rank)
        if op == IDLE_OP:
            return []
        if op < 0:
            sender, sent, of_sender = self._sender(shown, op, rank)
            first = self._whole(RECEIVED, sender, sent)
            return [self._dependency(first, number, op, rank), *self._causes(sender, sent, of_sender)]
        held = self._causes(number, op, rank)
        if self.timeline.stage_program(number).ops.stream[op] == COMPUTE:
            return held
        return [self._dependency(self._whole(JOINED, number, op), number, op, rank), *held]

    def segment_effects(
        self, number: int, accounts: Accounts, segment: int, rank: int | None = None
    ) -> list[OpDependency]:
        """What a rank of class `number` does when a segment of its accounts is over."""
        op, shown = accounts.op[segment], number
        number, rank = self._folded_class(number, rank)
        if op == IDLE_OP:
            return []
        if op >= 0:
            return self._effects(number, op, rank)
        sender, sent, of_sender = self._sender(shown, op, rank)
        return [effect for effect in self._effects(sender, sent, of_sender) if effect.number == shown]

    def _sender(self, number: int, op: int, rank: int) -> tuple[int, int, int]:
        """(class, op, rank) that sends what `rank` of class `number` of the run waits for, as its accounts
        write it.
        """
        sender, sent = self.simulation.trace.span_of(number, op)
        of_sender = self.folded.layout.neighbour(rank, self.simulation.timeline.stage_of(sender))
        return self._folded_class(sender, of_sender)[0], sent, of_sender

    def _causes(self, number: int, op: int, rank: int) -> list[OpDependency]:
        return [self._dependency(cause, number, op, rank) for cause in self.op_causes(number, op)]

    def _effects(self, number: int, op: int, rank: int) -> list[OpDependency]:
        effects = []
        times = self.timeline.times
        for other, waiting in self._behind(number, op):
            for cause in self.op_causes(other, waiting):
                if (cause.number, cause.op) == (number, op):
                    of_other = self._rank_behind(cause, other, waiting, rank)
                    reason = reason_words(self.folded, cause, other, waiting, rank)
                    start, end = times.start[other][waiting], times.end[other][waiting]
                    shown = self._shown_class(other, of_other)
                    effects.append(OpDependency(shown, waiting, of_other, reason, start, end))
                    break
        return effects

    def _dependency(self, cause: OpCause, number: int, op: int, rank: int) -> OpDependency:
        late, other = self.ranks_of(cause, number, op, rank)
        reason = reason_words(self.folded, cause, number, op, late)
        shown = self._shown_class(cause.number, other)
        return OpDependency(shown, cause.op, other, reason, cause.start_ns, cause.end_ns)

    def ranks_of(self, cause: OpCause, number: int, op: int, rank: int) -> tuple[int, int]:
        """Which ranks a cause of `op` is about, when `op` is that of `rank`, of class `number` (folded).

        (the member that came late to the collective `op`, or `rank` itself; the rank of the cause).
        """
        late = rank
        if cause.member != NONE:
            late = self._in_group(rank, number, op, cause.member)
        if cause.why == QUEUED:
            return late, self._in_group(rank, number, op, cause.number)
        if cause.why == RECEIVED:
            stage = self.timeline.stage_of(cause.number)
            return late, self.folded.layout.neighbour(late, stage)
        return late, late

    def _rank_behind(self, cause: OpCause, number: int, op: int, rank: int) -> int:
        """The rank of class `number` whose `op` waits for a cause that is of `rank`: `ranks_of` backwards."""
        if cause.why == RECEIVED:
            # The member that received; its group is that of the rank that waits.
            met = number if cause.member == NONE else cause.member
            rank = self.folded.layout.neighbour(rank, self.timeline.stage_of(met))
        met_op = cause.member != NONE or cause.why == QUEUED
        return self._in_group(rank, number, op, number) if met_op else rank

    def _in_group(self, rank: int, number: int, op: int, wanted: int) -> int:
        """The first rank of class `wanted` in the group of `rank` that runs the collective `op` of `number`.

        A rank of the class itself stands for itself.
        """
        ranks = self.timeline.ranks_of(wanted)
        if rank in ranks:
            return rank
        kind = KIND_OF_STREAM[self.timeline.stage_program(number).ops.stream[op]]
        return next(member for member in self.folded.layout.group_of(kind, rank) if member in ranks)

    # -- the graph, in classes and ops of the folded run -------------------------------

    def op_causes(self, number: int, op: int) -> list[OpCause]:
        """What ended when an op started and held it back, the binding one first."""
        built = self.built
        causes = built.graph.causes(built.node(number, op), built.ends, number)
        return [self._of_node(cause, number, op) for cause in causes]

    def _words(self, cause: OpCause, number: int, op: int, rank: int) -> str:
        """A cause of `op` of `rank`, of class `number` of the folded run, in words."""
        late, _ = self.ranks_of(cause, number, op, rank)
        return reason_words(self.folded, cause, number, op, late)

    def path(self, cancelled: Callable[[], bool] = never) -> Iterator[PathStep]:
        """The critical path from the end of the step back to its start, with what takes 0 ns on it.

        Raises `Cancelled`.
        """
        built, timeline = self.built, self.timeline
        number = timeline.times.finish.index(timeline.step_time_ns)
        rank = timeline.ranks_of(number).first
        last = built.last(number)
        causes = built.graph.held(last, built.ends, number)
        held, op = (causes[0] if causes else None), IDLE_OP
        for step in built.graph.path(last, built.ends, number, cancelled):
            if held is not None and (held.track != number or held.why in (RECEIVED, QUEUED)):
                _, rank = self.ranks_of(self._of_node(held, number, op), number, op, rank)
            number, held = step.track, step.cause
            op = built.op_of(step.node, number)
            # A chain is of ops behind each other.
            first, words = op - (step.node - step.first), ""
            if step.way is not None:
                first = op - step.way.places[-1] + step.way.places[0]
            if op == IDLE_OP and held is not None:
                words = self._words(self._of_node(held, number, op), number, op, rank)
            shown = self._shown_class(number, rank)
            yield PathStep(shown, first, op, rank, step.start, step.end, words, step.way)

    def _of_node(self, cause: GraphCause, number: int, waiting: int) -> OpCause:
        """What a node is that op `waiting` of class `number` waited for; IDLE_OP: its end waited."""
        built = self.built
        node, why, track = cause
        on = built.graph.track_of(cause)
        stream = self.timeline.stage_program(number).ops.stream
        if waiting != IDLE_OP and KIND_OF_STREAM.get(stream[waiting]) is not None:
            # A collective before this one is one node, named by the first of its own members: here it is the
            # one that is a member of this one, too.
            met = {member for member, _ in built.members(number, waiting)}
            both = [node_class for node_class in built.classes_of(node) if node_class in met]
            track, on = (candidate if candidate in met or not both else both[0] for candidate in (track, on))
        op, member = built.op_of(node, on), NONE if track == number else track
        begin, over = built.graph.start(node, built.ends), built.ends[node]
        if op == IDLE_OP:
            joined = built.graph.second[node - 1]
            if joined == START:
                return OpCause(PAUSED, on, op, begin, over, member)
            # Time passes until the end of what was joined is seen.
            op, begin = built.op_of(joined, on), built.graph.start(joined, built.ends)
            why = SEEN
        return OpCause(why, on, op, begin, over, member)

    def _whole(self, why: int, number: int, op: int) -> OpCause:
        times = self.timeline.times
        return OpCause(why, number, op, times.start[number][op], times.end[number][op])

    def _behind(self, number: int, op: int) -> list[tuple[int, int]]:
        """(class, op) of what comes directly behind an op and starts when it, or a part of it, ends."""
        built = self.built
        behind: dict[int, None] = {}
        asked = [built.node(number, op), *built.parts(number, op)]
        for node in asked:
            for follower in built.graph.effects(node, built.ends):
                of = built.classes_of(follower)[0]
                if built.op_of(follower, of) != IDLE_OP:
                    behind[follower] = None
                elif built.graph.second[follower - 1] != START:
                    # What waits for the end of `op` to be seen.
                    asked.append(follower)
        own = sorted(behind, key=lambda node: (number not in built.classes_of(node), node))
        return [(of, built.op_of(node, of)) for node in own for of in built.classes_of(node)]
