"""Transmissions on shared ports, simulated as naively as can be: exact fractions, all of it anew each time.

No queues of ends, no connected parts: at every event every rate is found from the definition of
max-min fairness (raise the lowest rate that can be raised), in fractions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

from simcore.networks.shared import Flow, Transmission


class Sent(NamedTuple):
    """A transmission that starts at `at` ns; places whose ports it leaves and enters by."""

    at: int
    transmission: Transmission
    senders: tuple[int, ...]
    receivers: tuple[int, ...]
    stream: int


@dataclass
class _Chunk:
    sent: int
    number: int
    flow: Flow
    fixed_until: int
    left: Fraction
    speed: Fraction = Fraction(0)
    since: Fraction = Fraction(0)
    ports: dict[tuple[int, int, str], Fraction] = field(default_factory=dict)


def naive_ends(sent: Sequence[Sent], capacities: Sequence[Sequence[float]]) -> list[int]:
    """When each transmission is over, ns. Each has one chunk."""
    ends = [-1] * len(sent)
    waiting = sorted(range(len(sent)), key=lambda number: sent[number].at)
    under_way: list[_Chunk] = []
    now = 0

    def begin(number: int, phase: int) -> None:
        transmission = sent[number].transmission
        since = sum(flow.whole_ns for flow in transmission.flows[:phase])
        fixed_ns, work_ns = transmission.times(phase, since)
        flow = transmission.flows[phase]._replace(fixed_ns=fixed_ns, work_ns=work_ns)
        chunk = _Chunk(number, phase, flow, now + flow.fixed_ns, Fraction(flow.work_ns))
        for dimension, share in flow.shares:
            for place in sent[number].senders:
                chunk.ports[place, dimension, "out"] = Fraction(share)
            for place in sent[number].receivers:
                chunk.ports[place, dimension, "in"] = Fraction(share)
        under_way.append(chunk)

    def over(chunk: _Chunk) -> bool:
        if chunk.fixed_until > now:
            return False
        if not chunk.flow.work_ns:
            return True
        return chunk.speed > 0 and round(chunk.since + chunk.left / chunk.speed) <= now

    while waiting or under_way:
        coming = [sent[waiting[0]].at] if waiting else []
        for chunk in under_way:
            if chunk.fixed_until > now or not chunk.speed:
                coming.append(chunk.fixed_until)
            else:
                coming.append(round(chunk.since + chunk.left / chunk.speed))
        now = max(now, min(coming))
        while waiting and sent[waiting[0]].at <= now:
            begin(waiting.pop(0), 0)
        while done := [chunk for chunk in under_way if over(chunk)]:
            for chunk in done:
                under_way.remove(chunk)
                if chunk.number + 1 < len(sent[chunk.sent].transmission.flows):
                    begin(chunk.sent, chunk.number + 1)
                else:
                    ends[chunk.sent] = now
        moving = [chunk for chunk in under_way if chunk.fixed_until <= now]
        speeds = fair_fractions([(chunk.flow.rate, chunk.ports) for chunk in moving], capacities)
        for chunk, speed in zip(moving, speeds, strict=True):
            chunk.left -= (now - chunk.since) * chunk.speed
            chunk.since, chunk.speed = Fraction(now), speed
    return ends


def fair_fractions(
    flows: Sequence[tuple[float, dict[tuple[int, int, str], Fraction]]], capacities: Sequence[Sequence[float]]
) -> list[Fraction]:
    """The part of its full rate that each flow gets."""
    rates: list[Fraction] = [Fraction(0)] * len(flows)
    fixed = [False] * len(flows)
    while not all(fixed):
        rising = [number for number, is_fixed in enumerate(fixed) if not is_fixed]
        level = min(Fraction(flows[number][0]) for number in rising)
        ports = {port for number in rising for port in flows[number][1]}
        limits = {}
        for port in ports:
            room = Fraction(capacities[port[0]][port[1]])
            weight = Fraction(0)
            for number, (_, crossed) in enumerate(flows):
                if port in crossed:
                    room -= rates[number] * crossed[port] if fixed[number] else 0
                    weight += 0 if fixed[number] else crossed[port]
            limits[port] = room / weight
        level = min([level, *limits.values()])
        for number in rising:
            rate, crossed = flows[number]
            rates[number] = level
            fixed[number] = rate <= level or any(limits[port] <= level for port in crossed)
    return [rate / Fraction(full) for rate, (full, _) in zip(rates, flows, strict=True)]
