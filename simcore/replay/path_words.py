"""What is said of the critical path of a measured or replayed run: its parts and legs, and why each segment
began.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from simcore.records import replace
from simcore.replay.idle import QUEUED, HostGap, gap_in, host_words
from simcore.replay.piece_names import IDLE_NAME, InPieces, piece_name
from simcore.sources.measured import ACCOUNTS, IDLE, own_account
from simcore.sources.measured_graph import MeasuredGraph
from simcore.sources.pieces import GAP
from simcore.sources.ties import Ties
from simcore.trace.critical_path import CriticalPath, LegOf, PathSource
from simcore.trace.figures import PathSegment
from simcore.trace.reasons import Facts, graph_facts
from simcore.trace.trace_graph import Neighbours, TraceGraph


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

    def leg(self, track: int, span: int) -> LegOf:
        """The operation's name, raw text of the file; IDLE_NAME where there is none."""
        if is_gap(self._ties, track, span):
            # A gap is of no operation; what lies inside an operation is a part of it.
            return LegOf(IDLE_NAME, -1)
        op, ops = self._ties.pieces[track].op[span], self._ranks[track].ops
        return LegOf(ops.name[op], ops.batch[op], op)

    # -- why ---------------------------------------------------------------------------

    def facts(self, path: CriticalPath, index: int) -> Facts:
        track, span = path.track[index], path.span[index]
        facts = piece_facts(path.of, self._ties, path.neighbours(index))
        if self.account(track, span) != IDLE:
            return facts
        gap = gap_in(self._results.gaps[track], path.edge[index], path.edge[index + 1])
        if gap is None:
            return replace(facts, idles=True, is_queued=self._is_queued(track, span))
        return replace(facts, idles=True, call=host_words(gap), is_queued=gap.cause == QUEUED)

    def _is_queued(self, track: int, span: int) -> bool | None:
        """Of a gap as it was measured whether the call that launched the next kernel of a device was over for
        more than half of it; None where nobody knows that.
        """
        rank, pieces = self._ranks[track], self._ties.pieces[track]
        after, last = span + 1, span - 1
        if rank.device is None or rank.device.host is None or after >= len(pieces.op):
            return None
        while last >= 0 and pieces.kind[last] == GAP:
            last -= 1
        host, op = rank.device.host, pieces.op[after]
        if last < 0 or pieces.kind[after] == GAP or host.launcher[op] < 0:
            return None
        start, end = rank.ops.end[pieces.op[last]], rank.ops.start[op]
        queued = end - max(host.launched[op], start)
        return 2 * queued > end - start

    # -- segment by segment ------------------------------------------------------------

    def segment(self, path: CriticalPath, index: int) -> PathSegment:
        track, span = path.track[index], path.span[index]
        ops, op = self._ranks[track].ops, self._ties.pieces[track].op[span]
        idles, batch, account = is_gap(self._ties, track, span), ops.batch[op], self.account(track, span)
        kind = self.kind(track, span)
        return PathSegment(
            path.edge[index], path.edge[index + 1], path.rank[index],
            kind if ACCOUNTS[account] != kind else "compute", kind,
            None if idles else self.name(track, span), None if idles else ops.state[op],
            None if idles or batch < 0 else batch, self.reason(path, index),
        )  # fmt: skip


def piece_facts(of: TraceGraph, ties: Ties, pair: Neighbours) -> Facts:
    """Returns what is known of what a piece waited for."""
    facts = graph_facts(of, pair)
    was_idle = pair.cause is not None and is_gap(ties, *of.ended(pair.cause))
    return replace(facts, was_idle=True) if was_idle else facts


def is_gap(ties: Ties, track: int, piece: int) -> bool:
    """Returns whether a piece of a rank is none of an operation."""
    return ties.pieces[track].kind[piece] == GAP
