"""Accounts: every nanosecond of a compute stream, from 0 to step time, in exactly one.

While compute waits [a, b) for something that runs [s, e):
a..max(a, s) is `bubble` if it is a pipeline transfer, else `exposed` by the kind of the
collective that runs on that stream of this rank then, else `wait`; max(a, s)..b is
`exposed` by kind. A join is a wait for each of its ops in the order they were issued. In
dialect astra-sim-1 the wait goes on until the op is visible, a state change is `idle`, and what
runs then on any stream of the rank is exposed: all share the queues of the dimensions.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from simcore.folding import RankClass
from simcore.program.ops import (
    COMPUTE,
    FWD,
    IG,
    OPT,
    PHASES,
    RECOMPUTE,
    STREAMS,
    TO_NEXT,
    WG,
    Pause,
    Receive,
)
from simcore.records import Struct
from simcore.run.accounts import Accounts, account_names
from simcore.timeline import Timeline

EXPOSED_KINDS = ("tp", "ep", "dp", "dp_ep", "all", "cp", "dp_shard", "dp_replicate", "offload", "pp")
NAMES = account_names(PHASES, EXPOSED_KINDS, ("wait", "bubble", "idle"), {
    "compute fwd": "forward", "compute ig": "backward", "compute wg": "backward",
    "compute recompute": "backward", "compute opt": "optimizer",
    "exposed dp_ep": "exposed expert dp", "exposed all": "exposed other",
    "exposed cp": "exposed other", "exposed dp_shard": "exposed dp", "exposed dp_replicate": "exposed dp",
    "exposed offload": "exposed other",
})  # fmt: skip
ACCOUNTS, FIRST_EXPOSED, WAIT = NAMES.all, NAMES.first_exposed, NAMES.first_other
BUBBLE, IDLE = WAIT + 1, WAIT + 2
# Their order in a bar: what forward work is done again stands beside the forward work.
IN_BARS = (FWD, RECOMPUTE, IG, WG, OPT, *range(FIRST_EXPOSED, len(ACCOUNTS)))
# Account of an exposed op by its stream: both pipeline streams are pp.
_EXPOSED = tuple(FIRST_EXPOSED + min(stream, TO_NEXT) - 1 for stream in range(len(STREAMS)))


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


def class_accounts(timeline: Timeline, number: int) -> Accounts:
    """The accounts of rank class `number`."""
    return _AccountWalk(timeline, number).accounts


class _AccountWalk:
    """Walks one class's program beside its times and books every nanosecond."""

    def __init__(self, timeline: Timeline, number: int) -> None:
        self.timeline = timeline
        self.number = number
        self.ops, self.start, self.end = timeline.columns(number)
        self.accounts = Accounts(NAMES)
        self.earlier: list[list[int]] = [[] for _ in STREAMS]
        self._walk()

    def _walk(self) -> None:
        stage_program = self.timeline.stage_program(self.number)
        stream, phase, blocking = self.ops.stream, self.ops.phase, self.ops.blocking
        start, end = self.start, self.end
        accounts = self.accounts
        edge, account, op_column = accounts.edge, accounts.account, accounts.op
        total = accounts.total_ns
        now = 0
        for run in stage_program.runs:
            for wait in run.waits:
                if isinstance(wait, Receive):
                    now = self._receive(now, wait.message)
                elif isinstance(wait, Pause):
                    self.accounts.book(now, now + wait.ns, IDLE, IDLE_OP)
                    now += wait.ns
                elif end[wait.op] + wait.after > now:
                    now = self._wait_for(now, wait.op, wait.after)
            for op in range(run.first, run.last):
                lane = stream[op]
                if lane == COMPUTE:
                    over = end[op]
                    if over > now:
                        edge.append(now)
                        account.append(phase[op])
                        op_column.append(op)
                        total[phase[op]] += over - now
                        now = over
                elif blocking[op]:
                    if start[op] == now:
                        if (over := end[op]) > now:
                            kind = _EXPOSED[lane]
                            edge.append(now)
                            account.append(kind)
                            op_column.append(op)
                            total[kind] += over - now
                            now = over
                    else:
                        now = self._wait_for(now, op)
                    self.earlier[lane].append(op)
                else:
                    self.earlier[lane].append(op)
        step_time = self.timeline.step_time_ns
        if now < step_time or not edge:
            self.accounts.book(now, step_time, IDLE, IDLE_OP)
        edge.append(step_time)

    def _receive(self, now: int, message: int) -> int:
        """Book the wait for a pipeline transfer: bubble until it starts, then exposed pp."""
        begin, over = self.timeline.received_times(self.number, message)
        for account, until in ((BUBBLE, begin), (_EXPOSED[TO_NEXT], over)):
            if until > now:
                self.accounts.book(now, until, account, received_op(message))
                now = until
        return now

    def _wait_for(self, now: int, op: int, after: int = 0) -> int:
        """Book the wait for an op of this rank that is visible after `now`: `after` ns after its end."""
        lane = self.ops.stream[op]
        begin, over = self.start[op], self.end[op] + after
        # A join waits for its transfers in the order of their channel: the one before has ended.
        if begin > now and lane < TO_NEXT:
            if self.timeline.program.queued:
                now = self._until_served(now, begin, op)
            else:
                now = self._until_start(now, begin, lane, op)
        if over > now:
            self.accounts.book(now, over, _EXPOSED[lane], op)
        return over

    def _until_start(self, now: int, begin: int, lane: int, op: int) -> int:
        """now..begin: exposed where an earlier collective of this stream runs, else wait."""
        running = []
        for other in reversed(self.earlier[lane]):
            if other >= op:
                # Issued behind `op`: it cannot run before `op` has ended.
                continue
            if self.end[other] <= now:
                break
            running.append(other)
        for other in reversed(running):
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

    def _until_served(self, now: int, begin: int, op: int) -> int:
        """now..begin in the queues: exposed where collectives run, by the first issued, else wait."""
        running = []
        for lane, earlier in enumerate(self.earlier):
            # What has ended is never looked at again.
            self.earlier[lane] = [other for other in earlier if self.end[other] > now]
            running += [other for other in self.earlier[lane] if self.start[other] < begin]
        edges = {now, begin}
        edges.update(time for other in running for time in (self.start[other], self.end[other]))
        inside = sorted(edge for edge in edges if now <= edge <= begin)
        for first, last in itertools.pairwise(inside):
            here = [other for other in running if self.start[other] <= first and self.end[other] >= last]
            if here:
                self.accounts.book(first, last, _EXPOSED[self.ops.stream[min(here)]], min(here))
            else:
                self.accounts.book(first, last, WAIT, op)
        return begin


