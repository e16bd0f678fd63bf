"""What a collective algorithm is: the chain of messages that its slowest rank waits for."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from simcore.collectives.leg import Leg


class Messages(NamedTuple):
    """As many messages one after another as `times` says, each of `size` bytes over `hops` hops."""

    times: int
    hops: int
    size: int


class Reductions(NamedTuple):
    """As many reductions one after another as `times` says, each of `size` received bytes."""

    times: int
    size: int


class Steps(NamedTuple):
    """The chain of one collective on one dimension: what follows each other on the slowest rank."""

    messages: list[Messages]
    reductions: list[Reductions]

    def receives(self) -> int:
        """How many messages the slowest rank waits for, one after another."""
        return sum([times for times, _, _ in self.messages])

    def endpoints(self) -> int:
        """How often the endpoint delay is paid: before the first send and after each receive."""
        return 1 + self.receives()

    def messages_ns(self, leg: Leg) -> int:
        """Time of all messages; each is floored for itself."""
        return sum([times * leg.message_ns(hops, size) for times, hops, size in self.messages])

    def reductions_ns(self, leg: Leg) -> int:
        """Time of all reductions."""
        return sum([times * leg.reduction_ns(size) for times, size in self.reductions])

    def ns(self, leg: Leg) -> int:
        """How long the chain takes."""
        endpoints_ns = self.endpoints() * leg.cluster.endpoint_delay_ns
        return endpoints_ns + self.messages_ns(leg) + self.reductions_ns(leg)


class Algorithm(NamedTuple):
    """One way to run collectives on one dimension.

    steps: takes the members, the collective and its size in bytes (what one rank puts in: its
    shard for an all-gather, its whole buffer otherwise), and gives the chain of messages.
    power_of_two: only for such a number of members. has_alltoall: False, and an all-to-all
    runs direct instead.
    """

    steps: Callable[[Leg, str, int], Steps]
    power_of_two: bool = False
    has_alltoall: bool = True
