"""The memory of a device as its allocator recorded it: its peak in the step, who holds it then, its lane."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from typing import TYPE_CHECKING

from simcore.trace.contexts import MemoryLane, MemoryPeak

if TYPE_CHECKING:
    from simcore.measured.columns import RankTrace

# The host operation of allocations that none ran around.
_NONE = "no operation"


def _inside(trace: RankTrace) -> range:
    """Returns which entries of the allocator lie in the step of a rank."""
    memory = trace.device.memory if trace.device is not None else None
    if memory is None or not len(memory):
        return range(0)
    return range(bisect_left(memory.time, trace.first_ns), bisect_right(memory.time, trace.last_ns))


def find_memory_peak(trace: RankTrace) -> MemoryPeak | None:
    """Returns when a rank has most memory allocated in its step, and who holds it; None where that is
    unknown.
    """
    rows = _inside(trace)
    if not rows or trace.device is None:
        return None
    memory = trace.device.memory
    peak = max(rows, key=lambda row: memory.allocated[row])
    live: dict[int, tuple[int, str]] = {}
    for row in range(peak + 1):
        if memory.bytes[row] > 0:
            live[memory.address[row]] = memory.bytes[row], memory.operation[row] or _NONE
        else:
            live.pop(memory.address[row], None)
    held_bytes: Counter[str] = Counter()
    for size, name in live.values():
        held_bytes[name] += size
    return MemoryPeak(
        trace.rank,
        memory.allocated[peak],
        memory.reserved[peak],
        max(memory.reserved[row] for row in rows),
        memory.time[peak] - trace.first_ns,
        memory.operation[peak],
        tuple(held_bytes.most_common()),
    )


def make_measured_lane(trace: RankTrace) -> MemoryLane | None:
    """Returns the memory that a rank has allocated over its step; None where it is unknown."""
    rows = _inside(trace)
    if not rows or trace.device is None:
        return None
    memory = trace.device.memory
    first = rows.start
    before = memory.allocated[first] - memory.bytes[first] if first == 0 else memory.allocated[first - 1]
    times = array("q", [0, *(max(memory.time[row] - trace.first_ns, 0) for row in rows)])
    resident = array("q", [max(before, 0), *(memory.allocated[row] for row in rows)])
    limit = max(memory.reserved[row] for row in rows)
    return MemoryLane(-1, times, resident, max(limit, 1), f"memory, rank {trace.rank}")
