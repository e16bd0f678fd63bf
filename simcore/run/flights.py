"""When the collectives of a profiler trace run on a rank, beside its compute or where nothing computes."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from simcore.run.measured import MeasuredGraph
from simcore.run.pieces import LAUNCH


class Flight(NamedTuple):
    """A collective on a rank, ns: from its launch on, from when the last member had come, to its end. op: of
    the rank; piece: its launch.
    """

    start: int
    began: int
    end: int
    op: int
    piece: int


def flights(graph: MeasuredGraph, ends: Sequence[int], rank: int) -> Iterator[Flight]:
    """The collectives of the `rank`-th rank in the order of their launches. ends: of a pass of the graph.

    A kernel ends as much later than the first one of its collective as was measured.
    """
    ties = graph.ties
    pieces, ops = ties.pieces[rank], ties.run.ranks[rank].ops
    for piece, kind in enumerate(pieces.kind):
        if kind != LAUNCH:
            continue
        op, meeting = pieces.op[piece], pieces.meeting[piece]
        start = ends[graph.over[rank][piece]]
        node = graph.meetings[meeting]
        if graph.together and node >= 0:
            late = max(0, ops.end[op] - ties.meetings[meeting][1])
            began, end = graph.graph.start(node, ends), ends[node] + late
        else:
            began, end = start, start + ops.end[op] - ops.start[op]
        yield Flight(start, min(max(began, start), max(end, start)), max(end, start), op, piece)


def covered(found: Sequence[Flight]) -> tuple[array[int], array[int], bytearray, array[int]]:
    """Columns (start, end, whether it waits, piece) of disjoint times, ascending, in which a rank has a
    collective.

    Of several at once the one that was launched first has the time.
    """
    start, end, piece = array("q"), array("q"), array("q")
    waits = bytearray()
    now = 0
    for one in sorted(found):
        for over, waiting in ((one.began, True), (one.end, False)):
            begin = max(one.start if waiting else one.began, now)
            if over > begin:
                start.append(begin)
                end.append(over)
                waits.append(waiting)
                piece.append(one.piece)
                now = over
    return start, end, waits, piece
