"""Builds the graph of a simulated run from its program and folding: a track is a rank class.

What waits for what is read here and nowhere else but in the engines. Where durations decide only
when things happen (`analytical`, SimAI's networks) the graph gives the step time for any durations. Where
ports are shared it is the graph of the run as it was, with the durations that it had. The same holds in the
queues of dialect astra-sim-1: a collective that stood in a queue waits for the part of another that
was served meanwhile, and each state change is a node.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from itertools import accumulate, compress, pairwise

from simcore.diagnostics import Cancelled, never_cancelled
from simcore.engine.timeline import Timeline
from simcore.program import Program
from simcore.program.ops import (
    COMPUTE,
    IS_STREAM,
    KIND_OF_STREAM,
    STREAM_OF_GROUP,
    STREAMS,
    TO_NEXT,
    InnerJoins,
    Join,
    OpRun,
    Pause,
    Receive,
    TransferCost,
    Wait,
)
from simcore.trace.graph import BUSY, JOINS, QUEUED, RECEIVED, START, Graph
from simcore.trace.repeats import Pattern, Repeat
from simcore.units import add_at_positions, add_to_column, as_number, differences

NONE = -1
# The op of time that passes by itself: a state change, or until a collective's end is seen.
IDLE_OP = -1
_TURNS_BETWEEN_CANCEL_CHECKS = 256
# A channel belongs to an ordered pair of ranks, so all transfers of a rank that go so many stages on share
# one; its id is beyond those of the streams.
_CHANNEL = 1000


class StageOrder:
    """The order of the ops of a stage's program: on its stream, and behind which op compute came to each.

    apart: whether runs that wait inside are split into ops; else the columns but `holds` and `plain` leave
    out the ops inside of them.
    """

    def __init__(self, program: Program, stage: int, apart: bool) -> None:
        self.program = program.stages[stage]
        ops = self.program.ops
        count = len(ops)
        self._costs = program.costs
        self._lanes: dict[int, array[int]] = {}
        # Here and in `add_stretch` a loop is over the few ops that compute does not wait for: one over all
        # of a step of 40,000 ops takes as long as all the rest of the graph.
        # The whole column is one integer: an op blocks and is a collective, or it is compute.
        blocking, collective, compute = (
            int.from_bytes(column, "little")
            for column in (
                ops.blocking, ops.stream.translate(_IS_COLLECTIVE), ops.stream.translate(IS_STREAM[COMPUTE])
            )
        )  # fmt: skip
        # 1 for each op that holds compute (compute, a blocking collective).
        self.holds = (blocking & collective | compute).to_bytes(count, "little")
        free = self.holds.translate(_NOT)
        lanes = {*compress(ops.stream, free)}
        outside = bytearray(b"\1") * count
        if not apart:
            for run in self.program.packed:
                if run.inner is not None:
                    outside[run.first : run.last] = bytes(run.last - run.first)
        # The ops that do not hold it, and the transfers among them.
        self.free = list(compress(range(count), _both(free, outside)))
        self.sends = [op for op in self.free if ops.stream[op] >= TO_NEXT]
        # By op the one before it on its stream or channel, where that does not hold compute: what does is
        # over before anything more is issued.
        self.busy = {
            op: before
            for lane in {self._lane_of(op) for op in self.sends}
            for before, op in pairwise(self.lane(lane))
        }
        for lane in lanes - {*range(TO_NEXT, len(STREAMS))}:
            for op in compress(range(count), _both(ops.stream.translate(IS_STREAM[lane]), outside)):
                before = self.free_before(op)
                if before != NONE:
                    self.busy[op] = before
        # The ops that have one, and 1 for each op that holds compute and has none.
        self.behind = sorted(self.busy)
        plain = bytearray(self.holds)
        for op in self.behind:
            plain[op] = 0
        self.plain = bytes(plain)

    def free_before(self, op: int) -> int:
        """Returns the op before a collective on its stream, where that does not hold compute; else NONE."""
        stream = self.program.ops.stream
        before = stream.rfind(stream[op], 0, op)
        return NONE if before < 0 or self.holds[before] else before

    def lane(self, lane: int) -> array[int]:
        """Returns the ops of a stream, or of a channel, in order."""
        ops_of_lane = self._lanes.get(lane)
        if ops_of_lane is None:
            if lane < TO_NEXT:
                stream = self.program.ops.stream
                mask = stream.translate(IS_STREAM[lane])
                ops_of_lane = array("i", compress(range(len(stream)), mask))
            else:
                ops_of_lane = array("i", (op for op in self.sends if self._lane_of(op) == lane))
            self._lanes[lane] = ops_of_lane
        return ops_of_lane

    def index_on_lane(self, op: int) -> int:
        """Returns the index of `op`, which is no compute, on its stream or channel."""
        return bisect_left(self.lane(self._lane_of(op)), op)

    def before(self, op: int) -> int:
        """Returns the op before `op`, which is no compute, on its stream or channel; NONE without one."""
        index = self.index_on_lane(op)
        return self.lane(self._lane_of(op))[index - 1] if index else NONE

    def _lane_of(self, op: int) -> int:
        ops = self.program.ops
        cost = self._costs[ops.cost[op]]
        return _CHANNEL + cost.step if isinstance(cost, TransferCost) else ops.stream[op]


def _both(one: bytes | bytearray, other: bytes | bytearray) -> bytes:
    """Returns 1 where both columns of flags have it."""
    both = int.from_bytes(one, "little") & int.from_bytes(other, "little")
    return both.to_bytes(len(one), "little")


def _mask(streams: Collection[int]) -> bytes:
    """Returns a table for `translate`: 1 for these streams."""
    return bytes(stream in streams for stream in range(256))


_IS_COLLECTIVE = _mask(range(COMPUTE + 1, TO_NEXT))
_NOT = _mask((0,))


class SimulatedGraph:
    """The graph of a finished run, and the class and op of each of its nodes.

    apart: whether runs that wait inside are split into ops, as classes meet others there.

    Raises `Cancelled`; RuntimeError where a program waits for what nobody does (a defect of a schedule).
    """

    def __init__(
        self, timeline: Timeline, dimensions: int = 0, cancelled: Callable[[], bool] = never_cancelled
    ) -> None:
        """Builds the graph. dimensions: those of the cluster; they name the queues of dialect astra-sim-1."""
        self.timeline = timeline
        classes = timeline.classes
        groups = timeline.folding.group_classes
        # Per class and stream the classes that take part in its collectives.
        self._members = [
            {STREAM_OF_GROUP[kind]: groups[group].members for kind, group in rank_class.groups.items()}
            for rank_class in classes
        ]
        self.apart = any(map(self._meets_in_runs, range(len(classes))))
        cache: dict[int, StageOrder] = {}
        # Without a pipeline all stages share one program.
        self._orders = [
            cache.get(id(program := timeline.stage_program(class_id)))
            or cache.setdefault(id(program), StageOrder(timeline.program, rank_class.stage, self.apart))
            for class_id, rank_class in enumerate(classes)
        ]
        counts = [len(timeline.stage_program(class_id).ops) for class_id in range(len(classes))]
        # The first duration of each class, and behind all of them the extra ones.
        self._offset = [1]
        for count in counts:
            self._offset.append(self._offset[-1] + count)
        self._recent_class = 0
        # Durations that are not an op's: ns, the class and the op that it is a part of or IDLE_OP.
        self._extra: list[tuple[int, int, int]] = []
        # The node of each op; while it is built one entry more, so that NONE leads to START.
        self._nodes = [array("i", (NONE,)) * count + array("i", (START,)) for count in counts]
        self.graph = Graph(len(classes), self.classes_of)
        self._parts: dict[tuple[int, int], list[int]] = {}
        # The nodes of the runs that wait inside, by the run and which of their streams were used before.
        self._copied: dict[object, _Copied] = {}
        # For each class, by stream, the last op that is known to be over at compute's present node.
        self._over: list[dict[int, int]] = [{} for _ in classes]
        # 0, 1, 2 ... while the graph is built.
        self._ramp = array("i", range(1024))
        walk = _QueuedWalk(self, dimensions) if timeline.program.queued else _ClassWalk(self)
        self._last = walk.run(cancelled)
        for nodes in self._nodes:
            nodes.pop()
        del self._ramp
        self._copied.clear()

    def _meets_in_runs(self, class_id: int) -> bool:
        """Returns whether a class meets others in a run that waits inside."""
        packed, members = self.timeline.stage_program(class_id).packed, self._members[class_id]
        inner = {run.inner for run in packed if run.inner is not None}
        lanes = {lane for joins in inner for lane, _, _ in joins.ends}
        return any(len(members.get(lane, ())) > 1 for lane in lanes)

    # -- what nodes are --------------------------------------------------------------

    def order(self, class_id: int) -> StageOrder:
        """Returns the order of the ops of a class."""
        return self._orders[class_id]

    def group(self, class_id: int, op: int) -> int:
        """Returns the group class that the collective `op` of a class runs in."""
        stream = self.timeline.stage_program(class_id).ops.stream[op]
        return self.timeline.groups_of(class_id)[KIND_OF_STREAM[stream]]

    def members(self, class_id: int, op: int) -> list[tuple[int, int]]:
        """Returns (class, op) of each class that takes part in the collective of `op`.

        Members meet in the order in which each issues on the stream.
        """
        order = self.order(class_id)
        stream, index = order.program.ops.stream[op], order.index_on_lane(op)
        members = self.timeline.folding.group_classes[self.group(class_id, op)].members
        return [(member, self.order(member).lane(stream)[index]) for member in members]

    def node(self, class_id: int, op: int) -> int:
        """Returns the node with which op `op` of a class ends."""
        return self._nodes[class_id][op]

    def nodes(self, class_id: int) -> array[int]:
        """Returns the nodes with which the ops of a class end, in their order."""
        return self._nodes[class_id]

    def duration_index(self, class_id: int, op: int) -> int:
        """Returns the index of the duration of an op."""
        return self._offset[class_id] + op

    def parts(self, class_id: int, op: int) -> Sequence[int]:
        """Returns the nodes that are a first part of an op: until a collective behind it was served."""
        return self._parts.get((class_id, op), ())

    @property
    def last(self) -> Sequence[int]:
        """For each class the node at which it has joined all its work."""
        return self._last

    @property
    def row_of(self) -> Sequence[int]:
        """For each duration the op that it is a part of, counted over all classes, NONE for time that passes
        by itself.
        """
        count = self._offset[-1] - 1
        rows: Sequence[int] = range(NONE, count)
        if self._extra:
            firsts = self._offset
            extra = (NONE if op == IDLE_OP else firsts[of] - 1 + op for _, of, op in self._extra)
            rows = array("i", (*rows, *extra))
        return rows

    def member(self, class_id: int, op: int, other: int) -> int:
        """Returns the op with which class `other` takes part in the collective `op` of a class."""
        return next(its_op for member, its_op in self.members(class_id, op) if member == other)

    def classes_of(self, node: int) -> Sequence[int]:
        """Returns the classes of a node's op: more than one for a collective that several take part in."""
        of, op = self._locate(node)
        if op == IDLE_OP:
            return (of,)
        return self._members[of].get(self._orders[of].program.ops.stream[op], (of,))

    def _locate(self, node: int) -> tuple[int, int]:
        """Returns (class, op) that the node's duration belongs to."""
        duration = self.graph.duration[node - 1]
        if duration >= self._offset[-1]:
            return self._extra[duration - self._offset[-1]][1:]
        # Most calls are for the class of the call before.
        class_id = self._recent_class
        if not self._offset[class_id] <= duration < self._offset[class_id + 1]:
            # A class without ops begins where the next one does.
            class_id = self._recent_class = bisect_right(self._offset, duration) - 1
        return class_id, duration - self._offset[class_id]

    # -- passes ----------------------------------------------------------------------

    def durations(self, columns: Sequence[Sequence[int]] | None = None) -> array[int]:
        """Returns the durations of the graph. columns[c][i]: ns of op i of class c, by default as it was."""
        extra = [ns for ns, _, _ in self._extra]
        if columns is None:
            times = self.timeline.times
            columns = list(map(differences, times.end, times.start))
        return self.graph.flatten([*columns, extra])

    @cached_property
    def ends(self) -> array[int]:
        """When each node ended in the run, ns."""
        ends = self.graph.ends(self.durations())
        return ends if isinstance(ends, array) else array("q", ends)

    # -- for the walk ----------------------------------------------------------------

    def add_op(self, class_id: int, op: int, first: int, second: int = START, why: int = BUSY) -> int:
        """Adds and returns the node of an op. A collective of several classes is added once."""
        node = self.graph.add(self._offset[class_id] + op, first, second, why)
        self._nodes[class_id][op] = node
        return node

    def add_extra(
        self, ns: int, class_id: int, op: int, first: int, second: int = START, why: int = BUSY
    ) -> int:
        """Adds and returns a node of `ns` that is not a whole op: a part of one, or IDLE_OP."""
        self._extra.append((ns, class_id, op))
        node = self.graph.add(self._offset[-1] + len(self._extra) - 1, first, second, why)
        if op != IDLE_OP:
            self._parts.setdefault((class_id, op), []).append(node)
        return node

    def extra_ns(self, duration: int) -> int:
        """Returns the part of a duration, ns, that no whole op accounts for."""
        return self._extra[duration - self._offset[-1]][0]

    def note_over(self, class_id: int, op: int) -> None:
        """Notes that compute of a class has waited for an op, and so for all before it on its stream."""
        lane = self._orders[class_id].program.ops.stream[op]
        self._over[class_id][lane] = max(op, self._over[class_id].get(lane, NONE))

    def set_node(self, class_id: int, op: int, node: int) -> None:
        """Sets the node of an op that another class has added."""
        self._nodes[class_id][op] = node

    def add_stretch(self, class_id: int, first: int, last: int, now: int) -> int:
        """Adds ops first..last - 1 of a class, none of which meets another class's.

        Returns the node of compute behind them. By slices: in a folded run this is nearly all.
        """
        order, nodes, graph = self._orders[class_id], self._nodes[class_id], self.graph
        count, before = last - first, len(graph.first)
        begin = self._offset[class_id] + first
        if order.plain.find(0, first, last) == NONE:
            # By far the most: each waits for the one before it. Where ranks with different times meet in each
            # layer, stretches are two ops long.
            graph.first.append(now)
            graph.first.extend(self._slice_ramp(before + 1, before + count))
            graph.second.frombytes(bytes(count * graph.second.itemsize))
            graph.duration.extend(self._slice_ramp(begin, begin + count))
            graph.why += _BUSY * count
            graph.chained += b"\0" + b"\1" * (count - 1)
            nodes[first:last] = self._slice_ramp(before + 1, before + count + 1)
            return before + count
        ramp = self._slice_ramp(before, before + count + 1)
        nodes[first:last] = ramp[1:]
        # Most ops are behind the one before them, and those behind no holder yet behind compute's present
        # node.
        holder_end = order.holds.find(1, first, last) + 1 or last
        here = before - first
        graph.first.extend(ramp[:-1])
        graph.first[before : here + holder_end] = array("i", (now,)) * (holder_end - first)
        for op in _between(order.free, holder_end, last - 1):
            graph.first[here + op + 1] = graph.first[here + op]
        graph.second.frombytes(bytes(count * graph.second.itemsize))
        for op in _between(order.behind, first, last):
            graph.second[here + op] = nodes[order.busy[op]]
        graph.duration.extend(self._slice_ramp(begin, begin + count))
        graph.why += _BUSY * count
        graph.chained += b"\1" * count
        graph.chained[before : here + holder_end] = bytes(holder_end - first)
        for op in _between(order.free, holder_end, last - 1):
            graph.chained[here + op + 1] = 0
        for op in _between(order.behind, first, last):
            graph.chained[here + op] = 0
        holder = order.holds.rfind(1, first, last)
        return nodes[holder] if holder != NONE else now

    def add_joined(self, class_id: int, run: OpRun, inner: InnerJoins, now: int) -> int:
        """Adds the ops of a run that waits inside and meets no other class.

        Returns the node of compute behind them. What repeats is copied.
        """
        order, over, graph = self._orders[class_id], self._over[class_id], self.graph
        before = len(graph)
        used = [order.free_before(run.first + begin) for _, begin, _ in inner.ends]
        key = inner, tuple([op == NONE for op in used])
        copied = self._copied.get(key)
        if copied is None:
            out = self._add_each(class_id, run, inner, now) - before
            copied = self._copied[key] = _Copied(self, class_id, run, before, out)
        else:
            self._copy(copied, class_id, run, before, now)
        pattern = copied.pattern
        if copied.is_closed:
            if all(op <= over.get(lane, NONE) for (lane, _, _), op in zip(inner.ends, used, strict=True)):
                duration = self._offset[class_id] + run.first
                graph.repeats.append(Repeat(before, now, duration, run.last - run.first, pattern))
            over.update((lane, run.first + last) for lane, _, last in inner.ends)
        return before + pattern.out

    def _add_each(self, class_id: int, run: OpRun, inner: InnerJoins, now: int) -> int:
        """Adds the same ops one by one; returns the node of compute behind them."""
        order, nodes, graph = self._orders[class_id], self._nodes[class_id], self.graph
        joins, at, behind_join = inner.pairs, 0, True
        for op in range(run.first, run.last + 1):
            while at < len(joins) and run.first + joins[at][0] == op:
                now = graph.add_join(class_id, now, nodes[run.first + joins[at][1]], JOINS)
                at, behind_join = at + 1, True
            if op == run.last:
                break
            before = NONE if order.program.ops.stream[op] == COMPUTE else order.free_before(op)
            chained = now == len(graph) and before == NONE and not behind_join
            node = self.add_op(class_id, op, now, nodes[before])
            graph.chained[-1] = chained
            now, behind_join = node if order.holds[op] else now, False
        return now

    def _copy(self, copied: _Copied, class_id: int, run: OpRun, before: int, now: int) -> None:
        """Adds the nodes of a run as copies of those of an earlier one, for other ops."""
        graph, count = self.graph, len(copied.pattern)
        first = add_at_positions(copied.first, copied.first_inside, before, graph.first, count)
        for index in copied.at_entry:
            first[index] = now
        second = add_at_positions(copied.second, copied.second_inside, before, graph.second, count)
        for index, op in copied.behind:
            second[index] = self._nodes[class_id][self._orders[class_id].free_before(run.first + op)]
        of_joins = copied.duration - class_id * copied.joins
        duration = add_at_positions(
            of_joins, copied.ops, self._offset[class_id] + run.first, graph.duration, count
        )
        graph.first += first
        graph.second += second
        graph.duration += duration
        graph.why += copied.why
        graph.chained += copied.chained
        self._nodes[class_id][run.first : run.last] = add_to_column(copied.nodes, before)

    def _slice_ramp(self, first: int, last: int) -> array[int]:
        """Returns first..last - 1. Copied: a column that is made of a range makes an object of each
        number.
        """
        while len(self._ramp) < last:
            self._ramp.extend(add_to_column(self._ramp, len(self._ramp)))
        return self._ramp[first:last]


