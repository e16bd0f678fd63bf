"""Which send belongs to which receive, and which calls of a collective are one collective.

Calls are matched by the group that a rank is in, then by group kind, operation, micro-batch and description,
then by order (FORMATS 4 has no number of a communication). Calls whose partner ranks are missing have no
match; they keep their measured time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from simcore.measured.columns import FUSED, MEASURED, TOLERANCE_NS, RankTrace
from simcore.measured.rank_positions import (
    MODEL_PARALLEL,
    Degrees,
    GroupKey,
    RankPosition,
    RankPositions,
    find_positions,
)
from simcore.measured.vocabulary import COMPUTE, LAUNCH, POINT_TO_POINT
from simcore.records import NamedTuple, Struct

_SEND_STEPS = {"send_forward": 1, "send_backward": -1}
_RECEIVE_STEPS = {"recv_forward": -1, "recv_backward": 1}
OPTIMIZER = "optimizer_step"


class Call(NamedTuple):
    """The part of one rank in a communication. rank: index among the ranks. sub: -1 for the operation
    itself.
    """

    rank: int
    op: int
    sub: int = -1


class Message(NamedTuple):
    """A pipeline transfer."""

    send: Call
    receive: Call


class CollectiveMatch(Struct, frozen=True):
    """A collective with all its members."""

    kind: str
    """The trace's group kind, or MODEL_PARALLEL."""
    group: GroupKey
    """Its group, the same for all collectives of these ranks."""
    calls: tuple[Call, ...]
    is_async: bool
    """Whether compute goes on meanwhile."""
    is_message: bool = False
    """Whether it is a send and its receive, or two ranks that send to each other, as kernels of devices. A
    send that waits for nobody is a match by itself.
    """
    sender: Call | None = None
    """That send, in the match of its receive, which begins no earlier than the send."""


class Matches(Struct, frozen=True):
    """The matched communication of a run, in the order of ranks and files."""

    messages: tuple[Message, ...]
    """Pipeline transfers."""
    meetings: tuple[CollectiveMatch, ...]
    """Collectives, and transfers between devices."""
    alone: frozenset[Call]
    """Calls that wait for nobody: in groups of one rank, and sends of devices that do not wait for their
    receives.
    """
    unmatched: tuple[Call, ...]
    """Calls without a partner."""
    positions: RankPositions
    """Of the ranks."""


def times_of(rank: RankTrace, call: Call) -> tuple[int, int]:
    """Returns (start, end) of a call on the rank's clock, ns."""
    columns = rank.ops if call.sub < 0 else rank.subs
    index = call.op if call.sub < 0 else call.sub
    return columns.start[index], columns.end[index]


def name_of(rank: RankTrace, call: Call) -> str:
    """Returns the operation of a call, or its sub-operation, as the file writes it."""
    return rank.ops.name[call.op] if call.sub < 0 else rank.subs.name[call.sub]


def is_asynchronous(rank: RankTrace, sub: int) -> bool:
    """Returns whether a sub-operation overlaps compute, from its launch to the wait for it."""
    return any((word or "").endswith("_async") for word in (rank.subs.name[sub], rank.subs.source[sub]))


def match_calls(ranks: Sequence[RankTrace], degrees: Degrees, on_one_clock: bool) -> Matches:
    """Returns the matched calls. on_one_clock: calls that ended before the partner came are no match."""
    return _Matching(ranks, find_positions(ranks, degrees), on_one_clock).matches()


