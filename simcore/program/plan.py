"""What all stages of a program share, and how a row of the file becomes ops."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from simcore.layout import Layout
from simcore.names import FORWARD_ONLY, STAGE_LAYOUTS
from simcore.program.blocks import Structure, is_embedding, is_layer
from simcore.program.ops import (
    ADVANCE,
    AWAIT,
    BEGIN,
    BLOCK,
    COMPUTE,
    FWD,
    IG,
    JOIN,
    MARK,
    OPT,
    RECOMPUTE,
    RUN,
    STREAM_OF_GROUP,
    WG,
    AnyCost,
    CollectiveCost,
    ComputeCost,
    InnerJoins,
    Ops,
    OverlapCost,
    PartCost,
    SequenceCost,
    SplitCost,
    mark_of,
)
from simcore.program.order import SINGLE_STAGE, Placement
from simcore.program.overrides import ANY_ROW
from simcore.records import NamedTuple, Struct, field
from simcore.units import split_by_weight
from simcore.workload import Cells, Workload
from simcore.workload.model import Phase, SplitCell, UnevenCell, base_name


class OpSegment(NamedTuple):
    """Ops of a part of a micro-batch."""

    ops: Ops
    """The ops."""
    joins: list[tuple[int, int]]
    """(op, the op of the segment that ends before it), ascending."""
    inner: InnerJoins | None = None
    """These joins, one object for all segments whose ops are placed and wait equally; None without any."""


class Plan(Struct):
    """What all stages of a program share: the file, the layout, the costs, the messages."""

    workload: Workload
    """The rows."""
    structure: Structure
    """Which rows are micro-batches."""
    layout: Layout
    """The ranks and their groups."""
    microbatches: int
    """How many a step has."""
    transfer_bytes: int
    """The bytes of one activation between neighbouring stages."""
    placement: Placement = SINGLE_STAGE
    """Where the parts of the model are."""
    passes: int = 1
    """How often layer-loop runs the file."""
    steps: int = 1
    """How often a pipeline runs a step."""
    overlapped: bool = False
    """Whether pairs of forward and backward take turns, row by row."""
    megatron: bool = False
    """Whether embedding rows are on the first stage only, final and loss rows on the last only."""
    overlap_grad_reduce: bool = False
    """Whether gradients are reduced during the last backward."""
    overlap_param_gather: bool = False
    """Whether parameters are gathered during the first forward."""
    least_forward_bytes: int = 0
    """The size that a smaller forward collective is raised to."""
    layer_scales: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """(name, phase) -> factor on compute."""
    costs: dict[tuple[type, Any], int] = field(default_factory=dict)
    """(type, cost) -> its index in the program's table."""
    messages: dict[tuple[int, int, int, int], int] = field(default_factory=dict)
    """(phase, micro-batch, producer, step) -> the id of a transfer."""
    segments: dict[tuple[str, tuple[int, ...]], OpSegment] = field(default_factory=dict)
    """The ops of a part over rows, with the joins among them, made once for all stages and micro-batches that
    repeat them.
    """
    merged_streams: frozenset[int] | None = None
    """For runs of which only the step time is needed: the streams whose collectives no other stream can
    delay. Rows that have no other collectives are one op.
    """
    idle_streams: frozenset[int] = frozenset()
    """For such runs: the streams that are idle whenever a collective begins that compute waits for. It and
    what overlaps with it are one op, too.
    """
    shared: dict[object, Any] = field(default_factory=dict)
    """For such runs: what stages with the same rows, or equal rows, have in common."""
    was_busy: bool = False
    """Whether another collective was found on one of the idle streams: this plan has no valid times then."""
    _rows: dict[tuple[int, int, bool, bool], tuple[int, ...]] = field(default_factory=dict)
    """The results of `rows`."""
    _first_equal_rows: list[int] | None = None
    """By row the first row with its name and cells."""
    _by_content: dict[tuple[str, tuple[int, ...]], tuple[int, ...]] = field(default_factory=dict)
    """(part, first equal rows) -> the rows whose segment can be reused."""
    _inner: dict[tuple[bytes, bytes, tuple[tuple[int, int], ...]], InnerJoins] = field(default_factory=dict)
    """The joins of segments by their content."""

    def cost(self, cost: AnyCost) -> int:
        """Returns the index of a cost in the program's table."""
        # The key has its type: named tuples of different types are equal when their values are.
        return self.costs.setdefault((type(cost), cost), len(self.costs))

    def message(self, phase: int, microbatch: int, producer: int, step: int = 0) -> int:
        """Returns the id of a transfer: of an activation (FWD) or gradient (IG) of a micro-batch of a step.

        producer: the position on the micro-batch's route that sends it.
        """
        return self.messages.setdefault((phase, microbatch, producer, step), len(self.messages))

    def rows(self, stage: int, microbatch: int, chunk: int) -> tuple[int, ...]:
        """Returns the rows of a micro-batch that a chunk of a stage runs, in file order.

        A chunk is one of `placement.parts` parts of consecutive layers; the first has the embedding rows too,
        the last the final rows.
        """
        if self.workload.stages:
            return self.workload.stages[stage].chunks[chunk]
        block_index = microbatch % len(self.structure.blocks)
        position = self.placement.position(stage, chunk)
        first, last = position == 0, position == self.placement.depth - 1
        key = (block_index, chunk % self.placement.parts, first, last)
        if key not in self._rows:
            self._rows[key] = self._chunk_rows(self.structure.blocks[block_index], *key[1:])
        return self._rows[key]

    def _chunk_rows(self, block: tuple[int, ...], part: int, first: bool, last: bool) -> tuple[int, ...]:
        names, parts = self.workload.name, self.placement.parts
        layers = [row for row in block if is_layer(names[row])]
        size = len(layers) // parts
        rows = layers[part * size : (part + 1) * size]
        for row in block:
            if is_layer(names[row]):
                continue
            if is_embedding(names[row]):
                here = part == 0 and (first or not self.megatron)
            else:
                here = part == parts - 1 and (last or not self.megatron)
            if here:
                rows.append(row)
        return tuple(sorted(rows))

    def loss_rows(self, stage: int, chunk: int) -> tuple[int, ...]:
        """Returns the loss rows that a chunk of a stage runs: the last part of a stage, or only that of the
        model.
        """
        placement = self.placement
        at_end = placement.position(stage, chunk) == placement.depth - 1
        if self.workload.stages:
            return self.workload.stages[stage].loss if at_end else ()
        here = at_end if self.megatron else chunk % placement.parts == placement.parts - 1
        return self.structure.loss if here else ()

    def with_inner(self, segment: OpSegment) -> OpSegment:
        """Returns the same segment with its joins as those of a run."""
        ops, joins, _ = segment
        if not joins:
            return segment
        stream, blocking, pairs = bytes(ops.stream), bytes(ops.blocking), tuple(joins)
        inner = self._inner.get((stream, blocking, pairs))
        if inner is None:
            lanes = sorted({*stream} - {COMPUTE})
            ends = tuple((lane, stream.index(lane), stream.rindex(lane)) for lane in lanes)
            # Streams are first in, first out: the ops before one that has ended have ended.
            over = {lane: max((op for _, op in pairs if stream[op] == lane), default=-1) for lane in lanes}
            async_ops = [op for op, lane in enumerate(stream) if lane != COMPUTE and not blocking[op]]
            unjoined = tuple(op for op in async_ops if op > over[stream[op]])
            inner = self._inner[stream, blocking, pairs] = InnerJoins(pairs, ends, unjoined)
        return OpSegment(ops, joins, inner)

    def reuse_segment(self, part: str, rows: tuple[int, ...]) -> OpSegment | None:
        """Returns the segment of a part over `rows` from that of other rows with the same names and cells.

        A file repeats its rows for each micro-batch: 32 times in seed 002, whose ops take 7 of the 16 ms of
        its program. None for the first rows of their content, and where a segment depends on more than names
        and cells.
        """
        workload = self.workload
        if (
            workload.header.checkpoint_initiates
            or workload.recomputed
            or workload.waits
            or workload.split_cells
        ):
            return None
        content = part, tuple([self.first_equal_row(row) for row in rows])
        other = self._by_content.setdefault(content, rows)
        if other == rows:
            return None
        here = dict(zip(other, rows, strict=True))
        ops, joins, _ = self.segments[part, other]
        copied_ops = ops.part(0, len(ops))
        copied_ops.row = array("i", map(here.__getitem__, ops.row))
        return OpSegment(copied_ops, joins)

    def first_equal_row(self, row: int) -> int:
        """Returns the first row with the name and the cells of a row."""
        if self._first_equal_rows is None:
            self._first_equal_rows = _find_first_equal_rows(self.workload, self.structure)
        return self._first_equal_rows[row]

    def recomputed(self, rows: tuple[int, ...]) -> dict[int, list[int]]:
        """Returns {row: the rows of `rows` (ascending) that run forward again before its input gradient}.

        A recompute runs from its nearest checkpoint up to the row that initiates it, that one excluded. Of a
        block whose rows other chunks or stages run too, each chunk runs its own rows again, from its input:
        before the initiator, or, where another chunk has that, before the last of them.
        """
        header = self.workload.header
        again_at = self.workload.recomputed
        recomputed: dict[int, list[int]] = {row: list(again_at[row]) for row in rows if row in again_at}
        if not header.checkpoint_initiates or not rows:
            return recomputed
        first = rows[0]
        blocks = (
            block for block in self.structure.blocks if block[0] <= first <= block[-1] and first in block
        )
        here, checkpoints = set(rows), sorted(header.checkpoints)
        for initiator in sorted({*header.checkpoint_initiates} & {*next(blocks, ()), *here}, reverse=True):
            behind = bisect_left(checkpoints, initiator)
            checkpoint = checkpoints[behind - 1] if behind else initiator
            again = rows[bisect_left(rows, checkpoint) : bisect_left(rows, initiator)]
            if again:
                recomputed.setdefault(initiator if initiator in here else again[-1], []).extend(again)
        return recomputed

    def layer_scale(self, row: int, cells: Cells) -> float:
        """Returns the factor of `--layer-scale` on a row's compute: of its own name, its base name, or of
        all.
        """
        if not self.layer_scales:
            return 1.0
        workload = self.workload
        phase = self._phase_of(cells)
        name = workload.name[row]
        scales = self.layer_scales
        names = (name, base_name(name), ANY_ROW)
        return next((scales[name, phase] for name in names if (name, phase) in scales), 1.0)

    def uneven(self, cells: Cells, row: int) -> UnevenCell | None:
        """Returns how the ranks of an expert group differ in a cell; None where they do not."""
        uneven = self.workload.uneven
        return uneven.get((self._phase_of(cells), row)) if uneven else None

    def packed_ns(self, cells: Cells, row: int) -> tuple[int, ...]:
        """Returns the ns of a cell in each of the different micro-batches; () where they do not differ."""
        packed = self.workload.packed
        return packed.compute_ns.get((self._phase_of(cells), row), ()) if packed is not None else ()

    def _phase_of(self, cells: Cells) -> Phase:
        return "fwd" if cells is self.workload.fwd else "ig" if cells is self.workload.ig else "wg"

    def is_optimizer(self, row: int) -> bool:
        """Returns whether a row's compute is the optimizer's, whatever cell it is in."""
        return self.structure.is_optimizer(row, self.workload.name[row])


