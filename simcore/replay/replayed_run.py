"""A timed run of a trace, as measured or replayed: the duration of everything under given scales, without
waiting, and all that is computed from it, each figure once.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from simcore.cached_methods import cached_method, forget
from simcore.diagnostics import Diagnostic
from simcore.measured.columns import FUSED, RankTrace
from simcore.measured.matching import Call, CollectiveMatch, name_of
from simcore.measured.rank_positions import MODEL_PARALLEL, find_positions
from simcore.measured.run import MeasuredRun
from simcore.measured.vocabulary import COMPUTE, COPY, category_of_group
from simcore.ranks import RankSet
from simcore.records import NamedTuple, replace
from simcore.replay.idle import HostGap, gaps_of
from simcore.replay.late import LastArrivals, LateArrival, RankWaiting, find_cut_waits, find_waits, waits_of
from simcore.replay.parameters import Replay, Scales, parameters_of
from simcore.replay.partners import Partners, circles_note, unmatched_note
from simcore.replay.path_words import MeasuredPath
from simcore.replay.peers import peers_of
from simcore.sources.measured import measured_graph, measured_trace
from simcore.sources.measured_graph import MeasuredGraph, SegmentTimes, flights
from simcore.sources.rendezvous import Rendezvous, make_rendezvous
from simcore.sources.segments import AWAIT, GAP, MEET, TRANSFER, SegmentColumns
from simcore.trace.contexts import StepShape
from simcore.trace.run import Run
from simcore.trace.spans import Trace
from simcore.trace.tables import Table
from simcore.trace.trace_graph import TraceGraph, compute_slack
from simcore.trace.track import Track, sort_tracks

if TYPE_CHECKING:
    from simcore.trace.gradients import Gradient
    from simcore.trace.slopes import Scale

# What a scale changes: compute; operations of the host; communication; a host gap; communication without a
# partner, whose waiting is not known, so that only a scale of its name changes it; what nothing changes; and
# on devices the time before the step begins on a rank, and copies of memory, which wait for no rank.
_COMPUTE, _HOST, _COMM, _GAP, _UNMATCHED, _CONSTANT, _BEGIN, _COPY = range(8)


# The first words of scales, in the order in which they stand; those of ranks come last.
_FAMILIES = ("compute", "comm", "copies", "host", "op")


class FactorTime(NamedTuple):
    """Time that one factor scales."""

    of: int
    """What it is, one of the constants above."""
    name: str = ""
    """Of the operation."""
    category: str = ""
    """Of communication."""


class Parts(NamedTuple):
    """Which part each duration belongs to, as an id of `part_ids`."""

    part_ids: Mapping[FactorTime, int]
    """Part -> its id."""
    first: Sequence[array[int]]
    """By rank and segment: what a segment does by itself."""
    after: Sequence[array[int]]
    """By rank and segment: what it does once its others have come."""
    meetings: Sequence[int]
    """By collective of several ranks."""
    messages: Sequence[int]
    """By message."""


class Durations:
    """The durations of a graph under any scales.

    The parts are found once, when a replay is requested; a replay costs a look-up for each segment.
    """

    def __init__(self, graph: MeasuredGraph) -> None:
        self.graph = graph
        self.rendezvous = graph.rendezvous
        self._circles = frozenset(graph.circles)

    @cached_property
    def parts(self) -> Parts:
        """The part that each duration belongs to: 2 s for 718,800 kernels; none is needed without scales."""
        graph, matches = self.graph, self.rendezvous.matches
        ranks = range(len(self.rendezvous.segments))
        part_ids: dict[FactorTime, int] = {}

        def id_of(part: FactorTime) -> int:
            return part_ids.setdefault(part, len(part_ids))

        def column(rank: int, ns: Sequence[int], part_of: _PartOf) -> array[int]:
            constant_id = id_of(FactorTime(_CONSTANT))
            parts = (
                id_of(part_of(rank, segment)) if length else constant_id for segment, length in enumerate(ns)
            )
            return array("q", parts)

        return Parts(
            part_ids,
            [column(rank, graph.first_ns[rank], self._first_part) for rank in ranks],
            [column(rank, graph.after_ns[rank], self._comm_part) for rank in ranks],
            [id_of(self._meeting_part(meeting)) for meeting in matches.meetings],
            [id_of(FactorTime(_COMM, self._name(message.send), "pp")) for message in matches.messages],
        )

    @cached_property
    def takes_idle_as_waiting(self) -> bool:
        """Whether the files have cut waiting off: idle time is left to what a rank waits for."""
        from simcore.replay.cut_waits import cuts_waits

        return cuts_waits(self.rendezvous)

    def scaled(self, scales: Scales) -> array[int]:
        """Returns the durations under these scales, ns, as the passes of the graph take them."""
        graph, rendezvous = self.graph, self.rendezvous
        if scales == Scales() and not self.takes_idle_as_waiting:
            return graph.durations(
                graph.first_ns, graph.after_ns, rendezvous.meeting_ns, rendezvous.message_ns
            )
        of = self.parts
        idle = 0.0 if self.takes_idle_as_waiting else 1.0
        factors = [_factor(part, scales) * (idle if part.of == _GAP else 1.0) for part in of.part_ids]
        is_compute = [part.of == _COMPUTE for part in of.part_ids]
        is_gap = [part.of in (_GAP, _BEGIN) for part in of.part_ids]
        first = []
        for rank, (parts, ns) in enumerate(zip(of.first, graph.first_ns, strict=True)):
            trace = rendezvous.run.ranks[rank]
            own = scales.ranks.get(trace.rank, 1.0) * scales.stages.get(trace.stage, 1.0)
            gaps = scales.rank_gaps.get(trace.rank, 1.0)
            of_rank = [
                factor * own if compute else factor * gaps if gap else factor
                for factor, compute, gap in zip(factors, is_compute, is_gap, strict=True)
            ]
            first.append(_column(ns, parts, of_rank))
        return graph.durations(
            first,
            [_column(ns, parts, factors) for ns, parts in zip(graph.after_ns, of.after, strict=True)],
            _column(rendezvous.meeting_ns, of.meetings, factors),
            _column(rendezvous.message_ns, of.messages, factors),
        )

    def scales(self) -> tuple[array[int], Callable[[int], Iterator[Scale]]]:
        """Returns (a kind of each duration, as the passes take them; the scales that apply to a kind).

        A kind is a part of one rank, or of no rank alone: of a collective, of a message.
        """
        from simcore.trace.slopes import NO_KIND, Scale

        ranks, of = self.rendezvous.run.ranks, self.parts
        parts = list(of.part_ids)
        width = len(ranks) + 1
        kind_of = array("i", (NO_KIND,))
        for columns in (of.first, of.after):
            for rank, column in enumerate(columns):
                kind_of.extend(1 + part * width + rank for part in column)
        shared = (*of.meetings, *of.messages)
        kind_of.extend(1 + part * width + len(ranks) for part in shared)
        kind_of.extend([NO_KIND] * self.graph.graph.tracks)

        def scales_of(kind: int) -> Iterator[Scale]:
            part, rank = divmod(kind - 1, width)
            for name in _scale_names(parts[part]):
                yield Scale(_FAMILIES.index(name.split(" ")[0]), part, name)
            if parts[part].of == _COMPUTE and rank < len(ranks):
                yield Scale(len(_FAMILIES), rank, f"rank {ranks[rank].rank}")

        return kind_of, scales_of

    def _name(self, call: Call) -> str:
        return name_of(self.rendezvous.run.ranks[call.rank], call)

    def _meeting_part(self, meeting: CollectiveMatch) -> FactorTime:
        if meeting.kind == MODEL_PARALLEL:
            return FactorTime(_CONSTANT)
        call = meeting.calls[0]
        # How much of a kernel without a partner is waiting is not known.
        is_known = (
            len(meeting.calls) > 1 or meeting.sender is not None or call in self.rendezvous.matches.alone
        )
        of = _COMM if is_known else _UNMATCHED
        return FactorTime(of, self._name(call), category_of_group(meeting.kind))

    def _first_part(self, rank: int, segment: int) -> FactorTime:
        """Returns what a segment does by itself."""
        segments, trace = self.rendezvous.segments[rank], self.rendezvous.run.ranks[rank]
        kind, op, sub = segments.kind[segment], segments.op[segment], segments.sub[segment]
        if kind == GAP:
            # Before its first operation a rank has no host gap: it has not begun.
            if trace.device is not None:
                return FactorTime(_BEGIN if segments.end[segment] <= trace.first_ns else _GAP)
            return FactorTime(_GAP if segment else _CONSTANT)
        if (rank, segment) in self._circles:
            return FactorTime(_UNMATCHED, self._name(Call(rank, op, sub)))
        if kind == TRANSFER:
            # A send and a receive in one have this as the send; the segment has the name of the receive.
            message = segments.message[segment]
            if message >= 0:
                return FactorTime(_COMM, self._name(self.rendezvous.matches.messages[message].send), "pp")
            return self._comm_part(rank, segment)
        name = trace.ops.name[op]
        category = trace.ops.category(op)
        if sub >= 0 or category not in (*COMPUTE, "host"):
            call = Call(rank, op, sub)
            if sub < 0 and category == COPY:
                return FactorTime(_COPY, self._name(call), COPY)
            alone = call in self.rendezvous.matches.alone
            if sub >= 0:
                category = category_of_group(trace.subs.group[sub])
            return FactorTime(_COMM if alone else _UNMATCHED, self._name(call), category)
        return FactorTime(_HOST if category == "host" else _COMPUTE, name)

    def _comm_part(self, rank: int, segment: int) -> FactorTime:
        """Returns the communication of a transfer, or of a collective with its members."""
        segments = self.rendezvous.segments[rank]
        category = "pp"
        if segments.kind[segment] in (MEET, AWAIT):
            category = category_of_group(self.rendezvous.matches.meetings[segments.meeting[segment]].kind)
        return FactorTime(
            _COMM, self._name(Call(rank, segments.op[segment], segments.sub[segment])), category
        )


def _scale_names(part: FactorTime) -> list[str]:
    """Returns the scales that apply to a part, as gradients name them."""
    if part.of in (_CONSTANT, _GAP, _BEGIN):
        return ["host gaps"] if part.of == _GAP else []
    by_name = f"op {part.name}"
    if part.of == _COMM:
        return ["comm", f"comm {part.category}", by_name]
    names_by_kind = {_COMPUTE: ["compute"], _HOST: ["host operations"], _COPY: ["copies"], _UNMATCHED: []}
    return names_by_kind[part.of] + [by_name]


class _PartOf(Protocol):
    def __call__(self, rank: int, segment: int, /) -> FactorTime: ...


def _factor(part: FactorTime, scales: Scales) -> float:
    by_name = scales.ops.get(part.name, 1.0)
    if part.of == _COMPUTE:
        return scales.compute * by_name
    if part.of == _HOST:
        return scales.host * by_name
    if part.of == _COMM:
        return scales.comm * scales.kinds.get(part.category, 1.0) * by_name
    if part.of == _COPY:
        return scales.kinds.get(COPY, 1.0) * by_name
    return {_GAP: scales.gaps, _UNMATCHED: by_name}.get(part.of, 1.0)


def _column(ns: Sequence[int], parts: Sequence[int], factors: Sequence[float]) -> array[int]:
    """Returns each duration times the factor of its part, rounded half to even; 1 leaves large ints exact."""
    return array(
        "q",
        (
            length if not length or (factor := factors[part]) == 1.0 else round(length * factor)
            for length, part in zip(ns, parts, strict=True)
        ),
    )


class ReplayedRun(Run):
    """A run as measured or, with `scales`, replayed; its own recording: see `Recording`."""

    def __init__(
        self,
        measured: MeasuredRun,
        scales: Scales | None = None,
        durations: Durations | None = None,
        setup: Replay | None = None,
    ) -> None:
        """measured: the run of the files. scales: None for the times as measured. durations: shared by the
        replays of one graph. setup: the requested replay, with its parameters as stated.
        """
        self.measured, self.scales, self._durations, self._setup = measured, scales, durations, setup
        self.timed = measured.timed

    @cached_property
    def durations(self) -> Durations:
        """The duration of everything, under any scales."""
        return self._durations or Durations(MeasuredGraph(make_rendezvous(self.measured)))

    @property
    def rendezvous(self) -> Rendezvous:
        """The segments of the run, and which of them meet."""
        return self.durations.rendezvous

    @cached_property
    def graph(self) -> MeasuredGraph:
        """Who waits for whom; measured ranks that did not run together wait for nobody."""
        if self.scales is None and not self.measured.concurrent:
            return MeasuredGraph(self.rendezvous, together=False)
        return self.durations.graph

    @cached_property
    def durations_ns(self) -> array[int]:
        """The durations of the nodes of the replay's graph, ns."""
        return self.durations.scaled(self.scales or Scales())

    @cached_property
    def ends(self) -> array[int]:
        """When each node of the graph ends, ns. Raises OverflowError for 2^63 ns or more."""
        if self.scales is None:
            return self.graph.measured_ends
        replayed_ends = self.graph.graph.ends(self.durations_ns)
        ends = replayed_ends if isinstance(replayed_ends, array) else array("q", replayed_ends)
        # One column is enough where the clocks allow an exact replay.
        return self.graph.measured_ends if ends == self.graph.measured_ends else ends

    @cached_property
    def causing_ends(self) -> array[int]:
        """The ends by which one waits for another, ns: those of the replay where files have cut waiting off,
        so that a rank that waited seems to have held itself.
        """
        return self.base.ends if self.has_cut_waits else self.ends

    @property
    def has_cut_waits(self) -> bool:
        """Whether its times are those of files that have cut waiting off."""
        return self.scales is None and self.together and self.durations.takes_idle_as_waiting

    @cached_property
    def times(self) -> SegmentTimes:
        """When the segments start and end."""
        return self.graph.times(self.ends)

    @cached_property
    def base(self) -> ReplayedRun:
        """The replay with the scales of this run and no further change, from which what-if starts."""
        return self if self.scales is not None else self.with_scales(Scales())

    @cached_property
    def gradients(self) -> list[Gradient]:
        """The gradients of `base`; a scale that applies to nothing is left out."""
        from simcore.trace.slopes import compute_gradients

        kind_of, scales_of = self.durations.scales()
        return compute_gradients(self.base.trace_graph, self.base.durations_ns, kind_of, scales_of)

    def _make_graph(self, cancelled: Callable[[], bool]) -> TraceGraph:
        replayed_ends = self.causing_ends if self.has_cut_waits else None
        return measured_graph(
            self.graph, self.ends, self.step_time_ns, lambda: self.durations_ns, replayed_ends
        )

    @cached_method
    def compute_slacks(self, cancelled: Callable[[], bool]) -> Sequence[array[int]] | None:
        """Returns the slacks of `base`; the message of a send ends with it."""
        graph = self.base.trace_graph
        slacks = compute_slack(graph, cancelled)
        if self.base is not self:
            # Of a million kernels 32 MB, which are found again in a tenth of a second.
            forget(graph, "durations")
            forget(self.base, "durations_ns")
        return slacks

    @cached_property
    def gaps(self) -> list[list[HostGap]]:
        """For each rank the times in which its device ran nothing, by start, where its trace says what its
        host did then; none for a replay, whose gaps are others.
        """
        replayed = self.scales is not None or self.measured.replayed
        return [[] if replayed else gaps_of(rank) for rank in self.measured.ranks]

    @property
    def together(self) -> bool:
        """Whether its ranks have a common time, so that one can be seen to wait for another."""
        return self.graph.together

    @cached_property
    def tracks(self) -> tuple[Track, ...]:
        """A track for each rank, by stage and then by rank."""
        run = self.measured
        tracks = []
        for index, seat in enumerate(find_positions(run.ranks, run.degrees).positions):
            rank = run.ranks[index]
            position = None
            if seat is not None and seat.dp is not None and seat.tp is not None:
                position = (seat.stage, seat.dp, seat.tp)
            stage = rank.stage if seat is None else seat.stage
            tracks.append(Track(index, stage, RankSet.of([rank.rank]), position))
        return sort_tracks(tracks)

    @cached_property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Those of the files, and what happens to communication without a partner."""
        if not self.measured.timed:
            return self.measured.diagnostics
        replayed = self.scales is not None
        notes = unmatched_note(self.measured, self.rendezvous.matches, replayed)
        return (*self.measured.diagnostics, *notes, *circles_note(self.graph))

    @cached_property
    def partners(self) -> Partners:
        """Which ranks the missing partners of communication would be."""
        matches = self.rendezvous.matches
        return Partners(self.measured, matches, frozenset(matches.unmatched))

    @property
    def is_replayed(self) -> bool:
        """Whether it is a replay."""
        return self.scales is not None

    @property
    def changes(self) -> list[str]:
        """What the replay changes, in words."""
        return [] if self.scales is None else self.scales.changes()

    @property
    def measured_step_ns(self) -> int:
        """The step time as measured, ns."""
        return self.measured.step_time_ns

    @cached_property
    def shape(self) -> StepShape:
        """Its degrees and micro-batches, where the trace states them."""
        degrees = find_positions(self.measured.ranks, self.measured.degrees).degrees
        degree_values = degrees.tp, degrees.dp, degrees.pp
        shape = StepShape(self.step_time_ns, self.tracks, degree_values, self.measured.microbatches)
        shape.measured = True
        return shape

    @property
    def step_time_ns(self) -> int:
        """When the last rank's last operation ends, ns; 0 of an order without times."""
        if self.scales is None:
            return self.measured.step_time_ns
        return max(self.ends[nodes[-1]] if nodes else 0 for nodes in self.graph.end_nodes)

    @cached_property
    def run(self) -> MeasuredRun:
        """The run with these times, as the lanes show it."""
        if self.scales is None:
            return self.measured
        flight_times: list[dict[int, tuple[int, int]]] = [{} for _ in self.all_ranks]
        if self.measured.of_devices:
            flight_times = [
                {flight.op: (flight.start, flight.end) for flight in flights(self.graph, self.ends, rank)}
                for rank in self.all_ranks
            ]
        ranks = tuple(
            _replay_rank(rank, segments, start, end, rank_flights)
            for rank, segments, start, end, rank_flights in zip(
                self.measured.ranks,
                self.rendezvous.segments,
                self.times.start,
                self.times.end,
                flight_times,
                strict=True,
            )
        )
        return replace(
            self.measured, ranks=ranks, concurrent=True, diagnostics=self.diagnostics, replayed=True
        )

    @cached_property
    def trace(self) -> Trace:
        """What ran on each rank: a span is a segment."""
        return measured_trace(self.graph, self.ends, self.step_time_ns, self.measured.ranks)

    @cached_property
    def operations(self) -> Table:
        """What operations and sub-operations take, by (operation, sub-operation or None)."""
        return _OperationTable(self)

    @property
    def all_ranks(self) -> range:
        """All ranks by their indices in the run."""
        return range(len(self.measured.ranks))

    @cached_property
    def waiting(self) -> list[RankWaiting]:
        """Who waits for whom, the longest first; empty where the ranks have no common time."""
        return find_waits(self.rendezvous, map(self.waits_of, self.all_ranks))

    @cached_property
    def last_arrivals(self) -> LastArrivals:
        """The rank that comes last to each collective."""
        return LastArrivals(self.graph, self.ends)

    def waits_of(self, rank: int) -> Iterable[LateArrival]:
        """Returns each time that a rank (its index) waits for another, in order; where the files have cut
        waiting off, the idle time that was it.
        """
        if not self.has_cut_waits:
            return waits_of(self.last_arrivals, rank, self.accounts[rank])
        return self._cut_waits[rank]

    @cached_property
    def _cut_waits(self) -> list[list[LateArrival]]:
        return find_cut_waits(LastArrivals(self.graph, self.causing_ends), self.accounts)

    @cached_property
    def path_source(self) -> MeasuredPath:
        """The words of its critical path."""
        return MeasuredPath(self)

    @property
    def setup(self) -> Replay:
        """The replay that was requested."""
        return self._setup or Replay(self.measured, parameters_of(self.scales))

    def with_names(self, measured: MeasuredRun) -> ReplayedRun:
        """Returns the same replay with other names of operations. measured: the run that has them."""
        return type(self)(measured, self.scales, self.durations, self._setup)

    def with_scales(self, scales: Scales) -> ReplayedRun:
        """Returns the replay of the same run with other scales."""
        return type(self)(self.measured, scales, self.durations)

    @cached_property
    def peers(self) -> list[tuple[int, ...]]:
        """The peers of each rank, as indices: the ranks that do the same part of the work."""
        return peers_of(self.rendezvous)


