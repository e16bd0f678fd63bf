"""Transmissions under way on shared ports, timed anew at every start and end."""

from __future__ import annotations

from collections.abc import Sequence

from sortedcontainers import SortedList

from simcore.sharing.flows import Flow, Transmission
from simcore.sharing.ports import Part, Port, connected, fair_speeds
from simcore.sharing.walk import Walk

OUT, IN = 0, 1


class _Running:
    """A transmission under way. token: the caller's name for it."""

    __slots__ = ("receivers", "senders", "stream", "token", "walk")

    def __init__(
        self, token: object, walk: Walk, senders: Sequence[int], receivers: Sequence[int], stream: int
    ) -> None:
        self.token = token
        self.walk = walk
        self.senders = senders
        self.receivers = receivers
        self.stream = stream


class _Step:
    """One chunk in one phase: its fixed time, then (part is set) its bytes.

    since: ns from the start of the transmission to its own, had it the ports to itself and no scale.
    work_ns: of its bytes at full speed. due: where it stands among those that are due.
    """

    __slots__ = ("chunk", "due", "number", "part", "phase", "running", "since", "work_ns")

    def __init__(self, running: _Running, chunk: int, phase: int, since: int, number: int) -> None:
        self.running = running
        self.chunk = chunk
        self.phase = phase
        self.since = since
        self.number = number
        self.work_ns = 0
        self.due = (0, 0, number)
        self.part: Part | None = None

    @property
    def flow(self) -> Flow:
        return self.running.walk.transmission.flows[self.phase]


class PortNetwork:
    """All ports of a run and what is on them. Time is ns and never goes back.

    capacities[p][d]: bytes per ns, each way, of place p's port on dimension d; a place is
    whatever the caller simulates, a rank class or a rank. At every instant: `finished` for the
    ends, any number of `start`, and when nothing more happens then, `settle`.
    """

    def __init__(self, capacities: Sequence[Sequence[float]]) -> None:
        self._capacities = capacities
        self._ports: dict[tuple[int, int, int], Port] = {}
        # (*due, step): ends of fixed parts, and ends of bytes as they stand now.
        self._due: SortedList = SortedList()
        self._touched: dict[Port, None] = {}
        self._moving: dict[Part, _Step] = {}
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
        """Begin a transmission: `finished` gives its token when it is over.

        senders, receivers: the places whose ports it leaves and enters by. stream: orders it
        at a port, where no two of a stream are at a time.
        """
        walk = Walk(transmission)
        running = _Running(token, walk, senders, receivers, stream)
        for chunk, phase in walk.begin():
            self._begin(now, running, chunk, phase, 0)

    def next_ns(self) -> int | None:
        """When something ends next, if nothing starts before; None when nothing is under way."""
        return self._due[0][0] if self._due else None

    def finished(self, now: int) -> list[object]:
        """The tokens of the transmissions that are over at `now`, in the order of their starts."""
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
        """Share the ports anew among what crosses them, after all starts and ends of `now`."""
        if not self._touched:
            return
        parts, ports = connected(self._touched)
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
        # Where a scale lets two times fall together, what came first without it still does.
        scaled = bool(step.running.walk.transmission.scales)
        bytes_come = step.part is None and step.work_ns > 0
        over = step.since + (step.flow.fixed_ns if bytes_come else step.flow.whole_ns)
        step.due = (when, over if scaled else 0, step.number)
        self._due.add((*step.due, step))

    def _move(self, now: int, step: _Step) -> None:
        """The fixed part is over: the bytes take their ports."""
        running, flow = step.running, step.flow
        ports = []
        for dimension, share in flow.shares:
            ports += [(self._port(place, dimension, OUT), share) for place in running.senders]
            ports += [(self._port(place, dimension, IN), share) for place in running.receivers]
        part = step.part = Part((running.stream, step.chunk), flow.rate, step.work_ns, ports)
        part.since = now
        part.enter()
        self._moving[part] = step
        self._touched.update(dict.fromkeys([port for port, _ in ports]))

    def _port(self, place: int, dimension: int, direction: int) -> Port:
        key = (place, dimension, direction)
        port = self._ports.get(key)
        if port is None:
            port = self._ports[key] = Port(self._capacities[place][dimension])
        return port


def alone_ns(transmission: Transmission, capacities: Sequence[float]) -> int:
    """How long a transmission takes on an idle network. capacities: of its slowest member's ports."""
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
