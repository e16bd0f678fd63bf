"""Who waits for whom in a measured run: in a collective for its last member, in a receive for the sender."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import compress

from simcore.measured.matching import Call, name_of
from simcore.records import NamedTuple, Struct
from simcore.sources.measured import BUBBLE, IDLE, WAIT
from simcore.sources.measured_graph import MeasuredGraph
from simcore.sources.rendezvous import Rendezvous
from simcore.sources.segments import TRANSFER
from simcore.trace.accounts import Accounts

# Tables for `translate`: 1 for accounts of waits for another rank, and for idle time.
_WAITS = bytes(account in (WAIT, BUBBLE) for account in range(256))
_IDLE = bytes(account == IDLE for account in range(256))


class LateArrival(NamedTuple):
    """A time that a rank waits for another."""

    start: int
    end: int
    segment: int
    """The segment of the rank that waits."""
    rank: int
    """Index of the rank that arrives or sends late."""
    late_segment: int
    """The segment with which that rank arrives or sends."""

    @property
    def ns(self) -> int:
        """The length of the wait."""
        return self.end - self.start


class LastArrivals:
    """Who is waited for: the last to come to each collective, the sender of each message."""

    def __init__(self, graph: MeasuredGraph, ends: Sequence[int]) -> None:
        """ends: when each node of the graph ends, ns."""
        self.graph = graph
        self._ends = ends
        # Found once, not for each of 1,024 members: their number squared.
        self._last: dict[int, tuple[int, int]] = {}

    def find(self, rank: int, segment: int) -> tuple[int, int]:
        """Returns (rank, segment) that a waiting segment waits for; of several that come at the same time the
        lowest rank's.
        """
        rendezvous = self.graph.rendezvous
        segments = rendezvous.segments[rank]
        if segments.kind[segment] == TRANSFER:
            return rendezvous.transfers[segments.received[segment]][0]
        meeting = segments.meeting[segment]
        last = self._last.get(meeting)
        if last is None:
            arrivals, ends = self.graph.arrivals[meeting], self._ends
            late, _ = max(arrivals, key=lambda arrival: (ends[arrival[1]], -arrival[0]))
            came = next(came for who, came in rendezvous.coming(meeting) if who == late)
            last = self._last[meeting] = late, came
        return last


def waits_of(last_arrivals: LastArrivals, rank: int, accounts: Accounts) -> Iterator[LateArrival]:
    """Yields each time that a rank (its index) waits for another, in order."""
    for segment in compress(range(len(accounts.account)), accounts.account.translate(_WAITS)):
        segment_index = accounts.op[segment]
        times = accounts.edge[segment], accounts.edge[segment + 1]
        yield LateArrival(*times, segment_index, *last_arrivals.find(rank, segment_index))


def find_cut_waits(last_arrivals: LastArrivals, accounts: Sequence[Accounts]) -> list[list[LateArrival]]:
    """Returns by rank the idle times before a communication, beyond that of the member that comes last, in
    order: waiting that the files have cut off. last_arrivals: of the replay, which tells who comes last.
    """
    graph = last_arrivals.graph
    idle = [_idle_by_end(of_rank) for of_rank in accounts]
    waits: list[list[LateArrival]] = [[] for _ in accounts]
    for rank, of_rank in enumerate(waits):
        segments, reached = graph.rendezvous.segments[rank], 0
        # Collective -> the segment with which the rank comes to it: the first of it.
        came_to: dict[int, int] = {}
        for segment in range(len(segments)):
            meeting = segments.meeting[segment]
            came = segment if meeting < 0 else came_to.setdefault(meeting, segment)
            if not graph.can_wait(rank, segment):
                continue
            late, late_segment = last_arrivals.find(rank, segment)
            end = segments.start[came]
            begin = max(idle[rank].get(end, end), reached)
            late_begin = graph.rendezvous.segments[late].start[late_segment]
            end -= late_begin - idle[late].get(late_begin, late_begin)
            if late != rank and begin < end:
                of_rank.append(LateArrival(begin, end, segment, late, late_segment))
                reached = end
    return waits


def _idle_by_end(accounts: Accounts) -> dict[int, int]:
    """Returns when each idle time of a rank begins, by its end; those with nothing between are one."""
    begins: dict[int, int] = {}
    for index in compress(range(len(accounts.account)), accounts.account.translate(_IDLE)):
        begin, end = accounts.edge[index], accounts.edge[index + 1]
        begins[end] = begins.get(begin, begin)
    return begins


class RankWaiting(Struct, frozen=True):
    """How long rank `early` waits for rank `late` in the operation `name`."""

    early: int
    late: int
    """In collectives the last to arrive, in receives the sender."""
    name: str
    sub: bool
    """Whether `name` is a sub-operation."""
    ns: int


def find_waits(rendezvous: Rendezvous, waits: Iterable[Iterable[LateArrival]]) -> list[RankWaiting]:
    """Returns who waits for whom, the longest first; ranks by their ids. waits: of each rank."""
    waited: dict[tuple[int, int, str, bool], int] = {}
    ranks = rendezvous.run.ranks
    for rank, of_rank in enumerate(waits):
        segments = rendezvous.segments[rank]
        for wait in of_rank:
            call = Call(rank, segments.op[wait.segment], segments.sub[wait.segment])
            key = (ranks[rank].rank, ranks[wait.rank].rank, name_of(ranks[rank], call), call.sub >= 0)
            waited[key] = waited.get(key, 0) + wait.ns
    sums = [RankWaiting(*key, ns) for key, ns in waited.items()]
    return sorted(sums, key=lambda wait: (-wait.ns, wait.early, wait.late, wait.name))
