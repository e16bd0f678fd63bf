"""Words of a span of a measured run: what it is, on which rank and when, what the file says of it, for whom
it waits, what it waited for and what waits for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from simcore.collectives import algorithm_bandwidth
from simcore.diagnostics import printable_within
from simcore.kernel_names import short_name
from simcore.measured.columns import FUSED, INSTANT, MEASURED, UNTIMED, RankTrace
from simcore.measured.facts import (
    SpanFacts,
    device_facts,
    host_facts,
    launch_of,
    launched_in,
    neighbours,
    no_bandwidth,
    span_facts,
)
from simcore.measured.lanes import COPIES_LANE, HOST_LANE, NO_GROUP, STREAM_LANE, host_item, host_lane
from simcore.measured.matching import Call
from simcore.measured.vocabulary import COMPUTE, COPY, group_of_op
from simcore.ranks import RankSet, describe_position
from simcore.replay.idle import (
    CALL,
    call_lane,
    called_words,
    gap_in,
    gap_words,
    part_words,
    thread_words,
    was_queued,
)
from simcore.replay.path_words import is_gap, segment_facts
from simcore.replay.segment_names import segment_name
from simcore.replay.waits import Wait, waits_by_item
from simcore.sources.rendezvous import NONE
from simcore.sources.segments import GAP
from simcore.trace.findings import Dependency, Step
from simcore.trace.graph import BEFORE, BUSY, RECEIVED, START, Cause
from simcore.trace.lane_spans import COMPUTE_STREAM, SpanSummary, microbatch_words
from simcore.trace.lanes import Lanes, SpanWords
from simcore.trace.reasons import Facts, reason_words
from simcore.trace.trace_graph import Neighbours
from simcore.units import byte_size, duration, plural

if TYPE_CHECKING:
    from simcore.replay.replayed_run import ReplayedRun


def segments_of_item(results: ReplayedRun, rank: int, item: int, span: tuple[int, int]) -> list[int]:
    """Returns the segments of an item of a lane (`LaneSpans`), ascending; for a gap those in its span."""
    segments, count = results.rendezvous.segments[rank], len(results.measured.ranks[rank].ops)
    if item >= count:
        return [index for index, sub in enumerate(segments.sub) if sub == item - count]
    if item >= 0:
        return [index for index, op in enumerate(segments.op) if op == item and segments.kind[index] != GAP]
    start, end = results.times.start[rank], results.times.end[rank]
    return [
        index
        for index, kind in enumerate(segments.kind)
        if kind == GAP and span[0] <= start[index] and end[index] <= span[1]
    ]


def find_causes(results: ReplayedRun, rank: int, own_segments: list[int]) -> list[Dependency]:
    """Returns what the segments of one operation waited for: first what its begin waited for."""
    if not own_segments:
        return []
    before = (
        [_dependency(results, rank, own_segments[0] - 1, _order_words(results, rank, own_segments[0] - 1))]
        if own_segments[0]
        else []
    )
    first, *inner = (_waited_for(results, rank, segment) for segment in own_segments)
    return [
        *first,
        *before,
        *(of for dependencies in inner for of in dependencies),
    ]


def find_effects(results: ReplayedRun, rank: int, own_segments: list[int]) -> list[Dependency]:
    """Returns what waits for the segments of one operation: other ranks, then what its rank does next."""
    if not own_segments:
        return []
    graph, ends = results.graph, results.causing_ends
    dependencies: list[Dependency] = []
    for segment in reversed(own_segments):
        dependencies += _find_receives(results, rank, segment)
        nodes = {
            cause.node for cause in graph.graph.find_blockers(graph.end_nodes[rank][segment], ends, rank)
        }
        if (
            graph.can_wait(rank, segment)
            and (meeting := results.rendezvous.segments[rank].meeting[segment]) != NONE
        ):
            nodes.add(graph.meetings[meeting])
        for node in sorted(nodes):
            for follower in graph.graph.find_effects(node, ends):
                dependencies += _waiting_members(results, rank, node, follower)
    after = own_segments[-1] + 1
    if after < len(graph.end_nodes[rank]):
        dependencies.append(_dependency(results, rank, after, _order_words(results, rank, own_segments[-1])))
    return list(dict.fromkeys(dependencies))


def _waited_for(results: ReplayedRun, rank: int, segment: int) -> list[Dependency]:
    """Returns what had to end before a segment could end, as the critical path has it."""
    graph, of, meeting = (
        results.graph,
        results.trace_graph,
        results.rendezvous.segments[rank].meeting[segment],
    )
    node = START if meeting == NONE else graph.meetings[meeting]
    dependencies = []
    for cause in graph.find_causes(rank, segment, results.causing_ends):
        words = _words(results, Neighbours(node, rank, cause))
        dependencies.append(_dependency(results, *of.span_of_cause(cause), words))
    return dependencies


def _dependency(results: ReplayedRun, rank: int, segment: int, reason: str) -> Dependency:
    times, rank_id = results.times, results.measured.ranks[rank].rank
    return Dependency(rank, segment, rank_id, reason, times.start[rank][segment], times.end[rank][segment])


def _words(results: ReplayedRun, pair: Neighbours) -> str:
    return reason_words(segment_facts(results.trace_graph, results.rendezvous, pair))


def _order_words(results: ReplayedRun, rank: int, segment: int) -> str:
    """Returns why the next segment of the same rank could not begin earlier."""
    return reason_words(Facts(BEFORE, was_idle=is_gap(results.rendezvous, rank, segment)))


def _find_receives(results: ReplayedRun, rank: int, segment: int) -> list[Dependency]:
    """Returns the receive of what a segment sends."""
    message = results.rendezvous.segments[rank].message[segment]
    if message == NONE:
        return []
    receiver, receiving = results.rendezvous.transfers[message][1]
    facts = Facts(RECEIVED, rank=results.trace_graph.ranks[rank])
    return [_dependency(results, receiver, receiving, reason_words(facts))]


def _waiting_members(results: ReplayedRun, rank: int, node: int, meeting: int) -> list[Dependency]:
    """Returns the members of a collective (a node) that wait in it because a node of this rank ended."""
    graph, ends = results.graph, results.ends
    meeting_index = graph.meeting_of(meeting)
    dependencies = []
    for who, _, waits in graph.rendezvous.members[meeting_index] if meeting_index != NONE else ():
        member_causes: list[Cause] = graph.find_causes(who, waits, ends)
        for cause in member_causes:
            if cause.node == node and (cause.why != BUSY or who == rank):
                words = _words(results, Neighbours(meeting, who, cause))
                dependencies.append(_dependency(results, who, waits, words))
    return dependencies


# So many operations launched by one host operation are listed one by one.
_LAUNCHES = 8
_UNKNOWN_LENGTH = {
    INSTANT: "an instant: no duration in the file",
    UNTIMED: "no time in the file: it stands behind the operation before it",
}


class MeasuredSpanWords(SpanWords):
    """The words of the spans of a measured or replayed run."""

    def __init__(self, results: ReplayedRun, lanes: Lanes) -> None:
        super().__init__(lanes)
        self._results, self._run = results, results.run

    # -- in few words ------------------------------------------------------------------

    def summarize(self, track_id: int, stream: str | None, index: int | None, ranks: RankSet) -> SpanSummary:
        rank, axis = self._run.ranks[track_id], self._axis
        whose = self._whose(rank)
        if len(ranks) > 1:
            # The words are of one of several equal ranks.
            equal_words = f", of {self._run.unit}s {ranks.text()} {self._lanes.facts.similar_text}"
            whose = (f"{whose[-1]}{equal_words}", whose[-1])
        if index is None:
            return SpanSummary("", whose)
        spans = self._lanes.spans(track_id, stream)
        start, end, item = spans.start[index], spans.end[index], spans.op[index]
        if item < 0:
            times = self.format_times(start, end)
            reason = self._gap_reason(track_id, start, end) or self._queue_reason(rank, spans.op, index)
            more = ", ".join(filter(None, (reason, self._before(rank, start))))
            return SpanSummary(_gap_words(rank, item), whose, times, axis.length(end - start), details=more)
        facts = span_facts(rank, item)
        length = ""
        if not self._run.timed:
            times = axis.clock(facts.start_ns)
        elif facts.timing in (MEASURED, FUSED):
            times = self.format_times(facts.start_ns, facts.end_ns)
            length = axis.length(facts.end_ns - facts.start_ns)
        else:
            times = f"{axis.clock(facts.start_ns)}   {_UNKNOWN_LENGTH[facts.timing]}"
        return SpanSummary(
            _span_words(facts), whose, times, length, details=", ".join(self._file_facts(rank, item, facts))
        )

    def _before(self, rank: RankTrace, start_ns: int) -> str:
        """Returns when a rank begins the step, for the gap before that; what it does until then."""
        recorded = self._run.recorded
        if rank.window is None or recorded is None or recorded.step is None or rank.window[0] <= start_ns:
            return ""
        begin = self._axis.clock(rank.window[0])
        if rank.ahead_ns:
            return f"at the step before until {begin}"
        return f"its host begins step {recorded.step} at {begin}"

    def _gap_reason(self, track_id: int, start: int, end: int) -> str:
        """Returns why a rank runs nothing in a span of its lane; "" where its trace does not say."""
        gap = gap_in(self._results.gaps[track_id], start, end)
        if gap is None:
            return ""
        part = "" if gap.ns == end - start else f"{self._axis.length(gap.ns)} of it: "
        return f"{part}{gap_words(gap)}"

    @staticmethod
    def _queue_reason(rank: RankTrace, ops: Sequence[int], index: int) -> str:
        """Returns whether the operation behind a span without one was queued; "" where the trace does not
        say.
        """
        if not 0 < index < len(ops) - 1 or ops[index - 1] < 0 or ops[index + 1] < 0:
            return ""
        is_queued = was_queued(rank, ops[index - 1], ops[index + 1])
        return "" if is_queued is None else reason_words(Facts(BEFORE, idles=True, is_queued=is_queued))

    def _whose(self, rank: RankTrace) -> tuple[str, ...]:
        if self._run.unit != "rank":
            return (f"{self._run.unit} {rank.rank}",)
        position = self._run.degrees.position(rank.rank)
        few = f"rank {rank.rank}"
        if position is not None:
            return f"{few} = {describe_position(position)}", few
        return (few,) if rank.stage is None else (f"{few}, stage {rank.stage}", few)

    def _file_facts(self, rank: RankTrace, item: int, facts: SpanFacts) -> list[str]:
        """Returns what the file states besides times."""
        parts = []
        if facts.state is not None:
            parts.append(f"state {printable_within(facts.state, 20)}")
        if facts.bytes is not None:
            parts.append(
                f"{byte_size(facts.bytes)} = {printable_within(facts.shape or '', 60)} {_dtype(facts)}"
            )
        if facts.subs:
            length = f", {duration(facts.subs_ns)} together" if self._run.timed else ""
            parts.append(f"{plural(facts.subs, 'sub-operation')}{length}")
        if facts.description is not None:
            parts.append(printable_within(facts.description, 100))
        if rank.device is not None:
            more_facts = [*device_facts(rank, item), *host_facts(rank, item)]
            return parts + [f"{name} {printable_within(words, 60)}" for name, words in more_facts]
        parts.append(f"line {facts.line}" + (" of its file" if facts.path != self._run.path else ""))
        return parts

    def side_note(self, track_id: int, stream: str | None, index: int, wide: bool, rank: int | None) -> str:
        item = self.op(track_id, stream, index)
        parts = [self._wait_words(self._waits_of(track_id, item))]
        if len(self._run.missing):
            # Where no rank is known to be missing the note is enough.
            parts.append(self._partner_words(track_id, item))
        return "; ".join(filter(None, parts))

    # -- in full -----------------------------------------------------------------------

    def detail_rows(
        self, track_id: int, stream: str | None, index: int, rank: int | None
    ) -> list[tuple[str, str]]:
        trace, axis = self._run.ranks[track_id], self._axis
        spans = self._lanes.spans(track_id, stream)
        start, end, item = spans.start[index], spans.end[index], spans.op[index]
        whose = (
            self._lanes.rank_words(trace.rank)
            if self._run.unit == "rank"
            else f"{self._run.unit} {trace.rank}"
        )
        if item < 0:
            before, after = neighbours(trace, item)
            why = self._gap_reason(track_id, start, end)
            return [
                ("idle", f"{self.format_times(start, end)}, {axis.length(end - start)}"),
                ("on", whose),
                ("after", printable_within(before or "nothing", 80)),
                ("before", printable_within(after or "nothing", 80)),
                *([("because", why)] if why else []),
            ]
        facts = span_facts(trace, item)
        rows = [("operation", short_name(facts.name, 80)), ("on", whose), ("kind", facts.category)]
        if facts.timing in (MEASURED, FUSED) and self._run.timed:
            rows.append(("runs", self.format_times_and_length(facts.start_ns, facts.end_ns)))
        else:
            ending = ", an instant" if facts.timing == INSTANT else ""
            rows.append(("stands at", axis.clock(facts.start_ns) + ending))
        if facts.parent is not None:
            rows.append(("inside", printable_within(facts.parent, 80)))
        if facts.collective is not None:
            rows.append(("collective", printable_within(facts.collective, 80)))
        if facts.batch >= 0:
            rows.append(("micro-batch", microbatch_words(facts.batch, self._run.microbatches)))
        if facts.state is not None:
            rows.append(("state", printable_within(facts.state, 80)))
        if facts.bytes is not None:
            shape = printable_within(facts.shape or "", 80)
            rows.append(("volume", f"{byte_size(facts.bytes)} = {shape} {_dtype(facts)}"))
        if reason := no_bandwidth(trace, item):
            rows.append(("bandwidth", f"not known: {reason}"))
        elif bandwidth := _bandwidth(facts):
            rows.append(("bandwidth", bandwidth))
        if facts.subs:
            words = f"{plural(facts.subs, 'sub-operation')}, {duration(facts.subs_ns)} together"
            rows.append(("inside it", words))
        if facts.description is not None:
            rows.append(("description", printable_within(facts.description, 200)))
        rows += [("waits", self._one_wait_words(wait)) for wait in self._waits_of(track_id, item)]
        if partner := self._partner_words(track_id, item):
            rows.append(("partner", f"{partner}: what is waited here is not known"))
        rows += self.dependency_rows(track_id, stream, index, rank)
        more_facts = [*device_facts(trace, item), *host_facts(trace, item)]
        rows += [(name, printable_within(words, 200)) for name, words in more_facts]
        where = "line" if trace.device is None else trace.device.line_noun
        rows.append((where, f"{facts.line} of {printable_within(facts.path)}"))
        return rows

    def _partner_words(self, track_id: int, item: int) -> str:
        """Returns why communication has no partner here; "" where it has or needs none."""
        if item < 0 or not self._run.timed or host_item(self._run.ranks[track_id], item) is not None:
            return ""
        trace = self._results.measured.ranks[track_id]
        count = len(trace.ops)
        if item < count:
            return self._results.partners.words(Call(track_id, item))
        return self._results.partners.words(Call(track_id, trace.subs.parent[item - count], item - count))

    # -- for whom it waits ---------------------------------------------------------------

    def _waits_of(self, track_id: int, item: int) -> list[Wait]:
        return waits_by_item(self._results, track_id).get(item, []) if self._run.timed else []

    def _wait_words(self, waits: Sequence[Wait]) -> str:
        """Returns `waits 1.291 s for rank 0`; for several waits the sum, and who is waited for longest."""
        if not waits:
            return ""
        late: dict[int, int] = {}
        for wait in waits:
            late[wait.late] = late.get(wait.late, 0) + wait.ns
        most = max(late, key=lambda rank: late[rank])
        rank = f"for rank {self._results.measured.ranks[most].rank}"
        return f"waits {duration(sum(late.values()))}{f' {rank}' if len(late) == 1 else f', most {rank}'}"

    def _one_wait_words(self, wait: Wait) -> str:
        """Returns how long and where the wait is, for whom, and what that rank did before."""
        rank = self._results.measured.ranks[wait.late]
        who = f"rank {rank.rank}" + ("" if rank.stage is None else f" of stage {rank.stage}")
        often = f", {wait.times} times" if wait.times > 1 else ""
        does = "sends" if wait.sends else "comes last"
        behind = f", behind {short_name(wait.after, 40)}" if wait.after else ""
        name = short_name(wait.name, 40)
        return f"{duration(wait.ns)} for {who} in {name}{often}: it {does}{behind}"

    # -- what waits for what -----------------------------------------------------------

    def find_steps(
        self, track_id: int, stream: str | None, index: int, rank: int | None, direction: int
    ) -> list[Step]:
        binding = self.dependencies(track_id, stream, index, rank, direction)
        steps = [self.make_step(track_id, stream, of) for of in binding]
        launches = self._launch_steps(track_id, stream, index, direction)
        if direction < 0:
            steps = [*self._call_steps(track_id, stream, index), *steps]
        if direction < 0 and binding and launches:
            first = binding[0]
            # It was launched while nothing ran: its stream was free, so the launch is what it waited for.
            was_idle = is_gap(self._results.rendezvous, first.track_id, first.span)
            if was_idle and first.track_id == track_id and launches[0].start_ns >= steps[0].start_ns:
                return [*launches, *steps]
        return [*steps, *launches]

    def _call_steps(self, track_id: int, stream: str | None, index: int) -> list[Step]:
        """Returns the call that the host was in during a gap, in the lane that has it, if any."""
        trace, spans = self._run.ranks[track_id], self._lanes.spans(track_id, stream)
        if spans.op[index] >= 0:
            return []
        gap = gap_in(self._results.gaps[track_id], spans.start[index], spans.end[index])
        if gap is None or gap.cause != CALL:
            return []
        start = max(gap.begin, trace.first_ns)
        words = (
            f"{called_words(gap)} on {thread_words(gap)}, {duration(gap.over - gap.begin)}: "
            f"its host is in it for {part_words(gap.covered_ns, gap.ns)} of the gap"
        )
        return [Step(track_id, call_lane(trace, gap), start, trace.rank, words)]

    def dependency_words(
        self, track_id: int, stream: str | None, index: int, rank: int | None, direction: int
    ) -> list[str]:
        """Returns the dependencies, equal ones in one line: `linear_fwd, rank 1, 7 times, 5.2 ms: ...`."""
        sums: dict[tuple[str, str], list[int]] = {}
        for of in self.dependencies(track_id, stream, index, rank, direction):
            both = sums.setdefault((self.dependency_text(track_id, of), of.reason), [0, 0])
            both[0] += of.end_ns - of.start_ns
            both[1] += 1
        words = [
            f"{name}, {f'{count} times, ' if count > 1 else ''}{duration(ns)}: {reason}"
            for (name, reason), (ns, count) in sums.items()
        ]
        launches = self._launch_steps(track_id, stream, index, direction)
        more = [f"and {len(launches) - _LAUNCHES} more"] if len(launches) > _LAUNCHES else []
        return [*words, *(launch.words for launch in launches[:_LAUNCHES]), *more]

    def _launch_steps(self, track_id: int, stream: str | None, index: int, direction: int) -> list[Step]:
        """Returns what the host did to launch an operation of a device, or what an operation of the host
        launched.
        """
        trace = self._run.ranks[track_id]
        if self._run.replayed or trace.device is None or trace.device.host is None:
            return []
        host, item = trace.device.host, self.op(track_id, stream, index)
        host_index = host_item(trace, item)
        if host_index is not None:
            if direction < 0:
                return []
            return [
                Step(
                    track_id, f"{STREAM_LANE}{trace.device.stream[op]}", trace.ops.start[op], trace.rank,
                    f"{short_name(trace.ops.name[op], 40)}, "
                    f"{duration(trace.ops.start[op] - host.launch[op])} behind its launch: launched here",
                )
                for op in launched_in(host, host_index)
            ]  # fmt: skip
        launch = launch_of(trace, item) if direction < 0 else None
        if launch is None or launch[0] < trace.first_ns:
            return []
        time, thread, around = launch
        lane = host_lane(host, thread) if around is not None else None
        name = "its launch" if around is None else short_name(host.lane.columns.name[around], 40)
        words = (
            f"{name} on {HOST_LANE}thread {printable_within(host.threads[thread], 20)}, "
            f"{duration(trace.ops.start[item] - time)} before: it was launched there"
        )
        return [Step(track_id, lane, time, trace.rank, words)]

    def dependencies(
        self, track_id: int, stream: str | None, index: int, rank: int | None, direction: int
    ) -> list[Dependency]:
        item = self.op(track_id, stream, index)
        if not self._run.timed or host_item(self._run.ranks[track_id], item) is not None:
            return []
        spans = self._lanes.spans(track_id, stream)
        span = spans.start[index], spans.end[index]
        own = segments_of_item(self._results, track_id, item, span)
        return (find_effects if direction > 0 else find_causes)(self._results, track_id, own)

    def span_name(self, track_id: int, span: int) -> str:
        return short_name(segment_name(self._results, track_id, span), 40)

    def stream_showing(self, stream: str | None, of: Dependency) -> str | None:
        """Returns the stream whose lane shows a dependency; None for a gap, which its rank's lane alone
        shows.
        """
        segments, trace = self._results.rendezvous.segments[of.track_id], self._run.ranks[of.track_id]
        if stream is None or segments.kind[of.span] == GAP:
            return None
        op, sub = segments.op[of.span], segments.sub[of.span]
        if sub >= 0:
            return trace.subs.group[sub] or NO_GROUP
        category = trace.ops.category(op)
        if category in (*COMPUTE, "host"):
            return COMPUTE_STREAM
        return COPIES_LANE if category == COPY else group_of_op(trace.ops.name[op], trace.ops.group[op])


def _dtype(facts: SpanFacts) -> str:
    return printable_within((facts.dtype or "").removeprefix("torch."), 20)


def _gap_words(rank: RankTrace, item: int) -> str:
    before, after = neighbours(rank, item)
    if before is None:
        return f"not running yet, the first operation is {short_name(after or '-', 40)}"
    if after is None:
        return f"over, the last operation was {short_name(before, 40)}"
    return f"host gap between {short_name(before, 40)} and {short_name(after, 40)}"


def _span_words(facts: SpanFacts) -> str:
    name = short_name(facts.name, 40)
    if facts.parent is not None:
        collective = f"{printable_within(facts.collective, 20)}, " if facts.collective is not None else ""
        words = f"{name} ({collective}{facts.category}) in {printable_within(facts.parent, 40)}"
    else:
        words = name if facts.category in (*COMPUTE, "host") else f"{name} ({facts.category})"
    return words + (f", micro-batch {facts.batch}" if facts.batch >= 0 else "")


def _bandwidth(facts: SpanFacts) -> str:
    """Returns bytes over time of communication; without the group's size there is no bus bandwidth."""
    length = facts.end_ns - facts.start_ns
    communicates = facts.category not in (*COMPUTE, COPY, "host")
    if not communicates or facts.bytes is None or facts.timing != MEASURED or length <= 0:
        return ""
    algbw = algorithm_bandwidth(facts.bytes, length)
    return f"algbw {algbw:.2f} GB/s by the {byte_size(facts.bytes)} of its input, waiting included"
