"""How far the clocks of ranks are apart: members of a collective see its end at one time."""

from __future__ import annotations

from collections.abc import Sequence

from simcore.flight.progress import Progress
from simcore.records import NamedTuple

# The last ends of a group that two ranks are compared by.
_MOST_ENDS = 64
# A watchdog looks for ends every 100 ms: smaller offsets, and those within the scatter, are none.
_LEAST_NS, _TIMES_SCATTER = 5_000_000, 4


class Offset(NamedTuple):
    """How far the clock of a rank is ahead of that of the lowest rank that it is tied to."""

    ns: int
    ends: int
    """Of how many ends it is the median; 0 of a rank that nothing ties to another one."""


def clock_offsets(progress: Sequence[dict[int, Progress]]) -> dict[int, Offset]:
    """Returns the offset of each rank that has a dump."""
    links: dict[int, list[tuple[int, Offset]]] = {}
    ranks: set[int] = set()
    for of_group in progress:
        ranks.update(of_group)
        ends = {rank: _ends(of) for rank, of in of_group.items()}
        members = [rank for rank in sorted(ends) if ends[rank]]
        for rank in members[1:]:
            offset = _offset(ends[members[0]], ends[rank])
            if offset is not None:
                links.setdefault(members[0], []).append((rank, offset))
                links.setdefault(rank, []).append((members[0], offset._replace(ns=-offset.ns)))
    offsets: dict[int, Offset] = {}
    for root in sorted(ranks):
        if root in offsets:
            continue
        offsets[root] = Offset(0, 0)
        queue = [root]
        for rank in queue:
            # The tie of most ends first.
            for other, link in sorted(links.get(rank, ()), key=lambda link: -link[1].ends):
                if other not in offsets:
                    offsets[other] = Offset(offsets[rank].ns + link.ns, link.ends)
                    queue.append(other)
    return offsets


def _ends(progress: Progress) -> dict[int, int]:
    """Returns the end of the last collectives by number, ns."""
    completed, collective = progress.entries.completed, progress.entries.collective
    rows = progress.collective_rows[-_MOST_ENDS:]
    return {collective[row]: completed[row] for row in rows if completed[row] > 0}


def _offset(first: dict[int, int], second: dict[int, int]) -> Offset | None:
    differences = sorted(second[sequence] - first[sequence] for sequence in first.keys() & second.keys())
    if not differences:
        return None
    median = differences[len(differences) // 2]
    scatter = sorted(abs(ns - median) for ns in differences)[len(differences) // 2]
    if abs(median) < max(_LEAST_NS, _TIMES_SCATTER * scatter):
        return Offset(0, len(differences))
    return Offset(median, len(differences))
