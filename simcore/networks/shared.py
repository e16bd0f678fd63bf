"""`shared`: concurrent transmissions share ports max-min fairly, by the algorithms of `analytical`, and are
timed anew at every start and end.

Each collective or transfer puts phases of fixed time and bytes on the ports; each of its chunks walks the
phases, and a dimension serves a few at a time; ports share by max-min fairness.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from sortedcontainers import SortedList

from simcore.cluster import Cluster, GroupShape, TransferShape
from simcore.collectives import transfer_ns
from simcore.collectives.algorithms import algorithm_named
from simcore.collectives.exact import floor_ns
from simcore.collectives.phases import Phase, chain_bytes, chunk_bytes, load_ns, phase_loads, phases
from simcore.folding.graph import PortFactors
from simcore.layout import Layout
from simcore.networks.analytical import Analytical
from simcore.networks.model import GroupCollective, Network, NetworkParameters, PortTransport
from simcore.records import NamedTuple

if TYPE_CHECKING:
    from simcore.folding import Folding
    from simcore.program import Program


class Flow(NamedTuple):
    """One phase: first fixed_ns that nothing slows down, then bytes on ports."""

    fixed_ns: int
    """The part that nothing slows down."""
    work_ns: int
    """How long the bytes take at full speed."""
    rate: float
    """Bytes per ns at full speed, each way, on the busiest port of a member."""
    shares: tuple[tuple[int, float], ...]
    """(dimension, part of that rate) of every dimension used."""
    queue_dimension: int = 0
    """The dimension whose queue of chunks serves the phase."""

    @property
    def whole_ns(self) -> int:
        """The duration at full speed, ns."""
        return self.fixed_ns + self.work_ns


class Transmission(NamedTuple):
    """One collective or transfer: equal chunks that each walk `flows` in order."""

    flows: tuple[Flow, ...]
    """The phases of a chunk, without scales."""
    chunks: int = 1
    """The number of chunks."""
    active_chunks: int = 1
    """How many of them a dimension serves at a time."""
    scales: tuple[float, ...] = ()
    """Factors on all durations, one after the other."""

    def scaled(self, scale: float) -> Transmission:
        """Returns the transmission with all durations times `scale`."""
        return self if scale == 1.0 else self._replace(scales=(*self.scales, scale))

    def clock(self, ns: int) -> int:
        """Returns the scaled time of a point that is `ns` into it without scales, ns: rounded once a
        scale.
        """
        for scale in self.scales:
            ns = round(ns * scale)
        return ns

    def times(self, phase: int, since: int) -> tuple[int, int]:
        """Returns (fixed ns, ns of the bytes at full speed) of a phase that begins at `since` ns without
        scales.

        A phase lasts from one time of `clock` to another, so that what is rounded never adds up:
        alone, phases and chunks take together what the whole takes, scaled and rounded once.
        """
        flow = self.flows[phase]
        if not self.scales:
            return flow.fixed_ns, flow.work_ns
        whole = self.clock(since + flow.whole_ns) - self.clock(since)
        work = min(whole, self.clock(flow.work_ns))
        return whole - work, work


FREE = Transmission((Flow(0, 0, 0.0, ()),))


def collective_transmission(
    cluster: Cluster, shape: GroupShape, collective: str, size_bytes: int
) -> Transmission:
    """Returns the phases of one collective; takes and raises what `collective_ns` of simcore.collectives
    does.
    """
    if not size_bytes or not shape.dimensions:
        return FREE
    chunks, size = chunk_bytes(cluster, shape, collective, size_bytes)
    flows = tuple([_flow(cluster, phase) for phase in phases(cluster, shape, collective, size)])
    return Transmission(flows, chunks, cluster.active_chunks)


def transfer_transmission(cluster: Cluster, shape: TransferShape, size_bytes: int) -> Transmission:
    """Returns a point-to-point transfer: its hops, then its bytes on each dimension in which its ends
    differ.
    """
    if not size_bytes or not shape:
        return FREE
    rate = min(cluster.dims[index].bandwidth for index, _ in shape)
    whole = transfer_ns(cluster, shape, size_bytes)
    work = min(whole, floor_ns(size_bytes, rate))
    shares = tuple([(index, 1.0) for index, _ in shape])
    return Transmission((Flow(whole - work, work, rate, shares),))


def port_capacity(cluster: Cluster, dimension: int) -> float:
    """Returns the bytes per ns of one NPU's port on a dimension, each way."""
    dim = cluster.dims[dimension]
    return dim.bandwidth * (dim.size - 1) if dim.kind == "fully-connected" else dim.bandwidth


