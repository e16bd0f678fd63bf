"""What an allocator held over time: its events replayed, from its segments and blocks at the end backwards.

A snapshot states what is held when it is taken, and the last events before. What an event releases and none
allocated, and what a block holds and none allocated, was there before the first event. Sizes are those that
were asked for: the allocator rounds them up, which `reserved` has and events do not state.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate

from simcore.records import NamedTuple, Struct
from simcore.snapshots.record import (
    ALLOC,
    ALLOCATED,
    FREE_COMPLETED,
    FREE_REQUESTED,
    INACTIVE,
    OOM,
    SEGMENT_ALLOC,
    SEGMENT_FREE,
    SEGMENT_MAP,
    SEGMENT_UNMAP,
    DeviceRecord,
)
from simcore.workload.model import LARGEST

# More than a device has: a size above is a mistake of the file.
_MOST_BYTES, _MOST_SUM = 1 << 44, 1 << 62
# Before the first event, and never.
BEFORE, NEVER = -1, -1
NO_STACK = -1


class Allocations(Struct, frozen=True):
    """What was allocated, in the order of the events, then what was there before, as columns."""

    begin: array[int]
    """The event that allocated, BEFORE for what was there."""
    released: array[int]
    """The event that gave it back, NEVER for what is held at the end."""
    completed: array[int]
    """The event from which on it can be used again, NEVER where there is none."""
    size: array[int]
    """Bytes that were asked for."""
    address: array[int]
    stack: array[int]
    """Index into the stacks of the device, NO_STACK where it is not known."""

    def __len__(self) -> int:
        return len(self.begin)


class Holder(NamedTuple):
    """What one stack holds at a time."""

    stack: int
    """Index into the stacks of the device, NO_STACK where they are not known."""
    bytes: int
    allocations: int
    """How many there are."""
    largest: int
    """The largest of them."""


class OutOfMemory(NamedTuple):
    """A request that could not be met."""

    event: int
    size: int
    """Bytes that were asked for."""
    free: int
    """Bytes that were free on the device, as the driver says."""
    allocated: int
    """Bytes that were allocated then."""
    reserved: int
    """Bytes that the allocator had then."""
    stack: int


class Arena(NamedTuple):
    """A stretch of addresses that the allocator has: a segment, or what an expandable one covers."""

    address: int
    size: int
    """Bytes; of an expandable one with what is not mapped now."""
    begin: int
    """The event since which it is there, BEFORE for what was."""
    end: int
    """The event that gave it back, NEVER for what is there at the end."""
    is_expandable: bool


class History:
    """The history of a device."""

    def __init__(self, device: DeviceRecord) -> None:
        self.device = device
        self.events = device.events

    # -- allocations ---------------------------------------------------------------------

    @cached_property
    def size(self) -> Sequence[int]:
        """The bytes of each event; 0 of one that states none, or more than any device has."""
        return [size if 0 <= size <= _MOST_BYTES else 0 for size in self.events.size]

    @cached_property
    def allocations(self) -> Allocations:
        events, sizes = self.events, self.size
        begin, released, completed = array("q"), array("q"), array("q")
        size, address, stack = array("q"), array("q"), array("q")
        # Address -> the allocation there; the one that is given back and not free yet.
        holding: dict[int, int] = {}
        pending: dict[int, int] = {}

        def add(at: int, bytes_: int, where: int, which: int) -> int:
            begin.append(at)
            released.append(NEVER)
            completed.append(NEVER)
            size.append(bytes_)
            address.append(where)
            stack.append(which)
            return len(begin) - 1

        for event, (action, where) in enumerate(zip(events.action, events.address, strict=True)):
            if action == ALLOC:
                if where in holding:
                    # Its release is not among the events.
                    released[holding[where]] = event
                holding[where] = add(event, sizes[event], where, events.stack[event])
            elif action == FREE_REQUESTED:
                row = holding.pop(where, None)
                if row is None:
                    row = add(BEFORE, sizes[event], where, NO_STACK)
                released[row] = event
                pending[where] = row
            elif action == FREE_COMPLETED and where in pending:
                completed[pending.pop(where)] = event
        blocks = self.device.blocks
        for where, bytes_, state, which in zip(
            blocks.address, blocks.requested, blocks.state, blocks.stack, strict=True
        ):
            if state == ALLOCATED:
                row = holding.pop(where, None)
                if row is None:
                    add(BEFORE, min(bytes_, _MOST_BYTES), where, which)
                elif not self.device.stacks[stack[row]]:
                    stack[row] = which
        return Allocations(begin, released, completed, size, address, stack)

    @cached_property
    def base_allocated(self) -> int:
        """The bytes that are allocated before the first event."""
        of = self.allocations
        return min(
            sum(size for begin, size in zip(of.begin, of.size, strict=True) if begin == BEFORE), _MOST_SUM
        )

    @cached_property
    def allocated(self) -> array[int]:
        """The bytes that are allocated after each event."""
        of, changes = self.allocations, [0] * len(self.events)
        for begin, released, size in zip(of.begin, of.released, of.size, strict=True):
            if begin != BEFORE:
                changes[begin] += size
            if released != NEVER:
                changes[released] -= size
        return _sums(self.base_allocated, changes)

    # -- segments ------------------------------------------------------------------------

    @cached_property
    def _reserved_changes(self) -> list[int]:
        signs = {SEGMENT_ALLOC: 1, SEGMENT_MAP: 1, SEGMENT_FREE: -1, SEGMENT_UNMAP: -1}
        actions = self.events.action
        return [signs.get(action, 0) * size for action, size in zip(actions, self.size, strict=True)]

    @cached_property
    def base_reserved(self) -> int:
        """The bytes that the allocator has before the first event."""
        changes = self._reserved_changes
        # What is not known of the end is at least what keeps it above 0.
        least = -min(accumulate(changes), default=0)
        return min(max(self.device.reserved - sum(changes), least, 0), _MOST_SUM)

    @cached_property
    def reserved(self) -> array[int]:
        """The bytes that the allocator has after each event."""
        return _sums(self.base_reserved, self._reserved_changes)

    @cached_property
    def arenas(self) -> list[Arena]:
        """The segments, by address and then by time; what expandable ones cover is one for each stretch."""
        plain, ranges = list[Arena](), list[tuple[int, int]]()
        there: dict[int, tuple[int, int]] = {}
        for event, (action, address) in enumerate(zip(self.events.action, self.events.address, strict=True)):
            size = self.size[event]
            if action == SEGMENT_ALLOC:
                there[address] = event, size
            elif action == SEGMENT_FREE:
                begin, size = there.pop(address, (BEFORE, size))
                plain.append(Arena(address, size, begin, event, False))
            elif action in (SEGMENT_MAP, SEGMENT_UNMAP):
                ranges.append((address, address + size))
        for segment in self.device.segments:
            if segment.is_expandable:
                ranges.append((segment.address, segment.address + segment.size))
            else:
                begin, _ = there.pop(segment.address, (BEFORE, 0))
                plain.append(Arena(segment.address, segment.size, begin, NEVER, False))
        plain += [Arena(address, size, begin, NEVER, False) for address, (begin, size) in there.items()]
        expandable = [Arena(start, end - start, BEFORE, NEVER, True) for start, end in _unions(ranges)]
        return sorted([*plain, *expandable])

    @cached_property
    def arena_of(self) -> array[int]:
        """By allocation the index into `arenas`, -1 for one that is in none."""
        arenas, of = self.arenas, self.allocations
        result = array("i", [-1]) * len(of)
        # Those that are there, by address; what gives one back comes before what takes its address.
        starts: list[int] = []
        there: dict[int, int] = {}
        changes = [(arena.begin, 1, index) for index, arena in enumerate(arenas)]
        changes += [(arena.end, 0, index) for index, arena in enumerate(arenas) if arena.end != NEVER]
        changes.sort()
        at = 0
        for row in sorted(range(len(of)), key=of.begin.__getitem__):
            while at < len(changes) and changes[at][0] <= of.begin[row]:
                _, comes, index = changes[at]
                address = arenas[index].address
                if comes and address not in there:
                    insort(starts, address)
                if comes:
                    there[address] = index
                elif there.get(address) == index:
                    del there[address]
                    del starts[bisect_left(starts, address)]
                at += 1
            position = bisect_right(starts, of.address[row]) - 1
            if position >= 0:
                index = there[starts[position]]
                if of.address[row] < arenas[index].address + arenas[index].size:
                    result[row] = index
        return result

    # -- the peak ------------------------------------------------------------------------

    @cached_property
    def peak(self) -> int:
        """The event after which most is allocated, the first of equal ones; BEFORE where it is the start."""
        allocated = self.allocated
        most = max(allocated, default=-1)
        return allocated.index(most) if most > self.base_allocated else BEFORE

    def allocated_at(self, event: int) -> int:
        """Returns the bytes that are allocated after an event."""
        return self.base_allocated if event == BEFORE else self.allocated[event]

    def reserved_at(self, event: int) -> int:
        """Returns the bytes that the allocator has after an event."""
        return self.base_reserved if event == BEFORE else self.reserved[event]

    @cached_property
    def most_reserved(self) -> int:
        """The most bytes that the allocator has at any time."""
        return max(self.base_reserved, max(self.reserved, default=0))

    def live_at(self, event: int) -> Iterator[int]:
        """Yields the allocations that are held after an event."""
        of = self.allocations
        for row, (begin, released) in enumerate(zip(of.begin, of.released, strict=True)):
            if begin <= event and (released == NEVER or released > event):
                yield row

    def holders_at(self, event: int) -> list[Holder]:
        """Returns what each stack holds after an event, the most first; unknown stacks last of equal ones."""
        of = self.allocations
        sums: dict[int, list[int]] = {}
        for row in self.live_at(event):
            one = sums.setdefault(of.stack[row], [0, 0, row])
            one[0] += of.size[row]
            one[1] += 1
            if of.size[row] > of.size[one[2]]:
                one[2] = row
        holders = [Holder(stack, *of_stack) for stack, of_stack in sums.items()]
        return sorted(holders, key=lambda holder: (-holder.bytes, holder.stack == NO_STACK, holder.stack))

    # -- what failed ---------------------------------------------------------------------

    @cached_property
    def failures(self) -> list[OutOfMemory]:
        """The requests that could not be met, in their order."""
        events = self.events
        return [
            OutOfMemory(
                event, self.size[event], max(events.address[event], 0), self.allocated[event],
                self.reserved[event], events.stack[event],
            )
            for event, action in enumerate(events.action)
            if action == OOM
        ]  # fmt: skip

    @cached_property
    def largest_free(self) -> int:
        """The largest block at the end that nothing is in, bytes."""
        blocks = self.device.blocks
        free = (size for size, state in zip(blocks.size, blocks.state, strict=True) if state == INACTIVE)
        return max(free, default=0)

    # -- time ----------------------------------------------------------------------------

    @cached_property
    def has_times(self) -> bool:
        """Whether all events state their times; if not, each takes a microsecond."""
        return all(time_us >= 0 for time_us in self.events.time_us)

    def times(self, begin_us: int) -> array[int]:
        """Returns when each event was, ns from `begin_us`, never earlier than the one before it."""
        if not self.has_times:
            return array("q", range(0, 1000 * len(self.events), 1000))
        # An instant is drawn as 1 ns, which has to fit as well.
        times = (min(max((time_us - begin_us) * 1000, 0), LARGEST - 1) for time_us in self.events.time_us)
        return array("q", list(accumulate(times, max)))


def _sums(base: int, changes: Sequence[int]) -> array[int]:
    sums = accumulate(changes, initial=base)
    next(sums)
    return array("q", [min(max(one, 0), _MOST_SUM) for one in sums])


def _unions(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Returns what ranges cover together; those that touch are one."""
    unions: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if unions and start <= unions[-1][1]:
            unions[-1] = unions[-1][0], max(end, unions[-1][1])
        elif end > start:
            unions.append((start, end))
    return unions
