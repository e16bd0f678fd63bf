"""What each op had to wait for, and what it holds back in turn: the graph of the run by ops and ranks.

Public names (all of `SimulationFigures`):
  results.dependencies.causes(class_id, op)         what held an op back: it ends when the op starts
  results.dependencies.effects(class_id, op)        what starts when an op ends, because of it
  results.dependencies.segment_causes(class_id, accounts, segment), segment_effects(...)
                                                    the same of a segment of the accounts
  results.critical_path                             `CriticalPath`: segments that cover the step
  results.slacks                                    ns by which each op of each class may be longer, or None
  results.what_if(progress, cancelled)              step times with one thing cheaper

An op is (rank class, index into its ops). A class stands for many ranks; `rank` says which of them is meant.
The ranks of its causes and effects are those that this rank meets in its group or hands on to.
"""

from __future__ import annotations

from collections.abc import Callable

from simcore.analysis.accounts import IDLE_OP, op_kind
from simcore.diagnostics import never_cancelled
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
from simcore.trace.graph import BUSY, JOINS, QUEUED, RECEIVED, START
from simcore.trace.graph import Cause as GraphCause
from simcore.trace.reasons import Facts, make_graph_facts, reason_words
from simcore.trace.trace_graph import Neighbours
from simcore.units import duration

NONE = -1


class OpCause(NamedTuple):
    """What ended at the instant at which something else could start."""

    why: int
    """How the other waited: a constant of simcore.trace.graph."""
    class_id: int
    """The rank class of what ended."""
    op: int
    """The op that ended, IDLE_OP for a state change."""
    start_ns: int
    """When the part that was waited for begins, ns."""
    end_ns: int
    """When that part ends, ns."""
    member: int = NONE
    """The class that came late to a collective because of it, NONE where the waiting op's own class did."""
    is_time_passing: bool = False
    """Whether time passes by itself, until the end of the op is seen if there is one."""


# The facts of causes that are listed without a path.
_UNKNOWN = Facts(None)


