"""What each port of a network carried, tier by tier, over the step and at any instant of it.

A port is one direction of a link. The ports of a topology carry flows, those of dimensions messages, of which
only sums are known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from simcore.flows.log import Transmission
from simcore.records import NamedTuple
from simcore.units import duration, plural

if TYPE_CHECKING:
    from simcore.cluster import Dimension
    from simcore.flows.log import FlowLog
    from simcore.flows.traffic import FlowReport
    from simcore.messages.network import LinkUse
    from simcore.topology import Topology
    from simcore.trace.changes import Change

# Into so many stretches the step is divided for the load of a port: the cells of a wide screen, and
# finer where one zooms in 5 times: 48 ports of 2048 took 155 ms of the first timeline.
STRETCHES = 1024
# The load of a tier is that of its fullest ports, of which so many are looked at.
_MOST_PORTS = 32


class Port(NamedTuple):
    """One direction of a link, and what it carried over the step."""

    source: str
    target: str
    tier: int
    """The index of its tier."""
    gbps: float
    """Gb/s."""
    bytes: int
    sends: int
    """Flows, or messages."""
    busy_ns: int
    """How long anything was on it."""
    held_ns: int
    """How long it held flows back, or how long messages waited for it."""
    mean: float = 0.0
    """The mean number of flows while it was busy."""
    most: int = 0
    """The most flows at once."""
    is_marked: bool = False
    """Whether its queue gets so long that congestion control marks packets."""
    is_own: bool = False
    """Whether a GPU sends on it: flows that share it are its own."""
    is_inside: bool = False
    """Whether it is one of a switch inside a server."""
    ends: tuple[int, int] = (0, 0)
    """The numbers of its nodes."""
    block: int = 0
    """What it belongs to, for a picture: the server of its GPU, else its lower switch."""

    @property
    def name(self) -> str:
        """`asw36 > psw42`."""
        return f"{self.source} > {self.target}"


class Tier(NamedTuple):
    """Ports between the same kinds of nodes, in the same direction."""

    name: str
    """`gpu > asw`."""
    ports: tuple[int, ...]
    """Their indices."""


class Purpose(NamedTuple):
    """What a flow was sent for, and where the timeline shows that."""

    group: str
    """The stream: tp, dp, pp."""
    layer: str
    """The row of the file."""
    track_id: int
    start_ns: int
    end_ns: int
    op: int
    """Its span on the track."""
    job: int = 0
    """Which of several jobs it is of: the timeline shows the first."""


class Send(NamedTuple):
    """A flow on a port."""

    source: str
    target: str
    bytes: int
    start_ns: int
    end_ns: int
    purpose: Purpose | None


class Ports:
    """All ports of a network. sends_noun: `flow` or `message`."""

    def __init__(
        self,
        ports: Sequence[Port],
        tiers: Sequence[Tier],
        step_ns: int,
        sends_noun: str,
        log: FlowLog | None = None,
        find_purpose: Callable[[Transmission], Purpose | None] = lambda _: None,
        find_changes: Callable[[tuple[int, int]], Sequence[Change]] = lambda _: (),
        congestion: str = "",
        classes: int = 0,
    ) -> None:
        """log: when flows were on their links, by the numbers of ports. find_changes: what can be tried with
        the link between two nodes, and with the paths of flows. congestion: where congestion control slows
        flows down, in words; "" where it does not. classes: as in `FlowReport`.
        """
        self.all = ports
        self.tiers = tiers
        self.step_ns = step_ns
        self.sends_noun = sends_noun
        self.congestion = congestion
        self.classes = classes
        self._log = log
        self._find_purpose = find_purpose
        self._find_changes = find_changes
        self._purposes: dict[int, Purpose | None] = {}
        self._flows_of: dict[int, list[int]] | None = None
        self._loads: dict[int, list[float]] = {}
        self._tier_loads: dict[int, list[float]] = {}
        used = [index for index, port in enumerate(ports) if port.sends]
        self.by_heat: list[int] = sorted(used, key=lambda index: (*self._coldness(index), index))
        """The ports that carried anything, the one of the largest load first, to 0.1 % of it; of equal ones
        that of the most flows, then that which holds flows back longest.
        """

    def _coldness(self, index: int) -> tuple[float, int, int]:
        port = self.all[index]
        return -round(self.mean_load(index), 3), -port.most, -port.held_ns

    @property
    def hottest_shared(self) -> int | None:
        """The hottest of the ports outside servers with several flows that hold flows back for at least half
        as long as any of these, first of switches; None where no port has several.
        """
        shared_ports = [
            index for index in self.by_heat if self.all[index].most > 1 and not self.all[index].is_inside
        ]
        longest_ns = max((self.all[index].held_ns for index in shared_ports), default=0)
        full_ports = [index for index in shared_ports if 2 * self.all[index].held_ns >= longest_ns]
        return min(full_ports, key=lambda index: self.all[index].is_own, default=None)

    @property
    def has_times(self) -> bool:
        """Whether it is known when each flow was on its links."""
        return self._log is not None

    @property
    def has_purposes(self) -> bool:
        """Whether it is known what flows were sent for."""
        return self._log is not None and bool(self._log.transmissions)

    @property
    def used_tiers(self) -> int:
        """The number of tiers that carried anything."""
        return len({self.all[index].tier for index in self.by_heat})

    @property
    def words(self) -> str:
        """How many ports carried how much, and how many nothing, or whose ports they are."""
        if self.classes:
            return f"{plural(len(self.by_heat), 'port')} {self.of_classes}"
        idle = len(self.all) - len(self.by_heat)
        text = f"{plural(len(self.by_heat), 'port')} carried {self.sends_noun}s"
        return f"{text}, {idle} nothing" if idle else text

    @property
    def of_classes(self) -> str:
        """Whose ports they are, of equal ranks that were simulated once."""
        return f"of one rank of each of {plural(self.classes, 'class')}; its equals' carry as much"

    def share(self, index: int) -> float:
        """Returns the share of the step in which a port is busy."""
        return self.all[index].busy_ns / self.step_ns if self.step_ns else 0.0

    def held_share(self, index: int) -> float:
        """Returns the share of the step in which a port holds flows back."""
        return self.all[index].held_ns / self.step_ns if self.step_ns else 0.0

    def mean_load(self, index: int) -> float:
        """Returns the share of the bytes that a port could carry in the step that it does."""
        port = self.all[index]
        room = port.gbps / 8 * self.step_ns
        return port.bytes / room if room else 0.0

    def changes_of(self, index: int) -> Sequence[Change]:
        """Returns the changes that can be tried with a port's link, and with the paths of flows."""
        return self._find_changes(self.all[index].ends)

    # -- over time ---------------------------------------------------------------------

    def load(self, index: int) -> list[float]:
        """Returns the load of a port in each of `STRETCHES` stretches of the step: the bytes, at the mean
        rate of each flow, as a share of what it could carry.
        """
        if index not in self._loads:
            self._loads[index] = self._find_load(index)
        return self._loads[index]

    def tier_load(self, tier: int) -> list[float]:
        """Returns the load of the fullest port of a tier in each stretch."""
        if tier not in self._tier_loads:
            members = set(self.tiers[tier].ports)
            hot = [index for index in self.by_heat if index in members][:_MOST_PORTS]
            load = [0.0] * STRETCHES
            for index in hot:
                load = list(map(max, load, self.load(index)))
            self._tier_loads[tier] = load
        return self._tier_loads[tier]

    def between(self, load: Sequence[float], first_ns: int, last_ns: int, columns: int) -> list[float]:
        """Returns the largest of a load in each of `columns` equal parts of a stretch of time."""
        step, span = max(self.step_ns, 1), last_ns - first_ns
        parts = []
        for column in range(columns):
            first = (first_ns + span * column // columns) * STRETCHES // step
            last = -(-(first_ns + span * (column + 1) // columns) * STRETCHES // step)
            parts.append(max(load[max(first, 0) : max(last, first + 1)], default=0.0))
        return parts

    def _find_load(self, index: int) -> list[float]:
        # The change of the rate at the begin of each stretch, and what a stretch has beside that.
        steps, extra = [0.0] * (STRETCHES + 1), [0.0] * (STRETCHES + 1)
        log, gbps = self._log, self.all[index].gbps
        width = max(self.step_ns, 1) / STRETCHES
        for flow in self._flows(index):
            assert log is not None
            start, end = log.start_ns[flow] / width, max(log.end_ns[flow], log.start_ns[flow] + 1) / width
            level = self._bytes(flow, index) / (end - start) / width
            if start >= STRETCHES:
                continue
            end = min(end, STRETCHES)
            first, last = int(start), min(int(end), STRETCHES - 1)
            if first == last:
                extra[first] += level * (end - start)
                continue
            extra[first] += level * (first + 1 - start)
            extra[last] += level * (end - last)
            steps[first + 1] += level
            steps[last] -= level
        room = gbps / 8
        return [
            max((one + more) / room, 0.0)
            for one, more in zip(accumulate(steps[:STRETCHES]), extra, strict=False)
        ]

    def _flows(self, index: int) -> list[int]:
        """Returns the flows of a port, by their index in the log."""
        if self._flows_of is None:
            flows_of: dict[int, list[int]] = {}
            if self._log is not None:
                routes = self._log.routes
                for flow, route in enumerate(self._log.route):
                    for link in routes[route]:
                        flows_of.setdefault(link, []).append(flow)
            self._flows_of = flows_of
        return self._flows_of.get(index, [])

    def _bytes(self, flow: int, index: int) -> float:
        """Returns the bytes of a flow on a port."""
        log = self._log
        assert log is not None
        if not log.shares:
            return log.size[flow]
        links = log.routes[log.route[flow]]
        shares = log.shares.get(links)
        return log.size[flow] * (1.0 if shares is None else shares[links.index(index)])

    # -- flows -------------------------------------------------------------------------

    def sends_at(self, index: int, time_ns: int) -> list[Send]:
        """Returns the flows that are on a port at a time, those that began first in front."""
        log = self._log
        if log is None:
            return []
        flows = [flow for flow in self._flows(index) if log.start_ns[flow] <= time_ns < log.end_ns[flow]]
        return [self._send(flow) for flow in sorted(flows, key=lambda flow: log.start_ns[flow])]

    def count_at(self, index: int, time_ns: int) -> int:
        """Returns how many flows are on a port at a time."""
        log = self._log
        if log is None:
            return 0
        return sum(log.start_ns[flow] <= time_ns < log.end_ns[flow] for flow in self._flows(index))

    def jobs(self, index: int) -> set[int]:
        """Returns the jobs whose flows a port carried, of several on one topology."""
        log = self._log
        if log is None:
            return set()
        labels = {log.label[flow] for flow in self._flows(index)}
        return {log.transmissions[label].job for label in labels if label >= 0}

    def changes(self, index: int) -> list[int]:
        """Returns when flows begin and end on a port, ns, each time once."""
        log = self._log
        if log is None:
            return []
        flows = self._flows(index)
        return sorted({log.start_ns[flow] for flow in flows} | {log.end_ns[flow] for flow in flows})

    def busiest_ns(self, index: int) -> int:
        """Returns the first time at which the most flows are on a port."""
        log, most, best, now = self._log, 0, 0, 0
        if log is None:
            return 0
        ends = [(log.end_ns[flow], -1) for flow in self._flows(index)]
        for time, change in sorted([*ends, *((log.start_ns[flow], 1) for flow in self._flows(index))]):
            now += change
            if now > most:
                most, best = now, time
        return best

    def purposes(self, index: int) -> list[tuple[str, str, int]]:
        """Returns (group, layer, bytes) of what a port carried, the most bytes first."""
        sums: dict[tuple[str, str], float] = {}
        for flow in self._flows(index):
            assert self._log is not None
            purpose = self._purpose(self._log.label[flow])
            if purpose is not None:
                key = (purpose.group, purpose.layer)
                sums[key] = sums.get(key, 0.0) + self._bytes(flow, index)
        purposes = [(*key, round(size)) for key, size in sums.items()]
        return sorted(purposes, key=lambda one: (-one[2], one[:2]))

    def _send(self, flow: int) -> Send:
        log = self._log
        assert log is not None
        links = log.routes[log.route[flow]]
        return Send(
            self.all[links[0]].source,
            self.all[links[-1]].target,
            log.size[flow],
            log.start_ns[flow],
            log.end_ns[flow],
            self._purpose(log.label[flow]),
        )

    def _purpose(self, label: int) -> Purpose | None:
        if label < 0 or self._log is None:
            return None
        if label not in self._purposes:
            self._purposes[label] = self._find_purpose(self._log.transmissions[label])
        return self._purposes[label]


def ports_of_flows(
    report: FlowReport,
    topology: Topology,
    step_ns: int,
    find_purpose: Callable[[Transmission], Purpose | None] = lambda _: None,
    find_changes: Callable[[tuple[int, int]], Sequence[Change]] = lambda _: (),
) -> Ports:
    """Returns the ports of a topology, also those that carried nothing; the number of a port is twice the
    index of its link, + 1 against it.
    """
    from simcore.flows.traffic import FlowPort

    uses, inner = {port.link: port for port in report.ports}, set(topology.inner_switches)
    kinds: dict[tuple[str, str], list[int]] = {}
    ends_of = [
        ends for link in topology.links for ends in ((link.source, link.target), (link.target, link.source))
    ]
    for index, ends in enumerate(ends_of):
        kinds.setdefault((topology.kind_of(ends[0]), topology.kind_of(ends[1])), []).append(index)
    order = sorted(kinds, key=lambda pair: topology.tier_order(*pair))
    for members in kinds.values():
        # Both directions of a link have the same position in their tiers.
        members.sort(key=lambda index: (min(ends_of[index]), max(ends_of[index])))
    tier_of = {index: tier for tier, pair in enumerate(order) for index in kinds[pair]}
    ports, idle = [], FlowPort(0, 0, 0.0, 0, 0, 0, 0, 0.0, 0, None, 0, 0)
    for index, (source, target) in enumerate(ends_of):
        use, low = uses.get(index, idle), min(source, target)
        ports.append(
            Port(
                topology.name_of(source), topology.name_of(target), tier_of[index],
                topology.links[index // 2].gbps, use.bytes, use.flows, use.busy_ns, use.full_ns,
                use.mean_flows, use.most_flows, use.marked_ns is not None and bool(report.control),
                is_own=source < topology.gpus, is_inside=bool(inner.intersection((source, target))),
                ends=(source, target), block=topology.server_of(low) if low < topology.gpus else low,
            )
        )  # fmt: skip
    tiers = [Tier(" > ".join(pair), tuple(kinds[pair])) for pair in order]
    congestion = _congestion_words(report, ports)
    return Ports(
        ports, tiers, step_ns, "flow", report.log, find_purpose, find_changes, congestion, report.classes
    )


def _congestion_words(report: FlowReport, ports: Sequence[Port]) -> str:
    """Returns where congestion control slows flows down, or would; "" where it does not."""
    marked_ports = report.marked_ports()
    if not marked_ports:
        return ""
    first = marked_ports[0]
    return (
        f"{report.control} {'slows' if report.is_slowed else 'would slow'} flows down at "
        f"{plural(len(marked_ports), 'port')}, first at {ports[first.link].name} from "
        f"{duration(first.marked_ns or 0)} on, where up to {first.marked_flows} flows queue"
    )


def ports_of_links(links: Sequence[LinkUse], dims: Sequence[Dimension], step_ns: int) -> Ports:
    """Returns the ports that messages used."""

    def name(node: int) -> str:
        return f"rank{node}" if node >= 0 else f"sw{-1 - node}"

    ports: list[Port] = []
    members: dict[tuple[int, bool, bool], list[int]] = {}
    for link in sorted(links, key=lambda link: (link.dimension, link.source < 0, link.target < 0)):
        key = link.dimension, link.source < 0, link.target < 0
        members.setdefault(key, []).append(len(ports))
        ports.append(
            Port(
                name(link.source),
                name(link.target),
                len(members) - 1,
                8 * dims[link.dimension].bandwidth,
                link.bytes,
                link.messages,
                link.busy_ns,
                link.queued_ns,
                ends=(link.source, link.target),
            )
        )
    words = ("rank", "sw")
    tiers = [
        Tier(f"dim {dimension} {words[source]} > {words[target]}", tuple(indices))
        for (dimension, source, target), indices in members.items()
    ]
    return Ports(ports, tiers, step_ns, "message")
