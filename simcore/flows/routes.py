"""Routes: fewest hops over switches, and of equal ones the one that a hash chooses.

SimAI's hash is exact: Murmur3 of addresses and ports, by the number of the switch, among equal next hops from
the highest number down. Acknowledgements are hashed by their own ports and may come back another way.
Balanced flows are spread over all equal paths instead.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import lru_cache

from simcore.records import NamedTuple
from simcore.topology import PacketRules, Topology

_HOST_SEED = 0x8BADF00D
_FIRST_ADDRESS = 0x0B000001
_FIRST_PORT, _TARGET_PORT = 10000, 100
_MASK = 0xFFFFFFFF
# About so many GPUs are asked for the largest bandwidth-delay product: positions repeat.
_MOST_SOURCES = 16


def murmur3(words: tuple[int, int, int], seed: int) -> int:
    """Returns Murmur3-32 of three 32-bit words.

    >>> hex(murmur3((0, 0, 0), 0))
    '0xd941144b'
    """
    state = seed
    for word in words:
        word = word * 0xCC9E2D51 & _MASK
        word = (word << 15 | word >> 17) & _MASK
        state ^= word * 0x1B873593 & _MASK
        state = (state << 13 | state >> 19) & _MASK
        state = (state * 5 + 0xE6546B64) & _MASK
    state ^= 12
    state ^= state >> 16
    state = state * 0x85EBCA6B & _MASK
    state ^= state >> 13
    state = state * 0xC2B2AE35 & _MASK
    return state ^ state >> 16


def address(node: int) -> int:
    """Returns the IP address that SimAI gives a node."""
    return _FIRST_ADDRESS + (node // 256 << 16) + (node % 256 << 8)


class Route(NamedTuple):
    """The directed links of a flow and of its acknowledgements: twice the index of a link, + 1 against it."""

    links: tuple[int, ...]
    back: tuple[int, ...]
    spread: tuple[tuple[int, float], ...] = ()
    """Of a balanced flow all links of its equal paths, with the share of its bytes that each carries; `links`
    are one of these paths.
    """
    spread_back: tuple[tuple[int, float], ...] = ()
    """The same of its acknowledgements."""


class Router:
    """The routes of a topology. ecmp: `simai` or `seeded`, a hash with another seed, or `balanced`, all equal
    paths at once.
    """

    def __init__(self, topology: Topology, ecmp: str = "simai") -> None:
        self.topology = topology
        # 0 leaves SimAI's hash as it is.
        self._seed = 0 if ecmp == "simai" else _HOST_SEED
        self._is_balanced = ecmp == "balanced"
        self._hops = _hops_of(topology)
        self._flows: dict[tuple[int, int], int] = {}
        self._single: dict[tuple[int, int], Route] = {}

    def route(self, source: int, target: int) -> Route | None:
        """Returns the route of the next flow of a pair; None where no path is.

        Each flow of a pair has a port of its own, and so a path of its own.
        """
        pair = source, target
        single = self._single.get(pair)
        if single is not None:
            return single
        if self._is_balanced:
            return self._balanced_route(source, target)
        number_of_flow = self._flows.get(pair, 0)
        self._flows[pair] = number_of_flow + 1
        port = _FIRST_PORT + number_of_flow
        links, many = self._path(source, target, port, _TARGET_PORT)
        back, many_back = self._path(target, source, _TARGET_PORT, port)
        if links is None or back is None:
            return None
        route = Route(tuple(links), tuple(back))
        if not (many or many_back):
            self._single[pair] = route
        return route

    def _balanced_route(self, source: int, target: int) -> Route | None:
        """Returns the route of all flows of a pair, over all equal paths."""
        spread, back = self._spread(source, target), self._spread(target, source)
        if spread is None or back is None:
            return None
        links, _ = self._path(source, target, _FIRST_PORT, _TARGET_PORT)
        acks, _ = self._path(target, source, _TARGET_PORT, _FIRST_PORT)
        route = Route(tuple(links or ()), tuple(acks or ()), spread, back)
        self._single[source, target] = route
        return route

    def _spread(self, source: int, target: int) -> tuple[tuple[int, float], ...] | None:
        """Returns the links of all equal paths with the share of each: every node divides what it gets among
        its next hops. None where no path is.
        """
        shares: dict[int, float] = {}
        nodes = {source: 1.0}
        while nodes:
            following: dict[int, float] = {}
            for node, share in nodes.items():
                equal = self._hops.next_hops(node, target)
                if not equal:
                    return None
                for peer, index in equal:
                    link = 2 * index + (self.topology.links[index].source != node)
                    shares[link] = shares.get(link, 0.0) + share / len(equal)
                    if peer != target:
                        following[peer] = following.get(peer, 0.0) + share / len(equal)
            nodes = following
        return tuple(shares.items())

    def equal_links(self) -> dict[int, int]:
        """Returns a link for each link of switches that are joined to the same nodes at the same rates: of
        balanced flows all of these links carry the same.
        """
        return _equal_links(self.topology)

    def _path(self, source: int, target: int, port: int, target_port: int) -> tuple[list[int] | None, bool]:
        """Returns the links of a path, and whether there were others."""
        words = address(source), address(target), port | target_port << 16
        node, links, several = source, [], False
        while node != target:
            equal = self._hops.next_hops(node, target)
            if not equal:
                return None, False
            if len(equal) > 1:
                several = True
                seed = _HOST_SEED if node < self.topology.gpus else node
                node_, index = equal[murmur3(words, seed ^ self._seed) % len(equal)]
            else:
                node_, index = equal[0]
            links.append(2 * index + (self.topology.links[index].source != node))
            node = node_
        return links, several

    def window_bytes(self, packets: PacketRules) -> int:
        """Returns the largest bandwidth-delay product of GPUs of an empty network, SimAI's window."""
        return _window_bytes(self.topology, packets.payload)


