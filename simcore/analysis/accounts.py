"""Accounts: every nanosecond of a compute stream, from 0 to step time, in exactly one.

While compute waits [a, b) for something that runs [s, e):
a..max(a, s) is `bubble` if it is a pipeline transfer, else `exposed` by the kind of the
collective that runs on that stream of this rank then, else `wait`; max(a, s)..b is
`exposed` by kind. A join is a wait for each of its ops in the order they were issued. In
dialect astra-sim-1 the wait goes on until the op is visible, a state change is `idle`, and what
runs then on any stream of the rank is exposed: all share the queues of the dimensions.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from itertools import compress, pairwise

from simcore.collectives import WITH_COPIES
from simcore.folding import RankClass
from simcore.program import Ops
from simcore.program.ops import (
    COMPUTE,
    FWD,
    IG,
    IS_COMMUNICATION,
    IS_STREAM,
    OPT,
    PHASES,
    RECOMPUTE,
    TO_NEXT,
    WG,
    CollectiveCost,
    InnerJoins,
    OpRun,
    Pause,
    Receive,
    TransferCost,
)
from simcore.records import NamedTuple, Struct
from simcore.run.accounts import Accounts, account_names
from simcore.timeline import Timeline
from simcore.units import differences, shifted

EXPOSED_KINDS = ("tp", "ep", "dp", "dp_ep", "all", "cp", "dp_shard", "dp_replicate", "offload", "pp")
NAMES = account_names(PHASES, EXPOSED_KINDS, ("wait", "bubble", "idle"), {
    "compute fwd": "forward", "compute ig": "backward", "compute wg": "backward",
    "compute recompute": "backward", "compute opt": "optimizer",
    "exposed dp_ep": "exposed expert dp", "exposed all": "exposed comm",
    "exposed cp": "exposed comm", "exposed dp_shard": "exposed dp", "exposed dp_replicate": "exposed dp",
    "exposed offload": "exposed comm",
})  # fmt: skip
ACCOUNTS, FIRST_EXPOSED, WAIT = NAMES.all, NAMES.first_exposed, NAMES.first_other
BUBBLE, IDLE = WAIT + 1, WAIT + 2
# A table for `translate`: 1 for exposed communication.
IS_EXPOSED = bytes(FIRST_EXPOSED <= account < WAIT for account in range(256))
# Their order in a bar: what forward work is done again stands beside the forward work.
IN_BARS = (FWD, RECOMPUTE, IG, WG, OPT, *range(FIRST_EXPOSED, len(ACCOUNTS)))
# Account of an exposed op by its stream, a table for `translate`, 0 of compute: both pipeline streams are pp.
_EXPOSED = bytes(
    FIRST_EXPOSED + min(account, TO_NEXT) - 1 if account != COMPUTE else 0 for account in range(256)
)
# All bits of compute.
_ALL_OF_COMPUTE = bytes(255 * (account == COMPUTE) for account in range(256))

IDLE_OP = -1


def received_op(message: int) -> int:
    """How the accounts write a transfer from another rank: message 0 is -2, message 1 is -3.

    It is its own inverse: `received_op(op)` of such an op is the message.
    """
    return -2 - message


def op_of(timeline: Timeline, number: int, op: int) -> tuple[int, int]:
    """(class, op) of an op of class `number` as the accounts write it: of a transfer from another rank its
    sender's.
    """
    return (number, op) if op >= 0 else timeline.received(number, received_op(op))


def row_of(timeline: Timeline, number: int, op: int) -> int:
    """The row of the file that an op of class `number` is of, as the accounts write it.

    A transfer is of the SENDRECV that its sender has in the file; -1 where the pipeline sends.
    """
    of, op = op_of(timeline, number, op)
    return timeline.stage_program(of).ops.row[op]


def op_kind(timeline: Timeline, number: int, op: int, with_group: bool = False) -> str:
    """`compute`, a collective's name, `transfer`, or `idle` for a state change.

    with_group: with the kind of its group before a collective's name.
    """
    if op == IDLE_OP:
        return "idle"
    cost = timeline.program.costs[timeline.stage_program(number).ops.cost[op]]
    if isinstance(cost, CollectiveCost):
        return f"{cost.group} {WITH_COPIES[cost.collective]}" if with_group else WITH_COPIES[cost.collective]
    return "transfer" if isinstance(cost, TransferCost) else "compute"


def own_account(ops: Ops, op: int) -> int:
    """The account of an op's own time, where nothing hides it."""
    return ops.phase[op] if ops.stream[op] == COMPUTE else _EXPOSED[ops.stream[op]]