class _Copied:
    """The nodes of a run that waits inside, to be copied. Columns are integers, as `as_number` makes them."""

    def __init__(self, built: SimulatedGraph, class_id: int, run: OpRun, before: int, out: int) -> None:
        graph = built.graph
        begin = built.duration_index(class_id, run.first)
        first, second, duration = (column[before:] for column in (graph.first, graph.second, graph.duration))
        # The nodes of the ops, relative to the node before the run.
        self.nodes = add_to_column(built.nodes(class_id)[run.first : run.last], -before)
        op_at = {node - 1: op for op, node in enumerate(self.nodes)}
        # The indices that wait for the entry, and (index, op of the run) of those whose stream is used
        # before.
        self.at_entry = [index for index, node in enumerate(first) if node <= before]
        self.behind = [(index, op_at[index]) for index, node in enumerate(second) if START < node <= before]
        own_first, own_second = (
            array("i", (max(node - before, 0) for node in column)) for column in (first, second)
        )
        # Relative to the node before the run, 0 for what is not in the run; then 1 for what is.
        self.first, self.second = as_number(own_first), as_number(own_second)
        self.first_inside, self.second_inside = (
            as_number(array("i", (node > 0 for node in column))) for column in (own_first, own_second)
        )
        is_op = array("i", (ns > 0 for ns in duration))
        # 1 for each op, for each join.
        self.ops, self.joins = as_number(is_op), as_number(array("i", (not one for one in is_op)))
        own = array("I", (ns - begin if ns > 0 else 2**32 - 1 for ns in duration))
        # Relative to the first one, and -1 for joins, from which a copy takes the id of their track.
        self.duration = as_number(own)
        self.why, self.chained = bytes(graph.why[before:]), bytes(graph.chained[before:])
        offsets = [ns - begin if ns > 0 else NONE for ns in duration]
        # Without node ids of the graph; and whether it may be a repeat.
        self.pattern = Pattern(own_first, own_second, offsets, out)
        self.is_closed = self.pattern.is_closed


