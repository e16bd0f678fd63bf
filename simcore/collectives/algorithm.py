"""What a collective algorithm is: the chain of messages that its slowest rank waits for."""

from __future__ import annotations

from collections.abc import Callable

from simcore.collectives.algorithm_scope import AlgorithmScope, Route
from simcore.records import NamedTuple


class Messages(NamedTuple):
    """As many messages one after another as `times` says, each of `size` bytes over `route`."""

    times: int
    route: Route
    size: int


class Reductions(NamedTuple):
    """As many reductions one after another as `times` says, each of `size` received bytes."""

    times: int
    size: int


class Steps(NamedTuple):
    """The chain of one collective on one leg: what follows each other on one rank, the slowest.

    Its time has two parts: fixed (endpoint delays, hops, reductions) and that of the bytes of
    its messages, which are told apart by dimension.
    """

    messages: list[Messages]
    reductions: list[Reductions]

    def receives(self) -> int:
        """How many messages the rank waits for, one after another."""
        return sum([times for times, _, _ in self.messages])

    def endpoints(self) -> int:
        """How often the endpoint delay is paid: before the first send and after each receive."""
        return 1 + self.receives()

    def messages_ns(self, scope: AlgorithmScope) -> int:
        """Time of all messages; each is floored for itself."""
        return sum([times * scope.message_ns(route, size) for times, route, size in self.messages])

    def reductions_ns(self, scope: AlgorithmScope) -> int:
        """Time of all reductions."""
        return sum([times * scope.reduction_ns(size) for times, size in self.reductions])

    def ns(self, scope: AlgorithmScope) -> int:
        """How long the chain takes."""
        endpoints_ns = self.endpoints() * scope.cluster.endpoint_delay_ns
        return endpoints_ns + self.messages_ns(scope) + self.reductions_ns(scope)


class PortLoad(NamedTuple):
    """`size` bytes that the busiest member moves on a dimension, each way, over `links` at a time."""

    dimension: int
    size: int
    links: int


class Algorithm(NamedTuple):
    """One way to run collectives on one leg.

    steps: takes the members, the collective and its size in bytes (what one rank puts in: its
    shard for an all-gather, its whole buffer otherwise), and gives the chain of messages until
    the last rank is done. first_steps: the same until the first rank is done, or None where all
    ranks are done together. port_loads: takes the same and gives what the ports carry, or None
    where that is just the messages of the chain, one at a time. power_of_two: only for such a
    number of members. has_alltoall: False, and an all-to-all runs direct instead. whole: takes
    all dimensions of the group as one flat group. is_tree: ranks are alike only at equal places
    of a tree, and it runs an all-reduce of the bytes it is given whatever was asked for.
    """

    steps: Callable[[AlgorithmScope, str, int], Steps]
    first_steps: Callable[[AlgorithmScope, str, int], Steps] | None = None
    port_loads: Callable[[AlgorithmScope, str, int], list[PortLoad]] | None = None
    power_of_two: bool = False
    has_alltoall: bool = True
    takes_flat_group: bool = False
    is_tree: bool = False
