"""Where one algorithm runs: its members, their hops, and what messages and reductions cost there."""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from itertools import accumulate

from simcore.cluster import Cluster, Dimension, GroupDimension
from simcore.cluster.placement import count_members, hops
from simcore.collectives.exact import floor_ns
from simcore.records import NamedTuple


class Route(NamedTuple):
    """The route of one message: the dimension that charges it, and its hops there."""

    dimension: int
    hops: int


class AlgorithmScope(NamedTuple):
    """The members of a group on the dimensions that one algorithm runs over, as it sees them.

    There is one dimension, but for the algorithms that take a whole grid as one flat group: there members
    count in rank order, inner dimension first, and a message is charged on the lowest dimension
    in which its two ends differ. Members count from 0; on a ring they are in ring order.
    Formulas: ASTRA-sim 2.0, analytical backend, congestion-unaware.
    """

    cluster: Cluster
    dimensions: tuple[GroupDimension, ...]

    @property
    def members(self) -> int:
        """The number of members that take part; 2 or more."""
        return count_members(self.dimensions)

    @property
    def dimension(self) -> int:
        """The index of the innermost dimension, the only one unless the group is taken as a flat one."""
        return self.dimensions[0].dimension

    def message_ns(self, route: Route, size: int) -> int:
        """Returns the ns of one message of `size` bytes: floor(hops * latency + size / bandwidth)."""
        dimension = self.cluster.dims[route.dimension]
        return floor_ns(size, dimension.bandwidth, ((route.hops, dimension.latency_ns),))

    def reduction_ns(self, size: int) -> int:
        """Returns 3 * floor(size / local memory bandwidth), ns: two operands read, one result written."""
        return 3 * floor_ns(size, self.cluster.local_mem_bandwidth)

    def is_even_ring(self) -> bool:
        """Returns whether this is one ring whose members are evenly spaced."""
        return len(self.dimensions) == 1 and len(set(self.dimensions[0].gaps)) == 1

    def ring_hops(self) -> list[int]:
        """Returns the hops from member 0 to each other member of a ring, in ring order."""
        group_dimension = self.dimensions[0]
        return [
            hops(self._dimension(group_dimension), distance)
            for distance in _ring_positions(group_dimension)[1:]
        ]

    def farthest(self, size: int) -> Route:
        """Returns the slowest route between two members for `size` bytes."""
        routes = [
            Route(group_dimension.dimension, self._farthest(group_dimension))
            for group_dimension in self.dimensions
        ]
        return routes[0] if len(routes) == 1 else max(routes, key=lambda route: self.message_ns(route, size))

    def port_loads(self) -> list[tuple[Route, int]]:
        """Returns (farthest route, messages) of each port by which a member sends to all other members.

        On a ring or switch all messages of the dimension share one port; a fully-connected peer
        has a link of its own, and ASTRA-sim (`alltoall_port_time` False) shares nothing.
        """
        loads = []
        beyond = self.members
        for group_dimension in self.dimensions:
            beyond //= group_dimension.members
            if not self.cluster.alltoall_port_time:
                messages = 1
            elif self._dimension(group_dimension).kind == "fully-connected":
                messages = beyond
            else:
                messages = (group_dimension.members - 1) * beyond
            loads.append((Route(group_dimension.dimension, self._farthest(group_dimension)), messages))
        return loads

    def peers(self) -> list[tuple[int, int, int]]:
        """Returns (dimension, peers, links) of the routes from a member to all others.

        A peer counts on the lowest dimension in which it differs; a fully-connected one has a
        link for each of its positions, the others one port.
        """
        reached = []
        beyond = self.members
        for group_dimension in self.dimensions:
            beyond //= group_dimension.members
            others = group_dimension.members - 1
            dimension = self._dimension(group_dimension)
            links = min(others, dimension.size - 1) if dimension.kind == "fully-connected" else 1
            reached.append((group_dimension.dimension, others * beyond, links))
        return reached

    def farthest_partners(self, distance: int) -> Route:
        """Returns the slowest route between two members whose indices differ in the bit `distance` alone.

        There are 2^k members, and so is the number on each dimension.
        """
        for group_dimension in self.dimensions:
            if distance < group_dimension.members:
                break
            distance //= group_dimension.members
        if not group_dimension.gaps or len(set(group_dimension.gaps)) == 1:
            return Route(group_dimension.dimension, self._even_hops(group_dimension, distance))
        positions = _ring_positions(group_dimension)
        most = max(
            hops(self._dimension(group_dimension), abs(positions[member ^ distance] - position))
            for member, position in enumerate(positions)
        )
        return Route(group_dimension.dimension, most)

    def farthest_apart(self, distance: int) -> Route:
        """Returns the slowest route between two members of one dimension whose indices differ by
        `distance`.
        """
        group_dimension = self.dimensions[0]
        if not group_dimension.gaps or len(set(group_dimension.gaps)) == 1:
            return Route(group_dimension.dimension, self._even_hops(group_dimension, distance))
        positions = _ring_positions(group_dimension)
        dimension = self._dimension(group_dimension)
        ways = zip(positions, positions[distance:], strict=False)
        return Route(
            group_dimension.dimension, max(hops(dimension, after - before) for before, after in ways)
        )

    def slowest_walk(self, steps: int) -> list[tuple[Route, int]]:
        """Returns (route, times) of the walk of `steps` messages from neighbour to neighbour with most hops.

        A packet goes round the ring from some member; the last rank is done when the slowest
        of these walks is. Neighbours in rank order always differ on the innermost dimension.
        """
        group_dimension = self.dimensions[0]
        if len(set(group_dimension.gaps)) <= 1:
            return [(Route(group_dimension.dimension, self._even_hops(group_dimension, 1)), steps)]
        edges = [hops(self._dimension(group_dimension), gap) for gap in group_dimension.gaps]
        laps, rest = divmod(steps, len(edges))
        sums = [0, *accumulate(edges + edges)]
        start = max(range(len(edges)), key=lambda first: sums[first + rest] - sums[first])
        walk = Counter((edges + edges)[start : start + rest])
        for edge in edges:
            walk[edge] += laps
        return [(Route(group_dimension.dimension, edge), times) for edge, times in sorted(walk.items())]

    def _dimension(self, group_dimension: GroupDimension) -> Dimension:
        return self.cluster.dims[group_dimension.dimension]

    def _farthest(self, group_dimension: GroupDimension) -> int:
        """Returns the hops between the two members on a dimension that are farthest apart."""
        if len(set(group_dimension.gaps)) <= 1:
            return self._even_hops(group_dimension, group_dimension.members // 2)
        # Seen from the lower of two members, only those next to the opposite point can be farthest.
        dimension = self._dimension(group_dimension)
        positions = _ring_positions(group_dimension)
        most = 1
        for position in positions:
            beyond = bisect(positions, position + dimension.size // 2)
            for other in (positions[beyond - 1], positions[beyond % len(positions)]):
                most = max(most, hops(dimension, abs(other - position)))
        return most

    def _even_hops(self, group_dimension: GroupDimension, distance: int) -> int:
        """Returns the hops to the member `distance` further on, the same for all where gaps are equal."""
        gaps = group_dimension.gaps
        return hops(self._dimension(group_dimension), distance * gaps[0] if gaps else distance)


def _ring_positions(group_dimension: GroupDimension) -> list[int]:
    """Returns each member's position on a ring, counted from member 0."""
    return [0, *accumulate(group_dimension.gaps[:-1])]
