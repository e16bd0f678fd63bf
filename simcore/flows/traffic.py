"""Flows of a run on the links of a topology: an event queue in which every rate is a max-min fair share.

Flows on one path are one bundle, which has one rate; rates are found anew for the bundles that a start or an
end can affect, those that share links with it, link by link.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from heapq import heappop, heappush
from itertools import count as numbers
from typing import Any, Protocol

from simcore.diagnostics import UsageError
from simcore.flows.fair_shares import fair_rates
from simcore.flows.log import FlowLog
from simcore.flows.routes import Route, Router
from simcore.records import NamedTuple, Struct
from simcore.topology import PacketRules, Topology

# What a rank does before each flow, ns, beside the send latency.
START_NS = 10
SEND_LATENCY_NS = 3000
_START, _END, _ARRIVE, _SETTLE = range(4)
# From so many bundles on, ends within this part of the time since flows began are taken together: 4,032 flows
# of 64 GPUs end at 4,000 times, and all rates take 10 ms each time. A third of it gives the same last end.
_MANY_BUNDLES = 512
_GRAIN = 0.03
_FIRST_PORT = 1e-6
# With all shares found anew, as many take a second, and whoever waits may ask in between whether to stop.
MOST_AHEAD = 64
_ROUND_UP = 0.999999


class FlowRules(Struct, frozen=True):
    """How flows are sent."""

    model: str = "ns3"
    """`ns3`: packets, headers, acknowledgements and windows count; `plain`: bytes over bandwidth."""
    send_latency: int = SEND_LATENCY_NS
    """ns before each flow."""
    ecmp: str = "simai"
    """How one of several equal paths is chosen."""
    nvls: bool = False
    """Whether all-reduces inside a server are made by its switch."""
    pxn: bool = False
    """Whether a flow to another rail goes over NVLink to the GPU on that rail first."""
    packets: PacketRules = PacketRules()
    congestion: str = "none"
    """`dcqcn`: marked flows slow down."""
    detail: str = "shares"
    """`shares`, or what is simulated packet by packet: `outer` flows between servers, `all` of them."""
    seed: int = 0
    """Which random draws decide on marks."""

    @property
    def turn_ns(self) -> int:
        """ns that a rank takes for a send, one after the other."""
        return START_NS if self.model == "ns3" else 0

    @property
    def start_ns(self) -> int:
        """ns from the call of a send to its first packet."""
        return self.send_latency + self.turn_ns


class FlowParameters(Protocol):
    """The parameters of flows, None where the user stated nothing."""

    @property
    def flow_model(self) -> str: ...
    @property
    def send_latency(self) -> int | None: ...
    @property
    def ecmp(self) -> str | None: ...
    @property
    def nvls(self) -> str: ...
    @property
    def pxn(self) -> str: ...
    @property
    def congestion(self) -> str: ...
    @property
    def seed(self) -> int: ...


def rules_of(packets: PacketRules | None, parameters: FlowParameters) -> FlowRules:
    """Returns the rules of flows, with the defaults of their model."""
    is_ns3 = parameters.flow_model == "ns3"
    latency = parameters.send_latency
    return FlowRules(
        parameters.flow_model,
        latency if latency is not None else SEND_LATENCY_NS if is_ns3 else 0,
        parameters.ecmp or ("simai" if is_ns3 else "seeded"),
        parameters.nvls == "on",
        parameters.pxn == "on",
        packets or PacketRules(),
        parameters.congestion,
        seed=parameters.seed,
    )


class FlowPort(NamedTuple):
    """What one direction of a link carried."""

    source: int
    target: int
    gbps: float
    bytes: int
    flows: int
    busy_ns: int
    """How long at least one flow was on it."""
    most_flows: int
    """The most flows at once."""
    mean_flows: float
    """The mean number while it was busy."""
    full_ns: int
    """How long it held flows back."""
    marked_ns: int | None
    """Since when its queue would be marked, None if never."""
    marked_flows: int
    """The most flows that it held back then."""
    link: int
    """Twice the index of its link, + 1 against it."""

    def as_values(self) -> dict[str, Any]:
        """Returns the fields as JSON prints them."""
        values = {**self._asdict(), "mean_flows": round(self.mean_flows, 3)}
        del values["link"]
        return values


class FlowReport(NamedTuple):
    """What the links of a run carried."""

    last_flow_end_ns: int
    flows: int
    ports: list[FlowPort]
    control: str
    """The congestion control that the configuration names, "" for none."""
    log: FlowLog | None = None
    """All flows, where they were logged."""
    detail: str = "shares"
    """`shares`, `outer` or `all`, as in `FlowRules`."""
    congestion: str = "none"
    """Whether marked flows slow down, as in `FlowRules`."""
    packet_hops: int = 0
    """How many packets crossed links between servers, each link counted."""
    classes: int = 0
    """Of how many rank classes it has the ports of one rank each; 0 where it has those of all ranks."""

    @property
    def is_slowed(self) -> bool:
        """Whether its times have what congestion control does."""
        return self.congestion != "none" and (self.detail != "shares" or not self.marked_ports())

    def marked_ports(self) -> list[FlowPort]:
        """Returns the ports at which congestion control would slow flows down, the first marked first."""
        marked_ports = [port for port in self.ports if port.marked_ns is not None]
        return sorted(marked_ports, key=lambda port: port.marked_ns or 0) if self.control else []


class _Path:
    """A route with what its flows take of its links."""

    __slots__ = (
        "bundle", "cap", "cap_waiting", "carried", "first_ns", "is_outer", "lean_uses", "links", "tail_ns",
        "uses",
    )  # fmt: skip

    def __init__(
        self,
        route: Route,
        topology: Topology,
        packets: PacketRules,
        plain: bool,
        window: int,
        equal_links: Mapping[int, int] | None = None,
    ) -> None:
        """equal_links: a link for those that always carry the same, of which one is enough to find rates."""
        # (link, share of the bytes) of all links.
        self.carried = route.spread or tuple((link, 1.0) for link in route.links)
        self.links = tuple(link for link, _ in self.carried)
        of_rates = list(
            {(equal_links or {}).get(link, link): (link, share) for link, share in self.carried}.items()
        )
        self.bundle: _Bundle | None = None
        rates = [topology.links[link // 2].gbps for link in route.links]
        latency = sum(topology.links[link // 2].latency_ns for link in route.links)
        first = topology.links[route.links[0] // 2]
        self.is_outer = not topology.is_inner(first)
        # The rate at which its window is always in flight, and that where acknowledgements wait for a packet
        # at each port.
        self.cap = self.cap_waiting = float("inf")
        if plain:
            self.uses = [(link, 8 / topology.links[link // 2].gbps * share) for link, (_, share) in of_rates]
            self.lean_uses = self.uses
            self.tail_ns = latency
            self.first_ns: list[float] = []
            return
        full = [packets.full_ns(rate) or 1 for rate in rates]
        self.uses = [
            (link, (packets.full_ns(topology.links[link // 2].gbps) or 1) / packets.payload * share)
            for link, (_, share) in of_rates
        ]
        # Of ports that would be full together the first holds its flows back, and no other has a queue.
        self.uses[0] = self.uses[0][0], self.uses[0][1] * (1 + _FIRST_PORT)
        # As if as many acknowledgements came the other way as packets go.
        self.lean_uses = [
            (link, share * (1 + packets.ack_ns(gbps) / (packets.full_ns(gbps) or 1)))
            for link, share in self.uses
            for gbps in (topology.links[link // 2].gbps,)
        ]
        back_ns = wait_ns = 0.0
        for link in route.back:
            there = topology.links[link // 2]
            ack_ns = packets.ack_ns(there.gbps)
            back_ns += there.latency_ns + ack_ns
            wait_ns += packets.full_ns(there.gbps)
        backward = route.spread_back or tuple((link, 1.0) for link in route.back)
        for link, share in {(equal_links or {}).get(link, link): share for link, share in backward}.items():
            ack_ns = packets.ack_ns(topology.links[link // 2].gbps)
            if ack_ns:
                self.uses.append((link, ack_ns / packets.payload * share))
        self.tail_ns = latency + back_ns
        # The last packet is stored on every link but the slowest, which the bytes are timed by.
        slowest = max(full)
        full.remove(slowest)
        self.first_ns = [ns / packets.payload for ns in full]
        if window:
            round_trip_ns = latency + sum(full) + slowest + back_ns
            cap = window / round_trip_ns
            # One above the rate of its slowest link never holds it back.
            if cap * max(share for _, share in self.uses) < 1:
                self.cap = cap
            self.cap_waiting = window / (round_trip_ns + wait_ns)


class WeightedPath(_Path):
    """Links that a flow crosses so many times at once, and has arrived when its last byte is sent."""

    def __init__(self, weights: tuple[tuple[int, float], ...], topology: Topology, rules: FlowRules) -> None:
        packets = rules.packets
        self.bundle = None
        self.carried = weights
        self.links = tuple(link for link, _ in weights)
        self.is_outer = False
        self.cap = self.cap_waiting = float("inf")
        self.tail_ns = 0
        self.first_ns = []
        self.uses = []
        for link, weight in weights:
            gbps = topology.links[link // 2].gbps
            if rules.model == "plain":
                self.uses.append((link, weight * 8 / gbps))
            else:
                ns = (packets.full_ns(gbps) or 1) + packets.ack_ns(gbps)
                self.uses.append((link, weight * ns / packets.payload))
        self.lean_uses = self.uses

    @cached_property
    def alone(self) -> AloneRate:
        """The rate of a flow that shares none of its links."""
        (rate,), (bottleneck,), full_links = fair_rates([self.uses], [1], [self.cap])
        return AloneRate(rate, bottleneck, full_links)


class AloneRate(NamedTuple):
    """What a flow has that shares none of its links."""

    rate: float
    """Bytes per ns."""
    bottleneck: int
    """The link that holds it back."""
    full_links: set[int]


class _Bundle:
    """Flows on one path while they move. served: bytes that each flow has got since the bundle began."""

    __slots__ = ("count", "ends", "path", "rate", "served", "since", "version")

    def __init__(self, path: _Path, now: int) -> None:
        self.path = path
        self.count = 0
        self.rate = 0.0
        self.served = 0.0
        self.since = now
        self.version = 0
        # (served bytes at which a flow is over, its number, flow).
        self.ends: list[tuple[float, int, _Flow]] = []


class _Flow:
    __slots__ = ("arrived", "key", "label", "path", "size", "start_ns")

    def __init__(
        self, path: _Path, size: int, start_ns: int, arrived: Callable[[Any, int], None], key: Any, label: int
    ) -> None:
        self.path, self.size, self.start_ns, self.arrived, self.key = path, size, start_ns, arrived, key
        self.label = label


class FlowTraffic:
    """All flows of a run. Time is ns and never goes back; call `run_until` before `send` at a later time.

    log: gets every flow as it ends, None for no log.
    """

    def __init__(self, topology: Topology, rules: FlowRules, log: FlowLog | None = None) -> None:
        self.topology = topology
        self.rules = rules
        self.log = log
        self.router = Router(topology, rules.ecmp)
        self._equal_links = self.router.equal_links() if rules.ecmp == "balanced" else None
        self.now = 0
        self.last_end_ns = 0
        self.flows = 0
        self._plain = rules.model == "plain"
        packets = rules.packets
        window = self.router.window_bytes(packets) if packets.window and not self._plain else 0
        self._window = -(-window // packets.payload) * packets.payload
        self._paths: dict[Route, _Path] = {}
        self._weighted_paths: dict[tuple[tuple[int, float], ...], WeightedPath] = {}
        self._events: list[tuple[int, int, int, int, int, Any]] = []
        # The next number of an event: those of one time run in the order in which they were made.
        self._next_id = numbers(1).__next__
        # Bundles that move, since when any does, when rates were found last, and when they will be.
        self._bundles: dict[_Bundle, None] = {}
        self._busy_since = 0
        self._settled_ns = 0
        self._due_ns = -1
        self._has_start = False
        # Whether shares may be wrong: a port of a switch, or one whose flows have followers, held several
        # back, or acknowledgements that wait may stop a window. What collectives say of themselves: flows
        # wait for others, and some of these are inside servers and others between them.
        self.is_coupled = self.has_chains = self.has_mixed_rings = False
        # Link -> bundles on it.
        self._bundles_on: dict[int, dict[_Bundle, None]] = {}
        self._touched: dict[int, None] = {}
        self._outer = set(topology.switches)
        self._marks = dict(packets.mark_from)
        # Link -> [bytes, flows, busy since or -1, busy ns, flows now, most, flow-ns, last change].
        self._ports: dict[int, list[float]] = {}
        # Link -> since when it holds flows back, and how long it has.
        self._full_since: dict[int, int] = {}
        self._full_ns: dict[int, int] = {}
        self._mark_times: dict[int, tuple[int, int]] = {}

    def send(
        self,
        delay: int,
        source: int,
        target: int,
        size: int,
        arrived: Callable[[Any, int], None],
        key: Any,
        label: int = -1,
    ) -> None:
        """Starts a flow `delay` ns from now; `arrived(key, ns)` is called when its last acknowledgement is
        back. label: what it is of, for the log.

        Raises `UsageError` where no path leads there.
        """
        self._send_on(self._route(source, target), delay, size, arrived, key, label)

    def _route(self, source: int, target: int) -> Route:
        route = self.router.route(source, target)
        if route is None:
            ends = f"{self.topology.node_text(source)} to {self.topology.node_text(target)}"
            raise UsageError(f"--network flows: no path over switches from {ends}")
        return route

    def _send_on(
        self, route: Route, delay: int, size: int, arrived: Callable[[Any, int], None], key: Any, label: int
    ) -> None:
        path = self._paths.get(route)
        if path is None:
            path = self._paths[route] = self._make_path(route)
            if route.spread and self.log is not None:
                self.log.shares[path.links] = tuple(share for _, share in path.carried)
        when = self.now + delay
        self.flows += 1
        self._push(when, _START, _Flow(path, size, when, arrived, key, label))

    def _make_path(self, route: Route) -> _Path:
        return _Path(route, self.topology, self.rules.packets, self._plain, self._window, self._equal_links)

    def weighted_path(self, weights: tuple[tuple[int, float], ...]) -> WeightedPath:
        """Returns the path of flows that cross each link so many times at once."""
        path = self._weighted_paths.get(weights)
        if path is None:
            path = self._weighted_paths[weights] = WeightedPath(weights, self.topology, self.rules)
        return path

    def send_weighted(
        self, delay: int, path: WeightedPath, size: int, arrived: Callable[[Any, int], None], key: Any
    ) -> None:
        """Starts a flow on a weighted path `delay` ns from now."""
        self._push(self.now + delay, _START, _Flow(path, size, self.now + delay, arrived, key, -1))

    def alone_ns(self, path: WeightedPath, size: int) -> int:
        """Returns how long a flow that shares none of its links is on them, ns."""
        return int(self._work(size) / path.alone.rate + _ROUND_UP)

    def carry_alone(self, starts: Sequence[int], path: WeightedPath, size: int) -> None:
        """Carries a flow from each of these times on, ascending, each of which shares none of its links."""
        count, alone_ns = len(starts), self.alone_ns(path, size)
        for link, share in path.carried:
            port = self._ports.setdefault(link, [0, 0, -1, 0, 0, 1, 0, 0])
            port[0] += size * share * count
            port[1] += count
            port[3] += alone_ns * count
            port[6] += alone_ns * count
        for link in path.alone.full_links:
            self._full_ns[link] = self._full_ns.get(link, 0) + alone_ns * count
        self._mark(path.alone.bottleneck, 1, starts[0])
        self.last_end_ns = max(self.last_end_ns, starts[-1] + alone_ns)

    def tail_ns(self, route: Route, size: int) -> int:
        """Returns the ns from the last byte of a flow that is sent to its end."""
        path = self._paths.get(route)
        if path is None:
            path = self._paths[route] = self._make_path(route)
        last = min(size, self.rules.packets.payload)
        return round(path.tail_ns + sum(path.first_ns) * last)

    def next_ns(self) -> int | None:
        """Returns the time of the next event; None without any."""
        return self._events[0][0] if self._events else None

    def run(self) -> None:
        """Runs until no flow is left."""
        self.settle()
        while self._events:
            self.run_until(self._events[0][0])
            self.settle()

    def run_until(self, last: int, over: Sequence[object] | None = None) -> int:
        """Runs all events up to a time, inclusive, and returns at how many times there were any. over: where
        it is given, this ends after the time that puts something there, or after `MOST_AHEAD` of them.
        """
        events = self._events
        instants = 0
        while events and events[0][0] <= last:
            if events[0][0] > self.now:
                if over or (instants >= MOST_AHEAD and over is not None):
                    return instants
                instants += 1
                self.settle()
                # New rates may have made an earlier or a later end.
                if not events or events[0][0] > last:
                    break
                self.now = max(events[0][0], self.now)
            _, _, _, _, kind, item = heappop(events)
            self._handle(kind, item)
        if over is None:
            self.now = max(self.now, last)
        return instants

    def _handle(self, kind: int, item: Any) -> None:
        if kind == _START:
            self._begin(item)
        elif kind == _END:
            # What has new rates since has an event of its own.
            while item and (item[-1][0] <= self.now or item[-1][3] != item[-1][2].version):
                _, _, bundle, version = item.pop()
                if bundle.version == version:
                    self._end(bundle)
            if item:
                self._push(item[-1][0], _END, item)
        elif kind == _ARRIVE:
            self.last_end_ns = max(self.last_end_ns, self.now)
            item.arrived(item.key, self.now)

    def settle(self) -> None:
        """Finds the rates of the flows that what began and ended now can affect.

        Of many bundles ends are taken together: what a flow leaves free may lie idle for a short while.
        """
        if not self._touched:
            return
        if not self._has_start and len(self._bundles) >= _MANY_BUNDLES:
            due = self._settled_ns + int((self.now - self._busy_since) * _GRAIN)
            if self.now < due:
                if self._due_ns != due:
                    self._due_ns = due
                    self._push(due, _SETTLE, None)
                return
        self._has_start = False
        self._settled_ns = self.now
        if len(self._bundles) >= _MANY_BUNDLES:
            # Most are connected: to look for those that are not takes longer than to share their links anew.
            self._touched.clear()
            self._share(list(self._bundles), list(self._bundles_on), is_lean=True)
        while self._touched:
            bundles, links = self._connected(next(iter(self._touched)))
            for link in links:
                self._touched.pop(link, None)
            if bundles:
                self._share(bundles, links)

    def report(self) -> FlowReport:
        """Returns what the links carried."""
        control = self.rules.packets.control_name if not self._plain else ""
        rules = self.rules
        return FlowReport(
            self.last_end_ns,
            self.flows,
            self.port_uses(),
            control,
            self.log,
            rules.detail,
            rules.congestion,
            self.packet_hops()[1],
        )

    def packet_hops(self) -> tuple[int, int]:
        """Returns how many packets crossed links inside servers, and outside, each link counted."""
        hops = [0.0, 0.0]
        payload = self.rules.packets.payload
        for link, port in self._ports.items():
            is_outer = not self.topology.is_inner(self.topology.links[link // 2])
            hops[is_outer] += port[0] / payload + port[1] / 2
        return round(hops[0]), round(hops[1])

    def port_uses(self) -> list[FlowPort]:
        """Returns what each direction of a link carried, where it carried anything, by its number."""
        uses = []
        for link, (size, flows, *_) in sorted(self._ports.items()):
            self._count(link, 0)
            port = self._ports[link]
            busy = port[3] + (self.now - port[2] if port[2] >= 0 else 0)
            there = self.topology.links[link // 2]
            ends = (there.target, there.source) if link % 2 else (there.source, there.target)
            equal_link = link if self._equal_links is None else self._equal_links[link]
            full = self._full_ns.get(equal_link, 0)
            mark = self._mark_times.get(equal_link)
            uses.append(
                FlowPort(
                    *ends,
                    there.gbps,
                    round(size),
                    int(flows),
                    int(busy),
                    int(port[5]),
                    port[6] / busy if busy else 0.0,
                    full,
                    mark[0] if mark else None,
                    mark[1] if mark else 0,
                    link,
                )
            )
        return uses

    def _push(self, when: int, kind: int, item: Any) -> None:
        heappush(self._events, (when, self.now, 0, self._next_id(), kind, item))

    def _begin(self, flow: _Flow) -> None:
        path = flow.path
        bundle = path.bundle
        if bundle is None:
            bundle = path.bundle = _Bundle(path, self.now)
            if not self._bundles:
                self._busy_since = self.now
            self._bundles[bundle] = None
            for link, _ in path.uses:
                self._bundles_on.setdefault(link, {})[bundle] = None
        self._has_start = True
        self._serve(bundle)
        bundle.count += 1
        heappush(bundle.ends, (bundle.served + self._work(flow.size), self._next_id(), flow))
        for link, _ in path.uses:
            self._touched[link] = None
        for link, share in path.carried:
            self._count(link, 1)
            port = self._ports[link]
            port[0] += flow.size * share
            port[1] += 1

    def _end(self, bundle: _Bundle) -> None:
        """Ends the flows of a bundle that have got all their bytes: their last packets are on their way."""
        self._serve(bundle)
        path = bundle.path
        ends = bundle.ends
        # What rounding to whole ns leaves is less than what moves in one.
        slack = bundle.rate
        while ends and ends[0][0] <= bundle.served + slack:
            _, _, flow = heappop(ends)
            bundle.count -= 1
            if self.log is not None:
                self.log.add(path.links, flow.start_ns, self.now, flow.size, flow.label)
            for link in path.links:
                self._count(link, -1)
            last = min(flow.size, self.rules.packets.payload)
            self._push(self.now + round(path.tail_ns + sum(path.first_ns) * last), _ARRIVE, flow)
        for link, _ in path.uses:
            self._touched[link] = None
        bundle.version += 1
        if not ends:
            path.bundle = None
            del self._bundles[bundle]
            for link, _ in path.uses:
                self._bundles_on[link].pop(bundle, None)
                self._full(link, False)

    def _work(self, size: int) -> float:
        """Returns the bytes of a flow with the header of a last packet that is not full."""
        packets = self.rules.packets
        rest = size % packets.payload
        if self._plain or not rest:
            return size
        header = 52 * packets.payload / (packets.payload + 52)
        return size - rest + rest * packets.payload / (packets.payload + 52) + header

    def _serve(self, bundle: _Bundle) -> None:
        bundle.served += (self.now - bundle.since) * bundle.rate
        bundle.since = self.now

    def _connected(self, link: int) -> tuple[list[_Bundle], list[int]]:
        """Returns the bundles that a change on a link can affect, and their links."""
        links = {link: None}
        bundles: dict[_Bundle, None] = {}
        waiting = [link]
        bundles_on = self._bundles_on
        while waiting:
            for bundle in bundles_on.get(waiting.pop(), ()):
                if bundle not in bundles:
                    bundles[bundle] = None
                    for other, _ in bundle.path.uses:
                        if other not in links:
                            links[other] = None
                            waiting.append(other)
        return list(bundles), list(links)

    def _share(self, bundles: list[_Bundle], links: list[int], is_lean: bool = False) -> None:
        """Finds the rates of bundles on links that no other bundle uses. is_lean: acknowledgements take the
        same share of all links.
        """
        counts = [bundle.count for bundle in bundles]
        for bundle in bundles:
            self._serve(bundle)
        paths = [bundle.path for bundle in bundles]
        uses = [path.lean_uses if is_lean else path.uses for path in paths]
        rates, bottlenecks, full_links = fair_rates(uses, counts, [path.cap for path in paths])
        now = self.now
        held_flows: dict[int, int] = {}
        for path, link, count in zip(paths, bottlenecks, counts, strict=True):
            # What acknowledgements take of a full port is no flow of it.
            held_flows[link] = held_flows.get(link, 0) + (count if link in path.links else 0)
        for link in links:
            self._full(link, link in full_links)
        for link, flows in held_flows.items():
            if link >= 0:
                self._mark(link, flows, now)
                if flows > 1 and not self.is_coupled:
                    self.is_coupled = self._source(link) in self._outer or (
                        self.has_chains and not self.topology.is_inner(self.topology.links[link // 2])
                    )
        if not self.is_coupled:
            self.is_coupled = any(
                path.is_outer and rate > path.cap_waiting for path, rate in zip(paths, rates, strict=True)
            )
        order = []
        for index, (bundle, rate) in enumerate(zip(bundles, rates, strict=True)):
            bundle.rate = rate
            bundle.version += 1
            wait = max(bundle.ends[0][0] - bundle.served, 0.0) / rate
            order.append((now + int(wait + _ROUND_UP), -index, bundle, bundle.version))
        # One event for the first of these ends, and then for the next.
        order.sort(reverse=True)
        self._push(order[-1][0], _END, order)

    def _source(self, link: int) -> int:
        there = self.topology.links[link // 2]
        return there.target if link % 2 else there.source

    def _count(self, link: int, change: int) -> None:
        """Counts a flow that comes to a link or leaves it."""
        port = self._ports.get(link)
        if port is None:
            port = self._ports[link] = [0, 0, -1, 0, 0, 0, 0, self.now]
        port[6] += port[4] * (self.now - port[7])
        port[7] = self.now
        if not port[4] and change > 0:
            port[2] = self.now
        port[4] += change
        port[5] = max(port[5], port[4])
        if not port[4] and port[2] >= 0:
            port[3] += self.now - port[2]
            port[2] = -1

    def _full(self, link: int, is_full: bool) -> None:
        since = self._full_since.get(link)
        if is_full and since is None:
            self._full_since[link] = self.now
        elif not is_full and since is not None:
            del self._full_since[link]
            self._full_ns[link] = self._full_ns.get(link, 0) + self.now - since

    def _mark(self, link: int, flows: int, now: int) -> None:
        """Notes that a switch would mark packets: its queue has the windows of all that it holds back."""
        if self._source(link) not in self._outer:
            return
        threshold = self._marks.get(self.topology.links[link // 2].gbps)
        if threshold is None or not self._window or flows * self._window <= threshold * 1000:
            return
        since, most = self._mark_times.get(link, (now, 0))
        self._mark_times[link] = (min(since, now), max(most, flows))