class StageAccounts(Struct, frozen=True):
    """One pipeline stage. classes: numbers of its rank classes. ranks: how many ranks it has.

    first_rank, last_rank: the lowest and the highest of them. sum_ns: ns by account (index
    into ACCOUNTS), of all its ranks together.
    """

    stage: int
    classes: tuple[int, ...]
    ranks: int
    first_rank: int
    last_rank: int
    sum_ns: tuple[int, ...]

    def parts_ns(self) -> dict[str, int]:
        """Compute, exposed, wait, bubble, idle of all its ranks together, ns. They sum to a step each."""
        ends = (
            ("compute", 0, FIRST_EXPOSED), ("exposed", FIRST_EXPOSED, WAIT), ("wait", WAIT, BUBBLE),
            ("bubble", BUBBLE, IDLE), ("idle", IDLE, len(ACCOUNTS)),
        )  # fmt: skip
        return {name: sum(self.sum_ns[first:last]) for name, first, last in ends}


def joined(stages: Sequence[StageAccounts]) -> StageAccounts:
    """Neighbouring stages as one, with the number of the first."""
    first, last = stages[0], stages[-1]
    classes = tuple(number for one in stages for number in one.classes)
    sums = tuple(map(sum, zip(*(one.sum_ns for one in stages), strict=True)))
    ranks = sum(one.ranks for one in stages)
    return StageAccounts(first.stage, classes, ranks, first.first_rank, last.last_rank, sums)


def stage_accounts(classes: tuple[RankClass, ...], accounts: list[Accounts]) -> list[StageAccounts]:
    """The stages of a run, ascending. accounts: of every rank class, by its number."""
    members: dict[int, list[int]] = {}
    for number, rank_class in enumerate(classes):
        members.setdefault(rank_class.stage, []).append(number)
    found = []
    for stage, numbers in sorted(members.items()):
        sums = [0] * len(ACCOUNTS)
        for number in numbers:
            count = len(classes[number].ranks)
            for account, ns in enumerate(accounts[number].total_ns):
                sums[account] += count * ns
        sets = [classes[number].ranks for number in numbers]
        found.append(
            StageAccounts(
                stage,
                tuple(numbers),
                sum(map(len, sets)),
                min(ranks.first for ranks in sets),
                max(ranks.last for ranks in sets),
                tuple(sums),
            )
        )
    return found
