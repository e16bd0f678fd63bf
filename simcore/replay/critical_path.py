"""The critical path of a measured or replayed run, a chain of segments over 0..step time, and its legs.

The walk is the graph's, from the end of the rank that ends last back to the start of the step. Here its
nodes become pieces and its causes words. A leg is one rank doing one thing of one micro-batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from simcore.records import Struct, replace
from simcore.replay.accounts import ACCOUNTS, own_account
from simcore.replay.worst import GAP_NAME, piece_name
from simcore.run.findings import Leg
from simcore.run.graph import BUSY, RECEIVED, Cause, Step
from simcore.run.measured import MeasuredGraph
from simcore.run.pieces import AWAIT
from simcore.run.ties import NONE

if TYPE_CHECKING:
    from simcore.replay.results import MeasuredResults


START, BEFORE, MESSAGE, LAST, QUEUED = "start", "before", "message", "last", "queued"
# Why a segment could not start earlier, by its reason, as reports say it.
REASONS = {
    START: "the step begins",
    BEFORE: "its rank did this before",
    MESSAGE: "it needs what rank {rank} sends",
    LAST: "rank {rank} came last",
    QUEUED: "the collective before it was not over",
}


class Segment(Struct, frozen=True):
    """A part of the path. rank: index. piece: of the rank. account: index into ACCOUNTS.

    reason: why it could not start earlier, a key of REASONS; of: the rank that the reason names.
    """

    start: int
    end: int
    rank: int
    piece: int
    account: int
    reason: str
    of: int

    @property
    def kind(self) -> str:
        """What the time goes to, as accounts say it."""
        return ACCOUNTS[self.account]


def critical_path(graph: MeasuredGraph, ends: Sequence[int]) -> list[Segment]:
    """The path, in time order. ends: of a pass of the graph, or as measured."""
    lasting = [ends[nodes[-1]] if nodes else 0 for nodes in graph.over]
    until = max(lasting)
    rank = lasting.index(until)
    found: list[Segment] = []
    if not until:
        return found
    for step in graph.graph.path(graph.over[rank][-1], ends, rank):
        # By their own clocks ranks may be through a little too early: no time is on the path twice.
        if step.start >= until:
            continue
        where = graph.piece_of(step.node, step.track)
        reason, of = _reason(graph, ends, step)
        if found and (found[-1].rank, found[-1].piece) == where:
            found[-1] = replace(found[-1], start=step.start, reason=reason, of=of)
        else:
            account = own_account(graph, *where)
            found.append(Segment(step.start, until, *where, account, reason, of))
        until = step.start
    found.reverse()
    return found


def _reason(graph: MeasuredGraph, ends: Sequence[int], step: Step) -> tuple[str, int]:
    """(reason, the rank that it names) of a node of the path.

    What took no time before it is looked through.
    """
    node, track, cause = step.first, step.track, step.cause
    while cause is not None:
        reason, of = cause_reason(graph, graph.meeting_of(node), track, cause)
        if reason != BEFORE or ends[cause.node] > graph.graph.start(cause.node, ends):
            return reason, of
        node, track = cause.node, graph.graph.track_of(cause)
        cause = next(iter(graph.graph.causes(node, ends, track)), None)
    return START, track


def cause_reason(graph: MeasuredGraph, meeting: int, rank: int, cause: Cause) -> tuple[str, int]:
    """(reason, the rank that it names) for which `rank` waited. meeting: in which collective, or NONE."""
    if cause.why == BUSY:
        return QUEUED, graph.graph.track_of(cause)
    if meeting != NONE:
        pieces = graph.ties.pieces[rank]
        launched = pieces.kind[graph.waiting_piece(meeting, rank)] == AWAIT
        if launched or cause.track != rank:
            return LAST, cause.track
    if cause.why == RECEIVED:
        return MESSAGE, graph.graph.track_of(cause)
    return BEFORE, rank


def legs(results: MeasuredResults) -> list[Leg]:
    """The legs of the critical path, in the order of time: they cover 0..step time.

    what: the operation's name, raw text of the file; GAP_NAME between two. number: the rank's index.
    """
    found: list[Leg] = []
    last: tuple[int, str, int] | None = None
    for index, one in enumerate(results.critical_path):
        pieces, trace = results.ties.pieces[one.rank], results.measured.ranks[one.rank]
        op = pieces.op[one.piece]
        is_gap = piece_name(results, one.rank, one.piece) == GAP_NAME
        # A gap is of no operation; what lies inside an operation is a part of it.
        key = (one.rank, GAP_NAME, -1) if is_gap else (one.rank, trace.ops.name[op], op)
        if key == last:
            found[-1] = replace(found[-1], last=index + 1, end_ns=one.end)
            continue
        last = key
        reason = REASONS[one.reason].format(rank=results.measured.ranks[one.of].number)
        batch = -1 if is_gap else trace.ops.batch[op]
        who = one.rank, trace.number, trace.stage
        found.append(Leg(index, index + 1, one.start, one.end, *who, key[1], batch, reason))
    return found


# What the path can be summed by.
PARTS = ("kind", "op", "stage", "rank")


def path_parts(results: MeasuredResults, by: str) -> Iterator[tuple[str, int]]:
    """(part, ns) of each segment of the critical path, in the order of time.

    by: `kind` (as accounts say it), `op` (operation or sub-operation), `stage` or `rank`.
    """
    for one in results.critical_path:
        trace = results.measured.ranks[one.rank]
        if by == "kind":
            part = one.kind
        elif by == "stage":
            part = "no stage" if trace.stage is None else f"stage {trace.stage}"
        elif by == "rank":
            part = f"rank {trace.number}"
        else:
            part = piece_name(results, one.rank, one.piece)
        yield part, one.end - one.start
