"""The lanes of execution traces that have run: one for each rank, below it its streams."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from simcore.diagnostics import in_short
from simcore.executing.span_words import NOTHING, TraceSpanWords
from simcore.executing.trace import BUBBLE, IDLE, NAMES, WAIT, account_of
from simcore.ranks import RankSet
from simcore.run.accounts import Accounts
from simcore.run.lanes import (
    KINDS,
    TIME,
    Figure,
    LaneOrder,
    Searched,
    Spans,
    TimeStretch,
    codes,
)
from simcore.run.rank_lanes import SEARCHED, RankLanes, figures_of_accounts, kinds_of_accounts
from simcore.units import plural

if TYPE_CHECKING:
    from simcore.executing.ran import RanTraces

_COLLECTIVES = {
    "ALL_REDUCE": "all-reduce", "ALL_GATHER": "all-gather", "REDUCE_SCATTER": "reduce-scatter",
    "ALL_TO_ALL": "all-to-all", "COMM_SEND": "send", "COMM_RECV": "receive",
}  # fmt: skip


_OF_ACCOUNT = kinds_of_accounts(NAMES)
_ORDERS = (
    LaneOrder("", "lane", "busy"), LaneOrder("busy", "least busy", "busy", least_first=True),
    LaneOrder("bubble", "most bubble", "bubble"), LaneOrder("wait", "most wait", "wait"),
    LaneOrder("exposed", "most exposed", "exposed"),
)  # fmt: skip


class TraceLanes(RankLanes):
    """`RunLanes` of execution traces: a lane for each rank. The `op` of a span is the place of its node."""

    axis = TIME
    timed = True
    numbered = ("", "")
    account_figures = figures_of_accounts(NAMES)
    alike_words = ""

    def __init__(self, results: RanTraces) -> None:
        super().__init__()
        self.results = results
        self.numbers = results.ranks

    @property
    def accounts(self) -> Sequence[Accounts]:
        return self.results.accounts

    @property
    def length(self) -> int:
        return self.results.step_time_ns

    @property
    def counted(self) -> str:
        rules = "ASTRA-sim 2's rules" if self.results.is_astra else "wltui's rules"
        return f"{plural(len(self.numbers), 'rank')}, {rules}"

    def beside(self, number: int) -> str:
        return ""

    @cached_property
    def kinds(self) -> Collection[str]:
        return {KINDS[kind] for of in self.results.accounts for kind in of.account.translate(_OF_ACCOUNT)}

    @property
    def heat(self) -> dict[int, int]:
        return dict.fromkeys(self.numbers, 1)

    @property
    def orders(self) -> tuple[LaneOrder, ...]:
        return _ORDERS

    # -- ranks -------------------------------------------------------------------------

    def headings(self, number: int) -> tuple[str, ...]:
        return ()

    def ranks(self, number: int) -> RankSet:
        return RankSet.of((number,))

    def number_of(self, rank: int) -> int | None:
        return rank if 0 <= rank < len(self.numbers) else None

    def alike(self, number: int) -> Sequence[int]:
        return (number,)

    def own_number(self, rank: int) -> int:
        return rank

    def stage_of(self, number: int) -> int | None:
        return None

    def rank_words(self, rank: int) -> str:
        return f"rank {rank}"

    def missing(self, rank: int | None, stage: int | None, microbatch: int | None) -> str:
        if rank is not None and not 0 <= rank < len(self.numbers):
            return f"rank {rank} is not in this run"
        if stage is not None:
            return "execution traces do not tell stages"
        return "execution traces do not tell micro-batches" if microbatch is not None else ""

    # -- spans -------------------------------------------------------------------------

    def title(self, number: int) -> str:
        return f"rank {number:>2}"

    def streams(self, number: int) -> list[str]:
        results = self.results
        ends = results.executed.end[number]
        names = {results.stream_of(number, at) for at in range(len(ends)) if ends[at] >= 0}
        last = [name for name in ("cpu", "messages", "memory") if name in names]
        middle = sorted(names.difference(["compute"], last), key=lambda name: (len(name), name))
        return ["compute", *middle, *last]

    def stream_title(self, number: int, stream: str) -> str:
        return in_short(stream, 14)

    def overlaps(self, stream: str | None) -> bool:
        return stream is not None

    def spans(self, number: int, stream: str | None) -> Spans:
        spans = self._spans.get((number, stream))
        if spans is None:
            made = self._of_rank(number) if stream is None else self._of_stream(number, stream)
            spans = self._spans[number, stream] = made
        return spans

    def drawn(self, number: int, stream: str | None) -> Spans:
        return self.spans(number, stream)

    def _of_rank(self, number: int) -> Spans:
        accounts = self.results.accounts[number]
        kinds = bytearray(accounts.account.translate(_OF_ACCOUNT))
        return Spans(accounts.edge[:-1], accounts.edge[1:], accounts.op, kinds)

    def _of_stream(self, number: int, stream: str) -> Spans:
        results = self.results
        executed = results.executed
        start, begin, end = executed.start[number], executed.begin[number], executed.end[number]
        waits = KINDS.index("bubble" if stream == "messages" else "wait")
        spans = []
        for place in range(len(end)):
            if end[place] < 0 or results.stream_of(number, place) != stream:
                continue
            if begin[place] > start[place]:
                spans.append((start[place], begin[place], place, waits))
            if end[place] > begin[place]:
                kind = _OF_ACCOUNT[account_of(executed, number, place)]
                spans.append((begin[place], end[place], place, kind))
        spans.sort()
        return Spans(
            array("q", (span[0] for span in spans)), array("q", (span[1] for span in spans)),
            array("q", (span[2] for span in spans)), bytearray(span[3] for span in spans),
        )  # fmt: skip

    def name(self, number: int, op: int) -> tuple[str, str]:
        return ("", "") if op == NOTHING else (self.results.name_of(number, op), "")

    def names(self) -> Collection[str]:
        return {use.name for use in self.results.name_table}

    def searched(self, number: int, stream: str | None) -> Searched:
        spans, results = self.spans(number, stream), self.results
        kinds: dict[frozenset[str], int] = {}
        names: dict[tuple[str, ...], int] = {}
        kind_of, name_of = [], []
        for place, category in zip(spans.op, spans.category, strict=True):
            words = frozenset(SEARCHED.get(KINDS[category], ()))
            told: tuple[str, ...] = ()
            if place != NOTHING:
                what = results.what(number, place)
                words |= {_COLLECTIVES[what]} if what in _COLLECTIVES else frozenset()
                told = (results.name_of(number, place), what)
            kind_of.append(kinds.setdefault(words, len(kinds)))
            name_of.append(names.setdefault(told, len(names)))
        none = codes([0] * len(spans.op))
        return Searched(list(kinds), codes(kind_of), list(names), codes(name_of), none)

    # -- what one moves by ---------------------------------------------------------------

    def passes(self, number: int) -> Sequence[TimeStretch]:
        return []

    def all_waits(self) -> Sequence[tuple[int, int]]:
        waits = []
        for number in self.numbers:
            kinds = self.results.accounts[number].account
            waits += [(kinds[at] == IDLE, -ns, number, at) for at, ns in self._waits_of(number).items()]
        return [(number, at) for _, _, number, at in sorted(waits)]

    def _found_waits(self, number: int) -> dict[int, int]:
        accounts = self.accounts[number]
        waits = [
            (kind == IDLE, accounts.edge[at] - accounts.edge[at + 1], at)
            for at, kind in enumerate(accounts.account)
            if kind in (WAIT, BUBBLE, IDLE)
        ]
        return {at: -ns for _, ns, at in sorted(waits)}

    def path(self) -> Iterator[tuple[int, int, int, int, str]] | None:
        results, path = self.results, self.results.critical_path
        columns = zip(path.edge, path.edge[1:], path.rank, path.span, strict=False)
        return (
            (start, end, rank, rank, results.stream_of(rank, place)) for start, end, rank, place in columns
        )

    def longest(self, number: int, first_ns: int, last_ns: int) -> tuple[int, Figure | None]:
        longest, account = self._ranges.longest(number, first_ns, last_ns)
        figure = self.account_figures[account]._replace(ns=longest.ns) if longest.index >= 0 else None
        return longest.count, figure

    @cached_property
    def words(self) -> TraceSpanWords:
        return TraceSpanWords(self.results, self)
