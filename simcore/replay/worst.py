"""The worst places of a measured run, each with its figure and where it is: one rule a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from simcore.kernel_names import short_name
from simcore.measured.vocabulary import said_op
from simcore.ranks import RankSet
from simcore.replay.piece_names import piece_name
from simcore.replay.stragglers import stragglers
from simcore.sources.measured import (
    BUBBLE,
    FIRST_EXPOSED,
    IDLE,
    WAIT,
)
from simcore.trace.findings import Place
from simcore.trace.waits import longest
from simcore.units import duration, percent

if TYPE_CHECKING:
    from simcore.replay.timed import Timed

# What a rank does where it has no operation: `host gap` is said of such time between two operations alone.
_NAME = 32


def worst_places(results: Timed) -> list[Place]:
    """Who comes late and who ends last; the longest wait, bubble, operation, communication and idle time; as
    far as there are, in this order.
    """
    if not results.step_time_ns:
        return []
    return [place for rule in _RULES if (place := rule(results)) is not None]


def longest_wait(results: Timed, early: int, name: str) -> tuple[int, int] | None:
    """(start, end) of the longest time that a rank (its index) waits in an operation of this name."""
    accounts = results.accounts[early]
    waits = [
        (accounts.edge[index] - accounts.edge[index + 1], accounts.edge[index], accounts.edge[index + 1])
        for index, account in enumerate(accounts.account)
        if account in (WAIT, BUBBLE) and piece_name(results, early, accounts.op[index]) == name
    ]
    return min(waits)[1:] if waits else None


def _number(results: Timed, rank: int) -> int:
    return results.measured.ranks[rank].number


def _took(results: Timed, ns: int) -> str:
    """`3.077 s (79.8 %)`: what takes `ns`, with its share of the step."""
    return f"{duration(ns)} ({percent(ns, results.step_time_ns)} %)"


def _end(results: Timed) -> Place | None:
    """The rank that ends last."""
    ends = results.figures.ends
    number = ends.index(max(ends))
    ops = results.run.ranks[number].ops
    last = max(ops.end)
    start = max(start for start, end in zip(ops.start, ops.end, strict=True) if end == last)
    end_ns = ends[number]
    # By their numbers: a trace need not have all ranks.
    latest = RankSet.of(_number(results, rank) for rank, ns in enumerate(ends) if ns == end_ns)
    words = f"{duration(end_ns)}, last to end: {latest.of_world(0)}"
    return Place("end", words, number, start, ends[number], ends[number])


def _late(results: Timed) -> Place | None:
    """The rank that comes last to most collectives."""
    late = next(iter(stragglers(results)), None)
    if late is None:
        return None
    number = next(at for at, rank in enumerate(results.measured.ranks) if rank.number == late.rank)
    words = f"rank {late.rank} last to {late.last} of {late.of} collectives"
    return Place("late", words, number, 0, results.step_time_ns, late.most_ns)


def _wait(results: Timed) -> Place | None:
    """The longest wait at a stretch for another rank in a collective."""
    return _waiting(results, WAIT, "wait")


def _bubble(results: Timed) -> Place | None:
    """The longest bubble at a stretch."""
    return _waiting(results, BUBBLE, "bubble")


def _waiting(results: Timed, account: int, what: str) -> Place | None:
    stretch = longest(results.accounts, (account,))
    if stretch is None:
        return None
    number, start, end, piece = stretch
    name = said_op(piece_name(results, number, piece), _NAME)
    words = f"{_took(results, end - start)} at a stretch: rank {_number(results, number)} in {name}"
    return Place(what, words, number, start, end, end - start)


def _op(results: Timed) -> Place | None:
    """The operation that computes longest, communication and waiting left out; the first of equal ones."""
    computing: dict[tuple[int, int], int] = {}
    for number, accounts in enumerate(results.accounts):
        pieces = results.ties.pieces[number]
        for index, account in enumerate(accounts.account):
            piece = accounts.op[index]
            if account < FIRST_EXPOSED and 0 <= piece < len(pieces):
                key = number, pieces.op[piece]
                computing[key] = computing.get(key, 0) + accounts.edge[index + 1] - accounts.edge[index]
    if not computing:
        return None
    number, op = max(computing, key=lambda key: computing[key])
    ns, ops = computing[number, op], results.run.ranks[number].ops
    words = f"{_took(results, ns)} of rank {_number(results, number)}: {short_name(ops.name[op], _NAME)}"
    return Place("op", words, number, ops.start[op], ops.end[op], ns)


def _exposed(results: Timed) -> Place | None:
    """The longest communication at a stretch."""
    stretch = longest(results.accounts, range(FIRST_EXPOSED, WAIT))
    return None if stretch is None else _place(results, "exposed", *stretch)


def _gap(results: Timed) -> Place | None:
    """The longest time that a rank is idle: a host gap, or before its first operation or behind its last.

    Stretches that touch are one, as on the timeline: a step may begin within such a time.
    """
    stretch: tuple[int, int, int] | None = None
    for rank, accounts in enumerate(results.accounts):
        start: int | None = None
        for index, account in enumerate(accounts.account):
            if account != IDLE:
                start = None
                continue
            start, end = accounts.edge[index] if start is None else start, accounts.edge[index + 1]
            if stretch is None or end - start > stretch[2] - stretch[1]:
                stretch = rank, start, end
    if stretch is None:
        return None
    number, start, end = stretch
    took = f"{_took(results, end - start)} at a stretch from {duration(start)} on"
    return Place("idle", f"{took}: rank {_number(results, number)}", number, start, end, end - start)


def _place(results: Timed, what: str, number: int, start: int, end: int, piece: int) -> Place:
    name = said_op(piece_name(results, number, piece), _NAME)
    words = f"{_took(results, end - start)} of rank {_number(results, number)}: {name}"
    return Place(what, words, number, start, end, end - start)


_RULES: tuple[Callable[[Timed], Place | None], ...] = (_late, _end, _wait, _bubble, _op, _exposed, _gap)
