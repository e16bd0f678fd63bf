"""The lanes of executed traces: one for each rank, below it its streams."""

from __future__ import annotations

from array import array
from collections.abc import Collection
from functools import cached_property
from typing import TYPE_CHECKING

from simcore.diagnostics import printable_within
from simcore.executing.span_words import NOTHING, TraceSpanWords
from simcore.ranks import RankSet
from simcore.trace.lanes import LaneFacts, Lanes, LaneTrack, OpSearchColumns
from simcore.units import plural

if TYPE_CHECKING:
    from simcore.executing.execution_analysis import ExecutionAnalysis

# The words by which a search finds nodes of a kind.
_SPELLED = {
    "ALL_REDUCE": "all-reduce", "ALL_GATHER": "all-gather", "REDUCE_SCATTER": "reduce-scatter",
    "ALL_TO_ALL": "all-to-all", "COMM_SEND": "send", "COMM_RECV": "receive",
}  # fmt: skip


class TraceLanes(Lanes):
    """The lanes of executed traces: one for each rank. The `op` of a span is the index of its node."""

    results: ExecutionAnalysis

    @cached_property
    def facts(self) -> LaneFacts:
        results = self.results
        rules = "ASTRA-sim 2's rules" if results.is_astra else "wltui's rules"
        summary = f"{plural(len(results.ranks), 'rank')}, {rules}"
        return LaneFacts(results.step_time_ns, results.ranks, summary, streams_wait=True)

    @cached_property
    def words(self) -> TraceSpanWords:
        return TraceSpanWords(self.results, self)

    # -- ranks -------------------------------------------------------------------------

    def _find_track(self, track_id: int) -> LaneTrack:
        return LaneTrack(track_id, RankSet.of((track_id,)), f"rank {track_id:>2}")

    def own_track_id(self, rank: int) -> int | None:
        return rank if rank in self.results.ranks else None

    def missing_text(self, rank: int | None, stage: int | None, microbatch: int | None) -> str:
        if rank is not None and rank not in self.results.ranks:
            return f"rank {rank} is not in this run"
        if stage is not None:
            return "execution traces do not tell stages"
        return "execution traces do not tell micro-batches" if microbatch is not None else ""

    # -- spans -------------------------------------------------------------------------

    def _find_streams(self, track_id: int) -> dict[str, str]:
        ends = self.results.executed.end[track_id]
        names = {self.stream_of(track_id, index) for index, end in enumerate(ends) if end >= 0}
        last = [name for name in ("cpu", "messages", "memory") if name in names]
        middle = sorted(names.difference(["compute"], last), key=lambda name: (len(name), name))
        return {name: printable_within(name, 14) for name in ("compute", *middle, *last)}

    def stream_of(self, track_id: int, span: int) -> str:
        return self.results.stream_of(track_id, span)

    def _trace_track(self, track_id: int) -> int:
        return self.results.executed.units.of[track_id]

    def span_name(self, track_id: int, op: int) -> tuple[str, str]:
        return ("", "") if op == NOTHING else (self.results.name_of(track_id, op), "")

    def names(self) -> Collection[str]:
        return set(self.results.trace.column("name").labels)

    def _find_search_columns(self, track_id: int) -> OpSearchColumns:
        """Returns the columns by the name and the kind of a node; idle time has no terms."""
        results = self.results
        number_of: dict[tuple[str, ...], int] = {}
        name = array("i")
        for index in range(len(results.executed.end[track_id])):
            terms = results.name_of(track_id, index), results.kind_word(track_id, index)
            name.append(number_of.setdefault(terms, len(number_of)))
        name.append(number_of.setdefault((), len(number_of)))
        names = list(number_of)
        words = [frozenset(_SPELLED[what] for what in terms[1:] if what in _SPELLED) for terms in names]
        return OpSearchColumns(names, name, words, name, bytes(len(name)))
