"""Where one algorithm runs: its members, their hops, and what messages and reductions cost there."""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from itertools import accumulate

from simcore.cluster import Cluster, Crossing, Dimension
from simcore.cluster.placement import hops, members_of
from simcore.collectives.exact import floor_ns
from simcore.records import NamedTuple


class Route(NamedTuple):
    """The way of one message: the dimension that charges it, and its hops there."""

    dimension: int
    hops: int


class Reach(NamedTuple):
    """The members of a group on the dimensions that one algorithm runs over, as it sees them.

    One dimension, but for the algorithms that take a whole grid as one flat group: then members
    count in rank order, inner dimension first, and a message is charged on the lowest dimension
    in which its two ends differ. Members count from 0; on a ring they are in ring order.
    Formulas: ASTRA-sim 2.0, analytical backend, congestion-unaware.
    """

    cluster: Cluster
    crossings: tuple[Crossing, ...]

    @property
    def members(self) -> int:
        """How many members take part; 2 or more."""
        return members_of(self.crossings)

    @property
    def dimension(self) -> int:
        """The index of the innermost dimension, the only one unless the group is taken whole."""
        return self.crossings[0].dimension

    def message_ns(self, route: Route, size: int) -> int:
        """floor(hops * latency + size / bandwidth) of one message of `size` bytes."""
        dimension = self.cluster.dims[route.dimension]
        return floor_ns(size, dimension.bandwidth, ((route.hops, dimension.latency_ns),))

    def reduction_ns(self, size: int) -> int:
        """3 * floor(size / local memory bandwidth): two operands read, one result written."""
        return 3 * floor_ns(size, self.cluster.local_mem_bandwidth)

    def is_even_ring(self) -> bool:
        """Whether this is one ring, and its members are evenly spaced."""
        return len(self.crossings) == 1 and len(set(self.crossings[0].gaps)) == 1

    def ring_hops(self) -> list[int]:
        """Hops from member 0 to each other member of a ring, in ring order."""
        crossing = self.crossings[0]
        return [hops(self._dimension(crossing), distance) for distance in _places(crossing)[1:]]

    def farthest(self, size: int) -> Route:
        """The slowest way between two members for `size` bytes."""
        routes = [Route(crossing.dimension, self._farthest(crossing)) for crossing in self.crossings]
        return routes[0] if len(routes) == 1 else max(routes, key=lambda route: self.message_ns(route, size))

    def port_loads(self) -> list[tuple[Route, int]]:
        """(farthest way, messages) of each port that a member sends a message to every other one by.

        On a ring or switch all messages of the dimension share one port; a fully-connected peer
        has a link of its own, and ASTRA-sim (`alltoall_port_time` False) shares nothing.
        """
        loads = []
        beyond = self.members
        for crossing in self.crossings:
            beyond //= crossing.members
            if not self.cluster.alltoall_port_time:
                messages = 1
            elif self._dimension(crossing).kind == "fully-connected":
                messages = beyond
            else:
                messages = (crossing.members - 1) * beyond
            loads.append((Route(crossing.dimension, self._farthest(crossing)), messages))
        return loads

    def peers(self) -> list[tuple[int, int, int]]:
        """(dimension, peers, links) of the ways from a member to all others.

        A peer counts on the lowest dimension in which it differs; a fully-connected one has a
        link for each of its places, the others one port.
        """
        reached = []
        beyond = self.members
        for crossing in self.crossings:
            beyond //= crossing.members
            others = crossing.members - 1
            dimension = self._dimension(crossing)
            links = min(others, dimension.size - 1) if dimension.kind == "fully-connected" else 1
            reached.append((crossing.dimension, others * beyond, links))
        return reached

    def farthest_partners(self, distance: int) -> Route:
        """The slowest way between two members whose numbers differ in the bit `distance` alone.

        There are 2^k members, and so is the number on each dimension.
        """
        for crossing in self.crossings:
            if distance < crossing.members:
                break
            distance //= crossing.members
        if not crossing.gaps or len(set(crossing.gaps)) == 1:
            return Route(crossing.dimension, self._even_hops(crossing, distance))
        places = _places(crossing)
        most = max(
            hops(self._dimension(crossing), abs(places[member ^ distance] - place))
            for member, place in enumerate(places)
        )
        return Route(crossing.dimension, most)

    def farthest_apart(self, distance: int) -> Route:
        """The slowest way between two members of one dimension whose numbers differ by `distance`."""
        crossing = self.crossings[0]
        if not crossing.gaps or len(set(crossing.gaps)) == 1:
            return Route(crossing.dimension, self._even_hops(crossing, distance))
        places = _places(crossing)
        dimension = self._dimension(crossing)
        ways = zip(places, places[distance:], strict=False)
        return Route(crossing.dimension, max(hops(dimension, after - before) for before, after in ways))

    def slowest_walk(self, steps: int) -> list[tuple[Route, int]]:
        """(way, how often) of the walk of `steps` messages from neighbour to neighbour with most hops.

        A packet goes round the ring from some member; the last rank is done when the slowest
        of these walks is. Neighbours in rank order always differ on the innermost dimension.
        """
        crossing = self.crossings[0]
        if len(set(crossing.gaps)) <= 1:
            return [(Route(crossing.dimension, self._even_hops(crossing, 1)), steps)]
        edges = [hops(self._dimension(crossing), gap) for gap in crossing.gaps]
        laps, rest = divmod(steps, len(edges))
        sums = [0, *accumulate(edges + edges)]
        start = max(range(len(edges)), key=lambda first: sums[first + rest] - sums[first])
        walk = Counter((edges + edges)[start : start + rest])
        for edge in edges:
            walk[edge] += laps
        return [(Route(crossing.dimension, edge), times) for edge, times in sorted(walk.items())]

    def _dimension(self, crossing: Crossing) -> Dimension:
        return self.cluster.dims[crossing.dimension]

    def _farthest(self, crossing: Crossing) -> int:
        """Hops between the two members on `crossing` that are farthest apart."""
        if len(set(crossing.gaps)) <= 1:
            return self._even_hops(crossing, crossing.members // 2)
        # Seen from the lower of two members, only those next to the opposite point can be farthest.
        dimension = self._dimension(crossing)
        places = _places(crossing)
        most = 1
        for place in places:
            beyond = bisect(places, place + dimension.size // 2)
            for other in (places[beyond - 1], places[beyond % len(places)]):
                most = max(most, hops(dimension, abs(other - place)))
        return most

    def _even_hops(self, crossing: Crossing, distance: int) -> int:
        """Hops to the member `distance` further on, the same for all where gaps are equal."""
        gaps = crossing.gaps
        return hops(self._dimension(crossing), distance * gaps[0] if gaps else distance)


def _places(crossing: Crossing) -> list[int]:
    """Each member's place on a ring, counted from member 0."""
    return [0, *accumulate(crossing.gaps[:-1])]