def _flow(cluster: Cluster, phase: Phase) -> Flow:
    """Returns the chain of a phase's messages as fixed time and bytes.

    What the ports carry beyond the chain (the other messages of `direct`) takes port time; what
    the chain waits for beyond its own port (the levels of a tree) stays fixed time.
    """
    whole = phase.ns()
    carried = chain_bytes(phase)
    dims = cluster.dims
    chain_ns = min(whole, sum(floor_ns(size, dims[index].bandwidth) for index, size in carried.items()))
    loads = phase_loads(phase)
    if algorithm_named(phase.algorithm).port_loads is None:
        work = chain_ns
    else:
        work = max(load_ns(cluster, load) for load in loads)
    fixed_ns = whole - min(chain_ns, work)
    dimension = phase.scope.dimension
    if not work:
        return Flow(fixed_ns, 0, 0.0, (), dimension)
    rates = {}
    for index, size, links in loads:
        most = dims[index].bandwidth * links
        rates[index] = most if len(loads) == 1 else min(most, size / work)
    highest = max(rates.values())
    shares = tuple([(index, rate / highest) for index, rate in rates.items() if rate])
    return Flow(fixed_ns, work, highest, shares, dimension)


class ChunkWalk:
    """The progress of the chunks of a transmission. A dimension serves waiting chunks in turn.

    All members go on together here: the queues are those of an idle network, where ranks
    of a tree alone differ.
    """

    __slots__ = ("missing", "running", "transmission", "waiting")

    def __init__(self, transmission: Transmission) -> None:
        self.transmission = transmission
        self.missing = transmission.chunks
        self.waiting: dict[int, deque[tuple[int, int]]] = {}
        self.running: dict[int, int] = {}

    def begin(self) -> list[tuple[int, int]]:
        """Returns (chunk, phase) of those that start at once."""
        for chunk in range(self.transmission.chunks):
            self._queue(chunk, 0)
        return self._serve(self.transmission.flows[0].queue_dimension)

    def finish(self, chunk: int, phase: int) -> list[tuple[int, int]]:
        """Returns (chunk, phase) of those that start when a chunk has finished a phase."""
        flows = self.transmission.flows
        dimension = flows[phase].queue_dimension
        self.running[dimension] -= 1
        if phase + 1 == len(flows):
            self.missing -= 1
            return self._serve(dimension)
        self._queue(chunk, phase + 1)
        following = flows[phase + 1].queue_dimension
        started = self._serve(dimension)
        return started if following == dimension else started + self._serve(following)

    def _queue(self, chunk: int, phase: int) -> None:
        dimension = self.transmission.flows[phase].queue_dimension
        self.waiting.setdefault(dimension, deque()).append((chunk, phase))

    def _serve(self, dimension: int) -> list[tuple[int, int]]:
        waiting = self.waiting[dimension]
        started = []
        while waiting and self.running.get(dimension, 0) < self.transmission.active_chunks:
            self.running[dimension] = self.running.get(dimension, 0) + 1
            started.append(waiting.popleft())
        return started


# (stream, chunk): the order in which a port sums its flows.
Order = tuple[int, int]


