"""What a piece waited for, on another rank or in the queue of a group: one rule for all that walk there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from simcore.replay.accounts import late_rank
from simcore.replay.graph import NONE, Graph, Times
from simcore.replay.pieces import AWAIT, MEET, TRANSFER

MESSAGE, LAST, QUEUED = "message", "last", "queued"


class Hold(NamedTuple):
    """Why a piece could not end earlier. rank (its index), piece: what held it; reason: how, see above.

    since: when that was over, ns: from there on the piece takes its own time.
    """

    reason: str
    rank: int
    piece: int
    since: int


class _Begin(NamedTuple):
    """When a collective begins, ns; late, came: the rank that comes last and with which piece. queue: of the
    members of the collective before it the pieces that wait, where that is over later.
    """

    since: int
    late: int
    came: int
    queue: Mapping[int, int] | None


def hold(graph: Graph, times: Times, rank: int, piece: int) -> Hold | None:
    """What held a piece longest, None where its rank itself did: it came last, or had compute to do."""
    pieces = graph.pieces[rank]
    if not times.together:
        return None
    if pieces.kind[piece] == TRANSFER and pieces.received[piece] >= 0:
        return _sender(graph, times, rank, piece)
    if pieces.kind[piece] not in (MEET, AWAIT):
        return None
    meeting = pieces.meeting[piece]
    return _of_member(graph, times, _begin(graph, times, meeting), rank, piece)


def held_by(graph: Graph, times: Times, meeting: int, by: tuple[str, int, int]) -> list[tuple[int, int]]:
    """(rank, piece) of the members of a collective that this holds: how, its rank and its piece."""
    if not times.together:
        return []
    begin = _begin(graph, times, meeting)
    holds = (
        (who, waits, _of_member(graph, times, begin, who, waits)) for who, _, waits in graph.members[meeting]
    )
    return [(who, waits) for who, waits, one in holds if one is not None and one[:3] == by]


def arrival(graph: Graph, times: Times, rank: int, meeting: int) -> Hold:
    """Why a collective that a rank is in did not begin earlier."""
    return _arrival(_begin(graph, times, meeting), rank)


def _begin(graph: Graph, times: Times, meeting: int) -> _Begin:
    members, before = graph.members[meeting], graph.before[meeting]
    rank, _, piece = members[0]
    late = late_rank(graph, times, rank, piece)
    came = next(piece for who, piece, _ in members if who == late)
    since = times.start[late][came]
    if before != NONE and times.meetings[before][1] > since:
        queue = {who: piece for who, _, piece in graph.members[before]}
        return _Begin(times.meetings[before][1], late, came, queue)
    return _Begin(since, late, came, None)


def _arrival(begin: _Begin, rank: int) -> Hold:
    """A collective's begin as a member has it: in a queue its own part of the one before counts, if any."""
    if begin.queue is None:
        return Hold(LAST, begin.late, begin.came - 1, begin.since)
    who = rank if rank in begin.queue else min(begin.queue)
    return Hold(QUEUED, who, begin.queue[who], begin.since)


def _of_member(graph: Graph, times: Times, begin: _Begin, rank: int, piece: int) -> Hold | None:
    pieces, start = graph.pieces[rank], times.start[rank][piece]
    if pieces.kind[piece] == AWAIT:
        # Where compute beside the collective took longer, nothing held it.
        return _arrival(begin, rank) if times.meetings[pieces.meeting[piece]][1] > start else None
    return _arrival(begin, rank) if begin.since > start else None


def _sender(graph: Graph, times: Times, rank: int, piece: int) -> Hold | None:
    """The send that a receive waited for; of a send and a receive in one, where its own send was over."""
    pieces = graph.pieces[rank]
    (sender, sending), _ = graph.ends[pieces.received[piece]]
    there = times.messages[pieces.received[piece]][1]
    sent = pieces.sent[piece]
    free = times.start[rank][piece] if sent < 0 else times.messages[sent][1]
    return Hold(MESSAGE, sender, sending, there) if there > free else None