class _Matching:
    def __init__(self, ranks: Sequence[RankTrace], positions: RankPositions, on_one_clock: bool) -> None:
        self.ranks = ranks
        self.positions = positions
        self.on_one_clock = on_one_clock
        self.alone: set[Call] = set()
        self.unmatched: list[Call] = []
        # Key -> (group, number of members or None, calls); all in the order of ranks and files.
        self.collectives: dict[tuple[object, ...], tuple[str, GroupKey, int | None, list[Call]]] = {}
        self.sends: dict[tuple[object, ...], Call] = {}
        self.receives: dict[tuple[object, ...], Call] = {}

    def matches(self) -> Matches:
        for rank_index, (rank, position) in enumerate(zip(self.ranks, self.positions.positions, strict=True)):
            self._rank(rank_index, rank, position)
        messages = self._messages()
        meetings = self._meetings()
        return Matches(
            tuple(messages), tuple(meetings), frozenset(self.alone), tuple(self.unmatched), self.positions
        )

    # -- the calls of a rank ---------------------------------------------------------

    def _rank(self, rank_index: int, rank: RankTrace, position: RankPosition | None) -> None:
        counts: Counter[tuple[object, ...]] = Counter()

        def nth(*key: object) -> tuple[object, ...]:
            counts[key] += 1
            return (*key, counts[key])

        ops, subs = rank.ops, rank.subs
        for op, name in enumerate(ops.name):
            if ops.timing[op] not in (MEASURED, FUSED) or name == LAUNCH:
                continue
            call = Call(rank_index, op)
            if name in POINT_TO_POINT:
                self._transfer(call, name, position, ops.batch[op], nth)
            elif name == OPTIMIZER:
                # The trace has no call for it: it is assumed where all ranks have the operation.
                self._collective(call, MODEL_PARALLEL, position, nth, name)
            elif ops.category(op) not in (*COMPUTE, "host"):
                self._collective(
                    call, ops.group[op] or "", position, nth, name, ops.batch[op], ops.description[op]
                )
        for sub in range(len(subs)):
            group, parent = subs.group[sub], subs.parent[sub]
            outer = ops.category(parent)
            # The parts of a communication are no communication of their own.
            if group is not None and subs.timing[sub] == MEASURED and outer in (*COMPUTE, "host"):
                self._collective(
                    Call(rank_index, parent, sub), group, position, nth,
                    ops.name[parent], ops.batch[parent], subs.name[sub], subs.collective[sub],
                )  # fmt: skip

    def _transfer(
        self,
        call: Call,
        name: str,
        position: RankPosition | None,
        batch: int,
        nth: Callable[..., tuple[object, ...]],
    ) -> None:
        if position is None:
            self.unmatched.append(call)
            return
        me = (position.stage, position.seat)
        if name in _SEND_STEPS:
            step = _SEND_STEPS[name]
            self.sends[nth(step, me, self.positions.neighbour(position, step), batch)] = call
        else:
            step = -_RECEIVE_STEPS[name]
            self.receives[nth(step, self.positions.neighbour(position, -step), me, batch)] = call

    def _collective(
        self,
        call: Call,
        kind: str,
        position: RankPosition | None,
        nth: Callable[..., tuple[object, ...]],
        *key_parts: object,
    ) -> None:
        group = self.positions.group(kind, position) if position is not None else None
        if group is None:
            # An optimizer step computes: it is communication only where a rank is known to wait in it.
            if kind != MODEL_PARALLEL:
                self.unmatched.append(call)
            return
        key, members = group
        if members == 1:
            self.alone.add(call)
            return
        self.collectives.setdefault(nth(key, call.sub >= 0, *key_parts), (kind, key, members, []))[3].append(
            call
        )

    # -- which calls are matched -----------------------------------------------------

    def _messages(self) -> list[Message]:
        messages = []
        for key, send in self.sends.items():
            receive = self.receives.pop(key, None)
            if receive is None:
                self.unmatched.append(send)
            elif self.on_one_clock and self._end(receive) < self._start(send) - TOLERANCE_NS:
                self.unmatched += [send, receive]
            else:
                messages.append(Message(send, receive))
        self.unmatched += self.receives.values()
        return messages

    def _meetings(self) -> list[CollectiveMatch]:
        meetings = []
        for kind, group, members, calls in self.collectives.values():
            if members is None and len(calls) == 1 and self._spans_all_stages(calls[0]):
                self.alone.update(calls)
            elif self._is_whole(members, calls) and self._have_overlap(calls):
                launched = [
                    call.sub >= 0 and is_asynchronous(self.ranks[call.rank], call.sub) for call in calls
                ]
                meetings.append(CollectiveMatch(kind, group, tuple(calls), all(launched)))
            elif kind != MODEL_PARALLEL:
                self.unmatched += calls
        return meetings

    def _is_whole(self, members: int | None, calls: list[Call]) -> bool:
        if members is None:
            return len(calls) > 1 and self._spans_all_stages(calls[0])
        return len(calls) == members

    def _spans_all_stages(self, call: Call) -> bool:
        """Returns whether every stage of the call's pipeline is there: else a member may be missing."""
        mine = self.positions.positions[call.rank]
        seat = mine.seat if mine is not None else -1
        there = {
            position.stage
            for position in self.positions.positions
            if position is not None and position.seat == seat
        }
        return len(there) == self.positions.stages

    def _have_overlap(self, calls: list[Call]) -> bool:
        """Returns whether none ended before the last one came: the root of a broadcast may."""
        if not self.on_one_clock:
            return True
        return min(map(self._end, calls)) >= max(map(self._start, calls)) - TOLERANCE_NS

    def _start(self, call: Call) -> int:
        return times_of(self.ranks[call.rank], call)[0]

    def _end(self, call: Call) -> int:
        return times_of(self.ranks[call.rank], call)[1]
