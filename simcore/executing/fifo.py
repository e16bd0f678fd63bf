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
# What a node is, for this engine: it runs on a stream, with others, as a message, or waits for one.
STREAM, MEETING, MESSAGE, RECEIVE = range(4)


class Work(NamedTuple):
    """What the engine runs. Columns of each rank over its nodes by id.

    kind: of the words above. stream: of STREAM, a small number a rank. duration: ns. partner: of MEETING its
    number, of MESSAGE and RECEIVE the number of the message, -1 for a receive without one.
    members: of each meeting how many; meeting_ns: what it takes; group: the number of its group. channel: of
    each message the number of its channel.
    """

    nodes: Sequence[Nodes]
    kind: Sequence[bytearray]
    stream: Sequence[bytearray]
    duration: Sequence[array[int]]
    partner: Sequence[array[int]]
    members: array[int]
    meeting_ns: array[int]
    group: array[int]
    channel: array[int]


class OnLinks(NamedTuple):
    """What carries messages where no duration is known beforehand. meetings: of each collective what it
    moves and its ranks, None for one that takes `meeting_ns`. messages: of each message its bytes and ranks.
    """

    carrier: LinkTraffic
    meetings: list[tuple[Payload, tuple[int, ...]] | None]
    messages: list[tuple[Payload, int, int]]


class NodeTimes(NamedTuple):
    """When every node started, when what it waited for was there, and when it ended; NEVER for not at all.

    order: (rank, place) of the nodes by their ends, each behind what it waited for. before: of each meeting
    the one before it in its group, NEVER for the first.
    """

    start: list[array[int]]
    begin: list[array[int]]
    end: list[array[int]]
    order: list[tuple[int, int]]
    before: array[int]


def run_fifo(work: Work, links: OnLinks | None = None) -> NodeTimes:
    """The times of all nodes; those that wait for ever have none. links: of `--network links`."""
    return _Engine(work, links).run()


