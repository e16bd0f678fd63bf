"""Max-min fair rates of flows that cross links, each of which has one unit of time."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush

# What a flow takes of its links: (link, ns of it for each byte).
Uses = Sequence[tuple[int, float]]


def fair_rates(
    uses: Sequence[Uses], counts: Sequence[int], caps: Sequence[float]
) -> tuple[list[float], list[int]]:
    """Returns bytes per ns of each flow of each bundle, and the full link that holds it back, -1 at its cap.

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
        return ([caps[0]], [-1]) if caps[0] < rate else ([rate], [link])
    left: dict[int, float] = {}
    weights: dict[int, float] = {}
    there_by_link: dict[int, list[int]] = {}
    for index, entries in enumerate(uses):
        count = counts[index]
        for link, share in entries:
            if link in weights:
                weights[link] += share * count
                there_by_link[link].append(index)
            else:
                left[link] = 1.0
                weights[link] = share * count
                there_by_link[link] = [index]
    rising = {link: len(there) for link, there in there_by_link.items()}
    heap = [(1.0 / weight, link) for link, weight in weights.items()]
    heapify(heap)
    capped = sorted(((cap, index) for index, cap in enumerate(caps) if cap != float("inf")), reverse=True)
    rates = [-1.0] * len(uses)
    bottlenecks = [-1] * len(uses)
    missing = len(uses)

    while missing:
        while heap and not rising[heap[0][1]]:
            heappop(heap)
        while capped and rates[capped[-1][1]] >= 0:
            capped.pop()
        level, link = heap[0]
        current = max(level, left[link] / weights[link])
        if current > level * (1 + 1e-12):
            heappop(heap)
            heappush(heap, (current, link))
            continue
        if capped and capped[-1][0] <= level:
            level, index = capped.pop()
            stopping, link = [index], -1
        else:
            heappop(heap)
            stopping = [index for index in there_by_link[link] if rates[index] < 0]
        for index in stopping:
            if rates[index] >= 0:
                continue
            rates[index] = level
            bottlenecks[index] = link
            missing -= 1
            count = counts[index]
            for other, share in uses[index]:
                weight = share * count
                left[other] -= level * weight
                weights[other] -= weight
                rising[other] -= 1
    return rates, bottlenecks