class Port:
    """One direction of one NPU's port on one dimension. capacity: bytes per ns.

    flow_entries: (order, part, share) of the flows that cross it now, in stream order.
    """

    __slots__ = ("capacity", "flow_entries")

    def __init__(self, capacity: float) -> None:
        self.capacity = capacity
        self.flow_entries: list[tuple[Order, FlowPart, float]] = []


class FlowPart:
    """The bytes of one flow while they move."""

    __slots__ = ("left_ns", "order", "ports", "rate", "since", "speed")

    def __init__(self, order: Order, rate: float, work_ns: int, ports: list[tuple[Port, float]]) -> None:
        self.order = order
        # Bytes per ns at full speed.
        self.rate = rate
        # (port, part of that rate on it).
        self.ports = ports
        # The present part of full speed, 0 before the first share.
        self.speed = 0.0
        # What is left at time `since`, in ns at full speed.
        self.left_ns: float = work_ns
        self.since = 0

    def enter(self) -> None:
        """Crosses all ports from now on."""
        for port, share in self.ports:
            # Orders at a port differ, so that parts are never compared.
            insort(port.flow_entries, (self.order, self, share))

    def leave(self) -> None:
        """Crosses no port any more."""
        for port, _ in self.ports:
            port.flow_entries = [entry for entry in port.flow_entries if entry[1] is not self]

    def run_until(self, now: int) -> None:
        """Adds the bytes moved since the last change of speed, up to `now`."""
        self.left_ns -= (now - self.since) * self.speed
        self.since = now

    def end_ns(self) -> int:
        """Returns when it will be over at its speed, ns, rounded half to even."""
        return self.since + max(0, round(self.left_ns / self.speed))


def find_connected(ports: Iterable[Port]) -> tuple[list[FlowPart], list[Port]]:
    """Returns all parts, with the ports that they cross, that a change at one of `ports` can affect."""
    parts: dict[FlowPart, None] = {}
    reached = dict.fromkeys(ports)
    waiting = list(reached)
    while waiting:
        for _, part, _ in waiting.pop().flow_entries:
            if part not in parts:
                parts[part] = None
                for port, _ in part.ports:
                    if port not in reached:
                        reached[port] = None
                        waiting.append(port)
    return list(parts), [port for port in reached if port.flow_entries]


def fair_speeds(parts: list[FlowPart], ports: list[Port]) -> dict[FlowPart, float]:
    """Returns the part of its full speed that each part gets: max-min fair in bytes per ns.

    Rates rise together, up to a part's own full rate; where a port is full, the parts that
    cross it keep what they have, and the others go on rising. parts, ports: connected ones.
    """
    if len(parts) == 1:
        return {parts[0]: 1.0}
    rates: dict[FlowPart, float] = {}
    rising = parts
    level = 0.0
    while rising:
        full: dict[Port, float] = {}
        for port in ports:
            used = weight = 0.0
            for _, part, share in port.flow_entries:
                rate = rates.get(part)
                if rate is None:
                    weight += share
                else:
                    used += rate * share
            if weight:
                full[port] = (port.capacity - used) / weight
        # What rounding takes from a full port never lowers a level that was reached.
        level = max(level, min([*full.values(), *[part.rate for part in rising]]))
        still = []
        for part in rising:
            if part.rate <= level:
                rates[part] = part.rate
            elif any(full[port] <= level for port, _ in part.ports):
                rates[part] = level
            else:
                still.append(part)
        rising = still
    return {part: rate / part.rate for part, rate in rates.items()}


OUT, IN = 0, 1


class _Running:
    """A transmission in flight. token: the caller's name for it."""

    __slots__ = ("receivers", "senders", "stream", "token", "walk")

    def __init__(
        self, token: object, walk: ChunkWalk, senders: Sequence[int], receivers: Sequence[int], stream: int
    ) -> None:
        self.token = token
        self.walk = walk
        self.senders = senders
        self.receivers = receivers
        self.stream = stream


