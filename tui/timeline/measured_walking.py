"""Walking along causes in a measured run: what a span waited for, what it holds back, the critical path."""

from __future__ import annotations

from bisect import bisect_right

from simcore.measured.kernel_names import shown_name
from simcore.measured.lanes import COMPUTE_LANE, COPIES_LANE, NO_GROUP
from simcore.measured.vocabulary import COMPUTE, COPY, group_of_op
from simcore.replay import MeasuredResults
from simcore.replay.dependencies import Dependency, causes, effects, pieces_of_item
from simcore.replay.worst import piece_name
from simcore.run.pieces import GAP
from simcore.units import duration, plural
from tui.frame import cells
from tui.timeline.spans import SpanLane
from tui.timeline.walking import Step


def walk(results: MeasuredResults, lane: SpanLane, index: int, direction: int) -> list[Step]:
    """What span `index` of a lane waited for (-1), what bound it first, or what it holds back (1)."""
    return [_step(results, lane, one) for one in _found(results, lane, index, direction)]


def all_words(results: MeasuredResults, lane: SpanLane, index: int, direction: int) -> list[str]:
    """All that `walk` finds in words, what is alike together: `linear_fwd, rank 1, 7 times, 5.2 ms: ...`."""
    sums: dict[tuple[str, str], list[int]] = {}
    for one in _found(results, lane, index, direction):
        times = results.times
        ns = times.end[one.rank][one.piece] - times.start[one.rank][one.piece]
        both = sums.setdefault((_named(results, lane, one), one.reason), [0, 0])
        both[0] += ns
        both[1] += 1
    return [
        f"{name}, {f'{count} times, ' if count > 1 else ''}{duration(ns)}: {reason}"
        for (name, reason), (ns, count) in sums.items()
    ]


def _found(results: MeasuredResults, lane: SpanLane, index: int, direction: int) -> list[Dependency]:
    if not results.measured.timed:
        return []
    spans, number = lane.spans, lane.number
    own = pieces_of_item(results, number, spans.op[index], (spans.start[index], spans.end[index]))
    return (effects if direction > 0 else causes)(results, number, own)


def critical(results: MeasuredResults, time_ns: int, direction: int) -> Step | None:
    """The leg of the critical path behind (1) or before (-1) the one at a time; None past its ends."""
    if not results.measured.timed:
        return None
    legs = results.legs
    index = bisect_right([leg.start_ns for leg in legs], time_ns) - 1 + direction
    if not 0 <= index < len(legs):
        return None
    leg = legs[index]
    segments = plural(len(results.critical_path), "segment")
    words = (
        f"path leg {index + 1} of {len(legs)} ({segments}): {cells(leg.what, 40)}, {duration(leg.ns)}; "
        f"{leg.reason}"
    )
    return Step(leg.number, None, leg.start_ns, leg.rank, words)


def _step(results: MeasuredResults, lane: SpanLane, one: Dependency) -> Step:
    times, rank = results.times, results.measured.ranks[one.rank]
    start, end = times.start[one.rank][one.piece], times.end[one.rank][one.piece]
    stream = None if lane.stream is None else _stream(results, one)
    words = f"{_named(results, lane, one)}, {duration(end - start)}: {one.reason}"
    return Step(one.rank, stream, start, rank.number, words)


def _named(results: MeasuredResults, lane: SpanLane, one: Dependency) -> str:
    """The operation of a piece, with its rank and stage where these are not the lane's."""
    rank, own = results.measured.ranks[one.rank], results.measured.ranks[lane.number]
    where = ""
    if one.rank != lane.number:
        stage = f" of stage {rank.stage}" if rank.stage not in (None, own.stage) else ""
        where = f", rank {rank.number}{stage}"
    return f"{cells(shown_name(piece_name(results, one.rank, one.piece)), 40)}{where}"


def _stream(results: MeasuredResults, one: Dependency) -> str | None:
    """The lane below a rank's own that shows a piece; None for a gap, which its own lane alone shows."""
    pieces, trace = results.ties.pieces[one.rank], results.measured.ranks[one.rank]
    if pieces.kind[one.piece] == GAP:
        return None
    op, sub = pieces.op[one.piece], pieces.sub[one.piece]
    if sub >= 0:
        return trace.subs.group[sub] or NO_GROUP
    category = trace.ops.category(op)
    if category in (*COMPUTE, "host"):
        return COMPUTE_LANE
    return COPIES_LANE if category == COPY else group_of_op(trace.ops.name[op], trace.ops.group[op])