class Dependencies:
    """Who waits for whom in a finished run.

    simulation: the run. folded: the same run with equal ranks folded, from which the graph is built; its
    times are equal, at a fraction of the cost where the run itself is not folded.
    """

    def __init__(
        self, simulation: Simulation, folded: Simulation, cancelled: Callable[[], bool] = never_cancelled
    ) -> None:
        self.simulation = simulation
        self.folded = folded
        self.timeline = folded.timeline
        self.sim_graph = SimulatedGraph(folded.timeline, len(folded.cluster.dims), cancelled)
        self._unfolded = folded is not simulation
        shown_class = self._find_shown_class if self._unfolded else None
        self.graph = simulated_graph(self.sim_graph, self._find_cause_rank, shown_class)

    # -- classes of the run and of its folded form -----------------------------------

    def _find_folded_class(self, class_id: int, rank: int | None) -> tuple[int, int]:
        """Returns (class of the folded run, rank) of a class of the run; its first rank by default."""
        rank = self.simulation.timeline.ranks_of(class_id).first if rank is None else rank
        return (self.timeline.folding.class_of(rank) if self._unfolded else class_id), rank

    def _find_shown_class(self, class_id: int, rank: int) -> int:
        """Returns the class of the run of `rank`, which is of class `class_id` of the folded run."""
        return self.simulation.timeline.folding.class_of(rank) if self._unfolded else class_id

    # -- for screens -----------------------------------------------------------------

    def causes(self, class_id: int, op: int, rank: int | None = None) -> list[Dependency]:
        """Returns what ended when `op` of a class started and held it back until then.

        The binding one comes first: compute before it on its rank, then what its rank waited for, its stream,
        then other members of its collective. Empty for what starts with the step. rank: of the class, the
        first one by default.
        """
        class_id, rank = self._find_folded_class(class_id, rank)
        return self._causes(class_id, op, rank)

    def effects(self, class_id: int, op: int, rank: int | None = None) -> list[Dependency]:
        """Returns what started when `op` of a class ended and could not start before."""
        class_id, rank = self._find_folded_class(class_id, rank)
        return self._effects(class_id, op, rank)

    def make_facts(self, of: Neighbours, op: int, rank: int) -> Facts:
        """Returns what is known of `op` of `rank` and what ended when it began; IDLE_OP: time that passes."""
        graph_known, (_, class_id, cause) = make_graph_facts(self.graph, of), of
        if cause is None:
            return graph_known
        ended = self._make_cause(cause, class_id, op)
        return self._make_facts(
            ended, class_id, op, self.find_ranks(ended, class_id, op, rank)[0], graph_known
        )

    def segment_causes(
        self, class_id: int, accounts: Accounts, segment: int, rank: int | None = None
    ) -> list[Dependency]:
        """Returns what a rank of a class waits for in a segment of its accounts.

        While it computes: what held the op back. While it waits: what it waits for first, then what held that
        back. Empty while it is idle.
        """
        op, shown_id = accounts.op[segment], class_id
        class_id, rank = self._find_folded_class(class_id, rank)
        if op == IDLE_OP:
            return []
        if op < 0:
            sender, sent_op, of_sender = self._find_sender(shown_id, op, rank)
            first = self._whole_op_cause(RECEIVED, sender, sent_op)
            return [
                self._make_dependency(first, class_id, op, rank),
                *self._causes(sender, sent_op, of_sender),
            ]
        op_causes = self._causes(class_id, op, rank)
        if self.timeline.stage_program(class_id).ops.stream[op] == COMPUTE:
            return op_causes
        return [
            self._make_dependency(self._whole_op_cause(JOINS, class_id, op), class_id, op, rank),
            *op_causes,
        ]

    def segment_effects(
        self, class_id: int, accounts: Accounts, segment: int, rank: int | None = None
    ) -> list[Dependency]:
        """Returns what a rank of a class does when a segment of its accounts is over."""
        op, shown_id = accounts.op[segment], class_id
        class_id, rank = self._find_folded_class(class_id, rank)
        if op == IDLE_OP:
            return []
        if op >= 0:
            return self._effects(class_id, op, rank)
        sender, sent_op, of_sender = self._find_sender(shown_id, op, rank)
        return [effect for effect in self._effects(sender, sent_op, of_sender) if effect.track_id == shown_id]

    def _find_sender(self, class_id: int, op: int, rank: int) -> tuple[int, int, int]:
        """Returns (class, op, rank) of the sender for which `rank` of a class of the run waits, by the code
        in its accounts.
        """
        sender, sent_op = self.simulation.trace.span_of(class_id, op)
        of_sender = self.folded.layout.neighbour(rank, self.simulation.timeline.stage_of(sender))
        return self._find_folded_class(sender, of_sender)[0], sent_op, of_sender

    def _causes(self, class_id: int, op: int, rank: int) -> list[Dependency]:
        return [
            self._make_dependency(cause, class_id, op, rank) for cause in self.find_op_causes(class_id, op)
        ]

    def _effects(self, class_id: int, op: int, rank: int) -> list[Dependency]:
        effects = []
        times = self.timeline.times
        for other, waiting in self._find_followers(class_id, op):
            for cause in self.find_op_causes(other, waiting):
                if (cause.class_id, cause.op) == (class_id, op):
                    of_other = self._find_waiting_rank(cause, other, waiting, rank)
                    reason = reason_words(self._make_facts(cause, other, waiting, rank))
                    start, end = times.start[other][waiting], times.end[other][waiting]
                    shown_id = self._find_shown_class(other, of_other)
                    effects.append(Dependency(shown_id, waiting, of_other, reason, start, end))
                    break
        return effects

    def _make_dependency(self, cause: OpCause, class_id: int, op: int, rank: int) -> Dependency:
        late, other = self.find_ranks(cause, class_id, op, rank)
        reason = reason_words(self._make_facts(cause, class_id, op, late))
        shown_id = self._find_shown_class(cause.class_id, other)
        return Dependency(shown_id, cause.op, other, reason, cause.start_ns, cause.end_ns)

    def find_ranks(self, cause: OpCause, class_id: int, op: int, rank: int) -> tuple[int, int]:
        """Returns the ranks of a cause, when `op` is that of `rank`, of a class of the folded run.

        They are (the member that came late to the collective `op`, or `rank` itself; the rank of the cause).
        """
        late = rank
        if cause.member != NONE:
            late = self._find_group_rank(rank, class_id, op, cause.member)
        if cause.why == QUEUED:
            return late, self._find_group_rank(rank, class_id, op, cause.class_id)
        if cause.why == RECEIVED:
            stage = self.timeline.stage_of(cause.class_id)
            return late, self.folded.layout.neighbour(late, stage)
        return late, late

    def _find_waiting_rank(self, cause: OpCause, class_id: int, op: int, rank: int) -> int:
        """Returns the rank of a class whose `op` waits for a cause of `rank`: `find_ranks` backwards."""
        if cause.why == RECEIVED:
            # The member that received; the waiting rank is in its group.
            receiver = class_id if cause.member == NONE else cause.member
            rank = self.folded.layout.neighbour(rank, self.timeline.stage_of(receiver))
        is_collective = cause.member != NONE or cause.why == QUEUED
        return self._find_group_rank(rank, class_id, op, class_id) if is_collective else rank

    def _find_group_rank(self, rank: int, class_id: int, op: int, target_class: int) -> int:
        """Returns the first rank of a target class in the group of `rank` that runs the collective `op`.

        A rank of the class itself is returned as it is.
        """
        ranks = self.timeline.ranks_of(target_class)
        if rank in ranks:
            return rank
        kind = KIND_OF_STREAM[self.timeline.stage_program(class_id).ops.stream[op]]
        return next(member for member in self.folded.layout.group_of(kind, rank) if member in ranks)

    # -- the graph, in classes and ops of the folded run -------------------------------

    def find_op_causes(self, class_id: int, op: int) -> list[OpCause]:
        """Returns what ended when an op started and held it back, the binding one first."""
        built = self.sim_graph
        causes = built.graph.find_causes(built.node(class_id, op), built.ends, class_id)
        return [self._make_cause(cause, class_id, op) for cause in causes]

    def _make_facts(
        self, cause: OpCause, class_id: int, op: int, late: int, facts: Facts = _UNKNOWN
    ) -> Facts:
        """Returns what is known of a cause of `op` of a class.

        late: the rank that came late, if the cause is another member's; facts: what the graph knows.
        """
        timeline, why = self.timeline, cause.why
        if cause.member != NONE:
            own = op_kind(timeline, class_id, op, with_group=True)
            return replace(facts, how=why, is_late=True, rank=late, own=own)
        # The words name senders and queues by stages and streams, not by ranks.
        facts = replace(facts, how=why, is_late=False, rank=NONE)
        if cause.op == IDLE_OP:
            return replace(facts, passes=duration(cause.end_ns - cause.start_ns))
        what = op_kind(timeline, cause.class_id, cause.op, with_group=True)
        if cause.is_time_passing:
            seen_after = duration(cause.end_ns - timeline.times.end[cause.class_id][cause.op])
            return replace(facts, what=what, seen_after=seen_after)
        ops, stage = timeline.stage_program(cause.class_id).ops, timeline.stage_of(cause.class_id)
        cost, stream = timeline.program.costs[ops.cost[cause.op]], ops.stream[cause.op]
        target = f" to stage {stage + cost.step}" if isinstance(cost, TransferCost) else ""
        if why == RECEIVED:
            payload = "activation" if ops.phase[cause.op] in (FWD, RECOMPUTE) else "gradient"
            return replace(facts, payload=payload, stage=stage)
        if why == BUSY:
            where = f"the {STREAMS[stream]} stream" if stream < TO_NEXT else f"the channel{target}"
            before = f"the {op_kind(timeline, cause.class_id, cause.op)} before it"
            return replace(facts, where=where, what=before)
        return replace(facts, what=f"{what}{target}" if why == JOINS else what)

    def _find_cause_rank(self, cause: GraphCause, class_id: int, op: int, rank: int) -> int:
        """Returns the rank of a cause of `op` of `rank`; IDLE_OP: the end of the rank waited."""
        return self.find_ranks(self._make_cause(cause, class_id, op), class_id, op, rank)[1]

    def _make_cause(self, cause: GraphCause, class_id: int, waiting: int) -> OpCause:
        """Returns a node as a cause of op `waiting` of a class; IDLE_OP: the end of the rank waited."""
        built = self.sim_graph
        node, why, track = cause
        cause_class = built.graph.track_of(cause)
        stream = self.timeline.stage_program(class_id).ops.stream
        if waiting != IDLE_OP and KIND_OF_STREAM.get(stream[waiting]) is not None:
            # A collective before this one is one node, under the first of its own members: here it is named
            # by the one that is a member of this one, too.
            met = {member for member, _ in built.members(class_id, waiting)}
            both = [node_class for node_class in built.classes_of(node) if node_class in met]
            track, cause_class = (
                candidate if candidate in met or not both else both[0] for candidate in (track, cause_class)
            )
        op, member = self.graph.span_at(node, cause_class), NONE if track == class_id else track
        begin, over = built.graph.start(node, built.ends), built.ends[node]
        passes = op == IDLE_OP
        if passes and (joined_node := built.graph.second[node - 1]) != START:
            # Time passes until the end of the joined node is seen.
            op, begin = (
                self.graph.span_at(joined_node, cause_class),
                built.graph.start(joined_node, built.ends),
            )
        return OpCause(why, cause_class, op, begin, over, member, passes)

    def _whole_op_cause(self, why: int, class_id: int, op: int) -> OpCause:
        times = self.timeline.times
        return OpCause(why, class_id, op, times.start[class_id][op], times.end[class_id][op])

    def _find_followers(self, class_id: int, op: int) -> list[tuple[int, int]]:
        """Returns (class, op) of what directly follows an op and starts when it, or a part of it, ends."""
        built = self.sim_graph
        behind: dict[int, None] = {}
        pending = [built.node(class_id, op), *built.parts(class_id, op)]
        for node in pending:
            for follower in built.graph.find_effects(node, built.ends):
                class_of_node = built.classes_of(follower)[0]
                if self.graph.span_at(follower, class_of_node) != IDLE_OP:
                    behind[follower] = None
                elif built.graph.second[follower - 1] != START:
                    # The follower waits until the end of `op` is seen.
                    pending.append(follower)
        own = sorted(behind, key=lambda node: (class_id not in built.classes_of(node), node))
        return [
            (class_of_node, self.graph.span_at(node, class_of_node))
            for node in own
            for class_of_node in built.classes_of(node)
        ]