def _between(ops: Sequence[int], first: int, last: int) -> Sequence[int]:
    """Returns the ops from `first` to `last` - 1 of ascending ops."""
    return ops[bisect_left(ops, first) : bisect_left(ops, last)]


_BUSY = bytes((BUSY,))


class _ClassWalk:
    """Orders the ops of all classes so that each comes behind what it waits for.

    A class goes on until it waits for an op that has no node yet. now: the present node of its compute.
    """

    def __init__(self, built: SimulatedGraph) -> None:
        self.built = built
        self.timeline = built.timeline
        self.graph = built.graph
        count = len(self.timeline.classes)
        self.now = [START] * count
        self._run = [0] * count
        self._wait = [0] * count
        self._op = [0] * count
        self._orders = [built.order(class_id) for class_id in range(count)]
        # Per class and stream the group class that meets there, and how many classes take part.
        self._groups = [self._groups_of(class_id) for class_id in range(count)]
        self._known_meets: dict[tuple[int, frozenset[int]], list[int]] = {}
        # The ops of each class that meet those of other classes.
        self._meets = [self._meeting_ops(class_id) for class_id in range(count)]
        programs = map(self.timeline.stage_program, range(count))
        self._runs = [program.runs if built.apart else program.packed for program in programs]
        # Collectives that some members, (class, op, node), have come to: by group class, stream and index.
        self._come: dict[tuple[int, int, int], list[tuple[int, int, int]]] = {}
        # The classes that wait for an op of a class to have its node.
        self._parked: dict[tuple[int, int], list[int]] = {}
        self._ready = list(range(count))

    def run(self, cancelled: Callable[[], bool]) -> list[int]:
        """Walks all classes; returns the node at which each has joined all its work."""
        turns = 0
        while self._ready:
            turns += 1
            if not turns % _TURNS_BETWEEN_CANCEL_CHECKS and cancelled():
                raise Cancelled
            self._advance(self._ready.pop())
        for class_id, run in enumerate(self._run):
            if run < len(self._runs[class_id]):
                raise RuntimeError(f"class {class_id} never gets past op {self._op[class_id]}")
        return self.now

    def _groups_of(self, class_id: int) -> dict[int, tuple[int, int]]:
        group_classes = self.timeline.folding.group_classes
        return {
            STREAM_OF_GROUP[kind]: (group, len(group_classes[group].members))
            for kind, group in self.timeline.groups_of(class_id).items()
        }

    def _meeting_ops(self, class_id: int) -> list[int]:
        order = self._orders[class_id]
        meeting = frozenset(
            stream for stream, (_, members) in self._groups[class_id].items() if self._meets_others(members)
        )
        key = (id(order), meeting)
        if key not in self._known_meets:
            ops = (op for stream in meeting for op in order.lane(stream))
            self._known_meets[key] = sorted(ops)
        return self._known_meets[key]

    def _meets_others(self, members: int) -> bool:
        return members > 1

    def _advance(self, class_id: int) -> None:
        """Orders a class's ops until it is finished or waits for what has no node yet."""
        runs = self._runs[class_id]
        while (run_index := self._run[class_id]) < len(runs):
            run = runs[run_index]
            while self._wait[class_id] < len(run.waits):
                if not self._wait_for(class_id, run.waits[self._wait[class_id]]):
                    return
                self._wait[class_id] += 1
            if run.inner is not None:
                self.now[class_id] = self.built.add_joined(class_id, run, run.inner, self.now[class_id])
                self._op[class_id] = run.last
            else:
                self._op[class_id] = max(self._op[class_id], run.first)
                if not self._issue(class_id, run.last):
                    return
            self._run[class_id], self._wait[class_id] = run_index + 1, 0

    def _wait_for(self, class_id: int, wait: Wait) -> bool:
        """Advances a class past a wait; returns False where what it waits for has no node yet."""
        if isinstance(wait, Pause):
            self.now[class_id] = self.built.add_extra(wait.ns, class_id, IDLE_OP, self.now[class_id])
            return True
        if isinstance(wait, Receive):
            why, whose = RECEIVED, self.timeline.find_transfer(class_id, wait.message)
        else:
            why, whose = JOINS, (class_id, wait.op)
        node = self.built.node(*whose)
        if node == NONE:
            self._parked.setdefault(whose, []).append(class_id)
            return False
        if isinstance(wait, Join) and wait.after:
            node = self.built.add_extra(wait.after, class_id, IDLE_OP, START, node, JOINS)
        self.now[class_id] = self.graph.add_join(class_id, self.now[class_id], node, why)
        if isinstance(wait, Join):
            self.built.note_over(class_id, wait.op)
        return True

    def _issue(self, class_id: int, last: int) -> bool:
        """Issues ops up to `last` - 1; returns False where compute has to wait for a collective
        without a node.
        """
        op = self._op[class_id]
        if op == last:
            return True
        meets, blocking = self._meets[class_id], self._orders[class_id].program.ops.blocking
        at = bisect_left(meets, op)
        while op < last:
            meet = meets[at] if at < len(meets) else last
            if meet > op:
                op, first = min(meet, last), op
                self._stretch(class_id, first, op)
                continue
            there = self.built.node(class_id, op) != NONE or self._come_to(class_id, op)
            if blocking[op]:
                if not there:
                    self._op[class_id] = op
                    return False
                self.now[class_id] = self.built.node(class_id, op)
            op += 1
            at += 1
        self._op[class_id] = op
        return True

    def _stretch(self, class_id: int, first: int, last: int) -> None:
        """Adds ops that meet no other class's, and lets those go on that wait for one of them."""
        self.now[class_id] = self.built.add_stretch(class_id, first, last, self.now[class_id])
        sends = self._orders[class_id].sends
        for send in _between(sends, first, last):
            self._ready += self._parked.pop((class_id, send), ())

    def _come_to(self, class_id: int, op: int) -> bool:
        """Counts in a member of a collective; returns whether that has its node, as with the last one."""
        order = self._orders[class_id]
        stream, index = order.program.ops.stream[op], order.index_on_lane(op)
        group, members = self._groups[class_id][stream]
        key = (group, stream, index)
        come = self._come.get(key)
        if come is None:
            come = self._come[key] = []
        come.append((class_id, op, self.now[class_id]))
        if len(come) == members:
            del self._come[key]
            # Simultaneous members are in the order of their classes, not in that of this walk.
            come.sort()
            self._begin(come)
        there = self.built.node(class_id, op) != NONE
        if not there and order.program.ops.blocking[op]:
            self._parked.setdefault((class_id, op), []).append(class_id)
        return there

    def _begin(self, members: list[tuple[int, int, int]]) -> None:
        """Adds a collective to which all members, (class, op, node), have come."""
        over = self.graph.add_rendezvous((class_id, node) for class_id, _, node in members)
        class_id, op, _ = members[0]
        # All came to what is before it on the stream earlier: that has its node.
        before = self._orders[class_id].before(op)
        self._give(members, self.built.add_op(class_id, op, over, self.built.node(class_id, before)))

    def _give(self, members: list[tuple[int, int, int]], node: int) -> None:
        """Sets the node of a collective: those that waited for it go on."""
        for class_id, op, _ in members:
            self.built.set_node(class_id, op, node)
            self._ready += self._parked.pop((class_id, op), ())


