"""The words of an entry of a dump: what it is, its state, who has not come, and where it was called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from simcore.diagnostics import printable_within
from simcore.flight.mismatches import frame_of
from simcore.flight.names import group_text, ranks_text, wall_clock
from simcore.flight.progress import short_operation
from simcore.flight.record import STATE_WORDS, size_text
from simcore.flight.verdict import Wait
from simcore.hangs.timeline import WAIT
from simcore.ranks import RankSet
from simcore.trace.findings import Dependency, Step
from simcore.trace.lane_spans import SpanSummary
from simcore.trace.lanes import Lanes, SpanWords
from simcore.trace.spans import NONE
from simcore.units import duration
from simcore.unpickling.stacks import frames_of

if TYPE_CHECKING:
    from simcore.hangs.run import HangAnalysis

_MOST_FRAMES = 12
_MOST_WAITED = 8


class HungSpanWords(SpanWords):
    """The words of entries."""

    most_dependencies = 8

    def __init__(self, results: HangAnalysis, lanes: Lanes) -> None:
        super().__init__(lanes)
        self._results, self._record = results, results.record

    def summarize(self, track_id: int, stream: str | None, index: int | None, ranks: RankSet) -> SpanSummary:
        dump = self._record.dumps[track_id]
        whose = (f"rank {dump.rank}",)
        row = NONE if index is None else self.op(track_id, stream, index)
        if row == NONE:
            return SpanSummary("", whose)
        start, end, _ = self._results.timeline.times(track_id)
        what = f"{self.span_name(track_id, row)} no. {self._sequence(track_id, row)}"
        group = printable_within(group_text(self._record.groups[dump.entries.group[row]]), 70)
        details = ", ".join([self._state(track_id, row), *self._sizes(track_id, row)])
        if dump.over[row]:
            length, times = duration(end[row] - start[row]), self.format_times(start[row], end[row])
        else:
            length, times = "not ended", f"since {self._axis.clock(start[row])}"
        return SpanSummary(f"{what} in {group}", whose, times, length, details=details)

    def side_note(self, track_id: int, stream: str | None, index: int, wide: bool, rank: int | None) -> str:
        row = self.op(track_id, stream, index)
        return "" if row == NONE else self._waits_text(track_id, row)

    def detail_rows(
        self, track_id: int, stream: str | None, index: int, rank: int | None
    ) -> list[tuple[str, str]]:
        row = self.op(track_id, stream, index)
        if row == NONE:
            return [("nothing", "nothing that the rank began is open in the ring")]
        dump = self._record.dumps[track_id]
        entries = dump.entries
        start, end, _ = self._results.timeline.times(track_id)
        rows = [
            ("what", self.span_name(track_id, row)),
            ("group", printable_within(group_text(self._record.groups[entries.group[row]]), 90)),
            ("number", self._number_text(track_id, row)),
            ("state", self._state(track_id, row)),
            ("created", wall_clock(entries.created[row], 6)),
        ]
        for label, time_ns in (("started", entries.started[row]), ("completed", entries.completed[row])):
            if time_ns > 0:
                rows.append((label, wall_clock(time_ns, 6)))
        if dump.over[row]:
            rows.append(("takes", self.format_times_and_length(start[row], end[row])))
        if 0 <= entries.duration_ms[row] < 1e12:
            rows.append(("on the GPU", f"{entries.duration_ms[row]:.3f} ms"))
        rows += [("sizes", fact) for fact in self._sizes(track_id, row)]
        if entries.timeout_ms[row] > 0:
            rows.append(("timeout", duration(entries.timeout_ms[row] * 10**6)))
        if waits := self._waits_text(track_id, row):
            rows.append(("waits", waits))
        rows += [("states", text) for text in self._member_states(track_id, row)]
        rows += self.dependency_rows(track_id, stream, index, rank)
        if call_site := frame_of(self._record, dump.rank, row):
            rows.append(("called at", printable_within(call_site, 90)))
        frames = frames_of(self._record.names.stacks[entries.stack[row]])
        rows += [
            ("frame", printable_within(f"{name}  {file}:{line}", 100))
            for name, file, line in frames[:_MOST_FRAMES]
        ]
        return rows

    def _sequence(self, track_id: int, row: int) -> int:
        entries = self._record.dumps[track_id].entries
        return entries.message[row] if entries.is_message[row] else entries.collective[row]

    def _number_text(self, track_id: int, row: int) -> str:
        is_message = self._record.dumps[track_id].entries.is_message[row]
        of = "of the rank's messages in the group" if is_message else "in the group"
        return f"{self._sequence(track_id, row)} {of}"

    def _state(self, track_id: int, row: int) -> str:
        dump = self._record.dumps[track_id]
        state = STATE_WORDS[dump.entries.state[row]]
        # gloo says `scheduled` to the end.
        return f"{state}, but retired" if dump.over[row] and state != "completed" else state

    def _sizes(self, track_id: int, row: int) -> list[str]:
        entries, names = self._record.dumps[track_id].entries, self._record.names
        ends = (
            (names.sizes[entries.input_size[row]], names.dtypes[entries.input_dtype[row]]),
            (names.sizes[entries.output_size[row]], names.dtypes[entries.output_dtype[row]]),
        )
        texts = [f"{size_text(sizes)} {types}".strip() for sizes, types in ends if sizes]
        return [printable_within(" -> ".join(dict.fromkeys(texts)), 80)] if texts else []

    def _waits_text(self, track_id: int, row: int) -> str:
        """Returns which members have not come to what has not ended."""
        dump = self._record.dumps[track_id]
        if dump.over[row]:
            return ""
        ranks = self._results.late_ranks(track_id, row)
        if ranks:
            return f"{ranks_text(tuple(ranks))} {'has' if len(ranks) == 1 else 'have'} not come"
        return "not ended"

    def _member_states(self, track_id: int, row: int) -> list[str]:
        """Returns which members have a collective in which state."""
        entries = self._record.dumps[track_id].entries
        if entries.is_message[row]:
            return []
        states = self._results.states_of(entries.group[row], entries.collective[row])
        return [f"{state}: {ranks_text(tuple(ranks))}" for state, ranks in states.items()]

    # -- along who waits for whom --------------------------------------------------------

    def dependencies(
        self, track_id: int, stream: str | None, index: int, rank: int | None, direction: int
    ) -> Sequence[Dependency]:
        """Returns the last entries of the ranks that have not come (-1), or who waits for the rank (1)."""
        row, verdict = self.op(track_id, stream, index), self._results.verdict
        dump = self._record.dumps[track_id]
        if direction > 0:
            waits = verdict.waits_for.get(dump.rank, ())
            results = (self._waiting(wait) for wait in waits[:_MOST_WAITED])
            return [one for one in results if one is not None]
        if row == NONE:
            return []
        if dump.over[row]:
            return self._last_to_come(track_id, row)
        ranks = self._results.late_ranks(track_id, row)
        if not ranks:
            # What stands behind an older one waits for what that waits for.
            ranks = list(dict.fromkeys(wait.for_rank for wait in verdict.waits_of.get(dump.rank, ())))
        late = (self._late(rank, dump.entries.group[row]) for rank in ranks[:_MOST_WAITED])
        return [one for one in late if one is not None]

    def chain_end(self, track_id: int, stream: str | None, index: int) -> str:
        dump, spans = self._record.dumps[track_id], self._lanes.spans(track_id, stream)
        if dump.rank in self._results.verdict.culprits:
            return f"rank {dump.rank} is waited for, and the dumps do not hold the reason: look at the rank"
        opens = (at for at, kind in enumerate(spans.category) if kind == WAIT and at > index)
        first = next(opens, None) if spans.op[index] == NONE else None
        return "" if first is None else f"nothing is open here before {self._axis.clock(spans.start[first])}"

    def _late(self, rank: int, group: int) -> Dependency | None:
        track_id = self._lanes.own_track_id(rank)
        if track_id is None:
            return None
        dump = self._record.dumps[track_id]
        start, end, _ = self._results.timeline.times(track_id)
        count = len(dump.entries)
        if not count:
            reason = "has not come, and its dump has no entry"
            return Dependency(track_id, NONE, rank, reason, 0, self._results.timeline.length)
        rows = dump.rows_of_groups.get(group)
        last = rows[-1] if rows else max(range(count), key=start.__getitem__)
        reason = f"has not come; this is its last {'in the group' if rows else 'at all'}"
        return Dependency(track_id, last, rank, reason, start[last], end[last])

    def _waiting(self, wait: Wait) -> Dependency | None:
        track_id = self._lanes.own_track_id(wait.rank)
        if track_id is None:
            return None
        start, end, _ = self._results.timeline.times(track_id)
        row = wait.row
        return Dependency(track_id, row, wait.rank, f"waits for rank {wait.for_rank}", start[row], end[row])

    def _last_to_come(self, track_id: int, row: int) -> list[Dependency]:
        """Returns the member that began a collective last, unless it is this one."""
        dump = self._record.dumps[track_id]
        entries = dump.entries
        if entries.is_message[row]:
            return []
        last: tuple[int, int, int] | None = None
        for rank in self._record.groups[entries.group[row]].ranks:
            index = self._lanes.own_track_id(rank)
            other = self._results.verdict.find_entry(rank, entries.group[row], entries.collective[row])
            if index is not None and other is not None:
                begin = self._results.timeline.times(index).start[other]
                last = max(last or (begin, index, other), (begin, index, other))
        if last is None or last[1] == track_id:
            return []
        start, end, _ = self._results.timeline.times(last[1])
        rank = self._record.dumps[last[1]].rank
        return [Dependency(last[1], last[2], rank, "it came last", start[last[2]], end[last[2]])]

    def make_step(self, track_id: int, stream: str | None, of: Dependency) -> Step:
        """Returns the step to a rank; how long its entry takes says nothing of who is late."""
        words = f"{self.dependency_text(track_id, of)}: {of.reason}"
        return Step(of.track_id, self.stream_showing(stream, of), of.start_ns, of.rank, words)

    def dependency_text(self, track_id: int, of: Dependency) -> str:
        return f"rank {of.rank}" if of.span == NONE else super().dependency_text(track_id, of)

    def span_name(self, track_id: int, span: int) -> str:
        if span == NONE:
            return "nothing"
        operation = self._record.dumps[track_id].entries.operation[span]
        return printable_within(short_operation(self._record.names.operations[operation]), 40)

    def stream_showing(self, stream: str | None, of: Dependency) -> str | None:
        return None if stream is None or of.span == NONE else self._lanes.stream_of(of.track_id, of.span)
