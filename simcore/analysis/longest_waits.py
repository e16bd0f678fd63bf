"""Where a rank does not compute and nothing is sent for it: its waits, bubbles and idle times."""

from __future__ import annotations

from itertools import compress, count
from operator import itemgetter

from simcore.analysis.accounts import ACCOUNTS, BUBBLE, IDLE, WAIT, Accounts
from simcore.program.ops import COMPUTE, KIND_OF_STREAM, TO_NEXT
from simcore.timeline import Timeline

_WAITS = bytes(account in (WAIT, BUBBLE, IDLE) for account in range(len(ACCOUNTS))).ljust(256, b"\0")


def longest_waits(accounts: Accounts) -> list[int]:
    """The segments that are `wait`, `bubble` or `idle`: waits and bubbles before idle ones.

    Of each the longest first; of equal ones the earliest. Idle is who has done all its work.
    """
    edge, account = accounts.edge, accounts.account
    found = list(compress(count(), account.translate(_WAITS)))
    ranks = {segment: (account[segment] == IDLE, edge[segment] - edge[segment + 1]) for segment in found}
    return sorted(found, key=ranks.__getitem__)


def waited_for(timeline: Timeline, accounts: list[Accounts], number: int, segment: int) -> list[int]:
    """The classes that a `wait` of class `number` is for: the members of its collective that come last.

    Those are the member classes that do not wait for the same collective themselves just before it
    starts. Empty where all of them do (an earlier collective holds the stream), and for other accounts.
    """
    one = accounts[number]
    op = one.op[segment]
    ops, start, _ = timeline.columns(number)
    if one.account[segment] != WAIT or not COMPUTE < ops.stream[op] < TO_NEXT:
        return []
    group_class = timeline.classes[number].groups[KIND_OF_STREAM[ops.stream[op]]]
    late = []
    stage = timeline.classes[number].stage
    for member in timeline.folding.group_classes[group_class].members:
        theirs = accounts[member]
        if member == number or timeline.classes[member].stage != stage:
            # Ops of another stage have other numbers.
            continue
        before = theirs.at(start[op] - 1)
        if theirs.account[before] != WAIT or theirs.op[before] != op:
            late.append(member)
    return late


def longest_of_all(accounts: list[Accounts]) -> list[tuple[int, int]]:
    """(class, segment) of the waits of all classes, in the order of `longest_waits`; of equal ones the
    first class's.
    """
    found: list[tuple[bool, int, int, int]] = []
    for number, one in enumerate(accounts):
        edge, account = one.edge, one.account
        segments = compress(count(), account.translate(_WAITS))
        found += [
            (account[segment] == IDLE, edge[segment] - edge[segment + 1], number, segment)
            for segment in segments
        ]
    found.sort()
    return list(map(itemgetter(2, 3), found))