class _Hops:
    """The equal next hops of a topology, each (node, index of the link), found once for all of its runs."""

    def __init__(self, topology: Topology) -> None:
        self._gpus = topology.gpus
        self._near = topology.neighbors()
        self._inner = topology.inner_set()
        # Node -> its links by the node at the other end.
        self._links_to: dict[int, dict[int, list[tuple[int, int]]]] = {}
        self._starts: dict[int, tuple[int, ...]] = {}
        # The switches that a GPU is on -> hops to one of them, by switch; next hops from a node to there.
        self._hops: dict[tuple[int, ...], dict[int, int]] = {}
        self._next: dict[tuple[int, tuple[int, ...]], list[tuple[int, int]]] = {}

    def next_hops(self, node: int, target: int) -> list[tuple[int, int]]:
        """Returns the equal next hops from a node, the highest number first; none where no path is."""
        links_to = self._links_to.get(node)
        if links_to is None:
            links_to = self._links_to[node] = {}
            for one in self._near[node]:
                links_to.setdefault(one[0], []).append(one)
        if target in links_to:
            return links_to[target]
        if node < self._gpus:
            # In a server its own switch wins.
            ends = {peer for peer, _ in self._near[target]} & self._inner
            inside = [one for one in self._near[node] if one[0] in ends]
            if inside:
                return inside
        start = self.starts(target)
        equal = self._next.get((node, start))
        if equal is None:
            near, gpus, hops = self._near[node], self._gpus, self._hops_to(start)
            fewest = min((hops[peer] for peer, _ in near if peer >= gpus and peer in hops), default=None)
            equal = [one for one in near if one[0] >= gpus and hops.get(one[0]) == fewest] if fewest else []
            self._next[node, start] = equal
        return equal

    def starts(self, target: int) -> tuple[int, ...]:
        """Returns the switches from which a node is reached: those outside servers, if there are any."""
        start = self._starts.get(target)
        if start is None:
            near = [peer for peer, _ in self._near[target] if peer >= self._gpus]
            outer = [peer for peer in near if peer not in self._inner]
            start = self._starts[target] = (target,) if target >= self._gpus else tuple(outer or near)
        return start

    def _hops_to(self, start: tuple[int, ...]) -> dict[int, int]:
        """Returns how many hops from each switch to a node that is on these, over switches."""
        if start in self._hops:
            return self._hops[start]
        hops = dict.fromkeys(start, 1)
        waiting = deque(start)
        while waiting:
            node = waiting.popleft()
            for peer, _ in self._near[node]:
                if peer >= self._gpus and peer not in hops:
                    hops[peer] = hops[node] + 1
                    waiting.append(peer)
        self._hops[start] = hops
        return hops


