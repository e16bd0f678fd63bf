"""What an operation of a measured or replayed run waited for, and what it holds back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simcore.records import Struct
from simcore.replay.critical_path import BEFORE, REASONS, cause_reason, reason_behind
from simcore.run.graph import BUSY, Cause
from simcore.run.pieces import GAP
from simcore.run.ties import NONE

if TYPE_CHECKING:
    from simcore.replay.timed import Timed

_WAITS = "rank {rank} waits for it there"
_RECEIVES = "rank {rank} receives it"
_QUEUES = "the collective after it waits for it to be over"
_AFTER = "its rank does this next"


class PieceDependency(Struct, frozen=True):
    """A piece of a rank (its index) that is a cause or an effect, and in words why."""

    rank: int
    piece: int
    reason: str


def pieces_of_item(results: Timed, rank: int, item: int, span: tuple[int, int]) -> list[int]:
    """The pieces of an item of a lane (`LaneSpans`), ascending; of a gap those that lie in its span."""
    pieces, count = results.ties.pieces[rank], len(results.measured.ranks[rank].ops)
    if item >= count:
        return [piece for piece, sub in enumerate(pieces.sub) if sub == item - count]
    if item >= 0:
        return [piece for piece, op in enumerate(pieces.op) if op == item and pieces.kind[piece] != GAP]
    start, end = results.times.start[rank], results.times.end[rank]
    return [
        piece
        for piece, kind in enumerate(pieces.kind)
        if kind == GAP and span[0] <= start[piece] and end[piece] <= span[1]
    ]


def causes(results: Timed, rank: int, own: list[int]) -> list[PieceDependency]:
    """What the pieces of one operation waited for: first what its begin waited for."""
    if not own:
        return []
    before = [_next_on_its_rank(results, rank, own[0] - 1)] if own[0] else []
    first, *inner = (_waited_for(results, rank, piece) for piece in own)
    return [
        *first,
        *before,
        *(piece_dependency for piece_dependencies in inner for piece_dependency in piece_dependencies),
    ]


def effects(results: Timed, rank: int, own: list[int]) -> list[PieceDependency]:
    """What the pieces of one operation hold back: other ranks first, then what its rank does next."""
    if not own:
        return []
    graph, ends = results.graph, results.ends
    piece_dependencies: list[PieceDependency] = []
    for piece in reversed(own):
        piece_dependencies += _received(results, rank, piece)
        nodes = {cause.node for cause in graph.graph.held(graph.over[rank][piece], ends, rank)}
        if graph.waits(rank, piece) and (meeting := results.ties.pieces[rank].meeting[piece]) != NONE:
            nodes.add(graph.meetings[meeting])
        for node in sorted(nodes):
            for follower in graph.graph.effects(node, ends):
                piece_dependencies += _held(results, rank, node, follower)
    after = own[-1] + 1
    if after < len(graph.over[rank]):
        piece_dependencies.append(PieceDependency(rank, after, _AFTER))
    return list(dict.fromkeys(piece_dependencies))


def _waited_for(results: Timed, rank: int, piece: int) -> list[PieceDependency]:
    """What had to be done before a piece could end: as the critical path has it."""
    graph, meeting = results.graph, results.ties.pieces[rank].meeting[piece]
    dependencies = []
    for cause in graph.waited_for(rank, piece, results.ends):
        reason, of = cause_reason(graph, meeting, rank, cause)
        where = graph.piece_of(cause.node, graph.graph.track_of(cause))
        if reason == BEFORE:
            dependencies.append(_next_on_its_rank(results, *where))
        else:
            dependencies.append(PieceDependency(*where, REASONS[reason].format(rank=_number(results, of))))
    return dependencies


def _next_on_its_rank(results: Timed, rank: int, piece: int) -> PieceDependency:
    """That it comes behind a piece of its own rank."""
    return PieceDependency(rank, piece, REASONS[reason_behind(results.ties, rank, piece)])


def _received(results: Timed, rank: int, piece: int) -> list[PieceDependency]:
    """The receive of what a piece sends."""
    sent = results.ties.pieces[rank].sent[piece]
    if sent == NONE:
        return []
    receiver, receiving = results.ties.transfers[sent][1]
    return [PieceDependency(receiver, receiving, _RECEIVES.format(rank=_number(results, receiver)))]


def _held(results: Timed, rank: int, node: int, meeting: int) -> list[PieceDependency]:
    """The members of a collective, a node, that wait in it because a node of this rank ended."""
    graph, ends = results.graph, results.ends
    number = graph.meeting_of(meeting)
    dependencies = []
    for who, _, waits in graph.ties.members[number] if number != NONE else ():
        held: list[Cause] = graph.waited_for(who, waits, ends)
        for cause in held:
            if cause.node != node:
                continue
            if cause.why != BUSY:
                dependencies.append(PieceDependency(who, waits, _WAITS.format(rank=_number(results, who))))
            elif who == rank:
                dependencies.append(PieceDependency(who, waits, _QUEUES))
    return dependencies


def _number(results: Timed, rank: int) -> int:
    return results.measured.ranks[rank].number
