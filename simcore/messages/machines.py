"""The collective algorithms as each rank runs them on one dimension: machines with tokens (CHAKRA R9).

A token comes out of the endpoint delay, sends the next message, if one is left, and posts the next receive;
a message that is received becomes a token again, through the endpoint delay and, if it reduces, the
reduction. The phase is over on a rank when all its messages are sent and the tokens that it began with are
back.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from typing import Any, Protocol

from simcore.messages.clock import Clock
from simcore.messages.network import Key, Matching
from simcore.records import NamedTuple

ALLREDUCE, ALLGATHER, REDUCESCATTER, ALLTOALL = "ALLREDUCE", "ALLGATHER", "REDUCESCATTER", "ALLTOALL"


class MachineChunk(Protocol):
    """The chunk whose phase a machine runs, on one rank."""

    rank: int
    tag: int

    @property
    def clock(self) -> Clock:
        """The clock of the run."""
        ...

    def delays(self, size: int) -> tuple[int, int]:
        """Returns (endpoint delay of the phase, reduction of so many bytes), ns."""
        ...

    def process(self, delay_reduce: int, machine: Machine | Tree) -> None:
        """Sends a token through the endpoint delay, and then `delay_reduce` bytes of reduction, -1 for
        none.
        """
        ...

    def ended(self) -> None:
        """Ends the phase on this rank."""
        ...


class Members(NamedTuple):
    """The members of one phase as one rank sees them."""

    ranks: tuple[int, ...]
    """In ring order."""
    position: int
    """The rank's own position among them."""
    is_local: bool = False
    """Whether the group is smaller than the world: direct then counts reductions otherwise."""


class Machine(ABC):
    """A phase of a chunk on one rank, with `tokens`. Of tokens + y receives in turn, the last y reduce."""

    __slots__ = ("_first", "_later", "_odd", "chunk", "free", "kind", "left", "network", "tokens", "y")

    def __init__(
        self, chunk: MachineChunk, network: Matching, kind: str, tokens: int, y: int, messages: int
    ) -> None:
        self.chunk = chunk
        self.network = network
        self.kind = kind
        self.tokens = tokens
        self.y = y
        self.left = messages
        self.free = 0
        self._first = self._later = 0
        self._odd = False

    def begin(self) -> None:
        """Begins the phase on this rank."""
        for _ in range(self.tokens):
            self.insert(None)

    def insert(self, _: Any) -> None:
        """Sends a token through the delays: a message was received, or the phase begins."""
        reduces = False
        if not self._first and not self._later:
            self._first, self._later = self.tokens, self.y
            self._odd = not self._odd
        if self._first:
            self._first -= 1
        else:
            self._later -= 1
            reduces = self.kind == REDUCESCATTER or (self.kind == ALLREDUCE and self._odd)
        size = self.queue_message()
        self.chunk.process(size if reduces else -1, self)

    @abstractmethod
    def queue_message(self) -> int:
        """Puts the next message in line; returns its bytes."""

    def token(self) -> None:
        """Takes a token that has come out of the delays."""
        self.free += 1
        self.send()
        self.settle()

    @abstractmethod
    def send(self) -> None:
        """Sends the message that is first in line, if a token is free and messages are left."""

    def settle(self) -> None:
        """Ends the phase when all is sent and all tokens are back."""
        if not self.left and self.free == self.tokens:
            self.chunk.ended()

    def exchange(self, target: int, source: int, size: int) -> None:
        """Sends a message and posts the receive of the next one."""
        chunk, network = self.chunk, self.network
        rank = chunk.rank
        self.left -= 1
        self.free -= 1
        key: Key = (chunk.tag, rank, target, size)
        network.send(key, None, None)
        network.receive((chunk.tag, source, rank, size), self.insert, None)


