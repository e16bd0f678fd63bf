"""Ports and the bytes that cross them: max-min fair shares."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable

# (stream, chunk): the order in which a port sums its flows.
Order = tuple[int, int]


class Port:
    """One direction of one NPU's port on one dimension. capacity: bytes per ns.

    crossing: (order, part, share) of the bytes that cross it now, in stream order.
    """

    __slots__ = ("capacity", "crossing")

    def __init__(self, capacity: float) -> None:
        self.capacity = capacity
        self.crossing: list[tuple[Order, Part, float]] = []


class Part:
    """The bytes of one flow while they move.

    rate: bytes per ns at full speed. ports: (port, part of that rate on it). speed: the part of
    full speed that it has, 0 before its first share. left_ns: what is left of it at time
    `since`, in ns at full speed.
    """

    __slots__ = ("left_ns", "order", "ports", "rate", "since", "speed")

    def __init__(self, order: Order, rate: float, work_ns: int, ports: list[tuple[Port, float]]) -> None:
        self.order = order
        self.rate = rate
        self.ports = ports
        self.speed = 0.0
        self.left_ns: float = work_ns
        self.since = 0

    def enter(self) -> None:
        """Cross all ports from now on."""
        for port, share in self.ports:
            # Orders at a port differ, so that parts are never compared.
            insort(port.crossing, (self.order, self, share))

    def leave(self) -> None:
        """Cross no port any more."""
        for port, _ in self.ports:
            port.crossing = [entry for entry in port.crossing if entry[1] is not self]

    def run_until(self, now: int) -> None:
        """Count what has moved since the last change of speed."""
        self.left_ns -= (now - self.since) * self.speed
        self.since = now

    def end_ns(self) -> int:
        """When it will be over at its speed, rounded half to even."""
        return self.since + max(0, round(self.left_ns / self.speed))


def connected(ports: Iterable[Port]) -> tuple[list[Part], list[Port]]:
    """All parts, and the ports that they cross, that can feel a change at one of `ports`."""
    parts: dict[Part, None] = {}
    reached = dict.fromkeys(ports)
    waiting = list(reached)
    while waiting:
        for _, part, _ in waiting.pop().crossing:
            if part not in parts:
                parts[part] = None
                for port, _ in part.ports:
                    if port not in reached:
                        reached[port] = None
                        waiting.append(port)
    return list(parts), [port for port in reached if port.crossing]


def fair_speeds(parts: list[Part], ports: list[Port]) -> dict[Part, float]:
    """The part of its full speed that each part gets: max-min fair in bytes per ns.

    Rates rise together, up to a part's own full rate; where a port is full, the parts that
    cross it keep what they have, and the others go on rising. parts, ports: connected ones.
    """
    if len(parts) == 1:
        return {parts[0]: 1.0}
    rates: dict[Part, float] = {}
    rising = parts
    level = 0.0
    while rising:
        full: dict[Port, float] = {}
        for port in ports:
            used = weight = 0.0
            for _, part, share in port.crossing:
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
