"""Where a price comes from, in words and figures: the phases that were priced, written out."""

from __future__ import annotations

from simcore.cluster import Cluster, GroupShape
from simcore.collectives.exact import decimal_ratio
from simcore.collectives.phases import NAMES, Phase, phases
from simcore.units import number


def explain_collective(cluster: Cluster, shape: GroupShape, collective: str, size_bytes: int) -> str:
    """Two lines of plain text: what runs where, and its price in ns as a sum that can be redone.

    Takes and raises what `collective_ns` does, and writes out the same phases. One line when
    the collective is free.
    """
    name = NAMES[collective]
    parts = phases(cluster, shape, collective, size_bytes)
    if not parts:
        return f"{name}, {_group(shape)}, {_count(size_bytes)} B: free"
    places = " and ".join(
        f"dimension {crossing.dimension} ({cluster.dims[crossing.dimension].text()})"
        for crossing in shape.crossings
    )
    gathered = " gathered" if collective == "ALLGATHER" else ""
    first = f"{_group(shape)} on {places}: {_count(size_bytes)} B{gathered}"
    if len(parts) == 1:
        return f"{name}, {parts[0].algorithm}, {first}\n{_sum(parts[0])} = {_count(parts[0].ns())} ns"
    terms = "; ".join(
        f"{NAMES[part.collective]} on {part.leg.crossing.dimension}, {part.algorithm}: "
        f"{_sum(part)} = {_count(part.ns())}"
        for part in parts
    )
    return f"{name}, {first}\n{terms}; in all {_count(sum(part.ns() for part in parts))} ns"


def _group(shape: GroupShape) -> str:
    if shape.flat:
        return f"flat group of {shape.members} (not a grid)"
    if len(shape.crossings) < 2:
        return f"group of {shape.members}"
    return f"group of {' x '.join(str(crossing.members) for crossing in shape.crossings)}"


def _sum(part: Phase) -> str:
    """`3 messages of 2 to 8 B: 14 B / 450 GB/s = 0, + 6 hops x 500, + 4 x 10 endpoint`."""
    steps, leg = part.steps, part.leg
    sizes = [size for _, _, size in steps.messages]
    size = _count(max(sizes)) if min(sizes) == max(sizes) else f"{_count(min(sizes))} to {_count(max(sizes))}"
    total = sum(times * size for times, _, size in steps.messages)
    hops = sum(times * hops for times, hops, _ in steps.messages)
    bandwidth, latency = number(leg.dimension.bandwidth), number(leg.dimension.latency_ns)
    text = (
        f"{_plural(steps.receives(), 'message')} of {size} B: "
        f"{_count(total)} B / {bandwidth} GB/s = {_bytes_ns(part, hops)}, "
        f"+ {_plural(hops, 'hop')} x {latency}, "
        f"+ {steps.endpoints()} x {leg.cluster.endpoint_delay_ns} endpoint"
    )
    return f"{text}, + {_count(steps.reductions_ns(leg))} reducing" if steps.reductions else text


def _bytes_ns(part: Phase, hops: int) -> str:
    """What the bytes take: all messages, each floored, less their hops."""
    latency, unit = decimal_ratio(part.leg.dimension.latency_ns)
    value = part.steps.messages_ns(part.leg) * unit - hops * latency
    return number(round(value / unit, 3)) if value % unit else _count(value // unit)


def _plural(count: int, noun: str) -> str:
    return f"{_count(count)} {noun}{'' if count == 1 else 's'}"


def _count(value: int) -> str:
    """Digits in groups of three: 134 217 728."""
    return f"{value:,}".replace(",", " ")
