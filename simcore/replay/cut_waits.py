"""Whether files have cut waiting off communication: then idle time is waiting, and a replay has none."""

from __future__ import annotations

from collections.abc import Iterator

from simcore.sources.rendezvous import Rendezvous
from simcore.sources.segments import GAP

# Members begin at once if no more than this part of the longest idle time before lies between them.
_AT_ONCE = 20
# Idle time before such communication is waiting where it is so many times the waiting inside of others, and
# this share of all time.
_TIMES, _SHARE = 10, 0.02


def cuts_waits(rendezvous: Rendezvous) -> bool:
    """Returns whether the members of a communication begin it at once, most of them after idle time: nobody
    waits inside of it, though some must have come later than others. Only where all times are on one clock.
    """
    recorded = rendezvous.run.recorded
    if recorded is None or not recorded.on_one_clock:
        return False
    cut_ns = inside_ns = 0
    for members in _members(rendezvous):
        starts, idle_ns = [], []
        for rank, segment in members:
            segments = rendezvous.segments[rank]
            starts.append(segments.start[segment])
            is_idle = segment > 0 and segments.kind[segment - 1] == GAP
            idle_ns.append(segments.end[segment - 1] - segments.start[segment - 1] if is_idle else 0)
        last = max(starts)
        inside_ns += sum(last - start for start in starts)
        if _AT_ONCE * (last - min(starts)) <= max(idle_ns):
            cut_ns += sum(idle_ns) - len(idle_ns) * min(idle_ns)
    whole_ns = rendezvous.run.step_time_ns * len(rendezvous.segments)
    return cut_ns > _TIMES * inside_ns and cut_ns > _SHARE * whole_ns


def _members(rendezvous: Rendezvous) -> Iterator[list[tuple[int, int]]]:
    """Yields (rank, segment) of those that take part in each communication of several."""
    for meeting in range(len(rendezvous.members)):
        coming = rendezvous.coming(meeting)
        if len(coming) > 1:
            yield coming
    for ends in rendezvous.transfers:
        yield [*ends]
