"""What is said of a span of a measured run: what it is, whose, when, what the file says of it, for whom it
waits, what it waited for and what it holds back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from simcore.collectives import algorithm_bandwidth
from simcore.diagnostics import in_short
from simcore.kernel_names import short_name
from simcore.measured.columns import FUSED, INSTANT, MEASURED, PLACED, RankTrace
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
from simcore.ranks import RankSet, place_words
from simcore.replay.idle import CALL, call_lane, called_words, gap_in, gap_words, part_words, thread_words
from simcore.replay.path_words import is_gap, piece_facts
from simcore.replay.piece_names import piece_name
from simcore.replay.waits import Wait, waits_by_item
from simcore.sources.pieces import GAP
from simcore.sources.ties import NONE
from simcore.trace.findings import Dependency, Step
from simcore.trace.graph import BEFORE, BUSY, RECEIVED, START, Cause
from simcore.trace.lane_spans import COMPUTE_STREAM, SpanSaid, microbatch_words
from simcore.trace.lanes import Lanes, SpanWords
from simcore.trace.reasons import Facts, reason_words
from simcore.trace.trace_graph import Neighbours
from simcore.units import byte_size, duration, plural

if TYPE_CHECKING:
    from simcore.replay.timed import Timed


def pieces_of_item(results: Timed, rank: int, item: int, span: tuple[int, int]) -> list[int]:
    """The pieces of an item of a lane (`LaneSpans`), ascending; of a gap those that lie in its span."""
    pieces, count = results.ties.pieces[rank], len(results.measured.ranks[rank].ops)
    if item >= count:
        return [piece for piece, sub in enumerate(pieces.sub) if sub == item - count]
    if item >= 0:
        return [piece for piece, op in enumerate(pieces.op) if op == item and pieces.kind[piece] != GAP]
    start, end = results.times.start[rank], results.times.end[rank]
    return [
        piece
        for piece, kind in enumerate(pieces.kind)
        if kind == GAP and span[0] <= start[piece] and end[piece] <= span[1]
    ]


def causes(results: Timed, rank: int, own: list[int]) -> list[Dependency]:
    """What the pieces of one operation waited for: first what its begin waited for."""
    if not own:
        return []
    before = [_dependency(results, rank, own[0] - 1, _behind(results, rank, own[0] - 1))] if own[0] else []
    first, *inner = (_waited_for(results, rank, piece) for piece in own)
    return [
        *first,
        *before,
        *(of for found in inner for of in found),
    ]


def effects(results: Timed, rank: int, own: list[int]) -> list[Dependency]:
    """What the pieces of one operation hold back: other ranks first, then what its rank does next."""
    if not own:
        return []
    graph, ends = results.graph, results.ends
    found: list[Dependency] = []
    for piece in reversed(own):
        found += _received(results, rank, piece)
        nodes = {cause.node for cause in graph.graph.held(graph.over[rank][piece], ends, rank)}
        if graph.waits(rank, piece) and (meeting := results.ties.pieces[rank].meeting[piece]) != NONE:
            nodes.add(graph.meetings[meeting])
        for node in sorted(nodes):
            for follower in graph.graph.effects(node, ends):
                found += _held(results, rank, node, follower)
    after = own[-1] + 1
    if after < len(graph.over[rank]):
        found.append(_dependency(results, rank, after, _behind(results, rank, own[-1])))
    return list(dict.fromkeys(found))


def _waited_for(results: Timed, rank: int, piece: int) -> list[Dependency]:
    """What had to be done before a piece could end: as the critical path has it."""
    graph, of, meeting = results.graph, results.trace_graph, results.ties.pieces[rank].meeting[piece]
    node = START if meeting == NONE else graph.meetings[meeting]
    dependencies = []
    for cause in graph.waited_for(rank, piece, results.ends):
        words = _words(results, Neighbours(node, rank, cause))
        dependencies.append(_dependency(results, *of.ended(cause), words))
    return dependencies


def _dependency(results: Timed, rank: int, piece: int, reason: str) -> Dependency:
    times, number = results.times, results.measured.ranks[rank].number
    return Dependency(rank, piece, number, reason, times.start[rank][piece], times.end[rank][piece])


def _words(results: Timed, pair: Neighbours) -> str:
    return reason_words(piece_facts(results.trace_graph, results.ties, pair))


def _behind(results: Timed, rank: int, piece: int) -> str:
    """Why what comes behind a piece of its own rank could not begin earlier."""
    return reason_words(Facts(BEFORE, was_idle=is_gap(results.ties, rank, piece)))


def _received(results: Timed, rank: int, piece: int) -> list[Dependency]:
    """The receive of what a piece sends."""
    sent = results.ties.pieces[rank].sent[piece]
    if sent == NONE:
        return []
    receiver, receiving = results.ties.transfers[sent][1]
    facts = Facts(RECEIVED, rank=results.trace_graph.ranks[rank])
    return [_dependency(results, receiver, receiving, reason_words(facts))]


def _held(results: Timed, rank: int, node: int, meeting: int) -> list[Dependency]:
    """The members of a collective, a node, that wait in it because a node of this rank ended."""
    graph, ends = results.graph, results.ends
    number = graph.meeting_of(meeting)
    dependencies = []
    for who, _, waits in graph.ties.members[number] if number != NONE else ():
        held: list[Cause] = graph.waited_for(who, waits, ends)
        for cause in held:
            if cause.node == node and (cause.why != BUSY or who == rank):
                words = _words(results, Neighbours(meeting, who, cause))
                dependencies.append(_dependency(results, who, waits, words))
    return dependencies


# So many of the operations that one of the host launched are told one by one.
_LAUNCHES = 8
_UNKNOWN_LENGTH = {
    INSTANT: "an instant: no duration in the file",
    PLACED: "no time in the file: it stands behind the operation before it",
}


class MeasuredSpanWords(SpanWords):
    """Of a measured or replayed run."""

    def __init__(self, results: Timed, lanes: Lanes) -> None:
        super().__init__(lanes)
        self._results, self._run = results, results.run

    # -- in few words ------------------------------------------------------------------

    def said(self, number: int, stream: str | None, index: int | None, ranks: RankSet) -> SpanSaid:
        rank, axis = self._run.ranks[number], self._axis
        whose = self._whose(rank)
        if len(ranks) > 1:
            # What is said is of one of them.
            alike = f", of {self._run.unit}s {ranks.text()} {self._lanes.facts.alike}"
            whose = (f"{whose[-1]}{alike}", whose[-1])
        if index is None:
            return SpanSaid("", whose)
        spans = self._lanes.spans(number, stream)
        start, end, item = spans.start[index], spans.end[index], spans.op[index]
        if item < 0:
            times = self.times(start, end)
            more = ", ".join(filter(None, (self._why(number, start, end), self._before(rank, start))))
            return SpanSaid(_gap(rank, item), whose, times, axis.length(end - start), more=more)
        facts = span_facts(rank, item)
        length = ""
        if not self._run.timed:
            times = axis.clock(facts.start_ns)
        elif facts.known in (MEASURED, FUSED):
            times = self.times(facts.start_ns, facts.end_ns)
            length = axis.length(facts.end_ns - facts.start_ns)
        else:
            times = f"{axis.clock(facts.start_ns)}   {_UNKNOWN_LENGTH[facts.known]}"
        return SpanSaid(
            _what(facts), whose, times, length, more=", ".join(self._of_the_file(rank, item, facts))
        )

    def _before(self, rank: RankTrace, start_ns: int) -> str:
        """When a rank begins the step, of a gap that is there before it does; what it is at until then."""
        recorded = self._run.recorded
        if rank.window is None or recorded is None or recorded.step is None or rank.window[0] <= start_ns:
            return ""
        begin = self._axis.clock(rank.window[0])
        if rank.ahead_ns:
            return f"at the step before until {begin}"
        return f"its host begins step {recorded.step} at {begin}"

    def _why(self, number: int, start: int, end: int) -> str:
        """Why a rank runs nothing in a span of its lane; "" where its trace does not tell."""
        gap = gap_in(self._results.gaps[number], start, end)
        if gap is None:
            return ""
        part = "" if gap.ns == end - start else f"{self._axis.length(gap.ns)} of it: "
        return f"{part}{gap_words(gap)}"

    def _whose(self, rank: RankTrace) -> tuple[str, ...]:
        if self._run.unit != "rank":
            return (f"{self._run.unit} {rank.number}",)
        position = self._run.degrees.position(rank.number)
        few = f"rank {rank.number}"
        if position is not None:
            return f"{few} = {place_words(position)}", few
        return (few,) if rank.stage is None else (f"{few}, stage {rank.stage}", few)

    def _of_the_file(self, rank: RankTrace, item: int, facts: SpanFacts) -> list[str]:
        """What the file says besides times, as far as it does."""
        said = []
        if facts.state is not None:
            said.append(f"state {in_short(facts.state, 20)}")
        if facts.bytes is not None:
            said.append(f"{byte_size(facts.bytes)} = {in_short(facts.shape or '', 60)} {_dtype(facts)}")
        if facts.subs:
            length = f", {duration(facts.subs_ns)} together" if self._run.timed else ""
            said.append(f"{plural(facts.subs, 'sub-operation')}{length}")
        if facts.description is not None:
            said.append(in_short(facts.description, 100))
        if rank.device is not None:
            known = [*device_facts(rank, item), *host_facts(rank, item)]
            return said + [f"{name} {in_short(words, 60)}" for name, words in known]
        said.append(f"line {facts.line}" + (" of its file" if facts.path != self._run.path else ""))
        return said

    def aside(self, number: int, stream: str | None, index: int, wide: bool, rank: int | None) -> str:
        item = self.op(number, stream, index)
        parts = [self._wait_words(self._waits_of(number, item))]
        if len(self._run.missing):
            # Where no rank is known to be missing the note says enough.
            parts.append(self._partner(number, item))
        return "; ".join(filter(None, parts))

    # -- in full -----------------------------------------------------------------------

    def all_of(self, number: int, stream: str | None, index: int, rank: int | None) -> list[tuple[str, str]]:
        trace, axis = self._run.ranks[number], self._axis
        spans = self._lanes.spans(number, stream)
        start, end, item = spans.start[index], spans.end[index], spans.op[index]
        whose = (
            self._lanes.rank_words(trace.number)
            if self._run.unit == "rank"
            else f"{self._run.unit} {trace.number}"
        )
        if item < 0:
            before, after = neighbours(trace, item)
            why = self._why(number, start, end)
            return [
                ("idle", f"{self.times(start, end)}, {axis.length(end - start)}"),
                ("on", whose),
                ("after", in_short(before or "nothing", 80)), ("before", in_short(after or "nothing", 80)),
                *([("because", why)] if why else []),
            ]  # fmt: skip
        facts = span_facts(trace, item)
        rows = [("operation", short_name(facts.name, 80)), ("on", whose), ("kind", facts.category)]
        if facts.known in (MEASURED, FUSED) and self._run.timed:
            rows.append(("runs", self.times_and_length(facts.start_ns, facts.end_ns)))
        else:
            ending = ", an instant" if facts.known == INSTANT else ""
            rows.append(("stands at", axis.clock(facts.start_ns) + ending))
        if facts.parent is not None:
            rows.append(("inside", in_short(facts.parent, 80)))
        if facts.collective is not None:
            rows.append(("collective", in_short(facts.collective, 80)))
        if facts.batch >= 0:
            rows.append(("micro-batch", microbatch_words(facts.batch, self._run.microbatches)))
        if facts.state is not None:
            rows.append(("state", in_short(facts.state, 80)))
        if facts.bytes is not None:
            shape = in_short(facts.shape or "", 80)
            rows.append(("volume", f"{byte_size(facts.bytes)} = {shape} {_dtype(facts)}"))
        if reason := no_bandwidth(trace, item):
            rows.append(("bandwidth", f"not known: {reason}"))
        elif bandwidth := _bandwidth(facts):
            rows.append(("bandwidth", bandwidth))
        if facts.subs:
            words = f"{plural(facts.subs, 'sub-operation')}, {duration(facts.subs_ns)} together"
            rows.append(("inside it", words))
        if facts.description is not None:
            rows.append(("description", in_short(facts.description, 200)))
        rows += [("waits", self._one_wait_words(wait)) for wait in self._waits_of(number, item)]
        if partner := self._partner(number, item):
            rows.append(("partner", f"{partner}: what is waited here is not known"))
        rows += self.dependency_rows(number, stream, index, rank)
        known = [*device_facts(trace, item), *host_facts(trace, item)]
        rows += [(name, in_short(words, 200)) for name, words in known]
        where = "line" if trace.device is None else trace.device.counted
        rows.append((where, f"{facts.line} of {in_short(facts.path)}"))
        return rows

    def _partner(self, number: int, item: int) -> str:
        """Why communication has no partner here; "" where it has or needs none."""
        if item < 0 or not self._run.timed or host_item(self._run.ranks[number], item) is not None:
            return ""
        trace = self._results.measured.ranks[number]
        count = len(trace.ops)
        if item < count:
            return self._results.partners.words(Call(number, item))
        return self._results.partners.words(Call(number, trace.subs.parent[item - count], item - count))

    # -- for whom it waits ---------------------------------------------------------------

    def _waits_of(self, number: int, item: int) -> list[Wait]:
        return waits_by_item(self._results, number).get(item, []) if self._run.timed else []

    def _wait_words(self, waits: Sequence[Wait]) -> str:
        """`waits 1.291 s for rank 0`; for several the sum, and who is waited for longest."""
        if not waits:
            return ""
        late: dict[int, int] = {}
        for wait in waits:
            late[wait.late] = late.get(wait.late, 0) + wait.ns
        most = max(late, key=lambda rank: late[rank])
        rank = f"for rank {self._results.measured.ranks[most].number}"
        return f"waits {duration(sum(late.values()))}{f' {rank}' if len(late) == 1 else f', most {rank}'}"

    def _one_wait_words(self, wait: Wait) -> str:
        """How long, for whom, where, and what that rank did before."""
        rank = self._results.measured.ranks[wait.late]
        who = f"rank {rank.number}" + ("" if rank.stage is None else f" of stage {rank.stage}")
        often = f", {wait.times} times" if wait.times > 1 else ""
        does = "sends" if wait.sends else "comes last"
        behind = f", behind {short_name(wait.after, 40)}" if wait.after else ""
        name = short_name(wait.name, 40)
        return f"{duration(wait.ns)} for {who} in {name}{often}: it {does}{behind}"

    # -- what waits for what -----------------------------------------------------------

    def walk(
        self, number: int, stream: str | None, index: int, rank: int | None, direction: int
    ) -> list[Step]:
        binding = self.dependencies(number, stream, index, rank, direction)
        steps = [self.step(number, stream, of) for of in binding]
        launches = self._launches(number, stream, index, direction)
        if direction < 0:
            steps = [*self._call(number, stream, index), *steps]
        if direction < 0 and binding and launches:
            first = binding[0]
            # Launched while nothing ran: its stream was free, so that the launch is what it waited for.
            was_idle = is_gap(self._results.ties, first.number, first.span)
            if was_idle and first.number == number and launches[0].start_ns >= steps[0].start_ns:
                return [*launches, *steps]
        return [*steps, *launches]

    def _call(self, number: int, stream: str | None, index: int) -> list[Step]:
        """The call in which the host was in a gap: in the lane that has it, where the host has any."""
        trace, spans = self._run.ranks[number], self._lanes.spans(number, stream)
        if spans.op[index] >= 0:
            return []
        gap = gap_in(self._results.gaps[number], spans.start[index], spans.end[index])
        if gap is None or gap.cause != CALL:
            return []
        start = max(gap.begin, trace.first_ns)
        words = (
            f"{called_words(gap)} on {thread_words(gap)}, {duration(gap.over - gap.begin)}: "
            f"its host is in it for {part_words(gap.covered_ns, gap.ns)} of the gap"
        )
        return [Step(number, call_lane(trace, gap), start, trace.number, words)]

    def dependency_words(
        self, number: int, stream: str | None, index: int, rank: int | None, direction: int
    ) -> list[str]:
        """What is alike together: `linear_fwd, rank 1, 7 times, 5.2 ms: ...`."""
        sums: dict[tuple[str, str], list[int]] = {}
        for of in self.dependencies(number, stream, index, rank, direction):
            both = sums.setdefault((self.whose(number, of), of.reason), [0, 0])
            both[0] += of.end_ns - of.start_ns
            both[1] += 1
        words = [
            f"{name}, {f'{count} times, ' if count > 1 else ''}{duration(ns)}: {reason}"
            for (name, reason), (ns, count) in sums.items()
        ]
        launches = self._launches(number, stream, index, direction)
        more = [f"and {len(launches) - _LAUNCHES} more"] if len(launches) > _LAUNCHES else []
        return [*words, *(launch.words for launch in launches[:_LAUNCHES]), *more]

    def _launches(self, number: int, stream: str | None, index: int, direction: int) -> list[Step]:
        """What the host did to launch an operation of a device, or what an operation of the host launched."""
        trace = self._run.ranks[number]
        if self._run.replayed or trace.device is None or trace.device.host is None:
            return []
        host, item = trace.device.host, self.op(number, stream, index)
        host_index = host_item(trace, item)
        if host_index is not None:
            if direction < 0:
                return []
            return [
                Step(
                    number, f"{STREAM_LANE}{trace.device.stream[op]}", trace.ops.start[op], trace.number,
                    f"{short_name(trace.ops.name[op], 40)}, "
                    f"{duration(trace.ops.start[op] - host.launch[op])} behind its launch: launched here",
                )
                for op in launched_in(host, host_index)
            ]  # fmt: skip
        launch = launch_of(trace, item) if direction < 0 else None
        if launch is None or launch[0] < trace.first_ns:
            return []
        time, thread, around = launch
        shown = host_lane(host, thread) if around is not None else None
        name = "its launch" if around is None else short_name(host.name[around], 40)
        words = (
            f"{name} on {HOST_LANE}thread {in_short(host.threads[thread], 20)}, "
            f"{duration(trace.ops.start[item] - time)} before: it was launched there"
        )
        return [Step(number, shown, time, trace.number, words)]

    def dependencies(
        self, number: int, stream: str | None, index: int, rank: int | None, direction: int
    ) -> list[Dependency]:
        item = self.op(number, stream, index)
        if not self._run.timed or host_item(self._run.ranks[number], item) is not None:
            return []
        spans = self._lanes.spans(number, stream)
        span = spans.start[index], spans.end[index]
        own = pieces_of_item(self._results, number, item, span)
        return (effects if direction > 0 else causes)(self._results, number, own)

    def name(self, number: int, span: int) -> str:
        return short_name(piece_name(self._results, number, span), 40)

    def shown_in(self, stream: str | None, of: Dependency) -> str | None:
        """None for a gap, which its rank's lane alone shows."""
        pieces, trace = self._results.ties.pieces[of.number], self._run.ranks[of.number]
        if stream is None or pieces.kind[of.span] == GAP:
            return None
        op, sub = pieces.op[of.span], pieces.sub[of.span]
        if sub >= 0:
            return trace.subs.group[sub] or NO_GROUP
        category = trace.ops.category(op)
        if category in (*COMPUTE, "host"):
            return COMPUTE_STREAM
        return COPIES_LANE if category == COPY else group_of_op(trace.ops.name[op], trace.ops.group[op])


