"""Who waits for whom in a measured run: in a collective for its last member, in a receive for the sender."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import compress

from simcore.measured.matching import Call, name_of
from simcore.records import NamedTuple, Struct
from simcore.sources.measured import BUBBLE, WAIT
from simcore.sources.measured_graph import MeasuredGraph
from simcore.trace.accounts import Accounts

# A table for `translate`: 1 for accounts of waits for another rank.
_WAITS = bytes(account in (WAIT, BUBBLE) for account in range(256))


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


def waits_of(
    graph: MeasuredGraph, ends: Sequence[int], rank: int, accounts: Accounts
) -> Iterator[LateArrival]:
    """Yields each time that a rank (its index) waits for another, in order."""
    for segment in compress(range(len(accounts.account)), accounts.account.translate(_WAITS)):
        segment_index = accounts.op[segment]
        times = accounts.edge[segment], accounts.edge[segment + 1]
        yield LateArrival(*times, segment_index, *graph.find_last_arrival(rank, segment_index, ends))


class RankWaiting(Struct, frozen=True):
    """How long rank `early` waits for rank `late` in the operation `name`."""

    early: int
    late: int
    """In collectives the last to arrive, in receives the sender."""
    name: str
    sub: bool
    """Whether `name` is a sub-operation."""
    ns: int


def find_waits(graph: MeasuredGraph, ends: Sequence[int], accounts: list[Accounts]) -> list[RankWaiting]:
    """Returns who waits for whom, the longest first; ranks by their ids."""
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
