"""Runs a set of execution traces by wltui's rules: no message is simulated, every duration has a closed form.

Compute, CPU and remote memory are a stream each, on which the free node of the lowest id goes next; the
collectives of a group are a stream of their own, one at a time, and start when all members have come; a
transfer goes by the channel of its two ranks, one at a time, and a receive waits for its message.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from simcore.chakra.nodes import Nodes
from simcore.records import NamedTuple

if TYPE_CHECKING:
    from simcore.messages.traffic import LinkTraffic, Payload

NEVER = -1
# How this engine treats a node: it runs on a stream, with others, as a message, or waits for one.
STREAM, MEETING, MESSAGE, RECEIVE = range(4)


class EngineInput(NamedTuple):
    """What the engine runs. Columns of each rank are over its nodes by id."""

    nodes: Sequence[Nodes]
    """By rank."""
    kind: Sequence[bytearray]
    """STREAM to RECEIVE, for each node."""
    stream: Sequence[bytearray]
    """The stream of a STREAM node, a small number within a rank."""
    duration: Sequence[array[int]]
    """The duration of each node, ns."""
    partner: Sequence[array[int]]
    """The id of a MEETING, and of the message of MESSAGE and RECEIVE, -1 for a receive without one."""
    members: array[int]
    """The number of members of each meeting."""
    meeting_ns: array[int]
    """The duration of each meeting."""
    group: array[int]
    """The id of the group of each meeting."""
    channel: array[int]
    """The id of the channel of each message."""


class LinkTransport(NamedTuple):
    """Times messages where no duration is known beforehand."""

    transport: LinkTraffic
    """The links and their traffic."""
    meetings: list[tuple[Payload, tuple[int, ...]] | None]
    """For each collective its payload and its ranks, None for one that takes `meeting_ns`."""
    messages: list[tuple[Payload, int, int]]
    """For each message its payload, sender and receiver."""


class NodeTimes(NamedTuple):
    """When every node started, and the like; NEVER for a node that did not."""

    start: list[array[int]]
    """When each node started."""
    begin: list[array[int]]
    """When what it waited for had come."""
    end: list[array[int]]
    """When it ended."""
    order: list[tuple[int, int]]
    """(rank, index) of the nodes by their ends, each behind what it waited for."""
    before: array[int]
    """For each meeting the one before it in its group, NEVER for the first."""


def run_fifo(work: EngineInput, links: LinkTransport | None = None) -> NodeTimes:
    """Returns the times of all nodes; those that wait for ever have none. links: for `--network links`."""
    return _Engine(work, links).run()


class _Engine:
    def __init__(self, work: EngineInput, links: LinkTransport | None) -> None:
        self.work = work
        self.links = links
        ranks = range(len(work.nodes))
        sizes = [len(nodes) for nodes in work.nodes]
        self.start = [array("q", (NEVER,)) * size for size in sizes]
        self.begin = [array("q", (NEVER,)) * size for size in sizes]
        self.end = [array("q", (NEVER,)) * size for size in sizes]
        self.order: list[tuple[int, int]] = []
        self.waits = [
            bytearray(min(len({*data, *ctrl}), 255) for data, ctrl in zip(node.data, node.ctrl, strict=True))
            for node in work.nodes
        ]
        self._many = [self._large_counts(rank) for rank in ranks]
        streams = [max(streams_of_unit, default=0) + 1 for streams_of_unit in work.stream]
        self._free: list[list[list[int]]] = [[[] for _ in range(count)] for count in streams]
        self._busy = [bytearray(count) for count in streams]
        meetings = len(work.members)
        self._left = array("i", work.members)
        self._came: list[list[tuple[int, int]]] = [[] for _ in range(meetings)]
        self.before = array("i", (NEVER,)) * meetings
        groups = max(work.group, default=NEVER) + 1
        self._group_busy = bytearray(groups)
        self._last = array("i", (NEVER,)) * groups
        self._complete: list[list[int]] = [[] for _ in range(groups)]
        messages = len(work.channel)
        self._is_sent = bytearray(messages)
        self._receiver: dict[int, tuple[int, int]] = {}
        self._channel_busy: set[int] = set()
        self._channel_queue: dict[int, list[tuple[int, int]]] = {}
        # (time, order of scheduling, kind, rank, index); kind: STREAM, MEETING, MESSAGE.
        self._events: list[tuple[int, int, int, int, int]] = []
        self._puts = 0
        self.now = 0

    def _large_counts(self, rank: int) -> dict[int, int]:
        """Returns the number of waits of nodes that wait for 255 or more."""
        nodes = self.work.nodes[rank]
        return {
            index: len({*nodes.data[index], *nodes.ctrl[index]})
            for index, count in enumerate(self.waits[rank])
            if count == 255
        }

    def run(self) -> NodeTimes:
        ready = [
            (rank, index)
            for rank, waits in enumerate(self.waits)
            for index, count in enumerate(waits)
            if not count
        ]
        heapify(ready)
        self._start(ready)
        events, transport = self._events, None if self.links is None else self.links.transport
        while True:
            coming = None if transport is None else transport.next_ns()
            if events and (coming is None or events[0][0] < coming):
                coming = events[0][0]
            if coming is None:
                break
            self.now = coming
            freed: list[tuple[int, int]] = []
            # All that ends at an instant ends before anything starts at it.
            while events and events[0][0] == self.now:
                _, _, kind, rank, index = heappop(events)
                self._finish(kind, rank, index, freed)
            if transport is not None:
                for token in transport.finished(self.now):
                    kind, rank, index = token  # type: ignore[misc]
                    self._finish(kind, rank, index, freed)
            self._start(freed)
            if transport is not None:
                transport.settle(self.now)
        return NodeTimes(self.start, self.begin, self.end, self.order, self.before)

    def _schedule(self, delay: int, kind: int, rank: int, index: int) -> None:
        self._puts += 1
        heappush(self._events, (self.now + delay, self._puts, kind, rank, index))

    def _finish(self, kind: int, rank: int, index: int, freed: list[tuple[int, int]]) -> None:
        if kind == MEETING:
            # rank is the id of the collective.
            group = self.work.group[rank]
            self._group_busy[group] = 0
            for member, at in sorted(self._came[rank]):
                self._end_node(member, at, freed)
            if self._complete[group]:
                self._start_meeting(heappop(self._complete[group]))
            return
        if kind == STREAM:
            self._busy[rank][self.work.stream[rank][index]] = 0
            freed.append((rank, -1 - self.work.stream[rank][index]))
        elif kind == MESSAGE:
            message_id = self.work.partner[rank][index]
            channel = self.work.channel[message_id]
            self._is_sent[message_id] = 1
            self._channel_busy.discard(channel)
            self._end_node(rank, index, freed)
            receiver = self._receiver.pop(message_id, None)
            if receiver is not None:
                self._end_node(*receiver, freed)
            queue = self._channel_queue.get(channel)
            if queue:
                self._transmit(*heappop(queue))
            return
        self._end_node(rank, index, freed)

    def _end_node(self, rank: int, index: int, freed: list[tuple[int, int]]) -> None:
        self.end[rank][index] = self.now
        self.order.append((rank, index))
        nodes, waits, many = self.work.nodes[rank], self.waits[rank], self._many[rank]
        to = nodes.children_to
        for child in nodes.children[to[index - 1] if index else 0 : to[index]]:
            if many and child in many:
                many[child] -= 1
                if not many[child]:
                    freed.append((rank, child))
                continue
            waits[child] -= 1
            if not waits[child]:
                freed.append((rank, child))

    def _start(self, freed: list[tuple[int, int]]) -> None:
        """Starts what has become free, and what may now use freed streams."""
        work = self.work
        served: set[tuple[int, int]] = set()
        while freed:
            freed.sort()
            later: list[tuple[int, int]] = []
            for rank, index in freed:
                if index < 0:
                    served.add((rank, -1 - index))
                    continue
                kind = work.kind[rank][index]
                if kind == STREAM:
                    stream = work.stream[rank][index]
                    heappush(self._free[rank][stream], index)
                    served.add((rank, stream))
                    continue
                self.start[rank][index] = self.now
                if kind == MEETING:
                    self._join_meeting(rank, index)
                elif kind == MESSAGE:
                    self._send(rank, index)
                else:
                    self._receive(rank, index, later)
            freed = later
        for rank, stream in sorted(served):
            free = self._free[rank][stream]
            if free and not self._busy[rank][stream]:
                self._busy[rank][stream] = 1
                index = heappop(free)
                self.start[rank][index] = self.begin[rank][index] = self.now
                self._schedule(work.duration[rank][index], STREAM, rank, index)

    def _join_meeting(self, rank: int, index: int) -> None:
        meeting = self.work.partner[rank][index]
        self._came[meeting].append((rank, index))
        self._left[meeting] -= 1
        if not self._left[meeting]:
            group = self.work.group[meeting]
            if self._group_busy[group]:
                heappush(self._complete[group], meeting)
            else:
                self._start_meeting(meeting)

    def _start_meeting(self, meeting: int) -> None:
        group = self.work.group[meeting]
        self._group_busy[group] = 1
        self.before[meeting] = self._last[group]
        self._last[group] = meeting
        for rank, index in self._came[meeting]:
            self.begin[rank][index] = self.now
        traffic = None if self.links is None else self.links.meetings[meeting]
        if self.links is None or traffic is None:
            self._schedule(self.work.meeting_ns[meeting], MEETING, meeting, 0)
        else:
            payload, ranks = traffic
            self.links.transport.start(self.now, (MEETING, meeting, 0), payload, ranks, ranks, group)

    def _send(self, rank: int, index: int) -> None:
        channel = self.work.channel[self.work.partner[rank][index]]
        if channel in self._channel_busy:
            heappush(self._channel_queue.setdefault(channel, []), (rank, index))
        else:
            self._transmit(rank, index)

    def _transmit(self, rank: int, index: int) -> None:
        message_id = self.work.partner[rank][index]
        self._channel_busy.add(self.work.channel[message_id])
        self.begin[rank][index] = self.now
        receiver = self._receiver.get(message_id)
        if receiver is not None:
            self.begin[receiver[0]][receiver[1]] = self.now
        if self.links is None:
            self._schedule(self.work.duration[rank][index], MESSAGE, rank, index)
        else:
            payload, source, target = self.links.messages[message_id]
            self.links.transport.start(self.now, (MESSAGE, rank, index), payload, (source,), (target,), 0)

    def _receive(self, rank: int, index: int, later: list[tuple[int, int]]) -> None:
        message_id = self.work.partner[rank][index]
        if message_id == NEVER:
            return
        if self._is_sent[message_id]:
            self.begin[rank][index] = self.now
            self._end_node(rank, index, later)
            return
        self._receiver[message_id] = (rank, index)
        # The message may be on its way already.
        self.begin[rank][index] = self.now