class _Step:
    """One chunk in one phase: its fixed time, then (part is set) its bytes."""

    __slots__ = ("chunk", "due", "part", "phase", "running", "since", "step_id", "work_ns")

    def __init__(self, running: _Running, chunk: int, phase: int, since: int, step_id: int) -> None:
        self.running = running
        self.chunk = chunk
        self.phase = phase
        # ns from the start of the transmission to its own, had it the ports to itself and no scale.
        self.since = since
        self.step_id = step_id
        # The time of its bytes at full speed.
        self.work_ns = 0
        # Its sort key among the steps that are due.
        self.due = (0, 0, step_id)
        self.part: FlowPart | None = None

    @property
    def flow(self) -> Flow:
        return self.running.walk.transmission.flows[self.phase]


class PortNetwork:
    """All ports of a run and what is on them. Time is ns and never goes back.

    capacities[c][d]: bytes per ns, each way, of the port of c on dimension d; c is
    whatever the caller simulates, a rank class or a rank. At every instant: `finished` for the
    ends, any number of `start`, and when nothing more happens then, `settle`.
    """

    def __init__(self, capacities: Sequence[Sequence[float]]) -> None:
        self._capacities = capacities
        self._ports: dict[tuple[int, int, int], Port] = {}
        # (*due, step): ends of fixed parts, and ends of bytes as they stand now.
        self._due: SortedList = SortedList()
        self._touched: dict[Port, None] = {}
        self._moving: dict[FlowPart, _Step] = {}
        self._started = 0

    def start(
        self,
        now: int,
        token: object,
        transmission: Transmission,
        senders: Sequence[int],
        receivers: Sequence[int],
        stream: int,
    ) -> None:
        """Begins a transmission: `finished` gives its token when it is over.

        senders, receivers: those whose ports it leaves and enters by. stream: orders it
        at a port, where no two transmissions of a stream are at a time.
        """
        walk = ChunkWalk(transmission)
        running = _Running(token, walk, senders, receivers, stream)
        for chunk, phase in walk.begin():
            self._begin(now, running, chunk, phase, 0)

    def uses(self) -> None:
        """Returns None: for ports nothing is stored, each is as busy as the fluid model makes it."""

    def heat(self) -> None:
        """Returns None, as `uses`."""

    def flow_report(self) -> None:
        """Returns None: there are no flows."""

    def next_ns(self) -> int | None:
        """Returns when something ends next, if nothing starts before; None when nothing is in flight."""
        return self._due[0][0] if self._due else None

    def run_ahead(self, last: int | None) -> int:
        """Runs nothing: at most instants something is over, or starts."""
        return 0

    def finished(self, now: int) -> list[object]:
        """Returns the tokens of the transmissions that are over at `now`, in the order of their starts."""
        over = []
        due = self._due
        while due and due[0][0] <= now:
            step = due.pop(0)[-1]
            running = step.running
            if step.part is None and step.work_ns:
                self._move(now, step)
                continue
            if step.part is not None:
                step.part.leave()
                self._touched.update(dict.fromkeys([port for port, _ in step.part.ports]))
                del self._moving[step.part]
            since = step.since + step.flow.whole_ns
            for chunk, phase in running.walk.finish(step.chunk, step.phase):
                self._begin(now, running, chunk, phase, since)
            if not running.walk.missing:
                over.append(running.token)
        return over

    def settle(self, now: int) -> None:
        """Shares the ports anew among the flows that cross them, after all starts and ends of `now`."""
        if not self._touched:
            return
        parts, ports = find_connected(self._touched)
        self._touched = {}
        for part, speed in fair_speeds(parts, ports).items():
            if speed != part.speed:
                step = self._moving[part]
                if part.speed:
                    self._due.remove((*step.due, step))
                part.run_until(now)
                part.speed = speed
                self._schedule(part.end_ns(), step)

    def _begin(self, now: int, running: _Running, chunk: int, phase: int, since: int) -> None:
        self._started += 1
        step = _Step(running, chunk, phase, since, self._started)
        fixed_ns, step.work_ns = running.walk.transmission.times(phase, since)
        self._schedule(now + fixed_ns, step)

    def _schedule(self, when: int, step: _Step) -> None:
        # Where a scale makes two times equal, what came first without it still comes first.
        scaled = bool(step.running.walk.transmission.scales)
        bytes_come = step.part is None and step.work_ns > 0
        over = step.since + (step.flow.fixed_ns if bytes_come else step.flow.whole_ns)
        step.due = (when, over if scaled else 0, step.step_id)
        self._due.add((*step.due, step))

    def _move(self, now: int, step: _Step) -> None:
        """Moves the bytes of a step onto their ports, when its fixed part is over."""
        running, flow = step.running, step.flow
        ports = []
        for dimension, share in flow.shares:
            ports += [(self._port(rank, dimension, OUT), share) for rank in running.senders]
            ports += [(self._port(rank, dimension, IN), share) for rank in running.receivers]
        part = step.part = FlowPart((running.stream, step.chunk), flow.rate, step.work_ns, ports)
        part.since = now
        part.enter()
        self._moving[part] = step
        self._touched.update(dict.fromkeys([port for port, _ in ports]))

    def _port(self, owner: int, dimension: int, direction: int) -> Port:
        key = (owner, dimension, direction)
        port = self._ports.get(key)
        if port is None:
            port = self._ports[key] = Port(self._capacities[owner][dimension])
        return port


