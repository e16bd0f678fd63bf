"""A collective that an execution trace of its own describes: `all-reduce-implementation-custom` (R4.17)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush

from simcore.chakra.attributes import INTEGERS, Attributes
from simcore.chakra.nodes import COMP, RECV, SEND, Kinds, Nodes
from simcore.messages.clock import Clock, Fault, ForbiddenExit
from simcore.messages.network import TAGS, Matching


class CustomCollective:
    """The nodes of one member's file: each begins the moment its parents have ended, without slots.

    ranks: the rank of each position in the file. over: called when all nodes have ended.
    """

    def __init__(
        self,
        rank: int,
        node: int,
        nodes: Nodes,
        kinds: Kinds,
        clock: Clock,
        network: Matching,
        ranks: Sequence[int],
        over: Callable[[], None],
    ) -> None:
        self.rank = rank
        self.node = node
        self.nodes = nodes
        self.kinds = kinds
        self.clock = clock
        self.network = network
        self.ranks = ranks
        self.over = over
        self._waits = [len({*data, *ctrl}) for data, ctrl in zip(nodes.data, nodes.ctrl, strict=True)]
        self._free = [index for index, waits in enumerate(self._waits) if not waits]
        self._running = 0
        heapify(self._free)

    def begin(self) -> None:
        """Starts the nodes that wait for nothing. Raises `Fault`."""
        free = self._free
        while free:
            self._running += 1
            self._issue(heappop(free))

    def _end_node(self, index: int) -> None:
        self._running -= 1
        for child in self.nodes.children_of(index):
            self._waits[child] -= 1
            if not self._waits[child]:
                heappush(self._free, child)
        self.begin()
        if not self._running:
            self.over()

    def _issue(self, index: int) -> None:
        nodes = self.nodes
        row = nodes.row[index]
        kind = nodes.columns.type[row]
        if kind == COMP:
            self.clock.schedule_own(self.rank, nodes.columns.duration[row] * 1000 or 1, self._end_node, index)
            return
        if kind not in (SEND, RECV):
            raise ForbiddenExit(
                self.rank,
                self.node,
                f"node {nodes.id[index]} of its custom collective is of type {kind}, "
                "expected COMP, SEND or RECV (R4.17)",
                "aborts",
            )
        attributes = self.kinds.attributes(nodes.columns.attributes[row])
        position = self._integer(attributes, "comm_dst" if kind == SEND else "comm_src")
        tag = self._integer(attributes, "comm_tag") % TAGS
        size = self._integer(attributes, "comm_size")
        if not 0 <= position < len(self.ranks) or self.ranks[position] == self.rank or size <= 0:
            raise ForbiddenExit(
                self.rank,
                self.node,
                f"node {nodes.id[index]} of its custom collective has no partner "
                f"{position} or 0 bytes (R4.17)",
                "aborts",
            )
        peer = self.ranks[position]
        if kind == SEND:
            self.network.send((tag, self.rank, peer, size), self._end_node, index)
        else:
            self.network.receive((tag, peer, self.rank, size), self._end_node, index)

    def _integer(self, attributes: Attributes, name: str) -> int:
        value = attributes.get(name)
        if value is None or value.kind not in INTEGERS:
            raise Fault(self.rank, self.node, f"a node of its custom collective has no whole number {name}")
        return int(value.value)
