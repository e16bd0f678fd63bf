"""`--ecmp balanced`: every flow on all its equal paths at once, so that ranks that are alike stay alike.

One rank of each class is simulated. What a collective sends in all its steps is one flow of its class: the
steps' fixed times first, then their bytes, on the ports of that rank, and on the links of its switches to the
tiers above, of which the groups of the class take together what they send over them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from simcore.diagnostics import UsageError
from simcore.flows.collectives import estimate_flows, make_rings
from simcore.flows.routes import Router
from simcore.flows.traffic import FlowReport, FlowRules, FlowTraffic, WeightedPath
from simcore.layout import Layout
from simcore.networks.in_flight import FlowsInFlight
from simcore.program.ops import KIND_OF_STREAM
from simcore.records import NamedTuple
from simcore.topology import Topology
from simcore.workload.model import GroupKind

if TYPE_CHECKING:
    from simcore.folding import Folding
    from simcore.networks.model import ClassTransmission


class _Payload(Protocol):
    """What moves, as `FlowPayload` has it."""

    @property
    def collective(self) -> str | None: ...
    @property
    def size(self) -> int: ...
    @property
    def algorithm(self) -> str: ...


class _Pattern(NamedTuple):
    """What the groups of some classes send in a step, in flows of one share each."""

    inner: int
    """Flows of a rank inside its server."""
    outer: int
    """Flows of a rank to other servers."""
    up: dict[int, float]
    """Flows from a switch to the tier above."""
    down: dict[int, float]
    """Flows from the tier above to a switch."""
    shares: int
    """The parts of the whole buffer that one flow is one of."""
    steps: int
    ends: tuple[tuple[int, int], ...]
    """Of the first rank, a flow in its server and one to another, where there are these."""


class _Flow(NamedTuple):
    """What is sent for a collective in all its steps, or for a transfer."""

    path: WeightedPath
    delay_ns: int
    """What passes before its first byte."""
    size: int
    """Bytes of each of the flows that it stands for."""
    flows: int
    """How many of a rank it stands for."""


class BalancedTransport(FlowsInFlight):
    """The flows of a run by class."""

    def __init__(self, topology: Topology, rules: FlowRules, layout: Layout, folding: Folding) -> None:
        super().__init__(FlowTraffic(topology, rules))
        self._topology = topology
        self._layout = layout
        self._folding = folding
        self._router = Router(topology)
        self._first = [one.ranks.blocks[0].first for one in folding.classes]
        # By kind (a class, a group whose first rank is of it).
        self._groups_of: dict[GroupKind, list[tuple[int, list[int]]]] = {}
        self._patterns: dict[tuple[GroupKind, str, tuple[int, ...]], _Pattern] = {}
        # What moves -> its flow: of all micro-batches it is the same.
        self._flow_of: dict[tuple[_Payload, tuple[int, ...], tuple[int, ...], int], _Flow | None] = {}
        self._flows = 0
        # Gb/s from a switch to the tiers above it.
        self._above: dict[int, float] = {}
        tiers = topology.tiers()
        for link in topology.links:
            low = min((link.source, link.target), key=lambda node: tiers.get(node, 0))
            if tiers.get(low):
                self._above[low] = self._above.get(low, 0.0) + link.gbps

    def start(
        self,
        now: int,
        token: object,
        payload: _Payload,
        senders: Sequence[int],
        receivers: Sequence[int],
        stream: int,
    ) -> None:
        """Begins a collective of rank classes, or a transfer from one to another."""
        self.traffic.now = max(now, self.traffic.now)
        flow = self._flow(payload, tuple(senders), tuple(receivers), stream)
        if flow is None:
            self.over.append(token)
            return
        self._flows += flow.flows
        self.traffic.send_weighted(flow.delay_ns, flow.path, flow.size, self._end, token)

    def links_of(self, transmission: ClassTransmission) -> Iterable[int]:
        """Returns the links of a transmission."""
        flow = self._flow(*transmission)
        return () if flow is None else flow.path.links

    def alone_ns(self, transmission: ClassTransmission) -> int:
        """Returns the ns of a transmission that meets no other one."""
        flow = self._flow(*transmission)
        return 0 if flow is None else flow.delay_ns + self.traffic.alone_ns(flow.path, flow.size)

    def carry_alone(self, transmission: ClassTransmission, starts: Sequence[int]) -> None:
        """Carries a transmission from each of these times on, ascending, that meets no other one."""
        flow = self._flow(*transmission)
        if flow is not None:
            self._flows += flow.flows * len(starts)
            self.traffic.carry_alone([start + flow.delay_ns for start in starts], flow.path, flow.size)

    def _flow(
        self, payload: _Payload, senders: tuple[int, ...], receivers: tuple[int, ...], stream: int
    ) -> _Flow | None:
        """Returns the flow of a collective of rank classes, or of a transfer; None where nothing moves."""
        key = payload, senders, receivers, stream
        if key not in self._flow_of:
            self._flow_of[key] = self._make_flow(*key)
        return self._flow_of[key]

    def _make_flow(
        self, payload: _Payload, senders: tuple[int, ...], receivers: tuple[int, ...], stream: int
    ) -> _Flow | None:
        if not payload.size:
            return None
        if payload.algorithm not in ("", "ring"):
            raise UsageError(
                f"--algorithm {payload.algorithm}: --ecmp balanced of many ranks has rings, --no-fold all"
            )
        if payload.collective is None:
            ends = self._first[senders[0]], self._first[receivers[0]]
            inside = self._topology.server_of(ends[0]) == self._topology.server_of(ends[1])
            up, down = self._above_flows([ends] * (0 if inside else 1))
            pattern = _Pattern(int(inside), int(not inside), up, down, 1, 1, (ends,))
            classes = senders
            flows = 1
        else:
            classes = tuple(sorted(senders))
            key = (KIND_OF_STREAM[stream], payload.collective, classes)
            if key not in self._patterns:
                self._patterns[key] = self._make_pattern(*key)
            pattern = self._patterns[key]
            members = self._layout.group_size(key[0])
            flows = estimate_flows(payload.collective, members, self._topology.gpus_per_server)
        share = max(payload.size // pattern.shares, 1)
        path = self.traffic.weighted_path(self._uses(pattern, classes))
        return _Flow(path, self._delay_ns(pattern, share), share * pattern.steps, flows)

    def flow_report(self) -> FlowReport:
        """Returns what the links of one rank of each class carried, and when the last flow ended."""
        return (
            super().flow_report()._replace(flows=self._flows, control="", classes=len(self._folding.classes))
        )

    def _end(self, token: object, _: int) -> None:
        self.over.append(token)

    def _groups(self, kind: GroupKind, classes: tuple[int, ...]) -> Iterator[list[int]]:
        """Returns the groups of a kind that these classes are in."""
        if kind not in self._groups_of:
            self._groups_of[kind] = [
                (self._folding.class_of(ranks[0]), ranks) for ranks in self._layout.groups(kind)
            ]
        return (ranks for class_id, ranks in self._groups_of[kind] if class_id in classes)

    def _make_pattern(self, kind: GroupKind, collective: str, classes: tuple[int, ...]) -> _Pattern:
        topology, rules = self._topology, self.traffic.rules
        groups = list(self._groups(kind, classes))
        outer_flows: list[tuple[int, int]] = []
        inner = outer = shares = steps = 1
        ends: list[tuple[int, int]] = []
        for index, ranks in enumerate(groups):
            if collective == "ALLTOALL":
                flows = [(source, target) for source in ranks for target in ranks if source != target]
                shares, steps = len(ranks), 1
            else:
                rings = make_rings(ranks, topology.gpus_per_server)
                flows = [pair for ring in rings for pair in zip(ring, (*ring[1:], ring[0]), strict=True)]
                shares = len(ranks) * len(rings)
                steps = (len(ranks) - 1) * (2 if collective == "ALLREDUCE" else 1)
            of_group = [pair for pair in flows if topology.server_of(pair[0]) != topology.server_of(pair[1])]
            outer_flows += of_group
            if not index:
                outer = -(-len(of_group) // len(ranks))
                inner = -(-(len(flows) - len(of_group)) // len(ranks))
                in_group = [pair for pair in flows if pair not in set(of_group)]
                ends = [*in_group[:1], *of_group[:1]]
            if rules.nvls and collective == "ALLREDUCE" and not of_group and len(ranks) > 7:
                # Four chunks up and down, and one more stage to fill.
                inner, shares, steps = 1, 4, 5
        up, down = self._above_flows(outer_flows)
        return _Pattern(inner, outer, up, down, shares, steps, tuple(ends))

    def _above_flows(self, flows: Sequence[tuple[int, int]]) -> tuple[dict[int, float], dict[int, float]]:
        """Returns the flows of each switch to and from the tier above, of flows between servers."""
        up: dict[int, float] = {}
        down: dict[int, float] = {}
        for source, target in flows:
            below = [self._switches(end) for end in (source, target)]
            if set(below[0]) & set(below[1]):
                continue
            for counts, switches in zip((up, down), below, strict=True):
                for switch in switches:
                    counts[switch] = counts.get(switch, 0.0) + 1 / len(switches)
        return up, down

    def _switches(self, gpu: int) -> list[int]:
        outer = self._topology.tiers()
        return [peer for peer, _ in self._topology.neighbors()[gpu] if peer in outer]

    def _uses(self, pattern: _Pattern, classes: tuple[int, ...]) -> tuple[tuple[int, float], ...]:
        """Returns (link, how often it carries a share at the pace of the flow), of the classes' first
        ranks.
        """
        topology = self._topology
        inner = topology.inner_set()
        weights: dict[int, float] = {}
        for index in classes:
            rank = self._first[index]
            near = topology.neighbors()[rank]
            for is_inner, flows in ((True, pattern.inner), (False, pattern.outer)):
                ports = [link for peer, link in near if (peer in inner) == is_inner]
                for link in ports:
                    out = 2 * link + (topology.links[link].source != rank)
                    for direction in (out, out ^ 1):
                        weights[direction] = flows / len(ports)
        for counts, is_up in ((pattern.up, True), (pattern.down, False)):
            for switch, count in counts.items():
                # All links of a switch to the tier above are as one; the first stands for them.
                link = topology.neighbors()[switch][0][1]
                out = 2 * link + (topology.links[link].source != switch)
                share = topology.links[link].gbps / self._above.get(switch, topology.links[link].gbps)
                weights[out if is_up else out ^ 1] = count * share
        return tuple((link, weight) for link, weight in sorted(weights.items()) if weight)

    def _delay_ns(self, pattern: _Pattern, share: int) -> int:
        """Returns what steps take beside their bytes: sends, hops, acknowledgements, ns."""
        rules = self.traffic.rules
        tail = 0
        for source, target in pattern.ends:
            route = self._router.route(source, target)
            if route is not None:
                tail = max(tail, self.traffic.tail_ns(route, share))
        return pattern.steps * (rules.start_ns + tail)
