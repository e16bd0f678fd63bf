"""A workload's collectives and transfers as messages on links, while the engine runs it (`--network links`).

The engine says when a collective or transfer begins, and learns when its last rank has finished. Between the
two every message waits for the links on its route. The chunks of a collective wait for each other as on an
idle network; collectives of other streams meet it on links alone: in queues of one rank two of them could
wait for each other for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from simcore.cluster import Cluster
from simcore.diagnostics import UsageError
from simcore.messages.alone import make_rules
from simcore.messages.clock import Clock, Fault
from simcore.messages.collectives import Communicator, RankCollectives
from simcore.messages.network import TRANSFER_TAG, LinkByLink, LinkHeat, LinkUse
from simcore.records import NamedTuple

# ASTRA-sim refuses messages of 0 ns at the first instant: this clock runs one ns ahead.
_AHEAD_NS = 1


class Payload(NamedTuple):
    """Bytes of the whole buffer that a collective moves, or with None a transfer."""

    collective: str | None
    size: int

    def scaled(self, factor: float) -> Payload:
        """Returns the payload with `factor` times the bytes: for messages on links no duration is
        known before.
        """
        return self if factor == 1.0 else Payload(self.collective, round(self.size * factor))


class LinkTraffic:
    """The links of a run with their traffic. Time is ns and never goes back.

    ranks: the rank of each rank class of the engine. At every instant: `finished`, any number of `start`.
    """

    def __init__(self, cluster: Cluster, ranks: Sequence[int]) -> None:
        self._ranks = ranks
        self._clock = Clock(cluster.npus)
        self._links = LinkByLink(self._clock, cluster.dims)
        self._rules = make_rules(cluster)
        self._owners: dict[tuple[int, int], RankCollectives] = {}
        self._groups: dict[tuple[tuple[int, ...], int], Communicator] = {}
        self._left: dict[int, int] = {}
        self._over: list[object] = []
        self._started = 0

    def start(
        self,
        now: int,
        token: object,
        payload: Payload,
        senders: Sequence[int],
        receivers: Sequence[int],
        stream: int,
    ) -> None:
        """Begins a collective of rank classes, or a transfer from one to another.

        Raises `UsageError` for one that never ends.
        """
        self._clock.now = now + _AHEAD_NS
        if not payload.size:
            self._over.append(token)
            return
        self._started += 1
        if payload.collective is None:
            ends = self._ranks[senders[0]], self._ranks[receivers[0]]
            key = (TRANSFER_TAG + self._started, *ends, payload.size)
            self._links.send(key, self._arrived, token)
            self._links.receive(key, _nothing, None)
            return
        ranks = tuple(sorted(self._ranks[sender] for sender in senders))
        group = self._groups.get((ranks, stream))
        if group is None:
            whole = len(ranks) == self._clock.ranks
            group = Communicator(len(self._groups) + 1, None if whole else ranks, True)
            self._groups[ranks, stream] = group
        size = -(-payload.size // len(ranks)) if payload.collective == "ALLGATHER" else payload.size
        start_id = self._started
        self._left[start_id] = len(ranks)
        over: Callable[[], None] = partial(self._end_member, start_id, token)
        try:
            for rank in ranks:
                owner = self._owners.get((rank, stream))
                if owner is None:
                    owner = RankCollectives(rank, self._clock, self._links, self._rules)
                    self._owners[rank, stream] = owner
                never = owner.start(payload.collective, max(size, 1), group, (), over)
                if never:
                    raise UsageError(f"--network links: {never}")
        except Fault as fault:
            raise UsageError(f"--network links: {fault.rule}") from None

    def _arrived(self, token: object) -> None:
        self._over.append(token)

    def _end_member(self, start_id: int, token: object) -> None:
        self._left[start_id] -= 1
        if not self._left[start_id]:
            del self._left[start_id]
            self._over.append(token)

    def next_ns(self) -> int | None:
        """Returns when something happens next; None when no message is in flight."""
        if self._over:
            return self._clock.now - _AHEAD_NS
        following = self._clock.next_ns()
        return None if following is None else following - _AHEAD_NS

    def run_ahead(self, last: int | None) -> int:
        """Runs nothing: at most instants something is over, or starts."""
        return 0

    def finished(self, now: int) -> list[object]:
        """Returns the tokens of what is over at `now`, in the order in which it ended. Raises
        `UsageError`.
        """
        try:
            self._clock.run_until(now + _AHEAD_NS)
        except Fault as fault:
            raise UsageError(f"--network links: {fault.rule}") from None
        over, self._over = self._over, []
        return over

    def settle(self, now: int) -> None:
        """Checks for deadlocks; nothing is shared anew, as a message has a link to itself.

        Raises `UsageError` for collectives that wait for ever: no other one could let them go on.
        """
        if self._left and not self._over and self._clock.next_ns() is None:
            why = next((owner.never for owner in self._owners.values() if owner.never), "")
            why = why or "chunks of a collective come to a dimension in another order on each rank"
            raise UsageError(f"--network links: {why}")

    def heat(self) -> LinkHeat:
        """Returns how busy the links are over the run."""
        return self._links.heat()

    def flow_report(self) -> None:
        """Returns None: messages are no flows."""

    def uses(self) -> list[LinkUse]:
        """Returns the use of each link that carried anything."""
        return self._links.uses()


def _nothing(_: object) -> None:
    """Does nothing: a transfer is over for both its ends at once."""


def alone_ns(cluster: Cluster, ranks: Sequence[int], payload: Payload) -> int:
    """Returns the ns of a collective on idle links, until its last rank has finished. Raises `UsageError`."""
    traffic = LinkTraffic(cluster, ranks)
    members = range(len(ranks))
    traffic.start(0, payload, payload, members, members, 0)
    now = 0
    while not traffic.finished(now):
        traffic.settle(now)
        following = traffic.next_ns()
        assert following is not None
        now = following
    return now
