"""Where a price comes from, in words and figures: the phases that were priced, written out; and bandwidths.

Those of a collective are as nccl-tests prints them (nccl-tests, doc/PERFORMANCE.md).
"""

from __future__ import annotations

from simcore.cluster import Cluster, GroupShape, TransferShape
from simcore.collectives.algorithm import Messages
from simcore.collectives.exact import decimal_ratio
from simcore.collectives.phases import NAMES, Phase, chunk_bytes, phases, rest_bytes
from simcore.collectives.pricing import collective_ns, transfer_ns
from simcore.collectives.reach import Reach
from simcore.units import digits, number


def explain_collective(cluster: Cluster, shape: GroupShape, collective: str, size_bytes: int) -> str:
    """Two lines of plain text: what runs where, and its price in ns as a sum that can be redone.

    Takes and raises what `collective_ns` does, and writes out the same phases, those of one
    chunk if there are several. One line when the collective is free.
    """
    name = NAMES[collective]
    if not size_bytes or not shape.crossings:
        return f"{name}, {_group(shape)}, {digits(size_bytes)} B: free"
    if cluster.last_chunk_is_rest:
        chunks, size, rest = rest_bytes(cluster, shape, collective, size_bytes)
    else:
        chunks, size = chunk_bytes(cluster, shape, collective, size_bytes)
        rest = size
    parts = phases(cluster, shape, collective, size)
    places = " and ".join(
        f"dimension {crossing.dimension} ({cluster.dims[crossing.dimension].text()})"
        for crossing in shape.crossings
    )
    gathered = " gathered" if collective == "ALLGATHER" else ""
    first = f"{_group(shape)} on {places}: {digits(size_bytes)} B{gathered}"
    if chunks > 1:
        first += f" in {chunks} chunks of {digits(size)} B{' a rank' if gathered else ''}"
        first += f", the last of {digits(rest)} B" if rest != size else ""
    total = collective_ns(cluster, shape, collective, size_bytes)
    if len(parts) == 1:
        first = f"{parts[0].algorithm}, {first}"
        second = f"{_sum(parts[0])} = {digits(parts[0].ns())} ns"
    else:
        terms = "; ".join(
            f"{NAMES[part.collective]} on {part.leg.dimension}, {part.algorithm}: "
            f"{_sum(part)} = {digits(part.ns())}"
            for part in parts
        )
        alone = sum(part.ns() for part in parts)
        second = f"{terms}; in all {digits(alone)} ns"
        if chunks == 1 and alone != total:
            second += f", and {digits(total)} ns as each rank goes on by itself"
    if chunks > 1:
        second += f" a chunk; {chunks} chunks, {cluster.active_chunks} at a time on a dimension"
        second += f" = {digits(total)} ns"
    return f"{name}, {first}\n{second}"


def explain_transfer(cluster: Cluster, shape: TransferShape, size_bytes: int) -> str:
    """One line of plain text: the price of `transfer_ns` in ns, as a sum that can be redone."""
    if not size_bytes or not shape:
        return f"{digits(size_bytes)} B: free"
    bandwidth = min(cluster.dims[index].bandwidth for index, _ in shape)
    hops = "".join(
        f", + {_plural(count, 'hop')} x {number(cluster.dims[index].latency_ns)} on dimension {index}"
        for index, count in shape
    )
    bytes_ns = number(round(size_bytes / bandwidth, 3))
    total = digits(transfer_ns(cluster, shape, size_bytes))
    return f"{digits(size_bytes)} B / {number(bandwidth)} GB/s = {bytes_ns}{hops} = {total} ns"


def _group(shape: GroupShape) -> str:
    if shape.flat:
        return f"flat group of {shape.members} (not a grid)"
    if len(shape.crossings) < 2:
        return f"group of {shape.members}"
    return f"group of {' x '.join(str(crossing.members) for crossing in shape.crossings)}"


def _sum(part: Phase) -> str:
    """`3 messages of 2 to 8 B: 14 B / 450 GB/s = 0, + 6 hops x 500, + 4 x 10 endpoint`."""
    steps, leg = part.steps, part.leg
    terms = [
        _bytes_and_hops(
            leg, dimension, [step for step in steps.messages if step.route.dimension == dimension]
        )
        for dimension in sorted({route.dimension for _, route, _ in steps.messages})
    ]
    text = f"{', + '.join(terms)}, + {steps.endpoints()} x {leg.cluster.endpoint_delay_ns} endpoint"
    return f"{text}, + {digits(steps.reductions_ns(leg))} reducing" if steps.reductions else text


def _bytes_and_hops(leg: Reach, dimension: int, messages: list[Messages]) -> str:
    """What all messages on one dimension take: their bytes, each message floored, and their hops."""
    sizes = [message.size for message in messages]
    size = digits(max(sizes)) if min(sizes) == max(sizes) else f"{digits(min(sizes))} to {digits(max(sizes))}"
    count = sum(message.times for message in messages)
    total = sum(message.times * message.size for message in messages)
    hops = sum(message.times * message.route.hops for message in messages)
    ns = sum(message.times * leg.message_ns(message.route, message.size) for message in messages)
    network = leg.cluster.dims[dimension]
    latency, unit = decimal_ratio(network.latency_ns)
    value = ns * unit - hops * latency
    bytes_ns = number(round(value / unit, 3)) if value % unit else digits(value // unit)
    where = f" on dimension {dimension}" if len(leg.crossings) > 1 else ""
    return (
        f"{_plural(count, 'message')} of {size} B{where}: "
        f"{digits(total)} B / {number(network.bandwidth)} GB/s = {bytes_ns}, "
        f"+ {_plural(hops, 'hop')} x {number(network.latency_ns)}"
    )


def _plural(count: int, noun: str) -> str:
    return f"{digits(count)} {noun}{'' if count == 1 else 's'}"


def algorithm_bandwidth(size_bytes: int, ns: int) -> float:
    """algbw: bytes of the whole buffer a ns, GB/s; 0 for a collective that takes no time."""
    return size_bytes / ns if ns else 0.0


def bus_bandwidth(collective: str, members: int, size_bytes: int, ns: int) -> float:
    """busbw, GB/s: algbw times what each rank's link must carry of the buffer.

    (n-1)/n of it for all-gather, reduce-scatter and all-to-all, twice that for all-reduce, all
    of it for a transfer to a neighbour.
    """
    if collective == "SENDRECV":
        return algorithm_bandwidth(size_bytes, ns)
    times = 2 if collective == "ALLREDUCE" else 1
    return algorithm_bandwidth(size_bytes, ns) * times * (members - 1) / members