def _dtype(facts: SpanFacts) -> str:
    return in_short((facts.dtype or "").removeprefix("torch."), 20)


def _gap(rank: RankTrace, item: int) -> str:
    before, after = neighbours(rank, item)
    if before is None:
        return f"not running yet, the first operation is {short_name(after or '-', 40)}"
    if after is None:
        return f"over, the last operation was {short_name(before, 40)}"
    return f"host gap between {short_name(before, 40)} and {short_name(after, 40)}"


def _what(facts: SpanFacts) -> str:
    name = short_name(facts.name, 40)
    if facts.parent is not None:
        collective = f"{in_short(facts.collective, 20)}, " if facts.collective is not None else ""
        words = f"{name} ({collective}{facts.category}) in {in_short(facts.parent, 40)}"
    else:
        words = name if facts.category in (*COMPUTE, "host") else f"{name} ({facts.category})"
    return words + (f", micro-batch {facts.batch}" if facts.batch >= 0 else "")


def _bandwidth(facts: SpanFacts) -> str:
    """Bytes over time of communication; without the group's size there is no bus bandwidth."""
    length = facts.end_ns - facts.start_ns
    communicates = facts.category not in (*COMPUTE, COPY, "host")
    if not communicates or facts.bytes is None or facts.known != MEASURED or length <= 0:
        return ""
    algbw = algorithm_bandwidth(facts.bytes, length)
    return f"algbw {algbw:.2f} GB/s by the {byte_size(facts.bytes)} of its input, waiting included"
