"""Tables of a trace made by hand: no source of it is asked."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from simcore.trace.account_walk import accounts_of
from simcore.trace.accounts import account_names
from simcore.trace.named_work import CallCounts, named_work
from simcore.trace.spans import COMMUNICATES, COMPUTES, NONE, Column, Spans, Trace, Waits
from simcore.trace.tables import LabelSpans, LineTimes, Table, count_spans, labels_by_first_use

NAMES = account_names(("forward",), ("tp", "pp"), ("wait", "bubble", "idle"), {"compute forward": "forward"})
FORWARD, TP, PP = range(3)
# (start, ready, end, category, label)
Row = tuple[int, int, int, int, int]
LABELS = ("attention", "mlp", "all-reduce", "send", "receive")
ATTENTION, MLP, REDUCE, SEND, RECEIVE = range(5)
FIRST = [
    (0, 0, 10, FORWARD, ATTENTION),
    (10, 14, 20, TP, REDUCE),
    (20, 20, 30, FORWARD, MLP),
    (30, 30, 35, PP, SEND),
    (35, 35, 37, FORWARD, ATTENTION),
]
# Waits for the transfer of the first until 35, begins late to be its last member.
SECOND = [(0, 0, 14, FORWARD, ATTENTION), (14, 14, 20, TP, REDUCE), (35, 35, 40, FORWARD, MLP)]


def made(*tracks: Sequence[Row], ranks: Sequence[int] = (1, 2)) -> Trace:
    """A trace of these spans, whose second track waits for span 3 of the first before its own span 2."""
    spans, labels = [], []
    for rows in tracks:
        start, ready, end, category, label = zip(*rows, strict=True)
        levels = bytearray(COMPUTES if kind == FORWARD else COMMUNICATES for kind in category)
        times = (array("q", column) for column in (start, ready, end))
        spans.append(Spans(*times, bytearray(category), levels))
        labels.append(array("i", label))
    waits = [Waits() for _ in tracks]
    waits[1].add((20, 30, 35), 0, 3, PP, 2)
    column = Column(LABELS, labels, [RECEIVE] * len(LABELS))
    return Trace(spans, waits, 40, NAMES, ranks, PP, columns={"name": lambda: column})


def table_of(trace: Trace) -> Table:
    path = [(0, 0, 10), (1, 0, 4), (1, 1, 6), (0, 2, 10), (0, 3, 5), (0, NONE, 1), (1, 2, 4)]
    slacks = [array("q", (0, 0, 0, 0, 3)), array("q", (4, 0, 0))]
    return Table(trace, accounts_of(trace), trace.column("name"), lambda: path, lambda: slacks)


def test_what_a_label_takes_of_each_track_sums_to_its_accounts() -> None:
    trace = made(FIRST, SECOND)
    table = table_of(trace)
    for of_track, accounts in zip(table.spent, table.accounts, strict=True):
        assert sum(of_track.compute.values()) == accounts.busy_ns
        assert sum(of_track.exposed.values()) == accounts.all_exposed_ns
        assert sum(of_track.waits.values()) == accounts.wait_ns + accounts.bubble_ns
        assert sum(of_track.own.values()) == accounts.busy_ns + accounts.all_exposed_ns
    first, second = table.spent
    assert [part.get(REDUCE) for part in (first.compute, first.exposed, first.own, first.waits)] == [
        None, 6, 6, 4,
    ]  # fmt: skip
    # What arrives has a label of its own, whatever its sender calls it.
    assert (second.exposed[RECEIVE], second.waits[RECEIVE]) == (5, 10)
    assert not any(SEND in part for part in (second.compute, second.exposed, second.own, second.waits))


def test_a_line_has_compute_and_exposed_of_the_track_where_they_are_most() -> None:
    table = table_of(made(FIRST, SECOND))
    # 12 on the first track, 14 on the second.
    assert table.use([ATTENTION]) == LineTimes(14, 0, 14, 0)
    assert table.use([MLP]) == LineTimes(10, 0, 14, 0)
    assert table.use([ATTENTION, MLP]) == LineTimes(24, 0, 28, 0)
    assert table.use([RECEIVE]) == LineTimes(0, 5, 0, None)


def test_spans_are_counted_on_every_rank_and_the_longest_is_named() -> None:
    uses = count_spans(made(FIRST, SECOND), made(FIRST, SECOND).column("name"))
    assert uses[ATTENTION] == LabelSpans(2 + 2, 12 + 2 * 14, 0, 1, 0)
    assert uses[REDUCE] == LabelSpans(1 + 2, 6 + 2 * 6, 4, 0, 1)


def test_labels_come_in_the_order_in_which_they_first_take_time() -> None:
    trace = made([(0, 0, 0, FORWARD, MLP), *FIRST], SECOND)
    assert labels_by_first_use(trace, accounts_of(trace), trace.column("name")) == [
        ATTENTION, REDUCE, MLP, SEND, RECEIVE,
    ]  # fmt: skip


def test_what_lies_in_a_label_counts_for_its_slack() -> None:
    trace = made(FIRST, SECOND)
    inside = trace.column("name")._replace(within=[NONE, ATTENTION, NONE, NONE, NONE])
    slacks = [array("q", (5, 9, 2, 9, 7)), array("q", (6, 9, 4))]
    table = Table(trace, accounts_of(trace), inside, lambda: (), lambda: slacks)
    assert table.slack_ns == [2, 2, 9, 9, None]


def test_named_work_sums_to_the_accounts_and_counts_calls() -> None:
    trace = made(FIRST, SECOND)
    for track, accounts in enumerate(accounts_of(trace)):
        work = named_work(trace, track, accounts)
        assert sum(work.ns.values()) == 40
        computed = sum(ns for (account, _), ns in work.ns.items() if account == "compute")
        assert computed == accounts.busy_ns
    assert work.calls[True, "attention"] == CallCounts(1, 14)
    assert work.calls[False, "receive"] == CallCounts(1, 5)
    assert work.ns["bubble", "receive"] == 10
