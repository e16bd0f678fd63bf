"""A part of a micro-batch as one step: when it ends, and when its streams do, by when they were free.

Compute goes on when what it waits for is over, and a collective begins when its stream is free and compute
has come to it: maxima and sums. So each end is the largest of a few sums, the time at which compute came to
the part, or a stream was free, plus a duration (a matrix over (max, +)), whatever lies in between.
"""

from __future__ import annotations

from collections.abc import Callable

from simcore.program.ops import BEGIN, JOIN, RUN, AnyCost, PartCost

# Of an end that no such time delays.
_NEVER = -(1 << 80)
# streams, and a row for compute and each of them: what is added to when compute came, when each was free.
PartTimes = tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]


def part_times(cost: PartCost, ns_of: Callable[[AnyCost], int]) -> PartTimes:
    """The times of a part. ns_of: what a step takes alone."""
    streams = cost.streams
    if len(streams) == 1:
        return streams, _of_one_stream(cost, ns_of)
    count = len(streams) + 1
    now = [[0 if part == other else _NEVER for other in range(count)] for part in range(count)]
    ends: list[list[int]] = []
    for code, what, stream in cost.steps:
        if code == JOIN:
            now[0] = [*map(max, now[0], ends[stream])]
            continue
        ns = ns_of(what)
        if code == RUN:
            now[0] = [before + ns for before in now[0]]
            continue
        over = now[stream + 1] = [max(pair) + ns for pair in zip(now[0], now[stream + 1], strict=True)]
        if code == BEGIN:
            ends.append(over)
        else:
            now[0] = over
    return streams, tuple(map(tuple, now))


def _of_one_stream(cost: PartCost, ns_of: Callable[[AnyCost], int]) -> tuple[tuple[int, ...], ...]:
    """The same for one stream, which most have."""
    # Behind when compute came; behind when the stream was free.
    compute, compute_free, busy, free = 0, _NEVER, _NEVER, 0
    ends: list[tuple[int, int]] = []
    for code, what, stream in cost.steps:
        if code == JOIN:
            end, end_free = ends[stream]
            compute, compute_free = max(compute, end), max(compute_free, end_free)
            continue
        ns = ns_of(what)
        if code == RUN:
            compute, compute_free = compute + ns, compute_free + ns
            continue
        busy, free = max(busy, compute) + ns, max(free, compute_free) + ns
        if code == BEGIN:
            ends.append((busy, free))
        else:
            compute, compute_free = busy, free
    return (compute, compute_free), (busy, free)
