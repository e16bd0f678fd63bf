"""One dimension's part of a group: its hops, and what messages and reductions cost there."""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from itertools import accumulate
from typing import NamedTuple

from simcore.cluster import Cluster, Crossing, Dimension
from simcore.cluster.placement import hops
from simcore.collectives.exact import floor_ns


class Leg(NamedTuple):
    """The members of a group on one dimension of a cluster, as an algorithm sees them.

    Members count from 0; on a ring they are in ring order. Formulas: ASTRA-sim 2.0,
    analytical backend, congestion-unaware.
    """

    cluster: Cluster
    crossing: Crossing

    @property
    def dimension(self) -> Dimension:
        """The dimension that is crossed."""
        return self.cluster.dims[self.crossing.dimension]

    @property
    def members(self) -> int:
        """How many members take part; 2 or more."""
        return self.crossing.members

    @property
    def shares_port(self) -> bool:
        """Whether all messages of an all-to-all leave through one port."""
        return self.cluster.alltoall_port_time and self.dimension.kind != "fully-connected"

    def message_ns(self, hop_count: int, size: int) -> int:
        """floor(hops * latency + size / bandwidth) of one message of `size` bytes."""
        dimension = self.dimension
        return floor_ns(size, dimension.bandwidth, ((hop_count, dimension.latency_ns),))

    def reduction_ns(self, size: int) -> int:
        """3 * floor(size / local memory bandwidth): two operands read, one result written."""
        return 3 * floor_ns(size, self.cluster.local_mem_bandwidth)

    def is_even(self) -> bool:
        """Whether all members see the same hops: always, but on a ring with unequal gaps."""
        return len(set(self.crossing.gaps)) <= 1

    def ring_hops(self) -> list[int]:
        """Hops from member 0 to each other member of a ring, in ring order."""
        return [hops(self.dimension, place) for place in self._places()[1:]]

    def farthest(self) -> int:
        """Hops between the two members that are farthest apart."""
        if self.is_even():
            return self._even_hops(self.members // 2)
        # Seen from the lower of two members, only those next to the opposite point can be farthest.
        places = self._places()
        most = 1
        for place in places:
            beyond = bisect(places, place + self.dimension.size // 2)
            for other in (places[beyond - 1], places[beyond % len(places)]):
                most = max(most, hops(self.dimension, abs(other - place)))
        return most

    def farthest_partners(self, distance: int) -> int:
        """Most hops between two members whose numbers differ in the bit `distance` alone."""
        if self.is_even():
            return self._even_hops(distance)
        places = self._places()
        return max(
            hops(self.dimension, abs(places[member ^ distance] - place))
            for member, place in enumerate(places)
        )

    def slowest_walk(self, steps: int) -> list[tuple[int, int]]:
        """(hops, how often) of the walk of `steps` messages from neighbour to neighbour with most hops.

        A packet goes round the ring from some member; the last rank is done when the slowest
        of these walks is.
        """
        if self.is_even():
            return [(self._even_hops(1), steps)]
        edges = [hops(self.dimension, gap) for gap in self.crossing.gaps]
        laps, rest = divmod(steps, len(edges))
        sums = [0, *accumulate(edges + edges)]
        start = max(range(len(edges)), key=lambda first: sums[first + rest] - sums[first])
        walk = Counter((edges + edges)[start : start + rest])
        for edge in edges:
            walk[edge] += laps
        return sorted(walk.items())

    def _even_hops(self, distance: int) -> int:
        """Hops to the member `distance` further on, the same for all where `is_even`."""
        gaps = self.crossing.gaps
        return hops(self.dimension, distance * gaps[0] if gaps else distance)

    def _places(self) -> list[int]:
        """Each member's place on the ring, counted from member 0."""
        return [0, *accumulate(self.crossing.gaps[:-1])]
