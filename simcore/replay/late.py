"""Who waits for whom in a measured run: in a collective for its last member, in a receive for the sender."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from simcore.measured.matching import Call, name_of
from simcore.records import NamedTuple, Struct
from simcore.sources.measured import BUBBLE, WAIT
from simcore.sources.measured_graph import MeasuredGraph
from simcore.trace.accounts import Accounts


class LateArrival(NamedTuple):
    """A time that a rank waits, ns, in `piece` for the rank `rank` (its index), which comes or sends with its
    piece `came`.
    """

    start: int
    end: int
    segment: int
    rank: int
    late_segment: int

    @property
    def ns(self) -> int:
        """How long it is."""
        return self.end - self.start


def waits_of(
    graph: MeasuredGraph, ends: Sequence[int], rank: int, accounts: Accounts
) -> Iterator[LateArrival]:
    """Each time that a rank (its index) waits for another, in order."""
    for segment, account in enumerate(accounts.account):
        if account in (WAIT, BUBBLE):
            segment_index = accounts.op[segment]
            times = accounts.edge[segment], accounts.edge[segment + 1]
            yield LateArrival(*times, segment_index, *graph.find_last_arrival(rank, segment_index, ends))


class RankWaiting(Struct, frozen=True):
    """Rank `early` waits `ns` for rank `late` in the operation `name`: in collectives for the one that comes
    last, in receives for the sender. sub: whether `name` is a sub-operation.
    """

    early: int
    late: int
    name: str
    sub: bool
    ns: int


def find_waits(graph: MeasuredGraph, ends: Sequence[int], accounts: list[Accounts]) -> list[RankWaiting]:
    """Who waits for whom, the longest first; ranks by their numbers."""
    waited: dict[tuple[int, int, str, bool], int] = {}
    ranks = graph.rendezvous.run.ranks
    for rank, account in enumerate(accounts):
        segments = graph.rendezvous.segments[rank]
        for wait in waits_of(graph, ends, rank, account):
            call = Call(rank, segments.op[wait.segment], segments.sub[wait.segment])
            key = (ranks[rank].rank, ranks[wait.rank].rank, name_of(ranks[rank], call), call.sub >= 0)
            waited[key] = waited.get(key, 0) + wait.ns
    waits = [RankWaiting(*key, ns) for key, ns in waited.items()]
    return sorted(waits, key=lambda wait: (-wait.ns, wait.early, wait.late, wait.name))
