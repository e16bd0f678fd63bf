"""What an operation of a measured or replayed run waited for, and what it holds back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from simcore.measured.replay.accounts import late_rank
from simcore.measured.replay.critical_path import BEFORE, LAST, MESSAGE, REASONS
from simcore.measured.replay.pieces import AWAIT, GAP, LAUNCH, MEET, TRANSFER

if TYPE_CHECKING:
    from simcore.measured.replay.results import MeasuredResults

_WAITS = "rank {rank} waits for it there"
_RECEIVES = "rank {rank} receives it"
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
            found += _held(results, rank, piece) if piece != own[0] or piece == after else []
    return [*found, *([Dependency(rank, after, _AFTER)] if after < len(pieces) else [])]


def _waited_for(results: MeasuredResults, rank: int, piece: int) -> Dependency | None:
    """What another rank had to do before a piece could end."""
    graph, times = results.graph, results.times
    pieces, start = graph.pieces[rank], times.start[rank][piece]
    if not times.together:
        return None
    if pieces.kind[piece] in (MEET, AWAIT):
        late = late_rank(graph, times, rank, piece)
        arrival = _arrival(results, pieces.meeting[piece], late)
        if late == rank or times.start[late][arrival] <= start or not arrival:
            return None
        return Dependency(late, arrival - 1, REASONS[LAST].format(rank=_number(results, late)))
    if pieces.kind[piece] == TRANSFER and pieces.received[piece] >= 0:
        (sender, sending), _ = graph.ends[pieces.received[piece]]
        if times.messages[pieces.received[piece]][1] <= start:
            return None
        return Dependency(sender, sending, REASONS[MESSAGE].format(rank=_number(results, sender)))
    return None


def _received(results: MeasuredResults, rank: int, piece: int) -> list[Dependency]:
    """The receive of what a piece sends."""
    sent = results.graph.pieces[rank].sent[piece]
    if sent < 0:
        return []
    receiver, receiving = results.graph.ends[sent][1]
    return [Dependency(receiver, receiving, _RECEIVES.format(rank=_number(results, receiver)))]


def _held(results: MeasuredResults, rank: int, piece: int) -> list[Dependency]:
    """The members of a collective that wait for this rank, which comes last to it."""
    graph, times = results.graph, results.times
    pieces = graph.pieces[rank]
    if pieces.kind[piece] not in (MEET, LAUNCH) or not times.together:
        return []
    meeting, came = pieces.meeting[piece], times.start[rank][piece]
    if late_rank(graph, times, rank, piece) != rank:
        return []
    return [
        Dependency(who, waiting, _WAITS.format(rank=_number(results, who)))
        for who, _, waiting in graph.members[meeting]
        if who != rank and times.start[who][waiting] < came
    ]


def _arrival(results: MeasuredResults, meeting: int, rank: int) -> int:
    return next(piece for who, piece, _ in results.graph.members[meeting] if who == rank)


def _number(results: MeasuredResults, rank: int) -> int:
    return results.measured.ranks[rank].number