@lru_cache(maxsize=8)
def _hops_of(topology: Topology) -> _Hops:
    return _Hops(topology)


@lru_cache(maxsize=8)
def _equal_links(topology: Topology) -> dict[int, int]:
    stands_for: dict[object, int] = {}
    first_switch = topology.gpus + len(topology.inner_switches)
    # A number for each kind of switch: to compare the neighbors themselves for each of its links takes 30 ms.
    kinds: dict[object, int] = {}
    kind_of = {}
    for node in range(first_switch, topology.nodes):
        joined_nodes = tuple((peer, *topology.links[index][2:]) for peer, index in topology.neighbors()[node])
        kind_of[node] = -1 - kinds.setdefault(joined_nodes, len(kinds))
    links = {}
    for index, link in enumerate(topology.links):
        # A GPU is one of a kind.
        one, other = kind_of.get(link.source, link.source), kind_of.get(link.target, link.target)
        links[2 * index] = stands_for.setdefault((one, other), 2 * index)
        links[2 * index + 1] = stands_for.setdefault((other, one), 2 * index + 1)
    return links


@lru_cache(maxsize=8)
def _window_bytes(topology: Topology, payload: int) -> int:
    """Returns the largest bandwidth-delay product. GPUs that are joined alike are asked once where all of
    their equal paths are alike: 1,024 GPUs have 256 such pairs, not 16,000.
    """
    hops, inner, near = _hops_of(topology), topology.inner_set(), topology.neighbors()
    products: dict[object, int | None] = {}
    # Servers whose switch leads to nothing but its GPUs, which have no links to each other.
    is_plain = all(peer < topology.gpus for switch in inner for peer, _ in near[switch]) and all(
        peer >= topology.gpus for gpu in range(topology.gpus) for peer, _ in near[gpu]
    )
    inside = [{peer for peer, _ in near[gpu]} & inner for gpu in range(topology.gpus)]
    outside = [
        tuple((peer, *topology.links[index][2:]) for peer, index in near[gpu] if peer not in inner)
        for gpu in range(topology.gpus)
    ]

    def product_of(links: Sequence[int]) -> int:
        """Returns the bytes on the way of a path of these links."""
        path = [topology.links[link] for link in links]
        rtt = sum(2 * int(link.latency_ns) + int(payload * 8 / link.gbps) for link in path)
        return int(rtt * min(link.gbps for link in path) / 8)

    def product_between(source: int, target: int) -> int | None:
        """Returns the product of all equal paths; None where they differ."""
        links, nodes = [], {source}
        while target not in nodes:
            steps = [step for node in nodes for step in hops.next_hops(node, target)]
            if len({topology.links[index][2:] for _, index in steps}) != 1:
                return None if steps else 0
            links.append(steps[0][1])
            nodes = {peer for peer, _ in steps}
        return product_of(links)

    most, probe = 0, Router(topology)
    for source in range(0, topology.gpus, max(topology.gpus // _MOST_SOURCES, 1)):
        for target in range(topology.gpus):
            if source == target:
                continue
            product = None
            if is_plain and not inside[source] & inside[target]:
                key = outside[source], outside[target]
                if key not in products:
                    products[key] = product_between(source, target)
                product = products[key]
            if product is None:
                route = probe.route(source, target)
                product = 0 if route is None else product_of([link // 2 for link in route.links])
            most = max(most, product)
    return most