class Ring(Machine):
    """Messages to the next rank, always.

    Most of the work of steps with thousands of ranks is here. Where no link is shared each message takes as
    long as the one before, so its keys and times are computed once, and `token` and `insert` are the steps of
    `Machine` without the calls between (three times faster).
    """

    __slots__ = (
        "_cycle",
        "_delay",
        "_flight",
        "_message",
        "_plain",
        "_rank",
        "_received",
        "_reduction",
        "_schedule",
        "size",
        "source",
        "target",
    )  # fmt: skip

    def __init__(
        self, chunk: MachineChunk, network: Matching, kind: str, ring: Members, size: int, step: int
    ) -> None:
        members = len(ring.ranks)
        messages = {
            ALLREDUCE: 2 * (members - 1), ALLTOALL: members * (members - 1) // 2,
        }.get(kind, members - 1)  # fmt: skip
        super().__init__(chunk, network, kind, 1, members - 1, messages)
        self.size = size if kind == ALLGATHER else size // members
        self.target = ring.ranks[(ring.position + step) % members]
        self.source = ring.ranks[(ring.position - step) % members]
        self._cycle = members
        flight = network.constant_ns(chunk.rank, self.target, self.size)
        self._plain = bool(flight)
        if flight:
            self._flight = flight
            self._message = ((chunk.tag, chunk.rank, self.target, self.size), None, None)
            self._received: Key = (chunk.tag, self.source, chunk.rank, self.size)
            self._delay, self._reduction = chunk.delays(self.size)
            self._schedule, self._rank = chunk.clock.schedule_own, chunk.rank

    def insert(self, _: Any) -> None:
        """Does what `Machine.insert` does, for one token, which begins each cycle without a reduction."""
        if not self._plain:
            super().insert(_)
            return
        count = self._first
        self._first = count + 1
        position = count % self._cycle
        reduces = position and (
            self.kind == REDUCESCATTER or (self.kind == ALLREDUCE and not count // self._cycle & 1)
        )
        self._schedule(self._rank, self._delay, self._reduce if reduces else self._out, None)

    def _reduce(self, _: Any) -> None:
        self._schedule(self._rank, self._reduction, self._out, None)

    def _out(self, _: Any) -> None:
        """Takes a token that has come out of the delays: sends the next message, or ends the phase."""
        if not self.left:
            self.chunk.ended()
            return
        self.left -= 1
        self.network.exchange(self._flight, self._message, self._received, self.insert)

    def queue_message(self) -> int:
        return self.size

    def send(self) -> None:
        if self.left:
            self.exchange(self.target, self.source, self.size)


class Direct(Machine):
    """Sends the i-th message to the i-th next rank, with at most `window` of them in flight."""

    __slots__ = ("_half", "_queued", "_received", "_ring", "_send_at", "_step", "size")

    def __init__(
        self,
        chunk: MachineChunk,
        network: Matching,
        kind: str,
        ring: Members,
        size: int,
        step: int,
        most_in_flight: int | None,
    ) -> None:
        members = len(ring.ranks)
        tokens = members - 1 if most_in_flight is None else min(most_in_flight, members - 1)
        y = (members - 1) * tokens if ring.is_local else tokens
        messages = 2 * (members - 1) if kind == ALLREDUCE else members - 1
        super().__init__(chunk, network, kind, tokens, y, messages)
        self.size = size if kind == ALLGATHER else size // members
        self._ring = ring
        self._step = step
        self._half = members - 1
        self._received = 0
        self._queued: deque[tuple[int, int]] = deque()
        self._send_at = 1

    def insert(self, _: Any) -> None:
        if _ is not None:
            self._received += 1
        super().insert(_)

    def queue_message(self) -> int:
        members = len(self._ring.ranks)
        ranks, index, step = self._ring.ranks, self._ring.position, self._step
        self._queued.append((ranks[(index + step * self._send_at) % members],
                             ranks[(index - step * self._send_at) % members]))  # fmt: skip
        # Round and round, leaving out itself.
        self._send_at = self._send_at % (members - 1) + 1
        return self.size

    def token(self) -> None:
        self.free += 1
        if self.kind == ALLREDUCE and self.left <= self._half:
            if self._received < self._half:
                return
            for _ in range(self.tokens):
                self.send()
        else:
            self.send()
        self.settle()

    def send(self) -> None:
        if self.left and self.free and self._queued:
            target, source = self._queued.popleft()
            self.exchange(target, source, self.size)

    def exchange(self, target: int, source: int, size: int) -> None:
        chunk, network = self.chunk, self.network
        rank = chunk.rank
        self.left -= 1
        self.free -= 1
        network.send((chunk.tag, rank, target, size), None, None)
        network.receive((chunk.tag, source, rank, size), self.insert, True)


class HalvingDoubling(Machine):
    """Messages to the partner whose index differs in one bit; sizes halve, or double."""

    __slots__ = ("_back", "_distance", "_queued", "_ring", "size")

    def __init__(self, chunk: MachineChunk, network: Matching, kind: str, ring: Members, size: int) -> None:
        members = len(ring.ranks)
        steps = members.bit_length() - 1
        super().__init__(chunk, network, kind, 1, steps - 1, 2 * steps if kind == ALLREDUCE else steps)
        self._ring = ring
        self._back = kind == ALLGATHER
        self._distance = members // 2 if self._back else 1
        self.size = size if self._back else size // 2
        self._queued: deque[tuple[int, int]] = deque()

    def queue_message(self) -> int:
        if not self.left:
            # Its token alone comes back.
            return self.size
        ranks, index, distance = self._ring.ranks, self._ring.position, self._distance
        partner = index + distance if index // distance % 2 == 0 else index - distance
        self._queued.append((ranks[partner], self.size))
        return self.size

    def send(self) -> None:
        if not self.left or not self._queued:
            return
        partner, size = self._queued.popleft()
        # The next message in line behind this one.
        if self._back:
            self._distance //= 2
            self.size *= 2
        else:
            self._distance *= 2
            self.size //= 2
            if self.kind == ALLREDUCE and self._distance == len(self._ring.ranks):
                self._back = True
                self._distance //= 2
                self.size *= 2
        self._distance = max(self._distance, 1)
        self.exchange(partner, partner, size)


class Tree:
    """The double binary tree: an all-reduce up one of two in-order trees and down again, whatever the
    collective is.
    """

    __slots__ = ("_children", "_parent", "_reduced", "_state", "chunk", "network", "size")

    def __init__(
        self, chunk: MachineChunk, network: Matching, ring: Members, size: int, last_root: bool
    ) -> None:
        self.chunk = chunk
        self.network = network
        self.size = size
        parent, children = find_tree_neighbours(ring.position, len(ring.ranks), last_root)
        self._parent = None if parent is None else ring.ranks[parent]
        self._children = [ring.ranks[child] for child in children]
        self._state = "begin"
        self._reduced = 0

    def begin(self) -> None:
        """Begins the phase on this rank."""
        if not self._children:
            self._state = "up"
            self.chunk.process(-1, self)
            return
        for child in self._children:
            self._receive(child)
        self._state = "children"

    def _send(self, target: int) -> None:
        self.network.send((self.chunk.tag, self.chunk.rank, target, self.size), None, None)

    def _receive(self, source: int) -> None:
        self.network.receive((self.chunk.tag, source, self.chunk.rank, self.size), self._received, None)

    def _received(self, _: Any) -> None:
        if not self._children:
            self._state = "end"
            self.chunk.process(-1, self)
            return
        if self._state == "parent":
            self._state = "down"
        self.chunk.process(self.size, self)

    def token(self) -> None:
        """Takes a token that has come out of the delays."""
        if self._state == "end":
            self.chunk.ended()
        elif self._state == "up":
            self._state = "parent"
            assert self._parent is not None
            self._send(self._parent)
            self._receive(self._parent)
        elif self._state == "children":
            self._reduced += 1
            if self._reduced < len(self._children):
                return
            if self._parent is None:
                self._down()
                return
            self._state = "parent"
            self._send(self._parent)
            self._receive(self._parent)
        elif self._state == "down":
            self._down()

    def _down(self) -> None:
        for child in self._children:
            self._send(child)
        self.chunk.ended()


def find_tree_neighbours(index: int, members: int, last_root: bool) -> tuple[int | None, list[int]]:
    """Returns (parent or None, children) of a member in the in-order tree of 2^k members with a root above
    it.

    The root is the last member, whose subtree holds the others in order, or the first one.
    """
    root = members - 1 if last_root else 0
    shift = 0 if last_root else 1
    half = members // 2
    top = half - 1 + shift  # the root of the subtree of members - 1
    if index == root:
        return None, [top] if members > 1 else []
    in_order_index = index - shift  # in order, from 0, in a full tree of members - 1
    level = ((in_order_index + 1) & -(in_order_index + 1)).bit_length() - 1
    step = 1 << level
    children = [] if level == 0 else [index - step // 2, index + step // 2]
    if index == top:
        return root, children
    at = in_order_index + 1
    parent = at + step if at >> (level + 1) & 1 == 0 else at - step
    return parent - 1 + shift, children