def class_accounts(timeline: Timeline, number: int) -> Accounts:
    """The accounts of rank class `number`."""
    return _AccountWalk(timeline, number).accounts


# Fewer ops than this are booked one by one in less time.
_STRETCH = 8
_NO_TIME = bytes(8)


class _Booked(NamedTuple):
    """What was booked of a run: its segments, edges from its begin on and ops from its first on, their sums
    by account, and when it was over.
    """

    edge: array[int]
    account: bytes
    op: array[int]
    sums: list[tuple[int, int]]
    over: int


class _AccountWalk:
    """Walks one class's program beside its times and books every nanosecond."""

    def __init__(self, timeline: Timeline, number: int) -> None:
        self.timeline = timeline
        self.number = number
        self.ops, self.start, self.end = timeline.columns(number)
        self.accounts = Accounts(NAMES)
        # By op: the account of its own time, and 0 where compute goes on beside it. All of a column is one
        # number here: an op is of its phase, or of its stream.
        count, is_compute = len(self.ops), self.ops.stream.translate(_ALL_OF_COMPUTE)
        compute, phase, exposed, blocking = (
            int.from_bytes(column, "little")
            for column in (is_compute, self.ops.phase, self.ops.stream.translate(_EXPOSED), self.ops.blocking)
        )
        self._account = (compute & phase | exposed).to_bytes(count, "little")
        self._holds = (compute | blocking).to_bytes(count, "little")
        self._lengths = differences(self.end, self.start).tobytes()
        # By what stretches are, (their accounts, their lengths): micro-batches repeat each other.
        self._sums: dict[tuple[bytes, bytes], list[tuple[int, int]]] = {}
        # What was booked of runs that wait inside, by all that says it: they repeat each other, too.
        self._joined: dict[object, _Booked] = {}
        self._lanes: dict[int, array[int]] = {}
        # In queues: the collectives that were issued and may run still, and how many were ever looked at.
        self._running: list[int] = []
        self._seen = 0
        self._walk()

    def _walk(self) -> None:
        now = 0
        for run in self.timeline.stage_program(self.number).packed:
            for wait in run.waits:
                if isinstance(wait, Receive):
                    now = self._receive(now, wait.message)
                elif isinstance(wait, Pause):
                    self.accounts.book(now, now + wait.ns, IDLE, IDLE_OP)
                    now += wait.ns
                elif self.end[wait.op] + wait.after > now:
                    now = self._wait_for(now, wait.op, run.first, wait.after)
            if run.inner is None:
                now = self._book_run(now, run.first, run.last)
            else:
                now = self._book_joined(now, run, run.inner)
        step_time = self.timeline.step_time_ns
        edge = self.accounts.edge
        if now < step_time or not edge:
            self.accounts.book(now, step_time, IDLE, IDLE_OP)
        edge.append(step_time)

    def _book_run(self, now: int, first: int, last: int) -> int:
        """Book ops first..last-1 that are issued one after another; gives when compute is done with them."""
        while first < last:
            beside = self._holds.find(0, first, last)
            end = last if beside < 0 else beside
            if end - first >= _STRETCH and self._book_stretch(now, first, end):
                now = self.end[end - 1]
            else:
                now = self._book_each(now, first, end)
            first = end + 1
        return now

    def _book_joined(self, now: int, run: OpRun, inner: InnerJoins) -> int:
        """Book the ops of a run that waits inside."""
        ops = slice(run.first, run.last)
        key = None
        before = [self.ops.stream.rfind(lane, 0, run.first + first) for lane, first, _ in inner.ends]
        if all(op < 0 or self.end[op] <= now for op in before):
            # Nothing of before runs on: all goes by its own times.
            lengths = self._lengths[8 * run.first : 8 * run.last]
            key = inner, self._account[ops], shifted(self.start[ops], -now).tobytes(), lengths
        accounts = self.accounts
        booked = self._joined.get(key)
        if booked is not None:
            accounts.edge += shifted(booked.edge, now)
            accounts.account += booked.account
            accounts.op += shifted(booked.op, run.first)
            for kind, ns in booked.sums:
                accounts.total_ns[kind] += ns
            return now + booked.over
        first, begun = len(accounts.edge), now
        issued, sums = run.first, [*accounts.total_ns]
        for place, op in inner.pairs:
            now = self._book_run(now, issued, run.first + place)
            issued = run.first + place
            if self.end[run.first + op] > now:
                now = self._wait_for(now, run.first + op, issued)
        now = self._book_run(now, issued, run.last)
        if key is not None:
            more = [after - ns for ns, after in zip(sums, accounts.total_ns, strict=True)]
            self._joined[key] = _Booked(
                shifted(accounts.edge[first:], -begun),
                bytes(accounts.account[first:]),
                shifted(accounts.op[first:], -run.first),
                [(kind, ns) for kind, ns in enumerate(more) if ns],
                now - begun,
            )
        return now

    def _book_stretch(self, now: int, first: int, last: int) -> bool:
        """Book ops first..last-1, which hold compute, at once; False where they do not follow one another
        from now on, or one takes no time.
        """
        start, end = self.start, self.end
        if start[first] != now or start[first + 1 : last] != end[first : last - 1]:
            return False
        lengths = self._lengths[8 * first : 8 * last]
        # These may be of two neighbours: then it is only slower.
        if _NO_TIME in lengths:
            return False
        kinds = self._account[first:last]
        sums = self._sums.get((kinds, lengths))
        if sums is None:
            by_account = dict.fromkeys(kinds, 0)
            for kind, ns in zip(kinds, array("q", lengths), strict=True):
                by_account[kind] += ns
            sums = self._sums[kinds, lengths] = [*by_account.items()]
        accounts = self.accounts
        accounts.edge.extend(start[first:last])
        accounts.account += kinds
        accounts.op.extend(range(first, last))
        for kind, ns in sums:
            accounts.total_ns[kind] += ns
        return True

    def _book_each(self, now: int, first: int, last: int) -> int:
        """Book ops first..last-1, which hold compute, one by one; gives when the last is over."""
        stream, start, end, kinds = self.ops.stream, self.start, self.end, self._account
        accounts = self.accounts
        edge, account, op_column, total = accounts.edge, accounts.account, accounts.op, accounts.total_ns
        for op in range(first, last):
            if stream[op] != COMPUTE and start[op] != now:
                now = self._wait_for(now, op, op)
            elif (over := end[op]) > now:
                kind = kinds[op]
                edge.append(now)
                account.append(kind)
                op_column.append(op)
                total[kind] += over - now
                now = over
        return now

    def _receive(self, now: int, message: int) -> int:
        """Book the wait for a pipeline transfer: bubble until it starts, then exposed pp."""
        begin, over = self.timeline.received_times(self.number, message)
        for account, until in ((BUBBLE, begin), (_EXPOSED[TO_NEXT], over)):
            if until > now:
                self.accounts.book(now, until, account, received_op(message))
                now = until
        return now

    def _wait_for(self, now: int, op: int, issued: int, after: int = 0) -> int:
        """Book the wait for an op of this rank that is visible after `now`: `after` ns after its end.

        issued: the ops before it are issued by now.
        """
        lane = self.ops.stream[op]
        begin, over = self.start[op], self.end[op] + after
        # A join waits for its transfers in the order of their channel: the one before has ended.
        if begin > now and lane < TO_NEXT:
            if self.timeline.program.queued:
                now = self._until_served(now, begin, op, issued)
            else:
                now = self._until_start(now, begin, lane, op)
        if over > now:
            self.accounts.book(now, over, _EXPOSED[lane], op)
        return over

    def _on(self, streams: bytes) -> array[int]:
        """The ops on streams, ascending. streams: a table for `translate`, 1 for these."""
        return array("i", compress(range(len(self.ops)), self.ops.stream.translate(streams)))

    def _until_start(self, now: int, begin: int, lane: int, op: int) -> int:
        """now..begin: exposed where an earlier collective of this stream runs, else wait."""
        if lane not in self._lanes:
            self._lanes[lane] = self._on(IS_STREAM[lane])
        earlier = self._lanes[lane]
        # What was issued behind `op` cannot run before that has ended.
        behind = at = bisect_left(earlier, op)
        while at and self.end[earlier[at - 1]] > now:
            at -= 1
        for other in earlier[at:behind]:
            first, last = self.start[other], min(self.end[other], begin)
            if first > now:
                self.accounts.book(now, min(first, begin), WAIT, op)
                now = min(first, begin)
            if last > now:
                self.accounts.book(now, last, _EXPOSED[lane], other)
                now = last
        if begin > now:
            self.accounts.book(now, begin, WAIT, op)
        return begin

    def _until_served(self, now: int, begin: int, op: int, issued: int) -> int:
        """now..begin in the queues: exposed where collectives run, by the first issued, else wait."""
        if COMPUTE not in self._lanes:
            # All that is no compute.
            self._lanes[COMPUTE] = self._on(IS_COMMUNICATION)
        every = self._lanes[COMPUTE]
        until = bisect_left(every, issued)
        # What has ended is never looked at again.
        self._running = [
            other for other in (*self._running, *every[self._seen : until]) if self.end[other] > now
        ]
        self._seen = until
        running = [other for other in self._running if self.start[other] < begin]
        edges = {now, begin}
        edges.update(time for other in running for time in (self.start[other], self.end[other]))
        inside = sorted(edge for edge in edges if now <= edge <= begin)
        for first, last in pairwise(inside):
            here = [other for other in running if self.start[other] <= first and self.end[other] >= last]
            if here:
                self.accounts.book(first, last, _EXPOSED[self.ops.stream[min(here)]], min(here))
            else:
                self.accounts.book(first, last, WAIT, op)
        return begin


class StageAccounts(Struct, frozen=True):
    """One pipeline stage. ranks: how many it has. sum_ns: ns by account (index into ACCOUNTS), of all its
    ranks together.
    """

    stage: int
    ranks: int
    sum_ns: tuple[int, ...]


def stage_accounts(classes: tuple[RankClass, ...], accounts: list[Accounts]) -> list[StageAccounts]:
    """The stages of a run, ascending. accounts: of every rank class, by its number."""
    members: dict[int, list[tuple[int, Accounts]]] = {}
    for rank_class, class_accounts in zip(classes, accounts, strict=True):
        members.setdefault(rank_class.stage, []).append((len(rank_class.ranks), class_accounts))
    stages = []
    for stage, pairs in sorted(members.items()):
        sums = [0] * len(ACCOUNTS)
        for count, class_accounts in pairs:
            for account, ns in enumerate(class_accounts.total_ns):
                sums[account] += count * ns
        stages.append(StageAccounts(stage, sum(count for count, _ in pairs), tuple(sums)))
    return stages
