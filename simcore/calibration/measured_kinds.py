"""What a measured step says of each kind: how often it came, and how long it took without any waiting.

* Compute is what a rank's pieces are when nothing waits and nothing communicates (`replay.accounts`).
* A collective takes the time from its last arrival to its first departure. It is not known of one beside
  compute (it lasts until somebody waits for it), nor of a call whose partners are not in the trace.
* A transfer takes its send, as far as the receive was not over before. A send may wait for its receiver, so
  only those count whose receiver was there first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from simcore.calibration.kinds import measured_collective_kind, measured_transfer_kind
from simcore.measured.columns import MEASURED, PLACED
from simcore.measured.matching import Call, is_asynchronous
from simcore.measured.places import MODEL_PARALLEL
from simcore.measured.vocabulary import COMPUTE, LAUNCH, POINT_TO_POINT
from simcore.records import Struct, field
from simcore.replay.results import MeasuredResults
from simcore.run.pieces import GAP

# Why the time of a call is not known.
BESIDE = "beside compute"
NO_PARTNER = "without a partner in the trace"
NO_TIME = "without a time of their own"
SENT_FIRST = "sent before the receiver came"
APART = "of ranks that did not run together"


class _Calls(Struct):
    """Calls of one operation and shape. times_ns: of those whose time is known."""

    count: int = 0
    times_ns: list[int] = field(default_factory=list)


class MeasuredKind(Struct):
    """Calls of one kind of communication, of all ranks. unknown: how many have no known time, by why."""

    classes: dict[tuple[object, ...], _Calls] = field(default_factory=dict)
    unknown: Counter[str] = field(default_factory=Counter)

    @property
    def calls(self) -> int:
        """How many calls there are, a collective counting once for each of its ranks."""
        return sum(one.count for one in self.classes.values())

    @property
    def total_ns(self) -> int:
        """The median of each operation and shape, times its calls; those without any known time left out."""
        return sum(_median(one.times_ns) * one.count for one in self.classes.values() if one.times_ns)

    @property
    def is_whole(self) -> bool:
        """Whether there is a time for every operation and shape."""
        return bool(self.classes) and all(one.times_ns for one in self.classes.values())

    def add(self, key: tuple[object, ...], ns: int | None, why: str = "") -> None:
        """A call; ns: None where its time is not known, `why` says so."""
        one = self.classes.setdefault(key, _Calls())
        one.count += 1
        if ns is None:
            self.unknown[why] += 1
        else:
            one.times_ns.append(ns)


class MeasuredTimes(Struct, frozen=True):
    """compute_ns: of each rank (its index in the run) by kind. kinds: communication by kind. gaps_ns,
    host_ns: of all ranks, what no workload has: the host between operations, and its own operations.
    """

    compute_ns: list[dict[str, int]]
    kinds: dict[str, MeasuredKind]
    gaps_ns: int
    host_ns: int


def measured_times(results: MeasuredResults) -> MeasuredTimes:
    """Of a run with the times of its files."""
    compute = [accounts.compute_ns() for accounts in results.accounts]
    kinds: dict[str, MeasuredKind] = {}
    for kind, key, ns, why in (*_collectives(results), *_transfers(results), *_unmatched(results)):
        kinds.setdefault(kind, MeasuredKind()).add(key, ns, why)
    gaps = sum(
        pieces.end[piece] - pieces.start[piece]
        for pieces in results.ties.pieces
        for piece, of in enumerate(pieces.kind)
        # Before its first operation a rank has not begun.
        if of == GAP and piece
    )
    return MeasuredTimes(compute, kinds, gaps, sum(accounts.ns("host") for accounts in results.accounts))


# Kind, what calls have in common that should take as long, ns or None, and why it is None.
_Found = tuple[str, tuple[object, ...], "int | None", str]


def _collectives(results: MeasuredResults) -> Iterator[_Found]:
    ties, run = results.ties, results.measured
    for meeting, ns in zip(ties.matches.meetings, ties.meeting_ns, strict=True):
        if meeting.kind == MODEL_PARALLEL:
            continue
        beside = any(
            call.sub >= 0 and is_asynchronous(run.ranks[call.rank], call.sub) for call in meeting.calls
        )
        why = BESIDE if beside else "" if run.concurrent else APART
        for call in meeting.calls:
            yield *_named(results, call), None if why else ns, why


def _transfers(results: MeasuredResults) -> Iterator[_Found]:
    ties, run = results.ties, results.measured
    for message, (send, receive), ns in zip(
        ties.matches.messages, ties.transfers, ties.message_ns, strict=True
    ):
        (sender, sending), (receiver, receiving) = send, receive
        there = ties.pieces[receiver].start[receiving] <= ties.pieces[sender].start[sending]
        # A send and a receive in one waits for both.
        alone = ties.pieces[sender].received[sending] < 0
        why = "" if there and alone else SENT_FIRST
        ops = run.ranks[message.send.rank].ops
        name = ops.name[message.send.op]
        key = (name, ops.shape[message.send.op])
        why = why if run.concurrent else APART
        yield measured_transfer_kind(name), key, None if why else ns, why


def _unmatched(results: MeasuredResults) -> Iterator[_Found]:
    """Calls without partners, and those without a duration, which nothing could be matched with."""
    run = results.measured
    for call in results.ties.matches.unmatched:
        name = run.ranks[call.rank].ops.name[call.op]
        if name not in POINT_TO_POINT:
            yield *_named(results, call), None, NO_PARTNER
        elif name.startswith("send"):
            shape = run.ranks[call.rank].ops.shape[call.op]
            yield measured_transfer_kind(name), (name, shape), None, NO_PARTNER
    for number, rank in enumerate(run.ranks):
        ops, subs = rank.ops, rank.subs
        for op, name in enumerate(ops.name):
            is_call = ops.category(op) not in (*COMPUTE, "host", "pp")
            # Profiles of one device have calls without a time: nobody communicated.
            if is_call and ops.known[op] != PLACED and (ops.known[op] != MEASURED or name == LAUNCH):
                yield *_named(results, Call(number, op)), None, NO_TIME
        for sub, known in enumerate(subs.known):
            if known != MEASURED and subs.group[sub] is not None:
                call = Call(number, subs.parent[sub], sub)
                yield *_named(results, call), None, NO_TIME


def _named(results: MeasuredResults, call: Call) -> tuple[str, tuple[object, ...]]:
    """(kind, what calls have in common that should take the same time) of a collective's call."""
    ops, subs = results.measured.ranks[call.rank].ops, results.measured.ranks[call.rank].subs
    name, group = ops.name[call.op], ops.group[call.op]
    if call.sub < 0:
        return measured_collective_kind(group, name, group, False), (name, ops.shape[call.op])
    kind = measured_collective_kind(subs.group[call.sub], name, group, True)
    return kind, (name, subs.name[call.sub], subs.shape[call.sub], subs.collective[call.sub])


def _median(times: list[int]) -> int:
    """The middle one; of an even number the mean of the middle two, floored."""
    ordered = sorted(times)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) // 2
