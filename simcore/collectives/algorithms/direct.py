"""Direct: every member sends to every other one at once (ASTRA-sim 2.0, analytical backend)."""

from __future__ import annotations

from simcore.collectives.algorithm import Algorithm, Messages, PortLoad, Reductions, Steps
from simcore.collectives.algorithm_scope import AlgorithmScope, Route


def direct_steps(scope: AlgorithmScope, collective: str, size: int) -> Steps:
    """Returns the chain of direct on N members with S bytes: messages of floor(S / N), of S in an all-gather.

    One round, waited for until the farthest peer's message is in; an all-reduce takes two.
    Every message has the whole bandwidth, but those of an all-to-all share a port that
    carries them all: there the round takes the time of (N-1) * floor(S / N) bytes.
    """
    packet = size if collective == "ALLGATHER" else size // scope.members
    if collective == "ALLREDUCE":
        return _all_reduce(scope, packet)
    if collective == "ALLTOALL":
        loads = [Messages(1, route, messages * packet) for route, messages in scope.port_loads()]
        slowest = max(loads, key=lambda load: scope.message_ns(load.route, load.size))
        return Steps([slowest], [])
    reduces = collective == "REDUCESCATTER"
    return Steps([Messages(1, scope.farthest(packet), packet)], [Reductions(1, packet)] if reduces else [])


def direct_loads(scope: AlgorithmScope, collective: str, size: int) -> list[PortLoad]:
    """Returns what a member's ports carry each way: a message for each other member, two in an all-reduce."""
    return windowed_loads(scope.members, scope, collective, size)


def windowed_loads(window: int, scope: AlgorithmScope, collective: str, size: int) -> list[PortLoad]:
    """Returns the same with at most `window` messages in flight, which use as many links at most."""
    packet = size if collective == "ALLGATHER" else size // scope.members
    rounds = 2 if collective == "ALLREDUCE" else 1
    return [
        PortLoad(dimension, rounds * peers * packet, min(links, window))
        for dimension, peers, links in scope.peers()
    ]


def _all_reduce(scope: AlgorithmScope, packet: int) -> Steps:
    """Returns the chain of an all-reduce: two rounds; on an even ring near peers may release the second
    early.

    A rank holds its second-round sends until all packets of the first have arrived. The next
    reduction to end then releases one send for each packet reduced by then, and every later
    reduction one more; sends go out in ring order. With large packets reductions end long
    after the last arrival: the near peers' packets, reduced first, release the sends to the
    far peers, and the chain is shorter than two farthest messages.
    """
    first = second = scope.farthest(packet)
    if scope.is_even_ring():
        sends = [Route(scope.dimension, hops) for hops in scope.ring_hops()]
        arrivals = sorted(sends)
        all_arrived = scope.message_ns(arrivals[-1], packet)
        reduced_after = scope.cluster.endpoint_delay_ns + scope.reduction_ns(packet)
        opens = next(way for way in arrivals if scope.message_ns(way, packet) + reduced_after >= all_arrived)
        chains = [(max(opens, arrival), send) for arrival, send in zip(arrivals, sends, strict=True)]
        first, second = max(chains, key=lambda chain: chain[0].hops + chain[1].hops)
    return Steps([Messages(1, first, packet), Messages(1, second, packet)], [Reductions(1, packet)])


ALGORITHM = Algorithm(direct_steps, port_loads=direct_loads)
