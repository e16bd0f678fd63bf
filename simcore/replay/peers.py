"""Which ranks do the same part of the work, so that the compute of one can be compared with the others.

They are the ranks of a stage. A profiler states no stage: there ranks that send to each other are stages of
one pipeline, and the peers of a rank have its position in the other pipelines, in the order of their ids. A
rank has no peers where pipelines differ, or where the other end of its sends and receives is missing.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from simcore.measured.device_messages import is_transfer
from simcore.measured.vocabulary import category_of_group
from simcore.sources.rendezvous import Rendezvous

# Groups whose ranks do the same work even where they send to each other.
_SAME_WORK = ("tp", "dp", "expert")


def peers_of(rendezvous: Rendezvous) -> list[tuple[int, ...]]:
    """Returns the peers of each rank, as indices, without itself."""
    positions = _pipeline_positions(rendezvous)
    return [
        tuple(
            other
            for other, there in enumerate(positions)
            if position is not None and there == position and other != index
        )
        for index, position in enumerate(positions)
    ]


def _pipeline_positions(rendezvous: Rendezvous) -> list[Hashable]:
    """Returns a value for each rank that it shares with its peers alone; None if it has no peers."""
    ranks = rendezvous.run.ranks
    if not rendezvous.run.of_devices:
        return [(rank.stage,) for rank in ranks]
    if any(rank.stage is not None for rank in ranks):
        return [None if rank.stage is None else (rank.stage,) for rank in ranks]
    links = set(_links(rendezvous))
    first = list(range(len(ranks)))
    for one, other in links:
        low, high = sorted((first[one], first[other]))
        first = [low if at == high else at for at in first]
    pipelines: dict[int, list[int]] = {}
    for index, at in enumerate(first):
        pipelines.setdefault(at, []).append(index)
    position_of = {index: position for some in pipelines.values() for position, index in enumerate(some)}
    shapes = {
        frozenset((position_of[one], position_of[other]) for one, other in links if first[one] == at)
        for at, some in pipelines.items()
        if len(some) > 1
    }
    lacking = {
        call.rank
        for call in rendezvous.matches.unmatched
        if is_transfer(ranks, call) and not _is_same_work(ranks[call.rank].ops.category(call.op))
    }
    positions: list[Hashable] = []
    for index, at in enumerate(first):
        if len(pipelines[at]) > 1:
            positions.append((len(pipelines[at]), position_of[index]) if len(shapes) == 1 else None)
        else:
            positions.append(None if index in lacking else ())
    return positions


def _links(rendezvous: Rendezvous) -> Iterator[tuple[int, int]]:
    """Yields (sender, receiver) of the ranks that send to each other between stages."""
    for meeting in rendezvous.matches.meetings:
        if not meeting.is_message or _is_same_work(category_of_group(meeting.kind)):
            continue
        if meeting.sender is not None:
            yield meeting.sender.rank, meeting.calls[0].rank
        elif len(meeting.calls) > 1:
            yield meeting.calls[0].rank, meeting.calls[1].rank


def _is_same_work(category: str) -> bool:
    return category in _SAME_WORK
