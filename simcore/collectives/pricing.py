"""Prices on an idle network, the `analytical` model, and the texts that explain a price with its figures.

A collective of dialect astra-sim-1 on an idle network is its chunks in the queues of the dimensions:
ASTRA-sim 1.0 splits a collective into equal chunks and a rest; each walks its phases, and each dimension
serves a number of chunks at a time in the order in which they came.

Texts list the phases as they were priced; bandwidths of a collective are as nccl-tests prints them (nccl-
tests, doc/PERFORMANCE.md).
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush

from simcore.cluster import Cluster, GroupShape, TransferShape
from simcore.collectives.algorithm import Messages
from simcore.collectives.algorithm_scope import AlgorithmScope
from simcore.collectives.exact import decimal_ratio, floor_ns, scaled
from simcore.collectives.phases import NAMES, Phase, chunk_bytes, chunks_finish_ns, phases, rest_bytes
from simcore.records import NamedTuple
from simcore.units import format_number, group_digits, plural


class QueuedPhase(NamedTuple):
    """One phase of a chunk: the dimension in whose queue it waits, and its ns once it is served."""

    dimension: int
    ns: int


Walk = tuple[QueuedPhase, ...]


def queued_phases(
    cluster: Cluster, shape: GroupShape, collective: str, size_bytes: int, scale: float = 1.0
) -> tuple[int, Walk, Walk]:
    """Returns (chunks, phases of each, phases of the last) of one collective of `size_bytes` in all.

    scale: a factor on each phase, each rounded half to even.
    """
    chunks, size, rest = rest_bytes(cluster, shape, collective, size_bytes)
    walks = [
        tuple(
            QueuedPhase(phase.scope.dimension, scaled(phase.ns(), scale))
            for phase in phases(cluster, shape, collective, part)
        )
        for part in ((size,) if rest == size else (size, rest))
    ]
    return chunks, walks[0], walks[-1]


def queued_ns(chunks: int, each: Walk, last: Walk, active_chunks: int) -> int:
    """Returns how long the chunks take when nothing else is in the queues, ns."""
    if not each:
        return 0
    if chunks == 1 or (len(each) == 1 and active_chunks == 1):
        return (chunks - 1) * each[0].ns + sum(phase.ns for phase in last)
    waiting: dict[int, deque[tuple[int, int]]] = {phase.dimension: deque() for phase in each}
    serving = dict.fromkeys(waiting, 0)
    events: list[tuple[int, int, int]] = []
    waiting[each[0].dimension].extend((chunk, 0) for chunk in range(chunks))
    now = 0
    while True:
        for dimension, queue in waiting.items():
            while queue and serving[dimension] < active_chunks:
                chunk, phase_index = queue.popleft()
                serving[dimension] += 1
                walk = last if chunk == chunks - 1 else each
                heappush(events, (now + walk[phase_index].ns, chunk, phase_index))
        if not events:
            return now
        now = events[0][0]
        while events and events[0][0] == now:
            _, chunk, phase_index = heappop(events)
            serving[each[phase_index].dimension] -= 1
            if phase_index + 1 < len(each):
                waiting[each[phase_index + 1].dimension].append((chunk, phase_index + 1))


class CompletionTimes(NamedTuple):
    """When the first and the last rank of a collective have finished, ns after all have started it."""

    first_ns: int
    last_ns: int


def collective_ns(
    cluster: Cluster, shape: GroupShape, collective: str, size_bytes: int, scale: float = 1.0
) -> int:
    """Returns how long one collective takes alone on an idle network until its last rank has finished, ns.

    collective: ALLREDUCE, ALLGATHER, REDUCESCATTER or ALLTOALL. size_bytes: the whole buffer
    (the gathered result, the input of a reduce-scatter, one rank's buffer otherwise); 0 bytes
    and a group of one are free. scale: a factor on it, rounded where a run rounds it: once, in
    the queues of dialect astra-sim-1 for each phase. Formulas: ASTRA-sim 2.0, analytical backend.
    Raises UsageError when a requested algorithm does not fit the group.
    """
    return completion_times(cluster, shape, collective, size_bytes, scale).last_ns


def completion_times(
    cluster: Cluster, shape: GroupShape, collective: str, size_bytes: int, scale: float = 1.0
) -> CompletionTimes:
    """Returns when the first and the last rank have finished one collective. Takes and raises as
    `collective_ns`.
    """
    if not size_bytes:
        return CompletionTimes(0, 0)
    if cluster.last_chunk_is_rest:
        chunks, each, last = queued_phases(cluster, shape, collective, size_bytes, scale)
        last_ns = queued_ns(chunks, each, last, cluster.active_chunks)
        return CompletionTimes(last_ns, last_ns)
    chunks, size = chunk_bytes(cluster, shape, collective, size_bytes)
    first_and_last_ns = chunks_finish_ns(
        phases(cluster, shape, collective, size), chunks, cluster.active_chunks
    )
    return CompletionTimes(*(scaled(ns, scale) for ns in first_and_last_ns))


def transfer_ns(cluster: Cluster, shape: TransferShape, size_bytes: int) -> int:
    """Returns how long one point-to-point transfer of `size_bytes` takes alone on an idle network, ns.

    floor(sum of hops * latency + size / least bandwidth) over the dimensions in which the two
    ends differ, without endpoint delay; 0 bytes and a transfer to oneself are free.
    """
    if not size_bytes or not shape:
        return 0
    bandwidth = min(cluster.dims[index].bandwidth for index, _ in shape)
    return floor_ns(size_bytes, bandwidth, [(hops, cluster.dims[index].latency_ns) for index, hops in shape])


def explain_collective(cluster: Cluster, shape: GroupShape, collective: str, size_bytes: int) -> str:
    """Returns two lines of plain text: what runs where, and its price in ns as a sum that can be recomputed.

    Takes and raises what `collective_ns` does, and lists the same phases, those of one
    chunk if there are several. One line when the collective is free.
    """
    name = NAMES[collective]
    if not size_bytes or not shape.dimensions:
        return f"{name}, {_describe_group(shape)}, {group_digits(size_bytes)} B: free"
    if cluster.last_chunk_is_rest:
        chunks, size, rest = rest_bytes(cluster, shape, collective, size_bytes)
    else:
        chunks, size = chunk_bytes(cluster, shape, collective, size_bytes)
        rest = size
    parts = phases(cluster, shape, collective, size)
    dimensions_text = " and ".join(
        f"dimension {group_dimension.dimension} ({cluster.dims[group_dimension.dimension].text()})"
        for group_dimension in shape.dimensions
    )
    gathered = " gathered" if collective == "ALLGATHER" else ""
    first = f"{_describe_group(shape)} on {dimensions_text}: {group_digits(size_bytes)} B{gathered}"
    if chunks > 1:
        first += f" in {chunks} chunks of {group_digits(size)} B{' a rank' if gathered else ''}"
        first += f", the last of {group_digits(rest)} B" if rest != size else ""
    total = collective_ns(cluster, shape, collective, size_bytes)
    if len(parts) == 1:
        first = f"{parts[0].algorithm}, {first}"
        second = f"{_format_sum(parts[0])} = {group_digits(parts[0].ns())} ns"
    else:
        terms = "; ".join(
            f"{NAMES[part.collective]} on {part.scope.dimension}, {part.algorithm}: "
            f"{_format_sum(part)} = {group_digits(part.ns())}"
            for part in parts
        )
        alone = sum(part.ns() for part in parts)
        second = f"{terms}; in all {group_digits(alone)} ns"
        if chunks == 1 and alone != total:
            second += f", and {group_digits(total)} ns as each rank goes on by itself"
    if chunks > 1:
        second += f" a chunk; {chunks} chunks, {cluster.active_chunks} at a time on a dimension"
        second += f" = {group_digits(total)} ns"
    return f"{name}, {first}\n{second}"


def explain_transfer(cluster: Cluster, shape: TransferShape, size_bytes: int) -> str:
    """Returns one line of plain text: the price of `transfer_ns` in ns, as a sum that can be recomputed."""
    if not size_bytes or not shape:
        return f"{group_digits(size_bytes)} B: free"
    bandwidth = min(cluster.dims[index].bandwidth for index, _ in shape)
    hops = "".join(
        f", + {plural(count, 'hop')} x {format_number(cluster.dims[index].latency_ns)} on dimension {index}"
        for index, count in shape
    )
    bytes_ns = group_digits(round(size_bytes / bandwidth, 3))
    total = group_digits(transfer_ns(cluster, shape, size_bytes))
    return f"{group_digits(size_bytes)} B / {format_number(bandwidth)} GB/s = {bytes_ns}{hops} = {total} ns"


def _describe_group(shape: GroupShape) -> str:
    if shape.is_flat:
        return f"flat group of {shape.members} (not a grid)"
    if len(shape.dimensions) < 2:
        return f"group of {shape.members}"
    return f"group of {' x '.join(str(group_dimension.members) for group_dimension in shape.dimensions)}"


def _format_sum(part: Phase) -> str:
    """Returns `3 messages of 2 to 8 B: 14 B / 450 GB/s = 0, + 6 hops x 500, + 4 x 10 endpoint`."""
    steps, scope = part.steps, part.scope
    terms = [
        _bytes_and_hops(
            scope, dimension, [step for step in steps.messages if step.route.dimension == dimension]
        )
        for dimension in sorted({route.dimension for _, route, _ in steps.messages})
    ]
    text = f"{', + '.join(terms)}, + {steps.endpoints()} x {scope.cluster.endpoint_delay_ns} endpoint"
    return f"{text}, + {group_digits(steps.reductions_ns(scope))} reducing" if steps.reductions else text


def _bytes_and_hops(scope: AlgorithmScope, dimension: int, messages: list[Messages]) -> str:
    """Returns the text of all messages on one dimension: their bytes and their hops, each message floored.

    Where hops take whole ns, the floors are those of the bytes, and hops stand apart.
    """
    sizes = [message.size for message in messages]
    size = (
        group_digits(max(sizes))
        if min(sizes) == max(sizes)
        else f"{group_digits(min(sizes))} to {group_digits(max(sizes))}"
    )
    count = sum(message.times for message in messages)
    total = sum(message.times * message.size for message in messages)
    hops = sum(message.times * message.route.hops for message in messages)
    ns = [scope.message_ns(message.route, message.size) for message in messages]
    total_ns = sum(message.times * each for message, each in zip(messages, ns, strict=True))
    network = scope.cluster.dims[dimension]
    latency, unit = decimal_ratio(network.latency_ns)
    where = f" on dimension {dimension}" if len(scope.dimensions) > 1 else ""
    first = f"{plural(count, 'message')} of {size} B{where}: "
    rate = f"{format_number(network.bandwidth)} GB/s"
    if all(message.route.hops * latency % unit == 0 for message in messages):
        bytes_ns = group_digits(total_ns - hops * latency // unit)
        hop_words = f"{plural(hops, 'hop')} x {format_number(network.latency_ns)}"
        return f"{first}{group_digits(total)} B / {rate} = {bytes_ns}, + {hop_words}"
    if len({(message.size, message.route.hops) for message in messages}) == 1 and count > 1:
        hop_words = f"{plural(messages[0].route.hops, 'hop')} x {format_number(network.latency_ns)}"
        return f"{first}{count} x {group_digits(ns[0])}, each {size} B / {rate} + {hop_words}"
    hop_words = f"{plural(hops, 'hop')} x {format_number(network.latency_ns)}"
    each_words = ", each message floored" if count > 1 else ""
    return f"{first}{group_digits(total)} B / {rate} + {hop_words} = {group_digits(total_ns)}{each_words}"


def algorithm_bandwidth(size_bytes: int, ns: int) -> float:
    """Returns algbw: bytes of the whole buffer per ns, GB/s; 0 for a collective that takes no time."""
    return size_bytes / ns if ns else 0.0


def bus_bandwidth(collective: str, members: int, size_bytes: int, ns: int) -> float:
    """Returns busbw, GB/s: algbw times the part of the buffer that each rank's link must carry.

    (n-1)/n of it for all-gather, reduce-scatter and all-to-all, twice that for all-reduce, all
    of it for a transfer to a neighbour.
    """
    if collective == "SENDRECV":
        return algorithm_bandwidth(size_bytes, ns)
    times = 2 if collective == "ALLREDUCE" else 1
    return algorithm_bandwidth(size_bytes, ns) * times * (members - 1) / members
