"""What is said of the critical path of a measured or replayed run: its parts and legs, and why each segment
began.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from simcore.replay.idle import CALL, HostGap, gap_in, gap_reason
from simcore.replay.piece_names import IDLE_NAME, InPieces, piece_name
from simcore.sources.measured import ACCOUNTS, IDLE, own_account
from simcore.sources.measured_graph import MeasuredGraph
from simcore.sources.pieces import GAP
from simcore.sources.ties import Ties
from simcore.trace.critical_path import CriticalPath, LegOf, PathSource
from simcore.trace.figures import PathSegment
from simcore.trace.reasons import (
    BEHIND,
    BUSY,
    FIRST,
    HOST_LATE,
    IDLES,
    LATE,
    NOT_STARTED,
    REASONS,
    RECEIVED,
    WAS_IDLE,
    Reason,
)
from simcore.trace.trace_graph import TraceGraph

# What they are called here: a stream is that of the collectives of a group.
WORDS = REASONS | {BUSY: "waiting for the collective before it"}
# What is said of a gap where its trace does not tell more.
_OF_GAPS = (FIRST, IDLES, HOST_LATE, NOT_STARTED)


class _Timed(InPieces, Protocol):
    """A run with times. gaps: of each rank, as far as its trace tells what its host did then."""

    @property
    def graph(self) -> MeasuredGraph: ...

    @property
    def gaps(self) -> Sequence[Sequence[HostGap]]: ...


class MeasuredPath(PathSource):
    """Of a measured run."""

    def __init__(self, results: _Timed) -> None:
        self._results, self._ties = results, results.ties
        self._ranks = results.measured.ranks

    def stage(self, track: int) -> int | None:
        return self._ranks[track].stage

    def account(self, track: int, span: int) -> int:
        """Which of ACCOUNTS its time goes to."""
        return own_account(self._results.graph, track, span)

    def kind(self, track: int, span: int) -> str:
        """What the time goes to: `compute forward`, `pp`, `idle`. On the path communication is itself: that
        it is exposed, accounts say.
        """
        return ACCOUNTS[self.account(track, span)].removeprefix("exposed ")

    def name(self, track: int, span: int) -> str:
        """The operation or sub-operation, raw text of the file; `idle` where there is none."""
        return piece_name(self._results, track, span)

    def alike(self, track: int, span: int) -> object:
        return self.account(track, span), self.name(track, span)

    def part(self, by: str, track: int, span: int) -> str:
        """By `op`: the operation or sub-operation."""
        return self.name(track, span)

    def leg(self, track: int, span: int) -> LegOf:
        """The operation's name, raw text of the file; IDLE_NAME where there is none."""
        if self._is_gap(track, span):
            # A gap is of no operation; what lies inside an operation is a part of it.
            return LegOf(IDLE_NAME, -1)
        op, ops = self._ties.pieces[track].op[span], self._ranks[track].ops
        return LegOf(ops.name[op], ops.batch[op], op)

    def _is_gap(self, track: int, span: int) -> bool:
        return self._ties.pieces[track].kind[span] == GAP

    # -- why ---------------------------------------------------------------------------

    def told(self, path: CriticalPath, index: int) -> Reason:
        """Why a segment could not start earlier. Of what follows on what its rank did it says what that was:
        nobody says of a rank that idles that it was busy.
        """
        reason, track, span = path.reason(index), path.track[index], path.span[index]
        if reason.kind != BEHIND:
            return reason
        if self.account(track, span) == IDLE:
            return reason._replace(kind=self._idles(track, span))
        if not index or path.track[index - 1] != track:
            return reason
        return reason._replace(kind=kind_behind(self._ties, track, path.span[index - 1]))

    def _idles(self, track: int, span: int) -> str:
        """Why a rank ran nothing, as measured: of a device whether the call that launched the next kernel was
        over for more than half of the gap; IDLES where nobody knows that.
        """
        rank, pieces = self._ranks[track], self._ties.pieces[track]
        after, last = span + 1, span - 1
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

    def reason(self, path: CriticalPath, index: int) -> str:
        """Of a gap that its trace tells of, what the host did."""
        told, track, gap = self.told(path, index), path.track[index], None
        if told.kind in _OF_GAPS and self.account(track, path.span[index]) == IDLE:
            gap = gap_in(self._results.gaps[track], path.edge[index], path.edge[index + 1])
        # That the step begins says more than that a kernel was queued, or that no call is to blame.
        if gap is not None and (told.kind != FIRST or gap.cause == CALL):
            return gap_reason(gap)
        return words_of(path.of, told)

    # -- segment by segment ------------------------------------------------------------

    def segment(self, path: CriticalPath, index: int) -> PathSegment:
        track, span = path.track[index], path.span[index]
        ops, op = self._ranks[track].ops, self._ties.pieces[track].op[span]
        is_gap, batch, account = self._is_gap(track, span), ops.batch[op], self.account(track, span)
        kind = self.kind(track, span)
        return PathSegment(
            path.edge[index], path.edge[index + 1], path.rank[index],
            kind if ACCOUNTS[account] != kind else "compute", kind,
            None if is_gap else self.name(track, span), None if is_gap else ops.state[op],
            None if is_gap or batch < 0 else batch, self.reason(path, index),
        )  # fmt: skip


def kind_behind(ties: Ties, rank: int, piece: int) -> str:
    """Why what stands right behind a piece of its own rank could not begin earlier."""
    return WAS_IDLE if ties.pieces[rank].kind[piece] == GAP else BEHIND


def named_track(of: TraceGraph, reason: Reason) -> int:
    """The track of the rank that a reason names: who came last, who sends, else its own."""
    if reason.cause is None or reason.kind not in (LATE, RECEIVED, BUSY):
        return reason.track
    return reason.cause.track if reason.kind == LATE else of.graph.track_of(reason.cause)


def words_of(of: TraceGraph, reason: Reason) -> str:
    """A reason in words."""
    return WORDS[reason.kind].format(rank=of.ranks[named_track(of, reason)])