def alone_ns(transmission: Transmission, capacities: Sequence[float]) -> int:
    """Returns how long a transmission takes on an idle network. capacities: those of its slowest member's
    ports.
    """
    if transmission.chunks == 1:
        return transmission.clock(sum(flow.whole_ns for flow in transmission.flows))
    network = PortNetwork([capacities])
    network.start(0, None, transmission, (0,), (0,), 0)
    now = 0
    while (following := network.next_ns()) is not None:
        now = following
        network.finished(now)
        network.settle(now)
    return now


class SharedNetwork(Analytical):
    """The network of one run; satisfies `Network` and `Sharing`."""

    def collective_ns(self, group_collective: GroupCollective, scale: float = 1.0) -> int:
        transmission = self.collective(
            group_collective.shape, group_collective.ports, group_collective.collective, group_collective.size
        ).scaled(scale)
        return alone_ns(transmission, self.capacities(group_collective.ports))

    def explain_collective(self, group_collective: GroupCollective) -> str:
        words = super().explain_collective(group_collective)
        alone = self.collective_ns(group_collective)
        if alone == super().collective_ns(group_collective):
            return words
        return f"{words}\nwhat its messages take of a shared port makes it {alone} ns"

    def collective(self, shape: GroupShape, ports: PortFactors, collective: str, size: int) -> Transmission:
        return collective_transmission(self.slowed(ports), shape, collective, size)

    def transfer(self, shape: TransferShape, ports: PortFactors, size: int) -> Transmission:
        return transfer_transmission(self.slowed(ports), shape, size)

    def make_transport(self, folding: Folding) -> PortTransport:
        return PortNetwork([self.capacities(rank_class.ports) for rank_class in folding.classes])

    def refine(self, transport: PortTransport) -> bool:
        """Returns False: a run has all there is."""
        return False

    def check_size(self, program: Program, folding: Folding) -> None:
        """Accepts any run: ports are shared by rank classes, with as many ops as on an idle network."""

    def capacities(self, ports: PortFactors) -> list[float]:
        """Returns the bytes per ns of each dimension's port of a rank, each way."""
        cluster = self.slowed(ports)
        return [port_capacity(cluster, dimension) for dimension in range(len(cluster.dims))]


def opened(parameters: NetworkParameters, layout: Layout, cluster: Cluster) -> Network:
    """Returns the network of a run: see `NetworkModel`."""
    return SharedNetwork(cluster)
