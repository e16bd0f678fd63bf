"""The spans of a recording, or of its replay, for formats that write spans: a track is a rank.

Its spans are the operations, then the sub-operations inside them.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from functools import cached_property

from simcore.diagnostics import UsageError, printable
from simcore.measured import MeasuredRun
from simcore.measured.columns import FUSED, INSTANT, MEASURED, UNTIMED, RankTrace
from simcore.measured.device_matching import match_devices
from simcore.measured.facts import stream_name, stream_word
from simcore.measured.iterations import find_iterations
from simcore.measured.vocabulary import buffer_bytes, category_of_group, group_of_op
from simcore.ranks import RankSet, describe_position
from simcore.render.export.format import Request
from simcore.render.export.spans import (
    STEPS,
    ArrivedTransfer,
    Arrow,
    ExportedSpans,
    Fact,
    Threads,
    TrackSpans,
    nested_rows,
)
from simcore.trace.contexts import Recording
from simcore.units import plural

_TIME_SOURCES = {MEASURED: "measured", INSTANT: "launch", UNTIMED: "placed", FUSED: "fused"}


def select_recorded_spans(request: Request, recording: Recording) -> ExportedSpans:
    """Returns the requested ranks, by default all, as measured or replayed.

    Raises `UsageError` for what a trace does not have.
    """
    run, opened = recording.run, request.opened
    name = printable(run.path, 60)
    if request.per_rank:
        raise UsageError(f"--per-rank: {name} is {opened.noun}, which goes into one file")
    if not run.timed:
        raise UsageError(f"FILE {name}: found an order without times, expected a run with times to export")
    ranks = _select_ranks(run, request)
    step = run.shown_step
    tracks = [RankSpans(rank, run.unit, _steps_of(run, rank), step) for rank in ranks]
    facts = {"measured": "true", "step_time_ns": str(run.step_time_ns)}
    if step is not None:
        facts["step"] = str(step)
    if recording.is_replayed:
        facts["replayed"] = "true"
    if not run.concurrent:
        facts["concurrent"] = "false"
    # Only a replay looks for partners.
    diagnostics = request.results.diagnostics[len(opened.diagnostics) :] if recording.is_replayed else ()
    return ExportedSpans(
        run.path, facts, tracks, plural(len(ranks), run.unit), diagnostics,
        " replayed" if recording.is_replayed else " as measured",
        arrows=lambda: _arrows(run, tracks) if run.of_devices else iter(()),
    )  # fmt: skip


def _select_ranks(run: MeasuredRun, request: Request) -> list[RankTrace]:
    """Returns the requested ranks. Raises `UsageError` for one that the run does not have."""
    if request.ranks is None:
        return list(run.ranks)
    rank_by_id = {rank.rank: rank for rank in run.ranks}
    for rank_id in request.ranks:
        if rank_id not in rank_by_id:
            name = printable(run.path, 60)
            raise UsageError(f"--ranks: found {run.unit} {rank_id}, which {name} does not have")
    return [rank_by_id[rank_id] for rank_id in request.ranks]


class RankSpans(TrackSpans):
    """The spans of a rank.

    op_steps: by operation the number of its step, None where all are of one, `step` if it has a number.
    items: their numbers, those of sub-operations after those of all operations; the order of the file by
    default.
    """

    def __init__(
        self,
        rank: RankTrace,
        unit: str,
        op_steps: Sequence[int] | None = None,
        step: int | None = None,
        items: Sequence[int] | None = None,
    ) -> None:
        ops, subs = rank.ops, rank.subs
        self.rank, self.unit, self.op_steps, self.step = rank, unit, op_steps, step
        self.ranks, self.stage = (rank.rank,), rank.stage
        self.start, self.end, self.microbatch = ops.start, ops.end, ops.batch
        if subs.parent:
            self.start, self.end = ops.start + subs.start, ops.end + subs.end
            self.microbatch = ops.batch + array("q", map(ops.batch.__getitem__, subs.parent))
        self.items = range(len(self.start)) if items is None else items
        if items is not None:
            self.start, self.end, self.microbatch = (
                array("q", map(column.__getitem__, items))
                for column in (self.start, self.end, self.microbatch)
            )

    def title(self, rank: int) -> tuple[str, str]:
        words = "" if self.stage is None else f"stage {self.stage}"
        if self.rank.position is not None:
            words = describe_position(self.rank.position)
        return f"{self.unit} {rank}", words

    def kinds(self) -> Sequence[int]:
        # No two are known to be equal.
        return self.items

    def fact(self, span: int) -> Fact:
        item, ops, subs = self.items[span], self.rank.ops, self.rank.subs
        index, parent = item - len(ops), item
        if index < 0:
            kind, name, shape, dtype, time_source = (
                "operation", ops.name[item], ops.shape[item], ops.dtype[item], ops.timing[item]
            )  # fmt: skip
            category, group = ops.category(item), _safe(group_of_op(name, ops.group[item]))
            index = item
        else:
            parent = subs.parent[index]
            kind, name, shape, dtype, time_source = (
                "sub-operation", subs.name[index], subs.shape[index], subs.dtype[index], subs.timing[index]
            )  # fmt: skip
            category, group = category_of_group(subs.group[index]), _safe(subs.group[index])
        size = buffer_bytes(shape, dtype)
        device = self.rank.device
        call = None if device is None else device.collectives.get(item)
        members = RankSet(()) if call is None or call.ranks is None else RankSet.of(call.ranks)
        return Fact(
            kind, group, printable(name), category, index, ops.line[parent], -1 if size is None else size,
            "" if call is None else printable(call.operation), group,
            state=_safe(ops.state[parent]), time_source=_TIME_SOURCES[time_source], ranks=members.text(),
            step=-1 if self.op_steps is None else self.op_steps[parent],
        )  # fmt: skip

    def assign_threads(self, received: Sequence[ArrivedTransfer]) -> tuple[TrackSpans, Threads]:
        """Returns the spans by their starts, of equal starts the longest first; each stream of a device has a
        thread.
        """
        start, end, device = self.start, self.end, self.rank.device
        order = sorted(self.items, key=lambda item: (start[item], -end[item]))
        thread_names: list[tuple[int, str]] = []
        for stream, word in self._streams():
            stream_items = (
                order if device is None else [item for item in order if device.stream[item] == stream]
            )
            rows, first = (
                nested_rows((start[item], end[item]) for item in stream_items),
                len(thread_names) + 1,
            )
            for item, row in zip(stream_items, rows, strict=True):
                self.thread[item] = first + row
            names = (word if row == 0 else f"{word} ({row + 1})" for row in range(max(rows, default=0) + 1))
            thread_names += enumerate(names, first)
        if self.steps():
            thread_names.append((len(thread_names) + 1, STEPS))
        return RankSpans(self.rank, self.unit, self.op_steps, self.step, order), Threads(
            thread_names, [*map(self.thread.__getitem__, order)]
        )

    def steps(self) -> Sequence[tuple[int, int, int]]:
        if self.step is None or self.rank.window is None:
            return self.rank.step_windows
        return ((self.step, *self.rank.window),)

    @cached_property
    def thread(self) -> array[int]:
        """The number of the thread of each span, once threads are assigned."""
        return array("i", bytes(4 * len(self)))

    def _streams(self) -> list[tuple[int, str]]:
        """Returns (number, name) of the streams of the rank."""
        device = self.rank.device
        if device is None:
            return [(0, "operations")]
        word = stream_word(self.rank)
        return [(stream, f"{word} {stream_name(self.rank, stream)}") for stream in sorted(set(device.stream))]


def _steps_of(run: MeasuredRun, rank: RankTrace) -> Sequence[int] | None:
    """Returns by operation the number of its step; None where all are of one."""
    if run.recorded is None and run.iteration is None and run.rank_steps and rank.timed:
        return find_iterations(rank.ops, len(run.rank_steps[0].columns))
    return rank.step


def _arrows(run: MeasuredRun, tracks: Sequence[RankSpans]) -> Iterator[Arrow]:
    """Yields arrows from the last member of each collective to the others, and from sends to their receives.

    Only sends that wait for no other rank have one.
    """
    track_by_rank = {track.rank.rank: track for track in tracks}
    for meeting in match_devices(run.ranks, run.degrees, run.concurrent).meetings:
        all_calls = meeting.calls if meeting.sender is None else (*meeting.calls, meeting.sender)
        calls = [call for call in all_calls if run.ranks[call.rank].rank in track_by_rank]
        if len(calls) < 2:
            continue
        late = meeting.sender or max(
            calls, key=lambda call: (run.ranks[call.rank].ops.start[call.op], -call.rank)
        )
        begins = run.ranks[late.rank].ops.start[late.op]
        ends = {}
        for call in calls:
            rank = run.ranks[call.rank]
            time_ns = max(begins, rank.ops.start[call.op])
            ends[call] = rank.rank, track_by_rank[rank.rank].thread[call.op], time_ns
        yield from ((ends[late], ends[call]) for call in calls if call != late)


def _safe(text: str | None) -> str:
    return "" if text is None else printable(text)
