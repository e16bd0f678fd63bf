"""Max-min fair rates of flows that cross links, each of which has one unit of time."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heapreplace
from typing import Any

# What a flow takes of its links: (link, ns of it for each byte).
Uses = Sequence[tuple[int, float]]
_NO_CAP = float("inf")
# A link is full with less than this part of it left: rounding leaves 1e-13, and a port that a GPU's own port
# spares has 1e-6 (`_FIRST_PORT` of the traffic).
_LEFT = 1e-7


def fair_rates(
    uses: Sequence[Uses], counts: Sequence[int], caps: Sequence[float]
) -> tuple[list[float], list[int], set[int]]:
    """Returns bytes per ns of each flow of each bundle, the full link that holds it back, -1 at its cap, and
    all full links: of those that become full together one holds a bundle back.

    All rates rise together; where a link is full, or a bundle is at its cap, they stay. counts: equal flows
    of each bundle. A link becomes full at a level that never falls while others stop below it, so that the
    lowest one of a heap is right once its level is no longer out of date.
    """
    if len(uses) == 1:
        shares: dict[int, float] = {}
        for link, share in uses[0]:
            shares[link] = shares.get(link, 0.0) + share
        link = max(shares, key=lambda link: shares[link])
        rate = 1.0 / (shares[link] * counts[0])
        if caps[0] < rate:
            return [caps[0]], [-1], set()
        return [rate], [link], {one for one, share in shares.items() if share > shares[link] * (1 - _LEFT)}
    # Link -> [what is left of it, what a unit of rate of those that still rise takes, how many these are,
    # their bundles].
    states: dict[int, list[Any]] = {}
    for index, entries in enumerate(uses):
        count = counts[index]
        for link, share in entries:
            state = states.get(link)
            if state is None:
                states[link] = [1.0, share * count, 1, [index]]
            else:
                state[1] += share * count
                state[2] += 1
                state[3].append(index)
    heap = [(1.0 / state[1], link) for link, state in states.items()]
    heapify(heap)
    capped = sorted(((cap, index) for index, cap in enumerate(caps) if cap != _NO_CAP), reverse=True)
    rates = [-1.0] * len(uses)
    bottlenecks = [-1] * len(uses)
    missing = len(uses)

    while missing:
        while heap and not states[heap[0][1]][2]:
            heappop(heap)
        while capped and rates[capped[-1][1]] >= 0:
            capped.pop()
        level, link = heap[0]
        state = states[link]
        current = max(level, state[0] / state[1])
        if current > level * (1 + 1e-12):
            heapreplace(heap, (current, link))
            continue
        if capped and capped[-1][0] <= level:
            level, index = capped.pop()
            stopping, link = [index], -1
        else:
            heappop(heap)
            stopping = state[3]
        for index in stopping:
            if rates[index] >= 0:
                continue
            rates[index] = level
            bottlenecks[index] = link
            missing -= 1
            count = counts[index]
            for other, share in uses[index]:
                state = states[other]
                weight = share * count
                state[0] -= level * weight
                state[1] -= weight
                state[2] -= 1
    return rates, bottlenecks, {link for link, state in states.items() if state[0] < _LEFT}
