"""Routes: fewest hops over switches, and of equal ones the one that a hash chooses.

SimAI's hash is exact: Murmur3 of addresses and ports, by the number of the switch, among equal next hops from
the highest number down. Acknowledgements are hashed by their own ports and may come back another way.
Balanced flows are spread over all equal paths instead.
"""

from __future__ import annotations

from collections import deque
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
        self._near = topology.neighbors()
        self._inner = set(topology.inner_switches)
        # The switches that a GPU is on -> hops to one of them, by switch.
        self._hops: dict[tuple[int, ...], dict[int, int]] = {}
        self._next: dict[tuple[int, int], list[tuple[int, int]]] = {}
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
                equal = self._next_hops(node, target)
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
        topology = self.topology
        stands_for: dict[object, int] = {}
        first_switch = topology.gpus + len(topology.inner_switches)
        neighbors = {
            node: tuple((peer, *topology.links[index][2:]) for peer, index in self._near[node])
            for node in range(first_switch, topology.nodes)
        }
        links = {}
        for index, link in enumerate(topology.links):
            for reverse, (one, other) in enumerate(((link.source, link.target), (link.target, link.source))):
                # A GPU is one of a kind.
                key = neighbors.get(one, one), neighbors.get(other, other)
                links[2 * index + reverse] = stands_for.setdefault(key, 2 * index + reverse)
        return links

    def _path(self, source: int, target: int, port: int, target_port: int) -> tuple[list[int] | None, bool]:
        """Returns the links of a path, and whether there were others."""
        words = address(source), address(target), port | target_port << 16
        node, links, several = source, [], False
        while node != target:
            equal = self._next_hops(node, target)
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

    def _next_hops(self, node: int, target: int) -> list[tuple[int, int]]:
        key = node, target
        known_hops = self._next.get(key)
        if known_hops is not None:
            return known_hops
        near, gpus = self._near[node], self.topology.gpus
        equal = [one for one in near if one[0] == target]
        if not equal and node < gpus:
            # In a server its own switch wins.
            ends = {peer for peer, _ in self._near[target]} & self._inner
            equal = [one for one in near if one[0] in ends]
        if not equal:
            hops = self._hops_to(target)
            fewest = min((hops[peer] for peer, _ in near if peer >= gpus and peer in hops), default=None)
            equal = [one for one in near if one[0] >= gpus and hops.get(one[0]) == fewest] if fewest else []
        self._next[key] = equal
        return equal

    def _hops_to(self, target: int) -> dict[int, int]:
        """Returns how many hops from each switch to a node, over switches."""
        gpus = self.topology.gpus
        if target >= gpus:
            start: tuple[int, ...] = (target,)
        else:
            start = tuple(peer for peer, _ in self._near[target] if peer >= gpus and peer not in self._inner)
            start = start or tuple(peer for peer, _ in self._near[target] if peer >= gpus)
        if start in self._hops:
            return self._hops[start]
        hops = dict.fromkeys(start, 1)
        waiting = deque(start)
        while waiting:
            node = waiting.popleft()
            for peer, _ in self._near[node]:
                if peer >= gpus and peer not in hops:
                    hops[peer] = hops[node] + 1
                    waiting.append(peer)
        self._hops[start] = hops
        return hops

    def window_bytes(self, packets: PacketRules) -> int:
        """Returns the largest bandwidth-delay product of GPUs of an empty network, SimAI's window."""
        return _window_bytes(self.topology, packets.payload)


@lru_cache(maxsize=8)
def _window_bytes(topology: Topology, payload: int) -> int:
    most = 0
    step = max(topology.gpus // _MOST_SOURCES, 1)
    probe = Router(topology)
    for source in range(0, topology.gpus, step):
        for target in range(topology.gpus):
            route = probe.route(source, target) if source != target else None
            if route is None:
                continue
            links = [topology.links[link // 2] for link in route.links]
            rate = min(link.gbps for link in links)
            rtt = sum(2 * int(link.latency_ns) + int(payload * 8 / link.gbps) for link in links)
            most = max(most, int(rtt * rate / 8))
    return most
