"""Direct with at most W messages in flight: `direct<W>` (ASTRA-sim 2.0, analytical backend)."""

from __future__ import annotations

from collections import Counter
from functools import partial
from heapq import heappop, heappush

from simcore.collectives.algorithm import Algorithm, Messages, Reductions, Steps
from simcore.collectives.algorithm_scope import AlgorithmScope, Route
from simcore.collectives.algorithms.direct import direct_steps, windowed_loads


def windowed_direct(window: int) -> Algorithm:
    """Returns `direct` with at most `window` messages in flight."""
    return Algorithm(partial(windowed_direct_steps, window), port_loads=partial(windowed_loads, window))


def windowed_direct_steps(window: int, scope: AlgorithmScope, collective: str, size: int) -> Steps:
    """Returns the chain of direct on N members with S bytes, at most `window` messages of a rank in flight.

    A rank sends to the members after it, in order; each message that has come in lets the next
    one go. The members of an evenly spaced ring, of a switch and of a fully-connected
    dimension have equal times, so one is simulated; elsewhere every message takes the slowest route.
    The messages of an all-to-all that are in flight together share the port that carries them.
    With N-1 or more in flight this is `direct`.
    """
    peers = scope.members - 1
    if window >= peers:
        return direct_steps(scope, collective, size)
    packet = size if collective == "ALLGATHER" else size // scope.members
    carried = packet
    if collective == "ALLTOALL":
        carried *= min(window, max(messages for _, messages in scope.port_loads()))
    if scope.is_even_ring():
        routes = [Route(scope.dimension, hops) for hops in scope.ring_hops()]
    else:
        routes = [scope.farthest(carried)] * peers
    route_ns = {route: scope.message_ns(route, carried) for route in set(routes)}
    delay = scope.cluster.endpoint_delay_ns
    chain = _slowest_chain(
        window, collective, [route_ns[route] for route in routes], delay, scope.reduction_ns(packet)
    )
    messages = Counter(routes[message % peers] for message, _ in chain)
    reductions = sum(reduced for _, reduced in chain)
    return Steps(
        [Messages(times, route, carried) for route, times in sorted(messages.items())],
        [Reductions(reductions, packet)] if reductions else [],
    )


def _slowest_chain(
    window: int, collective: str, message_ns: list[int], delay_ns: int, reduction_ns: int
) -> list[tuple[int, bool]]:
    """Returns (message, is reduced) of the chain of messages until a rank has finished, last one first.

    All members do the same at the same time, so what a rank sends as its k-th message comes in
    as its k-th one as well. Whether a message is reduced goes by its position among those received:
    the initial `window` packets and the received ones after them alternate, `window` by `window`,
    between plain and reduced; an all-reduce reduces every other time only. The second round of
    an all-reduce is held until the first has arrived (ASTRA-sim 2.0, AllToAll::run and
    Ring::insert_packet).
    """
    peers = len(message_ns)
    is_all_reduce = collective == "ALLREDUCE"
    total = 2 * peers if is_all_reduce else peers
    released_by: list[int] = []
    reduced = [False] * total
    sent_count = received = free = 0
    # (time, order, message, has arrived): first the window's own packets, then each message twice.
    events = [(delay_ns, slot, -1, True) for slot in range(window)]
    order = window
    last = -1
    while events:
        now, _, message, arrived = heappop(events)
        if not arrived:
            block, position = divmod(received + window, 2 * window)
            is_reduced = position >= window and (
                collective == "REDUCESCATTER" or (is_all_reduce and block % 2 == 0)
            )
            reduced[message] = is_reduced
            received += 1
            order += 1
            heappush(events, (now + delay_ns + is_reduced * reduction_ns, order, message, True))
            continue
        last = message
        free += 1
        releases = 1
        if is_all_reduce and total - sent_count <= peers:
            releases = window if received >= peers else 0
        for _ in range(min(releases, free, total - sent_count)):
            order += 1
            heappush(events, (now + message_ns[sent_count % peers], order, sent_count, False))
            released_by.append(message)
            sent_count += 1
            free -= 1
    chain = []
    while last >= 0:
        chain.append((last, reduced[last]))
        last = released_by[last]
    return chain
