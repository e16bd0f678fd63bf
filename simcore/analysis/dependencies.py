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

from collections.abc import Callable

from simcore.analysis.accounts import IDLE_OP, op_kind
from simcore.diagnostics import never
from simcore.program.ops import (
    COMPUTE,
    FWD,
    KIND_OF_STREAM,
    RECOMPUTE,
    STREAMS,
    TO_NEXT,
    TransferCost,
)
from simcore.records import NamedTuple, replace
from simcore.simulation import Simulation
from simcore.sources.simulated import simulated_graph
from simcore.sources.simulated_graph import SimulatedGraph
from simcore.trace.accounts import Accounts
from simcore.trace.findings import Dependency
from simcore.trace.graph import BUSY, JOINED, QUEUED, RECEIVED, START
from simcore.trace.graph import Cause as GraphCause
from simcore.trace.reasons import Facts, graph_facts, reason_words
from simcore.trace.trace_graph import Neighbours
from simcore.units import duration

NONE = -1


class OpCause(NamedTuple):
    """What ended at the instant at which something else could start.

    why: of simcore.trace.graph. number, op: its rank class and op, IDLE_OP for a state change. start_ns,
    end_ns: of the part that was waited for. member: the class that came late to a collective because of this,
    NONE where the waiting op's own class did. passes: whether it is time that passes by itself, until the end
    of the op is seen where there is one.
    """

    why: int
    number: int
    op: int
    start_ns: int
    end_ns: int
    member: int = NONE
    passes: bool = False


# Of causes that are listed without a path.
_UNKNOWN = Facts(None)


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
        shown = self._shown_class if self._unfolded else None
        self.graph = simulated_graph(self.built, self._rank_of, shown)

    # -- classes of the run and of its folded form -----------------------------------

    def _folded_class(self, number: int, rank: int | None) -> tuple[int, int]:
        """(class of the folded run, rank) of a class of the run; its first rank by default."""
        rank = self.simulation.timeline.ranks_of(number).first if rank is None else rank
        return (self.timeline.folding.class_of(rank) if self._unfolded else number), rank

    def _shown_class(self, number: int, rank: int) -> int:
        """The class of the run that `rank` of class `number` of the folded run is of."""
        return self.simulation.timeline.folding.class_of(rank) if self._unfolded else number

    # -- for screens -----------------------------------------------------------------

    def causes(self, number: int, op: int, rank: int | None = None) -> list[Dependency]:
        """What ended when `op` of class `number` started and held it back until then.

        The binding one first: compute before it on its rank, then what its rank waited for, its
        stream, then other members of its collective. Nothing for what starts with the step.
        rank: which rank of the class, the first one by default.
        """
        number, rank = self._folded_class(number, rank)
        return self._causes(number, op, rank)

    def effects(self, number: int, op: int, rank: int | None = None) -> list[Dependency]:
        """What started when `op` of class `number` ended and could not start before."""
        number, rank = self._folded_class(number, rank)
        return self._effects(number, op, rank)

    def facts(self, of: Neighbours, op: int, rank: int) -> Facts:
        """What is known of `op` of `rank` and what ended when it began; IDLE_OP: time passes by itself."""
        known, (_, number, cause) = graph_facts(self.graph, of), of
        if cause is None:
            return known
        ended = self._of_node(cause, number, op)
        return self._facts(ended, number, op, self.ranks_of(ended, number, op, rank)[0], known)

    def segment_causes(
        self, number: int, accounts: Accounts, segment: int, rank: int | None = None
    ) -> list[Dependency]:
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
    ) -> list[Dependency]:
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

    def _causes(self, number: int, op: int, rank: int) -> list[Dependency]:
        return [self._dependency(cause, number, op, rank) for cause in self.op_causes(number, op)]

    def _effects(self, number: int, op: int, rank: int) -> list[Dependency]:
        effects = []
        times = self.timeline.times
        for other, waiting in self._behind(number, op):
            for cause in self.op_causes(other, waiting):
                if (cause.number, cause.op) == (number, op):
                    of_other = self._rank_behind(cause, other, waiting, rank)
                    reason = reason_words(self._facts(cause, other, waiting, rank))
                    start, end = times.start[other][waiting], times.end[other][waiting]
                    shown = self._shown_class(other, of_other)
                    effects.append(Dependency(shown, waiting, of_other, reason, start, end))
                    break
        return effects

    def _dependency(self, cause: OpCause, number: int, op: int, rank: int) -> Dependency:
        late, other = self.ranks_of(cause, number, op, rank)
        reason = reason_words(self._facts(cause, number, op, late))
        shown = self._shown_class(cause.number, other)
        return Dependency(shown, cause.op, other, reason, cause.start_ns, cause.end_ns)

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

    def _facts(self, cause: OpCause, number: int, op: int, late: int, known: Facts = _UNKNOWN) -> Facts:
        """What is known of a cause of `op` of class `number`. late: the rank that came late, if the cause is
        another member's; known: what the graph knows.
        """
        timeline, why = self.timeline, cause.why
        if cause.member != NONE:
            own = op_kind(timeline, number, op, with_group=True)
            return replace(known, how=why, is_late=True, rank=late, own=own)
        # Who sends and who serves is told by stages and streams.
        known = replace(known, how=why, is_late=False, rank=NONE)
        if cause.op == IDLE_OP:
            return replace(known, passes=duration(cause.end_ns - cause.start_ns))
        what = op_kind(timeline, cause.number, cause.op, with_group=True)
        if cause.passes:
            seen = duration(cause.end_ns - timeline.times.end[cause.number][cause.op])
            return replace(known, what=what, seen=seen)
        ops, stage = timeline.stage_program(cause.number).ops, timeline.stage_of(cause.number)
        cost, stream = timeline.program.costs[ops.cost[cause.op]], ops.stream[cause.op]
        target = f" to stage {stage + cost.step}" if isinstance(cost, TransferCost) else ""
        if why == RECEIVED:
            sent = "activation" if ops.phase[cause.op] in (FWD, RECOMPUTE) else "gradient"
            return replace(known, sent=sent, stage=stage)
        if why == BUSY:
            where = f"the {STREAMS[stream]} stream" if stream < TO_NEXT else f"the channel{target}"
            before = f"the {op_kind(timeline, cause.number, cause.op)} before it"
            return replace(known, where=where, what=before)
        return replace(known, what=f"{what}{target}" if why == JOINED else what)

    def _rank_of(self, cause: GraphCause, number: int, op: int, rank: int) -> int:
        """The rank that a cause of `op` of `rank` is of; IDLE_OP: the end of the rank waited."""
        return self.ranks_of(self._of_node(cause, number, op), number, op, rank)[1]

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
        op, member = self.graph.span_at(node, on), NONE if track == number else track
        begin, over = built.graph.start(node, built.ends), built.ends[node]
        passes = op == IDLE_OP
        if passes and (joined := built.graph.second[node - 1]) != START:
            # Time passes until the end of what was joined is seen.
            op, begin = self.graph.span_at(joined, on), built.graph.start(joined, built.ends)
        return OpCause(why, on, op, begin, over, member, passes)

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
                if self.graph.span_at(follower, of) != IDLE_OP:
                    behind[follower] = None
                elif built.graph.second[follower - 1] != START:
                    # What waits for the end of `op` to be seen.
                    asked.append(follower)
        own = sorted(behind, key=lambda node: (number not in built.classes_of(node), node))
        return [(of, self.graph.span_at(node, of)) for node in own for of in built.classes_of(node)]
