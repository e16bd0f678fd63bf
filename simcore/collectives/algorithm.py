"""What a collective algorithm is: the chain of messages that its slowest rank waits for."""

from __future__ import annotations

from collections.abc import Callable

from simcore.collectives.algorithm_scope import AlgorithmScope, Route
from simcore.records import NamedTuple


class Messages(NamedTuple):
    """A sequence of `times` messages, one after another, each of `size` bytes over `route`."""

    times: int
    route: Route
    size: int


class Reductions(NamedTuple):
    """A sequence of `times` reductions, one after another, each of `size` received bytes."""

    times: int
    size: int


class Steps(NamedTuple):
    """The chain of one collective in one scope: what the slowest rank does, one after another.

    Its time has two parts: a fixed one (endpoint delays, hops, reductions) and that of the bytes of
    its messages, which are counted by dimension.
    """

    messages: list[Messages]
    reductions: list[Reductions]

    def receives(self) -> int:
        """Returns how many messages the rank waits for, one after another."""
        return sum([times for times, _, _ in self.messages])

    def endpoints(self) -> int:
        """Returns how often the endpoint delay is paid: before the first send and after each receive."""
        return 1 + self.receives()

    def messages_ns(self, scope: AlgorithmScope) -> int:
        """Returns the time of all messages, ns; each is floored by itself."""
        return sum([times * scope.message_ns(route, size) for times, route, size in self.messages])

    def reductions_ns(self, scope: AlgorithmScope) -> int:
        """Returns the time of all reductions, ns."""
        return sum([times * scope.reduction_ns(size) for times, size in self.reductions])

    def ns(self, scope: AlgorithmScope) -> int:
        """Returns how long the chain takes, ns."""
        endpoints_ns = self.endpoints() * scope.cluster.endpoint_delay_ns
        return endpoints_ns + self.messages_ns(scope) + self.reductions_ns(scope)


class PortLoad(NamedTuple):
    """`size` bytes that the busiest member moves on a dimension, each way, over `links` at a time."""

    dimension: int
    size: int
    links: int


class Algorithm(NamedTuple):
    """One way to run collectives in one scope."""

    steps: Callable[[AlgorithmScope, str, int], Steps]
    """Takes the members, the collective and its size in bytes (what one rank puts in: its shard for an
    all-gather, its whole buffer otherwise), and gives the chain of messages until the last rank has finished.
    """
    first_steps: Callable[[AlgorithmScope, str, int], Steps] | None = None
    """The same until the first rank has finished, None where all ranks finish together."""
    port_loads: Callable[[AlgorithmScope, str, int], list[PortLoad]] | None = None
    """Takes the same and gives what the ports carry, None where that is just the messages of the chain, one
    at a time.
    """
    power_of_two: bool = False
    """Whether the number of members must be a power of two."""
    has_alltoall: bool = True
    """If false, an all-to-all runs direct instead."""
    takes_flat_group: bool = False
    """Whether it takes all dimensions of the group as one flat group."""
    is_tree: bool = False
    """Whether ranks have equal times only at equal positions of a tree. A tree runs an all-reduce of the
    bytes that it gets, whatever the collective is.
    """
