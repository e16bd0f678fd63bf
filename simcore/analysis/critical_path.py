"""The critical path: a chain of segments from 0 to the step time, and its legs.

Each segment waits for the one before. It is walked from the end: what ended last, what held that back, and
so on (`Dependencies.path`). Where two things ended at the same instant the first one of
`Dependencies.causes` is taken: a rank's own work before that of others, then the lower class. Spans of 0 ns
hand the chain on and are no segments. A leg is one rank doing one thing of one micro-batch, as people tell
the story.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from itertools import compress
from operator import ne
from typing import TypeVar

from simcore.analysis.accounts import IDLE_OP, op_kind
from simcore.analysis.dependencies import FIRST_REASON, Dependencies
from simcore.analysis.layers import NOT_MODELLED
from simcore.program.ops import COMPUTE, PHASES, STREAMS, TO_NEXT, ComputeCost
from simcore.records import Struct
from simcore.run.findings import Leg, LegKey, stretches
from simcore.run.repeats import Way
from simcore.units import shifted
from simcore.workload.model import base_name

IDLE_KIND = "idle"
# What the path can be summed by.
PARTS = ("kind", "layer", "stage", "rank")
# The part of transfers and of what is idle, which are of no row of the file.
NO_LAYER = "no layer"
Part = TypeVar("Part", int, str)


class Segment(Struct, frozen=True):
    """One segment of the path; times in ns.

    number: rank class. op: index into its ops, IDLE_OP where time passes by itself. kind: `compute`,
    a collective's name, `transfer` or `idle`. row: of the file, -1 without one. phase: "" when
    idle. microbatch: -1 outside micro-batches. reason: why it could not start earlier; it names
    the segment before.
    """

    start_ns: int
    end_ns: int
    number: int
    op: int
    rank: int
    stream: str
    kind: str
    row: int
    phase: str
    microbatch: int
    reason: str

    @property
    def ns(self) -> int:
        return self.end_ns - self.start_ns


class CriticalPath:
    """Columns over the segments, in the order of time.

    edge[i]..edge[i+1] ns is segment i (one entry more than segments). number, op, rank: whose op it
    is a part of, as in `Segment`.
    """

    def __init__(self, dependencies: Dependencies, cancelled: Callable[[], bool] = lambda: False) -> None:
        self._dependencies = dependencies
        self.simulation = dependencies.simulation
        self.edge = array("q")
        self.number = array("i")
        self.op = array("i")
        self.rank = array("q")
        # By start, why a segment began in which time passed by itself; of an op it is asked again.
        self._idle_reasons: dict[int, str] = {}
        # Where it goes a known way: its first segment; the way, the op of place 0 of that, how many segments.
        self._way_first = array("i")
        self._ways: list[tuple[Way, int, int]] = []
        self._walk(cancelled)

    def _walk(self, cancelled: Callable[[], bool]) -> None:
        """From the end of the step back to its start; the columns are turned round at the end."""
        self.edge.append(self.simulation.step_time_ns)
        ends = self.simulation.timeline.times.end
        # By way (each there once), which ends as its last op does, its columns.
        known: dict[int, tuple[array[int], array[int]]] = {}
        for step in self._dependencies.path(cancelled):
            if step.start_ns == step.end_ns:
                continue
            if step.op == IDLE_OP:
                self._idle_reasons[step.start_ns] = step.words
            if step.way is None:
                begins = array("q", (step.start_ns,))
                begins.extend(ends[step.number][step.first : step.op])
                ops = array("i", range(step.first, step.op + 1))
                begins, ops = _turned(begins, ops, step.end_ns)
            else:
                way = step.way
                if id(way) not in known:
                    known[id(way)] = _turned(way.begin, way.places, step.end_ns - step.start_ns)
                begins, ops = known[id(way)]
                begins = shifted(begins, step.start_ns)
                ops = shifted(ops, step.op - way.places[-1])
                self._way_first.append(len(self.op) + len(ops))
                self._ways.append((way, step.op - way.places[-1], len(ops)))
            self.edge += begins
            self.op += ops
            self.number += array("i", (step.number,)) * len(ops)
            self.rank += array("q", (step.rank,)) * len(ops)
        for column in (self.edge, self.number, self.op, self.rank):
            column.reverse()
        self._way_first = array("i", [len(self.op) - behind for behind in reversed(self._way_first)])
        self._ways.reverse()

    def __len__(self) -> int:
        return len(self.op)

    def segment(self, index: int) -> Segment:
        """Segment `index`, with its words."""
        number, op, rank = self.number[index], self.op[index], self.rank[index]
        simulation = self.simulation
        start, end = self.edge[index], self.edge[index + 1]
        kind, reason = op_kind(simulation.timeline, number, op), self.reason(index)
        if op == IDLE_OP:
            return Segment(start, end, number, op, rank, STREAMS[COMPUTE], kind, -1, "", -1, reason)
        ops = simulation.timeline.stage_program(number).ops
        stream, phase = STREAMS[ops.stream[op]], PHASES[ops.phase[op]]
        row, microbatch = ops.row[op], ops.microbatch[op]
        return Segment(start, end, number, op, rank, stream, kind, row, phase, microbatch, reason)

    def segments(self) -> Iterator[Segment]:
        """All segments, with their words: what runs the same on a way is described once."""
        known: dict[object, list[tuple[str, str, int, str, str]]] = {}
        begun = 0
        for begin, (way, _, count) in zip(self._way_first, self._ways, strict=True):
            # How a way begins is told by what is before it.
            yield from map(self.segment, range(begun, begin + 1))
            begun, number, rank = begin + count, self.number[begin], self.rank[begin]
            ops = self.simulation.timeline.stage_program(number).ops
            own = slice(self.op[begin], self.op[begun - 1] + 1)
            key = id(way), ops.row[own].tobytes(), ops.cost[own].tobytes(), bytes(ops.phase[own])
            words = known.get(key)
            if words is None:
                words = known[key] = [
                    (one.stream, one.kind, one.row, one.phase, one.reason)
                    for one in map(self.segment, range(begin + 1, begun))
                ]
            edges, microbatch = self.edge[begin + 1 : begun + 1], ops.microbatch[own.start]
            columns = zip(edges, edges[1:], self.op[begin + 1 : begun], words, strict=False)
            for start, end, op, (stream, kind, row, phase, reason) in columns:
                yield Segment(start, end, number, op, rank, stream, kind, row, phase, microbatch, reason)
        yield from map(self.segment, range(begun, len(self)))

    def reason(self, index: int) -> str:
        """Why segment `index` could not start earlier."""
        if not index:
            return FIRST_REASON
        if self.op[index] == IDLE_OP:
            return self._idle_reasons[self.edge[index]]
        number, op, rank = self.number[index], self.op[index], self.rank[index]
        at = bisect_right(self._way_first, index) - 1
        if at >= 0:
            way, first, _ = self._ways[at]
            place = bisect_left(way.places, op - first)
            if place < len(way.places) and way.places[place] == op - first and way.why[place] >= 0:
                before = first + way.places[place - 1]
                return self._dependencies.reason_in_way(number, op, rank, way.why[place], before)
        return self._dependencies.reason(number, op, rank)

    def at(self, time_ns: int) -> int:
        """The segment that holds `time_ns`, the last one for the end of the step; -1 without segments."""
        return min(bisect_right(self.edge, time_ns) - 1, len(self) - 1)

    def stage_ops(self) -> set[tuple[int, int]]:
        """(stage, op) of all that the path is made of."""
        classes = self.simulation.timeline.classes
        pairs = zip(self.number, self.op, strict=True)
        return {(classes[number].stage, op) for number, op in pairs if op != IDLE_OP}

    # -- what it is made of ----------------------------------------------------------

    def parts(self, by: str) -> Iterator[tuple[str, int]]:
        """(part, ns) of each segment, in the order of time.

        by: one of PARTS. A layer is the rows of one name without digits, raw text of the file.
        """
        edge, part_of = self.edge, self._part_of(by)
        for index, (number, op, rank) in enumerate(zip(self.number, self.op, self.rank, strict=True)):
            yield part_of(number, op, rank), edge[index + 1] - edge[index]

    def _part_of(self, by: str) -> Callable[[int, int, int], str]:
        """The part of a segment, by its class, op and rank."""
        timeline = self.simulation.timeline
        if by == "kind":
            return lambda number, op, rank: self._kind(number, op)
        if by == "stage":
            return lambda number, op, rank: f"stage {timeline.stage_of(number)}"
        if by == "rank":
            return lambda number, op, rank: f"rank {rank}"
        # One entry more, for no row.
        names = [*(base_name(name) or NO_LAYER for name in self.simulation.workload.name), NO_LAYER]
        return lambda number, op, rank: (
            NO_LAYER if op == IDLE_OP else names[timeline.stage_program(number).ops.row[op]]
        )

    def by_kind(self) -> dict[str, int]:
        """ns of the path by `compute PHASE`, kind of group, `pp` and `idle`, the longest first."""
        return self._sums(lambda number, op: self._kind(number, op))

    def by_row(self) -> dict[int, int]:
        """ns of the path by row of the file; -1 for transfers and what is idle."""
        return self._sums(
            lambda number, op: (
                -1 if op == IDLE_OP else self.simulation.timeline.stage_program(number).ops.row[op]
            )
        )

    def by_stage(self) -> dict[int, int]:
        """ns of the path by stage of the pipeline."""
        return self._sums(lambda number, op: self.simulation.timeline.stage_of(number))

    def by_rank(self) -> dict[int, int]:
        """ns of the path by rank."""
        ns_of: dict[int, int] = {}
        for index, rank in enumerate(self.rank):
            ns_of[rank] = ns_of.get(rank, 0) + self.edge[index + 1] - self.edge[index]
        return dict(sorted(ns_of.items(), key=lambda pair: (-pair[1], pair[0])))

    def _sums(self, key: Callable[[int, int], Part]) -> dict[Part, int]:
        ns_of: dict[Part, int] = {}
        for index, (number, op) in enumerate(zip(self.number, self.op, strict=True)):
            name = key(number, op)
            ns_of[name] = ns_of.get(name, 0) + self.edge[index + 1] - self.edge[index]
        return dict(sorted(ns_of.items(), key=lambda pair: (-pair[1], pair[0])))

    def _kind(self, number: int, op: int) -> str:
        if op == IDLE_OP:
            return IDLE_KIND
        ops = self.simulation.timeline.stage_program(number).ops
        stream = ops.stream[op]
        if stream == COMPUTE:
            return f"compute {PHASES[ops.phase[op]]}"
        return STREAMS[stream] if stream < TO_NEXT else "pp"


def _turned(begins: array[int], ops: array[int], end_ns: int) -> tuple[array[int], array[int]]:
    """Ops that follow one another, and when they begin, the last first, without those that take 0 ns."""
    if len(ops) > 1:
        # What takes 0 ns begins when what is behind it does.
        lasts = bytes(map(ne, begins, (*begins[1:], end_ns)))
        begins = array("q", compress(begins, lasts))
        ops = array("i", compress(ops, lasts))
    return begins[::-1], ops[::-1]


# What the spans of a micro-batch belong to: both gradients are its backward pass.
_PASS = {"fwd": "forward", "ig": "backward", "wg": "backward", "opt": "optimizer", "recompute": "recompute"}


def legs(path: CriticalPath) -> list[Leg]:
    """The legs of the critical path, in the order of time: they cover 0..step time.

    what: `forward`, `backward`, `optimizer`, `recompute`, `idle`, or the kind of group of a collective
    outside micro-batches with its layer, raw text of the file: `dp of grad_gather`; a transfer stands alone
    as `pp`.
    """
    timeline = path.simulation.timeline
    all_legs: list[Leg] = []
    for stretch in stretches(_keyed(path)):
        rank, what, microbatch = stretch.key
        start, end, number = path.edge[stretch.first], path.edge[stretch.last], path.number[stretch.first]
        stage, reason = timeline.stage_of(number), path.reason(stretch.first)
        all_legs.append(
            Leg(stretch.first, stretch.last, start, end, number, rank, stage, what, microbatch, reason)
        )
    return all_legs


def _keyed(path: CriticalPath) -> Iterator[tuple[LegKey, bool]]:
    """What a rank does of a micro-batch or in the collectives of a layer; whether nothing is known of it."""
    for number, op, rank in zip(path.number, path.op, path.rank, strict=True):
        what, microbatch = _pass_of(path, number, op)
        yield (rank, what, microbatch), microbatch < 0 and _is_placeholder(path, number, op)


def _is_placeholder(path: CriticalPath, number: int, op: int) -> bool:
    if op == IDLE_OP:
        return False
    timeline = path.simulation.timeline
    ops = timeline.stage_program(number).ops
    cost = timeline.program.costs[ops.cost[op]]
    return ops.stream[op] == COMPUTE and isinstance(cost, ComputeCost) and cost.ns in NOT_MODELLED


def _pass_of(path: CriticalPath, number: int, op: int) -> tuple[str, int]:
    """What a segment is a part of, and of which micro-batch."""
    if op == IDLE_OP:
        return "idle", -1
    simulation = path.simulation
    ops = simulation.timeline.stage_program(number).ops
    stream, microbatch = ops.stream[op], ops.microbatch[op]
    if stream >= TO_NEXT:
        return "pp", microbatch
    if microbatch < 0 and stream:
        row = ops.row[op]
        name = base_name(simulation.workload.name[row]) if row >= 0 else ""
        return f"{STREAMS[stream]} of {name}" if name else STREAMS[stream], -1
    return _PASS[PHASES[ops.phase[op]]], microbatch
