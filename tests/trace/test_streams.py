"""What the streams of tracks made by hand or drawn are used for, against a count of every ns."""

from __future__ import annotations

import random
from array import array

import pytest

from simcore.trace.account_walk import accounts_of
from simcore.trace.accounts import account_names
from simcore.trace.figures import StreamUse
from simcore.trace.spans import COMMUNICATES, COMPUTES, NEVER, NONE, Column, Repeat, Spans, Trace, Waits
from simcore.trace.streams import Times, mean_use, merge_times, track_streams

NAMES = account_names(("forward",), ("tp", "pp"), ("wait", "bubble", "idle"), {"compute forward": "forward"})
STEP, COMM, MEMORY, GRADIENTS = 60, 0, 1, 2
NAMES_OF_STREAMS = ("comm", "memory", "gradients")


def drawn(seed: int) -> tuple[Trace, list[int]]:
    """A track that computes and communicates in turn, while other spans run beside that; twice the same."""
    random_of = random.Random(seed)
    rows: list[tuple[int, int, int, int]] = []
    now = 0
    while now < 24:
        over = now + random_of.randint(0, 4)
        kind = random_of.randrange(3)
        if kind == 2:
            rows.append((now, min(now + random_of.randint(0, 9), 28), NEVER, random_of.randrange(2)))
        else:
            rows.append((now, over, (COMPUTES, COMMUNICATES)[kind], (NONE, COMM)[kind]))
            now = over
    count, second = len(rows), [(begin + 30, over + 30, *rest) for begin, over, *rest in rows]
    start, end, level, label = zip(*rows, *second, strict=True)
    category = bytearray(0 if one == COMPUTES else 1 for one in level)
    times = (array("q", column) for column in (start, start, end))
    repeats = [Repeat(first, first + count, 0, 0, 0, (), True) for first in (0, count)]
    # What runs beside both on a stream of its own, behind them in the order of issue.
    spans = Spans(*times, category, bytearray(level), b"", repeats)
    for column, value in ((spans.start, 20), (spans.ready, 20), (spans.end, 45)):
        column.append(value)
    spans.category.append(1)
    spans.level.append(NEVER)
    labels = [*label, GRADIENTS]
    column = Column(NAMES_OF_STREAMS, [labels])
    return Trace([spans], [Waits()], STEP, NAMES, (1,), 2, columns={"stream": lambda: column}), labels


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("repeats", [True, False])
def test_streams_are_as_a_count_of_every_ns_has_them(seed: int, repeats: bool) -> None:
    trace, labels = drawn(seed)
    spans = trace.spans[0]
    if not repeats:
        spans.repeats = ()
    (accounts,) = accounts_of(trace)
    computes = [accounts.of.all[accounts.account[accounts.at(ns)]] == "compute forward" for ns in range(STEP)]
    found = track_streams(trace, 0, accounts, [NAMES_OF_STREAMS[MEMORY]])

    def used(chosen: set[int]) -> tuple[int, int]:
        on = [at for at, label in enumerate(labels) if label in chosen]
        busy = {ns for at in on for ns in range(spans.ready[at], spans.end[at])}
        return len(busy), sum(computes[ns] for ns in busy)

    assert {use.stream: (use.busy_ns, use.overlapped_ns) for use in found.streams} == {
        NAMES_OF_STREAMS[label]: used({label}) for label in {*labels} - {NONE}
    }
    assert (found.comm_ns, found.overlapped_ns) == used({COMM, GRADIENTS})


def test_joined_times_touch_nowhere() -> None:
    assert merge_times([Times((5, 0), (7, 2)), Times((2, 6, 9), (3, 8, 9))]) == ([0, 5, 9], [3, 8, 9])
    assert merge_times([]) == ([], [])


def test_the_mean_of_all_ranks_counts_those_without_a_stream() -> None:
    uses = [([StreamUse("tp", 10, 4, 6)], 1), ([], 2), ([StreamUse("dp", 3, None, 3)], 1)]
    assert mean_use(uses) == [(StreamUse("tp", 2, 1, 2), 10), (StreamUse("dp", 1, None, 1), 3)]
