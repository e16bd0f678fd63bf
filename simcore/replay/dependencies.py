"""What an operation of a measured or replayed run waited for, and what it holds back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from simcore.replay.critical_path import BEFORE, REASONS
from simcore.replay.holds import LAST, QUEUED, held_by, hold
from simcore.replay.pieces import GAP, LAUNCH, MEET

if TYPE_CHECKING:
    from simcore.replay.results import MeasuredResults

_WAITS = "rank {rank} waits for it there"
_RECEIVES = "rank {rank} receives it"
_QUEUES = "the collective after it waits for it to be over"
_AFTER = "its rank does this next"


@dataclass(frozen=True, slots=True)
class Dependency:
    """A piece of a rank (its index) that is a cause or an effect, and in words why."""

    rank: int
    piece: int
    reason: str


def pieces_of_item(results: MeasuredResults, rank: int, item: int, span: tuple[int, int]) -> list[int]:
    """The pieces of an item of a lane (`LaneSpans`), ascending; of a gap those that lie in its span."""
    pieces, count = results.graph.pieces[rank], len(results.measured.ranks[rank].ops)
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


def causes(results: MeasuredResults, rank: int, own: list[int]) -> list[Dependency]:
    """What the pieces of one operation waited for: first what its begin waited for."""
    if not own:
        return []
    before = [Dependency(rank, own[0] - 1, REASONS[BEFORE])] if own[0] else []
    first = _waited_for(results, rank, own[0])
    inner = [one for piece in own[1:] if (one := _waited_for(results, rank, piece)) is not None]
    return [*([] if first is None else [first]), *before, *inner]


def effects(results: MeasuredResults, rank: int, own: list[int]) -> list[Dependency]:
    """What the pieces of one operation hold back: other ranks first, then what its rank does next."""
    if not own:
        return []
    pieces = results.graph.pieces[rank]
    found = []
    after = own[-1] + 1
    # A rank is held back by what the last member of a collective did before it came.
    for piece in (*own[::-1], after):
        if piece < len(pieces):
            found += _received(results, rank, piece) if piece != after else []
            found += _queued(results, rank, piece) if piece != after else []
            found += _held(results, rank, piece) if piece != own[0] or piece == after else []
    return [*found, *([Dependency(rank, after, _AFTER)] if after < len(pieces) else [])]


def _waited_for(results: MeasuredResults, rank: int, piece: int) -> Dependency | None:
    """What had to be done before a piece could end: as the critical path has it."""
    held = hold(results.graph, results.times, rank, piece)
    if held is None or held.piece < 0:
        return None
    return Dependency(held.rank, held.piece, REASONS[held.reason].format(rank=_number(results, held.rank)))


def _received(results: MeasuredResults, rank: int, piece: int) -> list[Dependency]:
    """The receive of what a piece sends."""
    sent = results.graph.pieces[rank].sent[piece]
    if sent < 0:
        return []
    receiver, receiving = results.graph.ends[sent][1]
    return [Dependency(receiver, receiving, _RECEIVES.format(rank=_number(results, receiver)))]


def _held(results: MeasuredResults, rank: int, piece: int) -> list[Dependency]:
    """The members of a collective that wait for this rank, which comes last to it; the rank itself where it
    has no compute left beside it.
    """
    pieces = results.graph.pieces[rank]
    if pieces.kind[piece] not in (MEET, LAUNCH):
        return []
    waiting = held_by(results.graph, results.times, pieces.meeting[piece], (LAST, rank, piece - 1))
    return [Dependency(who, at, _WAITS.format(rank=_number(results, who))) for who, at in waiting]


def _queued(results: MeasuredResults, rank: int, piece: int) -> list[Dependency]:
    """The members of the next collective of the group, where that waits for this one."""
    graph, meeting = results.graph, results.graph.pieces[rank].meeting[piece]
    if meeting < 0 or meeting not in graph.before:
        return []
    waiting = held_by(graph, results.times, graph.before.index(meeting), (QUEUED, rank, piece))
    return [Dependency(who, at, _QUEUES) for who, at in waiting]


def _number(results: MeasuredResults, rank: int) -> int:
    return results.measured.ranks[rank].number
