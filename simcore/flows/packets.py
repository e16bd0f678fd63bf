"""Flows between servers packet by packet, as SimAI's ns-3 sends them; flows inside a server stay shares.

What a queue does to a ring cannot be told from shares: the acknowledgements of a flow wait behind the data
of others, its window stops it, and the next step starts later. So a run whose shares show that is run again
as packets, where these are not too many. A GPU serves its flows in turn, its acknowledgements first; a switch
has one queue a port. Under DCQCN a switch marks what leaves a long queue, and the sender halves its rate.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from random import Random
from typing import Any

from simcore.flows.log import FlowLog
from simcore.flows.routes import Route
from simcore.flows.traffic import MOST_AHEAD, FlowPort, FlowReport, FlowRules, FlowTraffic
from simcore.records import replace
from simcore.topology import Topology
from simcore.topology.packets import ACK_BYTES, DCQCN, HEADER_BYTES, Marks

# Events: below _DATA those of `FlowTraffic`, from it on a packet that has crossed that link of its path, from
# _ACK on an acknowledgement.
_DATA, _ACK = 10, 1000
_BEGIN, _READY, _WAKE, _DECREASE, _INCREASE = range(2000, 2005)
# DCQCN as SimAI's configuration has it: ns between updates, the share of a new mark, Gb/s.
_ALPHA_NS, _DECREASE_NS, _INCREASE_NS = 1000, 4000, 900_000
_GAIN = 1 / 256
_ADDED_GBPS, _ADDED_LATER_GBPS, _LEAST_GBPS = 0.05, 0.1, 0.1
_NO_WINDOW = 1 << 62
# So many packets times links are simulated at most, 5 s; 0.5 s where no flow waits for another and nothing
# slows flows down: then the busiest port decides, of which shares tell the same end within 3 %. For a range
# that nobody asked for a second is enough.
MOST_HOPS, MOST_FREE_HOPS, MOST_RANGE_HOPS = 700_000, 100_000, 200_000


class _Port:
    """One direction of a link. free_ns: when all that has come to it has left."""

    __slots__ = (
        "arrivals", "came", "came_then", "flows", "free_ns", "full_ns", "gbps", "is_pending", "last",
        "leaves", "link", "long_ns", "marks", "start_ns", "wake_ns",
    )  # fmt: skip

    def __init__(self, link: int, gbps: float, marks: Marks | None) -> None:
        self.link = link
        self.gbps = gbps
        self.free_ns = 0
        self.start_ns = 0
        # Of a GPU: flows in turn, the last served, whether it is asked again, and when at the latest.
        self.flows: list[_PacketFlow] = []
        self.last = 0
        self.is_pending = False
        self.wake_ns = -1
        # Of a switch: from how many ns in its queue packets are marked, and for how long packets waited.
        self.marks = marks
        self.long_ns = marks.least * 8 / gbps if marks else float("inf")
        self.full_ns = 0
        # Of a switch under DCQCN: bytes that came, (ns, bytes so far) of those not yet counted at a
        # departure, bytes so far at the last one, and (ns, bytes so far) of departures on the wire.
        self.came = 0
        self.arrivals: deque[tuple[int, int]] = deque()
        self.came_then = 0
        self.leaves: deque[tuple[int, int]] = deque()


# (port, ns of a full packet or of an acknowledgement, ns on the wire).
_Hop = tuple[_Port, int, int]


class _PacketPath:
    __slots__ = ("acks", "hops", "links")

    def __init__(self, links: tuple[int, ...], hops: list[_Hop], acks: list[_Hop]) -> None:
        self.links, self.hops, self.acks = links, hops, acks


class _PacketFlow:
    __slots__ = (
        "acked", "acks", "alpha", "alpha_ns", "arrived", "first_mark_ns", "gbps", "got", "has_mark", "hops",
        "is_due", "is_marked", "key", "label", "links", "most_gbps", "most_window", "next_ns", "port",
        "sent_bytes", "size", "stage", "start_ns", "target_gbps", "version", "window",
    )  # fmt: skip

    def __init__(
        self,
        path: _PacketPath,
        size: int,
        window: int,
        start_ns: int,
        arrived: Callable[[Any, int], None],
        key: Any,
        label: int,
    ) -> None:
        self.links, self.hops, self.acks = path.links, path.hops, path.acks
        self.port = path.hops[0][0]
        self.size = size
        self.window = self.most_window = window
        self.start_ns = start_ns
        self.arrived, self.key, self.label = arrived, key, label
        self.sent_bytes = 0
        self.got = 0
        self.acked = 0
        # When it may send again at its rate.
        self.next_ns = start_ns
        # Under DCQCN: its rate, the one it recovers to, when it was first marked, whether it was since the
        # last update of its alpha and of its rate, and whether the next of these is due.
        self.gbps = self.most_gbps = self.target_gbps = self.port.gbps
        self.alpha = 1.0
        self.alpha_ns = 0
        self.first_mark_ns = -1
        self.has_mark = self.is_marked = self.is_due = False
        self.stage = 0
        self.version = 0


class PacketTraffic(FlowTraffic):
    """All flows of a run, those between servers as packets."""

    def __init__(self, topology: Topology, rules: FlowRules, log: FlowLog | None = None) -> None:
        super().__init__(topology, rules, log)
        self._packet_ports: dict[int, _Port] = {}
        self._packet_paths: dict[Route, _PacketPath | None] = {}
        self._made_ns = 0
        self._is_dcqcn = rules.congestion == "dcqcn" and rules.packets.control == DCQCN
        self._random = Random(rules.seed).random
        self._window_bytes = self.router.window_bytes(rules.packets) if rules.packets.window else _NO_WINDOW

    def port_uses(self) -> list[FlowPort]:
        """Returns what each direction of a link carried; one of a switch was full while packets waited."""
        for port in self._packet_ports.values():
            if port.full_ns:
                self._full_ns[port.link] = port.full_ns
        return super().port_uses()

    def _send_on(
        self, route: Route, delay: int, size: int, arrived: Callable[[Any, int], None], key: Any, label: int
    ) -> None:
        if route not in self._packet_paths:
            self._packet_paths[route] = self._make_packet_path(route)
        path = self._packet_paths[route]
        if path is None:
            super()._send_on(route, delay, size, arrived, key, label)
            return
        self.flows += 1
        when = self.now + delay
        flow = _PacketFlow(path, size, self._window_bytes, when, arrived, key, label)
        # Ranks that send at one time do it in their order.
        source = self._source(route.links[0])
        heappush(self._events, (when, self.now, source, -self._next_id(), _BEGIN, flow))

    def _make_packet_path(self, route: Route) -> _PacketPath | None:
        """Returns the ports of a route; None inside a server."""
        if self.rules.detail == "outer" and self.topology.is_inner(self.topology.links[route.links[0] // 2]):
            return None
        packets = self.rules.packets
        hops = [self._make_hop(link, packets.full_ns(self._gbps(link)) or 1) for link in route.links]
        acks = [self._make_hop(link, packets.ack_ns(self._gbps(link))) for link in route.back]
        return _PacketPath(route.links, hops, acks)

    def _make_hop(self, link: int, ns: int) -> _Hop:
        port = self._packet_ports.get(link)
        if port is None:
            gbps = self._gbps(link)
            marks = self.rules.packets.marks(gbps) if self._source(link) in self._outer else None
            port = self._packet_ports[link] = _Port(link, gbps, marks)
        return port, ns, int(self.topology.links[link // 2].latency_ns)

    def _gbps(self, link: int) -> float:
        return self.topology.links[link // 2].gbps

    def run_until(self, last: int, over: Sequence[object] | None = None) -> int:
        events: list[Any] = self._events
        next_id, payload, is_dcqcn = self._next_id, self.rules.packets.payload, self._is_dcqcn
        instants = 0
        while events and events[0][0] <= last:
            now = events[0][0]
            if now > self.now:
                if over or (instants >= MOST_AHEAD and over is not None):
                    return instants
                instants += 1
                if self._touched:
                    self.settle()
                    if events[0][0] != now:
                        continue
                self.now = now
            event = heappop(events)
            code = event[4]
            if _BEGIN > code >= _DATA:
                # A packet or an acknowledgement that has crossed a link: a call for each takes 12 % more.
                flow, size, mark = event[5], event[6], event[7]
                is_packet = code < _ACK
                path, index = (flow.hops, code - _DATA + 1) if is_packet else (flow.acks, code - _ACK + 1)
                if is_dcqcn and path[index - 1][0].marks is not None:
                    is_marked = self._leave(path[index - 1][0])
                    mark = mark or (is_marked and is_packet)
                if index < len(path):
                    port, ns, wire_ns = path[index]
                    code += 1
                    if is_packet:
                        if size != payload:
                            ns = int((size + HEADER_BYTES) * 8 / port.gbps)
                        if port.free_ns > now:
                            self._wait(port, ns)
                elif is_packet:
                    self._get_packet(flow, size)
                    port, ns, wire_ns = flow.acks[0]
                    code, is_packet = _ACK, False
                else:
                    self._get_acknowledgement(flow, size, mark, event[1])
                    continue
                # It leaves behind what is at the port already.
                start_ns, made_ns = port.free_ns, port.start_ns
                if start_ns < now:
                    start_ns, made_ns = now, event[1]
                port.start_ns = start_ns
                port.free_ns = free_ns = start_ns + ns
                if is_dcqcn and port.marks is not None:
                    port.came += size + HEADER_BYTES if is_packet else ACK_BYTES
                    port.arrivals.append((now, port.came))
                    port.leaves.append((start_ns, port.came))
                heappush(events, (free_ns + wire_ns, start_ns, made_ns, next_id(), code, flow, size, mark))
            elif code < _DATA:
                self._handle(code, event[5])
            else:
                self._made_ns = event[1]
                self._handle_rate(code, event[5])
        if over is None:
            self.now = max(self.now, last)
        return instants

    def _wait(self, port: _Port, ns: int) -> None:
        """Counts a packet that takes `ns` and waits for those before it."""
        port.full_ns += ns
        if port.free_ns - self.now > port.long_ns:
            self._note_mark(port.link)

    def _get_packet(self, flow: _PacketFlow, size: int) -> None:
        """Counts a packet that has arrived."""
        flow.got += size
        if flow.got >= flow.size:
            self._end_packets(flow)

    def _get_acknowledgement(self, flow: _PacketFlow, size: int, mark: bool, came_ns: int) -> None:
        """Counts an acknowledgement that is back; its GPU sends on. came_ns: when it left the port before."""
        flow.acked += size
        if flow.acked >= flow.size:
            self.last_end_ns = max(self.last_end_ns, self.now)
            flow.arrived(flow.key, self.now)
        elif mark and self._is_dcqcn:
            self._receive_mark(flow)
        if not flow.port.is_pending:
            self._made_ns = came_ns
            self._serve_port(flow.port)

    def _handle_rate(self, code: int, item: Any) -> None:
        """Handles an event of a sender."""
        if code == _READY:
            item.is_pending = False
            self._serve_port(item)
        elif code == _BEGIN:
            for link in item.links:
                self._count(link, 1)
                port = self._ports[link]
                port[0] += item.size
                port[1] += 1
            item.port.flows.append(item)
            self._serve_port(item.port)
        elif code == _WAKE:
            self._serve_port(item)
        elif code == _DECREASE:
            item.is_due = False
            self._decrease(item)
        else:
            flow, version = item
            if flow.version == version and flow.acked < flow.size:
                self._increase(flow)

    def _serve_port(self, port: _Port) -> None:
        """Sends the next packet of a GPU's port, of the flows that may send the next in turn."""
        now = self.now
        if port.is_pending:
            return
        if port.free_ns > now:
            port.is_pending = True
            self._push(port.free_ns, _READY, port)
            return
        flows = port.flows
        count = len(flows)
        turn = over = -1
        for offset in range(1, count + 1):
            index = (offset + port.last) % count
            flow = flows[index]
            if flow.sent_bytes < flow.size and flow.sent_bytes - flow.acked < flow.window:
                if flow.next_ns <= now:
                    turn = index
                    break
            elif flow.acked >= flow.size and (over < 0 or index < over):
                over = index
        if over >= 0:
            # Those that are over leave the list, as they are met.
            next_flow = flows[turn] if turn >= 0 else None
            flows[over:] = [flow for flow in flows[over:] if flow.acked < flow.size]
            if next_flow is not None and turn > over:
                turn = flows.index(next_flow, over)
        if turn < 0:
            # One that has sent all waits for acknowledgements alone.
            sending = (flow.next_ns for flow in flows if flow.sent_bytes < flow.size)
            next_ns = min(sending, default=now)
            if next_ns > now and port.wake_ns <= now:
                port.wake_ns = next_ns
                self._push(next_ns, _WAKE, port)
            return
        flow = flows[turn]
        port.last = turn
        payload = self.rules.packets.payload
        _, ns, wire_ns = flow.hops[0]
        size = flow.size - flow.sent_bytes
        if size >= payload:
            size = payload
        else:
            ns = int((size + HEADER_BYTES) * 8 / port.gbps)
        flow.sent_bytes += size
        flow.next_ns = now + (ns if flow.gbps == port.gbps else int((size + HEADER_BYTES) * 8 / flow.gbps))
        port.free_ns = now + ns
        port.start_ns = now
        port.is_pending = True
        next_id = self._next_id
        heappush(self._events, (now + ns, now, self._made_ns, next_id(), _READY, port))
        heappush(self._events, (now + ns + wire_ns, now, self._made_ns, next_id(), _DATA, flow, size, False))  # type: ignore[misc]

    def _end_packets(self, flow: _PacketFlow) -> None:
        """Takes a flow off its links when its last byte has come."""
        if self.log is not None:
            self.log.add(flow.links, flow.start_ns, self.now, flow.size, flow.label)
        for link in flow.links:
            self._count(link, -1)

    def _note_mark(self, link: int) -> None:
        since, most = self._mark_times.get(link, (self.now, 0))
        self._mark_times[link] = (since, max(most, int(self._ports[link][4])))

    def _leave(self, port: _Port) -> bool:
        """Returns whether the switch marked the packet that left a port and has arrived now, by the queue
        behind it.
        """
        start, came = port.leaves.popleft()
        arrivals = port.arrivals
        while arrivals and arrivals[0][0] <= start:
            port.came_then = arrivals.popleft()[1]
        marks = port.marks
        assert marks is not None
        queue = port.came_then - came
        if queue <= marks.least:
            return False
        if queue > marks.most:
            return True
        return self._random() < marks.chance * (queue - marks.least) / (marks.most - marks.least)

    def _receive_mark(self, flow: _PacketFlow) -> None:
        """Notes a mark: the rate falls at the next of the times that begin with the first mark."""
        now = self.now
        if flow.first_mark_ns < 0:
            flow.first_mark_ns = flow.alpha_ns = now
        else:
            self._update_alpha(flow)
            flow.is_marked = True
        flow.has_mark = True
        if not flow.is_due:
            flow.is_due = True
            # 1 ns later, so that alpha is updated before.
            first = flow.first_mark_ns + 1
            steps = max(-((first - now) // _DECREASE_NS), 1)
            self._push(first + steps * _DECREASE_NS, _DECREASE, flow)

    def _update_alpha(self, flow: _PacketFlow) -> None:
        updates = (self.now - flow.alpha_ns) // _ALPHA_NS
        if updates:
            alpha = (1 - _GAIN) * flow.alpha + (_GAIN if flow.is_marked else 0.0)
            flow.alpha = alpha * (1 - _GAIN) ** (updates - 1)
            flow.is_marked = False
            flow.alpha_ns += updates * _ALPHA_NS

    def _decrease(self, flow: _PacketFlow) -> None:
        if not flow.has_mark or flow.acked >= flow.size:
            return
        self._update_alpha(flow)
        if flow.stage:
            flow.target_gbps = flow.gbps
        self._set_rate(flow, max(_LEAST_GBPS, flow.gbps * (1 - flow.alpha / 2)))
        flow.stage = 0
        flow.has_mark = False
        flow.version += 1
        self._push(self.now + _INCREASE_NS, _INCREASE, (flow, flow.version))

    def _increase(self, flow: _PacketFlow) -> None:
        if flow.stage:
            added = _ADDED_GBPS if flow.stage == 1 else _ADDED_LATER_GBPS
            flow.target_gbps = min(flow.target_gbps + added, flow.most_gbps)
        self._set_rate(flow, (flow.gbps + flow.target_gbps) / 2)
        flow.stage += 1
        self._push(self.now + _INCREASE_NS, _INCREASE, (flow, flow.version))

    def _set_rate(self, flow: _PacketFlow, gbps: float) -> None:
        """Sets the rate of a flow, and its window in proportion."""
        flow.gbps = gbps
        if flow.most_window < _NO_WINDOW:
            flow.window = max(int(flow.most_window * gbps / flow.most_gbps), 1)


def make_traffic(topology: Topology, rules: FlowRules, log: FlowLog | None = None) -> FlowTraffic:
    """Returns the traffic of a run, with nothing on it yet."""
    return (FlowTraffic if rules.detail == "shares" else PacketTraffic)(topology, rules, log)


def slowed_rules(report: FlowReport, rules: FlowRules) -> FlowRules | None:
    """Returns the rules of a run that has what congestion control would do to it; None where it would do
    nothing, or takes more than a second to tell.
    """
    if rules.congestion != "none" or not report.marked_ports() or report.packet_hops > MOST_RANGE_HOPS:
        return None
    return replace(rules, congestion="dcqcn") if rules.packets.control == DCQCN else None


def has_few_packets(report: FlowReport) -> bool:
    """Returns whether a run is simulated as packets where congestion control slows it down."""
    return report.packet_hops <= MOST_HOPS


def finer_rules(traffic: FlowTraffic) -> FlowRules | None:
    """Returns the rules by which a run is to be made again as packets; None where its shares stand."""
    rules = traffic.rules
    if rules.model == "plain" or rules.detail != "shares" or not traffic.is_coupled:
        return None
    if rules.ecmp == "balanced":
        # A packet has one path.
        return None
    is_slowed = rules.congestion == "dcqcn" and rules.packets.control == DCQCN
    most = MOST_HOPS if traffic.has_chains or is_slowed else MOST_FREE_HOPS
    inner, outer = traffic.packet_hops()
    if traffic.has_mixed_rings and inner + outer <= most:
        return replace(rules, detail="all")
    return replace(rules, detail="outer") if outer <= most else None
