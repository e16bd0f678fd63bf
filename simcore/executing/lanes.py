"""The lanes of execution traces that have run: one for each rank, below it its streams."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from simcore.diagnostics import in_short
from simcore.executing.span_words import NOTHING, TraceSpanWords
from simcore.executing.trace import NAMES, account_of
from simcore.ranks import RankSet
from simcore.trace.lane_spans import KINDS, Searched, Spans, TimeStretch, codes
from simcore.trace.lanes import (
    LEAST_BUSY,
    MOST_BUBBLE,
    MOST_EXPOSED,
    MOST_WAIT,
    NATURAL,
    SEARCHED,
    Content,
    LaneFacts,
    Lanes,
    LaneTrack,
    Wait,
    account_spans,
    figures_of_accounts,
    kinds_of_accounts,
    waits_of_accounts,
)
from simcore.units import plural

if TYPE_CHECKING:
    from simcore.executing.ran import RanTraces

_COLLECTIVES = {
    "ALL_REDUCE": "all-reduce", "ALL_GATHER": "all-gather", "REDUCE_SCATTER": "reduce-scatter",
    "ALL_TO_ALL": "all-to-all", "COMM_SEND": "send", "COMM_RECV": "receive",
}  # fmt: skip


_OF_ACCOUNT, _FIGURES = kinds_of_accounts(NAMES), figures_of_accounts(NAMES)
_ORDERS = (NATURAL, LEAST_BUSY, MOST_BUBBLE, MOST_WAIT, MOST_EXPOSED)
_SPREAD = (("compute", "busy"), *((name, name) for name in ("bubble", "wait", "exposed")))


class TraceLanes:
    """What execution traces say of their lanes: one for each rank. The `op` of a span is the place of its
    node.
    """

    def __init__(self, results: RanTraces) -> None:
        self.results = results

    @property
    def facts(self) -> LaneFacts:
        results = self.results
        rules = "ASTRA-sim 2's rules" if results.is_astra else "wltui's rules"
        counted = f"{plural(len(results.ranks), 'rank')}, {rules}"
        return LaneFacts(
            results.step_time_ns, results.ranks, counted, _FIGURES, _OF_ACCOUNT, _ORDERS, _SPREAD
        )

    def words(self, lanes: Lanes) -> TraceSpanWords:
        return TraceSpanWords(self.results, lanes)

    # -- ranks -------------------------------------------------------------------------

    def track(self, number: int) -> LaneTrack:
        return LaneTrack(number, RankSet.of((number,)), f"rank {number:>2}")

    def own_number(self, rank: int) -> int | None:
        return rank if rank in self.results.ranks else None

    def rank_words(self, rank: int) -> str:
        return f"rank {rank}"

    def missing(self, rank: int | None, stage: int | None, microbatch: int | None) -> str:
        if rank is not None and rank not in self.results.ranks:
            return f"rank {rank} is not in this run"
        if stage is not None:
            return "execution traces do not tell stages"
        return "execution traces do not tell micro-batches" if microbatch is not None else ""

    # -- spans -------------------------------------------------------------------------

    def streams(self, number: int) -> dict[str, str]:
        results = self.results
        ends = results.executed.end[number]
        names = {results.stream_of(number, at) for at in range(len(ends)) if ends[at] >= 0}
        last = [name for name in ("cpu", "messages", "memory") if name in names]
        middle = sorted(names.difference(["compute"], last), key=lambda name: (len(name), name))
        return {name: in_short(name, 14) for name in ("compute", *middle, *last)}

    def content(self, number: int, stream: str | None) -> Content:
        if stream is None:
            spans = account_spans(self.results.accounts[number], _OF_ACCOUNT)
        else:
            spans = self._of_stream(number, stream)
        return Content(spans, spans)

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

    def searched(self, number: int, stream: str | None, spans: Spans) -> Searched:
        results = self.results
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

    def waits(self, number: int, spans: Callable[[], Spans]) -> list[Wait]:
        return waits_of_accounts(self.results.accounts[number])
