"""The lanes of flight recorder dumps: one for each rank, below it one for each of its groups."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from simcore.diagnostics import printable_within
from simcore.flight.names import clock_of_day, kind_of_group, short_group, wall_clock
from simcore.flight.progress import collective_of, short_operation
from simcore.flight.record import STATE_WORDS
from simcore.hangs.span_words import HungSpanWords
from simcore.hangs.timeline import IDLE, WAIT
from simcore.ranks import RankSet
from simcore.trace.accounts import Ranges
from simcore.trace.lane_spans import KINDS, TIME, Content, Figure, LaneOrder, Spans, TimeAxis, make_spans
from simcore.trace.lanes import NATURAL, LaneFacts, Lanes, LaneTrack, OpSearchColumns, Sums, Wait
from simcore.trace.spans import NONE
from simcore.units import duration, plural

if TYPE_CHECKING:
    from simcore.hangs.run import HangAnalysis

LAST_PROGRESS = LaneOrder(
    "progress", "last progress", "ended", least_first=True, group_name="until the last end"
)
OLDEST_OPEN = LaneOrder("open", "longest open", "open", group_name="open")
# The words by which a search finds operations.
_SPELLED = {
    "all_reduce": "all-reduce", "all_gather": "all-gather", "reduce_scatter": "reduce-scatter",
    "all_to_all": "all-to-all",
}  # fmt: skip
_FIGURE_WORDS = {"wait": "not ended", "idle": "nothing open"}
_FIGURES = tuple(
    Figure(_FIGURE_WORDS.get(name, name), name, "" if name == "idle" else name, 0) for name in KINDS
)
# A column below a millisecond shows microseconds of the day.
_MILLISECOND = 10**6


class HungLanes(Lanes):
    """The lanes of dumps. The `op` of a span is its entry in the dump; NONE where nothing is open."""

    results: HangAnalysis

    def __init__(self, results: HangAnalysis) -> None:
        super().__init__(results)
        self.timeline, self.record = results.timeline, results.record
        self._index_of = {dump.rank: index for index, dump in enumerate(self.record.dumps)}

    @cached_property
    def facts(self) -> LaneFacts:
        dumps = self.record.dumps
        return LaneFacts(
            self.timeline.length, range(len(dumps)), plural(len(dumps), "rank"),
            (NATURAL, LAST_PROGRESS, OLDEST_OPEN), axis=self._axis, timed=False, layered=True,
        )  # fmt: skip

    @cached_property
    def _axis(self) -> TimeAxis:
        """The axis in times of the day."""
        begin = self.timeline.begin_ns

        def position(time_ns: int, column_ns: int) -> str:
            return clock_of_day(begin + time_ns, 3 if column_ns >= _MILLISECOND else 6)

        title = ("  collectives; what has not ended goes on", " collectives")
        return TimeAxis(TIME.units, lambda ns: wall_clock(begin + ns, 6), position, duration, title)

    @cached_property
    def words(self) -> HungSpanWords:
        return HungSpanWords(self.results, self)

    # -- ranks -------------------------------------------------------------------------

    def _find_track(self, track_id: int) -> LaneTrack:
        rank = self.record.dumps[track_id].rank
        return LaneTrack(track_id, RankSet.of((rank,)), f"rank {rank:>2}", title_note=self._role(rank))

    def _role(self, rank: int) -> str:
        verdict = self.results.verdict
        if rank in verdict.culprits:
            return "!"
        return "*" if rank in verdict.stuck else ""

    def own_track_id(self, rank: int) -> int | None:
        return self._index_of.get(rank)

    def missing_text(self, rank: int | None, stage: int | None, microbatch: int | None) -> str:
        if rank is not None and rank not in self._index_of:
            return f"rank {rank} has no dump"
        if stage is not None:
            return "dumps do not tell stages"
        return "dumps do not tell micro-batches" if microbatch is not None else ""

    # -- spans -------------------------------------------------------------------------

    def _find_streams(self, track_id: int) -> Mapping[str, str]:
        dump, groups = self.record.dumps[track_id], self.record.groups
        titles: dict[str, str] = {}
        for group in sorted(dump.rows_of_groups):
            of = groups[group]
            titles[str(group)] = printable_within(f"{short_group(of.description)} x{len(of.ranks)}", 14)
        return titles

    def stream_of(self, track_id: int, span: int) -> str:
        return str(self.record.dumps[track_id].entries.group[span])

    def _find_content(self, track_id: int, stream: str | None) -> Content:
        if stream is None:
            spans = make_spans([*self.timeline.segments(track_id)])
            return Content(spans, spans, covers_all=True)
        start, end, category = self.timeline.times(track_id)
        rows = sorted(self.record.dumps[track_id].rows_of_groups[int(stream)], key=start.__getitem__)
        spans = Spans(
            array("q", map(start.__getitem__, rows)), array("q", map(end.__getitem__, rows)),
            array("q", rows), bytearray(map(category.__getitem__, rows)),
        )  # fmt: skip
        return Content(spans, spans)

    def _other_kinds(self) -> Collection[str]:
        used = {group for dump in self.record.dumps for group in dump.rows_of_groups}
        kinds = {kind_of_group(self.record.groups[group].description) for group in used}
        return kinds | ({"wait"} if self.results.verdict.open_ranks else set())

    def span_name(self, track_id: int, op: int) -> tuple[str, str]:
        if op == NONE:
            return "", ""
        entries = self.record.dumps[track_id].entries
        return short_operation(self.record.names.operations[entries.operation[op]]), ""

    def names(self) -> Collection[str]:
        return {*self.record.names.operations, *(group.description for group in self.record.groups)}

    def _find_search_columns(self, track_id: int) -> OpSearchColumns:
        dump = self.record.dumps[track_id]
        entries, operations = dump.entries, self.record.names.operations
        index_of: dict[tuple[int, int, int, int], int] = {}
        name = array("i")
        for key in zip(entries.operation, entries.group, entries.state, dump.over, strict=True):
            name.append(index_of.setdefault(key, len(index_of)))
        nothing = len(index_of)
        name.append(nothing)
        names: list[tuple[str, ...]] = []
        words: list[frozenset[str]] = []
        for operation, group, state, over in index_of:
            text, description = operations[operation], self.record.groups[group].description
            progress = () if over else ("open",)
            names.append((text, description, short_group(description), STATE_WORDS[state], *progress))
            spelled = _SPELLED.get(collective_of(text), "receive" if "recv" in text else "send")
            results = {spelled, *(() if over else ("wait",))}
            words.append(frozenset(results if "send" in text or "recv" in text or spelled != "send" else
                                   results - {"send"}))  # fmt: skip
        names.append(())
        words.append(frozenset())
        return OpSearchColumns(names, name, words, name, bytes(len(name)))

    # -- figures -----------------------------------------------------------------------

    @cached_property
    def _longest_sums(self) -> Sums:
        def segments(track_id: int) -> tuple[array[int], bytearray]:
            spans = self.spans(track_id, None)
            return array("q", [*spans.start, self.timeline.length]), spans.category

        return Sums(Ranges(segments, [1] * len(self.record.dumps), len(KINDS)), _FIGURES)

    def measure_ns(self, measure: str, track_id: int) -> int:
        """Returns the time that an order goes by: until the last end, or since the oldest open entry."""
        if measure == "progress":
            last = self.timeline.last_end_of(track_id)
            return self._oldest_open_ns(track_id, False, 0) if last is None else last
        if measure == "open":
            return self.timeline.length - self._oldest_open_ns(track_id, True, self.timeline.length)
        return 0

    def _oldest_open_ns(self, track_id: int, with_messages: bool, default_ns: int) -> int:
        """Returns when the oldest collective that has not ended began, or the oldest message."""
        dump = self.record.dumps[track_id]
        is_message, begin = dump.entries.is_message, self.timeline.begin_of
        rows = (row for row, is_over in enumerate(dump.over) if not is_over) if 0 in dump.over else ()
        begins = (begin(track_id, row) for row in rows if with_messages or not is_message[row])
        return min(begins, default=default_ns)

    def _end_ns(self, track_id: int) -> int:
        return self.measure_ns("progress", track_id)

    def _find_waits(self, track_id: int) -> list[Wait]:
        """Returns what has not ended on the rank's lane, the longest first, then times without anything."""
        spans = self.spans(track_id, None)
        return sorted(
            Wait(kind == IDLE, begin - end, index)
            for index, (begin, end, kind) in enumerate(
                zip(spans.start, spans.end, spans.category, strict=True)
            )
            if kind in (WAIT, IDLE)
        )
