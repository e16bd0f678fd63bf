"""A simulated run as a trace: a track is a rank class, a span an op.

In dialect astra-sim-1 the wait for an op goes on until that is visible, a state change is idle time, and what
runs meanwhile on any stream of the rank counts: all share the queues of the dimensions.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from itertools import compress
from typing import TYPE_CHECKING

from simcore.engine.timeline import Timeline
from simcore.program import Ops
from simcore.program.ops import (
    COMPUTE,
    FWD,
    IG,
    IS_STREAM,
    OPT,
    PHASES,
    RANK_STREAMS,
    RECEIVING,
    RECOMPUTE,
    STREAMS,
    TO_NEXT,
    WG,
    InnerJoins,
    OpRun,
    Pause,
    Receive,
    Wait,
)
from simcore.program.schedules import INFERENCE
from simcore.records import NamedTuple
from simcore.trace.accounts import account_names
from simcore.trace.spans import COMMUNICATES, COMPUTES, NEVER, NONE, Column, Repeat, Spans, Trace, Waits
from simcore.units import add_to_column
from simcore.workload.model import base_name

if TYPE_CHECKING:
    from simcore.sources.simulated_graph import SimulatedGraph
    from simcore.trace.graph import Cause
    from simcore.trace.trace_graph import TraceGraph

EXPOSED_KINDS = (
    "tp", "ep", "dp", "dp_ep", "all", "cp", "dp_shard", "dp_replicate", "offload", "cp_a2a", "cp_p2p",
    "ep_intra", "ep_inter", "pp",
)  # fmt: skip
NAMES = account_names(PHASES, EXPOSED_KINDS, ("wait", "bubble", "idle"), {
    "compute fwd": "forward", "compute ig": "backward", "compute wg": "backward",
    "compute recompute": "backward", "compute opt": "optimizer",
    "exposed dp_ep": "exposed expert dp", "exposed all": "exposed comm",
    "exposed cp": "exposed comm", "exposed dp_shard": "exposed dp", "exposed dp_replicate": "exposed dp",
    "exposed offload": "exposed comm", "exposed cp_a2a": "exposed comm", "exposed cp_p2p": "exposed comm",
    "exposed ep_intra": "exposed ep", "exposed ep_inter": "exposed ep",
    # In a bar recomputed forward work is next to the forward work.
}, in_bars=(FWD, RECOMPUTE, IG, WG, OPT, *range(len(PHASES), len(PHASES) + len(EXPOSED_KINDS) + 3))
)  # fmt: skip
ACCOUNTS, FIRST_EXPOSED, WAIT = NAMES.all, NAMES.first_exposed, NAMES.first_other
BUBBLE, IDLE = WAIT + 1, WAIT + 2
# The names of pipeline transfers among the names of rows.
SEND, RECEIVE = "send", "receive"
# Account of an exposed op by its stream, a table for `translate`, 0 for compute: both pipeline streams are
# pp.
_EXPOSED = bytes(
    FIRST_EXPOSED + min(account, TO_NEXT) - 1 if account != COMPUTE else 0 for account in range(256)
)
# All bits of compute.
_ALL_OF_COMPUTE = bytes(255 * (account == COMPUTE) for account in range(256))
# For 0, 1, 2: what goes on alongside compute, what holds it, what computes.
_LEVEL = bytes((NEVER, COMMUNICATES, COMPUTES)).ljust(256, b"\xff")
_NOT = bytes((1,)).ljust(256, b"\0")
# The stream of an op as users see it, a table for `translate` to signed bytes: NONE for compute.
_LABEL = bytes(255 if name == STREAMS[COMPUTE] else RANK_STREAMS.index(name) for name in STREAMS)
_LABEL = _LABEL.ljust(256, b"\xff")
# In queues all communication of a rank is one lane.
_QUEUE = bytes(stream != COMPUTE for stream in range(256))


class _Program:
    """What all ranks that run one program share. holds_compute: 1 where compute waits for the end of an op.
    free: the ops that it does not wait for.
    """

    def __init__(self, ops: Ops, is_queued: bool) -> None:
        count = len(ops)
        computes, phase, exposed, blocking = (
            int.from_bytes(column, "little")
            for column in (
                ops.stream.translate(_ALL_OF_COMPUTE), ops.phase, ops.stream.translate(_EXPOSED), ops.blocking
            )
        )  # fmt: skip
        is_compute = int.from_bytes(ops.stream.translate(IS_STREAM[COMPUTE]), "little")
        self.category = bytearray((computes & phase | exposed).to_bytes(count, "little"))
        self.holds_compute = (is_compute | blocking).to_bytes(count, "little")
        level = ((is_compute | blocking) + is_compute).to_bytes(count, "little")
        self.level = bytearray(level.translate(_LEVEL))
        self.lane = ops.stream.translate(_QUEUE) if is_queued else ops.stream
        self.free = list(compress(range(count), self.holds_compute.translate(_NOT)))


def simulated_trace(timeline: Timeline, rows: Sequence[str] = ()) -> Trace:
    """Returns the trace of a timeline; its tracks are the rank classes in their order. rows: the names of the
    workload's rows.
    """
    of_program: dict[int, _Program] = {}
    # The waits inside repeats, by all that decides them.
    cache: dict[object, _Inside] = {}
    every = []
    for class_id in range(len(timeline.classes)):
        ops = timeline.stage_program(class_id).ops
        if id(ops) not in of_program:
            of_program[id(ops)] = _Program(ops, timeline.program.queued)
        every.append(_ClassWalk(timeline, class_id, of_program[id(ops)], cache))
    ranks = [len(rank_class.ranks) for rank_class in timeline.classes]
    spans, waits = [walk.spans for walk in every], [walk.waits for walk in every]
    columns = {
        "row": lambda: _rows(timeline, len(rows)),
        "name": lambda: _names(timeline, rows),
        "stream": lambda: _streams(timeline),
        "microbatch": lambda: _microbatches(timeline),
    }
    return Trace(
        spans,
        waits,
        timeline.step_time_ns,
        NAMES,
        ranks,
        _EXPOSED[TO_NEXT],
        columns=columns,
        idle_before_input=timeline.program.rules is INFERENCE,
    )


def _rows(timeline: Timeline, count: int) -> Column:
    """Returns the row of the file that each op belongs to, NONE where the pipeline sends."""
    programs = map(timeline.stage_program, range(len(timeline.classes)))
    return Column(range(count), [program.ops.row for program in programs])


def _names(timeline: Timeline, rows: Sequence[str]) -> Column:
    """Returns the names of the rows without their numbers; for transfers whether they are sent or
    received.
    """
    number_of: dict[str, int] = {}
    names = (*map(base_name, rows), SEND)
    of_row = array("i", [number_of.setdefault(name, len(number_of)) for name in names])
    cache: dict[int, array[int]] = {}
    of = []
    for class_id in range(len(timeline.classes)):
        row = timeline.stage_program(class_id).ops.row
        if id(row) not in cache:
            # Where the pipeline sends, the row is -1: the last.
            cache[id(row)] = array("i", [*map(of_row.__getitem__, row)])
        of.append(cache[id(row)])
    received = number_of.setdefault(RECEIVE, len(number_of))
    return Column([*number_of], of, [received] * len(number_of), least_ns=1)


def _microbatches(timeline: Timeline) -> Column:
    """Returns the micro-batch of each op, NONE outside of them."""
    programs = [timeline.stage_program(class_id) for class_id in range(len(timeline.classes))]
    return Column(range(timeline.program.microbatches), [program.ops.microbatch for program in programs])


def _streams(timeline: Timeline) -> Column:
    """Returns the stream of each op as users see them; received transfers have a stream of their own."""
    cache: dict[int, array[int]] = {}
    of = []
    for class_id in range(len(timeline.classes)):
        stream = timeline.stage_program(class_id).ops.stream
        if id(stream) not in cache:
            cache[id(stream)] = array("b", stream.translate(_LABEL))
        of.append(cache[id(stream)])
    received = [*range(len(RANK_STREAMS))]
    for send_stream, name in RECEIVING.items():
        received[_LABEL[send_stream]] = RANK_STREAMS.index(name)
    return Column(RANK_STREAMS, of, received)


def simulated_graph(
    built: SimulatedGraph, rank_of: Callable[[Cause, int, int, int], int],
    displayed_rank: Callable[[int, int], int] | None = None,
) -> TraceGraph:  # fmt: skip
    """Returns the graph of a trace. rank_of, displayed_rank: see `TraceGraph`."""
    # Imported here: the screen opens without it.
    from simcore.trace.trace_graph import TraceGraph

    timeline = built.timeline
    class_ids = range(len(timeline.classes))
    return TraceGraph(
        built.graph,
        built.ends,
        timeline.step_time_ns,
        built.last,
        ranks=[timeline.ranks_of(class_id).first for class_id in class_ids],
        nodes=[built.nodes(class_id) for class_id in class_ids],
        row_of=built.row_of,
        find_member_span=built.member,
        # What queues serve first depends on times.
        make_durations=None if timeline.program.queued else built.durations,
        rank_of=rank_of,
        shown_track=displayed_rank,
    )


class _Inside(NamedTuple):
    """What a rank waits for inside a run, times from when it comes to it, ops from its first on."""

    start: array[int]
    """When the rank comes to each op."""
    waits: Waits
    """The waits."""
    over: int
    """When the rank has passed the run."""


class _ClassWalk:
    """Finds when a rank comes to each op, and when it stands still for one that does not hold it."""

    def __init__(self, timeline: Timeline, class_id: int, of: _Program, cache: dict[object, _Inside]) -> None:
        self.timeline, self.class_id, self.of, self.cache = timeline, class_id, of, cache
        self.ops, self.begin, self.over = timeline.columns(class_id)
        self.waits, self.now = Waits(), 0
        self.start = array("q", (0,)) + self.over[:-1] if self.over else array("q")
        for op in of.free:
            if op + 1 < len(self.start):
                self.start[op + 1] = self.start[op]
        repeats: list[Repeat] = []
        issued = 0
        for run in timeline.stage_program(class_id).packed:
            self._hold(issued, run.first)
            for wait in run.waits:
                self._wait(wait, run.first)
            if run.inner is None:
                self._come(run.first, run.last)
                issued = run.first
            else:
                repeats.append(self._inside(run, run.inner))
                issued = run.last
        self.spans = Spans(self.start, self.begin, self.over, of.category, of.level, of.lane, repeats)

    def _hold(self, first: int, last: int) -> None:
        """Advances the rank to the end of the last of ops first..last - 1 that holds it."""
        holder = self.of.holds_compute.rfind(1, first, last)
        if holder >= 0:
            self.now = self.over[holder]

    def _come(self, first: int, last: int) -> None:
        """Sets the present time as the one at which the rank comes to ops first..last - 1, up to a holder."""
        holder = self.of.holds_compute.find(1, first, last)
        behind = last if holder < 0 else holder + 1
        self.start[first:behind] = array("q", (self.now,)) * (behind - first)

    def _wait(self, wait: Wait, before: int) -> None:
        if isinstance(wait, Pause):
            self._stand(self.now, self.now + wait.ns, (NONE, NONE), IDLE, before)
        elif isinstance(wait, Receive):
            of, op = self.timeline.find_transfer(self.class_id, wait.message)
            begin, over = self.timeline.transfer_times(self.class_id, wait.message)
            self._stand(begin, over, (of, op), _EXPOSED[TO_NEXT], before)
        else:
            self._join(wait.op, wait.after, before)

    def _join(self, op: int, after: int, before: int) -> None:
        over = self.over[op] + after
        if over > self.now:
            # A join waits for its transfers in the order of their channel: all its time counts as theirs.
            ready = self.begin[op] if self.ops.stream[op] < TO_NEXT else self.now
            self._stand(ready, over, (self.class_id, op), self.of.category[op], before)

    def _stand(self, ready: int, over: int, what: tuple[int, int], category: int, before: int) -> None:
        """Adds a wait until `over`, if that is still to come. what: (track, span)."""
        until = max(self.now, over)
        self.waits.add((self.now, min(max(self.now, ready), until), until), *what, category, before)
        self.now = until

    def _inside(self, run: OpRun, inner: InnerJoins) -> Repeat:
        """Adds a run that waits inside, copied from another one that ran the same; returns it as a repeat."""
        own, begin, first_wait = slice(run.first, run.last), self.now, len(self.waits)
        begins, ends = (add_to_column(column[own], -begin).tobytes() for column in (self.begin, self.over))
        inside = self.cache.get((inner, begins, ends))
        if inside is None:
            self._come_inside(run, inner)
            inside = self.cache[inner, begins, ends] = _Inside(
                add_to_column(self.start[own], -begin),
                _shifted(self.waits, first_wait, -begin, -run.first),
                self.now - begin,
            )
        else:
            self.start[own] = add_to_column(inside.start, begin)
            _extend(self.waits, _shifted(inside.waits, 0, begin, run.first), self.class_id)
            self.now = begin + inside.over
        lanes = [(self.of.lane[run.first + first], run.first + first) for _, first, _ in inner.ends]
        return Repeat(run.first, run.last, first_wait, len(self.waits), inner, lanes, not inner.unjoined)

    def _come_inside(self, run: OpRun, inner: InnerJoins) -> None:
        issued = run.first
        for position, op in inner.pairs:
            before = run.first + position
            if before > issued:
                self._come(issued, before)
                self._hold(issued, before)
                issued = before
            self._join(run.first + op, 0, before)
        self._come(issued, run.last)
        self._hold(issued, run.last)


def _shifted(waits: Waits, first: int, by_ns: int, by_ops: int) -> Waits:
    """Returns the waits from `first` on, shifted to other times and spans."""
    start, ready, end = (
        add_to_column(column[first:], by_ns) for column in (waits.start, waits.ready, waits.end)
    )
    span, before = (add_to_column(column[first:], by_ops) for column in (waits.span, waits.before))
    return Waits(start, ready, end, waits.of[first:], span, waits.category[first:], before)


def _extend(waits: Waits, more: Waits, track: int) -> None:
    """Adds waits behind the last, all for spans of `track`."""
    waits.start += more.start
    waits.ready += more.ready
    waits.end += more.end
    waits.of += array("i", (track,)) * len(more)
    waits.span += more.span
    waits.category += more.category
    waits.before += more.before
