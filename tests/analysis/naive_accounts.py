"""Accounts booked instant by instant, from the rule as it is written and nothing else.

While compute waits [a, b) for something that runs [s, e): before s it is bubble for a pipeline
transfer, else exposed by the kind of the stream if a collective of this rank runs on that stream
at that instant, else wait; from s on it is exposed by kind.
"""

from __future__ import annotations

from itertools import pairwise

from simcore.engine.timeline import Timeline
from simcore.program.ops import COMPUTE, PHASES, STREAMS, TO_NEXT, Receive
from simcore.sources.simulated import ACCOUNTS

Booked = list[tuple[int, int, str]]


def naive_accounts(timeline: Timeline, number: int) -> Booked:
    """(begin, end, account) of one class from 0 to step time; neighbours of one account merged."""
    ops, start, end = timeline.columns(number)
    booked: Booked = []
    now = 0
    for run in timeline.stage_program(number).runs:
        for wait in run.waits:
            if isinstance(wait, Receive):
                begin, over = timeline.transfer_times(number, wait.message)
                booked += _waiting(timeline, number, now, begin, over, TO_NEXT)
            else:
                begin, over = start[wait.op], end[wait.op]
                booked += _waiting(timeline, number, now, begin, over, ops.stream[wait.op])
            now = max(now, over)
        for op in range(run.first, run.last):
            if ops.stream[op] == COMPUTE:
                booked.append((start[op], end[op], f"compute {PHASES[ops.phase[op]]}"))
                now = end[op]
            elif ops.blocking[op]:
                booked += _waiting(timeline, number, now, start[op], end[op], ops.stream[op])
                now = end[op]
    booked.append((now, timeline.step_time_ns, "idle"))
    return merged(booked)


def merged(booked: Booked) -> Booked:
    """Without empty stretches, and with neighbours of one account made one."""
    found: Booked = []
    for begin, over, account in booked:
        if begin == over:
            continue
        if found and found[-1][1:] == (begin, account):
            found[-1] = (found[-1][0], over, account)
        else:
            found.append((begin, over, account))
    return found


def total_ns(booked: Booked) -> dict[str, int]:
    """ns by account."""
    totals = dict.fromkeys(ACCOUNTS, 0)
    for begin, over, account in booked:
        totals[account] += over - begin
    return totals


def _waiting(timeline: Timeline, number: int, now: int, begin: int, over: int, lane: int) -> Booked:
    """Each stretch of now..over in which nothing begins or ends, with its account."""
    ops, start, end = timeline.columns(number)
    others = [(start[op], end[op]) for op in range(len(ops)) if ops.stream[op] == lane]
    edges = {edge for pair in others for edge in pair} | {now, begin, over}
    inside = sorted(edge for edge in edges if now <= edge <= over)
    kind = "pp" if lane >= TO_NEXT else STREAMS[lane]
    booked = []
    for first, last in pairwise(inside):
        if first >= begin:
            account = f"exposed {kind}"
        elif lane >= TO_NEXT:
            account = "bubble"
        else:
            runs = any(starts <= first < ends for starts, ends in others)
            account = f"exposed {kind}" if runs else "wait"
        booked.append((first, last, account))
    return booked
