"""The critical path of a measured or replayed run, a chain of segments over 0..step time, and its legs.

The walk is the graph's, from the end of the rank that ends last back to the start of the step. Here its
nodes become pieces and its causes words. A leg is one rank doing one thing of one micro-batch.
"""

from __future__ import annotations

from collections.abc import Sequence

from simcore.records import Struct, replace
from simcore.replay.idle import CALL, HostGap, gap_in, gap_reason
from simcore.run.graph import BUSY, RECEIVED, Cause, ChainStep
from simcore.run.measured import MeasuredGraph
from simcore.run.pieces import AWAIT, GAP
from simcore.run.ties import NONE, Ties
from simcore.sources.measured import ACCOUNTS, IDLE, own_account

START, BEFORE, MESSAGE, LAST, QUEUED = "start", "before", "message", "last", "queued"
WAS_IDLE, IDLES = "was idle", "idles"
# Of a device whose host is known: whether the next kernel was launched for most of the gap.
HOST_LATE, NOT_STARTED = "host late", "not started"
# Why a segment could not start earlier, by its reason, as reports say it.
REASONS = {
    START: "the step begins",
    BEFORE: "its rank was busy before it",
    WAS_IDLE: "its rank was idle before it",
    IDLES: "its rank ran nothing",
    HOST_LATE: "its host was late: no kernel queued",
    NOT_STARTED: "its next kernel was queued already",
    MESSAGE: "waiting for data from rank {rank}",
    LAST: "rank {rank} came last",
    QUEUED: "waiting for the collective before it",
}
# What is said of a gap where its trace does not tell more.
_OF_GAPS = (START, IDLES, HOST_LATE, NOT_STARTED)


class PieceSegment(Struct, frozen=True):
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
        """What the time goes to: `compute forward`, `pp`, `idle`. On the path communication is itself: that
        it is exposed, accounts say.
        """
        return ACCOUNTS[self.account].removeprefix("exposed ")


def critical_path(graph: MeasuredGraph, ends: Sequence[int]) -> list[PieceSegment]:
    """The path, in time order. ends: of a pass of the graph, or as measured."""
    lasting = [ends[nodes[-1]] if nodes else 0 for nodes in graph.over]
    until = max(lasting)
    rank = lasting.index(until)
    piece_segments: list[PieceSegment] = []
    if not until:
        return piece_segments
    for step in graph.graph.path(graph.over[rank][-1], ends, rank):
        # By their own clocks ranks may be through a little too early: no time is on the path twice.
        if step.start >= until:
            continue
        where = graph.piece_of(step.node, step.track)
        reason, of = _reason(graph, ends, step)
        account = own_account(graph, *where)
        # A rank's idle time is one segment, though the step may begin within it or an instant cut it.
        is_more = (
            piece_segments
            and piece_segments[-1].rank == where[0]
            and account == piece_segments[-1].account == IDLE
        )
        if piece_segments and (is_more or (piece_segments[-1].rank, piece_segments[-1].piece) == where):
            piece_segments[-1] = replace(piece_segments[-1], start=step.start, reason=reason, of=of)
        else:
            piece_segments.append(PieceSegment(step.start, until, *where, account, reason, of))
        until = step.start
    piece_segments.reverse()
    return [
        _of_its_rank(graph, piece_segment, piece_segments[index - 1] if index else None)
        for index, piece_segment in enumerate(piece_segments)
    ]


def _of_its_rank(graph: MeasuredGraph, segment: PieceSegment, before: PieceSegment | None) -> PieceSegment:
    """A segment that follows what its rank did, with what that was: nobody says of a rank that idles that it
    was busy.
    """
    if segment.reason != BEFORE:
        return segment
    if segment.account == IDLE:
        return replace(segment, reason=_idles(graph, segment))
    if before is None or before.rank != segment.rank:
        return segment
    return replace(segment, reason=reason_behind(graph.ties, before.rank, before.piece))


def reason_behind(ties: Ties, rank: int, piece: int) -> str:
    """Why what stands right behind a piece of its own rank could not begin earlier."""
    return WAS_IDLE if ties.pieces[rank].kind[piece] == GAP else BEFORE


def _idles(graph: MeasuredGraph, segment: PieceSegment) -> str:
    """Why a rank ran nothing, as measured: of a device whether the call that launched the next kernel was
    over for more than half of the gap; IDLES where nobody knows that.
    """
    rank, pieces = graph.ties.run.ranks[segment.rank], graph.ties.pieces[segment.rank]
    after, last = segment.piece + 1, segment.piece - 1
    if rank.device is None or rank.device.host is None or after >= len(pieces.op):
        return IDLES
    while last >= 0 and pieces.kind[last] == GAP:
        last -= 1
    host, op = rank.device.host, pieces.op[after]
    if last < 0 or pieces.kind[after] == GAP or host.launcher[op] < 0:
        return IDLES
    start, end = rank.ops.end[pieces.op[last]], rank.ops.start[op]
    queued = end - max(host.launched[op], start)
    return NOT_STARTED if 2 * queued > end - start else HOST_LATE


def reason_words(segment: PieceSegment, gaps: Sequence[HostGap], named: int) -> str:
    """Why a segment could not start earlier; of a gap that its trace tells of, what the host did.

    gaps: of the segment's rank. named: the number of the rank that its reason names.
    """
    gap = None
    if segment.account == IDLE and segment.reason in _OF_GAPS:
        gap = gap_in(gaps, segment.start, segment.end)
    # That the step begins says more than that a kernel was queued, or that no call is to blame.
    if gap is not None and (segment.reason != START or gap.cause == CALL):
        return gap_reason(gap)
    return REASONS[segment.reason].format(rank=named)


def _reason(graph: MeasuredGraph, ends: Sequence[int], step: ChainStep) -> tuple[str, int]:
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
    # Nobody is known to come to a call without a partner: its rank is not the last.
    if meeting != NONE and len(graph.ties.coming(meeting)) > 1:
        pieces = graph.ties.pieces[rank]
        launched = pieces.kind[graph.waiting_piece(meeting, rank)] == AWAIT
        if launched or cause.track != rank:
            return LAST, cause.track
    if cause.why == RECEIVED:
        return MESSAGE, graph.graph.track_of(cause)
    return BEFORE, rank
