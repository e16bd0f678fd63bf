"""Accounts of traces made by hand: what launched work counts, and which segments are one.

Seen to fail: with LAUNCHED as a level that never counts; with segments cut where another span ends.
"""

from array import array

from simcore.trace.account_walk import accounts_of
from simcore.trace.accounts import account_names
from simcore.trace.spans import COMPUTES, LAUNCHED, NONE, UNDER, Spans, Trace, Waits

NAMES = account_names(("forward",), ("dp",), ("wait", "bubble", "idle"), {"compute forward": "forward"})
FORWARD, DP, WAIT, _, IDLE = range(5)


def _trace(spans: list[tuple[int, int, int, int, int]], step_ns: int) -> Trace:
    """One track. spans: (start, ready, end, category, level)."""
    start, ready, end, category, level = zip(*spans, strict=True)
    columns = (array("q", column) for column in (start, ready, end))
    of = Spans(*columns, bytearray(category), bytearray(level))
    return Trace([of], [Waits()], step_ns, NAMES, [1], NONE, overlaps=True)


def _segments(trace: Trace) -> list[tuple[int, int, int]]:
    (accounts,) = accounts_of(trace)
    return [*zip(accounts.edge, accounts.account, accounts.op, strict=False)]


def test_a_collective_counts_behind_the_last_work_of_its_rank() -> None:
    trace = _trace([(0, 0, 10, FORWARD, COMPUTES), (4, 4, 16, DP, LAUNCHED)], 20)
    assert _segments(trace) == [(0, FORWARD, 0), (10, DP, 1), (16, IDLE, NONE)]
    assert accounts_of(trace)[0].total_ns == [10, 6, 0, 0, 4]


def test_what_counts_is_one_segment_whatever_ends_beside_it() -> None:
    gaps = [(0, 0, 3, IDLE, UNDER), (3, 3, 5, IDLE, UNDER), (5, 5, 9, IDLE, UNDER)]
    trace = _trace([*gaps, (1, 4, 8, DP, LAUNCHED)], 9)
    assert _segments(trace) == [(0, IDLE, 0), (1, WAIT, 3), (4, DP, 3), (8, IDLE, 2)]