class _QueuedWalk(_ClassWalk):
    """The walk in dialect astra-sim-1: no streams; times decide which collective was served first.

    A collective that was issued before it began stood behind another: of those of its members that ran then
    in a queue that it goes through too, the one that began last.
    """

    def __init__(self, built: SimulatedGraph, dimensions: int) -> None:
        super().__init__(built)
        self._dimensions = dimensions
        self._durations = built.durations()[: -self.graph.tracks or None]
        self._ends = [0]
        self._queues_of_group: dict[int, set[int]] = {}
        self._by_start: dict[int, tuple[list[int], list[int], list[int]]] = {}
        # By (class, op) that has no node yet, the collectives that stood behind it.
        self._standing: dict[tuple[int, int], list[list[tuple[int, int, int]]]] = {}

    def _meets_others(self, members: int) -> bool:
        return True

    def _begin(self, members: list[tuple[int, int, int]]) -> None:
        class_id, op, _ = members[0]
        over = self.graph.add_rendezvous((member, node) for member, _, node in members)
        begin = self.timeline.times.start[class_id][op]
        if self._end_of(over) == begin:
            self._give(members, self.built.add_op(class_id, op, over))
            return
        of, first = self._served_first(members, begin)
        before = self.built.node(of, first)
        if before == NONE:
            self._standing.setdefault((of, first), []).append(members)
            return
        graph = self.graph
        waits = graph.first[before - 1], graph.second[before - 1], graph.why[before - 1]
        part = self.built.add_extra(begin - self.timeline.times.start[of][first], of, first, *waits)
        self._give(members, self.built.add_op(class_id, op, over, part, QUEUED))

    def _give(self, members: list[tuple[int, int, int]], node: int) -> None:
        super()._give(members, node)
        for class_id, op, _ in members:
            for standing in self._standing.pop((class_id, op), ()):
                self._begin(standing)

    def _end_of(self, node: int) -> int:
        """Returns when a node ended in the run, ns."""
        graph, ends, durations = self.graph, self._ends, self._durations
        for at in range(len(ends) - 1, node):
            duration = graph.duration[at]
            ns = 0
            if duration >= len(durations):
                ns = self.built.extra_ns(duration)
            elif duration > 0:
                ns = durations[duration]
            ends.append(max(ends[graph.first[at]], ends[graph.second[at]]) + ns)
        return ends[node]

    def _served_first(self, members: list[tuple[int, int, int]], begin: int) -> tuple[int, int]:
        """Returns (class, op) of the collective that these members' one stood behind until `begin`.

        The latest of a member that started before and ran in one of its queues; one did, or this one would
        have been served.
        """
        first, latest = None, NONE
        queues = self._queues(*members[0][:2])
        for member, _, _ in members:
            starts, ops, reached = self._collectives_by_start(member)
            end = self.timeline.times.end[member]
            for index in range(bisect_left(starts, begin) - 1, -1, -1):
                if starts[index] <= latest or reached[index] < begin:
                    break
                if end[ops[index]] >= begin and queues & self._queues(member, ops[index]):
                    first, latest = (member, ops[index]), starts[index]
                    break
        if first is None:
            raise RuntimeError(f"class {members[0][0]} op {members[0][1]} waited for nothing")
        return first

    def _queues(self, class_id: int, op: int) -> set[int]:
        """Returns the queues that a collective of a class goes through."""
        of_group = self.built.group(class_id, op)
        if of_group not in self._queues_of_group:
            # Imported here: most runs have no queues.
            from simcore.compat.astra1_pricing import queue_of

            folding = self.timeline.folding
            group = folding.group_classes[of_group]
            self._queues_of_group[of_group] = {
                queue_of(folding, self._dimensions, group, group_dimension.dimension)
                for group_dimension in group.shape.dimensions
            }
        return self._queues_of_group[of_group]

    def _collectives_by_start(self, class_id: int) -> tuple[list[int], list[int], list[int]]:
        """Returns (start, op, latest end so far) of all collectives of a class, in the order of their
        starts.
        """
        by_start = self._by_start.get(class_id)
        if by_start is None:
            ops, start, end = self.timeline.columns(class_id)
            order = sorted((start[op], op) for op, stream in enumerate(ops.stream) if stream != COMPUTE)
            reached = list(accumulate((end[op] for _, op in order), max))
            by_start = self._by_start[class_id] = (
                [time for time, _ in order],
                [op for _, op in order],
                reached,
            )
        return by_start