class _OperationTable(Table):
    """The table of the operations of a run, which asks the words of its path for what is on it."""

    def __init__(self, results: ReplayedRun) -> None:
        super().__init__(
            results.trace, results.accounts, results.trace.column("operation"),
            lambda: results.critical_path, lambda: results.slacks,
        )  # fmt: skip
        self._results = results

    @cached_property
    def critical_by_track(self) -> list[dict[int, int]]:
        return self._results.path_source.sum_labels(self._results.critical_path)


def _replay_rank(
    rank: RankTrace,
    segments: SegmentColumns,
    start: array[int],
    end: array[int],
    flight_times: Mapping[int, tuple[int, int]],
) -> RankTrace:
    """Returns a rank with the times of its segments; what has no segment of its own keeps its position inside
    one.

    flight_times: (start, end) of the operations that overlap the segments.
    """
    moves = _Moves(segments, start, end)
    ops, subs = rank.ops, rank.subs
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    sub_times: dict[int, tuple[int, int]] = {}
    for segment, op in enumerate(segments.op):
        if segments.kind[segment] == GAP:
            continue
        first.setdefault(op, start[segment])
        last[op] = end[segment]
        sub = segments.sub[segment]
        if sub >= 0:
            begin = (
                sub_times[sub][0] if segments.kind[segment] == AWAIT and sub in sub_times else start[segment]
            )
            sub_times[sub] = (begin, end[segment])
    spans = {(ops.start[op], ops.end[op]): (first[op], last[op]) for op in first}
    op_times = []
    for op, timing in enumerate(ops.timing):
        measured = (ops.start[op], ops.end[op])
        if op in flight_times:
            op_times.append(flight_times[op])
        elif op in first:
            op_times.append((first[op], last[op]))
        elif timing == FUSED and measured in spans:
            op_times.append(spans[measured])
        else:
            op_times.append((moves.time(measured[0]), moves.time(measured[1])))
    all_subs = [
        sub_times.get(sub) or (moves.time(begin), moves.time(over))
        for sub, (begin, over) in enumerate(zip(subs.start, subs.end, strict=True))
    ]
    op_start, op_end = _columns(op_times)
    sub_start, sub_end = _columns(all_subs)
    replayed_ops = replace(ops, start=op_start, end=op_end)
    window = None if rank.window is None else (moves.time(rank.window[0]), end[-1] if end else 0)
    windows = tuple((step, moves.time(begin), moves.time(over)) for step, begin, over in rank.step_windows)
    replayed_subs = replace(subs, start=sub_start, end=sub_end)
    return replace(rank, ops=replayed_ops, subs=replayed_subs, window=window, step_windows=windows)


def _columns(spans: list[tuple[int, int]]) -> tuple[array[int], array[int]]:
    return array("q", (start for start, _ in spans)), array("q", (end for _, end in spans))


class _Moves:
    """Maps a time of the measured rank to the replay: segments grow and shrink evenly."""

    def __init__(self, segments: SegmentColumns, start: array[int], end: array[int]) -> None:
        self.segments = segments
        self.start = start
        self.end = end

    def time(self, ns: int) -> int:
        """Returns the replayed time of a measured one."""
        segment = bisect_right(self.segments.start, ns) - 1
        if segment < 0:
            return ns
        begin, over = self.segments.start[segment], self.segments.end[segment]
        inside = min(ns, over) - begin
        length = self.end[segment] - self.start[segment]
        return self.start[segment] + (inside * length // (over - begin) if over > begin else 0)
