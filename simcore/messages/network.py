"""Messages between ranks: how long one takes, and which receive it belongs to.

There are two networks, as in ASTRA-sim's analytical backends. `FullBandwidth`: every message has the whole
bandwidth, and over several dimensions the lowest in which the two ranks differ charges it. `LinkByLink`: a
message goes link by link, each a FIFO, stored and forwarded, dimension by dimension from the lowest.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from simcore.cluster import Dimension
from simcore.messages.clock import Clock, ForbiddenExit
from simcore.records import NamedTuple

_GIB = 1 << 30
# The message with which a receiver reports that it has come (rendezvous), bytes.
RENDEZVOUS_BYTES = 8192
# A message matches a receive by (tag, from, to, bytes).
Key = tuple[int, int, int, int]
# Over the whole run: more than a wide screen has columns, so that a part of the run can be displayed.
_STRETCHES = 4096
# The tags of transfers and of rendezvous are apart from those of collectives.
TAGS = 500_000_000
TRANSFER_TAG = 1 << 40
RENDEZVOUS_TAG = 1 << 41
_Call = Callable[[Any], object]


def astra_bandwidth(bandwidth: float) -> float:
    """Returns bytes per ns as ASTRA-sim computes it of its GiB/s, in doubles; any other bandwidth unchanged.

    The two can differ in the last bit, and a floor by 1 ns.
    """
    gibps = float(f"{bandwidth * 1e9 / _GIB:.12g}")
    there = gibps * _GIB / 1e9
    return there if abs(there - bandwidth) <= 4e-16 * bandwidth else bandwidth


class Matching(ABC):
    """Sends and receives of one network; a subclass decides when a message arrives."""

    def __init__(self, clock: Clock, rendezvous: bool) -> None:
        self.clock = clock
        self.rendezvous = rendezvous
        self._arrived: dict[Key, int] = {}
        self._posted: dict[Key, deque[tuple[_Call, Any]]] = {}

    def send(self, key: Key, over: _Call | None, argument: Any) -> None:
        """Sends a message; `over` is called when it has arrived, before the receiver."""
        if self.rendezvous:
            tag, source, target, _ = key
            back = (tag + RENDEZVOUS_TAG, target, source, RENDEZVOUS_BYTES)
            self._receive(back, self._send_now, (key, over, argument))
        else:
            self._transmit(key, over, argument)

    def receive(self, key: Key, call: _Call, argument: Any) -> None:
        """Posts a receive; `call` is called when its message has arrived."""
        if self.rendezvous:
            tag, source, target, _ = key
            back = (tag + RENDEZVOUS_TAG, target, source, RENDEZVOUS_BYTES)
            self._transmit(back, self._receive_now, (key, call, argument))
        else:
            self._receive(key, call, argument)

    def _send_now(self, waiting: tuple[Key, _Call | None, Any]) -> None:
        self._transmit(*waiting)

    def _receive_now(self, waiting: tuple[Key, _Call, Any]) -> None:
        self._receive(*waiting)

    def _receive(self, key: Key, call: _Call, argument: Any) -> None:
        arrived = self._arrived.get(key)
        if arrived:
            if arrived == 1:
                del self._arrived[key]
            else:
                self._arrived[key] = arrived - 1
            self.clock.schedule(0, call, argument)
            return
        posted = self._posted.get(key)
        if posted is None:
            self._posted[key] = deque(((call, argument),))
        else:
            posted.append((call, argument))

    def _arrive(self, message: tuple[Key, _Call | None, Any]) -> None:
        key, over, argument = message
        if over is not None:
            over(argument)
        posted = self._posted.get(key)
        if posted is None:
            self._arrived[key] = self._arrived.get(key, 0) + 1
            return
        call, received = posted.popleft()
        if not posted:
            del self._posted[key]
        call(received)

    @abstractmethod
    def _transmit(self, key: Key, over: _Call | None, argument: Any) -> None: ...

    def constant_ns(self, source: int, target: int, size: int) -> int:
        """Returns the ns of each such message, whatever else is in flight; 0 where it is not constant."""
        return 0

    def exchange(self, ns: int, message: tuple[Key, None, None], received: Key, call: _Call) -> None:
        """Sends a message of `constant_ns`, and posts a receive."""
        clock = self.clock
        clock.schedule(ns, self._arrive, message)
        arrived = self._arrived.get(received)
        if arrived:
            if arrived == 1:
                del self._arrived[received]
            else:
                self._arrived[received] = arrived - 1
            clock.schedule(0, call, None)
            return
        posted = self._posted.get(received)
        if posted is None:
            self._posted[received] = deque(((call, None),))
        else:
            posted.append((call, None))


class FullBandwidth(Matching):
    """A network where every message takes floor(hops * latency + bytes / bandwidth) ns."""

    def __init__(self, clock: Clock, dims: Sequence[Dimension], rendezvous: bool = False) -> None:
        super().__init__(clock, rendezvous)
        self._dims = [(dim.kind, dim.size, astra_bandwidth(dim.bandwidth), dim.latency_ns) for dim in dims]
        self._cache: dict[tuple[int, int, int], int] = {}

    def message_ns(self, source: int, target: int, size: int) -> int:
        """Returns the ns that a message takes."""
        cached_ns = self._cache.get((source, target, size))
        if cached_ns is None:
            cached_ns = self._cache[source, target, size] = self._message_ns(source, target, size)
        return cached_ns

    def constant_ns(self, source: int, target: int, size: int) -> int:
        return 0 if self.rendezvous else self.message_ns(source, target, size)

    def _message_ns(self, source: int, target: int, size: int) -> int:
        for kind, npus, bandwidth, latency in self._dims:
            here, there = source % npus, target % npus
            if here != there:
                apart = abs(here - there)
                hops = {"ring": min(apart, npus - apart), "fully-connected": 1, "switch": 2}[kind]
                return int(hops * latency + size / bandwidth)
            source //= npus
            target //= npus
        return 0

    def _transmit(self, key: Key, over: _Call | None, argument: Any) -> None:
        _, source, target, size = key
        ns = self._cache.get((source, target, size))
        if ns is None:
            ns = self.message_ns(source, target, size)
        if not ns and not self.clock.now:
            raise ForbiddenExit(source, None, "a message of less than 1 ns at the start of the run", "aborts")
        self.clock.schedule(ns, self._arrive, (key, over, argument))


class LinkUse(NamedTuple):
    """What a link carried."""

    dimension: int
    """The dimension of the link."""
    source: int
    """The rank that it comes from; for a switch -1 less the lowest rank that is on it."""
    target: int
    """The rank that it goes to; a switch as in `source`."""
    messages: int
    """The number of messages."""
    bytes: int
    """Their bytes."""
    busy_ns: int
    """How long it was busy."""
    queued_ns: int
    """How long messages waited for it."""


class LinkHeat(NamedTuple):
    """How busy all links are over the run. busy_ns: of all links together, in bins of `width_ns`."""

    width_ns: int
    busy_ns: Sequence[int]
    links: int

    def shares(self, edges: Sequence[int]) -> list[float]:
        """Returns the mean share of the links that is busy between each two neighbouring times, ns."""
        sums = list(itertools.accumulate(self.busy_ns, initial=0))

        def until(time: int) -> float:
            whole, rest = divmod(max(time, 0), self.width_ns)
            if whole >= len(self.busy_ns):
                return sums[-1]
            return sums[whole] + self.busy_ns[whole] * rest / self.width_ns

        shares = []
        for first, last in itertools.pairwise(edges):
            room = max(last - first, 1) * max(self.links, 1)
            shares.append(min((until(last) - until(first)) / room, 1.0))
        return shares


class Busy:
    """Gathers `LinkHeat`: bins become twice as wide when the run is longer than all of them."""

    def __init__(self) -> None:
        self.width = 1
        self.bins = [0] * _STRETCHES

    def add(self, begin: int, length: int) -> None:
        """Adds `length` ns from `begin` on in which a link is busy."""
        end = begin + length
        while end >= self.width * _STRETCHES:
            merged = [sum(pair) for pair in zip(self.bins[::2], self.bins[1::2], strict=True)]
            self.bins = merged + [0] * (_STRETCHES // 2)
            self.width *= 2
        width, bins = self.width, self.bins
        first, last = begin // width, end // width
        if first == last:
            bins[first] += length
            return
        bins[first] += (first + 1) * width - begin
        for index in range(first + 1, last):
            bins[index] += width
        bins[last] += end - last * width


class _Link:
    __slots__ = ("bandwidth", "busy", "busy_ns", "bytes", "dimension", "latency", "messages", "queue",
                 "queued_ns", "source", "target")  # fmt: skip

    def __init__(self, dimension: int, source: int, target: int, bandwidth: float, latency: float) -> None:
        self.dimension = dimension
        self.source = source
        self.target = target
        self.bandwidth = bandwidth
        self.latency = latency
        self.busy = False
        self.queue: deque[tuple[int, Any]] = deque()
        self.messages = self.bytes = self.busy_ns = self.queued_ns = 0


class LinkByLink(Matching):
    """A network where every message goes link by link.

    A link is busy floor(bytes / bandwidth) ns with a message, and those that come meanwhile wait in the order
    of coming. The message is at the other end floor(latency + bytes / bandwidth) ns after it began.

    Links of a rank: on a ring one to each side, on a switch one to it and one from it, fully connected one to
    each other rank of its dimension. On a ring a message takes the shorter way, clockwise where both are
    equal.
    """

    def __init__(self, clock: Clock, dims: Sequence[Dimension], rendezvous: bool = False) -> None:
        super().__init__(clock, rendezvous)
        self._dims = [(dim.kind, dim.size, astra_bandwidth(dim.bandwidth), dim.latency_ns) for dim in dims]
        self._links: dict[tuple[int, int, int], _Link] = {}
        self._routes: dict[tuple[int, int], list[_Link]] = {}
        self._busy = Busy()

    def uses(self) -> list[LinkUse]:
        """Returns the use of each link that carried anything, by dimension and rank."""
        return [
            LinkUse(
                link.dimension,
                link.source,
                link.target,
                link.messages,
                link.bytes,
                link.busy_ns,
                link.queued_ns,
            )
            for _, link in sorted(self._links.items())
        ]

    def heat(self) -> LinkHeat:
        """Returns how busy the links that carried anything are over the run."""
        return LinkHeat(self._busy.width, self._busy.bins, len(self._links))

    def _link(self, dimension: int, source: int, target: int) -> _Link:
        key = (dimension, source, target)
        link = self._links.get(key)
        if link is None:
            _, _, bandwidth, latency = self._dims[dimension]
            link = self._links[key] = _Link(dimension, source, target, bandwidth, latency)
        return link

    def _route(self, source: int, target: int) -> list[_Link]:
        cached = self._routes.get((source, target))
        if cached is not None:
            return cached
        links: list[_Link] = []
        at, stride = source, 1
        for dimension, (kind, npus, _, _) in enumerate(self._dims):
            here, there = at // stride % npus, target // stride % npus
            base = at - here * stride
            if here != there:
                positions = self._walk(kind, npus, here, there)
                for before, after in itertools.pairwise(positions):
                    links.append(self._link(dimension, self._endpoint_id(base, stride, npus, before),
                                            self._endpoint_id(base, stride, npus, after)))  # fmt: skip
                at = base + there * stride
            stride *= npus
        self._routes[source, target] = links
        return links

    @staticmethod
    def _endpoint_id(base: int, stride: int, npus: int, position: int) -> int:
        """Returns a rank's id; for a switch -1 less the lowest rank that is on it."""
        return base + position * stride if position < npus else -1 - base

    @staticmethod
    def _walk(kind: str, npus: int, here: int, there: int) -> list[int]:
        """Returns the positions of a dimension that a message goes through."""
        if kind == "fully-connected":
            return [here, there]
        if kind == "switch":
            return [here, npus, there]
        clockwise = (there - here) % npus
        step = 1 if clockwise <= npus - clockwise else -1
        count = clockwise if step == 1 else npus - clockwise
        return [(here + step * hop) % npus for hop in range(count + 1)]

    def _transmit(self, key: Key, over: _Call | None, argument: Any) -> None:
        self._request((self._route(key[1], key[2]), 0, (key, over, argument)))

    def _request(self, moving: tuple[list[_Link], int, Any]) -> None:
        links, index, _ = moving
        link = links[index]
        if link.busy:
            link.queue.append((self.clock.now, moving))
        else:
            self._begin(link, moving)

    def _begin(self, link: _Link, moving: tuple[list[_Link], int, Any]) -> None:
        key = moving[2][0]
        size = key[3]
        link.busy = True
        link.messages += 1
        link.bytes += size
        busy = int(size / link.bandwidth)
        link.busy_ns += busy
        self._busy.add(self.clock.now, busy)
        arrival = int(link.latency + size / link.bandwidth)
        if not self.clock.now and not (busy and arrival):
            raise ForbiddenExit(key[1], None, "a message of less than 1 ns at the start of the run", "aborts")
        self.clock.schedule(arrival, self._end_hop, moving)
        self.clock.schedule(busy, self._free, link)

    def _end_hop(self, moving: tuple[list[_Link], int, Any]) -> None:
        links, index, message = moving
        if index + 1 == len(links):
            self._arrive(message)
        else:
            self._request((links, index + 1, message))

    def _free(self, link: _Link) -> None:
        if link.queue:
            requested_ns, moving = link.queue.popleft()
            link.queued_ns += self.clock.now - requested_ns
            self._begin(link, moving)
        else:
            link.busy = False


def link_text(source: int, target: int) -> str:
    """Returns `rank 3 to rank 4`, `rank 3 to the switch`; a switch is a negative number.

    A rank has one switch a dimension: with the dimension the text identifies one link.
    """
    names = ["the switch" if rank < 0 else f"rank {rank}" for rank in (source, target)]
    return " to ".join(names)