def _find_first_equal_rows(workload: Workload, structure: Structure) -> list[int]:
    """Returns by row the first row with its name and cells; itself in the tail, and where ranks or
    micro-batches differ.
    """
    columns: list[Iterable[object]] = [workload.name]
    for cells in (workload.fwd, workload.ig, workload.wg):
        columns += [cells.compute_ns, cells.collective, cells.group, cells.bytes]
        if cells.asynchronous:
            columns.append([row in cells.asynchronous for row in range(len(workload))])
    if workload.split_cells:
        split_phases: tuple[Phase, ...] = ("fwd", "ig")
        for phase in split_phases:
            columns.append([workload.split_cells.get((phase, row)) for row in range(len(workload))])
    first: dict[tuple[object, ...], int] = {}
    first_row = [first.setdefault(content, row) for row, content in enumerate(zip(*columns, strict=True))]
    packed = workload.packed.compute_ns if workload.packed is not None else ()
    for row in {*structure.tail, *(row for _, row in (*workload.uneven, *packed))}:
        first_row[row] = row
    return first_row


class RowBuilder:
    """Appends the ops of single rows to `ops`: compute cells, then their collectives.

    wait: called before a row whose compute waits for an op that was issued earlier (`Workload.waits`).
    """

    def __init__(
        self,
        plan: Plan,
        ops: Ops,
        microbatch_of: dict[int, int] | None = None,
        wait: Callable[[int], None] | None = None,
    ) -> None:
        self.plan = plan
        self.ops = ops
        self.microbatch_of = microbatch_of or {}
        self._wait = wait
        # (phase, row) -> its collective, which some row waits for.
        self._issued: dict[tuple[Phase, int], int] = {}

    def begin(self, phase: Phase, row: int) -> None:
        """Wait for what a phase of a row needs (`Workload.waits`): once, however often it begins."""
        waits = self.plan.workload.waits
        if waits and self._wait and (phase, row) in waits:
            for other in waits[phase, row]:
                op = self._issued.pop((phase, other), None)
                if op is not None:
                    self._wait(op)

    def _end(self, phase: Phase, row: int, first: int) -> None:
        if self.plan.workload.waits and len(self.ops) > first and not self.ops.blocking[-1]:
            self._issued[phase, row] = len(self.ops) - 1

    def compute(self, cells: Cells, row: int, phase: int) -> None:
        """Append the compute cell of a row; a cell of 0 makes no op."""
        uneven = self.plan.uneven(cells, row)
        by_rank = uneven.compute_ns if uneven is not None else ()
        self._compute(cells.compute_ns[row], cells, row, phase, by_rank, self.plan.packed_ns(cells, row))

    def _compute(
        self,
        ns: int,
        cells: Cells,
        row: int,
        phase: int,
        by_rank: tuple[int, ...] = (),
        by_packing: tuple[int, ...] = (),
    ) -> None:
        if ns or any(by_packing):
            phase = OPT if self.plan.is_optimizer(row) else phase
            cost = self.plan.cost(ComputeCost(ns, self.plan.layer_scale(row, cells), by_rank, by_packing))
            self.ops.append(COMPUTE, phase, 1, cost, row, self.microbatch_of.get(row, -1))

    def collective(self, cells: Cells, row: int, phase: int, blocking: bool) -> None:
        """Append the collective of a row; none, one of 0 bytes, or a group of one make no op."""
        self.part_of_collective(cells, row, phase, blocking, cells.bytes[row])

    def part_of_collective(self, cells: Cells, row: int, phase: int, blocking: bool, size: int) -> None:
        """Append the collective of a row over `size` bytes of its buffer."""
        name, group = cells.collective[row], cells.group[row]
        if group == "offload" and name is not None and size:
            ns = max(1, round(size / self.plan.workload.host_link))
            self._collective(CollectiveCost(name, group, size, ns=ns), row, phase, blocking)
            return
        if name is None or group is None or not size or self.plan.layout.group_size(group) == 1:
            return
        if group == "pp":  # a SENDRECV is a transfer, not a collective
            return
        uneven = self.plan.uneven(cells, row)
        ports = uneven.port_bytes if uneven is not None else ()
        self._collective(CollectiveCost(name, group, size, ports=ports), row, phase, blocking)

    def _collective(self, what: CollectiveCost, row: int, phase: int, blocking: bool) -> None:
        phase = OPT if self.plan.is_optimizer(row) else phase
        cost = self.plan.cost(what)
        self.ops.append(
            STREAM_OF_GROUP[what.group], phase, int(blocking), cost, row, self.microbatch_of.get(row, -1)
        )

    def _append_split_cell(
        self, cells: Cells, row: int, phase: int, size: int, split_cell: SplitCell
    ) -> None:
        """Append the cell of a row split by split: its collective of `size` bytes overlaps with its
        products.
        """
        count, name, group = split_cell.split_count, cells.collective[row], cells.group[row]
        assert name is not None
        assert group is not None
        assert self._wait is not None
        moves = count - 1
        rest_ns = cells.compute_ns[row] - split_cell.before_ns - split_cell.product_ns
        if self.plan.merged_streams and STREAM_OF_GROUP[group] in self.plan.merged_streams:
            scale = self.plan.layer_scale(row, cells)
            whole = CollectiveCost(name, group, size)
            # Its kind of group is among the costs of the plan, as folding needs it.
            self.plan.cost(whole)
            what = SplitCost(
                whole, count, ComputeCost(split_cell.before_ns, scale), split_cell.product_ns,
                ComputeCost(rest_ns, scale),
            )  # fmt: skip
            self.ops.append(COMPUTE, phase, 1, self.plan.cost(what), row, self.microbatch_of.get(row, -1))
            return
        split_costs = [
            CollectiveCost(name, group, size * (move + 1) // moves - size * move // moves, size, move, moves)
            for move in range(moves)
        ]
        products = split_by_weight((1,) * count, split_cell.product_ns)
        self._compute(split_cell.before_ns, cells, row, phase)
        first = len(self.ops)
        if name == "ALLGATHER":
            for collective_cost in split_costs:
                self._collective(collective_cost, row, phase, False)
            self._compute(products[0], cells, row, phase)
            for index, ns in enumerate(products[1:]):
                self._wait(first + index)
                self._compute(ns, cells, row, phase)
        else:
            for ns, collective_cost in zip(products, split_costs, strict=False):
                self._compute(ns, cells, row, phase)
                self._collective(collective_cost, row, phase, False)
            last = len(self.ops) - 1
            self._compute(products[-1], cells, row, phase)
            self._wait(last)
        split_ns = split_cell.before_ns + split_cell.product_ns
        # What micro-batches differ in is no product.
        by_packing = tuple(ns - split_ns for ns in self.plan.packed_ns(cells, row))
        self._compute(cells.compute_ns[row] - split_ns, cells, row, phase, by_packing=by_packing)

    def forward(self, row: int, phase: int = FWD) -> None:
        """Append the forward of a row: compute, then its collective, blocking unless the file says
        otherwise.
        """
        fwd = self.plan.workload.fwd
        self.begin("fwd", row)
        first = len(self.ops)
        size = fwd.bytes[row]
        lifted = max(size, self.plan.least_forward_bytes) if size else 0
        split_cell = self.plan.workload.split_cells.get(("fwd", row))
        if split_cell is not None:
            self._append_split_cell(fwd, row, phase, lifted, split_cell)
            return
        self.compute(fwd, row, phase)
        self.part_of_collective(fwd, row, phase, row not in fwd.asynchronous, lifted)
        self._end("fwd", row, first)

    def input_grad(self, row: int) -> None:
        """Append the input gradient of a row: compute, then its collective, blocking unless the file says
        otherwise.
        """
        ig = self.plan.workload.ig
        self.begin("ig", row)
        split_cell = self.plan.workload.split_cells.get(("ig", row))
        if split_cell is not None:
            self._append_split_cell(ig, row, IG, ig.bytes[row], split_cell)
            return
        first = len(self.ops)
        self.compute(ig, row, IG)
        self.collective(ig, row, IG, blocking=row not in ig.asynchronous)
        self._end("ig", row, first)

    def weight_grad(self, row: int, blocking: bool) -> None:
        """Append the weight gradient of a row: compute, then its collective."""
        wg = self.plan.workload.wg
        self.begin("wg", row)
        first = len(self.ops)
        self.compute(wg, row, WG)
        self.collective(wg, row, WG, blocking)
        self._end("wg", row, first)

    def recompute(self, rows: Sequence[int]) -> None:
        """Append the forward of `rows` again, with blocking collectives."""
        for row in rows:
            self.forward(row, RECOMPUTE)


# (position in a segment, index of a gather that its op there waits for), ascending.
GatherWaits = Sequence[tuple[int, int]]


class Gathers(Struct):
    """The gathers that are issued at the start of a step, in their order."""

    streams: Sequence[int] = ()
    """The stream of each."""
    costs: Sequence[Any] = ()
    """The cost of each."""

    def segment(self, plan: Plan, row: int) -> OpSegment:
        """Returns their issue: marks of when each stream begins with them, and all of a stream as one.
        row: of the first one.
        """
        streams = tuple(dict.fromkeys(self.streams))
        lanes = tuple(lane for stream in streams for lane in (stream, mark_of(stream)))
        steps: list[Any] = [(MARK, _NOTHING, 2 * index) for index in range(len(streams))]
        for index, stream in enumerate(streams):
            steps.append((BEGIN, self.between(stream, 0, len(self.costs)), 2 * index))
        return _one_op(PartCost(lanes, tuple(steps)), streams, plan, WG, row)

    def between(self, stream: int, first: int, last: int) -> SequenceCost:
        """Returns the cost of gathers first..last-1 on a stream, one after another."""
        costs = zip(self.streams[first:last], self.costs[first:last], strict=True)
        return SequenceCost(tuple(Counter(cost for other, cost in costs if other == stream).items()))


def merge_ops(
    segment: OpSegment, plan: Plan, gathers: Gathers | None = None, gather_waits: GatherWaits = ()
) -> OpSegment:
    """Returns the same part with ops that can only run one after another merged into one, of the first one's
    row and phase.

    Those are compute, collectives on the streams of `plan.merged_streams` that compute waits for, and a
    collective on one of `plan.idle_streams` with what overlaps with it. gather_waits: what its ops wait for
    among `gathers`.
    """
    assert plan.merged_streams is not None
    costs: list[Any] = [cost for _, cost in plan.costs]
    ops, merged_ops, joins = segment.ops, Ops(), []
    waits: dict[int, list[int]] = {}
    for position, waited in segment.joins:
        waits.setdefault(position, []).append(waited)
    # A gather is no op of the segment: its number counts down from -1, and no merged op has its end inside.
    for position, gather in gather_waits:
        waits.setdefault(position, []).append(-1 - gather)
    awaited = {op: waiter for waiter, op in segment.joins}
    # Collectives that ended within a merged op.
    ended: set[int] = set()
    number_of: dict[int, int] = {}
    count = len(ops)

    def is_sequential(op: int) -> bool:
        stream = ops.stream[op]
        return stream == COMPUTE or (ops.blocking[op] > 0 and stream in plan.merged_streams)  # type: ignore[operator]

    def find_overlap_end(op: int) -> int:
        """Returns where compute waits for a collective that overlaps with no other one; 0 for other ops."""
        until = awaited.get(op, 0)
        alone = all(between not in waits and is_sequential(between) for between in range(op + 1, until))
        return until if until > op + 1 and alone else 0

    op = 0
    while True:
        joins += [
            (len(merged_ops), waited if waited < 0 else number_of[waited])
            for waited in waits.get(op, ())
            if waited not in ended
        ]
        if op == count:
            return _merge_part(OpSegment(merged_ops, joins), plan, gathers)
        together: Counter[Any] = Counter()
        until = op
        while until < count and (until == op or ended.issuperset(waits.get(until, ()))):
            if is_sequential(until) and until not in awaited:
                together[costs[ops.cost[until]]] += 1
                until += 1
            elif ops.stream[until] in plan.idle_streams and (end := find_overlap_end(until)):
                overlapping = Counter(costs[cost] for cost in ops.cost[until + 1 : end])
                together[OverlapCost(costs[ops.cost[until]], tuple(overlapping.items()))] += 1
                ended.add(until)
                until = end
            else:
                break
        number_of[op] = len(merged_ops)
        if until - op > 1:
            cost = plan.cost(SequenceCost(tuple(together.items())))
            merged_ops.append(COMPUTE, ops.phase[op], 1, cost, ops.row[op])
            op = until
        else:
            plan.was_busy |= ops.stream[op] in plan.idle_streams
            part = ops.part(op, op + 1)
            merged_ops.extend(part, part.microbatch[0])
            op += 1


def _merge_part(segment: OpSegment, plan: Plan, gathers: Gathers | None) -> OpSegment:
    """Returns the same part as one op, and one that takes no time on each of its streams, for which ops wait
    that wait for the part's collectives.
    """
    ops = segment.ops
    streams = tuple(dict.fromkeys(stream for stream in ops.stream if stream != COMPUTE))
    marks = dict.fromkeys(
        mark_of(gathers.streams[-1 - waited]) for _, waited in segment.joins if waited < 0 and gathers
    )
    if (len(ops) < 2 or not streams) and not marks:
        return segment
    lanes = (*streams, *marks)
    costs: list[Any] = [cost for _, cost in plan.costs]
    waits: dict[int, list[int]] = {}
    for position, waited in segment.joins:
        waits.setdefault(position, []).append(waited)
    begin_order: dict[int, int] = {}
    steps: list[Any] = []
    # By stream how many of the gathers have come.
    counted_gathers = dict.fromkeys(marks, 0)
    for op in range(len(ops) + 1):
        for waited in waits.get(op, ()):
            if waited in begin_order:
                steps.append((JOIN, _NOTHING, begin_order[waited]))
            elif waited < 0 and gathers is not None:
                stream, until = gathers.streams[-1 - waited], -waited
                mark = mark_of(stream)
                lane = lanes.index(mark)
                if until > counted_gathers[mark]:
                    steps.append((ADVANCE, gathers.between(stream, counted_gathers[mark], until), lane))
                    counted_gathers[mark] = until
                    steps.append((AWAIT, _NOTHING, lane))
        if op == len(ops):
            break
        stream, cost = ops.stream[op], costs[ops.cost[op]]
        if stream == COMPUTE:
            steps.append((RUN, cost, 0))
        elif ops.blocking[op]:
            steps.append((BLOCK, cost, lanes.index(stream)))
        else:
            begin_order[op] = len(begin_order)
            steps.append((BEGIN, cost, lanes.index(stream)))
    phase, row = (ops.phase[0], ops.row[0]) if ops else (FWD, -1)
    return _one_op(PartCost(lanes, tuple(steps)), streams, plan, phase, row)


def _one_op(part: PartCost, streams: Iterable[int], plan: Plan, phase: int, row: int) -> OpSegment:
    """Returns a part as one op, and one that takes no time on each of these streams."""
    ops = Ops()
    ops.append(COMPUTE, phase, 1, plan.cost(part), row)
    for stream in streams:
        ops.append(stream, phase, 0, plan.cost(_NOTHING), row)
    return OpSegment(ops, [])


_NOTHING = ComputeCost(0)


class ScheduleDefaults(NamedTuple):
    """Default values of fields of `Parameters`."""

    schedule: str = "layer-loop"
    microbatches: int = 1
    virtual_stages: int = 1
    layers: int = 1
    stage_layout: str = STAGE_LAYOUTS[0]


# The defaults of a table and of a policy of ASTRA-sim 1.0: each is a loop of its own, and no schedule fits.
ONE_LOOP = ScheduleDefaults()


def schedule_defaults(
    workload: Workload, layout: Layout, structure: Structure, queued: bool = False
) -> ScheduleDefaults:
    """Returns what a run of `workload` takes by default.

    queued: whether it is in dialect astra-sim-1, whatever the structure.
    """
    if workload.is_table or queued:
        return ONE_LOOP
    if workload.header.inference:
        return ScheduleDefaults(FORWARD_ONLY, workload.header.ga or 1)
    if workload.stages:
        # A single stage runs its micro-batches one after another, each forward and backward.
        return ScheduleDefaults("1f1b", workload.header.ga or 1)
    return ScheduleDefaults("1f1b" if layout.pp > 1 else ONE_LOOP.schedule, len(structure.blocks))