class _Engine:
    def __init__(self, work: Work, links: OnLinks | None) -> None:
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
        self._many = [self._beyond(rank) for rank in ranks]
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
        self._sent = bytearray(messages)
        self._receiver: dict[int, tuple[int, int]] = {}
        self._channel_busy: set[int] = set()
        self._channel_queue: dict[int, list[tuple[int, int]]] = {}
        # (time, order of putting, what, rank, place); what: STREAM, MEETING, MESSAGE.
        self._events: list[tuple[int, int, int, int, int]] = []
        self._puts = 0
        self.now = 0

    def _beyond(self, rank: int) -> dict[int, int]:
        """The counts of nodes that wait for 255 or more."""
        nodes = self.work.nodes[rank]
        return {
            place: len({*nodes.data[place], *nodes.ctrl[place]})
            for place, count in enumerate(self.waits[rank])
            if count == 255
        }

    def run(self) -> NodeTimes:
        ready = [
            (rank, place)
            for rank, waits in enumerate(self.waits)
            for place, count in enumerate(waits)
            if not count
        ]
        heapify(ready)
        self._start(ready)
        events, carrier = self._events, None if self.links is None else self.links.carrier
        while True:
            coming = None if carrier is None else carrier.next_ns()
            if events and (coming is None or events[0][0] < coming):
                coming = events[0][0]
            if coming is None:
                break
            self.now = coming
            freed: list[tuple[int, int]] = []
            # All that ends at an instant ends before anything starts at it.
            while events and events[0][0] == self.now:
                _, _, what, rank, place = heappop(events)
                self._finish(what, rank, place, freed)
            if carrier is not None:
                for token in carrier.finished(self.now):
                    what, rank, place = token  # type: ignore[misc]
                    self._finish(what, rank, place, freed)
            self._start(freed)
            if carrier is not None:
                carrier.settle(self.now)
        return NodeTimes(self.start, self.begin, self.end, self.order, self.before)

    def _put(self, delay: int, what: int, rank: int, place: int) -> None:
        self._puts += 1
        heappush(self._events, (self.now + delay, self._puts, what, rank, place))

    def _finish(self, what: int, rank: int, place: int, freed: list[tuple[int, int]]) -> None:
        if what == MEETING:
            # rank is the number of the collective.
            group = self.work.group[rank]
            self._group_busy[group] = 0
            for member, at in sorted(self._came[rank]):
                self._ended(member, at, freed)
            if self._complete[group]:
                self._meet(heappop(self._complete[group]))
            return
        if what == STREAM:
            self._busy[rank][self.work.stream[rank][place]] = 0
            freed.append((rank, -1 - self.work.stream[rank][place]))
        elif what == MESSAGE:
            number = self.work.partner[rank][place]
            channel = self.work.channel[number]
            self._sent[number] = 1
            self._channel_busy.discard(channel)
            self._ended(rank, place, freed)
            receiver = self._receiver.pop(number, None)
            if receiver is not None:
                self._ended(*receiver, freed)
            queue = self._channel_queue.get(channel)
            if queue:
                self._transmit(*heappop(queue))
            return
        self._ended(rank, place, freed)

    def _ended(self, rank: int, place: int, freed: list[tuple[int, int]]) -> None:
        self.end[rank][place] = self.now
        self.order.append((rank, place))
        nodes, waits, many = self.work.nodes[rank], self.waits[rank], self._many[rank]
        to = nodes.children_to
        for child in nodes.children[to[place - 1] if place else 0 : to[place]]:
            if many and child in many:
                many[child] -= 1
                if not many[child]:
                    freed.append((rank, child))
                continue
            waits[child] -= 1
            if not waits[child]:
                freed.append((rank, child))

    def _start(self, freed: list[tuple[int, int]]) -> None:
        """Starts what has become free, and what streams have become free for."""
        work = self.work
        served: set[tuple[int, int]] = set()
        while freed:
            freed.sort()
            later: list[tuple[int, int]] = []
            for rank, place in freed:
                if place < 0:
                    served.add((rank, -1 - place))
                    continue
                kind = work.kind[rank][place]
                if kind == STREAM:
                    stream = work.stream[rank][place]
                    heappush(self._free[rank][stream], place)
                    served.add((rank, stream))
                    continue
                self.start[rank][place] = self.now
                if kind == MEETING:
                    self._come(rank, place)
                elif kind == MESSAGE:
                    self._send(rank, place)
                else:
                    self._receive(rank, place, later)
            freed = later
        for rank, stream in sorted(served):
            free = self._free[rank][stream]
            if free and not self._busy[rank][stream]:
                self._busy[rank][stream] = 1
                place = heappop(free)
                self.start[rank][place] = self.begin[rank][place] = self.now
                self._put(work.duration[rank][place], STREAM, rank, place)

    def _come(self, rank: int, place: int) -> None:
        number = self.work.partner[rank][place]
        self._came[number].append((rank, place))
        self._left[number] -= 1
        if not self._left[number]:
            group = self.work.group[number]
            if self._group_busy[group]:
                heappush(self._complete[group], number)
            else:
                self._meet(number)

    def _meet(self, number: int) -> None:
        group = self.work.group[number]
        self._group_busy[group] = 1
        self.before[number] = self._last[group]
        self._last[group] = number
        for rank, place in self._came[number]:
            self.begin[rank][place] = self.now
        moved = None if self.links is None else self.links.meetings[number]
        if self.links is None or moved is None:
            self._put(self.work.meeting_ns[number], MEETING, number, 0)
        else:
            sent, ranks = moved
            self.links.carrier.start(self.now, (MEETING, number, 0), sent, ranks, ranks, group)

    def _send(self, rank: int, place: int) -> None:
        channel = self.work.channel[self.work.partner[rank][place]]
        if channel in self._channel_busy:
            heappush(self._channel_queue.setdefault(channel, []), (rank, place))
        else:
            self._transmit(rank, place)

    def _transmit(self, rank: int, place: int) -> None:
        number = self.work.partner[rank][place]
        self._channel_busy.add(self.work.channel[number])
        self.begin[rank][place] = self.now
        receiver = self._receiver.get(number)
        if receiver is not None:
            self.begin[receiver[0]][receiver[1]] = self.now
        if self.links is None:
            self._put(self.work.duration[rank][place], MESSAGE, rank, place)
        else:
            sent, source, target = self.links.messages[number]
            self.links.carrier.start(self.now, (MESSAGE, rank, place), sent, (source,), (target,), 0)

    def _receive(self, rank: int, place: int, later: list[tuple[int, int]]) -> None:
        number = self.work.partner[rank][place]
        if number == NEVER:
            return
        if self._sent[number]:
            self.begin[rank][place] = self.now
            self._ended(rank, place, later)
            return
        self._receiver[number] = (rank, place)
        # The message may be on its way already.
        self.begin[rank][place] = self.now
