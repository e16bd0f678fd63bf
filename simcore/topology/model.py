"""A network as nodes and links: GPUs first, then the switches of servers, then all others."""

from __future__ import annotations

from collections import deque

from simcore.cached_methods import cached_method
from simcore.records import NamedTuple, Struct
from simcore.units import format_number, plural


class Link(NamedTuple):
    """A full-duplex link: both ways have its rate."""

    source: int
    target: int
    gbps: float
    """Gb/s each way."""
    latency_ns: float


# What a switch of each tier is called: access, pod, core.
_SWITCHES = ("asw", "psw", "core")
_NVSWITCH, _GPU = "nvsw", "gpu"


class Topology(Struct, frozen=True, eq=False, dict=True):
    """Nodes by number: GPUs 0.., server by server, then switches inside servers, then the others."""

    name: str
    """What the user gave: a file or a generator."""
    gpus: int
    gpus_per_server: int
    inner_switches: tuple[int, ...]
    """Switches inside a server (NVSwitch), ascending."""
    switches: tuple[int, ...]
    """All other switches, ascending."""
    links: tuple[Link, ...]
    gpu_type: str = "H100"

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return self.gpus + len(self.inner_switches) + len(self.switches)

    @property
    def servers(self) -> int:
        """The number of servers."""
        return -(-self.gpus // self.gpus_per_server)

    def is_inner(self, link: Link) -> bool:
        """Returns whether a link is inside a server."""
        inner = self.inner_set()
        return link.source in inner or link.target in inner

    @cached_method
    def inner_set(self) -> frozenset[int]:
        """Returns the switches inside servers."""
        return frozenset(self.inner_switches)

    def server_of(self, gpu: int) -> int:
        """Returns the number of the server that a GPU is in."""
        return gpu // self.gpus_per_server

    @cached_method
    def neighbors(self) -> dict[int, list[tuple[int, int]]]:
        """Returns (neighbor, index of the link) of every node, the highest neighbor first, as SimAI's
        binary lists equal next hops.
        """
        near: dict[int, list[tuple[int, int]]] = {node: [] for node in range(self.nodes)}
        for index, link in enumerate(self.links):
            near[link.source].append((link.target, index))
            near[link.target].append((link.source, index))
        for peers in near.values():
            peers.sort(reverse=True)
        return near

    @cached_method
    def tiers(self) -> dict[int, int]:
        """Returns the tier of every switch outside servers: 1 has GPUs below it, 2 those of tier 1, ...; a
        switch that no GPU reaches has none.
        """
        outer = set(self.switches)
        near = self.neighbors()
        tiers = {node: 1 for node in outer if any(peer < self.gpus for peer, _ in near[node])}
        waiting = deque(tiers)
        while waiting:
            node = waiting.popleft()
            for peer, _ in near[node]:
                if peer in outer and peer not in tiers:
                    tiers[peer] = tiers[node] + 1
                    waiting.append(peer)
        return tiers

    @cached_method
    def rails(self) -> int:
        """Returns the number of rails, 0 without: GPU i of every server is on switches that no other GPU of
        its server is on.
        """
        outer = set(self.switches)
        owners: dict[int, set[int]] = {}
        for gpu in range(self.gpus):
            for peer, _ in self.neighbors()[gpu]:
                if peer in outer:
                    owners.setdefault(peer, set()).add(gpu % self.gpus_per_server)
        shared = any(len(positions) > 1 for positions in owners.values())
        return 0 if shared or not owners or self.gpus_per_server < 2 else self.gpus_per_server

    def unconnected(self) -> list[int]:
        """Returns the GPUs that GPU 0 does not reach over switches."""
        near = self.neighbors()
        reached = {0}
        waiting = deque([0])
        while waiting:
            node = waiting.popleft()
            for peer, _ in near[node]:
                if peer not in reached:
                    reached.add(peer)
                    # Servers are joined by switches only: no GPU relays.
                    if peer >= self.gpus:
                        waiting.append(peer)
        return [gpu for gpu in range(self.gpus) if gpu not in reached]

    def oversubscription(self) -> dict[int, tuple[float, float]]:
        """Returns (Gb/s from below, Gb/s to above) of each tier that has one above it and less to above."""
        tiers = self.tiers()
        down: dict[int, float] = {}
        up: dict[int, float] = {}
        for link in self.links:
            low, high = tiers.get(link.source, 0), tiers.get(link.target, 0)
            if low > high:
                low, high = high, low
            if high:
                down[high] = down.get(high, 0.0) + link.gbps
                if low:
                    up[low] = up.get(low, 0.0) + link.gbps
        return {tier: (down[tier], rate) for tier, rate in sorted(up.items()) if rate < down[tier]}

    def bandwidth(self, gpu: int, inside: bool) -> float:
        """Returns the GB/s of a GPU's links into its server, or out of it."""
        inner = set(self.inner_switches)
        rates = [
            self.links[index].gbps
            for peer, index in self.neighbors()[gpu]
            if (peer in inner or peer < self.gpus) == inside
        ]
        return sum(rates) / 8

    def latency_ns(self, gpu: int, inside: bool) -> float:
        """Returns the ns of a GPU's slowest link into its server, or out of it; 0 without one."""
        inner = set(self.inner_switches)
        return max(
            (
                self.links[index].latency_ns
                for peer, index in self.neighbors()[gpu]
                if (peer in inner or peer < self.gpus) == inside
            ),
            default=0.0,
        )

    def node_text(self, node: int) -> str:
        """Returns what a node is called: `GPU 3`, `NVSwitch 32`, `tier-1 switch 36`."""
        if node < self.gpus:
            return f"GPU {node}"
        if node in self.inner_switches:
            return f"NVSwitch {node}"
        return f"tier-{self.tiers().get(node, '?')} switch {node}"

    def kind_of(self, node: int) -> str:
        """Returns `gpu`, `nvsw`, or what a switch of its tier is called: asw, psw, core, then tier4 ..."""
        if node < self.gpus:
            return _GPU
        if node < self.gpus + len(self.inner_switches):
            return _NVSWITCH
        tier = self.tiers().get(node, 0)
        return _SWITCHES[tier - 1] if 0 < tier <= len(_SWITCHES) else f"tier{tier or '?'}-"

    def name_of(self, node: int) -> str:
        """Returns the kind of a node with its number: `gpu3`, `asw36`."""
        return f"{self.kind_of(node)}{node}"

    def tier_order(self, source: str, target: str) -> tuple[int, ...]:
        """Returns where ports between these kinds stand in a list: in servers, then upwards, then down."""
        kinds = (_GPU, *_SWITCHES)
        first, second = (kinds.index(kind) if kind in kinds else len(kinds) for kind in (source, target))
        if _NVSWITCH in (source, target):
            return 0, int(source == _NVSWITCH)
        return (1, first, second) if first <= second else (2, -first, -second)

    def words(self) -> str:
        """Returns servers, rails, tiers and links on one line of text."""
        tiers = self.tiers()
        parts = [
            plural(self.gpus, "GPU"),
            f"{plural(self.servers, 'server')} of {self.gpus_per_server}",
            plural(self.rails(), "rail") if self.rails() else "no rails",
        ]
        for tier in sorted(set(tiers.values())):
            count = sum(1 for one in tiers.values() if one == tier)
            parts.append(f"tier {tier}: {plural(count, 'switch')}")
        rates = sorted({link.gbps for link in self.links}, reverse=True)
        rates_text = ", ".join(map(format_number, rates))
        return f"{', '.join(parts)}; {plural(len(self.links), 'link')} of {rates_text} Gb/s"
