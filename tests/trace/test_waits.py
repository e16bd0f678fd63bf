"""Who waits for whom, and where longest, in accounts made by hand."""

from __future__ import annotations

from collections.abc import Sequence

from simcore.trace.accounts import Accounts, account_names
from simcore.trace.waits import GroupWait, Stretch, find_longest, waits_by_sums

NAMES = account_names(("forward",), ("tp",), ("wait", "bubble", "idle"), {"compute forward": "forward"})
FORWARD, TP, WAIT, BUBBLE, IDLE = range(5)


def accounts(*segments: tuple[int, int]) -> Accounts:
    """Accounts of (account, ns) one after another, whose codes are their numbers."""
    booked, now = Accounts(NAMES), 0
    for code, (account, ns) in enumerate(segments):
        booked.book(now, now + ns, account, code)
        now += ns
    booked.edge.append(now)
    return booked


FIRST = accounts((FORWARD, 6), (WAIT, 4), (TP, 2), (WAIT, 1), (TP, 2), (IDLE, 9))
SECOND = accounts((FORWARD, 10), (TP, 2), (WAIT, 1), (TP, 2), (BUBBLE, 4), (FORWARD, 5))
THIRD = accounts((FORWARD, 9), (WAIT, 1), (TP, 2), (FORWARD, 1), (TP, 2), (IDLE, 9))
ALL = (FIRST, SECOND, THIRD)


def members(group: int) -> Sequence[int]:
    return (0, 1, 2)


def test_members_wait_for_those_that_wait_least_in_all() -> None:
    # 5 ns of the first, 1 ns of each of the others: both are late.
    assert waits_by_sums(ALL, lambda track, code: 7, members) == [GroupWait(0, 1, 7, 5, (1, 2))]


def test_each_group_has_its_own_late_member() -> None:
    # What is waited for first is of group 0, all else of group 1.
    found = waits_by_sums(ALL, lambda track, code: int(code > 1), members)
    assert found == [
        GroupWait(0, 1, 0, 4, (1,)),
        GroupWait(0, 2, 1, 1, (2,)),
        GroupWait(1, 2, 1, 1, (2,)),
        GroupWait(2, 1, 0, 1, (1,)),
    ]


def test_the_longest_segments_are_all_equal_ones_by_track() -> None:
    assert find_longest(ALL, (WAIT, BUBBLE)) == [Stretch(0, 6, 10, 1), Stretch(1, 15, 19, 4)]
    assert find_longest(ALL, (BUBBLE,)) == [Stretch(1, 15, 19, 4)]
    assert find_longest([THIRD], (BUBBLE,)) == []
